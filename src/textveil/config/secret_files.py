"""Secrets in files, such as those that Docker and Kubernetes mount.

In: a path, or the environment variable that names one. Out: the one line in the file.
Not here: what the secrets open (`session.sql.key_stores`, `gateway.policy`).
"""

import os
import stat
import warnings
from collections.abc import Mapping
from pathlib import Path

from textveil.errors import ConfigError, TextveilWarning, quote_file

FILE_SUFFIX = "_FILE"
"""End of the name of a variable that names a file, in place of one with the secret itself."""

MAX_SECRET_BYTES = 10_000
"""The size limit of a secret, in bytes."""

MOUNT_FOLDERS = ("/run/secrets/", "/var/run/secrets/", "/run/credentials/")
"""Folders where Docker, Kubernetes and systemd mount secrets."""


def read_secret_variable(
    name: str, environ: Mapping[str, str] | None = None, *, file: str | None = None
) -> str | None:
    """Reads a secret from a variable, or from the file that `NAME_FILE` names.

    Args:
        name: the variable.
        environ: variables, None for those of this process; an empty one counts as missing.
        file: the value of `NAME_FILE`, if it is known already.

    Returns:
        The secret; None where neither variable is set.

    Raises:
        ConfigError: both are set, or the file cannot be read.
    """
    environ = os.environ if environ is None else environ
    secret, file = environ.get(name), file or environ.get(name + FILE_SUFFIX)
    if secret and file:
        raise ConfigError(f"set {name} or {name}{FILE_SUFFIX}, not both")
    return read_secret_file(file, f"the secret of {name}{FILE_SUFFIX}") if file else secret or None


def read_secret_file(path: str, what: str) -> str:
    """Reads the secret in a file: one line, whose end is dropped.

    Warns if everybody on the machine can read the file.

    Args:
        path: the file.
        what: what it is called in errors, which never hold anything of the content.

    Raises:
        ConfigError: the file cannot be read, or does not hold one line.
    """
    place = f"the file {quote_file(path)}"
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_SECRET_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a path"
        raise ConfigError(f"{what} cannot be read from {place}: {reason}") from None
    warn_if_readable(path)
    try:
        lines = content.decode("utf-8").strip("\r\n").splitlines()
    except UnicodeDecodeError:
        lines = []
    if len(lines) != 1 or not lines[0].strip() or len(content) > MAX_SECRET_BYTES:
        raise ConfigError(f"{what} must be one line of text in {place}")
    return lines[0].strip()


def warn_if_readable(path: str) -> None:
    """Warns if everybody on the machine can read a secret, unless it is a mounted one."""
    folder = os.path.dirname(os.path.abspath(path))
    # Kubernetes links what it mounts through a folder of this name, with any mode.
    is_mounted = folder.startswith(tuple(name.rstrip("/") for name in MOUNT_FOLDERS))
    if os.name != "posix" or is_mounted or os.path.lexists(os.path.join(folder, "..data")):
        return
    if os.path.exists(path) and os.stat(path).st_mode & stat.S_IROTH:
        warnings.warn(
            f"everybody on this machine can read the file {quote_file(path)}, which holds a "
            "secret: chmod 600 it",
            TextveilWarning,
            stacklevel=2,
        )
