"""Words as a network gets them: what is no list of words."""

import pytest

from textveil.encoder import Ragged
from textveil.errors import InputError


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["canary met John"], "words must be a sequence of strings, not str"),
        ("canary", "words must be"),
        ([["a", None]], "word 1 is of type NoneType"),
        ([["\ud800canary"]], "word 0 holds a lone surrogate"),
    ],
)
def test_texts_that_are_no_lists_of_words_are_refused_without_showing_them(texts, says):
    with pytest.raises(InputError, match=says) as caught:
        Ragged.join(texts)
    assert "canary" not in str(caught.value)


def test_only_the_words_of_tokenize_are_words_as_they_stand():
    with pytest.raises(InputError, match="tokens must be what tokenize gives, not list"):
        Ragged.of(["canary"])  # type: ignore[arg-type]
