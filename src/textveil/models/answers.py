"""Kept answers of language models, so that no question is paid for twice.

In: questions, and a function that sends one. Out: answers, and counts of requests.
Not here: how a question is sent (`endpoint`), and what is asked.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol, Self, runtime_checkable

from textveil.errors import OutputError, RequestLimitReached
from textveil.files import convert_write_errors, make_folder
from textveil.randomness import make_unique_name

OWNER_MODE = 0o600
LOCK_SECONDS = 60.0
WAIT_SECONDS = 0.02
CHARACTERS_PER_TOKEN = 4
"""A rough figure for English."""

SCHEMA = """\
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT, run TEXT, until REAL);
CREATE TABLE IF NOT EXISTS counts (
    run TEXT, model TEXT, local INTEGER, sent INTEGER, kept INTEGER, PRIMARY KEY (run, model, local)
);
"""


class ModelRequest(NamedTuple):
    """A request to a model, and everything that its answer depends on.

    Args:
        endpoint: url of the model, or what stands for it.
        model: its name.
        system: system message. Secret, as is `user`.
        user: user message.
        temperature: from 0 to 2; None for the endpoint's default.
        max_tokens: largest length of the answer; None for no limit.
        attempt: number of the attempt.
        local: whether the model runs on this machine.
        patience: seconds after which a sender who does not answer is given up.
    """

    endpoint: str
    model: str
    system: str
    user: str
    temperature: float | None
    max_tokens: int | None
    attempt: int
    local: bool
    patience: float

    def __repr__(self) -> str:
        return f"<ModelRequest to {self.model!r}>"

    @property
    def digest(self) -> str:
        """Its SHA-256: whoever guesses a question can check the guess against it."""
        return sha256(repr(self[:-2]).encode(errors="surrogatepass")).hexdigest()


@runtime_checkable
class AnswerSource(Protocol):
    """Answers questions, by sending them or without."""

    def fetch(self, question: ModelRequest, send: Callable[[], str]) -> str:
        """Returns the answer to a question; `send` sends it."""
        ...


@dataclass(frozen=True, kw_only=True)
class RequestCounts:
    """Numbers of the requests that a run made.

    Attributes:
        sent: number of requests that left this machine.
        kept: number of answers that were there already.
        local: number of requests to a model on this machine.
    """

    sent: int = 0
    kept: int = 0
    local: int = 0


@dataclass(frozen=True, kw_only=True)
class AnswerStore:
    """Keeps answers in a file of its owner; several processes may share it.

    The file has answers and digests of questions, no question. A question that another thread or
    process of the same run has just sent is waited for.

    Attributes:
        path: the SQLite file.
        run: name of the run that counts.
        most: largest number of requests of the run that leave this machine; None for no limit.
    """

    path: Path
    run: str = field(default_factory=make_unique_name)
    most: int | None = None

    @classmethod
    def open(cls, path: Path, most: int | None = None) -> Self:
        """Opens a store for a new run, and creates its file.

        Raises:
            OutputError: the file cannot be written, or is something else.
        """
        with convert_write_errors():
            make_folder(path.parent)
            no_link = getattr(os, "O_NOFOLLOW", 0)  # a link could make another file readable here
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | no_link, OWNER_MODE))
            path.chmod(OWNER_MODE)
        store = cls(path=path, most=most)
        with store._connect() as connection:
            connection.executescript(SCHEMA)
        return store

    def fetch(self, question: ModelRequest, send: Callable[[], str]) -> str:
        """Returns a kept answer, or sends the question and keeps its answer.

        Raises:
            RequestLimitReached: the run has sent `most` requests.
            OutputError: the file cannot be read or written.
        """
        key = question.digest
        while (kept := self._claim(key, question)) is None:
            time.sleep(WAIT_SECONDS)  # another one has sent it
        is_mine, answer = kept
        if not is_mine:
            return answer
        try:
            answer = send()
        except BaseException:
            with self._connect() as connection:
                connection.execute("DELETE FROM answers WHERE key = ? AND answer IS NULL", (key,))
            raise
        with self._connect() as connection:
            connection.execute(
                "UPDATE answers SET answer = ? WHERE key = ?", (_drop_surrogates(answer), key)
            )
        return answer

    def read_counts(self) -> RequestCounts:
        """Reads the number of requests of this run.

        Raises:
            OutputError: the file cannot be read.
        """
        with self._connect() as connection:
            row = connection.execute(
                "SELECT total(sent * (1 - local)), total(kept), total(sent * local) FROM counts "
                "WHERE run = ?",
                (self.run,),
            ).fetchone()
        sent, kept, local = map(int, row)
        return RequestCounts(sent=sent, kept=kept, local=local)

    def _claim(self, key: str, question: ModelRequest) -> tuple[bool, str] | None:
        """Takes the answer, or claims the question for this thread.

        Returns:
            (False, the answer), (True, "") where it is to be sent, or None where another thread
            has sent it.
        """
        now = time.time()
        with self._connect() as connection:
            row = connection.execute(
                "SELECT answer, run, until FROM answers WHERE key = ?", (key,)
            ).fetchone()
            if row is not None and row[0] is not None:
                self._count(connection, question, kept=1)
                return False, row[0]
            if row is not None and row[1] == self.run and row[2] > now:
                return None
            if self.most is not None and not question.local:
                (sent,) = connection.execute(
                    "SELECT total(sent) FROM counts WHERE run = ? AND local = 0", (self.run,)
                ).fetchone()
                if sent >= self.most:
                    raise RequestLimitReached(
                        f"the run has sent {self.most:,} requests, as many as it may"
                    )
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, NULL, ?, ?)",
                (key, self.run, now + question.patience),
            )
            self._count(connection, question, sent=1)
        return True, ""

    def _count(
        self,
        connection: sqlite3.Connection,
        question: ModelRequest,
        *,
        sent: int = 0,
        kept: int = 0,
    ) -> None:
        connection.execute(
            "INSERT INTO counts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "sent = sent + excluded.sent, kept = kept + excluded.kept",
            (self.run, question.model, int(question.local), sent, kept),
        )

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """Opens the file for one transaction."""
        try:
            with closing(
                sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
            return
        except sqlite3.Error:
            failure = (
                f"{self.path.name} cannot be used as a store of answers; delete it if it is not one"
            )
        raise OutputError(failure)  # out here: an error of the library may hold an answer


class RequestEstimate(NamedTuple):
    """Numbers of the requests that a run would make.

    Args:
        asked: all, with those whose answer is there by then.
        distinct: different ones that leave this machine.
        local: different ones to a model on this machine.
        tokens: rough number of tokens of those that leave this machine, with their answers.
    """

    asked: int = 0
    distinct: int = 0
    local: int = 0
    tokens: int = 0

    def subtract(self, earlier: "RequestEstimate") -> "RequestEstimate":
        """Returns what has been added since an earlier estimate."""
        return RequestEstimate(*(now - then for now, then in zip(self, earlier, strict=True)))


@dataclass(kw_only=True)
class RequestRecorder:
    """Counts requests and sends none: the answers are made up.

    Attributes:
        name: tells it from others.
        estimate: the requests so far.
    """

    name: str = field(default_factory=make_unique_name)
    estimate: RequestEstimate = field(default_factory=RequestEstimate, repr=False)
    _seen: set[str] = field(default_factory=set, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def fetch(self, question: ModelRequest, send: Callable[[], str]) -> str:
        """Counts a question, and returns its user message in place of an answer."""
        answer = question.user
        if question.max_tokens is not None:
            answer = answer[: question.max_tokens * CHARACTERS_PER_TOKEN]
        key = question.digest
        length = len(question.system) + len(question.user) + len(answer)
        with self._lock:
            asked, distinct, local, tokens = self.estimate
            if key not in self._seen:
                self._seen.add(key)
                distinct += not question.local
                local += question.local
                tokens += 0 if question.local else length // CHARACTERS_PER_TOKEN
            self.estimate = RequestEstimate(asked + 1, distinct, local, tokens)
        return answer


def _drop_surrogates(text: str) -> str:
    return text.encode(errors="replace").decode()
