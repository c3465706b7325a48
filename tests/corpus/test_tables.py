"""Tables: kept columns, identifiers, refusals that end in a command that works, plans, progress by row."""

import csv
import json
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.test_cli import NOISE, Run, environment, run, table

from textveil.config import layers
from textveil.corpus import FinishedRelease, LocalExecutor, RowOptions, part_worker, runs
from textveil.corpus.columns import is_person_name, profile_file
from textveil.corpus.roles import propose_roles
from textveil.corpus.row_progress import count_rows, listen_to_rows
from textveil.errors import ConfigError, TextveilWarning

__all__ = ["environment", "run", "table"]

pytestmark = pytest.mark.usefixtures("table")

CANARY = "zyxqorvian"
PERSONS = ("Maria Silva", "Anna Kowalska", "Jane Alvarez", "Jose Gonzalez")
HEAD = ("id", "customer", "comment", "stars", "mail", "who", "price")


def make_row(n: int) -> tuple[Any, ...]:
    comment = f"the anna owes {CANARY} pounds to bank"
    who = PERSONS[n % 4]
    return n, f"c{n % 5}", comment, n % 3, f"{CANARY}{n}@example.org", who, n * 7.25


@pytest.fixture(autouse=True)
def fresh() -> None:
    part_worker._PRIVATIZERS.clear()


@pytest.fixture
def comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table with 30 rows, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "comments.csv", HEAD, map(make_row, range(30)))
    return tmp_path / "comments.csv"


def write_csv(path: Path, head: Sequence[str], rows: Any) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def release(path: Path, to: Path, **options: Any) -> FinishedRelease:
    own = {name: options.pop(name) for name in ("report", "executor", "resume") if name in options}
    config = layers.resolve(overrides=layers.convert_keywords(epsilon=5.0))
    return runs.run(
        path,
        to,
        config,
        RowOptions(**{"id": "id", "fields": ("comment",), **options}),
        part_rows=20,
        **own,
    )


def find_command(err: str) -> list[str]:
    """The command line at the end of a refusal, without `textveil`."""
    return shlex.split(err.rpartition("For example: ")[2])[1:]


# ---- kept columns --------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_kept_columns_are_copied_and_the_others_dropped(tmp_path, ending):
    rows = [dict(zip(HEAD, make_row(n), strict=True)) for n in range(30)]
    path, out = tmp_path / f"a.{ending}", tmp_path / "out"
    mark = "," if ending == "csv" else "\t"
    if ending == "jsonl":
        rows = [row | {"deep": {"x": [row["id"], None]}} for row in rows]
        del rows[7]["stars"], rows[8]["deep"]  # rows may differ
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif ending == "parquet":
        rows = [row | {"deep": {"x": [row["id"], None]}} for row in rows]
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        lines = [HEAD, *(row.values() for row in rows)]
        path.write_text("".join(mark.join(map(str, line)) + "\n" for line in lines))
    keep = ("stars", "deep") if ending in ("jsonl", "parquet") else ("stars",)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TextveilWarning)  # of the column `deep`
        done = release(path, out, keep=keep)
    if ending == "parquet":
        tables = [pq.read_table(part).to_pylist() for part in sorted(out.glob("part-*"))]
        found = [row for rows_of_part in tables for row in rows_of_part]
    elif ending == "jsonl":
        parts = [part.read_text().splitlines() for part in sorted(out.glob("part-*"))]
        found = [json.loads(line) for lines_of_part in parts for line in lines_of_part]
    else:
        found = []
        for part in sorted(out.glob("part-*")):
            with part.open(newline="") as file:
                found += csv.DictReader(file, delimiter=mark)
        rows = [{name: str(value) for name, value in row.items()} for row in rows]
    names = ("id", "comment", *keep)
    assert [{**row, "comment": ""} for row in found] == [
        {name: row[name] if name != "comment" else "" for name in names if name in row}
        for row in rows
    ]
    assert CANARY not in str(found)
    assert done.manifest["copied_fields"] == ["id", *keep]
    assert done.manifest["dropped_fields"] is True
    assert "price" not in json.dumps(done.manifest)


