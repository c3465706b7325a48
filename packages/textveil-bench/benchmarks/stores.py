"""Stores of sessions: many values, the ledger, conversations that grow, writers that are killed. Part of `make bench`.

In: SQLite; PostgreSQL, from the programs of the system; the scripted server of the tests. Out: rows for `run.py`.
Not here: the store (`textveil.session`), and whether it is right (tests/session).

    python benchmarks/stores.py [values] [ledger] [turns] [kill] [--values 1000000] [--folder DIR] [--points 200]

Times are those of the clock; `processor` beside them is what the process used. `flush` and `load` say how busy disk and
machine were just then: nothing else should run.
"""

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
import rowfiles
from encoder import texts
from report import STORES

from gateway import process, used
from textveil.detect import PrivateValue
from textveil.session import Original, Session, SessionDelta, SessionStore, Snapshot
from textveil.session.snapshot import Changes
from textveil.session.spending import Spend
from textveil_bench.circumstances import read_circumstances

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.postgres import MissingServerError, postgres
from tests.readable import readable

ALSO = "sqlalchemy", "cryptography", "psycopg"
"""Packages whose versions matter besides."""

VALUES, BATCH, TIMES = 1_000_000, 20_000, 200
"""Values in the session, those that are written at once, and how often each step is timed."""

WRITERS, SECONDS = 8, 5.0
"""Writers of the ledger, and how long they write."""

TURNS, CONVERSATIONS, WORDS = 40, 4, 60
"""Turns of a conversation, how many conversations there are, and words of a message."""

ENDS = {"turns 2 to 6": range(1, 6), f"turns {TURNS - 4} to {TURNS}": range(TURNS - 5, TURNS)}
"""The turns that are compared; the first one has the system's message, too."""

POINTS, KILLED, SEARCHED = 200, 4, 10
"""Moments at which writers are killed, how many write at once, and after how many moments what they wrote is read."""

PLANTED = "zyxqorvian"
"""What stands in all values of killed writers."""

SPEND = Spend(metric="ldp", table="none", epsilon=1, ldp=1, words=1)
"""What each release of a writer spends."""


def release(session: Session, values: list[Original], *, spends: bool = False) -> list[str]:
    """The placeholders of values, committed; charged before, where releases spend."""

    def make(known: Snapshot) -> tuple[list[str], SessionDelta]:
        if spends:
            session.reserve([SPEND])
        notes = Changes(known)
        notes.add_private(PrivateValue(value.type, value.text, 1.0) for value in values)
        return notes.assign_placeholders(values), notes.build_delta()

    return session.transaction(make)


def address(number: int) -> Original:
    """One of the values."""
    return Original("EMAIL", f"person{number:07}@mail{number % 997}.example")


# ---- a session of many values ----------------------------------------------------------------------------------------


def values(count: int, folder: Path) -> Iterator[dict[str, Any]]:
    """How long it takes to open a session of many values, to look one up, and to commit a release.

    Args:
        count: how many values.
        folder: for the store; one that is there already is not filled again.
    """
    url, keys = f"sqlite:///{folder / 'veil.db'}", folder / "keys"
    begun = time.perf_counter()
    if not (folder / "veil.db").exists():
        with SessionStore(url, keys=keys) as filled:
            for first in range(0, count, BATCH):
                release(
                    filled.open("anna"),
                    [address(i) for i in range(first, min(count, first + BATCH))],
                )
    shared = {"values": count, "MiB": round((folder / "veil.db").stat().st_size / 2**20)}
    shared["prepared in"] = round(time.perf_counter() - begun)
    with (folder / "veil.db").open("rb") as written:  # as a server has it that runs for a while
        while written.read(1 << 24):
            pass
    with SessionStore(url, keys=keys) as store:
        chosen = random.Random()
        known = [chosen.randrange(count) for _ in range(3 * TIMES)]
        new = [count + chosen.randrange(10**12) for _ in range(2 * TIMES)]
        session = store.open("anna")
        steps: dict[str, Callable[[int], object]] = {
            "open": lambda i: store.open("anna").snapshot(),
            "look a value up": lambda i: session.snapshot().placeholders[address(known[i])],
            "open, look a placeholder up": lambda i: store.open("anna").restore(
                f"<EMAIL_{known[TIMES + i] + 1}>"
            ),
            "release of a known value": lambda i: release(session, [address(known[2 * TIMES + i])]),
            "release of a new value": lambda i: release(session, [address(new[i])]),
            "release of a new value, charged": lambda i: release(
                session, [address(new[TIMES + i])], spends=True
            ),
        }
        for what, step in steps.items():
            yield {
                "what": f"stores, SQLite, {count:,} values: {what}",
                **timed(step),
                **shared,
                **moment(folder),
            }


