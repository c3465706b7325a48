"""The gateway under the leak suite of somebody else: `pii-leak-benchmark` knows a base URL, and captures what arrives.

It plants identifiers and keys that it makes up, lets its upstream say them again in pieces of all sizes, and looks for
them in what it captured, also in encodings and look-alikes.
"""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gateway.servers import commanded


def free_port() -> int:
    """A port that nobody listens at: the suite binds it, and the gateway must know it before."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@pytest.mark.slow
def test_the_suite_calls_the_command_clean(tmp_path):
    """Its values come from a seed: without one, its marker of rare nouns has a surname in one run of fifteen."""
    port, reports = free_port(), tmp_path / "reports"
    suite = Path(sys.executable).with_name("pii-leak-benchmark")
    with commanded(f"http://127.0.0.1:{port}/v1", tmp_path / "said") as url:
        asked = [
            "--target-base-url",
            f"{url}/v1",
            "--capture-port",
            str(port),
            "--out",
            str(reports),
        ]
        ran = subprocess.run(
            [suite, "ci", "--seed", "one", "--duty", "restore", "--timeout-seconds", "60", *asked],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
        )
    assert ran.returncode == 0, ran.stdout
    run, raw = (
        json.loads((reports / name).read_text("utf-8"))
        for name in ("current.json", "current.raw.json")
    )
    assert run["verdict"] == "CLEAN"
    assert [name for name, check in raw["checks"].items() if not check["passed"]] == []
    assert raw["checks"]["configured_upstream_boundary"]["captured_requests"] > 0
