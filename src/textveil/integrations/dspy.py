"""DSPy: a language model that sees released text only.

And the adapter that puts it into programs.

In: messages of an adapter, demonstrations, tools. Out: outputs and tool calls with the originals.
Not here: how a request is released (`gateway.inprocess`), and what becomes of its leaves
(`gateway.protocols.chat`).
"""

import asyncio
import json
from typing import Any, NoReturn

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, InputError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.inprocess import build_operation, split_settings
from textveil.gateway.protocols.chat import ANSWER_MESSAGE, MESSAGE
from textveil.gateway.protocols.field_rules import Act, any_value, array, record
from textveil.integrations import get_conversation

with explain_missing():
    from dspy import Adapter, BaseLM, ChatAdapter
    from dspy.clients._deprecation import adapter_message_call

__all__ = ["ProtectedLM", "TextveilAdapter"]

JsonObject = dict[str, Any]

DSPY = build_operation(
    "dspy",
    request=record(messages=array(MESSAGE), settings=any_value(Act.SCHEMA)),
    answer=ANSWER_MESSAGE,
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
        request, model_messages, options = self._protect_request(prompt, messages, kwargs)
        with adapter_message_call(self.inner, model_messages):
            outputs = self.inner(messages=model_messages, **options)
        return _restore(request, outputs)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> list[Any]:
        """Returns the restored outputs, in an event loop."""
        request, model_messages, options = await asyncio.to_thread(
            self._protect_request, prompt, messages, kwargs
        )
        with adapter_message_call(self.inner, model_messages):
            outputs = await self.inner.acall(messages=model_messages, **options)
        return await asyncio.to_thread(_restore, request, outputs)

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
            "a program is saved without a ProtectedLM: set it with dspy.configure(lm=...), not "
            "for one predictor"
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

    def _protect_request(
        self, prompt: Any, messages: Any, kwargs: JsonObject
    ) -> tuple[GuardedRequest, list[JsonObject], JsonObject]:
        """Begins a request, and returns it with released messages and settings."""
        if messages is None:
            if not isinstance(prompt, str):
                raise InputError("give a prompt as text, or messages as dictionaries")
            messages = [{"role": "user", "content": prompt}]
        if not all(
            isinstance(message, dict) and isinstance(message.get("role"), str)
            for message in messages
        ):
            raise InputError("messages must be dictionaries with a role")
        settings, passed = split_settings(kwargs)
        body = {"messages": list(messages), "settings": settings}
        request = self._guard.protect(DSPY, body, get_conversation())
        return (
            request,
            request.released_body["messages"],
            {**passed, **(request.released_body.get("settings") or {})},
        )


def _restore(request: GuardedRequest, outputs: Any) -> list[Any]:
    """Restores the outputs, and keeps what became of them."""
    if not isinstance(outputs, list):
        raise InputError("the inner model must give a list of outputs")
    result = [_restore_output(request, output) for output in outputs]
    request.remember_answer(
        [
            (_build_message(output), _build_message(new))
            for output, new in zip(outputs, result, strict=True)
        ]
    )
    return result


def _restore_output(request: GuardedRequest, output: Any) -> Any:
    if isinstance(output, str):
        return _restore_text(request, output)
    if not isinstance(output, dict):
        return output
    result = dict(output)
    result.pop("logprobs", None)
    for name, value in result.items():
        if isinstance(value, str):
            result[name] = _restore_text(request, value)
        elif name == "tool_calls" and value:
            calls = [call if isinstance(call, dict) else call.model_dump() for call in value]
            result[name] = request.restore({"tool_calls": calls})["tool_calls"]
    return result


def _restore_text(request: GuardedRequest, text: str) -> str:
    """Restores a text; originals in JSON are escaped."""
    try:
        is_json = isinstance(json.loads(text), dict | list)
    except ValueError:
        is_json = False
    return request.restorer.restore_text(text, Act.ARGUMENTS if is_json else Act.PROTECT)


def _build_message(output: Any) -> JsonObject:
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
                "the inner adapter holds a model that would see originals: give it a ProtectedLM "
                "instead"
            )
        super().__init__(callbacks=self._inner.callbacks)

    def __call__(
        self,
        lm: BaseLM,
        lm_kwargs: JsonObject,
        signature: Any,
        demos: list[JsonObject],
        inputs: JsonObject,
    ) -> Any:
        """Calls the inner adapter with a protected model."""
        return self._inner(self._protect(lm), lm_kwargs, signature, demos, inputs)

    async def acall(
        self,
        lm: BaseLM,
        lm_kwargs: JsonObject,
        signature: Any,
        demos: list[JsonObject],
        inputs: JsonObject,
    ) -> Any:
        """Calls the inner adapter with a protected model, asynchronously."""
        return await self._inner.acall(self._protect(lm), lm_kwargs, signature, demos, inputs)

    def format(self, signature: Any, demos: list[JsonObject], inputs: JsonObject) -> Any:
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
    parts = list(vars(adapter).values())
    return any(
        _has_unprotected(part)
        if isinstance(part, Adapter)
        else isinstance(part, BaseLM) and not isinstance(part, ProtectedLM)
        for part in parts
    )
