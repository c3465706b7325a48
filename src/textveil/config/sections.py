"""The options of a run, and the frozen `Config` that holds them.

In: option values. Out: `Config` with sections for words, table, mechanism and the rest.
Not here: how sources are read (`option_sources`) and merged (`layers`); mechanisms check their own
options.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from enum import Enum
from numbers import Real
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field

from textveil.config.frozen import make_options
from textveil.config.option_sources import convert_value
from textveil.errors import BudgetError, ConfigError


@make_options("words.")
class WordsOptions:
    """Options for splitting text into words, and for unknown words.

    Attributes:
        unit: "word", or "wordpiece" for the pieces of a Hugging Face tokenizer; "auto" is what the
            table holds.
        casing: "lower" releases lower-cased words; "copy" copies each word's casing, and the mask
            records it.
        stopwords: "pass" releases words on the public list as they are; "protect" privatizes them
            too.
        oov: a word outside the table becomes a public "surrogate" row or a "placeholder", or raises
            an "error". Three rules from papers make the statement infinite: the word passes
            ("keep"), is drawn uniformly from the table ("uniform"), or is removed ("drop").
        numbers: "table" treats numbers like other words; "add" raises an integer outside the table
            by at most 999, whatever the budget (the statement is then infinite).
        consistent: whether a word that occurs again in its group, in the same text or session, gets
            the same release; the mask then shows which words are equal. For mechanisms that look at
            each word alone.
        lasting: whether it gets the same release in all sessions of a subject, for good:
            pseudonymization by a random table. Words can then be told by how often they occur, and
            what all releases together spend is epsilon times the number of distinct words. Needs
            `consistent`, and sessions in a database (`SQLStore`).
        tokenizer: a folder, tokenizer.json file or hub id; only for the unit "wordpiece". Without
            one it is the table's own.
    """

    unit: Literal["auto", "word", "wordpiece"] = "auto"
    casing: Literal["lower", "copy"] = "lower"
    stopwords: Literal["pass", "protect"] = "pass"
    oov: Literal["surrogate", "placeholder", "error", "keep", "uniform", "drop"] = "surrogate"
    numbers: Literal["table", "add"] = "table"
    consistent: bool = False
    lasting: bool = False
    tokenizer: str | None = None


def _spell_codes(value: object) -> object:
    """Converts a number, or a list of them, to text.

    Numbers of codes may be given as either.
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


@make_options("table.")
class TableOptions:
    """Options of the embedding table: its name, device and codes.

    Attributes:
        name: a registered name or a folder.
        metric: "chord" normalizes its rows, "euclidean" uses them as they are.
        device: where the nearest row is searched for.
        codes: the number of codes of a general book of the package, or the path of a book: words of
            one code are then one value to the mechanism, and nobody tells them apart. "BOOK@24" is
            the level of 24 codes of a nested book. Four of them, as a list or with commas, are for
            the four groups of `groups.budgets`, in its order. "auto": the general book that tells
            most at the budget, of each group; "BOOK@auto": the level of the book that does. None:
            every word is a value of its own.
        spelling: what a code is shown as in a release: its most typical "word", or the "code"
            itself ("code17").
    """

    name: str = "minilm"
    metric: Literal["chord", "euclidean"] = "chord"
    device: str = "cpu"
    codes: Annotated[str | None, BeforeValidator(_spell_codes)] = None
    spelling: Literal["word", "code"] = "word"

    def __post_init__(self) -> None:
        if self.spelling == "code" and self.codes is None:
            raise ConfigError(
                "table.spelling=code (--emit codes) needs table.codes (--codes): set that, too"
            )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values; the codes only where they are set."""
        return {
            name: value
            for name, value in asdict(self).items()
            if self.codes or name not in ("codes", "spelling")
        }


@make_options("mechanism.")
class MechanismOptions:
    """A mechanism's name and options; the mechanism checks the options itself."""

    name: str = "noise"
    options: dict[str, Any] = Field(default_factory=dict)


