"""Reading: answers questions with spans of a text.

In: questions and texts. Out: `ExtractedAnswer`s, with their positions in the texts.
Not here: how answers are scored against gold ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from textveil.errors import ConfigError, InputError
from textveil.models.networks import Model, load
from textveil.models.sequences import PairFrame, Sequences, build_sequences, cut_texts
from textveil.randomness import Ints


class ExtractedAnswer(NamedTuple):
    """A span of a text.

    Args:
        text: the answer as written in the text; empty if the text has no words.
        start: its first character.
        end: one past its last character.
        score: sum of the logits of its first and last piece; comparable only within one reader.
    """

    text: str
    start: int
    end: int
    score: float

    def __repr__(self) -> str:
        return f"ExtractedAnswer({self.start}, {self.end}, {self.score})"


class Reader(Protocol):
    """Anything that answers questions about texts."""

    name: str

    def answer(self, questions: Sequence[str], texts: Sequence[str]) -> list[ExtractedAnswer]:
        """Answers each question i from text i."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class SpanReader:
    """An extractive question answering model as a reader. Load one with `load_reader`.

    Attributes:
        model: the network.
        frame: the special tokens around question and text.
        window: pieces per sequence: question, text and special tokens.
        longest: most pieces in an answer.
        batch: pieces per forward pass.
    """

    model: Model
    frame: PairFrame
    window: int
    longest: int
    batch: int

    @property
    def name(self) -> str:
        """The reader's name in rows."""
        return self.model.name

    def answer(self, questions: Sequence[str], texts: Sequence[str]) -> list[ExtractedAnswer]:
        """Answers each question i from text i.

        A long text is read in windows that overlap by a quarter; the best answer of all windows is
        returned.

        Raises:
            InputError: the lists differ in length, a string is not valid Unicode, or a question
                takes more than half of the window.
        """
        question_pieces, text_pieces = (
            cut_texts(self.model, questions),
            cut_texts(self.model, texts),
        )
        if len(questions) != len(texts):
            raise InputError(
                f"give one text per question, got {len(questions)} questions and {len(texts)} texts"
            )
        windows = build_sequences(
            self.model,
            [pieces for pieces, _ in text_pieces],
            self.window,
            firsts=[pieces for pieces, _ in question_pieces],
            frame=self.frame,
        )
        best: list[ExtractedAnswer] = [ExtractedAnswer("", 0, 0, -np.inf)] * len(texts)
        for which in windows.yield_batches(self.model, self.batch):
            for row, (score, first, last) in zip(
                which.tolist(), self._find_spans(windows, which), strict=True
            ):
                b, shift = int(windows.owners[row]), int(windows.begins[row] - windows.leads[row])
                places = text_pieces[b][1]
                start, end = places[shift + first][0], places[shift + last][1]
                if score > best[b].score:
                    # in some families a piece includes the space before it
                    span_text = texts[b][start:end].lstrip()
                    start, span_text = end - len(span_text), span_text.rstrip()
                    best[b] = ExtractedAnswer(span_text, start, start + len(span_text), score)
        return [
            ExtractedAnswer("", 0, 0, 0.0) if answer.score == -np.inf else answer for answer in best
        ]

    def _find_spans(self, windows: Sequences, which: Ints) -> list[tuple[float, int, int]]:
        """Finds the best span of each window.

        Its score, first and last piece, counted from the start of the sequence.
        """
        lengths, leads = windows.lengths[which, None], windows.leads[which, None]
        size = int(lengths.max())
        column = np.arange(size)
        inside = (column >= leads) & (column < lengths - len(self.model.after))
        logits = self.model.network.run(*windows.build_inputs(self.model, which))
        start, end = (
            np.where(inside, edge_logits, -np.inf)
            for edge_logits in (logits[..., 0], logits[..., 1])
        )
        # The best end at most `longest` pieces from each start: a maximum over shifted copies.
        scores, extras = np.full_like(start, -np.inf), np.zeros(start.shape, np.int64)
        for extra in range(min(self.longest, size)):
            score = start[:, : size - extra] + end[:, extra:]
            better = score > scores[:, : size - extra]
            scores[:, : size - extra][better] = score[better]
            extras[:, : size - extra][better] = extra
        row, first = np.arange(len(which)), scores.argmax(axis=1)
        last = first + extras[row, first]
        return list(zip(scores[row, first].tolist(), first.tolist(), last.tolist(), strict=True))


def load_reader(
    source: str | Path | None = None,
    *,
    window: int = 384,
    longest: int = 30,
    batch: int = 4096,
    device: str = "cpu",
) -> SpanReader:
    """Loads a reader.

    Args:
        source: None for the bundled reader, or a folder or hub id of a transformers model for
            question answering.
        window: pieces per sequence, at least 32; capped at what the model takes.
        longest: most pieces in an answer.
        batch: pieces per forward pass.
        device: a torch device.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model.
    """
    if window < 32 or longest < 1 or batch < 1:
        raise ConfigError(
            f"window must be at least 32, longest and batch at least 1, got {window}, {longest} "
            f"and {batch}"
        )
    model = load("reader", source, device=device)
    return SpanReader(
        model=model,
        frame=PairFrame.read(model),
        window=min(window, model.longest),
        longest=longest,
        batch=batch,
    )
