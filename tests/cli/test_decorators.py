"""How verbs are made: shared options from one table, imports when they run, verbs of other packages."""

import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from unittest.mock import patch

import pytest
import typer
from pydantic import Field

from textveil import __version__, cli, config
from textveil.cli import console, decorators, options, session_options, statement_options
from textveil.cli.app import build_root_command
from textveil.config import Config, registry
from textveil.errors import ConfigError

SMALL = {"profile": "paper-noise", "epsilon": "7", "setting": ["words.casing=copy"]}


def called(verb, **given):
    """What a verb is called with: the shared options that are not given have their defaults."""
    defaults = {
        name: getattr(each.default, "default", None)
        for name, each in inspect.signature(verb).parameters.items()
    }
    verb(**{**defaults, **given})


# ---- shared options ------------------------------------------------------------------------------------------------


def test_a_verb_gets_the_configuration_of_the_shared_options(monkeypatch):
    found = []

    @decorators.verb("textveil x")
    def x(config: Config, word: str = "a") -> None:
        """A verb."""
        found.append((config, word))

    assert [*inspect.signature(x).parameters] == ["word", *options.PRIVACY_OPTIONS]
    called(x, **SMALL, word="b")
    (made, word) = found[0]
    assert (made.profile, made.epsilon, made.words.casing, word) == (
        "paper-noise",
        7.0,
        "copy",
        "b",
    )
    assert made.mechanism.name == "noise"


def test_another_shared_option_is_one_entry(monkeypatch):
    shared = {
        **options.SHARED_OPTIONS,
        "metric": options.SharedOption(
            flag="--metric", metavar="NAME", help="x", path="table.metric"
        ),
    }
    monkeypatch.setattr(decorators, "SHARED_OPTIONS", shared)
    monkeypatch.setattr(options, "SHARED_OPTIONS", shared)
    found = []

    @decorators.verb(options=shared)
    def x(config: Config) -> None:
        """A verb."""
        found.append(config.table.metric)

    called(x, **SMALL, metric="euclidean")
    assert found == ["euclidean"]


def test_a_verb_without_a_configuration_has_no_shared_options():
    @decorators.verb()
    def x(word: Annotated[str, typer.Argument()]) -> None:
        """A verb."""

    assert [*inspect.signature(x).parameters] == ["word"]


@pytest.mark.parametrize(
    ("given", "profile"),
    [
        ({}, "document"),
        ({"epsilon": "3"}, "document"),
        ({"setting": ["words.casing=copy"]}, "document"),
        ({"profile": "strict"}, "strict"),
        ({"setting": ["profile=strict"]}, "strict"),
        ({"mechanism": "placeholder"}, None),
        ({"setting": ["mechanism.name=placeholder"]}, None),
    ],
)
def test_the_profile_where_nothing_names_one_or_a_mechanism(given, profile):
    assert options.TypedOptions.build(given, "document").resolve_config().profile == profile


def test_the_environment_and_a_file_can_name_a_mechanism(monkeypatch, tmp_path):
    (tmp_path / "a.yaml").write_text("mechanism: placeholder\n")
    (tmp_path / "b.yaml").write_text("words: {casing: copy}\n")
    assert (
        options.TypedOptions.build({"config": str(tmp_path / "a.yaml")}, "prompt")
        .resolve_config()
        .profile
        is None
    )
    assert (
        options.TypedOptions.build({"config": str(tmp_path / "b.yaml")}, "prompt")
        .resolve_config()
        .profile
        == "prompt"
    )
    monkeypatch.setenv("TEXTVEIL_MECHANISM__NAME", "placeholder")
    assert options.TypedOptions.build({}, "prompt").resolve_config().profile is None


def test_a_task_makes_words_important():
    made = options.TypedOptions.build({"task": "What does she want?"}, "document").resolve_config()
    assert (made.protect.task, made.protect.importance) == ("What does she want?", "cosine")


def test_how_much_is_said():
    assert (
        statement_options.StatementForm.read(
            {"statement": False, "explain": True, "quiet": False}
        ).form
        == "explain"
    )
    with pytest.raises(ConfigError, match="one of --explain and --quiet"):
        statement_options.StatementForm.read({"statement": False, "explain": True, "quiet": True})


def test_a_group_may_be_a_verb_of_its_own(capsys):
    said: list[tuple[str | None, ...]] = []

    @decorators.verb("textveil many --word b")
    def alone(config: Config, word: str = "a") -> None:
        """Say a word."""
        said.append((word, config.profile))

    many = decorators.group(default_verb=alone)

    @decorators.verb("textveil many one", on=many)
    def one() -> None:
        """Say one."""
        said.append(())

    def run(*arguments):
        return console.run(
            decorators.build_command(many, "many"), "many", arguments
        ), *capsys.readouterr()

    assert run("--word", "b", "--profile", "strict")[0] == run()[0] == run("one")[0] == 0
    assert said == [("b", "strict"), ("a", "document"), ()]
    code, out, _ = run("--help")
    assert code == 0
    for shown in (
        "Say a word.",
        "--word",
        "--epsilon",
        "Say one.",
        "Examples:\n  textveil many --word b",
    ):
        assert shown in out
    code, _, err = run("--word", "b", "--profile", "strict", "one")
    assert (code, err) == (
        2,
        "many: error: options of `one` go after it; leave out --word, --profile before it\n",
    )
    assert len(said) == 3


