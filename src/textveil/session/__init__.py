"""Sessions: placeholders and their originals, kept between calls to restore answers.

In: what releases add; answers that mention what was replaced. Out: the originals, put back.
Not here: what is replaced (`pipeline`), and who answers (`gateway`).
"""

from textveil.session.chains import (
    AGAIN,
    ChainSession,
    Heads,
    MessageChain,
    Signed,
    Utterance,
    digest,
)
from textveil.session.naming import KeyedNames
from textveil.session.placeholders import Given, Original, spelled_in
from textveil.session.reading import fold
from textveil.session.restore import Restorer, targets_in
from textveil.session.snapshot import Notes, Replaced, SessionDelta, Snapshot, Source
from textveil.session.spending import ALL, Spend, micro
from textveil.session.state import LASTING, Session
from textveil.session.stores import FileStore, KeptSession, MemoryStore, SessionStore

__all__ = [
    "AGAIN",
    "ALL",
    "LASTING",
    "ChainSession",
    "FileStore",
    "Given",
    "Heads",
    "KeptSession",
    "KeyedNames",
    "MemoryStore",
    "MessageChain",
    "Notes",
    "Original",
    "Replaced",
    "Restorer",
    "Session",
    "SessionDelta",
    "SessionStore",
    "Signed",
    "Snapshot",
    "Source",
    "Spend",
    "Utterance",
    "digest",
    "fold",
    "micro",
    "spelled_in",
    "targets_in",
]
