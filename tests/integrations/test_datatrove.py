"""datatrove: a document is drawn once for a release, and where a rank fails, neither output nor log has an original."""

import gzip
import json
from pathlib import PurePath

import pytest

pytest.importorskip("datatrove", reason="the extra `datatrove` is not installed")
from datatrove.data import Document, Media
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

from textveil import Privatizer, Protector
from textveil.errors import ConfigError, DetectorError, InputError
from textveil.integrations.datatrove import DocumentRelease

CANARY = "zyxqorvian@example.org"
KEY = bytes(range(32))
VEIL = Privatizer("rankcape", epsilon=8)


def documents(n=6):
    return [
        Document(text=f"Ingrid hid {i} coins of {CANARY}", id=f"d{i}", metadata={"n": i})
        for i in range(n)
    ]


def texts(step, given=None):
    return [each.text for each in step.run(documents() if given is None else given)]


def test_documents_are_released_once():
    step = DocumentRelease(VEIL)
    first = texts(step)
    assert CANARY not in str(first)
    assert texts(step) == first, "a rank that is tried again"
    assert texts(step, documents()[3:]) == first[3:], "or begins elsewhere"
    assert texts(DocumentRelease(VEIL)) != first, "another step is another release"
    assert texts(DocumentRelease(VEIL, key=KEY)) == texts(DocumentRelease(VEIL, key=KEY))
    assert list(step.run(None)) == []


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (Document(text="a", id="x", metadata={"file_path": CANARY}), "file_path"),
        (Document(text="a", id="x", metadata={"more": [{"by": CANARY}]}), "more"),
        (Document(text="a", id="x", metadata={CANARY: 1}), "the name of field 1"),
        (Document(text="a", id="x", metadata={"more": {CANARY: 1}}), "more"),
        (Document(text="a", id="x", metadata={"more": PurePath(CANARY)}), "more"),
        (Document(text="a", id="x", media=[Media(id="m", type=0, url=CANARY)]), "media"),
        (Document(text=None, id="x"), "no text"),
        (Document(text="a", id=None), "ids must be"),
    ],
)
def test_what_would_slip_through_is_refused(document, says):
    with pytest.raises((InputError, ConfigError), match=says) as refused:
        texts(DocumentRelease(VEIL), [document])
    assert CANARY not in str(refused.value)
    kept = Document(text="a", id="x", metadata={"file_path": "a.jsonl"})
    assert len(texts(DocumentRelease(VEIL, keep="file_path"), [kept])) == 1


class Breaks:
    name = "breaks"

    def find(self, texts):
        raise RuntimeError(CANARY)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(2):
        rows = [{"text": f"Ask Maria Silva or {CANARY}", "id": f"{i}-{j}"} for j in range(3)]
        (tmp_path / "in" / f"{i}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def executor(folder, step, **options):
    pipeline = [JsonlReader(str(folder / "in")), step, JsonlWriter(str(folder / "out"))]
    return LocalPipelineExecutor(pipeline, logging_dir=str(folder / "log"), tasks=2, **options)


def written(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "in"]


def read(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_pipeline(folder, workers):
    executor(folder, DocumentRelease(Protector(), keep="file_path"), workers=workers).run()
    out = b"".join(read(path) for path in folder.glob("out/*"))
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["text"] for row in rows] == ["Ask <PERSON_1> or <EMAIL_1>"] * 6
    assert not [path for path in written(folder) if CANARY.encode() in read(path)]


def test_where_a_rank_fails_nothing_is_written(folder):
    broken = DocumentRelease(Protector(protect={"detectors": [Breaks()]}), keep="file_path")
    with pytest.raises(DetectorError):
        executor(folder, broken, workers=1).run()
    assert written(folder), "it has a log"
    assert not [path for path in written(folder) if CANARY.encode() in read(path)]
    assert not [path for path in written(folder) if b"Maria" in read(path)]
