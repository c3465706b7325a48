"""Public features of a text: whole numbers that follow from that text alone.

In: texts. Out: integers [n, F]: a sentence vector and, where a library has them, its words.
Not here: which cell they lead to (`library`), and how the parts are made (`making`).

A vote counts once only if a text's cell does not depend on the texts beside it. So features are
rounded to whole numbers, and every product of them is a sum of whole numbers that float64 holds
exactly, in whatever order a library adds them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from textveil.errors import ConfigError
from textveil.models import SentenceModel, load_sentences
from textveil.randomness import Floats, Ids, Values

Features = NDArray[np.int16]
"""Features of some texts, [n, F], in steps of 1 / STEPS."""

STEPS = 1 << 12
"""Steps of a feature per unit: features are between -8 and 8."""

LARGEST_SUM = 1 << 53
"""The whole numbers below which float64 adds up without rounding."""

PROBES = ("The bank lent them nine hundred pounds.", "It rains in the north.", "Who won?")

LEAST_LIKENESS = 0.98
"""The least cosine of a probe's vectors: processors and precisions differ by less."""

READ_CHARACTERS = 20_000
"""The first characters of a text, from which its cell follows: reading more takes long, and tells
little more of its kind."""

TEXTS_AT_ONCE = 4096
"""Texts whose features are computed at once, which bounds memory."""

WORDS_AT_ONCE = 256
"""Texts whose words are added up at once: more leave the caches of a processor."""

_WORD = regex.compile(r"\b\w\w+\b")

EncodeTexts = Callable[[Sequence[str]], Floats]


def round_features(values: Floats | Values) -> Features:
    """Rounds features to whole steps, within the range of 16 bits."""
    limits = np.iinfo(np.int16)
    rounded: Features = (
        np.rint(values.astype(np.float64) * STEPS).clip(limits.min, limits.max).astype(np.int16)
    )
    return rounded


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearMap:
    """Scores of features: whole numbers, the same for a text alone and in any batch.

    Attributes:
        weights: int64 [K, F], in steps.
        offsets: int64 [K].
    """

    weights: NDArray[np.int64] = field(repr=False)
    offsets: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        reach = np.abs(self.weights).sum(axis=1).astype(np.float64) * (1 << 15)
        if (reach + np.abs(self.offsets) >= LARGEST_SUM).any():
            raise ConfigError("weights of cells are too large to be added up exactly")

    @classmethod
    def build(cls, weights: Values, offsets: Values) -> "LinearMap":
        """Rounds real weights [K, F] and offsets [K] to steps."""
        return cls(
            weights=np.rint(weights * STEPS).astype(np.int64),
            offsets=np.rint(offsets * STEPS * STEPS).astype(np.int64),
        )

    def score(self, features: Features) -> Values:
        """Returns the scores of texts [n, K], in units of STEPS squared."""
        weights, offsets = self.weights.astype(np.float64), self.offsets.astype(np.float64)
        scores: Values = features.astype(np.float64) @ weights.T + offsets
        return scores


@dataclass(frozen=True, kw_only=True, eq=False)
class WordMap:
    """Public words and the axes that they span: the words of a text as a unit vector.

    A word that stands n times in a text counts 1 + ln n, times its rarity.

    Attributes:
        words: the vocabulary, V words in order.
        rarity: float32 [V], the inverse document frequency of each.
        axes: float32 [V, D], a truncated singular value decomposition.
    """

    words: tuple[str, ...] = field(repr=False)
    rarity: Floats = field(repr=False)
    axes: Floats = field(repr=False)

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def _wide_axes(self) -> Values:
        return self.axes.astype(np.float64)

    def encode(self, texts: Sequence[str]) -> Floats:
        """Encodes texts by their words, as unit vectors float32 [n, D].

        A text without any known word has the zero vector.
        """
        result = np.zeros((len(texts), self.axes.shape[1]), np.float32)
        for start in range(0, len(texts), WORDS_AT_ONCE):
            chunk = texts[start : start + WORDS_AT_ONCE]
            result[start : start + len(chunk)] = self._encode_chunk(chunk)
        return result

    def _encode_chunk(self, texts: Sequence[str]) -> Floats:
        get = self._columns.get
        columns_of_texts = [
            [column for word in _WORD.findall(text.lower()) if (column := get(word)) is not None]
            for text in texts
        ]
        rows = np.repeat(np.arange(len(texts)), [len(columns) for columns in columns_of_texts])
        columns = np.fromiter(chain.from_iterable(columns_of_texts), np.int64, len(rows))
        places, times = np.unique(rows * len(self.words) + columns, return_counts=True)
        rows, columns = np.divmod(places, len(self.words))
        result = np.zeros((len(texts), self.axes.shape[1]), np.float64)
        if len(rows):
            weights = _damp(times) * self.rarity[columns].astype(np.float64)
            filled, starts = np.unique(rows, return_index=True)
            points = weights[:, None] * self._wide_axes[columns]
            result[filled] = np.add.reduceat(points, starts, axis=0)
        return scale_to_unit(result).astype(np.float32)


