"""TextPrivatizer: puts a public text in place of a private one, whole.

text -> cell -> drawn cell -> one of its surest public texts, with its guarantee.

In: texts, a public library, epsilon. Out: one `TextResult` per text.
Not here: which cell a text is in (`library`), how cells are drawn (`mechanism`), and releases word
by word (`privatizer`).
"""

import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from textveil.config import Config
from textveil.detect import split_sentences
from textveil.errors import BudgetError, ConfigError, InputError, quote_short
from textveil.guarantee import Sentences, TextGuarantee
from textveil.library import Level, Library
from textveil.mechanism import RandomizedResponse
from textveil.pipeline.privatizer import Privatizer, call_safely, split_batches
from textveil.pipeline.results import Private, load_notebook_page, shorten
from textveil.randomness import Ids, Randomness, SeededRandomness, SystemRandomness
from textveil.text import check_texts

WholeUnit = Literal["document", "sentence"]

MIN_KNOWN_WORDS = 6
"""The fewest words of a sentence that may not stand in the library; shorter ones are anybody's."""

MIN_ODDS = 10
"""The least odds of the true cell against all others together, of a level chosen for epsilon."""

ROWS_AT_ONCE = 4096
"""Texts or sentences drawn at once."""

MECHANISM = "the release of whole texts"


