"""Making a library: its cells at all levels, from public texts alone.

In: public texts, perhaps with public labels, or sentences that describe classes. Out: `Library`.
Not here: what a library is (`library`), and how a text becomes features (`features`).

Cells must see what a release is to keep. Clusters of sentence vectors see topics; clusters of words
see what no public class describes; classes and labels see what a user names.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
    round_features,
)
from textveil.library.library import MAX_CELLS, Level, Library, find_line_fault
from textveil.models import SentenceModel, load_sentences
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.table import compute_fingerprints
from textveil.text import check_texts

CellKind = Literal["vectors", "words", "both"]

LEVELS = (6, 10, 30, 100)
"""The numbers of cells of the levels, if there are texts enough."""

LEAST_CELL = 8
"""The fewest texts of a cell in the mean: a level that has fewer is left out."""

WORD_AXES = 150
"""The axes of words."""

MAX_WORDS = 20_000
"""The size of the vocabulary of words."""

CLASS_SCALE = 4.0
"""The factor of likeness to classes beside a sentence vector (trial: 4)."""

HEAD_SCALE, HEAD_RANGE = 3.0, 1.0
"""The factor and the range of scores of labels beside a sentence vector."""

CLUSTER_SHARE, CLASS_SHARE = 0.3, 0.1
"""The surest share of a cell that readers are given, of clusters and of classes."""

SURE_LABEL = 0.9
"""The cross-validated probability of its label from which a text is a sure one."""

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
    cells: CellKind = "vectors",
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
        labels: the public label of each text: cells that tell labels apart, and a level of them.
        classes: a public sentence for each class, by its name: cells that tell classes apart, and
            a level of them.
        cells: whether clusters are by sentence vectors, words or both.
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
    _check_options(cells, levels, classes)
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
        words=None if cells == "vectors" else _make_words(texts, seed),
        classes=None if classes is None else _make_classes(model, vectors, classes),
        head=None if label_ids is None else _make_head(vectors, label_ids),
        scales={"classes": CLASS_SCALE, "head": HEAD_SCALE},
    )
    all_features = features.compute(texts, vectors)
    made_levels, facts = [], {}
    if label_ids is not None:
        level, facts["labels"] = _make_label_level(features, all_features, label_ids, label_names)
        made_levels.append(level)
    if classes is not None:
        level = _make_class_level(features, all_features, tuple(classes))
        made_levels.append(level)
        if set(classes) == set(label_names) and label_ids is not None:
            order = np.array([label_names.index(class_name) for class_name in classes])
            facts["classes"] = {
                "accuracy": round(float((order[level.cells] == label_ids).mean()), 4)
            }
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


def _make_words(texts: Sequence[str], seed: int) -> WordMap:
    text_features: Any = import_library("sklearn.feature_extraction.text")
    decomposition: Any = import_library("sklearn.decomposition")
    vectorizer = text_features.TfidfVectorizer(
        lowercase=True,
        token_pattern=r"(?u)\b\w\w+\b",
        stop_words="english",
        min_df=2,
        max_features=MAX_WORDS,
    )
    weights = None
    with suppress(ValueError):  # no word is in two texts
        weights = vectorizer.fit_transform(texts)
    if weights is None or weights.shape[1] < 2:
        raise InputError(
            "cells by words need texts that share words: give other texts, or cells by vectors"
        )
    axes = min(WORD_AXES, weights.shape[1] - 1, weights.shape[0] - 1)
    with np.errstate(invalid="ignore"):  # a share of no variance, which is not asked for
        svd = decomposition.TruncatedSVD(max(axes, 1), random_state=seed).fit(weights)
    return WordMap(
        words=tuple(vectorizer.get_feature_names_out()),
        rarity=vectorizer.idf_.astype(np.float32),
        axes=svd.components_.T.astype(np.float32),
    )


def _make_classes(model: SentenceModel, vectors: Floats, classes: Mapping[str, str]) -> LinearMap:
    """Returns the likeness to the sentences of classes, centred over the library."""
    directions = model.encode(list(classes.values())).astype(np.float64)
    if not np.abs(directions).sum(axis=1).all():
        raise ConfigError("each class needs a sentence with words that describes it")
    return LinearMap.build(directions, -(vectors.astype(np.float64) @ directions.T).mean(axis=0))


def _make_head(vectors: Floats, labels: Ids) -> LinearMap:
    return _convert_head(_fit_head(round_features(vectors) / STEPS, labels))


def _fit_head(features: Values, labels: Ids) -> Any:
    linear: Any = import_library("sklearn.linear_model")
    return linear.LogisticRegression(C=10, max_iter=500).fit(features, labels)


def _convert_head(head: Any) -> LinearMap:
    """Returns a logistic regression as one score for each label."""
    weights, offsets = head.coef_, head.intercept_
    if len(weights) == 1:  # of two labels, only the second has weights
        weights, offsets = np.stack([-weights[0], weights[0]]) / 2, np.array([-1, 1]) * offsets / 2
    return LinearMap.build(weights, offsets)


# ---- levels --------------------------------------------------------------------------------------


def _make_label_level(
    features: FeatureMap, all_features: Features, labels: Ids, names: tuple[str, ...]
) -> tuple[Level, dict[str, Any]]:
    """Makes a cell of each public label; a text is as sure as a head says that never saw it."""
    selection: Any = import_library("sklearn.model_selection")
    linear: Any = import_library("sklearn.linear_model")
    block = features.blocks["vectors"]
    inputs = all_features[:, block] / STEPS
    odds = selection.cross_val_predict(
        linear.LogisticRegression(C=10, max_iter=500),
        inputs,
        labels,
        cv=FOLDS,
        method="predict_proba",
    )
    head = _convert_head(_fit_head(inputs, labels))
    sure = odds[np.arange(len(labels)), labels].astype(np.float32)
    level = Level(
        name="labels",
        kind="labels",
        map=_place(head.weights, head.offsets, block, features.width),
        cells=labels.astype(np.uint16),
        sure=sure,
        share=round(float((sure > SURE_LABEL).mean()), 4),
        names=names,
    )
    counts = np.bincount(labels)
    return level, {
        "accuracy": round(float((odds.argmax(axis=1) == labels).mean()), 4),
        "majority": round(float(counts.max() / counts.sum()), 4),
    }


def _make_class_level(
    features: FeatureMap, all_features: Features, names: tuple[str, ...]
) -> Level:
    """Makes a cell of each class: the nearest sentence."""
    block = features.blocks["classes"]
    identity = np.eye(len(names), dtype=np.int64) * STEPS
    linear = _place(identity, np.zeros(len(names), np.int64), block, features.width)
    scores = linear.score(all_features)
    cells = scores.argmax(axis=1)
    if len(set(cells.tolist())) < len(names):
        empty = [name for i, name in enumerate(names) if i not in cells]
        raise InputError(
            f"no public text is nearest to the sentence of {list_names(empty)}: describe the "
            "classes anew, or give more texts"
        )
    ordered = np.sort(scores, axis=1)
    return Level(
        name="classes",
        kind="classes",
        map=linear,
        cells=cells.astype(np.uint16),
        sure=((ordered[:, -1] - ordered[:, -2]) / STEPS**2).astype(np.float32),
        share=CLASS_SHARE,
        names=names,
    )


def _make_clusters(
    features: FeatureMap, all_features: Features, cells: CellKind, levels: Sequence[int], seed: int
) -> list[Level]:
    """Makes the clusters of all levels, by the blocks that cells are to see."""
    cluster: Any = import_library("sklearn.cluster")
    left_out = {"vectors": ("words",), "words": ("vectors",), "both": ()}[cells]
    seen = np.ones(features.width, bool)
    for name, block in features.blocks.items():
        seen[block] = name not in left_out
    points = (all_features[:, seen] / STEPS).astype(np.float32)
    cluster_levels = []
    sizes = sorted({size for size in levels if size * LEAST_CELL <= len(points)})
    for size in sizes or [max(2, len(points) // LEAST_CELL)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer different points than clusters: seen below
            means = cluster.KMeans(size, n_init=3, random_state=seed).fit(points)
        centres = means.cluster_centers_.astype(np.float64)
        linear = _measure_nearness(centres, seen)
        used = np.unique(linear.score(all_features).argmax(axis=1))
        if len(used) < 2:
            continue
        centres, linear = centres[used], _measure_nearness(centres[used], seen)
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


def _measure_nearness(centres: Values, seen: Flags) -> LinearMap:
    """Returns scores that are highest for the nearest centre; `seen` says of which features."""
    weights = np.zeros((len(centres), len(seen)))
    weights[:, seen] = centres
    return LinearMap.build(weights, -(centres**2).sum(axis=1) / 2)


def _place(weights: Any, offsets: Any, block: slice, width: int) -> LinearMap:
    """Widens the weights of one block to all features."""
    wide = np.zeros((len(weights), width), np.int64)
    wide[:, block] = weights
    return LinearMap(weights=wide, offsets=offsets)
