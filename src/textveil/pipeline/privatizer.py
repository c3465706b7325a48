"""The sentence: text -> words -> protection -> budget -> mechanism -> released items -> text, with its guarantee.

In: texts and a configuration. Out: one `Result` per text. The only place that knows the order.
Not here: what any of the steps does; each has its own room.
"""

import math
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.resources import files
from itertools import repeat
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from textveil.config import (
    Config,
    GroupOptions,
    NameOptions,
    ProtectOptions,
    Rerank,
    WordsOptions,
    keywords,
    registry,
    resolve,
)
from textveil.errors import (
    BudgetError,
    ConfigError,
    InputError,
    MechanismError,
    TextveilError,
    TextveilWarning,
    UnknownName,
    VocabularyError,
)
from textveil.guarantee import Claim, Guarantee
from textveil.mechanism import PLACEHOLDER, Block, Layout, Mechanism, Names, Restricting, Role, WordRule, oov
from textveil.pipeline.release import Plan, Release, spell
from textveil.pipeline.rerank import NOTE, rerank
from textveil.pipeline.results import Private, Rehearsal, Result
from textveil.pipeline.statement import Terms, check_grouped, grouped_claim
from textveil.protect import (
    Budget,
    Grouped,
    Grouping,
    Protection,
    Uniform,
    in_range,
    join,
    listed,
    randomised,
    ungrouped,
)
from textveil.randomness import Flags, Ids, Randomness, SeededRandomness, SystemRandomness, Values
from textveil.session import Notes, Session, SessionDelta, Snapshot, fold
from textveil.table import EmbeddingTable, WordPieces, load_table
from textveil.text import Released, Tokens, tokenize

BATCH_TEXTS = 512
BATCH_CHARACTERS = 1 << 18
SWEPT = 1024
"""Words whose logits are held for several budgets: 90 MB at 21,719 candidates."""

ROUNDING = 1e-12
"""How far floating point may carry what is spent past what was asked, before it counts."""


def sweep(
    privatizers: Sequence["Privatizer"],
    texts: Sequence[str],
    queries: Sequence[str] | None = None,
    *,
    part: int = SWEPT,
) -> Iterator[tuple[Rehearsal, ...]]:
    """Rehearses the same texts with several privatizers: what a language model says of them is computed once.

    It is shared by all budgets of mechanisms whose context does not depend on what was released (`original`,
    `public`), on the same table.

    Args:
        privatizers: at least one.
        texts: any number.
        queries: what each text is for, see `Privatizer.privatize`.
        part: words of a part; the logits of all of them are held at once, 4 bytes a candidate.

    Yields:
        for every part of the texts, in order, a rehearsal by each privatizer. A part has so many words or is one text.
    """
    first = words = 0
    for stop, text in enumerate(texts):
        own = len(tokenize([text]).words)
        if first < stop and words + own > part:
            yield _swept(privatizers, texts, queries, slice(first, stop))
            first, words = stop, 0
        words += own
    if first < len(texts):
        yield _swept(privatizers, texts, queries, slice(first, len(texts)))


def _swept(
    privatizers: Sequence["Privatizer"], texts: Sequence[str], queries: Sequence[str] | None, part: slice
) -> tuple[Rehearsal, ...]:
    memo: dict[object, object] = {}
    asked = None if queries is None else queries[part]
    return tuple(privatizer.rehearse(texts[part], memo=memo, queries=asked) for privatizer in privatizers)


