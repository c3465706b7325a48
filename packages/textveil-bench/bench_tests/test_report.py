"""The page: whole, self-contained, escaped; few curves a panel, one look a series; it says what rows say."""

import copy
import json
import re
from html.parser import HTMLParser

import pytest

from bench_tests import synthetic
from bench_tests.synthetic import Entry
from textveil_bench import pictures
from textveil_bench.compare import MetricKey, build_series
from textveil_bench.intervals import Interval
from textveil_bench.pictures import Map, Panel
from textveil_bench.report import build_report, curves, options, select_overview, tables
from textveil_bench.report.gallery import mark_changes
from textveil_bench.report.html import format_interval
from textveil_bench.report.study import Study

CANARY = "<script>alert(1)</script> & $x_1$ \"'"
SMALL = Entry(
    name="d-chi-stencil",
    path="mechanism.eta",
    budgets=(80, 120, 160),
    middle=110,
    grid={"mechanism.L": (1, 2, 3), "mechanism.sigma": (0.5, 1.0)},
    ldp=2.0,
)
EXPOSED = MetricKey("bayes", "exposed", (("prior", "unigram"),))


def made(**options):
    return build_series(json.loads(json.dumps(list(synthetic.rows(**options)))))


def study_of(**options):
    return Study(series=tuple(made(**options)))


def panels(study, *makers):
    return [panel for make in makers for group in make(study) for panel in group.panels]


def drawn(group) -> list[Panel]:
    assert all(isinstance(panel, Panel) for panel in group.panels)
    return list(group.panels)


CURVES = (curves.build_attack_groups, curves.build_budget_groups, curves.build_local_dp_groups)


class Page(HTMLParser):
    """What stands on a page: elements in order, texts, ids, references."""

    VOID = frozenset(("meta", "link", "br", "img", "input", "hr"))

    def __init__(self, content):
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.ids: list[str] = []
        self.refers: list[str] = []
        self.texts: list[str] = []
        self.captions: list[str] = []
        self.rows: list[list[str]] = []
        self.outside: list[str] = []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src") or "url(" in (value or ""):
                found = re.findall(r"#([\w-]+)", value or "")
                self.refers += found
                if not found:
                    self.outside.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)
        if {"th", "td"} & set(self.open) and self.rows:
            self.rows[-1][-1] += data


SHOWN = [
    {
        "data": "sst2",
        "entry": "cape",
        "series": "cape",
        "budget": {"path": "epsilon", "value": value},
        "original": f"Bob sold {CANARY} to the old queen.",
        "released": f"Tom sold {CANARY} to the <PERSON>.",
    }
    for value in (6.0, 14.0)
]


@pytest.fixture(scope="module")
def page():
    return build_report(made(entries=(*synthetic.ENTRIES, SMALL), data=("sst2",)), SHOWN)


@pytest.fixture(scope="module")
def parsed(page):
    found = Page(page)
    assert found.open == []
    return found


# ---- the page ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_is_whole_and_refers_to_itself_only(page, parsed):
    assert page.startswith("<!doctype html>")
    assert (
        len(parsed.ids) == len(set(parsed.ids)) > 20
    )  # matplotlib's own ids are the same in every figure
    assert set(parsed.refers) <= set(parsed.ids)
    assert parsed.outside == []
    assert not {"script", "link", "img", "iframe", "object"} & set(parsed.seen)
    assert "http" not in page
    assert "@import" not in page
    assert page.count("<style>") == 1  # those of figures would hold for the whole page


def test_figures_take_on_the_colours_of_the_page(page, parsed):
    assert parsed.seen.count("figure") > 10
    assert 'style="fill: currentColor' in page or "fill: currentColor" in page
    assert "#1a1a1a" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert "prefers-color-scheme: dark" in page
    assert "font-family" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"<svg[^>]* width=", page)  # they are as wide as their place


def test_the_head_says_what_was_run(page, parsed):
    said = " ".join(parsed.texts)
    for fact in (
        "made-up",
        "60 texts",
        "sst2/test.tsv",
        "seeds 1, 2, 3",
        "textveil 0.1.0",
        "Python 3.11.7",
        "0123456789",
    ):
        assert fact in said, fact
    assert "2026-11-20 10:00" in said
    assert "the mechanism mixes no neighbours" in said  # what was not run, and why
    assert "<h1>Usefulness and risk: made-up</h1>" in page


