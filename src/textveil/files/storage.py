"""Folders and files by path or URI, through fsspec.

Here or in an object store.

In: paths, folders, patterns and URIs. Out: the files that they mean; a folder whose files appear
when they are whole.
Not here: the lock of a folder on this machine (`work`), and what is in the files (`formats`).
"""

import os
import platform
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from io import BufferedReader
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, cast

from textveil.errors import ConfigError, InputError, OutputError, TextveilError, quote, quote_file
from textveil.files import formats, text_streams

_NUMBERS = count()


@dataclass(frozen=True)
class Storage:
    """A folder, by its path or URI.

    It pickles, and is opened anew wherever it is used.

    Args:
        uri: `released/`, `s3://bucket/released`, `memory://released`.
    """

    uri: str

    @property
    def local(self) -> Path | None:
        """The folder's path on this machine; None in an object store."""
        if "://" not in self.uri:
            return Path(self.uri)
        return (
            Path(_open_filesystem(self.uri)[1])
            if self.uri.startswith(("file://", "local://"))
            else None
        )

    def get_folder(self, name: str) -> "Storage":
        """Returns a folder within this one."""
        return Storage(f"{self.uri.rstrip('/')}/{name}")

    def has_path(self, path: str) -> bool:
        """Says whether a file is in the folder, at any depth.

        By the file's path or URI.
        """
        (files, root), (other_files, target) = _open_filesystem(self.uri), _open_filesystem(path)
        # With the slash, or data2/ would be a part of data/.
        return type(files) is type(other_files) and target.startswith(f"{root.rstrip('/')}/")

    def list_files(self) -> list[str]:
        """Returns the files directly in it, sorted.

        None where it is not there.
        """
        return sorted(self.read_sizes())

    def read_sizes(self) -> dict[str, int]:
        """Returns the size in bytes of each file directly in it.

        None where it is not there.
        """
        with _convert_read_errors("the output folder"):
            files, root = _open_filesystem(self.uri)
            # fsspec remembers listings, but other processes write here, too.
            files.invalidate_cache()
            try:
                entries = files.ls(root, detail=True)
            except FileNotFoundError:
                return {}
            return {
                str(entry["name"]).rpartition("/")[2]: entry["size"]
                for entry in entries
                if entry["type"] == "file"
            }

    def list_tree(self) -> list[str]:
        """Returns all files in it, at any depth, sorted.

        By their paths from here; none where it is not there.
        """
        with _convert_read_errors("the output folder"):
            files, root = _open_filesystem(self.uri)
            files.invalidate_cache()
            start = len(root.rstrip("/")) + 1
            return sorted(str(name)[start:] for name in files.find(root))

    def has_file(self, name: str) -> bool:
        """Says whether a file of this name is there."""
        with _convert_read_errors("the output folder"):
            files, root = _open_filesystem(self.uri)
            return bool(files.exists(f"{root}/{name}"))

    def read(self, name: str) -> bytes:
        """Reads a file of the folder.

        Raises:
            InputError: it cannot be read.
        """
        with self.open_file(name) as file:
            return file.read()

    @contextmanager
    def open_file(self, name: str) -> Iterator[BinaryIO]:
        """Opens a file of the folder for reading."""
        with _convert_read_errors(name):
            files, root = _open_filesystem(self.uri)
            file = files.open(f"{root}/{name}", "rb")
        with file:
            yield cast(BinaryIO, file)

    def hash_file(self, name: str) -> str:
        """Returns the SHA-256 of a file of the folder."""
        with self.open_file(name) as file:
            return file_digest(cast(BufferedReader, file), "sha256").hexdigest()

    @contextmanager
    def open_writer(
        self, name: str, *, subfolder: str = "", mode: int = 0o666
    ) -> Iterator[BinaryIO]:
        """Opens a file that appears only when it is whole.

        It is written under another name, brought to the disk, and renamed when the body has ended
        well.

        Two processes that write the same file do not meet before the last step.

        Args:
            name: of the file.
            subfolder: the folder in this one where it has the other name.
            mode: who may read it at most, where it is on this machine.

        Raises:
            OutputError: it cannot be written.
        """
        part = f"{name}.{platform.node()}-{os.getpid()}-{time.time_ns()}-{next(_NUMBERS)}.part"
        part = f"{subfolder}/{part}" if subfolder else part
        if (folder := self.local) is not None:
            with text_streams.convert_write_errors():
                text_streams.make_folder((folder / part).parent)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                descriptor = os.open(folder / part, flags, mode)
            try:
                with text_streams.convert_write_errors():
                    with open(descriptor, "wb") as stream:
                        yield stream
                        stream.flush()
                        os.fsync(stream.fileno())
                    text_streams.replace_file(folder / part, folder / name)
                    text_streams.sync_folder(str(folder / name))
            except BaseException:
                with suppress(OSError):
                    os.unlink(folder / part)
                raise
            return
        with _convert_write_errors():
            files, root = _open_filesystem(self.uri)
            files.makedirs(f"{root}/{subfolder}".rstrip("/"), exist_ok=True)
            try:
                with files.open(f"{root}/{part}", "wb") as stream:
                    yield cast(BinaryIO, stream)
                files.mv(f"{root}/{part}", f"{root}/{name}")
            except BaseException:
                with suppress(OSError):
                    files.rm(f"{root}/{part}")
                raise

    def write(self, name: str, content: bytes, *, subfolder: str = "", mode: int = 0o666) -> None:
        """Writes a whole file, as `open_writer` does."""
        with self.open_writer(name, subfolder=subfolder, mode=mode) as stream:
            stream.write(content)

    def create(self, name: str, content: bytes, *, mode: int = 0o666) -> bool:
        """Creates a file, and returns False where it was there.

        Then nothing is written.

        On this machine the caller holds the folder. Of several processes that create a file in an
        object store at the same time one does, where the store can tell (S3 and Google Cloud
        Storage can); else the last one's is there.

        Args:
            name: of the file.
            content: of the file.
            mode: who may read it at most, where it is on this machine.

        Raises:
            OutputError: it cannot be written.
        """
        if self.has_file(name):
            return False
        if self.local is not None:
            self.write(name, content, mode=mode)
            return True
        with _convert_write_errors():
            files, root = _open_filesystem(self.uri)
            try:
                files.pipe_file(f"{root}/{name}", content, mode="create")
            except FileExistsError:
                return False
            # The storage knows no exclusive creation.
            except (NotImplementedError, TypeError, ValueError):
                files.pipe_file(f"{root}/{name}", content)
            files.invalidate_cache()
        # Where the store cannot tell, the last writer's content is there: the others failed.
        return self.read(name) == content

    def delete(self, name: str) -> None:
        """Deletes a file of the folder."""
        with _convert_write_errors():
            files, root = _open_filesystem(self.uri)
            files.rm(f"{root}/{name}")

    def remove(self) -> None:
        """Deletes the folder with all that is in it."""
        with _convert_write_errors():
            files, root = _open_filesystem(self.uri)
            if files.exists(root):
                files.rm(root, recursive=True)


