"""Values that no table names: read like text, and passed on with their release.

In: an unknown value of a request, and the policy. Out: the JSON to release; the value with its
release in it.
Not here: which values are unknown (`field_rules`), and how the JSON is released (`protect_message`).

Names of fields are text, too. What cannot be replaced by its release is refused by its path: a
number, and whatever would change the structure.
"""

import base64
import binascii
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import regex

from textveil.gateway.errors import RequestError
from textveil.gateway.policy.policy import Policy
from textveil.gateway.protocols.field_rules import Path, format_path

MAX_ENCODED = 256
"""Characters of Base64 up to which a string is read as text."""

MAX_NUMBERS = 32
"""Whole numbers up to which a list is read as numbers; longer ones may be tokens of a text."""

MIN_PIECE = 48
"""Characters of a piece of Base64; shorter ones are names and numbers."""

_RUN = regex.compile(
    r"(?<![A-Za-z0-9+/_\-])(?:[A-Za-z0-9+/_\-]{40,}+(?:\s|\\[nr]){1,4}+)*+[A-Za-z0-9+/_\-]++={0,2}"
)
_WORD = regex.compile(r"[A-Za-z0-9+/_\-]++")
_BREAK = regex.compile(r"\s|\\[nr]")
_DATA_URL = regex.compile(
    r"\bdata:(?:[\w.+\-]+/[\w.+\-]+[;,]|[^,\s]{0,100};base64,)", regex.IGNORECASE
)

MEDIA_FAULT = "cannot be protected: leave it out, or let the policy pass media (--media pass)"
NUMBER_FAULT = "is a private number, which nothing can stand for: leave it out, or write it as text"
PIECES_FAULT = "has a private value in pieces, which nothing can stand for: leave it out"
NAMES_FAULT = "cannot be sent: two fields would get one name, since theirs are private; rename them"
KIND_FAULT = "is no JSON, so it cannot be protected: leave it out"


def build_refusal(path: Path, body: Any, fault: str) -> RequestError:
    """Builds the error about the value at a path."""
    name = format_path(path, body)
    message = f"{name or 'the request'} {fault}"
    return RequestError(400, message, param=name or None, code="unprotected")


