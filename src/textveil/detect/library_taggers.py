"""Adapters: taggers of other libraries as detectors.

In: a folder, a name or a loaded model, texts. Out: spans with textveil's type names.
Not here: structured identifiers of textveil (`patterns`), and running and checking detectors
(`detectors`).

An adapter reads the whole of every text, or raises. Optional libraries are imported on first use,
and a loaded model never uses the network.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

import textveil.models as encoder
from textveil.config.extras import import_library
from textveil.detect.patterns.addresses import ROOMS, UNITS
from textveil.detect.patterns.hosts import DATA_CENTRE
from textveil.detect.spans import NAMES, NUMBER_TYPES, Span
from textveil.errors import ConfigError, DetectorError, ModelError, quote_short
from textveil.randomness import Flags
from textveil.table import fetch
from textveil.text import Tokens, is_ordinary, is_public, lexicon, tokenize

Places = Sequence[tuple[int, int]]
"""The parts of a text in order, each as its start and end."""

DEFAULT_SCORE = 0.85
"""The score of a span whose library gives none; Presidio uses the same value."""

UNNAMED_TYPE = "ENTITY"
"""The type of a label that has no letters A to Z."""

PRESIDIO_PIPELINE = "en_core_web_lg"
"""The spaCy pipeline that Presidio uses by default."""

GLINER_LABELS = (
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
"""The labels that a GLiNER model searches for."""

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
        "FISCAL_CODE ID_CARD IDENTITY_CARD ID_NUMBER NATIONAL_ID_NUMBER PERSONAL_IDENTITY_CODE "
        "TAX_ID PASSPORT "
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
"""textveil's types by the labels of other libraries; Presidio's without their country prefix
("US_SSN")."""


_NUMBER = re.compile(r"\d[\d.,]*")
_ROOM = re.compile(r"[A-Z]|[A-Z]?\d{1,4}|\d{1,4}[A-Za-z]")
_SLUG = re.compile(r"(?<![\w-])[a-z]+(?:-[a-z]+){2,}(?![\w-])")
"""Three or more words in small letters joined by hyphens: a branch, package or class name."""


def convert_label(label: str) -> str:
    """Returns textveil's type for another library's label.

    A label without such a type stays unchanged, in capitals.
    """
    # A type has at most 64 characters (`TYPE_NAME`).
    name = re.sub("[^A-Z0-9]+", "_", label.upper()).strip("_")[:64].rstrip("_") or UNNAMED_TYPE
    bare = re.sub("^[A-Z]{2}_", "", name)
    return ALIASES.get(name) or ALIASES.get(bare, name)


# ---- the bundled tagger and Hugging Face ---------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class TaggerDetector:
    """A word tagger as a detector of spans.

    Long texts are read in overlapping windows, see `models.entities`.

    Attributes:
        name: its name in rows and statements.
        model: the tagger.
    """

    name: str
    model: encoder.Tagger = field(repr=False)

    @property
    def is_bundled(self) -> bool:
        """True if it is the bundled tagger, with default thresholds."""
        tagger = self.model
        return (
            isinstance(tagger, encoder.TokenClassifier)
            and tagger.model.bundled
            and tagger.threshold is None
        )

    @property
    def _is_cutting_words(self) -> bool:
        """True if it reads only the beginning of long words."""
        tagger = self.model
        return (
            isinstance(tagger, encoder.TokenClassifier) and tagger.model.max_characters is not None
        )

    def copy_with_doubt(self, doubt: float) -> Self:
        """Returns a copy that also returns doubtful spans of the bundled tagger.

        Args:
            doubt: see `TokenClassifier.doubt`.
        """
        tagger = self.model
        return (
            replace(self, model=replace(tagger, doubt=doubt))
            if isinstance(tagger, encoder.TokenClassifier)
            else self
        )

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the entities of all texts, tagged in one batch.

        A long run of Base64 is one word, of which the bundled tagger reads the beginning: the
        encoded text is searched separately (`encodings`).

        The tagger does not see whitespace: an entity with a line break or a column gap in it is
        split there, and the number of a line ends a number. Small public words at the ends of a
        name (from, 's, a comma) are dropped, and hyphens at the ends of a user name. Entities that
        are only a slug or a measured number are dropped, too.
        """
        tokens = tokenize(texts)
        if self._is_cutting_words and (goes_on := _mark_continuations(tokens)).any():
            tokens = tokens.join_words(goes_on)
        slugs = [sorted(_find_slugs(text)) for text in texts]
        spans = []
        for entity in self.model.find(encoder.Ragged.build(tokens)):
            first = int(tokens.documents[entity.text])
            words = range(first + entity.start, first + entity.end)
            if entity.type not in encoder.DETAIL_TYPES:
                words = _trim_words(
                    tokens.words, words.start, words.stop, convert_label(entity.type)
                )
            elif entity.type == "HANDLE":
                words = _trim_hyphens(tokens.words, words.start, words.stop)
            places = [
                (int(tokens.starts[i]), int(tokens.ends[i]))
                for i in words
                if not _is_media(tokens.words[i], texts[entity.text], int(tokens.starts[i]))
            ]
            if not places:
                continue
            if _is_slug(entity, places, tokens.words[words.start : words.stop], slugs[entity.text]):
                continue
            parts = [*_join_words(texts[entity.text], places)]
            if convert_label(entity.type) in NUMBER_TYPES:
                parts = _drop_line_numbers(texts[entity.text], parts)
            parts = _drop_paragraphs(entity.type, texts[entity.text], parts)
            for start, end in _drop_header(entity.type, texts[entity.text], parts):
                score = min(entity.score, 1.0)  # a sum of probabilities
                private, evidence = entity.private, entity.evidence
                spans.append(
                    Span(
                        entity.text,
                        start,
                        end,
                        convert_label(entity.type),
                        score,
                        self.name,
                        private,
                        evidence,
                    )
                )
        return spans


