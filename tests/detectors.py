"""Detectors that tests share.

In: what is to be found. Out: spans.
Not here: detectors that fail, hang or count, which one test file alone needs.
"""

import re

from textveil.detect.spans import Span


class Finds:
    """Finds what expressions match."""

    def __init__(self, name="finds", score=0.9, **types):
        self.name, self.score, self.types = name, score, types

    def find(self, texts):
        return [
            Span(b, match.start(), match.end(), type_, self.score, self.name)
            for b, text in enumerate(texts)
            for type_, expression in self.types.items()
            for match in re.finditer(expression, text)
        ]


class First:
    """Finds the first place of each value in a text, as a tagger that sees a name only once."""

    name = "first"

    def __init__(self, score=1.0, **values):
        self.score, self.values = score, values

    def find(self, texts):
        return [
            Span(b, at, at + len(value), type_, self.score, self.name)
            for b, text in enumerate(texts)
            for type_, values in self.values.items()
            for value in values
            if (at := text.find(value)) >= 0
        ]
