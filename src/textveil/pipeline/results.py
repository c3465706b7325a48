"""Results: one privatized text with its statement, and secrets for evaluation.

In: outputs of the pipeline. Out: `Result`, `Private`, `EvaluationRun`.
Not here: how they are computed (`pipeline`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Self

from textveil.errors import InputError
from textveil.guarantee import Guarantee, count_hidden, describe_hidden
from textveil.pipeline.plan import Plan
from textveil.protect import Protection
from textveil.randomness import Ids, Values
from textveil.text import Released

MAX_REPR_CHARACTERS = 60
"""Characters of a released text in a repr."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Private:
    """Original text and words, which never leave. Empty after pickling."""

    text: str = field(repr=False)
    words: tuple[str, ...] = field(repr=False)
    kept: bool = True

    def get_text(self) -> str:
        """Returns the original text.

        Raises:
            InputError: it was left out when the result was pickled.
        """
        if not self.kept:
            raise InputError(
                "a pickled result does not hold the originals; read them in the process that made "
                "it"
            )
        return self.text

    def __reduce__(self) -> tuple[object, ...]:
        """Drops the originals: a pickled result may go elsewhere."""
        return partial(Private, text="", words=(), kept=False), ()

    # Without these two, a copy would go through `__reduce__` and lose the originals.
    def __copy__(self) -> Self:
        """Returns the object itself: it is frozen, and stays in the process."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Returns the object itself, like a copy."""
        return self


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Privatized text with its statement.

    Attributes:
        released: the public output; `text` is its text.
        guarantee: statement about it.
        private: the originals; not in the repr, and in JSON only when asked for.
        seconds: time of the text's batch, divided by its number of texts.
        sent_earlier: number of values found here for the first time that occur, whole or in part,
            in earlier texts of the session, where nothing found them; what was sent cannot be
            changed any more.
        unmeasured: scripts and languages of the text for which detection was not measured, "Thai".
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

    def __repr__(self) -> str:
        """Returns the beginning of the released text, and its statement in one line."""
        statement = describe_releases([self.released], self.guarantee)
        return f"<Result {shorten(self.text)!r}: {statement}>"

    def _repr_html_(self) -> str:
        """Returns the released text in colours, for notebooks, and its statement in one line."""
        return load_notebook_page().render_result(self)  # type: ignore[no-any-return]

    @property
    def oov_share(self) -> float:
        """Share of words outside the table among those not listed as public."""
        return self.guarantee.oov_share

    def to_json(self, *, with_original: bool = False) -> dict[str, object]:
        """Returns the result as plain data.

        That is text, items, counts of hidden values by type, guarantee, and more; the original only
        if asked for.
        """
        out: dict[str, object] = {
            "text": self.text,
            "items": [item._asdict() for item in self.released.items],
            "hidden": dict(count_hidden([self.released])),
            "guarantee": self.guarantee.to_json(),
            "oov_share": self.oov_share,
            "seconds": self.seconds,
            "sent_earlier": self.sent_earlier,
            "unmeasured": list(self.unmeasured),
        }
        if with_original:
            out["original"] = {"text": self.private.get_text(), "words": list(self.private.words)}
        return out


def describe_releases(releases: Sequence[Released], guarantee: Guarantee) -> str:
    """Describes texts in one sentence: what is guaranteed, or of prompts what was hidden."""
    is_prompt = "WORD" not in count_hidden(releases)
    return describe_hidden(releases) if is_prompt else guarantee.summary()


def shorten(text: str) -> str:
    """Returns the beginning of a text on one line."""
    words = " ".join(text[: 2 * MAX_REPR_CHARACTERS].split())
    return words if len(words) <= MAX_REPR_CHARACTERS else f"{words[:MAX_REPR_CHARACTERS]}..."


def load_notebook_page() -> Any:
    """Loads the module that draws results in notebooks, by its name: its room is above."""
    return import_module("textveil.render.notebook")


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationRun:
    """Evaluation run of one batch, with originals and rows. Secret.

    Attributes:
        results: one per text.
        words: the N words of all texts, unchanged.
        protection: their groups, and which of them are public, [N].
        plan: their roles and budgets, and the block with its secret rows.
        drawn_rows: the rows that the mechanism drew for the n protected positions, int64 [n].
        shown_rows: the rows of the words that are shown there, in the table's origin, int64 [n]:
            different from those of `drawn_rows` only where words were re-ranked.
        parameter: the mechanism's parameter there, float64 [n].
        name_rows: the rows that were drawn for words that are replaced by names, int64 [m], in the
            order of the words.
    """

    results: tuple[Result, ...] = field(repr=False)
    words: tuple[str, ...] = field(repr=False)
    protection: Protection = field(repr=False)
    plan: Plan = field(repr=False)
    drawn_rows: Ids = field(repr=False)
    shown_rows: Ids = field(repr=False)
    parameter: Values = field(repr=False)
    name_rows: Ids = field(repr=False)
