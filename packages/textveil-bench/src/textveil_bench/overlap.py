"""Word overlap of two texts: Rouge-L and a longest common subsequence.

In: two sequences of words. Out: Rouge-L, or the pairs of words that match.
Not here: how texts are split into words (`words`), and which texts are compared (`attack`,
`measure`).
"""

from collections.abc import Hashable, Sequence


def rouge_l(first: Sequence[str], second: Sequence[str]) -> float:
    """Computes Rouge-L: F1 of the longest common subsequence, ignoring case.

    Twice the length of that subsequence, over the lengths of both; from 0 to 1, and 1 if both are
    empty.

    Source: Lin, ROUGE: A Package for Automatic Evaluation of Summaries (2004), section 3.1, with
        beta = 1.
    """
    from rapidfuzz.distance import LCSseq

    if not (first or second):
        return 1.0
    common = LCSseq.similarity(
        [word.casefold() for word in first], [word.casefold() for word in second]
    )
    return 2 * common / (len(first) + len(second))


def match_words(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Returns the index pairs of a longest common subsequence, in order."""
    from rapidfuzz.distance import LCSseq

    blocks = LCSseq.editops(first, second).as_matching_blocks()
    return [(block.a + i, block.b + i) for block in blocks for i in range(block.size)]
