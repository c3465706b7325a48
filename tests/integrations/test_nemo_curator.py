"""NeMo Curator itself (`make check-engines`): a document is drawn once for a release; failures let nothing by."""

import copy
import json
import logging
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nemo_curator", reason="make check-engines runs it")
import pandas
import pyarrow
from loguru import logger
from nemo_curator.tasks import DocumentBatch

from textveil import Privatizer, Protector
from textveil.errors import ConfigError, DetectorError, InputError
from textveil.integrations.nemo_curator import TextveilStage

pytestmark = pytest.mark.filterwarnings("ignore")  # of others

CANARY = "zyxqorvian@example.org"
VEIL = Privatizer("rankcape", epsilon=8)
PAGE = Path(__file__).parents[2] / "docs" / "do" / "integrations" / "nemo-curator.md"


class Breaks:
    name = "breaks"

    def find(self, texts):
        raise RuntimeError(CANARY)


def rows(n=9):
    texts = [f"Ingrid hid {i} coins of {CANARY}" for i in range(n)]
    return pandas.DataFrame(
        {"id": [f"r{i}" for i in range(n)], "text": texts, "pages": list(range(n))}
    )


def batch(frame=None):
    return DocumentBatch(dataset_name="letters", data=rows() if frame is None else frame)


def texts(made):
    return made.to_pandas()["text"].tolist()


def test_a_document_is_drawn_once_whatever_the_batches_the_copies_and_the_processes():
    stage = TextveilStage(VEIL)
    first = texts(stage.process(batch()))
    assert CANARY not in str(first)
    assert texts(stage.process(batch(rows().iloc[::-1])))[::-1] == first
    assert texts(stage.process(batch(pyarrow.Table.from_pandas(rows())))) == first
    own = [stage.with_(batch_size=2), copy.deepcopy(stage), pickle.loads(pickle.dumps(stage))]
    assert [texts(each.process(batch())) for each in own] == [first] * 3
    assert texts(TextveilStage(VEIL).process(batch())) != first, "another stage draws anew"
    alone = TextveilStage(VEIL).with_(batch_size=2)  # and the first is gone
    assert texts(alone.process(batch()))
    del stage, own
    with pytest.raises(InputError, match="column 'by' holds text"):
        alone.process(batch(rows().assign(by=CANARY)))


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (rows().assign(by="Ann"), "column 'by' holds text"),
        (rows().assign(**{"Maria Silva": 1}), "label of a column"),
        (rows().set_index(rows()["text"].rename("letters")), "holds text"),
        (rows().assign(id=[None] * 9), "ids must be"),
        (rows().assign(text=[3] * 9), "must hold texts"),
    ],
)
def test_what_would_stay_is_refused(frame, match):
    with pytest.raises(InputError, match=match) as failed:
        TextveilStage(VEIL).process(batch(frame))
    assert CANARY not in str(failed.value)
    assert texts(TextveilStage(VEIL, keep="by").process(batch(rows().assign(by="Ann"))))


def test_ids_that_come_twice_are_refused():
    with pytest.raises(ConfigError, match="an id occurs twice"):
        TextveilStage(VEIL).process(batch(rows().assign(id="a")))


def test_rows_without_a_text_stay_without():
    frame = rows(2).assign(text=["Ask Ann", None])
    made = texts(TextveilStage(Protector()).process(batch(frame)))
    assert pandas.isna(made[1])


def test_a_failure_says_no_text(caplog):
    caplog.set_level(logging.DEBUG)
    said = list[str]()
    sink = logger.add(said.append, level=0, diagnose=True, backtrace=True)
    stage = TextveilStage(Protector(protect={"detectors": ["patterns"]}))
    stage._release._privatizer = Protector(protect={"detectors": [Breaks()]}).privatizer
    with pytest.raises(DetectorError) as failed:
        stage.process(batch())
    logger.opt(exception=failed.value).error("failed")
    logger.remove(sink)
    assert said
    assert CANARY not in "".join(said) + caplog.text + repr(stage) + repr(vars(stage))


def test_the_page_runs(tmp_path):
    (program,) = re.findall(r"```\{ \.python .*?\}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "letters").mkdir()
    rows().assign(topic="money").to_json(
        tmp_path / "letters" / "a.jsonl", orient="records", lines=True
    )
    guarded = "if __name__ == '__main__':\n" + "".join(
        f"    {line}" for line in program.splitlines(True)
    )
    (tmp_path / "page.py").write_text(guarded)
    own = {**os.environ, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    ran = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env=own,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    written = [
        json.loads(line) for path in (tmp_path / "released").glob("*") for line in path.open()
    ]
    assert sorted(each["id"] for each in written) == [f"r{i}" for i in range(9)]
    assert CANARY not in json.dumps(written) + ran.stdout + ran.stderr
    assert "Ingrid" not in json.dumps(written)
