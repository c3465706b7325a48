"""The options of a run: which there are, and layers of them put together to one frozen `Config`.

In: a profile, a file, the environment, values by dotted path. Out: `Config` with words, table and mechanism.
Not here: how each source is read (`sources`), what a mechanism's options mean (its own parts check them).
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from enum import Enum
from numbers import Real
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field

from textveil.config.options import options
from textveil.config.sources import typed
from textveil.errors import BudgetError, ConfigError


@options("words.")
class WordsOptions:
    """How text becomes words, and what is done with words that no table row stands for.

    Attributes:
        unit: "word", or "wordpiece" for the pieces of a Hugging Face tokenizer.
        casing: "lower" releases lower-cased words; "copy" copies each word's casing, and the mask records it.
        stopwords: "pass" releases the words of a public list as they are; "protect" privatizes them too.
        oov: a word outside the table becomes a public "surrogate" row or a "placeholder", or raises an "error".
            Three papers' own rules make the statement infinite: it passes as it is ("keep"), is drawn evenly from
            the table ("uniform"), or vanishes ("drop").
        numbers: "table" takes a number as any other word; "add" moves a whole number outside the table up by at
            most 999, whatever the budget (the statement is then infinite).
        consistent: whether a word that is met again in its group, in the same text or session, has the same release;
            which words are equal is then in the mask. For mechanisms that look at each word alone.
        tokenizer: a folder, tokenizer.json file or hub id; for the unit "wordpiece" only.
    """

    unit: Literal["word", "wordpiece"] = "word"
    casing: Literal["lower", "copy"] = "lower"
    stopwords: Literal["pass", "protect"] = "pass"
    oov: Literal["surrogate", "placeholder", "error", "keep", "uniform", "drop"] = "surrogate"
    numbers: Literal["table", "add"] = "table"
    consistent: bool = False
    tokenizer: str | None = None


@options("table.")
class TableOptions:
    """Which embedding table, on which device; "chord" normalises its rows, "euclidean" takes them raw."""

    name: str = "minilm"
    metric: Literal["chord", "euclidean"] = "chord"
    device: str = "cpu"


@options("mechanism.")
class MechanismOptions:
    """A mechanism's name and its options, which the mechanism's own parts check."""

    name: str = "noise"
    options: dict[str, Any] = Field(default_factory=dict)


@options("rerank.")
class Rerank:
    """Whether each drawn word gives way to one of its nearest words, which a masked language model expects there more.

    Attributes:
        m: among how many nearest words, the drawn one included; 0 or 1 leaves every word as it was drawn.
        model: a folder or hub id of a masked language model; None is the bundled one.
    """

    m: int = Field(default=0, ge=0, le=1000)
    model: str | None = None


def _listed(value: object) -> object:
    """A list typed as text, "patterns, tagger"; None and "none" are the empty one."""
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, list | tuple):
        value = tuple(each.strip() if isinstance(each, str) else each for each in value)
        return tuple(each for each in value if each not in ("", "none"))
    return () if value is None else value


def _alone(value: object) -> object:
    """One expression as a list of it: an expression may hold commas."""
    return (value,) if isinstance(value, str) else () if value is None else value


def _numbers(value: object) -> object:
    """Four budgets typed as text, "0, 0, inf, inf"; a rule's name stays one."""
    if isinstance(value, str) and "," in value:
        value = tuple(typed("groups.budgets", each.strip(), float) for each in value.split(","))
    if not isinstance(value, str) and not (isinstance(value, list | tuple) and len(value) == 4):
        raise ConfigError("groups.budgets must be the name of a rule, or four numbers with commas between them")
    return value


