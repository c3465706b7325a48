"""Models of judges: what they compute in. The device cpu:0 is torch's."""

import numpy as np
import pytest
import torch

from textveil.models import Ragged, load_context, load_reader, load_sentences
from textveil.table.embedding import load_table
from textveil.text.tokens import tokenize
from textveil_bench.tasks import judge_models

TEXTS = [
    "A splendid film, and a long one.",
    "The report was sent to the board on Monday.",
    "who wrote it",
]
QUESTIONS = ["Who wrote the report?"]
READ = ["The report was written by the council, and is long."]


@pytest.mark.slow
def test_what_is_quick_is_nearly_the_same(monkeypatch):
    """In bfloat16, whether or not this processor is quick in it."""
    monkeypatch.setattr(judge_models, "choose_precision", lambda: "bfloat16")
    encoder, reader = load_sentences(device="cpu:0"), load_reader(device="cpu:0")
    exact, read = encoder.encode(TEXTS), reader.answer(QUESTIONS, READ)
    with judge_models.reduce_precision():
        assert torch.is_autocast_enabled("cpu")
        near, found = encoder.encode(TEXTS), reader.answer(QUESTIONS, READ)
    assert not torch.is_autocast_enabled("cpu")
    assert (exact * near).sum(axis=1).min() > 0.999
    assert np.abs(exact - near).max() > 1e-5, "no number is another: nothing was quick"
    assert [each.text for each in found] == [each.text for each in read] != [""]


@pytest.mark.slow
def test_the_last_layer_of_a_language_model_stays_exact(monkeypatch):
    """Logits of bfloat16 alone would be multiples of 1/16 or more: many words at one place."""
    monkeypatch.setattr(judge_models, "choose_precision", lambda: "bfloat16")
    context = load_context(load_table("minilm-s"), device="cpu:0")
    texts = Ragged.build(tokenize(["the film is good"]))
    exact = context.compute_logits(texts, np.arange(4))
    with judge_models.reduce_precision():
        near = context.compute_logits(texts, np.arange(4))
    assert near.dtype == np.float32
    assert 1e-5 < np.abs(exact - near).max() < 0.5
    assert len(np.unique(near)) > 0.99 * len(np.unique(exact))


def test_a_processor_without_instructions_for_it_takes_float32(monkeypatch):
    judge_models.choose_precision.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True})
    try:
        assert judge_models.choose_precision() == "float32"
        with judge_models.reduce_precision():
            assert not torch.is_autocast_enabled("cpu")
    finally:
        judge_models.choose_precision.cache_clear()