@make_options("rerank.")
class Rerank:
    """Options for re-ranking drawn words by a masked language model.

    Each drawn word is replaced by the one of its nearest words that fits best.

    Where codes are drawn (`table.codes`), each is spelled by the one of its words that fits
    best.

    Attributes:
        m: how many nearest words to choose from, the drawn one included, or of a code how many of
            its most frequent ones; 0 or 1 keeps the drawn word, and the most typical one of a code.
        model: a folder or hub id of a masked language model; None is the bundled one.
    """

    m: int = Field(default=0, ge=0, le=1000)
    model: str | None = None


def _split_list(value: object) -> object:
    """Splits a list given as text, "patterns, tagger".

    None and "none" mean the empty list.
    """
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, list | tuple):
        value = tuple(part.strip() if isinstance(part, str) else part for part in value)
        return tuple(part for part in value if part not in ("", "none"))
    return () if value is None else value


def _wrap_single(value: object) -> object:
    """Wraps a single expression in a list.

    It is not split, because it may contain commas.
    """
    return (value,) if isinstance(value, str) else () if value is None else value


def _split_numbers(value: object) -> object:
    """Splits four budgets given as text, "0, 0, inf, inf".

    A rule's name stays a name.
    """
    if isinstance(value, str) and "," in value:
        value = tuple(
            convert_value("groups.budgets", part.strip(), float) for part in value.split(",")
        )
    if not isinstance(value, str) and not (isinstance(value, list | tuple) and len(value) == 4):
        raise ConfigError(
            "groups.budgets must be the name of a rule, or four numbers separated by commas"
        )
    return value


