"""Libraries: public texts in cells, one of which may stand in place of a private text.

In: public texts with their cells, or the file of a library. Out: `Library` with read-only arrays.
Not here: how cells are made (`making`), features (`features`), and draws (`mechanism`).

A library must be public and made without the texts that are released later: then every law about a
release holds, whatever the library's texts are.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from textveil.errors import ConfigError, InputError, list_names, quote_file, quote_short
from textveil.files import storage
from textveil.guarantee import LibraryFacts, format_number, join_parts
from textveil.library.features import TEXTS_AT_ONCE, FeatureMap, Features, LinearMap, WordMap
from textveil.randomness import Flags, Floats, Ids
from textveil.table import compute_fingerprint, compute_fingerprints
from textveil.text import check_texts

LevelKind = Literal["clusters", "labels", "classes"]

LibraryKind = Literal["general", "domain", "task"]

VERSION = 1
"""Version of the file's form."""

MAX_CELLS = 1 << 12
"""The largest number of cells of a level."""

MAX_LINE = 500
"""The most characters of a source or a licence."""

MAX_PACKING = 100
"""The most bytes of a library for each byte of its file, where it has more than `SMALL_SIZE`."""

SMALL_SIZE = 1 << 26

LEAST_POOL = 8
"""The fewest texts of a cell among which one is drawn, if the cell has as many."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """A division of a library's texts into cells, and the public map of a text to its cell.

    Attributes:
        name: as options name it: "30", "labels", "classes".
        kind: whether the cells are clusters, public labels, or classes that a sentence describes.
        map: the scores of the cells; a text is in the cell with the highest, the first of equals.
        cells: uint16 [N], the cell of each text of the library.
        sure: float32 [N], how typical of its cell each text is: the higher, the more.
        share: the share of a cell's texts, the surest, that readers are given.
        names: of the cells, for labels and classes.
    """

    name: str
    kind: LevelKind
    map: LinearMap = field(repr=False)
    cells: NDArray[np.uint16] = field(repr=False)
    sure: Floats = field(repr=False)
    share: float = 1.0
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Returns K, the number of cells."""
        return len(self.map.offsets)

    @cached_property
    def sizes(self) -> Ids:
        """The number of texts of each cell, int64 [K]."""
        return np.bincount(self.cells, minlength=len(self)).astype(np.int64)

    @cached_property
    def members(self) -> tuple[Ids, ...]:
        """The texts of each cell, the surest first, equals in their order."""
        order = np.lexsort((-self.sure.astype(np.float64), self.cells))
        return tuple(np.split(order.astype(np.int64), np.cumsum(self.sizes)[:-1]))

    def find_pool(self, cell: int, share: float | None = None) -> Ids:
        """Returns the surest texts of a cell: at least one.

        Args:
            cell: its number.
            share: the share of its texts; None for the level's own.
        """
        members = self.members[cell]
        count = int(np.ceil(len(members) * (self.share if share is None else share)))
        return members[: max(count, min(LEAST_POOL, len(members)))]


