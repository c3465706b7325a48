"""Word pieces: a Hugging Face tokenizer's vocabulary as the units of release.

In: words. Out: the table rows of their pieces, and released pieces as words again.
Not here: which words are split (`pipeline`); words outside a table of whole words are composed in
`embedding`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from textveil.errors import ConfigError
from textveil.randomness import Flags, Ids
from textveil.table.embedding import EmbeddingTable
from textveil.table.hub import HUB_ID, download

CONTINUATION = "##"
MAX_MISSING_SHARE = 0.05
"""Largest share of a tokenizer's pieces that its table may lack.

Special and unused pieces.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class WordPieces:
    """A tokenizer over a table whose words are its pieces.

    Words are split one by one, so that each character of a text belongs to a word: what a tokenizer
    drops (some drop control characters) becomes one surrogate piece.
    """

    tokenizer: Tokenizer = field(repr=False)
    table: EmbeddingTable

    @classmethod
    def load(cls, source: str | None, table: EmbeddingTable) -> "WordPieces":
        """Loads the tokenizer of a table.

        From a folder, a tokenizer.json, a hub id, or the table itself (None).

        Raises:
            ConfigError: there is no tokenizer, or the table does not hold its pieces.
        """
        own = table.tokenizer or (table.pieces and table.pieces.tokenizer)
        tokenizer = own if source is None else _load(source)
        if not tokenizer:
            raise ConfigError(
                f"words.unit=wordpiece needs words.tokenizer: the table {table.name} has no "
                "tokenizer of its own; set it to the folder or hub id of the model, or make the "
                "table again with `textveil table build`, which keeps the tokenizer"
            )
        # Stored settings would cut words off, or add pieces that are none of the word's.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        missing = tokenizer.get_vocab_size(with_added_tokens=False) - sum(
            piece in table.row_of for piece in tokenizer.get_vocab()
        )
        # A table that was stored with its tokenizer lacks special pieces only, perhaps many.
        is_own = tokenizer is table.tokenizer
        if not is_own and missing > MAX_MISSING_SHARE * tokenizer.get_vocab_size():
            raise ConfigError(
                f"the table {table.name} lacks {missing:,} of the tokenizer's pieces; use a table "
                "of its pieces, such as table.name=minilm-wordpiece"
            )
        return cls(tokenizer=tokenizer, table=table)

    @property
    def _leading_space(self) -> str:
        return find_leading_space(self.tokenizer)

    def split(self, words: Sequence[str]) -> tuple[list[Ids], Flags]:
        """Splits each word into the rows of its pieces, at least one.

        Also says whether all of them are in the table, bool [n].
        """
        space = self._leading_space
        encodings = None
        with suppress(Exception):  # the Rust side raises bare Exception, which may quote the word
            encodings = self.tokenizer.encode_batch(
                [space + word for word in words], add_special_tokens=False
            )
        if encodings is None:
            raise ConfigError(
                "the tokenizer of words.unit=wordpiece failed on a word; give it an unknown token"
            )
        pieces = [
            encoding.tokens or [word] for encoding, word in zip(encodings, words, strict=True)
        ]
        flat = list(chain.from_iterable(pieces))
        row_of = self.table.row_of
        rows = np.fromiter((row_of.get(piece, -1) for piece in flat), np.int64, len(flat))
        outside = np.flatnonzero(rows < 0)
        in_table = rows >= 0
        rows[outside] = self.table.lookup([flat[i] for i in outside])[0]
        starts = np.cumsum([0, *map(len, pieces)])[:-1]
        if len(starts):
            in_table = np.logical_and.reduceat(in_table, starts)
        return np.split(rows, starts[1:]), in_table

    def join(self, words: Sequence[Ids]) -> list[str]:
        """Decodes released pieces to one string per word; never empty.

        By the tokenizer's decoder.
        """
        ids = [[self._id_of.get(row, -1) for row in rows.tolist()] for rows in words]
        decodable_ids: list[Sequence[int]] = [
            [] if -1 in word_ids else word_ids for word_ids in ids
        ]
        decoded = self.tokenizer.decode_batch(decodable_ids, skip_special_tokens=False)
        return [
            text.strip().removeprefix(CONTINUATION) or self._spell(rows)
            for text, rows in zip(decoded, words, strict=True)
        ]

    def _spell(self, rows: Ids) -> str:
        """Concatenates table words, for pieces that the tokenizer cannot decode."""
        return "".join(self.table.words[row].removeprefix(CONTINUATION) for row in rows.tolist())

    @cached_property
    def _id_of(self) -> dict[int, int]:
        """The tokenizer's id of each row whose word it has."""
        vocabulary = self.tokenizer.get_vocab()
        return {
            row: vocabulary[word] for word, row in self.table.row_of.items() if word in vocabulary
        }


def find_leading_space(tokenizer: Tokenizer) -> str:
    """Returns the space that marks the start of a word for byte-level tokenizers.

    "" for other tokenizers.
    """
    return " " if type(tokenizer.decoder).__name__ == "ByteLevel" else ""


def list_whole_words(tokenizer: Tokenizer, pieces: Mapping[str, int]) -> dict[str, int]:
    """Lists the pieces that are whole words, as they are written, with their rows.

    A word of letters or digits that the tokenizer cuts into this one piece where it stands alone.

    Args:
        tokenizer: without truncation and padding.
        pieces: the row of each piece.
    """
    texts = tokenizer.decode_batch([[number] for number in pieces.values()])
    written = {
        number: text.strip()
        for number, text in zip(pieces.values(), texts, strict=True)
        if text.strip().isalnum()
    }
    space = find_leading_space(tokenizer)
    encodings = tokenizer.encode_batch(
        [space + word for word in written.values()], add_special_tokens=False
    )
    return {
        word: number
        for (number, word), encoding in zip(written.items(), encodings, strict=True)
        if encoding.ids == [number]
    }


def _load(source: str) -> Tokenizer:
    path = Path(source)
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.exists():
        if not HUB_ID.fullmatch(source):
            raise ConfigError(
                "words.tokenizer must be a folder with tokenizer.json, such a file, or a hub id "
                f"(owner/name), got {source!r}"
            )
        file = download(source, "tokenizer.json")
    try:
        return Tokenizer.from_file(str(file))
    except (
        Exception
    ) as error:  # the Rust side raises bare Exception; a tokenizer file holds no user text
        raise ConfigError(f"cannot read the tokenizer {file.name} of words.tokenizer") from error
