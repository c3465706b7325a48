"""DSPy: a language model that sees released text only.

And the adapter that puts it into programs.

In: messages of an adapter, demonstrations, tools. Out: outputs and tool calls with the originals.
Not here: how a request is released (`gateway.inprocess`), and what becomes of its leaves
(`gateway.protocols.chat`).
"""

import asyncio
import json
from typing import Any, NoReturn

from textveil.config.extras import needed
from textveil.errors import ConfigError, InputError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.inprocess import host, plain
from textveil.gateway.leaves import Act, each, record, whole
from textveil.gateway.protocols.chat import MESSAGE, SAID
from textveil.integrations import current

with needed():
    from dspy import Adapter, BaseLM, ChatAdapter
    from dspy.clients._deprecation import adapter_message_call

__all__ = ["ProtectedLM", "TextveilAdapter"]

Body = dict[str, Any]

DSPY = host(
    "dspy",
    request=record(messages=each(MESSAGE), settings=whole(Act.SCHEMA)),
    answer=SAID,
    message=MESSAGE,
)


class ProtectedLM(BaseLM):  # type: ignore[misc]
    """A language model that sees released text only.

    Its outputs come back with the originals.

    Args:
        inner: the model that is asked. Its history and DSPy's cache hold released text.
        guard: protects and restores; None for the profile "prompt".
    """

    def __init__(self, inner: BaseLM, guard: ChatGuard | None = None) -> None:
        if not isinstance(inner, BaseLM):
            raise ConfigError(f"give a language model of DSPy, not {type(inner).__name__}")
        super().__init__(inner.model, inner.model_type, cache=inner.cache)
        self.inner, self._guard, self.kwargs = inner, guard or ChatGuard(), dict(inner.kwargs)

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> list[Any]:
        """Returns the restored outputs for a prompt or messages."""
        begun, sent, options = self._begin(prompt, messages, kwargs)
        with adapter_message_call(self.inner, sent):
            came = self.inner(messages=sent, **options)
        return _restore(begun, came)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> list[Any]:
        """Returns the restored outputs, in an event loop."""
        begun, sent, options = await asyncio.to_thread(self._begin, prompt, messages, kwargs)
        with adapter_message_call(self.inner, sent):
            came = await self.inner.acall(messages=sent, **options)
        return await asyncio.to_thread(_restore, begun, came)

    def copy(self, **kwargs: Any) -> "ProtectedLM":
        """Returns a protected copy of the inner model.

        It has the same guard.
        """
        return ProtectedLM(self.inner.copy(**kwargs), self._guard)

    def dump_state(self) -> NoReturn:
        """Refuses to save the model.

        A program that is loaded again would ask a model that is not protected.
        """
        raise ConfigError(
            "a program is saved without a ProtectedLM: set it with dspy.configure(lm=...), not for one predictor"
        )

    @property
    def supports_function_calling(self) -> bool:
        """The inner model's flag, as are those that follow."""
        return bool(self.inner.supports_function_calling)

    @property
    def supports_reasoning(self) -> bool:
        """See `supports_function_calling`."""
        return bool(self.inner.supports_reasoning)

    @property
    def supports_response_schema(self) -> bool:
        """See `supports_function_calling`."""
        return bool(self.inner.supports_response_schema)

    @property
    def supported_params(self) -> set[str]:
        """See `supports_function_calling`."""
        return set(self.inner.supported_params)

    def __repr__(self) -> str:
        return f"ProtectedLM({self.model!r}, {self._guard!r})"

    def _begin(
        self, prompt: Any, messages: Any, kwargs: Body
    ) -> tuple[GuardedRequest, list[Body], Body]:
        """Begins a request, and returns it with released messages and settings."""
        if messages is None:
            if not isinstance(prompt, str):
                raise InputError("give a prompt as text, or messages as dictionaries")
            messages = [{"role": "user", "content": prompt}]
        if not all(isinstance(own, dict) and isinstance(own.get("role"), str) for own in messages):
            raise InputError("messages must be dictionaries with a role")
        settings, passed = plain(kwargs)
        body = {"messages": list(messages), "settings": settings}
        begun = self._guard.begin(DSPY, body, current())
        return begun, begun.sent["messages"], {**passed, **(begun.sent.get("settings") or {})}


