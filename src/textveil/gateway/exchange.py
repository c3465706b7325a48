"""An exchange: what becomes of the texts of one request before it is sent.

In: a request of an account, for a `Gateway`. Out: the body that may be sent, and headers that say what was promised; or
somebody else's answer, restored.
Not here: who asks, and in which thread (`routes`); which values are text (`requests`); how texts are released
(`releasing`), and how answers of the upstream are restored (`streaming`).

Clients send the whole conversation with every request. Each message is released once, and sent again as it was
(`session.chains`); so what a conversation tells and spends does not grow with the number of its requests.
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
"""Response header with the guarantee of the request, as JSON: the largest bound per word, over all messages; besides,
how many messages are new, in how many something was drawn, and how many are repeated."""

PROTECTED = "textveil-protected"
"""Response header that says how much of each type was hidden: PERSON=2, EMAIL=1."""

SPENT = "textveil-spent"
"""Response header for keys with a budget: what their texts have spent, and what they may: epsilon=24, limit=40."""

UNPROTECTED = "textveil-unprotected"
"""Response header that says how many values were sent as they are, because the policy lets media pass."""

LEFT_OUT = "textveil-left-out"
"""Response header that says how many values were not sent: what the policy drops because nobody knows it, and what the
upstream signed where that is not known here."""

LONGEST = 255
"""Characters of the longest name of a request."""

OTHER = (
    "this Idempotency-Key was used for another request, or under other options of the gateway: give it to the same "
    "request only, and a new key to a new request. Nothing was sent"
)

UNKNOWN = (
    "what the upstream would remember here is not known: it was not asked here with this key, or too long ago. "
    "Send the whole conversation instead. Nothing was sent"
)

OVERLAPS = (
    "another request of the same conversation or session came at the same time: send this one again, one after the "
    "other. Nothing was sent"
)


class Begun(NamedTuple):
    """A request whose texts are known. Secret.

    Args:
        asked: the request.
        chain: its messages, those that were released before and those that are new.
        named: the name under which what the chain knows is kept, since somebody else remembers it; None for none.
    """

    asked: Asked
    chain: MessageChain
    named: str | None

    def __repr__(self) -> str:
        return "Begun()"

    @property
    def news(self) -> int:
        """Characters of what is new."""
        new = [*self.asked.messages, *self.asked.besides][len(self.chain.links) :]
        return sum(len(text) for message in new for text in message.texts)


class Exchange:
    """What becomes of the texts of one request.

    Args:
        gateway: whose policy holds for it.
        operation: its route.
        body: what is asked.
        account: whose it is.
        record: of the request.
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
        """The request with its texts, and what of them was released before.

        Args:
            retry: the client's name of the request; None without one.
        """
        gateway, operation, account = self._gateway, self._operation, self._account
        if retry is not None and not (0 < len(retry) <= LONGEST and retry.isprintable()):
            says = f"Idempotency-Key must have 1 to {LONGEST} printable characters"
            raise RequestError(400, says)
        with refusing():
            self._record.key = account
            asked = Asked(operation, self._body, gateway.policy, self._pseudonym)
            links = gateway.store.links(account)
            self._check_retry(links, retry)
            keys = self._gateway.policy.keys is not None
            if keys:
                self._limit(links)
            made = partial(MessageChain, links, account, heads=gateway.heads, summed=keys)
            said = asked.messages, asked.besides
            if operation.guardrail is None:
                chain = made(gateway.basis, *said, after=operation.after(self._body))
                named = operation.grows(self._body)
            else:
                chain, named = gateway.guarding.begun(made, operation, self._body, *said)
            news = asked.messages[len(chain.links) :]
            if not chain.continues or any(each.role.startswith(REFERENCE) for each in news):
                status = 404 if operation.method != "POST" else 400
                raise RequestError(status, UNKNOWN, code="previous_response_not_found")
            return Begun(asked, chain, named)

    def _check_retry(self, links: Links, retry: str | None) -> None:
        """Refuses a name of a request that was given to another one."""
        if retry is not None and not MessageChain.is_retry(links, retry, self._all()):
            raise RequestError(422, OTHER, code="idempotency")

    def _limit(self, links: Links) -> None:
        """Limits what a key may spend, each time, since other workers do so, too."""
        if links.ledger is None:
            return
        most = self._gateway.policy.budget
        epsilon, days = (None, None) if most is None else (most.epsilon, most.days)
        links.ledger.limit(self._account, "ldp", ALL, epsilon, days=days, alone=True)

    def released(self, begun: Begun) -> tuple[dict[str, Any], dict[str, str]]:
        """The body that may be sent, and the headers that say what was promised and hidden."""
        asked, chain, named = begun
        with refusing():
            try:
                chain.release(self._gateway.releasing)
            finally:  # what was drawn before one of the messages was refused is spent, too
                self._record.drawn, self._record.spent = chain.drawn, chain.session.spent
            # Before it is sent: the upstream remembers what it got.
            if named is not None and not chain.grow(named):
                raise RequestError(409, OVERLAPS, code="overlap")
            texts = [link.released for link in chain.links]
            body = asked.released(texts, chain.as_came(asked.signed))
            body = self._operation.placed((self._body, body), (self._body, body))
            self._record.protected = _hidden(chain)
            return body, self._headers(asked, chain)

    def restored(self, guardrail: Guardrail) -> tuple[dict[str, Any], int]:
        """The reply about an answer that somebody else got, and how many placeholders were not restored."""
        gateway, account = self._gateway, self._account
        with refusing():
            self._record.key = account
            chain = partial(MessageChain, gateway.store.links(account), account)
            return gateway.guarding.restored(chain, self._operation, guardrail, self._body, account)

    def _pseudonym(self, name: str) -> str:
        return f"user-{self._gateway.store.pseudonym(json.dumps([self._account, name]).encode())}"

    def _all(self) -> bytes:
        """All that what is sent upstream depends on."""
        gateway = self._gateway
        said = [gateway.basis, repr(gateway.policy), self._operation.name, self._body]
        return json.dumps(said, sort_keys=True).encode()

    def _headers(self, asked: Asked, chain: MessageChain) -> dict[str, str]:
        promise = largest([link.promise for link in chain.links if link.promise is not None])
        known = chain.session.snapshot().losses
        persons = [known[of].to_json() for of in sorted(known)]
        more = {"per_person": persons, "said": told(**chain.counts, kind=promise.get("kind", ""))}
        counts = sorted(self._record.protected.items())
        hidden = ", ".join(f"{type_}={count}" for type_, count in counts)
        headers = {STATEMENT: json.dumps(promise | chain.counts | more), PROTECTED: hidden}
        headers |= {} if self._gateway.policy.budget is None else {SPENT: self._spent()}
        counted = {UNPROTECTED: asked.passed, LEFT_OUT: asked.left_out}
        return headers | {name: str(count) for name, count in counted.items() if count}

    def _spent(self) -> str:
        """What an account with a budget has spent of it, as the ledger counts it."""
        accounts = self._gateway.store.ledger.accounts(self._account)
        found = [each for each in accounts if each.table == ALL]
        limits = [limit for each in found for limit in each.limits]
        return ", ".join(
            f"epsilon={limit.most - limit.left:g}, limit={limit.most:g}"
            + ("" if limit.days is None else f", days={limit.days:g}")
            for limit in limits
        )


def _hidden(chain: MessageChain) -> Counter[str]:
    """How many values of each type the request hides."""
    texts = (text for link in chain.links for text in link.released)
    return chain.session.snapshot().hidden_in("\n".join(texts))
