"""Measures detectors: what they find of what people and places and numbers are in texts. Part of `make bench`.

In: the folder of corpora that $TEXTVEIL_CORPORA names (`presidio_synth`, `wikigold`, `wnut17`).
Out: one rate at a time.
Not here: what is done about what they find.

Patterns were written with the templates of presidio_synth in view that have an even number, and template 87; rows
report the others. A span counts as found where a detector's span of any type overlaps it, because it is then protected;
"typed" rates ask for the same type, and precision is that of types which the data marks. The rate of words is the share
of a span's words that lie in a detector's spans. The tagger was trained on four of five templates of presidio_synth and
sentences of wikigold, and on WNUT-17's training part: its rates are those of texts that it has not seen.
Presidio is its own pattern recognizers with its default settings, without a model of names and without a network.
"""

import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from textveil_bench.process_usage import measure_best_seconds

TYPES = {
    "PERSON": "PERSON", "GPE": "LOCATION", "LOCATION": "LOCATION", "ORGANIZATION": "ORGANIZATION",
    "ADDRESS": "ADDRESS", "STREET_ADDRESS": "ADDRESS", "ZIP_CODE": "ADDRESS", "CREDIT_CARD": "CARD",
    "EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "IBAN_CODE": "IBAN", "IP_ADDRESS": "IP", "DOMAIN_NAME": "URL",
    "URL": "URL", "US_SSN": "NATIONAL_ID", "US_DRIVER_LICENSE": "LICENCE", "CRYPTO": "CRYPTO", "MAC_ADDRESS": "MAC",
    "MEDICAL_LICENSE": "LICENCE", "PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION", "person": "PERSON",
    "location": "LOCATION", "corporation": "ORGANIZATION", "group": "ORGANIZATION",
}  # fmt: skip
"""Types of data sets and of Presidio as textveil calls them; others have no counterpart."""
NATIONAL = ("US_", "UK_", "ES_", "IT_", "PL_", "SG_", "AU_", "IN_", "FI_", "KR_")
SEEN = 87
NAMES = 40
ORIGINS = (
    "en_US", "en_GB", "ga_IE", "es_ES", "es_MX", "pt_BR", "fr_FR", "de_DE", "it_IT", "pl_PL", "hu_HU", "sv_SE", "fi_FI",
    "tr_TR", "en_IN", "id_ID", "vi_VN", "yo_NG", "zu_ZA",
)  # fmt: skip
"""Faker's locales with first names of both genders in Latin letters; so many names of each gender are drawn."""
SENTENCES = (
    "{} called the clinic this morning.",
    "Please send the report to {} before Friday.",
    "My neighbour {} lost a job last year.",
    "I spoke with {} about the loan.",
    "The patient, {}, was discharged on Monday.",
    "Yours sincerely, {}",
    "can you ask {} whether the contract is signed?",
    "The complaint was filed by {} against the landlord.",
    "{} and I have been married for ten years.",
    "According to {}, the meeting was cancelled.",
)


class Gold(NamedTuple):
    """A text and what is in it: start, end, type as the data set has it."""

    text: str
    spans: list[tuple[int, int, str]]


Spans = list[tuple[int, int, str]]
Detect = Callable[[Sequence[str]], list[Spans]]


# ---- corpora ---------------------------------------------------------------------------------------------------------


def synthetic(corpora: Path, parity: int, *, untrained: bool = False) -> list[Gold]:
    """Sentences of presidio_synth whose template has an odd (1) or even (0) number; the seen one counts as even.

    Untrained are those of templates on which the tagger was not trained.
    """
    is_held_out = training_data().is_held_out
    found = []
    for name in ("generated_large.jsonl.gz", "synth_v2.shared.jsonl.gz"):
        with gzip.open(corpora / "presidio_synth" / name, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                own = (row["template_id"] % 2 if row["template_id"] != SEEN else 0) == parity
                if own and (not untrained or is_held_out(row["masked"])):
                    spans = [
                        (s["start_position"], s["end_position"], s["entity_type"])
                        for s in row["spans"]
                    ]
                    found.append(Gold(row["full_text"], spans))
    return found


def training_data() -> Any:
    """The module that says what the tagger was trained on."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from training import data

    return data


def tagged(path: Path) -> list[Gold]:
    """Sentences of a file with a token and its label (B-, I-, O) in a line, joined by spaces."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = [
            block.splitlines() for block in re.split(r"\n\s*\n", file.read()) if block.strip()
        ]
    found = []
    for block in blocks:
        words, labels = zip(*((line.split()[0], line.split()[-1]) for line in block), strict=True)
        spans: Spans = []
        start, last = 0, "O"
        for word, label in zip(words, labels, strict=True):
            end = start + len(word)
            if label != "O":
                if label.startswith("B-") or last[2:] != label[2:]:
                    spans.append((start, end, label[2:]))
                else:
                    spans[-1] = (spans[-1][0], end, label[2:])
            start, last = end + 1, label
        found.append(Gold(" ".join(words), spans))
    return found


