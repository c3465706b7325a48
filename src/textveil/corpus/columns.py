"""Columns of a file: what each holds, and whether it points to a person.

In: a file with fields. Out: `FileProfile`, without a value of the file.
Not here: what is proposed for a column (`roles`), and how a file is read (`files`).
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from textveil.corpus.row_progress import count_rows
from textveil.detect import classify_key, is_person_key, load_detector
from textveil.errors import TextveilError, has_private_form
from textveil.files import formats
from textveil.files.fields import list_titles
from textveil.guarantee import TYPE_NOUNS
from textveil.text import LazyPattern, lexicon

JUDGED_ROWS = 20_000
"""The first rows of a file, by which its columns are judged."""

COUNTED_CHARACTERS = 1_000
"""The first characters of a value whose words are counted."""

COUNTED_ROWS = 1_000
"""The rows after which progress is counted."""

SAMPLE_VALUES = 200
"""The distinct values of a column that are looked at for identifiers."""

MIN_ROWS = 20
"""The fewest values of which it says something that nearly all differ."""

MIN_DISTINCT_SHARE = 0.9
"""The share of distinct values from which nearly all differ."""

MIN_IDENTIFIER_SHARE = 0.5
"""The share of values of one type from which a column holds that type."""

MIN_COVERED_SHARE = 0.8
"""The share of a value that a finding covers if the value is one."""

MAX_FILES, WARNING_ROWS = 10, 2_000
"""The files of a run whose copied columns are looked at, and the first rows of each."""

MIN_TEXT_WORDS = 4.0
"""The average number of words from which a column holds texts."""

HARMLESS_TYPES = frozenset(("DATE", "AGE", "URL", "HOST"))
"""Types that say little of whom a row is about."""

PERSON_KINDS = frozenset(("given", "family", "full", "author", "people", "party", "role"))
KEY_TYPES = {
    **dict.fromkeys(PERSON_KINDS, "PERSON"),
    **dict.fromkeys(("address", "street"), "ADDRESS"),
    **dict.fromkeys(("latitude", "longitude", "coordinates"), "COORDINATES"),
    "account": "ACCOUNT",
    "birth": "BIRTH_DATE",
    "booking": "BOOKING",
    "card": "CARD",
    "email": "EMAIL",
    "handle": "HANDLE",
    "iban": "IBAN",
    "id": "ID",
    "ip": "IP",
    "licence": "LICENCE",
    "mac": "MAC",
    "medical": "MEDICAL_RECORD",
    "national": "NATIONAL_ID",
    "phone": "PHONE",
    "plate": "PLATE",
    "secret": "SECRET",
    "vin": "VIN",
}
"""Types of values by the kind that the name of a column announces; see `data/vocabulary`."""

DISTINCT = "nearly all its values differ"
HOLDS = "holds "
"""The beginning of a reason that is nearly certain, for it follows from what a column holds."""

_UNSPACED = LazyPattern(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]{2}")
"""About a word of a script without spaces."""

_WHOLE = re.compile(r"[-+]?\d+")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.+Z-]*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_TRUTH = frozenset(("true", "false", "yes", "no"))


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column, by what its first rows hold. It has none of the values.

    Attributes:
        name: of the column.
        kind: "texts", "words", "whole numbers", "numbers", "dates", "true or false", or "nothing".
        rows: how many rows were looked at.
        filled: how many of them have a value.
        distinct: how many values differ.
        longest: characters of the longest value.
        mean_words: words of a value, on average.
        type: the type of identifier that it holds, or is named after; "" for none.
        is_named: whether only its name says so.
        is_person: whether its name is one for persons.
    """

    name: str
    kind: str
    rows: int
    filled: int
    distinct: int
    longest: int
    mean_words: float
    type: str = ""
    is_named: bool = False
    is_person: bool = False

    @property
    def is_unique(self) -> bool:
        """A flag: each row has a value of its own."""
        return 0 < self.rows == self.distinct

    @property
    def is_full(self) -> bool:
        """A flag: each row has a value."""
        return self.filled == self.rows

    @property
    def nearly_all_differ(self) -> bool:
        """A flag: of enough values nearly all differ."""
        return self.filled >= MIN_ROWS and self.distinct >= MIN_DISTINCT_SHARE * self.filled

    @property
    def warning(self) -> str:
        """The reason why somebody may be found by the column; "" for none."""
        if self.type:
            nouns = TYPE_NOUNS[self.type][1] if self.type in TYPE_NOUNS else self.type
            return f"named like {nouns}" if self.is_named else HOLDS + nouns
        if self.kind == "texts":
            return HOLDS + "texts"
        return DISTINCT if self.nearly_all_differ else ""


