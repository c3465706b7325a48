"""Word scores of a general English trigram model, which comes with PocketSphinx.

In: words of texts, and candidates for some of them. Out: ln of how likely each candidate is there.
Not here: which words are candidates (`candidates`), and how much this counts (`learned`).
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import Any

import numpy as np

from textveil.config.extras import import_library
from textveil.randomness import Floats, Ids

LOG_UNIT = math.log(1.0001)
"""The natural logarithm of the base of the model's logarithms."""

UNKNOWN_LOG_SCORE = -(1 << 29)
"""The log score below which a word is unknown to the model."""

TRIGRAM_FEATURES = ("behind two", "before one", "before two")
"""Names of the scores: the word, the next, the one after.

ln of the probability of each, after up to two words.
"""


@cache
def load() -> Any:
    """Loads the model, which takes a tenth of a second.

    Raises:
        MissingExtra: PocketSphinx is not installed.
    """
    module = import_library("pocketsphinx")
    return module.NGramModel.readfile(module.get_model_path("en-us/en-us.lm.bin"))


def score_choices(
    words: Sequence[str], documents: Ids, items: Ids, choices: Sequence[Sequence[str]]
) -> Floats:
    """Scores choices in place of some words: [m, K, F].

    Log probabilities, centred on the mean of the known choices.

    Signs are left out. A word that the model does not know tells nothing: as a choice it gets 0, as
    a neighbour the words up to it are all that is looked at.

    Args:
        words: the T words of all texts.
        documents: int64 [B + 1], where each text starts.
        items: int64 [m], numbers of words, rising.
        choices: K words for each.
    """
    prob = load().prob
    is_known = cache(lambda word: prob([word]) > UNKNOWN_LOG_SCORE)
    scores = np.zeros(
        (len(items), len(choices[0]) if len(choices) else 0, len(TRIGRAM_FEATURES)), np.float32
    )
    for number, (before, behind) in enumerate(_yield_neighbours(words, documents, items, is_known)):
        parts = [([], before), *((behind[i::-1], before[: 1 - i]) for i in range(len(behind)))]
        # the latest word first
        questions = [(len(first), [*first, "", *last]) for first, last in parts]
        choice_scores = []
        for k, word in enumerate(map(str.lower, choices[number])):
            if is_known(word):
                for place, question in questions:
                    question[place] = word
                choice_scores.append((k, [prob(question) for _, question in questions]))
        if choice_scores:
            which, values = zip(*choice_scores, strict=True)
            logs = LOG_UNIT * np.array(values)
            scores[number, which, : logs.shape[1]] = logs - logs.mean(axis=0)
    return scores


def _yield_neighbours(
    words: Sequence[str], documents: Ids, items: Ids, is_known: Any
) -> Iterator[tuple[list[str], list[str]]]:
    """Yields up to two known words before and behind each item.

    The closest come first.
    """
    item_numbers = set(items.tolist())
    for start, end in pairwise(documents.tolist()):
        word_numbers = [
            i for i in range(start, end) if i in item_numbers or any(map(str.isalnum, words[i]))
        ]
        spellings = ["<s>", *(words[i].lower() for i in word_numbers), "</s>"]
        for place, item in enumerate(word_numbers, 1):
            if item in item_numbers:
                yield (
                    _take_known(reversed(spellings[max(0, place - 2) : place]), is_known),
                    _take_known(iter(spellings[place + 1 : place + 3]), is_known),
                )


def _take_known(words: Iterator[str], is_known: Any) -> list[str]:
    return list(takewhile(is_known, words))
