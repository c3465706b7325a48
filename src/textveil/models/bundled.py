"""The bundled small encoders on ONNX Runtime, on the processor.

Their weights, their graphs, and how they run.

In: a job, a number of layers, pieces. Out: logits of labels or words, or states.
Not here: which words or labels these are (`context` and its neighbours), and the same network on
torch (`torch_networks`).

A batch has sequences of one length only, and every product and norm is computed row by row. The
result for a sequence then has the same bits alone and in any batch: what a text leads to cannot
tell what was in other texts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from textveil.errors import ConfigError, ModelError
from textveil.models import adapters, e5
from textveil.randomness import Floats, Ints
from textveil.runtime import Graph, Runner
from textveil.table import minilm

BundledJob = Literal["masked-lm", "tagger", "reader", "sentences"]

HEADS, WIDTH, INNER, MAX_PIECES = 12, 384, 1536, 512
"""Sizes of both encoders, all-MiniLM-L6-v2 and multilingual-e5-small.

Attention heads, width, inner width, and the most pieces.
"""

LAYERS: dict[BundledJob, int] = {"masked-lm": 6, "tagger": 8, "reader": 6, "sentences": 6}
"""The number of encoder layers of each job.

The tagger has the first layers of multilingual-e5-small.
"""

NORM_EPSILON = 1e-12
"""The constant added to variances in norms, as in the encoder's configuration."""

HEAD_WEIGHTS: dict[BundledJob, tuple[str, ...]] = {
    "masked-lm": (
        "cls.predictions.transform.dense.weight",
        "cls.predictions.transform.dense.bias",
        "cls.predictions.transform.LayerNorm.weight",
        "cls.predictions.transform.LayerNorm.bias",
        "cls.predictions.bias",
    ),
    "tagger": ("classifier.weight", "classifier.bias"),
    "reader": ("qa_outputs.weight", "qa_outputs.bias"),
    "sentences": (),
}
"""Names of the head's weights, which an adapter brings."""

EMBEDDINGS = "bert.embeddings"
WORD_EMBEDDINGS = f"{EMBEDDINGS}.word_embeddings.weight"

Precision = Literal["float32", "int8"]

PRECISIONS: dict[BundledJob, Precision] = {
    "masked-lm": "int8",
    "tagger": "int8",
    "reader": "float32",
    "sentences": "int8",
}
"""The precision of each job; see `get_precision`."""

MAX_INT8_WEIGHT = 63
"""The largest magnitude of an int8 weight.

Processors without VNNI add two products in 16 bits, and 2 x 255 x 63 fits there.
"""

MIN_SCALE = np.float32(1e-20)
"""The smallest scale: rows of zeros stay zeros."""


def find_encoder_folder() -> Path:
    """Returns the small encoder's folder, with its weights verified.

    It holds the tokenizer and the settings.
    """
    folder = minilm.locate()
    minilm.load_weights(folder)
    return folder


