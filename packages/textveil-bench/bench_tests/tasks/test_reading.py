"""Reading: SQuAD's scores by hand, the bundled reader on invented facts, and the two views of an answer."""

import numpy as np
import pytest
from tests.models.conftest import SIZE, save, wordpiece

from bench_tests.tasks.conftest import untouched
from textveil.errors import ConfigError
from textveil.models import load_reader
from textveil_bench.examples import DataSet, Example
from textveil_bench.tasks.answers import score_answers, score_exact_match, score_token_f1
from textveil_bench.tasks.reading import Reading


@pytest.fixture(scope="module")
def other_reader(tmp_path_factory):
    """The folder of a random reader."""
    folder = tmp_path_factory.mktemp("some-reader")
    return save(
        folder, "BertForQuestionAnswering", wordpiece(), **{**SIZE, "max_position_embeddings": 128}
    )


@pytest.mark.parametrize(
    ("answer", "golds", "f1", "match"),
    [
        ("The Broncos", ["broncos"], 1.0, 1),
        ("Denver Broncos", ["Broncos"], 2 / 3, 0),
        ("x", ["y", "x."], 1.0, 1),
        ("", ["y"], 0.0, 0),
        ("the", ["a"], 1.0, 1),
        ("a b b", ["b b c"], 1.0 * 2 * 2 / 5, 0),
        ("well-known", ["wellknown"], 1.0, 1),
    ],
)
def test_scores_are_squads(answer, golds, f1, match):
    assert score_token_f1(answer, golds) == pytest.approx(f1)
    assert score_exact_match(answer, golds) == match


def by_metric(found) -> dict[str, np.ndarray]:
    return {score.metric: score.values for score in found}


def test_answers_to_originals_are_right_in_both_views(questions):
    found = list(Reading().score(questions, untouched(questions)))
    for score in found:
        assert score.values == pytest.approx(np.ones(3), abs=1e-5), score.metric
    assert [score.metric for score in found if score.headline] == ["F1"]
    assert {score.metric for score in found if not score.share} == {"cosine", "restored cosine"}


def test_an_answer_that_was_found_but_replaced_is_right_for_the_owner_alone(questions, trial):
    texts = [
        (
            questions.examples[0].texts[0],
            "The ferry to Ormund leaves from the silver barn each morning.",
        ),
        (
            questions.examples[1].texts[0],
            "Marta Quill painted the mural of whales in a single week.",
        ),
        questions.examples[2].texts,
    ]
    tried = [
        trial(example, *released)
        for example, released in zip(questions.examples, texts, strict=True)
    ]
    found = by_metric(Reading().score(questions, tried))
    assert found["exact match"].tolist() == [0, 0, 1]
    assert found["restored exact match"].tolist() == [1, 1, 1]
    assert found["F1"].tolist() == [0, 0, 1]
    assert found["restored F1"].tolist() == [1, 1, 1]
    assert (found["cosine"][:2] < 0.8).all()


def test_the_question_is_asked_as_it_was_released(questions, trial):
    """Asked for something else, the reader does not find who painted."""
    example = questions.examples[1]
    only = DataSet(**{**vars(questions), "examples": (example,)})
    lost = by_metric(
        Reading().score(only, [trial(example, "How many weeks did it take?", example.texts[1])])
    )
    assert lost["restored exact match"].tolist() == [0]


def test_another_reader_can_be_asked(questions, other_reader):
    asked = load_reader(other_reader).answer(
        *zip(*(example.texts for example in questions.examples), strict=True)
    )
    found = by_metric(Reading(reader=str(other_reader)).score(questions, untouched(questions)))
    golds = [example.answers for example in questions.examples]
    assert found["F1"].tolist() == [
        score_token_f1(each.text, own) for each, own in zip(asked, golds, strict=True)
    ]
    assert Reading(reader=str(other_reader)).name == f"reader ({other_reader.name})"


def test_the_headline_is_an_option(questions):
    found = Reading(headline="restored F1").score(questions, untouched(questions))
    assert [score.metric for score in found if score.headline] == ["restored F1"]
    with pytest.raises(ConfigError, match="headline"):
        Reading(headline="F2")  # type: ignore[arg-type]


def test_the_cosine_is_the_one_with_the_nearest_gold_answer(questions):
    found = by_metric(score_answers(questions, ["copper pier", "1974", ""], note=""))
    assert found["cosine"][0] == pytest.approx(1, abs=1e-5)
    assert 0 < found["cosine"][1] < 0.5
    assert found["cosine"][2] == 0


def test_reading_refuses_what_has_no_question_or_no_answer(questions, judged, pairs):
    assert Reading().explain_refusal(questions) == ""
    assert "opinions is of the kind classification" in Reading().explain_refusal(judged)
    assert "facts is of the kind pairs" in Reading().explain_refusal(pairs)
    without = DataSet(**{**vars(questions), "examples": (Example(texts=("a", "b")),)})
    assert Reading().explain_refusal(without) == "facts has questions without answers"
