"""Guards for programs in this process that ask a language model themselves.

In: a request as plain JSON, and the table of its leaves. Out: the body that may be sent, and the
restored answer.
Not here: programs that speak HTTP (`api_routes`, `request_flow`), and which programs those are
(`integrations`).
"""

import asyncio
import json
from collections.abc import Callable, Hashable, Iterable
from contextlib import contextmanager
from functools import partial
from inspect import isroutine
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from textveil.errors import ConfigError, InputError, quote
from textveil.gateway.answer.streaming import remember
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.policy import Policy, Unknown
from textveil.gateway.protocols import Operation
from textveil.gateway.protocols.field_rules import Act, LeafRule, Path
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.gateway.request.parsed_request import ParsedRequest
from textveil.gateway.request.protect_message import (
    MessageReleaser,
    build_config_digest,
    merge_promises,
)
from textveil.pipeline import Privatizer, Protector
from textveil.session import MessageChain, PrefixCache, SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator

JsonObject = dict[str, Any]


def build_operation(
    name: str, *, request: LeafRule, answer: LeafRule, message: LeafRule, role: str = "role"
) -> Operation:
    """Builds the operation for a program that asks models in this process.

    Args:
        name: the name of the program.
        request: the leaves of a request; its messages are the list `messages`.
        answer: the leaves of a message of an answer.
        message: the leaves of a message of a request.
        role: the field of a message with its role.
    """

    def find_messages(body: JsonObject) -> "Iterator[tuple[str, Path]]":
        for i, item in enumerate(body["messages"]):
            yield str(item[role]), ("messages", i)

    def build_error(refused: RequestError) -> JsonObject:
        return {"error": refused.full_message}

    fields: JsonObject = {"request": request, "message": message, "find_messages": find_messages}
    return Operation(name=name, path="", answer=answer, build_error=build_error, **fields)


def split_settings(settings: JsonObject) -> tuple[JsonObject | None, JsonObject]:
    """Splits the settings of a request into plain data and pass-through values.

    Classes, functions and numbers pass through. The plain data is None if there is none.

    Raises:
        InputError: a setting is, or contains, neither.
    """
    passed = {name: value for name, value in settings.items() if _is_of_program(value)}
    data = {name: value for name, value in settings.items() if name not in passed}
    if wrong := [name for name, value in data.items() if not _is_json(value)]:
        raise InputError(
            f"the setting {quote(wrong[0])} of a request cannot be protected, since it is neither "
            "plain data nor a class, a function or a number: leave it out, or set it on the inner "
            "model"
        )
    return data or None, passed


def _is_of_program(value: Any) -> bool:
    return isinstance(value, type | Number) or isroutine(value)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


UNNAMED_ACCOUNT = "no name"
"""Account of unnamed conversations, which their messages tell apart."""


