"""Attribute inference: labels that words tell, labels that nothing tells, and texts that must not be learned from."""

import numpy as np
import pytest
from scipy.stats import binom
from tests.fixtures import NOUNS, Stub

from textveil.config.frozen import dump_options
from textveil.errors import ConfigError
from textveil.evaluate.attack.attack_input import Case
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil_bench.attack.attribute import Attribute, assign_folds, classify
from textveil_bench.attack.report import attack

CANARY = "Zyxqorvian"
FEW = 1e-6
"""The false-alarm rate of tests that count."""


def infer(privatizer, texts, labels, **options):
    """The outcomes by what they were learned from, and guessed from."""
    case = Case.create(privatizer, texts)
    outcomes = Attribute(labels=tuple(labels), **options).run(case, rng=SeededRandomness(1))
    return {(o.setting["learned from"], o.setting["guessed from"]): o for o in outcomes}


def written(count, seed=0):
    """Texts of one public and two private words, whose label is told by the first private word."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, count)
    first = np.where(labels == 0, draw.integers(0, 3, count), draw.integers(3, 6, count))
    texts = [
        f"the {NOUNS[a]} and {NOUNS[b]}"
        for a, b in zip(first, draw.integers(6, 60, count), strict=True)
    ]
    return texts, [["blue", "red"][label] for label in labels]


def test_a_label_that_words_tell_is_learned_from_them_alone(small_table, echo):
    texts, labels = written(200)
    found = infer(Privatizer(echo, epsilon=1.0, table=small_table), texts, labels)
    assert found["releases", "releases"].values.mean() == 1.0
    assert found["originals", "originals"].values.mean() == 1.0
    assert found["originals", "releases"].values.mean() == 1.0
    # All texts show the same public words: nobody can do better than the most frequent label.
    rest = found["public words", "public words"]
    assert rest.baseline == max(labels.count("blue"), labels.count("red")) / 200
    assert rest.values.mean() <= rest.baseline
    assert [o.headline for o in found.values()].count(True) == 1


def test_releases_that_say_nothing_tell_nothing(small_table):
    texts, labels = written(200)
    nothing = Stub(release=lambda table, block: np.zeros(len(block.secret), np.int64))
    found = infer(Privatizer(nothing, epsilon=1.0, table=small_table), texts, labels)
    for source in ("releases", "originals"):
        assert found[source, "releases"].values.mean() <= found[source, "releases"].baseline
    assert found["originals", "originals"].values.mean() == 1.0


def test_a_label_that_the_mask_tells_is_learned_from_the_mask(small_table):
    labels = ["blue", "red"] * 30
    texts = [f"{'the' if label == 'blue' else 'of'} anchor" for label in labels]
    found = infer(Privatizer("placeholder", table=small_table), texts, labels)
    assert found["releases", "releases"].values.mean() == 1.0
    assert found["public words", "public words"].values.mean() == 1.0


def random_labels(count=400):
    """Texts of five words of their own each, and labels that they do not tell."""
    draw = np.random.default_rng(3)
    documents = [[f"w{word}" for word in draw.integers(0, 10**6, 5)] for _ in range(count)]
    return documents, draw.integers(0, 2, count)


def fair(hits, trials, p=0.5):
    return binom.ppf(FEW / 2, trials, p) <= hits <= binom.isf(FEW / 2, trials, p)


def test_no_text_is_guessed_by_who_learned_it():
    documents, classes = random_labels()
    fold = np.arange(400) % 5
    assert fair((classify(documents, documents, classes, fold) == classes).sum(), 400)


def test_a_twin_that_learns_what_it_guesses_is_told_from_chance():
    documents, classes = random_labels()
    # Each text stands in two folds, so that whoever guesses it has learned its copy.
    twice, labels = documents * 2, np.tile(classes, 2)
    fold = np.repeat([0, 1], 400)
    assert not fair((classify(twice, twice, labels, fold) == labels).sum() / 2, 400)


def test_folds_are_stratified_and_drawn():
    classes = np.repeat([0, 1, 2], [50, 23, 7])
    fold = assign_folds(classes, 5, SeededRandomness(1))
    for label, count in enumerate([50, 23, 7]):
        sizes = np.bincount(fold[classes == label], minlength=5)
        assert sizes.sum() == count
        assert sizes.max() - sizes.min() <= 1
    assert (fold != assign_folds(classes, 5, SeededRandomness(2))).any()


def test_rare_labels_and_texts_without_label_are_left_out(small_table, echo):
    texts, labels = written(40)
    labels[:5] = ["green"] * 3 + [""] * 2
    found = infer(Privatizer(echo, epsilon=1.0, table=small_table), texts, labels)
    outcome = found["releases", "releases"]
    assert outcome.where.tolist() == list(range(5, 40))
    assert outcome.note == "2 labels; 5 texts of rarer labels are left out"
    assert outcome.baseline == max(labels.count("blue"), labels.count("red")) / 35


def test_texts_without_words_are_texts_too(small_table, echo):
    labels = ["blue", "red"] * 10
    texts = ["" if label == "blue" else "anchor" for label in labels]
    found = infer(Privatizer(echo, epsilon=1.0, table=small_table), texts, labels)
    assert found["releases", "releases"].values.mean() == 1.0


def test_refusals(small_table):
    view = Case.create(Privatizer("placeholder", table=small_table), ["the anchor"] * 8).view
    assert Attribute().refusal(view) == "it needs labels: give their field with --label"
    assert "two labels" in Attribute(labels=("a",) * 8).refusal(view)
    assert "two labels" in Attribute(labels=("a",) * 6 + ("b",) * 2).refusal(view)
    assert not Attribute(labels=("a",) * 6 + ("b",) * 2, folds=2).refusal(view)


def test_there_is_one_label_for_each_text(small_table):
    case = Case.create(Privatizer("placeholder", table=small_table), ["the anchor"] * 8)
    with pytest.raises(ConfigError, match="8 texts, not 10"):
        list(Attribute(labels=("a", "b") * 5).run(case, rng=SeededRandomness(1)))


def test_labels_are_shown_nowhere(small_table):
    made = Attribute(labels=(CANARY, "red") * 5)
    case = Case.create(Privatizer("placeholder", table=small_table), ["the anchor"] * 10)
    findings = attack(case, [made], rng=SeededRandomness(1))
    assert dump_options(made) == {"folds": 5}
    assert CANARY not in repr(made) + str(findings.to_json()) + repr(findings)
    for wrong in (CANARY, (CANARY, 5)):
        with pytest.raises(ConfigError) as error:
            Attribute(labels=wrong)  # type: ignore[arg-type]
        assert CANARY not in str(error.value)
