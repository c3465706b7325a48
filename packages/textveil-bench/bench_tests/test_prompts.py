"""What becomes of prompts is judged by the labels: each rule on a text where it decides."""

import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from training.labels import Label, marked_texts

from textveil.text import Item, Kind

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
prompts, readers, page = (import_module(name) for name in ("prompts", "readers", "prompts_page"))


def labelled(marked, language="en", kind="note"):
    (found,) = marked_texts(f"=== a {kind}\n{marked}\n", language)
    return found


def judged(marked, *hidden, show="<X>", placeholder=True):
    """The score of a text in which every place of these expressions became a placeholder, or something else."""
    text = labelled(marked)
    places = sorted(
        match.span(match.lastindex or 0)
        for each in hidden
        for match in re.finditer(each, text.text)
    )
    changes = [prompts.Change(start, end, show, placeholder) for start, end in places]
    return prompts.score(text, prompts.Outcome(prompts.spelled(text.text, changes), changes))


def gone(score):
    return [fate.gone for fate in score.fates if fate.label.standing == "private"]


ANNA = "⟦Anna|PERSON|private⟧"

# ---- gone ----------------------------------------------------------------------------------------------------------


def test_a_span_is_gone_when_its_text_no_longer_stands_in_the_release():
    assert gone(judged(f"Ask {ANNA}.")) == [False]
    assert gone(judged(f"Ask {ANNA}.", "Anna")) == [True]


def test_it_is_not_gone_where_one_mention_is_left():
    assert gone(judged(f"Ask {ANNA}. {ANNA} knows.", "^Ask (Anna)")) == [False, False]


def test_case_does_not_matter():
    assert gone(judged(f"Ask {ANNA}. ⟦ANNA|PERSON|private⟧ knows.", "Anna")) == [False, False]
    assert gone(judged("⟦Straße|LOCATION|private⟧ ⟦STRASSE|LOCATION|private⟧", "Straße")) == [
        False,
        False,
    ]


def test_only_whole_words_count():
    assert gone(judged(f"Ask {ANNA} for ⟦Annabel|PERSON|private⟧.", r"Anna\b")) == [True, False]
    assert gone(judged(f"Ask {ANNA} for ⟦Joanna|PERSON|private⟧.", r"Anna\b")) == [True, False]


def test_an_underscore_ends_a_word():
    assert gone(judged(f"Ask {ANNA}, see ⟦anna_b|HANDLE|private⟧.", "Anna")) == [False, False]


def test_vowel_signs_belong_to_words():
    assert gone(judged("⟦राम|PERSON|private⟧ ⟦रामा|PERSON|private⟧", "राम(?= )")) == [True, False]


def test_whitespace_within_a_span_may_differ():
    assert gone(judged("⟦Anna Holm|PERSON|private⟧\n⟦Anna\nHolm|PERSON|private⟧", "Anna Holm")) == [
        False,
        False,
    ]


def test_it_may_stand_as_often_as_outside_of_private_spans():
    text = "⟦Mark|PERSON|private⟧ gave a mark."
    assert gone(judged(text, "Mark")) == [True]
    assert gone(judged("⟦Mark|PERSON|private⟧ ⟦Mark|PERSON|private⟧ gave a mark.", "^Mark")) == [
        False,
        False,
    ]


def test_it_is_not_gone_where_an_ordinary_use_was_hidden_in_its_stead():
    assert gone(judged("⟦Mark|PERSON|private⟧ gave a mark.", "mark")) == [False]


def test_a_mention_in_a_longer_private_span_is_no_ordinary_use():
    text = f"{ANNA}: ⟦anna@x.example|EMAIL|private⟧"
    assert gone(judged(text, "^Anna")) == [False, False]
    assert gone(judged(text, "^Anna", "anna@x.example")) == [True, True]


def test_chinese_counts_by_characters():
    assert gone(judged("⟦王芳|PERSON|private⟧说。⟦王芳|PERSON|private⟧的书", "^王芳")) == [
        False,
        False,
    ]
    assert gone(judged("⟦王芳|PERSON|private⟧说。⟦王芳|PERSON|private⟧的书", "王芳")) == [
        True,
        True,
    ]
    assert gone(judged("⟦林|PERSON|private⟧在森林", "^林")) == [True], "the forest may stay"


