"""Detection: finds the private spans of texts by detectors and stages.

In: the tokens of a batch of texts, and options. Out: `Detections`, the sensitive spans of each
text.
Not here: which group and budget a word gets (`protect`), and what replaces it (`mechanism`).
"""

from textveil.detect.alive import show_progress
from textveil.detect.detection import Detection, named_types
from textveil.detect.detections import Detections
from textveil.detect.detectors import detector
from textveil.detect.markup import ranges_without_entities
from textveil.detect.normalization import alike, core, may_be_name, parts
from textveil.detect.occurrences import PrivateValue, Sought, beginnings, could_stand
from textveil.detect.quantities import AGE, DATES, OLDEST, Figure
from textveil.detect.quantities import read as read_figure
from textveil.detect.spans import (
    LISTED,
    NAMES,
    PRIVATE,
    REPEATED,
    TYPE_NAME,
    TYPES,
    WHOLE,
    Detector,
    Span,
)

__all__ = [
    "AGE",
    "DATES",
    "LISTED",
    "NAMES",
    "OLDEST",
    "PRIVATE",
    "REPEATED",
    "TYPES",
    "TYPE_NAME",
    "WHOLE",
    "Detection",
    "Detections",
    "Detector",
    "Figure",
    "PrivateValue",
    "Sought",
    "Span",
    "alike",
    "beginnings",
    "core",
    "could_stand",
    "detector",
    "may_be_name",
    "named_types",
    "parts",
    "ranges_without_entities",
    "read_figure",
    "show_progress",
]
