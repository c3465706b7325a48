"""How many words of a release were drawn, passed or hidden: the counts follow from what was really drawn.

Not here: how messages are counted (`tests.gateway.test_chains`), and sums over a corpus (`tests.corpus`).
"""

import math
from typing import Any

from textveil import Privatizer
from textveil.session import Session

PATTERNS = {"detectors": ["patterns"]}
ALIKE = {"consistent": True}


def test_counts_of_words(small_table):
    """Drawn, placeholders, passed and left out: of six words behind a public one, two of them equal, two unknown."""
    one, two, three = small_table.words[40:43]
    options: Any
    text = f"the {one} {two} {one} zzyzx; {three} {one}@example.org"
    for options, counts in [
        ({"mechanism": "krr", "epsilon": 3}, (6, 0, 0, 0)),
        ({"mechanism": "krr", "epsilon": 3, "words": ALIKE}, (5, 0, 0, 0)),
        ({"mechanism": "placeholder"}, (0, 6, 0, 0)),
        ({"mechanism": "placeholder", "words": ALIKE}, (0, 6, 0, 0)),
        ({"mechanism": "krr", "epsilon": 0}, (0, 6, 0, 0)),
        ({"mechanism": "krr", "epsilon": math.inf}, (0, 0, 6, 0)),
        ({"mechanism": "stencil"}, (0, 0, 0, 0)),
        ({"mechanism": "noise", "epsilon": 9, "words": {"oov": "keep"}}, (4, 0, 2, 0)),
        ({"mechanism": "noise", "epsilon": 9, "words": {"oov": "drop"}}, (4, 0, 0, 2)),
        ({"mechanism": "noise", "epsilon": 9, "words": {"oov": "uniform"}}, (6, 0, 0, 0)),
        (
            {"mechanism": "krr", "protect": PATTERNS, "groups": {"budgets": [0, 0, 2, math.inf]}},
            (0, 1, 5, 0),
        ),
        (
            {
                "mechanism": "krr",
                "epsilon": 3,
                "protect": PATTERNS,
                "words": ALIKE | {"casing": "copy"},
            },
            (4, 1, 0, 0),
        ),
    ]:
        privatizer, session = Privatizer(table=small_table, **options), Session()
        first, second = (privatizer.privatize(text, session).guarantee for _ in range(2))
        drawn = counts[0]
        again = drawn if privatizer.words.consistent else 0
        for each, new in ((first, drawn), (second, drawn - again)):
            assert (each.drawn, each.placeholders, each.passed, each.dropped) == (
                new,
                *counts[1:],
            ), options
            assert each.covered == 6
            assert each.draws == (drawn > 0) == ("Nothing is drawn" not in each.headline())
        assert (first.drawn_before, second.drawn_before) == (0, again)
        assert ("drawn in an earlier release" in second.headline()) == (again > 0)
