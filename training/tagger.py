"""Trains the entity tagger, which also tells what is private from what is public: `make train-tagger`.

In: the adapter as it is, wikigold, WNUT-17, WikiANN and presidio_synth without their test parts, the texts for training
that are labelled with what is private, public texts, generated sentences. Out: the adapter `tagger`.
Not here: how it is used (`textveil.models.entities`), its thresholds (`cuts`), how it is measured (`measure`).

Input and output are those of the product: textveil's words, their casings and marks of the lexicon as token types, a
label at each word's first piece. What is not known about a word counts neither way: the loss is that of all labels the
word may have, together.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from textveil.models import adapters
from textveil.models.bundled import bundled_folder
from textveil.models.entities import CASINGS, LABELS, SHAPES, casing
from textveil.models.foreign import backbone
from textveil.randomness import Ints
from textveil.table import minilm
from textveil.text import lexicon
from textveil.text.tokens import tokenize
from training import cli, data, generated, lowrank
from training.loop import Run, fit

RANK, RATE, BATCH, SEED = 32, 1.2e-3, 32, 0
DROPOUT = 0.1
SCHEDULE = (
    (0, 0.0),
    (50, 1.0),
    (700, 1.0),
    (1700, 0.0),
    (1760, 0.6),
    (2500, 0.0),
    (2540, 0.6),
    (3600, 0.0),
    (3640, 0.6),
    (5300, 0.0),
    (5340, 0.6),
    (6800, 0.0),
)
PIECES = 126
"""Pieces per sequence without special tokens; of longer ones, a part."""

MIXTURE = {
    "hard": 0.47,
    "prompts": 0.08,
    "pupa": 0.09,
    "generated": 0.18,
    "wikigold": 0.02,
    "wnut17": 0.03,
    "wikiann_en": 0.02,
    "presidio_synth": 0.03,
    "public": 0.08,
}
"""How often a sequence comes from each source."""

GENERATED, RENAMED = 12_000, 6
"""Number of generated sentences, and of copies with other names of each text labelled with what is private."""

LOWERED, RAISED, TITLED, JOINED = 0.1, 0.05, 0.03, 0.3
"""Shares of sequences in lower case, in upper case, with a capital in every word, and joined with the source's next."""

UNLISTED = 0.25
"""Share of sequences that are shown without a list of the lexicon, for each of them."""

LISTS = lexicon.NAME, lexicon.PUBLIC, lexicon.ORDINARY, lexicon.PLACE

PARTS = 4
"""Number of parts of a batch, each of sequences of similar length."""

RARE = -4.0
"""Where the bias of a label begins that the tagger before did not know."""

ALL = (1 << len(LABELS)) - 1


class Sentence(NamedTuple):
    """A sentence as the product splits it: pieces, words, marks of the lexicon, and the labels each word may have."""

    pieces: list[list[int]]
    words: list[str]
    marks: list[int]
    labels: list[int]


class Batch(NamedTuple):
    """Pieces, attention mask, token types and labels that are possible, each int64 [n, L]."""

    ids: Tensor
    seen: Tensor
    kinds: Tensor
    labels: Tensor


def possible(label: str) -> int:
    """The labels that a word of a corpus may have, as bits; all of them if nothing is known."""
    if label in ("~private", "~public"):
        return 1 | sum(1 << i for i, each in enumerate(LABELS) if each.endswith(f" {label[1:]}"))
    found = sum(1 << i for i, each in enumerate(LABELS) if each == label or each.startswith(f"{label} "))
    return found or ALL


