"""Chooses the thresholds of the bundled tagger: `python -m training.thresholds`.

In: the shipped adapter, and the texts labelled with what is private that are held out of its training (a fifth of the
training halves). Out: a table, from which `THRESHOLD` and `CUTS` of `textveil.models.entities` are typed in.
Not here: the halves that measure, which nothing is chosen on.

A private name that is not hidden and a word that is hidden for nothing cost the same.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
from rich.console import Console

from textveil.models import Entity, Ragged, load_tagger
from textveil.models.entities import CUTS
from textveil.protect.spans import NAMES
from textveil.text.tokens import tokenize
from training import cli, data

SCORES = 0.3, 0.4, 0.5, 0.6, 0.7
SHARES = 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8
"""What is tried: probabilities of being a name at all, and shares of private labels."""


def judged(texts: list[data.Marked], entities: Iterable[Entity]) -> Iterator[tuple[str, str]]:
    """Each private name that stays, `("missed", type)`, each that goes, `("gone", type)`, and others that go.

    Others are `("public", type)` and `("ordinary", type)`, by the type that the tagger gave. What is of unknown
    standing, and what is private but no name, counts nowhere.
    """
    tokens = tokenize([text.text for text in texts])
    hidden = np.zeros(len(tokens.words), bool)
    spans = []
    for entity in entities:
        if entity.private >= 0.5:
            first = int(tokens.documents[entity.text])
            hidden[first + entity.start : first + entity.end] = True
            spans.append((first + entity.start, first + entity.end, entity.type))
    excused, public = np.zeros(len(tokens.words), bool), np.zeros(len(tokens.words), bool)
    for b, text in enumerate(texts):
        own = slice(int(tokens.documents[b]), int(tokens.documents[b + 1]))
        for mention in text.mentions:
            inside = (tokens.starts[own] < mention.end) & (tokens.ends[own] > mention.start)
            if mention.kind in NAMES and mention.standing == "private":
                words = [own.start + i for i in np.flatnonzero(inside) if tokens.words[own.start + i].isalnum()]
                yield ("gone" if hidden[words].all() else "missed"), mention.kind
            (public if mention.standing == "public" else excused)[own] |= inside
    for start, end, kind in spans:
        if not excused[start:end].any():
            yield ("public" if public[start:end].any() else "ordinary"), kind


def main() -> None:
    """Prints what each choice costs, the cheapest first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given = cli.with_corpora(parser)
    texts = [text for each in data.labelled(given.data, held_out=True).values() for text in each]
    words = Ragged.of(tokenize([text.text for text in texts]))
    tagger = load_tagger()
    found = tagger.probabilities(words)
    console = Console(width=160)
    costs: dict[tuple[float, str, float], Counter[str]] = {}
    for score, share in product(SCORES, SHARES):
        own = replace(tagger, threshold=score, cuts=dict.fromkeys(CUTS, share))
        entities = own.spans(words, found)
        for kind in NAMES:
            costs[score, kind, share] = Counter(what for what, type_ in judged(texts, entities) if type_ == kind)
    for kind in NAMES:
        console.print(f"{kind}: score, share, private gone, public hidden, other words hidden")
        ranked = sorted((n["missed"] + n["public"] + n["ordinary"], key) for key, n in costs.items() if key[1] == kind)
        for cost, key in ranked[:12]:
            n = costs[key]
            total = n["gone"] + n["missed"]
            console.print(f"  {key[0]:.1f} {key[2]:.1f}: {n['gone']}/{total}, {n['public']}, {n['ordinary']} ({cost})")


if __name__ == "__main__":
    main()
