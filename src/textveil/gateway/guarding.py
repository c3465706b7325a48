"""Guardrails: requests that another program sends to a model itself, and their answers.

In: such a request, shown before it is sent, or its answer. Out: the chain of its messages, and the
session that restores the answer.
Not here: which routes those are (`protocols.litellm`), and requests that the gateway sends
(`exchange`).

The values hidden in a request are stored under the name that the asker gave it, for the asker's own
client. A request under the same name continues that session, so that within it a placeholder never
stands for two values.
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
"""Function that makes an account's chain from basis, messages, context and predecessor."""


class Guarding:
    """Hidden values and restorers for requests that other programs send.

    Args:
        basis: fingerprint of all that releases depend on.
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
        """Returns the chain of a request, and the name to store.

        The name is None if nothing new must be stored.

        Args:
            chain: makes the chain.
            operation: the route of the request.
            body: the request.
            messages: the messages of the request.
            besides: its texts outside of messages, such as tools.
        """
        basis, name = self._identify(operation, body)
        if name is None:
            return chain(basis, messages, besides), None
        stored, alone = chain(basis, (), after=name), chain(basis, messages, besides)
        if not stored.continues:
            return alone, name
        if len(alone.links) == len(messages) + len(besides) and _can_restore(stored, alone):
            return alone, None  # a repeat of the same request
        return chain(basis, messages, besides, after=name), name

    def restored(
        self,
        chain: MakesChain,
        operation: Operation,
        guardrail: Guardrail,
        body: dict[str, Any],
        account: str,
    ) -> tuple[dict[str, Any], int]:
        """Restores an answer; returns the reply and the number of unresolved placeholders.

        Nothing is restored in an answer to an unknown request.

        Args:
            chain: makes chains of the account.
            operation: the route.
            guardrail: the guardrail API, which writes the reply.
            body: the request with the answer.
            account: the account that the answer belongs to.
        """
        basis, name = self._identify(operation, body)

        @cache
        def session() -> Session:
            return Session() if name is None else chain(basis, (), after=name).session

        pieces = AnswerPieces(session, (account, name), self._kept, self._lock)
        return guardrail.restored(body, pieces), pieces.unresolved

    def _identify(self, operation: Operation, body: dict[str, Any]) -> tuple[str, str | None]:
        """Returns the basis and the stored name of a request.

        Both are different for each client of the asker.
        """
        assert operation.guardrail is not None, "or the upstream is asked"
        whose, name = operation.guardrail.whose(body), operation.grows(body)
        return self._basis + whose, json.dumps([whose, name]) if isinstance(name, str) else None


def _can_restore(chain: MessageChain, other: MessageChain) -> bool:
    """True if a chain restores all that another chain does."""
    mine, others = chain.session.snapshot(), other.session.snapshot()
    replaced = others.replaced.items() <= mine.replaced.items()
    return replaced and others.placeholders.items() <= mine.placeholders.items()