def test_a_column_that_is_not_dropped_is_noticed(comments, monkeypatch):
    """A broken twin of the test above: the other columns are written too."""
    monkeypatch.setattr(RowOptions, "select_fields", lambda *_, **__: None)
    release(comments, comments.parent / "out", keep=("stars",))
    assert CANARY in (comments.parent / "out" / "part-00000000.csv").read_text()


def test_a_kept_column_may_be_that_of_subjects_and_a_resumed_run_keeps_the_same(comments):
    out = comments.parent / "out"
    keep = ("customer", "stars")

    class StopError(Exception):
        pass

    def stop(name: str, done: int, _: int) -> None:
        if name == "rows" and done:
            raise StopError

    with pytest.warns(TextveilWarning, match="customer"), pytest.raises(StopError):
        release(comments, out, subject="customer", keep=keep, report=stop)
    with pytest.raises(ConfigError, match=r"differ: rows\.keep"):
        release(comments, out, subject="customer", keep=("stars",), resume=True)
    with pytest.warns(TextveilWarning, match="customer"):
        release(comments, out, subject="customer", keep=keep, resume=True)
    done = release(comments, out, subject="customer", keep=keep, resume=True)
    assert (out / "part-00000001.csv").read_text().startswith("id,comment,customer,stars\n20,")
    assert done.is_earlier
    with pytest.raises(ConfigError, match=r"other options \(.*copied_fields"):
        release(comments, out, subject="customer", keep=("stars",), resume=True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"keep": ("stars",), "others": "copy"}, "leave out --others"),
        ({"keep": ("comment",)}, "--field names 'comment', too"),
        ({"keep": ("starz",)}, r"no column 'starz' \(--keep\), did you mean 'stars'"),
    ],
)
def test_kept_columns_that_are_refused(comments, options, says):
    with pytest.raises(ConfigError, match=says):
        release(comments, comments.parent / "out", **options)


def test_a_kept_field_that_no_row_has_is_refused(tmp_path):
    """Lines of JSON may lack it, so all of them are read first."""
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    lines = [{"id": n, "comment": "the bank", "stars": n} for n in range(300)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ConfigError, match=r"no row has .* 'starz' \(--keep\).* stars"):
        release(path, out, keep=("starz",))
    assert not list(out.glob("part-*"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"keep": ("stars", "mail")}, r"mail \(holds e-mail addresses\).*--keep-anyway mail$"),
        ({"fields": ("stars",), "keep": ("comment",)}, r"comment \(holds texts\)"),
        ({"keep": ("who",), "keep_anyway": ("mail",)}, r"who \(holds persons\).*-anyway who$"),
    ],
)
def test_a_kept_column_of_texts_or_identifiers_needs_a_second_word(comments, options, says):
    """Also where two names were swapped: nothing is drawn, and no folder is left."""
    out = comments.parent / "out"
    with pytest.raises(ConfigError, match=says) as caught:
        release(comments, out, **options)
    assert CANARY not in str(caught.value)
    assert not out.exists()
    anyway = {"keep_anyway": (*options["keep"], *options.get("keep_anyway", ()))}
    with pytest.warns(TextveilWarning, match="leave them out"):
        done = release(comments, out, **options | anyway)
    assert done.manifest["copied_fields"] == ["id", *anyway["keep_anyway"]]


# ---- identifiers ---------------------------------------------------------------------------------


def test_copied_identifiers_are_told_and_no_value_is(comments):
    with pytest.warns(TextveilWarning) as caught:
        done = release(comments, comments.parent / "out", others="copy")
    (message,) = [str(each.message) for each in caught]
    expected = {
        "customer": "named like persons",
        "mail": "holds e-mail addresses",
        "price": "nearly all its values differ",
        "who": "holds persons",
    }
    assert done.manifest["statement"]["identifying_fields"] == expected
    page = (comments.parent / "out" / "statement.md").read_text()
    for name, why in expected.items():
        assert f"{name} ({why})" in message
        assert f"{name} ({why})" in page
    assert "--keep" in message
    assert CANARY not in message + page + json.dumps(done.manifest)
    assert "stars (" not in message


