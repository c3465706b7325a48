"""Long runs of Base64: the tagger reads no more of them than of words, and what stands in and beside them is found."""

import base64

import numpy as np
import pytest

from textveil import Protector
from textveil.detect.adapters import _goes_on
from textveil.detect.detectors import detector
from textveil.models.ragged import LISTENER
from textveil.text import tokenize

BLOB = base64.b64encode(np.random.default_rng(4).bytes(3_000)).decode()
WRAPPED = "\n".join(BLOB[i : i + 76] for i in range(0, len(BLOB), 76))
PATH = "/home/anna/Documents/Work2024/" * 10


def pieces_read(text: str) -> int:
    """How many pieces of a text the bundled tagger reads."""
    read: list[int] = []
    token = LISTENER.set(lambda done, total: read.append(total))
    try:
        detector("tagger").find([text])
    finally:
        LISTENER.reset(token)
    return max(read)


@pytest.mark.parametrize("blob", [BLOB, WRAPPED, BLOB.replace("/", "_").replace("+", "-")])
def test_of_a_long_run_of_base64_the_tagger_reads_no_more_than_of_prose(blob):
    prose = "The flight was late and nobody at the desk knew why. " * (len(blob) // 53)
    assert 10 * pieces_read(f"Look: {blob} is it valid?") < pieces_read(prose)


@pytest.mark.parametrize(
    "words", [PATH, "a-long-and-winding-road-2-" * 10, BLOB[:190], "x" * 300, "Maria Silva " * 30]
)
def test_paths_slugs_keys_and_words_are_read_as_before(words):
    assert not _goes_on(tokenize([f"see {words} here"])).any()


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
    assert not [span for span in detector("tagger").find([text]) if span.end - span.start > 100]


def test_texts_without_words_are_no_failure():
    assert detector("tagger").find(["", " \n"]) == []
