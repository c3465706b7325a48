"""Language models that are asked: what is sent, and how their answers are taken."""

import json
import urllib.request
from typing import Any

import pytest

from bench_tests.tasks.conftest import untouched
from textveil.errors import ConfigError
from textveil.models.endpoint import Endpoint
from textveil.models.prompts import Prompts
from textveil_bench.examples import DataSet, Example
from textveil_bench.tasks.endpoint_judge import ZeroShot, find_original, parse


@pytest.fixture
def asked(openai_server):
    def made(model: str, **options: Any) -> ZeroShot:
        return ZeroShot(endpoint=Endpoint(url=openai_server, model=model, retries=0), **options)

    return made


def sent(url: str, since: int = 0) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url.replace("/v1", "/journal")) as answer:
        return [entry["body"] for entry in json.load(answer)][since:]


def rated(*texts: str, labels: tuple[str, ...] = ("bad", "very good")) -> DataSet:
    examples = tuple(Example(texts=(text,), label=i % len(labels)) for i, text in enumerate(texts))
    return DataSet(
        name="ratings",
        split="test",
        kind="classification",
        fields=("text",),
        labels=labels,
        examples=examples,
    )


def test_an_answer_counts_if_it_names_the_label_and_nothing_else(asked):
    """The model says what it is told: the released text."""
    data = rated("Bad!", "**Very good.**", "It is bad", "VERY-GOOD", "good")
    (score,) = asked("echo").score(data, untouched(data))
    assert score.values.tolist() == [1, 1, 0, 1, 0]
    assert score.chance == pytest.approx(3 / 5)
    assert score.note.endswith("2 of 5 answers named no label")


def test_nothing_but_releases_and_the_question_is_sent(asked, openai_server, trial):
    data = rated("canary pie", "canary tea")
    before = len(sent(openai_server))
    tried = [
        trial(example, released)
        for example, released in zip(data.examples, ("onion pie", "onion tea"), strict=True)
    ]
    list(
        asked("echo", question="Is it food?", words=("no", "yes"), max_tokens=7).score(data, tried)
    )
    bodies = sent(openai_server, before)
    assert "canary" not in json.dumps(bodies)
    assert sorted(body["messages"][1]["content"] for body in bodies) == ["onion pie", "onion tea"]
    system = "Is it food? The answer is one of: no, yes. Answer with it alone, without a reason."
    assert {body["messages"][0]["content"] for body in bodies} == {system}
    assert {body["max_tokens"] for body in bodies} == {7}


@pytest.mark.parametrize(
    ("name", "labels", "words"),
    [
        ("sst2", ("negative", "positive"), "negative, positive"),
        ("yelp", tuple("abcde"), "1, 2, 3, 4, 5"),
        ("yelp-polarity", ("negative", "positive"), "negative, positive"),
        ("ag_news-business", ("World", "Sports"), "World, Sports"),
        ("mine", ("x", "y"), "x, y"),
    ],
)
def test_known_data_are_asked_about_in_their_own_words(name, labels, words, asked, openai_server):
    data = DataSet(**{**vars(rated("a", labels=labels)), "name": name})
    before = len(sent(openai_server))
    list(asked("echo").score(data, untouched(data)))
    assert f"one of: {words}." in sent(openai_server, before)[0]["messages"][0]["content"]


def test_pairs_are_named_by_their_fields(asked, openai_server, pairs):
    data = DataSet(**{**vars(pairs), "name": "qnli", "labels": ("entailment", "not_entailment")})
    before = len(sent(openai_server))
    list(asked("echo").score(data, untouched(data)))
    prompts = [body["messages"][1]["content"] for body in sent(openai_server, before)]
    question, sentence = data.examples[0].texts
    assert f"Question: {question}\nSentence: {sentence}" in prompts


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("yes", 0),
        (" Yes.\n", 0),
        ("entailment", 0),
        ("Not entailment", 1),
        ("no", 1),
        ("no, it is", -1),
        ("", -1),
        ("2", -1),
    ],
)
def test_answers_are_parsed_strictly(answer, found):
    numbers, lost = parse([answer], ("yes", "no"), ("entailment", "not_entailment"))
    assert (numbers.tolist(), lost) == ([found], found < 0)


def test_words_must_be_one_for_each_label(asked):
    data = rated("a")
    for words in (("x",), ("x", "x."), ("x", "y", "z")):
        with pytest.raises(
            ConfigError, match="words must be 2 different words, one for each label of ratings"
        ):
            list(asked("echo", words=words).score(data, untouched(data)))


