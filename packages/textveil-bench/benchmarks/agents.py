"""Real coding agents before the gateway: what reaches their model, what is hidden without need, what it costs.

In: agents that `make agents` installs into build/agents; the model of `agent_upstream`, which plays `agent_script`.
Out: rows with counts in rows/agents.jsonl; the table in the documents.
Not here: what agents and their requests say, which is theirs: it is read at run time, and nothing of it is kept.

Each agent finishes the same project twice, directly and by the gateway. Between agent and gateway a tap keeps each
request, so that it can be compared with what came out. Everything runs in a network that has nothing but loopback.
"""

import argparse
import base64
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import agents_page  # the files beside this one
import report
import rowfiles
from agent_script import PLANTED, STEPS, TASK, finish_project, read_project, write_project

from gateway import used
from textveil_bench.circumstances import read_circumstances

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT))

from tests.gateway.servers import Asked, serving_upstream  # noqa: E402
from tests.gateway.written import readings  # noqa: E402

FOLDER = Path(tempfile.gettempdir()) / "agent-work"
"""The same in every run, since agents tell their model where they are."""
LIMIT = 600
"""Seconds that an agent may take."""
DEAD = "http://127.0.0.1:9"

PLACEHOLDER = re.compile(r"<[A-Z][A-Z_]*_\d+(?:_[A-Z]+)*>")

Json = dict[str, Any]


# ---- agents ----------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where an agent runs: what is installed, its home and project, the server's address without /v1, and its task."""

    build: Path
    home: Path
    project: Path
    url: str
    task: str = TASK


class Start(NamedTuple):
    """How an agent is started: its command, its environment, and what it reads from standard input."""

    command: Sequence[str | Path]
    environment: Mapping[str, str]
    typed: str = ""


class Agent(NamedTuple):
    """An agent.

    Args:
        package: its name in a registry.
        interface: of the model.
        dialect: how its tools are called (`agent_upstream`).
        start: how it is started.
    """

    package: str
    interface: str
    dialect: str
    start: Callable[[Place], Start]


