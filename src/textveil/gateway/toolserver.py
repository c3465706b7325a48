"""The gateway before a tool server: protects its answers, and restores requests to it.

In: a tool server (Model Context Protocol), a privatizer, a session. Out: a server for the client
that feeds a model.
Not here: which values are text (`protocols.mcp`), how texts are released (`protect_message`), and
how clients reach the server (`mcp_serving`).

The tool server and its data are private; the client is not trusted. Anything that cannot be
protected is refused: tools that are not named, requests of the server to the client (sampling,
elicitation, roots), logs, and subscriptions.
"""

import json
import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, unquote

import regex
from pydantic import Field

from textveil.config import make_options
from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, TextveilError, UnknownName
from textveil.gateway.errors import RequestError
from textveil.gateway.mcp_serving import KEY_VARIABLE, run_in_thread, silence_logger
from textveil.gateway.policy.active_policy import check_blocked_types, check_spending
from textveil.gateway.policy.policy import Policy
from textveil.gateway.protocols import mcp as tables
from textveil.gateway.protocols.operation import Operation
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.gateway.request.parsed_request import ParsedRequest
from textveil.gateway.request.protect_message import MessageReleaser
from textveil.models import Address
from textveil.pipeline import Privatizer
from textveil.session import Session, Source
from textveil.text import CLOSING, OPENING

if TYPE_CHECKING:
    import mcp
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

JsonObject = dict[str, Any]

PROTECTED_FIELD, UNRESOLVED_FIELD = "textveil/protected", "textveil/unresolved"
"""Names in the `_meta` of a result.

HIDDEN has the number of hidden values of each type, and LEFT the number of placeholders in the
arguments that stood for nothing.
"""

INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
"""JSON-RPC error codes: invalid parameters, and internal error."""

NOTHING_SERVED = (
    "nothing would be served: name tools with --tool NAME, or `tools` in a policy; --all-tools "
    "serves all"
)

BLOCKED_ANSWER = "the policy blocks answers of tools with"

ADDRESS_FIELDS = ("resources", "contents", "content", "messages")
"""Fields of an answer with addresses of resources."""

SCHEME = "textveil:"
"""URI scheme of addresses with something hidden, so that they stay addresses."""

# Clients may percent-encode the brackets of a placeholder in an address.
_PLACEHOLDER = regex.compile(f"(?:{OPENING}|%3[Cc])([A-Z][A-Z0-9_]*)(?:{CLOSING}|%3[Ee])")


