"""What follows from the rows of a comparison: what is kept at equal risk, and by how much ours keeps more.

In: rows. Out: which series are judged, `Choice`s, lines of tables.
Not here: how rows come about (`jobs`).

Options and judges are chosen on the texts that are tuned on, for every mechanism alike. The papers' best is the best on
the judged texts, which favours the papers. Scores are shares of the way from what passes alone, `mask`, with a judge of
its own, to the originals.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from textveil.randomness import Values
from textveil_bench.choose.risk import AMONG, FIRST
from textveil_bench.estimates import Estimate, Sample, difference, estimates, ratio

FLOOR, CEILING = "mask", "identity"

LEAST = 0.05
"""A share of the papers' best whose interval lies above this is one that ours can be a multiple of."""

Row = Mapping[str, Any]

Cell = tuple[str, float | None]
"""A series at a level of risk, None for a baseline."""


def chosen(tuned: Sequence[Row]) -> Iterator[tuple[str, str, float | None, float | None]]:
    """Data set, series, level and budget of all cells that are judged: baselines, and the best of each family."""
    for row in tuned:
        if row["whose"] == "baseline":
            yield row["data"], row["series"], None, None
    for (data, _, level), (row, budget, _) in _best(tuned).items():
        yield data, row["series"], level, budget


def _best(tuned: Sequence[Row]) -> dict[tuple[str, str, float], tuple[Row, float, float]]:
    """By data set, family and level the row of the best series, its budget, and its score."""
    found: dict[tuple[str, str, float], tuple[Row, float, float]] = {}
    for row in tuned:
        for level, budget, _, right in row["levels"]:
            if level is None:
                continue
            key, score = (row["data"], row["family"], level), _score(right, judge(right))
            last = found.get(key)
            if last is None or (-score, row["series"]) < (-last[2], last[0]["series"]):
                found[key] = row, budget, score
    return found


def judge(right: Mapping[str, str]) -> str:
    """The name of the judge that gets most texts right; of several the first."""
    return max(right, key=lambda name: _score(right, name))


def _score(right: Mapping[str, str], name: str) -> float:
    return right[name].count("1") / len(right[name])


@dataclass(frozen=True, kw_only=True)
class ReleaseScore:
    """What one release keeps, and what the attacker gets.

    Attributes:
        family: the mechanism.
        series: the mechanism with the options that were chosen.
        whose: paper, ours or baseline.
        judge: the judge that counts.
        score: of the judge.
        share: of the way from the floor to the originals.
        first: the share of private words that the attacker names at first guess; None if nothing is drawn.
        among: the same of the first ten guesses.
        statement: kind, metric and largest epsilon; None for the originals.
        seconds: what its cells took.
    """

    family: str
    series: str
    whose: str
    judge: str
    score: Estimate
    share: Estimate
    first: Estimate | None
    among: Estimate | None
    statement: Mapping[str, Any] | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Choice:
    """All families on one data set at one level of risk.

    Attributes:
        data: its name.
        level: the risk that budgets were chosen for.
        texts: judged, and attacked.
        floor: the score of what passes alone.
        originals: the score of originals.
        baselines: what they keep, whatever the level.
        kept: one for each family that reaches the level, the best first.
        missing: why other families have none, by name.
    """

    data: str
    level: float
    texts: tuple[int, int]
    floor: float
    originals: float
    baselines: tuple[ReleaseScore, ...]
    kept: tuple[ReleaseScore, ...]
    missing: Mapping[str, str]

    @property
    def paper(self) -> ReleaseScore | None:
        """The papers' best on the judged texts."""
        return next((each for each in self.kept if each.whose == "paper"), None)

    def lead(self, one: ReleaseScore) -> Estimate | None:
        """How much more of the way one keeps than the papers' best."""
        return None if self.paper is None else difference(one.share, self.paper.share)

    def times(self, one: ReleaseScore) -> Estimate | None:
        """How many times as much; None where it keeps nothing, or the papers' best is not certainly above `LEAST`."""
        if self.paper is None or self.paper.share.interval.low <= LEAST or one.share.value <= 0:
            return None
        return ratio(one.share, self.paper.share)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "data": self.data,
            "level": self.level,
            "judged": self.texts[0],
            "attacked": self.texts[1],
            "floor": self.floor,
            "originals": self.originals,
            "families": [self._plain(each) for each in (*self.baselines, *self.kept)],
            "missing": dict(self.missing),
        }

    def _plain(self, one: ReleaseScore) -> dict[str, Any]:
        ours = one.whose == "ours"
        return {
            "family": one.family,
            "series": one.series,
            "whose": one.whose,
            "judge": one.judge,
            "score": _ends(one.score),
            "share": _ends(one.share),
            "top_1": _ends(one.first),
            "top_10": _ends(one.among),
            "statement": one.statement,
            "more_than_papers": _ends(self.lead(one)) if ours else None,
            "times_papers": _ends(self.times(one)) if ours else None,
            "seconds": one.seconds,
        }


