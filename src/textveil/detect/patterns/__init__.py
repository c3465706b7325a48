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

from textveil.detect.bounds import replace_separators
from textveil.detect.liveness import signal_progress
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
from textveil.detect.patterns.hosts import EXAMPLES, FREE_MAIL, OWNER_WORDS, get_host_name
from textveil.detect.patterns.phones import REGIONS, are_regions, find_phones
from textveil.detect.patterns.rules import (
    NUMBERED_TYPES,
    FoldedText,
    Rule,
    RuleIndex,
    fold_text,
    guard_rules,
    has_digits,
    is_dummy,
    is_fraction,
    is_measurement,
    mask_foreign_letters,
)
from textveil.detect.spans import IDENTIFIERS, Span
from textveil.errors import ConfigError
from textveil.text import LazyPattern

MAX_DISTANCE_BEHIND, MAX_DISTANCE_AHEAD, MAX_IDENTIFIER_CHARACTERS = 45, 30, 80
"""In characters, an identifier's largest distance behind its context word and before it; and its
largest length."""

_HIDDEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u180e\u2061\u2062\u2063\u2064"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\u1400\u2043"
_SPACES = "\t\x0b\x0c\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = LazyPattern(f"[{_HIDDEN}]")
_WRITTEN = LazyPattern(r"[\p{L}\p{N}](?:.*[\p{L}\p{N}])?", regex.DOTALL)
_DIGIT = LazyPattern("[0-9]")
_LEAD = LazyPattern(
    r"""(?<![\w@]) (?= (?: [A-Za-z]{0,6}\d | (?: [A-Z]{1,3} [ .\-/]{1,2} ){1,2} \d | [A-Z9]{5} [ ] \d ) )
    (?= (?P<run> [A-Za-z0-9]++
        (?: [ .\-/+]{1,2} [A-Za-z]{0,4} \d [A-Za-z0-9]*+ | [ .\-/]{1,2} [A-Za-z]{1,4} \b ){0,12}+ ) )""",
    regex.VERBOSE,
)
"""The start of a number that may begin with a few letters.

The group `run` holds the digits and short words from there on.
"""
_AND = LazyPattern(
    r"[ ]?[,;/&][ ]{0,2}|[ ](?:and|or|und|oder|et|ou|y|o|e|i|oraz|en|ve|veya|và|hoặc|и|или|\+)[ ]|[\x01、]{1,3}",
    regex.IGNORECASE,
)


