"""Requests that somebody else sends to a model, and shows to the gateway before, and their answers after.

In: such a request, or what restores its answer. Out: the chain of its messages, and the session that it left.
Not here: which routes those are (`protocols.litellm`), and what becomes of requests that are sent (`exchange`).

What a request hid is kept under the name that the asker gave it, for the asker's own client. A name that is given
again goes on with what it stands for, so that within it a placeholder never stands for two values.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any

from textveil.gateway.pieces import AnswerPieces, Kept
from textveil.gateway.protocols import Guardrail, Operation
from textveil.session import MessageChain, Session, Utterance

MakesChain = Callable[..., MessageChain]
"""Makes a chain of an account, given all else: what it depends on, messages, what is beside them, after what."""


class Guarding:
    """What a gateway keeps of requests that others send.

    Args:
        basis: what releases depend on.
    """

    def __init__(self, basis: str) -> None:
        self._basis = basis
        self._kept, self._lock = Kept(), Lock()

    def begun(
        self,
        chain: MakesChain,
        operation: Operation,
        body: dict[str, Any],
        messages: Sequence[Utterance],
        besides: Sequence[Utterance],
    ) -> tuple[MessageChain, str | None]:
        """The chain of a request, and the name under which what it knows is to be kept; None where it is already.

        Args:
            chain: makes it.
            operation: its route.
            body: the request.
            messages: of the request.
            besides: what is said besides.
        """
        basis, name = self._of(operation, body)
        if name is None:
            return chain(basis, messages, besides), None
        known, alone = chain(basis, (), after=name), chain(basis, messages, besides)
        if not known.continues:
            return alone, name
        if len(alone.links) == len(messages) + len(besides) and _knows(known, alone):
            return alone, None  # the same request once more
        return chain(basis, messages, besides, after=name), name

    def restored(
        self,
        chain: MakesChain,
        operation: Operation,
        guardrail: Guardrail,
        body: dict[str, Any],
        account: str,
    ) -> tuple[dict[str, Any], int]:
        """The reply about an answer, and how many placeholders were not restored.

        Nothing is restored in an answer to a request that is not known.

        Args:
            chain: makes chains of the account.
            operation: the route.
            guardrail: how it is answered.
            body: what was shown.
            account: whose it is.
        """
        basis, name = self._of(operation, body)

        @cache
        def session() -> Session:
            return Session() if name is None else chain(basis, (), after=name).session

        pieces = AnswerPieces(session, (account, name), self._kept, self._lock)
        return guardrail.restored(body, pieces), pieces.unresolved

    def _of(self, operation: Operation, body: dict[str, Any]) -> tuple[str, str | None]:
        """What releases depend on, and the name of a request; both are others for another client of the asker."""
        assert operation.guardrail is not None, "or the upstream is asked"
        whose, name = operation.guardrail.whose(body), operation.grows(body)
        return self._basis + whose, json.dumps([whose, name]) if isinstance(name, str) else None


def _knows(chain: MessageChain, other: MessageChain) -> bool:
    """Whether a chain restores all that another one does."""
    own, others = chain.session.snapshot(), other.session.snapshot()
    replaced = others.replaced.items() <= own.replaced.items()
    return replaced and others.placeholders.items() <= own.placeholders.items()
