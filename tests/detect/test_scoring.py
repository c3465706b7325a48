"""Odds: what is found counts as private by how it looks and by what else its text holds."""

import time
from typing import Literal

import numpy as np
import pytest

from textveil import Protector
from textveil.config import NameOptions, ProtectOptions
from textveil.detect import scoring
from textveil.detect.scoring import CANDIDATE_FEATURES, NEIGHBOUR_FEATURES, Weights
from textveil.detect.spans import Span
from textveil.models import EVIDENCE_SIZE, Evidence
from textveil.protect.grouping import Grouping
from textveil.text import tokenize


def of(text: str, *parts: tuple[str, str, str, float, float]) -> list[Span]:
    """Spans of a text: what they hold, type, source, score and private."""
    return [
        Span(0, text.index(part), text.index(part) + len(part), type_, score, source, private)
        for part, type_, source, score, private in parts
    ]


def known(text: str, spans: list[Span]) -> list[dict[str, float]]:
    tokens = tokenize([text])
    rows = scoring.build_features(scoring.group_candidates(spans), spans, tokens)
    return [
        dict(zip(CANDIDATE_FEATURES, row, strict=False)) for row in rows.tolist()
    ]  # and evidence


def test_spans_that_overlap_are_one_candidate_and_others_are_left_alone() -> None:
    text = "Anna Kowalska, anna@example.org"
    spans = of(
        text,
        ("Anna", "PERSON", "structure", 0.9, 0.9),
        ("Anna Kowalska", "PERSON", "tagger", 0.5, 0.5),
        ("anna@example.org", "EMAIL", "patterns", 1.0, 1.0),
        ("Kowalska", "PERSON", "lists", 1.0, 1.0),
        ("example.org", "HOST", "structure", 1.0, 1.0),
    )
    [candidate] = scoring.group_candidates(spans)
    assert (candidate.start, candidate.end, set(candidate.spans)) == (0, 13, {0, 1})
    judged = scoring.score_spans(spans, tokenize([text]))
    assert judged[0].privacy_score == judged[1].privacy_score
    assert judged[2:] == spans[2:]
    assert [span._replace(privacy_score=0) for span in judged] == [
        span._replace(privacy_score=0) for span in spans
    ]


def test_spans_of_different_texts_are_different_candidates() -> None:
    spans = [Span(b, 0, 4, "PERSON", 0.5, "tagger", 0.5) for b in range(2)]
    assert [each.text for each in scoring.group_candidates(spans)] == [0, 1]


def test_what_is_known_of_a_candidate_by_itself() -> None:
    text = "Hello,\n王明 and my neighbour Bo Lind"
    first, second = known(
        text,
        of(
            text,
            ("王明", "PERSON", "structure", 0.9, 0.3),
            ("Bo Lind", "PERSON", "tagger", 0.5, 0.75),
        ),
    )
    assert first == dict.fromkeys(CANDIDATE_FEATURES, 0) | {
        "structure": 1,
        "uncased": 1,
        "two": first["two"],
        "one": first["one"],
        "short": 1,
        "line": 1,
    }
    assert second == dict.fromkeys(CANDIDATE_FEATURES, 0) | {"tagger": 1, "two": 1, "relation": 1}


def test_details_are_told_from_names_by_the_tagger() -> None:
    text = "room 4711"
    [row] = known(
        text,
        of(
            text,
            ("4711", "ID", "tagger", 0.9, 1.0),
            ("room 4711", "LOCATION", "structure", 1.0, 1.0),
        ),
    )
    assert row["detail"] == row["tagger"] == row["structure"] == 1


def test_the_evidence_is_that_of_the_span_the_tagger_is_surest_of() -> None:
    low, high = (
        Evidence((float(i),) * EVIDENCE_SIZE, ((i + 1.0,), (i + 2.0,), (i + 3.0,))) for i in (1, 5)
    )
    spans = [
        Span(0, 0, 4, "PERSON", 0.5, "tagger", 0.5, low),
        Span(0, 2, 8, "PERSON", 0.9, "tagger", 0.5, high),
        Span(0, 0, 8, "PERSON", 1.0, "structure", 0.5),
    ]
    tokens = tokenize(["Ida Lind"])
    found = scoring.group_candidates(spans)
    assert (
        scoring.build_features(found, spans, tokens)[0, len(CANDIDATE_FEATURES) :].tolist()
        == [5.0] * EVIDENCE_SIZE
    )
    assert [each.tolist() for each in scoring.collect_readings(found, spans, 1)] == [
        [[6.0]],
        [[7.0]],
        [[8.0]],
    ]
    none = [span._replace(evidence=None) for span in spans]
    assert not scoring.build_features(found, none, tokens)[:, len(CANDIDATE_FEATURES) :].any()
    assert not np.any(scoring.collect_readings(found, none, 3))


def test_odds_are_those_of_a_network() -> None:
    size = len(CANDIDATE_FEATURES) + EVIDENCE_SIZE
    detail = np.eye(size)[scoring.DETAIL_COLUMN]
    by = Weights(
        units=np.stack([np.ones(size), -np.ones(size)]),
        bias=np.array([0.5, 0.25]),
        sum=np.array([2.0, 3.0]),
        base=np.array(-1.0),
    )
    rows, read = np.stack([np.zeros(size), detail]), np.array([[0.0, 1.0], [3.0, -9.0]])
    assert scoring.compute_log_odds(rows, read, by).tolist() == [
        2 * 0.5 + 3 * 1.25 - 1,
        2 * 4.5 - 1,
    ]
    assert scoring.sigmoid(np.zeros(1)).tolist() == [0.5]


