"""Exclusions of options: one table, read from top to bottom.

In: a `Setup`, the options of a privatizer. Out: nothing, or the error of the first broken rule.
Not here: the range of each option (`config`, and the parts that have it), and the parts that are
built (`components`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from textveil.config import (
    FigureOptions,
    GroupOptions,
    IdentifierOptions,
    NameOptions,
    ProtectOptions,
    Rerank,
    WordsOptions,
    registry,
)
from textveil.detect import AGE, DATES
from textveil.errors import BudgetError, ConfigError, TextveilError, UnknownName
from textveil.guarantee import Claim
from textveil.mechanism import Layout, Mechanism, Restricting, oov, wrap_books
from textveil.protect import Budget, Grouped, Grouping, Uniform
from textveil.randomness import Values
from textveil.table import Books, EmbeddingTable, list_shipped, load_table


@dataclass(frozen=True, kw_only=True, eq=False)
class Setup:
    """Options of a privatizer, with lazily built parts that follow from them.

    Attributes:
        mechanism: a registered name or a mechanism.
        options: options of the mechanism, where it is given by name.
        epsilon: one bound for every protected word.
        table: a registered name or a table.
        given_words, budget, rerank, protect, groups, names, figures, identifiers, seed: as `Privatizer` takes them.
    """

    mechanism: str | Mechanism
    options: Mapping[str, Any]
    epsilon: float | None
    table: str | EmbeddingTable
    given_words: WordsOptions
    budget: Budget | None
    rerank: Rerank
    protect: ProtectOptions
    groups: GroupOptions
    names: NameOptions
    figures: FigureOptions
    identifiers: IdentifierOptions
    seed: int | None

    @cached_property
    def loaded_table(self) -> EmbeddingTable:
        """The table."""
        return load_table(self.table) if isinstance(self.table, str) else self.table

    @cached_property
    def words(self) -> WordsOptions:
        """The options of words, with the unit of the table where it is not given."""
        if not isinstance(self.loaded_table, EmbeddingTable):  # refused by a rule below
            return self.given_words
        return resolve_unit(self.given_words, self.loaded_table)

    @cached_property
    def resolved_mechanism(self) -> Mechanism:
        """The mechanism, resolved for the table's book or books.

        Raises:
            UnknownName: there is no mechanism of this name, or it has no such option.
        """
        return (
            wrap_books(self._base_mechanism, self.loaded_table)
            if _is_mechanism(self._base_mechanism)
            else self._base_mechanism
        )

    @cached_property
    def _base_mechanism(self) -> Mechanism:
        """The mechanism for a single book."""
        if not isinstance(self.mechanism, str):
            return self.mechanism
        target = registry.load("mechanism", self.mechanism)
        signature = registry.read_options(target)
        for option in self.options:
            if option not in signature.keywords and not signature.is_open:
                raise UnknownName(f"option of {self.mechanism}", option, signature.keywords)
        mechanism: Mechanism = target(**self.options)
        return mechanism

    @cached_property
    def claim(self) -> Claim:
        """The claim of the mechanism alone."""
        return self.resolved_mechanism.claim(self.loaded_table)

    @cached_property
    def grouping(self) -> Grouping | None:
        """Rule that groups the words; None for no groups."""
        return Grouping.build(self.protect, self.names, self.figures)

    @property
    def has_groups(self) -> bool:
        """True if groups have separate budgets."""
        return self.groups != GroupOptions()

    @cached_property
    def budget_rule(self) -> Budget | None:
        """Rule for the budget of a word.

        None where the mechanism's parameter decides, or nothing does.
        """
        if self.has_groups:
            return Grouped.build(self.groups, self.epsilon)
        return self.budget if self.epsilon is None else Uniform(self.epsilon)

    @cached_property
    def parameter(self) -> Values | None:
        """The mechanism's parameter, where it is set."""
        return self.resolved_mechanism.parameters(self.loaded_table, Layout.build(1))

    @property
    def has_drawn_groups(self) -> bool:
        """True if groups are drawn at random."""
        return self.grouping is not None and self.protect.labels == "randomised"


def resolve_unit(words: WordsOptions, table: EmbeddingTable) -> WordsOptions:
    """Returns the options with the unit of a table in place of "auto".

    Pieces where the table holds them, or where a tokenizer is named; else words.
    """
    if words.unit != "auto":
        return words
    has_pieces = table.holds_pieces or words.tokenizer is not None
    return replace(words, unit="wordpiece" if has_pieces else "word")


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """Rule about options that cannot all be combined.

    Attributes:
        name: the rule in a few words.
        when: selects the setups that it applies to.
        must: the condition on them.
        say: builds the message of a violation: the condition, the given values, the remedy.
        error: type of the error that is raised.
    """

    name: str
    when: Callable[[Setup], object]
    must: Callable[[Setup], object]
    say: Callable[[Setup], str]
    error: type[TextveilError] = ConfigError


