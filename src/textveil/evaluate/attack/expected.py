"""Expected success of the best guess, over all draws.

It follows from the mechanism's law, not from one release.

In: private rows, the law that they are drawn by, priors. Out: probabilities of right guesses.
Not here: the guesses of one release (`posterior`), and their mean over all words of a table
(`mechanism.guess`).
"""

from collections.abc import Sequence

import numpy as np

from textveil.evaluate.attack import channel
from textveil.evaluate.attack.attack_contract import ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case
from textveil.evaluate.attack.posterior import yield_priors
from textveil.evaluate.attack.prior import PriorName
from textveil.mechanism import Block, Law, Layout, Mechanism
from textveil.randomness import Floats, Ids, Values
from textveil.table import EmbeddingTable

LIKELIEST_ROWS, OTHER_ROWS = 112, 16
"""Released rows that are evaluated for each private row.

The likeliest ones, and some that represent all the rest.
"""

ExpectedPriors = Sequence[tuple[Ids, Values]]
"""Pairs of cells and log priors over all rows.

[m, V] or [1, V].
"""


def compute_word_success(
    case: Case, repeats: Case | None, prior: PriorName, report: ProgressCallback = ignore_progress
) -> Values | None:
    """Computes the success probability of the best guess at each position.

    float64 [n]; None where no such law is known.

    Args:
        case: says how each word is drawn. What was drawn counts for nothing but what the prior
            makes of words around.
        repeats: the same texts, released any number of times more, for other words around; the mean
            is taken.
        prior: what the attacker expects before looking.
        report: callback for progress.
    """
    view, truth = case.view, case.truth
    if not view.mechanism.claim(view.table).alone:
        return None
    rates = np.zeros(len(view.output_rows))
    for parameter in np.unique(view.parameter).tolist():
        positions = np.flatnonzero(view.parameter == parameter)
        expected = list(yield_priors(view, prior, positions))
        if repeats is not None:
            places = np.flatnonzero(repeats.view.parameter == parameter)
            expected += [
                # The repeats are the same texts several times over, in the same order.
                (which % len(positions), log_prior)
                for which, log_prior in yield_priors(repeats.view, prior, places)
            ]
        hits = compute_success(
            view.mechanism,
            view.table,
            parameter,
            (truth.rows[positions], truth.table_rows[positions]),
            expected,
            report,
        )
        if hits is None:
            return None
        rates[positions] = hits
    return rates


def compute_success(
    mechanism: Mechanism,
    table: EmbeddingTable,
    parameter: float,
    secret: tuple[Ids, Ids],
    expected: ExpectedPriors,
    report: ProgressCallback = ignore_progress,
) -> Values | None:
    """Computes the probability that the best guess of each cell is right.

    float64 [n], the mean over the cell's priors.

    It is the share, under the law, of the released rows whose best guess is the private one. The
    likeliest are looked at one by one, and of all others as many as stand for equal parts of the
    rest. Where no row is released, what is expected is the guess.

    Args:
        mechanism: draws each word alone.
        table: that it runs over.
        parameter: the mechanism's own.
        secret: int64 [n] twice: the private row of each cell in the table's origin, and in the
            table.
        expected: what an attacker expects before looking.
        report: callback for progress.
    """
    rows, coded = secret
    rates = np.zeros(len(rows))
    distinct, first, which = np.unique(rows, return_index=True, return_inverse=True)
    priors_by_row = _group_cells(expected, which, len(distinct))
    step = max(1, channel.MAX_LOG_PROBABILITIES // (len(table) * (LIKELIEST_ROWS + OTHER_ROWS)))
    for start in range(0, len(distinct), step):
        chunk = coded[first[start : start + step]]
        block = Block(layout=Layout.build(*np.ones_like(chunk).tolist()), rows=chunk)
        law = None
        if isinstance(mechanism, Law):
            law = mechanism.log_probs(table, block, np.full(len(chunk), parameter))
        if law is None:
            return None
        outputs = [_pick_outputs(np.exp(line)) for line in law]
        released = np.unique(np.concatenate([output_rows for output_rows, _ in outputs]))
        lines = channel.compute_exact_lines(mechanism, table, released, parameter, report)
        assert lines is not None, "the law was written down"
        for word, (output_rows, share) in enumerate(outputs, start):
            log_likelihoods = table.spread(lines[np.searchsorted(released, output_rows)])
            for same_cells, log_prior in priors_by_row[word].values():
                np.add.at(
                    rates,
                    same_cells,
                    _compute_hit_rate(log_likelihoods, share, log_prior, int(distinct[word])),
                )
    # of each cell as often as of every other
    times = sum(len(cells) for cells, _ in expected) // len(rows)
    return rates / times


def _group_cells(
    expected: ExpectedPriors, which: Ids, distinct: int
) -> list[dict[int, tuple[list[int], Values]]]:
    """Groups cells of each distinct row by their log prior.

    The priors are often the same, and each is evaluated once.
    """
    groups: list[dict[int, tuple[list[int], Values]]] = [{} for _ in range(distinct)]
    for cells, log_prior in expected:
        for place, cell in enumerate(cells.tolist()):
            cell_prior = log_prior[min(place, len(log_prior) - 1)]
            # By address: comparing V numbers would take longer, and `expected` keeps the arrays
            # alive.
            groups[which[cell]].setdefault(cell_prior.ctypes.data, ([], cell_prior))[0].append(cell)
    return groups


def _compute_hit_rate(
    log_likelihoods: Floats | Values, share: Values, log_prior: Values, row: int
) -> float:
    """Returns the probability that the best guess is a given row.

    `share` has the probability of each released row, `log_likelihoods` its log likelihoods.
    """
    guess = (log_likelihoods + log_prior.astype(np.float32)).argmax(axis=1)
    blind = log_prior.argmax() == row
    return float(share[guess == row].sum() + blind * max(0.0, 1 - share.sum()))


def _pick_outputs(share: Values) -> tuple[Ids, Values]:
    """Picks representative released rows and the probability each stands for."""
    order = np.argsort(-share, kind="stable")[: np.count_nonzero(share)]
    if len(order) <= LIKELIEST_ROWS + OTHER_ROWS:
        return order, share[order]
    first, rest_rows = order[:LIKELIEST_ROWS], order[LIKELIEST_ROWS:]
    mass = np.cumsum(share[rest_rows])
    representatives = rest_rows[
        np.searchsorted(mass, (np.arange(OTHER_ROWS) + 0.5) / OTHER_ROWS * mass[-1])
    ]
    return np.append(first, representatives), np.append(
        share[first], np.full(OTHER_ROWS, mass[-1] / OTHER_ROWS)
    )
