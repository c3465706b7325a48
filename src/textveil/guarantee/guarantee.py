"""Statements: what is proved about one released text, as data and as JSON.

In: a mechanism's claim, epsilon per word, the names of the mask's fields. Out: `Guarantee`.
Not here: how a statement reads (`wording`), composition over releases and texts (`accounting`), and the proofs
(docs/understand/guarantees.md).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from textveil.guarantee import wording
from textveil.guarantee.claim import Claim, Kind, Restricted
from textveil.randomness import Ints, Values

Unit = Literal["word", "wordpiece"]

VERSION = 1
"""Version of the JSON form; it changes when a field changes its meaning."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """What the words of one group spend, in local DP, so that groups with different mechanisms can be compared.

    Attributes:
        label: the group, or the type of names or placeholders.
        words: how many words are in it.
        by: what replaces them: a mechanism's name, "name" (drawn from a public list), "figure" (moved by noise),
            "placeholder", or "nothing" where they pass.
        epsilon: the largest epsilon of a word; infinite where one passes.
        total: the sum over its words.
        per_unit: for figures, what is lost for each `unit` by which two values differ; all dates count as one value.
        unit: "day", "year", or how large an amount; empty for all but figures.
    """

    label: str
    words: int
    by: str
    epsilon: float
    total: float
    per_unit: float = 0.0
    unit: str = ""

    def to_json(self) -> dict[str, object]:
        """As plain data, with the mean instead of the sum."""
        mean = self.total / self.words if self.words else 0.0
        return {
            "label": self.label,
            "words": self.words,
            "by": self.by,
            "epsilon_ldp": _plain(self.epsilon),
            "mean_epsilon_ldp": _plain(mean),
            **({"epsilon_per_unit": self.per_unit, "unit": self.unit} if self.unit else {}),
        }


MICRO = 1_000_000
"""Units of an epsilon where many are summed. Integers add up exactly, in any order."""


class Loss(NamedTuple):
    """What all values of one type together have lost in a session, in local DP: what one person loses who has them all.

    Args:
        label: the type, or the group of words.
        by: "name" (drawn from a public list), "figure" (moved by noise), or "word".
        drawn: how many draws there were: where equal ones are released alike, one of each for each mechanism, budget
            and book (or level of it) that drew it. What one value has lost is the sum over its draws.
        released: how many times they were released, counted once in a text where they are released alike.
        most: the largest epsilon of one draw, in millionths.
        total: the sum of all, in millionths.
        infinite: for how many draws no finite bound holds; they are in no sum.
        alike: whether equal ones were released alike at any time, so that the numbers tell of equality.
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
        """As a phrase: "PERSON: 1 draw of a name, at most 6"; see `wording.loss`."""
        return wording.loss(self)

    def to_json(self) -> dict[str, object]:
        """As plain data, in epsilons."""
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

    For every fixed mask and any two texts consistent with it that differ only in protected word j, x_j and x'_j:
    |ln Pr[y | x] - ln Pr[y | x']| <= epsilon_j * d(x_j, x'_j) for every output y. Nothing is claimed about the
    mask, which is released.

    Attributes:
        claim: what the mechanism promises, whatever the text.
        epsilon_per_word: float64 [n], one value per released item that is not public, in their order; 0 for a
            placeholder, infinite for a word that passes.
        parameter: float64, the mechanism's own parameter at every position where it ran.
        unit: `word`, or `wordpiece`: a word's value is then the sum over its pieces.
        words: words of the text, public ones included; punctuation marks are words, too.
        punctuation: how many of the public words are punctuation marks.
        placeholders: protected words replaced by a placeholder.
        passed: protected words that pass as they are.
        dropped: protected words that are left out.
        mask: names of what is released besides the words.
        drawn: words, names and figures that were drawn for this release, and are no repetition: neither of an equal one
            in the text, nor of an earlier release.
        seeded: whether the draws came from a seed.
        oov: what was done with words outside the table, the option `words.oov`.
        infinite: reasons, besides the claim's own, why no finite bound holds.
        oov_share: share of the words not on the public list that are outside the table.
        texts: how many texts the statement is about.
        counts: int64, how many words have each value of `epsilon_per_word`; None where there is a value per word
            (see `condense`).
        within: the largest epsilon of a protected word under the claim's restricted promise; infinite without one.
        groups: what each group spends; empty where words are not grouped.
        consistent: whether equal words are replaced alike, so that neighbouring texts differ in all of them at once.
        repeated: protected words that were replaced like an equal one before, and so have no value of their own.
        drawn_before: of the drawn words with a value of their own, those that an earlier release of the session has
            drawn; they are released again as they were, and both releases together spend that value once.
        releases: how many releases of the text it is about, each drawn anew.
        per_person: what the values of each type have lost in the session until then, this release included; empty
            without a session, or where nothing is drawn.
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
        """The mean local DP of the words of all groups; infinite if one passes, 0 without groups."""
        words = sum(group.words for group in self.groups)
        return sum(group.total for group in self.groups) / words if words else 0.0

    @property
    def protected(self) -> int:
        """n, the number of words that are not public; equal words that are replaced alike count once."""
        return len(self.epsilon_per_word) if self.counts is None else int(self.counts.sum())

    @property
    def covered(self) -> int:
        """How many words are not public, wherever they stand: equal words that are replaced alike count each time."""
        return self.protected + self.repeated

    @property
    def draws(self) -> bool:
        """Whether anything that is released was drawn, for this release or an earlier one of the session."""
        return self.claim.draws and self.drawn + self.drawn_before > 0

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why no finite bound holds; empty when one does."""
        return ((self.claim.reason,) if self.claim.kind == "none" else ()) + self.infinite

    @property
    def kind(self) -> Kind:
        """The claim's kind, or `none` where something else leaves no finite bound."""
        return "none" if self.reasons else self.claim.kind

    @property
    def epsilon(self) -> float:
        """The printed bound: the largest epsilon of a protected word; 0 without any, infinite if no bound holds."""
        if self.kind == "none":
            return math.inf
        return float(self.epsilon_per_word.max(initial=0.0))

    @property
    def epsilon_ldp(self) -> float:
        """The bound for any two words of the table: epsilon * diameter, plus the additive part, or a smaller one."""
        return float(self.ldp_per_word.max(initial=0.0))

    @property
    def ldp_per_word(self) -> Values:
        """Local DP for each value of `epsilon_per_word`. What several words tell about one person is their sum."""
        if self.kind == "none":
            return np.full(max(1, len(self.epsilon_per_word)), math.inf)
        return self.claim.ldp(self.epsilon_per_word)

    @property
    def restricted(self) -> Restricted | None:
        """The claim's promise for some pairs of words, if it holds for every protected word of this text."""
        holds = self.protected and not self.infinite and math.isfinite(self.within)
        return self.claim.restricted if holds else None

    # ---- in words ------------------------------------------------------------------------------------

    def summary(self) -> str:
        """The statement in one plain sentence: what was done to the words, and what that guarantees."""
        return wording.summary(self)

    def headline(self) -> str:
        """The statement in three lines: the bound, where it holds, and what is released besides."""
        return wording.headline(self)

    def explain(self) -> str:
        """The whole statement: headline, formula, domain, values per word, assumptions and caveats."""
        return wording.explain(self)

    @property
    def repeatable(self) -> bool:
        """Whether something was drawn from a seed, so that whoever knows the seed can draw it again."""
        return self.seeded and self.draws

    @property
    def neighbours(self) -> str:
        """What may differ between the two texts that the statement compares."""
        return (
            "one protected word"
            + (", at all places that the mask calls equal" if self.consistent else "")
            + (" in all releases of this subject" if self.lasting else "")
        )

    def total(self, values: NDArray[Any]) -> float:
        """The sum over all words of values that go with those of `epsilon_per_word`."""
        return float(values.sum() if self.counts is None else values @ self.counts)

    # ---- as JSON -------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        """The statement as plain data; its schema is `textveil/data/guarantee.schema.json`.

        Infinite values are the string "infinite". Where equal values are counted, `epsilon_per_word` has an object per
        value instead of a value per word.
        """
        claim = self.claim
        spent: list[object] = [_plain(value) for value in self.epsilon_per_word.tolist()]
        if self.counts is not None:
            spent = [
                {"epsilon": each, "words": n}
                for each, n in zip(spent, self.counts.tolist(), strict=True)
            ]
        drawn = self.parameter[np.isfinite(self.parameter)]
        parameter = (
            {"name": claim.parameter, "min": float(drawn.min()), "max": float(drawn.max())}
            if claim.parameter and len(drawn)
            else None
        )
        return {
            "version": VERSION,
            "mechanism": claim.mechanism,
            "options": _plain(claim.options),
            "kind": self.kind,
            "metric": claim.metric,
            "unit": self.unit,
            "table": claim.table,
            "epsilon": _plain(self.epsilon),
            "epsilon_per_word": spent,
            "epsilon_ldp": _plain(self.epsilon_ldp),
            "diameter": _plain(claim.diameter) if claim.kind == "metric" else None,
            "additive": claim.additive,
            "restricted": self._restricted_json(),
            "groups": [group.to_json() for group in self.groups],
            "mean_epsilon_ldp": _plain(self.mean_ldp) if self.groups else None,
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
            "per_person": [each.to_json() for each in self.per_person],
            "infinite_because": list(self.reasons),
            "assumptions": list(claim.assumptions),
            "caveats": list(claim.caveats),
            "budget_found": claim.found or None,
            "texts": self.texts,
            "summary": self.summary(),
            "statement": self.headline(),
        }

    def _restricted_json(self) -> dict[str, object] | None:
        promise = self.restricted
        if promise is None:
            return None
        return {
            "domain": promise.domain,
            "kind": promise.kind,
            "metric": promise.metric,
            "epsilon": self.within,
            "epsilon_ldp": _plain(promise.ldp(self.within)),
            "diameter": _plain(promise.diameter) if promise.kind == "metric" else None,
            "additive": promise.additive,
        }

    def pack(self) -> dict[str, Any]:
        """All fields as plain data, for `unpack` of this version of textveil."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "claim": asdict(self.claim),
            "epsilon_per_word": self.epsilon_per_word.tolist(),
            "parameter": self.parameter.tolist(),
            "counts": None if self.counts is None else self.counts.tolist(),
            "groups": [asdict(group) for group in self.groups],
        }

    @classmethod
    def unpack(cls, packed: Mapping[str, Any]) -> Self:
        """The statement that `pack` wrote; it may have been JSON in between, which turns tuples into lists."""
        claim: dict[str, Any] = {
            name: tuple(each) if isinstance(each, list) else each
            for name, each in packed["claim"].items()
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
                "per_person": tuple(Loss(*each) for each in packed.get("per_person", ())),
                "infinite": tuple(packed["infinite"]),
            }
        )


def _plain(value: object) -> object:
    """A value as JSON can hold it: infinity becomes a string."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value
