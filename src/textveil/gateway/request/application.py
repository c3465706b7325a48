"""Application of a request: what it brings along itself, and its words.

In: the leaves of a request, the roles of its messages. Out: an `Application`: its words, its own
texts, the names of its tools.
Not here: which words lift what was found in doubt (`detect.application_words`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textveil.detect import (
    NO_WORDS,
    ApplicationWords,
    PrivateValue,
    ValueIndex,
    collect_words,
    find_name_parts,
    load_detector,
    normalize_value,
)
from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import Act, Leaf, Path, format_path

AUTHOR_ROLES = ("system", "developer")
"""Roles of messages that the author of a program writes."""

DEFINITION_FIELDS = ("tools", "functions", "tool_choice", "function_call", "toolConfig")
"""Fields of a request in which a program names its tools."""

INSTRUCTION_FIELDS = ("instructions",)
"""Fields of a request with a system prompt outside of messages."""

_NAMES = ("name", "tool_name", "server_name", "mcp_server_name", "server_label")
_WORD_KEYS = ("enum", "const", "required")
"""Keys of a schema whose values are words that programs compare."""


@dataclass(frozen=True)
class Application:
    """What an application brings to a conversation. Secret.

    Attributes:
        words: the words that it states.
        texts: its system prompts.
        tool_names: the names of its tools, with their places.
    """

    words: ApplicationWords = NO_WORDS
    texts: frozenset[str] = field(default=frozenset(), repr=False)
    tool_names: tuple[tuple[Path, str], ...] = field(default=(), repr=False)

    def check_tools(self, sought: ValueIndex, body: Any) -> None:
        """Refuses a tool whose name holds something private; a name cannot be changed.

        It is private if a pattern finds it, or if the session hides it: the whole value, or a
        family name. A given name alone says little, and an agent may have it; so does one word
        of a tool that was found elsewhere in doubt.

        Raises:
            RequestError: a name holds something private.
        """
        names = [name.replace("_", " ").replace("-", " ") for _, name in self.tool_names]
        found = {span.text for span in load_detector("patterns").find(names)} if names else set()
        for i, (path, _) in enumerate(self.tool_names):
            told = any(
                _is_telling(value, place)
                and not self.words.spares(value, place, (0, len(place)), is_own=True)
                for value, place in sought.find_places(names[i])
            )
            if i in found or told:
                place = format_path(path, body)
                raise RequestError(
                    400,
                    f"{place} holds something private, and the name of a tool cannot be hidden: "
                    "rename the tool. Nothing was sent",
                    param=place,
                    code="unprotected",
                )


NO_APPLICATION = Application()
"""The application of a conversation that brings nothing along."""


def _is_telling(value: PrivateValue, place: str) -> bool:
    """True if a place tells a value: all of it, or a family name."""
    folded = normalize_value(value.type, place)
    if folded == value.key[1]:
        return True
    roles = {role for part, role in find_name_parts(value.type, value.text) if part == folded}
    return "FAMILY" in roles


def read_application(leaves: Sequence[Leaf], roles: Mapping[Path, str], model: Any) -> Application:
    """Reads what an application brings along.

    Args:
        leaves: the leaves of the request.
        roles: the role of the message at each path.
        model: the model that the request names.
    """
    names = [model] if isinstance(model, str) else []
    own: list[str] = []
    said_of_tools: list[str] = []
    tool_names: list[tuple[Path, str]] = []
    for leaf in leaves:
        if leaf.act is Act.SCHEMA:
            for text, is_name in _read_schema(leaf.value):
                (names if is_name else said_of_tools).append(text)
        elif not isinstance(leaf.value, str):
            continue
        elif leaf.act in (Act.PASS, Act.NAME):
            if is_of_definition(leaf.path) and leaf.path[-1] in _NAMES:
                tool_names.append((leaf.path, leaf.value))
        elif leaf.act is Act.PROTECT and _is_of_author(leaf.path, roles):
            own.append(leaf.value)
    names += [name for _, name in tool_names]
    words = collect_words(names, [*own, *said_of_tools])
    return Application(words, frozenset(own), tuple(tool_names))


def is_of_definition(path: Path) -> bool:
    """True if a program names its tools there, also in a request within the request."""
    return any(step in DEFINITION_FIELDS for step in path[:2])


def _is_of_author(path: Path, roles: Mapping[Path, str]) -> bool:
    """True if the author of the program wrote a text."""
    if path[0] in INSTRUCTION_FIELDS:
        return True
    message = next((roles[path[:n]] for n in range(len(path), 0, -1) if path[:n] in roles), "")
    return message.lower() in AUTHOR_ROLES


def _read_schema(value: Any, key: str = "") -> Iterator[tuple[str, bool]]:
    """Yields the texts of a definition, and whether each is a name."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name, True
            yield from _read_schema(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _read_schema(item, key)
    elif isinstance(value, str):
        yield value, key in _WORD_KEYS
