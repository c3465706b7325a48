"""The small library that comes along, as files from which it is made.

In: the invented notes of the package. Out: `Library`.
Not here: how a library is made (`making`), and how the notes were made (training/notes.py).
"""

from functools import partial
from importlib.resources import files
from pathlib import Path

from textveil.files import formats
from textveil.library.classes import read_classes
from textveil.library.library import Library
from textveil.library.making import make_library

DEMO_FOLDER = Path(str(files("textveil") / "data" / "library"))
"""The notes, with their kinds, and a sentence for each kind."""

DEMO_SOURCE, DEMO_LICENCE = "invented notes of customers, part of textveil", "Apache-2.0"

DEMO_LABEL = "kind"
"""The field of the notes' labels."""


def make_demo_library(name: str = "demo") -> Library:
    """Makes a library from the invented notes of the package, with labels and classes.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    rows = list(formats.read_records(DEMO_FOLDER / "notes.jsonl"))
    build = partial(make_library, classes=read_classes(DEMO_FOLDER / "classes.txt"), name=name)
    return build(
        [row["text"] for row in rows],
        labels=[row[DEMO_LABEL] for row in rows],
        source=DEMO_SOURCE,
        licence=DEMO_LICENCE,
    )