# ---- which verbs there are -----------------------------------------------------------------------------------------


def test_every_verb_can_be_imported_and_has_help_with_examples(capsys):
    for name in registry.list_names("command"):
        assert cli.main([name, "--help"]) == 0
        out = capsys.readouterr().out
        assert f"textveil {name}" in out.split("Examples:\n", 1)[1]


def test_a_verb_imports_no_other_and_the_help_none():
    own = {entry.target.partition(":")[0] for entry in registry.COMMANDS.values()}
    for arguments, expected in (
        (["--help"], set[str]()),
        (["list", "tables"], {"textveil.cli.lookup"}),
    ):
        code = f"import sys; from textveil.cli import main; main({arguments}); sys.exit(' '.join(sys.modules))"
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        imported = set(found.stderr.split())
        assert own & imported == expected
        assert "textveil.config.sections" not in imported


def test_help_has_every_verb_under_its_heading(capsys):
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("╭")].count(
        "Protect"
    ) == 1
    for name, entry in registry.COMMANDS.items():
        assert f"│ {name} " in out
        assert entry.panel is not None
        assert out.index(f"─ {entry.panel} ─") < out.index(f"│ {name} ")
        assert len(entry.summary) <= 58, "the summary has one line of 80 columns"


FOREIGN = '''
import typer
from textveil.cli import group, verb


@verb("textveil greet Anna", panel="Greetings")
def greet(config, name: str, loud: bool = False) -> None:
    """Greet somebody.

    Very politely.
    """
    print(f"{name} {loud} {config.profile}")


def plain(name: str) -> None:
    """A function and no more, see extras[verbs]"""
    print(name)


many = group("Several verbs.", "textveil many one")


@verb("textveil many one", on=many)
def one() -> None:
    """The first."""
    print("one")
'''
POINTS = """[textveil.commands]
greet = foreign_verbs:greet
plain = foreign_verbs:plain
many = foreign_verbs:many
broken = foreign_verbs:nothing
"""


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """Another distribution with verbs of its own."""
    (tmp_path / "foreign_verbs.py").write_text(FOREIGN)
    info = tmp_path / "foreign_verbs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-verbs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("foreign_verbs", None)


@pytest.mark.usefixtures("foreign")
def test_verbs_of_another_package(capsys):
    def run(*arguments):
        code = cli.main([*arguments])
        return code, *capsys.readouterr()

    assert run("greet", "Anna", "--loud") == (0, "Anna True document\n", "")
    assert run("plain", "Anna") == (0, "Anna\n", "")
    assert run("many", "one") == (0, "one\n", "")
    code, out, _ = run("--help")
    assert code == 0
    assert out.index("─ Greetings ─") < out.index("Greet somebody")
    for shown in (
        "A function and no more, see extras[verbs]",
        "Several verbs",
        "cannot be imported",
    ):
        assert shown in out
    assert "Very politely" not in out
    code, _, err = run("broken")
    assert code == 2
    assert "the command 'broken' of the package foreign-verbs cannot be imported" in err


# ---- help and completion -------------------------------------------------------------------------------------------


def commands(command, path=()):
    """All commands, each with the words that are typed for it."""
    yield path, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from commands(command.get_command(None, name), (*path, name))


