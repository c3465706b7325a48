"""Kills a run over a file at random points, resumes it, and checks that nothing was lost, drawn twice or half-written.

In: the installed package. Out: a line per kill, and a JSON row with the result at the end; it fails where a check does.
Not here: the same at every single step of a small run (tests/test_corpus.py).
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

WORDS = (files("textveil") / "data" / "demo.txt").read_text(encoding="utf-8").split()
NAME = "rows.jsonl"


def make(path: Path, rows: int, picks: random.Random) -> None:
    """Sentences of words of the packaged letter, with a number and a field that stay."""
    with path.open("w", encoding="utf-8") as stream:
        for number in range(rows):
            text = " ".join(picks.choices(WORDS, k=picks.randint(3, 20)))
            stream.write(json.dumps({"n": number, "text": text, "label": number % 3}) + "\n")


def command(path: Path, out: Path, jobs: int) -> list[str]:
    """The run that is killed, and that goes on."""
    line = [sys.executable, "-m", "textveil", "privatize", str(path), "--output", f"{out}/", "--mechanism", "noise"]
    return [*line, "--epsilon", "60", "--jobs", str(jobs), "--resume"]


def chunks(out: Path) -> dict[str, bytes]:
    """What is finished of a run."""
    return {path.name: path.read_bytes() for path in (out / f".{NAME}.textveil").glob("*.chunk")}


def check(out: Path, seen: dict[str, str], rows: int) -> int:
    """Compare the finished chunks with what was seen of them; how many there are."""
    now = {name: sha256(content).hexdigest() for name, content in chunks(out).items()}
    if not (out / NAME).exists():
        assert seen.items() <= now.items(), "a finished chunk has gone or has changed"
    else:
        check_output(out, rows)
    assert all(seen.get(name, digest) == digest for name, digest in now.items()), "a finished chunk has changed"
    seen.update(now)
    return len(now)


def check_output(out: Path, rows: int) -> list[str]:
    """Every row is there once, in order, with its other fields; its texts."""
    found = [json.loads(line) for line in (out / NAME).read_text(encoding="utf-8").splitlines()]
    assert [(each["n"], each["label"]) for each in found] == [(number, number % 3) for number in range(rows)]
    return [each["text"] for each in found]


def kill_once(line: list[str], out: Path, delay: float) -> bool:
    """Run until there is one more chunk, and for a time on, and kill; whether the run was still at work."""
    before = len(chunks(out))
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while process.poll() is None and len(chunks(out)) <= before and not (out / NAME).exists():
        time.sleep(0.01)
    try:
        _, said = process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return not (out / NAME).exists()  # else only the folder was left to remove, and a resumed run has nothing to do
    assert process.returncode == 0, said.decode()
    return False


def main() -> None:
    """Kill, resume, check, and print the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--longest", type=float, default=2.0, help="seconds after its first chunk to kill a run at latest"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the points in time; the draws have none")
    chosen = parser.parse_args()
    picks = random.Random(chosen.seed)
    folder = Path(tempfile.mkdtemp(prefix="textveil-kill-"))
    path, killed, finished, resumed = folder / NAME, 0, 0, 0
    make(path, chosen.rows, picks)
    start = time.monotonic()
    while killed < chosen.kills or not finished:
        out, seen, texts = folder / f"out{finished}", dict[str, str](), dict[int, list[str]]()
        line = command(path, out, chosen.jobs)
        while killed < chosen.kills:
            delay = picks.uniform(0, chosen.longest)
            if not kill_once(line, out, delay):
                break
            killed += 1
            count = check(out, seen, chosen.rows)
            resumed += bool(count)
            texts |= {int(name[:8]): json.loads(each.split(b"\n")[1])["texts"] for name, each in chunks(out).items()}
            print(f"kill {killed}: {delay:.2f} s after a chunk, {count} chunks finished, all unchanged", flush=True)
        subprocess.run(line, check=True, stderr=subprocess.DEVNULL)
        finished += 1
        released = check_output(out, chosen.rows)
        before = [text for number in sorted(texts) for text in texts[number]]
        assert released[: len(before)] == before, "a row that was written before a kill has changed"
        assert sorted(os.listdir(out)) == [NAME, f"{NAME}.guarantee.json"], "something is left over"
    assert 2 * resumed >= killed, f"only {resumed} of {killed} kills had finished chunks, and the others show nothing"
    shutil.rmtree(folder)
    row = {
        "what": "killed and resumed",
        "rows": chosen.rows,
        "jobs": chosen.jobs,
        "kills": killed,
        "kills with finished chunks": resumed,
        "runs finished": finished,
        "rows lost, doubled or changed": 0,
        "seconds": round(time.monotonic() - start),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
