"""A task whose prompts are made from released documents only: its own documents are taken out.

In: a task as loaded, and the fields it shows. Out: the texts to release; the task, once it has the releases.
Not here: how the fields are found (`fields`), and how texts are released and kept (`releases`).

Every document, whether evaluated or a possible few-shot example, is replaced by an empty one. The empty ones show which
examples will be drawn; the documents that are needed are then filled with releases. A document that was not released
stays empty, and a template that uses it fails. Only after the model has answered are answers compared with originals,
if the task is scored that way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textveil.errors import ConfigError, InputError
from textveil_bench.lm_eval.fields import Fields, has_text

PLACE, LABEL = "textveil.place", "textveil.label"
"""Fields of an empty document, its position, and of a released one, also its label. No template can use them."""

FEW_SHOT_SEED = 1234
"""lm-evaluation-harness' own seed: every configuration gets the same examples."""

FieldPlace = tuple[str, int]
"""A split's name and a row number."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Document:
    """An original document. Secret.

    Attributes:
        row: all its fields.
        texts: the strings of the privatized fields, in order.
        label: the index of the right choice, or several; None if the answer is a text.
    """

    row: Mapping[str, Any] = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)
    label: int | list[int] | None


class Guarded:
    """A task with empty documents, until it is given releases.

    Args:
        task: a `ConfigurableTask`; it is modified permanently.
        rows: its documents.
        fields: what its prompts show.
        few: number of examples in each prompt.
        limit: most documents evaluated; None for all.

    Attributes:
        task: the same task, guarded.
        evaluated: number of evaluated documents.
        documents: those, and the examples drawn for them, by place.

    Raises:
        ConfigError: there are too few examples.
        InputError: a field is not text, or an answer is not among the choices.
    """

    def __init__(
        self,
        task: Any,
        rows: Sequence[Mapping[str, Any]],
        fields: Fields,
        *,
        few: int,
        limit: int | None,
    ) -> None:
        self.task, self.fields = task, fields
        self._split = task.config.test_split or task.config.validation_split
        self._scored_with_originals = task.config.output_type == "generate_until" or callable(
            task.config.process_results
        )
        self._process = task.process_results
        source, pool = _examples(task, few)
        self._empty = [_empty(self._split, i) for i in range(len(rows))]
        self._pool = (
            self._empty if source == self._split else [_empty(source, i) for i in range(len(pool))]
        )
        self.evaluated = len(rows) if limit is None else min(limit, len(rows))
        drawn = self._replace(few)
        wanted = dict.fromkeys([*((self._split, i) for i in range(self.evaluated)), *drawn])
        self.documents = {
            (split, i): self._document(split, i, rows[i] if split == self._split else pool[i])
            for split, i in wanted
        }
        self._point_to_labels()

    @property
    def examples(self) -> int:
        """Number of documents that are shown only as examples."""
        return len(self.documents) - self.evaluated

    def show(self, released: Callable[[Document], Sequence[str]]) -> None:
        """Fills in the documents.

        Args:
            released: gives what is shown instead of a document's texts.
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
        as_asked = (
            task.fewshot_cfg.split == task.config.test_split
        )  # then lm_eval leaves out the document itself
        task.dataset, task.task_docs = {self._split: self._empty}, self._empty
        task.config.process_docs = task.fewshot_cfg.process_docs = task.fewshot_cfg.samples = None
        task.config.num_fewshot = few
        task.process_results = self._score
        taken = task.eval_docs is self._empty
        if hasattr(task, "sampler"):
            task.sampler.replace_df(self._pool)
            taken &= task.sampler.df is self._pool
        if not taken:  # in a version of the library with another structure
            raise ConfigError(
                f"{task.task_name} keeps its documents elsewhere, so it cannot be guarded; leave it out"
            )
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
        raise InputError(
            f"row {i} of {split} of {self.task.task_name} cannot be guarded: {failure}"
        )

    def _point_to_labels(self) -> None:
        task = self.task
        task.features = [*self.fields.all, LABEL]
        if self.fields.label:
            if _same_answers(task):
                task.fewshot_cfg.doc_to_target = LABEL
            task.config.doc_to_target = LABEL

    def _score(self, row: Mapping[str, Any], answers: Any) -> Any:
        """What lm_eval calls after the model has answered."""
        if self._scored_with_originals:
            document = self.documents[row[PLACE]]
            row = {**document.row, LABEL: document.label}
        return self._process(row, answers)


def _empty(split: str, i: int) -> dict[str, Any]:
    return {PLACE: (split, i)}


def _examples(task: Any, few: int) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Where few-shot examples come from, and all of them, as chosen by lm_eval."""
    config, examples = task.config, task.fewshot_cfg
    rows = task.sampler.df if few and hasattr(task, "sampler") else []
    if examples.split is not None:
        alike = examples.process_docs is config.process_docs
        return (examples.split if alike else f"{examples.split} (as examples)"), rows
    if examples.samples is not None:
        return "examples of the task", rows
    return config.training_split or config.validation_split or config.test_split, rows


def _same_answers(task: Any) -> bool:
    """Whether the answers of examples are made like those of documents."""
    return bool(task.fewshot_cfg.doc_to_target == task.config.doc_to_target)


def _label(target: Any, choices: Sequence[str]) -> Any:
    """The index of the right choice, or a list of indices."""
    if isinstance(target, list):
        return [_label(each, choices) for each in target]
    if isinstance(target, int):
        return int(target)
    if target not in choices:
        raise InputError("its answer is not one of its choices")
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
            f"{name} must be text, because prompts show it, got a {type(value).__name__}; --keep shows it unchanged"
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
