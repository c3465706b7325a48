"""The joint law of short texts: what a word costs where other words are drawn after it, or are seen with it.

In: a subject whose mechanism has `log_probs`. Out: the finding `joint`, and the losses that it is made of.
Not here: texts of one word (`exact`), and longer texts, of which only samples can be had (`sampled`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from textveil.errors import ConfigError
from textveil.mechanism import Block, Law, Layout
from textveil.randomness import Flags, Ids, Values
from textveil_bench.audit.exact import hold, losses, too_much
from textveil_bench.audit.finding import ROUNDING, AuditFinding, skipped, unclaimed
from textveil_bench.audit.subject import FEW, SUMS, NoLaw, Subject, distances

SHARES = ((1.0, 1.0), (1.0, 0.5))
"""Of the budget: what each word of a text has."""

SHARES_FULL = (*SHARES, (1.0, 1.0, 1.0), (0.5, 1.0, 1.0))
AROUND = ((0, 1), (2, 5), (4, 4))
"""The other words of a text of three; next to one word stands every word in its turn."""

ALL = ~np.eye(FEW, dtype=bool)


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """One word of a text takes every value, the others stay.

    Attributes:
        layout: a text of so many words.
        parameter: of each of them.
        word: the number of the word that changes.
        lost: the losses of all pairs of its values, the largest over outputs and over what stands around, [6, 6].
    """

    layout: Layout
    parameter: Values
    word: int
    lost: Values


@lru_cache(maxsize=1)  # two checks look at the same laws
def changes(subject: Subject) -> tuple[Change, ...]:
    """Every word of texts of two words, in the full audit of three words too, with equal and unequal budgets.

    Raises:
        NoLaw: the conditional laws of a text do not make a law.
    """
    return tuple(
        change
        for shares in (SHARES if subject.small else SHARES_FULL)
        for change in _changes(subject, np.array(shares))
    )


def _changes(subject: Subject, shares: Values) -> Iterator[Change]:
    layout = Layout.of(len(shares))
    parameter = subject.mechanism.parameters(subject.few, layout)
    if parameter is None:
        parameter = subject.parameter(subject.few, layout, shares)
    around = AROUND if len(shares) == 3 else tuple((other,) for other in range(FEW))
    texts = [
        [(*a[:word], value, *a[word:]) for a in around for value in range(FEW)]
        for word in range(len(shares))
    ]
    distinct, which = np.unique(
        np.array(texts).reshape(-1, len(shares)), axis=0, return_inverse=True
    )
    law = law_of_texts(subject, distinct, parameter)[which.ravel()].reshape(
        len(shares), len(around), FEW, -1
    )
    for word, laws in enumerate(law):
        lost = np.max([losses(each) for each in laws], axis=0)
        yield Change(layout=layout, parameter=parameter, word=word, lost=lost)


def law_of_texts(subject: Subject, texts: Ids, parameter: Values) -> Values:
    """ln Pr of every output of some texts [m, L], [m, 6^L]: the conditional laws along each output, added up."""
    m, length = texts.shape
    outputs = np.indices((FEW,) * length).reshape(length, -1).T
    block = Block(
        layout=Layout.of(*[length] * (m * len(outputs))),
        rows=np.repeat(texts, len(outputs), axis=0).ravel(),
    )
    released = np.tile(outputs, (m, 1)).ravel()
    assert isinstance(subject.mechanism, Law)
    law = subject.mechanism.log_probs(
        subject.few, block, np.tile(parameter, m * len(outputs)), released
    )
    assert law is not None
    if law.shape != (len(released), FEW):
        raise NoLaw("the law has not one probability per word")
    joint: Values = (
        law[np.arange(len(released)), released].reshape(m, len(outputs), length).sum(axis=2)
    )
    if not (np.abs(np.exp(joint).sum(axis=1) - 1) <= SUMS).all():
        raise NoLaw("the probabilities of all outputs of a text do not sum to 1")
    return joint


def joint(subject: Subject) -> AuditFinding:
    """The largest loss when one word of a short text changes, over all outputs of the whole text, against its charge.

    A mechanism that sees other words, or what was drawn for them, loses at their positions too.
    """
    name = "joint"
    if (why := without_law(subject)) is not None:
        return skipped(name, why)
    claim = subject.mechanism.claim(subject.few)
    worst, excess = (0.0, 0.0, 0.0), -np.inf
    try:
        for change in changes(subject):
            if claim.kind == "none":
                worst = max(worst, (0.0, float(change.lost.max()), 0.0))
                continue
            spent = subject.spent(subject.few, change.layout, change.parameter)
            found, over = held(
                change, distances(subject.few, claim, np.arange(FEW)), spent, claim.additive
            )
            charged = float(spent[change.word])
            worst = max(worst, (found / max(charged, 1e-12), found, charged))
            excess = max(excess, over)
    except NoLaw as error:
        return AuditFinding(check=name, evidence="proved", verdict="violated", why=str(error))
    if claim.kind == "none":
        return unclaimed(name, f"nothing is claimed: {claim.reason}", worst[1])
    return AuditFinding(
        check=name,
        evidence="proved",
        verdict="violated" if excess > ROUNDING else "holds",
        claimed=worst[2],
        found=worst[1],
        why=f"texts of two{'' if subject.small else ' and three'} words, {FEW} words: every output of a whole text"
        + too_much(excess),
    )


def held(
    change: Change, apart: Values, epsilon: Values, additive: float, pairs: Flags = ALL
) -> tuple[float, float]:
    """A change held against the epsilon of its word, as `hold` gives it."""
    return hold(change.lost, apart, np.full(FEW, epsilon[change.word]), additive, pairs)


def without_law(subject: Subject) -> str | None:
    """Why there is no joint law to look at; None where there is one."""
    if len(subject.slice) < FEW:
        return f"the table has less than {FEW} words"
    try:
        law = subject.law(subject.few, np.arange(FEW))
    except ConfigError:
        return f"it does not run on a table of {FEW} words"
    except NoLaw:
        return None
    return "the output law has no closed form; see `sampled`" if law is None else None
