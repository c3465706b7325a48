"""The verbs of `textveil bench`.

In: nothing. Out: the application to which the verbs add themselves.
Not here: the verbs (`lm_eval`), and what they do (`textveil.bench`).
"""

import typer

from textveil.cli.app import app, examples
from textveil.shell import say

bench_app = typer.Typer(rich_markup_mode=None)
app.add_typer(bench_app, name="bench")


@bench_app.callback(
    invoke_without_command=True,
    epilog=examples("textveil bench lm-eval --tasks sst2 --model_args pretrained=FOLDER --epsilon 60"),
)
def _bench(context: typer.Context) -> None:
    """Measure what privatized text is still good for, on data sets."""
    if context.invoked_subcommand is None:
        say(context.get_help())