def test_every_section_of_the_contents_is_there(parsed):
    headings = [text for text in parsed.texts if text in {
        "Usefulness against attacks", "At equal risk", "Usefulness against the budget", "Usefulness against local DP",
        "Effect of options", "Pairs of options", "Odd and even windows", "All cells", "Measures", "By text length",
        "Statements", "Not run", "Time", "Texts before and after",
    }]  # fmt: skip
    assert len(headings) == 28  # each in the contents, and as a heading


def test_tables_say_what_rows_say(parsed):
    study = study_of(entries=(*synthetic.ENTRIES, SMALL), data=("sst2",))
    (data,) = study.data
    (figure,) = study.list_utility_metrics(data)
    noise = study.find_series("noise", data)
    assert noise is not None
    lines = [row for row in parsed.rows if row[:1] == ["noise"]]
    at = noise.estimate_at_risk(EXPOSED, figure, 0.1)
    assert at is not None
    ends = at.interval
    assert any(f"{ends.value:.3f} {ends.low:.3f} to {ends.high:.3f}" in row for row in lines)
    cell = noise.cells[1].estimates[figure].interval
    assert any(f"{cell.value:.3f} {cell.low:.3f} to {cell.high:.3f}" in row for row in lines)
    assert any(row[1:] == ["sst2", "eta 80", "metric", "chord", "80.00", "160.00"] for row in lines)
    assert any("1.5" in row and "20.0" in row and "2.5" in row for row in lines)  # seconds
    quarters = dict(study.find_nearest_cell(noise).slices[figure])
    first = next(iter(quarters.values())).interval
    assert any(f"{first.value:.3f} {first.low:.3f} to {first.high:.3f}" in row for row in lines)


@pytest.mark.slow
def test_every_text_is_escaped():
    text = json.dumps(
        list(synthetic.rows(entries=synthetic.ENTRIES[:2], data=("squad",), texts=20, seeds=(1,)))
    )
    for name in (
        "noise",
        "squad",
        "exposed",
        "made-up",
        "reader",
        "x86_64",
        "chord",
        "test",
        "answers are silver",
    ):
        text = text.replace(f'"{name}"', json.dumps(name + CANARY))
    text = text.replace("mixes no", json.dumps(CANARY)[1:-1])
    hostile = json.loads(text)
    shown = [{**each, "data": "squad" + CANARY, "series": CANARY} for each in SHOWN]
    content = build_report(build_series(hostile), shown, title=CANARY)
    found = Page(content)
    assert found.open == []
    assert "script" not in found.seen
    assert content.count("&lt;script&gt;alert(1)") > 50
    assert "$x_1$" in "".join(found.texts)  # and no formula


# ---- panels --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_panels_have_eight_curves_at_most_and_no_two_of_one_look():
    study = study_of(
        entries=(*synthetic.ENTRIES, *synthetic.MANY, synthetic.GRID), texts=20, seeds=(1,)
    )
    found = panels(study, *CURVES, options.build_option_groups, options.build_parity_groups)
    assert max(len(panel.curves) for panel in found) == pictures.MAX_CURVES
    for panel in found:
        looks = {(curve.look.colour, curve.look.marker) for curve in panel.curves}
        assert len(looks) == len({curve.look.colour for curve in panel.curves}) == len(panel.curves)
    # all series are in some panel
    names = {
        curve.name for panel in panels(study, curves.build_attack_groups) for curve in panel.curves
    }
    assert names == {each.name for each in study.series if each.whose != "baseline"}
    assert len(names) == 5 + 1 + 9 + 28


@pytest.mark.slow
def test_a_series_has_one_look_everywhere():
    study = study_of(
        entries=(*synthetic.ENTRIES, *synthetic.MANY, synthetic.GRID), texts=20, seeds=(1,)
    )
    looks: dict[str, set[pictures.Look]] = {}
    for panel in panels(study, *CURVES):
        for curve in panel.curves:
            looks.setdefault(curve.name, set()).add(curve.look)
    assert all(len(found) == 1 for found in looks.values())
    best = [next(iter(looks[name])) for name in study.best.values()]
    assert len(set(best)) == len(best) == 15


