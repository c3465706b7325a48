"""The verbs of `session`: listing, showing and forgetting sessions.

In: the URL of a store, names of sessions. Out: lists, counts, session files.
Not here: what a store does (`textveil.session`), and how the verbs that release open sessions
(`session_options`).
"""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from textveil.cli import session_options
from textveil.cli.console import note, say
from textveil.cli.decorators import group, verb
from textveil.cli.session_options import STORE_VARIABLES, read_store, split_name
from textveil.errors import ConfigError, quote_file
from textveil.files import text_streams

Store = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar=STORE_VARIABLES,
        callback=read_store,
        help="sqlite:///NAME.db, postgresql://HOST/NAME or redis://HOST/0.",
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="SUBJECT[/SESSION]",
        help="The name of the session: its subject, and which of their sessions.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

session = group(
    "List, show, forget and export the sessions of a store.",
    "textveil session list --store sqlite:///veil.db",
    "textveil session forget anna --store sqlite:///veil.db",
)


def open_store(url: str) -> Any:
    """Opens the store of a URL, which must be a database."""
    from textveil.session import SessionStore

    if url.startswith(("file:", "memory:")):
        raise ConfigError(
            "--store must be sqlite:///NAME.db, postgresql://HOST/NAME or redis://HOST/0, got "
            f"{quote_file(url)}"
        )
    return SessionStore(url)


def format_time(seconds: int | None) -> str:
    """Formats a time for printing."""
    if seconds is None:
        return "never"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


@verb("textveil session list --store sqlite:///veil.db", on=session, name="list")
def list_sessions(store: Store, as_json: AsJson = False) -> None:
    """List the sessions, with the times when something was last added and when they are forgotten."""
    with open_store(store) as opened_store:
        sessions = opened_store.sessions()
    if as_json:
        say(
            json.dumps(
                [stored_session.to_json() for stored_session in sessions], ensure_ascii=False
            )
        )
        return
    names = [f"{stored_session.subject}/{stored_session.session}" for stored_session in sessions]
    width = max(map(len, names), default=0)
    for name, stored_session in zip(names, sessions, strict=True):
        say(
            f"{name:{width}}  used {format_time(stored_session.used)} UTC  expires "
            f"{format_time(stored_session.expires)}"
        )
    if not sessions:
        note("the store has no sessions")


@verb("textveil session show anna/lease --store sqlite:///veil.db", on=session, name="show")
def show(name: Name, store: Store, as_json: AsJson = False) -> None:
    """Show how much a session remembers and what a person behind all of it loses, in counts."""
    with open_store(store) as opened_store:
        snapshot = opened_store.open(*split_name(name), new=False).snapshot()
        counts: dict[str, Any] = {
            "values": dict(sorted(snapshot.counts.items())),
            "replaced names": len(snapshot.replaced),
            "known targets": len(snapshot.targets),
        }
        losses = [snapshot.losses[key] for key in sorted(snapshot.losses)]
    if as_json:
        say(json.dumps({**counts, "per person": [loss.to_json() for loss in losses]}))
        return
    for type_, number in counts["values"].items():
        say(f"{type_}: {number:,}")
    for label in ("replaced names", "known targets"):
        say(f"{label}: {counts[label]:,}")
    for loss in losses:
        say(f"spent: {loss}")


@verb(
    "textveil session forget anna/lease --store sqlite:///veil.db",
    "textveil session forget anna --all --store sqlite:///veil.db",
    'textveil session forget anna/lease --value "<PERSON_1>" --store sqlite:///veil.db',
    'textveil session forget lease.session --value "<PERSON_1>" --value EMAIL',
    "textveil session forget --all --values - --store sqlite:///veil.db < values.txt",
    on=session,
    name="forget",
)
def forget(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[SUBJECT[/SESSION]|FILE]",
            help="The name of the session in the store, or without --store a session file. With "
            "--all --values - it may be left out, for all of the store.",
            show_default=False,
        ),
    ] = "",
    store: session_options.Store = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All sessions of this subject.")
    ] = False,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--value",
            metavar="PLACEHOLDER|TYPE",
            help="Forget only the original of this placeholder, such as <PERSON_1>, or all of a "
            "type, such as PERSON; repeatable.",
            show_default=False,
        ),
    ] = None,
    values_from: Annotated[
        str | None,
        typer.Option(
            "--values",
            metavar="-",
            help="Forget the values on standard input, one on each line, however they are spelled; "
            "in conversations of a gateway, too. It forgets values, not persons, and lists the "
            "placeholders that stood beside them.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --values: print JSON.")] = False,
) -> None:
    """Forget a session, or single values. Answers with them cannot be restored any more.

    The key of a session is destroyed, then its rows. Copies of the database that remain cannot be
    read without the key, unless the key was copied, too. With --value or --values the session
    stays, and its other values, but for those that hold a forgotten one; a forgotten placeholder is
    given to no other value. If a later text holds the value, it is judged anew and gets another
    placeholder. Backups from before still hold it.
    """
    if values_from is not None:
        _forget_values(
            name, store, values_from, everything=everything, as_json=as_json, more=values
        )
        return
    if not name:
        raise ConfigError("give the name of a session; only --all --values - may do without")
    subject, session_name = split_name(name)
    if everything and (values or "/" in name):
        raise ConfigError(
            "--all forgets all sessions of a subject: give SUBJECT alone, without --value"
        )
    if values:
        with session_options.open_session(name, store, new=False) as opened_session:
            assert opened_session is not None
            count = opened_session.forget(values)
        note(f"{count:,} {'value was' if count == 1 else 'values were'} forgotten")
        return
    if store is None:
        raise ConfigError("give --store URL; to forget a whole session file, delete it")
    with open_store(store) as opened_store:
        count = opened_store.forget(subject, None if everything else session_name)
    if not count:
        raise ConfigError(
            "the store has no such session, so nothing was forgotten: `textveil session list` names "
            "them, and --all takes all of a subject"
        )
    note(f"{count:,} {'session was' if count == 1 else 'sessions were'} forgotten")


