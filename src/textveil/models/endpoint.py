"""Language models behind an OpenAI-compatible chat completions endpoint.

Local or remote.

In: an address, a model's name, prompts or a conversation. Out: one answer per prompt, in order, or
a streamed one.
Not here: what a prompt says and what is done with the answers, which is up to the caller.
"""

import json
import logging
import os
import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from textveil.config import make_options
from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, EndpointError, quote_short
from textveil.models.answers import AnswerSource, ModelRequest

if TYPE_CHECKING:
    from openai import OpenAI

KEY_VARIABLE = "TEXTVEIL_LLM_KEY"
"""Environment variable for the key."""

NO_KEY = "none"
"""The key that is sent if there is none.

Local servers want none, but the client insists on one.
"""

ALLOWED_HEADERS = frozenset(
    {"host", "connection", "accept", "accept-encoding", "content-type", "content-length"}
)
"""The request headers that are kept; key and user agent are added."""

EXTRA_PATIENCE = 30.0
"""Seconds that another process may need beyond its own time limit before its answer is given up."""

NO_COMPLETION = "did not answer with a chat completion in JSON; check the url"
NO_TEXT = "answered without text"
BREAK_OFF = "broke off in the middle of its answer"

SILENCED_LIBRARIES = frozenset({"openai", "httpx", "httpx2", "httpcore", "httpcore2"})


def _check_address(url: str) -> str:
    """Returns the url, if it is valid and holds no secret.

    Messages do not repeat it, because it may hold one.
    """
    try:
        parts = urlsplit(url)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port, or half an IPv6 address
        is_complete = False
        parts = urlsplit("")
    if "@" in parts.netloc:
        raise ConfigError(
            f"endpoint.url must not hold a name or password; put the key in {KEY_VARIABLE}"
        )
    if not (
        is_complete
        and re.fullmatch(r"https?://[!-~]+", url, re.IGNORECASE)
        and not re.search(r"[?#\\]", url)
    ):
        raise ConfigError(
            "endpoint.url must have the form http://HOST:PORT/PATH or https://HOST/PATH, such as "
            ".../v1"
        )
    return url


def _check_key(key: object) -> object:
    """Returns the key, if it fits in a header.

    Messages do not repeat it.
    """
    if key is not None and not (isinstance(key, str) and re.fullmatch(r"[!-~]+", key)):
        raise ConfigError(f"the key (endpoint.key or {KEY_VARIABLE}) must be ASCII without spaces")
    return key


Address = Annotated[str, AfterValidator(_check_address)]
"""The base URL of an API.

http or https, without name, password and query.
"""

Key = Annotated[str | None, BeforeValidator(_check_key)]
"""A key, or None; give its field `repr=False`."""


