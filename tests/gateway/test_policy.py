"""Policies: what a file says, what is wrong with it, and that neither keys nor lists of names show anywhere."""

import json
import os
import re
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml

from textveil import cli
from textveil.errors import ConfigError
from textveil.gateway import (
    GatewayKeys,
    Policy,
    PolicyError,
    build_policy_schema,
    check_references,
    explain_policy,
    read_policy,
)
from textveil.gateway.policy.policy import Credential, KeyBudget, PolicyRule, Upstream

SECRET = "sk-of-the-upstream-0123456789"
NAME = "Blorvequine"
WHOLE = f"""
restore: {{hosts: [wiki.example.org], tools: ["write_*"]}}
upstreams:
  near: {{url: "http://127.0.0.1:8765/v1", client_key: drop}}
  far:
    url: https://api.example.org/v1
    credential: {{env: FAR_KEY}}
    header: x-api-key
upstream: near
profile: prompt
level: personal
dates: all
always: [{NAME}]
never: [Contoso]
options: {{protect.timeout: 20}}
media: refuse
schemas: identifiers
unknown: drop
unknown_fields: {{provider.*: refuse, trace: protect}}
unresolved: refuse
users: drop
keys: gateway.keys
requests: 60
budget: {{epsilon: 40, days: 30}}
limit: 1000000
timeout: 30
memory: 512
tls: {{certificate: chain.pem, key: key.pem}}
playground: everywhere
hosts: [veil.example.org]
tools: ["find_*", send_mail]
other_tools: pass
block: [CARD]
origins: ["app://obsidian.md"]
rules:
  - keys: ["team-a/*"]
    requests: 10
    budget: {{epsilon: 4}}
    level: names
  - models: ["far-*"]
    upstream: far
    always: [Quillimar]
  - keys: ["team-a/*"]
    routes: [embeddings, "responses*"]
    level: identifiers
    media: pass
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes a policy, and gives its name."""
    monkeypatch.chdir(tmp_path)

    def write(content):
        (tmp_path / "gateway.yaml").write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        (tmp_path / "gateway.yaml").chmod(0o600)  # some tests take it for a key
        return "gateway.yaml"

    return write


def faults(path, **typed):
    with pytest.raises(PolicyError) as caught:
        read_policy(path, **typed)
    return caught.value.messages


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_a_file_says_all_of_a_policy(written, tmp_path):
    made = read_policy(written(WHOLE))
    assert {each.name for each in fields(Policy)} == yaml.safe_load(WHOLE).keys()
    assert (made.level, made.unknown, made.requests, made.timeout) == ("personal", "drop", 60, 30.0)
    assert made.tls is not None
    for name, expected in (
        (made.keys, "gateway.keys"),
        (made.tls.certificate, "chain.pem"),
        (made.tls.key, "key.pem"),
    ):
        assert name == str(tmp_path / expected)
    config = made.resolve_config()
    assert (config.profile, config.protect.timeout, config.protect.always) == (
        "prompt",
        20.0,
        (NAME,),
    )


def test_rules_hold_for_routes_models_and_keys(written):
    made = read_policy(written(WHOLE))
    ways = {
        ("chat/completions", "near-1", "bert"): (),
        ("chat/completions", "near-1", "team-a/anna"): (0,),
        ("chat/completions", "far-1", "bert"): (1,),
        ("chat/completions", None, None): (),
        ("responses/{id}", "far-1", "team-a/anna"): (0, 1, 2),
        ("embeddings", "near-1", "bert"): (),
    }
    for asked, expected in ways.items():
        assert made.find_rules(*asked) == expected
    under = made.apply_rules((0, 1, 2))
    assert (under.level, under.media, under.upstream) == (
        "identifiers",
        "pass",
        "far",
    )  # the later rule counts
    assert (under.always, under.never) == ((NAME, "Quillimar"), ("Contoso",))  # lists are added
    assert (under.requests, under.budget, under.rules) == (10, KeyBudget(epsilon=4), ())
    assert (made.get_request_limit("team-a/anna"), made.get_request_limit("bert")) == (10, 60)
    assert made.apply_rules(()).level == "personal"


