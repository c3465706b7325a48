"""Chooses the weights of the odds that what was found is private: `python -m training.odds`.

In: the bundled tagger with its thresholds, and the texts labelled with what is private that are
held out of its training (a fifth of those for training). Out:
`src/textveil/data/constants/odds.json`, and the tagger's adapter with the readings that the odds
need behind its labels.
Not here: the tagger (`tagger`) and its thresholds (`cuts`), which are made before, and texts that
measure.

Texts count whole and in parts of a few sentences, in which there is often but one name: a name
alone must not count as public only because private texts mostly name several people. Beside the
parts stand sentences of public text with people whom nobody knows, and requests about people and
firms, known or not: what a text says of somebody must not make him public, but his name. The odds
from which names count are the highest with which no fewer go, over all labelled texts and parts,
than with the tagger's thresholds alone; those of details likewise. They are chosen on what a fit on
other texts says of each text.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import regex
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor, nn

from textveil.detect import load_detector
from textveil.detect import scoring as model
from textveil.detect.detectors import find_all
from textveil.detect.library_taggers import TaggerDetector
from textveil.detect.spans import NAMES, Span
from textveil.models import EVIDENCE_WORDS, TokenClassifier, adapters
from textveil.models.bundled import WIDTH
from textveil.models.entities import TAGGER_LABELS
from textveil.randomness import Flags, Floats, Values
from textveil.text.tokens import Tokens, tokenize
from training import cli, data, generated, lowrank, strangers, tagger

OUT = cli.DATA / "constants" / "odds.json"

SENTENCES = (1, 1, 1, 2, 2, 3, 4)
"""Sentences of a part, by its place and its text."""

FEWEST = 4
"""Words of a part."""

PART, MADE = 0.4, 2.0
"""How much a candidate in a part, and in a text that is generated, counts beside one in a whole text."""

NAMED = (*NAMES, "ADDRESS")
"""Types of labels that the tagger takes for names."""

SEED = 1
"""Of the names of people whom nobody knows: others than those that the tagger saw."""

REQUESTS, ALONE = 500, 1000
"""Number of generated requests, and of sentences in which somebody is named alone."""

PAIRED, PAIRED_CHARACTERS, PARAGRAPHS = 0.5, 1200, 0.6
"""The share of labelled texts that also stand beside a public one, the most characters of them, and the share in which
both are paragraphs."""

FOLDS = 5
"""Parts of the texts for the choice of the constants."""

NETWORKS, UNITS, EPOCHS, BATCH, RATE, DECAY, UNSEEN = 3, 32, 25, 256, 4e-3, 0.1, (0.3, 0.5)
"""The networks whose mean is the odds, the hidden units of each, passes over the texts, candidates a step, AdamW's
highest rate and decay of weights, and the shares of inputs and of hidden units that a step does not
see; of the first
judge and of the second."""

_END = regex.compile(r"(?<=[.!?…。！？])\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """Candidates of labelled texts.

    Attributes:
        texts: whole texts, parts, and generated ones.
        whole: the place of the whole text of each, int64; for those that are no parts, their own.
        labelled: how many of the texts, from the first on, are not generated.
        tokens: their words.
        spans: what was found in them.
        found: the K candidates.
        own: float64 [K, own + told], what is known of each.
        states: float64 [parts, K, 384], the mean states of the encoder over its words and those around.
        private: whether each is private, 0 or 1; -1 where that is not known.
    """

    texts: list[data.Marked]
    whole: NDArray[np.int64]
    labelled: int
    tokens: Tokens
    spans: list[Span]
    found: list[model.Candidate]
    own: Values
    states: Values
    private: NDArray[np.int64]

    @property
    def text(self) -> NDArray[np.int64]:
        """The text of each candidate."""
        return np.array([each.text for each in self.found])

    @property
    def weight(self) -> Values:
        """How much each candidate counts."""
        part = self.whole[self.text] != self.text
        return np.where(part, PART, np.where(self.text < self.labelled, 1.0, MADE))


def parts(marked: data.Marked) -> Iterator[data.Marked]:
    """A text of several sentences in parts of a few, with their labels; none is cut within a label."""
    text = marked.text
    ends = [match.end() for match in _END.finditer(text)]
    ends = [end for end in ends if not any(each.start < end < each.end for each in marked.mentions)]
    bounds = [*dict.fromkeys((0, *ends, len(text)))]
    number, at = crc32(text.encode("utf-8", "surrogatepass")), 0
    while len(bounds) > 2 and at < len(bounds) - 1:
        stop = min(at + SENTENCES[(number + at) % len(SENTENCES)], len(bounds) - 1)
        start, end, at = bounds[at], bounds[stop], stop
        start, end = end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())
        if end > start and len(tokenize([text[start:end]]).words) >= FEWEST:
            inside = [each for each in marked.mentions if start <= each.start and each.end <= end]
            moved = [
                each._replace(start=each.start - start, end=each.end - start) for each in inside
            ]
            yield marked._replace(text=text[start:end], mentions=moved)


def generated_texts(corpora: Path) -> Iterator[data.Marked]:
    """What the tagger did not see: public texts with other people in them, requests, and sentences about somebody."""
    public = [
        *data.wikigold(corpora, held_out=True),
        *data.conll(corpora / "wikiann_en" / "train.conll.gz")[6000:9000],
    ]
    rng = np.random.default_rng(SEED)
    texts = strangers.sources(corpora, held_out=True)
    yield from strangers.strangers(texts, generated.Names(rng), generated.Public(public, rng))
    yield from generated.sentences(REQUESTS, public, rng, generated.requests(held_out=True))
    yield from generated.sentences(ALONE, public, rng, generated.templates(generated.NAMED_ALONE))


def paired_texts(corpora: Path, texts: Sequence[data.Marked]) -> Iterator[data.Marked]:
    """Texts with a public one before, behind or around them, as the tagger is trained on them.

    Args:
        corpora: the folder of corpora.
        texts: labelled and generated texts.
    """
    rng = np.random.default_rng([SEED, 1])
    public: dict[str, list[data.Marked]] = {}
    for text in tagger.public_texts(corpora, held_out=True):
        public.setdefault(text.language, []).append(text)
    for text in texts:
        if rng.random() >= PAIRED or len(text.text) > PAIRED_CHARACTERS:
            continue
        language = text.language if rng.random() >= tagger.FOREIGN else "en"
        others = public.get(language, public["en"])
        other = others[int(rng.integers(len(others)))]
        yield inside(text, other, "\n\n" if rng.random() < PARAGRAPHS else " ", rng)


def inside(
    text: data.Marked, other: data.Marked, between: str, rng: np.random.Generator
) -> data.Marked:
    """A text between two sentences of another, or before or behind all of them."""
    ends = [
        match.end()
        for match in _END.finditer(other.text)
        if not any(each.start < match.end() < each.end for each in other.mentions)
    ]
    at = [0, len(other.text), *ends][int(rng.integers(2 + len(ends)))]
    before, behind = other.text[:at].rstrip(), other.text[at:]
    first = before + between if before else ""
    second = between + behind if behind else ""
    shift = len(first) + len(text.text) + len(second) - len(other.text)
    mentions = [
        *(each for each in other.mentions if each.end <= len(before)),
        *(
            each._replace(start=each.start + len(first), end=each.end + len(first))
            for each in text.mentions
        ),
        *(
            each._replace(start=each.start + shift, end=each.end + shift)
            for each in other.mentions
            if each.start >= at
        ),
    ]
    return text._replace(text=first + text.text + second, mentions=mentions)


def found_in(texts: Sequence[data.Marked], doubt: float) -> list[Span]:
    """What textveil's detectors find, with what the tagger is in doubt of."""
    tagger = reading(np.vstack([np.eye(WIDTH)] * len(EVIDENCE_WORDS)))
    own = [load_detector(name) for name in ("patterns", "structure")]
    return find_all(
        [*own, tagger.copy_with_doubt(doubt)], [each.text for each in texts], timeout=None
    )


