"""Detection: finds the private spans of a batch. Make one with `build`.

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
from textveil.detect.application_words import ApplicationWords
from textveil.detect.detection_cache import SpanCache
from textveil.detect.detections import Detections, Settings
from textveil.detect.detectors import load_detector
from textveil.detect.library_taggers import TaggerDetector
from textveil.detect.lists import Lists
from textveil.detect.occurrences import ValueIndex
from textveil.detect.scoring import DOUBT
from textveil.detect.spans import (
    IDENTIFIERS,
    LISTED_TYPE,
    NAMES,
    OWN_DETECTORS,
    TYPES,
    WHOLE_TYPE,
    Detector,
    Span,
)
from textveil.detect.unmeasured_languages import Unmeasured, list_unmeasured
from textveil.detect.visibility import is_at_level
from textveil.errors import ConfigError, DetectorError, InputError, TextveilWarning, UnknownName
from textveil.randomness import Flags
from textveil.text import Tokens

KEY_DETECTORS, LIST_DETECTORS = (
    frozenset(("patterns", "structure")),
    frozenset(("lists", "unmeasured")),
)
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
    def build(cls, options: ProtectOptions, *, moves_ages: bool = False) -> Self:
        """Makes the detection that these options ask for.

        Args:
            options: the detectors to run, and the types and level that count.
            moves_ages: whether ages are moved, so that the span of an age must include its unit.

        Raises:
            UnknownName: there is no such detector or type.
            ConfigError: `protect.detectors` holds an object that is no detector.
        """
        detectors: list[Detector] = [
            load_detector(entry) if isinstance(entry, str) else entry for entry in options.detectors
        ]
        if any(not isinstance(entry, Detector) for entry in detectors):
            raise ConfigError(
                "protect.detectors must hold detector names, or objects with a name and find(texts)"
            )
        if options.always or options.always_matching:
            detectors.append(Lists(words=options.always, expressions=options.always_matching))
        if options.unmeasured == "strict":
            detectors.append(Unmeasured())
        # At the level of names every span counts, so a probability would decide nothing.
        scores = options.level != "names" and any(map(_is_bundled, detectors))
        # Scores decide about doubtful spans, too, which the tagger alone would not return.
        if scores:
            detectors = [
                entry.copy_with_doubt(DOUBT) if _is_bundled(entry) else entry for entry in detectors
            ]
        never = options.never or options.never_matching
        settings = Settings(
            detectors=tuple(detectors),
            timeout=options.timeout,
            level=options.level,
            types=None
            if "all" in options.types
            # What a user lists, and what is hidden whole, counts whatever types are asked for.
            else _select_types(options) | {LISTED_TYPE, WHOLE_TYPE},
            dates=options.dates,
            never=Lists(words=options.never, expressions=options.never_matching) if never else None,
            scores=scores,
            moves_ages=moves_ages,
        )
        return cls(options=options, settings=settings)

    @property
    def can_find_names(self) -> bool:
        """True if names are found without a key, or none are wanted."""
        names = {entry.name for entry in self.settings.detectors} - LIST_DETECTORS
        types = self.settings.types
        wants_names = types is None or not types.isdisjoint(NAMES)
        if self.settings.level == "identifiers" or not wants_names or not names:
            return True
        return not names <= KEY_DETECTORS

    def copy_with_memory(self) -> Self:
        """Returns a copy that searches equal texts only once."""
        settings = replace(self.settings, memory=SpanCache(), window_memory=SpanCache())
        return replace(self, settings=settings)

    def copy_for_application(self, words: ApplicationWords, *, is_own: bool) -> Self:
        """Returns a copy for texts in a conversation of an application.

        Args:
            words: the words of the application.
            is_own: whether the application wrote the texts.
        """
        settings = replace(self.settings, application=words, is_application=is_own)
        return replace(self, settings=settings)

    def check_measured(self, texts: Sequence[str]) -> None:
        """Refuses texts in unmeasured scripts or languages, if the options say so.

        Raises:
            InputError: a text has such parts, and `protect.unmeasured` is `refuse`.
        """
        if self.options.unmeasured != "refuse":
            return
        if unmeasured_names := sorted({*chain.from_iterable(self.list_unmeasured(texts))}):
            raise InputError(
                "nothing is released: recall was not measured for "
                f"{' and '.join(unmeasured_names)} text; remove it, or set protect.unmeasured "
                "to strict, which hides it, or to say, which lets it pass"
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
            return stages.run_stages(stages.STAGES, detections, self.settings)
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
        self, detections: Detections, known_values: ValueIndex | None, reserved: Iterable[Span] = ()
    ) -> Detections:
        """Adds every other occurrence of the detected values in these texts.

        Args:
            detections: the detections of the texts.
            known_values: the values that a session found earlier, to which new values are added;
                None without a session.
            reserved: further spans that must be protected.
        """
        if detections.failed:
            return detections
        settings = replace(self.settings, known_values=known_values, reserved=tuple(reserved))
        return stages.run_stages(stages.PROPAGATING, detections, settings)

    def is_at_level(self, span: Span) -> bool:
        """Says whether `protect.level` counts a span as sensitive."""
        return is_at_level(span, self.options.level)

    def merge_unchanged(self, detections: Detections) -> tuple[Span, ...]:
        """Merges the detected spans that are left unchanged.

        These are spans that are not sensitive, and those that the user never wants protected.
        """
        unchanged = replace(detections, spans=(*detections.public_spans, *detections.spared))
        return stages.run_stages(stages.MERGING, unchanged, self.settings).spans

    def list_unmeasured(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Names the unmeasured scripts and languages of each text.

        The result is empty without detectors, and where labels are drawn by randomised response:
        naming a language would reveal something about the words.
        """
        silent = not self.settings.detectors or self.options.labels == "randomised"
        return [() if silent else list_unmeasured(text) for text in texts]


def _is_bundled(candidate: Detector) -> TypeGuard[TaggerDetector]:
    return isinstance(candidate, TaggerDetector) and candidate.is_bundled


def expand_types(type_names: Sequence[str], option: str) -> frozenset[str]:
    """Expands "identifiers" and "names" in a list of type names.

    Raises:
        UnknownName: a name is not in capital letters.
    """
    types: set[str] = set()
    for name in type_names:
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
    types = expand_types(options.types, "protect.types")
    unknown = sorted(types - {*TYPES})
    # Detectors of other packages may have types of their own: only here it is a misspelling.
    if unknown and all(name in OWN_DETECTORS for name in options.detectors):
        raise UnknownName(
            "type for protect.types", unknown[0], ("identifiers", "names", "all", *TYPES)
        )
    return types
