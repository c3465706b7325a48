"""A session: the only object that remembers anything between calls.

In: values that became placeholders, names that gave way to others, rows that were drawn. Out: the same placeholder for
the same value, the same row for the same word, and the way back.
Not here: how an answer is searched (`restore`), sessions on the disk (`keep`), and what is replaced (`pipeline`).
"""

import re
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Literal, Self

from pydantic import BaseModel, Field, ValidationError

from textveil.errors import InputError
from textveil.session.restore import Escape, Key, Node, Restorer, fold, tree
from textveil.text import is_public

_SPELLED = re.compile(r"<[A-Z0-9_]+_[0-9]+>")

VERSION: Literal[1] = 1
"""Of the form in which a session is kept; a change that older versions cannot read makes it another one."""


class Session:
    """Placeholder numbers, replaced names, consistent draws and the way back, in memory, for one owner.

    Within a session the same value gets the same placeholder, so which placeholders are equal is released with the
    text. Values are compared without case, and any whitespace is one space. Two sessions never share a map. Safe to
    use from several threads.

    Args:
        owner: whose session it is; any label, never released.
    """

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self._lock = Lock()
        self._placeholders: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._replaced: dict[str, dict[str, tuple[str, str]]] = {}
        self._owners: dict[str, str] = {}
        self._said: set[str] = set()
        self._spelled: set[str] = set()
        self._drawn: dict[tuple[str, str, str], int] = {}
        self._tree: Node | None = None

    def __repr__(self) -> str:
        """Only how much there is."""
        return f"Session({len(self._values)} placeholders, {len(self._replaced)} replacements)"

    # ---- what is remembered ------------------------------------------------------------------------------------------

    def placeholder(self, kind: str, value: str) -> str:
        """The placeholder of a value: `<KIND_1>`, `<KIND_2>`, ... in order of first appearance.

        Args:
            kind: what stands there, upper-case ("PERSON").
            value: the private text; the first spelling of a value is the one that comes back.
        """
        key = (kind, fold(value))
        with self._lock:
            if key not in self._placeholders:
                number = self._counts.get(kind, 0) + 1
                while f"<{kind}_{number}>" in self._spelled:
                    number += 1
                self._counts[kind] = number
                self._placeholders[key] = f"<{kind}_{number}>"
                self._values[self._placeholders[key]] = value
                self._tree = None
            return self._placeholders[key]

    def spelled(self, released: str) -> None:
        """Remember placeholders that a text itself spells: no value gets one of those from now on.

        Args:
            released: what of the text passes. Of words that do not, a placeholder's number would tell.
        """
        found = _SPELLED.findall(released.upper())
        with self._lock:
            self._spelled.update(found)

    def stands(self, original: str, shown: str) -> bool:
        """Whether a name may stand for this original: if it has stood for no other yet, and was not said.

        That tells which originals are equal, so it may be asked only where the mask says that too: where equal words
        are released alike.
        """
        with self._lock:
            if self._is_said(fold(shown)):
                return False
            return self._owners.setdefault(fold(shown), fold(original)) == fold(original)

    def replaced(self, original: str, shown: str) -> None:
        """Remember that a released name stands for another one.

        Args:
            original: the private name.
            shown: the name that is released in its place. It is restored as long as it stands for one original only,
                was not said, and is no word of the public list.
        """
        with self._lock:
            self._replaced.setdefault(fold(shown), {}).setdefault(fold(original), (shown, original))
            self._tree = None

    def said(self, words: Iterable[str]) -> None:
        """Remember words that were released as they stood: in an answer they are themselves and no replacement."""
        with self._lock:
            self._said.update(map(fold, words))
            self._tree = None

    def consistent(self, law: str, keys: Sequence[tuple[str, str]], rows: Sequence[int]) -> list[int]:
        """The row of each word that was drawn first in this session, and now for words that are new.

        Args:
            law: what the rows were drawn by; rows of another law do not count.
            keys: (word, group) of each; letter case is ignored.
            rows: the rows to take for words that are new.
        """
        with self._lock:
            return [
                self._drawn.setdefault((law, fold(word), group), row)
                for (word, group), row in zip(keys, rows, strict=True)
            ]

    # ---- the way back ------------------------------------------------------------------------------------------------

    def restore(self, text: str, *, escape: Escape = "none") -> str:
        """An answer with the originals in place of placeholders, and of names that stand for one original only.

        Args:
            text: what came back.
            escape: "json" if the text is JSON, or the inside of a JSON string: the originals are then escaped.
        """
        restorer = self.restorer(escape=escape)
        return restorer.feed(text) + restorer.close()

    def restorer(self, *, escape: Escape = "none") -> Restorer:
        """The same for an answer that comes in pieces; it knows what the session knows now."""
        with self._lock:
            if self._tree is None:
                self._tree = self._grown()
            return Restorer(self._tree, escape)

    def _grown(self) -> Node:
        names = []
        for shown, originals in self._replaced.items():
            spelled, original = next(iter(originals.values()))
            certain = len(originals) == 1 and not self._is_said(shown)
            names.append(Key(spelled, original if certain else None, "name"))
        return tree(self._values, names, frozenset(self._said))

    def _is_said(self, shown: str) -> bool:
        return is_public(shown) or shown in self._said or self._said.issuperset(shown.split())

    # ---- to be kept --------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """All of it as one JSON object, with the originals in clear."""
        with self._lock:
            draws: dict[str, list[_Draw]] = {}
            for (law, word, group), row in self._drawn.items():
                draws.setdefault(law, []).append(_Draw(word=word, group=group, row=row))
            return _Kept(
                owner=self.owner,
                placeholders=[
                    _Placeholder(
                        type=kind, number=int(placeholder[len(kind) + 2 : -1]), value=self._values[placeholder]
                    )
                    for (kind, _), placeholder in self._placeholders.items()
                ],
                replacements=[
                    _Replacement(shown=shown, original=original, owns=self._owners.get(fold(shown)) == fold(original))
                    for originals in self._replaced.values()
                    for shown, original in originals.values()
                ],
                said=sorted(self._said),
                draws=draws,
            ).model_dump_json(indent=1)

    @classmethod
    def from_json(cls, content: str | bytes) -> Self:
        """The session that `to_json` wrote; `InputError` where it did not."""
        try:
            kept = _Kept.model_validate_json(content)
        except ValidationError:
            kept = None
        if kept is None:  # raised out here, because the other error holds the values
            raise InputError(f"a session must be one that textveil kept, of version {VERSION}, and this is not")
        session = cls(kept.owner)
        for each in kept.placeholders:
            placeholder = f"<{each.type}_{each.number}>"
            if placeholder in session._values or (each.type, fold(each.value)) in session._placeholders:
                raise InputError("a session must have one placeholder for one value, and this has not")
            session._placeholders[each.type, fold(each.value)] = placeholder
            session._values[placeholder] = each.value
            session._counts[each.type] = max(each.number, session._counts.get(each.type, 0))
        for name in kept.replacements:
            session.replaced(name.original, name.shown)
            if name.owns:
                session._owners[fold(name.shown)] = fold(name.original)
        session.said(kept.said)
        for law, draws in kept.draws.items():
            session.consistent(law, [(each.word, each.group) for each in draws], [each.row for each in draws])
        return session


class _Part(BaseModel, strict=True, extra="forbid", frozen=True):
    pass


class _Placeholder(_Part):
    type: str = Field(min_length=1)
    number: int = Field(ge=1)
    value: str


class _Replacement(_Part):
    shown: str = Field(pattern=r"\S")
    original: str
    owns: bool


class _Draw(_Part):
    word: str
    group: str
    row: int


class _Kept(_Part):
    format: Literal["textveil session"] = "textveil session"
    version: Literal[1] = VERSION
    owner: str
    placeholders: list[_Placeholder]
    replacements: list[_Replacement]
    said: list[str]
    draws: dict[str, list[_Draw]]