def sample(texts: list[data.Marked], whole: Sequence[int], labelled: int) -> Sample:
    """The candidates of texts."""
    tokens = tokenize([each.text for each in texts])
    spans = found_in(texts, model.DOUBT)
    found = model.group_candidates(spans)
    return Sample(
        texts=texts,
        whole=np.array(whole),
        labelled=labelled,
        tokens=tokens,
        spans=spans,
        found=found,
        own=model.build_features(found, spans, tokens),
        states=model.collect_readings(found, spans, WIDTH),
        private=np.array([_private(texts[each.text], each) for each in found]),
    )


def _private(marked: data.Marked, found: model.Candidate) -> int:
    standings = {
        each.standing
        for each in marked.mentions
        if each.start < found.end and each.end > found.start
    }
    return 1 if "private" in standings else -1 if standings - {"public"} else 0


class Fit(NamedTuple):
    """The first network's weights, and what makes readings of states.

    Args:
        weights: of what is known of candidates.
        states: float64 [parts, units, 384], what states over and around a candidate add to each unit.
    """

    weights: model.Weights
    states: Values

    def odds(self, known: Sample) -> Values:
        """The log odds of all candidates."""
        return model.compute_log_odds(
            known.own,
            np.einsum("pkw,puw->ku", known.states, self.states, optimize=True),
            self.weights,
        )


