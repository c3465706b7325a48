"""The ledger: what releases have spent, for each subject, metric and table, and what they may spend.

In: `Spend`s, before anything is drawn. Out: reservations, totals, `LimitReached` where a limit would be passed.
Not here: what a release spends (`session.spending`), and sessions (`store`).

Entries are only ever added. Each carries a link, an HMAC of the entry and the link before, so that none can be changed
or taken out; the last link is kept where the keys lie, after the first entry and then after each 64, so that a ledger
that vanished or that was put back from an older copy is noticed. For pure epsilon a sum against a limit is exact, also
if what is asked next depends on what came out.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from textveil.errors import ConfigError, LimitReached, StoreError
from textveil.session.spending import ALL, MICRO, Spend, micro
from textveil.session.sql.seal import NAME, Cipher, derived
from textveil.session.sql.statements import inserted, of_ledger
from textveil.session.stores import check

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from textveil.session.sql.store import SQLStore

EVERY = 64
"""After so many entries the last link is kept where the keys lie."""

DAY = 86_400

LIFETIME = 0
"""The period of a limit that is never reset."""

What = Literal["reserve", "confirm", "release"]


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What was charged for a release before it was drawn.

    Attributes:
        account: the name of the account.
        number: of the entry.
        repeated: whether the idempotency key was known, so that nothing was charged.
    """

    account: bytes
    number: int
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What an account may spend.

    Attributes:
        days: of the period; None for ever.
        most: in epsilons of the account.
        left: of this period.
    """

    days: float | None
    most: float
    left: float


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was spent on a subject, of one kind, ever. A reset of a period is a policy and changes nothing here.

    Attributes:
        subject: whose account it is.
        metric: what epsilon is per unit of; "ldp" for local DP.
        table: the table of words.
        epsilon: the sum of all releases, unless some are infinite.
        ldp: the local DP that it amounts to.
        releases: how many there were; those that nobody saw, because their process died, count.
        infinite: how many of them have no finite bound, and are in no sum.
        limits: what may be spent.
    """

    subject: str
    metric: str
    table: str
    epsilon: float
    ldp: float
    releases: int
    infinite: int
    limits: tuple[Limit, ...] = ()

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        return {**vars(self), "limits": [dict(vars(each)) for each in self.limits]}