def timed(step: Callable[[int], object]) -> dict[str, Any]:
    """The median of wall time, its 95th percentile, and the mean of processor time."""
    wall = []
    used = time.process_time()
    for i in range(TIMES):
        begun = time.perf_counter()
        step(i)
        wall.append(1000 * (time.perf_counter() - begun))
    used = 1000 * (time.process_time() - used) / TIMES
    high = statistics.quantiles(wall, n=20)[-1]
    return {
        "unit": "ms",
        "value": statistics.median(wall),
        "95%": high,
        "processor": used,
        "times": TIMES,
    }


def moment(folder: Path) -> dict[str, float]:
    """How busy the machine is now: how long the disk takes to write 4 KiB, at the median, in ms, and the load."""
    taken = []
    with tempfile.NamedTemporaryFile(
        dir=folder, buffering=0
    ) as file:  # those without a name are not always flushed
        for _ in range(20):
            file.write(bytes(4096))
            begun = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(1000 * (time.perf_counter() - begun))
    return {"flush": statistics.median(taken), "load": os.getloadavg()[0]}


# ---- the ledger ------------------------------------------------------------------------------------------------------


def ledger() -> Iterator[dict[str, Any]]:
    """How many reservations several writers make, on one account and on one each, all of which have a limit."""
    with tempfile.TemporaryDirectory() as name:  # whose parents others can enter
        folder = Path(name)
        with postgres(folder) as url:
            keys = str(folder / "keys")
            with SessionStore(url, keys=keys) as store:
                for writer in range(WRITERS):
                    store.ledger.limit(f"subject {writer}", SPEND.metric, SPEND.table, 1e6)
            for kind, run in (("threads", _threads), ("processes", _processes)):
                for accounts, of in ((1, "one account"), (WRITERS, "an account each")):
                    for ends, what in (
                        (False, "reservations"),
                        (True, "reservations, each confirmed"),
                    ):
                        made, used = run(url, keys, accounts, ends)
                        yield {
                            "what": f"stores, PostgreSQL, {WRITERS} {kind}, {of}: {what}",
                            "unit": "per second",
                            "value": made / SECONDS,
                            "processor": 1000 * used / made,
                            "seconds": SECONDS,
                            **moment(folder),
                        }


def _threads(url: str, keys: str, accounts: int, ends: bool) -> tuple[int, float]:
    with SessionStore(url, keys=keys) as store, ThreadPoolExecutor(WRITERS) as pool:

        def made(seconds: float) -> int:
            return sum(
                pool.map(
                    lambda writer: reserved(store, writer % accounts, ends, seconds), range(WRITERS)
                )
            )

        made(0.5)
        used = time.process_time()
        return made(SECONDS), time.process_time() - used


def reserved(store: SessionStore, account: int, ends: bool, seconds: float) -> int:
    """How many reservations one writer makes on an account."""
    made, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        reservation = store.ledger.reserve(f"subject {account}", SPEND)
        if ends:
            store.ledger.confirm(reservation)
        made += 1
    return made


def _processes(url: str, keys: str, accounts: int, ends: bool) -> tuple[int, float]:
    context = multiprocessing.get_context("spawn")
    ready, pipes = context.Barrier(WRITERS), [context.Pipe(duplex=False) for _ in range(WRITERS)]
    writers = [
        context.Process(target=_writer, args=(sink, ready, url, keys, number % accounts, ends))
        for number, (_, sink) in enumerate(pipes)
    ]
    for writer in writers:
        writer.start()
    made, used = zip(*(source.recv() for source, _ in pipes), strict=True)
    for writer in writers:
        writer.join()
    return sum(made), sum(used)


def _writer(
    sink: Connection, ready: Barrier, url: str, keys: str, account: int, ends: bool
) -> None:
    with SessionStore(url, keys=keys) as store:
        reserved(store, account, ends, 0.5)
        ready.wait()
        used = time.process_time()
        made = reserved(store, account, ends, SECONDS)
        sink.send((made, time.process_time() - used))


