"""Corpus runs: the release of many texts, with one statement.

No machine needs to hold all of the texts at once. Runs can be resumed, and several engines draw
them.

In: files of texts, here or in an object store. Out: parts of released texts, a statement, a
manifest.
Not here: how one text is released (`pipeline`), and where texts stand in a file (`files`).
"""

from textveil.corpus.executors import Executor, LocalExecutor
from textveil.corpus.release import FinishedRelease, finish, verify
from textveil.corpus.release_key import KeyFile, KeyHandle
from textveil.corpus.rows import RowOptions
from textveil.corpus.runs import run
from textveil.corpus.statement import CorpusStatement
from textveil.corpus.synthesis import (
    FinishedSynthesis,
    VoteFields,
    publish_votes,
    synthesize_files,
)
from textveil.corpus.synthesis_folder import read_votes, verify_synthesis
from textveil.pipeline import DrawOptions

__all__ = [
    "CorpusStatement",
    "DrawOptions",
    "Executor",
    "FinishedRelease",
    "FinishedSynthesis",
    "KeyFile",
    "KeyHandle",
    "LocalExecutor",
    "RowOptions",
    "VoteFields",
    "finish",
    "publish_votes",
    "read_votes",
    "run",
    "synthesize_files",
    "verify",
    "verify_synthesis",
]
