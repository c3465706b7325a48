"""The joint guess of all words against all sequences counted out."""

from itertools import product

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil.errors import ConfigError
from textveil.evaluate.attack import Case, chain, joint_posterior
from textveil.evaluate.attack import posterior as posteriors
from textveil.evaluate.attack.joint_posterior import decode
from textveil.mechanism import Block, Layout, Role
from textveil.mechanism.papers import d_chi_stencil, stencil
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable

DRAWS = 2000
PASS, PROTECT, HOLE = Role.PASS, Role.PROTECT, Role.HOLE


def table_of(count, dimension, seed=3, **options):
    vectors = gaussian_rows(count, dimension, seed)
    return EmbeddingTable.build(name="small", words=NOUNS[:count], vectors=vectors, **options)


def texts_of(*roles, copies):
    """The same text several times."""
    return Layout(
        roles=np.tile(np.array(roles, np.int8), copies),
        documents=np.arange(copies + 1) * len(roles),
        unit_of=np.arange(copies * len(roles)),
    )


def releases(mechanism, table, layout, prior, seed=1):
    """Words drawn from a prior, those that pass too, and what is released for them."""
    rows = np.random.default_rng(seed).choice(len(table), size=len(layout.roles), p=prior)
    block = Block(layout=layout, rows=rows)
    parameter = mechanism.parameters(table, layout)
    drawn = mechanism.privatize(table, block, parameter, rng=SeededRandomness(seed))
    return parameter, drawn, np.where(layout.roles == PASS, rows, -1), block.secret


def guessed(mechanism, table, layout, prior, *, k=3, seed=1):
    parameter, drawn, passed, secret = releases(mechanism, table, layout, prior, seed)
    found = decode(
        mechanism, table, layout, parameter, drawn, passed, prior, k=k, rng=SeededRandomness(9)
    )
    return *found, drawn, passed, secret


def uniform(count):
    return np.full(count, 1 / count)


# ---- all sequences -------------------------------------------------------------------------------


def counted_posteriors(mechanism, table, layout, prior, eta, drawn, passed, length):
    """P(word | released rows of its text) [n, V], over all sequences, each cell's mass by many draws of noise."""
    rows = table.vectors.astype(np.float64)
    count = len(rows)
    sequences = np.array(list(product(range(count), repeat=length)))
    matrix = np.zeros((length, length))
    first = Layout(
        roles=layout.roles[:length], documents=np.array([0, length]), unit_of=np.arange(length)
    )
    mixing = mechanism.mix.get_matrix(first)
    protected = first.positions
    for i, (columns, weights) in zip(
        protected, zip(mixing.columns, mixing.weights, strict=True), strict=True
    ):
        np.add.at(matrix[i], columns, weights)
    cloud = np.zeros((1, 3))
    if eta:
        random = np.random.default_rng(0)
        cloud = random.normal(size=(DRAWS, 3))
        cloud *= (random.gamma(3, 1 / eta, DRAWS) / np.linalg.norm(cloud, axis=1))[:, None]
    centres = np.einsum("ij,sjd->isd", matrix[protected], rows[sequences])
    law = np.zeros((len(protected), len(sequences), count))
    for i, points in enumerate(centres):
        scores = (points @ rows.T)[:, None] + (cloud @ rows.T)[None]
        cells = scores.argmax(axis=2)
        for y in range(count):
            law[i, :, y] = (cells == y).mean(axis=1)
    log_prior = np.log(prior)
    found: list[np.ndarray] = []
    for number in range(len(layout.documents) - 1):
        outputs = drawn[number * len(protected) : (number + 1) * len(protected)]
        weight = np.exp(log_prior[sequences[:, protected]].sum(axis=1))
        for i, y in enumerate(outputs):
            weight = weight * law[i, :, y]
        known = passed[number * length : (number + 1) * length]
        weight = weight * ((known < 0) | (sequences == known)).all(axis=1)
        weight /= weight.sum()
        found.extend(
            np.bincount(sequences[:, position], weight, minlength=count) for position in protected
        )
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("L", "eta", "roles", "over", "skewed"),
    [
        (3, 14.0, (PROTECT, PROTECT, PROTECT), "protected", True),
        (4, 14.0, (PROTECT, PROTECT, PROTECT), "protected", False),
        (3, 14.0, (PROTECT, PASS, PROTECT), "all", True),
        (3, None, (PROTECT, PROTECT, PROTECT), "protected", False),
    ],
)
def test_guesses_are_nearly_as_good_as_with_all_sequences_counted(L, eta, roles, over, skewed):
    """What the exact posterior gives the guesses is at most 0.025 less than what it gives the best ones.

    Who takes each output for the word itself does worse than that.
    """
    table = table_of(8, 3)
    prior = np.array([8.0, 5, 3, 2, 1, 1, 1, 1]) / 22 if skewed else uniform(8)
    mechanism = (
        d_chi_stencil(eta=eta, L=L, sigma=1.0, window_over=over) if eta else stencil(L=L, sigma=1.0)
    )
    layout = texts_of(*roles, copies=300)
    guesses, log_posterior, drawn, passed, _ = guessed(mechanism, table, layout, prior)
    exact = counted_posteriors(mechanism, table, layout, prior, eta, drawn, passed, 3)
    best = exact.max(axis=1).mean()
    own = np.take_along_axis(exact, guesses, axis=1)
    assert own[:, 0].mean() > best - 0.025
    assert own.sum(axis=1).mean() > np.sort(exact, axis=1)[:, -3:].sum(axis=1).mean() - 0.025
    assert abs(np.exp(log_posterior[:, 0]) - own[:, 0]).mean() < 0.075
    assert exact[np.arange(len(drawn)), drawn].mean() < best - 0.025


