"""Smoothed labels: they follow the noisy counts, by whatever view of a text tells the labels apart."""

import hashlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.planted_library import KINDS, VIEWS, PlantedLibrary, make_planted_library

from textveil.errors import ConfigError
from textveil.library import Level, Library, smooth_labels
from textveil.library.smoothing import estimate_shares, find_offsets, score_labels
from textveil.mechanism import NoisyCount
from textveil.randomness import Ids, Ints, SeededRandomness, Values

NOISE = NoisyCount(1.0)


def add_noise(counts: Ints, seed: int = 0) -> Values:
    ((_, draws),) = SeededRandomness(seed).open([counts.size]).split_rows(counts.size)
    return NOISE.draw(draws, counts.ravel()).reshape(counts.shape).astype(np.float64)


def smooth(library: Library, level: Level, counts: Values, **options) -> Ids:
    masses = np.maximum(counts, 0).sum(axis=0) + 1
    variance = options.pop("variance", NOISE.variance)
    return smooth_labels(library, level, counts, variance, masses=masses, **options)


def measure(planted: PlantedLibrary, truth: Ids, documents: int = 600, **options) -> float:
    counts = add_noise(planted.count(truth, documents))
    return float((smooth(planted.library, planted.level, counts, **options) == truth).mean())


@pytest.fixture(scope="module")
def planted() -> PlantedLibrary:
    return make_planted_library()


@pytest.mark.parametrize("view", VIEWS)
def test_a_rule_is_found_in_the_view_that_sees_it(view):
    plain = make_planted_library(labels=False)
    truth = plain.kinds[view]
    other = VIEWS[1 - VIEWS.index(view)]
    assert measure(plain, truth, how=view) > 0.95
    assert measure(plain, truth, how=other) < 0.75
    for how in ("both", "best"):
        assert measure(plain, truth, how=how) > 0.95


def test_hints_are_weighed_and_not_believed(planted):
    """The public labels are what words tell: they help where labels are theirs, and harm nobody else."""
    assert measure(planted, planted.kinds["words"], documents=150) > 0.95
    assert measure(planted, planted.kinds["vectors"]) > 0.95


def copy_public_labels(library: Library, level: Level, counts: Values, **_options) -> Ids:
    """A defect: takes the public labels for the truth."""
    assert library.labels is not None
    return library.labels.astype(np.int64)


def test_labels_of_the_house_may_be_others_than_the_public_ones(planted, monkeypatch):
    house = (planted.kinds["words"] + 1) % KINDS
    assert measure(planted, house) > 0.95
    monkeypatch.setitem(globals(), "smooth", copy_public_labels)
    assert measure(planted, planted.kinds["words"]) > 0.95  # nobody would see it here
    assert measure(planted, house) < 0.05


def test_without_noise_it_only_gets_better(planted):
    for view in VIEWS:
        truth = planted.kinds[view]
        counts = planted.count(truth, 5000).astype(np.float64)
        found = smooth(planted.library, planted.level, counts, variance=0.0)
        assert (found == truth).mean() > 0.98


def test_more_noise_is_less_believed(planted):
    truth = planted.kinds["vectors"]
    counts = planted.count(truth, 600).astype(np.float64)
    views = [planted.library.views[view] for view in VIEWS]
    spreads = [
        score_labels(counts, variance, planted.level, views)[0].std(axis=0).max()
        for variance in (0.0, 10.0, 1e4, 1e12)
    ]
    assert spreads[1] > spreads[2] > spreads[3]
    assert spreads[-1] < 1e-3


@pytest.mark.parametrize("balance", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda counts: counts * 0,
        lambda counts: counts * 0 - 5,
        lambda counts: counts * [[1], [0], [1]] - [[0], [9], [0]],
        lambda counts: counts * (np.arange(counts.shape[1]) > 0),
        lambda counts: counts * (np.arange(counts.shape[1]) == 3),
        lambda counts: counts * 1e12,
        lambda counts: counts[:1],
        lambda counts: counts[:2],
        lambda counts: np.repeat(counts, 40, axis=0),
    ],
    ids=[
        "no-counts",
        "all-below-0",
        "no-label",
        "no-cell",
        "one-cell",
        "huge",
        "one-label",
        "two-labels",
        "many-labels",
    ],
)
def test_odd_counts_have_labels_too(planted, change, balance):
    counts = np.asarray(change(planted.count(planted.kinds["words"], 300)), np.float64)
    for variance in (0.0, NOISE.variance, 1e12):
        for how in ("vectors", "words", "both", "best"):
            found = smooth(
                *(planted.library, planted.level, counts),
                how=how,
                variance=variance,
                balance=balance,
            )
            assert found.dtype == np.int64
            assert found.shape == (len(planted.library),)
            assert ((found >= 0) & (found < len(counts))).all()