def test_what_is_typed_goes_with_the_file_where_that_says_nothing(written):
    assert (
        read_policy(written("media: pass\n"), upstream="http://a/v1", media=None).upstream
        == "http://a/v1"
    )
    assert faults(written("media: pass\n"), media="refuse", timeout=3.0) == [
        "gateway.yaml:1: media is set here and by an option: leave one of the two out"
    ]


def test_files_are_looked_for_beside_the_policy(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "upstreams: {a: {url: http://h/v1, credential: {file: key.txt}}}\nupstream: a\n"
    )
    (tmp_path / "key.txt").write_text(f"{SECRET}\n")
    (tmp_path / "key.txt").chmod(0o600)
    credential = read_policy(str(tmp_path / "a.yaml")).resolve_upstream("a").credential
    assert credential is not None
    assert credential.read() == SECRET


def test_the_schema_that_is_shipped_is_the_one_of_the_classes(capsys):
    shipped = json.loads(
        (files("textveil") / "data" / "gateway.schema.json").read_text(encoding="utf-8")
    )
    assert cli.main(["gateway", "check", "--schema"]) == 0
    assert shipped == json.loads(capsys.readouterr().out)  # else: write that into the file
    assert shipped["$defs"]["Policy"]["properties"] == build_policy_schema()["properties"]
    jsonschema.Draft202012Validator.check_schema(shipped)
    validator = jsonschema.Draft202012Validator(shipped)
    page = (Path(__file__).parents[2] / "docs" / "do" / "gateway-policy.md").read_text(
        encoding="utf-8"
    )
    for example in (
        WHOLE,
        re.findall(r"^```yaml.*?\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0],
    ):
        validator.validate(yaml.safe_load(example))
    validator.validate({"gateway": {"port": 1, "store": {"file": "a"}}, "policy": {"limit": 9}})
    for wrong in (
        *({"kyes": "a"}, {"level": "some"}, {"rules": [{"levels": "names"}]}, {"limit": 0}),
        *({"policy": {"kyes": "a"}}, {"gateway": {"prot": 1}}, {"gateway": {"store-key": "aa"}}),
    ):
        assert not validator.is_valid(wrong)
    config = shipped["$defs"]["GatewayConfig"]
    described = [*shipped["$defs"].values(), config["properties"]["gateway"]]
    assert all(each["description"] for part in described for each in part["properties"].values())


def test_check_says_what_a_policy_does(written, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FAR_KEY", SECRET)
    path = written(WHOLE.replace("tls:", "# tls:"))
    assert cli.main(["gateway", "check", path]) == 0
    out, err = capsys.readouterr()
    says = "there is no such file; `textveil gateway keys create` makes it"
    assert re.fullmatch(
        rf"textveil: warning: gateway\.yaml:22: keys: .* cannot be used: {says}\n", err
    )
    for said in (
        "Requests go to http://127.0.0.1:8765/v1.",
        "Clients need a key from the file",
        "the profile prompt, level personal, dates all; 1 word is always hidden and 1 word is never hidden.",
        "The playground is at / if one process answers.",
        "A key may send 60 requests a minute and spend an epsilon of 40 in 30 days.",
        "Rule 0, for keys team-a/*: level names, requests 10, budget 4.",
        "If a detector fails, nothing is sent.",
    ):
        assert said in out
    assert NAME not in out
    GatewayKeys(str(tmp_path / "gateway.keys"), new=True)
    assert cli.main(["gateway", "check", path]) == 0
    assert capsys.readouterr() == (out, "")


def test_policy_and_its_rules_say_which_dates_are_hidden() -> None:
    made = Policy(
        upstream="http://127.0.0.1:1/v1",
        rules=(PolicyRule(routes=("embeddings",), dates="none"),),
        dates="all",
    )
    assert made.resolve_config().protect.dates == "all"
    assert made.apply_rules((0,)).resolve_config().protect.dates == "none"
    assert made.rules[0].has_protection_changes


# ---- what is wrong ---------------------------------------------------------------------------------------------------


WRONG = {
    "kyes: a": "gateway.yaml:1: no option is named 'kyes'; did you mean 'keys'?",
    "dates: some": "gateway.yaml:1: dates must be 'personal', 'all' or 'none'",
    "level: some": "gateway.yaml:1: level must be 'identifiers', 'personal' or 'names'",
    "timeout: .nan": "gateway.yaml:1: timeout must be a finite number",
    "limit: -1": "gateway.yaml:1: limit must be greater than or equal to 1",
    "limit: 1.5": "gateway.yaml:1: limit must be a valid integer, got a number with a fractional part",
    "always: [no]": "gateway.yaml:1: always.0 must be a valid string; put it in quotes",
    'always: [""]': "gateway.yaml:1: always.0 must have at least 1 character",
    "rules: 3": "gateway.yaml:1: rules must be a list",
    "rules:\n- 3": "gateway.yaml:2: rules.0 must be a mapping",
    "\nrules:\n- models: [a]\n  levels: names": (
        "gateway.yaml:4: rules.0: no option is named 'levels'; did you mean 'level'?"
    ),
    "rules:\n- level: names": (
        "gateway.yaml:2: rules.0 selects all requests: give it routes, models or keys, or set its fields outside "
        "of the rules"
    ),
    "rules:\n- models: [a]": "gateway.yaml:2: rules.0 changes nothing",
    "keys: k\nrules:\n- models: [a]\n  requests: 3": (
        "gateway.yaml:3: rules.0: requests and budget apply to all requests of a key: leave routes and models out"
    ),
    "requests: 3": "gateway.yaml:1: requests needs the gateway's own keys: name their file with `keys: FILE`",
    "upstream: nowhere": "gateway.yaml:1: upstream: no upstream is named 'nowhere'; known: none",
    "upstream: ftp://a": (
        "gateway.yaml:1: upstream: must have the form http://HOST:PORT/PATH or https://HOST/PATH, such as .../v1"
    ),
    f"upstreams:\n  a: {{url: http://h/v1, credential: {SECRET}}}": (
        "gateway.yaml:2: upstreams.a.credential: must be {env: NAME} or {file: PATH}, and never the key itself"
    ),
    "upstreams:\n  a:\n    url: http://h/v1\n    credential: {env: A, file: b}": (
        "gateway.yaml:4: upstreams.a.credential: must be {env: NAME} or {file: PATH}"
    ),
    "upstreams:\n  a: {}": "gateway.yaml:2: upstreams.a.url is missing",
    "keys: a\nbudget: {epsilon: .inf}": "gateway.yaml:2: budget.epsilon must be a finite number",
    "tls: {certificate: a}": "gateway.yaml:1: tls.key is missing",
    "profile: mine": "gateway.yaml: no profile is named 'mine'",
    "level: names\noptions: {protect.level: names}": "gateway.yaml: options: protect.level is set twice",
    "rules:\n- level: names\n  routes: [chat/completion]": (
        "gateway.yaml:3: rules.0.routes.0: no route is named 'chat/completion'; did you mean 'chat/completions'?"
    ),
    "rules:\n- level: names\n  routes: [messages, /v1/chat/completions]": (
        "gateway.yaml:3: rules.0.routes.1: no route is named '/v1/chat/completions'; did you mean 'chat/completions'?"
    ),
    "rules:\n- level: names\n  routes: ['nonsense*']": "gateway.yaml:3: rules.0.routes.0: no route is named",
    "upstream: http://user:pw@h/v1": (
        "gateway.yaml:1: upstream: must not hold a name or password; name the key in a policy, as credential: "
        "{env: NAME}"
    ),
    "rules:\n- models: [a]\n  options: {epsilon: nan}": "gateway.yaml:2: rules.0: epsilon must be a number >= 0",
}


@pytest.mark.parametrize("content", WRONG)
def test_what_is_wrong_is_one_line(written, content):
    (said,) = faults(written(content))
    assert said.startswith(WRONG[content])
    assert SECRET not in said


def test_every_fault_is_told(written, capsys):
    path = written("level: some\nkyes: a\nlimit: 0\nupstreams: {a: {url: x}}\n")
    assert cli.main(["gateway", "check", path]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [int(line.split(":")[3]) for line in err.splitlines()] == [1, 2, 3, 4]
    assert all(re.match(r"textveil: error: gateway\.yaml:\d: ", line) for line in err.splitlines())
    with pytest.raises(PolicyError, match=r"\(3 more: see `textveil gateway check`\)"):
        read_policy(path)
    assert len(faults(written("".join(f"wrong{i}: 1\n" for i in range(1_000))))) == 20


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "has 'a' twice, in lines 1 and 3"),
        (
            "rules:\n- {level: names, models: [a], level: names}\n",
            "has 'level' twice, in lines 2 and 2",
        ),
        ("[1, 2", "is not valid YAML at line 1, column 6"),
        ("- a\n", "must be a mapping of options, got list"),
        (b"\xff\xfe\x00", "must be UTF-8; byte 0 is not"),
        (b"a: \x00", "is not valid YAML"),
        ("a" * 2_000_000, "is too large; a configuration file has at most 1,048,576 bytes"),
        ("[" * 20_000, "is not valid YAML"),
    ],
)
def test_files_that_are_none_are_refused(written, content, says):
    with pytest.raises(ConfigError, match=re.escape(says)) as caught:
        read_policy(written(content))
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        read_policy(str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigError, match="Is a directory"):
        read_policy(str(tmp_path))
    if os.geteuid():
        (tmp_path / "a.yaml").touch(0o000)
        with pytest.raises(ConfigError, match="Permission denied"):
            read_policy(str(tmp_path / "a.yaml"))


