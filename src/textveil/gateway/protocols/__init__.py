"""The APIs of the gateway, one file each.

They know nothing of HTTP, accounts or how text is released.

In: JSON of a request, an answer, an event. Out: its text values (`LeafRule`); events with text
restored.
Not here: the server (`app`, `api_routes`).
"""

from textveil.gateway.protocols.operation import (
    EVENT_STREAM,
    REFERENCE,
    Event,
    Framing,
    Guardrail,
    Operation,
    Stream,
)
from textveil.gateway.protocols.registry import load_operations, place_operations

__all__ = [
    "EVENT_STREAM",
    "REFERENCE",
    "Event",
    "Framing",
    "Guardrail",
    "Operation",
    "Stream",
    "load_operations",
    "place_operations",
]