@make_options("endpoint.")
class Endpoint:
    """A language model reached over HTTP.

    Only the prompt, the names of model and options, and the key are sent, and only to the host of
    `url`: the client's own environment variables (OPENAI_API_KEY, OPENAI_BASE_URL and others) are
    ignored, redirects are not followed, and proxies from the environment are used for https only,
    where they cannot read the traffic.

    Attributes:
        url: base URL of the API, such as http://127.0.0.1:8080/v1. Without name, password and
            query.
        model: the model's name at the endpoint.
        key: API key; default: the environment variable TEXTVEIL_LLM_KEY, read at each request.
        timeout: seconds to wait for data, above 0.
        retries: how often a request is repeated after status 408, 409, 429 or 5xx, a lost
            connection or a timeout; the waits grow from 0.5 to 8 s, or are what the endpoint asks
            for.
        temperature: from 0 (the most likely answer) to 2; None for the endpoint's default.
        workers: concurrent requests.
        identity: stands for the url where answers are kept; empty for the url itself. A model of a
            file has another port each time.
        local: whether the model runs on this machine: its requests are free of a run's limit.
        answers: keeps answers and counts requests; None to send each.
    """

    url: Address
    model: Annotated[str, Field(min_length=1)]
    key: Key = Field(default=None, repr=False)
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    retries: Annotated[int, Field(ge=0)] = 2
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    workers: Annotated[int, Field(ge=1)] = 4
    identity: str = ""
    local: bool = False
    answers: AnswerSource | None = Field(default=None, repr=False)

    def ask(
        self,
        prompts: Sequence[tuple[str, str]],
        *,
        report: Callable[[str, int, int], None] | None = None,
        max_tokens: int | None = None,
        attempt: int = 0,
    ) -> list[str]:
        """Returns the answers to all prompts, in order; all or none.

        Args:
            prompts: pairs (system message, user message); an empty system message is not sent.
            report: called with progress.
            max_tokens: largest length of an answer; None lets the endpoint decide.
            attempt: number of the attempt: a kept answer to another one is not taken.

        Raises:
            EndpointError: the endpoint cannot be reached, refused, or answered without text.
                Requests already sent are waited for, others are not sent. No message, and nothing
                chained to it, holds a prompt, an answer or the key.
            RequestLimitReached: `answers` counts no more requests.
            ConfigError: the key in the environment is not valid.
        """
        answers: list[str] = []
        with (
            ExitStack() as stack,
            ThreadPoolExecutor(self.workers, thread_name_prefix="textveil-endpoint") as pool,
        ):
            connect = cache(lambda: stack.enter_context(self._connect()))
            if self.answers is None:  # else perhaps nothing is sent
                connect()
            for answer in pool.map(
                partial(self._find_answer, connect, max_tokens, attempt), prompts
            ):
                answers.append(answer)
                if report is not None:
                    report("asking", len(answers), len(prompts))
        return answers

    def stream(self, messages: Sequence[tuple[str, str]]) -> Generator[str]:
        """Streams the answer to a conversation.

        Nothing is sent before the first piece is requested, and nothing is retried after it.
        Closing the generator early closes the connection.

        Args:
            messages: pairs (role, content), the newest last; roles are "system", "user" and
                "assistant".

        Yields:
            non-empty pieces; together they are the answer.

        Raises:
            EndpointError: as in `ask`, or the answer broke off.
            ConfigError: the key in the environment is not valid.
        """
        with explain_missing():
            from openai import omit

        has_text = has_ended = False
        with self._connect() as client:
            try:
                with _silence_logs():
                    chunks = client.chat.completions.create(
                        model=self.model,
                        messages=cast(
                            Any, [{"role": role, "content": content} for role, content in messages]
                        ),
                        temperature=omit if self.temperature is None else self.temperature,
                        stream=True,
                    )
                with chunks:
                    for chunk in chunks:
                        piece, last = _read_piece(chunk)
                        has_ended |= last
                        if piece:
                            has_text = True
                            yield piece
                failure = BREAK_OFF if has_text else NO_TEXT
            except Exception as error:
                failure = BREAK_OFF if has_text else self._explain(error)
        if not (has_text and has_ended):
            # out here as in `_answer`
            raise EndpointError(f"the endpoint {urlsplit(self.url).netloc} {failure}")

    def _connect(self) -> "OpenAI":
        with explain_missing():
            import openai

        key = self.key or os.environ.get(KEY_VARIABLE) or NO_KEY
        # A key from the environment has not been checked yet.
        _check_key(key)

        def remove_headers(request: Any) -> None:
            """Removes headers that the client adds by itself.

            It takes some from OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID and others.
            """
            for name in set(request.headers) - ALLOWED_HEADERS:
                del request.headers[name]
            request.headers.update({"Authorization": f"Bearer {key}", "User-Agent": "textveil"})

        client = openai.OpenAI(
            base_url=self.url,
            api_key=key,
            timeout=self.timeout,
            max_retries=self.retries,
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False,
                # without TLS a proxy of the environment could read the prompts
                trust_env=self.url.lower().startswith("https:"),
                event_hooks={"request": [remove_headers]},
            ),
        )
        _add_log_filter()
        return client

    def _find_answer(
        self,
        connect: Callable[[], "OpenAI"],
        max_tokens: int | None,
        attempt: int,
        prompt: tuple[str, str],
    ) -> str:
        """Takes a kept answer, or sends the prompt."""
        if self.answers is None:
            return self._answer(connect(), max_tokens, prompt)
        question = ModelRequest(
            endpoint=self.identity or self.url,
            model=self.model,
            system=prompt[0],
            user=prompt[1],
            temperature=self.temperature,
            max_tokens=max_tokens,
            attempt=attempt,
            local=self.local,
            patience=self.timeout * (self.retries + 1) + EXTRA_PATIENCE,
        )
        return self.answers.fetch(question, lambda: self._answer(connect(), max_tokens, prompt))

    def _answer(self, client: "OpenAI", max_tokens: int | None, prompt: tuple[str, str]) -> str:
        from openai import omit
        from openai.types.chat import ChatCompletion

        try:
            messages = [{"role": "system", "content": prompt[0]}] if prompt[0] else []
            messages.append({"role": "user", "content": prompt[1]})
            with _silence_logs():
                completion: object = client.chat.completions.create(
                    model=self.model,
                    messages=cast(Any, messages),
                    temperature=omit if self.temperature is None else self.temperature,
                    max_tokens=omit if max_tokens is None else max_tokens,
                )
            # the client passes on what it cannot parse
            if not isinstance(completion, ChatCompletion):
                failure = NO_COMPLETION
            elif text := _read_text(completion):
                return text
            else:
                failure = NO_TEXT
        except Exception as error:
            failure = self._explain(error)
        # Raised out here, because the client's errors hold the request and the answer.
        raise EndpointError(f"the endpoint {urlsplit(self.url).netloc} {failure}")

    def _explain(self, error: Exception) -> str:
        """Explains a failure from the type of the error alone."""
        import openai

        match error:
            case openai.APITimeoutError():
                return f"timed out after {self.timeout:g} s"
            case openai.APIConnectionError():
                return "cannot be reached; check the url and that the server runs"
            case openai.APIStatusError(status_code=401 | 403 as status):
                return f"refused the key (status {status}); put the right one in {KEY_VARIABLE}"
            case openai.APIStatusError(status_code=404):
                return (
                    f"has no model {quote_short(self.model)} (status 404); check the model's name "
                    "and the url"
                )
            case openai.APIStatusError(status_code=429):
                return "got too many requests (status 429); use fewer workers, or try later"
            case openai.APIStatusError(status_code=status):
                return f"answered with status {status} instead of a completion"
            case openai.APIError():  # an event of a stream
                return "reported an error instead of a completion"
            case json.JSONDecodeError() | UnicodeDecodeError():
                return NO_COMPLETION
        return f"could not be called ({type(error).__name__})"


