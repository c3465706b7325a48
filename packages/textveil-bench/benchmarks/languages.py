"""Asks what a language model adds to an attacker who learned, on real news. Part of `make bench`.

In: the folder of corpora that $TEXTVEIL_CORPORA names (`ag_news`). Out: one rate at a time, and how much more it is
than without such a model.
The generative model runs where `textveil-bench[generative]` is installed, on fewer texts, because it takes most of
the time.
Not here: the attacker (`textveil.evaluate.attack.learned`), and other attacks (`attacks`).

The attacker learns from a part of the training texts; test texts are private. Draws are seeded, as in `attacks`.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attacks import SEED, news, title  # the file beside this one

from textveil_bench.tasks import judge_models, small_model

TRIED = 50
"""Words of public texts that the mechanism is tried on, for each text that is attacked."""

RELEASES: tuple[tuple[str, str | None, Mapping[str, Any], int], ...] = (
    ("rankcape", None, {"k": 100, "epsilon": 7}, 400),
    ("codebook", "8", {"epsilon": 4}, 400),
    ("noise", None, {"epsilon": 60}, 100),
)
"""Mechanisms, the codes of their tables, options, and how many texts are attacked: few where a law is estimated."""

AGAIN = "one pass more"
"""Looks at the neighbours once more, as all do that ask a model: what the model adds is beyond this."""

ATTACKERS: Mapping[str, Mapping[str, Any]] = {
    AGAIN: {"passes": 4},
    "none": {},
    "trigram": {"language": "trigram"},
    "beam": {"beam": 64},
    "trigram and beam": {"language": "trigram", "beam": 64},
}

GENERATIVE: Mapping[str, Mapping[str, Any]] = {
    AGAIN: ATTACKERS[AGAIN],
    "Gemma 3 270M": {"language": "causal"},
}
FEW = 60
"""Texts that are attacked with the generative model, and with none beside it, where the law is exact."""


def measurements() -> Iterator[dict[str, Any]]:
    """What each attacker names; none where there are no corpora."""
    if "TEXTVEIL_CORPORA" not in os.environ:
        return
    folder = Path(os.environ["TEXTVEIL_CORPORA"]) / "ag_news"
    public = dict.fromkeys(news(folder / "train_subset.tsv.gz"))
    private = [text for text in news(folder / "test.shared.tsv.gz") if text not in public]
    for mechanism, codes, options, count in RELEASES:
        yield from _measured(
            "AG News", mechanism, codes, options, (tuple(public), private[:count]), ATTACKERS
        )
    if all(map(find_spec, small_model.EXTRA)):
        with tempfile.TemporaryDirectory() as place, judge_models.reduce_precision():
            own = {"model": str(small_model.convert_model(Path(place)))}
            attackers = {
                name: {**each, **(own if each.get("language") else {})}
                for name, each in GENERATIVE.items()
            }
            for mechanism, codes, options, _ in RELEASES[:2]:
                few = tuple(public), private[:FEW]
                yield from _measured(
                    f"{FEW} texts of AG News", mechanism, codes, options, few, attackers
                )


def _measured(
    data: str,
    mechanism: str,
    codes: str | None,
    options: Mapping[str, Any],
    given: tuple[tuple[str, ...], list[str]],
    attackers: Mapping[str, Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    """What attackers name, given public and private texts; the others add to the first."""
    from textveil import Privatizer
    from textveil.evaluate.attack import Case, Learned
    from textveil.randomness.streams import SeededRandomness
    from textveil.table import load_table
    from textveil_bench import intervals

    public, private = given
    privatizer = Privatizer(mechanism, table=load_table(codes=codes), seed=SEED, **options)
    case = Case.create(privatizer, private)
    again = {}
    for name, own in attackers.items():
        start = time.perf_counter()
        attacker = Learned(public=public, simulated=TRIED * len(private), **own)
        found = list(attacker.run(case, rng=SeededRandomness(SEED).derive_part(2**100)))
        shared = {
            "seconds": round(time.perf_counter() - start, 1),
            "data": "AG News",
            "seed": SEED,
            "unit": "mean",
        }
        release = f"{title(mechanism, options)}{', 8 codes' * bool(codes)}: {name}"
        for each in found:
            texts = case.view.text[each.where]
            rates = {each.metric: intervals.mean(each.values, texts)}
            if name == AGAIN:
                again[each.metric] = each.values
            else:
                more = each.values - again[each.metric]
                rates[f"{each.metric}, more"] = intervals.mean(more, texts, share=False)
            for metric, rate in rates.items():
                yield {
                    "what": f"languages, {data}, {release}: {metric}",
                    "release": release,
                    "metric": metric,
                    "value": rate.value,
                    "low": rate.low,
                    "high": rate.high,
                    "n": len(each.values),
                    **shared,
                }
