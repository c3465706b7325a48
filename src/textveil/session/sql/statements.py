"""What a database is asked with every release, as statements that are built once: building one costs more than it does.

In: the tables, the kind of database. Out: `StoreStatements`, `LedgerStatements`, to be executed with values by name.
Not here: when they are asked, and in which transaction (`store`, `ledger`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from textveil.session.sql.schema import Tables

CAP = "cap"
"""The kind of what is read like an entry, and is a limit."""

FACT = "name", "number", "kind", "tag", "content"
"""The columns of a row of a session, besides the session."""


@dataclass(frozen=True)
class StoreStatements:
    """Those of sessions.

    Attributes:
        version: the version of the session `of_session`, and the last number of its rows.
        alone: the same, and nobody else adds to the session before the transaction ends.
        added: the session has one version more, and `more_rows` rows, if it is at the version `since`.
        used: something was added that nothing else depends on.
        rows: the rows of `of_session`: those whose name, or whose tag, is one of `values`, or all of them ("").
        once: adds a row, unless it is there.
        anew: adds a row, or its content to the one that is there.
    """

    version: Any
    alone: Any
    added: Any
    used: Any
    rows: dict[str, Any]
    once: Any
    anew: Any


def of_store(tables: Tables, dialect: str) -> StoreStatements:
    """The statements of a store."""
    import sqlalchemy as sa

    sessions, facts = tables.sessions, tables.facts
    session: Any = sa.bindparam("of_session")
    own = sessions.c.number == session
    version = sa.select(sessions.c.version, sessions.c.last).where(own)
    used: dict[str, Any] = {"used": sa.bindparam("now"), "expires": sa.bindparam("expiry")}
    grown = {"version": sessions.c.version + 1, "last": sessions.c.last + sa.bindparam("more_rows")}

    every = sa.select(*(facts.c[name] for name in FACT))
    mine = every.where(facts.c.session == session)
    some: Any = sa.bindparam("values", expanding=True)
    # Tags of two sessions are never equal, and without the session SQLite takes the index that finds them.
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
        .where(own, sessions.c.version == sa.bindparam("since"))
        .values(**grown, **used),
        used=sa.update(sessions).where(own).values(used),
        rows=rows,
        once=insert.on_conflict_do_nothing(),
        anew=insert.on_conflict_do_update(index_elements=["session", "name"], set_=content),
    )


def inserted(table: Any, dialect: str) -> Any:
    """An insertion that may say what to do about rows that are there."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as insert
    else:
        from sqlalchemy.dialects.postgresql import insert as insert  # type: ignore[assignment]
    return insert(table)


def _given(prefix: str, columns: Iterable[Any]) -> dict[str, Any]:
    """Gives values of columns, to be given by name when a statement is executed."""
    import sqlalchemy as sa

    return {each.name: sa.bindparam(f"{prefix}_{each.name}", type_=each.type) for each in columns}


@dataclass(frozen=True)
class LedgerStatements:
    """Those of a ledger.

    Attributes:
        account: the row of `of_account`, which nobody else changes before the transaction ends.
        state: its newest entries, one more than are checked, and its limits, as entries of the kind `CAP`.
        link: of its entry `of_number`.
        found: its entries whose key, or whose number, is one of `values`, each with the link `before` it.
        ended: whether an entry of a kind of `values` ends `of_number`.
        append: one statement or several that add an entry, and what the row of the account says from now on; and those
            that also do what `cap` does.
        cap: adds the limit of `cap_period`, or puts it in the place of the one that is there.
        lift: takes out the limit of `of_period`.
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
    """The statements of a ledger that checks so many newest entries of an account."""
    import sqlalchemy as sa

    accounts, entries, limits = tables.accounts, tables.entries, tables.limits
    account: Any = sa.bindparam("of_account")
    several: Any = sa.bindparam("values", expanding=True)
    own, mine = accounts.c.name == account, entries.c.account == account
    number = entries.c.number == sa.bindparam("of_number")

    last = entries.alias()
    before = (last.c.account == entries.c.account) & (last.c.number == entries.c.number - 1)
    found = (
        sa.select(entries, last.c.link.label("before"))
        .select_from(entries.outerjoin(last, before))
        .where(mine)
    )
    ended = sa.select(entries.c.number).where(
        mine,
        entries.c.of == sa.bindparam("of_number"),
        entries.c.of != 0,
        entries.c.what.in_(several),
    )
    read = [each for each in entries.c if each.name != "account"]
    newest = (
        sa.select(*read).where(mine).order_by(entries.c.number.desc()).limit(checked + 1).subquery()
    )
    none = {name: sa.null().label(name) for name in ("key", "link", "note")}
    as_entry: dict[str, Any] = {
        "number": limits.c.period,
        "what": sa.literal(CAP),
        "made": limits.c.began,
    } | none
    as_entry |= {"epsilon": limits.c.most, "ldp": limits.c.spent, "infinite": sa.literal("")}
    caps = [as_entry.get(each.name, sa.literal(0)) for each in read]
    state = sa.union_all(sa.select(newest), sa.select(*caps).where(limits.c.account == account))

    new = _given("new", read)
    entry = sa.insert(entries).values(new | {"account": account})
    grown = ("entries", "link", "seal", "epsilon", "ldp", "releases", "infinite")
    totals = sa.update(accounts).where(own).values(_given("now", map(accounts.c.get, grown)))
    values = _given("cap", [each for each in limits.c if each.name != "account"])
    cap = inserted(limits, dialect).values(values | {"account": account})
    same = {name: cap.excluded[name] for name in ("most", "began", "spent")}
    cap = cap.on_conflict_do_update(index_elements=["account", "period"], set_=same)
    append: tuple[Any, Any] = (entry, totals), (entry, totals, cap)
    if dialect != "sqlite":  # which writes to one table in a statement
        one = totals.add_cte(entry.cte("entry"))
        append = (one,), (one.add_cte(cap.cte("cap")),)
    return LedgerStatements(
        account=sa.select(accounts).where(own).with_for_update(),
        state=state,
        link=sa.select(entries.c.link).where(mine, number),
        found={name: found.where(entries.c[name].in_(several)) for name in ("key", "number")},
        ended=ended,
        append=append,
        cap=cap,
        lift=sa.delete(limits).where(
            limits.c.account == account, limits.c.period == sa.bindparam("of_period")
        ),
    )
