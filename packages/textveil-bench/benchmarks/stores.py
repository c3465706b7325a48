"""Stores of sessions: what a session of many values costs, and what is left after writers were killed.

In: the number of values, or of kills; a URL for PostgreSQL. Out: times at the median, counts of what was wrong.
Not here: the store (`textveil.session`).

    python benchmarks/stores.py cost --values 1000000
    python benchmarks/stores.py kill --points 200 [--store postgresql://veil@/veil?host=/tmp/server]

Processor time of this process and its disk decide; nothing else should run.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from textveil.protect import PrivateValue
from textveil.session import Original, Session, SessionDelta, SessionStore, Snapshot
from textveil.session.snapshot import Notes

BATCH = 20_000


def release(session: Session, values: list[Original]) -> list[str]:
    """The placeholders of values, committed."""

    def make(known: Snapshot) -> tuple[list[str], SessionDelta]:
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


WRITER = """
import sys
import os
sys.path.insert(0, os.path.join(os.getcwd(), "benchmarks"))
from stores import release
from textveil.session import Original, SessionStore
url, who, keys = sys.argv[1:4]
session = SessionStore(url, keys=keys).open("anna")
for i in range(1000):
    values = [Original("EMAIL", f"m{i}@x.example"), Original("EMAIL", f"{who}-{i}@y.example")]
    print(i, *release(session, values), flush=True)
"""


def kill(points: int, url: str | None, folder: Path) -> None:
    """Kills four writers at random moments, again and again, and checks that all they handed out is in the store."""
    keys = folder / "keys"
    url = url or f"sqlite:///{folder / 'veil.db'}"
    store = SessionStore(url, keys=keys)
    store.open("anna")
    names: dict[str, str] = {}
    wrong = released = 0
    chosen = random.Random(0)
    here = Path(__file__).parents[1]
    for point in range(points):
        command = [sys.executable, "-c", WRITER, url]
        writers = [
            subprocess.Popen([*command, f"{point}{each}", str(keys)], stdout=subprocess.PIPE, text=True, cwd=here)
            for each in "abcd"
        ]
        begun = [writer.stdout.readline() if writer.stdout else "" for writer in writers]
        time.sleep(chosen.uniform(0.0, 1.0))
        for writer in writers:
            writer.kill()
        session = store.open("anna")
        for each, writer, head in zip("abcd", writers, begun, strict=True):
            for line in (head + writer.communicate()[0]).splitlines():
                if line.count(" ") != 2 or not line.endswith(">"):
                    continue
                number, common, own = line.split()
                values = {common: f"m{number}@x.example", own: f"{point}{each}-{number}@y.example"}
                released += 1
                wrong += sum(names.setdefault(name, value) != value for name, value in values.items())
                wrong += session.restore(" ".join(values)) != " ".join(values.values())
        print(f"{point + 1} of {points}: {released:,} releases, {len(names):,} values, {wrong} wrong", flush=True)


def main() -> None:
    """Runs what is asked for in a new folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("cost", "kill"))
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--store")
    given = parser.parse_args()
    os.environ.pop("TEXTVEIL_STORE_KEY", None)
    with tempfile.TemporaryDirectory() as folder:
        if given.what == "cost":
            cost(given.values, Path(folder))
        else:
            kill(given.points, given.store, Path(folder))


if __name__ == "__main__":
    main()
