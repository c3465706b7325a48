"""The mapping of a release: the private values of its placeholders.

It is kept in a store, in a session of each subject.

In: placeholders of released texts, by subject. Out: sessions that restore answers about these
texts.
Not here: how placeholders are named (`session.naming`), and what a store is (`session.stores`).

A part that is drawn again has the same placeholders for the same values, so to keep them again
changes nothing.
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Self

from textveil.corpus.keys import KeyHandle
from textveil.errors import ConfigError, InputError, quote, quote_file
from textveil.pipeline import Result
from textveil.session import Given, KeyedNames, Original, SessionStore, targets_in
from textveil.session.sql.keys import FOLDER

SQLITE = "sqlite:///"
DATABASES = (SQLITE, "postgresql://")

OWNER = "corpus/run"
"""The reserved subject whose session names the owning run.

The subjects of rows have no slash.
"""


@dataclass(frozen=True)
class StoreAddress:
    """The address of a store.

    Its URL may hold a password, so workers are handed it as they are handed a key.

    Attributes:
        url: of the store.
        keys: where its keys lie, as TEXTVEIL_KEYS says it; None where nothing does.
    """

    url: str = field(repr=False)
    keys: str | None = None

    @classmethod
    def of(cls, url: str) -> Self:
        """Builds the address of a store that several processes can open.

        Raises:
            ConfigError: it is one of this process alone, or of one session.
        """
        if url.startswith(("file:", "memory:")):
            raise ConfigError(
                f"--store must be sqlite:///NAME.db or postgresql://HOST/NAME, got {quote_file(url)}"
            )
        if url.startswith(SQLITE):  # workers may be in other folders
            path, mark, query = url.removeprefix(SQLITE).partition("?")
            url = f"{SQLITE}{os.path.abspath(path)}{mark}{query}" if path else url
        keys = os.environ.get(FOLDER) or None
        return cls(url, keys if keys in (None, "keyring") else os.path.abspath(keys))

    def read(self) -> bytes:
        """Returns the address as bytes."""
        return json.dumps([self.url, self.keys]).encode()


@dataclass(frozen=True, kw_only=True)
class MappingStore:
    """A store of placeholder values, opened anew wherever it is used.

    Attributes:
        address: of the store.
        session: of each subject, in which it is kept.
    """

    address: KeyHandle
    session: str

    @contextmanager
    def _open_store(self) -> Iterator[SessionStore]:
        url, keys = json.loads(self.address.read())
        own = {"keys": keys} if keys and url.startswith(DATABASES) else {}
        with SessionStore(url, **own) as store:
            yield store

    def identity(self) -> str:
        """Returns a digest that identifies the store.

        It is the same wherever the store is, and nothing of its URL can be read from it.

        Raises:
            StoreError: it cannot be opened.
        """
        with self._open_store() as store:
            # that of a database, which stays where the URL changes
            name = getattr(store, "name", b"")
        return sha256(name or self.address.read()).hexdigest()

    def reserve(self, run: str) -> None:
        """Reserves the session name for a run.

        Before it keeps anything; a run that has the name already, keeps it.

        Raises:
            ConfigError: another one has it, or something else has sessions of this name.
            StoreError: the store cannot be opened or written.
        """
        with self._open_store() as store:
            subjects = {each.subject for each in store.sessions() if each.session == self.session}
            if not subjects or OWNER in subjects:
                with suppress(InputError):  # of two runs at one moment, one
                    store.open(OWNER, self.session).keep([_mark_owner(run)])
                    return
        raise ConfigError(
            f"the store has sessions named {quote(self.session)} (--session): name another one for this release, "
            "because a session holds one value for each placeholder"
        )

    def keep(self, found: "dict[str, SubjectMapping]") -> None:
        """Stores the values of placeholders.

        Values that are there already stay as they are.

        Args:
            found: by subject.

        Raises:
            StoreError: the store cannot be opened or written.
            InputError: a session has another value for a placeholder.
        """
        with self._open_store() as store:
            for subject in sorted(found):
                if (own := found[subject]).given:
                    store.open(subject, self.session).keep(sorted(own.given), sorted(own.targets))

    def forget(self, run: str) -> None:
        """Destroys all sessions of this name, if the run owns it.

        Raises:
            StoreError: the store cannot be opened or written.
        """
        with self._open_store() as store:
            subjects = [each.subject for each in store.sessions() if each.session == self.session]
            if OWNER not in subjects:
                return
            mark = _mark_owner(run)
            if store.open(OWNER, self.session, new=False).restore(mark.shown) != mark.value:
                return
            # the mark last, so that this can be done again
            for subject in sorted(subjects, key=OWNER.__eq__):
                store.forget(subject, self.session)


def _mark_owner(run: str) -> Given:
    """Builds the entry that marks a run as the owner."""
    return Given("RUN", 1, run)


class SubjectMapping:
    """The placeholders of one subject in a part. Secret.

    Args:
        names: of the subject.
    """

    def __init__(self, names: KeyedNames) -> None:
        self.names = names
        self.given: set[Given] = set()
        self.targets: set[str] = set()

    def __repr__(self) -> str:
        return f"SubjectMapping({len(self.given)} placeholders)"

    def take(self, result: Result) -> None:
        """Adds the placeholders of a released text."""
        own = [self.names.given(value) for value in _yield_hidden(result)]
        self.given.update(own)
        self.targets |= targets_in(result.text, {each.shown: each.value for each in own})


def _yield_hidden(result: Result) -> Iterable[Original]:
    """Yields the values that became placeholders in a released text."""
    for place, type_ in result.released.mask.placeholders:
        item = result.released.items[place]
        yield Original(
            type_, result.private.words[item.start], item.text.startswith(('"', "&quot;"))
        )
