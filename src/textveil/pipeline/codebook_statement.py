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
from textveil.table import Book, Books, EmbeddingTable, compute_shares

SAME_CODE_NOTE = (
    "two words of one code are one value to the mechanism: the loss between them is 0, however "
    "often they are released under this book; between releases under different books it is 0 only "
    "for words that share a code in all of them"
)
NESTED_NOTE = (
    "the codes are of levels of the nested book {book}: two words of one of its {codes} codes "
    "have one code at all coarser levels, too{finest}; the loss between them is 0, however "
    "often they are released at these levels, in whatever groups; releases at several levels are "
    "several draws, whose epsilons add up"
)
FINEST_NOTE = ", and two words of one of its {codes} finest codes at every level"
GROUP_BOOKS_NOTE = (
    "two words of one group and one code of its book are one value to the mechanism: the loss "
    "between them is 0, however often they are released under these books; a group with finer "
    "codes tells words apart that have one code in another group, and the group is in the mask"
)
DRAWN_GROUPS_NOTE = (
    "two words of one code and one group are one value to the mechanism; two words of one "
    "code but of different groups are not, because groups are drawn at random: what the draw "
    "of a group reveals about them counts"
)
NAMES_AND_FIGURES_NOTE = (
    "names and figures are drawn from lists and by noise, not by code: two of them with one "
    "code are told apart, each with the epsilon of its own type; what is said about codes "
    "holds for all other words"
)
EQUAL_WORDS_NOTE = (
    "equal words are one draw, by the word and not by the code: a word loses its epsilon "
    "once, at all its places together, and the mask shows these places; so different words of "
    "one code are told apart by how often they occur in a text or session, and next to what, "
    "which no epsilon bounds"
)
DISTANCES_NOTE = "distances are between codes: between the means of their words' vectors"
REPEATED_TEXT_NOTE = (
    "a text that returns gets the same release again: a reader can see whether two releases "
    "are of the same text, even where two texts differ only in words of one code"
)


def add_codebook_notes(
    claim: Claim,
    table: EmbeddingTable,
    guess_rate: float | None,
    *,
    consistent: bool,
    drawn_groups: bool,
    has_other_draws: bool,
) -> Claim:
    """Adds a codebook's description and caveats to a claim.

    Args:
        claim: claim of the mechanism, on the coarse view.
        table: the coarse view, or a projection of it.
        guess_rate: bound on how often the likeliest word of a code is guessed right, None where
            that is not known.
        consistent: True if equal words are released alike.
        drawn_groups: True if the group of a word is drawn at random.
        has_other_draws: True if names or figures are drawn that are no codes.
    """
    book, prior = (
        table.root.book,
        compute_shares(table.origin),
    )  # a book's file may claim any shares
    assert book is not None, "it is a view by codes"
    facts, description = _describe_book(book, prior)
    sizes = book.sizes if isinstance(book, Books) else (len(book),)
    first = GROUP_BOOKS_NOTE if isinstance(book, Books) else SAME_CODE_NOTE
    notes = [DRAWN_GROUPS_NOTE if drawn_groups else first, *facts]
    nested = None if drawn_groups else book.nested_book
    if nested is not None:
        notes.append(_describe_nested(nested, max(sizes)))
    optional_notes = {
        NAMES_AND_FIGURES_NOTE: has_other_draws,
        EQUAL_WORDS_NOTE: consistent,
        DISTANCES_NOTE: claim.kind == "metric",
    }
    notes += compress(optional_notes, optional_notes.values())
    if guess_rate is not None:
        notes.append(
            "an attacker who expects words as often as they occur in general public text names a "
            "word from one released code alone with probability "
            f"{math.ceil(guess_rate * 1000) / 1000:g} at most"
        )
    return replace(
        claim,
        codes=sizes,
        nested="" if nested is None else nested.digest,
        options={**claim.options, "book": description},
        caveats=(*claim.caveats, *notes),
    )


def _describe_nested(nested: Book, finest_codes: int) -> str:
    """Returns the caveat that holds at all levels of a nested book.

    Args:
        nested: the nested book.
        finest_codes: number of codes at the finest level that is used.
    """
    finest = "" if finest_codes == len(nested) else FINEST_NOTE.format(codes=len(nested))
    return NESTED_NOTE.format(book=nested.digest[:16], codes=finest_codes, finest=finest)


def _describe_book(book: Book | Books, prior: Values) -> tuple[list[str], object]:
    """Describes a book, or each of a list, in words and data."""
    if not isinstance(book, Books):
        head = book.compute_head_shares(prior)
        return [*book.write_facts(head)], book.to_json(head)
    notes, descriptions = [], []
    for at, part in enumerate(book.parts):
        head = part.compute_head_shares(prior)
        labels = [
            label for label, number in zip(GROUPS, book.book_numbers, strict=True) if number == at
        ]
        notes += [f"{' and '.join(labels)} words: {fact}" for fact in part.write_facts(head)]
        descriptions.append({"groups": labels, **part.to_json(head)})
    return notes, descriptions
