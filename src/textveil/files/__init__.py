"""Files and streams: texts in, results out.

A file appears only when it is whole.

In: what a user named as input and output. Out: texts; places to write.
Not here: what is done to the texts (`pipeline`), and runs over whole folders (`corpus`).
"""

from textveil.files.folder_access import FolderAccess
from textveil.files.format_contract import DEFAULT_FIELD, Batch, Format, TextColumns
from textveil.files.pieces import FieldCell, FileHead, FileRow, LineFormat, NumberedLines
from textveil.files.text_streams import (
    convert_write_errors,
    format_json_line,
    make_folder,
    sync_folder,
)

__all__ = [
    "DEFAULT_FIELD",
    "Batch",
    "FieldCell",
    "FileHead",
    "FileRow",
    "FolderAccess",
    "Format",
    "LineFormat",
    "NumberedLines",
    "TextColumns",
    "convert_write_errors",
    "format_json_line",
    "make_folder",
    "sync_folder",
]
