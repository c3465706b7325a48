"""Trains the entity tagger: `make train-tagger`.

In: wikigold, WNUT-17, WikiANN and presidio_synth, without their test parts. Out: the adapter `tagger`.
Not here: how it is used (`textveil.models.entities`) and measured (`measure`).

Input and output are those of the product: textveil's words, their casings as token types, a label at each word's first
piece.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from textveil.models.bundled import bundled_folder
from textveil.models.entities import CASINGS, LABELS, casing
from textveil.models.foreign import backbone
from textveil.randomness import Ints
from textveil.table import minilm
from textveil.text.tokens import tokenize
from training import cli, data, lowrank
from training.loop import Run, fit

RANK, RATE, BATCH, SEED = 32, 2e-3, 32, 0
SCHEDULE = (0, 0.0), (200, 1.0), (400, 1.0), (800, 0.0)
PIECES = 126
"""Pieces per sequence without special tokens; longer ones are truncated."""

MIXTURE = {"wikigold": 0.4, "wnut17": 0.15, "wikiann_en": 0.25, "presidio_synth": 0.2}
"""How often a sequence comes from each corpus."""

LOWERED, RAISED, JOINED = 0.1, 0.05, 0.4
"""Shares of sequences in lower case, in upper case, and joined with the corpus's next sentence."""

IGNORED = -100


class Sentence(NamedTuple):
    """A sentence with its words as split by the product: pieces, words, and labels of words."""

    pieces: list[list[int]]
    words: list[str]
    labels: list[int]


class Sentences:
    """All training data, as sequences drawn at random."""

    def __init__(self, corpora: dict[str, list[data.Tagged]]) -> None:
        self.tokenizer = minilm.read_tokenizer(bundled_folder())
        vocabulary = self.tokenizer.get_vocab()
        self.start, self.end, self.unknown = (vocabulary[f"[{name}]"] for name in ("CLS", "SEP", "UNK"))
        self.corpora = {name: [self._sentence(each) for each in corpus] for name, corpus in corpora.items()}

    def _sentence(self, tagged: data.Tagged) -> Sentence:
        words: list[str] = []
        labels: list[int] = []
        for word, label in zip(tagged.words, tagged.labels, strict=True):
            parts = tokenize([word]).words
            words += parts
            for i in range(len(parts)):
                own = label.replace("B-", "I-") if i else label
                labels.append(LABELS.index(own) if own in LABELS else IGNORED)
        encodings = self.tokenizer.encode_batch(words, add_special_tokens=False)
        return Sentence([encoding.ids or [self.unknown] for encoding in encodings], words, labels)

    def batch(self, step: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Pieces, attention mask, casings and labels, each int64 [BATCH, L]."""
        rng = np.random.default_rng([SEED, step])
        names = rng.choice(list(MIXTURE), size=BATCH, p=list(MIXTURE.values()))
        rows = [self._row(self.corpora[name], rng) for name in names]
        size = max(len(row[0]) for row in rows)
        arrays: list[Ints] = [np.full((BATCH, size), fill) for fill in (0, 0, 0, IGNORED)]
        for i, (ids, kinds, labels) in enumerate(rows):
            for array, values in zip(arrays, (ids, [1] * len(ids), kinds, labels), strict=True):
                array[i, : len(values)] = values
        whole = [torch.from_numpy(array) for array in arrays]
        return whole[0], whole[1], whole[2], whole[3]

    def _row(self, corpus: list[Sentence], rng: np.random.Generator) -> tuple[list[int], list[int], list[int]]:
        first = int(rng.integers(len(corpus)))
        count = 1 + int(rng.geometric(1 - JOINED) - 1)
        turn = rng.random()
        ids, kinds, labels = [], [], []
        for sentence in corpus[first : first + count]:
            for pieces, word, label in zip(*sentence, strict=True):
                shown = word.lower() if turn < LOWERED else word.upper() if turn < LOWERED + RAISED else word
                ids += pieces
                kinds += [casing(shown)] * len(pieces)
                labels += [label] + [IGNORED] * (len(pieces) - 1)
        end = PIECES
        return [self.start, *ids[:end], self.end], [0, *kinds[:end], 0], [IGNORED, *labels[:end], IGNORED]


def main() -> None:
    """Trains, or resumes, and writes the adapter."""
    where = cli.settings(__doc__.splitlines()[0])
    torch.manual_seed(SEED)
    config = {"num_labels": len(LABELS), "type_vocab_size": CASINGS}
    model = backbone("tagger", None, **config, **cli.SLOW_BACKWARD)
    lowrank.attach(model, RANK, train=("classifier.", "bert.embeddings.token_type"), seed=SEED)
    model.to(where.device)
    root = where.data
    sentences = Sentences(
        {
            "wikigold": data.wikigold(root, held_out=False),
            "wnut17": data.conll(root / "wnut17" / "train.conll.gz"),
            "wikiann_en": data.conll(root / "wikiann_en" / "train.conll.gz"),
            "presidio_synth": data.presidio(root, held_out=False),
        }
    )

    def loss_of(step: int) -> Tensor:
        ids, seen, kinds, labels = (each.to(where.device) for each in sentences.batch(step))
        with torch.autocast(torch.device(where.device).type, torch.bfloat16):
            logits = model(input_ids=ids, attention_mask=seen, token_type_ids=kinds).logits
        return cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED)

    run = Run(folder=where.work / "tagger", rate=RATE, schedule=SCHEDULE, every=200, device=where.device)
    fit(model, run, loss_of, dict)
    about = {"config": config, "base": minilm.SHA256, "rank": RANK}
    lowrank.write(where.out, "tagger", lowrank.changes(model), about)


if __name__ == "__main__":
    main()