Listed = Annotated[tuple[Any, ...], BeforeValidator(_listed)]
Expressions = Annotated[tuple[str, ...], BeforeValidator(_alone)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


SELF = "self"
"""The task that is the text itself."""


@options("protect.")
class ProtectOptions:
    """Which words are sensitive, which matter to the task, and so in which of four groups each word is (STAMP).

    Attributes:
        detectors: what finds sensitive parts: "patterns", "tagger", "tagger:MODEL", "spacy:NAME", "gliner:NAME",
            "stanza:LANGUAGE", "presidio"; in Python also objects with `name` and `find`. Empty: no detector.
        always: words or phrases that are sensitive wherever they stand, whatever their casing.
        always_matching: regular expressions whose matches are sensitive.
        never: words or phrases that are not sensitive, whatever a detector says.
        never_matching: regular expressions whose matches are not sensitive.
        types: types of parts that count as sensitive at all; "all", or as in `placeholders`.
        placeholders: types of sensitive parts that become typed placeholders whatever the budget; "identifiers" are
            all that have a form of their own, "names" persons, places and organizations, "all" every type.
        importance: "cosine" calls a word important when its vector and that of `task` have at least the cosine
            `tau`, "saliency" when the classifier `classifier` looks at it as much, "list" when it is one of
            `important`; "off" calls no word important.
        task: what the text is for, as a text of its own that is not secret; "self" is the text itself; None: a query
            comes with every text.
        classifier: a folder or hub id of a transformers model for text classification.
        important: the words that matter to the task, single ones, whatever their casing. Not secret.
        tau: the threshold, from -1 to 1.
        labels: "detected" releases the groups as they are; "randomised" draws each from the four, the true one with
            weight exp(label_epsilon), so that the statement covers them too.
        label_epsilon: the budget of a label; for labels "randomised" only.
        timeout: seconds that a detector may take for one batch of texts.
        on_failure: what a detector that fails does: "refuse" releases nothing, "protect" makes every text of the
            batch one placeholder, or, where no type becomes a placeholder or a name, takes all its words as sensitive.
    """

    detectors: Listed = ()
    always: Listed = Field(default=(), repr=False)  # whose names a user lists may be private
    always_matching: Expressions = Field(default=(), repr=False)
    never: Listed = Field(default=(), repr=False)
    never_matching: Expressions = Field(default=(), repr=False)
    types: Listed = ("all",)
    placeholders: Listed = ("identifiers",)
    importance: Literal["off", "cosine", "saliency", "list"] = "off"
    task: str | None = Field(default=None, repr=False)
    classifier: str | None = None
    important: Listed = Field(default=(), repr=False)  # thousands of them
    tau: float = Field(default=0.5, ge=-1, le=1)
    labels: Literal["detected", "randomised"] = "detected"
    label_epsilon: Positive | None = None
    timeout: Positive = 300.0
    on_failure: Literal["refuse", "protect"] = "refuse"

    def __post_init__(self) -> None:
        if (self.labels == "randomised") != (self.label_epsilon is not None):
            raise ConfigError("protect.label_epsilon belongs to protect.labels=randomised: give both or none")
        if (self.importance == "saliency") != (self.classifier is not None):
            raise ConfigError("protect.classifier belongs to protect.importance=saliency: give both or none")
        if (self.importance == "list") != bool(self.important):
            raise ConfigError("protect.important belongs to protect.importance=list: give both or none")
        if self.task is not None and self.importance != "cosine":
            raise ConfigError("protect.task needs protect.importance=cosine")
        if self.labels == "randomised" and self.on_failure == "protect":
            raise ConfigError(
                "protect.labels=randomised needs protect.on_failure=refuse: a failure would show in labels"
            )

    def public(self) -> dict[str, object]:
        """As statements show them: of lists and a task, which are private in themselves, only how many there are."""
        said: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self) if field.repr}
        for name in ("always", "always_matching", "never", "never_matching", "important"):
            said[name] = len(getattr(self, name))
        said["task"] = self.task if self.task in (None, SELF) else "given"
        said["detectors"] = [each if isinstance(each, str) else each.name for each in self.detectors]
        return said | {"placeholders": list(self.placeholders), "types": list(self.types)}

    @property
    def asked(self) -> bool:
        """Whether words are grouped at all."""
        return bool(self.detectors or self.always or self.always_matching or self.importance != "off")


