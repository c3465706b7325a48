"""Sentences that describe classes, from a file: the only thing that a user must write.

In: a file with a line or a row for each class. Out: the sentence of each class, by its name.
Not here: what they are used for (`making`, `candidates`).
"""

from pathlib import Path

from textveil.errors import ConfigError, InputError, quote_file, quote_short
from textveil.files import formats

MAX_CLASSES = 100

MAX_NAME = 60
"""The most characters of a class's name."""

MAX_SENTENCE = 500
"""The most characters of a class's sentence."""


def read_classes(path: str | Path) -> dict[str, str]:
    """Reads the sentences of classes: lines `NAME: SENTENCE`, or rows with these two fields.

    Raises:
        InputError: there is no such file, a line has another form, or a class is there twice.
        ConfigError: there are fewer than two classes, or the file has another ending.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"classes must be in a file; there is no file {quote_file(path)}")
    classes: dict[str, str] = {}
    for number, row in enumerate(formats.read_records(path), 1):
        place = f"row {number} of {quote_file(path)}"
        if "name" in row and "sentence" in row:
            name, sentence = str(row["name"] or "").strip(), str(row["sentence"] or "").strip()
        elif set(row) == {"text"}:
            if not row["text"].strip():
                continue
            name, _, sentence = (part.strip() for part in row["text"].partition(":"))
        else:
            raise InputError(f"{place} must have the fields name and sentence")
        if not (0 < len(name) <= MAX_NAME and 0 < len(sentence) <= MAX_SENTENCE):
            raise InputError(
                f"{place} must have the form NAME: SENTENCE, with a name of at most {MAX_NAME} "
                f"characters and a sentence of at most {MAX_SENTENCE}"
            )
        if name in classes:
            raise InputError(f"{place} describes the class {quote_short(name)} again")
        classes[name] = sentence
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise ConfigError(
            f"--classes needs 2 to {MAX_CLASSES} classes, each on a line NAME: SENTENCE, and "
            f"{quote_file(path)} has {len(classes)}"
        )
    return classes
