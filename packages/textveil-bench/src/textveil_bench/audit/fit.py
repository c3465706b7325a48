"""Samplers against their laws: does what is drawn follow what the statement was computed from?

In: a subject. Out: one finding, from tests whose p-values share `ALARM`.
Not here: whether the law keeps the claim (`exact`), and the samplers themselves (`textveil.randomness.samplers`).
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from textveil.mechanism import Block, Layout, Noisy, Windowed
from textveil.randomness import Ids, SystemRandomness, Values
from textveil.table import EmbeddingTable
from textveil_bench.audit import exact, joint
from textveil_bench.audit.finding import ALARM, AuditFinding, skipped
from textveil_bench.audit.subject import FEW, Subject, singles

DRAWS_SMALL, DRAWS_FULL = 20_000, 200_000
PAIRS_SMALL, PAIRS_FULL = 2_000, 20_000
CERTAIN = 1e-12
"""What lacks less than this is certain but for rounding, and is not tested."""

GRID = 200_001


def sampler(subject: Subject) -> AuditFinding:
    """Draws against the law in closed form; or the noise on vectors against its textbook law."""
    name = "sampler"
    if not subject.claim.draws:
        return skipped(name, "nothing is drawn")
    table, law = exact.law_of_slice(subject)
    tests = (
        [*_counts(subject, table, law), *_pairs(subject)]
        if law is not None
        else list(_noise(subject))
    )
    if not tests:
        return skipped(name, "neither the output nor the noise has a law in closed form")
    what, p = min(tests, key=lambda test: test[1])
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="violated" if p < ALARM / len(tests) else "holds",
        claimed=ALARM / len(tests),
        found=p,
        why=f"smallest p-value of {len(tests)}: {what}",
        alarm=ALARM,
    )


def _counts(subject: Subject, table: EmbeddingTable, law: Values) -> Iterator[tuple[str, float]]:
    """Counts of released words against the law, for some words."""
    many = DRAWS_SMALL if subject.small else DRAWS_FULL
    for row in np.linspace(0, len(table) - 1, 3).astype(np.int64).tolist():
        block = singles(np.full(many, row))
        drawn = subject.sample(table, block, subject.parameter(table, block.layout))
        counts = np.bincount(np.where(drawn < 0, len(table), drawn), minlength=len(table) + 1)
        yield f"released words, input {row}", binomial(counts, np.append(np.exp(law[row]), 0.0))


def _pairs(subject: Subject) -> Iterator[tuple[str, float]]:
    """Counts of what texts of two words are released as, against their joint law."""
    table = subject.few
    if joint.without_law(subject) is not None:
        return
    many = PAIRS_SMALL if subject.small else PAIRS_FULL
    layout = Layout.of(*[2] * many)
    parameter = subject.configured(table, Layout.of(2))
    for text in ((0, FEW - 1), (1, 2)):
        law = joint.law_of_texts(subject, np.array([text]), parameter)[0]
        rows = np.tile(np.array(text), many)
        drawn = subject.sample(
            table, Block(layout=layout, rows=rows), np.tile(parameter, many)
        ).reshape(many, 2)
        outputs = np.where((drawn < 0).any(axis=1), len(law), drawn @ np.array([FEW, 1]))
        counts = np.bincount(outputs, minlength=len(law) + 1)
        yield (
            f"released texts of two words, input {text}",
            binomial(counts, np.append(np.exp(law), 0.0)),
        )


def binomial(counts: Ids, probabilities: Values) -> float:
    """The p-value of counts under probabilities; 0 where something came out that has no probability.

    Exact, however rare a cell is: two-sided binomial tests of every cell, and of the heads of two orders (as the cells
    come, and from the rarest on), in which small departures add up. The smallest counts as often as there are tests.
    """
    from scipy.special import bdtr, bdtrc

    if (counts[probabilities <= 0] > 0).any():
        return 0.0
    share = probabilities / probabilities.sum()
    rarest = np.argsort(share, kind="stable")
    seen = np.concatenate((counts, counts.cumsum(), counts[rarest].cumsum()))
    expected = np.concatenate((share, share.cumsum(), share[rarest].cumsum())).clip(0, 1)
    many = int(counts.sum())
    tails = np.minimum(bdtr(seen, many, expected), bdtrc(seen - 1, many, expected))
    tails = tails[(expected > 0) & (expected < 1 - CERTAIN)]
    return min(
        1.0, 2 * max(1, len(tails)) * float(tails.min(initial=1.0))
    )  # without a test all is well


# ---- noise on vectors -------------------------------------------------------------------------------------


def _noise(subject: Subject) -> Iterator[tuple[str, float]]:
    """The noise on the vectors of a table's words, at the rate that the claim is made of."""
    mechanism = subject.mechanism
    if not isinstance(mechanism, Noisy) or mechanism.noise_law not in TEXTBOOK:
        return
    view = mechanism.view(subject.table)
    many = 4_000 if subject.small else 20_000
    rows = np.resize(np.linspace(0, len(view) - 1, 50).astype(np.int64), many)
    layout = singles(rows).layout
    parameter = mechanism.calibrate(subject.table, layout, np.full(many, subject.epsilon))
    spent = mechanism.spend(subject.table, layout, parameter)
    if np.isinf(spent).any():  # nothing is claimed: the noise's own rate is all there is
        spent = mechanism.rate(subject.table, parameter)
    rate = spent / view.lipschitz
    if (
        mechanism.noise_law == "von-mises-fisher"
        and isinstance(mechanism, Windowed)
        and mechanism.mix.L > 1
    ):
        rate = parameter  # a window pays for its normaliser too, so its rate is more than kappa
    centres = view.take(rows).astype(np.float64)
    for part, draws in SystemRandomness().open(layout.sizes).chunks(many):
        drawn = mechanism.sample(draws, subject.table, rows[part], parameter[part])
        yield from TEXTBOOK[mechanism.noise_law](drawn, centres[part], rate[part])


