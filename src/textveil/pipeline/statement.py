"""Statement of a text: each word's spending, by group, with reasons.

In: the parts of a privatizer, one batch's plan and release. Out: a `Guarantee` per text.
Not here: what a mechanism promises (`mechanism`), and how a statement reads (`guarantee`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from textveil.detect import AGE, DATES
from textveil.guarantee import Claim, Group, Guarantee, Loss
from textveil.mechanism import Role, WordRule, oov
from textveil.pipeline.codebook_statement import REPEATED_TEXT_NOTE
from textveil.pipeline.components import Parts
from textveil.pipeline.draw import DrawResult, compute_label_cost, sum_pieces
from textveil.pipeline.plan import Plan
from textveil.pipeline.release import get_placeholder_type
from textveil.protect import GROUPS, PUBLIC, Protection
from textveil.randomness import Flags, Values
from textveil.session import Changes
from textveil.text import UNKNOWN_SHARE, Released


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchFacts:
    """Facts about the N words of a batch that the statements about its texts need, gathered once.

    Attributes:
        parts: parts of the privatizer.
        protection: protection of the batch.
        plan: plan of the batch.
        release: draw of the batch.
        replayed: bool [N], words that are released as they were drawn before.
    """

    parts: Parts
    protection: Protection
    plan: Plan
    release: DrawResult
    replayed: Flags

    @cached_property
    def covered(self) -> Flags:
        """Words that are not public, bool [N]."""
        return ~self.protection.public

    @cached_property
    def replaced(self) -> Flags:
        """Words replaced by a name or figure, bool [N]."""
        return self.protection.named | self.protection.moved

    @cached_property
    def is_first(self) -> Flags:
        """Covered words that do not repeat an equal word, bool [N]."""
        return self.covered & self.plan.is_first

    def count(self, name: str, span: slice) -> int:
        """Counts the words of a text with a property of `_sums`."""
        sums = self._sums[name]
        words: int = sums[span.stop] - sums[span.start]
        return words

    @cached_property
    def _sums(self) -> Mapping[str, list[int]]:
        """The number of words with each property before each word, [N+1]."""
        drawn = self.is_first & _find_drawn(self.parts, self.protection, self.plan)
        passes = (self.plan.roles == Role.PASS) & self.covered
        flags = {
            "covered": self.covered,
            "unknown": self.covered & self.plan.unknown,
            "repeated": self.covered & ~self.is_first,
            "drawn": drawn & ~self.replayed,
            "drawn_before": drawn & self.replayed,
            "passing": passes & ~(self.plan.unknown & (self.parts.words.oov == "keep")),
            "moved": self.protection.moved,
            "replaced": self.replaced,
        }
        return {name: [0, *np.cumsum(flag).tolist()] for name, flag in flags.items()}

    @cached_property
    def units(self) -> list[int]:
        """The first unit of each word, and the number of units, [N+1]."""
        words = self.plan.block.layout.words
        units: list[int] = np.searchsorted(words, np.arange(len(self.covered) + 1)).tolist()
        return units

    @cached_property
    def groups(self) -> list[tuple[str, str]]:
        """The group or type of each covered word in order, and what replaces it."""
        roles, protection = self.plan.roles, self.protection
        by = np.select(
            [protection.named, protection.moved, roles == Role.HOLE, roles == Role.PASS],
            range(4),
            4,
        ).tolist()
        names = "name", "figure", "placeholder", "nothing", self.parts.claim.mechanism
        return [
            (
                get_placeholder_type(protection, i)
                if by[i] == 2 and not self.parts.drawn_groups
                else protection.get_group(i),
                names[by[i]],
            )
            for i in np.flatnonzero(self.covered).tolist()
        ]


def build_guarantee(
    facts: BatchFacts, released: Released, span: slice, per_person: tuple[Loss, ...]
) -> Guarantee:
    """Returns the statement about one text.

    Args:
        facts: facts about the batch.
        released: the text.
        span: its words among those of the batch.
        per_person: losses of the session up to now; see `note_losses`.
    """
    parts, release = facts.parts, facts.release
    covered, is_first = facts.covered[span], facts.is_first[span]
    units = slice(facts.units[span.start], facts.units[span.stop])
    claim = _build_claim(parts, released, span, facts.plan, release, units)
    spent = release.spent[span]
    groups: tuple[Group, ...] = ()
    if parts.grouping is not None:
        claim, spent, groups = _build_group_claim(facts, span, claim, spent)
    items, mask = released.items, released.mask
    count = facts.count("covered", span)
    return Guarantee(
        claim=claim,
        epsilon_per_word=spent[is_first],
        parameter=release.parameter[units],
        unit="word" if parts.pieces is None else "wordpiece",
        words=mask.words,
        punctuation=sum(
            item.group == PUBLIC and not any(map(str.isalnum, item.text)) for item in items
        ),
        # a name or figure that became a placeholder was drawn, and spent its epsilon
        placeholders=sum(
            not facts.replaced[span.start + items[i].start] for i, _ in mask.placeholders
        ),
        mask=(*mask.fields, UNKNOWN_SHARE),
        passed=sum(items[i].group != PUBLIC for i in mask.verbatim),
        dropped=len(mask.dropped),
        drawn=facts.count("drawn", span),
        seeded=parts.randomness.is_seeded,
        oov=parts.words.oov,
        infinite=tuple(_yield_reasons(facts, span)),
        oov_share=facts.count("unknown", span) / count if count else 0.0,
        within=float(release.restricted_epsilon[span][covered].max(initial=0.0)),
        groups=groups,
        consistent=parts.words.consistent,
        repeated=facts.count("repeated", span),
        drawn_before=facts.count("drawn_before", span),
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
    facts: BatchFacts, span: slice, claim: Claim, spent: Values
) -> tuple[Claim, Values, tuple[Group, ...]]:
    """Returns the claim about grouped words, and their spending under it.

    Returns:
        The claim, the epsilon of each word, and the spending of each group in local DP.
    """
    parts, covered = facts.parts, facts.count("covered", span)
    losses = np.where(facts.replaced[span], spent, claim.compute_ldp(spent))
    if parts.drawn_groups:
        # a neighbouring text's words may be in other groups, with other budgets and bounds
        cost = compute_label_cost(parts, replace(claim, most=math.inf), covered)
        losses = np.full(len(spent), cost)
    groups = tuple(_yield_groups(facts, span, losses))
    if parts.names is not None or parts.figures is not None or parts.drawn_groups:
        claim, spent = replace(claim.convert_to_ldp(), restricted=None, codes=()), losses
    if (
        covered if parts.drawn_groups else facts.count("replaced", span)
    ):  # labels, or names and figures
        claim = replace(claim, draws=True)
    return claim, spent, groups


def _find_drawn(parts: Parts, protection: Protection, plan: Plan) -> Flags:
    """Says which words of a batch are drawn, bool [N]; no placeholders."""
    by_mechanism = (plan.roles == Role.PROTECT) & parts.claim.draws
    replaced = _find_ruled(plan, slice(None)) | protection.named | protection.moved
    labels = ~protection.public & parts.drawn_groups
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
    word_losses = sum_pieces(
        parts.mechanism,
        words[units] - span.start,
        release.local_dp_cap[units],
        span.stop - span.start,
    )
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


def _yield_reasons(facts: BatchFacts, span: slice) -> Iterator[str]:
    """Yields reasons why a text has no finite bound.

    The claim's reason is not among them.
    """
    protection = facts.protection
    yield from oov.list_reasons(facts.parts.words)
    if facts.count("passing", span):
        passes = (facts.plan.roles[span] == Role.PASS) & facts.covered[span]
        yield _describe_passing(
            facts.parts, [protection.labels[i] for i in protection.group[span][passes]]
        )
    if facts.count("moved", span):
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


def _yield_groups(facts: BatchFacts, span: slice, losses: Values) -> Iterator[Group]:
    """Yields each group's spending in local DP.

    Placeholders, names and figures count by their type.
    """
    figures = facts.parts.figures
    places: dict[tuple[str, str], list[int]] = {}
    covered = np.flatnonzero(facts.covered[span]).tolist()
    first = facts.count("covered", slice(0, span.start))
    for i, key in zip(covered, facts.groups[first : first + len(covered)], strict=True):
        places.setdefault(key, []).append(i)
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
        if replacement == "figure" and figures is not None:
            group = replace(
                group, per_unit=figures.get_unit_epsilon(label), unit=figures.name_unit(label)
            )
        yield group
