"""Entities: labels against the network run by hand, spans, windows, casings, and bad input."""

import json
import shutil
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from textveil.errors import ConfigError, ModelError
from textveil.models import Ragged, TokenClassifier, entities, load_tagger
from textveil.models.entities import classify_casing


@pytest.mark.parametrize("family", ["bert-tagger", "roberta-tagger", "xlmr-tagger"])
def test_probabilities_are_those_of_the_first_piece_of_each_word(family, folders):
    texts = [["maria", "met", "incomprehensible", "John"], ["old", "town"]]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[family])
    network = transformers.AutoModelForTokenClassification.from_pretrained(folders[family]).eval()
    space = " " if family == "roberta-tagger" else ""
    expected = []
    for words in texts:
        pieces = [tokenizer(space + word, add_special_tokens=False)["input_ids"] for word in words]
        flat = [
            tokenizer.cls_token_id,
            *(piece for own in pieces for piece in own),
            tokenizer.sep_token_id,
        ]
        firsts = 1 + np.cumsum([0, *map(len, pieces)])[:-1]
        with torch.inference_mode():
            expected.append(
                network(input_ids=torch.tensor([flat])).logits[0].softmax(dim=-1).numpy()[firsts]
            )
    found = load_tagger(folders[family]).compute_label_probabilities(Ragged.join(texts))
    assert np.allclose(found, np.concatenate(expected), atol=1e-5)


def test_every_word_of_a_long_text_is_judged_in_some_window(folders):
    tagger = load_tagger(folders["bert-tagger"], window=16)
    found = tagger.compute_label_probabilities(
        Ragged.join([["maria", "met", "john"] * 40, [], ["paris"] * 200])
    )
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fixed(TokenClassifier):
    """A tagger that takes the probabilities from a test."""

    rows: np.ndarray

    def compute_outputs(self, texts: Ragged) -> np.ndarray:
        return np.log(np.maximum(self.rows, 1e-30)).astype(np.float32)


def spans(
    rows: list[list[float]],
    sizes: list[int],
    threshold: float = 0.5,
    begins: tuple[bool, ...] = (False, True, False, False),
) -> list[tuple[int, int, int, str]]:
    tagger = Fixed(
        rows=np.array(rows, np.float32),
        model=None,  # type: ignore[arg-type]
        types=(None, "PERSON", "PERSON", "LOCATION"),
        begins=np.array(begins),
        threshold=threshold,
        window=128,
        batch=1,
    )
    return [found[:4] for found in tagger.find(Ragged.join([["x"] * size for size in sizes]))]


NONE, BEGIN, INSIDE, PLACE = [0.9, 0.1, 0, 0], [0.1, 0.9, 0, 0], [0.1, 0, 0.9, 0], [0.1, 0, 0, 0.9]


@pytest.mark.parametrize(
    ("rows", "sizes", "expected"),
    [
        ([NONE, BEGIN, INSIDE, NONE], [4], [(0, 1, 3, "PERSON")]),
        ([BEGIN, BEGIN], [2], [(0, 0, 1, "PERSON"), (0, 1, 2, "PERSON")]),
        ([INSIDE, INSIDE], [2], [(0, 0, 2, "PERSON")]),
        ([BEGIN, PLACE, PLACE], [3], [(0, 0, 3, "LOCATION")]),
        ([INSIDE, INSIDE], [1, 1], [(0, 0, 1, "PERSON"), (1, 0, 1, "PERSON")]),
        ([INSIDE], [0, 1, 0], [(1, 0, 1, "PERSON")]),
        ([], [0], []),
    ],
)
def test_spans_follow_the_labels_and_end_with_their_text(rows, sizes, expected):
    assert spans(rows, sizes) == expected


def test_without_labels_that_begin_an_entity_another_type_begins_one():
    assert spans([INSIDE, PLACE, PLACE], [3], begins=(False,) * 4) == [
        (0, 0, 1, "PERSON"),
        (0, 1, 3, "LOCATION"),
    ]


def test_a_word_counts_when_the_probabilities_of_all_entities_together_reach_the_threshold():
    row = [0.6, 0.12, 0.05, 0.23]
    assert spans([row], [1]) == []
    assert spans([row], [1], threshold=0.4 - 1e-6) == [(0, 0, 1, "LOCATION")]


