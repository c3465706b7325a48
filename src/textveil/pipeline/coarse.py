"""Statement of a codebook: its description and caveats.

In: a claim, and a coarse view. Out: the claim with the book's properties, and what it hides.
Not here: the view (`table`), and the mechanism that runs over it (`mechanism`).
"""

import math
from dataclasses import replace
from itertools import compress

from textveil.guarantee import Claim
from textveil.protect import GROUPS
from textveil.randomness import Values
from textveil.table import Book, Books, EmbeddingTable, shares

WITHIN = (
    "two words of one code are one value to the mechanism: the loss between them is 0, however often they are released "
    "under this book; between releases under different books it is 0 only for words that share a code in all of them"
)
NESTED = (
    "the codes are of levels of the nested book {book}: two words of one of its {codes} codes have one code at all "
    "coarser levels, too{finest}; the loss between them is 0, however often they are released at these levels, in "
    "whatever groups; releases at several levels are several draws, whose epsilons add up"
)
FINEST = ", and two words of one of its {codes} finest codes at every level"
OF_GROUP = (
    "two words of one group and one code of its book are one value to the mechanism: the loss between them is 0, "
    "however often they are released under these books; a group with finer codes tells words apart that have one code "
    "in another group, and the group is in the mask"
)
DRAWN_GROUPS = (
    "two words of one code and one group are one value to the mechanism; those of one code but of different groups are "
    "not, because groups are drawn at random: what the draw of a group tells of them counts"
)
BESIDES = (
    "names and figures that are drawn beside codes are drawn as they are, from lists and by noise, not by code: two of "
    "one code are told apart, each with the epsilon of its own type; what is said of codes is of all other words"
)
BY_WORD = (
    "equal words are one draw, by the word and not by the code: a word loses its epsilon once, at all its places "
    "together, and the mask shows these places; so different words of one code are told apart by how often they stand "
    "in a text or session, and beside what, which no epsilon bounds"
)
DISTANCES = "distances are between codes: between the means of their words' vectors"
RETURNED = (
    "a text that returns is released as it was before: whether two releases are of the same text shows, also where it "
    "differs from another in words of one code alone"
)


def coarsely(
    claim: Claim,
    table: EmbeddingTable,
    named: float | None,
    *,
    consistent: bool,
    drawn_groups: bool,
    besides: bool,
) -> Claim:
    """Adds a codebook's description and caveats to a claim.

    Args:
        claim: claim of the mechanism, on the coarse view.
        table: the coarse view, or a projection of it.
        named: bound on how often the likeliest word of a code is guessed right, None where that is
            not known.
        consistent: True if equal words are released alike.
        drawn_groups: True if the group of a word is drawn at random.
        besides: True if names or figures are drawn that are no codes.
    """
    book, prior = table.root.book, shares(table.origin)  # a book's file may claim any shares
    assert book is not None, "it is a view by codes"
    about, description = _describe(book, prior)
    sizes = book.sizes if isinstance(book, Books) else (len(book),)
    first = OF_GROUP if isinstance(book, Books) else WITHIN
    notes = [DRAWN_GROUPS if drawn_groups else first, *about]
    nested = None if drawn_groups else book.nested
    if nested is not None:
        notes.append(_describe_nested(nested, max(sizes)))
    also = {
        BESIDES: besides,
        BY_WORD: consistent,
        DISTANCES: claim.kind == "metric",
    }
    notes += compress(also, also.values())
    if named is not None:
        notes.append(
            "whoever expects words as they stand in general public text names a word from one released code alone with "
            f"probability {math.ceil(named * 1000) / 1000:g} at most"
        )
    return replace(
        claim,
        codes=sizes,
        nested="" if nested is None else nested.digest,
        options={**claim.options, "book": description},
        caveats=(*claim.caveats, *notes),
    )


def _describe_nested(nested: Book, most: int) -> str:
    """Returns the caveat that holds at all levels of a nested book.

    Args:
        nested: the nested book.
        most: number of codes at the finest level that is used.
    """
    finest = "" if most == len(nested) else FINEST.format(codes=len(nested))
    return NESTED.format(book=nested.digest[:16], codes=most, finest=finest)


def _describe(book: Book | Books, prior: Values) -> tuple[list[str], object]:
    """Describes a book, or each of a list, in words and data."""
    if not isinstance(book, Books):
        head = book.shares_of_heads(prior)
        return [*book.facts(head)], book.to_json(head)
    notes, descriptions = [], []
    for at, part in enumerate(book.parts):
        head = part.shares_of_heads(prior)
        labels = [label for label, each in zip(GROUPS, book.of, strict=True) if each == at]
        notes += [f"{' and '.join(labels)} words: {fact}" for fact in part.facts(head)]
        descriptions.append({"groups": labels, **part.to_json(head)})
    return notes, descriptions
