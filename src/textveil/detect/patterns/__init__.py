"""Patterns: structured identifiers, recognized by form, check digits and nearby words.

In: texts. Out: spans that do not overlap.
Not here: the form of each identifier (`accounts`, `net`, `secrets`, `people`, `references`, `vehicles`,
`addresses`, `places`, `phones`), names
(`textveil.models`), and users' own lists (`lists`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import regex

from textveil.detect.alive import show_progress
from textveil.detect.bounds import divided
from textveil.detect.patterns import (
    accounts,
    addresses,
    ages,
    handles,
    net,
    people,
    pins,
    places,
    references,
    secrets,
    times,
    vehicles,
)
from textveil.detect.patterns.hosts import EXAMPLES, FREE_MAIL, OWN, host_name
from textveil.detect.patterns.phones import REGIONS, are_regions, find_phones
from textveil.detect.patterns.rules import (
    NUMBERED,
    Folded,
    Rule,
    folded,
    guarded,
    has_digits,
    is_dummy,
    is_fraction,
    is_measured,
    without_foreign,
)
from textveil.detect.spans import IDENTIFIERS, Span
from textveil.errors import ConfigError
from textveil.text import Late

BEHIND, AHEAD, LONGEST = 45, 30, 80
"""Characters: an identifier's largest distance behind its context word and before it; and its largest length."""

_HIDDEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u180e\u2061\u2062\u2063\u2064"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\u1400\u2043"
_SPACES = "\t\x0b\x0c\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = Late(f"[{_HIDDEN}]")
_WRITTEN = Late(r"[\p{L}\p{N}](?:.*[\p{L}\p{N}])?", regex.DOTALL)
_DIGIT = Late("[0-9]")
_LEAD = Late(
    r"""(?<![\w@]) (?= (?: [A-Za-z]{0,6}\d | (?: [A-Z]{1,3} [ .\-/]{1,2} ){1,2} \d | [A-Z9]{5} [ ] \d ) )
    (?= (?P<run> [A-Za-z0-9]++
        (?: [ .\-/+]{1,2} [A-Za-z]{0,4} \d [A-Za-z0-9]*+ | [ .\-/]{1,2} [A-Za-z]{1,4} \b ){0,12}+ ) )""",
    regex.VERBOSE,
)
"""Start of a number that may have a few letters before it, and the groups of digits and short words from there on."""
_AND = Late(
    r"[ ]?[,;/&][ ]{0,2}|[ ](?:and|or|und|oder|et|ou|y|o|e|i|oraz|en|ve|veya|và|hoặc|и|или|\+)[ ]|[\x01、]{1,3}",
    regex.IGNORECASE,
)
_STAMP = Late(
    r"""(?xm) ^[ ]*+ [\[(]?+ (?: (?:19|20)\d\d [\-/.] \d\d [\-/.] \d\d | \d\d-\d\d ) [T ,]{1,2}
    \d\d : \d\d (?: : \d\d (?: [.,]\d{1,9} )?+ )?+"""
)
"""When a line of a log was written."""