def test_an_id_may_differ_and_may_not_be_an_address(comments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = release(comments, comments.parent / "out", others="drop")
    assert done.manifest["statement"]["identifying_fields"] == {}
    with pytest.warns(TextveilWarning, match=r"mail \(holds e-mail addresses\).*leave them out"):
        release(comments, comments.parent / "more", others="drop", id="mail")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("a", "+47 22 33 44 {:02}", "holds phone numbers"),
        ("a", "192.168.7.{}", "holds IP addresses"),
        ("a", "{:05} is a rather long remark", "holds texts"),
        ("Telefon", "x{}", "named like phone numbers"),
        ("correo", "x{}", "named like e-mail addresses"),
        ("氏名", "x{}", "named like persons"),
        ("name", "Anna", "holds persons"),
        ("name", "boots", ""),
        ("Geburtsdatum", "x", "named like dates of birth"),
        ("x", "{}", "nearly all its values differ"),
        ("branch", "Anna", ""),
        ("x", "same", ""),
        ("product_name", "boots", ""),
        ("city", "Bergen", ""),
    ],
)
def test_what_looks_like_an_identifier(tmp_path, name, value, says):
    write_csv(tmp_path / "a.csv", (name,), ([value.format(n)] for n in range(40)))
    (column,) = profile_file(str(tmp_path / "a.csv")).columns
    assert column.warning == says


def test_full_names():
    assert is_person_name("Maria Silva")
    assert is_person_name("Silva, Maria J.")
    assert not any(map(is_person_name, ("Maria", "red shoes", "maria silva", "Oslo Harbour Bank")))


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), ("--id NAME", "--field NAME", "--keep NAME", "--output FOLDER", "Columns: id, ")),
        (("--field", "comment", "-O", "out"), ("--id NAME", "5 fields")),
        (
            ("--field", "coment", "--id", "idd", "--subject", "customr", "--keep", "star"),
            ("'coment' (--field), did you mean 'comment'?", "'idd'", "'customr'", "'star'"),
        ),
        (("--id-from-row", "--field", "comment"), ("6 fields",)),
        (("--field", "comment", "--keep-anyway", "price"), ("--id NAME",)),
        (("--id", "id", "--field", "nothinglike", "--others", "drop"), ("'nothinglike'",)),
        (
            ("--id", "id", "--field", "comment", "--subject", "xyz", "--keep", "nope"),
            ("'xyz' (--subject); no column 'nope' (--keep). ",),
        ),
    ],
)
def test_one_refusal_says_all_and_its_command_works(run: Run, comments, arguments, says):
    code, out, err = run("corpus", "run", "comments.csv", *arguments, *NOISE)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert all(each in err for each in says)
    assert CANARY not in err
    assert ".;" not in err
    command = find_command(err)
    code, _, err = run(*command)
    assert code == 0, err
    assert "30 rows in 1 part" in err
    with next(comments.parent.glob("*/part-*.csv")).open(newline="") as file:
        columns = [*(csv.DictReader(file).fieldnames or ())]
    assert not {"mail", "who", "customer"} & {*columns}
    assert ("price" in columns) == ("price" in arguments)


def test_a_kept_column_that_a_long_table_lacks_gets_a_command(run: Run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "long.csv", HEAD, map(make_row, range(300)))
    arguments = ("--id", "id", "--field", "comment", "--keep", "nope", "-O", "out")
    code, _, err = run("corpus", "run", "long.csv", *arguments)
    assert code == 2
    assert "--keep stars" in err.rpartition("For example: ")[2]


