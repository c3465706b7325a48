"""The only source of randomness: AES-CTR streams, one per document.

In: the operating system's entropy (or a seed, or a key) and the documents' sizes of a call. Out:
draws, whose rows are words.
Not here: non-standard distributions (`samplers`), and what is guaranteed (`guarantee`).
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count, pairwise
from typing import NoReturn, Protocol, Self, cast

import numpy as np
from numpy.random import BitGenerator, Generator
from numpy.typing import NDArray

from textveil.errors import ConfigError, RandomnessError
from textveil.randomness.arrays import Flags, Ints, Values

__all__ = [
    "Draws",
    "KeyedRandomness",
    "Randomness",
    "SeededRandomness",
    "Streams",
    "SystemRandomness",
    "make_unique_name",
]


_NONCE_BYTES = 32
_KEY_BYTES = 32
# marks the number of a part in a path; pickled children count from 0 and never get there
_PARTS = 2**127


def read_entropy(n: int) -> bytes:
    """Returns `n` bytes of the operating system's cryptographic source.

    All unseeded randomness comes from here.
    """
    return os.urandom(n)


class _CallLog:
    """Counter of this process's calls, with the last nonce's fingerprint.

    It never keeps the nonce itself.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0
        self.last = b""

    def make_key(self) -> bytes:
        """Makes a key for one call.

        From a fresh nonce and a number that this process uses once.
        """
        with self.lock:
            # Under the lock, so that each nonce is compared with the one that came just before.
            nonce = _read_nonce()
            fingerprint = blake2b(nonce, digest_size=16, person=b"textveil/nonce").digest()
            if fingerprint == self.last:
                raise RandomnessError(
                    "the operating system's entropy repeats itself: two calls got the same nonce; "
                    "check its random device"
                )
            self.last = fingerprint
            number = self.calls
            self.calls += 1
        return blake2b(
            nonce + number.to_bytes(16, "little"), digest_size=_KEY_BYTES, person=b"textveil/call"
        ).digest()


def _read_nonce() -> bytes:
    try:
        nonce = read_entropy(_NONCE_BYTES)
    except (OSError, NotImplementedError):
        raise RandomnessError(
            "the operating system provides no entropy; check its random device"
        ) from None
    if len(nonce) != _NONCE_BYTES:
        raise RandomnessError(
            f"a nonce must have {_NONCE_BYTES} bytes, got {len(nonce)}; check the random device"
        )
    return nonce


_process = _CallLog()


def make_unique_name() -> str:
    """Returns a name of 32 digits, unique across processes."""
    return _process.make_key().hex()[:32]


_generation = 0  # number of forks between the first process and this one


def _reset_after_fork() -> None:
    global _generation
    _generation += 1
    # Another thread may have held the lock at the fork, and nobody would release it here.
    _process.lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # pragma: no branch (Windows has no fork)
    os.register_at_fork(after_in_child=_reset_after_fork)


def _refuse_after_fork(generation: int, subject: str, remedy: str) -> None:
    if generation != _generation:
        raise RandomnessError(
            f"{subject} cannot be used after a fork, which would repeat its draws; {remedy}"
        )


class Randomness(Protocol):
    """The source of a call's randomness."""

    @property
    def is_seeded(self) -> bool:
        """True if anyone who knows a seed can repeat the draws.

        The statement then says so.
        """
        ...

    def open(self, sizes: Sequence[int] | Ints) -> "Streams":
        """Starts one call over documents of these sizes.

        Its streams belong to no other call.

        Args:
            sizes: [B] words in each document, 0 or more.
        """
        ...

    def derive_part(self, number: int) -> "Randomness":
        """Returns the randomness of a part of a long run.

        The part starts at text `number`.
        """
        ...

    def bind_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> "Randomness":
        """Returns the randomness of one release of some texts.

        Where draws can be repeated, they repeat for the same texts only.

        Args:
            first: the number of the first text in its run.
            digests: returns 32 bytes for each text, which follow from the text and from all that
                its law depends on: mechanism, options, table, the protected words and the budget of
                each. It is called only where draws can be repeated. `open` then takes sizes of as
                many documents.
        """
        ...