def test_where_there_are_many_the_best_of_a_paper_is_in_every_panel():
    study = study_of(entries=(*synthetic.ENTRIES, *synthetic.MANY), data=("sst2",), texts=60)
    assert len(study.overview) == 2
    assert study.reference in ("noise", "santext+", "custext+", "cape")
    assert all(names[0] == study.reference for names in study.overview)
    assert {name for names in study.overview for name in names} == set(study.best.values())


def test_notes_say_of_whom_they_are_true_and_what_is_nowhere_is_named():
    rows = list(synthetic.rows(entries=synthetic.ENTRIES, data=("sst2",)))
    wide = next(row["entry"] for row in rows if row["whose"] == "ours")
    for row in rows:
        for score in row["scores"]:
            if score["metric"] == EXPOSED.metric:
                score["note"] = "estimated" if row["entry"] == wide else "exact"
    study = Study(series=tuple(build_series(rows)))
    notes = study.list_notes(
        next(metric for metric in study.risks if metric.metric == EXPOSED.metric)
    )
    others = {row["entry"] for row in rows if row["whose"] != "baseline"} - {wide}
    assert f"estimated ({wide})" in notes
    assert any(
        note.startswith("exact (") and all(name in note for name in others) for note in notes
    )


def test_series_that_reach_no_level_are_named_with_what_they_reach():
    rows = list(synthetic.rows(entries=synthetic.ENTRIES, data=("sst2",)))
    for row in rows:
        for score in row["scores"] if row["entry"] == "noise" else ():
            if score["metric"] == EXPOSED.metric:
                score["values"] = [0.9] * len(score["values"])
    page = tables.render_equal_risk(Study(series=tuple(build_series(rows))))
    assert "Never at these risks: noise (0.900)." in page


def test_all_options_come_first_where_there_is_one_mechanism():
    study = Study(series=tuple(made(entries=(SMALL,), data=("sst2",))))
    assert next(curves.build_attack_groups(study)).title.startswith("d-chi-stencil: all options")
    assert select_overview(study.series) == (next(curves.build_attack_groups(study)),)


def test_what_is_compared_by_can_be_asked_for():
    study = Study(series=tuple(build_series(synthetic.rows(data=("sst2",)))))
    other = study.risks[-1]
    assert study.risk != other
    assert Study(series=study.series, preferred_risk=other).risk == other
    assert set(Study(series=study.series, preferred_risk=other).risks) == set(study.risks)


def test_a_trade_off_has_the_corner_the_baselines_and_both_intervals():
    study = study_of(data=("sst2",))
    together, options_inside = curves.build_attack_groups(study)
    assert (together.title, options_inside.title) == (
        "Against each attack",
        f"wide staircase: all options, against {EXPOSED.title}",
    )
    panel, *others = drawn(together)
    assert [each.x.partition(",")[0] for each in others] == [
        "attack: neighbour Pr@5",
        "attack: masked Rouge-L",
    ]
    assert others[0].title == "sst2: head accuracy, against neighbour Pr@5"
    assert together.text == "bayes exposed (unigram), masked Rouge-L: a lower bound."
    assert (panel.corner, panel.zero) == (True, True)
    assert panel.x == "attack: bayes exposed (unigram), mean over words"
    assert panel.y == "head accuracy, mean over texts"
    assert [mark.name for mark in panel.marks] == ["identity", "mask", "uniform"]
    assert panel.marks[0].x is None  # everything is known there: far to the right
    assert panel.marks[1].x is not None
    noise = study.find_series("noise", study.data[0])
    assert noise is not None
    (curve,) = [each for each in panel.curves if each.name == "noise"]
    expected = noise.cells[0].estimates
    assert curve.points[0].x == expected[EXPOSED].interval
    assert curve.points[0].y == expected[MetricKey("head", "accuracy")].interval
    assert len(curve.points) == 5


