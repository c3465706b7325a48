"""`audit --unit` and `attack --unit`: honest releases pass, every broken twin is found, no text is printed."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.whole_texts import TWINS
from training.notes import write_notes

from textveil import cli
from textveil.library import Library
from textveil.mechanism import NoisyCount, RandomizedResponse, SubsetSelection
from textveil.pipeline import BallotBox, TextPrivatizer
from textveil.randomness import Draws, Flags, Ids, Ints
from textveil_bench.attack import programs
from textveil_bench.cli import whole_texts

Run = Callable[..., tuple[int, str, str]]

CANARY = "Zyxqorvian"
UNIT = ("--unit", "document", "--library", "notes.library")
AUDIT = ("audit", *UNIT, "--small", "--json", "--epsilon", "1")
ATTACK = (
    "attack",
    "private.csv",
    "--field",
    "text",
    *UNIT,
    "--json",
    "--seed",
    "5",
    "--epsilon",
    "2",
)

QUICK = ("-o", "attack.membership.trials=2000")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes_library: Library) -> Path:
    """A folder with the library, and 60 notes that are not in it, each with a name of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(whole_texts, "SMALL_TRIALS", 3000)
    notes_library.save("notes.library")
    with Path("private.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "kind"])
        for note in write_notes(50)[:60]:
            writer.writerow([f"{note['text']} It is for {CANARY}.", note["kind"]])
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command: exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main([*arguments])
        out, err = capsys.readouterr()
        assert CANARY not in out + err
        return code, out, err

    return run


def read_findings(out: str) -> dict[str, dict[str, Any]]:
    return {each["mechanism"]: each for each in map(json.loads, out.splitlines())}


# ---- audit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "claims"),
    [
        ((), {"another document, by cells": 1, "another document, by texts": 1}),
        (
            ("--unit", "sentence"),
            {
                "another sentence of two, by cells": 1,
                "another sentence of two, by texts": 1,
                "two other sentences, by cells": 2,
                "two other sentences, by texts": 2,
            },
        ),
        (
            ("--way", "reports"),
            {"another document": 1, "another document with another label": 1},
        ),
        (
            ("--way", "counts", "--cells", "6"),
            {
                "document, one more": 1,
                "document, one replaced": 2,
                "author of 5 documents, 2 of which are counted, one more": 1,
                "author of 5 documents, 2 of which are counted, one replaced": 2,
            },
        ),
    ],
)
def test_honest_releases_hold(run: Run, options: tuple[str, ...], claims: dict[str, int]) -> None:
    code, out, err = run(*AUDIT, *options)
    assert (code, err) == (0, "")
    found = read_findings(out)
    assert {name: each["claimed"] for name, each in found.items()} == pytest.approx(claims)
    for each in found.values():
        assert each["verdict"] == "holds"
        assert each["found"] <= each["claimed"]
        assert "at 95%" in each["why"]
    assert any(each["found"] > 0.25 * each["claimed"] for each in found.values())


def respond_at_twice(self: RandomizedResponse, draws: Draws, codes: Ids) -> Ids:
    return DRAW_CELL(RandomizedResponse(self.codes, 2 * self.epsilon), draws, codes)


def select_at_twice(self: SubsetSelection, draws: Draws, codes: Ids) -> Flags:
    """Holds the true code as at twice epsilon."""
    twice = SubsetSelection(self.codes, 2 * self.epsilon)
    vars(twice)["size"] = self.size
    return DRAW_SET(twice, draws, codes)


def show_true_cell(self: TextPrivatizer, cells: Ids, sizes: Any, randomness: Any) -> Any:
    """Draws the cell, but takes the text from the true one."""
    drawn, _ = DRAW_TEXT(self, cells, sizes, randomness)
    return drawn, np.array([self.level.find_pool(cell)[0] for cell in cells.tolist()])


def add_nothing(self: NoisyCount, draws: Draws, counts: Ints) -> Ints:
    return counts


def add_to_seen(self: NoisyCount, draws: Draws, counts: Ints) -> Ints:
    return np.where(counts > 0, DRAW_COUNT(self, draws, counts), 0)


def count_all(self: BallotBox, is_counted: Flags, subjects: Any) -> Flags:
    return np.zeros(len(is_counted), np.bool_)


