"""Corpora from votes: cells, labels and levels follow from the noisy counts and public options alone."""

import math

import numpy as np
import pytest
from tests.planted_library import PlantedLibrary, make_planted_library

from textveil import Votes
from textveil.errors import ConfigError
from textveil.library import Library
from textveil.library.features import READ_CHARACTERS
from textveil.mechanism import NoisyCount, SubsetSelection
from textveil.pipeline import choose_level, report_texts

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def planted() -> PlantedLibrary:
    return make_planted_library()


def make_votes(planted: PlantedLibrary, counts: np.ndarray, names=NAMES, **options) -> Votes:
    facts = planted.library.get_facts(planted.level)
    options = {"epsilon": 1.0, **options}
    return Votes(counts=counts, label_names=names, library=facts, **options)


@pytest.fixture(scope="module")
def votes(planted: PlantedLibrary) -> Votes:
    return make_votes(planted, planted.count(planted.kinds["words"], 600))


def test_the_whole_library_is_labelled(planted, votes):
    whole = votes.corpus(planted.library, count="all")
    assert whole.texts == list(planted.library.texts)
    assert (whole.label_ids == planted.kinds["words"]).mean() > 0.95
    assert np.array_equal(whole.cells, planted.level.cells)
    drawn = votes.corpus(planted.library, count=200)
    assert np.array_equal(drawn.label_ids, whole.label_ids[drawn.which])


@pytest.mark.parametrize("balance", [False, True])
def test_the_same_texts_are_drawn_whatever_labels_follow_from(planted, votes, balance):
    made = [
        votes.corpus(planted.library, count=333, smooth=how, balance=balance, seed=4)
        for how in ("none", "vectors", "words", "both", "best")
    ]
    for one in made:
        assert np.array_equal(one.which, made[0].which)
        assert np.array_equal(one.cells, planted.level.cells[one.which])
    assert not np.array_equal(made[1].label_ids, made[2].label_ids)


def test_shares_of_labels_are_kept(planted):
    counts = planted.count(planted.kinds["words"], 2000) * np.array([[6], [2], [1]])
    counts = counts.astype(np.int64)
    true = counts.sum(axis=1) / counts.sum()
    made = make_votes(planted, counts).corpus(planted.library, count=900)
    assert made.label_ids is not None
    shares = np.bincount(made.label_ids, minlength=3) / 900
    assert np.abs(shares - true).sum() / 2 < 0.06
    balanced = make_votes(planted, counts).corpus(planted.library, count=900, balance=True)
    assert balanced.label_ids is not None
    assert np.bincount(balanced.label_ids, minlength=3).min() > 200


def test_without_labels_only_cells_follow(planted):
    counts = planted.count(np.zeros(len(planted.library), np.int64), 500)
    counts[0, 5:] = 0
    made = make_votes(planted, counts, ()).corpus(planted.library, count=100)
    assert made.labels is None
    assert set(made.cells.tolist()) == set(range(5))
    empty = make_votes(planted, counts * 0 - 3, ()).corpus(planted.library, count=48)
    assert np.bincount(empty.cells).tolist() == [2] * 24


def test_reports_are_weighed_by_their_noise(planted):
    selection = SubsetSelection(72, 2.0)
    expected = planted.count(planted.kinds["words"], 4000).ravel() / 4000
    rates = expected * float(selection.hold_rate) + (1 - expected) * float(selection.other_rate)
    made = make_votes(
        planted,
        np.rint(rates * 4000).astype(np.int64).reshape(3, 24),
        way="reports",
        epsilon=2.0,
        reports=4000,
    )
    assert made.variance == selection.compute_variance(4000)
    assert (
        made.corpus(planted.library, count="all").label_ids == planted.kinds["words"]
    ).mean() > 0.9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 1000.0])
def test_the_variance_is_that_of_the_noise(epsilon):
    noise = NoisyCount(epsilon)
    values = np.arange(-2000, 2001)
    assert noise.variance == pytest.approx(
        float((np.exp(noise.log_probs(values)) * values**2).sum()), abs=1e-9
    )


