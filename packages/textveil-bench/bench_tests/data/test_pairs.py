"""Training pairs for QNLI: the sentence with the answer and one without, half and half, and nothing that is judged."""

from collections import Counter

import pytest

from textveil_bench.data.pairs import make_pairs, split_sentences
from textveil_bench.examples import Example


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is here. Two is there.", ["One is here.", "Two is there."]),
        (
            "Dr. Ruiz met J. K. Ames in St. Olaf on Feb. 3. They sang.",
            ["Dr. Ruiz met J. K. Ames in St. Olaf on Feb. 3.", "They sang."],
        ),
        (
            "It cost 3.5 crowns, e.g. Swedish ones. Why? Nobody knew!",
            ["It cost 3.5 crowns, e.g. Swedish ones.", "Why?", "Nobody knew!"],
        ),
        (
            'He said "Go." "No," she said. (It rained.) 40 men left.',
            ['He said "Go."', '"No," she said.', "(It rained.)", "40 men left."],
        ),
        ("First line\nSecond line. ", ["First line", "Second line."]),
        ("In the U.S. Senate nothing moved.", ["In the U.S. Senate nothing moved."]),
        ("", []),
    ],
)
def test_sentences(text, expected):
    assert split_sentences(text) == expected


def question(text: str, context: str, *answers: str) -> Example:
    return Example(texts=(text, context), answers=answers)


MILL = "The mill burned in 1803. Greta Holm rebuilt the mill of brick. Greta Holm was a widow. The masons got flour."
BRIDGE = "A bridge of steel was opened by the mayor."
ASKED = [
    question("Who rebuilt the mill?", MILL, "Greta Holm"),
    question("When did the mill burn?", MILL, "1803"),
    question("Who opened the bridge?", BRIDGE, "the mayor"),
]


def test_each_question_has_a_sentence_with_its_answer_and_one_without():
    found = make_pairs(ASKED)
    assert len(found) == 6
    for asked in ASKED:
        pair = {
            example.label: example.texts[1]
            for example in found
            if example.texts[0] == asked.texts[0]
        }
        assert set(pair) == {0, 1}
        assert asked.answers[0] in pair[0]
        assert pair[0] in asked.texts[1]
        assert asked.answers[0] not in pair[1]
        assert (pair[1] in asked.texts[1]) == (asked.texts[1] == MILL), (
            "a text of one sentence borrows another's"
        )
    sides = {(example.texts[0], example.label): example.texts[1] for example in found}
    assert sides["Who rebuilt the mill?", 0] == "Greta Holm rebuilt the mill of brick.", (
        "it shares more words"
    )
    assert sides["Who rebuilt the mill?", 1] == "The mill burned in 1803.", "it shares more words"


def test_the_same_seed_gives_the_same_pairs_in_the_same_order():
    many = [
        question(f"Who met number {i}?", f"Ana met number {i}. It rained. Bo slept.", "Ana")
        for i in range(40)
    ]
    assert make_pairs(many) == make_pairs(many)
    assert make_pairs(many, seed=1) != make_pairs(many)
    labels = [example.label for example in make_pairs(many)]
    assert Counter(labels) == {0: 40, 1: 40}
    assert 5 < labels[::2].count(1) < 35, "evenly spaced rows have both labels"


def test_what_is_judged_is_not_trained_on():
    judged = [
        Example(texts=("who opened THE bridge", "Nothing."), label=0),
        Example(texts=("?", "Greta Holm was a widow"), label=1),
    ]
    assert make_pairs(ASKED, unseen=judged) == []
    assert len(make_pairs(ASKED, unseen=judged[:1])) == 4
    assert len(make_pairs(ASKED, unseen=[question("?", MILL, "1803")])) == 0, (
        "the bridge alone has no other sentence"
    )


def test_a_question_without_a_sentence_of_its_answer_is_left_out():
    assert make_pairs([question("What?", "It rained. He left.", "rained. He")]) == []
    assert make_pairs([]) == []
