"""Whether bytes show a secret, in any of the ways to write it.

In: bytes, a secret. Out: whether it is there, escaped or encoded up to two times.
Not here: where the bytes come from (`servers`).
"""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

_RUN = re.compile(r"[A-Za-z0-9+/_\-]{8,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){6,}")
_ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")


def shows(raw: bytes, secret: str) -> bool:
    """Whether bytes show a secret: its letters and figures in their order, in any of the readings of the bytes."""
    sought = _bare(secret)
    return any(sought in _bare(reading) for reading in readings(raw.decode("utf-8", "replace")))


def readings(text: str) -> set[str]:
    """A text, and what it says where it is escaped or encoded, one time or two."""
    found = {text}
    for _ in range(2):
        found |= {made for each in found for made in _decoded(each)}
    return found


def _decoded(text: str) -> Iterator[str]:
    yield unquote(text)
    yield html.unescape(text)
    yield _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    for run in _RUN.findall(text):
        with suppress(binascii.Error, UnicodeDecodeError):
            plain = run.rstrip("=").replace("-", "+").replace("_", "/")
            yield base64.b64decode(plain + "=" * (-len(plain) % 4)).decode()
    for run in _HEX.findall(text):
        with suppress(UnicodeDecodeError):
            yield bytes.fromhex(run).decode()


def _bare(text: str) -> str:
    """Letters and figures as Unicode folds them, without what stands between them."""
    return "".join(
        char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum()
    )
