"""Seals: authenticated encryption that binds each row to its place.

In: keys; a kind, a key, a value. Out: the name under which a row is looked up, and its sealed
content.
Not here: where keys lie (`key_stores`), and the meaning of the rows (`lazy_snapshot`).

Content is encrypted with AES-256-GCM. Its associated data names the store, the account, the
session, the kind and the row, so content that is copied elsewhere does not open. Rows are looked up
by HMAC-SHA256 under a key derived from those of the account and of the session: equal values of two
sessions have nothing in common.
"""

import hmac
from collections.abc import Sequence
from functools import cache
from typing import Any

from textveil.config.extras import import_library
from textveil.errors import StoreError
from textveil.randomness import read_entropy

NONCE_BYTES = 12
"""Bytes of a nonce, drawn anew for each row.

A key seals far fewer than 2^32 rows.
"""

NAME_BYTES = 16
"""Bytes of the name of a store, account, session or row."""

PADDING_BYTES = 32
"""Content is padded to a multiple of this, to hide its length."""


def join_parts(parts: Sequence[bytes]) -> bytes:
    """Concatenates parts with their lengths, so that the result is unambiguous."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def derive(key: bytes, *parts: bytes) -> bytes:
    """Derives a key or name from a key (HMAC-SHA256), without revealing it."""
    return hmac.digest(key, join_parts(parts), "sha256")


class Cipher:
    """Authenticated encryption under one key.

    Args:
        key: 32 bytes.
        *place: names of the place that all content is bound to.
    """

    def __init__(self, key: bytes, *place: bytes) -> None:
        self._aes = _load_aesgcm()(key)
        self._place = join_parts(place)

    def __repr__(self) -> str:
        return "Cipher()"

    def seal(self, content: bytes, *place: bytes) -> bytes:
        """Encrypts content, bound to a place."""
        nonce = read_entropy(NONCE_BYTES)
        # Spaces, because readers of JSON ignore them at the end.
        plaintext = content + b" " * (-len(content) % PADDING_BYTES)
        return nonce + bytes(self._aes.encrypt(nonce, plaintext, self._join_place(place)))

    def open(self, ciphertext: bytes, *place: bytes) -> bytes:
        """Decrypts content, with padding spaces at its end.

        Raises:
            StoreError: the key is wrong, or the content was changed or moved.
        """
        try:
            return bytes(
                self._aes.decrypt(
                    ciphertext[:NONCE_BYTES], ciphertext[NONCE_BYTES:], self._join_place(place)
                )
            )
        except _load_errors():
            pass
        raise StoreError(
            "the key does not fit the store, or other programs changed the store: use the key that "
            "the store was written with, or restore both from a backup. Nothing was written"
        )

    def _join_place(self, place: tuple[bytes, ...]) -> bytes:
        """Returns the associated data: the place of the content."""
        return self._place + join_parts(place)


class RowCipher:
    """Encryption and names of one session's rows.

    Args:
        store: name of the store.
        account: name of the account.
        place: name of the session.
        account_key: key of the account.
        session_key: key of the session.
    """

    def __init__(
        self, store: bytes, account: bytes, place: bytes, account_key: bytes, session_key: bytes
    ) -> None:
        self._cipher = Cipher(derive(session_key, b"rows"), store, account, place)
        self._name_key = derive(account_key, b"look-up", derive(session_key, b"look-up"))

    def derive_name(self, kind: str, key: bytes) -> bytes:
        """Derives the name of a row."""
        return hmac.digest(self._name_key, kind.encode() + b"\0" + key, "sha256")[:NAME_BYTES]

    def seal(self, kind: str, name: bytes, content: bytes) -> bytes:
        """Encrypts the content of a row."""
        return self._cipher.seal(content, kind.encode(), name)

    def open(self, kind: str, name: bytes, ciphertext: bytes) -> bytes:
        """Decrypts the content of a row; see `Cipher`."""
        return self._cipher.open(ciphertext, kind.encode(), name)


@cache
def _load_aesgcm() -> Any:
    return import_library("cryptography.hazmat.primitives.ciphers.aead").AESGCM


@cache
def _load_errors() -> tuple[Any, ...]:
    return import_library("cryptography.exceptions").InvalidTag, ValueError
