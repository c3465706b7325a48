"""Requests that a program in this process sends to a language model by itself, and their answers.

In: such a request as plain JSON, and the table of its leaves. Out: what may be sent, and the answer with the originals.
Not here: programs that speak HTTP (`routes`, `exchange`), and which programs those are (`integrations`).
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
from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError
from textveil.gateway.leaves import Act, LeafRule, Path
from textveil.gateway.policy import Policy
from textveil.gateway.protocols import Operation
from textveil.gateway.releasing import Releasing, basis_of, largest
from textveil.gateway.requests import Asked
from textveil.gateway.streaming import remember
from textveil.pipeline import Privatizer, Protector
from textveil.session import Heads, MessageChain, SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator

Body = dict[str, Any]


def host(
    name: str, *, request: LeafRule, answer: LeafRule, message: LeafRule, role: str = "role"
) -> Operation:
    """The table of a host: a program that asks models in this process.

    Args:
        name: of the host.
        request: its leaves; its messages are the list `messages`.
        answer: the leaves of a message of an answer.
        message: those of a message of a request.
        role: the field of a message that says whose it is.
    """

    def messages(body: Body) -> "Iterator[tuple[str, Path]]":
        for i, own in enumerate(body["messages"]):
            yield str(own[role]), ("messages", i)

    def error(refused: RequestError) -> Body:
        return {"error": refused.said}

    asked: Body = {"request": request, "message": message, "messages": messages}
    return Operation(name=name, path="", answer=answer, error=error, **asked)


def plain(settings: Body) -> tuple[Body | None, Body]:
    """The settings of a request that are plain data, None for none; and those that pass: classes, functions, numbers.

    Raises:
        InputError: a setting is something else, or has it inside.
    """
    passed = {name: value for name, value in settings.items() if _is_of_program(value)}
    data = {name: value for name, value in settings.items() if name not in passed}
    if wrong := [name for name, value in data.items() if not _is_json(value)]:
        raise InputError(
            f"the setting {quote(wrong[0])} of a request is neither plain data nor a class, a function or a number, so "
            "that it cannot be protected: leave it out, or set it on the inner model"
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


UNNAMED = "no name"
"""The account of conversations that nobody names: they are told apart by their messages."""


class ChatGuard:
    """Protects requests to language models in this process, and restores their answers.

    Each message of a conversation is released once, and sent again as it was with every further request, and so are
    answers that come back: a retry, or the next turn, draws and spends nothing anew. A copy is the same guard, since it
    would not know what was hidden; a pickle has the options only, and begins with an empty memory, or the store that
    its URL names. It may be used from several threads.

    Args:
        protector: a `Protector`, a `Privatizer`, or the name of a profile.
        store: where it is kept what became of messages: a URL, or a `SessionStore`. "memory:" forgets what was not used
            for a day.
        media: images, audio and files: "refuse" the request, or "pass" them as they are.
        unknown: what no table of the host's messages names: "refuse" the request, or "drop" it.
        schemas: what programs say about their tools: "protect" hides identifiers in it, "pass" sends it as it is.

    Raises:
        ConfigError: options are wrong. StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        protector: Protector | Privatizer | str = "prompt",
        *,
        store: str | SessionStore = "memory:",
        media: Literal["refuse", "pass"] = "refuse",
        unknown: Literal["refuse", "drop"] = "refuse",
        schemas: Literal["protect", "pass"] = "protect",
    ) -> None:
        self._arguments = protector, store, media, unknown, schemas
        if isinstance(protector, str):
            protector = Privatizer.from_profile(protector)
        privatizer = protector.privatizer if isinstance(protector, Protector) else protector
        if not isinstance(privatizer, Privatizer):
            raise ConfigError(
                f"give a Protector, a Privatizer or the name of a profile, not {type(privatizer).__name__}"
            )
        if privatizer.words.lasting:
            raise ConfigError(
                "words.lasting is for sessions that are named, and these are conversations: leave it out"
            )
        self._policy = Policy(media=media, unknown=unknown, schemas=schemas)
        self._store = SessionStore(store) if isinstance(store, str) else store
        self._privatizer, self._heads = privatizer, Heads()
        self._releasing, self._basis = Releasing.of(privatizer), basis_of(privatizer, self._store)

    def __repr__(self) -> str:
        return f"ChatGuard({self._privatizer!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        protector, store, *policy = self._arguments
        return _again, (protector, _url(store), *policy)

    def options(self) -> Body:
        """What another guard of the same kind is made of, as plain data, for hosts that write their components down.

        Raises:
            ConfigError: it was made from objects: give the name of a profile, and the URL of a store.
        """
        protector, store, media, unknown, schemas = self._arguments
        if not isinstance(protector, str):
            raise ConfigError(
                "only a guard of a profile can be written down: give the profile's name"
            )
        written = {"protector": protector, "store": _url(store)}
        return written | {"media": media, "unknown": unknown, "schemas": schemas}

    def begin(
        self, operation: Operation, body: Body, conversation: str | None = None
    ) -> "GuardedRequest":
        """Releases the texts of a request.

        Args:
            operation: the table of its leaves, and where its messages are.
            body: the request, as plain JSON.
            conversation: its name; conversations of different names share nothing. Without one they are told apart by
                their messages.

        Raises:
            InputError: it holds what cannot be protected. LimitReached: it would spend more than it may.
            TextveilError: it could not be protected.
        """
        with _refused():
            account = UNNAMED if conversation is None else f"conversation {conversation}"
            named = partial(self._pseudonym, account)
            asked = Asked(operation, body, self._policy, named)
            links = self._store.links(account)
            chain = MessageChain(
                links, account, self._basis, asked.messages, asked.besides, heads=self._heads
            )
            chain.release(self._releasing)
            texts = [link.released for link in chain.links]
            sent = asked.released(texts, chain.as_came(asked.signed))
        return GuardedRequest(operation, body, sent, chain)

    async def abegin(
        self, operation: Operation, body: Body, conversation: str | None = None
    ) -> "GuardedRequest":
        """The same in a thread; see `Privatizer.aprivatize` for what cancelling means."""
        return await asyncio.to_thread(self.begin, operation, body, conversation)

    def _pseudonym(self, account: str, name: str) -> str:
        return f"user-{self._store.pseudonym(f'{account}{chr(0)}{name}'.encode())}"


