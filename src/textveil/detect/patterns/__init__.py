"""Patterns: recognizes structured identifiers by form, check digits and nearby words.

In: texts. Out: spans that do not overlap.
Not here: the form of each identifier (`accounts`, `net`, `secrets`, `people`, `references`,
`vehicles`, `addresses`, `places`, `phones`), names (`textveil.models`), and users' own lists
(`lists`).
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
"""In characters, an identifier's largest distance behind its context word and before it; and its
largest length."""

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
"""The start of a number that may begin with a few letters.

The group `run` holds the digits and short words from there on.
"""
_AND = Late(
    r"[ ]?[,;/&][ ]{0,2}|[ ](?:and|or|und|oder|et|ou|y|o|e|i|oraz|en|ve|veya|và|hoặc|и|или|\+)[ ]|[\x01、]{1,3}",
    regex.IGNORECASE,
)
_STAMP = Late(
    r"""(?xm) ^[ ]*+ [\[(]?+ (?: (?:19|20)\d\d [\-/.] \d\d [\-/.] \d\d | \d\d-\d\d ) [T ,]{1,2}
    \d\d : \d\d (?: : \d\d (?: [.,]\d{1,9} )?+ )?+"""
)
"""The time stamp at the start of a log line."""


def _with_check_digits(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Marks the rules that check the digits or parts of a number."""
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
"""The length of a text, in characters, from which each rule shows progress."""


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

    Runs locally, in time linear in the text. Digits of all scripts, full-width characters, and
    dashes and spaces of all kinds are read alike; invisible characters are skipped.

    Args:
        types: which of `IDENTIFIERS` to look for. A URL with a password or key in it is a SECRET as
            a whole; if secrets are not looked for, it is a URL.
        regions: countries (ISO 3166, two letters) whose national telephone formats are recognized,
            in the order in which they are tried.

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
        """The detector's name in statements and rows."""
        return "patterns"

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the spans of all texts, by text and start.

        They do not overlap: overlapping spans of one type are joined. Between types the higher
        score wins, then the longer span; the rest of the loser stays a span, so that all digits a
        rule found are in some span.
        """
        spans = []
        for number, text in enumerate(texts):
            show_progress()
            plain, places = _to_plain(divided(text))
            matches = _cut_stamps(plain, self._find_matches(plain))
            for start, end, type_, score, private in _resolve_overlaps(
                plain, _mark_owned(plain, matches)
            ):
                first, last = (
                    (start, end) if places is None else (places[start], places[end - 1] + 1)
                )
                spans.append(Span(number, first, last, type_, score, self.name, private))
        return spans

    def _find_matches(self, plain: str) -> Iterator[Found]:
        """Finds all matches of all rules in a text."""
        digits, lower, folded_text = len(_DIGIT.findall(plain)), plain.lower(), folded(plain)
        bare = without_foreign(plain)
        leads = _find_leads(bare) if digits else []
        for rule in self._select_rules(digits, lower):
            if len(plain) > LONG:
                show_progress()
            seen = plain if rule.whole else bare
            matches = (
                _find_near(rule, seen, folded_text)
                if rule.context
                else _find_anywhere(rule, seen, lower, leads)
            )
            yield from self._set_types(plain, matches)
        if "HANDLE" in self.types:
            for start, end, score in handles.find_handles(plain):
                yield Found(start, end, "HANDLE", score)
        if "PHONE" in self.types and digits >= 6:
            for start, end, score in find_phones(bare, folded_text, self.regions):
                yield Found(start, end, "PHONE", score)

    def _select_rules(self, digits: int, lower: str) -> Iterator[Rule]:
        """Selects the rules that can match in a text.

        Args:
            digits: the number of digits in the text.
            lower: the text in small letters.
        """
        standing = {sign for sign in (_ASCII_SIGNS if lower.isascii() else _SIGNS) if sign in lower}
        types = {*self.types, "URL"} if "SECRET" in self.types else {*self.types}
        for rule in RULES:
            if rule.type in types and digits >= rule.digits and not standing.isdisjoint(rule.signs):
                yield rule

    def _set_types(self, plain: str, matches: Iterable[Found]) -> Iterator[Found]:
        """Sets the type of URLs, and drops types that are not wanted.

        A URL with a password or key in it becomes a secret.
        """
        for match in matches:
            secret = (
                match.type == "URL"
                and "SECRET" in self.types
                and net.SECRET_URL.compiled.search(plain, match.start, match.end)
            )
            if secret:
                yield match._replace(type="SECRET", private=1.0)
            elif match.type in self.types:
                yield match


@cache
def _plain_forms() -> dict[int, str]:
    """Maps characters of all scripts to a plain form, one to one.

    Digits, full-width characters, dashes, spaces and quotes become ASCII.
    """
    digits = regex.findall(r"\d", "".join(map(chr, range(128, 0x20000))))
    return {
        **{
            ord(digit): str(place % 10) for place, digit in enumerate(digits)
        },  # in Unicode digits come in runs 0 to 9
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


def _to_plain(text: str) -> tuple[str, list[int] | None]:
    """Returns a text in plain form, with its original indices.

    The indices are those of each character; None if they are unchanged.
    """
    if text.isascii():
        return text.replace("\t", " "), None
    plain = text.translate(_plain_forms())
    if not _INVISIBLE.search(plain):
        return plain, None
    places = [place for place, c in enumerate(plain) if c not in _HIDDEN]
    return "".join([plain[place] for place in places]), places


def _accept(rule: Rule, match: regex.Match[str]) -> Found | None:
    group = "value" if "value" in rule.pattern.compiled.groupindex else 0
    start, value = match.start(group), match.group(group)
    if rule.type == "URL":
        value = _trim_url(value)
    if not value or not _passes(rule, value):
        return None
    end = start + len(value.rstrip(".,;:?)]}*") if rule.type == "SECRET" else value)
    private = rule.private(value) if rule.private else 1.0
    return Found(start, end, rule.type, rule.score, private) if start < end else None


def _passes(rule: Rule, value: str) -> bool:
    """True if a value passes a rule's check.

    A number must also be able to have been issued: no dummy, fraction or measured value.
    """
    if rule.check is not None and not rule.check(value):
        return False
    return rule.type not in NUMBERED or not (
        is_dummy(value) or is_fraction(value) or (rule.leads and is_measured(value))
    )


def _trim_url(address: str) -> str:
    """Removes trailing punctuation from a URL, except paired brackets."""
    while address and (
        address[-1] in ".,;:!?'*_~…" or (address[-1] in ")]" and _is_unpaired(address))
    ):
        address = address[:-1]
    return address


def _is_unpaired(address: str) -> bool:
    return (
        address.count(")") > address.count("(")
        if address[-1] == ")"
        else address.count("]") > address.count("[")
    )


def _find_leads(bare: str) -> list[tuple[int, int]]:
    """Finds the starts of numbers, with their counts of digits.

    A number may begin with a few letters.
    """
    return [(match.start(), len(_DIGIT.findall(match["run"]))) for match in _LEAD.finditer(bare)]


def _find_anywhere(
    rule: Rule, plain: str, lower: str, leads: Sequence[tuple[int, int]]
) -> Iterator[Found]:
    """Finds a rule's matches in a text.

    With `leads`, they begin only where a number starts; with `reach`, they lie near the rule's
    signs.
    """
    at = 0
    if rule.leads:
        for start, digits in leads:
            if digits >= rule.digits and start >= at and (hit := _match_at(rule, plain, start)):
                yield hit
                at = hit.end
        return
    for start, end in _find_windows(rule, lower):
        at = max(at, start)
        while match := rule.pattern.compiled.search(plain, at, end):
            if hit := _accept(rule, match):
                yield hit
            at = match.end() if hit else match.start() + 1


def _match_at(rule: Rule, plain: str, start: int) -> Found | None:
    """Returns a rule's match at a place, or None."""
    match = rule.pattern.compiled.match(plain, start)
    return _accept(rule, match) if match else None


def _find_windows(rule: Rule, lower: str) -> Iterator[tuple[int, int]]:
    """Finds the parts of a text that can hold a rule's matches.

    The parts are in order and do not overlap.
    """
    if rule.reach is None:
        yield 0, len(lower)
        return
    before, behind = rule.reach
    places = sorted(place for sign in rule.signs for place in _find_signs(sign, lower))
    start = end = -1
    for place in places:
        if place - before > end:
            if end >= 0:
                yield start, end
            start = max(0, place - before)
        end = place + behind
    if end >= 0:
        yield start, end


def _find_signs(sign: str, lower: str) -> Iterator[int]:
    """Finds the places of a sign; two of them do not overlap."""
    at = lower.find(sign)
    while at >= 0:
        yield at
        at = lower.find(sign, at + len(sign))


def _find_near(rule: Rule, plain: str, folded_text: Folded) -> Iterator[Found]:
    """Finds a rule's matches near its context words.

    These are the first match behind the words, and with `before` all matches in front of them.
    """
    assert rule.context is not None
    for begin, stop in rule.context.find(folded_text):
        if (
            first := _match_at(rule, plain, stop)
            if rule.linked
            else _find_behind(rule, plain, stop)
        ):
            yield first
            yield from _find_others(rule, plain, first.end)
        if rule.before:
            start = max(0, begin - AHEAD - LONGEST)
            for match in rule.pattern.compiled.finditer(plain, start, begin):
                if match.end() >= begin - AHEAD and (hit := _accept(rule, match)):
                    yield hit


def _find_behind(rule: Rule, plain: str, stop: int) -> Found | None:
    """Finds the first match that starts soon behind a word.

    It starts at most `BEHIND` characters behind the word.
    """
    for match in rule.pattern.compiled.finditer(plain, stop, stop + BEHIND + LONGEST):
        if match.start() > stop + BEHIND:
            return None
        if hit := _accept(rule, match):
            return hit
    return None


def _find_others(rule: Rule, plain: str, at: int) -> Iterator[Found]:
    """Finds up to ten more matches, each behind a word like "and"."""
    for _ in range(10):
        link = _AND.match(plain, at)
        hit = _match_at(rule, plain, link.end()) if link else None
        if hit is None:
            return
        yield hit
        at = hit.end


TOLD = ("EMAIL", "IP", "IBAN", "CARD", "NATIONAL_ID", "SECRET")
"""Identifiers whose form alone is conclusive: a web address that holds one is private."""


def _cut_stamps(plain: str, hits: Iterable[Found]) -> list[Found]:
    """Cuts numbers and secrets out of the time stamps of logs.

    Matches inside a stamp are dropped, others begin behind it.
    """
    stamps = [match.span() for match in _STAMP.finditer(plain)] if ":" in plain else []
    outside = []
    for hit in hits:
        at = bisect_left(stamps, hit.start, key=lambda stamp: stamp[1] - 1)
        if hit.type in (*NUMBERED, "SECRET") and at < len(stamps) and stamps[at][0] <= hit.start:
            rest = _WRITTEN.search(plain, stamps[at][1], max(hit.end, stamps[at][1]))
            if rest is None:
                continue
            hit = hit._replace(start=rest.start(), end=rest.end())
        outside.append(hit)
    return outside


def _mark_owned(plain: str, hits: list[Found]) -> list[Found]:
    """Marks web addresses of persons as private.

    These are at the domain of a mail address in the text, called somebody's own, or hold an
    identifier.
    """
    domains = {
        plain[hit.start : hit.end].rpartition("@")[2].lower() for hit in hits if hit.type == "EMAIL"
    }
    domains -= FREE_MAIL | EXAMPLES
    inner = sorted((hit.start, hit.end) for hit in hits if hit.type in TOLD and hit.private >= 0.5)

    def is_owned(hit: Found) -> bool:
        held = inner[bisect_left(inner, (hit.start, 0)) : bisect_left(inner, (hit.end, 0))]
        if any(end <= hit.end for _, end in held):
            return True
        parts = host_name(plain[hit.start : hit.end]).split(".")
        return any(".".join(parts[n:]) in domains for n in range(len(parts) - 1)) or bool(
            OWN.compiled.search(plain, max(0, hit.start - 40), hit.start)
        )

    return [
        hit._replace(private=0.8)
        if hit.type == "URL" and hit.private < 0.5 and is_owned(hit)
        else hit
        for hit in hits
    ]


def _resolve_overlaps(plain: str, hits: Iterable[Found]) -> list[Found]:
    """Resolves overlaps; returns the matches in order.

    Higher scores win, then longer spans; losers keep the rest of their text. Of a number only a
    rest with digits is kept: the word before it is the winner's key.
    """
    taken: list[Found] = []
    for one in sorted(
        _join_same_type(hits),
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


def _join_same_type(hits: Iterable[Found]) -> list[Found]:
    """Joins overlapping matches of the same type."""
    joined: list[Found] = []
    for one in sorted(hits, key=lambda f: (f.type, f.start)):
        if joined and joined[-1].type == one.type and one.start < joined[-1].end:
            last = joined.pop()
            one = last._replace(
                end=max(last.end, one.end),
                score=max(last.score, one.score),
                private=max(last.private, one.private),
            )
        joined.append(one)
    return joined
