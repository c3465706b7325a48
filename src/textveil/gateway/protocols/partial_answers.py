"""Answers that another program shows piece by piece, each in a separate request.

In: a piece, and all that came before it. Out: its certain part, restored.
Not here: answers that the gateway itself receives (`restoring`).

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

from textveil.gateway.protocols.restoring import count_unresolved
from textveil.session import Restorer, Session

MAX_RESTORERS = 1_000
"""Maximal number of restorers cached for the next piece."""

MAX_CHARACTERS = 10_000_000
"""Maximal number of characters that the cached restorers have read together."""

CACHE_SECONDS = 300.0
"""Seconds that a restorer is cached.

After that, the text before a piece is read again.
"""

# Possessive, so that long runs of spaces are not tried again and again.
_JSON = regex.compile(r"\s*+(?:\{\s*+[\"}]|\[\s*+[\"\[{\]])")
"""Pattern of the beginning of JSON with text in it.

Originals in it must be escaped.
"""


class CachedRestorer(NamedTuple):
    """Cached restorer that waits for the next piece. Secret.

    Args:
        restorer: a restorer that has read the text so far.
        characters: the number of characters that it has read.
        expiry: time of expiry, on the clock `time.monotonic`.
    """

    restorer: Restorer
    characters: int
    expiry: float

    def __repr__(self) -> str:
        return f"CachedRestorer({self.characters} characters)"


RestorerCache = OrderedDict[bytes, CachedRestorer]
"""Cached restorers by a digest of the text they read, oldest first."""


class PieceRestorer:
    """Restorer of texts of answers, whole or in pieces.

    Args:
        open_session: returns the session of an answer, when it is needed.
        name: the name of the session; pieces of one do not continue in another.
        cache: the cached restorers of all sessions.
        lock: guards the cached restorers.

    Attributes:
        unresolved: placeholders that were not restored.
    """

    def __init__(
        self, open_session: Callable[[], Session], name: Hashable, cache: RestorerCache, lock: Lock
    ) -> None:
        self._open_session, self._name, self._cache, self._lock = open_session, name, cache, lock
        self.unresolved = 0

    def _create_restorer(self, text: str) -> Restorer:
        return self._open_session().restorer(escape="json" if is_json(text) else "none")

    def restore_parts(self, text: str) -> tuple[str, str]:
        """Restores a text that may go on: certain part, and rest.

        The rest is the restored end if the text ends here.
        """
        restorer = self._create_restorer(text)
        certain = restorer.feed(text)
        tail = restorer.close()
        self.unresolved += count_unresolved(certain + tail)
        return certain, tail

    def restore_text(self, text: str) -> str:
        """Restores a whole text."""
        return "".join(self.restore_parts(text))

    def restore_piece(self, before: str, text: str, *, final: bool) -> str:
        """Restores the newly certain text after a piece.

        Args:
            before: the text before the piece.
            text: the piece.
            final: whether the piece is the last, so that all is certain.
        """
        with self._lock:
            self._forget()
            # Taken out, because two requests must not feed one restorer.
            cached = self._cache.pop(self._compute_digest(before), None) if before else None
        restorer = None if cached is None else cached.restorer
        # With more text, what began as plain may turn out to be JSON, which is escaped otherwise.
        if restorer is None or is_json(before) != is_json(before + text):
            restorer = self._create_restorer(before + text)
            restorer.feed(before)
        restored = restorer.feed(text)
        if final:
            return restored + restorer.close()
        with self._lock:
            key, characters = self._compute_digest(before + text), len(before) + len(text)
            self._cache.pop(key, None)  # so that the new entry is the newest
            self._cache[key] = CachedRestorer(
                restorer, characters, time.monotonic() + CACHE_SECONDS
            )
            self._forget()
        return restored

    def _compute_digest(self, before: str) -> bytes:
        return sha256(f"{self._name!r} {before}".encode(errors="surrogatepass")).digest()

    def _forget(self) -> None:
        """Drops expired restorers, and the oldest where there are too many."""
        now, characters = time.monotonic(), sum(entry.characters for entry in self._cache.values())
        while self._cache:
            oldest = next(iter(self._cache.values()))
            if (
                len(self._cache) <= MAX_RESTORERS
                and characters <= MAX_CHARACTERS
                and oldest.expiry > now
            ):
                return
            characters -= oldest.characters
            self._cache.popitem(last=False)


def is_json(text: str) -> bool:
    """True if the beginning of a text looks like JSON."""
    return _JSON.match(text) is not None
