"""Trains the masked LM: `make train-masked-lm`.

In: the articles of wikipedia_en. Out: the adapter `masked-lm`.
Not here: how it is used (`textveil.models.context`) and measured (`measure`).

A hidden word is one [MASK], and only single-piece words are hidden. Words not on the public list
are hidden more often than those on it: function words are learned anyway. The output layer is tied
to the input embeddings and, during training, restricted to pieces that are whole words.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from textveil.models.bundled import find_encoder_folder
from textveil.models.torch_networks import build_backbone
from textveil.randomness import Ints, Values
from textveil.table import minilm
from textveil.text.public import is_public
from training import cli, data, lowrank
from training.loop import Run, fit

RANK, RATE, SEED = 128, 2e-3, 0
SMALL, LARGE, GROWS = 2048, 4096, 1172
"""Pieces per step, and the step from which it is the larger number."""

SCHEDULE = (
    (0, 0.0),
    (196, 1.0),
    (977, 1.0),
    (1172, 0.01),
    (1221, 0.6),
    (3000, 0.132),
    (3750, 0.0),
    (3900, 0.4),
    (5500, 0.0),
)
SHORT, SHORT_SCHEDULE = 44, ((0, 0.0), (30, 0.12), (400, 0.0))
"""The rank that is packaged, so that the adapter is one file, and the schedule for training on after the cut to it."""

PUBLIC, NUMERAL, OTHER = 0.12, 0.15, 0.27
"""How often a word on the public list, a numeral, and any other word is hidden."""

LATER, PUBLIC_LATER = 3750, 0.18
"""The step from which words on the public list are hidden more often."""

LENGTHS = {32: 0.1, 64: 0.3, 128: 0.6}
"""Pieces per sequence with special tokens, and how often each length is used."""

MEASURED = 0.03
"""Share of the words of WikiText-2's validation part hidden for a measurement."""


class Vocabulary:
    """The recipe's view of the tokenizer's pieces."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        numbers = tokenizer.get_vocab()
        pieces = sorted(numbers, key=numbers.__getitem__)
        self.start, self.end, self.mask = (numbers[f"[{name}]"] for name in ("CLS", "SEP", "MASK"))
        whole = np.array([piece.isascii() and piece.isalnum() for piece in pieces])
        self.rows = np.flatnonzero(whole)
        self.place = np.full(len(pieces), -1)
        self.place[self.rows] = np.arange(len(self.rows))
        self.public = np.array([is_public(piece) for piece in pieces])
        self.inner = np.array([piece.startswith("##") for piece in pieces])
        numeral = np.array([piece.isdigit() for piece in pieces])
        self.rate = np.where(
            whole, np.where(self.public, PUBLIC, np.where(numeral, NUMERAL, OTHER)), 0.0
        )
        self.rate_later = np.where(whole & self.public, PUBLIC_LATER, self.rate)


class Stream:
    """Articles in a new random order for each pass, joined by [SEP] and split into sequences."""

    def __init__(self, articles: list[Ints], vocabulary: Vocabulary) -> None:
        self.articles, self.vocabulary = articles, vocabulary
        self.size = sum(map(len, articles)) + len(articles)
        self.passed, self.flat = -1, np.zeros(0, np.int64)

    def build_sequences(self, step: int) -> Ints:
        """The sequences [n, L] of a step, without special tokens, and one more piece at the end of each row."""
        rng = np.random.default_rng([SEED, step, 1])
        pieces = SMALL if step < GROWS else LARGE
        length = int(rng.choice(list(LENGTHS), p=list(LENGTHS.values())))
        inner, count = length - 2, pieces // length
        before = min(step, GROWS) * SMALL + max(0, step - GROWS) * LARGE
        passed, begin = divmod(before, self.size - LARGE - 1)
        if passed != self.passed:
            order = np.random.default_rng([SEED, passed]).permutation(len(self.articles))
            parts = [np.append(self.articles[i], self.vocabulary.end) for i in order]
            self.passed, self.flat = passed, np.concatenate(parts)
        rows = begin + np.arange(count)[:, None] * inner + np.arange(inner + 1)
        found: Ints = self.flat[rows]
        return found


def hide(
    rows: Ints, rate: Values, vocabulary: Vocabulary, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Sequences with special tokens and some words hidden, and the hidden words (-1 elsewhere), both int64 [n, L]."""
    own, following = rows[:, :-1], rows[:, 1:]
    hidden = (rng.random(own.shape) < rate[own]) & ~vocabulary.inner[following]
    shown = np.pad(
        np.where(hidden, vocabulary.mask, own), ((0, 0), (1, 1)), constant_values=vocabulary.end
    )
    shown[:, 0] = vocabulary.start
    return shown, np.pad(
        np.where(hidden, vocabulary.place[own], -1), ((0, 0), (1, 1)), constant_values=-1
    )