@pytest.mark.parametrize("content", ["", "# nothing\n", "{}\n", "---\n"])
def test_an_empty_file_is_refused(written, content):
    """It may be one that is being written, or a disk that was full: what it restricted must go on."""
    (said,) = faults(written(content))
    assert said.startswith("gateway.yaml: the file sets nothing: write what the gateway does")


def test_aliases_cannot_make_a_file_large(written):
    lines = ["a0: &a0 [x, x]"] + [
        f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}, *a{i - 1}]" for i in range(1, 40)
    ]
    assert len(faults(written("\n".join(lines)))) == 20


# ---- what it names ---------------------------------------------------------------------------------------------------


def asked(url, credential="{env: FAR_KEY}"):
    return f"upstream: far\nupstreams:\n  far:\n    url: {url}\n    credential: {credential}\n"


MISSING = {
    "upstream: http://h/v1\ntls:\n  certificate: chain.pem\n  key: gateway.yaml": (
        "gateway.yaml:3: tls.certificate: '.../chain.pem' cannot be read: No such file or directory"
    ),
    "upstream: http://h/v1\ntls: {certificate: gateway.yaml, key: gateway.yaml}": (
        "gateway.yaml:2: tls needs PEM files that go together, the key without a password"
    ),
    asked("http://h/v1", "{file: key.txt}"): (
        "gateway.yaml:5: upstreams.far.credential: the upstream's key cannot be read from the file '.../key.txt': "
        "No such file or directory"
    ),
    asked("http://h/v1", "{file: .}"): (
        "gateway.yaml:5: upstreams.far.credential: the upstream's key cannot be read from the file '.../.': "
        "Is a directory"
    ),
    "upstream: http://h/v1\nkeys: none/gateway.keys": "gateway.yaml:2: keys: there is no folder '.../none'",
    "upstream: http://h/v1\nkeys: gateway.yaml": (
        "gateway.yaml:2: keys: '.../gateway.yaml' is not a file of gateway keys"
    ),
    "upstream: http://h/v1\noptions:\n  words.tokenizer: ./tokenizer.json": (
        "gateway.yaml:3: options.words.tokenizer: there is no file or folder './tokenizer.json'"
    ),
    "upstream: http://h/v1\nrules:\n- models: [a]\n  options: {risk: 0.5, prior: texts.txt}": (
        "gateway.yaml:4: rules.0.options.prior: there is no file or folder 'texts.txt'"
    ),
    "upstream: http://h/v1\nrules:\n- models: [a]\n  options: {table.codes: none.book}": (
        "gateway.yaml:4: rules.0.options.table.codes: none.book: cannot read a book of codes (No such file or "
        "directory); `textveil table codes` makes one"
    ),
    "media: pass\nupstream: http://h:1/v1/chat/completions": (
        "gateway.yaml:2: upstream: ends in the route chat/completions, which the gateway adds: give the base URL, "
        "http://h:1/v1"
    ),
    asked("https://h/v1/messages/"): (
        "gateway.yaml:3: upstreams.far: ends in the route messages, which the gateway adds: give the base URL, https://h/v1"
    ),
}


