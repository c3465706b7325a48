"""From a plan and what was drawn to the statement: what every word of a text spends, by group, and why.

In: the terms of a privatizer, one batch's plan and release. Out: a `Guarantee` per text.
Not here: what a mechanism promises (`mechanism`), and how a statement reads (`guarantee`).
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from textveil.config import GroupOptions, NameOptions, ProtectOptions, WordsOptions
from textveil.errors import ConfigError
from textveil.guarantee import Claim, Group, Guarantee
from textveil.mechanism import Names, Role, WordRule, oov
from textveil.pipeline.release import Plan, Release, type_of
from textveil.protect import GROUPS, PUBLIC, Budget, Grouped, Grouping, Protection
from textveil.randomness import Values
from textveil.text import UNKNOWN_SHARE, Kind, Released


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """What the statements of a privatizer follow from, apart from the text.

    Attributes:
        claim: what its mechanism promises.
        words: how text became words.
        budget: what a word may spend; None where the mechanism's own parameter says it.
        grouping: how words were grouped; None: not at all.
        names: how names were replaced; None: not at all.
        seeded: whether draws can be repeated.
    """

    claim: Claim
    words: WordsOptions
    budget: Budget | None
    grouping: Grouping | None
    names: Names | None
    seeded: bool

    @property
    def _drawn_groups(self) -> bool:
        return self.grouping is not None and self.grouping.randomised

    def state(self, released: Released, span: slice, protection: Protection, plan: Plan, release: Release) -> Guarantee:
        """The statement about one text.

        Args:
            released: the text.
            span: its words among those of the batch.
            protection: of the batch.
            plan: of the batch.
            release: of the batch.
        """
        covered = ~protection.public[span]
        once = covered
        if self.words.consistent:  # equal words are one draw
            classes = plan.classes[span]
            once = covered & ((classes < 0) | (classes == np.arange(span.start, span.stop)))
        unknown = plan.unknown[span][covered]
        reasons = oov.reasons(self.words)
        if ((plan.roles[span][covered] == Role.PASS) & ~(unknown & (self.words.oov == "keep"))).any():
            reasons.append(self._passing_reason(protection, span, plan))
        drawn = slice(*np.searchsorted(plan.block.layout.words, (span.start, span.stop)).tolist())
        claim, places = self.claim, (drawn.stop - drawn.start) * self.claim.draws
        if oov.draws(self.words):
            claim = replace(claim, draws=True)
            places += int(np.isin(plan.rules[span], (WordRule.UNIFORM, WordRule.ADD)).sum())
        if self.words.unit == "wordpiece":  # each piece of a word pays what is lost besides
            claim = claim.times(int(plan.counts[span].max(initial=1)))
        spent = release.spent[span]
        named = protection.named[span]
        groups: tuple[Group, ...] = ()
        if self.grouping is not None:
            lost = np.where(named, spent, claim.ldp(spent))
            if self._drawn_groups:
                lost = np.full(len(spent), self._labels_cost(claim, int(covered.sum())))
            groups = tuple(self._groups(protection, plan, span, lost))
            if self.names is not None or self._drawn_groups:
                claim, spent = replace(claim.induced(), restricted=None), lost
            drawn_besides = covered if self._drawn_groups else named  # labels, or names
            if drawn_besides.any():
                claim, places = replace(claim, draws=True), places + int(drawn_besides.sum())
        return Guarantee(
            claim=claim,
            epsilon_per_word=spent[once],
            parameter=release.parameter[drawn],
            unit=self.words.unit,
            words=released.mask.words,
            punctuation=sum(item.group == PUBLIC and not any(map(str.isalnum, item.text)) for item in released.items),
            # a name that gave way to one was drawn, and spent its epsilon
            placeholders=sum(item.kind is Kind.PLACEHOLDER and not named[item.start] for item in released.items),
            mask=(*released.mask.fields, UNKNOWN_SHARE),
            drawn=places,
            seeded=self.seeded,
            oov=self.words.oov,
            infinite=tuple(reasons),
            oov_share=float(unknown.mean()) if len(unknown) else 0.0,
            within=float(release.within[span][covered].max(initial=0.0)),
            groups=groups,
            consistent=self.words.consistent,
            repeated=int((covered & ~once).sum()),
        )

    def _passing_reason(self, protection: Protection, span: slice, plan: Plan) -> str:
        passes = (plan.roles[span] == Role.PASS) & ~protection.public[span]
        if self.grouping is None:
            return "an infinite budget lets words pass"
        which = sorted({protection.labels[group] for group in protection.group[span][passes].tolist()})
        return f"words of {'the group' if len(which) == 1 else 'the groups'} {', '.join(which)} pass as they are"

    def _groups(self, protection: Protection, plan: Plan, span: slice, lost: Values) -> Iterator[Group]:
        """What each group of a text spends in local DP; what becomes a placeholder or a name counts by its type."""
        roles, named = plan.roles[span], protection.named[span]
        by = np.where(
            named,
            "name",
            np.where(roles == Role.HOLE, "placeholder", np.where(roles == Role.PASS, "nothing", self.claim.mechanism)),
        ).tolist()
        places: dict[tuple[str, str], list[int]] = {}
        for i in np.flatnonzero(~protection.public[span]).tolist():
            word = span.start + i
            typed = by[i] == "placeholder" and not self._drawn_groups
            places.setdefault((type_of(protection, word) if typed else protection.kind(word), by[i]), []).append(i)
        order = {label: i for i, label in enumerate(GROUPS)}
        for (label, what), where in sorted(
            places.items(), key=lambda item: (order.get(item[0][0], len(order)), item[0])
        ):
            values = lost[where]
            yield Group(label=label, words=len(where), by=what, epsilon=float(values.max()), total=float(values.sum()))

    def _labels_cost(self, claim: Claim, words: int) -> float:
        """Local DP of a word where groups are drawn: the largest of a group, its own label, and those it can change."""
        assert isinstance(self.budget, Grouped), "options are checked"
        assert self.grouping is not None, "or no group would be drawn"
        label = self.grouping.options.label_epsilon or 0.0
        places = 1 if self.grouping.context_free else max(1, words)
        return float(claim.ldp(np.array(self.budget.budgets)).max()) + places * label


def check_grouped(grouping: Grouping, words: WordsOptions, claim: Claim) -> None:
    """Refuses options that groups do not go with.

    Raises:
        ConfigError: says which.
    """
    if oov.apart(words):
        raise ConfigError("groups need words.oov surrogate, placeholder, error or keep, and words.numbers=table")
    if words.unit == "wordpiece" and grouping.named:
        raise ConfigError("names.types needs words.unit=word")
    if grouping.randomised:
        if claim.kind == "none":
            raise ConfigError(
                f"protect.labels=randomised needs a mechanism with a guarantee: {claim.mechanism} has none"
            )
        if words.oov != "surrogate" or words.consistent or words.unit == "wordpiece":
            raise ConfigError(
                "protect.labels=randomised needs words.oov=surrogate, words.unit=word and words.consistent=false: "
                "nothing of the mask may follow from a label"
            )


def grouped_claim(
    claim: Claim, grouping: Grouping, protect: ProtectOptions, groups: GroupOptions, names: NameOptions
) -> Claim:
    """The claim that says how words were grouped."""
    said = {**claim.options, "protect": protect.public(), "groups": asdict(groups)}
    if grouping.named:
        said["names"] = asdict(names)
    if grouping.randomised:
        note = "groups are drawn at random; the statement covers them"
    elif grouping.context_free:
        note = "the group of a word follows from that word, fixed lists and a task alone; it is in the mask"
    else:
        note = "groups, types and places of sensitive parts are computed from the private text; they are in the mask"
    return replace(claim, options=said, caveats=(*claim.caveats, note))
