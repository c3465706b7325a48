"""Release keys: what the draws of one release follow from, and what a worker is handed in place of the key.

In: the operating system's entropy, or a seed. Out: a key in a file of its owner; digests that only the owner can check.
Not here: draws (`randomness`), and how an executor carries a key to its workers (`executors`, `ray`, `spark`).
"""

from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Protocol

from textveil.errors import ConfigError, quote_file
from textveil.files import work


class KeyHandle(Protocol):
    """What a worker is handed in place of a key, or of another secret. It pickles."""

    def read(self) -> bytes:
        """The key, or the secret.

        Raises:
            ConfigError: it is not there any more.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class KeyFile:
    """Where a run's release key is kept, for its owner only.

    Attributes:
        path: of its file.
        digest: SHA-256 of the key, which tells nothing of it.
    """

    path: Path
    digest: str

    def read(self) -> bytes:
        """The key.

        Raises:
            ConfigError: it cannot be read, or is another one.
        """
        with suppress(OSError):
            key = self.path.read_bytes()
            if sha256(key).hexdigest() == self.digest:
                return key
        raise ConfigError(
            f"the key with which the run began, {quote_file(self.path.name)}, is no longer there, and without it the "
            "missing rows would be drawn as another release; delete the output folder to start over"
        )

    def destroy(self) -> None:
        """Overwrite and delete the key; nothing, where it is gone.

        Raises:
            ConfigError: the file is not the key of this release. It stays as it is.
        """
        found = self.path.read_bytes() if self.path.exists() else b""
        # zeros are left where this was interrupted
        if any(found) and sha256(found).hexdigest() != self.digest:
            raise ConfigError(
                f"{quote_file(self.path)} (--key-file) is not the key of this release, and stays as it is: name the "
                "key with which the run began"
            )
        work.wipe(self.path)


def mark(key: bytes, purpose: str, *parts: str | None) -> bytes:
    """16 bytes that stand for some strings: equal for equal ones, and no guess can be checked without the key.

    Args:
        key: of the release.
        purpose: what they are for; the same strings have other marks for other purposes.
        parts: the strings; None is not "".
    """
    digest = blake2b(key=key, digest_size=16, person=f"tv/{purpose}".encode()[:16])
    for part in parts:
        content = b"" if part is None else part.encode(errors="surrogatepass")
        digest.update((0 if part is None else len(content) + 1).to_bytes(8, "little") + content)
    return digest.digest()
