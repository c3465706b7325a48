"""Detection: finds the private spans of texts by detectors and stages.

In: the tokens of a batch of texts, and options. Out: `Detections`, the sensitive spans of each
text.
Not here: which group and budget a word gets (`protect`), and what replaces it (`mechanism`).
"""

from textveil.detect.application_words import NO_WORDS, ApplicationWords, collect_words
from textveil.detect.bounds import split_sentences
from textveil.detect.detection import Detection, expand_types
from textveil.detect.detections import Detections
from textveil.detect.detectors import load_detector
from textveil.detect.encodings import decode_escapes, decode_parts
from textveil.detect.keyvalue.field_names import classify_key
from textveil.detect.keyvalue.field_names import is_person as is_person_key
from textveil.detect.liveness import signal_progress
from textveil.detect.markup import find_opaque_ranges
from textveil.detect.normalization import (
    Atom,
    find_core_atoms,
    find_name_parts,
    may_be_name,
    normalize_value,
    split_atoms,
)
from textveil.detect.occurrences import (
    PrivateValue,
    ValueIndex,
    get_beginnings,
    list_possible_forms,
    may_hold,
)
from textveil.detect.quantities import AGE, DATES, MAX_AGE, Figure
from textveil.detect.quantities import read as read_figure
from textveil.detect.spans import (
    LISTED_TYPE,
    NAMES,
    PRIVACY_THRESHOLD,
    REPEATED_SOURCE,
    TYPE_NAME,
    TYPES,
    WHOLE_TYPE,
    Detector,
    Span,
)

__all__ = [
    "AGE",
    "DATES",
    "LISTED_TYPE",
    "MAX_AGE",
    "NAMES",
    "NO_WORDS",
    "PRIVACY_THRESHOLD",
    "REPEATED_SOURCE",
    "TYPES",
    "TYPE_NAME",
    "WHOLE_TYPE",
    "ApplicationWords",
    "Atom",
    "Detection",
    "Detections",
    "Detector",
    "Figure",
    "PrivateValue",
    "Span",
    "ValueIndex",
    "classify_key",
    "collect_words",
    "decode_escapes",
    "decode_parts",
    "expand_types",
    "find_core_atoms",
    "find_name_parts",
    "find_opaque_ranges",
    "get_beginnings",
    "is_person_key",
    "list_possible_forms",
    "load_detector",
    "may_be_name",
    "may_hold",
    "normalize_value",
    "read_figure",
    "signal_progress",
    "split_atoms",
    "split_sentences",
]
