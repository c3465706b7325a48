"""Stages: what happens to spans between the detectors that find them and the words they hide, as one table.

In: spans of detectors, the words of their texts, the settings of detection. Out: spans, in the same form.
Not here: the detectors (`detectors`), the loop over the table and what a span's words become (`grouping`).

`STAGES` is read from top to bottom. `make ablation` switches each stage off and counts what changes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import regex

from textveil.protect.figures import AGE, age_end
from textveil.protect.odds import judged
from textveil.protect.patterns.times import whole_date
from textveil.protect.relations import is_beside_relation, is_illness, is_relation
from textveil.protect.spans import NAMES, Span
from textveil.protect.spelling import atoms
from textveil.protect.structure.keys import LONGEST as LONGEST_KEY
from textveil.protect.structure.keys import is_secret, kind_of
from textveil.protect.titles import LONGEST as LONGEST_TITLE
from textveil.protect.titles import SHORT, bounds, is_called, is_nobody, names
from textveil.text import Tokens, is_country

PRIVATE = 0.5
"""From this probability on a name counts as private."""

LONGEST_COUNTRY = 60
"""Letters of a name that is looked for among countries."""

NAMESAKES = frozenset(
    {
        "chad",
        "england",
        "france",
        "georgia",
        "holland",
        "india",
        "ireland",
        "israel",
        "jordan",
        "kenya",
    }
)
"""Countries that people are called, too."""

LONGEST_RELATION = 60
"""Characters before a name that are looked at for a relation."""

NAMING = 4
"""Letters of a longer word of a name."""

OWN = ("patterns", "structure", "tagger")
"""textveil's own detectors. Others may have types of their own, and mean what they find."""

NUMBERS = frozenset(
    {
        "PHONE",
        "CARD",
        "IBAN",
        "ACCOUNT",
        "NATIONAL_ID",
        "MEDICAL_RECORD",
        "LICENCE",
        "VIN",
        "BOOKING",
        "ID",
    }
)
"""Types of numbers: each stands in one line, and begins and ends with a letter or digit."""

_FIGURE = regex.compile(r"\d{1,3}(?!\d)")
"""The years of an age, before their unit."""

_STOPPED = {
    "ADDRESS": regex.compile(r"(?<=[\p{L}\d])\.\Z"),
    **dict.fromkeys(("DATE", "BIRTH_DATE"), regex.compile(r"(?<=\p{L})\.\Z")),
}
"""The full stop of a sentence behind a value, by type."""

_NUMBER = regex.compile(
    r"(?: \+ (?=\p{N}) | \+? \( (?=\+?\p{N}) \+? )? [\p{L}\p{N}]"
    r" (?: [^\n\r\v\f\x85\u2028\u2029]* [\p{L}\p{M}\p{N}] )?",
    regex.VERBOSE,
)
"""A number, with what a telephone number begins with."""


VALUES = "structure"
"""The detector that knows where values begin and end."""

SEPARATORS = frozenset(",;|\t")
"""What stands between the cells of a table, without a space behind it."""


FIGURES, FEWEST = ("ID", "ACCOUNT", "PHONE"), 5
"""Types of numbers that the tagger finds, and the figures that one has at least."""


GUESSED = "tagger"
"""The detector that judges identifiers by how they look; what others know by a form or a key they know better."""


