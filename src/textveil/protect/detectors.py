"""Detectors run: found by name, asked under a time limit, checked, and their spans merged.

In: detectors and texts. Out: checked spans of all of them, and spans that do not overlap.
Not here: the detectors themselves (`patterns`, `adapters`, `lists`), and what is done about a span (`grouping`).

Whatever goes wrong in a detector raises: a part of a text that was not looked at must never pass for one in which
nothing was found.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import Parameter, signature
from numbers import Integral, Real
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from textveil.config import registry
from textveil.errors import ConfigError, DetectorError, TextveilError, shown
from textveil.protect.spans import IDENTIFIERS, LISTED, TYPE_NAME, Detector, Span
from textveil.text import Tokens, check_texts

# ---- by name -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def detector(name: str) -> Detector:
    """The detector of a name, loaded once in a process.

    Args:
        name: one of the registry: "patterns"; "tagger" (the bundled one) or "tagger:MODEL"; "spacy:PIPELINE";
            "stanza:LANGUAGE"; "gliner:MODEL"; "presidio" or "presidio:PIPELINE"; or that of another package's
            detector. A MODEL is a folder or a hub id, a PIPELINE a folder or the name of an installed spaCy pipeline.
            What stands behind the colon is the first argument of the callable behind the name; it must be there where
            that has no default, and must not where the callable takes no argument by position.

    Raises:
        UnknownName: there is no such detector.
        ConfigError: the part after the colon is missing or surplus, the library is not installed, or what another
            package offers is no detector.
        ModelError: there is no such model.
    """
    kind, colon, given = name.partition(":")
    make = registry.load("detector", kind)
    argument = _argument(make)
    optional = argument is None or argument.default is not Parameter.empty
    if bool(given) != bool(colon) or (given and argument is None) or not (given or optional):
        forms = [kind] * optional + ([] if argument is None else [f"{kind}:{argument.name.upper()}"])
        raise ConfigError(f"this detector is written {', or '.join(forms)}; got {shown(name)}")
    made = _made(kind, make, (given,) if given else ())
    if not isinstance(made, Detector):
        raise ConfigError(
            f"the detector {kind!r} must have a name and find(texts), and the {type(made).__name__} of the package "
            f"{registry.entry('detector', kind).package} has not; repair or uninstall that package"
        )
    return made


def _argument(make: Callable[..., Any]) -> Parameter | None:
    """What a callable takes first, by position."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return next((each for each in signature(make).parameters.values() if each.kind in positional), None)


def _made(kind: str, make: Callable[..., Any], given: tuple[str, ...]) -> object:
    package = registry.entry("detector", kind).package
    try:
        return make(*given)
    except Exception as error:
        if package == "textveil" or isinstance(error, TextveilError):
            raise
        name = type(error).__name__  # another package's message is not ours to show
    raise ConfigError(f"the detector {kind!r} of the package {package} must load, and raised {name}")


# ---- running -----------------------------------------------------------------------------------------------


def find_all(detectors: Sequence[Detector], texts: Sequence[str], *, timeout: float | None) -> list[Span]:
    """What all detectors find in all texts, or an error: a detector that fails never counts as one that found nothing.

    Each detector runs in a thread of its own. Python cannot stop a thread: one that takes too long goes on in the
    background, its answer is not waited for, and it ends with the process at the latest.

    Args:
        detectors: what looks for spans.
        texts: B texts.
        timeout: seconds that each detector may take for all of the texts; None for no limit.

    Returns:
        Spans by text and place, with their detector's name as source; they may overlap.

    Raises:
        InputError: `texts` is not a sequence of valid Unicode strings.
        DetectorError: a detector raised an error or took too long, or what it returned is not a list of spans with
            0 <= start < end <= length of one of the texts, a type of capital letters, digits and underscores, and a
            score from 0 to 1. The line names the detector and shows nothing of texts or of its error; only a
            `DetectorError` that it raises itself keeps its line, which must hold no text either.
    """
    check_texts(texts)
    given = tuple(texts)  # which no detector can change
    if not given:
        return []
    found = [span for each in detectors for span in _checked(each.name, _run(each, given, timeout), given)]
    return sorted(found)


