"""Scoring: the probability that a span is private.

In: spans of textveil's own detectors, among them doubtful spans of the bundled tagger; the tokens
of their texts. Out: the same spans with this probability. The weights come from `training/odds.py`
of the repository.
Not here: the detectors (`library_taggers`, `keyvalue`), and which spans count (`stages`).

A single word that may be a name says little alone. Beside other private names it is likely to be
private, too; in a text without any it is not. So a candidate, which is all overlapping spans at one
place, is scored twice. A small network reads the tagger's evidence for the candidate and for the
words around it (`Evidence`), and features from the detectors (`CANDIDATE_FEATURES`). A second
network reads the first one's score of the candidate and of its neighbours, and which identifiers
are near (`NEIGHBOUR_FEATURES`). Both are fitted on texts that the tagger was not trained on: on its
training texts, the tagger is too sure.

The score of a text depends on that text alone, and the time is linear in its words.
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
from textveil.detect.keyvalue.elided_surnames import is_doubtful
from textveil.detect.normalization import split_atoms
from textveil.detect.spans import NAMES, Span
from textveil.models import DETAIL_TYPES, EVIDENCE_SIZE, EVIDENCE_WORDS, Evidence
from textveil.randomness import Values
from textveil.text import LazyPattern, Tokens

SCORED_DETECTORS = ("tagger", "structure")
"""The detectors whose spans are candidates."""

DOUBT = 3.0
"""The doubt of the bundled tagger, see `TokenClassifier.doubt`."""

CANDIDATE_FEATURES = (
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
"""Features of a candidate without evidence.

In order: whether the tagger found it; whether a key or phrase did (`structure`); whether it is one
of the tagger's `DETAILS`; the share of words in scripts without capitals; whether it is one word,
two, at most `MAX_SHORT_LETTERS` letters; whether it begins a line; whether kinship words stand
before it.
"""

DETAIL_COLUMN = CANDIDATE_FEATURES.index("detail")

NEIGHBOUR_FEATURES = (
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
"""Features that the second network reads of a candidate.

Its log odds; of the up to `MAX_NEIGHBOURS` candidates before and behind it whether there are any,
the largest
and the mean of their log odds, the logarithm of their odds' sum, the share and number of those that
are rather private, and how many there are; the log odds of the previous and of the next; whether
another candidate of the text shares a word with it, and the largest log odds of those; how many
identifiers are within `MAX_DISTANCE` characters, and how far away the nearest is; how long the text
is,
and the candidate. Numbers, distances and lengths are logarithms.
"""

MAX_NEIGHBOURS = 10
MAX_DISTANCE = 1000
MAX_TEXT_CHARACTERS = 2000
"""The length in characters from which all texts count as equally long."""

ELISION_BONUS = 2.0
"""Log odds added to a surname with an apostrophe that begins a sentence.

