"""Answers: what an upstream says, restored by the table of its API, whole or piece by piece.

In: JSON of an answer, or of its events, and a session. Out: the same with the originals put back.
Not here: the tables and the events of an API (`protocols`), how a text is restored (`session`).

What no table names is restored as text: it comes from the upstream, which saw released text only.
"""

from collections.abc import Callable, Hashable
from typing import Any

import regex

from textveil.gateway.leaves import DROPPED, Act, LeafRule, Path, leaves, rebuilt
from textveil.session import Restorer, Session

_PLACEHOLDER = regex.compile(r"<[A-Z][A-Z0-9_]*_[0-9]+(?:_[A-Z]+)*>|<[A-Z][A-Z0-9]*_[A-Z0-9_]*\Z")
"""What looks like a placeholder, also one that was never given, and one that breaks off."""


class Restoring:
    """Restores one answer.

    Args:
        session: of the request.
        as_json: whether texts of the answer are JSON, so that originals must be escaped.
        asked: the request as it was sent, and as the client gave it.

    Attributes:
        unresolved: placeholders that the model invented, or that were left where restoring them would send them away.
    """

    def __init__(
        self, session: Session, *, as_json: bool = False, asked: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    ) -> None:
        self._session, self._as_json, self.asked = session, as_json, asked
        self._pieces: dict[Hashable, tuple[Restorer, list[str], list[str]]] = {}
        self.unresolved = 0

    def _restorer(self, act: Act) -> Restorer:
        as_json = act is Act.ARGUMENTS or (self._as_json and act is Act.PROTECT)
        return self._session.restorer(
            escape="json" if as_json else "none",
            value=act is Act.OBJECT,
            exact=act in (Act.ARGUMENTS, Act.OBJECT),
        )

    def text(self, came: str, act: Act = Act.PROTECT) -> str:
        """A whole text."""
        restorer = self._restorer(act)
        made = restorer.feed(came) + restorer.close()
        self.unresolved += unresolved_in(made)
        return made

    def value(self, came: Any) -> Any:
        """Any JSON: its texts, the names of fields too, since they may have been released."""
        if isinstance(came, str):
            return self.text(came, Act.OBJECT)
        if isinstance(came, list):
            return [self.value(each) for each in came]
        if isinstance(came, dict):
            return {self.text(name, Act.OBJECT): self.value(each) for name, each in came.items()}
        return came

    def whole(self, came: Any, rule: LeafRule, text: Callable[[Path, str, Act], str] | None = None) -> Any:
        """A whole answer, or a part of one.

        Args:
            came: its JSON.
            rule: its table.
            text: restores a text at a path; None where all texts are whole.
        """
        changed: dict[Path, Any] = {}
        for path, act, value in leaves(came, rule):
            if act in (Act.PROTECT, Act.ARGUMENTS, Act.SIGNED) and isinstance(value, str):
                changed[path] = self.text(value, act) if text is None else text(path, value, act)
            elif act in (Act.OBJECT, Act.ARGUMENTS, Act.SCHEMA, Act.UNKNOWN):
                changed[path] = self.value(value)
            elif act is Act.OFFSET and isinstance(value, int):
                changed[path] = self.offset(_beside(came, path), value)
            elif act is Act.DROP and value is not None:
                changed[path] = DROPPED
        return rebuilt(came, changed)

    def offset(self, came: str, place: int) -> int:
        """Where in a restored text stands what stood at some place of the text that came."""
        counted = self.unresolved
        made = len(self.text(came[:place])) + max(0, place - len(came))
        self.unresolved = counted
        return made

    def piece(self, key: Hashable, came: str, act: Act = Act.PROTECT) -> str:
        """What is certain of a text that comes in pieces.

        Args:
            key: which text.
            came: its next piece.
            act: whether it is text, or JSON written as text.
        """
        if key not in self._pieces:
            self._pieces[key] = self._restorer(act), [], []
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


def _beside(came: Any, path: Path) -> str:
    """The text that is nearest to a place: in the innermost object around it that has one."""
    around, texts = came, [""]
    for step in path:
        if isinstance(around, dict):
            texts += [around[name] for name in ("text", "content") if isinstance(around.get(name), str)]
        around = around[step]
    return texts[-1]
