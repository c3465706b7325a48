"""Making libraries: cells by vectors, words, labels and classes, and what is achieved with no private text."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from training.notes import CLASSES, FOLDER, SHIPPED, write_notes

from textveil.errors import ConfigError, InputError
from textveil.library import make_library, making, read_classes
from textveil.library.description import collect_facts, describe_baseline, describe_library
from textveil.library.making import MAX_CHARACTERS, _convert_head

NOTES = write_notes(12, 7000)
TEXTS = [note["text"] for note in NOTES]
KINDS = [note["kind"] for note in NOTES]
ABOUT: dict[str, Any] = {"source": "notes", "licence": "CC0"}


@pytest.fixture(scope="module")
def plain():
    return make_library(TEXTS, levels=(3, 6, 10), **ABOUT)


def test_the_same_texts_make_the_same_library(plain):
    assert make_library(TEXTS, levels=(10, 6, 3, 6), **ABOUT).digest == plain.digest
    assert make_library(TEXTS, levels=(3, 6), seed=1, **ABOUT).digest != plain.digest
    assert plain.level_names == ("3", "6")  # 48 texts are too few for 10 cells of 8


def test_cores_that_cannot_be_counted_are_no_traceback(monkeypatch, tmp_path):
    context: Any = pytest.importorskip("joblib.externals.loky.backend.context")

    monkeypatch.setenv("OMP_NUM_THREADS", "")
    monkeypatch.delenv("OMP_NUM_THREADS")
    failed = ("not found", ValueError("found 0 physical cores < 1"))
    monkeypatch.setattr(context, "_count_physical_cores", lambda: failed)
    shown: list[Any] = []
    monkeypatch.setattr(context.traceback, "print_tb", shown.append)
    monkeypatch.setattr(making, "CPU_FILE", tmp_path / "cpuinfo")
    make_library(TEXTS, levels=(3,), **ABOUT)
    assert shown == []


def test_cells_of_its_own_texts_are_those_of_the_map(plain, notes_library):
    for library in (plain, notes_library):
        for level in library.levels:
            if level.kind != "labels":
                assert np.array_equal(library.find_cells(library.texts, level), level.cells)


def test_empty_and_equal_texts_are_dropped_with_their_labels():
    texts = [" ", *TEXTS, TEXTS[0], f" {TEXTS[5]}\n", ""]
    labels = ["praise", *KINDS, "praise", "praise", "praise"]
    ids = [f"i{i}" for i in range(len(texts))]
    made = make_library(texts, labels=labels, ids=ids, **ABOUT)
    assert list(made.texts) == TEXTS
    assert list(made.ids) == ids[1:-3]
    assert made.labels is not None
    assert [made.label_names[i] for i in made.labels] == KINDS


def test_labels_have_cells_and_a_figure(notes_library):
    level = notes_library.get_level("labels")
    assert level.names == notes_library.label_names == ("billing", "delivery", "praise", "question")
    assert level.sizes.tolist() == [50] * 4
    found = notes_library.find_cells(TEXTS, level)
    right = np.mean([level.names[i] == kind for i, kind in zip(found, KINDS, strict=True)])
    assert right > 0.9
    facts = notes_library.facts["labels"]
    assert facts["majority"] == 0.25
    assert facts["accuracy"] > 0.9


def test_classes_have_cells_and_a_figure(notes_library):
    level = notes_library.get_level("classes")
    assert level.names == tuple(CLASSES)  # in the order of the file, not of labels
    named = [level.names[cell] for cell in level.cells]
    own = [notes_library.label_names[i] for i in notes_library.labels]
    right = np.mean([one == other for one, other in zip(named, own, strict=True)])
    assert notes_library.facts["classes"]["accuracy"] == pytest.approx(right, abs=1e-4)
    assert right > 0.5


def test_labels_that_no_text_has_anything_to_do_with_are_not_known():
    """Cross-validation does not see its own labels: at chance, it says so."""
    chance = [("x", "y")[int(i)] for i in np.random.default_rng(3).integers(0, 2, len(TEXTS))]
    made = make_library(TEXTS, labels=chance, **ABOUT)
    assert made.facts["labels"]["accuracy"] < 0.75


@pytest.mark.parametrize("labels", [2, 3])
def test_a_head_says_what_the_regression_says(labels):
    rng = np.random.default_rng(labels)
    points, kinds = rng.normal(size=(200, 8)).clip(-3, 3), rng.integers(0, labels, 200)
    fitted = LogisticRegression().fit(points, kinds)
    steps = np.rint(points * 4096).astype(np.int16)
    found = _convert_head(fitted).score(steps).argmax(axis=1)
    assert (found == fitted.predict(points)).mean() > 0.99


@pytest.mark.parametrize("cells", ["vectors", "words", "both"])
def test_clusters_look_at_what_they_are_to_see(cells):
    made = make_library(TEXTS, cells=cells, levels=(4,), **ABOUT)
    (level,) = made.levels
    used = {
        name: bool(level.map.weights[:, block].any())
        for name, block in made.features.blocks.items()
    }
    expected = {"vectors": cells != "words", "words": cells != "vectors"}
    assert used == expected


def test_small_and_odd_libraries():
    assert make_library(TEXTS[:16], **ABOUT).levels[0].name == "2"
    marks = make_library(["!" * i for i in range(1, 40)], **ABOUT)
    assert marks.levels[0].sizes.all()
    for texts, says in (
        (TEXTS[:15], "at least 16 different texts, got 15"),
        ([TEXTS[0]], "at least 16 different texts, got 1"),
        ([], "at least 16 different texts, got 0"),
        (TEXTS[:2] * 30, "at least 16 different texts, got 2"),
        (
            ["x" * (MAX_CHARACTERS + 1), *TEXTS],
            "at most 100,000 characters, and text 0 has 100,001",
        ),
        ([*TEXTS, "\ud800"], "valid Unicode"),
    ):
        with pytest.raises(InputError, match=says):
            make_library(texts, **ABOUT)
    for form, says in (
        ("one{0} two{0}", "share words"),
        ("The cat {0}.", "share words"),
        ("The red cat {0}.", "share words"),
    ):
        with pytest.raises(InputError, match=says):
            make_library([form.format(i) for i in range(20)], cells="words", **ABOUT)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"labels": KINDS[:5]}, "as many as texts"),
        ({"ids": ["1"]}, "as many as texts"),
        ({"labels": ["one"] * 48}, "at least two different"),
        ({"labels": ["rare"] * 9 + ["common"] * 39}, "needs 10 texts or more, and rare has fewer"),
        ({"classes": {"one": "A text."}}, "at least two"),
        ({"classes": {"one": "A note.", "two": ""}}, "a sentence with words"),
        ({"classes": {"one": "A note.", "two": "A note."}}, "is nearest to the sentence of two"),
        ({"cells": "letters"}, "vectors, words or both"),
        ({"levels": (1,)}, "2 to 4096 cells"),
        ({"levels": (5000,)}, "2 to 4096 cells"),
        ({"licence": ""}, "needs a licence"),
        ({"source": "a\nb"}, "needs a source"),
    ],
)
def test_options_that_are_refused(options, says):
    with pytest.raises((ConfigError, InputError), match=says):
        make_library(TEXTS, **{**ABOUT, **options})


def test_the_shipped_notes_are_what_is_written():
    shipped = [json.loads(line) for line in (FOLDER / "notes.jsonl").read_text().splitlines()]
    assert shipped == write_notes(SHIPPED)
    assert read_classes(FOLDER / "classes.txt") == CLASSES
    assert (FOLDER / "notes.jsonl").stat().st_size < 40_000


# ---- what is said of a library -----------------------------------------------------------------------------


def test_epsilon_0_is_said(notes_library, plain):
    said = describe_baseline(notes_library)
    labels, classes = (notes_library.facts[name]["accuracy"] for name in ("labels", "classes"))
    assert f"who learns from its own labels is right on {labels:.3f} of its texts" in said
    assert f"the 4 sentences of its classes alone are right on {classes:.3f}" in said
    assert describe_baseline(plain) == (
        "At epsilon 0, without any private text: it does not know your labels."
    )
    unlabelled = make_library(TEXTS, classes=CLASSES, **ABOUT)
    assert "how well is not known" in describe_baseline(unlabelled)
    assert "it does not know your labels" in describe_baseline(notes_library, ("1", "2"))
    assert describe_baseline(notes_library, notes_library.label_names) == said
    assert describe_baseline(notes_library) == list(describe_library(notes_library))[-1]
    facts = collect_facts(notes_library)
    assert facts["epsilon_0"] == notes_library.facts
    assert sum(facts["labels"].values()) == facts["texts"] == 200


def test_a_library_that_follows_from_votes_says_so():
    made = make_library(TEXTS, made_with={"votes": [{"epsilon": 1.0, "unit": "document"}]}, **ABOUT)
    assert any(
        "votes of private texts (epsilon 1 for one document)" in line
        for line in describe_library(made)
    )


# ---- files of classes --------------------------------------------------------------------------------------


def test_classes_are_read(tmp_path):
    lines, rows = tmp_path / "a.txt", tmp_path / "a.csv"
    lines.write_text("\ufeffone: A text: long.\n\n two :  Another.\n", encoding="utf-8")
    rows.write_text('name,sentence\none,"A text: long."\ntwo,Another.\n')
    expected = {"one": "A text: long.", "two": "Another."}
    assert read_classes(lines) == read_classes(rows) == expected


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"one: A.\none: B.\n", "row 2 of 'a.txt' describes the class 'one' again"),
        ("a.txt", b"one: A.\ntwo B.\n", "row 2 of 'a.txt' must have the form NAME: SENTENCE"),
        ("a.txt", b"one: A.\ntwo:\n", "row 2"),
        ("a.txt", b"one: A.\n", "has 1"),
        ("a.txt", b"", "has 0"),
        ("a.txt", b"one: \xff\xfe\n", "UTF-8"),
        ("a.csv", b"name,text\none,A.\n", "fields name and sentence"),
        ("a.doc", b"one: A.\ntwo: B.\n", "must end in"),
    ],
)
def test_classes_that_are_refused(tmp_path, monkeypatch, name, content, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ConfigError, InputError), match=says):
        read_classes(name)
    with pytest.raises(InputError, match="no file"):
        read_classes("missing.txt")
