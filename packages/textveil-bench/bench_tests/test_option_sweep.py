"""A sweep of an option: figures that follow from what each privatizer does, shown in a table and drawn."""

import json
import math
import re

import numpy as np
import pytest

from textveil import cli
from textveil.errors import ConfigError, InputError
from textveil.pipeline.privatizer import Privatizer
from textveil.table.embedding import EmbeddingTable
from textveil_bench.attack import load
from textveil_bench.cli.sweep import parse_variation
from textveil_bench.intervals import mean
from textveil_bench.option_sweep import sweep_option

TEXTS = ["Ingrid hid the money in Antwerp", "a short note about the garden", "", "pay the lawyer"]
CANARY = "zzcanaryzz"


class Letters:
    """Vectors by hand: the direction of the number of letters a and of other letters."""

    name, dimension = "letters", 2

    def encode(self, texts):
        counts = np.array(
            [[text.count("a"), sum(map(str.isalpha, text)) - text.count("a")] for text in texts],
            float,
        )
        norms = np.linalg.norm(counts, axis=1, keepdims=True)
        return np.divide(counts, norms, out=np.zeros_like(counts), where=norms > 0).astype(
            np.float32
        )


@pytest.fixture(scope="module")
def table():
    words = sorted({word.lower() for text in TEXTS for word in text.split()})
    rows = np.random.default_rng(5).normal(size=(len(words), 8))
    return EmbeddingTable.build(name="few", words=words, vectors=rows)


def maker(table, budgets=(2.0, 1.0, 4.0, math.inf)):
    protect = {
        "always": ["Ingrid", "Antwerp"],
        "importance": "cosine",
        "task": "money for a lawyer",
    }

    def make(tau):
        groups = {"budgets": budgets}
        return Privatizer(
            "krr", table=table, protect={**protect, "tau": float(tau)}, groups=groups, seed=3
        )

    return make


def test_figures_follow_from_the_releases(table):
    make, told = maker(table), []
    rows = sweep_option(
        TEXTS, make, ("-1", "0.4"), encoder=Letters(), report=lambda *done: told.append(done)
    )
    assert told == [("values", i, 2) for i in range(3)]
    for row in rows:
        results = list(make(row.value).privatize_many(TEXTS))
        one, other = Letters().encode(TEXTS), Letters().encode([result.text for result in results])
        cosines = (one * other).sum(axis=1)[[0, 1, 3]].astype(float)
        assert row.texts == 3
        assert row.similarity.value == pytest.approx(cosines.mean())
        assert row.similarity.low == pytest.approx(
            mean(cosines, np.array([0, 1, 3]), share=False).low
        )
        labels = [
            item.group
            for result in results
            for item in result.released.items
            if item.group != "public"
        ]
        assert row.words == {group: labels.count(group) for group in row.words}
        assert sum(row.words.values()) == len(labels) > 5
        assert sum(row.shares.values()) == pytest.approx(1)
        assert not row.attacks
        assert not row.not_run


def test_kept_words_and_an_attack_follow_the_value(table):
    def make(epsilon):
        return Privatizer("krr", table=table, epsilon=float(epsilon), seed=3)

    weak, strong = sweep_option(
        TEXTS, make, ("30", "0.1"), encoder=Letters(), attackers=[load("bayes"), load("window")]
    )
    assert weak.kept == 1
    assert strong.kept is not None
    assert strong.kept < 0.5
    assert weak.attacks["bayes"].value == 1 > strong.attacks["bayes"].value
    assert "window" in strong.not_run  # nothing is mixed
    assert weak.words == {}


def test_below_every_cosine_all_words_are_important(table):
    lowest, highest = sweep_option(TEXTS, maker(table), ("-1", "1"), encoder=Letters())
    assert lowest.words == {"sensitive-important": 2, "sensitive": 0, "important": 7, "other": 0}
    assert highest.words["sensitive"] == 2
    assert highest.words["other"] >= 4  # a word of the task may be the task
    assert lowest.budget == pytest.approx((2 * 2 + 7 * 4) / 9)
    assert math.isinf(highest.budget)
    assert highest.to_json()["budget"] == "infinite"


