"""Smoothing: better labels for a synthesized corpus, from that corpus alone.

In: public texts with noisy labels. Out: labels.
Not here: where the labels come from. Nothing private is read: what is done to a release costs
nothing.

The label of a cell is noisy, and cells are not pure. A linear model that is fitted on all texts
knows better which label a text has. Which model does depends on what the labels are about; the one
that agrees most with labels that it has not seen is taken.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from textveil.config.extras import import_library, require
from textveil.errors import ConfigError, quote_short
from textveil.randomness import Floats, Ids

Smoothing = Literal["none", "vectors", "words", "both", "best"]

FOLDS = 3


def smooth_labels(
    texts: Sequence[str], vectors: Floats, labels: Ids, how: Smoothing = "best"
) -> Ids:
    """Returns a label for each text: of a model fitted on the given ones.

    Args:
        texts: n public texts.
        vectors: their sentence vectors, float32 [n, d].
        labels: int64 [n], noisy.
        how: by which features; "best" takes those whose model agrees most with labels that it has
            not seen; "none" keeps the labels.

    Raises:
        ConfigError: there is no such smoother.
        MissingExtra: scikit-learn is not installed.
    """
    if how not in get_args(Smoothing):
        raise ConfigError(
            f"smooth must be {', '.join(get_args(Smoothing))}, got {quote_short(str(how))}"
        )
    counts = np.bincount(labels)
    if how == "none" or (counts > 0).sum() < 2 or counts[counts > 0].min() < FOLDS:
        return labels
    require("sklearn")
    selection: Any = import_library("sklearn.model_selection")
    inputs = _build_features(texts, vectors)
    names = [how] if how != "best" else list(inputs)
    if how == "best":
        agreement = {
            name: selection.cross_val_score(_build_model(), inputs[name], labels, cv=FOLDS).mean()
            for name in names
        }
        names = [max(agreement, key=lambda name: agreement[name])]
    model = _build_model().fit(inputs[names[0]], labels)
    smoothed: Ids = model.predict(inputs[names[0]]).astype(np.int64)
    return smoothed


def _build_features(texts: Sequence[str], vectors: Floats) -> dict[str, Any]:
    words: Any = import_library("sklearn.feature_extraction.text")
    sparse: Any = import_library("scipy.sparse")
    counts = words.TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
    return {
        "vectors": vectors,
        "words": counts,
        "both": sparse.hstack([counts, sparse.csr_matrix(vectors)]).tocsr(),
    }


def _build_model() -> Any:
    linear: Any = import_library("sklearn.svm")
    return linear.LinearSVC(C=0.1, random_state=0)
