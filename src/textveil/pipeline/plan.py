"""Plan: the row, role and budget of each word before the draw.

In: the parts of a privatizer, words. Out: their `Protection`, and a `Plan`.
Not here: which words are protected (`protect`), and the draw (`draw`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from textveil.detect import Detections, Figure, PrivateValue, Span, read_figure
from textveil.errors import BudgetError, InputError, VocabularyError
from textveil.mechanism import Block, Layout, Role, WordRule, oov
from textveil.pipeline.components import Parts
from textveil.pipeline.rng import derive_randomness
from textveil.protect import (
    LITERAL,
    Protection,
    build_ungrouped,
    check_range,
    draw_groups,
    find_public_words,
    group_numbers,
    join,
)
from textveil.randomness import Flags, Ids, Values
from textveil.session import Snapshot, fold
from textveil.text import Tokens


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Decisions before the draw, for N words in T units.

    Attributes:
        block: the units' rows (secret) and layout (public).
        originals: int64 [T], the units' rows in the table in which words are looked up; different
            from the block's where a codebook is used. Secret.
        roles: int8 [N], a `Role` per word.
        counts: int64 [N], units of each word.
        unknown: bool [N], words outside the table that are not public.
        rules: int8 [N], a `WordRule` per word: whether a paper's rule handles it instead of the
            mechanism.
        classes: int64 [N], the same number for words that are released alike because they are
            equal; -1 elsewhere.
        epsilon: float64 [N], the budget of each word, or None where the mechanism's parameter sets
            it.
        figures: figures to move, by word; secret.
    """

    block: Block
    originals: Ids = field(repr=False)
    roles: NDArray[np.int8]
    counts: Ids
    unknown: Flags
    rules: NDArray[np.int8]
    classes: Ids
    epsilon: Values | None
    figures: Mapping[int, Figure] = field(default_factory=dict, repr=False)

    @cached_property
    def is_first(self) -> Flags:
        """Words that do not repeat an equal word, bool [N]."""
        first_flags: Flags = (self.classes < 0) | (self.classes == np.arange(len(self.classes)))
        return first_flags


def detect(
    parts: Parts, tokens: Tokens, queries: Sequence[str] | None, *, deduplicate: bool = False
) -> Detections | None:
    """Detects sensitive parts in texts; None where nothing makes groups.

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        queries: the purpose of each text; None where the options set it or nothing needs it.
        deduplicate: True to search equal texts once, so that `Detections.whole` has those of the
            batch; not in a session, where a text's values may have been found in earlier texts.

    Raises:
        InputError: queries are given and nothing needs them, or the other way.
        DetectorError: a detector failed.
    """
    if parts.grouping is not None and deduplicate and queries is None:
        distinct, text_indices = tokens.remove_repeats()
        return replace(parts.grouping.detect(distinct, None), repeats=text_indices)
    if parts.grouping is not None:
        return parts.grouping.detect(tokens, queries)
    if queries is not None:
        raise InputError("queries need protect.importance=cosine: set it, or leave the queries out")
    return None


def protect(
    parts: Parts,
    tokens: Tokens,
    detections: Detections | None,
    snapshot: Snapshot | None,
    *,
    first: int = 0,
) -> tuple[Tokens, Protection, Values | None, tuple[tuple[PrivateValue, ...], ...]]:
    """Assigns groups and budgets to the words, joined as they are released.

    Args:
        parts: parts of the privatizer.
        tokens: the words of a batch.
        detections: detections in their texts.
        snapshot: the session's snapshot; None without one.
        first: the number of the first text in its run.

    Returns:
        The words as they are released, their protection, their epsilons [N], and for each text the
        private values that are new.

    Raises:
        BudgetError: a budget does not give one epsilon per word.
    """
    if parts.grouping is None or detections is None:
        protection = build_ungrouped(find_public_words(tokens.words, parts.words))
        return tokens, protection, _assign_epsilon(parts, protection), ()
    if snapshot is None:
        detections = parts.grouping.propagate(detections, None)
    else:
        literals = [
            Span(b, start, end, LITERAL, 1.0, "session")
            for b, text in enumerate(tokens.texts)
            for start, end in snapshot.find_own_placeholders(text)
        ]
        sought = snapshot.build_matcher(detections.tokens.texts, detections.spans)
        for value in parts.nearby:
            sought.add(value)
        detections = parts.grouping.propagate(detections, sought, literals)
    detections = detections.expand()
    tokens, public = detections.tokens, find_public_words(detections.tokens.words, parts.words)
    protection = parts.grouping.assign(detections, public)
    if parts.drawn_groups:
        assert parts.grouping.options.label_epsilon is not None, "options are checked"
        rng = derive_randomness(parts, tokens, protection, None, first=first, step="labels")
        protection = draw_groups(
            protection, parts.grouping.options.label_epsilon, tokens.documents, rng=rng
        )
    remembered = tuple(
        tuple(v for v in values if parts.remembers_doubt or v not in detections.doubtful)
        for values in detections.new_values
    )
    return *join(tokens, protection, _assign_epsilon(parts, protection), public), remembered


