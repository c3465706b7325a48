"""Exposure: the Bayes attacker's success among all private words.

In: a case, and the attacker's hits among the drawn words. Out: hits among all private words.
Not here: the attack itself (`evaluate.attack.bayes`).

Mechanisms are compared at equal risk. A rate among drawn words only would make a release that
passes most words look safe: so a word that passes counts as guessed, and for a placeholder the
attacker guesses the most frequent word.

A placeholder may stand for several words. Each of them counts, except punctuation, which passes in
parts that are not joined: so the number of words is the same with and without joined parts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from textveil.config import WordsOptions
from textveil.evaluate.attack import Case, Outcome, StaticName, get_static_prior, restrict_to_group
from textveil.protect import PUBLIC, find_public_words
from textveil.randomness import Ints
from textveil.text import Kind, tokenize
from textveil_bench.trials import find_source_places

EXPOSURE_METRIC = "exposed"
EXPOSURE_NOTE = (
    "top-1 of all private words: a word that passes counts as guessed; for a placeholder, the "
    "most frequent word is guessed"
)


def measure_exposure(case: Case, top: Outcome) -> tuple[Outcome, Ints]:
    """Computes the top-1 outcome among all private words, and their texts.

    Args:
        case: releases and their originals.
        top: the Bayes attacker's top-1, a value for each protected position; its setting has the
            prior. In the unit wordpiece, values are per piece.

    Returns:
        the outcome, whose `where` is the text of each value: words outside the positions have no
            number.
    """
    view = case.view
    prior = cast(StaticName, top.setting["prior"])
    prior_scores = get_static_prior(view.origin, prior, view.words.stopwords)[None]
    guesses = {
        label: int(restrict_to_group(view, prior_scores, i).argmax())
        for i, label in enumerate(view.groups)
    }
    usual = int(prior_scores.argmax())
    texts, values = [view.text[top.where]], [top.values]
    drawn_items = set(view.item.tolist())
    for b, released in enumerate(view.released):
        first = int(view.documents[b])
        other_items = [
            (item, first + i)
            for i, item in enumerate(released.items)
            if item.group != PUBLIC
            and first + i not in drawn_items
            and item.kind in (Kind.VERBATIM, Kind.PLACEHOLDER)
        ]
        passed = sum(item.end - item.start for item, _ in other_items if item.kind is Kind.VERBATIM)
        text, stop = case.truth.texts[b], int(view.documents[b + 1])
        source, places = (
            tokenize([text]).words,
            find_source_places(text, case.truth.words[first:stop]),
        )
        hidden = [
            (word, guesses.get(item.group, usual))
            for item, i in other_items
            if item.kind is Kind.PLACEHOLDER
            for word in _list_counted_words(
                source[places[i - first] : places[i - first + 1]], view.words
            )
        ]
        words, guess = zip(*hidden, strict=True) if hidden else ((), ())
        hits = view.origin.lookup(words)[0] == np.array(guess, np.int64)
        values.append(np.concatenate([np.ones(passed), hits.astype(np.float64)]))
        texts.append(np.full(passed + len(hidden), b))
    all_values = np.concatenate(values)
    note = "; ".join(filter(None, (EXPOSURE_NOTE, top.note)))
    outcome = replace(
        top,
        metric=EXPOSURE_METRIC,
        where=np.concatenate(texts).astype(np.int64),
        values=all_values,
        note=note,
    )
    return replace(outcome, baseline=None, headline=True), outcome.where


def _list_counted_words(words: Sequence[str], options: WordsOptions) -> list[str]:
    """Lists the words of a placeholder, except punctuation that would pass elsewhere."""
    public = find_public_words(words, options)
    return [
        word
        for word, is_public in zip(words, public, strict=True)
        if not is_public or any(map(str.isalnum, word))
    ]
