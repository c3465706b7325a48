"""Odds: what is found counts as private by how it looks and by what else its text holds."""

import time
from typing import Literal

import numpy as np
import pytest

from textveil import Protector
from textveil.config import NameOptions, ProtectOptions
from textveil.detect import scoring
from textveil.detect.scoring import BESIDE, OWN, Weights
from textveil.detect.spans import Span
from textveil.models import TOLD, Evidence
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
    rows = scoring.features(scoring.candidates(spans), spans, tokens)
    return [dict(zip(OWN, row, strict=False)) for row in rows.tolist()]  # and evidence


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
    [candidate] = scoring.candidates(spans)
    assert (candidate.start, candidate.end, set(candidate.spans)) == (0, 13, {0, 1})
    judged = scoring.judged(spans, tokenize([text]))
    assert judged[0].private == judged[1].private
    assert judged[2:] == spans[2:]
    assert [span._replace(private=0) for span in judged] == [
        span._replace(private=0) for span in spans
    ]


def test_spans_of_different_texts_are_different_candidates() -> None:
    spans = [Span(b, 0, 4, "PERSON", 0.5, "tagger", 0.5) for b in range(2)]
    assert [each.text for each in scoring.candidates(spans)] == [0, 1]


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
    assert first == dict.fromkeys(OWN, 0) | {
        "structure": 1,
        "uncased": 1,
        "two": first["two"],
        "one": first["one"],
        "short": 1,
        "line": 1,
    }
    assert second == dict.fromkeys(OWN, 0) | {"tagger": 1, "two": 1, "relation": 1}


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
    low, high = (Evidence((float(i),) * TOLD, (i + 1.0,), (i + 2.0,)) for i in (1, 5))
    spans = [
        Span(0, 0, 4, "PERSON", 0.5, "tagger", 0.5, low),
        Span(0, 2, 8, "PERSON", 0.9, "tagger", 0.5, high),
        Span(0, 0, 8, "PERSON", 1.0, "structure", 0.5),
    ]
    tokens = tokenize(["Ida Lind"])
    found = scoring.candidates(spans)
    assert scoring.features(found, spans, tokens)[0, len(OWN) :].tolist() == [5.0] * TOLD
    assert [each.tolist() for each in scoring.readings(found, spans, 1)] == [[[6.0]], [[7.0]]]
    none = [span._replace(evidence=None) for span in spans]
    assert not scoring.features(found, none, tokens)[:, len(OWN) :].any()
    assert not np.any(scoring.readings(found, none, 3))


def test_odds_are_those_of_a_network() -> None:
    size = len(OWN) + TOLD
    detail = np.eye(size)[scoring.DETAIL]
    by = Weights(
        units=np.stack([np.ones(size), -np.ones(size)]),
        bias=np.array([0.5, 0.25]),
        sum=np.array([2.0, 3.0]),
        base=np.array(-1.0),
    )
    rows, read = np.stack([np.zeros(size), detail]), np.array([[0.0, 1.0], [3.0, -9.0]])
    assert scoring.odds(rows, read, by).tolist() == [2 * 0.5 + 3 * 1.25 - 1, 2 * 4.5 - 1]
    assert scoring.probability(np.zeros(1)).tolist() == [0.5]


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
    found = scoring.candidates(spans)
    rows = scoring.beside(found, spans, [text, "Ida"], np.array([2.0, -1.0, 0.5, 3.0]))
    first, second, third, alone = (dict(zip(BESIDE, row, strict=True)) for row in rows.tolist())
    assert (first["odds"], first["surest"], first["mean"], first["private"]) == (
        2.0,
        0.5,
        -0.25,
        np.log(2),
    )
    assert (first["last"], first["next"], second["last"], second["next"]) == (
        scoring.NONE,
        -1.0,
        2.0,
        0.5,
    )
    assert (first["surest alike"], second["alike"], third["surest alike"]) == (0.5, 0, 2.0)
    assert first["identifiers"] == third["identifiers"] == np.log(2)
    assert (alone["any"], alone["surest"], alone["any identifier"]) == (0, scoring.NONE, 0)
    assert alone["text"] == np.log(4)


@pytest.mark.slow
def test_what_stands_beside_takes_linear_time() -> None:
    text = "Anna " * 20_000
    spans = [Span(0, 5 * i, 5 * i + 4, "PERSON", 0.9, "tagger", 0.9) for i in range(20_000)]
    start = time.process_time()
    scoring.beside(scoring.candidates(spans), spans, [text], np.zeros(len(spans)))
    assert time.process_time() - start < 10


def test_evidence_is_not_shown() -> None:
    from textveil.detect import detector

    [span] = [
        each
        for each in detector("tagger").find(["My neighbour Bo Lindqvist is ill."])
        if each.evidence
    ]
    assert span.evidence is not None
    shown = repr(span)
    assert all(f"{number:.4f}"[:6] not in shown for number in span.evidence.over)
    assert len(span.evidence.told) == TOLD
    assert len(span.evidence.over) == len(span.evidence.around) == len(scoring.jury().first.bias)


def test_a_text_is_judged_by_itself() -> None:
    from textveil.detect import detector

    texts = [
        "Call Anna Kowalska, and Bo Lind in Lund.",
        "Summer is near.",
        "",
        "Dear Ms Okafor, Tom Reid is ill.",
    ]
    spans = [span for name in ("structure", "tagger") for span in detector(name).find(texts)]
    together = scoring.judged(spans, tokenize(texts))
    alone = [
        span._replace(text=b)
        for b, text in enumerate(texts)
        for span in scoring.judged(
            [span._replace(text=0) for span in spans if span.text == b], tokenize([text])
        )
    ]
    assert sorted(together) == sorted(alone)
    assert any(span.private > 0.5 for span in together)


@pytest.mark.parametrize(
    ("level", "judges"), [("personal", True), ("identifiers", True), ("names", False)]
)
def test_names_are_judged_unless_all_of_them_are_hidden(
    level: Literal["personal", "identifiers", "names"], judges: bool
) -> None:
    made = Grouping.of(ProtectOptions(detectors=("tagger",), level=level), NameOptions())
    assert made is not None
    assert made.detection.settings.scores == judges
    other = Grouping.of(
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
    from textveil.detect import detector
    from textveil.detect.adapters import TaggerDetector, load_tagger

    tagger = detector("tagger")
    assert isinstance(tagger, TaggerDetector)
    assert tagger.bundled
    assert not load_tagger(threshold=0.5).bundled
    texts = ["anna kowalska from lund wrote to bo", "Bo or Ya or Ming"]
    sure, more = tagger.find(texts), tagger.doubting(3.0).find(texts)
    assert sum(span.end - span.start for span in more) > sum(span.end - span.start for span in sure)
    assert tagger.find(texts) == sure


def test_what_a_key_tells_is_private_whatever_the_odds_are_and_a_name_is_judged() -> None:
    text = '{"age": 29, "name": "Orchard Room"}'
    spans = of(
        text,
        ("29", "AGE", "structure", 1.0, 1.0),
        ("Orchard Room", "PERSON", "structure", 1.0, 1.0),
    )
    age, name = scoring.judged(spans, tokenize([text]))
    assert age.private == 1.0
    assert name.private < 1.0
