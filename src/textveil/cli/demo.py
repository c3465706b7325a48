"""The demonstration: one packaged letter through four mechanisms, and any text beside its release.

In: a console and results. Out: original and released text side by side, each word marked by its fate.
Not here: how a text is privatized (`pipeline`), and the command itself (`cli`).
"""

import time
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from textveil.guarantee import number
from textveil.pipeline import Privatizer, Result
from textveil.table import load_table
from textveil.text import Kind, tokenize

Fate = Literal["changed", "kept", "public", "placeholder"]

_MARKS: dict[Fate, tuple[str, str, str]] = {
    # style on a terminal, then what stands before and after the word elsewhere
    "changed": ("bold", "[", "]"),
    "kept": ("yellow underline", "=", "="),  # the one to look for: it is what an onlooker sees
    "public": ("dim", "", ""),
    "placeholder": ("bold", "", ""),
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One row of the demonstration: a mechanism, its epsilon and its options."""

    mechanism: str
    epsilon: float
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def title(self) -> str:
        """Mechanism, epsilon and options, as they stand above a release."""
        return f"{self.mechanism}, epsilon {self.epsilon:g}" + "".join(
            f", {name} {value}" for name, value in self.options
        )


WINDOW = (("L", 5),)

RUNS = (
    Run(mechanism="noise", epsilon=60),
    Run(mechanism="noise", epsilon=80),
    Run(mechanism="polar", epsilon=65),
    Run(mechanism="polar", epsilon=85),
    # about 30% and 60% of the letter's protected words are kept (means over 60 seeds: 29% and 62%)
    Run(mechanism="d-chi-stencil", epsilon=130, options=WINDOW),
    Run(mechanism="d-chi-stencil", epsilon=170, options=WINDOW),
    Run(mechanism="exponential", epsilon=7),
    Run(mechanism="exponential", epsilon=8),
)

REMARK = (
    "Protected does not mean changed: a word may be drawn as itself, and epsilons of different mechanisms cannot be "
    "compared."
)


def letter() -> str:
    """The packaged letter: invented people, ordinary words, some numbers and unusual names."""
    return (files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8").strip()


def show(console: Console, *, seed: int | None = None) -> None:
    """Privatize the letter with every run of `RUNS` and print each beside the original.

    Args:
        console: where to print; marks are styles on a terminal and signs elsewhere.
        seed: repeatable draws, which the statements then say; None for system randomness.
    """
    marked = shows_styles(console)
    start = time.perf_counter()
    table = load_table()
    text = letter()
    ready = time.perf_counter() - start
    count = len(tokenize([text]).words)
    console.print(
        f"An invented letter of {count} words with punctuation marks; the table {table.name}, loaded in {ready:.2f} s."
    )
    console.print(legend(marked=marked))
    summary = Table(box=None, padding=(0, 2), pad_edge=False, header_style="bold")
    for heading in ("mechanism", "epsilon", "kept", "local DP (epsilon_ldp)", "time"):
        summary.add_column(heading, justify="left" if heading == "mechanism" else "right")
    for run in RUNS:
        start = time.perf_counter()
        privatizer = Privatizer(run.mechanism, epsilon=run.epsilon, table=table, seed=seed, **dict(run.options))
        result = privatizer.privatize(text)
        seconds = time.perf_counter() - start
        console.print()
        console.rule(Text(run.title, style="bold"), characters="-")
        console.print(beside(result, marked=marked))
        kept, protected = count_kept(result)
        share = f" ({kept / protected:.0%})" if protected else ""
        console.print(f"Kept: {kept} of {protected} protected words{share}. Time: {seconds:.2f} s.")
        # Three lines for whoever reads them with a program; a person's terminal wraps them at words.
        console.print(Text(result.guarantee.headline()), soft_wrap=not console.is_terminal)
        name = " ".join((run.mechanism, *(f"{option}={value}" for option, value in run.options)))
        bound = number(result.guarantee.epsilon_ldp)
        summary.add_row(name, f"{run.epsilon:g}", f"{kept} of {protected}", bound, f"{seconds:.2f} s")
    console.print()
    console.rule(Text("summary", style="bold"), characters="-")
    console.print(REMARK)
    console.print()
    console.print(summary)


def shows_styles(console: Console) -> bool:
    """Whether words are marked by styles: on a terminal, unless NO_COLOR or TERM=dumb asks for none."""
    return console.is_terminal and not console.no_color and not console.is_dumb_terminal


def fates(result: Result) -> list[Fate]:
    """What became of each item of a release: changed, kept (drawn as it was), public or placeholder."""
    found: list[Fate] = []
    for item in result.released.items:
        original = result.private.words[item.start]
        if item.kind is Kind.VERBATIM:
            found.append("public")
        elif item.kind is Kind.PLACEHOLDER:
            found.append("placeholder")
        else:
            found.append("kept" if item.text.lower() == original.lower() else "changed")
    return found


def count_kept(result: Result) -> tuple[int, int]:
    """How many protected words came out as they went in, and how many there are."""
    found = fates(result)
    return found.count("kept"), len(found) - found.count("public")


def beside(result: Result, *, marked: bool) -> Table:
    """Original and released text in two columns of equal width; the words of the released one are marked.

    Args:
        result: a result, whose original will be shown.
        marked: whether words are marked by styles; else by signs around them.
    """
    grid = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, header_style="bold")
    grid.add_column("original", ratio=1, overflow="fold")
    grid.add_column("released", ratio=1, overflow="fold")
    original, released = Text(result.private.text), Text()
    release = result.released  # it has one gap more than items, after the last
    for gap, item, fate in zip(release.gaps[:-1], release.items, fates(result), strict=True):
        style, before, after = _MARKS[fate]
        released.append(gap)
        released.append(item.text if marked else f"{before}{item.text}{after}", style if marked else "")
    grid.add_row(original, released)
    return grid


def legend(*, marked: bool) -> Text:
    """What the marks mean."""
    line = Text()
    meanings: dict[Fate, str] = {
        "changed": "changed",
        "kept": "protected, and drawn as it was",
        "public": "on the public list, passed as it is",
    }
    for fate, meaning in meanings.items():
        style, before, after = _MARKS[fate]
        line.append("; " if line else "Marks: ")
        line.append("word" if marked else f"{before}word{after}", style if marked else "")
        line.append(f" {meaning}")
    return line.append(".")
