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
    Guardrail,
    Operation,
    Stream,
)
from textveil.gateway.protocols.registry import (
    REFUSED_ROUTES,
    load_operations,
    place_operations,
)

__all__ = [
    "EVENT_STREAM",
    "REFERENCE",
    "REFUSED_ROUTES",
    "Event",
    "Guardrail",
    "Operation",
    "Stream",
    "load_operations",
    "place_operations",
]
