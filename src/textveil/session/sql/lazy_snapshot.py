"""Lazy view of a session in a database, and additions as rows.

In: a `RowCipher`, and a reader of rows. Out: a `StoredSnapshot`, which takes the place of a
`Snapshot`; `SealedRow`s.
Not here: transactions (`session_file`), and the queries of a snapshot (`session.snapshot`).

Rows are read on demand, so a session of a million values opens as fast as an empty one. They are
cached until another process adds something.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter

from textveil.detect import PrivateValue, Span, ValueIndex, get_beginnings, list_possible_forms
from textveil.session.placeholders import PlaceholderToken
from textveil.session.snapshot import FACT_KINDS, Facts, SessionDelta, Snapshot
from textveil.session.sql.encryption import RowCipher

T = TypeVar("T")

FORM_KIND = "form"
"""Kind of a row that maps a form to its private value.

See `protect.ValueIndex`.
"""

BEGINNING_KIND = "beginning"
"""Kind of a row with the longest form's length for a beginning."""

EAGER_KINDS = ("counts", "replaced", "targets", "hosts", "losses")
"""Facts that are read all at once.

They are few, or needed where answers are restored.
"""

MAX_CACHED_ROWS = 100_000
"""Most cached rows of a kind."""

_ABSENT: Any = object()


class SealedRow(NamedTuple):
    """A sealed row of a session."""

    name: bytes
    number: int
    kind: str
    tag: bytes | None
    content: bytes


class RowReader(NamedTuple):
    """Reader of a session's existing rows.

    Args:
        read_names: reads rows by names.
        read_tags: reads rows by tags.
        read_all: reads all rows.
    """

    read_names: Callable[[Sequence[bytes]], Iterable[SealedRow]]
    read_tags: Callable[[Sequence[bytes]], Iterable[SealedRow]]
    read_all: Callable[[], Iterable[SealedRow]]


NO_ROWS = RowReader(lambda names: (), lambda tags: (), lambda: ())
"""Reader of a session without rows."""


class FormOwner(NamedTuple):
    """Private value that a form belongs to; see `ValueIndex`.

    Args:
        order: position of the value in the order of discovery.
        type: type of the value.
        text: text of the value.
        score: score of the value.
        whole: True if the form is the whole value.
    """

    order: int
    type: str
    text: str
    score: float
    whole: bool

    def __repr__(self) -> str:
        return f"FormOwner({self.type})"

    def is_weaker(self, whole: bool, type_: str) -> bool:
        """Says whether a new value takes over the form.

        A whole value beats a part, then a person any other type.
        """
        return (whole, type_ == "PERSON") > (self.whole, self.type == "PERSON")


@cache
def _build_codecs() -> dict[str, tuple[TypeAdapter[Any], TypeAdapter[Any]]]:
    """Returns the JSON codecs of each kind's keys and values."""
    return {
        kind: (TypeAdapter(key), TypeAdapter(value))
        for kind, (key, value) in _build_types().items()
    }


@cache
def _build_types() -> dict[str, tuple[Any, Any]]:
    """Returns the types of each kind's keys and values."""
    hints = get_type_hints(Facts)
    types: dict[str, Any] = {name: get_args(hints[name]) for name in FACT_KINDS}
    return types | {FORM_KIND: (str, FormOwner), BEGINNING_KIND: (str, int)}


