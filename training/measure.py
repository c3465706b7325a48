"""Measures the packaged adapters: `make measure-adapters`.

In: the installed adapters and held-out data. Out: training/measured.json, and the tables of
training/README.md.
Not here: training. It measures the product: textveil's words, its windows, its decoding.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from textveil.models import LanguageModel, Ragged, load_context, load_reader, load_tagger
from textveil.models.adapters import read_manifest
from textveil.randomness import Flags, Ints
from textveil.table.embedding import EmbeddingTable, load_table
from textveil.text.public import is_public
from textveil.text.tokens import tokenize
from textveil_bench.tasks.answers import score_exact_match, score_token_f1
from training import data
from training.cli import with_corpora

HERE = Path(__file__).resolve().parent
ROWS = HERE / "measured.json"
DOCUMENTS = (HERE / "README.md",)
RESAMPLES = 2000
"""Bootstrap samples behind every interval (95%)."""

POSITIONS = 12_000
"""Number of positions of WikiText-2 for the masked LM, evenly spread."""

Row = dict[str, Any]


def interval(score: Callable[[Ints], float], n: int) -> tuple[float, float, float]:
    """A score of all n units, and its 95% interval from resampled units."""
    rng = np.random.default_rng(0)
    drawn = np.sort([score(rng.integers(0, n, n)) for _ in range(RESAMPLES)])
    return (
        score(np.arange(n)),
        float(drawn[int(0.025 * RESAMPLES)]),
        float(drawn[int(0.975 * RESAMPLES)]),
    )


def share(hits: Flags) -> tuple[float, float, float]:
    """The share of hits with its interval."""
    return interval(lambda chosen: float(hits[chosen].mean()), len(hits))


# ---- masked LM ---------------------------------------------------------------------------------------------


def masked_lm(root: Path, device: str) -> list[Row]:
    """Top-1 and top-10 of single hidden words of WikiText-2, next to a unigram baseline."""
    pieces = load_table("minilm-wordpiece")
    whole = [word for word in pieces.words if word.isascii() and word.isalnum()]
    table = EmbeddingTable.build(
        name="words", words=whole, vectors=pieces.vectors[[pieces.row_of[w] for w in whole]]
    )
    context = load_context(table, device=device)
    tokens = tokenize(data.wikitext(root, "test_raw"))
    words = [word.lower() for word in tokens.words]
    asked = np.array([i for i, word in enumerate(words) if any(map(str.isalnum, word))], np.int64)
    asked = asked[:: max(1, len(asked) // POSITIONS)]
    target = np.array([table.row_of.get(words[i], -1) for i in asked])
    content = np.array([not is_public(words[i]) for i in asked])
    allowed = {
        "minilm": np.isin(whole, load_table("minilm").words),
        "every word of one piece": np.ones(len(whole), bool),
    }
    counts = Counter(
        word.lower() for article in data.wikipedia(root) for word in tokenize([article]).words
    )
    frequency = np.array([counts[word] for word in whole], float)
    public = np.array([is_public(word) for word in whole])
    found = _ranks(context, Ragged.build(tokens), asked, target, allowed)
    rows: list[Row] = []
    for name, own in allowed.items():
        for words_of, kept, candidates in (
            ("all words", content >= 0, own),
            ("content words", content, own & ~public),
        ):
            order = np.argsort(-np.where(candidates, frequency, -1.0), kind="stable")
            place = np.argsort(order)
            known = (target >= 0) & own[target]
            unigram = np.where(known, place[target], len(whole))
            on = f"WikiText-2 test, candidates {name}"
            for by, ranks in (
                ("masked LM", np.where(known, found[name], len(whole))),
                ("unigram", unigram),
            ):
                for k in (1, 10):
                    value = share(ranks[kept] < k)
                    rows.append(
                        row("masked-lm", on, f"{words_of}, top {k}", by, value, int(kept.sum()))
                    )
            rows.append(
                row(
                    "masked-lm",
                    on,
                    f"{words_of} among the candidates",
                    "",
                    share(known[kept]),
                    int(kept.sum()),
                )
            )
    return rows


def _ranks(
    context: LanguageModel, texts: Ragged, asked: Ints, target: Ints, allowed: dict[str, Flags]
) -> dict[str, Ints]:
    """For each set of candidates, how many have a larger logit than the right word."""
    ranks = {name: np.zeros(len(asked), np.int64) for name in allowed}
    for which, found in context.yield_batches(texts, asked):
        better = found > found[np.arange(len(which)), target[which], None]
        for name, own in allowed.items():
            ranks[name][which] = (better & own).sum(axis=1)
    return ranks


# ---- tagger ------------------------------------------------------------------------------------------------

Span = tuple[int, int, str]
WIKIGOLD = "wikigold (held out)"


def gold_spans(labels: Sequence[str]) -> set[Span]:
    """The entities of a sentence, in the corpus's tokens, whatever their standing."""
    labels = [label.partition(" ")[0] for label in labels]
    spans = set()
    start = 0
    for i, label in enumerate([*labels, "O"]):
        before = labels[i - 1] if i else "O"
        if before[2:] and (label[:1] != "I" or label[2:] != before[2:]):
            spans.add((start, i, before[2:]))
        if label.startswith("B-"):
            start = i
    return spans