class UnknownValue:
    """Unknown value of a request, with its name. Secret.

    Args:
        path: the path of the value.
        value: the value.
        policy: decides about media, and about fields by their names.
        body: the request, for the paths in errors.

    Attributes:
        text: the JSON to release.
        passed: the number of media in it that pass unprotected.
        left_out: the number of fields in it that are not sent.

    Raises:
        RequestError: it has media, or a field that the policy refuses.
    """

    def __init__(self, path: Path, value: Any, policy: Policy, body: Any) -> None:
        self._path, self._policy, self._body = path, policy, body
        self._media: dict[Path, Any] = {}
        self.passed = self.left_out = 0
        self._value = self._read(value, path)
        # With its name, which is read, too, and says what the value is.
        named = isinstance(path[-1], str)
        self.text = json.dumps({path[-1]: self._value} if named else [self._value])

    def __repr__(self) -> str:
        return "UnknownValue()"

    def _read(self, value: Any, path: Path) -> Any:
        """Returns the part of a value that is released: media are null, some fields left out."""
        if isinstance(value, dict):
            return dict(self._read_fields(value, path))
        if isinstance(value, list | tuple):
            if _is_unreadable_list(value):
                for i, item in enumerate(value):
                    self._pass_media(item, (*path, i))
                return [None] * len(value)
            return [self._read(item, (*path, i)) for i, item in enumerate(value)]
        if isinstance(value, str) and is_unreadable(value):
            self._pass_media(value, path)
            return None
        is_finite = not isinstance(value, float) or math.isfinite(value)
        if not (value is None or isinstance(value, str | bool | int | float)) or not is_finite:
            raise build_refusal(path, self._body, KIND_FAULT)
        return value

    def _read_fields(self, value: dict[Any, Any], path: Path) -> Iterator[tuple[str, Any]]:
        for name, item in value.items():
            place = (*path, name)
            if not isinstance(name, str):
                raise build_refusal(path, self._body, KIND_FAULT)
            word = self._policy.decide_unknown(place)
            if word == "refuse":
                raise build_refusal(place, self._body, "is refused by the policy: leave it out")
            if word == "drop":
                self.left_out += 1
            else:
                yield name, self._read(item, place)

    def _pass_media(self, value: Any, path: Path) -> None:
        if self._policy.media == "refuse":
            raise build_refusal(path, self._body, MEDIA_FAULT)
        self._media[path] = value
        self.passed += 1

    def rebuild(self, released: str) -> tuple[str | int, Any, str]:
        """Returns the name and the value to send, and the path to show.

        Raises:
            RequestError: a value in it cannot be replaced by its release.
        """
        around, content = self._path[:-1], json.loads(released)
        if not content:
            raise build_refusal(self._path, self._body, PIECES_FAULT)
        is_named = isinstance(content, dict)
        ((name, item),) = content.items() if is_named else [(self._path[-1], content[0])]
        shown = (*around, name)
        value = self._merge(self._value, item, self._path, shown)
        return name, value, format_path(shown, self._body)

    def _merge(self, value: Any, released: Any, path: Path, shown: Path) -> Any:
        """Puts releases in place of the texts of a value.

        Args:
            value: the value as it was read.
            released: its release.
            path: the path of the value.
            shown: the same path with the released names, for errors.
        """
        if path in self._media:
            return self._media[path]
        if isinstance(value, dict):
            if not isinstance(released, dict) or len(released) != len(value):
                raise build_refusal(shown, self._body, NAMES_FAULT)
            pairs = zip(value.items(), released.items(), strict=True)
            return {
                new: self._merge(item, new_item, (*path, name), (*shown, new))
                for (name, item), (new, new_item) in pairs
            }
        if isinstance(value, list):
            if not isinstance(released, list) or len(released) != len(value):
                raise build_refusal(shown, self._body, PIECES_FAULT)
            return [
                self._merge(item, new_item, (*path, i), (*shown, i))
                for i, (item, new_item) in enumerate(zip(value, released, strict=True))
            ]
        if isinstance(value, str):
            if not isinstance(released, str):
                raise build_refusal(shown, self._body, PIECES_FAULT)
            return released
        if type(released) is not type(value) or released != value:
            raise build_refusal(shown, self._body, NUMBER_FAULT)
        return value


def is_unreadable(text: str) -> bool:
    """True if a string has media in it: a data URL, or Base64 that is no text."""
    if _DATA_URL.search(text):
        return True
    return len(text) > MAX_ENCODED and any(
        _is_encoded(_BREAK.sub("", run)) for run in _RUN.findall(text)
    )


def _is_encoded(run: str) -> bool:
    """True if a run of characters is Base64, or like it, and no encoded text."""
    letters = any(char.isalpha() for char in run)
    digits = any(char.isdigit() for char in run)
    if len(run) <= MAX_ENCODED or not (letters and digits and _RUN.fullmatch(run)):
        return False
    texts = [text for text in _decode(run) if _is_plain(text)]
    return not texts or any(_RUN.fullmatch(text) for text in texts)


def _decode(run: str) -> Iterator[str]:
    plain = run.rstrip("=").replace("-", "+").replace("_", "/")
    for decode in (bytes.fromhex, base64.b64decode):
        with suppress(ValueError, binascii.Error):
            padded = plain + "=" * (-len(plain) % 4) if decode is base64.b64decode else run
            yield decode(padded).decode()


def _is_plain(text: str) -> bool:
    return all(char.isprintable() or char.isspace() for char in text)


def _is_unreadable_list(items: Sequence[Any]) -> bool:
    """True for tokens of a text, and for Base64 in pieces."""
    if len(items) > MAX_NUMBERS and all(type(item) is int for item in items):
        return True
    is_cut = len(items) > 1 and all(map(_is_piece, items[:-1])) and isinstance(items[-1], str)
    return is_cut and _is_encoded("".join(items))


def _is_piece(item: Any) -> bool:
    return isinstance(item, str) and len(item) >= MIN_PIECE and bool(_WORD.fullmatch(item))