def read_stored_weights(job: BundledJob | Literal["classifier"]) -> dict[str, Any]:
    """Returns the untrained weights of a job's encoder, as stored.

    `adapters.MergedWeights` reads them.
    """
    if job == "tagger":
        return {WORD_EMBEDDINGS: e5.load_embeddings()}
    return {f"bert.{name}": array for name, array in minilm.load_weights(minilm.locate()).items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoder:
    """The encoder with the head of a job. Load one with `load`.

    Attributes:
        job: what the head is for.
        layers: how many layers it has; the head reads the output of the last one.
        weights: of encoder and head.
        precision: of products of linear layers; of all else float32.
        labels: names of labels; none are stored.
        device: where it runs.
    """

    job: BundledJob
    layers: int
    weights: Mapping[str, Floats] = field(repr=False)
    precision: Precision = "float32"
    labels: tuple[str, ...] = ()
    device: str = "cpu"

    needs_equal_lengths = True
    """A flag: a batch must hold sequences of one length.

    Padding would change the last bits of the other sequences.
    """

    padding_piece = 0
    start_piece = None
    max_pieces = MAX_PIECES

    @property
    def vocabulary(self) -> int:
        """Number of pieces it has embeddings for."""
        return len(self._words)

    @property
    def type_count(self) -> int:
        """Number of token types."""
        return len(self._types)

    def run(self, ids: Ints, lengths: Ints, types: Ints | None = None) -> Floats:
        """Returns the label logits of each piece [n, L, C].

        For sentences, the states of pieces [n, L, d].

        Args:
            ids: pieces [n, L].
            lengths: int64 [n], all L.
            types: token types [n, L]; None for zeros.
        """
        if self.job == "tagger":
            logits = self.run_at(ids, lengths, types, *np.divmod(np.arange(ids.size), ids.shape[1]))
            return logits.reshape(*ids.shape, -1)
        return self._session.run(embedded=self._embed(ids, lengths, types))[0]

    def run_at(
        self, ids: Ints, lengths: Ints, types: Ints | None, row: Ints, column: Ints
    ) -> Floats:
        """Returns the tagger's label logits [m, C] at given places; see `read`."""
        at = row * ids.shape[1] + column
        logits: Floats = self._session.run(embedded=self._embed(ids, lengths, types), at=at)[0]
        return logits

    def read(self, ids: Ints, lengths: Ints, row: Ints, column: Ints) -> Floats:
        """Returns the output layer's inputs [m, d] at given places.

        Args:
            ids: pieces [n, L].
            lengths: int64 [n], all L.
            row: int64 [m], the sequence of each place.
            column: int64 [m], the piece of each place.
        """
        at = row * ids.shape[1] + column
        states: Floats = self._session.run(embedded=self._embed(ids, lengths), at=at)[0]
        return states

    def take_output(self) -> tuple[Floats, Floats]:
        """Returns the output layer for pieces: rows [P, d], bias [P]."""
        return np.asarray(self._words, np.float32), self.weights["cls.predictions.bias"]

    def build_head(self, rows: Floats, bias: Floats) -> "BundledHead":
        """Builds an output layer of other rows [V, d] and bias [V]."""
        return BundledHead(network=self, rows=rows, bias=bias)

    def _embed(self, ids: Ints, lengths: Ints, types: Ints | None = None) -> Floats:
        if (lengths != ids.shape[1]).any():
            raise ValueError("a batch of the bundled encoder must have sequences of one length")
        # Indexing copies the rows, so adding in place changes no weight.
        result: Floats = self._words[ids].astype(np.float32, copy=False)
        result += self._types[0] if types is None else self._types[types]
        result += self._positions[: ids.shape[1]]
        return result

    @cached_property
    def _words(self) -> Any:  # rows in float16, or in 4 bits
        return self.weights[WORD_EMBEDDINGS]

    @cached_property
    def _positions(self) -> Floats:
        return self.weights[f"{EMBEDDINGS}.position_embeddings.weight"]

    @cached_property
    def _types(self) -> Floats:
        return self.weights[f"{EMBEDDINGS}.token_type_embeddings.weight"]

    @cached_property
    def _session(self) -> Runner:
        return Runner(self._build_graph)

    def _build_graph(self) -> Graph:
        return build_graph(self.job, self.layers, self.weights, self.precision)


@dataclass(frozen=True, kw_only=True, eq=False)
class BundledHead:
    """An output layer over words instead of the network's pieces.

    Attributes:
        network: whose states it reads.
        rows: float32 [V, d].
        bias: float32 [V].
    """

    network: Encoder
    rows: Floats = field(repr=False)
    bias: Floats = field(repr=False)

    def read(self, ids: Ints, lengths: Ints, row: Ints, column: Ints) -> Floats:
        """Returns the output layer's inputs; see `Encoder.read`."""
        return self.network.read(ids, lengths, row, column)

    def compute_logits(self, states: Floats) -> Floats:
        """Computes logits [m, V] of states [m, d]."""
        is_single = len(states) == 1  # a product with a single row is computed in another order
        batch_states = np.repeat(states, 2, axis=0) if is_single else states
        logits: Floats = _build_products().run(states=batch_states, rows=self.rows, bias=self.bias)[
            0
        ]
        return logits[:1] if is_single else logits


def get_precision(job: BundledJob) -> Precision:
    """Returns the precision of a job's products, on every processor.

    int8 where it changes nothing that users see, in the rows of benchmarks/rows/precision.jsonl: a
    span F1 of the tagger within .005 of float32, the right word among the ten likeliest of the
    masked LM as often within .005, a cosine of .995 between sentence vectors on average. It is
    twice as fast. The tagger's weights are stored in int8, so its rows tell what int8 does to
    states only. The reader stays in float32: it would lose more than .005 of its exact matches.
    """
    return PRECISIONS[job]


def load(job: BundledJob, layers: int | None = None) -> Encoder:
    """Loads the encoder for a job.

    Args:
        job: what for.
        layers: how many of its first layers; None for all.

    Raises:
        ConfigError: it has fewer layers.
        ModelError: an adapter's file is missing, broken, or does not fit.
        TableError: the encoder's file is missing or broken.
    """
    if layers is not None and layers > LAYERS[job]:
        raise ConfigError(f"the bundled encoder has {LAYERS[job]} layers, got bundled:{layers}")
    base = read_stored_weights(job)
    weights = adapters.MergedWeights(base, {} if job == "sentences" else adapters.read_tensors(job))
    needed = {*HEAD_WEIGHTS[job], *_list_weights(LAYERS[job])}
    if misfits := (needed - {*weights}) | ({*weights} - needed - {*base}):
        raise ModelError(
            f"the adapter {job!r} does not fit the encoder at {min(misfits)}; reinstall textveil"
        )
    return Encoder(
        job=job, layers=layers or LAYERS[job], weights=weights, precision=get_precision(job)
    )


def _list_weights(layers: int) -> Iterator[str]:
    """Yields the weight names of an encoder of given depth."""
    linear = (
        *(f"attention.self.{part}" for part in ("query", "key", "value")),
        "attention.output.dense",
    )
    parts = (
        *linear,
        "intermediate.dense",
        "output.dense",
        "attention.output.LayerNorm",
        "output.LayerNorm",
    )
    blocks = (f"bert.encoder.layer.{layer}.{part}" for layer in range(layers) for part in parts)
    yield from (
        f"{name}.{kind}"
        for name in (f"{EMBEDDINGS}.LayerNorm", *blocks)
        for kind in ("weight", "bias")
    )
    yield from (
        f"{EMBEDDINGS}.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")
    )


