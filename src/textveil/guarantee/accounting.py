"""Composition: one statement about some releases of a text, or some texts.

In: guarantees. Out: one guarantee, or an error where their sum would not be true.
Not here: the statement about one release (`guarantee`), and where totals are kept over time
(`session`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar, overload

import numpy as np

from textveil.errors import GuaranteeError
from textveil.guarantee.claim import Claim, Restricted
from textveil.guarantee.guarantee import Group, Guarantee, Loss
from textveil.guarantee.text_accounting import (
    add_releases,
    add_texts,
    check_fresh,
    select_text_guarantees,
)
from textveil.guarantee.text_guarantee import TextGuarantee
from textveil.randomness import Ints
from textveil.text import MASK_FIELDS

_GROUPING_OPTIONS = ("protect", "groups", "names", "figures", "identifiers")
"""Options of a claim that decide about grouped and passing words.

Words of a group may be joined to one.
"""

Statement = TypeVar("Statement", Guarantee, TextGuarantee)
"""A statement about words, or about whole texts."""

_TABLE_SEPARATOR = " and "
"""Separator of the tables of releases.

Such releases are at different levels of a nested book.
"""


@overload
def compose(releases: Sequence[Guarantee], *, among: int | None = None) -> Guarantee: ...


@overload
def compose(releases: Sequence[TextGuarantee], *, among: int | None = None) -> TextGuarantee: ...


def compose(
    releases: Sequence[Guarantee] | Sequence[TextGuarantee], *, among: int | None = None
) -> Guarantee | TextGuarantee:
    """Adds up the statements about releases of one text, word by word.

    For readers who see all releases. Statements about whole texts add up for each document,
    sentence or subject.

    Args:
        releases: at least one, all of the same text, kind, metric, table and unit, each drawn
            afresh. Of whole texts: all of the same kind, way and unit, whatever their libraries.
        among: the number of draws, if somebody looked at them and chose these. The choice depends
            on all draws, so all have to be here, and their number has to be fixed before the first.

    Raises:
        GuaranteeError: the releases are of different texts, or of kinds that do not add up, or
            draws are from a seed; or they were chosen from more releases.
    """
    if among is not None and among > len(releases):
        raise GuaranteeError(
            f"these {len(releases):,} releases were chosen among {among:,} after looking at "
            "the draws, so they reveal something about the others too, and their own epsilons "
            "are no bound: give all releases that were drawn"
        )
    texts, words = select_text_guarantees(releases)
    first = _check_alike(words) if not texts else None
    check_fresh(releases)
    return add_releases(texts) if first is None else _add_words(first, words)


def _add_words(first: Guarantee, releases: Sequence[Guarantee]) -> Guarantee:
    """Adds up the epsilons of releases of the same words."""
    _check_same_words(releases)
    spent = np.sum([release.epsilon_per_word for release in releases], axis=0)
    # A word counts as a placeholder only if every release replaced it by one.
    holes = int((spent == 0).sum()) + first.repeated
    return replace(
        first,
        **_combine_fields(releases, _RELEASE_RULES),
        claim=replace(_sum_claims(first.claim, releases), found=""),
        epsilon_per_word=spent,
        parameter=np.empty(0),
        placeholders=min(holes, *(release.placeholders for release in releases)),
        groups=_add_groups(releases),
    )


def _check_same_words(releases: Sequence[Guarantee]) -> None:
    """Refuses releases whose words may differ.

    Adding up word by word needs the same words.
    """
    if len({(release.protected, release.repeated, release.words) for release in releases}) > 1:
        raise GuaranteeError(
            "releases add up word by word, so they must be of the same text with the same "
            "protected words"
        )
    grouped = [
        [release.claim.options.get(name) for name in _GROUPING_OPTIONS] for release in releases
    ]
    if any(group_options != grouped[0] for group_options in grouped):
        raise GuaranteeError(
            "releases add up word by word: where words are grouped, all must have the same "
            "protect.*, groups.*, names.* and figures.*, because one word of a release may be "
            "several words in another"
        )
    if any(release.counts is not None for release in releases):
        raise GuaranteeError(
            "releases add up word by word, so each statement must have a value per word; a "
            "condensed statement does not have them"
        )


@overload
def summarize(texts: Sequence[Guarantee]) -> Guarantee: ...


@overload
def summarize(texts: Sequence[TextGuarantee]) -> TextGuarantee: ...


def summarize(
    texts: Sequence[Guarantee] | Sequence[TextGuarantee],
) -> Guarantee | TextGuarantee:
    """Combines the statements about the texts of one run.

    Every word keeps its epsilon. The result is still about one protected word at a time. The loss
    of one person over more than one text is the sum. Of whole texts, every document keeps its
    epsilon; counts add up, because a document may be in all of them.

    Args:
        texts: at least one, all privatized with the same mechanism and options, or the same
            library and level.

    Raises:
        GuaranteeError: they are not.
    """
    whole_texts, word_statements = select_text_guarantees(texts)
    return add_texts(whole_texts) if whole_texts else _summarize_words(word_statements)


def _summarize_words(texts: Sequence[Guarantee]) -> Guarantee:
    """Combines the statements about the words of some texts."""
    first = _check_alike(texts)
    claims = [text.claim for text in texts]
    origins = [(claim.mechanism, claim.options, claim.found) for claim in claims]
    if origins != origins[:1] * len(origins):
        raise GuaranteeError(
            "one statement about several texts needs the same mechanism and options for all of "
            "them, and these differ"
        )
    covered = sum(text.covered for text in texts)
    outside = sum(text.oov_share * text.covered for text in texts)
    return replace(
        first,
        **_combine_fields(texts, _TEXT_RULES),
        claim=_combine_claims(first.claim, max, claims),
        epsilon_per_word=np.concatenate([text.epsilon_per_word for text in texts]),
        counts=_concatenate_counts(texts),
        parameter=np.concatenate([text.parameter for text in texts]),
        oov_share=outside / covered if covered else 0.0,
        groups=_merge_groups(chain.from_iterable(text.groups for text in texts)),
    )


def _concatenate_counts(texts: Sequence[Guarantee]) -> Ints | None:
    if all(text.counts is None for text in texts):
        return None
    return np.concatenate([_get_counts(text) for text in texts])


def _unite(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))


def _unite_masks(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted(_unite(lists), key=MASK_FIELDS.index))


def _find_latest(lists: Iterable[tuple[Loss, ...]]) -> tuple[Loss, ...]:
    """Returns the latest losses of a session after its releases.

    Of more than one session, the losses of the session that lost most.
    """
    latest: dict[tuple[str, str], Loss] = {}
    for loss in chain.from_iterable(lists):
        previous = latest.get((loss.label, loss.by), loss)
        latest[loss.label, loss.by] = max(
            loss,
            previous,
            key=lambda candidate: (candidate.total, candidate.infinite, candidate.released),
        )
    return tuple(latest.values())


_COMMON_RULES: dict[str, Callable[[Iterator[Any]], object]] = {
    "mask": _unite_masks,
    "infinite": _unite,
    "consistent": any,
    "per_person": _find_latest,
    "lasting": any,
}
# Losses add up over releases of one text. A statement about several texts is about one word at a
# time, so that the largest loss counts.
_RELEASE_RULES = _COMMON_RULES | {
    "passed": max,
    "dropped": min,
    "drawn": sum,
    "seeded": all,
    "within": sum,
    "drawn_before": min,
    "releases": sum,
}
_TEXT_RULES = _COMMON_RULES | {
    "words": sum,
    "punctuation": sum,
    "placeholders": sum,
    "passed": sum,
    "dropped": sum,
    "drawn": sum,
    "texts": sum,
    "seeded": any,
    "within": max,
    "repeated": sum,
    "drawn_before": sum,
    "releases": max,
}
"""Rules that combine the fields of statements.

