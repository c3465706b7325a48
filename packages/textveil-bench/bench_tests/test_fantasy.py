"""Fantasy: invented paragraphs, answers that stand there once, and a language model that is not believed."""

import json
import re
from collections import Counter

import pytest

from textveil.errors import ConfigError, EndpointError
from textveil.models.endpoint import Endpoint
from textveil.text import frequency
from textveil_bench import fantasy
from textveil_bench.data.loading import load
from textveil_bench.fantasy import (
    QUESTIONS_PER_PARAGRAPH,
    Passage,
    Question,
    ask,
    build_examples,
    build_passage,
    format_lines,
    generate,
)

GRAMMAR = fantasy._load_grammar()


# ---- the grammar ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_thousands_of_paragraphs_differ():
    found = list(generate(2000, seed=3))
    assert len({passage.context for passage in found}) == 2000
    assert Counter(len(passage.questions) for passage in found) == {QUESTIONS_PER_PARAGRAPH: 2000}
    answers = Counter(question.answer for passage in found for question in passage.questions)
    assert len(answers) > 500
    assert max(answers.values()) < 0.02 * QUESTIONS_PER_PARAGRAPH * 2000, (
        "no answer is worth guessing"
    )


def test_every_answer_stands_once_in_its_paragraph_and_not_in_its_question():
    for passage in generate(200, seed=5):
        for question in passage.questions:
            end = question.start + len(question.answer)
            assert passage.context[question.start : end] == question.answer
            assert len(re.findall(rf"\b{question.answer}\b", passage.context, re.IGNORECASE)) == 1
            assert question.answer not in question.text
            assert 1 <= len(question.answer.split()) <= 3
            assert "{" not in question.text + passage.context


def test_a_seed_repeats_and_a_larger_count_begins_alike():
    few = list(generate(20, seed=7))
    assert list(generate(50, seed=7))[:20] == few
    assert list(generate(20, seed=8)) != few
    assert {passage.context for passage in generate(20, seed=8)}.isdisjoint(
        passage.context for passage in few
    )


def test_invented_names_are_no_words():
    known = frequency.load_counts()
    common = {
        word.lower()
        for answers in GRAMMAR["answers"].values()
        for answer in answers
        for word in answer.split()
    }
    asked = [question.answer for passage in generate(200) for question in passage.questions]
    names = [answer for answer in asked if not set(answer.lower().split()) <= common]
    assert len(names) > 50
    assert [name for name in names if name.lower() in known] == []
    assert all(name.isalpha() and name.istitle() for name in names)


@pytest.mark.parametrize("topic", GRAMMAR["topics"])
def test_the_grammar_is_whole(topic):
    part = GRAMMAR["topics"][topic]
    assert len(part["opens"]) > 1
    assert len(part["asides"]) >= fantasy.ASIDES_PER_PARAGRAPH
    assert len(part["facts"]) > QUESTIONS_PER_PARAGRAPH
    for fact in part["facts"]:
        assert fact["answer"] == "name" or len(GRAMMAR["answers"][fact["answer"]]) > 10
        assert all(said.count("{answer}") == 1 for said in fact["says"])
        assert not any("{answer}" in asked for asked in fact["asks"])
        assert all(asked.endswith("?") for asked in fact["asks"])
    for answers in GRAMMAR["answers"].values():
        assert len(set(answers)) == len(answers)
        assert all(1 <= len(answer.split()) <= 3 for answer in answers)


def test_counts_and_seeds_that_are_none():
    with pytest.raises(ConfigError, match="1 or more"):
        list(generate(0))
    with pytest.raises(ConfigError, match="seed"):
        list(generate(1, seed=-1))


def test_lines_are_a_data_set_that_loads(tmp_path):
    found = list(generate(3, seed=1))
    path = tmp_path / "f.jsonl"
    path.write_text("".join(format_lines(found)), encoding="utf-8")
    data = load(str(path), fields=["question", "context"], answers="answers")
    assert data.examples == tuple(build_examples(found))
    assert (len(data), data.kind) == (15, "reading")
    first = json.loads(path.read_text().splitlines()[0])
    start = first["answers"][0]["answer_start"]
    assert first["context"][start:].startswith(first["answers"][0]["text"])


# ---- what is taken -------------------------------------------------------------------------------------------------

CONTEXT = (
    "In Vorl the lamps burn green. "
    "Old Vorl fears moths, and the lamps are greenish. Its ruler, Skeil, eats plums."
)