MIN_BASE64_CHARACTERS = 200
"""Characters from which a run of Base64 is one word: longer than keys and tokens inside a word."""

_BASE64 = re.compile(
    rf"(?<![A-Za-z0-9+/_\-])(?:(?:[A-Za-z0-9+/]{{56,}}+\r?\n)*+[A-Za-z0-9+/_\-]{{{MIN_BASE64_CHARACTERS},}}+"
    r"|(?:[A-Za-z0-9+/]{56,}+\r?\n){3,}+[A-Za-z0-9+/]*+)={0,2}(?![A-Za-z0-9+/_\-])"
)
_JOINTS = "+/_-"
_MEDIA = re.compile(r"data:(?:image|audio|video|font)/[^\s,]{1,60};base64,\Z")


def _mark_continuations(tokens: Tokens) -> Flags:
    """Marks the words that continue a long run of Base64, bool [T]."""
    continues = np.zeros(len(tokens.words), np.bool_)
    for b, text in enumerate(tokens.texts):
        if len(text) < MIN_BASE64_CHARACTERS:
            continue
        low, high = tokens.documents[b : b + 2].tolist()
        for run in _BASE64.finditer(text):
            if _is_base64(run[0]):
                first, last = low + np.searchsorted(tokens.starts[low:high], run.span())
                continues[first + 1 : last] = True
    return continues


def _is_base64(run: str) -> bool:
    """True if a run has both cases and digits, as Base64 has.

    A path or a slug of words has not. Of 64 equally frequent characters, 2 are joints, 10 digits,
    26 small and 26 capital letters. At most twice as many joints, a fifth of the digits and a third
    of the rarer case are enough, because encoded data is not random.
    """
    letters = "".join(run.split()).rstrip("=")
    size, joints = len(letters), sum(map(letters.count, _JOINTS))
    figures = sum(map(str.isdigit, letters))
    small = sum(map(str.islower, letters))
    capitals = size - joints - figures - small
    return 16 * joints <= size and 32 * figures >= size and 8 * min(small, capitals) >= size


def _is_media(word: str, text: str, start: int) -> bool:
    """True if a word is a picture, sound or font in Base64.

    The text before it tells: `data:image/png;base64,`.
    """
    return (
        len(word) >= MIN_BASE64_CHARACTERS
        and _MEDIA.search(text, max(0, start - 90), start) is not None
    )


