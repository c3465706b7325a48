"""Running detectors: what fails must raise and show no text, and what is merged must cover what was found."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import NoneType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textveil.config import NameOptions, ProtectOptions, registry
from textveil.detect.detections import Detections, Settings
from textveil.detect.detectors import find_all, load_detector
from textveil.detect.spans import Detector, Span
from textveil.detect.stages import MERGING, run_stages
from textveil.errors import ConfigError, DetectorError, InputError, UnknownName
from textveil.protect.grouping import Grouping
from textveil.text.tokens import Tokens, tokenize

CANARY = "zanzibarquux"
TEXTS = [f"see {CANARY} here", "x"]
FINE = Span(0, 4, 7, "PERSON", 0.5, "other")


@dataclass(frozen=True, kw_only=True, eq=False)
class Scripted:
    """A detector that does what a test says."""

    find: Callable[[Sequence[str]], Any]
    name: str = field(default="scripted")


def merge(spans: Sequence[Span], tokens: Tokens) -> list[Span]:
    """Joins spans as detection does, without the bounds of texts."""
    found = Detections(
        tokens=tokens, important=np.zeros(len(tokens.words), bool), spans=tuple(spans)
    )
    stages = [stage for stage in MERGING if stage.name not in ("bounds", "words")]
    return [*run_stages(stages, found, Settings(detectors=())).spans]


def answers(found: Any) -> Scripted:
    return Scripted(find=lambda texts: found)


def fails(error: BaseException) -> Scripted:
    def find(texts: Sequence[str]) -> Any:
        raise error

    return Scripted(find=find)


def test_spans_of_all_detectors_come_in_order_with_their_detectors_name():
    second = Scripted(
        find=lambda texts: [Span(1, 0, 1, "A1", 1, "?"), Span(0, 0, 3, "B_C", 0.0, "?")],
        name="second",
    )
    found = find_all([answers([FINE]), second], TEXTS, timeout=5)
    assert found == [
        Span(0, 0, 3, "B_C", 0.0, "second"),
        Span(0, 4, 7, "PERSON", 0.5, "scripted"),
        Span(1, 0, 1, "A1", 1.0, "second"),
    ]
    assert isinstance(answers([]), Detector)


def test_numbers_of_numpy_are_numbers():
    odd = Span(np.int64(0), np.int32(4), np.int64(7), "PERSON", np.float32(0.5), "x")  # type: ignore[arg-type]
    (found,) = find_all([answers([odd])], TEXTS, timeout=None)
    assert found == FINE._replace(source="scripted")
    assert [type(value) for value in found] == [int, int, int, str, float, str, float, NoneType]


def test_no_texts_need_no_detector():
    assert find_all([fails(ValueError())], [], timeout=None) == []


BROKEN = {
    "raises": fails(ValueError(CANARY)),
    "raises with a cause that holds text": fails(ValueError(CANARY, *TEXTS)),
    "exits": fails(SystemExit(CANARY)),
    "stops an iteration": fails(StopIteration(CANARY)),
    "returns nothing": answers(None),
    "returns a generator": answers(iter([FINE])),
    "returns a text": answers(CANARY),
    "returns plain tuples": answers([tuple(FINE)]),
    "returns texts": answers([CANARY]),
    "a text after the last": answers([FINE._replace(text=2)]),
    "a text before the first": answers([FINE._replace(text=-1)]),
    "the number of a text that is a flag": answers([FINE._replace(text=True)]),
    "a text without a number": answers([FINE._replace(text=CANARY)]),  # type: ignore[arg-type]
    "a place that is a fraction": answers([FINE._replace(start=4.0)]),  # type: ignore[arg-type]
    "a place before the text": answers([FINE._replace(start=-1)]),
    "a place behind the text": answers([FINE._replace(end=len(TEXTS[0]) + 1)]),
    "a place of the other text": answers([FINE._replace(text=1)]),
    "an empty span": answers([FINE._replace(end=4)]),
    "a reversed span": answers([FINE._replace(start=7, end=4)]),
    "a type in small letters": answers([FINE._replace(type=CANARY)]),
    "a type with a mark": answers([FINE._replace(type="PERSON>")]),
    "a type with a line break": answers([FINE._replace(type="PERSON\n")]),
    "an empty type": answers([FINE._replace(type="")]),
    "a type as long as a text": answers([FINE._replace(type="A" * 65)]),
    "no type": answers([FINE._replace(type=None)]),  # type: ignore[arg-type]
    "a score that is no number": answers([FINE._replace(score=float("nan"))]),
    "a score above one": answers([FINE._replace(score=1.01)]),
    "a score beyond numbers": answers([FINE._replace(score=10**400)]),
    "a score below zero": answers([FINE._replace(score=-0.1)]),
    "a score in words": answers([FINE._replace(score=CANARY)]),  # type: ignore[arg-type]
    "one bad span among good ones": answers([FINE, FINE._replace(end=99), FINE]),
    "takes too long": Scripted(find=lambda texts: time.sleep(20)),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_detector_that_fails_makes_the_call_fail_and_shows_no_text(kind):
    with pytest.raises(DetectorError) as caught:
        find_all([answers([FINE]), BROKEN[kind]], TEXTS, timeout=0.2)
    error = caught.value
    assert "the detector scripted " in str(error)
    assert "\n" not in str(error)
    assert CANARY not in str(error).lower()
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("timeout", [None, 5])
def test_the_same_checks_hold_without_a_limit(timeout):
    with pytest.raises(DetectorError, match="failed with ValueError"):
        find_all([BROKEN["raises"]], TEXTS, timeout=timeout)


def test_a_line_that_a_detector_writes_itself_is_kept_without_its_chain():
    def find(texts: Sequence[str]) -> Any:
        try:
            raise ValueError(CANARY)
        except ValueError as error:
            raise DetectorError("the detector x must see all of a text") from error

    with pytest.raises(DetectorError, match=r"^the detector x must see all of a text$") as caught:
        find_all([Scripted(find=find)], TEXTS, timeout=None)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_detector_that_takes_too_long_is_not_waited_for():
    free = threading.Event()
    begun = time.monotonic()
    with pytest.raises(DetectorError, match=r"did not answer within 0\.1 s"):
        find_all([Scripted(find=lambda texts: free.wait(30))], TEXTS, timeout=0.1)
    assert time.monotonic() - begun < 5
    free.set()


def test_a_detector_cannot_take_texts_away():
    def find(texts: Sequence[str]) -> Any:
        texts.clear()  # type: ignore[attr-defined]
        return []

    texts = [*TEXTS]
    with pytest.raises(DetectorError, match="failed with AttributeError"):
        find_all([Scripted(find=find)], texts, timeout=None)
    assert texts == TEXTS


def test_texts_are_checked_before_any_detector_sees_them():
    with pytest.raises(InputError, match="valid Unicode"):
        find_all([answers([])], ["\ud800"], timeout=None)


# ---- merging -----------------------------------------------------------------------------------------------


def span(
    start: int,
    end: int,
    type_: str = "PERSON",
    score: float = 0.5,
    source: str = "a",
    text: int = 0,
) -> Span:
    return Span(text, start, end, type_, score, source)


@pytest.mark.parametrize(
    ("text", "spans", "expected"),
    [
        ("Ann Lee met Bo", [span(0, 3), span(0, 7)], [span(0, 7)]),
        ("Ann Lee met Bo", [span(0, 3), span(4, 7)], [span(0, 3), span(4, 7)]),
        ("Ann-Lee", [span(0, 3), span(3, 7)], [span(0, 3), span(3, 7)]),
        ("Annabel", [span(0, 2), span(5, 7)], [span(0, 7)]),
        ("Annabel Lee Bo", [span(5, 9), span(10, 13)], [span(5, 13)]),
        ("a b c d", [span(0, 3), span(2, 5), span(4, 7)], [span(0, 7)]),
    ],
)
def test_spans_that_share_characters_or_a_word_become_one(text, spans, expected):
    assert merge(spans, tokenize([text])) == expected


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([span(0, 7, "PERSON", 0.9), span(4, 11, "PHONE", 0.2)], span(0, 11, "PHONE", 0.2)),
        ([span(0, 7, "PERSON", 0.9), span(4, 7, "LISTED", 0.2)], span(0, 7, "LISTED", 0.2)),
        ([span(0, 7, "LISTED", 0.9), span(4, 7, "CARD", 0.2)], span(0, 7, "CARD", 0.2)),
        ([span(0, 7, "PERSON", 0.6), span(4, 7, "LOCATION", 0.7)], span(0, 7, "LOCATION", 0.7)),
        ([span(4, 7, "PERSON", 0.6), span(0, 7, "LOCATION", 0.6)], span(0, 7, "LOCATION", 0.6)),
        ([span(0, 7, "PERSON"), span(0, 7, "LOCATION")], span(0, 7, "LOCATION")),
        ([span(0, 7, source="b"), span(0, 7, source="a")], span(0, 7, source="a")),
    ],
)
def test_the_type_is_that_of_the_most_certain(spans, expected):
    tokens = tokenize(["Ann Lee met Bo"])
    assert merge(spans, tokens) == [expected] == merge(spans[::-1], tokens)


@pytest.mark.parametrize(
    ("text", "spans", "expected"),
    [
        (
            "Ann Lee,High Street,x",
            [
                ("PERSON", "Ann Lee,High Street", "tagger"),
                ("PERSON", "Ann Lee", "structure"),
                ("ADDRESS", "High Street", "structure"),
            ],
            [("PERSON", "Ann Lee"), ("ADDRESS", "High Street")],
        ),
        (
            "Bo, T. Lee, Al K.",
            [
                ("PERSON", "Bo, T. Lee, Al K.", "tagger"),
                ("PERSON", "Bo", "structure"),
                ("PERSON", "T. Lee", "structure"),
            ],
            [("PERSON", "Bo"), ("PERSON", "T. Lee"), ("PERSON", "Al K")],
        ),
        (
            "my name is Ann Lee",
            [("PERSON", "Ann Lee", "tagger"), ("PERSON", "Ann", "structure")],
            [("PERSON", "Ann Lee")],
        ),
        (
            "High Street,Leeds",
            [
                ("ADDRESS", "High Street,Leeds", "tagger"),
                ("ADDRESS", "High Street", "patterns"),
                ("LOCATION", "Leeds", "patterns"),
            ],
            [("ADDRESS", "High Street,Leeds")],
        ),
        (
            "Bo Ash,Ann Lee,Al Kay,x",
            [("PERSON", "Bo Ash,Ann Lee,Al Kay", "tagger"), ("ADDRESS", "Al Kay", "structure")],
            [("PERSON", "Bo Ash"), ("PERSON", "Ann Lee"), ("ADDRESS", "Al Kay")],
        ),
        (
            "12.50,035 4471 220",
            [
                ("PHONE", "12.50,035 4471", "tagger"),
                ("PHONE", "035 4471 220", "structure"),
                ("ID", "220", "tagger"),
            ],
            [("PHONE", "035 4471 220")],
        ),
        (
            "06 12 44 87,16 11 20 33 x",
            [("PHONE", "06 12 44 87,16 11", "tagger"), ("ID", "20 33", "structure")],
            [("PHONE", "06 12 44 87,16 11"), ("ID", "20 33")],
        ),
        (
            "Bo Ash,Al Kay,",
            [("PERSON", "Bo Ash,Al Kay,", "tagger"), ("ADDRESS", "Al Kay", "structure")],
            [("PERSON", "Bo Ash"), ("ADDRESS", "Al Kay")],
        ),
    ],
)
def test_a_span_over_several_values_of_a_structure_is_divided_between_them(text, spans, expected):
    tokens = tokenize([text])
    given = [
        span(text.index(value), text.index(value) + len(value), type_, 1.0, source)
        for type_, value, source in spans
    ]
    merged = merge(given, tokens)
    assert [(each.type, text[each.start : each.end]) for each in merged] == expected
    assert merge(given[::-1], tokens) == merged


def test_what_has_the_form_of_an_identifier_is_that_whatever_the_tagger_takes_it_for():
    text = "amara.okonkwo@mail.example.com"
    spans = [span(0, 30, "HANDLE", 0.99, "tagger"), span(0, 30, "EMAIL", 0.95, "patterns")]
    assert [each.type for each in merge(spans, tokenize([text]))] == ["EMAIL"]
    assert [each.type for each in merge(spans[:1], tokenize([text]))] == ["HANDLE"]


def test_spans_of_different_texts_stay_apart():
    tokens = tokenize(["Ann", "Ann"])
    spans = [span(0, 3), span(0, 3, text=1)]
    assert merge(spans, tokens) == spans


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_merged_spans_cover_every_letter_and_figure_share_no_word_and_do_not_depend_on_order(data):
    texts = data.draw(
        st.lists(st.text(alphabet="ab- .1@\n", min_size=1, max_size=25), min_size=1, max_size=3)
    )
    tokens = tokenize(texts)
    spans = []
    for _ in range(data.draw(st.integers(0, 8))):
        b = data.draw(st.integers(0, len(texts) - 1))
        start = data.draw(st.integers(0, len(texts[b]) - 1))
        end = data.draw(st.integers(start + 1, len(texts[b])))
        spans.append(
            Span(
                b,
                start,
                end,
                data.draw(st.sampled_from(["PERSON", "EMAIL", "LISTED"])),
                data.draw(st.sampled_from([0.2, 0.8])),
                "s",
            )
        )
    merged = merge(spans, tokens)
    assert merged == merge(data.draw(st.permutations(spans)), tokens)
    assert merge(merged, tokens) == merged
    given_places = {
        (s.text, i) for s in spans for i in range(s.start, s.end) if texts[s.text][i].isalnum()
    }
    found = [(s.text, i) for s in merged for i in range(s.start, s.end)]
    assert given_places <= {*found}
    assert len(found) == len({*found})
    owners = [
        {
            i
            for i, s in enumerate(merged)
            if s.text == b and s.start < tokens.ends[w] and s.end > tokens.starts[w]
        }
        for b in range(len(texts))
        for w in range(tokens.documents[b], tokens.documents[b + 1])
    ]
    assert all(len(own) <= 1 for own in owners)
    bounds = {(s.text, edge) for s in spans for edge in (s.start, s.end)}
    bounds |= {
        (b, i)
        for b, text in enumerate(texts)
        for i in range(1, len(text))
        if not text[i - 1 : i + 1].isalnum()
    }
    assert {(s.text, edge) for s in merged for edge in (s.start, s.end)} <= bounds


# ---- by name -----------------------------------------------------------------------------------------------


def test_unknown_detectors_are_refused_with_a_near_name():
    with pytest.raises(UnknownName, match="did you mean 'presidio'"):
        load_detector("persidio")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("patterns:x", "patterns"),
        ("patterns:", "patterns"),
        ("spacy", "spacy:PIPELINE"),
        ("spacy:", "spacy:PIPELINE"),
        ("gliner", "gliner:MODEL"),
        ("stanza:", "stanza:LANGUAGE"),
        ("tagger:", "tagger or tagger:MODEL"),
        ("presidio:", "presidio or presidio:PIPELINE"),
    ],
)
def test_what_stands_behind_the_colon_must_be_there_where_it_belongs(name, written):
    with pytest.raises(ConfigError, match=f"write this detector as {written}; got '{name}'"):
        load_detector(name)


def codes(prefix: str = "AB") -> Detector:
    """A detector of another package, with a word behind its colon."""
    return Scripted(find=lambda texts: [Span(0, 0, 2, "CODE", 1.0, "?")], name=prefix)


def failing() -> Detector:
    """One that cannot be loaded, and shows what it was given."""
    raise RuntimeError("Zyxqorvian")


@pytest.fixture
def _offered(monkeypatch):
    targets = {
        "codes": f"{__name__}:codes",
        "failing": f"{__name__}:failing",
        "others": "builtins:object",
    }
    for name, target in targets.items():
        entry = registry.Entry(target=target, summary="of a test", package="pack")
        monkeypatch.setitem(registry.DETECTORS, name, entry)
    load_detector.cache_clear()
    yield
    load_detector.cache_clear()


@pytest.mark.usefixtures("_offered")
def test_detectors_of_other_packages():
    assert load_detector("codes").name == "AB"
    assert load_detector("codes:XY").name == "XY"
    assert find_all([load_detector("codes:XY")], TEXTS, timeout=60)[0].source == "XY"
    found = Grouping.build(ProtectOptions(detectors=("codes:XY", "patterns")), NameOptions())
    assert found is not None
    assert [each.name for each in found.detection.settings.detectors] == ["XY", "patterns"]
    with pytest.raises(
        ConfigError, match=r"'failing' of the package pack failed to load \(RuntimeError\)"
    ) as caught:
        load_detector("failing")
    assert "Zyxq" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(
        ConfigError, match=r"needs a name and find\(texts\), and the object that the package pack"
    ):
        load_detector("others")


def test_patterns_are_a_detector():
    patterns = load_detector("patterns")
    assert patterns is load_detector("patterns")
    (found,) = find_all([patterns], ["write to maria@example.org"], timeout=60)
    assert found[:4] == (0, 9, 26, "EMAIL")


def test_the_bundled_tagger_is_loaded_once():
    tagger = load_detector("tagger")
    assert tagger is load_detector("tagger")
    texts = ["Maria Fernandez met John Smith in Lisbon .", "", "nothing here"]
    found = find_all([tagger], texts, timeout=120)
    assert {(texts[s.text][s.start : s.end], s.type) for s in found} >= {("Lisbon", "LOCATION")}
    assert {s.source for s in found} == {"tagger"}


def test_a_fraction_is_a_score():
    assert find_all([answers([FINE._replace(score=Fraction(1, 2))])], TEXTS, timeout=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "guess", "form", "kept"),
    [
        (
            "device IMEI 356971461484885 registered",
            "IMEI 356971461484885",
            ("356971461484885", "ID"),
            "356971461484885",
        ),
        (
            "the SIN 529 137 044 of",
            "SIN 529 137 044",
            ("529 137 044", "NATIONAL_ID"),
            "529 137 044",
        ),
        (
            "SIN 529 137 044 A7",
            "SIN 529 137 044 A7",
            ("529 137 044", "NATIONAL_ID"),
            "SIN 529 137 044 A7",
        ),
        ("no. XK 529 137 044", "XK 529 137 044", ("529 137 044", "NATIONAL_ID"), "XK 529 137 044"),
        ("no. XK529 137 044", "XK529 137 044", ("529 137 044", "NATIONAL_ID"), "XK529 137 044"),
        ("no. 529 at 10", "529 at", ("529", "AGE"), "529 at"),
    ],
)
def test_figures_that_the_tagger_finds_with_words_are_what_others_know(
    text: str, guess: str, form: tuple[str, str], kept: str
) -> None:
    (value, type_), start, at = form, text.index(guess), text.index(form[0])
    spans = [Span(0, start, start + len(guess), "ID", 0.99, "tagger")]
    spans.append(Span(0, at, at + len(value), type_, 0.9, "patterns"))
    assert [text[each.start : each.end] for each in merge(spans, tokenize([text]))] == [kept]


@pytest.mark.parametrize(
    ("text", "name", "forms", "expected"),
    [
        ("Ask Maria Silva maria@example.org about it", "Maria Silva maria@example.org", ["maria@example.org"],
         {("Maria Silva", "PERSON"), ("maria@example.org", "EMAIL")}),
        ("maria@example.org", "maria@example.org", ["maria@example.org"], {("maria@example.org", "EMAIL")}),
        ("a@x.org, Bo Lind, b@x.org", "a@x.org, Bo Lind, b@x.org", ["a@x.org", "b@x.org"],
         {("a@x.org", "EMAIL"), ("Bo Lind", "PERSON"), ("b@x.org", "EMAIL")}),
        ("Bo http://x.org/b@x.org/Lind", "Bo http://x.org/b@x.org/Lind", ["http://x.org/b@x.org/Lind", "b@x.org"],
         {("Bo", "PERSON"), ("http://x.org/b@x.org/Lind", "EMAIL")}),
    ],
)  # fmt: skip
def test_a_name_that_reaches_over_an_address_is_what_stands_beside_it(
    text: str, name: str, forms: list[str], expected: set[tuple[str, str]]
) -> None:
    spans = [Span(0, text.index(name), text.index(name) + len(name), "PERSON", 0.99, "tagger")]
    spans += [
        Span(0, text.index(form), text.index(form) + len(form), "EMAIL", 0.9, "patterns")
        for form in forms
    ]
    assert {
        (text[each.start : each.end], each.type) for each in merge(spans, tokenize([text]))
    } == expected
