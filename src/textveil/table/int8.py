"""Exact products of 8-bit integers on ONNX Runtime.

In: rows of int8, or queries, of the exact search and of comparisons of rows. Out: `IntegerRows`,
which multiplies batches of int8 queries by rows that are kept; `IntegerQueries`, which multiplies
rows by a batch of queries, and quantizes the rows on the way.
Not here: where the integers come from and how their products bound scores (`quantized`, `streamed`,
`pairwise`).
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from textveil.randomness import Floats
from textveil.runtime import Graph, Runner

Bytes = NDArray[np.int8]
Products = NDArray[np.int32]

GROUP = 32
"""Rows per group, of which only the largest product is read first."""


class IntegerRows:
    """Rows that batches of queries are multiplied by. Thread-safe.

    Args:
        rows: int8 [w, d], from -127 to 127.
        grouped: also find the largest product of each `GROUP` consecutive rows.
        scale: what the products of each row are multiplied by, float32 [w], and what is added.
    """

    def __init__(
        self, rows: Bytes, *, grouped: bool = False, scale: tuple[Floats, Floats] | None = None
    ) -> None:
        self.rows, self.grouped, self.scale = rows, grouped, scale
        self._session = Runner(self._build_graph)

    def multiply(self, queries: Bytes) -> Products:
        """Computes the products of queries [b, d], int32 [b, w]."""
        products: Products = self._run(queries)[0]
        return products

    def maxima(self, queries: Bytes) -> tuple[Products, Products]:
        """Computes the products, and each group's largest [b, w / GROUP].

        w is rounded up, and rows of zeros fill it up.
        """
        products, highest = self._run(queries)
        return products, highest

    def multiply_scaled(self, queries: Bytes) -> Floats:
        """Computes the products, scaled as `scale` says, float32 [b, w]."""
        products: Floats = self._run(queries)[0]
        return products

    def _run(self, queries: Bytes) -> list[NDArray[Any]]:
        # q + 128: signed queries are slow
        return self._session.run(queries=queries.view(np.uint8) ^ np.uint8(128))

    def _build_graph(self) -> Graph:
        """Builds the graph of one product with the rows as constants.

        ONNX Runtime packs them in the order in which it reads them.
        """
        rows, graph = self.rows, Graph()
        if self.grouped and (short := -len(rows) % GROUP):
            rows = np.pad(rows, ((0, short), (0, 0)))
        queries = graph.add_input("queries", np.uint8, "b", rows.shape[1])
        zero = graph.add_constant(np.array(128, np.uint8))
        weight = graph.add_weight("rows", rows.T)
        if self.scale is not None:
            unit_scale, factor, added = (
                graph.add_constant(1.0),
                *map(graph.add_constant, self.scale),
            )
            inputs = queries, weight, unit_scale, factor, zero, "", added
            scaled = graph.apply("MatMulIntegerToFloat", *inputs, name="scaled", contrib=True)
            graph.add_output(scaled, np.float32, "b", len(rows))
            return graph
        products = graph.apply("MatMulInteger", queries, weight, zero, name="products")
        graph.add_output(products, np.int32, "b", len(rows))
        if self.grouped:
            # 0: as many as there are
            shape = graph.add_constant(np.array([0, len(rows) // GROUP, GROUP]))
            groups = graph.apply("Reshape", products, shape)
            highest = graph.apply(
                "ReduceMax", groups, graph.add_constant(np.array([2])), name="highest", keepdims=0
            )
            graph.add_output(highest, np.int32, "b", len(rows) // GROUP)
        return graph


class IntegerQueries:
    """A batch of queries that multiplies rows in floating point.

    The rows are quantized on the way. Thread-safe.

    Args:
        queries: int8 [b, d], from -127 to 127.
        kind: how rows are stored, float32 or float16.
    """

    def __init__(self, queries: Bytes, kind: DTypeLike) -> None:
        self.queries, self.kind = queries, kind
        # not of itself, which would outlive the batch
        self._session = Runner(partial(_build_streaming, queries, kind))

    def maxima(self, rows: NDArray[Any], unit: Floats) -> tuple[Products, Products]:
        """Computes the products with rows [w, d], and each group's largest.

        The products are [b, w / GROUP, GROUP], the largest [b, w / GROUP].

        Args:
            rows: as stored; w is a multiple of `GROUP`.
            unit: what the integers of each group are multiples of, float32 [w / GROUP].
        """
        products, highest = self._session.run(rows=rows, unit=unit)
        return products.reshape(-1, GROUP, len(self.queries)).transpose(2, 0, 1), highest


def widen(rows: NDArray[Any]) -> Floats:
    """Converts rows [w, d] to float32.

    For float16 numpy takes ten times as long.
    """
    return rows if rows.dtype == np.float32 else _build_widening().run(rows=rows)[0]


@cache
def _build_widening() -> Runner:
    def build_graph() -> Graph:
        graph = Graph()
        graph.add_output(
            graph.apply("Cast", graph.add_input("rows", np.float16, "w", "d"), to=1),
            np.float32,
            "w",
            "d",
        )
        return graph

    return Runner(build_graph)


@cache
def build_quantizer(dimension: int, kind: DTypeLike) -> Callable[[NDArray[Any], Floats], Bytes]:
    """Returns the function that quantizes rows as `IntegerQueries` does.

    It takes rows [w, d] and the units of their groups, and returns int8 [w, d].
    """

    def build_graph() -> Graph:
        graph = Graph()
        graph.add_output(_add_quantization(graph, dimension, kind)[0], np.uint8, "w", dimension)
        return graph

    session = Runner(build_graph)
    return lambda rows, unit: (session.run(rows=rows, unit=unit)[0] ^ np.uint8(128)).view(np.int8)


def _build_streaming(queries: Bytes, kind: DTypeLike) -> Graph:
    """Builds the graph that quantizes rows and multiplies them by queries.

    The queries are packed once. The graph also returns the largest product of each group.
    """
    count, dimension = queries.shape
    graph = Graph()
    low, zero = _add_quantization(graph, dimension, kind)
    products = graph.apply(
        "MatMulInteger", low, graph.add_weight("queries", queries.T), zero, name="products"
    )
    graph.add_output(products, np.int32, "w", count)
    groups = graph.apply("Reshape", products, graph.add_constant(np.array([-1, GROUP, count])))
    largest = graph.apply("ReduceMax", groups, graph.add_constant(np.array([1])), keepdims=0)
    highest = graph.apply("Transpose", largest, name="highest", perm=[1, 0])
    graph.add_output(highest, np.int32, count, "g")
    return graph


def _add_quantization(graph: Graph, dimension: int, kind: DTypeLike) -> tuple[str, str]:
    """Adds the quantization of rows to a graph.

    Returns the rows as multiples of their groups' units with 128 added, and the zero point, 128.
    """
    rows, unit = (
        graph.add_input("rows", kind, "w", dimension),
        graph.add_input("unit", np.float32, "g"),
    )
    zero = graph.add_constant(np.array(128, np.uint8))
    zeros = graph.apply("Expand", zero, graph.apply("Shape", unit))
    groups = graph.apply("Reshape", rows, graph.add_constant(np.array([-1, GROUP * dimension])))
    if np.dtype(kind) == np.float16:
        groups = graph.apply("Cast", groups, to=1)
    whole = graph.apply("QuantizeLinear", groups, unit, zeros, axis=0)
    return graph.apply(
        "Reshape", whole, graph.add_constant(np.array([-1, dimension])), name="whole"
    ), zero


@cache
def is_exact() -> bool:
    """Says whether ONNX Runtime multiplies 8-bit integers exactly here.

    On x86 without VNNI it adds products in pairs of 16 bits, which are cut off where they do not
    fit.
    """
    # The largest products there are: pairs of them do not fit into 16 bits.
    rows = np.full((GROUP, 64), 127, np.int8)
    rows[1::2] = -127
    expected = rows.astype(np.int32) @ rows.astype(np.int32).T
    integer_rows = IntegerRows(rows)
    return all(
        np.array_equal(integer_rows.multiply(rows[:count]), expected[:count])
        for count in (1, GROUP)
    )
