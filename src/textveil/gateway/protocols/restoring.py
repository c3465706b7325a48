"""Answers: an upstream's JSON with the originals put back.

In: JSON of an answer, or of its events, and a session. Out: the same JSON, restored whole or piece
by piece.
Not here: the tables and the events of an API (`protocols`), how a text is restored (`session`).

Values that no table names are restored as text: they come from the upstream, which saw released
text only.
"""

from collections.abc import Callable, Hashable
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import regex
from pydantic import Field

from textveil.config import make_options
from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import (
    DROPPED,
    Act,
    LeafRule,
    Path,
    find_leaves,
    replace_leaves,
)
from textveil.session import Restorer, Session, find_placeholder_names
from textveil.text import CLOSING, OPENING

_PLACEHOLDER = regex.compile(
    rf"{OPENING}[A-Z][A-Z0-9_]*_[0-9]+(?:_[A-Z]+)*{CLOSING}"
    rf"|{OPENING}[A-Z][A-Z0-9]*_[A-Z0-9_]*(?:&(?:g|gt)?)?\Z"
)
"""Pattern of any placeholder, even an unassigned or broken-off one."""


CALL_TYPES = frozenset(
    ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call")
)
"""Types of items that call a tool of the client."""

REFUSED_CALL = (
    "a call of a tool holds a placeholder that stands for nothing here, and the policy refuses "
    "such calls (unresolved: refuse): ask again"
)

UNRESOLVED_HEADER = "textveil-unresolved"
"""Response header with the number of unresolved placeholders in a whole answer."""

UNRESOLVED_CALLS_HEADER = "textveil-unresolved-calls"
"""Response header with the number of those in calls of tools; it is missing where there are none."""

STRING_ACTS = frozenset({Act.PROTECT, Act.ARGUMENTS, Act.SIGNED})
"""Acts under which a string is one text."""


@make_options("restore.")
class RestoreOptions:
    """Places where originals are put back although they join an address that did not hold them.

    Attributes:
        hosts: addresses of these hosts; `*.example.org` for all below a name.
        tools: all arguments of these tools, which write local files and open nothing; `*` in a name
            stands for anything.
    """

    hosts: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    tools: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    def has_tool(self, name: str) -> bool:
        """True if the tool's name matches one of the patterns in `tools`."""
        return any(fnmatchcase(name, pattern) for pattern in self.tools)