def _laplace(drawn: Values, centres: Values, rate: Values) -> Iterator[tuple[str, float]]:
    """A gamma radius, a uniform direction, and nothing between the two."""
    from scipy.special import gammainc

    noise, dimension = drawn - centres, centres.shape[1]
    radius = np.linalg.norm(noise, axis=1)
    yield "radius against gamma", _kolmogorov(radius * rate, lambda x: gammainc(dimension, x))
    if dimension > 1:
        direction = noise / radius[:, None]
        axis = np.ones(dimension) / np.sqrt(dimension)
        for what, along in (("one axis", direction[:, 0]), ("an oblique axis", direction @ axis)):
            yield f"direction along {what}", _kolmogorov(along, lambda x: _on_sphere(x, dimension))
        far = radius > np.median(radius)
        yield (
            "direction of the far half",
            _kolmogorov(direction[far, 0], lambda x: _on_sphere(x, dimension)),
        )


def _on_sphere(x: Values, dimension: int) -> Values:
    from scipy.special import betainc

    half = (dimension - 1) / 2
    found: Values = betainc(half, half, (1 + np.clip(x, -1, 1)) / 2)
    return found


def _coordinates(drawn: Values, centres: Values, rate: Values) -> Iterator[tuple[str, float]]:
    """Laplace coordinates, and their absolute sum: gamma, if they are independent."""
    from scipy.special import gammainc

    standard = (drawn - centres) * rate[:, None]

    def law(x: Values) -> Values:
        found: Values = np.where(
            x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2
        )
        return found

    for column in (0, -1):
        yield f"coordinate {column} against Laplace", _kolmogorov(standard[:, column], law)
    dimension = standard.shape[1]
    yield (
        "l1 norm against gamma",
        _kolmogorov(np.abs(standard).sum(axis=1), lambda x: gammainc(dimension, x)),
    )


def _von_mises_fisher(drawn: Values, mean: Values, rate: Values) -> Iterator[tuple[str, float]]:
    """The angle to the mean, by quadrature of its density, and the direction about it; kappa is the first rate."""
    kappa = float(rate[0])
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    mean = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    dimension = mean.shape[1]
    along = np.einsum("ij,ij->i", unit, mean)
    across = unit - along[:, None] * mean
    size = np.linalg.norm(across, axis=1)
    angle = np.linspace(0, np.pi, GRID)
    with np.errstate(divide="ignore"):
        log = kappa * (np.cos(angle) - 1) + (dimension - 2) * np.log(np.sin(angle).clip(0)) if dimension > 2 else (
            kappa * (np.cos(angle) - 1)
        )  # fmt: skip
    density = np.exp(log - log.max())
    mass = np.concatenate(([0.0], np.cumsum(density[1:] + density[:-1])))
    yield (
        "angle to the word",
        _kolmogorov(np.arctan2(size, along), lambda x: np.interp(x, angle, mass / mass[-1])),
    )
    if dimension > 2:
        tangent = np.eye(1, dimension) - mean[:, :1] * mean
        tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
        towards = np.einsum("ij,ij->i", across / np.maximum(size, 1e-300)[:, None], tangent)
        yield (
            "direction about the word",
            _kolmogorov(towards, lambda x: _on_sphere(x, dimension - 1)),
        )


TEXTBOOK: Mapping[str | None, Callable[[Values, Values, Values], Iterator[tuple[str, float]]]] = {
    "multivariate-laplace": _laplace,
    "coordinate-laplace": _coordinates,
    "von-mises-fisher": _von_mises_fisher,
}
"""The tests of each textbook law, from draws [m, d], their centres [m, d] and the rate of each [m]."""


def _kolmogorov(sample: Values, law: Callable[[Values], Values]) -> float:
    """A bound on the p-value of Kolmogorov and Smirnov's test, for any sample size: 2 exp(-2 n D^2).

    Source: Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Ann. Probab. 18 (1990).
    """
    if not np.isfinite(sample).all():
        return 0.0
    n = len(sample)
    below = law(np.sort(sample))
    rank = np.arange(n + 1) / n
    gap = max(float((rank[1:] - below).max()), float((below - rank[:-1]).max()))
    return min(1.0, 2 * float(np.exp(-2 * n * gap**2)))
