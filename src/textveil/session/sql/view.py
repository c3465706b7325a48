"""Lazy view of a session in a database, and additions as rows.

In: a `Seal`, and a reader of rows. Out: a `StoredSnapshot`, which takes the place of a `Snapshot`;
`SealedRow`s.
Not here: transactions (`store`), and the queries of a snapshot (`session.snapshot`).

Rows are read on demand, so a session of a million values opens as fast as an empty one. They are
cached until another process adds something.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter

from textveil.detect import PrivateValue, Sought, Span, beginnings, could_stand
from textveil.session.placeholders import Given
from textveil.session.snapshot import FACTS, Facts, SessionDelta, Snapshot
from textveil.session.sql.seal import Seal

T = TypeVar("T")

FORM = "form"
"""Kind of a row that maps a form to its private value.

See `protect.Sought`.
"""

BEGINNING = "beginning"
"""Kind of a row with the longest form's length for a beginning."""

WHOLE = ("counts", "replaced", "targets", "hosts", "losses")
"""Facts that are read all at once.

They are few, or needed where answers are restored.
"""

MOST = 100_000
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
        named: reads rows by names.
        tagged: reads rows by tags.
        every: reads all rows.
    """

    named: Callable[[Sequence[bytes]], Iterable[SealedRow]]
    tagged: Callable[[Sequence[bytes]], Iterable[SealedRow]]
    every: Callable[[], Iterable[SealedRow]]


class KnownForm(NamedTuple):
    """Private value that a form belongs to; see `Sought`.

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
        return f"KnownForm({self.type})"

    def gives_way(self, whole: bool, type_: str) -> bool:
        """Says whether a new value takes over the form.

        A whole value beats a part, then a person any other type.
        """
        return (whole, type_ == "PERSON") > (self.whole, self.type == "PERSON")


@cache
def _codecs() -> dict[str, tuple[TypeAdapter[Any], TypeAdapter[Any]]]:
    """Returns the JSON codecs of each kind's keys and values."""
    return {kind: (TypeAdapter(key), TypeAdapter(value)) for kind, (key, value) in _types().items()}


@cache
def _types() -> dict[str, tuple[Any, Any]]:
    """Returns the types of each kind's keys and values."""
    hints = get_type_hints(Facts)
    types: dict[str, Any] = {name: get_args(hints[name]) for name in FACTS}
    return types | {FORM: (str, KnownForm), BEGINNING: (str, int)}


