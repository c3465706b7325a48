"""Zero-shot judge: a language model at an endpoint labels or answers.

In: releases, and an endpoint. Out: whether its answers are right.
Not here: how an endpoint is called (`textveil.models.endpoint`), and continuations of texts
(`generation`).
"""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.evaluate.attack import ProgressCallback, ignore_progress
from textveil.models import Endpoint, Prompt, Prompts
from textveil.randomness import Ints
from textveil_bench.examples import DataSet
from textveil_bench.prompts import choose_prompt
from textveil_bench.tasks import answers, labelled
from textveil_bench.tasks.reading import RELEASED_NOTE, RESTORED_NOTE, RESTORED_PREFIX
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample, ReleasedField

ROLES_BY_KIND = {
    "classification": "classification",
    "pairs": "classification",
    "reading": "question_answering",
    "choice": "choice",
}
"""The role of a model by the kind of data."""

NO_ENDPOINT = "it needs an LLM: give an endpoint"


class Wording(NamedTuple):
    """The question for a data set.

    Args:
        question: the question in the prompt.
        words: names of the labels in the prompt, in order; empty for their own names.
    """

    question: str
    words: tuple[str, ...] = ()


WORDINGS: Mapping[str, Wording] = MappingProxyType(
    {
        "sst2": Wording("Is the opinion of this sentence from a film review negative or positive?"),
        "qnli": Wording("Does the sentence hold the answer to the question?", ("yes", "no")),
        "ag_news": Wording("Which section of a newspaper is this news item from?"),
        "yelp": Wording("How many stars does the writer of this review give?", tuple("12345")),
        "yelp-polarity": Wording("Is the opinion of this review negative or positive?"),
    }
)
"""Wordings by data set name.

A subset, named after a hyphen, uses the wording of the whole set unless it has its own.
"""

GENERAL_WORDING = Wording("Which label fits?")
CHOICE_WORDING = Wording(
    "Which of the options is right, or goes on best?", tuple(string.ascii_uppercase)
)

ONE_WORD_RULE = "Your answer is a single word."
SHORT_ANSWER_RULE = "Your answer is as short as it can be."


