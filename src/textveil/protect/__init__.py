"""Protection: what is private in a text, which group each word is in, and how much budget a group gets.

In: the words of a batch of texts, and options. Out: `Protection`, one decision per word; `Budget`, epsilon per word.
Not here: what replaces a protected word (`mechanism`).
"""

from textveil.protect.budget import LARGEST, TABLE1, Budget, Grouped, Uniform, in_range
from textveil.protect.detectors import detector
from textveil.protect.grouping import Grouping, join
from textveil.protect.name_lists import load_names
from textveil.protect.protection import GROUPS, PUBLIC, Protection, listed, ungrouped
from textveil.protect.response import randomised
from textveil.protect.spans import Detector, Span

__all__ = [
    "GROUPS",
    "LARGEST",
    "PUBLIC",
    "TABLE1",
    "Budget",
    "Detector",
    "Grouped",
    "Grouping",
    "Protection",
    "Span",
    "Uniform",
    "detector",
    "in_range",
    "join",
    "listed",
    "load_names",
    "randomised",
    "ungrouped",
]
