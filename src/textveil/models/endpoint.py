"""Language models behind an endpoint that speaks the chat completions of OpenAI, on this machine or elsewhere.

In: an address, a model's name, prompts or a conversation. Out: one answer per prompt, in order, or one as it comes.
Not here: what a prompt says, and what is made of the answers; that is whoever asks.
"""

import json
import logging
import os
import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from textveil.config import options
from textveil.errors import ConfigError, EndpointError, shown

if TYPE_CHECKING:
    from openai import OpenAI

KEY = "TEXTVEIL_LLM_KEY"
"""The environment variable with the key."""

NO_KEY = "none"
"""Sent where there is no key: servers on one's own machine ask for none, and the client does not go without."""

HEADERS = frozenset({"host", "connection", "accept", "accept-encoding", "content-type", "content-length"})
"""What a request says besides its key and its body."""

NO_COMPLETION = "must answer with a completion as JSON, and answered with something else"
NO_TEXT = "must answer with text, and answered without"
BROKEN_OFF = "must send its answer to the end, and the answer broke off"

LIBRARIES = frozenset({"openai", "httpx", "httpx2", "httpcore", "httpcore2"})


def _address(url: str) -> str:
    """The url, if it is one and holds no secret; a message does not repeat it, because it may."""
    try:
        parts = urlsplit(url)
        whole = bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, or half an IPv6 address
        whole = False
        parts = urlsplit("")
    if "@" in parts.netloc:
        raise ConfigError(f"endpoint.url must not hold a name or password; {KEY} holds the key")
    if not (whole and re.fullmatch(r"https?://[!-~]+", url, re.IGNORECASE) and not re.search(r"[?#\\]", url)):
        raise ConfigError("endpoint.url must read http://HOST:PORT/PATH or https://HOST/PATH, such as .../v1")
    return url


def _secret(key: object) -> object:
    """The key, if a header can hold it; a message does not repeat it."""
    if key is not None and not (isinstance(key, str) and re.fullmatch(r"[!-~]+", key)):
        raise ConfigError(f"endpoint.key and {KEY} must be ASCII without spaces")
    return key


Address = Annotated[str, AfterValidator(_address)]
"""Where an API begins: of the scheme http or https, without name, password and query."""

Key = Annotated[str | None, BeforeValidator(_secret)]
"""A key, or none; give its field `repr=False`."""


