"""Datasets and frames: a row is drawn once for a release, whoever asks for it, and no column of text slips through."""

import datetime
import os
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import PurePath

import pytest

pytest.importorskip("datasets", reason="the extra `datasets` is not installed")
pytest.importorskip("polars", reason="the extra `frames` is not installed")
import datasets
import numpy
import pandas
import polars

from textveil import Privatizer, Protector
from textveil.errors import ConfigError, InputError, UnknownName
from textveil.guarantee import Guarantee
from textveil.integrations import frames
from textveil.integrations.datasets import privatize, read_statement
from textveil.integrations.releases import has_text

CANARY = "zyxqorvian"
KEY = bytes(range(32))
VEIL = Privatizer("rankcape", epsilon=8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    datasets.disable_progress_bars()


def rows(n=30):
    return {
        "id": list(range(n)),
        "text": [f"Ingrid hid the money {i} times in {CANARY}" for i in range(n)],
    }


@pytest.fixture
def dataset(tmp_path):
    """On the disk, so that it has a cache."""
    datasets.Dataset.from_dict(rows()).save_to_disk(tmp_path / "rows")
    return datasets.load_from_disk(tmp_path / "rows")


def files(folder):
    return sorted(path.name for path in folder.rglob("cache-*"))


def test_a_release_is_drawn_once_and_another_one_anew(dataset, tmp_path):
    release = privatize(VEIL, id="id")
    first = dataset.map(release, batched=True, batch_size=7)
    cached = files(tmp_path)
    assert cached
    again = dataset.map(release, batched=True, batch_size=7)
    assert files(tmp_path) == cached, "it was read from the cache"
    assert again["text"][:] == first["text"][:]
    other = dataset.map(privatize(VEIL, id="id"), batched=True, batch_size=7)
    assert files(tmp_path) != cached, "another release is never read from the cache"
    assert other["text"][:] != first["text"][:]
    assert not any(CANARY in text for text in [*first["text"], *other["text"]])


@pytest.mark.parametrize("processes", [None, 2])
@pytest.mark.parametrize("numbered", [False, True])
def test_batches_processes_and_a_lost_cache_change_nothing(dataset, processes, numbered):
    release = privatize(VEIL, id=None if numbered else "id")
    first = dataset.map(release, batched=True, batch_size=11, with_indices=numbered)
    second = dataset.map(
        release,
        batched=True,
        batch_size=4,
        with_indices=numbered,
        num_proc=processes,
        load_from_cache_file=False,
    )
    assert second["text"][:] == first["text"][:]


@pytest.mark.slow
def test_a_protector_in_other_processes(dataset):
    guard = Protector()
    guard.protect("Maria Silva")  # whose threads a fork does not take along
    rows = {"id": list("ab"), "text": ["Ask Maria Silva", "Call 212-555-0148"]}
    made = datasets.Dataset.from_dict(rows).map(privatize(guard, id="id"), batched=True, num_proc=2)
    assert made["text"][:] == ["Ask <PERSON_1>", "Call <PHONE_1>"]


def test_a_dataset_that_is_read_as_it_comes():
    def read():
        yield from ({"id": i, "text": text} for i, text in zip(*rows(9).values(), strict=True))

    release = privatize(VEIL, id="id")
    streamed = datasets.IterableDataset.from_generator(read).map(
        release, batched=True, batch_size=4
    )
    first, second = [[row["text"] for row in streamed] for _ in range(2)]
    assert first == second, "each epoch reads the same release"


def test_what_travels_is_no_key_and_no_text(dataset):
    release = privatize(VEIL, id="id", key=KEY)
    packed = pickle.dumps(release)
    assert pickle.dumps(release) == packed, "a cache that hashes it sees one release"
    assert KEY not in packed
    assert CANARY.encode() not in packed
    assert KEY.hex() not in repr(release)
    arrived = pickle.loads(packed)
    batch = {name: column[:3] for name, column in rows().items()}
    assert arrived(batch) == release(batch) == privatize(VEIL, id="id", key=KEY)(batch)


def test_after_the_end_nothing_is_drawn():
    release = privatize(VEIL, id="id")
    path = release._path
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    copy = pickle.loads(pickle.dumps(release))
    with pytest.raises(ConfigError, match="only the object that began"):
        copy.finish()
    release.finish()
    assert not path.parent.exists()
    for each in (release, copy):
        with pytest.raises(ConfigError, match="this release is finished"):
            each(rows(2))


@pytest.mark.slow
def test_a_key_ends_with_its_process_and_not_with_a_fork():
    code = """
import datetime
import os
from textveil import Privatizer
from textveil.integrations.datasets import privatize
release = privatize(Privatizer("placeholder"), id="id")
if (child := os.fork()) == 0:
    del release
    raise SystemExit
os.waitpid(child, 0)
assert release._path.exists()
print(release._path)
"""
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert made.stdout.strip().endswith("key")
    assert not os.path.exists(made.stdout.strip())


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        ({"text": ["a"]}, "there is no column 'id'"),
        ({"id": [1], "text": ["a"], "note": [CANARY]}, "column 'note' holds text too"),
        ({"id": [1], "text": ["a"], "note": [{"by": [CANARY]}]}, "column 'note' holds text too"),
        ({"id": [1], "text": ["a"], "note": [CANARY.encode()]}, "column 'note' holds text too"),
        ({"id": [1], "text": ["a"], "note": [PurePath(CANARY)]}, "column 'note' holds text too"),
        ({"id": [1], "text": ["a"], "note": [ValueError(CANARY)]}, "column 'note' holds text too"),
        ({"id": [1], "text": ["a"], "note": [{CANARY: 1}]}, "column 'note' holds text too"),
        ({"id": [1], "text": [["a"]]}, "column 'text' must hold texts, but holds list"),
        ({"id": [1.5], "text": ["a"]}, "ids must be strings or whole numbers"),
        ({"id": [None], "text": ["a"]}, "ids must be strings or whole numbers"),
        ({"id": [1, 1], "text": ["a", "b"]}, "an id occurs twice"),
        ({"id": 1, "text": "a"}, "batched=True"),
    ],
)
def test_what_would_slip_through_is_refused(batch, says):
    with pytest.raises((InputError, ConfigError), match=says) as refused:
        privatize(VEIL, id="id")(batch)
    assert CANARY not in str(refused.value)


