"""The demonstration: a prompt, a letter, and mechanisms side by side.

In: a console. Out: what is sent and released, with what is said of it. Also any text beside its
release.
Not here: how a text is privatized (`pipeline`), and the command itself (`cli.lookup`).
"""

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from textveil.config import convert_keywords, resolve
from textveil.guarantee import describe_hidden, format_number
from textveil.pipeline import Privatizer, Protector, Result
from textveil.session import Session
from textveil.table import EmbeddingTable, load_table
from textveil.text import Kind

Treatment = Literal["changed", "kept", "public", "placeholder"]

_TREATMENT_MARKS: dict[Treatment, tuple[str, str, str]] = {
    # style on a terminal, then what stands before and after the word elsewhere
    "changed": ("bold", "[", "]"),
    "kept": ("yellow underline", "=", "="),  # the one to look for: it is what an onlooker sees
    "public": ("dim", "", ""),
    "placeholder": ("bold", "", ""),
}

PROMPT = (
    "Write a friendly reminder to Julia Picasso (julia.picasso@example.org, +44 20 7946 0958): "
    "the rent of 940 pounds for her flat in Leith is three weeks late. It goes to GB82 WEST 1234 "
    "5698 7654 32."
)


@dataclass(frozen=True, kw_only=True)
class DemoRun:
    """A mechanism in the demonstration's table, with epsilon and options."""

    mechanism: str
    epsilon: float
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def title(self) -> str:
        """The mechanism with its options."""
        return " ".join((self.mechanism, *(f"{name}={value}" for name, value in self.options)))


DEMO_RUNS = (
    DemoRun(mechanism="noise", epsilon=80),
    DemoRun(mechanism="polar", epsilon=85),
    DemoRun(mechanism="d-chi-stencil", epsilon=170, options=(("L", 5),)),
    DemoRun(mechanism="exponential", epsilon=8),
    DemoRun(mechanism="rankcape", epsilon=7.5, options=(("k", 100),)),
)

EPSILON_REMARK = (
    "Epsilons of different mechanisms cannot be compared; what an attacker recovers can "
    "(`textveil risk`)."
)


