"""A model's server that plays `agent_script`, in a process of its own, and keeps every byte that it is asked.

In: requests of OpenAI's chat completions and responses, and Anthropic's messages, whole or streamed; how an agent calls
its tools. Out: the next step of the script as a call of these tools; a log with all requests.
Not here: what the script does (`agent_script`).

    python agent_upstream.py DIALECT LOG FOLDER
"""

import base64
import json
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent_script import STEPS, Action, Lost, View, say_again  # the file beside this one

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.gateway.servers import Asked, lines, serving_upstream

PIECE = 7
"""Characters of a piece of a stream: placeholders are cut."""

Json = dict[str, Any]


class Call(NamedTuple):
    """A call of a tool; `raw` where it takes a text and no JSON."""

    tool: str
    arguments: Json
    raw: str | None = None


class Question(NamedTuple):
    """What a request asks.

    Args:
        view: what users and tools said.
        done: how many steps are done, by the identifiers of calls, or by the number that the user says.
        tools: names of the tools that it offers.
    """

    view: View
    done: int
    tools: frozenset[str]


# ---- how agents call their tools -------------------------------------------------------------------------------------


def call_claude(action: Action, tools: frozenset[str], folder: str) -> Call:
    """Calls the tools of Claude Code."""
    return {
        "run": Call("Bash", {"command": action.new, "description": "Runs it"}),
        "read": Call("Read", {"file_path": f"{folder}/{action.path}"}),
        "edit": Call(
            "Edit",
            {
                "file_path": f"{folder}/{action.path}",
                "old_string": action.old,
                "new_string": action.new,
            },
        ),
        "write": Call("Write", {"file_path": f"{folder}/{action.path}", "content": action.new}),
    }[action.kind]


def call_opencode(action: Action, tools: frozenset[str], folder: str) -> Call:
    """Calls the tools of opencode."""
    return {
        "run": Call("bash", {"command": action.new, "description": "Runs it"}),
        "read": Call("read", {"filePath": f"{folder}/{action.path}"}),
        "edit": Call(
            "edit",
            {
                "filePath": f"{folder}/{action.path}",
                "oldString": action.old,
                "newString": action.new,
            },
        ),
        "write": Call("write", {"filePath": f"{folder}/{action.path}", "content": action.new}),
    }[action.kind]


def call_codex(action: Action, tools: frozenset[str], folder: str) -> Call:
    """Calls the tool of Codex that runs JavaScript, or its shell and its tool for patches."""
    if action.kind in ("edit", "write"):
        if action.kind == "edit":
            change = [f"*** Update File: {action.path}", "@@"]
            change += [f"-{line}" for line in action.old.split("\n")]
        else:
            change = [f"*** Add File: {action.path}"]
        change += [f"+{line}" for line in action.new.removesuffix("\n").split("\n")]
        patch = "\n".join(["*** Begin Patch", *change, "*** End Patch"]) + "\n"
        if "exec" in tools:
            return Call(
                "exec",
                {},
                f"text(await tools.apply_patch({json.dumps(patch, ensure_ascii=False)}));\n",
            )
        if "apply_patch" in tools:
            return Call("apply_patch", {}, patch)
        command = f"apply_patch <<'END'\n{patch}END\n"
    else:
        command = action.new if action.kind == "run" else f"cat -- {shlex.quote(action.path)}"
    if "exec" in tools:
        asked = json.dumps({"cmd": command}, ensure_ascii=False)
        return Call("exec", {}, f"text((await tools.exec_command({asked})).output);\n")
    if "exec_command" in tools:
        return Call("exec_command", {"cmd": command})
    if "shell_command" in tools:
        return Call("shell_command", {"command": command})
    return Call("shell", {"command": ["bash", "-c", command]})


def call_plain(action: Action, tools: frozenset[str], folder: str) -> Call:
    """Calls the tools of the small agents beside this file."""
    return {
        "run": Call("run_command", {"command": action.new}),
        "read": Call("read_file", {"path": action.path}),
        "edit": Call("edit_file", {"path": action.path, "old": action.old, "new": action.new}),
        "write": Call("write_file", {"path": action.path, "content": action.new}),
    }[action.kind]


def write_blocks(action: Action) -> str:
    """Writes an action in the text of an answer, as aider reads it."""
    if action.kind in ("edit", "write"):
        old = f"{action.old}\n" if action.old else ""
        new = action.new.removesuffix("\n")
        return (
            f"{action.text}\n\n{action.path}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}\n"
            ">>>>>>> REPLACE\n```\n"
        )
    return f"{action.text} {action.path or action.new}".strip() + "\n"


