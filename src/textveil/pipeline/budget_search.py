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
from textveil.files import formats, text_streams
from textveil.guarantee import format_number
from textveil.mechanism import (
    Layout,
    Mechanism,
    build_success_rate,
    compute_information,
    wrap_books,
)
from textveil.pipeline.option_rules import resolve_unit
from textveil.protect import Grouped, Grouping
from textveil.randomness import Values
from textveil.table import (
    AUTO_BOOK,
    Book,
    EmbeddingTable,
    compute_shares,
    compute_shares_from,
    list_choices,
    load_table,
)
from textveil.text import tokenize

EPSILON_TOLERANCE = 0.01
"""Relative tolerance of the epsilon that is found.

It is at least the largest one divided by 1 + this.
"""

MIN_EPSILON, MAX_EPSILON = 1e-3, 1024.0
"""Bounds of the search for epsilon."""

MIN_GAIN = 0.001
"""Relative gain in guesses below which doubling epsilon is not worthwhile."""


def resolve_budget(config: Config, *, table: EmbeddingTable | None = None) -> Config:
    """Sets the epsilon for `risk`, or the codes that fit the budgets.

    Args:
        config: resolved options; returned unchanged where they ask for neither.
        table: takes the place of the configured one.

    Raises:
        ConfigError: these options leave it unknown how often words are guessed.
        BudgetError: the risk is below what can be reached.
        InputError: the public texts cannot be read, or hold no word.
    """
    if config.table.codes is not None and (books := list_choices(config.table.codes)):
        return replace(config, table=replace(config.table, codes=_choose_books(config, books)))
    if config.risk is None or config.epsilon is not None:
        return config
    loaded_table = table or load_table(**asdict(config.table))
    _check_options(replace(config, words=resolve_unit(config.words, loaded_table)))
    target = registry.load("mechanism", config.mechanism.name)
    mechanism: Mechanism = wrap_books(target(**config.mechanism.options), loaded_table)
    guess_rate = build_success_rate(
        mechanism, loaded_table, compute_prior(config, loaded_table.origin)
    )

    if not _can_calibrate(mechanism, loaded_table):
        raise ConfigError(
            f"risk needs a mechanism that keeps to any epsilon from {MIN_EPSILON:g}, and "
            f"{config.mechanism.name} does not with these options: choose another one, such as "
            "rankcape, or give epsilon"
        )

    def compute_success(epsilon: float) -> float:
        # Words of budget 0 become placeholders, and are not drawn.
        budgets = sorted({budget for budget in _list_budgets(config, epsilon) if budget > 0})
        parameters = [
            mechanism.calibrate(loaded_table, Layout.build(1), np.array([budget]))[0]
            for budget in budgets
        ]
        return max(guess_rate(float(parameter)) for parameter in parameters)

    return replace(config, epsilon=search_epsilon(compute_success, config.risk))


def _choose_books(config: Config, books: Mapping[str, Book]) -> str:
    """Names the book that keeps most information at each group's budget.

    Raises:
        ConfigError: there is no budget, or groups need books of one path with a comma.
    """
    budgets = _list_budgets(config, config.epsilon)
    if not budgets:
        raise ConfigError(
            f"table.codes={AUTO_BOOK} needs an epsilon to choose the number of codes: give epsilon"
        )
    names = [
        max(books, key=lambda name: compute_information(books[name].masses, budget))
        for budget in budgets
    ]
    if len({*names}) == 1:
        return names[0]
    if any("," in name for name in names):
        raise ConfigError(
            "table.codes takes the paths of four books, separated by commas, so a path must "
            "not contain a comma"
        )
    return ", ".join(names)


