"""Tables as folders: what is built is what is loaded, whole or not at all; every damage is refused."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import textveil
from textveil.errors import ConfigError, OutputError, TableError, UnknownName
from textveil.table import constants, store, vectors
from textveil.table.embedding import EmbeddingTable, load_table

WORDS = [
    "anna",
    "owes",
    "bank",
    "doctor",
    "clinic",
    "line end",
    "北京",
    '"',
    "pain",
    "knee",
    "rest",
    "rent",
]
ROWS = np.random.default_rng(8).normal(size=(len(WORDS), 6)).astype(np.float32) * 3


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "some.npz"
    np.savez(path, rows=ROWS, words=np.array(WORDS))
    return path


def build(source, folder, **options):
    with vectors.open_vectors(str(source), zero_rows=options.get("metric") == "euclidean") as found:
        return store.build(found, folder, **options)


@pytest.fixture
def folder(source, tmp_path):
    build(source, tmp_path / "table")
    return tmp_path / "table"


def stored(folder) -> np.ndarray:
    """The rows as a table takes them out."""
    return store.load(folder, metric=store.read(folder).metric).take(slice(None))


# ---- building and loading --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [None, "float16", "float32"])
@pytest.mark.parametrize("metric", ["chord", "euclidean"])
def test_what_is_built_is_loaded(source, tmp_path, metric, dtype):
    manifest = build(source, tmp_path / "t", metric=metric, dtype=dtype, name="mine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = store.load(tmp_path / "t", metric=metric)
    direct = EmbeddingTable.build(name="mine", words=WORDS, vectors=ROWS, metric=metric)
    assert (table.words, table.name, table.metric, table.dimension) == (
        direct.words,
        "mine",
        metric,
        6,
    )
    tolerance = 1e-3 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(
        table.vectors.astype(np.float32), direct.vectors, rtol=tolerance, atol=tolerance
    )
    assert (manifest.words, manifest.dimension, manifest.dtype) == (12, 6, dtype or "float32")
    assert (manifest.source, manifest.format, manifest.repeated, manifest.broken) == (
        "some.npz",
        "numpy",
        0,
        0,
    )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("metric", ["chord", "euclidean"])
def test_constants_are_those_of_the_stored_rows(source, tmp_path, metric, dtype):
    """With all pairs they are exact; without, on the safe side."""
    for pairs in (True, False):
        build(source, tmp_path / "t", metric=metric, dtype=dtype, pairs=pairs, force=True)
        found, exact = (
            store.read(tmp_path / "t").constants,
            constants.compute(stored(tmp_path / "t"), metric),
        )
        assert (found.words, found.dimension, found.metric) == (12, 6, metric)
        assert found.coordinate_range == pytest.approx(exact.coordinate_range, rel=1e-6)
        for name in ("diameter", "l1_diameter", "coordinate_range"):
            value, true = getattr(found, name), getattr(exact, name) / (1 + 1e-6)
            assert true <= value <= (true * (1 + 1e-5) if pairs else 2 * true)
        if pairs:
            assert found.curve
            assert exact.curve
            assert exact.minimum_distance == pytest.approx(found.minimum_distance, rel=1e-6)
            c = np.array([0.1, 1.0, 10.0])
            np.testing.assert_allclose(found.curve.constant(c), exact.curve.constant(c), rtol=1e-5)
        else:
            assert (found.curve, found.minimum_distance, found.duplicates) == (None, None, None)
            assert found.diameter <= (2 if metric == "chord" else np.inf)
        loaded = store.load(tmp_path / "t", metric=metric)
        assert loaded.diameter == found.diameter
        assert (loaded.curve is None) != pairs


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("share", "seed"), [(1e-2, 1), (1e-5, 9), (1e-6, 5)])
def test_constants_of_rows_close_together(tmp_path, share, seed, dtype):
    """What the rows have in common is large, so their distances are as small as rounding can make them."""
    rows = (5 + share * np.random.default_rng(seed).normal(size=(20, 4))).astype(np.float32)
    np.savez(tmp_path / "some.npz", rows=rows, words=np.array([f"w{i}" for i in range(20)]))
    for pairs in (True, False):
        if dtype == "float16" and share < 1e-3:
            continue  # all rows are equal then
        known = build(
            tmp_path / "some.npz", tmp_path / "t", dtype=dtype, pairs=pairs, force=True
        ).constants
        taken = stored(tmp_path / "t").astype(np.float64)
        away = np.linalg.norm(taken[:, None] - taken, axis=2)
        assert known.diameter >= away.max()
        assert known.l1_diameter >= np.abs(taken[:, None] - taken).sum(axis=2).max()
        if known.curve is None:
            continue
        assert known.minimum_distance <= away[away > 0].min()
        assert known.duplicates == 20 - len(np.unique(taken, axis=0))
        for c in np.geomspace(1, 1e8, 30):
            capped = np.minimum(away, 20 / c)
            height = np.log(np.exp(-c * capped).sum(axis=1))
            slope = (height[None] - height[:, None]) / np.where(away == 0, np.inf, capped)
            assert c + slope.max() <= known.curve.constant(float(c)) * (1 + 1e-9)


def test_bounds_of_blocks_are_those_of_the_whole():
    whole = constants.compute_bounds(lambda: [ROWS], "euclidean")
    assert (
        constants.compute_bounds(lambda: np.split(ROWS, [5, 10]), "euclidean").to_json()
        == whole.to_json()
    )


def test_large_tables_are_kept_in_half(source, tmp_path, monkeypatch):
    """The rows written so far are turned into float16 when the table turns out to be large."""
    monkeypatch.setattr(vectors, "CHUNK", 50)
    monkeypatch.setattr(store, "MAX_PART_NUMBERS", 7)
    expected = build(source, tmp_path / "said", dtype="float16", metric="euclidean").files[
        "rows.npy"
    ]
    monkeypatch.setattr(store, "MIN_FLOAT16_NUMBERS", 40)
    assert build(source, tmp_path / "t", metric="euclidean").dtype == "float16"
    np.testing.assert_array_equal(np.load(tmp_path / "t" / "rows.npy"), ROWS.astype(np.float16))
    assert store.read(tmp_path / "t").files["rows.npy"] == expected


def test_large_tables_do_without_pairs(source, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MAX_PAIRS_WORDS", 11)
    build(source, tmp_path / "t")
    manifest = store.read(tmp_path / "t")
    assert (manifest.neighbours, manifest.constants.curve) == (0, None)
    with pytest.raises(TableError, match="it has no list of nearest words"):
        store.read_neighbours(tmp_path / "t")
    assert build(source, tmp_path / "all", pairs=True).constants.curve is not None


@pytest.mark.parametrize("metric", ["chord", "euclidean"])
def test_nearest_words(source, tmp_path, metric):
    build(source, tmp_path / "t", metric=metric, neighbours=4)
    near, away = store.read_neighbours(tmp_path / "t")
    rows = stored(tmp_path / "t").astype(np.float64)
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    np.fill_diagonal(distances, np.inf)
    expected = distances.argsort(axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(near, expected)
    np.testing.assert_allclose(away, np.take_along_axis(distances, expected, axis=1), rtol=1e-6)
    known, row, pairs = store.find_nearest_words(str(tmp_path / "t"), "bank", 4)
    assert (known, row) == (True, "bank")
    assert [word for word, _ in pairs] == [WORDS[i] for i in near[2]]
    np.testing.assert_allclose([distance for _, distance in pairs], away[2], rtol=1e-6)
    known, row, pairs = store.find_nearest_words(str(tmp_path / "t"), "banks", 99)
    assert (known, row, len(pairs)) == (False, "bank", 11)


def test_lists_are_no_longer_than_the_table(source, tmp_path):
    assert build(source, tmp_path / "a", neighbours=99).neighbours == 11
    assert build(source, tmp_path / "b", neighbours=0).neighbours == 0
    assert sorted(os.listdir(tmp_path / "b")) == ["rows.npy", "table.json", "words.json"]


def test_loading_writes_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in folder.iterdir():
        path.chmod(0o444)
    table = store.load(folder)
    table.vectors[:] = 1  # nobody does that; the file must not change even so
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_wrong_options(source, tmp_path):
    for options, says in (
        ({"metric": "cosine"}, "must be chord or euclidean, got 'cosine'"),
        ({"dtype": "int8"}, "must be float16 or float32, got 'int8'"),
        ({"neighbours": -1}, "must be at least 0, got -1"),
    ):
        with pytest.raises(ConfigError, match=says):
            build(source, tmp_path / "t", **options)
    np.savez(tmp_path / "large.npz", rows=np.array([[1e5, 0], [0, 1]]), words=np.array(["a", "b"]))
    with pytest.raises(
        TableError,
        match=r"large\.npz: it holds a number too large for float16; use --dtype float32",
    ):
        build(tmp_path / "large.npz", tmp_path / "t", metric="euclidean", dtype="float16")
    np.savez(tmp_path / "zero.npz", rows=np.zeros((2, 2)), words=np.array(["a", "b"]))
    with pytest.raises(TableError, match="all of its rows are equal"):
        build(tmp_path / "zero.npz", tmp_path / "t", metric="euclidean", pairs=False)
    with (
        vectors.open_vectors(str(tmp_path / "zero.npz"), zero_rows=True) as found,
        pytest.raises(TableError, match="metric chord does not allow zero rows"),
    ):
        store.build(found, tmp_path / "t")
    assert sorted(os.listdir(tmp_path)) == ["large.npz", "zero.npz"]


# ---- a folder appears whole or not at all ----------------------------------------------------------------------------


def test_an_existing_folder_is_kept(source, folder, tmp_path):
    before = (folder / "table.json").read_bytes()
    with pytest.raises(OutputError, match="exists; --force replaces"):
        build(source, folder)
    build(source, folder, metric="euclidean", force=True)
    assert (folder / "table.json").read_bytes() != before
    assert os.listdir(tmp_path) == ["table"]
    other = tmp_path / "other"
    other.mkdir()
    build(source, other, force=True)  # an empty folder
    for foreign in (tmp_path / "full", tmp_path / "file"):
        foreign.mkdir() if foreign.name == "full" else foreign.touch()
        if foreign.is_dir():
            (foreign / "letter.txt").touch()
        with pytest.raises(OutputError, match="is not the folder of a table, and is not replaced"):
            build(source, foreign, force=True)
    assert (tmp_path / "full" / "letter.txt").exists()


def test_force_deletes_files_of_tables_only(source, folder, tmp_path):
    def kept(says):
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises((OutputError, TableError), match=says):
            build(source, folder, force=True)
        assert sorted(tmp_path.rglob("*")) == before

    (folder / "NOTES.md").touch()
    kept("is not replaced: it holds 'NOTES.md', which is not part of a table")
    (folder / "NOTES.md").rename(tmp_path / "NOTES.md")
    (folder / "words.json").rename(tmp_path / "words.json")
    (folder / "words.json").mkdir()
    (folder / "words.json" / "thesis.tex").touch()
    kept("it holds 'words.json', which is not part of a table")
    shutil.rmtree(folder / "words.json")
    (folder / "words.json").symlink_to(tmp_path / "words.json")
    kept("it holds 'words.json', which is not part of a table")
    (folder / "words.json").unlink()
    build(source, folder, force=True)  # a damaged table
    (folder / "table.json").write_text("{")
    build(source, folder, force=True)
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "table.json").write_text("{}")
    kept("it must be of version 1 or 2, got None")


class Stop(BaseException):
    """A signal that ends the process."""


@pytest.mark.parametrize("stopped", [1, 2])
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("error", [Stop, OSError])
def test_an_interrupted_replacement_leaves_one_table(
    source, folder, tmp_path, monkeypatch, stopped, after, error
):
    """Before or after either of the two renames."""
    former, moves, rename = store.read(folder), [], Path.rename

    def renamed(self, target):
        moves.append(self)
        if len(moves) == stopped and not after:
            raise error
        found = rename(self, target)
        if len(moves) == stopped:
            raise error
        return found

    monkeypatch.setattr(Path, "rename", renamed)
    with pytest.raises(OutputError if error is OSError else error):
        build(source, folder, metric="euclidean", force=True)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["table"]
    assert (store.verify(folder) == former) == ((stopped, after) != (2, True))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_a_killed_replacement_leaves_the_former_table(source, folder, tmp_path, monkeypatch):
    """When nothing of this process runs any more after the first rename."""
    rename = Path.rename

    def kill(self, target):
        rename(self, target)
        os._exit(9)

    child = os.fork()
    if not child:
        monkeypatch.setattr(Path, "rename", kill)
        build(source, folder, metric="euclidean", force=True, pairs=False)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    former, part = sorted(tmp_path.iterdir())
    assert store.load(former).metric == "chord"
    assert dict(store.list_folders(tmp_path)).keys() == {str(former)}
    with pytest.raises(TableError, match="left from an unfinished build"):
        store.load(part)


def test_a_malformed_source_leaves_no_folders(tmp_path):
    (tmp_path / "some.txt").write_text("a 1 2\nb 3\n")
    with pytest.raises(TableError, match="line 2 must hold"):
        build(tmp_path / "some.txt", tmp_path / "p1" / "p2" / "t")
    assert os.listdir(tmp_path) == ["some.txt"]


def test_names_that_cannot_be_loaded(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, says in (
        ("x.part", r"must not end with \.part"),
        ("minilm", r"registered table; .* write \./minilm"),
    ):
        with pytest.raises(ConfigError, match=says):
            build(source, folder)
    for name in ("a\nb", "\x1b[1m", "\ud800"):
        with pytest.raises(ConfigError, match="the name of a table must not contain line breaks"):
            build(source, "t", name=name)
    assert os.listdir(tmp_path) == []
    build(source, "./minilm")
    assert load_table("./minilm").name == "some"


@pytest.mark.parametrize("step", ["reading", "constants", "neighbours"])
def test_an_interrupted_build_leaves_nothing(source, folder, tmp_path, step):
    before = store.read(folder)

    def stop(name, done, total):
        if name == step:
            raise KeyboardInterrupt

    for target in (tmp_path / "new", folder):
        with pytest.raises(KeyboardInterrupt):
            build(source, target, force=True, progress=stop)
    assert os.listdir(tmp_path) == ["table"]
    assert store.read(folder) == before


def test_a_malformed_source_leaves_nothing(tmp_path):
    (tmp_path / "some.txt").write_text("a 1 2\nb 3\n")
    with pytest.raises(TableError, match="line 2 must hold"):
        build(tmp_path / "some.txt", tmp_path / "t")
    assert os.listdir(tmp_path) == ["some.txt"]


def test_a_failed_write_is_told(source, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"cannot write .*t: No space left on device"):
        build(source, tmp_path / "t")
    assert os.listdir(tmp_path) == []


KILLED = """
import sys
from textveil.table import store, vectors
store.PAIRS_UP_TO = 0
with vectors.open_vectors(sys.argv[1]) as found:
    print("go", flush=True)
    store.build(found, sys.argv[2])
