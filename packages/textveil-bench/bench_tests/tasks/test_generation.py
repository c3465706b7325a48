"""Generation: where texts are cut, what is sent to whom, and what the outcome is held against."""

import json
import urllib.request
from typing import Any

import numpy as np
import pytest

from bench_tests.tasks.conftest import untouched
from textveil.errors import ConfigError
from textveil.models.endpoint import Endpoint
from textveil.models.prompts import Prompts
from textveil.text.released import Item, Kind
from textveil_bench.tasks import sentence_vectors
from textveil_bench.tasks.generation import Generation, split_prompt
from textveil_bench.trials import ReleasedExample, ReleasedField

WORDS = "one two three four five six seven eight nine ten"


@pytest.fixture
def generation(openai_server):
    def made(model: str = "echo", **options: Any) -> Generation:
        return Generation(
            endpoint=Endpoint(url=openai_server, model=model, retries=0), prefix=5, **options
        )

    return made


@pytest.fixture
def journal(openai_server):
    def sent() -> list[dict[str, Any]]:
        with urllib.request.urlopen(openai_server.replace("/v1", "/journal")) as answer:
            return json.load(answer)

    before = len(sent())
    return lambda: sent()[before:]


def whole(text: str) -> ReleasedField:
    from bench_tests.tasks.conftest import spelled

    return spelled(text, text)


@pytest.mark.parametrize(
    ("text", "prefix", "length", "found"),
    [
        (WORDS, 3, 4, ("one two three", "one two three", "four five six seven")),
        (
            WORDS,
            5,
            100,
            ("one two three four five", "one two three four five", "six seven eight nine ten"),
        ),
        (
            WORDS,
            9,
            100,
            ("one two three four five", "one two three four five", "six seven eight nine ten"),
        ),
        ("one two three", 9, 9, ("one", "one", "two three")),
        ("one", 9, 9, ("one", "one", "")),
        ("", 9, 9, ("", "", "")),
        ("  one,  two  three.", 2, 2, ("  one,", "  one,", "two  three")),
    ],
)
def test_texts_are_cut_behind_their_first_words(text, prefix, length, found):
    assert tuple(split_prompt(whole(text), prefix, length)) == found


def test_an_item_on_both_sides_of_the_cut_belongs_to_the_beginning():
    original = "ask Anna Maria Bell about it"
    items = [
        Item(text="ask", kind=Kind.VERBATIM, group="", start=0, end=1),
        Item(text="<PERSON>", kind=Kind.PLACEHOLDER, group="", start=1, end=4),
        Item(text="about", kind=Kind.VERBATIM, group="", start=4, end=5),
        Item(text="it", kind=Kind.VERBATIM, group="", start=5, end=6),
    ]
    starts = (0, 4, 9, 15, 20, 26)
    part = ReleasedField(
        items=tuple(items),
        gaps=("", " ", " ", " ", ""),
        original=original,
        starts=starts,
        ends=(3, 8, 14, 19, 25, 28),
    )
    assert split_prompt(part, 2, 9) == ("ask <PERSON>", "ask Anna Maria Bell", "about it")


def test_coherence_and_alignment_are_cosines_with_the_beginning_and_what_follows(
    generation, stories
):
    """The remote model repeats the beginning, and the local one hands its answer on with other full stops."""
    found = {
        score.metric: score
        for score in generation(local_model="draft").score(stories, untouched(stories))
    }
    prompts = [split_prompt(trial.parts[0], 5, 100) for trial in untouched(stories)]
    said = sentence_vectors.encode([prompt.released.replace(".", "!") for prompt in prompts])
    for metric, texts in (
        ("coherence", [prompt.original for prompt in prompts]),
        ("alignment", [prompt.continuation for prompt in prompts]),
    ):
        np.testing.assert_allclose(
            found[metric].values,
            sentence_vectors.compute_cosines(said, sentence_vectors.encode(texts)),
            atol=1e-5,
        )
    assert found["coherence"].values == pytest.approx([1, 1], abs=1e-4)
    assert (found["alignment"].values < 0.9).all()
    assert [name for name, score in found.items() if score.headline] == ["coherence"]
    assert not any(score.share for score in found.values())


def canaries(stories, trial) -> list[ReleasedExample]:
    """Every word of the beginnings is replaced."""
    return [
        trial(
            stories.examples[0],
            stories.examples[0].texts[0].replace("keeper", "onion").replace("lighthouse", "pan"),
        ),
        trial(stories.examples[1], stories.examples[1].texts[0].replace("sisters", "kettles")),
    ]


