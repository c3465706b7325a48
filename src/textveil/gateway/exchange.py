"""An exchange: releasing the texts of one request before it is sent.

In: a request of an account, for a `Gateway`. Out: the body that may be sent, and headers with the
promise; or an answer that another program received, restored.
Not here: callers and threads (`routes`); which values are text (`requests`); how texts are released
(`releasing`), and how answers of the upstream are restored (`streaming`).

Clients send the whole conversation with every request. Each message is released once, and later
sent again unchanged (`session.chains`); so the disclosure and the spending of a conversation do not
grow with the number of its requests.
"""

import json
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

from textveil.gateway.errors import RequestError, refusing
from textveil.gateway.gateway import Gateway
from textveil.gateway.protocols import REFERENCE, Guardrail, Operation
from textveil.gateway.record import RequestRecord
from textveil.gateway.releasing import largest, told
from textveil.gateway.requests import Asked
from textveil.session import ALL, MessageChain
from textveil.session.chains import Links

STATEMENT = "textveil-statement"
"""Response header with the guarantee of the request, as JSON.

It has the largest bound per word over all messages, and the numbers of new, drawn and repeated
messages.
"""

PROTECTED = "textveil-protected"
"""Response header with the number of hidden values of each type.

Example: PERSON=2, EMAIL=1.
"""

SPENT = "textveil-spent"
"""Response header with the spending of a key and its limit.

Example: epsilon=24, limit=40. Only keys with a budget get it.
"""

UNPROTECTED = "textveil-unprotected"
"""Response header with the number of values sent unprotected.

The policy lets media pass.
"""

LEFT_OUT = "textveil-left-out"
"""Response header with the number of values that were not sent.

These are unknown values that the policy drops, and signed texts that this gateway does not know.
"""

LONGEST = 255
"""Characters of the longest name of a request (Idempotency-Key)."""

OTHER = (
    "this Idempotency-Key was used for another request, or under other options of the gateway: "
    "give it to the same "
    "request only, and a new key to a new request. Nothing was sent"
)

UNKNOWN = (
    "what the upstream would remember here is not known: it was not asked here with this key, or "
    "too long ago. "
    "Send the whole conversation instead. Nothing was sent"
)

OVERLAPS = (
    "another request of the same conversation or session came at the same time: send this one "
    "again, one after the "
    "other. Nothing was sent"
)


class Begun(NamedTuple):
    """Request whose texts are known, before they are released. Secret.

    Args:
        asked: the request.
        chain: its messages, both already released and new.
        named: the name under which the chain is stored, since the upstream or the asker remembers
            the conversation by it; None for no name.
    """

    asked: Asked
    chain: MessageChain
    named: str | None

    def __repr__(self) -> str:
        return "Begun()"

    @property
    def news(self) -> int:
        """Number of characters in the new messages."""
        new = [*self.asked.messages, *self.asked.besides][len(self.chain.links) :]
        return sum(len(text) for message in new for text in message.texts)