def joined(spans: set[Span]) -> set[Span]:
    """Adjacent entities of one type joined, as in labels that cannot separate them."""
    found: list[Span] = []
    for start, end, kind in sorted(spans):
        if found and found[-1][1:] == (start, kind):
            found[-1] = found[-1][0], end, kind
        else:
            found.append((start, end, kind))
    return set(found)


def tagger(root: Path, device: str) -> list[Row]:
    """Exact spans and tokens of entities, by class."""
    model = load_tagger(device=device)
    sets = {
        WIKIGOLD: data.wikigold(root, held_out=True),
        "WNUT-17 test": data.conll(root / "wnut17" / "test.shared.conll.gz"),
        "WikiANN test": data.unseen(root / "wikiann_en"),
        "CoNLL-2003 testb": data.conll(root / "conll2003" / "testb.shared.conll.gz"),
        "presidio_synth (held out)": data.presidio(root, held_out=True),
    }
    return [found for name, sentences in sets.items() for found in _tagged(name, sentences, model)]


def _tagged(name: str, sentences: list[data.Tagged], model: Any) -> Iterable[Row]:
    parts = [[tokenize([word]).words for word in sentence.words] for sentence in sentences]
    texts = Ragged.join([[part for word in sentence for part in word] for sentence in parts])
    found: list[set[Span]] = [set() for _ in sentences]
    entities = model.find(texts)
    owner = [np.repeat(np.arange(len(words)), [len(word) for word in words]) for words in parts]
    for entity in entities:
        own = owner[entity.text]
        if entity.type in data.TYPES.values():
            found[entity.text].add(
                (int(own[entity.start]), int(own[entity.end - 1]) + 1, entity.type)
            )
    gold = [gold_spans(sentence.labels) for sentence in sentences]
    kinds = ["", *sorted(set(data.TYPES.values()))]
    unsure = [
        {i for i, label in enumerate(sentence.labels) if label == "?"} for sentence in sentences
    ]
    if name == WIKIGOLD:
        found = [joined(spans) for spans in found]
    found = [
        {s for s in mine if not unsure[b].intersection(range(s[0], s[1]))}
        for b, mine in enumerate(found)
    ]
    for kind in kinds:
        mine = [{s for s in spans if kind in ("", s[2])} for spans in found]
        theirs = [{s for s in spans if kind in ("", s[2])} for spans in gold]
        right = np.array([len(m & t) for m, t in zip(mine, theirs, strict=True)])
        total = np.array([len(m) + len(t) for m, t in zip(mine, theirs, strict=True)])
        f1 = interval(lambda c, r=right, t=total: 2 * r[c].sum() / max(1, t[c].sum()), len(gold))  # type: ignore[misc]
        tokens = [{i for s in spans for i in range(s[0], s[1])} for spans in theirs]
        seen = [{i for s in spans for i in range(s[0], s[1])} for spans in found]
        hit = np.array([len(t & s) for t, s in zip(tokens, seen, strict=True)])
        wanted = np.array([len(t) for t in tokens])
        recall = interval(lambda c, h=hit, w=wanted: h[c].sum() / max(1, w[c].sum()), len(gold))  # type: ignore[misc]
        of = f" of {kind}" if kind else ""
        yield row("tagger", name, f"span F1{of}", "tagger", f1, sum(map(len, theirs)))
        yield row("tagger", name, f"token recall{of}", "tagger", recall, int(wanted.sum()))


