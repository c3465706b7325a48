"""Reading: an extractive reader answers released questions about released texts.

In: questions and texts after release. Out: the answers' scores against gold answers, as released
and as restored.
Not here: language models that answer (`endpoint_judge`), and how answers are scored (`answers`).
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from textveil.config import make_options
from textveil.evaluate.attack import ProgressCallback, ignore_progress
from textveil_bench.examples import DataSet
from textveil_bench.tasks import answers, judge_models, sentence_vectors
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample

RESTORED_PREFIX = "restored "
"""Prefix of the metrics' names."""

RELEASED_NOTE = "the released answer"
RESTORED_NOTE = "the original text where the answer was found"


@make_options()
class Reading:
    """Judges question answering with a reader that extracts an answer span.

    Both the question and the text are released; the reader never sees an original. Its answer is
    scored in two views:

    - `F1` and the other metrics: the answer in the released text, as papers report it. It drops
      whenever a word of the answer was replaced, even if the right place was found, so it cannot be
      high if answers are hidden; and answers are often names and numbers, which most tables lack.
    - `restored F1` and the others: the original text where the answer was found
      (`ReleasedField.find_original`). The text's owner, who knows the replacements, reads this: it
      measures whether the right place was found. Guessing a place scores a little: see the
      baselines `mask` and `uniform`.

    The headline is an option. By default it is `F1`, which needs nothing but the release, so that
    figures can be compared with published ones.

    Args:
        reader: a folder or hub id of a model for extractive question answering; the bundled one by
            default.
        headline: the task's main metric.
        report: called with progress.
    """

    reader: str | None = None
    headline: Literal["F1", "restored F1"] = "F1"
    report: ProgressCallback = Field(default=ignore_progress, repr=False)

    @property
    def name(self) -> str:
        """The judge's name in rows."""
        return f"reader ({judge_models.get_model_name(self.reader, judge_models.READER_NAME)})"

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why the data are not reading questions with answers, or ""."""
        return answers.explain_refusal(data)

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Yields exact match, F1 and cosine of answers, released and restored.

        Raises:
            InputError: a question takes more than half of the reader's window.
        """
        reader = judge_models.get_reader(self.reader)
        released, restored = [], []
        for start in range(0, len(trials), sentence_vectors.STEP):
            self.report("reading", start, len(trials))
            batch = trials[start : start + sentence_vectors.STEP]
            questions, texts = zip(*(trial.texts for trial in batch), strict=True)
            for trial, answer in zip(batch, reader.answer(questions, texts), strict=True):
                released.append(answer.text)
                restored.append(trial.parts[1].find_original(answer.start, answer.end))
        yield from answers.score_answers(data, released, headline=self.headline, note=RELEASED_NOTE)
        yield from answers.score_answers(
            data, restored, view=RESTORED_PREFIX, headline=self.headline, note=RESTORED_NOTE
        )