def add_for_one(self: NoisyCount, draws: Draws, counts: Ints) -> Ints:
    """Adds the noise of one document, however many are counted of a subject."""
    return DRAW_COUNT(NoisyCount(self.epsilon), draws, counts)


class AtThePriceOfOne:
    """A statement that takes a replacement for one addition."""

    epsilon = replaced = 1.0


DRAW_CELL, DRAW_SET = RandomizedResponse.draw, SubsetSelection.draw
DRAW_TEXT, DRAW_COUNT = TextPrivatizer._draw, NoisyCount.draw

COUNTS = ("--way", "counts", "--cells", "6")
BROKEN: list[tuple[str, Any, str, Any, tuple[str, ...], str]] = [
    ("cells at twice", RandomizedResponse, "draw", respond_at_twice, (), "by cells"),
    ("text of the true cell", TextPrivatizer, "_draw", show_true_cell, (), "by texts"),
    ("reports", SubsetSelection, "draw", select_at_twice, ("--way", "reports"), "another document"),
    ("no noise", NoisyCount, "draw", add_nothing, COUNTS, "document, one more"),
    ("noise on seen bins only", NoisyCount, "draw", add_to_seen, COUNTS, "document, one more"),
    (
        "a subject with five documents charged once",
        NoisyCount,
        "draw",
        add_for_one,
        COUNTS,
        "author of 5",
    ),
    ("uncounted surplus", BallotBox, "_find_surplus", count_all, COUNTS, "author of 5"),
    (
        "replaced at the price of added or removed",
        BallotBox,
        "build_guarantee",
        lambda self: AtThePriceOfOne(),
        COUNTS,
        "document, one replaced",
    ),
]


@pytest.mark.parametrize(
    ("owner", "method", "broken", "options", "where"),
    [each[1:] for each in BROKEN],
    ids=[each[0] for each in BROKEN],
)
def test_a_broken_twin_is_found(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    method: str,
    broken: Any,
    options: tuple[str, ...],
    where: str,
) -> None:
    monkeypatch.setattr(owner, method, broken)
    code, out, err = run(*AUDIT, *options)
    assert code == 1
    assert "violated" in err
    verdicts = {name: each["verdict"] for name, each in read_findings(out).items()}
    assert any(where in name and verdict == "violated" for name, verdict in verdicts.items())


