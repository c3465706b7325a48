"""The verb attack: rates go out, texts do not."""

import json
import re

import pytest

from textveil import cli
from textveil.config import registry
from textveil.evaluate.risk import REDRAW_WARNING
from textveil.pipeline import privatizer
from textveil_bench.cli import attack as verb

NOISE = ("--mechanism", "noise", "--epsilon")
CANARY = "zzcanaryzz"
TEXTS = (
    "Ingrid told the lawyer that her brother hid the money in Antwerp.",
    f"The {CANARY} paid nine hundred pounds for the blue bicycle.",
    "A short note about a garden.",
)


@pytest.fixture
def letters(tmp_path):
    path = tmp_path / "letters.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def run(capsys, *arguments):
    code = cli.main(["attack", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert CANARY not in out + err
    assert "Antwerp" not in out + err
    return code, out, err


def test_a_table_of_rates(capsys, letters):
    code, out, err = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour", "--seed", 1)
    assert code == 0
    assert re.search(r"neighbour +Pr@1 \(cosine\) +0\.\d{3} +0\.\d{3} to 0\.\d{3} +17\b", out)
    assert err.split() == REDRAW_WARNING.split()


def test_json_is_one_object_of_rates(capsys, letters):
    code, out, _ = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour", "--seed", 1, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["texts"] == 3
    assert found["caution"] == REDRAW_WARNING
    assert found["file"] == "letters.txt"
    assert found["seeded"] is True
    assert "seed" not in found["configuration"]
    assert found["configuration"]["epsilon"] == 70
    assert {"attack", "metric", "setting", "slice", "part", "value", "low", "high", "n"} <= set(
        found["rows"][0]
    )


def test_a_seed_repeats_the_findings(capsys, letters):
    arguments = (letters, *NOISE, 70, "--attacks", "neighbour", "--json", "--seed")
    assert run(capsys, *arguments, 4) == run(capsys, *arguments, 4)
    assert run(capsys, *arguments, 4) != run(capsys, *arguments, 5)


def test_parts_and_lesser_measures_on_demand(capsys, letters):
    plain = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour")[1]
    by = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour", "--by", "--every")[1]
    assert "quarter" not in plain
    assert "changed words" not in plain
    assert "rarest quarter" in by
    assert "KNN@10 of changed words" in by


def test_an_option_of_an_attack(capsys, letters):
    out = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour", "-o", "attack.neighbour.k=20")[
        1
    ]
    assert "KNN@20" in out


@pytest.mark.parametrize("typed", ["uniform,unigram", "[uniform, unigram]"])
def test_a_list_as_an_option(capsys, letters, typed):
    out = run(
        capsys,
        letters,
        "--mechanism",
        "placeholder",
        "--attacks",
        "bayes",
        "-o",
        f"attack.bayes.priors={typed}",
    )[1]
    assert re.findall(r"top-1 \((\w+)\)", out) == ["uniform", "unigram"]


def test_findings_and_pictures_in_a_folder(capsys, letters, tmp_path):
    folder = tmp_path / "findings"
    code, _, err = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour", "--output", folder)
    assert code == 0
    assert "findings.json" in err
    assert json.loads((folder / "findings.json").read_text(encoding="utf-8"))["rows"]
    assert (folder / "neighbour.png").read_bytes().startswith(b"\x89PNG")
    picture = (folder / "neighbour.svg").read_text(encoding="utf-8")
    assert CANARY not in picture


def test_an_infinite_budget_is_json_too(capsys, letters):
    code, out, err = run(capsys, letters, *NOISE, "inf", "--attacks", "neighbour,linkage", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["configuration"]["epsilon"] == "infinite"
    assert found["not_run"]["neighbour"] in err
    assert found["passed_unprotected"] == 17


def test_words_that_pass_unprotected_are_told(capsys, letters):
    err = run(capsys, letters, *NOISE, "inf", "--attacks", "linkage")[2]
    assert (
        "17 more private words are not counted in rates of words: they passed unchanged"
        in " ".join(err.split())
    )


def test_where_nothing_can_run_that_is_an_error(capsys, letters):
    code, out, err = run(capsys, letters, *NOISE, 70, "--attacks", "window,attribute")
    assert (code, out) == (2, "")
    assert "no attack can be run here: window: " in err


def test_findings_do_not_take_the_place_of_the_input(capsys, letters, tmp_path):
    letters = letters.rename(tmp_path / "findings.json").rename(tmp_path / "findings.json.txt")
    (tmp_path / "findings.json").symlink_to(letters)
    code, _, err = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour", "--output", tmp_path)
    assert code == 2
    assert "input file" in err
    assert letters.read_text(encoding="utf-8").startswith("Ingrid")


def test_parts_do_not_name_words(capsys, letters):
    """The ranks of private words in the public list would."""
    out = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour", "--json")[1]
    parts = {row["part"] for row in json.loads(out)["rows"] if row["slice"] == "frequency"}
    assert parts
    assert not any(re.search(r"\d", part) for part in parts)


def test_standard_input(capsys, monkeypatch, letters):
    import io
    import sys
    from types import SimpleNamespace

    stream = io.BytesIO(letters.read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream, isatty=lambda: False))
    code, out, _ = run(capsys, "-", *NOISE, 70, "--attacks", "neighbour", "--json")
    assert code == 0
    assert json.loads(out)["file"] == "-"


def test_attacks_are_listed_and_explained(capsys):
    assert cli.main(["list", "attacks"]) == 0
    assert "neighbour" in capsys.readouterr().out
    assert cli.main(["explain", "neighbour"]) == 0
    assert "-o attack.neighbour.NAME=VALUE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--attacks", "neighbor"), "neighbour"),
        (("--attacks", ","), "at least one attack"),
        (("--attacks", "neighbour", "-o", "attack.neighbour.k=0"), "k must be"),
        (("--attacks", "neighbour", "-o", "attack.neighbour.n=1"), "option of Neighbour"),
        (("--attacks", "neighbour", "-o", "attack.neighbour=1"), "attack.NAME.OPTION"),
        (("--attacks", "neighbour", "-o", "attack.nobody.k=1"), "attack"),
        (("--attacks", "neighbour", "--limit", "0"), "--limit"),
        (("--attacks", "neighbour", "--field", "body"), "no fields"),
        (("--attacks", "neighbour", "--mechanism", "nois"), "noise"),
    ],
)
def test_one_line_says_what_is_wrong(capsys, letters, arguments, says):
    code, out, err = run(capsys, letters, *NOISE, 70, *arguments)
    assert code == 2
    assert out == ""
    assert says in err
    assert len(err.strip().splitlines()) <= 2


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\x00"])
def test_files_without_texts(capsys, tmp_path, content):
    path = tmp_path / "none.txt"
    path.write_bytes(content)
    code, out, err = run(capsys, path, *NOISE, 70, "--attacks", "neighbour")
    assert code != 0
    assert out == ""
    assert "must" in err or "has no text" in err


