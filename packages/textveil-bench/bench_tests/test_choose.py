"""Choices: options are chosen on the trial, and judged on other texts; what is not reached is not judged."""

from dataclasses import replace

import numpy as np
import pytest

from bench_tests import synthetic
from textveil.errors import ConfigError
from textveil_bench import choose
from textveil_bench.choose import choices, kept, markdown, summary, trial, tuned
from textveil_bench.spec import Sweep

LEVELS = (0.05, 0.1, 0.2)


def final():
    return list(synthetic.rows(data=("sst2",), texts=300))


def tried(better: str = "wide staircase, k 200"):
    """Rows of a trial; one series is far better than its family."""
    found = []
    for row in synthetic.rows(data=("sst2",), texts=80, seeds=(1,)):
        if row["whose"] == "baseline" or row["budget"] is None:
            continue
        head = next(score for score in row["scores"] if score["metric"] == "accuracy")
        exposed = next(score for score in row["scores"] if score["metric"] == "exposed")
        if row["series"] == better:
            head["values"] = [1.0] * len(head["values"])
        found.append({**row, "scores": [head, exposed]})
    return found


def test_options_are_those_that_are_best_in_the_trial():
    for better in ("wide staircase, k 20", "wide staircase, k 200"):
        names = tuned(tried(better), LEVELS, "unigram")
        assert {names[level]["sst2", "wide staircase"] for level in LEVELS} == {(better, 1.0)}
        expected = {better, "noise", "santext+", "custext+", "cape"}
        assert set(kept(tried(better), LEVELS, "unigram")["sst2"]) == expected


def test_families_at_equal_risk():
    found = choices(final(), tried(), LEVELS, "unigram")
    assert [choice.level for choice in found] == [0.05, 0.1, 0.2]
    middle = found[1]
    assert middle.counts
    assert set(middle.baselines) == {"identity", "mask", "uniform"}
    assert middle.floor == 0.5
    assert middle.originals == pytest.approx(middle.baselines["identity"].value + 0.5)
    assert {each.name for each in middle.found} == {"wide staircase, k 200", "noise", "santext+", "custext+", "cape"}
    values = [each.above.value for each in middle.found if each.above is not None]
    assert values == sorted(values, reverse=True)
    assert middle.best["ours"] == "wide staircase"
    by_family = {each.family: each.above for each in middle.found}
    papers = {family: above.value for family, above in by_family.items() if above and family != "wide staircase"}
    assert middle.best["paper"] == max(papers, key=lambda family: papers[family]), "on the texts that are judged"
    ours, paper = by_family["wide staircase"], by_family[middle.best["paper"]]
    assert ours is not None
    assert paper is not None
    lead, gain = middle.lead, middle.gain
    assert lead is not None
    assert gain is not None
    assert lead.value == pytest.approx(ours.value - paper.value)
    assert gain.value == pytest.approx(ours.value / paper.value)
    assert gain.interval.low < gain.value < gain.interval.high


def test_nothing_is_a_multiple_of_what_may_be_nothing():
    rows = final()
    for row in rows:
        if row["whose"] == "paper":
            for score in row["scores"]:
                if score["metric"] == "accuracy":
                    score["values"] = [0.5] * len(score["values"])
    (found,) = choices(rows, tried(), (0.1,), "unigram")
    assert found.lead is not None
    assert found.lead.value > 0
    assert found.gain is None
    assert "not above the floor for certain" in "\n".join(markdown([found]))