class GuardedRequest:
    """A request whose texts were released, and what restores its answer. Secret, but for `sent` and `statement`.

    Attributes:
        sent: the request as it may be sent.
        statement: the largest bound per word, over all messages, as plain data; and how many are new, drawn, repeated.
    """

    def __init__(self, operation: Operation, body: Body, sent: Body, chain: MessageChain) -> None:
        self._operation, self._chain = operation, chain
        self.sent = sent
        promise = largest([link.promise for link in chain.links if link.promise is not None])
        self.statement = promise | chain.counts
        self.restoring = Restoring(
            chain.session, as_json=operation.as_json(body), asked=(sent, body)
        )

    def __repr__(self) -> str:
        return f"GuardedRequest({len(self._chain.links)} messages)"

    def restored(self, came: Any, rule: LeafRule | None = None) -> Any:
        """A whole answer, or a part of one, with the originals put back.

        Args:
            came: as plain JSON.
            rule: its table; None for that of the operation.
        """
        return self.restoring.whole(came, self._operation.answer if rule is None else rule)

    def piece(
        self, came: Any, rule: LeafRule, place: Callable[[Path], Hashable]
    ) -> tuple[Any, dict[Hashable, Path]]:
        """What is certain of the texts in a piece of a streamed answer.

        Args:
            came: the piece, as plain JSON.
            rule: its table.
            place: says of a path in the piece which text of the answer it goes on with.

        Returns:
            The piece with what is certain, and where it had texts.
        """
        places: dict[Hashable, Path] = {}

        def text(path: Path, own: str, act: Act) -> str:
            key = place(path)
            places[key] = path
            return self.restoring.piece(key, own, act)

        return self.restoring.whole(came, rule, text), places

    def rest(self, key: Hashable) -> str:
        """What was held back of a text of a streamed answer, at its end."""
        return self.restoring.rest(key)

    def answered(self, pairs: Iterable[tuple[Body, Body]]) -> None:
        """Know messages of the answer, each as it came and as it was restored: they are sent on as they came."""
        remember(self._chain, self._operation, pairs)

    async def aanswered(self, pairs: "Iterable[tuple[Body, Body]]") -> None:
        """The same in a thread."""
        await asyncio.to_thread(self.answered, list(pairs))


@contextmanager
def _refused() -> "Iterator[None]":
    """Errors of requests as errors of a library, which quote no text."""
    try:
        yield
        return
    except RequestError as error:
        said = error.message
    except RecursionError:
        said = "JSON in the request is nested too deeply"
    raise InputError(said)


def _url(store: str | SessionStore) -> str:
    if not isinstance(store, str):
        raise ConfigError(
            "a guard goes to another process or file only where its store is given as a URL"
        )
    if urlsplit(store).password:
        raise ConfigError(
            "a guard with a password in the URL of its store is not written down: keep it elsewhere"
        )
    return store


def _again(protector: Any, store: str, media: Any, unknown: Any, schemas: Any) -> ChatGuard:
    return ChatGuard(protector, store=store, media=media, unknown=unknown, schemas=schemas)
