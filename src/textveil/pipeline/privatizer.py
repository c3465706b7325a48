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
    NameOptions,
    ProtectOptions,
    Rerank,
    WordsOptions,
    keywords,
    resolve,
)
from textveil.detect import Detections, PrivateValue
from textveil.errors import ConfigError, InputError, MechanismError, TextveilError
from textveil.guarantee import Guarantee, Loss
from textveil.mechanism import PLACEHOLDER, Mechanism
from textveil.pipeline.consistent import Repeats, alike, drawn_before, moved_alike, recall
from textveil.pipeline.draw import Release, draw, planned
from textveil.pipeline.found import said, with_budget
from textveil.pipeline.papers import warn_of_budget
from textveil.pipeline.parts import Parts, build
from textveil.pipeline.plan import Plan, detect, make_plan, protect
from textveil.pipeline.release import spell
from textveil.pipeline.rerank import rerank
from textveil.pipeline.results import Private, Rehearsal, Result
from textveil.pipeline.rules import Setup
from textveil.pipeline.source import source
from textveil.pipeline.statement import note_losses, state
from textveil.protect import Budget, Finding, Grouped, Protection, findings
from textveil.randomness import Flags, Ids
from textveil.session import Notes, Session, SessionDelta, Snapshot
from textveil.table import EmbeddingTable, load_table
from textveil.text import Released, Tokens, tokenize

BATCH_TEXTS = 512
BATCH_CHARACTERS = 1 << 18

