"""The four tools of the small agents: read, write, edit and run, in the folder where they are started.

A model that is too weak to be trusted with a shell gets the first three: AGENT_TOOLS=files.
"""

import os
import pathlib
import subprocess


def read_file(path: str) -> str:
    """Reads a file of the project."""
    try:
        return _find(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        return f"it cannot be read: {type(fault).__name__}"


def write_file(path: str, content: str) -> str:
    """Writes a file of the project."""
    try:
        _find(path).write_text(content, encoding="utf-8")
    except (OSError, ValueError) as fault:
        return f"it cannot be written: {type(fault).__name__}"
    return f"{path} is written"


def edit_file(path: str, old: str, new: str) -> str:
    """Replaces a text in a file, which must be there once."""
    text = read_file(path)
    if not old or text.count(old) != 1:
        return f"the text is {text.count(old)} times in {path}"
    return write_file(path, text.replace(old, new)).replace("written", "changed")


def run_command(command: str) -> str:
    """Runs a command in the project, and returns what it prints."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr or "nothing was printed"


def _find(path: str) -> pathlib.Path:
    """Finds a file, which must be in the project."""
    found = pathlib.Path(path).resolve()
    found.relative_to(pathlib.Path.cwd())
    return found


if os.environ.get("AGENT_TOOLS") == "files":
    del run_command
OFFERED = [
    each
    for name in ("read_file", "write_file", "edit_file", "run_command")
    if (each := globals().get(name))
]
