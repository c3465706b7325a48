"""Agents: their own prompts and tools stay as they are, and what their users have does not leave."""

import json
import time
from dataclasses import replace

import pytest
from pydantic import TypeAdapter
from tests.gateway.agent_prompt import PLACEHOLDER, SYSTEM, TOOLS

from textveil.detect import ApplicationWords, application_words
from textveil.errors import ConfigError
from textveil.gateway import Gateway, Policy, check_references, explain_policy, read_policy
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.policy_file import list_policies
from textveil.gateway.protocols import load_operations
from textveil.gateway.request.request_record import RequestRecord
from textveil.gateway.request_flow import RequestFlow
from textveil.pipeline.components import Parts

OPERATIONS = {operation.name: operation for operation in load_operations()}
MODEL = "marlowe-large-4-2"

LISTING = """\
README.md
MARLOWE.md
.marlowe/settings.json
src/app.py
Zeugnis_Anna_Kowalska.pdf
"""
LETTER = """\
Dear Ms Kowalska,
your appointment with Dr Henrik Aasheim is on 14 May. Please call 0151 23456789.
Marlowe Lindqvist, front desk, marlowe.lindqvist@example.org
"""


@pytest.fixture(scope="module")
def gateway():
    return Gateway(upstream="http://127.0.0.1:9/v1")


def release(gateway, name, body):
    flow = RequestFlow(gateway, OPERATIONS[name], body, "client", RequestRecord(name))
    return flow.release(flow.prepare(None))[0]


def anthropic(messages, system=SYSTEM, tools=TOOLS):
    blocks = [{"type": "text", "text": system}]
    return {
        "model": MODEL, "max_tokens": 9, "system": blocks, "tools": tools, "messages": messages
    }  # fmt: skip


def chat(messages, system=SYSTEM, tools=TOOLS):
    functions = [
        {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["input_schema"],
        }
        for tool in tools
    ]
    return {
        "model": MODEL,
        "messages": [{"role": "system", "content": system}, *messages],
        "tools": [{"type": "function", "function": function} for function in functions],
    }


def responses(messages, system=SYSTEM, tools=TOOLS):
    functions = [
        {
            "type": "function",
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["input_schema"],
        }
        for tool in tools
    ]
    return {"model": MODEL, "instructions": system, "input": messages, "tools": functions}


BUILDERS = {
    "anthropic.messages": anthropic,
    "openai.chat": chat,
    "openai.responses": responses,
}


def user(text):
    return {"role": "user", "content": text}


def result_of(text, tool="Read"):
    """A call of a tool and its result, as Anthropic's API has them."""
    call = {"type": "tool_use", "id": "t1", "name": tool, "input": {"file_path": "a.txt"}}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": text}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}]


def own_part(body):
    """What the application wrote in a request."""
    system = body.get("system") or body.get("instructions") or body["messages"][0]
    return json.dumps([system, body["tools"], body["model"]], ensure_ascii=False)


def said(body):
    return json.dumps(body["messages"], ensure_ascii=False)


# ---- words of the application --------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(
    "text",
    [
        "Rename the helper in src/app.py.",
        "Ask Marlowe, or let Victor and Pearl do it; then use Edit, please.",
        "What is Marlowe? And what does ~/.marlowe/settings.json hold?",
    ],
)
def test_an_agents_prompt_and_tools_stay_as_they_are(gateway, name, text):
    sent = release(gateway, name, BUILDERS[name]([user(text)]))
    assert len(PLACEHOLDER.findall(own_part(sent))) <= 1  # an address of mail in the prompt


def test_the_prompt_is_the_same_from_turn_to_turn(gateway):
    messages = [user("Read the letter. My sister Marlowe Lindqvist wrote it.")]
    first = release(gateway, "anthropic.messages", anthropic(messages))
    second = release(gateway, "anthropic.messages", anthropic([*messages, *result_of(LETTER)]))
    assert second["system"] == first["system"]
    assert second["tools"] == first["tools"]
    assert second["messages"][: len(first["messages"])] == first["messages"]