Made = TypeVar("Made")


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

    def __init__(
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
        seed: int | None = None,
        **options: Any,
    ) -> None:
        setup = Setup(
            mechanism=mechanism,
            options=options,
            epsilon=epsilon,
            table=table,
            words=_section("words", WordsOptions, words),
            budget=budget,
            rerank=_section("rerank", Rerank, rerank),
            protect=_section("protect", ProtectOptions, protect),
            groups=_section("groups", GroupOptions, groups),
            names=_section("names", NameOptions, names),
            figures=_section("figures", FigureOptions, figures),
            seed=seed,
        )
        super().__init__(**vars(build(setup)))

    @classmethod
    def from_config(cls, config: Config, *, table: EmbeddingTable | None = None) -> Self:
        """Builds a privatizer from resolved options; `table` replaces the configured one.

        Where they have a risk instead of a budget, the budget is found first (`with_budget`). Warns
        when a paper's parameters are used on a table that the paper did not have.
        """
        config = with_budget(config, table=table)
        chosen = config.table
        privatizer = cls(
            config.mechanism.name,
            epsilon=config.epsilon,
            table=table or load_table(**asdict(chosen)),
            words=config.words,
            rerank=config.rerank,
            protect=config.protect,
            groups=config.groups,
            names=config.names,
            figures=config.figures,
            seed=config.seed,
            **config.mechanism.options,
        )
        warn_of_budget(privatizer, config, stacklevel=2)
        if sentence := said(config):
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
        return cls.from_config(resolve(profile=name, overrides=keywords(**overrides)), table=table)

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
        return self._batch([text], session, first=0, queries=None if query is None else [query])[0]

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
            part = self.with_parts(randomness=self.randomness.part(first))
            yield from part._stream(texts, session, first, queries)
        else:
            yield from self._stream(texts, session, 0, queries)

    def _stream(
        self,
        texts: Iterable[str],
        session: Session | None,
        done: int,
        queries: Iterable[str] | None,
    ) -> Iterator[Result]:
        remembering = self.remembering()
        for batch in _batches(texts, repeat(None) if queries is None else queries):
            yield from remembering._queried(batch, session, done)
            done += len(batch)

    def _queried(
        self, batch: Sequence[tuple[str, str | None]], session: Session | None, first: int
    ) -> list[Result]:
        queries = [query for _, query in batch if query is not None]
        return self._batch(
            [text for text, _ in batch], session, first=first, queries=queries or None
        )

    def _batch(
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
            self._guarded(self._sentence, texts, session, first, None, queries, False).results
        )

    def found_in(self, texts: Iterable[str]) -> Iterator[list[Finding]]:
        """Yields each text's findings: sensitive parts, and what stays and why.

        Raises:
            InputError: a text is not a string of valid Unicode. DetectorError: a detector failed.
        """
        for batch in _batches(texts, repeat(None)):
            yield from self._guarded(self._found, [text for text, _ in batch])

    def _found(self, texts: Sequence[str]) -> list[list[Finding]]:
        detections = detect(self, tokenize(texts), None)
        if detections is None or self.grouping is None:
            return [[] for _ in texts]
        return findings(self.grouping, self.grouping.propagate(detections, None))

    def private_in(self, text: str) -> tuple[PrivateValue, ...]:
        """Returns the private values of a text that is not released.

        `Session.hide` makes a session hide them.

        Raises:
            InputError: the text is not a string of valid Unicode. DetectorError: a detector failed.
        """
        detections = detect(self, tokenize([text]), None)
        if detections is None or self.grouping is None:
            return ()
        return tuple(
            value
            for values in self.grouping.propagate(detections, None).new_values
            for value in values
        )

    def rehearse(
        self,
        texts: Sequence[str],
        session: Session | None = None,
        *,
        memo: dict[object, object] | None = None,
        queries: Sequence[str] | None = None,
    ) -> Rehearsal:
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
        return self._guarded(self._sentence, texts, session, 0, memo, queries, True)

    def _guarded(self, step: Callable[..., Made], *given: Any) -> Made:
        try:
            return step(*given)
        except TextveilError:
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            failure = (
                f"{self.claim.mechanism} failed with {type(error).__name__} "
                f"({Path(where.filename).name}, line {where.lineno}); nothing was released"
            )
        # raised out here, because the error's message and chain may hold words
        raise MechanismError(failure)

    def _sentence(
        self,
        texts: Sequence[str],
        session: Session | None,
        first: int,
        memo: dict[object, object] | None,
        queries: Sequence[str] | None,
        whole: bool,
    ) -> Rehearsal:
        start = time.perf_counter()
        if self.words.lasting:
            (session or Session()).lasting([])  # raises where the session does not last
        tokens = tokenize(texts, first=first)
        if (book := self.table.root.book) is not None:
            book.refuse(texts)
        detections = detect(self, tokens, queries, once=session is None)
        release = partial(self._release, start, first, tokens, detections, memo, whole, session)
        return release(None)[0] if session is None else session.transaction(release)

    def _release(
        self,
        start: float,
        first: int,
        tokens: Tokens,
        found: Detections | None,
        memo: dict[object, object] | None,
        whole: bool,
        session: Session | None,
        known: Snapshot | None,
    ) -> tuple[Rehearsal, SessionDelta]:
        """Releases texts once; returns the results and the session's delta."""
        tokens, protection, epsilon, new_values = protect(self, tokens, found, known, first=first)
        plan = make_plan(self, tokens, protection, epsilon, memo=memo, whole=whole)
        notes = None if known is None else Notes(known)
        again, here, repeats = self._known(tokens, protection, plan, notes, session)
        if session is not None and session.counts_spending:
            session.reserve(planned(self, protection, plan, again))
        rng = source(self, tokens, protection, epsilon, first=first, step="words")
        release = self.with_parts(randomness=rng)._draw(protection, plan)
        if repeats is not None:
            release = repeats.applied(release)
        shown = release.rows
        if self.rerank.m > 1:
            as_drawn = spell(
                self,
                tokens,
                protection,
                plan,
                shown,
                words=self.table.words,
                steps=release.steps,
                notes=None,
                done=first,
            )[0]
            shown = self._reranked(as_drawn, protection, shown)
        return self._finish(
            start,
            tokens,
            protection,
            plan,
            release,
            shown,
            notes,
            new_values,
            again,
            here,
            repeats,
            first,
        )

    def _known(
        self,
        tokens: Tokens,
        protection: Protection,
        plan: Plan,
        notes: Notes | None,
        session: Session | None,
    ) -> tuple[Flags, Flags, Repeats | None]:
        """Finds words that are released as they were drawn before.

        Returns:
            bool [N], in any session of the subject or the same text; bool [N], in this session; the
            earlier draws of equal texts, None where the session does not repeat texts.
        """
        if notes is None or session is None:
            nothing = np.zeros(len(tokens.words), np.bool_)
            return nothing, nothing, None
        again = here = drawn_before(self, tokens, protection, plan, notes)
        if self.words.lasting:
            recall(self, tokens, protection, plan, notes, session)
            again = drawn_before(self, tokens, protection, plan, notes)
        if not session.repeats:
            return again, here, None
        repeats = Repeats(self, tokens, protection, plan, notes, session.repeats)
        return again | (repeats.words & (not self.drawn_groups)), here, repeats

    def _draw(self, protection: Protection, plan: Plan) -> Release:
        """Draws the release: the one random step."""
        return draw(self, protection, plan)

    def _reranked(self, releases: Sequence[Released], protection: Protection, rows: Ids) -> Ids:
        """Re-ranks drawn rows from the releases alone, so it costs nothing.

        They become rows of the table's origin: a code is shown as any of its words.
        """
        shown = rows.copy()
        drawn = rows != PLACEHOLDER
        free = drawn.copy()
        free[protection.named] = False  # re-ranking would replace names by ordinary words
        shown[free] = self.table.originals(rows[free])
        shown[drawn] = rerank(self.rerank, self.table, releases, shown[drawn])
        shown[protection.named] = rows[protection.named]
        return shown

    def unmeasured_in(self, texts: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Names each text's scripts and languages without measured detection.

        Only where all other words pass and show them anyway.
        """
        if self.grouping is None or not (
            isinstance(self.budget, Grouped) and math.isinf(self.budget.budgets[-1])
        ):
            return [()] * len(texts)
        return self.grouping.detection.unmeasured(texts)

    def _finish(
        self,
        start: float,
        tokens: Tokens,
        protection: Protection,
        plan: Plan,
        release: Release,
        shown: Ids,
        notes: Notes | None,
        news: Sequence[Sequence[PrivateValue]],
        again: Flags,
        here: Flags,
        repeats: Repeats | None,
        first: int,
    ) -> tuple[Rehearsal, SessionDelta]:
        """Spells the draw as results with statements; returns the session's delta."""
        drawn = release.rows
        if self.words.consistent:  # re-ranking is excluded then
            drawn = shown = alike(self, tokens, protection, plan, drawn, notes)
        steps = moved_alike(self, tokens, protection, plan, release.steps, notes)
        if repeats is not None:
            repeats.keep(drawn, steps)
        reranked, table = self.rerank.m > 1, self.table
        words = table.origin.words if reranked else table.words
        releases, earlier = spell(
            self,
            tokens,
            protection,
            plan,
            shown,
            words=words,
            steps=steps,
            notes=notes,
            news=news,
            done=first,
        )
        positions = plan.block.layout.positions
        foreign = self.unmeasured_in(tokens.texts)
        same = self.words.consistent or repeats is not None

        def stated(span: slice, released: Released) -> tuple[Released, Guarantee]:
            """Returns a text with its statement and the session's losses so far."""
            lost: tuple[Loss, ...] = ()
            if notes is not None:
                lost = note_losses(self, span, protection, plan, release, here, notes, alike=same)
            if any(loss.alike for loss in lost):
                released = released.showing_equality()
            return released, state(self, released, span, protection, plan, release, again, lost)

        statements = [stated(*each) for each in zip(tokens.spans, releases, strict=True)]
        # finer digits would reveal something about the words
        seconds = float(f"{(time.perf_counter() - start) / max(1, len(tokens.texts)):.2g}")
        each = zip(tokens.texts, tokens.spans, statements, earlier, foreign, strict=True)
        rehearsal = Rehearsal(
            results=tuple(
                Result(
                    released=released,
                    guarantee=guarantee,
                    private=Private(text=text, words=tuple(tokens.words[span])),
                    seconds=seconds,
                    sent_earlier=passed,
                    unmeasured=names,
                )
                for text, span, (released, guarantee), passed, names in each
            ),
            words=tuple(tokens.words),
            protection=protection,
            plan=plan,
            drawn=drawn[positions],
            shown=shown[positions] if reranked else table.originals(shown[positions]),
            parameter=release.parameter,
            named=drawn[protection.named.nonzero()[0]],
        )
        return rehearsal, SessionDelta(since=0) if notes is None else notes.delta()

    def __repr__(self) -> str:
        """Shows mechanism and table, no words."""
        # a debugger may show it before it is built
        if not {"claim", "table"} <= vars(self).keys():
            return f"{type(self).__name__}(not built)"
        return f"{type(self).__name__}({self.claim.mechanism!r}, table={self.table.name!r})"


def _batches(
    texts: Iterable[str], queries: Iterable[str | None]
) -> Iterator[list[tuple[str, str | None]]]:
    """Groups texts with their queries into batches."""
    batch: list[tuple[str, str | None]] = []
    characters = 0
    for text, query in zip(texts, queries, strict=not isinstance(queries, repeat)):
        batch.append((text, query))
        characters += len(text) if hasattr(text, "__len__") else 0
        if len(batch) >= BATCH_TEXTS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _section(name: str, section: Any, given: Any) -> Any:
    """Returns the options of a section, from a mapping or by default."""
    if given is None:
        return section()
    if isinstance(given, Mapping):
        return section(**given)
    if not isinstance(given, section):
        raise ConfigError(
            f"{name} must be {section.__name__} or a mapping of its fields, got {type(given).__name__}"
        )
    return given
