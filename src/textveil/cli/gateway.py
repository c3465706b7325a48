"""The verb `gateway`, and the verbs under it.

In: an upstream and how to privatize, or a policy. Out: a server on this machine, and a line on
standard error that says where; keys; what is wrong with a policy.
Not here: what it does (`gateway`).
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import console, session_options, sessions
from textveil.cli.decorators import group, verb
from textveil.cli.gateway_config import (
    CONFIG_OPTION,
    GatewayConfig,
    build_schema,
    has_text_options,
    read_server_options,
    read_tls,
)
from textveil.cli.sessions import format_time
from textveil.config.extras import require
from textveil.config.option_sources import read_mapping
from textveil.errors import ConfigError, quote_file
from textveil.gateway import Policy, ServingOptions, ToolServer, find_policy, is_gateway_config

if TYPE_CHECKING:
    from textveil.cli.options import TypedOptions


@verb(
    "textveil gateway --upstream https://HOST/v1",
    (
        "textveil gateway --upstream http://localhost:8000/v1 --port 8601 --mechanism rankcape "
        "--epsilon 8"
    ),
    "textveil gateway --policy gateway.yaml --host 0.0.0.0 --tls-cert chain.pem --tls-key key.pem",
    "textveil gateway --config gateway.yaml",
    "OPENAI_BASE_URL=http://127.0.0.1:8600/v1 python your_program.py",
    default="prompt",
    own={"config": CONFIG_OPTION},
    fields={
        "said": (
            *(
                Policy,
                "upstream",
                "hosts",
                "origins",
                "timeout",
                "limit",
                "media",
                "schemas",
                "unknown",
            ),
            *("users", "playground", "memory"),
        ),
        "running": (ServingOptions,),
    },
    brief=(
        *("upstream", "policy", "host", "port", "tls_cert", "tls_key", "store", "workers"),
        *("audit_log", "level", "config"),
    ),
)
def serve(
    typed: "TypedOptions",
    said: dict[str, Any],
    running: dict[str, Any],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="The policy of the gateway, as YAML; read again at SIGHUP. Or the name of an agent "
            "whose policy comes along: claude-code, codex, opencode, aider. `textveil gateway "
            "check` lists its faults. An option that the file also sets is refused. Rules "
            "in the file can set other values for some requests.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="The address to bind, or its host name, which requests may then use. Anything "
            "but 127.0.0.1 exposes the gateway to other machines, and needs keys and TLS.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 picks a free one."),
    ] = 8600,
    tls_cert: Annotated[
        str | None,
        typer.Option(
            "--tls-cert", metavar="FILE", help="The certificate for TLS and its chain, as PEM."
        ),
    ] = None,
    tls_key: Annotated[
        str | None,
        typer.Option(
            "--tls-key", metavar="FILE", help="The key of the certificate, without a password."
        ),
    ] = None,
    exposed: Annotated[
        bool,
        typer.Option(
            "--exposed",
            help="Bind an address that other machines reach without keys or TLS, because "
            "something else, such as a reverse proxy, controls access and encrypts the "
            "traffic.",
        ),
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            envvar=session_options.STORE_VARIABLES,
            callback=session_options.read_store,
            show_default=False,  # a configuration may give it, with a password
            help="Keep the releases of messages in this store, encrypted, and count what they "
            "spend: sqlite:///NAME.db or postgresql://HOST/NAME; or redis://HOST/0, where nothing "
            "may be spent. Without a store they are kept in memory for a day.",
        ),
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            metavar="FILE",
            help="A library of public texts for the playground's tab of whole letters, made by `textveil "
            "library make`. Without it, the page makes a small one from invented notes.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            help="The number of processes that answer; several share conversations through "
            "--store, and each loads the models.",
        ),
    ] = 1,
) -> None:
    """Run a gateway to a language model: it protects requests and restores answers.

    Serves the APIs of OpenAI (chat completions, responses, completions, embeddings, moderations,
    models; also as Azure has them), Anthropic (messages), Gemini, Ollama and Bedrock (Converse).
    Set the base URL of any of their clients to the address that is printed. Its API key is
    forwarded, or the gateway checks its own keys, if a --policy names them. Every text of a request
    is protected, also results and arguments of tools. Content that cannot be protected is refused,
    such as images. No text is logged. Each message of a conversation is released once; later
    requests send the same release again. For that, releases are kept in memory for a day, or
    encrypted in --store. Answers carry their statement in the header textveil-statement. Without
    --profile or --mechanism the profile is `prompt`.
    """
    require("starlette", "httpx2", "uvicorn", "prometheus_client")
    from textveil.gateway import (
        Gateway,
        Playground,
        WorkerSupervisor,
        allow_host,
        build_tls_context,
        check_exposure,
        check_log,
        check_references,
        create_server,
        is_local,
        listen,
        read_policy,
        reload_on_signal,
        reload_policy,
    )
    from textveil.library import Library
    from textveil.pipeline import Privatizer
    from textveil.session import SessionStore

    if tls_files := read_tls(tls_cert, tls_key):
        said["tls"] = tls_files

    server_options = read_server_options(typed.file)
    has_file = policy is not None or typed.file is not None

    def read_checked_policy() -> Policy:
        """Reads the present policy, and refuses a faulty one.

        A policy that is refused at the start is refused later, too.
        """
        options = read_server_options(typed.file)
        if changed := [
            str(name)
            for name in {**server_options, **options}
            if server_options.get(name) != options.get(name)
        ]:
            say(f"a restart is needed for what changed in `gateway`: {', '.join(changed)}")
        new_policy = Policy(**said) if policy is None else read_policy(policy, **said)
        if new_policy.upstream is None:
            raise ConfigError(
                "`textveil gateway` needs --upstream URL, or a policy with `upstream`"
            )
        check_references(new_policy, policy)
        if not exposed:
            check_exposure(host, new_policy)
        if workers > 1:
            _check_shared(new_policy, typed if policy is None else None)
        return allow_host(host, new_policy)

    def refuse_reading() -> Policy:
        raise ConfigError("this gateway has no policy, and its options need a restart")

    def say(line: str) -> None:
        tell(line if workers == 1 else f"worker {os.getpid()}: {line}")

    _refuse_mixed_options(policy, typed)
    if workers > 1:  # said here, before there are any
        _require_database(store)
    with ExitStack() as stack:
        first_policy = read_checked_policy()
        if first_policy.tls is not None:
            build_tls_context(first_policy.tls)
        running_options = ServingOptions(**running)
        if running_options.audit_log:
            check_log(
                running_options.audit_log
            )  # here, where it is said once, and before the address
        listener = stack.enter_context(listen(host, port))
        has_page = first_policy.playground == "everywhere" or (
            first_policy.playground == "local" and is_local(host) and workers == 1
        )
        if library is not None and not has_page:
            raise ConfigError(
                "--library is for the playground, which this gateway does not serve: leave it out, or see "
                "--playground"
            )
        public_texts = None if library is None else Library.read(library)
        print_address = partial(
            _print_address, first_policy, host, listener.getsockname()[1], has_page=has_page
        )
        on_serving = None
        if workers > 1:
            outcome = WorkerSupervisor(
                workers,
                listener,
                grace=running_options.grace,
                report=tell,
                on_first_ready=print_address,
                reload=has_file,
            ).run()
            if isinstance(outcome, int):
                raise typer.Exit(outcome)
            on_serving = outcome
        start_reloading = None
        if has_file:
            read = refuse_reading if policy is None else read_checked_policy
            start_reloading = stack.enter_context(reload_on_signal(first_policy, read, say))
        # a worker that takes the place of another begins with what holds now
        current_policy = reload_policy(first_policy, read_checked_policy)
        ssl_context = None if current_policy.tls is None else build_tls_context(current_policy.tls)
        session_store = stack.enter_context(sessions.open_store(store) if store else SessionStore())
        config = typed.resolve_config() if policy is None else None
        privatizer: Any = None if config is None else Privatizer.from_config(config)
        gateway_app = Gateway(
            privatizer=privatizer,
            policy=current_policy,
            store=session_store,
            running=running_options,
        )
        if start_reloading is not None:
            start_reloading(gateway_app, ssl_context)
        if workers == 1:
            print_address()
        playground = None
        if has_page:
            playground = Playground(gateway_app, config, local=is_local(host), library=public_texts)
        create_server(gateway_app, ssl_context, on_serving, playground, alone=True).run(
            sockets=[listener]
        )


def _require_database(store: str | None) -> None:
    if (store or "memory:").startswith(("memory:", "file:")):
        raise ConfigError(
            "several workers share conversations through a database: add --store "
            "sqlite:///NAME.db, postgresql://HOST/NAME or redis://HOST/0"
        )


def _refuse_mixed_options(policy: str | None, typed: "TypedOptions") -> None:
    has_file = typed.file is not None and has_text_options(read_mapping(Path(typed.file)))
    if policy is not None and (typed.values or typed.settings or has_file):
        raise ConfigError(
            "--policy says how to privatize: leave out --profile, --level, -o and the like"
        )


def _check_shared(policy: Policy, typed: "TypedOptions | None") -> None:
    """Refuses policies that several workers cannot serve.

    The options say how to privatize where they are given.
    """
    if policy.playground == "everywhere":
        raise ConfigError(
            "the playground needs one process: leave out --workers, or give --playground never"
        )
    configs = [policy.resolve_config() if typed is None else typed.resolve_config()]
    configs += [policy.apply_rules((i,)).resolve_config() for i in range(len(policy.rules))]
    if any(config.seed is not None for config in configs):
        raise ConfigError(
            "several workers with one seed would make the same draws: leave out the seed"
        )


def _print_address(policy: Policy, host: str, port: int, *, has_page: bool) -> None:
    from textveil.gateway import is_local

    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    address = f"{'http' if policy.tls is None else 'https'}://{address}"
    if not is_local(host) and not (policy.keys and policy.tls):
        console.note(
            "textveil: warning: other machines can reach the gateway, without keys or unencrypted"
        )
    console.note(
        f"textveil: serving clients of most APIs at {address} and of OpenAI at {address}/v1"
    )
    if has_page:
        console.note(f"textveil: the playground is at {address}/")


def tell(line: str) -> None:
    """Prints a line about the gateway on standard error."""
    console.note(f"textveil: {line}")


gateway = group(default_verb=serve)

PolicyFile = Annotated[
    str,
    typer.Option(
        "--policy", metavar="FILE", help="The policy, which names the file of keys: `keys: FILE`."
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The holder of the key: any name, such as anna or team-a/anna."
    ),
]

keys = group(
    "Create, list and revoke API keys of the gateway.",
    "textveil gateway keys create anna --policy gateway.yaml",
    "textveil gateway keys revoke anna --policy gateway.yaml",
)
gateway.add_typer(keys, name="keys")


def _open_keys(policy: str, *, new: bool = False) -> Any:
    """Opens the file of keys that a policy names."""
    from textveil.gateway import GatewayKeys, read_policy

    file = read_policy(policy).keys
    if file is None:
        raise ConfigError(
            f"the policy {quote_file(policy)} names no file of keys: add `keys: FILE` to it"
        )
    return GatewayKeys(file, new=new)


@verb(
    "textveil gateway keys create anna --policy gateway.yaml",
    "textveil gateway keys create team-a/anna --days 90 --policy gateway.yaml",
    on=keys,
    name="create",
)
def create(
    name: Name,
    policy: PolicyFile,
    days: Annotated[
        float | None, typer.Option("--days", metavar="N", help="The key expires after N days.")
    ] = None,
) -> None:
    """Make a key and print it. It is not shown again.

    Only its hash is kept. A client sends it as its API key; it is never sent upstream. The policy
    says, under its name, what it may be used for.
    """
    console.say(_open_keys(policy, new=True).create(name, days=days))
    console.note("this key is not shown again")


@verb("textveil gateway keys list --policy gateway.yaml", on=keys, name="list")
def list_keys(policy: PolicyFile, as_json: sessions.AsJson = False) -> None:
    """List the keys, also those that expired or were revoked.

    Times are UTC; a use is noted once a minute.
    """
    key_list = _open_keys(policy, new=True).list_keys()
    if as_json:
        console.say(json.dumps([{**vars(record), "state": record.state} for record in key_list]))
        return
    rows = [("name", "id", "state", "made", "expires", "used")]
    rows += [
        (key.name, key.id, key.state, *map(format_time, (key.made, key.expires, key.used)))
        for key in key_list
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows if key_list else ():
        console.say(
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    if not key_list:
        console.note("there are no keys")


@verb("textveil gateway keys revoke anna --policy gateway.yaml", on=keys, name="revoke")
def revoke(name: Name, policy: PolicyFile) -> None:
    """Refuse a key from its next request on.

    An answer that is on its way still arrives.
    """
    revoked = _open_keys(policy).revoke(name)
    console.note(f"the key {revoked.name} ({revoked.id}) is revoked")


@verb(
    "textveil gateway check gateway.yaml",
    "textveil gateway check --schema > gateway.schema.json",
    on=gateway,
    name="check",
)
def check(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A policy, or the configuration of a whole gateway.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of both, for editors.")
    ] = False,
) -> None:
    """Check a policy or configuration: list its faults, one per line, or describe what it does.

    The files that it names must exist. A missing file of keys or environment variable is a warning
    only: it can be added before the gateway starts.
    """
    from textveil.gateway import PolicyError, check_references, explain_policy, read_policy

    assert context.parent is not None  # the group, which has the options of the server
    if schema == (file is not None):
        raise ConfigError("give the FILE of a policy, or --schema")
    if file is None:
        console.say(json.dumps(build_schema(context.parent.command, serve), indent=2))
        return
    faults, lines, missing = list[str](), list[str](), list[str]()

    @contextmanager
    def collect() -> Iterator[None]:
        try:
            yield
        except ConfigError as error:
            faults.extend(error.messages if isinstance(error, PolicyError) else [str(error)])

    config = None
    if is_gateway_config(read_mapping(Path(find_policy(file)))):
        config = GatewayConfig(file, context.parent.command)
        config.faults += config.find_missing()
        with collect():
            config.check()
    with collect():
        policy = read_policy(file) if config is None else config.build_policy()
        lines += explain_policy(policy)
        lines += [] if config is None else config.explain()
        missing = check_references(policy, file, starts=False)
    for fault in faults:
        console.note(f"textveil: error: {fault}")
    if faults:
        raise typer.Exit(2)
    for message in missing:
        console.note(f"textveil: warning: {message}")
    for line in lines:
        console.say(line)


@verb(
    "textveil gateway mcp --all-tools -- python server.py",
    "textveil gateway mcp --tool find_person --tool send_mail --upstream http://127.0.0.1:8000/mcp",
    "textveil gateway mcp --all-tools --store sqlite:///veil.db --session anna -- python server.py",
    "textveil gateway mcp --policy gateway.yaml -- python server.py",
    on=gateway,
    name="mcp",
    default="prompt",
    fields={
        "served": (ToolServer,),
        "said": (
            *(Policy, "tools", "other_tools", "hosts", "timeout", "media", "schemas", "unknown"),
        ),
    },
    brief=(
        *("upstream", "tools", "all_tools", "other_tools", "policy", "resources", "prompts"),
        *("port", "session", "store", "level"),
    ),
)
def mcp(
    typed: "TypedOptions",
    served: dict[str, Any],
    said: dict[str, Any],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...",
            help="The command that starts the tool server, which talks over its standard input "
            "and output.",
            show_default=False,
        ),
    ] = None,
    all_tools: Annotated[
        bool, typer.Option("--all-tools", help="Serve all tools, protected.")
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="A policy that says how texts are protected, which tools are served (`tools`, "
            "`other_tools`), and what happens to content that cannot be protected.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            help="Serve streamable HTTP at http://127.0.0.1:N/mcp in place of standard input and output; 0 picks a "
            "free port.",
            show_default=False,
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="NAME",
            help="The name of the session in --store: anna, or anna/tools for one of several. "
            "Gateways with the same session give a value the same placeholder, and restore "
            "each other's placeholders.",
        ),
    ] = None,
    store: session_options.Store = None,
) -> None:
    """Run a gateway to a tool server (MCP): it protects results of tools and restores arguments.

    For clients that feed a language model elsewhere. The client starts this gateway in place of the
    tool server (Model Context Protocol), or gets its address. The model sees placeholders; if it
    passes them to a tool as arguments, the tool gets the originals. Tools that are not named are
    refused, and so are requests of the server to the client. Originals are remembered until the
    gateway ends, or encrypted in --store.
    """
    require("mcp", "uvicorn", "httpx2")
    from textveil.gateway import listen, read_policy, serve_http, serve_stdio
    from textveil.pipeline import Privatizer
    from textveil.session import Session

    if (session is None) != (store is None):
        raise ConfigError("--session needs --store: it names the session in that store")
    if all_tools and "tools" in said:
        raise ConfigError("--all-tools serves all tools: leave out --tool")
    _refuse_mixed_options(policy, typed)
    if all_tools:
        said["tools"] = ("*",)
    server_policy = Policy(**said) if policy is None else read_policy(policy, **said)
    with session_options.open_session(session, store) as opened_session:
        server = ToolServer(
            privatizer=Privatizer.from_config(
                typed.resolve_config() if policy is None else server_policy.resolve_config()
            ),
            session=opened_session or Session(),
            command=tuple(command or ()),
            policy=server_policy,
            **served,
        )
        if port is None:
            serve_stdio(server)
            return
        with listen("127.0.0.1", port) as listener:
            console.note(f"textveil: serving http://127.0.0.1:{listener.getsockname()[1]}/mcp")
            serve_http(server, listener, server_policy.hosts)
