"""Prompts for language models by role, ours or those of a file.

In: a YAML file with one entry a role, or its content. Out: `Prompts`; each `Prompt` fills in texts.
Not here: our own wordings, which stand with what asks (`repair`, the judges of the bench).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field

from textveil.config import make_options
from textveil.config.option_sources import read_mapping
from textveil.errors import ConfigError, UnknownName

DIGEST_DIGITS = 12

DATA_KEY = "data"
"""The key of an entry for wordings by data set."""


class PromptRole(NamedTuple):
    """Placeholders that the prompt of a role may show.

    Args:
        shows: its placeholders.
        needs: those that it must have; "a|b" is either.
    """

    shows: tuple[str, ...]
    needs: tuple[str, ...]


ROLES: Mapping[str, PromptRole] = {
    "question_answering": PromptRole(("text", "context", "question", "length"), ("text|context",)),
    "classification": PromptRole(
        ("text", "question", "sentence", "task", "labels"), ("text|sentence",)
    ),
    "choice": PromptRole(("text", "question", "options", "task", "labels"), ("text|options",)),
    "continuation": PromptRole(("text", "length"), ("text",)),
    "extraction": PromptRole(("text", "draft", "placeholders"), ("text", "draft")),
    "repair": PromptRole(("text", "placeholders"), ("text",)),
    "generation": PromptRole(("topic", "names", "questions", "longest"), ()),
}
"""The roles in which a language model is asked."""

OTHER_NAMES = {"evaluator": "question_answering"}
"""Other names of roles: STAMP calls the model that answers its evaluator."""


@make_options("prompt.")
class Prompt:
    """Wording of what a model is asked in one role.

    Attributes:
        system: the system message; empty for none.
        user: the user's message.
        temperature: from 0 to 2; None for that of the task.
        max_tokens: largest length of an answer; None for that of the task.
        labels: for classification, the labels' names in order; empty for those of the task.
    """

    system: str = ""
    user: str = "{text}"
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1, strict=True)] | None = None
    labels: tuple[str, ...] = ()

    def fill(self, **values: object) -> tuple[str, str]:
        """Fills texts into the placeholders; returns (system message, user message).

        Raises:
            ConfigError: the texts at hand do not have one of the placeholders.
        """
        try:
            return self.system.format(**values), self.user.format(**values)
        except KeyError as error:
            name = error.args[0]
        raise ConfigError(
            f"a prompt has {{{name}}}, which these texts do not have; they have "
            f"{', '.join(sorted(values))}"
        )

    def find_placeholders(self) -> set[str]:
        """Finds the names in braces.

        Raises:
            ConfigError: a brace has no partner.
        """
        try:
            return {
                name + "!" * bool(convert) + ":" * bool(form)
                for part in (self.system, self.user)
                for _, name, form, convert in Formatter().parse(part)
                if name is not None
            }
        except ValueError:
            raise ConfigError(
                "a prompt has a brace without its partner; write {{ and }} for braces"
            ) from None


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """The prompts of a file.

    Attributes:
        name: name of the file, without its folder.
        digest: first digits of the SHA-256 of its content.
        plain: its content, for sweeps.
    """

    name: str
    digest: str
    plain: Mapping[str, Any] = field(repr=False)
    _by_role: Mapping[tuple[str, str], Prompt] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a file.

        Raises:
            ConfigError: it cannot be read, or a prompt is wrong.
            UnknownName: it has an unknown role, key or placeholder.
        """
        values = read_mapping(path)
        return cls(
            name=path.name,
            digest=sha256(path.read_bytes()).hexdigest()[:DIGEST_DIGITS],
            plain=values,
            _by_role=_parse_roles(values),
        )

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Builds prompts from the content of a file; errors as in `read`."""
        return cls(name="", digest="", plain=values, _by_role=_parse_roles(values))

    def find(self, role: str, data: str = "") -> Prompt | None:
        """Returns the prompt of a role, for a data set if it has its own; None for ours.

        Args:
            role: a name from `ROLES`.
            data: name of the data set; a part after a hyphen may be missing in the file.
        """
        for key in (data, data.partition("-")[0], ""):
            if (prompt := self._by_role.get((role, key))) is not None:
                return prompt
        return None

    @property
    def roles(self) -> Sequence[str]:
        """The roles that it has."""
        return [role for role in ROLES if any(role == name for name, _ in self._by_role)]

    def __str__(self) -> str:
        ours = [role for role in ROLES if role not in self.roles]
        rest = f"; ours: {', '.join(ours)}" if ours else ""
        return f"{self.name} (SHA-256 {self.digest}): {', '.join(self.roles) or 'none'}{rest}"


def _parse_roles(values: Mapping[Any, Any]) -> dict[tuple[str, str], Prompt]:
    prompts: dict[tuple[str, str], Prompt] = {}
    for typed, entry in values.items():
        role = OTHER_NAMES.get(str(typed), str(typed))
        if role not in ROLES:
            raise UnknownName("role of prompts", str(typed), [*ROLES, *OTHER_NAMES])
        if any(name == role for name, _ in prompts):
            raise ConfigError(f"prompts has {role} twice: {typed} is another name of it")
        if not isinstance(entry, Mapping):
            raise ConfigError(f"prompts.{typed} must be a mapping with system, user or both")
        shared = {key: item for key, item in entry.items() if key != DATA_KEY}
        by_data = entry.get(DATA_KEY, {})
        if not isinstance(by_data, Mapping) or not all(
            isinstance(item, Mapping) for item in by_data.values()
        ):
            raise ConfigError(f"prompts.{typed}.data must have a mapping for each data set")
        if shared:
            prompts[role, ""] = _build_prompt(role, str(typed), shared)
        for data, item in by_data.items():
            prompts[role, str(data)] = _build_prompt(
                role, f"{typed}.data.{data}", {**shared, **item}
            )
    return prompts


def _build_prompt(role: str, place: str, values: Mapping[Any, Any]) -> Prompt:
    keys = [item.name for item in fields(Prompt)]
    for key in values:
        if key not in keys:
            raise UnknownName(f"key of prompts.{place}", str(key), [*keys, DATA_KEY])
    try:
        prompt = Prompt(**values)
        placeholders = prompt.find_placeholders()
    except ConfigError as error:
        raise ConfigError(f"prompts.{place}: {error}") from None
    shows, needs = ROLES[role]
    for name in placeholders:
        if name not in shows:
            raise UnknownName(f"placeholder of prompts.{place}", name, shows)
    for need in needs:
        if not placeholders & set(need.split("|")):
            choices = " or ".join(f"{{{name}}}" for name in need.split("|"))
            raise ConfigError(f"prompts.{place} must show {choices}")
    return prompt