def _guard_check_digits(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Marks the rules that check the digits or parts of a number."""
    for rule in rules:
        checked = rule.check is not None and rule.check is not has_digits
        yield rule._replace(guard="check digits of a country or bank") if checked else rule


RULES = (
    *_guard_check_digits(accounts.RULES),
    *guard_rules("addresses stand in logs and code", *net.RULES),
    *guard_rules("a secret that passes is spent", *secrets.RULES),
    *guard_rules("a code opens a door", *pins.RULES),
    *guard_rules("user names stand in logs and code", *handles.RULES),
    *_guard_check_digits(people.RULES),
    *references.RULES,
    *vehicles.RULES,
    *addresses.RULES,
    *places.RULES,
    *times.RULES,
    *ages.RULES,
)


_INDEXES: dict[tuple[str, ...], RuleIndex] = {}


def _get_index(types: tuple[str, ...]) -> RuleIndex:
    """Returns the index of the rules for some types, built once."""
    index = _INDEXES.get(types)
    if index is None or index.source is not RULES:  # rules may be switched off in ablations
        wanted = {*types, "URL"} if "SECRET" in types else {*types}
        index = _INDEXES[types] = RuleIndex(RULES, wanted)
    return index


MIN_PROGRESS_CHARACTERS = 10_000
"""The length of a text, in characters, from which each rule shows progress."""


GROUP_TEXTS, GROUP_CHARACTERS = 32, 4_000
"""The largest groups of texts in which signs of rules are sought at once."""


class RuleMatch(NamedTuple):
    """A match of a rule in a plain text."""

    start: int
    end: int
    type: str
    score: float
    privacy_score: float = 1.0


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
        index = _get_index(self.types)
        for group in _group_texts(texts):
            plain_texts = [convert_to_plain(replace_separators(texts[i])) for i in group]
            folded_texts = [fold_text(plain) for plain, _ in plain_texts]
            signs = index.find_signs(folded_texts)
            for number, (plain, indices), folded in zip(
                group, plain_texts, folded_texts, strict=True
            ):
                signal_progress()
                digits = len(_DIGIT.findall(plain))
                rules = index.select(folded, digits, signs)
                matches = [*self._find_matches(plain, folded, digits, rules)]
                for start, end, type_, score, private in (
                    _resolve_overlaps(plain, _mark_owned(plain, matches)) if matches else ()
                ):
                    first, last = (
                        # One past the last visible character, without invisible ones behind it.
                        (start, end) if indices is None else (indices[start], indices[end - 1] + 1)
                    )
                    spans.append(Span(number, first, last, type_, score, self.name, private))
        return spans

    def _find_matches(
        self, plain: str, folded: FoldedText, digits: int, rules: Iterable[Rule]
    ) -> Iterator[RuleMatch]:
        """Finds all matches of some rules in a text."""
        bare = mask_foreign_letters(plain)
        number_starts = _find_number_starts(bare) if digits else []
        for rule in rules:
            if len(plain) > MIN_PROGRESS_CHARACTERS:
                signal_progress()
            searched_text = plain if rule.keep_scripts else bare
            matches = (
                _find_near(rule, searched_text, folded)
                if rule.context
                else _find_anywhere(rule, searched_text, folded.lower, number_starts)
            )
            yield from self._set_types(plain, matches)
        if "HANDLE" in self.types:
            for start, end, score in handles.find_handles(plain):
                yield RuleMatch(start, end, "HANDLE", score)
        if "PHONE" in self.types and digits >= 6:
            for start, end, score in find_phones(bare, folded, self.regions):
                yield RuleMatch(start, end, "PHONE", score)

    def _set_types(self, plain: str, matches: Iterable[RuleMatch]) -> Iterator[RuleMatch]:
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
                yield match._replace(type="SECRET", privacy_score=1.0)
            elif match.type in self.types:
                yield match


def _group_texts(texts: Sequence[str]) -> Iterator[range]:
    """Groups texts so that the signs of a group are sought at once, short ones with others."""
    start = size = 0
    for i, text in enumerate(texts):
        size += len(text)
        if size > GROUP_CHARACTERS or i - start >= GROUP_TEXTS:
            if start < i:
                yield range(start, i)
            start, size = i, len(text)
    if start < len(texts):
        yield range(start, len(texts))


@cache
def _map_plain_forms() -> dict[int, str]:
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


def convert_to_plain(text: str) -> tuple[str, list[int] | None]:
    """Returns a text in plain form, with its original indices.

    The indices are those of each character; None if they are unchanged.
    """
    if text.isascii():
        return text.replace("\t", " "), None
    plain = text.translate(_map_plain_forms())
    if not _INVISIBLE.search(plain):
        return plain, None
    places = [place for place, c in enumerate(plain) if c not in _HIDDEN]
    return "".join([plain[place] for place in places]), places


def _accept(rule: Rule, match: regex.Match[str]) -> RuleMatch | None:
    group = "value" if "value" in rule.pattern.compiled.groupindex else 0
    start, value = match.start(group), match.group(group)
    if rule.type == "URL":
        value = _trim_url(value)
    if not value or not _is_valid_value(rule, value):
        return None
    end = start + len(value.rstrip(".,;:?)]}*") if rule.type == "SECRET" else value)
    private = rule.score_privacy(value) if rule.score_privacy else 1.0
    return RuleMatch(start, end, rule.type, rule.score, private) if start < end else None


def _is_valid_value(rule: Rule, value: str) -> bool:
    """True if a value passes a rule's check.

    A number must also be able to have been issued: no dummy, fraction or measured value.
    """
    if rule.check is not None and not rule.check(value):
        return False
    return rule.type not in NUMBERED_TYPES or not (
        is_dummy(value) or is_fraction(value) or (rule.numeric_prefix and is_measurement(value))
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


def _find_number_starts(bare: str) -> list[tuple[int, int]]:
    """Finds the starts of numbers, with their counts of digits.

    A number may begin with a few letters.
    """
    return [(match.start(), len(_DIGIT.findall(match["run"]))) for match in _LEAD.finditer(bare)]


def _find_anywhere(
    rule: Rule, plain: str, lower: str, number_starts: Sequence[tuple[int, int]]
) -> Iterator[RuleMatch]:
    """Finds a rule's matches in a text.

    With `number_starts`, they begin only where a number starts; with `reach`, they lie near the
    rule's signs.
    """
    at = 0
    if rule.numeric_prefix:
        for start, digits in number_starts:
            if digits >= rule.digits and start >= at and (hit := _match_at(rule, plain, start)):
                yield hit
                at = hit.end
        return
    for start, end in _find_windows(rule, lower):
        at = max(at, start)
        while match := rule.pattern.compiled.search(plain, at, end):
            if hit := _accept(rule, match):
                yield hit
            # A match that is refused may hide a valid one that begins inside it.
            at = match.end() if hit else match.start() + 1


def _match_at(rule: Rule, plain: str, start: int) -> RuleMatch | None:
    """Returns a rule's match at a place, or None."""
    match = rule.pattern.compiled.match(plain, start)
    return _accept(rule, match) if match else None


def _find_windows(rule: Rule, lower: str) -> Iterator[tuple[int, int]]:
    """Finds the parts of a text that can hold a rule's matches.

    The parts are in order and do not overlap.
    """
    if rule.window is None:
        yield 0, len(lower)
        return
    before, behind = rule.window
    places = sorted(place for trigger in rule.triggers for place in _find_trigger(trigger, lower))
    start = end = -1
    for place in places:
        if place - before > end:
            if end >= 0:
                yield start, end
            start = max(0, place - before)
        end = place + behind
    if end >= 0:
        yield start, end


def _find_trigger(trigger: str, lower: str) -> Iterator[int]:
    """Finds the places of a sign; two of them do not overlap."""
    at = lower.find(trigger)
    while at >= 0:
        yield at
        at = lower.find(trigger, at + len(trigger))


def _find_near(rule: Rule, plain: str, folded_text: FoldedText) -> Iterator[RuleMatch]:
    """Finds a rule's matches near its context words.

    These are the first match behind the words, and with `before` all matches in front of them.
    """
    assert rule.context is not None
    for begin, stop in rule.context.find(folded_text):
        if (
            first := _match_at(rule, plain, stop)
            if rule.adjacent
            else _find_behind(rule, plain, stop)
        ):
            yield first
            yield from _find_further(rule, plain, first.end)
        if rule.can_precede:
            start = max(0, begin - MAX_DISTANCE_AHEAD - MAX_IDENTIFIER_CHARACTERS)
            for match in rule.pattern.compiled.finditer(plain, start, begin):
                if match.end() >= begin - MAX_DISTANCE_AHEAD and (hit := _accept(rule, match)):
                    yield hit


def _find_behind(rule: Rule, plain: str, stop: int) -> RuleMatch | None:
    """Finds the first match that starts soon behind a word.

    It starts at most `MAX_DISTANCE_BEHIND` characters behind the word.
    """
    for match in rule.pattern.compiled.finditer(
        plain, stop, stop + MAX_DISTANCE_BEHIND + MAX_IDENTIFIER_CHARACTERS
    ):
        if match.start() > stop + MAX_DISTANCE_BEHIND:
            return None
        if hit := _accept(rule, match):
            return hit
    return None


def _find_further(rule: Rule, plain: str, at: int) -> Iterator[RuleMatch]:
    """Finds up to ten more matches, each behind a word like "and"."""
    for _ in range(10):
        link = _AND.match(plain, at)
        hit = _match_at(rule, plain, link.end()) if link else None
        if hit is None:
            return
        yield hit
        at = hit.end


CONCLUSIVE_TYPES = ("EMAIL", "IP", "IBAN", "CARD", "NATIONAL_ID", "SECRET")
"""Identifiers whose form alone is conclusive: a web address that holds one is private."""


def _mark_owned(plain: str, hits: list[RuleMatch]) -> list[RuleMatch]:
    """Marks web addresses of persons as private.

    These are at the domain of a mail address in the text, called somebody's own, or hold an
    identifier.
    """
    domains = {
        plain[hit.start : hit.end].rpartition("@")[2].lower() for hit in hits if hit.type == "EMAIL"
    }
    domains -= FREE_MAIL | EXAMPLES
    inner = sorted(
        (hit.start, hit.end)
        for hit in hits
        if hit.type in CONCLUSIVE_TYPES and hit.privacy_score >= 0.5
    )

    def is_owned(hit: RuleMatch) -> bool:
        inner_places = inner[bisect_left(inner, (hit.start, 0)) : bisect_left(inner, (hit.end, 0))]
        if any(end <= hit.end for _, end in inner_places):
            return True
        parts = get_host_name(plain[hit.start : hit.end]).split(".")
        return any(".".join(parts[n:]) in domains for n in range(len(parts) - 1)) or bool(
            OWNER_WORDS.compiled.search(plain, max(0, hit.start - 40), hit.start)
        )

    return [
        hit._replace(privacy_score=0.8)
        if hit.type == "URL" and hit.privacy_score < 0.5 and is_owned(hit)
        else hit
        for hit in hits
    ]


def _resolve_overlaps(plain: str, hits: Iterable[RuleMatch]) -> list[RuleMatch]:
    """Resolves overlaps; returns the matches in order.

    Higher scores win, then longer spans; losers keep the rest of their text. Of a number only a
    rest with digits is kept: the word before it is the winner's key.
    """
    resolved: list[RuleMatch] = []
    for match in sorted(
        _drop_inner_phones(_join_same_type(hits)),
        key=lambda f: (-f.score, f.start - f.end, f.start, IDENTIFIERS.index(f.type)),
    ):
        # `resolved` is sorted and without overlaps, so two searches find all that the match meets.
        at = bisect_left(resolved, match.start, key=lambda f: f.end - 1)
        stop = bisect_left(resolved, match.end, key=lambda f: f.start)
        if at == stop:
            resolved.insert(at, match)
            continue
        edges = [
            match.start,
            *(edge for f in resolved[at:stop] for edge in (f.start, f.end)),
            match.end,
        ]
        remainders = []
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            inner = _WRITTEN.search(plain, start, max(start, end))
            if inner and (match.type not in NUMBERED_TYPES or _DIGIT.search(inner[0])):
                remainders.append(match._replace(start=inner.start(), end=inner.end()))
        resolved[at:stop] = sorted([*resolved[at:stop], *remainders])
    return resolved


def _drop_inner_phones(hits: Sequence[RuleMatch]) -> list[RuleMatch]:
    """Drops the telephone numbers in the midst of an address: they are postcodes.

    Words right before it still prove a number a telephone's.
    """
    addresses = sorted(hit[:2] for hit in hits if hit.type == "ADDRESS")

    def is_inner(hit: RuleMatch) -> bool:
        at = bisect_left(addresses, (hit.start, 0)) - 1
        return at >= 0 and hit.end < addresses[at][1]

    return [hit for hit in hits if hit.type != "PHONE" or hit.score == 1 or not is_inner(hit)]


def _join_same_type(hits: Iterable[RuleMatch]) -> list[RuleMatch]:
    """Joins overlapping matches of the same type."""
    joined: list[RuleMatch] = []
    for match in sorted(hits, key=lambda f: (f.type, f.start)):
        if joined and joined[-1].type == match.type and match.start < joined[-1].end:
            last = joined.pop()
            match = last._replace(
                end=max(last.end, match.end),
                score=max(last.score, match.score),
                privacy_score=max(last.privacy_score, match.privacy_score),
            )
        joined.append(match)
    return joined