"""


@pytest.mark.slow
def test_a_killed_build_leaves_nothing_that_loads(tmp_path):
    path = tmp_path / "source" / "big.npz"
    path.parent.mkdir()
    count = 60_000
    rows = np.random.default_rng(0).normal(size=(count, 50)).astype(np.float32)
    np.savez(path, rows=rows, words=np.array([f"w{i}" for i in range(count)]))
    outcomes = []
    for delay in np.linspace(0, 0.8, 9):
        where = tmp_path / f"{delay:.2f}"
        where.mkdir()
        command = [sys.executable, "-c", KILLED, str(path), str(where / "t")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdout.readline() == b"go\n"
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
        outcomes.append((where / "t").exists())
        for found in where.iterdir():
            if found.name == "t":
                assert len(store.load(found)) == count
            else:
                with pytest.raises(TableError, match="it is left from an unfinished build"):
                    store.load(found)
        assert dict(store.list_folders(where)).keys() <= {str(where / "t")}
    assert outcomes[0] is False


def test_what_is_left_of_a_killed_build_never_loads(folder):
    """Even when only the last step was missing."""
    part = folder.rename(folder.with_name(".table.7.part"))
    with pytest.raises(TableError, match="it is left from an unfinished build; delete it"):
        store.load(part)
    assert dict(store.list_folders(part.parent)) == {}


# ---- damaged and foreign folders -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in store.FILES if name != store.TOKENIZER])
def test_every_damage_is_refused(folder, name):
    path = folder / name
    content = path.read_bytes()
    store.load(folder)
    generator = np.random.default_rng(len(content))
    places = {0, len(content) - 1, *generator.integers(0, len(content), 60).tolist()}
    if name == "table.json":
        places |= set(range(0, len(content), 41))
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(generator.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(TableError) as caught:
            store.load(folder)
        assert name in str(caught.value)
    for length in (0, 1, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(TableError, match=name.replace(".", r"\.")):
            store.load(folder)
    for longer in (content + b"\n", content + b"\0"):
        path.write_bytes(longer)
        with pytest.raises(TableError, match=name.replace(".", r"\.")):
            store.load(folder)
    path.unlink()
    with pytest.raises(
        TableError, match="not the folder of a table" if name == "table.json" else "No such file"
    ):
        store.load(folder)


def test_files_of_another_table_are_refused(source, folder, tmp_path):
    build(source, tmp_path / "other", metric="euclidean")
    for name in ("rows.npy", "table.json"):
        shutil.copy(folder / name, tmp_path / "kept")
        shutil.copy(tmp_path / "other" / name, folder / name)
        with pytest.raises((TableError, ConfigError)):
            store.load(folder)
        shutil.copy(tmp_path / "kept", folder / name)
    store.load(folder)


def test_foreign_manifests(folder):
    path = folder / "table.json"
    whole = json.loads(path.read_text("utf-8"))
    for foreign, says in (
        ({**whole, "textveil table": 3}, "must be of version 1 or 2, got 3"),
        ({**whole, "textveil table": 2}, "is damaged"),
        ({**whole, "name": "other"}, "damaged, or not from textveil"),
        (
            {**whole, "files": {**whole["files"], "../x": {"bytes": 0, "sha256": ""}}},
            "damaged, or not from textveil",
        ),
        ({"textveil table": 1}, "damaged, or not from textveil"),
        ([], "damaged, or not from textveil"),
    ):
        path.write_text(json.dumps(foreign))
        with pytest.raises(TableError, match=says):
            store.load(folder)


def forge(folder, **changed):
    """A manifest with other values, and the checksum of those."""
    manifest = replace(store.read(folder), **changed)
    (folder / "table.json").write_text(store._spell(manifest), "utf-8")


@pytest.mark.parametrize(
    "changed",
    [
        {"repeated": "x"},
        {"words": 12.0},
        {"broken": -1},
        {"neighbours": 0},
        {"neighbours": 3.5},
        {"name": "a\nb"},
        {"name": ["a"]},
        {"source": "\x1b[1m"},
        {"format": 7},
        {"dtype": "int8"},
        {"files": {}},
        {"files": {"rows.npy": 5, "words.json": 5}},
    ],
)
def test_manifests_with_wrong_values(folder, changed):
    """Their checksums fit, for whoever edits one can compute it."""
    values = store.read(folder).files
    forge(
        folder,
        **{
            name: {**values, **each} if each and name == "files" else each
            for name, each in changed.items()
        },
    )
    for ask in (
        store.load,
        store.read_neighbours,
        lambda folder: store.format_summary(str(folder)),
    ):
        with pytest.raises(TableError, match=r"table\.json: it is damaged, or not from textveil"):
            ask(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("diameter", 0.01), ("diameter", -1.0), ("diameter", 9.0), ("minimum_distance", 3.0)],
)
def test_constants_that_no_rows_have(folder, name, value):
    manifest = store.read(folder)
    object.__setattr__(manifest.constants, name, value)  # past the check
    (folder / "table.json").write_text(store._spell(manifest), "utf-8")
    with pytest.raises(TableError, match="damaged, or not from textveil"):
        store.load(folder)


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("neighbours.npy", np.zeros((12, 9), "<i4"), "must hold 12 x 10 numbers in int32"),
        ("neighbours.npy", np.full((12, 10), 12, "<i4"), "must hold row numbers"),
        ("neighbours.npy", np.full((12, 10), -1, "<i4"), "must hold row numbers"),
        ("distances.npy", np.zeros((12, 10), ">f4"), "must hold 12 x 10 numbers in float32"),
        ("rows.npy", np.zeros((12, 6), "<f8"), "must hold 12 x 6 numbers in float32"),
    ],
)
def test_arrays_that_do_not_fit(folder, name, array, says):
    np.save(folder / name, array)
    forge(folder, files={**store.read(folder).files, name: store._compute_stamp(folder / name)})
    with pytest.raises(TableError, match=says):
        store.load(folder) if name == "rows.npy" else store.read_neighbours(folder)


def test_pickles_are_never_loaded(folder, monkeypatch):
    """Not even where the checksums fit."""
    with (folder / "rows.npy").open("wb") as file:
        pickle.dump({"a": 1}, file)
    monkeypatch.setattr(store, "_compute_stamp", lambda path: store.read(folder).files[path.name])
    size = store.read(folder).files["rows.npy"]["bytes"]
    with (folder / "rows.npy").open("ab") as file:
        file.truncate(size)
    with pytest.raises(TableError, match=r"rows\.npy: it is not an array of a table"):
        store.load(folder)


# ---- where a table's name is taken -----------------------------------------------------------------------------------


def test_a_folder_is_a_name(source, folder, tmp_path, monkeypatch):
    assert load_table(str(folder)) is load_table(str(folder))
    privatizer = textveil.Privatizer(table=str(folder), epsilon=5, seed=1)
    assert privatizer.privatize("anna owes the bank").guarantee.claim.table == "some"
    monkeypatch.chdir(tmp_path)
    assert load_table("table") is load_table("./table") is load_table(str(folder))
    build(source, tmp_path / "elsewhere" / "table", metric="euclidean")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_table("table", metric="euclidean").metric == "euclidean"
    with pytest.raises(ConfigError, match=r"was built for table\.metric=euclidean, got 'chord'"):
        load_table("table")


def test_other_names_are_unknown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for name in ("minilmm", "empty"):
        with pytest.raises(UnknownName, match=f"no table is named '{name}'"):
            load_table(name)
    with pytest.raises(TableError, match=r"\./empty|empty: it is not the folder of a table"):
        load_table("./empty")
    (tmp_path / "minilm").mkdir()
    (tmp_path / "minilm" / "table.json").touch()
    assert load_table("minilm").name == "minilm"  # registered names come first


# ---- memory ----------------------------------------------------------------------------------------------------------

MEASURE = """
import sys
from textveil.table import store, vectors
vectors.CHUNK, store.PART = 1 << 18, 1 << 16
def resident():
    return int(next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()[1])
most = {}
for source in sys.argv[2:]:
    with vectors.open_vectors(source) as found:
        before, most[source] = resident(), 0
        def watch(*_):
            most[source] = max(most[source], resident() - before)
        store.build(found, sys.argv[1], pairs=False, force=True, progress=watch)
print(most[source])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_holds_blocks_and_words(tmp_path):
    """A table of 72 MB is built in much less, once the libraries have made ready for a small one."""
    rows = np.random.default_rng(0).normal(size=(1000, 300)).astype(np.float32)
    for name, count in (("small", 2000), ("large", 60_000)):
        with (tmp_path / name).open("wb") as file:
            file.write(b"%d %d\n" % (count, rows.shape[1]))
            for i in range(count):
                file.write(b"word%d " % i + rows[i % 1000].tobytes())
    sources = [str(tmp_path / name) for name in ("small", "large")]
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "t"), *sources]
    most = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert most < 30_000, f"{most:,} kB"  # of which the words are 10,000


def test_names_of_sources(source, folder):
    assert store.read(folder).name == "some"
    assert Path(store.describe(str(folder))["table"]) == folder
