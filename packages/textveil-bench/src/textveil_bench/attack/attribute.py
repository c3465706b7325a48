"""Attribute inference: a trained classifier predicts a label of each text.

In: releases, and the label of each text. Out: accuracy, beside that of classifiers trained on
originals.
Not here: guesses of the words themselves (`bayes`, `masked`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.randomness import Ids, Randomness
from textveil.text import Kind

START_TOKEN = ""
"""Start-of-text token: gives an empty text a feature.

Word pairs then include the first word alone.
"""

Documents = list[list[str]]


def _validate_labels(labels: object) -> object:
    """Checks that the labels are strings; error messages do not repeat them."""
    if isinstance(labels, str) or not (
        isinstance(labels, Sequence) and all(isinstance(label, str) for label in labels)
    ):
        raise ConfigError("labels must be a sequence of strings, one for each text")
    return labels


LabelOption = Annotated[tuple[str, ...], BeforeValidator(_validate_labels)]
"""An option with the label of each text."""


@make_options()
class Attribute:
    """Infers a private label of each text, such as its author's gender.

    The attacker trains on releases of texts with known labels: TF-IDF of words and word pairs, then
    logistic regression. Accuracy is measured by stratified cross-validation, with the same folds
    for four classifiers: trained on releases and tested on releases (the attack); trained on
    originals and tested on releases; trained and tested on the public words alone (the mask's share
    of the leak); trained and tested on originals (the upper limit). The baseline always predicts
    the most frequent label.

    On the command line the labels are a field of the file, beside the text. A nested field must be
    moved to the top first, for example by `jq -c '. + {sex: .personality.sex}'`; numbers must be
    binned into classes ("30 to 39").

    Args:
        labels: the label of each text, in order; empty if unknown.
        folds: folds of the cross-validation; labels with fewer texts are left out, with their
            texts.
    """

    name: ClassVar[str] = "attribute"
    on_request: ClassVar[Literal[True]] = True
    labels: LabelOption = Field(default=(), repr=False)
    folds: Annotated[int, Field(ge=2, le=100, strict=True)] = 5

    def refusal(self, view: View) -> str:
        """Explains why the attack cannot run: fewer than two frequent labels."""
        if not self.labels:
            return "it needs labels: give their field with --label"
        if len(self._frequent) < 2:
            return f"it needs at least two labels with {self.folds} or more texts each"
        return ""

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields the accuracy of the attack and of the three reference classifiers.

        Raises:
            ConfigError: there is not one label for each text.
        """
        view = case.view
        if len(self.labels) != len(view.released):
            raise ConfigError(
                f"labels must be one for each of the {len(view.released)} texts, not "
                f"{len(self.labels)}"
            )
        names = sorted(self._frequent)
        frequent_labels = set(names)
        where = np.array(
            [i for i, label in enumerate(self.labels) if label in frequent_labels], np.int64
        )
        number = {name: i for i, name in enumerate(names)}
        classes = np.array([number[self.labels[i]] for i in where.tolist()], np.int64)
        fold = assign_folds(classes, self.folds, rng)
        bounds = view.documents.tolist()
        sources: dict[str, Documents] = {
            "releases": [[item.text for item in view.released[i].items] for i in where.tolist()],
            "public words": [
                [item.text for item in view.released[i].items if item.kind is Kind.VERBATIM]
                for i in where.tolist()
            ],
            "originals": [
                list(case.truth.words[bounds[i] : bounds[i + 1]]) for i in where.tolist()
            ],
        }
        pairs = (
            ("releases", "releases"),
            ("originals", "releases"),
            ("public words",) * 2,
            ("originals",) * 2,
        )
        for step, (training_source, guess_source) in enumerate(pairs):
            report("classifiers", step, len(pairs))
            guesses = classify(sources[training_source], sources[guess_source], classes, fold)
            yield Outcome(
                source=self.name,
                metric="accuracy",
                setting={"learned from": training_source, "guessed from": guess_source},
                unit="text",
                where=where,
                values=(guesses == classes).astype(np.float64),
                baseline=float(np.bincount(classes).max() / len(classes)),
                note=self._format_note(len(where)),
                headline=training_source == guess_source == "releases",
            )

    @property
    def _frequent(self) -> set[str]:
        return {
            label for label, count in Counter(self.labels).items() if label and count >= self.folds
        }

    def _format_note(self, count: int) -> str:
        rest = len(self.labels) - count
        return f"{len(self._frequent)} labels" + (
            f"; {rest} texts of rarer labels are left out" if rest else ""
        )


def classify(training: Documents, targets: Documents, classes: Ids, fold: Ids) -> Ids:
    """Predicts each text's label by a classifier trained on the other folds.

    Args:
        training: m texts as words, to train on.
        targets: m texts as words, to predict from, in the same order.
        classes: int64 [m], the labels.
        fold: int64 [m], the fold of each text.

    Returns:
        int64 [m], the predicted labels.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    guesses = np.empty(len(classes), np.int64)
    for part in np.unique(fold).tolist():
        train, test = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        classifier = make_pipeline(
            TfidfVectorizer(analyzer=_list_grams, sublinear_tf=True),
            LogisticRegression(C=10.0, max_iter=1000),
        )
        classifier.fit([training[i] for i in train], classes[train])
        guesses[test] = classifier.predict([targets[i] for i in test])
    return guesses


def _list_grams(words: list[str]) -> list[str]:
    """Lists words and word pairs in lower case."""
    lowered = [START_TOKEN, *(word.lower() for word in words)]
    return lowered + [f"{first} {second}" for first, second in pairwise(lowered)]


def assign_folds(classes: Ids, folds: int, rng: Randomness) -> Ids:
    """Assigns each text to a fold, stratified by class: int64 [m]."""
    keys = np.empty(len(classes))
    for chunk, draws in rng.open([len(classes)]).split_rows(max(1, len(classes))):
        keys[chunk] = draws.uniform(1)[:, 0]
    order = np.lexsort((keys, classes))
    part = np.empty(len(classes), np.int64)
    part[order] = np.arange(len(classes)) % folds
    return part
