"""Adapters: taggers of many makers as detectors: the bundled one, Hugging Face's, spaCy, stanza, GLiNER, Presidio.

In: a folder, a name or a loaded model, texts. Out: spans with the names of types that are used here.
Not here: structured identifiers of our own (`patterns`), and how detectors are run and checked (`detectors`).

An adapter looks at the whole of every text, or raises. What a user has to install for it is imported when it is asked
for, and none of it is asked for anything over the network once it is loaded.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import textveil.models as encoder
from textveil.errors import ConfigError, DetectorError, ModelError, shown
from textveil.protect.spans import Span
from textveil.table import fetch
from textveil.text import is_public, tokenize

UNSCORED = 0.85
"""The score of what a library finds without saying how sure it is; Presidio's own convention."""

UNNAMED = "ENTITY"
"""The type of what is called by no letters of the alphabet A to Z."""

PRESIDIO_PIPELINE = "en_core_web_lg"
"""The spaCy pipeline that Presidio works with unless another is named."""

QUESTIONS = (
    "person",
    "location",
    "organization",
    "street address",
    "email address",
    "phone number",
    "credit card number",
    "national id number",
    "date of birth",
    "medical record number",
    "password",
)
"""What a GLiNER model is asked for."""

ALIASES = {
    alias: type_
    for type_, aliases in {
        "PERSON": "PER PERS NAME FULL_NAME FIRST_NAME MIDDLE_NAME LAST_NAME GIVEN_NAME FAMILY_NAME SURNAME",
        "LOCATION": "LOC GPE FAC FACILITY CITY COUNTRY",
        "ORGANIZATION": "ORG ORGANISATION CORPORATION COMPANY GROUP NORP NRP",
        "EMAIL": "EMAIL_ADDRESS E_MAIL",
        "PHONE": "PHONE_NUMBER TELEPHONE TELEPHONE_NUMBER MOBILE_NUMBER FAX_NUMBER",
        "CARD": "CREDIT_CARD CREDIT_CARD_NUMBER DEBIT_CARD",
        "IBAN": "IBAN_CODE",
        "NATIONAL_ID": "SSN ITIN NINO NIF NIE NRIC_FIN TFN SIN RRN FRN PAN AADHAAR VOTER PESEL PERSONNUMMER TNIN NIN "
        "FISCAL_CODE ID_CARD IDENTITY_CARD ID_NUMBER NATIONAL_ID_NUMBER PERSONAL_IDENTITY_CODE TAX_ID PASSPORT "
        "PASSPORT_NUMBER SOCIAL_SECURITY SOCIAL_SECURITY_NUMBER",
        "IP": "IP_ADDRESS IPV4 IPV6",
        "MAC": "MAC_ADDRESS",
        "SECRET": "PASSWORD API_KEY",
        "CRYPTO": "BITCOIN_ADDRESS ETHEREUM_ADDRESS",
        "BIRTH_DATE": "DATE_OF_BIRTH DOB BIRTHDAY BIRTHDATE",
        "ADDRESS": "STREET_ADDRESS HOME_ADDRESS",
        "MEDICAL_RECORD": "MEDICAL_RECORD_NUMBER MRN NHS MEDICARE MBI HEALTH_INSURANCE HEALTH_INSURANCE_MEMBER_ID",
        "LICENCE": "LICENSE DRIVER_LICENSE DRIVERS_LICENSE DRIVING_LICENCE MEDICAL_LICENSE FUEHRERSCHEIN",
        "PLATE": "LICENSE_PLATE VEHICLE_REGISTRATION KFZ",
    }.items()
    for alias in aliases.split()
}
"""What other libraries call the types; names of Presidio without their country ("US_SSN")."""


def type_of(label: str) -> str:
    """The name of a type here for what another library calls it; a type of its own keeps its name, in capitals."""
    name = re.sub("[^A-Z0-9]+", "_", label.upper()).strip("_")[:64].rstrip("_") or UNNAMED
    bare = re.sub("^[A-Z]{2}_", "", name)
    return ALIASES.get(name) or ALIASES.get(bare, name)


