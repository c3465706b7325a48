"""Graphs as the specification's own library reads them, and what they compute."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from textveil.runtime import Graph, Runner


def small() -> Graph:
    graph = Graph()
    x = graph.add_input("x", np.float32, "n", 3)
    weight = graph.add_weight("w", np.arange(6, dtype=np.float32).reshape(2, 3).T)
    product = graph.apply("MatMul", x, weight)
    scaled = graph.apply("Mul", product, graph.add_constant(0.5))
    graph.add_output(
        graph.apply("ReduceMax", scaled, graph.add_constant(np.array([-1])), keepdims=0),
        np.float32,
        "n",
    )
    graph.add_output(graph.apply("Gelu", scaled, contrib=True), np.float32, "n", 2)
    return graph


def test_a_graph_is_what_was_written_to_those_who_say_what_a_graph_is():
    found = onnx.load_from_string(small().encode_model())
    assert [(each.domain, each.version) for each in found.opset_import] == [
        ("", 18),
        ("com.microsoft", 1),
    ]
    assert [(node.op_type, node.domain) for node in found.graph.node] == [
        ("MatMul", ""),
        ("Mul", ""),
        ("ReduceMax", ""),
        ("Gelu", "com.microsoft"),
    ]
    (attribute,) = found.graph.node[2].attribute
    assert onnx.helper.get_attribute_value(attribute) == 0
    half, axis, weight = found.graph.initializer
    assert numpy_helper.to_array(half) == 0.5
    assert numpy_helper.to_array(axis).tolist() == [-1]
    assert (weight.name, list(weight.dims)) == ("w", [3, 2])
    assert onnx.external_data_helper.uses_external_data(weight)
    (shape,) = [
        [size.dim_param or size.dim_value for size in each.type.tensor_type.shape.dim]
        for each in found.graph.input
    ]
    assert shape == ["n", 3]


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (7, 7),
        (-7, -7),
        (300, 300),
        (1e-12, np.float32(1e-12)),
        ("abc", b"abc"),
        ([1, -2, 300], [1, -2, 300]),
    ],
)
def test_attributes_are_read_as_they_were_written(value, read):
    graph = Graph()
    graph.apply("Any", "x", key=value)
    (node,) = onnx.load_from_string(graph.encode_model()).graph.node
    assert onnx.helper.get_attribute_value(node.attribute[0]) == read


@pytest.mark.parametrize("kind", [np.float32, np.uint8, np.int8, np.int32, np.int64])
def test_numbers_of_every_kind_are_constants(kind):
    graph = Graph()
    values = np.array([[0, 1, 127], [3, 4, 5]], kind)
    graph.add_constant(values)
    (found,) = onnx.load_from_string(graph.encode_model()).graph.initializer
    assert numpy_helper.to_array(found).dtype == kind
    assert (numpy_helper.to_array(found) == values).all()


def test_a_session_computes_what_was_written():
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    highest, _ = Runner(small).run(x=x)
    product = x @ np.arange(6, dtype=np.float32).reshape(2, 3).T / 2
    assert np.allclose(highest, product.max(axis=1), atol=1e-6)