@dataclass(frozen=True, kw_only=True, eq=False)
class Library:
    """Public texts in cells, with read-only arrays; two of one digest are equal.

    Attributes:
        name: what statements call it.
        kind: `general`, of one `domain`, or of a `task` (with public labels).
        source: where its texts are from, in the words of whoever made it.
        licence: under which its texts may be passed on; it goes into every release.
        texts: N texts.
        ids: the id or address of each in its source.
        label_names: names of the public labels, if there are any.
        labels: int16 [N], the public label of each text; None without.
        levels: the divisions into cells.
        features: the public map from a text to its features.
        vectors: int8 [N, d], the sentence vectors in steps of `scales`.
        scales: float32 [N].
        hints: float16 [N, C], what public labels or sentences of classes say of each text: the
            probabilities of a model that never saw its label, or the centred likeness to each
            sentence; None without both.
        fingerprints: uint64 [n], of the texts, rising.
        options: how it was made.
        facts: what is achieved without any private text, as measured when it was made.
    """

    name: str
    kind: LibraryKind
    source: str
    licence: str
    texts: tuple[str, ...] = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)
    label_names: tuple[str, ...] = ()
    labels: NDArray[np.int16] | None = field(default=None, repr=False)
    levels: tuple[Level, ...] = field(repr=False)
    features: FeatureMap = field(repr=False)
    vectors: NDArray[np.int8] = field(repr=False)
    scales: Floats = field(repr=False)
    hints: NDArray[np.float16] | None = field(default=None, repr=False)
    fingerprints: NDArray[np.uint64] = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        features = self.features
        owners: list[Any] = [self, features, *filter(None, [features.words]), *self.levels]
        owners += [level.map for level in self.levels]
        for owner in owners:
            for attribute in fields(owner):  # else a later change would be in no digest
                if isinstance(value := getattr(owner, attribute.name), np.ndarray):
                    value.setflags(write=False)
        if reason := self._find_fault():
            raise ConfigError(f"a library {reason}")

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuilds the library when unpickled, because pickled arrays would become writable."""
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        return partial(type(self), **values), ()

    def _find_fault(self) -> str:
        if self.kind not in get_args(LibraryKind):
            return f"is {', '.join(get_args(LibraryKind))}, got {quote_short(str(self.kind))}"
        if reason := find_line_fault(name=self.name, source=self.source, licence=self.licence):
            return reason
        n = len(self.texts)
        if n < 2 or len(self.ids) != n or self.vectors.shape != (n, self.features.dimension):
            return "has at least two texts, and an id and a vector for each"
        if self.hints is not None and (self.hints.ndim != 2 or len(self.hints) != n):
            return "has hints for each text, or none"
        if not self.levels or len({level.name for level in self.levels}) < len(self.levels):
            return "has at least one level of cells, each with a name of its own"
        for level in self.levels:
            if (
                not 2 <= len(level) <= MAX_CELLS
                or level.map.weights.shape[1] != self.features.width
            ):
                return f"has 2 to {MAX_CELLS} cells at each level"
            if level.cells.shape != (n,) or level.sure.shape != (n,) or not level.sizes.all():
                return "has a cell for each text, and a text in each cell"
            if level.kind not in get_args(LevelKind) or not 0 < level.share <= 1:
                return "has levels of a known kind, each with a share above 0, and 1 at most"
            if level.names and len(level.names) != len(level):
                return "names all cells of a level, or none"
        if self.labels is not None and (
            self.labels.shape != (n,)
            or self.labels.min() < 0
            or self.labels.max() >= len(self.label_names)
        ):
            return "has a label for each text, or none"
        return ""

    def __len__(self) -> int:
        """Returns N, the number of texts."""
        return len(self.texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Library) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Library({self.name!r}, {len(self):,} texts, levels {', '.join(self.level_names)})"

    # ---- cells -----------------------------------------------------------------------------------

    @property
    def level_names(self) -> tuple[str, ...]:
        """The names of the levels, in their order."""
        return tuple(level.name for level in self.levels)

    def get_level(self, name: str) -> Level:
        """Returns the level of a name.

        Raises:
            ConfigError: there is none of this name.
        """
        for level in self.levels:
            if level.name == name:
                return level
        raise ConfigError(
            f"the library {quote_short(self.name)} has no level {quote_short(name)}: it has "
            f"{list_names(self.level_names)}"
        )

    def find_cells(self, texts: Sequence[str], level: Level) -> Ids:
        """Returns the cell of each text, int64 [n].

        It follows from that text alone, whatever texts are beside it.

        Raises:
            InputError: a text is not a valid Unicode string.
        """
        check_texts(texts)
        cells = np.empty(len(texts), np.int64)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            chunk = slice(start, start + TEXTS_AT_ONCE)
            cells[chunk] = self.assign(self.features.compute(texts[chunk]), level)
        return cells

    def assign(self, features: Features, level: Level) -> Ids:
        """Returns the cells of texts of which the features [n, F] are known."""
        cells: Ids = level.map.score(features).argmax(axis=1).astype(np.int64)
        return cells

    def decode_vectors(self, which: Ids | slice = slice(None)) -> Floats:
        """Returns the sentence vectors of some of its texts, float32 [n, d]."""
        vectors: Floats = self.vectors[which].astype(np.float32) * self.scales[which][:, None]
        return vectors

    @cached_property
    def views(self) -> Mapping[str, Floats]:
        """The features by which labels are smoothed, float32 [N, d] by name.

        Sentence vectors, words and hints, each centred, and of a mean squared length of 1.
        """
        views: dict[str, Any] = {"vectors": self.decode_vectors()}
        if self.features.words is not None:
            views["words"] = self.features.words.encode(self.texts)
        if self.hints is not None:
            views["hints"] = self.hints
        return {name: _standardize(view) for name, view in views.items()}

    def contains(self, texts: Sequence[str]) -> Flags:
        """Says of each text whether it stands in the library, bool [n].

        Capitals and spaces do not matter; likeness is not looked at.
        """
        marks = np.array([compute_fingerprint(text) for text in texts], np.uint64)
        return np.isin(marks, self._known)

    @cached_property
    def _known(self) -> NDArray[np.uint64]:
        # Also those of its texts: who made the file may have left some out.
        return np.union1d(self.fingerprints, compute_fingerprints(self.texts))

    def refuse(self, texts: Sequence[str]) -> None:
        """Refuses texts that stand in the library.

        Raises:
            InputError: one does: a library made from a private text is not public.
        """
        if n := int(self.contains(texts).sum()):
            raise InputError(
                "a library must be made without the texts that are released, and "
                f"{n:,} of the texts given stand in it: leave them out, or make a library from "
                "public texts alone"
            )

    def get_facts(self, level: Level) -> LibraryFacts:
        """Returns what statements say of the library and of a level of it."""
        return LibraryFacts(
            name=self.name,
            digest=self.digest,
            source=self.source,
            licence=self.licence,
            texts=len(self),
            level=level.name,
            cells=len(level),
            votes=self.describe_votes(),
        )

    def describe_votes(self) -> str:
        """Writes the bounds of the votes of private texts that the library follows from."""
        return join_parts(
            [
                f"epsilon {format_number(vote['epsilon'])} for one {vote['unit']}"
                for vote in self.options.get("votes", ())
            ]
        )

    # ---- its identity ----------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the whole library, in hexadecimal."""
        digest = hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode())
        for name, array in sorted(self.collect_arrays().items()):
            digest.update(f"{name} {array.shape} {array.dtype.str}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Returns all but the arrays, as plain data."""
        features = self.features
        return {
            "textveil library": VERSION,
            "name": self.name,
            "kind": self.kind,
            "source": self.source,
            "licence": self.licence,
            "label_names": list(self.label_names),
            "levels": [
                {
                    "name": level.name,
                    "kind": level.kind,
                    "share": level.share,
                    "names": list(level.names),
                }
                for level in self.levels
            ],
            "features": {
                "encoder": features.encoder,
                "encoder_source": features.encoder_source,
                "dimension": features.dimension,
            },
            "options": dict(self.options),
            "facts": dict(self.facts),
        }

    def collect_arrays(self) -> dict[str, NDArray[Any]]:
        """Returns all arrays by name; texts, ids and words as UTF-8 JSON."""
        arrays: dict[str, NDArray[Any]] = {
            "texts": _pack_strings(self.texts),
            "ids": _pack_strings(self.ids),
            "probes": self.features.probes,
            "vectors": self.vectors,
            "scales": self.scales.astype("<f4"),
            "fingerprints": self.fingerprints.astype("<u8"),
        }
        if self.labels is not None:
            arrays["labels"] = self.labels.astype("<i2")
        if (words := self.features.words) is not None:
            arrays["words"] = _pack_strings(words.words)
            arrays["rarity"], arrays["axes"] = words.rarity.astype("<f4"), words.axes.astype("<f4")
        if self.hints is not None:
            arrays["hints"] = self.hints.astype("<f2")
        for i, level in enumerate(self.levels):
            arrays[f"level{i}_weights"] = level.map.weights.astype("<i8")
            arrays[f"level{i}_offsets"] = level.map.offsets.astype("<i8")
            arrays[f"level{i}_cells"] = level.cells.astype("<u2")
            arrays[f"level{i}_sure"] = level.sure.astype("<f4")
        return arrays

    # ---- its file --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes the library to a file that appears only when it is whole.

        Raises:
            OutputError: the file cannot be written.
        """
        target = Path(path)
        about = json.dumps({**self.describe(), "sha256": self.digest}, ensure_ascii=False)
        content = io.BytesIO()
        np.savez_compressed(
            content, allow_pickle=False, about=np.array(about), **self.collect_arrays()
        )
        storage.Storage(str(target.parent)).write(target.name, content.getvalue())

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads a library from its file, and checks all of it.

        Raises:
            InputError: there is no such file, or it is damaged.
        """
        advice = "`textveil library make` makes one"
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InputError(
                f"{quote_file(path)}: cannot read a library ({reason}); {advice}"
            ) from None
        library = cls._parse(content)
        if library is None:
            raise InputError(f"{quote_file(path)}: it is not a library, or damaged; {advice}")
        return library

    @classmethod
    def _parse(cls, content: bytes) -> Self | None:
        try:
            if _is_bomb(content):
                return None
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                about = json.loads(str(archive["about"]))
                if about.pop("textveil library") != VERSION:
                    return None
                arrays = {name: archive[name] for name in archive.files}
            digest, levels = about.pop("sha256"), about.pop("levels")
            features = _read_features(about.pop("features"), arrays)
            library = cls(
                **{**about, "label_names": tuple(about["label_names"])},
                features=features,
                texts=_unpack_strings(arrays["texts"]),
                ids=_unpack_strings(arrays["ids"]),
                labels=arrays.get("labels"),
                vectors=arrays["vectors"],
                scales=arrays["scales"],
                hints=arrays.get("hints"),
                fingerprints=arrays["fingerprints"],
                levels=tuple(
                    Level(
                        **{**level, "names": tuple(level["names"])},
                        map=_read_map(arrays, f"level{i}"),
                        cells=arrays[f"level{i}_cells"],
                        sure=arrays[f"level{i}_sure"],
                    )
                    for i, level in enumerate(levels)
                ),
            )
            return library if library.digest == digest else None
        except (
            Exception
        ):  # numpy, zipfile, zlib and json raise many kinds for bytes that are not theirs
            return None


def _is_bomb(content: bytes) -> bool:
    """Says whether a file claims to be far larger than libraries are that are packed so small."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    return size > max(SMALL_SIZE, MAX_PACKING * len(content))


def find_line_fault(**lines: str) -> str:
    """Says which of the lines that statements print is none; "" if all are."""
    for name, line in lines.items():
        if not line.strip() or len(line) > MAX_LINE or not line.isprintable():
            return f"needs a {name}: one line of 1 to {MAX_LINE} characters"
    return ""


def _standardize(view: Any) -> Floats:
    """Centres features and scales them to a mean squared length of 1; constant ones become 0."""
    centred = view - view.mean(axis=0, dtype=np.float64)
    length = np.sqrt((centred**2).sum(axis=1).mean())
    standard: Floats = (centred / max(length, np.finfo(np.float32).tiny)).astype(np.float32)
    return standard


def _pack_strings(strings: Sequence[str]) -> NDArray[np.uint8]:
    content = json.dumps(list(strings), ensure_ascii=False).encode(errors="surrogatepass")
    return np.frombuffer(content, np.uint8)


def _read_features(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> FeatureMap:
    words = None
    if "words" in arrays:
        words = WordMap(
            words=_unpack_strings(arrays["words"]), rarity=arrays["rarity"], axes=arrays["axes"]
        )
    return FeatureMap(**about, probes=arrays["probes"], words=words)


def _read_map(arrays: dict[str, NDArray[Any]], name: str) -> LinearMap:
    return LinearMap(weights=arrays[f"{name}_weights"], offsets=arrays[f"{name}_offsets"])


def _unpack_strings(array: NDArray[np.uint8]) -> tuple[str, ...]:
    return tuple(json.loads(array.tobytes().decode(errors="surrogatepass")))
