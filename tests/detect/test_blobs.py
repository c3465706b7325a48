"""Long runs of Base64: they are read once, whatever is said in them, and what stands in and beside them is found."""

import base64

import numpy as np
import pytest

from textveil import Protector
from textveil.detect import bounds, visibility
from textveil.detect.bounds import bind
from textveil.detect.detectors import load_detector
from textveil.detect.library_taggers import _mark_continuations
from textveil.detect.overlaps import keep_surest
from textveil.detect.spans import Span
from textveil.models.ragged import PROGRESS_LISTENER
from textveil.text import tokenize

BLOB = base64.b64encode(np.random.default_rng(4).bytes(3_000)).decode()
WRAPPED = "\n".join(BLOB[i : i + 76] for i in range(0, len(BLOB), 76))
PATH = "/home/anna/Documents/Work2024/" * 10


def pieces_read(text: str) -> int:
    """How many pieces of a text the bundled tagger reads."""
    read: list[int] = []
    token = PROGRESS_LISTENER.set(lambda done, total: read.append(total))
    try:
        load_detector("tagger").find([text])
    finally:
        PROGRESS_LISTENER.reset(token)
    return max(read)


@pytest.mark.parametrize("blob", [BLOB, WRAPPED, BLOB.replace("/", "_").replace("+", "-")])
def test_of_a_long_run_of_base64_the_tagger_reads_no_more_than_of_prose(blob):
    prose = "The flight was late and nobody at the desk knew why. " * (len(blob) // 53)
    assert 10 * pieces_read(f"Look: {blob} is it valid?") < pieces_read(prose)


@pytest.mark.parametrize(
    "words", [PATH, "a-long-and-winding-road-2-" * 10, BLOB[:190], "x" * 300, "Maria Silva " * 30]
)
def test_paths_slugs_keys_and_words_are_read_as_before(words):
    assert not _mark_continuations(tokenize([f"see {words} here"])).any()


def test_what_stands_beside_a_run_and_what_is_written_in_it_is_found():
    letter = "Dear Maria Silva, my name is Anna Kowalska and I live in Lisbon. " * 4
    for blob in (BLOB, WRAPPED):
        text = f"My name is Anna Kowalska.\n{blob}\nPlease ask Maria Silva."
        hidden = Protector().protect(text).text
        assert "Kowalska" not in hidden
        assert "Silva" not in hidden
    said = base64.b64encode(letter.encode()).decode()
    assert said[40:80] not in Protector().protect(f"Look: {said}").text


def test_a_picture_stays():
    text = f"![](data:image/png;base64,{BLOB})"
    assert not [
        span for span in load_detector("tagger").find([text]) if span.end - span.start > 100
    ]


def test_texts_without_words_are_no_failure():
    assert load_detector("tagger").find(["", " \n"]) == []


def test_a_run_is_read_as_often_however_much_is_said_in_it(monkeypatch):
    read: dict[str, int] = {}

    def counting(module, name, size):
        inner = getattr(module, name)

        def counted(*given):
            read[name] += size(*given)
            return inner(*given)

        monkeypatch.setattr(module, name, counted)

    counting(bounds, "_find_sentence_ends", lambda text, start, end, type_: end - start)
    counting(visibility, "split_atoms", len)
    protector = Protector(protect={"detectors": ["patterns"]})
    for count in (20, 80):
        read.update(_find_sentence_ends=0, split_atoms=0)
        said = "".join(f"m{i}@example.org wrote to @user{i} of 10.1.2.{i}. " for i in range(count))
        coded = base64.b64encode(said.encode()).decode()
        assert coded[40:80] not in protector.protect(f"Look: {coded} is it valid?").text
        assert 0 < read["_find_sentence_ends"] <= 12 * len(coded)
        assert 0 < read["split_atoms"] <= 3 * len(coded)


def test_spans_of_one_place_are_bound_alike_and_keep_what_is_known_of_each():
    text = "Look: Maria Silva, 12 "
    spans = [
        Span(0, 5, 18, "PERSON", 0.7, "tagger", 0.2),
        Span(0, 5, 18, "PERSON", 0.9, "structure"),
        Span(0, 5, 18, "PERSON", 0.9, "tagger", 0.8),
    ]
    assert bind(spans, [text]) == [part for span in spans for part in bind([span], [text])]


def test_of_one_place_the_surest_stays_of_each_detector_and_type_private_or_not():
    kept = [
        Span(0, 5, 18, "PERSON", 0.7, "tagger", 0.2),
        Span(0, 5, 18, "PERSON", 0.6, "tagger", 0.9),
        Span(0, 5, 18, "PERSON", 0.5, "structure"),
        Span(0, 5, 18, "EMAIL", 0.5, "structure"),
        Span(0, 5, 19, "EMAIL", 0.5, "structure"),
        Span(1, 5, 19, "EMAIL", 0.5, "structure"),
    ]
    unsure = [span._replace(score=0.1) for span in kept]
    assert keep_surest([*kept, *unsure]) == kept
    assert keep_surest([*unsure, *kept]) == kept