def _read_text(completion: Any) -> str | None:
    """Returns the text of the first choice, if any.

    The client does not validate the fields it parsed.
    """
    try:
        text = completion.choices[0].message.content
    except (AttributeError, LookupError, TypeError):
        return None
    return text if isinstance(text, str) else None


def _read_piece(chunk: Any) -> tuple[str, bool]:
    """Returns the text that a chunk adds, and the end flag.

    Of the first choice.
    """
    try:
        choice = chunk.choices[0]
        text, last = choice.delta.content, choice.finish_reason is not None
    except (AttributeError, LookupError, TypeError):
        return "", False
    return text if isinstance(text, str) else "", last


def _add_log_filter() -> None:
    """Keeps the client's libraries from logging within `_silence_logs`."""
    # A logger's filter does not see what its children log, so each gets the filter.
    for name in list(logging.Logger.manager.loggerDict):
        if name.partition(".")[0] in SILENCED_LIBRARIES:
            logging.getLogger(name).addFilter(_is_log_allowed)


_request_state = threading.local()


@contextmanager
def _silence_logs() -> Iterator[None]:
    """Silences the client's libraries in this thread.

    At level debug, some of them log the prompt.
    """
    _request_state.now = True
    try:
        yield
    finally:
        _request_state.now = False


def _is_log_allowed(record: logging.LogRecord) -> bool:
    return not getattr(_request_state, "now", False)
