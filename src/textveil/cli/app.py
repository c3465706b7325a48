"""The application itself: its root, and the options that several verbs share.

In: what a user typed for those options. Out: `app`, to which the verbs add themselves; a resolved configuration.
Not here: the verbs (the modules beside this one), errors and exit codes (`shell`), what options mean (`config`).
"""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli.shell import say

if TYPE_CHECKING:
    from textveil.config import Config

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # the commands below inherit it
)

Mechanism = Annotated[str | None, typer.Option("--mechanism", metavar="NAME", help="See `textveil list mechanisms`.")]
Epsilon = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="E", help="Promised bound per word, per unit of the statement's distance."),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        metavar="PATH=VALUE",
        help="Any option, such as mechanism.L=5; repeatable. `textveil show config` prints the paths, "
        "`textveil explain NAME` a mechanism's own options.",
    ),
]
Profile = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="See `textveil list profiles`.")]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="YAML, as `textveil show config` prints it."),
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="See `textveil list tables`, or a folder of `textveil table build`."),
]
Seed = Annotated[
    str | None,
    typer.Option("--seed", metavar="N", help="Repeatable draws: no privacy against anyone who knows the seed."),
]
Rerank = Annotated[
    str | None,
    typer.Option(
        "--rerank",
        metavar="M",
        help="Show in place of each drawn word the one of its M nearest that a masked language model expects there.",
    ),
]
SessionFile = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="FILE",
        help="Remember there what is replaced, in clear, so that `textveil restore` can put it back; a file that is "
        "there is continued.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="TEXT",
        help="What the text is for; words that have to do with it are important. `self`: the text itself. Not secret.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per text and line.")]


def examples(*lines: str) -> str:
    """The end of a command's help. The backspace keeps its lines from being filled."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@app.callback(
    invoke_without_command=True,
    epilog=examples(
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

        say(f"textveil {__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


def resolve(
    mechanism: str | None,
    epsilon: str | None,
    setting: list[str] | None,
    profile: str | None,
    file: str | None,
    table: str | None,
    seed: str | None,
    *,
    rerank: str | None = None,
    task: str | None = None,
    complete: bool = True,
) -> "Config":
    """The configuration of a command's options, the environment and the files that they name.

    Without `complete`, a mechanism that lacks a budget is no error.
    """
    from textveil.config import layers, sources

    flags = {
        "mechanism.name": mechanism,
        "epsilon": epsilon,
        "table.name": table,
        "seed": seed,
        "rerank.m": rerank,
        "protect.task": task,
        "protect.importance": None if task is None else "cosine",
        "profile": profile,
    }
    overrides = sources.assignments(setting or [], flags)
    return layers.resolve(file=file, environ=os.environ, overrides=overrides, complete=complete)