def test_the_variance_of_reports_is_that_of_their_estimate():
    selection, n = SubsetSelection(20, 1.0), 400
    rate = float(selection.other_rate)
    tallies = np.random.default_rng(0).binomial(n, rate, 20_000)
    found = np.array([selection.estimate(np.full(20, each), n)[0] for each in np.unique(tallies)])
    share = np.unique(tallies, return_counts=True)[1] / len(tallies)
    variance = float((share * found**2).sum())
    assert variance == pytest.approx(selection.compute_variance(n), rel=0.05)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"count": 0}, "count must be 1 to"),
        ({"smooth": "letters"}, "smooth must be none, vectors"),
        ({"count": "all", "smooth": "none"}, "count can be all"),
    ],
)
def test_options_that_are_refused(planted, votes, options, says):
    with pytest.raises(ConfigError, match=says):
        votes.corpus(planted.library, **options)


def test_the_only_label_is_that_of_all_texts(planted):
    counts = planted.count(np.zeros(len(planted.library), np.int64), 50)[:1]
    made = make_votes(planted, counts, ("only",)).corpus(planted.library, count=20)
    assert set(made.labels or ()) == {"only"}


def test_count_all_needs_labels(planted):
    counts = planted.count(np.zeros(len(planted.library), np.int64), 50)
    with pytest.raises(ConfigError, match="count can be all"):
        make_votes(planted, counts, ()).corpus(planted.library, count="all")


# ---- levels ----------------------------------------------------------------------------------------------


class Sized:
    """A level of which only the size matters."""

    kind = "clusters"

    def __init__(self, size: int) -> None:
        self.name, self.size = str(size), size

    def __len__(self) -> int:
        return self.size


def choose(about: int, epsilon: float, labels: int, **options) -> str:
    library = object.__new__(Library)
    object.__setattr__(library, "levels", [Sized(size) for size in (6, 16, 30, 100, 300)])
    names = tuple(map(str, range(labels)))
    return choose_level(library, "auto", about, epsilon, names, **options)


def test_levels_follow_from_the_noise_of_a_bin():
    assert [choose(n, 1.0, 4) for n in (1, 100, 200, 300, 1000, 10**6)] == [
        *("6", "6", "16", "30", "100", "100"),
    ]
    least = 1.75 * math.sqrt(NoisyCount(1.0).variance) * 4 * 30
    assert (choose(math.floor(least), 1.0, 4), choose(math.ceil(least), 1.0, 4)) == ("16", "30")
    assert choose(1000, 1.0, 4, per_subject=5) == "16"
    assert choose(1000, 1.0, 40) == "6"
    assert choose(10, 1000.0, 1) == "100"  # no noise: each bin may have less than one vote


def test_levels_for_reports_follow_from_their_noise():
    levels = [choose(11_000, epsilon, 4, way="reports") for epsilon in (0.5, 1.0, 2.0, 4.0)]
    assert levels == sorted(levels, key=int)
    assert levels[0] == "6"
    assert levels[-1] == "30"
    assert choose(10**6, 4.0, 5000, way="reports") in ("6", "16")  # more codes than there may be


def test_a_public_text_reports_of_a_code_at_random(notes_library):
    """Its device is not silent, and it does not vote: at a large epsilon others report their own code."""
    level = notes_library.get_level("labels")

    def find_codes(text: str) -> list[tuple[int, ...]]:
        texts = [text] * 300
        reports = report_texts(texts, library=notes_library, level="labels", epsilon=50)
        return [report.codes for report in reports]

    known = notes_library.texts[0]
    counts = np.bincount(np.ravel(find_codes(known)), minlength=len(level))
    assert counts.sum() == 300
    # each of 4 codes 75 times on average; outside 35 to 125 less often than once in 10^7
    assert ((counts > 35) & (counts < 125)).all()
    own = int(notes_library.find_cells([f"{known} Indeed."], level)[0])
    assert set(find_codes(f"{known} Indeed.")) == {(own,)}


def test_a_cell_follows_from_the_first_characters(notes_library):
    beginning = "The parcel is late. " * (READ_CHARACTERS // 20)
    assert len(beginning) == READ_CHARACTERS
    longer = f"{beginning}I love the kettle. Thank you!"
    other = "I love the kettle. Thank you! " + beginning
    first, second, third = (notes_library.features.compute([t]) for t in (beginning, longer, other))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)
