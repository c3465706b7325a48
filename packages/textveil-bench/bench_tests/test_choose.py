"""Comparisons at equal risk: which text plays which part, which budget a risk allows, what is kept."""

import csv
import json
import math
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures import Opaque

from textveil.config import registry, resolve
from textveil.errors import BudgetError, ConfigError, UnknownName
from textveil.evaluate.attack import sampled_channel
from textveil.evaluate.attack.learned import Learned
from textveil.mechanism import papers
from textveil.pipeline import Privatizer
from textveil.table import load_table
from textveil_bench import run as runs
from textveil_bench.choose import (
    Comparison,
    build_choices,
    collect_units,
    format_all_public,
    format_costs,
    format_markdown,
    format_units,
    jobs,
    read,
    run,
)
from textveil_bench.choose import material as parts
from textveil_bench.choose.judges import Judges, NaiveBayes
from textveil_bench.choose.plan import PartSizes
from textveil_bench.choose.risk import TOP_1, TOP_10, find_budgets, measure_risk
from textveil_bench.data.sources import SOURCES
from textveil_bench.examples import DataSet, Example
from textveil_bench.spec import SweepData, SweepEntry
from textveil_bench.trials import FIELD_SEPARATOR

WORDS = {
    "sea": [
        "boat",
        "harbour",
        "sailor",
        "wave",
        "island",
        "beach",
        "fish",
        "captain",
        "coast",
        "anchor",
    ],
    "farm": [
        "tractor",
        "barn",
        "wheat",
        "farmer",
        "cattle",
        "harvest",
        "orchard",
        "plough",
        "meadow",
        "horse",
    ],
}
COMMON = "the {} of a {} and this {} with the {} in {}"
OTHERS = [
    "morning",
    "evening",
    "winter",
    "summer",
    "autumn",
    "spring",
    "rain",
    "silence",
    "march",
    "may",
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Texts of two labels, which four of their words tell apart."""
    draws = random.Random(3)
    folder = tmp_path_factory.mktemp("texts")
    for split, count in (("train", 360), ("test", 160)):
        with (folder / f"{split}.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["text", "label"])
            for i in range(count):
                label = ("sea", "farm")[i % 2]
                out.writerow(
                    [COMMON.format(*draws.choices(WORDS[label], k=4), draws.choice(OTHERS)), label]
                )
    return folder


@pytest.fixture(scope="module")
def comparison(texts):
    data = SweepData(
        name=str(texts / "{split}.csv"),
        columns={"fields": ("text",), "label": "label"},
        as_name="own",
    )
    codes = {"mechanism.name": "codebook", "table.codes": "task-2"}
    return Comparison(
        name="own",
        data=(data,),
        levels=(0.3,),
        seeds=(1, 2),
        common={"table.name": "minilm"},
        entries=(
            SweepEntry(
                name="rankcape",
                set={"mechanism.name": "rankcape"},
                budget={"epsilon": ("risk",)},
                start=4,
            ),
            SweepEntry(
                name="codes",
                whose="ours",
                set=codes,
                budget={"epsilon": ("risk",)},
                start=3,
                most=3,
            ),
        ),
        maps=("task-2",),
        sizes=PartSizes(
            shelf=80, public=100, train=60, tuned=60, judged=80, attacked=40, simulated=300
        ),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("choose")


@pytest.fixture(scope="module")
def rows(comparison, folder):
    return run(comparison, folder, places=runs.Folders())


# ---- the parts -------------------------------------------------------------------------------------------------------


def test_no_text_plays_two_parts(comparison):
    found = parts.deal(comparison.data[0], comparison.sizes, runs.Folders())
    played = [
        set(parts.list_texts(each))
        for each in (found.shelf, found.public, found.pool, found.tuned, found.judged)
    ]
    assert [len(each) for each in played] == [80, 100, 120, 60, 80]
    assert len(set.union(*played)) == sum(map(len, played))
    one, other = (found.draw_training(60, seed) for seed in (1, 2))
    assert len(one) == len(other) == 60
    assert one.digest != other.digest
    assert one.digest == found.draw_training(60, 1).digest


def test_a_data_set_without_labels_is_refused(tmp_path):
    (tmp_path / "train.txt").write_text("a boat\n" * 3)
    (tmp_path / "test.txt").write_text("a barn\n" * 3)
    with pytest.raises(ConfigError, match="labels"):
        parts.deal(SweepData(name=str(tmp_path / "{split}.txt")), PartSizes(), runs.Folders())


def test_a_map_puts_one_word_for_each_code_and_keeps_fields_apart():
    table = load_table("minilm")
    first, other = parts.map_to_codes(["The boat sailed\n\nin Ghent", "the Harbour ."], "8", table)
    assert first.startswith("the ")
    assert first.count("\n\n") == 1
    assert other.split()[0] == "the"
    assert {*first.split(), *other.split()} - {"the", "in", "."} <= {
        table.words[row] for row in parts._load_book("8").spelling
    }
    with pytest.raises(ConfigError, match="domain-C"):
        parts.resolve_book("8", table, None, None)  # type: ignore[arg-type]


# ---- risk ------------------------------------------------------------------------------------------------------------


def rising(budget: float) -> float:
    return 0.05 + 0.9 / (1 + math.exp(3 - budget))


def test_the_budget_of_a_level_is_the_largest_tried_that_is_not_above_it():
    found, tried = find_budgets(rising, (0.1, 0.3), 4.0)
    for level in (0.1, 0.3):
        assert level * 0.9 <= rising(found[level]) <= level
    assert found[0.1] < found[0.3]
    assert tried == {budget: rising(budget) for budget in tried}
    assert len(tried) <= 14


@pytest.mark.parametrize("start", [0.01, 1.0, 50.0])
def test_where_the_search_starts_does_not_matter(start):
    assert find_budgets(rising, (0.2,), start)[0][0.2] == pytest.approx(1.4, abs=0.35)


def test_a_level_that_no_budget_reaches_has_none_and_one_that_all_reach_has_the_largest():
    assert find_budgets(lambda budget: 0.4, (0.2,), 1.0)[0] == {}
    assert find_budgets(lambda budget: 0.1, (0.2,), 1.0, 5.0)[0][0.2] == 5.0
    assert find_budgets(rising, (0.9,), 1.0, 2.0)[0][0.9] == 2.0


def test_a_budget_that_is_refused_counts_as_no_protection():
    def at(budget: float) -> float:
        if budget > 3:
            raise BudgetError("too large")
        return rising(budget)

    assert 2 < find_budgets(at, (0.5,), 8.0)[0][0.5] <= 3


def test_the_floor_shows_no_equality_whatever_the_mechanisms_do(comparison, tmp_path):
    """Else "what passes alone" would say which words are equal, as numbered placeholders do."""
    alike = replace(comparison, common={**comparison.common, "words.consistent": True})
    seen = {}
    for series in alike.list_series("own")[:4]:
        if (config := series.build_config(None, 5)) is not None:
            seen[series.name] = (
                Privatizer.from_config(config)
                .privatize("boat and boat and boat and boat")
                .text.split()
            )
    assert seen["mask"][::2] == ["<WORD>"] * 4
    assert len({*seen["uniform"][::2]}) > 1
    assert len({*seen["equality"][::2]}) == 1


@pytest.mark.slow
def test_words_that_pass_are_named_and_placeholders_are_not():
    words = ["the old boat near the barn"] * 4
    learned = Learned(
        public=tuple(f"the {a} near the {b}" for a in WORDS["sea"] for b in WORDS["farm"]),
        simulated=100,
    )
    hidden = measure_risk(Privatizer("placeholder"), words, learned)
    assert hidden.words.tolist() == [4.0] * 4
    assert hidden.share == 0
    config = resolve(overrides={"mechanism.name": "krr", "epsilon": 1e-6, "words.oov": "keep"})
    passed = measure_risk(Privatizer.from_config(config), ["the quuxify barn"] * 3, learned)
    assert passed.words.tolist() == [2.0] * 3
    assert (passed.hits[TOP_1] >= 1).all()
    assert (passed.hits[TOP_10] >= passed.hits[TOP_1]).all()


def blur() -> Opaque:
    """Draws as `rankcape` does; nothing else of it is known."""
    return Opaque(papers.rankcape())


@pytest.mark.slow
def test_a_mechanism_that_only_draws_is_compared_with_the_others(
    comparison, rows, tmp_path, monkeypatch
):
    entry = registry.Entry(target=f"{__name__}:blur", summary="draws")
    monkeypatch.setitem(registry.MECHANISMS, "blur", entry)
    monkeypatch.setattr(sampled_channel, "MAX_RANKED_ROWS", 1)  # ranks take most of the time
    drawn = replace(comparison.entries[0], name="blur", set={"mechanism.name": "blur"})
    small = replace(comparison, entries=(drawn,), seeds=(1,), maps=())
    sampled = run(small, tmp_path, places=runs.Folders())
    budget, known = (
        next(
            row["levels"][0][1]
            for row in some
            if row["stage"] == "tuned" and row["family"] == family
        )
        for some, family in ((sampled, "blur"), (rows, "rankcape"))
    )
    assert budget == pytest.approx(known, rel=0.4), "a similar budget for the same risk"
    (risk,) = [
        row["risk"] for row in sampled if row["stage"] == "judged" and row["family"] == "blur"
    ]
    assert "estimated from" in risk["note"]


# ---- judges ----------------------------------------------------------------------------------------------------------


def test_judges_learn_from_originals_and_from_releases(comparison):
    found = parts.deal(comparison.data[0], comparison.sizes, runs.Folders())
    own, learned = parts.list_texts(found.judged), found.draw_training(60, 1)
    labels, known = (
        np.array([each.label for each in data.examples]) for data in (found.judged, learned)
    )
    judges = Judges(found.judged, load_table("minilm"), {"general-8": "8"})
    clean = dict(judges.score(own, labels, (parts.list_texts(learned), known), None))
    assert set(clean) == {
        "words",
        "counts",
        "vectors",
        "means",
        "words by general-8",
        "counts by general-8",
    }
    assert clean["words"].mean() > 0.95
    assert clean["counts"].mean() > 0.95
    reversed_words = [" ".join(word[::-1] for word in text.split()) for text in own]
    taught = [" ".join(word[::-1] for word in text.split()) for text in parts.list_texts(learned)]
    told = dict(judges.score(reversed_words, labels, (parts.list_texts(learned), known), taught))
    assert told["words"].mean() < 0.7, "it has never seen such words"
    assert told["adaptive words"].mean() > 0.95
    assert told["adaptive counts"].mean() > 0.95
    few = dict(
        judges.score(own, labels, (parts.list_texts(learned), known), None, skip=("words", "means"))
    )
    assert few.keys() == clean.keys() - {"words", "means"}


def test_counts_tell_what_is_in_words_drawn_independently():
    """A label shifts how often two words occur, both of which are in every text."""
    draws = random.Random(5)
    labels = [i % 2 for i in range(600)]
    texts = [
        " ".join(draws.choices(["boat", "barn"], [0.4 + 0.2 * label, 0.6 - 0.2 * label], k=30))
        for label in labels
    ]
    learned = NaiveBayes().fit(texts[:300], np.array(labels[:300]))
    right = (learned(texts[300:]) == np.array(labels[300:])).mean()
    assert right > 0.8  # the best there is: .87


def questions(count: int, seed: int) -> DataSet:
    """Which of four sentences names what the question does; its words stand nowhere else."""
    draws, found = random.Random(seed), []
    for _ in range(count):
        words = draws.sample([*WORDS["sea"], *WORDS["farm"]], k=4)
        label = draws.randrange(4)
        options = [f"this is the {word} of {draws.choice(OTHERS)}" for word in words]
        found.append(Example(texts=(f"where is the {words[label]}", *options), label=label))
    letters = tuple("ABCD")
    fields = ("question", *letters)
    return DataSet(
        name="asked",
        split="test",
        kind="choice",
        fields=fields,
        labels=letters,
        examples=tuple(found),
    )


@pytest.mark.slow
def test_judges_tell_the_option_that_answers_a_question():
    learned, own = questions(80, 1), questions(60, 2)
    known, labels = (np.array([each.label for each in data.examples]) for data in (learned, own))
    judges = Judges(own, load_table("minilm"), {"general-8": "8"})
    texts, taught = parts.list_texts(own), parts.list_texts(learned)
    clean = dict(judges.score(texts, labels, (taught, known), None))
    assert clean["words"].mean() > 0.95
    cut = [
        text.rpartition("\n\n")[0] for text in texts
    ]  # an option that a release lost is an empty one
    lost = dict(judges.score(cut, labels, (taught, known), None))["words"]
    assert lost[labels < 3].mean() > 0.95
    told = dict(judges.score(shouted(texts, "x"), labels, (taught, known), shouted(taught, "x")))
    assert told["adaptive words"].mean() > 0.95
    none = dict(
        judges.score(
            shouted(texts, "x"), labels, (taught, known), [FIELD_SEPARATOR.join("abcde")] * 80
        )
    )
    assert none["adaptive words"].mean() < 0.6, "it learned nothing of what answers a question"


def shouted(texts: Sequence[str], behind: str) -> list[str]:
    """Other words for the same, equal ones alike."""
    return [
        FIELD_SEPARATOR.join(
            re.sub(r"\b\w+", rf"\g<0>{behind}", part) for part in text.split(FIELD_SEPARATOR)
        )
        for text in texts
    ]


def test_questions_with_the_same_options_play_one_part_and_have_no_book_of_a_task():
    data = questions(20, 3)
    again = [replace(each, texts=("what else is it", *each.texts[1:])) for each in data.examples]
    assert len(parts._remove_repeats(replace(data, examples=(*data.examples, *again)))) == 20
    pairs = replace(data, kind="pairs", fields=("a", "b"), examples=tuple(
        Example(texts=(str(i), "the same"), label=0) for i in range(5)
    ))  # fmt: skip
    assert len(parts._remove_repeats(pairs)) == 5
    shelf = parts.TextParts(
        shelf=data, public=data, pool=data, tuned=data, judged=data, all_public=data
    )
    with pytest.raises(ConfigError, match="the labels of asked are letters of options"):
        parts.resolve_book("task-8", load_table("minilm"), shelf, Path("nowhere"))


# ---- the whole -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_kept_at_a_risk(rows):
    (choice,) = build_choices(rows)
    kept = {each.family: each for each in (*choice.baselines, *choice.family_scores)}
    assert kept["identity"].share.value == 1
    assert kept["mask"].share.value == 0
    assert abs(kept["uniform"].share.value) < 0.3
    assert kept["codes"].share.value > 0.6
    assert kept["codes"].statement == pytest.approx(
        {"kind": "ldp", "metric": None, "epsilon": 3.0, "local_dp": 3.0}
    )
    assert kept["codes"].top_1 is not None
    assert choice.texts == (80, 40)
    if "rankcape" in kept:
        assert choice.paper is kept["rankcape"]
        lead = choice.compute_lead(kept["codes"])
        assert lead is not None
        assert lead.value == pytest.approx(kept["codes"].share.value - choice.paper.share.value)
    else:
        assert "rankcape" in choice.missing
    printed = "\n".join(format_markdown([choice]))
    assert "| codes | **" in printed
    assert choice.to_json()["families"][0]["share"] == {"value": 1.0, "low": 1.0, "high": 1.0}


@pytest.mark.slow
def test_what_an_earlier_run_had_chosen_does_not_count(rows):
    """Cells of other budgets and of series that are no longer the best, judged by fewer judges."""
    codes = [row for row in rows if row["stage"] == "judged" and row["family"] == "codes"]
    older = [
        {**row, **other, "right": {}}
        for row in codes
        for other in ({"value": 2.5}, {"series": "codes, C 9"})
    ]
    (choice,), (same,) = build_choices(rows), build_choices([*rows, *older])
    assert same.to_json() == choice.to_json()


@pytest.mark.slow
def test_budgets_and_judges_come_from_the_texts_that_are_tuned_on(rows):
    (tuned,) = (row for row in rows if row["stage"] == "tuned" and row["series"] == "codes")
    ((level, budget, risk, right),) = tuned["levels"]
    assert (level, budget) == (0.3, 3.0)
    assert risk <= 0.3
    assert {len(bits) for bits in right.values()} == {60}
    judged = [row for row in rows if row["stage"] == "judged" and row["series"] == "codes"]
    assert {row["value"] for row in judged} == {3.0}
    assert {len(bits) for row in judged for bits in row["right"].values()} == {80}
    assert [row["risk"] is not None for row in judged] == [True, False]


@pytest.mark.slow
def test_a_mechanism_that_was_not_run_at_a_level_is_not_said_to_miss_it(rows):
    def at(row, level):
        found = {"asked": [level], "key": f"{row['key']} {level}"}
        if row["stage"] == "judged":
            return {**row, **found, "level": level}
        return {**row, **found, "levels": [[level, *rest] for _, *rest in row["levels"]]}

    more = [at(row, 0.5) for row in rows if row["family"] == "codes"]
    low, high = build_choices([*rows, *more])
    assert (low.level, high.level) == (0.3, 0.5)
    assert {each.family for each in low.family_scores} | set(low.missing) == {"codes", "rankcape"}
    assert {each.family for each in high.family_scores} == {"codes"}
    assert high.missing == {}


@pytest.mark.slow
def test_only_the_options_that_were_best_on_the_tuned_texts_are_shown(rows):
    """Others may have been judged before more options were tried; the judged texts choose nothing."""
    more = []
    for row in rows:
        if row["series"] == "codes" and row["stage"] == "judged":
            right = {name: "1" * len(bits) for name, bits in row["right"].items()}
            more.append(row | {"series": "codes, others", "right": right})
        if row["series"] == "codes" and row["stage"] == "tuned":
            ((level, budget, risk, right),) = row["levels"]
            wrong = {name: "0" * len(bits) for name, bits in right.items()}
            more.append(row | {"series": "codes, others", "levels": [[level, budget, risk, wrong]]})
    assert len(more) == 3
    (choice,) = build_choices([*rows, *more])
    assert [each.series for each in choice.family_scores if each.family == "codes"] == ["codes"]


@pytest.mark.slow
def test_one_budget_may_be_that_of_two_levels(comparison, folder, rows, tmp_path):
    """The codes have no more than 3 at either level, so that one cell is judged for both."""
    shutil.copytree(folder, tmp_path / "run")
    both = replace(comparison, levels=(0.3, 0.9)).select_part(["codes"])
    found = build_choices(run(both, tmp_path / "run", places=runs.Folders()))
    assert [choice.level for choice in found] == [0.3, 0.9]
    one, other = ([each.share.value for each in choice.family_scores] for choice in found)
    assert one == other
    assert len(one) == 1


@pytest.mark.slow
def test_each_level_has_a_row_and_a_budget_of_its_own(comparison, folder, rows, tmp_path):
    """A further level leaves what was computed for another as it is."""
    further = shutil.copytree(folder, tmp_path / "further")
    asked = replace(comparison, levels=(0.3, 0.5), entries=comparison.entries[1:])
    made = run(asked, further, places=runs.Folders())
    known = {row["key"] for row in rows}
    assert {
        tuple(row["asked"]) for row in made if row["key"] not in known and row["stage"] == "tuned"
    } == {(0.5,)}
    assert [choice.level for choice in build_choices(made)] == [0.3, 0.5]


@pytest.mark.slow
def test_nothing_is_computed_twice_and_a_line_that_was_cut_off_once_more(
    comparison, folder, rows, monkeypatch
):
    asked = []
    compute = jobs.compute

    def computed(job):
        asked.append(job)
        return compute(job)

    monkeypatch.setattr(jobs, "compute", computed)
    assert run(comparison, folder, places=runs.Folders()) == rows
    assert asked == []
    path = folder / jobs.ROWS_FILE
    path.write_text(path.read_text()[:-40])
    again = run(comparison, folder, places=runs.Folders())
    assert len(asked) == 1
    assert [row["right"] for row in again if row["stage"] == "judged"] == [
        row["right"] for row in rows if row["stage"] == "judged"
    ]
    assert len(read(folder)) == len(rows)
    assert len(list(format_costs(again))) == len(rows)


@pytest.mark.slow
def test_rows_of_fewer_judges_are_judged_by_the_others_and_not_attacked_again(
    comparison, folder, rows, tmp_path, monkeypatch
):
    def rights(row: dict) -> list[dict[str, str]]:
        return [right for *_, right in row["levels"]] if row["stage"] == "tuned" else [row["right"]]

    plain = [{**row, "judges": 1} for row in read(folder)]
    for row in plain:
        for right in rights(row):
            for name in [name for name in right if "counts" in name]:
                del right[name]
    (tmp_path / jobs.ROWS_FILE).write_text("".join(json.dumps(row) + "\n" for row in plain))
    monkeypatch.setattr(jobs, "measure_risk", None)
    again = run(comparison, tmp_path, places=runs.Folders())
    assert read(tmp_path) == again
    for row, before, other in zip(rows, plain, again, strict=True):
        assert row["key"] == other["key"]
        for all_, few, found in zip(rights(row), rights(before), rights(other), strict=True):
            assert found.keys() == all_.keys() > few.keys()
            assert found | few == found
            if row["family"] != "codes":  # there a draw depends on where the book lies
                assert found == all_
    size = (tmp_path / jobs.ROWS_FILE).stat().st_size
    assert run(comparison, tmp_path, places=runs.Folders()) == again
    assert (tmp_path / jobs.ROWS_FILE).stat().st_size == size


@pytest.mark.slow
def test_rows_show_no_text(folder, rows):
    content = (folder / jobs.ROWS_FILE).read_text()
    assert not any(word in content for word in ("harbour", "tractor", "orchard"))


def test_a_budget_that_is_fixed_is_refused(comparison, tmp_path):
    fixed = SweepEntry(name="fixed", set={"mechanism.name": "krr"}, budget={"epsilon": (3.0,)})
    with pytest.raises(ConfigError, match="equal risk"):
        run(replace(comparison, entries=(fixed,)), tmp_path, places=runs.Folders())


LEVELS = {
    **dict.fromkeys(("choose", "pairs", "answers", "tasks"), (0.1, 0.15)),
    "context": (0.1, 0.15),
    "data": (0.99,),
    "texts": (0.99,),
    "quick": (0.15,),
}


@pytest.mark.parametrize("name", LEVELS)
def test_the_packaged_comparisons_are_whole(name):
    found = Comparison.read(name)
    for data in found.data:
        assert data.name in SOURCES
        for each in found.list_series(data.row_name):
            assert each.is_searched or each.whose == "baseline"
            if "table.codes" not in each.settings:
                each.build_config(each.start)
    assert found.levels == LEVELS[name]


def test_a_comparison_has_all_kinds_of_entries_and_can_be_narrowed():
    found = Comparison.read("choose")
    assert {each.whose for each in found.list_series("ag_news")} == {"baseline", "paper", "ours"}
    assert [each.name for each in found.select_part(["ag_news", "rankcape"]).entries] == [
        "rankcape"
    ]
    assert found.select_part(["ag_news"], [0.2, 0.05]).levels == (0.05, 0.2)
    assert found.select_part(["ag_news"]).levels == found.levels
    with pytest.raises(ConfigError, match="less than 1"):
        found.select_part([], [1.5])
    with pytest.raises(UnknownName, match="comparison, as a file or in the package"):
        Comparison.read("nothing")


@pytest.mark.slow
def test_what_is_judged_is_attacked_once_more_with_all_public_texts(comparison, folder, rows):
    again = run(comparison, folder, places=runs.Folders(), all_public=True)
    found = [row for row in again if row["stage"] == "attacked"]
    judged = [row for row in rows if row["stage"] == "judged" and row["seed"] == 1 and row["risk"]]
    assert {row["series"] for row in found} == {row["series"] for row in judged}
    for row in found:
        (same,) = (
            each
            for each in judged
            if (each["series"], each["value"]) == (row["series"], row["value"])
        )
        assert row["all"]["words"] == row["risk"]["words"] == same["risk"]["words"]
        assert row["public"][0] > row["texts"]["public"][0] == 100
    job = jobs.ComparisonJob(
        comparison=comparison,
        series=next(
            each for each in comparison.list_series("own") if each.name == found[-1]["series"]
        ),
        folder=folder,
        places=runs.Folders(),
        budget=found[-1]["value"],
        seed=1,
        all_public=True,
    )
    both = jobs._attack_again(
        job,
        replace(held := jobs._load_cache(job), all_public_attacker=held.attacker),
        {"attack": 0.0},
    )
    assert both["risk"] == both["all"] == found[-1]["risk"], "both attack one release"
    lines = list(format_all_public(again))
    assert sum(line.startswith("| ") for line in lines) == len(found) + 1
    assert list(format_all_public(rows)) == []


@pytest.mark.slow
def test_whole_texts_stand_beside_words_with_the_unit_of_their_promise(
    comparison, folder, rows, tmp_path
):
    shutil.copytree(folder, tmp_path / "run")
    beside = replace(comparison, documents=(6.0,))
    found = run(beside, tmp_path / "run", places=runs.Folders())
    by_release = {(each["unit"], each["release"]): each for each in collect_units(found)}
    assert {unit for unit, _ in by_release} == {"", "word", "document"}
    assert {name for unit, name in by_release if unit == "document"} == {
        "texts in place",
        "votes",
        "one count, added or removed",
    }
    words, whole = by_release["word", "codes"], by_release["document", "texts in place"]
    assert words["epsilon"] == 3.0
    assert words["document"] > 6.0, "each word of a document loses 3"
    assert whole["document"] == whole["epsilon"] == 6.0
    assert whole["scores"]["read, words"]["value"] > 0.9
    assert by_release["", "majority"]["scores"]["trained, words"]["value"] < 0.7
    nothing = by_release["", "eps 0, labelled library"]
    assert nothing["document"] == 0.0
    assert nothing["scores"]["trained, words"]["value"] > 0.9
    assert by_release["", "eps 0, random public texts"]["scores"]["read, words"]["value"] < 0.7
    printed = "\n".join(format_units(found))
    assert "| texts in place | document | 6 | 6 |" in printed
    assert list(format_units(rows)) == []
    content = (tmp_path / "run" / jobs.ROWS_FILE).read_text()
    assert not any(word in content for word in ("harbour", "tractor", "orchard"))
    again = run(beside, tmp_path / "run", places=runs.Folders())
    assert again == found


def test_whole_texts_are_not_compared_on_questions_with_options():
    data = questions(20, 3)
    parts_of = parts.TextParts(
        shelf=data, public=data, pool=data, tuned=data, judged=data, all_public=data
    )
    with pytest.raises(ConfigError, match="asked has others"):
        parts.resolve_library(None, parts_of, Path("nowhere"))
