"""A transformer of scikit-learn: cloned, pickled and in pipelines it is as others are, and learns nothing."""

import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the extra `evaluate` is not installed")
import pandas
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from textveil.errors import InputError, UnknownName
from textveil.integrations.sklearn import PrivatizingTransformer

CANARY = "zyxqorvian"
TEXTS = [f"Ingrid hid the money of {CANARY}", "The lawyer paid in Antwerp"] * 6
LABELS = [0, 1] * 6


def veil(**options):
    return PrivatizingTransformer("prompt", options={"protect": {"always": [CANARY]}, **options})


def test_texts_come_out_released_and_each_call_draws_anew():
    drawing = PrivatizingTransformer(epsilon=5).fit(TEXTS)
    first, second = (drawing.transform(TEXTS) for _ in range(2))
    assert first.dtype == object
    assert first.shape == (12,)
    assert list(first) != list(second)
    texts, said = veil().fit(TEXTS).privatize(TEXTS)
    assert CANARY not in " ".join(texts)
    assert said.texts == 12
    assert PrivatizingTransformer().fit([]).transform([]).shape == (0,)


@pytest.mark.parametrize(
    "given", [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), pandas.Series(TEXTS)]
)
def test_columns_of_texts(given):
    assert CANARY not in " ".join(veil().fit_transform(given))


@pytest.mark.parametrize(
    "given",
    ["one text", [1], [None], [["a"]], np.array([["a"]]), pandas.DataFrame({"a": ["b"]}), 3],
)
def test_what_is_no_column_of_texts_is_refused(given):
    with pytest.raises(InputError, match="X must hold texts"):
        veil().fit(TEXTS).transform(given)


@pytest.mark.slow
def test_it_is_cloned_pickled_and_searched_over():
    fitted = veil().fit(TEXTS)
    for each in (clone(fitted), pickle.loads(pickle.dumps(clone(fitted)))):
        assert each.get_params() == fitted.get_params()
        with pytest.raises(NotFittedError):
            each.transform(TEXTS)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.transform(TEXTS).tolist() == fitted.transform(TEXTS).tolist(), (
        "placeholders are the same"
    )
    pipeline = make_pipeline(PrivatizingTransformer(), CountVectorizer(), LogisticRegression())
    assert len(cross_val_score(pipeline, TEXTS, LABELS, cv=2)) == 2
    search = GridSearchCV(
        pipeline, {"privatizingtransformer__epsilon": [5.0, 60.0]}, cv=2, error_score="raise"
    )
    search.fit(TEXTS, LABELS)
    assert search.best_params_["privatizingtransformer__epsilon"] in (5.0, 60.0)


def test_a_search_that_swallows_errors_sees_no_original():
    """With error_score=nan a fold that fails has no score: nothing behind the transformer is fitted on originals."""
    seen = []

    class Sees(CountVectorizer):  # type: ignore[misc]
        def fit_transform(self, X, y=None):
            seen.extend(X)
            return super().fit_transform(X, y)

    failing = PrivatizingTransformer(
        "prompt", options={"protect": {"detectors": ["no such detector"]}}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="fits failed"):
            cross_val_score(
                make_pipeline(failing, Sees(), LogisticRegression()), TEXTS, LABELS, cv=2
            )
    assert seen == []


def test_its_tags_and_the_checks_of_scikit_learn():
    tags = get_tags(PrivatizingTransformer())
    assert tags.non_deterministic
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # most checks are for numbers and say that they are left out
        done = check_estimator(PrivatizingTransformer("prompt"), on_fail=None)
    assert [each["check_name"] for each in done if each["status"] == "failed"] == []
    assert any(each["status"] == "passed" for each in done)


def test_options_are_checked_when_it_is_fitted():
    assert PrivatizingTransformer("nothing").profile == "nothing"
    with pytest.raises(UnknownName):
        PrivatizingTransformer("nothing").fit(TEXTS)
    with pytest.raises(NotFittedError, match="learns nothing"):
        veil().privatize(TEXTS)


def test_its_repr_has_no_text():
    assert CANARY not in repr(PrivatizingTransformer().fit(TEXTS))


def test_no_repr_shows_a_private_list():
    given = {"protect": {"always": [CANARY], "never": [CANARY]}}
    own = PrivatizingTransformer("prompt", options=given)
    assert clone(own).options == given
    later = PrivatizingTransformer("prompt").set_params(options=given)
    for each in (own, later, clone(own), own.fit(TEXTS)):
        pipeline = make_pipeline(each, CountVectorizer())
        search = GridSearchCV(pipeline, {"privatizingtransformer__options": [each.options]})
        for shown in (each, pipeline, search):
            assert CANARY not in repr(shown)
            assert CANARY not in shown._repr_html_()
        assert CANARY not in repr(each.get_params())
    assert "protect" in repr(own), "it says which options differ"
