"""Answers that others show piece by piece, each piece in a request of its own.

In: a piece, and all that came before it. Out: what of it is certain, restored.
Not here: answers that the gateway itself receives (`answers`).

Whoever shows a stream sends back what came before with each piece, so any worker of the gateway can go on with it. A
restorer that is still there only saves reading it again.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

import regex

from textveil.gateway.answers import unresolved_in
from textveil.session import Restorer, Session

MOST = 1_000
"""Restorers that are kept for the next piece."""

_JSON = regex.compile(r"\s*+(?:\{\s*+[\"}]|\[\s*+[\"\[{\]])")
"""How JSON with text in it begins, so that originals in it must be escaped."""

Kept = OrderedDict[Hashable, Restorer]
"""Restorers by what came before."""


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

    def __init__(self, session: Callable[[], Session], name: Hashable, kept: Kept, lock: Lock) -> None:
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
            restorer = self._kept.pop((self._name, before), None) if before else None
        if restorer is None or is_json(before) != is_json(before + text):
            restorer = self._restorer(before + text)
            restorer.feed(before)
        made = restorer.feed(text)
        if final:
            return made + restorer.close()
        with self._lock:
            self._kept[self._name, before + text] = restorer
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return made


def is_json(text: str) -> bool:
    """Whether a text looks like JSON, by its beginning."""
    return _JSON.match(text) is not None
