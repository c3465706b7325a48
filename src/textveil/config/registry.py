"""The registry: names of tables, mechanisms, detectors, and their implementations.

In: a kind and a name. Out: its entry, its callable, and that callable's options. Nothing is
imported before `load`, so listing names is cheap.
Not here: the implementations, each in the room of its kind; profiles and option values (`option_sources`,
`layers`).

To add one, write it and add a line to the table of its kind below. Other packages add theirs
through an entry point in the group of the kind, such as `textveil.detectors`.
"""

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from textveil.config import extras
from textveil.errors import (
    ConfigError,
    MissingExtra,
    TextveilError,
    TextveilWarning,
    UnknownName,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

RegistryKind = Literal[
    "table",
    "mechanism",
    "detector",
    "format",
    "attack",
    "measure",
    "dataset",
    "protocol",
    "store",
    "command",
]
REGISTRY_KINDS: tuple[RegistryKind, ...] = get_args(RegistryKind)

ENTRY_POINT_GROUPS: Mapping[RegistryKind, str] = {
    kind: f"textveil.{kind}s" for kind in REGISTRY_KINDS
}
"""The entry-point group of each kind, in which other packages offer names."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the registry.

    Attributes:
        target: "module:callable".
        summary: one line for lists.
        parameter: for a mechanism, the option that sets its own budget parameter in place of
            `epsilon`; None if there is no such option.
        budget: for a mechanism, whether it needs a budget at all.
        codes: for a mechanism, whether it draws among the codes of a table, so that
            `table.codes` must be set.
        panel: of a command, the heading under which `textveil --help` lists it.
        package: the distribution that registers the name.
    """

    target: str
    summary: str
    parameter: str | None = None
    budget: bool = True
    codes: bool = False
    panel: str | None = None
    package: str = "textveil"


MECHANISMS: dict[str, Entry] = {
    "noise": Entry(
        target="textveil.mechanism.papers:noise",
        summary="multivariate Laplace noise on each word's vector, then the nearest word",
        parameter="eta",
    ),
    "stencil": Entry(
        target="textveil.mechanism.papers:stencil",
        summary="a weighted mean of neighbouring words' vectors, without noise: no guarantee",
        budget=False,
    ),
    "d-chi-stencil": Entry(
        target="textveil.mechanism.papers:d_chi_stencil",
        summary="a weighted mean of neighbouring words' vectors plus multivariate Laplace noise",
        parameter="eta",
    ),
    "polar": Entry(
        target="textveil.mechanism.papers:polar",
        summary="a von Mises-Fisher draw around each word's direction, then the nearest word",
        parameter="kappa",
    ),
    "laplace": Entry(
        target="textveil.mechanism.papers:laplace",
        summary="Laplace noise on every coordinate of each word's vector, then the nearest word",
        parameter="nominal",
    ),
    "exponential": Entry(
        target="textveil.mechanism.papers:exponential",
        summary="a word of the whole vocabulary, drawn with a weight that falls with distance",
        parameter="c",
    ),
    "santext": Entry(
        target="textveil.mechanism.papers:santext",
        summary="exponential with the paper's weights, exp(-epsilon distance / 2)",
        parameter="c",
    ),
    "santext+": Entry(
        target="textveil.mechanism.papers:santext_plus",
        summary="santext for rare words; frequent ones mostly stay: no guarantee for all words",
        parameter="c",
    ),
    "custext": Entry(
        target="textveil.mechanism.papers:custext",
        summary="a word from a list of k, nearer ones more often: no guarantee for all words",
        parameter="nominal",
    ),
    "custext+": Entry(
        target="textveil.mechanism.papers:custext_plus",
        summary="custext that leaves stop words unchanged: no guarantee for all words",
        parameter="nominal",
    ),
    "mahalanobis": Entry(
        target="textveil.mechanism.papers:mahalanobis",
        summary="noise that follows the table's spread, then the nearest word",
        parameter="eta",
    ),
    "vickrey": Entry(
        target="textveil.mechanism.papers:vickrey",
        summary="noise on the vector, then the nearest or second nearest word",
        parameter="eta",
    ),
    "tem": Entry(
        target="textveil.mechanism.papers:tem",
        summary="a near word by distance, or any far word: truncated exponential",
        parameter="c",
    ),
    "1-diffractor": Entry(
        target="textveil.mechanism.papers:diffractor",
        summary="a word some places away in a public list",
        parameter="nominal",
    ),
    "dp-mlm": Entry(
        target="textveil.mechanism.papers:dp_mlm",
        summary="a word by a language model's clipped logits at its place",
        parameter="nominal",
    ),
    "rantext": Entry(
        target="textveil.mechanism.papers:rantext",
        summary="a word within a random radius, as InferDPT draws it: no guarantee",
        parameter="nominal",
    ),
    "krr": Entry(
        target="textveil.mechanism.papers:krr",
        summary="k-ary randomised response: the word itself, or any other",
    ),
    "codebook": Entry(
        target="textveil.mechanism.papers:codebook",
        summary="one of a few codes of words (table.codes): the word's own, or any other",
        codes=True,
    ),
    "cape": Entry(
        target="textveil.mechanism.papers:cape",
        summary="a bucket of words with similar scores (distance, context), then any word from it",
        parameter="nominal",
    ),
    "rankcape": Entry(
        target="textveil.mechanism.papers:rankcape",
        summary="a word by its rank under any score (distance, context): local DP, whatever the score",
    ),
    "mask-and-fill": Entry(
        target="textveil.mechanism.papers:mask_and_fill",
        summary="a language model fills in each protected word from the passing words alone",
        budget=False,
    ),
    "placeholder": Entry(
        target="textveil.mechanism.papers:placeholder",
        summary="every protected word is replaced by a placeholder",
        budget=False,
    ),
}

TABLES: dict[str, Entry] = {
    "minilm": Entry(
        target="textveil.table.minilm:minilm",
        summary="input embeddings of all-MiniLM-L6-v2, ASCII words and numerals (22,580 rows)",
    ),
    "minilm-s": Entry(
        target="textveil.table.minilm:minilm_s",
        summary="minilm with words only (21,719 rows)",
    ),
    "minilm-wordpiece": Entry(
        target="textveil.table.minilm:minilm_wordpiece",
        summary="minilm with every word piece of its tokenizer, for words.unit=wordpiece",
    ),
}

ATTACKS: dict[str, Entry] = {
    "bayes": Entry(
        target="textveil.evaluate.attack.bayes:Bayes",
        summary="the best guess of an attacker who knows the mechanism and how people write (MAP)",
    ),
    "learned": Entry(
        target="textveil.evaluate.attack.learned:Learned",
        summary=(
            "the best guess of an attacker who also learned from public texts which words "
            "occur together"
        ),
    ),
    "network": Entry(
        target="textveil.evaluate.attack.network:NetworkAttack",
        summary="as `learned`, with a small network trained on releases of the public texts",
    ),
}

DETECTORS: dict[str, Entry] = {
    "patterns": Entry(
        target="textveil.detect.patterns:Patterns",
        summary="identifiers with a form or checksum: e-mail addresses, telephone numbers, accounts, keys",
    ),
    "structure": Entry(
        target="textveil.detect.keyvalue:Structure",
        summary="values by their keys (JSON, YAML, CSV, SQL, code, forms), and names in letters, mails and chats",
    ),
    "tagger": Entry(
        target="textveil.detect.library_taggers:load_tagger",
        summary=(
            "names of people, places and organizations, by the bundled tagger or your own model"
        ),
    ),
    "spacy": Entry(
        target="textveil.detect.library_taggers:load_spacy",
        summary="the entities of a spaCy pipeline (extra spacy)",
    ),
    "stanza": Entry(
        target="textveil.detect.library_taggers:load_stanza",
        summary="the entities of Stanza's pipeline for a language (extra stanza)",
    ),
    "gliner": Entry(
        target="textveil.detect.library_taggers:load_gliner",
        summary="names, addresses, dates and numbers found by a GLiNER model (extra gliner)",
    ),
    "presidio": Entry(
        target="textveil.detect.library_taggers:load_presidio",
        summary="Microsoft Presidio with its default recognizers (extra presidio)",
    ),
}

PROTOCOLS: dict[str, Entry] = {
    "openai": Entry(
        target="textveil.gateway.protocols.registry:openai",
        summary="OpenAI's chat completions, responses, embeddings and models",
    ),
    "anthropic": Entry(
        target="textveil.gateway.protocols.registry:anthropic", summary="Anthropic's messages"
    ),
    "bedrock": Entry(
        target="textveil.gateway.protocols.registry:bedrock", summary="Bedrock's Converse"
    ),
    "gemini": Entry(
        target="textveil.gateway.protocols.registry:gemini",
        summary="Gemini's content, embeddings and models",
    ),
    "ollama": Entry(
        target="textveil.gateway.protocols.registry:ollama", summary="Ollama's own API"
    ),
    "litellm": Entry(
        target="textveil.gateway.protocols.registry:litellm",
        summary="guardrails of a LiteLLM proxy",
    ),
}

STORES: dict[str, Entry] = {
    "memory": Entry(
        target="textveil.session.stores:MemoryStore",
        summary="in memory; lost when the process ends",
    ),
    "file": Entry(
        target="textveil.session.stores:FileStore", summary="one session in a file, unencrypted"
    ),
    "sqlite": Entry(
        target="textveil.session.database_store:SQLStore",
        summary="an encrypted database in a file, for one machine (extra store)",
    ),
    "postgresql": Entry(
        target="textveil.session.database_store:SQLStore",
        summary="an encrypted database on a server, for several machines (extra store)",
    ),
    "redis": Entry(
        target="textveil.session.redis_store:RedisStore",
        summary="an encrypted Redis server, without a ledger (extra redis)",
    ),
    "rediss": Entry(
        target="textveil.session.redis_store:RedisStore",
        summary="the same, reached through TLS (extra redis)",
    ),
}
"""Stores, by the scheme of a URL.

They are called with the URL.
"""

FORMATS: dict[str, Entry] = {
    "txt": Entry(
        target="textveil.files.text:Text",
        summary="one text per line, or the whole file as one text (--whole)",
    ),
    "jsonl": Entry(
        target="textveil.files.jsonl:JsonLines",
        summary="one JSON object per line, one field holds the text",
    ),
    "csv": Entry(
        target="textveil.files.delimited:Csv",
        summary="a comma-separated table, one column holds the texts",
    ),
    "tsv": Entry(
        target="textveil.files.delimited:Tsv",
        summary=("a tab-separated table, one column holds the texts"),
    ),
    "parquet": Entry(
        target="textveil.files.parquet:Parquet",
        summary="a Parquet table, one column holds the texts (extra files)",
    ),
}
"""Formats, by the end of a file's name, without its dot."""

COMMANDS: dict[str, Entry] = {
    "demo": Entry(
        target="textveil.cli.lookup:demo",
        summary="See protect and privatize work on an invented letter",
        panel="Start here",
    ),
    "protect": Entry(
        target="textveil.cli.protect:protect",
        summary="Hide what is private in a prompt; the rest stays unchanged",
        panel="Protect a prompt",
    ),
    "find": Entry(
        target="textveil.cli.find:find",
        summary="See what is private in a prompt, what stays, and why",
        panel="Protect a prompt",
    ),
    "restore": Entry(
        target="textveil.cli.restore:restore",
        summary="Put the originals back into an answer",
        panel="Protect a prompt",
    ),
    "chat": Entry(
        target="textveil.cli.chat:chat",
        summary="Talk to a language model that sees protected prompts only",
        panel="Protect a prompt",
    ),
    "gateway": Entry(
        target="textveil.cli.gateway:gateway",
        summary="Protect what programs send to a language model",
        panel="Protect a prompt",
    ),
    "mcp": Entry(
        target="textveil.cli.assistant:mcp",
        summary="Let an assistant read your files, protected",
        panel="Protect a prompt",
    ),
    "session": Entry(
        target="textveil.cli.sessions:session",
        summary="List, show, forget and export sessions",
        panel="Protect a prompt",
    ),
    "privatize": Entry(
        target="textveil.cli.privatize:privatize",
        summary="Draw protected words at random, and state the guarantee",
        panel="Privatize texts",
    ),
    "corpus": Entry(
        target="textveil.cli.corpus:corpus",
        summary="Privatize whole files, folders and object stores",
        panel="Privatize texts",
    ),
    "library": Entry(
        target="textveil.cli.library:library",
        summary="Make libraries of public texts for releases of whole texts",
        panel="Privatize texts",
    ),
    "ledger": Entry(
        target="textveil.cli.ledger:ledger",
        summary="Show what releases have spent and may still spend",
        panel="Privatize texts",
    ),
    "groups": Entry(
        target="textveil.cli.groups:groups",
        summary="Privatize, and show which word is in which group",
        panel="Privatize texts",
    ),
    "risk": Entry(
        target="textveil.cli.risk:risk",
        summary="Privatize, and show which words an attacker can name",
        panel="Privatize texts",
    ),
    "paraphrase": Entry(
        target="textveil.cli.paraphrase:paraphrase",
        summary="Write texts anew with a local model, with an epsilon",
        panel="Privatize texts",
    ),
    "repair": Entry(
        target="textveil.cli.restore:repair",
        summary="Let a language model make a release read well",
        panel="Privatize texts",
    ),
    "table": Entry(
        target="textveil.cli.tables:table",
        summary="Build and inspect tables of word vectors",
        panel="Tables and names",
    ),
    "list": Entry(
        target="textveil.cli.lookup:list_names",
        summary="List mechanisms, tables, profiles, detectors and more",
        panel="Tables and names",
    ),
    "explain": Entry(
        target="textveil.cli.lookup:explain",
        summary="Explain what a mechanism or attack does and guarantees",
        panel="Tables and names",
    ),
    "show": Entry(
        target="textveil.cli.lookup:show",
        summary="Show the configuration that results from the options",
        panel="Tables and names",
    ),
    "new": Entry(
        target="textveil.cli.new:new",
        summary="Start a package with a mechanism or detector of your own",
        panel="Tables and names",
    ),
}

BUILT_IN: dict[RegistryKind, dict[str, Entry]] = {
    "table": TABLES,
    "mechanism": MECHANISMS,
    "detector": DETECTORS,
    "format": FORMATS,
    "attack": ATTACKS,
    "measure": {},
    "dataset": {},
    "protocol": PROTOCOLS,
    "store": STORES,
    "command": COMMANDS,
}

BENCH_NAMES: Mapping[RegistryKind, tuple[str, ...]] = {
    "attack": (
        "attribute",
        "linkage",
        "llm",
        "masked",
        "membership",
        "neighbour",
        "semantic",
        "window",
    ),
    "measure": ("bleu", "cosine", "mapping", "oov", "perplexity", "retention", "rouge-l"),
    "dataset": (
        "ag_news",
        "fantasy",
        "mmlu",
        "opinions",
        "prompts",
        "qnli",
        "sentences",
        "squad",
        "sst2",
        "subjects",
        "swag",
        "wikitext",
        "yelp",
    ),
    "command": (
        "attack",
        "audit",
        "bench",
        "lm-eval",
        "measure",
        "report",
        "reproduce",
        "sweep",
    ),
}
"""Names that another distribution of this project offers: `BENCH_INSTALL`."""

BENCH_INSTALL = f"textveil-bench: pip install {extras.BENCH}"


def list_names(kind: RegistryKind) -> list[str]:
    """Returns all names of a kind.

    The built-in ones in their order, then those of other packages, sorted.
    """
    built_in = _get_built_in(kind)
    return [*built_in, *sorted(_find_offers(kind).keys() - built_in.keys())]


def list_absent(kind: RegistryKind) -> list[str]:
    """Returns the names of a kind that `BENCH_INSTALL` would add.

    None where it is installed.
    """
    return sorted({*BENCH_NAMES.get(kind, ())} - {*list_names(kind)})


def is_folder(name: str) -> bool:
    """Says whether a table's name is a folder's path.

    As made by `textveil table build`.
    """
    path = "/" in name or os.sep in name or os.path.isfile(os.path.join(name, "table.json"))
    return path and name not in TABLES


def find_entry(kind: RegistryKind, name: str) -> Entry:
    """Returns the entry of a name, without importing anything.

    Of a table's folder, too.

    Raises:
        UnknownName: there is no such name; the nearest one is suggested.
        MissingExtra: the distribution that offers it is not installed.
        ConfigError: two packages offer the same name.
    """
    built_in = _get_built_in(kind)
    if name in built_in:
        return built_in[name]
    if kind == "table" and is_folder(name):
        return Entry(target="textveil.table.store:load", summary="a table in a folder")
    offers = _find_offers(kind)
    if name not in offers:
        raise _build_unknown(kind, name, [*built_in, *offers])
    points = offers[name]
    packages = sorted({_find_package(point) for point in points})
    if len({point.value for point in points}) > 1:
        raise ConfigError(
            f"the {kind} {name!r} is registered by several packages, {' and '.join(packages)}; "
            "uninstall one of them"
        )
    return Entry(
        target=points[0].value, summary=f"from the package {packages[0]}", package=packages[0]
    )


def _build_unknown(kind: RegistryKind, name: str, names: Sequence[str]) -> TextveilError:
    if (kind, name) == ("mechanism", "cells"):
        return ConfigError(
            "cells are of whole texts and no mechanism of words: use --unit document with "
            "--library and --epsilon, or in Python TextPrivatizer(library, epsilon=...)"
        )
    if name not in BENCH_NAMES.get(kind, ()):
        return UnknownName(kind, name, names)
    subject = f"`textveil {name}`" if kind == "command" else f"the {kind} {name!r}"
    return MissingExtra(f"{subject} is in {BENCH_INSTALL}")


def describe(kind: RegistryKind, name: str) -> str:
    """Returns a line about a name, for lists.

    For a name of another package, the first line of its own description.
    """
    entry = find_entry(kind, name)
    if entry.package == "textveil":
        return entry.summary
    try:
        target: Any = load(kind, name)
    except TextveilError:
        return f"{entry.summary}, which cannot be imported"
    text = str(getattr(target, "about", None) or target.__doc__ or entry.summary)
    return text.strip().partition("\n")[0].rstrip(".")


def load(kind: RegistryKind, name: str) -> Callable[..., Any]:
    """Imports the callable behind a name; for a table's folder, its loader.

    Raises:
        UnknownName, MissingExtra: as for `find_entry`.
        ConfigError: another package registers it, and it cannot be imported.
    """
    entry = find_entry(kind, name)
    try:
        module, _, path = entry.target.partition(":")
        target = reduce(getattr, filter(None, path.split(".")), import_module(module))
    # SystemExit, because a script that is imported may end the program.
    except (Exception, SystemExit) as error:
        if entry.package == "textveil":
            raise
        # Importing another package may raise anything, and its message may hold anything.
        raise ConfigError(
            f"the {kind} {name!r} of the package {entry.package} cannot be imported from "
            f"{entry.target!r} ({type(error).__name__}); fix or uninstall that package"
        ) from error
    if not callable(target):
        raise ConfigError(
            f"the {kind} {name!r} of the package {entry.package} must be a callable, and "
            f"{entry.target!r} is a {type(target).__name__}; fix or uninstall that package"
        )
    return partial(target, name) if kind == "table" and is_folder(name) else target


def find_budget_parameter(name: str) -> tuple[str | None, bool]:
    """Returns a mechanism's budget parameter, and whether it needs a budget.

    The parameter is None if it has none of its own.

    Mechanisms of other packages set two attributes of their callable, `parameter` and `budget`; by
    default they have no parameter of their own and need `epsilon`.
    """
    entry = find_entry("mechanism", name)
    if entry.package == "textveil":
        return entry.parameter, entry.budget
    target = load("mechanism", name)
    parameter = getattr(target, "parameter", None)
    return (parameter if isinstance(parameter, str) else None), bool(
        getattr(target, "budget", True)
    )


# ---- options -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Option:
    """One keyword of a callable, with its type and default.

    The type is None if not annotated; a required keyword has no default.
    """

    name: str
    annotation: Any
    default: Any
    required: bool

    @property
    def type(self) -> str:
        """The type in a person's words, such as "int or none".

        Or "left | right".
        """
        return "any" if self.annotation is None else _spell(self.annotation)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The keywords of a callable, and whether it takes any other (`**options`)."""

    keywords: Mapping[str, Option]
    is_open: bool


def read_options(target: Callable[..., Any]) -> Options:
    """Reads a callable's options from its signature."""
    try:
        parameters = inspect.signature(target, eval_str=True).parameters.values()
    except NameError:  # a type that is imported for the type checker only
        parameters = inspect.signature(target).parameters.values()
    empty = inspect.Parameter.empty
    keywords = {
        parameter.name: Option(
            name=parameter.name,
            annotation=None
            if isinstance(parameter.annotation, str) or parameter.annotation is empty
            else parameter.annotation,
            default=None if parameter.default is empty else parameter.default,
            required=parameter.default is empty,
        )
        for parameter in parameters
        if parameter.kind
        in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    }
    return Options(
        keywords=keywords,
        is_open=any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters),
    )


