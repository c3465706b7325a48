"""The verbs of synthesized corpora: one command each, no text and no number of texts in what they print."""

import csv
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lanes import first_of_each

from textveil import cli
from textveil.cli import progress
from textveil.library import make_library

CANARIES = ("Zyxqorvian", "Brobdingnagish", "Quetzlcoatlus", "X77gamma", "Wolpertinger")
NOUNS = ["parcel", "lamp", "kettle", "desk", "chair", "tent", "scarf", "radio"]
FORMS = {
    "delivery": "The {} has not come yet, and nobody says when it will be delivered, case {}.",
    "billing": "The invoice for the {} is wrong, and the bank paid it twice in month {}.",
}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No options from outside, in a folder of the test's."""
    for name in list(os.environ):
        if name.startswith("TEXTVEIL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEXTVEIL_PROGRESS", "0")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(list(arguments))
        captured = capsys.readouterr()
        assert not any(
            canary.lower() in (captured.out + captured.err).lower() for canary in CANARIES
        )
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = [form.format(noun, n) for form in FORMS.values() for noun in NOUNS for n in range(4)]
    path = tmp_path_factory.mktemp("library") / "notes.library"
    make_library(texts, source="invented", licence="CC0", name="notes", levels=(6,)).save(path)
    return str(path)


@pytest.fixture
def comments(tmp_path: Path) -> str:
    """Comments with labels and customers: 30 rows, 20 of them in the list of labels."""
    kinds = [*FORMS, "Brobdingnagish"]
    path = tmp_path / "Wolpertinger"
    path.mkdir()
    with (path / "Wolpertinger.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["no", "customer", "kind", "comment"])
        for i in range(30):
            text = FORMS.get(kinds[i % 3], "A tent for {} and {}").format(NOUNS[i % 8], i)
            writer.writerow(
                [f"X77gamma{i}", f"Quetzlcoatlus {i}", kinds[i % 3], f"Zyxqorvian {text}"]
            )
    return "Wolpertinger"


def c_command(comments: str, library: str, *more: str) -> list[str]:
    return [
        *("corpus", "synthesize", comments, "--field", "comment", "--label", "kind"),
        *("--labels", "delivery,billing", "--subject", "customer", "--noun", "customer"),
        *("--library", library, "--epsilon", "1", "--about", "20", "--count", "40"),
        *more,
    ]


def test_one_command_for_counts(run, comments, library):
    code, out, err = run(*c_command(comments, library, "-o", "synth"))
    assert (code, out) == (0, "")
    assert "Epsilon 1 for one customer" in err
    assert "epsilon 0" in err
    assert "is said on a terminal alone" in err  # and not how many, for this may be a log
    assert not any(number in err for number in ("10", "30", "20 ", "not counted were"))
    code, out, err = run("corpus", "verify", "synth", "--library", library)
    assert (code, err) == (0, "")
    assert out.startswith("The corpus follows from its votes")
    everything = b"".join(path.read_bytes() for path in Path("synth").iterdir()).lower()
    assert not any(canary.lower().encode() in everything for canary in CANARIES)
    assert run("corpus", "finish", "synth")[1].startswith("There is nothing to destroy")
    code, _, err = run(
        *("corpus", "synthesize", "--votes", "synth/votes.json", "--library", library),
        *("--count", "50", "-o", "more", "--quiet"),
    )
    assert (code, err) == (0, "")
    assert Path("more/votes.json").read_bytes() == Path("synth/votes.json").read_bytes()


def test_one_command_for_reports(run, library):
    Path("letter.txt").write_text("Zyxqorvian: the parcel is late")
    options = ["--labels", "delivery,billing", "--library", library, "--cells", "6"]
    report = ["corpus", "report", "letter.txt", "--label", "delivery", "--epsilon", "2", *options]
    Path("reports").mkdir()
    for number in range(3):
        code, out, err = run(*report, "-o", f"reports/{number}.json")
        assert (code, out) == (0, "")
        assert "local DP 2 for document and label together" in err
    assert Path("reports/0.json").stat().st_mode & 0o077 == 0
    code, _, err = run(*report, "-o", "reports/0.json")
    assert code == 2
    assert "is not reported again" in err
    tally = ["corpus", "tally", "reports", "--library", library, "--count", "20", "-o", "synth"]
    code, _, err = run(*tally)
    assert code == 0
    assert "Each of 3 documents reported" in err
    assert run("corpus", "verify", "synth", "--library", library)[0] == 0


def test_lines_are_documents(run, library):
    Path("letters.txt").write_text("the parcel is late\n\nthe bank paid twice\n")
    code, _, _ = run(
        *("corpus", "report", "letters.txt", "--lines", "--library", library, "--cells", "6"),
        *("--epsilon", "2", "-o", "reports.jsonl"),
    )
    assert code == 0
    reports = [json.loads(line) for line in Path("reports.jsonl").read_text().splitlines()]
    assert len(reports) == 2
    assert all({*report} >= {"codes", "library", "epsilon"} for report in reports)


def test_quiet_hides_what_is_for_the_curator(run, comments, library):
    assert run(*c_command(comments, library, "-o", "synth", "--quiet")) == (0, "", "")


def test_what_was_not_counted_is_said_on_a_terminal_alone(run, comments, library, monkeypatch):
    command = c_command(comments, library, "-o", "synth")
    command[command.index("delivery,billing")] = "Delivery,Billing"
    code, _, log = run(*command)
    assert code == 0
    assert "no document was counted" not in log
    monkeypatch.setattr(progress, "is_terminal", lambda: True)
    for place, says in (
        ("all", "no document was counted: check --field, --label and --labels"),
        ("some", "and not to be passed on: not counted were 10 "),
    ):
        command = command if place == "all" else c_command(comments, library)
        assert says in " ".join(run(*command, "-o", place)[2].split())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--labels", ""], "go together"),
        (["--labels-file", "none.txt"], "one of --labels and --labels-file"),
        (["--epsilon", "nan"], "epsilon must be a number"),
        (["--epsilon", "0"], "epsilon must be a number"),
        (["--epsilon", "inf"], "epsilon must be a number"),
        (
            ["--field", "comments"],
            r"input file 1 has no column 'comments' \(--field\); did you mean",
        ),
        (["--label", "kinds"], r"input file 1 has no column 'kinds' \(--label\)"),
        (["--subject", "customers"], r"no column 'customers' \(--subject\)"),
        (["--library", "missing.library"], "cannot read a library"),
        (["--library", "damaged.library"], "not a library, or damaged"),
        (["--cells", "99"], "has no level '99'"),
        (["--smooth", "more"], "smooth must be"),
        (["--count", "0"], "count must be"),
        (["--count", "some"], "--count must be a number of texts, or all"),
        (["--count", "all", "--smooth", "none"], "count can be all"),
        (["--per-subject", "0"], "whole number from 1"),
        (["--store", "memory:"], "keeps a ledger"),
        (["--votes", "votes.json"], "leave out INPUT, --field, --label"),
        (["--votes", "votes.json", "--cells", "6"], "leave out .* --cells"),
    ],
)
def test_bad_options(run, comments, library, change, says):
    Path("damaged.library").write_bytes(Path(library).read_bytes()[:-99])
    code, out, err = run(*c_command(comments, library, "-o", "synth", *change))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(says, err), err
    assert not Path("synth/votes.json").exists()