def _assign_epsilon(parts: Parts, protection: Protection) -> Values | None:
    if parts.budget is None:
        return None
    epsilon = check_range(np.asarray(parts.budget.assign(protection), np.float64), "epsilon")
    if epsilon.shape != protection.public.shape:
        raise BudgetError(
            f"a budget must give one epsilon per word: {len(protection.public)}, got shape "
            f"{epsilon.shape}"
        )
    return epsilon


def make_plan(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    epsilon: Values | None,
    *,
    memo: dict[object, object] | None,
    look_up_all: bool,
) -> Plan:
    """Decides rows, roles and classes of a batch's words before the draw.

    Args:
        parts: parts of the privatizer.
        tokens: the words, as they are released.
        protection: their groups.
        epsilon: their budgets [N]; None where the mechanism's parameter sets them.
        memo: cache of results that do not depend on the budget; secret.
        look_up_all: True to look up rows also for words whose row the mechanism does not use.

    Raises:
        VocabularyError: a word is outside the table, and `words.oov` is `error`.
    """
    is_replaced = protection.hidden | protection.named | protection.moved
    is_idle = protection.hidden | protection.moved  # words whose row is not used
    if epsilon is not None:
        is_idle = is_idle | (~protection.named & ((epsilon == 0) | np.isinf(epsilon)))
    # A mechanism that looks at neighbours may need the row of every word.
    rows, counts, is_known = _lookup_rows(
        parts,
        tokens.words,
        np.zeros_like(is_idle) if look_up_all or not parts.claim.alone else is_idle,
    )
    unknown = ~is_known & ~protection.public & ~is_replaced
    rules = oov.assign_rules(tokens.words, unknown, parts.words)
    unruled = unknown & (rules == WordRule.HOUSE)
    if parts.words.oov == "error" and unruled.any():
        raise VocabularyError(
            f"{int(unruled.sum())} of {len(tokens.words)} words are outside the table "
            f"{parts.table.name}; words.oov=surrogate, placeholder or keep says what to do with "
            "them"
        )
    roles = np.where(protection.public, Role.PASS, Role.PROTECT).astype(np.int8)
    if parts.words.oov in ("keep", "placeholder"):
        roles[unruled] = Role.PASS if parts.words.oov == "keep" else Role.HOLE
    roles[rules != WordRule.HOUSE] = Role.HOLE  # the mechanism does not see them
    roles[is_replaced] = Role.HOLE
    if epsilon is not None:
        protected = roles == Role.PROTECT
        roles[protected & (epsilon == 0)] = Role.HOLE
        roles[protected & np.isinf(epsilon)] = Role.PASS
    unit_of = np.repeat(np.arange(len(roles)), counts)
    group = group_numbers(protection.labels)[protection.group][unit_of]
    figures = _parse_figures(tokens, protection)
    layout = Layout(
        roles=roles[unit_of],
        documents=np.concatenate(([0], np.cumsum(counts)))[tokens.documents],
        unit_of=unit_of,
        verbatim=tuple(_select_passing(parts, tokens.words, roles)[unit_of]),
        spaced=_find_spaced(tokens, roles)[unit_of],
    )
    return Plan(
        block=Block(layout=layout, rows=parts.table.map_rows(rows, group), memo=memo),
        originals=rows,
        roles=roles,
        counts=counts,
        unknown=unknown,
        rules=rules,
        classes=_assign_classes(parts, tokens, protection, roles, epsilon, figures),
        epsilon=epsilon,
        figures=figures,
    )


