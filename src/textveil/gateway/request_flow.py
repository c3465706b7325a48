"""An exchange: releasing the texts of one request before it is sent.

In: a request of an account, for a `Gateway`. Out: the body that may be sent, and headers with the
promise; or an answer that another program received, restored.
Not here: callers and threads (`api_routes`); which values are text (`parsed_request`); how texts
are released
(`protect_message`), and how answers of the upstream are restored (`streaming`).

Clients send the whole conversation with every request. Each message is released once, and later
sent again unchanged (`session.conversations`); so the disclosure and the spending of a conversation
do not grow with the number of its requests.
"""

import json
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

from textveil.gateway.errors import RequestError, convert_errors
from textveil.gateway.gateway import Gateway
from textveil.gateway.protocols import REFERENCE, Guardrail, Operation
from textveil.gateway.request.parsed_request import ParsedRequest
from textveil.gateway.request.protect_message import describe_draws, merge_promises
from textveil.gateway.request.request_record import RequestRecord
from textveil.session import ALL_TABLES, MessageChain
from textveil.session.conversations import LinkStore

STATEMENT_HEADER = "textveil-statement"
"""Response header with the guarantee of the request, as JSON.

It has the largest bound per word over all messages, and the numbers of new, drawn and repeated
messages.
"""

PROTECTED_HEADER = "textveil-protected"
"""Response header with the number of hidden values of each type.

Example: PERSON=2, EMAIL=1.
"""

SPENT_HEADER = "textveil-spent"
"""Response header with the spending of a key and its limit.

Example: epsilon=24, limit=40. Only keys with a budget get it.
"""

UNPROTECTED_HEADER = "textveil-unprotected"
"""Response header with the number of values sent unprotected.

The policy lets media pass.
"""

LEFT_OUT_HEADER = "textveil-left-out"
"""Response header with the number of values that were not sent.

These are unknown values that the policy drops, and signed texts that this gateway does not know.
"""

UNKNOWN_HEADER = "textveil-unknown"
"""Response header with the paths of unknown fields, and how often each was there.

Example: trace=1, messages[].mood=3.
"""

FORGET_HEADER = "textveil-forget"
"""Request header with placeholders or types whose originals are forgotten from now on.

Example: <PERSON_1>, EMAIL. The response says in the same header how many values were forgotten.
"""

NOT_FORGOTTEN = (
    f"{FORGET_HEADER} needs a request that holds its whole conversation, such as of chat "
    "completions or messages: where the upstream or a guardrail remembers one, earlier states "
    "would keep the originals. Nothing was sent"
)

MAX_UNKNOWN = 20
"""Most paths in the header; the others are in the audit log."""

MAX_RETRY_KEY = 255
"""Characters of the longest name of a request (Idempotency-Key)."""

RETRY_CONFLICT = (
    "this Idempotency-Key was used for another request, or under other options of the gateway: use "
    "a new key for each new request. Nothing was sent"
)

UNKNOWN_CONVERSATION = (
    "the gateway does not know the conversation that this request continues: it was not held here "
    "with this key, or too long ago. Send the whole conversation instead. Nothing was sent"
)

BLOCKED = (
    "the policy of the gateway blocks requests with {}, and this one has it, in its new texts or "
    "in earlier ones of the conversation: take it out. Nothing was sent"
)

UNKNOWN_ANSWER = (
    "the gateway does not know this response or conversation: it was not asked for here with this "
    "key, or too long ago, or before a restart without a store. Nothing was sent"
)

OVERLAP = (
    "another request of the same conversation or session came at the same time: send this request "
    "again when the other one has ended. Nothing was sent"
)


class PreparedRequest(NamedTuple):
    """Request whose texts are known, before they are released. Secret.

    Args:
        request: the request.
        chain: its messages, both already released and new.
        stored_name: the name under which the chain is stored, since the upstream or the asker
            remembers the conversation by it; None for no name.
    """

    request: ParsedRequest
    chain: MessageChain
    stored_name: str | None

    def __repr__(self) -> str:
        return "PreparedRequest()"

    @property
    def new_characters(self) -> int:
        """Number of characters in the new messages."""
        new = [*self.request.messages, *self.request.context][len(self.chain.links) :]
        return sum(len(text) for message in new for text in message.texts)


