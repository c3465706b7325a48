"""The gateway's server: a socket and the process that answers on it.

In: a `Gateway` and an address. Out: a server of uvicorn that logs no requests.
Not here: what is answered (`app`, `routes`).
"""

import asyncio
import gc
import ipaddress
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Lock, Thread
from types import FrameType
from typing import TYPE_CHECKING

from textveil.config.extras import needed
from textveil.errors import ConfigError, TextveilError
from textveil.gateway.app import application
from textveil.gateway.gateway import Gateway
from textveil.gateway.playground import Playground
from textveil.gateway.policy import Policy, TlsFiles
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
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
        # Inherited by connections. Without it, each answer waits 40 ms for the client to acknowledge its headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise ConfigError(f"host and port must be a free address of this machine: {reason}")


def is_local(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may stand for any address
        return False


def reached_as(host: str, policy: Policy) -> Policy:
    """The policy of a gateway at an address; a name of it that is none is one under which the gateway is asked."""
    try:
        ipaddress.ip_address(host)
        return policy
    except ValueError:
        return replace(policy, hosts=(*policy.hosts, host))


def check_exposure(host: str, policy: Policy) -> None:
    """Nothing, where other machines cannot reach the gateway, or only with its keys and over TLS.

    Raises:
        ConfigError: they can.
    """
    missing = [] if policy.keys else ["keys (`keys: FILE` in the policy)"]
    missing += [] if policy.tls else ["TLS (--tls-cert and --tls-key)"]
    if missing and not is_local(host):
        raise ConfigError(
            f"at {host} other machines reach the gateway: it needs {' and '.join(missing)}; or give --exposed, if "
            "something else keeps others out and encrypts what they send"
        )


def renewed(before: Policy, read: Callable[[], Policy]) -> Policy:
    """The policy as it is now, for a gateway that began with another.

    Raises:
        ConfigError: it is wrong, or can only be had by a new start.
    """
    policy = read()
    if (policy.tls is None) != (before.tls is None):
        raise ConfigError("tls can only begin or end when the gateway starts")
    return policy


@contextmanager
def reloading(
    before: Policy, read: Callable[[], Policy], said: Callable[[str], None]
) -> Iterator[Callable[[Gateway, ssl.SSLContext | None], None]]:
    """Reads the policy again at each SIGHUP, beside the requests that run. One that is wrong changes nothing.

    It takes what must be called with the gateway and with what encrypts its connections, once there is a gateway. A
    SIGHUP that comes earlier waits for that.

    Args:
        before: the policy when the gateway started.
        read: reads the policy; what it raises refuses it.
        said: is told how it went, in a line.
    """
    lock, there, served = Lock(), Event(), list[tuple[Gateway, ssl.SSLContext | None]]()

    def begin(gateway: Gateway, tls: ssl.SSLContext | None = None) -> None:
        served.append((gateway, tls))
        there.set()

    def again() -> None:
        there.wait()
        [(gateway, tls)] = served
        with lock:
            how = "the policy was not changed"
            try:
                policy = renewed(before, read)
                if policy.tls is not None:
                    # What is wrong with it is wrong before anything changes.
                    tls_context(policy.tls)
                gateway.reload(policy)
                how = "the policy was read again, but the certificate was not changed"
                if policy.tls is not None:
                    tls_context(policy.tls, tls)
                said("the policy was read again")
            except TextveilError as error:
                said(f"{how}: {error}")
            except Exception as error:  # whose message may hold anything
                said(f"{how}: {type(error).__name__}")

    handler = signal.signal(
        signal.SIGHUP, lambda *_: Thread(target=again, name="policy", daemon=True).start()
    )
    try:
        yield begin
    finally:
        signal.signal(signal.SIGHUP, handler)


def tls_context(files: TlsFiles, known: ssl.SSLContext | None = None) -> ssl.SSLContext:
    """What encrypts connections.

    Args:
        files: the certificate and its key.
        known: shows the certificate from its next connection on; None for a new one.

    Raises:
        ConfigError: they cannot be read, or do not go together.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if known is None else known
    try:
        # A key that has one is refused.
        context.load_cert_chain(files.certificate, files.key, password="")
        return context
    except (FileNotFoundError, PermissionError) as error:
        reason = f": {error.strerror}"
    except (OSError, ValueError):
        reason = ""
    raise ConfigError(f"tls needs PEM files that go together, the key without a password{reason}")


def _keep_loaded(loading: "asyncio.Task[None]") -> None:
    """What is loaded stays, so that Python need not look again and again, while all requests wait, whether it does."""
    if not loading.cancelled():
        gc.collect()
        gc.freeze()


def server(
    gateway: Gateway,
    tls: ssl.SSLContext | None = None,
    started: Callable[[], None] | None = None,
    playground: Playground | None = None,
    alone: bool = False,
) -> "uvicorn.Server":
    """A server that does not log requests.

    `server(gateway).run(sockets=[listen(host, port)])` serves until a signal.

    Args:
        gateway: what it serves.
        tls: encrypts connections; None for none.
        started: is called when it serves; None for nothing.
        playground: the page at /; None for no page.
        alone: whether the process ends with the server, so that nothing that is loaded need ever be collected.
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

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if alone and self.started:
                self.lifespan.state["process"].loading.add_done_callback(_keep_loaded)
            if started is not None:
                started()

        async def on_tick(self, counter: int) -> bool:
            if not await super().on_tick(counter):
                return False
            process: ServingProcess = self.lifespan.state["process"]
            return process.stop(now=self.force_exit)

    return Stopping(
        uvicorn.Config(
            application(gateway, playground),
            http="h11",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=LAST,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
    )
