"""What open pages show: one release each, with the way back, in memory only and for a short time.

In: the text of a page. Out: `Shown`, under the page's token.
Not here: who asks (`sites`), and what is answered (`routes`).
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from textveil.config import Config
from textveil.errors import ConfigError
from textveil.gateway.errors import RequestError
from textveil.gateway.gateway import Gateway
from textveil.pipeline import Privatizer, Rehearsal, Result
from textveil.randomness import os_entropy
from textveil.session import MemoryStore, Session, SessionStore, Spend

if TYPE_CHECKING:
    from textveil.session.sql.ledger import Ledger

KEEP = 900
"""Seconds after which a page is forgotten that asked nothing."""

MOST = 32
"""Pages that are open at once; the one that was used longest ago goes first."""

GONE = "this page was idle for too long, or too many others are open: it was forgotten. Reload it"


class PreviewSession(Session):
    """The session of one release on a page. It charges nothing, and notes what sending the release would spend."""

    counts_spending = True

    def __init__(self) -> None:
        super().__init__()
        self.spends: tuple[Spend, ...] = ()

    def reserve(self, spends: Sequence[Spend]) -> None:
        """See `Session`; what is only shown leaves nothing."""
        self.spends = tuple(spends)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What a page shows. Secret.

    Attributes:
        gateway: whose policy held then.
        number: of the page's request; what comes later has a larger one.
        text: what was typed.
        config: the options that it was released with.
        privatizer: which released it.
        rehearsal: the release.
        session: the way back.
    """

    gateway: Gateway = field(repr=False)
    number: int
    text: str = field(repr=False)
    config: Config = field(repr=False)
    privatizer: Privatizer
    rehearsal: Rehearsal = field(repr=False)
    session: PreviewSession
    _lock: Lock = field(default_factory=Lock, repr=False)
    _stores: list[MemoryStore] = field(default_factory=list, repr=False)

    @property
    def result(self) -> Result:
        """The release, with its statement."""
        return self.rehearsal.results[0]

    def store(self, charged: SessionStore) -> MemoryStore:
        """Where it is kept that it was sent, so that sending it again spends nothing; in memory only.

        Args:
            charged: whose ledger counts what is spent, if it has one.
        """
        with self._lock:
            if not self._stores:
                self._stores.append(MemoryStore(ledger=ledger_of(charged)))
            return self._stores[0]


def ledger_of(store: SessionStore) -> "Ledger | None":
    """The ledger of a store, if it keeps one."""
    try:
        return store.ledger
    except ConfigError:
        return None


class Page:
    """An open page.

    Attributes:
        token: its name, known to the page alone.
        newest: the largest number that it asked with.
        shown: what it shows; None for nothing yet.
        used: when it last asked, on a clock that only runs forward.
    """

    def __init__(self, token: str) -> None:
        self.token, self.newest = token, 0
        self.shown: Shown | None = None
        self.used = monotonic()

    def show(self, shown: Shown) -> None:
        """Show this, unless something newer is shown."""
        if self.shown is None or self.shown.number < shown.number:
            self.shown = shown

    def shows(self, number: int) -> Shown:
        """What is shown.

        Raises:
            RequestError: it is not what the page says.
        """
        if self.shown is None or self.shown.number != number:
            raise RequestError(409, "the prompt has changed meanwhile: try again", code="changed")
        return self.shown


class Pages:
    """The open pages."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pages: OrderedDict[str, Page] = OrderedDict()

    def open(self) -> Page:
        """A new page."""
        page = Page(os_entropy(32).hex())
        with self._lock:
            self._forget()
            self._pages[page.token] = page
            while len(self._pages) > MOST:
                self._pages.popitem(last=False)
        return page

    def page(self, token: str) -> Page:
        """An open page; `RequestError` where it was forgotten."""
        with self._lock:
            self._forget()
            page = self._pages.get(token)
            if page is not None:
                page.used = monotonic()
                self._pages.move_to_end(token)
                return page
        raise RequestError(410, GONE, code="gone")

    def close(self, token: str) -> None:
        """Forget a page, and what it shows."""
        with self._lock:
            self._pages.pop(token, None)

    def _forget(self) -> None:
        while self._pages and next(iter(self._pages.values())).used < monotonic() - KEEP:
            self._pages.popitem(last=False)