def _run(each: Detector, texts: Sequence[str], timeout: float | None) -> object:
    name = each.name
    answers: SimpleQueue[tuple[bool, object]] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put((True, each.find(texts)))
        except DetectorError as error:
            answers.put((False, str(error)))
        except BaseException as error:  # whatever it is, the thread must answer
            answers.put((False, f"the detector {name} must not fail, and raised {type(error).__name__}"))

    Thread(target=ask, name=f"textveil {name}", daemon=True).start()
    try:
        fine, answer = answers.get(timeout=timeout)
    except Empty:
        fine, answer = False, f"the detector {name} must answer within {timeout:g} s, and did not"
    if not fine:
        raise DetectorError(str(answer))  # out here, because the error in the chain could hold text
    return answer


def _checked(name: str, found: object, texts: Sequence[str]) -> list[Span]:
    if not isinstance(found, list):
        raise DetectorError(f"the detector {name} must return a list of spans, and returned {type(found).__name__}")
    return [_span(name, each, texts) for each in found]


def _span(name: str, found: object, texts: Sequence[str]) -> Span:
    if not isinstance(found, Span):
        raise DetectorError(f"the detector {name} must return spans only, and returned {type(found).__name__}")
    given: Sequence[Any] = found
    text, start, end, type_, score, _ = given
    if not (_whole(text) and 0 <= text < len(texts)):
        must = f"return spans of the {len(texts)} texts that it was given, and returned one of another"
    elif not (_whole(start) and _whole(end) and 0 <= start < end <= len(texts[text])):
        must = f"return spans with 0 <= start < end <= length of their text; one of text {text} is not so"
    elif not (isinstance(type_, str) and TYPE_NAME.fullmatch(type_)):
        must = "return types of at most 64 capital letters, digits and underscores"
    elif not (_real(score) and 0 <= score <= 1):
        must = "return scores from 0 to 1"
    else:
        return Span(int(text), int(start), int(end), type_, float(score), name)
    raise DetectorError(f"the detector {name} must {must}")


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _real(value: Any) -> bool:
    return isinstance(value, Real)


# ---- merging -----------------------------------------------------------------------------------------------


def merge(spans: Sequence[Span], tokens: Tokens) -> list[Span]:
    """One span for all those that overlap or have a part of the same word, so that no word is in two spans.

    It reaches from the first of their characters to the last, so every character of every span given is in one that
    is returned. Type, score and source are those of the most certain: structured identifiers go before what a user
    listed, and that before any other type; then the higher score decides, then the greater length, then the place,
    the type and the source.

    Args:
        spans: of texts of `tokens`, in any order.
        tokens: the words of these texts.
    """
    joined: list[tuple[int, int, list[Span]]] = []  # text, where the last word that they touch ends, spans
    for text, start, end, span in sorted((span.text, *_reach(span, tokens), span) for span in spans):
        if joined and joined[-1][0] == text and start < joined[-1][1]:
            _, before, group = joined.pop()
            joined.append((text, max(before, end), [*group, span]))
        else:
            joined.append((text, end, [span]))
    return sorted(_union(group) for _, _, group in joined)


def _reach(span: Span, tokens: Tokens) -> tuple[int, int]:
    """From where to where a span and the words that it touches go."""
    low, high = tokens.documents[span.text : span.text + 2].tolist()
    first = bisect_right(tokens.ends, span.start, low, high)
    last = bisect_left(tokens.starts, span.end, low, high) - 1
    if first > last:
        return span.start, span.end
    return min(span.start, int(tokens.starts[first])), max(span.end, int(tokens.ends[last]))


def _union(group: Sequence[Span]) -> Span:
    first = min(group, key=_certainty)
    return first._replace(start=min(span.start for span in group), end=max(span.end for span in group))


def _certainty(span: Span) -> tuple[Any, ...]:
    rank = 0 if span.type in IDENTIFIERS else 1 if span.type == LISTED else 2
    return rank, -span.score, span.start - span.end, span.start, span.type, span.source
