"""Parts: how many words of a text were treated in which way, by its statement.

In: a statement about words. Out: counts that add up to all words, each with its epsilon.
Not here: the sentences of a statement (`guarantee`), and how a bar looks (`render.bar`).
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from textveil.guarantee.guarantee import FIGURE_REPLACEMENT, Group, Guarantee
from textveil.guarantee.wording import format_number, format_things, join_parts

Treatment = Literal["drawn", "name", "figure", "placeholder", "unprotected", "public"]


class StatementPart(NamedTuple):
    """The words of a text that were treated alike.

    Args:
        treatment: drawn by the mechanism, replaced by a name, moved by noise, replaced by a
            placeholder, passed unprotected, or public.
        words: the number of them.
        meaning: the treatment in words, with the epsilon.
        epsilon: the largest of a word; infinite without a bound.
    """

    treatment: Treatment
    words: int
    meaning: str
    epsilon: float


def list_parts(guarantee: Guarantee) -> list[StatementPart]:
    """Lists the parts of a text by their treatment, drawn words first; none is empty."""
    public = guarantee.words - guarantee.covered
    parts = [
        *(_yield_groups(guarantee) if guarantee.groups else _yield_words(guarantee)),
        StatementPart("public", public, "common words and marks, passed", 0.0),
    ]
    return [part for part in parts if part.words > 0]


def find_drawn_epsilon(guarantee: Guarantee) -> float:
    """Returns the largest epsilon of a drawn word, or else of a name; infinite without a bound."""
    for treatment in ("drawn", "name"):
        epsilons = [part.epsilon for part in list_parts(guarantee) if part.treatment == treatment]
        if epsilons:
            return max(epsilons)
    return math.inf


def _yield_words(guarantee: Guarantee) -> Iterator[StatementPart]:
    """Yields the parts of a text whose words are in no groups."""
    values = guarantee.epsilon_per_word
    promised = guarantee.claim.kind != "none"
    bare = int(guarantee.total(np.isinf(values))) if promised else 0
    drawn = guarantee.covered - guarantee.placeholders - bare
    finite = values[np.isfinite(values)]
    epsilon = float(finite.max(initial=0.0)) if promised else math.inf
    unit = f" per unit of {guarantee.claim.metric} distance" * (guarantee.claim.kind == "metric")
    yield StatementPart("drawn", drawn, f"drawn {_spell(epsilon)}{unit}", epsilon)
    yield StatementPart("placeholder", guarantee.placeholders, "placeholders", 0.0)
    yield StatementPart("unprotected", bare, "passed unprotected", math.inf)


def _yield_groups(guarantee: Guarantee) -> Iterator[StatementPart]:
    """Yields the parts of a text whose words are in groups, words of one epsilon together."""
    groups = [group for group in guarantee.groups if group.words]
    drawn = [
        g for g in groups if g.by not in ("name", FIGURE_REPLACEMENT, "placeholder", "nothing")
    ]
    levels = dict.fromkeys(_spell(g.epsilon) for g in sorted(drawn, key=lambda g: g.epsilon))
    for level in levels:
        members = [group for group in drawn if _spell(group.epsilon) == level]
        yield _join("drawn", members, f"drawn {level}")
    names = [group for group in groups if group.by == "name"]
    yield _join("name", names, f"other names, drawn {_spell(_find_largest(names))}")
    figures = [group for group in groups if group.by == FIGURE_REPLACEMENT]
    units = [f"{format_number(group.per_unit)} per {group.unit}" for group in figures]
    yield _join(
        "figure", figures, f"figures moved, epsilon {join_parts(list(dict.fromkeys(units)))}"
    )
    holes = [group for group in groups if group.by == "placeholder"]
    things = join_parts([format_things(group.label, group.words) for group in holes])
    yield _join("placeholder", holes, f"placeholders ({things})")
    bare = [group for group in groups if group.by == "nothing"]
    yield _join("unprotected", bare, "passed unprotected")


def _join(treatment: Treatment, groups: list[Group], meaning: str) -> StatementPart:
    words = sum(group.words for group in groups)
    return StatementPart(treatment, words, meaning, _find_largest(groups))


def _find_largest(groups: list[Group]) -> float:
    return max((group.epsilon for group in groups), default=0.0)


def _spell(epsilon: float) -> str:
    return f"at epsilon {format_number(epsilon)}" if math.isfinite(epsilon) else "without a bound"