The tagger saw few of them.
"""

NO_NEIGHBOUR_ODDS = -4.0
"""Log odds used as padding where there is no neighbour."""

MAX_SHORT_LETTERS = 3
CUE_CHARACTERS = 60
"""The number of characters before a candidate that are searched for cues."""

_LINE = LazyPattern(r"(?:\A|\n)\W*\Z")
_UNCASED = LazyPattern(r"\p{Lo}")


class Candidate(NamedTuple):
    """A place in a text at which detectors found spans.

    Args:
        text: the index of the text.
        start: first character.
        end: one past the last.
        spans: the indices of its spans among all spans.
    """

    text: int
    start: int
    end: int
    spans: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """The weights of a network with one hidden layer.

    Attributes:
        units: float64 [units, features], the weight of each feature in each hidden unit. Features
            of the first network are `CANDIDATE_FEATURES` and the evidence's, of the second
            `NEIGHBOUR_FEATURES`. The first one's units also get the tagger's readings of the
            encoder's states, over the candidate and over the words around.
        bias: float64 [units], the biases of the hidden units.
        sum: float64 [units], the weight of each unit above 0 in the log odds.
        base: float64, the log odds where no unit is above 0.
    """

    units: Values
    bias: Values
    sum: Values
    base: Values


class SpanClassifier(NamedTuple):
    """The two networks that score candidates, and their thresholds.

    Args:
        first: the network that reads a candidate and the words around.
        second: the network that reads the first one's scores of a candidate and of its neighbours.
        thresholds: float64 [2], the log odds from which names, and `DETAILS`, count as private;
            they become a probability of .5.
    """

    first: Weights
    second: Weights
    thresholds: Values


@cache
def load_networks() -> SpanClassifier:
    """Reads the networks of the package."""
    constants = json.loads(
        (files("textveil") / "data" / "constants" / "odds.json").read_text("utf-8")
    )
    first, second = (
        Weights(**{name: np.array(values, np.float64) for name, values in constants[layer].items()})
        for layer in ("first", "second")
    )
    return SpanClassifier(first, second, np.array(constants["least"], np.float64))


def score_spans(spans: Sequence[Span], tokens: Tokens) -> list[Span]:
    """Sets the probability that each span is private.

    Spans of other detectors, and values behind a key that proves them private, keep theirs.

    Args:
        spans: the spans of all detectors; the bundled tagger must have run with `DOUBT`.
        tokens: the tokens of the texts.
    """
    places = group_candidates(spans)
    classifier = load_networks()
    readings = collect_readings(places, spans, len(classifier.first.bias))
    feature_rows = build_features(places, spans, tokens)
    first_odds = compute_log_odds(feature_rows, readings.sum(axis=0), classifier.first)
    log_odds = compute_log_odds(
        build_neighbour_features(places, spans, tokens.texts, first_odds),
        np.zeros(1),
        classifier.second,
    )
    doubtful = [
        any(spans[i].source == "structure" for i in place.spans)
        and is_doubtful(tokens.texts[place.text][place.start : place.end])
        for place in places
    ]
    private = sigmoid(
        log_odds
        - classifier.thresholds[feature_rows[:, DETAIL_COLUMN].astype(int)]
        + np.where(doubtful, ELISION_BONUS, 0.0)
    )
    result = list(spans)
    for candidate, probable in zip(places, private.tolist(), strict=True):
        for i in candidate.spans:
            if not is_from_key(spans[i]):
                result[i] = spans[i]._replace(privacy_score=probable)
    return result


def is_from_key(span: Span) -> bool:
    """True if a key proves that a value is private.

    Its odds then do not count. A name's key may be that of a thing, so it proves nothing.
    """
    return span.source == "structure" and span.type != "PERSON"


def group_candidates(spans: Sequence[Span]) -> list[Candidate]:
    """Groups overlapping spans that are scored into candidates, in order."""
    groups: list[Candidate] = []
    for i, span in sorted(enumerate(spans), key=lambda pair: pair[1]):
        if span.source not in SCORED_DETECTORS or span.type not in (*NAMES, *DETAIL_TYPES):
            continue
        if groups and groups[-1].text == span.text and span.start < groups[-1].end:
            last = groups.pop()
            groups.append(last._replace(end=max(last.end, span.end), spans=(*last.spans, i)))
        else:
            groups.append(Candidate(span.text, span.start, span.end, (i,)))
    return groups


def build_features(
    candidates: Sequence[Candidate], spans: Sequence[Span], tokens: Tokens
) -> Values:
    """Computes the features of each candidate, `CANDIDATE_FEATURES` and then its evidence.

    Returns:
        float64 [K, own + told]; zeros where a candidate has no evidence.
    """
    rows = [
        _compute_candidate_features(candidate, [spans[i] for i in candidate.spans], tokens)
        for candidate in candidates
    ]
    return np.array(rows, np.float64).reshape(
        len(candidates), len(CANDIDATE_FEATURES) + EVIDENCE_SIZE
    )


def collect_readings(candidates: Sequence[Candidate], spans: Sequence[Span], units: int) -> Values:
    """Returns the tagger's readings over and around each candidate.

    Returns:
        float64 [parts, K, units], a part for each of `EVIDENCE_WORDS`; zeros where a candidate has
        no evidence.
    """
    none = ((0.0,) * units,) * len(EVIDENCE_WORDS)
    evidences = [get_evidence([spans[i] for i in candidate.spans]) for candidate in candidates]
    readings = [none if evidence is None else evidence.readings for evidence in evidences]
    shape = len(candidates), len(EVIDENCE_WORDS), units
    return np.array(readings, np.float64).reshape(shape).swapaxes(0, 1)


def get_evidence(spans: Sequence[Span]) -> Evidence | None:
    """Returns the evidence of the tagger's best-scored span."""
    tagged = [span for span in spans if span.evidence is not None]
    return max(tagged, key=lambda span: span.score).evidence if tagged else None


def _compute_candidate_features(
    candidate: Candidate, spans: Sequence[Span], tokens: Tokens
) -> list[float]:
    text, start, *_ = candidate
    words = [
        word for word in tokens.words[slice(*_find_tokens(candidate, tokens))] if word.isalnum()
    ]
    before = tokens.texts[text][max(0, start - CUE_CHARACTERS) : start]
    tagged = [span for span in spans if span.source == "tagger"]
    best = max(tagged or spans, key=lambda span: span.score)
    evidence = get_evidence(spans)
    return [
        bool(tagged),
        any(span.source == "structure" for span in spans),
        best.type in DETAIL_TYPES,
        sum(_UNCASED.search(word) is not None for word in words) / max(1, len(words)),
        len(words) == 1,
        len(words) == 2,
        sum(map(len, words)) <= MAX_SHORT_LETTERS,
        _LINE.search(before) is not None,
        is_relation(before),
        *((0.0,) * EVIDENCE_SIZE if evidence is None else evidence.summary),
    ]


def compute_log_odds(feature_rows: Values, readings: Values, weights: Weights) -> Values:
    """Computes the log odds of candidates by one network.

    Args:
        feature_rows: float64 [K, features], the features of each candidate.
        readings: float64 [K, units], the readings over and around it, summed; zeros for the second
            network.
        weights: the network's weights.

    Returns:
        float64 [K].
    """
    units = np.maximum(_sum_weighted(feature_rows, weights.units) + readings + weights.bias, 0.0)
    log_odds: Values = _sum_weighted(units, weights.sum[None])[:, 0] + weights.base
    return log_odds


