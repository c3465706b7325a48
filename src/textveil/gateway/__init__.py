"""The gateway: text is released before a language model sees it, and its answers are restored.

In: requests of programs, or turns of a conversation. Out: answers with the originals put back.
Not here: how text is released (`pipeline`), and what a session remembers (`session`).
"""

from textveil.gateway.app import Gateway
from textveil.gateway.conversation import Conversation
from textveil.gateway.policy import Policy
from textveil.gateway.process import Running
from textveil.gateway.serving import listen, server

__all__ = [
    "Conversation",
    "Gateway",
    "Policy",
    "Running",
    "listen",
    "server",
]
