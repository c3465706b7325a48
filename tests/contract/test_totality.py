"""Nothing passes unprotected by accident: every mechanism, words that no table has, budgets small and large."""

import pytest

from tests.fixtures import fit
from textveil.config import registry
from textveil.config.sections import WordsOptions
from textveil.errors import BudgetError, ConfigError
from textveil.pipeline.privatizer import Privatizer
from textveil.table.embedding import EmbeddingTable
from textveil.text.public import get_stopwords
from textveil.text.released import Kind

STRANGE = [
    "Zyqxorvian",
    "日",
    "本",
    "12:30",
    "😀",
    "👩‍👩‍👧‍👦",
    "jane.doe@example.org",
    "https://example.org/private?token=1",
    "+4915123456",
    "שלום",
    "नमस्ते",
    "x̧̣",
    "kvxz" * 50,
    "\x07",
    "\u200b",
    "ﬁ",
    "İ",
]
TEXT = " ".join(STRANGE)


@pytest.mark.filterwarnings("ignore:.*bounds nothing")
@pytest.mark.parametrize("unit", ["word", "wordpiece"])
@pytest.mark.parametrize("epsilon", [0, 8, 1e6])
@pytest.mark.parametrize("name", registry.list_names("mechanism"))
def test_no_unknown_word_is_shown(
    name: str, epsilon: float, unit: str, pieces_table: EmbeddingTable
) -> None:
    if unit == "wordpiece":
        assert pieces_table.pieces is not None
        tokenizer = pieces_table.pieces.tokenizer
        words = [
            piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1])
        ]
        # One-letter pieces are words of such a table: a short word may well come out as it went in.
        table = EmbeddingTable.build(
            name="all-pieces",
            words=words,
            vectors=pieces_table.pieces.vectors,
            pieces=pieces_table.pieces,
        )
    else:
        table = pieces_table
    table = fit(name, table) if unit == "word" else table
    refused = {
        ("codebook", "wordpiece"): ConfigError,
        ("santext+", "wordpiece"): ConfigError,
        ("dp-mlm", "wordpiece"): ConfigError,
        ("cape", "wordpiece"): BudgetError if epsilon == 8 else None,
    }
    if expected := refused.get((name, unit)):
        options = WordsOptions(unit=unit)  # type: ignore[arg-type]
        with pytest.raises(expected) as error:
            Privatizer(name, epsilon=epsilon, table=table, words=options).privatize(TEXT)
        assert not any(word in str(error.value) for word in STRANGE if len(word) > 3)
        return
    privatizer = Privatizer(name, epsilon=epsilon, table=table, words=WordsOptions(unit=unit))  # type: ignore[arg-type]
    result = privatizer.privatize(TEXT)
    known = {word.removeprefix("##") for word in table.words}
    for item, word in zip(result.released.items, result.private.words, strict=True):
        if item.kind is Kind.VERBATIM:
            assert item.text in get_stopwords()
        elif unit == "word":
            assert item.text in known or item.kind is Kind.PLACEHOLDER
            assert word.lower() not in item.text.lower()
        elif len(word) > 3 and not word.isascii():
            assert word.lower() not in item.text.lower()
    for word in STRANGE[:1] + STRANGE[3:9]:
        assert unit == "wordpiece" or word.lower() not in result.text.lower()


def test_keep_is_the_one_way_out_and_says_so(pieces_table: EmbeddingTable) -> None:
    """The twin that leaks: with the papers' own rule the same check finds every unknown word."""
    privatizer = Privatizer("noise", epsilon=8, table=pieces_table, words=WordsOptions(oov="keep"))
    result = privatizer.privatize(TEXT)
    assert "zyqxorvian" in result.text
    assert result.guarantee.kind == "none"
    assert "oov=keep" in result.guarantee.headline()
