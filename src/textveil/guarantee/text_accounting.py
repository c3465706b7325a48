"""Sums of statements about whole texts.

In: statements about releases of the same documents, or about different documents. Out: one of them.
Not here: sums over words (`accounting`), and what a subject has spent over time (`session`).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from textveil.errors import GuaranteeError
from textveil.guarantee.guarantee import Guarantee
from textveil.guarantee.text_guarantee import LibraryFacts, Sentences, TextGuarantee


def select_text_guarantees(
    statements: Sequence[Guarantee] | Sequence[TextGuarantee],
) -> tuple[list[TextGuarantee], list[Guarantee]]:
    """Sorts statements by what they are about: whole texts, words.

    Raises:
        GuaranteeError: there are both, or whole texts with unlike bounds.
    """
    texts = [item for item in statements if isinstance(item, TextGuarantee)]
    words = [item for item in statements if isinstance(item, Guarantee)]
    if texts and (words or len({(item.way, item.unit, item.noun) for item in texts}) > 1):
        raise GuaranteeError(
            "statements of different kinds do not add up: kind (local or central), way and unit "
            "(word, sentence, document, subject) must agree; compare or add their local DP values "
            "(epsilon_ldp) instead"
        )
    return texts, words


def check_fresh(releases: Sequence[Guarantee] | Sequence[TextGuarantee]) -> None:
    """Refuses to add up draws that follow from a seed."""
    if len(releases) > 1 and any(release.repeatable for release in releases):
        raise GuaranteeError(
            "releases add up only if each is drawn afresh, and draws from a seed are not: whoever "
            "knows the seed can repeat them; draw without a seed"
        )


def add_releases(releases: Sequence[TextGuarantee]) -> TextGuarantee:
    """Adds up releases of the same documents, each drawn anew.

    Raises:
        GuaranteeError: they are about different numbers of documents, labels are covered by
            some of them only, or draws follow from a seed.
    """
    check_fresh(releases)
    first, reasons = releases[0], _unite_reasons(releases)
    if len({(item.documents, item.sentences, item.labels_covered) for item in releases}) > 1:
        raise GuaranteeError(
            "releases add up document by document, so they must be of the same documents and "
            "sentences, with labels copied in all of them or in none"
        )
    labels = tuple(dict.fromkeys(chain.from_iterable(item.labels for item in releases)))
    return replace(
        first,
        epsilon=sum(item.epsilon for item in releases),
        replaced=sum(item.replaced for item in releases),
        labels=labels,
        released=_add_released(releases),
        per_subject=max(item.per_subject for item in releases),
        kind="none" if reasons else first.kind,
        reasons=reasons,
        releases=sum(item.releases for item in releases),
        others=_list_others(releases),
    )


def add_texts(parts: Sequence[TextGuarantee]) -> TextGuarantee:
    """Combines statements about different documents of one run.

    Counts are added up, because one document may be in all of them.

    Raises:
        GuaranteeError: their libraries, levels or labels differ.
    """
    first, reasons = parts[0], _unite_reasons(parts)
    if first.way == "counts":
        return add_releases(parts)
    origins = {(part.libraries, part.labels, part.labels_covered) for part in parts}
    if len(origins) > 1:
        raise GuaranteeError(
            "one statement about several texts needs the same library, level and labels for all "
            "of them, and these differ"
        )
    sentences = [part.sentences for part in parts if part.sentences is not None]
    return replace(
        first,
        epsilon=max(part.epsilon for part in parts),
        replaced=max(part.replaced for part in parts),
        documents=sum(part.documents or 0 for part in parts),
        released=_add_released(parts),
        sentences=Sentences(
            max(item.most for item in sentences), sum(item.total for item in sentences)
        )
        if sentences
        else None,
        seeded=any(part.seeded for part in parts),
        kind="none" if reasons else first.kind,
        reasons=reasons,
        releases=max(part.releases for part in parts),
    )


def _unite_reasons(statements: Sequence[TextGuarantee]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(item.reasons for item in statements)))


def _add_released(statements: Sequence[TextGuarantee]) -> int | None:
    """Adds up the numbers of released texts; None if one has none."""
    numbers = [item.released for item in statements if item.released is not None]
    return sum(numbers) if len(numbers) == len(statements) else None


def _list_others(releases: Sequence[TextGuarantee]) -> tuple[LibraryFacts, ...]:
    """Lists the libraries of all releases but the first one's."""
    return tuple(
        dict.fromkeys(
            library
            for library in chain.from_iterable(item.libraries for item in releases)
            if library != releases[0].library
        )
    )
