"""A small network that reads whole releases, trained on simulated ones.

Convolutions over the released and the passing words of a text, and the mean of the text. What it
learns is how much likelier each word is there than by prior and law alone.

In: releases of public texts and what was private in them. Out: `ContextNetwork`, which scores
candidates.
Not here: which texts it is trained on (`network`), and the weight of its scores (`learned`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from textveil.evaluate.attack.attack_contract import ProgressCallback
from textveil.evaluate.attack.attack_input import View
from textveil.evaluate.attack.candidates import Shortlist
from textveil.evaluate.attack.knowledge import Knowledge
from textveil.mechanism import PLACEHOLDER
from textveil.randomness import Flags, Floats, Ids, Randomness, Values

KERNEL = 5
"""Words that one layer joins: adjacent ones, then every second one, every fourth, and so on."""

MIN_BATCH_WORDS, MAX_BATCH_WORDS, BATCHES = 200, 3000, 200
"""Words of the texts that one step of training reads: a share of them, within bounds."""

NEGATIVES_PER_STEP = 32
"""Wrong words that each right one is told from in one step, at most."""

LEARNING_RATE, WEIGHT_DECAY, WARMUP_STEPS = 2e-3, 0.05, 50
"""AdamW's settings; the rate then falls to 0 in a line. Vectors of words do not decay."""

HIDDEN_WORDS, DROPOUT = 0.1, 0.25
"""The shares of words, and of the numbers in their vectors, that training leaves out."""

TABLE_WEIGHT, NOISE_WEIGHT, OUTPUT_WEIGHT = 0.5, 0.1, 0.3
"""The scale of first vectors: of the table's part, of noise, and of those on the way out."""