`_RELEASE_RULES` for releases of one text, `_TEXT_RULES` for different texts.
"""


def _combine_fields(
    guarantees: Sequence[Guarantee], rules: Mapping[str, Callable[[Iterator[Any]], object]]
) -> dict[str, Any]:
    return {
        name: rule(getattr(guarantee, name) for guarantee in guarantees)
        for name, rule in rules.items()
    }


def _merge_groups(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Merges the groups of texts that have the same label."""
    merged: dict[tuple[str, str], Group] = {}
    for group in groups:
        if previous := merged.get(key := (group.label, group.by)):
            group = replace(
                group,
                words=previous.words + group.words,
                epsilon=max(previous.epsilon, group.epsilon),
                total=previous.total + group.total,
            )
        merged[key] = group
    return tuple(merged.values())


def _add_groups(releases: Sequence[Guarantee]) -> tuple[Group, ...]:
    """Adds up the losses of the groups of releases of one text.

    None if groups differ.
    """
    if len({tuple((g.label, g.words) for g in item.groups) for item in releases}) > 1:
        return ()
    return tuple(
        replace(
            alike[0],
            by=" + ".join(dict.fromkeys(item.by for item in alike)),
            epsilon=sum(item.epsilon for item in alike),
            total=sum(item.total for item in alike),
            per_unit=sum(item.per_unit for item in alike),
        )
        for alike in zip(*(item.groups for item in releases), strict=True)
    )


