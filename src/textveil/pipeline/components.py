"""Parts of a privatizer, which together determine its releases and its claim.

In: a `Setup` that keeps the rules. Out: `Parts`.
Not here: which options exclude which (`option_rules`), and what the parts do with a text (`plan`, `draw`,
`release`).
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from pydantic_core import CoreSchema, core_schema

from textveil.config import (
    GroupOptions,
    NameOptions,
    ProtectOptions,
    Rerank,
    WordsOptions,
    registry,
)
from textveil.detect import ApplicationWords, PrivateValue
from textveil.errors import TextveilWarning
from textveil.guarantee import Claim
from textveil.mechanism import (
    Block,
    FigureSampler,
    Law,
    Layout,
    Mechanism,
    NameSampler,
    build_success_rate,
    unwrap_books,
)
from textveil.pipeline.codebook_statement import add_codebook_notes
from textveil.pipeline.option_rules import Setup, check_exclusions
from textveil.pipeline.rerank import CODE_SPELLING_NOTE, RERANK_NOTE
from textveil.pipeline.surrogates import SURROGATE_NOTE, expand_identifiers
from textveil.protect import Budget, Grouped, Grouping, Uniform, check_range
from textveil.randomness import Randomness, SeededRandomness, SystemRandomness, Values
from textveil.session import KeyedPlaceholders, Source
from textveil.table import Books, EmbeddingTable, WordPieces, load_table


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Parts:
    """Components of a privatizer.

    Attributes:
        table: table of the words that are released.
        mechanism: draws the rows.
        words: rules for cutting text into words.
        claim: claim of the mechanism, with the notes of all parts.
        budget: rule for the epsilon of each word; None where the mechanism's parameter decides.
        rerank: options for replacing drawn words by likelier neighbours.
        grouping: puts words into groups; None for no groups.
        names: replaces names by names; None to replace none.
        figures: moves dates, ages and amounts; None to move none.
        identifiers: types whose values become invented ones of reserved ranges.
        randomness: source of the draws.
        pieces: the pieces of words; None where words are whole.
        naming: for each text of a run, the keyed names of its placeholders without a session, where
            they are numbered; None to count them in each text.
        source: writer of the texts, which a session stores with the addresses in them.
        nearby: private values of the texts around, which are sought, but not remembered.
    """

    table: EmbeddingTable
    mechanism: Mechanism
    words: WordsOptions
    claim: Claim
    budget: Budget | None
    rerank: Rerank
    grouping: Grouping | None
    names: NameSampler | None
    figures: FigureSampler | None
    randomness: Randomness
    pieces: WordPieces | None
    identifiers: frozenset[str] = frozenset()
    naming: Sequence[KeyedPlaceholders] | None = None
    source: Source = "user"
    nearby: tuple[PrivateValue, ...] = ()

    @property
    def drawn_groups(self) -> bool:
        """True if groups are drawn at random."""
        return self.grouping is not None and self.grouping.is_randomised

    @property
    def remembers_doubt(self) -> bool:
        """True if a session seeks in all texts what was found here in doubt.

        One false hit in a tool's or an application's text would change every other text.
        """
        is_application = (
            self.grouping is not None and self.grouping.detection.settings.is_application
        )
        return self.source != "tool" and not is_application

    def copy_for_application(self, words: ApplicationWords, *, is_own: bool = False) -> Self:
        """Returns a copy for texts in a conversation of an application.

        Args:
            words: the words of the application.
            is_own: whether the application wrote the texts.
        """
        if self.grouping is None:
            return self
        return self.with_parts(grouping=self.grouping.copy_for_application(words, is_own=is_own))

    def with_parts(self, **parts: Any) -> Self:
        """Returns a copy with some parts replaced; the claim stays."""
        # The constructor of a subclass takes options, and would build and check all parts again.
        copy = object.__new__(type(self))
        Parts.__init__(copy, **{**vars(self), **parts})
        return copy

    def remembering(self) -> Self:
        """Returns a copy that caches findings, so equal texts are searched once.

        Only detections are cached, which depend on a text alone; every draw is fresh.
        """
        if self.grouping is None or self.grouping.detection.settings.memory is not None:
            return self
        return self.with_parts(grouping=self.grouping.copy_with_memory())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """Returns a schema that accepts privatizers unchanged; they are checked already."""
        return core_schema.is_instance_schema(cls)

    # ---- pickling: named tables are loaded again, not carried ------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        table, book = self.table.origin, self.table.book
        if (
            not self.table.is_projection
            and table.name in registry.list_names("table")
            # Another table may have the same name, so that only this very object is loaded by it.
            and load_table(table.name, metric=table.metric, device=table.device) is table
        ):
            state["table"] = (table.name, table.metric, table.device, book, self.table.spelling)
            state["pieces"] = None
            state["names"] = self.names and self.names.options
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["table"], tuple):
            name, metric, device, book, spelling = state["table"]
            table = load_table(name, metric=metric, device=device)
            state["table"] = table = (
                table if book is None else table.coarsen(book, spelling=spelling)
            )
            if state["words"].unit == "wordpiece":
                state["pieces"] = WordPieces.load(state["words"].tokenizer, table)
            if state["names"] is not None:
                state["names"] = NameSampler.build(
                    state["names"], state["grouping"].named, table.origin
                )
        vars(self).update(state)


def build_parts(setup: Setup) -> Parts:
    """Builds the parts that the options ask for.

    Raises:
        ConfigError, BudgetError, UnknownName: an option is wrong, or does not go with another one.
        TableError: the table cannot be loaded.
    """
    check_exclusions(setup)
    table, words, grouping = setup.loaded_table, setup.words, setup.grouping
    return Parts(
        table=table,
        mechanism=setup.resolved_mechanism,
        words=words,
        claim=_build_claim(setup),
        budget=_build_budget(setup),
        rerank=setup.rerank,
        grouping=grouping,
        names=NameSampler.build(setup.names, grouping.named, table.origin)
        if grouping and grouping.named
        else None,
        figures=FigureSampler.build(setup.figures) if grouping and grouping.moved else None,
        identifiers=expand_identifiers(setup.identifiers),
        randomness=SystemRandomness() if setup.seed is None else SeededRandomness(setup.seed),
        pieces=WordPieces.load(words.tokenizer, table) if words.unit == "wordpiece" else None,
    )


def _build_claim(setup: Setup) -> Claim:
    """Returns the mechanism's claim, with notes on codes, re-ranking and groups."""
    claim, grouping = setup.claim, setup.grouping
    if setup.loaded_table.root.book is not None:
        claim = add_codebook_notes(
            claim,
            setup.loaded_table,
            _compute_guess_bound(setup),
            consistent=setup.words.consistent,
            drawn_groups=setup.has_drawn_groups,
            has_other_draws=grouping is not None and bool(grouping.named or grouping.moved),
        )
    if setup.rerank.m > 1:
        options = {**claim.options, "rerank": asdict(setup.rerank)}
        note = RERANK_NOTE if setup.loaded_table.root.book is None else CODE_SPELLING_NOTE
        claim = replace(claim, options=options, caveats=(*claim.caveats, note))
    if grouping is not None:
        claim = _describe_groups(claim, grouping, setup.protect, setup.groups, setup.names)
        if grouping.moved:
            options = {**claim.options, "figures": asdict(setup.figures)}
            notes = FigureSampler(options=setup.figures).yield_notes(grouping.moved)
            claim = replace(claim, options=options, caveats=(*claim.caveats, *notes))
        if types := sorted(expand_identifiers(setup.identifiers)):
            options = {**claim.options, "identifiers": {"types": types}}
            note = SURROGATE_NOTE.format(types=", ".join(types))
            claim = replace(claim, options=options, caveats=(*claim.caveats, note))
    return claim


