"""Measures the range of the bundled masked LM's logits on public text: `make logit-bounds`.

In: WikiText-2, test part, and the packaged tables. Out: src/textveil/data/logits/NAME.json.
Not here: how logits are measured (`textveil.models.calibration`), and other texts (`textveil table
calibrate`).
"""

import argparse
import json
from pathlib import Path

import numpy as np
from rich.console import Console

from textveil.cli import progress
from textveil.models import LogitRange, Ragged, load_context, measure_logits
from textveil.models.adapters import read_manifest
from textveil.table.embedding import EmbeddingTable, load_table
from textveil.text.public import is_public
from textveil.text.tokens import Tokens, tokenize
from training import cli, data

TABLES = "minilm", "minilm-s"

POSITIONS = 2_000
"""Number of hidden words, evenly spread over those not on the public list."""


def measure(table: EmbeddingTable, tokens: Tokens) -> LogitRange:
    """The range of the logits of a table's words at evenly spread words of texts."""
    asked = np.array([i for i, word in enumerate(tokens.words) if not is_public(word)], np.int64)
    spread = asked[np.linspace(0, len(asked) - 1, min(POSITIONS, len(asked))).astype(np.int64)]
    with progress.show_bars(lambda _, done: f"{done:,}", " words") as report:
        return measure_logits(
            load_context(table), Ragged.build(tokens), positions=spread, report=report
        )


def text(found: LogitRange) -> str:
    """JSON with the adapter, the text, and a line for each entry."""
    source = {
        "text": "WikiText-2, test part, CC BY-SA 3.0; here are counts only",
        "by": "training/logits.py",
    }
    whole = {**found.to_json(), "adapter": read_manifest("masked-lm")["files"], "source": source}
    return (
        "{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in whole.items())
        + "\n}\n"
    )


def main() -> None:
    """Writes the file of each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=cli.DATA / "logits", help="default: into the package"
    )
    parser.add_argument(
        "tables", nargs="*", default=TABLES, help="names (default: all that ship and hold words)"
    )
    given = cli.with_corpora(parser)
    tokens = tokenize(data.wikitext(given.data, "test_raw"))
    given.out.mkdir(exist_ok=True)
    for name in given.tables:
        found = measure(load_table(name), tokens)
        (given.out / f"{name}.json").write_text(text(found), encoding="utf-8")
        Console(stderr=True).print(f"{name}: {found.largest:.3f}, of {found.positions:,} words")


if __name__ == "__main__":
    main()
