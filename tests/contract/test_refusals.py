"""Wrong options of the selecting family: one clear line, in Python and on the command line, and no word of the text."""

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.conftest import byte_level, save
from textveil import cli
from textveil.errors import TextveilError
from textveil.pipeline import privatizer
from textveil.pipeline.privatizer import Privatizer
from textveil.table.embedding import EmbeddingTable

CANARY = "Zyxqorvian"
CONTEXT: dict[str, Any] = {"context": "public", "bound": 3.0, "floor": 0.0, "epsilon": 20.0}

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("rankcape", {"epsilon": 4.0, "k": 0}, "greater than or equal to 1|1 or more|k "),
    ("rankcape", {"epsilon": 4.0, "k": 2.5}, "integer"),
    ("rankcape", {"epsilon": 4.0, "sizes": ()}, "size"),
    ("rankcape", {"epsilon": 4.0, "sizes": (3, 0)}, "sizes"),
    (
        "rankcape",
        {"epsilon": 4.0, "sizes": (3, 4), "heights": (1.0, 0.0)},
        "heights must fall from 1 to 0",
    ),
    (
        "rankcape",
        {"epsilon": 4.0, "sizes": (3, 4), "heights": (1.0, 0.2, 0.5)},
        "heights must fall from 1 to 0",
    ),
    (
        "rankcape",
        {"epsilon": 4.0, "sizes": (3, 4), "heights": (0.0, 0.5, 1.0)},
        "heights must fall from 1 to 0",
    ),
    ("rankcape", {"epsilon": 4.0, "sizes": (3,), "heights": (1.0, math.nan)}, "heights"),
    ("rankcape", {"epsilon": 4.0, "sizes": (3,), "heights": (2.0, 0.0)}, "heights"),
    ("rankcape", {**CONTEXT, "lambda_L": -1.0}, "lambda_L"),
    ("rankcape", {**CONTEXT, "lambda_D": math.inf}, "lambda_D"),
    ("rankcape", {**CONTEXT, "form": "sum"}, "form"),
    ("rankcape", {**CONTEXT, "distance": "cosine"}, "distance"),
    ("rankcape", {**CONTEXT, "context": "all"}, "mode|context"),
    ("rankcape", {**CONTEXT, "bound": 0.0}, "bound must be above mechanism.floor"),
    ("rankcape", {**CONTEXT, "bound": math.nan}, "bound"),
    ("rankcape", {**CONTEXT, "model": "/no/such/folder"}, "/no/such/folder|folder"),
    ("cape", {**CONTEXT, "context": "all"}, "mode|context"),
    ("cape", {**CONTEXT, "bound": -1.0}, "bound must be above mechanism.floor"),
    ("cape", {**CONTEXT, "model": "/no/such/folder"}, "/no/such/folder|folder"),
    ("cape", {"epsilon": 20.0, "buckets": 0}, "buckets"),
    ("cape", {"epsilon": 20.0, "buckets": 10**9}, "buckets"),
    ("cape", {"epsilon": 20.0, "edges": "none"}, "edges"),
    ("cape", {"nominal": math.nan}, "nominal"),
    ("cape", {"nominal": -1.0}, "nominal"),
    ("cape", {"nominal": 3.0, "epsilon": 20.0}, "give epsilon or nominal, not both"),
    ("cape", {"epsilon": 0.5}, "cape cannot promise less than epsilon"),
    ("cape", {"epsilon": 20.0, "nominals": 3.0}, "no option of cape is named 'nominals'"),
    ("custext", {"epsilon": 4.0, "k": 1}, "k "),
    ("custext", {"epsilon": 4.0, "mapping": "liberal"}, "mapping"),
    ("custext", {"nominal": 0.0}, "nominal"),
    ("custext+", {"nominal": math.inf}, "nominal"),
    ("rantext", {"nominal": -3.0}, "nominal"),
    ("rantext", {"nominal": math.nan}, "nominal"),
    ("santext+", {"epsilon": 4.0, "p": 1.0}, "p "),
    ("santext+", {"epsilon": 4.0, "p": 0.0}, "p "),
    ("santext+", {"epsilon": 4.0, "share": 0.0}, "share"),
    ("santext+", {"epsilon": 4.0, "share": 1.5}, "share"),
    ("santext+", {"c": 0.0}, "c "),
    ("santext", {"c": -1.0}, "c "),
    ("santext", {"epsilon": 4.0, "calibration": "none"}, "calibration"),
    ("krr", {"epsilon": 4.0, "k": 2}, "no option of krr is named 'k'"),
]
IDS = [f"{i}-{name}-{next(reversed(options))}" for i, (name, options, _) in enumerate(WRONG)]