@dataclass(frozen=True)
class SystemRandomness:
    """The default: each call gets a fresh nonce from the operating system.

    Thread-safe, fork-safe, picklable.

    The key of a call is BLAKE2b over the nonce and the call's number in this process, so that no
    two calls share a key even if a nonce should recur. A nonce equal to the one before raises.
    """

    @property
    def is_seeded(self) -> bool:
        """False: nobody can repeat the draws."""
        return False

    def open(self, sizes: Sequence[int] | Ints) -> "Streams":
        """Starts one call over documents of these sizes.

        Args:
            sizes: [B] words in each document, 0 or more.

        Raises:
            RandomnessError: the entropy source fails or repeats itself.
        """
        size_array = _check_sizes(sizes)
        return Streams(_process.make_key(), size_array)

    def derive_part(self, number: int) -> Self:
        """Returns itself: each call draws afresh, in any part."""
        return self

    def bind_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> Self:
        """Returns itself: each call draws afresh, for any texts."""
        return self


class SeededRandomness:
    """A repeatable source for tests and demonstrations.

    No protection against anyone who knows the seed.

    Each call takes the next streams, so nothing repeats within one object; a new object with the
    same seed repeats everything. Draws for texts (`bind_texts`) depend on the texts and their law
    too: one noise under two budgets would give the words away. A pickle or copy holds a child with
    its own streams, numbered in the order of pickling, so that workers do not share a stream; load
    each pickle once.

    Args:
        seed: integer from 0 to 2**128 - 1.

    Raises:
        ConfigError: the seed is anything else.
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise ConfigError(
                f"a seed must be an integer from 0 to 2**128 - 1, got {type(seed).__name__}; "
                "pass such an integer or no seed"
            )
        if not 0 <= seed < 2**128:
            raise ConfigError(
                "a seed must be an integer from 0 to 2**128 - 1; pass one in this range, or none"
            )
        self._seed = int(seed)
        self._path: tuple[int, ...] = ()
        self._calls = 0
        self._children = 0
        self._generation = _generation
        self._lock = threading.Lock()

    @property
    def is_seeded(self) -> bool:
        """True: anyone who knows the seed can repeat the draws.

        The statement says that there is no protection against them.
        """
        return True

    def open(self, sizes: Sequence[int] | Ints) -> "Streams":
        """Starts the next call over documents of these sizes.

        Args:
            sizes: [B] words in each document, 0 or more.

        Raises:
            RandomnessError: this object was carried over a fork.
        """
        return self._open(_check_sizes(sizes), None)

    def _open(self, sizes: Ints, names: Sequence[bytes] | None) -> "Streams":
        self._refuse_after_fork()
        with self._lock:
            number = self._calls
            self._calls += 1
        # 16 bytes each, so no two paths and numbers collide
        numbers = (
            self._seed,
            *self._path,
            number,
        )
        message = b"".join(value.to_bytes(16, "little") for value in numbers)
        return Streams(
            blake2b(message, digest_size=_KEY_BYTES, person=b"textveil/seeded").digest(),
            sizes,
            names,
        )

    def derive_part(self, number: int) -> "SeededRandomness":
        """Returns a child for a part, whatever process runs it.

        Its streams depend only on the seed and this number, in any process and order of parts.

        Args:
            number: an integer from 0 to 2**128 - 1; the same number gives the same streams.

        Raises:
            ConfigError: the number is out of range.
        """
        if not 0 <= number < 2**128:
            raise ConfigError(
                "a part's number must be an integer from 0 to 2**128 - 1; pass one in this range"
            )
        self._refuse_after_fork()
        return _seeded_child(self._seed, (*self._path, _PARTS, number))

    def bind_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> Randomness:
        """Returns a source whose draws for a text depend on the text.

        On its number and digest, in addition to the seed and the call.
        """
        names = [
            # Both have a fixed width, so no two pairs give the same name.
            number.to_bytes(24, "little") + digest
            for number, digest in enumerate(digests(), first)
        ]
        return _TextRandomness(self, names, lambda sizes: self._open(sizes, names))

    def __reduce__(self) -> tuple[Callable[..., "SeededRandomness"], tuple[int, tuple[int, ...]]]:
        self._refuse_after_fork()
        with self._lock:
            child = self._children
            self._children += 1
        return _seeded_child, (self._seed, (*self._path, child))

    def __repr__(self) -> str:
        return f"SeededRandomness(seed=<hidden>, path={self._path}, calls={self._calls})"

    def _refuse_after_fork(self) -> None:
        _refuse_after_fork(
            self._generation, "a SeededRandomness", "pickle it to each worker, or make one there"
        )


class KeyedRandomness:
    """Draws that the owner of a key can repeat.

    For a job that may draw a part twice, such as after a worker died. A text's draws follow from
    the key, the text's id and field, and its digest (`bind_texts`): a part that is drawn again is
    the same release, and a changed text, another id, field or configuration has different draws.
    Nobody can repeat them without the key, so the statement says nothing about it. The key belongs
    to one release; two releases must not share it. It can be neither pickled nor copied, so that it
    gets into no queue of jobs: a worker reads it where its owner keeps it. Thread-safe, and usable
    after a fork.

    Args:
        key: 32 bytes of `make_key`, of this release alone; or of `derive_key` a seed.
        field: of the texts; the same id in another field has different draws.
        ids: of the texts, all different.
        is_seeded: whether the key follows from a seed.

    Raises:
        ConfigError: the key has not 32 bytes, or an id occurs twice.
    """

    def __init__(
        self, key: bytes, *, field: str = "", ids: Sequence[str] = (), seeded: bool = False
    ) -> None:
        if len(key) != _KEY_BYTES:
            raise ConfigError(
                f"a release key must be {_KEY_BYTES} bytes; make one with KeyedRandomness.new_key()"
            )
        if len(set(ids)) < len(ids):
            raise ConfigError(
                "every text of a release with a key needs a unique id, and one id occurs twice"
            )
        self._key, self._seeded = key, seeded
        self._ids = [_hash_strings(field, text_id) for text_id in ids]

    @staticmethod
    def make_key() -> bytes:
        """Makes a key of 256 bits from the operating system.

        Raises:
            RandomnessError: the entropy source fails or repeats itself.
        """
        return _process.make_key()

    @staticmethod
    def derive_key(seed: int) -> bytes:
        """Derives the key of a seed; whoever knows the seed has it.

        Args:
            seed: integer from 0 to 2**128 - 1.
        """
        return blake2b(
            seed.to_bytes(16, "little"), digest_size=_KEY_BYTES, person=b"textveil/seedkey"
        ).digest()

    @property
    def is_seeded(self) -> bool:
        """True if anyone who knows a seed can repeat the draws.

        Without the key nobody can.
        """
        return self._seeded

    def open(self, sizes: Sequence[int] | Ints) -> NoReturn:
        """Refuses: only texts with ids have draws, see `bind_texts`."""
        raise RandomnessError(
            "draws with a release key need the texts' ids: open streams by for_texts"
        )

    def derive_part(self, number: int) -> Self:
        """Returns itself: the draws of a text depend on its id.

        In any part.
        """
        return self

    def bind_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> Randomness:
        """Returns a source for the texts whose ids begin at `first`.

        Raises:
            ConfigError: there are more texts than ids.
        """
        text_digests = digests()
        ids = self._ids[first : first + len(text_digests)]
        if len(ids) < len(text_digests):
            raise ConfigError(
                f"every text of a release with a key needs an id: text {first + len(ids)} has no id"
            )
        names = [text_id + digest for text_id, digest in zip(ids, text_digests, strict=True)]
        # Counted from 0 for each binding: a retry binds anew and repeats the same keys in order.
        calls = count()

        def open_streams(sizes: Ints) -> Streams:
            call = next(calls).to_bytes(16, "little")
            return Streams(
                blake2b(
                    call, key=self._key, digest_size=_KEY_BYTES, person=b"textveil/keyed"
                ).digest(),
                sizes,
                names,
            )

        return _TextRandomness(self, names, open_streams)

    def __repr__(self) -> str:
        return "KeyedRandomness(<hidden>)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RandomnessError(
            "a release key cannot be pickled or copied; read it where its owner keeps it"
        )


def _hash_strings(*parts: str) -> bytes:
    """Hashes some strings to 32 bytes, without ambiguous concatenation.

    No two lists of strings give the same.
    """
    encoded = [part.encode(errors="surrogatepass") for part in parts]
    message = b"".join(len(part_bytes).to_bytes(8, "little") + part_bytes for part_bytes in encoded)
    return blake2b(message, digest_size=32, person=b"textveil/id").digest()


class _TextRandomness:
    """A source for one release, with named documents, from its parent."""

    def __init__(
        self, parent: Randomness, names: Sequence[bytes], open_streams: Callable[[Ints], "Streams"]
    ) -> None:
        self._parent, self._names, self._open_streams = parent, names, open_streams

    @property
    def is_seeded(self) -> bool:
        return self._parent.is_seeded

    def open(self, sizes: Sequence[int] | Ints) -> "Streams":
        size_array = _check_sizes(sizes)
        if len(size_array) != len(self._names):
            raise ConfigError(
                f"sizes must be those of the {len(self._names)} texts of the release, got "
                f"{len(size_array)}"
            )
        return self._open_streams(size_array)

    def derive_part(self, number: int) -> Randomness:
        return self._parent.derive_part(number)

    def bind_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> Randomness:
        return self._parent.bind_texts(first, digests)

    def __repr__(self) -> str:
        return f"{self._parent!r} for {len(self._names)} texts"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RandomnessError(
            "the randomness of one release cannot be pickled or copied; make it where it is needed"
        )


def _seeded_child(seed: int, path: tuple[int, ...]) -> SeededRandomness:
    child = SeededRandomness(seed)
    child._path = path
    return child


def _check_sizes(sizes: Sequence[int] | Ints) -> Ints:
    array = np.asarray(sizes)
    if array.size == 0 and array.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < 0:
        raise ConfigError(
            "sizes must be a list of integers of 0 or more, the number of words in each document; "
            f"got {array.ndim} axes of {array.dtype}"
        )
    return array.astype(np.int64)


class _DocumentStream:
    """One document's generator, created at its first draw.

    Creating it takes about 35 microseconds.

    Documents have different keys. Streams with the same key and different counters would overlap.
    """

    __slots__ = ("_call_key", "_generator", "_lock", "_name")

    def __init__(self, call_key: bytes, name: bytes, lock: threading.Lock) -> None:
        self._call_key = call_key
        self._name = name
        self._lock = lock
        self._generator: Generator | None = None

    def get_generator(self) -> Generator:
        if self._generator is None:
            with self._lock:  # two threads must not create two generators from one key
                if self._generator is None:
                    self._generator = _make_generator(self._call_key, self._name)
        return self._generator


def _make_generator(call_key: bytes, name: bytes) -> Generator:
    from randomgen import AESCounter  # most prompts are protected without a draw

    digest = blake2b(name, key=call_key, digest_size=32, person=b"textveil/doc").digest()
    key = int.from_bytes(digest[:16], "little")
    # AESCounter counts four blocks ahead and rejects a start within four of 2^128; 127 bits stay
    # clear of it.
    counter = int.from_bytes(digest[16:], "little") >> 1
    # randomgen's generators provide numpy's C interface without subclassing numpy's class.
    return Generator(cast(BitGenerator, AESCounter(key=key, counter=counter)))


class Streams:
    """One call's streams, for a single pass over its rows.

    The rows are the words of all documents, concatenated.

    A document's draws depend on the call's key, the document's name (without names, its position)
    and size, and the requests made; not on its neighbours or on how rows are chunked, as long as it
    fits into one chunk. Holds the call's key: it can be neither pickled nor copied, and its repr
    shows no key.

    Attributes:
        sizes: [B] words in each document.
    """

    def __init__(self, key: bytes, sizes: Ints, names: Sequence[bytes] | None = None) -> None:
        self._key = key
        self._names = names
        sizes.setflags(write=False)
        self.sizes = sizes
        self._generation = _generation
        self._lock = threading.Lock()
        self._used = False

    def split_rows(self, limit: int) -> Iterator[tuple[slice, "Draws"]]:
        """Yields consecutive rows of the call with their draws, in chunks.

        A chunk has at most `limit` rows. A document is split only if it is longer than `limit`:
        then at multiples of `limit` from its start, alone in its chunks, with its stream continuing
        from chunk to chunk. Use the draws of a chunk before requesting the next chunk.

        Raises:
            RandomnessError: these streams were used before, or carried over a fork.
            ConfigError: `limit` is below 1.
        """
        if limit < 1:
            raise ConfigError(f"limit must be 1 row or more, got {limit}")
        self._refuse_after_fork()
        with self._lock:
            if self._used:
                raise RandomnessError("the streams of a call can be used only once; open new ones")
            self._used = True
        return self._split_rows(limit)

    def _split_rows(self, limit: int) -> Iterator[tuple[slice, "Draws"]]:
        first = end = 0
        streams: list[_DocumentStream] = []
        offsets = [0]
        for index, size in enumerate(self.sizes.tolist()):
            if size == 0:
                continue
            if streams and end + size - first > limit:
                yield slice(first, end), self._build_draws(streams, offsets)
                first, streams, offsets = end, [], [0]
            name = index.to_bytes(16, "little") if self._names is None else self._names[index]
            stream = _DocumentStream(self._key, name, self._lock)
            if size <= limit:
                end += size
                streams.append(stream)
                offsets.append(end - first)
                continue
            for start in range(0, size, limit):
                rows = min(limit, size - start)
                yield slice(end + start, end + start + rows), self._build_draws([stream], [0, rows])
            first = end = end + size
        if streams:
            yield slice(first, end), self._build_draws(streams, offsets)

    def _build_draws(self, streams: list[_DocumentStream], offsets: list[int]) -> "Draws":
        # For each chunk anew, because the fork may come between two chunks.
        self._refuse_after_fork()
        return Draws(streams, offsets, self._generation)

    def _refuse_after_fork(self) -> None:
        _refuse_after_fork(
            self._generation, "the streams of a call", "open new ones after the fork"
        )

    def __repr__(self) -> str:
        return f"Streams({self.sizes.size} documents, {int(self.sizes.sum())} rows)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RandomnessError(
            "streams cannot be pickled or copied; open new ones where they are needed"
        )


class Draws:
    """Random values for `size` consecutive rows, from their documents' streams.

    `integers` and `bits` are exact. All other values are floating-point: a probability that depends
    on one is right only up to rounding, and a finite guarantee must say so, see
    `textveil.mechanism.contract`.

    The order of requests matters: make the same ones in the same order to repeat a run.
    """

    def __init__(self, streams: list[_DocumentStream], offsets: list[int], generation: int) -> None:
        self._streams = streams
        self._offsets = offsets
        self._generation = generation

    @property
    def size(self) -> int:
        """m, the number of rows."""
        return self._offsets[-1]

    def normal(self, width: int) -> Values:
        """Draws standard normal values [m, width]."""
        return self._fill_values(
            (width,), lambda generator, part: generator.standard_normal(out=part)
        )

    def uniform(self, width: int) -> Values:
        """Draws uniform values [m, width] in [0, 1), multiples of 2^-53."""
        return self._fill_values((width,), lambda generator, part: generator.random(out=part))

    def bits(self, width: int) -> Ints:
        """Draws integers [m, width], uniform in [0, 2^53).

        They are the values of `uniform`, times 2^53.
        """
        values = self._fill_values((width,), lambda generator, part: generator.random(out=part))
        return (values * 2.0**53).astype(np.int64)  # exact, as they are multiples of 2^-53

    def exponential(self, width: int) -> Values:
        """Draws standard exponential values [m, width]."""
        return self._fill_values(
            (width,), lambda generator, part: generator.standard_exponential(out=part)
        )

    def gamma(self, shape: float, width: int | None = None) -> Values:
        """Draws gamma values with this shape and scale 1.

        [m], or [m, width] if a width is given.
        """
        tail = () if width is None else (width,)
        return self._fill_values(
            tail, lambda generator, part: generator.standard_gamma(shape, out=part)
        )

    def beta(self, a: float, b: float, width: int) -> Values:
        """Draws Beta(a, b) values [m, width]."""
        first = self.gamma(a, width)
        return first / (first + self.gamma(b, width))

    def laplace(self, width: int) -> Values:
        """Draws standard Laplace values [m, width], density exp(-|x|) / 2."""
        # As difference of two exponentials: the logarithm of a uniform would cut the tail at 37.
        return self.exponential(width) - self.exponential(width)

    def integers(self, high: Ints) -> Ints:
        """Draws integers [m], uniform in [0, high), without bias.

        Each row has its limit in `high`.

        Args:
            high: [m] int64, 1 or more.
        """
        high = np.asarray(high)
        if high.shape != (self.size,) or high.dtype != np.int64 or (high < 1).any():
            raise ConfigError(
                f"high must be {self.size} int64 values of 1 or more, one per row; "
                f"got {high.dtype} of shape {high.shape}, or a smaller value"
            )
        return self._draw_integers(high.astype(np.uint64)).astype(np.int64)

    def select(self, mask: Flags) -> "Draws":
        """Returns the draws of the rows where `mask` [m] holds.

        They continue in the same streams.
        """
        mask = np.asarray(mask)
        if mask.shape != (self.size,) or mask.dtype != np.bool_:
            raise ConfigError(
                f"mask must be {self.size} booleans, one per row; got {mask.dtype} of shape "
                f"{mask.shape}"
            )
        offsets = np.concatenate(([0], np.cumsum(mask)))[self._offsets]
        rows = np.diff(offsets)
        streams = [self._streams[part] for part in np.flatnonzero(rows).tolist()]
        return Draws(streams, [0, *offsets[1:][rows > 0].tolist()], self._generation)

    def _draw_integers(self, high: NDArray[np.uint64]) -> NDArray[np.uint64]:
        bits = np.empty(self.size, dtype=np.uint64)
        for generator, rows in self._yield_parts():
            bits[rows] = generator.bit_generator.random_raw(rows.stop - rows.start)
        # 2^64 is not a multiple of `high`; values in the last, incomplete run of remainders are
        # redrawn.
        # Unsigned, 0 - high is 2^64 - high, whose remainder is that of 2^64.
        incomplete = (np.uint64(0) - high) % high
        retry = bits > ~incomplete
        result = bits % high
        if retry.any():
            result[retry] = self.select(retry)._draw_integers(high[retry])
        return result

    def _fill_values(
        self, tail: tuple[int, ...], draw: Callable[[Generator, Values], object]
    ) -> Values:
        values = np.empty((self.size, *tail), dtype=np.float64)
        for generator, rows in self._yield_parts():
            draw(generator, values[rows])
        return values

    def _yield_parts(self) -> Iterator[tuple[Generator, slice]]:
        _refuse_after_fork(
            self._generation, "the draws of a call", "open new streams after the fork"
        )
        for stream, (start, stop) in zip(self._streams, pairwise(self._offsets), strict=True):
            yield stream.get_generator(), slice(start, stop)

    def __repr__(self) -> str:
        return f"Draws({self.size} rows of {len(self._streams)} documents)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RandomnessError(
            "draws cannot be pickled or copied; open new streams where they are needed"
        )
