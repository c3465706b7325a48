"""Reading: the answer to a question as a span of a text.

In: questions and texts. Out: `Answer`s, with their places in the texts.
Not here: how answers are scored against gold ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch

from textveil.encoder.models import Model, load
from textveil.encoder.ragged import Windows, batches, pad
from textveil.errors import ConfigError, InputError, ModelError
from textveil.words import Ints, check_texts


class Answer(NamedTuple):
    """A span of a text.

    Args:
        text: the answer as it stands there; empty where the text has no words.
        start: its first character.
        end: the character after its last.
        score: the sum of the two logits of its first and last piece; comparable within one reader only.
    """

    text: str
    start: int
    end: int
    score: float


class Reader(Protocol):
    """Whatever answers questions about texts."""

    name: str

    def answer(self, questions: Sequence[str], texts: Sequence[str]) -> list[Answer]:
        """One answer per question about the text of the same number."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanReader:
    """An extractive question answering model as a reader. Load one with `load_reader`.

    Attributes:
        model: the network.
        between: pieces between question and text.
        types: the token types of question and text.
        window: pieces that the network sees at once: question, text and frame.
        longest: pieces in an answer at most.
        batch: pieces in one run of the network.
    """

    model: Model
    between: tuple[int, ...]
    types: tuple[int, int]
    window: int
    longest: int
    batch: int

    @property
    def name(self) -> str:
        """What rows call it."""
        return self.model.name

    def answer(self, questions: Sequence[str], texts: Sequence[str]) -> list[Answer]:
        """One answer per question about the text of the same number.

        A long text is read in windows that overlap by a quarter, and the best answer of all windows is given.

        Raises:
            InputError: the lists differ in length, or hold what is no valid text, or a question takes more than half
                of the window.
        """
        check_texts(questions)
        check_texts(texts)
        if len(questions) != len(texts):
            raise InputError(f"every question needs its text: got {len(questions)} questions, {len(texts)} texts")
        best: list[Answer] = [Answer("", 0, 0, -np.inf)] * len(texts)
        asked = self._cut(questions)
        read = self._cut(texts)
        rows: list[list[int]] = []
        owners: list[tuple[int, int, int]] = []
        for b in range(len(texts)):
            lead = self._question(b, asked[b][0])
            room = self.window - len(lead) - len(self.model.after)
            ids = read[b][0]
            windows = Windows.over(np.array([0, len(ids)]), room, room // 4)
            for begin, length in zip(windows.begins.tolist(), windows.lengths.tolist(), strict=True):
                rows.append([*lead, *ids[begin : begin + length], *self.model.after])
                owners.append((b, begin, len(lead)))
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        for which in batches(lengths, self.batch):
            for row, (score, first, last) in zip(
                which.tolist(), self._spans(rows, owners, lengths, which), strict=True
            ):
                b, begin, lead = owners[row]
                places = read[b][1]
                start, end = places[begin + first - lead][0], places[begin + last - lead][1]
                if score > best[b].score:
                    found = texts[b][start:end].lstrip()  # pieces of some families hold the space before a word
                    start, found = end - len(found), found.rstrip()
                    best[b] = Answer(found, start, start + len(found), score)
        return [Answer("", 0, 0, 0.0) if answer.score == -np.inf else answer for answer in best]

    def _question(self, b: int, pieces: list[int]) -> list[int]:
        if len(pieces) > (room := self.window // 2):
            raise InputError(
                f"a question may take half of the reader's window, {room} pieces; question {b} has {len(pieces)}"
            )
        return [*self.model.before, *pieces, *self.between]

    def _cut(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        encodings = None
        try:
            encodings = self.model.tokenizer.encode_batch(texts, add_special_tokens=False)
        except Exception:  # the Rust side raises bare Exception, and may name what it could not cut
            encodings = None
        if encodings is None:
            raise ModelError(f"the tokenizer of {self.name} must cut every text; give it an unknown token")
        return [(encoding.ids, encoding.offsets) for encoding in encodings]

    def _spans(
        self, rows: list[list[int]], owners: list[tuple[int, int, int]], lengths: Ints, which: Ints
    ) -> list[tuple[float, int, int]]:
        """The best span of each window: score, first and last piece, counted from the window's beginning."""
        size = int(lengths[which].max())
        ids = np.zeros((len(which), size), np.int64)
        for i, row in enumerate(which.tolist()):
            ids[i, : lengths[row]] = rows[row]
        leads = np.array([owners[row][2] for row in which.tolist()])
        inputs = pad(self.model, ids, lengths[which])
        column = np.arange(size)
        if self.model.segments > 1:
            types = np.where(column < leads[:, None], self.types[0], self.types[1])
            inputs["token_type_ids"] = torch.from_numpy(types).to(self.model.device)
        with torch.inference_mode():
            output = self.model.network(**inputs)
        inside = (column >= leads[:, None]) & (column < (lengths[which] - len(self.model.after))[:, None])
        hidden = torch.from_numpy(~inside)
        start = output.start_logits.float().cpu().masked_fill(hidden, -torch.inf)
        end = output.end_logits.float().cpu().masked_fill(hidden, -torch.inf)
        # The best end at most `longest` pieces from each start: a maximum over shifted copies.
        scores = torch.full_like(start, -torch.inf)
        length = torch.zeros(start.shape, dtype=torch.int64)
        for extra in range(min(self.longest, size)):
            score = start[:, : size - extra] + end[:, extra:]
            better = score > scores[:, : size - extra]
            scores[:, : size - extra] = torch.where(better, score, scores[:, : size - extra])
            length[:, : size - extra][better] = extra
        best, first = scores.max(dim=1)
        last = first + length[torch.arange(len(which)), first]
        return list(zip(best.tolist(), first.tolist(), last.tolist(), strict=True))


def load_reader(
    source: str | Path | None = None,
    *,
    window: int = 384,
    longest: int = 30,
    batch: int = 4096,
    device: str = "cpu",
) -> SpanReader:
    """A reader.

    Args:
        source: None for the bundled reader, or a folder or hub id of a transformers model for question answering.
        window: pieces that the network sees at once, at least 32; no more than the model takes.
        longest: pieces in an answer at most.
        batch: pieces in one run of the network.
        device: a torch device.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model.
    """
    if window < 32 or longest < 1 or batch < 1:
        raise ConfigError(
            f"window must be at least 32, longest and batch at least 1, got {window}, {longest} and {batch}"
        )
    model = load("reader", source, device=device)
    pair = model.tokenizer.encode("a", "a")
    bare = model.tokenizer.encode("a", add_special_tokens=False).ids
    lead = len(model.before) + len(bare)
    size = len(pair.ids) - lead - len(bare) - len(model.after)
    if size < 0:
        raise ModelError(f"the tokenizer of {model.name} must know how to join a question and a text")
    between = tuple(pair.ids[lead : lead + size])
    return SpanReader(
        model=model,
        between=between,
        types=(pair.type_ids[0], pair.type_ids[lead + size]),
        window=min(window, model.longest),
        longest=longest,
        batch=batch,
    )
