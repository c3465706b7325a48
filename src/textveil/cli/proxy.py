"""The verb `proxy`.

In: an upstream and how to privatize. Out: a server on this machine, and a line on standard error that says where.
Not here: what it does (`proxy`).
"""

from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import shell
from textveil.cli.chat import Timeout, Upstream
from textveil.cli.verbs import verb
from textveil.config.extras import require

if TYPE_CHECKING:
    from textveil.config import Config

LOCAL = ("localhost", "::1")


@verb(
    "textveil proxy --upstream https://HOST/v1",
    "textveil proxy --upstream http://localhost:8000/v1 --port 8601 --mechanism rankcape --epsilon 8",
    "OPENAI_BASE_URL=http://127.0.0.1:8600/v1 python your_program.py",
    default="prompt",
)
def proxy(
    config: "Config",
    upstream: Upstream,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; others than 127.0.0.1 let others in.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 takes one that is free.")
    ] = 8600,
    timeout: Timeout = 60.0,
    limit: Annotated[
        int, typer.Option("--limit", metavar="BYTES", min=1, help="How large a request may be.")
    ] = 4_000_000,
) -> None:
    """Serve chat completions that privatize what is asked and restore what is answered.

    Any client of OpenAI uses it by its base URL, and keeps its key: it is forwarded, and nothing else of its headers.
    Every message is privatized, the system's too. Images, audio, files, tools and whatever else cannot be protected are
    refused, and no text is logged or kept. Each request has a session of its own: a conversation that a client sends
    again is drawn again and spends again. The header textveil-statement of an answer tells the promise. Without
    --profile, --config or --mechanism it is the profile `chat`.
    """
    require("starlette", "httpx2", "uvicorn")
    from textveil.gateway import Proxy, listen, server
    from textveil.pipeline import Privatizer

    served = Proxy(privatizer=Privatizer.from_config(config), upstream=upstream, timeout=timeout, limit=limit)
    with listen(host, port) as listening:
        if not (host in LOCAL or host.startswith("127.")):
            shell.note("textveil: warning: the proxy is open to other machines, which then send their texts in clear")
        where = f"[{host}]" if ":" in host else host
        shell.note(f"textveil: serving http://{where}:{listening.getsockname()[1]}/v1")
        server(served).run(sockets=[listening])
