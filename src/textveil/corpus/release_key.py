"""Release keys, and handles that carry them to workers.

The draws of a release follow from its key.

In: the operating system's entropy, or a seed. Out: a key in a file of its owner; digests that only
the owner can check.
Not here: draws (`randomness`), and how an executor carries a key to its workers (`executors`,
`ray`, `spark`).
"""

from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Protocol

from textveil.errors import ConfigError, quote_file
from textveil.files import work


class KeyHandle(Protocol):
    """A handle that workers get in place of a secret.

    A key, or another secret. It pickles.
    """

    def read(self) -> bytes:
        """Reads the key, or another secret.

        Raises:
            ConfigError: it is not there any more.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class KeyFile:
    """A run's release key in a file, for its owner only.

    Attributes:
        path: of its file.
        digest: SHA-256 of the key, which tells nothing of it.
    """

    path: Path
    digest: str

    def read(self) -> bytes:
        """Reads the key.

        Raises:
            ConfigError: it cannot be read, or is another one.
        """
        with suppress(OSError):
            key = self.path.read_bytes()
            if sha256(key).hexdigest() == self.digest:
                return key
        raise ConfigError(
            f"the key with which the run began, {quote_file(self.path.name)}, is no longer "
            "there, and without it the missing rows would be drawn as a different release; "
            "delete the output folder to start over"
        )

    def destroy(self) -> None:
        """Overwrites and deletes the key file, if there is one.

        Raises:
            ConfigError: the file is not the key of this release. It stays as it is.
        """
        content = self.path.read_bytes() if self.path.exists() else b""
        # zeros are left where this was interrupted
        if any(content) and sha256(content).hexdigest() != self.digest:
            raise ConfigError(
                f"{quote_file(self.path)} (--key-file) is not the key of this release, and stays "
                "unchanged: name the key with which the run began"
            )
        work.wipe(self.path)


def compute_mark(key: bytes, purpose: str, *parts: str | None) -> bytes:
    """Returns a keyed digest of strings: 16 bytes.

    Equal for equal strings, and no guess can be checked without the key.

    Args:
        key: of the release.
        purpose: what they are for; the same strings have other marks for other purposes.
        parts: the strings; None is not "".
    """
    digest = blake2b(key=key, digest_size=16, person=f"tv/{purpose}".encode()[:16])
    for part in parts:
        content = b"" if part is None else part.encode(errors="surrogatepass")
        # With lengths, ("ab", "c") and ("a", "bc") have different digests; 0 stands for None.
        digest.update((0 if part is None else len(content) + 1).to_bytes(8, "little") + content)
    return digest.digest()