DIALECTS: dict[str, Callable[[Action, frozenset[str], str], Call] | None] = {
    "claude": call_claude,
    "codex": call_codex,
    "opencode": call_opencode,
    "plain": call_plain,
    "aider": None,
}


# ---- reading requests ------------------------------------------------------------------------------------------------

_STEP = re.compile(r"_step(\d+)")
_SAID = re.compile(r"Step (\d+): go on\.")


def list_texts(content: Any) -> Iterator[str]:
    """Lists the texts of a message's content."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from list_texts(part.get("text") or part.get("content") or part.get("output"))


def unwrap(text: str) -> str:
    """Takes what a tool printed out of the JSON in which some agents put it."""
    try:
        inner = json.loads(text)
    except ValueError:
        return text
    if isinstance(inner, dict) and isinstance(inner.get("output"), str):
        return str(inner["output"])
    return inner if isinstance(inner, str) else text


def read_question(path: str, body: Json) -> Question:
    """Reads what a request of any of the three interfaces asks."""
    texts: list[str] = []
    steps = [0]
    said = body.get("messages", body.get("input", []))
    for item in [{"role": "user", "content": said}] if isinstance(said, str) else said:
        role, kind = item.get("role"), item.get("type")
        content = item.get("output") if str(kind).endswith("call_output") else item.get("content")
        if role in ("user", "tool") or str(kind).endswith("call_output"):
            texts += ["\n".join(map(unwrap, list_texts(content)))]
            typed = _SAID.match(texts[-1])
            steps += [int(typed[1]) - 1] if typed else []
        # The step is in the identifiers of calls, which come back with their results.
        found = [item.get("tool_call_id"), item.get("call_id")]
        found += [
            part.get("tool_use_id")
            for part in (content if isinstance(content, list) else ())
            if isinstance(part, dict)
        ]
        steps += [int(match[1]) for each in found if (match := _STEP.search(str(each or "")))]
    offered = list(body.get("tools") or ())
    for item in said if isinstance(said, list) else ():
        if item.get("type") == "additional_tools":
            offered += item.get("tools") or ()
    offered += [inner for tool in offered for inner in tool.get("tools") or ()]
    tools = frozenset(
        str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))
        for tool in offered
    )
    return Question(View(texts), max(steps), tools)


# ---- writing answers -------------------------------------------------------------------------------------------------


def cut(text: str) -> list[str]:
    """Cuts a text into the pieces of a stream."""
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def answer_chat(text: str, call: Call | None, name: str, stream: bool) -> Any:
    """Writes an answer of chat completions."""
    head = {"id": f"chatcmpl-{name}", "created": 1, "model": "scripted"}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    finish = "tool_calls" if call else "stop"
    made = []
    if call:
        function = {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
        made = [{"id": f"call_{name}", "type": "function", "function": function}]
    if not stream:
        message: Json = {"role": "assistant", "content": text}
        if made:
            message["tool_calls"] = made
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in cut(text)]
    for each in made:
        first = {**each, "function": {"name": each["function"]["name"], "arguments": ""}}
        deltas += [{"tool_calls": [{"index": 0, **first}]}]
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
            for piece in cut(each["function"]["arguments"])
        ]
    chunks = [
        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
        for delta in deltas
    ]
    end = {"index": 0, "delta": {}, "finish_reason": finish}
    chunks += [{**head, "object": "chat.completion.chunk", "choices": [end], "usage": usage}]
    return lines(*chunks, "[DONE]")


def write_events(events: Sequence[Json]) -> list[bytes]:
    """Writes events with their names, as responses and messages have them."""
    return [
        f"event: {each['type']}\ndata: {json.dumps(each, ensure_ascii=False)}\n\n".encode()
        for each in events
    ]


def answer_messages(text: str, call: Call | None, name: str, stream: bool) -> Any:
    """Writes an answer of Anthropic's messages."""
    usage = {"input_tokens": 10, "output_tokens": 10}
    blocks: list[Json] = [{"type": "text", "text": text}]
    if call:
        blocks += [
            {"type": "tool_use", "id": f"toolu_{name}", "name": call.tool, "input": call.arguments}
        ]
    head = {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "stop_sequence": None,
        "usage": usage,
    }
    reason = "tool_use" if call else "end_turn"
    if not stream:
        return {**head, "content": blocks, "stop_reason": reason}
    events: list[Json] = [
        {"type": "message_start", "message": {**head, "content": [], "stop_reason": None}}
    ]
    for at, block in enumerate(blocks):
        if block["type"] == "text":
            empty: Json = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in cut(block["text"])]
        else:
            empty = {**block, "input": {}}
            written = json.dumps(block["input"], ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": each} for each in cut(written)]
        events += [{"type": "content_block_start", "index": at, "content_block": empty}]
        events += [{"type": "content_block_delta", "index": at, "delta": each} for each in deltas]
        events += [{"type": "content_block_stop", "index": at}]
    delta = {"stop_reason": reason, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}}]
    return write_events([*events, {"type": "message_stop"}])