def test_a_table_without_names_gets_no_command(run: Run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", (f"{CANARY}@example.org", "5"), [(f"{CANARY}@example.org", "5")])
    for arguments in (("run", "a.csv"), ("plan", "a.csv")):
        code, out, err = run("corpus", *arguments)
        assert (code, out) == (2, "")
        assert CANARY not in err
        assert "For example" not in err


def test_a_file_of_lines_gets_a_command(run: Run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.txt").write_text("the anna\nowes the bank\n")
    code, _, err = run("corpus", "run", "a b.txt", *NOISE)
    assert code == 2
    assert run(*find_command(err))[0] == 0
    assert (tmp_path / "released").is_dir()


# ---- plans ---------------------------------------------------------------------------------------


def test_a_plan_proposes_commands_and_shows_no_value(run: Run, comments):
    code, out, err = run("corpus", "plan", "comments.csv")
    assert (code, err) == (0, "")
    roles = {line.split()[0]: line for line in out.splitlines()[3:10]}
    assert {name: line.split(":")[0].rsplit(None, 1)[1] for name, line in roles.items()} == {
        "id": "id",
        "customer": "subject",
        "comment": "text",
        "stars": "keep",
        "mail": "drop",
        "who": "drop",
        "price": "drop",
    }
    assert not any(value in out.lower() for value in (CANARY, "maria", "c1", "example.org"))
    synthesize = next(line for line in out.splitlines() if "corpus synthesize" in line)
    assert "--label stars --labels-file labels.txt --subject customer --per-subject 1" in synthesize
    assert "N is a guess at the number of subjects" in out
    code, out, _ = run("corpus", "plan", "comments.csv", "--json")
    document = json.loads(out)
    assert (code, document["rows"], document["label"]) == (0, 30, "stars")
    assert CANARY not in out
    command = shlex.split(document["commands"]["run"])[1:]
    place = command.index("--profile")
    assert run(*command[:place], *NOISE, *command[place + 2 :])[0] == 0


def test_roles_in_other_languages(tmp_path):
    head = ("Zeilennr", "Kunde", "Bemerkung", "Sterne", "Preis")
    rows = ([n, f"k{n % 9}", f"{n} gut aber teuer war es", n % 5, n * 3] for n in range(60))
    path = tmp_path / "a.csv"
    write_csv(path, head, rows)
    assert propose_roles(profile_file(str(path))).options == {
        "ids": "column",
        "id": "Zeilennr",
        "subject": "Kunde",
        "fields": ("Bemerkung",),
        "keep": ("Sterne",),
    }


def test_a_table_with_other_marks_is_no_column_of_texts(run: Run, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id;comment\n" + "".join(f"{n};the bank is {CANARY}\n" for n in range(30)))
    code, out, err = run("corpus", "plan", str(path))
    assert (code, out) == (2, "")
    assert "by ';': a .csv must have commas" in err
    assert CANARY not in err


def test_a_subject_is_rather_an_address_than_a_name_that_several_share(tmp_path):
    rows = (
        (PERSONS[n % 4], f"p{n % 11}@example.org", "the letter did not come") for n in range(40)
    )
    write_csv(tmp_path / "a.csv", ("customer_name", "email", "text"), rows)
    assert propose_roles(profile_file(str(tmp_path / "a.csv"))).options["subject"] == "email"


# ---- progress ------------------------------------------------------------------------------------


def test_rows_inside_a_part_are_reported(comments):
    """The rows of a part that is done are `rows`; before that, its batches are `rows drawn`."""
    steps: list[tuple[str, int, int]] = []
    release(
        comments, comments.parent / "out", others="drop", report=lambda *step: steps.append(step)
    )
    drawn = [done for name, done, total in steps if name == "rows drawn" and total == 30]
    assert drawn == sorted(drawn)
    assert drawn[-1] == 30
    assert [done for name, done, _ in steps if name == "rows"] == [0, 20, 30]
    assert ("rows read", 30, 0) in steps
    assert [step for step in steps if step[0] == runs.LOADING] == [
        (runs.LOADING, 0, 0),
        (runs.LOADING, 1, 1),
    ]


def _count(rows: int) -> int:
    count_rows(rows)
    return rows


def test_rows_of_other_processes_are_reported():
    counted: list[int] = []
    with listen_to_rows(counted.append), LocalExecutor(2) as executor:
        assert sum(done for _, done in executor.map(_count, [3, 4, 5])) == 12
    assert sum(counted) == 12