class Ledger:
    """The ledger of a `SQLStore`.

    Args:
        store: which.
        key: of the deployment; entries are linked under a key that follows from it.
    """

    def __init__(self, store: "SQLStore", key: bytes) -> None:
        self._store = store
        self._links = derived(key, b"ledger", store.name)
        self._labels = Cipher(derived(key, b"labels of the ledger", store.name), store.name)
        self._heads: dict[bytes, int] = {}
        self._statements = of_ledger(store.tables, store.dialect)

    # ---- spending ----------------------------------------------------------------------------------------------------

    def reserve(
        self, subject: str, spend: Spend, *, key: str | None = None, connection: "Connection | None" = None
    ) -> Reservation:
        """Charge what a release is going to spend at most. Call it before anything is drawn.

        Args:
            subject: whose texts it is made from.
            spend: at most.
            key: an idempotency key: a second reservation with the same key charges nothing, unless the first one was
                released. Whoever uses it must release the same bytes.
            connection: a transaction that is open already.

        Raises:
            LimitReached: the account may not spend so much; nothing was charged. StoreError: the ledger was changed,
                is older than it was, or vanished.
        """
        check(subject, "ledger")
        if connection is None:
            with self._writing() as opened:
                made = self.reserve(subject, spend, key=key, connection=opened)
            self._keep_head(made.account, made.number)
            return made
        account = self._opened(connection, [subject, spend.metric, spend.table])
        sealed = None if key is None else derived(self._links, b"key", account.name, key.encode())[:NAME]
        if sealed is not None and (known := self._by_key(connection, account.name, sealed)) is not None:
            return Reservation(account=account.name, number=known, repeated=True)
        row = self._entry(account, "reserve", 0, spend, sealed)
        *others, last = self._statements.charge
        for each in others:
            connection.execute(each, row)
        self._check_limits(connection, connection.execute(last, row).all(), spend)
        return Reservation(account=account.name, number=account.entries + 1)

    def reserve_all(
        self,
        subject: str,
        spends: Sequence[Spend],
        *,
        key: str | None = None,
        connection: "Connection | None" = None,
    ) -> list[Reservation]:
        """Charge all that one release is going to spend, or nothing of it; see `reserve`.

        Args:
            subject: whose texts it is made from.
            spends: one for each metric and table.
            key: an idempotency key; another sum under it is another reservation.
            connection: a transaction that is open already.
        """
        if not spends:
            return []
        if connection is None:
            with self._writing() as opened:
                made = self.reserve_all(subject, spends, key=key, connection=opened)
            for each in made:
                self._keep_head(each.account, each.number)
            return made
        made = []
        for spend in sorted(spends, key=lambda spend: (spend.metric, spend.table)):  # so that nobody waits in a ring
            own = None if key is None else f"{key} {spend.epsilon} {spend.ldp} {spend.words} {spend.infinite}"
            made.append(self.reserve(subject, spend, key=own, connection=connection))
        return made

    def confirm(self, reservation: Reservation, connection: "Connection | None" = None) -> None:
        """Note that the release was made, in the transaction that remembers it where there is one."""
        if not reservation.repeated:
            self._close(reservation, "confirm", connection)

    def release(self, reservation: Reservation) -> None:
        """Give back what was reserved. Only for a release that failed before anything was drawn.

        Raises:
            StoreError: the release was confirmed, or given back already.
        """
        self._close(reservation, "release", None)

    def limit(
        self,
        subject: str,
        metric: str,
        table: str,
        epsilon: float | None,
        *,
        days: float | None = None,
        alone: bool = False,
    ) -> None:
        """Limit what may be spent from now on; what was spent before counts for the limit without a period.

        A limit with the same period as before goes on counting where that one was.

        Args:
            subject: whose account.
            metric: its metric; "ldp" for local DP.
            table: its table.
            epsilon: the most, in epsilons; None lifts the limit of this period.
            days: the period after which counting begins again; None for never.
            alone: whether limits with other periods are lifted; where it is as it should be, nothing is written.
        """
        import sqlalchemy as sa

        check(subject, "ledger")
        if epsilon is not None and not 0 <= epsilon < 1e9:
            raise ConfigError("a limit must be an epsilon from 0 on, below a billion")
        period = LIFETIME if days is None else round(days * DAY)
        if days is not None and period < 1:
            raise ConfigError("a period must be longer than a second")
        limits, label = self._store.tables.limits, [subject, metric, table]
        most = None if epsilon is None else int(epsilon * MICRO)
        if alone:
            with self._reading() as connection:
                found = connection.execute(sa.select(limits).where(limits.c.account == self._name(label))).all()
            if {row.period: row.most for row in found} == ({} if most is None else {period: most}):
                return
        with self._writing() as connection:
            account = self._opened(connection, label)
            own, same = limits.c.account == account.name, limits.c.period == period
            known = connection.execute(sa.select(limits).where(own, same)).first()
            connection.execute(sa.delete(limits).where(own if alone else own & same))
            if most is not None:
                row = {"account": account.name, "period": period, "most": most}
                row |= {"began": _now(), "spent": account.epsilon if period == LIFETIME else 0}
                row |= {} if known is None else {"began": known.began, "spent": known.spent}
                connection.execute(sa.insert(limits).values(row))

    # ---- what was spent ----------------------------------------------------------------------------------------------

    def accounts(self, subject: str | None = None) -> list[Account]:
        """All accounts, or those of a subject.

        Raises:
            StoreError: the ledger was changed, is older than it was, or vanished.
        """
        import sqlalchemy as sa

        limits, found = self._store.tables.limits, []
        with self._reading() as connection:
            for row in self._rows(connection, subject):
                self._check_head(row, connection)
                caps = sa.select(limits).where(limits.c.account == row.name).order_by(limits.c.period)
                made = Account(
                    **self._label(row),
                    epsilon=row.epsilon / MICRO,
                    ldp=row.ldp / MICRO,
                    releases=row.releases,
                    infinite=row.infinite,
                    limits=tuple(map(_shown, connection.execute(caps))),
                )
                found.append(made)
        return sorted(found, key=lambda each: (each.subject, each.metric, each.table))

    def entries(self) -> Iterator[dict[str, object]]:
        """All entries of all accounts, each account's links checked from the first to the last.

        Raises:
            StoreError: an entry is missing or was changed, or the totals are not their sums.
        """
        import sqlalchemy as sa

        entries = self._store.tables.entries
        with self._reading() as connection:
            for row in self._rows(connection):
                self._check_head(row, connection)
                # Not those that came since the account was read.
                own = sa.select(entries).where(entries.c.account == row.name, entries.c.number <= row.entries)
                link, epsilon, ldp, number = bytes(32), 0, 0, 0
                for number, each in enumerate(connection.execute(own.order_by(entries.c.number)), 1):
                    link = self._link(link, each)
                    if each.number != number or each.link != link:
                        raise StoreError(CHANGED)
                    epsilon, ldp = epsilon + each.epsilon, ldp + each.ldp
                    fields = ("number", "what", "of", "made", "words", "infinite")
                    plain = {name: getattr(each, name) for name in fields}
                    yield {**self._label(row), **plain, "epsilon": each.epsilon / MICRO, "ldp": each.ldp / MICRO}
                if (number, link, epsilon, ldp) != (row.entries, row.link, row.epsilon, row.ldp):
                    raise StoreError(CHANGED)

    # ---- rows --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> "Iterator[Connection]":
        from textveil.session.sql.store import failures

        with failures("changed"), self._store.writing() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> "Iterator[Connection]":
        from textveil.session.sql.store import failures

        with failures("read"), self._store.reading() as connection:
            yield connection

    def _rows(self, connection: "Connection", subject: str | None = None) -> Sequence[Any]:
        """The rows of accounts, all or those of a subject."""
        import sqlalchemy as sa

        accounts = self._store.tables.accounts
        asked = sa.select(accounts)
        if subject is not None:
            asked = asked.where(accounts.c.subject == self._subject(subject))
        return connection.execute(asked).all()

    def _label(self, row: Any) -> dict[str, str]:
        """What an account is of: subject, metric, table."""
        label = json.loads(self._labels.open(row.label, row.name))
        return dict(zip(("subject", "metric", "table"), label, strict=True))

    def _subject(self, subject: str) -> bytes:
        return derived(self._links, b"subject", subject.encode())[:NAME]

    def _name(self, label: Sequence[str]) -> bytes:
        return derived(self._links, b"account", *(each.encode() for each in label))[:NAME]

    def _opened(self, connection: "Connection", label: Sequence[str]) -> Any:
        """The row of an account, which nobody else changes before the transaction ends; a new one if need be."""
        accounts = self._store.tables.accounts
        name = self._name(label)
        asked = self._statements.account, {"of_account": name}
        row = connection.execute(*asked).first()
        if row is None:
            if self._store.drawer.get(self._head(name)) is not None:
                raise StoreError(OLDER)
            sealed = self._labels.seal(json.dumps(list(label)).encode(), name)
            new: dict[str, Any] = dict.fromkeys(("entries", "epsilon", "ldp", "releases", "infinite"), 0)
            new |= {"name": name, "subject": self._subject(label[0]), "label": sealed, "link": bytes(32)}
            connection.execute(inserted(accounts, self._store.dialect).values(new).on_conflict_do_nothing())
            row = connection.execute(*asked).first()
        if name not in self._heads:
            self._heads[name] = self._check_head(row, connection)
        return row

    def _check_limits(self, connection: "Connection", limits: Sequence[Any], spend: Spend) -> None:
        """Begin the periods anew that are over, and refuse a spend that passes a limit: then the charge is undone."""
        for row in limits:
            began, spent = _period(row, row.spent - spend.epsilon)
            change, lift = (
                "change the limit with `textveil ledger limit`",
                "lift the limit with `textveil ledger limit`",
            )
            if spend.table == ALL:  # which only a gateway charges, for its keys, and only its policy limits
                change = "ask the operator of the gateway to raise `budget` in its policy"
                lift = "ask the operator of the gateway to take `budget` out of its policy"
            if spend.infinite:
                raise LimitReached(
                    "this account has a limit, and this release has no finite bound; use a mechanism that has one, or "
                    f"{lift}. Nothing was drawn"
                )
            if spent + spend.epsilon > row.most:
                when = (
                    ""
                    if row.period == LIFETIME
                    else f" until {time.strftime('%F %R', time.gmtime(began + row.period))} UTC"
                )
                raise LimitReached(
                    f"this release would spend {spend.epsilon / MICRO:g}, and {max(0, row.most - spent) / MICRO:g} of "
                    f"{row.most / MICRO:g} are left{when}; release less, or {change}. Nothing was drawn"
                )
            if began != row.began:
                anew = {"of_account": row.account, "of_period": row.period}
                anew |= {"now_began": began, "now_spent": spend.epsilon}
                connection.execute(self._statements.period, anew)

    def _by_key(self, connection: "Connection", account: bytes, key: bytes) -> int | None:
        """The reservation with an idempotency key."""
        import sqlalchemy as sa

        entries = self._store.tables.entries
        asked = sa.select(entries.c.number).where(entries.c.account == account, entries.c.key == key)
        found: int | None = connection.execute(asked).scalar()
        return found

    def _entry(self, account: Any, what: What, of: int, spend: Spend, key: bytes | None) -> dict[str, Any]:
        """The next entry of an account, and what it adds to the totals, as `LedgerStatements` want it."""
        sign = {"reserve": 1, "confirm": 0, "release": -1}[what]
        row: dict[str, Any] = {"account": account.name, "number": account.entries + 1, "what": what, "of": of}
        row |= {"epsilon": sign * spend.epsilon, "ldp": sign * spend.ldp, "words": sign * spend.words, "made": _now()}
        row |= {"infinite": spend.infinite, "key": key}
        row["link"] = self._link(account.link, row)
        return {f"new_{name}": value for name, value in row.items()} | {
            "of_account": account.name,
            "more_releases": sign,
            "more_infinite": sign * bool(spend.infinite),
        }

    def _close(self, reservation: Reservation, what: What, connection: "Connection | None") -> None:
        if connection is None:
            with self._writing() as opened:
                self._close(reservation, what, opened)
            return
        import sqlalchemy as sa

        name, number = reservation.account, reservation.number
        row = connection.execute(self._statements.reserved, {"of_account": name, "of_number": number}).first()
        if row is None or row.what != "reserve" or row.ended:
            raise StoreError("a reservation can be confirmed or released once, and this one was")
        spend = Spend(
            metric="", table="", epsilon=row.reserved, ldp=row.reserved_ldp, words=row.words, infinite=row.unbounded
        )
        if what == "release":
            limits, entries = self._store.tables.limits, self._store.tables.entries
            change = sa.update(limits).where(limits.c.account == name, limits.c.began <= row.made)
            connection.execute(change.values(spent=limits.c.spent - row.reserved))
            freed = sa.update(entries).where(entries.c.account == name, entries.c.number == number)
            connection.execute(freed.values(key=None))
        entry = self._entry(row, what, number, spend, None)
        for each in self._statements.end:
            connection.execute(each, entry)

    # ---- links -------------------------------------------------------------------------------------------------------

    def _link(self, before: bytes, row: Any) -> bytes:
        """The link of an entry. Its idempotency key is not in it: it is dropped when a reservation is released."""
        value = row if isinstance(row, dict) else row._mapping
        fields = ("number", "what", "of", "made", "epsilon", "ldp", "words", "infinite")
        return derived(
            self._links, b"link", value["account"], before, json.dumps([value[each] for each in fields]).encode()
        )

    def _head(self, account: bytes) -> str:
        return f"{self._store.name.hex()}/{account.hex()}-ledger"

    def _keep_head(self, account: bytes, number: int) -> None:
        """Keep the last link where the keys lie, when it is time; what is kept may be behind, never ahead."""
        import sqlalchemy as sa

        if number != 1 and number < self._heads.get(account, 0) + EVERY:
            return
        entries = self._store.tables.entries
        with self._reading() as connection:
            asked = sa.select(entries.c.link).where(entries.c.account == account, entries.c.number == number)
            link: bytes = connection.execute(asked).scalar_one()
        self._store.drawer.put(self._head(account), number.to_bytes(8, "big") + link)
        self._heads[account] = number

    def _check_head(self, account: Any, connection: "Connection") -> int:
        """The number of the last link that is kept where the keys lie; an error where the ledger is older than it."""
        import sqlalchemy as sa

        entries = self._store.tables.entries
        kept = self._store.drawer.get(self._head(account.name)) or bytes(40)
        head, links = int.from_bytes(kept[:8], "big"), {}
        for number in {account.entries, head} - {0}:
            asked = sa.select(entries.c.link).where(entries.c.account == account.name, entries.c.number == number)
            links[number] = connection.execute(asked).scalar()
        if account.entries and links[account.entries] != account.link:
            raise StoreError(CHANGED)
        if head and links[head] != kept[8:]:
            raise StoreError(OLDER)
        return head


CHANGED = (
    "the ledger was changed by other programs: what was spent is not known any more. Put back the newest copy of the "
    "store, or begin a new store"
)
OLDER = (
    "the ledger is older than it was, or entries vanished: what was spent since is not known. Put back the newest copy "
    "of the store, or begin a new store"
)


def _period(row: Any, spent: int) -> tuple[int, int]:
    """When the period of a limit began, and what of what was spent is spent of it."""
    if row.period == LIFETIME or _now() < row.began + row.period:
        return row.began, spent
    return row.began + (_now() - row.began) // row.period * row.period, 0


def _shown(row: Any) -> Limit:
    _, spent = _period(row, row.spent)
    days = None if row.period == LIFETIME else row.period / DAY
    return Limit(days=days, most=row.most / MICRO, left=max(0, row.most - spent) / MICRO)


def _now() -> int:
    return int(time.time())


__all__ = ["Account", "Ledger", "Limit", "Reservation", "Spend", "micro"]
