"""The labels of what is private: written texts parse, and labels lie in their texts."""

import gzip
import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from training.labels import (
    HERE,
    STANDINGS,
    TYPES,
    USES,
    Label,
    Labelled,
    corpus_labels,
    hard_texts,
    marked_texts,
    use_of,
)

FIELDS = {"prompts": "text", "pupa": "user_query"}


@pytest.fixture(scope="module")
def hard() -> list[Labelled]:
    return list(hard_texts())


def check(labelled: Labelled) -> None:
    """Labels are in order, in the text, apart from one another, without space at their ends."""
    assert list(labelled.labels) == sorted(labelled.labels), labelled.id
    for label in labelled.labels:
        assert label.type in TYPES, labelled.id
        assert label.standing in STANDINGS, labelled.id
        assert 0 <= label.start < label.end <= len(labelled.text), labelled.id
        value = labelled.text[label.start : label.end]
        assert value == value.strip(), labelled.id
    assert all(one.end <= other.start for one, other in pairwise(labelled.labels)), labelled.id


def test_written_texts_are_many_and_their_labels_are_in_them(hard):
    assert len(hard) >= 2000
    assert len({each.id for each in hard}) == len(hard)
    assert len({each.text for each in hard}) == len(hard)
    for each in hard:
        check(each)
    private = sum(any(label.standing == "private" for label in each.labels) for each in hard)
    assert 0.5 < private / len(hard) < 0.8, "negatives are among them, and not most of them"


def test_every_language_has_texts_of_both_uses(hard):
    uses = Counter((each.language.partition("-")[0], each.use) for each in hard)
    languages = {language for language, _ in uses}
    assert " ".join(sorted(languages)) == "ar de en es fr hi it ja ko nl pl pt ru tr vi zh"
    for language in languages:
        for use in USES:
            assert uses[language, use] >= 10, (language, use)


@pytest.mark.parametrize("corpus", [*FIELDS, *(f"{name}-second" for name in FIELDS)])
def test_labels_of_corpora_have_no_text_and_a_known_form(corpus):
    rows = [json.loads(line) for line in (HERE / f"{corpus}.jsonl").read_text("utf-8").splitlines()]
    assert len({row["id"] for row in rows}) == len(rows) > 0
    for row in rows:
        assert row.keys() == {"id", "labels"}
        longest = max((label[1] for label in row["labels"]), default=1)
        check(
            Labelled(
                str(row["id"]),
                "",
                corpus,
                "x" * longest,
                [Label(*label) for label in row["labels"]],
                "train",
            )
        )


@pytest.mark.parametrize(("corpus", "least"), [("prompts", 600), ("pupa", 200)])
def test_labels_lie_in_the_texts_of_their_corpus(corpus, least):
    if "TEXTVEIL_CORPORA" not in os.environ:
        pytest.skip("needs the corpora that $TEXTVEIL_CORPORA names")
    path = Path(os.environ["TEXTVEIL_CORPORA"]) / corpus / f"{corpus}.shared.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        texts = {str(row["id"]): row[FIELDS[corpus]] for row in map(json.loads, file)}
    found = list(corpus_labels(corpus, texts))
    assert len(found) >= least
    for each in found:
        check(each)


@pytest.mark.parametrize("corpus", FIELDS)
def test_the_second_reader_read_a_tenth(corpus):
    first, second = (
        {
            json.loads(line)["id"]
            for line in (HERE / f"{name}.jsonl").read_text("utf-8").splitlines()
        }
        for name in (corpus, f"{corpus}-second")
    )
    assert second <= first
    assert 10 * len(second) >= len(first)


def test_the_second_reader_of_written_texts_read_80_that_measure(hard):
    first = {each.id: each for each in hard if each.use == "measure"}
    rows = [
        json.loads(line) for line in (HERE / "hard-second.jsonl").read_text("utf-8").splitlines()
    ]
    assert len({row["id"] for row in rows}) == len(rows) == 80
    for row in rows:
        check(first[row["id"]]._replace(labels=[Label(*label) for label in row["labels"]]))


def test_marks_become_labels_with_their_places():
    content = (
        "=== a mail\nDear ⟦Anna|PERSON|private⟧,\n⟦Rome|LOCATION|public⟧!\n\n=== b note\nnothing\n"
    )
    one, other = marked_texts(content, "en")
    assert one == Labelled(
        "a",
        "en",
        "mail",
        "Dear Anna,\nRome!",
        [Label(5, 9, "PERSON", "private"), Label(11, 15, "LOCATION", "public")],
        "train",
    )
    assert (other.id, other.kind, other.text, other.labels) == ("b", "note", "nothing", [])


@pytest.mark.parametrize(
    "wrong",
    [
        "⟦Anna|NAME|private⟧",
        "⟦Anna|PERSON|secret⟧",
        "⟦Anna|PERSON⟧",
        "⟦Anna|⟦x|ID|private⟧⟧",
        "Anna⟧",
    ],
)
def test_a_broken_mark_is_an_error_that_names_the_text(wrong):
    with pytest.raises(ValueError, match=r"^en-7: "):
        list(marked_texts(f"=== en-7 mail\n{wrong}\n", "en"))


def test_near_copies_have_one_use():
    assert (
        len({use_of(f"Dear Sir or Madam, I am writing to you about {n}.") for n in range(20)}) == 1
    )
    assert {use_of(f"{n} Dear Sir or Madam") for n in range(40)} == {"train", "measure"}
    assert use_of("Hello  World") == use_of("hello\nworld")
