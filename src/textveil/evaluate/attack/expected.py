"""Expected success of the best guess, over all draws.

It follows from the mechanism's law, not from one release.

In: private rows, the law that they are drawn by, priors. Out: probabilities of right guesses.
Not here: the guesses of one release (`posterior`), and their mean over all words of a table
(`mechanism.guess`).
"""

from collections.abc import Sequence

import numpy as np

from textveil.evaluate.attack import channel
from textveil.evaluate.attack.case import Case
from textveil.evaluate.attack.contract import Report, quiet
from textveil.evaluate.attack.posterior import priors
from textveil.evaluate.attack.prior import PriorName
from textveil.mechanism import Block, Law, Layout, Mechanism
from textveil.randomness import Floats, Ids, Values
from textveil.table import EmbeddingTable

LIKELIEST, OTHERS = 112, 16
"""Released rows that are evaluated for each private row.

The likeliest ones, and some that represent all the rest.
"""

Expected = Sequence[tuple[Ids, Values]]
"""Pairs of cells and log priors over all rows.

[m, V] or [1, V].
"""


def of_words(
    case: Case, again: Case | None, prior: PriorName, report: Report = quiet
) -> Values | None:
    """Computes the success probability of the best guess at each position.

    float64 [n]; None where no such law is known.

    Args:
        case: says how each word is drawn. What was drawn counts for nothing but what the prior
            makes of words around.
        again: the same texts, released any number of times more, for other words around; the mean
            is taken.
        prior: what the attacker expects before looking.
        report: callback for progress.
    """
    view, truth = case.view, case.truth
    if not view.mechanism.claim(view.table).alone:
        return None
    found = np.zeros(len(view.drawn))
    for parameter in np.unique(view.parameter).tolist():
        own = np.flatnonzero(view.parameter == parameter)
        expected = list(priors(view, prior, own))
        if again is not None:
            places = np.flatnonzero(again.view.parameter == parameter)
            expected += [
                (which % len(own), log_prior)
                for which, log_prior in priors(again.view, prior, places)
            ]
        hits = success(
            view.mechanism,
            view.table,
            parameter,
            (truth.rows[own], truth.coded[own]),
            expected,
            report,
        )
        if hits is None:
            return None
        found[own] = hits
    return found


def success(
    mechanism: Mechanism,
    table: EmbeddingTable,
    parameter: float,
    secret: tuple[Ids, Ids],
    expected: Expected,
    report: Report = quiet,
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
    found = np.zeros(len(rows))
    distinct, first, which = np.unique(rows, return_index=True, return_inverse=True)
    asked = _group_cells(expected, which, len(distinct))
    step = max(1, channel.CELLS // (len(table) * (LIKELIEST + OTHERS)))
    for start in range(0, len(distinct), step):
        some = coded[first[start : start + step]]
        block = Block(layout=Layout.of(*np.ones_like(some).tolist()), rows=some)
        law = None
        if isinstance(mechanism, Law):
            law = mechanism.log_probs(table, block, np.full(len(some), parameter))
        if law is None:
            return None
        outputs = [_outputs(np.exp(line)) for line in law]
        released = np.unique(np.concatenate([seen for seen, _ in outputs]))
        lines = channel.exact(mechanism, table, released, parameter, report)
        assert lines is not None, "the law was written down"
        for word, (seen, share) in enumerate(outputs, start):
            told = table.spread(lines[np.searchsorted(released, seen)])
            for alike, log_prior in asked[word].values():
                np.add.at(
                    found, alike, _compute_hit_rate(told, share, log_prior, int(distinct[word]))
                )
    # of each cell as often as of every other
    times = sum(len(cells) for cells, _ in expected) // len(rows)
    return found / times


def _group_cells(
    expected: Expected, which: Ids, distinct: int
) -> list[dict[int, tuple[list[int], Values]]]:
    """Groups cells of each distinct row by their log prior.

    The priors are often the same, and each is evaluated once.
    """
    asked: list[dict[int, tuple[list[int], Values]]] = [{} for _ in range(distinct)]
    for cells, log_prior in expected:
        for place, cell in enumerate(cells.tolist()):
            own = log_prior[min(place, len(log_prior) - 1)]
            asked[which[cell]].setdefault(own.ctypes.data, ([], own))[0].append(cell)
    return asked


def _compute_hit_rate(told: Floats | Values, share: Values, log_prior: Values, row: int) -> float:
    """Returns the probability that the best guess is a given row.

    `share` has the probability of each released row, `told` its log likelihoods.
    """
    guess = (told + log_prior.astype(np.float32)).argmax(axis=1)
    blind = log_prior.argmax() == row
    return float(share[guess == row].sum() + blind * max(0.0, 1 - share.sum()))


def _outputs(share: Values) -> tuple[Ids, Values]:
    """Picks representative released rows and the probability each stands for."""
    order = np.argsort(-share, kind="stable")[: np.count_nonzero(share)]
    if len(order) <= LIKELIEST + OTHERS:
        return order, share[order]
    first, rest = order[:LIKELIEST], order[LIKELIEST:]
    mass = np.cumsum(share[rest])
    others = rest[np.searchsorted(mass, (np.arange(OTHERS) + 0.5) / OTHERS * mass[-1])]
    return np.append(first, others), np.append(share[first], np.full(OTHERS, mass[-1] / OTHERS))
