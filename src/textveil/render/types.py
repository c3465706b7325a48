"""Families of placeholder types, and their colours.

On light and on dark paper.

In: a type, "EMAIL". Out: its family; rules of CSS.
Not here: what types are called (`guarantee`), and the colours of groups (`groups`).
"""

from typing import NamedTuple


class TypeFamily(NamedTuple):
    """Types that are shown alike.

    Args:
        meaning: what they have in common.
        types: which.
        light: ink and paper where the page is light.
        dark: the same where it is dark.
    """

    meaning: str
    types: tuple[str, ...]
    light: tuple[str, str]
    dark: tuple[str, str]


FAMILIES = {
    "people": TypeFamily(
        "names of people and users",
        ("PERSON", "HANDLE"),
        ("#4a1a8c", "#efe8fb"),
        ("#dccaff", "#35264f"),
    ),
    "places": TypeFamily(
        "where",
        ("LOCATION", "ADDRESS", "COORDINATES"),
        ("#0b5429", "#e1f3e7"),
        ("#a9e5bd", "#18372a"),
    ),
    "organizations": TypeFamily(
        "names of organizations", ("ORGANIZATION",), ("#123f86", "#e3ecfb"), ("#b9d2ff", "#1c2f52")
    ),
    "contact": TypeFamily(
        "contact details and network addresses",
        ("EMAIL", "PHONE", "URL", "HOST", "IP", "MAC"),
        ("#0a4d53", "#dcf1f2"),
        ("#9fe3e8", "#12383b"),
    ),
    "numbers": TypeFamily(
        "numbers that identify a person or thing",
        (
            *(
                "CARD",
                "IBAN",
                "ACCOUNT",
                "NATIONAL_ID",
                "MEDICAL_RECORD",
                "LICENCE",
                "PLATE",
                "VIN",
                "BOOKING",
                "ID",
            ),
            "CRYPTO",
        ),
        ("#643f00", "#fbeccb"),
        ("#f5d28a", "#413010"),
    ),
    "dates": TypeFamily(
        "dates and ages",
        ("BIRTH_DATE", "DATE", "AGE"),
        ("#84134c", "#fbe6ef"),
        ("#ffbfdc", "#481c33"),
    ),
    "secrets": TypeFamily(
        "keys and passwords", ("SECRET",), ("#8a1c13", "#fde5e2"), ("#ffbcb4", "#4a1c17")
    ),
    "others": TypeFamily("anything else", (), ("#34343a", "#ebebee"), ("#d9d9df", "#313137")),
}
"""The families of types, in the order of explanation.

Ink on paper has a contrast of 7 or more.
"""


def find_family(type_: str) -> str:
    """Returns the name of a type's family."""
    return next(
        (name for name, type_family in FAMILIES.items() if type_ in type_family.types), "others"
    )


def render_styles(*, dark: bool) -> str:
    """Returns CSS rules for the class `type-FAMILY` of every family."""
    colours = {
        name: type_family.dark if dark else type_family.light
        for name, type_family in FAMILIES.items()
    }
    return "\n".join(
        f".type-{name} {{ color: {ink}; background: {paper}; }}"
        for name, (ink, paper) in colours.items()
    )
