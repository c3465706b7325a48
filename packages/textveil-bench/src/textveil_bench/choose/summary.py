"""Evaluates a comparison: utility at equal risk, and our lead.

In: rows. Out: the series to judge, `Choice`s, lines of tables.
Not here: the computation of rows (`jobs`).

Options and judges are chosen on the tuning texts, for every mechanism alike. The papers' best is
the best on the judged texts, which favours the papers. Scores are scaled between the public words
alone (`mask`, with its own judge, 0) and the originals (1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textveil.randomness import Values
from textveil_bench.choose.risk import TOP_1, TOP_10
from textveil_bench.choose.whole_texts import (
    LABELS,
    READ_VECTORS,
    READ_WORDS,
    TOPICS,
    TRAINED_VECTORS,
    TRAINED_WORDS,
)
from textveil_bench.estimates import Estimate, Sample, compute_estimates, difference, ratio

FLOOR_SERIES, CEILING_SERIES = "mask", "identity"

MIN_PAPER_SHARE = 0.05
"""Lower bound of the papers' best share, above which ratios are reported."""

StoredRow = Mapping[str, Any]

CellKey = tuple[str, float | None]
"""A series at a level of risk; None for a baseline."""


def choose_cells(
    tuned: Sequence[StoredRow],
) -> Iterator[tuple[str, str, float | None, float | None]]:
    """Yields data set, series, level and budget of the cells to judge.

    These are the baselines, and the best series of each family.
    """
    for row in tuned:
        if row["whose"] == "baseline":
            yield row["data"], row["series"], None, None
    for (data, _, level), (row, budget, _) in _find_best(tuned).items():
        yield data, row["series"], level, budget


def _find_best(
    tuned: Sequence[StoredRow],
) -> dict[tuple[str, str, float], tuple[StoredRow, float, float]]:
    """Finds the best series by data set, family and level."""
    best: dict[tuple[str, str, float], tuple[StoredRow, float, float]] = {}
    for row in tuned:
        for level, budget, _, right in row["levels"]:
            if level is None:
                continue
            key, score = (row["data"], row["family"], level), _score(right, pick_judge(right))
            last = best.get(key)
            if last is None or (-score, row["series"]) < (-last[2], last[0]["series"]):
                best[key] = row, budget, score
    return best


def pick_judge(right: Mapping[str, str]) -> str:
    """Picks the judge with the most correct texts; the first of several."""
    return max(right, key=lambda name: _score(right, name))


def _score(right: Mapping[str, str], name: str) -> float:
    return right[name].count("1") / len(right[name])


@dataclass(frozen=True, kw_only=True)
class ReleaseScore:
    """The utility and risk of one release.

    Attributes:
        family: the mechanism.
        series: the mechanism with its chosen options.
        whose: paper, ours or baseline.
        judge: the chosen judge.
        score: the judge's accuracy.
        share: the score scaled between the floor (0) and the originals (1).
        top_1: the share of private words guessed at first attempt; None if nothing is drawn.
        top_10: the share among the first ten guesses.
        statement: kind, metric and largest epsilon; None for the originals.
        seconds: duration of its cells.
    """

    family: str
    series: str
    whose: str
    judge: str
    score: Estimate
    share: Estimate
    top_1: Estimate | None
    top_10: Estimate | None
    statement: Mapping[str, Any] | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Choice:
    """All families on one data set at one level of risk.

    Attributes:
        data: its name.
        level: the risk for which budgets were chosen.
        texts: number of judged and attacked texts.
        floor: the score of the public words alone.
        originals: the score of the originals.
        baselines: their scores, independent of the level.
        family_scores: one for each family that reaches the level, the best first.
        missing: why other families have none, by name.
    """

    data: str
    level: float
    texts: tuple[int, int]
    floor: float
    originals: float
    baselines: tuple[ReleaseScore, ...]
    family_scores: tuple[ReleaseScore, ...]
    missing: Mapping[str, str]

    @property
    def paper(self) -> ReleaseScore | None:
        """The papers' best on the judged texts."""
        return next((release for release in self.family_scores if release.whose == "paper"), None)

    def compute_lead(self, release: ReleaseScore) -> Estimate | None:
        """Computes a release's share minus that of the papers' best."""
        return None if self.paper is None else difference(release.share, self.paper.share)

    def compute_ratio(self, release: ReleaseScore) -> Estimate | None:
        """Computes a release's share divided by that of the papers' best.

        None if its share is 0 or less, or the papers' best is not certainly above
        `MIN_PAPER_SHARE`.
        """
        if (
            self.paper is None
            or self.paper.share.interval.low <= MIN_PAPER_SHARE
            or release.share.value <= 0
        ):
            return None
        return ratio(release.share, self.paper.share)

    def to_json(self) -> dict[str, Any]:
        """Converts the choice to plain data."""
        return {
            "data": self.data,
            "level": self.level,
            "judged": self.texts[0],
            "attacked": self.texts[1],
            "floor": self.floor,
            "originals": self.originals,
            "families": [
                self._convert_release(release) for release in (*self.baselines, *self.family_scores)
            ],
            "missing": dict(self.missing),
        }

    def _convert_release(self, release: ReleaseScore) -> dict[str, Any]:
        is_ours = release.whose == "ours"
        return {
            "family": release.family,
            "series": release.series,
            "whose": release.whose,
            "judge": release.judge,
            "score": _round_interval(release.score),
            "share": _round_interval(release.share),
            "top_1": _round_interval(release.top_1),
            "top_10": _round_interval(release.top_10),
            "statement": release.statement,
            "more_than_papers": _round_interval(self.compute_lead(release)) if is_ours else None,
            "times_papers": _round_interval(self.compute_ratio(release)) if is_ours else None,
            "seconds": release.seconds,
        }


