"""Statements about a released text: as data, JSON, and words.

In: a mechanism's claim, epsilon per word, the names of the mask's fields. Out: `Guarantee`.
Not here: the names of numbers and things (`wording`), composition over releases and texts
(`accounting`), and the proofs (docs/understand/proofs.md).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from textveil.guarantee.claim import Claim, ClaimKind, Restricted
from textveil.guarantee.wording import (
    describe_draws,
    format_count,
    format_number,
    format_things,
    join_parts,
)
from textveil.randomness import Ints, Values

Unit = Literal["word", "wordpiece"]

VERSION = 1
"""Version of the JSON form.

It changes when a field changes its meaning.
"""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The loss of the words of one group, in local DP.

    So groups with different mechanisms can be compared.

    Attributes:
        label: the group, or the type of names or placeholders.
        words: the number of its words.
        by: the replacement: a mechanism's name, "name" (drawn from a public list), "figure" (moved
            by noise), "placeholder", or "nothing" where they pass.
        epsilon: the largest epsilon of a word; infinite where one passes.
        total: the sum over its words.
        per_unit: for figures, the loss for each `unit` by which two values differ; all dates count
            as one value.
        unit: "day", "year", or the size of an amount; empty for all but figures.
    """

    label: str
    words: int
    by: str
    epsilon: float
    total: float
    per_unit: float = 0.0
    unit: str = ""

    def to_json(self) -> dict[str, object]:
        """Returns plain data, with the mean instead of the sum."""
        mean = self.total / self.words if self.words else 0.0
        return {
            "label": self.label,
            "words": self.words,
            "by": self.by,
            "epsilon_ldp": _convert_plain(self.epsilon),
            "mean_epsilon_ldp": _convert_plain(mean),
            **({"epsilon_per_unit": self.per_unit, "unit": self.unit} if self.unit else {}),
        }


MICRO = 1_000_000
"""Units of an epsilon for exact sums.

Integers add up exactly, in any order.
"""


