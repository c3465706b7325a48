"""Corpus runs: whole files and folders, in chunks, resumable, with a statement beside each output.

In: files of texts. Out: the same files with released texts.
Not here: how one text is released (`pipeline`), and where texts stand in a file (`files`).
"""

from textveil.corpus.executors import Executor, Local
from textveil.corpus.plan import Done
from textveil.corpus.runs import privatize_files

__all__ = [
    "Done",
    "Executor",
    "Local",
    "privatize_files",
]