def _is_mechanism(candidate: object) -> bool:
    return isinstance(candidate, Mechanism) and not isinstance(candidate, type)


EXCLUSIONS: tuple[Exclusion, ...] = (
    # ---- the parts themselves
    Exclusion(
        name="options go with a mechanism's name",
        when=lambda s: s.options,
        must=lambda s: isinstance(s.mechanism, str),
        say=lambda s: (
            f"{', '.join(sorted(s.options))} can be given only with the name of a mechanism, and "
            f"the mechanism given is a {type(s.mechanism).__name__}: set the option where it is "
            "made"
        ),
    ),
    Exclusion(
        name="a table is a table",
        when=lambda s: True,
        must=lambda s: isinstance(s.loaded_table, EmbeddingTable),
        say=lambda s: (
            f"table must be the name of a table or an EmbeddingTable, got {type(s.table).__name__}"
        ),
    ),
    Exclusion(
        name="a mechanism is a mechanism",
        when=lambda s: True,
        must=lambda s: _is_mechanism(s.resolved_mechanism),
        say=lambda s: (
            "mechanism must be the name of a mechanism or a Mechanism, got "
            f"{type(s.mechanism).__name__}"
        ),
    ),
    Exclusion(
        name="a restricted claim has its methods",
        when=lambda s: s.claim.restricted is not None,
        must=lambda s: isinstance(s.resolved_mechanism, Restricting),
        say=lambda s: (
            "a mechanism with a restricted claim must have the methods compute_restricted_epsilon "
            f"and mark_restricted_pairs, and {s.claim.mechanism} lacks one: add it, or leave the "
            "restricted part out of its claim"
        ),
    ),
    # ---- words
    Exclusion(
        name="a table of pieces takes pieces",
        when=lambda s: s.loaded_table.holds_pieces,
        must=lambda s: s.words.unit == "wordpiece",
        say=lambda s: (
            f"the table {s.loaded_table.name} holds word pieces and needs words.unit=wordpiece, "
            f"but words.unit is {s.words.unit}: leave words.unit out, or take a table of whole "
            "words (`textveil table build --unit word` makes one from a model)"
        ),
    ),
    Exclusion(
        name="re-ranking takes whole words",
        when=lambda s: s.rerank.m > 1,
        must=lambda s: s.words.unit == "word",
        say=lambda s: (
            "rerank.m needs words.unit=word, because its language model predicts whole words, "
            f"but words.unit is {s.words.unit}: set words.unit=word, or leave rerank.m out"
        ),
    ),
    Exclusion(
        name="re-ranking tells equal words apart",
        when=lambda s: s.rerank.m > 1,
        must=lambda s: not s.words.consistent,
        say=lambda s: (
            "rerank.m cannot be combined with words.consistent=true, because equal words have "
            "different neighbours and would be released differently: set words.consistent=false, "
            "or leave rerank.m out"
        ),
    ),
    # ---- codes
    Exclusion(
        name="codebook needs codes",
        when=lambda s: s.claim.mechanism == "codebook",
        must=lambda s: s.loaded_table.root.book is not None,
        say=lambda s: (
            "codebook draws among the codes of a table, and table.codes (--codes) is not set: set "
            f"it to {', '.join(map(str, list_shipped()))} for a general book, or to the path of "
            "one made with `textveil table codes`"
        ),
    ),
    Exclusion(
        name="books by group need groups",
        when=lambda s: isinstance(s.loaded_table.root.book, Books),
        must=lambda s: s.grouping is not None,
        say=lambda s: (
            "table.codes has books for four groups, and nothing puts words into groups: set "
            "protect.detectors, protect.always or protect.importance, or give one book"
        ),
    ),
    Exclusion(
        name="books by group take each word alone",
        when=lambda s: isinstance(s.loaded_table.root.book, Books),
        must=lambda s: s.claim.alone and not s.loaded_table.is_projection,
        say=lambda s: (
            "several books in table.codes need a mechanism that draws each word alone, "
            f"without a projection, and {s.claim.mechanism} with these options does not: take "
            "codebook, or give one book"
        ),
    ),
    Exclusion(
        name="codes are of whole words",
        when=lambda s: s.loaded_table.root.book is not None,
        must=lambda s: s.words.unit == "word",
        say=lambda s: (
            f"table.codes needs words.unit=word, but words.unit is {s.words.unit}: set "
            "words.unit=word, or leave table.codes out"
        ),
    ),
    Exclusion(
        name="codes have no spelling to choose",
        when=lambda s: s.loaded_table.root.spelling == "code",
        must=lambda s: s.rerank.m <= 1,
        say=lambda s: (
            "rerank.m cannot be combined with table.spelling=code (--emit codes), which "
            "releases codes and no words: leave one of the two options out"
        ),
    ),
    Exclusion(
        name="one book is re-ranked",
        when=lambda s: isinstance(s.loaded_table.root.book, Books),
        must=lambda s: s.rerank.m <= 1,
        say=lambda s: (
            "rerank.m spells the codes of one book, and table.codes has several books: leave "
            "one of the two options out"
        ),
    ),
    # ---- groups and names
    Exclusion(
        name="names need a detector",
        when=lambda s: s.names.types,
        must=lambda s: s.protect.has_groups,
        say=lambda s: (
            "names.types needs something that finds names, and nothing does: set "
            "protect.detectors=tagger"
        ),
    ),
    Exclusion(
        name="drawn labels show no names",
        when=lambda s: s.protect.has_groups and s.protect.labels == "randomised",
        must=lambda s: not s.names.types,
        say=lambda s: (
            "protect.labels=randomised must not show which words are names, and names.types "
            "would: set names.types=none, or protect.labels=detected"
        ),
    ),
    Exclusion(
        name="figures need a detector",
        when=lambda s: s.figures.types,
        must=lambda s: s.protect.has_groups,
        say=lambda s: (
            "figures.types needs something that finds dates and ages, and nothing does: set "
            "protect.detectors=patterns"
        ),
    ),
    Exclusion(
        name="drawn labels show no figures",
        when=lambda s: s.protect.has_groups and s.protect.labels == "randomised",
        must=lambda s: not s.figures.types,
        say=lambda s: (
            "protect.labels=randomised must not show which words are figures, and figures.types "
            "would: set figures.types=none, or protect.labels=detected"
        ),
    ),
    Exclusion(
        name="equal figures are moved alike",
        when=lambda s: s.figures.types,
        must=lambda s: s.words.consistent,
        say=lambda s: (
            "figures.types needs words.consistent=true, because equal figures are moved alike: "
            "set it, or leave figures.types out"
        ),
    ),
    Exclusion(
        name="identifiers need a detector",
        when=lambda s: s.identifiers.types,
        must=lambda s: s.protect.has_groups and s.protect.labels == "detected",
        say=lambda s: (
            "identifiers.types (--identifiers surrogate) needs something that finds identifiers: "
            "set protect.detectors=patterns, and protect.labels=detected"
        ),
    ),
    Exclusion(
        name="equal identifiers have one surrogate",
        when=lambda s: s.identifiers.types,
        must=lambda s: s.words.consistent and s.words.unit == "word",
        say=lambda s: (
            "identifiers.types (--identifiers surrogate) needs words.consistent=true and "
            "words.unit=word, because equal identifiers have one surrogate: set both, or leave it "
            "out"
        ),
    ),
    Exclusion(
        name="amounts have a unit",
        when=lambda s: s.grouping is not None,
        must=lambda s: (
            (s.figures.unit is None) == (s.grouping is None or s.grouping.moved <= {*DATES, AGE})
        ),
        say=lambda s: (
            "figures.unit goes with a type of your own in figures.types, whose figures are "
            "amounts: set both or neither"
        ),
    ),
    Exclusion(
        name="budgets of groups need groups",
        when=lambda s: s.has_groups,
        must=lambda s: s.grouping is not None,
        say=lambda s: (
            "groups.* needs something that puts words into groups, and nothing does: set "
            "protect.detectors, protect.always or protect.importance, or leave groups.* out"
        ),
    ),
    Exclusion(
        name="groups leave no word to a paper's rule",
        when=lambda s: s.grouping is not None,
        must=lambda s: not oov.has_bypass_rule(s.words),
        say=lambda s: (
            "groups need words.oov surrogate, placeholder, error or keep, and "
            f"words.numbers=table, got words.oov={s.words.oov} and "
            f"words.numbers={s.words.numbers}: change these, or leave protect.* out"
        ),
    ),
    Exclusion(
        name="names are whole words",
        when=lambda s: s.grouping is not None and s.grouping.named,
        must=lambda s: s.words.unit == "word",
        say=lambda s: (
            f"names.types needs words.unit=word, but words.unit is {s.words.unit}: set "
            "words.unit=word, or leave names.types out"
        ),
    ),
    Exclusion(
        name="drawn labels need a guarantee",
        when=lambda s: s.has_drawn_groups,
        must=lambda s: s.claim.kind != "none",
        say=lambda s: (
            f"protect.labels=randomised needs a mechanism with a guarantee; {s.claim.mechanism} "
            "gives no guarantee with these options: choose another mechanism, or "
            "protect.labels=detected"
        ),
    ),
    Exclusion(
        name="drawn labels leave no trace in the mask",
        when=lambda s: s.has_drawn_groups,
        must=lambda s: (
            s.words.oov == "surrogate" and not s.words.consistent and s.words.unit == "word"
        ),
        say=lambda s: (
            "protect.labels=randomised needs words.oov=surrogate, words.unit=word and "
            "words.consistent=false, so that no part of the mask follows from a label, got "
            f"words.oov={s.words.oov}, words.unit={s.words.unit} and "
            f"words.consistent={str(s.words.consistent).lower()}: change these, or set "
            "protect.labels=detected"
        ),
    ),
    Exclusion(
        name="groups or a budget",
        when=lambda s: s.has_groups,
        must=lambda s: s.budget is None,
        say=lambda s: (
            "groups.* and budget both say what a word may spend: give one of them, not both"
        ),
        error=BudgetError,
    ),
    Exclusion(
        name="drawn labels need finite budgets",
        when=lambda s: s.has_drawn_groups,
        must=lambda s: (
            isinstance(s.budget_rule, Grouped) and all(map(math.isfinite, s.budget_rule.budgets))
        ),
        say=lambda s: (
            "protect.labels=randomised needs groups.budgets of which all four are finite, "
            + (
                "got an infinite one"
                if isinstance(s.budget_rule, Grouped)
                else "and groups.budgets is not set"
            )
            + ": set four finite numbers, or a rule such as heuristic with epsilon"
        ),
        error=BudgetError,
    ),
    Exclusion(
        name="equal words are drawn alone",
        when=lambda s: s.words.consistent,
        must=lambda s: s.claim.alone and s.words.unit == "word",
        say=lambda s: (
            "words.consistent needs words.unit=word and a mechanism that draws each word without "
            f"looking at other words, and {s.claim.mechanism} with words.unit={s.words.unit} and "
            "these options does not: change them, or set words.consistent=false"
        ),
    ),
    Exclusion(
        name="lasting words are equal words",
        when=lambda s: s.words.lasting,
        must=lambda s: s.words.consistent,
        say=lambda s: (
            "words.lasting needs words.consistent=true, because a word that keeps its release "
            "in all sessions keeps it within each session, too: set it, or leave "
            "words.lasting out"
        ),
    ),
    # ---- budgets
    Exclusion(
        name="epsilon or a budget",
        when=lambda s: s.epsilon is not None,
        must=lambda s: s.budget is None,
        say=lambda s: (
            "epsilon and budget both say what a word may spend: give one of them, not both"
        ),
        error=BudgetError,
    ),
    Exclusion(
        name="a budget assigns",
        when=lambda s: s.budget is not None,
        must=lambda s: callable(getattr(s.budget, "assign", None)),
        say=lambda s: (
            f"budget must have a method assign, which {type(s.budget).__name__} lacks: for one "
            "number give epsilon"
        ),
        error=BudgetError,
    ),
    Exclusion(
        name="something says what a word may spend",
        when=lambda s: s.parameter is None,
        must=lambda s: s.budget_rule is not None,
        say=lambda s: (
            f"{s.claim.mechanism} needs a budget, and none was given: give epsilon, or its own "
            f"parameter {s.claim.parameter}"
        ),
        error=BudgetError,
    ),
    Exclusion(
        name="epsilon or the mechanism's parameter",
        when=lambda s: s.parameter is not None and s.claim.parameter is not None,
        must=lambda s: s.budget_rule is None,
        say=lambda s: (
            f"give epsilon or {s.claim.parameter}, not both: {s.claim.parameter} sets every "
            "word's epsilon"
        ),
        error=BudgetError,
    ),
)


def check_exclusions(setup: Setup) -> None:
    """Raises the error of the first rule that the options break.

    Raises:
        TextveilError: the first rule of the table that is broken, or a part that cannot be made.
    """
    # In this order: later rules rely on parts that earlier ones have checked.
    for rule in EXCLUSIONS:
        if rule.when(setup) and not rule.must(setup):
            raise rule.error(rule.say(setup))