def test_a_korean_particle_does_not_hide_a_name():
    assert gone(judged("⟦민수|PERSON|private⟧가 왔다", "없다")) == [False]


def test_a_span_within_a_word_is_looked_for_within_words():
    assert gone(judged("و⟦أحمد|PERSON|private⟧ وأحمد", "^و(أحمد)")) == [True], (
        "as often as it stands unlabelled"
    )
    assert gone(judged("و⟦أحمد|PERSON|private⟧ و⟦أحمد|PERSON|private⟧", "^و(أحمد)")) == [
        False,
        False,
    ]
    assert gone(judged("⟦anna|PERSON|private⟧99 ⟦anna|PERSON|private⟧7", "^anna")) == [False, False]


def test_another_name_in_its_place_counts_as_gone_and_the_same_name_does_not():
    assert gone(judged(f"Ask {ANNA}.", "Anna", show="Olga", placeholder=False)) == [True]
    text = labelled(f"Ask {ANNA} and ⟦Bo|PERSON|private⟧.")
    changes = [prompts.Change(4, 8, "<X>", True), prompts.Change(13, 15, "Anna", False)]
    outcome = prompts.Outcome(prompts.spelled(text.text, changes), changes)
    assert outcome.text == "Ask <X> and Anna."
    assert gone(prompts.score(text, outcome)) == [False, True]


def test_what_a_placeholder_spells_is_no_leak():
    assert gone(judged("My ⟦id|HANDLE|private⟧", "id", show="<ID_1>")) == [True]


# ---- telling parts ---------------------------------------------------------------------------------------------------


def statement_form(marked, *hidden):
    (fate,) = judged(marked, *hidden).fates
    return fate.statement_form


def test_a_name_that_is_left_of_a_longer_one_tells():
    assert statement_form("⟦Anna Holm|PERSON|private⟧", "Anna")
    assert not statement_form("⟦Anna Holm|PERSON|private⟧", "Anna Holm")


@pytest.mark.parametrize(
    ("marked", "hidden"),
    [
        ("⟦Mrs Holm|PERSON|private⟧", "Holm"),
        ("⟦Bank of Holm|ORGANIZATION|private⟧", "Bank|Holm"),
        ("⟦+49 151 2345678|PHONE|private⟧", "151 2345678"),
        ("⟦K. Holm|PERSON|private⟧", "Holm"),
    ],
)
def test_titles_small_words_short_figures_and_single_letters_do_not_tell(marked, hidden):
    assert not statement_form(marked, hidden)


def test_longer_figures_and_single_chinese_characters_tell():
    assert statement_form("⟦+49 151 2345678|PHONE|private⟧", r"\+49 151")
    assert statement_form("⟦王芳|PERSON|private⟧", "芳")


def test_a_part_elsewhere_does_not_count():
    score = judged("⟦Anna Holm|PERSON|private⟧ in Holm", "Anna Holm")
    assert not score.fates[0].statement_form


# ---- altered ---------------------------------------------------------------------------------------------------------


def outcome(marked, released):
    return prompts.score(labelled(marked), prompts.Outcome(released, []))


def test_whitespace_alone_is_no_alteration():
    assert not outcome("What is\n\n it?", "What is it? ").altered
    assert outcome("What is it?", "What was it?").altered


def test_any_altered_character_alters_a_span():
    score = judged("Is ⟦New York|LOCATION|public⟧ in ⟦Italy|LOCATION|public⟧?", "York")
    assert [fate.altered for fate in score.fates] == [True, False]


def test_ordinary_words_are_those_outside_of_all_labels():
    score = judged(
        f"Ask {ANNA} in ⟦Rome|LOCATION|public⟧ about 3 cups, 东西", "Ask", "Rome", "Anna", "西"
    )
    assert score.words == 7, "Ask in about 3 cups 东 西"
    assert [score.labelled.text[start:end] for start, end in score.altered_words] == ["Ask", "西"]


def test_a_part_of_a_word_alters_it():
    assert len(judged("Take notes", "no").altered_words) == 1


def test_a_word_that_a_label_touches_is_not_ordinary():
    assert judged("⟦Anna|PERSON|private⟧s Buch").words == 1


