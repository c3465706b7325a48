"""Compares a mechanism, attack or data set with known ones, on packaged texts.

In: registered names of one kind. Out: an `OwnComparison`: rows, facts, and a page.
Not here: detectors (`detector_comparison`), how cells are run (`run`), and the rest of the page
(`report`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from textveil.config import registry, resolve
from textveil.corpus import Executor
from textveil.errors import ConfigError, TextveilError, UnknownName
from textveil.mechanism import wrap_books
from textveil.pipeline import Privatizer
from textveil.table import load_table
from textveil_bench import attack, audit, data, run
from textveil_bench.audit import AuditFinding, ConfiguredBuild
from textveil_bench.compare import build_series
from textveil_bench.report import Section, build_report
from textveil_bench.report.html import Html, build_element, build_table, join_parts
from textveil_bench.rows import BenchRow, build_score_rows, convert_infinity, read_gallery
from textveil_bench.spec import Sweep
from textveil_bench.trials import join_fields

Kind = Literal["mechanism", "detector", "attack", "dataset"]
KINDS: tuple[Kind, ...] = ("mechanism", "detector", "attack", "dataset")

BUDGET_STEPS: Mapping[str, tuple[float, ...]] = {
    "ldp": (3.0, 6.0, 9.0, 12.0),
    "metric": (12.0, 24.0, 48.0, 96.0),
    "none": (1.5, 3.0, 6.0, 12.0),
}
"""Local DP of the budgets by the kind of a claim; epsilon itself where nothing is claimed.

