"""Second reading: asks for full names again that a text seems to treat as public.

In: the scored spans of a batch, its texts and detectors. Out: the same spans; some persons private.
Not here: the first reading (`scoring`), paragraphs (`windows`), and who is known
(`textveil.text.known_persons`).

How likely a name is private, the tagger tells by the style of the whole text and by the name.
Neither may decide alone:

- A person on no list of known persons is private if the sentence alone says so, whatever stands
  around it: a stranger inside an article.
- Everyday people share names with known ones. So a sentence about somebody known is read with a
  name in place of his that nobody has. If even so it tells of somebody private, he is; but not
  where somebody private is named in it: then it tells of that person.

A sentence is read once more at most, and only if it has such names and words besides.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import regex

from textveil.detect.detectors import find_all
from textveil.detect.scoring import score_spans
from textveil.detect.spans import OWN_DETECTORS, PRIVACY_THRESHOLD, Detector, Span
from textveil.randomness import Values
from textveil.text import LazyPattern, known_persons, tokenize, vocabulary

UNKNOWN_ALONE = 0.7
"""The probability from which somebody unknown is private, where the sentence is read alone.

Lower finds more strangers inside an article, but the list of known persons is short: more than
twice as many public names of prompts went at .5 as without a second reading.
"""

NAMESAKE_ALONE = 0.79
"""The probability from which somebody called like a known person is private.

