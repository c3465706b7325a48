"""Ledger: spending and limits for each subject, metric and table.

In: `Spend`s, before anything is drawn. Out: reservations, totals, `LimitReached` where a limit
would be passed.
Not here: what a release spends (`session.spending`), and sessions (`session_file`).

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
from textveil.session.spending import ALL_TABLES, MICRO, Spend, convert_to_micros
from textveil.session.sql.database import (
    HEADS_KEY,
    MAX_LOOKUP_ROWS,
    Database,
    convert_failures,
)
from textveil.session.sql.encryption import NAME_BYTES, Cipher, derive
from textveil.session.sql.statements import CAP_KIND, build_insert, build_ledger_statements
from textveil.session.state import check_names

if TYPE_CHECKING:
    from sqlalchemy import Connection

NEWEST_LINKS = 16
"""Newest links to check when an account is opened; `entries` checks all."""

MAX_CACHED_LINKS = 4_096
"""Most links in a process's cache of checked links."""

LISTING_BATCH = 8
"""Accounts of a subject that are looked up together."""

DAY_SECONDS = 86_400

LIFETIME_PERIOD = 0
"""Period of a limit that is never reset."""

REGISTER_LABEL = ("", "", "")
"""Label of the account whose entries are the accounts."""

EntryKind = Literal["reserve", "confirm", "release", "limit", "open"]

ENTRY_SIGNS: Mapping[EntryKind, int] = {"reserve": 1, "release": -1}
"""Sign of an entry in the totals; other kinds count nothing."""

TOTAL_COLUMNS = ("epsilon", "ldp", "releases", "infinite")


NO_SPEND = Spend(metric="", table="", epsilon=0, ldp=0, words=0)
GENESIS_ENTRY = SimpleNamespace(number=0, link=bytes(32))
"""Predecessor of an account's first entry."""


class Cap(NamedTuple):
    """Stored limit of a period, in millionths of an epsilon.

    The period began at `began`, in seconds since 1970.
    """

    most: int
    began: int
    spent: int