def test_a_baseline_has_one_dash_whatever_its_order_in_a_data_set():
    found = list(build_series(synthetic.rows(entries=synthetic.ENTRIES[:1], texts=20, seeds=(1,))))
    first, second = dict.fromkeys(each.data for each in found)
    turned = [each for each in found if each.data == first] + [
        each for each in reversed(found) if each.data == second
    ]
    study = Study(series=tuple(turned))
    order = [[each.name for each in study.select_baselines(data)] for data in (first, second)]
    assert order[0] == order[1][::-1]
    shown = [
        {(mark.name, mark.dash) for mark in panel.marks}
        for panel in panels(study, curves.build_attack_groups)
    ]
    assert all(len(marks) == 3 for marks in shown)
    assert all(marks == shown[0] for marks in shown)
    assert len({dash for _, dash in shown[0]}) == 3


def test_with_several_data_sets_an_attack_has_a_panel_for_each():
    study = study_of(entries=synthetic.ENTRIES[:2], texts=20, seeds=(1,))
    titles = [group.title for group in curves.build_attack_groups(study)]
    assert titles == [f"Against {risk.title}" for risk in study.risks]
    assert [panel.title for panel in panels(study, curves.build_attack_groups)] == 3 * [
        "sst2: head accuracy",
        "squad: reader F1",
    ]


def test_budgets_of_one_name_stand_together_and_local_dp_where_there_is_one():
    study = study_of(data=("sst2",))
    epsilon, eta = sorted(
        (group for group in curves.build_budget_groups(study)), key=lambda group: group.title
    )
    assert {curve.name for curve in drawn(eta)[0].curves} == {"noise"}
    assert [point.x.value for point in drawn(eta)[0].curves[0].points] == [40, 60, 80, 120, 160]
    assert "epsilon per word" in epsilon.panels[0].x
    (local,) = panels(study, curves.build_local_dp_groups)
    assert {curve.name.partition(",")[0] for curve in local.curves} == {
        "noise",
        "cape",
        "wide staircase",
    }


@pytest.mark.slow
def test_a_metric_stands_over_budgets_of_all_names():
    study = study_of(data=("sst2",), entries=synthetic.ENTRIES[:3], texts=20, seeds=(1,))
    accuracy = study.list_utility_metrics(study.data[0])[0]
    (group,) = curves.build_paper_groups(study, [EXPOSED, accuracy])
    exposed, useful = drawn(group)
    assert exposed.x == useful.x == "budget: mechanism.eta or epsilon"
    assert (exposed.y, exposed.corner) == ("bayes exposed (unigram), mean over words", False)
    (curve,) = [each for each in exposed.curves if each.name == "noise"]
    noise = study.find_series("noise", study.data[0])
    assert noise is not None
    assert [(point.x.value, point.y) for point in curve.points] == [
        (cell.budget, cell.estimates[EXPOSED].interval) for cell in noise.cells
    ]
    assert "labels" in group.text
    assert select_overview(study.series, budget_metrics=[EXPOSED, accuracy]) == (group,)
    assert select_overview(
        study.series, budget_metrics=[MetricKey("nobody", "nothing")]
    ) == select_overview(study.series), "it gives way"

    several = study_of(entries=synthetic.ENTRIES[:3], texts=20, seeds=(1,))
    groups = list(curves.build_paper_groups(several, [EXPOSED, accuracy]))
    assert [len(group.panels) for group in groups] == [2, 1], (
        "a panel for each data set that has the metric"
    )
    page = build_report(several.series, budget_metrics=[EXPOSED])
    assert page.index(">Over the budget</h2>") < page.index(">Usefulness against attacks</h2>")
    assert ">Over the budget</h2>" not in build_report(
        several.series, budget_metrics=[MetricKey("nobody", "nothing")]
    )