ValueList = Annotated[tuple[Any, ...], BeforeValidator(_split_list)]
Expressions = Annotated[tuple[str, ...], BeforeValidator(_wrap_single)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


SELF = "self"
"""The name for the text itself as the task."""


@make_options("protect.")
class ProtectOptions:
    """Options for assigning words to the four groups (STAMP).

    By which are sensitive, and which matter to the task.

    Attributes:
        detectors: what finds sensitive parts: "patterns", "structure", "tagger", "tagger:MODEL",
            "spacy:NAME", "gliner:NAME", "stanza:LANGUAGE", "presidio"; in Python also objects with
            `name` and `find`. Empty: none.
        always: words or phrases that are always sensitive, ignoring case.
        always_matching: regular expressions whose matches are sensitive.
        never: words or phrases that are never sensitive, whatever a detector says.
        never_matching: regular expressions whose matches are not sensitive.
        level: which of what is found counts as sensitive: "identifiers" only what has a form
            (numbers, addresses, secrets); "personal" also names of private persons, and of places
            and organizations that tell where they live or work; "names" every name, public ones
            too. Without a tagger among the detectors names are found behind keys alone (`name:
            ...`).
        dates: which dates are sensitive: "personal" those of somebody's life, such as birth and
            appointments; "all" every day, month with a year, and year, whatever it is of, as in
            judgments and medical notes; "none" no date.
        types: types that count as sensitive; "all", or as in `placeholders`.
        placeholders: types that become typed placeholders whatever the budget; "identifiers" are
            those with a fixed form, "names" persons, places and organizations, "all" every type.
        importance: a word is important if its vector's cosine with that of `task` is at least `tau`
            ("cosine"), if its saliency for `classifier` is at least `tau` ("saliency"), or if it is
            one of `important` ("list"); with "off" no word is.
        task: what the text is for, as a text that is not secret; "self" is the text itself; None: a
            query is given with every text.
        classifier: a folder or hub id of a transformers model for text classification.
        important: the words that matter to the task, single words, ignoring case. Not secret.
        tau: the threshold, from -1 to 1.
        labels: "detected" releases the groups as they are; "randomised" draws each of the four, the
            true one with weight exp(label_epsilon), so that the statement covers them too.
        label_epsilon: the budget of a label; only for labels "randomised".
        timeout: seconds for which a detector may show no progress; one that never shows any must
            answer by then.
        on_failure: what happens if a detector fails: "refuse" releases nothing; "protect" makes
            each text of the batch one placeholder or, if no type becomes a placeholder or a name,
            treats all its words as sensitive.
        unmeasured: what happens to parts in scripts and languages for which it was not measured how
            much is found: "say" names these in the result; "strict" makes placeholders of them too,
            but for public words; "refuse" releases nothing.
    """

    detectors: ValueList = ()
    always: ValueList = Field(default=(), repr=False)  # a list of names may be private
    always_matching: Expressions = Field(default=(), repr=False)
    never: ValueList = Field(default=(), repr=False)
    never_matching: Expressions = Field(default=(), repr=False)
    level: Literal["identifiers", "personal", "names"] = "personal"
    dates: Literal["personal", "all", "none"] = "personal"
    types: ValueList = ("all",)
    placeholders: ValueList = ("identifiers",)
    importance: Literal["off", "cosine", "saliency", "list"] = "off"
    task: str | None = Field(default=None, repr=False)
    classifier: str | None = None
    important: ValueList = Field(default=(), repr=False)  # may be thousands
    tau: float = Field(default=0.5, ge=-1, le=1)
    labels: Literal["detected", "randomised"] = "detected"
    label_epsilon: Positive | None = None
    timeout: Positive = 300.0
    on_failure: Literal["refuse", "protect"] = "refuse"
    unmeasured: Literal["say", "strict", "refuse"] = "say"

    def __post_init__(self) -> None:
        randomised, strict = self.labels == "randomised", self.unmeasured == "strict"
        lacks_detectors = self.unmeasured != "say" and not self.detectors
        exclusions = {
            "protect.label_epsilon goes with protect.labels=randomised: set both or neither": (
                randomised != (self.label_epsilon is not None)
            ),
            "protect.classifier goes with protect.importance=saliency: set both or neither": (
                (self.importance == "saliency") != (self.classifier is not None)
            ),
            "protect.important goes with protect.importance=list: set both or neither": (
                (self.importance == "list") != bool(self.important)
            ),
            "protect.task needs protect.importance=cosine": (
                self.task is not None and self.importance != "cosine"
            ),
            "protect.labels=randomised needs protect.on_failure=refuse: labels would reveal a failure": (
                randomised and self.on_failure == "protect"
            ),
            "protect.dates=all needs protect.detectors: set protect.detectors, or keep "
            "protect.dates=personal": self.dates == "all" and not self.detectors,
            "protect.dates=all needs DATE among protect.types: add it, or keep protect.dates=personal": (
                self.dates == "all" and not {"all", "identifiers", "DATE"} & {*self.types}
            ),
            f"protect.unmeasured={self.unmeasured} needs protect.detectors: set "
            "protect.detectors, or keep protect.unmeasured=say": lacks_detectors,
            "protect.unmeasured=strict makes placeholders, which protect.labels=randomised "
            "cannot have: set only one of the two": (randomised and strict),
        }
        for reason, holds in exclusions.items():
            if holds:
                raise ConfigError(reason)

    def dump(self) -> dict[str, Any]:
        """Returns plain values; the choice of dates only where it is set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.dates == "personal":
            del values["dates"]
        return values

    def dump_public(self) -> dict[str, object]:
        """Returns the options as statements show them.

        Private lists and the task appear only as their lengths.
        """
        values: dict[str, object] = {
            name: value
            for name, value in self.dump().items()
            if self.__dataclass_fields__[name].repr
        }
        for name in ("always", "always_matching", "never", "never_matching", "important"):
            values[name] = len(getattr(self, name))
        values["task"] = self.task if self.task in (None, SELF) else "given"
        values["detectors"] = [
            detector if isinstance(detector, str) else detector.name for detector in self.detectors
        ]
        return values | {"placeholders": list(self.placeholders), "types": list(self.types)}

    @property
    def has_groups(self) -> bool:
        """A flag: words are put into groups."""
        return bool(
            self.detectors or self.always or self.always_matching or self.importance != "off"
        )


@make_options("groups.")
class GroupOptions:
    """The budget of each of the four groups.

    Sensitive and important, sensitive, important, other.

    Attributes:
        budgets: the name of a rule (see `budget.RULES`) or four numbers; 0 makes placeholders,
            infinity lets pass.
        base: what the rule's numbers multiply, instead of `epsilon`, which sets the largest finite
            budget of a group; with a base, four numbers of your own are multiples too.
        convention: "code" divides the numbers by pi, as the public code of STAMP's paper does for
            its kappa.
    """

    budgets: Annotated[str | tuple[float, float, float, float], BeforeValidator(_split_numbers)] = (
        "uniform"
    )
    base: Positive | None = None
    convention: Literal["paper", "code"] = "paper"

    @property
    def has_fixed_budgets(self) -> bool:
        """A flag: the budgets are absolute.

        Neither `epsilon` nor `base` applies then.
        """
        if isinstance(self.budgets, str):
            return self.budgets.startswith("table1.")
        return self.base is None


@make_options("names.")
class NameOptions:
    """Options for replacing names by names from public lists.

    They are of the same type.

    Attributes:
        types: PERSON, LOCATION, ORGANIZATION, or "all" three; empty for none. Names whose
            detector's score is below .9, and those in scripts without capitals (Chinese, Arabic),
            become placeholders.
        rule: how a name is drawn from its list: "rankcape" by rank, "exponential" by distance.
        epsilon: local DP of each replaced word.
        k: how many nearest names the rule `rankcape` prefers.
    """

    types: ValueList = ()
    rule: Literal["rankcape", "exponential"] = "rankcape"
    epsilon: Positive = 6.0
    k: int = Field(default=20, ge=1)


@make_options("figures.")
class FigureOptions:
    """Options for moving dates, ages and amounts.

    By discrete Laplace noise; they are written much as they were.

    The probability of what is released changes by a factor of at most exp(epsilon * distance). The
    standard deviation of the noise is about 1.4 / epsilon.

    Attributes:
        types: DATE, BIRTH_DATE, AGE, or "all" three; types of detectors of your own, whose figures
            are amounts; empty for none. What is not certain to be one, or cannot be read with
            certainty, becomes a placeholder.
        day_epsilon: for each day by which all dates of a session are moved together; .005 moves
            them by about 280 days.
        year_epsilon: for each year of an age; .2 moves it by about 7 years.
        unit_epsilon: for each `unit` of an amount; .2 moves it by about 7 units.
        unit: how far two amounts may lie apart for one `unit_epsilon`; goes with types of your own.
    """

    types: ValueList = ()
    day_epsilon: Positive = 0.005
    year_epsilon: Positive = 0.2
    unit_epsilon: Positive = 0.2
    unit: Positive | None = None


@make_options("identifiers.")
class IdentifierOptions:
    """Options for replacing identifiers by invented ones, which belong to nobody.

    Attributes:
        types: CARD, EMAIL, IBAN, IP, NATIONAL_ID, PHONE, or "all"; empty for none. What has no
            reserved range, or none that is free in the session, becomes a placeholder.
    """

    types: ValueList = ()


@make_options("texts.")
class TextOptions:
    """Options for releasing a public text in place of a whole private one.

    Attributes:
        unit: what is replaced: each "word" of a text, the whole "document", or each "sentence" of
            it; for documents and sentences all options of words are left out.
        library: the file of a library of public texts, as `textveil library make` writes it.
        cells: the name of a level of its cells; "auto": its public labels, else its classes, else
            the clusters that suit epsilon.
        sure: the share of a cell's texts, the surest, among which one is drawn; None: as the
            library says.
    """

    unit: Literal["word", "document", "sentence"] = "word"
    library: str | None = None
    cells: str = "auto"
    sure: float | None = Field(default=None, gt=0, le=1)

    def __post_init__(self) -> None:
        names = ("library", "cells", "sure")
        given = [f"texts.{name}" for name in names if getattr(self, name) not in (None, "auto")]
        if self.unit == "word" and given:
            raise ConfigError(
                f"{' and '.join(given)} must go with whole texts: set texts.unit=document or "
                "sentence (--unit), too"
            )
        if self.unit != "word" and self.library is None:
            raise ConfigError(
                f"texts.unit={self.unit} (--unit) needs a library of public texts: set "
                "texts.library (--library), a file of `textveil library make`"
            )


@make_options()
class Config:
    """All settings of a run.

    Attributes:
        epsilon: the guaranteed bound per word, at least 0; infinity passes words through, on
            record; None if the mechanism's own parameter is set instead, or if it needs no budget.
            With whole texts, the bound per document or sentence.
        risk: the share of words that an attacker may guess; the epsilon is found that keeps to it,
            see `pipeline.resolve_budget`. With both, epsilon is what was found.
        prior: a file of public texts, whose words are what that attacker expects; None: the
            packaged word frequencies.
        seed: None for system randomness; a number makes draws repeatable, and gives no protection
            against anyone who knows it.
        profile: the profile the options started from.
    """

    words: WordsOptions = Field(default_factory=WordsOptions)
    table: TableOptions = Field(default_factory=TableOptions)
    mechanism: MechanismOptions = Field(default_factory=MechanismOptions)
    rerank: Rerank = Field(default_factory=Rerank)
    protect: ProtectOptions = Field(default_factory=ProtectOptions)
    groups: GroupOptions = Field(default_factory=GroupOptions)
    names: NameOptions = Field(default_factory=NameOptions)
    figures: FigureOptions = Field(default_factory=FigureOptions)
    identifiers: IdentifierOptions = Field(default_factory=IdentifierOptions)
    texts: TextOptions = Field(default_factory=TextOptions)
    epsilon: float | None = None
    risk: float | None = None
    prior: str | None = None
    seed: int | None = Field(default=None, ge=0)
    profile: str | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            require_budget(self.epsilon, "epsilon")
        if self.risk is not None and not 0 < convert_number(self.risk, "risk") < 1:
            raise BudgetError(
                "risk must be above 0 and below 1, the share of words that may be guessed, got "
                f"{self.risk:g}"
            )
        if self.prior is not None and self.risk is None:
            raise ConfigError(
                "prior (--public) names the texts from which risk (--risk) finds a budget: set "
                "risk, too"
            )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values in the layout of a configuration file.

        `resolve` restores them.

        Figures, identifiers, risk, codes, `words.lasting` and `protect.dates` are in it only where they are set:
        stored results are found by their configuration, and these are younger than they are. For
        whole texts no option of words is in it.
        """
        if self.texts.unit != "word":
            whole = _convert_plain(asdict(self.texts))
            return {
                "profile": self.profile,
                "texts": whole,
                "epsilon": self.epsilon,
                "seed": self.seed,
            }
        sections = [
            name
            for name in _OPTIONAL
            if name != "texts"
            and (name != "figures" or self.figures != FigureOptions())
            and (name != "identifiers" or self.identifiers != IdentifierOptions())
        ]
        return {
            "profile": self.profile,
            "words": {
                name: value
                for name, value in asdict(self.words).items()
                if name != "lasting" or value
            },
            "table": self.table.to_dict(),
            "mechanism": {"name": self.mechanism.name, **_convert_plain(self.mechanism.options)},
            **{name: _convert_plain(asdict(getattr(self, name))) for name in sections},
            "protect": _convert_plain(self.protect.dump()),
            "epsilon": self.epsilon,
            **({} if self.risk is None else {"risk": self.risk, "prior": self.prior}),
            "seed": self.seed,
        }

    def dump_public(self) -> dict[str, Any]:
        """Returns `to_dict` as it may accompany a release.

        Without the user's lists of what to protect.
        """
        values = self.to_dict()
        return {
            **values,
            **({"protect": self.protect.dump_public()} if "protect" in values else {}),
        }

    def to_yaml(self) -> str:
        """Returns `to_dict` as YAML."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)


_OPTIONAL: dict[str, type] = {
    "rerank": Rerank,
    "protect": ProtectOptions,
    "groups": GroupOptions,
    "names": NameOptions,
    "figures": FigureOptions,
    "identifiers": IdentifierOptions,
    "texts": TextOptions,
}
"""Sections without effect until one of their options is set."""


def convert_number(value: object, name: str) -> float:
    """Converts a number to a float.

    `BudgetError` for anything else, or a number too large for a float.
    """
    if isinstance(value, bool) or not isinstance(value, Real):  # NumPy's scalars are Real too
        raise BudgetError(f"{name} must be a number >= 0, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise BudgetError(
            f"{name} must be a number >= 0, got one too large; write inf for infinity"
        ) from None


def require_budget(value: object, name: str) -> float:
    """Converts a budget to a float.

    `BudgetError` unless it is a number of at least 0. Infinity is allowed.
    """
    number = convert_number(value, name)
    if not number >= 0:  # NaN is not >= 0
        raise BudgetError(f"{name} must be a number >= 0, got {number!r}")
    return number


# ---- values --------------------------------------------------------------------------------------


def _convert_plain(value: Any) -> Any:
    """Converts options to values that YAML and JSON can write."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _convert_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_convert_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
