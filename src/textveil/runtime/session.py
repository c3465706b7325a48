"""Sessions of ONNX Runtime, opened on first use.

And the number of threads they use.

In: a function that makes a graph. Out: a session from arrays to arrays.
Not here: the graphs.
"""

import os
from collections.abc import Callable
from threading import Lock
from typing import Any

from textveil.runtime.graph import Array, Graph

_limit: int | None = None


def count_threads() -> int:
    """Returns the number of threads of a session.

    What `limit_threads` said; else `OMP_NUM_THREADS`; else all cores that this process may use. One
    in a forked child: its parent's threads are not there, and it would wait for them forever.
    """
    if _limit is not None:
        return _limit
    setting = os.environ.get("OMP_NUM_THREADS", "")
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_threads(count: int) -> None:
    """Sets the number of threads of sessions opened later.

    In this process; of torch, too, where it is loaded.
    """
    import sys

    global _limit
    _limit = count
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(count)


if hasattr(os, "register_at_fork"):  # pragma: no branch (Windows has no fork)
    os.register_at_fork(after_in_child=lambda: limit_threads(1))


class Runner:
    """A graph that runs. Thread-safe; pickles and forked children open it anew.

    Nothing is made before the first use. Graphs run as they are written: ONNX Runtime changes
    nothing about them. A run has all threads; one that begins while another is under way has one,
    which takes less of the processors.

    Args:
        make: makes the graph with its weights; called when the session is opened.
    """

    def __init__(self, make: Callable[[], Graph]) -> None:
        self._make = make
        self._sessions: dict[tuple[int, int], Any] = {}
        self._lock, self._run_lock = Lock(), Lock()

    def run(self, **inputs: Array) -> list[Array]:
        """Computes the graph's outputs, independent of what else runs."""
        is_alone = self._run_lock.acquire(blocking=False)
        try:
            outputs: list[Array] = self._get_session(count_threads() if is_alone else 1).run(
                None, inputs
            )
            return outputs
        finally:
            if is_alone:
                self._run_lock.release()

    def _get_session(self, count: int) -> Any:
        # A forked child inherits its parent's sessions without their threads, and needs its own.
        key = os.getpid(), count
        if key not in self._sessions:
            with self._lock:
                if key not in self._sessions:
                    self._sessions[key] = _open(self._make(), count)
        return self._sessions[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_make"])  # type: ignore[misc]


def _open(graph: Graph, count: int) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = count
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    names = list(graph.weights)
    if names:
        options.add_external_initializers(
            names, [ort.OrtValue.ortvalue_from_numpy(graph.weights[name]) for name in names]
        )
    return ort.InferenceSession(graph.encode_model(), options, providers=["CPUExecutionProvider"])