For a metric claim they are divided by the table's diameter.
"""

BASELINE_ENTRIES: tuple[Mapping[str, Any], ...] = (
    {
        "name": "noise",
        "set": {"mechanism.name": "noise"},
        "budget": {"mechanism.eta": [20, 40, 80]},
    },
    {
        "name": "rankcape",
        "whose": "ours",
        "set": {"mechanism.name": "rankcape"},
        "budget": {"epsilon": [5, 7, 9]},
    },
)
"""Mechanisms that stand beside those compared, besides placeholders and random words."""

SURE_CASE, HOPELESS_CASE = "everything passes", "nothing passes"

KNOWN_CASES: tuple[Mapping[str, Any], ...] = (
    {
        "name": SURE_CASE,
        "set": {"mechanism.name": "krr"},
        "budget": {"epsilon": [40.0]},
    },
    {
        "name": HOPELESS_CASE,
        "set": {"mechanism.name": "krr"},
        "budget": {"epsilon": [1e-6]},
    },
    *BASELINE_ENTRIES,
)
"""Releases for an attack: two whose answer is known, and two mechanisms."""

USUAL_ATTACKS = ("bayes", "neighbour")

MIN_SURE, MAX_HOPELESS = 0.95, 0.05
"""What an attack must name where everything passes, and may above chance where nothing does."""

AUDIT_CHECKS = ("log-ratio", "sampled", "sampler", "support", "budget", "statement", "seed")
"""The checks of a quick comparison; otherwise all."""

PUBLIC_WORDS = 2000
"""Words on which an attacker that learns tries the mechanism, in a quick comparison."""


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """What is compared, and how much of it.

    Attributes:
        kind: of the names.
        names: registered names.
        quick: few texts, one seed, short audits: minutes.
        data: data sets; empty for the packaged ones.
        budgets: epsilons of the mechanisms compared; empty for `BUDGET_STEPS`.
        settings: options of the mechanisms compared, by dotted path.
    """

    kind: Kind
    names: tuple[str, ...]
    quick: bool = False
    data: tuple[str, ...] = ()
    budgets: tuple[float, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnComparison:
    """The results of a comparison, without texts except those of public data sets.

    Attributes:
        plan: what was compared.
        rows: the rows of all cells.
        findings: of the audit, for mechanisms.
        not_run: attacks that could not be built, with the reason.
        facts: a line for each name and what it is like.
        page: the page, as HTML.
        scores: of detectors, for which there are no rows.
    """

    plan: ComparisonPlan
    rows: Sequence[BenchRow] = field(repr=False)
    findings: Sequence[AuditFinding] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)
    facts: Sequence[tuple[str, str, str]] = ()
    page: str = field(repr=False)
    scores: Sequence[Mapping[str, Any]] = ()

    @property
    def has_failed(self) -> bool:
        """True if a claim is violated or could not be checked, or an attack is wrong."""
        return any(finding.has_failed for finding in self.findings) or any(
            verdict.startswith("WRONG") for _, _, verdict in self.facts
        )

    def to_json(self) -> dict[str, Any]:
        """Converts everything but the page to plain data."""
        return {
            "version": 1,
            **{name: value for name, value in asdict(self.plan).items() if name != "settings"},
            "audit": [finding.to_json() for finding in self.findings],
            "not_run": dict(self.not_run),
            "facts": [list(fact) for fact in self.facts],
            "scores": [convert_infinity(line) for line in build_score_rows(self.rows)]
            or [dict(score) for score in self.scores],
        }


def find_kind(names: Sequence[str], kind: str | None = None) -> Kind:
    """Finds the kind that all names are of.

    Raises:
        UnknownName: a name is of no kind that can be compared.
        ConfigError: they are of several kinds, or some name is of two.
    """
    candidates = [item for item in KINDS if kind in (None, item)]
    if not candidates:
        raise UnknownName("kind", kind or "", KINDS)
    matches = {
        name: {item for item in candidates if name in registry.list_names(item)} for name in names
    }
    for name, found in matches.items():
        if not found:
            every = [known for item in candidates for known in registry.list_names(item)]
            raise UnknownName("mechanism, detector, attack or data set", name, every)
    shared = set.intersection(*matches.values())
    if len(shared) != 1:
        raise ConfigError(
            "all names must be of one kind; give --kind mechanism, detector, attack or dataset"
        )
    return shared.pop()


def compare(
    plan: ComparisonPlan,
    folder: Path,
    *,
    places: run.Folders | None = None,
    executor: Executor | None = None,
    report: run.ProgressCallback = lambda step, done, total: None,
) -> OwnComparison:
    """Audits, attacks and measures what a plan names, and writes the page about it.

    Args:
        plan: of mechanisms, attacks or data sets.
        folder: of the rows; existing ones are reused.
        places: folders of data and fitted judges.
        executor: computes the cells; None for this process.
        report: callback for progress.
    """
    places = places or run.Folders()
    findings: list[AuditFinding] = []
    if plan.kind == "mechanism":
        findings = _audit_mechanisms(plan, report)
    public_texts = _load_public_texts(plan, places)
    attacks, not_run = _list_attacks(plan, public_texts)
    sweep = build_sweep(plan, attacks)
    rows = run.run(sweep, folder, places=places, executor=executor, report=report)
    describe = {
        "mechanism": _describe_mechanisms,
        "attack": _describe_attacks,
        "dataset": _describe_data_sets,
    }[plan.kind]
    facts = list(describe(plan, rows, places))
    page = build_report(
        build_series(rows),
        list(read_gallery([folder])),
        title=f"{', '.join(plan.names)} beside known ones",
        extra_sections=_build_sections(plan, facts, findings, not_run),
        progress=report,
    )
    return OwnComparison(
        plan=plan, rows=rows, findings=findings, not_run=not_run, facts=facts, page=page
    )


def build_sweep(plan: ComparisonPlan, attacks: Sequence[Mapping[str, Any]] = ()) -> Sweep:
    """Builds the sweep of a plan: its names beside the baselines, on small packaged texts."""
    entries: Sequence[Mapping[str, Any]] = BASELINE_ENTRIES
    if plan.kind == "mechanism":
        own = [_build_entry(plan, name) for name in plan.names]
        taken = {entry["name"] for entry in own}
        entries = [*own, *(entry for entry in entries if entry["name"] not in taken)]
    elif plan.kind == "attack":
        entries = KNOWN_CASES
    packaged = [
        {"name": "opinions"},
        {"name": "fantasy-generated", "limit": 6 if plan.quick else 60},
    ]
    named = plan.names if plan.kind == "dataset" else plan.data
    return Sweep.read(
        {
            "name": f"compare {' '.join(plan.names)}",
            "seeds": [1] if plan.quick else [1, 2, 3],
            "limit": 24 if plan.quick else 500,
            "common": {"table.name": "minilm-s" if plan.quick else "minilm"},
            "data": [{"name": name} for name in named] or packaged,
            "attacks": attacks,
            "attacked": 120 if plan.quick else 1000,
            "measures": ["retention", "cosine", "rouge-l", "meaning"],
            "baselines": ["identity", "mask", "uniform"],
            "entries": entries,
        }
    )


# ---- mechanisms --------------------------------------------------------------------------------------------


def _build_entry(plan: ComparisonPlan, name: str) -> dict[str, Any]:
    settings = {"mechanism.name": name, **plan.settings}
    if not registry.find_budget_parameter(name)[1]:
        return {"name": name, "whose": "ours", "set": settings}
    return {
        "name": name,
        "whose": "ours",
        "set": settings,
        "budget": {"epsilon": [*(plan.budgets or choose_budgets(name, plan))]},
    }


def choose_budgets(name: str, plan: ComparisonPlan) -> tuple[float, ...]:
    """Chooses epsilons from what a mechanism claims on the table of the comparison."""
    config = resolve(
        overrides={
            "table.name": "minilm-s" if plan.quick else "minilm",
            "mechanism.name": name,
            **plan.settings,
        },
        complete=False,
    )
    table = load_table(**asdict(config.table))
    built = registry.load("mechanism", name)(**config.mechanism.options)
    claim = wrap_books(built, table).claim(table)
    scale = claim.diameter if claim.kind == "metric" and 0 < claim.diameter < np.inf else 1.0
    return tuple(float(f"{step / scale:.3g}") for step in BUDGET_STEPS[claim.kind])


def _audit_mechanisms(plan: ComparisonPlan, report: run.ProgressCallback) -> list[AuditFinding]:
    builds = [
        ConfiguredBuild(
            name=name,
            resolve=partial(
                resolve, overrides={"mechanism.name": name, **plan.settings}, complete=False
            ),
        )
        for name in plan.names
    ]
    return list(
        audit.audit(
            *builds,
            small=plan.quick,
            only=AUDIT_CHECKS if plan.quick else audit.CHECKS,
            report=report,
        )
    )


def _describe_mechanisms(
    plan: ComparisonPlan, rows: Sequence[BenchRow], places: run.Folders
) -> list[tuple[str, str, str]]:
    """Describes each mechanism by the statement that it prints at each budget."""
    facts = []
    for row in rows:
        if row["entry"] in plan.names and row["data"]["name"] == rows[0]["data"]["name"]:
            budget = "no budget" if row["budget"] is None else f"epsilon {row['budget']['value']:g}"
            overrides = {
                "mechanism.name": row["entry"],
                **plan.settings,
                "table.name": "minilm-s" if plan.quick else "minilm",
                **({} if row["budget"] is None else {"epsilon": row["budget"]["value"]}),
            }
            fact = row["entry"], budget, _state(overrides)
            facts += [] if fact in facts else [fact]
    return facts


SENTENCE = "The nurse brought cold bread to the station in Bergen."


def _state(overrides: Mapping[str, Any]) -> str:
    """Returns the statement about one invented sentence."""
    privatizer = Privatizer.from_config(resolve(overrides=dict(overrides)))
    return privatizer.privatize(SENTENCE).guarantee.summary()


# ---- attacks -----------------------------------------------------------------------------------------------


def _load_public_texts(plan: ComparisonPlan, places: run.Folders) -> tuple[str, ...]:
    """Loads the training texts of the first data set, for attackers that learn."""
    if plan.kind == "dataset":
        return ()
    name = plan.data[0] if plan.data else "opinions"
    try:
        loaded = data.load(name, split="train", limit=2000, folder=places.corpora)
    except TextveilError:
        return ()
    return tuple(map(join_fields, loaded.examples))


def _list_attacks(
    plan: ComparisonPlan, public_texts: tuple[str, ...]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Lists the attacks that need nothing but releases and public texts; others with the reason."""
    if plan.kind == "dataset":
        return [{"name": name} for name in USUAL_ATTACKS], {}
    names = [*dict.fromkeys((*plan.names, *USUAL_ATTACKS))]
    if plan.kind == "mechanism":
        names = registry.list_names("attack")
    attacks: list[dict[str, Any]] = []
    not_run: dict[str, str] = {}
    for name in names:
        keywords = registry.read_options(registry.load("attack", name)).keywords
        options: dict[str, Any] = {}
        if "public" in keywords:
            options["public"] = list(public_texts)
        if "simulated" in keywords and plan.quick:
            options["simulated"] = PUBLIC_WORDS
        try:
            attack.load(name, options)
        except TextveilError as error:
            if name in plan.names:
                raise
            not_run[name] = str(error)
            continue
        attacks.append({"name": name, **options})
    return attacks, not_run