# ---- properties ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_stencil_without_noise_is_undone():
    """Where the word itself has the top weight, nearly all words are named."""
    layout = Layout.build(*[12] * 60)
    guesses, _, _, _, secret = guessed(
        stencil(L=5, sigma=1.0), table_of(60, 48), layout, uniform(60)
    )
    assert (guesses[:, 0] == secret).mean() > 0.95


def test_never_releasing_the_word_itself_hides_little():
    """Nothing is kept, and yet most words are named; a blind guess is right once in 60."""
    mechanism = stencil(L=3, sigma=0.8, exclude_original=True)
    guesses, _, drawn, _, secret = guessed(
        mechanism, table_of(60, 24), Layout.build(*[12] * 60), uniform(60)
    )
    assert not (drawn == secret).any()
    assert not (guesses[:, 0] == drawn).any()
    assert (guesses[:, 0] == secret).mean() > 0.45


@pytest.mark.slow
def test_even_windows_are_taken_apart():
    """The word and its neighbour have one weight: half the outputs are the neighbour. The joint attack tells which.

    With 2,400 words, and 2,048 in the rehearsal, rates have a standard deviation of 0.01, and the differences looked at
    one of 0.015 at most: bounds of 0.08 are missed by chance less than once in 10^6.
    """
    mechanism = d_chi_stencil(L=4, sigma=0.75, eta=60.0)
    guesses, log_posterior, drawn, _, secret = guessed(
        mechanism, table_of(60, 24), Layout.build(*[12] * 200), uniform(60), k=3
    )
    top = (guesses[:, 0] == secret).mean()
    assert top > (drawn == secret).mean() + 0.04
    assert (guesses == secret[:, None]).any(axis=1).mean() > top + 0.04
    assert abs(np.exp(log_posterior[:, 0]).mean() - top) < 0.08
    assert (np.diff(log_posterior, axis=1) <= 0).all()
    assert (np.exp(log_posterior).sum(axis=1) <= 1 + 1e-9).all()


def test_slices_change_nothing(monkeypatch):
    """In slices, each word still hears of those around it."""
    mechanism, table, layout = (
        d_chi_stencil(L=4, sigma=0.75, eta=60.0),
        table_of(60, 24),
        Layout.build(100, 1, 60),
    )
    monkeypatch.setattr(joint_posterior, "MIN_REHEARSAL_WORDS", 300)
    guesses, log_posterior, *_ = guessed(mechanism, table, layout, uniform(60))
    monkeypatch.setattr(chain, "TABLES_AT_ONCE", 16)
    monkeypatch.setattr(chain, "WORDS_AT_ONCE", 50)
    monkeypatch.setattr(joint_posterior, "WORDS_AT_ONCE", 50)
    parts, log_parts, *_ = guessed(mechanism, table, layout, uniform(60))
    assert (guesses[:, 0] == parts[:, 0]).mean() > 0.97
    assert np.abs(log_posterior - log_parts)[:, 0].mean() < 0.02


