"""Consistent releases: equal words are released alike, in texts and sessions.

In: the draw, and which words are equal. Out: the draw, made alike for equal words.
Not here: which words are equal (`plan`), what may be consistent at all (`option_rules`), what is
remembered (`session`).
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from textveil.detect import DATES
from textveil.mechanism import Role, WordRule
from textveil.pipeline.components import Parts
from textveil.pipeline.draw import DrawResult
from textveil.pipeline.plan import Plan, get_draw_key
from textveil.protect import Protection
from textveil.randomness import Flags, Ids
from textveil.session import (
    LASTING_PREFIX,
    REPEAT_PREFIX,
    Changes,
    Session,
    Snapshot,
    fold,
    hash_text,
)
from textveil.text import Tokens


def replace_equal_rows(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    rows: Ids,
    notes: Changes | None,
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
        keys = [
            (tokens.words[i], get_draw_key(i, protection, plan.epsilon)) for i in places.tolist()
        ]
        equal[places] = notes.reuse_rows(_describe_law(parts), keys, equal[places].tolist())
    return equal


def find_drawn_before(
    parts: Parts, tokens: Tokens, protection: Protection, plan: Plan, notes: Changes
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
            places.setdefault(_describe_law(parts), []).append(
                (i, (tokens.words[i], get_draw_key(i, protection, plan.epsilon)))
            )
        elif (
            parts.figures is not None and i in plan.figures and protection.get_group(i) not in DATES
        ):
            law = parts.figures.describe_law(
                protection.get_group(i), seeded=parts.randomness.is_seeded
            )
            places.setdefault(law, []).append((i, (plan.figures[i].key, protection.get_group(i))))
    for law, entries in places.items():
        draw_flags, keys_in_batch = (
            notes.has_rows(law, [key for _, key in entries]),
            set[tuple[str, str]](),
        )
        for (i, (word, group)), is_drawn in zip(entries, draw_flags, strict=True):
            repeated[i] = is_drawn or (fold(word), group) in keys_in_batch
            keys_in_batch.add((fold(word), group))
    return repeated


def load_lasting_draws(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    notes: Changes,
    session: Session,
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
    keys = {(tokens.words[i], get_draw_key(i, protection, plan.epsilon)): None for i in places}
    notes.learn(
        session.lasting([(_describe_law(parts), fold(word), group) for word, group in keys])
    )


def replace_equal_steps(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    plan: Plan,
    steps: Ids,
    notes: Changes | None,
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
    # Without a session, figures are equal within one text only.
    notes_by_text = [notes or Changes(Snapshot()) for _ in tokens.texts]
    owner = tokens.owners
    for i, figure in plan.figures.items():
        type_ = protection.get_group(i)
        key = ("", DATES[0]) if type_ in DATES else (figure.key, type_)
        law = parts.figures.describe_law(type_, seeded=parts.randomness.is_seeded)
        equal[i] = notes_by_text[owner[i]].reuse_rows(law, [key], [int(steps[i])])[0]
    return equal


class Replay:
    """Replay of earlier draws for the words of the same texts.

    A word is the same if its text is, and it is the same occurrence of it. So equality of texts
    over time is in the mask, and nothing more.

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        protection: their groups.
        plan: their roles, which say which of them are drawn.
        notes: state of the session.
        replay_key: see `Session.repeats`.

    Attributes:
        replayed: bool [N], words for which an earlier draw is used.
    """

    def __init__(
        self,
        parts: Parts,
        tokens: Tokens,
        protection: Protection,
        plan: Plan,
        notes: Changes,
        replay_key: str,
    ) -> None:
        self._law, self._notes = REPEAT_PREFIX + _describe_law(parts), notes
        draw_flags = (
            (plan.roles == Role.PROTECT)
            | protection.named
            | protection.moved
            | (plan.rules != WordRule.HOUSE)
        )
        self._words = np.flatnonzero(draw_flags)
        self._units = np.flatnonzero(draw_flags[plan.block.layout.unit_of])
        owner, occurrences = tokens.owners.tolist(), Counter[tuple[int, str]]()
        digests = [hash_text(replay_key, text) for text in tokens.texts]
        names: dict[int, tuple[str, str]] = {}
        for i, word in enumerate(tokens.words):
            place = owner[i], fold(word)
            occurrences[place] += 1
            if draw_flags[i]:
                group = get_draw_key(i, protection, plan.epsilon)
                names[i] = f"{digests[owner[i]]} {occurrences[place]} {place[1]}", group
        unit_of = plan.block.layout.unit_of
        firsts = np.searchsorted(unit_of, np.arange(len(tokens.words)))
        self._keys = [
            (f"{names[i][0]} unit {at - firsts[i]}", names[i][1])
            for at, i in zip(self._units.tolist(), unit_of[self._units].tolist(), strict=True)
        ]
        self._figures = [(f"{name} step", group) for name, group in names.values()]
        self.replayed = np.zeros(len(tokens.words), np.bool_)
        self.replayed[self._words] = notes.has_rows(self._law, self._figures)
        drawn_units = np.array(notes.has_rows(self._law, self._keys), np.bool_)
        # A word is a repetition only if all of its pieces were drawn before.
        self.replayed[unit_of[self._units[~drawn_units]]] = False

    def apply(self, release: DrawResult) -> DrawResult:
        """Replaces the draw by earlier draws where these are known."""
        rows, steps = release.rows.copy(), release.steps.copy()
        rows[self._units] = self._notes.lookup_rows(
            self._law, self._keys, rows[self._units].tolist()
        )
        steps[self._words] = self._notes.lookup_rows(
            self._law, self._figures, steps[self._words].tolist()
        )
        return replace(release, rows=rows, steps=steps)

    def keep(self, rows: Ids, steps: Ids) -> None:
        """Stores what is released, for the next time.

        Draws that were replaced by that of an equal word are not stored.
        """
        self._notes.reuse_rows(self._law, self._keys, rows[self._units].tolist())
        self._notes.reuse_rows(self._law, self._figures, steps[self._words].tolist())


def _describe_law(parts: Parts) -> str:
    """Describes what a draw depends on except word, group and budget."""
    claim, table = parts.claim, parts.table
    # A statement without a seed must never cover a draw that came from one.
    kind = "seeded" if parts.randomness.is_seeded else "drawn"
    kind = LASTING_PREFIX + kind if parts.words.lasting else kind
    return (
        f"{kind} {claim.mechanism} {sorted(claim.options.items())} {claim.table} {table.metric} "
        f"{table.digest}"
    )
