"""ONNX Runtime: graphs, sessions, and their number of threads.

Graphs are written at run time.

In: operations on named arrays, and weights. Out: sessions from arrays to arrays.
Not here: what is computed (`table.nearest`, `models.bundled`), and torch.
"""

from textveil.runtime.graph import Graph
from textveil.runtime.session import Runner, count_threads, limit_threads

__all__ = ["Graph", "Runner", "count_threads", "limit_threads"]
