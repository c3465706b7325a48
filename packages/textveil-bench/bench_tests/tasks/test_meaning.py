"""Meaning: the cosine of texts with themselves, with others, and with nothing; equal texts are encoded once."""

import numpy as np
import pytest

from bench_tests.tasks.conftest import untouched
from textveil_bench.examples import DataSet, Example
from textveil_bench.tasks import judge_models, sentence_vectors
from textveil_bench.tasks.meaning import Meaning


def test_what_was_not_touched_means_the_same(stories, questions):
    for data in (stories, questions):
        (score,) = Meaning().score(data, untouched(data))
        assert score.values == pytest.approx(np.ones(len(data)), abs=1e-5)
        assert not score.share


def test_all_fields_count_and_more_changes_cost_more(questions, trial):
    example = questions.examples[0]
    only = DataSet(**{**vars(questions), "examples": (example,)})
    question, text = example.texts
    releases = [
        (question, text),
        (question.replace("ferry", "boat"), text),
        (question.replace("ferry", "onion"), text.replace("ferry", "onion")),
        (
            "Why do angry onions paint songs slowly?",
            "A onion on Tuesday paints with the purple song all night.",
        ),
    ]
    found = [next(Meaning().score(only, [trial(example, *each)])).values[0] for each in releases]
    assert found == sorted(found, reverse=True)
    assert found[0] - found[-1] > 0.5
    assert len(set(found)) == 4


def test_nothing_means_nothing(trial):
    example = Example(texts=("",))
    data = DataSet(name="empty", split="test", kind="text", fields=("text",), examples=(example,))
    assert Meaning().explain_refusal(data) == ""
    assert next(Meaning().score(data, [trial(example, "")])).values.tolist() == [0]


def test_equal_texts_are_encoded_once_and_originals_once_in_all(monkeypatch):
    seen: list[str] = []
    encoder = judge_models.get_encoder()
    encode = type(encoder).encode

    def watched(self, texts):
        seen.extend(texts)
        return encode(self, texts)

    monkeypatch.setattr(type(encoder), "encode", watched)
    found = sentence_vectors.encode(["kettle", "meadow at noon", "kettle"])
    assert sorted(seen) == ["kettle", "meadow at noon"]
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_allclose(
        found, encode(encoder, ["kettle", "meadow at noon", "kettle"]), atol=1e-5
    )
    sentence_vectors.encode_originals.cache_clear()
    one, other = (sentence_vectors.encode_originals(("a lantern", "a ladder")) for _ in range(2))
    assert one is other
    assert seen[2:] == ["a ladder", "a lantern"]
    assert not one.flags.writeable


def test_progress_is_told_in_steps(monkeypatch):
    monkeypatch.setattr(sentence_vectors, "STEP", 2)
    told: list[tuple[str, int, int]] = []
    sentence_vectors.encode(["a", "b", "c"], report=lambda *given: told.append(given))
    assert told == [("sentence vectors", 0, 3), ("sentence vectors", 2, 3)]
