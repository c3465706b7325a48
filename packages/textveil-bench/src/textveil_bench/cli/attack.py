"""The command `attack`.

In: a file of texts, and how to privatize them. Out: rates of recovery from the release, as a table,
JSON and pictures.
Not here: the attacks (`textveil_bench.attack`), and pictures (`pictures`).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import console, evaluation, progress
from textveil.cli.decorators import verb
from textveil.cli.options import PRIVACY_OPTIONS, TypedOptions
from textveil.cli.texts import Field
from textveil.errors import ConfigError, UnknownName, quote_file, quote_short
from textveil.files import text_streams
from textveil_bench.cli import rates, whole_texts

if TYPE_CHECKING:
    from textveil.config import Config
    from textveil.evaluate.attack import Attack
    from textveil_bench.attack import Findings

PREFIX = "attack."
FINDINGS_FILE = "findings.json"


@verb(
    "textveil attack letters.txt --mechanism noise --epsilon 70",
    "textveil attack letters.txt --attacks all",
    "textveil attack dev.tsv --field sentence --profile paper-noise --attacks neighbour,bayes --by",
    (
        "textveil attack dev.tsv --field sentence --profile paper-noise --pool others.txt --output "
        "findings/"
    ),
    (
        "textveil attack posts.jsonl --field post --profile paper-noise --attacks attribute "
        "--label gender"
    ),
    "textveil attack letters.txt --mechanism exponential --epsilon 6 --releases 12",
    (
        "textveil attack dev.tsv --field sentence --mechanism rankcape --epsilon 6 --attacks "
        "learned --public train.tsv"
    ),
    "textveil attack dev.tsv --profile paper-noise --attacks llm -o "
    "attack.llm.url=http://localhost:8000/v1 -o attack.llm.model=NAME",
    "textveil attack notes.csv --unit document --library public.library --epsilon 2 --field text "
    "--label topic",
    "textveil attack notes.csv --unit document --library public.library --epsilon 1 --field text "
    "--way counts",
    options=(*PRIVACY_OPTIONS, *whole_texts.OPTIONS),
    brief=(
        *("attacks", "field", "label", "public", "way", "as_json"),
        *("mechanism", "epsilon", "unit", "library", "setting"),
    ),
    panel=rates.PANEL,
)
def attack(
    typed: TypedOptions,
    file: rates.TextFile,
    attacks: Annotated[
        str | None,
        typer.Option(
            "--attacks",
            metavar="NAME,...|all",
            help="See `textveil list attacks`. The default is the quick ones; `all` may take minutes.",
        ),
    ] = None,
    field: Field = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="NAME",
            help="The field with a private label, which `attribute` then predicts.",
        ),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(
            "--pool",
            metavar="FILE",
            help="More texts: candidates among which `linkage` searches each original.",
        ),
    ] = None,
    public: evaluation.Public = None,
    releases: Annotated[
        int,
        typer.Option(
            "--releases",
            metavar="N",
            help="Release each text N times with fresh draws, and guess from all releases together, by `bayes` or "
            "`learned`. The rates with memory are shown beside it.",
        ),
    ] = 1,
    way: whole_texts.WayOption = None,
    limit: evaluation.Limit = None,
    by: rates.ByOption = False,
    every: Annotated[
        bool, typer.Option("--every", help="Also show the minor rates of each attack.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with all rates.")
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="Write findings.json and a picture of each attack there.",
        ),
    ] = None,
) -> None:
    """Measure how much attackers recover from a release of your texts.

    The texts of a file are privatized, and the release is attacked. Only rates are printed or
    written, no texts. Set an attack's own options by -o attack.NAME.OPTION=VALUE; `textveil explain
    NAME` lists them. With --unit document the releases are of whole texts, and the attacks
    membership, attribute and words, each beside the most that epsilon allows.
    """
    from textveil.config import registry
    from textveil_bench.attack import find_text_attack

    if releases < 1:
        raise ConfigError(f"--releases must be 1 or more, got {releases}")
    typed, settings = typed.split_settings(PREFIX)
    resolved = typed.resolve_config()
    if whole_texts.is_whole(
        resolved, way, pool=pool, public=public, output=output, releases=releases > 1
    ):
        texts, labels = _read_texts(file, field, label, limit)
        options = _parse_options(settings, find_text_attack)
        findings = whole_texts.attack_texts(resolved, way, texts, labels, attacks, options)
        document = {
            **rates.build_run_info(resolved, file),
            "way": way or "texts",
            **findings.to_json(),
        }
        _print(document, by=by, every=every, as_json=as_json, bounds=True)
        return
    rates.require_judgeable(resolved)
    options = _parse_options(settings, partial(registry.load, "attack"))
    quick = attacks is None
    names = _choose_attacks(
        ",".join(["bayes", *options]) if quick and releases > 1 else attacks, options
    )
    if quick:
        named_options = (("attribute", label), ("linkage", pool), ("learned", public))
        names += [name for name, value in named_options if value and name not in names]
        options = {name: {**QUICK_OPTIONS.get(name, {}), **options.get(name, {})} for name in names}
    texts, labels = _read_texts(file, field, label, limit)
    if labels is not None:
        options.setdefault("attribute", {})["labels"] = tuple(labels)
    if pool is not None:
        options.setdefault("linkage", {})["decoys"] = tuple(
            rates.read_other_texts(pool, file, field)
        )
    learners = [name for name in LEARNERS if name in names]
    if public is not None:
        public_texts = tuple(rates.read_other_texts(public, file, field))
        for name in learners:
            options.setdefault(name, {})["public"] = public_texts
    elif learners and attacks != "all":
        raise ConfigError(
            f"`{learners[0]}` trains on public texts of the same kind: give a file of them with "
            "--public"
        )
    if output is not None:
        evaluation.refuse_same_file(file, os.path.join(output, FINDINGS_FILE))
        _check_folder(output)
    findings = _run(names, options, texts, resolved, releases)
    if not findings.rows:
        raise ConfigError(
            "no attack can be run here: "
            + "; ".join(f"{k}: {why}" for k, why in findings.refused.items())
        )
    document = {**rates.build_run_info(resolved, file), **findings.to_json()}
    _print(document, by=by, every=every, as_json=as_json)
    if releases > 1:
        console.note(
            console.wrap(
                f"A word that is released {releases:,} times with fresh draws costs its epsilon "
                "each time."
            )
        )
    elif quick:
        console.note(console.wrap(rates.format_skipped("attack", names, "--attacks")))
    if output is not None:
        _write(document, output, _format_title(resolved))


LEARNERS = ("learned", "network")
"""Attackers who learn from public texts."""

QUICK_OPTIONS = {
    "bayes": {"priors": ("uniform", "unigram")}
}  # the prior `context` runs a language model for every word
"""Options of attacks run by default, to finish within seconds."""


def _choose_attacks(attacks: str | None, options: Mapping[str, Any]) -> list[str]:
    """Lists the named attacks; by default the quick and configured ones."""
    from textveil.config import registry

    attack_names = registry.list_names("attack")
    if attacks is None:
        names = [*rates.list_default_names("attack"), *options]
    else:
        names = (
            attack_names
            if attacks == "all"
            else [name.strip() for name in attacks.split(",") if name.strip()]
        )
    if not names:
        raise ConfigError("--attacks must name at least one attack, or be all")
    for name in (*names, *options):
        if name not in attack_names:
            raise UnknownName("attack", name, attack_names)
    return list(dict.fromkeys(names))


def _read_texts(
    file: str, field: str | None, label: str | None, limit: int | None
) -> tuple[list[str], list[str] | None]:
    """Reads the texts of a file, and their labels if a field of them is named."""
    if label is None:
        return evaluation.read_texts(file, field, limit), None
    return rates.read_labelled_texts(file, field, label, limit)


def _print(
    document: Mapping[str, Any], *, by: bool, every: bool, as_json: bool, bounds: bool = False
) -> None:
    """Prints the rates, and what is to be said of them; bounds beside the rates, or as notes."""
    if as_json:
        evaluation.write_json(document, None)
    else:
        rates.print_rates(
            document["rows"], by=by, every=every, first="attack", baseline=True, bounds=bounds
        )
        for note in [] if bounds else rates.list_notes(document):
            console.note(console.wrap(f"Note: {note}"))
    for name, reason in document["not_run"].items():
        console.note(console.wrap(f"{name}: not run: {reason}"))
    if not as_json:
        console.note(console.wrap(document["caution"]))


def _parse_options(typed: list[str], load: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
    """Parses attack.bayes.draws=1000 into {"bayes": {"draws": 1000}}.

    Args:
        typed: the settings.
        load: returns the attack of a name, for the types of its options.
    """
    from textveil.config import option_sources, registry

    options: dict[str, dict[str, Any]] = {}
    for path, text in option_sources.parse_assignments(typed).items():
        name, dot, option = path.removeprefix(PREFIX).partition(".")
        if not dot or "." in option:
            raise ConfigError(
                f"set an attack's option by -o attack.NAME.OPTION=VALUE, not by {quote_short(path)}"
            )
        option, value = option.replace("-", "_"), option_sources.parse_scalar(text)
        parameters = registry.read_options(load(name)).keywords
        if (
            option in parameters
            and parameters[option].type.startswith("list of")
            and not isinstance(value, list)
        ):
            value = [option_sources.parse_scalar(part) for part in text.split(",")]
        options.setdefault(name, {})[option] = value
    return options


def _run(
    names: list[str],
    options: Mapping[str, Mapping[str, Any]],
    texts: list[str],
    config: "Config",
    releases: int,
) -> "Findings":
    from textveil.evaluate.attack import Case
    from textveil.pipeline import Privatizer
    from textveil_bench.attack import attack, load

    attackers: list[Attack] = [load(name, options.get(name)) for name in names]
    with progress.show_bars() as report:
        case = Case.create(Privatizer.from_config(config), texts, releases=releases)
        return attack(case, attackers, rng=evaluation.build_simulation_rng(config), report=report)


def _format_title(config: "Config") -> str:
    budget = "" if config.epsilon is None else f", epsilon {config.epsilon:g}"
    parameters = "".join(f", {name} {value}" for name, value in config.mechanism.options.items())
    return f"{config.mechanism.name}{budget}{parameters}"


def _check_folder(output: str) -> None:
    """Creates the output folder before the work; refuses a file."""
    if os.path.exists(output) and not os.path.isdir(output):
        raise ConfigError(f"--output must be a folder, and {quote_file(output)} is a file")
    with text_streams.convert_write_errors():
        text_streams.make_folder(Path(os.path.realpath(output)))


def _write(document: Mapping[str, Any], folder: str, title: str) -> None:
    from textveil_bench import pictures

    evaluation.write_json(document, os.path.join(folder, FINDINGS_FILE))
    for attack, names in dict.fromkeys(
        (row["attack"], row["unit"] == "name") for row in document["rows"]
    ):
        rows = [
            row
            for row in document["rows"]
            if (row["attack"], row["unit"] == "name") == (attack, names)
        ]
        name = f"{attack}-names" if names else attack
        counted = (
            f"{document['names']:,} names"
            if names
            else f"{document['protected']:,} protected words"
        )
        if document["releases"] > 1:
            figure = pictures.draw_curves(
                _build_curves(rows), title=f"{name}: {title}", scale="share of words guessed"
            )
        else:
            figure = pictures.draw_rates(
                rows,
                title=f"{name}: {title}",
                subtitle=f"{document['texts']:,} texts, {counted}",
            )
        for suffix in (".svg", ".png"):
            pictures.save(figure, Path(folder) / f"{name}{suffix}")
    console.note(f"Written to {folder}: findings.json and a picture of each attack.")


def _build_curves(
    rows: Sequence[Mapping[str, Any]],
) -> list[tuple[str, dict[str, list[tuple[float, float]]]]]:
    """Builds one panel: guessed words by number of releases and memory.

    `drawn once` is the value of one release.
    """
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["slice"] == "all" and row["headline"]:
            setting = row["setting"]
            name = f"{setting['prior']} prior" if "prior" in setting else row["metric"]
            points = curves.setdefault(f"{name}, {setting['memory']}", [])
            if setting["memory"] == "drawn once":
                points.append((1, row["value"]))
            points.append((setting["releases"], row["value"]))
    return [("releases of the same text", curves)]
