"""Protection: what is private in a text, which group each word is in, and how much budget a group gets.

In: the words of a batch of texts, and options. Out: `Protection`, one decision per word; `Budget`, epsilon per word.
Not here: what replaces a protected word (`mechanism`).
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
from textveil.protect.detectors import detector
from textveil.protect.figures import AGE, DATES, OLDEST, Figure
from textveil.protect.figures import read as read_figure
from textveil.protect.findings import Finding, findings
from textveil.protect.grouping import LITERAL, WHOLE, Grouping, Looked, join
from textveil.protect.markup import ranges_without_entities
from textveil.protect.name_lists import load_names
from textveil.protect.protection import GROUPS, PUBLIC, Protection, group_numbers, listed, ungrouped
from textveil.protect.response import randomised
from textveil.protect.spans import NAMES, TYPES, Detector, Span
from textveil.protect.spelling import alike, core, may_be_name, parts
from textveil.protect.spread import PrivateValue, Sought, beginnings, could_stand

__all__ = [
    "AGE",
    "DATES",
    "GROUPS",
    "LARGEST",
    "LITERAL",
    "NAMES",
    "OLDEST",
    "PUBLIC",
    "TABLE1",
    "TYPES",
    "WHOLE",
    "Budget",
    "Detector",
    "Figure",
    "Finding",
    "Grouped",
    "Grouping",
    "Looked",
    "PrivateValue",
    "Protection",
    "Sought",
    "Span",
    "Uniform",
    "alike",
    "beginnings",
    "core",
    "could_stand",
    "detector",
    "findings",
    "group_numbers",
    "in_range",
    "join",
    "listed",
    "load_names",
    "may_be_name",
    "parts",
    "randomised",
    "ranges_without_entities",
    "read_figure",
    "tells_important",
    "ungrouped",
]
