"""Input of an attack: the attacker's view, and the truth.

In: a privatizer and texts. Out: `View` (public), `Truth` (secret), and both as a `Case`.
Not here: the guesses (the modules beside this one), and how rates are summed up (`report`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from textveil.config import NameOptions, ProtectOptions, WordsOptions
from textveil.errors import ConfigError, InputError
from textveil.mechanism import PLACEHOLDER, Layout, Mechanism, Names, Role, apart
from textveil.pipeline import Privatizer, Rehearsal
from textveil.protect import PUBLIC, Budget, Grouping, group_numbers, listed
from textveil.randomness import Ids, SystemRandomness, Values
from textveil.session import Session
from textveil.table import EmbeddingTable
from textveil.text import Kind, Released, tokenize

_Number = TypeVar("_Number", bound=np.generic)

BEFORE = "from the words before they were re-ranked, which tell at least as much as those that are released"


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedItems:
    """Items that are names drawn from public lists, m of them. Public.

    Attributes:
        names: the lists, and how one is drawn from each.
        items: int64 [m], their numbers, counted over all texts.
        labels: the list that each was drawn from. Equal words are drawn once, from the list of the
            first of them.
        drawn: int64 [m], rows of the whole table of words.
    """

    names: Names = field(repr=False)
    items: Ids
    labels: tuple[str, ...]
    drawn: Ids = field(repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """The attacker's view of B releases. Public.

    It has the texts, and the program with its options.

    All of it is public.

    T positions, n of them protected. In the unit word a position is a word, in the unit wordpiece a
    piece.

    Attributes:
        released: the B releases.
        mechanism: with all its options.
        table: that the mechanism runs over; public, like everything here. Its rows may be codes.
        words: how text became words.
        layout: roles and texts of the T positions.
        drawn: int64 [n], the row that the mechanism drew for every protected position, -1 for a
            placeholder. Whoever knows the mechanism is given it also where words were re-ranked,
            though it is then not seen: it tells at least as much as what is, so that no attacker on
            the release alone does better.
        shown_words: int64 [n], the row in `origin` of the word that is shown, -1 for a placeholder:
            that of `drawn` but where words were re-ranked.
        parameter: float64 [n], the mechanism's parameter there.
        passed: int64 [T], the row of a word that passed, in `table`, -1 where none did.
        groups: names of the budget groups.
        group: int64 [n], the number of each protected position's group.
        budget: the rule that gave every word its epsilon; None where the mechanism's own parameter
            did.
        row_group: int64 [V], the number of the group that each word of `origin` has, -1 for one
            that no text has there; None where the group of a word does not follow from the word
            alone. Public, as the lists and the task are.
        named: names that were drawn from lists; they are no positions. None where no name is drawn.
        out_of: where the table is a list of names: the table of all words, and the rows that the
            names have there.
        others: further releases of the same texts, each drawn anew; they differ from this one in
            what was drawn alone.
        program: what made the releases, with options and budgets, and separate draws: whoever has
            it can release other texts in the same way. None where it is not known.
    """

    released: tuple[Released, ...]
    mechanism: Mechanism = field(repr=False)
    table: EmbeddingTable
    words: WordsOptions
    layout: Layout = field(repr=False)
    drawn: Ids = field(repr=False)
    shown_words: Ids = field(repr=False)
    parameter: Values = field(repr=False)
    passed: Ids = field(repr=False)
    groups: tuple[str, ...]
    group: Ids = field(repr=False)
    budget: Budget | None = None
    row_group: Ids | None = field(default=None, repr=False)
    named: NamedItems | None = None
    out_of: tuple[EmbeddingTable, Ids] | None = field(default=None, repr=False)
    others: tuple["View", ...] = field(default=(), repr=False)
    program: Privatizer | None = field(default=None, repr=False)
    memo: dict[object, object] = field(default_factory=dict, init=False, repr=False)
    """Results that several attacks share; they live as long as the view."""

    @property
    def vocabulary(self) -> EmbeddingTable:
        """The table of all words, of which a list may be part.

        Without a list of names it is `origin`.
        """
        return self.origin if self.out_of is None else self.out_of[0]

    def kept(self, values: NDArray[_Number]) -> NDArray[_Number]:
        """Restricts values of all words to the rows of `origin`.

        From [..., V'] to [..., V].
        """
        return values if self.out_of is None else values[..., self.out_of[1]]

    @property
    def untold(self) -> str:
        """The reason why nobody can release other texts in the same way.

        In words that go on "not run: "; empty if one can.
        """
        if self.program is None:
            return "the program that made the releases is not known"
        return (
            "each text has a query of its own, which is not known"
            if _has_text_queries(self.program)
            else ""
        )

    def of_drawn(self, note: str) -> str:
        """Returns the note, and says so where words were re-ranked.

        It is the note of an attacker who uses `drawn`.
        """
        if np.array_equal(self.drawn, self.shown):
            return note
        return "; ".join(filter(None, (note, BEFORE)))

    @property
    def origin(self) -> EmbeddingTable:
        """The table of words in which private words are guessed.

        It is `table` itself, unless its rows are codes.
        """
        return self.table.origin

    @cached_property
    def shown(self) -> Ids:
        """The row in `table` of the shown word: int64 [n].

        It is `drawn` unless words were re-ranked.

        Of a code that is spelled by any of its words it is the code, so `drawn`.
        """
        return self.table.coded(self.shown_words, group_numbers(self.groups)[self.group])

    @cached_property
    def draws(self) -> Ids:
        """The rows of all releases at each protected position: int64 [n, r].

        Those of `drawn` come first.
        """
        return np.stack([each.drawn for each in (self, *self.others)], axis=1)

    @cached_property
    def text(self) -> Ids:
        """The number of the text of each protected position: int64 [n]."""
        layout = self.layout
        found: Ids = np.searchsorted(layout.documents, layout.positions, side="right") - 1
        return found

    @cached_property
    def item(self) -> Ids:
        """The number of the item of each protected position: int64 [n].

        Items are counted over all texts.
        """
        return self.layout.words

    @property
    def names(self) -> int:
        """The number of names drawn from lists.

        They are no positions.
        """
        return 0 if self.named is None else len(self.named.items)

    @cached_property
    def text_of_name(self) -> Ids:
        """The number of the text that each of these names is in."""
        items = np.empty(0, np.int64) if self.named is None else self.named.items
        found: Ids = np.searchsorted(self.documents, items, side="right") - 1
        return found

    @cached_property
    def unprotected(self) -> int:
        """The number of private words that passed unchanged; they are no positions.

        Their budget was infinite, or they were unknown under `words.oov=keep`.
        """
        items = (item for released in self.released for item in released.items)
        return sum(item.kind is Kind.VERBATIM and item.group != PUBLIC for item in items)

    @cached_property
    def hidden(self) -> int:
        """The number of private words that became placeholders without being positions.

        By their budget, or as unknown words.
        """
        items = (item for released in self.released for item in released.items)
        return sum(item.kind is Kind.PLACEHOLDER for item in items) - len(
            np.unique(self.item[self.drawn == PLACEHOLDER])
        )

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The N strings of all items of all texts."""
        return tuple(item.text for released in self.released for item in released.items)

    @cached_property
    def documents(self) -> Ids:
        """The first item of each text: int64 [B + 1].

        Text b has the items documents[b] up to documents[b + 1].
        """
        return np.cumsum([0, *(len(released.items) for released in self.released)], dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """The originals. Secret: guesses are made without it, and judged by it.

    Attributes:
        texts: the B texts.
        words: their N words, as written.
        rows: int64 [n], the row of every protected position, in the table of words (`View.origin`).
        coded: int64 [n], the same in the table that the mechanism runs over (`View.table`).
        names: int64 [m], for every name that was drawn the row, on its list, of the name that
            stands for the private one.
    """

    texts: tuple[str, ...] = field(repr=False)
    words: tuple[str, ...] = field(repr=False)
    rows: Ids = field(repr=False)
    coded: Ids = field(repr=False)
    names: Ids = field(default_factory=lambda: np.empty(0, np.int64), repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Releases, and the originals that an attack on them is judged by."""

    view: View
    truth: Truth = field(repr=False)

    @classmethod
    def of(
        cls,
        privatizer: Privatizer,
        texts: Sequence[str],
        *,
        releases: int = 1,
        session: Session | None = None,
        names: bool = False,
    ) -> "Case":
        """Privatizes texts, and keeps both sides.

        Args:
            privatizer: makes the releases.
            texts: any number of texts.
            releases: how often each text is released; the attacker sees all its releases.
            session: what the releases have in common; without one each is drawn anew.
            names: without effect: names that are drawn from lists are judged by the laws of their
                lists.

        Raises:
            InputError: a text is not a string of valid Unicode. VocabularyError: `words.oov` is
                `error`.
            ConfigError: a paper's own rule takes words out of the mechanism's hands, or `releases`
                is below 1.
        """
        judged(privatizer, names=names)
        if releases < 1:
            raise ConfigError(f"releases must be 1 or more, got {releases}")
        memo: dict[object, object] | None = {} if releases > 1 else None
        first, *others = (
            cls.after(privatizer, privatizer.rehearse(texts, session, memo=memo), names=names)
            for _ in range(releases)
        )
        if not others:
            return first
        view = replace(first.view, others=tuple(case.view for case in others))
        return cls(view=view, truth=first.truth)

    @classmethod
    def after(cls, privatizer: Privatizer, rehearsal: Rehearsal, *, names: bool = False) -> "Case":
        """Builds both sides from an existing release.

        Args:
            privatizer: made the release.
            rehearsal: the release.
            names: without effect, see `of`.

        Raises:
            ConfigError: a paper's own rule takes words out of the mechanism's hands.
        """
        judged(privatizer, names=names)
        block = rehearsal.plan.block
        layout = block.layout
        view = View(
            released=tuple(result.released for result in rehearsal.results),
            mechanism=privatizer.mechanism,
            table=privatizer.table,
            words=privatizer.words,
            layout=layout,
            drawn=rehearsal.drawn,
            shown_words=rehearsal.shown,
            parameter=rehearsal.parameter,
            passed=np.where(layout.roles == Role.PASS, block.rows, -1),
            groups=rehearsal.protection.labels,
            group=rehearsal.protection.group[layout.words].astype(np.int64),
            budget=privatizer.budget,
            row_group=_assign_row_groups(privatizer, rehearsal.protection.labels),
            named=_collect_names(privatizer, rehearsal),
            program=privatizer.with_parts(
                randomness=SystemRandomness()
            ),  # a seed is the owner's secret
        )
        texts = tuple(result.private.text for result in rehearsal.results)
        originals = rehearsal.plan.originals
        truth = Truth(
            texts=texts,
            words=rehearsal.words,
            rows=originals[layout.positions],
            coded=block.secret,
            names=_find_stand_ins(view.named, originals),
        )
        return cls(view=view, truth=truth)

    @cached_property
    def lists(self) -> tuple["Case", ...]:
        """The names drawn from each list, as separate cases.

        The list is the table, and its law is known. The truth is the name on the list that stands
        for the private one.

        What stands for a private name on the list is the truth there.
        """
        named = self.view.named
        labels = () if named is None else tuple(dict.fromkeys(named.labels))
        return tuple(self._build_list_case(label) for label in labels)

    def _build_list_case(self, label: str) -> "Case":
        assert self.view.named is not None, "or there would be no label"
        own = np.flatnonzero([each == label for each in self.view.named.labels])
        first, *others = (
            _restrict_to_list(view, label, own) for view in (self.view, *self.view.others)
        )
        rows = self.truth.names[own]
        truth = replace(self.truth, rows=rows, coded=rows, names=rows[:0])
        return Case(view=replace(first, others=tuple(others)), truth=truth)

    @cached_property
    def secret_words(self) -> tuple[str, ...]:
        """The word of each protected position, n of them."""
        return tuple(self.truth.words[i] for i in self.view.item.tolist())

    @cached_property
    def lengths(self) -> Ids:
        """The number of words of each text: int64 [B]."""
        return np.diff(self.view.documents)


def _collect_names(privatizer: Privatizer, rehearsal: Rehearsal) -> NamedItems | None:
    """Returns the names that were drawn from lists; see `View.named`.

    A name drawn earlier in a session may be from another list of its type: the shortest that has
    it.
    """
    names, protection = privatizer.names, rehearsal.protection
    if names is None:
        return None
    items, classes, found = np.flatnonzero(protection.named), rehearsal.plan.classes, []
    for item, row in zip(items.tolist(), rehearsal.named.tolist(), strict=True):
        first = item if classes[item] < 0 else int(classes[item])
        own = protection.labels[protection.group[first]]
        fit = [label for label in names.lists if label.partition(" ")[0] == protection.kind(item)]
        fit.sort(key=lambda label: len(names.lists[label].rows))
        known = [label for label in (own, *fit) if row in names.lists[label].rows]
        if not known:
            raise InputError(
                "the session drew its names from other lists than these options name; start a new session"
            )
        found.append(known[0])
    return NamedItems(names=names, items=items, labels=tuple(found), drawn=rehearsal.named)


def _restrict_to_list(view: View, label: str, own: Ids) -> View:
    """Returns the view restricted to the names of one list.

    `own` selects them among all names.
    """
    named = view.named
    assert named is not None, "or there would be no label"
    listing, items = named.names.lists[label], named.items[own]
    roles = np.where(view.layout.roles == Role.PASS, Role.PASS, Role.HOLE).astype(np.int8)
    roles[items] = Role.PROTECT  # names are whole words, so that items are positions
    layout = replace(view.layout, roles=roles, memo={})
    drawn = np.searchsorted(listing.rows, named.drawn[own])
    return replace(
        view,
        mechanism=named.names.mechanism,
        table=listing.table,
        layout=layout,
        drawn=drawn,
        shown_words=drawn,
        parameter=named.names.parameter(label, layout),
        passed=np.full(len(roles), -1),
        groups=(label,),
        group=np.zeros(len(own), np.int64),
        budget=None,
        row_group=None,
        named=None,
        out_of=(view.origin, listing.rows),
        others=(),
        program=None,
    )


def _find_stand_ins(named: NamedItems | None, rows: Ids) -> Ids:
    """Returns the rows of the stand-ins of names; see `Truth.names`.

    `rows` has all words, for names are drawn in whole words only.
    """
    result = np.empty(0 if named is None else len(named.items), np.int64)
    for label in dict.fromkeys(named.labels if named is not None else ()):
        assert named is not None
        own = np.array([each == label for each in named.labels])
        result[own] = named.names.nearest(label, rows[named.items[own]])
    return result


def _has_text_queries(privatizer: Privatizer) -> bool:
    """Says whether each text has a query that rates its own words."""
    grouping = privatizer.grouping
    return (
        grouping is not None
        and grouping.options.importance == "cosine"
        and grouping.options.task is None
    )


def _assign_row_groups(privatizer: Privatizer, labels: Sequence[str]) -> Ids | None:
    """Returns the group of each row of the table; see `View.row_group`.

    Every word of the table is grouped as a text by itself.
    """
    grouping = privatizer.grouping
    if (
        grouping is None
        or not grouping.context_free
        or privatizer.table.holds_pieces
        or _has_text_queries(privatizer)
    ):
        return None
    own, groups = _group_rows(grouping.options, privatizer.table.origin, privatizer.words)
    number = {label: i for i, label in enumerate(labels)}
    return np.array([number.get(label, -1) for label in own], np.int64)[groups]


@lru_cache(maxsize=8)
def _group_rows(
    options: ProtectOptions, table: EmbeddingTable, words: WordsOptions
) -> tuple[tuple[str, ...], Ids]:
    """Returns the group labels, and the group number of each row.

    A row of several words is grouped by its first.
    """
    grouping = Grouping.of(options, NameOptions())
    assert grouping is not None, "the options make groups"
    tokens = tokenize(table.words)
    found = grouping.assign(grouping.detect(tokens, None), listed(tokens.words, words))
    return found.labels, found.group[tokens.documents[:-1]].astype(np.int64)


def judged(privatizer: Privatizer, *, names: bool = False) -> None:
    """Refuses releases with words that no attack can judge.

    Every word must be drawn by the mechanism, pass, or become a placeholder.

    Args:
        privatizer: will make them.
        names: without effect, see `Case.of`.

    Raises:
        ConfigError: says which options to change.
    """
    grouping = privatizer.grouping
    if grouping is not None and grouping.moved:
        raise ConfigError(
            "attacks and measures do not judge figures that are moved: set figures.types=none"
        )
    check(privatizer.words, randomised=grouping is not None and grouping.randomised)


def check(words: WordsOptions, *, randomised: bool) -> None:
    """Refuses options under which no attack can be judged.

    Args:
        words: how text becomes words.
        randomised: whether the groups of words are drawn at random.

    Raises:
        ConfigError: says which options to change.
    """
    if randomised:
        raise ConfigError(
            "attacks and measures need groups that are not drawn at random: set protect.labels=detected"
        )
    if apart(words):
        raise ConfigError(
            "attacks and measures need every word drawn by the mechanism, passed or made a placeholder: "
            "set words.oov to surrogate, placeholder, error or keep, and words.numbers to table"
        )
