"""Builds the image without a daemon, measures it, and runs it as a container would be run.

In: Dockerfile. Out: its compressed size, and whether it serves without root, without a network
outside of itself, and without writing anywhere but /data, /keys and /tmp. `make image` runs it. It
needs root, and Debian's packages buildah, mmdebstrap and iproute2.
Not here: where the image is used (`compose.yaml`, `helm`).

The base is a Debian with Python in place of python:slim, so that no registry of images is asked.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SUITE = os.environ.get("SUITE", "bookworm")
PACKAGES = "ca-certificates,python3,python3-venv"
CERTIFICATES = "/etc/ssl/certs"
MAX_MEGABYTES = 350
PORTS = 8600, 8601
MAIL = "anna@example.org"


def run(*command: str) -> str:
    """Runs a command, and returns what it prints."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def build(folder: Path) -> tuple[str, ...]:
    """Builds the image in a folder, and returns the builder's command."""
    builder: tuple[str, ...] = (
        "buildah",
        "--root",
        f"{folder}/storage",
        "--runroot",
        f"{folder}/run",
    )
    builder += ("--storage-driver", "vfs")
    base = str(folder / "base")
    run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", SUITE, base)
    container = run(*builder, "from", "scratch")
    run(*builder, "copy", "--quiet", container, base, "/")
    run(*builder, "config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container)
    run(*builder, "commit", "--quiet", "--rm", container, "localhost/base")
    shutil.rmtree(base)
    options = ("--isolation", "chroot", "--format", "docker", "--tag", "localhost/textveil")
    volume = ("--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro")
    run(*builder, "build", *options, "--build-arg", "BASE=localhost/base", *volume, str(ROOT))
    return builder


def measure(builder: tuple[str, ...], folder: Path) -> list[float]:
    """Returns the megabytes of each compressed layer."""
    run(*builder, "push", "--quiet", "localhost/textveil", f"dir:{folder}/pushed")
    manifest = json.loads((folder / "pushed" / "manifest.json").read_text(encoding="utf-8"))
    return [layer["size"] / 1e6 for layer in manifest["layers"]]


class Model(BaseHTTPRequestHandler):
    """Repeats the last message; keeps what it was asked."""

    asked: list[str] = []  # noqa: RUF012 - one list for all requests

    def do_POST(self) -> None:
        """Answers a request."""
        self.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        message = {
            "role": "assistant",
            "content": json.loads(self.asked[-1])["messages"][-1]["content"],
        }
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "m"}
        answer["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


def try_running(place: str, settings: dict[str, Any]) -> None:
    """Runs what the image says in its file system, in namespaces of its own.

    Args:
        place: the folder of the file system.
        settings: the image's configuration.
    """
    user, _, group = settings["User"].partition(":")
    run("ip", "link", "set", "lo", "up")
    run("mount", "--bind", place, place)
    for folder in ("data", "keys", "tmp"):
        owner = f"mode=0700,uid={user},gid={group}"
        run("mount", "-t", "tmpfs", "-o", owner, "none", f"{place}/{folder}")
    run("mount", "--bind", "/dev", f"{place}/dev")
    run("mount", "--bind", "/proc", f"{place}/proc")
    run("mount", "-o", "remount,bind,ro", place)
    enter = ["setpriv", "--no-new-privs", "chroot", f"--userspec={user}:{group}", place]
    enter += ["env", "--ignore-environment", f"--chdir={settings['WorkingDir']}", *settings["Env"]]
    health = settings["Healthcheck"]["Test"][1:]
    server = ThreadingHTTPServer(("127.0.0.1", PORTS[1]), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{PORTS[1]}/v1"
    began = time.monotonic()
    with subprocess.Popen([*enter, *settings["Entrypoint"], "--upstream", upstream]) as gateway:
        try:
            while subprocess.run([*enter, *health], stderr=subprocess.DEVNULL).returncode:
                assert gateway.poll() is None, "the gateway ended"
                assert time.monotonic() < began + 120, "the gateway is not healthy"
                time.sleep(0.5)
            print(f"healthy after {time.monotonic() - began:.1f} s")
            body = {"model": "m", "messages": [{"role": "user", "content": f"Write to {MAIL}"}]}
            request = urllib.request.Request(
                f"http://127.0.0.1:{PORTS[0]}/v1/chat/completions",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert MAIL in answer.read().decode(), "the answer is not restored"
            assert MAIL not in Model.asked[-1], "the model saw what is private"
            refused = subprocess.run([*enter, "touch", "/a", "/opt/a"], stderr=subprocess.DEVNULL)
            assert refused.returncode, "the root is not read-only"
            written = run(*enter, "find", "/data", "/keys", "-type", "f").split()
            assert any(name.startswith("/keys/") for name in written), "no keys were written"
            status = Path(f"/proc/{gateway.pid}/status").read_text(encoding="utf-8")
            memory = next(line for line in status.splitlines() if line.startswith("VmRSS"))
            print(
                f"protected, restored, read-only; {int(memory.split()[1]) / 1000:.0f} MB of memory"
            )
            gateway.terminate()
            assert gateway.wait(60) == 0, "it does not stop at SIGTERM"
        finally:
            gateway.kill()


def main() -> int:
    """Builds, measures and runs the image; returns an exit code."""
    if len(sys.argv) > 1:
        try_running(sys.argv[1], json.loads(sys.argv[2]))
        return 0
    missing = [name for name in ("buildah", "mmdebstrap", "ip") if shutil.which(name) is None]
    if missing or os.geteuid():
        print("make image needs root, and Debian's packages buildah, mmdebstrap and iproute2")
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        builder = build(folder)
        layers = measure(builder, folder)
        print(f"{sum(layers):.0f} MB compressed, {layers[0]:.0f} of them the base")
        container = run(*builder, "from", "localhost/textveil")
        settings = json.loads(run(*builder, "inspect", container))["Docker"]["config"]
        inside = ("unshare", "--mount", "--net", sys.executable, __file__)
        tried = subprocess.run([*inside, run(*builder, "mount", container), json.dumps(settings)])
        run(*builder, "umount", container)
    return tried.returncode or int(sum(layers) > MAX_MEGABYTES)


if __name__ == "__main__":
    sys.exit(main())