class RequestFlow:
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

    def prepare(self, retry: str | None) -> PreparedRequest:
        """Reads the texts of the request and finds those released before.

        Args:
            retry: the client's name of the request (Idempotency-Key); None without one.
        """
        gateway, operation, account = self._gateway, self._operation, self._account
        if retry is not None and not (0 < len(retry) <= MAX_RETRY_KEY and retry.isprintable()):
            problem = f"Idempotency-Key must have 1 to {MAX_RETRY_KEY} printable characters"
            raise RequestError(400, problem)
        with convert_errors():
            self._record.key = account
            request = ParsedRequest(operation, self._body, gateway.policy, self._make_pseudonym)
            links = gateway.store.links(account)
            self._check_retry(links, retry)
            keys = self._gateway.policy.keys is not None
            if keys:
                self._limit(links)
            make_chain = partial(
                MessageChain, links, account, cache=gateway.prefix_cache, charge_total=keys
            )
            texts = request.messages, request.context
            if operation.guardrail is None:
                chain = make_chain(
                    gateway.config_digest,
                    *texts,
                    upstream_name=operation.find_predecessor(self._body),
                )
                stored_name = operation.get_conversation(self._body)
            else:
                chain, stored_name = gateway.guardrail_sessions.prepare(
                    make_chain, operation, self._body, *texts
                )
            unreleased = request.messages[len(chain.links) :]
            if not chain.can_continue or any(
                message.role.startswith(REFERENCE) for message in unreleased
            ):
                status, message = (
                    (400, UNKNOWN_CONVERSATION) if operation.has_body else (404, UNKNOWN_ANSWER)
                )
                raise RequestError(status, message, code="previous_response_not_found")
            return PreparedRequest(request, chain, stored_name)

    def _check_retry(self, links: LinkStore, retry: str | None) -> None:
        """Refuses an Idempotency-Key that was used for another request."""
        if retry is not None and not MessageChain.claim_idempotency_key(
            links, retry, self._dump_inputs()
        ):
            raise RequestError(422, RETRY_CONFLICT, code="idempotency")

    def _limit(self, links: LinkStore) -> None:
        """Sets the spending limit of the key in the ledger.

        It is set for each request, since other workers set it, too.
        """
        if links.ledger is None:
            return
        budget = self._gateway.policy.budget
        epsilon, days = (None, None) if budget is None else (budget.epsilon, budget.days)
        links.ledger.limit(self._account, "ldp", ALL_TABLES, epsilon, days=days, exclusive=True)

    def release(
        self, prepared: PreparedRequest, forget: str | None = None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Releases the texts and returns the body and the response headers.

        Args:
            prepared: the request.
            forget: the client's `FORGET_HEADER`; None without one.
        """
        request, chain, stored_name = prepared
        if forget is not None and not self._operation.holds_conversation:
            raise RequestError(400, NOT_FORGOTTEN)
        with convert_errors():
            try:
                chain.release(
                    partial(self._gateway.release_message, application=request.application)
                )
                request.application.check_tools(chain.session.snapshot().sought, self._body)
            finally:  # draws before a refused message are spent, too
                self._record.drawn, self._record.spent = chain.counts["drawn"], chain.session.spends
            # Counted before anything is forgotten: the request still holds it, hidden.
            self._record.protected, self._record.unknown = _count_hidden(chain), request.unknown
            if blocked := self._gateway.policy.find_blocked(self._record.protected):
                raise RequestError(400, BLOCKED.format(blocked), code="blocked")
            if forget is not None:
                self._record.forgotten = chain.forget(map(str.strip, forget.split(",")))
            # Before sending: the upstream remembers all that it gets.
            if stored_name is not None and not chain.swap_state(stored_name):
                raise RequestError(409, OVERLAP, code="overlap")
            texts = [link.texts for link in chain.links]
            body = request.build_body(texts, chain.lookup_signed(request.signed))
            body = self._operation.correct_offsets((self._body, body), (self._body, body))
            return body, self._build_headers(request, chain)

    def restore(self, guardrail: Guardrail) -> tuple[dict[str, Any], int]:
        """Restores an answer that another program received.

        It returns the reply, and the number of unresolved placeholders.
        """
        gateway, account = self._gateway, self._account
        with convert_errors():
            self._record.key = account
            chain = partial(MessageChain, gateway.store.links(account), account)
            return gateway.guardrail_sessions.restore(
                chain, self._operation, guardrail, self._body, account
            )

    def _make_pseudonym(self, name: str) -> str:
        return f"user-{self._gateway.store.pseudonym(json.dumps([self._account, name]).encode())}"

    def _dump_inputs(self) -> bytes:
        """Serializes all inputs that the sent request depends on."""
        gateway = self._gateway
        inputs = [gateway.config_digest, repr(gateway.policy), self._operation.name, self._body]
        return json.dumps(inputs, sort_keys=True).encode()

    def _build_headers(self, request: ParsedRequest, chain: MessageChain) -> dict[str, str]:
        promise = merge_promises(
            [link.statement for link in chain.links if link.statement is not None]
        )
        losses = chain.session.snapshot().losses
        persons = [losses[person].to_json() for person in sorted(losses)]
        details = {
            "per_person": persons,
            "said": describe_draws(**chain.counts, kind=promise.get("kind", "")),
        }
        counts = sorted(self._record.protected.items())
        hidden = ", ".join(f"{type_}={count}" for type_, count in counts)
        headers = {
            STATEMENT_HEADER: json.dumps(promise | chain.counts | details),
            PROTECTED_HEADER: hidden,
        }
        headers |= (
            {} if self._gateway.policy.budget is None else {SPENT_HEADER: self._format_spending()}
        )
        if request.unknown:
            paths = list(request.unknown.items())
            listed = ", ".join(f"{path}={count}" for path, count in paths[:MAX_UNKNOWN])
            headers[UNKNOWN_HEADER] = listed + ", ..." * (len(paths) > MAX_UNKNOWN)
        counted = {
            UNPROTECTED_HEADER: request.passed,
            LEFT_OUT_HEADER: request.left_out,
            FORGET_HEADER: self._record.forgotten,
        }
        return headers | {name: str(count) for name, count in counted.items() if count}

    def _format_spending(self) -> str:
        """Formats the account's spending and limits, as the ledger counts them."""
        accounts = self._gateway.store.ledger.accounts(self._account)
        accounts_of_all = [account for account in accounts if account.table == ALL_TABLES]
        limits = [limit for account in accounts_of_all for limit in account.limits]
        return ", ".join(
            f"epsilon={limit.most - limit.left:g}, limit={limit.most:g}"
            + ("" if limit.days is None else f", days={limit.days:g}")
            for limit in limits
        )


def _count_hidden(chain: MessageChain) -> Counter[str]:
    """Counts the hidden values of each type in a request."""
    texts = (text for link in chain.links for text in link.texts)
    return chain.session.snapshot().count_hidden("\n".join(texts))