def test_the_help_is_short_and_says_how_to_see_all(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for path, command in commands(build_root_command()):
        assert cli.main([*path, "--help"]) == 0
        short = capsys.readouterr().out
        assert cli.main([*path, "--help-all"]) == 0
        out = capsys.readouterr().out
        # Further right is the text of an option, which may begin a line with the name of another.
        listed, every = (
            re.findall(r"^│ [* ]{0,20}(--?\w[\w-]*)", page, re.M) for page in (short, out)
        )
        assert len(listed) <= decorators.MAX_HELP_OPTIONS, path
        last = short.rstrip().rpartition("\n")[2]
        assert (last == f"All options: {' '.join(['textveil', *path])} --help-all") == (
            len(every) > len(listed)
        )
        assert "--help-all" not in out
        for option in command.params:
            assert option.opts[0] in out or not option.opts[0].startswith("-")
        shown = set(getattr(command.callback, "brief", ()))
        assert shown <= {each.name for each in command.params}, path


def test_every_verb_reads_the_store_from_the_same_places():
    stores = {
        path: option
        for path, command in commands(build_root_command())
        for option in command.params
        if option.name == "store"
    }
    assert {("gateway",), ("protect",), ("corpus", "run"), ("ledger", "show")} <= {*stores}
    for path, option in stores.items():
        assert option.opts == ["--store"], path
        assert option.envvar == session_options.STORE_VARIABLES, path
        assert option.callback is not None, path


def test_the_help_of_protect_names_no_mechanisms_and_hidden_options_work(capsys, monkeypatch):
    assert cli.main(["protect", "--help"]) == 0
    options_ = capsys.readouterr().out.partition("Options")[2].partition("Examples:")[0]
    for each in ("--mechanism", "--epsilon", "--table", "--codes", "--rerank"):
        assert each not in options_
    assert cli.main(["protect", "maria@example.org", "--with-original", "--quiet"]) == 0
    assert capsys.readouterr().out == "maria@example.org\t<EMAIL_1>\n"


def test_version(capsys):
    assert cli.main(["-V"]) == cli.main(["--version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second == f"textveil {__version__}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("textveil pr", {"protect", "privatize"}),
        ("textveil protect --se", {"--session", "--seed"}),
        ("textveil gateway k", {"keys"}),
        ("textveil gateway --media r", {"refuse"}),
    ],
)
def test_a_shell_completes(capsys, monkeypatch, words, expected):
    monkeypatch.setenv("_TEXTVEIL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit) as end:
        cli.main([])
    assert end.value.code == 0
    assert set(capsys.readouterr().out.split()) == expected


def test_the_completion_of_a_shell_is_shown_and_installed(tmp_path):
    code = "import sys; from textveil.cli import main; sys.exit(main())"
    for option in ("--show-completion", "--install-completion"):
        found = subprocess.run(
            [sys.executable, "-c", code, option, "bash"],
            env={
                **os.environ,
                "HOME": str(tmp_path),
                "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        assert "_TEXTVEIL_COMPLETE=complete_bash" in found.stdout or "installed" in found.stdout
    script = (tmp_path / ".bash_completions" / "textveil.sh").read_text()
    assert "_TEXTVEIL_COMPLETE=complete_bash" in script


# ---- options that are fields ---------------------------------------------------------------------------------------


def test_an_option_is_as_its_field():
    @dataclass(frozen=True)
    class Owner:
        place: str
        name: str = ""
        number: Annotated[int, Field(ge=1)] = 3
        seconds: Annotated[float, Field(gt=0)] | None = None
        both: Literal["", "a", "b"] = ""
        many: tuple[str, ...] = ()
        sure: bool = False

    table = {name: options.SharedOption(help="x") for name in inspect.signature(Owner).parameters}
    found: dict[str, Any] = {}

    with patch.dict(
        options.FIELD_OPTIONS,
        {"Owner": {**table, "many": options.SharedOption(help="x", flag="--each")}},
    ):

        @decorators.verb(fields={"said": (Owner,)})
        def x(said: dict[str, object]) -> None:
            """A verb."""
            found.update(said)

    def run(*arguments):
        found.clear()
        return console.run(decorators.build_command(x, "x"), "x", arguments)

    assert run("--place", "here") == 0
    assert Owner(**found) == Owner("here")
    typed = ("--name", "n", "--number", "1", "--seconds", "2", "--both", "a", "--sure")
    assert run("--place", "here", *typed, "--each", "v", "--each", "w") == 0
    assert Owner(**found) == Owner("here", "n", 1, 2.0, "a", ("v", "w"), True)
    for wrong in (typed, ("--place", "p", "--number", "0"), ("--place", "p", "--both", "c")):
        assert run(*wrong) == 2


# ---- what is elsewhere now -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("calibrate-context", "a.txt"), "it is now `textveil table calibrate`"),
        (("bench", "lm-eval", "--tasks", "x"), "it is now `textveil lm-eval`"),
        (("bench", "report", "runs"), "it is now `textveil report`"),
        (("repair", "Zyxqorvian", "--url", "http://localhost:1/v1"), "it is now --upstream"),
        (("privatize", "Zyxqorvian", "--show", "risk"), "`textveil groups` and `textveil risk`"),
        (("privatize", "Zyxqorvian", "--html=a.html"), "`textveil groups` and `textveil risk`"),
        (("privatize", "a.csv", "--field", "Zyxqorvian"), "`textveil corpus run`"),
        (("privatize-files", "a.csv"), "it is now `textveil corpus run`"),
        (("protect", "a.csv", "--jobs=2"), "`textveil corpus run --profile prompt`"),
        (("privatize", "a.csv", "b.csv"), "`textveil corpus run`"),
    ],
)
def test_what_has_moved_is_said(capsys, arguments, says):
    assert cli.main([*arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says in err
    assert "Zyxqorvian" not in err


def test_every_name_of_the_configuration_is_there():
    for name in config.__all__:
        assert getattr(config, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        config.Nothing  # noqa: B018
