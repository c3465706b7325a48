"""Attribute inference: a private label of each text, by a classifier that learned from releases.

In: releases, and the label of each text. Out: accuracy, beside that of classifiers that saw the
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
"""Stands before every text, so that a text without words is one too, and pairs of words show how texts begin."""

Documents = list[list[str]]


def _validate_labels(labels: object) -> object:
    """The labels, if they are strings; a message does not repeat them."""
    if isinstance(labels, str) or not (
        isinstance(labels, Sequence) and all(isinstance(label, str) for label in labels)
    ):
        raise ConfigError("labels must be a sequence of strings, one for each text")
    return labels


@make_options()
class Attribute:
    """Infers a private property of the author or the text from what is released.

    The attacker holds releases of texts whose label is known, and learns from them: TF-IDF of words
    and pairs of words,
    then logistic regression. Texts are judged by stratified cross-validation, with the same folds
    for all classifiers:
    one that learned from releases and guesses from releases (the attack); one that learned from
    originals and guesses
    from releases; one that learned and guesses from the words that pass (what the mask alone
    tells); and one that
    learned and guesses from originals (what there is to lose). The baseline always names the most
    frequent label.

    On the command line the labels are a field of the file, beside the text. One within another
    field has to be
    brought out first, say by `jq -c '. + {sex: .personality.sex}'`; numbers have to be cut into
    classes ("30 to 39").

    Args:
        labels: the label of each text, in their order; empty where it is not known.
        folds: parts of the cross-validation. Labels with fewer texts than that are left out, with
            their texts.
    """

    name: ClassVar[str] = "attribute"
    on_request: ClassVar[Literal[True]] = True
    labels: Annotated[tuple[str, ...], BeforeValidator(_validate_labels)] = Field(
        default=(), repr=False
    )
    folds: Annotated[int, Field(ge=2, le=100, strict=True)] = 5

    def refusal(self, view: View) -> str:
        """Where there are no labels, or not two that are frequent enough to learn."""
        if not self.labels:
            return "it needs labels: name their field with --label"
        if len(self._frequent) < 2:
            return f"it needs two labels at least that {self.folds} texts or more have"
        return ""

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Accuracy of the attack, and of classifiers that saw less or more.

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
        fold = _assign_folds(classes, self.folds, rng)
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
    """The guess for every text by a classifier that has not learned from its fold: int64 [m].

    Args:
        training: m texts as words, to learn from.
        targets: the same m texts as words, to guess from.
        classes: int64 [m], their labels.
        fold: int64 [m], the part that each text is in.
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
    """Words and pairs of words, in small letters."""
    lowered = [START_TOKEN, *(word.lower() for word in words)]
    return lowered + [f"{first} {second}" for first, second in pairwise(lowered)]


def _assign_folds(classes: Ids, folds: int, rng: Randomness) -> Ids:
    """A part for every text, int64 [m]: of each class as many in every part, but for one."""
    keys = np.empty(len(classes))
    for chunk, draws in rng.open([len(classes)]).split_rows(max(1, len(classes))):
        keys[chunk] = draws.uniform(1)[:, 0]
    order = np.lexsort((keys, classes))
    part = np.empty(len(classes), np.int64)
    part[order] = np.arange(len(classes)) % folds
    return part
