"""A task whose prompts are made of released documents only: its own documents are taken out of it.

In: a task as it was loaded, the fields that it shows. Out: the texts to release; the task, once it was given releases.
Not here: which fields these are (`fields`), how texts are released and kept (`releases`).

In place of every document, of those that are evaluated and of those that few-shot examples are drawn from, the task
gets an empty one. Which examples are drawn is found out with the empty ones; then those that are needed are filled with
releases. A document that was not released is still empty, and a template that asks it for a field fails. Only when
the model has answered are answers compared with originals, where that is how the task is scored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textveil.errors import ConfigError, InputError
from textveil_bench.lm_eval.fields import Fields, has_text

PLACE, LABEL = "textveil.place", "textveil.label"
"""What an empty document has: where it stands. What a released one has besides: its label. No template can use them."""

FEW_SHOT_SEED = 1234
"""lm-evaluation-harness' own: every configuration gets the same examples."""

FieldPlace = tuple[str, int]
"""A split's name and a row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Document:
    """A document as it was. Secret.

    Attributes:
        row: all its fields.
        texts: the strings of the fields that are privatized, in order.
        label: the place of the right choice, or places; None where the answer is a text.
    """

    row: Mapping[str, Any] = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)
    label: int | list[int] | None


class Guarded:
    """A task that has nothing to show until it is given releases.

    Args:
        task: a `ConfigurableTask`; it is changed for good.
        rows: its documents.
        fields: what its prompts show.
        few: how many examples stand in each prompt.
        limit: how many documents are evaluated at most; None for all.

    Attributes:
        task: the same task, guarded.
        evaluated: how many documents are evaluated.
        documents: those, and the examples that are drawn for them, by place.

    Raises:
        ConfigError: there are not as many examples.
        InputError: a field has what is no text, or an answer is none of the choices.
    """

    def __init__(
        self, task: Any, rows: Sequence[Mapping[str, Any]], fields: Fields, *, few: int, limit: int | None
    ) -> None:
        self.task, self.fields = task, fields
        self._split = task.config.test_split or task.config.validation_split
        self._scored_with_originals = task.config.output_type == "generate_until" or callable(
            task.config.process_results
        )
        self._process = task.process_results
        source, pool = _examples(task, few)
        self._empty = [_empty(self._split, i) for i in range(len(rows))]
        self._pool = self._empty if source == self._split else [_empty(source, i) for i in range(len(pool))]
        self.evaluated = len(rows) if limit is None else min(limit, len(rows))
        drawn = self._replace(few)
        wanted = dict.fromkeys([*((self._split, i) for i in range(self.evaluated)), *drawn])
        self.documents = {
            (split, i): self._document(split, i, rows[i] if split == self._split else pool[i]) for split, i in wanted
        }
        self._point_to_labels()

    @property
    def examples(self) -> int:
        """How many documents are shown as examples only."""
        return len(self.documents) - self.evaluated

    def show(self, released: Callable[[Document], Sequence[str]]) -> None:
        """Fills the documents.

        Args:
            released: what is shown in place of the texts of a document.
        """
        for row in (*self._empty, *self._pool):
            document = self.documents.get(row[PLACE])
            if document is not None:
                texts = iter(released(document))
                row |= {name: _rebuilt(document.row[name], texts) for name in self.fields.texts}
                row |= {name: document.row[name] for name in self.fields.kept}
                row[LABEL] = document.label

    def _replace(self, few: int) -> list[FieldPlace]:
        """Takes the documents out of the task, and finds out which examples it will draw."""
        task = self.task
        as_asked = task.fewshot_cfg.split == task.config.test_split  # by which lm_eval leaves out the document itself
        task.dataset, task.task_docs = {self._split: self._empty}, self._empty
        task.config.process_docs = task.fewshot_cfg.process_docs = task.fewshot_cfg.samples = None
        task.config.num_fewshot = few
        task.process_results = self._score
        taken = task.eval_docs is self._empty
        if hasattr(task, "sampler"):
            task.sampler.replace_df(self._pool)
            taken &= task.sampler.df is self._pool
        if not taken:  # by a version of the library that is unlike those it was built with
            raise ConfigError(f"{task.task_name} keeps its documents elsewhere, and cannot be guarded")
        if not few:
            return []
        task.set_fewshot_seed(FEW_SHOT_SEED)
        try:
            return [
                example[PLACE]
                for row in self._empty[: self.evaluated]
                for example in task.sampler.sample(n=few, eval_doc=row if as_asked else None)
            ]
        except Exception as error:
            raise ConfigError(
                f"{task.task_name} cannot draw {few} of {len(self._pool)} examples ({type(error).__name__}): "
                "lower --num_fewshot"
            ) from None

    def _document(self, split: str, i: int, row: Mapping[str, Any]) -> Document:
        try:
            texts = tuple(text for name in self.fields.texts for text in _leaves(name, row[name]))
            label = None
            if self.fields.label and (split == self._split or _same_answers(self.task)):
                label = _label(self.task.doc_to_target(row), self.task.doc_to_choice(row))
            return Document(row=row, texts=texts, label=label)
        except InputError as error:
            failure = str(error)
        except Exception as error:  # its message may hold the document
            failure = f"it gave {type(error).__name__}"
        raise InputError(f"row {i} of {split} of {self.task.task_name} cannot be guarded: {failure}")

    def _point_to_labels(self) -> None:
        task = self.task
        task.features = [*self.fields.all, LABEL]
        if self.fields.label:
            if _same_answers(task):
                task.fewshot_cfg.doc_to_target = LABEL
            task.config.doc_to_target = LABEL

    def _score(self, row: Mapping[str, Any], answers: Any) -> Any:
        """What lm_eval asks for after the model has answered."""
        if self._scored_with_originals:
            document = self.documents[row[PLACE]]
            row = {**document.row, LABEL: document.label}
        return self._process(row, answers)


def _empty(split: str, i: int) -> dict[str, Any]:
    return {PLACE: (split, i)}


def _examples(task: Any, few: int) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Where few-shot examples come from, and all of them, as lm_eval has chosen."""
    config, examples = task.config, task.fewshot_cfg
    rows = task.sampler.df if few and hasattr(task, "sampler") else []
    if examples.split is not None:
        alike = examples.process_docs is config.process_docs
        return (examples.split if alike else f"{examples.split} (as examples)"), rows
    if examples.samples is not None:
        return "examples of the task", rows
    return config.training_split or config.validation_split or config.test_split, rows


def _same_answers(task: Any) -> bool:
    """Whether the answers of examples are made as those of documents."""
    return bool(task.fewshot_cfg.doc_to_target == task.config.doc_to_target)


def _label(target: Any, choices: Sequence[str]) -> Any:
    """The place of the right choice, or a list of places."""
    if isinstance(target, list):
        return [_label(each, choices) for each in target]
    if isinstance(target, int):
        return int(target)
    if target not in choices:
        raise InputError("its answer must be one of its choices, and is none of them")
    return choices.index(target)


def _leaves(name: str, value: Any) -> Iterator[str]:
    """The strings in a field, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            if has_text(each):
                yield from _leaves(name, each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(name, each)
    elif value is not None:
        raise InputError(
            f"{name} must be text, because prompts show it, and has a {type(value).__name__}; --keep shows it as it is"
        )


def _rebuilt(value: Any, texts: Iterator[str]) -> Any:
    """A field with other strings; what prompts cannot show is left out."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, Mapping):
        return {name: _rebuilt(each, texts) for name, each in value.items() if has_text(each)}
    if isinstance(value, list | tuple):
        return [_rebuilt(each, texts) for each in value]
    return None