def build_choices(rows: Sequence[StoredRow]) -> list[Choice]:
    """Builds the choices of one comparison's rows, by data set and level."""
    results = []
    for data in dict.fromkeys(row["data"] for row in rows):
        data_rows = [row for row in rows if row["data"] == data]
        tuned = [row for row in data_rows if row["stage"] == "tuned"]
        judged = [row for row in data_rows if row["stage"] == "judged"]
        judges = {
            (row["series"], level): pick_judge(right)
            for row in tuned
            for level, _, _, right in row["levels"]
        }
        best = _find_best(tuned)
        budget_by_cell: dict[CellKey, float | None] = {
            (row["series"], None): None for row in tuned if row["whose"] == "baseline"
        }
        budget_by_cell |= {
            (row["series"], level): budget for (_, _, level), (row, budget, _) in best.items()
        }
        judged_at: dict[tuple[str, float | None], list[StoredRow]] = {}
        for row in judged:  # two levels may share a budget
            judged_at.setdefault((row["series"], row["value"]), []).append(row)
        cells = {
            key: judged_at[key[0], value]
            for key, value in budget_by_cell.items()
            if (key[0], value) in judged_at
        }
        if (FLOOR_SERIES, None) not in cells or (CEILING_SERIES, None) not in cells:
            continue  # the run was interrupted
        scores = {key: _average_correct(item, judges[key]) for key, item in cells.items()}
        estimate_by_cell = dict(
            zip(
                scores,
                compute_estimates(
                    [Sample(texts=data, sums=s, sizes=np.ones(len(s))) for s in scores.values()]
                ),
                strict=True,
            )
        )
        floor, originals = (
            estimate_by_cell[FLOOR_SERIES, None],
            estimate_by_cell[CEILING_SERIES, None],
        )
        keys: dict[float | None, list[CellKey]] = {}
        for name, level in cells:
            keys.setdefault(level, []).append((name, level))
        releases = {
            key: _score_release(
                cells[key], judges[key], estimate_by_cell[key], floor, originals, data
            )
            for key in cells
        }
        refused = {row["family"]: row["refused"] for row in tuned if row["refused"]}
        for level in sorted({level for row in tuned for level in row["asked"]}):
            level_releases = sorted(
                (releases[key] for key in keys.get(level, ())), key=lambda item: -item.share.value
            )
            families = {family for _, family, own_level in best if own_level == level}
            tried_families = dict.fromkeys(row["family"] for row in tuned if level in row["asked"])
            results.append(
                Choice(
                    data=data,
                    level=level,
                    texts=(len(next(iter(scores.values()))), _count_attacked(judged)),
                    floor=floor.value,
                    originals=originals.value,
                    baselines=tuple(releases[key] for key in keys[None]),
                    family_scores=tuple(level_releases),
                    missing={
                        family: refused.get(family, "no budget gets the risk down to the level")
                        for family in tried_families
                        if family not in families
                    },
                )
            )
    return results