class Settings(NamedTuple):
    """What of the options decides which stages run.

    Args:
        level: `protect.level`.
        scores: whether spans are scored by what else their texts hold.
        moves_ages: whether ages are moved.
    """

    level: str
    scores: bool
    moves_ages: bool


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of detection.

    Attributes:
        name: what ablation calls it.
        apply: from spans and the words of their texts to spans.
        why: what it is for.
        runs: whether it runs under these settings.
        guard: why it stays where it changes nothing on measured texts; empty if it earns its place.
    """

    name: str
    apply: Callable[[Sequence[Span], Tokens], Sequence[Span]]
    why: str
    runs: Callable[[Settings], bool] = lambda settings: True
    guard: str = ""


def run(
    stages: Sequence[Stage], spans: Sequence[Span], tokens: Tokens, settings: Settings | None = None
) -> list[Span]:
    """Runs stages in order: those that the settings ask for, or all."""
    for stage in stages:
        if settings is None or stage.runs(settings):
            spans = stage.apply(spans, tokens)
    return list(spans)


# ---- spans of one detector ------------------------------------------------------------------------------------------


def _without(
    is_nothing: Callable[[Span, Sequence[str]], bool],
) -> Callable[[Sequence[Span], Tokens], list[Span]]:
    return lambda spans, tokens: [span for span in spans if not is_nothing(span, tokens.texts)]


def _each(
    change: Callable[[Span, Sequence[str]], Span],
) -> Callable[[Sequence[Span], Tokens], list[Span]]:
    return lambda spans, tokens: [change(span, tokens.texts) for span in spans]


def trim(spans: Sequence[Span], tokens: Tokens) -> list[Span]:
    """Cuts each span to what it names."""
    return [each for span in spans for each in _trim(span, tokens)]


def is_only_title(span: Span, texts: Sequence[str]) -> bool:
    """Whether a person that textveil found is nobody: a title, or several, alone, also one cut short ("geom.")."""
    if span.type != "PERSON" or span.source.partition(":")[0] not in OWN:
        return False
    text = texts[span.text]
    word = text[span.start : span.end]
    return is_nobody(word) or (word in SHORT and text[span.end : span.end + 2] == ". ")


_CONSTANT, _CONSTANT_BEFORE = (
    regex.compile(r"[A-Z\d_]+(?![\p{L}\d_])"),
    regex.compile(r"(?<![\p{L}\d_])[A-Z\d_]{0,64}\Z"),
)
"""A name in capitals of a program, and what of it stands before a place."""


def is_part_of_key(span: Span, texts: Sequence[str]) -> bool:
    """Whether what the tagger took for private is a part of a key in capitals: SENTRY_AUTH_TOKEN."""
    if span.source != GUESSED:
        return False
    text = texts[span.text]
    before, behind = (
        _CONSTANT_BEFORE.search(text, max(0, span.start - LONGEST_KEY), span.start),
        _CONSTANT.match(text, span.start),
    )
    key = before[0] + behind[0] if before and behind else ""
    return (
        len(key) > span.end - span.start
        and "_" in key
        and (is_secret(key) or kind_of(key) is not None)
    )


def is_illness_name(span: Span, texts: Sequence[str]) -> bool:
    """Whether what textveil took for a person is the name of an illness."""
    if span.type != "PERSON" or span.source not in OWN:
        return False
    text = texts[span.text]
    before = text[max(0, span.start - LONGEST_RELATION) : span.start]
    return is_illness(
        before, text[span.start : span.end], text[span.end : span.end + LONGEST_RELATION]
    )


def _trim(span: Span, tokens: Tokens) -> list[Span]:
    """What a span names, without the full stop of a sentence.

    Names are without title and possessive, dates whole, ages without their unit, guessed numbers without signs.
    """
    text = tokens.texts[span.text][span.start : span.end]
    if span.type == "ORGANIZATION" and span.source == GUESSED and is_called(text):
        span = span._replace(type="PERSON")
    if span.type in NAMES:
        after = tokens.texts[span.text][span.end : span.end + LONGEST_TITLE]
        own = span.source in OWN
        found = []
        for first, last in names(span.type, text, after) if own else ((0, len(text)),):
            start, end = bounds(span.type, text[first:last], (text[last:] + after)[:LONGEST_TITLE])
            found.append(
                span._replace(start=span.start + first + start, end=span.start + first + end)
            )
        return found
    if span.source in OWN and (stopped := _STOPPED.get(span.type)) and stopped.search(text):
        span = span._replace(end=span.end - 1)
    if span.type == AGE and span.source == GUESSED and (figure := _FIGURE.match(text)):
        end = span.start + figure.end()
        return (
            [span._replace(end=end)]
            if age_end(tokens.texts[span.text], span.start, end) >= span.end
            else [span]
        )
    if span.type == "DATE" and span.source in OWN:
        start, end = whole_date(tokens.texts[span.text], span.start, span.end)
        return [span._replace(start=start, end=end)]
    if span.type not in NUMBERS or span.source.partition(":")[0] != GUESSED:
        return [span]
    named = [
        (span.start + match.start(), span.start + match.end()) for match in _NUMBER.finditer(text)
    ]
    return [span._replace(start=start, end=end) for start, end in named] or [span]


def extend_age(span: Span, texts: Sequence[str]) -> Span:
    """An age with the words for its unit behind it."""
    return span._replace(end=age_end(texts[span.text], span.start, span.end))


def publish_country(span: Span, texts: Sequence[str]) -> Span:
    """A span; a whole country that textveil found is public, unless it may be a person's name."""
    name = texts[span.text][span.start : span.end]
    if span.source.partition(":")[0] not in OWN or span.type not in (*NAMES, "ADDRESS"):
        return span  # what a user listed stays sensitive, whatever it is
    if len(name) > LONGEST_COUNTRY or not is_country(name):
        return span
    somebody = span.type == "PERSON" and name.lower() in NAMESAKES
    return span if somebody else span._replace(type="LOCATION", private=0.0)


