"""Guardrails: requests that another program sends to a model itself, and their answers.

In: such a request, shown before it is sent, or its answer. Out: the chain of its messages, and the
session that restores the answer.
Not here: which routes those are (`protocols.litellm`), and requests that the gateway sends
(`request_flow`).

The values hidden in a request are stored under the name that the asker gave it, for the asker's own
client. A request under the same name continues that session, so that within it a placeholder never
stands for two values.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any

from textveil.gateway.protocols import Guardrail, Operation
from textveil.gateway.protocols.partial_answers import PieceRestorer, RestorerCache
from textveil.session import MessageChain, Session, Utterance

ChainFactory = Callable[..., MessageChain]
"""Function that makes an account's chain from basis, messages, context and predecessor."""


class GuardrailSessions:
    """Hidden values and restorers for requests that other programs send.

    Args:
        config_digest: fingerprint of all that releases depend on.
    """

    def __init__(self, config_digest: str) -> None:
        self._config_digest = config_digest
        self._cache, self._lock = RestorerCache(), Lock()

    def prepare(
        self,
        build_chain: ChainFactory,
        operation: Operation,
        body: dict[str, Any],
        messages: Sequence[Utterance],
        context: Sequence[Utterance],
    ) -> tuple[MessageChain, str | None]:
        """Returns the chain of a request, and the name to store.

        The name is None if nothing new must be stored.

        Args:
            build_chain: makes the chain.
            operation: the route of the request.
            body: the request.
            messages: the messages of the request.
            context: its texts outside of messages, such as tools.
        """
        config_digest, name = self._resolve_name(operation, body)
        if name is None:
            return build_chain(config_digest, messages, context), None
        stored_chain, new_chain = (
            build_chain(config_digest, (), upstream_name=name),
            build_chain(config_digest, messages, context),
        )
        if not stored_chain.can_continue:
            return new_chain, name
        if len(new_chain.links) == len(messages) + len(context) and _can_restore(
            stored_chain, new_chain
        ):
            return new_chain, None  # a repeat of the same request
        return build_chain(config_digest, messages, context, upstream_name=name), name

    def restore(
        self,
        build_chain: ChainFactory,
        operation: Operation,
        guardrail: Guardrail,
        body: dict[str, Any],
        account: str,
    ) -> tuple[dict[str, Any], int]:
        """Restores an answer; returns the reply and the number of unresolved placeholders.

        Nothing is restored in an answer to an unknown request.

        Args:
            build_chain: makes chains of the account.
            operation: the route.
            guardrail: the guardrail API, which writes the reply.
            body: the request with the answer.
            account: the account that the answer belongs to.
        """
        config_digest, name = self._resolve_name(operation, body)

        @cache
        def open_session() -> Session:
            return (
                Session()
                if name is None
                else build_chain(config_digest, (), upstream_name=name).session
            )

        pieces = PieceRestorer(open_session, (account, name), self._cache, self._lock)
        return guardrail.build_answer_reply(body, pieces), pieces.unresolved

    def _resolve_name(self, operation: Operation, body: dict[str, Any]) -> tuple[str, str | None]:
        """Returns the basis and the stored name of a request.

        Both are different for each client of the asker.
        """
        assert operation.guardrail is not None, "or the upstream is asked"
        client, name = operation.guardrail.get_client(body), operation.get_conversation(body)
        return self._config_digest + client, json.dumps([client, name]) if isinstance(
            name, str
        ) else None


def _can_restore(chain: MessageChain, other: MessageChain) -> bool:
    """True if a chain restores all that another chain does."""
    facts, other_facts = chain.session.snapshot(), other.session.snapshot()
    replaced = other_facts.replaced.items() <= facts.replaced.items()
    return replaced and other_facts.placeholders.items() <= facts.placeholders.items()
