"""Shared by `attack` and `audit`: releases of whole texts, as `privatize --unit` makes them.

In: resolved options with a unit and a library. Out: findings of the audit; findings of attacks.
Not here: programs and neighbours (`attack.programs`), and what is printed (`attack`, `audit`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from textveil.cli import evaluation, progress
from textveil.errors import ConfigError

if TYPE_CHECKING:
    from textveil.config import Config
    from textveil_bench.attack import Findings
    from textveil_bench.audit import AuditFinding

Way = Literal["texts", "reports", "counts"]
"""The way of a release, as a statement names it; importing it from there would load numpy."""

OPTIONS = ("unit", "library", "cells", "sure")
"""The shared options of whole texts."""

SMALL_TRIALS = 8000
"""Releases of each world with --small."""

WayOption = Annotated[
    Way | None,
    typer.Option(
        "--way",
        metavar="texts|reports|counts",
        help="With --unit: a public text in place of each document (the default), a report of each "
        "as of `corpus report`, or one noisy count as of `corpus synthesize`.",
    ),
]


def is_whole(config: "Config", way: Way | None, **others: object) -> bool:
    """Says whether options are of whole texts.

    Args:
        config: resolved options.
        way: what was typed for --way.
        others: what was typed for options that do not go with whole texts, by their name.

    Raises:
        ConfigError: some do not go together.
    """
    unit = config.texts.unit
    if unit == "word":
        if way is not None:
            raise ConfigError("--way must go with whole texts: give --unit document and --library")
        return False
    if typed := [f"--{name}" for name, value in others.items() if value]:
        from textveil.guarantee import join_parts

        raise ConfigError(f"--unit {unit} judges whole texts: leave out {join_parts(typed)}")
    return True


def audit_texts(config: "Config", way: Way | None, *, small: bool) -> Iterator["AuditFinding"]:
    """Audits a release of whole texts: yields a finding for each pair of neighbours.

    Raises:
        ConfigError: an option is wrong; InputError: the file is not a library.
    """
    from textveil_bench.attack import programs
    from textveil_bench.audit import audit_worlds
    from textveil_bench.audit.worlds import TRIALS

    release = programs.WholeRelease.from_config(
        config, way or "texts", label_names=programs.AUDIT_LABELS, about=programs.AUDIT_ABOUT
    )
    return audit_worlds(release.list_audited_pairs(), trials=SMALL_TRIALS if small else TRIALS)


def attack_texts(
    config: "Config",
    way: Way | None,
    texts: Sequence[str],
    labels: Sequence[str] | None,
    attacks: str | None,
    options: Mapping[str, Mapping[str, Any]],
) -> "Findings":
    """Releases whole texts, and attacks the releases.

    Args:
        config: resolved options.
        way: what was typed for --way.
        texts: the private ones.
        labels: the label of each, if there are some.
        attacks: the names of attacks with commas between them; None or `all` for all that can run.
        options: of the attacks, by name.

    Raises:
        ConfigError: an option is wrong, or no attack can run.
        InputError: the file is not a library, or a text stands in it.
    """
    from textveil_bench.attack import attack_texts, load_text_attack
    from textveil_bench.attack.programs import WholeRelease

    if config.texts.unit != "document":
        raise ConfigError(
            "attacks judge releases of documents: give --unit document; `textveil audit --unit "
            "sentence` audits those of sentences"
        )
    if attacks is None or attacks == "all":
        names = ["membership", *(["attribute"] if labels is not None else [])]
        names += ["words"] if way in (None, "texts") else []
    else:
        names = [name.strip() for name in attacks.split(",")]
    chosen = {name: dict(options.get(name, {})) for name in [*names, *options]}
    if labels is not None and "attribute" in chosen:
        chosen["attribute"]["labels"] = tuple(labels)
    attackers = [load_text_attack(name, values) for name, values in chosen.items()]
    release = WholeRelease.from_config(
        config, way or "texts", label_names=sorted(set(labels or ())), about=len(texts)
    )
    with progress.show_bars() as report:
        findings = attack_texts(
            release.build_case(texts, labels if release.label_names else None),
            attackers,
            rng=evaluation.build_simulation_rng(config),
            report=report,
        )
    if not findings.rows:
        raise ConfigError(
            "no attack can be run here: "
            + "; ".join(f"{name}: {why}" for name, why in findings.refused.items())
        )
    return findings
