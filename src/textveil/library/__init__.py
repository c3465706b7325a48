"""Libraries: public texts in cells, for releases that are made of whole texts.

In: public texts; texts to place. Out: `Library`, with the cell of any text.
Not here: what is drawn (`mechanism`), and what is released (`pipeline`, `corpus`).
"""

from textveil.library.candidates import (
    LENGTHS,
    CandidatePlan,
    make_candidates,
    plan_candidates,
    plan_variations,
)
from textveil.library.classes import read_classes
from textveil.library.demo import make_demo_library
from textveil.library.description import (
    collect_facts,
    describe_baseline,
    describe_cells,
    describe_library,
)
from textveil.library.drawing import allocate, draw_texts
from textveil.library.library import Level, Library
from textveil.library.making import LEAST_LABELLED, LEVELS, make_library
from textveil.library.smoothing import Smoothing, get_views, smooth_labels
from textveil.library.typical_words import find_typical_words

__all__ = [
    "LEAST_LABELLED",
    "LENGTHS",
    "LEVELS",
    "CandidatePlan",
    "Level",
    "Library",
    "Smoothing",
    "allocate",
    "collect_facts",
    "describe_baseline",
    "describe_cells",
    "describe_library",
    "draw_texts",
    "find_typical_words",
    "get_views",
    "make_candidates",
    "make_demo_library",
    "make_library",
    "plan_candidates",
    "plan_variations",
    "read_classes",
    "smooth_labels",
]