class AnswerRestorer:
    """Restorer of one answer: puts the originals back in place of placeholders.

    Args:
        session: the request's session, which knows its placeholders.
        as_json: whether texts of the answer are JSON, so that originals must be escaped.
        request_pair: the request as it was sent, and as the client wrote it.
        options: hosts and tools for which originals are put back although they might be sent away.
        calls: what becomes of calls of tools with unresolved placeholders: "pass" or "flag", which
            counts them, or "refuse", which is an error.

    Attributes:
        unresolved: placeholders that the model invented, or that were left where restoring them
            would send them away.
        unresolved_calls: those of them in calls of tools, which might be written into a file.
    """

    def __init__(
        self,
        session: Session,
        *,
        as_json: bool = False,
        request_pair: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
        options: RestoreOptions | None = None,
        calls: Literal["pass", "flag", "refuse"] = "flag",
    ) -> None:
        self._session, self._as_json, self.request_pair = session, as_json, request_pair
        self._options, self._calls = options or RestoreOptions(), calls
        self._pieces: dict[Hashable, tuple[Restorer, list[str], list[str], bool]] = {}
        self.unresolved = self.unresolved_calls = 0

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of unresolved placeholders, by their headers; without zeros."""
        counts = {
            UNRESOLVED_HEADER: self.unresolved,
            UNRESOLVED_CALLS_HEADER: self.unresolved_calls,
        }
        return {name: count for name, count in counts.items() if count}

    def _create_restorer(self, act: Act, tool: str) -> Restorer:
        as_json = act is Act.ARGUMENTS or (self._as_json and act is Act.PROTECT)
        return self._session.restorer(
            escape="json" if as_json else "none",
            where="everywhere" if tool and self._options.has_tool(tool) else "text",
            hosts=self._options.hosts,
            value=act is Act.OBJECT,
            exact=act in (Act.ARGUMENTS, Act.OBJECT),
        )

    def restore_text(self, text: str, act: Act = Act.PROTECT, tool: str = "") -> str:
        """Restores a whole text.

        `tool` is the name of the tool whose argument the text is.
        """
        restorer = self._create_restorer(act, tool)
        restored = restorer.feed(text) + restorer.close()
        self._count(restored, is_call=_is_call(act, tool))
        return restored

    def _count(self, restored: str, *, is_call: bool) -> None:
        """Counts the placeholders left in a restored text.

        Those that stand in a text of the client itself are no mistake in a call.

        Raises:
            RequestError: they are in a call of a tool, and such calls are refused.
        """
        left = _PLACEHOLDER.findall(restored)
        self.unresolved += len(left)
        if not (left and is_call) or self._calls == "pass":
            return
        spelled = self._session.snapshot().spelled.keys()
        unknown = sum(not (find_placeholder_names(each) or {each}) <= spelled for each in left)
        self.unresolved_calls += unknown
        if unknown and self._calls == "refuse":
            raise RequestError(502, REFUSED_CALL, code="unresolved_placeholder")

    def restore_value(self, value: Any, tool: str = "") -> Any:
        """Restores all strings of any JSON, including field names.

        Field names may have been released, too.
        """
        if isinstance(value, str):
            return self.restore_text(value, Act.OBJECT, tool)
        if isinstance(value, list):
            return [self.restore_value(item, tool) for item in value]
        if isinstance(value, dict):
            items = value.items()
            return {
                self.restore_text(name, Act.OBJECT, tool): self.restore_value(item, tool)
                for name, item in items
            }
        return value

    def restore_json(
        self, content: Any, rule: LeafRule, restore: Callable[[Path, str, Act], str] | None = None
    ) -> Any:
        """Restores a whole answer, or a part of one, by its table.

        Args:
            content: the JSON of the answer.
            rule: the table of its leaves.
            restore: restores the text at a path, given the path, the text and its act; None to
                restore each text as a whole.
        """
        changed: dict[Path, Any] = {}
        for path, act, value in find_leaves(content, rule):
            if restore is not None and act in STRING_ACTS and isinstance(value, str):
                changed[path] = restore(path, value, act)
            elif value is not None or act is not Act.DROP:
                changed[path] = self._restore_leaf(content, path, act, value)
        return replace_leaves(content, changed)

    def _restore_leaf(self, answer: Any, path: Path, act: Act, value: Any) -> Any:
        """Restores one leaf of an answer by its act.

        Most leaves pass unchanged.
        """
        if act in STRING_ACTS and isinstance(value, str):
            return self.restore_text(value, act, _find_called(answer, path, act))
        if act in (Act.OBJECT, Act.ARGUMENTS, Act.SCHEMA, Act.NAME, Act.UNKNOWN):
            return self.restore_value(value, _find_tool(answer, path))
        if act is Act.OFFSET and isinstance(value, int):
            return self.convert_offset(_find_nearest_text(answer, path), value)
        return DROPPED if act is Act.DROP else value

    def convert_offset(self, text: str, offset: int) -> int:
        """Converts a character offset in a received text to the restored text.

        Restoring the text before the offset does not count its unresolved placeholders again.
        """
        unresolved = self.unresolved
        length = len(self.restore_text(text[:offset])) + max(0, offset - len(text))
        self.unresolved = unresolved
        return length

    def restore_piece(
        self, key: Hashable, piece: str, act: Act = Act.PROTECT, tool: str = ""
    ) -> str:
        """Restores the next piece of a streamed text, where certain.

        Args:
            key: identifies the text.
            piece: the next piece of the text.
            act: whether it is text, or JSON written as text.
            tool: the tool whose argument the text is; "" for no tool.
        """
        if key not in self._pieces:
            restorer = self._create_restorer(act, tool)
            self._pieces[key] = restorer, [], [], _is_call(act, tool)
        restorer, before, after, _ = self._pieces[key]
        restored = restorer.feed(piece)
        before.append(piece)
        after.append(restored)
        return restored

    def close_text(self, key: Hashable) -> str:
        """Returns the held-back end of a streamed text and closes it."""
        if key not in self._pieces:
            return ""
        restorer, _, after, is_call = self._pieces[key]
        restored = restorer.close()
        after.append(restored)
        self._count("".join(after), is_call=is_call)
        return restored

    def get_text_pair(self, key: Hashable) -> tuple[str, str]:
        """Returns a streamed text so far, as received and as restored."""
        _, before, after, _ = self._pieces[key]
        return "".join(before), "".join(after)


def count_unresolved(text: str) -> int:
    """Counts the placeholders left in a restored text."""
    return len(_PLACEHOLDER.findall(text))


def _is_call(act: Act, tool: str) -> bool:
    """True if a text is an argument of a tool that the client runs."""
    return act is Act.ARGUMENTS or tool != ""


def _find_called(value: Any, path: Path, act: Act) -> str:
    """Returns the name of the tool of which a string is an argument; "" for none."""
    if act is Act.ARGUMENTS:
        return _find_tool(value, path)
    for step in path[:-1]:
        if isinstance(value, dict) and value.get("type") in CALL_TYPES:
            return get_tool_name(value)
        value = value[step]
    return get_tool_name(value) if isinstance(value, dict) else ""


def get_tool_name(item: dict[str, Any]) -> str:
    """Returns the name of the tool that an item calls, or that of its kind; "" for no call."""
    kind = item.get("type")
    if kind not in CALL_TYPES:
        return ""
    return str(item.get("name") or str(kind).removesuffix("_call"))


def _find_tool(value: Any, path: Path) -> str:
    """Returns the tool name that stands beside the arguments at a path."""
    for step in path[:-1]:
        value = value[step]
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""


def _find_nearest_text(answer: Any, path: Path) -> str:
    """Returns the text nearest to a path.

    It is the `text` or `content` of the innermost object around the path that has one; "" if none
    has.
    """
    value, texts = answer, [""]
    for step in path:
        if isinstance(value, dict):
            candidates = map(value.get, ("text", "content"))
            texts += [text for text in candidates if isinstance(text, str)]
        value = value[step]
    return texts[-1]
