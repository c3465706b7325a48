"""The gateway's server: a socket and the process that answers on it.

In: a `Gateway` and an address. Out: a server of uvicorn that logs no requests.
Not here: the answers (`app`, `api_routes`).
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

from textveil.config.extras import explain_missing
from textveil.errors import ConfigError, TextveilError
from textveil.gateway.app import build_application
from textveil.gateway.gateway import Gateway
from textveil.gateway.playground import Playground
from textveil.gateway.policy.policy import Policy, TlsFiles
from textveil.gateway.serve.connection import build_protocol
from textveil.gateway.serve.process import ServerProcess

if TYPE_CHECKING:
    import uvicorn

CLOSE_SECONDS = 2
"""Seconds for connections to close when all requests have ended."""


def listen(host: str, port: int) -> socket.socket:
    """Opens a socket on an address of this machine.

    Port 0 picks a free port.

    Raises:
        ConfigError: the address is not available.
    """
    try:
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
        # Connections inherit it. Without it, each answer waits 40 ms until the client has
        # acknowledged its headers.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise ConfigError(f"host and port must be a free address of this machine: {reason}")


def is_local(host: str) -> bool:
    """True if only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may stand for any address
        return False


def allow_host(host: str, policy: Policy) -> Policy:
    """Adds the bind host to the allowed host names.

    An IP address is not added, since addresses are always allowed.
    """
    try:
        ipaddress.ip_address(host)
        return policy
    except ValueError:
        return replace(policy, hosts=(*policy.hosts, host))


def check_exposure(host: str, policy: Policy) -> None:
    """Checks that a gateway open to other machines has keys and TLS.

    Raises:
        ConfigError: other machines reach it, and it lacks keys or TLS.
    """
    missing = [] if policy.keys else ["keys (`keys: FILE` in the policy)"]
    missing += [] if policy.tls else ["TLS (--tls-cert and --tls-key)"]
    if missing and not is_local(host):
        raise ConfigError(
            f"other machines can reach the gateway at {host}: it needs {' and '.join(missing)}; or "
            "give --exposed, if something else keeps others out and encrypts what they send"
        )


def reload_policy(start_policy: Policy, read: Callable[[], Policy]) -> Policy:
    """Reads the policy again, for a running gateway.

    Raises:
        ConfigError: the policy is wrong, or needs a restart.
    """
    policy = read()
    if (policy.tls is None) != (start_policy.tls is None):
        raise ConfigError("TLS can be switched on or off only when the gateway starts")
    return policy


@contextmanager
def reload_on_signal(
    start_policy: Policy, read: Callable[[], Policy], report: Callable[[str], None]
) -> Iterator[Callable[[Gateway, ssl.SSLContext | None], None]]:
    """Reloads the policy at each SIGHUP, while requests run.

    A wrong policy changes nothing. The context yields a function that must be called with the
    gateway and its TLS context, once there is a gateway. A SIGHUP that comes earlier waits for
    that. A system without SIGHUP reads the policy once.

    Args:
        start_policy: the policy when the gateway started.
        read: reads the policy; an exception that it raises refuses the policy.
        report: is called with a line about the result.
    """
    if not hasattr(signal, "SIGHUP"):  # Windows
        yield lambda *_: None
        return
    lock, is_set, gateways = Lock(), Event(), list[tuple[Gateway, ssl.SSLContext | None]]()

    def set_gateway(gateway: Gateway, tls: ssl.SSLContext | None = None) -> None:
        gateways.append((gateway, tls))
        is_set.set()

    def reload() -> None:
        is_set.wait()
        [(gateway, tls)] = gateways
        with lock:
            how = "the policy was not changed"
            try:
                policy = reload_policy(start_policy, read)
                if policy.tls is not None:
                    # A fault in the certificate must show before anything changes.
                    build_tls_context(policy.tls)
                gateway.reload(policy)
                how = "the policy was read again, but the certificate was not changed"
                if policy.tls is not None:
                    build_tls_context(policy.tls, tls)
                report("the policy was read again")
            except TextveilError as error:
                report(f"{how}: {error}")
            except Exception as error:  # its message may hold anything
                report(f"{how}: {type(error).__name__}")

    handler = signal.signal(
        signal.SIGHUP, lambda *_: Thread(target=reload, name="policy", daemon=True).start()
    )
    try:
        yield set_gateway
    finally:
        signal.signal(signal.SIGHUP, handler)


def build_tls_context(files: TlsFiles, existing: ssl.SSLContext | None = None) -> ssl.SSLContext:
    """Creates the TLS context of a server, or reloads its certificate.

    Args:
        files: the certificate and its key.
        existing: a context that uses the certificate from its next connection on; None for a new
            context.

    Raises:
        ConfigError: the files cannot be read, or do not go together.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if existing is None else existing
    try:
        # The empty password refuses a key that has one.
        context.load_cert_chain(files.certificate, files.key, password="")
        return context
    except (FileNotFoundError, PermissionError) as error:
        reason = f": {error.strerror}"
    except (OSError, ValueError):
        reason = ""
    raise ConfigError(f"tls needs PEM files that go together, the key without a password{reason}")


def _keep_loaded(loading: "asyncio.Task[None]") -> None:
    """Freezes loaded objects, so that garbage collection skips them.

    All requests would wait while Python scans them again and again.
    """
    if not loading.cancelled():
        gc.collect()
        gc.freeze()


def create_server(
    gateway: Gateway,
    tls: ssl.SSLContext | None = None,
    on_start: Callable[[], None] | None = None,
    playground: Playground | None = None,
    alone: bool = False,
) -> "uvicorn.Server":
    """Creates a server that does not log requests.

    `server(gateway).run(sockets=[listen(host, port)])` serves until a signal.

    Args:
        gateway: the gateway that it serves.
        tls: encrypts connections; None for no TLS.
        on_start: is called when it serves; None for nothing.
        playground: the page at /; None for no page.
        alone: whether the process ends with the server, so that loaded objects need never be
            collected.
    """
    with explain_missing():
        import uvicorn

    class GracefulServer(uvicorn.Server):
        """Server that ends open requests properly, with status 0 after SIGTERM."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if self.should_exit:
                self.force_exit = True
            # uvicorn's handler raises the signal again at the end, and then the status is not 0.
            elif sig == signal.SIGTERM:
                self.should_exit = True
            else:
                super().handle_exit(sig, frame)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if alone and self.started:
                self.lifespan.state["process"].loading.add_done_callback(_keep_loaded)
            if on_start is not None:
                on_start()

        async def on_tick(self, counter: int) -> bool:
            if not await super().on_tick(counter):
                return False
            process: ServerProcess = self.lifespan.state["process"]
            return process.stop(now=self.force_exit)

    return GracefulServer(
        uvicorn.Config(
            build_application(gateway, playground),
            http=build_protocol(gateway.running.body_timeout),
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            timeout_keep_alive=gateway.running.keepalive,  # type: ignore[arg-type]
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
    )
