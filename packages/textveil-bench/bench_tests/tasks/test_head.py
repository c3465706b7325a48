"""Heads: what they see, what they learn, that they learn it once, and from originals alone."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bench_tests.tasks.conftest import untouched
from textveil.errors import ConfigError
from textveil.text.frequency import load_counts
from textveil_bench.examples import DataSet, Example
from textveil_bench.tasks import labelled, sentence_vectors
from textveil_bench.tasks.head import Head, compute_overlaps, fit


def head(train: DataSet, folder, **options) -> Head:
    return Head(train=lambda: train, folder=folder, **options)


def test_a_head_tells_the_labels_of_texts_that_it_has_not_seen(learned, judged, tmp_path):
    (score,) = head(learned, tmp_path).score(judged, untouched(judged))
    assert score.values.mean() >= 0.85
    assert (score.metric, score.chance, score.headline) == ("accuracy", 0.5, True)


def test_releases_are_judged_and_not_originals(learned, judged, trial, tmp_path):
    """Released as the other opinion, every text gets the other label."""
    swap = dict(
        zip(
            ("tedious", "dreadful", "clumsy", "dull"),
            ("splendid", "charming", "delightful", "moving"),
            strict=True,
        )
    )
    swap |= {good: bad for bad, good in swap.items()}
    released = [
        " ".join(swap.get(word, word) for word in each.texts[0].split()) for each in judged.examples
    ]
    tried = [trial(example, text) for example, text in zip(judged.examples, released, strict=True)]
    (score,) = head(learned, tmp_path).score(judged, tried)
    assert score.values.mean() <= 0.15


def test_a_head_is_fitted_once_and_anew_where_its_file_is_broken(
    learned, judged, tmp_path, monkeypatch
):
    (first,) = head(learned, tmp_path).score(judged, untouched(judged))
    files = {path.name.partition("-")[0]: path for path in tmp_path.iterdir()}
    assert files.keys() == {"features", "head"}
    monkeypatch.setattr(LogisticRegression, "fit", lambda *given: pytest.fail("it is fitted again"))
    (second,) = head(learned, tmp_path).score(judged, untouched(judged))
    np.testing.assert_array_equal(first.values, second.values)
    files["head"].write_bytes(b"broken")
    with pytest.raises(pytest.fail.Exception, match="fitted again"):
        list(head(learned, tmp_path).score(judged, untouched(judged)))


def test_another_penalty_has_another_head_on_the_same_features(learned, judged, tmp_path):
    for strength in (0.5, 50.0):
        list(head(learned, tmp_path, C=strength).score(judged, untouched(judged)))
    names = sorted(path.name.partition("-")[0] for path in tmp_path.iterdir())
    assert names == ["features", "head", "head"]


def test_fewer_rows_are_drawn_alike_each_time_and_have_features_of_their_own(learned, tmp_path):
    few, again = (labelled.select_training_rows(learned, 10) for _ in range(2))
    assert [each.texts for each in few.examples] == [each.texts for each in again.examples]
    assert len(few) == 10
    order = [learned.examples.index(each) for each in few.examples]
    assert order == sorted(order) != list(range(10))


def test_a_label_without_a_row_is_refused(learned, tmp_path):
    one = DataSet(
        **{**vars(learned), "examples": tuple(each for each in learned.examples if each.label)}
    )
    with pytest.raises(
        ConfigError,
        match="each of the 2 labels of opinions needs a training row, and 1 lack one",
    ):
        list(head(one, tmp_path).score(learned, untouched(learned)))


def test_rows_of_other_labels_or_fields_are_refused(learned, judged, pairs, tmp_path):
    for other in (DataSet(**{**vars(judged), "labels": ("good", "bad")}), pairs):
        with pytest.raises(ConfigError, match="must have its labels and fields"):
            list(head(learned, tmp_path).score(other, untouched(other)))


def test_a_head_refuses_what_has_no_label_for_a_text_or_two(
    learned, stories, questions, pairs, judged, tmp_path
):
    judge = head(learned, tmp_path)
    assert judge.explain_refusal(judged) == judge.explain_refusal(pairs) == ""
    assert "stories is of the kind text" in judge.explain_refusal(stories)
    assert "facts is of the kind reading" in judge.explain_refusal(questions)


# ---- pairs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", [True, False])
def test_the_features_of_a_pair(reader, pairs, tmp_path):
    texts = [example.texts for example in pairs.examples]
    found = head(pairs, tmp_path, reader=reader).compute_features(texts)
    one, other = (sentence_vectors.encode([each[i] for each in texts]) for i in (0, 1))
    size = one.shape[1]
    assert found.shape == (len(texts), 4 * size + 2 + reader)
    np.testing.assert_allclose(found[:, :size], one, atol=1e-6)
    np.testing.assert_allclose(found[:, size : 2 * size], other, atol=1e-6)
    np.testing.assert_allclose(found[:, 2 * size : 3 * size], abs(one - other), atol=1e-6)
    np.testing.assert_allclose(
        found[:, 3 * size : 4 * size].sum(axis=1) / math.sqrt(size), found[:, 4 * size], rtol=1e-4
    )
    own = np.array([i == j for i in range(3) for j in range(3)])
    assert (found[own, 4 * size :].min(axis=0) > found[~own, 4 * size :].max(axis=0)).all(), (
        "answers are nearer"
    )


def test_pairs_are_learned(pairs, tmp_path):
    (score,) = head(pairs, tmp_path, reader=False, C=100.0).score(pairs, untouched(pairs))
    assert score.values.mean() == 1
    assert score.chance == pytest.approx(6 / 9)


def test_overlap_is_the_share_of_the_firsts_words_by_rarity():
    total = sum(load_counts().values())
    whale, the = (math.log(total / load_counts()[word]) for word in ("whale", "the"))
    found = compute_overlaps(
        [
            ("The whale?", "a WHALE"),
            ("The whale", "the, the"),
            ("whale", "no"),
            ("?!", "whale"),
            ("", ""),
        ]
    )
    np.testing.assert_allclose(found, [whale / (whale + the), the / (whale + the), 0, 0, 0])


# ---- the fit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3])
def test_coefficients_guess_as_the_regression_does(count):
    rng = np.random.default_rng(count)
    features, labels = rng.normal(size=(80, 4)).astype(np.float32), rng.integers(count, size=80)
    found = fit(features, labels.tolist(), 0, 1.0)
    assert found["coefficients"].shape == (4, count)
    model = LogisticRegression(C=1.0, max_iter=1000).fit(features.astype(np.float64), labels)
    logits = features @ found["coefficients"] + found["intercept"]
    np.testing.assert_array_equal(logits.argmax(axis=1), model.predict(features))


def test_numbers_count_in_units_of_their_spread():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 3)).astype(np.float32)
    labels = (features.sum(axis=1) > 0).astype(int).tolist()
    larger = features * np.array([1, 1, 100], np.float32)
    found, scaled = (fit(each, labels, 1, 1.0)["coefficients"] for each in (features, larger))
    np.testing.assert_allclose(scaled * [[1], [1], [100]], found, rtol=1e-3)
    still = fit(features * np.array([1, 1, 0], np.float32), labels, 1, 1.0)["coefficients"]
    assert np.isfinite(still).all(), "a number that never changes"


def test_the_name_tells_the_encoder_and_loads_nothing(learned, tmp_path):
    assert head(learned, tmp_path).name == "head (all-MiniLM-L6-v2)"
    assert head(learned, tmp_path, encoder="owner/model").name == "head (owner/model)"
    assert head(learned, tmp_path, encoder=str(tmp_path)).name == f"head ({tmp_path.name})"


def test_examples_are_not_in_its_repr(learned, tmp_path):
    assert "orchard" not in repr(head(learned, tmp_path)) + repr(Example(texts=("orchard",)))
