"""Compares attackers who learn from the same public texts: `learned`, and `network` beside it.

In: the folder of corpora that $TEXTVEIL_CORPORA names (`ag_news`, `sst2`). Out: one rate at a time.
Not here: the attackers (`textveil.evaluate.attack`), and what risk says (`risks`).

Both see the same releases of the same texts, and try the mechanism on the same public texts, so the difference is taken
word by word. It takes minutes a row, and is no part of `make bench`: `python attackers.py > rows/attackers.jsonl`.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attacks import SEED, news, sentences, title  # the file beside this one

TEXTS = {"AG News": 200, "SST-2": 436}
"""Private texts of each kind, at most."""

NETWORK: Mapping[str, Any] = {}
"""Options of the network that are not its defaults."""

RELEASES: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("AG News", "rankcape", {"epsilon": 7}),
    ("SST-2", "rankcape", {"epsilon": 7}),
    ("AG News", "exponential", {"epsilon": 7}),
    ("SST-2", "exponential", {"epsilon": 7}),
    ("AG News", "rankcape", {"epsilon": 4}),
    ("AG News", "noise", {"epsilon": 60}),
    ("SST-2", "noise", {"epsilon": 60}),
    ("SST-2", "polar", {"epsilon": 80}),
)


def measurements(only: str = "") -> Iterator[dict[str, Any]]:
    """What each attacker names, and by how much more the second; none where there are no corpora."""
    if "TEXTVEIL_CORPORA" not in os.environ:
        return
    corpora = Path(os.environ["TEXTVEIL_CORPORA"])
    for data, mechanism, options in RELEASES:
        if only not in f"{data}, {title(mechanism, options)}":
            continue
        folder = corpora / ("ag_news" if data == "AG News" else "sst2")
        if data == "AG News":
            public, texts = (
                news(folder / name) for name in ("train_subset.tsv.gz", "test.shared.tsv.gz")
            )
        else:
            public, texts = (
                sentences(folder / name) for name in ("train.tsv.gz", "dev.shared.tsv.gz")
            )
        yield from compare(data, mechanism, options, texts, tuple(dict.fromkeys(public)))


def compare(
    data: str, mechanism: str, options: Mapping[str, Any], texts: list[str], public: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """The rates of both attackers on one release, and their difference in pairs."""
    from textveil import Privatizer
    from textveil.evaluate.attack import Case
    from textveil.evaluate.attack.learned import Learned
    from textveil.evaluate.attack.network import NetworkAttack
    from textveil.randomness.streams import SeededRandomness
    from textveil_bench import intervals

    known = {*public}
    private = [text for text in dict.fromkeys(texts) if text not in known][: TEXTS[data]]
    privatizer = Privatizer(mechanism, table="minilm-s", seed=SEED, **options)
    case = Case.create(privatizer, private)
    named, base = {}, {"data": data, "release": title(mechanism, options), "seed": SEED}
    for attacker in (Learned(public=public), NetworkAttack(public=public, **NETWORK)):
        start = time.perf_counter()
        top = next(attacker.run(case, rng=SeededRandomness(SEED).derive_part(2**100)))
        named[attacker.name] = top.values
        yield {
            **base,
            "metric": f"{attacker.name}: top-1",
            **_summarize(intervals.mean(top.values, case.view.text)),
            "baseline": top.baseline,
            "n": len(top.values),
            "texts": len(private),
            "public": len(public),
            "seconds": round(time.perf_counter() - start, 1),
        }
    difference = named["network"] - named["learned"]
    yield {
        **base,
        "metric": "network - learned: top-1",
        **_summarize(intervals.mean(difference, case.view.text)),
        "n": len(difference),
        "texts": len(private),
    }


def _summarize(rate: Any) -> dict[str, float]:
    return {name: round(float(getattr(rate, name)), 4) for name in ("value", "low", "high")}


if __name__ == "__main__":
    for row in measurements(*sys.argv[1:]):
        print(json.dumps(row), flush=True)
