"""The tool server for assistants: protects files, finds what is private, restores into files.

In: a protector, a session, folders. Out: a server (Model Context Protocol) for an assistant.
Not here: how clients reach it (`mcp_serving`), which files may be read and written
(`files.FolderAccess`), and the gateway before other tool servers (`toolserver`).

The assistant is a language model: what a tool returns is sent away. So

- `protect` returns a file as it is released.
- `find` returns types and lines, and no column, which would tell how long a value is.
- Neither takes a text: of a list of guesses an assistant would see which has a placeholder already,
  and which is in the user's own lists (`protect.always`, `protect.never`).
- `restore` writes the originals into a folder from which nothing is read: the assistant could put
  letters around a placeholder, so that the original is not recognized when it is protected again.
  It writes plain text only: a page, a table or a program could send the originals away once the
  user opens it. It returns no length.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from textveil.config import make_options
from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, InputError, TextveilError, UnknownName
from textveil.files import FolderAccess
from textveil.gateway.mcp_serving import run_in_thread, silence_logger
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.guarantee import describe_hidden
from textveil.pipeline import Protector
from textveil.session import Session

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

INVALID_PARAMS = -32602
"""JSON-RPC error code."""

INSTRUCTIONS = (
    "Reads files of the user with private values replaced by placeholders such as <PERSON_1>. Keep "
    "placeholders letter for letter."
)
RESTORE_INSTRUCTIONS = (
    " To give the user a text with the real values, call restore: it writes a file for the user, "
    "which you cannot read."
)
"""What the server tells the model about itself; the second, if it writes files."""


class _Arguments(BaseModel, extra="forbid", strict=True):
    """Arguments of a tool."""


class FileArguments(_Arguments):
    """Arguments of `protect` and `find`."""

    path: str = Field(description="The file, absolute or relative to the user's folder.")


class RestoreArguments(_Arguments):
    """Arguments of `restore`."""

    text: str = Field(description="The text with placeholders.")
    output: str | None = Field(
        None, description="The file to write, relative to the user's folder for restored texts."
    )
    overwrite: bool = Field(False, description="Replace a file of that name.")


class ProtectedFile(BaseModel):
    """What `protect` returns."""

    text: str = Field(description="The file with placeholders for private values.")
    hidden: dict[str, int] = Field(description="Hidden values by type.")
    statement: str = Field(description="What was hidden; nothing is claimed about the rest.")
    unmeasured: list[str] = Field(description="Languages for which detection was not measured.")


class PrivatePlace(BaseModel):
    """A finding without its words."""

    type: str
    hidden: bool = Field(description="Whether protect would hide it.")
    line: int = Field(description="Its line, from 1.")


class FoundPlaces(BaseModel):
    """What `find` returns."""

    places: list[PrivatePlace]
    hidden: dict[str, int] = Field(description="Places that protect would hide, by type.")


class RestoredText(BaseModel):
    """What `restore` returns."""

    output: str | None = Field(None, description="The file that was written.")
    text: str | None = Field(None, description="The restored text, where the user allows that.")
    restored: dict[str, int] = Field(description="Restored values by type.")
    left: int = Field(
        description="Placeholders that stand for nothing, or were left in an address."
    )


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A tool that an assistant may call.

    Attributes:
        title: its title for people.
        description: tells the model when to call it.
        arguments: the model of its arguments.
        result: the model of its result.
        run: does the work.
        writes: whether it writes files.
    """

    title: str
    description: str
    arguments: type[_Arguments]
    result: type[BaseModel]
    run: Callable[[Any], BaseModel]
    writes: bool = False

    def describe(self, name: str) -> Any:
        """Returns the tool as `mcp` lists it."""
        from mcp.types import Tool, ToolAnnotations

        return Tool(
            name=name,
            title=self.title,
            description=self.description,
            input_schema=self.arguments.model_json_schema(),
            output_schema=self.result.model_json_schema(),
            annotations=ToolAnnotations(
                read_only_hint=not self.writes,
                destructive_hint=self.writes,
                idempotent_hint=not self.writes,
                open_world_hint=False,
            ),
        )

    def call(self, name: str, arguments: dict[str, Any]) -> BaseModel:
        """Calls the tool.

        Raises:
            TextveilError: it failed; the message holds no text.
        """
        try:
            parsed = self.arguments.model_validate(arguments)
        except ValidationError:
            parsed = None
        if parsed is None:  # raised out here, because pydantic's error holds the values
            raise InputError(f"{name} takes {self._describe_arguments()}")
        return self.run(parsed)

    def _describe_arguments(self) -> str:
        fields = self.arguments.model_fields.items()
        return ", ".join(
            f"{name} ({'true or false' if field.annotation is bool else 'a text'}"
            f"{'' if field.is_required() else ', may be left out'})"
            for name, field in fields
        )


