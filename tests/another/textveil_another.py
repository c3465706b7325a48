"""One of each kind that textveil takes from other packages: a table, a mechanism, a detector and so on.

In: what textveil hands over. Out: what it expects.
Not here: how textveil finds them; the entry points in pyproject.toml say where each is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np
import typer

from textveil.cli import say, verb
from textveil.detect import Span
from textveil.evaluate.attack import Case, Outcome, ProgressCallback, View, ignore_progress
from textveil.files import FieldCell, FileHead, FileRow, LineFormat, NumberedLines, TextColumns
from textveil.gateway.protocols import Operation
from textveil.gateway.protocols.field_rules import record, text
from textveil.guarantee import Claim
from textveil.mechanism import Block, Layout
from textveil.randomness import Ids, Ints, Randomness, Values, choose_weighted
from textveil.session import Session
from textveil.table import EmbeddingTable, Metric
from textveil_bench.examples import DataSet, Example
from textveil_bench.measure import annotate_measure

# ---- a table ---------------------------------------------------------------------------------------------------------

COLOURS = (
    "red",
    "orange",
    "yellow",
    "green",
    "blue",
    "purple",
    "brown",
    "black",
    "white",
    "grey",
    "pink",
    "gold",
)


def colours(*, metric: Metric = "chord", device: str = "cpu") -> EmbeddingTable:
    """Twelve colours on a circle."""
    angles = np.arange(len(COLOURS)) * 2 * np.pi / len(COLOURS)
    vectors = np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    return EmbeddingTable.build(
        name="colours", words=COLOURS, vectors=vectors, metric=metric, device=device
    )


# ---- a mechanism -----------------------------------------------------------------------------------------------------

UNIT = 1 << 16
"""The weight of each word but the private one; that one's is the largest whole number that keeps epsilon."""


@dataclass(frozen=True, kw_only=True)
class Keep:
    """See `keep`."""

    def claim(self, table: EmbeddingTable) -> Claim:
        """Local DP for any two words."""
        return Claim(mechanism="keep", kind="ldp", table=table.name, alone=True)

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Values) -> Values:
        """The weight of the private word, in units."""
        return np.floor(np.exp(np.minimum(epsilon, 20)) * UNIT) / UNIT

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Values | None:
        """There is no parameter to set."""
        return None

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Values) -> Values:
        """What the weights amount to."""
        spent: Values = np.log(parameter)
        return spent

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Values, *, rng: Randomness
    ) -> Ids:
        """The word itself, or any word of the others."""
        secret = block.secret
        released = secret.copy()
        others = len(table) - 1
        for chunk, draws in rng.open(block.layout.sizes).split_rows(1 << 12):
            own: Ints = (parameter[chunk] * UNIT).astype(np.int64)
            weights = np.column_stack([own, np.full_like(own, UNIT)])
            moved = choose_weighted(draws, weights, np.array([1, others])) == 1
            other = draws.integers(np.full(len(own), others))
            other += other >= secret[chunk]
            released[chunk] = np.where(moved, other, secret[chunk])
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Values, released: Ids | None = None
    ) -> Values | None:
        """The law."""
        total = parameter + len(table) - 1
        law = np.repeat(-np.log(total)[:, None], len(table), axis=1)
        law[np.arange(len(total)), block.secret] += np.log(parameter)
        return law


def keep() -> Keep:
    """Keeps a word, or releases any other word of the table: randomised response.

    Guarantee:
        local DP, epsilon.

    Caveats:
        Nothing of the meaning of a word is left where it is not kept.

    Source:
        Warner 1965.
    """
    return Keep()


# ---- a detector ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Codes:
    """Finds codes such as AB-1234; `codes:XY` finds those of XY only."""

    prefix: str = "[A-Z]{2}"
    name: ClassVar[str] = "codes"

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The codes of all texts."""
        return [
            Span(number, found.start(), found.end(), "CODE", 1.0, self.name)
            for number, text in enumerate(texts)
            for found in re.finditer(rf"\b{self.prefix}-\d{{4}}\b", text)
        ]


# ---- a format --------------------------------------------------------------------------------------------------------


class Notes(LineFormat):
    """Lines that begin with a dash are texts; all others are copied."""

    has_fields: ClassVar[bool] = False

    def find_field(self, file: BinaryIO, wanted: str | None) -> str | None:
        """There are none."""
        return None

    def split_pieces(
        self, lines: NumberedLines, columns: TextColumns, head: FileHead
    ) -> Iterator[str | FileRow]:
        """The lines."""
        for _, line in lines:
            body = line.rstrip("\n")
            yield (
                FileRow(line, {"text": FieldCell(2, len(body), body[2:])})
                if line.startswith("- ")
                else line
            )

    def join_row(self, cells: Mapping[str, str]) -> str:
        """A line."""
        return f"- {cells['text']}\n"

    def read_records(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """A row for each text."""
        return ({"text": text} for text in self.read_texts(file))


# ---- an attack, and a measure ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Parrot:
    """Guesses that every word is the released one.

    Args:
        sure: how sure it is; changes nothing.
    """

    name: ClassVar[str] = "parrot"
    sure: float = 1.0

    def refusal(self, view: View) -> str:
        """It says something of every release."""
        return ""

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """The share of words that it guesses."""
        hits = (case.view.visible_rows == case.truth.rows).astype(np.float64)
        yield Outcome(source=self.name, metric="guessed", where=np.arange(len(hits)), values=hits)


@annotate_measure("no text has a word")
def same_length(case: Case) -> Iterator[Outcome]:
    """The share of protected words whose release has as many letters."""
    released = [case.view.items[item] for item in case.view.item.tolist()]
    pairs = zip(released, case.secret_words, strict=True)
    same = np.array([float(len(one) == len(other)) for one, other in pairs])
    yield Outcome(
        source="same-length", metric="same length", where=np.arange(len(same)), values=same
    )


# ---- a data set ------------------------------------------------------------------------------------------------------


def sky(*, split: str = "test") -> DataSet:
    """Sentences about the sky, and what it is like."""
    sentences = ("the sky is blue", "the sky is grey")
    return DataSet(
        name="sky",
        split=split,
        kind="classification",
        fields=("sentence",),
        labels=("fair", "foul"),
        examples=tuple(Example(texts=(text,), label=i) for i, text in enumerate(sentences)),
    )


# ---- the gateway and sessions ----------------------------------------------------------------------------------------


def plain() -> tuple[Operation, ...]:
    """An API that takes one text."""
    taken = record(text=text())
    return (
        Operation(
            name="another.plain",
            path="/plain",
            request=taken,
            answer=taken,
            build_error=lambda _: {},
        ),
    )


@contextmanager
def nowhere(name: str) -> Iterator[Session]:
    """Sessions that are forgotten."""
    yield Session()


# ---- a command -------------------------------------------------------------------------------------------------------


@verb("textveil greet anna", panel="Another")
def greet(name: Annotated[str, typer.Argument(show_default=False)] = "nobody") -> None:
    """Greet somebody.

    It has nothing to do with privacy.
    """
    say(f"Hello {name}.")