def build_neighbour_features(
    candidates: Sequence[Candidate], spans: Sequence[Span], texts: Sequence[str], log_odds: Values
) -> Values:
    """Computes the features `NEIGHBOUR_FEATURES` of each candidate.

    Args:
        candidates: all candidates of the texts, in order.
        spans: all spans, among them identifiers.
        texts: the texts.
        log_odds: float64 [K], the log odds of each candidate by the first network.

    Returns:
        float64 [K, features].
    """
    identifiers: list[list[int]] = [[] for _ in texts]
    candidate_spans = {i for candidate in candidates for i in candidate.spans}
    for i, span in enumerate(spans):
        if i not in candidate_spans and span.privacy_score >= 0.5:
            identifiers[span.text].append(span.start)
    rows: list[list[float]] = []
    for text, text_numbers in groupby(range(len(candidates)), key=lambda k: candidates[k].text):
        places = [*text_numbers]
        rows += _compute_neighbour_features(
            [candidates[k] for k in places],
            sorted(identifiers[text]),
            texts[text],
            log_odds[places],
        )
    return np.array(rows, np.float64).reshape(len(candidates), len(NEIGHBOUR_FEATURES))


def _compute_neighbour_features(
    group: Sequence[Candidate], identifiers: Sequence[int], text: str, log_odds: Values
) -> Iterator[list[float]]:
    """Computes `NEIGHBOUR_FEATURES` for the candidates of one text.

    Args:
        group: the candidates of the text, in order.
        identifiers: where the identifiers of the text begin.
        text: the text.
        log_odds: the log odds of the candidates by the first network.
    """
    words = [
        {
            atom.text
            for atom in split_atoms(text[candidate.start : candidate.end])
            if len(atom.text) > 1
        }
        for candidate in group
    ]
    holders: dict[str, list[int]] = {}
    for k, own_words in enumerate(words):
        for word in own_words:
            holders.setdefault(word, []).append(k)
    # Two for each word suffice: one of them may be the candidate itself.
    best = {word: sorted(which, key=log_odds.__getitem__)[-2:] for word, which in holders.items()}
    for k, candidate in enumerate(group):
        neighbour_odds = np.concatenate(
            [log_odds[max(0, k - MAX_NEIGHBOURS) : k], log_odds[k + 1 : k + 1 + MAX_NEIGHBOURS]]
        )
        shared_word_odds = [log_odds[i] for word in words[k] for i in best[word] if i != k]
        first = bisect_left(identifiers, candidate.start)
        distance = min(
            (abs(at - candidate.start) for at in identifiers[max(0, first - 1) : first + 1]),
            default=MAX_DISTANCE,
        )
        count = bisect_right(identifiers, candidate.end + MAX_DISTANCE) - bisect_left(
            identifiers, candidate.start - MAX_DISTANCE
        )
        private = neighbour_odds > 0
        yield [
            log_odds[k],
            len(neighbour_odds) > 0,
            neighbour_odds.max(initial=NO_NEIGHBOUR_ODDS),
            neighbour_odds.mean() if len(neighbour_odds) else 0.0,
            # Capped, so that the sum cannot overflow.
            np.log1p(np.exp(np.minimum(neighbour_odds, 20.0)).sum()),
            private.mean() if len(neighbour_odds) else 0.0,
            np.log1p(private.sum()),
            np.log1p(len(neighbour_odds)),
            log_odds[k - 1] if k else NO_NEIGHBOUR_ODDS,
            log_odds[k + 1] if k + 1 < len(log_odds) else NO_NEIGHBOUR_ODDS,
            bool(shared_word_odds),
            max(shared_word_odds, default=0.0),
            np.log1p(count),
            count > 0,
            np.log1p(min(distance, MAX_DISTANCE)),
            np.log1p(min(len(text), MAX_TEXT_CHARACTERS)),
            np.log1p(candidate.end - candidate.start),
        ]


def _sum_weighted(rows: Values, weights: Values) -> Values:
    """Computes the weighted sums of each row.

    It does not use a matrix product, whose last bits may depend on the other rows.
    """
    sums: Values = np.einsum("kf,uf->ku", rows, weights, optimize=False)
    return sums


def sigmoid(log_odds: Values) -> Values:
    """Turns log odds into probabilities."""
    # Clipped, so that the exponential cannot overflow.
    values: Values = 1 / (1 + np.exp(-np.clip(log_odds, -30, 30)))
    return values


def _find_tokens(candidate: Candidate, tokens: Tokens) -> tuple[int, int]:
    """Returns the range of tokens that a candidate touches.

    Tokens are counted over all texts: the first, and one past the last.
    """
    low, high = tokens.documents[candidate.text : candidate.text + 2].tolist()
    first = bisect_right(tokens.ends, candidate.start, low, high)
    return first, bisect_left(tokens.starts, candidate.end, first, high)
