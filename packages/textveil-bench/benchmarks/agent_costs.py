"""Measures what a coding agent's requests cost at the gateway: part of `make bench`.

In: a made-up agent, whose tools are described in the words of this project's documents; this project's files as what
its tools return; the server of `cost_upstream`. Out: rows for `run.py`, each with what it is to be compared with from
the same run (`beside`).
Not here: real agents (`agents`), and requests of other programs (`gateway`).

    python agent_costs.py --quick       # prints rows of a short run, and stores nothing
"""

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx2
from agents import count_changed, serve_gateway, warm  # the files beside this one
from cost_upstream import ECHO
from tests.gateway import agent_prompt

from gateway import CLIENTS, FAMILY, FEW, GIVEN, Beside, asked, prompts, used

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

Json = dict[str, Any]


class Size(NamedTuple):
    """How much is measured.

    Args:
        turns: of a conversation with tools.
        files: that a tool reads.
        prompts: new ones of one client.
        session: turns of the whole session.
        delay: seconds until the upstream answers in it.
        requests: after which the memory is read.
    """

    turns: int = 20
    files: int = 12
    prompts: int = 100
    session: int = 50
    delay: float = 2.0
    requests: Sequence[int] = (2_000, 10_000)


FULL = Size()
QUICK = Size(turns=5, files=3, prompts=10, session=6, delay=0.05, requests=(40, 100))
TOOLS, SYSTEM = 64_000, 16_000
"""Bytes of the tools, and of the session's system prompt."""
KEPT = 2
"""Turns at the beginning that do not count: what is new in them is the tools."""
SHORT, TOGETHER, KEYS = 15, 4, 100
"""Words of a short prompt; turns of a conversation of such; keys of clients."""
ASKED = (
    "Ingrid Aasheim (ingrid.aasheim@mail.example) writes that the totals are wrong since Monday. "
    "Please find out why."
)


# ---- what is sent ----------------------------------------------------------------------------------------------------