@dataclass(frozen=True, kw_only=True)
class CheckedAccount:
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
        is_repeat: True if the idempotency key was known, so that nothing was charged.
    """

    account: bytes
    number: int
    is_repeat: bool = False


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
        metric: the unit of distance that epsilon is per; "ldp" for local DP, "central" for noisy
            counts of whole texts.
        table: the table of words, or the library of whole texts.
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
        return {**vars(self), "limits": [dict(vars(limit)) for limit in self.limits]}


class Ledger:
    """Ledger of a `SQLStore`.

    Args:
        store: database of the store.
        key: deployment key, from which the key of the links is derived.
    """

    def __init__(self, store: Database, key: bytes) -> None:
        self._store = store
        self._link_key = derive(key, b"ledger", store.name)
        self._label_cipher = Cipher(derive(key, b"labels of the ledger", store.name), store.name)
        self._account_names: set[bytes] = set()
        # The newest links are checked at every access.
        self._cached_hmac = lru_cache(MAX_CACHED_LINKS)(self._compute_hmac)
        self._statements = build_ledger_statements(store.tables, store.dialect, NEWEST_LINKS)

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
        check_names(subject, "ledger")
        if connection is None:
            with self._open_write() as transaction:
                return self.reserve(subject, spend, key=key, connection=transaction)
        account = self._open_account(connection, [subject, spend.metric, spend.table])
        stored_key, number = (
            (None, None) if key is None else self._find_key(connection, account, key)
        )
        if number is not None:
            return Reservation(account=account.row.name, number=number, is_repeat=True)
        caps = self._check_limits(account.caps, spend)
        return self._add_entry(
            connection, account, "reserve", spend=spend, caps=caps, key=stored_key
        )

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
            with self._open_write() as transaction:
                return self.reserve_all(subject, spends, key=key, connection=transaction)
        check_names(subject, "ledger")
        self._register(connection, [(subject, charge.metric, charge.table) for charge in spends])
        reservations = []
        for spend in sorted(
            spends, key=_sort_key
        ):  # in a fixed order, so that two processes never deadlock
            sums = f" {spend.epsilon} {spend.ldp} {spend.words} {spend.infinite}"
            spend_key = None if key is None else key + sums
            reservations.append(self.reserve(subject, spend, key=spend_key, connection=connection))
        return reservations

    def reserve_many(
        self, charges: Mapping[str, Sequence[Spend]], *, key: str | None = None
    ) -> list[Reservation]:
        """Charges many subjects for one release, or nobody; see `reserve`.

        Args:
            charges: what it can spend of each subject, one for each metric and table.
            key: an idempotency key; a different sum under it is a different reservation.

        Returns:
            The reservations in the ledger's order, for `confirm_all` or `release_all`.

        Raises:
            LimitReached: it exceeds a limit of a subject, whom the error does not name.
        """
        for subject in charges:
            check_names(subject, "ledger")
        labels = [
            (subject, spend.metric, spend.table)
            for subject, spends in charges.items()
            for spend in spends
        ]
        with suppress(LimitReached), self._open_write() as connection:
            self._register(connection, labels)  # all before any is opened, as in `reserve_all`
            return [
                reservation
                for subject in sorted(charges)
                for reservation in self.reserve_all(
                    subject, charges[subject], key=key, connection=connection
                )
            ]
        raise LimitReached(
            f"of the {len(charges):,} subjects of this release, at least one has a limit that it "
            "would pass: leave out who has nothing left (`textveil ledger show`), release less, "
            "or change the limit (`textveil ledger limit`). Nothing was drawn, and nobody was "
            "charged"
        )

    def confirm_all(self, reservations: Sequence[Reservation]) -> None:
        """Records that the release of `reserve_many` was made."""
        self._close_all(reservations, "confirm")

    def release_all(self, reservations: Sequence[Reservation]) -> None:
        """Cancels what `reserve_many` reserved for a release that failed before any draw.

        What an earlier try reserved under the same key stays charged.
        """
        self._close_all(reservations, "release")

    def _close_all(self, reservations: Sequence[Reservation], kind: EntryKind) -> None:
        with self._open_write() as connection:
            for reservation in reservations:
                if not reservation.is_repeat:
                    self._close_reservation(reservation, kind, connection)

    def confirm(self, reservation: Reservation, connection: "Connection | None" = None) -> None:
        """Records that the release was made.

        Call it in the transaction that stores the release, if there is one.
        """
        if not reservation.is_repeat:
            self._close_reservation(reservation, "confirm", connection)

    def release(self, reservation: Reservation) -> None:
        """Cancels a reservation of a release that failed before any draw.

        Raises:
            StoreError: the release was confirmed, or given back already.
        """
        self._close_reservation(reservation, "release", None)

    def limit(
        self,
        subject: str,
        metric: str,
        table: str,
        epsilon: float | None,
        *,
        days: float | None = None,
        exclusive: bool = False,
    ) -> None:
        """Limits further spending; a limit without a period counts the past, too.

        A limit with the same period as an earlier one continues its count.

        Args:
            subject: subject of the account.
            metric: its metric; "ldp" for local DP.
            table: its table.
            epsilon: the most, in epsilons; None lifts the limit of this period.
            days: the period after which counting begins again; None for never.
            exclusive: True to lift limits with other periods; where nothing changes, nothing is
                written.
        """
        check_names(subject, "ledger")
        maximum, period, label = (
            _convert_most(epsilon),
            _convert_period(days),
            [subject, metric, table],
        )
        if exclusive and self._read_limits(label) == ({} if maximum is None else {period: maximum}):
            return
        with self._open_write() as connection:
            account = self._open_account(connection, label)
            caps = {} if exclusive else dict(account.caps)
            caps.pop(period, None)
            if maximum is not None:
                new_cap = Cap(
                    maximum, _get_time(), account.row.epsilon if period == LIFETIME_PERIOD else 0
                )
                caps[period] = account.caps.get(period, new_cap)._replace(most=maximum)
            if caps != account.caps:
                note = json.dumps([period, maximum]).encode()
                self._add_entry(connection, account, "limit", caps=caps, note=note)

    def _read_limits(self, label: Sequence[str]) -> dict[int, int]:
        """Returns the limits of an account by period, in millionths."""
        import sqlalchemy as sa

        limits = self._store.tables.limits
        statement = sa.select(limits).where(limits.c.account == self._derive_name(label))
        with self._open_read() as connection:
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
        with self._open_accounts(subject) as (connection, checked):
            for account in checked:
                for _ in self._walk_entries(connection, account) if whole else ():
                    pass
                totals = Account(
                    **_map_label(account.label),
                    epsilon=account.row.epsilon / MICRO,
                    ldp=account.row.ldp / MICRO,
                    releases=account.row.releases,
                    infinite=account.row.infinite,
                    limits=tuple(
                        _build_limit(period, cap) for period, cap in sorted(account.caps.items())
                    ),
                )
                accounts.append(totals)
        return sorted(accounts, key=lambda item: (item.subject, item.metric, item.table))

    def entries(self) -> Iterator[dict[str, object]]:
        """Yields all entries of all accounts, with every link checked.

        Raises:
            StoreError: an entry is missing or was changed, or the totals are not their sums.
        """
        with self._open_accounts(None) as (connection, checked):
            for account in checked:
                for entry in self._walk_entries(connection, account):
                    fields = ("number", "what", "of", "made", "words", "infinite")
                    plain = {name: getattr(entry, name) for name in fields}
                    plain |= {"epsilon": entry.epsilon / MICRO, "ldp": entry.ldp / MICRO}
                    if entry.what == "limit":
                        period, maximum = json.loads(entry.note)
                        plain["days"] = None if period == LIFETIME_PERIOD else period / DAY_SECONDS
                        plain["most"] = None if maximum is None else maximum / MICRO
                    yield _map_label(account.label) | plain

    # ---- rows ------------------------------------------------------------------------------------

    @contextmanager
    def _open_write(self) -> "Iterator[Connection]":
        with convert_failures("changed"), self._store.open_write() as connection:
            yield connection

    @contextmanager
    def _open_read(self) -> "Iterator[Connection]":
        with convert_failures("read"), self._store.open_read() as connection:
            yield connection

    @contextmanager
    def _open_accounts(
        self, subject: str | None
    ) -> "Iterator[tuple[Connection, Iterator[CheckedAccount]]]":
        """Yields accounts at one consistent moment, of a subject or all."""
        import sqlalchemy as sa

        accounts = self._store.tables.accounts
        statement = sa.select(accounts)
        if subject is not None:
            statement = statement.where(
                accounts.c.subject.in_(
                    [self._derive_subject(subject), self._derive_subject(REGISTER_LABEL[0])]
                )
            )
        # Read before the moment begins, so that no stored link is ahead of it.
        with self._open_read() as connection:
            names = connection.execute(statement.with_only_columns(accounts.c.name)).scalars()
            heads = {name: self._store.read_head(name) for name in names}
        heads.setdefault(
            self._derive_name(REGISTER_LABEL),
            self._store.read_head(self._derive_name(REGISTER_LABEL)),
        )
        with convert_failures("read"), self._store.open_snapshot() as connection:
            with _convert_errors(REGISTER_LABEL):
                rows = {row.name: row for row in connection.execute(statement)}
            yield connection, self._check_rows(connection, subject, rows, heads)

    def _check_rows(
        self,
        connection: "Connection",
        subject: str | None,
        rows: dict[bytes, Any],
        heads: Mapping[bytes, bytes | None],
    ) -> Iterator[CheckedAccount]:
        """Yields checked accounts; an error if the register does not match."""
        name = self._derive_name(REGISTER_LABEL)
        if name not in rows and heads[name] is not None:
            raise _build_error(REGISTER_LABEL, OLDER_MESSAGE)
        labels: list[Sequence[str]] = []
        if name in rows:
            register = self._check_account(connection, rows.pop(name), REGISTER_LABEL, heads[name])
            if subject is None:
                entries = self._walk_entries(connection, register)
                labels = [self._decrypt_label(name, entry.note) for entry in entries]
            else:
                labels = self._read_labels(connection, register, subject)
        for label in labels:
            row = rows.pop(self._derive_name(label), None)
            if row is None:
                raise _build_error(label, OLDER_MESSAGE)
            with _convert_errors(label):
                account = self._check_account(connection, row, label, heads.get(row.name))
            yield account
        for row in rows.values():
            raise _build_error(self._read_label(row), CHANGED_MESSAGE)

    def _decrypt_label(self, name: bytes, ciphertext: bytes) -> list[str]:
        """Decrypts an account's label: subject, metric, table."""
        label: list[str] = json.loads(self._label_cipher.open(ciphertext, name))
        return label

    def _derive_subject(self, subject: str) -> bytes:
        return derive(self._link_key, b"subject", subject.encode())[:NAME_BYTES]

    def _derive_name(self, label: Sequence[str]) -> bytes:
        return derive(self._link_key, b"account", *(part.encode() for part in label))[:NAME_BYTES]

    def _read_row(self, connection: "Connection", name: bytes) -> Any:
        """Locks and reads the row of an account; None if missing."""
        return connection.execute(self._statements.account, {"of_account": name}).first()

    def _open_account(self, connection: "Connection", label: Sequence[str]) -> CheckedAccount:
        """Locks, checks and returns an account, created if necessary."""
        name = self._derive_name(label)
        with _convert_errors(label):
            row = self._read_row(connection, name)
            if row is None:
                self._register(connection, [label], refresh=True)
                row = self._read_row(connection, name)
            return self._check_account(connection, row, label, self._store.read_head(name))

    def _register(
        self, connection: "Connection", labels: Sequence[Sequence[str]], *, refresh: bool = False
    ) -> None:
        """Creates missing accounts.

        All of them before any is opened, or two processes deadlock.

        Args:
            connection: a transaction.
            labels: labels of the accounts.
            refresh: True to look up accounts again that this process has seen.
        """
        names = {self._derive_name(label): label for label in labels}
        missing = [name for name in names if refresh or name not in self._account_names]
        if not missing:
            return
        missing = self._select_missing(connection, missing)
        if not missing:
            self._account_names |= names.keys()
            return
        name = self._derive_name(REGISTER_LABEL)
        if self._read_row(connection, name) is None:
            self._create(connection, REGISTER_LABEL)
        self._read_row(connection, name)  # waits for other processes that create accounts
        for missing_name in self._select_missing(connection, missing):
            self._create(connection, names[missing_name])
            self._add_to_register(connection, names[missing_name])

    def _add_to_register(self, connection: "Connection", label: Sequence[str]) -> None:
        """Adds an account to the register; an error if already listed."""
        name = self._derive_name(REGISTER_LABEL)
        row = self._read_row(connection, name)
        if row is None:
            self._create(connection, REGISTER_LABEL)
            row = self._read_row(connection, name)
        register = self._check_account(connection, row, REGISTER_LABEL, self._store.read_head(name))
        labels = self._read_labels(connection, register, label[0])
        if list(label) in labels:
            raise _build_error(label, OLDER_MESSAGE)
        note = self._label_cipher.seal(json.dumps(list(label)).encode(), name)
        self._add_entry(
            connection, register, "open", key=self._derive_listing(label[0], len(labels)), note=note
        )

    def _select_missing(self, connection: "Connection", names: Sequence[bytes]) -> list[bytes]:
        """Returns the names without an account."""
        import sqlalchemy as sa

        accounts, existing = self._store.tables.accounts, set()
        for first in range(0, len(names), MAX_LOOKUP_ROWS):
            some = names[first : first + MAX_LOOKUP_ROWS]
            statement = sa.select(accounts.c.name).where(accounts.c.name.in_(some))
            existing |= set(connection.execute(statement).scalars())
        return [name for name in names if name not in existing]

    def _create(self, connection: "Connection", label: Sequence[str]) -> None:
        """Adds the row of a new account.

        If the key store has a link for it, opening it is an error.
        """
        name = self._derive_name(label)
        row: dict[str, Any] = dict.fromkeys(("entries", *TOTAL_COLUMNS), 0)
        row |= {"name": name, "link": bytes(32), "subject": self._derive_subject(label[0])}
        row["label"] = self._label_cipher.seal(json.dumps(list(label)).encode(), name)
        row["seal"] = self._seal(row, {})
        statement = build_insert(self._store.tables.accounts, self._store.dialect).values(row)
        connection.execute(statement.on_conflict_do_nothing())

    def _derive_listing(self, subject: str, number: int) -> bytes:
        """Derives the register's key for a subject's account of this number."""
        return derive(self._link_key, b"listed", subject.encode(), b"%d" % number)[:NAME_BYTES]

    def _read_labels(
        self, connection: "Connection", register: CheckedAccount, subject: str
    ) -> list[Sequence[str]]:
        """Returns the labels of a subject's accounts from the register."""
        labels: list[Sequence[str]] = []
        while len(labels) % LISTING_BATCH == 0:
            keys = [self._derive_listing(subject, len(labels) + i) for i in range(LISTING_BATCH)]
            entries = {
                entry.key: entry for entry in self._find_entries(connection, register, "key", keys)
            }
            labels += [
                self._decrypt_label(register.row.name, entries[key].note)
                for key in keys
                if key in entries
            ]
            if not entries:
                break
        return labels

    def _check_limits(self, caps: Mapping[int, Cap], spend: Spend) -> dict[int, Cap]:
        """Returns the limits after one more spend, with expired periods restarted.

        Raises:
            LimitReached: the spend exceeds a limit.
        """
        new_caps = {}
        for period, cap in caps.items():
            began, spent = _compute_period(period, cap)
            change = "change the limit with `textveil ledger limit`"
            lift = "lift the limit with `textveil ledger limit`"
            # Where a gateway charges this account, its policy limits it; see also `reserve_many`.
            if spend.table == ALL_TABLES:
                change = "ask the operator of the gateway to raise `budget` in its policy"
                lift = "ask the operator of the gateway to take `budget` out of its policy"
            if spend.infinite:
                raise LimitReached(
                    "this account has a limit, and this release has no finite bound; use a "
                    f"mechanism with a finite bound, or {lift}. Nothing was drawn"
                )
            if spent + spend.epsilon > cap.most:
                ends = time.strftime("%F %R", time.gmtime(began + period))
                when = "" if period == LIFETIME_PERIOD else f" until {ends} UTC"
                raise LimitReached(
                    f"this release would spend an epsilon of {spend.epsilon / MICRO:g}, but only "
                    f"{max(0, cap.most - spent) / MICRO:g} of {cap.most / MICRO:g} is left{when}; "
                    f"release less, or {change}. Nothing was drawn"
                )
            new_caps[period] = Cap(cap.most, began, spent + spend.epsilon)
        return new_caps

    def _find_key(
        self, connection: "Connection", account: CheckedAccount, key: str
    ) -> tuple[bytes, int | None]:
        """Returns an idempotency key as stored, and its valid reservation, if any."""
        turn = 0
        while True:
            name = account.row.name
            stored_key = derive(self._link_key, b"key", name, key.encode(), b"%d" % turn)[
                :NAME_BYTES
            ]
            entries = self._find_entries(connection, account, "key", [stored_key])
            if not entries or not self._is_ended(
                connection, account, entries[0].number, by=("release",)
            ):
                return stored_key, entries[0].number if entries else None
            # A released reservation frees its key, but its entry stays and holds the stored one.
            turn += 1

    def _find_entries(
        self,
        connection: "Connection",
        account: CheckedAccount,
        column: Literal["key", "number"],
        values: Sequence[Any],
    ) -> list[Any]:
        """Returns entries with some keys or numbers, their links checked."""
        parameters = {"of_account": account.row.name, "values": list(values)}
        entries = list(connection.execute(self._statements.lookup[column], parameters))
        for entry in entries:
            previous_link = bytes(32) if entry.number == 1 else entry.before or b""
            if entry.link != self._compute_link(account.row.name, previous_link, entry):
                raise _build_error(account.label, CHANGED_MESSAGE)
        return entries

    def _is_ended(
        self,
        connection: "Connection",
        account: CheckedAccount,
        number: int,
        *,
        by: Sequence[EntryKind],
    ) -> bool:
        """Says whether an entry of some kinds ended a reservation."""
        if (
            account.newest and account.newest[-1].number <= number
        ):  # all later entries are in `newest`
            return any(entry.of == number and entry.what in by for entry in account.newest)
        values = {"of_account": account.row.name, "of_number": number, "values": list(by)}
        return connection.execute(self._statements.ended, values).first() is not None

    def _add_entry(
        self,
        connection: "Connection",
        account: CheckedAccount,
        kind: EntryKind,
        *,
        reservation_number: int = 0,
        spend: Any = NO_SPEND,
        caps: Mapping[int, Cap] | None = None,
        key: bytes | None = None,
        note: bytes | None = None,
    ) -> Reservation:
        """Adds the next entry of an account, and updates totals and limits.

        Args:
            connection: a transaction that locks the account.
            account: the account.
            kind: kind of entry.
            reservation_number: number of the reservation that it ends.
            spend: spending that it charges or gives back, or the entry that charged it.
            caps: the limits from now on; None where they stay.
            key: key under which it is found.
            note: sealed or plain details of the entry.
        """
        row, sign = account.row, ENTRY_SIGNS.get(kind, 0)
        entry: dict[str, Any] = {
            "number": row.entries + 1,
            "what": kind,
            "of": reservation_number,
            "made": _get_time(),
        }
        entry |= {name: sign * getattr(spend, name) for name in ("epsilon", "ldp", "words")}
        entry |= {"infinite": spend.infinite, "key": key, "note": note}
        entry["link"] = self._compute_link(row.name, row.link, SimpleNamespace(**entry))
        totals: dict[str, Any] = {"entries": entry["number"], "link": entry["link"]}
        totals |= {"epsilon": row.epsilon + entry["epsilon"], "ldp": row.ldp + entry["ldp"]}
        infinite = row.infinite + sign * bool(spend.infinite)
        totals |= {"releases": row.releases + sign, "infinite": infinite}
        caps = account.caps if caps is None else caps
        totals["seal"] = self._seal({**row._mapping, **totals}, caps)
        values = {f"new_{name}": value for name, value in entry.items()}
        values |= {"of_account": row.name} | {
            f"now_{name}": value for name, value in totals.items()
        }
        new_caps = _select_changed(account, caps)
        for cap in new_caps[1:]:
            connection.execute(self._statements.cap, cap)
        for statement in self._statements.append[bool(new_caps)]:
            connection.execute(statement, values | (new_caps[0] if new_caps else {}))
        for period in account.caps.keys() - caps.keys():
            connection.execute(self._statements.lift, {"of_account": row.name, "of_period": period})
        if kind != "confirm":
            connection.info.setdefault(HEADS_KEY, {})[row.name] = entry["number"], entry["link"]
        return Reservation(account=row.name, number=entry["number"])

    def _close_reservation(
        self, reservation: Reservation, kind: EntryKind, connection: "Connection | None"
    ) -> None:
        if connection is None:
            with self._open_write() as transaction:
                self._close_reservation(reservation, kind, transaction)
            return
        row, number = self._read_row(connection, reservation.account), reservation.number
        if row is None:
            raise StoreError(f"an account of the ledger {OLDER_MESSAGE}")
        account = self._check_account(
            connection, row, self._read_label(row), self._store.read_head(row.name)
        )
        matching = [entry for entry in account.newest[:NEWEST_LINKS] if entry.number == number]
        reserve_entry = next(
            iter(matching or self._find_entries(connection, account, "number", [number])), None
        )
        ends: tuple[EntryKind, EntryKind] = "confirm", "release"
        is_reservation = reserve_entry is not None and reserve_entry.what == "reserve"
        if not is_reservation or self._is_ended(connection, account, number, by=ends):
            raise StoreError("this reservation was confirmed or released already")
        caps = account.caps if kind == "confirm" else _give_back(account.caps, reserve_entry)
        self._add_entry(
            connection, account, kind, reservation_number=number, spend=reserve_entry, caps=caps
        )

    # ---- what holds an account together ----------------------------------------------------------

    def _check_account(
        self, connection: "Connection", row: Any, label: Sequence[str], head: bytes | None
    ) -> CheckedAccount:
        """Opens an account, checked against its links, seal and key store.

        Args:
            connection: connection to read from.
            row: row of the account.
            label: label of the account.
            head: number and link of the account in the key store.

        Raises:
            StoreError: the account was changed, or is older than it was.
        """
        with _convert_errors(label):
            newest, caps = self._read_state(connection, row.name)
            # One more was read than is checked: the predecessor of the oldest that is.
            chain: list[Any] = newest if len(newest) > NEWEST_LINKS else [*newest, GENESIS_ENTRY]
            if (chain[0].number, chain[0].link) != (row.entries, row.link):
                raise _build_error(label, CHANGED_MESSAGE)
            if not hmac.compare_digest(row.seal or b"", self._seal(row._mapping, caps)):
                raise _build_error(label, CHANGED_MESSAGE)
            if not all(
                entry.number == previous.number + 1
                and entry.link == self._compute_link(row.name, previous.link, entry)
                for entry, previous in pairwise(chain)
            ):
                raise _build_error(label, CHANGED_MESSAGE)
            if head and not self._has_link(connection, row, head, newest):
                raise _build_error(label, OLDER_MESSAGE)
            return CheckedAccount(label=label, row=row, caps=caps, newest=newest)

    def _read_state(
        self, connection: "Connection", account: bytes
    ) -> tuple[list[Any], dict[int, Cap]]:
        """Reads an account's newest entries, last first, and limits by period."""
        newest, caps = [], {}
        for row in connection.execute(self._statements.state, {"of_account": account}):
            if row.what == CAP_KIND:
                caps[row.number] = Cap(row.epsilon, row.made, row.ldp)
            else:
                newest.append(row)
        return sorted(newest, key=lambda row: -row.number), caps

    def _walk_entries(self, connection: "Connection", account: CheckedAccount) -> Iterator[Any]:
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
            link = self._compute_link(row.name, link, entry)
            if entry.number != number or entry.link != link:
                raise _build_error(account.label, CHANGED_MESSAGE)
            sign = ENTRY_SIGNS.get(entry.what, 0)
            for i, amount in enumerate(
                (entry.epsilon, entry.ldp, sign, sign * bool(entry.infinite))
            ):
                sums[i] += amount
            yield entry
        totals = (getattr(row, name) for name in TOTAL_COLUMNS)
        if (number, link, *sums) != (row.entries, row.link, *totals):
            raise _build_error(account.label, CHANGED_MESSAGE)

    def _seal(self, row: Mapping[Any, Any], caps: Mapping[int, Cap]) -> bytes:
        """Computes the HMAC of an account's totals, limits and newest link."""
        limits = ([period, *caps[period]] for period in sorted(caps))
        state = [row["entries"], *(row[name] for name in TOTAL_COLUMNS), *limits]
        parts = (row["name"], row["subject"], row["label"], row["link"], json.dumps(state).encode())
        return derive(self._link_key, b"state", *parts)

    def _compute_link(self, account: bytes, previous_link: bytes, row: Any) -> bytes:
        """Returns the link of an entry after another."""
        fields = row.number, row.what, row.of, row.made, row.epsilon, row.ldp, row.words
        return self._cached_hmac(
            account, previous_link, *fields, row.infinite, key=row.key, note=row.note
        )

    def _compute_hmac(
        self,
        account: bytes,
        previous_link: bytes,
        *fields: int | str,
        key: bytes | None,
        note: bytes | None,
    ) -> bytes:
        """Computes a link from the fields of an entry."""
        # Entries of earlier versions have neither, and their links must stay valid.
        extra = () if key is note is None else (key or b"", note or b"")
        return derive(
            self._link_key, b"link", account, previous_link, json.dumps(fields).encode(), *extra
        )

    def _read_label(self, row: Any) -> Sequence[str]:
        """Decrypts a row's label; its hexadecimal name where that fails."""
        try:
            return self._decrypt_label(row.name, row.label)
        except StoreError:
            return row.name.hex(), "", ""

    # ---- what is kept apart ----------------------------------------------------------------------

    def _has_link(
        self, connection: "Connection", row: Any, head: bytes, newest: Sequence[Any] = ()
    ) -> bool:
        """Says whether the key store's link belongs to this account."""
        number, link = int.from_bytes(head[:8], "big"), head[8:]
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
                label, head = (
                    self._decrypt_label(row.name, row.label),
                    self._store.read_head(row.name),
                )
                caps = self._read_state(connection, row.name)[1]
                account = CheckedAccount(label=label, row=row, caps=caps, newest=())
                for _ in self._walk_entries(connection, account):
                    pass
                if head is None or self._has_link(connection, row, head):
                    seal = sa.update(accounts).where(accounts.c.name == row.name)
                    connection.execute(seal.values(seal=self._seal(row._mapping, account.caps)))
                    self._add_to_register(connection, label)


