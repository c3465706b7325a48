"""Keys of the deployment and of each session, and their stores.

In: a folder, the keyring of the operating system, or the environment. Out: keys, created where
there are none.
Not here: what is encrypted with them (`encryption`).

The database alone is unreadable. To destroy the key of a session destroys the session, in all
copies of the database, too; so keys lie apart from it, and do not belong into its backups.
"""

import os
import re
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from textveil.config.extras import import_library
from textveil.config.secret_files import read_secret_variable
from textveil.errors import ConfigError, StoreError
from textveil.files import locks
from textveil.files.text_streams import replace_file
from textveil.randomness import read_entropy
from textveil.session.session_file import lock_file

KEY_BYTES = 32
"""Bytes of a key."""

KEY_VARIABLE = "TEXTVEIL_STORE_KEY"
"""Environment variable for the deployment key, as 64 hexadecimal digits."""

FOLDER_VARIABLE = "TEXTVEIL_KEYS"
"""Environment variable for the folder of keys, or `keyring`."""

DEPLOYMENT_NAME = "deployment"
"""Name of the deployment key."""


class KeyStore(ABC):
    """Store of small secrets by name.

    Names have letters, digits, hyphens and slashes.
    """

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Reads a secret; None where there is none."""

    @abstractmethod
    def add(self, name: str, content: bytes) -> bytes:
        """Stores a secret unless the name is taken; returns the stored one."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None:
        """Stores a secret in place of an earlier one."""

    def advance(self, name: str, content: bytes, *, sync: bool) -> None:
        """Stores a secret unless the stored one is greater in byte order.

        Args:
            name: name of the secret.
            content: the secret, as long as the stored one.
            sync: True if it must survive a power cut; else the earlier one may come back.
        """
        if (self.get(name) or b"") < content:
            self.put(name, content)

    @abstractmethod
    def destroy(self, name: str) -> None:
        """Destroys a secret, if there is one."""