def find_files(inputs: Sequence[str | Path]) -> list[str]:
    """Finds the files that paths, folders, patterns and URIs name.

    Each once, in the order of their names.

    Of a folder these are all files below it with the ending of a known format; hidden ones are left
    out.

    Raises:
        InputError: one means no file.
    """
    files: list[str] = []
    for number, uri in enumerate(map(str, inputs), 1):
        with _convert_read_errors(f"input {number}, {quote_file(uri)},"):
            matches = _find_matches(uri)
        if not matches:
            raise InputError(
                f"input {number} of {len(inputs)}, {quote_file(uri)}, names no file: give files, "
                f"folders, patterns or URIs{text_streams.suggest_file(uri)}"
            )
        files += matches
    return sorted(set(files))


def read_fingerprint(path: str) -> str:
    """Returns a cheap fingerprint of a file.

    Its size, and when it was last written, where its storage says it.

    Raises:
        InputError: it cannot be read.
    """
    with _convert_read_errors(f"the input file {quote_file(path)}"):
        files, root = _open_filesystem(path)
        files.invalidate_cache()
        parts = [str(files.size(root))]
        with suppress(NotImplementedError):
            parts.append(str(files.modified(root)))
        return " ".join(parts)


def _find_matches(uri: str) -> list[str]:
    system, root = _open_filesystem(uri)
    # A file may have such characters in its name; then it is no pattern.
    if re.search(r"[*?[]", uri) and not system.exists(root):
        paths = list(filter(system.isfile, system.glob(root)))
    elif system.isdir(root):
        paths = [path for path in system.find(root) if _is_listed(path[len(root) :])]
    else:
        paths = list(filter(system.isfile, [root]))
    return [str(path) if "://" not in uri else str(system.unstrip_protocol(path)) for path in paths]


def _is_listed(path: str) -> bool:
    return formats.parse_suffix(path) is not None and not any(
        part.startswith((".", "_")) for part in path.split("/") if part
    )


def _open_filesystem(uri: str) -> tuple[Any, str]:
    """Returns the file system of a URI, and the path in it."""
    import fsspec

    try:
        files, root = fsspec.core.url_to_fs(uri)
        return files, str(root).rstrip("/") or "/"
    except ImportError as error:
        failure = (
            f"{uri.partition('://')[0]}:// needs a driver for fsspec: "
            f"{str(error).partition(chr(10))[0]}"
        )
    except ValueError:
        failure = f"fsspec has no storage named {quote(uri.partition('://')[0] + '://')}"
    raise ConfigError(failure)


@contextmanager
def _convert_read_errors(subject: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, TextveilError):
            raise
        raise InputError(
            f"{subject} cannot be read: {error.strerror or type(error).__name__}"
        ) from None


@contextmanager
def _convert_write_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, TextveilError):
            raise
        raise OutputError(
            f"the output cannot be written: {error.strerror or type(error).__name__}"
        ) from None
