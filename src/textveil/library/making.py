"""Making a library: its cells at all levels, from public texts alone.

In: public texts, perhaps with public labels, or sentences that describe classes. Out: `Library`.
Not here: what a library is (`library`), and how a text becomes features (`features`).

Cells must see what a release is to keep. Sentence vectors see topics, words see what no public class
describes, and clusters of both lose little to the better of the two, whatever labels are about.
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from textveil.config.extras import import_library, require
from textveil.errors import ConfigError, InputError, list_names, quote_short
from textveil.library.features import (
    STEPS,
    FeatureMap,
    Features,
    LinearMap,
    WordMap,
    compute_probes,
)
from textveil.library.library import MAX_CELLS, Level, Library, find_line_fault
from textveil.models import SentenceModel, load_sentences
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.table import compute_fingerprints
from textveil.text import check_texts

CellKind = Literal["vectors", "words", "both"]

CPU_FILE = Path("/proc/cpuinfo")

LEVELS = (6, 16, 30, 100)
"""The numbers of cells of the levels, if there are texts enough."""

LEAST_CELL = 8
"""The fewest texts of a cell in the mean: a level that has fewer is left out."""

WORD_AXES = 150
"""The axes of words."""

MAX_WORDS = 20_000
"""The size of the vocabulary of words."""

MOST_COMMON = 0.5
"""The share of texts above which a word tells nothing."""

WORD_WEIGHT = 0.85
"""The length of the words of a text beside a sentence vector of length 1, in clusters of both.

Of 0.5, 0.7, 0.85 and 1, the one that loses least on any of seven kinds of labels of AG News.
"""

CLUSTER_ROUNDS = 50
"""Rounds of k-means: later ones move few texts."""

CLUSTER_SHARE, NAMED_SHARE = 0.3, 0.1
"""The surest share of a cell that readers are given, of clusters, and of labels and classes."""

FIT_ROUNDS, FIT_TOLERANCE = 500, 1e-3
"""When the fit of a logistic regression ends: its labels do not change later."""

FOLDS = 5

LEAST_LABELLED = 2 * FOLDS
"""The fewest texts of a public label."""

MAX_CHARACTERS = 100_000
"""The most characters of a text of a library: a longer one is rather a file than a text."""

ProgressCallback = Callable[[str, int, int], None]
"""Callback for progress: a step's name, the amount done, the total."""

ENCODED_AT_ONCE = 256


