"""Stores of sessions: what a session of many values costs, and what is left after writers were killed.

In: the number of values, or of kills; a URL for PostgreSQL. Out: times at the median, counts of what was wrong.
Not here: the store (`textveil.session`).

    python benchmarks/stores.py cost --values 1000000
    python benchmarks/stores.py reserve [--store postgresql://veil@/veil?host=/tmp/server]
    python benchmarks/stores.py kill --points 200 [--store postgresql://veil@/veil?host=/tmp/server]

Processor time of this process and its disk decide; nothing else should run.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from textveil.protect import PrivateValue
from textveil.session import Original, Session, SessionDelta, SessionStore, Snapshot
from textveil.session.snapshot import Notes
from textveil.session.spending import Spend

BATCH = 20_000


SPEND = Spend(metric="ldp", table="none", epsilon=1, ldp=1, words=1)
"""What each release of a writer spends."""


def release(session: Session, values: list[Original], *, spends: bool = False) -> list[str]:
    """The placeholders of values, committed; charged before, where releases spend."""

    def make(known: Snapshot) -> tuple[list[str], SessionDelta]:
        if spends:
            session.reserve([SPEND])
        notes = Notes(known)
        notes.found(PrivateValue(value.type, value.text, 1.0) for value in values)
        return notes.placeholders(values), notes.delta()

    return session.transaction(make)


def address(number: int) -> Original:
    """One of the values."""
    return Original("EMAIL", f"person{number:07}@mail{number % 997}.example")


def timed(what: str, times: int, act: Callable[[int], object]) -> None:
    """Prints the median and the 95th percentile of wall time, and the mean of processor time, in ms."""
    wall = []
    used = time.process_time()
    for i in range(times):
        begun = time.perf_counter()
        act(i)
        wall.append(1000 * (time.perf_counter() - begun))
    used = 1000 * (time.process_time() - used) / times
    high = statistics.quantiles(wall, n=20)[-1]
    print(f"{what}: median {statistics.median(wall):.2f} ms, 95% {high:.2f} ms, processor {used:.2f} ms", flush=True)


def cost(values: int, folder: Path) -> None:
    """How long it takes to open a session of many values, to look one up, and to commit a release."""
    url = f"sqlite:///{folder / 'veil.db'}"
    filled = SessionStore(url, keys=folder / "keys")
    begun = time.perf_counter()
    for first in range(0, values, BATCH):
        release(filled.open("anna"), [address(i) for i in range(first, min(values, first + BATCH))])
    size = sum(each.stat().st_size for each in folder.iterdir() if each.is_file()) / 2**20
    print(f"{values:,} values: {size:,.0f} MiB, written in {time.perf_counter() - begun:.0f} s", flush=True)
    store = SessionStore(url, keys=folder / "keys")
    chosen = random.Random(0)
    timed("open", 200, lambda i: store.open("anna").snapshot())
    some = [chosen.randrange(values) for _ in range(200)]
    timed("open, look one value up, restore", 200, lambda i: store.open("anna").restore(f"<EMAIL_{some[i] + 1}>"))
    session = store.open("anna")
    timed("look one value up", 200, lambda i: session.snapshot().placeholders.get(address(chosen.randrange(values))))
    timed("release of a known value", 200, lambda i: release(session, [address(chosen.randrange(values))]))
    timed("commit of a release with one new value", 200, lambda i: release(session, [address(values + i)]))
    timed(
        "the same by a process that knows nothing",
        200,
        lambda i: release(store.open("anna"), [address(2 * values + i)]),
    )


def write(sink: Connection, url: str, who: str, keys: str) -> None:
    """Releases one after the other, and says what was handed out, until it is killed."""
    session = SessionStore(url, keys=keys).open("anna")
    for i in range(1000):
        values = [Original("EMAIL", f"m{i}@x.example"), Original("EMAIL", f"{who}-{i}@y.example")]
        sink.send((i, *release(session, values, spends=True)))


def said(source: Connection) -> list[tuple[int, str, str]]:
    """What a writer that was killed had handed out."""
    found = []
    with suppress(EOFError, OSError):
        while True:
            found.append(source.recv())
    return found


def kill(points: int, url: str | None, folder: Path) -> None:
    """Kills four writers at random moments, again and again, and checks that all they handed out is in the store."""
    keys = folder / "keys"
    url = url or f"sqlite:///{folder / 'veil.db'}"
    store = SessionStore(url, keys=keys)
    store.open("anna")
    names: dict[str, str] = {}
    wrong = released = 0
    chosen = random.Random(0)
    context = multiprocessing.get_context("forkserver")  # which has the libraries, and no connection
    context.set_forkserver_preload(["__main__", "sqlalchemy", "textveil.session.sql.store"])
    for point in range(points):
        pipes = [context.Pipe(duplex=False) for _ in "abcd"]
        writers = [
            context.Process(target=write, args=(sink, url, f"{point}{each}", str(keys)))
            for each, (_, sink) in zip("abcd", pipes, strict=True)
        ]
        for writer, (_, sink) in zip(writers, pipes, strict=True):
            writer.start()
            sink.close()
        begun = [source.recv() for source, _ in pipes]
        time.sleep(chosen.uniform(0.0, 1.0))
        for writer in writers:
            writer.kill()
        session = store.open("anna")
        for each, (source, _), head in zip("abcd", pipes, begun, strict=True):
            for number, common, own in [head, *said(source)]:
                values = {common: f"m{number}@x.example", own: f"{point}{each}-{number}@y.example"}
                released += 1
                wrong += sum(names.setdefault(name, value) != value for name, value in values.items())
                wrong += session.restore(" ".join(values)) != " ".join(values.values())
        for writer in writers:
            writer.join()
        print(f"{point + 1} of {points}: {released:,} releases, {len(names):,} values, {wrong} wrong", flush=True)
    counts = Counter(str(each["what"]) for each in store.ledger.entries())  # which checks each link
    print(f"{counts['reserve']:,} charged, {counts['confirm']:,} confirmed; {released:,} were handed out")
    if wrong or not released <= counts["confirm"] <= counts["reserve"]:
        raise SystemExit("a release was lost, or was not charged")


def reserve(seconds: float, url: str, folder: Path) -> None:
    """How many reservations with their ends eight threads make on one account, and on one each."""
    with SessionStore(url, keys=folder / "keys") as store:
        for accounts in (1, 8):

            def spend(writer: int, accounts: int = accounts) -> int:
                made, end = 0, time.perf_counter() + seconds
                while time.perf_counter() < end:
                    store.ledger.confirm(store.ledger.reserve(f"subject {accounts} {writer % accounts}", SPEND))
                    made += 1
                return made

            with ThreadPoolExecutor(8) as pool:
                made = sum(pool.map(spend, range(8)))
            print(f"8 writers, {accounts} accounts: {made / seconds:,.0f} reservations a second, each confirmed")


def main() -> None:
    """Runs what is asked for in a new folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("cost", "kill", "reserve"))
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--store")
    given = parser.parse_args()
    os.environ.pop("TEXTVEIL_STORE_KEY", None)
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "cost":
            cost(given.values, Path(folder))
        elif given.what == "reserve":
            reserve(10, given.store or f"sqlite:///{folder}/veil.db", Path(folder))
        else:
            kill(given.points, given.store, Path(folder))


if __name__ == "__main__":
    main()
