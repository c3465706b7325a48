"""The joint law of short texts, and the loss across all outputs.

In: a subject whose mechanism has `log_probs`. Out: the finding `joint`, and its losses.
Not here: texts of one word (`exact`), and longer texts, which can only be sampled (`sampled`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from textveil.errors import ConfigError
from textveil.mechanism import Block, Law, Layout
from textveil.randomness import Flags, Ids, Values
from textveil_bench.audit.audit_target import (
    SUM_TOLERANCE,
    TINY_TABLE_WORDS,
    InvalidLaw,
    Subject,
    compute_distances,
)
from textveil_bench.audit.exact import compare_losses, compute_losses, format_excess
from textveil_bench.audit.finding import (
    FLOAT64_TOLERANCE,
    AuditFinding,
    make_skipped,
    make_unclaimed,
)

BUDGET_SHARES = ((1.0, 1.0), (1.0, 0.5))
"""Share of the budget of each word of a text."""

BUDGET_SHARES_FULL = (*BUDGET_SHARES, (1.0, 1.0, 1.0), (0.5, 1.0, 1.0))
CONTEXT_WORDS = ((0, 1), (2, 5), (4, 4))
"""The other words of a three-word text.

Two-word texts take every other word.
"""

DISTINCT_PAIRS = ~np.eye(TINY_TABLE_WORDS, dtype=bool)


@dataclass(frozen=True, kw_only=True, eq=False)
class WordChange:
    """The losses when one word of a text takes every value.

    Attributes:
        layout: the layout of the text.
        parameter: of each word.
        word: the index of the word that changes.
        losses: the losses of all pairs of its values, [6, 6]: the largest over outputs and
            contexts.
    """

    layout: Layout
    parameter: Values
    word: int
    losses: Values


@lru_cache(maxsize=1)  # two checks look at the same laws
def compute_changes(subject: Subject) -> tuple[WordChange, ...]:
    """Computes the losses of every word of short texts.

    Texts have two words, in the full audit also three, with equal and unequal budgets.

    Raises:
        InvalidLaw: the conditional laws of a text do not form a probability distribution.
    """
    return tuple(
        change
        for shares in (BUDGET_SHARES if subject.small else BUDGET_SHARES_FULL)
        for change in _change_words(subject, np.array(shares))
    )


def _change_words(subject: Subject, shares: Values) -> Iterator[WordChange]:
    layout = Layout.build(len(shares))
    parameter = subject.mechanism.parameters(subject.tiny_table, layout)
    if parameter is None:
        parameter = subject.compute_parameter(subject.tiny_table, layout, shares)
    contexts = (
        CONTEXT_WORDS if len(shares) == 3 else tuple((other,) for other in range(TINY_TABLE_WORDS))
    )
    texts = [
        [(*a[:word], value, *a[word:]) for a in contexts for value in range(TINY_TABLE_WORDS)]
        for word in range(len(shares))
    ]
    distinct, which = np.unique(
        np.array(texts).reshape(-1, len(shares)), axis=0, return_inverse=True
    )
    law = compute_text_laws(subject, distinct, parameter)[which.ravel()].reshape(
        len(shares), len(contexts), TINY_TABLE_WORDS, -1
    )
    for word, laws in enumerate(law):
        largest = np.max([compute_losses(value_law) for value_law in laws], axis=0)
        yield WordChange(layout=layout, parameter=parameter, word=word, losses=largest)


def compute_text_laws(subject: Subject, texts: Ids, parameter: Values) -> Values:
    """Computes ln Pr of every output of texts [m, L]: [m, 6^L].

    Sums the conditional log probabilities along each output.
    """
    m, length = texts.shape
    outputs = np.indices((TINY_TABLE_WORDS,) * length).reshape(length, -1).T
    block = Block(
        layout=Layout.build(*[length] * (m * len(outputs))),
        rows=np.repeat(texts, len(outputs), axis=0).ravel(),
    )
    released = np.tile(outputs, (m, 1)).ravel()
    assert isinstance(subject.mechanism, Law)
    law = subject.mechanism.log_probs(
        subject.tiny_table, block, np.tile(parameter, m * len(outputs)), released
    )
    assert law is not None
    if law.shape != (len(released), TINY_TABLE_WORDS):
        raise InvalidLaw("the law must have one probability per word")
    text_laws: Values = (
        law[np.arange(len(released)), released].reshape(m, len(outputs), length).sum(axis=2)
    )
    if not (np.abs(np.exp(text_laws).sum(axis=1) - 1) <= SUM_TOLERANCE).all():
        raise InvalidLaw("the probabilities of all outputs of a text do not sum to 1")
    return text_laws


def check_joint(subject: Subject) -> AuditFinding:
    """Checks a changed word's loss over whole outputs against its charge.

    A mechanism that uses other words, or their draws, also loses at their positions.
    """
    name = "joint"
    if (why := explain_missing_law(subject)) is not None:
        return make_skipped(name, why)
    claim = subject.mechanism.claim(subject.tiny_table)
    worst, excess = (0.0, 0.0, 0.0), -np.inf
    try:
        for change in compute_changes(subject):
            if claim.kind == "none":
                worst = max(worst, (0.0, float(change.losses.max()), 0.0))
                continue
            spent = subject.compute_spent(subject.tiny_table, change.layout, change.parameter)
            rate, surplus = compare_change(
                change,
                compute_distances(subject.tiny_table, claim, np.arange(TINY_TABLE_WORDS)),
                spent,
                claim.additive,
            )
            charged = float(spent[change.word])
            worst = max(worst, (rate / max(charged, 1e-12), rate, charged))
            excess = max(excess, surplus)
    except InvalidLaw as error:
        return AuditFinding(check=name, evidence="proved", verdict="violated", why=str(error))
    if claim.kind == "none":
        return make_unclaimed(name, f"nothing is claimed: {claim.reason}", worst[1])
    return AuditFinding(
        check=name,
        evidence="proved",
        verdict="violated" if excess > FLOAT64_TOLERANCE else "holds",
        claimed=worst[2],
        found=worst[1],
        why=f"texts of two{'' if subject.small else ' and three'} words, {TINY_TABLE_WORDS} words: "
        "every output of a whole text" + format_excess(excess),
    )


def compare_change(
    change: WordChange,
    pair_distances: Values,
    epsilon: Values,
    additive: float,
    pairs: Flags = DISTINCT_PAIRS,
) -> tuple[float, float]:
    """Compares a change's losses with its word's epsilon; see `compare_losses`."""
    return compare_losses(
        change.losses,
        pair_distances,
        np.full(TINY_TABLE_WORDS, epsilon[change.word]),
        additive,
        pairs,
    )


def explain_missing_law(subject: Subject) -> str | None:
    """Explains why there is no joint law; None if there is one."""
    if len(subject.slice) < TINY_TABLE_WORDS:
        return f"the table has fewer than {TINY_TABLE_WORDS} words"
    try:
        law = subject.compute_law(subject.tiny_table, np.arange(TINY_TABLE_WORDS))
    except ConfigError:
        return f"it does not run on a table of {TINY_TABLE_WORDS} words"
    except InvalidLaw:
        return None
    return "the output law has no closed form; see `sampled`" if law is None else None