def _damp(times: Ids) -> Values:
    """Returns 1 + ln of each number, one by one: blocks of a processor could round differently."""
    distinct, places = np.unique(times, return_inverse=True)
    damped: Values = np.array([1 + math.log(number) for number in distinct.tolist()])[places]
    return damped


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureMap:
    """A public map from a text to its features: blocks side by side.

    Attributes:
        encoder: the name of the sentence encoder.
        encoder_source: its folder or hub id; None for the bundled one.
        probes: int8 [3, d], the vectors of fixed sentences: another encoder of the same name is
            refused.
        dimension: d of the sentence vectors.
        words: the words of a text, where the library has them.
    """

    encoder: str
    encoder_source: str | None = None
    probes: NDArray[np.int8] = field(repr=False)
    dimension: int
    words: WordMap | None = None

    @property
    def blocks(self) -> dict[str, slice]:
        """The columns of each block, by its name."""
        blocks = {"vectors": slice(0, self.dimension)}
        if self.words is not None:
            blocks["words"] = slice(self.dimension, self.dimension + self.words.axes.shape[1])
        return blocks

    @property
    def width(self) -> int:
        """F, the number of features."""
        return int(max(block.stop for block in self.blocks.values()))

    @cached_property
    def model(self) -> SentenceModel:
        """The sentence encoder.

        Raises:
            ConfigError: it is not the one that the library was made with.
        """
        # One at a time: a batch changes the last bits of other encoders' vectors, and so a cell.
        source = self.encoder_source
        model = load_sentences(source) if source is None else load_sentences(source, batch=1)
        if not self._knows(compute_probes(model.encode)):
            raise ConfigError(
                f"the library was made with another version of the sentence encoder {self.encoder}: "
                "make it anew with `textveil library make`"
            )
        return model

    def _knows(self, probes: NDArray[np.int8]) -> bool:
        """Says whether vectors of the fixed sentences are those of this map, but for rounding."""
        if probes.shape != self.probes.shape:
            return False
        mine, theirs = (
            scale_to_unit(vectors.astype(np.float64)) for vectors in (self.probes, probes)
        )
        return bool(((mine * theirs).sum(axis=1) >= LEAST_LIKENESS).all())

    def compute(self, texts: Sequence[str], vectors: Floats | None = None) -> Features:
        """Computes the features of texts: int16 [n, F].

        Args:
            texts: any number of texts.
            vectors: their sentence vectors [n, d], if they are known.

        Raises:
            InputError: a text is not a valid Unicode string.
        """
        texts = [text[:READ_CHARACTERS] for text in texts]
        vectors = self.model.encode(texts) if vectors is None else vectors
        parts = [round_features(vectors)]
        if self.words is not None:
            parts.append(round_features(self.words.encode(texts)))
        return np.concatenate(parts, axis=1)

    def __reduce__(self) -> tuple[object, ...]:
        """Leaves out the loaded encoder."""
        return _rebuild, ({name: getattr(self, name) for name in self.__dataclass_fields__},)


def _rebuild(values: dict[str, Any]) -> FeatureMap:
    return FeatureMap(**values)


def compute_probes(encode: EncodeTexts) -> NDArray[np.int8]:
    """Computes the vectors by which an encoder is known again: of some fixed sentences."""
    return np.rint(encode(PROBES) * 127).astype(np.int8)


def scale_to_unit(vectors: Values) -> Values:
    """Scales vectors [n, d] to unit length; a zero vector stays."""
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    unit: Values = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
