"""Choices: options are chosen on the trial, and judged on other texts; what is not reached is not judged."""

from dataclasses import replace

import numpy as np
import pytest

from tests.bench import synthetic
from textveil.bench import choose
from textveil.bench.choose import best, choices, kept, markdown, trial
from textveil.bench.spec import Sweep
from textveil.errors import ConfigError

LEVELS = (0.05, 0.1, 0.2)


def final():
    return list(synthetic.rows(data=("sst2",), texts=300))


def tried(better: str = "wide staircase, k 200"):
    """Rows of a trial: a level at each budget; one series is far better than its family."""
    found = []
    for row in synthetic.rows(data=("sst2",), texts=80, seeds=(1,)):
        if row["whose"] == "baseline" or row["budget"] is None:
            continue
        budgets = next(entry.budgets for entry in synthetic.ENTRIES if entry.name == row["entry"])
        level = dict(zip(budgets, (0.02, 0.05, 0.1, 0.2, 0.4), strict=True))[row["budget"]["value"]]
        head = next(score for score in row["scores"] if score["metric"] == "accuracy")
        if row["series"] == better:
            head["values"] = [1.0] * len(head["values"])
        found.append({**row, "level": level, "scores": [head]})
    return found


def test_options_are_those_that_are_best_in_the_trial():
    for better in ("wide staircase, k 20", "wide staircase, k 200"):
        names = best(tried(better), LEVELS)
        assert {names[level]["sst2", "wide staircase"] for level in LEVELS} == {better}
        assert set(kept(tried(better), LEVELS)["sst2"]) == {better, "noise", "santext+", "custext+", "cape"}


def test_families_at_equal_risk():
    found = choices(final(), tried(), LEVELS, "unigram")
    assert [choice.level for choice in found] == [0.05, 0.1, 0.2]
    middle = found[1]
    assert middle.counts
    assert middle.chance == 0.5
    assert set(middle.baselines) == {"identity", "mask", "uniform"}
    assert middle.clean > middle.baselines["mask"].value
    assert {each.name for each in middle.found} == {"wide staircase, k 200", "noise", "santext+", "custext+", "cape"}
    values = [each.above.value for each in middle.found if each.above is not None]
    assert values == sorted(values, reverse=True)
    assert middle.best["ours"] == "wide staircase"
    gain = middle.gain
    assert gain is not None
    by_family = {each.family: each.above for each in middle.found}
    ours, paper = by_family["wide staircase"], by_family[middle.best["paper"]]
    assert ours is not None
    assert paper is not None
    assert gain.value == pytest.approx(ours.value / paper.value)
    assert gain.interval.low < gain.value < gain.interval.high


def test_what_is_not_reached_is_not_judged():
    far = choices(final(), tried(), (0.9,), "unigram")
    assert far[0].found == ()
    assert far[0].gain is None
    short = [row for row in final() if row["entry"] != "cape" or row["budget"]["value"] == 4.0]
    cape = next(each for each in choices(short, tried(), (0.2,), "unigram")[0].found if each.family == "cape")
    assert cape.above is None
    lines = list(markdown(choices(short, tried(), (0.2,), "unigram")))
    assert any("cape | not reached" in line for line in lines)


def test_a_task_that_is_too_near_to_chance_does_not_count():
    rows = final()
    for row in rows:
        for score in row["scores"]:
            if score["metric"] == "accuracy":
                score["baseline"] = 0.95
    (found,) = choices(rows, tried(), (0.1,), "unigram")
    assert not found.counts
    assert "does not count" in "\n".join(markdown([found]))


def test_as_plain_data():
    (found,) = choices(final(), tried(), (0.1,), "unigram")
    plain = found.to_json()
    assert plain["gain"]["value"] == pytest.approx(found.gain.value)  # type: ignore[union-attr]
    assert len(plain["families"]) == 5
    assert all(np.isfinite(each["above_chance"]["value"]) for each in plain["families"])


def test_the_trial_is_on_other_examples_and_attacks_nothing():
    sweep = Sweep.read("choose")
    made = trial(sweep, choose.Trial(limit=7))
    assert {(source.split, source.limit) for source in made.data} == {("test", 7)}
    assert [source.beside for source in made.data] == [source.limit or sweep.limit for source in sweep.data]
    assert [source.training() for source in made.data] == [source.training() for source in sweep.data]
    assert made.attacks == ()
    assert {series.whose for series in made.series} == {"paper", "ours"}
    assert all(series.searched for series in made.series)


def test_a_trial_needs_examples_that_are_not_judged():
    sweep = replace(Sweep.read("choose"), limit=None)
    with pytest.raises(ConfigError, match="set a limit"):
        trial(replace(sweep, data=tuple(replace(source, limit=None) for source in sweep.data)), choose.Trial())


def test_rows_without_a_headline_choose_nothing():
    rows = tried()
    for row in rows:
        row["scores"][0]["headline"] = False
    with pytest.raises(ConfigError, match="must have a judge's headline"):
        best(rows, LEVELS)
