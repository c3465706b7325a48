"""Public texts of the learning attacker: deduplicated, and split in two.

The parts have little in common.

In: texts that anybody may read. Out: those to count words in, and those to try the mechanism on.
Not here: what is counted (`knowledge`).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from textveil.randomness import Flags, Ids, Randomness
from textveil.text import tokenize

RUN_WORDS = 5
"""The run length in words for finding texts inside others.

Shorter texts are compared as a whole.
"""

COMPARED_RUN_WORDS = 3
"""The run length in words for comparing the two parts."""

MAX_SHARED_RUNS = 0.3
"""The share of runs in common at which a text is dropped.

A text that shares more of its runs with the tried texts is not counted, unless most do.
"""

MAX_TRIAL_SHARE = 1 / 3
"""The largest share of the texts that is tried."""

# 2^64 divided by the golden ratio, a usual multiplier of hashes.
_STEP = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


def drop_contained_texts(texts: Sequence[str]) -> list[str]:
    """Drops texts whose words another text contains in the same order.

    The longest come first.

    Treebanks list a sentence, and then each phrase of it again: whoever counts words in both counts
    them twice.
    """
    ordered = sorted(dict.fromkeys(texts), key=len, reverse=True)
    sequence, documents = _number_words(ordered)
    sizes = np.diff(documents)
    is_contained = sizes == 0
    for length in range(1, RUN_WORDS):
        is_contained |= _find_repeats(sequence, documents, length)[0] & (sizes == length)
    repeats, run, text = _find_repeats(sequence, documents, RUN_WORDS)
    text_numbers = np.flatnonzero(repeats & (sizes >= RUN_WORDS))
    is_contained[text_numbers] = _find_contained(sequence, documents, run, text, text_numbers)
    return [
        candidate
        for candidate, is_dropped in zip(ordered, is_contained.tolist(), strict=True)
        if not is_dropped
    ]


def _find_repeats(sequence: Ids, documents: Ids, length: int) -> tuple[Flags, Ids, Ids]:
    """Finds texts whose runs all occur in earlier texts.

    Returns also the number of each run, and the text that it is in.
    """
    runs, text = _hash_runs(sequence, documents, length)
    _, run = np.unique(runs, return_inverse=True)
    texts = len(documents) - 1
    first = np.full(int(run.max(initial=-1)) + 1, texts)
    np.minimum.at(first, run, text)
    repeats = np.ones(texts, bool)
    np.logical_and.at(repeats, text, first[run] < text)
    return repeats, run, text


def _find_contained(
    sequence: Ids, documents: Ids, run: Ids, text: Ids, text_numbers: Ids
) -> list[bool]:
    """Says of each text whether an earlier one contains all its words.

    Candidates are found by the text's rarest run.
    """
    order = np.argsort(run, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(run)))
    begins = np.searchsorted(text, text_numbers)
    words = sequence.astype(np.int32)
    result = []
    for number, begin in zip(text_numbers.tolist(), begins.tolist(), strict=True):
        size = documents[number + 1] - documents[number]
        text_runs = run[begin : begin + size - RUN_WORDS + 1]
        rarest = text_runs[np.argmin(starts[text_runs + 1] - starts[text_runs])]
        spelled = words[documents[number] : documents[number + 1]].tobytes()
        candidates = dict.fromkeys(text[order[starts[rarest] : starts[rarest + 1]]].tolist())
        result.append(
            any(
                spelled in words[documents[i] : documents[i + 1]].tobytes()
                for i in candidates
                if i < number
            )
        )
    return result


def split_texts(texts: Sequence[str], words: int, rng: Randomness) -> tuple[list[str], list[str]]:
    """Splits texts into those to count and those to try.

    The mechanism is tried on texts that were not counted.

    Args:
        texts: without repetitions.
        words: how many words the texts to try have, but for a third of the texts at most.
        rng: draws them.
    """
    keys = np.empty(len(texts))
    for part, draws in rng.open([len(texts)]).split_rows(max(1, len(texts))):
        keys[part] = draws.uniform(1)[:, 0]
    ordered = [texts[i] for i in np.argsort(keys, kind="stable").tolist()]
    sequence, documents = _number_words(ordered)
    trial_count = min(int(np.searchsorted(documents, words)), int(len(texts) * MAX_TRIAL_SHARE))
    runs, text = _hash_runs(sequence, documents, COMPARED_RUN_WORDS)
    is_shared = np.isin(runs, runs[text < trial_count])
    shared = np.bincount(text, is_shared, minlength=len(texts)) / np.maximum(
        1, np.bincount(text, minlength=len(texts))
    )
    max_share = max(MAX_SHARED_RUNS, float(np.median(shared[trial_count:])))
    count_texts = [
        candidate
        for candidate, share in zip(
            ordered[trial_count:], shared[trial_count:].tolist(), strict=True
        )
        if share <= max_share
    ]
    return count_texts, ordered[:trial_count]


def _number_words(texts: Sequence[str]) -> tuple[Ids, Ids]:
    """Numbers the lowercased words of texts, and returns where texts start."""
    tokens = tokenize(texts)
    number: dict[str, int] = {}
    numbers = [number.setdefault(word.lower(), len(number)) for word in tokens.words]
    return np.array(numbers, np.int64), tokens.documents


def _hash_runs(sequence: Ids, documents: Ids, length: int) -> tuple[Hashes, Ids]:
    """Hashes every run of a given length, and returns its text."""
    text = np.repeat(np.arange(len(documents) - 1), np.diff(documents))
    starts = np.flatnonzero(np.arange(len(sequence)) + length <= documents[1:][text])
    hashes = np.zeros(len(starts), np.uint64)
    for offset in range(length):
        hashes = hashes * _STEP + sequence[starts + offset].astype(np.uint64) + np.uint64(1)
        hashes ^= hashes >> np.uint64(29)
    return hashes, text[starts]
