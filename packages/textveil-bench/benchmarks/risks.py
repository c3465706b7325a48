"""Asks what attackers name of texts under a profile, with and without public texts of the kind. Part of `make bench`.

In: the folder of corpora that $TEXTVEIL_CORPORA names (`yelp`, `ag_news`). Out: one rate at a time.
Not here: the attackers (`textveil.evaluate`), and mechanisms at equal risk (`textveil bench choose`).

Test texts are private; the attacker who learned has read all texts of the other split. Every private word counts: names
that were drawn from lists, too, and what became a placeholder as not named. Draws are seeded, as in `attacks`.
"""

import csv
import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attacks import SEED, news  # the file beside this one

PROFILE = "document"
TEXTS = 60
"""Private texts of each kind."""

PUBLIC = "public texts"
ATTACKERS = (PUBLIC, "uniform", "unigram", "context")


def reviews(path: Path) -> list[str]:
    """The texts of Yelp's reviews."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [row["text"].strip() for row in csv.DictReader(file, delimiter="\t")]


def measurements() -> Iterator[dict[str, Any]]:
    """What each attacker names; none where there are no corpora."""
    if "TEXTVEIL_CORPORA" not in os.environ:
        return
    corpora = Path(os.environ["TEXTVEIL_CORPORA"])
    yelp, ag_news = corpora / "yelp", corpora / "ag_news"
    yield from _measured(
        "reviews", reviews(yelp / "test.shared.tsv.gz"), reviews(yelp / "dev_all.tsv.gz")
    )
    yield from _measured(
        "news", news(ag_news / "test.shared.tsv.gz"), news(ag_news / "train_subset.tsv.gz")
    )


def _measured(kind: str, texts: list[str], others: list[str]) -> Iterator[dict[str, Any]]:
    import numpy as np

    from textveil import Privatizer
    from textveil.config import resolve
    from textveil.evaluate.attack import Case
    from textveil.evaluate.risk import assess
    from textveil.randomness.streams import SeededRandomness
    from textveil_bench import intervals

    public = tuple(dict.fromkeys(others))
    private = [text for text in dict.fromkeys(texts) if text not in {*public}][:TEXTS]
    privatizer = Privatizer.from_profile(PROFILE, seed=SEED)
    case = Case.build(privatizer, privatizer.rehearse(private), names=True)
    for attacker in ATTACKERS:
        start = time.perf_counter()
        found = assess(
            case,
            prior="unigram" if attacker == PUBLIC else attacker,
            public=public if attacker == PUBLIC else (),
            rng=SeededRandomness(SEED).derive_part(2**100),
        )
        named = np.concatenate([each.named[each.private] for each in found]).astype(np.float64)
        rate = intervals.mean(
            named, np.repeat(np.arange(len(found)), [int(each.private.sum()) for each in found])
        )
        yield {
            "what": f"risk, {kind}, {PROFILE}, {attacker}",
            "unit": "mean",
            "release": f"{kind}, {len(private)} texts",
            "data": kind,
            "configuration": {**resolve(profile=PROFILE).to_dict(), "seed": None},
            "metric": attacker,
            "value": rate.value,
            "low": rate.low,
            "high": rate.high,
            "n": len(named),
            "texts": len(private),
            "public": len(public) if attacker == PUBLIC else 0,
            "seed": SEED,
            "seconds": round(time.perf_counter() - start, 1),
        }