@make_options("assistant.")
class AssistantTools:
    """Tool server for an assistant: `protect`, `find` and `restore`.

    Attributes:
        protector: hides what is private.
        session: remembers the hidden values; one for all clients.
        folders: folders whose files are read.
        output: the folder in which restored texts are written; "" to write none.
        suffixes: suffixes of files that may be written besides those of plain text.
        reveal: whether `restore` may return the originals to the assistant.
        limit: the most bytes of a file, and the most characters of a text.
    """

    protector: Protector
    session: Session = Field(default_factory=Session)
    folders: tuple[str, ...]
    output: str = ""
    suffixes: tuple[Annotated[str, Field(pattern=r"^\.[a-z0-9]+$")], ...] = ()
    reveal: bool = False
    limit: Annotated[int, Field(ge=1)] = 1_000_000

    def __post_init__(self) -> None:
        if not self.folders:
            raise ConfigError("give at least one folder whose files may be read (--folder)")
        read, written = self._read, self._written  # a folder that is missing is said at once
        if written is not None and written.overlaps(read):
            raise ConfigError(
                "--output and --folder must be different folders, and none may lie in the other: "
                "the assistant could read restored texts"
            )
        self.session.repeats = "tool"  # the same file twice is released once

    @cached_property
    def _read(self) -> FolderAccess:
        return FolderAccess(self.folders, option="--folder")

    @cached_property
    def _written(self) -> FolderAccess | None:
        if not self.output:
            return None
        return FolderAccess([self.output], option="--output", suffixes=self.suffixes)

    def refuse_readable(self, path: str) -> None:
        """Refuses a session file that the assistant could read.

        Raises:
            ConfigError: it lies in one of the folders.
        """
        if self._read.holds(path) or (self._written is not None and self._written.holds(path)):
            raise ConfigError(
                "--session must be a file outside of --folder and --output: it holds the originals"
            )

    @cached_property
    def tools(self) -> dict[str, OfferedTool]:
        """Tools by name."""
        tools = {
            "protect": OfferedTool(
                title="Read a file, protected",
                description="Reads a text file of the user and returns it with placeholders such "
                "as <PERSON_1> for private values. The same value has the same placeholder in all "
                "files.",
                arguments=FileArguments,
                result=ProtectedFile,
                run=self._protect,
            ),
            "find": OfferedTool(
                title="Find private values",
                description="Says which types of private values a file has, and in which lines, "
                "without the values.",
                arguments=FileArguments,
                result=FoundPlaces,
                run=self._find,
            ),
        }
        if self.output or self.reveal:
            acts = ["returns it"] * self.reveal
            if self._written is not None:
                kinds = self._written.describe_suffixes()
                acts.insert(0, f"writes the text into a file ({kinds}) that you cannot read")
            tools["restore"] = OfferedTool(
                title="Write a text with the originals",
                description="Puts the originals back in place of placeholders and "
                f"{', or, without output, '.join(acts)}.",
                arguments=RestoreArguments,
                result=RestoredText,
                run=self._restore,
                writes=bool(self.output),
            )
        return tools

    # ---- the tools -------------------------------------------------------------------------------

    def _protect(self, arguments: FileArguments) -> ProtectedFile:
        text = self._read.read_text(arguments.path, self.limit)
        # The user need not have written what is in the file.
        result = self.protector.protect(text, self.session, source="tool")
        described = result.to_json()
        return ProtectedFile(
            text=result.text,
            hidden=described["hidden"],  # type: ignore[arg-type]
            statement=describe_hidden([result.released], result.sent_earlier),
            unmeasured=list(result.unmeasured),
        )

    def _find(self, arguments: FileArguments) -> FoundPlaces:
        text = self._read.read_text(arguments.path, self.limit)
        lengths = (len(line) + 1 for line in text.split("\n"))
        line_starts = list(accumulate(lengths, initial=0))
        places = [
            PrivatePlace(
                type=finding.type,
                hidden=finding.hidden,
                line=bisect_right(line_starts, finding.start),
            )
            for finding in self.protector.find(text)
        ]
        hidden = Counter(place.type for place in places if place.hidden)
        return FoundPlaces(places=places, hidden=dict(sorted(hidden.items())))

    def _restore(self, arguments: RestoreArguments) -> RestoredText:
        if len(arguments.text) > self.limit:
            raise InputError(f"the text must have at most {self.limit:,} characters (--limit)")
        if arguments.output is None and not self.reveal:
            raise InputError("restore needs output, the name of the file to write")
        if arguments.output is not None and self._written is None:
            raise InputError("restore writes no file here: the server was started without --output")
        restorer = AnswerRestorer(self.session)
        text = restorer.restore_text(arguments.text)
        output = None
        if arguments.output is not None and self._written is not None:
            output = self._written.write_text(arguments.output, text, overwrite=arguments.overwrite)
        count_hidden = self.session.snapshot().count_hidden
        counts = count_hidden(arguments.text) - count_hidden(text)
        return RestoredText(
            output=output,
            text=text if output is None else None,
            restored=dict(sorted(counts.items())),
            left=restorer.unresolved,
        )

    # ---- the server ------------------------------------------------------------------------------

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["Server[Any]"]:
        """Yields the server for clients."""
        with explain_missing():
            from mcp.server.lowlevel import Server

        silence_logger("mcp")
        server: Server[Any] = Server(
            "textveil",
            instructions=INSTRUCTIONS + (RESTORE_INSTRUCTIONS if self.output else ""),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        server.middleware.clear()  # its middleware would trace requests
        yield server

    async def _list_tools(self, _: "ServerRequestContext", params: Any) -> Any:
        from mcp.types import ListToolsResult

        return ListToolsResult(tools=[tool.describe(name) for name, tool in self.tools.items()])

    async def _call_tool(self, _: "ServerRequestContext", params: Any) -> Any:
        from mcp import MCPError
        from mcp.types import CallToolResult, TextContent

        tool = self.tools.get(params.name)
        if tool is None:
            raise MCPError(
                INVALID_PARAMS, f"textveil: {UnknownName('tool', params.name, list(self.tools))}"
            )
        try:
            result = await run_in_thread(tool.call, params.name, params.arguments or {})
        except TextveilError as error:
            message = f"textveil: {error}"
        except Exception as error:  # its message may hold text
            message = f"textveil: the tool failed ({type(error).__name__})"
        else:
            return CallToolResult(
                content=[TextContent(type="text", text=result.model_dump_json())],
                structured_content=result.model_dump(mode="json"),
            )
        return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
