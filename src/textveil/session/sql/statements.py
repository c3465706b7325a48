"""Prepared SQL statements of a store, since compiling costs more than running.

In: the tables, the kind of database. Out: `StoreStatements`, `LedgerStatements`, to be executed
with values by name.
Not here: when they are run, and in which transaction (`store`, `ledger`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from textveil.session.sql.schema import Tables

CAP = "cap"
"""Kind of a limit's row, which is read like an entry."""

FACT = "name", "number", "kind", "tag", "content"
"""Columns of a session's row, except the session."""


@dataclass(frozen=True)
class StoreStatements:
    """Prepared statements of sessions.

    Attributes:
        version: selects the version of the session `of_session`, and the last number of its rows.
        alone: selects the same, and locks the session until the transaction ends.
        added: raises the version by one, and the last number by `more_rows`, if the version is
            `since`.
        used: updates the time of use, for additions that nothing else depends on.
        rows: select rows of `of_session`: those whose name, or whose tag, is one of `values`, or
            all of them ("").
        once: adds a row, unless the name is taken.
        anew: adds a row, or replaces its content.
    """

    version: Any
    alone: Any
    added: Any
    used: Any
    rows: dict[str, Any]
    once: Any
    anew: Any


def of_store(tables: Tables, dialect: str) -> StoreStatements:
    """Builds the statements of a store."""
    import sqlalchemy as sa

    sessions, facts = tables.sessions, tables.facts
    session: Any = sa.bindparam("of_session")
    is_session = sessions.c.number == session
    version = sa.select(sessions.c.version, sessions.c.last).where(is_session)
    used: dict[str, Any] = {"used": sa.bindparam("now"), "expires": sa.bindparam("expiry")}
    grown = {"version": sessions.c.version + 1, "last": sessions.c.last + sa.bindparam("more_rows")}

    every = sa.select(*(facts.c[name] for name in FACT))
    mine = every.where(facts.c.session == session)
    some: Any = sa.bindparam("values", expanding=True)
    # Tags of two sessions are never equal, and without the session SQLite takes the index that
    # finds them.
    rows = {
        "": mine,
        "name": mine.where(facts.c.name.in_(some)),
        "tag": every.where(facts.c.tag.in_(some)),
    }
    insert = inserted(facts, dialect)
    content = {"content": insert.excluded.content}
    return StoreStatements(
        version=version,
        alone=version.with_for_update(),
        added=sa.update(sessions)
        .where(is_session, sessions.c.version == sa.bindparam("since"))
        .values(**grown, **used),
        used=sa.update(sessions).where(is_session).values(used),
        rows=rows,
        once=insert.on_conflict_do_nothing(),
        anew=insert.on_conflict_do_update(index_elements=["session", "name"], set_=content),
    )


def inserted(table: Any, dialect: str) -> Any:
    """Returns an INSERT of the dialect, with conflict handling."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as insert
    else:
        from sqlalchemy.dialects.postgresql import insert as insert  # type: ignore[assignment]
    return insert(table)


def _parameters(prefix: str, columns: Iterable[Any]) -> dict[str, Any]:
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
            the kind `CAP`.
        link: selects the link of its entry `of_number`.
        found: select its entries whose key, or whose number, is one of `values`, each with the link
            `before` it.
        ended: selects an entry of a kind in `values` that ends `of_number`.
        append: statements that add an entry and update the row of the account; and those that also
            do what `cap` does.
        cap: adds or replaces the limit of `cap_period`.
        lift: deletes the limit of `of_period`.
    """

    account: Any
    state: Any
    link: Any
    found: dict[str, Any]
    ended: Any
    append: tuple[tuple[Any, ...], tuple[Any, ...]]
    cap: Any
    lift: Any


def of_ledger(tables: Tables, dialect: str, checked: int) -> LedgerStatements:
    """Builds the statements of a ledger.

    Args:
        tables: the tables.
        dialect: kind of the database.
        checked: number of newest entries of an account that are checked.
    """
    import sqlalchemy as sa

    accounts, entries, limits = tables.accounts, tables.entries, tables.limits
    account: Any = sa.bindparam("of_account")
    values_bound: Any = sa.bindparam("values", expanding=True)
    is_account, is_entry = accounts.c.name == account, entries.c.account == account
    number = entries.c.number == sa.bindparam("of_number")

    last = entries.alias()
    before = (last.c.account == entries.c.account) & (last.c.number == entries.c.number - 1)
    found = (
        sa.select(entries, last.c.link.label("before"))
        .select_from(entries.outerjoin(last, before))
        .where(is_entry)
    )
    ended = sa.select(entries.c.number).where(
        is_entry,
        entries.c.of == sa.bindparam("of_number"),
        entries.c.of != 0,
        entries.c.what.in_(values_bound),
    )
    read = [column for column in entries.c if column.name != "account"]
    newest = (
        sa.select(*read)
        .where(is_entry)
        .order_by(entries.c.number.desc())
        .limit(checked + 1)
        .subquery()
    )
    none = {name: sa.null().label(name) for name in ("key", "link", "note")}
    as_entry: dict[str, Any] = {
        "number": limits.c.period,
        "what": sa.literal(CAP),
        "made": limits.c.began,
    } | none
    as_entry |= {"epsilon": limits.c.most, "ldp": limits.c.spent, "infinite": sa.literal("")}
    caps = [as_entry.get(column.name, sa.literal(0)) for column in read]
    state = sa.union_all(sa.select(newest), sa.select(*caps).where(limits.c.account == account))

    new = _parameters("new", read)
    entry = sa.insert(entries).values(new | {"account": account})
    grown = ("entries", "link", "seal", "epsilon", "ldp", "releases", "infinite")
    totals = (
        sa.update(accounts).where(is_account).values(_parameters("now", map(accounts.c.get, grown)))
    )
    values = _parameters("cap", [column for column in limits.c if column.name != "account"])
    cap = inserted(limits, dialect).values(values | {"account": account})
    same = {name: cap.excluded[name] for name in ("most", "began", "spent")}
    cap = cap.on_conflict_do_update(index_elements=["account", "period"], set_=same)
    append: tuple[Any, Any] = (entry, totals), (entry, totals, cap)
    if dialect != "sqlite":  # SQLite writes to one table per statement
        one = totals.add_cte(entry.cte("entry"))
        append = (one,), (one.add_cte(cap.cte("cap")),)
    return LedgerStatements(
        account=sa.select(accounts).where(is_account).with_for_update(),
        state=state,
        link=sa.select(entries.c.link).where(is_entry, number),
        found={name: found.where(entries.c[name].in_(values_bound)) for name in ("key", "number")},
        ended=ended,
        append=append,
        cap=cap,
        lift=sa.delete(limits).where(
            limits.c.account == account, limits.c.period == sa.bindparam("of_period")
        ),
    )
