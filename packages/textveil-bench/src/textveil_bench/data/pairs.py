"""Training pairs for QNLI if its own are missing: SQuAD's questions, each with two sentences of its paragraph.

In: questions with paragraphs and answers. Out: pairs labelled entailment and not_entailment, half each.
Not here: where the questions come from (`loading`), and what is trained (`tasks`).
"""

from collections.abc import Sequence
from itertools import islice
from operator import itemgetter

import regex

from textveil.randomness import SeededRandomness
from textveil_bench.examples import Example

ABBREVIATIONS = (
    r"\p{Lu}|[Mm]rs?|Ms|Drs?|St|Mt|Ft|Prof|Gen|Col|Lt|Sgt|Capt|Rev|Hon|Gov|Sen|Rep|Jr|Sr|Nos?|Vol|vs?|c|ca|cf|approx|etc|"
    r"Inc|Ltd|Co|Corp|Bros|Univ|Dept|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|e\.g|i\.e|a\.m|p\.m|U\.\p{Lu}|D\.C|Ph\.D"
)
"""What may precede a full stop within a sentence: single capitals, titles, months and the like."""

_BETWEEN = regex.compile(
    r"""(?<=[.!?][)\]"'”’»]*)(?<!\b(?:"""
    + ABBREVIATIONS
    + r""")\.)\s+(?=[(\["'“‘«]*[\p{Lu}\p{N}])"""
)


def sentences(text: str) -> list[str]:
    """The sentences of an English text, split where punctuation is followed by a capital or a digit.

    A sentence that ends in one of `ABBREVIATIONS` stays joined to the next one.
    """
    return [
        sentence
        for part in text.splitlines()
        for sentence in _BETWEEN.split(part.strip())
        if sentence
    ]


def make(
    questions: Sequence[Example], *, unseen: Sequence[Example] = (), seed: int = 0
) -> list[Example]:
    """Two pairs for each question: with a sentence of its paragraph that has the answer, and with one that does not.

    Of several, the one with the most words in common with the question is used: QNLI has few pairs with little in
    common. If every sentence has the answer, the other one is drawn from all paragraphs.

    Args:
        questions: with the texts question and paragraph, and with answers.
        unseen: examples that must not be trained on: their questions and texts, and paragraphs that contain one of
            their sentences, are left out.
        seed: of the draws, including the order of the pairs.

    Returns:
        pairs with the label 0 for the sentence with the answer, and as many with the label 1.
    """
    asked = {_plain(example.texts[0]) for example in unseen}
    judged = dict.fromkeys(text for example in unseen for text in example.texts[1:])
    read = {_plain(sentence) for text in judged for sentence in sentences(text)}
    parts = {
        text: sentences(text) for text in dict.fromkeys(example.texts[1] for example in questions)
    }
    parts = {text: each for text, each in parts.items() if read.isdisjoint(map(_plain, each))}
    usable = [
        each for each in questions if each.texts[1] in parts and _plain(each.texts[0]) not in asked
    ]
    everywhere = [sentence for each in parts.values() for sentence in each]
    found: list[tuple[float, Example]] = []
    for example, (which, *places) in zip(usable, _uniform(len(usable), 3, seed), strict=True):
        sides = _sides(example, parts[example.texts[1]], everywhere, which)
        for label, (sentence, place) in enumerate(zip(sides, places, strict=False)):
            found.append((place, Example(texts=(example.texts[0], sentence), label=label)))
    return [pair for _, pair in sorted(found, key=itemgetter(0))]


def _sides(example: Example, parts: list[str], everywhere: list[str], which: float) -> list[str]:
    """The sentence with the answer, and one without; nothing if there are none."""
    words = set(_plain(example.texts[0]).split())
    holding = [part for part in parts if any(answer in part for answer in example.answers)]
    others = [part for part in parts if part not in holding]
    if not others:
        first = int(which * len(everywhere))
        others = [
            *islice(
                (each for each in everywhere[first:] + everywhere[:first] if each not in parts), 1
            )
        ]
    if not (holding and others):  # an answer may cross the end of a sentence
        return []
    return [
        max(side, key=lambda part: len(words & set(_plain(part).split())))
        for side in (holding, others)
    ]


def _uniform(rows: int, width: int, seed: int) -> list[list[float]]:
    drawn = SeededRandomness(seed).open([rows]).chunks(max(1, rows))
    return [row for _, draws in drawn for row in draws.uniform(width).tolist()]


def _plain(text: str) -> str:
    """The words, lower-cased and without punctuation."""
    return " ".join(regex.findall(r"[\p{L}\p{N}]+", text.lower()))
