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
from textveil.pipeline.codebook_statement import REPEATED_TEXT_NOTE
from textveil.pipeline.components import Parts
from textveil.pipeline.draw import DrawResult, compute_label_cost
from textveil.pipeline.plan import Plan
from textveil.pipeline.release import get_placeholder_type
from textveil.protect import GROUPS, PUBLIC, Protection
from textveil.randomness import Flags, Values
from textveil.session import Changes
from textveil.text import UNKNOWN_SHARE, Kind, Released


def build_guarantee(
    parts: Parts,
    released: Released,
    span: slice,
    protection: Protection,
    plan: Plan,
    release: DrawResult,
    replayed: Flags,
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
        replayed: bool [N], words that are released as they were drawn before.
        per_person: losses of the session up to now; see `note_losses`.
    """
    covered = ~protection.public[span]
    is_first = covered & plan.is_first[span]
    unknown = plan.unknown[span][covered]
    units = slice(*np.searchsorted(plan.block.layout.words, (span.start, span.stop)).tolist())
    replaced = (protection.named | protection.moved)[span]
    claim, spent = _build_claim(parts, released, span, plan, release, units), release.spent[span]
    groups: tuple[Group, ...] = ()
    if parts.grouping is not None:
        claim, spent, groups = _build_group_claim(parts, protection, plan, span, claim, spent)
    first_draws = is_first & _find_drawn(parts, protection, plan, span)
    return Guarantee(
        claim=claim,
        epsilon_per_word=spent[is_first],
        parameter=release.parameter[units],
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
        drawn=int((first_draws & ~replayed[span]).sum()),
        seeded=parts.randomness.is_seeded,
        oov=parts.words.oov,
        infinite=tuple(_yield_reasons(parts, protection, span, plan)),
        oov_share=float(unknown.mean()) if len(unknown) else 0.0,
        within=float(release.restricted_epsilon[span][covered].max(initial=0.0)),
        groups=groups,
        consistent=parts.words.consistent,
        repeated=int((covered & ~is_first).sum()),
        drawn_before=int((first_draws & replayed[span]).sum()),
        per_person=per_person,
        lasting=parts.words.lasting,
    )


def _build_claim(
    parts: Parts, released: Released, span: slice, plan: Plan, release: DrawResult, units: slice
) -> Claim:
    """Returns the claim about one text, whose protected units are at `units`."""
    claim, consistent = parts.claim, parts.words.consistent
    if parts.table.root.book is not None and released.mask.consistent and not consistent:
        claim = replace(claim, caveats=(*claim.caveats, REPEATED_TEXT_NOTE))
    if release.capped[units].any():
        claim = replace(claim, most=float(release.local_dp_cap[units].max()))
    if oov.has_random_rule(parts.words):
        claim = replace(claim, draws=True)
    if parts.words.unit == "wordpiece":  # each piece of a word pays the additional loss
        claim = claim.scale_pieces(int(plan.counts[span].max(initial=1)))
    return claim


def _build_group_claim(
    parts: Parts, protection: Protection, plan: Plan, span: slice, claim: Claim, spent: Values
) -> tuple[Claim, Values, tuple[Group, ...]]:
    """Returns the claim about grouped words, and their spending under it.

    Returns:
        The claim, the epsilon of each word, and the spending of each group in local DP.
    """
    covered, replaced = ~protection.public[span], (protection.named | protection.moved)[span]
    losses = np.where(replaced, spent, claim.compute_ldp(spent))
    if parts.drawn_groups:
        # a neighbouring text's words may be in other groups, with other budgets and bounds
        cost = compute_label_cost(parts, replace(claim, most=math.inf), int(covered.sum()))
        losses = np.full(len(spent), cost)
    groups = tuple(_yield_groups(parts, protection, plan, span, losses))
    if parts.names is not None or parts.figures is not None or parts.drawn_groups:
        claim, spent = replace(claim.convert_to_ldp(), restricted=None, codes=()), losses
    if (covered if parts.drawn_groups else replaced).any():  # labels, or names and figures
        claim = replace(claim, draws=True)
    return claim, spent, groups


def _find_drawn(parts: Parts, protection: Protection, plan: Plan, span: slice) -> Flags:
    """Says which words of a text are drawn, bool [N]; no placeholders."""
    by_mechanism = (plan.roles[span] == Role.PROTECT) & parts.claim.draws
    replaced = _find_ruled(plan, span) | protection.named[span] | protection.moved[span]
    labels = ~protection.public[span] & parts.drawn_groups
    is_drawn: Flags = by_mechanism | replaced | labels
    return is_drawn


def _find_ruled(plan: Plan, span: slice) -> Flags:
    """Says which words a paper's rule draws, bool [N]."""
    rules = plan.rules[span]
    is_ruled: Flags = (rules == WordRule.UNIFORM) | (rules == WordRule.ADD)
    return is_ruled


def note_losses(
    parts: Parts,
    span: slice,
    protection: Protection,
    plan: Plan,
    release: DrawResult,
    replayed: Flags,
    notes: Changes,
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
        replayed: bool [N], words that this session has released before, as they were drawn; they
            lose nothing more.
        notes: notes of the session.
        alike: True if this release and earlier ones of the session show which words are equal.

    Returns:
        The session's losses up to now; empty where the text draws nothing.
    """
    words = plan.block.layout.words
    units = slice(*np.searchsorted(words, (span.start, span.stop)).tolist())
    word_losses = np.bincount(
        words[units] - span.start, release.local_dp_cap[units], minlength=span.stop - span.start
    ).astype(np.float64)
    word_losses[_find_ruled(plan, span)] = math.inf
    is_replaced = protection.named[span] | protection.moved[span]
    word_losses[is_replaced] = release.spent[span][is_replaced]
    if parts.drawn_groups:
        covered = ~protection.public[span]
        word_losses[covered] = compute_label_cost(parts, parts.claim, int(covered.sum()))
    losses: dict[tuple[str, str], tuple[list[float], int]] = {}
    for at in np.flatnonzero((word_losses > 0) & plan.is_first[span]).tolist():
        i = span.start + at
        key = (
            protection.get_group(i),
            "name" if protection.named[i] else "figure" if protection.moved[i] else "word",
        )
        spent, released = losses.get(key, ([], 0))
        spent += [] if replayed[i] else [float(word_losses[at])]
        losses[key] = spent, released + 1
    for (label, by), (spent, released) in losses.items():
        notes.add_losses(label, by, spent, released, alike=alike)
    return notes.list_losses() if losses else ()


def _yield_reasons(parts: Parts, protection: Protection, span: slice, plan: Plan) -> Iterator[str]:
    """Yields reasons why a text has no finite bound.

    The claim's reason is not among them.
    """
    yield from oov.list_reasons(parts.words)
    passes = (plan.roles[span] == Role.PASS) & ~protection.public[span]
    if (passes & ~(plan.unknown[span] & (parts.words.oov == "keep"))).any():
        yield _describe_passing(
            parts, [protection.labels[i] for i in protection.group[span][passes]]
        )
    yield from _yield_unbounded_reasons(protection, span)


def _describe_passing(parts: Parts, groups: Sequence[str]) -> str:
    if parts.grouping is None:
        return "an infinite budget lets words pass"
    labels = sorted({*groups})
    return (
        f"words of {'the group' if len(labels) == 1 else 'the groups'} {', '.join(labels)} "
        "pass unprotected"
    )


def _yield_unbounded_reasons(protection: Protection, span: slice) -> Iterator[str]:
    """Yields reasons why moved figures have no finite bound."""
    types = {
        protection.get_group(span.start + i)
        for i in np.flatnonzero(protection.moved[span]).tolist()
    }
    if not types.isdisjoint(DATES):
        yield "the days between dates are kept"
    if types - {AGE, *DATES}:
        yield "amounts have no largest distance"


def _yield_groups(
    parts: Parts, protection: Protection, plan: Plan, span: slice, losses: Values
) -> Iterator[Group]:
    """Yields each group's spending in local DP.

    Placeholders, names and figures count by their type.
    """
    roles, named, moved = plan.roles[span], protection.named[span], protection.moved[span]
    replacements = np.where(
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
        has_type = replacements[i] == "placeholder" and not parts.drawn_groups
        places.setdefault(
            (
                get_placeholder_type(protection, word) if has_type else protection.get_group(word),
                replacements[i],
            ),
            [],
        ).append(i)
    order = {label: i for i, label in enumerate(GROUPS)}
    for (label, replacement), word_places in sorted(
        places.items(), key=lambda item: (order.get(item[0][0], len(order)), item[0])
    ):
        values = losses[word_places]
        group = Group(
            label=label,
            words=len(word_places),
            by=replacement,
            epsilon=float(values.max()),
            total=float(values.sum()),
        )
        if replacement == "figure" and parts.figures is not None:
            group = replace(
                group,
                per_unit=parts.figures.get_unit_epsilon(label),
                unit=parts.figures.name_unit(label),
            )
        yield group
