"""Release: drawn rows become words, items, a mask and text again.

In: a batch's words, what was decided for each, and what was drawn. Out: one `Released` per text.
Not here: the decisions and the draw (`pipeline`), and the statement about them (`guarantee`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from textveil.mechanism import PLACEHOLDER, Block, Role
from textveil.protect import Protection
from textveil.session import Session
from textveil.table import EmbeddingTable, Ids
from textveil.wordpiece import WordPieces
from textveil.words import Casing, Item, Kind, Mask, Released, Tokens, apply_casing, casing_of

PLACEHOLDER_TYPE = "WORD"
_KINDS = (Kind.VERBATIM, Kind.WORD, Kind.PLACEHOLDER)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What is decided before the draw, for N words in T units.

    Attributes:
        block: the units' rows (secret) and layout (public).
        roles: int8 [N], a `Role` per word.
        counts: int64 [N], units of each word.
        unknown: bool [N], words outside the table that are not public.
        epsilon: float64 [N], the budget of each word, or None where the mechanism's parameter sets it.
    """

    block: Block
    roles: NDArray[np.int8]
    counts: Ids
    unknown: NDArray[np.bool_]
    epsilon: NDArray[np.float64] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """What came out of the draw.

    Attributes:
        rows: int64 [T], a row per unit; `PLACEHOLDER` where none was drawn.
        spent: float64 [N], epsilon of each word; infinite where it passes.
        parameter: float64 [n], the mechanism's parameter at every protected unit.
    """

    rows: Ids
    spent: NDArray[np.float64]
    parameter: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """The words of a batch as they will be shown; `text` cuts one text out of it."""

    tokens: Tokens = field(repr=False)
    protection: Protection
    shown: list[str] = field(repr=False)
    kinds: list[Kind]
    casing: list[Casing] | None
    pieces: Ids | None
    numbered: bool

    def text(self, b: int, span: slice) -> Released:
        """Text b, whose words stand at `span` of the batch."""
        texts, kinds = self.shown[span], self.kinds[span]
        names = self.protection.labels
        labels = [names[group] for group in self.protection.group[span].tolist()]
        mask = Mask(
            words=len(texts),
            verbatim=tuple(i for i, kind in enumerate(kinds) if kind is Kind.VERBATIM),
            placeholders=tuple((i, PLACEHOLDER_TYPE) for i, kind in enumerate(kinds) if kind is Kind.PLACEHOLDER),
            equal=_equal(texts, kinds),
            numbered=self.numbered,
            groups=tuple(labels) if len(names) > 2 else None,
            pieces=None if self.pieces is None else tuple(self.pieces[span][~self.protection.public[span]].tolist()),
            casing=None if self.casing is None else tuple(self.casing[span]),
        )
        items = tuple(map(Item, texts, kinds, labels, range(len(texts)), range(1, len(texts) + 1)))
        return Released(items=items, gaps=_spaced(self.tokens.gaps(b), kinds), mask=mask)


def spell(
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    rows: Ids,
    casing: Literal["lower", "copy"],
    table: EmbeddingTable,
    pieces: WordPieces | None,
    session: Session | None,
) -> list[Released]:
    """The B texts as they are shown: each word as that of its rows, as the public word itself, or as a placeholder."""
    first = np.cumsum(plan.counts) - plan.counts
    drawn = np.zeros(len(plan.roles), bool)
    protected = plan.roles == Role.PROTECT
    drawn[protected] = rows[first[protected]] != PLACEHOLDER
    kinds = np.where(plan.roles == Role.PASS, 0, np.where(drawn, 1, 2))
    chosen = np.flatnonzero(drawn).tolist()
    if pieces is None:
        spelled = [table.words[row] for row in rows[first[chosen]].tolist()]
    else:
        spelled = pieces.join([rows[first[i] : first[i] + plan.counts[i]] for i in chosen])
    shown = list(tokens.words)
    for i, word in zip(chosen, spelled, strict=True):
        shown[i] = word
    copied: list[Casing] | None = None
    if casing == "copy":
        copied = [casing_of(word) if kind != 2 else "lower" for word, kind in zip(tokens.words, kinds, strict=True)]
        for i in chosen:
            shown[i] = apply_casing(shown[i], copied[i])
    else:
        shown = [word.lower() for word in shown]
    for i in np.flatnonzero(kinds == 2).tolist():
        shown[i] = session.placeholder(PLACEHOLDER_TYPE, tokens.words[i]) if session else f"<{PLACEHOLDER_TYPE}>"
    draft = Draft(
        tokens=tokens,
        protection=protection,
        shown=shown,
        kinds=[_KINDS[kind] for kind in kinds.tolist()],
        casing=copied,
        pieces=None if pieces is None else np.where(kinds == 2, 0, plan.counts),
        numbered=session is not None,
    )
    bounds = tokens.documents.tolist()
    return [draft.text(b, slice(start, stop)) for b, (start, stop) in enumerate(pairwise(bounds))]


def _spaced(gaps: list[str], kinds: Sequence[Kind]) -> tuple[str, ...]:
    """The gaps, with a space where two replaced words stood side by side (Chinese characters, emoji)."""
    for i in range(1, len(kinds)):
        if not gaps[i] and Kind.VERBATIM not in (kinds[i - 1], kinds[i]):
            gaps[i] = " "
    return tuple(gaps)


def _equal(texts: Sequence[str], kinds: Sequence[Kind]) -> tuple[tuple[int, ...], ...]:
    """Which placeholders show the same number."""
    places: dict[str, list[int]] = {}
    for i, kind in enumerate(kinds):
        if kind is Kind.PLACEHOLDER and texts[i] != f"<{PLACEHOLDER_TYPE}>":
            places.setdefault(texts[i], []).append(i)
    return tuple(tuple(group) for group in places.values() if len(group) > 1)