class MaskedLM(nn.Module):
    """The encoder with a head whose output layer is restricted to whole words."""

    def __init__(self, network: Any, vocabulary: Vocabulary, counts: Ints) -> None:
        super().__init__()
        self.network: Any = network
        self.rows: Tensor
        self.output: Tensor
        rows = torch.from_numpy(vocabulary.rows)
        self.register_buffer("rows", rows)
        self.register_buffer(
            "output", network.get_input_embeddings().weight.detach()[rows], persistent=False
        )
        transform = network.cls.predictions.transform
        with torch.no_grad():  # the head starts as just the words' frequencies
            nn.init.eye_(transform.dense.weight)
            nn.init.zeros_(transform.dense.bias)
            nn.init.constant_(transform.LayerNorm.weight, 0.2)
            share = torch.from_numpy((counts + 0.5) / (counts + 0.5).sum()).log().float()
            network.cls.predictions.bias.copy_(share)

    def forward(self, shown: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [m, words] of the hidden words, and the words."""
        head = self.network.cls.predictions
        last = self.network.bert(input_ids=shown).last_hidden_state
        kept = head.transform(last[hidden >= 0])
        return (kept @ self.output.T).float() + head.bias[self.rows], hidden[hidden >= 0]


def main() -> None:
    """Trains, or resumes, and writes the adapter."""
    where = cli.settings(__doc__.splitlines()[0])
    tokenizer = minilm.read_tokenizer(find_encoder_folder())
    vocabulary = Vocabulary(tokenizer)

    def cut(articles: list[str]) -> list[Ints]:
        return [
            np.array(each.ids, np.int64)
            for each in tokenizer.encode_batch_fast(articles, add_special_tokens=False)
        ]

    stream = Stream(cut(data.wikipedia(where.data)), vocabulary)
    counts = np.bincount(np.concatenate(stream.articles), minlength=len(vocabulary.place))
    network = build_backbone("masked-lm", None, **cli.SLOW_BACKWARD)
    lowrank.attach(
        network, RANK, train=("cls.predictions.transform.", "cls.predictions.bias"), seed=SEED
    )
    model = MaskedLM(network, vocabulary, counts).to(where.device)

    def logits_of(rows: Ints, rate: Values, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        shown, hidden = (
            torch.from_numpy(each).to(where.device) for each in hide(rows, rate, vocabulary, rng)
        )
        with where.products():
            found: tuple[Tensor, Tensor] = model(shown, hidden)
        return found

    def loss_of(step: int) -> Tensor:
        rng = np.random.default_rng([SEED, step])
        rate = vocabulary.rate if step < LATER else vocabulary.rate_later
        return cross_entropy(*logits_of(stream.build_sequences(step), rate, rng))

    flat = np.concatenate(
        [np.append(each, vocabulary.end) for each in cut(data.wikitext(where.data, "valid_tokens"))]
    )
    inner = max(LENGTHS) - 2
    blocks = flat[np.arange((len(flat) - 1) // inner)[:, None] * inner + np.arange(inner + 1)]
    few = np.where(vocabulary.rate > 0, MEASURED, 0.0)

    def measure() -> dict[str, float]:
        rng = np.random.default_rng(1)
        public = torch.from_numpy(vocabulary.public[vocabulary.rows]).to(where.device)
        hits: list[Tensor] = []
        for part in np.array_split(blocks, max(1, len(blocks) // 64)):
            logits, words = logits_of(part, few, rng)
            best = logits.topk(10).indices == words[:, None]
            hits.append(torch.stack([best[:, 0], best.any(dim=1), ~public[words]], dim=1).cpu())
        one, ten, content = torch.cat(hits).float().T
        found = {"all, top 1": one, "all, top 10": ten, "content, top 1": one[content > 0]}
        found["content, top 10"] = ten[content > 0]
        return {name: round(float(each.mean()), 4) for name, each in found.items()}

    run = Run(
        folder=where.work / "masked-lm",
        rate=RATE,
        yield_waves=SCHEDULE,
        every=250,
        device=where.device,
    )
    fit(model, run, loss_of, measure)
    lowrank.shorten(network, SHORT)
    short = replace(
        run, folder=where.work / "masked-lm-short", yield_waves=SHORT_SCHEDULE, every=100
    )
    fit(model, short, lambda step: loss_of(run.steps + step), measure)
    about = {"config": {}, "base": minilm.SHA256["model.safetensors"], "rank": SHORT}
    lowrank.write(where.out, "masked-lm", lowrank.changes(network), about)


if __name__ == "__main__":
    main()
