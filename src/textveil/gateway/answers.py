"""Answers: what an upstream says, restored by the table of its API, whole or piece by piece.

In: JSON of an answer, or of its events, and a session. Out: the same with the originals put back.
Not here: the tables and the events of an API (`protocols`), how a text is restored (`session`).

What no table names is restored as text: it comes from the upstream, which saw released text only.
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
    rf"{OPENING}[A-Z][A-Z0-9_]*_[0-9]+(?:_[A-Z]+)*{CLOSING}|{OPENING}[A-Z][A-Z0-9]*_[A-Z0-9_]*(?:&(?:g|gt)?)?\Z"
)
"""What looks like a placeholder, also one that was never given, and one that breaks off."""


TEXTS = frozenset({Act.PROTECT, Act.ARGUMENTS, Act.SIGNED})
"""What is one text where it is a string."""


@options("restore.")
class RestoreOptions:
    """Where originals are put back in answers though they would be joined into an address in which they did not stand.

    Attributes:
        hosts: into addresses of these hosts; `*.example.org` for all below a name.
        tools: everywhere in the arguments of these tools, which write local files and open nothing; `*` in a name
            stands for anything.
    """

    hosts: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    tools: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    def names_tool(self, name: str) -> bool:
        """Whether a tool is one of them."""
        return any(fnmatchcase(name, each) for each in self.tools)


class Restoring:
    """Restores one answer.

    Args:
        session: of the request.
        as_json: whether texts of the answer are JSON, so that originals must be escaped.
        asked: the request as it was sent, and as the client gave it.
        options: where originals are put though it is not certain that nothing sends them away.

    Attributes:
        unresolved: placeholders that the model invented, or that were left where restoring them would send them away.
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

    def _restorer(self, act: Act, tool: str) -> Restorer:
        as_json = act is Act.ARGUMENTS or (self._as_json and act is Act.PROTECT)
        return self._session.restorer(
            escape="json" if as_json else "none",
            where="everywhere" if tool and self._options.names_tool(tool) else "text",
            hosts=self._options.hosts,
            value=act is Act.OBJECT,
            exact=act in (Act.ARGUMENTS, Act.OBJECT),
        )

    def text(self, came: str, act: Act = Act.PROTECT, tool: str = "") -> str:
        """A whole text; `tool` is the one whose argument it is."""
        restorer = self._restorer(act, tool)
        made = restorer.feed(came) + restorer.close()
        self.unresolved += unresolved_in(made)
        return made

    def value(self, came: Any, tool: str = "") -> Any:
        """Any JSON: its texts, the names of fields too, since they may have been released."""
        if isinstance(came, str):
            return self.text(came, Act.OBJECT, tool)
        if isinstance(came, list):
            return [self.value(each, tool) for each in came]
        if isinstance(came, dict):
            own = came.items()
            return {self.text(name, Act.OBJECT, tool): self.value(each, tool) for name, each in own}
        return came

    def whole(
        self, came: Any, rule: LeafRule, text: Callable[[Path, str, Act], str] | None = None
    ) -> Any:
        """A whole answer, or a part of one.

        Args:
            came: its JSON.
            rule: its table.
            text: restores a text at a path; None where all texts are whole.
        """
        changed: dict[Path, Any] = {}
        for path, act, value in leaves(came, rule):
            if text is not None and act in TEXTS and isinstance(value, str):
                changed[path] = text(path, value, act)
            elif value is not None or act is not Act.DROP:
                changed[path] = self._leaf(came, path, act, value)
        return rebuilt(came, changed)

    def _leaf(self, came: Any, path: Path, act: Act, value: Any) -> Any:
        """Gives what becomes of a leaf of a part of an answer; most pass."""
        if act in TEXTS and isinstance(value, str):
            return self.text(value, act, _tool(came, path) if act is Act.ARGUMENTS else "")
        if act in (Act.OBJECT, Act.ARGUMENTS, Act.SCHEMA, Act.UNKNOWN):
            return self.value(value, _tool(came, path))
        if act is Act.OFFSET and isinstance(value, int):
            return self.offset(_beside(came, path), value)
        return DROPPED if act is Act.DROP else value

    def offset(self, came: str, place: int) -> int:
        """Where in a restored text stands what stood at some place of the text that came."""
        counted = self.unresolved
        made = len(self.text(came[:place])) + max(0, place - len(came))
        self.unresolved = counted
        return made

    def piece(self, key: Hashable, came: str, act: Act = Act.PROTECT, tool: str = "") -> str:
        """What is certain of a text that comes in pieces.

        Args:
            key: which text.
            came: its next piece.
            act: whether it is text, or JSON written as text.
            tool: whose argument it is, if it is one.
        """
        if key not in self._pieces:
            self._pieces[key] = self._restorer(act, tool), [], []
        restorer, before, after = self._pieces[key]
        made = restorer.feed(came)
        before.append(came)
        after.append(made)
        return made

    def rest(self, key: Hashable) -> str:
        """What was held back of a text, at its end."""
        if key not in self._pieces:
            return ""
        restorer, _, after = self._pieces[key]
        made = restorer.close()
        after.append(made)
        self.unresolved += unresolved_in("".join(after))
        return made

    def both(self, key: Hashable) -> tuple[str, str]:
        """A text as it came, and as it was restored."""
        _, before, after = self._pieces[key]
        return "".join(before), "".join(after)


def unresolved_in(text: str) -> int:
    """How many placeholders stand in a restored text."""
    return len(_PLACEHOLDER.findall(text))


def _tool(came: Any, path: Path) -> str:
    """The name of the tool whose arguments stand at a place: it stands beside them."""
    for step in path[:-1]:
        came = came[step]
    name = came.get("name") if isinstance(came, dict) else None
    return name if isinstance(name, str) else ""


def _beside(came: Any, path: Path) -> str:
    """The text that is nearest to a place: in the innermost object around it that has one."""
    around, texts = came, [""]
    for step in path:
        if isinstance(around, dict):
            inside = map(around.get, ("text", "content"))
            texts += [each for each in inside if isinstance(each, str)]
        around = around[step]
    return texts[-1]
