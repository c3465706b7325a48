"""Hugging Face datasets: a function for `Dataset.map` that releases columns.

Each row is drawn once.

In: batches of a dataset. Out: the same with released texts.
Not here: how a row is drawn once (`releases`), and data frames (`frames`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from textveil.errors import ConfigError, InputError, quote
from textveil.guarantee import Guarantee, TextGuarantee
from textveil.integrations.releases import (
    RowPrivatizer,
    Statement,
    TableRelease,
    add_statements,
    check_columns,
    has_text,
    list_released,
    merge_statements,
    normalize_names,
    note_copies,
)
from textveil.integrations.synthesis import synthesize_columns
from textveil.library import Library
from textveil.pipeline import Protector, Synthesis

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["DatasetRelease", "privatize", "read_statement", "synthesize"]


def privatize(
    privatizer: RowPrivatizer | Protector | str,
    columns: str | Iterable[str] = "text",
    *,
    id: str | None = None,
    keep: Iterable[str] = (),
    statement: str | None = None,
    key: bytes | None = None,
) -> "DatasetRelease":
    """Begins a release, as a function for `dataset.map(..., batched=True)`.

    Args:
        privatizer: a `Privatizer`, a `TextPrivatizer`, a `Protector`, or the name of a profile.
        columns: with the texts.
        id: the column with an id for each row, different in all that is released with this; None to
            take the rows' numbers, with `map(..., with_indices=True)`.
        keep: columns with text that stay as they are. All others with text are refused.
        statement: a new column for the statement of each batch, in the first of its rows; see
            `read_statement`.
        key: for tests only: 32 bytes from which the draws follow.

    Raises:
        ConfigError: options are wrong.
    """
    return DatasetRelease(
        privatizer, normalize_names(columns), id=id, keep=tuple(keep), statement=statement, key=key
    )


class DatasetRelease(TableRelease):
    """A release of columns of a dataset; see `privatize` for the arguments.

    The cache of `datasets` knows a function by its pickle, which names the release: it gives back
    what this release has drawn, and never what another one did.
    """

    def __init__(
        self,
        privatizer: RowPrivatizer | Protector | str,
        columns: tuple[str, ...],
        *,
        id: str | None = None,
        keep: tuple[str, ...] = (),
        statement: str | None = None,
        key: bytes | None = None,
    ) -> None:
        if not columns or len(set(columns)) < len(columns) or {id, *keep} & set(columns):
            raise ConfigError(
                "columns must name at least one column, each once, and neither the id nor a column "
                f"of keep, got {', '.join(map(quote, columns)) or 'none'}"
            )
        self._columns, self._id, self._keep, self._statement = columns, id, keep, statement
        super().__init__(privatizer, key=key)

    def _dump_state(self) -> tuple[Any, ...]:
        return *super()._dump_state(), self._columns, self._id, self._keep, self._statement

    @classmethod
    def _load_state(cls, state: tuple[Any, ...]) -> Self:
        result = super()._load_state(state)
        result._columns, result._id, result._keep, result._statement = state[4:]
        return result

    def _read_ids(self, batch: Mapping[str, Any], indices: Sequence[int] | None) -> Sequence[Any]:
        ids = indices if self._id is None else batch[self._id]
        if ids is None:
            raise InputError(
                "every row of a release needs an id: name the column of ids, privatize(..., "
                "id='id'), or give the numbers of rows, map(..., batched=True, with_indices=True)"
            )
        return cast(Sequence[Any], ids)

    def __call__(
        self, batch: Mapping[str, Any], indices: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Returns the released columns of a batch.

        Raises:
            InputError: a column holds text and is not named, rows have no ids, or a text is none.
        """
        if not all(map(_is_column, batch.values())):
            raise InputError("rows are released in batches: map(..., batched=True)")
        allowed = (*self._keep, *([] if self._id is None else [self._id]))
        text_columns = [name for name, column in batch.items() if has_text(column)]
        check_columns(list(batch), text_columns, self._columns, allowed, is_whole=self.is_whole)
        ids = self._read_ids(batch, indices)
        results = {name: self.draw(batch[name], ids, name) for name in self._columns}
        columns: dict[str, Any] = {
            name: list_released(releases) for name, releases in results.items()
        }
        if self._statement is not None:
            if self._statement in batch:
                raise InputError(
                    f"the column {self._statement!r} exists already: choose another name for the "
                    "statements"
                )
            combined = note_copies(
                merge_statements(list(chain.from_iterable(results.values()))),
                len(batch) > len(self._columns),
            )
            columns[self._statement] = [None] * len(ids)
            if combined is not None:
                columns[self._statement][0] = json.dumps(combined.pack())
        return columns


def read_statement(statements: Iterable[str | None]) -> Statement:
    """Combines the statements in the column `statement`.

    Raises:
        InputError: the column has none.
    """
    packed = [json.loads(entry) for entry in statements if entry is not None]
    guarantees: list[Statement] = [
        TextGuarantee.unpack(entry) if "way" in entry else Guarantee.unpack(entry)
        for entry in packed
    ]
    if not guarantees:
        raise InputError("the column has no statement: name it in privatize(..., statement=...)")
    return add_statements(guarantees)


def synthesize(
    dataset: "Dataset",
    *,
    text: str = "text",
    label: str | None = None,
    subject: str | None = None,
    library: Library | str | Path,
    label_names: Iterable[object] = (),
    epsilon: float,
    **options: Any,
) -> tuple["Dataset", Synthesis]:
    """Synthesizes a dataset of public texts like those of a dataset, by one noisy count of them.

    The arguments are those of `frames.synthesize`. The new dataset lies in memory, and has no value
    and no feature of the old one.

    Raises:
        ConfigError, BudgetError: an option is wrong, or it is no dataset of one split.
        InputError: a column is missing, or a value of it is none such.
    """
    from datasets import Dataset

    if not isinstance(dataset, Dataset):
        raise ConfigError(
            f"give a Dataset, such as one split of a DatasetDict, not {type(dataset).__name__}"
        )
    synthesis = synthesize_columns(
        dataset.column_names,
        lambda name: dataset[name][:],
        text=text,
        label=label,
        subject=subject,
        library=library,
        label_names=label_names,
        epsilon=epsilon,
        **options,
    )
    return Dataset.from_list(list(synthesis.yield_rows())), synthesis


def _is_column(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
