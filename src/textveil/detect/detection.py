"""Detection: finds the private spans of a batch. Make one with `of`.

In: options, the tokens of a batch. Out: `Detections`.
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
"""Detectors that find names only behind a key; and those that find what a user lists, or whole
texts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Detection:
    """The detection of private spans and of their further occurrences in texts.

    Attributes:
        options: the options from which it was made.
        settings: the settings of its stages.
    """

    options: ProtectOptions
    settings: Settings

    @classmethod
    def of(cls, options: ProtectOptions, *, moves_ages: bool = False) -> Self:
        """Makes the detection that these options ask for.

        Args:
            options: the detectors to run, and the types and level that count.
            moves_ages: whether ages are moved, so that the span of an age must include its unit.

        Raises:
            UnknownName: there is no such detector or type.
            ConfigError: `protect.detectors` holds an object that is no detector.
        """
        detectors: list[Detector] = [
            detector(entry) if isinstance(entry, str) else entry for entry in options.detectors
        ]
        if any(not isinstance(entry, Detector) for entry in detectors):
            raise ConfigError(
                "protect.detectors must hold detector names, or objects with a name and find(texts)"
            )
        if options.always or options.always_matching:
            detectors.append(Lists(words=options.always, expressions=options.always_matching))
        if options.unmeasured == "strict":
            detectors.append(Unmeasured())
        scores = options.level != "names" and any(map(_is_bundled, detectors))
        if scores:
            detectors = [
                entry.doubting(DOUBT) if _is_bundled(entry) else entry for entry in detectors
            ]
        never = options.never or options.never_matching
        settings = Settings(
            detectors=tuple(detectors),
            timeout=options.timeout,
            level=options.level,
            types=None if "all" in options.types else _select_types(options) | {LISTED, WHOLE},
            never=Lists(words=options.never, expressions=options.never_matching) if never else None,
            scores=scores,
            moves_ages=moves_ages,
        )
        return cls(options=options, settings=settings)

    @property
    def finds_names(self) -> bool:
        """True if names are found without a key, or none are wanted."""
        names = {entry.name for entry in self.settings.detectors} - LISTING
        types = self.settings.types
        asked = types is None or not types.isdisjoint(NAMES)
        if self.settings.level == "identifiers" or not asked or not names:
            return True
        return not names <= KEYED

    def remembering(self) -> Self:
        """Returns a copy that searches equal texts only once."""
        return replace(self, settings=replace(self.settings, memory=Memory()))

    def check_measured(self, texts: Sequence[str]) -> None:
        """Refuses texts in unmeasured scripts or languages, if the options say so.

        Raises:
            InputError: a text has such parts, and `protect.unmeasured` is `refuse`.
        """
        if self.options.unmeasured != "refuse":
            return
        if named := sorted({*chain.from_iterable(self.unmeasured(texts))}):
            raise InputError(
                f"nothing is released: recall was not measured for {' and '.join(named)} text; take it out, or set "
                "protect.unmeasured to strict, which hides it, or say, which lets it pass"
            )

    def detect(self, tokens: Tokens, important: Flags) -> Detections:
        """Runs the detectors and stages on the texts of a batch.

        Args:
            tokens: the N tokens and their texts.
            important: bool [N], words that matter to the task.

        Raises:
            DetectorError: a detector failed, and `protect.on_failure` is `refuse`.
        """
        detections = Detections(tokens=tokens, important=important)
        try:
            return stages.run(stages.STAGES, detections, self.settings)
        except DetectorError as error:
            if self.options.on_failure == "refuse":
                raise
            warnings.warn(
                f"{error}; all texts of the batch are treated as sensitive",
                TextveilWarning,
                stacklevel=2,
            )
            return replace(detections, failed=True)

    def propagate(
        self, found: Detections, known: Sought | None, reserved: Iterable[Span] = ()
    ) -> Detections:
        """Adds every other occurrence of the detected values in these texts.

        Args:
            found: the detections of the texts.
            known: the values that a session found earlier, to which new values are added; None
                without a session.
            reserved: further spans that must be protected.
        """
        if found.failed:
            return found
        settings = replace(self.settings, known=known, reserved=tuple(reserved))
        return stages.run(stages.PROPAGATING, found, settings)

    def is_at_level(self, span: Span) -> bool:
        """Says whether `protect.level` counts a span as sensitive."""
        return is_at_level(span, self.options.level)

    def staying(self, found: Detections) -> tuple[Span, ...]:
        """Merges the detected spans that are left unchanged.

        These are spans that are not sensitive, and those that the user never wants protected.
        """
        stays = replace(found, spans=(*found.others, *found.spared))
        return stages.run(stages.MERGING, stays, self.settings).spans

    def unmeasured(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Names the unmeasured scripts and languages of each text.

        The result is empty without detectors, and where labels are drawn by randomised response:
        naming a language would reveal something about the words.
        """
        silent = not self.settings.detectors or self.options.labels == "randomised"
        return [() if silent else unmeasured(text) for text in texts]


def _is_bundled(candidate: Detector) -> TypeGuard[TaggerDetector]:
    return isinstance(candidate, TaggerDetector) and candidate.bundled


def named_types(given: Sequence[str], option: str) -> frozenset[str]:
    """Expands "identifiers" and "names" in a list of type names.

    Raises:
        UnknownName: a name is not in capital letters.
    """
    types: set[str] = set()
    for name in given:
        if name not in ("identifiers", "names") and not str(name).isupper():
            raise UnknownName(
                f"type for {option}",
                str(name),
                ("identifiers", "names", "all", *NAMES, *IDENTIFIERS),
            )
        types |= {"identifiers": {*IDENTIFIERS}, "names": {*NAMES}}.get(name, {name})
    return frozenset(types)


def _select_types(options: ProtectOptions) -> frozenset[str]:
    """Returns the types that count as sensitive, checked for misspelling.

    Raises:
        UnknownName: no detector in use can find one of the types, so it would hide nothing.
    """
    types = named_types(options.types, "protect.types")
    unknown = sorted(types - {*TYPES})
    if unknown and all(name in OWN for name in options.detectors):
        raise UnknownName(
            "type for protect.types", unknown[0], ("identifiers", "names", "all", *TYPES)
        )
    return types