The sentence is read alone, with another name in it.
"""

MIN_SENTENCE_WORDS = 3
"""The fewest words in small letters of a sentence that is read alone: an entry of a list tells
nothing alone."""

_FULL_NAME = LazyPattern(
    r"(?V1) [\p{Lu}&&\p{Latin}] [\p{L}\p{M}.'’-]{0,40}+ (?: [ ]++ [\p{L}\p{M}.'’-]{1,40}+ ){1,4}+"
    r" (?<! [ ] [^ ]? \.? ) (?<! [ ] (?!\p{Lu}) [^ ]{0,40} )",
    regex.VERBOSE,
)
"""A name of more words in Latin script, of which the last is no initial and has a capital."""

_SENTENCE_END = LazyPattern(
    r"""(?<=\p{L}{2}[.!?…;]["'”’»)\]]?)\s+(?=["'“‘«(\[]?[\p{Lu}\p{Lo}])|(?<=[。！？])|\n+"""
)

_SMALL_WORD = LazyPattern(r"(?<![\w@.-])\p{Ll}[\p{L}\p{M}'’-]*")


class Sentence(NamedTuple):
    """A sentence to be read again.

    Args:
        text: the sentence, with other names in place of known ones.
        places: the index of each span in it, with its first character there and one past its last.
    """

    text: str
    places: list[tuple[int, int, int]]


def mark_unknown_private(
    spans: Sequence[Span],
    texts: Sequence[str],
    detectors: Sequence[Detector],
    timeout: float | None,
) -> list[Span]:
    """Marks persons as private whom nobody knows, and private namesakes of known ones.

    Args:
        spans: the scored spans of the texts.
        texts: the texts.
        detectors: the detectors that found the spans; only textveil's own are asked again.
        timeout: see `find_all`.
    """
    doubtful: defaultdict[int, list[int]] = defaultdict(list)
    private: defaultdict[int, set[int]] = defaultdict(set)
    for span in spans:
        if span.type == "PERSON" and span.privacy_score >= PRIVACY_THRESHOLD:
            private[span.text].add(span.start)
    for i, span in enumerate(spans):
        settled = span.start in private.get(span.text, ())
        if (
            _is_doubtful(span)
            and not settled
            and is_full_name(texts[span.text][span.start : span.end])
        ):
            doubtful[span.text].append(i)
    least: dict[int, float] = {}
    sentences: list[Sentence] = []
    for number, indices in doubtful.items():
        text = texts[number]
        numbered = _Sentences(text)
        told = {numbered.find(at) for at in private[number]}
        listed = find_known([text[spans[i].start : spans[i].end] for i in indices])
        known = {i for i, is_listed in zip(indices, listed, strict=True) if is_listed}
        inside: defaultdict[int, list[int]] = defaultdict(list)
        for i in sorted(indices, key=lambda i: spans[i].start):
            which = numbered.find(spans[i].start)
            if i not in known or which not in told:
                inside[which].append(i)
                least[i] = NAMESAKE_ALONE if i in known else UNKNOWN_ALONE
        sentences += [
            _build_sentence(text, numbered.get_bounds(which), members, spans, known)
            for which, members in inside.items()
            if len(_SMALL_WORD.findall(text, *numbered.get_bounds(which))) >= MIN_SENTENCE_WORDS
            # What stands alone was read alone, unless there is a name to replace.
            and (not numbered.is_alone(which) or not known.isdisjoint(members))
        ]
    alone = _read_alone(sentences, detectors, timeout)
    return [
        span._replace(privacy_score=1.0) if i in least and alone.get(i, 0.0) >= least[i] else span
        for i, span in enumerate(spans)
    ]


def is_full_name(value: str) -> bool:
    """Says whether a value looks like a given and a family name."""
    return _FULL_NAME.fullmatch(value) is not None


def find_known(names: Sequence[str]) -> list[bool]:
    """Says for each full name of a text whether it is a known person's.

    A shorter form of a known name in the same text is known, too.
    """
    known = [known_persons.is_known_person(name) for name in names]
    folded = [known_persons.fold_name(name).split() for name in names]
    longer: defaultdict[str, list[set[str]]] = defaultdict(list)
    for words in {tuple(words) for words, listed in zip(folded, known, strict=True) if listed}:
        longer[words[-1]].append({*words})
    return [
        listed or any(other.issuperset(words) for other in longer.get(words[-1], ()))
        for words, listed in zip(folded, known, strict=True)
    ]


def _is_doubtful(span: Span) -> bool:
    return (
        span.type == "PERSON"
        and (span.is_own or span.is_guess)
        and span.privacy_score < PRIVACY_THRESHOLD
    )


class _Sentences:
    """The sentences of a text, by number.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        ends = (match.end() for match in _SENTENCE_END.finditer(text))
        self._end = len(text)
        self._starts = [0, *(at for at in ends if at < self._end), self._end + 1]
        self._first, self._last = len(text) - len(text.lstrip()), len(text.rstrip())

    def find(self, at: int) -> int:
        """Returns the number of the sentence that holds a character."""
        return bisect_right(self._starts, at) - 1

    def get_bounds(self, which: int) -> tuple[int, int]:
        """Returns the first character of a sentence, and one past its last."""
        return self._starts[which], min(self._starts[which + 1], self._end)

    def is_alone(self, which: int) -> bool:
        """Says whether there is nothing else in the text."""
        start, end = self.get_bounds(which)
        return start <= self._first and self._last <= end


def _build_sentence(
    text: str,
    bounds: tuple[int, int],
    members: Sequence[int],
    spans: Sequence[Span],
    known: set[int],
) -> Sentence:
    """Builds a sentence with other names in place of known ones, the same for the same."""
    strangers = sorted(map(str.title, vocabulary.get_words("nobodies")))
    names: dict[str, str] = {}
    parts: list[str] = []
    places: list[tuple[int, int, int]] = []
    at, end = bounds
    size = 0
    for i in members:
        span = spans[i]
        if span.start < at or span.end > end:
            continue  # within another, or over the end of the line
        value = text[span.start : span.end]
        if i in known:
            value = names.setdefault(value, strangers[len(names) % len(strangers)])
        parts += text[at : span.start], value
        size += span.start - at
        places.append((i, size, size + len(value)))
        size, at = size + len(value), span.end
    return Sentence("".join([*parts, text[at:end]]), places)


def _read_alone(
    sentences: Sequence[Sentence], detectors: Sequence[Detector], timeout: float | None
) -> dict[int, float]:
    """Returns the probability of each span in its sentence, read alone."""
    texts = [sentence.text for sentence in sentences]
    if not texts:
        return {}
    own = [detector for detector in detectors if detector.name in OWN_DETECTORS]
    private: list[Values] = [np.zeros(len(text)) for text in texts]
    for span in score_spans(find_all(own, texts, timeout=timeout), tokenize(texts)):
        if span.type == "PERSON":
            inside = private[span.text][span.start : span.end]
            np.maximum(inside, span.privacy_score, out=inside)
    return {
        i: float(private[number][start:end].max(initial=0.0))
        for number, sentence in enumerate(sentences)
        for i, start, end in sentence.places
    }
