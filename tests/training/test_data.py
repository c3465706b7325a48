"""Corpora: labels, splits, and how answers and spans are scored."""

import gzip
import json

import numpy as np
import pytest
from training.data import Marked, Mention

from textveil.models import adapters
from training import data, measure


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


def test_labels_of_every_scheme_become_three_types(tmp_path):
    write(
        tmp_path / "x.gz",
        "Ann\tB-person\nLee\tI-person\nof\tO\nAcme\tI-ORG\nBo\tI-PER\n\nParis\tB-LOC\nJava\tB-MISC\n\n\n",
    )
    first, second = data.conll(tmp_path / "x.gz")
    assert first.words == ["Ann", "Lee", "of", "Acme", "Bo"]
    assert first.labels == ["B-PERSON", "I-PERSON", "O", "B-ORGANIZATION", "B-PERSON"]
    assert second.labels == ["B-LOCATION", "O"]


def test_sentences_of_the_training_part_do_not_measure(tmp_path):
    write(tmp_path / "train.conll.gz", "a\tO\nb\tO\n\nc\tO\n")
    write(tmp_path / "test.shared.conll.gz", "a\tO\n\na\tB-LOC\nb\tO\n\nd\tO\n")
    assert [each.words for each in data.unseen(tmp_path)] == [["a"], ["d"]]


def test_held_out_sentences_of_wikigold_are_every_fifth(tmp_path):
    write(tmp_path / "wikigold" / "all.shared.conll.gz", "".join(f"w{i}\tO\n\n" for i in range(12)))
    assert [each.words[0] for each in data.wikigold(tmp_path, held_out=True)] == ["w0", "w5", "w10"]
    assert len(data.wikigold(tmp_path, held_out=False)) == 9


def test_no_template_is_on_both_sides_whatever_its_slots_are_called(tmp_path):
    rows = [
        {
            "full_text": f"{name} lives here {i}",
            "masked": f"{{{{{slot}}}}} lives here {i}",
            "spans": [],
        }
        for i in range(50)
        for name, slot in (("Ann", "PERSON"), ("Bo", "first_name"))
    ]
    for part in ("generated_large", "synth_v2.shared"):
        write(tmp_path / "presidio_synth" / f"{part}.jsonl.gz", "\n".join(map(json.dumps, rows)))
    sides = [
        {each.words[-1] for each in data.presidio(tmp_path, held_out=held_out)}
        for held_out in (True, False)
    ]
    assert not sides[0] & sides[1]
    assert len(sides[0] | sides[1]) == 50
    assert 3 <= len(sides[0]) <= 20


def test_spans_of_characters_become_labels_of_words():
    spans = [
        {"entity_type": "PERSON", "start_position": 0, "end_position": 7},
        {"entity_type": "STREET_ADDRESS", "start_position": 17, "end_position": 23},
        {"entity_type": "AGE", "start_position": 8, "end_position": 10},
    ]
    found = data._from_spans("Ann Lee, 50 from Elm St 4", spans)
    assert found.words == ["Ann", "Lee", ",", "50", "from", "Elm", "St", "4"]
    assert found.labels == [
        "B-PERSON private",
        "I-PERSON private",
        "O",
        "B-AGE private",
        "O",
        "?",
        "?",
        "O",
    ]


def test_countries_are_public_and_other_places_private_where_a_person_is_named():
    place = {"entity_type": "GPE", "start_position": 0, "end_position": 6}
    person = {"entity_type": "PERSON", "start_position": 7, "end_position": 10}
    labels = {
        text: data._from_spans(text, spans).labels[0]
        for text, spans in (
            ("Canada Ann", [place, person]),
            ("Dayton Ann", [place, person]),
            ("Dayton", [place]),
        )
    }
    assert labels == {
        "Canada Ann": "B-LOCATION public",
        "Dayton Ann": "B-LOCATION private",
        "Dayton": "B-LOCATION",
    }