def found_by_look(words: list[str], chances: list[float], kind: str = "PERSON") -> list[str]:
    tagger = Fixed(
        rows=np.array([[1 - chance, 0, chance] for chance in chances], np.float32),
        model=None,  # type: ignore[arg-type]
        types=(None, kind, kind),
        begins=np.array([False, True, False]),
        threshold=None,
        window=128,
        batch=1,
    )
    return [" ".join(words[found.start : found.end]) for found in tagger.find(Ragged.join([words]))]


@pytest.fixture
def levels(monkeypatch):
    """Thresholds in steps, whatever those of the package are."""
    sure = {
        "capital": (0.45, 0.2, 0.7, 0.3),
        "small": (0.97, 0.9, 0.99, 0.96),
        "uncased": (0.95,) * 4,
        "none": (0.4,) * 4,
    }
    near = {
        "capital": (0.05, 0.05, 0.5, 0.5),
        "small": (0.5,) * 4,
        "uncased": (0.5,) * 4,
        "none": (0.5,) * 4,
    }
    for name, value in {
        "WORD_THRESHOLDS": sure,
        "NEIGHBOUR_THRESHOLDS": near,
        "DETAIL_THRESHOLDS": (0.8, 0.9),
        "NEIGHBOUR_DETAIL_THRESHOLDS": (0.6, 0.8),
    }.items():
        monkeypatch.setattr(entities, name, value)


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize(
    ("chance", "found"),
    [
        (0.19, ""),
        (0.21, "Kowalski"),
        (0.42, "Kowalski 7"),
        (0.5, "Kowalski Xyzzy 7"),
        (0.75, "Kowalski Xyzzy Mietvertrag 7"),
        (0.93, "Kowalski Xyzzy kowalski Mietvertrag 7"),
        (0.96, "Kowalski Xyzzy kowalski 東 Mietvertrag 7"),
        (0.98, "Kowalski Xyzzy xyzzy kowalski 東 Mietvertrag 7"),
    ],
)
def test_how_a_word_looks_decides_how_sure_the_bundled_tagger_must_be(chance, found):
    words = ["Kowalski", "Xyzzy", "xyzzy", "kowalski", "東", "Mietvertrag", "7"]
    chances = [0.0] * (2 * len(words) - 1)
    chances[::2] = [chance] * len(words)
    assert found_by_look(" and ".join(words).split(), chances) == found.split()


@pytest.mark.usefixtures("levels")
def test_a_word_beside_an_entity_belongs_to_it_sooner():
    words = ["x", "Xyzzy", "Qwx", "of", "Abcd", "Zzyx", "Efgh"]
    assert found_by_look(words, [0.1, 0.95, 0.06, 0.6, 0.06, 0.01, 0.06]) == ["Xyzzy Qwx of Abcd"]
    assert found_by_look(words, [0.6, 0.3, 0.06, 0.6, 0.06, 0.01, 0.06]) == []
    assert found_by_look(["Xyzzy", "Mietvertrag"], [0.95, 0.4]) == ["Xyzzy"]


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize(("kind", "found"), [("PERSON", ["7", "Xyzzy"]), ("AGE", [])])
def test_details_have_a_threshold_of_their_own_however_they_look(kind, found):
    words = ["7", "and", "Xyzzy"]
    assert found_by_look(words, [0.75, 0, 0.75], kind) == found
    assert found_by_look(words, [0.85, 0, 0.85], kind) == ["7", "Xyzzy"]
    assert found_by_look(["7", "Mietvertrag", "7"], [0.85, 0.7, 0.85], kind)[0] == (
        "7" if kind == "AGE" else "7 Mietvertrag 7"
    )


def test_a_word_has_one_look():
    assert [
        entities.LOOK_CLASSES[entities.classify_look(word)]
        for word in ("Anna", "McX", "anna", "ß", "東", "على", "7", "・")
    ] == [*("capital", "capital", "small", "small", "uncased", "uncased", "none", "none")]


