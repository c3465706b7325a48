"""Prompts: what is found in a text is hidden, the rest is sent as it stands, and answers can be restored.

In: a prompt, and the session of its conversation. Out: a `Result`.
Not here: what is found (`protect`), how it is hidden (`privatizer`), and how answers are restored (`session`).
"""

from dataclasses import dataclass
from typing import Any, get_args

from textveil.errors import ConfigError
from textveil.pipeline.privatizer import Privatizer
from textveil.pipeline.results import Result
from textveil.protect import Grouped
from textveil.session import Session, Source
from textveil.table import EmbeddingTable


@dataclass(frozen=True, init=False, eq=False)
class Protector:
    """Protects prompts: what is found in a text does not leave; nothing is claimed about words that pass.

    Names and identifiers become placeholders; with names.types, names of which the detector is certain give way to
    other names of their type. What was found once is hidden in the whole text and in all further texts of a session.
    Frozen, and shareable between threads.

    Args:
        profile: a packaged profile that hides what it finds: "prompt", or "strict", which privatizes the rest too.
        table: a registered name or an `EmbeddingTable`, in place of the profile's.
        **overrides: options that differ from the profile's, `protect={"always": ["Alder"]}`.

    Attributes:
        privatizer: does the work.

    Raises:
        ConfigError: an option is wrong, or lets pass some of what is found.
        UnknownName: no profile or option has this name.
    """

    privatizer: Privatizer

    def __init__(
        self,
        profile: str = "prompt",
        *,
        table: str | EmbeddingTable | None = None,
        **overrides: Any,
    ) -> None:
        privatizer = Privatizer.from_profile(profile, table=table, **overrides)
        if not _hides(privatizer):
            raise ConfigError(
                "a Protector must find something and hide all of it, and with these options it does not: set "
                "protect.detectors or protect.always, and protect.placeholders=all or groups.budgets whose first two "
                "numbers are 0; with other budgets use Privatizer"
            )
        object.__setattr__(self, "privatizer", privatizer)

    def protect(
        self, text: str, session: Session | None = None, *, source: Source = "user"
    ) -> Result:
        """Hides what is private in a prompt.

        Args:
            text: any Unicode text.
            session: gives the same value the same placeholder in all texts of a conversation, and restores answers.
                It remembers what was hidden before this returns. Without one nothing is kept.
            source: who wrote the text: "user" for a user or a system message, "tool" for what a tool, a page or
                somebody unknown said, "answer" for what a model said. Answers are restored into addresses that stood in
                texts of users and tools, and into those of internal hosts that users named.

        Raises:
            InputError: the text is not a string of valid Unicode. DetectorError: a detector failed.
            ConfigError: there is no such source.
        """
        return self._of(source).privatize(text, session)

    async def aprotect(
        self, text: str, session: Session | None = None, *, source: Source = "user"
    ) -> Result:
        """The same in a thread; see `Privatizer.aprivatize` for what cancelling means."""
        return await self._of(source).aprivatize(text, session)

    def _of(self, source: Source) -> Privatizer:
        if source not in get_args(Source):
            raise ConfigError(f"source must be one of {', '.join(get_args(Source))}")
        return self.privatizer.with_parts(source=source)


def _hides(privatizer: Privatizer) -> bool:
    """Whether nothing that is found passes or is drawn from the table: it becomes a placeholder, or another name."""
    grouping, budget = privatizer.grouping, privatizer.budget
    if grouping is None or not grouping.detectors:
        return False
    return grouping.hidden is None or (isinstance(budget, Grouped) and not any(budget.budgets[:2]))