@dataclass(frozen=True, kw_only=True, eq=False)
class TextResult:
    """A public text in place of a private one, with its statement.

    Attributes:
        text: what is released: a public text, or one for each sentence with spaces between them.
        sources: the id of each public text in the library's source.
        cells: the drawn cell of each.
        guarantee: statement about it.
        library: the name of the library.
        private: the original; not in the repr, and in JSON only when asked for.
        seconds: time of the text's batch, divided by its number of texts. It tells of their
            lengths, so it is for the caller alone, and in neither repr nor JSON.
    """

    text: str
    sources: tuple[str, ...]
    cells: tuple[int, ...]
    guarantee: TextGuarantee
    library: str
    private: Private = field(repr=False)
    seconds: float = field(repr=False)

    def __repr__(self) -> str:
        """Returns the beginning of the public text, and its statement in one line."""
        return f"<TextResult {shorten(self.text)!r}: {self.guarantee.summary()}>"

    def _repr_html_(self) -> str:
        """Returns the public text, for notebooks, and its statement in one line."""
        return load_notebook_page().render_text_result(self)  # type: ignore[no-any-return]

    @property
    def source_id(self) -> str:
        """The ids of the public texts in their source, with commas between several."""
        return ", ".join(self.sources)

    def to_json(self, *, with_original: bool = False) -> dict[str, object]:
        """Returns the result as plain data; the original only if asked for."""
        out: dict[str, object] = {
            "text": self.text,
            "public": True,
            "library": self.library,
            "sources": list(self.sources),
            "cells": list(self.cells),
            "guarantee": self.guarantee.to_json(),
        }
        if with_original:
            out["original"] = {"text": self.private.get_text()}
        return out


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TextPrivatizer:
    """Privatizer of whole texts; frozen, picklable, shareable between threads.

    Each private text is replaced by a real public one. Its cell in a public library is drawn by
    exact randomised response, the public text uniformly among the surest of the drawn cell: local
    DP for the whole text, whatever its length, and none at all between two texts of one cell.

    Args:
        library: a `Library`, or the path of its file.
        epsilon: the bound for one document, or for each of its sentences.
        unit: "document", or "sentence" to replace each sentence by itself; the losses of the
            sentences of a document add up.
        level: the name of a level of cells; "auto" takes the public labels, else the classes, else
            the clusters that suit epsilon.
        sure: the share of a cell's texts, the surest, among which one is drawn; None for the
            level's own.
        seed: repeatable draws, as for `Privatizer`; the statement then says so.

    Raises:
        ConfigError: an option is wrong; BudgetError: epsilon is out of range.
        InputError: the file is not a library.
    """

    library: Library
    level: Level
    response: RandomizedResponse
    unit: WholeUnit
    sure: float | None
    randomness: Randomness

    def __init__(
        self,
        library: Library | str | Path,
        *,
        epsilon: float,
        unit: WholeUnit = "document",
        level: str = "auto",
        sure: float | None = None,
        seed: int | None = None,
    ) -> None:
        if unit not in get_args(WholeUnit):
            raise ConfigError(f"unit must be document or sentence, got {quote_short(str(unit))}")
        _check_share(sure)
        if isinstance(library, str | Path):
            library = Library.read(library)
        if not isinstance(library, Library):
            raise ConfigError(
                f"library must be a Library or the path of its file, got {type(library).__name__}"
            )
        RandomizedResponse(2, epsilon)  # refuses a wrong epsilon before it chooses a level
        cells = _choose_level(library, epsilon) if level == "auto" else library.get_level(level)
        vars(self).update(
            library=library,
            level=cells,
            response=RandomizedResponse(len(cells), epsilon),
            unit=unit,
            sure=sure,
            randomness=SystemRandomness() if seed is None else SeededRandomness(seed),
        )

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Builds a privatizer of whole texts from resolved options.

        Raises:
            ConfigError: they are options of words, or one is wrong.
        """
        texts = config.texts
        if texts.unit == "word" or texts.library is None:
            raise ConfigError(
                "whole texts need texts.unit=document or sentence (--unit) and texts.library "
                "(--library)"
            )
        if config.epsilon is None:
            raise BudgetError(f"texts.unit={texts.unit} needs a budget: set epsilon (--epsilon)")
        return cls(
            texts.library,
            epsilon=config.epsilon,
            unit=texts.unit,
            level=texts.cells,
            sure=texts.sure,
            seed=config.seed,
        )

    def with_parts(self, **parts: Any) -> Self:
        """Returns a copy with some attributes replaced."""
        copy = object.__new__(type(self))
        vars(copy).update(vars(self), **parts)
        return copy

    @property
    def claim(self) -> TextGuarantee:
        """The statement about any one document, of one sentence where each is drawn."""
        return self._build_guarantee(1)

    # ---- release ---------------------------------------------------------------------------------

    def privatize(self, text: str) -> TextResult:
        """Releases a public text in place of one.

        A text without words is one too: it has a cell, and a public text in its place.

        Args:
            text: any Unicode text.

        Raises:
            InputError: the text is not a string of valid Unicode, or it stands in the library.
        """
        return self._release_batch([text], first=0)[0]

    async def aprivatize(self, text: str) -> TextResult:
        """Runs `privatize` in a thread, so that the event loop continues."""
        import asyncio  # loading it takes longer than short texts; commands do not need it

        return await asyncio.to_thread(self.privatize, text)

    def privatize_many(
        self, texts: Iterable[str], *, first: int | None = None
    ) -> Iterator[TextResult]:
        """Releases public texts in place of some, in order and in batches.

        Args:
            texts: any number of texts.
            first: the number of the first text, where these are a part of a longer run; see
                `Privatizer.privatize_many`.

        Raises:
            InputError: a text is not a string of valid Unicode, or it stands in the library.
        """
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InputError("privatize_many takes several texts; for one text use privatize")
        part = self
        if first is not None:
            part = self.with_parts(randomness=self.randomness.derive_part(first))
        number = first or 0
        for batch in split_batches(texts, repeat(None)):
            yield from part._release_batch([text for text, _ in batch], first=number)
            number += len(batch)

    def refuse(self, texts: Sequence[str]) -> None:
        """Refuses texts that stand in the library, whole or with a sentence.

        Raises:
            InputError: one does, or is not a string of valid Unicode.
        """
        self.library.refuse([passage for _, passage in self._list_passages(texts)])

    def find_known(self, texts: Sequence[str]) -> list[int]:
        """Returns the places of texts that stand in the library, whole or with a sentence.

        Raises:
            InputError: one is not a string of valid Unicode.
        """
        passages = self._list_passages(texts)
        flags = self.library.contains([passage for _, passage in passages])
        return sorted({passages[i][0] for i in np.flatnonzero(flags).tolist()})

    def _list_passages(self, texts: Sequence[str]) -> list[tuple[int, str]]:
        """Returns texts, and sentences that may be known, with the places of their texts."""
        check_texts(texts)
        passages = list(enumerate(texts))
        if self.unit == "sentence":
            for place, text in enumerate(texts):
                sentences = split_sentences(text)
                passages += [
                    (place, sentence)
                    for sentence in sentences
                    if len(sentences) > 1 and len(sentence.split()) >= MIN_KNOWN_WORDS
                ]
        return passages

    def _release_batch(self, texts: Sequence[str], *, first: int) -> list[TextResult]:
        return call_safely(MECHANISM, self._release_texts, texts, first)

    def _release_texts(self, texts: Sequence[str], first: int) -> list[TextResult]:
        start = time.perf_counter()
        self.refuse(texts)
        pieces = [self._split(text) for text in texts]
        rows = [piece for document in pieces for piece in document]
        sizes = [len(document) for document in pieces]
        cells = self.library.find_cells(rows, self.level)
        drawn, chosen = self._draw(cells, sizes, self._bind(texts, first))
        ends = np.cumsum(sizes).tolist()
        seconds = float(f"{(time.perf_counter() - start) / max(1, len(texts)):.2g}")
        return [
            TextResult(
                text=" ".join(self.library.texts[i] for i in chosen[end - size : end].tolist()),
                sources=tuple(self.library.ids[i] for i in chosen[end - size : end].tolist()),
                cells=tuple(drawn[end - size : end].tolist()),
                guarantee=self._build_guarantee(size),
                library=self.library.name,
                private=Private(text=text, words=()),
                seconds=seconds,
            )
            for text, size, end in zip(texts, sizes, ends, strict=True)
        ]

    def _split(self, text: str) -> list[str]:
        """Returns what is drawn of a text; one without sentences counts as one."""
        return [text] if self.unit == "document" else split_sentences(text) or [""]

    def _draw(self, cells: Ids, sizes: Sequence[int], randomness: Randomness) -> tuple[Ids, Ids]:
        """Draws a cell and a text of it for each row: the one random step."""
        pools = [self.level.find_pool(cell, self.sure) for cell in range(len(self.level))]
        lengths = np.array([len(pool) for pool in pools], np.int64)
        starts, joined = np.cumsum(lengths) - lengths, np.concatenate(pools)
        drawn, chosen = np.empty_like(cells), np.empty_like(cells)
        for part, draws in randomness.open(sizes).split_rows(ROWS_AT_ONCE):
            drawn[part] = self.response.draw(draws, cells[part])
            places = draws.integers(lengths[drawn[part]])
            chosen[part] = joined[starts[drawn[part]] + places]
        return drawn, chosen

    def _bind(self, texts: Sequence[str], first: int) -> Randomness:
        """Returns the randomness of one release: repeatable draws depend on text and law."""

        def compute_digests() -> list[bytes]:
            law = json.dumps(
                {
                    "library": self.library.digest,
                    "level": self.level.name,
                    "epsilon": self.response.epsilon,
                    "unit": self.unit,
                    "sure": self.sure,
                },
                sort_keys=True,
            ).encode()
            prefix = len(law).to_bytes(8, "little") + law
            return [
                blake2b(
                    prefix + text.encode(errors="surrogatepass"),
                    digest_size=32,
                    person=b"textveil/whole",
                ).digest()
                for text in texts
            ]

        return self.randomness.bind_texts(first, compute_digests)

    def _build_guarantee(self, rows: int) -> TextGuarantee:
        """Builds the statement about one document of so many rows."""
        loss = self.response.loss
        return TextGuarantee(
            kind="ldp",
            unit=self.unit,
            way="texts",
            epsilon=loss,
            replaced=loss,
            library=self.library.get_facts(self.level),
            documents=1,
            sentences=Sentences(rows, rows) if self.unit == "sentence" else None,
            seeded=self.randomness.is_seeded,
        )

    def __repr__(self) -> str:
        """Shows the library and the unit, no text."""
        if "library" not in vars(self):  # a debugger may show it before it is built
            return f"{type(self).__name__}(not built)"
        return (
            f"{type(self).__name__}({self.library.name!r}, unit={self.unit!r}, "
            f"level={self.level.name!r})"
        )


def load_privatizer(config: Config) -> Privatizer | TextPrivatizer:
    """Builds the privatizer of resolved options: of words, or of whole texts."""
    if config.texts.unit == "word":
        return Privatizer.from_config(config)
    return TextPrivatizer.from_config(config)


def _choose_level(library: Library, epsilon: float) -> Level:
    """Chooses a level by public facts: labels, else classes, else clusters that suit epsilon.

    Of the clusters the most whose true cell is ten times likelier than all others together; the
    fewest where none is.
    """
    named = {level.kind: level for level in reversed(library.levels)}
    for kind in ("labels", "classes"):
        if kind in named:
            return named[kind]
    levels = sorted(library.levels, key=len)
    most = math.exp(min(epsilon, 700.0)) / MIN_ODDS
    return max((level for level in levels if len(level) - 1 <= most), key=len, default=levels[0])


def _check_share(share: object) -> None:
    """Refuses a share that is none."""
    is_number = isinstance(share, int | float) and not isinstance(share, bool)
    if share is not None and not (is_number and 0 < float(share) <= 1):  # type: ignore[arg-type]
        raise ConfigError("sure must be the share of a cell's texts: above 0, and 1 at most")
