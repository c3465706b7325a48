"""Detection: finds what is private in a batch of texts. Make one with `of`.

In: options, the words of a batch. Out: `Detections`.
Not here: the stages (`stages`), and which group and budget a span's words get (`textveil.protect`).
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self, TypeGuard

from textveil.config import ProtectOptions
from textveil.detect import stages
from textveil.detect.adapters import TaggerDetector
from textveil.detect.detections import Detections, Settings
from textveil.detect.detectors import detector
from textveil.detect.lists import Lists
from textveil.detect.memory import Memory
from textveil.detect.occurrences import Sought
from textveil.detect.scoring import DOUBT
from textveil.detect.spans import (
    IDENTIFIERS,
    LISTED,
    NAMES,
    OWN,
    TYPES,
    WHOLE,
    Detector,
    Span,
)
from textveil.detect.unmeasured import Unmeasured, unmeasured
from textveil.detect.visibility import is_at_level
from textveil.errors import ConfigError, DetectorError, InputError, TextveilWarning, UnknownName
from textveil.randomness import Flags
from textveil.text import Tokens

KEYED, LISTING = frozenset(("patterns", "structure")), frozenset(("lists", "unmeasured"))
"""Detectors that find names only behind a key; and those that find what a user lists, or all of a text."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Detection:
    """Finds what is private in texts, and wherever else it stands in them.

    Attributes:
        options: the options it was made from.
        settings: what its stages ask.
    """

    options: ProtectOptions
    settings: Settings

    @classmethod
    def of(cls, options: ProtectOptions, *, moves_ages: bool = False) -> Self:
        """Makes the detection that these options ask for.

        Args:
            options: which detectors run, and what of their spans counts.
            moves_ages: whether ages are moved, so that a span of one holds its unit.

        Raises:
            UnknownName: there is no such detector or type.
            ConfigError: `protect.detectors` holds something that is no detector.
        """
        found: list[Detector] = [
            detector(each) if isinstance(each, str) else each for each in options.detectors
        ]
        if any(not isinstance(each, Detector) for each in found):
            raise ConfigError(
                "protect.detectors must hold detector names, or objects with a name and find(texts)"
            )
        if options.always or options.always_matching:
            found.append(Lists(words=options.always, expressions=options.always_matching))
        if options.unmeasured == "strict":
            found.append(Unmeasured())
        scores = options.level != "names" and any(map(_is_bundled, found))
        if scores:
            found = [each.doubting(DOUBT) if _is_bundled(each) else each for each in found]
        never = options.never or options.never_matching
        settings = Settings(
            detectors=tuple(found),
            timeout=options.timeout,
            level=options.level,
            types=None if "all" in options.types else _counting(options) | {LISTED, WHOLE},
            never=Lists(words=options.never, expressions=options.never_matching) if never else None,
            scores=scores,
            moves_ages=moves_ages,
        )
        return cls(options=options, settings=settings)

    @property
    def finds_names(self) -> bool:
        """Whether names are found that stand behind no key, or nothing asks for names."""
        names = {each.name for each in self.settings.detectors} - LISTING
        types = self.settings.types
        asked = types is None or not types.isdisjoint(NAMES)
        if self.settings.level == "identifiers" or not asked or not names:
            return True
        return not names <= KEYED

    def remembering(self) -> Self:
        """The same detection, which remembers what detectors found: equal texts are searched once."""
        return replace(self, settings=replace(self.settings, memory=Memory()))

    def check_measured(self, texts: Sequence[str]) -> None:
        """Refuses texts with parts in a script or language that was not measured, if the options say so.

        Raises:
            InputError: there are such parts, and `protect.unmeasured` is `refuse`.
        """
        if self.options.unmeasured != "refuse":
            return
        if named := sorted({*chain.from_iterable(self.unmeasured(texts))}):
            raise InputError(
                f"nothing is released: recall was not measured for {' and '.join(named)} text; take it out, or set "
                "protect.unmeasured to strict, which hides it, or say, which lets it pass"
            )

    def detect(self, tokens: Tokens, important: Flags) -> Detections:
        """Finds what detectors find in the texts of a batch.

        Args:
            tokens: the N words and their texts.
            important: bool [N], words that matter to the task.

        Raises:
            DetectorError: a detector failed, and `protect.on_failure` is `refuse`.
        """
        found = Detections(tokens=tokens, important=important)
        try:
            return stages.run(stages.STAGES, found, self.settings)
        except DetectorError as error:
            if self.options.on_failure == "refuse":
                raise
            warnings.warn(
                f"{error}; all texts of the batch are treated as sensitive",
                TextveilWarning,
                stacklevel=2,
            )
            return replace(found, failed=True)

    def propagate(
        self, found: Detections, known: Sought | None, reserved: Iterable[Span] = ()
    ) -> Detections:
        """Finds all other places where what was found stands, in its text and in those after it.

        Args:
            found: what detectors found.
            known: what a session found earlier, to which what is new is added; None without one.
            reserved: other spans that must not pass.
        """
        if found.failed:
            return found
        settings = replace(self.settings, known=known, reserved=tuple(reserved))
        return stages.run(stages.PROPAGATING, found, settings)

    def is_at_level(self, span: Span) -> bool:
        """Tells whether `protect.level` counts a span as sensitive."""
        return is_at_level(span, self.options.level)

    def staying(self, found: Detections) -> tuple[Span, ...]:
        """Merges what stays of what was found: what is not sensitive, and what the user never wants protected."""
        stays = replace(found, spans=(*found.others, *found.spared))
        return stages.run(stages.MERGING, stays, self.settings).spans

    def unmeasured(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Names the scripts and languages of each text for which it was not measured how much is found.

        Nothing is said without detectors, and nothing where labels are drawn: it would tell of the words.
        """
        silent = not self.settings.detectors or self.options.labels == "randomised"
        return [() if silent else unmeasured(text) for text in texts]


def _is_bundled(each: Detector) -> TypeGuard[TaggerDetector]:
    return isinstance(each, TaggerDetector) and each.bundled


def named_types(given: Sequence[str], option: str) -> frozenset[str]:
    """Expands "identifiers" and "names" among type names.

    Raises:
        UnknownName: a name has small letters.
    """
    found: set[str] = set()
    for each in given:
        if each not in ("identifiers", "names") and not str(each).isupper():
            raise UnknownName(
                f"type for {option}",
                str(each),
                ("identifiers", "names", "all", *NAMES, *IDENTIFIERS),
            )
        found |= {"identifiers": {*IDENTIFIERS}, "names": {*NAMES}}.get(each, {each})
    return frozenset(found)


def _counting(options: ProtectOptions) -> frozenset[str]:
    """The types that count as sensitive. One that no detector can find is misspelt, and would hide nothing."""
    found = named_types(options.types, "protect.types")
    unknown = sorted(found - {*TYPES})
    if unknown and all(each in OWN for each in options.detectors):
        raise UnknownName(
            "type for protect.types", unknown[0], ("identifiers", "names", "all", *TYPES)
        )
    return found
