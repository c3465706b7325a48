"""Which field of a file has its texts, where a format knows what its fields can hold.

In: what each field can hold. Out: the field with the texts.
Not here: how a format finds out what a field can hold (`jsonl`, `parquet`).
"""

from collections.abc import Sequence
from enum import Enum

from textveil.errors import ConfigError
from textveil.files.contract import USUAL


class Holds(Enum):
    """What a field can hold."""

    STRINGS = "strings"
    DOUBT = "strings, but not as texts stand in the format"
    OTHERS = "numbers and the like"


def only(fields: Sequence[tuple[str, Holds]]) -> str:
    """The only field that has strings, where no other can have any.

    Raises:
        ConfigError: there is none, or more than one that can.
    """
    found = [(name, holds) for name, holds in fields if holds is not Holds.OTHERS]
    if len(found) != 1 or found[0][1] is not Holds.STRINGS:
        raise ConfigError(
            f"--field is needed: there is no field {USUAL}, and more or less than one field with strings "
            f"({len(found)} to choose from)"
        )
    return found[0][0]
