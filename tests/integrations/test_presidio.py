"""Presidio: what a protector hides is found, and what takes its place comes back."""

import logging

import pytest

pytest.importorskip("presidio_analyzer", reason="the extra `presidio` is not installed")
pytest.importorskip("presidio_anonymizer", reason="the extra `presidio` is not installed")
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry, RecognizerResult
from presidio_analyzer.nlp_engine import NoOpNlpEngine
from presidio_anonymizer import AnonymizerEngine, DeanonymizeEngine
from presidio_anonymizer.entities import OperatorConfig, OperatorResult

from textveil import Privatizer, Protector, Session
from textveil.errors import ConfigError, DetectorError
from textveil.integrations.presidio import TextveilOperator, TextveilRecognizer, TextveilRestorer

CANARY = "zyxqorvian@example.org"
TEXT = f"Ask Maria Silva ({CANARY}) or call 212-555-0148. Silva knows."


def analyzer(**options):
    registry = RecognizerRegistry(recognizers=[TextveilRecognizer(Protector(**options))])
    return AnalyzerEngine(
        registry=registry,
        nlp_engine=NoOpNlpEngine(models=[{"lang_code": "en", "model_name": "none"}]),
    )


@pytest.fixture
def engine():
    made = AnonymizerEngine()
    made.add_anonymizer(TextveilOperator)
    return made


def test_all_that_is_hidden_is_found():
    found = analyzer().analyze(TEXT, language="en")
    parts = {(each.entity_type, TEXT[each.start : each.end]) for each in found}
    assert {
        ("PERSON", "Maria Silva"),
        ("EMAIL_ADDRESS", CANARY),
        ("PHONE_NUMBER", "212-555-0148"),
    } <= parts
    assert ("PERSON", "Silva") in parts, "where it stands again, too"
    asked = analyzer().analyze(TEXT, language="en", entities=["EMAIL_ADDRESS"])
    assert [each.entity_type for each in asked] == ["EMAIL_ADDRESS"]


def test_types_of_ones_own_are_found_though_nobody_can_ask_for_them():
    listed = analyzer(protect={"always": ["grey heron"]})
    (found,) = listed.analyze("about the grey heron", language="en")
    assert found.entity_type == "LISTED"


def test_a_detector_that_fails_is_an_error():
    class Breaks:
        name = "breaks"

        def find(self, texts):
            raise RuntimeError(CANARY)

    with pytest.raises(DetectorError) as failed:
        analyzer(protect={"detectors": [Breaks()]}).analyze(TEXT, language="en")
    assert CANARY not in str(failed.value)


def test_placeholders_of_a_session_come_back(engine, caplog):
    caplog.set_level(logging.DEBUG)
    session, found = Session(), analyzer().analyze(TEXT, language="en")
    sent = engine.anonymize(
        TEXT, found, {"DEFAULT": OperatorConfig("textveil", {"session": session})}
    )
    assert CANARY not in str(sent)
    assert "Maria" not in str(sent)
    assert session.restore(sent.text) == TEXT
    again = engine.anonymize(
        CANARY,
        analyzer().analyze(CANARY, language="en"),
        {"DEFAULT": OperatorConfig("textveil", {"session": session})},
    )
    assert again.text in sent.text, "the same value has the same placeholder in later texts"
    assert Protector().protect(f"or {CANARY}", session).text != f"or {CANARY}"
    back = DeanonymizeEngine()
    back.add_deanonymizer(TextveilRestorer)
    items = [
        OperatorResult(each.start, each.end, each.entity_type, each.text, "textveil")
        for each in sent.items
    ]
    whole = back.deanonymize(
        sent.text, items, {"DEFAULT": OperatorConfig("textveil", {"session": session})}
    )
    assert whole.text == TEXT
    assert not [each for each in caplog.records if CANARY in each.getMessage()]


def test_a_privatizer_draws_what_takes_its_place(engine):
    found = analyzer().analyze(TEXT, language="en")
    drawn = OperatorConfig("textveil", {"privatizer": Privatizer("rankcape", epsilon=1)})
    made = engine.anonymize(TEXT, found, {"DEFAULT": drawn})
    assert CANARY not in made.text
    assert made.text.startswith("Ask ")
    public = RecognizerResult("PERSON", 0, 4, 1.0)
    will = engine.anonymize(
        "Will pays",
        [public],
        {"DEFAULT": OperatorConfig("textveil", {"privatizer": Privatizer("rankcape", epsilon=1)})},
    )
    assert will.text == "<PERSON_1> pays", "a public word does not pass in a span"


@pytest.mark.parametrize(
    "params", [{}, {"session": "anna"}, {"privatizer": "prompt"}, {"privatizer": Protector()}]
)
def test_wrong_parameters(engine, params):
    found = analyzer().analyze(TEXT, language="en")
    with pytest.raises(ConfigError, match="operator textveil"):
        engine.anonymize(TEXT, found, {"DEFAULT": OperatorConfig("textveil", params)})
    with pytest.raises(ConfigError):
        TextveilRestorer().validate({})


def test_what_is_replaced_by_other_names_and_dates_is_found_too():
    text = "Ask Maria Silva, born on 3 May 1984. Silva knows."
    found = analyzer(names={"types": ["PERSON"]}, figures={"types": ["all"]}).analyze(
        text, language="en"
    )
    plain = analyzer().analyze(text, language="en")
    assert {"Maria Silva", "Silva"} <= {text[each.start : each.end] for each in found}
    assert {(each.start, each.end) for each in plain} <= {(each.start, each.end) for each in found}


def test_unlike_spans_without_a_session_look_unlike(engine):
    drawn = {
        "DEFAULT": OperatorConfig("textveil", {"privatizer": Privatizer("rankcape", epsilon=1)})
    }
    spans = [RecognizerResult("PERSON", 0, 4, 1.0), RecognizerResult("PERSON", 9, 12, 1.0)]
    made = engine.anonymize("Will and The", spans, drawn)
    assert {each.text for each in made.items} == {"<PERSON_1>", "<PERSON_2>"}
    assert engine.anonymize("Will", spans[:1], drawn).text in {each.text for each in made.items}, (
        "the same looks alike"
    )