# ---- a conversation --------------------------------------------------------------------------------------------------


def turns() -> Iterator[dict[str, Any]]:
    """What the first and the last turns of conversations through the gateway cost, and how many messages they draw."""
    ways = {
        "placeholder": ("--profile", "prompt", "-o", "protect.detectors=[patterns]"),
        "noise": ("--mechanism", "noise", "--epsilon", "70"),
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(process("tests.openai_server"))
        client = stack.enter_context(httpx2.Client(trust_env=False, timeout=60))
        direct = f"http://127.0.0.1:{int(upstream.stdout.readline())}/v1"
        stack.enter_context(patch.dict(os.environ, {"TEXTVEIL_KEYS": str(folder / "keys")}))
        for way, options in ways.items():
            for store in ("memory", "SQLite"):
                kept = () if store == "memory" else ("--store", f"sqlite:///{folder / way}.db")
                with process(
                    "textveil", "gateway", "--upstream", direct, "--port", "0", *options, *kept
                ) as running:
                    through = running.stderr.readline().split()[-1]
                    _talk(client, through, running.pid, "warm", 3)
                    talks = [
                        _talk(client, through, running.pid, f"k{i}", TURNS)
                        for i in range(CONVERSATIONS)
                    ]
                for ends, which in ENDS.items():
                    wall, used, drawn = zip(
                        *(talk[turn] for talk in talks for turn in which), strict=True
                    )
                    yield {
                        "what": f"stores, conversation, {way}, {store}, {ends}",
                        "unit": "ms",
                        "value": 1000 * statistics.median(wall),
                        "processor": 1000 * statistics.mean(used),
                        "drawn": max(drawn),
                        "options": list(options),
                        "words": WORDS,
                        "times": len(wall),
                        **moment(folder),
                    }


def _talk(
    client: httpx2.Client, url: str, pid: int, key: str, count: int
) -> list[tuple[float, float, int]]:
    """A conversation; seconds of each turn, those of the gateway's processors, and how many messages it drew."""
    said = [{"role": "system", "content": "Answer letters."}]
    found = []
    for turn, text in enumerate(texts(WORDS, count)):
        said.append(
            {"role": "user", "content": f"{turn}: write to {key}{turn}@mail.example. {text}"}
        )
        before, begun = used(pid), time.perf_counter()
        body = {"model": "echo", "messages": said}
        answer = client.post(
            f"{url}/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}
        )
        wall = time.perf_counter() - begun
        answer.raise_for_status()
        statement = json.loads(answer.headers["textveil-statement"])
        found.append((wall, used(pid) - before, statement["drawn"]))
        said.append(answer.json()["choices"][0]["message"])
    return found


# ---- killed writers --------------------------------------------------------------------------------------------------


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The URL of a database in a folder."""
    if kind == "SQLite":
        yield f"sqlite:///{folder / 'veil.db'}"
    else:
        with postgres(folder) as url:
            yield url


def killed(kind: str, points: int, *, clear: bool = False) -> dict[str, Any]:
    """Kills writers at random moments, again and again, and checks that all they handed out is in the store.

    Args:
        kind: of the database.
        points: how many moments.
        clear: whether the writers encrypt nothing, to see that this would be noticed.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        keys = folder / "keys"
        url = stack.enter_context(database(kind, folder))
        if clear:
            stack.enter_context(encrypting_nothing())
        store = stack.enter_context(SessionStore(url, keys=keys))
        store.open("anna")
        names: dict[str, str] = {}
        wrong = released = readings = found = 0
        chosen = random.Random(0)
        context = multiprocessing.get_context(
            "forkserver"
        )  # which has the libraries, and no connection
        context.set_forkserver_preload(
            ["__main__", "sqlalchemy", "textveil.session.database_store"]
        )
        for point in range(points):
            pipes = [context.Pipe(duplex=False) for _ in range(KILLED)]
            writers = [
                context.Process(target=write, args=(sink, url, f"{point}-{each}", str(keys), clear))
                for each, (_, sink) in enumerate(pipes)
            ]
            for writer, (_, sink) in zip(writers, pipes, strict=True):
                writer.start()
                sink.close()
            begun = [source.recv() for source, _ in pipes]
            time.sleep(chosen.uniform(0.0, 1.0))
            for writer in writers:
                writer.kill()
            if (
                point % SEARCHED == 0 or point == points - 1
            ):  # as they left it, before anything is put in order
                readings += 1
                found += bool(readable([PLANTED], _written(folder)))
            session = store.open("anna")
            for each, ((source, _), head) in enumerate(zip(pipes, begun, strict=True)):
                for number, common, own in [head, *said(source)]:
                    given = {
                        common: f"m{number}@{PLANTED}.example",
                        own: f"{point}-{each}-{number}@{PLANTED}.example",
                    }
                    released += 1
                    wrong += sum(
                        names.setdefault(shown, value) != value for shown, value in given.items()
                    )
                    wrong += session.restore(" ".join(given)) != " ".join(given.values())
            for writer in writers:
                writer.join()
        counts = Counter(
            str(each["what"]) for each in store.ledger.entries()
        )  # which checks each link
        lost = max(0, released - counts["confirm"]) + max(0, counts["confirm"] - counts["reserve"])
        return {
            "what": f"stores, {kind}, {KILLED} writers{', encrypting nothing,' * clear} killed {points} times: errors",
            "unit": f"in {released:,} releases",
            "value": wrong + lost + found,
            "released": released,
            "charged": counts["reserve"],
            "confirmed": counts["confirm"],
            "values": len(names),
            "wrong": wrong,
            "lost": lost,
            "readable": found,
            "searched": readings,
        }


def kill(points: int) -> Iterator[dict[str, Any]]:
    """Killed writers of both databases, and some that encrypt nothing."""
    for kind in ("SQLite", "PostgreSQL"):
        with suppress(MissingServerError):
            yield killed(kind, points)
            yield killed(kind, 1, clear=True)


def write(sink: Connection, url: str, who: str, keys: str, clear: bool) -> None:
    """Releases one after the other, and says what was handed out, until it is killed."""
    with encrypting_nothing() if clear else nullcontext():
        session = SessionStore(url, keys=keys).open("anna")
        for i in range(1000):
            given = [
                Original("EMAIL", f"m{i}@{PLANTED}.example"),
                Original("EMAIL", f"{who}-{i}@{PLANTED}.example"),
            ]
            sink.send((i, *release(session, given, spends=True)))


def encrypting_nothing() -> AbstractContextManager[Any]:
    """What is stored until the end of the block is stored in clear."""
    from textveil.session.sql.encryption import Cipher

    def leave(_: Cipher, content: bytes, *place: bytes) -> bytes:
        return content

    return patch.multiple(Cipher, seal=leave, open=leave)


def said(source: Connection) -> list[tuple[int, str, str]]:
    """What a writer that was killed had handed out."""
    found = []
    with suppress(EOFError, OSError):
        while True:
            found.append(source.recv())
    return found


def _written(folder: Path) -> bytes:
    """All that lies in a folder: the files of a database and its keys."""
    content = []
    for each in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):  # a server may remove it meanwhile
            content.append(each.read_bytes() if each.is_file() else b"")
    return b"".join(content)


