"""The verb restore, and sessions on the disk: private files, whole or as they were; nothing of them in an error."""

import errno
import io
import json
import os
import signal
import stat
import subprocess
import sys

import pytest

from textveil import cli
from textveil.errors import InputError, OutputError
from textveil.pipeline import privatizer
from textveil.session import session_file
from textveil.session.state import Session

CANARY = "Zyxqorvian"
PLACEHOLDER = ("--mechanism", "placeholder")


@pytest.fixture(autouse=True)
def environment(monkeypatch, small_table):
    for name in list(os.environ):
        if name.startswith("TEXTVEIL_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: small_table)


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = cli.main(list(map(str, arguments)))
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "letter.session"


def refused(outcome, says, code=2):
    assert outcome[:2] == (code, "")
    assert outcome[2].startswith("textveil: error: ")
    assert outcome[2].count("\n") == 1
    assert says in outcome[2]
    assert CANARY.lower() not in outcome[2].lower()


def filled():
    session = Session("me")
    with session.noting() as notes:
        notes.assign_placeholder("PERSON", CANARY)
        notes.assign_placeholder("EMAIL", 'a"b@c')
        notes.add_replacement("Łódź", "New York")
        notes.add_plain_words(["river"])
        notes.reserve_names("the <card_1> of a text")
        notes.reuse_rows("a law", [("stone", "other"), ("stone", "public")], [3, -1])
    return session


# ---- there and back ------------------------------------------------------------------------------------------------


def test_there_and_back(run, path):
    code, out, _ = run("privatize", f"{CANARY} owes Anna 9 pounds", *PLACEHOLDER, "--session", path)
    assert (code, out) == (0, "<WORD_1> <WORD_2> <WORD_3> <WORD_4> <WORD_5>\n")
    assert run("restore", "Dear <WORD_1>,", "--session", path) == (0, f"Dear {CANARY},\n", "")


def test_a_session_and_an_output_may_be_in_one_folder(run, path):
    out = path.with_name("out.txt")
    text = f"{CANARY} owes Anna 9 pounds"
    assert run("privatize", text, *PLACEHOLDER, "--session", path, "--output", out)[0] == 0
    assert out.read_text() == "<WORD_1> <WORD_2> <WORD_3> <WORD_4> <WORD_5>\n"
    assert run("restore", "Dear <WORD_1>,", "--session", path)[1] == f"Dear {CANARY},\n"


def test_a_session_is_continued(run, path):
    run("privatize", f"river {CANARY}", *PLACEHOLDER, "--session", path)
    code, out, _ = run("privatize", f"{CANARY} meadow", *PLACEHOLDER, "--session", path)
    assert (code, out) == (0, "<WORD_2> <WORD_3>\n")
    assert (
        run("restore", "<WORD_1> <WORD_2> <WORD_3>", "--session", path)[1]
        == f"river {CANARY} meadow\n"
    )


def test_lines_and_json_share_the_session(run, path):
    content = f"{CANARY}\nriver {CANARY}\n".encode()
    assert (
        run("privatize", "-", *PLACEHOLDER, "--session", path, stdin=content)[1]
        == "<WORD_1>\n<WORD_2> <WORD_1>\n"
    )
    out = run("privatize", "meadow", *PLACEHOLDER, "--session", path, "--json")[1]
    assert json.loads(out)["text"] == "<WORD_3>"


def test_a_stream_is_restored_as_it_stands(run, path):
    session_file.save(filled(), path)
    answer = "\ufeffDear <PERSON_1>,\r\n\r\n\tNEW YORK <PERSON_2>\n\n".encode()
    assert (
        run("restore", "-", "--session", path, stdin=answer)[1]
        == f"\ufeffDear {CANARY},\r\n\r\n\tŁÓDŹ <PERSON_2>\n\n"
    )
    assert run("restore", "-", "--session", path, stdin=b"")[1] == ""
    file = path.with_name("answer.txt")
    file.write_bytes(b"New York")
    assert run("restore", file, "--session", path)[1] == "Łódź"


def test_json(run, path):
    session_file.save(filled(), path)
    content = b'{"a": "\\u003cEMAIL_1\\u003e\\nNew York"}'
    out = run("restore", "-", "--session", path, "--json-escape", stdin=content)[1]
    assert json.loads(out) == {"a": 'a"b@c\nŁódź'}


def test_what_is_left_in_targets_is_told(run, path):
    session_file.save(filled(), path)
    code, out, err = run("restore", "<PERSON_1> ![](//x.org/<PERSON_1>)", "--session", path)
    assert (code, out) == (0, f"{CANARY} ![](//x.org/<PERSON_1>)\n")
    assert err.startswith("textveil: 1 placeholder or name was left as sent, in addresses that")
    everywhere = run(
        "restore", "![](//x.org/<PERSON_1>)", "--session", path, "--where", "everywhere"
    )
    assert everywhere == (0, f"![](//x.org/{CANARY})\n", "")


@pytest.mark.slow
def test_what_comes_is_restored_at_once(path):
    """Each line of a stream is out before the next one comes."""
    session_file.save(filled(), path)
    command = [sys.executable, "-m", "textveil", "restore", "-", "--session", str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(b"Dear <PERSON_1>\n")
            assert process.stdout.readline().decode() == f"Dear {CANARY}\n"
        process.stdin.close()
        assert process.wait(60) == 0


# ---- the file ------------------------------------------------------------------------------------------------------


def test_the_file_is_for_its_owner_only(run, path):
    run("privatize", CANARY, *PLACEHOLDER, "--session", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    run("privatize", "river", *PLACEHOLDER, "--session", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_everything_is_kept(path):
    session = filled()
    session_file.save(session, path)
    loaded = session_file.load(path)
    assert loaded.owner == "me"
    assert loaded.to_json() == session.to_json()
    text = "<PERSON_1> <EMAIL_1> New York"
    assert loaded.restore(text) == session.restore(text) == f'{CANARY} a"b@c Łódź'
    keys = [("Stone", "other"), ("stone", "public"), ("x", "other")]
    with loaded.noting() as notes:
        assert notes.reuse_rows("a law", keys, [7, 8, 9]) == [3, -1, 9]
        assert notes.reuse_rows("another law", [("stone", "other")], [7]) == [7]
        assert notes.assign_placeholder("PERSON", "other") == "<PERSON_2>"
        assert notes.assign_placeholder("EMAIL", 'A"B@C') == "<EMAIL_1_B>"
        assert notes.assign_placeholder("CARD", "other") == "<CARD_2>", (
            "the text spelled <CARD_1> itself"
        )
        notes.add_replacement("Anna", "New York")
        notes.add_replacement("Berta", "River")
    assert loaded.restore("New York River") == "New York River"


def test_earlier_versions_are_read(path):
    """They compared values without case alone; the first did not hold what a text had spelled itself."""
    session = filled()
    first = json.loads(session.to_json())
    added = ("private", "targets", "hosts", "stood")
    for each in first["placeholders"]:
        del each["part"], each["form"]
    old = {name: value for name, value in first.items() if name not in added} | {
        "version": 2,
        "spelled": ["<CARD_1>"],
    }
    older = {name: value for name, value in old.items() if name != "spelled"} | {"version": 1}
    for content, spelled in ((old, ["CARD_1"]), (older, [])):
        path.write_text(json.dumps(content))
        loaded = session_file.load(path)
        assert loaded.restore("<PERSON_1> <EMAIL_1> New York") == f'{CANARY} a"b@c Łódź'
        again = json.loads(loaded.to_json())
        assert (again["version"], again["spelled"], again["targets"]) == (6, spelled, [])
        assert {each["text"] for each in again["private"]} == {CANARY, 'a"b@c', "Łódź"}, (
            "they are hidden from now on"
        )
        assert again["placeholders"] == json.loads(session.to_json())["placeholders"]
        assert again["replacements"] == first["replacements"]


DAMAGED = {
    "empty": lambda text: "",
    "cut": lambda text: text[:-20],
    "not JSON": lambda text: f"{CANARY} {text}",
    "a list": lambda text: "[]",
    "another version": lambda text: text.replace('"version": 6', '"version": 7').replace(
        '"version":6', '"version":7'
    ),
    "another format": lambda text: text.replace("textveil session", "session"),
    "a field more": lambda text: text.replace('"owner"', '"more": 1, "owner"'),
    "a field less": lambda text: text.replace('"said"', '"unsaid"'),
    "a number as text": lambda text: text.replace('"number": 1', '"number": "1"').replace(
        '"number":1', '"number":"1"'
    ),
    "a type that is none": lambda text: text.replace("PERSON", ""),
    "two values of one placeholder": lambda text: text.replace("EMAIL", "PERSON"),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_session_is_refused(run, path, damage):
    session_file.save(filled(), path)
    whole = path.read_text(encoding="utf-8")
    damaged = damage(whole)
    assert damaged != whole
    path.write_text(damaged, encoding="utf-8")
    for outcome in (
        run("restore", "<PERSON_1>", "--session", path),
        run("privatize", "river", *PLACEHOLDER, "--session", path),
    ):
        refused(outcome, "session file")
    assert path.read_text(encoding="utf-8") == damaged
    with pytest.raises(InputError) as raised:
        session_file.load(path)
    assert raised.value.__context__ is None


def test_files_that_are_refused(run, path, tmp_path):
    refused(run("restore", "<WORD_1>", "--session", path), "the session file cannot be read")
    refused(run("restore", "<WORD_1>", "--session", tmp_path), "the session file cannot be read")
    refused(run("restore", "<WORD_1>"), "--session")
    where = "--session must name a file in an existing folder"
    refused(run("privatize", CANARY, *PLACEHOLDER, "--session", tmp_path), where)
    refused(run("privatize", CANARY, *PLACEHOLDER, "--session", tmp_path / "no" / "x"), where)
    letters = tmp_path / "letters.txt"
    letters.write_text(f"{CANARY}\n")
    folder = f"{tmp_path}/out/"
    refused(
        run("protect", letters, *PLACEHOLDER, "--output", folder, "--session", path),
        "for whole files and folders use",
    )
    refused(
        run("privatize", CANARY, *PLACEHOLDER, "--output", path, "--session", path),
        "must be different files",
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["letters.txt"]


def test_bytes_that_are_not_utf_8(run, path):
    session_file.save(filled(), path)
    code, out, err = run("restore", "-", "--session", path, stdin=b"x \xff")
    assert (code, out, err) == (
        2,
        "",
        "textveil: error: the answer is not UTF-8; decode it first\n",
    )


def test_a_failure_before_anything_was_released_leaves_no_session(run, path):
    refused(
        run("privatize", CANARY, "--mechanism", "noise", "--epsilon", "-1", "--session", path),
        "epsilon",
    )
    assert not path.exists()


def test_a_failure_later_releases_nothing(run, path):
    """Nothing goes out before the session that leads back is on the disk."""
    lines = b"river stone\n" * privatizer.BATCH_TEXTS + b"\xff\n"
    code, out, _ = run("privatize", "-", "--lines", *PLACEHOLDER, "--session", path, stdin=lines)
    assert (code, out) == (2, "")


def test_a_session_that_cannot_be_saved_releases_nothing(run, path, monkeypatch):
    def full(*_: object) -> None:
        raise OutputError("the session file cannot be written: No space left on device")

    monkeypatch.setattr(session_file, "save", full)
    code, out, err = run("privatize", CANARY, *PLACEHOLDER, "--session", path)
    assert (code, out) == (2, "")
    assert "No space left" in err


def test_a_full_disk_names_the_session_file(run, path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    says = "the session file cannot be written: No space left on device"
    refused(run("privatize", CANARY, *PLACEHOLDER, "--session", path), says)


def test_a_folder_that_takes_no_files_names_the_session_file(run, path, monkeypatch):
    opened = os.open

    def refuse(name: str, *rest: int) -> int:
        if str(name).endswith(".part"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(name, *rest)

    monkeypatch.setattr(os, "open", refuse)
    refused(
        run("privatize", CANARY, *PLACEHOLDER, "--session", path),
        "the session file cannot be written: Permission",
    )


@pytest.mark.parametrize(
    "text", [b"", b"to a@example.org", b"to a@example.org\n", b"to a@example.org\r\n\n\n"]
)
def test_a_whole_file_comes_back_to_the_byte(run, path, tmp_path, text):
    (tmp_path / "letter.txt").write_bytes(text)
    output, lean = tmp_path / "sent.txt", ("-o", "protect.detectors=patterns")
    for given, stdin in ((tmp_path / "letter.txt", None), ("-", text)):
        code, *_ = run("protect", given, *lean, "--session", path, "--output", output, stdin=stdin)
        assert code == 0
        assert run("restore", output, "--session", path)[1].encode() == text
    assert run("protect", "to a@example.org", *lean)[1] == "to <EMAIL_1>\n"


def test_what_has_no_end_is_no_session(run):
    refused(run("restore", "<WORD_1>", "--session", "/dev/zero"), "not a regular file")
    refused(run("privatize", CANARY, *PLACEHOLDER, "--session", "/dev/full"), "not a regular file")


def test_two_processes_cannot_lose_what_the_other_knows(path):
    session_file.save(filled(), path)

    def at_once():
        with session_file.open_session(path) as session:
            with session.noting() as notes:
                notes.assign_placeholder("WORD", "one")
            session_file.save(Session("other"), path)

    with pytest.raises(OutputError, match="one process at a time"):
        at_once()
    assert session_file.load(path).owner == "other"


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(getattr(signal, "SIGHUP", 0), marks=pytest.mark.posix)]
)
def test_a_signal_keeps_what_was_released(path, number):
    def interrupted():
        with session_file.open_session(path) as session:
            with session.noting() as notes:
                notes.assign_placeholder("WORD", "one")
            os.kill(os.getpid(), number)

    with pytest.raises(SystemExit):
        interrupted()
    assert session_file.load(path).restore("<WORD_1>") == "one"


# ---- help ----------------------------------------------------------------------------------------------------------


def test_the_examples_work(run, tmp_path, monkeypatch):
    import shlex

    monkeypatch.chdir(tmp_path)
    code, out, _ = run("restore", "--help")
    assert code == 0
    examples = [
        line.strip() for line in out.split("Examples:\n", 1)[1].split("\n\n")[0].splitlines()
    ]
    assert len(examples) == 3
    for example in examples:
        source, _, line = example.rpartition(" | ")
        stdin = shlex.split(source)[1].replace("\\n", "\n").encode() if source else b""
        lean = (
            ("-o", "protect.detectors=patterns", "-o", "names.types=none")
            if " protect " in line
            else ()
        )
        code, out, _ = run(*shlex.split(line)[1:], *lean, stdin=stdin)
        assert code == 0
    assert out == "I wrote to maria@example.org.\n"
