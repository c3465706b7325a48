"""Connections of clients: how long they may be slow, idle, or half closed.

In: seconds for the head of a request. Out: a protocol class for uvicorn.
Not here: the body of a request (`request.parsing`), and the server (`server`).
"""

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

LINGER_SECONDS = 2.0
"""Seconds in which the rest of a refused request is thrown away.

A connection that is closed at once, with bytes unread, may take the answer from the client.
"""

_SLOW_ANSWER = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class LingeringTransport:
    """Transport that closes later while a client still sends.

    Args:
        transport: the transport of a connection.
        protocol: its protocol.
    """

    def __init__(self, transport: asyncio.Transport, protocol: "H11Protocol") -> None:
        self._transport, self._protocol, self.lingers = transport, protocol, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """True if nothing more is written."""
        return self.lingers or self._transport.is_closing()

    def close(self) -> None:
        """Closes the connection, later if a body is still coming."""
        import h11

        if self.is_closing() or self._protocol.conn.their_state is not h11.SEND_BODY:
            self._transport.close()
            return
        self.lingers = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()
        self._protocol.loop.call_later(LINGER_SECONDS, self._transport.close)


def build_protocol(head_seconds: float) -> "type[H11Protocol]":
    """Builds the protocol of connections.

    Args:
        head_seconds: seconds in which the head of a request must be there.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

    class TimedProtocol(H11Protocol):
        """Protocol that ends connections whose requests do not begin."""

        _head_timer: asyncio.TimerHandle | None = None
        _lingering: LingeringTransport
        _has_bytes = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._lingering = LingeringTransport(transport, self)
            self.transport = self._lingering  # type: ignore[assignment]
            self._watch_head()

        def data_received(self, data: bytes) -> None:
            if self._lingering.lingers:
                return  # else the rest of a refused body would fill the memory
            self._has_bytes = True
            super().data_received(data)
            self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def _watch_head(self) -> None:
            """Starts the timer of a head, once, or stops it when the head is there."""
            cycle: RequestResponseCycle | None = self.cycle
            is_idle = cycle is None or cycle.response_complete
            if not is_idle or self.timeout_keep_alive_task is not None:
                self._stop_timer()
            elif self._head_timer is None and not self.transport.is_closing():
                # Not anew with each byte: a head of a few bytes a minute would never end.
                self._head_timer = self.loop.call_later(head_seconds, self._end)

        def _stop_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
            self._head_timer, self._has_bytes = None, False

        def _end(self) -> None:
            # After an answer, what comes is the rest of its request, and gets no other answer.
            if self._has_bytes and self.cycle is None and not self.transport.is_closing():
                self.transport.write(_SLOW_ANSWER)
            self.transport.close()

    return TimedProtocol