def test_options_are_studied_one_at_a_time_and_in_pairs():
    study = study_of(entries=(synthetic.GRID,), data=("sst2",), texts=20, seeds=(1,))
    groups = {group.title: group for group in options.build_option_groups(study)}
    assert list(groups) == ["d-chi-stencil: mechanism.L", "d-chi-stencil: mechanism.sigma"]
    (base,) = study.best.values()
    sigma = base.rpartition(" ")[2]
    lengths = groups["d-chi-stencil: mechanism.L"]
    assert lengths.text == f"At mechanism.sigma {sigma}."
    assert [curve.name for curve in drawn(lengths)[0].curves] == [
        "eta 80",
        "eta 120",
        "eta 160",
        "eta 240",
    ]
    assert [point.x.value for point in drawn(lengths)[0].curves[0].points] == [1, 2, 3, 4, 5, 8, 9]
    maps = panels(study, options.build_pair_groups)
    assert [each.title for each in maps] == 2 * ["eta 80", "eta 120", "eta 160", "eta 240"]
    assert (maps[0].rows, maps[0].columns) == (
        ("1", "2", "3", "4", "5", "8", "9"),
        ("0.5", "0.75", "1.0", "1.25"),
    )
    one = study.find_series("d-chi-stencil, L 5, sigma 0.75", study.data[0])
    assert one is not None
    assert maps[2].cells[4][1] == one.cells[2].estimates[MetricKey("head", "accuracy")].value
    assert len({(each.low, each.high) for each in maps[:4]}) == 1  # one scale


@pytest.mark.slow
def test_odd_and_even_windows_at_equal_risk():
    study = study_of(entries=(synthetic.GRID,), data=("sst2",), texts=400)
    (group,) = options.build_parity_groups(study)
    odd, even = drawn(group)[1].curves
    assert [point.x.value for point in odd.points] == [1, 3, 5, 9]
    assert [point.x.value for point in even.points] == [2, 4, 8]
    assert even.look.hollow
    found = re.search(r"sst2 at 0\.1: ([+-]\d\.\d+) \(([+-]\d\.\d+) to ([+-]\d\.\d+)\)", group.text)
    assert found
    value, low, high = map(float, found.groups())
    assert low < value < high
    assert value > 0  # as the rows were made


def test_options_that_are_no_numbers_stand_side_by_side():
    entry = Entry(name="noises", grid={"mechanism.noise": ("vmf", "laplace")}, budgets=(6.0, 9.0))
    study = study_of(entries=(entry,), data=("sst2",), texts=20, seeds=(1,))
    (group,) = options.build_option_groups(study)
    assert drawn(group)[0].ticks == ("laplace", "vmf")
    assert [point.x.value for point in drawn(group)[0].curves[0].points] == [0, 1]
    assert list(options.build_pair_groups(study)) == []


def test_options_that_are_lists_stand_side_by_side():
    budgets = ([0, 0, 2, 0], [0, 0, 1, 0])
    grid = {"groups.budgets": budgets, "protect.detectors": ([], ["names"]), "mechanism.k": (3, 4)}
    entry = Entry(name="lists", grid=grid, budgets=(6.0, 9.0))
    study = study_of(entries=(entry,), data=("sst2",), texts=20, seeds=(1,))
    ticks = {group.title: drawn(group)[0].ticks for group in options.build_option_groups(study)}
    assert ticks == {
        "lists: mechanism.groups.budgets": ("[0, 0, 1, 0]", "[0, 0, 2, 0]"),
        "lists: mechanism.protect.detectors": ("['names']", "[]"),
        "lists: mechanism.k": (),
    }
    assert build_report(study.series)


# ---- rows that lack something --------------------------------------------------------------------------


def without(rows, *sources):
    return [
        {**row, "scores": [each for each in row["scores"] if each["source"] not in sources]}
        for row in rows
    ]


def test_without_attacks_the_page_says_so():
    rows = without(
        list(synthetic.rows(entries=synthetic.ENTRIES[:1], data=("sst2",), texts=20)),
        "bayes",
        "neighbour",
        "masked",
    )
    content = build_report(build_series(rows))
    assert "No attack was run" in content
    assert "Usefulness against attacks</h2>" not in content
    assert "Usefulness against the budget</h2>" in content


def test_without_a_task_nearness_in_meaning_stands_for_it():
    rows = without(list(synthetic.rows(data=("sst2",), texts=20, seeds=(1,))), "head")
    study = Study(series=tuple(build_series(rows)))
    assert [figure.source for figure in study.list_utility_metrics(study.data[0])] == ["meaning"]
    assert panels(study, curves.build_attack_groups)


