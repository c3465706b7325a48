"""Locks between processes, here and where Windows' own are asked (`tests/windows_like`)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SYSTEMS = {
    "this system": "",
    "like Windows": str(Path(__file__).parents[1] / "windows_like"),
}

HOLDS = """
import sys
from textveil.files import locks
held = open(sys.argv[1], "ab")
locks.lock_file(held.fileno())
print("held", locks.fcntl is None, flush=True)
sys.stdin.readline()
"""
TRIES = """
import sys
from textveil.files import locks
with open(sys.argv[1], "ab") as file:
    file.write(b"a line\\n")
    file.flush()
    if locks.lock_file(file.fileno(), wait=False):
        locks.unlock_file(file.fileno())
        print(locks.lock_file(file.fileno(), wait=False), file.tell())
    else:
        print("busy", file.tell())
"""
LIVES = """
from textveil.cli import main
from textveil.gateway.policy import client_keys
from textveil.gateway import server
from textveil.gateway.serve import audit_log
log = audit_log.AuditLog("audit.jsonl")
assert log.flush() and log.close() == 0
assert main(["protect", "Ask Maria Silva", "--session", "s.session"]) == 0
stored = ["--session", "anna", "--store", "sqlite:///veil.db"]
assert main(["protect", "Ask Maria Silva", *stored]) == 0
run = ["corpus", "run", "rows.csv", "--id-from-row", "--others", "drop", "--profile", "prompt", "--output", "out"]
assert main(run) == 0
"""


@pytest.fixture(params=SYSTEMS)
def system(request, tmp_path):
    """A function that starts Python with a program, and whether that sees a system like Windows."""
    paths = [
        SYSTEMS[request.param],
        *(each for each in sys.path if each != SYSTEMS["like Windows"]),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def start(program: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "lock")],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start, request.param != "this system"


def test_one_process_holds_a_lock_and_its_end_gives_it_back(system):
    run, is_windows = system
    holder = run(HOLDS)
    assert holder.stdout.readline() == f"held {is_windows}\n"
    assert run(TRIES).communicate()[0] == "busy 7\n"  # and what is locked can be written
    holder.kill()
    holder.communicate()
    assert run(TRIES).communicate()[0] == "True 14\n"


def test_everything_that_locks_works(system, tmp_path):
    run, _ = system
    (tmp_path / "rows.csv").write_text("text\nthe money is gone\n")
    program = run(LIVES)
    _, said = program.communicate()
    assert program.returncode == 0, said
    assert {"audit.jsonl", "s.session", "veil.db"} <= set(os.listdir(tmp_path))
    assert sorted(os.listdir(tmp_path / "out"))[0] == "manifest.json"
    assert ".out.lock" not in os.listdir(tmp_path)
