"""Sessions: placeholders and their originals, kept between calls to restore answers.

In: what releases add; answers that mention what was replaced. Out: the originals, put back.
Not here: what is replaced (`pipeline`), and who answers (`gateway`).
"""

from textveil.session.conversations import (
    REPEAT_PREFIX,
    ChainSession,
    MessageChain,
    PrefixCache,
    SignedText,
    Utterance,
    hash_text,
)
from textveil.session.escapes import fold
from textveil.session.naming import KeyedPlaceholders
from textveil.session.placeholders import Original, PlaceholderToken, find_placeholder_names
from textveil.session.restore import Restorer, find_targets
from textveil.session.snapshot import Changes, Replacement, SessionDelta, Snapshot, Source
from textveil.session.spending import ALL_TABLES, Spend, convert_to_micros
from textveil.session.state import LASTING_PREFIX, Session
from textveil.session.stores import FileStore, MemoryStore, SessionInfo, SessionStore
from textveil.session.subject_charges import charge_subjects

__all__ = [
    "ALL_TABLES",
    "LASTING_PREFIX",
    "REPEAT_PREFIX",
    "ChainSession",
    "Changes",
    "FileStore",
    "KeyedPlaceholders",
    "MemoryStore",
    "MessageChain",
    "Original",
    "PlaceholderToken",
    "PrefixCache",
    "Replacement",
    "Restorer",
    "Session",
    "SessionDelta",
    "SessionInfo",
    "SessionStore",
    "SignedText",
    "Snapshot",
    "Source",
    "Spend",
    "Utterance",
    "charge_subjects",
    "convert_to_micros",
    "find_placeholder_names",
    "find_targets",
    "fold",
    "hash_text",
]