def test_every_defect_of_counts_has_a_broken_verb() -> None:
    defects = {twin.defect for twin in TWINS} - {"a ball by radius"}  # a law that is not ours
    assert defects <= {each[0] for each in BROKEN}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("audit", *UNIT), "needs a budget: set epsilon (--epsilon)"),
        (("audit", "--unit", "document", "--epsilon", "1"), "set texts.library (--library)"),
        ((*AUDIT, "noise"), "leave out mechanism.name"),
        ((*AUDIT, "--table", "glove"), "leave out table.name"),
        ((*AUDIT, "--all", "--checks", "joint"), "leave out --all and --checks"),
        ((*AUDIT, "--cells", "9"), "has no level '9'"),
        ((*AUDIT, "--unit", "sentence", "--way", "counts"), "must go with --unit document"),
        ((*AUDIT, "--way", "reports", "--sure", "0.5"), "without --sure"),
        (("audit", "noise", "--way", "texts"), "--way must go with whole texts"),
        ((*ATTACK, "--mechanism", "noise"), "leave out mechanism.name"),
        ((*ATTACK, "--pool", "x", "--releases", "2"), "leave out --pool and --releases"),
        ((*ATTACK, "--unit", "sentence"), "give --unit document; `textveil audit"),
        ((*ATTACK, "--attacks", "linkage"), "no attack on whole texts is named 'linkage'"),
        ((*ATTACK, "--attacks", "attribute"), "no attack can be run here: attribute: it needs"),
        ((*ATTACK, "-o", "attack.membership.trials=9"), "trials must be"),
        ((*ATTACK, "--way", "what"), "--way needs texts|reports|counts"),
        (("attack", "private.csv", "--way", "texts"), "--way must go with whole texts"),
        (("attack", "private.csv", "--library", "notes.library"), "must go with whole texts"),
    ],
)
def test_errors_are_one_line(run: Run, arguments: tuple[str, ...], says: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_library_of_which_all_texts_are_alike_has_no_neighbours(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Library, "find_cells", lambda self, texts, level: np.zeros(len(texts), int))
    code, _, err = run(*AUDIT)
    assert code == 2
    assert "choose another level (--cells)" in err


# ---- attack --------------------------------------------------------------------------------------


def attack(run: Run, *options: str) -> dict[tuple[str, str], dict[str, Any]]:
    code, out, _ = run(*ATTACK, *QUICK, *options)
    assert code == 0
    return {
        (row["attack"], next(iter(row["setting"].values()), row["metric"])): row
        for row in json.loads(out)["rows"]
        if row["slice"] == "all" and row["headline"]
    }


def test_attacks_on_public_texts_stand_beside_their_bounds(run: Run) -> None:
    found = attack(run, "--label", "kind")
    assert {name for name, _ in found} == {"membership", "attribute", "words"}
    member = found["membership", "another text (1)"]
    assert member["note"] == "at most 0.762 at epsilon 2"
    assert member["value"] == pytest.approx(0.62, abs=0.08)  # of randomised response among 4
    cells = found["attribute", "cells"]
    assert cells["note"].startswith("at most 0.7")
    assert cells["baseline"] < cells["low"]
    assert found["words", "content words"]["value"] < 0.3
    assert found["words", "names"]["value"] == 0.0


@pytest.mark.parametrize(
    ("way", "bounds"),
    [
        ("reports", {"another text (1)": 0.762}),
        ("counts", {"one text more": 0.762, "another text (1)": 0.964}),
    ],
)
def test_attacks_on_reports_and_counts(run: Run, way: str, bounds: dict[str, float]) -> None:
    found = attack(run, "--way", way, "--label", "kind", "--cells", "6")
    assert {name for name, _ in found} == {"membership", "attribute"}
    for name, bound in bounds.items():
        row = found["membership", name]
        assert f"at most {bound:.3f}" in row["note"]
        assert 0.3 < row["value"] <= bound + 0.08
    label = found["attribute", "releases"]
    assert label["baseline"] < label["value"] < 0.95


@pytest.mark.parametrize("way", ["texts", "reports", "counts"])
def test_every_attack_wins_where_epsilon_allows_all(run: Run, way: str) -> None:
    found = attack(
        run, "--way", way, "--label", "kind", "--epsilon", "30", "--attacks", "membership,attribute"
    )
    assert all(row["value"] > 0.99 for (name, _), row in found.items() if name == "membership")
    labels = [row["value"] for (name, _), row in found.items() if name == "attribute"]
    assert max(labels) > 0.9


def test_words_are_found_where_texts_stay(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(self: TextPrivatizer, texts: Any) -> Iterator[Any]:
        for text in texts:
            yield type("Kept", (), {"text": text})()

    monkeypatch.setattr(TextPrivatizer, "privatize_many", keep)
    assert attack(run, "--attacks", "words")["words", "names"]["value"] == 1.0


def test_a_table_and_few_texts(run: Run) -> None:
    arguments = [each for each in ATTACK if each != "--json"]
    code, out, err = run(*arguments, *QUICK, "--limit", "20", "--attacks", "membership,attribute")
    assert code == 0
    assert "what epsilon allows" in out
    assert "at most 0.762 at epsilon 2" in out
    assert "attribute: not run: it needs labels" in err


def test_texts_of_the_library_are_refused(run: Run, notes_library: Library) -> None:
    Path("public.txt").write_text("\n".join(notes_library.texts[:9]), encoding="utf-8")
    for way in ("texts", "reports", "counts"):
        code, _, err = run("attack", "public.txt", *UNIT, "--epsilon", "1", "--way", way)
        assert code == 2
        assert "made without the texts that are released" in err


def test_texts_are_encoded_once(notes_library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = programs.remember_cells(notes_library)
    assert remembered == notes_library
    level = notes_library.get_level("6")
    texts = ["A note.", "Another letter.", "A note."]
    first = remembered.find_cells(texts, level)
    assert first.tolist() == notes_library.find_cells(texts, level).tolist()
    model = type(remembered.features.model)
    monkeypatch.setattr(model, "encode", lambda *_: pytest.fail("it is encoded again"))
    assert remembered.find_cells(texts[::-1], level).tolist() == first[::-1].tolist()
