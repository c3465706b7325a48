"""A gateway from one file: what it says counts, what it says wrongly is told by its path, and secrets lie in files."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import typer
from tests.gateway.servers import answer_of, serving_upstream

from textveil import cli
from textveil.cli import gateway_config
from textveil.cli.gateway import gateway as group
from textveil.cli.gateway_config import GatewayConfig, list_parameters
from textveil.config import secret_files
from textveil.config.secret_files import read_secret_file, read_secret_variable
from textveil.errors import ConfigError, TextveilWarning
from textveil.gateway import read_policy

CANARY = "canary-0123456789-secret"
KEY = "5c" * 32
WHOLE = """
gateway:
  host: 127.0.0.1
  port: 0
  store: {file: secrets/url}
  store-key: {file: secrets/key}
  audit-log: audit.jsonl
  metrics: all
  playground: never
policy:
  upstreams:
    model: {url: "UPSTREAM", credential: {file: secrets/credential}}
  upstream: model
  options: {mechanism.name: placeholder}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with secrets, in which `write` writes a configuration."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "TEXTVEIL_STORE",
        "TEXTVEIL_STORE_KEY",
        "TEXTVEIL_STORE_KEY_FILE",
        "TEXTVEIL_KEYS",
    ):
        monkeypatch.setenv(name, "")
    secret(tmp_path, "url", f"sqlite:///{tmp_path}/{CANARY}.db?session_keys=database\n")
    secret(tmp_path, "key", f"{KEY}\n")
    secret(tmp_path, "credential", f"{CANARY}\n")
    return tmp_path


def secret(folder, name, content, mode=0o600):
    (folder / "secrets").mkdir(exist_ok=True)
    path = folder / "secrets" / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return str(path)


def write(content, upstream="http://127.0.0.1:9/v1"):
    Path("veil.yaml").write_text(content.replace("UPSTREAM", upstream))
    return "veil.yaml"


def read(content):
    return GatewayConfig(write(content), typer.main.get_command(group))


def said(capsys, *arguments):
    assert cli.main(["gateway", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


@contextmanager
def running(*arguments: str, **environ: str) -> Iterator[tuple[Any, str]]:
    """A gateway as a process, and its address."""
    command = [sys.executable, "-m", "textveil", "gateway", *arguments]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environ}
    ) as process:
        assert process.stderr is not None
        try:
            yield process, process.stderr.readline().split()[-1].removesuffix("/v1")
        finally:
            process.kill()


def ask(url):
    return httpx.post(
        f"{url}/v1/chat/completions",
        json={"model": "m", "messages": [{"role": "user", "content": "mail anna@example.org"}]},
        timeout=60,
    )


# ---- what it says ----------------------------------------------------------------------------------------------------


@pytest.mark.posix
def test_a_gateway_runs_from_one_file_with_its_secrets_in_files(folder):
    with serving_upstream(lambda _: answer_of({"role": "assistant", "content": "ok"})) as upstream:
        path = write(WHOLE, upstream.url)
        with running("--config", path) as (process, url):
            assert ask(url).status_code == 200
            assert upstream.asked[0].headers["authorization"] == f"Bearer {CANARY}"
            assert "anna@example.org" not in upstream.seen
            assert "textveil_requests_total" in httpx.get(f"{url}/metrics").text
            assert len(Path("audit.jsonl").read_text().splitlines()) == 2
            assert Path(f"{CANARY}.db").exists()
            # The policy in the file is read again; its server is not.
            write(WHOLE.replace("port: 0", "port: 1") + "  limit: 10\n", upstream.url)
            process.send_signal(signal.SIGHUP)
            assert process.stderr.readline() == (
                "textveil: a restart is needed for what changed in `gateway`: port\n"
            )
            assert process.stderr.readline() == "textveil: the policy was read again\n"
            assert ask(url).status_code == 413
            process.terminate()
            assert CANARY not in process.stderr.read()
        assert process.returncode == 0
    for file in (path, "audit.jsonl"):
        assert CANARY not in Path(file).read_text()


def test_every_option_of_the_server_can_stand_in_the_file(folder):
    parameters = list_parameters(typer.main.get_command(group))
    values: dict[str, Any] = {}
    for name, parameter in parameters.items():
        choices = parameter.metavar.split("|") if parameter.metavar else [""]
        word = choices[0] if len(choices) > 1 else "3"
        values[name] = True if parameter.is_flag else [word] if parameter.multiple else word
    config = read(json.dumps({"gateway": values}))
    assert config.faults == []
    assert config.defaults.keys() == {parameter.name for parameter in parameters.values()}
    assert len(parameters) > 20
    schema = json.loads(
        (Path(secret_files.__file__).parents[1] / "data" / "gateway.schema.json").read_text()
    )
    described = schema["$defs"]["GatewayConfig"]["properties"]["gateway"]["properties"]
    assert described.keys() == {*parameters, *gateway_config.VARIABLES}


