"""Compares attackers who learn from the same public texts: `learned`, and `network` beside it.

In: the folder of corpora that $TEXTVEIL_CORPORA names (`ag_news`, `sst2`). Out: one rate at a time.
Not here: the attackers (`textveil.evaluate.attack`), and what risk says (`risks`).

Both see the same releases of the same texts, and try the mechanism on the same public texts, so the difference is taken
word by word. It takes minutes a row, and is no part of `make bench`: `python attackers.py`, or of one release with
fewer texts `python attackers.py "AG News, noise" --texts 60`.
"""

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import rowfiles
from attacks import SEED, news, sentences, title  # the files beside this one

ROWS = Path(__file__).resolve().parent / "rows" / "attackers.jsonl"

TEXTS = {"AG News": 200, "SST-2": 436}
"""Private texts of each kind, at most."""

RELEASES: tuple[tuple[str, str, str | None, Mapping[str, Any]], ...] = (
    ("AG News", "rankcape", None, {"epsilon": 7}),
    ("SST-2", "rankcape", None, {"epsilon": 7}),
    ("AG News", "exponential", None, {"epsilon": 7}),
    ("SST-2", "exponential", None, {"epsilon": 7}),
    ("AG News", "noise", None, {"epsilon": 80}),
    ("SST-2", "noise", None, {"epsilon": 80}),
    ("SST-2", "polar", None, {"epsilon": 80}),
    ("AG News", "codebook", "8", {"epsilon": 4}),
    ("SST-2", "codebook", "8", {"epsilon": 4}),
)
"""Texts, mechanisms, the codes of their tables, and options."""


def measurements(only: str, count: int | None, beam: int) -> Iterator[dict[str, Any]]:
    """What each attacker names, and by how much more the second; none where there are no corpora."""
    if "TEXTVEIL_CORPORA" not in os.environ:
        return
    corpora = Path(os.environ["TEXTVEIL_CORPORA"])
    for data, mechanism, codes, options in RELEASES:
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
        known = {*public}
        private = [text for text in dict.fromkeys(texts) if text not in known]
        private = private[: count or TEXTS[data]]
        for row in _compare(mechanism, codes, options, private, tuple(dict.fromkeys(public)), beam):
            yield {"data": data, **row}


def _compare(
    mechanism: str,
    codes: str | None,
    options: Mapping[str, Any],
    private: list[str],
    public: tuple[str, ...],
    beam: int,
) -> Iterator[dict[str, Any]]:
    """The rates of both attackers on one release, and their difference in pairs."""
    from textveil import Privatizer
    from textveil.evaluate.attack import Case
    from textveil.evaluate.attack.learned import Learned
    from textveil.evaluate.attack.network import NetworkAttack
    from textveil.randomness.streams import SeededRandomness
    from textveil.table import load_table
    from textveil_bench import intervals
    from textveil_bench.circumstances import read_circumstances

    table = load_table("minilm" if codes else "minilm-s", codes=codes)  # codes are of `minilm`
    case = Case.create(Privatizer(mechanism, table=table, seed=SEED, **options), private)
    named = {}
    base = {
        "release": f"{title(mechanism, options)}{f', {codes} codes' if codes else ''}",
        "seed": SEED,
        "beam": beam,
        "texts": len(private),
        "public": len(public),
        **read_circumstances(),
    }
    for attacker in (Learned(public=public, beam=beam), NetworkAttack(public=public, beam=beam)):
        start = time.perf_counter()
        top = next(attacker.run(case, rng=SeededRandomness(SEED).derive_part(2**100)))
        named[attacker.name] = top.values
        yield {
            **base,
            "metric": f"{attacker.name}: top-1",
            **_summarize(intervals.mean(top.values, case.view.text)),
            "baseline": top.baseline,
            "n": len(top.values),
            "seconds": round(time.perf_counter() - start, 1),
        }
    more = named["network"] - named["learned"]
    yield {
        **base,
        "metric": "network - learned: top-1",
        **_summarize(intervals.mean(more, case.view.text, share=False)),
        "n": len(more),
    }


def _summarize(rate: Any) -> dict[str, float]:
    return {name: round(float(getattr(rate, name)), 6) for name in ("value", "low", "high")}


def main() -> None:
    """Measures what the arguments say, and stores each release when both attackers are done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="?", default="", help="a part of `AG News, noise epsilon 80`")
    parser.add_argument("--texts", type=int, help="private texts, at most")
    parser.add_argument("--beam", type=int, default=0, help="texts that a beam search keeps")
    parser.add_argument("--rows", type=Path, default=ROWS)
    given = parser.parse_args()
    found = []
    for row in measurements(given.only, given.texts, given.beam):
        print(row["data"], row["release"], row["metric"], row["value"], flush=True)
        found.append(row)
        if " - " in row["metric"]:
            rowfiles.keep(given.rows, found, ("data", "release", "beam", "metric"))


if __name__ == "__main__":
    main()