# ---- all of it -------------------------------------------------------------------------------------------------------


def measurements(
    parts: Sequence[str] = (), count: int = VALUES, points: int = POINTS, folder: Path | None = None
) -> Iterator[dict[str, Any]]:
    """One measurement at a time; PostgreSQL is left out where it is not installed."""
    os.environ.pop("TEXTVEIL_STORE_KEY", None)
    with tempfile.TemporaryDirectory() as own:
        chosen = {
            "values": values(count, folder or Path(own)),
            "ledger": ledger(),
            "turns": turns(),
            "kill": kill(points),
        }
        for name, measured in chosen.items():
            if not parts or name in parts:
                with suppress(MissingServerError):
                    yield from measured


def main() -> None:
    """Measures, prints the rows, and stores them."""
    parser = argparse.ArgumentParser(description="Measures stores of sessions.")
    parser.add_argument("parts", nargs="*", help="values, ledger, turns or kill (default: all)")
    parser.add_argument("--values", type=int, default=VALUES)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument(
        "--folder", type=Path, help="where the filled store is kept for the next time"
    )
    given = parser.parse_args()
    shared = read_circumstances(*ALSO)
    for row in measurements(given.parts, given.values, given.points, given.folder):
        print(json.dumps(row), flush=True)
        rowfiles.keep(STORES, [{**row, **shared}])


if __name__ == "__main__":
    main()
