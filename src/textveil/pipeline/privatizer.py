"""Privatizer: the only place that knows the order of the steps.

text -> words -> protection -> budget -> mechanism -> released items -> text, with its guarantee.

In: texts and a configuration. Out: one `Result` per text.
Not here: what any of the steps does; each has a separate module or room.
"""

import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from textveil.config import (
    Config,
    FigureOptions,
    GroupOptions,
    IdentifierOptions,
    NameOptions,
    ProtectOptions,
    Rerank,
    WordsOptions,
    convert_keywords,
    resolve,
)
from textveil.detect import Detections, PrivateValue
from textveil.errors import ConfigError, InputError, MechanismError, TextveilError
from textveil.guarantee import Guarantee, Loss
from textveil.mechanism import PLACEHOLDER, Mechanism
from textveil.pipeline.budget_search import describe_search, resolve_budget
from textveil.pipeline.components import Parts, build_parts
from textveil.pipeline.consistent import (
    Replay,
    find_drawn_before,
    load_lasting_draws,
    replace_equal_rows,
    replace_equal_steps,
)
from textveil.pipeline.draw import DrawResult, can_spend, draw, plan_spending
from textveil.pipeline.option_rules import Setup
from textveil.pipeline.paper_warnings import warn_of_budget
from textveil.pipeline.plan import Plan, detect, make_plan, protect
from textveil.pipeline.release import spell
from textveil.pipeline.rerank import rerank
from textveil.pipeline.results import EvaluationRun, Private, Result
from textveil.pipeline.rng import derive_randomness
from textveil.pipeline.statement import BatchFacts, build_guarantee, note_losses
from textveil.protect import Budget, Finding, Grouped, Protection, list_findings
from textveil.randomness import Flags, Ids
from textveil.session import Changes, Session, SessionDelta, Snapshot
from textveil.table import EmbeddingTable, load_table
from textveil.text import Released, Tokens, tokenize

