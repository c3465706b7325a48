"""The demonstration: what it shows is true, short, and needs nothing but the core."""

import html
import re
import subprocess
import sys

import pytest

from textveil.cli import demo
from textveil.evaluate.risk import describe_public_attackers
from textveil.table import load_table

EXTRAS = (
    "torch",
    "transformers",
    "scipy",
    "sklearn",
    "rapidfuzz",
    "matplotlib",
    "pyarrow",
    "openai",
    "starlette",
    "uvicorn",
    "sentence_transformers",
)


@pytest.fixture(scope="module")
def shown():
    """What a process prints that has the core only, on 100 columns and no terminal."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))\n"
        "from rich.console import Console; from textveil.cli import demo\n"
        "demo.show(Console(width=100, highlight=False), seed=1)"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    ).stdout


@pytest.mark.slow
def test_it_is_short_and_needs_no_colours(shown):
    lines = shown.splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in shown
    assert [line[:2] for line in lines if re.match(r"\d\. ", line)] == ["1.", "2.", "3."]


@pytest.mark.slow
def test_the_prompt_comes_back_as_it_was_and_nothing_private_is_sent(shown):
    table = load_table()
    for seed in (1, 2):
        said = demo.describe_prompt(demo.run_prompt(table, seed))
        for private in ("Julia Picasso", "julia.picasso", "7946", "flat in Leith", "WEST"):
            assert private in demo.PROMPT
            assert private not in said["is sent"] + said["comes back"]
        assert said["you read"] == demo.answer_prompt(demo.PROMPT)
        assert said["comes back"] == demo.answer_prompt(said["is sent"])
        assert said["you read"].startswith("Dear Julia Picasso, ")
        assert said[""].startswith(
            "1 person, 1 place, 1 e-mail address, 1 phone number and 1 IBAN replaced"
        )
    assert "Dear Julia Picasso, " in shown


@pytest.mark.slow
def test_the_letter_has_its_statement_and_what_an_attacker_recovers(shown):
    said = " ".join(shown.split())
    assert re.search(
        r"\d+ words drawn at epsilon 7.5 and \d+ names at epsilon 6 \(any two words\)", said
    )
    assert "knows the seed" in said
    found = re.search(
        r"An attacker who knows this program and asks a language model .* is expected to name ([\d.]+) of your (\d+) "
        r"private words \((\d+)%\), estimated from [\w ]+ \(95% interval \d+% to \d+%\)\. "
        r"An attacker with thousands of public texts of the same "
        r"kind ",
        said,
    )
    assert found is not None
    assert int(found[3]) == pytest.approx(100 * float(found[1]) / int(found[2]), abs=0.6)


@pytest.mark.slow
def test_the_table_has_a_row_for_every_run_with_the_bound_that_was_asked_for(shown):
    rows = shown.partition("3. ")[2]
    for run in demo.DEMO_RUNS:
        line = next(line for line in rows.splitlines() if line.startswith(run.title + " "))
        found = re.fullmatch(
            rf"{run.title} +{run.epsilon:g}(?: per unit of chord distance)? +([\d.]+) +(\d+) of 68 *",
            line,
        )
        assert found is not None
        assert float(found[1]) >= run.epsilon
        assert int(found[2]) <= 68


def test_a_seed_makes_it_repeatable():
    table = load_table()
    first, second = (demo.describe_prompt(demo.run_prompt(table, 7)) for _ in range(2))
    assert first == second


def test_the_page_has_all_three_parts_and_loads_nothing(monkeypatch):
    table = load_table()
    monkeypatch.setattr("textveil.evaluate.curve.compute_curve", lambda *_, **__: [])
    monkeypatch.setattr("textveil.evaluate.risk.check_risk_options", lambda _: "unigram")
    monkeypatch.setattr(demo, "read_letter", lambda: "Dear Julia, the rent is still open.")
    prompt, letter = demo.run_prompt(table, 1), demo.run_letter(table, 1)
    shown = demo.Demonstration(
        prompt=prompt, letter=letter, rows=[("noise", "80", "132.1", "3 of 9")]
    )
    page = demo.build_page(shown)
    assert [page.index(f"<h2>{i}. ") for i in (1, 2, 3)] == sorted(
        page.index(f"<h2>{i}. ") for i in (1, 2, 3)
    )
    assert '<span class="word type-people">Julia Picasso</span>' in page
    assert '<span class="word type-people">&lt;PERSON_1&gt;</span>' in page
    assert "3 of 9" in page
    note = describe_public_attackers(letter.config, letter.risks)
    assert "names more" in note
    assert html.escape(note) in page
    assert page.count('class="statement-bar"') == 1
    assert not re.search(r"<script|https?://|src=|url\(|@import", page)
    pieces = demo.mark_prompt(prompt)
    assert "".join(text for text, _ in pieces["You write"]) == demo.PROMPT
    assert "".join(text for text, _ in pieces["You read"]) == prompt.session.restore(prompt.answer)
