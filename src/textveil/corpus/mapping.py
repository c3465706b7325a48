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

from textveil.corpus.release_key import KeyHandle
from textveil.errors import ConfigError, InputError, quote, quote_file
from textveil.pipeline import Result
from textveil.session import (
    KeyedPlaceholders,
    Original,
    PlaceholderToken,
    SessionStore,
    find_targets,
)
from textveil.session.sql.key_stores import FOLDER_VARIABLE

SQLITE_SCHEME = "sqlite:///"
DATABASE_SCHEMES = (SQLITE_SCHEME, "postgresql://", "redis://", "rediss://")

OWNER_SUBJECT = "corpus/run"
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
    def build(cls, url: str) -> Self:
        """Builds the address of a store that several processes can open.

        Raises:
            ConfigError: it is one of this process alone, or of one session.
        """
        if url.startswith(("file:", "memory:")):
            raise ConfigError(
                "--store must be sqlite:///NAME.db or postgresql://HOST/NAME, got "
                f"{quote_file(url)}"
            )
        if url.startswith(SQLITE_SCHEME):  # workers may be in other folders
            path, mark, query = url.removeprefix(SQLITE_SCHEME).partition("?")
            url = f"{SQLITE_SCHEME}{os.path.abspath(path)}{mark}{query}" if path else url
        keys = os.environ.get(FOLDER_VARIABLE) or None
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
        options = {"keys": keys} if keys and url.startswith(DATABASE_SCHEMES) else {}
        with SessionStore(url, **options) as store:
            yield store

    def compute_identity(self) -> str:
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
            subjects = {
                entry.subject for entry in store.sessions() if entry.session == self.session
            }
            if not subjects or OWNER_SUBJECT in subjects:
                with suppress(InputError):  # of two runs at one moment, one
                    store.open(OWNER_SUBJECT, self.session).keep([_build_owner_entry(run)])
                    return
        raise ConfigError(
            f"the store already has sessions named {quote(self.session)} (--session): choose "
            "another name for this release, because a session holds one value for each "
            "placeholder"
        )

    def keep(self, mappings: "dict[str, SubjectMapping]") -> None:
        """Stores the values of placeholders.

        Values that are there already stay as they are.

        Args:
            mappings: by subject.

        Raises:
            StoreError: the store cannot be opened or written.
            InputError: a session has another value for a placeholder.
        """
        with self._open_store() as store:
            for subject in sorted(mappings):
                if (mapping := mappings[subject]).placeholders:
                    store.open(subject, self.session).keep(
                        sorted(mapping.placeholders), sorted(mapping.targets)
                    )

    def forget(self, run: str) -> None:
        """Destroys all sessions of this name, if the run owns it.

        Raises:
            StoreError: the store cannot be opened or written.
        """
        with self._open_store() as store:
            subjects = [
                entry.subject for entry in store.sessions() if entry.session == self.session
            ]
            if OWNER_SUBJECT not in subjects:
                return
            mark = _build_owner_entry(run)
            if store.open(OWNER_SUBJECT, self.session, new=False).restore(mark.text) != mark.value:
                return
            # the mark last, so that this can be done again
            for subject in sorted(subjects, key=OWNER_SUBJECT.__eq__):
                store.forget(subject, self.session)


def _build_owner_entry(run: str) -> PlaceholderToken:
    """Builds the entry that marks a run as the owner."""
    return PlaceholderToken("RUN", 1, run)


class SubjectMapping:
    """The placeholders of one subject in a part. Secret.

    Args:
        names: of the subject.
    """

    def __init__(self, names: KeyedPlaceholders) -> None:
        self.names = names
        self.placeholders: set[PlaceholderToken] = set()
        self.targets: set[str] = set()

    def __repr__(self) -> str:
        return f"SubjectMapping({len(self.placeholders)} placeholders)"

    def take(self, result: Result) -> None:
        """Adds the placeholders of a released text."""
        entries = [self.names.build_placeholder(value) for value in _yield_hidden(result)]
        self.placeholders.update(entries)
        self.targets |= find_targets(result.text, {entry.text: entry.value for entry in entries})


def _yield_hidden(result: Result) -> Iterable[Original]:
    """Yields the values that became placeholders in a released text."""
    for place, type_ in result.released.mask.placeholders:
        item = result.released.items[place]
        yield Original(
            type_, result.private.words[item.start], item.text.startswith(('"', "&quot;"))
        )