def choices(rows: Sequence[Row]) -> list[Choice]:
    """What is kept, from the rows of one comparison, by data set and level."""
    found = []
    for data in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == data]
        tuned = [row for row in own if row["stage"] == "tuned"]
        judged = [row for row in own if row["stage"] == "judged"]
        judges = {
            (row["series"], level): judge(right)
            for row in tuned
            for level, _, _, right in row["levels"]
        }
        best = _best(tuned)
        wanted: dict[Cell, float | None] = {
            (row["series"], None): None for row in tuned if row["whose"] == "baseline"
        }
        wanted |= {
            (row["series"], level): budget for (_, _, level), (row, budget, _) in best.items()
        }
        judged_at: dict[tuple[str, float | None], list[Row]] = {}
        for row in judged:  # a budget may be that of two levels
            judged_at.setdefault((row["series"], row["value"]), []).append(row)
        cells = {
            key: judged_at[key[0], value]
            for key, value in wanted.items()
            if (key[0], value) in judged_at
        }
        if (FLOOR, None) not in cells or (CEILING, None) not in cells:
            continue  # it was interrupted before
        scores = {key: _correct(each, judges[key]) for key, each in cells.items()}
        made = dict(
            zip(
                scores,
                estimates(
                    [Sample(texts=data, sums=s, sizes=np.ones(len(s))) for s in scores.values()]
                ),
                strict=True,
            )
        )
        floor, originals = made[FLOOR, None], made[CEILING, None]
        keys: dict[float | None, list[Cell]] = {}
        for name, level in cells:
            keys.setdefault(level, []).append((name, level))
        kept = {
            key: _kept(cells[key], judges[key], made[key], floor, originals, data) for key in cells
        }
        refused = {row["family"]: row["refused"] for row in tuned if row["refused"]}
        for level in sorted({level for row in tuned for level in row["asked"]}):
            there = sorted(
                (kept[key] for key in keys.get(level, ())), key=lambda each: -each.share.value
            )
            families = {family for _, family, own_level in best if own_level == level}
            every = dict.fromkeys(row["family"] for row in tuned if level in row["asked"])
            found.append(
                Choice(
                    data=data,
                    level=level,
                    texts=(len(next(iter(scores.values()))), _attacked(judged)),
                    floor=floor.value,
                    originals=originals.value,
                    baselines=tuple(kept[key] for key in keys[None]),
                    kept=tuple(there),
                    missing={
                        family: refused.get(family, "no budget gets the risk down to the level")
                        for family in every
                        if family not in families
                    },
                )
            )
    return found


def _attacked(judged: Sequence[Row]) -> int:
    return max((len(row["risk"]["words"]) for row in judged if row["risk"]), default=0)


def _correct(cells: Sequence[Row], judge: str) -> Values:
    """How often each text was judged right, over seeds: float64 [B]."""
    found: Values = np.mean(
        [np.frombuffer(row["right"][judge].encode(), np.uint8) - ord("0") for row in cells], axis=0
    )
    return found


