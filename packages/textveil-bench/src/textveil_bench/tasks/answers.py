"""Scores answers against gold ones: exact match and token F1 as in SQuAD, and similarity in meaning.

In: answers, and the gold ones of each. Out: scores.
Not here: what answers (`reading`, `asked`).
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from textveil_bench.examples import DataSet
from textveil_bench.tasks import models, vectors
from textveil_bench.tasks.task_contract import Score

_MARKS = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def explain_refusal(data: DataSet) -> str:
    """The reason if the data are not questions with a text and answers; empty otherwise."""
    if data.kind != "reading" or len(data.fields) != 2:
        return f"it answers questions about texts, and {data.name} is of the kind {data.kind}"
    return (
        ""
        if all(example.answers for example in data.examples)
        else f"{data.name} has questions without answers"
    )


def normalize(answer: str) -> list[str]:
    """The words of an answer in SQuAD's normal form: lower case, no punctuation, no articles."""
    return _ARTICLES.sub(" ", answer.lower().translate(_MARKS)).split()


def score_exact_match(answer: str, golds: Sequence[str]) -> float:
    """1 if an answer equals a gold one in normal form, otherwise 0."""
    return float(any(normalize(answer) == normalize(gold) for gold in golds))


def score_token_f1(answer: str, golds: Sequence[str]) -> float:
    """The best F1 between an answer's words and those of a gold one, in normal form.

    Source: Rajpurkar, Zhang, Lopyrev, Liang, "SQuAD: 100,000+ Questions for Machine Comprehension
        of Text" (2016),
    section 6.1.
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
    """Exact match, F1 and the cosine with the nearest gold answer.

    Args:
        data: has the gold answers.
        answers: one for each example.
        view: prefix of the metrics' names ("restored ").
        headline: the metric that the task is judged by, if it is one of these.
        note: what readers need to know.
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
    gold_vectors = vectors.encode_originals(
        tuple(gold for gold_group in golds for gold in gold_group)
    )
    answer_vectors = vectors.encode(answers)
    owner = np.repeat(np.arange(len(golds)), list(map(len, golds)))
    values = np.full(len(golds), -1.0)
    np.maximum.at(values, owner, vectors.compute_cosines(answer_vectors[owner], gold_vectors))
    yield Score(
        metric=f"{view}cosine",
        values=values,
        share=False,
        note=f"{note}; sentence vectors of {models.ENCODER_NAME}, the nearest gold answer",
    )
