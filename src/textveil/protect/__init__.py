"""Protection: the group of each word, and the budget of each group.

In: the words of a batch of texts, and options. Out: `Protection`, one decision per word; `Budget`,
epsilon per word.
Not here: what is private (`detect`), and what replaces a protected word (`mechanism`).
"""

from textveil.protect.budget import (
    MAX_BUDGET,
    MIN_BUDGET,
    TABLE1,
    Budget,
    Grouped,
    Uniform,
    check_range,
    has_importance_budget,
)
from textveil.protect.findings import Finding, list_findings
from textveil.protect.grouping import LITERAL, Grouping, join
from textveil.protect.protection import (
    GROUPS,
    PUBLIC,
    Protection,
    build_ungrouped,
    find_public_words,
    group_numbers,
)
from textveil.protect.randomized_response import draw_groups

__all__ = [
    "GROUPS",
    "LITERAL",
    "MAX_BUDGET",
    "MIN_BUDGET",
    "PUBLIC",
    "TABLE1",
    "Budget",
    "Finding",
    "Grouped",
    "Grouping",
    "Protection",
    "Uniform",
    "build_ungrouped",
    "check_range",
    "draw_groups",
    "find_public_words",
    "group_numbers",
    "has_importance_budget",
    "join",
    "list_findings",
]
