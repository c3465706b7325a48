"""Spans: sensitive parts of a text, and the interface of a detector.

In: nothing. Out: `Span`, the protocol `Detector`, and the names of types.
Not here: the detectors (`patterns`, `library_taggers`, `lists`), and what happens to a span (`stages`).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from textveil.models import Evidence

NAMES = ("PERSON", "LOCATION", "ORGANIZATION")
"""Types of names, found by taggers."""

IDENTIFIERS = (
    "EMAIL",
    "PHONE",
    "CARD",
    "IBAN",
    "ACCOUNT",
    "NATIONAL_ID",
    "IP",
    "MAC",
    "URL",
    "HOST",
    "SECRET",
    "CRYPTO",
    "BIRTH_DATE",
    "DATE",
    "AGE",
    "ADDRESS",
    "COORDINATES",
    "MEDICAL_RECORD",
    "LICENCE",
    "PLATE",
    "VIN",
    "BOOKING",
    "ID",
    "HANDLE",
)
"""Types of structured identifiers, found by patterns."""

LISTED_TYPE = "LISTED"
"""The type of every match of a user's lists and expressions."""

WHOLE_TYPE = "TEXT"
"""The type of a part that is hidden whole: its private content is unknown."""

TYPES = (*NAMES, *IDENTIFIERS, LISTED_TYPE)
"""All types that textveil uses itself; detectors of other packages may add to them."""

NUMBER_TYPES = frozenset(
    (
        "PHONE",
        "CARD",
        "IBAN",
        "ACCOUNT",
        "NATIONAL_ID",
        "MEDICAL_RECORD",
        "LICENCE",
        "VIN",
        "BOOKING",
        "ID",
    )
)
"""Types of numbers. A number stands on one line, and begins and ends with a letter or digit."""

PRIVACY_THRESHOLD = 0.5
"""The probability from which a span counts as private."""

OWN_DETECTORS = ("patterns", "structure", "tagger")
"""textveil's own detectors. Detectors of other packages may have types of their own and are
trusted as they are."""

GUESSING_DETECTOR = "tagger"
"""The detector that judges identifiers by their looks; matches of a form or a key are more
reliable."""

REPEATED_SOURCE = "spread"
"""The source of spans that repeat a value detected elsewhere, as JSON names it."""

TYPE_NAME = re.compile("[A-Z0-9_]{1,64}")
"""The syntax of a type name."""


class Span(NamedTuple):
    """A sensitive part of a text, with type, score and source.

    Its position is as private as the text itself until a mask releases it.

    Args:
        text: the index of the text.
        start: the first character, in code points of that text.
        end: one past the last character.
        type: capital letters, digits and underscores; shown in placeholders.
        score: the detector's confidence, from 0 to 1.
        source: the detector's name.
        privacy_score: the probability, from 0 to 1, that the part is about a private person or
            thing rather than a public one; 1 if the detector cannot tell. `protect.level` decides
            from .5 on.
        evidence: the features that the bundled tagger read there, for `scoring`; None from other
            detectors.
    """

    text: int
    start: int
    end: int
    type: str
    score: float
    source: str
    privacy_score: float = 1.0
    evidence: Evidence | None = None

    @property
    def is_own(self) -> bool:
        """True if one of textveil's own detectors found the span.

        A user's own tagger does not count.
        """
        return self.source in OWN_DETECTORS

    @property
    def is_guess(self) -> bool:
        """True if a tagger found the span by its looks.

        Both the bundled tagger and a user's own count.
        """
        return self.source.partition(":")[0] == GUESSING_DETECTOR


@runtime_checkable
class Detector(Protocol):
    """The interface of a detector: a name and `find`."""

    @property
    def name(self) -> str:
        """The detector's name in statements and rows."""
        ...

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds the spans of all texts, by text and start.

        They may overlap.
        """
        ...