def test_the_smallest_library(planted):
    cells = np.array([0, 1], np.uint16)
    level = replace(planted.level, cells=cells, sure=np.ones(2, np.float32), map=_keep_two(planted))
    library = replace(
        planted.library,
        **{name: getattr(planted.library, name)[:2] for name in ("texts", "ids", "labels")},
        **{name: getattr(planted.library, name)[:2] for name in ("vectors", "scales", "hints")},
        levels=(level,),
    )
    counts = np.array([[50.0, 0.0], [0.0, 50.0]])
    assert smooth(library, level, counts).tolist() == [0, 1]
    alike = replace(library, vectors=np.ones_like(library.vectors), hints=None)
    assert set(smooth(alike, level, counts, how="vectors").tolist()) <= {0, 1}


def _keep_two(planted: PlantedLibrary):
    own = planted.level.map
    return replace(own, weights=own.weights[:2], offsets=own.offsets[:2])


def test_words_that_a_library_lacks_are_not_asked_for(planted):
    features = replace(planted.library.features, words=None)
    levels = tuple(
        replace(level, map=replace(level.map, weights=level.map.weights[:, : features.width]))
        for level in planted.library.levels
    )
    wordless = replace(planted.library, features=features, levels=levels)
    counts = planted.count(planted.kinds["vectors"], 300).astype(np.float64)
    assert set(wordless.views) == {"vectors", "hints"}
    assert (
        smooth(wordless, wordless.get_level("24"), counts, how="both") == planted.kinds["vectors"]
    ).mean() > 0.95
    with pytest.raises(ConfigError, match="smooth must not be words"):
        smooth(wordless, wordless.get_level("24"), counts, how="words")


def test_views_are_centred_and_of_length_1(planted):
    assert set(planted.library.views) == {"vectors", "words", "hints"}
    for view in planted.library.views.values():
        assert np.allclose(view.mean(axis=0), 0, atol=1e-6)
        assert (view.astype(np.float64) ** 2).sum(axis=1).mean() == pytest.approx(1, abs=1e-5)


# ---- shares ----------------------------------------------------------------------------------------------


def test_shares_are_those_counted_as_far_as_noise_lets_them_be():
    counts, implied = np.array([[300.0, 100.0], [60.0, 40.0]]), np.array([0.5, 0.5])
    counted = np.array([0.8, 0.2])
    assert np.allclose(estimate_shares(counts, 0.0, implied), counted)
    assert np.allclose(estimate_shares(counts, 1e9, implied), implied)
    between = estimate_shares(counts, 5000.0, implied)
    assert implied[0] < between[0] < counted[0]
    assert np.allclose(estimate_shares(-counts, 1.0, implied), implied)
    assert np.allclose(estimate_shares(counts, 0.0, counted), counted)


def test_offsets_give_labels_their_shares():
    rng = np.random.default_rng(2)
    scores, weights = rng.normal(size=(4000, 3)) * 0.2 + [0.9, 0.1, 0.0], rng.random(4000)
    weights /= weights.sum()
    target = np.array([0.2, 0.3, 0.5])
    labels = (scores + find_offsets(scores, weights, target)).argmax(axis=1)
    assert np.bincount(labels, weights) == pytest.approx(target, abs=0.01)


# ---- the same everywhere ---------------------------------------------------------------------------------

PROGRAM = """
import hashlib, sys
import numpy as np
from textveil import Library
from textveil.library import smooth_labels
library, counts = Library.read(sys.argv[1]), np.load(sys.argv[2])
level = library.get_level("24")
found = smooth_labels(library, level, counts, 1.84, masses=counts.sum(axis=0).clip(1))
print(hashlib.sha256(found.tobytes()).hexdigest())
assert "sklearn" not in sys.modules
"""


def test_another_process_finds_the_same_labels_without_scikit_learn(planted, tmp_path):
    counts = add_noise(planted.count(planted.kinds["words"], 300))
    library, file = tmp_path / "a.library", tmp_path / "counts.npy"
    planted.library.save(library)
    np.save(file, counts)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(library), str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    masses = counts.sum(axis=0).clip(1)
    own = smooth_labels(planted.library, planted.level, counts, 1.84, masses=masses)
    assert done.stdout.strip() == hashlib.sha256(own.tobytes()).hexdigest()
