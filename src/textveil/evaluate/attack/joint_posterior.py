"""The joint posterior where a mechanism mixes neighbouring words of a text.

All words of a text are guessed together.

In: released rows, the mechanism with its parameters, a public prior. Out: ranked rows with
log-posteriors.
Not here: the words side by side (`chain`), and mechanisms that change each word by itself
(`channel`).
"""

import numpy as np

from textveil.errors import ConfigError
from textveil.evaluate.attack.attack_contract import ProgressCallback, ignore_progress
from textveil.evaluate.attack.chain import (
    PRIOR_SAMPLE_SIZE,
    STATES_PER_WORD,
    STRATA,
    WORDS_AT_ONCE,
    WindowChannel,
    build_chain,
)
from textveil.evaluate.log_math import compute_log_sum, find_highest
from textveil.mechanism import Block, Layout, Windowed
from textveil.randomness import Ids, Randomness, Values
from textveil.table import EmbeddingTable

MIN_REHEARSAL_WORDS = 2048
"""The least number of words in the rehearsal."""

CALIBRATION_RIDGE = 1e-4
"""The ridge penalty of the calibration, per square of a weight.

It holds the weights near the model's own posterior.
"""

MAX_CALIBRATION_STEPS, MIN_CALIBRATION_GAIN = 50, 1e-12
"""The most calibration steps, and the gain at which they stop."""


def decode(  # noqa: PLR0913 - most are options, given by keyword
    mechanism: Windowed,
    table: EmbeddingTable,
    layout: Layout,
    parameter: Values,
    output_rows: Ids,
    pass_rows: Ids,
    prior: Values,
    *,
    k: int,
    rng: Randomness,
    report: ProgressCallback = ignore_progress,
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
        output_rows: the released rows [n].
        pass_rows: the row of every word that passed [T], -1 elsewhere.
        prior: probability of every row [V], positive.
        k: guesses per word, at most 9 (and at most V).
        rng: for the rehearsal.
        report: callback for progress.

    Returns:
        rows int64 [n, k], the most probable first, and their log-posteriors float64 [n, k].

    Raises:
        ConfigError: k is out of range.
    """
    vectors = mechanism.get_view(table)
    max_guesses = min(STATES_PER_WORD[3] - STRATA, len(table))
    if not 1 <= k <= max_guesses:
        raise ConfigError(f"k must be 1 to {max_guesses}")
    if not len(output_rows):
        return np.zeros((0, k), np.int64), np.zeros((0, k))
    rehearsal_layout, rehearsal_pass_rows, numbers = _copy_texts(layout, pass_rows)
    rows = rehearsal_pass_rows.copy()
    rows[rehearsal_layout.positions] = secret = _draw_rows(
        prior, len(rehearsal_layout.positions), rng
    )
    output = mechanism.privatize(
        table, Block(layout=rehearsal_layout, rows=rows), parameter[numbers], rng=rng
    )
    chain = build_chain(
        mechanism, rehearsal_layout, output, rehearsal_pass_rows, parameter[numbers]
    )
    channel = WindowChannel.fit(
        vectors,
        chain,
        rows[chain.place],
        _draw_rows(prior, PRIOR_SAMPLE_SIZE, rng),
        prior,
        mechanism.exclude_original,
    )
    beliefs = list(channel.yield_beliefs(chain, report, "rehearsal"))
    features, candidates = (np.concatenate(arrays) for arrays in zip(*beliefs, strict=True))
    weights = _calibrate(features, candidates, secret)
    guesses, posteriors = [], []
    chain = build_chain(mechanism, layout, output_rows, pass_rows, parameter)
    for features, candidates in channel.yield_beliefs(chain, report, "window"):
        logits = features @ weights
        best = find_highest(logits[:, :-1], k)
        guesses.append(np.take_along_axis(candidates, best, axis=1))
        posteriors.append(
            np.take_along_axis(logits, best, axis=1) - compute_log_sum(logits)[:, None]
        )
    return np.concatenate(guesses), np.concatenate(posteriors)


# ---- the rehearsal -------------------------------------------------------------------------------


def _draw_rows(prior: Values, count: int, rng: Randomness) -> Ids:
    """Draws rows from the prior [count]."""
    edges = np.cumsum(prior)
    uniforms = [draws.uniform(1)[:, 0] for _, draws in rng.open([count]).split_rows(WORDS_AT_ONCE)]
    rows: Ids = np.searchsorted(edges, np.concatenate(uniforms) * edges[-1], side="right")
    return np.minimum(rows, len(prior) - 1)


def _copy_texts(layout: Layout, pass_rows: Ids) -> tuple[Layout, Ids, Ids]:
    """Copies the first texts of a layout for the rehearsal.

    As often as `MIN_REHEARSAL_WORDS` words need. Returns the layout, its `pass_rows`, and the
    numbers of its words.
    """
    text_count = int(np.searchsorted(np.cumsum(layout.sizes), MIN_REHEARSAL_WORDS)) + 1
    documents = layout.documents[: text_count + 1]
    end = int(documents[-1])
    words = int(layout.sizes[:text_count].sum())
    times = -(-MIN_REHEARSAL_WORDS // words)
    starts = documents[:-1] + end * np.arange(times)[:, None]
    copies = Layout(
        roles=np.tile(layout.roles[:end], times),
        documents=np.append(starts.ravel(), end * times),
        unit_of=np.arange(end * times),
    )
    return copies, np.tile(pass_rows[:end], times), np.tile(np.arange(words), times)


def _calibrate(features: Values, candidates: Ids, secret: Ids) -> Values:
    """Fits feature weights [F] that make the rehearsed words most likely.

    They are nearly 1, 0, 0, ... if the model's posterior is well calibrated.

    Newton's method: what is minimised is convex.
    """
    hit = candidates == secret[:, None]
    truth = np.where(hit.any(axis=1), hit.argmax(axis=1), candidates.shape[1])
    real = features[np.arange(len(truth)), truth]
    start = np.eye(features.shape[2])[0]

    def compute_loss(weights: Values) -> float:
        surprise = compute_log_sum(features @ weights) - real @ weights
        return float(surprise.mean() + CALIBRATION_RIDGE * np.square(weights - start).sum())

    weights: Values = start
    lowest_loss = compute_loss(start)
    for _ in range(MAX_CALIBRATION_STEPS):
        logits = features @ weights
        shares = np.exp(logits - compute_log_sum(logits)[:, None])
        mean = np.einsum("nc,ncf->nf", shares, features)
        slope = (mean - real).mean(axis=0) + 2 * CALIBRATION_RIDGE * (weights - start)
        spread = (
            np.einsum("nc,ncf,ncg->fg", shares, features, features, optimize=True) - mean.T @ mean
        )
        step = np.linalg.solve(
            spread / len(truth) + 2 * CALIBRATION_RIDGE * np.eye(len(start)), slope
        )
        while (
            step_loss := compute_loss(weights - step)
        ) > lowest_loss and slope @ step > MIN_CALIBRATION_GAIN:
            step /= 2
        if slope @ step <= MIN_CALIBRATION_GAIN:
            break
        weights, lowest_loss = weights - step, step_loss
    return weights
