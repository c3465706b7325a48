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

from textveil.evaluate.attack.case import View
from textveil.evaluate.attack.contract import Report, quiet
from textveil.mechanism import PLACEHOLDER, Block, Conditional, Contextual, Mechanism
from textveil.randomness import Floats, Ids
from textveil.table import EmbeddingTable

ROWS = 256
"""Private rows whose distances are held at once.

44 MB for 21,719 candidates.
"""


def looks(mechanism: Mechanism, table: EmbeddingTable) -> bool:
    """Says whether the law at a position depends on a language model."""
    return isinstance(mechanism, Contextual) and not mechanism.claim(table).alone


def contextual(view: View) -> Contextual:
    """Returns the view's mechanism, whose law depends on a language model."""
    assert isinstance(view.mechanism, Contextual)
    return view.mechanism


def refusal(view: View) -> str:
    """Returns why the channel cannot be had, or "".

    In words that go on "not run: ".
    """
    if contextual(view).context.mode == "original":
        return "the law of a released word depends on the private words around it, which the attacker does not know"
    return ""


def approximation(view: View) -> str:
    """Returns how the law is approximated, or "" where it is explicit.

    In words that follow "estimated".
    """
    return contextual(view).approximation(view.table)


def lines(asked: Sequence[tuple[View, Ids]], report: Report = quiet) -> list[Floats]:
    """Computes ln P(released row | each private row) at positions of views.

    float32 [p, V] for each view; all views are on one table.

    Distances are computed once for all views, ranks and buckets once for all whose context says the
    same of a position. On 21,719 rows a core takes some 30 seconds for the distances, then a tenth
    of a second a position for a staircase, and a second for buckets. At most a few hundred MB are
    held besides logits and lines.

    Args:
        asked: views of mechanisms that look at a context, and protected positions of each, rising.
        report: callback for progress.
    """
    found = [np.zeros((len(positions), len(view.table)), np.float32) for view, positions in asked]
    questions = list(_build_questions(asked))
    table = asked[0][0].table
    for start in range(0, len(table), ROWS):
        report("laws in context", start, len(table))
        rows = np.arange(start, min(start + ROWS, len(table)))
        for kind in {each.law.kind for each in questions}:
            own = [each for each in questions if each.law.kind == kind]
            near = own[0].law.near(rows)
            for question in own:
                law = question.law.log_probs(
                    near, np.array(question.released), np.array(question.parameter)
                )
                for line, (number, place) in zip(law, question.places, strict=True):
                    found[number][place, start : start + len(rows)] = line
    return found


def of_candidates(view: View, positions: Ids, rows: Ids, report: Report = quiet) -> Floats:
    """Computes the law for K given private rows of each position.

    float32 [p, K]; that is much less work than for all rows.

    Args:
        view: of a mechanism that looks at a context.
        positions: int64 [p], protected positions, rising.
        rows: int64 [p, K], for each of them.
        report: callback for progress.
    """
    found = np.zeros(rows.shape, np.float32)
    done = 0
    for question in _build_questions([(view, positions)]):
        places = np.array([place for _, place in question.places])
        distinct, which = np.unique(rows[places], return_inverse=True)
        near = question.law.near(distinct)
        law = question.law.log_probs(
            near, np.array(question.released), np.array(question.parameter)
        )
        found[places] = np.take_along_axis(law, which.reshape(len(places), -1), axis=1)
        done += len(places)
        report("laws in context", done, len(positions))
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Question:
    """The released rows to rate in one context, each with its parameter."""

    law: Conditional
    released: list[int] = field(default_factory=list, repr=False)
    parameter: list[float] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)


def _build_questions(asked: Sequence[tuple[View, Ids]]) -> Iterator[_Question]:
    """Yields one question per mechanism and context, for all views together."""
    held: dict[object, _Question] = {}
    # of what a language model says of the same texts
    memos: dict[object, dict[object, object]] = {}
    for number, (view, positions) in enumerate(asked):
        mechanism, layout = contextual(view), view.layout
        memo = memos.setdefault((layout.verbatim, layout.documents.tobytes()), {})
        for place, i, logits in _yield_logits(view, positions, memo):
            key = mechanism, blake2b(logits.tobytes()).digest()
            if key not in held:
                held[key] = _Question(law=mechanism.conditional(view.table, logits))
            held[key].released.append(int(view.drawn[i]))
            held[key].parameter.append(float(view.parameter[i]))
            held[key].places.append((number, place))
    yield from held.values()


def _yield_logits(
    view: View, positions: Ids, memo: dict[object, object]
) -> Iterator[tuple[int, int, Floats]]:
    """Yields index, position number and context logits [V] of each position.

    The index counts the requested positions.
    """
    context = contextual(view).context
    block = Block(layout=view.layout, rows=view.passed, memo=memo)  # no protected row is looked at
    released = np.full(len(view.drawn), PLACEHOLDER)
    for wave in context.schedule(view.layout):
        part = wave[np.isin(wave, positions)]
        if len(part):
            logits = context.logits(view.table, block, part, released)
            yield from zip(
                np.searchsorted(positions, part).tolist(), part.tolist(), logits, strict=True
            )
        released[wave] = view.drawn[wave]
