"""Budget search (`--risk`) and choice of codebook (`--codes auto`).

In: options with `risk`, or with codes that follow from the budget. Out: the same options with the
largest epsilon that keeps the Bayes attacker below a success rate, or the number of codes; the
prior, and the sentence for a statement.
Not here: how often a guess is right (`mechanism.guess`), and what an attacker makes of a release
(`evaluate`).

Everything is computed from public data: the mechanism's law, the table, and counts of public texts.
No private text is read, so the epsilon reveals nothing about one.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from textveil.config import Config, GroupOptions, registry
from textveil.errors import BudgetError, ConfigError, InputError, TextveilError, quote_file
from textveil.files import formats, streams
from textveil.mechanism import Layout, Mechanism, guessing, information, resolved
from textveil.protect import Grouped, Grouping
from textveil.randomness import Values
from textveil.table import FITTING, Book, EmbeddingTable, choice, load_table, shares, shares_of
from textveil.text import tokenize

TOLERANCE = 0.01
"""Relative tolerance of the epsilon that is found.

It is at least the largest one divided by 1 + this.
"""

LEAST, MOST = 1e-3, 1024.0
"""Bounds of the search for epsilon."""

GAIN = 0.001
"""Relative gain in guesses below which doubling epsilon is not worthwhile."""


def with_budget(config: Config, *, table: EmbeddingTable | None = None) -> Config:
    """Sets the epsilon for `risk`, or the codes that fit the budgets.

    Args:
        config: resolved options; returned unchanged where they ask for neither.
        table: takes the place of the configured one.

    Raises:
        ConfigError: these options leave it unknown how often words are guessed.
        BudgetError: the risk is below what can be reached.
        InputError: the public texts cannot be read, or hold no word.
    """
    if config.table.codes is not None and (books := choice(config.table.codes)):
        return replace(config, table=replace(config.table, codes=_choose_books(config, books)))
    if config.risk is None or config.epsilon is not None:
        return config
    _check(config)
    chosen = config.table
    loaded = table or load_table(**asdict(chosen))
    target = registry.load("mechanism", config.mechanism.name)
    mechanism: Mechanism = resolved(target(**config.mechanism.options), loaded)
    guessed = guessing(mechanism, loaded, prior(config, loaded.origin))

    if not _can_calibrate(mechanism, loaded):
        raise ConfigError(
            f"risk needs a mechanism that keeps to any epsilon from {LEAST:g}, and {config.mechanism.name} does not "
            "with these options: choose another one, such as rankcape, or give epsilon"
        )

    def success(epsilon: float) -> float:
        budgets = sorted({budget for budget in _budgets(config, epsilon) if budget > 0})
        parameters = [
            mechanism.calibrate(loaded, Layout.of(1), np.array([budget]))[0] for budget in budgets
        ]
        return max(guessed(float(parameter)) for parameter in parameters)

    return replace(config, epsilon=search(success, config.risk))


def _choose_books(config: Config, books: Mapping[str, Book]) -> str:
    """Names the book that keeps most information at each group's budget.

    Raises:
        ConfigError: there is no budget, or groups need books of one path with a comma.
    """
    budgets = _budgets(config, config.epsilon)
    if not budgets:
        raise ConfigError(
            f"table.codes={FITTING} needs an epsilon, which says how many codes fit: give one"
        )
    names = [
        max(books, key=lambda name: information(books[name].masses, budget)) for budget in budgets
    ]
    if len({*names}) == 1:
        return names[0]
    if any("," in name for name in names):
        raise ConfigError(
            "table.codes takes the paths of four books with commas between them: a path must have none"
        )
    return ", ".join(names)


def search(success: Callable[[float], float], risk: float) -> float:
    """Finds the largest epsilon whose success is within a risk, by bisection.

    Up to `TOLERANCE`. The returned value was tried: success is at most the risk there, even if it
    should not rise everywhere.

    Args:
        success: the share of words that are guessed under an epsilon; it rises with epsilon.
        risk: the largest share that is allowed.

    Raises:
        BudgetError: it is more under the least epsilon already.
    """
    low, high, least = LEAST, 1.0, success(LEAST)
    if least > risk:
        raise BudgetError(
            f"risk must be above {math.ceil(least * 1e5) / 1e5:g}, which an attacker with this prior guesses under "
            f"this mechanism at the least epsilon already, got {risk:g}: allow more, or choose another mechanism"
        )
    before = least
    while (now := success(high)) <= risk and high < MOST:
        if high > 16 and now - before <= GAIN * now:
            return low  # more budget gains almost nothing
        low, before, high = high, now, high * 2
    if now <= risk:
        return high
    while high > low * (1 + TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if success(middle) <= risk else (low, middle)
    return low


def prior(config: Config, table: EmbeddingTable) -> Values:
    """Returns the attacker's prior of a word, float64 [V], summing to 1.

    It is positive, and over the table in which words are looked up: the shares of the words in the
    public file or the packaged list, without those of words that pass.
    """
    listed = config.words.stopwords == "protect"
    if config.prior is None:
        return shares(table, listed=listed)
    path = Path(config.prior)
    if not path.is_file():
        raise InputError(
            f"--public must name a file of public texts, and there is no such file, {quote_file(path)}"
            f"{streams.near_file(config.prior)}"
        )
    counted: Counter[str] = Counter()
    for text in formats.texts(formats.source(path)):
        counted.update(word.lower() for word in tokenize([text or ""]).words)
    if not counted:
        raise InputError(f"the file of public texts, {quote_file(path)}, has no word")
    return shares_of(table, counted, listed=listed)


def said(config: Config) -> str:
    """Returns the statement's sentence on a budget search; "" without one."""
    if config.risk is None:
        return ""
    whose = (
        "the packaged word frequencies" if config.prior is None else "the words of the public texts"
    )
    most = "" if config.groups == GroupOptions() else ", the most of all groups,"
    apart = ", names and figures not counted" if config.names.types or config.figures.types else ""
    return (
        f"epsilon {config.epsilon:.4g}{most} was found so that an attacker who expects {whose} as prior guesses at "
        f"most {100 * config.risk:g}% of drawn words, each from its released word alone{apart}; it was chosen without "
        "looking at the text"
    )


