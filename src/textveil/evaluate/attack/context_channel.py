"""The channel of mechanisms that use context: it differs by position.

In: views of releases. Out: ln P(released row | private row) at every protected position.
Not here: the channel of mechanisms that do not (`channel`).

The attacker knows what the language model saw, and so its logits: the words that passed, and in the
mode `released` the words released before. Only the distance between two words is a matter of the
private one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from textveil.evaluate.attack.attack_contract import ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import View
from textveil.mechanism import PLACEHOLDER, Block, Conditional, Contextual, Mechanism
from textveil.randomness import Floats, Ids
from textveil.table import EmbeddingTable

DISTANCE_ROWS_AT_ONCE = 256
"""Private rows whose distances are held at once.

44 MB for 21,719 candidates.
"""


def is_contextual(mechanism: Mechanism, table: EmbeddingTable) -> bool:
    """Says whether the law at a position depends on a language model."""
    return isinstance(mechanism, Contextual) and not mechanism.claim(table).alone


def get_contextual(view: View) -> Contextual:
    """Returns the view's mechanism, whose law depends on a language model."""
    assert isinstance(view.mechanism, Contextual)
    return view.mechanism


def explain_refusal(view: View) -> str:
    """Returns why the channel cannot be had, or "".

    In words that go on "not run: ".
    """
    if get_contextual(view).context.mode == "original":
        return (
            "the law of a released word depends on the private words around it, which the "
            "attacker does not know"
        )
    return ""


def describe_approximation(view: View) -> str:
    """Returns how the law is approximated, or "" where it is explicit.

    In words that follow "estimated".
    """
    return get_contextual(view).describe_approximation(view.table)


def compute_lines(
    requests: Sequence[tuple[View, Ids]], report: ProgressCallback = ignore_progress
) -> list[Floats]:
    """Computes ln P(released row | each private row) at positions of views.

    float32 [p, V] for each view; all views are on one table.

    Distances are computed once for all views, ranks and buckets once for all whose context says the
    same of a position. On 21,719 rows a core takes some 30 seconds for the distances, then a tenth
    of a second a position for a staircase, and a second for buckets. At most a few hundred MB are
    held besides logits and lines.

    Args:
        requests: views of mechanisms that look at a context, and protected positions of each,
            rising.
        report: callback for progress.
    """
    results = [
        np.zeros((len(positions), len(view.table)), np.float32) for view, positions in requests
    ]
    queries = list(_yield_law_queries(requests))
    table = requests[0][0].table
    for start in range(0, len(table), DISTANCE_ROWS_AT_ONCE):
        report("laws in context", start, len(table))
        rows = np.arange(start, min(start + DISTANCE_ROWS_AT_ONCE, len(table)))
        for kind in {query.law.kind for query in queries}:
            members = [query for query in queries if query.law.kind == kind]
            distance_scores = members[0].law.score_distances(rows)
            for member in members:
                law = member.law.log_probs(
                    distance_scores, np.array(member.released), np.array(member.parameter)
                )
                for line, (number, place) in zip(law, member.places, strict=True):
                    results[number][place, start : start + len(rows)] = line
    return results


def compute_candidate_law(
    view: View, positions: Ids, rows: Ids, report: ProgressCallback = ignore_progress
) -> Floats:
    """Computes the law for K given private rows of each position.

    float32 [p, K]; that is much less work than for all rows.

    Args:
        view: of a mechanism that looks at a context.
        positions: int64 [p], protected positions, rising.
        rows: int64 [p, K], for each of them.
        report: callback for progress.
    """
    result = np.zeros(rows.shape, np.float32)
    done = 0
    for query in _yield_law_queries([(view, positions)]):
        places = np.array([place for _, place in query.places])
        distinct, which = np.unique(rows[places], return_inverse=True)
        distance_scores = query.law.score_distances(distinct)
        law = query.law.log_probs(
            distance_scores, np.array(query.released), np.array(query.parameter)
        )
        result[places] = np.take_along_axis(law, which.reshape(len(places), -1), axis=1)
        done += len(places)
        report("laws in context", done, len(positions))
    return result


@dataclass(frozen=True, kw_only=True, eq=False)
class _LawQuery:
    """The released rows to rate in one context, each with its parameter."""

    law: Conditional
    released: list[int] = field(default_factory=list, repr=False)
    parameter: list[float] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)


def _yield_law_queries(requests: Sequence[tuple[View, Ids]]) -> Iterator[_LawQuery]:
    """Yields one question per mechanism and context, for all views together."""
    queries: dict[object, _LawQuery] = {}
    # of what a language model says of the same texts
    memos: dict[object, dict[object, object]] = {}
    for number, (view, positions) in enumerate(requests):
        mechanism, layout = get_contextual(view), view.layout
        memo = memos.setdefault((layout.verbatim, layout.documents.tobytes()), {})
        for place, i, logits in _yield_logits(view, positions, memo):
            # Equal logits are one law. The digest spares keeping V numbers for each position.
            key = mechanism, blake2b(logits.tobytes()).digest()
            if key not in queries:
                queries[key] = _LawQuery(law=mechanism.build_conditional(view.table, logits))
            queries[key].released.append(int(view.output_rows[i]))
            queries[key].parameter.append(float(view.parameter[i]))
            queries[key].places.append((number, place))
    yield from queries.values()


def _yield_logits(
    view: View, positions: Ids, memo: dict[object, object]
) -> Iterator[tuple[int, int, Floats]]:
    """Yields index, position number and context logits [V] of each position.

    The index counts the requested positions.
    """
    context = get_contextual(view).context
    block = Block(
        layout=view.layout, rows=view.pass_rows, memo=memo
    )  # no protected row is looked at
    released = np.full(len(view.output_rows), PLACEHOLDER)
    for wave in context.yield_waves(view.layout):
        wave_part = wave[np.isin(wave, positions)]
        if len(wave_part):
            logits = context.compute_logits(view.table, block, wave_part, released)
            yield from zip(
                np.searchsorted(positions, wave_part).tolist(),
                wave_part.tolist(),
                logits,
                strict=True,
            )
        released[wave] = view.output_rows[wave]
