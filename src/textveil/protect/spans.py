"""Spans: the parts of a text that a detector calls sensitive, and what a detector is.

In: nothing. Out: `Span`, the protocol `Detector`, and the names of types.
Not here: the detectors (`patterns`, `detectors`), and what is done about a span (`protect`, `budget`).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

NAMES = ("PERSON", "LOCATION", "ORGANIZATION")
"""Types of names, which a tagger finds."""

IDENTIFIERS = (
    "EMAIL",
    "PHONE",
    "CARD",
    "IBAN",
    "NATIONAL_ID",
    "IP",
    "MAC",
    "URL",
    "SECRET",
    "CRYPTO",
    "BIRTH_DATE",
    "ADDRESS",
    "MEDICAL_RECORD",
    "LICENCE",
    "PLATE",
)
"""Types of structured identifiers, which patterns find."""

LISTED = "LISTED"
"""The type of what a user's own lists and expressions name."""

TYPES = (*NAMES, *IDENTIFIERS, LISTED)
"""All types that textveil gives itself; a user's detector may have others."""

TYPE_NAME = re.compile("[A-Z0-9_]{1,64}")
"""What the name of a type looks like."""


class Span(NamedTuple):
    """A part of a text that is sensitive. Its places are as private as the text until they are released in a mask.

    Args:
        text: the number of the text.
        start: where it begins in its own text, in code points.
        end: where it ends (exclusive).
        type: upper-case, of letters, digits and underscores; what a placeholder shows.
        score: how sure the detector is, from 0 to 1.
        source: the detector's name.
    """

    text: int
    start: int
    end: int
    type: str
    score: float
    source: str


@runtime_checkable
class Detector(Protocol):
    """Whatever finds sensitive parts of texts."""

    @property
    def name(self) -> str:
        """What statements and rows call it."""
        ...

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The spans of all texts, in the order of texts and starts; they may overlap."""
        ...