# ---- which texts and spans a rate is about ---------------------------------------------------------------------------


def metrics(marked, *hidden):
    found: dict[str, list[bool]] = {}
    for metric, value in prompts.judged(judged(marked, *hidden)):
        found.setdefault(metric, []).append(value)
    return found


def test_texts_are_kept_apart_by_what_they_hold():
    altered = "texts without anything private altered"
    for marked, suffix in (
        ("Who is ⟦Kant|PERSON|public⟧?", ""),
        (
            "⟦Tom|PERSON|invented⟧ has two apples, says ⟦Bo|PERSON|borderline⟧",
            ", with invented persons",
        ),
        ("A poem for ⟦Tom|PERSON|borderline⟧", ", with borderline cases"),
    ):
        found = metrics(marked, "apples|Who|poem")
        assert [metric for metric in found if metric.startswith(altered)] == [altered + suffix]
        assert found[altered + suffix] == [True]
        assert "texts with no private span left" not in found
    assert not any(metric.startswith(altered) for metric in metrics(f"Ask {ANNA}."))


def test_public_and_invented_names_are_counted_apart():
    found = metrics(
        "⟦Kant|PERSON|public⟧ ⟦Tom|PERSON|invented⟧ ⟦https://x.org|URL|public⟧", "Kant|https.*"
    )
    assert found["public names altered"] == [True]
    assert found["invented names altered"] == [False]
    assert found["public spans of other types altered"] == [True]


def test_a_text_is_clean_only_if_all_its_private_spans_are_gone():
    text = f"{ANNA} and ⟦Bo Holm|PERSON|private⟧"
    assert metrics(text, "Anna", "Bo Holm")["texts with no private span left"] == [True]
    assert metrics(text, "Anna")["texts with no private span left"] == [False]
    assert metrics(text, "Anna", "Bo")["texts with no private span left"] == [True]
    assert metrics(text, "Anna", "Bo")["texts with nothing telling left"] == [False]


@pytest.mark.parametrize(
    ("marked", "form"),
    [
        ("⟦a@x.example|EMAIL|private⟧", "EMAIL"),
        ("call ⟦0151 234567|PHONE|private⟧", "PHONE"),
        ("ext. ⟦314|PHONE|private⟧", None),
        ("SSN ⟦078-05-1120|ID|private⟧", "national number"),
        ("身份证：⟦430702199208253080|ID|private⟧", "national number"),
        ("SSN unknown\nticket ⟦4711|ID|private⟧", None),
        ("⟦sk_live_60R0jOVRcsk0tvkS|SECRET|private⟧", "key"),
        ("⟦tea before milk 77|SECRET|private⟧", None),
        ("⟦hunter2|SECRET|private⟧", None),
        (ANNA, None),
    ],
)
def test_what_has_a_form(marked, form):
    text = labelled(marked)
    assert prompts.formed(text, text.labels[0]) == form


def test_texts_count_in_their_language_and_in_the_pools():
    assert prompts.sources(labelled("x", "en")) == ("hard", "hard, English")
    assert prompts.sources(labelled("x", "de")) == ("hard", "hard, other languages", "hard, de")
    assert prompts.sources(labelled("x", "", "prompts")) == ("prompts",)


def test_rates_have_a_value_for_each_span_and_their_interval_is_over_texts():
    scores = [judged(f"{ANNA} and {ANNA}", "Anna"), judged(f"{ANNA} and {ANNA}")] * 10
    (row,) = (
        row
        for row in prompts.measured(scores, "tool", "train")
        if row["source"] == "hard" and row["metric"] == "private spans gone"
    )
    assert (row["value"], row["n"], row["texts"]) == (0.5, 40, 20)
    assert row["what"] == "prompts, train, tool, hard: private spans gone"
    assert row["low"] == pytest.approx(0.27, abs=0.02), "of 20 texts, not of 40 spans"


# ---- releases --------------------------------------------------------------------------------------------------------


