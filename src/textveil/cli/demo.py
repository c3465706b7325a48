"""The demonstration: a prompt, a letter, and mechanisms side by side.

In: a console. Out: what is sent and released, with what is said of it. Also any text beside its
release.
Not here: how a text is privatized (`pipeline`), and the command itself (`cli.lookup`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from textveil.cli import progress
from textveil.config import Config, convert_keywords, resolve
from textveil.guarantee import describe_hidden, format_number
from textveil.pipeline import Privatizer, Protector, Result
from textveil.session import Session
from textveil.table import EmbeddingTable, load_table
from textveil.text import Kind

if TYPE_CHECKING:
    from textveil.evaluate.risk import Risk

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

MECHANISM_COLUMNS = ("mechanism", "epsilon", "for any two words", "words unchanged")

EPSILON_REMARK = (
    "Epsilons of different mechanisms cannot be compared; what an attacker recovers can "
    "(`textveil risk`)."
)


def read_letter() -> str:
    """Returns the packaged letter.

    It has invented people, ordinary words, some numbers and unusual names.
    """
    return (files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8").strip()


@dataclass(frozen=True, kw_only=True)
class PromptRun:
    """A protected prompt with its answer.

    Attributes:
        result: the prompt.
        session: restores the answer.
        answer: what comes back.
    """

    result: Result
    session: Session
    answer: str


@dataclass(frozen=True, kw_only=True)
class LetterRun:
    """The privatized letter with its risk.

    Attributes:
        config: its options.
        result: the release.
        risks: what an attacker recovers.
    """

    config: Config
    result: Result
    risks: "Sequence[Risk]"


@dataclass(frozen=True, kw_only=True)
class Demonstration:
    """The three parts of the demonstration.

    Attributes:
        prompt: the prompt and its answer.
        letter: the letter and its risk.
        rows: of the mechanisms.
    """

    prompt: PromptRun
    letter: LetterRun
    rows: Sequence[Sequence[str]]


def show(console: Console, *, seed: int | None = None) -> Demonstration:
    """Shows a prompt, a letter, and a table of mechanisms.

    The prompt with its answer, the letter with its statement and its risk.

    Args:
        console: where to print; nothing depends on colours.
        seed: repeatable draws, which the statements then say; None for system randomness.

    Returns:
        What was shown, for `build_page`.
    """
    table = load_table()
    _print_heading(
        console,
        (
            "1. Protect a prompt, and get the answer back (from a scripted model here; no network "
            "is used)"
        ),
    )
    prompt = run_prompt(table, seed)
    console.print(_build_grid(describe_prompt(prompt)))
    _print_heading(
        console, "\n2. Privatize a text: an invented letter under the profile `document`"
    )
    letter = run_letter(table, seed)
    console.print(_build_grid(describe_letter(letter)))
    _print_heading(console, "\n3. Mechanisms, each on the same letter")
    rows = list_mechanisms(table, seed)
    console.print(compare_mechanisms(rows))
    console.print(EPSILON_REMARK)
    return Demonstration(prompt=prompt, letter=letter, rows=rows)


def build_page(demo: Demonstration) -> str:
    """Builds the demonstration as a page, with the risk of the letter at other budgets."""
    from textveil.evaluate.curve import SHORT_FACTORS, compute_curve
    from textveil.evaluate.risk import check_risk_options, describe_public_attackers
    from textveil.render import demonstration

    prompt, letter = demo.prompt, demo.letter
    with progress.show_bars() as report:
        curve = compute_curve(
            letter.config,
            [read_letter()],
            letter.risks,
            letter.result.guarantee,
            prior=check_risk_options(letter.config),
            factors=SHORT_FACTORS,
            report=report,
        )
    return demonstration.render_page(
        mark_prompt(prompt),
        describe_hidden([prompt.result.released]),
        letter.result,
        letter.risks,
        describe_public_attackers(letter.config, letter.risks),
        curve,
        (MECHANISM_COLUMNS, demo.rows, EPSILON_REMARK),
    )


def run_prompt(table: EmbeddingTable, seed: int | None) -> PromptRun:
    """Protects a prompt, and answers it."""
    session = Session()
    result = Protector(table=table, seed=seed).protect(PROMPT, session)
    return PromptRun(result=result, session=session, answer=answer_prompt(result.text))


def describe_prompt(prompt: PromptRun) -> dict[str, str]:
    """Returns each text of a prompt and its answer by its title."""
    return {
        "you write": PROMPT,
        "is sent": prompt.result.text,
        "": describe_hidden([prompt.result.released]),
        "comes back": prompt.answer,
        "you read": prompt.session.restore(prompt.answer),
    }


def mark_prompt(prompt: PromptRun) -> dict[str, list[tuple[str, str]]]:
    """Cuts each text of a prompt and its answer into pieces with their types; "" for the rest."""
    from textveil.render.risk import find_originals

    released = prompt.result.released
    types = dict(released.mask.placeholders)
    names = {item.text: types[i] for i, item in enumerate(released.items) if i in types}
    gaps, originals = find_originals(released, prompt.result.private)
    written = [("", "")]
    for i, (gap, original) in enumerate(zip(gaps[:-1], originals, strict=True)):
        written += [(gap, ""), (original, types.get(i, ""))]
    sent, came = (
        [(piece, names.get(piece, "")) for piece in re.split(r"(<\w+>)", text)]
        for text in (prompt.result.text, prompt.answer)
    )
    read = [(prompt.session.restore(piece), type_) for piece, type_ in came]
    return {
        "You write": [*written, (gaps[-1], "")],
        "Is sent": sent,
        "Comes back": came,
        "You read": read,
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


def run_letter(table: EmbeddingTable, seed: int | None) -> LetterRun:
    """Privatizes the letter, and assesses its risk."""
    from textveil.evaluate.attack import Case
    from textveil.evaluate.risk import assess, check_risk_options

    config = resolve(profile="document", overrides=convert_keywords(seed=seed))
    privatizer = Privatizer.from_config(config, table=table)
    evaluation_run = privatizer.rehearse([read_letter()])
    risks = assess(
        Case.build(privatizer, evaluation_run, names=True), prior=check_risk_options(config)
    )
    return LetterRun(config=config, result=evaluation_run.results[0], risks=risks)


def describe_letter(letter: LetterRun) -> dict[str, str]:
    """Returns the letter, its release, the statement and the attacker's success, by their titles."""
    from textveil.evaluate.risk import describe_public_attackers, describe_risk

    public_note = describe_public_attackers(letter.config, letter.risks)
    return {
        "you write": _shorten(read_letter(), 160),
        "released": _shorten(letter.result.text, 400),
        "statement": letter.result.guarantee.summary(),
        "attacker": f"{describe_risk(letter.risks)} {public_note}",
    }


def list_mechanisms(table: EmbeddingTable, seed: int | None) -> list[tuple[str, ...]]:
    """Lists each run's epsilon, bound and unchanged words.

    Unchanged words of the letter came out as they went in.
    """
    rows: list[tuple[str, ...]] = []
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
        rows.append(
            (
                run.title,
                f"{format_number(guarantee.epsilon)}{unit}",
                format_number(guarantee.epsilon_ldp),
                f"{unchanged} of {protected}",
            )
        )
    return rows


def compare_mechanisms(rows: Sequence[Sequence[str]]) -> Table:
    """Builds a table of `list_mechanisms`."""
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    first, second, *others = MECHANISM_COLUMNS
    for name in (first, second):
        table.add_column(name, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


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
