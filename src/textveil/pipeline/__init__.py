"""The pipeline: text -> words -> protection -> budget -> mechanism -> released items -> text, with its statement.

In: texts and options. Out: one `Result` per text, from `Privatizer`.
Not here: what any of the steps does; each has its own room.
"""

from textveil.pipeline.privatizer import BATCH_CHARACTERS, BATCH_TEXTS, SWEPT, Privatizer, sweep
from textveil.pipeline.results import Rehearsal, Result

__all__ = [
    "BATCH_CHARACTERS",
    "BATCH_TEXTS",
    "SWEPT",
    "Privatizer",
    "Rehearsal",
    "Result",
    "sweep",
]
