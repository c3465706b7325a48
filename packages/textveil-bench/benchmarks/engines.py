"""Runs over a corpus by each executor: killed and resumed, as one release with the same bytes; and how fast they are.

In: the installed package, Ray and Spark (`make check-engines` makes an environment with them). Out: rows in
benchmarks/rows/engines.jsonl; it fails where a release is not the same.
Not here: what the executors promise (tests/corpus/test_engines.py).

    python benchmarks/engines.py [kill] [speed] [resume] [--rows 100000] [--words 20] [--mechanism noise]
        [--executors local ray]

`kill` kills each run with all its processes when a third of its parts is there, and resumes it. `speed` runs each to
its end, beside a run in one process and a plain loop of the library over some of the same rows. `resume` kills each
when half of its parts is there: what that costs is how much longer it takes than a run that is left alone. Nothing else
should run.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import rowfiles

from textveil_bench.circumstances import read_circumstances

ROWS = Path(__file__).resolve().parent / "rows" / "engines.jsonl"
WORDS = (files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8").split()
BUDGETS = {"rankcape": 8.0, "noise": 70.0}
SEED = 20_261_123
"""In the place of a key, so that all runs are one release."""
LOOPED = 4_000
"""Rows of the plain loop."""
MARK = "ENGINES_RUN"
"""A variable that all processes of a run have, by which they are found."""


def make(path: Path, rows: int, words: int) -> None:
    """Sentences of words of the packaged letter, with an id and a subject, in four files."""
    picks = random.Random(1)
    path.mkdir()
    for file in range(4):
        with (path / f"{file}.jsonl").open("w", encoding="utf-8") as stream:
            for number in range(file, rows, 4):
                text = " ".join(picks.choices(WORDS, k=words))
                stream.write(json.dumps({"id": number, "text": text, "who": number % 1000}) + "\n")


ALONE = "one process"
"""The run that others are compared with: the executor `local` with one job."""


def command(source: Path, out: Path, executor: str, given: argparse.Namespace) -> list[str]:
    """A run, which goes on where there is one."""
    executor, jobs = ("local", 1) if executor == ALONE else (executor, given.jobs)
    budget = str(BUDGETS[given.mechanism])
    return [
        *(
            sys.executable,
            "-m",
            "textveil",
            "corpus",
            "run",
            str(source),
            "--output",
            str(out),
            "--id",
            "id",
        ),
        *(
            "--subject",
            "who",
            "--mechanism",
            given.mechanism,
            "--epsilon",
            budget,
            "--seed",
            str(SEED),
            "--resume",
        ),
        *(
            "--executor",
            executor,
            "--jobs",
            str(jobs),
            "--part-rows",
            str(given.part_rows),
            "--quiet",
        ),
    ]


def processes(mark: str) -> list[int]:
    """The processes of a run that are there, by the variable that they have."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def memory(mark: str) -> int:
    """Bytes of a run's processes, what they share counted for each in part."""
    total = 0
    for number in processes(mark):
        try:
            said = Path(f"/proc/{number}/smaps_rollup").read_text()
        except OSError:
            continue
        total += 1024 * next(
            int(line.split()[1]) for line in said.splitlines() if line.startswith("Pss:")
        )
    return total


def ran(line: list[str], out: Path, *, until: int | None = None) -> tuple[float, int]:
    """Seconds of a run and the most memory of its processes; killed with all of them when so many parts are there."""
    mark, most, start = f"{os.getpid()}-{time.time_ns()}", 0, time.perf_counter()
    environment = {**os.environ, MARK: mark, "TEXTVEIL_PROGRESS": "0"}
    with subprocess.Popen(
        line, env=environment, stderr=subprocess.PIPE, start_new_session=True
    ) as child:
        looked = 0.0
        while child.poll() is None:
            if until is not None and len(list(out.glob("part-*"))) >= until:
                break
            if time.perf_counter() > looked + 2:
                most, looked = max(most, memory(mark)), time.perf_counter()
            time.sleep(0.05)
        killed = child.poll() is None
        if killed:
            for number in processes(mark):
                os.kill(number, signal.SIGKILL)
        said = child.communicate()[1].decode(errors="replace")
    assert killed or child.returncode == 0, said[-2000:]
    while processes(mark):  # those of an engine take a moment to end
        time.sleep(0.2)
    return time.perf_counter() - start, most


