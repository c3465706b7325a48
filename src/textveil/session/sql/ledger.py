"""Ledger: spending and limits for each subject, metric and table.

In: `Spend`s, before anything is drawn. Out: reservations, totals, `LimitReached` where a limit
would be passed.
Not here: what a release spends (`session.spending`), and sessions (`store`).

Entries are only ever added. Each carries a link, an HMAC of the entry and the link before, so that
none can be changed or removed. A seal, an HMAC of the newest link, binds the totals and limits of
the account: whatever changes them adds an entry, so an older seal is that of an older link.
Accounts are entries of an account themselves, the register. The newest link is stored in the key
store, so that a ledger that vanished or that was replaced by an older copy is noticed. For pure
epsilon a sum against a limit is exact, also if the next query depends on earlier outputs.
"""

import hmac
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from textveil.errors import ConfigError, LimitReached, StoreError
from textveil.session.spending import ALL, MICRO, Spend, micro
from textveil.session.sql.database import HEADS, Database, failures
from textveil.session.sql.seal import NAME, Cipher, derived
from textveil.session.sql.statements import CAP, inserted, of_ledger
from textveil.session.state import check

if TYPE_CHECKING:
    from sqlalchemy import Connection

NEWEST = 16
"""Newest links to check when an account is opened; `entries` checks all."""

REMEMBERED = 4_096
"""Most links in a process's cache of checked links."""

LISTED = 8
"""Accounts of a subject that are looked up together."""

DAY = 86_400

LIFETIME = 0
"""Period of a limit that is never reset."""

REGISTER = ("", "", "")
"""Label of the account whose entries are the accounts."""

What = Literal["reserve", "confirm", "release", "limit", "open"]

SIGNS: Mapping[What, int] = {"reserve": 1, "release": -1}
"""Sign of an entry in the totals; other kinds count nothing."""

TOTALS = ("epsilon", "ldp", "releases", "infinite")


NOTHING = Spend(metric="", table="", epsilon=0, ldp=0, words=0)
FIRST = SimpleNamespace(number=0, link=bytes(32))
"""Predecessor of an account's first entry."""


class Cap(NamedTuple):
    """Stored limit of a period, in millionths of an epsilon.

    The period began at `began`, in seconds since 1970.
    """

    most: int
    began: int
    spent: int


@dataclass(frozen=True, kw_only=True)
class Opened:
    """An account in a transaction, checked.

    Attributes:
        label: its subject, metric and table.
        row: its row.
        caps: its limits by period.
        newest: its newest entries, the last one first.
    """

    label: Sequence[str]
    row: Any
    caps: Mapping[int, Cap]
    newest: Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Charge for a release before it is drawn.

    Attributes:
        account: name of the account.
        number: number of the entry.
        repeated: True if the idempotency key was known, so that nothing was charged.
    """

    account: bytes
    number: int
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Limit on an account's spending.

    Attributes:
        days: length of the period; None for ever.
        most: the limit, in epsilons of the account.
        left: the rest in this period.
    """

    days: float | None
    most: float
    left: float


