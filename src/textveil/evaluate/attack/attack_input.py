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
from textveil.mechanism import PLACEHOLDER, Layout, Mechanism, NameSampler, Role, has_bypass_rule
from textveil.pipeline import EvaluationRun, Privatizer
from textveil.protect import PUBLIC, Budget, Grouping, find_public_words, group_numbers
from textveil.randomness import Ids, SystemRandomness, Values
from textveil.session import Session
from textveil.table import EmbeddingTable
from textveil.text import Kind, Released, tokenize

_Number = TypeVar("_Number", bound=np.generic)

RERANK_NOTE = (
    "from the words before they were re-ranked, which reveal at least as much as the released words"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedItems:
    """Items that are names drawn from public lists, m of them. Public.

    Attributes:
        names: the lists, and how one is drawn from each.
        items: int64 [m], their numbers, counted over all texts.
        labels: the list that each was drawn from. Equal words are drawn once, from the list of the
            first of them.
        output_rows: int64 [m], rows of the whole table of words.
    """

    names: NameSampler = field(repr=False)
    items: Ids
    labels: tuple[str, ...]
    output_rows: Ids = field(repr=False)


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
        output_rows: int64 [n], the row that the mechanism drew for every protected position, -1 for
            a placeholder. Whoever knows the mechanism is given it also where words were re-ranked,
            though it is then not seen: it tells at least as much as what is, so that no attacker on
            the release alone does better.
        visible_word_rows: int64 [n], the row in `origin` of the word that is shown, -1 for a
            placeholder: that of `output_rows` but where words were re-ranked.
        parameter: float64 [n], the mechanism's parameter there.
        pass_rows: int64 [T], the row of a word that passed, in `table`, -1 where none did.
        groups: names of the budget groups.
        group: int64 [n], the number of each protected position's group.
        budget: the rule that gave every word its epsilon; None where the mechanism's own parameter
            did.
        row_group: int64 [V], the number of the group that each word of `origin` has, -1 for one
            that no text has there; None where the group of a word does not follow from the word
            alone. Public, as the lists and the task are.
        name_items: names that were drawn from lists; they are no positions. None where no name is
            drawn.
        source_table: where the table is a list of names: the table of all words, and the rows that
            the names have there.
        other_releases: further releases of the same texts, each drawn anew; they differ from this
            one in what was drawn alone.
        program: what made the releases, with options and budgets, and separate draws: whoever has
            it can release other texts in the same way. None where it is not known.
    """

    released: tuple[Released, ...]
    mechanism: Mechanism = field(repr=False)
    table: EmbeddingTable
    words: WordsOptions
    layout: Layout = field(repr=False)
    output_rows: Ids = field(repr=False)
    visible_word_rows: Ids = field(repr=False)
    parameter: Values = field(repr=False)
    pass_rows: Ids = field(repr=False)
    groups: tuple[str, ...]
    group: Ids = field(repr=False)
    budget: Budget | None = None
    row_group: Ids | None = field(default=None, repr=False)
    name_items: NamedItems | None = None
    source_table: tuple[EmbeddingTable, Ids] | None = field(default=None, repr=False)
    other_releases: tuple["View", ...] = field(default=(), repr=False)
    program: Privatizer | None = field(default=None, repr=False)
    memo: dict[object, object] = field(default_factory=dict, init=False, repr=False)
    """Results that several attacks share; they live as long as the view."""

    @property
    def vocabulary(self) -> EmbeddingTable:
        """The table of all words, of which a list may be part.

        Without a list of names it is `origin`.
        """
        return self.origin if self.source_table is None else self.source_table[0]

    def restrict(self, values: NDArray[_Number]) -> NDArray[_Number]:
        """Restricts values of all words to the rows of `origin`.

        From [..., V'] to [..., V].
        """
        return values if self.source_table is None else values[..., self.source_table[1]]

    @property
    def replay_refusal(self) -> str:
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

    def note_reranking(self, note: str) -> str:
        """Returns the note, and says so where words were re-ranked.

        It is the note of an attacker who uses `output_rows`.
        """
        if np.array_equal(self.output_rows, self.visible_rows):
            return note
        return "; ".join(filter(None, (note, RERANK_NOTE)))

    @property
    def origin(self) -> EmbeddingTable:
        """The table of words in which private words are guessed.

        It is `table` itself, unless its rows are codes.
        """
        return self.table.origin

    @cached_property
    def visible_rows(self) -> Ids:
        """The row in `table` of the shown word: int64 [n].

        It is `output_rows` unless words were re-ranked.

        Of a code that is spelled by any of its words it is the code, so `output_rows`.
        """
        return self.table.map_rows(self.visible_word_rows, group_numbers(self.groups)[self.group])

    @cached_property
    def release_rows(self) -> Ids:
        """The rows of all releases at each protected position: int64 [n, r].

        Those of `output_rows` come first.
        """
        return np.stack([release.output_rows for release in (self, *self.other_releases)], axis=1)

    @cached_property
    def text(self) -> Ids:
        """The number of the text of each protected position: int64 [n]."""
        layout = self.layout
        numbers: Ids = np.searchsorted(layout.documents, layout.positions, side="right") - 1
        return numbers

    @cached_property
    def item(self) -> Ids:
        """The number of the item of each protected position: int64 [n].

        Items are counted over all texts.
        """
        return self.layout.words

    @property
    def name_count(self) -> int:
        """The number of names drawn from lists.

        They are no positions.
        """
        return 0 if self.name_items is None else len(self.name_items.items)

    @cached_property
    def text_of_name(self) -> Ids:
        """The number of the text that each of these names is in."""
        items = np.empty(0, np.int64) if self.name_items is None else self.name_items.items
        numbers: Ids = np.searchsorted(self.documents, items, side="right") - 1
        return numbers

    @cached_property
    def verbatim_count(self) -> int:
        """The number of private words that passed unchanged; they are no positions.

        Their budget was infinite, or they were unknown under `words.oov=keep`.
        """
        items = (item for released in self.released for item in released.items)
        return sum(item.kind is Kind.VERBATIM and item.group != PUBLIC for item in items)

    @cached_property
    def placeholder_count(self) -> int:
        """The number of private words that became placeholders without being positions.

        By their budget, or as unknown words.
        """
        items = (item for released in self.released for item in released.items)
        return sum(item.kind is Kind.PLACEHOLDER for item in items) - len(
            np.unique(self.item[self.output_rows == PLACEHOLDER])
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
        table_rows: int64 [n], the same in the table that the mechanism runs over (`View.table`).
        name_rows: int64 [m], for every name that was drawn the row, on its list, of the name that
            stands for the private one.
    """

    texts: tuple[str, ...] = field(repr=False)
    words: tuple[str, ...] = field(repr=False)
    rows: Ids = field(repr=False)
    table_rows: Ids = field(repr=False)
    name_rows: Ids = field(default_factory=lambda: np.empty(0, np.int64), repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """Releases, and the originals that an attack on them is judged by."""

    view: View
    truth: Truth = field(repr=False)

    @classmethod
    def create(
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
        check_privatizer(privatizer, names=names)
        if releases < 1:
            raise ConfigError(f"releases must be 1 or more, got {releases}")
        memo: dict[object, object] | None = {} if releases > 1 else None
        first, *other_cases = (
            cls.build(privatizer, privatizer.rehearse(texts, session, memo=memo), names=names)
            for _ in range(releases)
        )
        if not other_cases:
            return first
        view = replace(first.view, other_releases=tuple(case.view for case in other_cases))
        return cls(view=view, truth=first.truth)

    @classmethod
    def build(
        cls, privatizer: Privatizer, rehearsal: EvaluationRun, *, names: bool = False
    ) -> "Case":
        """Builds both sides from an existing release.

        Args:
            privatizer: made the release.
            rehearsal: the release.
            names: without effect, see `create`.

        Raises:
            ConfigError: a paper's own rule takes words out of the mechanism's hands.
        """
        check_privatizer(privatizer, names=names)
        block = rehearsal.plan.block
        layout = block.layout
        view = View(
            released=tuple(result.released for result in rehearsal.results),
            mechanism=privatizer.mechanism,
            table=privatizer.table,
            words=privatizer.words,
            layout=layout,
            output_rows=rehearsal.drawn_rows,
            visible_word_rows=rehearsal.shown_rows,
            parameter=rehearsal.parameter,
            pass_rows=np.where(layout.roles == Role.PASS, block.rows, -1),
            groups=rehearsal.protection.labels,
            group=rehearsal.protection.group[layout.words].astype(np.int64),
            budget=privatizer.budget,
            row_group=_assign_row_groups(privatizer, rehearsal.protection.labels),
            name_items=_collect_names(privatizer, rehearsal),
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
            table_rows=block.secret,
            name_rows=_find_stand_ins(view.name_items, originals),
        )
        return cls(view=view, truth=truth)

    @cached_property
    def list_cases(self) -> tuple["Case", ...]:
        """The names drawn from each list, as separate cases.

        The list is the table, and its law is known. The truth is the name on the list that stands
        for the private one.

        What stands for a private name on the list is the truth there.
        """
        named = self.view.name_items
        labels = () if named is None else tuple(dict.fromkeys(named.labels))
        return tuple(self._build_list_case(label) for label in labels)

    def _build_list_case(self, label: str) -> "Case":
        assert self.view.name_items is not None, "or there would be no label"
        members = np.flatnonzero(
            [item_label == label for item_label in self.view.name_items.labels]
        )
        first, *other_views = (
            _restrict_to_list(view, label, members)
            for view in (self.view, *self.view.other_releases)
        )
        rows = self.truth.name_rows[members]
        truth = replace(self.truth, rows=rows, table_rows=rows, name_rows=rows[:0])
        return Case(view=replace(first, other_releases=tuple(other_views)), truth=truth)

    @cached_property
    def secret_words(self) -> tuple[str, ...]:
        """The word of each protected position, n of them."""
        return tuple(self.truth.words[i] for i in self.view.item.tolist())

    @cached_property
    def lengths(self) -> Ids:
        """The number of words of each text: int64 [B]."""
        return np.diff(self.view.documents)


def _collect_names(privatizer: Privatizer, rehearsal: EvaluationRun) -> NamedItems | None:
    """Returns the names that were drawn from lists; see `View.name_items`.

    A name drawn earlier in a session may be from another list of its type: the shortest that has
    it.
    """
    names, protection = privatizer.names, rehearsal.protection
    if names is None:
        return None
    items, classes, item_labels = np.flatnonzero(protection.named), rehearsal.plan.classes, []
    for item, row in zip(items.tolist(), rehearsal.name_rows.tolist(), strict=True):
        first = item if classes[item] < 0 else int(classes[item])
        group_label = protection.labels[protection.group[first]]
        candidates = [
            label for label in names.lists if label.partition(" ")[0] == protection.get_group(item)
        ]
        candidates.sort(key=lambda label: len(names.lists[label].rows))
        matches = [label for label in (group_label, *candidates) if row in names.lists[label].rows]
        if not matches:
            raise InputError(
                "the session drew its names from other lists than these options name; start a new "
                "session"
            )
        item_labels.append(matches[0])
    return NamedItems(
        names=names, items=items, labels=tuple(item_labels), output_rows=rehearsal.name_rows
    )


def _restrict_to_list(view: View, label: str, members: Ids) -> View:
    """Returns the view restricted to the names of one list.

    `members` selects them among all names.
    """
    named = view.name_items
    assert named is not None, "or there would be no label"
    listing, items = named.names.lists[label], named.items[members]
    roles = np.where(view.layout.roles == Role.PASS, Role.PASS, Role.HOLE).astype(np.int8)
    roles[items] = Role.PROTECT  # names are whole words, so that items are positions
    layout = replace(view.layout, roles=roles, memo={})
    output_rows = np.searchsorted(listing.rows, named.output_rows[members])
    return replace(
        view,
        mechanism=named.names.mechanism,
        table=listing.table,
        layout=layout,
        output_rows=output_rows,
        visible_word_rows=output_rows,
        parameter=named.names.compute_parameter(label, layout),
        pass_rows=np.full(len(roles), -1),
        groups=(label,),
        group=np.zeros(len(members), np.int64),
        budget=None,
        row_group=None,
        name_items=None,
        source_table=(view.origin, listing.rows),
        other_releases=(),
        program=None,
    )


def _find_stand_ins(named: NamedItems | None, rows: Ids) -> Ids:
    """Returns the rows of the stand-ins of names; see `Truth.name_count`.

    `rows` has all words, for names are drawn in whole words only.
    """
    result = np.empty(0 if named is None else len(named.items), np.int64)
    for label in dict.fromkeys(named.labels if named is not None else ()):
        assert named is not None
        members = np.array([item_label == label for item_label in named.labels])
        result[members] = named.names.find_nearest(label, rows[named.items[members]])
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
        or not grouping.is_context_free
        or privatizer.table.holds_pieces
        or _has_text_queries(privatizer)
    ):
        return None
    group_labels, groups = _group_rows(grouping.options, privatizer.table.origin, privatizer.words)
    number = {label: i for i, label in enumerate(labels)}
    return np.array([number.get(label, -1) for label in group_labels], np.int64)[groups]


@lru_cache(maxsize=8)
def _group_rows(
    options: ProtectOptions, table: EmbeddingTable, words: WordsOptions
) -> tuple[tuple[str, ...], Ids]:
    """Returns the group labels, and the group number of each row.

    A row of several words is grouped by its first.
    """
    grouping = Grouping.build(options, NameOptions())
    assert grouping is not None, "the options make groups"
    tokens = tokenize(table.words)
    assignment = grouping.assign(
        grouping.detect(tokens, None), find_public_words(tokens.words, words)
    )
    return assignment.labels, assignment.group[tokens.documents[:-1]].astype(np.int64)


def check_privatizer(privatizer: Privatizer, *, names: bool = False) -> None:
    """Refuses releases with words that no attack can judge.

    Every word must be drawn by the mechanism, pass, or become a placeholder.

    Args:
        privatizer: will make them.
        names: without effect, see `Case.create`.

    Raises:
        ConfigError: says which options to change.
    """
    grouping = privatizer.grouping
    if grouping is not None and grouping.moved:
        raise ConfigError("attacks and measures do not cover moved figures: set figures.types=none")
    check_options(privatizer.words, randomised=grouping is not None and grouping.is_randomised)


def check_options(words: WordsOptions, *, randomised: bool) -> None:
    """Refuses options under which no attack can be judged.

    Args:
        words: how text becomes words.
        randomised: whether the groups of words are drawn at random.

    Raises:
        ConfigError: says which options to change.
    """
    if randomised:
        raise ConfigError(
            "attacks and measures need groups that are not drawn at random: set "
            "protect.labels=detected"
        )
    if has_bypass_rule(words):
        raise ConfigError(
            "attacks and measures need every word drawn by the mechanism, passed or made a "
            "placeholder: set words.oov to surrogate, placeholder, error or keep, and "
            "words.numbers to table"
        )