def test_the_letter_of_an_option_is_asked_for(asked, openai_server):
    """The model answers with the last word, which is a letter in the second example."""
    examples = (
        Example(texts=("What floats?", "a stone", "a cork"), label=1),
        Example(texts=("What sinks?", "a stone", "a b"), label=1),
    )
    data = DataSet(
        name="things",
        split="test",
        kind="choice",
        fields=("question", "A", "B"),
        labels=("A", "B"),
        examples=examples,
    )
    before = len(sent(openai_server))
    (score,) = asked("last-word").score(data, untouched(data))
    assert score.values.tolist() == [0, 1]
    bodies = sent(openai_server, before)
    assert "Question: What floats?\nA: a stone\nB: a cork" in [
        body["messages"][1]["content"] for body in bodies
    ]
    assert "one of: A, B." in bodies[0]["messages"][0]["content"]


# ---- reading -----------------------------------------------------------------------------------------------


def test_answers_are_scored_as_they_are_and_as_what_stood_there(asked, openai_server, trial):
    examples = (
        Example(texts=("Where is the key?", "The key is behind the clock"), answers=("clock",)),
        Example(texts=("Where is the cat?", "The cat sleeps below the oven"), answers=("oven",)),
    )
    data = DataSet(
        name="q", split="test", kind="reading", fields=("question", "context"), examples=examples
    )
    tried = [
        trial(examples[0], "Where is the key?", "The key is behind the shelf"),
        trial(examples[1], "Where is the cat?", "The cat sleeps below the oven"),
    ]
    before = len(sent(openai_server))
    found = {score.metric: score for score in asked("last-word").score(data, tried)}
    assert found["exact match"].values.tolist() == [0, 1]
    assert found["restored exact match"].values.tolist() == [1, 1]
    assert [name for name, score in found.items() if score.headline] == ["F1"]
    assert found["restored F1"].note.endswith("0 of 2 answers were not in the text")
    systems = {body["messages"][0]["content"] for body in sent(openai_server, before)}
    assert all("a single word" in system for system in systems)
    list(asked("last-word", one_word=False).score(data, tried))
    assert "single word" not in sent(openai_server, before)[-1]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("barn", "pier"),
        ("  The SILVER barn. ", "the copper pier"),
        ("silver\nbarn", "copper pier"),
        ("bar", None),
        ("silver morning", None),
        ("...", None),
        ("a(b", None),
    ],
)
def test_an_answer_is_looked_up_where_its_words_stand(answer, found, questions, trial):
    example = questions.examples[0]
    part = trial(
        example, example.texts[0], "The ferry to Ormund leaves from the silver barn each morning."
    ).parts[1]
    assert find_original(answer, part) == found


# ---- refusals ----------------------------------------------------------------------------------------------


def test_without_an_endpoint_nothing_is_asked(questions, stories, judged):
    for data in (questions, stories, judged):
        assert ZeroShot().explain_refusal(data) == "it needs an LLM: give an endpoint"
    assert ZeroShot().name == "asked (no endpoint)"


def test_data_that_it_cannot_ask_about_are_refused(asked, stories, questions, judged, pairs):
    judge = asked("echo")
    assert [judge.explain_refusal(data) for data in (questions, judged, pairs)] == ["", "", ""]
    assert "stories is of the kind text" in judge.explain_refusal(stories)
    examples = (Example(texts=("a", "b"), label=0),)
    short = DataSet(
        name="c",
        split="test",
        kind="choice",
        fields=("q", "A"),
        labels=("A", "B"),
        examples=examples,
    )
    assert "a text for each" in judge.explain_refusal(short)
    assert judge.name == "asked (echo)"


def test_temperature_and_length_are_sent_as_the_task_says(asked, questions, openai_server):
    before = len(sent(openai_server))
    list(asked("echo", temperature=0.2, max_tokens=5).score(questions, untouched(questions)))
    bodies = sent(openai_server, before)
    assert {(body["temperature"], body["max_tokens"]) for body in bodies} == {(0.2, 5)}


def test_its_wordings_can_be_those_of_a_file(asked, questions, pairs, openai_server):
    prompts = Prompts.parse(
        {
            "question_answering": {"user": "{context} -- {question}", "temperature": 0.4},
            "classification": {
                "data": {
                    "facts": {"user": "{question} + {sentence}: {labels}", "labels": ["J", "N"]}
                }
            },
        }
    )
    judge = asked("echo", temperature=0.2, prompts=prompts)
    before = len(sent(openai_server))
    list(judge.score(questions, untouched(questions)))
    list(judge.score(pairs, untouched(pairs)))
    bodies = sent(openai_server, before)
    reading, labelling = bodies[: len(questions)], bodies[len(questions) :]
    question, context = questions.examples[0].texts
    assert f"{context} -- {question}" in {body["messages"][0]["content"] for body in reading}
    assert {body["temperature"] for body in reading} == {0.4}
    assert all(body["messages"][0]["content"].endswith(": J, N") for body in labelling)
    assert {body["temperature"] for body in labelling} == {0.2}
    assert parse(["j", "N."], ("J", "N"), pairs.labels)[0].tolist() == [0, 1]