def _describe_attacks(
    plan: ComparisonPlan, rows: Sequence[BenchRow], places: run.Folders
) -> list[tuple[str, str, str]]:
    """Judges attacks by two cases whose answer is known: everything passes, and nothing does."""
    facts = []
    for name in plan.names:
        for case in (SURE_CASE, HOPELESS_CASE):
            own_rows = [row for row in rows if row["entry"] == case]
            scores = [
                score
                for row in own_rows
                for score in row["scores"]
                if score["source"] == name and score["headline"] and score["value"] is not None
            ]
            if scores:
                facts.append((name, case, _judge_attack(case, scores)))
                continue
            reasons = {row["not_run"][name] for row in own_rows if name in row["not_run"]}
            facts.append((name, case, f"not run: {'; '.join(sorted(reasons)) or 'no words'}"))
    return facts


def _judge_attack(case: str, scores: Sequence[BenchRow]) -> str:
    """Judges the first headline of an attack in a known case.

    One about texts is not judged: words that are drawn at random still tell the length of a text.
    """
    first = scores[0]
    same = [s for s in scores if (s["metric"], s["unit"]) == (first["metric"], first["unit"])]
    value, chance = (
        float(np.mean([score[name] or 0.0 for score in same])) for name in ("value", "baseline")
    )
    figure = f"{first['metric']} {value:.3f}"
    if first["unit"] != "word":
        return f"{figure}, about texts"
    if case == SURE_CASE:
        return f"{'as it must be' if value >= MIN_SURE else 'WRONG: all can be named'}: {figure}"
    is_right = value <= chance + MAX_HOPELESS
    return f"{'as it must be' if is_right else 'WRONG: nobody can name them'}: {figure}"