def test_columns_that_stay_and_rows_without_a_text():
    batch = {
        "id": ["1", 1],
        "text": ["Ingrid", None],
        "title": [None, "money"],
        "topic": ["tax", "law"],
    }
    made = privatize(VEIL, ["text", "title"], id="id", keep=["topic"])(batch)
    assert list(made) == ["text", "title"]
    assert [each is None for column in made.values() for each in column] == [
        False,
        True,
        True,
        False,
    ]


def test_numbers_and_dates_hold_no_text():
    day = datetime.datetime(2020, 1, 2)
    for value in (
        None,
        True,
        1.5,
        Decimal(2),
        day,
        day.date(),
        day.time(),
        day - day,
        numpy.float32(1),
        numpy.bool_(1),
    ):
        assert not has_text([value])
    assert not has_text(numpy.array([[1, 2]]))
    assert not has_text(pandas.Series([day]))
    assert has_text(numpy.array(["a"], dtype=object))
    assert has_text(bytearray(b"a"))
    assert has_text(object())


def test_ids_are_needed():
    with pytest.raises(InputError, match="with_indices=True"):
        privatize(VEIL)({"text": ["a"]})


class Fails:
    name = "fails"

    def find(self, texts):
        raise RuntimeError(CANARY)


def test_an_error_reaches_the_host(dataset):
    guard = Protector(protect={"detectors": [Fails()]})
    with pytest.raises(Exception, match="fails") as failed:
        dataset.map(privatize(guard, id="id"), batched=True)
    assert CANARY not in str(failed.value)


def test_the_statement_goes_along(dataset):
    made = dataset.map(privatize(VEIL, id="id", statement="promise"), batched=True, batch_size=7)
    said = read_statement(made["promise"])
    whole = list(VEIL.privatize_many(dataset["text"][:]))
    assert isinstance(said, Guarantee)
    assert said.texts == 30
    assert said.epsilon == pytest.approx(8)
    assert said.words == sum(each.guarantee.words for each in whole)
    with pytest.raises(InputError, match="no statement"):
        read_statement([None])
    with pytest.raises(InputError, match="already"):
        made.map(privatize(VEIL, id="id", statement="promise", keep=["promise"]), batched=True)


@pytest.mark.parametrize(
    "options", [{"columns": ()}, {"columns": ["a", "a"]}, {"columns": "a", "id": "a"}]
)
def test_wrong_options(options):
    with pytest.raises(ConfigError):
        privatize(VEIL, **options)
    with pytest.raises(UnknownName):
        privatize("no such profile")
    with pytest.raises(ConfigError, match="not dict"):
        privatize({})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must pickle"):
        privatize(Protector(protect={"detectors": [type("Local", (Fails,), {})()]}))