def test_changes_are_where_items_differ_from_their_words():
    text = "Ask  Anna Holm, now please"
    words = ["Ask", "Anna Holm", ",", "now", "please"]
    items = [
        Item("Ask", Kind.VERBATIM, "", 0, 1),
        Item("<PERSON_1>", Kind.PLACEHOLDER, "", 1, 2),
        Item(",", Kind.VERBATIM, "", 2, 3),
        Item("now", Kind.WORD, "", 3, 4),
    ]
    assert prompts.changes(text, words, items) == [(5, 14, "<PERSON_1>", True), (20, 26, "", True)]
    with pytest.raises(ValueError, match="in order"):
        prompts.changes(text, ["Anna", "Ask"], [])


def test_a_protector_is_asked_with_a_fresh_session_each_time():
    protect = prompts.protector("prompt", protect={"detectors": ["patterns"]})
    one, other = protect("Write to a@x.example now"), protect("Write to b@x.example now")
    assert one.text == other.text
    assert [
        text[slice(*change[:2])]
        for text, change in zip(["Write to a@x.example now"], one.changes, strict=True)
    ] == ["a@x.example"]


def test_another_tool_hides_what_it_finds_once():
    outcome = prompts.hiding(["patterns"])("Write to a@x.example or 10.0.0.1.")
    assert outcome.text == "Write to <EMAIL> or <IP>."
    assert prompts.spelled("Write to a@x.example or 10.0.0.1.", outcome.changes) == outcome.text


# ---- failures --------------------------------------------------------------------------------------------------------


def test_failures_are_told_with_what_stands_there_now():
    score = judged(
        f"Ask {ANNA} and ⟦Bo|PERSON|private⟧ in ⟦Rome|LOCATION|public⟧.", "Anna", "Rome", "Ask"
    )
    told = {failure.kind: prompts.told(failure) for failure in prompts.failures(score)}
    release = "[<X>] [<X>] and Bo in [<X>]."
    assert told == {
        "left": ("Ask Anna and ⟦Bo⟧ in Rome.", release),
        "public": ("Ask Anna and Bo in ⟦Rome⟧.", release),
        "words": ("⟦Ask⟧ Anna and Bo in Rome.", release),
    }


def test_a_text_without_anything_private_is_one_failure():
    def kinds(marked, *hidden):
        return [failure.kind for failure in prompts.failures(judged(marked, *hidden))]

    assert kinds("Who is ⟦Kant|PERSON|public⟧?", "Kant", "Who") == ["altered", "public", "words"]
    assert kinds("Who is ⟦Tom|PERSON|invented⟧?", "Tom") == []
    assert kinds("Who is ⟦Kant|PERSON|public⟧?") == []


def test_words_of_one_change_are_one_failure():
    places = [
        failure[3:]
        for failure in prompts.failures(judged(f"one two three {ANNA}", "one two", "three", "Anna"))
    ]
    assert places == [(0, 7), (8, 13)]


def test_failures_on_the_page_are_of_written_texts_only():
    one = judged(f"Ask {ANNA}.")
    other = one._replace(labelled=one.labelled._replace(kind="prompts"))
    assert [each["id"] for each in prompts.picked([one, other], 10)["left"]] == ["a"]
    assert prompts.picked([other], 10)["left"] == []


@pytest.mark.parametrize("use", ["measure", "both"])
def test_failures_of_texts_that_measure_are_not_shown(use, capsys):
    with pytest.raises(SystemExit):
        prompts.arguments(["--use", use, "--show", "5"])
    assert "--show needs --use train" in capsys.readouterr().err
    assert prompts.arguments(["--show", "5"]).use == "train"


# ---- readers ---------------------------------------------------------------------------------------------------------


def test_readers_agree_on_ends_and_types():
    one = [Label(0, 4, "PERSON", "private"), Label(5, 9, "LOCATION", "public")]
    other = [
        Label(0, 4, "PERSON", "public"),
        Label(6, 9, "LOCATION", "public"),
        Label(20, 22, "AGE", "private"),
    ]
    exact, count = readers.f1([(one, other)], exact=True)
    assert (exact.value, count) == (pytest.approx(2 / 5), 5)
    assert readers.f1([(one, other)], exact=False)[0].value == pytest.approx(4 / 5)
    typed = [each._replace(type="ORGANIZATION") for each in one]
    assert readers.f1([(one, typed)], exact=False)[0].value == 0


