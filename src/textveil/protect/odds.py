"""Odds: how probable it is that what was found is private, by how it looks and by what else its text holds.

In: spans of textveil's own detectors, among them those of which the bundled tagger is in doubt; the words of their
texts. Out: the same spans with this probability. Weights come from `training/odds.py` of the repository.
Not here: the detectors (`adapters`, `scripts`, `structure`), and which spans count (`grouping`).

A single word that may be a name says little alone. Beside other private names it is likely to be one, too; in a text
that holds nothing else it is not. All spans of the same words are one candidate:

1. The candidate's own odds follow from `OWN` alone.
2. `AROUND` are sums over the other candidates within `NEAR` words, with these odds; other places of the same value do
   not count, so that no word speaks for itself. They shift the odds and say how much the candidate's own count.

What is said of a text depends on that text alone, and the time is linear in its words.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import regex

from textveil.models import DETAILS
from textveil.protect.relations import is_relation
from textveil.protect.spans import NAMES, Span
from textveil.randomness import Values
from textveil.text import Tokens

JUDGED = ("tagger", "scripts", "structure")
"""The detectors whose spans are judged."""

DOUBT = 1.5
"""How much lower, in log odds, than the thresholds of the bundled tagger the odds of a word may be."""

OWN = (
    "score",
    "private",
    "tagger",
    "scripts",
    "unlikely",
    "structure",
    "detail",
    "uncased",
    "one",
    "two",
    "short",
    "line",
    "relation",
)
"""What is known of a candidate by itself: the log odds of the tagger's score and of its share of private labels, or 0;
who found it; whether scripts take it for public; whether it is one of the tagger's `DETAILS`; the share of words in
scripts without capitals; whether it is one word, two, at most `SHORT` letters; whether it begins a line; whether words
for somebody whom the writer knows stand before it."""

DETAIL = OWN.index("detail")

AROUND = ("sum", "most", "words")
"""What is known of the text around a candidate: the logarithm of 1 and the summed probabilities of others; the highest
log odds of others; the logarithm of 1 and the number of words. Public names among the others count no more than any
word: with them, private ones beside many public ones were missed."""

NEAR = 30
"""Words before and behind a candidate that count as around it."""

SHORT = 3
BEFORE = 60
"""Characters before a candidate that are looked at."""

LEAST, MOST, SHARE = -3.0, 6.0, 4.0
"""Log odds are cut off at these, those of shares of private labels at the last on both sides."""

_LINE = regex.compile(r"(?:\A|\n)\W*\Z")
_UNCASED = regex.compile(r"\p{Lo}")


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
    """What the odds are made of.

    Attributes:
        own: float64 [1 + own], a constant and what each of `OWN` adds to a candidate's own odds.
        shift: float64 [1 + around], a constant and what each of `AROUND` adds to the odds.
        count: float64 [1 + around], the same of the number by which a candidate's own odds are multiplied.
        low: float64 [around], the least of each of `AROUND` in the texts that they come from; less counts as this.
        high: the same of the most.
        least: float64 [2], the odds from which names count as private, and `DETAILS`; they become a probability of .5.
    """

    own: Values
    shift: Values
    count: Values
    low: Values
    high: Values
    least: Values


@cache
def weights() -> Weights:
    """Those of the package."""
    kept = json.loads((files("textveil") / "data" / "constants" / "odds.json").read_text("utf-8"))
    return Weights(**{name: np.array(values, np.float64) for name, values in kept.items()})


def judged(spans: Sequence[Span], tokens: Tokens) -> list[Span]:
    """The spans, with the probability that each is private; spans of other detectors and types as they are.

    Args:
        spans: what was found, by the bundled tagger with `DOUBT`.
        tokens: the words of the texts.
    """
    found = candidates(spans)
    known = features(found, spans, tokens)
    own = own_odds(known, weights())
    odds = with_text(own, around(own, found, tokens), weights()) - weights().least[known[:, DETAIL].astype(int)]
    result = list(spans)
    for candidate, private in zip(found, probability(odds).tolist(), strict=True):
        for i in candidate.spans:
            result[i] = spans[i]._replace(private=private)
    return result


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
    """`OWN` of each candidate, float64 [K, own]."""
    rows = [_own(each, [spans[i] for i in each.spans], tokens) for each in found]
    return np.array(rows, np.float64).reshape(len(found), len(OWN))


def _own(candidate: Candidate, spans: Sequence[Span], tokens: Tokens) -> list[float]:
    text, start, *_ = candidate
    words = [word for word in tokens.words[slice(*_words(candidate, tokens))] if word.isalnum()]
    before = tokens.texts[text][max(0, start - BEFORE) : start]
    tagged = [span for span in spans if span.source == "tagger"]
    listed = [span for span in spans if span.source == "scripts"]
    best = max(tagged or spans, key=lambda span: span.score)
    return [
        _log_odds(max(span.score for span in tagged), LEAST, MOST) if tagged else 0.0,
        _log_odds(max(span.private for span in tagged), -SHARE, SHARE) if tagged else 0.0,
        bool(tagged),
        bool(listed),
        bool(listed) and max(span.private for span in listed) < 0.5,
        any(span.source == "structure" for span in spans),
        best.type in DETAILS,
        sum(_UNCASED.search(word) is not None for word in words) / max(1, len(words)),
        len(words) == 1,
        len(words) == 2,
        sum(map(len, words)) <= SHORT,
        _LINE.search(before) is not None,
        is_relation(before),
    ]


def own_odds(known: Values, by: Weights) -> Values:
    """The log odds of candidates by themselves, float64 [K]."""
    return np.clip(_weighed(known, by.own), -MOST, MOST)


def around(own: Values, found: Sequence[Candidate], tokens: Tokens) -> Values:
    """`AROUND` of each candidate, float64 [K, around].

    Args:
        own: float64 [K], the candidates' own log odds.
        found: K candidates, in order.
        tokens: the words of the texts.
    """
    numbers: dict[str, int] = {}
    value = np.zeros(len(found), np.int64)
    place = np.zeros(len(found), np.int64)
    for k, each in enumerate(found):
        value[k] = numbers.setdefault(tokens.texts[each.text][each.start : each.end].casefold(), len(numbers))
        place[k] = _words(each, tokens)[0]
    likely = probability(own)
    result = np.zeros((len(found), len(AROUND)))
    for k, each in enumerate(found):
        first, last = tokens.documents[each.text : each.text + 2].tolist()
        first, last = max(first, int(place[k]) - NEAR), min(last, int(place[k]) + NEAR)
        near = slice(*np.searchsorted(place, (first, last)).tolist())
        other = value[near] != value[k]
        result[k] = (
            np.log1p(likely[near][other].sum()),
            max(own[near][other], default=LEAST),
            np.log1p(last - first),
        )
    return result


def with_text(own: Values, known: Values, by: Weights) -> Values:
    """The log odds of candidates, float64 [K], from their own and what is known of their texts."""
    known = np.clip(known, by.low, by.high)
    odds: Values = _weighed(known, by.shift) + own * _weighed(known, by.count)
    return odds


def _weighed(known: Values, by: Values) -> Values:
    """The weighed sum of each row, without a product of matrices, whose last bits may depend on the other rows."""
    found: Values = by[0] + (known * by[1:]).sum(axis=1)
    return found


def probability(odds: Values) -> Values:
    """From log odds to probabilities."""
    found: Values = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
    return found


def _log_odds(share: float, low: float, high: float) -> float:
    if not 0 < share < 1:
        return low if share <= 0 else high
    return min(max(float(np.log(share / (1 - share))), low), high)


def _words(candidate: Candidate, tokens: Tokens) -> tuple[int, int]:
    """The words that a candidate touches, counted over all texts: the first, and one past the last."""
    low, high = tokens.documents[candidate.text : candidate.text + 2].tolist()
    first = bisect_right(tokens.ends, candidate.start, low, high)
    return first, bisect_left(tokens.starts, candidate.end, first, high)
