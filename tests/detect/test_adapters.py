"""Adapters: taggers of many makers find what they find, see the whole of every text, and ask no network."""

import re
import socket
import sys
import types
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import spacy
from spacy.language import Language

from tests.models.conftest import LABELS, SIZE, save, wordpiece
from textveil import models
from textveil.detect import library_taggers
from textveil.detect.detectors import find_all, load_detector
from textveil.detect.library_taggers import (
    Gliner,
    Presidio,
    Spacy,
    Stanza,
    TaggerDetector,
    convert_label,
    load_presidio,
    load_tagger,
)
from textveil.detect.spans import TYPE_NAME, TYPES
from textveil.errors import ConfigError, DetectorError, MissingExtra, ModelError
from textveil.text import tokenize

CANARY = "zanzibarquux"


@pytest.mark.parametrize(
    ("label", "type_"),
    [
        ("PER", "PERSON"),
        ("person", "PERSON"),
        ("GPE", "LOCATION"),
        ("Org", "ORGANIZATION"),
        ("NORP", "ORGANIZATION"),
        ("EMAIL_ADDRESS", "EMAIL"),
        ("email address", "EMAIL"),
        ("PHONE_NUMBER", "PHONE"),
        ("CREDIT_CARD", "CARD"),
        ("US_SSN", "NATIONAL_ID"),
        ("PL_PESEL", "NATIONAL_ID"),
        ("UK_DRIVING_LICENCE", "LICENCE"),
        ("IN_VEHICLE_REGISTRATION", "PLATE"),
        ("IP_ADDRESS", "IP"),
        ("EMAIL", "EMAIL"),
        ("DATE_TIME", "DATE_TIME"),
        ("US_BANK_NUMBER", "US_BANK_NUMBER"),
        ("work-of art!", "WORK_OF_ART"),
        ("人名", "ENTITY"),
        ("x" * 100, "X" * 64),
    ],
)
def test_types_have_the_names_of_the_house_or_keep_their_own(label, type_):
    assert convert_label(label) == type_
    assert TYPE_NAME.fullmatch(type_)


def test_aliases_lead_to_types_and_never_away_from_one():
    assert {*library_taggers.ALIASES.values()} <= {*TYPES}
    assert all(convert_label(type_) == type_ for type_ in TYPES)
    assert all(convert_label(question) in TYPES for question in library_taggers.GLINER_LABELS)


# ---- taggers of words --------------------------------------------------------------------------------------


class Capitals:
    """Tags every run of words with a capital; shows what it was asked."""

    name = "capitals"

    def find(self, texts: models.Ragged) -> list[models.Entity]:
        found = []
        for b, (low, high) in enumerate(pairwise(texts.documents)):
            i = low
            while i < high:
                j = i
                while j < high and texts.words[j][0].isupper():
                    j += 1
                if j > i:
                    found.append(models.Entity(b, int(i - low), int(j - low), "per", 1.0000001))
                i = max(j, i + 1)
        return found


def test_words_become_characters():
    texts = ["", "  Ann Lee's friend Bo", "none", "Zo\u00eb\nB.", "Ann\tLee", "Ann  Lee"]
    found = find_all([TaggerDetector(name="t", model=Capitals())], texts, timeout=None)
    assert [(s.text, texts[s.text][s.start : s.end], s.type, s.score) for s in found] == [
        (1, "Ann Lee", "PERSON", 1.0),
        (1, "Bo", "PERSON", 1.0),
        (3, "Zo\u00eb", "PERSON", 1.0),
        (3, "B", "PERSON", 1.0),
        (4, "Ann", "PERSON", 1.0),
        (4, "Lee", "PERSON", 1.0),
        (5, "Ann", "PERSON", 1.0),
        (5, "Lee", "PERSON", 1.0),
    ]


class Row:
    """Tags one row of words as what it was told."""

    name = "row"

    def __init__(self, words: str, type_: str) -> None:
        self.words, self.type = words, type_

    def find(self, texts: models.Ragged) -> list[models.Entity]:
        row = tokenize([self.words]).words
        (at,) = (i for i in range(len(texts.words)) if texts.words[i : i + len(row)] == row)
        return [models.Entity(0, at, at + len(row), self.type, 0.9)]


