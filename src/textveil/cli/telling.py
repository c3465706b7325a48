"""Printing statements about releases, and the options that choose their form.

In: statements. Out: one plain line, three lines or all of it, on standard error.
Not here: the words (`textveil.guarantee`).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textveil.cli.options import Shared
from textveil.cli.shell import note, wrap
from textveil.errors import ConfigError

if TYPE_CHECKING:
    from textveil.guarantee import Guarantee
    from textveil.text import Released

TELLING: dict[str, Shared] = {
    "statement": Shared(
        flag="--statement",
        kind=bool,
        default=False,
        panel=None,
        help="Print the statement in its three lines.",
    ),
    "explain": Shared(
        flag="--explain",
        kind=bool,
        default=False,
        panel=None,
        help="Print the whole statement, with its caveats.",
    ),
    "quiet": Shared(
        flag="--quiet", kind=bool, default=False, panel=None, help="Print no statement."
    ),
}
"""The options of verbs that release text.

The JSON has the whole statement whatever they are.
"""


@dataclass(frozen=True, kw_only=True)
class Telling:
    """The form of statements: one plain line, or a longer one."""

    how: str = "summary"

    @classmethod
    def of(cls, given: Mapping[str, bool]) -> "Telling":
        """Reads the form from the values of `TELLING`.

        Raises:
            ConfigError: more than one of them was given.
        """
        asked = [name for name, value in given.items() if value]
        if len(asked) > 1:
            raise ConfigError(f"give one of --{' and --'.join(asked)}, not both")
        return cls(how=asked[0]) if asked else cls()

    def speaks(self, *, as_json: bool = False) -> bool:
        """Says whether anything is printed.

        Beside JSON, which has it all, only if it was asked for.
        """
        return self.how in ("statement", "explain") or (self.how == "summary" and not as_json)

    def say(self, guarantees: "Sequence[Guarantee]", *, as_json: bool = False) -> None:
        """Prints the statement about releases on standard error."""
        if guarantees and self.speaks(as_json=as_json):
            note(wrap(self.spell(together(guarantees))))

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
        if not releases or not self.speaks(as_json=as_json):
            return
        from textveil.guarantee import hidden

        note(wrap(hidden(releases, earlier)))
        if unmeasured:
            chosen = guarantees[0].claim.options["protect"]
            strict = isinstance(chosen, dict) and chosen["unmeasured"] == "strict"
            say_unmeasured(unmeasured, strict=strict)
        if self.how != "summary":
            self.say(guarantees)

    def say_repeated(self, messages: int) -> None:
        """Prints the number of repeated messages.

        Where more than the summary is asked for.
        """
        if messages and self.how != "summary":
            again = (
                "1 earlier message is" if messages == 1 else f"{messages:,} earlier messages are"
            )
            note(wrap(f"{again} sent again: drawn once, released again, spent once."))

    def spell_json(self, stated: Mapping[str, Any]) -> str:
        """Formats a statement that is known as JSON only."""
        if self.how == "summary":
            return str(stated["summary"])
        return f"{stated['statement']} Unknown words: {stated['oov_share']:.1%} of those not on the public list."

    def spell(self, said: "Guarantee") -> str:
        """Formats one statement."""
        if self.how == "summary":
            return said.summary()
        if self.how == "explain":
            return said.explain()
        return f"{said.headline()} Unknown words: {said.oov_share:.1%} of those not on the public list."


def together(guarantees: "Sequence[Guarantee]") -> "Guarantee":
    """Returns the statement about all texts together."""
    from textveil.guarantee import summarize

    return guarantees[0] if len(guarantees) == 1 else summarize(list(guarantees))


def say_unmeasured(names: Collection[str], *, strict: bool) -> None:
    """Prints that recall was not measured for some languages.

    And scripts.
    """
    named = " and ".join(sorted(names))
    so = "all of it but public words is replaced" if strict else "names in it may pass"
    note(wrap(f"Recall was not measured for {named} text; {so}."))