def test_every_text_may_have_its_own_query(table):
    def make(tau):
        protect = {"importance": "cosine", "tau": float(tau)}
        return Privatizer(
            "krr", table=table, protect=protect, groups={"budgets": (1, 1, 4, 2)}, seed=3
        )

    found = [
        sweep_option(["garden", "lawyer"], make, ("0.9",), queries=queries, encoder=Letters())[
            0
        ].words["important"]
        for queries in (["garden", "lawyer"], ["lawyer", "garden"])
    ]
    assert found == [2, 0]


def test_what_cannot_be_swept(table):
    make = maker(table)
    with pytest.raises(ConfigError, match="at least one value"):
        sweep_option(TEXTS, make, ())
    with pytest.raises(ConfigError, match="4 texts"):
        sweep_option(TEXTS, make, ("0",), queries=["a"])
    with pytest.raises(InputError, match="has any words"):
        sweep_option(["", "  "], make, ("0",), encoder=Letters())


# ---- the verb ----------------------------------------------------------------------------------------------


@pytest.fixture
def letters(tmp_path):
    path = tmp_path / "letters.jsonl"
    rows = [{"body": f"{text} {CANARY}", "question": "where is the money"} for text in TEXTS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(capsys, *arguments):
    code = cli.main(["sweep", *map(str, arguments)])
    out, err = capsys.readouterr()
    for word in ("Ingrid", "Antwerp", "garden", "lawyer", CANARY):
        assert not re.search(word, out + err, re.I)
    return code, out, err


@pytest.mark.slow
def test_a_table_and_a_picture_without_a_word_of_the_texts(capsys, letters, tmp_path):
    figure = tmp_path / "figure.svg"
    arguments = (
        letters,
        "--field",
        "body",
        "--query",
        "question",
        "--epsilon",
        60,
        "--vary",
        "protect.tau=0.2,0.6",
        "--attack",
        "neighbour",
        "-o",
        "groups.budgets=heuristic",
        "--seed",
        1,
    )
    code, out, err = run(capsys, *arguments, "--output", figure)
    lines = [line.split() for line in out.splitlines() if line.strip()]
    assert code == 0
    assert (lines[0][:2], lines[0][-1]) == (["tau", "similarity"], "neighbour")
    assert [line[0] for line in lines[2:]] == ["0.2", "0.6"]
    assert "cosine" in err
    drawn = figure.read_text(encoding="utf-8")
    assert drawn.lstrip().startswith("<?xml")
    assert CANARY not in drawn
    document = json.loads(run(capsys, *arguments, "--json")[1])
    assert [row["value"] for row in document["rows"]] == ["0.2", "0.6"]
    assert f"{document['rows'][0]['similarity']:.3f}" == lines[2][1]
    assert document["rows"][0]["words"]["important"] > document["rows"][1]["words"]["important"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--vary", "protect.tau=0.3,0.5", "--epsilon", "60"], "needs a task"),
        (["--vary", "protect.tau=high", "--task", "money"], "protect.tau"),
        (["--vary", "protect.tau=0.3,3", "--profile", "paper-stamp"], "protect.tau"),
        (["--vary", "protect.tau=0.3", "--task", "money", "--query", "question"], "not both"),
        (["--vary", "protect.tau=0.3", "--task", "money", "--output", "figure.txt"], "must end in"),
        (["--vary", "epsilon=2,4", "--epsilon", "60"], "is varied"),
        (["--vary", "mechanism.nonsense=2,4"], "nonsense"),
        (["--vary", "epsilon"], "--vary must be"),
        (["--vary", "epsilon=2,,4"], "--vary must be"),
        (["--vary", "epsilon=nan", "--mechanism", "krr"], "epsilon"),
        (["--vary", "epsilon=2", "--mechanism", "krr", "--attack", "nonsense"], "nonsense"),
    ],
)
def test_wrong_options_are_refused_in_one_line(capsys, letters, arguments, says):
    code, out, err = run(capsys, letters, "--field", "body", *arguments)
    assert (code, out) == (2, "")
    assert says in err


def test_values_with_commas_are_separated_by_semicolons():
    assert parse_variation("groups.budgets=2,1,4,3; 1,1,1,1") == (
        "groups.budgets",
        ["2,1,4,3", "1,1,1,1"],
    )
    assert parse_variation("mechanism.eta=40,80,40") == ("mechanism.eta", ["40", "80"])
    assert parse_variation("epsilon=2") == parse_variation("--epsilon=2")
