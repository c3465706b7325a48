"""The verbs of `ledger`: what releases spent and may spend.

In: the URL of a store, names of accounts. Out: a table, or JSON.
Not here: how spending is counted (`textveil.session`).
"""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli.console import note, say
from textveil.cli.decorators import group, verb
from textveil.cli.sessions import AsJson, Store, format_time, open_store
from textveil.errors import ConfigError, quote
from textveil.files import text_streams

if TYPE_CHECKING:
    from textveil.session.sql.ledger import Limit

Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="[SUBJECT]",
        help="The subject of the accounts. Default: all subjects.",
        show_default=False,
    ),
]

ledger = group(
    "Show and limit what releases have spent.",
    "textveil ledger show --store sqlite:///veil.db",
    "textveil ledger limit anna 100 --days 30 --metric ldp --store sqlite:///veil.db",
)

LEDGER_COLUMNS = (
    "subject",
    "metric",
    "table",
    "epsilon",
    "local DP",
    "releases",
    "infinite",
    "left",
)


@verb(
    "textveil ledger show --store sqlite:///veil.db",
    "textveil ledger show anna --json",
    on=ledger,
    name="show",
)
def show(store: Store, subject: Subject = None, as_json: AsJson = False) -> None:
    """Show what was spent, ever, and what is left. One account is one subject, metric and table.

    Epsilon adds up over all drawn words, or whole texts. The metric central is that of noisy counts
    of whole texts, which spend twice as much in local DP. Releases without a finite bound are
    counted separately and are in no sum. All entries are checked: a missing or changed entry is an
    error that names the account.
    """
    with open_store(store) as opened_store:
        accounts = opened_store.ledger.accounts(subject, whole=True)
    if as_json:
        say(json.dumps([account.to_json() for account in accounts], ensure_ascii=False))
        return
    if not accounts:
        note("nothing was spent")
        return
    rows = [LEDGER_COLUMNS]
    for account in accounts:
        remaining = ", ".join(map(_format_remaining, account.limits)) or "no limit"
        spent = (
            f"{account.epsilon:g}",
            f"{account.ldp:g}",
            f"{account.releases:,}",
            f"{account.infinite:,}",
        )
        rows.append((account.subject, account.metric, account.table, *spent, remaining))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _format_remaining(limit: "Limit") -> str:
    days = "" if limit.days is None else f" in {limit.days:g} days"
    return f"{limit.left:g} of {limit.most:g}{days}"


@verb(
    "textveil ledger limit anna 100 --metric ldp --store sqlite:///veil.db",
    (
        "textveil ledger limit anna 10 --days 1 --metric chord --table minilm --store "
        "sqlite:///veil.db"
    ),
    "textveil ledger limit anna none --metric ldp --store sqlite:///veil.db",
    on=ledger,
    name="limit",
)
def limit(
    subject: Annotated[
        str,
        typer.Argument(metavar="SUBJECT", help="The subject of the account.", show_default=False),
    ],
    epsilon: Annotated[
        str,
        typer.Argument(
            metavar="EPSILON|none", help="The most that may be spent; none lifts the limit."
        ),
    ],
    store: Store,
    metric: Annotated[
        str,
        typer.Option(
            "--metric", metavar="NAME", help="The account's metric, as `ledger show` prints it."
        ),
    ] = "ldp",
    table: Annotated[
        str, typer.Option("--table", metavar="NAME", help="The account's table.")
    ] = "minilm",
    days: Annotated[
        float | None,
        typer.Option(
            "--days",
            metavar="N",
            help="Start to count again after N days. Default: the limit holds forever.",
        ),
    ] = None,
) -> None:
    """Refuse releases that would spend more than this, before anything of them is drawn."""
    try:
        maximum = None if epsilon == "none" else float(epsilon)
    except ValueError:
        maximum = -1.0
    if maximum is not None and not maximum >= 0:
        raise ConfigError(f"a limit must be a number of at least 0, or none, got {quote(epsilon)}")
    with open_store(store) as opened_store:
        opened_store.ledger.limit(subject, metric, table, maximum, days=days)


@verb("textveil ledger export spent.jsonl --store sqlite:///veil.db", on=ledger, name="export")
def export(
    store: Store,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The file to write, with one JSON object per line, or - for standard output.",
        ),
    ] = "-",
) -> None:
    """Write all entries, one JSON object per line, and check that none is missing and none was changed."""
    with open_store(store) as opened_store, text_streams.open_output(file, private=True) as sink:
        for entry in opened_store.ledger.entries():
            sink.write(
                text_streams.format_json_line(
                    {**entry, "made": f"{format_time(int(entry['made']))} UTC"}
                )
            )