def test_a_task_that_tells_nothing_is_marked():
    rows = copy.deepcopy(
        list(synthetic.rows(entries=synthetic.ENTRIES[:1], data=("sst2",), texts=20))
    )
    for row in rows:
        row["scores"][0]["baseline"] = 0.9
    assert "so this task cannot compare mechanisms" in build_report(build_series(rows))


def test_a_mechanism_without_a_budget_is_a_point():
    entry = Entry(name="stencil", path=None, budgets=(1.0,))
    study = study_of(entries=(entry, *synthetic.ENTRIES[:1]), data=("sst2",), texts=20, seeds=(1,))
    panel = panels(study, curves.build_attack_groups)[0]
    assert {curve.name: len(curve.points) for curve in panel.curves} == {"stencil": 1, "noise": 5}
    assert all(
        curve.name != "stencil"
        for panel in panels(study, curves.build_budget_groups)
        for curve in panel.curves
    )


def test_two_data_sets_of_one_name_are_told_apart():
    rows = [
        *synthetic.rows(data=("sst2",), texts=20, seeds=(1,)),
        *synthetic.rows(data=("sst2",), texts=30, seeds=(1,)),
    ]
    for row in rows:
        row["data"]["digest"] = {"sst2-20": "aaaaaaaa", "sst2-30": "bbbbbbbb"}[
            row["data"]["digest"]
        ]
    study = Study(series=tuple(build_series(rows)))
    assert [study.format_title(data) for data in study.data] == ["sst2 (aaaaaa)", "sst2 (bbbbbb)"]


@pytest.mark.slow
def test_figures_as_files(tmp_path):
    told = []
    found = made(entries=synthetic.ENTRIES[:1], data=("sst2",), texts=20, seeds=(1,))
    build_report(
        found, figures=tmp_path, progress=lambda step, done, total: told.append((step, done, total))
    )
    names = sorted(path.name for path in tmp_path.iterdir())
    count = len(names) // 3
    first = "001-against-each-attack-sst2-head-accuracy-against-bayes-exposed-unigram"
    assert names[:3] == [f"{first}.csv", f"{first}.png", f"{first}.svg"]
    assert told == [("figures", i, count) for i in range(1, count + 1)]
    assert (tmp_path / names[1]).read_bytes().startswith(b"\x89PNG")


# ---- pieces --------------------------------------------------------------------------------------------


def test_words_that_changed_are_marked_and_others_are_not():
    found = mark_changes("The <b>old</b> man & Anna Lee", "the <b>new</b> man & <PERSON> Lee")
    assert (
        found == "the &lt;b&gt;<mark>new</mark>&lt;/b&gt; man &amp; <mark>&lt;PERSON&gt;</mark> Lee"
    )
    assert mark_changes("one two", "") == ""


def test_the_gallery_shows_first_what_is_near_the_reference_risk(page):
    section = page[page.index('id="texts-before-and-after"') :]
    assert section.count("<dt>") == 2
    first, _, rest = section.partition("<details>")
    assert "cape, epsilon 6<" in first
    assert "cape, epsilon 14<" in rest


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(value=0.5, low=0.4, high=0.6), "0.500 <small>0.400 to 0.600</small>"),
        (Interval(value=120.25, low=100, high=140.5), "120.2 <small>100.0 to 140.5</small>"),
        (Interval(value=1.0, low=1.0, high=1.0), "1.000"),
        (Interval(value=2.0, low=1.0, high=float("inf")), "2.000 <small>1.000 to ?</small>"),
        (Interval(value=2.0, low=float("-inf"), high=float("inf")), "2.000"),
        (Interval(value=float("inf"), low=1.0, high=2.0), "–"),
        (None, "–"),
    ],
)
def test_values_with_their_intervals(interval, expected):
    assert format_interval(interval) == expected


def test_panels_and_maps_are_what_groups_have():
    study = study_of(entries=(SMALL,), data=("sst2",), texts=20, seeds=(1,))
    assert all(
        isinstance(each, Panel)
        for each in panels(study, *CURVES, options.build_option_groups, options.build_parity_groups)
    )
    assert all(isinstance(each, Map) for each in panels(study, options.build_pair_groups))
