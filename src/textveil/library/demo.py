"""The small library that comes along, as files from which it is made.

In: the invented notes of the package. Out: `Library`.
Not here: how a library is made (`making`), and how the notes were made (training/notes.py).
"""

from importlib.resources import files
from pathlib import Path
from typing import Any

from textveil.files import formats
from textveil.library.classes import read_classes
from textveil.library.library import Library
from textveil.library.making import make_library

DEMO_FOLDER = Path(str(files("textveil") / "data" / "library"))
"""The notes, with their kinds, and a sentence for each kind."""


def make_demo_library(**options: Any) -> Library:
    """Makes a library from the invented notes of the package, with labels and classes.

    Args:
        **options: of `make_library`, in place of those of this library.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    rows = list(formats.read_records(DEMO_FOLDER / "notes.jsonl"))
    own: dict[str, Any] = {
        "labels": [row["kind"] for row in rows],
        "classes": read_classes(DEMO_FOLDER / "classes.txt"),
        "source": "invented notes of customers, part of textveil",
        "licence": "Apache-2.0",
        "name": "demo",
    }
    return make_library([row["text"] for row in rows], **own | options)
