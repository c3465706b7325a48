"""The prior: the attacker's expectation before looking at the released word.

In: a table, and for the language model the released words around. Out: ln of probabilities of
private rows.
Not here: what the released word tells (`channel`), and both together (`posterior`).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from textveil.errors import UnknownName
from textveil.evaluate.attack.attack_input import View
from textveil.evaluate.log_math import compute_log_sum, softmax
from textveil.models import ContextKind, LanguageModel, Ragged, load_context
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.table import EmbeddingTable, compute_shares
from textveil.text import is_public

StaticName = Literal["uniform", "unigram"]
PriorName = Literal["uniform", "unigram", "context"]
PRIORS: tuple[PriorName, ...] = get_args(PriorName)

MAX_PRIOR_LOGITS = 1 << 26
"""Logits that are in memory at once: 256 MiB."""

UNIFORM_SHARE = 0.5
"""The share of the uniform prior in the unigram prior.

The attacked texts are not the text that was counted.
"""

OUTSIDE_SHARE = 0.05
"""The prior share of words outside the table within a group.

Nobody knows which row stands for them.
"""

UNIGRAM_SHARE, LOGIT_FACTOR = 0.3, 0.7
"""The unigram share and logit factor of the language model's prior.

The model reads noisy text, and is too sure. Found on sentences of SST-2's training set, under the
exponential mechanism.
"""


def get_static_prior(
    table: EmbeddingTable, name: StaticName, stopwords: Literal["pass", "protect"] = "pass"
) -> Values:
    """Returns the log prior of every row, the same at all positions.

    float64 [V].

    Args:
        table: whose rows they are.
        name: uniform, or the frequency of words in public text.
        stopwords: whether words of the public list pass, or are protected and to be expected like
            all others.
    """
    even = np.full(len(table), 1 / len(table))
    share = (
        even
        if name == "uniform"
        else UNIFORM_SHARE * even
        + (1 - UNIFORM_SHARE) * compute_shares(table, listed=stopwords == "protect")
    )
    return np.log(share).astype(np.float64)


def compute_view_prior(view: View, name: StaticName) -> Values:
    """Returns the log prior of every row of a view's words.

    The same at all positions: float64 [V].
    """
    log_prior = view.restrict(get_static_prior(view.vocabulary, name, view.words.stopwords))
    return log_prior if view.source_table is None else log_prior - compute_log_sum(log_prior[None])


def restrict_to_group(view: View, log_prior: Values, group: int) -> Values:
    """Restricts a log prior [m, V] to rows of one group.

    The group is visible: rows whose words have another group are expected no more.

    Rows whose words have another group are expected no more.

    A share stays with all rows, which stand for words outside the table, too. The same prior where
    the group of a word does not follow from the word alone, or no row has this one.
    """
    if view.row_group is None or not (is_member := view.row_group == group).any():
        return log_prior
    prior = np.exp(log_prior)
    inside = np.where(is_member, prior, 0.0)
    inside *= (1 - OUTSIDE_SHARE) / inside.sum(axis=1, keepdims=True)
    inside += OUTSIDE_SHARE * prior
    return np.log(inside, out=inside)


def check_prior_name(name: str) -> PriorName:
    """Checks a prior's name, and returns it.

    Raises:
        UnknownName: there is no prior of that name.
    """
    for prior in PRIORS:
        if name == prior:
            return prior
    raise UnknownName("prior", name, PRIORS)


def explain_refusal(view: View, name: PriorName) -> str:
    """Returns why a view has no such prior, or "".

    In words that go on "not run: ".
    """
    if name == "context" and view.words.unit == "wordpiece":
        return "a language model predicts whole words, not pieces"
    return ""


def yield_context_prior(
    view: View, items: Ids, model: str | None = None
) -> Iterator[tuple[Ids, Floats]]:
    """Yields a masked language model's log prior for some items.

    The model reads the released words around each.

    The item itself is hidden. The probabilities are tempered, and mixed with those of the unigram
    prior.

    Args:
        view: the releases.
        items: int64 [p], numbers of items, counted over all texts.
        model: a folder or hub id of a masked language model; None is the bundled one.

    Yields:
        Which of the items, and ln of the probability of every row there, float32 [m, V].
    """
    loaded = load_language_model(view.vocabulary, model)
    limited = replace(
        loaded, batch=max(1, min(loaded.batch, MAX_PRIOR_LOGITS // len(view.vocabulary)))
    )
    expected_anywhere = (UNIGRAM_SHARE * np.exp(compute_view_prior(view, "unigram"))).astype(
        np.float32
    )
    for which, logits in limited.yield_batches(get_released_words(view), items):
        expected = convert_logits(view, LOGIT_FACTOR * logits)
        expected *= 1 - UNIGRAM_SHARE
        expected += expected_anywhere
        yield which, np.log(expected, out=expected)


def convert_logits(view: View, logits: Floats) -> Floats:
    """Converts a language model's logits of all words to probabilities.

    float32 [m, V], of private rows.

    Where words of the public list pass, what is private is none of them. Their rows then stand for
    words outside the table, of which the model says nothing: each has the share of public text that
    falls on it.
    """
    if view.source_table is not None:
        return softmax(view.restrict(logits))
    if view.words.stopwords == "protect":
        return softmax(logits)
    listed = _mark_listed(view.origin)
    falls = compute_shares(view.origin)[listed].astype(np.float32)
    expected = softmax(np.where(listed, np.float32(-np.inf), logits))
    expected *= 1 - falls.sum()
    expected[:, listed] = falls
    return expected


@lru_cache(maxsize=16)
def _mark_listed(table: EmbeddingTable) -> Flags:
    """Marks the rows whose words are on the public list: bool [V]."""
    return np.array([is_public(word) for word in table.words])


@lru_cache(maxsize=2)
def load_language_model(
    table: EmbeddingTable, model: str | None, kind: ContextKind = "masked-lm"
) -> LanguageModel:
    """Loads a language model over a table's words, and caches it.

    A sweep asks for it in every cell.

    Args:
        table: its words are the candidates.
        model: a folder or hub id; None is the bundled masked one.
        kind: masked-lm or causal-lm.

    Raises:
        ModelError: there is no such model.
    """
    return load_context(table, model, kind=kind)


def get_released_words(view: View) -> Ragged:
    """Returns the released words as input of a language model.

    It has no word for a placeholder.
    """
    return Ragged.build_released(view.released)