@pytest.mark.parametrize("content", MISSING)
def test_what_is_missing_is_one_line_in_a_check_and_at_the_start(
    written, tmp_path, capsys, content
):
    path = written(content)
    for arguments in (["gateway", "check", path], ["gateway", "--policy", path, "--port", "0"]):
        assert cli.main(arguments) == 2
        out, err = capsys.readouterr()
        assert (out, err.replace(str(tmp_path), "...")) == (
            "",
            f"textveil: error: {MISSING[content]}\n",
        )


def test_a_variable_that_is_not_set_may_be_when_the_gateway_starts(written, capsys, monkeypatch):
    monkeypatch.delenv("FAR_KEY", raising=False)
    path = written(asked("http://h/v1"))
    says = "gateway.yaml:5: upstreams.far.credential: the upstream's key must be in"
    assert cli.main(["gateway", "check", path]) == 0
    assert capsys.readouterr().err.startswith(
        f"textveil: warning: {says} the environment variable FAR_KEY, which is"
    )
    assert cli.main(["gateway", "--policy", path, "--port", "0"]) == 2
    assert capsys.readouterr().err.startswith(f"textveil: error: {says}")
    monkeypatch.setenv("FAR_KEY", "two words")
    assert cli.main(["gateway", "check", path]) == 2  # which no start makes better


