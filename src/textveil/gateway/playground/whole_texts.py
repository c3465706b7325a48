"""The tab of whole texts: a letter, and a public text in its place.

In: a letter, a step of epsilon. Out: JSON of what would be released. Private: the letter's own kind
is for the person who typed it.
Not here: how a public text is drawn (`pipeline`), libraries (`library`), and the routes (`routes`).

Nothing is stored and nothing goes upstream. Each call draws anew.
"""

from functools import cache, cached_property
from typing import Any

from textveil.errors import MissingExtra
from textveil.gateway.errors import RequestError
from textveil.guarantee import format_number
from textveil.library import (
    Level,
    Library,
    describe_baseline,
    find_typical_words,
    make_demo_library,
)
from textveil.pipeline import TextPrivatizer

STEPS = tuple(step / 2 for step in range(1, 17))
"""The values of epsilon that the page offers."""

ADVICE = (
    "This tab needs a library of public texts: make one with `textveil library make`, and start "
    "the gateway with --library FILE. Where scikit-learn is installed (pip install "
    "'textveil[library]'), the page makes a small one from invented notes."
)


class Letters:
    """Whole texts of a page, and the public library for them.

    Args:
        library: the library; None for one of the package's invented notes, made at first use.
    """

    def __init__(self, library: Library | None = None) -> None:
        self._given = library
        self._load_privatizer = cache(self._build_privatizer)
        self._find_words = cache(self._list_words)

    @cached_property
    def _library(self) -> Library:
        return make_demo_library() if self._given is None else self._given

    def _build_privatizer(self, step: int) -> TextPrivatizer:
        return TextPrivatizer(self._library, epsilon=STEPS[step])

    def _list_words(self, level: Level) -> list[tuple[str, ...]]:
        return find_typical_words(self._library, level)

    def describe(self) -> dict[str, Any]:
        """Describes the library, and what each step of epsilon means; or says how to get one."""
        try:
            library = self._library
        except MissingExtra:
            return {"advice": ADVICE}
        return {
            "about": f"{library.name}: {len(library):,} public texts ({library.source}; "
            f"{library.licence})",
            "baseline": describe_baseline(library),
            "steps": [self._describe_step(step) for step in range(len(STEPS))],
        }

    def _describe_step(self, step: int) -> dict[str, str]:
        privatizer = self._load_privatizer(step)
        cells, true = len(privatizer.level), privatizer.response.true_rate
        other = (1 - true) / (cells - 1)
        others = "the other kind" if cells == 2 else f"each of the {cells - 1:,} others"
        return {
            "epsilon": f"{STEPS[step]:g}",
            "chance": (
                f"Of {cells:,} kinds of texts the letter's own is drawn with a chance of "
                f"{_format_share(true)}, {others} with {_format_share(other)}."
            ),
        }

    def release(self, text: str, step: int) -> dict[str, Any]:
        """Releases a public text in place of a letter.

        Raises:
            RequestError: there is no letter, or no library.
            InputError: the letter stands in the library.
        """
        if not text.strip():
            raise RequestError(400, "there is nothing to replace: the letter is empty")
        try:
            privatizer = self._load_privatizer(step)
        except MissingExtra:
            raise RequestError(400, ADVICE, code="library") from None
        result, level = privatizer.privatize(text), privatizer.level
        own, drawn = int(self._library.find_cells([text], level)[0]), result.cells[0]
        guarantee = result.guarantee
        return {
            "text": result.text,
            "source": f"Text {result.source_id} of {result.library}, which somebody else wrote.",
            "own": self._describe_cell(level, own),
            "drawn": self._describe_cell(level, drawn),
            "kept": own == drawn,
            "chance": _format_share(privatizer.response.true_rate),
            "epsilon": guarantee.epsilon,
            "bound": format_number(guarantee.epsilon),
            "statement": guarantee.summary(),
            "plainly": guarantee.explain_plainly(),
            "explained": guarantee.explain(),
        }

    def _describe_cell(self, level: Level, cell: int) -> str:
        name = level.names[cell] if level.names else f"{cell + 1} of {len(level):,}"
        words = ", ".join(self._find_words(level)[cell])
        return f"{name} ({words})" if words else name


def _format_share(share: float) -> str:
    return f"{share:.1%}" if share < 0.9995 else "more than 99.9%"