def digest(out: Path) -> str:
    """Of all (id, field, text), sorted."""
    found = []
    for part in out.glob("part-*"):
        with part.open(encoding="utf-8") as stream:
            found += [(row["id"], "text", row["text"]) for row in map(json.loads, stream)]
    return sha256(json.dumps(sorted(found)).encode()).hexdigest()


def kills(folder: Path, source: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One release by each executor, killed once on its way."""
    from textveil import corpus

    parts, seen = -(-given.rows // given.part_rows), set[str]()
    for executor in given.executors:
        out = folder / f"killed-{executor}"
        line = command(source, out, executor, given)
        before, _ = ran(line, out, until=max(1, parts // 3))
        there = len(list(out.glob("part-*")))
        assert not (out / "manifest.json").exists(), "it had ended before it was killed"
        after, _ = ran(line, out)
        assert corpus.verify(out) == []
        seen.add(digest(out))
        assert len(seen) == 1, "the releases differ"
        document = json.loads((out / "manifest.json").read_text())
        assert document["rows"] == given.rows
        yield {
            "what": f"engines, killed and resumed, {executor}",
            "unit": "rows",
            "value": document["rows"],
            "digest": next(iter(seen)),
            "parts": len(document["parts"]),
            "parts when killed": there,
            "seconds": [before, after],
        }


def speeds(folder: Path, source: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows a second of each executor, from start to end, beside a plain loop; the most memory of its processes."""
    from textveil import Privatizer

    privatizer = Privatizer(given.mechanism, epsilon=BUDGETS[given.mechanism], seed=SEED)
    with (source / "0.jsonl").open(encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line, _ in zip(stream, range(LOOPED), strict=False)]
    list(privatizer.privatize_many(texts[:100]))
    start = time.perf_counter()
    made = sum(1 for _ in privatizer.privatize_many(texts))
    yield {
        "what": f"executors, {given.mechanism}, plain loop",
        "unit": "rows/s",
        "value": made / (time.perf_counter() - start),
    }
    for executor in (ALONE, *given.executors):
        out = folder / f"speed-{executor}"
        seconds, most = ran(command(source, out, executor, given), out)
        named = f"executors, {given.mechanism}, {executor}"
        yield {"what": named, "unit": "rows/s", "value": given.rows / seconds, "seconds": seconds}
        yield {"what": f"{named}, memory of all processes", "unit": "MiB", "value": most / 2**20}


def resumes(folder: Path, source: Path, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """How many seconds it costs each executor that it is killed half-way and resumed."""
    for executor in given.executors:
        whole, _ = ran(
            command(source, folder / f"whole-{executor}", executor, given),
            folder / f"whole-{executor}",
        )
        out = folder / f"halved-{executor}"
        line = command(source, out, executor, given)
        before, _ = ran(line, out, until=max(1, given.rows // given.part_rows // 2))
        assert not (out / "manifest.json").exists(), "it had ended before it was killed"
        after, _ = ran(line, out)
        yield {
            "what": f"executors, {given.mechanism}, {executor}, killed half-way and resumed, cost",
            "unit": "s",
            "value": before + after - whole,
            "seconds": [whole, before, after],
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, and appends rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["kill", "speed"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=20)
    parser.add_argument("--part-rows", type=int, default=5_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--mechanism", default="rankcape", choices=BUDGETS)
    parser.add_argument("--executors", nargs="+", default=["local", "ray", "spark"])
    given = parser.parse_args(arguments)
    options = {
        name: value for name, value in vars(given).items() if name not in ("parts", "executors")
    }
    shared = {
        "options": options,
        "load": os.getloadavg()[0],
        **read_circumstances("ray", "pyspark", "pyarrow", "pandas"),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "in", given.rows, given.words)
        for part in given.parts:
            for row in {"kill": kills, "speed": speeds, "resume": resumes}[part](
                folder, folder / "in", given
            ):
                print(json.dumps(row), flush=True)
                rowfiles.keep(ROWS, [{**row, **shared}])


if __name__ == "__main__":
    main()