def test_a_file_that_is_not_there(capsys, tmp_path):
    code, _, err = run(capsys, tmp_path / "nothing.txt", *NOISE, 70)
    assert code != 0
    assert "no such file" in err


def test_an_output_that_is_a_file(capsys, letters):
    code, _, err = run(capsys, letters, *NOISE, 70, "--attacks", "neighbour", "--output", letters)
    assert code == 2
    assert "folder" in err
    assert letters.read_text(encoding="utf-8").startswith("Ingrid")


def test_what_takes_long_is_asked_for(capsys, letters):
    code, out, err = run(capsys, letters, *NOISE, 70, "--limit", 2, "--seed", 1)
    assert code == 0
    quick = ["bayes", "linkage", "membership", "neighbour"]
    assert list(dict.fromkeys(re.findall(r"^ (\w+)  ", out, re.M))) == ["attack", *quick]
    assert "top-1 (unigram)" in out
    assert "top-1 (context)" not in out
    others = [name for name in registry.list_names("attack") if name not in quick]
    assert (
        f"Not run, because not asked for: {', '.join(others)}. --attacks all runs them, too."
        in " ".join(err.split())
    )
    assert verb._choose_attacks(None, {"semantic": {"share": 0.1}}) == [*quick, "semantic"]
    assert verb._choose_attacks("all", {}) == registry.list_names("attack")