class Loss(NamedTuple):
    """A type's total loss in a session, in local DP.

    It is the loss of one person who has them all.

    Args:
        label: the type, or the group of words.
        by: "name" (drawn from a public list), "figure" (moved by noise), or "word".
        drawn: the number of draws: where equal values are released alike, one for each mechanism,
            budget and book (or level of it) that drew the value. The loss of one value is the sum
            over its draws.
        released: the number of releases, counted once in a text where equal values are released
            alike.
        most: the largest epsilon of one draw, in millionths.
        total: the sum of all, in millionths.
        infinite: the number of draws without a finite bound; they are in no sum.
        alike: whether equal values were released alike at any time, so that the numbers reveal
            equality.
    """

    label: str
    by: str
    drawn: int = 0
    released: int = 0
    most: int = 0
    total: int = 0
    infinite: int = 0
    alike: bool = False

    def __str__(self) -> str:
        """Writes the loss of the values of one type.

        "PERSON: 4 draws of names, at most 6 each, 24 for one person who has all of them".

        Draws, not values: a value that two mechanisms, or two levels of a book, draw counts for
            each of them.
        """
        parts = [
            f"{format_count(self.drawn, 'draw')} of "
            f"{f'a {self.by}' if self.drawn == 1 else f'{self.by}s'}"
        ]
        if self.released > self.drawn:
            parts.append(f"released {self.released:,} times in all")
        if self.infinite:
            parts.append(
                "no finite bound for "
                f"{'any' if self.infinite == self.drawn else f'{self.infinite:,}'} of them"
            )
        if (finite := self.drawn - self.infinite) > 0:
            scope = "of the others " if self.infinite else ""
            parts.append(f"at most {format_number(self.most / 1e6)}{' each' if finite > 1 else ''}")
            if finite > 1:
                parts.append(
                    f"{format_number(self.total / 1e6)} for one person who has all {scope or 'of them'}".rstrip()
                )
        return f"{self.label}: {', '.join(parts)}"

    def to_json(self) -> dict[str, object]:
        """Returns plain data, in epsilons."""
        return {
            "label": self.label,
            "by": self.by,
            "drawn": self.drawn,
            "released": self.released,
            "epsilon_ldp": self.most / MICRO,
            "total_epsilon_ldp": self.total / MICRO,
            "infinite": self.infinite,
            "alike": self.alike,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Guarantee:
    """The statement that goes with a released text.

    For every fixed mask and any two texts consistent with it that differ only in protected word j,
    x_j and x'_j: |ln Pr[y | x] - ln Pr[y | x']| <= epsilon_j * d(x_j, x'_j) for every output y.
    Nothing is claimed about the mask, which is released.

    Attributes:
        claim: the mechanism's promise, for any text.
        epsilon_per_word: float64 [n], one value per released item that is not public, in their
            order; 0 for a placeholder, infinite for a word that passes.
        parameter: float64, the mechanism's parameter at every position where it ran.
        unit: `word`, or `wordpiece`: a word's value is then the sum over its pieces.
        words: words of the text, public ones included; punctuation marks are words, too.
        punctuation: the number of punctuation marks among the public words.
        placeholders: protected words replaced by a placeholder.
        passed: protected words that pass unchanged.
        dropped: protected words that are left out.
        mask: names of the released parts besides the words.
        drawn: words, names and figures that were drawn for this release, and are no repetition:
            neither of an equal one in the text, nor of an earlier release.
        seeded: whether the draws came from a seed.
        oov: the treatment of words outside the table, the option `words.oov`.
        infinite: reasons why no finite bound holds, without the claim's reason.
        oov_share: share of the words not on the public list that are outside the table.
        texts: the number of texts of the statement.
        counts: int64, the number of words with each value of `epsilon_per_word`; None where there
            is a value per word (see `condense`).
        within: the largest epsilon of a protected word under the claim's restricted promise;
            infinite without one.
        groups: the loss of each group; empty where words are not grouped.
        consistent: whether equal words are replaced alike, so that neighbouring texts differ in all
            of them at once.
        repeated: protected words that were replaced like an earlier equal word, and so have no
            separate value.
        drawn_before: the words with a separate value that an earlier release of the session has
            drawn; they are released again unchanged, and both releases together spend that value
            once.
        releases: the number of releases of the text, each drawn anew.
        per_person: the loss of the values of each type in the session so far, this release
            included; empty without a session, or where nothing is drawn.
        lasting: whether equal words are replaced alike in all sessions of a subject, for good.
    """

    claim: Claim
    epsilon_per_word: Values = field(repr=False)
    parameter: Values = field(repr=False)
    unit: Unit = "word"
    words: int
    punctuation: int = 0
    placeholders: int
    passed: int = 0
    dropped: int = 0
    mask: tuple[str, ...]
    drawn: int = 0
    seeded: bool
    oov: str = "surrogate"
    infinite: tuple[str, ...] = ()
    oov_share: float = 0.0
    texts: int = 1
    counts: Ints | None = field(default=None, repr=False)
    within: float = math.inf
    groups: tuple[Group, ...] = ()
    consistent: bool = False
    repeated: int = 0
    drawn_before: int = 0
    releases: int = 1
    per_person: tuple[Loss, ...] = ()
    lasting: bool = False

    @property
    def mean_ldp(self) -> float:
        """The mean local DP of the words of all groups.

        Infinite if one passes, 0 without groups.
        """
        words = sum(group.words for group in self.groups)
        return sum(group.total for group in self.groups) / words if words else 0.0

    @property
    def protected(self) -> int:
        """n, the number of words that are not public.

        Equal words that are replaced alike count once.
        """
        return len(self.epsilon_per_word) if self.counts is None else int(self.counts.sum())

    @property
    def covered(self) -> int:
        """Number of words that are not public, counting repetitions.

        Equal words that are replaced alike count each time.
        """
        return self.protected + self.repeated

    @property
    def draws(self) -> bool:
        """True if anything that is released was drawn.

        For this release or an earlier one of the session.
        """
        return self.claim.draws and self.drawn + self.drawn_before > 0

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why no finite bound holds; empty when one does."""
        return ((self.claim.reason,) if self.claim.kind == "none" else ()) + self.infinite

    @property
    def kind(self) -> ClaimKind:
        """The claim's kind, or `none` without a finite bound."""
        return "none" if self.reasons else self.claim.kind

    @property
    def epsilon(self) -> float:
        """The printed bound: the largest epsilon of a protected word.

        0 without any, infinite if no bound holds.
        """
        if self.kind == "none":
            return math.inf
        return float(self.epsilon_per_word.max(initial=0.0))

    @property
    def epsilon_ldp(self) -> float:
        """The bound for any two words of the table.

        epsilon * diameter, plus the additive part, or a smaller one.
        """
        return float(self.ldp_per_word.max(initial=0.0))

    @property
    def ldp_per_word(self) -> Values:
        """Local DP for each value of `epsilon_per_word`.

        The loss of one person over more than one word is their sum.
        """
        if self.kind == "none":
            return np.full(max(1, len(self.epsilon_per_word)), math.inf)
        return self.claim.compute_ldp(self.epsilon_per_word)

    @property
    def restricted(self) -> Restricted | None:
        """The claim's promise for some pairs of words, if it holds.

        It must hold for every protected word of this text.
        """
        holds = self.protected and not self.infinite and math.isfinite(self.within)
        return self.claim.restricted if holds else None

    # ---- in words --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Returns the statement in one line."""
        return f"<Guarantee: {self.summary()}>"

    def summary(self) -> str:
        """Writes the statement in one plain sentence.

        It says what was done to the words, and what that guarantees. Promises that hold for some
        pairs of words only are not in it; `headline` and `explain` have them.
        """
        parts = [
            *(_describe_groups(self) if self.groups else _describe_words(self)),
            *_describe_public(self),
        ]
        if not self.protected:
            parts = ["no word was protected", *parts] if parts else ["there were no words"]
        if self.repeatable:
            parts.append("repeatable, so no protection against anyone who knows the seed")
        if self.claim.found and self.protected:
            parts.append(self.claim.found)
        scope = _describe_scope(self)
        sentence = f"{scope}: {'; '.join(parts)}" if scope else "; ".join(parts)
        return f"{sentence[0].upper()}{sentence[1:]}."

    def headline(self) -> str:
        """Writes the statement in three lines: bound, domain and mask."""
        writers = (
            _describe_bound,
            _describe_codes,
            _describe_restricted,
            _describe_losses,
            _describe_person,
        )
        return "\n".join(
            (
                "".join(write(self) for write in writers),
                _describe_domain(self),
                _describe_mask(self),
            )
        )

    def explain(self) -> str:
        """Writes the whole statement.

        Headline, formula, domain, values per word, assumptions and caveats.
        """
        claim = self.claim
        lines = [self.headline(), "", *_write_formula(self), *_describe_values(self)]
        if self.restricted:
            lines += _explain_restricted(self, self.restricted)
        if parameter_range := self._parameter_range:
            lines.append(f"{claim.parameter}: {_format_range(*parameter_range)}.")
        if self.unit == "wordpiece":
            lines.append(
                "A word's epsilon is the sum over its word pieces; two words are as far apart as "
                "their farthest pieces."
            )
        lines.append(
            f"{_INPUTS.get(self.oov, _INPUTS['surrogate'])} {self.oov_share:.1%} of the words not "
            "on the public list were outside the table."
        )
        if self.placeholders:
            lines.append(
                f"{_describe_holes(self, self.placeholders, format_count(self.placeholders, 'word'))}: "
                "epsilon 0 for the value; position and type are visible, as the mask says."
            )
        if claim.found:
            lines.append(f"{claim.found[0].upper()}{claim.found[1:]}.")
        lines += [f"Assumes: {text}." for text in claim.assumptions]
        lines += [f"Note: {text}." for text in claim.caveats]
        return "\n".join(lines)

    @property
    def repeatable(self) -> bool:
        """True if something was drawn from a seed.

        Whoever knows the seed can draw it again.
        """
        return self.seeded and self.draws

    @property
    def _parameter_range(self) -> tuple[float, float] | None:
        """The smallest and largest parameter of the mechanism's draws.

        None where it has or drew none.
        """
        values = self.parameter[np.isfinite(self.parameter)]
        if self.claim.parameter and len(values):
            return (float(values.min()), float(values.max()))
        return None

    @property
    def neighbours(self) -> str:
        """The difference between the two texts that the statement compares."""
        return (
            "one protected word"
            + (", at all places that the mask calls equal" if self.consistent else "")
            + (" in all releases of this subject" if self.lasting else "")
        )

    def total(self, values: NDArray[Any]) -> float:
        """Sums values over all words.

        The values go with those of `epsilon_per_word`.
        """
        return float(values.sum() if self.counts is None else values @ self.counts)

    # ---- as JSON ---------------------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        """Returns the statement as plain data.

        Its schema is `textveil/data/guarantee.schema.json`.

        Infinite values are the string "infinite". Where equal values are counted,
        `epsilon_per_word` has an object per value instead of a value per word.
        """
        claim = self.claim
        spent: list[object] = [_convert_plain(value) for value in self.epsilon_per_word.tolist()]
        if self.counts is not None:
            spent = [
                {"epsilon": entry, "words": n}
                for entry, n in zip(spent, self.counts.tolist(), strict=True)
            ]
        parameter = None
        if parameter_range := self._parameter_range:
            parameter = {
                "name": claim.parameter,
                "min": parameter_range[0],
                "max": parameter_range[1],
            }
        return {
            "version": VERSION,
            "mechanism": claim.mechanism,
            "options": _convert_plain(claim.options),
            "kind": self.kind,
            "metric": claim.metric,
            "unit": self.unit,
            "table": claim.table,
            "epsilon": _convert_plain(self.epsilon),
            "epsilon_per_word": spent,
            "epsilon_ldp": _convert_plain(self.epsilon_ldp),
            "diameter": _convert_plain(claim.diameter) if claim.kind == "metric" else None,
            "additive": claim.additive,
            "restricted": self._dump_restricted(),
            "groups": [group.to_json() for group in self.groups],
            "mean_epsilon_ldp": _convert_plain(self.mean_ldp) if self.groups else None,
            "parameter": parameter,
            "domain": "any two values of one protected word",
            "adjacency": f"two texts with the same mask that differ in {self.neighbours}",
            "mask": list(self.mask),
            "words": self.words,
            "punctuation": self.punctuation,
            "protected": self.protected,
            "placeholders": self.placeholders,
            "oov_share": self.oov_share,
            "seeded": self.seeded,
            "releases": self.releases,
            "drawn_before": self.drawn_before,
            "lasting": self.lasting,
            "per_person": [entry.to_json() for entry in self.per_person],
            "infinite_because": list(self.reasons),
            "assumptions": list(claim.assumptions),
            "caveats": list(claim.caveats),
            "budget_found": claim.found or None,
            "texts": self.texts,
            "summary": self.summary(),
            "statement": self.headline(),
        }

    def _dump_restricted(self) -> dict[str, object] | None:
        promise = self.restricted
        if promise is None:
            return None
        return {
            "domain": promise.domain,
            "kind": promise.kind,
            "metric": promise.metric,
            "epsilon": self.within,
            "epsilon_ldp": _convert_plain(promise.compute_ldp(self.within)),
            "diameter": _convert_plain(promise.diameter) if promise.kind == "metric" else None,
            "additive": promise.additive,
        }

    def pack(self) -> dict[str, Any]:
        """Returns all fields as plain data, for `unpack` of this version."""
        return {
            **{attribute.name: getattr(self, attribute.name) for attribute in fields(self)},
            "claim": asdict(self.claim),
            "epsilon_per_word": self.epsilon_per_word.tolist(),
            "parameter": self.parameter.tolist(),
            "counts": None if self.counts is None else self.counts.tolist(),
            "groups": [asdict(group) for group in self.groups],
        }

    @classmethod
    def unpack(cls, packed: Mapping[str, Any]) -> Self:
        """Reads the statement that `pack` wrote.

        It may have been JSON in between, which turns tuples into lists.
        """
        claim: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in packed["claim"].items()
        }
        if claim["restricted"] is not None:
            claim["restricted"] = Restricted(**claim["restricted"])
        counts = packed["counts"]
        return cls(
            **{
                **packed,
                "claim": Claim(**claim),
                "epsilon_per_word": np.asarray(packed["epsilon_per_word"], np.float64),
                "parameter": np.asarray(packed["parameter"], np.float64),
                "counts": None if counts is None else np.asarray(counts, np.int64),
                "mask": tuple(packed["mask"]),
                "groups": tuple(Group(**group) for group in packed["groups"]),
                "per_person": tuple(Loss(*value) for value in packed.get("per_person", ())),
                "infinite": tuple(packed["infinite"]),
            }
        )


# ---- one sentence --------------------------------------------------------------------------------


def _describe_scope(guarantee: Guarantee) -> str:
    """Writes the beginning of the sentence.

    The number of texts, and why no bound holds where none does.
    """
    texts = f"in {guarantee.texts:,} texts" if guarantee.texts > 1 else ""
    if guarantee.kind != "none":
        return texts
    bounded = any(math.isfinite(group.epsilon) for group in guarantee.groups)
    parts = ("no guarantee", texts, "as a whole" * bounded, f"({'; '.join(guarantee.reasons)})")
    return " ".join(filter(None, parts))


def _describe_words(guarantee: Guarantee) -> Iterator[str]:
    """Describes the treatment of the words without groups.

    Only of words that are not public.
    """
    claim, promised = guarantee.claim, guarantee.claim.kind != "none"
    bare_count = int(guarantee.total(np.isinf(guarantee.epsilon_per_word))) if promised else 0
    draw_count = guarantee.protected + guarantee.repeated - guarantee.placeholders - bare_count
    if draw_count and promised:
        yield (
            f"{format_count(draw_count, 'word')} {_describe_draw(guarantee)} at "
            f"{_describe_level(guarantee)}{_describe_equality(guarantee)}"
        )
    elif draw_count:
        omission = " or left out" if "dropped words" in guarantee.mask else ""
        exception = " or passed unprotected" if guarantee.infinite else ""
        yield (
            f"{format_count(draw_count, 'word')} put through {claim.mechanism}{omission}{exception}"
        )
    if guarantee.placeholders:
        yield _describe_holes(
            guarantee, guarantee.placeholders, format_count(guarantee.placeholders, "word")
        )
    if bare_count:
        yield f"{format_count(bare_count, 'word')} {_describe_bare(guarantee)}"


def _describe_level(guarantee: Guarantee) -> str:
    """Describes the epsilon of drawn words, and the words that it compares."""
    claim, values = guarantee.claim, guarantee.epsilon_per_word
    spent = values[np.isfinite(values) & (values > 0)]
    if claim.kind != "metric" or not len(spent):
        return f"{_format_epsilon(spent)} ({_name_pairs(guarantee)})"
    level = (
        f"{_format_epsilon(spent)} per unit of {claim.metric} "
        f"distance{_format_plus(claim.additive, ' plus ')}"
    )
    if math.isfinite(max_loss := float(claim.compute_ldp(spent).max())):
        level += f", at most {format_number(max_loss)} for {_name_pairs(guarantee)}"
    return level


def _describe_groups(guarantee: Guarantee) -> Iterator[str]:
    """Describes the treatment of the words, group by group.

    Only of words that are not public; epsilons are in local DP.
    """
    draw_groups = [group for group in guarantee.groups if group.by not in _OTHER_REPLACEMENTS]
    bounded_groups = [group for group in draw_groups if math.isfinite(group.epsilon)]
    parts = _describe_levels(bounded_groups)
    if names := _select_groups(guarantee, "name"):
        parts.append(_count_at(names, "name"))
    if parts:
        parts[0] = parts[0].replace(" at ", f" {_describe_draw(guarantee)} at ", 1)
        yield f"{join_parts(parts)} ({_name_pairs(guarantee)}){_describe_equality(guarantee)}"
    if unbounded_count := _count_words(draw_groups) - _count_words(bounded_groups):
        yield f"{format_count(unbounded_count, 'word')} put through {guarantee.claim.mechanism}"
    yield from map(_describe_moved, _select_groups(guarantee, FIGURE_REPLACEMENT))
    if holes := _select_groups(guarantee, "placeholder"):
        subject = join_parts(list(map(_name_things, holes)))
        yield _describe_holes(guarantee, _count_words(holes), subject)
    if passing_count := _count_words(_select_groups(guarantee, "nothing")):
        yield f"{format_count(passing_count, 'word')} {_describe_bare(guarantee)}"


def _select_groups(guarantee: Guarantee, by: str) -> list[Group]:
    return [group for group in guarantee.groups if group.by == by]


def _describe_levels(groups: Sequence[Group]) -> list[str]:
    """Counts the words of groups drawn at each epsilon.

    All together where it is the same.
    """
    if len({format_number(group.epsilon) for group in groups}) == 1:
        return [_count_at(groups, "word")]
    return [f"{_name_group(group)} at {_format_epsilon(group.epsilon)}" for group in groups]


def _count_at(groups: Sequence[Group], noun: str) -> str:
    return (
        f"{format_count(_count_words(groups), noun)} at "
        f"{_format_epsilon(*(group.epsilon for group in groups))}"
    )


def _describe_moved(group: Group) -> str:
    note = " (all dates alike)" if group.unit == "day" else ""
    return f"{_name_things(group)} moved{note} at epsilon {_format_unit(group)}"


def _describe_public(guarantee: Guarantee) -> Iterator[str]:
    """Describes the words that passed because they are public."""
    words = guarantee.words - guarantee.covered - guarantee.punctuation
    parts = [format_count(words, "common word")] * (words > 0)
    parts += [format_count(guarantee.punctuation, "punctuation mark")] * (guarantee.punctuation > 0)
    if parts:
        yield f"{join_parts(parts)} passed"


def _format_epsilon(*values: float | Values) -> str:
    """Writes the largest of some epsilons.

    "epsilon 8", or "epsilon up to 8" where some are smaller.
    """
    epsilons = np.concatenate([np.atleast_1d(value) for value in values])
    low, high = epsilons.min(initial=math.inf), epsilons.max(initial=0.0)
    return f"epsilon {'up to ' if format_number(min(low, high)) != format_number(high) else ''}{format_number(high)}"


def _name_pairs(guarantee: Guarantee) -> str:
    """Names the words that the bound compares."""
    if guarantee.unit == "wordpiece":
        return "any two words with the same number of pieces"
    return "any two words" if guarantee.oov == "surrogate" else "any two words of the table"


def _describe_draw(guarantee: Guarantee) -> str:
    codes = guarantee.claim.codes
    among = ""
    if codes:
        among = (
            f" among {' to '.join(f'{size:,}' for size in sorted({min(codes), max(codes)}))} codes"
        )
    if codes and guarantee.claim.nested and guarantee.releases > 1:  # perhaps at several levels
        among = f" among at most {max(codes):,} codes"
    return f"{'drawn' if guarantee.draws else 'replaced'}{among}"


def _describe_equality(guarantee: Guarantee) -> str:
    note = ", equal words alike" if guarantee.repeated else ""
    if guarantee.lasting:
        note = ", equal words alike in all sessions of this subject"
    return f"{note}, {guarantee.drawn_before:,} as drawn before" if guarantee.drawn_before else note


def _name_group(group: Group) -> str:
    """Writes the number of words of a group with its name."""
    adjective = _ADJECTIVES.get(group.label)
    return format_count(group.words, f"{adjective} word") if adjective else _name_things(group)


def _name_things(group: Group) -> str:
    return format_things(group.label, group.words)


_ADJECTIVES = {
    "sensitive-important": "sensitive and important",
    "sensitive": "sensitive",
    "important": "important",
    "other": "other",
}


def _count_words(groups: Sequence[Group]) -> int:
    return sum(group.words for group in groups)


FIGURE_REPLACEMENT = "figure"
"""The replacement of moved dates, ages and amounts; see `Group.by`."""
_OTHER_REPLACEMENTS = ("name", FIGURE_REPLACEMENT, "placeholder", "nothing")
"""Replacements that are not made by a mechanism."""


def _format_unit(group: Group) -> str:
    return f"{format_number(group.per_unit)} per {group.unit}"


def _describe_holes(guarantee: Guarantee, n: int, subject: str) -> str:
    results = [("a placeholder", "placeholders")]
    if "identifiers" in guarantee.claim.options:
        results.append(("an invented identifier", "invented identifiers"))
    return f"{subject} became {' or '.join(result[n != 1] for result in results)}"


def _describe_bare(guarantee: Guarantee) -> str:
    """Describes words with an infinite epsilon.

    They passed, or a paper's rule for unknown words applied.
    """
    ruled = guarantee.oov in ("uniform", "drop") or (
        "moved numbers" in guarantee.mask and not guarantee.groups
    )
    return "went unprotected" if ruled else "passed unprotected"


# ---- three lines ---------------------------------------------------------------------------------


def _describe_bound(guarantee: Guarantee) -> str:
    claim = guarantee.claim
    name = claim.mechanism
    if guarantee.kind == "none":
        return f"{name}: no finite bound holds: {'; '.join(guarantee.reasons)}."
    if not guarantee.protected:
        return f"{name}: no word was protected, so there is nothing to bound."
    distinct = "distinct " * bool(
        guarantee.repeated
    )  # equal words that are replaced alike count once
    subject = "the protected word"
    if guarantee.protected > 1:
        subject = f"each of {guarantee.protected:,} {distinct}protected words"
    subject += f" in {guarantee.texts:,} texts" if guarantee.texts > 1 else ""
    if guarantee.kind == "ldp" or guarantee.epsilon == 0:
        return (
            f"{name}: {subject} has epsilon at most {format_number(guarantee.epsilon)} "
            f"for {_name_pairs(guarantee)} (local DP)."
        )
    words = "words" if guarantee.unit == "word" else "words with the same number of pieces"
    return (
        f"{name}: {subject} has epsilon at most {format_number(guarantee.epsilon)} per unit of "
        f"{claim.metric} distance{_format_plus(claim.additive, ', plus ')}, and at most "
        f"{format_number(guarantee.epsilon_ldp)} for any two {words} of {claim.table} (diameter "
        f"{format_number(claim.diameter, 5)}{claim.view and ' ' + claim.view})."
    )


def _describe_codes(guarantee: Guarantee) -> str:
    """Describes the bound for words of one code.

    The mechanism does not tell them apart.
    """
    if not guarantee.claim.codes or guarantee.kind == "none" or not guarantee.epsilon:
        return ""
    codes = guarantee.claim.codes
    if len(codes) > 1:
        sizes = ", ".join(
            f"{label} {size:,}" for label, size in zip(_ADJECTIVES, codes, strict=True)
        )
        return (
            f" For two words of one group and one of its codes it is 0 (codes by group: {sizes})."
        )
    return f" For two words of one of its {codes[0]:,} codes it is 0."


def _describe_restricted(guarantee: Guarantee) -> str:
    """Describes the promise for some pairs of words.

    It comes after the bound, and never without naming the pairs.
    """
    promise, within = guarantee.restricted, guarantee.within
    if promise is None:
        return ""
    if promise.kind == "ldp" or within == 0:
        bound = f"epsilon at most {format_number(within)} (local DP)"
    else:
        bound = (
            f"epsilon at most {format_number(within)} per unit of {promise.metric} "
            f"distance{_format_plus(promise.additive, ', plus ')}, and at most "
            f"{format_number(promise.compute_ldp(within))} in all (diameter "
            f"{format_number(promise.diameter, 5)})"
        )
    return f" Between {promise.domain} only: {bound}."


def _describe_losses(guarantee: Guarantee) -> str:
    """Describes the loss of each group.

    Where no bound holds for all words, it holds only between texts with the same mask.
    """
    if not guarantee.groups:
        return ""
    losses = ", ".join(_describe_group(group) for group in guarantee.groups)
    domain = f"By group, for {_name_pairs(guarantee)}"
    if guarantee.kind == "none":
        domain = f"Between texts with the same mask, by group and for {_name_pairs(guarantee)}"
    return f" {domain}: {losses}."


def _describe_person(guarantee: Guarantee) -> str:
    """Describes the loss of a person with all values of a session."""
    losses = "; ".join(map(str, guarantee.per_person))
    return f" In the session so far, for {_name_pairs(guarantee)}: {losses}." if losses else ""


def _describe_group(group: Group) -> str:
    words = format_count(
        group.words, group.by if group.by in ("placeholder", "name", FIGURE_REPLACEMENT) else "word"
    )
    if group.by == FIGURE_REPLACEMENT:
        cap = f", at most {format_number(group.epsilon)}" if math.isfinite(group.epsilon) else ""
        return (
            f"{group.label} "
            f"{_format_unit(group)}{', all dates alike' if group.unit == 'day' else cap} ({words})"
        )
    if group.by == "nothing":
        return f"{group.label} passes ({words})"
    return (
        f"{group.label} {'at most ' if group.epsilon else ''}{format_number(group.epsilon)} "
        f"({words})"
    )


def _describe_domain(guarantee: Guarantee) -> str:
    uncovered = _describe_uncovered(guarantee)
    if not guarantee.protected:
        return uncovered.strip() or "The text has no words."
    if guarantee.kind == "none":
        nothing = "Beyond that, nothing" if guarantee.restricted or guarantee.groups else "Nothing"
        return f"{nothing} bounds what the output tells about the protected words.{uncovered}"
    return (
        "This holds for any two texts with the same mask that differ in "
        f"{guarantee.neighbours}.{uncovered}"
    )


def _describe_uncovered(guarantee: Guarantee) -> str:
    """Counts the words that no bound covers.

    Public words, and others that were released unchanged.
    """
    sentences = ""
    if public := guarantee.words - guarantee.covered:
        sentences = (
            f" Not covered: {public:,} of {format_count(guarantee.words, 'word')}, passed because "
            "they are public."
        )
    bare_count = int(guarantee.total(np.isinf(guarantee.epsilon_per_word)))
    if _select_groups(
        guarantee, FIGURE_REPLACEMENT
    ):  # some figures have an infinite bound, and do not pass
        bare_count = _count_words(_select_groups(guarantee, "nothing"))
    if guarantee.claim.kind != "none" and bare_count:
        sentences += f" {format_count(bare_count, 'more word')} {_describe_bare(guarantee)}."
    return sentences


def _describe_mask(guarantee: Guarantee) -> str:
    draws = describe_draws(guarantee.repeatable) if guarantee.draws else "Nothing is drawn."
    mask = ", ".join(guarantee.mask)
    return (
        f"The mask is released too, and nothing is claimed about it: {mask}. "
        f"{_describe_releases(guarantee)} {draws}"
    )


def _describe_releases(guarantee: Guarantee) -> str:
    """Describes the effect of other releases of the same text.

    Releases of a seed have a separate rule.
    """
    sentences = "This is for one release"
    if guarantee.releases > 1:
        sentences = f"This is for {guarantee.releases:,} releases together"
    sentences += "." if guarantee.repeatable else "; repeated releases add up."
    if n := guarantee.drawn_before:
        verb, clause = ("was", "it spends") if n == 1 else ("were", "they spend")
        owner = "of this subject" if guarantee.lasting else "of the session"
        sentences += (
            f" {n:,} of these words {verb} drawn in an earlier release {owner}: drawn once, "
            f"{clause} once."
        )
    if guarantee.lasting:
        sentences += (
            " Each word keeps its draw in all sessions of this subject, for good "
            "(words.lasting), as in a random table: all releases together spend epsilon once "
            "for each distinct word, and words can be recognized by how often they occur and "
            "what they occur next to."
        )
    return sentences


# ---- all of it -----------------------------------------------------------------------------------


def _write_formula(guarantee: Guarantee) -> list[str]:
    """Writes the bounded quantity and its bound."""
    claim = guarantee.claim
    if guarantee.kind == "none":
        return []
    if guarantee.kind == "ldp":
        return [_PAIRS, f"  {_LOSS} <= epsilon_j   for every output y."]
    return [
        _PAIRS,
        (
            f"  {_LOSS} <= epsilon_j * d(x_j, x'_j){_format_plus(claim.additive)}   for every "
            "output y,"
        ),
        f"  d = {_METRICS[claim.metric or '']} between the rows of {claim.table}.",
    ]


def _describe_values(guarantee: Guarantee) -> list[str]:
    """Describes the loss of the words, each and together."""
    if not guarantee.protected or guarantee.kind == "none":
        return []
    spent, max_loss = guarantee.epsilon_per_word, guarantee.claim.most
    total = format_number(guarantee.total(spent))
    everywhere = format_number(guarantee.total(guarantee.ldp_per_word))
    lines = [
        (
            f"epsilon_j: {_format_range(spent.min(), spent.max())}, sum {total} over "
            f"{_name_texts(guarantee.texts)}."
        ),
        (
            f"Where two texts differ in several words, the bounds add up: {everywhere} where they "
            "differ in all."
        ),
    ]
    if guarantee.kind == "metric" and math.isfinite(max_loss):
        lines.append(
            "The mechanism caps distances, so the bound for any two words is at most "
            f"{format_number(max_loss)}, whatever their distance."
        )
    return lines


def _explain_restricted(guarantee: Guarantee, promise: Restricted) -> list[str]:
    bound, mark = format_number(guarantee.within), "."
    if promise.kind == "metric":
        bound, mark = f"{bound} * d(x_j, x'_j)", ","
    lines = [
        f"{_PAIRS[:-1]}, where x_j and x'_j are {promise.domain}:",
        f"  {_LOSS} <= {bound}{_format_plus(promise.additive)}   for every output y{mark}",
    ]
    if promise.kind == "metric":
        lines.append(
            f"  d = {_METRICS[promise.metric or '']} between the rows of {guarantee.claim.table}."
        )
    if guarantee.unit == "wordpiece":
        lines.append(
            "For word pieces, this holds where each piece and the piece in its place are such "
            "a pair."
        )
    return lines


_PAIRS = (
    "For every fixed mask and any two texts x, x' consistent with it that differ only in "
    "protected word j:"
)
_INPUTS = {
    "surrogate": "Inputs: any string; a word outside the table is first mapped to a row by a public function.",
    "placeholder": "Inputs: the table's words; a word outside the table becomes a placeholder, which the mask shows.",
    "error": (
        "Inputs: the table's words; a text with any other word is refused, and the refusal is "
        "visible, too."
    ),
    "keep": "Inputs: the table's words; a word outside the table passes unprotected.",
    "uniform": (
        "Inputs: the table's words; any other word is replaced by a word drawn uniformly from "
        "the table."
    ),
    "drop": "Inputs: the table's words; any other word is left out.",
}
_LOSS = "|ln Pr[y | x] - ln Pr[y | x']|"
_METRICS = {
    "chord": "the chord (distance between unit rows)",
    "euclidean": "the Euclidean distance (between raw rows)",
    "l1": "the l1 distance",
}


def _format_range(low: float, high: float) -> str:
    return (
        format_number(low)
        if format_number(low) == format_number(high)
        else f"{format_number(low)} to {format_number(high)}"
    )


def _name_texts(n: int) -> str:
    return "the text" if n == 1 else f"the {n:,} texts"


def _format_plus(additive: float, sign: str = " + ") -> str:
    return f"{sign}{format_number(additive)}" if additive else ""


def _convert_plain(value: object) -> object:
    """Converts a value for JSON: infinity becomes a string."""
    if isinstance(value, Mapping):
        return {name: _convert_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_plain(item) for item in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value
