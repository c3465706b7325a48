"""Sessions: when they are opened, in which process, and with how many threads."""

import multiprocessing
import os
import pickle
from functools import partial

import numpy as np
import pytest

from textveil.runtime import Graph, Runner, limit_threads, session, threads


def doubling(made: list[int] | None = None) -> Graph:
    if made is not None:
        made.append(os.getpid())
    graph = Graph()
    x = graph.input("x", np.float32, "n")
    graph.output(graph.apply("Add", x, x), np.float32, "n")
    return graph


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
    assert again._opened is None
    assert again.run(x=np.ones(1, np.float32))[0].tolist() == [2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_its_own_with_one_thread():
    found = Runner(doubling)
    found.run(x=np.ones(1, np.float32))

    def child(answer) -> None:
        total = found.run(x=np.ones(1, np.float32))[0].tolist()
        answer.send((total, found._opened is not None and found._opened[0] == os.getpid(), threads()))

    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
    process.start()
    assert mine.poll(60)
    assert mine.recv() == ([2], True, 1)
    process.join()


@pytest.mark.parametrize(("given", "expected"), [("3", 3), ("0", None), ("", None), ("many", None)])
def test_threads_are_what_the_environment_says_or_the_cores_of_this_process(given, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert threads() == (expected or len(os.sched_getaffinity(0)))


def test_a_limit_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    import torch

    before = torch.get_num_threads()
    try:
        limit_threads(1)
        assert (threads(), torch.get_num_threads()) == (1, 1)
    finally:
        torch.set_num_threads(before)