class StoredFacts(Mapping[Any, Any]):
    """Lazy mapping of facts of one kind, with a cache.

    The cache also remembers missing facts.

    Args:
        kind: kind of the facts.
        cipher: cipher of the session.
        reader: reads its rows.
    """

    def __init__(self, kind: str, cipher: RowCipher, reader: RowReader) -> None:
        self._kind, self._cipher, self.reader = kind, cipher, reader
        self._key, self._value = _build_codecs()[kind]
        self._cache: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"StoredFacts({self._kind!r})"

    def __getitem__(self, key: Any) -> Any:
        if key not in self._cache:
            self.look_up([(self, [key])])
        value = self._cache[key]
        if value is _ABSENT:
            raise KeyError("not there")
        return value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._read_all())

    def __len__(self) -> int:
        return len(self._read_all())

    def _read_all(self) -> dict[Any, Any]:
        """Reads all facts of the kind, in the order of discovery."""
        if self._kind in EAGER_KINDS:
            rows = self.reader.read_tags([self.derive_tag(self._kind)])
        else:
            rows = (row for row in self.reader.read_all() if row.kind == self._kind)
        return dict(map(self.read, sorted(rows, key=lambda row: row.number)))

    @staticmethod
    def look_up(requests: Sequence[tuple["StoredFacts", Iterable[Any]]]) -> None:
        """Reads facts of one kind or more in one query."""
        names: dict[bytes, tuple[StoredFacts, Any]] = {}
        for stored, keys in requests:
            names |= {
                stored.derive_name(key): (stored, key) for key in keys if key not in stored._cache
            }
        if not names:
            return
        rows = {row.name: row for row in requests[0][0].reader.read_names(list(names))}
        for name, (stored, key) in names.items():  # keeps newer values of other threads
            stored._cache.setdefault(key, stored.read(rows[name])[1] if name in rows else _ABSENT)

    @property
    def is_full(self) -> bool:
        """True if the cache exceeds its limit."""
        return len(self._cache) > MAX_CACHED_ROWS

    def get_many(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """Returns the existing facts among some keys."""
        keys = list(keys)
        self.look_up([(self, keys)])
        return {key: value for key in keys if (value := self._cache[key]) is not _ABSENT}

    def learn(self, facts: Mapping[Any, Any]) -> None:
        """Caches facts that were just written."""
        self._cache.update(facts)

    def derive_name(self, key: Any) -> bytes:
        """Derives the name of a key's row."""
        return self._cipher.derive_name(self._kind, self._key.dump_json(key))

    def derive_tag(self, group: str) -> bytes:
        """Derives the tag of a group of rows."""
        return self._cipher.derive_name("tag", group.encode())

    def seal_row(self, number: int, key: Any, value: Any) -> SealedRow:
        """Seals a fact as a row."""
        name, tag = self.derive_name(key), None
        if self._kind in EAGER_KINDS:
            tag = self.derive_tag(self._kind)
        elif self._kind == "placeholders":
            tag = self.derive_tag(value.name)
        content = b"[" + self._key.dump_json(key) + b"," + self._value.dump_json(value) + b"]"
        return SealedRow(
            name, number, self._kind, tag, self._cipher.seal(self._kind, name, content)
        )

    def read(self, row: SealedRow) -> tuple[Any, Any]:
        """Opens a row as a fact."""
        key, value = _build_pair_codec(self._kind).validate_json(
            self._cipher.open(row.kind, row.name, row.content)
        )
        return key, value

    def read_groups(self, groups: Iterable[str]) -> list[Any]:
        """Returns values of rows with some tags, in the order of discovery."""
        rows = self.reader.read_tags([self.derive_tag(name) for name in groups])
        return [self.read(row)[1] for row in sorted(rows, key=lambda row: row.number)]


@cache
def _build_pair_codec(kind: str) -> TypeAdapter[tuple[Any, Any]]:
    pair: Any = tuple.__class_getitem__(_build_types()[kind])
    return TypeAdapter(pair)


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredSnapshot(Snapshot):
    """Snapshot that looks facts up on demand.

    Attributes:
        last: number of the last row.
        standing: private value of each form to look for.
        longest: length of the longest form, by its beginning.
        facts: all facts by kind.
    """

    last: int
    standing: StoredFacts = field(repr=False)
    longest: StoredFacts = field(repr=False)
    facts: Mapping[str, StoredFacts] = field(repr=False)

    @classmethod
    def build(
        cls, version: int, last: int, cipher: RowCipher, reader: RowReader
    ) -> "StoredSnapshot":
        """Builds the lazy snapshot of a session at a version."""
        facts = {
            kind: StoredFacts(kind, cipher, reader)
            for kind in (*FACT_KINDS, FORM_KIND, BEGINNING_KIND)
        }
        return cls._build(version, last, facts)

    @classmethod
    def _build(cls, version: int, last: int, facts: Mapping[str, StoredFacts]) -> "StoredSnapshot":
        chains: dict[str, Any] = {kind: ChainMap[Any, Any](facts[kind]) for kind in FACT_KINDS}  # type: ignore[arg-type]
        extra: dict[str, Any] = {
            "standing": facts[FORM_KIND],
            "longest": facts[BEGINNING_KIND],
            "facts": facts,
        }
        return cls(version=version, last=last, **extra, **chains)

    def advance(
        self, version: int, rows: int, new_facts: Mapping[str, Mapping[Any, Any]]
    ) -> "StoredSnapshot":
        """Returns the next snapshot, with newly written facts cached."""
        for kind, facts in new_facts.items():
            self.facts[kind].learn(facts)
        return self._build(version, self.last + rows, self.facts)

    @property
    def is_full(self) -> bool:
        """True if a cache exceeds its limit, so that caching must restart."""
        return any(stored.is_full for stored in self.facts.values())

    def read_all(self) -> Snapshot:
        """Reads all facts into an ordinary snapshot."""
        rows: dict[str, list[SealedRow]] = {
            kind: [] for kind in (*FACT_KINDS, FORM_KIND, BEGINNING_KIND)
        }
        for row in sorted(self.standing.reader.read_all(), key=lambda row: row.number):
            rows.setdefault(row.kind, []).append(row)  # links of conversations have another kind
        facts: dict[str, Any] = {
            kind: ChainMap(dict(map(self.facts[kind].read, rows[kind]))) for kind in FACT_KINDS
        }
        return Snapshot(version=self.version, **facts)

    def find_placeholders(self, names: Iterable[str]) -> list[PlaceholderToken]:
        """Returns the placeholders that begin with one of some names: `PERSON_1`."""
        placeholders: list[PlaceholderToken] = self.facts["placeholders"].read_groups(names)
        return placeholders

    def build_matcher(self, texts: Sequence[str], spans: Sequence[Span]) -> ValueIndex:
        """Returns a matcher of private values that may occur in some texts."""
        owners = self.standing.get_many(list_possible_forms(texts, self.longest.get_many))
        # Values that the session knows already are not new, even where no form matches them.
        detected = ((span, texts[span.text][span.start : span.end]) for span in spans)
        keys = {PrivateValue(span.type, text, span.score).key for span, text in detected}
        forms: list[FormOwner] = sorted(owners.values())
        matcher = ValueIndex(PrivateValue(form.type, form.text, form.score) for form in forms)
        for value in self.facts["private"].get_many(keys).values():
            matcher.add(value)
        return matcher

    def seal_rows(self, delta: SessionDelta) -> tuple[list[SealedRow], dict[str, dict[Any, Any]]]:
        """Converts a delta to sealed rows, and to facts by kind."""
        new_facts: dict[str, dict[Any, Any]] = {
            kind: dict(getattr(delta, kind)) for kind in FACT_KINDS
        }
        new_facts[FORM_KIND], new_facts[BEGINNING_KIND] = self._build_forms(
            list(delta.private.values())
        )
        rows: list[SealedRow] = []
        for kind, facts in new_facts.items():
            stored = self.facts[kind]
            pairs = enumerate(facts.items(), len(rows) + 1)
            rows += [stored.seal_row(self.last + i, *fact) for i, fact in pairs]
        return rows, new_facts

    def _build_forms(
        self, values: Sequence[PrivateValue]
    ) -> tuple[dict[str, FormOwner], dict[str, int]]:
        ordered_values = enumerate(values, self.last)
        forms = [(order, value, form) for order, value in ordered_values for form in value.forms]
        texts = [form.text for *_, form in forms]
        heads = [head for *_, form in forms for head in get_beginnings(form)]
        StoredFacts.look_up([(self.standing, texts), (self.longest, heads)])
        old_owners: dict[str, FormOwner] = self.standing.get_many(texts)
        old_lengths: dict[str, int] = self.longest.get_many(heads)
        owners, lengths = dict(old_owners), dict(old_lengths)
        for order, value, form in forms:
            if form.text not in owners or owners[form.text].is_weaker(form.whole, value.type):
                owners[form.text] = FormOwner(
                    order, value.type, value.text, value.score, form.whole
                )
                for head in get_beginnings(form):
                    lengths[head] = max(lengths.get(head, 0), len(form.text))
        return _select_new(owners, old_owners), _select_new(lengths, old_lengths)


def _select_new(new: Mapping[str, T], old: Mapping[str, T]) -> dict[str, T]:
    """Selects entries that are new or changed."""
    return {key: value for key, value in new.items() if value != old.get(key)}
