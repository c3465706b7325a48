"""Protection: the group of each word, and the budget of each group.

In: the words of a batch of texts, and options. Out: `Protection`, one decision per word; `Budget`,
epsilon per word.
Not here: what is private (`detect`), and what replaces a protected word (`mechanism`).
"""

from textveil.protect.budget import (
    LARGEST,
    TABLE1,
    Budget,
    Grouped,
    Uniform,
    in_range,
    tells_important,
)
from textveil.protect.findings import Finding, findings
from textveil.protect.grouping import LITERAL, Grouping, join
from textveil.protect.protection import GROUPS, PUBLIC, Protection, group_numbers, listed, ungrouped
from textveil.protect.randomized_response import randomised

__all__ = [
    "GROUPS",
    "LARGEST",
    "LITERAL",
    "PUBLIC",
    "TABLE1",
    "Budget",
    "Finding",
    "Grouped",
    "Grouping",
    "Protection",
    "Uniform",
    "findings",
    "group_numbers",
    "in_range",
    "join",
    "listed",
    "randomised",
    "tells_important",
    "ungrouped",
]