# ---- the bundled tagger, and Hugging Face's ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TaggerDetector:
    """A tagger of words as a detector of spans. Long texts are read in overlapping windows, see `encoder.entities`.

    Attributes:
        name: what rows and statements call it.
        model: what tags.
    """

    name: str
    model: encoder.Tagger = field(repr=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The entities of all texts; all texts are tagged together.

        The tagger does not see how words are spaced. Where a line or a column ends inside an entity, it is two. Small
        words of the public list at its ends (from, 's, a comma) are no part of it.
        """
        tokens = tokenize(texts)
        spans = []
        for entity in self.model.find(encoder.Ragged.of(tokens)):
            first = int(tokens.documents[entity.text])
            words = _trimmed(tokens.words, first + entity.start, first + entity.end)
            places = [(int(tokens.starts[i]), int(tokens.ends[i])) for i in words]
            for start, end in _lines(texts[entity.text], places):
                score = min(entity.score, 1.0)  # a sum of probabilities
                spans.append(Span(entity.text, start, end, type_of(entity.type), score, self.name))
        return spans


def _trimmed(words: Sequence[str], start: int, end: int) -> range:
    """The places of an entity's words without small public words at both ends; none if it has no others."""
    small = [word == word.lower() and is_public(word) for word in words[start:end]]
    if all(small):
        return range(0)
    return range(start + small.index(False), end - small[::-1].index(False))


def _lines(text: str, places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The places of an entity's words as spans: a new one behind a line's end, a tab, or several spaces."""
    if not places:
        return
    start, end = places[0]
    for begin, stop in places[1:]:
        if text[end:begin] not in ("", " "):
            yield start, end
            start = begin
        end = stop
    yield start, end


def load_tagger(model: str | Path | None = None, *, threshold: float = 0.6) -> TaggerDetector:
    """The bundled tagger, or a token classifier of transformers.

    Args:
        model: None for the bundled one, or a folder or hub id.
        threshold: in (0, 1): how probable it must be that a word is part of an entity. Smaller finds more.

    Raises:
        ConfigError: the threshold is out of range.
        ModelError: there is no such model, or its labels have no names.
    """
    loaded = encoder.load_tagger(model, threshold=threshold)
    return TaggerDetector(name="tagger" if model is None else f"tagger:{loaded.name}", model=loaded)


# ---- spaCy -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Spacy:
    """A spaCy pipeline as a detector: its entities, and the spans of its span categorizers.

    Attributes:
        name: what rows and statements call it.
        pipeline: a `spacy.Language`. It refuses texts longer than its `max_length` itself.
        groups: names of the groups of spans that count beside entities; "sc" is spaCy's own for categorizers.
    """

    name: str
    pipeline: Any = field(repr=False)
    groups: tuple[str, ...] = ("sc",)

    def __post_init__(self) -> None:
        if not self.pipeline.pipe_names:
            raise ConfigError(f"the pipeline of {self.name} must have a component that finds entities, and has none")

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The entities of all texts.

        Raises:
            DetectorError: the pipeline dropped or changed a text; one whose errors are ignored does so.
        """
        documents = list(self.pipeline.pipe(texts))
        if [document.text for document in documents] != list(texts):
            raise DetectorError(f"the detector {self.name} must give every text back as it is, and did not")
        return [
            Span(b, found.start_char, found.end_char, type_of(found.label_), UNSCORED, self.name)
            for b, document in enumerate(documents)
            for found in [*document.ents, *(span for key in self.groups for span in document.spans.get(key, ()))]
        ]


def load_spacy(pipeline: str) -> Spacy:
    """An installed spaCy pipeline, or one in a folder.

    Raises:
        ConfigError: spaCy is not installed, or there is no such pipeline.
        ModelError: it cannot be loaded.
    """
    spacy = _extra("spacy", "spacy")
    _check_pipeline(spacy, pipeline)
    try:
        loaded = spacy.load(pipeline)
    except Exception as error:  # many kinds; none of them holds user text
        raise ModelError(
            f"the spaCy pipeline {shown(pipeline)} could not be loaded ({type(error).__name__}); install what it needs"
        ) from error
    return Spacy(name=f"spacy:{Path(pipeline).name}", pipeline=loaded)


def _check_pipeline(spacy: Any, source: str) -> None:
    if not (spacy.util.is_package(source) or os.path.isdir(source)):  # a Path would raise where the name is too long
        raise ConfigError(
            f"a spaCy pipeline must be a folder or installed, and {shown(source)} is neither; "
            "python -m spacy download NAME installs one"
        )


# ---- stanza ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Stanza:
    """A stanza pipeline as a detector.

    Attributes:
        name: what rows and statements call it.
        pipeline: a `stanza.Pipeline` with the processor `ner`.
    """

    name: str
    pipeline: Any = field(repr=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The entities of all texts."""
        return [
            Span(b, found.start_char, found.end_char, type_of(found.type), UNSCORED, self.name)
            for b, text in enumerate(texts)
            if text.strip()
            for found in self.pipeline(text).ents
        ]


def load_stanza(language: str) -> Stanza:
    """Stanza's pipeline for a language, whose models must be on this machine (`stanza.download(LANGUAGE)`).

    Raises:
        ConfigError: stanza is not installed.
        ModelError: the models are not there.
    """
    stanza = _extra("stanza", "stanza")
    try:
        pipeline = stanza.Pipeline(
            language, processors="tokenize,ner", download_method=None, verbose=False, use_gpu=False
        )
    except Exception as error:  # many kinds; none of them holds user text
        raise ModelError(
            f"stanza must have models for {shown(language)} on this machine, and gave {type(error).__name__}; "
            "stanza.download(LANGUAGE) fetches them"
        ) from error
    return Stanza(name=f"stanza:{language}", pipeline=pipeline)


# ---- GLiNER ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Gliner:
    """A GLiNER model as a detector. GLiNER cuts off what is too long for it; so it is given overlapping windows.

    Attributes:
        name: what rows and statements call it.
        model: a `gliner.GLiNER`.
        labels: what it is asked for, in words.
        threshold: in (0, 1): how probable a span must be. Smaller finds more.
        batch: windows in one run of the network.
    """

    name: str
    model: Any = field(repr=False)
    labels: tuple[str, ...] = QUESTIONS
    threshold: float = 0.3
    batch: int = 8

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1 or not self.labels:
            raise ConfigError(f"{self.name} needs labels, and a threshold between 0 and 1, got {self.threshold}")

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The entities of all texts; windows share a quarter of their words.

        Raises:
            DetectorError: the model cannot take a window of a single word, or left out a window.
        """
        windows = [(b, start, text[start:end]) for b, text in enumerate(texts) for start, end in self._windows(text)]
        if not windows:
            return []
        answers = self.model.inference(
            [part for _, _, part in windows], list(self.labels), threshold=self.threshold, batch_size=self.batch
        )
        if len(answers) != len(windows):
            raise DetectorError(f"the detector {self.name} must answer for each of its windows, and did not")
        return [
            Span(b, start + found["start"], start + found["end"], type_of(found["label"]), found["score"], self.name)
            for (b, start, _), entities in zip(windows, answers, strict=True)
            for found in entities
        ]

    def _windows(self, text: str) -> Iterator[tuple[int, int]]:
        """Where windows begin and end; they are made smaller until the model takes each of them whole."""
        places = [(start, end) for _, start, end in self._split(text)]
        longest = self.model.config.max_len
        while True:
            stride = max(1, longest - longest // 4)
            count = -(-max(len(places) - longest, 0) // stride) + 1 if places else 0
            windows = [places[i * stride : i * stride + longest] for i in range(count)]
            bounds = [(window[0][0], window[-1][1]) for window in windows]
            if all(self._takes(text[start:end]) for start, end in bounds):
                yield from bounds
                return
            if longest <= 1:
                raise DetectorError(f"the detector {self.name} must take one word beside its labels, and does not")
            longest //= 2

    def _takes(self, part: str) -> bool:
        """Whether nothing of a part is cut off: neither words nor, beside the labels, pieces of words."""
        words = [word for word, _, _ in self._split(part)]
        if len(words) > self.model.config.max_len:
            return False
        processor = self.model.data_processor
        tokenizer = processor.transformer_tokenizer
        prompt = [word for label in self.labels for word in (processor.ent_token, label)]
        pieces = tokenizer(
            [*prompt, processor.sep_token, *words], is_split_into_words=True, truncation=False, verbose=False
        )["input_ids"]
        return len(pieces) <= int(tokenizer.model_max_length)

    def _split(self, text: str) -> Iterator[tuple[str, int, int]]:
        yield from self.model.data_processor.words_splitter(text)


def load_gliner(model: str | Path) -> Gliner:
    """A GLiNER model.

    Args:
        model: a folder or hub id.

    Raises:
        ConfigError: gliner is not installed.
        ModelError: there is no such model.
    """
    gliner = _extra("gliner", "gliner")

    def load(where: str, local: bool) -> Any:
        return gliner.GLiNER.from_pretrained(where, local_files_only=local)

    name, loaded = fetch(model, "GLiNER model", load)
    return Gliner(name=f"gliner:{name}", model=loaded)


# ---- Presidio ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Presidio:
    """Presidio's analyzer as a detector.

    For the whole process, two of its ways are changed: its recognizer of e-mail addresses no longer fetches the list
    of public suffixes at its first use (the one in its package serves), and a pattern that takes longer than
    Presidio allows raises, where it was skipped.

    Attributes:
        name: what rows and statements call it.
        analyzer: a `presidio_analyzer.AnalyzerEngine`.
        language: of the texts, one that the analyzer knows.
    """

    name: str = "presidio"
    analyzer: Any = field(repr=False)
    language: str = "en"

    def __post_init__(self) -> None:
        _extra("tldextract.tldextract", "presidio").TLD_EXTRACTOR.suffix_list_urls = ()
        # The name is looked up here before it is among the built-in ones; an empty tuple catches nothing.
        _extra("presidio_analyzer.pattern_recognizer", "presidio").TimeoutError = ()

    def find(self, texts: Sequence[str]) -> list[Span]:
        """What the analyzer finds in all texts."""
        return [
            Span(b, found.start, found.end, type_of(found.entity_type), found.score, self.name)
            for b, text in enumerate(texts)
            for found in self.analyzer.analyze(text=text, language=self.language)
        ]


def load_presidio(pipeline: str = PRESIDIO_PIPELINE) -> Presidio:
    """Presidio's analyzer for English, with its own choice of recognizers.

    Args:
        pipeline: the spaCy pipeline that it works with, installed or a folder; Presidio would fetch a missing one.

    Raises:
        ConfigError: Presidio is not installed, or there is no such pipeline.
    """
    presidio = _extra("presidio_analyzer", "presidio")
    _check_pipeline(_extra("spacy", "presidio"), pipeline)
    engine = _extra("presidio_analyzer.nlp_engine", "presidio").NlpEngineProvider(
        nlp_configuration={"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": pipeline}]}
    )
    return Presidio(analyzer=presidio.AnalyzerEngine(nlp_engine=engine.create_engine(), supported_languages=["en"]))


def _extra(module: str, extra: str) -> Any:
    """A module of a library that is installed only where it is wanted."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{module.partition('.')[0]} must be installed for this: pip install 'textveil[{extra}]'"
        ) from error
