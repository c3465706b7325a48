"""Work folders: where a run keeps what is finished of one file, held by one process and for its owner only.

In: the folder's path, and names and contents of files in it. Out: files that are whole or not there.
Not here: what is in the files, and what a run does with them (`corpus`).

Everything is done relative to the folder that was locked, not to its path. When somebody deletes the folder under a run
and another run makes a new one of that name, the first run fails and cannot reach the second one's.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import BinaryIO

from textveil.errors import ConfigError, InputError
from textveil.files import streams

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BUSY = "another process is at work on it; wait until it has ended"


@dataclass(frozen=True, kw_only=True)
class Work:
    """A work folder, as long as this process holds it.

    Attributes:
        path: its name in the file system, which may come to mean another folder.
        descriptor: the folder itself.
    """

    path: Path
    descriptor: int

    def names(self) -> set[str]:
        """The files in it."""
        with streams.writing():
            return set(os.listdir(self.descriptor))

    def read(self, name: str) -> bytes:
        """A file of it; `InputError` where it cannot be read."""
        try:
            with open(name, "rb", opener=self._opener(0)) as stream:
                return stream.read()
        except OSError as error:
            raise InputError(f"{name} in {self.path.name} cannot be read: {error.strerror}") from None

    def digest(self, name: str) -> str:
        """SHA-256 of a file of it."""
        with streams.writing(), open(name, "rb", opener=self._opener(0)) as stream:
            return file_digest(stream, "sha256").hexdigest()

    @contextmanager
    def writing(self, name: str, mode: int = 0o600) -> Iterator[BinaryIO]:
        """A file that gets its name when it is whole and on the disk.

        Args:
            name: the file's.
            mode: who may read it at most.
        """
        part = f"{name}.part"
        with suppress(OSError):
            os.unlink(part, dir_fd=self.descriptor)
        try:
            with streams.writing():
                with open(part, "xb", opener=self._opener(mode)) as stream:
                    yield stream
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(part, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
                self._sync()
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=self.descriptor)
            raise

    def publish(self, name: str, path: Path) -> None:
        """Give a file its place outside, in the folder beside."""
        with streams.writing():
            os.replace(name, path, src_dir_fd=self.descriptor)
            streams.sync_folder(str(path))

    def delete(self, name: str) -> None:
        """Delete a file of it."""
        with streams.writing():
            os.unlink(name, dir_fd=self.descriptor)

    def wipe(self, name: str) -> None:
        """Overwrite a file of it with zeros, and delete it. What the disk or its backups kept of it is out of reach."""
        with suppress(OSError):  # it is deleted in any case
            descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=self.descriptor)
            try:
                os.write(descriptor, bytes(os.fstat(descriptor).st_size))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self.delete(name)
        self._sync()

    def remove(self, first: str) -> None:
        """Delete the folder with its files, `first` before the others."""
        for name in sorted(self.names(), key=lambda name: name != first):
            self.delete(name)
        if _is_at(self.descriptor, self.path):
            with streams.writing():
                os.rmdir(self.path)

    def _opener(self, mode: int) -> Callable[[str, int], int]:
        return lambda path, flags: os.open(path, flags, mode, dir_fd=self.descriptor)

    def _sync(self) -> None:
        with suppress(OSError):  # not every file system can
            os.fsync(self.descriptor)


@contextmanager
def held(path: Path, *, new: bool = False) -> Iterator[Work]:
    """A work folder for this process alone, made or found; the lock goes when the process ends, however it ends.

    Args:
        path: where it is.
        new: refuse one that is there.

    Raises:
        ConfigError: another process holds it, or it is not a folder of this user's.
    """
    if fcntl is None:
        raise ConfigError("writing files into a folder needs a system that can lock folders; this one cannot")
    with streams.writing():
        try:
            os.mkdir(path, 0o700)
            streams.sync_folder(str(path))
        except FileExistsError:
            if new:
                raise ConfigError(f"{path.name} in the output folder is in the way: another run has started") from None
    descriptor = _opened(path)
    try:
        if not (_locked(descriptor) and _is_at(descriptor, path)):
            raise ConfigError(BUSY)
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid():
            raise ConfigError(f"the work folder {path.name} belongs to another user; use another folder")
        if stat.S_IMODE(found.st_mode) != 0o700:
            with streams.writing():
                os.fchmod(descriptor, 0o700)
        yield Work(path=path, descriptor=descriptor)
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether a process is at work in a folder."""
    if fcntl is None:
        return False
    try:
        descriptor = _opened(path)
    except ConfigError:
        return False
    try:
        return not _locked(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:  # it was there a moment ago
        raise ConfigError(BUSY) from None
    except OSError:
        raise ConfigError(f"{path.name} in the output folder is not a work folder of yours; delete it") from None


def _locked(descriptor: int) -> bool:
    """Lock a folder; whether nobody else has."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the path still means this folder."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False