@pytest.mark.parametrize(
    ("text", "words", "type_", "found"),
    [
        ("branch add-dark-mode", "add-dark-mode", "person", False),
        ("branch add-dark-mode", "dark", "location", False),
        ("in kettle-socket-rivet && ls", "rivet && ls", "organization", False),
        ("the record kettle-socket-rivet: x", "record kettle-socket-rivet", "organization", False),
        ("a b-c-d b-e-f g", "e", "person", False),
        ("whisk-clamp-ladder", "whisk-", "SECRET", False),
        ("whisk-clamp-ladder", "whisk-clamp-ladder", "SECRET", True),
        ("at hof-ter-heide 12", "hof-ter-heide 12", "ADDRESS", True),
        ("ask Qwrtz in kettle-socket-rivet", "Qwrtz in kettle-socket", "person", True),
        ("i live in aix-en-provence", "aix-en-provence", "location", True),
        ("branch anna-kowalska-login", "anna-kowalska-login", "person", True),
        ("branch anna-kowalska-login", "kowalska", "person", True),
        ("ask Anna in kettle-socket-rivet", "Anna in kettle-socket", "person", True),
        ("add-dark-mode, kettle, rivet-socket-bolt", "kettle", "person", True),
        ("kettle-socket", "kettle-socket", "organization", True),
        ("Kettle-Socket-Rivet", "Kettle-Socket-Rivet", "organization", True),
        ("meet in Building C.", "Building C.", "location", False),
        ("Salle 12", "Salle 12", "location", False),
        ("region: eu-central-1", "eu-central-1", "location", False),
        ("host: anna-west-1", "anna-west-1", "location", True),
        ("Kat B. called", "Kat B", "person", True),
        ("seed 0x534b1d411e", "0x534b1d411e", "person", False),
        ("0.0213,0.012120", "0.0213,0.012120", "location", False),
        ("the number 0121204666", "0121204666", "person", True),
        ("meet in Building Osprey", "Building Osprey", "location", True),
    ],
)
def test_a_slug_room_or_figure_is_a_name_only_where_a_word_of_it_is(text, words, type_, found):
    assert bool(TaggerDetector(name="t", model=Row(words, type_)).find([text])) == found


@pytest.mark.parametrize(
    ("text", "words", "type_", "found"),
    [
        ("Name,Mobile\nZoë Lee,7", "Mobile Zoë Lee", "person", ["Zoë Lee"]),
        ("Name,Mark\nZoë Lee,7", "Mark Zoë Lee", "person", ["Mark", "Zoë Lee"]),
        ("Name,Mobile\nA,Mobile\nZoë Lee,7", "Mobile Zoë Lee", "person", ["Mobile", "Zoë Lee"]),
        ("ask Mobile\nZoë Lee", "Mobile Zoë Lee", "person", ["Mobile", "Zoë Lee"]),
        ("Mobile\tZoë Lee", "Mobile Zoë Lee", "person", ["Mobile", "Zoë Lee"]),
        ("in Blue\nLamp Street 7", "Blue Lamp Street 7", "ADDRESS", ["Blue", "Lamp Street 7"]),
    ],
)
def test_the_last_word_of_a_header_is_no_part_of_the_name_below(text, words, type_, found):
    spans = TaggerDetector(name="t", model=Row(words, type_)).find([text])
    assert [text[span.start : span.end] for span in spans] == found


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("   3\ttel 22 85 50\n   4\tx", "22 85 50 4", ["22 85 50"]),
        ("3\ttel 22 85 50\n4\tx", "22 85 50 4", ["22 85 50"]),
        ("3→tel 22 85 50\n4→12", "22 85 50\n4→12", ["22 85 50"]),
        ("3→22 85 50\n4→86011117947", "22 85 50\n4→86011117947", ["22 85 50", "86011117947"]),
        ("   3\tx\n   4\t22 85 50", "4 22 85 50", ["22 85 50"]),
        ("   3\tx\n   4\t22 85 50", "4", []),
        # a soft line break, numbers that do not count lines, and a column of a table
        ("tel 22 85\n50 50", "22 85 50 50", ["22 85", "50 50"]),
        ("   3\t22 85\n50\tx", "22 85 50", ["22 85", "50"]),
        ("   3\ttel 22 85 50\n   9\tx", "22 85 50 9", ["22 85 50", "9"]),
        ("1042\tx\n1043\ty", "1043", ["1043"]),
        ("0042\tx\n0043\ty", "0043", ["0043"]),
    ],
)
def test_the_number_of_a_line_is_no_part_of_a_number(text, words, found):
    spans = TaggerDetector(name="t", model=Row(words, "PHONE")).find([text])
    assert [text[span.start : span.end] for span in spans] == found


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("# Rota\n\nPrints who is called", "Rota\n\nPrints", []),
        ("# Rota\n\nQwrtz is here", "Rota\n\nQwrtz", ["Qwrtz"]),
        ("# Rose\n\nMark is here", "Rose\n\nMark", ["Rose", "Mark"]),
        ("the Rota\nPrints Ltd", "Rota\nPrints", ["Rota", "Prints"]),
        ("the Rota Prints Ltd", "Rota Prints", ["Rota Prints"]),
    ],
)
def test_a_heading_and_the_word_below_are_no_name(text, words, found):
    spans = TaggerDetector(name="t", model=Row(words, "organization")).find([text])
    assert [text[span.start : span.end] for span in spans] == found


