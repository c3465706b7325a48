"""A session: the only object that remembers anything between calls.

In: values that became placeholders. Out: the same numbered placeholder for the same value, and the way back.
Not here: accounts that outlive the process, and which words become placeholders (`pipeline`).
"""

import re
from collections.abc import Iterable, Sequence
from threading import Lock

_PLACEHOLDER = re.compile(r"<[A-Z_]+_\d+>")


class Session:
    """Placeholder numbers and the map back, in memory, for one owner.

    Within a session the same value gets the same placeholder, so which placeholders are equal is released with the
    text. Two sessions never share a map. Safe to use from several threads.

    Args:
        owner: whose session it is; any label, never released.
    """

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self._lock = Lock()
        self._placeholders: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._drawn: dict[tuple[str, str, str], int] = {}

    def placeholder(self, kind: str, value: str) -> str:
        """The placeholder of a value: `<KIND_1>`, `<KIND_2>`, ... in order of first appearance.

        Args:
            kind: what stands there, upper-case ("WORD").
            value: the private text; letter case is ignored when values are compared.
        """
        key = (kind, value.lower())
        with self._lock:
            if key not in self._placeholders:
                number = self._counts[kind] = self._counts.get(kind, 0) + 1
                self._placeholders[key] = f"<{kind}_{number}>"
                self._values[self._placeholders[key]] = value
            return self._placeholders[key]

    def restore(self, text: str) -> str:
        """The text with every placeholder of this session replaced by the value it stands for."""
        with self._lock:
            values = dict(self._values)
        return _PLACEHOLDER.sub(lambda match: values.get(match[0], match[0]), text)

    def replaced(self, original: str, shown: str) -> None:
        """Learns that a released name stands for a private one."""

    def said(self, words: Iterable[str]) -> None:
        """Learns which words were released as they stood."""

    def consistent(self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]) -> list[int]:
        """The row of each word that was drawn first in this session, and now for words that are new.

        Args:
            law: what the rows were drawn by; rows of another law do not count.
            keys: (word, group) of each; letter case is ignored.
            rows: the rows to take for words that are new.
        """
        with self._lock:
            return [
                self._drawn.setdefault((law, word.lower(), group), row)
                for (word, group), row in zip(keys, rows, strict=True)
            ]

    def __repr__(self) -> str:
        """Only how many placeholders there are."""
        return f"Session({len(self._values)} placeholders)"