def test_labelled_spans_become_labels_of_words():
    text = "Ann Lee of Acme, 5 Elm St, a@b.org, meets Holmes and Bo on Linux"
    values = (
        ("Ann Lee", "PERSON", "private"), ("Acme", "ORGANIZATION", "borderline"), ("5 Elm St", "ADDRESS", "private"),
        ("a@b.org", "EMAIL", "private"), ("Holmes", "PERSON", "public"), ("Linux", "OTHER", "public"),
        ("Bo", "OTHER", "invented"),
    )  # fmt: skip
    mentions = [
        Mention(text.index(v), text.index(v) + len(v), kind, standing)
        for v, kind, standing in values
    ]
    found = data.tagged(Marked(text, mentions))
    assert [(w, label) for w, label in zip(found.words, found.labels, strict=True) if label != "O"] == [
        ("Ann", "B-PERSON private"), ("Lee", "I-PERSON private"), ("Acme", "B-ORGANIZATION"),
        ("5", "B-LOCATION private"), ("Elm", "I-LOCATION private"), ("St", "I-LOCATION private"),
        ("a@b.org", "~private"), ("Holmes", "B-PERSON public"), ("Bo", "?"), ("Linux", "~public"),
    ]  # fmt: skip
    assert [word for word, free in zip(found.words, found.spaced, strict=True) if not free] == [
        ",",
        ",",
        ",",
    ]


def test_words_of_corpora_are_spaced_as_text_is():
    words = [
        "He",
        "said",
        "(",
        "in",
        "$",
        "5",
        "bills",
        ")",
        ":",
        "“",
        "No",
        "”",
        ",",
        "it",
        "'s",
        "n't",
        ".",
    ]
    text = ""
    for word, free in zip(words, data.spacing(words), strict=True):
        text += " " * (free and bool(text)) + word
    assert text == "He said (in $5 bills): “No”, it'sn't."


def test_marks_of_wikitext_are_undone(tmp_path):
    write(
        tmp_path / "wikitext2" / "x.shared.txt.gz",
        " = One = \n\n a well @-@ known 1 @,@ 000 \n = = Part = = \n b \n = Two = \n c \n",
    )
    assert data.wikitext(tmp_path, "x") == [
        "= One = a well-known 1,000 = = Part = = b",
        "= Two = c",
    ]


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        (["B-A", "I-A", "O"], {(0, 2, "A")}),
        (["B-A", "B-A"], {(0, 1, "A"), (1, 2, "A")}),
        (["B-A", "B-B", "I-B"], {(0, 1, "A"), (1, 3, "B")}),
        (["O", "?", "B-A"], {(2, 3, "A")}),
        (["B-A private", "I-A private", "B-A public"], {(0, 2, "A"), (2, 3, "A")}),
        ([], set()),
    ],
)
def test_gold_spans(labels, spans):
    assert measure.gold_spans(labels) == spans


def test_neighbours_of_one_type_are_joined():
    spans = {(0, 1, "A"), (1, 3, "A"), (3, 4, "B"), (5, 6, "B")}
    assert measure.joined(spans) == {(0, 3, "A"), (3, 4, "B"), (5, 6, "B")}


def test_intervals_hold_the_share_and_shrink_with_the_number():
    hits = np.random.default_rng(0).random(4000) < 0.3
    (mean, low, high), (_, low_few, high_few) = measure.share(hits), measure.share(hits[:100])
    assert mean == hits.mean()
    assert low < mean < high
    assert high - low < (high_few - low_few) / 3


def test_the_tables_in_the_documents_are_the_measured_rows():
    rows = json.loads(measure.ROWS.read_text(encoding="utf-8"))
    assert {row["adapter"] for row in rows} == {"masked-lm", "tagger", "reader"}
    for document in measure.DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert measure.fill(text, rows) == text
        assert text.count("95% interval") == 3


@pytest.mark.parametrize("name", ["masked-lm", "tagger", "reader"])
def test_what_was_measured_is_what_is_shipped(name):
    shipped = sorted(adapters.read_manifest(name)["files"].values())
    rows = json.loads(measure.ROWS.read_text(encoding="utf-8"))
    assert {tuple(row["files"]) for row in rows if row["adapter"] == name} == {tuple(shipped)}
