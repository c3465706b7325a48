"""The gateway: releases texts before a language model sees them, and restores its answers.

In: requests of programs, or turns of a conversation. Out: answers with the originals put back.
Not here: the release of text (`pipeline`), and the memory of a session (`session`).
"""

from textveil.gateway.app import application
from textveil.gateway.auditing import check_log
from textveil.gateway.conversation import Conversation
from textveil.gateway.gateway import Gateway, Running
from textveil.gateway.inprocess import ChatGuard, GuardedRequest
from textveil.gateway.keys import GatewayKeys
from textveil.gateway.named import check_named
from textveil.gateway.playground import Playground
from textveil.gateway.policy import Policy, PolicyError
from textveil.gateway.policy_file import explained, policy_schema, read_policy
from textveil.gateway.serving import (
    check_exposure,
    is_local,
    listen,
    reached_as,
    reloading,
    renewed,
    server,
    tls_context,
)
from textveil.gateway.toolserver import ToolServer, serve_http, serve_stdio
from textveil.gateway.workers import Workers

__all__ = [
    "ChatGuard",
    "Conversation",
    "Gateway",
    "GatewayKeys",
    "GuardedRequest",
    "Playground",
    "Policy",
    "PolicyError",
    "Running",
    "ToolServer",
    "Workers",
    "application",
    "check_exposure",
    "check_log",
    "check_named",
    "explained",
    "is_local",
    "listen",
    "policy_schema",
    "reached_as",
    "read_policy",
    "reloading",
    "renewed",
    "serve_http",
    "serve_stdio",
    "server",
    "tls_context",
]
