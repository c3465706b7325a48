"""Grouping: puts each word into one of four groups, sensitive or not, important to the task or not.

In: words with their places, what detectors found in their texts, how relevant each word is to the task.
Out: `Protection`; and the words of a sensitive part joined where one item is released for all of them.
Not here: the detectors (`patterns`, `detectors`), the scores (`importance`), and the budget of a group (`budget`).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, groupby, pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeGuard

import numpy as np
import regex
from numpy.typing import NDArray

from textveil.config import SELF, FigureOptions, NameOptions, ProtectOptions
from textveil.errors import ConfigError, DetectorError, InputError, TextveilWarning, UnknownName
from textveil.protect import stages
from textveil.protect.adapters import TaggerDetector
from textveil.protect.bounds import bind, bounds_of
from textveil.protect.detectors import detector, find_all, merge, reach
from textveil.protect.figures import AGE, DATES
from textveil.protect.figures import read as read_figure
from textveil.protect.importance import Cosine, Listed, Saliency
from textveil.protect.lists import Lists
from textveil.protect.name_lists import load_names
from textveil.protect.odds import DOUBT
from textveil.protect.protection import GROUPS, PUBLIC, Protection
from textveil.protect.spans import IDENTIFIERS, LISTED, NAMES, TYPE_NAME, TYPES, Detector, Span
from textveil.protect.spread import SOURCE as SPREAD
from textveil.protect.spread import PrivateValue, Sought, spread
from textveil.protect.stages import OWN, PRIVATE
from textveil.protect.unmeasured import TEXT, Unmeasured, unmeasured
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.text import Tokens, tokenize

PERSON_LABELS = ("PERSON given", "PERSON family", "PERSON")
"""Labels of the words of a person's name: of several words the last is the family name; a single word has the kind
that the public list of names gives it."""


SURE = 0.9
"""From this score on a name may be replaced by another name; others become placeholders, which a reader can see."""

SURE_FIGURE = 0.8
"""From this score on a date, an age or an amount may be moved: that of patterns with words beside it that tell."""


WHOLE = TEXT
"""The type of a text that becomes one placeholder because a detector failed."""


_PATH = regex.compile(r"(?<!^u[0-9A-Fa-f]{4})(?<=[\p{L}\p{N}:])$")
"""The word before a backslash of a path, which stands for itself, and not the rest of an escape."""

_WORDLY = (
    r"[[\p{L}\p{M}\p{N}\u200C\u200D]--"
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
)
_GLUED_BEFORE = regex.compile(rf"(?V1)(?:{_WORDLY}_{{0,3}}|_{{4}})\Z")
_GLUED_BEHIND = regex.compile(rf"(?V1)_{{0,3}}{_WORDLY}|_{{4}}")
_UNCASED = regex.compile(r"(?![ªº])\p{Lo}")
"""A letter of a script without capitals: the lists have no names in them, and others would not read as names."""


LITERAL = "LITERAL"
"""The type of what a text itself spells as a placeholder that a session has given to something else."""


class Scorer(Protocol):
    """Scores how relevant each word is to a task."""

    def scores(self, words: Sequence[str], documents: Ids, queries: Sequence[str]) -> Floats:
        """One score per word [N], of B texts with their queries."""
        ...


FAILED = "failure"
"""The source of the one part that a text is where a detector failed."""


class WordRange(NamedTuple):
    """The words [start, stop) of a sensitive part, and the span that says what it is."""

    start: int
    stop: int
    span: Span


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Looked:
    """What was found in the texts of a batch. Secret.

    Attributes:
        tokens: the N words of the texts.
        spans: sensitive parts; no word is in two of them.
        others: names that detectors take for public.
        spared: what would be sensitive, but that the user never wants protected.
        important: bool [N], words that matter to the task.
        failed: whether a detector failed, so that the texts are treated as sensitive.
        news: for each text the values that were not known before.
    """

    tokens: Tokens
    spans: tuple[Span, ...]
    others: tuple[Span, ...]
    important: Flags
    failed: bool = False
    spared: tuple[Span, ...] = ()
    news: tuple[tuple[PrivateValue, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Grouping:
    """Decides the group of each word. Make one with `of`.

    Attributes:
        options: the options it was made from.
        detectors: what finds sensitive parts.
        never: lists of what is never sensitive; None for none.
        scorer: scores a word's relevance to the task; None: no word is important.
        types: types that count as sensitive; None for all.
        hidden: types that always become placeholders, whatever their budget; None for all.
        named: types that are replaced by names.
        moved: types of figures that are moved.
        judges: whether spans are judged by what else their texts hold; the bundled tagger then tells its doubts.
    """

    options: ProtectOptions
    detectors: tuple[Detector, ...] = field(repr=False)
    never: Lists | None = field(repr=False)
    scorer: Scorer | None = field(repr=False)
    types: frozenset[str] | None
    hidden: frozenset[str] | None
    named: frozenset[str]
    moved: frozenset[str] = frozenset()
    judges: bool = False

    @classmethod
    def of(
        cls, options: ProtectOptions, names: NameOptions, figures: FigureOptions | None = None
    ) -> Self | None:
        """The grouping for these options; None if they ask for no groups.

        Raises:
            UnknownName: there is no such detector or type.
            ConfigError: `protect.detectors` holds something that is no detector.
        """
        hidden = (
            None
            if "all" in options.placeholders
            else _types(options.placeholders, "protect.placeholders")
        )
        named = frozenset(NAMES) if "all" in names.types else _types(names.types, "names.types")
        if not named <= {*NAMES}:
            raise UnknownName("type for names.types", min(named - {*NAMES}), NAMES)
        moved = _figures(() if figures is None else figures.types)
        if not options.asked:
            return None
        if options.labels == "randomised":  # a type would tell the label
            hidden = frozenset()
        found: list[Detector] = [
            detector(each) if isinstance(each, str) else each for each in options.detectors
        ]
        if any(not isinstance(each, Detector) for each in found):
            raise ConfigError(
                "protect.detectors must hold detector names, or objects with a name and find(texts)"
            )
        if options.always or options.always_matching:
            found.append(Lists(words=options.always, expressions=options.always_matching))
        if options.unmeasured == "strict":
            found.append(Unmeasured())
            hidden = None if hidden is None else hidden | {WHOLE}
        judges = options.level != "names" and any(map(_is_bundled, found))
        if judges:
            found = [each.doubting(DOUBT) if _is_bundled(each) else each for each in found]
        never = options.never or options.never_matching
        return cls(
            options=options,
            detectors=tuple(found),
            never=Lists(words=options.never, expressions=options.never_matching) if never else None,
            scorer=_scorer(options),
            types=None if "all" in options.types else _counting(options) | {LISTED, WHOLE},
            hidden=hidden,
            named=named,
            moved=moved,
            judges=judges,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the options only; models are loaded again on unpickling."""
        names, figures = tuple(sorted(self.named)), tuple(sorted(self.moved))
        return Grouping.of, (self.options, NameOptions(types=names), FigureOptions(types=figures))

    @property
    def randomised(self) -> bool:
        """Whether groups are drawn at random."""
        return self.options.labels == "randomised"

    @property
    def context_free(self) -> bool:
        """Whether a word's group depends on the word (and a task) alone, so that it reveals nothing about others."""
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
        )  # an entry may be several words, as 北京 is

    def look(self, tokens: Tokens, queries: Sequence[str] | None) -> Looked:
        """What detectors find in the texts of a batch.

        Args:
            tokens: the words and their texts.
            queries: B queries, what each text is for; None if the options say it or importance is off.

        Raises:
            DetectorError: a detector failed, and `protect.on_failure` is `refuse`.
            InputError: queries are missing, or not one per text; or a text has parts in a script or language that was
                not measured, and `protect.unmeasured` is `refuse`.
        """
        if self.options.unmeasured == "refuse" and (
            named := sorted({*chain.from_iterable(self.unmeasured(tokens.texts))})
        ):
            raise InputError(
                f"nothing is released: recall was not measured for {' and '.join(named)} text; take it out, or set "
                "protect.unmeasured to strict, which hides it, or say, which lets it pass"
            )
        important = self._important(tokens, queries)
        try:
            spans, others, spared = self._spans(tokens)
        except DetectorError as error:
            if self.options.on_failure == "refuse":
                raise
            warnings.warn(
                f"{error}; all texts of the batch are treated as sensitive",
                TextveilWarning,
                stacklevel=2,
            )
            return Looked(tokens=tokens, spans=(), others=(), important=important, failed=True)
        found = Looked(
            tokens=tokens,
            spans=(),
            others=tuple(others),
            important=important,
            spared=tuple(spared),
        )
        return _with(found, spans)

    def unmeasured(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The scripts and languages of each text for which it was not measured how much is found.

        Nothing is said without detectors, and nothing where labels are drawn: it would tell of the words.
        """
        silent = not self.detectors or self.randomised
        return [() if silent else unmeasured(text) for text in texts]

    def spread(self, found: Looked, known: Sought | None, besides: Sequence[Span] = ()) -> Looked:
        """The same with all other places where what was found stands, in its text and in those after it.

        Nothing is added where groups are drawn, or follow from each word alone.

        Args:
            found: what detectors found.
            known: what a session found earlier, to which what is new is added; None without one.
            besides: other spans that must not pass.
        """
        if found.failed or self.randomised or self.context_free:
            return found
        spans, news = spread(found.tokens.texts, found.spans, known, found.others)
        if self.never is not None:
            again = self.never.without(
                [span for span in spans if span.source == SPREAD], found.tokens.texts
            )
            spans = [span for span in spans if span.source != SPREAD] + again
        found = _with(found, [*besides, *spans])
        return replace(found, news=tuple(map(tuple, news)))

    def decide(self, found: Looked, public: Flags) -> Protection:
        """The protection of the N words of a batch.

        Each part found by a detector is one group: all the words it touches, public ones too.

        Args:
            found: what was found in the texts.
            public: bool [N], words on the public list.
        """
        tokens, important = found.tokens, found.important
        if found.failed:
            return self._failed(tokens, important)
        parts = sensitive(found)
        entity = np.full(len(tokens.words), -1, np.int64)
        for i, part in enumerate(parts):
            entity[part.start : part.stop] = i
        types = tuple(part.span.type for part in parts)
        inside = entity >= 0
        if parts:  # a part has one group
            touched = np.bincount(entity[inside], important[inside], minlength=len(parts)) > 0
            important = np.where(inside, touched[entity], important)
        group = np.where(inside, np.where(important, 1, 2), np.where(important, 3, 4))
        if self.randomised:
            return Protection(
                public=public,
                group=np.where(public, 0, group).astype(np.int16),
                labels=(PUBLIC, *GROUPS),
            )
        group[public & ~inside] = 0
        labels, hidden, named, moved = self._labelled(tokens, parts, entity, group)
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

    def _failed(self, tokens: Tokens, important: Flags) -> Protection:
        """Protects at least as much as any spans: public words and punctuation may be parts of names and numbers."""
        count, hides = (
            len(tokens.words),
            self.hidden is None or bool(self.hidden | self.named | self.moved),
        )
        group = np.full(count, len(GROUPS) + 1) if hides else np.where(important, 1, 2)
        return Protection(
            public=np.zeros(count, bool),
            group=group.astype(np.int16),
            labels=(PUBLIC, *GROUPS, WHOLE),
            entity=np.repeat(np.arange(len(tokens.texts)), tokens.sizes),
            types=(WHOLE,) * len(tokens.texts),
            hidden=np.full(count, hides),
        )

    def _important(self, tokens: Tokens, queries: Sequence[str] | None) -> Flags:
        if self.scorer is None:
            if queries is not None:
                raise InputError(
                    "queries are only used with protect.importance=cosine; set it, or leave them out"
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
            given = "none" if queries is None else str(len(queries))
            raise InputError(
                f"importance needs one query per text: {len(texts)} texts, {given} given; or set protect.task"
            )
        scores = self.scorer.scores(tokens.words, tokens.documents, queries)
        found: Flags = scores >= self.options.tau  # NaN counts as not important
        return found

    def _spans(self, tokens: Tokens) -> tuple[list[Span], list[Span], list[Span]]:
        """Sensitive parts, names that are public, and what is never protected."""
        settings = stages.Settings(self.options.level, self.judges, AGE in self.moved)
        found = find_all(self.detectors, tokens.texts, timeout=self.options.timeout)
        spans = stages.run(stages.STAGES, found, tokens, settings)
        if self.types is not None:
            spans = [span for span in spans if span.type in self.types]
        spans = stages.run(stages.LEVELS, spans, tokens, settings)
        others = [span for span in spans if not self.at_level(span)]
        spans = [span for span in spans if self.at_level(span)]
        if self.never is None:
            return spans, others, []
        kept = self.never.without(spans, tokens.texts)
        whole = {*kept}
        return kept, others, [span for span in spans if span not in whole]

    def at_level(self, span: Span) -> bool:
        """Whether `protect.level` counts a span as sensitive; spans of a user's own types and lists are private."""
        if self.options.level == "names":
            return True
        return span.private >= PRIVATE and (
            span.type not in NAMES or self.options.level == "personal"
        )

    def _labelled(
        self, tokens: Tokens, parts: Sequence[WordRange], entity: Ids, group: NDArray[Any]
    ) -> tuple[tuple[str, ...], Flags, Flags, Flags]:
        """Labels, extended by types; which words are hidden, named, moved. Writes types into `group`."""
        labels = [PUBLIC, *GROUPS]
        hidden, named, moved = (np.zeros(len(entity), bool) for _ in range(3))

        def number(label: str) -> int:
            if label not in labels:
                labels.append(label)
            return labels.index(label)

        for start, stop, span in parts:
            type_, score = span.type, span.score
            cased = not any(map(_UNCASED.search, tokens.words[start:stop]))
            if type_ in self.named and score >= SURE and cased and not _glued(tokens, start, stop):
                named[start:stop] = True
                group[start:stop] = number(type_)
                if type_ == "PERSON" and stop - start > 1:
                    group[start : stop - 1], group[stop - 1] = map(number, PERSON_LABELS[:2])
                elif type_ == "PERSON":
                    group[start] = number(_person(tokens.words[start]))
            elif (
                type_ in self.moved
                and score >= SURE_FIGURE
                and read_figure(type_, _joined(tokens, start, stop))
            ):
                moved[start:stop] = True
                group[start:stop] = number(type_)
            elif self.hidden is None or type_ in self.hidden | self.named | self.moved:
                hidden[start:stop] = True
                group[start:stop] = number(type_)
        return tuple(labels), hidden, named, moved


def sensitive(found: Looked) -> list[WordRange]:
    """The sensitive parts of texts, in order; where a detector failed, each text as a whole."""
    tokens = found.tokens
    if not found.failed:
        return _with_backslashes(_words(found.spans, tokens), tokens)
    return [
        WordRange(first, stop, Span(b, 0, len(tokens.texts[b]), WHOLE, 1.0, FAILED))
        for b, (first, stop) in enumerate(pairwise(tokens.documents.tolist()))
        if first < stop
    ]


def join(
    tokens: Tokens, protection: Protection, epsilon: Values | None, public: Flags
) -> tuple[Tokens, Protection, Values | None]:
    """Joins the words of a sensitive part that is released as one item, so that their number stays hidden.

    These are parts that become a placeholder, because of their type or a budget of 0, places and organizations that are
    replaced by a name, and figures. In all other parts punctuation still passes.

    Args:
        tokens: the N words.
        protection: what was decided for them.
        epsilon: float64 [N], or None if the mechanism's own parameter is set.
        public: bool [N], words on the public list, including those in sensitive parts.
    """
    entity = protection.entity
    inside = entity >= 0
    if not inside.any():
        return tokens, protection, epsilon
    whole = protection.hidden | protection.moved | (protection.named & ~_persons(protection))
    if epsilon is not None:
        whole |= inside & ~protection.named & (epsilon == 0)
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
    kept = ~goes_on
    return (
        tokens.joined(goes_on),
        replace(
            protection,
            **{
                name: getattr(protection, name)[kept]
                for name in ("public", "group", "entity", "hidden", "named", "moved")
            },
        ),
        None if epsilon is None else epsilon[kept],
    )


def _person(word: str) -> str:
    """The label of a one-word name: its kind on the public list, which the label reveals."""
    kinds = {"given": PERSON_LABELS[0], "family": PERSON_LABELS[1]}
    return kinds.get(_kinds().get(word.lower(), ""), PERSON_LABELS[2])


@cache
def _kinds() -> dict[str, str]:
    names = load_names("PERSON")
    return {word.lower(): kind for word, kind in zip(names.words, names.kinds, strict=True)}


def _persons(protection: Protection) -> Flags:
    found: Flags = np.array([label in PERSON_LABELS for label in protection.labels])[
        protection.group
    ]
    return found & protection.named


def _is_bundled(each: Detector) -> TypeGuard[TaggerDetector]:
    return isinstance(each, TaggerDetector) and each.bundled


def _types(given: Sequence[str], option: str) -> frozenset[str]:
    """Type names, with "identifiers" and "names" expanded."""
    found: set[str] = set()
    for each in given:
        if each not in ("identifiers", "names") and not str(each).isupper():
            raise UnknownName(
                f"type for {option}",
                str(each),
                ("identifiers", "names", "all", *NAMES, *IDENTIFIERS),
            )
        found |= {"identifiers": {*IDENTIFIERS}, "names": {*NAMES}}.get(each, {each})
    return frozenset(found)


def _counting(options: ProtectOptions) -> frozenset[str]:
    """The types that count as sensitive. One that no detector can find is misspelt, and would hide nothing."""
    found = _types(options.types, "protect.types")
    unknown = sorted(found - {*TYPES})
    if unknown and all(each in OWN for each in options.detectors):
        raise UnknownName(
            "type for protect.types", unknown[0], ("identifiers", "names", "all", *TYPES)
        )
    return found


def _figures(given: Sequence[object]) -> frozenset[str]:
    """Types of figures that are moved, with "all" expanded."""
    found = {*DATES, AGE} if "all" in given else set()
    for each in given:
        own = (
            isinstance(each, str)
            and TYPE_NAME.fullmatch(each)
            and each not in {*TYPES} - {LISTED, *DATES, AGE}
        )
        if each != "all" and not own:
            raise UnknownName("type for figures.types", str(each), ("all", *DATES, AGE))
    return frozenset(found | {str(each) for each in given if each != "all"})


def _joined(tokens: Tokens, start: int, stop: int) -> str:
    """The text of the words [start, stop) of one text, with the whitespace between."""
    text = tokens.texts[int(np.searchsorted(tokens.documents, start, side="right")) - 1]
    return text[int(tokens.starts[start]) : int(tokens.ends[stop - 1])]


def _scorer(options: ProtectOptions) -> Scorer | None:
    if options.importance == "cosine":
        return Cosine()
    if options.importance == "list":
        return Listed(words=options.important)
    return Saliency(source=str(options.classifier)) if options.importance == "saliency" else None


def _words(spans: Sequence[Span], tokens: Tokens) -> list[WordRange]:
    """The words that spans touch, as ranges of the batch; ranges that share a word become one of the first's type."""
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
    first, last = (
        np.searchsorted(ends, begins, side="right"),
        np.searchsorted(starts, stops, side="left"),
    )
    found: list[WordRange] = []
    for start, stop, span in sorted(zip(first.tolist(), last.tolist(), spans, strict=True)):
        if start >= stop:
            continue
        if found and start < found[-1].stop:
            found[-1] = found[-1]._replace(stop=max(found[-1].stop, stop))
        else:
            found.append(WordRange(start, stop, span))
    return found


def _with(found: Looked, spans: Sequence[Span]) -> Looked:
    """What was found with these spans, merged; words of scripts without spaces end where they do."""
    texts = found.tokens.texts
    spans = bind(spans, texts)
    edges = set[tuple[int, int]]()
    for b, own in groupby(spans, key=lambda span: span.text):
        known = bounds_of(texts[b])
        for span in own:
            start, end = reach(span, found.tokens)
            edges.update(
                (b, edge)
                for edge in (*known.edges(start, span.start + 1), *known.edges(span.end - 1, end))
            )
    tokens, origin = found.tokens.cut(
        [(span.text, place) for span in spans for place in (span.start, span.end)], edges
    )
    whole = [_whole(span, tokens) if span.source == SPREAD else span for span in spans]
    kept, merged = {*whole}, merge(whole, tokens)
    parts = bind(
        [span for span in merged if span not in kept], texts
    )  # what merging left of some of them
    spans = sorted([*(span for span in merged if span in kept), *parts])
    return replace(found, tokens=tokens, spans=tuple(spans), important=found.important[origin])


def _with_backslashes(parts: Sequence[WordRange], tokens: Tokens) -> list[WordRange]:
    """The parts, each with a backslash before it that would be taken for an escape of its placeholder's bracket."""
    found: list[WordRange] = []
    for part in parts:
        least = found[-1].stop if found else 0
        first = part.start
        while (
            first > least
            and tokens.words[first - 1] == "\\"
            and tokens.ends[first - 1] == tokens.starts[first]
        ):
            first -= 1
        odd = (part.start - first) % 2 == 1
        passes = first > least and tokens.ends[first - 1] == tokens.starts[first]
        if odd and not (passes and _PATH.search(tokens.words[first - 1])):
            part = part._replace(start=part.start - 1)
        found.append(part)
    return found


def _glued(tokens: Tokens, start: int, stop: int) -> bool:
    """Whether what stands beside or between the words, as in Anna_1, would keep other names from being found again."""
    text = tokens.texts[int(np.searchsorted(tokens.documents, start, "right")) - 1]
    first, end = int(tokens.starts[start]), int(tokens.ends[stop - 1])
    before, behind = text[max(0, first - 4) : first], text[end : end + 4]
    if "_" in text[first:end]:
        return True
    return _GLUED_BEFORE.search(before) is not None or _GLUED_BEHIND.match(behind) is not None


def _whole(span: Span, tokens: Tokens) -> Span:
    """A name that stands inside a URL, an address or a user name, as all of that."""
    start, end = reach(span, tokens)
    if (start, end) == (span.start, span.end) or span.type not in NAMES:
        return span
    text = tokens.texts[span.text][start:end]
    if "://" in text or text[:4].lower() == "www.":
        return span._replace(start=start, end=end, type="URL")
    return span._replace(start=start, end=end, type="EMAIL" if "@" in text else "HANDLE")
