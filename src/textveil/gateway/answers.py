"""Answers: an upstream's JSON with the originals put back.

In: JSON of an answer, or of its events, and a session. Out: the same JSON, restored whole or piece
by piece.
Not here: the tables and the events of an API (`protocols`), how a text is restored (`session`).

Values that no table names are restored as text: they come from the upstream, which saw released
text only.
"""

from collections.abc import Callable, Hashable
from fnmatch import fnmatchcase
from typing import Annotated, Any

import regex
from pydantic import Field

from textveil.config import options
from textveil.gateway.leaves import DROPPED, Act, LeafRule, Path, leaves, rebuilt
from textveil.session import Restorer, Session
from textveil.text import CLOSING, OPENING

_PLACEHOLDER = regex.compile(
    rf"{OPENING}[A-Z][A-Z0-9_]*_[0-9]+(?:_[A-Z]+)*{CLOSING}"
    rf"|{OPENING}[A-Z][A-Z0-9]*_[A-Z0-9_]*(?:&(?:g|gt)?)?\Z"
)
"""Pattern of any placeholder, even an unassigned or broken-off one."""


TEXTS = frozenset({Act.PROTECT, Act.ARGUMENTS, Act.SIGNED})
"""Acts under which a string is one text."""


@options("restore.")
class RestoreOptions:
    """Where originals are put back in answers though they would be joined into an address in which they did not stand.

    Attributes:
        hosts: into addresses of these hosts; `*.example.org` for all below a name.
        tools: everywhere in the arguments of these tools, which write local files and open nothing;
            `*` in a name stands for anything.
    """

    hosts: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    tools: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    def names_tool(self, name: str) -> bool:
        """True if the tool's name matches one of the patterns in `tools`."""
        return any(fnmatchcase(name, each) for each in self.tools)


class Restoring:
    """Restorer of one answer: puts the originals back in place of placeholders.

    Args:
        session: the request's session, which knows its placeholders.
        as_json: whether texts of the answer are JSON, so that originals must be escaped.
        asked: the request as it was sent, and as the client wrote it.
        options: hosts and tools for which originals are put back although they might be sent away.

    Attributes:
        unresolved: placeholders that the model invented, or that were left where restoring them
            would send them away.
    """

    def __init__(
        self,
        session: Session,
        *,
        as_json: bool = False,
        asked: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
        options: RestoreOptions | None = None,
    ) -> None:
        self._session, self._as_json, self.asked = session, as_json, asked
        self._options = options or RestoreOptions()
        self._pieces: dict[Hashable, tuple[Restorer, list[str], list[str]]] = {}
        self.unresolved = 0

    def _create_restorer(self, act: Act, tool: str) -> Restorer:
        as_json = act is Act.ARGUMENTS or (self._as_json and act is Act.PROTECT)
        return self._session.restorer(
            escape="json" if as_json else "none",
            where="everywhere" if tool and self._options.names_tool(tool) else "text",
            hosts=self._options.hosts,
            value=act is Act.OBJECT,
            exact=act in (Act.ARGUMENTS, Act.OBJECT),
        )

    def text(self, came: str, act: Act = Act.PROTECT, tool: str = "") -> str:
        """Restores a whole text.

        `tool` is the name of the tool whose argument the text is.
        """
        restorer = self._create_restorer(act, tool)
        restored = restorer.feed(came) + restorer.close()
        self.unresolved += unresolved_in(restored)
        return restored

    def value(self, came: Any, tool: str = "") -> Any:
        """Restores all strings of any JSON, including field names.

        Field names may have been released, too.
        """
        if isinstance(came, str):
            return self.text(came, Act.OBJECT, tool)
        if isinstance(came, list):
            return [self.value(each, tool) for each in came]
        if isinstance(came, dict):
            items = came.items()
            return {
                self.text(name, Act.OBJECT, tool): self.value(each, tool) for name, each in items
            }
        return came

    def whole(
        self, came: Any, rule: LeafRule, text: Callable[[Path, str, Act], str] | None = None
    ) -> Any:
        """Restores a whole answer, or a part of one, by its table.

        Args:
            came: the JSON of the answer.
            rule: the table of its leaves.
            text: restores the text at a path, given the path, the text and its act; None to restore
                each text as a whole.
        """
        changed: dict[Path, Any] = {}
        for path, act, value in leaves(came, rule):
            if text is not None and act in TEXTS and isinstance(value, str):
                changed[path] = text(path, value, act)
            elif value is not None or act is not Act.DROP:
                changed[path] = self._restore_leaf(came, path, act, value)
        return rebuilt(came, changed)

    def _restore_leaf(self, answer: Any, path: Path, act: Act, value: Any) -> Any:
        """Restores one leaf of an answer by its act.

        Most leaves pass unchanged.
        """
        if act in TEXTS and isinstance(value, str):
            return self.text(value, act, _find_tool(answer, path) if act is Act.ARGUMENTS else "")
        if act in (Act.OBJECT, Act.ARGUMENTS, Act.SCHEMA, Act.UNKNOWN):
            return self.value(value, _find_tool(answer, path))
        if act is Act.OFFSET and isinstance(value, int):
            return self.offset(_find_nearest_text(answer, path), value)
        return DROPPED if act is Act.DROP else value

    def offset(self, came: str, place: int) -> int:
        """Converts a character offset in a received text to the restored text.

        Restoring the text before the offset does not count its unresolved placeholders again.
        """
        counted = self.unresolved
        length = len(self.text(came[:place])) + max(0, place - len(came))
        self.unresolved = counted
        return length

    def piece(self, key: Hashable, came: str, act: Act = Act.PROTECT, tool: str = "") -> str:
        """Restores the next piece of a streamed text, where certain.

        Args:
            key: identifies the text.
            came: the next piece of the text.
            act: whether it is text, or JSON written as text.
            tool: the tool whose argument the text is; "" for no tool.
        """
        if key not in self._pieces:
            self._pieces[key] = self._create_restorer(act, tool), [], []
        restorer, before, after = self._pieces[key]
        restored = restorer.feed(came)
        before.append(came)
        after.append(restored)
        return restored

    def rest(self, key: Hashable) -> str:
        """Returns the held-back end of a streamed text and closes it."""
        if key not in self._pieces:
            return ""
        restorer, _, after = self._pieces[key]
        restored = restorer.close()
        after.append(restored)
        self.unresolved += unresolved_in("".join(after))
        return restored

    def both(self, key: Hashable) -> tuple[str, str]:
        """Returns a streamed text so far, as received and as restored."""
        _, before, after = self._pieces[key]
        return "".join(before), "".join(after)


def unresolved_in(text: str) -> int:
    """Counts the placeholders left in a restored text."""
    return len(_PLACEHOLDER.findall(text))


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
    around, texts = answer, [""]
    for step in path:
        if isinstance(around, dict):
            inside = map(around.get, ("text", "content"))
            texts += [each for each in inside if isinstance(each, str)]
        around = around[step]
    return texts[-1]
