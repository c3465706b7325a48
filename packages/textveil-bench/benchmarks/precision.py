"""Measures the bundled encoders in float32 and in int8, and on torch: how right it is, and how fast.

In: the folder of corpora that $TEXTVEIL_CORPORA names. Out: rows/precision.jsonl, all in one run.
Not here: which precision a job has for it (`textveil.models.bundled.get_precision`).

A row with a `limit` decides: int8 is chosen where it loses no more than that. Seconds are of the processor.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from textveil import models
from textveil.models import Ragged, bundled, torch_networks
from textveil.table import load_table
from textveil.text import is_public, tokenize
from textveil_bench.circumstances import read_circumstances

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from training import data, measure

ROWS = Path(__file__).resolve().parent / "rows" / "precision.jsonl"
F1, TOP, COSINE = 0.005, 0.005, 0.005
"""What int8 may lose."""

POSITIONS = 4_000
PROMPT, PROMPTS = 58, 100
"""Words of a text whose time is taken, and the number of texts."""

Job = bundled.BundledJob
ENGINES = "torch", "float32", "int8"


def network(job: Job, engine: str) -> Any:
    """The encoder for a job, on torch or in a precision."""
    if engine == "torch":
        return torch_networks.load_bundled_network(job, None, "cpu")
    return replace(bundled.load(job), precision=engine)


def running(loaded: Any, engine: str, job: Job) -> Any:
    """A loaded tagger, reader or masked LM on another engine."""
    chosen = network(job, engine)
    changed = replace(loaded, model=replace(loaded.model, network=chosen))
    if job != "masked-lm":
        return changed
    rows, bias = loaded.head.rows, loaded.head.bias
    if engine == "torch":
        chosen.output()
    return replace(changed, head=chosen.head(rows, bias))


def both(job: Job, score: Callable[[str], float]) -> dict[str, Any]:
    """A score in both precisions."""
    return {
        "job": job,
        **{precision: round(score(precision), 5) for precision in ("float32", "int8")},
    }


def tagger(root: Path) -> Iterator[dict[str, Any]]:
    """Span F1 on the shared halves."""
    sets = {"wikigold": lambda held_out: data.wikigold(root, held_out=held_out)}
    sets["presidio_synth"] = lambda held_out: data.presidio(root, held_out=held_out)
    loaded = models.load_tagger()
    for name, read in sets.items():
        for what, sentences in (("all", read(True) + read(False)), ("held out", read(True))):

            def score(precision: str, name: str = name, own: Any = sentences) -> float:
                labelled = (
                    measure.WIKIGOLD if name == "wikigold" else name
                )  # its labels join neighbours of one type
                rows = measure._tagged(labelled, own, running(loaded, precision, "tagger"))
                return next(float(row["value"]) for row in rows if row["what"] == "span F1")

            yield {
                **both("tagger", score),
                "what": f"span F1, {name}, {what}",
                "n": len(sentences),
                "limit": F1,
            }


def masked_lm(root: Path) -> Iterator[dict[str, Any]]:
    """How often the hidden word is among the ten likeliest."""
    context = models.load_context(load_table("minilm"))
    table, texts = load_table("minilm"), Ragged.build(tokenize(data.wikitext(root, "test_raw")))
    known = np.array([i for i, word in enumerate(texts.words) if word.lower() in table.row_of])
    asked = known[:: len(known) // POSITIONS]
    target = np.array([table.row_of[texts.words[i].lower()] for i in asked])
    candidates = {
        "all": np.ones(len(table), bool),
        "content": ~np.array([is_public(word) for word in table.words]),
    }
    ranks = {
        precision: measure._ranks(
            running(context, precision, "masked-lm"), texts, asked, target, candidates
        )
        for precision in ("float32", "int8")
    }
    content = np.array([not is_public(texts.words[i]) for i in asked])
    for name, kept in (("all", content >= 0), ("content", content)):
        yield {
            **both(
                "masked-lm",
                lambda precision, n=name, k=kept: float(  # type: ignore[misc]
                    (ranks[precision][n][k] < 10).mean()
                ),
            ),
            "what": f"top 10, WikiText-2 test, {name} words",
            "n": int(kept.sum()),
            "limit": TOP,
        }


def sentences(root: Path) -> Iterator[dict[str, Any]]:
    """The mean cosine between vectors in float32 and in int8."""
    articles = data.wikitext(root, "test_raw")
    shown = {
        "paragraphs": [
            line.strip()
            for article in articles
            for line in article.split("\n")
            if len(line.split()) > 20
        ],
        "sentences": [
            part.strip()
            for article in articles
            for part in article.split(" . ")
            if len(part.split()) > 3
        ],
    }
    for name, texts in shown.items():
        chosen = texts[:: max(1, len(texts) // 500)]
        exact, near = (_encoder(engine).encode(chosen) for engine in ("float32", "int8"))
        cosine = (exact * near).sum(axis=1)
        found = {
            "float32": 1.0,
            "int8": round(float(cosine.mean()), 5),
            "lowest": round(float(cosine.min()), 5),
        }
        what = f"cosine with float32, WikiText-2 test, {name}"
        yield {"job": "sentences", **found, "what": what, "n": len(chosen), "limit": COSINE}


def _encoder(engine: str) -> models.SentenceModel:
    if engine == "torch":
        return models.load_sentences(device="cpu:0")
    load, bundled.get_precision = bundled.get_precision, lambda job: engine  # type: ignore[assignment]
    try:
        return models.load_sentences()
    finally:
        bundled.get_precision = load


def reader(root: Path) -> Iterator[dict[str, Any]]:
    """Token F1 and exact matches; no limit was set, and the reader stays in float32."""
    questions, loaded = data.squad_gold(root), models.load_reader()
    asked, read = [each.question for each in questions], [each.text for each in questions]
    answers = {p: running(loaded, p, "reader").answer(asked, read) for p in ("float32", "int8")}
    for what, right in (
        ("token F1", measure.score_token_f1),
        ("exact match", measure.score_exact_match),
    ):

        def score(precision: str, judge: Any = right) -> float:
            pairs = zip(answers[precision], questions, strict=True)
            return float(np.mean([judge(answer.text, each.answers) for answer, each in pairs]))

        yield {**both("reader", score), "what": f"{what}, SQuAD 1.1 dev, gold", "n": len(questions)}


def speed(root: Path) -> Iterator[dict[str, Any]]:
    """Words a second of one core, one text after the other, the engines in turn."""
    words = " ".join(data.wikitext(root, "test_raw")).split()
    texts = [" ".join(words[i * PROMPT : (i + 1) * PROMPT]) for i in range(PROMPTS)]
    ragged = [Ragged.build(tokenize([text])) for text in texts]
    every = np.arange(0, PROMPT, 8)
    loaded = {"tagger": models.load_tagger(), "reader": models.load_reader()}
    context = models.load_context(load_table("minilm"))

    def run(job: Job, engine: str) -> Callable[[int], object]:
        if job == "sentences":
            encoder = _encoder(engine)
            return lambda i: encoder.encode(texts[i : i + 1])
        own = running(context if job == "masked-lm" else loaded[job], engine, job)
        if job == "tagger":
            return lambda i: own.find(ragged[i])
        if job == "reader":
            return lambda i: own.answer(["Who?"], texts[i : i + 1])
        return lambda i: own.compute_logits(ragged[i], every)

    for job in bundled.PRECISIONS:
        runs = {engine: run(job, engine) for engine in ENGINES}
        spent: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        for each in runs.values():
            each(0)
        for i in range(PROMPTS):
            for engine, each in runs.items():
                start = time.process_time()
                each(i)
                spent[engine].append(time.process_time() - start)
        what = f"words a second and core, texts of {PROMPT} words" + ", 8 of them hidden" * (
            job == "masked-lm"
        )
        yield {
            "job": job,
            **{e: round(PROMPT / float(np.median(own))) for e, own in spent.items()},
            "what": what,
        }


def main() -> None:
    """Writes all rows."""
    root = Path(os.environ["TEXTVEIL_CORPORA"])
    around = read_circumstances("onnxruntime")
    rows = []
    for part in (speed, tagger, sentences, reader, masked_lm):
        for row in part(root):
            rows.append(row | around)
            Console(stderr=True).print({key: row[key] for key in row if key != "limit"})
    ROWS.write_text(
        "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