def read_paragraphs(*, plain: bool = True) -> list[str]:
    """Reads the paragraphs of the documents, without tables and code.

    Args:
        plain: leave out those that show an address or a placeholder.
    """
    whole = "\n\n".join(
        path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/*/*.md"))
    )
    parts = re.sub(r"```.*?```", "", whole, flags=re.DOTALL).split("\n\n")
    return [
        part.strip()
        for part in parts
        if re.match(r"[A-Z\-*]", part.strip())
        and not re.search(r"<|://|@" if plain else "<!--", part)
    ]


def make_tools(size: int, *, plain: bool = True) -> list[Json]:
    """Makes tools as Anthropic's API wants them, of so many bytes as JSON.

    Args:
        size: bytes.
        plain: nothing in them is to be hidden.
    """
    tools, paragraphs = list(agent_prompt.TOOLS), iter(read_paragraphs(plain=plain))
    while (missing := size - len(json.dumps(tools))) > 400:
        told = ""
        while len(told) < min(1500, missing - 400):
            told += f"{next(paragraphs)}\n\n"
        told = told[: missing - 300].strip()
        fields = {
            name: {"type": "string", "description": each}
            for name, each in (
                ("path", "absolute path of the page"),
                ("heading", "what it is below; the whole page if it is left out"),
            )
        }
        tools.append(
            {
                "name": f"mcp__pages__part_{len(tools)}",
                "description": told,
                "input_schema": {"type": "object", "properties": fields, "required": ["path"]},
            }
        )
    return tools


def list_sources(count: int) -> list[str]:
    """Reads so many of this project's source files of 2 to 20 kB, from all rooms."""
    found = sorted(
        path
        for path in (ROOT / "src" / "textveil").rglob("*.py")
        if 2_000 <= path.stat().st_size <= 20_000
    )
    return [path.read_text(encoding="utf-8") for path in found[:: len(found) // count][:count]]


def list_outputs(count: int) -> list[str]:
    """Writes so many texts as commands print them: listings, searches, logs of tests, counts of lines; 3 to 12 kB."""
    files = [path for room in ("src", "tests") for path in sorted((ROOT / room).rglob("*.py"))]
    printed = ["\n".join(write(files)) for write in (list_files, search, log_tests, count_lines)]
    made = []
    for number in range(count):
        text, part = printed[number % len(printed)], number // len(printed)
        start = len(text) * part // -(-count // len(printed))
        made.append(text[text.find("\n", start) + 1 :][: 3_000 * (1 + part % 4)])
    return made


def list_files(files: Sequence[Path]) -> Iterator[str]:
    """Lists files as `ls -l` does."""
    for path in files:
        size = path.stat().st_size
        minute = f"{size % 24:02}:{size % 60:02}"
        yield f"-rw-r--r-- 1 dev dev {size:8} Mar {1 + size % 28:2} {minute} {path.relative_to(ROOT)}"


def search(files: Sequence[Path]) -> Iterator[str]:
    """Searches for definitions as `grep -n` does."""
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.match(r"\s*(def|class) ", line):
                yield f"{path.relative_to(ROOT)}:{number}:{line}"


def log_tests(files: Sequence[Path]) -> Iterator[str]:
    """Logs tests as `pytest -v` does, all passed."""
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
        for at, name in enumerate(each for each in names if each.startswith("test_")):
            yield f"{path.relative_to(ROOT)}::{name} PASSED [{100 * at // len(names):3}%]"


def count_lines(files: Sequence[Path]) -> Iterator[str]:
    """Counts lines and bytes as `wc -lc` does."""
    for path in files:
        text = path.read_text(encoding="utf-8")
        yield f"{len(text.splitlines()):7} {len(text.encode()):7} {path.relative_to(ROOT)}"


def draw_prompts(count: int, length: int = SHORT) -> Iterator[str]:
    """Draws prompts of so many words from the documents, each with a person and an address of its own."""
    draw = random.Random(0)
    words = " ".join(read_paragraphs()).split()
    for number in range(count):
        at = draw.randrange(len(words) - length)
        given, family = draw.choice(GIVEN), draw.choice(FAMILY)
        text = " ".join(words[at : at + length])
        yield f"{text} Ask {given} {family}, {given.lower()}.{number}@mail.example, too."


# ---- interfaces ------------------------------------------------------------------------------------------------------


class Interface(NamedTuple):
    """An API.

    Args:
        path: behind the base URL.
        said: the field with the conversation.
        more: what every request has.
        tool: writes a tool, from Anthropic's form.
        read: from a whole answer, what goes into the conversation, and the call's identifier.
        result: writes what a call returned.
    """

    path: str
    said: str
    more: Json
    tool: Callable[[Json], Json]
    read: Callable[[Json], tuple[list[Json], str]]
    result: Callable[[str, str], Json]


def read_chat(answer: Json) -> tuple[list[Json], str]:
    """Reads an answer of chat completions."""
    message = answer["choices"][0]["message"]
    return [message], message["tool_calls"][0]["id"]


def read_message(answer: Json) -> tuple[list[Json], str]:
    """Reads an answer of Anthropic's messages."""
    return [{"role": "assistant", "content": answer["content"]}], answer["content"][-1]["id"]


def read_response(answer: Json) -> tuple[list[Json], str]:
    """Reads an answer of responses."""
    return answer["output"], answer["output"][-1]["call_id"]


def write_result(call: str, text: str) -> Json:
    """Writes a tool's result for Anthropic's messages."""
    result = {"type": "tool_result", "tool_use_id": call, "content": text}
    return {"role": "user", "content": [result]}


def write_function(tool: Json) -> Json:
    """Writes a tool as a function, as responses has it."""
    named = {name: tool[name] for name in ("name", "description")}
    return {"type": "function", **named, "parameters": tool["input_schema"], "strict": False}


INTERFACES = {
    "chat completions": Interface(
        "/chat/completions",
        "messages",
        {},
        lambda tool: {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["input_schema"],
            },
        },
        read_chat,
        lambda call, text: {"role": "tool", "tool_call_id": call, "content": text},
    ),
    "messages": Interface(
        "/messages", "messages", {"max_tokens": 32_000}, dict, read_message, write_result
    ),
    "responses": Interface(
        "/responses",
        "input",
        {"store": False},
        write_function,
        read_response,
        lambda call, text: {"type": "function_call_output", "call_id": call, "output": text},
    ),
}


# ---- servers ---------------------------------------------------------------------------------------------------------


@contextmanager
def serve_upstream(delay: float = 0.0, log: Path | None = None) -> Iterator[tuple[str, int]]:
    """Runs the upstream: its base URL and its process."""
    command = [
        sys.executable,
        str(HERE / "cost_upstream.py"),
        str(delay),
        *([str(log)] * bool(log)),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield f"http://127.0.0.1:{int(running.stdout.readline())}/v1", running.pid
        finally:
            running.terminate()


@contextmanager
def serve(options: Sequence[str] = ()) -> Iterator[Beside]:
    """Runs an upstream and a gateway before it that has loaded its models."""
    with serve_upstream() as (direct, upstream), serve_gateway(direct, options) as (url, pid):
        beside = Beside(direct, f"{url}/v1", pid, upstream)
        for prompt in prompts(FEW, 20, "first"):
            asked(beside.client, beside.through, prompt)
        yield beside


def ask(client: httpx2.Client, url: str, body: Json, **headers: str) -> tuple[Json, float]:
    """The answer to a request, and the seconds that it took."""
    start = time.perf_counter()
    answer = client.post(url, json=body, headers=headers)
    took = time.perf_counter() - start
    answer.raise_for_status()
    return answer.json(), took


def read_memory(pid: int) -> float:
    """Megabytes of memory that a process has."""
    (kilobytes,) = re.findall(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) / 1e3


# ---- measuring -------------------------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """What a turn took: seconds of the gateway's processor, until its answer, and until the upstream's."""

    processor: float
    through: float
    direct: float


def take_turns(beside: Beside, api: Interface, tools: Sequence[Json], count: int) -> list[Turn]:
    """Takes so many turns of a conversation, each by the gateway and directly."""
    said: list[Json] = [{"role": "user", "content": ASKED}]
    turns = []
    for number in range(count):
        body = {"model": "m", api.said: said, **api.more}
        body |= {"tools": [api.tool(tool) for tool in tools]} if tools else {}
        before = used(beside.pid)
        answer, through = ask(beside.client, beside.through + api.path, body)
        direct = ask(beside.client, beside.direct + api.path, body)[1]
        turns.append(Turn(used(beside.pid) - before, through, direct))
        more, call = api.read(answer)
        result = f"part {number} of {count}: nothing found in {3 * number + 7} lines"
        said = [*said, *more, api.result(call, result)]
    return turns


def measure_turns(size: Size) -> Iterator[Json]:
    """What a further turn costs with unchanged tools, and without tools."""
    for plain, shown in ((True, ""), (False, ", addresses and placeholders in them")):
        tools = make_tools(TOOLS, plain=plain)
        for name, api in INTERFACES.items():
            without, turns = [], []
            for taken, given in ((without, ()), (turns, tools)):
                with serve() as beside:
                    taken += take_turns(beside, api, given, size.turns)
            further = Turn(*map(median, zip(*turns[KEPT:], strict=True)))
            bare = median(turn.processor for turn in without[KEPT:])
            yield {
                "what": f"a further turn with {TOOLS // 1000} kB of unchanged tools{shown}, {name}",
                "unit": "ms of processor",
                "value": 1e3 * further.processor,
                "reach": 50,
                "beside": {
                    "without tools": f"{1e3 * bare:.0f} ms",
                    "first turn": f"{1e3 * turns[0].processor:.0f} ms",
                    "until the answer": f"{1e3 * further.through:.0f} ms, "
                    f"{1e3 * further.direct:.0f} ms from the upstream directly",
                },
                "turns": size.turns,
                "each": [1e3 * turn.processor for turn in turns],
            }


def measure_results(size: Size) -> Iterator[Json]:
    """What it costs to read files and what commands print, each once."""
    api = INTERFACES["messages"]
    begun = {"model": "m", **api.more, "messages": [{"role": "user", "content": ASKED}]}
    kinds = {
        "new source code": list_sources(size.files),
        "new output of commands": list_outputs(size.files),
    }
    with serve() as beside:
        places = (beside.through, beside.through, beside.direct)
        more, call = api.read(ask(beside.client, beside.through + api.path, begun)[0])
        for what, texts in kinds.items():
            kilobytes = [len(text.encode()) / 1e3 for text in texts]
            processor: list[list[float]] = []
            waited: list[list[float]] = []
            for text in texts:
                body = begun | {"messages": [*begun["messages"], *more, api.result(call, text)]}
                marks = [used(beside.pid)]
                waited.append([])
                for url in places:
                    waited[-1].append(ask(beside.client, url + api.path, body)[1])
                    marks.append(used(beside.pid))
                processor.append([end - start for start, end in pairwise(marks)])
            new, again, _ = (1e3 * sum(each) for each in zip(*processor, strict=True))
            through, _, direct = (1e3 * sum(each) for each in zip(*waited, strict=True))
            each_new = [
                1e3 * spent[0] / size for spent, size in zip(processor, kilobytes, strict=True)
            ]
            whole = sum(kilobytes)
            yield {
                "what": f"{what} in a tool's result",
                "unit": "ms of processor a kB",
                "value": new / whole,
                "reach": 35,
                "beside": {
                    "by text": f"{min(each_new):.0f} to {max(each_new):.0f}",
                    "the same again": f"{again / whole:.1f}",
                    "until the answer": f"{through / whole:.0f} ms a kB, "
                    f"{direct / whole:.1f} from the upstream directly",
                },
                "kilobytes": kilobytes,
                "each": each_new,
            }


def measure_prompts(size: Size) -> Iterator[Json]:
    """What new prompts cost, of one client and of many."""
    with serve() as beside:
        one = beside.added("", FEW, prompts(FEW, size.prompts, "new"))
        other = beside.added("", FEW, list(draw_prompts(size.prompts, FEW - 5)))
        many = beside.crowd()
    yield {
        "what": f"a new prompt of {FEW} words",
        "unit": "ms of processor",
        "value": one["processor_median"],
        "reach": 25,
        "beside": {
            "from this documentation": f"{other['processor_median']:.0f} ms",
            "until the answer": f"{one['through']:.0f} ms, "
            f"{one['direct']:.0f} ms from the upstream directly",
        },
        "requests": one["requests"],
    }
    yield {
        "what": f"{CLIENTS} clients at once, new prompts of {FEW} words",
        "unit": "requests/s",
        "value": many["value"],
        "reach": 38,
        "beside": {
            "processors of the gateway": f"{many['cores']:.2f}",
            "a request": f"{many['processor']:.0f} ms of the gateway's processor, "
            f"{many['upstream']:.1f} of the upstream's, {many['client']:.1f} of the clients'",
            "upstream directly": f"{many['direct']:,.0f} requests/s",
        },
        "requests": many["requests"],
    }


# ---- a whole session -------------------------------------------------------------------------------------------------


def begin_session() -> Json:
    """Makes the first request of a session in the form of Claude Code's."""
    system = "\n\n".join([agent_prompt.SYSTEM, *read_paragraphs()[::-1]])[:SYSTEM]
    system += "\n\nGit user: Ada Weber <ada.weber@mail.example>"
    kept = {"cache_control": {"type": "ephemeral"}}
    reminder = (
        "<system-reminder>\nThe list of steps is empty. Do not tell the user.\n</system-reminder>"
    )
    return {
        "model": "marlowe-large-4-2",
        "max_tokens": 32_000,
        "stream": True,
        "metadata": {"user_id": "user_0_account__session_0"},
        "system": [
            {"type": "text", "text": "You are Marlowe Code.", **kept},
            {"type": "text", "text": system, **kept},
        ],
        "tools": make_tools(TOOLS),
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": text} for text in (reminder, ASKED)],
            }
        ],
    }


def list_results(count: int) -> list[str]:
    """Takes pieces of 1 to 4 kB from files and outputs, by turns, as results of so many calls."""
    draw = random.Random(0)
    texts = [each for pair in zip(list_sources(60), list_outputs(60), strict=True) for each in pair]
    return [text[: draw.randrange(1_000, 4_000)] for text in texts[:count]]


def read_stream(pieces: Iterator[str]) -> Json:
    """Reads the message out of the lines of a stream of Anthropic's messages."""
    blocks: list[Json] = []
    written = ""
    for line in pieces:
        if not line.startswith("data: "):
            continue
        event = json.loads(line.removeprefix("data: "))
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
            written = ""
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            written += delta.get("text") or delta.get("partial_json", "")
        elif event["type"] == "content_block_stop":
            tool = blocks[-1]["type"] == "tool_use"
            blocks[-1] |= {"input": json.loads(written)} if tool else {"text": written}
    return {"content": blocks}


def run_session(
    url: str, results: Sequence[str], pid: int | None = None
) -> tuple[list[Json], list[float], float]:
    """Runs a session: its requests, seconds of the gateway's processor for each, and seconds in all."""
    body, api = begin_session(), INTERFACES["messages"]
    sent: list[Json] = []
    start = time.perf_counter()
    with httpx2.Client(trust_env=False, timeout=120) as client:
        marks = [used(pid) if pid else 0.0]
        for result in results:
            said = body["messages"]
            *before, last = said[-1]["content"]
            marked = {**last, "cache_control": {"type": "ephemeral"}}  # agents move it along
            request = body | {
                "messages": [*said[:-1], {"role": "user", "content": [*before, marked]}]
            }
            with client.stream("POST", url + api.path, json=request) as answer:
                answer.raise_for_status()
                more, call = api.read(read_stream(answer.iter_lines()))
            marks.append(used(pid) if pid else 0.0)
            sent.append(request)
            body = body | {"messages": [*said, *more, api.result(call, result)]}
    took = time.perf_counter() - start
    return sent, [end - begin for begin, end in pairwise(marks)], took


def measure_session(size: Size) -> Iterator[Json]:
    """What a whole session takes by the gateway over one without."""
    results = list_results(size.session)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with serve_upstream(size.delay, log) as (upstream, _):
            direct = run_session(upstream, results)[2]
            with serve_gateway(upstream, ()) as (url, pid):
                warm(url)
                log.unlink()
                sent, spent, through = run_session(f"{url}/v1", results, pid)
        released = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    pairs = [(*pair, 0) for pair in zip(sent, released, strict=True)]
    changed, _, whole = count_changed(pairs)
    kilobytes = sum(len(result.encode()) for result in results) / 1e3
    shared = {"turns": size.session, "delay": size.delay}
    yield {
        "what": f"a session of {size.session} turns, upstream answers after {size.delay:g} s",
        "unit": "times as long",
        "value": through / direct,
        "reach": 1.1,
        "beside": {
            "seconds": f"{through:.1f}, {direct:.1f} without the gateway",
            "processor": f"{spent[0]:.1f} s in the first turn, {median(spent[1:]):.2f} s in a later one",
            "sent": f"{len(json.dumps(sent[0])) / 1e3:.0f} kB at first, "
            f"{len(json.dumps(sent[-1])) / 1e3:.0f} kB at last, of which results of tools {kilobytes:.0f} kB",
        },
        **shared,
    }
    yield {
        "what": "bytes of the session that change from turn to turn",
        "unit": "bytes",
        "value": changed,
        "reach": 0,
        "beside": {"kept bytes, all turns": f"{whole:,}"},
        **shared,
    }


# ---- memory ----------------------------------------------------------------------------------------------------------


def measure_memory(size: Size) -> Iterator[Json]:
    """How the gateway's memory grows over many conversations, with two bounds of what it keeps."""
    for options, named in (
        (("--memory", "64"), "`--memory 64`"),
        ((), "`--memory 256`, the default"),
    ):
        with serve(options) as beside:
            read = {0: read_memory(beside.pid)}
            said: list[Json] = []
            for number, prompt in enumerate(draw_prompts(size.requests[-1]), 1):
                said.append({"role": "user", "content": prompt})
                body = {"model": ECHO, "messages": said}
                key = f"Bearer client-{number // TOGETHER % KEYS}"
                answer = ask(
                    beside.client, beside.through + "/chat/completions", body, Authorization=key
                )[0]
                said.append(answer["choices"][0]["message"])
                if number % TOGETHER == 0:
                    said = []
                if number in size.requests:
                    read[number] = read_memory(beside.pid)
        first, *_, last = read
        yield {
            "what": f"memory after {last:,} requests, {named}",
            "unit": "MB more",
            "value": read[last] - read[first],
            "beside": {
                "at first": f"{read[first]:.0f} MB",
                **{
                    f"after {number:,}": f"{read[number]:.0f} MB ({read[number] - read[first]:+.0f})"
                    for number in size.requests
                },
            },
            "options": list(options),
            "megabytes": list(read.values()),
        }


# ---- all -------------------------------------------------------------------------------------------------------------


PARTS: dict[str, Callable[[Size], Iterator[Json]]] = {
    "turns": measure_turns,
    "results": measure_results,
    "prompts": measure_prompts,
    "session": measure_session,
    "memory": measure_memory,
}


def measurements(size: Size = FULL, only: Sequence[str] = ()) -> Iterator[Json]:
    """Measures each part, with a new gateway for each."""
    for name in only or PARTS:
        for row in PARTS[name](size):
            yield {
                "options": [],
                **row,
                "what": f"costs, {row['what']}",
                "beside": [*row["beside"].items()],
                "load": os.getloadavg()[0],
            }


def main() -> None:
    """Prints rows, and stores none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", choices=[[], *PARTS], help="parts (default: all)")
    parser.add_argument("--quick", action="store_true", help="a short run, to see that it works")
    parser.add_argument("--delay", type=float, help="seconds until the session's upstream answers")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    if options.delay is not None:
        size = size._replace(delay=options.delay)
    for row in measurements(size, options.only):
        beside = "; ".join(f"{name}: {value}" for name, value in row["beside"])
        reach = f", reach {row['reach']:g}" if "reach" in row else ""
        print(f"{row['value']:10.4g} {row['unit']}{reach}  {row['what']}  ({beside})", flush=True)


if __name__ == "__main__":
    main()
