"""What the Bayes attacker recovers of all private words, including those that pass or become placeholders.

In: a case, and the attacker's hits among the drawn words. Out: hits among all private words.
Not here: the attack itself (`evaluate.attack.bayes`).

Mechanisms are compared at equal risk. A rate among drawn words only would make a release that passes most words look
safe: so a word that passes counts as guessed, and for a placeholder the attacker guesses the most frequent word.

A placeholder may stand for several words. Each of them counts, except punctuation, which passes in parts that are not
joined: so the number of words is the same with and without joined parts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from textveil.config import WordsOptions
from textveil.evaluate.attack import Case, Outcome, StaticName, static, within
from textveil.protect import PUBLIC, listed
from textveil.randomness import Ints
from textveil.text import Kind, tokenize
from textveil_bench.trials import source_places

METRIC = "exposed"
NOTE = "top-1 of all private words: one that passes counts as guessed, of a placeholder the likeliest word is guessed"


def exposed(case: Case, top: Outcome) -> tuple[Outcome, Ints]:
    """The outcome among all private words, and the text of each.

    Args:
        case: releases and their originals.
        top: the Bayes attacker's top-1, a value for each protected position; its setting has the prior. In the unit
            wordpiece, values are per piece.

    Returns:
        the outcome, whose `where` is the text of each value: words that are not positions have no number.
    """
    view = case.view
    prior = cast(StaticName, top.setting["prior"])
    same = static(view.origin, prior, view.words.stopwords)[None]
    guesses = {label: int(within(view, same, i).argmax()) for i, label in enumerate(view.groups)}
    usual = int(same.argmax())
    texts, values = [view.text[top.where]], [top.values]
    drawn = set(view.item.tolist())
    for b, released in enumerate(view.released):
        first = int(view.documents[b])
        own = [
            (item, first + i)
            for i, item in enumerate(released.items)
            if item.group != PUBLIC
            and first + i not in drawn
            and item.kind in (Kind.VERBATIM, Kind.PLACEHOLDER)
        ]
        passed = sum(item.end - item.start for item, _ in own if item.kind is Kind.VERBATIM)
        text, stop = case.truth.texts[b], int(view.documents[b + 1])
        source, places = tokenize([text]).words, source_places(text, case.truth.words[first:stop])
        hidden = [
            (word, guesses.get(item.group, usual))
            for item, i in own
            if item.kind is Kind.PLACEHOLDER
            for word in _counted(source[places[i - first] : places[i - first + 1]], view.words)
        ]
        words, guess = zip(*hidden, strict=True) if hidden else ((), ())
        hits = view.origin.lookup(words)[0] == np.array(guess, np.int64)
        values.append(np.concatenate([np.ones(passed), hits.astype(np.float64)]))
        texts.append(np.full(passed + len(hidden), b))
    everything = np.concatenate(values)
    note = "; ".join(filter(None, (NOTE, top.note)))
    found = replace(
        top,
        metric=METRIC,
        where=np.concatenate(texts).astype(np.int64),
        values=everything,
        note=note,
    )
    return replace(found, baseline=None, headline=True), found.where


def _counted(words: Sequence[str], options: WordsOptions) -> list[str]:
    """The words a placeholder stands for, except punctuation that would pass elsewhere."""
    public = listed(words, options)
    return [
        word
        for word, known in zip(words, public, strict=True)
        if not known or any(map(str.isalnum, word))
    ]
