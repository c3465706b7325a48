"""Synthesis for tables: a public corpus in place of the rows of a frame or dataset.

In: columns of texts, labels and subjects. Out: `Synthesis`, of which nothing is a private text.
Not here: how a corpus follows from votes (`pipeline`), the hosts (`frames`, `datasets`), and files
(`corpus`).
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from textveil.errors import ConfigError, InputError, quote
from textveil.integrations.releases import check_present
from textveil.library import Library
from textveil.pipeline import Synthesis, synthesize

__all__ = ["synthesize_columns"]


def synthesize_columns(
    names: Sequence[str],
    read_column: Callable[[str], Sequence[Any]],
    *,
    text: str,
    label: str | None,
    subject: str | None,
    library: Library | str | Path,
    label_names: Iterable[object],
    **options: Any,
) -> Synthesis:
    """Synthesizes a public corpus from columns of a table; see `frames.synthesize`.

    `names` are those of all columns, and `read_column` reads the values of one, with None for
    missing ones.
    """
    check_present(names, [name for name in (text, label, subject) if name is not None])
    listed_labels = list(map(_spell_value, label_names))
    if bool(listed_labels) != (label is not None):
        raise ConfigError(
            "label and label_names go together: the column of labels, and the public list of them"
        )
    texts = ["" if value is None else value for value in read_column(text)]  # none is empty
    if not all(isinstance(value, str) for value in texts):
        raise InputError(f"column {quote(text)} must hold texts")
    labels, subjects = None, None
    if label is not None:
        # a row without a label has none of the list, and is not counted
        labels = ["" if value is None else _spell_value(value) for value in read_column(label)]
    if subject is not None:
        values = read_column(subject)
        if any(value is None and content for value, content in zip(values, texts, strict=True)):
            raise InputError(f"column {quote(subject)} must name a subject for each text")
        subjects = ["" if value is None else _spell_value(value) for value in values]
        options["subject"] = subject.replace("_", " ")
    return synthesize(
        texts,
        labels,
        library=library if isinstance(library, Library) else Library.read(library),
        label_names=listed_labels,
        subjects=subjects,
        **options,
    )


def _spell_value(value: object) -> str:
    """Spells a label or subject, a string or a whole number, alike whatever its type is."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():  # pandas has numbers beside gaps so
        return str(int(value))
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(
            "labels and subjects must be strings or whole numbers, got "
            f"{type(value).__name__}: convert them"
        )
    return str(value.__index__())