@dataclass(frozen=True, kw_only=True)
class Account:
    """Total spending on a subject, for one metric and table.

    A reset of a period is a policy and changes nothing here.

    Attributes:
        subject: the subject.
        metric: the unit of distance that epsilon is per; "ldp" for local DP.
        table: the table of words.
        epsilon: the sum of all releases with a finite bound.
        ldp: the equivalent local DP.
        releases: number of releases, also of those that nobody saw, because their process died.
        infinite: number of those without a finite bound, which are in no sum.
        limits: limits on its spending.
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
        """Returns the fields as plain data."""
        return {**vars(self), "limits": [dict(vars(each)) for each in self.limits]}


class Ledger:
    """Ledger of a `SQLStore`.

    Args:
        store: database of the store.
        key: deployment key, from which the key of the links is derived.
    """

    def __init__(self, store: Database, key: bytes) -> None:
        self._store = store
        self._links = derived(key, b"ledger", store.name)
        self._labels = Cipher(derived(key, b"labels of the ledger", store.name), store.name)
        self._known: set[bytes] = set()
        # The newest links are checked at every access.
        self._linked = lru_cache(REMEMBERED)(self._hmac)
        self._statements = of_ledger(store.tables, store.dialect, NEWEST)

    # ---- spending --------------------------------------------------------------------------------

    def reserve(
        self,
        subject: str,
        spend: Spend,
        *,
        key: str | None = None,
        connection: "Connection | None" = None,
    ) -> Reservation:
        """Charges the most a release can spend. Call it before drawing.

        Args:
            subject: whose texts it is made from.
            spend: the most that it can spend.
            key: an idempotency key: a second reservation with the same key charges nothing, unless
                the first one was released. The caller must release the same bytes.
            connection: a transaction that is open already.

        Raises:
            LimitReached: it exceeds a limit of the account; nothing was charged. StoreError: the
                ledger was changed, is older than it was, or vanished.
        """
        check(subject, "ledger")
        if connection is None:
            with self._write() as opened:
                return self.reserve(subject, spend, key=key, connection=opened)
        account = self._opened(connection, [subject, spend.metric, spend.table])
        sealed, number = (None, None) if key is None else self._find_key(connection, account, key)
        if number is not None:
            return Reservation(account=account.row.name, number=number, repeated=True)
        caps = self._check_limits(account.caps, spend)
        return self._append(connection, account, "reserve", spend=spend, caps=caps, key=sealed)

    def reserve_all(
        self,
        subject: str,
        spends: Sequence[Spend],
        *,
        key: str | None = None,
        connection: "Connection | None" = None,
    ) -> list[Reservation]:
        """Charges all that one release can spend, or nothing; see `reserve`.

        Args:
            subject: whose texts it is made from.
            spends: one for each metric and table.
            key: an idempotency key; a different sum under it is a different reservation.
            connection: a transaction that is open already.
        """
        if not spends:
            return []
        if connection is None:
            with self._write() as opened:
                return self.reserve_all(subject, spends, key=key, connection=opened)
        check(subject, "ledger")
        self._register(connection, [(subject, each.metric, each.table) for each in spends])
        reservations = []
        for spend in sorted(
            spends, key=_sort_key
        ):  # in a fixed order, so that two processes never deadlock
            sums = f" {spend.epsilon} {spend.ldp} {spend.words} {spend.infinite}"
            own_key = None if key is None else key + sums
            reservations.append(self.reserve(subject, spend, key=own_key, connection=connection))
        return reservations

    def confirm(self, reservation: Reservation, connection: "Connection | None" = None) -> None:
        """Records that the release was made.

        Call it in the transaction that stores the release, if there is one.
        """
        if not reservation.repeated:
            self._close(reservation, "confirm", connection)

    def release(self, reservation: Reservation) -> None:
        """Cancels a reservation of a release that failed before any draw.

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
        """Limits further spending; a limit without a period counts the past, too.

        A limit with the same period as an earlier one continues its count.

        Args:
            subject: subject of the account.
            metric: its metric; "ldp" for local DP.
            table: its table.
            epsilon: the most, in epsilons; None lifts the limit of this period.
            days: the period after which counting begins again; None for never.
            alone: True to lift limits with other periods; where nothing changes, nothing is
                written.
        """
        check(subject, "ledger")
        most, period, label = (
            _convert_most(epsilon),
            _convert_period(days),
            [subject, metric, table],
        )
        if alone and self._read_limits(label) == ({} if most is None else {period: most}):
            return
        with self._write() as connection:
            account = self._opened(connection, label)
            caps = {} if alone else dict(account.caps)
            caps.pop(period, None)
            if most is not None:
                begun = Cap(most, _now(), account.row.epsilon if period == LIFETIME else 0)
                caps[period] = account.caps.get(period, begun)._replace(most=most)
            if caps != account.caps:
                note = json.dumps([period, most]).encode()
                self._append(connection, account, "limit", caps=caps, note=note)

    def _read_limits(self, label: Sequence[str]) -> dict[int, int]:
        """Returns the limits of an account by period, in millionths."""
        import sqlalchemy as sa

        limits = self._store.tables.limits
        statement = sa.select(limits).where(limits.c.account == self._name(label))
        with self._reading() as connection:
            return {row.period: row.most for row in connection.execute(statement)}

    # ---- what was spent --------------------------------------------------------------------------

    def accounts(self, subject: str | None = None, *, whole: bool = False) -> list[Account]:
        """Returns all accounts, or those of a subject.

        Args:
            subject: the subject; None for all.
            whole: True to check all links, not only the newest.

        Raises:
            StoreError: the ledger was changed, is older than it was, or vanished.
        """
        accounts = []
        with self._seen(subject) as (connection, opened):
            for account in opened:
                for _ in self._walk(connection, account) if whole else ():
                    pass
                totals = Account(
                    **_named(account.label),
                    epsilon=account.row.epsilon / MICRO,
                    ldp=account.row.ldp / MICRO,
                    releases=account.row.releases,
                    infinite=account.row.infinite,
                    limits=tuple(
                        _shown(period, cap) for period, cap in sorted(account.caps.items())
                    ),
                )
                accounts.append(totals)
        return sorted(accounts, key=lambda each: (each.subject, each.metric, each.table))

    def entries(self) -> Iterator[dict[str, object]]:
        """Yields all entries of all accounts, with every link checked.

        Raises:
            StoreError: an entry is missing or was changed, or the totals are not their sums.
        """
        with self._seen(None) as (connection, opened):
            for account in opened:
                for entry in self._walk(connection, account):
                    fields = ("number", "what", "of", "made", "words", "infinite")
                    plain = {name: getattr(entry, name) for name in fields}
                    plain |= {"epsilon": entry.epsilon / MICRO, "ldp": entry.ldp / MICRO}
                    if entry.what == "limit":
                        period, most = json.loads(entry.note)
                        plain["days"] = None if period == LIFETIME else period / DAY
                        plain["most"] = None if most is None else most / MICRO
                    yield _named(account.label) | plain

    # ---- rows ------------------------------------------------------------------------------------

    @contextmanager
    def _write(self) -> "Iterator[Connection]":
        with failures("changed"), self._store.writing() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> "Iterator[Connection]":
        with failures("read"), self._store.reading() as connection:
            yield connection

    @contextmanager
    def _seen(self, subject: str | None) -> "Iterator[tuple[Connection, Iterator[Opened]]]":
        """Yields accounts at one consistent moment, of a subject or all."""
        import sqlalchemy as sa

        accounts = self._store.tables.accounts
        statement = sa.select(accounts)
        if subject is not None:
            statement = statement.where(
                accounts.c.subject.in_([self._subject(subject), self._subject(REGISTER[0])])
            )
        # Read before the moment begins, so that no stored link is ahead of it.
        with self._reading() as connection:
            names = connection.execute(statement.with_only_columns(accounts.c.name)).scalars()
            heads = {name: self._store.head(name) for name in names}
        heads.setdefault(self._name(REGISTER), self._store.head(self._name(REGISTER)))
        with failures("read"), self._store.moment() as connection:
            with _convert_errors(REGISTER):
                rows = {row.name: row for row in connection.execute(statement)}
            yield connection, self._check_rows(connection, subject, rows, heads)

    def _check_rows(
        self,
        connection: "Connection",
        subject: str | None,
        rows: dict[bytes, Any],
        kept: Mapping[bytes, bytes | None],
    ) -> Iterator[Opened]:
        """Yields checked accounts; an error if the register does not match."""
        name = self._name(REGISTER)
        if name not in rows and kept[name] is not None:
            raise _error(REGISTER, OLDER)
        listed: list[Sequence[str]] = []
        if name in rows:
            register = self._check(connection, rows.pop(name), REGISTER, kept[name])
            if subject is None:
                walked = self._walk(connection, register)
                listed = [self._label(name, entry.note) for entry in walked]
            else:
                listed = self._read_listed(connection, register, subject)
        for label in listed:
            row = rows.pop(self._name(label), None)
            if row is None:
                raise _error(label, OLDER)
            with _convert_errors(label):
                account = self._check(connection, row, label, kept.get(row.name))
            yield account
        for row in rows.values():
            raise _error(self._read_label(row), CHANGED)

    def _label(self, name: bytes, sealed: bytes) -> list[str]:
        """Decrypts an account's label: subject, metric, table."""
        label: list[str] = json.loads(self._labels.open(sealed, name))
        return label

    def _subject(self, subject: str) -> bytes:
        return derived(self._links, b"subject", subject.encode())[:NAME]

    def _name(self, label: Sequence[str]) -> bytes:
        return derived(self._links, b"account", *(part.encode() for part in label))[:NAME]

    def _row(self, connection: "Connection", name: bytes) -> Any:
        """Locks and reads the row of an account; None if missing."""
        return connection.execute(self._statements.account, {"of_account": name}).first()

    def _opened(self, connection: "Connection", label: Sequence[str]) -> Opened:
        """Locks, checks and returns an account, created if necessary."""
        name = self._name(label)
        with _convert_errors(label):
            row = self._row(connection, name)
            if row is None:
                self._register(connection, [label], anew=True)
                row = self._row(connection, name)
            return self._check(connection, row, label, self._store.head(name))

    def _register(
        self, connection: "Connection", labels: Sequence[Sequence[str]], *, anew: bool = False
    ) -> None:
        """Creates missing accounts.

        All of them before any is opened, or two processes deadlock.

        Args:
            connection: a transaction.
            labels: labels of the accounts.
            anew: True to look up accounts again that this process has seen.
        """
        names = {self._name(label): label for label in labels}
        missing = [name for name in names if anew or name not in self._known]
        if not missing:
            return
        missing = self._select_missing(connection, missing)
        if not missing:
            self._known |= names.keys()
            return
        name = self._name(REGISTER)
        if self._row(connection, name) is None:
            self._create(connection, REGISTER)
        self._row(connection, name)  # waits for other processes that create accounts
        for missing_name in self._select_missing(connection, missing):
            self._create(connection, names[missing_name])
            self._list(connection, names[missing_name])

    def _list(self, connection: "Connection", label: Sequence[str]) -> None:
        """Adds an account to the register; an error if already listed."""
        name = self._name(REGISTER)
        row = self._row(connection, name)
        if row is None:
            self._create(connection, REGISTER)
            row = self._row(connection, name)
        register = self._check(connection, row, REGISTER, self._store.head(name))
        listed = self._read_listed(connection, register, label[0])
        if list(label) in listed:
            raise _error(label, OLDER)
        note = self._labels.seal(json.dumps(list(label)).encode(), name)
        self._append(
            connection, register, "open", key=self._derive_listing(label[0], len(listed)), note=note
        )

    def _select_missing(self, connection: "Connection", names: Sequence[bytes]) -> list[bytes]:
        """Returns the names without an account."""
        import sqlalchemy as sa

        accounts = self._store.tables.accounts
        statement = sa.select(accounts.c.name).where(accounts.c.name.in_(names))
        existing = set(connection.execute(statement).scalars())
        return [name for name in names if name not in existing]

    def _create(self, connection: "Connection", label: Sequence[str]) -> None:
        """Adds the row of a new account.

        If the key store has a link for it, opening it is an error.
        """
        name = self._name(label)
        row: dict[str, Any] = dict.fromkeys(("entries", *TOTALS), 0)
        row |= {"name": name, "link": bytes(32), "subject": self._subject(label[0])}
        row["label"] = self._labels.seal(json.dumps(list(label)).encode(), name)
        row["seal"] = self._seal(row, {})
        statement = inserted(self._store.tables.accounts, self._store.dialect).values(row)
        connection.execute(statement.on_conflict_do_nothing())

    def _derive_listing(self, subject: str, number: int) -> bytes:
        """Derives the register's key for a subject's account of this number."""
        return derived(self._links, b"listed", subject.encode(), b"%d" % number)[:NAME]

    def _read_listed(
        self, connection: "Connection", register: Opened, subject: str
    ) -> list[Sequence[str]]:
        """Returns the labels of a subject's accounts from the register."""
        listed: list[Sequence[str]] = []
        while len(listed) % LISTED == 0:
            keys = [self._derive_listing(subject, len(listed) + i) for i in range(LISTED)]
            entries = {
                entry.key: entry for entry in self._find_entries(connection, register, "key", keys)
            }
            listed += [
                self._label(register.row.name, entries[key].note) for key in keys if key in entries
            ]
            if not entries:
                break
        return listed

    def _check_limits(self, caps: Mapping[int, Cap], spend: Spend) -> dict[int, Cap]:
        """Returns the limits after one more spend, with expired periods restarted.

        Raises:
            LimitReached: the spend exceeds a limit.
        """
        charged = {}
        for period, cap in caps.items():
            began, spent = _period(period, cap)
            change = "change the limit with `textveil ledger limit`"
            lift = "lift the limit with `textveil ledger limit`"
            # Only a gateway charges this account, and its policy limits it.
            if spend.table == ALL:
                change = "ask the operator of the gateway to raise `budget` in its policy"
                lift = "ask the operator of the gateway to take `budget` out of its policy"
            if spend.infinite:
                raise LimitReached(
                    "this account has a limit, and this release has no finite bound; use a mechanism that has one, or "
                    f"{lift}. Nothing was drawn"
                )
            if spent + spend.epsilon > cap.most:
                ends = time.strftime("%F %R", time.gmtime(began + period))
                when = "" if period == LIFETIME else f" until {ends} UTC"
                raise LimitReached(
                    f"this release would spend {spend.epsilon / MICRO:g}, and {max(0, cap.most - spent) / MICRO:g} of "
                    f"{cap.most / MICRO:g} are left{when}; release less, or {change}. Nothing was drawn"
                )
            charged[period] = Cap(cap.most, began, spent + spend.epsilon)
        return charged

    def _find_key(
        self, connection: "Connection", account: Opened, key: str
    ) -> tuple[bytes, int | None]:
        """Returns an idempotency key as stored, and its valid reservation, if any."""
        turn = 0
        while True:
            name = account.row.name
            sealed = derived(self._links, b"key", name, key.encode(), b"%d" % turn)[:NAME]
            entries = self._find_entries(connection, account, "key", [sealed])
            if not entries or not self._is_ended(
                connection, account, entries[0].number, by=("release",)
            ):
                return sealed, entries[0].number if entries else None
            turn += 1

    def _find_entries(
        self,
        connection: "Connection",
        account: Opened,
        column: Literal["key", "number"],
        values: Sequence[Any],
    ) -> list[Any]:
        """Returns entries with some keys or numbers, their links checked."""
        values_asked = {"of_account": account.row.name, "values": list(values)}
        entries = list(connection.execute(self._statements.found[column], values_asked))
        for entry in entries:
            before = bytes(32) if entry.number == 1 else entry.before or b""
            if entry.link != self._link(account.row.name, before, entry):
                raise _error(account.label, CHANGED)
        return entries

    def _is_ended(
        self, connection: "Connection", account: Opened, number: int, *, by: Sequence[What]
    ) -> bool:
        """Says whether an entry of some kinds ended a reservation."""
        if (
            account.newest and account.newest[-1].number <= number
        ):  # all later entries are in `newest`
            return any(entry.of == number and entry.what in by for entry in account.newest)
        values = {"of_account": account.row.name, "of_number": number, "values": list(by)}
        return connection.execute(self._statements.ended, values).first() is not None

    def _append(
        self,
        connection: "Connection",
        account: Opened,
        what: What,
        *,
        of: int = 0,
        spend: Any = NOTHING,
        caps: Mapping[int, Cap] | None = None,
        key: bytes | None = None,
        note: bytes | None = None,
    ) -> Reservation:
        """Adds the next entry of an account, and updates totals and limits.

        Args:
            connection: a transaction that locks the account.
            account: the account.
            what: kind of entry.
            of: number of the reservation that it ends.
            spend: spending that it charges or gives back, or the entry that charged it.
            caps: the limits from now on; None where they stay.
            key: key under which it is found.
            note: sealed or plain details of the entry.
        """
        row, sign = account.row, SIGNS.get(what, 0)
        entry: dict[str, Any] = {"number": row.entries + 1, "what": what, "of": of, "made": _now()}
        entry |= {name: sign * getattr(spend, name) for name in ("epsilon", "ldp", "words")}
        entry |= {"infinite": spend.infinite, "key": key, "note": note}
        entry["link"] = self._link(row.name, row.link, SimpleNamespace(**entry))
        grown: dict[str, Any] = {"entries": entry["number"], "link": entry["link"]}
        grown |= {"epsilon": row.epsilon + entry["epsilon"], "ldp": row.ldp + entry["ldp"]}
        infinite = row.infinite + sign * bool(spend.infinite)
        grown |= {"releases": row.releases + sign, "infinite": infinite}
        caps = account.caps if caps is None else caps
        grown["seal"] = self._seal({**row._mapping, **grown}, caps)
        values = {f"new_{name}": value for name, value in entry.items()}
        values |= {"of_account": row.name} | {f"now_{name}": value for name, value in grown.items()}
        changed = _select_changed(account, caps)
        for cap in changed[1:]:
            connection.execute(self._statements.cap, cap)
        for statement in self._statements.append[bool(changed)]:
            connection.execute(statement, values | (changed[0] if changed else {}))
        for period in account.caps.keys() - caps.keys():
            connection.execute(self._statements.lift, {"of_account": row.name, "of_period": period})
        if what != "confirm":
            connection.info.setdefault(HEADS, {})[row.name] = entry["number"], entry["link"]
        return Reservation(account=row.name, number=entry["number"])

    def _close(self, reservation: Reservation, what: What, connection: "Connection | None") -> None:
        if connection is None:
            with self._write() as opened:
                self._close(reservation, what, opened)
            return
        row, number = self._row(connection, reservation.account), reservation.number
        if row is None:
            raise StoreError(f"an account of the ledger {OLDER}")
        account = self._check(connection, row, self._read_label(row), self._store.head(row.name))
        matching = [entry for entry in account.newest[:NEWEST] if entry.number == number]
        reserved = next(
            iter(matching or self._find_entries(connection, account, "number", [number])), None
        )
        ends: tuple[What, What] = "confirm", "release"
        known_one = reserved is not None and reserved.what == "reserve"
        if not known_one or self._is_ended(connection, account, number, by=ends):
            raise StoreError("a reservation can be confirmed or released once, and this one was")
        caps = account.caps if what == "confirm" else _give_back(account.caps, reserved)
        self._append(connection, account, what, of=number, spend=reserved, caps=caps)

    # ---- what holds an account together ----------------------------------------------------------

    def _check(
        self, connection: "Connection", row: Any, label: Sequence[str], kept: bytes | None
    ) -> Opened:
        """Opens an account, checked against its links, seal and key store.

        Args:
            connection: connection to read from.
            row: row of the account.
            label: label of the account.
            kept: number and link of the account in the key store.

        Raises:
            StoreError: the account was changed, or is older than it was.
        """
        with _convert_errors(label):
            newest, caps = self._read_state(connection, row.name)
            chain: list[Any] = newest if len(newest) > NEWEST else [*newest, FIRST]
            if (chain[0].number, chain[0].link) != (row.entries, row.link):
                raise _error(label, CHANGED)
            if not hmac.compare_digest(row.seal or b"", self._seal(row._mapping, caps)):
                raise _error(label, CHANGED)
            if not all(
                entry.number == before.number + 1
                and entry.link == self._link(row.name, before.link, entry)
                for entry, before in pairwise(chain)
            ):
                raise _error(label, CHANGED)
            if kept and not self._follows(connection, row, kept, newest):
                raise _error(label, OLDER)
            return Opened(label=label, row=row, caps=caps, newest=newest)

    def _read_state(
        self, connection: "Connection", account: bytes
    ) -> tuple[list[Any], dict[int, Cap]]:
        """Reads an account's newest entries, last first, and limits by period."""
        newest, caps = [], {}
        for each in connection.execute(self._statements.state, {"of_account": account}):
            if each.what == CAP:
                caps[each.number] = Cap(each.epsilon, each.made, each.ldp)
            else:
                newest.append(each)
        return sorted(newest, key=lambda each: -each.number), caps

    def _walk(self, connection: "Connection", account: Opened) -> Iterator[Any]:
        """Yields all entries of an account, and checks links and totals.

        Raises:
            StoreError: an entry is wrong, or the entries do not add up to the totals.
        """
        import sqlalchemy as sa

        entries, row = self._store.tables.entries, account.row
        statement = (
            sa.select(entries).where(entries.c.account == row.name).order_by(entries.c.number)
        )
        link, number, sums = bytes(32), 0, [0, 0, 0, 0]
        for number, entry in enumerate(connection.execute(statement), 1):
            link = self._link(row.name, link, entry)
            if entry.number != number or entry.link != link:
                raise _error(account.label, CHANGED)
            sign = SIGNS.get(entry.what, 0)
            for i, more in enumerate((entry.epsilon, entry.ldp, sign, sign * bool(entry.infinite))):
                sums[i] += more
            yield entry
        totals = (getattr(row, name) for name in TOTALS)
        if (number, link, *sums) != (row.entries, row.link, *totals):
            raise _error(account.label, CHANGED)

    def _seal(self, row: Mapping[Any, Any], caps: Mapping[int, Cap]) -> bytes:
        """Computes the HMAC of an account's totals, limits and newest link."""
        limits = ([period, *caps[period]] for period in sorted(caps))
        state = [row["entries"], *(row[name] for name in TOTALS), *limits]
        parts = (row["name"], row["subject"], row["label"], row["link"], json.dumps(state).encode())
        return derived(self._links, b"state", *parts)

    def _link(self, account: bytes, before: bytes, row: Any) -> bytes:
        """Returns the link of an entry after another."""
        fields = row.number, row.what, row.of, row.made, row.epsilon, row.ldp, row.words
        return self._linked(account, before, *fields, row.infinite, key=row.key, note=row.note)

    def _hmac(
        self,
        account: bytes,
        before: bytes,
        *fields: int | str,
        key: bytes | None,
        note: bytes | None,
    ) -> bytes:
        """Computes a link from the fields of an entry."""
        # Entries of earlier versions have neither, and their links must stay valid.
        more = () if key is note is None else (key or b"", note or b"")
        return derived(self._links, b"link", account, before, json.dumps(fields).encode(), *more)

    def _read_label(self, row: Any) -> Sequence[str]:
        """Decrypts a row's label; its hexadecimal name where that fails."""
        try:
            return self._label(row.name, row.label)
        except StoreError:
            return row.name.hex(), "", ""

    # ---- what is kept apart ----------------------------------------------------------------------

    def _follows(
        self, connection: "Connection", row: Any, kept: bytes, newest: Sequence[Any] = ()
    ) -> bool:
        """Says whether the key store's link belongs to this account."""
        number, link = int.from_bytes(kept[:8], "big"), kept[8:]
        for entry in newest:
            if entry.number == number:
                return bool(entry.link == link)
        values = {"of_account": row.name, "of_number": number}
        return bool(connection.execute(self._statements.link, values).scalar() == link)

    def bind(self, connection: "Connection") -> None:
        """Seals the accounts of an earlier version, in the migrating transaction.

        An account that does not match its entries stays without a seal, and is an error when it is
        opened.
        """
        import sqlalchemy as sa

        accounts = self._store.tables.accounts
        for row in connection.execute(sa.select(accounts)).all():
            with suppress(StoreError):
                label, head = self._label(row.name, row.label), self._store.head(row.name)
                caps = self._read_state(connection, row.name)[1]
                account = Opened(label=label, row=row, caps=caps, newest=())
                for _ in self._walk(connection, account):
                    pass
                if head is None or self._follows(connection, row, head):
                    seal = sa.update(accounts).where(accounts.c.name == row.name)
                    connection.execute(seal.values(seal=self._seal(row._mapping, account.caps)))
                    self._list(connection, label)


