"""LiteLLM: a guardrail in the process of its proxy, for chat completions.

In: requests of LiteLLM's clients, answers of models. Out: the same, released and restored.
Not here: a gateway beside LiteLLM, which protects its other APIs too (`gateway.protocols.litellm`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from typing import Any, ClassVar, Literal

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, TextveilError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.protocols import Event
from textveil.gateway.protocols.chat import CHAT, ChatChunks
from textveil.randomness import make_unique_name

with explain_missing():
    from litellm.exceptions import GuardrailRaisedException
    from litellm.integrations.custom_guardrail import CustomGuardrail
    from litellm.types.guardrails import GuardrailEventHooks
    from litellm.types.utils import ModelResponse, ModelResponseStream

__all__ = ["TextveilGuardrail"]

JsonObject = dict[str, Any]

MAX_REQUESTS = 10_000
"""The most requests that wait for their answers.

The oldest are forgotten, and their answers keep placeholders.
"""

_PROXY_NAMES = (
    "allowed_openai_params cache caching drop_params fallbacks guardrails max_retries metadata "
    "mock_response"
)
PROXY_FIELDS = frozenset(f"{_PROXY_NAMES} num_retries request_timeout tags timeout".split(" "))
"""Fields of a client's request that are for LiteLLM itself."""

REQUEST_FIELD = "textveil_request"


class TextveilGuardrail(CustomGuardrail):
    """Protects chat completions, whole and streamed.

    It refuses all other kinds of requests, and then nothing is sent.

    Args:
        profile: how texts are protected.
        store: the URL of the store in which it is kept what became of messages.
        media: images, audio and files: "refuse" the request, or "pass" them.
        unknown: fields that nobody knows: "protect" them like text, "refuse" the request, or "drop"
            them.
        schemas: what programs say about their tools: "identifiers" or "pass".
        **options: of LiteLLM's guardrails, but for those under which it would keep what came:
            `run_in_parallel`, `scan_raw_request`, `stream_scope`, and any mode but before and after
            a call.

    Raises:
        TextveilError: an option is wrong. LiteLLM does not start then.
    """

    use_native_lifecycle_hooks: ClassVar[bool] = True

    def __init__(
        self,
        guardrail_name: str = "textveil",
        profile: str = "prompt",
        store: str = "memory:",
        media: Literal["refuse", "pass"] = "refuse",
        unknown: Literal["protect", "refuse", "drop"] = "protect",
        schemas: Literal["identifiers", "pass"] = "identifiers",
        **options: Any,
    ) -> None:
        self._requests: OrderedDict[str, GuardedRequest] = OrderedDict()
        options.setdefault("supported_event_hooks", self.get_supported_event_hooks())
        try:
            _check_options(options)
            self._guard = ChatGuard(
                profile, store=store, media=media, unknown=unknown, schemas=schemas
            )
            super().__init__(guardrail_name=guardrail_name, **options)
        except (
            ValueError,
            TypeError,
        ) as error:  # after which LiteLLM would start without this guardrail
            failure = TextveilError(
                str(error) if isinstance(error, TextveilError) else "options of LiteLLM are wrong"
            )
        else:
            return
        raise failure

    def __repr__(self) -> str:
        return f"TextveilGuardrail({self._guard!r})"

    @classmethod
    def get_supported_event_hooks(cls) -> list[GuardrailEventHooks]:
        """Returns the hooks before and after a call.

        The guardrail needs both.
        """
        return [GuardrailEventHooks.pre_call, GuardrailEventHooks.post_call]

    def should_run_guardrail(self, data: JsonObject, event_type: GuardrailEventHooks) -> bool:
        """Says whether the guardrail runs.

        Where it is on by default no request, key or team switches it off.
        """
        if self.default_on is True:
            return event_type in self.get_supported_event_hooks()
        return bool(super().should_run_guardrail(data, event_type))

    def stream_scope_allows(self, data: object, event_type: GuardrailEventHooks) -> bool:
        """Allows streams and whole answers alike."""
        return True

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: JsonObject, call_type: str
    ) -> JsonObject:
        """Returns the request as the model may see it."""
        if (
            self.should_run_guardrail(data=data, event_type=GuardrailEventHooks.pre_call)
            is not True
        ):
            return data
        if call_type not in ("completion", "acompletion"):
            raise self._build_refusal(
                f"this guardrail protects only chat completions, not {call_type}: use a textveil "
                "gateway"
            )
        if not _has_names_only(data.get("fallbacks")):
            raise self._build_refusal(
                "fallbacks may only name models: other values in fallbacks are not protected"
            )
        body = _extract_request(data)
        try:
            request = await self._guard.aprotect(
                CHAT, body, _build_conversation_name(user_api_key_dict)
            )
        except TextveilError as error:
            failure = str(error)
        else:
            new_data = {
                name: value for name, value in data.items() if name not in body
            } | request.released_body
            name = self._add_request(request)
            new_data["litellm_metadata"] = {
                **(data.get("litellm_metadata") or {}),
                REQUEST_FIELD: name,
            }
            return new_data
        raise self._build_refusal(failure)

    def _add_request(self, request: GuardedRequest) -> str:
        """Stores a request, and returns a name for its answer.

        The oldest requests are forgotten.
        """
        self._requests[name := make_unique_name()] = request
        while len(self._requests) > MAX_REQUESTS:
            self._requests.popitem(last=False)
        return name

    async def async_post_call_failure_hook(
        self, request_data: JsonObject, *args: Any, **kwargs: Any
    ) -> None:
        """Forgets a request without an answer."""
        self._take_request(request_data)

    async def async_post_call_success_hook(
        self, data: JsonObject, user_api_key_dict: Any, response: Any
    ) -> Any:
        """Restores the originals in a whole answer."""
        request = self._take_request(data)
        if request is None or not isinstance(response, ModelResponse):
            return response
        answer = _dump_model(response)
        restored_answer = request.restore(answer)
        pairs = zip(
            CHAT.list_answer_messages(answer),
            CHAT.list_answer_messages(restored_answer),
            strict=True,
        )
        await request.aremember_answer(pairs)
        restored = ModelResponse(**restored_answer)
        response.choices = restored.choices
        return response

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: JsonObject
    ) -> AsyncGenerator[Any]:
        """Yields the restored pieces of an answer.

        Each with the text that is certain so far.
        """
        request = self._take_request(request_data)
        if request is None:
            async for chunk in response:
                yield chunk
            return
        pieces = ChatChunks(request.restorer)
        async for chunk in response:
            if not isinstance(chunk, ModelResponseStream):
                yield chunk
                continue
            for event in pieces.feed(Event("", _dump_model(chunk))):
                yield ModelResponseStream(**event.data)
        for event in pieces.close():
            if isinstance(event.data, dict):
                yield ModelResponseStream(**event.data)
        await asyncio.to_thread(request.remember_answer, pieces.messages)

    def _take_request(self, data: JsonObject) -> GuardedRequest | None:
        """Returns and forgets the request that restores an answer."""
        name = (data.get("litellm_metadata") or {}).get(REQUEST_FIELD)
        return self._requests.pop(name, None) if isinstance(name, str) else None

    def _build_refusal(self, reason: str) -> Exception:
        result: Exception = GuardrailRaisedException(
            guardrail_name=self.guardrail_name, message=f"textveil: {reason}"
        )
        return result


