"""Data of others is judged by rules that are said: each on a text of our own where it decides."""

import gzip
import io
import json
import sys
import tarfile
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
outside, prompts = import_module("outside"), import_module("prompts")

OPENING = (
    "PROCEDURE\n\nThe case originated in an application by a national, Mrs Ada Holm (“the applicant”), on 3 May 1999. "
    "Her lawyer was Mr Bo Lind.\n\nTHE FACTS\n\nMrs Holm was born in 1961. Mr Bo Lind wrote in May 2000."
)
MASKED = ("Mrs Ada Holm", "3 May 1999", "Mr Bo Lind", "1961", "May 2000", "national")


def release(text, *hidden, show="<X_1>"):
    """A text in which every occurrence of these strings is a placeholder."""
    places = sorted(
        match.span() for value in hidden for match in outside.regex.finditer(value, text)
    )
    changes = [prompts.Change(start, end, show, True) for start, end in places]
    return prompts.Outcome(prompts.spelled(text, changes), changes)


def values(pairs, metric):
    return [float(value) for name, value in pairs if name == metric]


def test_an_applicant_is_a_titled_name_before_the_word_in_the_opening_paragraph():
    found = outside.judgment(OPENING, "Ada Holm", MASKED)
    assert found.applicants == ["Ada Holm"]
    assert found.persons == ["Ada Holm", "Bo Lind"]
    assert found.dates == ["3 May 1999", "1961", "May 2000"]


def test_a_person_is_gone_where_no_mention_is_left():
    judgment = outside.judgment(OPENING, "Ada Holm", MASKED)
    half = list(outside.judge_judgment(judgment, release(OPENING, "Ada Holm", "May 2000")))
    assert values(half, "applicants gone") == [1]
    assert values(half, "family names of applicants gone") == [0], "Mrs Holm was born"
    assert values(half, "persons gone") == [1, 0]
    assert values(half, "dates gone") == [0, 0, 1]
    assert values(half, "private words hidden").count(1) == 4
    assert values(half, "hidden words that are private") == [1] * 4
    other = outside.judge_judgment(judgment, release(OPENING, "lawyer"))
    assert values(other, "hidden words that are private") == [0]


def test_sex_and_country_of_a_report_count_neither_way():
    text = "Varón de Oslo, España."
    spans = [(0, 5, "SEXO_SUJETO_ASISTENCIA"), (9, 13, "TERRITORIO"), (15, 21, "PAIS")]
    report = outside.report("a", text, spans)
    pairs = list(outside.judge_report(report, release(text, "Varón", "Oslo", "España")))
    assert values(pairs, "private spans gone") == [1]
    assert values(pairs, "hidden words that are private") == [1]
    pairs = list(outside.judge_report(report, release(text, "de")))
    assert values(pairs, "texts with no private span left") == [0]
    assert values(pairs, "hidden words that are private") == [0]


def test_each_label_needs_a_span_of_its_own_of_the_same_label():
    labels = [(0, 4, "PERSON"), (5, 9, "PERSON"), (10, 14, "ORG")]
    assert outside.matched(labels, [(0, 9, "PERSON"), (10, 14, "LOC")]) == (
        [True, False, False],
        1,
    )
    both = [(3, 9, "PERSON"), (0, 4, "PERSON"), (12, 20, "ORG")]
    assert outside.matched(labels, both) == ([True, True, True], 0)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("44051401359", "PESEL"),
        ("521-346-78-94", "NIP"),
        ("PL 521 346 78 94", "NIP"),
        ("274836157", "REGON"),
        ("ABK 323847", "DOWOD"),
        ("HX60880351", None),
        ("HX 6088035", "PASSPORT"),
    ],
)
def test_numbers_are_labelled_by_their_form(value, label):
    found = outside.polish(value, [(0, len(value), "NATIONAL_ID")])
    assert [each[2] for each in found] == ([label] if label else [])


def test_a_postal_code_is_apart_from_its_address():
    text = "ul. Cicha 5, 50-138 Oleśno"
    assert outside.polish(text, [(0, len(text), "ADDRESS")]) == [
        (0, 13, "LOC"),
        (13, 19, "POSTAL"),
        (19, 26, "LOC"),
    ]
    assert outside.polish(text, [(0, 11, "ADDRESS"), (0, 3, "HANDLE")]) == [(0, 11, "LOC")]


