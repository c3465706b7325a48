"""Compares a detector with those of the package, on prompts whose private values are marked.

In: registered names. Out: an `OwnComparison` with what each finds and what it hides for nothing.
Not here: the detectors (`textveil.detect`), and mechanisms, attacks and data sets
(`own_comparison`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from textveil.config import option_sources, resolve
from textveil.detect import load_detector
from textveil.errors import InputError
from textveil.pipeline import Protector
from textveil_bench.own_comparison import OwnComparison, ComparisonPlan, build_table_section
from textveil_bench.report import compose
from textveil_bench.report.html import build_element
from textveil_bench.spec import CONF_FOLDER

PROMPTS_FILE = CONF_FOLDER / "compare" / "prompts.yaml"

MARK = re.compile(r"\[\[([A-Z_]+)\|(.+?)\]\]")
"""A private value with its type: [[PERSON|Maria Silva]]."""

BASELINES = ("patterns", "tagger")

TOGETHER = "all of textveil"

Range = tuple[int, int]


class MarkedPrompt(NamedTuple):
    """A prompt, and the places of its private values with their types."""

    text: str
    values: tuple[tuple[str, Range], ...]


@dataclass(frozen=True, kw_only=True)
class DetectorScore:
    """What a detector finds of marked prompts.

    Attributes:
        name: of the detector, or of several together.
        found: number of private values that it covers whole.
        values: number of private values.
        touching: number of its spans that touch a private value.
        spans: number of its spans.
        disturbed: number of prompts without a private value in which it finds something.
        harmless: number of such prompts.
        by_type: found and all values by type.
    """

    name: str
    found: int
    values: int
    touching: int
    spans: int
    disturbed: int
    harmless: int
    by_type: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def to_line(self) -> tuple[str, ...]:
        """Formats the score for a table."""
        return (
            self.name,
            _format_share(self.found, self.values),
            _format_share(self.touching, self.spans),
            _format_share(self.disturbed, self.harmless),
        )


def read_prompts(path: Path = PROMPTS_FILE) -> list[MarkedPrompt]:
    """Reads marked prompts from a YAML file with a list `prompts`.

    Raises:
        InputError: the file has no such list of texts.
    """
    lines = option_sources.read_mapping(path).get("prompts")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise InputError("marked prompts must be a list of texts under `prompts`")
    return [parse_prompt(line) for line in lines]


def parse_prompt(line: str) -> MarkedPrompt:
    """Takes the marks out of a prompt, and notes where they stood."""
    text, values, end = "", [], 0
    for mark in MARK.finditer(line):
        text += line[end : mark.start()]
        values.append((mark[1], (len(text), len(text) + len(mark[2]))))
        text, end = text + mark[2], mark.end()
    return MarkedPrompt(text + line[end:], tuple(values))


def compare(plan: ComparisonPlan, prompts: Sequence[MarkedPrompt] | None = None) -> OwnComparison:
    """Scores detectors alone, beside those of the package, and together with all of it.

    Args:
        plan: of detectors; data sets, budgets and settings are not used.
        prompts: marked ones; None for those of the package.
    """
    prompts = read_prompts() if prompts is None else prompts
    finders: dict[str, Callable[[Sequence[str]], list[list[Range]]]] = {
        name: partial(_find_by_detector, name) for name in dict.fromkeys((*plan.names, *BASELINES))
    }
    finders[TOGETHER] = partial(_find_by_protector, ())
    finders |= {
        f"{TOGETHER} and {name}": partial(_find_by_protector, (name,)) for name in plan.names
    }
    texts = [prompt.text for prompt in prompts]
    scores = [score_ranges(name, prompts, find(texts)) for name, find in finders.items()]
    facts = [
        (
            score.name,
            f"finds {_format_share(score.found, score.values)}",
            f"right in {_format_share(score.touching, score.spans)}; disturbs "
            f"{_format_share(score.disturbed, score.harmless)} harmless prompts",
        )
        for score in scores
    ]
    return OwnComparison(
        plan=plan,
        rows=[],
        facts=facts,
        page=_build_page(plan, prompts, scores),
        scores=[*map(asdict, scores)],
    )


def score_ranges(
    name: str, prompts: Sequence[MarkedPrompt], found: Sequence[Sequence[Range]]
) -> DetectorScore:
    """Scores the ranges found in each prompt against its marks."""
    by_type: dict[str, list[bool]] = {}
    touching = spans = disturbed = 0
    for prompt, ranges in zip(prompts, found, strict=True):
        for kind, (start, end) in prompt.values:
            covered = {place for a, b in ranges for place in range(a, b)}
            hit = all(
                place in covered or prompt.text[place].isspace() for place in range(start, end)
            )
            by_type.setdefault(kind, []).append(hit)
        spans += len(ranges)
        touching += sum(
            any(a < end and start < b for _, (start, end) in prompt.values) for a, b in ranges
        )
        disturbed += bool(ranges) and not prompt.values
    hits = [hit for values in by_type.values() for hit in values]
    return DetectorScore(
        name=name,
        found=sum(hits),
        values=len(hits),
        touching=touching,
        spans=spans,
        disturbed=disturbed,
        harmless=sum(not prompt.values for prompt in prompts),
        by_type={kind: (sum(values), len(values)) for kind, values in by_type.items()},
    )


def _find_by_detector(name: str, texts: Sequence[str]) -> list[list[Range]]:
    ranges: list[list[Range]] = [[] for _ in texts]
    for span in load_detector(name).find(texts):
        ranges[span.text].append((span.start, span.end))
    return ranges


def _find_by_protector(more: tuple[str, ...], texts: Sequence[str]) -> list[list[Range]]:
    """Finds what the whole of the package hides, with further detectors."""
    usual = resolve(profile="prompt").protect.detectors
    detectors = [*dict.fromkeys((*usual, *more))]
    protector = Protector.from_config(
        resolve(profile="prompt", overrides={"protect.detectors": detectors})
    )
    return [
        [(finding.start, finding.end) for finding in findings if finding.hidden]
        for findings in protector.find_many(texts)
    ]


def _format_share(part: int, whole: int) -> str:
    return f"{part} of {whole}"


def _build_page(
    plan: ComparisonPlan, prompts: Sequence[MarkedPrompt], scores: Sequence[DetectorScore]
) -> str:
    columns = (
        "detector",
        "values found whole",
        "spans that touch one",
        "harmless prompts disturbed",
    )
    types = list(dict.fromkeys(kind for prompt in prompts for kind, _ in prompt.values))
    by_type = [
        (score.name, *(_format_share(*score.by_type[kind]) for kind in types)) for score in scores
    ]
    return compose(
        f"{', '.join(plan.names)} beside known detectors",
        [
            build_table_section(
                "Found, and disturbed",
                f"{len(prompts)} invented prompts with marked values: a first look, too few to "
                "choose a detector by.",
                columns,
                [score.to_line() for score in scores],
            ),
            build_table_section("By type", "", ("detector", *types), by_type),
        ],
        head=build_element(
            "p",
            f"A value counts as found where all of it is covered. `{TOGETHER}` is what "
            "`textveil protect` hides.",
        ),
    )