# ---- graphs --------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _build_products() -> Runner:
    """Builds the product of states and rows, with rows as input.

    The rows are no part of the graph, so that they are in memory once.
    """

    def build() -> Graph:
        graph = Graph()
        states = graph.add_input("states", np.float32, "m", "d")
        rows = graph.add_input("rows", np.float32, "v", "d")
        bias = graph.add_input("bias", np.float32, "v")
        graph.add_output(graph.apply("Gemm", states, rows, bias, transB=1), np.float32, "m", "v")
        return graph

    return Runner(build)


def build_graph(
    job: BundledJob, layers: int, weights: Mapping[str, Floats], precision: Precision = "float32"
) -> Graph:
    """Builds the network of a job as a graph.

    From `embedded` [n, L, d] to logits; the tagger's only at the places `at` [m], and of the masked
    LM states there.
    """
    builder = LayerBuilder(weights, precision)
    states = builder.add_norm(builder.embedded, EMBEDDINGS)
    is_placed = job in ("masked-lm", "tagger")
    at = builder.graph.add_input("at", np.int64, "m") if is_placed else None
    for layer in range(layers):
        states = builder.add_layer(
            states, f"bert.encoder.layer.{layer}", at if layer == layers - 1 else None
        )
    if job == "sentences":
        builder.graph.add_output(builder.split_sequences(states), np.float32, "n", "l", WIDTH)
    elif job == "masked-lm":
        states = builder.add_gelu(states, "cls.predictions.transform.dense")
        builder.graph.add_output(
            builder.add_norm(states, "cls.predictions.transform"), np.float32, "m", WIDTH
        )
    else:
        name = HEAD_WEIGHTS[job][0].removesuffix(".weight")
        labels = len(weights[f"{name}.bias"])
        logits = builder.add_linear(states, name)
        if at is None:
            builder.graph.add_output(
                builder.split_sequences(logits, labels), np.float32, "n", "l", labels
            )
        else:
            builder.graph.add_output(logits, np.float32, "m", labels)
    return builder.graph


