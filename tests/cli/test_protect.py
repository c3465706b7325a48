"""The verb protect: what is found is hidden, the rest stays, and the answer can be restored."""

import json
import re
import sys

import pytest

from textveil import cli
from textveil.pipeline import privatizer

PROMPT = "Zyxqorvian lives at maria@example.org, call +1 202 555 0136"
LEAN = ("-o", "protect.detectors=patterns", "-o", "names.types=none")
SAID = "1 e-mail address and 1 phone number replaced; the rest is unchanged, and nothing is claimed about it.\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch, small_table):
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: small_table)


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments, stdin=None):
        if stdin is not None:
            import io

            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = cli.main([str(each) for each in arguments])
        return code, *capsys.readouterr()

    return run


def test_what_is_found_is_hidden_and_said_and_the_rest_stays(run):
    code, out, err = run("protect", PROMPT, *LEAN)
    assert (code, err) == (0, SAID)
    assert out == "Zyxqorvian lives at <EMAIL_1>, call <PHONE_1>\n"


def test_the_answer_is_restored(run, tmp_path):
    session = tmp_path / "a.session"
    code, out, _ = run("protect", PROMPT, *LEAN, "--session", session)
    assert (code, out) == (0, "Zyxqorvian lives at <EMAIL_1>, call <PHONE_1>\n")
    assert (
        run("restore", "Write to <EMAIL_1>.", "--session", session)[1]
        == "Write to maria@example.org.\n"
    )


@pytest.mark.parametrize(
    ("verb", "options"),
    [("protect", LEAN), ("protect", (*LEAN, "--lines")), ("privatize", LEAN)],
)
@pytest.mark.parametrize("content", ["\ufeffwrite to maria@example.org\nnow\n", "\ufeff", "now\n"])
def test_a_byte_order_mark_stays_where_it_was(run, tmp_path, verb, options, content):
    file, output, session = (tmp_path / name for name in ("in.txt", "out.txt", "a.session"))
    file.write_bytes(content.encode())
    begin = content[: content.startswith("\ufeff")]
    for source, given in ((file, None), ("-", content.encode())):
        out = run(verb, source, *options, "--session", session, stdin=given)[1]
        assert out.startswith(begin)
        assert out.count("\ufeff") == len(begin)
        assert (
            run(verb, source, *options, "--session", session, "--output", output, stdin=given)[0]
            == 0
        )
        assert output.read_bytes().decode() == out
        if verb == "protect":
            assert run("restore", output, "--session", session)[1] in (content, content + "\n")
        assert "\ufeff" not in run(verb, source, *options, "--json", stdin=given)[1]


def test_what_was_not_measured_is_said_and_strict_says_that_it_is_hidden(run):
    assert run("protect", "សួស្តី", *LEAN)[2].endswith("for Khmer text; names in it may pass.\n")
    code, out, err = run("protect", "សួស្តី", *LEAN, "-o", "protect.unmeasured=strict")
    assert (code, out) == (0, "<TEXT_1>\n")
    assert err.startswith("1 passage replaced; ")
    assert err.endswith("for Khmer text; all words that are not public are replaced.\n")


def test_where_nothing_is_found_that_is_said(run):
    code, out, err = run("protect", "where is it", *LEAN)
    assert (code, out) == (0, "where is it\n")
    assert err.startswith("Nothing was found to hide")


