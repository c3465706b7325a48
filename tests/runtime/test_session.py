"""Sessions: when they are opened, in which process, and with how many threads."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from textveil.randomness import Floats
from textveil.runtime import Graph, Runner, count_threads, limit_threads, session


def doubling(made: list[int] | None = None) -> Graph:
    if made is not None:
        made.append(os.getpid())
    graph = Graph()
    x = graph.add_input("x", np.float32, "n")
    graph.add_output(graph.apply("Add", x, x), np.float32, "n")
    return graph


def multiplying(weights: Floats) -> Graph:
    graph = Graph()
    x = graph.add_input("x", np.float32, "n", len(weights))
    graph.add_output(
        graph.apply("MatMul", x, graph.add_weight("w", weights)), np.float32, "n", weights.shape[1]
    )
    return graph


opening = session._open


@pytest.fixture(autouse=True)
def _unlimited(monkeypatch):
    monkeypatch.setattr(session, "_limit", None)


def test_nothing_is_made_before_the_first_use_and_once_only():
    made: list[int] = []
    found = Runner(partial(doubling, made))
    assert made == []
    for _ in range(2):
        assert found.run(x=np.ones(2, np.float32))[0].tolist() == [2, 2]
    assert len(made) == 1


def test_a_pickle_is_opened_anew():
    found = Runner(doubling)
    found.run(x=np.ones(1, np.float32))
    again = pickle.loads(pickle.dumps(found))
    assert not again._sessions
    assert again.run(x=np.ones(1, np.float32))[0].tolist() == [2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_its_own_with_one_thread():
    found = Runner(doubling)
    found.run(x=np.ones(1, np.float32))

    def child(answer) -> None:
        total = found.run(x=np.ones(1, np.float32))[0].tolist()
        answer.send((total, (os.getpid(), 1) in found._sessions, count_threads()))

    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
    process.start()
    assert mine.poll(60)
    assert mine.recv() == ([2], True, 1)
    process.join()


def test_what_runs_beside_another_has_one_thread_and_gives_the_same(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    rng = np.random.default_rng(0)
    weights, x = (rng.normal(size=size).astype(np.float32) for size in ((384, 1536), (97, 384)))
    opened: list[int] = []

    def noted(graph: Graph, count: int) -> Any:
        opened.append(count)
        return opening(graph, count)

    monkeypatch.setattr(session, "_open", noted)
    found = Runner(partial(multiplying, weights))
    found.run(x=x)
    alone = found.run(x=x)[0]
    assert opened == [2]
    with found._run_lock:  # another is under way
        beside = found.run(x=x)[0]
    assert opened == [2, 1]
    assert (alone == beside).all()
    np.testing.assert_allclose(alone, x @ weights, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("given", "expected"), [("3", 3), ("0", None), ("", None), ("many", None)])
def test_threads_are_what_the_environment_says_or_the_cores_of_this_process(
    given, expected, monkeypatch
):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert count_threads() == (expected or len(os.sched_getaffinity(0)))


def test_a_limit_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    import torch

    before = torch.get_num_threads()
    try:
        limit_threads(1)
        assert (count_threads(), torch.get_num_threads()) == (1, 1)
    finally:
        torch.set_num_threads(before)


def test_onnx_runtime_leaves_no_id_of_this_machine_to_send(tmp_path):
    """It writes one into the home folder when it is imported, unless it is told not to; then it asks for its host."""
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "APPDATA": str(tmp_path)}
    environment = {**os.environ, **home, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    program = "from textveil.cli import main; main(['protect', 'Ask Maria Silva about the lease'])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True
    )
    assert b"<PERSON_1>" in done.stdout
    assert [path.name for path in tmp_path.rglob("*") if "icrosoft" in str(path)] == []
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []
