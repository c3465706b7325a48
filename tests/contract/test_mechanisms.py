"""The contract, run over every registered mechanism: true claims, total output, fresh draws.

Statistical checks have a false-alarm rate of 1e-6 each, and show a broken twin that they catch.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from scipy import stats

from tests.contract import plane
from textveil.config import registry
from textveil.mechanism import (
    PLACEHOLDER,
    Block,
    Law,
    Layout,
    Mechanism,
    NoiseName,
    NoNoise,
    Perturb,
    Restricting,
)
from textveil.mechanism.papers import d_chi_stencil, exponential, laplace, noise, polar, stencil
from textveil.randomness import streams
from textveil.randomness.streams import SeededRandomness, SystemRandomness
from textveil.table.embedding import EmbeddingTable

NAMES = registry.list_names("mechanism")
ALARM = 1e-6
DETERMINISTIC = {"stencil", "mask-and-fill", "placeholder"}


def table_of(words: int, dimension: int, seed: int) -> EmbeddingTable:
    rows = np.random.default_rng(seed).normal(size=(words, dimension))
    return EmbeddingTable.build(
        name=f"{words}x{dimension}", words=[f"w{i}" for i in range(words)], vectors=rows
    )


TABLE = table_of(50, 8, 11)
PLANE = table_of(40, 2, 12)


def build(name: str) -> Mechanism:
    made = registry.load("mechanism", name)()
    assert isinstance(made, Mechanism)
    return made


def block_of(*texts: list[int]) -> Block:
    return Block(
        layout=Layout.build(*map(len, texts)),
        rows=np.array([row for text in texts for row in text], np.int64),
    )


def parameter_of(
    mechanism: Mechanism, table: EmbeddingTable, layout: Layout, epsilon: float
) -> np.ndarray:
    parameter = mechanism.parameters(table, layout)
    return (
        mechanism.calibrate(table, layout, np.full(len(layout.positions), epsilon))
        if parameter is None
        else parameter
    )


BLOCK = block_of([3, 1, 4, 1, 5, 9, 2, 6], [], [5], list(range(50)))


@pytest.mark.parametrize("name", NAMES)
class TestEveryMechanism:
    def test_releases_one_row_of_the_table_per_word(self, name: str) -> None:
        mechanism = build(name)
        parameter = parameter_of(mechanism, TABLE, BLOCK.layout, 5.0)
        rows = mechanism.privatize(TABLE, BLOCK, parameter, rng=SystemRandomness())
        assert rows.shape == (59,)
        assert rows.dtype == np.int64
        assert ((rows >= PLACEHOLDER) & (rows < 50)).all()

    def test_same_seed_same_output_and_never_the_same_stream_again(self, name: str) -> None:
        mechanism = build(name)
        parameter = parameter_of(mechanism, TABLE, BLOCK.layout, 3.0)
        first, second = SeededRandomness(7), SeededRandomness(7)
        runs = [
            mechanism.privatize(TABLE, BLOCK, parameter, rng=source).tolist()
            for source in (first, second, second)
        ]
        assert runs[0] == runs[1]
        assert (runs[1] == runs[2]) is (name in DETERMINISTIC)

    def test_every_draw_comes_from_the_operating_system(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mechanism = build(name)
        parameter = parameter_of(mechanism, TABLE, BLOCK.layout, 3.0)

        def run(tape: int) -> list[int]:
            recorded = np.random.default_rng(tape)
            monkeypatch.setattr(streams, "read_entropy", recorded.bytes)
            monkeypatch.setattr(streams, "_process", streams._CallLog())
            return mechanism.privatize(TABLE, BLOCK, parameter, rng=SystemRandomness()).tolist()

        assert run(1) == run(1)
        assert (run(1) == run(2)) is (name in DETERMINISTIC)

    def test_a_text_does_not_depend_on_its_neighbours(self, name: str) -> None:
        mechanism = build(name)
        texts = [[1, 2, 3], [4, 5, 6, 7]]
        both, other = block_of(*texts), block_of(texts[0], [9, 9, 9, 9])
        parameter = parameter_of(mechanism, TABLE, both.layout, 3.0)
        released = [
            mechanism.privatize(TABLE, b, parameter, rng=SeededRandomness(1))[:3].tolist()
            for b in (both, other)
        ]
        assert released[0] == released[1]

    def test_spends_no_more_than_asked_whatever_the_budgets(self, name: str) -> None:
        mechanism = build(name)
        wanted = np.random.default_rng(3).uniform(
            *((3.0, 9.0) if name == "cape" else (0.5, 9.0)), 59
        )
        parameter = mechanism.calibrate(TABLE, BLOCK.layout, wanted)
        spent = mechanism.spend(TABLE, BLOCK.layout, parameter)
        if mechanism.claim(TABLE).kind == "none":
            assert np.isinf(spent).all()
        else:
            assert (spent <= wanted * (1 + 1e-9)).all()

    def test_the_law_keeps_the_claim_for_all_triples(self, name: str) -> None:
        """|ln P(y|x) - ln P(y|x')| <= epsilon d(x, x') + additive over all x, x', y of the vocabulary."""
        mechanism = build(name)
        one = block_of(*[[row] for row in range(50)])
        law, parameter = law_of(mechanism, TABLE, one, 4.0)
        if law is None:
            assert name not in ("exponential", "stencil"), "these have a closed form"
            return
        claim = mechanism.claim(TABLE)
        if claim.kind == "none":
            assert losses(law).max() > 10.0  # far beyond the 4 that was asked for
        else:
            spent = mechanism.spend(TABLE, one.layout, parameter)
            assert violation(law, spent, TABLE, claim.additive, kind=claim.kind) <= 1e-9
        if claim.restricted is not None:
            assert isinstance(mechanism, Restricting)
            pairs = mechanism.mark_restricted_pairs(TABLE, np.arange(50))
            within = mechanism.compute_restricted_epsilon(TABLE, one.layout, parameter)
            promise = claim.restricted
            assert pairs.sum() > 50, "more than every word with itself"
            assert (
                violation(law, within, TABLE, promise.additive, kind=promise.kind, pairs=pairs)
                <= 1e-9
            )
            assert violation(law, within, TABLE, promise.additive, kind=promise.kind) > 0.1

    def test_samples_follow_the_law(self, name: str) -> None:
        mechanism = build(name)
        law, _ = law_of(mechanism, TABLE, block_of([17]), 4.0)
        if law is None:
            return
        n, size = (
            20_000,
            1 if name in DETERMINISTIC else 50,
        )  # words are drawn on their own: one stream serves 50
        block = block_of(*[[17] * size] * (n // size))
        parameter = parameter_of(mechanism, TABLE, block.layout, 4.0)
        rows = mechanism.privatize(TABLE, block, parameter, rng=SeededRandomness(4))
        assert chi_square(np.bincount(rows, minlength=50), np.exp(law[0])) > ALARM
        if name not in DETERMINISTIC:
            assert chi_square(np.bincount((rows + 1) % 50, minlength=50), np.exp(law[0])) < ALARM


def law_of(
    mechanism: Mechanism, table: EmbeddingTable, block: Block, epsilon: float
) -> tuple[np.ndarray | None, np.ndarray]:
    parameter = parameter_of(mechanism, table, block.layout, epsilon)
    return (
        mechanism.log_probs(table, block, parameter) if isinstance(mechanism, Law) else None
    ), parameter


def violation(
    law: np.ndarray,
    epsilon: np.ndarray,
    table: EmbeddingTable,
    additive: float = 0.0,
    *,
    kind: str = "metric",
    pairs: np.ndarray | None = None,
) -> float:
    """By how much the worst of all triples breaks the claim; at most 0 when it holds."""
    distances = table.distances(np.arange(len(table))) if kind == "metric" else 1.0
    allowed = np.maximum(epsilon[:, None], epsilon[None, :]) * distances + additive
    excess = losses(law) - allowed
    return float(excess.max() if pairs is None else excess[pairs].max())


def losses(law: np.ndarray) -> np.ndarray:
    """The largest |ln P(y|x) - ln P(y|x')| of every pair, [V, V]; infinite where only one can release y."""
    with np.errstate(invalid="ignore"):
        gaps = np.abs(law[:, None, :] - law[None, :, :])
    return np.where(np.isnan(gaps), 0.0, gaps).max(axis=2)


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """p-value of counts under probabilities; cells of small expectation are pooled."""
    expected = probabilities / probabilities.sum() * counts.sum()
    if (counts[probabilities == 0] > 0).any():
        return 0.0
    small = expected < 10
    observed = np.append(counts[~small], counts[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    keep = wanted > 0
    if keep.sum() < 2:
        return 1.0
    return float(stats.chisquare(observed[keep], wanted[keep]).pvalue)


def test_exponential_with_a_larger_c_than_claimed_is_caught() -> None:
    one = block_of(*[[row] for row in range(50)])
    mechanism = exponential(c=4.0)
    law = mechanism.log_probs(TABLE, one, np.full(50, 5.5))
    assert law is not None
    claimed = mechanism.spend(TABLE, one.layout, np.full(50, 4.0))
    assert violation(law, claimed, TABLE, mechanism.claim(TABLE).additive) > 0.1


def test_exponential_exact_calibration_is_sharp_and_papers_is_half() -> None:
    layout = Layout.build(1)
    exact, paper = exponential(), exponential(calibration="paper")
    for epsilon in (1.0, 4.0, 30.0):
        wanted = np.array([epsilon])
        c = exact.calibrate(TABLE, layout, wanted)
        assert epsilon / 2 <= c[0] <= epsilon
        assert exact.spend(TABLE, layout, c)[0] == pytest.approx(epsilon, rel=0.02)
        assert paper.calibrate(TABLE, layout, wanted)[0] == epsilon / 2


def test_exponential_gives_every_word_a_chance_even_far_away() -> None:
    law = exponential(c=1000.0).log_probs(TABLE, block_of([0]), np.array([1000.0]))
    assert law is not None
    assert np.isfinite(law).all()
    assert law.min() >= -20.1


# ---- perturbing mechanisms in the plane: laws by integration --------------------------------------------

CASES = [
    pytest.param(noise(eta=3.0), plane.MULTIVARIATE, id="noise"),
    pytest.param(polar(kappa=3.0), plane.VON_MISES, id="polar"),
    pytest.param(laplace(nominal=PLANE.l1_diameter * 3.0), plane.COORDINATE, id="laplace"),
]
"""Mechanisms whose density has the parameter 3, and the grid that integrates it."""


@cache
def plane_cells(grid: plane.Plane) -> np.ndarray:
    """The nearest word of every point of a grid."""
    return PLANE.nearest(grid.points)


def plane_law(grid: plane.Plane, parameter: float, centres: np.ndarray) -> np.ndarray:
    return np.stack(
        [grid.law(centre, parameter, plane_cells(grid), len(PLANE)) for centre in centres]
    )


@pytest.mark.parametrize(("mechanism", "grid"), CASES)
def test_perturbing_laws_keep_the_claim_and_a_twin_with_less_noise_does_not(
    mechanism: Perturb, grid: plane.Plane
) -> None:
    rows = PLANE.vectors.astype(np.float64)
    layout = Layout.build(1)
    given = mechanism.parameters(PLANE, layout)
    assert given is not None
    epsilon = mechanism.spend(PLANE, layout, given)[0]
    assert epsilon == pytest.approx(3.0)
    if mechanism.claim(PLANE).metric == "l1":
        distances = np.abs(rows[:, None] - rows[None]).sum(axis=2)
    else:
        distances = PLANE.distances(np.arange(len(PLANE)))

    def worst(parameter: float) -> float:
        law = np.log(plane_law(grid, parameter, rows))
        return float((np.abs(law[:, None] - law[None]).max(axis=2) - epsilon * distances).max())

    assert worst(3.0) <= 1e-6
    assert worst(6.0) > 0.1


@pytest.mark.parametrize(("mechanism", "grid"), CASES)
def test_perturbing_samples_follow_the_integrated_law(
    mechanism: Perturb, grid: plane.Plane
) -> None:
    row, n = 7, 40_000
    block = block_of(*[[row] * 50] * (n // 50))  # without a window words are drawn on their own
    given = mechanism.parameters(PLANE, block.layout)
    assert given is not None
    counts = np.bincount(
        mechanism.privatize(PLANE, block, given, rng=SeededRandomness(2)), minlength=len(PLANE)
    )
    centre = PLANE.vectors[row : row + 1].astype(np.float64)
    assert chi_square(counts, plane_law(grid, 3.0, centre)[0]) > ALARM
    assert chi_square(counts, plane_law(grid, 3.6, centre)[0]) < ALARM


def mixing_matrix(mechanism: Perturb, layout: Layout) -> np.ndarray:
    n = len(layout.positions)
    mixing, matrix = mechanism.mix.get_matrix(layout), np.zeros((n, n))
    for i in range(n):
        np.add.at(matrix[i], mixing.columns[i], mixing.weights[i])
    return matrix


@pytest.mark.parametrize(
    ("kind", "grid"),
    [("multivariate-laplace", plane.MULTIVARIATE), ("von-mises-fisher", plane.VON_MISES)],
)
@pytest.mark.parametrize("L", [2, 3])
def test_windows_keep_the_claim_for_the_whole_output(
    kind: NoiseName, grid: plane.Plane, L: int
) -> None:
    """Two words, one window: the loss of a changed word adds up over both outputs, and stays within eps_j d."""
    mechanism = d_chi_stencil(eta=3.0, L=L, sigma=1.0, noise=kind)
    layout = Layout.build(2)
    given = mechanism.parameters(PLANE, layout)
    assert given is not None
    epsilon = mechanism.spend(PLANE, layout, given)
    rows = PLANE.vectors.astype(np.float64)
    matrix = mixing_matrix(mechanism, layout)
    words = [0, 3, 8, 15, 21, 33]
    laws = {
        (a, b): np.log(plane_law(grid, 3.0, matrix @ rows[[a, b]])) for a in words for b in words
    }
    per_output = 0.0
    for (a, b), law in laws.items():
        for changed in words:
            for j, pair in ((0, (changed, b)), (1, (a, changed))):
                loss = np.abs(law - laws[pair]).max(axis=1)
                distance = np.linalg.norm(rows[pair[j]] - rows[(a, b)[j]])
                assert loss.sum() <= epsilon[j] * distance + 1e-6
                per_output = max(per_output, loss.sum() - epsilon[j] * distance / 2)
    assert per_output > 0.5  # half the claim would be false


def test_an_even_window_charges_its_last_word_more() -> None:
    mechanism = d_chi_stencil(eta=3.0, L=2)
    assert mechanism.spend(PLANE, Layout.build(2), np.full(2, 3.0)).tolist() == pytest.approx(
        [1.5, 4.5]
    )


@pytest.mark.slow
def test_window_samples_follow_the_integrated_law() -> None:
    mechanism = d_chi_stencil(eta=3.0, L=3, sigma=1.0)
    n = 30_000
    block = block_of(*[[4, 19]] * n)
    given = mechanism.parameters(PLANE, block.layout)
    assert given is not None
    rows = mechanism.privatize(PLANE, block, given, rng=SeededRandomness(3)).reshape(n, 2)
    centres = mixing_matrix(mechanism, Layout.build(2)) @ PLANE.vectors[[4, 19]].astype(np.float64)
    law = plane_law(plane.MULTIVARIATE, 3.0, centres)
    for i in range(2):
        assert chi_square(np.bincount(rows[:, i], minlength=40), law[i]) > ALARM
        assert chi_square(np.bincount(rows[:, i], minlength=40), law[1 - i]) < ALARM


def test_stencil_without_noise_is_deterministic_and_claims_nothing() -> None:
    for mechanism in (stencil(), d_chi_stencil(eta=5.0, exclude_original=True)):
        claim = mechanism.claim(TABLE)
        assert claim.kind == "none"
        assert claim.reason
    assert isinstance(stencil().noise, NoNoise)


@pytest.fixture(autouse=True)
def _no_warnings_hide() -> Iterator[None]:
    with np.errstate(invalid="raise"):
        yield


def test_excluding_the_original_leaves_no_chance_for_it() -> None:
    mechanism = d_chi_stencil(eta=30.0, L=1, exclude_original=True)
    block = block_of(*[[row] for row in range(50)] * 20)
    given = mechanism.parameters(TABLE, block.layout)
    assert given is not None
    rows = mechanism.privatize(TABLE, block, given, rng=SeededRandomness(5))
    assert (rows != block.rows).all()
    free = d_chi_stencil(eta=30.0, L=1).privatize(TABLE, block, given, rng=SeededRandomness(5))
    assert (free == block.rows).mean() > 0.5


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_exponential_on_a_projected_table_keeps_its_claim(k: int, renormalize: bool) -> None:
    """The claim is in the original distance, whatever table the draw is made on."""
    view = TABLE.project(k, renormalize=renormalize)
    one = block_of(*[[row] for row in range(50)])
    mechanism = exponential()
    parameter = mechanism.calibrate(view, one.layout, np.full(50, 5.0))
    law = mechanism.log_probs(view, one, parameter)
    assert law is not None
    claim, spent = mechanism.claim(view), mechanism.spend(view, one.layout, parameter)
    assert (spent <= 5.0 * (1 + 1e-9)).all()
    assert violation(law, spent, TABLE, claim.additive) <= 1e-9
    assert (
        np.abs(law[:, None] - law[None]).max()
        <= spent.max() * claim.diameter + claim.additive + 1e-9
    )
    if renormalize and k == 2:
        assert violation(law, spent / view.lipschitz, TABLE, claim.additive) > 0.01


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_exponential_treats_equal_rows_alike_at_any_c(offset: float) -> None:
    """Rows at distance 0 may differ by the rounding term only, however large c is and however far the rows lie."""
    rows = np.random.default_rng(9).normal(size=(60, 300)) + offset
    rows[1] = rows[0]
    table = EmbeddingTable.build(
        name="equal", words=[f"w{i}" for i in range(60)], vectors=rows, metric="euclidean"
    )
    mechanism = exponential(c=1e4)
    law = mechanism.log_probs(table, block_of([0], [1]), np.full(2, 1e4))
    assert law is not None
    assert np.abs(law[0] - law[1]).max() <= mechanism.claim(table).additive


@pytest.mark.parametrize("renormalize", [False, True])
def test_a_claim_on_a_view_names_the_table_whose_distance_it_is_in(renormalize: bool) -> None:
    view = TABLE.project(4, renormalize=renormalize)
    for mechanism in (noise(eta=5.0), exponential(c=5.0)):
        claim = mechanism.claim(view)
        assert (claim.table, claim.view) == (TABLE.name, "in 4 axes")
        assert any("lengthen" in caveat for caveat in claim.caveats) is renormalize
    assert view.lipschitz >= 1.0