def search_epsilon(success: Callable[[float], float], risk: float) -> float:
    """Finds the largest epsilon whose success is within a risk, by bisection.

    Up to `EPSILON_TOLERANCE`. The returned value was tried: success is at most the risk there, even
    if it should not rise everywhere.

    Args:
        success: the share of words that are guessed under an epsilon; it rises with epsilon.
        risk: the largest share that is allowed.

    Raises:
        BudgetError: it is more under the least epsilon already.
    """
    low, high, lowest_success = MIN_EPSILON, 1.0, success(MIN_EPSILON)
    if lowest_success > risk:
        raise BudgetError(
            f"risk must be above {math.ceil(lowest_success * 1e5) / 1e5:g}, the share that an "
            "attacker with this prior guesses under this mechanism even at the smallest "
            f"epsilon, got {risk:g}: allow a higher risk, or choose another mechanism"
        )
    previous = lowest_success
    while (current := success(high)) <= risk and high < MAX_EPSILON:
        if high > 16 and current - previous <= MIN_GAIN * current:
            return low  # more budget gains almost nothing
        low, previous, high = high, current, high * 2
    if current <= risk:
        return high
    while high > low * (1 + EPSILON_TOLERANCE):
        # The tolerance is relative, so the middle is taken in logarithms.
        middle = math.sqrt(low * high)
        low, high = (middle, high) if success(middle) <= risk else (low, middle)
    return low


def compute_prior(config: Config, table: EmbeddingTable) -> Values:
    """Returns the attacker's prior of a word, float64 [V], summing to 1.

    It is positive, and over the table in which words are looked up: the shares of the words in the
    public file or the packaged list, without those of words that pass.
    """
    includes_public = config.words.stopwords == "protect"
    if config.prior is None:
        return compute_shares(table, listed=includes_public)
    path = Path(config.prior)
    if not path.is_file():
        raise InputError(
            "--public must name a file of public texts, and there is no file "
            f"{quote_file(path)}{text_streams.suggest_file(config.prior)}"
        )
    word_counts: Counter[str] = Counter()
    for text in formats.read_texts(formats.find_source(path)):
        word_counts.update(word.lower() for word in tokenize([text or ""]).words)
    if not word_counts:
        raise InputError(f"the file of public texts, {quote_file(path)}, contains no word")
    return compute_shares_from(table, word_counts, listed=includes_public)


def describe_search(config: Config) -> str:
    """Returns the statement's sentence on a budget search; "" without one."""
    if config.risk is None or config.epsilon is None:
        return ""
    prior_name = (
        "the packaged word frequencies" if config.prior is None else "the words of the public texts"
    )
    group_note = "" if config.groups == GroupOptions() else ", the largest of all groups,"
    exclusion_note = (
        ", names and figures not counted" if config.names.types or config.figures.types else ""
    )
    return (
        f"epsilon {format_number(config.epsilon)}{group_note} was chosen so that an attacker whose prior "
        f"is {prior_name} guesses at most {100 * config.risk:g}% of drawn words, each from its "
        f"released word alone{exclusion_note}; it was found without looking at the text"
    )


def _check_options(config: Config) -> None:
    """Raises `ConfigError` for options that the attacker's model does not cover."""
    words = config.words
    if (
        words.unit != "word"
        or words.numbers != "table"
        or words.oov not in ("surrogate", "placeholder", "error")
    ):
        raise ConfigError(
            "risk needs words.unit=word, words.numbers=table and words.oov surrogate, placeholder "
            f"or error, got words.unit={words.unit}, words.numbers={words.numbers} and "
            f"words.oov={words.oov}: change these, or give epsilon"
        )
    if config.groups.has_fixed_budgets:
        raise ConfigError(
            "risk has nothing to set, because groups.budgets fixes the budget of every group: "
            "leave risk out, or set groups.budgets to a rule such as heuristic"
        )
    grouping = Grouping.build(config.protect, config.names, config.figures)
    if grouping is not None and grouping.is_randomised:
        raise ConfigError(
            "risk needs protect.labels=detected, because drawn labels reveal something about "
            "a word, too: set it, or give epsilon"
        )
    if not all(map(math.isfinite, _list_budgets(config, 1.0))):
        raise ConfigError(
            "risk needs finite budgets for all groups, and with these options the words of "
            "some groups pass unprotected: change groups.budgets, or give epsilon"
        )


def _can_calibrate(mechanism: Mechanism, table: EmbeddingTable) -> bool:
    """Says whether a mechanism can be calibrated to the least epsilon."""
    try:
        mechanism.calibrate(table, Layout.build(1), np.array([MIN_EPSILON]))
    except TextveilError:
        return False
    return True


def _list_budgets(config: Config, epsilon: float | None) -> tuple[float, ...]:
    """Returns the epsilon of a word, or of each group."""
    if config.groups == GroupOptions():
        return () if epsilon is None else (epsilon,)
    return Grouped.build(config.groups, epsilon).budgets