def answer_responses(text: str, call: Call | None, name: str, stream: bool) -> Any:
    """Writes an answer of responses."""
    part = {"type": "output_text", "text": text, "annotations": []}
    items: list[Json] = [
        {
            "type": "message",
            "id": f"msg_{name}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    ]
    if call:
        item = {"id": f"fc_{name}", "call_id": f"call_{name}", "name": call.tool}
        if call.raw is None:
            written = json.dumps(call.arguments, ensure_ascii=False)
            item |= {"type": "function_call", "arguments": written, "status": "completed"}
        else:
            item |= {"type": "custom_tool_call", "input": call.raw, "status": "completed"}
        items += [item]
    response: Json = {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 1,
        "model": "scripted",
        "status": "completed",
        "output": items,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 20,
        },
    }
    if not stream:
        return response
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [{"type": "response.created", "response": begun}]
    for at, item in enumerate(items):
        place: Json = {"output_index": at, "item_id": item["id"]}
        field = {"message": "content", "function_call": "arguments"}.get(item["type"], "input")
        empty = {**item, field: [] if field == "content" else "", "status": "in_progress"}
        events += [{"type": "response.output_item.added", "output_index": at, "item": empty}]
        if field == "content":
            inside = {**place, "content_index": 0}
            events += [
                {
                    "type": "response.content_part.added",
                    **inside,
                    "part": {**part, "text": ""},
                }
            ]
            events += [
                {"type": "response.output_text.delta", **inside, "delta": piece, "logprobs": []}
                for piece in cut(text)
            ]
            events += [
                {"type": "response.output_text.done", **inside, "text": text, "logprobs": []},
                {"type": "response.content_part.done", **inside, "part": part},
            ]
        else:
            kind = f"response.{item['type']}_{field}"
            events += [
                {"type": f"{kind}.delta", **place, "delta": each} for each in cut(item[field])
            ]
            events += [{"type": f"{kind}.done", **place, field: item[field]}]
        events += [{"type": "response.output_item.done", "output_index": at, "item": item}]
    events += [{"type": "response.completed", "response": response}]
    return write_events([{**each, "sequence_number": at} for at, each in enumerate(events)])


INTERFACES = {
    "/chat/completions": answer_chat,
    "/messages": answer_messages,
    "/responses": answer_responses,
}


class Model:
    """Answers requests as the script says, and logs them.

    Args:
        dialect: how the agent calls its tools.
        log: a file; each request is a line of it.
        folder: of the project; agents tell it their model.
    """

    def __init__(self, dialect: str, log: Path, folder: str = ".") -> None:
        self.call, self.log, self.folder = DIALECTS[dialect], log, folder
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> Any:
        """The answer to a request."""
        path = asked.path.partition("?")[0]
        answering = next((INTERFACES[end] for end in INTERFACES if path.endswith(end)), None)
        step, lost, answer = -1, "", None
        if answering is None:
            answer = {"object": "list", "data": [], "input_tokens": 1000}
        else:
            body = asked.body
            step, lost, answer = self.answer(path, body, answering)
        line = {
            "step": step,
            "lost": lost,
            "path": asked.path,
            "headers": asked.headers,
            "raw": base64.b64encode(asked.raw).decode(),
        }
        with self._lock, self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return answer

    def answer(self, path: str, body: Json, answering: Callable[..., Any]) -> tuple[int, str, Any]:
        """The number of the step, what it lacks, and the answer."""
        question = read_question(path, body)
        stream = bool(body.get("stream"))
        typed = question.view.texts and _SAID.match(question.view.texts[-1])
        if not (question.tools if self.call else typed):
            # A title of the session, or the like.
            return -1, "", answering("Rota", None, "aside", stream)
        step = question.done
        name, lost = f"step{step + 1:02d}", ""
        try:
            action = (*STEPS, say_again)[min(step, len(STEPS))](question.view)
        except Lost as missing:
            lost = str(missing)
            action = Action(
                "say" if step == len(STEPS) - 1 else "run", "I cannot find it.", new="true"
            )
        if self.call is None:
            return step, lost, answering(write_blocks(action), None, name, stream)
        call = None if action.kind == "say" else self.call(action, question.tools, self.folder)
        return step, lost, answering(action.text, call, name, stream)


def main(dialect: str, log: str, folder: str) -> None:
    """Serves until it is ended, and prints its port."""
    with serving_upstream(Model(dialect, Path(log), folder)) as upstream:
        print(upstream.server_port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
