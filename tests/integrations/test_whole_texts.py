"""Frames and datasets of whole texts: public texts in place of rows, or a public corpus in place of all."""

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("datasets", reason="the extra `datasets` is not installed")
pytest.importorskip("polars", reason="the extra `frames` is not installed")
import datasets
import pandas
import polars

import textveil.integrations.pandas  # noqa: F401
from textveil import TextPrivatizer
from textveil.errors import ConfigError, InputError
from textveil.guarantee import TextGuarantee
from textveil.integrations import frames
from textveil.integrations.datasets import privatize, read_statement
from textveil.integrations.datasets import synthesize as synthesize_dataset
from textveil.integrations.releases import check_metadata, resolve_privatizer
from textveil.library import make_demo_library

CANARY = "zyxqorvian"
LIBRARY = make_demo_library()
VEIL = TextPrivatizer(LIBRARY, epsilon=4)
FRAMES = [pandas.DataFrame, polars.DataFrame]
KINDS = ["delivery", "billing", "praise", "question"]


def rows(n=60):
    return {
        "text": [f"The parcel of {CANARY} is late, {i} days now" for i in range(n)],
        "kind": ["delivery" if i % 3 else "billing" for i in range(n)],
        "customer": [f"{CANARY} {i // 2}" for i in range(n)],
        "stars": [1 + i % 5 for i in range(n)],
    }


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    datasets.disable_progress_bars()


# ---- a public text in place of each --------------------------------------------------------------


@pytest.mark.parametrize("make", FRAMES)
def test_a_frame_of_public_texts(make):
    frame = make({"text": [*rows(3)["text"], None]})
    released, statement = frames.privatize(frame, VEIL)
    texts = list(released["text"])
    assert set(texts[:3]) <= set(LIBRARY.texts)
    assert pandas.isna(texts[3])
    assert isinstance(statement, TextGuarantee)
    assert (statement.documents, statement.labels_covered) == (3, True)
    assert "each of 3 documents" in statement.summary()


@pytest.mark.parametrize("make", FRAMES)
def test_what_stays_beside_public_texts_must_be_named(make):
    frame = make({name: rows(3)[name] for name in ("text", "stars")})
    with pytest.raises(InputError, match="column 'stars' would stay beside public texts"):
        frames.privatize(frame, VEIL)
    released, statement = frames.privatize(frame, VEIL, keep=["stars"])
    assert list(released["stars"]) == [1, 2, 3]
    assert statement is not None
    assert "labels are copied and not covered" in statement.summary()
    frames.privatize(frame, "document")  # numbers stay beside words without being named


def test_an_index_beside_public_texts_must_be_named():
    frame = pandas.DataFrame({"text": rows(3)["text"]}, index=[4711, 4712, 4713])
    with pytest.raises(InputError, match="column 'index' would stay beside public texts"):
        frames.privatize(frame, VEIL)
    released, _ = frames.privatize(frame, VEIL, keep=["index"])
    assert list(released.index) == [4711, 4712, 4713]
    named_like_an_index = pandas.DataFrame({"text": ["a b"], "index": [CANARY]})
    for privatizer in (VEIL, "document"):
        with pytest.raises(InputError, match="column 'index' holds text too"):
            frames.privatize(named_like_an_index, privatizer)


def test_a_dataset_of_public_texts_is_drawn_once():
    data = datasets.Dataset.from_dict({"id": list("abcdef"), "text": rows(6)["text"]})
    release = privatize(VEIL, id="id", statement="promise")
    first = data.map(release, batched=True, batch_size=2)
    assert first["text"][:] == data.map(release, batched=True, batch_size=4)["text"][:]
    assert set(first["text"]) <= set(LIBRARY.texts)
    statement = read_statement(first["promise"])
    assert isinstance(statement, TextGuarantee)
    assert statement.documents == 6
    assert not statement.labels_covered  # the ids stand beside them
    other = data.add_column("stars", list(range(6)))
    with pytest.raises(InputError, match="'stars' would stay beside"):
        privatize(VEIL, id="id")({name: other[name][:] for name in other.column_names})


def test_documents_with_figures_are_refused_beside_public_texts():
    check_metadata({"pages": 3}, [])
    with pytest.raises(InputError, match="would stay beside public texts"):
        check_metadata({"pages": 3}, [], is_whole=True)
    check_metadata({"pages": 3}, ["pages"], is_whole=True)


def test_what_puts_originals_back_takes_no_whole_texts():
    with pytest.raises(ConfigError, match="not TextPrivatizer"):
        resolve_privatizer(VEIL)  # type: ignore[arg-type]


# ---- a public corpus in place of all -------------------------------------------------------------

OPTIONS: dict[str, Any] = {
    "label": "kind",
    "label_names": KINDS,
    "subject": "customer",
    "library": LIBRARY,
    "epsilon": 1.0,
    "level": "6",
    "count": 40,
}


