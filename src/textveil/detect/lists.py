"""Lists: words and expressions that a user marks as sensitive or harmless.

In: the user's words and expressions, texts. Out: spans, or spans without the listed parts.
Not here: patterns of structured identifiers (`patterns`).
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import regex

from textveil.detect.spans import IDENTIFIERS, LISTED_TYPE, TYPE_NAME, Span
from textveil.errors import ConfigError, DetectorError
from textveil.text import check_texts, tokenize


@dataclass(frozen=True, kw_only=True, eq=False)
class Lists:
    """A detector of the parts that a user listed.

    With `remove_listed`, it is also a filter for what a user never wants protected.

    Attributes:
        words: words and phrases; matched as whole words, ignoring case, character width and
            whitespace between words.
        expressions: regular expressions of the package `regex`; empty matches are ignored. They are
            case-sensitive unless they begin with `(?i)`.
        type: the type of the spans.
        timeout: seconds per expression and text, after which `find` raises.

    Raises:
        ConfigError: a phrase is empty, an expression does not compile, the type is not a valid
            name, or the timeout is not positive. No message shows a listed entry, because a list of
            names is itself private.
    """

    words: Sequence[str] = field(default=(), repr=False)
    expressions: Sequence[str] = field(default=(), repr=False)
    type: str = LISTED_TYPE
    timeout: float = 5.0
    name: str = field(default="lists", init=False)

    def __post_init__(self) -> None:
        if not TYPE_NAME.fullmatch(self.type):
            raise ConfigError(
                "the type of lists must be at most 64 capital letters, digits and underscores"
            )
        if not self.timeout > 0:
            raise ConfigError(f"the timeout of lists must be positive, got {self.timeout}")
        check_texts(self.words, noun="listed word")
        check_texts(self.expressions, noun="expression")
        for i, phrase in enumerate(self.words):
            if not phrase.strip():
                raise ConfigError(f"listed word {i} must not be empty")
        _ = self._phrases, self._patterns  # so that errors surface here

    @cached_property
    def _phrases(self) -> dict[str, list[tuple[str, ...]]]:
        """Returns the phrases by their first word, all folded."""
        tokens = tokenize(self.words)
        bounds = tokens.documents.tolist()
        phrases: dict[str, list[tuple[str, ...]]] = {}
        for start, end in pairwise(bounds):
            phrase = tuple(map(_fold, tokens.words[start:end]))
            phrases.setdefault(phrase[0], []).append(phrase)
        return phrases

    @cached_property
    def _patterns(self) -> list["regex.Pattern[str]"]:
        compiled: list[regex.Pattern[str]] = []
        for i, expression in enumerate(self.expressions):
            try:
                pattern = regex.compile(expression)
            except regex.error:
                pattern = None
            # Raised outside of `except`, because a chained error would show the private expression.
            if pattern is None:
                raise ConfigError(
                    f"expression {i} is not a valid regular expression of the package regex; "
                    "correct it"
                )
            compiled.append(pattern)
        return compiled

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Finds all matches, sorted by position; they may overlap.

        Raises:
            DetectorError: an expression ran out of time.
        """
        places = sorted({*self._find_places(texts)})
        return [Span(b, start, end, self.type, 1.0, self.name) for b, start, end in places]

    def remove_listed(self, spans: Iterable[Span], texts: Sequence[str]) -> list[Span]:
        """Removes the listed parts from spans, before spans are merged.

        The rest of a span before and after a listed part becomes a separate span. Two kinds of
        spans are not cut: spans that another list marks as sensitive, and structured identifiers
        that are not listed from end to end: three digits that may pass do not make a telephone
        number with these digits harmless.

        Raises:
            DetectorError: an expression ran out of time.
        """
        spans, spared = list(spans), dict[int, list[tuple[int, int]]]()
        for b, start, end in sorted({*self._find_places(texts)}) if spans else ():
            places = spared.setdefault(b, [])
            if places and start <= places[-1][1]:
                places[-1] = places[-1][0], max(end, places[-1][1])
            else:
                places.append((start, end))
        return [
            part
            for span in spans
            for part in self._cut_parts(span, texts[span.text], spared.get(span.text, []))
        ]

    def _cut_parts(
        self, span: Span, text: str, spared: Sequence[tuple[int, int]]
    ) -> Iterator[Span]:
        inside = [(start, end) for start, end in spared if start < span.end and end > span.start]
        whole = any(start <= span.start and span.end <= end for start, end in inside)
        if not inside or span.source == self.name or (span.type in IDENTIFIERS and not whole):
            yield span
            return
        start = span.start
        for stop, after in [*inside, (span.end, span.end)]:
            part = text[start : max(start, stop)]
            if part.strip():
                begin = start + len(part) - len(part.lstrip())
                yield span._replace(start=begin, end=begin + len(part.strip()))
            start = after

    def _find_places(self, texts: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """Finds the text, start and end of each match."""
        if self._phrases:
            yield from self._find_phrases(texts)
        for i, pattern in enumerate(self._patterns):
            for b, text in enumerate(texts):
                try:
                    # A user's expression may backtrack for longer than anybody waits.
                    matches = [
                        match.span() for match in pattern.finditer(text, timeout=self.timeout)
                    ]
                except TimeoutError:
                    matches = None
                if matches is None:
                    raise DetectorError(
                        f"expression {i} of lists did not end within {self.timeout:g} s; simplify "
                        "it"
                    )
                yield from ((b, start, end) for start, end in matches if start < end)

    def _find_phrases(self, texts: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        tokens = tokenize(texts)
        folded = {word: _fold(word) for word in set(tokens.words)}
        heads = {word for word, form in folded.items() if form in self._phrases}
        if not heads:
            return
        bounds = tokens.documents.tolist()
        for b, (low, high) in enumerate(pairwise(bounds)):
            for i in (i for i in range(low, high) if tokens.words[i] in heads):
                for phrase in self._phrases[folded[tokens.words[i]]]:
                    last = i + len(phrase)
                    if (
                        last <= high
                        and tuple(folded[word] for word in tokens.words[i:last]) == phrase
                    ):
                        yield b, int(tokens.starts[i]), int(tokens.ends[last - 1])


def _fold(word: str) -> str:
    """Removes case, width, composition and apostrophe kinds from a word."""
    if word.isascii():
        return word.lower()
    # Folding case can undo the normal form, so it is restored behind it.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold()).replace(
        "’", "'"
    )