def test_verbs_of_other_releases(run, comments, library):
    assert run(*c_command(comments, library, "-o", "synth"))[0] == 0
    assert "--library is needed" in run("corpus", "verify", "synth")[2]
    Path("empty").mkdir()
    assert "no finished release" in run("corpus", "verify", "empty")[2]
    assert "no finished release" in run("corpus", "verify", "empty", "--library", library)[2]
    said = run("corpus", "tally", "no-such", "--library", library, "-o", "tallied")[2]
    assert "no such file" in said
    assert "standard input" not in said
    again = run(*c_command(comments, library, "-o", "synth"))
    assert again[0] == 2
    assert "holds a finished release" in again[2]
    earlier = run(*c_command(comments, library, "-o", "synth", "--resume"))
    assert earlier[0] == 0
    assert "already finished; nothing was read or drawn now" in earlier[2]


@pytest.mark.parametrize("is_file", first_of_each([True, False]))
def test_a_store_of_the_environment_is_for_subjects(
    run, comments, library, monkeypatch, tmp_path, capsys, is_file
):
    """It is charged where there are subjects, and is for other verbs where there are none."""
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    store = f"sqlite:///{tmp_path / 'veil.db'}"
    monkeypatch.delenv("TEXTVEIL_STORE", raising=False)
    if is_file:
        (tmp_path / "url").write_text(f"{store}\n")
        (tmp_path / "url").chmod(0o600)
        monkeypatch.setenv("TEXTVEIL_STORE_FILE", str(tmp_path / "url"))
    else:
        monkeypatch.setenv("TEXTVEIL_STORE", store)
    assert run(*c_command(comments, library, "-o", "synth"))[0] == 0
    assert cli.main(["ledger", "show", "--json"]) == 0
    accounts = json.loads(capsys.readouterr().out)
    assert len({account["subject"] for account in accounts}) == 20
    assert {(each["metric"], each["epsilon"]) for each in accounts} == {("central", 1), ("ldp", 2)}
    command = c_command(comments, library, "-o", "documents")
    place = command.index("--subject")
    assert run(*command[:place], *command[place + 2 :])[0] == 0
    assert (
        run(*command[:place], *command[place + 2 : -1], "more", "--store", "sqlite:///a.db")[0] == 2
    )