def fit(known: Sample, which: Flags) -> Fit:
    """The first network that fits some of the candidates best."""
    made = network(np.concatenate([known.own, *known.states], axis=1), known, which)
    own, states = np.split(made.units, [known.own.shape[1]], axis=1)
    parts = np.stack(np.split(states, len(EVIDENCE_WORDS), axis=1))
    return Fit(replace(made, units=own), parts)


def network(inputs: Values, known: Sample, which: Flags) -> model.Weights:
    """What fits some of the candidates best by these inputs, float64 [K, features]: the mean of several networks."""
    which = which & (known.private >= 0)
    mean, spread = inputs[which].mean(axis=0), inputs[which].std(axis=0) + 1e-6
    given = torch.from_numpy((inputs[which] - mean) / spread).float()
    target, weight = (
        torch.from_numpy(each[which]).float() for each in (known.private, known.weight)
    )
    networks = [_network(given, target, weight, seed) for seed in range(NETWORKS)]
    units, sums = zip(*networks, strict=True)
    rows = np.concatenate([layer.weight.detach().double().numpy() for layer in units]) / spread
    bias = np.concatenate([layer.bias.detach().double().numpy() for layer in units]) - rows @ mean
    total = np.concatenate([layer.weight.detach().double().numpy()[0] for layer in sums]) / NETWORKS
    base = np.array(sum(layer.bias.item() for layer in sums) / NETWORKS)
    return model.Weights(units=rows, bias=bias, sum=total, base=base)