@dataclass(frozen=True, kw_only=True)
class FileProfile:
    """The columns of a file, by what they hold.

    Attributes:
        columns: in the order of the file.
        rows: how many rows were read.
        is_whole: whether these are all rows of the file.
        has_titles: whether the names of its columns look like names, and not like a row.
    """

    columns: tuple[Column, ...]
    rows: int
    is_whole: bool
    has_titles: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def find_column(self, name: str) -> Column | None:
        """Returns the column of a name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(kw_only=True)
class _Counter:
    """The counts of a column while rows are read."""

    name: str
    filled: int = 0
    longest: int = 0
    words: int = 0
    kinds: set[str] = field(default_factory=set)
    digests: set[int] = field(default_factory=set, repr=False)
    sample: dict[str, None] = field(default_factory=dict, repr=False)

    def add(self, value: Any) -> None:
        if value is None or value == "":
            return
        text = value if isinstance(value, str) else str(value)
        self.filled += 1
        self.longest = max(self.longest, len(text))
        self.digests.add(hash(text))
        self.kinds.add(_classify(value, text))
        self.words += _count_words(text[:COUNTED_CHARACTERS])
        if len(self.sample) < SAMPLE_VALUES:
            self.sample[text] = None

    def build(self, rows: int, is_judged: bool) -> Column:
        words = self.words / max(1, self.filled)
        kind = self._find_kind(words)
        may_hold = is_judged and kind in ("words", "whole numbers")
        held = self._find_type() if may_hold else ""
        named = "" if held else KEY_TYPES.get(classify_key(self.name) or "", "")
        return Column(
            name=self.name,
            kind=kind,
            rows=rows,
            filled=self.filled,
            distinct=len(self.digests),
            longest=self.longest,
            mean_words=round(words, 1),
            type=held or named,
            is_named=bool(named),
            is_person=is_person_key(self.name) or named == "PERSON",
        )

    def _find_kind(self, words: float) -> str:
        if not self.filled:
            return "nothing"
        if len(self.kinds) == 1:
            (kind,) = self.kinds
        else:
            kind = "numbers" if self.kinds == {"numbers", "whole numbers"} else "words"
        return "texts" if kind == "words" and words >= MIN_TEXT_WORDS else kind

    def _find_type(self) -> str:
        """Returns the type of which most values of the sample are; "" for none."""
        values = [text.encode(errors="replace").decode() for text in self.sample]
        counts: dict[str, int] = {}
        for span in load_detector("patterns").find(values) if values else ():
            covered = (span.end - span.start) / len(values[span.text])
            if covered >= MIN_COVERED_SHARE and span.privacy_score > 0:
                counts[span.type] = counts.get(span.type, 0) + 1
        least = 1 if classify_key(self.name) == "name" else 2  # else of a place or a product
        counts["PERSON"] = sum(is_person_name(value, least) for value in values)
        best = max(counts, key=lambda name: counts[name])
        enough = counts[best] >= max(1.0, MIN_IDENTIFIER_SHARE * len(values))
        return best if enough and best not in HARMLESS_TYPES else ""


def _count_words(text: str) -> int:
    """Counts words with letters: a number of a telephone has none."""
    spaced = sum(any(map(str.isalpha, word)) for word in text.split())
    return max(spaced, len(_UNSPACED.findall(text)))


def _classify(value: Any, text: str) -> str:
    """Returns the kind of a value, as written or as its format reads it."""
    if isinstance(value, bool) or text.lower() in _TRUTH:
        return "true or false"
    if isinstance(value, date):
        return "dates"
    if _WHOLE.fullmatch(text):
        return "whole numbers"
    return "numbers" if _NUMBER.fullmatch(text) else "dates" if _DATE.fullmatch(text) else "words"


def is_person_name(value: str, least: int = 2) -> bool:
    """Says whether a value is a few words, four at most, that are all names of persons."""
    words = value.replace(",", " ").split()
    names = lexicon.read_lists()[0]
    return least <= len(words) <= 4 and all(
        word[:1].isupper() and (word.lower() in names or len(word.rstrip(".")) == 1)
        for word in words
    )


def profile_file(
    path: str, *, rows: int | None = JUDGED_ROWS, judged: Container[str] | None = None
) -> FileProfile:
    """Looks at the columns of a file, by its first rows.

    Args:
        path: the file, of a format with fields, or its URI.
        rows: how many rows are read at most; None reads and counts all, of which the first
            `JUDGED_ROWS` are looked at.
        judged: the columns whose values are looked at for identifiers; None for all.

    Raises:
        ConfigError, InputError: it cannot be read, or its name ends in no known format.
    """
    counters: dict[str, _Counter] = {}
    looked_at = count = 0
    is_whole = True
    for record in read_rows(path):
        if count == rows:
            is_whole = False
            break
        count += 1
        if count % COUNTED_ROWS == 0:
            count_rows(COUNTED_ROWS)
        if count > JUDGED_ROWS:
            continue
        looked_at += 1
        for name, value in record.items():
            if name not in counters:
                counters[name] = _Counter(name=name)
            counters[name].add(value)
    columns = tuple(
        counter.build(looked_at, judged is None or name in judged)
        for name, counter in counters.items()
    )
    names = [*counters]
    return FileProfile(
        columns=columns,
        rows=count,
        is_whole=is_whole,
        has_titles=bool(list_titles(names))
        and not any(has_private_form(name) or is_person_name(name) for name in names),
    )


def read_rows(path: str) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a file by the names of their fields."""
    suffix = formats.parse_suffix(path)
    if suffix is None:
        formats.find_source(path)  # refuses the name
        return
    with formats.open_file(path, packing=suffix[1]) as file:
        yield from formats.load_format(suffix[0]).read_records(file)


def find_identifiers(
    paths: Sequence[str], names: Sequence[str], exempt: str | None
) -> dict[str, str]:
    """Finds the reason why somebody may be found by each copied column; "" for none.

    Files that cannot be read are passed over: who draws them says so.

    Args:
        paths: the files; of many, the first ten are looked at.
        names: the columns that are copied.
        exempt: the column of ids, whose values always differ.
    """
    reasons: dict[str, str] = {}
    for path in paths[:MAX_FILES] if names else ():
        try:
            profile = profile_file(path, rows=WARNING_ROWS, judged=names)
        except TextveilError:
            continue
        for column in profile.columns:
            reason = column.warning
            if column.name == exempt and (reason == DISTINCT or column.type == "ID"):
                reason = ""
            if reason and column.name in names:
                reasons.setdefault(column.name, reason)
    return {name: reasons.get(name, "") for name in names}