def test_file_names_that_the_application_states_stay_in_results(gateway):
    sent = release(gateway, "anthropic.messages", anthropic([user("ls"), *result_of(LISTING)]))
    listing = sent["messages"][-1]["content"][0]["content"]
    assert [line for line in LISTING.splitlines() if line not in listing.splitlines()] == [
        "Zeugnis_Anna_Kowalska.pdf"
    ]
    assert "Kowalska" not in listing
    assert "Anna" not in listing


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("Our new employee Marlowe starts on Monday.", "Marlowe"),
        ("My daughter Pearl has a fever since Tuesday.", "Pearl"),
        ("Victor Lindqvist owes me 300 euros.", "Victor"),
        ("Write a letter to Marlowe Lindqvist, born on 3 May 1984.", "Marlowe"),
    ],
)
def test_somebody_called_like_a_tool_is_private_in_a_users_text(gateway, text, private):
    sent = release(gateway, "anthropic.messages", anthropic([user(text)]))
    assert private not in said(sent)
    assert "Lindqvist" not in said(sent)


def test_a_broken_twin_that_lifts_words_everywhere_is_found(monkeypatch):
    """Application's words as never private: the employee of the same name would leave."""

    def lifts(self, span, text, *, is_own):
        return self.covers(span.type, text[span.start : span.end])

    monkeypatch.setattr(ApplicationWords, "lifts", lifts)
    twin = Gateway(upstream="http://127.0.0.1:9/v1")
    text = "Our new employee Marlowe starts on Monday."
    assert "Marlowe" in said(release(twin, "anthropic.messages", anthropic([user(text)])))


def test_what_is_private_leaves_no_trace(gateway):
    messages = [
        user("I am Ingrid Aasheim, Storgata 14, 0155 Oslo. Marlowe Lindqvist is my neighbour."),
        *result_of(LETTER),
        *result_of(LISTING, "Bash"),
        user("Write to Anna Kowalska at anna.kowalska@example.org, IBAN DE89370400440532013000."),
    ]
    sent = json.dumps(release(gateway, "anthropic.messages", anthropic(messages)))
    for private in (
        "Ingrid", "Aasheim", "Storgata", "Lindqvist", "Kowalska", "Anna", "anna", "23456789",
        "DE8937",
    ):  # fmt: skip
        assert private not in sent, private


def test_what_the_session_hides_is_hidden_in_the_applications_texts(gateway):
    system = (
        SYSTEM + "The user is Henrik Aasheim; the address of his desk is h.aasheim@example.org.\n"
    )
    sent = release(gateway, "openai.responses", responses([user("Henrik Aasheim is ill")], system))
    assert "Aasheim" not in json.dumps(sent)
    tools = [{**TOOLS[0], "description": "Reads files of Henrik Aasheim."}, *TOOLS[1:]]
    sent = release(gateway, "openai.chat", chat([user("Henrik Aasheim is ill")], tools=tools))
    assert "Aasheim" not in json.dumps(sent)


def test_a_name_in_full_in_a_stated_path_is_no_word_of_the_application(gateway):
    system = SYSTEM + "Changed: docs/Zeugnis_Anna_Kowalska.pdf\nThe user is called Anna Kowalska.\n"
    sent = own_part(release(gateway, "anthropic.messages", anthropic([user("hi")], system)))
    assert "Anna Kowalska" not in sent


def test_words_that_a_user_lists_go_before_the_applications():
    listing = Gateway(upstream="http://127.0.0.1:9/v1", policy=Policy(always=("Marlowe",)))
    body = chat([user("hi")])
    with pytest.raises(RequestError, match=r"^tools\[9\]"):
        release(listing, "openai.chat", body)
    body["tools"].pop()
    sent = release(listing, "openai.chat", body)
    assert "Marlowe" not in own_part(sent)


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("mail_anna_kowalska", "Anna Kowalska is my neighbour"),
        ("find-kowalska", "Anna Kowalska is my neighbour"),
        ("call_015123456789", "hi"),
    ],
)
def test_a_tool_whose_name_holds_something_private_is_refused_by_its_place(gateway, tool, text):
    tools = [*TOOLS, {**TOOLS[0], "name": tool}]
    with pytest.raises(RequestError, match=r"^tools\[10\]\.name holds") as caught:
        release(gateway, "anthropic.messages", anthropic([user(text)], tools=tools))
    assert tool not in str(caught.value)
    assert caught.value.param == "tools[10].name"