def test_a_span_is_as_private_as_its_entity():
    class Half:
        name = "half"

        def find(self, texts: models.Ragged) -> list[models.Entity]:
            return [models.Entity(0, 0, 1, "per", 0.9, 0.25), models.Entity(0, 1, 2, "per", 0.9)]

    found = find_all([TaggerDetector(name="t", model=Half())], ["Ann Lee"], timeout=None)
    assert [span.privacy_score for span in found] == [0.25, 1.0]


def test_a_token_classifier_from_a_folder_is_a_detector(tmp_path):
    named = {
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: i for i, label in enumerate(LABELS)},
    }
    folder = save(
        tmp_path / "tags",
        "BertForTokenClassification",
        wordpiece(),
        **SIZE,
        max_position_embeddings=128,
        **named,
    )
    texts = ["maria met john near acme corp plus paris " * 40, "", "old town"]
    found = load_detector(f"tagger:{folder}").find(texts)
    own = models.load_tagger(folder).find(models.Ragged.join([text.split() for text in texts]))
    places = [[(m.start(), m.end()) for m in re.finditer(r"\S+", text)] for text in texts]
    assert len(own) > 10
    assert [(s.text, s.start, s.end, s.type) for s in found] == [
        (e.text, places[e.text][e.start][0], places[e.text][e.end - 1][1], e.type) for e in own
    ]
    assert {s.source for s in found} == {"tagger:tags"}


def test_a_tagger_that_is_not_there_is_refused():
    with pytest.raises(ModelError):
        load_detector("tagger:no/such/model")
    with pytest.raises(ConfigError, match="threshold"):
        load_tagger(threshold=1)


# ---- spaCy -------------------------------------------------------------------------------------------------


@Language.component("fails_on_canary")
def fails_on_canary(document: Any) -> Any:
    if CANARY in document.text:
        raise ValueError(document.text)
    return document


@pytest.fixture
def pipeline() -> Any:
    """A blank pipeline with a ruler that knows three names."""
    found = spacy.blank("en")
    ruler: Any = found.add_pipe("entity_ruler")
    ruler.add_patterns(
        [
            {"label": "PERSON", "pattern": "Maria"},
            {"label": "GPE", "pattern": "New York"},
            {"label": "A b", "pattern": "x"},
        ]
    )
    return found


def test_entities_of_a_spacy_pipeline_are_spans(pipeline):
    texts = ["", "Maria left New York.", "\nx"]
    found = find_all([Spacy(name="spacy:ruler", pipeline=pipeline)], texts, timeout=60)
    assert [(s.text, texts[s.text][s.start : s.end], s.type) for s in found] == [
        (1, "Maria", "PERSON"),
        (1, "New York", "LOCATION"),
        (2, "x", "A_B"),
    ]


def test_span_categorizers_count(pipeline):
    ruler = pipeline.add_pipe("span_ruler", config={"spans_key": "sc"})
    ruler.add_patterns([{"label": "PHONE_NUMBER", "pattern": "Maria left"}])  # type: ignore[attr-defined]
    found = Spacy(name="s", pipeline=pipeline).find(["Maria left"])
    assert [(s.start, s.end, s.type) for s in found] == [(0, 5, "PERSON"), (0, 10, "PHONE")]
    assert len(Spacy(name="s", pipeline=pipeline, groups=()).find(["Maria left"])) == 1