def check(texts, made):
    assert set(texts) <= set(LIBRARY.texts)
    assert made.guarantee.unit == "subject"
    assert made.guarantee.released == 40
    assert made.guarantee.replaced == pytest.approx(2 * made.guarantee.epsilon)
    assert "Epsilon 1 for one customer, of whom 1 document is counted" in made.guarantee.summary()
    assert CANARY not in json.dumps([made.votes.dump(), made.guarantee.to_json()])


@pytest.mark.parametrize("make", FRAMES)
def test_a_frame_is_synthesized(make):
    new, made = frames.synthesize(make(rows()), **OPTIONS)
    assert isinstance(new, make)
    assert list(new.columns) == ["text", "label", "cell", "source", "public"]
    assert len(new) == 40
    assert set(new["label"]) <= set(KINDS)
    check(new["text"], made)
    assert CANARY not in repr(new.to_dict() if make is polars.DataFrame else new.to_dict("list"))


def test_a_dataset_is_synthesized():
    data = datasets.Dataset.from_dict(rows(), info=datasets.DatasetInfo(description=CANARY))
    new, made = synthesize_dataset(data, **OPTIONS)
    assert new.column_names == ["text", "label", "cell", "source", "public"]
    check(new["text"][:], made)
    assert CANARY not in repr((new.info, new[:]))
    with pytest.raises(ConfigError, match="one split"):
        synthesize_dataset(datasets.DatasetDict(train=data), **OPTIONS)


def count_exactly(frame, **options):
    """The counts of a frame, with noise that is next to nothing."""
    _, made = frames.synthesize(frame, **{**OPTIONS, "epsilon": 1e4, **options})
    return made.votes.counts.sum(axis=1).tolist()


def test_rows_without_text_or_listed_label_are_not_counted_and_subjects_once():
    frame = pandas.DataFrame(
        {
            "text": ["late parcel"] * 4 + [None, "a wrong bill"],
            "kind": ["delivery", "delivery", "billing", None, "billing", "secret"],
            "customer": ["a", "a", "b", "c", "d", "e"],
        }
    )
    assert count_exactly(frame) == [1, 1, 0, 0]
    assert frames.synthesize(frame, **OPTIONS)[1].left_out["empty"] == 1
    frame.loc[4, "customer"] = None  # nobody is needed for no text
    assert frame.textveil.synthesize("text", **OPTIONS)[1].left_out["empty"] == 1
    assert count_exactly(frame, subject=None) == [2, 1, 0, 0]


def test_a_subject_is_one_however_its_number_is_kept():
    """One person as 5, "5" and 5.0, as frames mix them, is counted once."""
    values = [5, np.int64(5), "5", 5.0, 7]
    frame = pandas.DataFrame({"text": ["late parcel"] * 5, "kind": ["delivery"] * 5})
    frame["customer"] = pandas.Series(values, dtype=object)
    assert count_exactly(frame) == [2, 0, 0, 0]


def test_labels_may_be_numbers():
    frame = pandas.DataFrame({"text": ["late parcel"] * 3, "kind": [1, 2, None]})
    assert count_exactly(frame, subject=None, label_names=[1, 2]) == [1, 1]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"text": "texts"}, "there is no column 'texts'"),
        ({"label_names": ()}, "label and label_names go together"),
        ({"text": "stars"}, "column 'stars' must hold texts"),
        ({"label": "ratio"}, "must be strings or whole numbers"),
        ({"subject": "gap"}, "column 'gap' must name a subject"),
        ({"library": "none.library"}, "cannot read a library"),
    ],
)
def test_what_cannot_be_counted_is_refused(changed, message):
    frame = pandas.DataFrame({**rows(4), "ratio": [0.5] * 4, "gap": [CANARY, None] * 2})
    with pytest.raises((InputError, ConfigError), match=message) as raised:
        frames.synthesize(frame, **{**OPTIONS, **changed})
    assert CANARY not in str(raised.value)


def test_a_label_that_may_be_private_is_not_suggested():
    frame = pandas.DataFrame({**rows(4), f"Texts of {CANARY}": [1] * 4})
    with pytest.raises(InputError) as raised:
        frames.synthesize(frame, **{**OPTIONS, "text": "Texts"})
    assert CANARY not in str(raised.value)


def test_only_frames_are_synthesized():
    with pytest.raises(ConfigError, match="pandas or polars"):
        frames.synthesize(rows(), **OPTIONS)


def test_numbers_of_rows_that_say_which_were_taken_out_are_refused():
    frame = pandas.DataFrame({"text": rows(3)["text"]})
    assert list(frames.privatize(frame, VEIL)[0].index) == [0, 1, 2]
    for part in (frame.iloc[1:], frame.iloc[::2], frame.iloc[::-1]):
        with pytest.raises(InputError, match="'index'"):
            frames.privatize(part, VEIL)
        released, _ = frames.privatize(part.reset_index(drop=True), VEIL)
        assert list(released.index) == list(range(len(part)))