def quantize_weight(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Quantizes a weight [out, in] to int8, with output scales.

    float32 [out]. Quantizing int8 times a scale gives the same int8 again.
    """
    scale: Floats = np.maximum(np.abs(weight).max(axis=1) / np.float32(MAX_INT8_WEIGHT), MIN_SCALE)
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def get_quantized(weights: Mapping[str, Floats], name: str) -> tuple[NDArray[np.int8], Floats]:
    """Returns a weight in int8 with its scales, by name.

    A weight stored in int8 is used as it is, without going through floats.
    """
    int8_weight = (
        weights.get_integers(name) if isinstance(weights, adapters.MergedWeights) else None
    )
    if int8_weight is not None:
        weight_integers, scale = int8_weight
        # int16, because minus -128 does not fit into int8.
        largest = np.maximum(
            weight_integers.max(axis=1), -weight_integers.min(axis=1).astype(np.int16)
        )
        if (largest == MAX_INT8_WEIGHT).all() and (
            scale > MIN_SCALE
        ).all():  # they would come out again
            # rounded as `quantize_weight` rounds, for the same bits
            return weight_integers, scale * np.float32(MAX_INT8_WEIGHT) / np.float32(
                MAX_INT8_WEIGHT
            )
    return quantize_weight(weights[name])


class LayerBuilder:
    """The parts of BERT, which add themselves to a graph.

    States are the pieces of all sequences, [n L, d].

    In int8, a linear layer multiplies integers: weights have a scale for each of their columns,
    states one for each piece, so that a sequence's numbers do not follow from those of its
    neighbours.

    Source: Devlin, Chang, Lee, Toutanova, "BERT" (2019); Vaswani et al., "Attention Is All You
    Need" (2017).

    Args:
        weights: of all of them.
        precision: of linear layers; all else is in float32.
    """

    def __init__(self, weights: Mapping[str, Floats], precision: Precision = "float32") -> None:
        self.graph = Graph()
        self._weights, self._precision = weights, precision
        embeddings = self.graph.add_input("embedded", np.float32, "n", "l", WIDTH)
        self._shape = self.graph.apply("Shape", embeddings, start=0, end=2)
        self.embedded = self.graph.apply(
            "Reshape", embeddings, self.graph.add_constant(np.array([-1, WIDTH]))
        )
        self._quantized: dict[str, tuple[str, str]] = {}
        self._zeros = ""  # the zero of each piece, made once

    def split_sequences(self, states: str, width: int = WIDTH) -> str:
        """Reshapes states to sequences and pieces, [n, L, d]."""
        shape = self.graph.apply(
            "Concat", self._shape, self.graph.add_constant(np.array([width])), axis=0
        )
        return self.graph.apply("Reshape", states, shape)

    def add_layer(self, states: str, name: str, at: str | None = None) -> str:
        """Adds a layer of the encoder.

        With `at`, the part behind attention is computed at these places only [m, d].
        """
        attention_states = self.add_attention(states, f"{name}.attention.self")
        if at is not None:
            attention_states, states = (
                self.graph.apply("Gather", tensor, at) for tensor in (attention_states, states)
            )
            self._zeros = ""  # there are fewer pieces from here on
        summed = self.graph.apply(
            "Add", self.add_linear(attention_states, f"{name}.attention.output.dense"), states
        )
        states = self.add_norm(summed, f"{name}.attention.output")
        inner = self.add_gelu(states, f"{name}.intermediate.dense")
        return self.add_norm(
            self.graph.apply("Add", self.add_linear(inner, f"{name}.output.dense"), states),
            f"{name}.output",
        )

    def add_attention(self, states: str, name: str) -> str:
        """Adds multi-head self-attention, without its output layer."""
        parts = [
            self.split_sequences(self._add_product(states, f"{name}.{part}.weight"))
            for part in ("query", "key", "value")
        ]
        bias = np.concatenate(
            [self._weights[f"{name}.{part}.bias"] for part in ("query", "key", "value")]
        )
        weight = self.graph.add_weight(f"{name}.bias", bias)
        attention_states = self.graph.apply(
            "MultiHeadAttention", *parts, weight, contrib=True, num_heads=HEADS
        )
        return self.graph.apply(
            "Reshape", attention_states, self.graph.add_constant(np.array([-1, WIDTH]))
        )

    def add_linear(self, states: str, name: str) -> str:
        """Adds a linear layer."""
        return self.graph.apply(
            "Add", self._add_product(states, f"{name}.weight"), self._add_weight(f"{name}.bias")
        )

    def add_gelu(self, states: str, name: str) -> str:
        """Adds a linear layer and GELU, with the error function."""
        bias = self._add_weight(f"{name}.bias")
        return self.graph.apply(
            "BiasGelu", self._add_product(states, f"{name}.weight"), bias, contrib=True
        )

    def add_norm(self, states: str, name: str) -> str:
        """Adds a layer norm."""
        scale, shift = (self._add_weight(f"{name}.LayerNorm.{part}") for part in ("weight", "bias"))
        return self.graph.apply("LayerNormalization", states, scale, shift, epsilon=NORM_EPSILON)

    def _add_product(self, states: str, name: str) -> str:
        if self._precision == "float32":
            return self.graph.apply(
                "MatMul", states, self.graph.add_weight(name, self._weights[name].T)
            )
        weight_integers, scale = get_quantized(self._weights, name)
        state_integers, scales = self._quantize_rows(states)
        numbers = self.graph.add_weight(name, weight_integers.T)
        zero = self.graph.add_constant(np.array(128, np.uint8))
        product = self.graph.apply("MatMulInteger", state_integers, numbers, zero)
        return self.graph.apply(
            "Mul",
            self.graph.apply("DequantizeLinear", product, scales, axis=0),
            self.graph.add_weight(f"{name} scale", scale),
        )

    def _quantize_rows(self, states: str) -> tuple[str, str]:
        """Quantizes states to uint8, with a scale per piece.

        The zero is 128: integers [n L, d], and scales [n L].
        """
        # Query, key and value read the same states, which are quantized once.
        if states not in self._quantized:
            last = self.graph.add_constant(np.array([1]))
            largest = self.graph.apply(
                "ReduceMax", self.graph.apply("Abs", states), last, keepdims=0
            )
            scales = self.graph.apply("Mul", largest, self.graph.add_constant(1 / 127))
            scales = self.graph.apply("Max", scales, self.graph.add_constant(float(MIN_SCALE)))
            self._zeros = self._zeros or self.graph.apply(
                "Expand",
                self.graph.add_constant(np.array([128], np.uint8)),
                self.graph.apply("Shape", scales),
            )
            integers = self.graph.apply("QuantizeLinear", states, scales, self._zeros, axis=0)
            self._quantized[states] = integers, scales
        return self._quantized[states]

    def _add_weight(self, name: str) -> str:
        return self.graph.add_weight(name, self._weights[name])
