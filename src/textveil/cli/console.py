"""The process around the verbs: streams, errors and exit codes.

Warnings and errors have one line each.

In: the commands and their arguments. Out: an exit code; what is said on standard output and
standard error.
Not here: the verbs (`cli`), and the files that they read and write (`files`).
"""

import os
import re
import sys
import textwrap
import threading
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, TextIO

import typer

from textveil.errors import OutputError, TextveilError, TextveilWarning, has_private_form, quote
from textveil.files import convert_write_errors

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The class of every kind of wrong usage.

typer does not export it by its name.
"""

HELP_ALL_FLAG = "--help-all"
"""The flag that shows the help with all options.

A context holds it then, too.
"""


def run(command: Any, name: str, arguments: Sequence[str]) -> int:
    """Runs a command of typer's.

    Args:
        command: what to run.
        name: what the program is called.
        arguments: without the program's name.

    Returns:
        0; 2 for an error that textveil foresees, 1 for one that it does not; 130 after an
            interrupt; 141 when
        the reader of the output has gone.
    """
    options, texts = _split_arguments(arguments)
    help_flag = HELP_ALL_FLAG if HELP_ALL_FLAG in options else None
    arguments = [*("--help" if option == HELP_ALL_FLAG else option for option in options), *texts]
    _use_utf8()
    command._main_shell_completion({}, name)  # ends the process where a shell asks
    with warnings.catch_warnings():
        _show_warnings()
        try:
            # not command.main(), which has an answer of its own to a closed pipe
            with command.make_context(name, list(arguments), obj=help_flag) as context:
                command.invoke(context)
            with convert_write_errors():
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
            _print_error(name, str(error))
            if isinstance(error, OutputError):
                _abandon_stdout()
            return 2
        except UsageError as error:
            _print_error(name, _explain_usage(error, command, name, arguments))
            return 2
        except Exception as error:
            # The message of an unforeseen error may hold text, so only its type is shown.
            _print_error(
                name,
                f"unexpected {type(error).__name__}; TEXTVEIL_DEBUG=1 shows where, without values",
                error,
            )
            return 1


def _split_arguments(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Splits arguments at --."""
    position = list(arguments).index("--") if "--" in arguments else len(arguments)
    return arguments[:position], arguments[position:]


def exit_if_busy(code: int) -> int:
    """Returns the exit code of a program that now ends.

    A detector that ran out of time may still compute, and its thread cannot be stopped. Python
    would take the libraries down under it, and they abort the process with an exit code of their
    own; then the process ends here, at once.
    """
    if any(
        thread.daemon and thread.name.startswith("textveil ") for thread in threading.enumerate()
    ):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # None where it is closed
                stream.flush()
        os._exit(code)
    return code


def say(text: str) -> None:
    """Prints on standard output.

    `OutputError` where that fails.
    """
    with convert_write_errors():
        print(text, flush=True)


def note(text: str) -> None:
    """Prints on standard error, if there is one."""
    with suppress(OSError):
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)


def wrap(text: str) -> str:
    """Wraps long lines at words for a terminal.

    They keep their indent. Nothing is changed where standard error is no terminal.
    """
    width = _find_width(sys.stderr)
    if width is None:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        wrapped = textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        lines += wrapped if len(line) > width else [line]
    return "\n".join(lines)


def _find_width(stream: TextIO | None) -> int | None:
    """Returns the columns of a stream's terminal, 20 at least.

    None where there is no terminal.
    """
    if stream is None or not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return max(20, int(columns))
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return 80


def _use_utf8() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(
                encoding="utf-8",
                errors="backslashreplace" if stream is sys.stderr else "strict",
                newline="\n",  # Windows would write other line ends than the text has
            )


def _print_error(name: str, message: str, error: BaseException | None = None) -> None:
    """Prints an error as one line on standard error.

    With TEXTVEIL_DEBUG also the lines of code that led there.
    """
    if os.environ.get("TEXTVEIL_DEBUG", "0") not in ("", "0"):
        while error is not None:
            note("".join(traceback.format_tb(error.__traceback__)) + type(error).__name__)
            error = error.__cause__ or error.__context__
    note(f"{name}: error: {' '.join(message.split())}")


def _show_warnings() -> None:
    """Shows each of textveil's warnings once, as one line.

    And none of other libraries.
    """
    printed_lines: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = " ".join(str(message).split())
        if issubclass(category, TextveilWarning) and line not in printed_lines:
            printed_lines.add(line)
            note(f"textveil: warning: {line}")

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", TextveilWarning)
    warnings.showwarning = show


