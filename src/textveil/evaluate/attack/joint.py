"""The joint posterior where a mechanism mixes neighbouring words of a text.

All words of a text are guessed together.

In: released rows, the mechanism with its parameters, a public prior. Out: ranked rows with
log-posteriors.
Not here: the words side by side (`chain`), and mechanisms that change each word by itself
(`channel`).
"""

import numpy as np

from textveil.errors import ConfigError
from textveil.evaluate.attack.chain import SAMPLE, SLICE, STATES, STRATA, WindowChannel, chain_of
from textveil.evaluate.attack.contract import Report, quiet
from textveil.evaluate.logs import highest, log_sum
from textveil.mechanism import Block, Layout, Windowed
from textveil.randomness import Ids, Randomness, Values
from textveil.table import EmbeddingTable

REHEARSED = 2048
"""The least number of words in the rehearsal."""

CAUTION = 1e-4
"""The ridge penalty of the calibration, per square of a weight.

It holds the weights near the model's own posterior.
"""

STEPS, SETTLED = 50, 1e-12
"""The most calibration steps, and the gain at which they stop."""


def decode(
    mechanism: Windowed,
    table: EmbeddingTable,
    layout: Layout,
    parameter: Values,
    drawn: Ids,
    passed: Ids,
    prior: Values,
    *,
    k: int,
    rng: Randomness,
    report: Report = quiet,
) -> tuple[Ids, Values]:
    """Finds the k likeliest rows of every protected word.

    All released rows of its text count.

    The model: word j has a row x_j of the public prior, released row y_i is the nearest to r_i =
    sum_j f_ij e(x_j) plus noise. Approximations, each fitted to the mechanism itself on words drawn
    from the prior (a rehearsal):

    - P(y | r) = exp(s_y / tau) / sum_v exp(s_v / tau), s_v the score of row v before noise: noise
      on scores as if it were independent of Gumbel's law. tau by maximum likelihood. Of the sum,
      the candidates of the window are taken one by one and all other rows as a constant.
    - A word is one of few candidates, or something else; that is a handful of rows drawn from the
      prior, stratified by score, which carry the rest of its mass.
    - Up to three neighbouring words are weighed jointly: sums and products over all combinations,
      passed along the text as in a hidden Markov model. Words of small weight in a window enter by
      their expected vectors.
    - The result is calibrated: logits are a multiple of log-posteriors, plus a constant for each
      output that a candidate is, fitted to the words of the rehearsal.

    Args:
        mechanism: a window with any noise, or none.
        table: public.
        layout: of the releases.
        parameter: the mechanism's own, [n].
        drawn: the released rows [n].
        passed: the row of every word that passed [T], -1 elsewhere.
        prior: probability of every row [V], positive.
        k: guesses per word, at most 9 (and at most V).
        rng: for the rehearsal.
        report: callback for progress.

    Returns:
        rows int64 [n, k], the most probable first, and their log-posteriors float64 [n, k].

    Raises:
        ConfigError: k is out of range.
    """
    seen = mechanism.view(table)
    most = min(STATES[3] - STRATA, len(table))
    if not 1 <= k <= most:
        raise ConfigError(f"k must be 1 to {most}")
    if not len(drawn):
        return np.zeros((0, k), np.int64), np.zeros((0, k))
    own, own_passed, numbers = _copy_texts(layout, passed)
    rows = own_passed.copy()
    rows[own.positions] = secret = _pick(prior, len(own.positions), rng)
    output = mechanism.privatize(table, Block(layout=own, rows=rows), parameter[numbers], rng=rng)
    chain = chain_of(mechanism, own, output, own_passed, parameter[numbers])
    channel = WindowChannel.fit(
        seen, chain, rows[chain.place], _pick(prior, SAMPLE, rng), prior, mechanism.exclude_original
    )
    beliefs = list(channel.beliefs(chain, report, "rehearsal"))
    features, candidates = (np.concatenate(each) for each in zip(*beliefs, strict=True))
    weights = _calibrate(features, candidates, secret)
    guesses, posteriors = [], []
    chain = chain_of(mechanism, layout, drawn, passed, parameter)
    for features, candidates in channel.beliefs(chain, report, "window"):
        logits = features @ weights
        best = highest(logits[:, :-1], k)
        guesses.append(np.take_along_axis(candidates, best, axis=1))
        posteriors.append(np.take_along_axis(logits, best, axis=1) - log_sum(logits)[:, None])
    return np.concatenate(guesses), np.concatenate(posteriors)


# ---- the rehearsal -------------------------------------------------------------------------------


def _pick(prior: Values, count: int, rng: Randomness) -> Ids:
    """Draws rows from the prior [count]."""
    edges = np.cumsum(prior)
    drawn = [draws.uniform(1)[:, 0] for _, draws in rng.open([count]).chunks(SLICE)]
    picked: Ids = np.searchsorted(edges, np.concatenate(drawn) * edges[-1], side="right")
    return np.minimum(picked, len(prior) - 1)


def _copy_texts(layout: Layout, passed: Ids) -> tuple[Layout, Ids, Ids]:
    """Copies the first texts of a layout for the rehearsal.

    As often as `REHEARSED` words need. Returns the layout, its `passed`, and the numbers of its
    words.
    """
    reached = int(np.searchsorted(np.cumsum(layout.sizes), REHEARSED)) + 1
    documents = layout.documents[: reached + 1]
    end = int(documents[-1])
    words = int(layout.sizes[:reached].sum())
    times = -(-REHEARSED // words)
    starts = documents[:-1] + end * np.arange(times)[:, None]
    copies = Layout(
        roles=np.tile(layout.roles[:end], times),
        documents=np.append(starts.ravel(), end * times),
        unit_of=np.arange(end * times),
    )
    return copies, np.tile(passed[:end], times), np.tile(np.arange(words), times)


def _calibrate(features: Values, candidates: Ids, secret: Ids) -> Values:
    """Fits feature weights [F] that make the rehearsed words most likely.

    They are nearly 1, 0, 0, ... if the model's posterior is well calibrated.

    Newton's method: what is minimised is convex.
    """
    hit = candidates == secret[:, None]
    truth = np.where(hit.any(axis=1), hit.argmax(axis=1), candidates.shape[1])
    real = features[np.arange(len(truth)), truth]
    start = np.eye(features.shape[2])[0]

    def loss(weights: Values) -> float:
        surprise = log_sum(features @ weights) - real @ weights
        return float(surprise.mean() + CAUTION * np.square(weights - start).sum())

    weights: Values = start
    least = loss(start)
    for _ in range(STEPS):
        logits = features @ weights
        shares = np.exp(logits - log_sum(logits)[:, None])
        mean = np.einsum("nc,ncf->nf", shares, features)
        slope = (mean - real).mean(axis=0) + 2 * CAUTION * (weights - start)
        spread = (
            np.einsum("nc,ncf,ncg->fg", shares, features, features, optimize=True) - mean.T @ mean
        )
        step = np.linalg.solve(spread / len(truth) + 2 * CAUTION * np.eye(len(start)), slope)
        while (found := loss(weights - step)) > least and slope @ step > SETTLED:
            step /= 2
        if slope @ step <= SETTLED:
            break
        weights, least = weights - step, found
    return weights
