"""Asked: a language model behind an endpoint judges releases without an example, or answers questions about them.

In: releases, and an endpoint. Out: whether its answers are right.
Not here: how an endpoint is asked (`textveil.models.endpoint`), and texts that it goes on with (`generation`).
"""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.errors import ConfigError
from textveil.evaluate.attack import Report, quiet
from textveil.models import Endpoint
from textveil.randomness import Ints
from textveil_bench.examples import DataSet
from textveil_bench.tasks import answers, labelled
from textveil_bench.tasks.contract import Score
from textveil_bench.tasks.reading import AS_RELEASED, RESTORED, WHAT_STOOD_THERE
from textveil_bench.trials import ReleasedExample, ReleasedField

NO_ENDPOINT = "it needs an LLM: give an endpoint"


class Wording(NamedTuple):
    """How a data set is asked about.

    Args:
        question: what is asked.
        words: what the labels are called in the prompt, in their order; empty: by their own names.
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
"""By the name of a data set; those of its parts, behind a hyphen, are asked about as the whole is, but for one."""

GENERAL = Wording("Which label fits?")
CHOICE = Wording("Which of the options is right, or goes on best?", tuple(string.ascii_uppercase))

ONE_OF = "{question} The answer is one of: {words}. Answer with it alone, without a reason."
READ = "Answer the question from the text, in words of the text. {length} Answer with the answer alone."
ONE_WORD = "Your answer is a single word."
SHORT = "Your answer is as short as it can be."


@options()
class ZeroShot:
    """Judges by asking a language model that has seen no example of the task.

    Nothing but releases is sent. Of classification, pairs and choice, an answer counts if it is the name of a label, or
    the letter of an option, whatever its casing and the marks around it; any other answer is wrong, and the note says
    how many there were.

    Of reading, the answer is scored as it is; and "restored" where its words stand side by side in the released text,
    as what stood there in the original; an answer that is not found stays as it is.

    Args:
        question: what is asked about the labels; by default in the words that belong to the data set.
        words: what the labels are called in the prompt, in their order; by default as in the data, or for QNLI yes
            and no.
        one_word: of reading, whether answers are limited to one word, as in STAMP (appendix C).
        max_tokens: how long an answer may get; by default the endpoint decides.
        endpoint: who is asked, with its own temperature.
        report: told of progress.
    """

    question: Annotated[str, Field(min_length=1)] | None = None
    words: tuple[str, ...] = ()
    one_word: bool = True
    max_tokens: Annotated[int, Field(ge=1, strict=True)] | None = None
    endpoint: Endpoint | None = Field(default=None, repr=False)
    report: Report = Field(default=quiet, repr=False)

    @property
    def name(self) -> str:
        """What rows call it."""
        return f"asked ({self.endpoint.model if self.endpoint else 'no endpoint'})"

    def refusal(self, data: DataSet) -> str:
        """Where there is no endpoint, or nothing to ask for."""
        if self.endpoint is None:
            return NO_ENDPOINT
        if data.kind == "choice":
            fits = len(data.fields) == 1 + len(data.labels) <= 1 + len(CHOICE.words)
            return "" if fits else f"{data.name} must have a question, and a text for each of 26 options at most"
        return answers.refusal(data) if data.kind == "reading" else labelled.refusal(data)

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Accuracy, or of reading exact match, F1 and cosine.

        Raises:
            ConfigError: `words` are not one for each label, or two are alike.
            EndpointError: the endpoint cannot be reached, refused, or answered without text.
        """
        if data.kind == "reading":
            yield from self._read(data, trials)
            return
        question, words = self._wording(data)
        system = ONE_OF.format(question=question, words=", ".join(words))
        guessed, lost = parse(self._ask(system, data, trials), words, data.labels)
        yield labelled.accuracy(data, guessed, f"no example was shown; {lost} of {len(trials)} answers were no label")

    def _read(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        system = READ.format(length=ONE_WORD if self.one_word else SHORT)
        found = self._ask(system, data, trials)
        behind = [stood(answer, trial.parts[1]) for answer, trial in zip(found, trials, strict=True)]
        limit = "; limited to one word" if self.one_word else ""
        yield from answers.scores(data, found, headline="F1", note=AS_RELEASED + limit)
        restored = [answer if back is None else back for answer, back in zip(found, behind, strict=True)]
        note = f"{WHAT_STOOD_THERE}{limit}; {behind.count(None)} of {len(trials)} answers were not in the text"
        yield from answers.scores(data, restored, view=RESTORED, note=note)

    def _wording(self, data: DataSet) -> Wording:
        """What is asked, and what the labels are called, in their order."""
        whole = WORDINGS.get(data.name.partition("-")[0], GENERAL)
        wording = CHOICE if data.kind == "choice" else WORDINGS.get(data.name, whole)
        words = self.words or wording.words[: len(data.labels)] or data.labels
        if len({_bare(word) for word in words}) != len(data.labels) or len(words) != len(data.labels):
            raise ConfigError(
                f"words must be one for each of the {len(data.labels)} labels of {data.name}, all different"
            )
        return Wording(self.question or wording.question, words)

    def _ask(self, system: str, data: DataSet, trials: Sequence[ReleasedExample]) -> list[str]:
        """The answers to what was released."""
        if self.endpoint is None:
            raise ConfigError(NO_ENDPOINT)
        names = ("Question", *CHOICE.words) if data.kind == "choice" else [name.capitalize() for name in data.fields]
        prompts = []
        for trial in trials:
            named = [f"{name}: {text}" for name, text in zip(names, trial.texts, strict=False)]
            prompts.append((system, "\n".join(named) if len(named) > 1 else trial.texts[0]))
        found = self.endpoint.ask(prompts, report=self.report, max_tokens=self.max_tokens)
        return [answer.encode(errors="replace").decode().strip() for answer in found]  # JSON may hold half a character


def parse(answers: Sequence[str], words: Sequence[str], labels: Sequence[str]) -> tuple[Ints, int]:
    """The number of the label that each answer names, int64 [B], -1 where it names none; and how many do not.

    An answer names a label by the word that was asked for or by its own name, with whatever casing, spaces and marks,
    and says nothing else.
    """
    number = {_bare(name): i for names in (labels, words) for i, name in enumerate(names)}
    found = np.array([number.get(_bare(answer), -1) for answer in answers], np.int64)
    return found, int((found < 0).sum())


def stood(answer: str, part: ReleasedField) -> str | None:
    """What stood in the original where the words of an answer stand in the released text first; None where nowhere."""
    words = [re.escape(word) for word in answer.strip(string.punctuation + string.whitespace).split()]
    phrase = r"\s+".join(words)
    match = re.search(rf"(?<!\w){phrase}(?!\w)", part.text, re.IGNORECASE) if words else None
    return part.behind(*match.span()) if match else None


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())
