"""Printing statements about releases, and the options that choose their form.

In: statements. Out: one plain line, three lines or all of it, on standard error.
Not here: the words (`textveil.guarantee`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from textveil.cli.console import note, wrap
from textveil.cli.options import SharedOption
from textveil.errors import ConfigError

if TYPE_CHECKING:
    from textveil.guarantee import Guarantee, TextGuarantee
    from textveil.text import Released

    Statement = TypeVar("Statement", Guarantee, TextGuarantee)

STATEMENT_OPTIONS: dict[str, SharedOption] = {
    "statement": SharedOption(
        flag="--statement",
        kind=bool,
        default=False,
        panel=None,
        help="Print the statement in its three lines.",
    ),
    "explain": SharedOption(
        flag="--explain",
        kind=bool,
        default=False,
        panel=None,
        help="Print the whole statement, with its caveats.",
    ),
    "quiet": SharedOption(
        flag="--quiet", kind=bool, default=False, panel=None, help="Print no statement."
    ),
}
"""The options of verbs that release text.

The JSON has the whole statement whatever they are.
"""


@dataclass(frozen=True, kw_only=True)
class StatementForm:
    """The form of statements: one plain line, or a longer one."""

    form: str = "summary"

    @classmethod
    def read(cls, flags: Mapping[str, bool]) -> "StatementForm":
        """Reads the form from the values of `STATEMENT_OPTIONS`.

        Raises:
            ConfigError: more than one of them was given.
        """
        forms = [name for name, value in flags.items() if value]
        if len(forms) > 1:
            raise ConfigError(f"give one of --{' and --'.join(forms)}, not both")
        return cls(form=forms[0]) if forms else cls()

    def is_printed(self, *, as_json: bool = False) -> bool:
        """Says whether anything is printed.

        Beside JSON, which has it all, only if it was asked for.
        """
        return self.form in ("statement", "explain") or (self.form == "summary" and not as_json)

    def say(self, guarantees: "Sequence[Statement]", *, as_json: bool = False) -> None:
        """Prints the statement about releases on standard error."""
        if guarantees and self.is_printed(as_json=as_json):
            note(wrap(self.spell(merge_statements(guarantees))))

    def say_hidden(
        self,
        releases: "Sequence[Released]",
        guarantees: "Sequence[Guarantee]",
        *,
        earlier: int = 0,
        unmeasured: Collection[str] = (),
        as_json: bool = False,
    ) -> None:
        """Prints the counts of hidden values in prompts.

        On standard error; then their statement if it was asked for.

        Args:
            releases: the prompts as they are sent.
            guarantees: their statements.
            earlier: how many values were found too late to be hidden everywhere in the session.
            unmeasured: the scripts and languages in them for which it was not measured how much is
                found.
            as_json: whether the output is JSON, which says it all.
        """
        if not releases or not self.is_printed(as_json=as_json):
            return
        from textveil.guarantee import describe_hidden

        note(wrap(describe_hidden(releases, earlier)))
        if unmeasured:
            protect_options = guarantees[0].claim.options["protect"]
            strict = isinstance(protect_options, dict) and protect_options["unmeasured"] == "strict"
            say_unmeasured(unmeasured, strict=strict)
        if self.form != "summary":
            self.say(guarantees)

    def say_repeated(self, messages: int) -> None:
        """Prints the number of repeated messages.

        Where more than the summary is asked for.
        """
        if messages and self.form != "summary":
            subject = (
                "1 earlier message is" if messages == 1 else f"{messages:,} earlier messages are"
            )
            note(wrap(f"{subject} sent again: drawn once, released again, spent once."))

    def spell_json(self, statement: Mapping[str, Any]) -> str:
        """Formats a statement that is known as JSON only."""
        if self.form == "summary":
            return str(statement["summary"])
        return (
            f"{statement['statement']} Unknown words: {statement['oov_share']:.1%} of those not "
            "on the public list."
        )

    def spell(self, guarantee: "Guarantee | TextGuarantee") -> str:
        """Formats one statement."""
        if self.form == "summary":
            return guarantee.summary()
        if self.form == "explain":
            return guarantee.explain()
        if not hasattr(guarantee, "oov_share"):  # of whole texts, which have no unknown words
            return guarantee.headline()
        return (
            f"{guarantee.headline()} Unknown words: {guarantee.oov_share:.1%} of those not on the "
            "public list."
        )


def merge_statements(guarantees: "Sequence[Statement]") -> "Statement":
    """Returns the statement about all texts together."""
    from textveil.guarantee import summarize

    return guarantees[0] if len(guarantees) == 1 else summarize(guarantees)


def say_unmeasured(names: Collection[str], *, strict: bool) -> None:
    """Prints that recall was not measured for some languages.

    And scripts.
    """
    languages = " and ".join(sorted(names))
    consequence = "all words that are not public are replaced" if strict else "names in it may pass"
    note(wrap(f"Recall was not measured for {languages} text; {consequence}."))