CHANGED = (
    "was changed by other programs: what was spent is not known any more. Put back the newest copy of the store, or "
    "begin a new store"
)
OLDER = (
    "is older than it was, or entries of it vanished: what was spent since is not known. Put back the newest copy of "
    "the store, or begin a new store"
)


def _error(label: Sequence[str], how: str) -> StoreError:
    """Returns the error about an account; its label is no secret."""
    subject, metric, table = label
    which = f"the ledger's account of {subject!r} ({metric}, {table})"
    which = "the register of the ledger" if label == REGISTER else which
    return StoreError(f"{which} {how}")


@contextmanager
def _convert_errors(label: Sequence[str]) -> Iterator[None]:
    """Converts type errors in an account's values to the error about it.

    SQLite accepts a text where a number or bytes belong.
    """
    try:
        yield
        return
    except (TypeError, ValueError):
        pass
    raise _error(label, CHANGED)


def _named(label: Sequence[str]) -> dict[str, Any]:
    return dict(zip(("subject", "metric", "table"), label, strict=True))


def _sort_key(spend: Spend) -> tuple[str, str]:
    return spend.metric, spend.table


def _convert_most(epsilon: float | None) -> int | None:
    if epsilon is not None and not 0 <= epsilon < 1e9:
        raise ConfigError("a limit must be an epsilon from 0 on, below a billion")
    return None if epsilon is None else int(epsilon * MICRO)