def _network(
    given: Tensor, target: Tensor, weight: Tensor, seed: int
) -> tuple[nn.Linear, nn.Linear]:
    """The layers of one network."""
    torch.manual_seed(seed)
    units, total = nn.Linear(given.shape[1], UNITS), nn.Linear(UNITS, 1)
    network = nn.Sequential(nn.Dropout(UNSEEN[0]), units, nn.ReLU(), nn.Dropout(UNSEEN[1]), total)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    steps = EPOCHS * -(-len(given) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for _ in range(EPOCHS):
        for some in torch.randperm(len(given)).split(BATCH):  # type: ignore[no-untyped-call]
            odds = network(given[some])[:, 0]
            loss = nn.functional.binary_cross_entropy_with_logits(odds, target[some], weight[some])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return units, total


def crossed(known: Sample, judge: Callable[[Flags], Values]) -> Values:
    """The log odds of each candidate by a fit on other texts.

    Args:
        known: the candidates.
        judge: fits some of them and judges all.
    """
    folds = np.array(
        [crc32(each.text.encode("utf-8", "surrogatepass")) % FOLDS for each in known.texts]
    )
    fold = folds[known.whole[known.text]]
    odds = np.zeros(len(known.found))
    for number in range(FOLDS):
        odds[fold == number] = judge(fold != number)[fold == number]
    return odds


def reading(rows: Values) -> TaggerDetector:
    """The bundled tagger with these readings behind its labels, float64 [R, 384]."""
    tagger = load_detector("tagger")
    assert isinstance(tagger, TaggerDetector)
    assert isinstance(tagger.model, TokenClassifier)
    network = tagger.model.model.network
    weights = dict(network.weights) | with_readings(network.weights, rows)
    loaded = replace(tagger.model.model, network=replace(network, weights=weights))
    return replace(tagger, model=replace(tagger.model, model=loaded))


def with_readings(tensors: Mapping[str, Floats], rows: Values) -> dict[str, Floats]:
    """A tagger's output layer with these rows behind those of its labels."""
    weight, bias = (
        tensors[f"classifier.{name}"][: len(TAGGER_LABELS)] for name in ("weight", "bias")
    )
    found = np.concatenate([weight, rows]), np.concatenate([bias, np.zeros(len(rows))])
    return {
        f"classifier.{name}": each.astype(np.float32)
        for name, each in zip(("weight", "bias"), found, strict=True)
    }


def write(made: Fit, second: model.Weights, least: Values) -> None:
    """Writes the weights, and the tagger's adapter with the readings."""
    rows: dict[str, Any] = {
        name: {each: np.round(values, 5).tolist() for each, values in vars(weights).items()}
        for name, weights in (("first", made.weights), ("second", second))
    }
    OUT.write_text(json.dumps(rows | {"least": np.round(least, 5).tolist()}) + "\n", "utf-8")
    before = dict(adapters.MergedWeights({}, adapters.read_tensors("tagger")))
    tensors = before | with_readings(before, np.concatenate(made.states))
    about = {
        key: value for key, value in adapters.read_manifest("tagger").items() if key != "files"
    }
    about["config"] |= {"num_labels": len(tensors["classifier.bias"])}
    packed = lowrank.packed({name: torch.from_numpy(value) for name, value in tensors.items()})
    lowrank.write(cli.ADAPTERS, "tagger", packed, about)


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """What a threshold of odds does to private parts, and to texts without any, of one kind of texts.

    Attributes:
        name: says which.
        names: whether the private parts are names.
        gone: how many of them are gone with the tagger's thresholds alone.
        altered: how many texts without anything private are altered with them.
        parts: from which odds on each private part goes.
        texts: from which odds on each text without anything private stays as it is.
    """

    name: str
    names: bool
    gone: int
    altered: int
    parts: Values
    texts: Values


def least_of(found: Sequence[Group]) -> float:
    """The highest threshold at which as many private parts of some groups go as with the tagger's thresholds alone."""
    parts = np.sort(np.concatenate([each.parts for each in found]))[::-1]
    gone = sum(each.gone for each in found)
    return float(parts[gone - 1]) if gone else np.inf


def groups(known: Sample, now: Sequence[Span], odds: Values) -> Iterator[Group]:
    """English and other languages, whole texts and parts, names and the rest of what is private; nothing generated.

    Args:
        known: the candidates.
        now: what is found without doubt.
        odds: of all candidates.
    """
    today, need = _needed(known, now, None), _needed(known, known.spans, odds)
    for english, whole, names in product((True, False), repeat=3):
        gone, altered, needs, stays = 0, 0, [], []
        for b, text in enumerate(known.texts[: known.labelled]):
            if (text.language == "en") != english or (known.whole[b] == b) != whole:
                continue
            private = [each for each in text.mentions if each.standing == "private"]
            if not private and all(each.standing == "public" for each in text.mentions):
                stays.append(need[b].max(initial=-np.inf))
                altered += bool(today[b].max(initial=-np.inf) > 0)
            for each in private:
                if names == (each.kind in NAMED):
                    told = [i for i in range(each.start, each.end) if text.text[i].isalnum()]
                    needs.append(need[b][told].min(initial=np.inf))
                    gone += bool(today[b][told].min(initial=np.inf) > 0)
        name = (
            f"{'English' if english else 'other languages'}, {'whole texts' if whole else 'parts'}"
        )
        kind = "names" if names else "the rest"
        yield Group(
            name=f"{name}, {kind}",
            names=names,
            gone=gone,
            altered=altered,
            parts=np.array(needs),
            texts=np.array(stays),
        )


def _needed(known: Sample, spans: Sequence[Span], odds: Values | None) -> list[Values]:
    """The threshold up to which each character is hidden, by text; without odds, spans have their own say."""
    hidden = [np.full(len(each.text), -np.inf) for each in known.texts]
    judged: set[int] = set()
    if odds is not None:
        for candidate, own in zip(known.found, odds.tolist(), strict=True):
            told = {i for i in candidate.spans if model.is_from_key(spans[i])}
            judged.update({*candidate.spans} - told)
            for i in candidate.spans:
                here = hidden[candidate.text][spans[i].start : spans[i].end]
                np.maximum(here, own, out=here)
    for i, span in enumerate(spans):
        if i not in judged and span.privacy_score >= 0.5:
            hidden[span.text][span.start : span.end] = np.inf
    return hidden


def main() -> None:
    """Writes the weights and prints what they are worth, by fits on other texts than those judged."""
    given = cli.with_corpora(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    whole = [text for each in data.labelled(given.data, held_out=True).values() for text in each]
    pieces = [(part, b) for b, text in enumerate(whole) for part in parts(text)]
    labelled = len(whole) + len(pieces)
    generated_ones = [*generated_texts(given.data)]
    beside = paired_texts(given.data, [*whole, *generated_ones[-ALONE - REQUESTS :]])
    texts = [*whole, *(part for part, _ in pieces), *generated_ones, *beside]
    known = sample(
        texts, [*range(len(whole)), *(b for _, b in pieces), *range(labelled, len(texts))], labelled
    )
    now = found_in(texts, 0.0)
    first = crossed(known, lambda which: fit(known, which).odds(known))
    inputs = model.build_neighbour_features(
        known.found, known.spans, [text.text for text in texts], first
    )
    none = np.zeros(1)
    odds = crossed(
        known, lambda which: model.compute_log_odds(inputs, none, network(inputs, known, which))
    )
    found = list(groups(known, now, odds))
    least = np.array(
        [least_of([each for each in found if each.names == names]) for names in (True, False)]
    )
    console = Console(width=160)
    for each in groups(known, now, odds - least[known.own[:, model.DETAIL_COLUMN].astype(int)]):
        console.print(
            f"{each.name}: {each.gone} -> {(each.parts >= 0).sum()} of {len(each.parts)} gone; "
            f"{each.altered} -> {(each.texts >= 0).sum()} of {len(each.texts)} texts with nothing "
            "private altered"
        )
    every = np.ones(len(known.found), bool)
    write(fit(known, every), network(inputs, known, every), least)
    console.print(
        f"names count from odds of {least[0]:.2f}, details from {least[1]:.2f}; wrote {OUT.name}"
    )


if __name__ == "__main__":
    main()
