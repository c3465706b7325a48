"""Results: one privatized text with its statement, and what an evaluation needs besides.

In: what the pipeline made. Out: `Result`, `Private`, `Rehearsal`.
Not here: how they come about (`pipeline`).
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Self

from textveil.errors import InputError
from textveil.guarantee import Guarantee, hidden_counts
from textveil.pipeline.plan import Plan
from textveil.protect import Protection
from textveil.randomness import Ids, Values
from textveil.text import Released


@dataclass(frozen=True, kw_only=True, eq=False)
class Private:
    """What never leaves: the original text and its words. Empty after pickling."""

    text: str = field(repr=False)
    words: tuple[str, ...] = field(repr=False)
    kept: bool = True

    def __reduce__(self) -> tuple[object, ...]:
        """Leaves the originals behind: a pickled result may go to a file or another process."""
        return partial(Private, text="", words=(), kept=False), ()

    def __copy__(self) -> Self:
        """Itself: it is frozen, and a copy stays in the process."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself, as a copy."""
        return self


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """One privatized text with its statement.

    Attributes:
        released: the public output; `text` is its text.
        guarantee: what holds for it.
        private: the originals; not in the repr, and in JSON only when asked for.
        seconds: time of the batch that the text was in, divided by its number of texts.
        sent_earlier: how many of the values that were found here for the first time stand, whole or in part, in
            earlier texts of the session, where nothing found them; what was sent is not changed any more.
        unmeasured: scripts and languages of the text for which it was not measured how much is found, "Thai".
    """

    released: Released
    guarantee: Guarantee
    private: Private = field(repr=False)
    seconds: float
    sent_earlier: int = 0
    unmeasured: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The released text."""
        return self.released.text

    @property
    def oov_share(self) -> float:
        """Share of the words not on the public list that are outside the table."""
        return self.guarantee.oov_share

    def to_json(self, *, with_original: bool = False) -> dict[str, object]:
        """Text, items, what was hidden by type and number, guarantee, and more; the original only if asked for."""
        out: dict[str, object] = {
            "text": self.text,
            "items": [item._asdict() for item in self.released.items],
            "hidden": dict(hidden_counts([self.released])),
            "guarantee": self.guarantee.to_json(),
            "oov_share": self.oov_share,
            "seconds": self.seconds,
            "sent_earlier": self.sent_earlier,
            "unmeasured": list(self.unmeasured),
        }
        if with_original:
            if not self.private.kept:
                raise InputError(
                    "a pickled result leaves the originals behind; ask for them in the process that made it"
                )
            out["original"] = {"text": self.private.text, "words": list(self.private.words)}
        return out


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """One batch with everything that an evaluation needs to judge it. Secret: it holds the originals and their rows.

    Attributes:
        results: one per text.
        words: the N words of all texts, as they stand there.
        protection: which of them are public, and their groups, [N].
        plan: their roles and budgets, and the block with its secret rows.
        drawn: the rows that the mechanism drew for the n protected positions, int64 [n].
        shown: the rows of the words that are shown there, in the table's origin, int64 [n]: others than those of
            `drawn` only where words were re-ranked.
        parameter: the mechanism's parameter there, float64 [n].
        named: the rows that were drawn for words that are replaced by names, int64 [m], in the order of the words.
    """

    results: tuple[Result, ...] = field(repr=False)
    words: tuple[str, ...] = field(repr=False)
    protection: Protection = field(repr=False)
    plan: Plan = field(repr=False)
    drawn: Ids = field(repr=False)
    shown: Ids = field(repr=False)
    parameter: Values = field(repr=False)
    named: Ids = field(repr=False)