@pytest.mark.parametrize("verb", ["attack", "measure"])
def test_what_cannot_be_judged_is_refused_before_anything_is_loaded(
    capsys, letters, monkeypatch, verb
):
    def loads(*_, **__):
        raise AssertionError("a table is loaded")

    monkeypatch.setattr(privatizer, "load_table", loads)
    for options, says in (
        (("-o", "figures.types=all"), "-o figures.types=none"),
        (("-o", "words.oov=drop", *NOISE, "5"), "words.oov to surrogate"),
    ):
        assert cli.main([verb, str(letters), *options]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.slow
def test_the_default_profile_is_attacked_and_measured_with_its_names(capsys, letters, tmp_path):
    asked = (
        "--attacks",
        "bayes,neighbour,linkage",
        "-o",
        "attack.bayes.priors=uniform",
        "--seed",
        1,
    )
    code, out, err = run(capsys, letters, *asked, "--output", tmp_path / "found")
    assert code == 0, err
    pictures = {path.stem for path in (tmp_path / "found").glob("*.svg")}
    assert pictures == {"bayes", "bayes-names", "neighbour", "neighbour-names", "linkage"}
    assert re.search(r"top-1 \(mask, 3\) +1\.000", out)
    assert "the private name is taken to be its representative on the list" in " ".join(err.split())
    assert (
        cli.main(["measure", str(letters), "--metrics", "retention", "--seed", "1", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["names"] > 0
    assert re.search(rf"top-1 \(uniform\) .* {found['protected']}\b", out)
    assert re.search(rf"top-1 \(names, uniform\) .* {found['names']}\b", out)
    assert {row["unit"] for row in found["rows"]} == {"word", "name"}


@pytest.mark.slow
def test_several_releases_are_weighed_together(capsys, tmp_path):
    letters = tmp_path / "letters.txt"  # of 69 words: in 17 one guess more or less decides
    numbers = "seven", "forty", "ninety"
    letters.write_text("\n".join(f"{text} Number {n}." for text in TEXTS for n in numbers) + "\n")
    arguments = (
        letters,
        "--mechanism",
        "exponential",
        "--epsilon",
        7,
        "--seed",
        1,
        "--releases",
        4,
    )
    code, out, err = run(capsys, *arguments, "--output", tmp_path / "found")
    assert code == 0
    assert re.search(r"top-1 \(uniform, 4, drawn anew\) +0\.\d{3}", out)
    assert "neighbour" not in out
    assert "costs its epsilon each time" in err
    found = json.loads((tmp_path / "found" / "findings.json").read_text())
    assert found["releases"] == 4
    value = {
        tuple(row["setting"].values()): row["value"]
        for row in found["rows"]
        if row["metric"] == "top-1" and row["slice"] == "all"
    }
    assert (
        value["uniform", 4, "drawn anew"]
        > value["uniform", 1, "drawn anew"]
        == value["uniform", 4, "drawn once"]
    )
    assert (tmp_path / "found" / "bayes.svg").stat().st_size > 0


def test_an_attacker_learns_from_a_file_of_public_texts(capsys, letters, tmp_path):
    public = tmp_path / "public.txt"
    public.write_text("\n".join(f"{text} Number {i}." for text in TEXTS for i in range(6)) + "\n")
    arguments = (
        letters,
        "--mechanism",
        "rankcape",
        "--epsilon",
        9,
        "--seed",
        1,
        "--attacks",
        "learned",
        "--json",
    )
    code, out, err = run(capsys, *arguments, "--public", public)
    assert code == 0, err
    found = json.loads(out)
    top = next(row for row in found["rows"] if row["metric"] == "top-1" and row["slice"] == "all")
    assert top["value"] > 0.5
    assert top["note"].startswith("a lower bound")
    assert "public" not in found["attacks"]["learned"]
    both = tmp_path / "both.txt"
    both.write_bytes(public.read_bytes() + letters.read_bytes())
    for others, says in (((), "--public"), (("--public", both), "must not be among")):
        code, out, err = run(capsys, *arguments, *others)
        assert (code, out) == (2, "")
        assert says in err


def test_there_is_at_least_one_release(capsys, letters):
    code, _, err = run(capsys, letters, *NOISE, 70, "--releases", 0)
    assert code == 2
    assert "--releases must be 1 or more, got 0" in err