def _compute_guess_bound(setup: Setup) -> float | None:
    """Bounds how often a word is guessed from a released code.

    See `guessing`; None where that is not known. The bound holds for the largest finite budget of a
    word; a user-defined budget may give any.
    """
    mechanism = unwrap_books(setup.resolved_mechanism)
    if setup.words.stopwords != "pass" or not setup.claim.alone or not isinstance(mechanism, Law):
        return None
    rates = []
    for view, parameter in _yield_parameters(setup, mechanism):
        block = Block(layout=Layout.build(1), rows=np.zeros(1, np.int64))
        if mechanism.log_probs(view, block, parameter) is None:
            return None
        rates.append(build_success_rate(mechanism, view)(float(parameter[0])))
    return max(rates, default=None)


def _yield_parameters(
    setup: Setup, mechanism: Mechanism
) -> Iterator[tuple[EmbeddingTable, Values]]:
    """Yields each book's view with the parameter of its largest finite budget."""
    epsilons, book = _list_epsilons(setup.budget_rule), setup.loaded_table.root.book
    book_numbers = (
        book.book_numbers
        if isinstance(book, Books) and isinstance(setup.budget_rule, Grouped)
        else None
    )
    for at, view in enumerate(setup.loaded_table.views):
        view_epsilons = [
            epsilon
            for i, epsilon in epsilons.items()
            if book_numbers is None or book_numbers[i] == at
        ]
        if setup.parameter is not None:
            yield view, setup.parameter
        elif view_epsilons:
            yield view, mechanism.calibrate(view, Layout.build(1), np.array([max(view_epsilons)]))


