"""The frequency list: what it holds, and ranks on it."""

import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

from textveil.text import frequency
from textveil.text.tokens import tokenize

# ---- the list ----------------------------------------------------------------------------------------------


def test_the_list_is_in_order_and_within_its_bounds():
    listed = list(frequency.load_counts().items())
    assert listed == sorted(listed, key=lambda row: (-row[1], row[0]))
    assert listed[0][0] == "the"
    assert listed[-1][1] >= 5
    assert 10_000 < len(listed) <= 60_000


def test_its_words_are_words_of_textveil_in_small_letters():
    words = list(frequency.load_counts())
    assert [word for word in words if word != word.lower()] == []
    assert [word for word in words if not any(letter.isalnum() for letter in word)] == []
    # A possessive 's is a word only behind another one, and a combining mark at the beginning only behind a space.
    assert tokenize([" ".join(word for word in words if word not in ("'s", "’s"))]).words == [
        word for word in words if word not in ("'s", "’s")
    ]


def test_its_file_names_the_source_and_is_small():
    packed = (files("textveil") / "data" / "frequencies" / "words.txt.gz").read_bytes()
    assert packed[4:8] == bytes(4)  # no time of making
    assert len(packed) < 400_000


def test_the_list_cannot_be_changed():
    with pytest.raises(TypeError):
        frequency.load_counts()["the"] = 0  # type: ignore[index]


def test_counts_and_ranks_do_without_torch():
    program = (
        "import sys; from textveil.text import lookup_ranks; lookup_ranks(['a']);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


# ---- ranks -------------------------------------------------------------------------------------------------


def test_ranks_count_from_one_in_the_order_of_the_list():
    words = list(frequency.load_counts())
    assert np.array_equal(frequency.lookup_ranks(words), np.arange(1, len(words) + 1))


def test_ranks_do_not_depend_on_casing_and_what_is_not_listed_comes_last():
    last = len(frequency.load_counts()) + 1
    found = frequency.lookup_ranks(["THE", "the", "qqqzzx", ",", ""])
    assert found.dtype == np.int64
    assert found.tolist() == [1, 1, last, last, last]
    assert frequency.lookup_ranks([]).shape == (0,)
