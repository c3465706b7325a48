"""Equal words are released alike, in a text and over a session.

In: what was drawn, and which words are equal. Out: the same, alike for equal words.
Not here: which words are equal (`plan`), what may be consistent at all (`rules`), what is remembered (`session`).
"""

import numpy as np

from textveil.pipeline.parts import Parts
from textveil.pipeline.plan import Plan, drawn_as
from textveil.protect import DATES, Protection
from textveil.randomness import Ids
from textveil.session import Notes, Snapshot
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


def _law(parts: Parts) -> str:
    """What a drawn row depends on besides the word, its group and its budget."""
    claim, table = parts.claim, parts.table
    drawn = "seeded" if parts.randomness.seeded else "drawn"
    return f"{drawn} {claim.mechanism} {sorted(claim.options.items())} {claim.table} {table.metric} {table.digest}"