def _list_epsilons(rule: Budget | None) -> dict[int, float]:
    """Returns a built-in rule's finite positive epsilons, by group number."""
    budgets: Sequence[float] = rule.budgets if isinstance(rule, Grouped) else ()
    # Not `isinstance`: a subclass may assign other budgets.
    budgets = (rule.epsilon,) if type(rule) is Uniform else budgets
    return {i: budget for i, budget in enumerate(budgets) if 0 < budget < math.inf}


NO_TAGGER_NOTE = "only names that follow a key are found: no tagger is among protect.detectors"
"""Caveat where no detector of the options finds names."""


def _describe_groups(
    claim: Claim,
    grouping: Grouping,
    protect: ProtectOptions,
    groups: GroupOptions,
    names: NameOptions,
) -> Claim:
    """Adds the method of grouping to a claim."""
    options = {**claim.options, "protect": protect.dump_public(), "groups": asdict(groups)}
    if grouping.named:
        options["names"] = asdict(names)
    if grouping.is_randomised:
        note = "groups are drawn at random; the statement covers them"
    elif grouping.is_context_free:
        note = (
            "the group of a word follows from that word, fixed lists and a task alone; it is in "
            "the mask"
        )
    else:
        note = (
            "groups, types and places of sensitive parts are computed from the private text; they "
            "are in the mask"
        )
    blind = () if grouping.detection.can_find_names else (NO_TAGGER_NOTE,)
    return replace(claim, options=options, caveats=(*claim.caveats, note, *blind))


def _build_budget(setup: Setup) -> Budget | None:
    """Returns the rule for the epsilon of each word, checked.

    None where the mechanism's parameter decides.
    """
    claim, rule = setup.claim, setup.budget_rule
    if setup.parameter is not None and claim.parameter is not None:
        check_range(setup.parameter, claim.parameter)
    for epsilon in sorted(
        {*_list_epsilons(rule).values()}
    ):  # fails now rather than at the first text
        setup.resolved_mechanism.calibrate(setup.loaded_table, Layout.build(1), np.array([epsilon]))
    if rule is not None and claim.kind == "none":
        warnings.warn(
            f"{claim.mechanism}: epsilon bounds nothing here, because {claim.reason}",
            TextveilWarning,
            stacklevel=4,
        )
    needs_none = setup.parameter is not None and claim.parameter is None
    if needs_none and not setup.has_groups:
        return setup.budget  # an epsilon changes neither placeholders nor stencils
    return rule