CELLS_AT_ONCE = 1024
"""Cells whose candidates are scored together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Symbols:
    """The words of texts as numbers, as the network reads them.

    Attributes:
        number: int64 [T]: a word that passed, then an unknown one, a placeholder, released rows.
        group: int64 [T], 0 for what passed, else 1 more than the budget group.
        positions: int64 [n], where the words to be guessed stand.
        documents: int64 [B + 1], where each text starts.
        unknown: the number of an unknown word.
    """

    number: Ids = field(repr=False)
    group: Ids = field(repr=False)
    positions: Ids = field(repr=False)
    documents: Ids
    unknown: int

    def yield_batches(self, order: Values | None = None) -> Iterator[tuple[Ids, Ids]]:
        """Yields batches of texts of similar lengths.

        Args:
            order: sorts the batches, at least one number for each; None leaves them as they are.

        Yields:
            int64 [r, L] twice: the places of words, -1 behind the end of a text; and which
                protected position each is, -1 for none.
        """
        sizes, batches, start = np.diff(self.documents), list[Ids](), 0
        texts = np.argsort(sizes, kind="stable")
        texts = texts[sizes[texts] > 0]
        words = min(max(len(self.number) // BATCHES, MIN_BATCH_WORDS), MAX_BATCH_WORDS)
        ends = np.flatnonzero(np.diff(np.cumsum(sizes[texts]) // words) > 0) + 1
        for end in [*ends.tolist(), len(texts)]:
            batches += [texts[start:end]] if end > start else []
            start = end
        position = np.full(len(self.number) + 1, -1)
        position[self.positions] = np.arange(len(self.positions))
        numbers = range(len(batches)) if order is None else np.argsort(order[: len(batches)])
        for number in numbers:
            members = batches[number]
            place = np.arange(int(sizes[members].max()))
            inside = place < sizes[members][:, None]
            at = np.where(inside, self.documents[members][:, None] + place, -1)
            yield at, position[at]


class _Layer(nn.Module):
    """Joins adjacent words, then each word with the mean of its text."""

    def __init__(self, width: int, step: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.adjacent = nn.Conv1d(
            width, 2 * width, KERNEL, padding=step * (KERNEL // 2), dilation=step
        )
        self.inner, self.outer = nn.Linear(2 * width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, vectors: Tensor, inside: Tensor) -> Tensor:
        """Returns new vectors [r, L, d], for words that are `inside` [r, L, 1] a text."""
        normal = self.first_norm(vectors) * inside
        joined = self.adjacent(normal.transpose(1, 2)).transpose(1, 2)
        vectors = vectors + functional.glu(joined, dim=-1)
        normal = self.second_norm(vectors) * inside
        mean = normal.sum(dim=1, keepdim=True) / inside.sum(dim=1, keepdim=True)
        both = torch.cat([normal, mean.expand_as(normal)], dim=-1)
        outer: Tensor = self.outer(functional.gelu(self.inner(both)))
        return vectors + outer


class _Reader(nn.Module):
    """Reads symbols, and returns what it expects at each place: vectors [r, L, d]."""

    def __init__(self, symbols: int, words: int, groups: int, width: int, layers: int) -> None:
        super().__init__()
        self.symbols, self.groups = nn.Embedding(symbols, width), nn.Embedding(groups, width)
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(_Layer(width, 2**i) for i in range(layers))
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(
        self, numbers: Tensor, groups: Tensor, inside: Tensor, kept: Tensor | float = 1.0
    ) -> Tensor:
        vectors = self.symbols(numbers) * kept + self.groups(groups)
        for layer in self.layers:
            vectors = layer(vectors, inside)
        last: Tensor = self.last(self.norm(vectors))
        return last


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextNetwork:
    """A trained network, and the words that it knows.

    Attributes:
        reader: the network.
        knowledge: the words.
    """

    reader: _Reader = field(repr=False)
    knowledge: Knowledge

    @classmethod
    def train(  # noqa: PLR0913 - most are options, given by keyword
        cls,
        view: View,
        knowledge: Knowledge,
        truth: Ids,
        negatives: Ids,
        *,
        width: int,
        layers: int,
        epochs: int,
        rng: Randomness,
        report: ProgressCallback,
    ) -> Self:
        """Trains a network to tell each private word from others that the release allows.

        The others are drawn by prior and law, so what it learns is by how much the text around
        makes a word likelier: density ratios (Gutmann and Hyvärinen, AISTATS 2010).

        Args:
            view: simulated releases.
            knowledge: the words.
            truth: int64 [n], the number of each private word, -1 for one that is not known.
            negatives: int64 [n, N], words drawn by prior and law.
            width: of the vectors.
            layers: how many.
            epochs: how often all texts are read.
            rng: for first weights, the order of texts, and what is left out.
            report: callback for progress.
        """
        symbols = number_symbols(view, knowledge, knowledge)
        reader = _Reader(
            len(knowledge) + 2 + len(view.table),
            len(knowledge) + 1,
            len(view.groups) + 1,
            width,
            layers,
        )
        _start_weights(reader, rng)
        _start_vectors(reader, view, knowledge, symbols, negatives)
        _fit(reader, symbols, truth, negatives, epochs, rng, report)
        return cls(reader=reader.eval(), knowledge=knowledge)

    def score(self, shortlist: Shortlist, view: View, knowledge: Knowledge) -> Floats:
        """Returns log ratios of candidates by the text around: float32 [m, K, 1].

        A word that it does not know has the mean of the other candidates.
        """
        symbols = number_symbols(view, knowledge, self.knowledge)
        width = self.reader.last.out_features
        vectors = np.zeros((len(symbols.positions), width), np.float32)
        with torch.no_grad():
            for at, position in symbols.yield_batches():
                read = self.reader(*_to_tensors(symbols, at))[torch.from_numpy(position >= 0)]
                vectors[position[position >= 0]] = read.numpy()
            members = shortlist.word_context.members
            means = (members @ vectors) / np.diff(members.indptr)[:, None]
            numbers = _map_words(knowledge, self.knowledge)[shortlist.words]
            scores = np.empty((*numbers.shape, 1), np.float32)
            for start in range(0, len(numbers), CELLS_AT_ONCE):
                cells = slice(start, start + CELLS_AT_ONCE)
                output = self.reader.words(torch.from_numpy(numbers[cells]))
                mean = torch.from_numpy(means[cells].astype(np.float32))
                scores[cells, :, 0] = torch.einsum("md,mkd->mk", mean, output).numpy()
        is_known = (numbers < len(self.knowledge))[:, :, None]
        total = np.where(is_known, scores, 0).sum(axis=1, keepdims=True)
        mean_score = total / np.maximum(1, is_known.sum(axis=1, keepdims=True))
        return np.where(is_known, scores - mean_score, 0).astype(np.float32)


def number_symbols(view: View, knowledge: Knowledge, known: Knowledge) -> Symbols:
    """Numbers what a release shows at each place.

    Args:
        view: the release.
        knowledge: finds its words.
        known: the words that have a number.
    """
    layout, unknown = view.layout, len(known)
    number, group = np.full(len(layout.roles), unknown), np.zeros(len(layout.roles), np.int64)
    places = np.flatnonzero(view.pass_rows >= 0)
    words = knowledge.find_ids(
        view.table, [view.items[item] for item in layout.unit_of[places].tolist()]
    )
    number[places] = _map_words(knowledge, known)[words]
    rows = np.where(view.output_rows == PLACEHOLDER, -1, view.output_rows)
    number[layout.positions] = unknown + 2 + rows
    group[layout.positions] = view.group + 1
    return Symbols(
        number=number,
        group=group,
        positions=layout.positions,
        documents=layout.documents,
        unknown=unknown,
    )


def _map_words(knowledge: Knowledge, known: Knowledge) -> Ids:
    """Returns the number among known words of each word: int64 [U + 1], the last for -1."""
    unknown = len(known)
    if knowledge is known:
        return np.arange(unknown + 1)
    numbers = [known.number.get(word, unknown) for word in knowledge.words]
    return np.array([*numbers, unknown], np.int64)


def _to_tensors(symbols: Symbols, at: Ids, hidden: Flags | None = None) -> tuple[Tensor, ...]:
    """Returns symbols and groups at places, and which are inside a text."""
    number, inside = symbols.number[at], at >= 0
    if hidden is not None:
        number = np.where(hidden, symbols.unknown, number)
    return (
        torch.from_numpy(number),
        torch.from_numpy(np.where(inside, symbols.group[at], 0)),
        torch.from_numpy(inside.astype(np.float32)[:, :, None]),
    )


# ---- training ------------------------------------------------------------------------------------


def _draw_uniform(rng: Randomness, rows: int, width: int) -> Values:
    parts = [draws.uniform(width) for _, draws in rng.open([rows]).split_rows(max(1, rows))]
    return np.concatenate(parts) if parts else np.empty((0, width))


def _start_weights(reader: _Reader, rng: Randomness) -> None:
    """Sets first weights: matrices are drawn, offsets are 0, and scales of norms 1."""
    with torch.no_grad():
        for name, weight in reader.named_parameters():
            if weight.dim() < 2:
                weight.fill_(1.0 if name.endswith("norm.weight") else 0.0)
                continue
            count = weight[0].numel()
            values = (2 * _draw_uniform(rng, len(weight), count) - 1) * np.sqrt(3 / count)
            weight.copy_(torch.from_numpy(values).view_as(weight))


def _start_vectors(
    reader: _Reader, view: View, knowledge: Knowledge, symbols: Symbols, negatives: Ids
) -> None:
    """Sets first vectors of words from the table.

    Those of released rows are the mean of the words that may be behind them.
    """
    rows = view.origin.take(np.arange(len(view.origin))).astype(np.float64)
    rows -= rows.mean(axis=0)
    width = min(reader.last.out_features, rows.shape[1])
    _, axes = np.linalg.eigh(rows.T @ rows)
    reduced = rows @ axes[:, -width:]
    reduced /= max(1e-9, float(np.sqrt((reduced**2).mean())))
    with torch.no_grad():
        vectors = reader.symbols.weight.numpy()
        noise = NOISE_WEIGHT * np.sqrt(vectors.shape[1]) * vectors
        vectors[:] = 0
        words = noise[: len(knowledge)]
        words[:, :width] += TABLE_WEIGHT * reduced[knowledge.row]
        vectors[: len(knowledge)] = words
        released = symbols.number[symbols.positions]
        count = np.bincount(released, minlength=len(vectors))
        behind = sparse.coo_array(
            (
                np.ones(negatives.size, np.float32),
                (np.repeat(released, negatives.shape[1]), negatives.ravel()),
            ),
            shape=(len(vectors), len(words)),
        )
        vectors[:] = (behind.tocsr() @ words) / np.maximum(1, count * negatives.shape[1])[:, None]
        vectors[: len(knowledge)] = words
        reader.words.weight.zero_()
        reader.words.weight[: len(knowledge)] = OUTPUT_WEIGHT * torch.from_numpy(words)
        reader.groups.weight.zero_()


def _fit(
    reader: _Reader,
    symbols: Symbols,
    truth: Ids,
    negatives: Ids,
    epochs: int,
    rng: Randomness,
    report: ProgressCallback,
) -> None:
    """Fits the weights by AdamW."""
    inner: list[Tensor] = [
        *reader.layers.parameters(),
        *reader.norm.parameters(),
        *reader.last.parameters(),
    ]
    vectors: list[Tensor] = [reader.symbols.weight, reader.words.weight, reader.groups.weight]
    groups: list[dict[str, Any]] = [{"params": inner}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(
        groups,
        lr=LEARNING_RATE,
        betas=(0.9, 0.98),
        weight_decay=WEIGHT_DECAY,
    )
    texts = len(symbols.documents) - 1
    steps = epochs * sum(1 for _ in symbols.yield_batches())
    step = 0
    for _ in range(epochs):
        for at, position in symbols.yield_batches(_draw_uniform(rng, texts, 1)[:, 0]):
            report("network", step, steps)
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * min(1, step / WARMUP_STEPS) * (1 - step / steps)
            step += 1
            members = position[position >= 0]
            is_known = truth[members] >= 0
            if not is_known.any():
                continue
            loss = _compute_loss(reader, symbols, at, position, is_known, truth, negatives, rng)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def _compute_loss(
    reader: _Reader,
    symbols: Symbols,
    at: Ids,
    position: Ids,
    is_known: Flags,
    truth: Ids,
    negatives: Ids,
    rng: Randomness,
) -> Tensor:
    """Computes how surely right words are told from wrong ones, with parts left out."""
    members = position[position >= 0][is_known]
    width = reader.last.out_features
    left_out = _draw_uniform(rng, at.size, width + 1)
    hidden = left_out[:, 0].reshape(at.shape) < HIDDEN_WORDS
    kept = _keep(left_out[:, 1:].reshape(*at.shape, width))
    read = reader(*_to_tensors(symbols, at, hidden), kept)[torch.from_numpy(position >= 0)]
    read = read[torch.from_numpy(is_known)] * _keep(_draw_uniform(rng, len(members), width))
    count = negatives.shape[1]
    first = int(_draw_uniform(rng, 1, 1)[0, 0] * count)
    which = (first + np.arange(min(NEGATIVES_PER_STEP, count))) % count
    wrong = negatives[members][:, which]
    words = np.concatenate([truth[members][:, None], wrong], axis=1)
    logits = torch.einsum("nd,nkd->nk", read, reader.words(torch.from_numpy(words)))
    is_right = np.zeros(words.shape, bool)
    is_right[:, 1:] = wrong == words[:, :1]
    logits = logits.masked_fill(torch.from_numpy(is_right), -torch.inf)
    return functional.cross_entropy(logits, torch.zeros(len(members), dtype=torch.int64))


def _keep(uniform: Values) -> Tensor:
    """Returns factors that leave out a share of numbers, and keep the mean."""
    return torch.from_numpy(((uniform >= DROPOUT) / (1 - DROPOUT)).astype(np.float32))