def _spell(annotation: Any) -> str:
    if annotation is None or annotation is type(None):
        return "none"
    if hasattr(annotation, "__metadata__"):  # Annotated: the type without its limits
        return _spell(annotation.__origin__)
    if get_origin(annotation) is tuple:
        return f"list of {_spell(get_args(annotation)[0])}"
    if type(annotation) is type(Literal["a"]):
        return " | ".join(str(value) for value in get_args(annotation))
    if isinstance(annotation, type) and not get_args(annotation):
        return {"str": "text", "bool": "true | false", "float": "number"}.get(
            annotation.__name__, annotation.__name__
        )
    members = get_args(annotation)
    if type(None) in members or "|" in str(annotation):
        return " or ".join(_spell(member) for member in members)
    return inspect.formatannotation(annotation)


# ---- sources of names ----------------------------------------------------------------------------


def _get_built_in(kind: RegistryKind) -> dict[str, Entry]:
    if kind not in BUILT_IN:
        raise UnknownName("kind", kind, REGISTRY_KINDS)
    return BUILT_IN[kind]


def _find_offers(kind: RegistryKind) -> dict[str, "list[EntryPoint]"]:
    """Returns the entry points of other packages, by name.

    One broken installation must not hide all other names.
    """
    try:
        points = _find_points(ENTRY_POINT_GROUPS[kind], tuple(sys.path))
    except Exception as error:  # damaged metadata of any installed package may raise
        warnings.warn(
            (
                f"cannot list the installed packages, so {kind}s of other packages are left out "
                f"({type(error).__name__})"
            ),
            TextveilWarning,
            stacklevel=3,
        )
        return {}
    offers: dict[str, list[EntryPoint]] = {}
    for point in points:
        offers.setdefault(point.name, []).append(point)
    return offers


@cache
def _find_points(group: str, path: tuple[str, ...]) -> "tuple[EntryPoint, ...]":
    """Returns the entry points of a group, cached.

    Finding them takes 14 ms, so each import path is searched once.
    """
    from importlib.metadata import entry_points  # our own names are found without it

    return tuple(entry_points(group=group))


def _find_package(point: "EntryPoint") -> str:
    distribution = getattr(point, "dist", None)
    return str(distribution.name) if distribution is not None else point.value.partition(":")[0]
