"""Scores of answers: SQuAD's exact match and token F1, and cosine similarity.

In: answers, and the gold answers of each. Out: scores.
Not here: the models that answer (`reading`, `endpoint_judge`).
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from textveil_bench.examples import DataSet
from textveil_bench.tasks import judge_models, sentence_vectors
from textveil_bench.tasks.task_contract import Score

_MARKS = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def explain_refusal(data: DataSet) -> str:
    """Returns why the data are not reading questions with answers, or ""."""
    if data.kind != "reading" or len(data.fields) != 2:
        return f"it answers questions about texts, and {data.name} is of the kind {data.kind}"
    return (
        ""
        if all(example.answers for example in data.examples)
        else f"{data.name} has questions without answers"
    )


def normalize(answer: str) -> list[str]:
    """Returns an answer's words in SQuAD's form: lower-case, without punctuation and articles."""
    return _ARTICLES.sub(" ", answer.lower().translate(_MARKS)).split()


def score_exact_match(answer: str, golds: Sequence[str]) -> float:
    """Returns 1 if an answer equals a normalized gold answer, otherwise 0."""
    return float(any(normalize(answer) == normalize(gold) for gold in golds))


def score_token_f1(answer: str, golds: Sequence[str]) -> float:
    """Computes an answer's best token F1 against gold answers, after normalization.

    Source: Rajpurkar, Zhang, Lopyrev, Liang, "SQuAD: 100,000+ Questions for Machine Comprehension
        of Text" (2016), section 6.1.
    """
    best = 0.0
    for gold in golds:
        mine, theirs = normalize(answer), normalize(gold)
        common = sum((Counter(mine) & Counter(theirs)).values())
        best = max(
            best,
            float(mine == theirs)
            if not (mine and theirs)
            else 2 * common / (len(mine) + len(theirs)),
        )
    return best


def score_answers(
    data: DataSet, answers: Sequence[str], *, view: str = "", headline: str = "", note: str
) -> Iterator[Score]:
    """Yields exact match, F1, and cosine with the nearest gold answer.

    Args:
        data: data set with the gold answers.
        answers: one for each example.
        view: prefix of the metrics' names ("restored ").
        headline: the task's main metric, if it is one of these.
        note: note for readers of the scores.
    """
    golds = [example.answers for example in data.examples]
    judges: tuple[tuple[str, Callable[[str, Sequence[str]], float]], ...] = (
        ("exact match", score_exact_match),
        ("F1", score_token_f1),
    )
    for metric, judge in judges:
        values = np.array(
            [judge(answer, gold_group) for answer, gold_group in zip(answers, golds, strict=True)],
            np.float64,
        )
        yield Score(
            metric=view + metric,
            values=values,
            chance=0.0,
            headline=view + metric == headline,
            note=note,
        )
    gold_vectors = sentence_vectors.encode_originals(
        tuple(gold for gold_group in golds for gold in gold_group)
    )
    answer_vectors = sentence_vectors.encode(answers)
    owner = np.repeat(np.arange(len(golds)), list(map(len, golds)))
    values = np.full(len(golds), -1.0)
    np.maximum.at(
        values, owner, sentence_vectors.compute_cosines(answer_vectors[owner], gold_vectors)
    )
    yield Score(
        metric=f"{view}cosine",
        values=values,
        share=False,
        note=f"{note}; sentence vectors of {judge_models.ENCODER_NAME}, the nearest gold answer",
    )
