"""Detectors: finds them by name, runs them, checks their spans.

In: detectors and texts. Out: the checked spans of all detectors, which may overlap.
Not here: the detectors themselves (`patterns`, `library_taggers`, `lists`), and the steps behind them
(`stages`).

Any failure of a detector raises: an unsearched text must never pass as a text in which nothing was
found.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from functools import lru_cache
from inspect import Parameter, signature
from numbers import Integral, Real
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from textveil.config import registry
from textveil.detect.detection_cache import SpanCache
from textveil.detect.encodings import (
    blank_encoded_words,
    decode_escapes,
    decode_parts,
    map_to_original,
)
from textveil.detect.liveness import DETECTION_LISTENER
from textveil.detect.spans import TYPE_NAME, Detector, Span
from textveil.errors import ConfigError, DetectorError, TextveilError, quote_short
from textveil.models import PROGRESS_LISTENER, Evidence
from textveil.text import check_texts

# ---- by name -------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def load_detector(name: str) -> Detector:
    """Returns a detector by name, loaded once per process.

    Args:
        name: a registered detector: "patterns"; "structure"; "tagger" (the bundled one) or
            "tagger:MODEL"; "spacy:PIPELINE"; "stanza:LANGUAGE"; "gliner:MODEL"; "presidio" or
            "presidio:PIPELINE"; or a detector of another package. A MODEL is a folder or a hub id,
            a PIPELINE a folder or the name of an installed spaCy pipeline. The part after the colon
            is passed as first argument to the registered callable; it is required if that argument
            has no default, and not allowed if the callable takes no positional argument.

    Raises:
        UnknownName: there is no such detector.
        ConfigError: the part after the colon is missing or not allowed, the library is not
            installed, or another package's object is not a detector.
        ModelError: there is no such model.
    """
    kind, colon, suffix = name.partition(":")
    make = registry.load("detector", kind)
    argument = _get_parameter(make)
    optional = argument is None or argument.default is not Parameter.empty
    if bool(suffix) != bool(colon) or (suffix and argument is None) or not (suffix or optional):
        forms = [kind] * optional + (
            [] if argument is None else [f"{kind}:{argument.name.upper()}"]
        )
        raise ConfigError(f"write this detector as {' or '.join(forms)}; got {quote_short(name)}")
    instance = _make_detector(kind, make, (suffix,) if suffix else ())
    if not isinstance(instance, Detector):
        raise ConfigError(
            f"a detector needs a name and find(texts), and the {type(instance).__name__} that the "
            "package "
            f"{registry.find_entry('detector', kind).package} registers as {kind!r} lacks them; "
            "fix or remove that package"
        )
    return instance


def _get_parameter(make: Callable[..., Any]) -> Parameter | None:
    """Returns a callable's first positional parameter, or None."""
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return next(
        (
            parameter
            for parameter in signature(make).parameters.values()
            if parameter.kind in positional
        ),
        None,
    )


def _make_detector(kind: str, make: Callable[..., Any], arguments: tuple[str, ...]) -> object:
    package = registry.find_entry("detector", kind).package
    try:
        return make(*arguments)
    except Exception as error:
        if package == "textveil" or isinstance(error, TextveilError):
            raise
        name = type(error).__name__  # the message of another package may hold anything
    # Raised outside of `except`, because a chained error would show the foreign message.
    raise ConfigError(f"the detector {kind!r} of the package {package} failed to load ({name})")


# ---- running -------------------------------------------------------------------------------------


def find_all(
    detectors: Sequence[Detector],
    texts: Sequence[str],
    *,
    timeout: float | None,
    memory: SpanCache | None = None,
) -> list[Span]:
    """Runs all detectors on all texts and checks their spans.

    A detector that fails raises; it never counts as finding nothing.

    Spans are mapped back to the text as written, see `encodings`. Text that is encoded inside a
    text, by percent signs, entities, Base64 or hexadecimal digits, is decoded and searched, too.
    Equal texts are searched once: the spans of a text depend on that text alone.

    Detectors run one after the other in a separate thread. Python cannot stop a thread: a detector
    that exceeds the time limit continues in the background and its answer is ignored; it ends with
    the process at the latest.

    Args:
        detectors: the detectors to run.
        texts: B texts.
        timeout: seconds for which a detector may show no progress (`alive`), and until it answers
            if it never shows any; None for no limit.
        memory: the spans of earlier texts by the same detectors, to which these are added; None
            without one.

    Returns:
        Spans by text and place, with their detector's name as source; they may overlap.

    Raises:
        InputError: `texts` is not a sequence of valid Unicode strings.
        DetectorError: a detector raised, exceeded the time limit, or returned anything but a list
            of spans with 0 <= start < end <= length of a text, a type of capital letters, digits
            and underscores, and a score from 0 to 1. The message names the detector and shows
            neither texts nor the original error; only the message of a detector's own
            `DetectorError` is passed on, and must not hold text either.
    """
    check_texts(texts)
    places: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        places.setdefault(text, []).append(i)
    earlier = {} if memory is None else {text: memory[text] for text in places if text in memory}
    new = [text for text in places if text not in earlier]
    by_text = {text: list[Span]() for text in new}
    for span in _detect_with_encoded(detectors, new, timeout):
        by_text[new[span.text]].append(span)
    if memory is not None:
        memory.keep(by_text)
    return sorted(
        span._replace(text=i)
        for text, spans in (*earlier.items(), *by_text.items())
        for span in spans
        for i in places[text]
    )


