"""protect --check: places in files and never values; what a baseline accepts; exit status; the hook and the action."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from textveil import cli
from textveil.corpus import check
from textveil.pipeline import Protector, privatizer

ROOT = Path(__file__).parents[2]
CANARY = "zyxqorvian@firma.org"
LEAN = ("-o", "protect.detectors=patterns")


@pytest.fixture(autouse=True)
def folder(monkeypatch, small_table, tmp_path):
    monkeypatch.setattr(privatizer, "load_table", lambda *_, **__: small_table)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = cli.main(["protect", "--check", *map(str, arguments), *LEAN])
        out, err = capsys.readouterr()
        assert CANARY not in out + err
        return code, out, err

    return run


def test_places_are_printed_and_the_exit_status_says_whether_there_are_any(run, folder):
    (folder / "a.txt").write_bytes(f"one\r\nWrite to {CANARY} <EMAIL_1>\n{CANARY}".encode())
    (folder / "b").mkdir()
    (folder / "b" / "c.py").write_text(f'# now\nAUTHOR = "{CANARY}"\n')
    (folder / "b" / ".hidden").write_text(CANARY)
    (folder / "clean.md").write_text("Nothing here.\n")
    code, out, err = run("a.txt", "b", "clean.md", "a.txt")
    assert (code, out) == (1, "a.txt:2:10: EMAIL\na.txt:3:1: EMAIL\nb/c.py:2:11: EMAIL\n")
    assert err.startswith(
        "3 files checked, 1 hidden file or folder not: 3 private values in 2 files. "
    )
    code, out, err = run("clean.md")
    assert (code, out) == (0, "")
    assert err.startswith("1 file checked: nothing was found; ")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text(CANARY)
    (folder / ".env").write_text(CANARY)
    assert run(".")[2].startswith("3 files checked, 3 hidden files or folders not: ")
    assert run(".env")[:2] == (1, ".env:1:1: EMAIL\n")


def test_bytes_of_other_encodings_are_checked_and_binary_files_named(run, folder):
    (folder / "latin.txt").write_bytes("René\n".encode("latin-1") + CANARY.encode())
    (folder / "wide.txt").write_text(f"René\n{CANARY}", encoding="utf-16")
    (folder / "wider.txt").write_text(f"René\n{CANARY}", encoding="utf-32")
    (folder / "mark.txt").write_text(f"\ufeff{CANARY}", encoding="utf-8")
    (folder / "a.bin").write_bytes(CANARY.encode() + b"\0")
    (folder / "a.csv.gz").write_bytes(b"\x1f\x8b")
    (folder / "empty").write_bytes(b"")
    code, out, err = run(".")
    assert (code, out) == (
        1,
        "latin.txt:2:1: EMAIL\nmark.txt:1:1: EMAIL\nwide.txt:2:1: EMAIL\nwider.txt:2:1: EMAIL\n",
    )
    assert err.count("is binary or compressed, and not checked\n") == 2
    assert "5 files checked: 4 private values in 4 files." in err


@pytest.mark.parametrize("joint", ["\n", " "])
def test_a_long_file_is_read_in_pieces_and_nothing_is_cut_in_two(folder, monkeypatch, joint):
    """Wherever the pieces end, each value is found once, at the same place."""
    text = joint.join(f"word {CANARY}" if i % 3 else "word" for i in range(60))
    (folder / "a.txt").write_text(text)
    protector = Protector(protect={"detectors": ["patterns"]})

    def list_places():
        ((file, places),) = check.find_places(protector, ["a.txt"])
        assert file == "a.txt"
        return [place.to_json() for place in places]

    whole = list_places()
    assert len(whole) == 40
    monkeypatch.setattr(check, "OVERLAP_CHARACTERS", 60)
    for size in (97, 100, 113):
        monkeypatch.setattr(check, "PIECE_CHARACTERS", size)
        assert len(list(check.read_pieces("a.txt"))) > 5
        assert list_places() == whole
    monkeypatch.setattr(check, "OVERLAP_CHARACTERS", 0)
    assert list_places() != whole, "pieces that do not overlap cut values in two"


def test_later_pieces_are_read_under_the_names_of_columns(folder, monkeypatch):
    """A row far below its header is found as in a short file, with its own place."""
    rows = "".join(f"{i},,,is ok\n" for i in range(100)) + "9001,Stone,84213377,is ok\n"
    (folder / "a.csv").write_text(f"id,last_name,patient_id,status\n{rows}")
    protector = Protector("prompt")

    def list_places():
        ((_, places),) = check.find_places(protector, ["a.csv"])
        return {place.line: place.column for place in places if place.type == "MEDICAL_RECORD"}

    whole = list_places()
    assert whole == {102: 12}
    monkeypatch.setattr(check, "PIECE_CHARACTERS", 400)
    monkeypatch.setattr(check, "OVERLAP_CHARACTERS", 100)
    assert list_places() == whole
    monkeypatch.setattr(check, "_find_head", lambda _: "")
    assert list_places() != whole, "without its header a number is no record"


def test_encoded_data_is_not_cut_in_two(folder, monkeypatch):
    filler = b"nothing here to see " * 20
    for i in range(4):
        text = filler + b" " * i + CANARY.encode() + b" " + filler
        (folder / f"{i}.txt").write_text("see " + base64.b64encode(text).decode() + "\nthe end")
    protector = Protector(protect={"detectors": ["patterns"]})
    monkeypatch.setattr(check, "PIECE_CHARACTERS", 546)
    monkeypatch.setattr(check, "OVERLAP_CHARACTERS", 60)

    def list_lines():
        results = check.find_places(protector, [f"{i}.txt" for i in range(4)])
        return [place.line for _, places in results for place in places]

    assert list_lines() == [1] * 4
    monkeypatch.setattr(check, "_may_end", lambda _: True)
    assert list_lines() != [1] * 4, "half of it tells nothing to a decoder"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
def test_all_that_a_pipe_gives_is_checked(run, folder):
    """As of `--check <(command)`: what was read to see its encoding is not lost."""
    os.mkfifo("pipe")
    writer = threading.Thread(target=(folder / "pipe").write_text, args=(f"{CANARY}\n",))
    writer.start()
    assert run("pipe")[:2] == (1, "pipe:1:1: EMAIL\n")
    writer.join()


def test_the_other_forms(run, folder):
    name = "b,c: 50%.txt"
    (folder / name).write_text(f"é {CANARY}")
    code, out, _ = run(name, "--json")
    place = {"file": name, "line": 1, "column": 3, "end_line": 1, "end_column": 23, "type": "EMAIL"}
    assert (code, json.loads(out)) == (1, place)
    assert run(name, "--report", "json")[1] == out
    code, out, _ = run(name, "--report", "github")
    assert code == 1
    assert out.startswith("::error file=b%2Cc%3A 50%25.txt,line=1,col=3,endColumn=23,title=")
    code, out, _ = run(name, "--report", "sarif", "--output", "a.sarif")
    assert (code, out) == (1, "")
    report = json.loads((folder / "a.sarif").read_text())
    (result,) = report["runs"][0]["results"]
    (where,) = result["locations"]
    assert report["version"] == "2.1.0"
    assert report["runs"][0]["columnKind"] == "unicodeCodePoints"
    assert result["ruleId"] == report["runs"][0]["tool"]["driver"]["rules"][0]["id"] == "EMAIL"
    assert unquote(where["physicalLocation"]["artifactLocation"]["uri"]) == name
    assert where["physicalLocation"]["region"] == {
        "startLine": 1, "startColumn": 3, "endLine": 1, "endColumn": 23,
    }  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_a_name_with_a_line_end_forges_no_line(run, folder):
    name = b"a\n\xff\x1b[1m.txt"
    (folder / os.fsdecode(name)).write_text(CANARY)
    assert run(".")[1] == "a\\x0a\\xff\\x1b[1m.txt:1:1: EMAIL\n"
    assert run(".", "--report", "github")[1].count("\n") == 1
    assert "a%0A%FF%1B%5B1m.txt" in run(".", "--report", "sarif")[1]


# ---- the baseline --------------------------------------------------------------------------------


def test_a_baseline_accepts_places_and_new_ones_are_reported(run, folder):
    file, baseline = folder / "a.csv", folder / "accepted.json"
    file.write_text(f"id,mail\n1,{CANARY}\n2,{CANARY}\n")
    code, _, err = run("a.csv", "--baseline", baseline, "--accept")
    assert (code, err) == (0, "2 places accepted in 1 file.\n")
    code, _, err = run("a.csv", "--baseline", baseline)
    assert (code, err.partition(";")[0]) == (
        0,
        "1 file checked: nothing new, and 2 places accepted",
    )
    # lines move, another is added
    file.write_text(f"id,mail\n0,none\n1,{CANARY}\n2,{CANARY}\n3,new@firma.org\n")
    code, out, err = run("a.csv", "--baseline", baseline)
    assert (code, out) == (1, "a.csv:5:3: EMAIL\n")
    assert err.startswith(
        "1 file checked: 1 private value in 1 file, and 2 places accepted. `textveil find FILE`"
    )
    # in a place that reads otherwise, a value is not accepted
    file.write_text(f"name,mail\nOlga,{CANARY}\n")
    assert run("a.csv", "--baseline", baseline)[0] == 1
    # more of the same are not
    file.write_text(f"1,{CANARY}\n1,{CANARY}\n")
    assert run("a.csv", "--baseline", baseline)[:2] == (1, "a.csv:2:3: EMAIL\n")
    # other files keep what was accepted, files that are gone do not
    (folder / "b.txt").write_text(CANARY)
    assert run("b.txt", "--baseline", baseline, "--accept")[0] == 0
    assert [*json.loads(baseline.read_text())["files"]] == ["a.csv", "b.txt"]
    file.unlink()
    assert run("b.txt", "--baseline", baseline, "--accept")[0] == 0
    assert [*json.loads(baseline.read_text())["files"]] == ["b.txt"]


def test_nothing_in_a_baseline_follows_from_a_value(run, folder, monkeypatch):
    """Two files that differ in values alone have one baseline; a digest of the value would tell them apart."""

    def write(value):
        (folder / "a.txt").write_text(f"one\ncall {value} and {CANARY}\n")
        assert run("a.txt", "--baseline", "accepted.json", "--accept")[0] == 0
        return (folder / "accepted.json").read_text()

    first = write("+1 202 555 0136")
    assert len(json.loads(first)["files"]["a.txt"]) == 2
    assert write("+49 30 901820") == first
    contexts = {key.split()[1] for key in json.loads(first)["files"]["a.txt"]}
    assert len(contexts) == 1, "8 bits of each would be enough to confirm a guess at the line"
    monkeypatch.setattr(
        check, "_digest_context", lambda text, finding, _: text[finding.start : finding.end][-2:]
    )
    assert write("+1 202 555 0136") != first


def test_a_baseline_counts_from_its_own_folder(run, folder, monkeypatch):
    (folder / "docs").mkdir()
    (folder / "docs" / "a.txt").write_text(CANARY)
    assert run("docs", "--baseline", "accepted.json", "--accept")[0] == 0
    monkeypatch.chdir(folder / "docs")
    assert run("a.txt", "--baseline", "../accepted.json")[0] == 0


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--check needs files or folders"),
        (("-",), "--check needs files or folders"),
        (("a.txt", "--accept"), "--accept needs --baseline"),
        (("a.txt", "--baseline", "none.json"), "there is no baseline 'none.json'; --accept"),
        (("a.txt", "--baseline", "a.txt"), "must be a file that --accept wrote"),
        (("b.txt",), "no such file, 'b.txt'; did you mean 'a.txt'?"),
        (("a.txt", "--session", "s", "--diff"), "leave out --session, --diff"),
        (("a.txt", "--report", "xml"), "--report needs lines|json|github|sarif"),
    ],
)
def test_errors_are_one_line_and_status_2(run, folder, arguments, message):
    (folder / "a.txt").write_text(CANARY)
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_an_unforeseen_error_does_not_look_like_a_finding(run, folder, monkeypatch):
    (folder / "a.txt").write_text(CANARY)

    def fail(*_):
        raise KeyError(CANARY)

    monkeypatch.setattr(check, "_locate", fail)
    code, out, err = run("a.txt")
    assert (code, out) == (2, "")
    assert err == "textveil: error: the check failed: unexpected KeyError\n"


def test_options_of_the_check_go_with_it(capsys):
    for options in (["--accept"], ["--baseline", "a"], ["--report", "sarif"]):
        assert cli.main(["protect", "a text", *options]) == 2
        assert "go with --check" in capsys.readouterr().err
    assert cli.main(["protect", "a", "text"]) == 2
    assert "takes one argument; put a text" in capsys.readouterr().err


# ---- pre-commit and workflows --------------------------------------------------------------------


def git(*arguments, check=True):
    names = ("author.name=A", "author.email=a@example.org")
    options = [word for name in names for word in ("-c", name.replace("author", "user"))]
    return subprocess.run(
        ["git", *options, *arguments], check=check, capture_output=True, text=True, timeout=300
    )


def environment(folder):
    """A command `textveil` of this source tree, and no settings of the user."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "textveil"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m textveil "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": path,
        "HOME": str(folder),
        "PRE_COMMIT_HOME": str(folder / "cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }


@pytest.fixture
def repository(folder, monkeypatch):
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    (folder / "work").mkdir()
    monkeypatch.chdir(folder / "work")
    git("init", "-q")
    (Path("clean.md")).write_text("Nothing here.\n")
    return folder / "work"


def list_documented_hooks():
    """The configurations of pre-commit in the page."""
    page = (ROOT / "docs" / "do" / "check.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(repos:\n.*?)```", page, re.DOTALL)
    return [yaml.safe_load(block)["repos"][0] for block in blocks]


def test_the_page_has_the_hook_that_is_published():
    """Whoever has installed textveil writes it out, and the page says what."""
    (published,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    local, other = list_documented_hooks()
    (hook,) = local["hooks"]
    assert local["repo"] == "local"
    assert hook.pop("args") == ["--baseline", "accepted.json"]
    assert hook.pop("language") == "system"
    assert hook == {name: published[name] for name in hook}
    assert published.keys() - hook.keys() == {"description", "language"}
    assert [each["id"] for each in other["hooks"]] == [published["id"]]


@pytest.mark.slow
def test_the_hook_of_pre_commit_refuses_a_commit(repository):
    """The hook as the page has it for whoever has installed textveil."""
    pytest.importorskip("pre_commit")
    config = {"repos": [list_documented_hooks()[0]]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (repository / "accepted.json").write_text('{"version": 1, "files": {}}')
    subprocess.run([sys.executable, "-m", "pre_commit", "install"], check=True, capture_output=True)
    git("add", ".")
    git("commit", "-qm", "clean")
    (repository / "notes.txt").write_text(f"Write to {CANARY}\n")
    git("add", ".")
    refused = git("commit", "-qm", "notes", check=False)
    assert refused.returncode == 1
    assert "notes.txt:1:10: EMAIL" in refused.stderr
    assert CANARY not in refused.stdout + refused.stderr
    code = ["protect", "--check", "notes.txt", "--baseline", "accepted.json", "--accept"]
    subprocess.run(["textveil", *code], check=True, capture_output=True)
    git("add", ".")
    git("commit", "-qm", "notes")


GH = """#!/bin/sh
printf '%s\\n' "$*" >>"$RUNNER_TEMP/gh"
case "$*" in *--paginate*) cat "$RUNNER_TEMP/earlier";; *) exit "${REFUSED:-0}";; esac
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bash"), reason="the steps of the action are written for bash")
def test_the_action_checks_what_changed_and_comments(repository, folder, monkeypatch):
    """Its steps as GitHub runs them, with a command `gh` that notes what it is asked."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    _, step = action["runs"]["steps"]
    assert "${{" not in step["run"], "inputs come in through the environment"
    (folder / "bin" / "gh").write_text(GH)
    (folder / "bin" / "gh").chmod(0o755)
    runner = folder / "runner"
    runner.mkdir()
    (runner / "earlier").write_text("")
    for name in step["env"]:
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("RUNNER_TEMP", str(runner))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(runner / "summary"))
    monkeypatch.setenv("OPTIONS", "-o\nprotect.detectors=patterns")

    def run(**settings):
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        ran = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert CANARY not in ran.stdout + ran.stderr
        asked = (runner / "gh").read_text() if (runner / "gh").exists() else ""
        (runner / "gh").unlink(missing_ok=True)
        return ran.returncode, ran.stdout, asked

    (repository / "old.txt").write_text(CANARY)
    git("add", ".")
    git("commit", "-qm", "old")
    base = git("rev-parse", "HEAD").stdout.strip()
    (repository / "-a,b.txt").write_text(f"Write to {CANARY}\n")
    git("add", ".")
    git("commit", "-qm", "new")
    code, out, asked = run(BASE=base, COMMENT="false", NUMBER="7", GH_REPO="o/r")
    assert (code, asked) == (1, "")
    assert out.count("::error file=") == 1
    assert "-a%2Cb.txt,line=1,col=10" in out
    assert "    -a,b.txt:1:10: EMAIL\n" in (runner / "summary").read_text()
    assert run(COMMENT="true")[2].endswith("repos/o/r/issues/7/comments\n")
    code, out, _ = run(REFUSED="1")
    assert code == 1
    assert "::warning::no comment was written" in out
    (runner / "earlier").write_text("https://api/comments/3\n")
    assert run()[2].endswith("-X PATCH https://api/comments/3\n")
    assert run(FILES="clean.md", REFUSED="0")[0] == 0
    assert "finds nothing private" in (runner / "comment.md").read_text()
    assert run(FILES="none.md")[0] == 2
    # where it is not known what changed, all files are checked
    assert run(FILES="", BASE="0" * 40)[1].count("::error file=") == 2
