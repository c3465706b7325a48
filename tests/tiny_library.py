"""A tiny public library of invented sentences, and private texts that stand in none.

In: nothing. Out: `make_tiny_library`, `PRIVATE`, `CANARY`.
"""

from functools import cache

from textveil.library import Library, make_library

CANARY = "Zyxqorvian"
"""A word of private texts, which no release may have."""

PATTERNS = {
    "pets": ["The dog {} in the garden.", "A cat {} near the house.", "Our puppy {} on the grass."],
    "money": ["The bank {} its rates.", "Shares {} in the market.", "The company {} a profit."],
    "weather": ["Rain {} in the north.", "The storm {} over the sea.", "Snow {} on the hills."],
}
VERBS = [
    "runs",
    "sleeps",
    "jumps",
    "waits",
    "falls",
    "rises",
    "keeps",
    "moves",
    "grows",
    "ends",
    "begins",
    "stays",
]

PRIVATE = {
    "pets": f"My kitten {CANARY} slept beside the dog.",
    "money": f"{CANARY} Bank lost money and its shares fell.",
    "weather": f"It snowed and rained on the storm of {CANARY}.",
}
"""A private text of each kind."""


@cache
def make_tiny_library(*, labels: bool = True) -> Library:
    """Makes the library: with public labels and 6 clusters, or with 6 and 10 clusters."""
    kinds = [
        (kind, line.format(verb))
        for kind, lines in PATTERNS.items()
        for line in lines
        for verb in VERBS
    ]
    return make_library(
        [text for _, text in kinds],
        ids=[f"made-up/{number}" for number in range(len(kinds))],
        labels=[kind for kind, _ in kinds] if labels else None,
        source="nobody wrote it",
        licence="CC0 1.0",
        name="tiny",
        levels=(6,) if labels else (6, 10),
    )
