"""One contract for all executors: the same key gives the same bytes, whoever dies and however often a part is drawn.

Ray and Spark are large and have an environment of their own: `make check-engines` makes it, and runs this there.
"""

import json
import os
import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.disturbed import Disturbed, Doubled, Dying

from textveil import corpus
from textveil.config import layers
from textveil.corpus import RowOptions
from textveil.corpus.mapping import OWNER_SUBJECT
from textveil.corpus.release_key import KeyFile
from textveil.corpus.runs import get_executor
from textveil.errors import ConfigError, InputError
from textveil.randomness import KeyedRandomness
from textveil.session import SessionStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]  # of sockets that py4j leaves open, and others'

CANARY = "Zyxqorvian"
KEY = sha256(b"a key for tests").digest()

ENGINES = [
    "local",
    *(
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                find_spec(module) is None, reason="make check-engines runs it"
            ),
        )
        for name, module in (("ray", "ray"), ("spark", "pyspark"))
    ),
]


@pytest.fixture(scope="module", params=ENGINES)
def executor(request: Any) -> Iterator[Any]:
    with ExitStack() as stack:
        yield get_executor(request.param, 2, None, stack)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 rows in two files, with two fields and seven subjects."""
    folder = tmp_path_factory.mktemp("rows")
    for file in range(2):
        lines = [
            {
                "id": f"{file}-{n}",
                "who": n % 7,
                "body": f"the doctor lost letter {n} of {CANARY}",
                "title": "my garden",
            }
            for n in range(100)
        ]
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


OPTIONS = RowOptions(fields=("body", "title"), id="id", subject="who")


def run(rows: Path, out: Path, executor: Any, **more: Any) -> dict[str, Any]:
    config = layers.resolve(
        overrides=layers.convert_keywords(mechanism="rankcape", epsilon=8, table="minilm-s")
    )
    own = {"part_rows": 12, **more}
    return dict(corpus.run(rows, out, config, OPTIONS, executor=executor, **own).manifest)


def digest(out: Path) -> str:
    """Of all (id, field, text), sorted."""
    found = []
    for part in out.glob("part-*.jsonl"):
        for line in part.read_text().splitlines():
            row = json.loads(line)
            found += [(row["id"], field, row[field]) for field in ("body", "title")]
    assert len(found) == 400
    return sha256(json.dumps(sorted(found)).encode()).hexdigest()


@pytest.fixture(scope="module")
def expected(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """What one process draws."""
    out = tmp_path_factory.mktemp("expected") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyedRandomness, "make_key", staticmethod(lambda: KEY))
        made = run(rows, out, "local")
    return digest(out), {part["name"]: part["sha256"] for part in made["parts"]}


@pytest.fixture(autouse=True)
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyedRandomness, "make_key", staticmethod(lambda: KEY))


@pytest.mark.parametrize("how", [None, Dying, Doubled])
def test_the_same_key_gives_the_same_bytes(executor, rows, expected, tmp_path, how):
    """Undisturbed; with workers that are killed while they draw; and with every part drawn twice."""
    made = run(
        rows, tmp_path / "out", executor if how is None else Disturbed(executor, how, str(tmp_path))
    )
    assert {part["name"]: part["sha256"] for part in made["parts"]} == expected[1]
    assert digest(tmp_path / "out") == expected[0]
    assert corpus.verify(tmp_path / "out") == []
    assert len(list(tmp_path.glob("died-*"))) == (6 if how is Dying else 0)
    assert made["statement"]["losses"]["subject"]["number"] == 7


def protected(rows: Path, out: Path, executor: Any, url: str, **more: Any) -> dict[str, Any]:
    config = layers.resolve(
        overrides=layers.convert_keywords(
            mechanism="placeholder",
            table="minilm-s",
            protect={"detectors": ["patterns"], "always": ["doctor", CANARY]},
            groups={"budgets": (0, 0, float("inf"), float("inf"))},
            words={"consistent": True, "casing": "copy"},
        )
    )
    options = RowOptions(
        fields=("body", "title"),
        id="id",
        subject="who",
        others="copy",
        placeholders="subject",
        session="kept",
    )
    return dict(
        corpus.run(
            rows, out, config, options, executor=executor, part_rows=12, store=url, **more
        ).manifest
    )


@pytest.mark.parametrize("how", [Dying, Doubled])
def test_the_same_placeholders_and_each_kept_once(
    executor, rows, tmp_path, monkeypatch, capfd, how
):
    """Whoever draws, whoever dies, and however often: one placeholder for each value of a subject, which leads back."""
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    found = {}
    for name, drawing in (("here", "local"), ("there", Disturbed(executor, how, str(tmp_path)))):
        url = f"sqlite:///{tmp_path / name}.db"
        made = protected(rows, tmp_path / name, drawing, url)
        found[name] = {part["name"]: part["sha256"] for part in made["parts"]}
        with SessionStore(url) as store:
            subjects = {each.subject for each in store.sessions() if each.session == "kept"}
            assert subjects == {OWNER_SUBJECT, *map(str, range(7))}
            for who in range(7):
                kept = store.open(str(who), "kept", new=False)
                assert {value.text for value in kept.snapshot().placeholders} == {"doctor", CANARY}
            for part in (tmp_path / name).glob("part-*.jsonl"):
                for line in part.read_text().splitlines():
                    row = json.loads(line)
                    body = store.open(str(row["who"]), "kept").restore(row["body"])
                    assert (
                        body == f"the doctor lost letter {row['id'].partition('-')[2]} of {CANARY}"
                    )
    assert found["here"] == found["there"]
    assert CANARY not in "".join(capfd.readouterr())


class StopError(Exception):
    pass


def test_an_interrupted_run_goes_on_with_any_executor(executor, rows, expected, tmp_path):
    out = tmp_path / "out"

    def report(name: str, done: int, total: int) -> None:
        if name == "rows" and total > done >= 24:
            raise StopError

    with pytest.raises(StopError):
        run(rows, out, executor, report=report)
    assert not (out / "manifest.json").exists()
    run(rows, out, executor, resume=True)
    assert digest(out) == expected[0]
    with pytest.raises(StopError):
        run(rows, tmp_path / "other", "local", report=report)
    run(rows, tmp_path / "other", executor, resume=True)
    assert digest(tmp_path / "other") == expected[0]


def test_an_error_of_a_worker_is_ours_and_holds_no_text(executor, rows, tmp_path, capfd):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"id": 1, "who": 1, "body": "{CANARY}", "title": ["{CANARY}"]}}\n')
    with pytest.raises(
        InputError, match=r"input file 1, a\.jsonl: the field 'title' in line 1 must be a string"
    ) as caught:
        run(path, tmp_path / "out", executor)
    assert CANARY not in str(caught.value)
    assert CANARY not in "".join(capfd.readouterr())


def test_what_travels_to_workers_has_no_key(executor, rows, tmp_path):
    """Neither the handle nor what is pickled for a worker; and a worker has it all the same."""
    path = tmp_path / "key"
    path.write_bytes(KEY)
    handle = executor.share_key(KeyFile(path=path, digest=sha256(KEY).hexdigest()))
    dumps = pickle.dumps
    if type(executor).__name__ == "Ray":
        dumps = import_module("ray.cloudpickle").dumps
    if type(executor).__name__ == "Spark":
        dumps = import_module("pyspark.cloudpickle").dumps
    assert KEY not in dumps(handle)
    assert KEY.hex().encode() not in dumps(handle)
    ((_, found),) = executor.map(Reads(handle), [0])
    assert found == sha256(KEY).hexdigest()


class Reads:
    """Reads a key where it runs."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def __call__(self, _: int) -> str:
        return sha256(self.handle.read()).hexdigest()


def test_logs_have_neither_key_nor_text(executor, rows, tmp_path, capfd):
    run(rows, tmp_path / "out", executor)
    said = "".join(capfd.readouterr())
    assert CANARY not in said
    assert KEY.hex() not in said
    if type(executor).__name__ == "Ray":
        logs = Path("/tmp/ray/session_latest/logs")
        files = [path for path in logs.rglob("*") if path.is_file()]
        assert files
        for path in files:
            content = path.read_bytes()
            assert CANARY.encode() not in content
            assert KEY not in content
            assert KEY.hex().encode() not in content


@pytest.mark.skipif(find_spec("pyspark") is None, reason="make check-engines runs it")
def test_a_missing_java_is_said_in_one_line(monkeypatch, tmp_path, rows):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigError, match=r"^Spark needs Java 17 or newer: install it .*$"):
        run(rows, tmp_path / "out", "spark")
    assert "part" not in str(os.listdir(tmp_path))
