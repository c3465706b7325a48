"""Exact products of 8-bit integers on ONNX Runtime, for the exact search and for comparing rows.

In: rows of int8. Out: `IntegerRows`, which multiplies batches of int8 queries by them.
Not here: where the integers come from and what their products bound (`codes`, `pairs`).
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textveil.randomness import Floats
from textveil.runtime import Graph, Runner

Bytes = NDArray[np.int8]
Products = NDArray[np.int32]

GROUP = 32
"""Rows per group; at first only the largest product of a group is looked at."""


class IntegerRows:
    """Rows that batches of queries are multiplied by. Thread-safe.

    Args:
        rows: int8 [w, d], from -127 to 127.
        grouped: also find the largest product of each `GROUP` consecutive rows.
        scale: what the products of each row are multiplied by, float32 [w], and what is added.
    """

    def __init__(self, rows: Bytes, *, grouped: bool = False, scale: tuple[Floats, Floats] | None = None) -> None:
        self.rows, self.grouped, self.scale = rows, grouped, scale
        self._session = Runner(self._graph)

    def products(self, queries: Bytes) -> Products:
        """The products of queries [b, d], int32 [b, w]."""
        found: Products = self._run(queries)[0]
        return found

    def maxima(self, queries: Bytes) -> tuple[Products, Products]:
        """The products, and the largest of each group [b, w / GROUP]; w is rounded up, and rows of zeros fill it up."""
        products, highest = self._run(queries)
        return products, highest

    def scaled(self, queries: Bytes) -> Floats:
        """The products as `scale` says, float32 [b, w]."""
        found: Floats = self._run(queries)[0]
        return found

    def _run(self, queries: Bytes) -> list[NDArray[Any]]:
        return self._session.run(queries=queries.view(np.uint8) ^ np.uint8(128))  # q + 128: signed queries are slow

    def _graph(self) -> Graph:
        """One product; rows are its constants, which ONNX Runtime packs in the order in which it reads them."""
        rows, graph = self.rows, Graph()
        if self.grouped and (short := -len(rows) % GROUP):
            rows = np.pad(rows, ((0, short), (0, 0)))
        queries = graph.input("queries", np.uint8, "b", rows.shape[1])
        zero = graph.constant(np.array(128, np.uint8))
        weight = graph.weight("rows", rows.T)
        if self.scale is not None:
            one, factor, added = graph.constant(1.0), *map(graph.constant, self.scale)
            inputs = queries, weight, one, factor, zero, "", added
            scaled = graph.apply("MatMulIntegerToFloat", *inputs, name="scaled", own=True)
            graph.output(scaled, np.float32, "b", len(rows))
            return graph
        products = graph.apply("MatMulInteger", queries, weight, zero, name="products")
        graph.output(products, np.int32, "b", len(rows))
        if self.grouped:
            shape = graph.constant(np.array([0, len(rows) // GROUP, GROUP]))  # 0: as many as there are
            groups = graph.apply("Reshape", products, shape)
            highest = graph.apply("ReduceMax", groups, graph.constant(np.array([2])), name="highest", keepdims=0)
            graph.output(highest, np.int32, "b", len(rows) // GROUP)
        return graph


@cache
def exact() -> bool:
    """Whether ONNX Runtime multiplies 8-bit integers exactly here.

    On x86 without VNNI it adds products in pairs of 16 bits, which are cut off where they do not fit.
    """
    rows = np.full((GROUP, 64), 127, np.int8)
    rows[1::2] = -127
    expected = rows.astype(np.int32) @ rows.astype(np.int32).T
    made = IntegerRows(rows)
    return all(np.array_equal(made.products(rows[:count]), expected[:count]) for count in (1, GROUP))
