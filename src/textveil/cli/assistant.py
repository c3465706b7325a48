"""The verb `mcp`.

In: folders, and how to protect. Out: a tool server for an assistant, and over HTTP a line on
standard error that says where.
Not here: what it does (`gateway.assistant_tools`), and the gateway before other tool servers
(`gateway`).
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import console, session_options, texts
from textveil.cli.decorators import verb
from textveil.config.extras import require
from textveil.errors import ConfigError
from textveil.gateway import AssistantTools, Policy

if TYPE_CHECKING:
    from textveil.config import Config


@verb(
    "textveil mcp --folder letters --output restored",
    "textveil mcp --folder letters --output restored --session letters.session",
    "textveil mcp --folder letters --output restored --store sqlite:///veil.db --session anna",
    "TEXTVEIL_MCP_KEY=KEY textveil mcp --folder letters --output restored --port 8700",
    options=("profile", "level", "dates", "names", "config", "setting"),
    default="prompt",
    fields={"offered": (AssistantTools,), "said": (Policy, "hosts")},
    brief=(
        *("folders", "output", "reveal", "session", "store", "port", "host", "level", "dates"),
        *("names", "setting"),
    ),
)
def mcp(
    config: "Config",
    offered: dict[str, Any],
    said: dict[str, Any],
    session: texts.SessionFile = None,
    store: session_options.Store = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            help="Serve streamable HTTP at http://127.0.0.1:N/mcp in place of standard input and "
            "output; 0 picks a free port. With TEXTVEIL_MCP_KEY in the environment, requests need "
            "it as a bearer key.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="With --port: the address to bind. Anything but 127.0.0.1 lets other machines "
            "read the folders; it needs TEXTVEIL_MCP_KEY and --exposed.",
        ),
    ] = "127.0.0.1",
    exposed: Annotated[
        bool,
        typer.Option(
            "--exposed",
            help="Bind an address that other machines reach, because something else, such as a "
            "reverse proxy, encrypts the traffic.",
        ),
    ] = False,
) -> None:
    """Let an assistant read your files, protected: a tool server (MCP) with three tools.

    protect returns a file of --folder with placeholders for private values. find says which types
    of private values a file has, and in which lines. restore writes a text of the assistant with
    the originals into --output, as .txt or .md; the assistant can read nothing there. No tool
    returns an original, unless you give --reveal. The assistant starts this command, or gets its
    address. Originals are remembered until the server ends, or in --session. The gateway before
    other tool servers is `textveil gateway mcp`.
    """
    require("mcp", "uvicorn", "httpx2")
    from textveil.gateway import is_local, listen, read_mcp_key, serve_http, serve_stdio
    from textveil.pipeline import Protector
    from textveil.session import Session

    key = read_mcp_key()
    if port is None and (said or host != "127.0.0.1" or exposed):
        raise ConfigError("--host, --allow-host and --exposed need --port")
    if not is_local(host) and not (key and exposed):
        raise ConfigError(
            f"other machines can reach the server at {host}: set TEXTVEIL_MCP_KEY, and give "
            "--exposed if something else encrypts what they send"
        )
    with session_options.open_session(session, store) as opened_session:
        tools = AssistantTools(
            protector=Protector.from_config(config),
            session=opened_session or Session(),
            **offered,
        )
        if session is not None and store is None:
            tools.refuse_readable(session)
        if port is None:
            serve_stdio(tools)
            return
        with listen(host, port) as listener:
            address = f"[{host}]" if ":" in host else host
            console.note(f"textveil: serving http://{address}:{listener.getsockname()[1]}/mcp")
            serve_http(tools, listener, said.get("hosts", ()), key)
