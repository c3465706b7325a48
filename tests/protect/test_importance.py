"""Importance: cosines against numpy by hand, and the saliency of a classifier as scores."""

import numpy as np
import pytest
import torch

from tests.fixtures import NOUNS, gaussian_rows
from tests.models.conftest import SIZE, save, wordpiece
from textveil import models
from textveil.errors import ConfigError, InputError, ModelError
from textveil.protect.importance import Cosine, Listed, Saliency
from textveil.table.embedding import EmbeddingTable
from textveil.text import frequency
from textveil.text.tokens import tokenize

CANARY = "zanzibarquux"


def ask(scorer: Cosine, texts: list[str], queries: list[str]) -> np.ndarray:
    tokens = tokenize(texts)
    return scorer.score(tokens.words, tokens.documents, queries)


@pytest.mark.parametrize("metric", ["chord", "euclidean"])
def test_scores_are_cosines_about_the_mean_row_with_weighted_queries(metric):
    rows = gaussian_rows(60, 8, 7) + 3  # a mean that is far from zero
    table = EmbeddingTable.build(name="shifted", words=NOUNS, vectors=rows, metric=metric)
    if metric == "chord":
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    centred = rows - rows.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    counts = frequency.load_counts()
    total = sum(counts.values())
    weights = [1e-3 / (1e-3 + counts[word] / total) for word in ("river", "lemon")]
    query = weights[0] * unit[NOUNS.index("river")] + weights[1] * unit[NOUNS.index("lemon")]
    expected = unit[[NOUNS.index("stone"), NOUNS.index("river")]] @ query / np.linalg.norm(query)
    found = ask(Cosine(table=table), ["stone River"], ["Which river, and the lemon?"])
    assert found.dtype == np.float32
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_word_is_nearest_to_itself(small_table):
    found = ask(Cosine(table=small_table), [" ".join(NOUNS)] * 2, ["river", "Stone"])
    assert [NOUNS[i] for i in found.reshape(2, 60).argmax(axis=1)] == ["river", "stone"]
    assert found.max() == pytest.approx(1, abs=1e-5)
    assert found.min() >= -1


def test_each_text_has_its_own_query_and_no_other_text_plays_a_part(small_table, monkeypatch):
    texts, queries = (
        ["river stone", "", "stone river lemon", "river"],
        ["lemon", "river", "stone", "lemon"],
    )
    found = ask(Cosine(table=small_table), texts, queries)
    alone = [
        ask(Cosine(table=small_table), [text], [query])
        for text, query in zip(texts, queries, strict=True)
    ]
    assert np.array_equal(found, np.concatenate(alone))
    monkeypatch.setattr("textveil.protect.importance.MAX_PRODUCT_CELLS", 1)
    assert np.array_equal(found, ask(Cosine(table=small_table), texts, queries))


@pytest.mark.parametrize("query", ["", "  \n", "what is the, of it?"])
def test_a_query_that_asks_for_nothing_makes_no_word_important(query, small_table):
    assert ask(Cosine(table=small_table), ["river stone"], [query]).tolist() == [0, 0]


def test_a_row_that_is_the_mean_has_no_direction():
    rows = np.array([[1, 1], [-1, -1], [2, -2], [-2, 2], [0, 0]], np.float32)
    table = EmbeddingTable.build(name="cross", words=NOUNS[:5], vectors=rows, metric="euclidean")
    assert ask(Cosine(table=table), [" ".join(NOUNS[:5])], [NOUNS[0]]) == pytest.approx(
        [1, -1, 0, 0, 0], abs=1e-6
    )


def test_every_word_has_a_score_whatever_it_is(small_table):
    found = ask(
        Cosine(table=small_table), [f"{CANARY} 12 \N{GRINNING FACE} ,"], [f"river {CANARY}"]
    )
    assert found.shape == (4,)
    assert np.isfinite(found).all()


def test_no_texts_have_no_scores(small_table):
    assert ask(Cosine(table=small_table), [], []).shape == (0,)


@pytest.mark.parametrize(
    ("words", "documents", "queries"),
    [
        ([CANARY], [0, 1], []),
        ([CANARY], [0, 1], ["a", "b"]),
        ([CANARY], [0, 2], ["a"]),
        ([CANARY, "b"], [0, 2, 1, 2], ["a", "b", "c"]),
        ([CANARY], [0, 1], CANARY),
        ([CANARY], [0, 1], ["\ud800"]),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_not_shown(
    words, documents, queries, small_table
):
    with pytest.raises(InputError) as caught:
        Cosine(table=small_table).score(words, np.array(documents), queries)
    assert CANARY not in str(caught.value)


def test_with_the_default_table_some_words_reach_one_half_and_most_do_not():
    text = (
        "The pronounced rainy season in the steppe is usually observed in the months of July, August and September. "
        "The population of the capital grew by a third, and most of its people worked in factories."
    )
    tokens = tokenize([text])
    found = Cosine().score(
        tokens.words, tokens.documents, ["Which months make up the rainy season?"]
    )
    important = {word for word, score in zip(tokens.words, found, strict=True) if score >= 0.5}
    assert {"months", "rainy"} <= important
    assert important.isdisjoint({"population", "capital", "factories", "people", "third"})


def test_saliency_is_that_of_the_classifier_and_asks_no_query(tmp_path):
    folder = save(
        tmp_path / "classes",
        "BertForSequenceClassification",
        wordpiece(),
        **SIZE,
        max_position_embeddings=128,
    )
    tokens = tokenize(["maria met john at acme corp", "", "old town"])
    found = Saliency(source=str(folder)).score(tokens.words, tokens.documents, ["x", "", "y"])
    own = models.load_classifier(folder).compute_saliency(models.Ragged.build(tokens))
    assert np.array_equal(found, own)
    assert found.max() == 1
    with pytest.raises(InputError):
        Saliency(source=str(folder)).score(tokens.words, tokens.documents, ["x"])
    with pytest.raises(ModelError):
        Saliency(source="no/such/model").score(tokens.words, tokens.documents, ["x", "", "y"])
    torch.manual_seed(1)
    again = Saliency(source=str(folder)).score(tokens.words, tokens.documents, ["", "", ""])
    assert np.array_equal(found, again)


def test_words_of_a_list_are_important_whatever_their_casing():
    found = Listed(words=("Splendid", "dull")).score(
        ["A", "SPLENDID", "day", "dull"], np.array([0, 2, 4]), ["", ""]
    )
    assert found.tolist() == [-np.inf, 1, -np.inf, 1]


@pytest.mark.parametrize("words", [("two words",), ("",), ("New York", " "), ("end.",), (3,)])
def test_a_list_of_important_words_holds_single_words(words):
    with pytest.raises(ConfigError, match=r"protect\.important must"):
        Listed(words=words)
