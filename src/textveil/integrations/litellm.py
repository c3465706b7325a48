"""LiteLLM: a guardrail in the process of its proxy, for chat completions.

In: requests of LiteLLM's clients, answers of models. Out: the same, released and restored.
Not here: a gateway beside LiteLLM, which protects its other APIs too (`gateway.protocols.litellm`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from typing import Any, ClassVar, Literal

from textveil.config.extras import needed
from textveil.errors import ConfigError, TextveilError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.protocols import Event
from textveil.gateway.protocols.chat import CHAT, ChatChunks
from textveil.randomness import fresh_name

with needed():
    from litellm.exceptions import GuardrailRaisedException
    from litellm.integrations.custom_guardrail import CustomGuardrail
    from litellm.types.guardrails import GuardrailEventHooks
    from litellm.types.utils import ModelResponse, ModelResponseStream

__all__ = ["TextveilGuardrail"]

Body = dict[str, Any]

MOST = 10_000
"""The most requests that wait for their answers.

The oldest are forgotten, and their answers keep placeholders.
"""

_KEPT = "allowed_openai_params cache caching drop_params fallbacks guardrails max_retries metadata mock_response"
OWN = frozenset(f"{_KEPT} num_retries request_timeout tags timeout".split(" "))
"""Fields of a client's request that are for LiteLLM itself."""

NAME = "textveil_request"


class TextveilGuardrail(CustomGuardrail):
    """Protects chat completions, whole and streamed.

    It refuses all other kinds of requests, and then nothing is sent.

    Args:
        profile: how texts are protected.
        store: the URL of the store in which it is kept what became of messages.
        media: images, audio and files: "refuse" the request, or "pass" them.
        unknown: fields that nobody knows: "refuse" the request, or "drop" them.
        schemas: what programs say about their tools: "protect" or "pass".
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
        unknown: Literal["refuse", "drop"] = "refuse",
        schemas: Literal["protect", "pass"] = "protect",
        **options: Any,
    ) -> None:
        self._begun: OrderedDict[str, GuardedRequest] = OrderedDict()
        options.setdefault("supported_event_hooks", self.get_supported_event_hooks())
        try:
            _check(options)
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

    def should_run_guardrail(self, data: Body, event_type: GuardrailEventHooks) -> bool:
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
        self, user_api_key_dict: Any, cache: Any, data: Body, call_type: str
    ) -> Body:
        """Returns the request as the model may see it."""
        if (
            self.should_run_guardrail(data=data, event_type=GuardrailEventHooks.pre_call)
            is not True
        ):
            return data
        if call_type not in ("completion", "acompletion"):
            raise self._build_refusal(
                f"only chat completions are protected here, and not {call_type}: use a textveil gateway"
            )
        if not _are_names(data.get("fallbacks")):
            raise self._build_refusal(
                "fallbacks may only be names of models, since what else is in them is not protected"
            )
        body = _extract_request(data)
        try:
            begun = await self._guard.abegin(CHAT, body, _name_conversation(user_api_key_dict))
        except TextveilError as error:
            failure = str(error)
        else:
            made = {name: value for name, value in data.items() if name not in body} | begun.sent
            name = self._store(begun)
            made["litellm_metadata"] = {**(data.get("litellm_metadata") or {}), NAME: name}
            return made
        raise self._build_refusal(failure)

    def _store(self, begun: GuardedRequest) -> str:
        """Stores a request, and returns a name for its answer.

        The oldest requests are forgotten.
        """
        self._begun[name := fresh_name()] = begun
        while len(self._begun) > MOST:
            self._begun.popitem(last=False)
        return name

    async def async_post_call_failure_hook(
        self, request_data: Body, *args: Any, **kwargs: Any
    ) -> None:
        """Forgets a request without an answer."""
        self._pop(request_data)

    async def async_post_call_success_hook(
        self, data: Body, user_api_key_dict: Any, response: Any
    ) -> Any:
        """Restores the originals in a whole answer."""
        begun = self._pop(data)
        if begun is None or not isinstance(response, ModelResponse):
            return response
        came = _to_json(response)
        made = begun.restored(came)
        pairs = zip(CHAT.said(came), CHAT.said(made), strict=True)
        await begun.aanswered(pairs)
        restored = ModelResponse(**made)
        response.choices = restored.choices
        return response

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: Body
    ) -> AsyncGenerator[Any]:
        """Yields the restored pieces of an answer.

        Each with the text that is certain so far.
        """
        begun = self._pop(request_data)
        if begun is None:
            async for chunk in response:
                yield chunk
            return
        pieces = ChatChunks(begun.restoring)
        async for chunk in response:
            if not isinstance(chunk, ModelResponseStream):
                yield chunk
                continue
            for made in pieces.feed(Event("", _to_json(chunk))):
                yield ModelResponseStream(**made.data)
        for made in pieces.close():
            if isinstance(made.data, dict):
                yield ModelResponseStream(**made.data)
        await asyncio.to_thread(begun.answered, pieces.messages)

    def _pop(self, data: Body) -> GuardedRequest | None:
        """Returns and forgets the request that restores an answer."""
        name = (data.get("litellm_metadata") or {}).get(NAME)
        return self._begun.pop(name, None) if isinstance(name, str) else None

    def _build_refusal(self, said: str) -> Exception:
        result: Exception = GuardrailRaisedException(
            guardrail_name=self.guardrail_name, message=f"textveil: {said}"
        )
        return result


def _check(options: Body) -> None:
    """Refuses options under which LiteLLM would send the original request.

    It would throw the released one away.
    """
    for name in ("run_in_parallel", "scan_raw_request", "stream_scope"):
        if options.get(name):
            raise ConfigError(f"with {name} requests would be sent as they came: leave it out")
    mode = options.get("event_hook")
    hooks = mode if isinstance(mode, list) else [mode]
    if mode is not None and {getattr(each, "value", each) for each in hooks} != {
        "pre_call",
        "post_call",
    }:
        raise ConfigError("mode must be [pre_call, post_call]")


def _to_json(said: Any) -> Body:
    """Converts an answer, or a piece of one, to JSON data."""
    result: Body = said.model_dump(exclude_none=True)
    return result


def _extract_request(data: Body) -> Body:
    """Extracts the client's request from a call's data.

    The rest is the proxy's own.
    """
    asked = (data.get("proxy_server_request") or {}).get("body") or {}
    names = {*(CHAT.request.fields or ()), *asked} - OWN
    return {name: data[name] for name in names if name in data}


def _name_conversation(key: Any) -> str:
    """Returns a name for the requester's conversation.

    By what the proxy knows of whoever asks.
    """
    known = (getattr(key, name, None) for name in ("api_key", "user_id", "end_user_id"))
    return " ".join(str(each or "-") for each in known)


def _are_names(fallbacks: Any) -> bool:
    """Says whether fallbacks are names of models only.

    They could be messages, too.
    """
    if isinstance(fallbacks, dict):
        return all(
            isinstance(each, list) and all(isinstance(name, str) for name in each)
            for each in fallbacks.values()
        )
    if isinstance(fallbacks, list):
        return all(
            isinstance(each, str) or (isinstance(each, dict) and _are_names(each))
            for each in fallbacks
        )
    return fallbacks is None