@make_options("tools.")
class ToolServer:
    """Protecting server in front of a tool server.

    Attributes:
        privatizer: protects the answers of tools.
        session: remembers the hidden values; one for all clients.
        upstream: URL of the tool server (streamable HTTP); "" where `command` starts it.
        command: the command line that starts the tool server, which speaks over its standard input
            and output.
        resources: whether resources are served, protected.
        prompts: whether prompts are served, protected.
        policy: names the tools that are served, protected; decides about other tools and about
            values that cannot be protected; limits the time of an answer.
        errors: a file to which the standard error of `command` is appended; "" to discard it: it
            may hold anything.
    """

    privatizer: Privatizer
    session: Session = Field(default_factory=Session)
    upstream: Address | Literal[""] = ""
    command: tuple[str, ...] = ()
    resources: bool = False
    prompts: bool = False
    policy: Policy = Field(default_factory=Policy)
    errors: str = ""

    def __post_init__(self) -> None:
        if bool(self.upstream) == bool(self.command):
            raise ConfigError(
                "give either the URL of the tool server (--upstream) or the command that starts it"
            )
        tools = self.policy.tools or self.policy.other_tools == "pass"
        if not (tools or self.resources or self.prompts):
            raise ConfigError(NOTHING_SERVED)
        check_blocked_types(self.policy.block, self.privatizer)
        check_spending(self.privatizer, self.session.refuses_spending)
        self.session.repeats = "tool"  # the same answer twice is released once

    @cached_property
    def _releaser(self) -> MessageReleaser:
        detectors = ("patterns", "structure")
        schemas = Privatizer.from_profile(
            "prompt", protect={"level": "identifiers", "detectors": detectors}
        )
        return MessageReleaser(self.privatizer, schemas)

    # ---- what is asked and answered --------------------------------------------------------------

    def protect_answer(self, operation: Operation, answer: JsonObject) -> JsonObject:
        """Protects an answer of the tool server for the client.

        Args:
            operation: the request, with the table of its answer.
            answer: the answer.

        Raises:
            RequestError: the answer has a value that cannot be protected. TextveilError: it could
                not be released.
        """
        request = ParsedRequest(operation, answer, self.policy, lambda name: name)
        tool: Source = "tool"
        utterances = [
            utterance._replace(sources=(tool,) * len(utterance.texts))
            for utterance in request.context
        ]
        released = request.build_body(
            [self._releaser(utterance, self.session)[0] for utterance in utterances]
        )
        if blocked := self.policy.find_blocked(_count_hidden(released, self.session)):
            raise RequestError(400, f"{BLOCKED_ANSWER} {blocked}", code="blocked")
        return {
            name: _fix_addresses(answer[name], value) if name in ADDRESS_FIELDS else value
            for name, value in released.items()
        }

    def restore_request(self, value: Any, tool: str = "") -> tuple[Any, int]:
        """Restores a request of the client; returns it with its unresolved count."""
        restorer = AnswerRestorer(self.session, options=self.policy.restore)
        return restorer.restore_value(value, tool), restorer.unresolved

    def restore_address(self, uri: str) -> str:
        """Restores the address of a resource that the client sent."""
        if uri.startswith(SCHEME):
            return self.session.restore(unquote(uri.removeprefix(SCHEME)), where="everywhere")

        def restore_match(match: regex.Match[str]) -> str:
            placeholder = f"<{match[1]}>"
            restored = self.session.restore(placeholder)
            return match[0] if restored == placeholder else quote(restored, safe="@")

        return _PLACEHOLDER.sub(restore_match, uri)

    # ---- the server ------------------------------------------------------------------------------

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["Server[Any]"]:
        """Connects to the tool server and yields the server for clients.

        Raises:
            TextveilError: the tool server cannot be reached.
        """
        with explain_missing():
            import mcp
            from mcp.server.lowlevel import Server

        silence_logger("mcp")
        async with (
            self._open_transport() as transport,
            mcp.Client(transport, read_timeout_seconds=self.policy.timeout) as client,
        ):
            requests = _RequestHandlers(self, client)
            info = client.server_info
            description = {
                "name": info.name if info else "tools",
                "instructions": client.instructions,
            }
            about = await run_in_thread(self.protect_answer, tables.SERVER_INFO, description)
            capabilities, handlers = client.server_capabilities, dict[str, Any]()
            if capabilities.tools is not None:
                handlers |= {
                    "on_list_tools": requests.list_tools,
                    "on_call_tool": requests.call_tool,
                }
            if capabilities.resources is not None and self.resources:
                handlers["on_list_resources"] = requests.list_resources
                handlers["on_list_resource_templates"] = requests.list_templates
                handlers["on_read_resource"] = requests.read_resource
            if capabilities.prompts is not None and self.prompts:
                handlers["on_list_prompts"] = requests.list_prompts
                handlers["on_get_prompt"] = requests.get_prompt
            if capabilities.completions is not None and (self.resources or self.prompts):
                handlers["on_completion"] = requests.complete_argument
            server: Server[Any] = Server(
                about["name"], instructions=about.get("instructions"), **handlers
            )
            server.middleware.clear()  # its middleware would trace requests
            yield server

    @asynccontextmanager
    async def _open_transport(self) -> AsyncIterator[Any]:
        import httpx2
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamable_http_client

        if self.upstream:
            key = os.environ.get(KEY_VARIABLE)
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            # No read timeout: the session has the one for answers.
            wait = httpx2.Timeout(self.policy.timeout, read=None)
            # Proxies of the environment could read plain http, so they are used for https only.
            trusted = self.upstream.lower().startswith("https:")
            async with httpx2.AsyncClient(headers=headers, timeout=wait, trust_env=trusted) as http:
                yield streamable_http_client(
                    self.upstream, http_client=http, max_sse_event_size=None
                )
            return
        # Variables with the prefix may hold keys, such as that of the store.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("TEXTVEIL_")
        }
        command, *args = self.command
        with open(self.errors or os.devnull, "a", encoding="utf-8", opener=_open_private) as errors:
            yield stdio_client(
                StdioServerParameters(command=command, args=args, env=environment), errlog=errors
            )


