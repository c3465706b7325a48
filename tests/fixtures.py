"""Small tables, tiny tokenizers, mechanisms and a local server that tests share.

In: fixed formulas. Out: fixtures; nothing is read from elsewhere but the default tables.
Not here: anything that one test file alone needs.
"""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault(
    "TOKENIZERS_PARALLELISM", "false"
)  # or it complains about every fork of a test
os.environ.setdefault(
    "TEXTVEIL_PROGRESS", "0"
)  # or lines of progress stand among what commands say

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from training.notes import CLASSES, write_notes

from tests.postgres import MissingServerError, emptied
from tests.postgres import postgres as server
from tests.redis_server import emptied as emptied_redis
from tests.redis_server import redis as redis_server
from textveil.files import text_streams
from textveil.guarantee import Claim
from textveil.library import Library, make_library
from textveil.mechanism import Block, Layout
from textveil.randomness import Floats, Values
from textveil.table.codebook import Book, compute_fingerprints, hash_words
from textveil.table.embedding import EmbeddingTable, PieceVectors, load_table
from textveil.table.row_frequency import compute_shares

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # a shell's background jobs ignore ctrl-c, and so would ours
    signal.signal(signal.SIGINT, signal.default_int_handler)

NOUNS = re.findall(
    r"\w+",
    """
    anchor apple autumn bakery bridge butter candle carpet castle cellar cherry circle copper cotton dinner
    engine fabric family farmer feather finger forest garden ginger hammer harbor island jacket jungle kettle
    ladder lantern lemon letter marble market meadow mirror needle ocean onion orange palace pencil pepper
    pillow planet pocket rabbit ribbon river saddle silver spider stone summer temple ticket valley window
    """,
)
"""60 words, none of them on the public list."""

ENDINGS = ("##ing", "##er", "##ed")


def gaussian_rows(count: int, dimension: int, seed: int) -> Floats:
    """Rows of many lengths in all directions."""
    return np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)


def book_of(table: EmbeddingTable, many: int = 6, **changes: Any) -> Book:
    """A book for a table: row r has the code r modulo their number. In its own texts all words are equally frequent."""
    code, prior = changes.get("codes", np.arange(len(table)) % many), compute_shares(table)
    size = max(many, int(code.max()) + 1)
    sizes, masses, heads = (
        np.bincount(code, minlength=size),
        np.bincount(code, prior, size),
        np.zeros(size),
    )
    np.maximum.at(heads, code, prior)
    sizes, masses = np.maximum(sizes, 1), np.maximum(masses, 1e-9)
    made: dict[str, Any] = {
        "kind": "domain",
        "source": "twelve letters that nobody sent",
        "table": table.name,
        "words": hash_words(table.words),
        "codes": code.astype(np.uint16),
        "spelling": np.arange(many),
        "masses": masses.astype(np.float32),
        "heads": (heads / masses).astype(np.float32),
        "domain_heads": (1 / sizes).astype(np.float32),
        "texts": compute_fingerprints(["A public text.", "Another public text."]),
    }
    return Book(**{**made, **changes})


def fit(mechanism: str, table: EmbeddingTable) -> EmbeddingTable:
    """The table for a mechanism: one that draws among codes gets a coarse view of it."""
    return table.coarsen(book_of(table)) if mechanism == "codebook" else table


@dataclass(frozen=True, kw_only=True, eq=False)
class Stub:
    """A mechanism that releases what `release` says, and spends its whole epsilon per word."""

    release: Callable[[EmbeddingTable, Block], Any]
    spent: Callable[[Values], Any] = np.copy

    def claim(self, table: EmbeddingTable) -> Claim:
        return Claim(
            mechanism="stub", kind="metric", metric=table.metric, table=table.name, diameter=2.0
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon

    def parameters(self, table: EmbeddingTable, layout: Layout) -> None:
        return None

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return self.spent(parameter)

    def privatize(self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Any) -> Any:
        return self.release(table, block)


@dataclass(frozen=True)
class Opaque:
    """Another mechanism of which nothing but its draws is known; `moved` may replace its private rows."""

    inner: Any
    moved: Callable[[Any], Any] = np.copy

    def claim(self, table: EmbeddingTable) -> Claim:
        return self.inner.claim(table)

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return self.inner.calibrate(table, layout, epsilon)

    def parameters(self, table: EmbeddingTable, layout: Layout) -> Any:
        return self.inner.parameters(table, layout)

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return self.inner.spend(table, layout, parameter)

    def privatize(self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Any) -> Any:
        moved = Block(layout=block.layout, rows=self.moved(block.rows))
        return self.inner.privatize(table, moved, parameter, rng=rng)


@pytest.fixture(scope="session")
def stub() -> type[Stub]:
    """The class of mechanisms that do what a test says."""
    return Stub


@pytest.fixture(scope="session")
def echo() -> Stub:
    """A mechanism that releases every word's own row: what is not changed by it is changed by the pipeline."""
    return Stub(release=lambda table, block: block.secret.copy())


@pytest.fixture(scope="session")
def small_table() -> EmbeddingTable:
    """60 words x 8, chord, without pieces."""
    return EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))


@pytest.fixture(scope="session")
def raw_table() -> EmbeddingTable:
    """The same rows with the Euclidean metric."""
    return EmbeddingTable.build(
        name="small-raw", words=NOUNS, vectors=gaussian_rows(60, 8, 7), metric="euclidean"
    )


