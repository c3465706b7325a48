"""Consistent releases: equal words are released alike, in texts and sessions.

In: the draw, and which words are equal. Out: the draw, made alike for equal words.
Not here: which words are equal (`plan`), what may be consistent at all (`rules`), what is
remembered (`session`).
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from textveil.detect import DATES
from textveil.mechanism import Role, WordRule
from textveil.pipeline.draw import Release
from textveil.pipeline.parts import Parts
from textveil.pipeline.plan import Plan, drawn_as
from textveil.protect import Protection
from textveil.randomness import Flags, Ids
from textveil.session import AGAIN, LASTING, Notes, Session, Snapshot, digest, fold
from textveil.text import Tokens


def alike(
    parts: Parts, tokens: Tokens, protection: Protection, plan: Plan, rows: Ids, notes: Notes | None
) -> Ids:
    """Replaces rows of equal words by the first in text or session.

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: their classes and budgets.
        rows: int64 [N], as they were drawn.
        notes: state of the session; None without one.
    """
    places = np.flatnonzero((plan.classes >= 0) & ~protection.moved)
    equal = rows.copy()
    equal[places] = rows[plan.classes[places]]
    if notes is not None:
        keys = [(tokens.words[i], drawn_as(i, protection, plan.epsilon)) for i in places.tolist()]
        equal[places] = notes.consistent(_law(parts), keys, equal[places].tolist())
    return equal


def drawn_before(
    parts: Parts, tokens: Tokens, protection: Protection, plan: Plan, notes: Notes
) -> Flags:
    """Says for which words an earlier draw is used, bool [N].

    The same word was drawn before in the session or batch. Dates never count: one number of days
    moves them all, but each reveals its distance from the others.

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: their classes and budgets.
        notes: state of the session.

    Returns:
        bool [N]; all False where equal words are not released alike.
    """
    repeated = np.zeros(len(tokens.words), np.bool_)
    places: dict[str, list[tuple[int, tuple[str, str]]]] = {}
    for i in np.flatnonzero(plan.classes >= 0).tolist():
        if not protection.moved[i]:
            places.setdefault(_law(parts), []).append(
                (i, (tokens.words[i], drawn_as(i, protection, plan.epsilon)))
            )
        elif parts.figures is not None and i in plan.figures and protection.kind(i) not in DATES:
            law = parts.figures.law(protection.kind(i), seeded=parts.randomness.seeded)
            places.setdefault(law, []).append((i, (plan.figures[i].key, protection.kind(i))))
    for law, entries in places.items():
        drawn, seen = notes.were_drawn(law, [key for _, key in entries]), set[tuple[str, str]]()
        for (i, (word, group)), was in zip(entries, drawn, strict=True):
            repeated[i] = was or (fold(word), group) in seen
            seen.add((fold(word), group))
    return repeated


def recall(
    parts: Parts, tokens: Tokens, protection: Protection, plan: Plan, notes: Notes, session: Session
) -> None:
    """Loads draws of the batch's words from the subject's sessions (`words.lasting`).

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: their classes and budgets.
        notes: state of the session, which the draws are added to.
        session: session of the subject.

    Raises:
        ConfigError: the session is not in a database.
    """
    places = np.flatnonzero((plan.classes >= 0) & ~protection.moved).tolist()
    keys = {(tokens.words[i], drawn_as(i, protection, plan.epsilon)): None for i in places}
    notes.learn(session.lasting([(_law(parts), fold(word), group) for word, group in keys]))


def moved_alike(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    steps: Ids,
    notes: Notes | None,
) -> Ids:
    """Moves all dates by one step, and equal figures alike.

    The step is that of the first in the text or session.

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: the figures among them.
        steps: int64 [N], as they were drawn.
        notes: state of the session; None without one.
    """
    if parts.figures is None:
        return steps
    equal = steps.copy()
    notes_of = [notes or Notes(Snapshot()) for _ in tokens.texts]
    owner = tokens.owners
    for i, figure in plan.figures.items():
        type_ = protection.kind(i)
        key = ("", DATES[0]) if type_ in DATES else (figure.key, type_)
        law = parts.figures.law(type_, seeded=parts.randomness.seeded)
        equal[i] = notes_of[owner[i]].consistent(law, [key], [int(steps[i])])[0]
    return equal


class Repeats:
    """Replay of earlier draws for the words of the same texts.

    A word is the same if its text is, and it is the same occurrence of it. So equality of texts
    over time is in the mask, and nothing more.

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: their roles, which say which of them are drawn.
        notes: state of the session.
        repeats: see `Session.repeats`.

    Attributes:
        words: bool [N], words for which an earlier draw is used.
    """

    def __init__(
        self,
        parts: Parts,
        tokens: Tokens,
        protection: Protection,
        plan: Plan,
        notes: Notes,
        repeats: str,
    ) -> None:
        self._law, self._notes = AGAIN + _law(parts), notes
        drawn = (
            (plan.roles == Role.PROTECT)
            | protection.named
            | protection.moved
            | (plan.rules != WordRule.HOUSE)
        )
        self._words = np.flatnonzero(drawn)
        self._units = np.flatnonzero(drawn[plan.block.layout.unit_of])
        owner, seen = tokens.owners.tolist(), Counter[tuple[int, str]]()
        digests = [digest(repeats, text) for text in tokens.texts]
        names: dict[int, tuple[str, str]] = {}
        for i, word in enumerate(tokens.words):
            place = owner[i], fold(word)
            seen[place] += 1
            if drawn[i]:
                group = drawn_as(i, protection, plan.epsilon)
                names[i] = f"{digests[owner[i]]} {seen[place]} {place[1]}", group
        unit_of = plan.block.layout.unit_of
        firsts = np.searchsorted(unit_of, np.arange(len(tokens.words)))
        self._keys = [
            (f"{names[i][0]} unit {at - firsts[i]}", names[i][1])
            for at, i in zip(self._units.tolist(), unit_of[self._units].tolist(), strict=True)
        ]
        self._figures = [(f"{name} step", group) for name, group in names.values()]
        self.words = np.zeros(len(tokens.words), np.bool_)
        self.words[self._words] = notes.were_drawn(self._law, self._figures)
        drawn_units = np.array(notes.were_drawn(self._law, self._keys), np.bool_)
        self.words[unit_of[self._units[~drawn_units]]] = False

    def applied(self, release: Release) -> Release:
        """Replaces the draw by earlier draws where these are known."""
        rows, steps = release.rows.copy(), release.steps.copy()
        rows[self._units] = self._notes.recalled(self._law, self._keys, rows[self._units].tolist())
        steps[self._words] = self._notes.recalled(
            self._law, self._figures, steps[self._words].tolist()
        )
        return replace(release, rows=rows, steps=steps)

    def keep(self, rows: Ids, steps: Ids) -> None:
        """Stores what is released, for the next time.

        Draws that were replaced by that of an equal word are not stored.
        """
        self._notes.consistent(self._law, self._keys, rows[self._units].tolist())
        self._notes.consistent(self._law, self._figures, steps[self._words].tolist())


def _law(parts: Parts) -> str:
    """Describes what a draw depends on except word, group and budget."""
    claim, table = parts.claim, parts.table
    drawn = "seeded" if parts.randomness.seeded else "drawn"
    drawn = LASTING + drawn if parts.words.lasting else drawn
    return f"{drawn} {claim.mechanism} {sorted(claim.options.items())} {claim.table} {table.metric} {table.digest}"
