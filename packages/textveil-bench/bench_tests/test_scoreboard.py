"""All tools are judged by one scorer, whatever process they ran in."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from training.labels import Label, Labelled

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
scoreboard, peers, outside, page = (
    import_module(name) for name in ("scoreboard", "peers", "outside", "scoreboard_page")
)

TEXT = "Ask Anna Holm in Oslo."
NOTE = Labelled("a", "en", "note", TEXT, [Label(4, 13, "PERSON", "private")], "measure")
GIVEN = [scoreboard.Text("hard", "en", NOTE)]
WHOLE = {"versions": {"x": "1"}, "megabytes": 1.0, "memory": 2.0, "start": 0.5}


def line(*spans, restored=None):
    return {"spans": spans, "restored": restored, "seconds": 0.5}


def rates(*lines, tool="x", given=GIVEN):
    rows = scoreboard.measured(tool, given, lines, WHOLE)
    return {row["metric"]: row["value"] for row in rows}


def test_places_that_overlap_are_one():
    found = scoreboard.outcome(TEXT, [(9, 13, "<B>"), (4, 13, "<A>"), (17, 21, "O-1")])
    assert found.text == "Ask <A> in O-1."
    assert [each.placeholder for each in found.changes] == [True, False]


def test_a_tool_is_judged_by_the_labels():
    found = rates(line((4, 13, "<PERSON>")))
    assert found["private spans gone"] == found["private spans gone, PERSON"] == 1
    assert found["ordinary words altered"] == 0
    assert found["words a second, hard"] == 10
    found = rates(line((17, 21, "<GPE>")))
    assert found["private spans gone"] == found["texts with no private span left"] == 0
    assert found["ordinary words altered"] == pytest.approx(1 / 3)


def test_half_a_name_is_gone_but_something_telling_is_left():
    found = rates(line((4, 8, "<PERSON>")))
    assert found["private spans gone"] == 1
    assert found["private spans with nothing telling left at their place"] == 0


def test_what_a_mask_still_shows_is_not_gone():
    assert rates(line((4, 13, "Anna Holm?")))["private spans gone"] == 0


def test_restoring_is_a_rate_only_of_tools_that_restore():
    assert "texts exactly restored" not in rates(line())
    assert rates(line(restored=False))["texts exactly restored"] == 0
    assert rates(line(restored=True))["texts exactly restored"] == 1


def test_polish_labels_see_every_type_of_a_place():
    document = outside.Document("Jan Lis", "core", [(0, 7, "PERSON")])
    given = [scoreboard.Text("pl_pii_bench", "pl", document)]
    found = rates(line((0, 7, "<NRP>"), (0, 7, "<PERSON>")), given=given)
    assert found["core: found with their label"] == 1
    assert found["core: false alarms"] == 0


def test_tools_are_asked_only_in_languages_that_they_know():
    given = [scoreboard.Text("meddocan", "es", NOTE), scoreboard.Text("hard", "es", NOTE)]
    assert len(scoreboard.asked("presidio, every country", given)) == 2
    assert len(scoreboard.asked("datafog", given)) == 1


def test_written_texts_that_measure_are_read_and_named_by_language():
    found = scoreboard.texts(["hard", "tab"], None, 6)
    assert len(found) == 6
    assert {each.corpus for each in found} == {"hard"}
    assert all(len(each.language) == 2 and each.text.use == "measure" for each in found)


def test_a_process_of_its_own_says_what_textveil_hides_and_brings_back():
    text = "Write to anna.holm@example.org, my name is Anna Holm."
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "peers.py", "textveil"],
        input=json.dumps({"language": "en", "text": text}) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    found, whole = map(json.loads, done.stdout.splitlines())
    assert {text[start:end] for start, end, _ in found["spans"]} == {
        "anna.holm@example.org",
        "Anna Holm",
    }
    assert found["restored"] is True
    assert whole["megabytes"] > 10
    assert whole["memory"] > 50


def test_the_size_of_a_package_has_what_it_needs_in_it():
    needed = peers.installed(["presidio_analyzer"])
    assert {"presidio-analyzer", "pyyaml"} <= needed.keys()
    assert peers.installed(["no-such-package-here"]) == {}
    assert peers.megabytes(["presidio-analyzer"]) > peers.megabytes(["pyyaml"]) > 0


def test_tables_have_a_line_for_each_tool_and_published_ones_stand_apart(monkeypatch):
    shared = {"tool": {"x": "1"}, "limit": None}
    own = scoreboard.measured("x", GIVEN, [line((4, 13, "<PERSON>"), restored=True)], WHOLE)
    other = scoreboard.measured("y", GIVEN, [line()], WHOLE)
    rows = tuple({**row, **shared} for row in (*own, *other))
    given = {"corpus": "pl_pii_bench", "unit": "share", "value": 0.5, "published": "p"}
    rows += ({**given, "release": "z", "metric": "core: found with their label"},)
    monkeypatch.setattr(page, "stored", lambda: rows)
    head, _, first, second = page.rates("hard").splitlines()
    assert head == (
        "| tool | private spans hidden, n=1 | nothing telling left, n=1 | persons hidden, n=1 | texts clean, n=1 "
        "| ordinary words altered, n=3 |"
    )
    assert first.startswith("| x | 1.000 (")
    assert second.startswith("| y | 0.000 (")
    assert page.rates("polish").count("\n") == 1
    assert page.rates("polish", published=True).endswith("| z | 0.500 |")
    assert page.cost().splitlines()[-1].endswith("| does not restore |")
    assert page.read() == "Texts: hard 1. Versions: x 1."
    assert len(page.elsewhere().splitlines()) == 2 + len(page.PUBLISHED)
