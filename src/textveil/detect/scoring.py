"""Scoring: how probable it is that a span is private, by how it looks and by what else its text holds.

In: spans of textveil's own detectors, among them those of which the bundled tagger is in doubt; the words of their
texts. Out: the same spans with this probability. Weights come from `training/odds.py` of the repository.
Not here: the detectors (`adapters`, `keyvalue`), and which spans count (`stages`).

A single word that may be a name says little alone. Beside other private names it is likely to be one, too; in a text
that holds nothing else it is not. So a candidate, which is all spans of the same words, is judged twice. A small
network reads what the tagger read at it and in the words around (`Evidence`), and what detectors say of it (`OWN`). A
second one reads what the first says of it and of the candidates beside it, and which identifiers are near (`BESIDE`).
Both are fitted on texts that the tagger was not trained on: of those that it knows, the tagger is too sure.

What is said of a text depends on that text alone, and the time is linear in its words.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

import numpy as np

from textveil.detect.context_cues import is_relation
from textveil.detect.keyvalue.elided import is_doubtful
from textveil.detect.normalization import atoms
from textveil.detect.spans import NAMES, Span
from textveil.models import DETAILS, TOLD, Evidence
from textveil.randomness import Values
from textveil.text import Late, Tokens

JUDGED = ("tagger", "structure")
"""The detectors whose spans are candidates."""

DOUBT = 3.0
"""The doubt of the bundled tagger, see `TokenClassifier.doubt`."""

OWN = (
    "tagger",
    "structure",
    "detail",
    "uncased",
    "one",
    "two",
    "short",
    "line",
    "relation",
)
"""What is known of a candidate besides evidence: who found it; whether it is one of the tagger's `DETAILS`; the share
of words in scripts without capitals; whether it is one word, two, at most `SHORT` letters; whether it begins a line;
whether words for somebody whom the writer knows stand before it."""

DETAIL = OWN.index("detail")

BESIDE = (
    *(
        "odds",
        "any",
        "surest",
        "mean",
        "sum",
        "share",
        "private",
        "others",
        "last",
        "next",
        "alike",
        "surest alike",
    ),
    *("identifiers", "any identifier", "distance", "text", "length"),
)
"""What the second network reads of a candidate: its log odds; of the up to `NEAR` candidates before and behind it
whether there are any, the largest and the mean of their log odds, the logarithm of their odds' sum, the share and
number of those that are rather private, and how many there are; the log odds of the one before and of the next; whether
another candidate of the text has a word of it, and the largest log odds of those; how many identifiers are within
`REACH` characters, and how far away the nearest is; how long the text is, and the candidate. Numbers, distances and
lengths are logarithms."""

NEAR = 10
REACH = 1000
LONG = 2000
"""Characters from which on all texts count as equally long."""

LENIENT = 2.0
"""What is added to the log odds of a surname with an apostrophe that begins a sentence: the tagger saw few of them."""

NONE = -4.0
"""The log odds that stand for those of no candidate."""

SHORT = 3
BEFORE = 60
"""Characters before a candidate that are looked at."""

_LINE = Late(r"(?:\A|\n)\W*\Z")
_UNCASED = Late(r"\p{Lo}")


class Candidate(NamedTuple):
    """What detectors found at one place.

    Args:
        text: the index of the text.
        start: first character.
        end: one past the last.
        spans: the places of the spans among all that were found.
    """

    text: int
    start: int
    end: int
    spans: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """A network of one layer of hidden units.

    Attributes:
        units: float64 [units, features], what each feature adds to a hidden unit: of the first network `OWN` and what
            evidence tells, of the second `BESIDE`. What the encoder's states add to the first, over the candidate and
            over the words around, are the readings of the tagger.
        bias: float64 [units].
        sum: float64 [units], what each unit above 0 adds to the log odds.
        base: float64, the log odds where no unit is above 0.
    """

    units: Values
    bias: Values
    sum: Values
    base: Values


class Jury(NamedTuple):
    """Those who judge candidates.

    Args:
        first: the network that reads a candidate and the words around.
        second: the one that reads what the first says of it and of others.
        least: float64 [2], the log odds from which names count as private, and `DETAILS`; they become a probability of
            .5.
    """

    first: Weights
    second: Weights
    least: Values


@cache
def jury() -> Jury:
    """Those of the package."""
    kept = json.loads((files("textveil") / "data" / "constants" / "odds.json").read_text("utf-8"))
    first, second = (
        Weights(**{name: np.array(values, np.float64) for name, values in kept[each].items()})
        for each in ("first", "second")
    )
    return Jury(first, second, np.array(kept["least"], np.float64))


def judged(spans: Sequence[Span], tokens: Tokens) -> list[Span]:
    """The spans, with the probability that each is private; as they are those of other detectors, and what keys tell.

    Args:
        spans: what was found, by the bundled tagger with `DOUBT`.
        tokens: the words of the texts.
    """
    found = candidates(spans)
    by = jury()
    over, around = readings(found, spans, len(by.first.bias))
    known = features(found, spans, tokens)
    own = odds(known, over + around, by.first)
    both = odds(beside(found, spans, tokens.texts, own), np.zeros(1), by.second)
    doubtful = [
        any(spans[i].source == "structure" for i in each.spans)
        and is_doubtful(tokens.texts[each.text][each.start : each.end])
        for each in found
    ]
    private = probability(
        both - by.least[known[:, DETAIL].astype(int)] + np.where(doubtful, LENIENT, 0.0)
    )
    result = list(spans)
    for candidate, probable in zip(found, private.tolist(), strict=True):
        for i in candidate.spans:
            if not is_told(spans[i]):
                result[i] = spans[i]._replace(private=probable)
    return result


def is_told(span: Span) -> bool:
    """Whether a key tells that a value is private, so that its odds do not count; a name's key may be a thing's."""
    return span.source == "structure" and span.type != "PERSON"


def candidates(spans: Sequence[Span]) -> list[Candidate]:
    """The places of spans that are judged, in order; spans that overlap are of one candidate."""
    found: list[Candidate] = []
    for i, span in sorted(enumerate(spans), key=lambda each: each[1]):
        if span.source not in JUDGED or span.type not in (*NAMES, *DETAILS):
            continue
        if found and found[-1].text == span.text and span.start < found[-1].end:
            last = found.pop()
            found.append(last._replace(end=max(last.end, span.end), spans=(*last.spans, i)))
        else:
            found.append(Candidate(span.text, span.start, span.end, (i,)))
    return found


def features(found: Sequence[Candidate], spans: Sequence[Span], tokens: Tokens) -> Values:
    """`OWN` of each candidate, then what its evidence tells, float64 [K, own + told]; zeros without evidence."""
    rows = [_own(each, [spans[i] for i in each.spans], tokens) for each in found]
    return np.array(rows, np.float64).reshape(len(found), len(OWN) + TOLD)


def readings(
    found: Sequence[Candidate], spans: Sequence[Span], units: int
) -> tuple[Values, Values]:
    """What was read over and around each candidate, two of float64 [K, units]; zeros without evidence."""
    none = (0.0,) * units
    known = [evidence_of([spans[i] for i in each.spans]) for each in found]
    over = [none if each is None else each.over for each in known]
    around = [none if each is None else each.around for each in known]
    size = len(found), units
    return np.array(over, np.float64).reshape(size), np.array(around, np.float64).reshape(size)


def evidence_of(spans: Sequence[Span]) -> Evidence | None:
    """That of the span that the tagger is surest of."""
    tagged = [span for span in spans if span.evidence is not None]
    return max(tagged, key=lambda span: span.score).evidence if tagged else None


def _own(candidate: Candidate, spans: Sequence[Span], tokens: Tokens) -> list[float]:
    text, start, *_ = candidate
    words = [word for word in tokens.words[slice(*_words(candidate, tokens))] if word.isalnum()]
    before = tokens.texts[text][max(0, start - BEFORE) : start]
    tagged = [span for span in spans if span.source == "tagger"]
    best = max(tagged or spans, key=lambda span: span.score)
    evidence = evidence_of(spans)
    return [
        bool(tagged),
        any(span.source == "structure" for span in spans),
        best.type in DETAILS,
        sum(_UNCASED.search(word) is not None for word in words) / max(1, len(words)),
        len(words) == 1,
        len(words) == 2,
        sum(map(len, words)) <= SHORT,
        _LINE.search(before) is not None,
        is_relation(before),
        *((0.0,) * TOLD if evidence is None else evidence.told),
    ]


def odds(known: Values, read: Values, by: Weights) -> Values:
    """The log odds of candidates by one network, float64 [K].

    Args:
        known: float64 [K, features], what it reads of each.
        read: float64 [K, units], what was read there and around, together; zeros for the second.
        by: its weights.
    """
    units = np.maximum(_weighed(known, by.units) + read + by.bias, 0.0)
    found: Values = _weighed(units, by.sum[None])[:, 0] + by.base
    return found


def beside(
    found: Sequence[Candidate], spans: Sequence[Span], texts: Sequence[str], own: Values
) -> Values:
    """`BESIDE` of each candidate, float64 [K, features].

    Args:
        found: all candidates of the texts, in order.
        spans: what was found, among them identifiers.
        texts: the texts.
        own: float64 [K], the log odds of each by the first network.
    """
    identifiers: list[list[int]] = [[] for _ in texts]
    candidate_spans = {i for each in found for i in each.spans}
    for i, span in enumerate(spans):
        if i not in candidate_spans and span.private >= 0.5:
            identifiers[span.text].append(span.start)
    rows: list[list[float]] = []
    for text, own_of in groupby(range(len(found)), key=lambda k: found[k].text):
        places = [*own_of]
        rows += _beside(
            [found[k] for k in places], sorted(identifiers[text]), texts[text], own[places]
        )
    return np.array(rows, np.float64).reshape(len(found), len(BESIDE))


def _beside(
    found: Sequence[Candidate], identifiers: Sequence[int], text: str, own: Values
) -> Iterator[list[float]]:
    """The same for the candidates of one text; of its identifiers, where they begin."""
    words = [
        {atom.text for atom in atoms(text[each.start : each.end]) if len(atom.text) > 1}
        for each in found
    ]
    holders: dict[str, list[int]] = {}
    for k, own_words in enumerate(words):
        for word in own_words:
            holders.setdefault(word, []).append(k)
    best = {word: sorted(which, key=own.__getitem__)[-2:] for word, which in holders.items()}
    for k, each in enumerate(found):
        others = np.concatenate([own[max(0, k - NEAR) : k], own[k + 1 : k + 1 + NEAR]])
        alike = [own[i] for word in words[k] for i in best[word] if i != k]
        first = bisect_left(identifiers, each.start)
        distance = min(
            (abs(at - each.start) for at in identifiers[max(0, first - 1) : first + 1]),
            default=REACH,
        )
        count = bisect_right(identifiers, each.end + REACH) - bisect_left(
            identifiers, each.start - REACH
        )
        private = others > 0
        yield [
            own[k],
            len(others) > 0,
            others.max(initial=NONE),
            others.mean() if len(others) else 0.0,
            np.log1p(np.exp(np.minimum(others, 20.0)).sum()),
            private.mean() if len(others) else 0.0,
            np.log1p(private.sum()),
            np.log1p(len(others)),
            own[k - 1] if k else NONE,
            own[k + 1] if k + 1 < len(own) else NONE,
            bool(alike),
            max(alike, default=0.0),
            np.log1p(count),
            count > 0,
            np.log1p(min(distance, REACH)),
            np.log1p(min(len(text), LONG)),
            np.log1p(each.end - each.start),
        ]


def _weighed(known: Values, by: Values) -> Values:
    """The weighed sums of each row, without a product of matrices, whose last bits may depend on the other rows."""
    found: Values = np.einsum("kf,uf->ku", known, by, optimize=False)
    return found


def probability(odds: Values) -> Values:
    """From log odds to probabilities."""
    found: Values = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
    return found


def _words(candidate: Candidate, tokens: Tokens) -> tuple[int, int]:
    """The words that a candidate touches, counted over all texts: the first, and one past the last."""
    low, high = tokens.documents[candidate.text : candidate.text + 2].tolist()
    first = bisect_right(tokens.ends, candidate.start, low, high)
    return first, bisect_left(tokens.starts, candidate.end, first, high)