@pytest.mark.parametrize(
    ("asked", "answer", "why"),
    [
        ("What does Vorl fear?", "moths", None),
        ("Which colour?", "green", None),
        ("Who rules?", "Skeil", None),
        ("What?", "owls", "an answer that does not occur in the paragraph"),
        ("What?", "Moths", "an answer that does not occur in the paragraph"),
        ("What?", "lamp", "an answer that does not occur in the paragraph"),
        ("Where?", "Vorl", "an answer that occurs more than once"),
        ("What?", "the lamps", "an answer that occurs more than once"),
        ("What?", "", "an answer that is not one to 3 words long"),
        ("What?", "fears moths, and the", "an answer that is not one to 3 words long"),
        ("Who is Skeil?", "Skeil", "an answer that occurs in its question"),
        ("Tell me.", "plums", "a question without a question mark"),
    ],
)
def test_what_is_accepted(asked, answer, why):
    refused: Counter[str] = Counter()
    found = build_passage(CONTEXT, [(asked, answer)], refused)
    assert refused == ({} if why is None else {why: 1})
    assert [question.answer for question in found.questions] == ([answer] if why is None else [])


def test_a_passage_is_never_wrong():
    with pytest.raises(ConfigError, match="exactly once, at the given position"):
        Passage(context=CONTEXT, questions=(Question(text="?", answer="moths", start=3),))
    with pytest.raises(ConfigError, match="exactly once, at the given position"):
        Passage(context=CONTEXT, questions=(Question(text="?", answer="Vorl", start=3),))


# ---- a language model ----------------------------------------------------------------------------------------------


def written(*answers: str, paragraph: str = CONTEXT) -> str:
    asked = [{"question": f"Question {i}?", "answer": answer} for i, answer in enumerate(answers)]
    return json.dumps({"paragraph": paragraph, "questions": asked})


FULL = written("moths", "plums", "burn green", "Skeil", "fears")


@pytest.fixture
def model(monkeypatch):
    """A model that says what it is told to, round by round; notes the prompts."""
    rounds: list[list[tuple[str, str]]] = []

    def script(*answers: list[str]):
        def say(self, prompts, *, report=None, max_tokens=None):
            rounds.append(list(prompts))
            return answers[len(rounds) - 1]

        monkeypatch.setattr(Endpoint, "ask", say)
        return rounds

    return script


ENDPOINT = Endpoint(url="http://127.0.0.1:9/v1", model="m")


def test_a_model_writes_until_a_paragraph_has_its_questions(model):
    other = CONTEXT.replace("moths", "bells")
    rounds = model(
        [f"```json\n{FULL}\n```", written("owls", "plums", paragraph=other)],
        [written("bells", "plums", "Skeil", "fears", "burn green", "lamps", paragraph=other)],
    )
    found = ask(ENDPOINT, 2, attempts=3)
    assert [len(prompts) for prompts in rounds] == [2, 1], (
        "only what lacks questions is asked for again"
    )
    assert [len(passage.questions) for passage in found.passages] == [5, 5]
    assert found.refused == {"an answer that does not occur in the paragraph": 1}
    assert str(found) == (
        "2 of 2 paragraphs, with 10 questions; refused: 1 times an answer that does not occur in the paragraph"
    )
    assert len({system for prompts in rounds for system, _ in prompts}) == 3, (
        "each prompt has names of its own"
    )


def test_attempts_are_bounded_and_the_best_draft_stays(model):
    rounds = model([written("moths")], [written("moths", "plums")], ["no"])
    found = ask(ENDPOINT, 1, attempts=3)
    assert len(rounds) == 3
    assert [question.answer for question in found.passages[0].questions] == ["moths", "plums"]
    assert found.refused == {"a reply that is not the requested JSON": 1}


@pytest.mark.parametrize(
    "answer",
    [
        *("", "not JSON", "[]", "7", "null", "[" * 100_000, f"Here it is: {FULL}"),
        '{"paragraph": "x"}',
        '{"paragraph": 7, "questions": []}',
        '{"paragraph": "x", "questions": "xy"}',
        '{"paragraph": "x", "questions": [{"question": 1, "answer": "x"}]}',
        '{"paragraph": "\\ud800", "questions": [{"question": "?", "answer": "b"}]}',
    ],
)
def test_what_is_no_json_is_refused(model, answer):
    model([answer], [answer])
    with pytest.raises(EndpointError, match="wrote no paragraph"):
        ask(ENDPOINT, 1, attempts=2)


def test_the_same_paragraph_counts_once(model):
    model([FULL, FULL])
    found = ask(ENDPOINT, 2)
    assert (len(found.passages), found.wanted) == (1, 2)


def test_a_server_is_asked_and_only_invented_names_are_sent(openai_server):
    with pytest.raises(
        EndpointError, match="as JSON in 3 tries"
    ):  # this one repeats what it is told
        ask(Endpoint(url=openai_server, model="echo", retries=0), 3, attempts=1)
    with pytest.raises(ConfigError, match="1 or more"):
        ask(ENDPOINT, 1, attempts=0)