def test_placeholders_say_their_types():
    shown = ["<PERSON_1>", "<NATIONAL_ID_12>", "<PERSON_1_FAMILY_B>", "<US_SSN>", "Bo"]
    changes = [prompts.Change(i, i + 1, each, True) for i, each in enumerate(shown)]
    types = [each[2] for each in outside.spans_of(prompts.Outcome("", changes))]
    assert types == ["PERSON", "NATIONAL_ID", "PERSON", "US_SSN", ""]


@pytest.fixture
def corpora(tmp_path):
    """A folder with two tiny corpora of our own."""
    (tmp_path / "tab").mkdir()
    row = {"text": OPENING, "people": "Ada Holm", "meta": {"masked_entities": MASKED}}
    with gzip.open(tmp_path / "tab" / "dev.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(row))
    folder = tmp_path / "pl_pii_bench"
    folder.mkdir()
    span = {"start": 4, "end": 7, "label": "PERSON"}
    files = {
        "corpus/core/a.json": {"text": "Pan Jan.", "entities": [span]},
        "corpus/negative/b.json": {"text": "Nic.", "entities": []},
        "corpus/inflection/c.jsonl": {"text": "Bez Jan.", **span},
        "corpus/notes.json": {},
    }
    with tarfile.open(folder / "corpus.tar.gz", "w:gz") as tar:
        for name, content in files.items():
            data = json.dumps(content).encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    (folder / "RESULTS.md").write_text(
        "# R\n\n| Split | Documents | A relaxed recall | B C relaxed recall |\n|---|---:|---:|---:|\n"
        "| `core` | 2 | 50.5% | 1.0% |\n| `negative`* | 1 | 7 FP | 0 FP |\n\n| Engine | Version |\n"
    )
    return tmp_path


def test_corpora_are_read_as_they_lie(corpora):
    assert [each.applicants for each in outside.judgments(corpora)] == [["Ada Holm"]]
    found = outside.documents(corpora)
    assert [(each.lane, each.spans) for each in found] == [
        ("core", [(4, 7, "PERSON")]),
        ("inflection", [(4, 7, "PERSON")]),
        ("negative", []),
    ]
    assert outside.chosen("tab", corpora, 5) != []
    assert {each.lane for each in outside.sample(found, 3)} == {"core", "inflection", "negative"}


def test_a_missing_corpus_is_said_and_skipped(corpora, capsys):
    assert outside.chosen("meddocan", corpora, None) == []
    assert "meddocan: not in the folder of corpora, skipped" in capsys.readouterr().err


def test_published_figures_are_rows_of_their_own(corpora):
    rows = {row["what"].rpartition("published, ")[2]: row for row in outside.published(corpora)}
    assert {name: row["value"] for name, row in rows.items()} == {
        "A: core: found with their label": pytest.approx(0.505),
        "B C: core: found with their label": pytest.approx(0.01),
        "A: negative: false alarms": 7,
        "B C: negative: false alarms": 0,
    }
    assert all(row["published"] for row in rows.values())


def test_false_alarms_are_added_up_and_shares_are_means():
    pairs = [[("core: false alarms", 2), ("gone", True)], [("core: false alarms", 3)]]
    rows = {row["metric"]: row for row in outside.rows("outside", "c", "r", pairs)}
    assert (rows["core: false alarms"]["value"], rows["core: false alarms"]["unit"]) == (5, "count")
    assert (rows["gone"]["value"], rows["gone"]["texts"]) == (1, 1)
    assert rows["gone"]["what"] == "outside, c, r: gone"


def test_an_option_that_is_not_there_yet_is_left_out():
    known = {field.name for field in outside.dataclasses.fields(_options())}
    assert outside.overrides("personal") == {}
    assert outside.overrides("names") == {"protect": {"level": "names"}}
    dated = {"protect": {"level": "names", "dates": "all"}} if "dates" in known else None
    assert outside.overrides("names, all dates") == dated


def _options():
    from textveil.config.sections import ProtectOptions

    return ProtectOptions


def test_textveil_is_measured_on_a_corpus(corpora, capsys):
    rows = {
        row["metric"]: row
        for row in outside.measurements(["pl_pii_bench"], corpora, None)
        if row["release"] == "personal"
    }
    assert rows["core: hidden as whatever"]["n"] == 1
    assert rows["negative: false alarms"]["value"] == 0
    assert "pl_pii_bench, personal: 0 of 3" in capsys.readouterr().err
