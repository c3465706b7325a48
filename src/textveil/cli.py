"""The command line: verbs only.

In: arguments, standard input, files. Out: text or JSON on standard output; statements and one-line errors.
Not here: how options become a configuration (`config`), how text is privatized (`pipeline`), the `demo`.
"""

import json
import os
import re
import signal
import stat
import sys
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from types import FrameType, TracebackType
from typing import IO, TYPE_CHECKING, Annotated, Any, BinaryIO, Self

import typer

from textveil.errors import ConfigError, InputError, OutputError, TextveilError, TextveilWarning, UnknownName

if TYPE_CHECKING:
    from textveil.config import Config
    from textveil.guarantee import Guarantee
    from textveil.pipeline import Result

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
show_app = typer.Typer(rich_markup_mode=None)
app.add_typer(show_app, name="show")

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Every kind of wrong usage; typer does not export it by its name."""

PROGRESS_FROM = 2_000
"""Texts after which progress is drawn, if standard error is a terminal."""

Mechanism = Annotated[str | None, typer.Option("--mechanism", metavar="NAME", help="See `textveil list mechanisms`.")]
Epsilon = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="E", help="Promised bound per word, per unit of the statement's distance."),
]
Setting = Annotated[
    list[str] | None,
    typer.Option("-o", metavar="PATH=VALUE", help="Any option, such as mechanism.L=5; repeatable."),
]
Profile = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="See `textveil list profiles`.")]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="YAML, as `textveil show config` prints it."),
]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="See `textveil list tables`.")]
Seed = Annotated[
    str | None,
    typer.Option("--seed", metavar="N", help="Repeatable draws: no privacy against anyone who knows the seed."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]


def _examples(*lines: str) -> str:
    """The end of a command's help. The backspace keeps its lines from being filled."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


# ---- verbs ---------------------------------------------------------------------------------------


@app.callback(
    invoke_without_command=True,
    epilog=_examples(
        "textveil demo",
        'textveil privatize "Anna owes the bank nine hundred pounds" --mechanism noise --epsilon 60',
        "textveil explain noise",
    ),
)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """Privatize text word by word with metric differential privacy, and state what is guaranteed."""
    if version:
        from textveil import __version__

        _print(f"textveil {__version__}")
    elif context.invoked_subcommand is None:
        _print(context.get_help())


@app.command(
    epilog=_examples(
        'textveil privatize "Anna owes the bank nine hundred pounds" --mechanism noise --epsilon 60',
        "printf 'one text\\nanother text\\n' | textveil privatize - --epsilon 60 --json",
        'textveil privatize "Anna is ill" --mechanism d-chi-stencil -o mechanism.L=4 -o mechanism.eta=100',
        'textveil privatize "Anna is ill" --profile paper-noise --explain',
    ),
)
def privatize(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEXT|-|FILE]",
            help="A text, an existing file, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    mechanism: Mechanism = None,
    epsilon: Epsilon = None,
    setting: Setting = None,
    profile: Profile = None,
    config: ConfigFile = None,
    table: TableName = None,
    seed: Seed = None,
    as_json: AsJson = False,
    output: Annotated[str | None, typer.Option("--output", metavar="PATH", help="Write there, all or nothing.")] = None,
    with_original: Annotated[bool, typer.Option("--with-original", help="Show the originals too.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print the whole statement.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Take all of the input as one text.")] = False,
) -> None:
    """Privatize a text, or every line of a file or of standard input.

    The privatized text goes to standard output, the statement to standard error or, with --json, into the
    object.
    """
    resolved = _resolve(mechanism, epsilon, setting, profile, config, table, seed)
    from textveil.pipeline import Privatizer

    with ExitStack() as stack:
        texts = _texts(text, whole, output, stack)
        sink = stack.enter_context(_Output(output, private=with_original))
        results = Privatizer.from_config(resolved).privatize_many(texts)
        spoken = explain or not as_json
        guarantees: list[Guarantee] = []
        for result in _progress(results, sink):
            if spoken:
                guarantees.append(result.guarantee)
            if as_json:
                sink.write(_one_line(result.to_json(with_original=with_original)))
            elif with_original:
                _write_beside(sink, result)
            else:
                sink.write(result.text if result.text.endswith("\n") else result.text + "\n")
        statement = _statement(guarantees, explain) if guarantees else ""
        sink.finish()
    if statement:
        _say(statement)