def test_how_much_is_said(run):
    assert run("protect", PROMPT, *LEAN, "--quiet")[2] == ""
    first, *statement = run("protect", PROMPT, *LEAN, "--statement")[2].splitlines()
    assert f"{first}\n" == SAID
    assert len(statement) == 3
    assert len(run("protect", PROMPT, *LEAN, "--explain")[2].splitlines()) > 4
    code, out, err = run("protect", PROMPT, *LEAN, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["guarantee"]["placeholders"] == 2


def test_both_sides_of_what_changed(run):
    code, out, err = run(
        "protect", "-", *LEAN, "--diff", stdin=b"one\ntwo\nto maria@example.org\nbye\nend\n"
    )
    assert code == 0
    assert out == "@@ -2,3 +2,3 @@\n two\n-to maria@example.org\n+to <EMAIL_1>\n bye\n"
    assert "holds the private originals" in err
    assert run("protect", "where is it", *LEAN, "--diff")[1] == ""
    assert run("protect", PROMPT, *LEAN, "--diff", "--json")[0] == 2


def test_levels_and_what_stands_for_names(run):
    always = ("-o", "protect.always=Zyxqorvian", "-o", "protect.detectors=patterns")
    assert run("protect", PROMPT, *always, "--level", "identifiers", "--names", "placeholder")[
        1
    ].startswith("<LISTED_1> ")
    for option, says in (
        ("--names", "placeholder or surrogate"),
        ("--figures", "placeholder or surrogate"),
        ("--level", "'identifiers', 'personal' or 'names'"),
    ):
        code, out, err = run("protect", PROMPT, option, "everything")
        assert (code, out) == (2, "")
        assert says in err
        assert "everything" in err


def test_figures_are_moved_and_dates_come_back(run, tmp_path):
    text = "My mother is 73 years old, born 14 February 1951."
    hides = (*LEAN, "--session", tmp_path / "a.session")
    assert (
        run("protect", text, *hides)[1] == "My mother is <AGE_1> years old, born <BIRTH_DATE_1>.\n"
    )
    code, out, err = run("protect", text, *hides, "--figures", "surrogate", "--seed", "7")
    assert (code, out) == (0, "My mother is 60 years old, born 4 June 1951.\n")
    assert err.startswith(
        "1 date of birth and 1 age replaced (a drawn figure may by chance be the original); "
    )
    assert (
        run("restore", out.strip(), "--session", tmp_path / "a.session")[1]
        == text.replace("73", "60") + "\n"
    )
    for option in ("figures.year_epsilon=0", "figures.types=PHONE", "figures.unit=10"):
        code, out, err = run("protect", text, *hides, "-o", option)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert "mother" not in err


def test_what_was_hidden_is_counted_in_json(run):
    assert json.loads(run("protect", PROMPT, *LEAN, "--json")[1])["hidden"] == {
        "EMAIL": 1,
        "PHONE": 1,
    }


def test_a_file_is_one_prompt_or_one_per_line(run, tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_text("a@example.org\nb@example.org\n")
    for given, stdin in ((path, None), ("-", path.read_bytes())):
        code, out, err = run("protect", given, *LEAN, stdin=stdin)
        assert (code, out) == (0, "<EMAIL_1>\n<EMAIL_2>\n")
        assert err.startswith("2 e-mail addresses replaced; ")
        assert run("protect", given, *LEAN, "--lines", stdin=stdin)[1] == "<EMAIL_1>\n<EMAIL_1>\n"
    session = tmp_path / "a.session"
    assert (
        run("protect", path, *LEAN, "--lines", "--session", session)[1] == "<EMAIL_1>\n<EMAIL_2>\n"
    )
    assert [json.loads(run("protect", path, *LEAN, "--json")[1])["text"]] == [
        "<EMAIL_1>\n<EMAIL_2>\n"
    ]
    for verb in ("protect", "privatize", "groups", "risk"):
        code, out, err = run(verb, path, *LEAN, "--whole")
        assert (code, out) == (2, "")
        assert "leave it out: a file is one text, and --lines takes each line as a text" in err


def test_a_file_of_rows_is_one_prompt(run, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,mail\r\n1,a@example.org\r\n2,b@example.org\r\n")
    assert (
        run("protect", tmp_path / "a.csv", *LEAN)[1] == "id,mail\r\n1,<EMAIL_1>\r\n2,<EMAIL_2>\r\n"
    )
    (tmp_path / "a.jsonl").write_text('{"to": "a@example.org"}\n{"to": "a@example.org"}\n')
    assert (
        run("protect", tmp_path / "a.jsonl", *LEAN)[1]
        == '{"to": "<EMAIL_1>"}\n{"to": "<EMAIL_1>"}\n'
    )


def test_whole_files_go_with_corpus_run(run, tmp_path):
    """Each row is a prompt of its own: what is private becomes a placeholder, and the rest stays."""
    (tmp_path / "a.csv").write_text("id,text\n1,write to a@example.org\n2,where is it\n")
    arguments = ("corpus", "run", tmp_path / "a.csv", *LEAN, "--field", "text", "--id", "id")
    code, out, err = run(*arguments, "--profile", "prompt", "--output", f"{tmp_path}/out/")
    assert code == 0
    assert "1 e-mail address became a placeholder" in out + err
    (part,) = (tmp_path / "out").glob("part-*")
    assert part.read_text() == "id,text\n1,write to <EMAIL_1>\n2,where is it\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("a", "b"), "takes one argument; put a text of several words in quotes"),
        (("a", "--field", "x"), "`textveil corpus run --profile prompt`"),
        (("a", "--resume"), "`textveil corpus run --profile prompt`"),
        (
            ("a", "--task", "x"),
            "change nothing here: groups.budgets treats important words like the others",
        ),
        (("a", "--output", "out.txt", "--task", "x"), "change nothing here"),
        (("a", "--task", "x", "--mechanism", "noise", "--epsilon", "1"), "change nothing here"),
        (("rows.csv", "--lines"), "for such files use `textveil corpus run --profile prompt`"),
        (
            ("rows.csv.gz",),
            "is compressed or binary; for such files use `textveil corpus run --profile prompt`",
        ),
        (
            ("rows.parquet",),
            "is compressed or binary; for such files use `textveil corpus run --profile prompt`",
        ),
        (
            ("rows.csv", "--output", "out/"),
            "for whole files and folders use `textveil corpus run --profile prompt`",
        ),
    ],
)
def test_one_line_says_what_is_wrong(run, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    files = ["rows.csv", "rows.csv.gz", "rows.parquet"]
    for each in files:
        (tmp_path / each).write_text("text\nZyxqorvian\n")
    code, out, err = run("protect", *arguments, *LEAN)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"textveil: error: .*\n", err)
    assert says in err
    assert "Zyxqorvian" not in err
    assert sorted(each.name for each in tmp_path.iterdir()) == files


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        ("personal", "Born on <BIRTH_DATE_1>, in office in 2001\n"),
        ("all", "Born on <BIRTH_DATE_1>, in office in <DATE_1>\n"),
        ("none", "Born on 12 May 1968, in office in 2001\n"),
    ],
)
def test_dates_are_hidden_as_asked(run, dates, expected):
    code, out, _ = run("protect", "Born on 12 May 1968, in office in 2001", *LEAN, "--dates", dates)
    assert (code, out) == (0, expected)


def test_a_wrong_choice_of_dates_names_the_choices(run):
    code, out, err = run("protect", "In 2001", *LEAN, "--dates", "some")
    assert (code, out) == (2, "")
    assert "must be 'personal', 'all' or 'none'" in err