def raise_relative(span: Span, texts: Sequence[str]) -> Span:
    """A span; whoever is said to be the writer's relative, neighbour or colleague is private."""
    if span.type != "PERSON" or span.private >= PRIVATE:
        return span
    text = texts[span.text]
    before, behind = (
        text[max(0, span.start - LONGEST_RELATION) : span.start],
        text[span.end : span.end + LONGEST_RELATION],
    )
    return span._replace(private=1.0) if is_relation(before) or is_beside_relation(behind) else span


def raise_reachable(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """The spans, with all persons as private whose name is in an address or user name of their text.

    In it are all longer words of the name, or the whole name as one word, or its last word with the first's initial.
    """
    known: list[set[str]] = [set() for _ in texts]
    for span in spans:
        if span.type in ("EMAIL", "HANDLE"):
            words = [
                atom.text
                for atom in atoms(texts[span.text][span.start : span.end].partition("@")[0])
            ]
            known[span.text].update(words, ["".join(words)])

    def reached(span: Span) -> bool:
        words = [atom.text for atom in atoms(texts[span.text][span.start : span.end])]
        long, own = {word for word in words if len(word) >= NAMING}, known[span.text]
        if not long or not own:
            return False
        glued = (
            {"".join(words), words[0][0] + words[-1], words[-1] + words[0][0]}
            if len(words) > 1
            else set()
        )
        return long <= own or not glued.isdisjoint(own)

    return [
        span._replace(private=1.0) if span.type == "PERSON" and reached(span) else span
        for span in spans
    ]


# ---- spans that overlap ---------------------------------------------------------------------------------------------


BARE: Mapping[str, tuple[str, ...]] = {
    "AGE": ("AGE",),
    "DATE": ("DATE", "BIRTH_DATE"),
    **dict.fromkeys(
        FIGURES,
        (*FIGURES, "NATIONAL_ID", "MEDICAL_RECORD", "LICENCE", "BOOKING", "CARD", "IBAN"),
    ),
}
"""Types of figures that the tagger finds with words around them, and what others know them to be."""

_OF_A_NUMBER = regex.compile(r"\p{N}|\b\p{Lu}{1,2}\b")
_EDGE_BEFORE = regex.compile(r"(?:\A|[\s:.]|\p{Lo})\Z")
_EDGE_BEHIND = regex.compile(r"\Z|[\s,.)]|\p{Lo}")


def drop_wordy_numbers(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """The spans without figures of the tagger that others know, too, if it took in nothing besides but words.

    One or two capitals may be a part of the number ("AB 123456"), so they keep the tagger's span.
    """
    known: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for span in sorted(spans):
        if span.source.partition(":")[0] != GUESSED:
            known.setdefault((span.text, span.type), []).append((span.start, span.end))

    def stays(span: Span) -> bool:
        if span.source.partition(":")[0] != GUESSED:
            return True
        text = texts[span.text]
        for type_ in BARE.get(span.type, ()):
            for start, end in _held(known.get((span.text, type_), ()), span):
                before, behind = text[span.start : start], text[end : span.end]
                apart = (
                    _EDGE_BEFORE.search(before) is not None
                    and _EDGE_BEHIND.match(behind) is not None
                )
                if apart and _OF_A_NUMBER.search(f"{before} {behind}") is None:
                    return False
        return True

    return [span for span in spans if stays(span)]


FORMED = ("EMAIL", "PHONE", "URL", "IP", "IBAN", "CARD", "ACCOUNT")
"""Types that are known by a form, and are no part of a name."""


def cut_out_forms(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """The spans; names that hold what is known by its form give way to what they hold besides, other than its key."""
    forms: dict[int, list[tuple[int, int]]] = {}
    for b, start, end in sorted(
        (span.text, span.start, span.end) for span in spans if span.type in FORMED
    ):
        forms.setdefault(b, []).append((start, end))
    found: list[Span] = []
    for span in spans:
        held = _held(forms.get(span.text, ()), span)
        if span.type not in NAMES or not held:
            found.append(span)
            continue
        free = span.start
        for start, end in [*held, (span.end, span.end)]:
            told = [i for i in range(free, start) if texts[span.text][i].isalnum()]
            if told and not kind_of(texts[span.text][told[0] : told[-1] + 1]):
                found.append(span._replace(start=told[0], end=told[-1] + 1))
            free = max(free, end)
    return found


def _held(places: Sequence[tuple[int, int]], span: Span) -> list[tuple[int, int]]:
    """Those of sorted places that lie in a span."""
    first, last = bisect_left(places, (span.start, 0)), bisect_right(places, (span.end, 0))
    return [each for each in places[first:last] if each[1] <= span.end]


def _touched(places: Sequence[tuple[int, int]], span: Span) -> list[tuple[int, int]]:
    """The parts of sorted places, none of which overlap, that lie in a span."""
    first = bisect_right(places, span.start, key=lambda place: place[1])
    last = bisect_left(places, span.end, key=lambda place: place[0])
    return [(max(start, span.start), min(end, span.end)) for start, end in places[first:last]]


def divide_between_cells(spans: Sequence[Span], texts: Sequence[str]) -> list[Span]:
    """The spans; those that hold values of a structure and cells beside them give way to what they hold besides.

    A number of the tagger may begin or end in a value; the few figures of another cell are no part of it.
    """
    values: dict[int, list[tuple[int, int]]] = {}
    for b, start, end in sorted(
        (span.text, span.start, span.end) for span in spans if span.source == VALUES
    ):
        own = values.setdefault(b, [])
        if own and start < own[-1][1]:
            own[-1] = own[-1][0], max(end, own[-1][1])
        else:
            own.append((start, end))
    found: list[Span] = []
    for span in spans:
        number = span.source.partition(":")[0] == GUESSED and span.type in FIGURES
        held = (_touched if number else _held)(values.get(span.text, ()), span)
        text = texts[span.text]
        between = {
            text[i]
            for value in held
            for i in (value[0] - 1, value[1])
            if span.start <= i < span.end
            and text[i] in SEPARATORS
            and not text[i + 1 : i + 2].isspace()
        }
        if span.source == VALUES or not (between or len(held) > 1):
            found.append(span)
            continue
        at = span.start
        for start, end in [*held, (span.end, span.end)]:
            cells = [at - 1, *(i for i in range(at, start) if text[i] in between), start]
            for before, after in pairwise(cells):
                told = [i for i in range(before + 1, after) if text[i].isalnum()]
                if told and not (number and sum(text[i].isdigit() for i in told) < FEWEST):
                    found.append(span._replace(start=told[0], end=told[-1] + 1))
            at = end
    return found


def _is_personal(settings: Settings) -> bool:
    return settings.level == "personal"


STAGES = (
    Stage(
        name="odds",
        apply=judged,
        why="scores names and details by how they look and by what else their text holds",
        runs=lambda settings: settings.scores,
    ),
    Stage(
        name="titles",
        apply=_without(is_only_title),
        why="a title alone names nobody",
        guard="`Herr Doktor, was tun?` keeps its doctor",
    ),
    Stage(
        name="illnesses",
        apply=_without(is_illness_name),
        why="an illness is named after somebody, and is nobody",
        guard="what was diagnosed is what is asked about: `Hashimoto's`",
    ),
    Stage(
        name="keys in capitals",
        apply=_without(is_part_of_key),
        why="a part of a variable's name is no value",
        guard="settings keep their keys: `JWT_SIGNING_KEY`",
    ),
    Stage(name="trim", apply=trim, why="a span is what it names, without titles and units"),
    Stage(
        name="ages",
        apply=_each(extend_age),
        why="an age that is moved is moved with its unit",
        runs=lambda settings: settings.moves_ages,
        guard="without its unit an age cannot be moved",
    ),
)
"""From what detectors found to spans, in order."""

LEVELS = (
    Stage(
        name="countries",
        apply=_each(publish_country),
        why="a whole country is public",
        runs=_is_personal,
    ),
    Stage(
        name="relatives",
        apply=_each(raise_relative),
        why="whoever the writer knows is private",
        guard="`my neighbour Rose` is private, whoever else has the name",
        runs=_is_personal,
    ),
    Stage(
        name="reachable",
        apply=lambda spans, tokens: raise_reachable(spans, tokens.texts),
        why="whoever has an address in the text is private",
        runs=_is_personal,
    ),
)
"""Which names are private, in order; behind `protect.types`."""

MERGING = (
    Stage(
        name="wordy numbers",
        apply=lambda spans, tokens: drop_wordy_numbers(spans, tokens.texts),
        why="a number that others know is no number with words around it",
        guard="a key stays before its value: `BIC <ACCOUNT_1>`",
    ),
    Stage(
        name="forms",
        apply=lambda spans, tokens: cut_out_forms(spans, tokens.texts),
        why="a name ends where an address or number begins",
        guard="two values beside each other are two: `Maria Silva maria@example.org`",
    ),
    Stage(
        name="cells",
        apply=lambda spans, tokens: divide_between_cells(spans, tokens.texts),
        why="a span over several cells leaves their separators",
        guard="a table keeps its columns",
    ),
)
"""Before spans that overlap are joined, in order."""
