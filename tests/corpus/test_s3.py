"""A corpus in S3, against a server of moto: run, killed, resumed, verified, finished, and begun twice at once.

moto and s3fs have an environment of their own: `make check-engines` makes it, and runs this there.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("moto", reason="make check-engines runs it")
pytest.importorskip("s3fs", reason="make check-engines runs it")

import fsspec

from textveil import corpus
from textveil.config import layers
from textveil.corpus import RowOptions
from textveil.errors import ConfigError, InputError, OutputError
from textveil.files import storage

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CANARY = "Zyxqorvian"
OPTIONS = RowOptions(fields=("body",), id="id", subject="who")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    made = import_module("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    made.start()
    host, port = made.get_host_and_port()
    yield f"http://{host}:{port}"
    made.stop()


@pytest.fixture
def files(server: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A bucket `corpora` with 60 rows in two files."""
    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    files = fsspec.filesystem("s3")
    if files.exists("corpora"):
        files.rm("corpora", recursive=True)
    files.mkdir("corpora")
    for number in range(2):
        rows = [
            {"id": f"{number}-{n}", "who": n % 3, "body": f"the doctor of {CANARY} lost it {n}"}
            for n in range(30)
        ]
        content = "".join(json.dumps(each) + "\n" for each in rows).encode()
        with fsspec.open(f"s3://corpora/in/{number}.jsonl.gz", "wb", compression="gzip") as stream:
            stream.write(content)
    return files


def run(key: Path, to: str = "s3://corpora/out", **more: Any) -> dict[str, Any]:
    config = layers.resolve(
        overrides=layers.convert_keywords(mechanism="rankcape", epsilon=8, table="minilm-s")
    )
    own = {"part_rows": 10, "key_file": str(key), **more}
    return dict(corpus.run("s3://corpora/in", to, config, OPTIONS, **own).manifest)


def released(files: Any, out: str = "corpora/out") -> list[str]:
    files.invalidate_cache()
    return sorted(each.rpartition("/")[2] for each in files.find(out))


PARTS = [f"part-0000000{n}.jsonl.gz" for n in range(6)]
FINISHED = ["manifest.json", *PARTS, "statement.html", "statement.md"]


def test_a_run(files, tmp_path):
    made = run(tmp_path / "key")
    assert (made["rows"], len(made["parts"])) == (60, 6)
    assert released(files) == FINISHED
    assert corpus.verify("s3://corpora/out") == []
    assert not (tmp_path / "key").exists()
    for name in FINISHED:
        assert CANARY.encode() not in files.cat(f"corpora/out/{name}")
    files.pipe("corpora/out/part-00000003.jsonl.gz", b"x")
    files.rm("corpora/out/part-00000004.jsonl.gz")
    assert corpus.verify("s3://corpora/out") == [
        "part-00000004.jsonl.gz is missing",
        "part-00000003.jsonl.gz was changed",
    ]
    with pytest.raises(ConfigError, match="holds a finished release"):
        run(tmp_path / "key")


def test_processes_write_the_same(files, tmp_path):
    made = [
        run(tmp_path / name, f"s3://corpora/{name}", jobs=jobs)
        for name, jobs in (("a", 1), ("b", 2))
    ]
    digests = [[each["sha256"] for each in document["parts"]] for document in made]
    assert len({*digests[0], *digests[1]}) == 12  # of two keys
    assert corpus.verify("s3://corpora/a") == corpus.verify("s3://corpora/b") == []


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.corpus.test_s3 import run

def report(name, done, total):
    if name == "rows" and done == 30:
        os.kill(os.getpid(), signal.SIGKILL)

run(Path(sys.argv[1]), report=report)
"""


def test_a_killed_run_goes_on(files, tmp_path):
    key = tmp_path / "key"
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(key)], env=os.environ, check=False, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL
    assert CANARY.encode() not in ended.stdout + ended.stderr
    there = {name: files.cat(f"corpora/out/{name}") for name in PARTS[:3]}
    kept = files.find("corpora/out/_textveil")
    assert kept
    for name in kept:
        content = files.cat(name)
        assert key.read_bytes() not in content
        assert CANARY.encode() not in content
    with pytest.raises(ConfigError, match="continue with --resume"):
        run(key)
    with pytest.raises(InputError, match="no finished release"):
        corpus.verify("s3://corpora/out")
    run(key, resume=True)
    assert released(files) == FINISHED
    assert {name: files.cat(f"corpora/out/{name}") for name in PARTS[:3]} == there
    assert corpus.verify("s3://corpora/out") == []
    assert not key.exists()


def test_a_kept_key_is_destroyed_by_finish(files, tmp_path):
    run(tmp_path / "key", keep_key=True)
    assert corpus.verify("s3://corpora/out")[0].startswith(
        "the key of the release and the work files"
    )
    corpus.finish("s3://corpora/out", key_file=str(tmp_path / "key"))
    assert not (tmp_path / "key").exists()
    assert released(files) == FINISHED


class StopError(Exception):
    pass


def stop(name: str, done: int, total: int) -> None:
    if name == "rows" and done == 20:
        raise StopError


def test_a_run_can_be_given_up(files, tmp_path):
    with pytest.raises(StopError):
        run(tmp_path / "key", report=stop)
    corpus.finish("s3://corpora/out", key_file=str(tmp_path / "key"), give_up=True)
    assert released(files) == []


def test_of_two_runs_one_begins(files, tmp_path, monkeypatch):
    """The server says who was first, also where both have seen an empty folder."""
    names = storage.Storage.list_files

    def meanwhile(self: Any) -> list[str]:
        found = names(self)
        if self.uri == "s3://corpora/out":
            monkeypatch.setattr(storage.Storage, "list_files", names)
            monkeypatch.setattr(
                storage.Storage, "has_file", lambda *_: False
            )  # both have looked before
            with pytest.raises(StopError):
                run(tmp_path / "first", report=stop)
        return found

    exists = storage.Storage.has_file
    monkeypatch.setattr(storage.Storage, "list_files", meanwhile)
    with pytest.raises(ConfigError, match="began at the same moment"):
        run(tmp_path / "second")
    assert not (tmp_path / "second").exists()
    monkeypatch.setattr(storage.Storage, "has_file", exists)
    run(tmp_path / "first", resume=True)
    assert corpus.verify("s3://corpora/out") == []


def test_what_fails_is_said_without_text(files, tmp_path):
    with pytest.raises((OutputError, InputError)) as caught:
        run(tmp_path / "key", "s3://no-bucket-of-this-name/out")
    assert CANARY not in str(caught.value)
    with pytest.raises(InputError, match="names no file"):
        storage.find_files(["s3://corpora/nowhere"])