@options("groups.")
class GroupOptions:
    """What each of the four groups may spend: sensitive and important, sensitive, important, other.

    Attributes:
        budgets: the name of a rule (see `budget.RULES`) or four numbers; 0 makes placeholders, infinity lets pass.
        base: what a rule multiplies, in place of `epsilon`, which is the largest finite budget of a group; with it,
            four numbers are multiples of it, too.
        convention: "code" divides the numbers by pi, as the public code of STAMP's paper does for its kappa.
    """

    budgets: Annotated[str | tuple[float, float, float, float], BeforeValidator(_numbers)] = "uniform"
    base: Positive | None = None
    convention: Literal["paper", "code"] = "paper"

    @property
    def fixed(self) -> bool:
        """Whether the budgets are numbers, so that neither `epsilon` nor `base` has a place."""
        if isinstance(self.budgets, str):
            return self.budgets.startswith("table1.")
        return self.base is None


@options("names.")
class NameOptions:
    """Which names are replaced by names of their type, drawn from public lists.

    Attributes:
        types: PERSON, LOCATION, ORGANIZATION, or "all" three; empty: none.
        rule: how a name is drawn from its list: "rankcape" by rank, "exponential" by distance.
        epsilon: local DP of every replaced word.
        k: how many nearest names the rule `rankcape` prefers.
    """

    types: Listed = ()
    rule: Literal["rankcape", "exponential"] = "rankcape"
    epsilon: Positive = 6.0
    k: int = Field(default=20, ge=1)


@options()
class Config:
    """Everything that decides a run.

    Attributes:
        epsilon: the promised bound per word, at least 0; infinity passes words through, and is recorded; None
            where the mechanism's own parameter is set instead, or where it needs no budget.
        seed: None for system randomness; a number gives repeatable draws, and no privacy against those who
            know it.
        profile: the profile that the options started from.
    """

    words: WordsOptions = Field(default_factory=WordsOptions)
    table: TableOptions = Field(default_factory=TableOptions)
    mechanism: MechanismOptions = Field(default_factory=MechanismOptions)
    rerank: Rerank = Field(default_factory=Rerank)
    protect: ProtectOptions = Field(default_factory=ProtectOptions)
    groups: GroupOptions = Field(default_factory=GroupOptions)
    names: NameOptions = Field(default_factory=NameOptions)
    epsilon: float | None = None
    seed: int | None = Field(default=None, ge=0)
    profile: str | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            require_budget(self.epsilon, "epsilon")

    def to_dict(self) -> dict[str, Any]:
        """Plain values in the layout of a configuration file, from which `resolve` makes the same."""
        return {
            "profile": self.profile,
            "words": asdict(self.words),
            "table": asdict(self.table),
            "mechanism": {"name": self.mechanism.name, **_plain(self.mechanism.options)},
            **{name: _plain(asdict(getattr(self, name))) for name in _OPTIONAL},
            "epsilon": self.epsilon,
            "seed": self.seed,
        }

    def public(self) -> dict[str, Any]:
        """`to_dict` as it may stand beside a release: what users list to be protected is not in it."""
        return {**self.to_dict(), "protect": self.protect.public()}

    def to_yaml(self) -> str:
        """`to_dict` as YAML."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)


_OPTIONAL: dict[str, type] = {
    "rerank": Rerank,
    "protect": ProtectOptions,
    "groups": GroupOptions,
    "names": NameOptions,
}
"""Sections that change nothing as long as none of their options is set."""


def require_number(value: object, name: str) -> float:
    """A number as a float; `BudgetError` for anything else, and for what no float can hold."""
    if isinstance(value, bool) or not isinstance(value, Real):  # NumPy's scalars are Real too
        raise BudgetError(f"{name} must be a number >= 0, got a {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise BudgetError(f"{name} must be a number >= 0, got one too large; pass inf for infinity") from None


def require_budget(value: object, name: str) -> float:
    """A budget as a float; `BudgetError` for what is not a number of at least 0. Infinity is allowed."""
    number = require_number(value, name)
    if not number >= 0:  # NaN is not >= 0
        raise BudgetError(f"{name} must be a number >= 0, got {number!r}")
    return number


# ---- from layers to a Config -----------------------------------------------------------------------------------------


# ---- values ---------------------------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Options as YAML and JSON can write them."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
