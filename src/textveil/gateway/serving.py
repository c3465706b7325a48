"""The gateway's server: a socket and the process that answers on it.

In: a `Gateway` and an address. Out: a server of uvicorn that logs no requests.
Not here: what is answered (`app`).
"""

import signal
import socket
from types import FrameType
from typing import TYPE_CHECKING

from textveil.config.extras import needed
from textveil.errors import ConfigError
from textveil.gateway.app import Gateway
from textveil.gateway.process import ServingProcess

if TYPE_CHECKING:
    import uvicorn

LAST = 2
"""Seconds for connections to close when all requests have ended."""


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address of this machine; port 0 picks a free one.

    Raises:
        ConfigError: the address is not available.
    """
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        # Inherited by connections. Without it, each answer waits 40 ms for the client to acknowledge its headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise ConfigError(f"host and port must be a free address of this machine: {reason}")


def server(gateway: Gateway) -> "uvicorn.Server":
    """A server that does not log requests.

    `server(gateway).run(sockets=[listen(host, port)])` serves until a signal.
    """
    with needed():
        import uvicorn

    class Stopping(uvicorn.Server):
        """Ends open requests properly, with status 0 where SIGTERM asked for it."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if self.should_exit:
                self.force_exit = True
            elif sig == signal.SIGTERM:
                self.should_exit = True
            else:
                super().handle_exit(sig, frame)

        async def on_tick(self, counter: int) -> bool:
            if not await super().on_tick(counter):
                return False
            process: ServingProcess = self.lifespan.state["process"]
            return process.stop(now=self.force_exit)

    return Stopping(
        uvicorn.Config(
            gateway.application(),
            http="h11",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=LAST,
        )
    )