def test_the_floor_of_a_task_without_chance_is_what_is_kept_without_its_words():
    rows = final()
    for row in rows:
        for score in row["scores"]:
            if score["metric"] == "accuracy":
                score["baseline"] = 0.0
                if row["series"] == "uniform":
                    score["values"] = [1.0, 1.0, 0.0] * (len(score["values"]) // 3)
    (found,) = choices(rows, tried(), (0.1,), "unigram")
    assert found.floor == pytest.approx(2 / 3)
    assert found.baselines["uniform"].value == 0
    assert found.baselines["identity"].value == pytest.approx(found.originals - 2 / 3)


def test_the_first_table_has_ours_beside_the_best_of_the_papers():
    found = choices(final(), tried(), LEVELS, "unigram")
    lines = list(summary(found))
    assert lines[0].endswith("at most | 0.05 | 0.1 | 0.2 |")
    (own,) = (choice for choice in found if choice.level == 0.1)
    named = {each.family: each for each in own.found}
    ours, paper = (named[own.best[side]] for side in ("ours", "paper"))
    beside = lines[2].split(" | ")[2]
    assert ours.above is not None
    assert paper.above is not None
    assert own.gain is not None
    assert beside.startswith(f"{ours.above.interval.value:.3f} {ours.name} beside {paper.above.interval.value:.3f} ")
    assert f"; {own.gain.interval.value:.2f} times (" in beside
    short = [row for row in final() if row["whose"] != "ours"]
    assert "none beside" in list(summary(choices(short, tried(), (0.1,), "unigram")))[2]


def test_what_failed_in_a_cell_is_left_out():
    rows = [row if i % 5 else {**row, "scores": row["scores"][1:]} for i, row in enumerate(final())]
    assert choices(rows, tried(), (0.1,), "unigram")[0].found
    bare = [{**row, "scores": []} if row["series"] == "identity" else row for row in final()]
    with pytest.raises(ConfigError, match="the originals of sst2"):
        choices(bare, tried(), (0.1,), "unigram")
    assert tuned([{**row, "scores": []} for row in tried()], LEVELS, "unigram") == {level: {} for level in LEVELS}


def test_a_curve_that_ends_below_a_risk_is_read_at_its_end():
    far = choices(final(), tried(), (0.99,), "unigram")[0]
    assert all(each.above is not None for each in far.found)


def test_what_is_not_reached_is_not_judged():
    low = choices(final(), tried(), (0.0001,), "unigram")
    assert low[0].found == ()
    assert low[0].gain is None
    short = [row for row in final() if row["entry"] != "cape" or row["budget"]["value"] == 14.0]
    cape = next(each for each in choices(short, tried(), (0.1,), "unigram")[0].found if each.family == "cape")
    assert cape.above is None
    assert any("cape | not reached" in line for line in markdown(choices(short, tried(), (0.1,), "unigram")))


def test_a_risk_that_may_be_larger_is_marked():
    rows = final()
    for row in rows:
        for score in row["scores"]:
            if score["metric"] == "exposed":
                score["note"] = "top-1; a lower bound: the law was estimated" if row["entry"] == "noise" else "top-1"
    (found,) = choices(rows, tried(), (0.1,), "unigram")
    assert [each.family for each in found.found if each.bound] == ["noise"]


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
    assert all(np.isfinite(each["above_floor"]["value"]) for each in plain["families"])


@pytest.mark.slow
def test_the_trial_is_on_other_examples_and_measures_the_risk():
    sweep = Sweep.read("choose")
    made = trial(sweep, choose.Tuning(limit=7))
    assert {(source.split, source.limit) for source in made.data} == {("test", 7)}
    assert [source.beside for source in made.data] == [source.limit or sweep.limit for source in sweep.data]
    assert [source.training() for source in made.data] == [source.training() for source in sweep.data]
    assert [each["name"] for each in made.attacks] == ["bayes"]
    assert {series.whose for series in made.series} == {"paper", "ours"}
    assert all(series.searched for series in made.series)


def test_a_trial_needs_examples_that_are_not_judged():
    sweep = replace(Sweep.read("choose"), limit=None)
    with pytest.raises(ConfigError, match="set a limit"):
        trial(replace(sweep, data=tuple(replace(source, limit=None) for source in sweep.data)), choose.Tuning())
