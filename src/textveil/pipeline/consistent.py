"""Equal words are released alike, in a text and over a session.

In: what was drawn, and which words are equal. Out: the same, alike for equal words.
Not here: which words are equal (`plan`), what may be consistent at all (`rules`), what is remembered (`session`).
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from textveil.mechanism import Role, WordRule
from textveil.pipeline.draw import Release
from textveil.pipeline.parts import Parts
from textveil.pipeline.plan import Plan, drawn_as
from textveil.protect import DATES, Protection
from textveil.randomness import Ids
from textveil.session import AGAIN, Notes, Snapshot, digest, fold
from textveil.text import Tokens


def alike(parts: Parts, tokens: Tokens, protection: Protection, plan: Plan, rows: Ids, notes: Notes | None) -> Ids:
    """The rows with those of equal words made equal: to the first in the text, or in the session.

    Args:
        parts: of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: their classes and budgets.
        rows: int64 [N], as they were drawn.
        notes: what the session knows; None without one.
    """
    places = np.flatnonzero((plan.classes >= 0) & ~protection.moved)
    made = rows.copy()
    made[places] = rows[plan.classes[places]]
    if notes is not None:
        keys = [(tokens.words[i], drawn_as(i, protection, plan.epsilon)) for i in places.tolist()]
        made[places] = notes.consistent(_law(parts), keys, made[places].tolist())
    return made


def moved_alike(
    parts: Parts, tokens: Tokens, protection: Protection, plan: Plan, steps: Ids, notes: Notes | None
) -> Ids:
    """What is added to words, with all dates moved alike and equal figures too: as the first in the text or session.

    Args:
        parts: of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: the figures among them.
        steps: int64 [N], as they were drawn.
        notes: what the session knows; None without one.
    """
    if parts.figures is None:
        return steps
    made = steps.copy()
    known = [notes or Notes(Snapshot()) for _ in tokens.texts]
    owner = np.repeat(np.arange(len(tokens.texts)), tokens.sizes)
    for i, figure in plan.figures.items():
        type_ = protection.kind(i)
        key = ("", DATES[0]) if type_ in DATES else (figure.key, type_)
        law = parts.figures.law(type_, seeded=parts.randomness.seeded)
        made[i] = known[owner[i]].consistent(law, [key], [int(steps[i])])[0]
    return made


class Repeats:
    """What was drawn for the words of the same texts before: they are released so again, whatever is drawn now.

    A word is the same if its text is, and it is the same occurrence of it. So equality of texts over time is in the
    mask, and nothing more.

    Args:
        parts: of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: which of them are drawn.
        notes: what the session knows.
        repeats: see `Session.repeats`.

    Attributes:
        words: bool [N], words for which nothing is drawn anew.
    """

    def __init__(
        self, parts: Parts, tokens: Tokens, protection: Protection, plan: Plan, notes: Notes, repeats: str
    ) -> None:
        self._law, self._notes = AGAIN + _law(parts), notes
        drawn = (plan.roles == Role.PROTECT) | protection.named | protection.moved | (plan.rules != WordRule.HOUSE)
        self._words = np.flatnonzero(drawn)
        self._units = np.flatnonzero(drawn[plan.block.layout.unit_of])
        owner, seen = np.repeat(np.arange(len(tokens.texts)), tokens.sizes).tolist(), Counter[tuple[int, str]]()
        digests, names = [digest(repeats, text) for text in tokens.texts], dict[int, tuple[str, str]]()
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
        known = np.array(notes.were_drawn(self._law, self._keys), np.bool_)
        self.words[unit_of[self._units[~known]]] = False

    def applied(self, release: Release) -> Release:
        """A draw with what was drawn before in the place of what is known; the rest is noted."""
        rows, steps = release.rows.copy(), release.steps.copy()
        rows[self._units] = self._notes.consistent(self._law, self._keys, rows[self._units].tolist())
        steps[self._words] = self._notes.consistent(self._law, self._figures, steps[self._words].tolist())
        return replace(release, rows=rows, steps=steps)


def _law(parts: Parts) -> str:
    """What a drawn row depends on besides the word, its group and its budget."""
    claim, table = parts.claim, parts.table
    drawn = "seeded" if parts.randomness.seeded else "drawn"
    return f"{drawn} {claim.mechanism} {sorted(claim.options.items())} {claim.table} {table.metric} {table.digest}"
