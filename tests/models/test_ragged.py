"""Words as a network gets them: what is no list of words, and the space before a word in every family."""

import numpy as np
import pytest

from textveil.errors import InputError
from textveil.models import Ragged
from textveil.models.networks import Model, load
from textveil.models.ragged import PROGRESS_LISTENER, PieceSequence, yield_batches
from textveil.text.tokens import tokenize


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["canary met John"], "words must be a sequence of strings, got str"),
        ("canary", "words must be"),
        ([["a", None]], "word 1 is of type NoneType"),
        ([["\ud800canary"]], "word 0 has a lone surrogate"),
    ],
)
def test_texts_that_are_no_lists_of_words_are_refused_without_showing_them(texts, says):
    with pytest.raises(InputError, match=says) as caught:
        Ragged.join(texts)
    assert "canary" not in str(caught.value)


def test_only_the_words_of_tokenize_are_words_as_they_stand():
    with pytest.raises(InputError, match=r"tokens must be Tokens \(tokenize\), got list"):
        Ragged.build(["canary"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("family", "job"),
    [
        ("bert-lm", "masked-lm"),
        ("roberta-lm", "masked-lm"),
        ("gpt2-lm", "causal-lm"),
        ("llama-lm", "causal-lm"),
        ("xlmr-tagger", "tagger"),
    ],
)
def test_words_have_the_pieces_that_they_have_in_their_text(family, job, folders):
    model = load(job, folders[family])
    text = " " * (model.spaces == "given") + "maria met john. the doctor saw lisbon."
    assert pieces(model, text) == model.tokenizer.encode(text, add_special_tokens=False).tokens


def pieces(model: Model, text: str) -> list[str | None]:
    cut = PieceSequence.build(model, Ragged.build(tokenize([text])))
    return [model.tokenizer.id_to_token(piece) for piece in cut.ids.tolist()]


def test_who_listens_is_told_of_each_batch_and_at_the_end_of_all():
    lengths = np.array([3, 5, 2, 5])
    heard: list[tuple[int, int]] = []
    token = PROGRESS_LISTENER.set(lambda done, total: heard.append((done, total)))
    try:
        made = [which.tolist() for which in yield_batches(lengths, 6)]
    finally:
        PROGRESS_LISTENER.reset(token)
    assert made == [[1], [3], [0, 2]]
    assert heard == [(5, 15), (10, 15), (15, 15)]
