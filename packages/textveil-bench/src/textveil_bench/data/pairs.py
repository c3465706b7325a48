"""Training pairs for QNLI without its own: questions and sentences of SQuAD.

In: questions with paragraphs and answers. Out: pairs labelled entailment and not_entailment, half
each.
Not here: the source of the questions (`loading`), and the training (`tasks`).
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
"""Text before a full stop within a sentence: initials, titles, months."""

_SENTENCE_END = regex.compile(
    r"""(?<=[.!?][)\]"'”’»]*)(?<!\b(?:"""
    + ABBREVIATIONS
    + r""")\.)\s+(?=[(\["'“‘«]*[\p{Lu}\p{N}])"""
)


def split_sentences(text: str) -> list[str]:
    """Splits an English text at punctuation followed by a capital or digit.

    A sentence that ends in one of `ABBREVIATIONS` stays joined to the next one.
    """
    return [
        sentence
        for part in text.splitlines()
        for sentence in _SENTENCE_END.split(part.strip())
        if sentence
    ]


def make_pairs(
    questions: Sequence[Example], *, unseen: Sequence[Example] = (), seed: int = 0
) -> list[Example]:
    """Makes two pairs per question: a sentence with the answer, one without.

    Both are from the question's paragraph. Of several sentences, the one with the most words in
    common with the question is used: QNLI has few pairs with little overlap. If every sentence has
    the answer, the other one is drawn from all paragraphs.

    Args:
        questions: examples with question and paragraph as texts, and with answers.
        unseen: examples to exclude from training: their questions and texts, and paragraphs that
            contain one of their sentences, are left out.
        seed: of the draws, including the order of the pairs.

    Returns:
        pairs with label 0 for the sentence with the answer, and equally many with label 1.
    """
    unseen_questions = {_normalize(example.texts[0]) for example in unseen}
    unseen_texts = dict.fromkeys(text for example in unseen for text in example.texts[1:])
    unseen_sentences = {
        _normalize(sentence) for text in unseen_texts for sentence in split_sentences(text)
    }
    parts = {
        text: split_sentences(text)
        for text in dict.fromkeys(example.texts[1] for example in questions)
    }
    parts = {
        text: item
        for text, item in parts.items()
        if unseen_sentences.isdisjoint(map(_normalize, item))
    }
    usable = [
        item
        for item in questions
        if item.texts[1] in parts and _normalize(item.texts[0]) not in unseen_questions
    ]
    all_sentences = [sentence for item in parts.values() for sentence in item]
    keyed_pairs: list[tuple[float, Example]] = []
    for example, (pick, *sort_keys) in zip(
        usable, _draw_uniform(len(usable), 3, seed), strict=True
    ):
        sides = _pick_sides(example, parts[example.texts[1]], all_sentences, pick)
        for label, (sentence, sort_key) in enumerate(zip(sides, sort_keys, strict=False)):
            keyed_pairs.append((sort_key, Example(texts=(example.texts[0], sentence), label=label)))
    return [pair for _, pair in sorted(keyed_pairs, key=itemgetter(0))]


def _pick_sides(
    example: Example, parts: list[str], all_sentences: list[str], pick: float
) -> list[str]:
    """Picks the sentence with the answer, and one without; empty without both."""
    words = set(_normalize(example.texts[0]).split())
    answer_sentences = [part for part in parts if any(answer in part for answer in example.answers)]
    other_sentences = [part for part in parts if part not in answer_sentences]
    if not other_sentences:
        first = int(pick * len(all_sentences))
        other_sentences = [
            *islice(
                (
                    sentence
                    for sentence in all_sentences[first:] + all_sentences[:first]
                    if sentence not in parts
                ),
                1,
            )
        ]
    if not (answer_sentences and other_sentences):  # an answer may cross the end of a sentence
        return []
    return [
        max(side, key=lambda part: len(words & set(_normalize(part).split())))
        for side in (answer_sentences, other_sentences)
    ]


def _draw_uniform(rows: int, width: int, seed: int) -> list[list[float]]:
    chunks = SeededRandomness(seed).open([rows]).split_rows(max(1, rows))
    return [row for _, draws in chunks for row in draws.uniform(width).tolist()]


def _normalize(text: str) -> str:
    """Joins the words in lower case, without punctuation."""
    return " ".join(regex.findall(r"[\p{L}\p{N}]+", text.lower()))
