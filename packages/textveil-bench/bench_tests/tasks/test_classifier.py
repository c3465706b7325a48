"""Classifiers of others: guesses against the network run by hand, and how labels are matched."""

import numpy as np
import pytest
import torch
import transformers
from tests.models.conftest import build_hub_cache

from bench_tests.tasks.conftest import untouched
from textveil.errors import ConfigError, ModelError
from textveil_bench.examples import DataSet, Example
from textveil_bench.tasks.classifier import Classification, match_labels

NOUNS = ("anchor", "bakery", "candle", "dinner", "engine", "fabric", "garden", "hammer")


@pytest.fixture
def rated() -> DataSet:
    """Texts of words that the tiny tokenizer knows, labels by turns."""
    examples = tuple(
        Example(texts=(f"the {a} near the {b}",), label=i % 2)
        for i, (a, b) in enumerate(zip(NOUNS, NOUNS[::-1], strict=True))
    )
    return DataSet(
        name="nouns",
        split="test",
        kind="classification",
        fields=("text",),
        labels=("bad", "good"),
        examples=examples,
    )


def by_hand(folder, texts) -> np.ndarray:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return np.stack(
            [network(**tokenizer(text, return_tensors="pt")).logits[0].numpy() for text in texts]
        )


def test_the_likeliest_label_of_the_data_is_guessed_by_its_name(rated, rater):
    logits = by_hand(rater, [example.texts[0] for example in rated.examples])
    assert (logits.argmax(axis=1) == 2).any(), (
        "the label that is not of the data would win somewhere"
    )
    guessed = logits[:, [1, 0]].argmax(axis=1)
    assert len(set(guessed.tolist())) == 2
    (score,) = Classification(model=str(rater)).score(rated, untouched(rated))
    assert score.values.tolist() == (guessed == [i % 2 for i in range(len(rated))]).tolist()
    assert score.chance == 0.5


def test_the_released_text_is_classified(rated, rater, trial):
    texts = ["the old town in lisbon"] * len(rated)
    tried = [trial(example, text) for example, text in zip(rated.examples, texts, strict=True)]
    guessed = by_hand(rater, texts)[:, [1, 0]].argmax(axis=1)
    (score,) = Classification(model=str(rater)).score(rated, tried)
    assert score.values.tolist() == (guessed == [i % 2 for i in range(len(rated))]).tolist()


@pytest.mark.parametrize(
    ("labels", "offered", "given", "found"),
    [
        (("bad", "good"), ("GOOD", "BAD", "Unsure"), (), [1, 0]),
        (("1 star", "2 stars"), ("1-star", "2_stars"), (), [0, 1]),
        (("Sci/Tech", "World"), ("world", "scitech"), (), [1, 0]),
        (("bad", "good"), ("LABEL_0", "LABEL_1"), (), [0, 1]),
        (("bad", "good"), ("LABEL_0", "LABEL_1"), (1, 0), [1, 0]),
        (("bad", "good"), ("neg", "neutral", "pos"), ("neg", "pos"), [0, 2]),
        (("bad", "good"), ("neg", "neutral", "pos"), ("neg", 2), [0, 2]),
        (("1 star", "2 stars"), ("Stars: 2", "Stars: 1"), (), [1, 0]),
        (("1 star", "2 stars"), ("LABEL_0", "LABEL_1"), (), [0, 1]),
        (("1 star", "2 stars"), ("LABEL_2", "LABEL_1"), (), [1, 0]),
        (("bad", "good"), ("0", "1"), (), [0, 1]),
    ],
)
def test_labels_are_matched_by_name_or_number(labels, offered, given, found):
    assert match_labels(labels, offered, given) == found


@pytest.mark.parametrize(
    ("offered", "given"),
    [
        (("neg", "pos"), ()),
        (("LABEL_0", "LABEL_1", "LABEL_2"), ()),
        (("1", "0"), ()),
        (("1 of 2", "2 of 2"), ()),
        (("neg", "pos"), ("neg",)),
        (("neg", "pos"), (0, 0)),
        (("neg", "pos"), (0, 2)),
        (("neg", "pos"), (0, -1)),
        (("bad", "pos"), ()),
    ],
)
def test_labels_without_a_match_are_refused(offered, given):
    with pytest.raises(
        ConfigError, match=r"a different label .* for each of the data's \(bad, good\)"
    ):
        match_labels(("bad", "good"), offered, given)


def test_a_published_classifier_of_a_hub_is_taken_by_its_name(rated, rater, tmp_path, monkeypatch):
    build_hub_cache(tmp_path, {"someone/opinions": rater}, monkeypatch)
    (score,) = Classification(model="someone/opinions").score(rated, untouched(rated))
    (same,) = Classification(model=str(rater)).score(rated, untouched(rated))
    assert score.values.tolist() == same.values.tolist()
    assert "someone/opinions" in score.note


def test_a_model_that_is_not_there_is_said(rated):
    with pytest.raises(ModelError):
        list(Classification(model="nobody/nothing").score(rated, untouched(rated)))
    with pytest.raises(ConfigError, match="model"):
        Classification(model="")


def test_it_refuses_what_has_no_labels(stories, pairs):
    judge = Classification(model="owner/model")
    assert judge.explain_refusal(pairs) == ""
    assert "of the kind text" in judge.explain_refusal(stories)
    assert judge.name == "classifier (owner/model)"
