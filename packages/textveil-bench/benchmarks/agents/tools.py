"""The four tools of the small agents: read, write, edit and run, in the folder where they are started."""

import subprocess
from pathlib import Path


def read_file(path: str) -> str:
    """Reads a file of the project."""
    return Path(path).read_text(encoding="utf-8")


def write_file(path: str, content: str) -> str:
    """Writes a file of the project."""
    Path(path).write_text(content, encoding="utf-8")
    return f"{path} is written"


def edit_file(path: str, old: str, new: str) -> str:
    """Replaces a text in a file, which must be there once."""
    text = Path(path).read_text(encoding="utf-8")
    if text.count(old) != 1:
        return f"the text is {text.count(old)} times in {path}"
    Path(path).write_text(text.replace(old, new), encoding="utf-8")
    return f"{path} is changed"


def run_command(command: str) -> str:
    """Runs a command in the project, and returns what it prints."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr or "nothing was printed"
