"""Guarantees: statements about a release, their words, and their sums.

In: a mechanism's claim, the budget spent per word, the mask. Out: `Guarantee`, printed or as JSON;
`TextGuarantee` where whole texts are released instead.
Not here: how a mechanism earns its claim (`mechanism`), and what attackers get.
"""

from textveil.guarantee.accounting import compose, condense, summarize
from textveil.guarantee.claim import FLOATING_POINT, Claim, Restricted
from textveil.guarantee.guarantee import MICRO, Group, Guarantee, Loss
from textveil.guarantee.parts import StatementPart, find_drawn_epsilon, list_parts
from textveil.guarantee.text_guarantee import LibraryFacts, Sentences, TextGuarantee
from textveil.guarantee.wording import (
    TYPE_NOUNS,
    count_hidden,
    describe_hidden,
    format_count,
    format_number,
    format_things,
    join_parts,
)

__all__ = [
    "FLOATING_POINT",
    "MICRO",
    "TYPE_NOUNS",
    "Claim",
    "Group",
    "Guarantee",
    "LibraryFacts",
    "Loss",
    "Restricted",
    "Sentences",
    "StatementPart",
    "TextGuarantee",
    "compose",
    "condense",
    "count_hidden",
    "describe_hidden",
    "find_drawn_epsilon",
    "format_count",
    "format_number",
    "format_things",
    "join_parts",
    "list_parts",
    "summarize",
]
