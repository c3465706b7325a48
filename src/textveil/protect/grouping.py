"""Grouping: puts each word into one of four groups, sensitive and important.

Sensitive or not, important to the task or not.

In: words with their places, detections in their texts, the relevance of each word to the task.
Out: `Protection`; and the words of a sensitive part joined where one item is released for all of
them.
Not here: detection (`textveil.detect`), the scores (`importance`), and the budget of a group
(`budget`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from textveil.config import SELF, FigureOptions, NameOptions, ProtectOptions
from textveil.detect import (
    AGE,
    DATES,
    LISTED_TYPE,
    NAMES,
    TYPE_NAME,
    TYPES,
    WHOLE_TYPE,
    ApplicationWords,
    Detection,
    Detections,
    Span,
    ValueIndex,
    expand_types,
    read_figure,
)
from textveil.errors import InputError, UnknownName
from textveil.protect.importance import Cosine, Listed, Saliency
from textveil.protect.protection import GROUPS, PUBLIC, Protection
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.text import LazyPattern, Tokens, load_names, tokenize

PERSON_LABELS = ("PERSON given", "PERSON family", "PERSON")
"""Labels of the words of a person's name.

Of more than one word the last is the family name; a single word has the kind that the public list
of names gives it.
"""


MIN_NAME_SCORE = 0.9
"""Least score at which a name may be replaced by a name.

Below it a name becomes a placeholder, which a reader can see.
"""

MIN_FIGURE_SCORE = 0.8
"""Least score at which a date, age or amount may be moved.

It is that of patterns with context words beside them.
"""


_PATH = LazyPattern(r"(?<!^u[0-9A-Fa-f]{4})(?<=[\p{L}\p{N}:])$")
"""Word before a backslash of a path.

Such a backslash stands for itself, and is not the rest of an escape.
"""

_WORDLY = (
    r"[[\p{L}\p{M}\p{N}\u200C\u200D]--"
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
)
_GLUED_BEFORE = LazyPattern(rf"(?V1)(?:{_WORDLY}_{{0,3}}|_{{4}})\Z")
_GLUED_BEHIND = LazyPattern(rf"(?V1)_{{0,3}}{_WORDLY}|_{{4}}")
_UNCASED = LazyPattern(r"(?![ªº])\p{Lo}")
"""Letter of a script without capitals.

The lists have no names in such scripts, and Latin ones would not read as names.
"""


LITERAL = "LITERAL"
"""Type of a text's literal placeholder that a session already uses."""


class Scorer(Protocol):
    """Scorer of each word's relevance to a task."""

    def score(self, words: Sequence[str], documents: Ids, queries: Sequence[str]) -> Floats:
        """Returns one score per word [N] for B texts with their queries."""
        ...


FAILED_SOURCE = "failure"
"""Source of the span that covers a text where a detector failed."""


