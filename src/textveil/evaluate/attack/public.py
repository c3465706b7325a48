"""Public texts for an attacker who learns: without repetitions, and in two parts that have little in common.

In: texts that anybody may read. Out: those to count words in, and those to try the mechanism on.
Not here: what is counted (`knowledge`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from textveil.randomness import Flags, Ids, Randomness
from textveil.text import tokenize

RUN = 5
"""Texts are compared by runs of so many words, or by all their words, where they have fewer."""

COMMON = 3
"""The two parts are compared by runs of so many words."""

SHARED = 0.3
"""A text that shares more of its runs than this with those that are tried is not counted, unless most do."""

TRIED = 1 / 3
"""At most so much of the texts is tried."""

_STEP = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


def distinct(texts: Sequence[str]) -> list[str]:
    """The texts but for those whose words another one holds in the same order; the longest first.

    Treebanks list a sentence, and then each phrase of it again: whoever counts words in both counts them twice.
    """
    ordered = sorted(dict.fromkeys(texts), key=len, reverse=True)
    sequence, documents = _numbered(ordered)
    sizes = np.diff(documents)
    held = sizes == 0
    for length in range(1, RUN):
        held |= _repeats(sequence, documents, length)[0] & (sizes == length)
    repeats, run, text = _repeats(sequence, documents, RUN)
    asked = np.flatnonzero(repeats & (sizes >= RUN))
    held[asked] = _inside(sequence, documents, run, text, asked)
    return [each for each, known in zip(ordered, held.tolist(), strict=True) if not known]


def _repeats(sequence: Ids, documents: Ids, length: int) -> tuple[Flags, Ids, Ids]:
    """Which texts have only runs that stand in earlier ones; the number of each run, and the text that it is in."""
    runs, text = _runs(sequence, documents, length)
    _, run = np.unique(runs, return_inverse=True)
    texts = len(documents) - 1
    first = np.full(int(run.max(initial=-1)) + 1, texts)
    np.minimum.at(first, run, text)
    repeats = np.ones(texts, bool)
    np.logical_and.at(repeats, text, first[run] < text)
    return repeats, run, text


def _inside(sequence: Ids, documents: Ids, run: Ids, text: Ids, asked: Ids) -> list[bool]:
    """Whether the words of some texts stand in one before them, which their rarest run leads to."""
    order = np.argsort(run, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(run)))
    begins = np.searchsorted(text, asked)
    words = sequence.astype(np.int32)
    found = []
    for number, begin in zip(asked.tolist(), begins.tolist(), strict=True):
        size = documents[number + 1] - documents[number]
        own = run[begin : begin + size - RUN + 1]
        rarest = own[np.argmin(starts[own + 1] - starts[own])]
        spelled = words[documents[number] : documents[number + 1]].tobytes()
        others = dict.fromkeys(text[order[starts[rarest] : starts[rarest + 1]]].tolist())
        found.append(
            any(
                spelled in words[documents[i] : documents[i + 1]].tobytes()
                for i in others
                if i < number
            )
        )
    return found


def split(texts: Sequence[str], words: int, rng: Randomness) -> tuple[list[str], list[str]]:
    """Texts to count in, and texts to try the mechanism on, which were not counted.

    Args:
        texts: without repetitions.
        words: how many words the texts to try have, but for a third of the texts at most.
        rng: draws them.
    """
    keys = np.empty(len(texts))
    for part, draws in rng.open([len(texts)]).chunks(max(1, len(texts))):
        keys[part] = draws.uniform(1)[:, 0]
    ordered = [texts[i] for i in np.argsort(keys, kind="stable").tolist()]
    sequence, documents = _numbered(ordered)
    tried = min(int(np.searchsorted(documents, words)), int(len(texts) * TRIED))
    runs, text = _runs(sequence, documents, COMMON)
    seen = np.isin(runs, runs[text < tried])
    shared = np.bincount(text, seen, minlength=len(texts)) / np.maximum(
        1, np.bincount(text, minlength=len(texts))
    )
    most = max(SHARED, float(np.median(shared[tried:])))
    apart = [
        each
        for each, share in zip(ordered[tried:], shared[tried:].tolist(), strict=True)
        if share <= most
    ]
    return apart, ordered[:tried]


def _numbered(texts: Sequence[str]) -> tuple[Ids, Ids]:
    """The words of texts as numbers, in small letters, and where each text starts."""
    tokens = tokenize(texts)
    number: dict[str, int] = {}
    found = [number.setdefault(word.lower(), len(number)) for word in tokens.words]
    return np.array(found, np.int64), tokens.documents


def _runs(sequence: Ids, documents: Ids, length: int) -> tuple[Hashes, Ids]:
    """A hash of every run of so many words, and the text that it is in."""
    text = np.repeat(np.arange(len(documents) - 1), np.diff(documents))
    starts = np.flatnonzero(np.arange(len(sequence)) + length <= documents[1:][text])
    found = np.zeros(len(starts), np.uint64)
    for offset in range(length):
        found = found * _STEP + sequence[starts + offset].astype(np.uint64) + np.uint64(1)
        found ^= found >> np.uint64(29)
    return found, text[starts]