def test_kappa_is_cohens():
    def pair(one, other):
        return [Label(0, 1, "ID", one)], [Label(0, 1, "ID", other)]

    read = [pair("private", "private")] * 20 + [pair("private", "public")] * 5
    read += [pair("public", "private")] * 10 + [pair("public", "invented")] * 15
    interval, count = readers.kappa(read)
    assert count == 50
    assert interval.value == pytest.approx(0.4), "Cohen's own example"
    error = (interval.high - interval.low) / 2 / 2.01
    assert error == pytest.approx(0.126, abs=0.01), "its large-sample error"
    assert (
        readers.kappa([pair("private", "private"), pair("public", "public"), *read])[0].value
        > interval.value
    )


# ---- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture
def rows(monkeypatch):
    found: dict[str, dict[str, float]] = {}
    monkeypatch.setattr(page, "stored", lambda: found)

    def add(metric, source, value, tool="prompt"):
        what = f"prompts, measure, {tool}, {source}: {metric}"
        found[what] = {"value": value, "low": value, "high": value, "n": 1000}

    return add


def test_a_target_is_reached_by_the_value_that_was_measured(rows):
    rows("private spans gone", "hard, English", 0.949)
    rows("private spans gone", "hard, other languages", 0.85)
    rows("public names altered", "hard", 0.09)
    rows("ordinary words altered", "hard", 0.005)
    table = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in page.targets().splitlines()[2:]
    ]
    assert [(row[0], row[2]) for row in table] == [
        ("public names altered", "≤0.08 **missed**"),
        ("ordinary words altered", "≤0.005"),
        ("private spans gone", "≥0.95 **missed**"),
        ("private spans gone", "≥0.85"),
    ]
    assert table[0][3] == "0.090 (0.090-0.090), n=1,000"


def test_another_tool_stands_beside_and_what_has_no_target_is_only_shown(rows):
    rows("private spans gone", "pupa", 0.39)
    rows("private spans gone", "pupa", 0.2, tool="presidio")
    (line,) = page.targets().splitlines()[2:]
    assert line == "| private spans gone | PUPA |  | 0.390 (0.390-0.390), n=1,000 | 0.200 |"


def test_languages_stand_with_their_rates(rows):
    rows("private spans gone", "hard, English", 0.96)
    rows("private spans gone", "hard, de", 1.0)
    assert page.by_language() == "English 0.960, German 1.000"


def test_a_speed_that_misses_its_target_says_so(rows):
    page.stored()["prompts, speed: tagger, prompts of 58 words"] = {
        "value": 1470,
        "unit": "words/s",
    }
    page.stored()["prompts, speed: Protector, a text of 200 kB"] = {"value": 9.5, "unit": "s"}
    assert page.speed().splitlines() == [
        "- tagger, prompts of 58 words: 1,470 words/s (target ≥4,000, missed)",
        "- Protector, a text of 200 kB: 9.5 s (target ≤10)",
    ]


def test_failures_are_the_marked_places():
    assert page._marked({"text": "of ⟦Ada | Bo⟧, too"}) == "`Ada \\| Bo`"


def test_targets_are_of_sources_and_metrics_that_are_measured():
    scores = [
        judged(f"{ANNA}: SSN ⟦078-05-1120|ID|private⟧"),
        judged("Who is ⟦Kant|PERSON|public⟧?"),
    ]
    known = {row["metric"] for row in prompts.measured(scores, "prompt", "measure")}
    assert {target.metric for target in page.TARGETS} <= known
    assert {target.source for target in page.TARGETS} <= {*page.SOURCES} <= {*prompts.WHOLE}
    assert {*page.KINDS} == {*prompts.KINDS}


@pytest.mark.slow
def test_speed_is_measured_in_what_the_page_shows(tmp_path):
    import gzip
    import json

    folder = tmp_path / "squad_v11"
    folder.mkdir()
    with gzip.open(folder / "dev.shared.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps({"context": "Ask Anna about the tea in 1990. " * 600}) + "\n")
    found = {row["metric"]: row for row in prompts.speed(tmp_path, 1)}
    assert found.keys() == page.SPEED.keys()
    assert all(np.isfinite(row["value"]) and row["value"] > 0 for row in found.values())