def _convert_period(days: float | None) -> int:
    period = LIFETIME if days is None else round(days * DAY)
    if days is not None and period < 1:
        raise ConfigError("a period must be longer than a second")
    return period


def _select_changed(account: Opened, caps: Mapping[int, Cap]) -> list[dict[str, Any]]:
    """Returns new and changed limits of an account, as statement parameters."""
    return [
        {"of_account": account.row.name, "cap_period": period}
        | {f"cap_{name}": value for name, value in cap._asdict().items()}
        for period, cap in caps.items()
        if account.caps.get(period) != cap
    ]


def _give_back(caps: Mapping[int, Cap], reserved: Any) -> dict[int, Cap]:
    """Returns the limits after a reservation of the same period is cancelled."""
    return {
        period: cap._replace(spent=cap.spent - reserved.epsilon * (cap.began <= reserved.made))
        for period, cap in caps.items()
    }


def _period(period: int, cap: Cap) -> tuple[int, int]:
    """Returns the start of a limit's present period, and its spending."""
    if period == LIFETIME or _now() < cap.began + period:
        return cap.began, cap.spent
    return cap.began + (_now() - cap.began) // period * period, 0


def _shown(period: int, cap: Cap) -> Limit:
    _, spent = _period(period, cap)
    days = None if period == LIFETIME else period / DAY
    return Limit(days=days, most=cap.most / MICRO, left=max(0, cap.most - spent) / MICRO)


def _now() -> int:
    return int(time.time())


__all__ = ["Account", "Ledger", "Limit", "Reservation", "Spend", "micro"]
