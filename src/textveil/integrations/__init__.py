"""Integrations: textveil inside tools that people already use.

One file for each tool, imported only where it is wanted.

In: texts, rows, documents, messages and streams of a host. Out: the same, protected or privatized;
answers restored.
Not here: how text is released (`pipeline`), and what a gateway does for programs that speak HTTP
(`gateway`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from textveil.errors import ConfigError

__all__ = ["conversation", "get_conversation"]

_CONVERSATION: ContextVar[str | None] = ContextVar("textveil_conversation", default=None)


@contextmanager
def conversation(name: str) -> Iterator[None]:
    """Names the conversation of all that this block protects.

    For integrations called in this thread or task, and in those it starts.

    Args:
        name: of the conversation, such as the id of a thread; nothing is shared with conversations
            of other names.

    Raises:
        ConfigError: the name is empty or not printable.
    """
    if not 0 < len(name) <= 200 or not name.isprintable():
        raise ConfigError("the name of a conversation must have 1 to 200 printable characters")
    token = _CONVERSATION.set(name)
    try:
        yield
    finally:
        _CONVERSATION.reset(token)


def get_conversation() -> str | None:
    """Returns the name of the caller's conversation.

    None outside of all.
    """
    return _CONVERSATION.get()
