"""Files and streams: texts in, results out.

A file appears only when it is whole.

In: what a user named as input and output. Out: texts; places to write.
Not here: what is done to the texts (`pipeline`), and runs over whole folders (`corpus`).
"""

from textveil.files.contract import USUAL, Batch, Format, TextColumns
from textveil.files.pieces import FieldCell, FileHead, Numbered, Pieces, Row
from textveil.files.streams import json_line, make_folder, sync_folder, writing

__all__ = [
    "USUAL",
    "Batch",
    "FieldCell",
    "FileHead",
    "Format",
    "Numbered",
    "Pieces",
    "Row",
    "TextColumns",
    "json_line",
    "make_folder",
    "sync_folder",
    "writing",
]
