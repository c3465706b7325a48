"""Guarded tasks: prompts are made from released documents only.

In: a task as loaded, and the fields it shows. Out: the texts to release; the task, filled with
releases.
Not here: how the fields are found (`fields`), and how texts are released and stored (`releases`).

Every document, whether evaluated or a possible few-shot example, is replaced by an empty one. The
empty documents determine which examples will be drawn; the required documents are then filled with
releases. A document that was not released stays empty, and a template that uses it fails. Only
after the model has answered are answers compared with originals, if the task is scored that way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textveil.errors import ConfigError, InputError
from textveil_bench.lm_eval.fields import GuardedFields, has_text

PLACE_FIELD, LABEL_FIELD = "textveil.place", "textveil.label"
"""Hidden fields: a document's position, and a released one's label.

No template can use them.
"""

FEW_SHOT_SEED = 1234
"""Seed of lm-evaluation-harness: all configurations get the same examples."""

DocumentPlace = tuple[str, int]
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


class GuardedTask:
    """A task with empty documents, until it is filled with releases.

    Args:
        task: a `ConfigurableTask`; it is modified permanently.
        rows: its documents.
        fields: the fields that its prompts show.
        fewshot_count: number of examples in each prompt.
        limit: largest number of evaluated documents; None for all.

    Attributes:
        task: the same task, guarded.
        evaluated_count: number of evaluated documents.
        documents: the evaluated documents and their examples, by place.

    Raises:
        ConfigError: there are too few examples.
        InputError: a field is not text, or an answer is not among the choices.
    """

    def __init__(
        self,
        task: Any,
        rows: Sequence[Mapping[str, Any]],
        fields: GuardedFields,
        *,
        fewshot_count: int,
        limit: int | None,
    ) -> None:
        self.task, self.fields = task, fields
        self._split = task.config.test_split or task.config.validation_split
        self._scores_originals = task.config.output_type == "generate_until" or callable(
            task.config.process_results
        )
        self._process = task.process_results
        source, pool = _find_examples(task, fewshot_count)
        self._empty_rows = [_build_empty_row(self._split, i) for i in range(len(rows))]
        self._pool = (
            self._empty_rows
            if source == self._split
            else [_build_empty_row(source, i) for i in range(len(pool))]
        )
        self.evaluated_count = len(rows) if limit is None else min(limit, len(rows))
        example_places = self._remove_documents(fewshot_count)
        places = dict.fromkeys(
            [*((self._split, i) for i in range(self.evaluated_count)), *example_places]
        )
        self.documents = {
            (split, i): self._build_document(split, i, rows[i] if split == self._split else pool[i])
            for split, i in places
        }
        self._use_labels()

    @property
    def example_count(self) -> int:
        """Number of documents that are shown only as examples."""
        return len(self.documents) - self.evaluated_count

    def fill_documents(self, get_texts: Callable[[Document], Sequence[str]]) -> None:
        """Fills the empty documents.

        Args:
            get_texts: returns the texts that replace a document's own.
        """
        for row in (*self._empty_rows, *self._pool):
            document = self.documents.get(row[PLACE_FIELD])
            if document is not None:
                texts = iter(get_texts(document))
                row |= {
                    name: _rebuild_value(document.row[name], texts) for name in self.fields.texts
                }
                row |= {name: document.row[name] for name in self.fields.verbatim}
                row[LABEL_FIELD] = document.label

    def _remove_documents(self, fewshot_count: int) -> list[DocumentPlace]:
        """Removes the task's documents, and returns its examples' places."""
        task = self.task
        is_test_split = (
            task.fewshot_cfg.split == task.config.test_split
        )  # then lm_eval does not draw the document itself
        task.dataset, task.task_docs = {self._split: self._empty_rows}, self._empty_rows
        task.config.process_docs = task.fewshot_cfg.process_docs = task.fewshot_cfg.samples = None
        task.config.num_fewshot = fewshot_count
        task.process_results = self._score
        is_replaced = task.eval_docs is self._empty_rows
        if hasattr(task, "sampler"):
            task.sampler.replace_df(self._pool)
            is_replaced &= task.sampler.df is self._pool
        if not is_replaced:  # the structure differs in some versions of the library
            raise ConfigError(
                f"{task.task_name} keeps its documents elsewhere, so it cannot be guarded; leave "
                "it out"
            )
        if not fewshot_count:
            return []
        task.set_fewshot_seed(FEW_SHOT_SEED)
        try:
            return [
                example[PLACE_FIELD]
                for row in self._empty_rows[: self.evaluated_count]
                for example in task.sampler.sample(
                    n=fewshot_count, eval_doc=row if is_test_split else None
                )
            ]
        except Exception as error:
            raise ConfigError(
                f"{task.task_name} cannot draw {fewshot_count} of {len(self._pool)} examples "
                f"({type(error).__name__}): lower --num_fewshot"
            ) from None

    def _build_document(self, split: str, i: int, row: Mapping[str, Any]) -> Document:
        try:
            texts = tuple(
                text for name in self.fields.texts for text in _list_strings(name, row[name])
            )
            label = None
            if self.fields.has_label and (split == self._split or _has_same_answers(self.task)):
                label = _find_label(self.task.doc_to_target(row), self.task.doc_to_choice(row))
            return Document(row=row, texts=texts, label=label)
        except InputError as error:
            failure = str(error)
        except Exception as error:  # its message may hold the document
            failure = f"its code raised {type(error).__name__}"
        raise InputError(
            f"row {i} of {split} of {self.task.task_name} cannot be guarded: {failure}"
        )

    def _use_labels(self) -> None:
        task = self.task
        task.features = [*self.fields.all_names, LABEL_FIELD]
        if self.fields.has_label:
            if _has_same_answers(task):
                task.fewshot_cfg.doc_to_target = LABEL_FIELD
            task.config.doc_to_target = LABEL_FIELD

    def _score(self, row: Mapping[str, Any], answers: Any) -> Any:
        """Scores answers, called by lm_eval after the model has answered."""
        if self._scores_originals:
            document = self.documents[row[PLACE_FIELD]]
            row = {**document.row, LABEL_FIELD: document.label}
        return self._process(row, answers)


def _build_empty_row(split: str, i: int) -> dict[str, Any]:
    return {PLACE_FIELD: (split, i)}


def _find_examples(task: Any, fewshot_count: int) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """Finds the split and the rows of few-shot examples, as lm_eval does."""
    config, examples = task.config, task.fewshot_cfg
    rows = task.sampler.df if fewshot_count and hasattr(task, "sampler") else []
    if examples.split is not None:
        alike = examples.process_docs is config.process_docs
        return (examples.split if alike else f"{examples.split} (as examples)"), rows
    if examples.samples is not None:
        return "examples of the task", rows
    return config.training_split or config.validation_split or config.test_split, rows


def _has_same_answers(task: Any) -> bool:
    """True if answers of examples are made like those of documents."""
    return bool(task.fewshot_cfg.doc_to_target == task.config.doc_to_target)


def _find_label(target: Any, choices: Sequence[str]) -> Any:
    """Finds the index of the right choice, or a list of indices."""
    if isinstance(target, list):
        return [_find_label(answer, choices) for answer in target]
    if isinstance(target, int):
        return int(target)
    if target not in choices:
        raise InputError("its answer is not one of its choices")
    return choices.index(target)


def _list_strings(name: str, value: Any) -> Iterator[str]:
    """Yields the strings in a field, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            if has_text(item):
                yield from _list_strings(name, item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _list_strings(name, item)
    elif value is not None:
        raise InputError(
            f"{name} must be text, because prompts show it, got a {type(value).__name__}; --keep "
            "shows it unchanged"
        )


def _rebuild_value(value: Any, texts: Iterator[str]) -> Any:
    """Rebuilds a field with other strings; drops values that prompts cannot show."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, Mapping):
        return {name: _rebuild_value(item, texts) for name, item in value.items() if has_text(item)}
    if isinstance(value, list | tuple):
        return [_rebuild_value(item, texts) for item in value]
    return None