def _kept(
    cells: Sequence[Row], judge: str, score: Estimate, floor: Estimate, top: Estimate, data: str
) -> ReleaseScore:
    first = cells[0]
    risk = next((row["risk"] for row in cells if row["risk"]), None)
    rates: list[Estimate | None] = [None, None]
    if risk is not None and sum(risk["words"]):
        words = np.array(risk["words"], np.float64)
        rates = list(
            estimates(
                [
                    Sample(texts=f"{data}, attacked", sums=np.array(risk[name]), sizes=words)
                    for name in (FIRST, AMONG)
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
        first=rates[0],
        among=rates[1],
        statement=first["statement"],
        seconds=round(sum(row["seconds"]["all"] for row in cells), 1),
    )


def _ends(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    ends = found.interval
    named = (("value", ends.value), ("low", ends.low), ("high", ends.high))
    return {name: round(value, 4) if np.isfinite(value) else None for name, value in named}


# ---- as Markdown -----------------------------------------------------------------------------------------------------


def markdown(found: Sequence[Choice]) -> Iterator[str]:
    """A table for each data set and level."""
    for choice in found:
        yield (
            f"**{choice.data}, at most {choice.level:g} of the private words named**: originals "
            f"{choice.originals:.3f}, what passes alone {choice.floor:.3f}; {choice.texts[0]:,} texts judged, "
            f"{choice.texts[1]:,} attacked"
        )
        yield ""
        yield "| release | share kept | named at once | among ten | promise per word | judge | over the papers' best |"
        yield "|---|---|---|---|---|---|---|"
        best = choice.paper
        for each in (*choice.baselines, *choice.kept):
            name = f"*{each.series}*" if each.whose == "baseline" else each.series
            bold = each is best or each is next(
                (one for one in choice.kept if one.whose == "ours"), None
            )
            yield (
                f"| {name} | {_spelled(each.share, bold=bold)} | {_spelled(each.first)} | {_spelled(each.among)} | "
                f"{_promise(each.statement)} | {each.judge} | {_over(choice, each)} |"
            )
        for family, reason in choice.missing.items():
            yield f"| {family} | not reached: {reason} | | | | | |"
        yield ""


def all_public(rows: Sequence[Row]) -> Iterator[str]:
    """What an attacker names who learned from all public texts there are, of the releases of a comparison, in tables.

    The best of a data set stand first, as in `markdown`; intervals of differences are paired over texts.
    """
    found = {
        (row["data"], row["series"], row["value"]): row
        for row in rows
        if row["stage"] == "attacked"
    }
    tuned = [row for row in rows if row["stage"] == "tuned"]
    values = {(data, series, level): value for data, series, level, value in chosen(tuned)}
    for choice in choices(rows):
        lines: list[str] = []
        counts, words = (0, 0), np.zeros(0)
        for each in (*choice.baselines, *choice.kept):
            level = None if each.whose == "baseline" else choice.level
            row = found.get(
                (choice.data, each.series, values.get((choice.data, each.series, level)))
            )
            if row is None:
                continue
            words = np.array(row["risk"]["words"], np.float64)
            sums = [np.array(row[whose][FIRST]) for whose in ("risk", "all")]
            few, many = estimates(
                [Sample(texts=choice.data, sums=own, sizes=words) for own in sums]
            )
            more, name = difference(many, few), f"*{each.series}*" if level is None else each.series
            ends = more.interval
            lines.append(
                f"| {name} | {each.share.value:.3f} | {_spelled(few)} | {_spelled(many)} | "
                f"{ends.value:+.3f} ({ends.low:+.3f} to {ends.high:+.3f}) |"
            )
            counts = row["texts"]["public"][0], row["public"][0]
        if lines:
            few_texts, all_texts = counts
            yield f"**{choice.data}, budgets for {choice.level:g}**: {len(words)} texts attacked"
            yield ""
            yield f"| release | share kept | named, from {few_texts:,} texts | from {all_texts:,} | more |"
            yield "|---|---|---|---|---|"
            yield from lines
            yield ""


def _spelled(found: Estimate | None, *, bold: bool = False) -> str:
    if found is None:
        return ""
    ends = found.interval
    value = f"**{ends.value:.3f}**" if bold else f"{ends.value:.3f}"
    return f"{value} ({ends.low:.3f} to {ends.high:.3f})"


def _promise(statement: Mapping[str, Any] | None) -> str:
    if statement is None or statement["kind"] == "none":
        return "none"
    local = statement["local_dp"]
    if not isinstance(local, float):
        return "none"
    own = "" if statement["kind"] == "ldp" else f"{statement['epsilon']:.3g} by distance, "
    return f"{own}local DP {local:.3g}"


def _over(choice: Choice, one: ReleaseScore) -> str:
    if one.whose != "ours":
        return ""
    times, lead = choice.times(one), choice.lead(one)
    if times is not None:
        ends = times.interval
        return f"{ends.value:.2f} times ({ends.low:.2f} to {ends.high:.2f})"
    if lead is None:
        return ""
    ends = lead.interval
    return f"{ends.value:+.3f} ({ends.low:+.3f} to {ends.high:+.3f})"
