"""Books of codes on the command line: made, described, and drawn from."""

import json
import re

import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil import cli
from textveil.mechanism import compute_information, compute_keep_rate
from textveil.table import Book, list_shipped


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 60 words, public texts, and the same with labels."""
    made = tmp_path_factory.mktemp("codes")
    rows = (
        f"{word} {' '.join(map(str, row.tolist()))}"
        for word, row in zip(NOUNS, gaussian_rows(60, 8, 7), strict=True)
    )
    (made / "vectors.txt").write_text("\n".join(rows) + "\n")
    assert cli.main(["table", "build", str(made / "vectors.txt"), "-o", str(made / "table")]) == 0
    texts = [f"The {NOUNS[i % 60]} and the {NOUNS[(i + 1) % 60]}." for i in range(240)]
    (made / "public.txt").write_text("\n".join(texts) + "\n")
    lines = (
        json.dumps({"text": text, "about": "x" if i % 60 < 30 else "y"})
        for i, text in enumerate(texts)
    )
    (made / "labelled.jsonl").write_text("\n".join(lines) + "\n")
    return made


@pytest.fixture
def run(capsys, folder, monkeypatch):
    """Run a verb in the folder: exit code, standard output, standard error."""
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


TABLE = ("--table", "./table")


def test_a_domain_book_is_made_described_and_drawn_from(run, folder):
    code, out, err = run(
        "table", "codes", "--codes", "5", *TABLE, "--public", "public.txt", "-o", "five.book"
    )
    assert (code, err) == (0, "")
    made = Book.read(folder / "five.book")
    assert (made.kind, made.source, len(made)) == ("domain", "public.txt", 5)
    assert out.startswith("5 codes for the words of the table vectors\nThe domain book ")
    assert run("table", "info", "five.book")[1] == out
    assert json.loads(run("table", "info", "five.book", "--json")[1]) == made.to_json()
    assert run("table", "info", "24@24") == run("table", "info", "24")

    drawn = (
        "privatize",
        "lemon castle",
        *TABLE,
        "--mechanism",
        "codebook",
        "--codes",
        "five.book",
        "--epsilon",
        "4",
    )
    code, out, err = run(*drawn)
    assert code == 0
    assert {*out.split()} <= {*NOUNS}
    assert "2 words drawn among 5 codes at epsilon 4 (any two words)" in err
    code, out, _ = run(*drawn, "--emit", "codes", "--json")
    assert all(word.startswith("code") for word in json.loads(out)["text"].split())
    for lines in ((), ("--lines",)):  # whole, too: a book's own texts are known line by line
        code, _, err = run("privatize", "public.txt", *lines, *drawn[2:])
        assert code != 0
        assert "made from other texts than those that are released" in err


def test_the_profile_data_writes_words_or_codes(run, folder):
    (folder / "letters.csv").write_text(
        "text,stars\nthe bakery is in the valley,5\ncall +351 21 123 4567 for butter,1\n"
    )
    for emit, form in (("words", r"[a-z0-9]+"), ("codes", r"code\d{1,2}")):
        made = (
            "corpus",
            "run",
            "letters.csv",
            "--id-from-row",
            "--others",
            "copy",
            "--profile",
            "data",
            "--emit",
            emit,
        )
        assert run(*made, "--output", emit)[0] == 0
        said = (folder / emit / "part-00000000.csv").read_text().splitlines()
        assert re.fullmatch(rf"the {form} is in the {form},5", said[1])
        assert re.fullmatch(rf"{form} <PHONE> for {form},1", said[2])


def test_a_task_book_says_what_it_lets_through(run, folder):
    said = (
        "table",
        "codes",
        "--codes",
        "2",
        *TABLE,
        "--labelled",
        "labelled.jsonl",
        "--label",
        "about",
    )
    code, out, _ = run(*said, "--source", "forty sentences of nobody", "-o", "task.book")
    assert code == 0
    assert "made from forty sentences of nobody" in out
    assert "reveals the label of a text" in out
    made = Book.read(folder / "task.book")
    assert made.kind == "task"
    assert made.codes[2] != made.codes[40]


def test_a_book_of_the_vectors_alone(run, folder):
    code, out, _ = run(
        "table", "codes", "--codes", "9", *TABLE, "--head", "0.5", "--seed", "3", "-o", "alone.book"
    )
    assert code == 0
    assert "the general book" in out.lower()
    assert Book.read(folder / "alone.book").options["seed"] == 3


def test_books_are_compared_at_an_epsilon(run):
    """The figures are those of the books; the one that tells most of a word is marked."""
    made = ("table", "codes", *TABLE, "--public", "public.txt")
    for codes in ("2", "30"):
        assert run(*made, "--codes", codes, "-o", f"{codes}.book")[0] == 0
    for epsilon, best in (("1", "2.book"), ("8", "30.book")):
        code, out, err = run("table", "books", "2.book", "30.book", "--epsilon", epsilon, "--json")
        assert (code, err) == (0, "")
        found = json.loads(out)
        assert found["epsilon"] == float(epsilon)
        for each in found["books"]:
            book = Book.read(each["book"])
            assert each["digest"] == book.digest
            assert (
                each["information"]
                == compute_information(book.masses, float(epsilon))
                <= each["entropy"]
            )
            assert each["named"] == book.compute_success(float(epsilon))
            assert each["own_code"] == compute_keep_rate(len(book), float(epsilon))
        assert [each["book"] for each in found["books"] if each["most"]] == [best]
        lines = run("table", "books", "2.book", "30.book", "--epsilon", epsilon)[1].splitlines()
        assert [line.split()[1] for line in lines[1:3] if "*" in line] == [
            best.removesuffix(".book")
        ]
    code, out, _ = run("table", "books", "--epsilon", "4")
    assert [line.lstrip(" *").split()[0] for line in out.splitlines()[1:-2]] == [
        str(size) for size in list_shipped()
    ]


def test_a_nested_book_is_made_described_compared_and_drawn_from(run, folder):
    made = (
        "table",
        "codes",
        "--codes",
        "30",
        "--levels",
        "2, 6",
        *TABLE,
        "--public",
        "public.txt",
        "-o",
        "nested.book",
    )
    code, out, err = run(*made)
    assert (code, err) == (0, "")
    assert out.startswith(
        "30 codes for the words of the table vectors, and coarser levels of 2, 6\n"
    )
    book = Book.read(folder / "nested.book")
    assert book.levels == (2, 6, 30)
    assert run("table", "info", "nested.book@30")[1] == out
    code, out, _ = run("table", "info", "nested.book@6", "--json")
    assert (code, json.loads(out)) == (0, book.get_level(6).to_json())

    code, out, _ = run("table", "books", "nested.book", "--epsilon", "1", "--json")
    found = json.loads(out)["books"]
    assert [each["book"] for each in found] == [f"nested.book@{size}" for size in book.levels]
    assert [each["digest"] for each in found] == [
        book.get_level(size).digest for size in book.levels
    ]
    assert [each["most"] for each in found] == [True, False, False]
    assert (
        len(
            json.loads(run("table", "books", "nested.book@6", "--epsilon", "1", "--json")[1])[
                "books"
            ]
        )
        == 1
    )

    drawn = ("privatize", "lemon castle", *TABLE, "--mechanism", "codebook")
    for epsilon, level, codes in (("3", "@6", 6), ("1", "@auto", 2), ("8", "@auto", 30)):
        code, _, err = run(*drawn, "--codes", f"nested.book{level}", "--epsilon", epsilon)
        assert code == 0
        assert f"2 words drawn among {codes} codes at epsilon {epsilon} (any two words)" in err


@pytest.mark.parametrize("name", ["nested.book@5", "nested.book@0", "nested.book@auto", "24@8"])
def test_levels_that_there_are_not(run, folder, name):
    made = (
        "table",
        "codes",
        "--codes",
        "9",
        "--levels",
        "3",
        *TABLE,
        "--public",
        "public.txt",
        "-o",
        "nested.book",
    )
    assert run(*made)[0] == 0
    code, _, err = run("table", "books", name, "--epsilon", "4")
    assert code != 0
    assert err.count("\n") == 1
    assert ("must name a level of its book" in err) or ("follows from the budgets" in err)


@pytest.mark.parametrize("epsilon", ["0", "-1", "inf", "nan"])
def test_books_are_compared_at_a_finite_epsilon(run, epsilon):
    code, _, err = run("table", "books", f"--epsilon={epsilon}")
    assert code != 0
    assert "--epsilon must be above 0 and finite" in err


REFUSED = {
    "give --public or --labelled": (
        "--public",
        "public.txt",
        "--labelled",
        "labelled.jsonl",
        "--label",
        "about",
    ),
    "--labelled and --label go together": ("--labelled", "labelled.jsonl"),
    "has no column 'stars' (--label). Columns: ": (
        "--labelled",
        "labelled.jsonl",
        "--label",
        "stars",
    ),
    "nowhere.txt'": ("--public", "nowhere.txt"),
    "above 0 and below 1": ("--head", "2"),
    "--levels must be numbers of codes, separated by": ("--levels", ""),
    "such as 8,24,50": ("--levels", "two"),
    "numbers of codes, separated by commas": ("--levels", "2,,3"),
    "must be numbers of codes": ("--levels", "-2"),
    "--levels must be numbers": ("--levels", "9" * 5000),
    "must be increasing numbers from 2 to 2, because it has 3 codes, got 3": ("--levels", "3"),
    "because it has 3 codes, got 2, 2": ("--levels", "2,2"),
    "because it has 3 codes, got 1": ("--levels", "1"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused(run, folder, reason):
    code, _, err = run(
        "table", "codes", "--codes", "3", *TABLE, *REFUSED[reason], "-o", "refused.book"
    )
    assert code != 0
    assert reason in err
    assert not (folder / "refused.book").exists()
    assert "cast" not in err  # nothing of the texts


def test_output_goes_into_a_folder_that_exists(run):
    assert (
        "an existing folder"
        in run("table", "codes", "--codes", "3", *TABLE, "-o", "no/where.book")[2]
    )


def test_codebook_asks_for_codes(run):
    code, _, err = run("privatize", "lemon", *TABLE, "--mechanism", "codebook", "--epsilon", "4")
    assert code != 0
    assert "table.codes (--codes) is not set" in err
    code, _, err = run(
        "privatize", "lemon", *TABLE, "--mechanism", "krr", "--epsilon", "4", "--emit", "codes"
    )
    assert code != 0
    assert "table.codes (--codes): set that, too" in err