def _detect_with_encoded(
    detectors: Sequence[Detector], texts: Sequence[str], timeout: float | None
) -> Iterator[Span]:
    """Runs detectors on distinct texts and on the text encoded in them."""
    readable = [decode_escapes(text) for text in texts]
    contents = tuple(item.text for item in readable)  # detectors cannot change a tuple
    if not contents:
        return
    spans = list(_run_detectors(detectors, tuple(map(blank_encoded_words, contents)), timeout))
    encoded = [(i, part) for i, text in enumerate(contents) for part in decode_parts(text)]
    for span in (
        _run_detectors(detectors, tuple(part.text for _, part in encoded), timeout)
        if encoded
        else ()
    ):
        i, part = encoded[span.text]
        spans += [inner._replace(text=i) for inner in part.map_to_text(span)]
    yield from (map_to_original(span, readable) for span in spans)


class _ProgressClock:
    """The time at which detectors last showed progress."""

    def __init__(self) -> None:
        self.at = time.monotonic()

    def __call__(self, *_: object) -> None:
        self.at = time.monotonic()


def _run_detectors(
    detectors: Sequence[Detector], texts: Sequence[str], timeout: float | None
) -> Iterator[Span]:
    answers: SimpleQueue[tuple[bool, object]] = SimpleQueue()
    wanted = True
    last_sign = _ProgressClock()

    def ask() -> None:
        _listen(last_sign)
        for finder in detectors:
            if not wanted:
                return
            last_sign()
            try:
                answers.put((True, finder.find(texts)))
            except DetectorError as error:
                answers.put((False, str(error)))
            except BaseException as error:  # the caller waits for an answer, whatever happened
                answers.put(
                    (False, f"the detector {finder.name} failed with {type(error).__name__}")
                )

    # Context variables, such as listeners, do not reach a new thread by themselves.
    Thread(target=copy_context().run, args=(ask,), name="textveil detectors", daemon=True).start()
    try:
        for finder in detectors:
            answer = _await_answer(finder.name, answers, timeout, last_sign)
            yield from _check_spans(finder.name, answer, texts)
    finally:
        # The thread cannot be stopped, but it asks no further detector.
        wanted = False


def _listen(last_sign: _ProgressClock) -> None:
    """Installs a listener for all signs of progress, including networks'."""
    listener = PROGRESS_LISTENER.get()

    def report(done: int, total: int) -> None:
        last_sign()
        if listener is not None:
            listener(done, total)

    DETECTION_LISTENER.set(last_sign)
    PROGRESS_LISTENER.set(report)


def _await_answer(
    name: str,
    answers: SimpleQueue[tuple[bool, object]],
    timeout: float | None,
    last_sign: _ProgressClock,
) -> object:
    is_success, answer = False, object()
    waiting = True
    while waiting:
        remaining = None if timeout is None else max(0.0, last_sign.at + timeout - time.monotonic())
        try:
            is_success, answer = answers.get(timeout=remaining)
            waiting = False
        except Empty:
            # A sign of progress during the wait may have put off the deadline.
            if timeout is not None and time.monotonic() >= last_sign.at + timeout:
                is_success, waiting = False, False
                answer = (
                    f"the detector {name} did not answer within {timeout:g} s and made no "
                    "progress; raise protect.timeout, or split long texts"
                )
    if not is_success:
        raise DetectorError(str(answer))  # raised here because a chained error could hold text
    return answer


def _check_spans(name: str, answer: object, texts: Sequence[str]) -> list[Span]:
    if not isinstance(answer, list):
        raise DetectorError(
            f"the detector {name} must return a list of spans, got {type(answer).__name__}"
        )
    return [_check_span(name, item, texts) for item in answer]


def _check_span(name: str, item: object, texts: Sequence[str]) -> Span:
    if not isinstance(item, Span):
        raise DetectorError(
            f"the detector {name} must return only spans, got {type(item).__name__}"
        )
    fields: Sequence[Any] = item
    text, start, end, type_, score, _, private, evidence = fields
    if not (_is_whole(text) and 0 <= text < len(texts)):
        must = f"return spans of the texts 0 to {len(texts) - 1}, got one of another"
    elif not (_is_whole(start) and _is_whole(end) and 0 <= start < end <= len(texts[text])):
        must = (
            f"return spans with 0 <= start < end <= length of the text; one of text {text} breaks "
            "this"
        )
    elif not (isinstance(type_, str) and TYPE_NAME.fullmatch(type_)):
        must = "return types of at most 64 capital letters, digits and underscores"
    elif not (_is_real(score) and 0 <= score <= 1 and _is_real(private) and 0 <= private <= 1):
        must = "return scores from 0 to 1"
    elif not (evidence is None or isinstance(evidence, Evidence)):
        must = "leave the evidence of spans empty"
    else:
        # The name is that of the detector that was asked: none can pose as another one.
        return Span(
            int(text), int(start), int(end), type_, float(score), name, float(private), evidence
        )
    raise DetectorError(f"the detector {name} must {must}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real)
