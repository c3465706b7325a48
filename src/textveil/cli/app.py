"""The command `textveil`: its verbs are imported when they run.

In: nothing. Out: the command, which `shell` runs.
Not here: the verbs (the modules beside this one; the registry says which), errors and exit codes
(`console`).
"""

from contextlib import suppress
from typing import Annotated, Any

import typer

from textveil.cli.console import say
from textveil.cli.decorators import Command, VerbGroup, build_command, format_examples
from textveil.config import registry
from textveil.errors import TextveilError, UnknownName

EXAMPLES = (
    'textveil protect "Ask Maria Silva (maria@example.org) about the lease"',
    'textveil privatize "Anna owes the bank nine hundred pounds"',
)
OTHER_PACKAGES_PANEL = "From other packages"
"""The heading of verbs whose package names none."""


class RootCommand(VerbGroup):
    """The command with all verbs, listed from the registry.

    So help imports no verb of ours.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Returns the names of all verbs, in the registry's order."""
        return registry.list_names("command")

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports the verb of a name; None where there is none."""
        try:
            return build_command(registry.load("command", cmd_name), cmd_name)
        except UnknownName:
            return None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the verbs under their headings, each with its summary."""
        self._build_page().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Completes the names of verbs; none is imported."""
        ctx.command = self._build_page()
        return ctx.command.shell_complete(ctx, incomplete)

    def _build_page(self) -> VerbGroup:
        commands = {name: _build_entry(name) for name in self.list_commands(None)}
        return VerbGroup(
            name=self.name,
            help=self.help,
            params=self.params,
            commands=commands,
            epilog=self.examples,
        )


def _build_entry(name: str) -> Command:
    """Builds the entry of a verb for the list.

    Another package's help on its verb is in the verb itself.
    """
    panel = registry.find_entry("command", name).panel
    if panel is None:
        with suppress(TextveilError):
            panel = getattr(registry.load("command", name), "panel", None)
    return Command(
        name=name,
        help=registry.describe("command", name),
        rich_help_panel=panel or OTHER_PACKAGES_PANEL,
    )


def build_root_command() -> Any:
    """Builds the command."""
    application = typer.Typer(
        cls=RootCommand,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},  # the verbs inherit it
    )

    @application.callback(invoke_without_command=True, epilog=format_examples(EXAMPLES))
    def root(
        context: typer.Context,
        version: Annotated[
            bool, typer.Option("--version", "-V", help="Print the version and exit.")
        ] = False,
    ) -> None:
        """Private text: protect what you send to a language model, and privatize what you share.

        protect hides what is found in a prompt, and restore puts it back into the answer. privatize
        draws every protected word anew, with a statement of what that guarantees.
        """
        if version:
            from textveil import __version__

            say(f"textveil {__version__}")
        elif context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return typer.main.get_command(application)
