"""Answers that another program shows piece by piece, each in a separate request.

In: a piece, and all that came before it. Out: its certain part, restored.
Not here: answers that the gateway itself receives (`answers`).

The program that shows a stream sends the text before it with each piece, so any worker of the
gateway can go on with it. A cached restorer only saves reading that text again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from hashlib import sha256
from threading import Lock
from typing import NamedTuple

import regex

from textveil.gateway.answers import unresolved_in
from textveil.session import Restorer, Session

MOST = 1_000
"""Maximal number of restorers cached for the next piece."""

LARGEST = 10_000_000
"""Maximal number of characters that the cached restorers have read together."""

SECONDS = 300.0
"""Seconds that a restorer is cached.

After that, the text before a piece is read again.
"""

_JSON = regex.compile(r"\s*+(?:\{\s*+[\"}]|\[\s*+[\"\[{\]])")
"""Pattern of the beginning of JSON with text in it.

Originals in it must be escaped.
"""


class KeptRestorer(NamedTuple):
    """Cached restorer that waits for the next piece. Secret.

    Args:
        restorer: a restorer that has read the text so far.
        read: the number of characters that it has read.
        until: time of expiry, on the clock `time.monotonic`.
    """

    restorer: Restorer
    read: int
    until: float

    def __repr__(self) -> str:
        return f"KeptRestorer({self.read} characters)"


Kept = OrderedDict[bytes, KeptRestorer]
"""Cached restorers by a digest of the text they read, oldest first."""


class AnswerPieces:
    """Restorer of texts of answers, whole or in pieces.

    Args:
        session: returns the session of an answer, when it is needed.
        name: the name of the session; pieces of one do not continue in another.
        kept: the cached restorers of all sessions.
        lock: guards the cached restorers.

    Attributes:
        unresolved: placeholders that were not restored.
    """

    def __init__(
        self, session: Callable[[], Session], name: Hashable, kept: Kept, lock: Lock
    ) -> None:
        self._session, self._name, self._kept, self._lock = session, name, kept, lock
        self.unresolved = 0

    def _create_restorer(self, text: str) -> Restorer:
        return self._session().restorer(escape="json" if is_json(text) else "none")

    def both(self, text: str) -> tuple[str, str]:
        """Restores a text that may go on: certain part, and rest.

        The rest is the restored end if the text ends here.
        """
        restorer = self._create_restorer(text)
        certain = restorer.feed(text)
        rest = restorer.close()
        self.unresolved += unresolved_in(certain + rest)
        return certain, rest

    def whole(self, text: str) -> str:
        """Restores a whole text."""
        return "".join(self.both(text))

    def piece(self, before: str, text: str, *, final: bool) -> str:
        """Restores the newly certain text after a piece.

        Args:
            before: the text before the piece.
            text: the piece.
            final: whether the piece is the last, so that all is certain.
        """
        with self._lock:
            self._forget()
            cached = self._kept.pop(self._digest(before), None) if before else None
        restorer = None if cached is None else cached.restorer
        if restorer is None or is_json(before) != is_json(before + text):
            restorer = self._create_restorer(before + text)
            restorer.feed(before)
        restored = restorer.feed(text)
        if final:
            return restored + restorer.close()
        with self._lock:
            key, read = self._digest(before + text), len(before) + len(text)
            self._kept.pop(key, None)  # so that the new entry is the newest
            self._kept[key] = KeptRestorer(restorer, read, time.monotonic() + SECONDS)
            self._forget()
        return restored

    def _digest(self, before: str) -> bytes:
        return sha256(f"{self._name!r} {before}".encode(errors="surrogatepass")).digest()

    def _forget(self) -> None:
        """Drops expired restorers, and the oldest where there are too many."""
        now, read = time.monotonic(), sum(each.read for each in self._kept.values())
        while self._kept:
            oldest = next(iter(self._kept.values()))
            if len(self._kept) <= MOST and read <= LARGEST and oldest.until > now:
                return
            read -= oldest.read
            self._kept.popitem(last=False)


def is_json(text: str) -> bool:
    """True if the beginning of a text looks like JSON."""
    return _JSON.match(text) is not None