class Privatizer:
    """Privatizes texts word by word; frozen, shareable between threads, and picklable.

    Args:
        mechanism: a registered name ("noise") or a `Mechanism`.
        epsilon: the promised bound of the printed statement, per word: the largest epsilon_j. 0 replaces every
            protected word by a placeholder, infinity lets it pass and says so.
        table: a registered name or an `EmbeddingTable`.
        words: how text becomes words: `WordsOptions`, or a mapping of its fields ({"casing": "copy"}).
        budget: a rule for unequal budgets, in place of `epsilon`.
        rerank: whether drawn words give way to likelier ones near them: `Rerank`, or a mapping of its fields.
        protect: which words are sensitive and which matter to the task: `ProtectOptions`, or a mapping of its fields.
        groups: what each group of words may spend: `GroupOptions`, or a mapping of its fields.
        names: which names give way to names of their type: `NameOptions`, or a mapping of its fields.
        seed: repeatable draws; the statement then says that it holds against nobody who knows the seed.
        **options: the mechanism's own options, `eta=100` or `L=4`.

    Raises:
        ConfigError: an option is wrong; BudgetError: neither epsilon nor the mechanism's parameter is given, or both.
        TableError: the table cannot be loaded.
    """

    table: EmbeddingTable
    mechanism: Mechanism
    words: WordsOptions
    claim: Claim
    budget: Budget | None
    rerank: Rerank
    grouping: Grouping | None
    names: Names | None
    randomness: Randomness
    pieces: WordPieces | None

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
        seed: int | None = None,
        **options: Any,
    ) -> None:
        if options and not isinstance(mechanism, str):
            raise ConfigError(
                f"the options {', '.join(sorted(options))} belong to a mechanism's name; set them on the mechanism"
            )
        chosen = load_table(table) if isinstance(table, str) else table
        made = _build(mechanism, options) if isinstance(mechanism, str) else mechanism
        if not isinstance(chosen, EmbeddingTable):
            raise ConfigError(f"table must be a name or an EmbeddingTable, got a {type(table).__name__}")
        if isinstance(made, type) or not isinstance(made, Mechanism):
            raise ConfigError(f"mechanism must be a name or a Mechanism, got a {type(mechanism).__name__}")
        claim = made.claim(chosen)
        if claim.restricted is not None and not isinstance(made, Restricting):
            raise ConfigError(f"{claim.mechanism} has a restricted promise: it needs the methods within and pairs")
        how = _options(WordsOptions, words)
        if how.unit == "word" and chosen.holds_pieces:
            raise ConfigError(f"the table {chosen.name} holds word pieces: set words.unit=wordpiece")
        reranked = _options(Rerank, rerank)
        if reranked.m > 1:
            if how.unit == "wordpiece":
                raise ConfigError("rerank.m needs words.unit=word: a language model is asked for whole words")
            if how.consistent:
                raise ConfigError(
                    "rerank.m shows equal words unlike where their neighbours differ: set words.consistent=false"
                )
            said = {**claim.options, "rerank": asdict(reranked)}
            claim = replace(claim, options=said, caveats=(*claim.caveats, NOTE))
        guarded, grouped, named = (
            _options(ProtectOptions, protect),
            _options(GroupOptions, groups),
            _options(NameOptions, names),
        )
        grouping = Grouping.of(guarded, named)
        if grouping is None and grouped != GroupOptions():
            raise ConfigError("groups.* needs something that makes groups: set protect.detectors or protect.importance")
        if grouping is not None:
            check_grouped(grouping, how, claim)
            if grouped != GroupOptions():
                budget, epsilon = _grouped(grouped, epsilon, budget), None
            claim = grouped_claim(claim, grouping, guarded, grouped, named)
            if guarded.labels == "randomised" and not (
                isinstance(budget, Grouped) and all(map(math.isfinite, budget.budgets))
            ):
                raise BudgetError("protect.labels=randomised needs groups.budgets of which all four are finite")
        if how.consistent and not (claim.alone and how.unit == "word"):
            raise ConfigError(
                f"words.consistent needs a mechanism that looks at each word alone, and words.unit=word: "
                f"{claim.mechanism} with these options is none"
            )
        # Frozen: attributes are set here, all at once, and never again.
        self.__dict__.update(
            table=chosen,
            mechanism=made,
            words=how,
            claim=claim,
            budget=_budget(made, claim, chosen, epsilon, budget),
            rerank=reranked,
            grouping=grouping,
            names=Names.of(named, grouping.named, chosen.root) if grouping and grouping.named else None,
            randomness=SystemRandomness() if seed is None else SeededRandomness(seed),
            pieces=WordPieces.load(how.tokenizer, chosen) if how.unit == "wordpiece" else None,
        )

    def __setattr__(self, name: str, value: object) -> None:
        """Refuses: a privatizer is shared between threads, and its statement follows from its options."""
        raise AttributeError(f"a Privatizer is frozen: build a new one to change {name}")

    @classmethod
    def from_config(cls, config: Config, *, table: EmbeddingTable | None = None) -> Self:
        """A privatizer from resolved options; `table` takes the place of the configured one.

        Warns when a paper's parameters are used on a table that the paper did not have.
        """
        chosen = config.table
        privatizer = cls(
            config.mechanism.name,
            epsilon=config.epsilon,
            table=table or load_table(chosen.name, metric=chosen.metric, device=chosen.device),
            words=config.words,
            rerank=config.rerank,
            protect=config.protect,
            groups=config.groups,
            names=config.names,
            seed=config.seed,
            **config.mechanism.options,
        )
        own = privatizer.budget is None or (isinstance(privatizer.budget, Grouped) and config.epsilon is None)
        papers_own = config.profile is not None and config.profile.startswith(PAPER) and own
        if papers_own and not _is_glove(privatizer.table):
            kept, words = _kept(privatizer)
            warnings.warn(
                f"the profile {config.profile} has a budget of the size that the paper used on its own table; on "
                f"{privatizer.table.name} it keeps {kept} of the {words} protected words of a public sample: "
                "set epsilon instead",
                TextveilWarning,
                stacklevel=2,
            )
        return privatizer

    @classmethod
    def from_profile(cls, name: str, *, table: str | EmbeddingTable | None = None, **overrides: Any) -> Self:
        """A privatizer from a packaged profile ("paper-stencil") with some options changed (`epsilon=80`, `L=4`).

        Raises:
            UnknownName: no profile or option has this name.
        """
        if isinstance(table, str):
            overrides["table"], table = table, None
        return cls.from_config(resolve(profile=name, overrides=keywords(**overrides)), table=table)

    # ---- the sentence --------------------------------------------------------------------------------

    def privatize(self, text: str, session: Session | None = None, *, query: str | None = None) -> Result:
        """Privatizes one text.

        Args:
            text: any Unicode text; empty text gives an empty result.
            session: remembers placeholders, names and draws; without one nothing is kept.
            query: what the text is for, where `protect.importance` is cosine and no task is set; it is not secret.

        Raises:
            InputError: the text is not a string of valid Unicode. VocabularyError: `words.oov` is `error`.
            DetectorError: a detector failed.
        """
        return self._batch([text], session, first=0, queries=None if query is None else [query])[0]

    def privatize_many(
        self,
        texts: Iterable[str],
        session: Session | None = None,
        *,
        first: int | None = None,
        queries: Iterable[str] | None = None,
    ) -> Iterator[Result]:
        """Privatizes texts as they come, in order, in batches; memory does not grow with their number.

        Args:
            texts: any number of texts.
            session: remembers placeholders; without one nothing is kept.
            first: the number of the first text, where these are a part of a longer run. With a seed, a part's draws
                then follow from the seed and this number, whichever process draws it and when; a number that
                returns repeats them. Without a seed every call draws afresh.
            queries: what each text is for, as many as texts; see `privatize`.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InputError("privatize_many takes several texts; for one text use privatize")
        if first is not None:
            yield from self._part(first)._stream(texts, session, first, queries)
        else:
            yield from self._stream(texts, session, 0, queries)

    def _part(self, number: int) -> Self:
        """A copy for the part of a run that begins at this text."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, randomness=self.randomness.part(number))
        return copy

    def _stream(
        self, texts: Iterable[str], session: Session | None, done: int, queries: Iterable[str] | None
    ) -> Iterator[Result]:
        batch: list[tuple[str, str | None]] = []
        characters = 0
        for text, query in zip(texts, repeat(None)) if queries is None else zip(texts, queries, strict=True):
            batch.append((text, query))
            characters += len(text) if hasattr(text, "__len__") else 0
            if len(batch) >= BATCH_TEXTS or characters >= BATCH_CHARACTERS:
                yield from self._queried(batch, session, done)
                done += len(batch)
                batch, characters = [], 0
        if batch:
            yield from self._queried(batch, session, done)

    def _queried(self, batch: Sequence[tuple[str, str | None]], session: Session | None, first: int) -> list[Result]:
        queries = [query for _, query in batch if query is not None]
        return self._batch([text for text, _ in batch], session, first=first, queries=queries or None)

    def _batch(
        self, texts: Sequence[str], session: Session | None, *, first: int = 0, queries: Sequence[str] | None = None
    ) -> list[Result]:
        if session is not None and not isinstance(session, Session):
            raise ConfigError(f"session must be a Session, got a {type(session).__name__}")
        return list(self._guarded(texts, session, first, None, queries).results)

    def rehearse(
        self,
        texts: Sequence[str],
        session: Session | None = None,
        *,
        memo: dict[object, object] | None = None,
        queries: Sequence[str] | None = None,
    ) -> Rehearsal:
        """Privatizes texts as one batch and keeps what attacks and measures are judged by; nothing of it may leave.

        Args:
            texts: any number of texts.
            session: remembers placeholders, names and draws; without one nothing is kept.
            memo: where what does not depend on the budget is kept for the next rehearsal of the same texts; secret.
            queries: what each text is for, see `privatize`.

        Raises:
            InputError: a text is not a string of valid Unicode. VocabularyError: `words.oov` is `error`.
        """
        return self._guarded(texts, session, 0, memo, queries, whole=True)

    def _guarded(
        self,
        texts: Sequence[str],
        session: Session | None,
        first: int,
        memo: dict[object, object] | None = None,
        queries: Sequence[str] | None = None,
        whole: bool = False,
    ) -> Rehearsal:
        try:
            return self._sentence(texts, session, first, memo, queries, whole)
        except TextveilError:
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            failure = (
                f"{self.claim.mechanism} failed with {type(error).__name__} "
                f"({Path(where.filename).name}, line {where.lineno}); nothing was released"
            )
        raise MechanismError(failure)  # out here, because the error's message and chain may hold words

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
        tokens = tokenize(texts, first=first)
        tokens, protection, epsilon = self._protect(tokens, queries)
        plan = self._plan(tokens, protection, epsilon, memo, whole=whole)
        release = self._draw(protection, plan)
        shown = release.rows
        if self.rerank.m > 1:
            as_drawn = self._spelled(tokens, protection, plan, release, shown, None)
            shown = self._rerank(as_drawn, protection, shown)
        state = partial(self._state, start, tokens, protection, plan, release, shown)
        return state(None)[0] if session is None else session.transaction(state)

    def _spelled(
        self, tokens: Tokens, protection: Protection, plan: Plan, release: Release, shown: Ids, notes: Notes | None
    ) -> list[Released]:
        return spell(
            tokens,
            protection,
            plan,
            shown,
            steps=release.steps,
            casing=self.words.casing,
            table=self.table,
            pieces=self.pieces,
            notes=notes,
            consistent=self.words.consistent,
            drawn_groups=self._drawn_groups,
        )

    def _state(
        self,
        start: float,
        tokens: Tokens,
        protection: Protection,
        plan: Plan,
        release: Release,
        shown: Ids,
        known: Snapshot | None,
    ) -> tuple[Rehearsal, SessionDelta]:
        """What was drawn as texts with their statements, and what a session is to remember of them."""
        notes = None if known is None else Notes(known)
        drawn = release.rows
        if self.words.consistent:  # and then nothing is re-ranked
            drawn = shown = self._alike(tokens, protection, plan, drawn, notes)
        releases = self._spelled(tokens, protection, plan, release, shown, notes)
        results = []
        for b, (text, released) in enumerate(zip(tokens.texts, releases, strict=True)):
            span = slice(int(tokens.documents[b]), int(tokens.documents[b + 1]))
            private = Private(text=text, words=tuple(tokens.words[span]))
            results.append((released, self._guarantee(released, span, protection, plan, release), private))
        # finer digits would tell of the words
        seconds = float(f"{(time.perf_counter() - start) / max(1, len(tokens.texts)):.2g}")
        rehearsal = Rehearsal(
            results=tuple(
                Result(released=released, guarantee=guarantee, private=private, seconds=seconds)
                for released, guarantee, private in results
            ),
            words=tuple(tokens.words),
            protection=protection,
            plan=plan,
            drawn=drawn[plan.block.layout.positions],
            shown=shown[plan.block.layout.positions],
            parameter=release.parameter,
            named=drawn[np.flatnonzero(protection.named)],
        )
        return rehearsal, SessionDelta(since=0) if notes is None else notes.delta()

    # ---- words to table rows, roles and budgets ------------------------------------------------------

    def _protect(self, tokens: Tokens, queries: Sequence[str] | None) -> tuple[Tokens, Protection, Values | None]:
        """The words as they are released, their groups and their budgets."""
        public = listed(tokens.words, self.words)
        if self.grouping is None:
            if queries is not None:
                raise InputError("queries need protect.importance=cosine; set it, or leave them out")
            protection = ungrouped(public)
            return tokens, protection, self._epsilon(protection)
        protection = self.grouping.decide(tokens, public, queries)
        if self._drawn_groups:
            assert self.grouping.options.label_epsilon is not None, "options are checked"
            protection = randomised(
                protection, self.grouping.options.label_epsilon, tokens.documents, rng=self.randomness
            )
        return join(tokens, protection, self._epsilon(protection), public)

    def _epsilon(self, protection: Protection) -> Values | None:
        if self.budget is None:
            return None
        epsilon = in_range(np.asarray(self.budget.assign(protection), np.float64), "epsilon")
        if epsilon.shape != protection.public.shape:
            raise BudgetError(
                f"a budget must give one epsilon per word: {len(protection.public)}, got shape {epsilon.shape}"
            )
        return epsilon

    @property
    def _drawn_groups(self) -> bool:
        return self.grouping is not None and self.grouping.randomised

    def _plan(
        self,
        tokens: Tokens,
        protection: Protection,
        epsilon: Values | None,
        memo: dict[object, object] | None,
        *,
        whole: bool,
    ) -> Plan:
        apart = protection.hidden | protection.named
        idle = protection.hidden  # words whose row nobody looks at
        if epsilon is not None:
            idle = idle | (~protection.named & ((epsilon == 0) | np.isinf(epsilon)))
        rows, counts, known = self._rows(tokens.words, np.zeros_like(idle) if whole or not self.claim.alone else idle)
        unknown = ~known & ~protection.public & ~apart
        rules = oov.rules(tokens.words, unknown, self.words)
        left = unknown & (rules == WordRule.HOUSE)
        if self.words.oov == "error" and left.any():
            raise VocabularyError(
                f"{int(left.sum())} of {len(tokens.words)} words are outside the table {self.table.name}; "
                "words.oov=surrogate, placeholder or keep says what to do with them"
            )
        roles = np.where(protection.public, Role.PASS, Role.PROTECT).astype(np.int8)
        if self.words.oov in ("keep", "placeholder"):
            roles[left] = Role.PASS if self.words.oov == "keep" else Role.HOLE
        roles[rules != WordRule.HOUSE] = Role.HOLE  # for the mechanism there is no word
        roles[apart] = Role.HOLE
        if epsilon is not None:
            protected = roles == Role.PROTECT
            roles[protected & (epsilon == 0)] = Role.HOLE
            roles[protected & np.isinf(epsilon)] = Role.PASS
        unit_of = np.repeat(np.arange(len(roles)), counts)
        layout = Layout(
            roles=roles[unit_of],
            documents=np.concatenate(([0], np.cumsum(counts)))[tokens.documents],
            unit_of=unit_of,
            verbatim=tuple(self._passing(tokens.words, roles)[unit_of]),
            spaced=_apart(tokens, roles)[unit_of],
        )
        return Plan(
            block=Block(layout=layout, rows=rows, memo=memo),
            roles=roles,
            counts=counts,
            unknown=unknown,
            rules=rules,
            classes=self._classes(tokens, protection, roles, epsilon),
            epsilon=epsilon,
        )

    def _classes(
        self,
        tokens: Tokens,
        protection: Protection,
        roles: NDArray[np.int8],
        epsilon: Values | None,
    ) -> Ids:
        """Where equal words of a group are released alike: the number of the first of them in their text, else -1."""
        found = np.full(len(roles), -1, np.int64)
        if not self.words.consistent:
            return found
        seen: dict[tuple[int, str, str], int] = {}
        owner = np.repeat(np.arange(len(tokens.texts)), tokens.sizes).tolist()
        for i in np.flatnonzero((roles == Role.PROTECT) | protection.named).tolist():
            found[i] = seen.setdefault((owner[i], fold(tokens.words[i]), _drawn_as(i, protection, epsilon)), i)
        return found

    def _passing(self, words: Sequence[str], roles: NDArray[np.int8]) -> NDArray[np.object_]:
        """The words that pass as they are released, "" for others, [N]."""
        lowered = self.words.casing == "lower"
        passing = zip(words, (roles == Role.PASS).tolist(), strict=True)
        shown = [(word.lower() if lowered else word) if passes else "" for word, passes in passing]
        return np.array([*shown, ""], object)[:-1]  # one more, so that no words are an array of strings too

    def _rows(self, words: Sequence[str], idle: Flags) -> tuple[Ids, Ids, Flags]:
        """The table rows of all units in order, how many each word has, and whether a word is in the table.

        A word outside the table that is idle wherever it stands is spared its surrogate; its row is 0.
        """
        distinct = list(dict.fromkeys(words))
        number = {word: i for i, word in enumerate(distinct)}
        which = np.fromiter(map(number.__getitem__, words), np.int64, len(words))
        if self.pieces is None:
            rows = self.table.find(distinct)
            known = rows >= 0
            asked = ~known & (np.bincount(which, ~idle, minlength=len(distinct)) > 0)
            rows[asked], _ = self.table.lookup([distinct[i] for i in np.flatnonzero(asked).tolist()])
            return np.maximum(rows, 0)[which], np.ones(len(words), np.int64), known[which]
        cut, known = self.pieces.cut(distinct)
        rows = np.concatenate([cut[i] for i in which]) if len(which) else np.empty(0, np.int64)
        return rows, np.fromiter(map(len, cut), np.int64, len(cut))[which], known[which]

    # ---- the one random step -------------------------------------------------------------------------

    def _draw(self, protection: Protection, plan: Plan) -> Release:
        layout, mechanism, table = plan.block.layout, self.mechanism, self.table
        parameter = mechanism.parameters(table, layout)
        asked = np.full(len(layout.positions), np.inf)
        if parameter is None and plan.epsilon is not None:
            asked = (plan.epsilon / plan.counts)[layout.words]
            parameter = mechanism.calibrate(table, layout, asked)
        if parameter is None:
            raise BudgetError("the mechanism has neither a budget nor a parameter")
        # Names first: the mechanism may open as many streams as the longest text of the batch has words.
        names, lost = self._named(protection, plan)
        rows = mechanism.privatize(table, plan.block, parameter, rng=self.randomness)
        drawn, spent = _checked(rows, mechanism.spend(table, layout, parameter), len(asked), len(table))
        within = np.full(len(asked), np.inf)
        if self.claim.restricted is not None:
            within = _bounds(cast(Restricting, mechanism).within(table, layout, parameter), len(asked))
        spent = np.where(spent <= asked * (1 + ROUNDING), np.minimum(spent, asked), spent)
        whole = np.full(len(layout.roles), PLACEHOLDER, np.int64)
        whole[layout.positions] = drawn
        steps = np.zeros(len(plan.roles), np.int64)
        if oov.draws(self.words):
            rule = plan.rules[layout.unit_of]
            apart = oov.draw(rule, layout.documents, len(table), rng=self.randomness)
            whole[rule == WordRule.UNIFORM] = apart[rule == WordRule.UNIFORM]
            steps[layout.unit_of[rule == WordRule.ADD]] = apart[rule == WordRule.ADD]
        total = _per_word(plan, spent)
        named = np.flatnonzero(protection.named)
        whole[named], total[named] = names[named], lost[named]
        return Release(
            rows=whole,
            steps=steps,
            spent=total,
            parameter=parameter,
            within=_per_word(plan, within),
        )

    def _named(self, protection: Protection, plan: Plan) -> tuple[Ids, Values]:
        """A row for every word that is replaced by a name, and its local DP; -1 and 0 for all others."""
        if self.names is None:
            return np.full(len(plan.roles), PLACEHOLDER, np.int64), np.zeros(len(plan.roles))
        return self.names.draw(protection, plan.block.rows, plan.block.layout.documents, rng=self.randomness)

    def _alike(self, tokens: Tokens, protection: Protection, plan: Plan, rows: Ids, notes: Notes | None) -> Ids:
        """The rows with those of equal words made equal: to the first in the text, or in the session."""
        places = np.flatnonzero(plan.classes >= 0)
        alike = rows.copy()
        alike[places] = rows[plan.classes[places]]
        if notes is not None:
            keys = [(tokens.words[i], _drawn_as(i, protection, plan.epsilon)) for i in places.tolist()]
            alike[places] = notes.consistent(self._law, keys, alike[places].tolist())
        return alike

    @property
    def _law(self) -> str:
        """What a drawn row depends on besides the word, its group and its budget."""
        claim, table = self.claim, self.table
        drawn = "seeded" if self.randomness.seeded else "drawn"
        return f"{drawn} {claim.mechanism} {sorted(claim.options.items())} {claim.table} {table.metric} {table.digest}"

    def _rerank(self, releases: Sequence[Released], protection: Protection, rows: Ids) -> Ids:
        """The rows to show in the place of those that were drawn: from the releases alone, so that it costs nothing."""
        shown = rows.copy()
        drawn = rows != PLACEHOLDER
        shown[drawn] = rerank(self.rerank, self.table, releases, rows[drawn])
        shown[protection.named] = rows[protection.named]  # or they would be names no more
        return shown

    # ---- the statement -------------------------------------------------------------------------------

    def _guarantee(
        self, released: Released, span: slice, protection: Protection, plan: Plan, release: Release
    ) -> Guarantee:
        terms = Terms(
            claim=self.claim,
            words=self.words,
            budget=self.budget,
            grouping=self.grouping,
            names=self.names,
            seeded=self.randomness.seeded,
        )
        return terms.state(released, span, protection, plan, release)

    # ---- pickling: named tables are loaded again, not carried ----------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        table = self.table
        if (
            table.name in registry.names("table")
            and load_table(table.name, metric=table.metric, device=str(table.device)) is table
        ):
            state["table"] = (table.name, table.metric, str(table.device))
            state["pieces"] = None
            state["names"] = self.names and self.names.options
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["table"], tuple):
            name, metric, device = state["table"]
            state["table"] = table = load_table(name, metric=metric, device=device)
            if state["words"].unit == "wordpiece":
                state["pieces"] = WordPieces.load(state["words"].tokenizer, table)
            if state["names"] is not None:
                state["names"] = Names.of(state["names"], state["grouping"].named, table.root)
        self.__dict__.update(state)

    def __repr__(self) -> str:
        """Name and table, no words."""
        return f"Privatizer({self.claim.mechanism!r}, table={self.table.name!r})"