# ---- frames ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [pandas, polars])
def test_frames(library):
    frame = library.DataFrame(
        {"id": [1, 2, 3], "text": [f"{CANARY} hid it", None, "Ask Ingrid"], "x": [1.5, 2.5, 3.5]}
    )
    made, said = frames.privatize(frame, VEIL)
    assert type(made) is type(frame)
    assert CANARY in str(frame["text"].to_list()), "the original stays as it is"
    released = made["text"].to_list()
    assert CANARY not in str(released)
    assert isinstance(released[0], str)
    assert not isinstance(released[1], str)
    assert made["x"].to_list() == [1.5, 2.5, 3.5]
    assert isinstance(said, Guarantee)
    assert said.texts == 2
    for column in (["a", CANARY, "b"], [[CANARY], [], []]):
        other = library.DataFrame({"id": [1, 2, 3], "text": ["a"] * 3, "note": column})
        with pytest.raises(InputError, match="column 'note' holds text too") as refused:
            frames.privatize(other, VEIL)
        assert CANARY not in str(refused.value)
        assert frames.privatize(other, VEIL, keep=["note"])[0]["note"].to_list() == column
    with pytest.raises(InputError, match="must hold texts"):
        frames.privatize(frame, VEIL, "x", keep=["text"])
    assert frames.privatize(frame[:0], VEIL)[1] is None


def test_an_index_of_pandas_is_a_column():
    frame = pandas.DataFrame({"text": ["a"]}, index=[CANARY])
    frame.attrs["source"] = CANARY
    with pytest.raises(InputError, match="'index' holds text too"):
        frames.privatize(frame, VEIL)
    assert CANARY not in str(frames.privatize(frame, VEIL, keep=["index"])[0].attrs)
    for name, column in ((None, "index"), ("who", "who")):
        same = pandas.DataFrame(
            {"text": ["a"], column: [1]}, index=pandas.Index([CANARY], name=name)
        )
        for keep in ([], [column]):
            with pytest.raises(InputError, match=r"rename (it|the column)"):
                frames.privatize(same, VEIL, keep=keep)
    plain = pandas.DataFrame({"text": ["a"], "index": [CANARY]})
    assert frames.privatize(plain, VEIL, keep=["index"])[0]["index"].to_list() == [CANARY]
    several = pandas.DataFrame(
        {"text": ["a"]}, index=pandas.MultiIndex.from_tuples([(CANARY, CANARY)])
    )
    with pytest.raises(InputError, match="'level_1' holds text too"):
        frames.privatize(several, VEIL, keep=["level_0"])
    assert len(frames.privatize(several, VEIL, keep=["level_0", "level_1"])[0]) == 1
    missing = pandas.DataFrame({"text": ["a"], "n": pandas.array([None], "Int64")})
    missing.columns.name = CANARY
    assert frames.privatize(missing, VEIL)[0].columns.name is None
    assert missing.columns.name == CANARY
    with pytest.raises(InputError, match="must differ"):
        frames.privatize(pandas.DataFrame([["a", "b"]], columns=["text", "text"]), VEIL)


def test_categories_are_text():
    frame = pandas.DataFrame({"text": ["a"], "who": pandas.Categorical([CANARY])})
    with pytest.raises(InputError, match="'who' holds text too"):
        frames.privatize(frame, VEIL)
    with pytest.raises(ConfigError, match="not dict"):
        frames.privatize({}, VEIL)


@pytest.mark.parametrize(
    "label", ["Maria Silva", "Silva", ("Silva", "a"), "42 Elm Street", "a" * 65]
)
def test_a_label_that_may_be_a_name_is_refused_and_not_shown(label):
    frame = pandas.DataFrame({"text": ["Ask Ann"], "other": [3]})
    frame.columns = pandas.Index(["text", label], tupleize_cols=False)
    with pytest.raises(InputError, match=r"label of column \d ") as failed:
        frames.privatize(frame, VEIL, "text")
    assert "Silva" not in str(failed.value)
    made, _ = frames.privatize(frame, VEIL, "text", keep=[label])
    assert made[label].tolist() == [3]
    if isinstance(label, str):
        with pytest.raises(InputError, match=r"label of column \d "):
            frames.privatize(polars.DataFrame({"text": ["Ask Ann"], label: [3]}), VEIL, "text")
        with pytest.raises(InputError, match=r"label of column \d "):
            datasets.Dataset.from_dict({"id": ["a"], "text": ["Ask Ann"], label: [3]}).map(
                privatize(VEIL, id="id"), batched=True
            )