def _parse_figures(tokens: Tokens, protection: Protection) -> dict[int, Figure]:
    """Parses the figures that are moved, by word."""
    places = np.flatnonzero(protection.moved).tolist()
    parsed = [(i, read_figure(protection.get_group(i), tokens.words[i])) for i in places]
    return {i: figure for i, figure in parsed if figure is not None}


def _assign_classes(
    parts: Parts,
    tokens: Tokens,
    protection: Protection,
    roles: NDArray[np.int8],
    epsilon: Values | None,
    figures: Mapping[int, Figure],
) -> Ids:
    """Numbers words that are released alike because they are equal, int64 [N].

    The number is the index of the first of them in their text; -1 for all other words.
    """
    classes = np.full(len(roles), -1, np.int64)
    if not parts.words.consistent:
        return classes
    firsts: dict[tuple[int, str, str], int] = {}
    owner = tokens.owners.tolist()
    for i in np.flatnonzero((roles == Role.PROTECT) | protection.named | protection.moved).tolist():
        word = figures[i].key if i in figures else fold(tokens.words[i])
        classes[i] = firsts.setdefault((owner[i], word, get_draw_key(i, protection, epsilon)), i)
    return classes


def get_draw_key(word: int, protection: Protection, epsilon: Values | None) -> str:
    """Returns a word's group and budget, by which equal words share draws."""
    kind = protection.get_group(word)
    if epsilon is None or protection.named[word] or protection.moved[word]:
        return kind
    # Another budget is another law, so that equal words under it do not share a draw.
    return f"{kind} {epsilon[word]!r}"


def _select_passing(
    parts: Parts, words: Sequence[str], roles: NDArray[np.int8]
) -> NDArray[np.object_]:
    """Returns passing words as released, "" for all others, [N]."""
    lowered = parts.words.casing == "lower"
    passing = zip(words, (roles == Role.PASS).tolist(), strict=True)
    texts = [(word.lower() if lowered else word) if passes else "" for word, passes in passing]
    # one extra, so that an empty list is an array of strings, too
    return np.array([*texts, ""], object)[:-1]


def _lookup_rows(parts: Parts, words: Sequence[str], idle: Flags) -> tuple[Ids, Ids, Flags]:
    """Looks up the rows of all units.

    A word outside the table that is idle everywhere is not given a surrogate; its row is 0.

    Returns:
        Rows in the table of words, in order; the number of units of each word; whether a word is in
        the table.
    """
    distinct = list(dict.fromkeys(words))
    number = {word: i for i, word in enumerate(distinct)}
    indices = np.fromiter(map(number.__getitem__, words), np.int64, len(words))
    if parts.pieces is None:
        origin = parts.table.origin
        rows = origin.find(distinct)
        is_known = rows >= 0
        missing = ~is_known & (np.bincount(indices, ~idle, minlength=len(distinct)) > 0)
        rows[missing], _ = origin.lookup([distinct[i] for i in np.flatnonzero(missing).tolist()])
        return np.maximum(rows, 0)[indices], np.ones(len(words), np.int64), is_known[indices]
    piece_rows, is_known = parts.pieces.split(distinct)
    rows = (
        np.concatenate([piece_rows[i] for i in indices]) if len(indices) else np.empty(0, np.int64)
    )
    return (
        rows,
        np.fromiter(map(len, piece_rows), np.int64, len(piece_rows))[indices],
        is_known[indices],
    )


def _find_spaced(tokens: Tokens, roles: NDArray[np.int8]) -> Flags:
    """Says before which words the release has whitespace, bool [N].

    Between two replaced words it always has.
    """
    spaced = tokens.space_flags
    spaced[1:] |= (roles[1:] != Role.PASS) & (roles[:-1] != Role.PASS)
    return spaced