def _count_attacked(judged: Sequence[StoredRow]) -> int:
    return max((len(row["risk"]["words"]) for row in judged if row["risk"]), default=0)


def _average_correct(cells: Sequence[StoredRow], judge: str) -> Values:
    """Averages the correctness of each text over seeds: float64 [B]."""
    shares: Values = np.mean(
        [np.frombuffer(row["right"][judge].encode(), np.uint8) - ord("0") for row in cells], axis=0
    )
    return shares


def _score_release(
    cells: Sequence[StoredRow],
    judge: str,
    score: Estimate,
    floor: Estimate,
    top: Estimate,
    data: str,
) -> ReleaseScore:
    first = cells[0]
    risk = next((row["risk"] for row in cells if row["risk"]), None)
    rates: list[Estimate | None] = [None, None]
    if risk is not None and sum(risk["words"]):
        words = np.array(risk["words"], np.float64)
        rates = list(
            compute_estimates(
                [
                    Sample(texts=f"{data}, attacked", sums=np.array(risk[name]), sizes=words)
                    for name in (TOP_1, TOP_10)
                ]
            )
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = (score.draws - floor.draws) / (top.draws - floor.draws)
    return ReleaseScore(
        family=first["family"],
        series=first["series"],
        whose=first["whose"],
        judge=judge,
        score=score,
        share=Estimate(
            texts=score.texts,
            value=(score.value - floor.value) / (top.value - floor.value),
            draws=draws,
        ),
        top_1=rates[0],
        top_10=rates[1],
        statement=first["statement"],
        seconds=round(sum(row["seconds"]["all"] for row in cells), 1),
    )


def _round_interval(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    ends = estimate.interval
    values = (("value", ends.value), ("low", ends.low), ("high", ends.high))
    return {name: round(value, 4) if np.isfinite(value) else None for name, value in values}


# ---- as Markdown -----------------------------------------------------------------------------------------------------


def format_markdown(choices: Sequence[Choice]) -> Iterator[str]:
    """Formats a table for each data set and level."""
    for choice in choices:
        yield (
            f"**{choice.data}, at most {choice.level:g} of the private words guessed**: originals "
            f"{choice.originals:.3f}, public words alone {choice.floor:.3f}; {choice.texts[0]:,} "
            f"texts judged, {choice.texts[1]:,} attacked"
        )
        yield ""
        yield (
            "| release | utility kept | first guess | first ten | guarantee per word | judge | "
            "over the papers' best |"
        )
        yield "|---|---|---|---|---|---|---|"
        best = choice.paper
        for release in (*choice.baselines, *choice.family_scores):
            name = f"*{release.series}*" if release.whose == "baseline" else release.series
            bold = release is best or release is next(
                (candidate for candidate in choice.family_scores if candidate.whose == "ours"), None
            )
            yield (
                f"| {name} | {_format_estimate(release.share, bold=bold)} | "
                f"{_format_estimate(release.top_1)} | {_format_estimate(release.top_10)} | "
                f"{_format_promise(release.statement)} | {release.judge} | "
                f"{_format_lead(choice, release)} |"
            )
        for family, reason in choice.missing.items():
            yield f"| {family} | not reached: {reason} | | | | | |"
        yield ""


UNIT_SCORES = {
    TRAINED_WORDS: "trained on it: words",
    TRAINED_VECTORS: "vectors",
    READ_WORDS: "read by a judge: words",
    READ_VECTORS: "vectors",
    LABELS: "labels off",
    TOPICS: "topics off",
}
"""Columns of the comparison of units."""


def collect_units(rows: Sequence[StoredRow]) -> list[dict[str, Any]]:
    """Collects releases by unit: the mean of each score over seeds, with 1.96 standard errors."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        for each in row["releases"] if row["stage"] == "units" else ():
            key = (row["data"], each["release"], each["unit"], each["epsilon"])
            found.setdefault(key, []).append(each)
    collected = []
    for (data, release, unit, epsilon), same in found.items():
        scores = {}
        for name in same[0]["scores"]:
            values = np.array([each["scores"][name] for each in same])
            error = 1.96 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
            scores[name] = {"value": round(float(values.mean()), 4), "error": error}
        losses = [each["document"] for each in same]
        collected.append(
            {
                "data": data,
                "release": release,
                "unit": unit,
                "epsilon": epsilon,
                "document": None if None in losses else float(np.mean(losses)),
                "scores": scores,
            }
        )
    return collected


def format_units(rows: Sequence[StoredRow]) -> Iterator[str]:
    """Formats a table for each data set: words beside whole texts, with the unit of the promise."""
    collected = collect_units(rows)
    for data in dict.fromkeys(each["data"] for each in collected):
        yield f"**{data}, by unit**: means over seeds; ± is over draws, not over texts"
        yield ""
        heads = ["release", "unit", "epsilon of it", "of a document", *UNIT_SCORES.values()]
        yield f"| {' | '.join(heads)} |"
        yield "|---" * len(heads) + "|"
        for each in collected:
            if each["data"] == data:
                cells = [each["release"], each["unit"] or "none"]
                cells += [
                    "" if value is None else f"{value:.3g}"
                    for value in (each["epsilon"], each["document"])
                ]
                cells += [_format_score(each["scores"].get(name)) for name in UNIT_SCORES]
                yield f"| {' | '.join(cells)} |"
        yield ""


def _format_score(score: Mapping[str, float | None] | None) -> str:
    if score is None:
        return ""
    error = score["error"]
    return f"{score['value']:.3f}" + (f" ± {error:.3f}" if error else "")


def format_all_public(rows: Sequence[StoredRow]) -> Iterator[str]:
    """Formats tables of the risk from an attacker with all public texts.

    The best releases come first, as in `format_markdown`; intervals of differences are paired over
    texts.
    """
    attacked_rows = {
        (row["data"], row["series"], row["value"]): row
        for row in rows
        if row["stage"] == "attacked"
    }
    tuned = [row for row in rows if row["stage"] == "tuned"]
    values = {(data, series, level): value for data, series, level, value in choose_cells(tuned)}
    for choice in build_choices(rows):
        lines: list[str] = []
        counts, words = (0, 0), np.zeros(0)
        for release in (*choice.baselines, *choice.family_scores):
            level = None if release.whose == "baseline" else choice.level
            row = attacked_rows.get(
                (choice.data, release.series, values.get((choice.data, release.series, level)))
            )
            if row is None:
                continue
            words = np.array(row["risk"]["words"], np.float64)
            sums = [np.array(row[key][TOP_1]) for key in ("risk", "all")]
            few, many = compute_estimates(
                [Sample(texts=choice.data, sums=row_sums, sizes=words) for row_sums in sums]
            )
            gap, name = (
                difference(many, few),
                f"*{release.series}*" if level is None else release.series,
            )
            ends = gap.interval
            lines.append(
                f"| {name} | {release.share.value:.3f} | {_format_estimate(few)} | "
                f"{_format_estimate(many)} | {ends.value:+.3f} ({ends.low:+.3f} to "
                f"{ends.high:+.3f}) |"
            )
            counts = row["texts"]["public"][0], row["public"][0]
        if lines:
            few_texts, all_texts = counts
            yield f"**{choice.data}, budgets for {choice.level:g}**: {len(words)} texts attacked"
            yield ""
            yield (
                f"| release | utility kept | guessed, from {few_texts:,} texts | from "
                f"{all_texts:,} | difference |"
            )
            yield "|---|---|---|---|---|"
            yield from lines
            yield ""


def _format_estimate(estimate: Estimate | None, *, bold: bool = False) -> str:
    if estimate is None:
        return ""
    ends = estimate.interval
    value = f"**{ends.value:.3f}**" if bold else f"{ends.value:.3f}"
    return f"{value} ({ends.low:.3f} to {ends.high:.3f})"


def _format_promise(statement: Mapping[str, Any] | None) -> str:
    if statement is None or statement["kind"] == "none":
        return "none"
    local = statement["local_dp"]
    if not isinstance(local, float):
        return "none"
    metric_part = "" if statement["kind"] == "ldp" else f"{statement['epsilon']:.3g} by distance, "
    return f"{metric_part}local DP {local:.3g}"


def _format_lead(choice: Choice, release: ReleaseScore) -> str:
    if release.whose != "ours":
        return ""
    times, lead = choice.compute_ratio(release), choice.compute_lead(release)
    if times is not None:
        ends = times.interval
        return f"{ends.value:.2f} times ({ends.low:.2f} to {ends.high:.2f})"
    if lead is None:
        return ""
    ends = lead.interval
    return f"{ends.value:+.3f} ({ends.low:+.3f} to {ends.high:+.3f})"
