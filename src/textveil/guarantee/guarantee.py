"""Statements: what is proved about one released text, in words and as JSON.

In: a mechanism's claim, epsilon per word, the names of the mask's fields. Out: `Guarantee`.
Not here: composition over releases and texts (`accounting`), and the proofs (docs/guarantees).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from textveil.guarantee.claim import Claim, Kind, Restricted
from textveil.guarantee.wording import _also, _between, _count, _plain, _plus, _texts, number
from textveil.randomness import Ints, Values

Unit = Literal["word", "wordpiece"]

VERSION = 1
"""Version of the JSON form; it changes when a field changes its meaning."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """What the words of one group spend, in local DP, so that groups under several mechanisms compare.

    Attributes:
        label: the group, or the type of names or placeholders.
        words: how many words are in it.
        by: what replaces them: a mechanism's name, "name" from a public list, "placeholder", "nothing" where they pass.
        epsilon: the largest value of a word; infinite where one passes.
        total: the sum over its words.
    """

    label: str
    words: int
    by: str
    epsilon: float
    total: float

    def to_json(self) -> dict[str, object]:
        """As plain data, with the mean in place of the sum."""
        mean = self.total / self.words if self.words else 0.0
        return {
            "label": self.label,
            "words": self.words,
            "by": self.by,
            "epsilon_ldp": _plain(self.epsilon),
            "mean_epsilon_ldp": _plain(mean),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Guarantee:
    """The statement that goes with a released text.

    For every fixed mask and any two texts consistent with it that differ only in protected word j, x_j and x'_j:
    |ln Pr[y | x] - ln Pr[y | x']| <= epsilon_j * d(x_j, x'_j) for every output y. Nothing is claimed about the
    mask, which is released.

    Attributes:
        claim: the mechanism's part.
        epsilon_per_word: float64 [n], one value per released item that is not public, in order; 0 for a
            placeholder, infinite for a word that passes.
        parameter: the mechanism's own parameter at every position where it ran, float64.
        unit: `word`, or `wordpiece`: a word's value is then the sum over its pieces.
        words: words of the text, public ones included.
        placeholders: protected words replaced by a placeholder.
        mask: names of what is released besides the words.
        drawn: positions at which something was drawn.
        seeded: whether the draws came from a seed.
        oov: what was done with unknown words, as the option `words.oov` says.
        infinite: reasons, besides the claim's own, why no finite statement holds.
        oov_share: share of the words not on the public list that are outside the table.
        texts: how many texts the statement sums up.
        counts: int64, how many words have each value of `epsilon_per_word`; None where there is a value per word
            (see `condense`).
        within: the largest epsilon of a protected word under the claim's restricted promise; infinite without one.
        groups: what each group spends; empty where words are not grouped.
        consistent: whether equal words have equal releases, so that texts differ in all of them at once.
        repeated: protected words that have the release of an equal one, and no value of their own.
    """

    claim: Claim
    epsilon_per_word: Values = field(repr=False)
    parameter: Values = field(repr=False)
    unit: Unit = "word"
    words: int
    placeholders: int
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

    @property
    def mean_ldp(self) -> float:
        """Local DP of a word that is not public, on average over the words of all groups; infinite if one passes."""
        words = sum(group.words for group in self.groups)
        return sum(group.total for group in self.groups) / words if words else 0.0

    @property
    def protected(self) -> int:
        """n, the number of words that were not passed as public; equal words with one release count once."""
        return len(self.epsilon_per_word) if self.counts is None else int(self.counts.sum())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why no finite statement holds; empty when one does."""
        return ((self.claim.reason,) if self.claim.kind == "none" else ()) + self.infinite

    @property
    def kind(self) -> Kind:
        """The claim's kind, or `none` where something else makes the statement infinite."""
        return "none" if self.reasons else self.claim.kind

    @property
    def epsilon(self) -> float:
        """The printed bound: the largest epsilon of a protected word, 0 without any, infinite without a statement."""
        if self.kind == "none":
            return math.inf
        return float(self.epsilon_per_word.max(initial=0.0))

    @property
    def epsilon_ldp(self) -> float:
        """What the bound means for any two words of the table: epsilon * diameter, plus the additive part."""
        return float(self.ldp_per_word.max(initial=0.0))

    @property
    def ldp_per_word(self) -> Values:
        """Local DP for each value of `epsilon_per_word`; over the words these add up when one person chose several."""
        if self.kind == "none":
            return np.full(max(1, len(self.epsilon_per_word)), math.inf)
        return self.claim.ldp(self.epsilon_per_word)

    @property
    def restricted(self) -> Restricted | None:
        """The claim's promise for some pairs only, where it holds for every protected word of this text."""
        holds = self.protected and not self.infinite and math.isfinite(self.within)
        return self.claim.restricted if holds else None

    # ---- in words ------------------------------------------------------------------------------------

    def headline(self) -> str:
        """The statement in three lines: the bound, its domain, what is released besides."""
        return "\n".join((self._bound() + self._aside() + self._by_group(), self._domain(), self._besides()))

    def _bound(self) -> str:
        name = self.claim.mechanism
        if self.kind == "none":
            return f"{name}: no finite privacy statement holds: {'; '.join(self.reasons)}."
        if not self.protected:
            return f"{name}: no word was protected, so there is nothing to bound."
        each = f"each of {self.protected:,} protected words" if self.protected > 1 else "the protected word"
        each += f" in {self.texts:,} texts" if self.texts > 1 else ""
        if self.kind == "ldp" or self.epsilon == 0:
            return f"{name}: {each} has local DP with epsilon <= {number(self.epsilon)}."
        claim = self.claim
        return (
            f"{name}: {each} has epsilon <= {number(self.epsilon)} per unit of {claim.metric} distance"
            f"{_also(claim.additive)}; local DP <= {number(self.epsilon_ldp)} over {claim.table} "
            f"(diameter {number(claim.diameter, 5)}{claim.view and ' ' + claim.view})."
        )

    def _aside(self) -> str:
        """The restricted promise: second, and never without its domain."""
        promise = self.restricted
        if promise is None:
            return ""
        if promise.kind == "ldp" or self.within == 0:
            bound = f"local DP with epsilon <= {number(self.within)}"
        else:
            bound = (
                f"epsilon <= {number(self.within)} per unit of {promise.metric} distance{_also(promise.additive)}; "
                f"local DP <= {number(_induced(promise, self.within))} (diameter {number(promise.diameter, 5)})"
            )
        return f" Between {promise.domain} only: {bound}."

    def _by_group(self) -> str:
        """What each group spends; where the bound is infinite, that is a promise for texts with the same mask only."""
        if not self.groups:
            return ""
        said = ", ".join(_spends(group) for group in self.groups)
        domain = "Between texts with the same mask, local DP by group" if self.kind == "none" else "Local DP by group"
        return f" {domain}: {said}."

    def _domain(self) -> str:
        public = self.words - self.protected - self.repeated
        passed = f" {public} of {_count(self.words, 'word')} passed as public and are not covered." if public else ""
        if self.claim.kind != "none" and (bare := int(self._sum(np.isinf(self.epsilon_per_word)))):
            passed += f" {_count(bare, 'more word')} went unprotected."
        if not self.protected:
            return passed.strip() or "The text has no words."
        if self.kind == "none":
            nothing = "Beyond that, nothing" if self.restricted or self.groups else "Nothing"
            return f"{nothing} bounds what the output tells of the protected words.{passed}"
        return f"Holds for any two texts with the same mask that differ in {self._neighbours}.{passed}"

    @property
    def _neighbours(self) -> str:
        """In what two texts may differ."""
        return "one protected word" + (", at all places that the mask calls equal" if self.consistent else "")

    def _besides(self) -> str:
        draws = "Draws: AES, keyed by the operating system."
        if not (self.claim.draws and self.drawn):
            draws = "Nothing is drawn."
        elif self.seeded:
            draws = "No privacy against anyone who knows the seed."
        return f"Nothing is claimed about the mask, which is released: {', '.join(self.mask)}. {draws}"

    def explain(self) -> str:
        """The whole statement: headline, formula, domain, values per word, assumptions and caveats."""
        claim = self.claim
        lines = [self.headline(), ""]
        if self.kind == "metric":
            lines += [
                _PAIRS,
                f"  {_LOSS} <= epsilon_j * d(x_j, x'_j){_plus(claim.additive)}   for every output y,",
                f"  d = {_METRICS[claim.metric or '']} between the rows of {claim.table}.",
            ]
        elif self.kind == "ldp":
            lines += [
                _PAIRS,
                f"  {_LOSS} <= epsilon_j   for every output y.",
            ]
        if self.protected and self.kind != "none":
            low, high = self.epsilon_per_word.min(), self.epsilon_per_word.max()
            total, everywhere = number(self._sum(self.epsilon_per_word)), number(self._sum(self.ldp_per_word))
            lines.append(f"epsilon_j: {_between(low, high)}, sum {total} over {_texts(self.texts)}.")
            lines.append(
                f"Two texts that differ in several words: the bounds add up; in all words, local DP {everywhere}."
            )
        if self.restricted:
            lines += self._explain_restricted(self.restricted)
        drawn = self.parameter[np.isfinite(self.parameter)]
        if claim.parameter and len(drawn):
            lines.append(f"{claim.parameter}: {_between(drawn.min(), drawn.max())}.")
        if self.unit == "wordpiece":
            lines.append(
                "Unit: a word; its epsilon is the sum over its word pieces, their distance the largest of a piece."
            )
        lines.append(
            f"{_INPUTS.get(self.oov, _INPUTS['surrogate'])} "
            f"{self.oov_share:.1%} of the words not on the public list were outside the table."
        )
        if self.placeholders:
            lines.append(
                f"{_count(self.placeholders, 'word')} became placeholders: epsilon 0 for the value; "
                "position and type are in the mask."
            )
        lines += [f"Assumes: {text}." for text in claim.assumptions]
        lines += [f"Note: {text}." for text in claim.caveats]
        return "\n".join(lines)

    def _explain_restricted(self, promise: Restricted) -> list[str]:
        bound = f"{number(self.within)}{_plus(promise.additive)}"
        if promise.kind == "metric":
            bound = f"{number(self.within)} * d(x_j, x'_j){_plus(promise.additive)}"
        lines = [
            f"{_PAIRS[:-1]}, where x_j and x'_j are {promise.domain}:",
            f"  {_LOSS} <= {bound}   for every output y.",
        ]
        if promise.kind == "metric":
            lines[1] = lines[1][:-1] + ","
            lines.append(f"  d = {_METRICS[promise.metric or '']} between the rows of {self.claim.table}.")
        if self.unit == "wordpiece":
            lines.append("For word pieces, each piece and the one in its place have to be such a pair.")
        return lines

    def _sum(self, values: NDArray[Any]) -> float:
        """The sum over all words of something that each value of `epsilon_per_word` has."""
        return float(values.sum() if self.counts is None else values @ self.counts)

    # ---- as JSON -------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        """The statement as plain data; its schema is `textveil/data/guarantee.schema.json`.

        An infinite value is the string "infinite". Where equal values are counted, `epsilon_per_word` holds an object
        per value instead of a value per word.
        """
        claim = self.claim
        spent: list[object] = [_plain(value) for value in self.epsilon_per_word.tolist()]
        if self.counts is not None:
            spent = [{"epsilon": each, "words": n} for each, n in zip(spent, self.counts.tolist(), strict=True)]
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
            "adjacency": f"two texts with the same mask that differ in {self._neighbours}",
            "mask": list(self.mask),
            "words": self.words,
            "protected": self.protected,
            "placeholders": self.placeholders,
            "oov_share": self.oov_share,
            "seeded": self.seeded,
            "infinite_because": list(self.reasons),
            "assumptions": list(claim.assumptions),
            "caveats": list(claim.caveats),
            "texts": self.texts,
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
            "epsilon_ldp": _plain(_induced(promise, self.within)),
            "diameter": _plain(promise.diameter) if promise.kind == "metric" else None,
            "additive": promise.additive,
        }

    def pack(self) -> dict[str, Any]:
        """All fields as plain data, from which `unpack` makes the same statement; for this version only."""
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
        """The statement that `pack` wrote, also after JSON, which makes lists of tuples."""
        claim: dict[str, Any] = {
            name: tuple(each) if isinstance(each, list) else each for name, each in packed["claim"].items()
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
                "infinite": tuple(packed["infinite"]),
            }
        )


_PAIRS = "For every fixed mask and any two texts x, x' consistent with it that differ only in protected word j:"
_INPUTS = {
    "surrogate": "Inputs: any string; a word outside the table is first mapped to a row by a public function.",
    "placeholder": "Inputs: the table's words; a word outside the table becomes a placeholder, which the mask shows.",
    "error": "Inputs: the table's words; a text with any other word is refused, which shows too.",
    "keep": "Inputs: the table's words; a word outside the table passes unprotected.",
    "uniform": "Inputs: the table's words; in place of any other a word is drawn evenly from the table.",
    "drop": "Inputs: the table's words; any other word vanishes.",
}
_LOSS = "|ln Pr[y | x] - ln Pr[y | x']|"
_METRICS = {
    "chord": "the chord (distance between unit rows)",
    "euclidean": "the Euclidean distance (between raw rows)",
    "l1": "the l1 distance",
}


def _induced(promise: Restricted, epsilon: float) -> float:
    """Local DP inside the domain of a restricted promise."""
    if promise.kind == "ldp" or epsilon == 0:
        return epsilon
    return epsilon * promise.diameter + promise.additive


def _spends(group: Group) -> str:
    words = _count(group.words, _WHAT.get(group.by, "word"))
    if group.by == "nothing":
        return f"{group.label} passes ({words})"
    return f"{group.label} {'<= ' if group.epsilon else ''}{number(group.epsilon)} ({words})"


_WHAT = {"placeholder": "placeholder", "name": "name"}