def _drawn_as(word: int, protection: Protection, epsilon: Values | None) -> str:
    """The group of a word with its budget: equal words with the same are one draw."""
    kind = protection.kind(word)
    return kind if epsilon is None or protection.named[word] else f"{kind} {epsilon[word]!r}"


def _options(section: Any, given: Any) -> Any:
    """The options of a section: as they are, from a mapping, or the default ones."""
    return section(**given) if isinstance(given, Mapping) else given or section()


def _grouped(groups: GroupOptions, epsilon: float | None, budget: Budget | None) -> Grouped:
    if budget is not None:
        raise BudgetError("give groups or a budget, not both")
    return Grouped.of(groups, epsilon)


PAPER = "paper-"
"""Profiles with this prefix hold a paper's own parameters."""


def _is_glove(table: EmbeddingTable) -> bool:
    return "glove" in table.name.lower()


def _kept(privatizer: Privatizer) -> tuple[int, int]:
    """How many words of the packaged letter come out unchanged under the mechanism's own parameter, and of how many.

    The letter is public; it is drawn from a fixed seed, and with the default words, whatever the user's are.
    """
    words = tokenize([(files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8")]).words
    public = listed(words, WordsOptions())
    table, mechanism = privatizer.table, privatizer.mechanism
    rows, _ = table.lookup([word for word, passes in zip(words, public, strict=True) if not passes])
    block = Block(layout=Layout.of(len(rows)), rows=rows)
    parameter = mechanism.parameters(table, block.layout)
    if parameter is None:
        if not isinstance(privatizer.budget, Grouped):
            raise BudgetError("a profile without epsilon must set the mechanism's own parameter, or budgets of groups")
        mean = float(np.mean([each for each in privatizer.budget.budgets if math.isfinite(each)]))
        parameter = mechanism.calibrate(table, block.layout, np.full(len(rows), mean))
    released = mechanism.privatize(table, block, parameter, rng=SeededRandomness(0))
    return int((released == rows).sum()), len(rows)


def _checked(rows: object, spent: object, n: int, words: int) -> tuple[Ids, Values]:
    """What a mechanism returned, if it is one row and one bound per protected position."""
    if not (isinstance(rows, np.ndarray) and rows.shape == (n,) and rows.dtype.kind == "i"):
        raise MechanismError(
            f"a mechanism must release an array of {n} rows, one per protected word; nothing was released"
        )
    if ((rows < PLACEHOLDER) | (rows >= words)).any():
        raise MechanismError("a mechanism must release rows of the table; nothing was released")
    return rows.astype(np.int64), _bounds(spent, n)


def _bounds(spent: object, n: int) -> Values:
    """What a mechanism returned, if it is one bound per protected position."""
    if not (isinstance(spent, np.ndarray) and spent.shape == (n,) and spent.dtype.kind == "f" and (spent >= 0).all()):
        raise MechanismError("a mechanism must bound what each protected word spends; nothing was released")
    return spent.astype(np.float64)


def _apart(tokens: Tokens, roles: NDArray[np.int8]) -> Flags:
    """Whether whitespace stands before a word in the release: between two replaced words it always does."""
    spaced = tokens.spaced
    spaced[1:] |= (roles[1:] != Role.PASS) & (roles[:-1] != Role.PASS)
    return spaced


def _per_word(plan: Plan, spent: Values) -> Values:
    """Bounds of positions [n], summed to words [N]; infinite for words that pass."""
    total = np.bincount(plan.block.layout.words, spent, minlength=len(plan.roles)).astype(np.float64)
    total[(plan.roles == Role.PASS) | (plan.rules != WordRule.HOUSE)] = np.inf
    return total


def _build(name: str, options: dict[str, Any]) -> Mechanism:
    """The mechanism of a name; refuses options that it does not have."""
    target = registry.load("mechanism", name)
    known = registry.signature(target)
    for option in options:
        if option not in known.known and not known.open:
            raise UnknownName(f"option of {name}", option, known.known)
    made: Mechanism = target(**options)
    return made


def _budget(
    mechanism: Mechanism, claim: Claim, table: EmbeddingTable, epsilon: float | None, budget: Budget | None
) -> Budget | None:
    """The one rule that decides what a word spends; None where the mechanism's own parameter does."""
    if epsilon is not None and budget is not None:
        raise BudgetError("give epsilon or a budget, not both")
    chosen = budget if epsilon is None else Uniform(epsilon)
    if budget is not None and not callable(getattr(budget, "assign", None)):
        raise BudgetError("a budget must have the method assign; for one number give epsilon")
    parameter = mechanism.parameters(table, Layout.of(1))
    if parameter is None and chosen is None:
        raise BudgetError(f"{claim.mechanism} needs a budget: give epsilon, or its own parameter {claim.parameter}")
    if parameter is not None and claim.parameter is not None:
        if chosen is not None:
            raise BudgetError(
                f"give epsilon or {claim.parameter}, not both: {claim.parameter} sets every word's epsilon"
            )
        in_range(parameter, claim.parameter)
    if isinstance(chosen, Uniform | Grouped):  # refuses now what it would refuse later
        given = [chosen.epsilon] if isinstance(chosen, Uniform) else chosen.budgets
        for each in sorted({each for each in given if 0 < each < math.inf}):
            mechanism.calibrate(table, Layout.of(1), np.array([each]))
    if chosen is not None and claim.kind == "none":
        warnings.warn(
            f"{claim.mechanism}: epsilon bounds nothing here, because {claim.reason}",
            TextveilWarning,
            stacklevel=3,
        )
    needs_none = parameter is not None and claim.parameter is None
    return budget if needs_none else chosen  # an epsilon neither weakens a placeholder nor makes one of a stencil