def _with_check_digits(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Marks rules whose numbers have check digits or parts that are checked."""
    for rule in rules:
        checked = rule.check is not None and rule.check is not has_digits
        yield rule._replace(guard="check digits of a country or bank") if checked else rule


RULES = (
    *_with_check_digits(accounts.RULES),
    *guarded("addresses stand in logs and code", *net.RULES),
    *guarded("a secret that passes is spent", *secrets.RULES),
    *guarded("a code opens a door", *pins.RULES),
    *guarded("user names stand in logs and code", *handles.RULES),
    *_with_check_digits(people.RULES),
    *references.RULES,
    *vehicles.RULES,
    *addresses.RULES,
    *places.RULES,
    *times.RULES,
    *ages.RULES,
)


_SIGNS = frozenset(sign for rule in RULES for sign in rule.signs)
_ASCII_SIGNS = frozenset(filter(str.isascii, _SIGNS))


LONG = 10_000
"""Characters of a text from which on each rule shows progress."""


class Found(NamedTuple):
    """A match of a rule in a plain text."""

    start: int
    end: int
    type: str
    score: float
    private: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """A detector of structured identifiers, by form, checksum or telling words nearby.

    Runs locally, in time linear in the text. Digits of all scripts, full-width characters, and dashes and spaces of
    all kinds are read alike; invisible characters are skipped.

    Args:
        types: which of `IDENTIFIERS` to look for. A URL with a password or key in it is a SECRET as a whole; if
            secrets are not looked for, it is a URL.
        regions: countries (ISO 3166, two letters) whose national telephone formats are recognized, in the order in
            which they are tried.

    Raises:
        ConfigError: there is no such type or region.
    """

    types: tuple[str, ...] = IDENTIFIERS
    regions: tuple[str, ...] = REGIONS

    def __post_init__(self) -> None:
        if not set(self.types) <= set(IDENTIFIERS):
            raise ConfigError(f"types must be among {', '.join(IDENTIFIERS)}")
        if not are_regions(self.regions):
            raise ConfigError("regions must be two-letter country codes in capitals, such as US")

    @property
    def name(self) -> str:
        """What statements and rows call it."""
        return "patterns"

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The spans of all texts, in the order of texts and starts; they do not overlap.

        Overlapping spans of one type are joined. Between types the higher score wins, then the longer span; the rest
        of the loser stays a span, so that all figures a rule found are in some span.
        """
        spans = []
        for number, text in enumerate(texts):
            show_progress()
            plain, places = _plain(divided(text))
            found = _outside_stamps(plain, self._found(plain))
            for start, end, type_, score, private in _separate(plain, _owned(plain, found)):
                first, last = (
                    (start, end) if places is None else (places[start], places[end - 1] + 1)
                )
                spans.append(Span(number, first, last, type_, score, self.name, private))
        return spans

    def _found(self, plain: str) -> Iterator[Found]:
        """Finds all matches of all rules in a text."""
        digits, lower, told = len(_DIGIT.findall(plain)), plain.lower(), folded(plain)
        bare = without_foreign(plain)
        leads = _leads(bare) if digits else []
        for rule in self._wanted(digits, lower):
            if len(plain) > LONG:
                show_progress()
            seen = plain if rule.whole else bare
            found = _near(rule, seen, told) if rule.context else _anywhere(rule, seen, lower, leads)
            yield from self._typed(plain, found)
        if "HANDLE" in self.types:
            for start, end, score in handles.find_handles(plain):
                yield Found(start, end, "HANDLE", score)
        if "PHONE" in self.types and digits >= 6:
            for start, end, score in find_phones(bare, told, self.regions):
                yield Found(start, end, "PHONE", score)

    def _wanted(self, digits: int, lower: str) -> Iterator[Rule]:
        """The rules that can find something in a text with so many digits, given in small letters."""
        standing = {sign for sign in (_ASCII_SIGNS if lower.isascii() else _SIGNS) if sign in lower}
        types = {*self.types, "URL"} if "SECRET" in self.types else {*self.types}
        for rule in RULES:
            if rule.type in types and digits >= rule.digits and not standing.isdisjoint(rule.signs):
                yield rule

    def _typed(self, plain: str, found: Iterable[Found]) -> Iterator[Found]:
        """Calls a URL with a password or key in it a secret, and leaves out URLs that are not wanted."""
        for each in found:
            secret = (
                each.type == "URL"
                and "SECRET" in self.types
                and net.SECRET_URL.compiled.search(plain, each.start, each.end)
            )
            if secret:
                yield each._replace(type="SECRET", private=1.0)
            elif each.type in self.types:
                yield each


@cache
def _forms() -> dict[int, str]:
    """Digits of all scripts, full-width characters, dashes, spaces and quotes as ASCII, one character each."""
    digits = regex.findall(r"\d", "".join(map(chr, range(128, 0x20000))))
    return {
        **{
            ord(digit): str(place % 10) for place, digit in enumerate(digits)
        },  # in Unicode they come in runs 0 to 9
        **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
        **dict.fromkeys(map(ord, _DASHES), "-"),
        **dict.fromkeys(map(ord, _SPACES), " "),
        **dict.fromkeys(map(ord, "‘’‛ʼ′"), "'"),
        **dict.fromkeys(map(ord, "“”„‟″"), '"'),
        **{
            ord(letter): plain for letter, plain in zip("ſKıİ", "sKiI", strict=True)
        },  # equal when case is ignored
        0x2024: ".",
        0x2044: "/",
        0x2215: "/",
    }


def _plain(text: str) -> tuple[str, list[int] | None]:
    """A text in plain form, and the original index of each character; None if they are unchanged."""
    if text.isascii():
        return text.replace("\t", " "), None
    plain = text.translate(_forms())
    if not _INVISIBLE.search(plain):
        return plain, None
    places = [place for place, c in enumerate(plain) if c not in _HIDDEN]
    return "".join([plain[place] for place in places]), places


def _accept(rule: Rule, match: regex.Match[str]) -> Found | None:
    group = "value" if "value" in rule.pattern.compiled.groupindex else 0
    start, value = match.start(group), match.group(group)
    if rule.type == "URL":
        value = _trim(value)
    if not value or not _passes(rule, value):
        return None
    end = start + len(value.rstrip(".,;:?)]}*") if rule.type == "SECRET" else value)
    private = rule.private(value) if rule.private else 1.0
    return Found(start, end, rule.type, rule.score, private) if start < end else None


def _passes(rule: Rule, value: str) -> bool:
    """Whether a value passes a rule's check, and if it has figures, is one that was issued."""
    if rule.check is not None and not rule.check(value):
        return False
    return rule.type not in NUMBERED or not (
        is_dummy(value) or is_fraction(value) or (rule.leads and is_measured(value))
    )


def _trim(address: str) -> str:
    """A URL without trailing punctuation; paired brackets belong to it."""
    while address and (
        address[-1] in ".,;:!?'*_~…" or (address[-1] in ")]" and _unpaired(address))
    ):
        address = address[:-1]
    return address


def _unpaired(address: str) -> bool:
    return (
        address.count(")") > address.count("(")
        if address[-1] == ")"
        else address.count("]") > address.count("[")
    )


def _leads(bare: str) -> list[tuple[int, int]]:
    """Where numbers start that may have a few letters before them, and how many digits they have."""
    return [(match.start(), len(_DIGIT.findall(match["run"]))) for match in _LEAD.finditer(bare)]


def _anywhere(
    rule: Rule, plain: str, lower: str, leads: Sequence[tuple[int, int]]
) -> Iterator[Found]:
    """A rule's matches in a text; with `leads`, only at places where a number starts; with `reach`, near its signs."""
    at = 0
    if rule.leads:
        for start, digits in leads:
            if digits >= rule.digits and start >= at and (found := _at(rule, plain, start)):
                yield found
                at = found.end
        return
    for start, end in _windows(rule, lower):
        at = max(at, start)
        while match := rule.pattern.compiled.search(plain, at, end):
            if found := _accept(rule, match):
                yield found
            at = match.end() if found else match.start() + 1


def _at(rule: Rule, plain: str, start: int) -> Found | None:
    """A rule's match right there."""
    match = rule.pattern.compiled.match(plain, start)
    return _accept(rule, match) if match else None


def _windows(rule: Rule, lower: str) -> Iterator[tuple[int, int]]:
    """The parts of a text in which a rule's matches can lie, in order; they do not overlap."""
    if rule.reach is None:
        yield 0, len(lower)
        return
    before, behind = rule.reach
    places = sorted(place for sign in rule.signs for place in _places(sign, lower))
    start = end = -1
    for place in places:
        if place - before > end:
            if end >= 0:
                yield start, end
            start = max(0, place - before)
        end = place + behind
    if end >= 0:
        yield start, end


def _places(sign: str, lower: str) -> Iterator[int]:
    """Where a sign stands; two of them do not overlap."""
    at = lower.find(sign)
    while at >= 0:
        yield at
        at = lower.find(sign, at + len(sign))


def _near(rule: Rule, plain: str, told: Folded) -> Iterator[Found]:
    """A rule's matches near its context words: the first one behind them, and with `before` all in front of them."""
    assert rule.context is not None
    for begin, stop in rule.context.find(told):
        if first := _at(rule, plain, stop) if rule.linked else _behind(rule, plain, stop):
            yield first
            yield from _others(rule, plain, first.end)
        if rule.before:
            start = max(0, begin - AHEAD - LONGEST)
            for match in rule.pattern.compiled.finditer(plain, start, begin):
                if match.end() >= begin - AHEAD and (found := _accept(rule, match)):
                    yield found


def _behind(rule: Rule, plain: str, stop: int) -> Found | None:
    """A rule's first match that starts at most `BEHIND` characters behind a word."""
    for match in rule.pattern.compiled.finditer(plain, stop, stop + BEHIND + LONGEST):
        if match.start() > stop + BEHIND:
            return None
        if found := _accept(rule, match):
            return found
    return None


def _others(rule: Rule, plain: str, at: int) -> Iterator[Found]:
    """Up to ten more matches of a rule, each behind a word like "and"."""
    for _ in range(10):
        link = _AND.match(plain, at)
        found = _at(rule, plain, link.end()) if link else None
        if found is None:
            return
        yield found
        at = found.end


TOLD = ("EMAIL", "IP", "IBAN", "CARD", "NATIONAL_ID", "SECRET")
"""Identifiers whose form alone tells them apart: a web address with one in it is private."""


def _outside_stamps(plain: str, found: Iterable[Found]) -> list[Found]:
    """What was found; of numbers and secrets nothing of the time at which a line of a log was written."""
    stamps = [match.span() for match in _STAMP.finditer(plain)] if ":" in plain else []
    kept = []
    for each in found:
        at = bisect_left(stamps, each.start, key=lambda stamp: stamp[1] - 1)
        if each.type in (*NUMBERED, "SECRET") and at < len(stamps) and stamps[at][0] <= each.start:
            rest = _WRITTEN.search(plain, stamps[at][1], max(each.end, stamps[at][1]))
            if rest is None:
                continue
            each = each._replace(start=rest.start(), end=rest.end())
        kept.append(each)
    return kept


def _owned(plain: str, found: list[Found]) -> list[Found]:
    """What was found.

    Web addresses at the domain of a mail address, called somebody's own, or with an identifier in them are private.
    """
    domains = {
        plain[each.start : each.end].rpartition("@")[2].lower()
        for each in found
        if each.type == "EMAIL"
    }
    domains -= FREE_MAIL | EXAMPLES
    inner = sorted(
        (each.start, each.end) for each in found if each.type in TOLD and each.private >= 0.5
    )

    def own(each: Found) -> bool:
        held = inner[bisect_left(inner, (each.start, 0)) : bisect_left(inner, (each.end, 0))]
        if any(end <= each.end for _, end in held):
            return True
        parts = host_name(plain[each.start : each.end]).split(".")
        return any(".".join(parts[n:]) in domains for n in range(len(parts) - 1)) or bool(
            OWN.compiled.search(plain, max(0, each.start - 40), each.start)
        )

    return [
        each._replace(private=0.8)
        if each.type == "URL" and each.private < 0.5 and own(each)
        else each
        for each in found
    ]


def _separate(plain: str, found: Iterable[Found]) -> list[Found]:
    """Spans in order and without overlap: higher scores win, then longer spans; losers keep what is left of them.

    Of a number only what has figures is left: the word before it names what the winner is.
    """
    taken: list[Found] = []
    for one in sorted(
        _joined(found),
        key=lambda f: (-f.score, f.start - f.end, f.start, IDENTIFIERS.index(f.type)),
    ):
        at = bisect_left(taken, one.start, key=lambda f: f.end - 1)
        stop = bisect_left(taken, one.end, key=lambda f: f.start)
        if at == stop:
            taken.insert(at, one)
            continue
        edges = [one.start, *(edge for f in taken[at:stop] for edge in (f.start, f.end)), one.end]
        rest = []
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            inner = _WRITTEN.search(plain, start, max(start, end))
            if inner and (one.type not in NUMBERED or _DIGIT.search(inner[0])):
                rest.append(one._replace(start=inner.start(), end=inner.end()))
        taken[at:stop] = sorted([*taken[at:stop], *rest])
    return taken


def _joined(found: Iterable[Found]) -> list[Found]:
    """Spans where overlapping ones of the same type are joined."""
    joined: list[Found] = []
    for one in sorted(found, key=lambda f: (f.type, f.start)):
        if joined and joined[-1].type == one.type and one.start < joined[-1].end:
            last = joined.pop()
            one = last._replace(
                end=max(last.end, one.end),
                score=max(last.score, one.score),
                private=max(last.private, one.private),
            )
        joined.append(one)
    return joined