def standings(rows: list[list[float]], cut: float = 0.5) -> list[float]:
    tagger = Fixed(
        rows=np.array(rows, np.float32),
        model=None,  # type: ignore[arg-type]
        types=(None, "PERSON", "PERSON", "LOCATION", "LOCATION"),
        begins=np.array([False] * 5),
        threshold=0.5,
        window=128,
        batch=1,
        private=np.array([False, True, False, True, False]),
        cut=cut,
    )
    return [found.private for found in tagger.find(Ragged.join([["x"]] * len(rows)))]


def test_an_entity_is_as_private_as_the_private_labels_of_its_type():
    rows: list[list[float]] = [
        [0.1, 0.6, 0.2, 0.1, 0],
        [0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0],
        [0.2, 0, 0, 0.2, 0.6],
    ]
    assert standings(rows) == pytest.approx([0.75, 0, 1, 0.25], abs=1e-6)


@given(st.floats(0.01, 0.99), st.floats(0, 1))
def test_a_cut_lies_at_one_half_and_keeps_the_order(cut, share):
    row: list[float] = [0, cut, 1 - cut, 0, 0]
    other: list[float] = [0, share, 1 - share, 0, 0]
    last: list[float] = [0, 1, 0, 0, 0]
    moved, at, higher = standings([other, row, last], cut)
    assert at == pytest.approx(0.5, abs=1e-5)
    assert higher == 1
    assert 0 <= moved <= 1
    assert abs(share - cut) < 1e-5 or (moved > 0.5) == (share > cut)


def test_a_tagger_that_cannot_tell_calls_everything_private(folders):
    tagger = load_tagger(folders["bert-tagger"], threshold=0.01)
    assert {found.private for found in tagger.find(Ragged.join([["maria", "met", "john"]]))} == {
        1.0
    }


def test_types_of_other_taggers_have_the_names_of_the_house(folders):
    assert load_tagger(folders["bert-tagger"]).types == (
        None,
        "PERSON",
        "PERSON",
        "LOCATION",
        "LOCATION",
        "MISC",
    )


@pytest.mark.parametrize("labels", [["LABEL_0", "LABEL_1"], ["B-PER", "I-PER"]])
def test_a_tagger_without_names_for_its_labels_is_refused(labels, folders, tmp_path):
    folder = shutil.copytree(folders["bert-tagger"], tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    names = [*labels, *(f"LABEL_{i}" for i in range(len(labels), 6))]
    config |= {
        "id2label": dict(enumerate(names)),
        "label2id": {name: i for i, name in enumerate(names)},
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="must name its labels"):
        load_tagger(folder)


def test_prefixes_are_those_of_every_scheme_and_only_where_a_label_begins_the_type(
    folders, tmp_path
):
    names = ["O", "B-PER", "L-PER", "U-PER", "E-MAIL", "group"]
    folder = shutil.copytree(folders["bert-tagger"], tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "id2label": dict(enumerate(names)),
        "label2id": {name: i for i, name in enumerate(names)},
    }
    (folder / "config.json").write_text(json.dumps(config))
    tagger = load_tagger(folder)
    assert tagger.types == (None, "PERSON", "PERSON", "PERSON", "E-MAIL", "ORGANIZATION")
    assert tagger.begins.tolist() == [False, True, False, True, False, False]


@pytest.mark.parametrize("threshold", [0, 1, -1, float("nan")])
def test_a_threshold_is_between_0_and_1(threshold, folders):
    with pytest.raises(ConfigError, match="threshold"):
        load_tagger(folders["bert-tagger"], threshold=threshold)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("word", 0), ("123", 0), ("", 0), ("Word", 1), ("O'brien", 1), ("I", 2), ("J.", 2), ("NATO", 3), ("B2B", 3),
        ("iPhone", 4), ("McDonald", 4), ("ß", 0), ("Łódź", 1), ("東京", 0), ("ǅ", 2), ("Ⅷⅷ", 4),
    ],
)  # fmt: skip
def test_casings_are_told_apart(word, expected):
    assert classify_casing(word) == expected


@given(st.text())
def test_every_string_has_a_casing(word):
    assert classify_casing(word) in range(5)
