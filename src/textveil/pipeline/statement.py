"""Statement of a text: each word's spending, by group, with reasons.

In: the parts of a privatizer, one batch's plan and release. Out: a `Guarantee` per text.
Not here: what a mechanism promises (`mechanism`), and how a statement reads (`guarantee`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from textveil.detect import AGE, DATES
from textveil.guarantee import Claim, Group, Guarantee, Loss
from textveil.mechanism import Role, WordRule, oov
from textveil.pipeline.coarse import RETURNED
from textveil.pipeline.draw import Release, labels_cost
from textveil.pipeline.parts import Parts
from textveil.pipeline.plan import Plan
from textveil.pipeline.release import type_of
from textveil.protect import GROUPS, PUBLIC, Protection
from textveil.randomness import Flags, Values
from textveil.session import Notes
from textveil.text import UNKNOWN_SHARE, Kind, Released


def state(
    parts: Parts,
    released: Released,
    span: slice,
    protection: Protection,
    plan: Plan,
    release: Release,
    again: Flags,
    per_person: tuple[Loss, ...],
) -> Guarantee:
    """Returns the statement about one text.

    Args:
        parts: parts of the privatizer.
        released: the text.
        span: its words among those of the batch.
        protection: protection of the batch.
        plan: plan of the batch.
        release: draw of the batch.
        again: bool [N], words that are released as they were drawn before.
        per_person: losses of the session up to now; see `note_losses`.
    """
    covered = ~protection.public[span]
    once = covered & plan.once[span]
    unknown = plan.unknown[span][covered]
    drawn = slice(*np.searchsorted(plan.block.layout.words, (span.start, span.stop)).tolist())
    replaced = (protection.named | protection.moved)[span]
    claim, spent = _claim(parts, released, span, plan, release, drawn), release.spent[span]
    groups: tuple[Group, ...] = ()
    if parts.grouping is not None:
        claim, spent, groups = _claim_groups(parts, protection, plan, span, claim, spent)
    once_drawn = once & _find_drawn(parts, protection, plan, span)
    return Guarantee(
        claim=claim,
        epsilon_per_word=spent[once],
        parameter=release.parameter[drawn],
        unit=parts.words.unit,
        words=released.mask.words,
        punctuation=sum(
            item.group == PUBLIC and not any(map(str.isalnum, item.text)) for item in released.items
        ),
        # a name or figure that became a placeholder was drawn, and spent its epsilon
        placeholders=sum(
            item.kind is Kind.PLACEHOLDER and not replaced[item.start] for item in released.items
        ),
        mask=(*released.mask.fields, UNKNOWN_SHARE),
        passed=sum(item.kind is Kind.VERBATIM and item.group != PUBLIC for item in released.items),
        dropped=len(released.mask.dropped),
        drawn=int((once_drawn & ~again[span]).sum()),
        seeded=parts.randomness.seeded,
        oov=parts.words.oov,
        infinite=tuple(_reasons(parts, protection, span, plan)),
        oov_share=float(unknown.mean()) if len(unknown) else 0.0,
        within=float(release.within[span][covered].max(initial=0.0)),
        groups=groups,
        consistent=parts.words.consistent,
        repeated=int((covered & ~once).sum()),
        drawn_before=int((once_drawn & again[span]).sum()),
        per_person=per_person,
        lasting=parts.words.lasting,
    )


def _claim(
    parts: Parts, released: Released, span: slice, plan: Plan, release: Release, drawn: slice
) -> Claim:
    """Returns the claim about one text, whose protected units are at `drawn`."""
    claim, consistent = parts.claim, parts.words.consistent
    if parts.table.root.book is not None and released.mask.consistent and not consistent:
        claim = replace(claim, caveats=(*claim.caveats, RETURNED))
    if release.capped[drawn].any():
        claim = replace(claim, most=float(release.most[drawn].max()))
    if oov.draws(parts.words):
        claim = replace(claim, draws=True)
    if parts.words.unit == "wordpiece":  # each piece of a word pays the additional loss
        claim = claim.times(int(plan.counts[span].max(initial=1)))
    return claim


def _claim_groups(
    parts: Parts, protection: Protection, plan: Plan, span: slice, claim: Claim, spent: Values
) -> tuple[Claim, Values, tuple[Group, ...]]:
    """Returns the claim about grouped words, and their spending under it.

    Returns:
        The claim, the epsilon of each word, and the spending of each group in local DP.
    """
    covered, replaced = ~protection.public[span], (protection.named | protection.moved)[span]
    lost = np.where(replaced, spent, claim.ldp(spent))
    if parts.drawn_groups:
        # a neighbouring text's words may be in other groups, with other budgets and bounds
        cost = labels_cost(parts, replace(claim, most=math.inf), int(covered.sum()))
        lost = np.full(len(spent), cost)
    groups = tuple(_groups(parts, protection, plan, span, lost))
    if parts.names is not None or parts.figures is not None or parts.drawn_groups:
        claim, spent = replace(claim.induced(), restricted=None, codes=()), lost
    if (covered if parts.drawn_groups else replaced).any():  # labels, or names and figures
        claim = replace(claim, draws=True)
    return claim, spent, groups


def _find_drawn(parts: Parts, protection: Protection, plan: Plan, span: slice) -> Flags:
    """Says which words of a text are drawn, bool [N]; no placeholders."""
    by_mechanism = (plan.roles[span] == Role.PROTECT) & parts.claim.draws
    replaced = _find_ruled(plan, span) | protection.named[span] | protection.moved[span]
    labels = ~protection.public[span] & parts.drawn_groups
    drawn: Flags = by_mechanism | replaced | labels
    return drawn


def _find_ruled(plan: Plan, span: slice) -> Flags:
    """Says which words a paper's rule draws, bool [N]."""
    rules = plan.rules[span]
    ruled: Flags = (rules == WordRule.UNIFORM) | (rules == WordRule.ADD)
    return ruled