@pytest.mark.parametrize(
    "mechanism",
    [
        d_chi_stencil(L=4, sigma=0.75, eta=30.0, side="left"),
        d_chi_stencil(L=4, sigma=0.75, eta=30.0, window_over="all"),
        d_chi_stencil(L=2, sigma=0.75, eta=30.0, project=6),
        d_chi_stencil(L=9, sigma=2.0, eta=90.0, noise="von-mises-fisher"),
        d_chi_stencil(L=3, sigma=0.3, eta=300.0, noise="coordinate-laplace"),
        stencil(L=4, sigma=0.75, balanced=True),
    ],
)
def test_all_windows_and_noises_on_uneven_texts(mechanism, monkeypatch):
    """Texts of one word, of none, with words that pass and holes: guesses are rows, and better than blind ones."""
    monkeypatch.setattr(joint_posterior, "MIN_REHEARSAL_WORDS", 300)
    roles = [PROTECT, *[PASS] * 3, *[PROTECT] * 60, HOLE, *[PROTECT, PASS] * 10, PROTECT]
    layout = Layout(
        roles=np.array(roles, np.int8),
        documents=np.array([0, 1, 1, 4, 30, len(roles) - 1, len(roles)]),
        unit_of=np.arange(len(roles)),
    )
    guesses, log_posterior, _, _, secret = guessed(mechanism, table_of(30, 8), layout, uniform(30))
    assert guesses.shape == log_posterior.shape == (len(secret), 3)
    assert np.isfinite(log_posterior).all()
    assert (log_posterior <= 0).all()
    assert all(len(set(line)) == 3 for line in guesses.tolist())
    assert (
        guesses[:, 0] == secret
    ).mean() > 0.2  # blind: 1/30, so 73 words reach this once in 10^7


def test_unequal_parameters():
    """Rows with much noise tell less, and the attacker says so: within 0.1, five standard deviations."""
    table, mechanism, layout = (
        table_of(60, 24),
        d_chi_stencil(L=3, sigma=0.5),
        Layout.build(*[20] * 120),
    )
    parameter = np.where(np.arange(2400) % 20 < 10, 12.0, 200.0)
    rows = np.random.default_rng(2).integers(60, size=2400)
    drawn = mechanism.privatize(
        table, Block(layout=layout, rows=rows), parameter, rng=SeededRandomness(1)
    )
    unknown = np.full(2400, -1)
    guesses, log_posterior = decode(
        mechanism,
        table,
        layout,
        parameter,
        drawn,
        unknown,
        uniform(60),
        k=1,
        rng=SeededRandomness(2),
    )
    for part in (parameter == 12.0, parameter == 200.0):
        assert (
            abs((guesses[part, 0] == rows[part]).mean() - np.exp(log_posterior[part, 0]).mean())
            < 0.1
        )
    assert np.exp(log_posterior[parameter == 200.0, 0]).mean() > 0.9
    assert np.exp(log_posterior[parameter == 12.0, 0]).mean() < 0.8


def test_no_words():
    layout = Layout.build(0, 0)
    mechanism = d_chi_stencil(L=4, eta=30.0)
    nothing = np.zeros(0, np.int64)
    guesses, log_posterior = decode(
        mechanism,
        table_of(9, 3),
        layout,
        np.zeros(0),
        nothing,
        nothing,
        uniform(9),
        k=2,
        rng=SeededRandomness(1),
    )
    assert guesses.shape == log_posterior.shape == (0, 2)


@pytest.mark.parametrize("words", [1, 5, 257])
def test_a_last_word_that_stands_alone_in_its_part(words, monkeypatch):
    """Parts of 256 words, and of two: the last of 1, of 5 and of 257 words is alone in its own."""
    monkeypatch.setattr(joint_posterior, "MIN_REHEARSAL_WORDS", 300)
    table, mechanism = table_of(60, 24), d_chi_stencil(L=4, sigma=0.75, eta=60.0)
    whole, log_whole, *_ = guessed(mechanism, table, Layout.build(words), uniform(60))
    assert whole.shape == log_whole.shape == (words, 3)
    monkeypatch.setattr(chain, "TABLES_AT_ONCE", 2)
    parts, log_parts, *_ = guessed(mechanism, table, Layout.build(words), uniform(60))
    assert np.abs(log_parts - log_whole).mean() < 0.05
    assert (parts[:, 0] == whole[:, 0]).mean() > 0.97


@pytest.mark.parametrize("k", [0, 10])
def test_guesses_asked_for_are_in_range(k):
    with pytest.raises(ConfigError, match="k must be 1 to 9"):
        guessed(stencil(), table_of(60, 8), Layout.build(3), uniform(60), k=k)


def test_texts_are_decoded_once_however_many_guesses_are_asked_for(monkeypatch):
    monkeypatch.setattr(joint_posterior, "MIN_REHEARSAL_WORDS", 300)
    asked: list[int] = []

    def counted(*args, **options):
        asked.append(1)
        return decode(*args, **options)

    monkeypatch.setattr(posteriors, "decode", counted)
    view = Case.create(
        Privatizer("d-chi-stencil", eta=60.0, table=table_of(60, 8), seed=2), [" ".join(NOUNS)]
    ).view
    few, more = (
        posteriors.rank_candidates(view, prior="uniform", k=k, rng=SeededRandomness(4))
        for k in (5, 100)
    )
    assert len(asked) == 1
    assert more.candidates.shape == (60, 9)
    assert np.array_equal(more.candidates[:, :5], few.candidates)