# ---- detectors -------------------------------------------------------------------------------------------------------


def patterns() -> Detect:
    """Our patterns."""
    from textveil.detect.patterns import Patterns

    detector = Patterns()

    def detect(texts: Sequence[str]) -> list[Spans]:
        found: list[Spans] = [[] for _ in texts]
        for span in detector.find(texts):
            found[span.text].append((span.start, span.end, span.type))
        return found

    return detect


def tagger() -> Detect:
    """The bundled tagger."""
    from textveil.models import Ragged, load_tagger
    from textveil.text.tokens import tokenize

    loaded = load_tagger()

    def detect(texts: Sequence[str]) -> list[Spans]:
        tokens = tokenize(texts)
        found: list[Spans] = [[] for _ in texts]
        for entity in loaded.find(Ragged.build(tokens)):
            first = int(tokens.documents[entity.text])
            start, end = (
                int(tokens.starts[first + entity.start]),
                int(tokens.ends[first + entity.end - 1]),
            )
            found[entity.text].append((start, end, entity.type))
        return found

    return detect


def both(one: Detect, other: Detect) -> Detect:
    """What either finds."""
    return lambda texts: [a + b for a, b in zip(one(texts), other(texts), strict=True)]


def presidio() -> Detect:
    """Presidio's pattern recognizers; words of a blank spaCy pipeline stand for lemmas. Nothing is fetched."""
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    offline = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    tldextract.extract = tldextract.tldextract.extract = tldextract.tldextract.TLD_EXTRACTOR = (
        offline
    )

    @spacy.Language.component("words_as_lemmas")
    def words_as_lemmas(doc: Any) -> Any:
        for token in doc:
            token.lemma_ = token.lower_
        return doc

    blank = spacy.blank("en")
    blank.add_pipe("words_as_lemmas")
    nlp = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "blank"}])
    nlp.nlp = {"en": blank}
    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    registry.remove_recognizer("SpacyRecognizer")
    engine = AnalyzerEngine(nlp_engine=nlp, registry=registry, supported_languages=["en"])

    def detect(texts: Sequence[str]) -> list[Spans]:
        return [
            [(r.start, r.end, r.entity_type) for r in engine.analyze(text, language="en")]
            for text in texts
        ]

    return detect


# ---- rates -----------------------------------------------------------------------------------------------------------


def known(type_: str) -> str | None:
    """A data set's or Presidio's type as textveil calls it, None where it has none."""
    from textveil.detect import spans

    return TYPES.get(type_) or (
        type_ if type_ in spans.TYPES else "NATIONAL_ID" if type_.startswith(NATIONAL) else None
    )


def values(gold: Sequence[Gold], found: Sequence[Spans]) -> Iterator[tuple[str, str, int, float]]:
    """Type, metric, number of the text, and 0 to 1, for every span of either."""
    marked = {known(type_) for one in gold for _, _, type_ in one.spans}
    for number, (one, spans) in enumerate(zip(gold, found, strict=True)):
        covered = np.zeros(len(one.text) + 1, bool)
        for start, end, _ in spans:
            covered[start:end] = True
        for start, end, type_ in one.spans:
            name = known(type_)
            if name is None:
                continue
            words = [
                (start + m.start(), start + m.end())
                for m in re.finditer(r"\w+", one.text[start:end])
            ]
            yield name, "recall", number, float(covered[start:end].any())
            same = any(s < end and e > start and known(t) == name for s, e, t in spans)
            yield name, "typed recall", number, float(same)
            if words:
                yield (
                    name,
                    "recall of words",
                    number,
                    sum(bool(covered[s:e].all()) for s, e in words) / len(words),
                )
        for start, end, type_ in spans:
            name = known(type_)
            if name is None or name not in marked:  # whether it is right is not known
                continue
            over = [known(t) for s, e, t in one.spans if s < end and e > start]
            yield name, "precision", number, float(bool(over))
            yield name, "typed precision", number, float(name in over)


def rates(
    data: str, gold: Sequence[Gold], detectors: dict[str, Detect]
) -> Iterator[dict[str, Any]]:
    """Every rate of every type, by detector."""
    from textveil_bench.intervals import mean

    texts = [one.text for one in gold]
    found = {name: detect(texts) for name, detect in detectors.items()}
    if "tagger" in found:
        found["both"] = [a + b for a, b in zip(found["patterns"], found["tagger"], strict=True)]
    for name, spans in found.items():
        cells: dict[tuple[str, str], list[tuple[int, float]]] = {}
        for type_, metric, number, value in values(gold, spans):
            for row in (type_, "all"):
                cells.setdefault((row, metric), []).append((number, value))
        for (type_, metric), pairs in sorted(cells.items()):
            interval = mean(np.array([v for _, v in pairs]), np.array([n for n, _ in pairs]))
            yield {
                "what": f"detection, {data}, {type_}, {name}: {metric}",
                "unit": "share",
                "release": type_,
                "data": data,
                "metric": f"{name}: {metric}",
                "value": interval.value,
                "low": interval.low,
                "high": interval.high,
                "n": len(pairs),
            }
    left = sorted({type_ for one in gold for _, _, type_ in one.spans if known(type_) is None})
    yield {
        "what": f"detection, {data}, not covered",
        "unit": "spans",
        "release": "not covered",
        "data": data,
        "metric": "spans",
        "value": sum(known(type_) is None for one in gold for _, _, type_ in one.spans),
        "low": None,
        "high": None,
        "note": f"of types that no detector has: {', '.join(left) or 'none'}",
    }


