"""Files of folders that a user named, for programs that are not trusted with others.

In: folders; paths that somebody else wrote. Out: texts; files that are written whole.
Not here: who asks (`gateway.assistant_tools`).

Symbolic links are followed first, and what they lead to must lie in a folder. Names that begin
with a dot are left out: such files hold keys, and programs read them. No message names a folder,
because its path may name the user.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from textveil.errors import ConfigError, InputError, OutputError, TextveilError, quote_file
from textveil.files.text_streams import BYTE_ORDER_MARK, open_output

_READ_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
)


PLAIN_SUFFIXES = (".txt", ".md")
"""Suffixes of files that programs show, and neither run nor compute."""

NO_FILE = "the path must lead to a file, not to a folder or device"


class FolderAccess:
    """Folders in which files may be read, or written.

    Args:
        folders: existing folders. A relative path of a file leads from the first in which it is.
        option: the option that named them, for messages.
        suffixes: suffixes, in small letters, of files that may be written besides
            `PLAIN_SUFFIXES`.

    Raises:
        ConfigError: one is no folder.
    """

    def __init__(
        self, folders: Sequence[str], *, option: str, suffixes: Sequence[str] = ()
    ) -> None:
        for folder in folders:
            if not os.path.isdir(folder):
                raise ConfigError(f"{option} must be an existing folder, got {quote_file(folder)}")
        self._roots = [os.path.realpath(folder) for folder in folders]
        self._option = option
        self._suffixes = tuple(dict.fromkeys((*PLAIN_SUFFIXES, *suffixes)))

    def __repr__(self) -> str:
        return f"FolderAccess({len(self._roots)})"

    def describe_suffixes(self) -> str:
        """Returns the suffixes of files that may be written, in words."""
        return " or ".join(self._suffixes)

    def overlaps(self, other: "FolderAccess") -> bool:
        """Says whether a folder lies in one of another access, or is one of them."""
        return any(
            _lies_in(one, two) or _lies_in(two, one) for one in self._roots for two in other._roots
        )

    def holds(self, path: str) -> bool:
        """Says whether a path leads into one of the folders."""
        resolved = os.path.realpath(path)
        return any(_lies_in(resolved, root) for root in self._roots)

    def read_text(self, path: str, limit: int) -> str:
        """Reads a file as one text, without a byte order mark.

        Args:
            path: relative to a folder, or absolute.
            limit: the most bytes that it may have.

        Raises:
            InputError: it is outside, or missing, too large, or no plain text in UTF-8.
        """
        resolved, _ = self._resolve(path)
        content, descriptor = b"", self._open_file(resolved)
        with os.fdopen(descriptor, "rb") as stream:
            info = os.fstat(descriptor)
            if not _is_unchanged(resolved, info):
                raise InputError("the file changed while it was opened; try again")
            if info.st_size <= limit:
                with suppress(OSError):
                    content = stream.read(limit + 1)
        if max(info.st_size, len(content)) > limit:
            raise InputError(f"the file must have at most {limit:,} bytes (--limit)")
        return _decode(content)

    def _open_file(self, resolved: str) -> int:
        """Opens a file for reading; returns its descriptor.

        Raises:
            InputError: it is missing, or no regular file.
        """
        try:
            descriptor = os.open(resolved, _READ_FLAGS)
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            reason = "is missing" if is_missing else "cannot be read"
            raise InputError(f"the file {reason}; {self._describe_place()}") from None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise InputError(NO_FILE)

    def write_text(self, path: str, text: str, *, overwrite: bool) -> str:
        """Writes a file, for its owner only, which appears when it is complete.

        Args:
            path: relative to the folder, or absolute.
            text: its content.
            overwrite: whether a file of that name is replaced.

        Returns:
            The path, relative to the folder.

        Raises:
            InputError: the path is outside, has another suffix, or there is such a file.
                OutputError: it cannot be written; it is then as it was.
        """
        resolved, shown = self._resolve(path)
        if os.path.splitext(resolved)[1].lower() not in self._suffixes:
            raise InputError(
                f"the name of the file must end with {self.describe_suffixes()}; the user can "
                "allow more (--suffix)"
            )
        if not os.path.isdir(os.path.dirname(resolved)):
            raise InputError(f"the file must be in an existing folder; {self._describe_place()}")
        if os.path.lexists(resolved) and not os.path.isfile(resolved):
            raise InputError(NO_FILE)
        is_new = False
        try:
            if not overwrite:
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
                os.close(os.open(resolved, flags, 0o600))
                is_new = True
            with open_output(resolved, private=True) as sink:
                sink.write(text)
            return shown
        except FileExistsError:
            reason = ""
        except (OSError, ValueError, TextveilError) as error:
            # Its message may name the folder, or quote the text.
            reason = getattr(error, "strerror", None) or type(error).__name__
            if is_new:
                with suppress(OSError):
                    os.unlink(resolved)
        if not reason:
            raise InputError("there is such a file: name another, or set overwrite to true")
        raise OutputError(f"the file cannot be written ({reason})")

    def _resolve(self, path: str) -> tuple[str, str]:
        """Returns the place of a file, and its path relative to its folder.

        Raises:
            InputError: it is in no folder, or a name begins with a dot.
        """
        if not path.strip() or "\0" in path:
            raise InputError(f"a path is needed; {self._describe_place()}")
        places = []
        for root in self._roots:
            resolved = os.path.realpath(os.path.join(root, path))
            with suppress(ValueError):  # another drive
                if resolved != root and os.path.commonpath([root, resolved]) == root:
                    places.append((resolved, os.path.relpath(resolved, root)))
        if not places:
            raise InputError(f"the path leads out of the folder; {self._describe_place()}")
        place = next((each for each in places if os.path.lexists(each[0])), places[0])
        if any(name.startswith(".") for name in place[1].split(os.sep)):
            raise InputError("files and folders whose names begin with a dot are left out")
        return place

    def _describe_place(self) -> str:
        return f"paths lead from the folder that the server was started with ({self._option})"


def _lies_in(path: str, folder: str) -> bool:
    """Says whether a resolved path is a folder or lies in it, however it is spelled."""
    while True:
        with suppress(OSError):
            if os.path.samefile(path, folder):
                return True
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path = parent


def _is_unchanged(path: str, info: os.stat_result) -> bool:
    """Says whether an open file is still the one at a path without links."""
    try:
        return os.path.realpath(path) == path and os.path.samestat(info, os.lstat(path))
    except OSError:
        return False


def _decode(content: bytes) -> str:
    with suppress(UnicodeDecodeError):
        if b"\0" not in content:
            return content.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    raise InputError(
        "the file must be plain text in UTF-8; documents, pictures and archives must be converted"
    )