class StoredFacts(Mapping[Any, Any]):
    """Lazy mapping of facts of one kind, with a cache.

    The cache also remembers missing facts.

    Args:
        kind: kind of the facts.
        seal: cipher of the session.
        reader: reads its rows.
    """

    def __init__(self, kind: str, seal: Seal, reader: RowReader) -> None:
        self._kind, self._seal, self.reader = kind, seal, reader
        self._key, self._value = _codecs()[kind]
        self._read: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"StoredFacts({self._kind!r})"

    def __getitem__(self, key: Any) -> Any:
        if key not in self._read:
            self.look_up([(self, [key])])
        value = self._read[key]
        if value is _ABSENT:
            raise KeyError("not there")
        return value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[Any, Any]:
        """Reads all facts of the kind, in the order of discovery."""
        if self._kind in WHOLE:
            rows = self.reader.tagged([self.tag(self._kind)])
        else:
            rows = (row for row in self.reader.every() if row.kind == self._kind)
        return dict(map(self.read, sorted(rows, key=lambda row: row.number)))

    @staticmethod
    def look_up(asked: Sequence[tuple["StoredFacts", Iterable[Any]]]) -> None:
        """Reads facts of one kind or more in one query."""
        names: dict[bytes, tuple[StoredFacts, Any]] = {}
        for stored, keys in asked:
            names |= {stored.name(key): (stored, key) for key in keys if key not in stored._read}
        if not names:
            return
        rows = {row.name: row for row in asked[0][0].reader.named(list(names))}
        for name, (stored, key) in names.items():  # keeps newer values of other threads
            stored._read.setdefault(key, stored.read(rows[name])[1] if name in rows else _ABSENT)

    @property
    def full(self) -> bool:
        """True if the cache exceeds its limit."""
        return len(self._read) > MOST

    def several(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """Returns the existing facts among some keys."""
        keys = list(keys)
        self.look_up([(self, keys)])
        return {key: value for key in keys if (value := self._read[key]) is not _ABSENT}

    def learn(self, facts: Mapping[Any, Any]) -> None:
        """Caches facts that were just written."""
        self._read.update(facts)

    def name(self, key: Any) -> bytes:
        """Derives the name of a key's row."""
        return self._seal.name(self._kind, self._key.dump_json(key))

    def tag(self, of: str) -> bytes:
        """Derives the tag of a group of rows."""
        return self._seal.name("tag", of.encode())

    def row(self, number: int, key: Any, value: Any) -> SealedRow:
        """Seals a fact as a row."""
        name, tag = self.name(key), None
        if self._kind in WHOLE:
            tag = self.tag(self._kind)
        elif self._kind == "placeholders":
            tag = self.tag(value.name)
        content = b"[" + self._key.dump_json(key) + b"," + self._value.dump_json(value) + b"]"
        return SealedRow(name, number, self._kind, tag, self._seal.close(self._kind, name, content))

    def read(self, row: SealedRow) -> tuple[Any, Any]:
        """Opens a row as a fact."""
        key, value = _pair(self._kind).validate_json(
            self._seal.open(row.kind, row.name, row.content)
        )
        return key, value

    def tagged(self, of: Iterable[str]) -> list[Any]:
        """Returns values of rows with some tags, in the order of discovery."""
        rows = self.reader.tagged([self.tag(name) for name in of])
        return [self.read(row)[1] for row in sorted(rows, key=lambda row: row.number)]


@cache
def _pair(kind: str) -> TypeAdapter[tuple[Any, Any]]:
    pair: Any = tuple.__class_getitem__(_types()[kind])
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
    def of(cls, version: int, last: int, seal: Seal, reader: RowReader) -> "StoredSnapshot":
        """Builds the lazy snapshot of a session at a version."""
        facts = {kind: StoredFacts(kind, seal, reader) for kind in (*FACTS, FORM, BEGINNING)}
        return cls._made(version, last, facts)

    @classmethod
    def _made(cls, version: int, last: int, facts: Mapping[str, StoredFacts]) -> "StoredSnapshot":
        chains: dict[str, Any] = {kind: ChainMap[Any, Any](facts[kind]) for kind in FACTS}  # type: ignore[arg-type]
        extra: dict[str, Any] = {
            "standing": facts[FORM],
            "longest": facts[BEGINNING],
            "facts": facts,
        }
        return cls(version=version, last=last, **extra, **chains)

    def with_written(self, rows: int, added: Mapping[str, Mapping[Any, Any]]) -> "StoredSnapshot":
        """Returns the next snapshot, with newly written facts cached."""
        for kind, facts in added.items():
            self.facts[kind].learn(facts)
        return self._made(self.version + 1, self.last + rows, self.facts)

    @property
    def full(self) -> bool:
        """True if a cache exceeds its limit, so that caching must restart."""
        return any(stored.full for stored in self.facts.values())

    def whole(self) -> Snapshot:
        """Reads all facts into an ordinary snapshot."""
        rows: dict[str, list[SealedRow]] = {kind: [] for kind in (*FACTS, FORM, BEGINNING)}
        for row in sorted(self.standing.reader.every(), key=lambda row: row.number):
            rows.setdefault(row.kind, []).append(row)  # links of conversations have another kind
        facts: dict[str, Any] = {
            kind: ChainMap(dict(map(self.facts[kind].read, rows[kind]))) for kind in FACTS
        }
        return Snapshot(version=self.version, **facts)

    def given_as(self, names: Iterable[str]) -> list[Given]:
        """Returns the placeholders that begin with one of some names: `PERSON_1`."""
        placeholders: list[Given] = self.facts["placeholders"].tagged(names)
        return placeholders

    def sought_in(self, texts: Sequence[str], spans: Sequence[Span]) -> Sought:
        """Returns a matcher of private values that may occur in some texts."""
        forms_found = self.standing.several(could_stand(texts, self.longest.several))
        # Values that the session knows already are not new, even where no form matches them.
        detected = ((span, texts[span.text][span.start : span.end]) for span in spans)
        keys = {PrivateValue(span.type, text, span.score).key for span, text in detected}
        forms: list[KnownForm] = sorted(forms_found.values())
        sought = Sought(PrivateValue(form.type, form.text, form.score) for form in forms)
        for value in self.facts["private"].several(keys).values():
            sought.add(value)
        return sought

    def rows(self, delta: SessionDelta) -> tuple[list[SealedRow], dict[str, dict[Any, Any]]]:
        """Converts a delta to sealed rows, and to facts by kind."""
        added: dict[str, dict[Any, Any]] = {kind: dict(getattr(delta, kind)) for kind in FACTS}
        added[FORM], added[BEGINNING] = self._forms(list(delta.private.values()))
        rows: list[SealedRow] = []
        for kind, facts in added.items():
            stored = self.facts[kind]
            numbered = enumerate(facts.items(), len(rows) + 1)
            rows += [stored.row(self.last + i, *fact) for i, fact in numbered]
        return rows, added

    def _forms(self, values: Sequence[PrivateValue]) -> tuple[dict[str, KnownForm], dict[str, int]]:
        known_from = enumerate(values, self.last)
        forms = [(order, value, form) for order, value in known_from for form in value.forms]
        texts = [form.text for *_, form in forms]
        heads = [head for *_, form in forms for head in beginnings(form)]
        StoredFacts.look_up([(self.standing, texts), (self.longest, heads)])
        forms_known: dict[str, KnownForm] = self.standing.several(texts)
        longest: dict[str, int] = self.longest.several(heads)
        now, reach = dict(forms_known), dict(longest)
        for order, value, form in forms:
            if form.text not in now or now[form.text].gives_way(form.whole, value.type):
                now[form.text] = KnownForm(order, value.type, value.text, value.score, form.whole)
                for head in beginnings(form):
                    reach[head] = max(reach.get(head, 0), len(form.text))
        return _select_new(now, forms_known), _select_new(reach, longest)


def _select_new(now: Mapping[str, T], known: Mapping[str, T]) -> dict[str, T]:
    """Selects entries that are new or changed."""
    return {key: value for key, value in now.items() if value != known.get(key)}
