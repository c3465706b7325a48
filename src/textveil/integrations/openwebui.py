"""Open WebUI: a pipe function with models that see released text.

They see nothing else.

In: all that Open WebUI asks such a model: chats, titles, tags, search queries, tools. Out: answers
with the originals.
Not here: a gateway as its connection (`gateway`); a filter function, which does not see all that is
asked.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from threading import Lock
from typing import Any, Literal

from pydantic import BaseModel, Field

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, EndpointError, InputError, TextveilError
from textveil.gateway import ChatGuard, GuardedRequest
from textveil.gateway.protocols import Event
from textveil.gateway.protocols.chat import CHAT, ChatChunks

with explain_missing():
    from open_webui.env import ENABLE_FORWARD_USER_INFO_HEADERS
    from open_webui.models.config import Config
    from open_webui.models.users import Users
    from open_webui.utils.chat import generate_chat_completion

__all__ = ["TextveilPipe"]

JsonObject = dict[str, Any]


class TextveilPipe:
    """A manifold of models that see released text only.

    Each asks one of Open WebUI's own.

    Conversations are told apart by user and chat, and a message that comes again is released as it
    was. What it cannot protect it refuses, and nothing is sent.

    Attributes:
        valves: its settings, which administrators change.
    """

    class Valves(BaseModel):
        """What administrators set."""

        models: str = Field(
            "",
            description="Ids of the models to offer with protection, separated by commas.",
        )
        profile: str = Field("prompt", description="Profile that protects texts.")
        store: str = Field(
            "memory:", description="URL of the store that remembers how messages were released."
        )
        media: Literal["refuse", "pass"] = Field(
            "refuse",
            description="Images, audio and files: refuse the request, or pass them unprotected.",
        )
        unknown: Literal["protect", "refuse", "drop"] = Field(
            "protect",
            description="Unknown fields: protect them like text, refuse the request, or drop them.",
        )
        schemas: Literal["identifiers", "pass"] = Field(
            "identifiers",
            description="Descriptions of tools: hide identifiers, or pass them unchanged.",
        )
        task_model: Literal["refuse", "pass"] = Field(
            "refuse",
            description=(
                "Chats while Open WebUI asks an unprotected model for titles, tags or search "
                "queries: refuse them, or let them pass."
            ),
        )

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._cached_guard: tuple[TextveilPipe.Valves, ChatGuard] | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return "TextveilPipe()"

    def pipes(self) -> list[dict[str, str]]:
        """Returns the models that are offered."""
        return [{"id": name, "name": f"{name} (textveil)"} for name in self._list_models()]

    async def pipe(
        self, body: JsonObject, __user__: JsonObject, __metadata__: JsonObject, __request__: Any
    ) -> Any:
        """Returns the restored answer of a model.

        Raises:
            ConfigError: settings of Open WebUI would let originals through. InputError: the request
                holds what cannot be protected. EndpointError: the model gave no answer.
        """
        try:
            return await self._answer(body, __user__, __metadata__, __request__)
        except TextveilError as error:
            failure: TextveilError = error.with_traceback(None)
            failure.__cause__ = failure.__context__ = None
        except Exception as error:
            failure = InputError(f"the request could not be protected ({type(error).__name__})")
        raise failure  # here, where no line has a text: Open WebUI logs errors

    async def _answer(
        self, body: JsonObject, user: JsonObject, metadata: JsonObject, request: Any
    ) -> Any:
        function, _, model = str(body.get("model")).partition(".")
        await self._check_settings(function, model, request)
        asker = await Users.get_user_by_id(str(user.get("id")))
        if asker is None:
            raise ConfigError("Open WebUI does not know the user of this request")
        guard = await asyncio.to_thread(self._build_guard)
        conversation = f"{asker.id} {metadata.get('chat_id') or '-'}"
        guarded_request = await guard.aprotect(CHAT, {**body, "model": model}, conversation)
        answer = await generate_chat_completion(
            request,
            {**guarded_request.released_body, "model": model},
            asker,
            bypass_filter=True,
            bypass_system_prompt=True,
        )
        if hasattr(answer, "body_iterator"):
            return type(answer)(
                _restore_stream(guarded_request, answer),
                media_type="text/event-stream",
                background=answer.background,
            )
        if not isinstance(answer, dict) or "choices" not in answer:
            raise EndpointError(
                f"the model gave no answer (status {getattr(answer, 'status_code', 'unknown')})"
            )
        result: JsonObject = guarded_request.restore(answer)
        await guarded_request.aremember_answer(
            zip(CHAT.list_answer_messages(answer), CHAT.list_answer_messages(result), strict=True)
        )
        return result

    async def _check_settings(self, function: str, model: str, request: Any) -> None:
        """Refuses settings of Open WebUI that would leak originals."""
        if model not in self._list_models():
            raise ConfigError("this model is not offered any more: name it in the valve models")
        if getattr(request.state, "direct", False) or any(
            map(_has_more_readers, _find_bases(request.app.state.MODELS, model))
        ):
            raise ConfigError(
                "functions, pipelines, arenas and direct connections receive more than the "
                "protected request: choose another model"
            )
        if ENABLE_FORWARD_USER_INFO_HEADERS:
            raise ConfigError(
                "ENABLE_FORWARD_USER_INFO_HEADERS tells models the name of the user: switch it off"
            )
        for kind in ("openai", "ollama"):
            connections = await Config.get(f"{kind}.api_configs") or {}
            if any(
                "{{" in json.dumps(connection.get("headers") or {})
                for connection in connections.values()
            ):
                raise ConfigError(
                    "headers of a connection with {{...}} can tell models the name of the user: "
                    "remove them"
                )
        task = await Config.get("task.model.external")
        if task and not str(task).startswith(f"{function}.") and self.valves.task_model == "refuse":
            raise ConfigError(
                "Open WebUI would ask an unprotected model for titles, tags and search queries: "
                "set the external task model to the current model or one of textveil's, or the "
                "valve task_model to pass"
            )

    def _list_models(self) -> list[str]:
        return [name.strip() for name in self.valves.models.split(",") if name.strip()]

    def _build_guard(self) -> ChatGuard:
        """Returns the guard for the present settings, built once."""
        with self._lock:
            if self._cached_guard is None or self._cached_guard[0] != self.valves:
                valves = self.valves
                guard = ChatGuard(
                    valves.profile,
                    store=valves.store,
                    media=valves.media,
                    unknown=valves.unknown,
                    schemas=valves.schemas,
                )
                self._cached_guard = valves, guard
            return self._cached_guard[1]


def _find_bases(models: Mapping[str, Any], model: str) -> list[JsonObject]:
    """Returns Open WebUI's data on a model and its bases.

    Raises:
        ConfigError: it does not know one of these.
    """
    result: list[JsonObject] = []
    name: str | None = model
    # Bounded, because base models may name each other in a circle.
    while name is not None and len(result) <= len(models):
        if name not in models:
            raise ConfigError("Open WebUI does not know the model or its base model")
        result.append(models[name] or {})
        name = (result[-1].get("info") or {}).get("base_model_id")
    return result


def _has_more_readers(model: JsonObject) -> bool:
    """Says whether a model receives more than the request."""
    return bool({"pipe", "pipeline"} & model.keys()) or model.get("owned_by") == "arena"


async def _restore_stream(request: GuardedRequest, response: Any) -> AsyncGenerator[str]:
    """Yields a restored stream, with an error where it breaks off."""
    pieces, is_complete = ChatChunks(request.restorer), False
    try:
        async with aclosing(_yield_events(response)) as events:
            async for data in events:
                if "choices" not in data and str(data.get("type")).startswith("response."):
                    raise EndpointError("no chat completion")
                for event in pieces.feed(Event("", data)):
                    yield event.render()
        is_complete = True
    except Exception:  # which may hold text
        is_complete = False
    for event in pieces.close():
        yield event.render()
    await request.aremember_answer(pieces.messages)
    if not is_complete:
        yield Event(
            "",
            {"error": {"detail": "textveil: the answer broke off, or is not a chat completion"}},
        ).render()


async def _yield_events(response: Any) -> AsyncGenerator[Any]:
    """Yields the data of a response's events, to the last one."""
    body: AsyncIterator[Any] = aiter(response.body_iterator)
    remainder = b""
    try:
        async for piece in body:
            # Split as bytes: a piece may end inside a line, or inside a character.
            *lines, remainder = (
                remainder + (piece.encode() if isinstance(piece, str) else bytes(piece))
            ).split(b"\n")
            for line in lines:
                if (data := _read_line(line)) is not None:
                    yield data
        if (data := _read_line(remainder)) is not None:
            yield data
    finally:
        if isinstance(body, AsyncGenerator):
            await body.aclose()


def _read_line(line: bytes) -> Any:
    """Reads the data of a line; None where there is none."""
    if not line.startswith(b"data:") or not (data := line.removeprefix(b"data:").strip()):
        return None
    return "[DONE]" if data == b"[DONE]" else json.loads(data)