def _abandon_stdout() -> None:
    """Prevents a second flush of a broken standard output.

    The interpreter would flush it once more at its end.
    """
    stream = sys.__stdout__
    if stream is not None and sys.stdout is stream:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _explain_usage(error: Any, command: Any, path: str, arguments: Sequence[str]) -> str:
    """Explains wrong arguments without repeating them.

    They may hold the text to privatize.
    """
    for word in arguments:
        if word in _list_commands(command):
            command, path = command.get_command(None, word), f"{path} {word}"
    option_name = getattr(error, "option_name", None)
    if option_name is not None:
        return _explain_option(option_name, command, path, arguments)
    parameter = getattr(error, "param", None)
    if parameter is not None:
        option = next((flag for flag in parameter.opts if flag.startswith("-")), None)
        value = describe_value(parameter)
        if option is None or type(error).__name__ == "MissingParameter":
            return (
                f"{path} needs {value if option is None else f'{option} {value}'}; see `{path} "
                f"{HELP_ALL_FLAG}`"
            )
        return f"{option} needs {value}; see `{path} {HELP_ALL_FLAG}`"
    if _list_commands(command):
        return _explain_command(_list_commands(command), path, arguments)
    if "--" in arguments:
        return f"{path} takes one argument after --; options first, then -- and the text"
    files = "; for files of rows use `textveil corpus run`" if path == "textveil privatize" else ""
    return f"{path} takes one argument; put a text of several words in quotes{files}"


def describe_value(parameter: Any) -> str:
    """Says which values a parameter takes: "N from 0 to 65535"."""
    takes = parameter.metavar or parameter.name
    low, high = (getattr(parameter, name, None) for name in ("min", "max"))
    if low is None:
        return f"{takes}" if high is None else f"{takes} of at most {high:g}"
    return f"{takes} of at least {low:g}" if high is None else f"{takes} from {low} to {high}"


def _list_commands(command: Any) -> list[str]:
    """Returns the commands of a group; none of a single command."""
    return list(command.list_commands(None)) if hasattr(command, "list_commands") else []


def _explain_command(commands: list[str], path: str, arguments: Sequence[str]) -> str:
    words = [word for word in arguments if not word.startswith("-")]
    for word in words:
        if (path, word) in MOVED_NAMES:
            return f"{path} has no command {word}; {MOVED_NAMES[path, word]}"
    typed_words = words[len(path.split()) - 1 :]
    matches = [
        name
        for word in typed_words[:2]
        for name in get_close_matches(word, commands, n=1, cutoff=0.6)
    ]
    hint = f"did you mean {matches[0]}?" if matches else f"commands are {', '.join(commands)}"
    texts = ""
    if path == "textveil":
        texts = " (a text goes after `textveil protect` or `textveil privatize`)"
    return (
        f"{path} has {_describe_missing('command', typed_words[0] if typed_words else '')}; "
        f"{hint}{texts}"
    )


def _describe_missing(kind: str, typed: str) -> str:
    """Says that there is no such name.

    Anything with spaces is a text in the place of a name, and is not shown.
    """
    is_name = re.fullmatch(r"\S+", typed) is not None and not has_private_form(typed)
    return f"no {kind} {quote(typed)}" if is_name else f"no such {kind}"


def _explain_option(option_text: str, command: Any, path: str, arguments: Sequence[str]) -> str:
    options = {name: item for item in command.params for name in item.opts if name.startswith("-")}
    options.setdefault(HELP_ALL_FLAG, None)
    if option_text in options:
        takes = (
            "takes no value" if getattr(options[option_text], "is_flag", False) else "needs a value"
        )
        return f"{option_text} {takes}; see `{path} {HELP_ALL_FLAG}`"
    name = option_text.partition("=")[0]
    if (path, name) in MOVED_NAMES:
        return f"{path} has no option {name}; {MOVED_NAMES[path, name]}"
    matches = get_close_matches(name, options, n=1, cutoff=0.6)
    hint = f"did you mean {matches[0]}?" if matches else f"`{path} {HELP_ALL_FLAG}` lists them"
    # -x of a text "-xyz a"
    typed = next((item for item in arguments if item.startswith(name)), name).partition("=")[0]
    return (
        f"{path} has {_describe_missing('option', typed)}; {hint} (a text that begins with - goes "
        "after --)"
    )


MOVED_NAMES = {
    ("textveil", "calibrate-context"): "it is now `textveil table calibrate`",
    ("textveil bench", "lm-eval"): "it is now `textveil lm-eval`",
    ("textveil bench", "report"): "it is now `textveil report`",
    ("textveil repair", "--url"): "it is now --upstream",
    ("textveil privatize", "--show"): "it is now `textveil groups` and `textveil risk`",
    ("textveil privatize", "--html"): "it is an option of `textveil groups` and `textveil risk`",
    ("textveil privatize", "--prior"): "it is an option of `textveil risk`",
    ("textveil", "privatize-files"): "it is now `textveil corpus run`",
    **{
        ("textveil privatize", option): "for files of rows use `textveil corpus run`"
        for option in ("--field", "--column", "--query", "--jobs", "--resume")
    },
    **{
        ("textveil protect", option): "for files of rows use `textveil corpus run --profile prompt`"
        for option in ("--field", "--column", "--jobs", "--resume")
    },
    **{
        (
            f"textveil {verb}",
            "--whole",
        ): "leave it out: a file is one text, and --lines takes each line as a text"
        for verb in ("protect", "privatize", "groups", "risk")
    },
}
"""Commands and options that have moved, with their new places."""