def make_library(  # noqa: PLR0913 - most are options, given by keyword
    texts: Sequence[str],
    *,
    source: str,
    licence: str,
    name: str = "library",
    ids: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    classes: Mapping[str, str] | None = None,
    cells: CellKind | None = None,
    levels: Sequence[int] = LEVELS,
    encoder: str | None = None,
    seed: int = 0,
    made_with: Mapping[str, Any] | None = None,
    report: ProgressCallback = lambda *_: None,
) -> Library:
    """Makes a library from public texts.

    Args:
        texts: N public texts; equal ones count once.
        source: what they are from.
        licence: under which they may be passed on.
        name: what statements call the library.
        ids: the id or address of each text in its source; else its number.
        labels: the public label of each text: a level of them, and hints for smoothing.
        classes: a public sentence for each class, by its name: a level of them, and hints where
            there are no labels.
        cells: whether clusters are by sentence vectors, words or both; None for both, and for
            vectors where `classes` are given or texts share no words.
        levels: the numbers of cells; those with fewer than 8 texts in the mean are left out.
        encoder: the folder or hub id of another sentence encoder.
        seed: another seed gives other clusters.
        made_with: what else is remembered of how it was made, such as the model that wrote it.
        report: callback for progress.

    Raises:
        ConfigError: an option is out of range.
        InputError: there are too few texts, or a text is not valid Unicode.
        MissingExtra: scikit-learn is not installed.
    """
    require("sklearn")
    if sys.platform == "linux" and not CPU_FILE.exists():
        # in a container without it joblib prints a traceback, for it cannot count the cores
        os.environ.setdefault("OMP_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    _check_options(cells or "both", levels, classes)
    if reason := find_line_fault(name=name, source=source, licence=licence):
        raise ConfigError(f"a library {reason}")
    texts, ids, labels = _drop_copies(texts, ids, labels)
    label_names = tuple(sorted(set(labels or ())))
    label_ids = None
    if labels is not None:
        _check_labels(labels, label_names)
        label_ids = np.array([label_names.index(label) for label in labels], np.int64)
    model = load_sentences(encoder)
    vectors = _encode(model, texts, report)
    report("cells made", 0, 1)
    features = FeatureMap(
        encoder=model.name,
        encoder_source=encoder,
        probes=compute_probes(model.encode),
        dimension=model.dimension,
        words=_make_words(texts, seed),
    )
    cells = _choose_cells(cells, features, classes)
    all_features = features.compute(texts, vectors)
    made_levels, facts, hints = [], {}, None
    if classes is not None:
        level, hints = _make_class_level(
            features, all_features, _encode_classes(model, classes), classes
        )
        made_levels.append(level)
        if set(classes) == set(label_names) and label_ids is not None:
            order = np.array([label_names.index(class_name) for class_name in classes])
            facts["classes"] = {
                "accuracy": round(float((order[level.cells] == label_ids).mean()), 4)
            }
    if label_ids is not None:
        level, hints = _make_label_level(all_features, label_ids, label_names)
        facts["labels"] = _measure_labels(hints, label_ids)
        made_levels.insert(0, level)
    made_levels += _make_clusters(features, all_features, cells, levels, seed)
    quantized, scales = _quantize(vectors)
    library = Library(
        name=name,
        kind="task" if labels is not None else "domain",
        source=source,
        licence=licence,
        texts=tuple(texts),
        ids=tuple(ids),
        label_names=label_names,
        labels=None if label_ids is None else label_ids.astype(np.int16),
        levels=tuple(made_levels),
        features=features,
        vectors=quantized,
        scales=scales,
        hints=None if hints is None else hints.astype(np.float16),
        fingerprints=compute_fingerprints(texts),
        options={
            "cells": cells,
            "seed": seed,
            "classes": dict(classes or {}),
            **(made_with or {}),
        },
        facts=facts,
    )
    report("cells made", 1, 1)
    return library


def _check_options(cells: str, levels: Sequence[int], classes: Mapping[str, str] | None) -> None:
    if cells not in ("vectors", "words", "both"):
        raise ConfigError(f"cells must be vectors, words or both, got {quote_short(str(cells))}")
    if not all(2 <= level <= MAX_CELLS for level in levels):
        raise ConfigError(f"levels must have 2 to {MAX_CELLS} cells each")
    if classes is not None and len(classes) < 2:
        raise ConfigError("classes must be at least two, each with a sentence that describes it")


def _choose_cells(
    cells: CellKind | None, features: FeatureMap, classes: Mapping[str, str] | None
) -> CellKind:
    """Chooses what clusters see, where it is not said.

    Raises:
        InputError: they are to see words, and texts share none.
    """
    if cells is None:
        return "vectors" if classes is not None or features.words is None else "both"
    if cells != "vectors" and features.words is None:
        raise InputError(
            "cells by words need texts that share words: give other texts, or cells by vectors"
        )
    return cells


def _check_labels(labels: Sequence[str], names: Sequence[str]) -> None:
    if len(names) < 2:
        raise InputError("public labels must be at least two different ones")
    counts = dict.fromkeys(names, 0)
    for label in labels:
        counts[label] += 1
    if rare := [name for name, count in counts.items() if count < LEAST_LABELLED]:
        raise InputError(
            f"each public label needs {LEAST_LABELLED} texts or more, and {list_names(rare)} "
            "has fewer: leave out its texts, or give --classes in place of --label"
        )


def _drop_copies(
    texts: Sequence[str], ids: Sequence[str] | None, labels: Sequence[str] | None
) -> tuple[list[str], list[str], list[str] | None]:
    """Drops empty and repeated texts, with their ids and labels.

    Raises:
        InputError: fewer than two texts are left, or there are not as many ids or labels.
    """
    check_texts(texts)
    for which, values in (("ids", ids), ("labels", labels)):
        if values is not None and len(values) != len(texts):
            raise InputError(
                f"{which} must be as many as texts, got {len(values):,} for {len(texts):,}"
            )
    for number, text in enumerate(texts):
        if len(text) <= MAX_CHARACTERS:
            continue
        raise InputError(
            f"a text of a library has at most {MAX_CHARACTERS:,} characters, and text {number:,} "
            f"has {len(text):,}: leave it out or divide it"
        )
    places = {text.strip(): i for i, text in reversed(list(enumerate(texts)))}.values()
    rows = sorted(i for i in places if texts[i].strip())
    if len(rows) < 2 * LEAST_CELL:
        raise InputError(
            f"a library needs at least {2 * LEAST_CELL} different texts, got {len(rows):,}"
        )
    return (
        [texts[i].strip() for i in rows],
        [str(i + 1) if ids is None else ids[i] for i in rows],
        None if labels is None else [labels[i] for i in rows],
    )


def _encode(model: SentenceModel, texts: Sequence[str], report: ProgressCallback) -> Floats:
    parts = []
    report("texts read", 0, len(texts))
    for start in range(0, len(texts), ENCODED_AT_ONCE):
        chunk = texts[start : start + ENCODED_AT_ONCE]
        parts.append(model.encode(chunk))
        report("texts read", start + len(chunk), len(texts))
    return np.concatenate(parts)


def _quantize(vectors: Floats) -> tuple[Any, Floats]:
    scales = np.maximum(np.abs(vectors).max(axis=1), 1e-9) / 127
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


# ---- blocks of features --------------------------------------------------------------------------


def _make_words(texts: Sequence[str], seed: int) -> WordMap | None:
    """Makes the map of words; None where texts share none."""
    text_features: Any = import_library("sklearn.feature_extraction.text")
    decomposition: Any = import_library("sklearn.decomposition")
    vectorizer = text_features.TfidfVectorizer(
        lowercase=True,
        token_pattern=r"(?u)\b\w\w+\b",
        stop_words="english",
        min_df=2,
        max_df=MOST_COMMON,
        sublinear_tf=True,
        max_features=MAX_WORDS,
    )
    weights = None
    with suppress(ValueError):  # no word is in two texts
        weights = vectorizer.fit_transform(texts)
    if weights is None or weights.shape[1] < 2:
        return None
    axes = min(WORD_AXES, weights.shape[1] - 1, weights.shape[0] - 1)
    with np.errstate(invalid="ignore"):  # a share of no variance, which is not asked for
        svd = decomposition.TruncatedSVD(max(axes, 1), random_state=seed).fit(weights)
    return WordMap(
        words=tuple(vectorizer.get_feature_names_out()),
        rarity=vectorizer.idf_.astype(np.float32),
        axes=svd.components_.T.astype(np.float32),
    )


def _encode_classes(model: SentenceModel, classes: Mapping[str, str]) -> Values:
    """Returns the vector of each class's sentence, float64 [C, d]."""
    directions: Values = model.encode(list(classes.values())).astype(np.float64)
    if not np.abs(directions).sum(axis=1).all():
        raise ConfigError("each class needs a sentence with words that describes it")
    return directions


def _build_head() -> Any:
    linear: Any = import_library("sklearn.linear_model")
    return linear.LogisticRegression(C=1, max_iter=FIT_ROUNDS, tol=FIT_TOLERANCE)


def _convert_head(head: Any) -> LinearMap:
    """Returns a logistic regression as one score for each label."""
    weights, offsets = head.coef_, head.intercept_
    if len(weights) == 1:  # of two labels, only the second has weights
        weights, offsets = np.stack([-weights[0], weights[0]]) / 2, np.array([-1, 1]) * offsets / 2
    return LinearMap.build(weights, offsets)


# ---- levels --------------------------------------------------------------------------------------


def _make_label_level(
    all_features: Features, labels: Ids, names: tuple[str, ...]
) -> tuple[Level, Values]:
    """Makes a cell of each public label; a text is as sure as a model says that never saw it.

    Returns:
        The level, and the probabilities of such models, [N, C].
    """
    selection: Any = import_library("sklearn.model_selection")
    inputs = all_features / STEPS
    odds: Values = selection.cross_val_predict(
        _build_head(), inputs, labels, cv=FOLDS, method="predict_proba"
    )
    level = Level(
        name="labels",
        kind="labels",
        map=_convert_head(_build_head().fit(inputs, labels)),
        cells=labels.astype(np.uint16),
        sure=odds[np.arange(len(labels)), labels].astype(np.float32),
        share=NAMED_SHARE,
        names=names,
    )
    return level, odds


def _measure_labels(odds: Values, labels: Ids) -> dict[str, float]:
    """Measures how well a library's own labels classify texts that they were not learned from."""
    counts = np.bincount(labels)
    return {
        "accuracy": round(float((odds.argmax(axis=1) == labels).mean()), 4),
        "majority": round(float(counts.max() / counts.sum()), 4),
    }


def _make_class_level(
    features: FeatureMap, all_features: Features, directions: Values, classes: Mapping[str, str]
) -> tuple[Level, Values]:
    """Makes a cell of each class: the nearest sentence; a text is as sure as it leads by.

    Returns:
        The level, and the likeness to each sentence, centred over texts and over classes, [N, C].
    """
    names = tuple(classes)
    weights = np.zeros((len(names), features.width))
    weights[:, features.blocks["vectors"]] = directions
    linear = LinearMap.build(weights, np.zeros(len(names)))
    likeness = linear.score(all_features) / STEPS**2
    cells = likeness.argmax(axis=1)
    if empty := [name for i, name in enumerate(names) if i not in cells]:
        raise InputError(
            f"no public text is nearest to the sentence of {list_names(empty)}: describe the "
            "classes anew, or give more texts"
        )
    ordered = np.sort(likeness, axis=1)
    level = Level(
        name="classes",
        kind="classes",
        map=linear,
        cells=cells.astype(np.uint16),
        sure=(ordered[:, -1] - ordered[:, -2]).astype(np.float32),
        share=NAMED_SHARE,
        names=names,
    )
    hints = likeness - likeness.mean(axis=0)
    return level, hints - hints.mean(axis=1, keepdims=True)


def _make_clusters(
    features: FeatureMap, all_features: Features, cells: CellKind, levels: Sequence[int], seed: int
) -> list[Level]:
    """Makes the clusters of all levels, by the blocks that cells are to see."""
    cluster: Any = import_library("sklearn.cluster")
    scales = np.zeros(features.width)
    for name in {"vectors": ("vectors",), "words": ("words",), "both": features.blocks}[cells]:
        scales[features.blocks[name]] = WORD_WEIGHT if cells == "both" and name == "words" else 1.0
    seen = scales > 0
    points = (all_features[:, seen] / STEPS * scales[seen]).astype(np.float32)
    cluster_levels = []
    sizes = sorted({size for size in levels if size * LEAST_CELL <= len(points)})
    for size in sizes or [max(2, len(points) // LEAST_CELL)]:
        means = cluster.KMeans(size, n_init=1, max_iter=CLUSTER_ROUNDS, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer different points than clusters: seen below
            centres = means.fit(points).cluster_centers_.astype(np.float64)
        linear = _measure_nearness(centres, scales)
        used = np.unique(linear.score(all_features).argmax(axis=1))
        if len(used) < 2:
            continue
        centres, linear = centres[used], _measure_nearness(centres[used], scales)
        cells_of_texts = linear.score(all_features).argmax(axis=1)
        distances = ((points - centres[cells_of_texts].astype(np.float32)) ** 2).sum(axis=1)
        cluster_levels.append(
            Level(
                name=str(size),
                kind="clusters",
                map=linear,
                cells=cells_of_texts.astype(np.uint16),
                sure=-distances.astype(np.float32),
                share=CLUSTER_SHARE,
            )
        )
    if not cluster_levels:
        raise InputError("the texts are too much alike to be divided into cells")
    return cluster_levels


def _measure_nearness(centres: Values, scales: Values) -> LinearMap:
    """Returns scores that are highest for the nearest centre, of features times their scales."""
    seen: Flags = scales > 0
    weights = np.zeros((len(centres), len(scales)))
    weights[:, seen] = centres * scales[seen]
    return LinearMap.build(weights, -(centres**2).sum(axis=1) / 2)
