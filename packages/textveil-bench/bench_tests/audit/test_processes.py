"""Other processes: what dies, hangs or cannot be sent there is not tried, which is neither a pass nor a defect."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.broken import EPSILON, OwnDraws, table

from textveil.mechanism import Block, Select
from textveil.mechanism.papers import exponential
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import Randomness
from textveil.table.embedding import EmbeddingTable
from textveil_bench.audit import fresh_draws
from textveil_bench.audit.finding import AuditFinding
from textveil_bench.audit.run import audit

CHECKS = ("streams", "seed")


@dataclass(frozen=True, kw_only=True)
class Elsewhere(Select):
    """The honest mechanism, which ends or delays every process but the one that made it."""

    delay: float | None = None
    home: int = field(default_factory=os.getpid)

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        if os.getpid() != self.home:
            if self.delay is None:
                os._exit(3)
            time.sleep(self.delay)
        return super().privatize(table, block, parameter, rng=rng)


def findings(*mechanisms: Any) -> list[dict[str, AuditFinding]]:
    builds = [partial(Privatizer, each, table=table(), epsilon=EPSILON) for each in mechanisms]
    found = audit(*builds, small=True, only=CHECKS)
    return [{check: next(found) for check in CHECKS} for _ in mechanisms]


@pytest.mark.slow
def test_a_process_that_dies_spoils_nothing_but_its_own_trial() -> None:
    dead, honest = findings(Elsewhere(name="dead", rule=exponential().rule), exponential())
    assert {each.verdict for each in dead.values()} == {"not applicable"}
    assert "code 3" in dead["streams"].why
    assert {each.verdict for each in honest.values()} == {"holds"}


@pytest.mark.slow
def test_a_late_answer_is_not_taken_for_the_next_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = OwnDraws(generator=np.random.default_rng())
    monkeypatch.setattr(fresh_draws, "PROCESS_TIMEOUT", 3.0)
    (late,) = findings(Elsewhere(name="late", rule=exponential().rule, delay=60.0))
    monkeypatch.setattr(fresh_draws, "PROCESS_TIMEOUT", 120.0)
    (forked,) = findings(generator)
    assert late["streams"].verdict == late["seed"].verdict == "not applicable"
    assert "no answer" in late["streams"].why
    assert forked["streams"].verdict == "violated"


def test_what_does_not_pickle_was_not_tried() -> None:
    def build(seed: int | None = None) -> Privatizer:
        return Privatizer(exponential(), table=table(), epsilon=EPSILON, seed=seed)

    for found in audit(build, small=True, only=CHECKS):
        assert found.verdict == "not applicable"
        assert "pickle" in found.why


SCRIPT = """
from functools import partial
from tests.broken import table
from textveil import Privatizer
from textveil_bench.audit import audit
from textveil.mechanism import Select
from textveil.mechanism.papers import exponential
print("begins")
class Mine(Select): pass
for mechanism in (exponential(), Mine(name="mine", rule=exponential().rule)):
    for found in audit(partial(Privatizer, mechanism, table=table(), epsilon=4.0), small=True, only=("streams",)):
        print(found.verdict, "|", found.why)
"""


@pytest.mark.parametrize("way", ["file without a guard", "standard input"])
@pytest.mark.slow
def test_a_script_runs_once_and_its_own_classes_are_not_tried(way: str, tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    arguments, given = ([str(file)], None) if way.startswith("file") else (["-"], SCRIPT)
    path = os.pathsep.join(filter(None, sys.path))
    ended = subprocess.run(
        [sys.executable, *arguments],
        input=given,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    begins, shipped, mine = ended.stdout.splitlines()
    assert begins == "begins"
    assert shipped.startswith("holds")
    assert mine.startswith("not applicable")
    assert "cannot be loaded there" in mine
