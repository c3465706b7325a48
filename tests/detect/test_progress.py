"""Signs of progress and memory: who goes on is waited for, and equal texts are searched once."""

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from textveil import Privatizer, Protector
from textveil.detect.detection_cache import SPAN_SIZE, SpanCache
from textveil.detect.detectors import find_all, load_detector
from textveil.detect.liveness import signal_progress
from textveil.detect.spans import Span
from textveil.errors import DetectorError
from textveil.models.ragged import PROGRESS_LISTENER, yield_batches
from textveil.pipeline.plan import detect
from textveil.randomness.streams import SeededRandomness
from textveil.text.tokens import tokenize

TEXTS = ["see somebody here", "x"]
FINE = Span(0, 4, 7, "PERSON", 0.5, "other")


@dataclass(frozen=True, kw_only=True, eq=False)
class Scripted:
    """A detector that does what a test says."""

    find: Callable[[Sequence[str]], Any]
    name: str = "scripted"


def slowly(steps: int, go_on: Callable[[], None]) -> Scripted:
    """A detector that takes .05 seconds for each of its steps."""

    def find(texts: Sequence[str]) -> Any:
        for _ in range(steps):
            time.sleep(0.05)
            go_on()
        return [FINE]

    return Scripted(find=find)


def test_a_detector_that_shows_progress_is_waited_for_until_it_is_done():
    (found,) = find_all([slowly(20, signal_progress)], TEXTS, timeout=0.5)
    assert found.start == FINE.start
    with pytest.raises(DetectorError, match=r"did not answer within 0\.5 s and made no progress"):
        find_all([slowly(20, lambda: None)], TEXTS, timeout=0.5)


def test_batches_of_a_network_are_progress_which_a_listener_hears_too():
    def go_on() -> None:
        for _ in yield_batches(np.array([5, 3]), 5):
            pass

    heard: list[tuple[int, int]] = []
    token = PROGRESS_LISTENER.set(lambda done, total: heard.append((done, total)))
    try:
        find_all([slowly(20, go_on)], TEXTS, timeout=0.5)
    finally:
        PROGRESS_LISTENER.reset(token)
    assert heard == [(5, 8), (8, 8)] * 20


@pytest.mark.parametrize(("room", "expected"), [(5, [(5, 8), (8, 8)]), (1000, [(8, 8)])])
def test_a_batch_with_room_for_more_is_heard_as_all_there_is(room, expected):
    heard: list[tuple[int, int]] = []
    token = PROGRESS_LISTENER.set(lambda done, total: heard.append((done, total)))
    try:
        batches = list(yield_batches(np.array([5, 3]), room))
    finally:
        PROGRESS_LISTENER.reset(token)
    assert np.concatenate(batches).tolist() == [0, 1]
    assert heard == expected


def test_equal_texts_are_searched_once_and_have_the_same_spans():
    asked: list[str] = []

    def find(texts: Sequence[str]) -> list[Span]:
        asked.extend(texts)
        return [Span(i, 0, 1, "PERSON", 0.5, "x") for i, text in enumerate(texts) if text[0] == "a"]

    detectors = [Scripted(find=find)]
    texts = ["ab", "b", "ab", "ac", "b"]
    found = find_all(detectors, texts, timeout=None)
    assert asked == ["ab", "b", "ac"]
    alone = [
        span._replace(text=i)
        for i, text in enumerate(texts)
        for span in find_all(detectors, [text], timeout=None)
    ]
    assert found == alone


def test_a_memory_saves_searches_and_changes_nothing():
    asked: list[str] = []
    patterns = load_detector("patterns")

    def find(texts: Sequence[str]) -> list[Span]:
        asked.extend(texts)
        return patterns.find(texts)

    detectors = [Scripted(find=find)]
    batches = [
        ["write to maria@example.org", "call 0151 4636122", "fine"],
        ["fine", "write to maria@example.org", "call +49 151 4636122", "fine"],
    ]
    memory = SpanCache()
    kept = [find_all(detectors, batch, timeout=None, memory=memory) for batch in batches]
    assert asked == [*batches[0], "call +49 151 4636122"]
    assert kept == [find_all(detectors, batch, timeout=None) for batch in batches]
    assert "maria" not in repr(memory)


def test_a_memory_forgets_the_oldest_texts():
    memory = SpanCache(capacity=3 * SPAN_SIZE)
    for text in "abcd":
        memory.keep({text: []})
    assert [text in memory for text in "abcd"] == [False, False, True, True]
    memory.keep({"x" * 4 * SPAN_SIZE: []})
    assert [text in memory for text in "abcd"] == [False, False, True, True]


def test_a_privatizer_that_remembers_finds_the_same_and_pickles_without_its_memory():
    plain = Protector().privatizer.with_parts(randomness=SeededRandomness(3))
    remembering = plain.remembering()
    assert remembering.remembering() is remembering
    texts = [
        "Ask Maria Silva (maria@example.org).",
        "Fine.",
        "Ask Maria Silva (maria@example.org).",
    ]
    expected = [plain.privatize(text).text for text in texts]
    assert [remembering.privatize(text).text for text in texts] == expected
    copy = pickle.loads(pickle.dumps(remembering))
    assert copy.grouping.detection.settings.memory is None


def test_equal_texts_of_a_batch_are_found_and_released_as_alone():
    made = Privatizer.from_profile("document", epsilon=8.0, seed=3)
    first, second = "Maria Silva lives in Lisbon.", "Dr. Anna Kowalska called 0151 4636122 twice."
    texts = [first, "", second, first, second, first]
    tokens = tokenize(texts)
    once = detect(made, tokens, None, deduplicate=True)
    each = detect(made, tokens, None)
    assert made.grouping is not None
    assert once is not None
    assert each is not None
    assert len(once.tokens.texts) == 3
    kept = made.grouping.propagate(once, None).expand()
    plain = made.grouping.propagate(each, None)
    assert kept.tokens.words == plain.tokens.words
    assert (kept.tokens.starts == plain.tokens.starts).all()
    assert (kept.tokens.ends == plain.tokens.ends).all()
    assert (kept.tokens.documents == plain.tokens.documents).all()
    assert (kept.important == plain.important).all()
    assert (kept.spans, kept.public_spans) == (plain.spans, plain.public_spans)
    assert (kept.spared, kept.new_values) == (plain.spared, plain.new_values)


def test_equal_texts_are_draws_of_their_own():
    made = Privatizer.from_profile("document", epsilon=8.0, seed=3)
    told = "The delivery was slow but the driver was friendly and the parcel came unbroken."
    assert len({result.text for result in made.privatize_many([told] * 8)}) > 1
