"""What a command costs in a process of its own, where loading is most of it: processor time and memory.

In: the installed package; of an older tree, its import path in $BESIDE, for runs that take turns with ours.
Out: measurements for `run`.
Not here: the same work in a process that goes on (`run`, `encoder`, `decode`).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

PROMPT = "Ask Maria Silva (maria@example.org) about the lease"
SENTENCE = "Anna owes the bank nine hundred pounds"
COMMANDS = {
    "--help": ["--help"],
    "protect, one sentence": ["protect", PROMPT],
    "privatize, one sentence, document": ["privatize", SENTENCE],
    "privatize, one sentence, rankcape": [
        "privatize",
        SENTENCE,
        "--mechanism",
        "rankcape",
        "--epsilon",
        "8",
    ],
    "privatize, one sentence, noise": [
        "privatize",
        SENTENCE,
        "--mechanism",
        "noise",
        "--epsilon",
        "60",
    ],
    "demo": ["demo"],
}

PROGRAM = """
import re, sys, time
from pathlib import Path
from textveil.cli import main
code = main(sys.argv[1:])
peak = re.findall(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[0]
print(code, time.process_time(), peak, file=sys.stderr)
"""


def measurements(repeat: int) -> Iterator[dict[str, Any]]:
    """For every command its processor seconds and peak memory, beside those of the older tree if there is one."""
    older = os.environ.get("BESIDE")
    for name, arguments in COMMANDS.items():
        runs = [
            (_run(arguments, None), _run(arguments, older) if older else None)
            for _ in range(repeat + 1)
        ][1:]
        for unit, place in (("processor s", 0), ("MB", 1)):
            value = min(ours[place] for ours, _ in runs)
            row = {
                "what": f"startup, {name}, {'time' if place == 0 else 'memory'}",
                "unit": unit,
                "value": value,
            }
            if older:
                beside = min(theirs[place] for _, theirs in runs if theirs is not None)
                row |= {"beside": beside, "ratio": beside / value}
            yield row


def _run(arguments: list[str], path: str | None) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of one run."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"} | ({"PYTHONPATH": path} if path else {})
    environment.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # modules are compiled once, as they are when installed
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    code, seconds, peak = done.stderr.split()[-3:]
    if code != "0":
        raise RuntimeError(f"textveil {arguments[0]} ended with {code}")
    return float(seconds), int(peak) / 1000
