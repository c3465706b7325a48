"""Open pages: one release each, with its session, briefly and in memory only.

In: the text of a page. Out: `PageRelease`, under the page's token.
Not here: origin checks (`origin_check`), and the answers (`routes`).
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
from textveil.pipeline import EvaluationRun, Privatizer, Result
from textveil.randomness import read_entropy
from textveil.session import MemoryStore, Session, SessionStore, Spend

if TYPE_CHECKING:
    from textveil.session.sql.ledger import Ledger

IDLE_SECONDS = 900
"""Seconds after which an idle page is forgotten."""

MAX_PAGES = 32
"""Maximal number of open pages.

The least recently used page is dropped first.
"""

GONE_MESSAGE = (
    "the gateway has forgotten this page: it was idle for too long, or too many pages are open. "
    "Reload it"
)


CHANGED_MESSAGE = "the prompt has changed in the meantime: try again"


class PreviewSession(Session):
    """Session of one release on a page, which charges nothing.

    It notes the spending that sending the release would cause.
    """

    counts_spending = True

    def __init__(self) -> None:
        super().__init__()
        self.spends: tuple[Spend, ...] = ()

    def reserve(self, spends: Sequence[Spend]) -> None:
        """Notes the spending without charging it; see `Session`."""
        self.spends = tuple(spends)


@dataclass(frozen=True, kw_only=True, eq=False)
class PageRelease:
    """Release that a page shows. Secret.

    Attributes:
        gateway: the gateway whose policy held at the time.
        number: the number of the page's request; later requests have larger ones.
        text: the typed text.
        config: the options of the release.
        privatizer: the privatizer that released it.
        rehearsal: the release.
        session: the session that restores answers.
    """

    gateway: Gateway = field(repr=False)
    number: int
    text: str = field(repr=False)
    config: Config = field(repr=False)
    privatizer: Privatizer
    rehearsal: EvaluationRun = field(repr=False)
    session: PreviewSession
    _lock: Lock = field(default_factory=Lock, repr=False)
    _stores: list[MemoryStore] = field(default_factory=list, repr=False)

    @property
    def result(self) -> Result:
        """Release with its statement."""
        return self.rehearsal.results[0]

    def open_store(self, charged: SessionStore) -> MemoryStore:
        """Returns the store for sending it, in memory only.

        Sending it again from this store spends nothing.

        Args:
            charged: the store whose ledger counts the spending, if it has one.
        """
        with self._lock:
            if not self._stores:
                self._stores.append(MemoryStore(ledger=get_ledger(charged)))
            return self._stores[0]


def get_ledger(store: SessionStore) -> "Ledger | None":
    """Returns the ledger of a store; None if it keeps none."""
    try:
        return store.ledger
    except ConfigError:
        return None


class Page:
    """Open page.

    Attributes:
        token: its secret name, known to the page alone.
        newest: the largest number of its requests.
        release: the release that it shows; None for nothing yet.
        used: time of its last request, on the monotonic clock.
    """

    def __init__(self, token: str) -> None:
        self.token, self.newest = token, 0
        self.release: PageRelease | None = None
        self.used = monotonic()

    def show(self, release: PageRelease) -> None:
        """Shows a release, unless a newer one is shown."""
        if self.release is None or self.release.number < release.number:
            self.release = release

    def get_release(self, number: int) -> PageRelease:
        """Returns the shown release.

        Raises:
            RequestError: another release is shown than the one of this number.
        """
        if self.release is None or self.release.number != number:
            raise RequestError(409, CHANGED_MESSAGE, code="changed")
        return self.release


class Pages:
    """Open pages, by token."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pages: OrderedDict[str, Page] = OrderedDict()

    def open(self) -> Page:
        """Opens a new page."""
        page = Page(read_entropy(32).hex())
        with self._lock:
            self._forget()
            self._pages[page.token] = page
            while len(self._pages) > MAX_PAGES:
                self._pages.popitem(last=False)
        return page

    def get_page(self, token: str) -> Page:
        """Finds an open page; `RequestError` if it was forgotten."""
        with self._lock:
            self._forget()
            page = self._pages.get(token)
            if page is not None:
                page.used = monotonic()
                self._pages.move_to_end(token)
                return page
        raise RequestError(410, GONE_MESSAGE, code="gone")

    def close(self, token: str) -> None:
        """Forgets a page and its release."""
        with self._lock:
            self._pages.pop(token, None)

    def _forget(self) -> None:
        # `get_page` moves a page to the end, so the first one has been idle the longest.
        while self._pages and next(iter(self._pages.values())).used < monotonic() - IDLE_SECONDS:
            self._pages.popitem(last=False)
