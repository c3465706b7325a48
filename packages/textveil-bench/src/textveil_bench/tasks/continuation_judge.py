"""Few-shot judge: a small base language model completes labels or answers.

In: releases, public examples. Out: whether its completions are right.
Not here: the model (`small_model`), models that follow instructions (`endpoint_judge`), generated
continuations (`generation`).
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
"""Largest number of characters of an example question; the window is small."""

MAX_ANSWER_TOKENS = 16
"""Largest number of tokens of an answer."""


@make_options()
class Continued:
    """Judges by few-shot prompts to a small base language model.

    For labels, the prompt ends where the label's name comes next. The predicted label is the one
    whose name is likeliest as the next token, relative to its mean log-likelihood over all releases
    that are judged together: otherwise a label that the model prefers wins regardless of the text.
    This assumes that labels are about equally frequent. A name that is not among the
    `small_model.LISTED_TOKENS` likeliest tokens gets the likelihood of the last one. Options of a
    choice are named by letters. For reading, the answer is the likeliest continuation up to the end
    of the line.

    The model is weak: check its score on `identity` before you compare mechanisms by it.

    Source: Zhou, Wan, Proleev and others, "Batch Calibration" (2024).

    Args:
        shots: public examples in the prompt: of each label, or questions.
        fields: names of the texts in the prompt; by default as in the data.
        label: name of the label in the prompt.
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
        """The judge's name in rows."""
        return f"continued ({small_model.MODEL_NAME})"

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why the data have neither labels nor questions, or ""."""
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
        """Yields accuracy, or for reading exact match, F1 and cosine.

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
        """Yields the prompts and reports progress."""
        for i, prompt in enumerate(prompts):
            self.report("continuing", i, len(prompts))
            yield prompt

    def _format_shots(self, data: DataSet) -> str:
        """Formats public examples with labels or answers, in a fixed random order."""
        if not self.shots:
            return ""
        train = self.train()
        if train.labels != data.labels or len(train.fields) != len(data.fields):
            raise ConfigError(
                f"the training rows of {data.name} must have its labels and fields, but they differ"
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
        """Returns the labels' names in the prompt.

        Raises:
            ConfigError: the number of words differs from that of labels.
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
        """Formats an example up to the position of its label or answer."""
        letters = ("Question", *string.ascii_uppercase)
        names = (
            letters
            if data.kind == "choice"
            else self.fields or [field.capitalize() for field in data.fields]
        )
        lines = [f"{field}: {text.strip()}" for field, text in zip(names, texts, strict=False)]
        if data.kind == "reading":  # the question comes last
            lines.reverse()
        return "\n".join(
            [*lines, "Answer:" if data.kind in ("reading", "choice") else f"{self.label}:"]
        )


def _compute_likelihoods(prompt: str, names: Sequence[str]) -> Values:
    """Computes the log-probability of each name as the next token, float64 [C]."""
    likelihoods = small_model.get_model().predict_tokens(prompt)
    minimum = min(likelihoods.values())
    return np.array([likelihoods.get(f" {name}", minimum) for name in names], np.float64)