def test_options_and_the_environment_win(folder, monkeypatch, capsys):
    seen: dict[str, Any] = {}

    def stop(*address):
        seen["address"] = address
        raise ZeroDivisionError

    monkeypatch.setattr("textveil.gateway.listen", stop)
    path = write("gateway: {host: 127.0.0.2, port: 8700, upstream: 'http://h/v1'}\n")
    for arguments, expected in (
        ((), ("127.0.0.2", 8700)),
        (("--port", "8701"), ("127.0.0.2", 8701)),
    ):
        assert cli.main(["gateway", "--config", path, *arguments]) == 1
        assert seen["address"] == expected
    made = read_policy(write(WHOLE), upstream="http://other/v1")
    assert made.upstream == "http://other/v1"
    monkeypatch.setenv("TEXTVEIL_STORE_KEY", "00" * 32)
    write(WHOLE)
    assert cli.main(["gateway", "--config", path]) == 1
    assert os.environ["TEXTVEIL_STORE_KEY_FILE"] == ""


def test_files_are_looked_for_beside_the_file(folder, tmp_path):
    config = read(
        "gateway: {tls-key: {file: a.key}, tls-cert: a.pem, store-keys: keys}\npolicy: other.yaml\n"
    )
    assert config.faults == []
    assert config.defaults == {
        "tls_key": str(tmp_path / "a.key"),
        "tls_cert": str(tmp_path / "a.pem"),
        "policy": str(tmp_path / "other.yaml"),
    }
    assert config.variables == {"TEXTVEIL_KEYS": str(tmp_path / "keys")}
    assert read("gateway: {store-keys: keyring}\npolicy: codex\n").defaults == {"policy": "codex"}


