"""The verb measure: figures go out, texts do not."""

import gzip
import json
import re

import pytest

from textveil import cli

NOISE = ("--mechanism", "noise", "--epsilon")
CANARY = "zzcanaryzz"
TEXTS = (
    "Ingrid told the lawyer that her brother hid the money in Antwerp.",
    f"The {CANARY} paid nine hundred pounds for the blue bicycle.",
    "A short note about a garden.",
)
PRIVATE = ("Ingrid", "lawyer", "brother", "Antwerp", "pounds", "bicycle", "garden", CANARY)
FAST = ("--metrics", "retention,cosine,oov,rouge-l,bleu")


@pytest.fixture
def letters(tmp_path):
    path = tmp_path / "letters.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def run(capsys, *arguments):
    code = cli.main(["measure", *map(str, arguments)])
    out, err = capsys.readouterr()
    for word in PRIVATE:
        assert not re.search(rf"\b{word}\b", out + err, re.I)
    return code, out, err


def test_a_table_of_figures(capsys, letters):
    code, out, err = run(capsys, letters, *NOISE, 70, "--seed", 1, *FAST)
    assert code == 0
    lines = [
        re.split(r" {2,}", line.strip())
        for line in out.splitlines()
        if line.strip() and "─" not in line
    ]
    assert lines[0] == ["metric", "value", "95% interval", "n"]
    assert [line[0] for line in lines[1:]] == [
        "retention", "cosine", "out of the table", "Rouge-L", "BLEU", "corpus BLEU",
    ]  # fmt: skip
    assert all(re.fullmatch(r"-?[\d.]+", line[1]) for line in lines[1:])
    assert all(re.fullmatch(r"(-?[\d.]+|\?) to (-?[\d.]+|\?)", line[2]) for line in lines[1:])
    assert lines[1][3] == lines[2][3] == "17"
    assert lines[4][3] == "3"
    assert "sacrebleu" in err


@pytest.mark.slow
def test_all_metrics_as_json(capsys, letters):
    arguments = (letters, "--mechanism", "exponential", "--epsilon", 12, "--seed", 1)
    code, out, err = run(capsys, *arguments, "--metrics", "all", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["texts"], found["file"], found["seeded"]) == (3, "letters.txt", True)
    assert found["configuration"]["mechanism"]["name"] == "exponential"
    assert {row["measure"] for row in found["rows"]} == {
        "retention", "cosine", "oov", "rouge-l", "bleu", "mapping", "perplexity",
    }  # fmt: skip
    assert {"N_x", "N_w", "S_w", "pseudo-perplexity"} <= {row["metric"] for row in found["rows"]}
    assert found["not_measured"] == {}


@pytest.mark.slow
def test_simulated_mapping_sets(capsys, letters):
    out = run(capsys, letters, *NOISE, 30, "--metrics", "mapping", "--limit", 1, "--json")[1]
    rows = [row for row in json.loads(out)["rows"] if row["slice"] == "all"]
    assert "simulated, 1,000 draws" in rows[0]["note"]
    assert 500 < rows[0]["value"] <= 1000


@pytest.mark.slow
def test_a_seed_repeats_the_figures(capsys, letters):
    arguments = (
        letters,
        *NOISE,
        70,
        "--metrics",
        "mapping,cosine",
        "--limit",
        1,
        "--json",
        "--seed",
    )
    once = run(capsys, *arguments, 4)
    assert once == run(capsys, *arguments, 4)
    assert once != run(capsys, *arguments, 5)


def test_parts_and_lesser_figures_on_demand(capsys, letters):
    plain = run(capsys, letters, *NOISE, 70, *FAST)[1]
    by = run(capsys, letters, *NOISE, 70, *FAST, "--by", "--every")[1]
    assert "quarter" not in plain
    assert "changed words" not in plain
    assert "rarest quarter" in by
    assert "cosine of changed words" in by


def test_a_file_of_figures_and_a_field(capsys, tmp_path):
    rows = [{"id": i, "body": text} for i, text in enumerate([*TEXTS, ""])]
    path, output = tmp_path / "posts.jsonl.gz", tmp_path / "figures.json"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    code, out, _ = run(
        capsys,
        path,
        "--field",
        "body",
        *NOISE,
        70,
        *FAST,
        "--output",
        output,
        "--seed",
        2,
        "--json",
    )
    assert code == 0
    assert output.read_text(encoding="utf-8") == out
    assert json.loads(out)["texts"] == 3


def test_a_metric_may_have_nothing_to_say(capsys, letters):
    code, out, err = run(
        capsys, letters, "--mechanism", "placeholder", "--metrics", "retention,cosine"
    )
    assert code == 0
    assert re.search(r"retention +0\.000", out)
    assert "cosine: not measured: no word was drawn" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--metrics", "rouge"), "rouge-l"),
        (("--metrics", ""), "no measure is named"),
        (("--limit", "0"), "--limit"),
        (("--field", "body"), "no fields"),
        (("--mechanism", "nois"), "noise"),
    ],
)
def test_one_line_says_what_is_wrong(capsys, letters, arguments, says):
    code, out, err = run(capsys, letters, *NOISE, 70, *arguments)
    assert code == 2
    assert out == ""
    assert says in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\x00", b"the\n\nand the\n"])
def test_files_without_texts_or_protected_words(capsys, tmp_path, content):
    path = tmp_path / "none.txt"
    path.write_bytes(content)
    code, out, err = run(capsys, path, *NOISE, 70, *FAST)
    assert (code, out) == (2, "")
    assert re.search("must|has no text|no word of these texts is protected", err)


def test_a_file_that_is_not_there(capsys, tmp_path):
    code, _, err = run(capsys, tmp_path / "nothing.txt", *NOISE, 70)
    assert code == 2
    assert "no such file" in err


def test_help_has_examples(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "textveil measure letters.txt" in out


def test_the_output_does_not_take_the_place_of_the_input(capsys, tmp_path):
    path = tmp_path / "letters.txt"
    path.write_text("Anna owes the bank nine hundred pounds\n", encoding="utf-8")
    assert (
        cli.main(
            ["measure", str(path), *NOISE, "70", "--metrics", "retention", "--output", str(path)]
        )
        == 2
    )
    assert "input file" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8").startswith("Anna")


def test_what_takes_long_is_asked_for(capsys, letters):
    code, out, err = run(capsys, letters, *NOISE, 70, "--json")
    assert code == 0
    assert {row["measure"] for row in json.loads(out)["rows"]} == {
        "retention",
        "cosine",
        "oov",
        "rouge-l",
        "bleu",
    }
    assert (
        err
        == "Not run, because not asked for: mapping, perplexity. --metrics all runs them, too.\n"
    )
