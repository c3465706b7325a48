"""Event stream of AWS: binary messages of headers, JSON and checksums.

In: bytes of a stream; events. Out: events; bytes.
Not here: what the events say (`bedrock`).

`botocore` reads the messages and checks their sums; writing one is short.
"""

import json
from collections.abc import Callable, Iterator
from struct import pack
from zlib import crc32

from textveil.config.extras import explain_missing
from textveil.gateway.protocols.operation import Event

STRING_HEADER = 7
"""Type of a header that is a string."""


class AwsFraming:
    """Framing of the events of AWS; see `Framing`."""

    media_types = ("application/vnd.amazon.eventstream",)

    def create_reader(self) -> Callable[[bytes], Iterator[Event]]:
        """Creates the reader of a stream; see `Framing`."""
        with explain_missing():
            from botocore.eventstream import EventStreamBuffer

        buffer = EventStreamBuffer()

        def read(piece: bytes) -> Iterator[Event]:
            buffer.add_data(piece)
            for message in buffer:
                yield _read_message(message.headers, message.payload)

        return read

    def write(self, event: Event) -> bytes:
        """Writes an event as a message; one whose name ends with Exception is an error."""
        kind = "exception" if event.name.endswith("Exception") else "event"
        headers = {
            f":{kind}-type": event.name,
            ":content-type": "application/json",
            ":message-type": kind,
        }
        encoded = b"".join(_write_header(*pair) for pair in headers.items())
        payload = json.dumps(event.data).encode()
        prelude = pack("!II", 16 + len(encoded) + len(payload), len(encoded))
        head = prelude + pack("!I", crc32(prelude))
        return head + encoded + payload + pack("!I", crc32(head + encoded + payload))


def _write_header(name: str, value: str) -> bytes:
    content = value.encode()
    return (
        pack("!B", len(name)) + name.encode() + pack("!BH", STRING_HEADER, len(content)) + content
    )


def _read_message(headers: dict[str, str], payload: bytes) -> Event:
    """Reads a message; an error is an event of that name, with its type and message."""
    kind = headers.get(":message-type")
    if kind == "error":
        error = {"type": headers[":error-code"], "message": headers[":error-message"]}
        return Event("error", error)
    data = json.loads(payload) if payload else {}
    if kind == "exception":
        return Event("error", {**data, "type": headers[":exception-type"]})
    return Event(headers[":event-type"], data)
