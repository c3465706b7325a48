"""Data-Juicer itself (`make check-engines`): a row is drawn once for a release; a failed run lets nothing through."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("data_juicer", reason="make check-engines runs it")
from data_juicer.core.data import NestedDataset
from data_juicer.ops import OPERATORS, load_ops

from textveil import Privatizer, Protector
from textveil.errors import ConfigError, DetectorError, InputError
from textveil.integrations.data_juicer import TextveilMapper

pytestmark = pytest.mark.filterwarnings("ignore")  # of others: files that they leave open, forks

CANARY = "zyxqorvian@example.org"
VEIL = Privatizer("rankcape", epsilon=8)
PAGE = Path(__file__).parents[2] / "docs" / "do" / "integrations" / "data-juicer.md"


class Breaks:
    name = "breaks"

    def find(self, texts):
        raise RuntimeError(CANARY)


def rows(n=9, **more):
    texts = [f"Ingrid hid {i} coins of {CANARY}" for i in range(n)]
    return {"id": [f"r{i}" for i in range(n)], "text": texts, "pages": list(range(n))} | more


@pytest.fixture
def dataset(tmp_path):
    """On the disk, so that it has a cache."""
    NestedDataset.from_dict(rows()).save_to_disk(tmp_path / "rows")
    return NestedDataset.load_from_disk(str(tmp_path / "rows"))


def released(operator, dataset):
    made = operator.run(dataset)
    assert made["pages"] == list(range(9))
    return made["text"]


def test_a_row_is_drawn_once_whatever_the_batches_the_processes_and_the_cache(dataset):
    operator = TextveilMapper(VEIL)
    first = released(operator, dataset)
    assert CANARY not in str(first)
    assert released(operator, dataset) == first
    operator.batch_size = 2
    assert released(operator, dataset) == first
    operator.batch_size, operator.auto_op_parallelism, operator.num_proc = 4, False, 2
    assert released(operator, dataset) == first
    operator._release.finish()
    operator.batch_size = 3
    with pytest.raises(ConfigError, match="this release is finished"):
        operator.run(dataset)


def test_another_operator_is_another_release(dataset):
    """The cache never passes off what one has drawn as what another has drawn."""
    first = released(TextveilMapper(VEIL), dataset)
    assert released(TextveilMapper(VEIL), dataset) != first


def test_it_is_found_by_its_name():
    assert OPERATORS.modules["textveil_mapper"] is TextveilMapper
    (operator,) = load_ops(
        [{"textveil_mapper": {"privatizer": "prompt", "text_key": "body", "skip_op_error": True}}]
    )
    batch = {"id": ["a", "b"], "body": ["Ask Maria Silva", None]}
    assert operator.process_batched(batch)["body"] == ["Ask <PERSON_1>", None]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (rows(by=[CANARY] * 9), "by"),
        (rows(more=[[{"by": CANARY}]] * 9), "more"),
        (rows(text=list(range(9))), "must hold texts"),
        (rows(id=["a"] * 9), "occurs twice"),
        (rows(id=[0.5] * 9), "ids must be"),
        ({"text": [CANARY]}, "no column 'id'"),
        ({"id": ["a"], "body": [CANARY]}, "no column 'text'"),
    ],
)
def test_what_would_slip_through_is_refused(given, says):
    with pytest.raises((InputError, ConfigError), match=says) as refused:
        TextveilMapper(VEIL, skip_op_error=True).run(NestedDataset.from_dict(given))
    assert CANARY not in str(refused.value)


def test_text_stays_only_where_it_is_named():
    made = TextveilMapper(VEIL, keep="by").run(NestedDataset.from_dict(rows(by=["Ada"] * 9)))
    assert made["by"] == ["Ada"] * 9
    assert CANARY not in str(made["text"])


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_ends_a_run_that_would_skip_it(dataset, processes):
    operator = TextveilMapper(Protector(protect={"detectors": [Breaks()]}), skip_op_error=True)
    operator.auto_op_parallelism, operator.num_proc = False, processes
    with pytest.raises(DetectorError) as failed:
        operator.run(dataset)
    chain: Any = failed.value
    assert chain.__cause__ is None
    assert chain.__context__ is None
    frames = [
        each
        for each in failed.traceback
        if "textveil" in str(each.path) and "tests" not in str(each.path)
    ]
    assert frames, "it was raised by the operator"
    assert not [
        name
        for each in frames
        for name, value in each.frame.f_locals.items()
        if CANARY in repr(value)
    ]


def test_ray_is_refused():
    assert TextveilMapper._supported_exec_modes == ("default",)


def process(folder, *options):
    """`dj-process`, as the page calls it."""
    command = [Path(sys.executable).with_name("dj-process"), "--config", "release.yaml", *options]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
    )


def read(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.fixture
def folder(tmp_path):
    """With the files of the page."""
    for name, body in re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', PAGE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(body)
    return tmp_path


def test_the_page(folder):
    done = process(folder)
    assert done.returncode == 0, done.stderr
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    made = (folder / "released" / "letters.jsonl").read_text()
    assert [json.loads(line) for line in made.splitlines()] == [
        json.loads(line) for line in shown.splitlines()
    ], made


def test_where_a_run_fails_nothing_is_exported_and_no_log_has_a_text(folder):
    lines = [
        json.loads(line) | {"by": CANARY}
        for line in (folder / "letters.jsonl").read_text().splitlines()
    ]
    (folder / "letters.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = process(folder, "--skip_op_error", "true")
    assert done.returncode != 0
    assert "column 'by' holds text too" in done.stderr
    assert CANARY not in done.stderr + done.stdout
    said = [path for path in (folder / "released").rglob("*") if path.is_file()]
    assert folder / "released" / "letters.jsonl" not in said
    assert [path for path in said if path.suffix == ".gz"], "it has a log"
    assert not [path for path in said if CANARY.encode() in read(path)]