CHANGED_MESSAGE = (
    "was changed by other programs: its spending is no longer known. Restore the newest copy of "
    "the store, or begin a new store"
)
OLDER_MESSAGE = (
    "is older than before, or has lost entries: the spending since then is not known. Restore the "
    "newest copy of the store, or begin a new store"
)


def _build_error(label: Sequence[str], message: str) -> StoreError:
    """Returns the error about an account; its label is no secret."""
    subject, metric, table = label
    account_name = f"the ledger's account of {subject!r} ({metric}, {table})"
    account_name = "the register of the ledger" if label == REGISTER_LABEL else account_name
    return StoreError(f"{account_name} {message}")


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
    raise _build_error(label, CHANGED_MESSAGE)


def _map_label(label: Sequence[str]) -> dict[str, Any]:
    return dict(zip(("subject", "metric", "table"), label, strict=True))


def _sort_key(spend: Spend) -> tuple[str, str]:
    return spend.metric, spend.table


def _convert_most(epsilon: float | None) -> int | None:
    if epsilon is not None and not 0 <= epsilon < 1e9:
        raise ConfigError("a limit must be an epsilon of at least 0 and below a billion")
    # Down, as spending is rounded up, so that rounding never passes the limit.
    return None if epsilon is None else int(epsilon * MICRO)


