"""Goodness of fit: tests if samplers follow the laws behind the statement.

In: a subject. Out: one finding, from tests whose p-values share `ALARM_RATE`.
Not here: whether the law keeps the claim (`exact`), and the samplers
(`textveil.randomness.samplers`).
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from textveil.mechanism import Block, Layout, Noisy, Windowed
from textveil.randomness import Ids, SystemRandomness, Values
from textveil.table import EmbeddingTable
from textveil_bench.audit import exact, joint_law
from textveil_bench.audit.audit_target import TINY_TABLE_WORDS, Subject, build_singles
from textveil_bench.audit.finding import ALARM_RATE, AuditFinding, make_skipped

DRAWS_SMALL, DRAWS_FULL = 20_000, 200_000
PAIRS_SMALL, PAIRS_FULL = 2_000, 20_000
CERTAINTY_TOLERANCE = 1e-12
"""Events with a probability within this of 1 are not tested."""

ANGLE_GRID = 200_001


def check_sampler(subject: Subject) -> AuditFinding:
    """Tests draws against the closed-form law, or noise against its textbook law."""
    name = "sampler"
    if not subject.claim.draws:
        return make_skipped(name, "nothing is drawn")
    table, law = exact.compute_slice_law(subject)
    tests = (
        [*_test_counts(subject, table, law), *_test_pairs(subject)]
        if law is not None
        else list(_test_noise(subject))
    )
    if not tests:
        return make_skipped(name, "neither the output nor the noise has a law in closed form")
    label, p = min(tests, key=lambda test: test[1])
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="violated" if p < ALARM_RATE / len(tests) else "holds",
        claimed=ALARM_RATE / len(tests),
        found=p,
        why=f"smallest p-value of {len(tests)}: {label}",
        alarm=ALARM_RATE,
    )


def _test_counts(
    subject: Subject, table: EmbeddingTable, law: Values
) -> Iterator[tuple[str, float]]:
    """Tests counts of released words against the law, for some words."""
    many = DRAWS_SMALL if subject.small else DRAWS_FULL
    for row in np.linspace(0, len(table) - 1, 3).astype(np.int64).tolist():
        block = build_singles(np.full(many, row))
        released = subject.sample(table, block, subject.compute_parameter(table, block.layout))
        counts = np.bincount(np.where(released < 0, len(table), released), minlength=len(table) + 1)
        yield (
            f"released words, input {row}",
            compute_binomial_p(counts, np.append(np.exp(law[row]), 0.0)),
        )


def _test_pairs(subject: Subject) -> Iterator[tuple[str, float]]:
    """Tests counts of released two-word texts against their joint law."""
    table = subject.tiny_table
    if joint_law.explain_missing_law(subject) is not None:
        return
    many = PAIRS_SMALL if subject.small else PAIRS_FULL
    layout = Layout.build(*[2] * many)
    parameter = subject.get_parameter(table, Layout.build(2))
    for text in ((0, TINY_TABLE_WORDS - 1), (1, 2)):
        law = joint_law.compute_text_laws(subject, np.array([text]), parameter)[0]
        rows = np.tile(np.array(text), many)
        released = subject.sample(
            table, Block(layout=layout, rows=rows), np.tile(parameter, many)
        ).reshape(many, 2)
        outputs = np.where(
            (released < 0).any(axis=1), len(law), released @ np.array([TINY_TABLE_WORDS, 1])
        )
        counts = np.bincount(outputs, minlength=len(law) + 1)
        yield (
            f"released texts of two words, input {text}",
            compute_binomial_p(counts, np.append(np.exp(law), 0.0)),
        )


def compute_binomial_p(counts: Ids, probabilities: Values) -> float:
    """Computes the p-value of counts under given probabilities.

    0 if an event without probability occurred. Exact for rare cells: two-sided binomial tests of
    every cell, and of cumulated cells in two orders (as given, and from the rarest on), in which
    small deviations add up. The smallest p-value is multiplied by the number of tests.
    """
    from scipy.special import bdtr, bdtrc

    if (counts[probabilities <= 0] > 0).any():
        return 0.0
    share = probabilities / probabilities.sum()
    rarest = np.argsort(share, kind="stable")
    cell_counts = np.concatenate((counts, counts.cumsum(), counts[rarest].cumsum()))
    cell_shares = np.concatenate((share, share.cumsum(), share[rarest].cumsum())).clip(0, 1)
    many = int(counts.sum())
    tails = np.minimum(
        bdtr(cell_counts, many, cell_shares), bdtrc(cell_counts - 1, many, cell_shares)
    )
    tails = tails[(cell_shares > 0) & (cell_shares < 1 - CERTAINTY_TOLERANCE)]
    return min(
        1.0, 2 * max(1, len(tails)) * float(tails.min(initial=1.0))
    )  # 1 if nothing is tested


# ---- noise on vectors -------------------------------------------------------------------------------------


def _test_noise(subject: Subject) -> Iterator[tuple[str, float]]:
    """Tests the noise on a table's vectors, at the claim's rate."""
    mechanism = subject.mechanism
    if not isinstance(mechanism, Noisy) or mechanism.noise_law not in NOISE_TESTS:
        return
    view = mechanism.get_view(subject.table)
    many = 4_000 if subject.small else 20_000
    rows = np.resize(np.linspace(0, len(view) - 1, 50).astype(np.int64), many)
    layout = build_singles(rows).layout
    parameter = mechanism.calibrate(subject.table, layout, np.full(many, subject.epsilon))
    spent = mechanism.spend(subject.table, layout, parameter)
    if np.isinf(spent).any():  # nothing is claimed: use the noise's own rate
        spent = mechanism.compute_rate(subject.table, parameter)
    rate = spent / view.lipschitz
    if (
        mechanism.noise_law == "von-mises-fisher"
        and isinstance(mechanism, Windowed)
        and mechanism.mix.L > 1
    ):
        rate = parameter  # a window also pays for its normaliser, so its rate exceeds kappa
    centres = view.take(rows).astype(np.float64)
    for part, draws in SystemRandomness().open(layout.sizes).split_rows(many):
        vectors = mechanism.sample(draws, subject.table, rows[part], parameter[part])
        yield from NOISE_TESTS[mechanism.noise_law](vectors, centres[part], rate[part])


def _test_laplace(vectors: Values, centres: Values, rate: Values) -> Iterator[tuple[str, float]]:
    """Tests for a gamma radius and an independent uniform direction."""
    from scipy.special import gammainc

    noise, dimension = vectors - centres, centres.shape[1]
    radius = np.linalg.norm(noise, axis=1)
    yield (
        "radius against gamma",
        _compute_kolmogorov_p(radius * rate, lambda x: gammainc(dimension, x)),
    )
    if dimension > 1:
        direction = noise / radius[:, None]
        axis = np.ones(dimension) / np.sqrt(dimension)
        for axis_name, component in (
            ("one axis", direction[:, 0]),
            ("an oblique axis", direction @ axis),
        ):
            yield (
                f"direction along {axis_name}",
                _compute_kolmogorov_p(component, lambda x: _compute_sphere_cdf(x, dimension)),
            )
        far = radius > np.median(radius)
        yield (
            "direction of the far half",
            _compute_kolmogorov_p(direction[far, 0], lambda x: _compute_sphere_cdf(x, dimension)),
        )


def _compute_sphere_cdf(x: Values, dimension: int) -> Values:
    from scipy.special import betainc

    half = (dimension - 1) / 2
    probability: Values = betainc(half, half, (1 + np.clip(x, -1, 1)) / 2)
    return probability


def _test_coordinates(
    vectors: Values, centres: Values, rate: Values
) -> Iterator[tuple[str, float]]:
    """Tests for Laplace coordinates, and a gamma sum of their absolute values.

    The sum is gamma if the coordinates are independent.
    """
    from scipy.special import gammainc

    standard = (vectors - centres) * rate[:, None]

    def compute_cdf(x: Values) -> Values:
        probability: Values = np.where(
            x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2
        )
        return probability

    for column in (0, -1):
        yield (
            f"coordinate {column} against Laplace",
            _compute_kolmogorov_p(standard[:, column], compute_cdf),
        )
    dimension = standard.shape[1]
    yield (
        "l1 norm against gamma",
        _compute_kolmogorov_p(np.abs(standard).sum(axis=1), lambda x: gammainc(dimension, x)),
    )


def _test_von_mises_fisher(
    vectors: Values, mean: Values, rate: Values
) -> Iterator[tuple[str, float]]:
    """Tests the angle to the mean, and the direction around it.

    The angle's distribution is integrated numerically. Kappa is the first rate.
    """
    kappa = float(rate[0])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    mean = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    dimension = mean.shape[1]
    cosine = np.einsum("ij,ij->i", unit, mean)
    residual = unit - cosine[:, None] * mean
    size = np.linalg.norm(residual, axis=1)
    angle = np.linspace(0, np.pi, ANGLE_GRID)
    with np.errstate(divide="ignore"):
        log = kappa * (np.cos(angle) - 1) + (dimension - 2) * np.log(np.sin(angle).clip(0)) if dimension > 2 else (
            kappa * (np.cos(angle) - 1)
        )  # fmt: skip
    density = np.exp(log - log.max())
    mass = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
    yield (
        "angle to the word",
        _compute_kolmogorov_p(
            np.arctan2(size, cosine), lambda x: np.interp(x, angle, mass / mass[-1])
        ),
    )
    if dimension > 2:
        tangent = np.eye(1, dimension) - mean[:, :1] * mean
        tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
        component = np.einsum("ij,ij->i", residual / np.maximum(size, 1e-300)[:, None], tangent)
        yield (
            "direction about the word",
            _compute_kolmogorov_p(component, lambda x: _compute_sphere_cdf(x, dimension - 1)),
        )


NOISE_TESTS: Mapping[
    str | None, Callable[[Values, Values, Values], Iterator[tuple[str, float]]]
] = {
    "multivariate-laplace": _test_laplace,
    "coordinate-laplace": _test_coordinates,
    "von-mises-fisher": _test_von_mises_fisher,
}
"""The tests of each textbook law.

They take draws [m, d], their centres [m, d] and the rate of each [m].
"""


def _compute_kolmogorov_p(sample: Values, law: Callable[[Values], Values]) -> float:
    """Bounds the Kolmogorov-Smirnov p-value at any sample size: 2 exp(-2 n D^2).

    Source: Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Ann. Probab.
        18 (1990).
    """
    if not np.isfinite(sample).all():
        return 0.0
    n = len(sample)
    below = law(np.sort(sample))
    rank = np.arange(n + 1) / n
    gap = max(float((rank[1:] - below).max()), float((below - rank[:-1]).max()))
    return min(1.0, 2 * float(np.exp(-2 * n * gap**2)))