def _restore(begun: GuardedRequest, came: Any) -> list[Any]:
    """Restores the outputs, and keeps what became of them."""
    if not isinstance(came, list):
        raise InputError("the inner model must give a list of outputs")
    result = [_restore_output(begun, own) for own in came]
    begun.answered(
        [(_to_message(own), _to_message(new)) for own, new in zip(came, result, strict=True)]
    )
    return result


def _restore_output(begun: GuardedRequest, came: Any) -> Any:
    if isinstance(came, str):
        return _restore_text(begun, came)
    if not isinstance(came, dict):
        return came
    result = dict(came)
    result.pop("logprobs", None)
    for name, value in result.items():
        if isinstance(value, str):
            result[name] = _restore_text(begun, value)
        elif name == "tool_calls" and value:
            calls = [own if isinstance(own, dict) else own.model_dump() for own in value]
            result[name] = begun.restored({"tool_calls": calls})["tool_calls"]
    return result


def _restore_text(begun: GuardedRequest, came: str) -> str:
    """Restores a text; originals in JSON are escaped."""
    try:
        is_json = isinstance(json.loads(came), dict | list)
    except ValueError:
        is_json = False
    return begun.restoring.text(came, Act.ARGUMENTS if is_json else Act.PROTECT)


def _to_message(output: Any) -> Body:
    """Converts an output to a message."""
    text = (
        output
        if isinstance(output, str)
        else output.get("text")
        if isinstance(output, dict)
        else None
    )
    return {"role": "assistant", **({"content": text} if isinstance(text, str) else {})}


class TextveilAdapter(Adapter):  # type: ignore[misc]
    """An adapter whose programs ask a `ProtectedLM`.

    In the place of their model.

    Args:
        inner: the adapter that writes messages and reads outputs; None for `dspy.ChatAdapter`.
        guard: protects and restores; None for the profile "prompt".

    Raises:
        ConfigError: the inner adapter holds a model that is not protected, such as
            `dspy.TwoStepAdapter`.
    """

    def __init__(self, inner: Adapter | None = None, guard: ChatGuard | None = None) -> None:
        self._inner, self._guard = inner or ChatAdapter(), guard or ChatGuard()
        if _has_unprotected(self._inner):
            raise ConfigError(
                "the inner adapter holds a model that would see originals: give it a ProtectedLM instead"
            )
        super().__init__(callbacks=self._inner.callbacks)

    def __call__(
        self, lm: BaseLM, lm_kwargs: Body, signature: Any, demos: list[Body], inputs: Body
    ) -> Any:
        """Calls the inner adapter with a protected model."""
        return self._inner(self._protect(lm), lm_kwargs, signature, demos, inputs)

    async def acall(
        self, lm: BaseLM, lm_kwargs: Body, signature: Any, demos: list[Body], inputs: Body
    ) -> Any:
        """Calls the inner adapter with a protected model, asynchronously."""
        return await self._inner.acall(self._protect(lm), lm_kwargs, signature, demos, inputs)

    def format(self, signature: Any, demos: list[Body], inputs: Body) -> Any:
        """Returns the inner adapter's messages, with the originals.

        Whoever asks for them sends them himself.
        """
        return self._inner.format(signature, demos, inputs)

    def parse(self, signature: Any, completion: str) -> Any:
        """Parses a completion with the inner adapter."""
        return self._inner.parse(signature, completion)

    def _protect(self, lm: BaseLM) -> ProtectedLM:
        return lm if isinstance(lm, ProtectedLM) else ProtectedLM(lm, self._guard)


def _has_unprotected(adapter: Adapter) -> bool:
    """Says whether an adapter holds a model without protection.

    Itself, or in an adapter inside it.
    """
    held = list(vars(adapter).values())
    return any(
        _has_unprotected(each)
        if isinstance(each, Adapter)
        else isinstance(each, BaseLM) and not isinstance(each, ProtectedLM)
        for each in held
    )