def _convert_period(days: float | None) -> int:
    period = LIFETIME_PERIOD if days is None else round(days * DAY_SECONDS)
    if days is not None and period < 1:
        raise ConfigError("a period must be longer than a second")
    return period


def _select_changed(account: CheckedAccount, caps: Mapping[int, Cap]) -> list[dict[str, Any]]:
    """Returns new and changed limits of an account, as statement parameters."""
    return [
        {"of_account": account.row.name, "cap_period": period}
        | {f"cap_{name}": value for name, value in cap._asdict().items()}
        for period, cap in caps.items()
        if account.caps.get(period) != cap
    ]


def _give_back(caps: Mapping[int, Cap], entry: Any) -> dict[int, Cap]:
    """Returns the limits after a reservation of the same period is cancelled."""
    return {
        period: cap._replace(spent=cap.spent - entry.epsilon * (cap.began <= entry.made))
        for period, cap in caps.items()
    }


def _compute_period(period: int, cap: Cap) -> tuple[int, int]:
    """Returns the start of a limit's present period, and its spending."""
    if period == LIFETIME_PERIOD or _get_time() < cap.began + period:
        return cap.began, cap.spent
    return cap.began + (_get_time() - cap.began) // period * period, 0


def _build_limit(period: int, cap: Cap) -> Limit:
    _, spent = _compute_period(period, cap)
    days = None if period == LIFETIME_PERIOD else period / DAY_SECONDS
    return Limit(days=days, most=cap.most / MICRO, left=max(0, cap.most - spent) / MICRO)


def _get_time() -> int:
    return int(time.time())


__all__ = ["Account", "Ledger", "Limit", "Reservation", "Spend", "convert_to_micros"]