@make_options()
class ZeroShot:
    """Judges by asking a language model without examples of the task.

    Only releases are sent. For classification, pairs and choice, an answer counts if it is a
    label's name or an option's letter, ignoring case and surrounding punctuation; any other answer
    is wrong, and the note gives their number.

    For reading, the answer is scored unchanged, and also "restored": if its words occur in sequence
    in the released text, they are replaced by the original text at that place; an answer that does
    not occur stays unchanged.

    Args:
        question: question about the labels; by default the data set's wording.
        words: names of the labels in the prompt, in order; by default as in the data, or for QNLI
            yes and no.
        one_word: for reading, whether answers are limited to one word, as in STAMP (appendix C).
        temperature: from 0 to 2; by default the endpoint's.
        max_tokens: largest length of an answer; by default the endpoint decides.
        endpoint: the model to ask.
        prompts: wordings, with their own temperatures, lengths and labels; None for ours.
        report: called with progress.
    """

    question: Annotated[str, Field(min_length=1)] | None = None
    words: tuple[str, ...] = ()
    one_word: bool = True
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1, strict=True)] | None = None
    endpoint: Endpoint | None = Field(default=None, repr=False)
    prompts: Prompts | None = Field(default=None, repr=False)
    report: ProgressCallback = Field(default=ignore_progress, repr=False)

    @property
    def name(self) -> str:
        """The judge's name in rows."""
        return f"asked ({self.endpoint.model if self.endpoint else 'no endpoint'})"

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why there is no endpoint or nothing to ask, or ""."""
        if self.endpoint is None:
            return NO_ENDPOINT
        if data.kind == "choice":
            is_valid = len(data.fields) == 1 + len(data.labels) <= 1 + len(CHOICE_WORDING.words)
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
            ConfigError: `words` does not have a different word for each label.
            EndpointError: the endpoint cannot be reached, refused, or answered without text.
        """
        replies = self.ask_all(data, trials)
        if data.kind == "reading":
            yield from self._score_reading(data, trials, replies)
            return
        _, words = self._choose_wording(data)
        guesses, mismatches = parse(replies, words, data.labels)
        yield labelled.score_accuracy(
            data,
            guesses,
            f"zero-shot; {mismatches} of {len(trials)} answers named no label",
        )

    def _score_reading(
        self, data: DataSet, trials: Sequence[ReleasedExample], replies: Sequence[str]
    ) -> Iterator[Score]:
        originals = [
            find_original(answer, trial.parts[1])
            for answer, trial in zip(replies, trials, strict=True)
        ]
        limit = "; limited to one word" if self.one_word else ""
        yield from answers.score_answers(data, replies, headline="F1", note=RELEASED_NOTE + limit)
        restored = [
            answer if original is None else original
            for answer, original in zip(replies, originals, strict=True)
        ]
        note = (
            f"{RESTORED_NOTE}{limit}; {originals.count(None)} of {len(trials)} answers were not "
            "in the text"
        )
        yield from answers.score_answers(data, restored, view=RESTORED_PREFIX, note=note)

    def _choose_wording(self, data: DataSet) -> Wording:
        """Chooses the question, and the names of the labels, in order."""
        whole = WORDINGS.get(data.name.partition("-")[0], GENERAL_WORDING)
        wording = CHOICE_WORDING if data.kind == "choice" else WORDINGS.get(data.name, whole)
        labels = self._choose_prompt(data).labels or self.words
        words = labels or wording.words[: len(data.labels)] or data.labels
        if len({_normalize(word) for word in words}) != len(data.labels) or len(words) != len(
            data.labels
        ):
            raise ConfigError(
                f"words must be {len(data.labels)} different words, one for each label of "
                f"{data.name}"
            )
        return Wording(self.question or wording.question, words)

    def _choose_prompt(self, data: DataSet) -> Prompt:
        return choose_prompt(self.prompts, ROLES_BY_KIND[data.kind], data.name)

    def ask_all(self, data: DataSet, trials: Sequence[ReleasedExample]) -> list[str]:
        """Asks the endpoint about the releases and returns its answers.

        Raises:
            ConfigError: there is no endpoint, or the prompt does not suit the data.
            EndpointError: the endpoint cannot be reached, refused, or answered without text.
        """
        if self.endpoint is None:
            raise ConfigError(NO_ENDPOINT)
        prompt = self._choose_prompt(data)
        shared: dict[str, str] = {"length": ONE_WORD_RULE if self.one_word else SHORT_ANSWER_RULE}
        if data.kind != "reading":
            task, words = self._choose_wording(data)
            shared = {"task": task, "labels": ", ".join(words)}
        temperature = self.temperature if prompt.temperature is None else prompt.temperature
        endpoint = (
            self.endpoint
            if temperature is None
            else replace(self.endpoint, temperature=temperature)
        )
        replies = endpoint.ask(
            [prompt.fill(**shared, **_show_fields(data, trial.texts)) for trial in trials],
            report=self.report,
            max_tokens=self.max_tokens if prompt.max_tokens is None else prompt.max_tokens,
        )
        return [
            answer.encode(errors="replace").decode().strip() for answer in replies
        ]  # JSON may hold lone surrogates


def _show_fields(data: DataSet, texts: Sequence[str]) -> dict[str, str]:
    """Returns the placeholders of a released example, with its texts."""
    if data.kind == "choice":
        names = ("Question", *CHOICE_WORDING.words)
        lines = [f"{name}: {text}" for name, text in zip(names, texts, strict=False)]
        return {
            "text": "\n".join(lines),
            "question": texts[0],
            "options": "\n".join(lines[1:]),
        }
    lines = [f"{name.capitalize()}: {text}" for name, text in zip(data.fields, texts, strict=True)]
    by_field = dict(zip(data.fields, texts, strict=True))
    return {**by_field, "text": "\n".join(lines) if len(lines) > 1 else texts[0]}


def parse(answers: Sequence[str], words: Sequence[str], labels: Sequence[str]) -> tuple[Ints, int]:
    """Parses answers to label indices, int64 [B], and counts the unmatched ones.

    An unmatched answer has the index -1. An answer matches a label if it is the prompt's word for
    it or its own name and nothing else, ignoring case, spaces and punctuation.
    """
    number = {_normalize(name): i for names in (labels, words) for i, name in enumerate(names)}
    indices = np.array([number.get(_normalize(answer), -1) for answer in answers], np.int64)
    return indices, int((indices < 0).sum())


def find_original(answer: str, part: ReleasedField) -> str | None:
    """Returns the original text where an answer first occurs, or None."""
    words = [
        re.escape(word) for word in answer.strip(string.punctuation + string.whitespace).split()
    ]
    phrase = r"\s+".join(words)
    match = re.search(rf"(?<!\w){phrase}(?!\w)", part.text, re.IGNORECASE) if words else None
    return part.find_original(*match.span()) if match else None


def _normalize(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())
