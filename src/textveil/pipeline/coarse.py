"""What a statement says where a table is looked at coarsely.

In: a claim, and the book of the view. Out: the claim with what the book is, and what it hides.
Not here: the view (`table`), and the mechanism that runs over it (`mechanism`).
"""

import math
from dataclasses import replace

from textveil.guarantee import Claim
from textveil.table import Book

WITHIN = (
    "two words of one code are one value to the mechanism: the loss between them is 0, however often they are released "
    "under this book; between releases under different books it is 0 only for words that share a code in all of them"
)
DRAWN_GROUPS = (
    "two words of one code and one group are one value to the mechanism; those of one code but of different groups are "
    "not, because groups are drawn at random: what the draw of a group tells of them counts"
)
BY_WORD = (
    "equal words are released alike by the word, not by the code: the mask tells different words of one code apart"
)


def coarsely(claim: Claim, book: Book, named: float | None, *, consistent: bool, drawn_groups: bool) -> Claim:
    """The claim of a mechanism that runs over the codes of a book.

    Args:
        claim: the mechanism's, on the coarse view.
        book: of the view.
        named: how often the likeliest word of a code is named right at most, None where that is not known.
        consistent: whether equal words are released alike.
        drawn_groups: whether the group of a word is drawn at random.
    """
    notes = [DRAWN_GROUPS if drawn_groups else WITHIN, *book.facts()]
    if consistent:
        notes.append(BY_WORD)
    if claim.kind == "metric":
        notes.append("distances are between codes: between the means of their words' vectors")
    if named is not None:
        notes.append(
            "whoever expects words as they stand in general public text names a word from its released code alone with "
            f"probability {math.ceil(named * 1000) / 1000:g} at most"
        )
    return replace(
        claim,
        codes=len(book),
        options={**claim.options, "book": book.to_json()},
        caveats=(*claim.caveats, *notes),
    )