# ---- data sets ---------------------------------------------------------------------------------------------


def _describe_data_sets(
    plan: ComparisonPlan, rows: Sequence[BenchRow], places: run.Folders
) -> list[tuple[str, str, str]]:
    """Describes the splits of data sets, and texts that two of them share."""
    facts = []
    for name in plan.names:
        texts: dict[str, set[tuple[str, ...]]] = {}
        for split in ("train", "test"):
            try:
                loaded = data.load(name, split=split, folder=places.corpora)
            except TextveilError as error:
                facts.append((name, split, f"cannot be loaded: {error}"))
                continue
            texts[split] = {example.texts for example in loaded.examples}
            counts = [
                f"{sum(example.label == i for example in loaded.examples):,} {label}"
                for i, label in enumerate(loaded.labels)
            ]
            words = np.mean([len(join_fields(item).split()) for item in loaded.examples])
            facts.append(
                (
                    name,
                    split,
                    "; ".join((f"{len(loaded):,} texts of {words:.1f} words", *counts)),
                )
            )
        if len(texts) == 2:
            shared = len(texts["train"] & texts["test"])
            verdict = f"WRONG: they share {shared:,} texts" if shared else "they share no text"
            facts.append((name, "both", verdict))
    return facts


# ---- the page ----------------------------------------------------------------------------------------------

FACT_TITLES: Mapping[str, tuple[str, str, tuple[str, str, str]]] = {
    "mechanism": (
        "What it promises",
        "The statement about one sentence of ten words, at each budget.",
        ("mechanism", "budget", "statement"),
    ),
    "attack": (
        "Cases whose answer is known",
        "An attack on words must name nearly all where everything passes, and hardly any where "
        "words are drawn at random.",
        ("attack", "case", "verdict"),
    ),
    "dataset": (
        "What is in it",
        "Each split as it loads. Texts in both let a judge know the answers.",
        ("data set", "split", "content"),
    ),
}


def _build_sections(
    plan: ComparisonPlan,
    facts: Sequence[tuple[str, str, str]],
    findings: Sequence[AuditFinding],
    not_run: Mapping[str, str],
) -> list[Section]:
    title, text, columns = FACT_TITLES[plan.kind]
    sections = [build_table_section(title, text, columns, facts)]
    if findings:
        lines = [
            (
                finding.mechanism,
                finding.check,
                finding.verdict,
                finding.evidence,
                format_number(finding.claimed),
                format_number(finding.found),
                finding.why,
            )
            for finding in findings
        ]
        names = ("mechanism", "check", "verdict", "evidence", "claimed", "found", "why")
        sections.append(
            build_table_section(
                "Audit",
                "The claim against the law, where it is written down, and against draws. "
                "A lower bound of the loss above the claim refutes it; one below proves nothing.",
                names,
                lines,
            )
        )
    if not_run:
        sections.append(
            build_table_section(
                "Attacks that need more",
                "Run them by `textveil attack`.",
                ("attack", "why"),
                [*not_run.items()],
            )
        )
    return sections


def build_table_section(
    title: str, text: str, columns: Sequence[str], lines: Sequence[Sequence[str]]
) -> Section:
    """Builds a section of the page that is one table."""
    make: Callable[[], Html] = lambda: join_parts([build_table(columns, lines, "")])  # noqa: E731
    return Section(
        title=title,
        text=text,
        content=make if lines else lambda: build_element("p", "Nothing."),
    )


def format_number(value: float | None) -> str:
    """Formats a number with four digits; a dash for none."""
    return "–" if value is None else f"{value:.4g}"