def read_letter() -> str:
    """Returns the packaged letter.

    It has invented people, ordinary words, some numbers and unusual names.
    """
    return (files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8").strip()


def show(console: Console, *, seed: int | None = None) -> None:
    """Shows a prompt, a letter, and a table of mechanisms.

    The prompt with its answer, the letter with its statement and its risk.

    Args:
        console: where to print; nothing depends on colours.
        seed: repeatable draws, which the statements then say; None for system randomness.
    """
    table = load_table()
    _print_heading(
        console,
        (
            "1. Protect a prompt, and get the answer back (from a scripted model here; no network "
            "is used)"
        ),
    )
    console.print(_build_grid(protect_prompt(table, seed)))
    _print_heading(
        console, "\n2. Privatize a text: an invented letter under the profile `document`"
    )
    console.print(_build_grid(privatize_letter(table, seed)))
    _print_heading(console, "\n3. Mechanisms, each on the same letter")
    console.print(compare_mechanisms(table, seed))
    console.print(EPSILON_REMARK)


def protect_prompt(table: EmbeddingTable, seed: int | None) -> dict[str, str]:
    """Protects a prompt, and restores its answer.

    Returns each text by its title.
    """
    session = Session()
    result = Protector(table=table, seed=seed).protect(PROMPT, session)
    answer = answer_prompt(result.text)
    return {
        "you write": PROMPT,
        "is sent": result.text,
        "": describe_hidden([result.released]),
        "comes back": answer,
        "you read": session.restore(answer),
    }


def answer_prompt(prompt: str) -> str:
    """Answers `PROMPT` in place of a language model.

    It writes what `PROMPT` asks for, with the values in the prompt it gets.
    """
    name, place, account = (
        match[1] if (match := re.search(pattern, prompt)) else "you"
        for pattern in (r"reminder to (.+?) \(", r"flat in (.+?) is", r"goes to (.+?)\.$")
    )
    return (
        f"Dear {name}, the rent of your flat in {place} is still open. Please send it to {account}."
    )


def privatize_letter(table: EmbeddingTable, seed: int | None) -> dict[str, str]:
    """Privatizes the letter, and assesses its risk.

    Returns the letter, its release, the statement and the attacker's success, by their titles.
    """
    from textveil.evaluate.attack import Case
    from textveil.evaluate.risk import (
        assess,
        check_risk_options,
        describe_public_attackers,
        describe_risk,
    )

    config = resolve(profile="document", overrides=convert_keywords(seed=seed))
    privatizer = Privatizer.from_config(config, table=table)
    evaluation_run = privatizer.rehearse([read_letter()])
    risks = assess(
        Case.build(privatizer, evaluation_run, names=True), prior=check_risk_options(config)
    )
    result = evaluation_run.results[0]
    return {
        "you write": _shorten(read_letter(), 160),
        "released": _shorten(result.text, 400),
        "statement": result.guarantee.summary(),
        "attacker": f"{describe_risk(risks)} {describe_public_attackers(config, risks)}",
    }


def compare_mechanisms(table: EmbeddingTable, seed: int | None) -> Table:
    """Builds a table of each run's bound and unchanged words.

    Unchanged words of the letter came out as they went in.
    """
    rows = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    rows.add_column("mechanism", no_wrap=True)
    rows.add_column("epsilon", no_wrap=True)
    rows.add_column("for any two words", justify="right")
    rows.add_column("words unchanged", justify="right")
    for run in DEMO_RUNS:
        privatizer = Privatizer(
            run.mechanism, epsilon=run.epsilon, table=table, seed=seed, **dict(run.options)
        )
        result = privatizer.privatize(read_letter())
        guarantee = result.guarantee
        unit = (
            f" per unit of {guarantee.claim.metric} distance" if guarantee.kind == "metric" else ""
        )
        unchanged, protected = count_unchanged(result)
        bound = format_number(guarantee.epsilon_ldp)
        rows.add_row(
            run.title,
            f"{format_number(guarantee.epsilon)}{unit}",
            bound,
            f"{unchanged} of {protected}",
        )
    return rows


def _shorten(text: str, max_characters: int) -> str:
    """Returns the first words of a long text.

    So that the demonstration fits on a screen.
    """
    return f"{text[:max_characters].rsplit(' ', 1)[0]} ..."


def _print_heading(console: Console, text: str) -> None:
    console.print(Text(text, style="bold"))


def _build_grid(texts: dict[str, str]) -> Table:
    """Builds a grid of texts behind their titles."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for name, text in texts.items():
        grid.add_row(name, Text(text))
    return grid


def has_styles(console: Console) -> bool:
    """Says whether words are marked by styles.

    On a terminal, unless NO_COLOR or TERM=dumb asks for none.
    """
    return console.is_terminal and not console.no_color and not console.is_dumb_terminal


def classify_items(result: Result) -> list[Treatment]:
    """Returns the treatment of each item of a release.

    Changed, kept (drawn as it was), public or placeholder.
    """
    treatments: list[Treatment] = []
    for item in result.released.items:
        original = result.private.words[item.start]
        if item.kind is Kind.VERBATIM:
            treatments.append("public")
        elif item.kind is Kind.PLACEHOLDER:
            treatments.append("placeholder")
        else:
            treatments.append("kept" if item.text.lower() == original.lower() else "changed")
    return treatments


def count_unchanged(result: Result) -> tuple[int, int]:
    """Counts the protected words that are unchanged, and all protected ones."""
    treatments = classify_items(result)
    return treatments.count("kept"), len(treatments) - treatments.count("public")


def build_comparison(result: Result, *, marked: bool) -> Table:
    """Builds a table of original and released text side by side.

    In two columns of equal width; the words of the released one are marked.

    Args:
        result: a result, whose original will be shown.
        marked: whether words are marked by styles; else by signs around them.
    """
    grid = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, header_style="bold")
    grid.add_column("original", ratio=1, overflow="fold")
    grid.add_column("released", ratio=1, overflow="fold")
    original, released = Text(result.private.text), Text()
    release = result.released  # it has one gap more than items, after the last
    for gap, item, treatment in zip(
        release.gaps[:-1], release.items, classify_items(result), strict=True
    ):
        style, before, after = _TREATMENT_MARKS[treatment]
        released.append(gap)
        released.append(
            item.text if marked else f"{before}{item.text}{after}", style if marked else ""
        )
    grid.add_row(original, released)
    return grid
