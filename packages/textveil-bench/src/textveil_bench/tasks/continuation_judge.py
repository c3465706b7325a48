"""Continued: a small language model that only continues texts judges releases, or answers questions about them.

In: releases, public examples. Out: whether its continuations are right.
Not here: the model (`small`), models that follow instructions (`asked`), continuations as texts
(`generation`).
"""

import string
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.evaluate.attack import ProgressCallback, ignore_progress
from textveil.randomness import SeededRandomness, Values
from textveil_bench.examples import DataSet
from textveil_bench.tasks import answers, labelled, small_model
from textveil_bench.tasks.reading import RELEASED_NOTE
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample

MAX_EXAMPLE_CHARACTERS = 400
"""Most characters of an example that is shown with a question: the window is small."""

MAX_ANSWER_TOKENS = 16
"""Most tokens of an answer."""


@make_options()
class Continued:
    """Judges by how a small base language model continues a few public examples and the release.

    For labels, the prompt ends where the label's name comes next. The label counts whose name is
    likeliest as the next
    token, relative to its mean log-likelihood over all releases that are judged together: without
    that, a label that
    the model likes wins whatever the texts say. This takes labels to be about equally frequent. A
    name that is not
    among the `small.LISTED` likeliest tokens counts as the last of them. Options are named by
    letters. For reading, the
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
    report: ProgressCallback = Field(default=ignore_progress, repr=False)

    @property
    def name(self) -> str:
        """What rows call it."""
        return f"continued ({small_model.MODEL_NAME})"

    def explain_refusal(self, data: DataSet) -> str:
        """The reason if there are neither labels nor questions."""
        if data.kind == "choice":
            is_valid = len(data.fields) == 1 + len(data.labels) <= 1 + len(string.ascii_uppercase)
            return (
                ""
                if is_valid
                else f"{data.name} must have a question, and a text for each of 26 options at most"
            )
        return (
            answers.explain_refusal(data)
            if data.kind == "reading"
            else labelled.explain_refusal(data)
        )

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Accuracy, or for reading exact match, F1 and cosine.

        Raises:
            MissingExtra: the model is not installed.
            InputError: a prompt is longer than its window.
            ConfigError: the training split does not match.
        """
        preamble = self._format_shots(data)
        prompts = [preamble + self._format_prompt(data, trial.texts) for trial in trials]
        if data.kind == "reading":
            replies = [
                small_model.get_model()
                .continue_text(prompt, MAX_ANSWER_TOKENS, stop=["\n"])
                .strip()
                for prompt in self._yield_prompts(prompts)
            ]
            note = f"{RELEASED_NOTE}; {self.shots} training questions shown"
            yield from answers.score_answers(data, replies, headline="F1", note=note)
            return
        names = self._choose_names(data)
        likelihoods = np.stack(
            [_compute_likelihoods(prompt, names) for prompt in self._yield_prompts(prompts)]
        )
        guesses = (likelihoods - likelihoods.mean(axis=0)).argmax(axis=1)
        yield labelled.score_accuracy(
            data, guesses, f"{self.shots} training examples of each label shown"
        )

    def _yield_prompts(self, prompts: Sequence[str]) -> Iterator[str]:
        """The prompts, one after the other, with progress."""
        for i, prompt in enumerate(prompts):
            self.report("continuing", i, len(prompts))
            yield prompt

    def _format_shots(self, data: DataSet) -> str:
        """The public examples with their labels or answers, in a fixed random order."""
        if not self.shots:
            return ""
        train = self.train()
        if train.labels != data.labels or len(train.fields) != len(data.fields):
            raise ConfigError(
                f"the training rows of {data.name} must have its labels and fields, and have others"
            )
        shots_by_label: dict[int | None, list[str]] = {
            label: [] for label in range(len(data.labels))
        } or {None: []}
        for i in labelled.draw_order(len(train), SeededRandomness(0)).tolist():
            example = train.examples[i]
            label_shots = shots_by_label[example.label]
            if len(label_shots) < self.shots and (
                not example.answers or sum(map(len, example.texts)) <= MAX_EXAMPLE_CHARACTERS
            ):
                answer = (
                    example.answers[0]
                    if example.answers
                    else self._choose_names(data)[example.label or 0]
                )
                label_shots.append(f"{self._format_prompt(data, example.texts)} {answer}\n\n")
        return "".join(
            shot for turn in zip(*shots_by_label.values(), strict=False) for shot in turn
        )

    def _choose_names(self, data: DataSet) -> Sequence[str]:
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

    def _format_prompt(self, data: DataSet, texts: Sequence[str]) -> str:
        """An example up to where its label or answer comes."""
        letters = ("Question", *string.ascii_uppercase)
        names = (
            letters
            if data.kind == "choice"
            else self.fields or [field.capitalize() for field in data.fields]
        )
        lines = [f"{field}: {text.strip()}" for field, text in zip(names, texts, strict=False)]
        if data.kind == "reading":  # the question last
            lines.reverse()
        return "\n".join(
            [*lines, "Answer:" if data.kind in ("reading", "choice") else f"{self.label}:"]
        )


def _compute_likelihoods(prompt: str, names: Sequence[str]) -> Values:
    """The log-probability of each name as the next token, float64 [C]."""
    likelihoods = small_model.get_model().predict_tokens(prompt)
    minimum = min(likelihoods.values())
    return np.array([likelihoods.get(f" {name}", minimum) for name in names], np.float64)