class _RequestHandlers:
    """Handlers of the clients' requests.

    Args:
        tool_server: protects the answers.
        client: asks the tool server.
    """

    def __init__(self, tool_server: ToolServer, client: "mcp.Client") -> None:
        self._tool_server, self._client = tool_server, client
        self._schemas: dict[str, JsonObject] = {}  # schemas of the arguments, by tool

    async def _fetch_answer(self, request: Awaitable[Any]) -> JsonObject:
        """Awaits an answer of the tool server and returns its JSON.

        Raises:
            MCPError: there is no answer. The message of the tool server is protected.
        """
        from mcp import MCPError

        try:
            return _dump_model(await request)
        except MCPError as error:
            code, message = error.code, error.message
        except Exception as error:  # its message may hold text
            kind = type(error).__name__
            code, message = INTERNAL_ERROR, f"textveil: the tool server did not answer ({kind})"
        raise MCPError(
            code, (await self._protect(tables.ERROR_ANSWER, {"message": message}))["message"]
        )

    async def _protect(self, operation: Operation, answer: JsonObject) -> JsonObject:
        """Protects an answer for the client.

        Raises:
            MCPError: the answer cannot be protected.
        """
        from mcp import MCPError

        try:
            return await run_in_thread(self._tool_server.protect_answer, operation, answer)
        except (RequestError, TextveilError) as error:
            message = (
                error.full_message if isinstance(error, RequestError) else f"textveil: {error}"
            )
        except Exception as error:
            message = (
                "textveil: the answer of the tool server could not be protected "
                f"({type(error).__name__})"
            )
        raise MCPError(INTERNAL_ERROR, message)

    async def _protect_as(self, kind: str, operation: Operation, request: Awaitable[Any]) -> Any:
        """Protects an answer and parses it as a type of `mcp.types`."""
        from mcp import types

        protected = await self._protect(operation, await self._fetch_answer(request))
        return getattr(types, kind).model_validate(protected)

    async def _restore(self, value: Any, tool: str = "") -> tuple[Any, int]:
        return await run_in_thread(self._tool_server.restore_request, value, tool)

    # ---- tools -----------------------------------------------------------------------------------

    async def list_tools(self, _: "ServerRequestContext", params: Any) -> Any:
        from mcp.types import ListToolsResult

        received = await self._fetch_answer(self._client.list_tools(cursor=params.cursor))
        self._schemas |= {tool["name"]: tool["inputSchema"] for tool in received["tools"]}
        tools = [
            tool
            for tool in received["tools"]
            if self._tool_server.policy.is_tool_served(tool["name"])
        ]
        protected = await self._protect(tables.TOOLS, {**received, "tools": tools})
        if self._tool_server.policy.other_tools == "pass":
            protected_tools = {tool["name"]: tool for tool in protected["tools"]}
            protected["tools"] = [
                protected_tools.get(tool["name"], tool) for tool in received["tools"]
            ]
        return ListToolsResult.model_validate(protected)

    async def call_tool(self, context: "ServerRequestContext", params: Any) -> Any:
        from mcp import MCPError
        from mcp.types import CallToolResult

        protects = self._tool_server.policy.is_tool_served(params.name)
        if not protects and self._tool_server.policy.other_tools == "refuse":
            names = [
                name for name in self._schemas if self._tool_server.policy.is_tool_served(name)
            ]
            raise MCPError(
                INVALID_PARAMS,
                f"textveil: {UnknownName('tool that is served here', params.name, names)}",
            )
        arguments, unresolved = params.arguments, 0
        if protects and arguments is not None:
            restored, unresolved = await self._restore(arguments, params.name)
            arguments = _convert_numbers(arguments, restored, self._schemas.get(params.name, {}))

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            if message is not None and protects:
                message = (await self._protect(tables.PROGRESS, {"message": message}))["message"]
            await context.session.report_progress(progress, total, message)

        received = await self._fetch_answer(
            self._client.call_tool(params.name, arguments, progress_callback=tell)
        )
        if not protects:
            return CallToolResult.model_validate(received)
        try:
            protected = await self._protect(tables.CALL_TOOL, received)
        except MCPError as error:  # so that the model can go on without it
            protected = {"content": [{"type": "text", "text": error.message}], "isError": True}
        hidden = _count_hidden(protected, self._tool_server.session)
        return CallToolResult.model_validate(
            {**protected, "_meta": {PROTECTED_FIELD: hidden, UNRESOLVED_FIELD: unresolved}}
        )

    # ---- resources and prompts -------------------------------------------------------------------

    async def list_resources(self, _: "ServerRequestContext", params: Any) -> Any:
        request = self._client.list_resources(cursor=params.cursor)
        return await self._protect_as("ListResourcesResult", tables.RESOURCES, request)

    async def list_templates(self, _: "ServerRequestContext", params: Any) -> Any:
        request = self._client.list_resource_templates(cursor=params.cursor)
        return await self._protect_as("ListResourceTemplatesResult", tables.TEMPLATES, request)

    async def read_resource(self, _: "ServerRequestContext", params: Any) -> Any:
        uri = await run_in_thread(self._tool_server.restore_address, params.uri)
        request = self._client.read_resource(uri, cache_mode="bypass")
        return await self._protect_as("ReadResourceResult", tables.READ_RESOURCE, request)

    async def list_prompts(self, _: "ServerRequestContext", params: Any) -> Any:
        request = self._client.list_prompts(cursor=params.cursor)
        return await self._protect_as("ListPromptsResult", tables.PROMPTS, request)

    async def get_prompt(self, _: "ServerRequestContext", params: Any) -> Any:
        arguments, _left = await self._restore(params.arguments)
        request = self._client.get_prompt(params.name, arguments)
        return await self._protect_as("GetPromptResult", tables.GET_PROMPT, request)

    async def complete_argument(self, _: "ServerRequestContext", params: Any) -> Any:
        context = None if params.context is None else params.context.arguments
        arguments = params.argument.model_dump(), context
        (argument, context), _left = await self._restore(list(arguments))
        request = self._client.complete(params.ref, argument, context)
        return await self._protect_as("CompleteResult", tables.COMPLETION, request)


