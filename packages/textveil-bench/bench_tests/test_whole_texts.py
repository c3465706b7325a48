"""Whole texts beside words: vectors that are kept, what is scored, and tables from rows."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_tests.test_choose import WORDS
from textveil_bench.choose.whole_texts import (
    READ_WORDS,
    TRAINED_WORDS,
    LabelledTexts,
    OriginalJudges,
    RememberedVectors,
    WholeTexts,
    compute_distance,
    learn_words,
    release_local,
    score_training,
)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
page = import_module("whole_texts_page")
report = import_module("report")


class Encoder:
    name = "counts of letters"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts):
        self.seen += texts
        return np.array([[text.count("a"), text.count("b")] for text in texts], np.float32)


def test_a_text_is_encoded_once_also_by_a_later_run_and_after_one_that_was_cut_short(tmp_path):
    path = tmp_path / "v" / "of.vectors"
    first: Any = Encoder()
    second: Any = Encoder()
    remembered = RememberedVectors(lambda: first, 2, path)
    assert remembered.encode(["ab", "b", "ab"]).tolist() == [[1, 1], [0, 1], [1, 1]]
    assert remembered.encode([]).shape == (0, 2)
    path.write_bytes(path.read_bytes() + b"half a record")
    later = RememberedVectors(lambda: second, 2, path)
    assert later.encode(["b", "aa", "ab"]).tolist() == [[0, 1], [2, 0], [1, 1]]
    assert (first.seen, second.seen) == (["ab", "b"], ["aa"])
    assert RememberedVectors(lambda: second, 2, path).encode(["aa"]).tolist() == [[2, 0]]


def invent(count: int, seed: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    texts = [
        f"the {' and the '.join(rng.choice(WORDS[('sea', 'farm')[label]], 5))} number {seed}{i}"
        for i, label in enumerate(labels)
    ]
    return texts, labels


@pytest.fixture(scope="module")
def ways():
    from textveil.library import make_library

    texts, labels = invent(120, 1)
    library = make_library(
        texts,
        labels=[("sea", "farm")[label] for label in labels],
        classes={
            "sea": "A boat, a harbour and an island.",
            "farm": "A farmer, a barn and the cattle.",
        },
        source="invented",
        licence="CC0",
    )
    encode = library.features.model.encode
    private, judged = (
        LabelledTexts(texts=tuple(own), labels=given, encode=encode)
        for own, given in (invent(100, 2), invent(60, 3))
    )
    return WholeTexts(
        library=library,
        private=private,
        judged=judged,
        names=("sea", "farm"),
        judges=OriginalJudges.learn(private),
    )


def test_what_needs_no_private_text_stands_beside_what_is_released(ways):
    nothing = dict(ways.score_nothing())
    assert nothing["random public texts"][READ_WORDS] == pytest.approx(0.5, abs=0.05)
    for name in ("labelled library", "class sentences", "class sentences, surest half"):
        assert nothing[name][TRAINED_WORDS] > 0.95
    assert ways.score_majority()[READ_WORDS] == 0.5
    assert ways.score_local(1e-3, 1)[READ_WORDS] == pytest.approx(0.5, abs=0.25)
    assert ways.score_local(8.0, 1)[READ_WORDS] > 0.95
    assert ways.score_count(5.0, 1, count=100)[TRAINED_WORDS] > 0.95
    assert ways.score_votes(8.0, 1, count=100)[TRAINED_WORDS] > 0.9


def test_labels_of_other_names_are_no_public_labels(ways):
    other = WholeTexts(
        library=ways.library,
        private=ways.private,
        judged=ways.judged,
        names=("one", "two"),
        judges=ways.judges,
    )
    assert list(dict(other.score_nothing())) == ["random public texts"]


def test_what_is_released_in_place_stands_in_the_library_and_what_stands_there_is_left_out(ways):
    which = release_local(ways.library, ways.judged.texts, 2.0, 1)
    assert which.shape == (60,)
    assert (which == release_local(ways.library, ways.judged.texts, 2.0, 1)).all()
    assert (which != release_local(ways.library, ways.judged.texts, 2.0, 2)).any()
    some = ways.judged.replace_texts([*ways.library.texts[:20], *ways.judged.texts[20:]])
    left = some.leave_out(ways.library)
    assert left.texts == ways.judged.texts[20:]
    assert left.labels.tolist() == ways.judged.labels[20:].tolist()


def test_a_release_of_one_label_trains_who_always_says_it(ways):
    one = LabelledTexts(
        texts=ways.private.texts, labels=np.ones(100, np.int64), encode=ways.private.encode
    )
    assert learn_words(one)(ways.judged).tolist() == [1] * 60
    assert score_training(one, ways.judged, balanced=True)["balanced, words"] == 0.5


def test_the_distance_of_mixtures_is_the_total_variation():
    assert compute_distance(np.array([3, 1]), np.array([1, 3])) == 0.5
    assert compute_distance(np.array([2, 2]), np.array([10, 10])) == 0.0


def test_every_table_has_its_eps_0_and_every_target_its_row():
    assert "*eps 0: labelled library*" in page.write_main()
    assert "eps 0" in page.write_house()
    assert "eps 0" in page.write_mixture()
    assert "majority" in page.write_failing()
    assert "not measured" not in page.write_targets()
    for way, epsilon in page.SHOWN.items():
        rows = page.find_rows(way=way, epsilon=epsilon)
        assert rows, way
        assert all("commit" in row and "versions" in row for row in rows)


def test_a_page_gets_the_table_that_it_names():
    mark = "<!-- rows: whole texts{} -->\nold\n<!-- end of rows -->"
    assert "*eps 0: labelled library*" in report.compared(mark.format(""))
    house = report.compared(f"a {mark.format(', house')} b")
    assert "old" not in house
    assert "C by both: share" in house
    assert house.startswith("a <!-- rows: whole texts, house -->")
    with pytest.raises(KeyError):
        report.compared(mark.format(", nothing"))