BATCH_TEXTS = 512
BATCH_CHARACTERS = 1 << 18

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Privatizer(Parts):
    """Privatizer of texts, word by word; frozen, picklable, shareable between threads.

    Args:
        mechanism: a registered name ("noise") or a `Mechanism`.
        epsilon: the promised bound of the printed statement, per word: the largest epsilon_j. 0
            replaces every protected word by a placeholder, infinity lets it pass and says so.
        table: a registered name or an `EmbeddingTable`.
        words: rules for cutting text into words: `WordsOptions`, or a mapping of its fields
            ({"casing": "copy"}).
        budget: a rule for unequal budgets, in place of `epsilon`.
        rerank: options for replacing drawn words by likelier neighbours: `Rerank`, or a mapping of
            its fields.
        protect: options for sensitive and important words: `ProtectOptions`, or a mapping of its
            fields.
        groups: budgets of the groups: `GroupOptions`, or a mapping of its fields.
        names: options for replacing names by names of their type: `NameOptions`, or a mapping of
            its fields.
        identifiers: options for replacing identifiers by invented ones: `IdentifierOptions`, or a
            mapping of its fields.
        figures: options for moving dates, ages and amounts: `FigureOptions`, or a mapping of its
            fields.
        seed: repeatable draws: the same calls with the same texts and options give the same
            releases, and different calls unrelated ones. The statement then says that nothing is
            protected from anyone who knows the seed.
        **options: options of the mechanism, `eta=100` or `L=4`.

    Raises:
        ConfigError: an option is wrong; BudgetError: neither epsilon nor the mechanism's parameter
            is given, or both.
        TableError: the table cannot be loaded.
    """

    def __init__(  # noqa: PLR0913 - most are options, given by keyword
        self,
        mechanism: str | Mechanism = "noise",
        *,
        epsilon: float | None = None,
        table: str | EmbeddingTable = "minilm",
        words: WordsOptions | Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        rerank: Rerank | Mapping[str, Any] | None = None,
        protect: ProtectOptions | Mapping[str, Any] | None = None,
        groups: GroupOptions | Mapping[str, Any] | None = None,
        names: NameOptions | Mapping[str, Any] | None = None,
        figures: FigureOptions | Mapping[str, Any] | None = None,
        identifiers: IdentifierOptions | Mapping[str, Any] | None = None,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        setup = Setup(
            mechanism=mechanism,
            options=options,
            epsilon=epsilon,
            table=table,
            given_words=_build_section("words", WordsOptions, words),
            budget=budget,
            rerank=_build_section("rerank", Rerank, rerank),
            protect=_build_section("protect", ProtectOptions, protect),
            groups=_build_section("groups", GroupOptions, groups),
            names=_build_section("names", NameOptions, names),
            figures=_build_section("figures", FigureOptions, figures),
            identifiers=_build_section("identifiers", IdentifierOptions, identifiers),
            seed=seed,
        )
        super().__init__(**vars(build_parts(setup)))

    @classmethod
    def from_config(cls, config: Config, *, table: EmbeddingTable | None = None) -> Self:
        """Builds a privatizer from resolved options; `table` replaces the configured one.

        Where they have a risk instead of a budget, the budget is found first (`resolve_budget`).

        Warns:
        when a paper's parameters are used on a table that the paper did not have.
        """
        if config.texts.unit != "word":
            raise ConfigError(
                f"texts.unit={config.texts.unit} (--unit) is for whole texts, which `textveil "
                "privatize` and `textveil corpus run` release, and in Python TextPrivatizer: leave "
                "it out here"
            )
        config = resolve_budget(config, table=table)
        table_options = config.table
        privatizer = cls(
            config.mechanism.name,
            epsilon=config.epsilon,
            table=table or load_table(**asdict(table_options)),
            words=config.words,
            rerank=config.rerank,
            protect=config.protect,
            groups=config.groups,
            names=config.names,
            figures=config.figures,
            identifiers=config.identifiers,
            seed=config.seed,
            **config.mechanism.options,
        )
        warn_of_budget(privatizer, config, stacklevel=2)
        if sentence := describe_search(config):
            return privatizer.with_parts(claim=replace(privatizer.claim, found=sentence))
        return privatizer

    @classmethod
    def from_profile(
        cls, name: str, *, table: str | EmbeddingTable | None = None, **overrides: Any
    ) -> Self:
        """Builds a privatizer from a packaged profile with some options changed.

        `Privatizer.from_profile("paper-stencil", L=4)` changes one.

        Raises:
            UnknownName: no profile or option has this name.
        """
        if isinstance(table, str):
            overrides["table"], table = table, None
        return cls.from_config(
            resolve(profile=name, overrides=convert_keywords(**overrides)), table=table
        )

    @property
    def can_spend(self) -> bool:
        """True if a release spends an epsilon, for some text; placeholders spend nothing."""
        return can_spend(self)

    # ---- the sentence ----------------------------------------------------------------------------

    def privatize(
        self, text: str, session: Session | None = None, *, query: str | None = None
    ) -> Result:
        """Privatizes one text.

        Args:
            text: any Unicode text; empty text gives an empty result.
            session: remembers placeholders, names and draws; without one nothing is kept.
            query: purpose of the text, where `protect.importance` is cosine and no task is set; it
                is not secret.

        Raises:
            InputError: the text is not a string of valid Unicode. VocabularyError: `words.oov` is
                `error`.
            DetectorError: a detector failed.
        """
        return self._release_batch(
            [text], session, first=0, queries=None if query is None else [query]
        )[0]

    async def aprivatize(
        self, text: str, session: Session | None = None, *, query: str | None = None
    ) -> Result:
        """Runs `privatize` in a thread, so that the event loop continues.

        A cancelled caller gets no result at once. A text whose turn had not come is then never
        read; one that was begun is drawn to its end, which the session remembers and its ledger
        counts as spent, and the result is discarded. A second call is another release.
        """
        import asyncio  # loading it takes longer than short texts; commands do not need it

        return await asyncio.to_thread(self.privatize, text, session, query=query)

    def privatize_many(
        self,
        texts: Iterable[str],
        session: Session | None = None,
        *,
        first: int | None = None,
        queries: Iterable[str] | None = None,
    ) -> Iterator[Result]:
        """Privatizes texts in order and in batches, in constant memory.

        Args:
            texts: any number of texts.
            session: remembers placeholders; without one nothing is kept.
            first: the number of the first text, where these are a part of a longer run. With a
                seed, a part's draws then depend on the seed, this number, the texts and the
                options, whichever process draws it and when; a repeated number with the same texts
                repeats them. Without a seed every call draws afresh.
            queries: the purpose of each text, as many as texts; see `privatize`.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InputError("privatize_many takes several texts; for one text use privatize")
        if first is not None:
            part = self.with_parts(randomness=self.randomness.derive_part(first))
            yield from part._yield_results(texts, session, first, queries)
        else:
            yield from self._yield_results(texts, session, 0, queries)

    def _yield_results(
        self,
        texts: Iterable[str],
        session: Session | None,
        first: int,
        queries: Iterable[str] | None,
    ) -> Iterator[Result]:
        privatizer = self.remembering()
        for batch in split_batches(texts, repeat(None) if queries is None else queries):
            yield from privatizer._release_with_queries(batch, session, first)
            first += len(batch)

    def _release_with_queries(
        self, batch: Sequence[tuple[str, str | None]], session: Session | None, first: int
    ) -> list[Result]:
        queries = [query for _, query in batch if query is not None]
        return self._release_batch(
            [text for text, _ in batch], session, first=first, queries=queries or None
        )

    def _release_batch(
        self,
        texts: Sequence[str],
        session: Session | None,
        *,
        first: int = 0,
        queries: Sequence[str] | None = None,
    ) -> list[Result]:
        if session is not None and not isinstance(session, Session):
            raise ConfigError(f"session must be a Session, got {type(session).__name__}")
        return list(
            self._call_safely(
                self._release_texts, texts, session, first, None, queries, False
            ).results
        )

    def found_in(self, texts: Iterable[str]) -> Iterator[list[Finding]]:
        """Yields each text's findings: sensitive parts, and what stays and why.

        Raises:
            InputError: a text is not a string of valid Unicode. DetectorError: a detector failed.
        """
        for batch in split_batches(texts, repeat(None)):
            yield from self._call_safely(self._find_batch, [text for text, _ in batch])

    def _find_batch(self, texts: Sequence[str]) -> list[list[Finding]]:
        detections = detect(self, tokenize(texts), None)
        if detections is None or self.grouping is None:
            return [[] for _ in texts]
        return list_findings(self.grouping, self.grouping.propagate(detections, None))

    def private_in(self, text: str) -> tuple[PrivateValue, ...]:
        """Returns the private values of a text that is not released.

        `Session.hide` makes a session hide them.

        Raises:
            InputError: the text is not a string of valid Unicode. DetectorError: a detector failed.
        """
        remembered, nearby = self.split_private(text)
        return remembered + nearby

    def split_private(self, text: str) -> tuple[tuple[PrivateValue, ...], tuple[PrivateValue, ...]]:
        """Returns the private values that a session may remember, and the others.

        See `remembers_doubt`; otherwise like `private_in`.
        """
        detections = detect(self, tokenize([text]), None)
        if detections is None or self.grouping is None:
            return (), ()
        found = self.grouping.propagate(detections, None)
        values = [value for values in found.new_values for value in values]
        local = set() if self.remembers_doubt else found.doubtful
        return tuple(v for v in values if v not in local), tuple(v for v in values if v in local)

    def rehearse(
        self,
        texts: Sequence[str],
        session: Session | None = None,
        *,
        memo: dict[object, object] | None = None,
        queries: Sequence[str] | None = None,
    ) -> EvaluationRun:
        """Privatizes a batch and keeps its secrets for attacks and measures.

        Nothing of the result may leave the process.

        Args:
            texts: any number of texts.
            session: remembers placeholders, names and draws; without one nothing is kept.
            memo: cache of results that do not depend on the budget, for the next rehearsal of the
                same texts; secret.
            queries: the purpose of each text, see `privatize`.

        Raises:
            InputError: a text is not a string of valid Unicode. VocabularyError: `words.oov` is
                `error`.
        """
        return self._call_safely(self._release_texts, texts, session, 0, memo, queries, True)

    def _call_safely(self, step: Callable[..., Outcome], *arguments: Any) -> Outcome:
        return call_safely(self.claim.mechanism, step, *arguments)

    def _release_texts(
        self,
        texts: Sequence[str],
        session: Session | None,
        first: int,
        memo: dict[object, object] | None,
        queries: Sequence[str] | None,
        look_up_all: bool,
    ) -> EvaluationRun:
        start = time.perf_counter()
        if self.words.lasting:
            (session or Session()).lasting([])  # raises where the session does not last
        tokens = tokenize(texts, first=first)
        # A book that was made from private texts voids the statement: refused before anything is
        # drawn.
        if (book := self.table.root.book) is not None:
            book.refuse(texts)
        detections = detect(self, tokens, queries, deduplicate=session is None)
        release = partial(
            self._release_once, start, first, tokens, detections, memo, look_up_all, session
        )
        # `release` is called again where another thread committed in between, so that detection,
        # which takes long, is not part of it.
        return release(None)[0] if session is None else session.transaction(release)

    def _release_once(
        self,
        start: float,
        first: int,
        tokens: Tokens,
        detections: Detections | None,
        memo: dict[object, object] | None,
        look_up_all: bool,
        session: Session | None,
        snapshot: Snapshot | None,
    ) -> tuple[EvaluationRun, SessionDelta]:
        """Releases texts once; returns the results and the session's delta."""
        tokens, protection, epsilon, new_values = protect(
            self, tokens, detections, snapshot, first=first
        )
        plan = make_plan(self, tokens, protection, epsilon, memo=memo, look_up_all=look_up_all)
        notes = None if snapshot is None else Changes(snapshot)
        replayed, replayed_here, replay = self._find_replayed(
            tokens, protection, plan, notes, session
        )
        # Reserved before the draw: a release that would pass a limit must never have been drawn.
        if session is not None and session.counts_spending:
            session.reserve(plan_spending(self, protection, plan, replayed))
        rng = derive_randomness(self, tokens, protection, epsilon, first=first, step="words")
        release = self.with_parts(randomness=rng)._draw(protection, plan)
        if replay is not None:
            release = replay.apply(release)
        shown_rows = release.rows
        if self.rerank.m > 1:
            # Spelled for the language model only: without notes, or the session would remember
            # words that are never shown.
            as_drawn = spell(
                self,
                tokens,
                protection,
                plan,
                shown_rows,
                words=self.table.words,
                steps=release.steps,
                notes=None,
                first=first,
            )[0]
            shown_rows = self._rerank_rows(as_drawn, protection, shown_rows)
        return self._build_results(
            start,
            tokens,
            protection,
            plan,
            release,
            shown_rows,
            notes,
            new_values,
            replayed,
            replayed_here,
            replay,
            first,
        )

    def _find_replayed(
        self,
        tokens: Tokens,
        protection: Protection,
        plan: Plan,
        notes: Changes | None,
        session: Session | None,
    ) -> tuple[Flags, Flags, Replay | None]:
        """Finds words that are released as they were drawn before.

        Returns:
            bool [N], in any session of the subject or the same text; bool [N], in this session; the
            earlier draws of equal texts, None where the session does not repeat texts.
        """
        if notes is None or session is None:
            nothing = np.zeros(len(tokens.words), np.bool_)
            return nothing, nothing, None
        replayed = replayed_here = find_drawn_before(self, tokens, protection, plan, notes)
        if self.words.lasting:
            load_lasting_draws(self, tokens, protection, plan, notes, session)
            replayed = find_drawn_before(self, tokens, protection, plan, notes)
        if not session.repeats:
            return replayed, replayed_here, None
        replay = Replay(self, tokens, protection, plan, notes, session.repeats)
        # Where groups are drawn, an equal text draws its labels anew, and so spends again.
        return replayed | (replay.replayed & (not self.drawn_groups)), replayed_here, replay

    def _draw(self, protection: Protection, plan: Plan) -> DrawResult:
        """Draws the release: the one random step."""
        return draw(self, protection, plan)

    def _rerank_rows(self, releases: Sequence[Released], protection: Protection, rows: Ids) -> Ids:
        """Re-ranks drawn rows from the releases alone, so it costs nothing.

        They become rows of the table's origin: a code is shown as any of its words.
        """
        shown_rows = rows.copy()
        is_drawn = rows != PLACEHOLDER
        free = is_drawn.copy()
        free[protection.named] = False  # re-ranking would replace names by ordinary words
        shown_rows[free] = self.table.map_to_origin(rows[free])
        shown_rows[is_drawn] = rerank(self.rerank, self.table, releases, shown_rows[is_drawn])
        shown_rows[protection.named] = rows[protection.named]
        return shown_rows

    def unmeasured_in(self, texts: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Names each text's scripts and languages without measured detection.

        Only where all other words pass and show them anyway.
        """
        if self.grouping is None or not (
            isinstance(self.budget, Grouped) and math.isinf(self.budget.budgets[-1])
        ):
            return [()] * len(texts)
        return self.grouping.detection.list_unmeasured(texts)

    def _build_results(  # noqa: PLR0913 - most are options, given by keyword
        self,
        start: float,
        tokens: Tokens,
        protection: Protection,
        plan: Plan,
        release: DrawResult,
        shown_rows: Ids,
        notes: Changes | None,
        new_values: Sequence[Sequence[PrivateValue]],
        replayed: Flags,
        replayed_here: Flags,
        replay: Replay | None,
        first: int,
    ) -> tuple[EvaluationRun, SessionDelta]:
        """Spells the draw as results with statements; returns the session's delta."""
        drawn_rows = release.rows
        if self.words.consistent:  # re-ranking is excluded then
            drawn_rows = shown_rows = replace_equal_rows(
                self, tokens, protection, plan, drawn_rows, notes
            )
        steps = replace_equal_steps(self, tokens, protection, plan, release.steps, notes)
        if replay is not None:
            replay.keep(drawn_rows, steps)
        reranked, table = self.rerank.m > 1, self.table
        words = table.origin.words if reranked else table.words
        releases, earlier = spell(
            self,
            tokens,
            protection,
            plan,
            shown_rows,
            words=words,
            steps=steps,
            notes=notes,
            new_values=new_values,
            numbers=release.numbers,
            first=first,
        )
        positions = plan.block.layout.positions
        unmeasured = self.unmeasured_in(tokens.texts)
        is_consistent = self.words.consistent or replay is not None
        facts = BatchFacts(
            parts=self, protection=protection, plan=plan, release=release, replayed=replayed
        )

        def build_statement(span: slice, released: Released) -> tuple[Released, Guarantee]:
            """Returns a text with its statement and the session's losses so far."""
            losses: tuple[Loss, ...] = ()
            if notes is not None:
                losses = note_losses(
                    self, span, protection, plan, release, replayed_here, notes, alike=is_consistent
                )
            if any(loss.alike for loss in losses):
                released = released.mark_equality()
            return released, build_guarantee(facts, released, span, losses)

        statements = [
            build_statement(*fields) for fields in zip(tokens.spans, releases, strict=True)
        ]
        # finer digits would reveal something about the words
        seconds = float(f"{(time.perf_counter() - start) / max(1, len(tokens.texts)):.2g}")
        fields = zip(tokens.texts, tokens.spans, statements, earlier, unmeasured, strict=True)
        evaluation_run = EvaluationRun(
            results=tuple(
                Result(
                    released=released,
                    guarantee=guarantee,
                    private=Private(text=text, words=tuple(tokens.words[span])),
                    seconds=seconds,
                    sent_earlier=passed,
                    unmeasured=names,
                )
                for text, span, (released, guarantee), passed, names in fields
            ),
            words=tuple(tokens.words),
            protection=protection,
            plan=plan,
            drawn_rows=drawn_rows[positions],
            shown_rows=shown_rows[positions]
            if reranked
            else table.map_to_origin(shown_rows[positions]),
            parameter=release.parameter,
            name_rows=drawn_rows[protection.named.nonzero()[0]],
        )
        return evaluation_run, SessionDelta(since=0) if notes is None else notes.build_delta()

    def __repr__(self) -> str:
        """Shows mechanism and table, no words."""
        # a debugger may show it before it is built
        if not {"claim", "table"} <= vars(self).keys():
            return f"{type(self).__name__}(not built)"
        return f"{type(self).__name__}({self.claim.mechanism!r}, table={self.table.name!r})"


def call_safely(name: str, step: Callable[..., Outcome], *arguments: Any) -> Outcome:
    """Runs a step; an unforeseen error becomes one without words of a text.

    Args:
        name: of what runs, for the error.
        step: a function.
        arguments: of the function.

    Raises:
        MechanismError: it failed.
    """
    try:
        return step(*arguments)
    except TextveilError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        failure = (
            f"{name} failed with {type(error).__name__} "
            f"({Path(frame.filename).name}, line {frame.lineno}); nothing was released"
        )
    # raised out here, because the error's message and chain may hold words
    raise MechanismError(failure)


def split_batches(
    texts: Iterable[str], queries: Iterable[str | None]
) -> Iterator[list[tuple[str, str | None]]]:
    """Groups texts with their queries into batches."""
    batch: list[tuple[str, str | None]] = []
    characters = 0
    # `repeat` has no end; real queries must be as many as the texts.
    for text, query in zip(texts, queries, strict=not isinstance(queries, repeat)):
        batch.append((text, query))
        characters += len(text) if hasattr(text, "__len__") else 0
        if len(batch) >= BATCH_TEXTS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _build_section(name: str, section: Any, options: Any) -> Any:
    """Returns the options of a section, from a mapping or by default."""
    if options is None:
        return section()
    if isinstance(options, Mapping):
        return section(**options)
    if not isinstance(options, section):
        raise ConfigError(
            f"{name} must be {section.__name__} or a mapping of its fields, got "
            f"{type(options).__name__}"
        )
    return options