@pytest.mark.parametrize(
    ("url", "opened"),
    [
        ("sqlite:///veil.db?keep=30", "sqlite:///FOLDER/veil.db?keep=30"),
        ("sqlite:////data/veil.db", "sqlite:////data/veil.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("postgresql://host/veil", "postgresql://host/veil"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_a_store_is_looked_for_beside_the_file(folder, tmp_path, url, opened, in_file):
    secret(folder, "url", url)
    store = {"file": "secrets/url"} if in_file else url
    config = read(json.dumps({"gateway": {"store": store}}))
    assert config.defaults == {"store": opened.replace("FOLDER", str(tmp_path))}


@pytest.mark.posix
def test_a_gateway_without_a_policy_stays_when_it_is_told_to_read_it_again(folder):
    path = write("gateway: {port: 0, upstream: 'http://127.0.0.1:9/v1', metrics: all}\n")
    with running("--config", path, TEXTVEIL_MECHANISM__NAME="placeholder") as (process, url):
        process.stderr.readline()  # the playground
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline() == (
            "textveil: the policy was not changed: this gateway has no policy, and its options need a restart\n"
        )
        assert httpx.get(f"{url}/health").status_code == 200


def test_check_describes_a_file_with_and_without_a_policy(folder, capsys):
    assert cli.main(["gateway", "check", write(WHOLE)]) == 0
    out, err = capsys.readouterr()
    assert (out.splitlines()[0], err) == ("Requests go to http://127.0.0.1:9/v1.", "")
    path = write("gateway: {upstream: 'http://h/v1', timeout: 9}\nprotect: {level: names}\n")
    assert cli.main(["gateway", "check", path]) == 0
    out, err = capsys.readouterr()
    assert "profile prompt, level names" in out
    assert "9 seconds to answer" in out
    assert out.splitlines()[-3:] == [
        "The gateway listens on 127.0.0.1, port 8600.",
        "Released messages are kept in memory for a day.",
        "Requests are not logged.",
    ]
    path = write(
        "gateway: {upstream: 'http://h/v1', store: 'sqlite:///a.db', audit-log: a.jsonl}\n"
    )
    assert cli.main(["gateway", "check", path]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"Released messages are kept in {folder}/a.db.",
        f"Requests are logged in {folder}/a.jsonl.",
    ]
    assert not (folder / "a.db").exists()
    assert CANARY not in out + err


def test_keys_are_those_of_the_policy_in_the_file(folder, capsys):
    path = write("gateway: {port: 1}\npolicy: {upstream: 'http://h/v1', keys: gateway.keys}\n")
    assert cli.main(["gateway", "keys", "create", "anna", "--policy", path]) == 0
    assert (folder / "gateway.keys").exists()
    assert cli.main(["gateway", "keys", "list", "--policy", path]) == 0
    assert "anna" in capsys.readouterr().out


# ---- what is wrong ---------------------------------------------------------------------------------------------------

WRONG = {
    "gateway: {prot: 1}": "veil.yaml:1: gateway.prot: no option is named 'prot'; did you mean 'port'?",
    "gateway: {tls_cert: a}": "veil.yaml:1: gateway.tls_cert: no option is named 'tls_cert'; did you mean",
    "gateway:\n  port: high": "veil.yaml:2: gateway.port: needs N from 0 to 65535, as after --port",
    "gateway:\n  port: 70000": "veil.yaml:2: gateway.port: needs N from 0 to 65535, as after --port",
    "gateway:\n  port: true": "veil.yaml:2: gateway.port: needs N from 0 to 65535, as after --port",
    "gateway: {workers: 0}": "veil.yaml:1: gateway.workers: needs N of at least 1, as after --workers",
    "gateway: {port: 1}\nupstream: 'http://h/v1'": (
        "veil.yaml:2: upstream: write it under `gateway` or `policy`"
    ),
    "policy: {level: names}\ntls-key: a": "veil.yaml:2: tls-key: write it under `gateway`",
    "policy: {level: names}\npolcy: {}": (
        "veil.yaml:2: no option is named 'polcy'; did you mean 'policy'?"
    ),
    "gateway: {port: 1, port: 2}": "the file 'veil.yaml' has 'port' twice, in lines 1 and 1",
    "gateway: {metrics: some}": "veil.yaml:1: gateway.metrics: needs local|all|off, as after --metrics",
    "gateway: {exposed: 1}": "veil.yaml:1: gateway.exposed: must be true or false",
    "gateway: {allow-host: a}": "veil.yaml:1: gateway.allow-host: must be a list, each NAME",
    "gateway: {level: names}": "veil.yaml:1: gateway.level: write it outside of `gateway`, as protect.level",
    "gateway: 3": "veil.yaml:1: gateway must be a mapping of options",
    "gateway: {tls-cert: {file: a}}": "veil.yaml:1: gateway.tls-cert: must be a PATH",
    "gateway: {store: {fil: a}}": "veil.yaml:1: gateway.store: must be {file: PATH}",
    f"gateway: {{store-key: {CANARY}}}": (
        "veil.yaml:1: gateway.store-key: must be {file: PATH}, and never the key itself"
    ),
    "gateway: {store: {file: none}}": (
        "veil.yaml:1: gateway.store: the store's URL cannot be read from the file '.../none': No such file"
    ),
    "gateway: {store-key: {file: secrets/empty}}": (
        "veil.yaml:1: gateway.store-key: the store's key must be one line of text in the file"
    ),
    "gateway: {upstream: 'http://h/v1'}\npolicy: {upstream: 'http://h/v1'}": (
        "veil.yaml:2: policy.upstream: upstream is also in `gateway`: leave one of the two out"
    ),
    "policy: {upstream: 'http://h/v1'}\nprotect: {level: names}": (
        "veil.yaml:1: policy: a policy says how texts are protected"
    ),
    "policy:\n  kyes: 1": "veil.yaml:2: no option is named 'kyes'; did you mean 'keys'?",
    "policy: {}": "veil.yaml: the file sets nothing",
}


@pytest.mark.parametrize("content", WRONG)
def test_what_is_wrong_is_told_by_its_path(folder, capsys, content):
    secret(folder, "empty", "\n")
    path = write(content)
    for arguments in (("check", path), ("--config", path)):
        (line,) = (each.replace(str(folder), "...") for each in said(capsys, *arguments))
        assert (
            line.removeprefix("textveil: error: ")
            .replace(".../veil", "veil")
            .startswith(WRONG[content])
        )
        assert CANARY not in line


def test_check_lists_all_faults_of_a_file_at_once(folder, capsys):
    path = write(
        "gateway:\n  prot: 1\n  store: sqlite:///none/veil.db\n  audit-log: none/audit.jsonl\n"
        "policy:\n  kyes: 1\n"
    )
    lines = [line.partition("veil.yaml:")[2] for line in said(capsys, "check", path)]
    assert lines == [
        "2: gateway.prot: no option is named 'prot'; did you mean 'port'?",
        "3: gateway.store: must be a file in an existing folder",
        "4: gateway.audit-log: must be a file in an existing folder",
        "6: no option is named 'kyes'; did you mean 'keys'?",
    ]


def test_a_policy_does_not_name_itself(folder, capsys):
    (line,) = said(capsys, "--config", write("policy: veil.yaml\n"))
    assert line.endswith("has no policy: write `policy:`, with its fields or the name of its file")


def test_a_policy_is_ignored_by_no_other_verb(folder, capsys):
    path = write("gateway: {port: 1}\nprotect: {level: names}\n")
    assert cli.main(["protect", "Ask Maria Silva", "--config", path]) == 0
    path = write("policy: {level: names}\n")
    assert cli.main(["protect", "Ask Maria Silva", "--config", path]) == 2
    assert "'policy'" in capsys.readouterr().err


# ---- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read from the file '.*': No such file or directory"),
        (f"{CANARY}\n{CANARY}\n", "must be one line of text in the file"),
        (b"\xff\xfe" + CANARY.encode(), "must be one line of text in the file"),
        (CANARY * 1_000, "must be one line of text in the file"),
        (" \n", "must be one line of text in the file"),
    ],
)
def test_a_secret_that_is_none_is_not_shown(tmp_path, content, says):
    path = str(tmp_path / "none") if content is None else secret(tmp_path, "a", content)
    with pytest.raises(ConfigError, match=f"the secret {says}") as caught:
        read_secret_file(path, "the secret")
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_end_of_the_line_is_dropped(tmp_path, end):
    assert read_secret_file(secret(tmp_path, "a", CANARY + end), "it") == CANARY


@pytest.mark.posix
def test_who_can_read_a_secret_is_said_unless_it_was_mounted(tmp_path, monkeypatch):
    path = secret(tmp_path, "a", CANARY, 0o644)
    with pytest.warns(TextveilWarning, match="everybody on this machine can read the file"):
        read_secret_file(path, "it")
    (tmp_path / "secrets" / "..data").mkdir()  # as Kubernetes mounts them
    assert read_secret_file(path, "it") == CANARY
    (tmp_path / "secrets" / "..data").rmdir()
    monkeypatch.setattr(secret_files, "MOUNT_FOLDERS", (f"{tmp_path}/",))
    assert read_secret_file(path, "it") == CANARY


def test_variables_name_files(tmp_path):
    path = secret(tmp_path, "a", f"{CANARY}\n")
    assert read_secret_variable("A", {"A_FILE": path}) == CANARY
    assert read_secret_variable("A", {"A": "b", "A_FILE": ""}) == "b"
    assert read_secret_variable("A", {}) is None
    with pytest.raises(ConfigError, match="set A or A_FILE, not both"):
        read_secret_variable("A", {"A": "b", "A_FILE": path})


def test_the_store_and_its_key_come_from_files(folder, monkeypatch, capsys):
    monkeypatch.delenv("TEXTVEIL_STORE")
    monkeypatch.setenv("TEXTVEIL_STORE_FILE", str(folder / "secrets" / "url"))
    monkeypatch.setenv("TEXTVEIL_STORE_KEY_FILE", str(folder / "secrets" / "key"))
    assert cli.main(["protect", "Ask anna@example.org", "--session", "anna"]) == 0
    assert cli.main(["session", "list"]) == 0
    assert "anna/default" in capsys.readouterr().out
    monkeypatch.setenv("TEXTVEIL_STORE_KEY_FILE", secret(folder, "key", "00" * 32))
    assert cli.main(["session", "list"]) == 2
    err = capsys.readouterr().err
    assert CANARY not in err
    assert KEY not in err


def shown(capsys, *arguments):
    """All that a verb prints."""
    cli.main(["gateway", *arguments])
    return "".join(capsys.readouterr())


@pytest.mark.parametrize("broken", [False, True])
def test_no_secret_is_shown(folder, capsys, monkeypatch, broken):
    """Not in the help, whose defaults the file gives, and in no error; one that quoted the file would show it."""
    if broken:
        monkeypatch.setattr(secret_files, "quote_file", lambda path: Path(path).read_text())
    path = write(WHOLE)
    printed = shown(capsys, "--config", path, "--help-all") + shown(capsys, "check", path)
    printed += shown(capsys, "--config", path, "--workers", "2", "--store", "memory:")
    for name in ("url", "credential", "key"):
        secret(folder, name, f"{CANARY}\n\n{CANARY}\n")
        printed += shown(capsys, "check", path) + shown(capsys, "--config", path)
    assert (CANARY[:12] in re.sub(r"[\s│]", "", printed)) == broken
