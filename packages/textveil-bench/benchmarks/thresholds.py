"""Measures how near texts stay to their originals against STAMP's threshold tau: part of `make bench`.

In: questions and paragraphs of SQuAD, in the folder of corpora that $TEXTVEIL_CORPORA names. Out: one rate at a time.
Not here: the same for a user's own texts (`textveil sweep --vary protect.tau=...`).

The budgets are those of STAMP's section 3.1, 2:1:4:3 of a base, under von Mises-Fisher noise. At the paper's own base
nearly every word survives on the default table, so the base is one at which some do.
"""

import gzip
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

TEXTS = 60
BASE = 25.0
TAUS = ("0.3", "0.4", "0.5", "0.6", "0.7")
"""The thresholds of STAMP's figure 5."""


def squad() -> tuple[list[str], list[str]]:
    """Paragraphs, each with its first question."""
    corpora = os.environ.get("TEXTVEIL_CORPORA")
    if corpora is None:
        return [], []
    first: dict[str, str] = {}
    with gzip.open(
        Path(corpora) / "squad_v11" / "dev.shared.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        for line in file:
            row = json.loads(line)
            first.setdefault(row["context"], row["question"])
    pairs = list(islice(first.items(), TEXTS))
    return [context for context, _ in pairs], [question for _, question in pairs]


def measurements() -> Iterator[dict[str, Any]]:
    """Similarity and the share of important words for every threshold; the task is the question, or the text itself."""
    from textveil import Privatizer
    from textveil_bench.option_sweep import sweep_option

    texts, questions = squad()
    if not texts:
        return
    for task, queries in (("question", questions), ("self", None)):

        def privatizer(tau: str, task: str = task) -> Privatizer:
            own = {} if task == "question" else {"task": "self"}
            return Privatizer(
                "polar",
                words={"casing": "copy"},
                protect={
                    "detectors": ["patterns", "tagger"],
                    "placeholders": ["none"],
                    "importance": "cosine",
                    "tau": float(tau),
                    **own,
                },
                groups={"budgets": "heuristic", "base": BASE},
                seed=1,
            )

        for row in sweep_option(texts, privatizer, TAUS, queries=queries):
            shared = {
                "data": "SQuAD dev",
                "release": f"{task}, tau {row.value}",
                "n": row.texts,
                "unit": "rate",
            }
            shares = row.shares
            important = shares["sensitive-important"] + shares["important"]
            for metric, value, low, high in (
                ("mean cosine", row.similarity.value, row.similarity.low, row.similarity.high),
                ("important words", important, None, None),
                ("mean epsilon", row.budget, None, None),
            ):
                yield {
                    "what": f"thresholds, SQuAD dev, {task}, tau {row.value}: {metric}",
                    "metric": metric,
                    "value": value,
                    "low": low,
                    "high": high,
                    **shared,
                }