def note_losses(
    parts: Parts,
    span: slice,
    protection: Protection,
    plan: Plan,
    release: Release,
    again: Flags,
    notes: Notes,
    *,
    alike: bool,
) -> tuple[Loss, ...]:
    """Notes what one text's drawn words lose, by type, in a session.

    Args:
        parts: parts of the privatizer.
        span: the words of the text among those of the batch.
        protection: protection of the batch.
        plan: plan of the batch.
        release: draw of the batch.
        again: bool [N], words that this session has released before, as they were drawn; they lose
            nothing more.
        notes: notes of the session.
        alike: True if this release and earlier ones of the session show which words are equal.

    Returns:
        The session's losses up to now; empty where the text draws nothing.
    """
    words = plan.block.layout.words
    units = slice(*np.searchsorted(words, (span.start, span.stop)).tolist())
    lost = np.bincount(
        words[units] - span.start, release.most[units], minlength=span.stop - span.start
    ).astype(np.float64)
    lost[_find_ruled(plan, span)] = math.inf
    besides = protection.named[span] | protection.moved[span]
    lost[besides] = release.spent[span][besides]
    if parts.drawn_groups:
        covered = ~protection.public[span]
        lost[covered] = labels_cost(parts, parts.claim, int(covered.sum()))
    losses: dict[tuple[str, str], tuple[list[float], int]] = {}
    for at in np.flatnonzero((lost > 0) & plan.once[span]).tolist():
        i = span.start + at
        of = (
            protection.kind(i),
            "name" if protection.named[i] else "figure" if protection.moved[i] else "word",
        )
        spent, released = losses.get(of, ([], 0))
        spent += [] if again[i] else [float(lost[at])]
        losses[of] = spent, released + 1
    for (label, by), (spent, released) in losses.items():
        notes.lost(label, by, spent, released, alike=alike)
    return notes.losses() if losses else ()


def _reasons(parts: Parts, protection: Protection, span: slice, plan: Plan) -> Iterator[str]:
    """Yields reasons why a text has no finite bound.

    The claim's reason is not among them.
    """
    yield from oov.reasons(parts.words)
    passes = (plan.roles[span] == Role.PASS) & ~protection.public[span]
    if (passes & ~(plan.unknown[span] & (parts.words.oov == "keep"))).any():
        yield _passing_reason(parts, [protection.labels[i] for i in protection.group[span][passes]])
    yield from _unbounded_reasons(protection, span)


def _passing_reason(parts: Parts, groups: Sequence[str]) -> str:
    if parts.grouping is None:
        return "an infinite budget lets words pass"
    which = sorted({*groups})
    return f"words of {'the group' if len(which) == 1 else 'the groups'} {', '.join(which)} pass as they are"


def _unbounded_reasons(protection: Protection, span: slice) -> Iterator[str]:
    """Yields reasons why moved figures have no finite bound."""
    types = {
        protection.kind(span.start + i) for i in np.flatnonzero(protection.moved[span]).tolist()
    }
    if not types.isdisjoint(DATES):
        yield "the days between dates show"
    if types - {AGE, *DATES}:
        yield "amounts have no largest distance"


def _groups(
    parts: Parts, protection: Protection, plan: Plan, span: slice, lost: Values
) -> Iterator[Group]:
    """Yields each group's spending in local DP.

    Placeholders, names and figures count by their type.
    """
    roles, named, moved = plan.roles[span], protection.named[span], protection.moved[span]
    by = np.where(
        named | moved,
        np.where(named, "name", "figure"),
        np.where(
            roles == Role.HOLE,
            "placeholder",
            np.where(roles == Role.PASS, "nothing", parts.claim.mechanism),
        ),
    ).tolist()
    places: dict[tuple[str, str], list[int]] = {}
    for i in np.flatnonzero(~protection.public[span]).tolist():
        word = span.start + i
        typed = by[i] == "placeholder" and not parts.drawn_groups
        places.setdefault(
            (type_of(protection, word) if typed else protection.kind(word), by[i]), []
        ).append(i)
    order = {label: i for i, label in enumerate(GROUPS)}
    for (label, what), where in sorted(
        places.items(), key=lambda item: (order.get(item[0][0], len(order)), item[0])
    ):
        values = lost[where]
        group = Group(
            label=label,
            words=len(where),
            by=what,
            epsilon=float(values.max()),
            total=float(values.sum()),
        )
        if what == "figure" and parts.figures is not None:
            group = replace(
                group, per_unit=parts.figures.per_unit(label), unit=parts.figures.unit(label)
            )
        yield group