def fine(message: str, words: tuple[str, ...]) -> None:
    assert "\n" not in message.strip()
    assert len(message) < 400
    assert CANARY.lower() not in message.lower()
    assert not set(words) & set(message.replace(",", " ").split())


@pytest.mark.parametrize(("name", "options", "says"), WRONG, ids=IDS)
def test_in_python(
    name: str, options: dict[str, Any], says: str, small_table: EmbeddingTable
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TextveilError, match=says) as refused:
            Privatizer(name, table=small_table, **options).privatize(
                f"{CANARY} river castle garden the silver"
            )
    fine(str(refused.value), small_table.words)


def spelled(value: object) -> str | None:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return None if value is None else str(value)


@pytest.mark.parametrize(("name", "options", "says"), WRONG, ids=IDS)
def test_on_the_command_line(
    name: str,
    options: dict[str, Any],
    says: str,
    small_table: EmbeddingTable,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: small_table)
    arguments = ["privatize", f"{CANARY} river castle garden the silver", "--mechanism", name]
    for option, value in options.items():
        text = spelled(value)
        if option == "epsilon":
            arguments += ["--epsilon", str(value)]
        elif text is not None:
            arguments += ["-o", f"mechanism.{option}={text}"]
    code = cli.main(arguments)
    written = capsys.readouterr()
    assert code == 2, written.err
    assert written.out == ""
    lines = [line for line in written.err.strip().splitlines() if not line.startswith("warning")]
    assert len(lines) == 1, written.err
    fine(lines[0], small_table.words)


@pytest.mark.parametrize("name", ["cape", "rankcape"])
def test_a_context_over_pieces_needs_the_unit_and_the_table_of_its_model(
    name: str, wordpiece_table: EmbeddingTable, tmp_path: Path
) -> None:
    with pytest.raises(TextveilError, match="word pieces") as refused:
        Privatizer(name, table=wordpiece_table, words={"unit": "word"}, **CONTEXT)
    fine(str(refused.value), ())
    other = save(
        tmp_path, "GPT2LMHeadModel", byte_level(framed=False), n_embd=8, n_head=1, n_layer=1
    )
    words = {"unit": "wordpiece"}
    privatizer = Privatizer(
        name, table=wordpiece_table, words=words, **{**CONTEXT, "epsilon": 400.0}, model=str(other)
    )
    with pytest.raises(TextveilError, match="the model's own table") as refused:
        privatizer.privatize(f"{CANARY} river")
    fine(str(refused.value), ())


TWO: dict[str, dict[str, Any]] = {
    "krr": {"epsilon": 2.0},
    "rankcape": {"epsilon": 2.0, "k": 20},
    "cape": {"epsilon": 12.0},
    "custext": {"epsilon": 2.0},
    "custext+": {"epsilon": 2.0},
    "rantext": {"epsilon": 2.0},
    "santext": {"epsilon": 2.0},
    "santext+": {"epsilon": 2.0},
}


@pytest.mark.parametrize("name", TWO)
def test_a_table_of_two_words_is_no_error(name: str) -> None:
    table = EmbeddingTable.build(
        name="two", words=["river", "castle"], vectors=np.array([[1.0, 0.0], [0.6, 0.8]])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released = {
            word
            for seed in range(12)
            for word in Privatizer(name, table=table, seed=seed, **TWO[name])
            .privatize("river castle river")
            .text.split()
        }
    assert released == {"river", "castle"}