def test_a_text_that_is_too_long_for_spacy_is_an_error(pipeline):
    pipeline.max_length = 20
    with pytest.raises(DetectorError, match="spacy failed with ValueError") as caught:
        find_all([Spacy(name="spacy", pipeline=pipeline)], [f"Maria {CANARY} Maria"], timeout=60)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("ignored", [False, True])
def test_a_component_that_fails_is_an_error_even_where_spacy_is_told_to_ignore_it(
    pipeline, ignored
):
    pipeline.add_pipe("fails_on_canary")
    if ignored:
        pipeline.set_error_handler(lambda *anything: None)
        assert (
            len(list(pipeline.pipe(["Maria", CANARY]))) == 1
        )  # the danger: what failed is left out
    with pytest.raises(DetectorError) as caught:
        find_all([Spacy(name="spacy", pipeline=pipeline)], ["Maria", f"{CANARY} Maria"], timeout=60)
    assert CANARY not in str(caught.value)


def test_a_pipeline_without_components_would_find_nothing_and_is_refused():
    with pytest.raises(ConfigError, match="has no component"):
        Spacy(name="spacy:blank", pipeline=spacy.blank("en"))


def test_a_spacy_pipeline_is_loaded_from_a_folder_once(pipeline, tmp_path):
    pipeline.to_disk(tmp_path / "ruler")
    found = load_detector(f"spacy:{tmp_path / 'ruler'}")
    assert found is load_detector(f"spacy:{tmp_path / 'ruler'}")
    assert [s.source for s in found.find(["Maria"])] == ["spacy:ruler"]


def test_a_pipeline_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="neither"):
        load_detector("spacy:no_such_pipeline")
    with pytest.raises(ModelError, match="could not load"):
        load_detector(f"spacy:{tmp_path}")


# ---- stanza ------------------------------------------------------------------------------------------------


def test_entities_of_stanza_are_spans_and_empty_texts_are_not_asked():
    def pipeline(text: str) -> Any:
        assert text.strip()
        return types.SimpleNamespace(
            ents=[
                types.SimpleNamespace(type="PER", start_char=m.start(), end_char=m.end())
                for m in re.finditer("Ann", text)
            ]
        )

    found = find_all(
        [Stanza(name="stanza:en", pipeline=pipeline)], [" ", "Ann, Ann", ""], timeout=5
    )
    assert [s[:4] for s in found] == [(1, 0, 3, "PERSON"), (1, 5, 8, "PERSON")]


@pytest.mark.parametrize(
    ("name", "extra"), [("stanza:en", "stanza"), ("gliner:a/b", "gliner"), ("spacy:en", "spacy")]
)
def test_what_is_not_installed_is_named_with_its_extra(name, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, extra, None)  # importing it fails
    with pytest.raises(
        MissingExtra, match=re.escape(f"this needs {extra}: pip install 'textveil[{extra}]'")
    ):
        load_detector(name)


# ---- GLiNER ------------------------------------------------------------------------------------------------