def start_claude(place: Place) -> Start:
    """Starts Claude Code."""
    (binary,) = (place.build / "node_modules" / "@anthropic-ai").glob("claude-code-*/claude")
    command = [
        binary,
        "--print",
        place.task,
        "--permission-mode",
        "acceptEdits",
        "--strict-mcp-config",
    ]
    command += ["--setting-sources", "user", "--allowedTools", "Bash", "Read", "Edit", "Write"]
    return Start(
        command,
        {
            "ANTHROPIC_BASE_URL": place.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_BUG_COMMAND": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        },
    )


def start_codex(place: Place) -> Start:
    """Starts Codex."""
    (binary,) = (place.build / "node_modules" / "@openai").glob("codex-*/vendor/*/bin/codex")
    configuration = place.home / ".codex" / "config.toml"
    configuration.parent.mkdir()
    configuration.write_text(
        f"""model_provider = "veil"
check_for_update_on_startup = false
analytics.enabled = false
otel.exporter = "none"

[model_providers.veil]
name = "veil"
base_url = "{place.url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
""",
        encoding="utf-8",
    )
    command = [
        binary,
        "exec",
        "--skip-git-repo-check",
        "--sandbox",
        "danger-full-access",
        place.task,
    ]
    return Start(command, {"OPENAI_API_KEY": "none"})


def start_opencode(place: Place) -> Start:
    """Starts opencode."""
    (binary, *_) = sorted((place.build / "node_modules").glob("opencode-linux-*/bin/opencode"))[
        ::-1
    ]
    configuration = {
        "autoupdate": False,
        "share": "disabled",
        "model": "veil/scripted",
        "small_model": "veil/scripted",
        "permission": "allow",
        "provider": {
            "veil": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{place.url}/v1", "apiKey": "none"},
                "models": {"scripted": {"limit": {"context": 200_000, "output": 8_000}}},
            }
        },
    }
    return Start(
        [binary, "run", place.task],
        {
            "OPENCODE_CONFIG_CONTENT": json.dumps(configuration),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    )


def start_aider(place: Place) -> Start:
    """Starts aider, whose user types a line for each step."""
    command: list[str | Path] = [
        place.build / "aider" / "bin" / "python",
        "-m",
        "aider",
        "--no-git",
    ]
    command += [
        "--yes-always",
        "--model",
        "openai/scripted",
        "--edit-format",
        "diff",
        "--no-show-model-warnings",
    ]
    command += ["--no-check-update", "--analytics-disable", "--no-detect-urls", "--no-pretty"]
    command += ["--no-suggest-shell-commands", "--map-tokens", "0", "--no-fancy-input"]
    command += ["--no-show-release-notes"]
    command += sorted(read_project(place.project))
    typed = "".join(f"Step {number + 1:02d}: go on.\n" for number in range(len(STEPS)))
    return Start(
        command,
        {
            "OPENAI_API_BASE": f"{place.url}/v1",
            "OPENAI_API_KEY": "none",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        typed + "/exit\n",
    )


def start_llm(place: Place) -> Start:
    """Starts llm with the four tools."""
    folder = place.home / "llm"
    folder.mkdir()
    (folder / "extra-openai-models.yaml").write_text(
        f"- model_id: scripted\n  model_name: scripted\n  api_base: {place.url}/v1\n"
        "  supports_tools: true\n",
        encoding="utf-8",
    )
    command = [place.build / "python" / "bin" / "python", "-m", "llm", "prompt", place.task]
    command += [
        "--model",
        "scripted",
        "--functions",
        HERE / "agents" / "tools.py",
        "--chain-limit",
        "0",
    ]
    command += ["--key", "none"]
    return Start(command, {"LLM_USER_PATH": str(folder)})


def start_python(name: str, **environment: str) -> Callable[[Place], Start]:
    """Makes the start of a small agent in Python."""

    def start(place: Place) -> Start:
        command = [place.build / "python" / "bin" / "python", HERE / "agents" / name, place.task]
        return Start(command, {key: place.url + path for key, path in environment.items()})

    return start


def start_sdk(place: Place) -> Start:
    """Starts the small agent in JavaScript."""
    node = shutil.which("node") or "node"
    command = [node, HERE / "agents" / "run_ai_sdk.mjs", place.build / "node_modules", place.task]
    return Start(command, {"OPENAI_BASE_URL": f"{place.url}/v1"})


AGENTS = {
    "Claude Code": Agent("@anthropic-ai/claude-code", "messages", "claude", start_claude),
    "Codex": Agent("@openai/codex", "responses", "codex", start_codex),
    "opencode": Agent("opencode-ai", "chat", "opencode", start_opencode),
    "aider": Agent("aider-chat", "chat", "aider", start_aider),
    "llm": Agent("llm", "chat", "plain", start_llm),
    "openai-agents": Agent(
        "openai-agents",
        "responses",
        "plain",
        start_python("run_openai_agents.py", OPENAI_BASE_URL="/v1"),
    ),
    "LangGraph": Agent(
        "langgraph", "chat", "plain", start_python("run_langgraph.py", OPENAI_BASE_URL="/v1")
    ),
    "pydantic-ai": Agent(
        "pydantic-ai-slim",
        "messages, whole",
        "plain",
        start_python("run_pydantic_ai.py", ANTHROPIC_BASE_URL=""),
    ),
    "Vercel AI SDK": Agent("ai", "responses", "plain", start_sdk),
}


def read_version(agent: Agent, build: Path) -> str | None:
    """Reads the version that is installed; None if none is."""
    manifest = build / "node_modules" / agent.package / "package.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])
    name = agent.package.replace("-", "_")
    found = [*build.glob(f"*/lib/python*/site-packages/{name}-*.dist-info")]
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else None


# ---- a network without a way out -------------------------------------------------------------------------------------


def enter_empty_network() -> None:
    """Starts this program anew in a network that has nothing but loopback, where the system allows it."""
    way = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0:
        os.execvp(way[0], [*way, sys.executable, *sys.argv, "--inside"])


def raise_loopback() -> None:
    """Switches loopback on in a new network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = struct.pack("16sh", b"lo", 0x41)  # up and running
        fcntl.ioctl(control, 0x8914, asked)


def is_empty_network() -> bool:
    """Whether the network has no device but loopback and no route."""
    devices = [line for line in Path("/proc/net/dev").read_text().splitlines() if ":" in line]
    routes = Path("/proc/net/route").read_text().splitlines()[1:]
    return all(line.strip().startswith("lo:") for line in devices) and not routes


# ---- running ---------------------------------------------------------------------------------------------------------


class Exchange(NamedTuple):
    """A request at the tap, the status of its answer, seconds of the gateway's processor, and the answer."""

    path: str
    raw: bytes
    status: int
    processor: float
    said: bytes


class Tap:
    """Stands before a server, passes all on, and keeps requests.

    Args:
        server: its address.
        pid: of the gateway; None without one.
    """

    def __init__(self, server: str, pid: int | None) -> None:
        parts = urlsplit(server)
        self._place, self._pid = (parts.hostname or "", parts.port or 80), pid
        self.exchanges: list[Exchange] = []

    def __call__(self, asked: Asked) -> Iterator[bytes]:
        """The answer, piece by piece, as it comes."""
        before, status, said = self._read_used(), 0, b""
        leave = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}
        headers = {name: value for name, value in asked.headers.items() if name not in leave}
        try:
            with closing(HTTPConnection(*self._place, timeout=LIMIT)) as server:
                server.request(asked.method, asked.path, asked.raw, headers)
                answer = server.getresponse()
                status = answer.status
                kept = [
                    f"{name}: {value}"
                    for name, value in answer.getheaders()
                    if name.lower() not in {"connection", "transfer-encoding", "content-length"}
                ]
                head = [f"HTTP/1.1 {status} -", *kept, "Connection: close", "", ""]
                yield (said := "\r\n".join(head).encode())
                while piece := answer.read1():
                    said += piece
                    yield piece
        finally:
            took = self._read_used() - before
            if asked.raw:
                self.exchanges.append(Exchange(asked.path, asked.raw, status, took, said))

    def _read_used(self) -> float:
        return used(self._pid) if self._pid else 0.0


class Run(NamedTuple):
    """What an agent did once.

    Args:
        code: how it ended; None if it took too long.
        files: the project's, after it.
        sent: requests at the tap.
        reached: requests at the upstream.
        seconds: what it took.
    """

    code: int | None
    files: dict[str, bytes]
    sent: list[Exchange]
    reached: list[Json]
    seconds: float


@contextmanager
def serve_gateway(upstream: str, options: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Runs the gateway's command: its address without /v1, and its process."""
    command = [sys.executable, "-m", "textveil", "gateway", "--upstream", upstream, "--port", "0"]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen([*command, *options], stderr=said, stdout=said) as running,
    ):
        try:
            end = time.monotonic() + 120
            while True:
                said.seek(0)
                if found := re.search(r"http://[0-9.]+:\d+", text := said.read()):
                    break
                if running.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the gateway does not serve: {text[-500:]}")
                time.sleep(0.1)
            yield found[0], running.pid
        finally:
            running.terminate()


@contextmanager
def serve_model(agent: Agent, log: Path, project: Path) -> Iterator[str]:
    """Runs the scripted upstream: its address without /v1."""
    command = [sys.executable, str(HERE / "agent_upstream.py"), agent.dialect, log, project]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield f"http://127.0.0.1:{int(running.stdout.readline())}"
        finally:
            running.terminate()


def warm(url: str) -> None:
    """Asks the gateway once, so that its models are loaded."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Where does Ada Weber live?"}]}
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=LIMIT)) as server:
        server.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(body),
            {"Content-Type": "application/json"},
        )
        server.getresponse().read()


def run_agent(agent: Agent, build: Path, options: Sequence[str] | None) -> Run:
    """Runs an agent on a new project, by the gateway with these options, or directly."""
    home, project, log = FOLDER / "home", FOLDER / "project", FOLDER / "log"
    for made in (home, project):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
    log.unlink(missing_ok=True)
    write_project(project)
    with serve_model(agent, log, project) as upstream:
        if options is None:
            return _run_before(agent, Place(build, home, project, upstream), log, None)
        with serve_gateway(f"{upstream}/v1", options) as (url, pid):
            warm(url)
            log.unlink(missing_ok=True)
            return _run_before(agent, Place(build, home, project, url), log, pid)


def _run_before(agent: Agent, place: Place, log: Path, pid: int | None) -> Run:
    code, sent, seconds = play(agent, place, pid)
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    reached = [json.loads(line) for line in lines]
    for each in reached:
        each["raw"] = base64.b64decode(each["raw"])
    return Run(code, read_project(place.project), sent, reached, seconds)


def play(
    agent: Agent, place: Place, pid: int | None, more: Mapping[str, str] | None = None
) -> tuple[int | None, list[Exchange], float]:
    """Lets an agent work behind a tap: how it ended, what it sent, and seconds.

    Args:
        agent: the agent.
        place: where it works.
        pid: of the gateway; None without one.
        more: variables of its environment.
    """
    tap = Tap(place.url, pid)
    with serving_upstream(tap, raw=True) as serving:
        start = agent.start(place._replace(url=serving.url.removesuffix("/v1")))
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(place.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "TZ": "UTC",
            "USER": "dev",
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_API_KEY": "none",
            "NO_COLOR": "1",
            "DO_NOT_TRACK": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HTTP_PROXY": DEAD,
            "HTTPS_PROXY": DEAD,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            **start.environment,
            **(more or {}),
        }
        began, code = time.monotonic(), None
        with (place.home.parent / f"said-{pid is not None}").open("wb") as said:
            running = subprocess.Popen(
                start.command,
                cwd=place.project,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
            try:
                running.communicate(start.typed.encode(), timeout=LIMIT)
                code = running.returncode
            except subprocess.TimeoutExpired:
                pass
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
        seconds = time.monotonic() - began
    return code, tap.exchanges, seconds


# ---- counting --------------------------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Keeps letters and figures."""
    return "".join(char for char in text.casefold() if char.isalnum())


def count_canaries(run: Run) -> int:
    """Counts planted values that any request shows the upstream, each once a request, however it is written."""
    count = 0
    for each in run.reached:
        whole = json.dumps([each["path"], each["headers"]]).encode() + b"\n" + each["raw"]
        shown = [fold(reading) for reading in readings(whole.decode("utf-8", "replace"))]
        count += sum(any(fold(value) in text for text in shown) for value in PLANTED.values())
    return count


class Hidden(NamedTuple):
    """A placeholder in a request: its place, itself, and what it stands for, None if that cannot be told."""

    place: str
    placeholder: str
    original: str | None


def pair_texts(sent: Any, released: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Pairs texts of a request with what came out of them, with their place."""
    if isinstance(sent, str) and isinstance(released, str):
        inner = [read_object(text) for text in (sent, released)]
        if None in inner:
            yield place, sent, released
        else:
            yield from pair_texts(*inner, place or "assistant")
    elif isinstance(sent, list) and isinstance(released, list):
        for one, other in zip(sent, released, strict=False):
            yield from pair_texts(one, other, name_place(one, place))
    elif isinstance(sent, dict) and isinstance(released, dict):
        keys = list(sent)
        for at, (key, value) in enumerate(released.items()):
            if key in sent:
                yield from pair_texts(sent[key], value, place or name_field(key))
            elif len(keys) == len(released):
                yield place, keys[at], key
                yield from pair_texts(sent[keys[at]], value, place)


def read_object(text: str) -> Json | None:
    """Reads the JSON object that a text is, such as arguments of a tool; None if it is none."""
    if not text.startswith("{"):
        return None
    try:
        return dict(json.loads(text))
    except ValueError:
        return None


def name_field(key: str) -> str:
    """Names the place of a field of a request."""
    if key in ("system", "instructions"):
        return "system"
    return "tools" if key == "tools" else "" if key in ("messages", "input") else "other"


def name_place(item: Any, place: str) -> str:
    """Names the place of an item of a list."""
    if not isinstance(item, dict):
        return place or "user"
    kind, role = str(item.get("type")), item.get("role")
    if role == "tool" or kind == "tool_result" or kind.endswith("call_output"):
        return "tool results"
    if role in ("system", "developer"):
        return "system"
    if role in ("user", "assistant"):
        return str(role)
    return place or "assistant"


def list_hidden(sent: str, released: str) -> Iterator[tuple[str, str | None]]:
    """Lists the placeholders of a text, with what stood in their places."""
    pieces = PLACEHOLDER.split(released)
    found = PLACEHOLDER.findall(released)
    at = len(pieces[0])
    aligned = sent.startswith(pieces[0])
    for placeholder, after in zip(found, pieces[1:], strict=True):
        end = -1
        if aligned:
            last = not after and placeholder is found[-1]
            end = len(sent) if last else sent.find(after, at + 1) if after else at + 1
        aligned = aligned and end >= 0
        yield placeholder, sent[at:end] if aligned else None
        at = end + len(after)


def is_due(original: str | None) -> bool:
    """Whether it is planted or a part of what is planted, and hides no other word."""
    bare = fold(original or "")
    if len(bare) > 2 and any(bare in fold(value) for value in PLANTED.values()):
        return True
    words = {fold(word) for word in re.findall(r"[^\W_]+", original or "")}
    return bool(words) and words <= _PLANTED_WORDS


_PLANTED_WORDS = frozenset(
    fold(word) for value in PLANTED.values() for word in re.findall(r"[^\W_]+", value)
)


def match_requests(run: Run) -> list[tuple[Json, Json, int]]:
    """Matches requests of the main line at the tap with what reached the upstream, and the number of their step."""

    def measure(body: Json) -> tuple[int, int]:
        said = body.get("messages", body.get("input", ()))
        return (len(said) if isinstance(said, list) else 1), len(body.get("tools") or ())

    sent = [json.loads(each.raw) for each in run.sent if each.status == 200]
    pairs = []
    for each in run.reached:
        if each["step"] < 0:
            continue
        released = json.loads(each["raw"])
        same = [body for body in sent if measure(body) == measure(released)]
        if same or sent:
            original = (same or sent)[0]
            sent.remove(original)
            pairs.append((original, released, each["step"]))
    return pairs


def list_placeholders(sent: Json, released: Json) -> list[Hidden]:
    """Lists the placeholders of a request."""
    hidden = []
    for place, one, other in pair_texts(sent, released):
        if PLACEHOLDER.search(other):
            hidden += [
                Hidden(place, placeholder, original)
                for placeholder, original in list_hidden(one, other)
            ]
    known = {each.placeholder: each.original for each in hidden if each.original is not None}
    return [each._replace(original=each.original or known.get(each.placeholder)) for each in hidden]


def strip_marks(value: Any) -> Any:
    """Leaves out the marks of what a provider shall remember, which agents move from turn to turn."""
    if isinstance(value, dict):
        return {key: strip_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [strip_marks(inner) for inner in value] if isinstance(value, list) else value


def list_parts(body: Json) -> list[tuple[str, Any]]:
    """Lists the parts of a request in the order in which a provider reads them."""
    body = strip_marks(body)
    said = body.get("messages", body.get("input", ()))
    parts = [(name, body.get(name)) for name in ("tools", "system", "instructions")]
    return parts + [
        (str(at), item) for at, item in enumerate(said if isinstance(said, list) else ())
    ]


def count_changed(pairs: Sequence[tuple[Json, Json, int]]) -> tuple[int, int, int]:
    """Counts bytes of the turn before that come otherwise: by the gateway's doing, by the agent's; and all of them."""
    by_gateway = by_agent = whole = 0
    for (sent, released, _), (next_sent, next_released, _) in pairwise(pairs):
        one, other = dict(list_parts(sent)), dict(list_parts(next_sent))
        before, after = dict(list_parts(released)), dict(list_parts(next_released))
        for name in before:
            size = len(json.dumps(before[name], ensure_ascii=False).encode())
            whole += size
            if one.get(name) != other.get(name):
                by_agent += size
            elif before[name] != after.get(name):
                by_gateway += size
    return by_gateway, by_agent, whole


def measure_runs(direct: Run, through: Run) -> Iterator[tuple[str, float | str, str]]:
    """Each metric of an agent's two runs, its value and unit."""
    pairs = match_requests(through)
    hidden = [list_placeholders(sent, released) for sent, released, _ in pairs]
    undue = [[each for each in one if not is_due(each.original)] for one in hidden]
    by_gateway, by_agent, whole = count_changed(pairs)
    turns = [each for each in through.reached if each["step"] >= 0]
    spent = [each.processor for each in through.sent if each.status == 200]
    yield "turns", len(turns), "requests"
    yield "turns directly", sum(each["step"] >= 0 for each in direct.reached), "requests"
    yield "requests in all", len(through.reached), "requests"
    yield "requests refused", sum(400 <= each.status < 500 for each in through.sent), "requests"
    yield "requests failed", sum(each.status >= 500 for each in through.sent), "requests"
    yield "steps that could not copy", sum(bool(each["lost"]) for each in turns), "steps"
    yield "canaries upstream", count_canaries(through), "values"
    yield "canaries upstream directly", count_canaries(direct), "values"
    names = direct.files.keys() | through.files.keys()
    equal = sum(direct.files.get(name) == through.files.get(name) for name in names)
    yield "files", len(names), "files"
    yield "files equal", equal, "files"
    with tempfile.TemporaryDirectory() as folder:
        write_project(Path(folder))
        finish_project(Path(folder))
        meant = read_project(Path(folder))
    right = sum(direct.files.get(name) == meant[name] for name in meant)
    yield "files as the script means, directly", right, "files"
    yield "ended as directly", int(direct.code == through.code == 0), "runs"
    yield "bytes of the largest request", max((len(e["raw"]) for e in turns), default=0), "bytes"
    yield (
        "due placeholders, median",
        median([len(a) - len(b) for a, b in zip(hidden, undue, strict=True)] or [0]),
        "placeholders",
    )
    yield "undue placeholders, median", median(map(len, undue)) if undue else 0, "placeholders"
    yield "undue placeholders, most", max(map(len, undue), default=0), "placeholders"
    values = {each.placeholder for one in undue for each in one}
    yield "values hidden unduly", len(values), "values"
    last: Counter[str] = Counter(each.place or "other" for each in (undue[-1] if undue else ()))
    for place in ("system", "tools", "user", "assistant", "tool results", "other"):
        yield f"undue placeholders, last request, {place}", last[place], "placeholders"
    yield "prefix bytes changed", by_gateway, "bytes"
    yield "prefix bytes changed by the agent", by_agent, "bytes"
    yield "prefix bytes", whole, "bytes"
    yield "processor, first turn", max(spent[:2], default=0.0), "s"
    yield "processor, a later turn", median(spent[2:]) if spent[2:] else 0.0, "s"
    yield "processor, all turns", sum(spent), "s"
    yield "seconds more than directly", through.seconds - direct.seconds, "s"


def print_undue(through: Run) -> None:
    """Prints what is hidden without need, to mend detection; it is not kept."""
    found: Counter[tuple[str, str, str | None]] = Counter()
    for sent, released, _ in match_requests(through):
        for each in list_placeholders(sent, released):
            if not is_due(each.original):
                found[each.place, each.placeholder, each.original] += 1
    for (place, placeholder, original), count in found.most_common():
        print(f"  {count:4} {place or 'other':12} {placeholder:22} {original!r:.100}")


# ---- the lane --------------------------------------------------------------------------------------------------------


def main() -> None:
    """Runs the agents, prints and stores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="agents (default: all)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "agents")
    parser.add_argument("--gateway", default="", help="more options of the gateway, as one text")
    parser.add_argument("--undue", action="store_true", help="print what is hidden without need")
    parser.add_argument("--no-store", action="store_true", help="print only")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    shared = read_circumstances("httpx2", "starlette")
    if not options.inside:
        enter_empty_network()
    else:
        raise_loopback()
    closed = "a network with loopback only" if is_empty_network() else "proxies to a dead port"
    print(f"no way out: {closed}")
    FOLDER.mkdir(mode=0o700)
    try:
        for name in options.names or AGENTS:
            agent = AGENTS[name]
            version = read_version(agent, options.build)
            if version is None:
                print(f"{name}: is not installed, left out")
                continue
            direct = run_agent(agent, options.build, None)
            through = run_agent(agent, options.build, options.gateway.split())
            rows = [
                {
                    "what": f"agents, {name}, {metric}",
                    "agent": name,
                    "metric": metric,
                    "value": value,
                    "unit": unit,
                    "interface": agent.interface,
                    "version": version,
                    "closed": closed,
                    "gateway": options.gateway,
                    **shared,
                }
                for metric, value, unit in measure_runs(direct, through)
            ]
            print(f"{name} {version}: ended {direct.code} and {through.code}", flush=True)
            for row in rows:
                print(f"  {row['value']:10.6g} {row['metric']}")
            if options.undue:
                print_undue(through)
                print_refusals(through)
            if not options.no_store:
                rowfiles.keep(agents_page.ROWS, rows)
                report.write_documents()
    finally:
        shutil.rmtree(FOLDER)


def print_refusals(through: Run) -> None:
    """Prints why requests were refused or failed."""
    for each in through.sent:
        if each.status >= 400:
            reason = each.said.partition(b"\r\n\r\n")[2].decode("utf-8", "replace")
            print(f"  {each.status} {each.path}: {reason:.300}")


if __name__ == "__main__":
    main()