class FolderKeyStore(KeyStore):
    """Key files in a folder that only their owner can read.

    Args:
        path: the folder; it is created when a secret is stored.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def __str__(self) -> str:
        return "the folder of keys"

    def get(self, name: str) -> bytes | None:
        """See `KeyStore`.

        Raises:
            StoreError: the file cannot be read, or others than its owner can read it.
        """
        try:
            with open(self._build_path(name), "rb") as stream:
                other_bits = stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077
                # `advance` writes in place, so a file could be read half-written.
                locks.lock_file(stream.fileno(), share=True)
                if other_bits and os.name == "posix":
                    raise StoreError(
                        "a key must be readable by its owner only: chmod 600 the files in the key "
                        "folder"
                    )
                return bytes.fromhex(stream.read().decode("ascii"))
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = error.strerror
        except ValueError:
            reason = "it is damaged"
        raise StoreError(f"a key cannot be read: {reason}")

    def add(self, name: str, content: bytes) -> bytes:
        """See `KeyStore`. A file is there whole or not at all."""
        path = self._write_temporary(name, content)
        try:
            # Unlike a rename, a link fails where the name is taken, so the first key stays.
            with suppress(FileExistsError):
                os.link(path, self._build_path(name))
        finally:
            os.unlink(path)
        _sync_folder(self._build_path(name).parent)
        stored = self.get(name)
        if stored is None:
            raise StoreError("a key vanished while it was written; try again")
        return stored

    def put(self, name: str, content: bytes) -> None:
        """See `KeyStore`."""
        replace_file(self._write_temporary(name, content), self._build_path(name))
        _sync_folder(self._build_path(name).parent)

    def advance(self, name: str, content: bytes, *, sync: bool) -> None:
        """See `KeyStore`. Written in place, because a renamed file is always synced."""
        if not os.path.exists(self._build_path(name)) and self.add(name, content) == content:
            return
        with open(self._build_path(name), "r+b", buffering=0) as stream:
            locks.lock_file(stream.fileno())
            digits = content.hex().encode("ascii")
            # Hexadecimal digits of equal length sort like the bytes they stand for.
            if stream.read() < digits:
                stream.seek(0)
                stream.write(digits)
                if sync:
                    os.fsync(stream.fileno())

    def destroy(self, name: str) -> None:
        """See `KeyStore`. Overwritten first, which not all disks do in place."""
        path = self._build_path(name)
        with suppress(FileNotFoundError):
            with open(path, "r+b", buffering=0) as stream:
                stream.write(b"0" * os.fstat(stream.fileno()).st_size)
                os.fsync(stream.fileno())
            os.unlink(path)
            _sync_folder(path.parent)

    def _build_path(self, name: str) -> Path:
        return self._path / f"{name}.key"

    def _write_temporary(self, name: str, content: bytes) -> str:
        folder = self._build_path(name).parent
        for directory in (self._path, folder):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(dir=folder)  # readable by its owner only
        with open(descriptor, "wb") as stream:
            stream.write(content.hex().encode())
            stream.flush()
            os.fsync(stream.fileno())
        return path


class KeyringKeyStore(KeyStore):
    """Keyring of the operating system.

    Raises:
        StoreError: there is none.
    """

    def __init__(self) -> None:
        self._keyring = import_library("keyring")
        if self._keyring.get_keyring().priority <= 0:
            raise StoreError(
                "this machine has no keyring; name a folder for keys with TEXTVEIL_KEYS, or set "
                "TEXTVEIL_STORE_KEY"
            )

    def __str__(self) -> str:
        return "the keyring"

    def get(self, name: str) -> bytes | None:
        """See `KeyStore`."""
        with _convert_errors():
            secret = self._keyring.get_password("textveil", name)
        return None if secret is None else bytes.fromhex(secret)

    def add(self, name: str, content: bytes) -> bytes:
        """See `KeyStore`."""
        os.makedirs(_find_default_folder(), mode=0o700, exist_ok=True)
        # The keyring has no lock: two processes could add at once.
        with lock_file(os.path.join(_find_default_folder(), "keyring")):
            if self.get(name) is None:
                self.put(name, content)
            return self.get(name) or content

    def put(self, name: str, content: bytes) -> None:
        """See `KeyStore`."""
        with _convert_errors():
            self._keyring.set_password("textveil", name, content.hex())

    def destroy(self, name: str) -> None:
        """See `KeyStore`."""
        if self.get(name) is not None:
            with _convert_errors():
                self._keyring.delete_password("textveil", name)


def open_key_store(location: str | os.PathLike[str] | None) -> KeyStore:
    """Opens the key store.

    Args:
        location: a folder, or "keyring"; None for the value of TEXTVEIL_KEYS, else
            `~/.local/share/textveil/keys`.
    """
    location = os.fspath(location or os.environ.get(FOLDER_VARIABLE) or _find_default_folder())
    return KeyringKeyStore() if location == "keyring" else FolderKeyStore(location)


def read_deployment_key(key_store: KeyStore, *, make: bool) -> bytes:
    """Reads the deployment key, from TEXTVEIL_STORE_KEY, its file, or the key store.

    Args:
        key_store: the key store.
        make: True to create a key where there is none, because nothing is encrypted yet.

    Raises:
        ConfigError: the environment variable, or the file of TEXTVEIL_STORE_KEY_FILE, holds no key.
        StoreError: there is none.
    """
    if variable := read_secret_variable(KEY_VARIABLE):
        if re.fullmatch(r"[0-9a-fA-F]{64}", variable) is None:
            raise ConfigError(
                f"{KEY_VARIABLE} must be a key of 64 hexadecimal digits, as `openssl rand -hex "
                "32` prints it"
            )
        return bytes.fromhex(variable)
    key = (
        key_store.add(DEPLOYMENT_NAME, read_entropy(KEY_BYTES))
        if make
        else key_store.get(DEPLOYMENT_NAME)
    )
    if key is None:
        raise StoreError(
            f"the key of this store is missing: set {KEY_VARIABLE} to the key, or "
            f"{FOLDER_VARIABLE} to the folder that holds {DEPLOYMENT_NAME}.key. Nothing was read "
            "or written"
        )
    if len(key) != KEY_BYTES:
        raise StoreError("the key of this store is damaged; restore it from your copy")
    return key


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Converts an error of the keyring to one line."""
    try:
        yield
        return
    except import_library("keyring.errors").KeyringError as error:
        reason = type(error).__name__
    raise StoreError(
        f"the keyring cannot be used ({reason}): unlock it, or name a folder for keys with "
        f"{FOLDER_VARIABLE}"
    ) from None


def _find_default_folder() -> str:
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(
        os.path.expanduser("~"), ".local", "share"
    )
    return os.path.join(base, "textveil", "keys")


def _sync_folder(folder: Path) -> None:
    """Syncs the names in a folder to the disk."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