def wordpieces() -> list[str]:
    """The vocabulary of the tiny WordPiece tokenizer."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    return [
        "[UNK]",
        *letters,
        *(f"##{letter}" for letter in letters),
        *"0123456789",
        *NOUNS,
        *ENDINGS,
    ]


@pytest.fixture(scope="session")
def wordpiece_tokenizer() -> Tokenizer:
    """WordPiece as BERT has it: lower-cases, drops control characters, knows letters, 60 words and 3 endings."""
    tokenizer = Tokenizer(
        models.WordPiece(
            vocab={piece: i for i, piece in enumerate(wordpieces())},
            unk_token="[UNK]",
            max_input_chars_per_word=100,
        )
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


@pytest.fixture(scope="session")
def pieces_table(wordpiece_tokenizer: Tokenizer) -> EmbeddingTable:
    """60 words x 8, chord, whose other words are composed from the tiny tokenizer's pieces."""
    vectors = gaussian_rows(len(wordpieces()), 8, 11)
    return EmbeddingTable.build(
        name="pieces",
        words=NOUNS,
        vectors=vectors[[wordpieces().index(noun) for noun in NOUNS]],
        pieces=PieceVectors(tokenizer=wordpiece_tokenizer, vectors=vectors),
    )


@pytest.fixture(scope="session")
def wordpiece_table(wordpiece_tokenizer: Tokenizer) -> EmbeddingTable:
    """Every piece of the tiny WordPiece tokenizer but [UNK], for the unit wordpiece."""
    vectors = gaussian_rows(len(wordpieces()), 8, 11)
    return EmbeddingTable.build(
        name="wordpiece-tiny",
        words=wordpieces()[1:],
        vectors=vectors[1:],
        pieces=PieceVectors(tokenizer=wordpiece_tokenizer, vectors=vectors),
    )


@pytest.fixture(scope="session")
def bpe_tokenizer() -> Tokenizer:
    """Byte-level BPE as GPT-2 has it: 256 bytes, and merges that make ten words with the space before them."""
    vocabulary = dict.fromkeys(sorted(pre_tokenizers.ByteLevel.alphabet()))
    merges: dict[tuple[str, str], None] = {}
    for noun in NOUNS[:10]:
        whole = "Ġ"
        for letter in noun:
            merges[whole, letter] = None
            whole += letter
            vocabulary[whole] = None
    tokenizer = Tokenizer(
        models.BPE(vocab={piece: i for i, piece in enumerate(vocabulary)}, merges=list(merges))
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@pytest.fixture(scope="session")
def bpe_table(bpe_tokenizer: Tokenizer) -> EmbeddingTable:
    """Every piece of the tiny BPE tokenizer."""
    vocabulary = bpe_tokenizer.get_vocab()
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    vectors = gaussian_rows(len(words), 8, 13)
    return EmbeddingTable.build(
        name="bpe-tiny",
        words=words,
        vectors=vectors,
        pieces=PieceVectors(tokenizer=bpe_tokenizer, vectors=vectors),
    )


@pytest.fixture(scope="session")
def minilm_s() -> EmbeddingTable:
    """The default model's words, 21,719 rows."""
    return load_table("minilm-s")


@pytest.fixture(scope="session")
def notes_library() -> Library:
    """A library of the package's invented notes: by vectors and words, with labels and classes."""
    notes = write_notes(50)
    return make_library(
        [note["text"] for note in notes],
        labels=[note["kind"] for note in notes],
        classes=CLASSES,
        cells="both",
        source="invented notes",
        licence="Apache-2.0",
        name="notes",
    )


@pytest.fixture(scope="session")
def openai_server() -> Iterator[str]:
    """Where `tests.openai_server` runs, as a process of its own; closing its standard input ends it."""
    command = [sys.executable, "-m", "tests.openai_server"]
    root = Path(__file__).parent.parent
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server of PostgreSQL; see `postgres`."""
    pytest.importorskip("psycopg", reason="the extra `store` is not installed")
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # whose parents others can enter, unlike those of `tmp_path`
        try:
            with server(Path(folder)) as url:
                yield url
        except MissingServerError as error:
            pytest.skip(str(error))


@pytest.fixture
def postgres(postgresql: str) -> str:
    """The URL of an empty database in PostgreSQL."""
    return emptied(postgresql)


@pytest.fixture(scope="session")
def running_redis() -> Iterator[str]:
    """The URL of a Redis server; see `redis_server`."""
    pytest.importorskip("redis", reason="the extra `redis` is not installed")
    with tempfile.TemporaryDirectory() as folder:
        try:
            with redis_server(Path(folder)) as url:
                yield url
        except MissingServerError as error:
            pytest.skip(str(error))


@pytest.fixture
def redis(running_redis: str) -> str:
    """The URL of an empty Redis server."""
    return emptied_redis(running_redis)


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, call: str, after: int) -> Iterator[None]:
    """A disk on which `call` (fsync or replace, of files) fails after so many times."""
    calls, real = 0, getattr(os, call)

    def fail(target: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += call == "replace" or not stat.S_ISDIR(os.fstat(target).st_mode)
        if calls > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(target, *arguments, **more)

    with monkeypatch.context() as disk:
        disk.setattr(text_streams, "sync_folder", lambda _: None)
        disk.setattr(os, call, fail)
        yield
