"""Calibration: what is counted against logits sorted by hand, words that are asked about, and stored bounds."""

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil.errors import InputError
from textveil.models import (
    LogitRange,
    Ragged,
    adapters,
    load_context,
    load_stored_bound,
    load_stored_range,
    measure_logits,
)
from textveil.models.calibration import QUANTILES
from textveil.table.embedding import EmbeddingTable, load_table

TEXTS = [
    ["the", "doctor", "saw", "a", "patient", "in", "lisbon"],
    ["maria", "met", "john", "."],
    [],
]


@pytest.fixture(scope="module")
def context(folders):
    table = EmbeddingTable.build(name="nouns", words=NOUNS, vectors=gaussian_rows(len(NOUNS), 4, 0))
    return load_context(table, folders["bert-lm"])


@pytest.mark.parametrize("positions", [None, np.array([9, 2, 3])])
def test_what_is_counted_is_what_the_model_says(positions, context):
    texts = Ragged.join(TEXTS)
    asked = (
        np.array([1, 2, 4, 6, 7, 8, 9]) if positions is None else positions
    )  # the others are on the public list
    logits = context.compute_logits(texts, asked).astype(np.float64)
    found = measure_logits(context, texts, positions=positions)
    assert (found.model, found.table, found.positions) == ("bert-lm", "nouns", len(asked))
    assert found.largest == pytest.approx(logits.max(), abs=1e-4)
    for name, values in (("candidates", logits.ravel()), ("best", logits.max(axis=1))):
        counts = getattr(found, name)
        assert sum(counts) == values.size
        edges = found.lowest + found.width * np.arange(len(counts) + 1)
        assert edges[0] <= values.min() + 1e-4
        for share, value in found.compute_quantiles()[name].items():
            exact = np.sort(values)[int(np.ceil(share * values.size)) - 1]
            assert exact - 1e-4 <= value <= min(exact + found.width, logits.max()) + 1e-4
        inside = np.histogram(values, edges)[0]
        assert (
            np.abs(np.cumsum(inside) - np.cumsum(counts)).max() <= 1
        )  # one may lie on an edge but for rounding
    assert found.lowest % found.width == 0


def test_progress_reaches_the_number_of_words(context):
    told: list[tuple[str, int, int]] = []
    measure_logits(
        replace(context, batch=16), Ragged.join(TEXTS), report=lambda *step: told.append(step)
    )
    assert [total for _, _, total in told] == [7] * len(told)
    assert told[-1][1] == 7
    assert len(told) > 1


def test_a_range_survives_json_and_its_quantiles_with_it(context):
    found = measure_logits(context, Ragged.join(TEXTS))
    document = json.loads(json.dumps(found.to_json()))
    assert LogitRange.from_json(document) == found
    assert [float(share) for share in document["quantiles"]["best"]] == list(QUANTILES)
    assert "doctor" not in json.dumps(document) + repr(found)
    broken: list[Any] = [
        {},
        [],
        *({**document, **wrong} for wrong in ({"width": 1}, {"best": 3}, {"best": ["x"]})),
    ]
    for each in broken:
        with pytest.raises(InputError, match="not a range of logits"):
            LogitRange.from_json(each)


def test_texts_without_a_word_to_hide_are_refused(context):
    for words in ([], ["the", "and", "."]):
        with pytest.raises(InputError, match=r"^the texts have no word outside the public list"):
            measure_logits(context, Ragged.join([words]))


@pytest.mark.parametrize("name", ["minilm", "minilm-s"])
def test_shipped_tables_have_a_bound_that_belongs_to_the_shipped_adapter(name):
    found = load_stored_range(load_table(name))
    assert found is not None
    assert load_stored_bound(load_table(name)) == found.largest
    assert load_stored_bound(load_table(name, metric="euclidean").project(16)) == found.largest
    assert load_stored_bound(load_table(name), "owner/name") is None
    file = files("textveil") / "data" / "logits" / f"{name}.json"
    assert (
        json.loads(file.read_text(encoding="utf-8"))["adapter"]
        == adapters.read_manifest("masked-lm")["files"]
    )
    assert sum(found.best) == found.positions >= 1000
    assert sum(found.candidates) == found.positions * len(load_table(name))


def test_other_tables_have_none(context):
    assert load_stored_bound(load_table("minilm-wordpiece")) is None
    own = EmbeddingTable.build(name="minilm", words=NOUNS, vectors=gaussian_rows(len(NOUNS), 4, 0))
    assert load_stored_bound(own) is None