def condense(guarantee: Statement) -> Statement:
    """Counts equal values of a statement instead of listing them.

    So its size does not grow with the words. It no longer says which word has which value, and of
    the parameter it keeps the range. One about whole texts lists nothing, and stays as it is.
    """
    if isinstance(guarantee, TextGuarantee):
        return guarantee
    values, places = np.unique(guarantee.epsilon_per_word, return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, places, _get_counts(guarantee))
    parameters = guarantee.parameter[np.isfinite(guarantee.parameter)]
    extremes = np.array([parameters.min(), parameters.max()] if len(parameters) else [], np.float64)
    return replace(guarantee, epsilon_per_word=values, counts=counts, parameter=extremes)


def _get_counts(guarantee: Guarantee) -> Ints:
    if guarantee.counts is None:
        return np.ones(len(guarantee.epsilon_per_word), np.int64)
    return guarantee.counts


def _check_alike(guarantees: Sequence[Guarantee]) -> Guarantee:
    if not guarantees:
        raise GuaranteeError("at least one statement is needed, and none was given")
    kinds = {
        (
            g.claim.kind,
            g.claim.metric,
            _find_table(g.claim),
            g.claim.diameter,
            g.claim.view,
            g.unit,
            g.oov,
            *_build_domain_key(g.claim),
        )
        for g in guarantees
    }
    if len(kinds) > 1:
        names = sorted({g.claim.mechanism for g in guarantees})
        raise GuaranteeError(
            f"statements of different kinds do not add up ({', '.join(names)}): kind, metric, "
            "table, diameter, unit, rule for unknown words and restricted domain must agree; "
            "compare or add their local DP values (epsilon_ldp) instead"
        )
    return guarantees[0]


def _find_table(claim: Claim) -> str:
    """Returns the table of a claim, or its nested book.

    The promise for any two words is of one kind at all levels of a nested book.
    """
    return claim.nested if claim.nested and claim.kind == "ldp" else claim.table


def _combine_codes(claims: Sequence[Claim]) -> tuple[int, ...]:
    """Returns the codes within which the loss is 0 in all releases.

    For levels of one nested book, those of the finest.
    """
    claim_codes = [claim.codes for claim in claims]
    if len({*claim_codes}) == 1:
        return claim_codes[0]
    return (
        (max(map(max, claim_codes)),)
        if all(claim_codes) and all(claim.nested for claim in claims)
        else ()
    )


def _build_domain_key(claim: Claim) -> tuple[Restricted | None, str]:
    """Returns the key of restricted promises that add up.

    They must be for the same pairs of words, which the mechanism's options decide.
    """
    if claim.restricted is None:
        return None, ""
    return replace(claim.restricted, additive=0.0), json.dumps(
        claim.options, sort_keys=True, default=str
    )


def _combine_claims(
    claim: Claim, join: Callable[[Iterable[float]], float], claims: Sequence[Claim]
) -> Claim:
    """Combines similar claims into the first one.

    With the additive parts and caveats of all, and the properties that hold for all of them.
    """
    restricted = claim.restricted and replace(
        claim.restricted,
        additive=join(other.restricted.additive for other in claims if other.restricted),
    )
    return replace(
        claim,
        additive=join(other.additive for other in claims),
        most=join(other.most for other in claims),
        draws=any(other.draws for other in claims),
        table=_TABLE_SEPARATOR.join(
            _unite(tuple(other.table.split(_TABLE_SEPARATOR)) for other in claims)
        ),
        codes=_combine_codes(claims),
        caveats=_unite(other.caveats for other in claims),
        restricted=restricted,
    )


def _sum_claims(claim: Claim, releases: Sequence[Guarantee]) -> Claim:
    names = dict.fromkeys(release.claim.mechanism for release in releases)
    return replace(
        _combine_claims(claim, sum, [release.claim for release in releases]),
        mechanism=" + ".join(names),
        options=claim.options
        if all(release.claim.options == claim.options for release in releases)
        else {},
        reason="; ".join(
            _unite((release.claim.reason,) for release in releases if release.claim.reason)
        ),
        assumptions=_unite(release.claim.assumptions for release in releases),
    )
