"""The verb chat: answers go out restored, what was sent and its statement beside them, the transcript to its owner."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from textveil import cli
from textveil.pipeline import privatizer

CANARY = "Quazzeltrin"


@pytest.fixture(autouse=True)
def environment(monkeypatch, small_table):
    for name in list(os.environ):
        if name.startswith("TEXTVEIL_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: small_table)


@pytest.fixture
def run(openai_server, monkeypatch, capsys):
    """The verb in this process: exit code, standard output, standard error."""

    def run(
        *arguments, model="echo", stdin=None, terminal=False, how=("--mechanism", "placeholder")
    ):
        stream = io.TextIOWrapper(io.BytesIO(stdin or b""), encoding="utf-8")
        monkeypatch.setattr(stream, "isatty", lambda: terminal)
        monkeypatch.setattr(sys, "stdin", stream)
        code = cli.main(["chat", "--upstream", openai_server, "--model", model, *how, *arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def journal(openai_server):
    """All that the upstream was asked, as one text."""

    def read():
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(openai_server.removesuffix("/v1") + "/journal") as answer:
            return answer.read().decode()

    return read


def test_a_prompt_and_its_answer(run, journal):
    code, out, err = run(f"{CANARY} is it Köln?", model="characters")
    assert (code, out) == (0, f"{CANARY} is it Köln?\n")
    sent, *statement = err.splitlines()
    assert sent == "<WORD_1> is it <WORD_2>?"
    assert statement == [
        "2 words replaced; the rest is in lower case, and nothing is claimed about it."
    ]
    assert CANARY not in err
    assert CANARY.lower() not in journal().lower()


def test_what_was_sent_can_be_hidden(run):
    _, _, shown = run(f"{CANARY} is ill")
    _, _, hidden = run(f"{CANARY} is ill", "--hide-sent")
    assert shown.splitlines()[0] == "<WORD_1> is <WORD_2>"
    assert shown.splitlines()[1:] == hidden.splitlines()


def test_the_profile_where_nothing_says_how(run, monkeypatch):
    """The profile chat but for what needs large models and tables: it lets words pass that no detector finds."""
    prompt, lean = (
        "Jarndyce is at anna@example.org",
        ("-o", "protect.detectors=[patterns]", "-o", "names.types=[]"),
    )
    code, out, err = run(prompt, *lean, how=())
    assert (code, out) == (0, f"{prompt}\n")
    assert err.splitlines()[0] == "Jarndyce is at <EMAIL_1>"
    for how in (
        ("-o", "mechanism.name=placeholder"),
        ("--profile", "paper-noise"),
        ("--mechanism", "placeholder"),
    ):
        assert "Jarndyce" not in run(prompt, *lean, how=how)[2]
    monkeypatch.setenv("TEXTVEIL_MECHANISM__NAME", "placeholder")
    assert "Jarndyce" not in run(prompt, how=())[2]


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_a_pipe_is_one_prompt(run, arguments):
    code, out, err = run(*arguments, stdin=f"we are\n{CANARY}\n".encode())
    assert (code, out) == (0, f"we are\n{CANARY}\n")
    assert err.startswith("we are\n<WORD_1>\n")


def test_what_the_model_is_told_before(run, journal):
    code, _, err = run("x", "--system", f"{CANARY} Jarndyce Tulkinghorn is it")
    assert code == 0
    assert err.startswith("<WORD_1> <WORD_2> <WORD_3> is it\n")
    assert (
        len(re.findall(r"words? replaced; the rest is in lower case", err)) == 2
    )  # said of each release
    messages = [entry["body"]["messages"] for entry in json.loads(journal())]
    assert [
        {"role": "system", "content": "<WORD_1> <WORD_2> <WORD_3> is it"},
        {"role": "user", "content": "<WORD_4>"},
    ] in messages


def test_a_terminal_asks_for_one_prompt_after_the_other(run, journal):
    code, out, err = run(stdin=f"{CANARY}\n\n  \nis {CANARY} Quillimar\n".encode(), terminal=True)
    assert (code, out) == (0, f"{CANARY}\nis {CANARY} Quillimar\n")
    assert "is <WORD_1> <WORD_2>" in err  # one session
    assert err.count("> ") >= 5
    messages = [entry["body"]["messages"] for entry in json.loads(journal())]
    assert [message["content"] for message in messages[-1]] == [
        "<WORD_1>",
        "<WORD_1>",
        "is <WORD_1> <WORD_2>",
    ]


def test_a_statement_says_what_is_sent_again(run):
    _, _, err = run(
        "--statement", "--system", "be brief", stdin=b"one\ntwo\nthree\n", terminal=True
    )
    assert err.count("This is for one release; repeated releases add up.") == 4
    assert re.findall(
        r"(\d) earlier messages are sent again: drawn once, released again, spent once", err
    ) == [
        "2",
        "3",
    ]


def test_after_a_failure_a_conversation_goes_on(run):
    code, out, err = run("--timeout", "20", model="fail-once", stdin=b"", terminal=True)
    assert (code, out) == (0, "")
    code, out, err = run(
        model="breaks-off", stdin=f"{CANARY} is it so\nwhat else is it\n".encode(), terminal=True
    )
    assert (code, out) == (0, f"{CANARY} is \nwhat else \n")
    assert (
        len(
            re.findall(
                r"textveil: error: the endpoint 127.0.0.1:\d+ broke off in the middle of its answer",
                err,
            )
        )
        == 2
    )


def test_the_transcript_is_private_and_has_both_sides(run, tmp_path):
    path = tmp_path / "turns.jsonl"
    os.umask(os.umask(0o022))
    run(f"{CANARY} is\u2028ill", "--transcript", str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    code, _, _ = run(f"{CANARY} is it so", "--transcript", str(path), model="breaks-off")
    assert code == 2
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert (first["prompt"], first["sent"]) == (
        f"{CANARY} is\u2028ill",
        "<WORD_1> is\u2028<WORD_2>",
    )
    assert (first["received"], first["answer"], first["whole"]) == (
        first["sent"],
        first["prompt"],
        True,
    )
    assert first["guarantee"]["mechanism"] == "placeholder"
    assert (second["received"], second["answer"], second["whole"]) == (
        "<WORD_1> is ",
        f"{CANARY} is ",
        False,
    )


@pytest.mark.posix
def test_a_transcript_that_others_can_read_is_closed_to_them(run, tmp_path):
    path = tmp_path / "turns.jsonl"
    path.write_text('{"before": 1}\n')
    path.chmod(0o644)
    run("x", "--transcript", str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_text().splitlines()) == 2


def test_a_device_as_transcript_is_left_as_it_is(run):
    before = os.stat("/dev/null").st_mode
    assert run("x", "--transcript", "/dev/null")[0] == 0
    assert os.stat("/dev/null").st_mode == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((CANARY, "--timeout", "0"), "timeout must be greater than 0"),
        ((CANARY, "--timeout", CANARY), "--timeout needs SECONDS"),
        ((CANARY, "--upstream", f"http://{CANARY}@host/v1"), "must not hold a name or password"),
        ((CANARY, "--mechanism", "no-such"), "no mechanism is named"),
        ((CANARY, "--transcript", "/no/such/folder/turns"), "the output cannot be written"),
        ((CANARY, "-o", "words.oov=error"), "outside the table"),
        ((CANARY, CANARY), "takes one argument"),
        ((" ",), "a prompt must not be empty"),
    ],
)
def test_errors_are_one_line_and_nothing_is_sent(run, journal, arguments, says):
    before = journal()
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"textveil: error: .*{says}.*\n", err), err
    assert CANARY.lower() not in err.lower()
    assert journal() == before


@pytest.mark.parametrize("model", ["fail-500", "unauthorized", "missing", "reports", "empty"])
def test_failures_of_the_model_repeat_nothing(run, model):
    code, out, err = run(CANARY, "--hide-sent", model=model)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("textveil: error: the endpoint 127.0.0.1:")
    assert CANARY.lower() not in err.lower()


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_and_keeps_the_turn(openai_server, tmp_path):
    """A real terminal: the answer never ends, and the interrupt comes while it is printed."""
    path = tmp_path / "turns.jsonl"
    command = [
        sys.executable,
        "-m",
        "textveil",
        "chat",
        "--upstream",
        openai_server,
        "--model",
        "endless",
    ]
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*command, "--mechanism", "placeholder", "--transcript", str(path)],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(slave)
        os.write(master, f"{CANARY}\n".encode())
        assert process.stdout is not None
        assert process.stdout.read(len(CANARY)) == CANARY
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    os.close(master)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert CANARY not in err
    (line,) = map(json.loads, path.read_text().splitlines())
    assert not line["whole"]
    assert line["answer"].startswith(CANARY)
    assert line["received"].startswith("<WORD_1> <WORD_1>")
