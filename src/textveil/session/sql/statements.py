"""What a database is asked with every release, as statements that are built once: building one costs more than it does.

In: the tables, the kind of database. Out: `StoreStatements`, `LedgerStatements`, to be executed with values by name.
Not here: when they are asked, and in which transaction (`store`, `ledger`).
"""

from dataclasses import dataclass
from typing import Any

from textveil.session.sql.schema import Tables

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
    rows = {"": mine, "name": mine.where(facts.c.name.in_(some)), "tag": every.where(facts.c.tag.in_(some))}
    insert = inserted(facts, dialect)
    content = {"content": insert.excluded.content}
    return StoreStatements(
        version=version,
        alone=version.with_for_update(),
        added=sa.update(sessions).where(own, sessions.c.version == sa.bindparam("since")).values(**grown, **used),
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


@dataclass(frozen=True)
class LedgerStatements:
    """Those of a ledger.

    Attributes:
        account: the row of `of_account`, which nobody else changes before the transaction ends.
        reserved: that row, and of its entry `of_number` what was charged, and whether it was ended.
        charge: one statement or several that add an entry, to the totals and to what limits count; the last one gives
            these limits as they are then.
        end: the same for an entry that limits do not count.
        period: the period `of_period` of `of_account` begins anew at `now_began`, and `now_spent` is spent of it.
    """

    account: Any
    reserved: Any
    charge: tuple[Any, ...]
    end: tuple[Any, ...]
    period: Any


def of_ledger(tables: Tables, dialect: str) -> LedgerStatements:
    """The statements of a ledger."""
    import sqlalchemy as sa

    accounts, entries, limits = tables.accounts, tables.entries, tables.limits
    account: Any = sa.bindparam("of_account")
    own = accounts.c.name == account
    new: dict[str, Any] = {each.name: sa.bindparam(f"new_{each.name}", type_=each.type) for each in entries.c}

    of: Any = sa.bindparam("of_number")
    ends = entries.alias()
    ended = sa.exists().where(ends.c.account == account, ends.c.of == of)
    charged = entries.c.what, entries.c.made, entries.c.words, entries.c.infinite.label("unbounded")
    sums = entries.c.epsilon.label("reserved"), entries.c.ldp.label("reserved_ldp")
    both = accounts.join(entries, entries.c.account == accounts.c.name)
    reserved = sa.select(accounts.c.name, accounts.c.entries, accounts.c.link, *charged, *sums, ended.label("ended"))
    reserved = reserved.select_from(both).where(own, entries.c.number == of).with_for_update(of=accounts)

    which = (limits.c.account == account) & (limits.c.period == sa.bindparam("of_period"))
    entry = sa.insert(entries).values(new)
    grown = {name: accounts.c[name] + new[name] for name in ("epsilon", "ldp")}
    grown |= {name: accounts.c[name] + sa.bindparam(f"more_{name}") for name in ("releases", "infinite")}
    totals = sa.update(accounts).where(own).values(entries=new["number"], link=new["link"], **grown)
    counted = sa.update(limits).where(limits.c.account == account).values(spent=limits.c.spent + new["epsilon"])
    counted = counted.returning(*limits.c)
    begun: dict[str, Any] = {"began": sa.bindparam("now_began"), "spent": sa.bindparam("now_spent")}
    charge: tuple[Any, ...] = entry, totals, counted
    end: tuple[Any, ...] = entry, totals
    if dialect != "sqlite":  # which writes to one table in a statement
        first = entry.cte("entry")
        charge = (sa.select(counted.cte("counted")).add_cte(first, totals.cte("totals")),)
        end = (totals.add_cte(first),)
    return LedgerStatements(
        account=sa.select(accounts).where(own).with_for_update(),
        reserved=reserved,
        charge=charge,
        end=end,
        period=sa.update(limits).where(which).values(begun),
    )