class Sentences:
    """All training data, as sequences drawn at random."""

    def __init__(self, sources: dict[str, list[data.Tagged]]) -> None:
        self.tokenizer = minilm.read_tokenizer(bundled_folder())
        vocabulary = self.tokenizer.get_vocab()
        self.start, self.end, self.unknown = (vocabulary[f"[{name}]"] for name in ("CLS", "SEP", "UNK"))
        self.sources = {name: [self._sentence(each) for each in source] for name, source in sources.items()}

    def _sentence(self, tagged: data.Tagged) -> Sentence:
        words: list[str] = []
        labels: list[int] = []
        for word, label in zip(tagged.words, tagged.labels, strict=True):
            parts = tokenize([word]).words
            words += parts
            labels += [possible(label.replace("B-", "I-") if i else label) for i in range(len(parts))]
        encodings = self.tokenizer.encode_batch(words, add_special_tokens=False)
        marks = lexicon.marks(words, np.array([0, len(words)])).tolist()
        return Sentence([encoding.ids or [self.unknown] for encoding in encodings], words, marks, labels)

    def batch(self, step: int) -> list[Batch]:
        """The parts of a step's batch."""
        rng = np.random.default_rng([SEED, step])
        names = rng.choice(list(MIXTURE), size=BATCH, p=list(MIXTURE.values()))
        rows = sorted((self._row(self.sources[name], rng) for name in names), key=lambda row: len(row[0]))
        return [self._part(rows[i : i + BATCH // PARTS]) for i in range(0, BATCH, BATCH // PARTS)]

    def _part(self, rows: list[tuple[list[int], list[int], list[int]]]) -> Batch:
        size = max(len(row[0]) for row in rows)
        arrays: list[Ints] = [np.full((len(rows), size), fill) for fill in (0, 0, 0, ALL)]
        for i, (ids, kinds, labels) in enumerate(rows):
            for array, values in zip(arrays, (ids, [1] * len(ids), kinds, labels), strict=True):
                array[i, : len(values)] = values
        return Batch(*map(torch.from_numpy, arrays))

    def _row(self, source: list[Sentence], rng: np.random.Generator) -> tuple[list[int], list[int], list[int]]:
        first = int(rng.integers(len(source)))
        count = 1 + int(rng.geometric(1 - JOINED) - 1)
        turns = np.array([LOWERED, RAISED, TITLED]).cumsum()
        turn = (str.lower, str.upper, str.capitalize, str)[int(np.searchsorted(turns, rng.random(), side="right"))]
        known = sum(mark for mark in LISTS if rng.random() >= UNLISTED)
        ids, kinds, labels = [], [], []
        for sentence in source[first : first + count]:
            for pieces, word, mark, label in zip(*sentence, strict=True):
                shown = turn(word)
                ids += pieces
                kinds += [casing(shown) + CASINGS * (mark & known)] * len(pieces)
                labels += [label] + [ALL] * (len(pieces) - 1)
        begin = max(0, int(rng.integers(-PIECES // 2, max(1, len(ids) - PIECES // 2))))
        if len(ids) <= PIECES:
            begin = 0
        own = slice(begin, begin + PIECES)
        return [self.start, *ids[own], self.end], [0, *kinds[own], 0], [ALL, *labels[own], ALL]


def sources(where: cli.Settings) -> dict[str, list[data.Tagged]]:
    """All that is trained on."""
    root = where.data
    rng = np.random.default_rng(SEED)
    found = {
        "wikigold": data.known(data.wikigold(root, held_out=False), "public"),
        "wnut17": data.conll(root / "wnut17" / "train.conll.gz"),
        "wikiann_en": data.conll(root / "wikiann_en" / "train.conll.gz"),
        "presidio_synth": data.presidio(root, held_out=False),
        "public": data.public_texts(root),
    }
    famous = [*data.wikigold(root, held_out=False), *found["wikiann_en"][:6000]]
    found["generated"] = [data.tagged(each) for each in generated.sentences(GENERATED, famous, rng)]
    names = generated.Names(rng)
    for source, texts in data.labelled(root, held_out=False).items():
        copies = [generated.renamed(text, names) for text in texts for _ in range(RENAMED)]
        found[source] = [data.tagged(each) for each in (*texts, *copies)]
        rng.shuffle(found[source])
    return found


def begin_with(model: nn.Module, before: dict[str, Tensor]) -> None:
    """Sets a model's changes to those of a tagger before, which may know the first marks and labels only."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and ".parametrizations." not in name:
                value = before[name][: len(parameter)]  # without readings for odds
                if "token_type" in name:
                    value = value.repeat(len(parameter) // len(value), 1)
                elif len(value) < len(parameter):
                    parameter.fill_(RARE if name.endswith("bias") else 0.0)
                parameter[: len(value)] = value
        for name, module in model.named_modules():
            if isinstance(module, lowrank.LowRank):
                weight = name.replace(".parametrizations.weight.0", ".weight")
                module.up.copy_(before[f"{weight}.up"])
                module.down.copy_(before[f"{weight}.down"])


def loss(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the losses of all words about which something is known, and their number."""
    bits = torch.arange(logits.shape[-1], device=logits.device)
    some = labels != ALL
    chosen, allowed = logits[some], (labels[some, None] >> bits & 1).bool()
    right = chosen.masked_fill(~allowed, -torch.inf).logsumexp(-1)
    return (chosen.logsumexp(-1) - right).sum(), some.sum()


def main() -> None:
    """Trains, or resumes, and writes the adapter."""
    where = cli.settings(__doc__.splitlines()[0])
    torch.manual_seed(SEED)
    config = {"num_labels": len(LABELS), "type_vocab_size": SHAPES}
    before = {name: torch.from_numpy(value) for name, value in adapters.tensors("tagger").items()}
    model = backbone("tagger", None, **config, **cli.SLOW_BACKWARD)
    lowrank.attach(model, RANK, train=("classifier.", "bert.embeddings.token_type"), seed=SEED, dropout=DROPOUT)
    begin_with(model, before)
    model.to(where.device)
    sentences = Sentences(sources(where))

    def mean(batches: Iterable[Batch]) -> Tensor:
        total, count = torch.zeros(()), torch.zeros(())
        for batch in batches:
            ids, seen, kinds, labels = (each.to(where.device) for each in batch)
            with torch.autocast(torch.device(where.device).type, torch.bfloat16):
                logits = model(input_ids=ids, attention_mask=seen, token_type_ids=kinds).logits
            own, n = loss(logits.float(), labels)
            total, count = total + own, count + n
        return total / count

    def loss_of(step: int) -> Tensor:
        return mean(sentences.batch(step))

    kept = [data.tagged(text) for texts in data.labelled(where.data, held_out=True).values() for text in texts]
    unseen = Sentences(dict.fromkeys(MIXTURE, kept))

    def measure() -> dict[str, float]:
        return {"held_out": round(mean(part for step in range(8) for part in unseen.batch(step)).item(), 4)}

    run = Run(folder=where.work / "tagger", rate=RATE, schedule=SCHEDULE, every=100, device=where.device)
    fit(model, run, loss_of, measure)
    about = {"config": config, "base": minilm.SHA256, "rank": RANK}
    lowrank.write(where.out, "tagger", lowrank.changes(model), about)


if __name__ == "__main__":
    main()