@pytest.mark.parametrize(
    "private",
    [
        "https://anna-kowalska.example-praxis.de",
        "https://kowalska.io/marlowe",
        "https://marlowe-code.dev/kowalska",
        "https://marlowe-code.dev/settings?user=anna",
        "https://marlowe-code.dev/u/anna-k",
        "https://marlowe-code.dev:8443/settings",
        "https://anna:geese47@marlowe-code.dev/settings",
        "https://marlowe.internal/settings",
        "@anna_k",
        "@marta",
        "@rose-green",
    ],
)
def test_addresses_and_handles_of_others_are_hidden_in_the_prompt(gateway, private):
    system = f"{SYSTEM}Write to the user as in {private} today.\n"
    sent = release(gateway, "anthropic.messages", anthropic([user("hi")], system))
    assert private not in own_part(sent)


def test_an_address_of_the_writers_own_is_hidden_in_the_prompt(gateway):
    system = f"{SYSTEM}My site: https://marlowe-code.dev/notes\n"
    sent = release(gateway, "anthropic.messages", anthropic([user("hi")], system))
    assert "https://marlowe-code.dev/notes" not in own_part(sent)


def test_addresses_and_handles_like_the_prompts_are_hidden_in_a_users_text(gateway):
    messages = [user("Ask @plugin-name today. It runs at https://marlowe-code.dev/notes now.")]
    sent = said(release(gateway, "anthropic.messages", anthropic(messages)))
    assert "@plugin-name" not in sent
    assert "marlowe-code.dev" not in sent


NUMBERED = """\
     3\tphone: +47 22 85 50 50
     4\taccount: 8601 11 17947
     5\tother
     6\tkonto 86011117947
     7\t12
"""


def test_line_numbers_of_a_tool_stay(gateway):
    sent = release(gateway, "anthropic.messages", anthropic(result_of(NUMBERED)))
    shown = sent["messages"][-1]["content"][0]["content"]
    assert [line[:7] for line in shown.splitlines()] == [f"     {n}\t" for n in range(3, 8)]
    assert "22 85" not in shown
    assert "17947" not in shown


# ---- doubt is not spread -------------------------------------------------------------------------

AFTERWARDS = "The colour sage goes with rosalind pink. Rosalind pink is on the list."
FOUND_IN_DOUBT = "Rosalind called twice and asked for her results."


def test_what_a_tool_says_in_doubt_is_hidden_there_and_not_elsewhere(gateway):
    messages = [*result_of(FOUND_IN_DOUBT), user(AFTERWARDS)]
    sent = release(gateway, "anthropic.messages", anthropic(messages))
    assert "Rosalind" not in sent["messages"][1]["content"][0]["content"]
    assert sent["messages"][2]["content"] == AFTERWARDS


def test_a_broken_twin_that_spreads_doubt_is_found(monkeypatch):
    monkeypatch.setattr(Parts, "remembers_doubt", True)
    twin = Gateway(upstream="http://127.0.0.1:9/v1")
    messages = [*result_of(FOUND_IN_DOUBT), user(AFTERWARDS)]
    sent = release(twin, "anthropic.messages", anthropic(messages))
    assert sent["messages"][2]["content"] != AFTERWARDS


def test_a_name_in_full_is_hidden_everywhere_wherever_it_came_from(gateway):
    text = "Rosalind Aasheim called twice and asked for her results."
    messages = [*result_of(text), user("The list says aasheim, pink, sage.")]
    sent = release(gateway, "anthropic.messages", anthropic(messages))
    assert "aasheim" not in json.dumps(sent).lower()


