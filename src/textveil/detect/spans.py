"""Spans: the sensitive parts that a detector finds in a text, and the interface of a detector.

In: nothing. Out: `Span`, the protocol `Detector`, and the names of types.
Not here: the detectors (`patterns`, `adapters`, `lists`), and what happens to a span (`stages`).
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

LISTED = "LISTED"
"""The type of whatever matches a user's own lists and expressions."""

WHOLE = "TEXT"
"""The type of a part of which nobody knows what is private in it, so that all of it is hidden."""

TYPES = (*NAMES, *IDENTIFIERS, LISTED)
"""All types textveil uses itself; detectors of others may add to them."""

NUMBERS = frozenset(
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
"""Types of numbers: each stands in one line, and begins and ends with a letter or digit."""

PRIVATE = 0.5
"""From this probability on a span counts as private."""

OWN = ("patterns", "structure", "tagger")
"""textveil's own detectors. Others may have types of their own, and mean what they find."""

GUESSED = "tagger"
"""The detector that judges identifiers by how they look; what others know by a form or a key they know better."""

REPEATED = "spread"
"""The source of spans that hold again what was found elsewhere, as JSON names it."""

TYPE_NAME = re.compile("[A-Z0-9_]{1,64}")
"""The form of a type name."""


class Span(NamedTuple):
    """A sensitive part of a text. Its position is as private as the text itself until a mask releases it.

    Args:
        text: the index of the text.
        start: first character, in code points of that text.
        end: one past the last character.
        type: capital letters, digits and underscores; shown in placeholders.
        score: the detector's confidence, from 0 to 1.
        source: the detector's name.
        private: how probable it is that the part belongs to somebody private, from 0 to 1, and not to somebody or
            something public; 1 where the detector cannot tell. `protect.level` decides from .5 on.
        evidence: what the bundled tagger read there, for `scoring`; None from other detectors.
    """

    text: int
    start: int
    end: int
    type: str
    score: float
    source: str
    private: float = 1.0
    evidence: Evidence | None = None

    @property
    def is_own(self) -> bool:
        """Whether one of textveil's own detectors found it; a tagger of a user's own is none."""
        return self.source in OWN

    @property
    def is_guess(self) -> bool:
        """Whether a tagger found it, the bundled one or a user's, which judges by looks."""
        return self.source.partition(":")[0] == GUESSED


@runtime_checkable
class Detector(Protocol):
    """Anything that finds sensitive parts of texts."""

    @property
    def name(self) -> str:
        """What statements and rows call it."""
        ...

    def find(self, texts: Sequence[str]) -> list[Span]:
        """The spans of all texts, in the order of texts and starts; they may overlap."""
        ...