def _check_options(options: JsonObject) -> None:
    """Refuses options under which LiteLLM would send the original request.

    It would throw the released one away.
    """
    for name in ("run_in_parallel", "scan_raw_request", "stream_scope"):
        if options.get(name):
            raise ConfigError(f"with {name}, LiteLLM would send requests unprotected: leave it out")
    mode = options.get("event_hook")
    hooks = mode if isinstance(mode, list) else [mode]
    if mode is not None and {getattr(hook, "value", hook) for hook in hooks} != {
        "pre_call",
        "post_call",
    }:
        raise ConfigError("mode must be [pre_call, post_call]")


def _dump_model(answer: Any) -> JsonObject:
    """Converts an answer, or a piece of one, to JSON data."""
    result: JsonObject = answer.model_dump(exclude_none=True)
    return result


def _extract_request(data: JsonObject) -> JsonObject:
    """Extracts the client's request from a call's data.

    The rest is the proxy's own.
    """
    body = (data.get("proxy_server_request") or {}).get("body") or {}
    # With the client's own fields, so that those which no table knows do not pass unread.
    names = {*(CHAT.request.fields or ()), *body} - PROXY_FIELDS
    return {name: data[name] for name in names if name in data}


def _build_conversation_name(key: Any) -> str:
    """Returns a name for the requester's conversation.

    By what the proxy knows of whoever asks.
    """
    parts = (getattr(key, name, None) for name in ("api_key", "user_id", "end_user_id"))
    return " ".join(str(part or "-") for part in parts)


def _has_names_only(fallbacks: Any) -> bool:
    """Says whether fallbacks are names of models only.

    They could be messages, too.
    """
    if isinstance(fallbacks, dict):
        return all(
            isinstance(entry, list) and all(isinstance(name, str) for name in entry)
            for entry in fallbacks.values()
        )
    if isinstance(fallbacks, list):
        return all(
            isinstance(entry, str) or (isinstance(entry, dict) and _has_names_only(entry))
            for entry in fallbacks
        )
    return fallbacks is None