def test_what_no_request_needs_may_be_missing(written, capsys, monkeypatch):
    monkeypatch.delenv("FAR_KEY", raising=False)
    unused = asked("http://h/v1").replace("upstream: far", "upstream: http://near/v1")
    assert check_references(read_policy(written(unused))) == []
    for used in (unused.partition("\n")[2], f"{unused}rules:\n- models: [a]\n  upstream: far\n"):
        with pytest.raises(PolicyError, match="FAR_KEY"):
            check_references(read_policy(written(used)))


@pytest.mark.parametrize(
    "url",
    [
        "https://h",
        "https://h/v1",
        "https://h/models",
        "https://h/models/v1/",
        "https://h/completions/openai",
    ],
)
def test_addresses_that_only_look_like_routes(url):
    assert Policy(upstream=url).upstream == url


# ---- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        ("", "must be one line"),
        (f"{SECRET}\n{SECRET}", "must be one line"),
        (f"{SECRET}é", "must be one line of ASCII without spaces"),
    ],
)
def test_a_credential_that_is_none_is_not_shown(tmp_path, content, says):
    if content is not None:
        (tmp_path / "key").write_text(content)
        (tmp_path / "key").chmod(0o600)
    with pytest.raises(ConfigError, match=says) as caught:
        Credential(file=str(tmp_path / "key")).read()
    assert SECRET not in str(caught.value)


def test_a_variable_that_is_not_set_is_said(monkeypatch):
    monkeypatch.delenv("FAR_KEY", raising=False)
    with pytest.raises(ConfigError, match="the environment variable FAR_KEY, which is not set"):
        Credential(env="FAR_KEY").read()


def test_lists_and_credentials_are_not_shown(monkeypatch):
    monkeypatch.setenv("FAR_KEY", SECRET)
    to = Upstream(url="http://h/v1", credential=Credential(env="FAR_KEY"))
    rule = PolicyRule(models=("a",), always=(NAME,))
    made = Policy(upstreams={"a": to}, upstream="a", always=(NAME,), never=(NAME,), rules=(rule,))
    for shown in (repr(made), str(made), repr(to), "\n".join(explain_policy(made))):
        assert SECRET not in shown
        assert NAME not in shown