@app.command(
    "list",
    epilog=_examples(
        "textveil list mechanisms",
        "textveil list tables",
        "textveil list profiles --json",
    ),
)
def list_names(
    what: Annotated[str, typer.Argument(metavar="mechanisms|tables|profiles", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """List names: one per line, with a summary behind each."""
    from textveil import registry
    from textveil.config import profiles

    if what == "mechanisms":
        rows = {name: registry.entry("mechanism", name).summary for name in registry.names("mechanism")}
    elif what == "tables":
        rows = {name: registry.entry("table", name).summary for name in registry.names("table")}
    elif what == "profiles":
        rows = profiles()
    else:
        raise UnknownName("list", what, ("mechanisms", "tables", "profiles"))
    width = max(map(len, rows))
    if as_json:
        entries = [{"name": name, "summary": summary} for name, summary in rows.items()]
        _print(json.dumps(entries, ensure_ascii=False))
        return
    for name, summary in rows.items():
        _print(f"{name:{width}}  {summary}")


@show_app.callback(
    epilog=_examples(
        "textveil show config --profile paper-stencil",
    ),
)
def _show() -> None:
    """Show how things are set."""


@show_app.command(
    "config",
    epilog=_examples(
        "textveil show config",
        "textveil show config --profile paper-stencil --epsilon 80 -o words.casing=copy",
    ),
)
def show_config(
    mechanism: Mechanism = None,
    epsilon: Epsilon = None,
    setting: Setting = None,
    profile: Profile = None,
    config: ConfigFile = None,
    table: TableName = None,
    seed: Seed = None,
) -> None:
    """Print the configuration that these options, the environment and the defaults amount to, as YAML.

    --config reads it back. The environment counts too: TEXTVEIL_MECHANISM__L=4, TEXTVEIL_EPSILON=60.
    """
    resolved = _resolve(mechanism, epsilon, setting, profile, config, table, seed, complete=False)
    _print(resolved.to_yaml().rstrip("\n"))


@app.command(
    epilog=_examples(
        "textveil explain noise",
        "textveil explain d-chi-stencil",
    ),
)
def explain(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", show_default=False)],
) -> None:
    """Say what a mechanism does, what it guarantees, its caveats, its source and its options."""
    import inspect

    from textveil import registry

    target = registry.load("mechanism", mechanism)
    parameter, budget = registry.budget_parameter(mechanism)
    options = registry.signature(target).known.values()
    _print(f"{mechanism}\n\n{inspect.getdoc(target) or registry.entry('mechanism', mechanism).summary}\n")
    if not options:
        _print("Options: none.")
    else:
        _print("Options, -o mechanism.NAME=VALUE:")
    widths = [max((len(getattr(option, part)) for option in options), default=0) for part in ("name", "type")]
    for option in options:
        default = "required" if option.required else f"default {_spell(option.default)}"
        own = "; in place of --epsilon" if option.name == parameter else ""
        _print(f"    {option.name:{widths[0]}}  {option.type:{widths[1]}}  {default}{own}")
    if not budget:
        _print("It needs no --epsilon.")


@app.command(
    epilog=_examples(
        "textveil demo",
        "textveil demo --seed 1",
    ),
)
def demo(seed: Seed = None) -> None:
    """Privatize a packaged letter with three mechanisms, and show it beside the original."""
    from rich.console import Console

    from textveil import config
    from textveil import demo as demonstration

    number = config.resolve(overrides=config.assignments([], {"seed": seed}), complete=False).seed
    with _writing():
        demonstration.show(Console(highlight=False, soft_wrap=False), seed=number)


# ---- options -------------------------------------------------------------------------------------


def _resolve(
    mechanism: str | None,
    epsilon: str | None,
    setting: list[str] | None,
    profile: str | None,
    file: str | None,
    table: str | None,
    seed: str | None,
    *,
    complete: bool = True,
) -> "Config":
    from textveil import config

    flags = {
        "mechanism.name": mechanism,
        "epsilon": epsilon,
        "table.name": table,
        "seed": seed,
        "profile": profile,
    }
    overrides = config.assignments(setting or [], flags)
    return config.resolve(file=file, environ=os.environ, overrides=overrides, complete=complete)


def _spell(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- input ---------------------------------------------------------------------------------------

_PATH_LIKE = re.compile(
    r"(\.{0,2}|~[^/\s]*)/\S*|\S*[^\s/.]\.(txt|text|jsonl?|csv|tsv|md|rst|html?|xml|ya?ml|log|gz|zip|pdf|docx?|tex|py)",
    re.IGNORECASE,
)


def _texts(argument: str | None, whole: bool, output: str | None, stack: ExitStack) -> Iterable[str]:
    """The texts to privatize. What was typed is never repeated in an error: it may be the text itself."""
    stream: BinaryIO
    if argument is None or argument == "-":
        if sys.stdin is None or (argument is None and sys.stdin.isatty()):
            raise InputError("a text is needed: give one in quotes, a file, or - to read standard input")
        stream = sys.stdin.buffer
    elif os.path.isdir(argument):
        raise InputError("the input must be a text or a file, and is a folder")
    elif os.path.exists(argument):
        try:
            stream = stack.enter_context(open(argument, "rb"))  # noqa: SIM115 - the stack closes it
        except OSError as error:
            raise InputError(f"the input file cannot be read: {error.strerror}") from None
    elif _PATH_LIKE.fullmatch(argument) and "://" not in argument:
        raise InputError(
            "no such file: the argument looks like a path, and nothing is there; "
            "to privatize such a word itself, give it on standard input"
        )
    else:
        return [_decode(os.fsencode(argument), 0)]
    _refuse_same(stream, output)
    return [_decode(*_without_mark(_read(stream), 0))] if whole else _lines(stream)


def _lines(stream: BinaryIO) -> Iterator[str]:
    """One text per line, without its line end."""
    offset = 0
    while line := _read(stream, line=True):
        body, start = _without_mark(line, offset)
        yield _decode(body.removesuffix(b"\n").removesuffix(b"\r"), start)
        offset += len(line)


def _read(stream: BinaryIO, *, line: bool = False) -> bytes:
    try:
        return stream.readline() if line else stream.read()
    except OSError as error:
        raise InputError(f"the input cannot be read: {error.strerror}") from None


def _without_mark(content: bytes, offset: int) -> tuple[bytes, int]:
    """Content without a byte order mark at the start of the input, and where it then starts."""
    mark = b"\xef\xbb\xbf"
    return (content[3:], 3) if offset == 0 and content.startswith(mark) else (content, offset)


def _decode(content: bytes, offset: int) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        position = offset + error.start
    raise InputError(f"the input must be UTF-8, and is not at byte {position} (counted from 0)")


def _refuse_same(stream: BinaryIO, output: str | None) -> None:
    """Refuse to write over the input, which is then lost."""
    same = False
    if output is not None and os.path.isfile(output):
        with suppress(OSError, ValueError):  # a stream without a file behind it is no file
            same = os.path.samestat(os.fstat(stream.fileno()), os.stat(output))
    if same:
        raise ConfigError("--output must not be the input file; write to another one")


# ---- output --------------------------------------------------------------------------------------


@contextmanager
def _writing() -> Iterator[None]:
    """Turn a failed write into one line. A closed pipe stays what it is: nobody is left to read a message."""
    try:
        yield
    except (BrokenPipeError, TextveilError):
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
    else:
        return
    raise OutputError(f"the output cannot be written: {reason}")


class _Output:
    """Where the privatized text goes: standard output, or a file that appears only when it is whole.

    A file is written under another name in the same folder, brought to the disk and renamed, so that at every
    moment the old file or the whole new one is there. A device is written as it is.
    """

    def __init__(self, path: str | None, *, private: bool) -> None:
        self.path = None if path in (None, "-") else os.path.realpath(str(path))
        self.private = private
        self.stream: IO[str] | None = None
        self.temporary: str | None = None
        self.previous: dict[int, Any] = {}

    @property
    def terminal(self) -> bool:
        """Whether a person reads the output as it comes."""
        return self.path is None and self.stream is not None and self.stream.isatty()

    def __enter__(self) -> Self:
        with _writing():
            if self.path is None:
                if sys.stdout is None:
                    raise OutputError("standard output is closed; open it, or use --output")
                self.stream = sys.stdout
            elif os.path.isdir(self.path):
                raise OutputError("--output must be a file, and is a folder")
            elif os.path.exists(self.path) and not os.path.isfile(self.path):
                self.stream = open(self.path, "w", encoding="utf-8", newline="\n")
            else:
                self._open_temporary(self.path)
        return self

    def _open_temporary(self, path: str) -> None:
        folder = os.path.dirname(path)
        if os.path.exists(path) and not os.access(path, os.W_OK):
            raise OutputError("--output must be a file that may be written; it is read-only")
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
                self.previous[number] = signal.signal(number, _end)
        name = os.path.join(folder, f".textveil-{os.getpid()}-{threading.get_ident()}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(name, flags, 0o600 if self.private else 0o666)
        self.temporary = name
        if os.path.exists(path):
            os.chmod(name, stat.S_IMODE(os.stat(path).st_mode))
        self.stream = open(descriptor, "w", encoding="utf-8", newline="\n")  # noqa: SIM115 - __exit__ closes it

    def write(self, text: str) -> None:
        """Write a piece of the output. Standard output is flushed, so that no text waits there."""
        assert self.stream is not None
        with _writing():
            self.stream.write(text)
            if self.path is None:
                self.stream.flush()

    def finish(self) -> None:
        """The output is whole: put the file in its place."""
        assert self.stream is not None
        with _writing():
            self.stream.flush()
            if self.path is None:
                return
            if self.temporary is not None:
                os.fsync(self.stream.fileno())
            self.stream.close()
            if self.temporary is not None:
                os.replace(self.temporary, self.path)
                self.temporary = None
                self._sync_folder()

    def _sync_folder(self) -> None:
        """Bring the new name to the disk too, where folders can be opened."""
        with suppress(OSError):
            descriptor = os.open(os.path.dirname(str(self.path)), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path is not None and self.stream is not None:
            with suppress(OSError):  # closing flushes, and a full disk then complains a second time
                self.stream.close()
        if self.temporary is not None:
            with suppress(OSError):
                os.unlink(self.temporary)
        for number, action in self.previous.items():
            signal.signal(number, action)


def _end(number: int, frame: FrameType | None) -> None:
    """End on a signal by way of the clean-up."""
    raise SystemExit(128 + number)


def _one_line(value: object) -> str:
    """JSON on one line, also for readers to whom U+0085, U+2028 and U+2029 end a line."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub("[\x85\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", line) + "\n"


def _write_beside(sink: _Output, result: "Result") -> None:
    """Original and released text: two columns on a terminal, else two fields with a tab between."""
    if not sink.terminal:
        fields = (result.private.text, result.text)
        sink.write("\t".join(re.sub(r"[\t\r\n]+", " ", field) for field in fields) + "\n")
        return
    from rich.console import Console

    from textveil.demo import beside

    with _writing():
        Console(file=sink.stream, highlight=False).print(beside(result, marked=True))


def _statement(guarantees: "list[Guarantee]", whole: bool) -> str:
    from textveil.guarantee import summarize

    summary = guarantees[0] if len(guarantees) == 1 else summarize(guarantees)
    if whole:
        return summary.explain()
    return f"{summary.headline()} Unknown words: {summary.oov_share:.1%} of those not on the public list."


def _progress(results: "Iterator[Result]", sink: _Output) -> "Iterator[Result]":
    """The results, with a counter on standard error for long runs where it disturbs nobody."""
    if sys.stderr is None or not sys.stderr.isatty() or sink.terminal:
        yield from results
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} texts"), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("", total=None)
    with ExitStack() as stack:
        for count, result in enumerate(results, 1):
            if count == PROGRESS_FROM:
                stack.enter_context(progress)
            if count >= PROGRESS_FROM:
                progress.update(task, completed=count)
            yield result


def _print(text: str) -> None:
    with _writing():
        print(text, flush=True)


def _say(text: str) -> None:
    """Print on standard error, if there is one."""
    with suppress(OSError):
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)


# ---- the entry point -----------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0; 2 for an error that textveil foresees, 1 for one that it does not; 130 after an interrupt; 141 when
        the reader of the output has gone.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace" if stream is sys.stderr else "strict")
    with warnings.catch_warnings():
        _show_warnings()
        try:
            command = typer.main.get_command(app)
            # not command.main(), which has an answer of its own to a closed pipe
            with command.make_context("textveil", list(arguments)) as context:
                command.invoke(context)
            with _writing():
                if sys.stdout is not None:
                    sys.stdout.flush()
            return 0
        except typer.Exit as end:
            return end.exit_code
        except BrokenPipeError:
            _abandon_stdout()
            return 141
        except (KeyboardInterrupt, typer.Abort):
            return 130
        except TextveilError as error:
            _complain(str(error))
            if isinstance(error, OutputError):
                _abandon_stdout()
            return 2
        except UsageError as error:
            _complain(_usage(error, arguments))
            return 2
        except Exception as error:
            # The message of an unforeseen error may hold text, so only its type is shown.
            _complain(f"unexpected {type(error).__name__}; TEXTVEIL_DEBUG=1 shows where, without values", error)
            return 1


def _complain(message: str, error: BaseException | None = None) -> None:
    """One line on standard error; with TEXTVEIL_DEBUG also the lines of code that led there."""
    if os.environ.get("TEXTVEIL_DEBUG", "0") not in ("", "0"):
        while error is not None:
            _say("".join(traceback.format_tb(error.__traceback__)) + type(error).__name__)
            error = error.__cause__ or error.__context__
    _say(f"textveil: error: {' '.join(message.split())}")


def _show_warnings() -> None:
    """Show each of textveil's warnings once, as one line, and none of other libraries."""
    seen: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = " ".join(str(message).split())
        if issubclass(category, TextveilWarning) and line not in seen:
            seen.add(line)
            _say(f"textveil: warning: {line}")

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", TextveilWarning)
    warnings.showwarning = show


def _abandon_stdout() -> None:
    """Keep the interpreter from flushing a broken standard output once more at its end."""
    stream = sys.__stdout__
    if stream is not None and sys.stdout is stream:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _usage(error: Any, arguments: Sequence[str]) -> str:
    """What is wrong with the arguments, without repeating them: they may hold the text to privatize."""
    command: Any = typer.main.get_command(app)
    path = "textveil"
    for word in arguments:
        if word in getattr(command, "commands", {}):
            command, path = command.commands[word], f"{path} {word}"
    commands = sorted(getattr(command, "commands", {}))
    options = [name for parameter in command.params for name in parameter.opts if name.startswith("-")]
    given = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    flags = [name for each in command.params if getattr(each, "is_flag", False) for name in each.opts]
    if given in options:
        return f"{given} {'takes no value' if given in flags else 'needs a value'}; see `{path} --help`"
    if given is not None:
        near = get_close_matches(given.partition("=")[0], options, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"`{path} --help` lists them"
        return f"{path} has no such option; {hint}; a text that begins with - goes after --"
    if parameter is not None:
        return f"{path} needs {parameter.metavar or parameter.name}; see `{path} --help`"
    if commands:
        words = [word for word in arguments if not word.startswith("-")]
        near = [name for word in words[:2] for name in get_close_matches(word, commands, n=1, cutoff=0.6)]
        hint = f"did you mean {near[0]}?" if near else f"commands are {', '.join(commands)}"
        return f"{path} has no such command; {hint}; a text goes after `textveil privatize`"
    return f"{path} takes one argument; put a text of several words in quotes"