_MEASURED = re.compile(r"-?\d+\.\d{4,}(?:,-?\d+\.\d+)*|0[xX][\da-fA-F]+")


def _trim_words(words: Sequence[str], start: int, end: int, type_: str) -> range:
    """Trims small public words from both ends of an entity.

    The range is empty if nothing else is left, and for a number with a unit, a measured or
    hexadecimal number, and a room with a number or letter: none of these is a name.
    """
    small = [word == word.lower() and is_public(word) for word in words[start:end]]
    number, *unit = words[start:end]
    if all(small) or (_NUMBER.fullmatch(number) and unit and UNITS.issuperset(unit)):
        return range(0)
    if all(map(_MEASURED.fullmatch, words[start:end])):
        return range(0)
    inner = range(start + small.index(False), end - small[::-1].index(False))
    room = (
        type_ in ("LOCATION", "ORGANIZATION")
        and len(inner) == 2
        and words[inner[0]].lower() in ROOMS
    )
    return range(0) if room and _ROOM.fullmatch(words[inner[1]]) else inner


_CELLS = re.compile(r"[^\n]*[,;|\t] ?")


def _drop_header(type_: str, text: str, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Drops a table's last header cell from a person below it.

    The header is the line above; the cell is dropped if it holds only ordinary words. Other
    entities are unchanged.
    """
    if (
        len(parts) < 2
        or convert_label(type_) != "PERSON"
        or "\n" not in text[parts[0][1] : parts[1][0]]
    ):
        return parts
    line = text.rfind("\n", 0, parts[0][0]) + 1
    if not _CELLS.fullmatch(text, line, parts[0][0]) or text[max(0, line - 2) : line] not in (
        "",
        "\n\n",
    ):
        return parts
    return parts[_is_of_ordinary_words(text[slice(*parts[0])]) :]


def _drop_paragraphs(type_: str, text: str, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Drops parts of a name over several paragraphs that are only ordinary words.

    No name goes on behind an empty line: a heading and the first word below it are none.
    """
    gaps = [text[end:start] for (_, end), (start, _) in pairwise(parts)]
    if convert_label(type_) not in NAMES or not any(gap.count("\n") > 1 for gap in gaps):
        return parts
    return [part for part in parts if not _is_of_ordinary_words(text[slice(*part)])]


def _is_of_ordinary_words(value: str) -> bool:
    """True if all words are ordinary ones, and none is a listed name."""
    words, names = value.lower().split(), lexicon.read_lists()[0]
    return all(is_ordinary(word) and word not in names for word in words)


_LINE_NUMBER = re.compile(r"[ ]{0,8}(\d{1,6})(?:[ ]?[\t→|:])+")
"""A number that a program puts before a line that it shows."""
_MIN_FURTHER_CHARACTERS = 5
"""The fewest letters and digits that are private behind the line number that ends a number."""


def _drop_line_numbers(text: str, parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Drops the numbers of lines from the parts of a number.

    A number ends there: few characters on the lines below are dropped, too, while many may be
    another value. At its start, a counter may be a column of a table unless it is aligned.
    """
    remaining: list[tuple[int, int]] = []
    is_ended = False
    for start, end in parts:
        begin = _skip_line_number(text, start, is_aligned=not remaining)
        is_ended |= begin > start and bool(remaining)
        start = min(begin, end)
        if not is_ended or sum(map(str.isalnum, text[start:end])) >= _MIN_FURTHER_CHARACTERS:
            remaining += [(start, end)] if start < end else []
    return remaining


def _skip_line_number(text: str, start: int, *, is_aligned: bool) -> int:
    """Returns where a part goes on behind the number of its line.

    That number is one more than the one above.

    Args:
        text: the text.
        start: the start of the part; it is returned if no line number is there.
        is_aligned: whether spaces must fill the number up.
    """
    line = text.rfind("\n", 0, start) + 1
    number = _LINE_NUMBER.match(text, line)
    if number is None or number.start(1) != start or (is_aligned and text[line] != " "):
        return start
    above = _LINE_NUMBER.match(text, text.rfind("\n", 0, line - 1) + 1) if line else None
    return number.end() if above and int(above[1]) + 1 == int(number[1]) else start


def _trim_hyphens(words: Sequence[str], start: int, end: int) -> range:
    """Trims a hyphen from either end of an entity's words.

    It joins the entity to a word that is no part of it.
    """
    return range(start + (words[start] == "-"), max(start, end - (words[end - 1] == "-")))


def _find_slugs(text: str) -> Iterator[tuple[int, int]]:
    """Finds slugs without names, and names of data centres.

    A slug that is a place, such as aix-en-provence, is left out.
    """
    yield from (match.span() for match in DATA_CENTRE.finditer(text))
    for slug in _SLUG.finditer(text):
        if any(map(_is_name, slug[0].split("-"))):
            continue
        tokens = tokenize([slug[0]])
        if not (lexicon.mark_words(tokens.words, tokens.documents) & lexicon.PLACE_MARK).all():
            yield slug.span()


def _is_slug(entity: encoder.Entity, places: Places, words: Sequence[str], slugs: Places) -> bool:
    """True if an entity is part of a nameless slug.

    Nothing beside the slug may be private: a detail may be a whole slug, as a passphrase is, or
    extend beyond it, as an address does; a name extends beyond it where another word of it has a
    capital or is a name.
    """
    start, end = places[0][0], places[-1][1]
    at = bisect_right(slugs, start, key=lambda slug: slug[1])
    if at == len(slugs) or slugs[at][0] >= end:
        return False
    first, last = slugs[at]
    inside = first <= start and end <= last
    if entity.type in encoder.DETAIL_TYPES:
        return inside and (start, end) != (first, last)
    return inside or not any(word != word.lower() or _is_name(word) for word in words)


def _is_name(word: str) -> bool:
    """True if a word is a listed name and no ordinary word."""
    return word.lower() in lexicon.read_lists()[0] and not is_ordinary(word)


def _join_words(text: str, places: Places) -> Iterator[tuple[int, int]]:
    """Joins an entity's words to spans, split at line ends and gaps.

    A gap is a tab, or more than one space.
    """
    start, end = places[0]
    for begin, stop in places[1:]:
        if text[end:begin] not in ("", " "):
            yield start, end
            start = begin
        end = stop
    yield start, end


def load_tagger(
    model: str | Path | None = None, *, threshold: float | None = None
) -> TaggerDetector:
    """Loads the bundled tagger, or a token classifier of transformers.

    Args:
        model: None for the bundled one, or a folder or hub id.
        threshold: in (0, 1): smallest probability at which a word counts as part of an entity.
            Lower finds more. None for .6, and for the bundled tagger's own thresholds, which depend
            on the form of a word.

    Raises:
        ConfigError: the threshold is out of range.
        ModelError: there is no such model, or its labels have no names.
    """
    loaded = encoder.load_tagger(model, threshold=threshold)
    return TaggerDetector(name="tagger" if model is None else f"tagger:{loaded.name}", model=loaded)


# ---- spaCy ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Spacy:
    """A spaCy pipeline as a detector of entities and categorized spans.

    Attributes:
        name: its name in rows and statements.
        pipeline: a `spacy.Language`. It rejects texts longer than its `max_length` itself.
        groups: span groups that count in addition to entities; "sc" is spaCy's default for
            categorizers.
    """

    name: str
    pipeline: Any = field(repr=False)
    groups: tuple[str, ...] = ("sc",)

    def __post_init__(self) -> None:
        if not self.pipeline.pipe_names:
            raise ConfigError(
                f"{self.name} has no component that finds entities; choose a pipeline with one"
            )

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the entities of all texts.

        Raises:
            DetectorError: the pipeline dropped or changed a text, as it does if told to ignore
                errors.
        """
        documents = list(self.pipeline.pipe(texts))
        if [document.text for document in documents] != list(texts):
            raise DetectorError(
                f"the detector {self.name} dropped or changed a text; it must return every "
                "text unchanged"
            )
        return [
            Span(
                b,
                entity.start_char,
                entity.end_char,
                convert_label(entity.label_),
                DEFAULT_SCORE,
                self.name,
            )
            for b, document in enumerate(documents)
            for entity in [
                *document.ents,
                *(span for key in self.groups for span in document.spans.get(key, ())),
            ]
        ]


def load_spacy(pipeline: str) -> Spacy:
    """Loads an installed spaCy pipeline, or a pipeline in a folder.

    Raises:
        MissingExtra: spaCy is not installed.
        ConfigError: there is no such pipeline.
        ModelError: it cannot be loaded.
    """
    spacy = import_library("spacy")
    _check_pipeline(spacy, pipeline)
    try:
        loaded = spacy.load(pipeline)
    except Exception as error:  # of many kinds, none with user text in it
        raise ModelError(
            f"could not load the spaCy pipeline {quote_short(pipeline)} ({type(error).__name__}); "
            "install what it needs"
        ) from error
    return Spacy(name=f"spacy:{Path(pipeline).name}", pipeline=loaded)


def _check_pipeline(spacy: Any, source: str) -> None:
    if not (
        spacy.util.is_package(source) or os.path.isdir(source)
    ):  # Path would raise for a very long name
        raise ConfigError(
            f"the spaCy pipeline {quote_short(source)} is neither installed nor a folder; "
            "install it with python -m spacy download NAME"
        )


# ---- stanza --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Stanza:
    """A stanza pipeline as a detector.

    Attributes:
        name: its name in rows and statements.
        pipeline: a `stanza.Pipeline` with the `ner` processor.
    """

    name: str
    pipeline: Any = field(repr=False)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the entities of all texts."""
        return [
            Span(
                b,
                entity.start_char,
                entity.end_char,
                convert_label(entity.type),
                DEFAULT_SCORE,
                self.name,
            )
            for b, text in enumerate(texts)
            if text.strip()
            for entity in self.pipeline(text).ents
        ]


def load_stanza(language: str) -> Stanza:
    """Loads stanza's pipeline for a language.

    Its models must be on this machine (`stanza.download(LANGUAGE)`).

    Raises:
        MissingExtra: stanza is not installed.
        ModelError: the models are missing.
    """
    stanza = import_library("stanza")
    try:
        pipeline = stanza.Pipeline(
            language, processors="tokenize,ner", download_method=None, verbose=False, use_gpu=False
        )
    except Exception as error:  # of many kinds, none with user text in it
        raise ModelError(
            f"could not load stanza's models for {quote_short(language)} ({type(error).__name__}); "
            "get them with stanza.download(LANGUAGE)"
        ) from error
    return Stanza(name=f"stanza:{language}", pipeline=pipeline)


# ---- GLiNER --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Gliner:
    """A GLiNER model as a detector.

    GLiNER truncates long texts, so it gets them in overlapping windows.

    Attributes:
        name: its name in rows and statements.
        model: a `gliner.GLiNER`.
        labels: the kinds of entities to find, in words.
        threshold: in (0, 1): smallest probability of a span. Lower finds more.
        batch: windows per forward pass.
    """

    name: str
    model: Any = field(repr=False)
    labels: tuple[str, ...] = GLINER_LABELS
    threshold: float = 0.3
    batch: int = 8

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1 or not self.labels:
            raise ConfigError(
                f"{self.name} needs labels and a threshold between 0 and 1, got {self.threshold}"
            )

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the entities of all texts, in overlapping windows.

        Consecutive windows share a quarter of their words.

        Raises:
            DetectorError: the model cannot take even a one-word window, or skipped a window.
        """
        windows = [
            (b, start, text[start:end])
            for b, text in enumerate(texts)
            for start, end in self._compute_windows(text)
        ]
        if not windows:
            return []
        answers = self.model.inference(
            [part for _, _, part in windows],
            list(self.labels),
            threshold=self.threshold,
            batch_size=self.batch,
        )
        if len(answers) != len(windows):
            raise DetectorError(
                f"the detector {self.name} answered for {len(answers)} of {len(windows)} windows"
            )
        return [
            Span(
                b,
                start + entity["start"],
                start + entity["end"],
                convert_label(entity["label"]),
                entity["score"],
                self.name,
            )
            for (b, start, _), entities in zip(windows, answers, strict=True)
            for entity in entities
        ]

    def _compute_windows(self, text: str) -> Iterator[tuple[int, int]]:
        """Computes windows that the model takes without truncating them.

        They are halved until the model takes each one whole.
        """
        places = [(start, end) for _, start, end in self._split_words(text)]
        longest = self.model.config.max_len
        while True:
            stride = max(1, longest - longest // 4)
            count = -(-max(len(places) - longest, 0) // stride) + 1 if places else 0
            windows = [places[i * stride : i * stride + longest] for i in range(count)]
            bounds = [(window[0][0], window[-1][1]) for window in windows]
            if all(self._can_take(text[start:end]) for start, end in bounds):
                yield from bounds
                return
            if longest <= 1:
                raise DetectorError(
                    f"the detector {self.name} has no room for a word next to its labels; use "
                    "fewer labels"
                )
            longest //= 2

    def _can_take(self, part: str) -> bool:
        """True if the model takes a part of a text whole.

        Both its words and their subword pieces, together with the labels, must fit.
        """
        words = [word for word, _, _ in self._split_words(part)]
        if len(words) > self.model.config.max_len:
            return False
        processor = self.model.data_processor
        tokenizer = processor.transformer_tokenizer
        prompt = [word for label in self.labels for word in (processor.ent_token, label)]
        pieces = tokenizer(
            [*prompt, processor.sep_token, *words],
            is_split_into_words=True,
            truncation=False,
            verbose=False,
        )["input_ids"]
        return len(pieces) <= int(tokenizer.model_max_length)

    def _split_words(self, text: str) -> Iterator[tuple[str, int, int]]:
        yield from self.model.data_processor.words_splitter(text)


def load_gliner(model: str | Path) -> Gliner:
    """Loads a GLiNER model.

    Args:
        model: a folder or hub id.

    Raises:
        MissingExtra: gliner is not installed.
        ModelError: there is no such model.
    """
    gliner = import_library("gliner")

    def load(location: str, local: bool) -> Any:
        return gliner.GLiNER.from_pretrained(location, local_files_only=local)

    name, loaded = fetch(model, "GLiNER model", load)
    return Gliner(name=f"gliner:{name}", model=loaded)


# ---- Presidio ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Presidio:
    """Presidio's analyzer as a detector.

    Changes two things for the whole process: Presidio's e-mail recognizer uses the packaged list of
    public suffixes instead of fetching it on first use, and a pattern that exceeds Presidio's time
    limit raises instead of being skipped.

    Attributes:
        name: its name in rows and statements.
        analyzer: a `presidio_analyzer.AnalyzerEngine`.
        language: the language of the texts; the analyzer must support it.
    """

    name: str = "presidio"
    analyzer: Any = field(repr=False)
    language: str = "en"

    def __post_init__(self) -> None:
        import_library("tldextract.tldextract").TLD_EXTRACTOR.suffix_list_urls = ()
        # Presidio looks this name up in its module before the builtins; an empty tuple catches
        # nothing.
        import_library("presidio_analyzer.pattern_recognizer").TimeoutError = ()

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the analyzer's entities in all texts."""
        return [
            Span(
                b,
                entity.start,
                entity.end,
                convert_label(entity.entity_type),
                entity.score,
                self.name,
            )
            for b, text in enumerate(texts)
            for entity in self.analyzer.analyze(text=text, language=self.language)
        ]


def load_presidio(pipeline: str = PRESIDIO_PIPELINE) -> Presidio:
    """Loads Presidio's analyzer for English, with its default recognizers.

    Args:
        pipeline: its spaCy pipeline, installed or a folder; Presidio itself would download a
            missing pipeline.

    Raises:
        MissingExtra: Presidio is not installed.
        ConfigError: there is no such pipeline.
    """
    presidio = import_library("presidio_analyzer")
    _check_pipeline(import_library("spacy"), pipeline)
    engine = import_library("presidio_analyzer.nlp_engine").NlpEngineProvider(
        nlp_configuration={
            "nlp_engine_name": "spacy",
            "models": [{"lang_code": "en", "model_name": pipeline}],
        }
    )
    return Presidio(
        analyzer=presidio.AnalyzerEngine(
            nlp_engine=engine.create_engine(), supported_languages=["en"]
        )
    )
