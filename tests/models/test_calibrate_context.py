"""The verb table calibrate: the bound and quantiles go out, texts do not."""

import json
import re

import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil import cli
from textveil.cli import demo
from textveil.models import LogitRange, Ragged, load_context, measure_logits
from textveil.table.embedding import load_table
from textveil.text.tokens import tokenize

TEXTS = ("The doctor saw a canary in Lisbon.", "Maria met John near the old town.", "A canary.")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path, folders):
    """Run the verb in a folder with texts and a small table: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "public.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    rows = gaussian_rows(len(NOUNS), 4, 0).round(4).tolist()
    lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(NOUNS, rows, strict=True))
    (tmp_path / "vectors.txt").write_text("".join(lines), encoding="utf-8")
    assert cli.main(["table", "build", "vectors.txt", "-o", "nouns"]) == 0
    capsys.readouterr()

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(
            [
                "table",
                "calibrate",
                "--table",
                "nouns",
                "--model",
                str(folders["bert-lm"]),
                *arguments,
            ]
        )
        out, err = capsys.readouterr()
        assert "canary" not in (out + err).lower()
        return code, out, err

    return run


def measured(folders, *texts: str) -> LogitRange:
    """What the library finds in the same folder."""
    return measure_logits(
        load_context(load_table("nouns"), folders["bert-lm"]), Ragged.build(tokenize(texts))
    )


def test_the_bound_and_the_quantiles_are_printed(run, folders):
    code, out, err = run("public.txt")
    expected = measured(folders, *TEXTS)
    first, heading, every, best = out.splitlines()
    bound = re.match(
        r"largest logit +(-?[\d.]+) +\(bert-lm, table vectors, 11 hidden words\)$", first
    )
    assert code == 0
    assert bound is not None
    assert expected.largest <= float(bound[1]) <= expected.largest + 0.01
    assert heading.split() == ["quantile", "0.5", "0.9", "0.99", "0.999"]
    for line, title, name in (
        (every, "all candidates", "candidates"),
        (best, "the best of each word", "best"),
    ):
        assert line.startswith(title)
        values = [float(value) for value in line.removeprefix(title).split()]
        assert values == pytest.approx(list(expected.compute_quantiles()[name].values()), abs=0.006)
    assert (
        f"-o mechanism.bound={bound[1]} -o mechanism.floor={expected.compute_quantiles()['candidates'][0.5]:.2f}"
        in err
    )
    assert "letter" not in err


def test_json_can_be_read_back_and_the_picture_is_one(run, folders, tmp_path):
    assert run("public.txt", "--output", "logits.json", "--plot", "logits.png")[0] == 0
    document = json.loads((tmp_path / "logits.json").read_text(encoding="utf-8"))
    assert LogitRange.from_json(document) == measured(folders, *TEXTS)
    assert (tmp_path / "logits.png").read_bytes().startswith(b"\x89PNG")


def test_several_files_fields_and_a_limit(run, tmp_path):
    (tmp_path / "more.jsonl").write_text('{"id": 1, "post": "An old anchor"}\n', encoding="utf-8")
    (tmp_path / "last.jsonl").write_text('{"id": 2, "post": "Maria met John"}\n', encoding="utf-8")
    for options, words in (((), 5), (("--limit", "1"), 2)):
        code, out, _ = run("more.jsonl", "last.jsonl", "--field", "post", *options)
        assert (code, out.splitlines()[0].endswith(f" {words} hidden words)")) == (0, True)


def test_without_a_file_the_letter_is_measured_and_that_is_said(run, folders, tmp_path):
    code, _, err = run("--output", "logits.json")
    assert code == 0
    document = json.loads((tmp_path / "logits.json").read_text(encoding="utf-8"))
    assert LogitRange.from_json(document) == measured(folders, demo.read_letter())
    assert "one short letter" in err


def test_a_model_whose_logits_are_below_zero_is_noted(run, folders, monkeypatch):
    found = measured(folders, *TEXTS)
    low = LogitRange(
        **{**vars(found), "largest": found.largest - 100, "lowest": found.lowest - 100}
    )
    monkeypatch.setattr("textveil.models.measure_logits", lambda *_, **__: low)
    assert "half of the positions give all words the same weight" in run("public.txt")[2]
    monkeypatch.setattr("textveil.models.measure_logits", lambda *_, **__: found)
    assert "all words the same weight" not in run("public.txt")[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("missing.txt",), "no such file"),
        (("public.txt", "--plot", "logits.jpeg2"), "a picture's name must end in"),
        (("public.txt", "--plot", "missing/logits.png"), "the output cannot be written"),
        (("public.txt", "--output", "public.txt"), "--output must not be the input file"),
        (("public.txt", "--limit", "0"), "--limit must be 1 or more"),
        (("public.txt", "--field", "post"), "field"),
        (("public.txt", "--table", "nowhere"), "nowhere"),
        (("public.txt", "--model", "no-such-model"), "a model must be a folder or a hub id"),
        (("stop.txt",), "the texts have no word outside the public list"),
    ],
)
def test_one_line_says_what_is_wrong(run, tmp_path, arguments, says):
    (tmp_path / "stop.txt").write_text("The and of it.\n", encoding="utf-8")
    code, _, err = run(*arguments)
    assert code == 2
    last = err.splitlines()[-1]
    assert last.startswith("textveil: error: ")
    assert says in last