def _convert_numbers(received: JsonObject, restored: JsonObject, schema: JsonObject) -> JsonObject:
    """Converts restored arguments back to numbers where the schema wants numbers.

    A hidden number had become a text.
    """
    properties = schema.get("properties")
    converted = dict(restored)
    for name, value in restored.items():
        property_schema = properties.get(name) if isinstance(properties, dict) else None
        if (
            isinstance(property_schema, dict)
            and property_schema.get("type") in ("integer", "number")
            and value != received.get(name)
        ):
            with suppress(ValueError, TypeError):
                converted[name] = (int if property_schema["type"] == "integer" else float)(value)
    return converted


def _open_private(path: str, flags: int) -> int:
    """Opens a file; a new one is readable for its owner only."""
    return os.open(path, flags, 0o600)


def _dump_model(model: Any) -> JsonObject:
    content: JsonObject = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return content


def _fix_addresses(received: Any, protected: Any) -> Any:
    """Rewrites changed addresses of resources so that they stay addresses."""
    if isinstance(protected, list):
        same = len(received) == len(protected)
        return (
            [_fix_addresses(*pair) for pair in zip(received, protected, strict=True)]
            if same
            else protected
        )
    if not isinstance(protected, dict):
        return protected
    inner_fields = [name for name in ("resource", "content") if name in protected]
    inner = {name: _fix_addresses(received[name], protected[name]) for name in inner_fields}
    if protected.get("uri", "") != received.get("uri", ""):
        inner["uri"] = SCHEME + quote(protected["uri"])
    return {**protected, **inner}


def _count_hidden(result: JsonObject, session: Session) -> dict[str, int]:
    """Counts the hidden values of each type in a result."""
    return dict(
        sorted(session.snapshot().count_hidden(json.dumps(result, ensure_ascii=False)).items())
    )