class ChatGuard:
    """Guard that protects in-process requests to language models and restores answers.

    Each message of a conversation is released once, and sent again unchanged with every further
    request; answers are treated the same way. So a retry, or the next turn, draws and spends
    nothing new. A copy is the same guard, since a new one would not know the hidden values. A
    pickle has the options only, and begins with an empty memory, or with the store that its URL
    names. It may be used from several threads.

    Args:
        protector: a `Protector`, a `Privatizer`, or the name of a profile.
        store: stores released messages: a URL, or a `SessionStore`. "memory:" forgets messages not
            used for a day.
        media: images, audio and files: "refuse" the request, or "pass" them unchanged.
        unknown: values that no table of the host names: "protect" them like text, "refuse" the
            request, or "drop" the value.
        schemas: descriptions of tools: "identifiers" hides identifiers in them, "pass" sends them
            unchanged.

    Raises:
        ConfigError: options are wrong. StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        protector: Protector | Privatizer | str = "prompt",
        *,
        store: str | SessionStore = "memory:",
        media: Literal["refuse", "pass"] = "refuse",
        unknown: Unknown = "protect",
        schemas: Literal["identifiers", "pass"] = "identifiers",
    ) -> None:
        self._arguments = protector, store, media, unknown, schemas
        if isinstance(protector, str):
            protector = Privatizer.from_profile(protector)
        privatizer = protector.privatizer if isinstance(protector, Protector) else protector
        if not isinstance(privatizer, Privatizer):
            raise ConfigError(
                "give a Protector, a Privatizer or the name of a profile, not "
                f"{type(privatizer).__name__}"
            )
        if privatizer.words.lasting:
            raise ConfigError(
                "words.lasting works with named sessions only, and a guard keeps conversations: "
                "leave it out"
            )
        self._policy = Policy(media=media, unknown=unknown, schemas=schemas)
        self._store = SessionStore(store) if isinstance(store, str) else store
        self._privatizer, self._prefix_cache = privatizer, PrefixCache()
        self._release_message, self._config_digest = (
            MessageReleaser.build(privatizer),
            build_config_digest(privatizer, self._store),
        )

    def __repr__(self) -> str:
        return f"ChatGuard({self._privatizer!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        protector, store, *policy = self._arguments
        return _rebuild_guard, (protector, _check_url(store), *policy)

    def dump_options(self) -> JsonObject:
        """Returns the options of this guard as plain data, for storing it.

        Raises:
            ConfigError: the guard was made from objects; it must be made from the name of a profile
                and the URL of a store.
        """
        protector, store, media, unknown, schemas = self._arguments
        if not isinstance(protector, str):
            raise ConfigError(
                "only a guard that is made from a profile can be saved: give the name of the "
                "profile"
            )
        data = {"protector": protector, "store": _check_url(store)}
        return data | {"media": media, "unknown": unknown, "schemas": schemas}

    def protect(
        self, operation: Operation, body: JsonObject, conversation: str | None = None
    ) -> "GuardedRequest":
        """Releases the texts of a request.

        Args:
            operation: the table of its leaves, and the places of its messages.
            body: the request, as plain JSON.
            conversation: the name of the conversation; conversations of different names share
                nothing. Without names they are told apart by their messages.

        Raises:
            InputError: the request has a value that cannot be protected. LimitReached: it would
                spend more than its limit.
            TextveilError: protecting it failed.
        """
        with _convert_errors():
            # The prefix keeps a conversation that is called like the other account apart from it.
            account = UNNAMED_ACCOUNT if conversation is None else f"conversation {conversation}"
            make_pseudonym = partial(self._make_pseudonym, account)
            request = ParsedRequest(operation, body, self._policy, make_pseudonym)
            links = self._store.links(account)
            chain = MessageChain(
                links,
                account,
                self._config_digest,
                request.messages,
                request.context,
                cache=self._prefix_cache,
            )
            chain.release(partial(self._release_message, application=request.application))
            request.application.check_tools(chain.session.snapshot().sought, body)
            texts = [link.texts for link in chain.links]
            released_body = request.build_body(texts, chain.lookup_signed(request.signed))
        return GuardedRequest(operation, body, released_body, chain)

    async def aprotect(
        self, operation: Operation, body: JsonObject, conversation: str | None = None
    ) -> "GuardedRequest":
        """Releases the texts of a request in a thread, like `protect`.

        See `Privatizer.aprivatize` for the meaning of cancelling.
        """
        return await asyncio.to_thread(self.protect, operation, body, conversation)

    def _make_pseudonym(self, account: str, name: str) -> str:
        return f"user-{self._store.pseudonym(f'{account}{chr(0)}{name}'.encode())}"


class GuardedRequest:
    """Released request and the restorer of its answer.

    Secret, except for `released_body` and `statement`.

    Attributes:
        released_body: the body that may be sent.
        statement: the largest bound per word over all messages, as plain data, with the numbers of
            new, drawn and repeated messages.
    """

    def __init__(
        self, operation: Operation, body: JsonObject, released_body: JsonObject, chain: MessageChain
    ) -> None:
        self._operation, self._chain = operation, chain
        self.released_body = released_body
        promise = merge_promises(
            [link.statement for link in chain.links if link.statement is not None]
        )
        self.statement = promise | chain.counts
        self.restorer = AnswerRestorer(
            chain.session,
            as_json=operation.is_json_requested(body),
            request_pair=(released_body, body),
        )

    def __repr__(self) -> str:
        return f"GuardedRequest({len(self._chain.links)} messages)"

    def restore(self, answer: Any, rule: LeafRule | None = None) -> Any:
        """Restores a whole answer, or a part of one.

        Args:
            answer: the answer, as plain JSON.
            rule: the table of its leaves; None for the operation's.
        """
        return self.restorer.restore_json(answer, self._operation.answer if rule is None else rule)

    def restore_piece(
        self, piece: Any, rule: LeafRule, find_key: Callable[[Path], Hashable]
    ) -> tuple[Any, dict[Hashable, Path]]:
        """Restores the certain texts in a piece of a streamed answer.

        Args:
            piece: the piece, as plain JSON.
            rule: the table of its leaves.
            find_key: maps a path in the piece to the key of the text that it continues.

        Returns:
            The piece with its certain texts, and the paths of its texts by key.
        """
        paths: dict[Hashable, Path] = {}

        def restore_text(path: Path, value: str, act: Act) -> str:
            key = find_key(path)
            paths[key] = path
            return self.restorer.restore_piece(key, value, act)

        return self.restorer.restore_json(piece, rule, restore_text), paths

    def close_text(self, key: Hashable) -> str:
        """Returns the held-back end of a text of a streamed answer."""
        return self.restorer.close_text(key)

    def remember_answer(self, pairs: Iterable[tuple[JsonObject, JsonObject]]) -> None:
        """Remembers messages of the answer, each as received and as restored.

        When the client sends one back, it is sent on as it was received.
        """
        remember(self._chain, self._operation, pairs)

    async def aremember_answer(self, pairs: "Iterable[tuple[JsonObject, JsonObject]]") -> None:
        """Remembers messages of the answer in a thread, like `remember_answer`."""
        await asyncio.to_thread(self.remember_answer, list(pairs))


@contextmanager
def _convert_errors() -> "Iterator[None]":
    """Turns errors of requests into `InputError`, which quotes no text."""
    try:
        yield
        return
    except RequestError as error:
        message = error.message
    except RecursionError:
        message = "JSON in the request is nested too deeply"
    # Out here, so that no chained error holds the request.
    raise InputError(message)


def _check_url(store: str | SessionStore) -> str:
    if not isinstance(store, str):
        raise ConfigError("a guard can be pickled or saved only if its store is given as a URL")
    if urlsplit(store).password:
        raise ConfigError(
            "a guard cannot be pickled or saved if the URL of its store has a password: keep the "
            "password out of the URL"
        )
    return store


def _rebuild_guard(protector: Any, store: str, media: Any, unknown: Any, schemas: Any) -> ChatGuard:
    return ChatGuard(protector, store=store, media=media, unknown=unknown, schemas=schemas)