# ---- reader ------------------------------------------------------------------------------------------------


def reader(root: Path, device: str) -> list[Row]:
    """Token F1 and exact match on the development questions with gold answers."""
    questions = data.squad_gold(root)
    answers = load_reader(device=device).answer(
        [q.question for q in questions], [q.text for q in questions]
    )
    scores = np.array(
        [score_token_f1(a.text, q.answers) for a, q in zip(answers, questions, strict=True)]
    )
    hits = (
        np.array(
            [score_exact_match(a.text, q.answers) for a, q in zip(answers, questions, strict=True)]
        )
        > 0
    )
    f1 = interval(lambda chosen: float(scores[chosen].mean()), len(scores))
    return [
        row("reader", "SQuAD 1.1 dev, gold", "token F1", "reader", f1, len(scores)),
        row("reader", "SQuAD 1.1 dev, gold", "exact match", "reader", share(hits), len(scores)),
    ]


# ---- rows --------------------------------------------------------------------------------------------------


def row(
    adapter: str, on: str, what: str, model: str, value: tuple[float, float, float], n: int
) -> Row:
    """One measurement, with the checksums of what was measured."""
    files = sorted(read_manifest(adapter)["files"].values())
    mean, low, high = (round(each, 4) for each in value)
    return {
        "adapter": adapter,
        "on": on,
        "what": what,
        "model": model,
        "value": mean,
        "low": low,
        "high": high,
        "n": n,
        "files": files,
    }


def table(rows: list[Row], adapter: str) -> str:
    """The rows of an adapter as a Markdown table."""
    lines = ["| on | what | by | value | 95% interval | n |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {r['on']} | {r['what']} | {r['model']} | {r['value']:.3f} | {interval} | {r['n']:,} |"
        for r, interval in ((r, f"{r['low']:.3f} to {r['high']:.3f}") for r in rows)
        if r["adapter"] == adapter
    ]
    return "\n".join(lines)


def fill(text: str, rows: list[Row]) -> str:
    """A document with the tables of the rows between its markers."""
    for name in sorted({each["adapter"] for each in rows}):
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        head, mark, rest = text.partition(begin)
        if mark:
            text = f"{head}{begin}\n\n{table(rows, name)}\n\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    """Measures what is requested, keeps the other rows, and writes the file and the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("adapters", nargs="*", default=["masked-lm", "tagger", "reader"])
    parser.add_argument("--device", default="cpu")
    given = with_corpora(parser)
    rows = json.loads(ROWS.read_text()) if ROWS.exists() else []
    measures = {"masked-lm": masked_lm, "tagger": tagger, "reader": reader}
    for name in given.adapters:
        rows = [each for each in rows if each["adapter"] != name] + measures[name](
            given.data, given.device
        )
    ROWS.write_text(
        "[\n" + ",\n".join(json.dumps(each, sort_keys=True) for each in rows) + "\n]\n",
        encoding="utf-8",
    )
    for document in DOCUMENTS:
        document.write_text(fill(document.read_text(encoding="utf-8"), rows), encoding="utf-8")
    for name in given.adapters:
        Console(width=200).print(table(rows, name), highlight=False)


if __name__ == "__main__":
    main()
