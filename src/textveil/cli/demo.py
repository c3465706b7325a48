"""The demonstration: a prompt, a letter, and mechanisms side by side.

In: a console. Out: what is sent and released, with what is said of it. Also any text beside its
release.
Not here: how a text is privatized (`pipeline`), and the command itself (`cli.names`).
"""

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from textveil.config import keywords, resolve
from textveil.guarantee import hidden, number
from textveil.pipeline import Privatizer, Protector, Result
from textveil.session import Session
from textveil.table import EmbeddingTable, load_table
from textveil.text import Kind

Fate = Literal["changed", "kept", "public", "placeholder"]

_MARKS: dict[Fate, tuple[str, str, str]] = {
    # style on a terminal, then what stands before and after the word elsewhere
    "changed": ("bold", "[", "]"),
    "kept": ("yellow underline", "=", "="),  # the one to look for: it is what an onlooker sees
    "public": ("dim", "", ""),
    "placeholder": ("bold", "", ""),
}

PROMPT = (
    "Write a friendly reminder to Julia Picasso (julia.picasso@example.org, +44 20 7946 0958): the rent of 940 pounds "
    "for her flat in Leith is three weeks late. It goes to GB82 WEST 1234 5698 7654 32."
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A mechanism in the demonstration's table, with epsilon and options."""

    mechanism: str
    epsilon: float
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def title(self) -> str:
        """The mechanism with its options."""
        return " ".join((self.mechanism, *(f"{name}={value}" for name, value in self.options)))


RUNS = (
    Run(mechanism="noise", epsilon=80),
    Run(mechanism="polar", epsilon=85),
    Run(mechanism="d-chi-stencil", epsilon=170, options=(("L", 5),)),
    Run(mechanism="exponential", epsilon=8),
    Run(mechanism="rankcape", epsilon=7.5, options=(("k", 100),)),
)

REMARK = "Epsilons of different mechanisms do not compare; what an attacker recovers does (`textveil risk`)."


def letter() -> str:
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
        "1. Protect a prompt, and get the answer back (from a scripted model here; no network is used)",
    )
    console.print(_build_grid(prompt(table, seed)))
    _print_heading(
        console, "\n2. Privatize a text: an invented letter under the profile `document`"
    )
    console.print(_build_grid(document(table, seed)))
    _print_heading(console, "\n3. Mechanisms, each on the same letter")
    console.print(mechanisms(table, seed))
    console.print(REMARK)


def prompt(table: EmbeddingTable, seed: int | None) -> dict[str, str]:
    """Protects a prompt, and restores its answer.

    Returns each text by its title.
    """
    session = Session()
    sent = Protector(table=table, seed=seed).protect(PROMPT, session)
    answer = scripted(sent.text)
    return {
        "you write": PROMPT,
        "is sent": sent.text,
        "": hidden([sent.released]),
        "comes back": answer,
        "you read": session.restore(answer),
    }


def scripted(prompt: str) -> str:
    """Answers `PROMPT` in place of a language model.

    It writes what `PROMPT` asks for, with the values in the prompt it gets.
    """
    name, place, account = (
        found[1] if (found := re.search(pattern, prompt)) else "you"
        for pattern in (r"reminder to (.+?) \(", r"flat in (.+?) is", r"goes to (.+?)\.$")
    )
    return (
        f"Dear {name}, the rent of your flat in {place} is still open. Please send it to {account}."
    )


def document(table: EmbeddingTable, seed: int | None) -> dict[str, str]:
    """Privatizes the letter, and assesses its risk.

    Returns the letter, its release, the statement and the attacker's success, by their titles.
    """
    from textveil.evaluate.attack import Case
    from textveil.evaluate.risk import assess, beside, check, sentence

    config = resolve(profile="document", overrides=keywords(seed=seed))
    privatizer = Privatizer.from_config(config, table=table)
    rehearsal = privatizer.rehearse([letter()])
    risks = assess(Case.after(privatizer, rehearsal, names=True), prior=check(config))
    result = rehearsal.results[0]
    return {
        "you write": _shorten(letter(), 160),
        "released": _shorten(result.text, 400),
        "statement": result.guarantee.summary(),
        "attacker": f"{sentence(risks)} {beside(config, risks)}",
    }


def mechanisms(table: EmbeddingTable, seed: int | None) -> Table:
    """Builds a table of each run's bound and unchanged words.

    Unchanged words of the letter came out as they went in.
    """
    rows = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    rows.add_column("mechanism", no_wrap=True)
    rows.add_column("epsilon", no_wrap=True)
    rows.add_column("for any two words", justify="right")
    rows.add_column("words kept as they were", justify="right")
    for run in RUNS:
        privatizer = Privatizer(
            run.mechanism, epsilon=run.epsilon, table=table, seed=seed, **dict(run.options)
        )
        result = privatizer.privatize(letter())
        guarantee = result.guarantee
        unit = (
            f" per unit of {guarantee.claim.metric} distance" if guarantee.kind == "metric" else ""
        )
        kept, protected = count_kept(result)
        bound = number(guarantee.epsilon_ldp)
        rows.add_row(
            run.title, f"{number(guarantee.epsilon)}{unit}", bound, f"{kept} of {protected}"
        )
    return rows


def _shorten(text: str, most: int) -> str:
    """Returns the first words of a long text.

    So that the demonstration fits on a screen.
    """
    return f"{text[:most].rsplit(' ', 1)[0]} ..."


def _print_heading(console: Console, text: str) -> None:
    console.print(Text(text, style="bold"))


def _build_grid(said: dict[str, str]) -> Table:
    """Builds a grid of texts behind their titles."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for name, text in said.items():
        grid.add_row(name, Text(text))
    return grid


def shows_styles(console: Console) -> bool:
    """Says whether words are marked by styles.

    On a terminal, unless NO_COLOR or TERM=dumb asks for none.
    """
    return console.is_terminal and not console.no_color and not console.is_dumb_terminal


def fates(result: Result) -> list[Fate]:
    """Returns the treatment of each item of a release.

    Changed, kept (drawn as it was), public or placeholder.
    """
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
    """Counts the protected words that are unchanged, and all protected ones."""
    found = fates(result)
    return found.count("kept"), len(found) - found.count("public")


def beside(result: Result, *, marked: bool) -> Table:
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
    for gap, item, fate in zip(release.gaps[:-1], release.items, fates(result), strict=True):
        style, before, after = _MARKS[fate]
        released.append(gap)
        released.append(
            item.text if marked else f"{before}{item.text}{after}", style if marked else ""
        )
    grid.add_row(original, released)
    return grid