def test_values_of_json_that_were_found_in_doubt_are_hidden_there(gateway):
    """A key says that a value is a name; it is hidden in this JSON, and not in all texts."""
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "Write",
        "input": {"patient": "Rosalind", "x": "rosalind came"},
    }
    sent = release(
        gateway,
        "anthropic.messages",
        anthropic([{"role": "assistant", "content": [call]}, user("go on")]),
    )
    assert "osalind" not in said(sent)


# ---- which words are the application's -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Settings stand in ~/.marlowe/settings.json.", "marlowe"),
        ("Read MARLOWE.md first.", "marlowe"),
        ("Run `marlowe init` to begin.", "marlowe"),
        ("It is mcp__marlowe__open.", "marlowe"),
        ("The model is marlowe-large-4-2.", "marlowe"),
        ("See https://github.com/marlowe/marlowe/issues.", "marlowe"),
    ],
)
def test_names_of_things_are_words_of_the_application(text, word):
    assert word in application_words.collect_words([], [text]).words


@pytest.mark.parametrize(
    "text",
    [
        "Marlowe helps.",
        "Write to anna.marlowe@example.org.",
        "The folder is /home/marlowe/work.",
        "Jean-Marlowe and Marlowe/Pearl came.",
        "The key is sk-marlowe-4f9aQ7Zt1LmXw83VbnK2.",
    ],
)
def test_names_in_prose_and_of_people_are_not(text):
    assert "marlowe" not in application_words.collect_words([], [text]).words


@pytest.mark.parametrize(
    "sign", ["a_", "A1-", "~/", "ab.", "/", ".", "://", "`x", "~.", "a:", "@a/"]
)
def test_reading_words_takes_linear_time(sign):
    start = time.perf_counter()
    application_words.collect_words([], [sign * 40_000])
    assert time.perf_counter() - start < 20


def test_nothing_of_an_application_is_shown(gateway):
    body = anthropic([user("hi")])
    flow = RequestFlow(gateway, OPERATIONS["anthropic.messages"], body, "c", RequestRecord("x"))
    application = flow.prepare(None).request.application
    for each in (application, application.words, replace(application)):
        assert "arlowe" not in repr(each)


# ---- policies of known agents --------------------------------------------------------------------

SHELLS = ("Bash", "bash", "shell", "local_shell", "exec_command")


@pytest.mark.parametrize("name", list_policies())
def test_a_policy_of_an_agent_is_read_by_its_name(name):
    policy = read_policy(name, upstream="http://127.0.0.1:9/v1")
    assert check_references(policy, name) == []
    assert explain_policy(policy)
    # A shell may open an address, so restoring everywhere in its commands could send data away.
    assert not any(policy.restore.has_tool(shell) for shell in SHELLS)


def test_a_policy_name_that_nobody_knows_is_told_the_names():
    with pytest.raises(ConfigError, match="aider, claude-code, codex, opencode; did you mean"):
        read_policy("codx")


def test_agents_have_policies_and_a_file_goes_before_a_name(tmp_path, monkeypatch):
    assert list_policies() == ["aider", "claude-code", "codex", "opencode"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codex").write_text("media: pass\n", encoding="utf-8")
    assert read_policy("codex").media == "pass"
    with pytest.raises(ConfigError):
        read_policy("claude")


def test_lists_hold_by_route():
    rules = (
        {"routes": ["messages"], "never": ["Rosalind"]},
        {"routes": ["chat/completions"], "always": ["sage"]},
    )
    policy = TypeAdapter(Policy).validate_python({"rules": rules})
    made = Gateway(upstream="http://127.0.0.1:9/v1", policy=policy)
    shown = {}
    for name, route in (("anthropic.messages", "messages"), ("openai.chat", "chat/completions")):
        body = BUILDERS[name]([user(f"{FOUND_IN_DOUBT} Sage is a colour.")], "be short", [])
        del body["tools"]
        variant = made.select_variant(route, {MODEL}, None)
        shown[route] = said(release(variant, name, body))
    assert "Rosalind" in shown["messages"]
    assert "Sage" in shown["messages"]
    assert "Rosalind" not in shown["chat/completions"]
    assert "Sage" not in shown["chat/completions"]
