"""Continued: a small language model that only continues texts judges releases, or answers questions about them.

In: releases, public examples. Out: whether its continuations are right.
Not here: the model (`small`), models that follow instructions (`asked`), continuations as texts (`generation`).
"""

import string
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.errors import ConfigError
from textveil.evaluate.attack import Report, quiet
from textveil.randomness import SeededRandomness, Values
from textveil_bench.examples import DataSet
from textveil_bench.tasks import answers, labelled, small
from textveil_bench.tasks.contract import Score
from textveil_bench.tasks.reading import AS_RELEASED
from textveil_bench.trials import ReleasedExample

SHORT = 400
"""Most characters of an example that is shown with a question: the window is small."""

ANSWER = 16
"""Most tokens of an answer."""


@options()
class Continued:
    """Judges by how a small base language model continues a few public examples and the release.

    For labels, the prompt ends where the label's name comes next. The label counts whose name is likeliest as the next
    token, relative to its mean log-likelihood over all releases that are judged together: without that, a label that
    the model likes wins whatever the texts say. This takes labels to be about equally frequent. A name that is not
    among the `small.LISTED` likeliest tokens counts as the last of them. Options are named by letters. For reading, the
    answer is the likeliest continuation up to the end of the line.

    It can do little: look at the row of `identity` before comparing anything by it.

    Source: Zhou, Wan, Proleev and others, "Batch Calibration" (2024).

    Args:
        shots: public examples shown: of each label, or questions.
        fields: what the texts are called in the prompt; by default as in the data.
        label: what the label is called there.
        words: names of the labels, each of them one token; by default as in the data.
        train: returns the training split.
        report: called with progress.
    """

    shots: Annotated[int, Field(ge=0, strict=True)] = 4
    fields: tuple[str, ...] = ()
    label: Annotated[str, Field(min_length=1)] = "Label"
    words: tuple[str, ...] = ()
    train: Callable[[], DataSet] = Field(repr=False)
    report: Report = Field(default=quiet, repr=False)

    @property
    def name(self) -> str:
        """What rows call it."""
        return f"continued ({small.NAME})"

    def refusal(self, data: DataSet) -> str:
        """The reason if there are neither labels nor questions."""
        if data.kind == "choice":
            fits = len(data.fields) == 1 + len(data.labels) <= 1 + len(string.ascii_uppercase)
            return (
                ""
                if fits
                else f"{data.name} must have a question, and a text for each of 26 options at most"
            )
        return answers.refusal(data) if data.kind == "reading" else labelled.refusal(data)

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Accuracy, or for reading exact match, F1 and cosine.

        Raises:
            MissingExtra: the model is not installed.
            InputError: a prompt is longer than its window.
            ConfigError: the training split does not match.
        """
        begun = self._shown(data)
        prompts = [begun + self._asked(data, trial.texts) for trial in trials]
        if data.kind == "reading":
            found = [
                small.model().continued(prompt, ANSWER, stop=["\n"]).strip()
                for prompt in self._told(prompts)
            ]
            note = f"{AS_RELEASED}; {self.shots} training questions shown"
            yield from answers.scores(data, found, headline="F1", note=note)
            return
        names = self._names(data)
        likely = np.stack([_likelihoods(prompt, names) for prompt in self._told(prompts)])
        guessed = (likely - likely.mean(axis=0)).argmax(axis=1)
        yield labelled.accuracy(
            data, guessed, f"{self.shots} training examples of each label shown"
        )

    def _told(self, prompts: Sequence[str]) -> Iterator[str]:
        """The prompts, one after the other, with progress."""
        for i, prompt in enumerate(prompts):
            self.report("continuing", i, len(prompts))
            yield prompt

    def _shown(self, data: DataSet) -> str:
        """The public examples with their labels or answers, in a fixed random order."""
        if not self.shots:
            return ""
        train = self.train()
        if train.labels != data.labels or len(train.fields) != len(data.fields):
            raise ConfigError(
                f"the training rows of {data.name} must have its labels and fields, and have others"
            )
        taken: dict[int | None, list[str]] = {label: [] for label in range(len(data.labels))} or {
            None: []
        }
        for i in labelled.shuffled(len(train), SeededRandomness(0)).tolist():
            example = train.examples[i]
            own = taken[example.label]
            if len(own) < self.shots and (
                not example.answers or sum(map(len, example.texts)) <= SHORT
            ):
                answer = (
                    example.answers[0] if example.answers else self._names(data)[example.label or 0]
                )
                own.append(f"{self._asked(data, example.texts)} {answer}\n\n")
        return "".join(shown for turn in zip(*taken.values(), strict=False) for shown in turn)

    def _names(self, data: DataSet) -> Sequence[str]:
        """What the labels are called in the prompt.

        Raises:
            ConfigError: there are not as many words as labels.
        """
        names = (
            string.ascii_uppercase[: len(data.labels)]
            if data.kind == "choice"
            else self.words or data.labels
        )
        if len(names) != len(data.labels):
            raise ConfigError(
                f"words must be {len(data.labels)} words, one for each label of {data.name}"
            )
        return names

    def _asked(self, data: DataSet, texts: Sequence[str]) -> str:
        """An example up to where its label or answer comes."""
        letters = ("Question", *string.ascii_uppercase)
        named = (
            letters
            if data.kind == "choice"
            else self.fields or [field.capitalize() for field in data.fields]
        )
        lines = [f"{field}: {text.strip()}" for field, text in zip(named, texts, strict=False)]
        if data.kind == "reading":  # the question last
            lines.reverse()
        return "\n".join(
            [*lines, "Answer:" if data.kind in ("reading", "choice") else f"{self.label}:"]
        )


def _likelihoods(prompt: str, names: Sequence[str]) -> Values:
    """The log-probability of each name as the next token, float64 [C]."""
    found = small.model().likely(prompt)
    least = min(found.values())
    return np.array([found.get(f" {name}", least) for name in names], np.float64)
