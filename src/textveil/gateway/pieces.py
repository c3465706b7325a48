"""Answers that others show piece by piece, each piece in a request of its own.

In: a piece, and all that came before it. Out: what of it is certain, restored.
Not here: answers that the gateway itself receives (`answers`).

Whoever shows a stream sends back what came before with each piece, so any worker of the gateway can go on with it. A
restorer that is still there only saves reading it again.
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
"""Restorers that are kept for the next piece."""

LARGEST = 10_000_000
"""Characters that all of them have read together."""

SECONDS = 300.0
"""How long one is kept; after that, what came before is read again."""

_JSON = regex.compile(r"\s*+(?:\{\s*+[\"}]|\[\s*+[\"\[{\]])")
"""How JSON with text in it begins, so that originals in it must be escaped."""


class KeptRestorer(NamedTuple):
    """A restorer that waits for the next piece. Secret.

    Args:
        restorer: has read what came before.
        read: how many characters that are.
        until: when it is forgotten, on the clock `time.monotonic`.
    """

    restorer: Restorer
    read: int
    until: float

    def __repr__(self) -> str:
        return f"KeptRestorer({self.read} characters)"


Kept = OrderedDict[bytes, KeptRestorer]
"""Restorers by a digest of what came before, the oldest first."""


class AnswerPieces:
    """Restores texts of answers, whole or in pieces.

    Args:
        session: gives the session of an answer, when it is needed.
        name: of the session; pieces of one do not go on in another.
        kept: restorers that were kept, of all sessions.
        lock: of those.

    Attributes:
        unresolved: placeholders that were not restored.
    """

    def __init__(
        self, session: Callable[[], Session], name: Hashable, kept: Kept, lock: Lock
    ) -> None:
        self._session, self._name, self._kept, self._lock = session, name, kept, lock
        self.unresolved = 0

    def _restorer(self, text: str) -> Restorer:
        return self._session().restorer(escape="json" if is_json(text) else "none")

    def both(self, text: str) -> tuple[str, str]:
        """A text that may go on: what of it is certain, and what the rest is if it does not."""
        restorer = self._restorer(text)
        certain = restorer.feed(text)
        rest = restorer.close()
        self.unresolved += unresolved_in(certain + rest)
        return certain, rest

    def whole(self, text: str) -> str:
        """A whole text."""
        return "".join(self.both(text))

    def piece(self, before: str, text: str, *, final: bool) -> str:
        """What is certain after a piece, without what was certain before it.

        Args:
            before: all that came before.
            text: the piece.
            final: whether nothing comes after it, so that all is certain.
        """
        with self._lock:
            self._forget()
            kept = self._kept.pop(self._digest(before), None) if before else None
        restorer = None if kept is None else kept.restorer
        if restorer is None or is_json(before) != is_json(before + text):
            restorer = self._restorer(before + text)
            restorer.feed(before)
        made = restorer.feed(text)
        if final:
            return made + restorer.close()
        with self._lock:
            key, read = self._digest(before + text), len(before) + len(text)
            self._kept.pop(key, None)  # so that the new one is the last
            self._kept[key] = KeptRestorer(restorer, read, time.monotonic() + SECONDS)
            self._forget()
        return made

    def _digest(self, before: str) -> bytes:
        return sha256(f"{self._name!r} {before}".encode(errors="surrogatepass")).digest()

    def _forget(self) -> None:
        """Forget what is too old, and the oldest where there are too many."""
        now, read = time.monotonic(), sum(each.read for each in self._kept.values())
        while self._kept:
            oldest = next(iter(self._kept.values()))
            if len(self._kept) <= MOST and read <= LARGEST and oldest.until > now:
                return
            read -= oldest.read
            self._kept.popitem(last=False)


def is_json(text: str) -> bool:
    """Whether a text looks like JSON, by its beginning."""
    return _JSON.match(text) is not None