class PieceTokenizer:
    """One piece for every three letters, and two for the frame."""

    model_max_length = int(1e30)

    def __call__(
        self, words: list[str], *, is_split_into_words: bool, truncation: bool, verbose: bool
    ) -> Any:
        assert is_split_into_words
        assert not truncation
        return {"input_ids": [0] * (2 + sum(-(-len(word) // 3) for word in words))}


class FakeGliner:
    """Finds "Ann Lee" as GLiNER would, with its signature: it reads the first `max_len` words and drops the rest."""

    def __init__(self, max_len: int = 12) -> None:
        self.config = types.SimpleNamespace(max_len=max_len)
        self.data_processor = types.SimpleNamespace(
            words_splitter=self.split,
            transformer_tokenizer=PieceTokenizer(),
            ent_token="<<E>>",
            sep_token="<<S>>",
        )
        self.asked: list[str] = []

    @staticmethod
    def split(text: str) -> Iterator[tuple[str, int, int]]:
        for match in re.finditer(r"\w+(?:[-_]\w+)*|\S", text):
            yield match.group(), match.start(), match.end()

    def inference(
        self,
        texts: list[str],
        labels: list[str],
        flat_ner: bool = True,
        threshold: float = 0.5,
        multi_label: bool = False,
        batch_size: int = 8,
    ) -> list[list[dict[str, Any]]]:
        assert "person" in labels
        self.asked += texts
        seen = [[*self.split(text)][: self.config.max_len] for text in texts]
        return [
            [
                {
                    "start": a[1],
                    "end": b[2],
                    "text": text[a[1] : b[2]],
                    "label": "person",
                    "score": 0.75,
                }
                for a, b in pairwise(words)
                if (a[0], b[0]) == ("Ann", "Lee")
            ]
            for text, words in zip(texts, seen, strict=True)
        ]


def gliner(model: Any, **options: Any) -> Gliner:
    return Gliner(name="gliner:fake", model=model, **options)


@pytest.mark.parametrize("max_len", [4, 5, 12, 384])
@pytest.mark.parametrize("place", range(0, 60, 7))
def test_a_name_is_found_wherever_it_stands_in_a_long_text(max_len, place):
    words = ["word"] * 58
    text = " ".join([*words[:place], "Ann  Lee", *words[place:]])
    model = FakeGliner(max_len)
    found = find_all([gliner(model)], ["", text, " "], timeout=5)
    assert {(s.text, text[s.start : s.end], s.type, s.score) for s in found} == {
        (1, "Ann  Lee", "PERSON", 0.75)
    }
    assert all(len([*model.split(part)]) <= max_len for part in model.asked)


def test_the_fake_cuts_off_as_the_real_one_does():
    assert FakeGliner().inference(["word " * 20 + "Ann Lee"], ["person"]) == [[]]


def test_windows_share_a_quarter_of_their_words_and_hold_all():
    model = FakeGliner(8)
    text = " ".join(str(i) for i in range(30))
    gliner(model).find([text])
    windows = [[int(word) for word in part.split()] for part in model.asked]
    assert windows == [[*range(i, min(i + 8, 30))] for i in range(0, 30, 6)]


def test_windows_are_smaller_where_a_model_takes_fewer_pieces_than_its_words_have():
    model = FakeGliner(100)
    model.data_processor.transformer_tokenizer.model_max_length = 130
    gliner(model, labels=("person",)).find(["incomprehensible " * 60 + "Ann Lee"])
    assert max(len(part.split()) for part in model.asked) < 130 // 6
    assert model.asked[-1].endswith("Ann Lee")
    model.data_processor.transformer_tokenizer.model_max_length = 9
    with pytest.raises(DetectorError, match="no room for a word next to its labels") as caught:
        find_all([gliner(model, labels=("person",))], [CANARY], timeout=5)
    assert CANARY not in str(caught.value)


def test_windows_are_smaller_where_a_part_has_more_words_alone_than_in_its_text():
    model = FakeGliner(12)
    whole = " ".join(["ab-cd"] * 40)

    def split(text: str) -> Iterator[tuple[str, int, int]]:
        for match in re.finditer(r"\S+" if text == whole else r"\w+|-", text):
            yield match.group(), match.start(), match.end()

    model.data_processor.words_splitter = split
    gliner(model).find([whole])
    assert max(len([*split(part)]) for part in model.asked) <= 12
    assert len(model.asked) > 13


def test_an_answer_that_is_missing_is_an_error():
    model = FakeGliner()
    model.inference = lambda texts, *_, **__: [[]] * (len(texts) - 1)  # type: ignore[method-assign, assignment]
    with pytest.raises(DetectorError, match=r"answered for \d of \d windows"):
        find_all([gliner(model)], ["Ann Lee"], timeout=5)


@pytest.mark.parametrize("options", [{"threshold": 0}, {"labels": ()}])
def test_options_of_gliner_are_checked(options):
    with pytest.raises(ConfigError):
        gliner(FakeGliner(), **options)


def test_gliner_is_loaded_from_a_folder(tmp_path, monkeypatch):
    class Loader:
        @staticmethod
        def from_pretrained(where: str, *, local_files_only: bool) -> FakeGliner:
            assert local_files_only
            return FakeGliner()

    monkeypatch.setitem(sys.modules, "gliner", types.SimpleNamespace(GLiNER=Loader))  # type: ignore[arg-type]
    (tmp_path / "small").mkdir()
    assert [s.source for s in load_detector(f"gliner:{tmp_path / 'small'}").find(["Ann Lee"])] == [
        "gliner:small"
    ]


# ---- Presidio ----------------------------------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every attempt to reach something is refused, and counted."""
    tried: list[Any] = []

    def refuse(*anything: Any, **named: Any) -> Any:
        tried.append(anything[:1])
        raise OSError("no network in this test")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "create_connection", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    return tried


@pytest.fixture(scope="module")
def presidio(tmp_path_factory: pytest.TempPathFactory) -> Presidio:
    """Presidio over a pipeline with a ruler."""
    folder = tmp_path_factory.mktemp("spacy") / "ruler"
    found = spacy.blank("en")
    found.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Maria"}])  # type: ignore[attr-defined]
    found.to_disk(folder)
    return load_presidio(str(folder))


def test_presidio_finds_without_a_network(presidio, no_network, tmp_path, monkeypatch):
    import tldextract.tldextract as suffixes
    from tldextract.cache import DiskCache

    monkeypatch.setattr(
        suffixes.TLD_EXTRACTOR, "_extractor", None
    )  # as at the first use in a process,
    monkeypatch.setattr(
        suffixes.TLD_EXTRACTOR, "_cache", DiskCache(str(tmp_path))
    )  # on a new machine
    texts = ["", "Write to Maria at maria@example.org, or pay 4111 1111 1111 1111."]
    found = find_all([presidio], texts, timeout=120)
    places = {(texts[s.text][s.start : s.end], s.type) for s in found}
    assert places >= {
        ("Maria", "PERSON"),
        ("maria@example.org", "EMAIL"),
        ("4111 1111 1111 1111", "CARD"),
    }
    assert {s.source for s in found} == {"presidio"}
    assert no_network == []


def test_without_the_adapter_presidio_asks_the_network(presidio, no_network, tmp_path, monkeypatch):
    import tldextract.tldextract as suffixes
    from tldextract.cache import DiskCache

    monkeypatch.setattr(suffixes.TLD_EXTRACTOR, "_extractor", None)
    monkeypatch.setattr(suffixes.TLD_EXTRACTOR, "_cache", DiskCache(str(tmp_path)))
    monkeypatch.setattr(
        suffixes.TLD_EXTRACTOR, "suffix_list_urls", suffixes.PUBLIC_SUFFIX_LIST_URLS
    )
    presidio.find(["maria@example.org"])
    assert no_network


def slow(presidio: Presidio, monkeypatch: pytest.MonkeyPatch) -> Presidio:
    """With a pattern that takes longer than is allowed."""
    import presidio_analyzer
    from presidio_analyzer import Pattern, PatternRecognizer

    monkeypatch.setattr(presidio_analyzer.pattern_recognizer, "REGEX_TIMEOUT_SECONDS", 0.05)
    pattern = Pattern(name="slow", regex=r"(?:(?:a|a)+)+\1?$(?<=((?:a|a)+)+c)", score=0.9)
    registry = presidio_analyzer.RecognizerRegistry(
        recognizers=[PatternRecognizer(supported_entity="SLOW", patterns=[pattern])],
        supported_languages=["en"],
    )
    engine = presidio_analyzer.AnalyzerEngine(
        registry=registry, nlp_engine=presidio.analyzer.nlp_engine
    )
    return Presidio(name="slow", analyzer=engine)


def test_a_pattern_of_presidio_that_takes_too_long_is_an_error(presidio, monkeypatch):
    detector_ = slow(presidio, monkeypatch)
    with pytest.raises(DetectorError, match="slow failed with TimeoutError"):
        find_all([detector_], ["a" * 60 + "b"], timeout=60)


def test_without_the_adapter_presidio_skips_it(presidio, monkeypatch):
    detector_ = slow(presidio, monkeypatch)
    monkeypatch.setattr(
        sys.modules["presidio_analyzer.pattern_recognizer"],
        "TimeoutError",
        TimeoutError,
        raising=False,
    )
    assert detector_.find(["a" * 60 + "b"]) == []


def test_a_pipeline_that_presidio_would_fetch_is_refused(no_network):
    with pytest.raises(ConfigError, match="neither"):
        load_detector("presidio:no_such_pipeline")
    assert no_network == []
