"""Chooses the thresholds of the bundled tagger: `python -m training.cuts`.

In: the shipped adapter, and the texts labelled with what is private that are held out of its
training (a fifth of those for training). Out: values, one constant after the other, for
`textveil.models.entities`, where they are typed in.
Not here: texts that measure, on which nothing is chosen.

What is hidden for nothing costs half as much again as a private part that stays: patterns and lists
find many of those parts, too, and nobody takes back what the tagger hides.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from rich.console import Console

from textveil.detect.spans import NAMES
from textveil.models import Entity, Ragged, entities, load_tagger
from textveil.text import lexicon
from textveil.text.tokens import tokenize
from training import cli, data

FOUND, NEAR = (0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98), (0.15, 0.3, 0.45, 0.6, 0.8, 0.95)
"""What is tried for each value of `SURE` and `DETAIL`, and of `BESIDE` and `NEIGHBOUR_DETAIL_THRESHOLDS`, of
`textveil.models.entities`, the others being the best found so far."""

CUTS = (0.3, 0.4, 0.5, 0.6)
"""What is tried for `CUT`."""

ROUNDS, NEEDLESS = 2, 1.5
"""How often all constants are gone through, and what a span that is hidden for nothing costs."""


def judged(texts: list[data.Marked], found: Iterable[Entity]) -> Iterator[tuple[str, str]]:
    """Each private part that stays, `("missed", type)`, each that goes, `("gone", type)`, and others that go.

    Others are `("public", type)` and `("ordinary", type)`, by the type that the tagger gave. What
    is of unknown standing, and what is private but of no type of the tagger, counts nowhere.
    """
    tokens = tokenize([text.text for text in texts])
    hidden = np.zeros(len(tokens.words), bool)
    spans = []
    for entity in found:
        if entity.private >= 0.5:
            first = int(tokens.documents[entity.text])
            hidden[first + entity.start : first + entity.end] = True
            spans.append((first + entity.start, first + entity.end, entity.type))
    excused, public = np.zeros(len(tokens.words), bool), np.zeros(len(tokens.words), bool)
    for b, text in enumerate(texts):
        own = slice(int(tokens.documents[b]), int(tokens.documents[b + 1]))
        for mention in text.mentions:
            inside = (tokens.starts[own] < mention.end) & (tokens.ends[own] > mention.start)
            if mention.kind in (*NAMES, *entities.DETAIL_TYPES) and mention.standing == "private":
                words = [
                    own.start + i
                    for i in np.flatnonzero(inside)
                    if tokens.words[own.start + i].isalnum()
                ]
                yield ("gone" if hidden[words].all() else "missed"), mention.kind
            (public if mention.standing == "public" else excused)[own] |= inside
    for start, end, kind in spans:
        if not excused[start:end].any():
            yield ("public" if public[start:end].any() else "ordinary"), kind


class Choice(NamedTuple):
    """One value to choose: what is tried, the value that it has, and how it is set."""

    name: str
    tried: tuple[float, ...]
    now: Callable[[], float]
    set: Callable[[float], None]


def choices() -> Iterator[Choice]:
    """All values to choose, which are those of `textveil.models.entities` at first."""
    yield Choice("CUT", CUTS, lambda: entities.PRIVATE_CUT, partial(setattr, entities, "CUT"))
    for name, tried in (("SURE", FOUND), ("BESIDE", NEAR)):
        table = {look: list(values) for look, values in getattr(entities, name).items()}
        setattr(entities, name, table)
        for look, row in table.items():
            yield from _each(f"{name} {look}", tried, row)
    for name, tried in (("DETAIL", FOUND), ("BESIDE_DETAIL", NEAR)):
        row = list(getattr(entities, name))
        setattr(entities, name, row)
        yield from _each(name, tried, row)


def _each(name: str, tried: tuple[float, ...], row: list[float]) -> Iterator[Choice]:
    for i in range(len(row)):
        yield Choice(f"{name} {i}", tried, partial(row.__getitem__, i), partial(row.__setitem__, i))


def main() -> None:
    """Prints what the best values found cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--needless",
        type=float,
        default=NEEDLESS,
        help=f"cost of a needless span, default {NEEDLESS}",
    )
    given = cli.with_corpora(parser)
    texts = [text for each in data.labelled(given.data, held_out=True).values() for text in each]
    words = Ragged.build(tokenize([text.text for text in texts]))
    tagger = load_tagger()
    found = tagger.compute_label_probabilities(words)
    marks = lexicon.mark_words(words.words, words.documents)
    setattr(lexicon, "mark_words", lambda *_: marks)  # noqa: B010 (they are the same every time)
    console = Console(width=160)

    def counted() -> Counter[str]:
        spans = replace(tagger, cut=entities.PRIVATE_CUT).build_entities(words, found)
        return Counter(what for what, _ in judged(texts, spans))

    def cost(choice: Choice, value: float) -> float:
        choice.set(value)
        n = counted()
        return n["missed"] + float(given.needless) * (n["public"] + n["ordinary"])

    own = list(choices())
    for _ in range(ROUNDS):
        for choice in own:
            now = choice.now()
            choice.set(
                min((now, *choice.tried), key=lambda value: (cost(choice, value), abs(value - now)))
            )
        n = counted()
        total = n["gone"] + n["missed"]
        console.print(
            f"{n['gone']} of {total} private parts gone; hidden: {n['public']} public, "
            f"{n['ordinary']} ordinary"
        )
    for name in ("CUT", "SURE", "BESIDE", "DETAIL", "BESIDE_DETAIL"):
        console.print(f"{name} = {getattr(entities, name)}")


if __name__ == "__main__":
    main()
