"""ONNX graphs, written without the package `onnx`.

In: operations on named arrays. Out: the bytes of a model, and the weights to be given to its
session.
Not here: running it (`session`).

A model is a protobuf message of a few kilobytes. Weights are not part of it: the model names them
as external, and a session gets them as arrays, so that nothing is written or copied on the way.

Source: onnx.proto of the ONNX specification (github.com/onnx/onnx), IR version 9.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

IR_VERSION, OPSET_VERSION, CONTRIB_VERSION = 9, 18, 1
"""Versions of the format, the standard operations and ONNX Runtime's own.

Known to ONNX Runtime since 1.14.
"""

CONTRIB_DOMAIN = "com.microsoft"
"""The domain of ONNX Runtime's own operations."""

DATA_TYPES = {
    np.dtype(name): kind
    for name, kind in (("f4", 1), ("u1", 2), ("i1", 3), ("i4", 6), ("i8", 7), ("f2", 10))
}
"""Codes of TensorProto.DataType, by NumPy type."""


class Graph:
    """A graph in the making. Arrays in it are named by strings.

    Attributes:
        weights: the arrays that its session must be given, by name.
    """

    def __init__(self) -> None:
        self.weights: dict[str, Array] = {}
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []

    def add_input(self, name: str, kind: DTypeLike, *shape: int | str) -> str:
        """Adds an input; a size that varies has a name."""
        self._inputs.append(_encode_value(name, kind, shape))
        return name

    def add_output(self, name: str, kind: DTypeLike, *shape: int | str) -> None:
        """Makes an array one of the graph's outputs.

        In the order of the calls.
        """
        self._outputs.append(_encode_value(name, kind, shape))

    def add_weight(self, name: str, array: Array) -> str:
        """Adds a large constant, which the session is given."""
        self.weights[name] = np.ascontiguousarray(array)
        return name

    def add_constant(self, array: Array | float) -> str:
        """Adds a small constant, which is part of the model."""
        values = np.asarray(array, np.float32) if isinstance(array, float) else np.asarray(array)
        name = f"constant {len(self._constants)}"
        self._constants.append(
            _encode_tensor(name, values)
            # The format wants little-endian bytes, whatever the machine has.
            + _encode_field(9, values.astype(values.dtype.newbyteorder("<")).tobytes())
        )
        return name

    def apply(
        self,
        operation: str,
        *inputs: str,
        name: str | None = None,
        contrib: bool = False,
        **attributes: Any,
    ) -> str:
        """Adds an operation, and returns its result's name.

        Args:
            operation: an operation with one output.
            inputs: names of arrays; an empty one leaves out an optional input.
            name: of the result.
            contrib: whether it is one of ONNX Runtime's own operations.
            attributes: numbers, strings, or lists of whole numbers.
        """
        name = name or f"{operation} {len(self._nodes)}"
        node = [
            *(_encode_field(1, input_name) for input_name in inputs),
            _encode_field(2, name),
            _encode_field(4, operation),
        ]
        node += [
            _encode_field(5, _encode_attribute(key, value)) for key, value in attributes.items()
        ]
        self._nodes.append(b"".join([*node, _encode_field(7, CONTRIB_DOMAIN if contrib else "")]))
        return name

    def encode_model(self) -> bytes:
        """Serializes the model, without its weights."""
        external = [
            _encode_tensor(name, array)
            + b"".join(
                _encode_field(13, _encode_field(1, key) + _encode_field(2, value))
                for key, value in _build_location(array).items()
            )
            # data_location = EXTERNAL
            + _encode_field(14, 1)
            for name, array in self.weights.items()
        ]
        # The numbers of fields, here and below, are those of onnx.proto.
        graph = b"".join(
            [
                *(_encode_field(1, node) for node in self._nodes),
                _encode_field(2, "textveil"),
                *(_encode_field(5, tensor) for tensor in (*self._constants, *external)),
                *(_encode_field(11, value) for value in self._inputs),
                *(_encode_field(12, value) for value in self._outputs),
            ]
        )
        versions = _encode_field(
            8, _encode_field(1, "") + _encode_field(2, OPSET_VERSION)
        ) + _encode_field(8, _encode_field(1, CONTRIB_DOMAIN) + _encode_field(2, CONTRIB_VERSION))
        return _encode_field(1, IR_VERSION) + versions + _encode_field(7, graph)


def _build_location(array: Array) -> dict[str, str]:
    """Returns the file location of an external tensor.

    A placeholder: the session replaces it before it is looked for.
    """
    return {"location": "given", "length": str(array.nbytes)}


def _encode_value(name: str, kind: DTypeLike, shape: tuple[int | str, ...]) -> bytes:
    """Encodes a ValueInfoProto."""
    sizes = b"".join(
        _encode_field(1, _encode_field(1 if isinstance(size, int) else 2, size)) for size in shape
    )
    return _encode_field(1, name) + _encode_field(
        2, _encode_field(1, _encode_field(1, DATA_TYPES[np.dtype(kind)]) + _encode_field(2, sizes))
    )


def _encode_tensor(name: str, array: Array) -> bytes:
    """Encodes a TensorProto without its content."""
    return (
        b"".join(_encode_field(1, size) for size in array.shape)
        + _encode_field(2, DATA_TYPES[array.dtype])
        + _encode_field(8, name)
    )


def _encode_attribute(name: str, value: Any) -> bytes:
    """Encodes an AttributeProto."""
    if isinstance(value, float):
        return _encode_field(1, name) + _encode_field(2, value) + _encode_field(20, 1)
    if isinstance(value, int):
        return _encode_field(1, name) + _encode_field(3, value) + _encode_field(20, 2)
    if isinstance(value, str):
        return _encode_field(1, name) + _encode_field(4, value) + _encode_field(20, 3)
    return (
        _encode_field(1, name)
        + b"".join(_encode_field(8, item) for item in value)
        + _encode_field(20, 7)
    )


def _encode_field(number: int, value: float | str | bytes) -> bytes:
    """Encodes a field of a protobuf message.

    A varint, a 32-bit float, or bytes with their length.
    """
    if isinstance(value, int):
        # Protobuf writes a negative number as its 64-bit two's complement.
        return _encode_varint(number << 3) + _encode_varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(value, float):
        return _encode_varint(number << 3 | 5) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return _encode_varint(number << 3 | 2) + _encode_varint(len(content)) + content


def _encode_varint(value: int) -> bytes:
    content = bytearray()
    while value > 127:
        content.append(value & 127 | 128)
        value >>= 7
    return bytes([*content, value])