def _check(config: Config) -> None:
    """Raises `ConfigError` for options that the attacker's model does not cover."""
    words = config.words
    if (
        words.unit != "word"
        or words.numbers != "table"
        or words.oov not in ("surrogate", "placeholder", "error")
    ):
        raise ConfigError(
            "risk needs words.unit=word, words.numbers=table and words.oov surrogate, placeholder or error, got "
            f"words.unit={words.unit}, words.numbers={words.numbers} and words.oov={words.oov}: change these, or give "
            "epsilon"
        )
    if config.groups.fixed:
        raise ConfigError(
            "risk has nothing to set, because groups.budgets fixes the budget of every group: leave it out, or set "
            "groups.budgets to a rule such as heuristic"
        )
    grouping = Grouping.of(config.protect, config.names, config.figures)
    if grouping is not None and grouping.randomised:
        raise ConfigError(
            "risk needs protect.labels=detected, because drawn labels tell of a word, too: or give epsilon"
        )
    if not all(map(math.isfinite, _budgets(config, 1.0))):
        raise ConfigError(
            "risk needs finite budgets for all groups, and with these options words of some pass as they are: change "
            "groups.budgets, or give epsilon"
        )


def _can_calibrate(mechanism: Mechanism, table: EmbeddingTable) -> bool:
    """Says whether a mechanism can be calibrated to the least epsilon."""
    try:
        mechanism.calibrate(table, Layout.of(1), np.array([LEAST]))
    except TextveilError:
        return False
    return True


def _budgets(config: Config, epsilon: float | None) -> tuple[float, ...]:
    """Returns the epsilon of a word, or of each group."""
    if config.groups == GroupOptions():
        return () if epsilon is None else (epsilon,)
    return Grouped.of(config.groups, epsilon).budgets