def test_nothing_but_released_beginnings_is_sent(generation, stories, trial, journal):
    tried = canaries(stories, trial)
    list(generation(local_model="draft", temperature=1.5, length=30).score(stories, tried))
    sent = [entry["body"] for entry in journal()]
    told = json.dumps(sent)
    for private in ("keeper", "sisters", "whole valley", "ships"):
        assert private not in told
    remote = [body for body in sent if body["model"] == "echo"]
    local = [body for body in sent if body["model"] == "draft"]
    assert sorted(body["messages"][1]["content"] for body in remote) == [
        "The onion of the pan",
        "Two kettles bake bread for",
    ]
    assert {body["temperature"] for body in remote} == {1.5}
    assert {body["temperature"] for body in local} == {0.5}
    assert "about 30 words" in remote[0]["messages"][0]["content"]
    assert len(remote) == len(local) == 2


def test_originals_go_to_the_local_model_only_where_it_was_named(
    generation, stories, trial, journal, openai_server
):
    for options in ({}, {"local_model": "draft"}, {"local_url": openai_server}):
        with pytest.raises(ConfigError, match="shown=original needs a local model"):
            generation(shown="original", **options)
    judge = generation(shown="original", local_model="draft", local_url=openai_server)
    list(judge.score(stories, canaries(stories, trial)))
    for entry in journal():
        assert (
            "keeper" in json.dumps(entry["body"]) or "sisters" in json.dumps(entry["body"])
        ) == (entry["body"]["model"] == "draft")


def test_the_key_of_the_remote_model_stays_with_it(openai_server, stories, journal):
    endpoint = Endpoint(url=openai_server, model="echo", key="hush", retries=0)
    list(
        Generation(endpoint=endpoint, local_model="draft", local_url=openai_server).score(
            stories, untouched(stories)
        )
    )
    keys = {entry["body"]["model"]: entry["headers"]["authorization"] for entry in journal()}
    assert keys == {"echo": "Bearer hush", "draft": "Bearer none"}


def test_alignment_can_be_with_what_the_model_writes_for_the_original(
    generation, stories, trial, journal
):
    tried = canaries(stories, trial)
    judge = generation(extraction=None, expected="model")
    found = {score.metric: score.values for score in judge.score(stories, tried)}
    np.testing.assert_allclose(
        found["alignment"], found["coherence"], atol=1e-5
    )  # it repeats what it is given
    assert (found["alignment"] < 0.99).all()
    assert len(journal()) == 4


def test_it_needs_texts_and_an_endpoint(generation, stories, judged):
    assert generation().explain_refusal(stories) == ""
    assert "of the kind classification" in generation().explain_refusal(judged)
    assert Generation().explain_refusal(stories) == "it needs an LLM: give an endpoint"
    assert (Generation().name, generation().name) == (
        "generation (no endpoint)",
        "generation (echo)",
    )


def test_the_model_of_the_run_alone_sees_originals(
    generation, stories, trial, journal, openai_server
):
    """Whatever else is named: an option of the task must not lead originals elsewhere."""
    local = Endpoint(url=openai_server, model="draft", key="none", retries=0)
    tried = canaries(stories, trial)
    for options in ({}, {"shown": "original"}, {"local_model": "upper"}):
        judge = generation(local=local, **options)
        notes = {score.note for score in judge.score(stories, tried)}
        assert all(note.endswith("revises sees the original beginning") for note in notes)
    for entry in journal():
        sees = "keeper" in json.dumps(entry["body"]) or "sisters" in json.dumps(entry["body"])
        assert sees == (entry["body"]["model"] == "draft")
    before = len(journal())
    list(generation(local=local, shown="released").score(stories, tried))
    assert "keeper" not in json.dumps(journal()[before:])


def test_its_wordings_can_be_those_of_a_file(generation, stories, journal):
    prompts = Prompts.parse(
        {
            "continuation": {"user": "On after {text}", "temperature": 0.7, "max_tokens": 9},
            "extraction": {"user": "{text} | {draft}", "temperature": 0.1},
        }
    )
    list(generation(prompts=prompts).score(stories, untouched(stories)))
    sent = [entry["body"] for entry in journal()]
    assert all(len(body["messages"]) == 1 for body in sent), "no system message"
    first, second = sent[0], sent[-1]
    assert (first["temperature"], first["max_tokens"]) == (0.7, 9)
    assert first["messages"][0]["content"].startswith("On after ")
    assert second["temperature"] == 0.1
    assert " | On after " in second["messages"][0]["content"]