class WordRange(NamedTuple):
    """Words [start, stop) of a sensitive part, with its span."""

    start: int
    stop: int
    span: Span


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """Rule that decides the group of each word. Make one with `build`.

    Attributes:
        options: the options it was made from.
        detection: detects sensitive parts.
        scorer: scores a word's relevance to the task; None: no word is important.
        hidden: types that always become placeholders, whatever their budget; None for all.
        named: types that are replaced by names.
        moved: types of figures that are moved.
    """

    options: ProtectOptions
    detection: Detection
    scorer: Scorer | None = field(repr=False)
    hidden: frozenset[str] | None
    named: frozenset[str]
    moved: frozenset[str] = frozenset()

    @classmethod
    def build(
        cls, options: ProtectOptions, names: NameOptions, figures: FigureOptions | None = None
    ) -> Self | None:
        """Builds the grouping for these options; None if they need no groups.

        Raises:
            UnknownName: there is no such detector or type.
            ConfigError: `protect.detectors` holds something that is no detector.
        """
        hidden = (
            None
            if "all" in options.placeholders
            else expand_types(options.placeholders, "protect.placeholders")
        )
        named = (
            frozenset(NAMES) if "all" in names.types else expand_types(names.types, "names.types")
        )
        if not named <= {*NAMES}:
            raise UnknownName("type for names.types", min(named - {*NAMES}), NAMES)
        moved = _expand_figures(() if figures is None else figures.types)
        if not options.has_groups:
            return None
        if options.labels == "randomised":  # a type would reveal the label
            hidden = frozenset()
        # What strict mode finds is hidden whole, whatever `protect.placeholders` lists.
        if hidden is not None and options.unmeasured == "strict":
            hidden |= {WHOLE_TYPE}
        return cls(
            options=options,
            detection=Detection.build(options, moves_ages=AGE in moved),
            scorer=_make_scorer(options),
            hidden=hidden,
            named=named,
            moved=moved,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the options only; models are loaded again on unpickling."""
        names, figures = tuple(sorted(self.named)), tuple(sorted(self.moved))
        return Grouping.build, (
            self.options,
            NameOptions(types=names),
            FigureOptions(types=figures),
        )

    def copy_with_memory(self) -> Self:
        """Returns a copy that caches detections, see `Detection.copy_with_memory`."""
        return replace(self, detection=self.detection.copy_with_memory())

    def copy_for_application(self, words: ApplicationWords, *, is_own: bool) -> Self:
        """Returns a copy for an application, see `Detection.copy_for_application`."""
        return replace(self, detection=self.detection.copy_for_application(words, is_own=is_own))

    @property
    def is_randomised(self) -> bool:
        """True if groups are drawn at random."""
        return self.options.labels == "randomised"

    @property
    def is_context_free(self) -> bool:
        """True if a word's group depends on the word (and task) alone.

        Then it reveals nothing about its context.
        """
        options = self.options
        patterns = options.always_matching or options.never_matching
        if (
            options.detectors
            or patterns
            or options.importance == "saliency"
            or options.task == SELF
        ):
            return False
        listed = (*options.always, *options.never)
        return len(tokenize(listed).words) <= len(
            listed
        )  # an entry may be more than one word, such as 北京

    def detect(self, tokens: Tokens, queries: Sequence[str] | None) -> Detections:
        """Detects sensitive and important words in the texts of a batch.

        Args:
            tokens: the words and their texts.
            queries: B queries, the purpose of each text; None if the options set it or importance
                is off.

        Raises:
            DetectorError: a detector failed, and `protect.on_failure` is `refuse`.
            InputError: queries are missing, or not one per text; or a text has parts in a script or
                language that was not measured, and `protect.unmeasured` is `refuse`.
        """
        self.detection.check_measured(tokens.texts)
        return self.detection.detect(tokens, self._find_important(tokens, queries))

    def propagate(
        self, detections: Detections, known_values: ValueIndex | None, reserved: Sequence[Span] = ()
    ) -> Detections:
        """Finds further occurrences of detected values, see `Detection.propagate`.

        Nothing is added where groups are drawn, or depend on each word alone.
        """
        # An occurrence makes a word's group depend on other words, which neither statement covers.
        if self.is_randomised or self.is_context_free:
            return detections
        return self.detection.propagate(detections, known_values, reserved)

    def assign(self, detections: Detections, public: Flags) -> Protection:
        """Assigns each of the N words of a batch to a group.

        Each detected part is one group: all the words it touches, public ones too.

        Args:
            detections: detections in the texts.
            public: bool [N], words on the public list.
        """
        tokens, important = detections.tokens, detections.important
        if detections.failed:
            return self._protect_all(tokens, important)
        parts = list_sensitive(detections)
        entity = np.full(len(tokens.words), -1, np.int64)
        for i, part in enumerate(parts):
            entity[part.start : part.stop] = i
        types = tuple(part.span.type for part in parts)
        inside = entity >= 0
        if parts:  # a part has one group
            touched = np.bincount(entity[inside], important[inside], minlength=len(parts)) > 0
            important = np.where(inside, touched[entity], important)
        group = np.where(inside, np.where(important, 1, 2), np.where(important, 3, 4))
        # No part is marked: a mark would reveal the true group of its words.
        if self.is_randomised:
            return Protection(
                public=public,
                group=np.where(public, 0, group).astype(np.int16),
                labels=(PUBLIC, *GROUPS),
            )
        # Public words inside a part keep its group: they may be parts of a name or number.
        group[public & ~inside] = 0
        labels, hidden, named, moved = self._label(tokens, parts, entity, group)
        return Protection(
            public=public & ~inside,
            group=group.astype(np.int16),
            labels=labels,
            entity=entity,
            types=types,
            hidden=hidden,
            named=named,
            moved=moved,
        )

    def _protect_all(self, tokens: Tokens, important: Flags) -> Protection:
        """Protects every word of a batch in which a detector failed.

        That is at least as much as any spans would: public words and punctuation may be parts of
        names and numbers.
        """
        count, hides = (
            len(tokens.words),
            self.hidden is None or bool(self.hidden | self.named | self.moved),
        )
        # The number is that of `WHOLE_TYPE` among the labels below.
        group = np.full(count, len(GROUPS) + 1) if hides else np.where(important, 1, 2)
        return Protection(
            public=np.zeros(count, bool),
            group=group.astype(np.int16),
            labels=(PUBLIC, *GROUPS, WHOLE_TYPE),
            entity=np.repeat(np.arange(len(tokens.texts)), tokens.sizes),
            types=(WHOLE_TYPE,) * len(tokens.texts),
            hidden=np.full(count, hides),
        )

    def _find_important(self, tokens: Tokens, queries: Sequence[str] | None) -> Flags:
        if self.scorer is None:
            if queries is not None:
                raise InputError(
                    "queries are only used with protect.importance=cosine; set it, or leave them "
                    "out"
                )
            return np.zeros(len(tokens.words), bool)
        task, texts = self.options.task, tokens.texts
        if task is not None or self.options.importance != "cosine":
            if queries is not None:
                raise InputError(
                    "give protect.task or a query per text, not both"
                    if task is not None
                    else f"protect.importance={self.options.importance} takes no queries"
                )
            queries = texts if task == SELF or task is None else (task,) * len(texts)
        if queries is None or len(queries) != len(texts):
            count = "none" if queries is None else str(len(queries))
            raise InputError(
                f"importance needs one query per text: {len(texts)} texts, {count} given; or set "
                "protect.task"
            )
        scores = self.scorer.score(tokens.words, tokens.documents, queries)
        important: Flags = scores >= self.options.tau  # NaN counts as not important
        return important

    def _label(
        self, tokens: Tokens, parts: Sequence[WordRange], entity: Ids, group: NDArray[Any]
    ) -> tuple[tuple[str, ...], Flags, Flags, Flags]:
        """Returns labels extended by types, and hidden, named, moved words.

        Writes the types into `group`.
        """
        labels = [PUBLIC, *GROUPS]
        hidden, named, moved = (np.zeros(len(entity), bool) for _ in range(3))

        def get_index(label: str) -> int:
            if label not in labels:
                labels.append(label)
            return labels.index(label)

        for start, stop, span in parts:
            type_, score = span.type, span.score
            cased = not any(map(_UNCASED.search, tokens.words[start:stop]))
            if (
                type_ in self.named
                and score >= MIN_NAME_SCORE
                and cased
                and not _is_glued(tokens, start, stop)
            ):
                named[start:stop] = True
                group[start:stop] = get_index(type_)
                if type_ == "PERSON" and stop - start > 1:
                    group[start : stop - 1], group[stop - 1] = map(get_index, PERSON_LABELS[:2])
                elif type_ == "PERSON":
                    group[start] = get_index(_label_person(tokens.words[start]))
            elif (
                type_ in self.moved
                and score >= MIN_FIGURE_SCORE
                and read_figure(type_, _get_text(tokens, start, stop))
            ):
                moved[start:stop] = True
                group[start:stop] = get_index(type_)
            elif self.hidden is None or type_ in self.hidden | self.named | self.moved:
                hidden[start:stop] = True
                group[start:stop] = get_index(type_)
        return tuple(labels), hidden, named, moved


def list_sensitive(detections: Detections) -> list[WordRange]:
    """Returns sensitive parts in order; whole texts where a detector failed."""
    tokens = detections.tokens
    if not detections.failed:
        return _include_backslashes(_convert_spans(detections.spans, tokens), tokens)
    return [
        WordRange(first, stop, Span(b, 0, len(tokens.texts[b]), WHOLE_TYPE, 1.0, FAILED_SOURCE))
        for b, (first, stop) in enumerate(pairwise(tokens.documents.tolist()))
        if first < stop
    ]


def join(
    tokens: Tokens, protection: Protection, epsilon: Values | None, public: Flags
) -> tuple[Tokens, Protection, Values | None]:
    """Joins words of a sensitive part that is released as one item.

    So their number stays hidden. These are parts that become a placeholder, because of their type
    or a budget of 0, places and organizations that are replaced by a name, and figures. In all
    other parts punctuation still passes.

    Args:
        tokens: the N words.
        protection: decisions about them.
        epsilon: float64 [N], or None if the mechanism's parameter is set.
        public: bool [N], words on the public list, including those in sensitive parts.
    """
    entity = protection.entity
    inside = entity >= 0
    if not inside.any():
        return tokens, protection, epsilon
    whole = protection.hidden | protection.moved | (protection.named & ~_find_persons(protection))
    if epsilon is not None:
        whole |= inside & ~protection.named & (epsilon == 0)
    # No part reaches into another text, so no word is joined across texts.
    goes_on = np.append(False, whole[1:] & whole[:-1] & (entity[1:] == entity[:-1]))
    marks = np.fromiter(
        (not any(map(str.isalnum, word)) for word in tokens.words), bool, len(entity)
    )
    passing = inside & ~whole & marks & public
    protection = replace(
        protection,
        public=protection.public | passing,
        group=np.where(passing, 0, protection.group).astype(np.int16),
        entity=np.where(passing, -1, entity),
        named=protection.named & ~passing,
    )
    if not goes_on.any():
        return tokens, protection, epsilon
    first_words = ~goes_on
    return (
        tokens.join_words(goes_on),
        replace(
            protection,
            **{
                name: getattr(protection, name)[first_words]
                for name in ("public", "group", "entity", "hidden", "named", "moved")
            },
        ),
        None if epsilon is None else epsilon[first_words],
    )


def _label_person(word: str) -> str:
    """Returns the label of a one-word name.

    It is the name's kind on the public list, which the label reveals.
    """
    kinds = {"given": PERSON_LABELS[0], "family": PERSON_LABELS[1]}
    return kinds.get(_load_kinds().get(word.lower(), ""), PERSON_LABELS[2])


@cache
def _load_kinds() -> dict[str, str]:
    names = load_names("PERSON")
    return {word.lower(): kind for word, kind in zip(names.words, names.kinds, strict=True)}


def _find_persons(protection: Protection) -> Flags:
    persons: Flags = np.array([label in PERSON_LABELS for label in protection.labels])[
        protection.group
    ]
    return persons & protection.named


def _expand_figures(type_names: Sequence[object]) -> frozenset[str]:
    """Returns types of figures that are moved, with "all" expanded."""
    types = {*DATES, AGE} if "all" in type_names else set()
    for type_ in type_names:
        is_valid = (
            isinstance(type_, str)
            and TYPE_NAME.fullmatch(type_)
            and type_ not in {*TYPES} - {LISTED_TYPE, *DATES, AGE}
        )
        if type_ != "all" and not is_valid:
            raise UnknownName("type for figures.types", str(type_), ("all", *DATES, AGE))
    return frozenset(types | {str(type_) for type_ in type_names if type_ != "all"})


def _get_text(tokens: Tokens, start: int, stop: int) -> str:
    """Returns the text of the words [start, stop), with their whitespace."""
    # `right` passes over empty texts, which have the same offset as the text behind them.
    text = tokens.texts[int(np.searchsorted(tokens.documents, start, side="right")) - 1]
    return text[int(tokens.starts[start]) : int(tokens.ends[stop - 1])]


def _make_scorer(options: ProtectOptions) -> Scorer | None:
    if options.importance == "cosine":
        return Cosine()
    if options.importance == "list":
        return Listed(words=options.important)
    return Saliency(source=str(options.classifier)) if options.importance == "saliency" else None


def _convert_spans(spans: Sequence[Span], tokens: Tokens) -> list[WordRange]:
    """Converts spans to ranges of words.

    Ranges that share a word are merged, with the type of the first.
    """
    if not spans:
        return []
    lengths = np.array(
        [len(text) + 1 for text in tokens.texts]
    )  # + 1 so that no span reaches into the next text
    offsets = np.cumsum(lengths) - lengths
    places = np.repeat(offsets, tokens.sizes)
    starts, ends = tokens.starts + places, tokens.ends + places
    begins = np.array([offsets[span.text] + span.start for span in spans])
    stops = np.array([offsets[span.text] + span.end for span in spans])
    # Words that only touch an edge of a span are outside of it: hence the two sides.
    first, last = (
        np.searchsorted(ends, begins, side="right"),
        np.searchsorted(starts, stops, side="left"),
    )
    ranges: list[WordRange] = []
    for start, stop, span in sorted(zip(first.tolist(), last.tolist(), spans, strict=True)):
        if start >= stop:
            continue
        if ranges and start < ranges[-1].stop:
            ranges[-1] = ranges[-1]._replace(stop=max(ranges[-1].stop, stop))
        else:
            ranges.append(WordRange(start, stop, span))
    return ranges


def _include_backslashes(parts: Sequence[WordRange], tokens: Tokens) -> list[WordRange]:
    """Extends parts by a backslash before them.

    Only where it would be read as an escape of the placeholder's bracket.
    """
    extended: list[WordRange] = []
    for part in parts:
        previous_stop = extended[-1].stop if extended else 0
        first = part.start
        while (
            first > previous_stop
            and tokens.words[first - 1] == "\\"
            and tokens.ends[first - 1] == tokens.starts[first]
        ):
            first -= 1
        # Backslashes in pairs stand for themselves; the last of an odd run escapes what follows.
        odd = (part.start - first) % 2 == 1
        passes = first > previous_stop and tokens.ends[first - 1] == tokens.starts[first]
        if odd and not (passes and _PATH.search(tokens.words[first - 1])):
            part = part._replace(start=part.start - 1)
        extended.append(part)
    return extended


def _is_glued(tokens: Tokens, start: int, stop: int) -> bool:
    """Says whether letters or underscores at a name would hinder restoring.

    So in Anna_1: another name in its place would not be found in an answer.
    """
    text = tokens.texts[int(np.searchsorted(tokens.documents, start, "right")) - 1]
    first, end = int(tokens.starts[start]), int(tokens.ends[stop - 1])
    before, behind = text[max(0, first - 4) : first], text[end : end + 4]
    if "_" in text[first:end]:
        return True
    return _GLUED_BEFORE.search(before) is not None or _GLUED_BEHIND.match(behind) is not None