def test_what_stands_beside_a_candidate() -> None:
    text = "Anna Kowalska, Bo Lind, Anna, anna@example.org"
    spans = of(
        text,
        ("Anna Kowalska", "PERSON", "tagger", 0.9, 0.9),
        ("Bo Lind", "PERSON", "tagger", 0.9, 0.9),
        ("anna@example.org", "EMAIL", "patterns", 1.0, 1.0),
    )
    spans.append(Span(0, 24, 28, "PERSON", 0.9, "tagger", 0.9))
    spans.append(Span(1, 0, 3, "PERSON", 0.9, "tagger", 0.9))
    found = scoring.group_candidates(spans)
    rows = scoring.build_neighbour_features(
        found, spans, [text, "Ida"], np.array([2.0, -1.0, 0.5, 3.0])
    )
    first, second, third, alone = (
        dict(zip(NEIGHBOUR_FEATURES, row, strict=True)) for row in rows.tolist()
    )
    assert (first["odds"], first["surest"], first["mean"], first["private"]) == (
        2.0,
        0.5,
        -0.25,
        np.log(2),
    )
    assert (first["last"], first["next"], second["last"], second["next"]) == (
        scoring.NO_NEIGHBOUR_ODDS,
        -1.0,
        2.0,
        0.5,
    )
    assert (first["surest alike"], second["alike"], third["surest alike"]) == (0.5, 0, 2.0)
    assert first["identifiers"] == third["identifiers"] == np.log(2)
    assert (alone["any"], alone["surest"], alone["any identifier"]) == (
        0,
        scoring.NO_NEIGHBOUR_ODDS,
        0,
    )
    assert alone["text"] == np.log(4)


@pytest.mark.slow
def test_what_stands_beside_takes_linear_time() -> None:
    text = "Anna " * 20_000
    spans = [Span(0, 5 * i, 5 * i + 4, "PERSON", 0.9, "tagger", 0.9) for i in range(20_000)]
    start = time.process_time()
    scoring.build_neighbour_features(
        scoring.group_candidates(spans), spans, [text], np.zeros(len(spans))
    )
    assert time.process_time() - start < 10


def test_evidence_is_not_shown() -> None:
    from textveil.detect import load_detector

    [span] = [
        each
        for each in load_detector("tagger").find(["My neighbour Bo Lindqvist is ill."])
        if each.evidence
    ]
    assert span.evidence is not None
    shown = repr(span)
    assert all(f"{number:.4f}"[:6] not in shown for number in span.evidence.readings[0])
    assert len(span.evidence.summary) == EVIDENCE_SIZE
    sizes = {*map(len, span.evidence.readings)}
    assert sizes == {len(scoring.load_networks().first.bias)}


def test_a_text_is_judged_by_itself() -> None:
    from textveil.detect import load_detector

    texts = [
        "Call Anna Kowalska, and Bo Lind in Lund.",
        "Summer is near.",
        "",
        "Dear Ms Okafor, Tom Reid is ill.",
    ]
    spans = [span for name in ("structure", "tagger") for span in load_detector(name).find(texts)]
    together = scoring.score_spans(spans, tokenize(texts))
    alone = [
        span._replace(text=b)
        for b, text in enumerate(texts)
        for span in scoring.score_spans(
            [span._replace(text=0) for span in spans if span.text == b], tokenize([text])
        )
    ]
    assert sorted(together) == sorted(alone)
    assert any(span.privacy_score > 0.5 for span in together)


@pytest.mark.parametrize(
    ("level", "judges"), [("personal", True), ("identifiers", True), ("names", False)]
)
def test_names_are_judged_unless_all_of_them_are_hidden(
    level: Literal["personal", "identifiers", "names"], judges: bool
) -> None:
    made = Grouping.build(ProtectOptions(detectors=("tagger",), level=level), NameOptions())
    assert made is not None
    assert made.detection.settings.scores == judges
    other = Grouping.build(
        ProtectOptions(detectors=("patterns", "structure"), level=level), NameOptions()
    )
    assert other is not None
    assert not other.detection.settings.scores


def test_private_people_go_and_a_text_about_nobody_stays() -> None:
    protector = Protector("prompt")
    shown = protector.protect("Call Anna Kowalska, and Bo Lind from Lund, about the invoice.").text
    assert "Kowalska" not in shown
    assert "Lind" not in shown
    assert (
        protector.protect("Summer is near, and everybody is glad.").text
        == "Summer is near, and everybody is glad."
    )


def test_only_the_bundled_tagger_with_its_own_thresholds_tells_its_doubts() -> None:
    from textveil.detect import load_detector
    from textveil.detect.library_taggers import TaggerDetector, load_tagger

    tagger = load_detector("tagger")
    assert isinstance(tagger, TaggerDetector)
    assert tagger.is_bundled
    assert not load_tagger(threshold=0.5).is_bundled
    texts = ["anna kowalska from lund wrote to bo", "Bo or Ya or Ming"]
    sure, more = tagger.find(texts), tagger.copy_with_doubt(3.0).find(texts)
    assert sum(span.end - span.start for span in more) > sum(span.end - span.start for span in sure)
    assert tagger.find(texts) == sure


def test_what_a_key_tells_is_private_whatever_the_odds_are_and_a_name_is_judged() -> None:
    text = '{"age": 29, "name": "Orchard Room"}'
    spans = of(
        text,
        ("29", "AGE", "structure", 1.0, 1.0),
        ("Orchard Room", "PERSON", "structure", 1.0, 1.0),
    )
    age, name = scoring.score_spans(spans, tokenize([text]))
    assert age.privacy_score == 1.0
    assert name.privacy_score < 1.0
