"""Detections: what travels through the stages of detection, and the settings that stages ask.

In: nothing. Out: `Detections`, `Settings`.
Not here: the stages (`stages`), and the detectors (`detectors`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from textveil.detect.bounds import Bounds
from textveil.detect.lists import Lists
from textveil.detect.memory import Memory
from textveil.detect.occurrences import PrivateValue, Sought
from textveil.detect.spans import Detector, Span
from textveil.randomness import Flags, Ints
from textveil.text import Tokens


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Detections:
    """The words of a batch of texts, and what was detected in them so far. Secret.

    Attributes:
        tokens: the N words of the texts.
        important: bool [N], words that matter to the task; carried along where words are cut.
        spans: sensitive parts; after the last stage no word is in two of them.
        others: what was found and is not sensitive: it is public, or `protect.level` lets it pass.
        spared: what would be sensitive, but that the user never wants protected.
        failed: whether a detector failed, so that each text is sensitive as a whole.
        bounds: of the texts, once they were asked for; carried along.
        repeats: int64 [C], which of these texts each text of the batch is, where equal ones are looked at once; None
            where these are the texts of the batch.
        new_values: for each text the private values that were not known before.
    """

    tokens: Tokens
    important: Flags
    spans: tuple[Span, ...] = ()
    others: tuple[Span, ...] = ()
    spared: tuple[Span, ...] = ()
    failed: bool = False
    bounds: dict[str, Bounds] = field(default_factory=dict)
    repeats: Ints | None = None
    new_values: tuple[tuple[PrivateValue, ...], ...] = ()

    def whole(self) -> "Detections":
        """The same of all texts of the batch, those that are equal to others among them."""
        which = self.repeats
        if which is None:
            return self
        return replace(
            self,
            tokens=self.tokens.of(which),
            important=self.important[self.tokens.places(which)],
            spans=_repeated(self.spans, which),
            others=_repeated(self.others, which),
            spared=_repeated(self.spared, which),
            new_values=tuple(self.new_values[b] for b in which.tolist() if self.new_values),
            repeats=None,
        )


def _repeated(spans: Sequence[Span], which: Ints) -> tuple[Span, ...]:
    """The spans of some texts, text after text."""
    own: dict[int, list[Span]] = {}
    for span in spans:
        own.setdefault(span.text, []).append(span)
    return tuple(
        span._replace(text=i) for i, b in enumerate(which.tolist()) for span in own.get(b, ())
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """What stages ask besides spans and words.

    Attributes:
        detectors: what finds sensitive parts.
        timeout: seconds for which a detector may show no progress; None for no limit.
        memory: what detectors found in earlier texts; None: each batch is searched anew.
        level: `protect.level`.
        types: types that count as sensitive; None for all.
        never: lists of what is never sensitive; None for none.
        scores: whether spans are scored by what else their texts hold; the bundled tagger then tells its doubts.
        moves_ages: whether ages are moved.
        known: private values of earlier texts, to which new ones are added; None: nothing is remembered.
        reserved: spans that must not pass, whatever detectors find.
    """

    detectors: tuple[Detector, ...] = field(repr=False)
    timeout: float | None = None
    memory: Memory | None = None
    level: str = "personal"
    types: frozenset[str] | None = None
    never: Lists | None = field(default=None, repr=False)
    scores: bool = False
    moves_ages: bool = False
    known: Sought | None = field(default=None, repr=False)
    reserved: tuple[Span, ...] = field(default=(), repr=False)
