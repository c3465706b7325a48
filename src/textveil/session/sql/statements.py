"""Prepared SQL statements of a store, since compiling costs more than running.

In: the tables, the kind of database. Out: `StoreStatements`, `LedgerStatements`, to be executed
with values by name.
Not here: when they are run, and in which transaction (`session_file`, `ledger`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from textveil.session.sql.schema import Tables

CAP_KIND = "cap"
"""Kind of a limit's row, which is read like an entry."""

FACT_COLUMNS = "name", "number", "kind", "tag", "content"
"""Columns of a session's row, except the session."""


@dataclass(frozen=True)
class StoreStatements:
    """Prepared statements of sessions.

    Attributes:
        version: selects the version of the session `of_session`, and the last number of its rows.
        lock: selects the same, and locks the session until the transaction ends.
        advance: raises the version by one, and the last number by `more_rows`, if the version is
            `since`.
        touch: updates the time of use, for additions that nothing else depends on.
        rows: select rows of `of_session`: those whose name, or whose tag, is one of `values`, or
            all of them ("").
        insert: adds a row, unless the name is taken.
        upsert: adds a row, or replaces its content and tag.
    """

    version: Any
    lock: Any
    advance: Any
    touch: Any
    rows: dict[str, Any]
    insert: Any
    upsert: Any


def build_store_statements(tables: Tables, dialect: str) -> StoreStatements:
    """Builds the statements of a store."""
    import sqlalchemy as sa

    sessions, facts = tables.sessions, tables.facts
    session: Any = sa.bindparam("of_session")
    is_session = sessions.c.number == session
    version = sa.select(sessions.c.version, sessions.c.last).where(is_session)
    usage: dict[str, Any] = {"used": sa.bindparam("now"), "expires": sa.bindparam("expiry")}
    counters = {
        "version": sessions.c.version + 1,
        "last": sessions.c.last + sa.bindparam("more_rows"),
    }

    all_rows = sa.select(*(facts.c[name] for name in FACT_COLUMNS))
    session_rows = all_rows.where(facts.c.session == session)
    values: Any = sa.bindparam("values", expanding=True)
    # Tags of two sessions are never equal, and without the session SQLite takes the index that
    # finds them.
    rows = {
        "": session_rows,
        "name": session_rows.where(facts.c.name.in_(values)),
        "tag": all_rows.where(facts.c.tag.in_(values)),
    }
    insert = build_insert(facts, dialect)
    content = {name: insert.excluded[name] for name in ("content", "tag")}
    return StoreStatements(
        version=version,
        lock=version.with_for_update(),
        advance=sa.update(sessions)
        .where(is_session, sessions.c.version == sa.bindparam("since"))
        .values(**counters, **usage),
        touch=sa.update(sessions).where(is_session).values(usage),
        rows=rows,
        insert=insert.on_conflict_do_nothing(),
        upsert=insert.on_conflict_do_update(index_elements=["session", "name"], set_=content),
    )


def build_insert(table: Any, dialect: str) -> Any:
    """Returns an INSERT of the dialect, with conflict handling."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as insert
    else:
        from sqlalchemy.dialects.postgresql import insert as insert  # type: ignore[assignment]
    return insert(table)


def _build_parameters(prefix: str, columns: Iterable[Any]) -> dict[str, Any]:
    """Returns named parameters for columns."""
    import sqlalchemy as sa

    return {
        column.name: sa.bindparam(f"{prefix}_{column.name}", type_=column.type)
        for column in columns
    }


@dataclass(frozen=True)
class LedgerStatements:
    """Prepared statements of a ledger.

    Attributes:
        account: selects and locks the row of `of_account` until the transaction ends.
        state: selects its newest entries, one more than are checked, and its limits, as entries of
            the kind `CAP_KIND`.
        link: selects the link of its entry `of_number`.
        lookup: select its entries whose key, or whose number, is one of `values`, each with the
            link `before` it.
        ended: selects an entry of a kind in `values` that ends `of_number`.
        append: statements that add an entry and update the row of the account; and those that also
            do what `cap` does.
        cap: adds or replaces the limit of `cap_period`.
        lift: deletes the limit of `of_period`.
    """

    account: Any
    state: Any
    link: Any
    lookup: dict[str, Any]
    ended: Any
    append: tuple[tuple[Any, ...], tuple[Any, ...]]
    cap: Any
    lift: Any


def build_ledger_statements(tables: Tables, dialect: str, link_count: int) -> LedgerStatements:
    """Builds the statements of a ledger.

    Args:
        tables: the tables.
        dialect: kind of the database.
        link_count: number of newest entries of an account that are checked.
    """
    import sqlalchemy as sa

    accounts, entries, limits = tables.accounts, tables.entries, tables.limits
    account: Any = sa.bindparam("of_account")
    lookup_values: Any = sa.bindparam("values", expanding=True)
    is_account, is_entry = accounts.c.name == account, entries.c.account == account
    number = entries.c.number == sa.bindparam("of_number")

    last = entries.alias()
    is_previous = (last.c.account == entries.c.account) & (last.c.number == entries.c.number - 1)
    lookup = (
        sa.select(entries, last.c.link.label("before"))
        .select_from(entries.outerjoin(last, is_previous))
        .where(is_entry)
    )
    end_query = sa.select(entries.c.number).where(
        is_entry,
        entries.c.of == sa.bindparam("of_number"),
        entries.c.of != 0,
        entries.c.what.in_(lookup_values),
    )
    columns = [column for column in entries.c if column.name != "account"]
    newest = (
        sa.select(*columns)
        .where(is_entry)
        .order_by(entries.c.number.desc())
        .limit(link_count + 1)
        .subquery()
    )
    nulls = {name: sa.null().label(name) for name in ("key", "link", "note")}
    entry_columns: dict[str, Any] = {
        "number": limits.c.period,
        "what": sa.literal(CAP_KIND),
        "made": limits.c.began,
    } | nulls
    entry_columns |= {"epsilon": limits.c.most, "ldp": limits.c.spent, "infinite": sa.literal("")}
    caps = [entry_columns.get(column.name, sa.literal(0)) for column in columns]
    state = sa.union_all(sa.select(newest), sa.select(*caps).where(limits.c.account == account))

    new = _build_parameters("new", columns)
    entry = sa.insert(entries).values(new | {"account": account})
    total_names = ("entries", "link", "seal", "epsilon", "ldp", "releases", "infinite")
    totals = (
        sa.update(accounts)
        .where(is_account)
        .values(_build_parameters("now", map(accounts.c.get, total_names)))
    )
    values = _build_parameters("cap", [column for column in limits.c if column.name != "account"])
    cap = build_insert(limits, dialect).values(values | {"account": account})
    updates = {name: cap.excluded[name] for name in ("most", "began", "spent")}
    cap = cap.on_conflict_do_update(index_elements=["account", "period"], set_=updates)
    append: tuple[Any, Any] = (entry, totals), (entry, totals, cap)
    if dialect != "sqlite":  # SQLite writes to one table per statement
        statement = totals.add_cte(entry.cte("entry"))
        append = (statement,), (statement.add_cte(cap.cte("cap")),)
    return LedgerStatements(
        account=sa.select(accounts).where(is_account).with_for_update(),
        state=state,
        link=sa.select(entries.c.link).where(is_entry, number),
        lookup={
            name: lookup.where(entries.c[name].in_(lookup_values)) for name in ("key", "number")
        },
        ended=end_query,
        append=append,
        cap=cap,
        lift=sa.delete(limits).where(
            limits.c.account == account, limits.c.period == sa.bindparam("of_period")
        ),
    )
