"""Head: a logistic regression on frozen sentence vectors, trained on originals.

In: labelled originals for training, releases to judge. Out: whether each release still gets its
label.
Not here: networks trained as a whole (`finetune`), or by others (`classifier`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.evaluate.attack import ProgressCallback, ignore_progress
from textveil.randomness import Floats, Values
from textveil.text import load_counts, tokenize
from textveil_bench.examples import DataSet
from textveil_bench.tasks import judge_models, judge_store, labelled, sentence_vectors
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample

RECIPE = 1
"""Version of features and fit; files of older versions are ignored."""

LIBRARIES = (
    "numpy",
    "scikit-learn",
    "sentence-transformers",
    "textveil",
    "tokenizers",
    "torch",
    "transformers",
)


class FittedHead(NamedTuple):
    """A logistic regression of C labels on m features.

    Args:
        train: the training rows.
        coefficients: float64 [m, C].
        intercept: float64 [C].
    """

    train: DataSet
    coefficients: Values
    intercept: Values


@make_options()
class Head:
    """Judges classification and pairs by a logistic regression on sentence vectors.

    The encoder is frozen. The regression is fitted to originals of the training split, never to
    releases, and judges all releases of all mechanisms. It is saved to disk, with its training
    features.

    For one text, the features are its sentence vector. For a pair they are both vectors u and v, |u
    - v|, and u * v scaled to a norm of about one; and three standardized numbers: the cosine of u
      and v; the share of the first text's words that occur in the second, with rare words counting
      more; and, with `reader`, the bundled reader's confidence in the best answer that the second
      text gives to the first (it was trained on 4,330 questions of SQuAD's training set). All
      features are computed from the judged texts alone.

    Args:
        encoder: a folder or hub id of a sentence-transformers model; the bundled one by default.
        rows: largest number of training rows, drawn with a fixed seed.
        C: inverse regularization strength; accuracy hardly changes from .3 to 2.
        reader: for pairs, whether to use the reader. It takes about as long as the vectors.
        train: returns the training split, if needed.
        folder: where the regression is saved; see `judge_store.find_folder`.
        report: called with progress.
    """

    encoder: str | None = None
    rows: Annotated[int, Field(ge=2, strict=True)] = 8_000
    C: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.5
    reader: bool = True
    train: Callable[[], DataSet] = Field(repr=False)
    folder: Path | None = Field(default=None, repr=False)
    report: ProgressCallback = Field(default=ignore_progress, repr=False)

    @property
    def name(self) -> str:
        """The judge's name in rows."""
        return f"head ({judge_models.get_model_name(self.encoder)})"

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why the data are not labelled texts or pairs, or ""."""
        return labelled.explain_refusal(data)

    def prepare(self) -> None:
        """Fits the regression, unless it is on disk.

        Raises:
            ConfigError: a label has no training row.
        """
        _ = self._regression

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Yields the accuracy.

        Raises:
            ConfigError: the training split does not match.
        """
        labelled.check_training_rows(data, self._regression.train)
        logits = (
            self.compute_features([trial.texts for trial in trials]) @ self._regression.coefficients
            + self._regression.intercept
        )
        note = (
            f"logistic regression on {judge_models.get_model_name(self.encoder)}, "
            f"{len(self._regression.train):,} originals"
        )
        yield labelled.score_accuracy(data, logits.argmax(axis=1), note)

    def compute_features(self, texts: Sequence[Sequence[str]]) -> Floats:
        """Computes the regression's features, float32 [B, m].

        Args:
            texts: one text per example, or two.
        """
        encodings = sentence_vectors.encode(
            [text for example_texts in texts for text in example_texts],
            self.encoder,
            report=self.report,
        )
        if len(encodings) == len(texts):
            return encodings
        first, second = encodings[::2], encodings[1::2]
        product = math.sqrt(first.shape[1]) * first * second
        numbers = [sentence_vectors.compute_cosines(first, second), compute_overlaps(texts)]
        if self.reader:
            numbers.append(self._score_certainty(texts))
        return np.hstack(
            [
                first,
                second,
                abs(first - second),
                product,
                np.stack(numbers, axis=1).astype(np.float32),
            ]
        )

    def _score_certainty(self, texts: Sequence[Sequence[str]]) -> Values:
        """Computes the logits of the reader's best answers, float64 [B]."""
        reader = judge_models.get_reader()
        scores = []
        for start in range(0, len(texts), sentence_vectors.STEP):
            self.report("reading", start, len(texts))
            first, second = zip(*texts[start : start + sentence_vectors.STEP], strict=True)
            scores += [answer.score for answer in reader.answer(first, second)]
        return np.array(scores, np.float64)

    @cached_property
    def _regression(self) -> FittedHead:
        train = labelled.select_training_rows(self.train(), self.rows)
        pairs = len(train.fields) == 2
        numbers = 2 + self.reader if pairs else 0
        encoder = judge_models.get_encoder(self.encoder)
        width = encoder.dimension * (4 if pairs else 1) + numbers
        features_key = judge_store.build_key(
            LIBRARIES,
            recipe=RECIPE,
            data=train.digest,
            encoder=judge_store.hash_network(encoder.network),
            reader=judge_store.hash_network(judge_models.get_reader().model.network)
            if pairs and self.reader
            else None,
        )
        home = judge_store.find_folder(self.folder)

        def learn() -> judge_store.Arrays:
            examples = [example.texts for example in train.examples]
            training_features = judge_store.load_arrays(
                home / f"features-{features_key}.npz",
                lambda: {"features": self.compute_features(examples)},
                features=(len(train), width),
            )
            return fit(
                training_features["features"],
                [example.label or 0 for example in train.examples],
                numbers,
                self.C,
            )

        head_key = judge_store.build_key(
            (), features=features_key, C=self.C, labels=len(train.labels)
        )
        size = (width, len(train.labels))
        arrays = judge_store.load_arrays(
            home / f"head-{head_key}.npz", learn, coefficients=size, intercept=size[1:]
        )
        return FittedHead(train, arrays["coefficients"], arrays["intercept"])


def fit(
    features: Floats, labels: Sequence[int], numbers: int, strength: float
) -> judge_store.Arrays:
    """Fits a multinomial logistic regression: coefficients [m, C] and intercept [C].

    Args:
        features: float32 [B, m].
        labels: label of each row, 0 to C - 1, each at least once.
        numbers: number of last features that are standardized; the regularization is the same for
            all.
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


def compute_overlaps(texts: Sequence[Sequence[str]]) -> Values:
    """Computes weighted shares of first texts' words in second ones, float64 [B].

    Words are distinct; each weighs the logarithm of its rarity in public text. Case and punctuation
    are ignored.
    """
    shares = []
    for first, second in texts:
        mine, theirs = _split_words(first), _split_words(second)
        whole = sum(map(_weigh_word, mine))
        shares.append(sum(map(_weigh_word, mine & theirs)) / whole if whole else 0.0)
    return np.array(shares, np.float64)


def _split_words(text: str) -> set[str]:
    return {word.lower() for word in tokenize([text]).words if any(map(str.isalnum, word))}


def _weigh_word(word: str) -> float:
    return math.log(_count_words() / load_counts().get(word, 1))


@cache
def _count_words() -> int:
    return sum(load_counts().values())
