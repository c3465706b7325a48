"""The gateway: releases texts before a language model sees them, and restores its answers.

In: requests of programs, or turns of a conversation. Out: answers with the originals put back.
Not here: the release of text (`pipeline`), and the memory of a session (`session`).
"""

from textveil.gateway.app import build_application
from textveil.gateway.assistant_tools import AssistantTools
from textveil.gateway.conversation import Conversation
from textveil.gateway.gateway import Gateway, ServingOptions
from textveil.gateway.inprocess import ChatGuard, GuardedRequest
from textveil.gateway.mcp_serving import read_mcp_key, serve_http, serve_stdio
from textveil.gateway.playground import Playground
from textveil.gateway.policy.client_keys import GatewayKeys
from textveil.gateway.policy.policy import Policy, PolicyError
from textveil.gateway.policy.policy_file import (
    GATEWAY_SECTION,
    POLICY_SECTION,
    build_policy_schema,
    explain_policy,
    find_policy,
    is_gateway_config,
    place_beside,
    read_policy,
)
from textveil.gateway.policy_check import check_references
from textveil.gateway.serve.audit_log import check_log
from textveil.gateway.serve.workers import WorkerSupervisor
from textveil.gateway.server import (
    allow_host,
    build_tls_context,
    check_exposure,
    create_server,
    is_local,
    listen,
    reload_on_signal,
    reload_policy,
)
from textveil.gateway.toolserver import ToolServer

__all__ = [
    "GATEWAY_SECTION",
    "POLICY_SECTION",
    "AssistantTools",
    "ChatGuard",
    "Conversation",
    "Gateway",
    "GatewayKeys",
    "GuardedRequest",
    "Playground",
    "Policy",
    "PolicyError",
    "ServingOptions",
    "ToolServer",
    "WorkerSupervisor",
    "allow_host",
    "build_application",
    "build_policy_schema",
    "build_tls_context",
    "check_exposure",
    "check_log",
    "check_references",
    "create_server",
    "explain_policy",
    "find_policy",
    "is_gateway_config",
    "is_local",
    "listen",
    "place_beside",
    "read_mcp_key",
    "read_policy",
    "reload_on_signal",
    "reload_policy",
    "serve_http",
    "serve_stdio",
]
