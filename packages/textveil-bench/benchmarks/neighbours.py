"""Integrations that are tested in environments of their own: that each ran, with what, and how it ended.

In: the environments that `make check-engines` makes. Out: rows in benchmarks/rows/neighbours.jsonl, the last of each
lane; it fails where a test does.
Not here: what the integrations promise (tests/integrations).

    python benchmarks/neighbours.py [data-juicer] [nemo-curator] [open-webui] [--build build]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from textveil_bench.circumstances import read_circumstances

ROOT = Path(__file__).resolve().parents[3]
ROWS = Path(__file__).resolve().parent / "rows" / "neighbours.jsonl"


class Lane(NamedTuple):
    """An integration.

    Args:
        distribution: of the tool, as packages are called.
        folder: of its environment.
        test: the file with its tests.
        variable: tells the tests, which run in this environment, its command; None if they run in its own.
    """

    distribution: str
    folder: str
    test: str
    variable: str | None = None


LANES = {
    "data-juicer": Lane("py-data-juicer", "datajuicer", "test_data_juicer.py"),
    "nemo-curator": Lane("nemo-curator", "nemo", "test_nemo_curator.py"),
    "open-webui": Lane("open-webui", "openwebui", "test_openwebui.py", "TEXTVEIL_OPENWEBUI"),
}


def ran(name: str, build: Path) -> dict[str, Any]:
    """The row of a lane."""
    lane = LANES[name]
    own = build / lane.folder / "bin"
    asked = [
        own / "python",
        "-c",
        f"from importlib.metadata import version; print(version({lane.distribution!r}))",
    ]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    more = {} if lane.variable is None else {lane.variable: str(own / "open-webui")}
    python = own / "python" if lane.variable is None else Path(sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            python,
            "-m",
            "pytest",
            "-q",
            f"tests/integrations/{lane.test}",
            f"--junitxml={report}",
        ]
        began = time.perf_counter()
        status = subprocess.run(command, cwd=ROOT, env={**os.environ, **more}).returncode
        seconds = time.perf_counter() - began
        suite = next(iter(ElementTree.parse(report).getroot().iter("testsuite")))
        counts = {
            each: int(suite.attrib[each]) for each in ("tests", "failures", "errors", "skipped")
        }
    return {
        "lane": name,
        "version": version,
        **counts,
        "ok": status == 0 and counts["skipped"] < counts["tests"],
        "seconds": round(seconds, 1),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for, and keep the rows of all others."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "lanes", nargs="*", choices=[*LANES, []], help="which; all if none is named"
    )
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build", help="folder with the environments"
    )
    given = parser.parse_args(arguments)
    kept = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    rows = {row["lane"]: row for row in kept}
    for name in given.lanes or LANES:
        rows[name] = {**ran(name, given.build), **read_circumstances()}
        ROWS.write_text(
            "".join(json.dumps(rows[each], sort_keys=True) + "\n" for each in LANES if each in rows)
        )
        if not rows[name]["ok"]:
            sys.exit(f"{name}: tests failed, or none ran")


if __name__ == "__main__":
    main()
