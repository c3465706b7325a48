"""Executors: everything once, few at a time, and no process that outlives what it works for."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from textveil.corpus import Executor, LocalExecutor
from textveil.errors import ConfigError, InputError, TextveilError


def double(number: int) -> int:
    return 2 * number


def process(_: object) -> int:
    return os.getpid()


def slow(_: object) -> None:
    time.sleep(300)


def dies(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuses(_: object) -> None:
    raise InputError("line 3 must be something else")


def threads(_: object) -> tuple[int, set[int]]:
    """Those of torch and of all libraries of linear algebra in this process."""
    from importlib import import_module

    import torch

    return torch.get_num_threads(), {
        each["num_threads"] for each in import_module("threadpoolctl").threadpool_info()
    }


def runs(number: int) -> bool:
    """Whether a process is there, and not only waits to be told of."""
    status = Path(f"/proc/{number}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def comes(holds: Callable[[], bool], seconds: float = 60) -> bool:
    for _ in range(int(seconds * 10)):
        if holds():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_every_item_comes_once_and_few_are_taken_ahead(workers):
    taken = 0

    def items():
        nonlocal taken
        for number in range(20):
            taken += 1
            yield number

    found: dict[int, int] = {}
    with LocalExecutor(workers) as local:
        executor: Executor = local
        for item, made in executor.map(double, items()):
            assert taken <= len(found) + 1 + 2 * workers
            found[item] = made
        assert list(executor.map(double, ())) == []
    assert found == {number: 2 * number for number in range(20)}


def test_one_worker_is_this_process():
    with LocalExecutor(1) as executor:
        assert list(executor.map(process, [None])) == [(None, os.getpid())]
    with pytest.raises(ConfigError, match="must be 1 or more, got 0"):
        LocalExecutor(0)


@pytest.mark.slow
def test_processes_stay_until_the_end_and_then_are_gone():
    with LocalExecutor(2) as executor:
        first = {each for _, each in executor.map(process, range(8))}
        assert os.getpid() not in first
        again = {each for _, each in executor.map(process, range(8))}
        assert executor._pool is not None
        there = list(executor._pool._processes)
        assert len(there) == 2
        assert first | again <= {*there}
    assert comes(lambda: not any(map(runs, there)))
    with pytest.raises(RuntimeError, match="shutdown"):
        list(executor.map(double, [1]))


@pytest.mark.slow
def test_an_interruption_waits_for_nobody():
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    begin = time.monotonic()
    there: list[int] = []
    try:
        with pytest.raises(KeyboardInterrupt):
            _interrupted(there)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 100
    assert not any(map(runs, there))


def _interrupted(there: list[int]) -> None:
    with LocalExecutor(2) as executor:
        there += [each for _, each in executor.map(process, [None])]
        signal.setitimer(signal.ITIMER_REAL, 1)
        list(executor.map(slow, range(4)))


def test_a_process_that_dies_is_one_clear_error():
    with (
        pytest.raises(
            TextveilError, match=r"^A worker process died \(out of memory\?\)\. Do less\.$"
        ) as caught,
        LocalExecutor(2, advice="Do less.") as executor,
    ):
        list(executor.map(dies, range(3)))
    assert caught.value.__suppress_context__


def test_an_error_of_an_item_is_what_it_is():
    for workers in (1, 2):
        with pytest.raises(InputError, match="line 3"), LocalExecutor(workers) as executor:
            list(executor.map(refuses, [None]))


@pytest.mark.slow
def test_other_processes_have_the_threads_that_were_asked_for(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with LocalExecutor(2, threads=1) as executor:
        ((_, found),) = executor.map(threads, [None])
    assert found == (1, {1})
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_no_process_outlives_the_one_that_started_it(tmp_path):
    program = tmp_path / "run.py"
    program.write_text(
        "import os, signal\n"
        "from textveil.corpus import LocalExecutor\n"
        "if __name__ == '__main__':\n"
        "    with LocalExecutor(2) as executor:\n"
        "        print(next(iter(executor.map(os.getenv, ['HOME'])))[0], *executor._pool._processes, flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=300
    )
    started = [int(each) for each in ended.stdout.split()[1:]]
    assert ended.returncode == -signal.SIGKILL
    assert started
    assert comes(lambda: not any(map(runs, started)))
