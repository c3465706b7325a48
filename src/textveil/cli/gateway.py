"""The verb `gateway`, and those of its own.

In: an upstream and how to privatize. Out: a server on this machine, and a line on standard error that says where.
Not here: what it does (`gateway.app`).
"""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from textveil.cli import sessions, shell, stored
from textveil.cli.chat import Timeout
from textveil.cli.verbs import group, verb
from textveil.config.extras import require
from textveil.errors import ConfigError

if TYPE_CHECKING:
    from textveil.config import Config

LOCAL = ("localhost", "::1")


@verb(
    "textveil gateway --upstream https://HOST/v1",
    "textveil gateway --upstream http://localhost:8000/v1 --port 8601 --mechanism rankcape --epsilon 8",
    "OPENAI_BASE_URL=http://127.0.0.1:8600/v1 python your_program.py",
    default="prompt",
)
def serve(
    config: "Config",
    upstream: Annotated[
        str | None,
        typer.Option("--upstream", metavar="URL", help="The base URL of the model's API, such as http://HOST:PORT/v1."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="The address to bind; anything but 127.0.0.1 exposes the gateway to other machines.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 picks a free one.")
    ] = 8600,
    timeout: Timeout = 60.0,
    limit: Annotated[
        int, typer.Option("--limit", metavar="BYTES", min=1, help="The largest request that is accepted.")
    ] = 4_000_000,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            envvar=stored.VARIABLE,
            help="Keep there, encrypted, what became of messages, and count what they spend: sqlite:///NAME.db or "
            "postgresql://HOST/NAME. Else it is kept in memory for a day.",
        ),
    ] = None,
    media: Annotated[
        Literal["refuse", "pass"], typer.Option("--media", help="Images, audio, files and token ids: pass sends them.")
    ] = "refuse",
    schemas: Annotated[
        Literal["protect", "pass"],
        typer.Option("--schemas", help="What programs say about their tools: protect hides identifiers in it."),
    ] = "protect",
    unknown: Annotated[
        Literal["refuse", "drop"], typer.Option("--unknown", help="Fields and values that are not known here.")
    ] = "refuse",
    users: Annotated[
        Literal["pseudonym", "drop"], typer.Option("--users", help="Names of a program's users.")
    ] = "pseudonym",
    audit_log: Annotated[
        str,
        typer.Option(
            "--audit-log",
            metavar="FILE",
            help="Append a line of JSON for each request: counts and times, no content. While it cannot be written, "
            "nothing is sent.",
        ),
    ] = "",
    metrics: Annotated[
        Literal["local", "all", "off"],
        typer.Option("--metrics", help="Who may read /metrics: programs of this machine, all, or nobody."),
    ] = "local",
    grace: Annotated[
        float,
        typer.Option("--grace", metavar="SECONDS", min=0, help="How long open requests may take when it is stopped."),
    ] = 20.0,
    queue: Annotated[
        int,
        typer.Option("--queue", metavar="N", min=1, help="How many requests may wait; more are told to ask again."),
    ] = 200,
    long: Annotated[
        int,
        typer.Option(
            "--long",
            metavar="CHARACTERS",
            min=1,
            help="From so many characters of new text on, a request waits behind others of that kind only.",
        ),
    ] = 20_000,
) -> None:
    """Stand before a language model: what a program asks is protected, and what the model answers is restored.

    Serves the APIs of OpenAI (chat completions, responses, completions, embeddings, moderations, models) and Anthropic
    (messages). Set the base URL of any of their clients to the address that is printed. Its API key is forwarded.
    Every text of a request is protected, also results and arguments of tools. What cannot be protected is refused, such
    as images and fields that are not known here. No text is logged. Each message of a conversation is released once,
    and sent again as it was with later requests; what that needs is kept in memory for a day, or encrypted in --store.
    Answers carry their statement in the header textveil-statement. Without --profile or --mechanism the profile is
    `prompt`.
    """
    require("starlette", "httpx2", "uvicorn", "prometheus_client")
    if upstream is None:
        raise ConfigError("`textveil gateway` needs --upstream URL, the base URL of the model's API")
    from textveil.gateway import Gateway, Policy, Running, listen, server
    from textveil.pipeline import Privatizer
    from textveil.session import SessionStore

    with sessions.store_of(store) if store else SessionStore() as kept, listen(host, port) as listening:
        privatizer = Privatizer.from_config(config)
        policy = Policy(media=media, schemas=schemas, unknown=unknown, users=users)
        served = Gateway(
            privatizer=privatizer,
            upstream=upstream,
            policy=policy,
            timeout=timeout,
            limit=limit,
            store=kept,
            running=Running(audit_log=audit_log, metrics=metrics, grace=grace, queue=queue, long=long),
        )
        if not (host in LOCAL or host.startswith("127.")):
            shell.note("textveil: warning: other machines can reach the gateway, and send it their texts unencrypted")
        where = f"[{host}]" if ":" in host else host
        shell.note(f"textveil: serving http://{where}:{listening.getsockname()[1]}/v1")
        server(served).run(sockets=[listening])


gateway = group(alone=serve)
