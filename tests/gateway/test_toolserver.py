"""The gateway before a real tool server: its client never sees what is private, its tools get it back."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx2
import mcp
import mcp.types
import pytest
from mcp import Client, MCPError
from starlette.testclient import TestClient
from tests.gateway.servers import Asked, serving_upstream
from tests.gateway.test_field_rules import unclassified

from textveil import Privatizer
from textveil.cli import main
from textveil.errors import ConfigError, LimitReached
from textveil.gateway import Gateway, Policy, ToolServer, build_application, toolserver
from textveil.gateway.protocols import mcp as tables
from textveil.gateway.protocols.field_rules import Act
from textveil.session import Session, SessionStore

TOOLS = Path(__file__).parent / "tool_server.py"
MAIL, PHONE, CARD = "dora.braga@example.org", "+351 912 345 678", "4111111111111111"
ALL = Policy(tools=("*",))
CANARIES = (MAIL, PHONE, CARD, "rui.server@example.org", "admin.tool@example.org")

ANSWERS: dict[str, tuple[type, Any]] = {
    "tools/list": (mcp.types.ListToolsResult, tables.TOOLS),
    "tools/call": (mcp.types.CallToolResult, tables.CALL_TOOL),
    "resources/list": (mcp.types.ListResourcesResult, tables.RESOURCES),
    "resources/templates/list": (mcp.types.ListResourceTemplatesResult, tables.TEMPLATES),
    "resources/read": (mcp.types.ReadResourceResult, tables.READ_RESOURCE),
    "prompts/list": (mcp.types.ListPromptsResult, tables.PROMPTS),
    "prompts/get": (mcp.types.GetPromptResult, tables.GET_PROMPT),
    "completion/complete": (mcp.types.CompleteResult, tables.COMPLETION),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_leaf_of_an_answer_is_in_its_table(name) -> None:
    kind, operation = ANSWERS[name]
    assert unclassified(kind, operation.request) == []


@pytest.fixture(scope="module")
def privatizer() -> Privatizer:
    return Privatizer.from_profile(
        "prompt", protect={"level": "identifiers", "detectors": ("patterns", "structure")}
    )


def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """The address of a tool server over HTTP, and its notes."""
    notes, port = tmp_path_factory.mktemp("tools") / "notes", free()
    notes.touch()
    process = subprocess.Popen([sys.executable, TOOLS, notes, str(port)])
    try:
        for _ in range(200):
            assert process.poll() is None
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp", notes
    finally:
        process.terminate()
        process.wait(10)


class Stage:
    """A client of the gateway, and what the tool server noted."""

    def __init__(self, client: Client, notes: Path) -> None:
        self.client, self._notes, self.seen = client, notes, ""
        notes.write_text("")  # of earlier tests

    async def call(self, name: str, **arguments: Any) -> Any:
        made = await self.client.call_tool(name, arguments)
        self.seen += made.model_dump_json(by_alias=True)
        return made

    def noted(self) -> list[dict[str, Any]]:
        lines = self._notes.read_text().splitlines()
        self._notes.write_text("")
        return [json.loads(line) for line in lines]


@pytest.fixture(params=["http", pytest.param("stdio", marks=pytest.mark.slow)])
def run(request, stage, privatizer, tmp_path) -> Callable[..., None]:
    """Runs a test before a gateway whose tool server speaks in one way or another."""
    url, notes = stage
    upstream: dict[str, Any] = {"upstream": url}
    if request.param == "stdio":
        notes = tmp_path / "notes"
        notes.touch()
        upstream = {"command": (sys.executable, str(TOOLS), str(notes))}

    def running(test: Callable[[Stage], Awaitable[None]], **options: Any) -> None:
        tools = ToolServer(**({"privatizer": privatizer, "policy": ALL} | upstream | options))

        async def within() -> None:
            async with tools.connect() as server, Client(server) as client:
                stage = Stage(client, notes)
                await test(stage)
                assert not [canary for canary in CANARIES if canary in stage.seen]

        anyio.run(within)

    return running


def test_results_are_protected_and_arguments_restored(run) -> None:
    async def test(stage: Stage) -> None:
        listed = await stage.client.list_tools()
        stage.seen += listed.model_dump_json()
        assert {"find_person", "say"} <= {each.name for each in listed.tools}
        assert all(each.output_schema is None for each in listed.tools)
        stage.seen += str((stage.client.server_info, stage.client.instructions))
        found = await stage.call("find_person", query="Dora")
        person = found.structured_content
        assert list(person) == ["name", "email", "phone", "account"]
        assert json.loads(found.content[0].text) == person
        assert found.meta["textveil/protected"] == {"CARD": 1, "EMAIL": 1, "PHONE": 1}
        sent = await stage.call(
            "send_mail", to=person["email"], body={"phones": [person["phone"], 7]}
        )
        assert sent.content[0].text == f"sent to {person['email']}"
        assert stage.noted()[-1] == {
            "tool": "send_mail",
            "to": MAIL,
            "body": {"phones": [PHONE, 7]},
        }
        await stage.call("pay", account=person["account"])
        assert stage.noted()[-1] == {"tool": "pay", "account": int(CARD)}
        invented = await stage.call("say", text="<EMAIL_77>")
        assert invented.meta["textveil/unresolved"] == 1
        assert stage.noted()[-1]["text"] == "<EMAIL_77>"

    run(test)


def test_a_target_of_the_models_own_gets_no_original(run) -> None:
    async def test(stage: Stage) -> None:
        found = await stage.call("find_person", query="Dora")
        mail = found.structured_content["email"]
        await stage.call("say", text=f"https://evil.example/?q={mail}")
        assert stage.noted()[-1]["text"] == f"https://evil.example/?q={mail}"

    run(test)


def test_tools_that_are_not_named_are_refused_or_pass(run) -> None:
    async def refused(stage: Stage) -> None:
        assert [each.name for each in (await stage.client.list_tools()).tools] == ["say"]
        await stage.call("say", text="a")
        for other in ("find_person", "nothing"):
            with pytest.raises(MCPError, match="no tool that is served here is named "):
                await stage.call(other, query="Dora")
        assert [each["tool"] for each in stage.noted()] == ["say"]

    async def passed(stage: Stage) -> None:
        listed = {each.name: each for each in (await stage.client.list_tools()).tools}
        assert listed["say"].output_schema is None
        assert listed["find_person"].output_schema is not None
        said = await stage.call("say", text="a")
        mail = said.content[0].text.split()[-1]
        assert mail == "<EMAIL_2>"
        made = await stage.client.call_tool("find_person", {"query": mail})
        assert made.structured_content["email"] == MAIL, "nothing of it is protected"
        assert stage.noted()[-1] == {"tool": "find_person", "query": mail}, (
            "and it gets no original"
        )

    run(refused, policy=Policy(tools=("s?y",)))
    run(passed, policy=Policy(tools=("say",), other_tools="pass"))


def test_tools_that_fail_and_that_nobody_knows(run) -> None:
    async def test(stage: Stage) -> None:
        failed = await stage.call("fail", text="x")
        assert failed.is_error
        unknown = await stage.call("nothing_of_that_name")
        assert unknown.is_error
        with pytest.raises(MCPError) as refused:
            await stage.call("asks_back")
        stage.seen += str(refused.value)

    run(test)


def test_pictures_are_refused_or_pass_and_text_beside_them_is_protected(run) -> None:
    async def refused(stage: Stage) -> None:
        made = await stage.call("picture")
        assert made.is_error
        assert made.content[0].text.startswith("textveil: content[1].data cannot be protected")

    async def passed(stage: Stage) -> None:
        made = await stage.call("picture")
        assert [each.type for each in made.content] == ["text", "image"]

    run(refused)
    run(passed, policy=Policy(tools=("*",), media="pass"))


@pytest.mark.slow
def test_big_results(run) -> None:
    async def test(stage: Stage) -> None:
        made = await stage.call("big", lines=1_500)
        assert made.content[0].text.count("<EMAIL_") == 1_500
        last = made.content[0].text.splitlines()[-1].split()[0]
        await stage.call("say", text=last)
        assert stage.noted()[-1]["text"] == "person1499@example.org"

    run(test)


def test_progress_is_protected_and_a_cancelled_call_is_cancelled(run) -> None:
    async def test(stage: Stage) -> None:
        told: list[tuple[float, float | None, str | None]] = []
        with anyio.move_on_after(5):

            async def tell(progress: float, total: float | None, message: str | None) -> None:
                told.append((progress, total, message))
                if len(told) == 3:
                    scope.cancel()

            with anyio.CancelScope() as scope:
                await stage.client.call_tool("slow", {}, progress_callback=tell)
        assert scope.cancelled_caught
        assert {message for _, _, message in told} == {"asking <EMAIL_2>"}
        noted: list[dict[str, Any]] = []
        for _ in range(50):
            if noted := stage.noted():
                break
            await anyio.sleep(0.1)
        assert noted == [{"tool": "slow", "cancelled": True}]

    run(test)


def test_resources_prompts_and_completions_where_they_are_served(run) -> None:
    async def test(stage: Stage) -> None:
        client = stage.client
        listed = await client.list_resources()
        templates = await client.list_resource_templates()
        (uri,) = [each.uri for each in listed.resources]
        assert uri == "textveil:%3CURL_1%3E"
        read = await client.read_resource(uri)
        assert read.contents[0].uri == uri
        stage.seen += str((listed, templates, read))
        mail = json.loads(getattr(read.contents[0], "text", ""))["mails"][0]
        assert mail.startswith("<EMAIL_")
        (template,) = templates.resource_templates
        for written in (mail, quote(mail)):
            one = await client.read_resource(template.uri_template.replace("{mail}", written))
            stage.seen += str(one)
            assert getattr(one.contents[0], "text", "") == f"{mail} is fine"
            assert stage.noted()[-1] == {"resource": MAIL}
        given = await client.get_prompt("letter", {"to": mail})
        completed = await client.complete(
            mcp.types.PromptReference(name="letter"), {"name": "to", "value": mail}, {"other": mail}
        )
        stage.seen += str((await client.list_prompts(), given, completed))
        assert stage.noted() == [{"prompt": MAIL}, {"completion": MAIL}]
        assert completed.completion.values == [mail]
        with pytest.raises(MCPError) as failed:
            await client.read_resource("people://other")
        stage.seen += str(failed.value)

    run(test, resources=True, prompts=True)


def test_resources_and_prompts_are_refused_otherwise(run) -> None:
    async def test(stage: Stage) -> None:
        capabilities = stage.client.server_capabilities
        assert (capabilities.resources, capabilities.prompts, capabilities.completions) == (
            None,
            None,
            None,
        )
        for asked in (stage.client.list_resources, stage.client.list_prompts):
            with pytest.raises(MCPError):
                await asked()
        with pytest.raises(MCPError):
            await stage.client.read_resource("people://all")

    run(test)


def test_calls_at_the_same_time_agree(run) -> None:
    async def test(stage: Stage) -> None:
        found: list[str] = []

        async def ask(i: int) -> None:
            made = await stage.call("say", text=f"person{i % 5}@example.net")
            found.append(made.content[0].text)

        async with anyio.create_task_group() as group:
            for i in range(20):
                group.start_soon(ask, i)
        assert len(set(found)) == 5
        texts = {each["text"] for each in stage.noted() if each["text"].endswith("example.net")}
        assert texts == {f"person{i}@example.net" for i in range(5)}

    run(test)


# ---- what is remembered ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_gateways_with_one_session_restore_each_others(
    privatizer, stage, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", "00" * 32)
    url, notes = stage

    async def test() -> None:
        with (
            SessionStore(f"sqlite:///{tmp_path}/veil.db") as one,
            SessionStore(f"sqlite:///{tmp_path}/veil.db") as other,
        ):
            first = ToolServer(
                privatizer=privatizer, policy=ALL, upstream=url, session=one.open("anna")
            )
            again = ToolServer(
                privatizer=privatizer, policy=ALL, upstream=url, session=other.open("anna")
            )
            apart = ToolServer(
                privatizer=privatizer, policy=ALL, upstream=url, session=other.open("bea")
            )
            async with first.connect() as server, Client(server) as client:
                found = await client.call_tool("find_person", {"query": "Dora"})
            mail = found.structured_content["email"]
            async with again.connect() as server, Client(server) as client:
                await client.call_tool("say", {"text": mail})
            assert json.loads(notes.read_text().splitlines()[-1])["text"] == MAIL
            async with apart.connect() as server, Client(server) as client:
                await client.call_tool("say", {"text": mail})
            assert json.loads(notes.read_text().splitlines()[-1])["text"] == mail

    anyio.run(test)


def test_a_gateway_before_the_model_mixes_nothing_up(run, privatizer) -> None:
    """Both at once: the program sees the placeholders of the tools, and the tools get their originals."""

    def repeats(asked: Asked) -> dict[str, Any]:
        message = {"role": "assistant", "content": asked.body["messages"][-1]["content"]}
        return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}

    async def test(stage: Stage) -> None:
        found = (await stage.call("find_person", query="Dora")).structured_content["email"]
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "find_person", "arguments": "{}"},
        }
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": "I am ana@example.com, and that is eva@example.net"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": "call_1",
                "content": f"it is {found}, to <EMAIL_1>, not ana@example.com",
            },
        ]
        gateway = Gateway(privatizer=privatizer, upstream=upstream.url)
        with TestClient(build_application(gateway), base_url="http://127.0.0.1") as program:
            came = program.post("/v1/chat/completions", json={"model": "m", "messages": messages})
        text = came.json()["choices"][0]["message"]["content"]
        assert text == messages[-1]["content"]
        assert (
            upstream.asked[-1].body["messages"][-1]["content"]
            == "it is <LITERAL_1>, to <LITERAL_2>, not <EMAIL_1>"
        )
        await stage.call("say", text=text.split()[2].strip(","))
        assert stage.noted()[-1]["text"] == MAIL

    with serving_upstream(repeats) as upstream:
        run(test)


def test_what_is_answered_twice_is_drawn_once(small_table) -> None:
    tools = ToolServer(
        privatizer=Privatizer("rankcape", epsilon=1, table=small_table),
        policy=ALL,
        command=("none",),
    )
    answer = {
        "content": [
            {"type": "text", "text": "Blorvequine met Quillimar and left the house of Marbo"}
        ]
    }
    assert tools.protect_answer(tables.CALL_TOOL, answer) == tools.protect_answer(
        tables.CALL_TOOL, answer
    )


def test_a_limit_of_the_ledger_is_said_and_nothing_is_shown(privatizer, stage, monkeypatch) -> None:
    url, _ = stage
    session = Session()

    def refuse(*_: Any) -> None:
        raise LimitReached("the account has spent what it may")

    monkeypatch.setattr(session, "transaction", refuse)

    async def test() -> None:
        tools = ToolServer(
            privatizer=privatizer,
            upstream=url,
            session=session,
            policy=Policy(tools=("*",), schemas="pass"),
        )
        async with tools.connect() as server, Client(server) as client:
            made = await client.call_tool("say", {"text": "a"})
            assert made.is_error
            assert (
                getattr(made.content[0], "text", "")
                == "textveil: the account has spent what it may"
            )

    anyio.run(test)


def test_an_address_of_a_document_leads_back(privatizer) -> None:
    tools = ToolServer(privatizer=privatizer, policy=ALL, command=("none",))
    made = tools.protect_answer(
        tables.CALL_TOOL, {"content": [{"type": "text", "text": f"<r><n>{MAIL}</n></r>"}]}
    )
    assert made["content"][0]["text"] == "<r><n>&lt;EMAIL_1&gt;</n></r>"
    for written in ("<EMAIL_1>", "&lt;EMAIL_1&gt;", "%3CEMAIL_1%3E"):
        assert tools.restore_address(f"files:///{written}") == f"files:///{MAIL}"
    assert tools.restore_address("files:///&lt;EMAIL_7&gt;") == "files:///&lt;EMAIL_7&gt;"


# ---- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("came", "says"),
    [
        ({"content": [{"type": "hologram", "of": MAIL}]}, "content[0]"),
        ({"content": [], "mood": MAIL}, "mood is not known"),
        ({"content": [], "resultType": "strange"}, "resultType"),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}]}, "blob"),
    ],
)
def test_what_no_table_knows_is_refused_or_left_out(privatizer, came, says) -> None:
    from textveil.gateway.errors import RequestError

    strict = Policy(tools=("*",), unknown="refuse")
    tools = ToolServer(privatizer=privatizer, policy=strict, command=("none",))
    with pytest.raises(RequestError) as refused:
        tools.protect_answer(tables.CALL_TOOL, came)
    assert says in str(refused.value)
    assert MAIL not in str(refused.value)
    dropping = ToolServer(
        privatizer=privatizer,
        command=("none",),
        policy=Policy(tools=("*",), unknown="drop", media="pass"),
    )
    assert MAIL not in json.dumps(dropping.protect_answer(tables.CALL_TOOL, came))


@pytest.mark.parametrize("given", [{}, {"upstream": "http://127.0.0.1:9/mcp", "command": ("a",)}])
def test_a_tool_server_is_named_in_one_way(privatizer, given) -> None:
    with pytest.raises(ConfigError, match="give either"):
        ToolServer(privatizer=privatizer, policy=ALL, **given)


def test_hidden_numbers_are_numbers_again_where_the_tool_wants_them() -> None:
    wanted = {
        name: {"type": kind}
        for name, kind in (("a", "integer"), ("b", "number"), ("c", "string"), ("d", "integer"))
    }
    came = {"a": "<A_1>", "b": "<A_2>", "c": "<A_3>", "d": "<A_4>", "e": "<A_5>"}
    restored = {"a": "12", "b": "1.5", "c": "12", "d": "twelve", "e": "12"}
    made = {**restored, "a": 12, "b": 1.5}
    assert toolserver._convert_numbers(came, restored, {"properties": wanted}) == made
    assert toolserver._convert_numbers(came, restored, {}) == restored


def test_no_act_lets_text_pass() -> None:
    """What passes is numbers, and what a shape or a list of words keeps free of text."""
    assert tables.CURSOR.text is Act.PASS
    assert tables.CURSOR.shape is not None
    assert tables.MCP_NAME.shape is not None


# ---- the verb --------------------------------------------------------------------------------------------------------

FAST = ("-o", "protect.level=identifiers", "-o", "protect.detectors=[patterns,structure]")


def test_the_verb_over_standard_input_and_output(tmp_path) -> None:
    """An older client, whose messages are looked at as they come: nothing private on either stream."""
    notes = tmp_path / "notes"
    command = [sys.executable, "-m", "textveil", "gateway", "mcp", "--all-tools", *FAST]
    command += ["--errors", str(tmp_path / "errors")]
    process = subprocess.Popen(
        [*command, "--", sys.executable, str(TOOLS), str(notes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    }
    call = {"name": "find_person", "arguments": {"query": "Dora"}}
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": call},
        {"id": 4, "method": "tools/call", "params": {"name": "fail", "arguments": {"text": "x"}}},
        {"id": 5, "method": "sampling/createMessage", "params": {}},
    ]
    assert process.stdout is not None
    lines = []
    for each in asked:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **each}) + "\n")
        process.stdin.flush()
        if "id" in each:
            lines.append(process.stdout.readline())
    out, err = process.communicate(timeout=30)
    whole = "".join(lines) + out + err
    assert not [canary for canary in CANARIES if canary in whole]
    said = {each["id"]: each for each in map(json.loads, lines)}
    assert said[3]["result"]["structuredContent"]["email"].startswith("<EMAIL_")
    assert said[5]["error"]["code"] == -32601
    assert process.returncode == 0
    assert (tmp_path / "errors").stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_the_verb_over_http(stage, tmp_path) -> None:
    url, notes = stage
    port = free()
    (tmp_path / "gateway.yaml").write_text(
        "tools: [say]\noptions: {protect.detectors: [patterns]}\n"
    )
    command = [
        sys.executable,
        "-m",
        "textveil",
        "gateway",
        "mcp",
        "--policy",
        tmp_path / "gateway.yaml",
    ]
    with subprocess.Popen(
        [*command, "--port", str(port), "--upstream", url, "--allow-host", "veil.lan"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == f"textveil: serving http://127.0.0.1:{port}/mcp\n"

            async def test() -> None:
                for mode in ("auto", "legacy"):
                    for _ in range(100):
                        with socket.socket() as tried:
                            if tried.connect_ex(("127.0.0.1", port)) == 0:
                                break
                        await anyio.sleep(0.1)
                    async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:  # type: ignore[arg-type]
                        made = await client.call_tool("say", {"text": "x"})
                        assert MAIL not in made.model_dump_json()
                        await client.call_tool("say", {"text": made.content[0].text.split()[-1]})  # type: ignore[union-attr]
                        assert json.loads(notes.read_text().splitlines()[-1])["text"] == MAIL

            anyio.run(test)
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
                hosts = ("localhost", "veil.lan:8600", "evil.example")
                answers = [
                    http.post("/mcp", json=asked, headers={"Host": each}).status_code
                    for each in hosts
                ]
            assert [status == 403 for status in answers] == [False, False, True]
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--all-tools",), "give either"),
        (("--", "x"), "nothing would be served"),
        (("--all-tools", "--tool", "a", "--", "x"), "leave out --tool"),
        (("--policy", "gateway.yaml", "--", "x"), "--policy says how to privatize"),
        (("--all-tools", "--session", "a", "--", "x"), "--session needs --store"),
        (("--all-tools", "--", "no-such-program-anywhere"), "could not be started or reached"),
        (
            ("--all-tools", "--upstream", "http://127.0.0.1:9/mcp"),
            "could not be started or reached",
        ),
    ],
)
def test_the_verb_says_what_is_wrong(options, says, capsys) -> None:
    assert main(["gateway", "mcp", *FAST, *options]) == 2
    assert says in capsys.readouterr().err


def test_the_verb_takes_from_the_policy_what_no_option_says(tmp_path, monkeypatch) -> None:
    served = list[ToolServer]()
    monkeypatch.setattr("textveil.gateway.serve_stdio", served.append)
    monkeypatch.setattr(
        "textveil.pipeline.privatizer.Privatizer.from_config",
        lambda config: Privatizer("placeholder"),
    )
    (tmp_path / "gateway.yaml").write_text("tools: ['*']\nmedia: pass\n")
    for options in ([], ["--schemas", "pass"]):
        asked = [
            "gateway",
            "mcp",
            "--policy",
            str(tmp_path / "gateway.yaml"),
            *options,
            "--",
            "none",
        ]
        assert main(asked) == 0
    assert [(each.policy.media, each.policy.schemas) for each in served] == [
        ("pass", "identifiers"),
        ("pass", "pass"),
    ]
