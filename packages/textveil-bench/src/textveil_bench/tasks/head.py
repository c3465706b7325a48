"""Head: a classifier on frozen sentence vectors, fitted to originals once.

In: labelled originals for training, releases to judge. Out: whether each release still gets its label.
Not here: networks trained as a whole (`finetune`), or by others (`classifier`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.evaluate.attack import Report, quiet
from textveil.randomness import Floats, Values
from textveil.text import counts, tokenize
from textveil_bench.examples import DataSet
from textveil_bench.tasks import kept, labelled, models, vectors
from textveil_bench.tasks.contract import Score
from textveil_bench.trials import ReleasedExample

RECIPE = 1
"""Version of the features and the fit; results of older versions on disk are ignored."""

LIBRARIES = (
    "numpy",
    "scikit-learn",
    "sentence-transformers",
    "textveil",
    "tokenizers",
    "torch",
    "transformers",
)


class Fitted(NamedTuple):
    """A logistic regression of C labels on m features.

    Args:
        train: the rows it was fitted to.
        coefficients: float64 [m, C].
        intercept: float64 [C].
    """

    train: DataSet
    coefficients: Values
    intercept: Values


@options()
class Head:
    """Judges classification and pairs by a logistic regression on sentence vectors.

    The encoder is frozen. The regression is fitted to originals of the training split, never to releases, and judges
    all releases of all mechanisms. It is saved to disk, with the features it was fitted to.

    For one text, the features are its sentence vector. For a pair they are both vectors u and v, |u - v|, and u * v
    scaled to a norm of about one; and three standardized numbers: the cosine of u and v; the share of the first text's
    words that occur in the second, with rare words counting more; and, with `reader`, the bundled reader's confidence
    in the best answer that the second text gives to the first (it was trained on 4,330 questions of SQuAD's training
    set). All features are computed from the judged texts alone.

    Args:
        encoder: a folder or hub id of a sentence-transformers model; the bundled one by default.
        rows: most training rows, drawn with a fixed seed.
        C: inverse regularization strength; accuracy hardly changes from .3 to 2.
        reader: for pairs, whether to use the reader. It takes about as long as the vectors.
        train: returns the training split, if needed.
        folder: where the result is saved; see `kept.home`.
        report: called with progress.
    """

    encoder: str | None = None
    rows: Annotated[int, Field(ge=2, strict=True)] = 8_000
    C: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.5
    reader: bool = True
    train: Callable[[], DataSet] = Field(repr=False)
    folder: Path | None = Field(default=None, repr=False)
    report: Report = Field(default=quiet, repr=False)

    @property
    def name(self) -> str:
        """What rows call it."""
        return f"head ({models.called(self.encoder)})"

    def refusal(self, data: DataSet) -> str:
        """The reason if the data are not labelled texts or pairs."""
        return labelled.refusal(data)

    def prepare(self) -> None:
        """Fits the regression, unless it is on disk.

        Raises:
            ConfigError: a label has no training row.
        """
        _ = self._fitted

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Accuracy.

        Raises:
            ConfigError: the training split does not match.
        """
        labelled.check_trained(data, self._fitted.train)
        logits = (
            self.features([trial.texts for trial in trials]) @ self._fitted.coefficients
            + self._fitted.intercept
        )
        note = f"logistic regression on {models.called(self.encoder)}, {len(self._fitted.train):,} originals"
        yield labelled.accuracy(data, logits.argmax(axis=1), note)

    def features(self, texts: Sequence[Sequence[str]]) -> Floats:
        """The regression's features, float32 [B, m].

        Args:
            texts: one text per example, or two.
        """
        found = vectors.encode(
            [text for each in texts for text in each], self.encoder, report=self.report
        )
        if len(found) == len(texts):
            return found
        one, other = found[::2], found[1::2]
        product = math.sqrt(one.shape[1]) * one * other
        numbers = [vectors.cosines(one, other), overlaps(texts)]
        if self.reader:
            numbers.append(self._certainty(texts))
        return np.hstack(
            [one, other, abs(one - other), product, np.stack(numbers, axis=1).astype(np.float32)]
        )

    def _certainty(self, texts: Sequence[Sequence[str]]) -> Values:
        """The logits of the reader's best answers, float64 [B]."""
        reader = models.reader()
        scores = []
        for start in range(0, len(texts), vectors.STEP):
            self.report("reading", start, len(texts))
            first, second = zip(*texts[start : start + vectors.STEP], strict=True)
            scores += [answer.score for answer in reader.answer(first, second)]
        return np.array(scores, np.float64)

    @cached_property
    def _fitted(self) -> Fitted:
        train = labelled.learned_from(self.train(), self.rows)
        pairs = len(train.fields) == 2
        numbers = 2 + self.reader if pairs else 0
        encoder = models.encoder(self.encoder)
        width = encoder.dimension * (4 if pairs else 1) + numbers
        seen = kept.key(
            LIBRARIES,
            recipe=RECIPE,
            data=train.digest,
            encoder=kept.fingerprint(encoder.network),
            reader=kept.fingerprint(models.reader().model.network)
            if pairs and self.reader
            else None,
        )
        home = kept.home(self.folder)

        def learn() -> kept.Arrays:
            examples = [example.texts for example in train.examples]
            learned = kept.arrays(
                home / f"features-{seen}.npz",
                lambda: {"features": self.features(examples)},
                features=(len(train), width),
            )
            return fit(
                learned["features"],
                [example.label or 0 for example in train.examples],
                numbers,
                self.C,
            )

        fitted = kept.key((), features=seen, C=self.C, labels=len(train.labels))
        size = (width, len(train.labels))
        found = kept.arrays(
            home / f"head-{fitted}.npz", learn, coefficients=size, intercept=size[1:]
        )
        return Fitted(train, found["coefficients"], found["intercept"])


def fit(features: Floats, labels: Sequence[int], numbers: int, strength: float) -> kept.Arrays:
    """The coefficients [m, C] and the intercept [C] of a multinomial logistic regression.

    Args:
        features: float32 [B, m].
        labels: of each row, 0 to C - 1, each at least once.
        numbers: how many of the last features are standardized; the regularization is the same for all.
        strength: C, the inverse regularization strength.
    """
    from sklearn.linear_model import LogisticRegression

    scale = np.ones(features.shape[1])
    if numbers:
        spread = features[:, -numbers:].std(axis=0, dtype=np.float64)
        scale[-numbers:] = np.where(spread > 0, spread, 1)
    model = LogisticRegression(C=strength, max_iter=1000).fit(features / scale, labels)
    coefficients, intercept = model.coef_, model.intercept_
    if len(intercept) == 1:  # with two labels, only the second has a row
        coefficients, intercept = (
            np.vstack([0 * coefficients, coefficients]),
            np.append(0, intercept),
        )
    return {"coefficients": (coefficients / scale).T, "intercept": intercept}


def overlaps(texts: Sequence[Sequence[str]]) -> Values:
    """The share of the first text's distinct words that occur in the second, float64 [B].

    A word's weight is the logarithm of its rarity in public text; case and punctuation are ignored.
    """
    found = []
    for first, second in texts:
        mine, theirs = _words(first), _words(second)
        whole = sum(map(_weight, mine))
        found.append(sum(map(_weight, mine & theirs)) / whole if whole else 0.0)
    return np.array(found, np.float64)


def _words(text: str) -> set[str]:
    return {word.lower() for word in tokenize([text]).words if any(map(str.isalnum, word))}


def _weight(word: str) -> float:
    return math.log(_total() / counts().get(word, 1))


@cache
def _total() -> int:
    return sum(counts().values())
