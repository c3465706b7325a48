"""Prompts: findings are hidden, the rest is sent, and answers are restored.

In: a prompt, and the session of its conversation. Out: a `Result`; or the `Finding`s.
Not here: detection (`detect`), hiding (`privatizer`), and restoring answers (`session`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, get_args

from textveil.config import Config
from textveil.detect import NAMES
from textveil.errors import ConfigError, InputError
from textveil.pipeline.privatizer import Privatizer
from textveil.pipeline.results import Result
from textveil.protect import Finding, Grouped
from textveil.session import Session, Source
from textveil.table import EmbeddingTable


@dataclass(frozen=True, init=False, eq=False)
class Protector:
    """Protector of prompts: detected values stay here; passing words have no guarantee.

    Names and identifiers become placeholders; with names.types, names of which the detector is
    certain are replaced by names of their type. A detected value is hidden in the whole text and in
    all further texts of a session. Frozen, and shareable between threads.

    Args:
        profile: a packaged profile that hides its findings: "prompt", or "strict", which privatizes
            the rest too.
        table: a registered name or an `EmbeddingTable`, in place of the profile's.
        **overrides: options that differ from the profile's, `protect={"always": ["Alder"]}`.

    Attributes:
        privatizer: does the work.

    Raises:
        ConfigError: an option is wrong, or lets some findings pass.
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
        object.__setattr__(self, "privatizer", _require_hiding(privatizer))

    @classmethod
    def from_config(cls, config: Config, *, table: EmbeddingTable | None = None) -> Self:
        """Builds a protector from resolved options; `table` replaces the configured one.

        Raises:
            ConfigError: the options let some findings pass.
        """
        protector = object.__new__(cls)
        privatizer = Privatizer.from_config(config, table=table)
        object.__setattr__(protector, "privatizer", _require_hiding(privatizer))
        return protector

    def protect(
        self, text: str, session: Session | None = None, *, source: Source = "user"
    ) -> Result:
        """Hides private values in a prompt.

        Args:
            text: any Unicode text.
            session: gives the same value the same placeholder in all texts of a conversation, and
                restores answers. It stores what was hidden before this returns. Without one nothing
                is kept.
            source: writer of the text: "user" for a user or a system message, "tool" for a tool, a
                page or an unknown writer, "answer" for a model. Answers are restored into addresses
                that occurred in texts of users and tools, and into those of internal hosts that
                users named.

        Raises:
            InputError: the text is not a string of valid Unicode. DetectorError: a detector failed.
            ConfigError: there is no such source.
        """
        return self._get_privatizer(source).privatize(text, session)

    async def aprotect(
        self, text: str, session: Session | None = None, *, source: Source = "user"
    ) -> Result:
        """Runs `protect` in a thread.

        See `Privatizer.aprivatize` for what cancelling means.
        """
        return await self._get_privatizer(source).aprivatize(text, session)

    def protect_many(
        self, texts: Iterable[str], session: Session | None = None, *, source: Source = "user"
    ) -> Iterator[Result]:
        """Hides private values in each of many texts, in batches, in order.

        Batches are faster than single texts. The results are like those of `protect`; replacing
        names and figures are drawn anew. Without a session each text stands alone; with one they
        are a conversation. Where a text of a batch contains a placeholder, the session assigns none
        of that name in the whole batch.

        Raises:
            InputError: it is one text. Then, as the texts come, the errors of `protect`.
        """
        privatizer = self._get_privatizer(source)
        return privatizer.privatize_many(_require_texts(texts, "protect"), session)

    def find(self, text: str) -> list[Finding]:
        """Finds private values in a text, with reasons for hiding or staying.

        They are those that `protect` hides without a session, and those that stay.

        Raises:
            InputError: the text is not a string of valid Unicode, or parts of it were not measured
                and `protect.unmeasured` is `refuse`. DetectorError: a detector failed.
            ConfigError: draws decide what is hidden.
        """
        return next(self.find_many([text]))

    def find_many(self, texts: Iterable[str]) -> Iterator[list[Finding]]:
        """Finds private values in each of many texts, in batches; see `find`."""
        if self.privatizer.drawn_groups:
            raise ConfigError(
                "find cannot say what is hidden where groups are drawn at random: set "
                "protect.labels=detected"
            )
        return self.privatizer.found_in(_require_texts(texts, "find"))

    def unmeasured(self, text: str) -> tuple[str, ...]:
        """Names the scripts and languages of a text without measured detection."""
        return tuple(self.privatizer.unmeasured_in([text])[0])

    def _get_privatizer(self, source: Source) -> Privatizer:
        if source not in get_args(Source):
            raise ConfigError(f"source must be one of {', '.join(get_args(Source))}")
        return self.privatizer.with_parts(source=source)


def _require_texts(texts: Iterable[str], verb: str) -> Iterable[str]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"{verb}_many takes several texts; for one text use {verb}")
    return texts


def list_drawn_types(privatizer: Privatizer, types: Iterable[str]) -> list[str]:
    """Lists the types whose values a privatizer does not always make placeholders of.

    They are not looked for, or they pass, are drawn or become other names.
    """
    grouping, budget = privatizer.grouping, privatizer.budget
    if grouping is None or not grouping.options.detectors:
        return [*types]
    replaced = grouping.named | grouping.moved | privatizer.identifiers
    if grouping.options.level == "identifiers":
        replaced |= {*NAMES}
    is_hidden = grouping.hidden is None or _has_zero_budgets(budget)
    hidden, sought = grouping.hidden or frozenset(), grouping.detection.settings.types
    return [
        type_
        for type_ in types
        if type_ in replaced
        or not (is_hidden or type_ in hidden)
        or (sought is not None and type_ not in sought)
    ]


def _has_zero_budgets(budget: object) -> bool:
    # The first two groups are those of sensitive words.
    return isinstance(budget, Grouped) and not any(budget.budgets[:2])


def _require_hiding(privatizer: Privatizer) -> Privatizer:
    """Returns the privatizer if it hides all findings.

    They must become placeholders or names.

    Raises:
        ConfigError: a finding passes, or is drawn from the table.
    """
    grouping = privatizer.grouping
    if (
        grouping is not None
        and grouping.detection.settings.detectors
        and (grouping.hidden is None or _has_zero_budgets(privatizer.budget))
    ):
        return privatizer
    raise ConfigError(
        "a Protector must find something and hide all of it, as the profile prompt does, and with "
        "these options it does not (what draws words, such as document, is for a Privatizer): "
        "set protect.detectors or protect.always, and protect.placeholders=all or groups.budgets "
        "whose first two numbers are 0; with other budgets use Privatizer"
    )
