"""The frequency list as it is counted and written."""

import gzip
import sys
from collections import Counter

import numpy as np

from training import frequencies

ARTICLES = """\
Zebra

Zebra zebra ZEBRA don't. don't, Don't don't don't!
... ! ! ! ! ! ! once 1990 1990

Ant ant ant ant ant 1990 1990 1990
bee bee bee bee
"""


def test_words_are_counted_in_small_letters_across_texts():
    found, small = frequencies.count(["It's Ann's Bee-bee", "ANN it"])
    assert found == {"it's": 1, "ann": 2, "'s": 1, "bee": 2, "-": 1, "it": 1}
    assert small == {"'s": 1, "bee": 1, "it": 1}
    assert np.unpackbits(
        np.frombuffer(frequencies.ordinary(["ann", "bee"], found, small), np.uint8)
    )[:2].tolist() == [
        0,
        1,
    ]


def test_the_list_has_frequent_words_with_letters_or_digits_the_most_frequent_first(
    tmp_path, monkeypatch
):
    folder = tmp_path / "wikipedia_en"
    folder.mkdir()
    (folder / "wiki_en.txt.gz").write_bytes(gzip.compress((ARTICLES + "\nzebra zebra").encode()))
    made = []
    for name in ("a", "b"):
        monkeypatch.setattr(
            sys, "argv", ["frequencies", "--data", str(tmp_path), "--out", str(tmp_path / name)]
        )
        frequencies.main()
        made.append((tmp_path / name / "words.txt.gz").read_bytes())
    assert made[0] == made[1]
    assert made[0][4:8] == bytes(4)  # no time of making
    lines = gzip.decompress(made[0]).decode().splitlines()
    header = [line for line in lines if line.startswith("#")]
    assert lines[len(header) :] == ["zebra\t6", "1990\t5", "ant\t5", "don't\t5"]
    # 6 zebra, 5 don't, 5 ant, 5 1990, 4 bee and once; 7 exclamation marks, 4 full stops and a comma
    assert "; 38 were counted" in " ".join(header)
    assert "CC BY-SA" in " ".join(header)


def test_the_list_ends_at_its_limit(monkeypatch):
    monkeypatch.setattr(frequencies, "MOST", 2)
    _, *lines = frequencies.render(Counter(ant=5, bee=7, cow=6, dog=5))
    assert lines == ["bee\t7\n", "cow\t6\n"]