def _forget_values(
    name: str,
    store: str | None,
    source: str,
    *,
    everything: bool,
    as_json: bool,
    more: list[str] | None,
) -> None:
    """Forgets the values on standard input, and says what went."""
    if source != "-":
        raise ConfigError(
            "--values takes only -: values are read from standard input, because shells keep "
            "arguments. Nothing was forgotten"
        )
    if more or (everything and "/" in name) or not (name or everything):
        raise ConfigError(
            "--values - needs SUBJECT/SESSION, SUBJECT --all, or --all alone for all of the store, "
            "and no --value. Nothing was forgotten"
        )
    if store is None and everything:
        raise ConfigError("--all needs --store URL. Nothing was forgotten")
    with text_streams.open_input("-") as stream:
        wanted = [line.strip() for line in text_streams.read_lines(stream) if line.strip()]
    if not wanted:
        raise ConfigError(
            "standard input has no value: give one on each line. Nothing was forgotten"
        )
    reports: list[Any]
    if store is None:
        with session_options.open_session(name, None, new=False) as opened_session:
            assert opened_session is not None
            report = opened_session.forget_values(wanted)
        reports = [report] if report.found or report.count else []
    else:
        subject, session_name = split_name(name) if name else (None, None)
        with open_store(store) as opened_store:
            reports = opened_store.forget_values(
                wanted, subject, None if everything else session_name
            )
    _say_forgotten(reports, len(wanted), as_json=as_json)


MAX_OTHERS = 12
"""Most placeholders that are listed for a session; --json lists all."""


def _say_forgotten(reports: list[Any], wanted: int, *, as_json: bool) -> None:
    """Prints which values were found, and what stood beside them."""
    numbers = frozenset[int]().union(*(report.found for report in reports))
    missing = [i + 1 for i in range(wanted) if i not in numbers]
    if as_json:
        say(json.dumps({"missing": missing, "places": [report.to_json() for report in reports]}))
    for report in () if as_json else reports:
        if not report.others:
            continue
        shown, left = report.others[:MAX_OTHERS], len(report.others) - MAX_OTHERS
        where = "from the same messages" if report.same_messages else "in the same session"
        more = f" and {left:,} more" if left > 0 else ""
        say(f"{report.place or 'the session'} keeps {', '.join(shown)}{more} {where}")
    lines = ", ".join(map(str, missing[:MAX_OTHERS])) + (", ..." if missing[MAX_OTHERS:] else "")
    note(
        f"{len(numbers):,} of {wanted:,} {'value' if wanted == 1 else 'values'} found and forgotten"
        + (f"; not found: number {lines}" if missing else "")
        + ". Values are forgotten, not persons: other values of a person stay"
    )


@verb(
    "textveil session export anna/lease lease.session --store sqlite:///veil.db",
    on=session,
    name="export",
)
def export(
    name: Name,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A new session file, or - for standard output.")
    ],
    store: Store,
) -> None:
    """Write a session as a session file, with the originals in clear, readable by its owner only."""
    with open_store(store) as opened_store:
        content = opened_store.open(*split_name(name), new=False).to_json()
    with text_streams.open_output(file, private=True, option="the session file") as sink:
        sink.write(content + "\n")


@verb(
    'textveil protect "Ask Maria Silva" --session lease.session',
    "textveil session import lease.session anna/lease --store sqlite:///veil.db",
    on=session,
    name="import",
)
def take(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A file that `textveil protect --session` wrote.")
    ],
    name: Name,
    store: Store,
) -> None:
    """Take in a session file under a name that is free.

    The file stays: delete it when it is not needed.
    """
    from textveil.session.session_file import read_content

    with open_store(store) as opened_store:
        opened_store.take(read_content(file), *split_name(name))