@options("endpoint.")
class Endpoint:
    """A language model that is asked over HTTP.

    Nothing but the prompt, the names of model and options, and the key goes out, and only to the host of `url`: the
    client's own environment variables (OPENAI_API_KEY, OPENAI_BASE_URL and others) are not used, redirects are not
    followed, and proxies of the environment are used under https only, where they cannot read along.

    Attributes:
        url: where the API begins, such as http://127.0.0.1:8080/v1. Without name, password and query.
        model: the model's name at the endpoint.
        key: what the endpoint asks for; else the environment variable TEXTVEIL_LLM_KEY, read when asking.
        timeout: seconds that an endpoint may be silent, above 0.
        retries: how often a prompt is sent again after the status 408, 409, 429 or 5xx, a lost connection or a
            time-out; waits in between grow from half a second to 8, or are what the endpoint asks for.
        temperature: from 0, the likeliest answer, to 2; None: what the endpoint takes by itself.
        workers: prompts under way at once.
    """

    url: Address
    model: Annotated[str, Field(min_length=1)]
    key: Key = Field(default=None, repr=False)
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    retries: Annotated[int, Field(ge=0)] = 2
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    workers: Annotated[int, Field(ge=1)] = 4

    def ask(
        self,
        prompts: Sequence[tuple[str, str]],
        *,
        report: Callable[[str, int, int], None] | None = None,
        max_tokens: int | None = None,
    ) -> list[str]:
        """The answer to every prompt, in order; all or none.

        Args:
            prompts: pairs (what the system says, what the user says).
            report: is told of progress.
            max_tokens: how long an answer may get; without it, the endpoint decides.

        Raises:
            EndpointError: the endpoint cannot be reached, refused, or answered without text. Prompts that are under
                way are waited for, others are not sent. No message, and nothing chained to it, holds a prompt, an
                answer or the key.
            ConfigError: the key in the environment is none.
        """
        answers: list[str] = []
        with (
            self._connect() as client,
            ThreadPoolExecutor(self.workers, thread_name_prefix="textveil-endpoint") as pool,
        ):
            for answer in pool.map(partial(self._answer, client, max_tokens), prompts):
                answers.append(answer)
                if report is not None:
                    report("asking", len(answers), len(prompts))
        return answers

    def stream(self, messages: Sequence[tuple[str, str]]) -> Generator[str]:
        """The answer to a conversation, piece by piece as it comes.

        Nothing is sent before the first piece is asked for, and after it nothing is sent again. Whoever leaves before
        the end closes the connection.

        Args:
            messages: pairs (role, what it says), the newest last; roles are "system", "user" and "assistant".

        Yields:
            pieces that are not empty; together they are the answer.

        Raises:
            EndpointError: as `ask` says, or the answer broke off.
            ConfigError: the key in the environment is none.
        """
        from openai import omit

        begun = ended = False
        with self._connect() as client:
            try:
                with _unlogged():
                    chunks = client.chat.completions.create(
                        model=self.model,
                        messages=cast(Any, [{"role": role, "content": content} for role, content in messages]),
                        temperature=omit if self.temperature is None else self.temperature,
                        stream=True,
                    )
                with chunks:
                    for chunk in chunks:
                        piece, last = _piece(chunk)
                        ended |= last
                        if piece:
                            begun = True
                            yield piece
                failure = BROKEN_OFF if begun else NO_TEXT
            except Exception as error:
                failure = BROKEN_OFF if begun else self._explain(error)
        if not (begun and ended):
            raise EndpointError(f"the endpoint {urlsplit(self.url).netloc} {failure}")  # out here, as in `_answer`

    def _connect(self) -> "OpenAI":
        import openai

        key = self.key or os.environ.get(KEY) or NO_KEY
        _secret(key)

        def strip(request: Any) -> None:
            """Takes away what the client adds of its own and from OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID and others."""
            for name in set(request.headers) - HEADERS:
                del request.headers[name]
            request.headers.update({"Authorization": f"Bearer {key}", "User-Agent": "textveil"})

        client = openai.OpenAI(
            base_url=self.url,
            api_key=key,
            timeout=self.timeout,
            max_retries=self.retries,
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False,
                trust_env=self.url.lower().startswith("https:"),
                event_hooks={"request": [strip]},
            ),
        )
        _mute()
        return client

    def _answer(self, client: "OpenAI", max_tokens: int | None, prompt: tuple[str, str]) -> str:
        from openai import omit
        from openai.types.chat import ChatCompletion

        try:
            system, user = prompt
            with _unlogged():
                completion: object = client.chat.completions.create(
                    model=self.model,
                    messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
                    temperature=omit if self.temperature is None else self.temperature,
                    max_tokens=omit if max_tokens is None else max_tokens,
                )
            if not isinstance(completion, ChatCompletion):  # the client hands on what it cannot parse
                failure = NO_COMPLETION
            elif text := _text(completion):
                return text
            else:
                failure = NO_TEXT
        except Exception as error:
            failure = self._explain(error)
        # Out here, because the client's errors hold the request and the answer.
        raise EndpointError(f"the endpoint {urlsplit(self.url).netloc} {failure}")

    def _explain(self, error: Exception) -> str:
        """What must hold of the endpoint and does not, from the kind of the error alone."""
        import openai

        match error:
            case openai.APITimeoutError():
                return f"must answer within {self.timeout:g} s, and did not"
            case openai.APIConnectionError():
                return "must be reachable, and is not"
            case openai.APIStatusError(status_code=401 | 403 as status):
                return f"must accept the key, and refused it with status {status}; {KEY} holds the key"
            case openai.APIStatusError(status_code=404):
                return f"must know the model {shown(self.model)}, and found nothing (status 404); is the url complete?"
            case openai.APIStatusError(status_code=429):
                return "must take as many requests, and refused with status 429; ask with fewer workers, or later"
            case openai.APIStatusError(status_code=status):
                return f"must answer with a completion, and answered with status {status}"
            case openai.APIError():  # an event of a stream
                return "must answer with a completion, and reported an error"
            case json.JSONDecodeError() | UnicodeDecodeError():
                return NO_COMPLETION
        return f"must be asked without a failure, and asking failed with {type(error).__name__}"


def _text(completion: Any) -> str | None:
    """The text of the first choice, if there is any: the client does not check the fields of what it parsed."""
    try:
        text = completion.choices[0].message.content
    except (AttributeError, LookupError, TypeError):
        return None
    return text if isinstance(text, str) else None


def _piece(chunk: Any) -> tuple[str, bool]:
    """The text that a chunk adds to the first choice, and whether it says that this choice is at its end."""
    try:
        choice = chunk.choices[0]
        text, last = choice.delta.content, choice.finish_reason is not None
    except (AttributeError, LookupError, TypeError):
        return "", False
    return text if isinstance(text, str) else "", last


def _mute() -> None:
    """Keeps the client's libraries from logging what they do within `_unlogged`."""
    for name in list(logging.Logger.manager.loggerDict):
        if name.partition(".")[0] in LIBRARIES:
            logging.getLogger(name).addFilter(_elsewhere)


_asking = threading.local()


@contextmanager
def _unlogged() -> Iterator[None]:
    """While this thread asks, the client's libraries log nothing: at the level debug some log the prompt."""
    _asking.now = True
    try:
        yield
    finally:
        _asking.now = False


def _elsewhere(record: logging.LogRecord) -> bool:
    return not getattr(_asking, "now", False)
