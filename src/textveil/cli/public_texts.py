"""Reading public texts from files, with columns beside them.

In: files, the field of the texts, and names of other fields. Out: texts, and the columns.
Not here: formats (`files`), and what is made of public texts (`codebook`, `library`).
"""

import math
from collections.abc import Sequence
from pathlib import Path

from textveil.errors import ConfigError, InputError, quote_file


def read_public_texts(
    files: Sequence[str], field: str | None, columns: Sequence[tuple[str, str]] = ()
) -> tuple[list[str], list[list[str]]]:
    """Reads the texts of files, and the values of other fields beside each.

    Args:
        files: their paths.
        field: of the texts; None where it is clear.
        columns: pairs (option, field) of the other fields.

    Raises:
        InputError: there is no such file, or it cannot be read.
        ConfigError: a file has another form, or lacks a field.
    """
    from textveil.files import formats
    from textveil.files.fields import UnknownField
    from textveil.files.text_streams import suggest_file

    texts: list[str] = []
    values: list[list[str]] = [[] for _ in columns]
    for file in files:
        path = Path(file)
        if not path.is_file():
            raise InputError(
                "public texts must be in a file; there is no file "
                f"{quote_file(path)}{suggest_file(file)}"
            )
        texts += [text or "" for text in formats.read_texts(formats.find_source(path, field=field))]
        rows = list(formats.read_records(path)) if columns else []
        names: list[str] = list(*rows[:1])
        for (option, name), column in zip(columns, values, strict=True):
            if name not in names:
                raise UnknownField(name, names, file=path, option=option)
            column += [_spell_value(row.get(name)) for row in rows]
    return texts, values


def _spell_value(value: object) -> str:
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if is_missing else str(value)


def check_target(output: str) -> Path:
    """Returns the path of the file to write, once its folder is known to be there."""
    target = Path(output)
    is_taken = target.exists() and not target.is_file()  # a device would be replaced by a file
    if is_taken or not target.resolve().parent.is_dir():
        raise ConfigError(
            f"--output must name a file in an existing folder, got {quote_file(output)}"
        )
    return target