def names(origin: str, gender: str) -> list[str]:
    """Names of a country, by Faker."""
    from faker import Faker

    faker = Faker(origin)
    faker.seed_instance(1)
    first = getattr(faker, f"first_name_{gender}")
    return [f"{first()} {faker.last_name()}" for _ in range(NAMES)]


def fairness(detect: Detect) -> Iterator[dict[str, Any]]:
    """How much of names the tagger finds, by where they are from and by gender."""
    gold, groups = [], []
    for origin in ORIGINS:
        for gender in ("female", "male"):
            for number, name in enumerate(names(origin, gender)):
                for sentence in SENTENCES[number % 2 :: 2]:
                    start = sentence.index("{}")
                    gold.append(Gold(sentence.format(name), [(start, start + len(name), "PERSON")]))
                    groups.append((origin, gender))
    from textveil_bench.intervals import mean

    found = list(values(gold, detect([one.text for one in gold])))
    for metric in ("recall", "typed recall"):
        own = [
            (groups[n], n // (len(SENTENCES) // 2), v)
            for type_, m, n, v in found
            if m == metric and type_ == "PERSON"
        ]
        for origin in ORIGINS:
            for gender in ("female", "male"):
                pairs = [(n, v) for group, n, v in own if group == (origin, gender)]
                interval = mean(np.array([v for _, v in pairs]), np.array([n for n, _ in pairs]))
                yield {
                    "what": f"detection, names, {origin} {gender}: {metric}",
                    "unit": "share",
                    "release": f"{origin} {gender}",
                    "metric": f"tagger: {metric}",
                    "value": interval.value,
                    "low": interval.low,
                    "high": interval.high,
                    "n": len(pairs),
                }


# ---- speed -----------------------------------------------------------------------------------------------------------


def passages(gold: Sequence[Gold], count: int, *, figures: bool) -> list[str]:
    """Texts of 180 words, of sentences with figures in them or of such without."""
    words: list[str] = []
    for one in gold:
        if figures or not re.search(r"\d", one.text):
            words += one.text.split()
    return [" ".join(words[i * 180 : (i + 1) * 180]) for i in range(min(count, len(words) // 180))]


def speed(
    gold: Sequence[Gold], plain: Sequence[Gold], detectors: dict[str, Detect], repeat: int
) -> Iterator[dict[str, Any]]:
    """Milliseconds a text of 180 words."""
    for kind, texts in (
        ("identifiers", passages(gold, 16, figures=True)),
        ("no figures", passages(plain, 16, figures=False)),
    ):
        for name, detect in detectors.items():
            yield {
                "what": f"detection, {name}, 180 words, {kind}, {len(texts)} texts",
                "unit": "ms/text",
                "value": 1000
                * measure_best_seconds(lambda d=detect, t=texts: d(t), repeat)
                / len(texts),
                "texts": len(texts),
                "figures": sum(c.isdigit() for text in texts for c in text) / len(texts),
            }


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """Rates on the corpora, then names, then speed; only names where there are no corpora."""
    ours, names_of = patterns(), tagger()
    yield from fairness(names_of)
    if "TEXTVEIL_CORPORA" not in os.environ:
        return
    corpora = Path(os.environ["TEXTVEIL_CORPORA"])
    detectors = {"patterns": ours, "tagger": names_of, "presidio": presidio()}
    unseen = synthetic(corpora, 1)
    yield from rates(
        "presidio_synth", unseen, {name: detectors[name] for name in ("patterns", "presidio")}
    )
    held_out = synthetic(corpora, 1, untrained=True)
    yield from rates("presidio_synth held out", held_out, detectors)
    news = {
        "wikigold held out": tagged(corpora / "wikigold" / "all.shared.conll.gz")[::5],
        "WNUT-17 dev": tagged(corpora / "wnut17" / "dev.shared.conll.gz"),
        "WNUT-17 test": tagged(corpora / "wnut17" / "test.shared.conll.gz"),
    }
    for data, gold in news.items():
        yield from rates(data, gold, {"patterns": ours, "tagger": names_of})
    yield from speed(
        unseen, news["WNUT-17 test"], {**detectors, "both": both(ours, names_of)}, repeat
    )
