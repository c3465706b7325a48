"""Measures speed, and what attackers get, and writes rows: `make bench`.

In: the installed package, the packaged letter, corpora. Out: a JSON row per measurement in benchmarks/rows/.
Not here: any limit; a timing never decides a test.

Every row holds the configuration, the commit, versions, machine and the best of `--repeat` runs.
"""

import argparse
from collections.abc import Iterator
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import agent_costs  # the files beside this one
import agents_page
import attacks
import corpora
import decode
import detection
import encoder
import languages
import prompts
import report
import risks
import rowfiles
import selection
import startup
import stores
import thresholds
import volume
import whole_texts_page
from report import RATES, ROWS, STORES
from rich.console import Console
from rich.progress import track
from rich.table import Table

import gateway
import logs
import whole_texts
from textveil_bench.circumstances import read_circumstances
from textveil_bench.process_usage import measure_best_seconds

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ALSO = "phonenumbers", "pocketsphinx", "presidio-analyzer", *stores.ALSO
"""Packages whose versions matter besides."""

EPSILON = {
    "laplace": 5.0,
    "exponential": 8.0,
    "santext": 8.0,
    "santext+": 8.0,
    "custext": 6.0,
    "custext+": 6.0,
} | {
    "rantext": 6.0,
    "krr": 12.0,
    "codebook": 4.0,
    "cape": 12.0,
    "rankcape": 8.0,
}
"""Budgets per mechanism; 70 per unit of chord for the others. Time hardly depends on them."""


def measurements(repeat: int, words: int) -> Iterator[dict[str, Any]]:
    """One measurement at a time: what was run, and what it took."""
    sentence = "Maria from Lisbon saw the doctor on Monday about her blood pressure."
    from textveil import Privatizer
    from textveil.config import registry
    from textveil.table import load_table
    from textveil.text.tokens import tokenize

    letter = (files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8").strip()
    per_letter = len(tokenize([letter]).words)
    texts = [letter] * max(1, words // per_letter)
    size = sum(len(text.encode()) for text in texts)
    yield {
        "what": "tokenize",
        "unit": "MB/s",
        "value": size / 1e6 / measure_best_seconds(lambda: tokenize(texts), repeat),
    }
    for name in registry.list_names("mechanism"):
        epsilon = EPSILON.get(name, 70.0)
        table = load_table(codes="24" if registry.find_entry("mechanism", name).codes else None)
        privatizer = Privatizer(name, epsilon=None if name == "stencil" else epsilon, table=table)
        privatizer.privatize(sentence)
        for batch, chosen in (("batch", texts), ("one text", [letter])):
            done = list(privatizer.privatize_many(chosen))
            protected = sum(result.guarantee.protected for result in done)

            def run(p: Privatizer = privatizer, t: list[str] = chosen) -> object:
                return sum(1 for _ in p.privatize_many(t))

            yield {
                "what": f"mechanisms, {name}, {batch}",
                "unit": "us/protected word",
                "value": 1e6 * measure_best_seconds(run, repeat) / protected,
                "mechanism": name,
                "epsilon": epsilon,
                "table": privatizer.table.name,
                "texts": len(chosen),
                "words": per_letter * len(chosen),
                "protected": protected,
            }


def main() -> None:
    """Runs everything, appends the rows and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs per measurement; the best counts (default 3)"
    )
    parser.add_argument(
        "--only",
        choices=(
            "startup",
            "mechanisms",
            "decode",
            "selection",
            "files",
            "encoder",
            "detection",
            "attacks",
            "languages",
            "logs",
            "risk",
            "thresholds",
            "gateway",
            "stores",
            "prompts",
            "volume",
            "costs",
            "texts",
            *(f"texts:{part}" for part in whole_texts.PARTS),
        ),
        help="one part of it (default: all)",
    )
    parser.add_argument(
        "--words", type=int, default=10_000, help="words in a batch (default 10,000)"
    )
    options = parser.parse_args()
    console = Console()
    parts = {
        "startup": startup.measurements(options.repeat),
        "mechanisms": measurements(options.repeat, options.words),
        "decode": decode.measurements(options.repeat),
        "selection": selection.measurements(options.repeat),
        "files": corpora.measurements(options.repeat),
        "encoder": encoder.measurements(options.repeat),
        "detection": detection.measurements(options.repeat),
        "attacks": attacks.measurements(),
        "languages": languages.measurements(),
        "logs": logs.measurements(),
        "risk": risks.measurements(),
        "thresholds": thresholds.measurements(),
        "gateway": gateway.measurements(),
        "stores": stores.measurements(),
        "prompts": prompts.measurements(options.repeat),
        "volume": volume.measurements(options.repeat),
        "costs": agent_costs.measurements(),
        **{f"texts:{part}": whole_texts.measurements(part) for part in whole_texts.PARTS},
    }
    chosen = [
        part for name, part in parts.items() if options.only in (None, name, name.partition(":")[0])
    ]
    # seldom drawn, because two threads that wait for one another are slowed by any third
    found = track(
        chain(*chosen),
        description="measuring",
        console=Console(stderr=True),
        refresh_per_second=0.2,
    )
    shared = read_circumstances(*ALSO)
    rows = []
    for row in found:  # written as they come: a long run that is cut short keeps what it has
        rows.append(row)
        own = {"logs": logs.ROWS, "prompts": prompts.ROWS, "stores": STORES}
        own |= {"costs": agents_page.COSTS, "texts": whole_texts_page.ROWS}
        stored = own.get(row["what"].partition(", ")[0], RATES if "metric" in row else ROWS)
        rowfiles.keep(stored, [{**row, "repeat": options.repeat, **shared}])
    report.write()
    table = Table("what", "value", "unit")
    for row in rows:
        table.add_row(row["what"], f"{row['value']:.3g}", row["unit"])
    console.print(table)
    console.print(f"{len(rows)} rows stored in {ROWS.parent.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