class Exchange:
    """Release of the texts of one request.

    Args:
        gateway: the gateway whose policy holds for the request.
        operation: its route.
        body: the JSON of the request.
        account: the account that the request belongs to.
        record: the request's record.
    """

    def __init__(
        self,
        gateway: Gateway,
        operation: Operation,
        body: dict[str, Any],
        account: str,
        record: RequestRecord,
    ) -> None:
        self._gateway, self._operation, self._body = gateway, operation, body
        self._account, self._record = account, record

    def begun(self, retry: str | None) -> Begun:
        """Reads the texts of the request and finds those released before.

        Args:
            retry: the client's name of the request (Idempotency-Key); None without one.
        """
        gateway, operation, account = self._gateway, self._operation, self._account
        if retry is not None and not (0 < len(retry) <= LONGEST and retry.isprintable()):
            says = f"Idempotency-Key must have 1 to {LONGEST} printable characters"
            raise RequestError(400, says)
        with refusing():
            self._record.key = account
            asked = Asked(operation, self._body, gateway.policy, self._make_pseudonym)
            links = gateway.store.links(account)
            self._check_retry(links, retry)
            keys = self._gateway.policy.keys is not None
            if keys:
                self._limit(links)
            make_chain = partial(MessageChain, links, account, heads=gateway.heads, summed=keys)
            texts = asked.messages, asked.besides
            if operation.guardrail is None:
                chain = make_chain(gateway.basis, *texts, after=operation.after(self._body))
                named = operation.grows(self._body)
            else:
                chain, named = gateway.guarding.begun(make_chain, operation, self._body, *texts)
            unreleased = asked.messages[len(chain.links) :]
            if not chain.continues or any(each.role.startswith(REFERENCE) for each in unreleased):
                status = 404 if operation.method != "POST" else 400
                raise RequestError(status, UNKNOWN, code="previous_response_not_found")
            return Begun(asked, chain, named)

    def _check_retry(self, links: Links, retry: str | None) -> None:
        """Refuses an Idempotency-Key that was used for another request."""
        if retry is not None and not MessageChain.is_retry(links, retry, self._serialize_inputs()):
            raise RequestError(422, OTHER, code="idempotency")

    def _limit(self, links: Links) -> None:
        """Sets the spending limit of the key in the ledger.

        It is set for each request, since other workers set it, too.
        """
        if links.ledger is None:
            return
        most = self._gateway.policy.budget
        epsilon, days = (None, None) if most is None else (most.epsilon, most.days)
        links.ledger.limit(self._account, "ldp", ALL, epsilon, days=days, alone=True)

    def released(self, begun: Begun) -> tuple[dict[str, Any], dict[str, str]]:
        """Releases the texts and returns the body and the response headers."""
        asked, chain, named = begun
        with refusing():
            try:
                chain.release(self._gateway.releasing)
            finally:  # draws before a refused message are spent, too
                self._record.drawn, self._record.spent = chain.drawn, chain.session.spent
            # Before sending: the upstream remembers all that it gets.
            if named is not None and not chain.grow(named):
                raise RequestError(409, OVERLAPS, code="overlap")
            texts = [link.released for link in chain.links]
            body = asked.released(texts, chain.as_came(asked.signed))
            body = self._operation.placed((self._body, body), (self._body, body))
            self._record.protected = _count_hidden(chain)
            return body, self._build_headers(asked, chain)

    def restored(self, guardrail: Guardrail) -> tuple[dict[str, Any], int]:
        """Restores an answer that another program received.

        It returns the reply, and the number of unresolved placeholders.
        """
        gateway, account = self._gateway, self._account
        with refusing():
            self._record.key = account
            chain = partial(MessageChain, gateway.store.links(account), account)
            return gateway.guarding.restored(chain, self._operation, guardrail, self._body, account)

    def _make_pseudonym(self, name: str) -> str:
        return f"user-{self._gateway.store.pseudonym(json.dumps([self._account, name]).encode())}"

    def _serialize_inputs(self) -> bytes:
        """Serializes all inputs that the sent request depends on."""
        gateway = self._gateway
        inputs = [gateway.basis, repr(gateway.policy), self._operation.name, self._body]
        return json.dumps(inputs, sort_keys=True).encode()

    def _build_headers(self, asked: Asked, chain: MessageChain) -> dict[str, str]:
        promise = largest([link.promise for link in chain.links if link.promise is not None])
        losses = chain.session.snapshot().losses
        persons = [losses[of].to_json() for of in sorted(losses)]
        more = {"per_person": persons, "said": told(**chain.counts, kind=promise.get("kind", ""))}
        counts = sorted(self._record.protected.items())
        hidden = ", ".join(f"{type_}={count}" for type_, count in counts)
        headers = {STATEMENT: json.dumps(promise | chain.counts | more), PROTECTED: hidden}
        headers |= {} if self._gateway.policy.budget is None else {SPENT: self._format_spending()}
        counted = {UNPROTECTED: asked.passed, LEFT_OUT: asked.left_out}
        return headers | {name: str(count) for name, count in counted.items() if count}

    def _format_spending(self) -> str:
        """Formats the account's spending and limits, as the ledger counts them."""
        accounts = self._gateway.store.ledger.accounts(self._account)
        accounts_of_all = [each for each in accounts if each.table == ALL]
        limits = [limit for each in accounts_of_all for limit in each.limits]
        return ", ".join(
            f"epsilon={limit.most - limit.left:g}, limit={limit.most:g}"
            + ("" if limit.days is None else f", days={limit.days:g}")
            for limit in limits
        )


def _count_hidden(chain: MessageChain) -> Counter[str]:
    """Counts the hidden values of each type in a request."""
    texts = (text for link in chain.links for text in link.released)
    return chain.session.snapshot().hidden_in("\n".join(texts))
