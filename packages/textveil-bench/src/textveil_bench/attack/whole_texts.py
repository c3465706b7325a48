"""Attacks on whole texts: membership, a label, and words that came through.

In: a case: texts, what was released in the place of each, and pairs of neighbours. Out: outcomes,
each with the bound that follows from the epsilon.
Not here: the scores of two worlds (`worlds`), and attacks on releases word by word (the modules
beside this one).

The words of a release word by word can be judged here too, so that both stand in one table.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from textveil.config import dump_options, make_options
from textveil.errors import ConfigError, UnknownName
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.randomness import Ids, Randomness, SystemRandomness, Values
from textveil.text import tokenize
from textveil_bench.attack.attribute import LabelOption, assign_folds, classify
from textveil_bench.attack.report import Findings, build_rates, report_step, split_lengths
from textveil_bench.attack.worlds import (
    MIN_TRIALS,
    WorldPair,
    bound_accuracy,
    bound_advantage,
    draw_scores,
)

CHANCE_DRAWS = 10
"""Public texts that each text is compared with, for what chance alone gives."""

UNALIGNED = "it needs one released text for each private one"

TextRelease = Callable[[Sequence[str]], Sequence[str]]
"""Releases a text for each text, with fresh draws."""

CellMap = Callable[[Sequence[str]], Ids]
"""The public map from texts to cells; for membership one that looks up public texts is enough."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TextCase:
    """Whole texts, and what was released.

    Attributes:
        epsilon: promised for a text.
        texts: the private ones. Secret.
        released: one for each of them, or none where the release is a corpus.
        public: the texts of the library: what chance gives, and which words are common.
        find_cells: the public map of the library; None where there is none.
        pairs: neighbours that must not be told apart.
    """

    epsilon: float
    texts: tuple[str, ...] = field(default=(), repr=False)
    released: tuple[str, ...] = field(default=(), repr=False)
    public: tuple[str, ...] = field(default=(), repr=False)
    find_cells: CellMap | None = field(default=None, repr=False)
    pairs: tuple[WorldPair, ...] = ()

    def __post_init__(self) -> None:
        if self.released and len(self.released) != len(self.texts):
            raise ConfigError(
                f"a case must have one released text for each of {len(self.texts)}, got "
                f"{len(self.released)}"
            )

    @classmethod
    def create(
        cls,
        release: TextRelease,
        texts: Sequence[str],
        *,
        epsilon: float,
        public: Sequence[str] = (),
        find_cells: CellMap | None = None,
        pair_count: int = 4,
    ) -> "TextCase":
        """Releases texts, and pairs some of them for membership.

        Args:
            release: puts a text in the place of each.
            texts: the private ones.
            epsilon: promised for a text, whatever stands in its place.
            public: the texts of the library.
            find_cells: the public map from texts to cells, which an attacker has too.
            pair_count: how many pairs of texts, of different cells where these are known.
        """
        texts = tuple(texts)
        return cls(
            epsilon=epsilon,
            texts=texts,
            released=tuple(release(texts)),
            public=tuple(public),
            find_cells=find_cells,
            pairs=tuple(
                WorldPair(
                    name=f"another text ({number})",
                    program=partial(_release_often, release, find_cells),
                    first=texts[one],
                    second=texts[other],
                    epsilon=epsilon,
                )
                for number, (one, other) in enumerate(pair_texts(texts, find_cells, pair_count), 1)
            ),
        )


def _release_often(
    release: TextRelease, find_cells: CellMap | None, text: str, many: int
) -> NDArray[Any]:
    released = release([text] * many)
    return np.array(released, np.str_) if find_cells is None else find_cells(released)


def pair_texts(
    texts: Sequence[str], find_cells: CellMap | None, pair_count: int
) -> Iterator[tuple[int, int]]:
    """Yields pairs of texts, the first of one cell with the first of the next."""
    cells = np.arange(len(texts)) if find_cells is None else find_cells(texts)
    firsts = np.unique(cells, return_index=True)[1]
    for number in range(min(pair_count, len(firsts) - 1)):
        yield int(firsts[number]), int(firsts[number + 1])


@runtime_checkable
class TextAttack(Protocol):
    """An attacker on whole texts, with options; frozen, as an `Attack` is."""

    name: ClassVar[str]

    def refusal(self, case: TextCase) -> str:
        """Returns why the attack cannot judge such releases, or "".

        In words that go on "not run: ".
        """
        ...

    def run(
        self, case: TextCase, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Attacks the releases, and judges the guesses."""
        ...


@make_options()
class TextMembership:
    """Tells whether a text was there, by an attacker who knows all others.

    Of two neighbours (a document more or not; one text or another) one is released; the attacker,
    who has both and has seen the program release each many times, says which. The advantage is the
    share of right guesses minus that of wrong ones; 0 is chance. No attacker has more than
    tanh(epsilon / 2).

    Args:
        trials: releases of each world; half of them are learned from.
    """

    name: ClassVar[str] = "membership"
    trials: Annotated[int, Field(ge=MIN_TRIALS, le=10_000_000, strict=True)] = 20_000

    def refusal(self, case: TextCase) -> str:
        """Explains why the attack cannot run: there are no neighbours."""
        return "" if case.pairs else "it needs two texts, or two worlds, to tell apart"

    def run(
        self, case: TextCase, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields the advantage for every pair of neighbours."""
        for done, pair in enumerate(case.pairs):
            report("worlds", done, len(case.pairs))
            training, judged = draw_scores(pair, self.trials)
            is_second = judged >= _choose_cut(training)
            # in the second world yes is right, in the first no
            values = np.where(is_second == np.array([[False], [True]]), 1.0, -1.0).ravel()
            yield Outcome(
                source=self.name,
                metric="advantage",
                setting={"neighbour": pair.name},
                unit="text",
                where=np.arange(len(values)),
                values=values,
                baseline=0.0,
                note=f"at most {bound_advantage(pair.epsilon):.3f} at epsilon {pair.epsilon:g}",
                share=False,
                sliced=False,
            )


def _choose_cut(training: Values) -> float:
    """Chooses the score from which an attacker says "the second"."""
    cuts = np.unique(training)
    shares = [
        1 - np.searchsorted(np.sort(world), cuts, side="left") / world.size for world in training
    ]
    return float(cuts[np.argmax(shares[1] - shares[0])])


@make_options()
class TextAttribute:
    """Infers a label of each text from what stands in its place.

    The attacker knows the labels of the other texts, and what stands in their places: TF-IDF of
    words and word pairs, then logistic regression; and the cell of the released text, where the map
    is public. The accuracy is that of cross-validation, beside that of the same classifier on
    originals. With a commonest label of share s, no attacker has more than s / (s + (1 - s)
    exp(-epsilon)).

    Args:
        labels: the label of each text, in order; empty if unknown.
        folds: folds of the cross-validation; labels with fewer texts are left out, with their
            texts.
    """

    name: ClassVar[str] = "attribute"
    labels: LabelOption = Field(default=(), repr=False)
    folds: Annotated[int, Field(ge=2, le=100, strict=True)] = 5

    def refusal(self, case: TextCase) -> str:
        """Explains why the attack cannot run: no labels, or a corpus."""
        if not self.labels:
            return "it needs labels: give their field with --label"
        if len(self._number) < 2:
            return f"it needs at least two labels with {self.folds} or more texts each"
        return "" if case.released else UNALIGNED

    def run(
        self, case: TextCase, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields the accuracy from words, from cells, and from originals.

        Raises:
            ConfigError: there is not one label for each text.
        """
        if len(self.labels) != len(case.texts):
            raise ConfigError(
                f"labels must be one for each of the {len(case.texts)} texts, not "
                f"{len(self.labels)}"
            )
        where = np.array([i for i, label in enumerate(self.labels) if label in self._number])
        classes = np.array([self._number[self.labels[i]] for i in where.tolist()])
        fold = assign_folds(classes, self.folds, rng)
        released = [case.released[i] for i in where.tolist()]
        share = float(np.bincount(classes).max() / len(classes))
        bound = f"at most {bound_accuracy(share, case.epsilon):.3f} at epsilon {case.epsilon:g}"
        guessers: dict[str, Callable[[], Ids]] = {
            "releases": lambda: _classify_texts(released, classes, fold)
        }
        if case.find_cells is not None:
            cells = case.find_cells(released)
            guessers["cells"] = lambda: _vote_cells(cells, classes, fold)
        originals = [case.texts[i] for i in where.tolist()]
        guessers["originals"] = lambda: _classify_texts(originals, classes, fold)
        for done, (source, guess) in enumerate(guessers.items()):
            report("classifiers", done, len(guessers))
            yield Outcome(
                source=self.name,
                metric="accuracy",
                setting={"learned from": source, "guessed from": source},
                unit="text",
                where=where,
                values=(guess() == classes).astype(np.float64),
                baseline=share,
                note="" if source == "originals" else bound,
                headline=source != "originals",
            )

    @property
    def _number(self) -> Mapping[str, int]:
        counts = Counter(self.labels)
        frequent = sorted(label for label, n in counts.items() if label and n >= self.folds)
        return {label: number for number, label in enumerate(frequent)}


def _classify_texts(texts: Sequence[str], classes: Ids, fold: Ids) -> Ids:
    documents = _split_words(texts)
    return classify(documents, documents, classes, fold)


def _vote_cells(cells: Ids, classes: Ids, fold: Ids) -> Ids:
    """Guesses the commonest label that the other folds have in the cell."""
    codes = np.unique(cells, return_inverse=True)[1]
    guesses = np.empty(len(classes), np.int64)
    for part in np.unique(fold).tolist():
        known = fold != part
        counts = np.zeros((codes.max() + 1, classes.max() + 1))
        np.add.at(counts, (codes[known], classes[known]), 1)
        counts += counts.sum(axis=0) / (1 + counts.sum())  # a cell never seen says nothing
        guesses[~known] = counts.argmax(axis=1)[codes[~known]]
    return guesses


@make_options()
class TextWords:
    """Finds words of the private text in what stands in its place.

    The attacker says of every content word of the released text that it was in the private one.
    Reported is the share of a text's content words, and of its names, that are there; the baseline
    is that share in a public text taken at random. Content words are those of fewer than a share
    `common` of the public texts; names are words with a capital inside a sentence. A word that is
    there by topic says no more than epsilon allows: the difference from the baseline is at most
    tanh(epsilon / 2).

    Args:
        common: the share of public texts from which a word is no content word.
    """

    name: ClassVar[str] = "words"
    common: Annotated[float, Field(gt=0, le=1)] = 0.02

    def refusal(self, case: TextCase) -> str:
        """Explains why the attack cannot run: a corpus, or no public texts."""
        if not case.released:
            return UNALIGNED
        return "" if case.public else "it needs public texts, which say which words are common"

    def run(
        self, case: TextCase, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields the shares of content words and of names."""
        report("words", 0, 1)
        public = [{word.casefold() for word in words} for words in _split_words(case.public)]
        counts = Counter(word for words in public for word in words)
        common = {word for word, n in counts.items() if n >= self.common * len(public)}
        released = [{word.casefold() for word in words} for words in _split_words(case.released)]
        chance = _draw_numbers(len(case.texts) * CHANCE_DRAWS, len(public), rng)
        originals = _split_words(case.texts)
        kinds = {
            "content words": [{w.casefold() for w in words} - common for words in originals],
            "names": [_find_names(words) - common for words in originals],
        }
        for metric, secrets in kinds.items():
            where = np.array([i for i, words in enumerate(secrets) if words], np.int64)
            if not len(where):
                continue
            shares = [_share(secrets[i], released[i]) for i in where.tolist()]
            random = [
                _share(secrets[i], public[j])
                for i in where.tolist()
                for j in chance[i * CHANCE_DRAWS : (i + 1) * CHANCE_DRAWS].tolist()
            ]
            yield Outcome(
                source=self.name,
                metric=metric,
                unit="text",
                where=where,
                values=np.array(shares),
                baseline=float(np.mean(random)),
                note=(
                    f"above a random public text by at most {bound_advantage(case.epsilon):.3f} at "
                    f"epsilon {case.epsilon:g}"
                ),
            )


def _share(words: set[str], there: set[str]) -> float:
    return len(words & there) / len(words)


def _split_words(texts: Sequence[str]) -> list[list[str]]:
    tokens = tokenize(list(texts))
    words, bounds = tokens.words, tokens.documents.tolist()
    return [list(words[start:stop]) for start, stop in pairwise(bounds)]


def _find_names(words: Sequence[str]) -> set[str]:
    """Finds words with a capital that begin no sentence."""
    return {
        word.casefold()
        for before, word in pairwise(words)
        if word[:1].isupper() and before[-1:] not in ".!?:\"'“”("
    }


def _draw_numbers(many: int, high: int, rng: Randomness) -> Ids:
    numbers = np.empty(many, np.int64)
    for part, draws in rng.open([many]).split_rows(max(1, many)):
        numbers[part] = draws.integers(np.full(draws.size, high, np.int64))
    return numbers


TEXT_ATTACKS: Mapping[str, Callable[..., TextAttack]] = {
    attacker.name: attacker for attacker in (TextMembership, TextAttribute, TextWords)
}
"""All attacks on whole texts, by name."""


def find_text_attack(name: str) -> Callable[..., TextAttack]:
    """Returns the class of the attackers on whole texts of a name.

    Raises:
        UnknownName: there is no such attack.
    """
    if name not in TEXT_ATTACKS:
        raise UnknownName("attack on whole texts", name, TEXT_ATTACKS)
    return TEXT_ATTACKS[name]


def load_text_attack(name: str, options: Mapping[str, Any] | None = None) -> TextAttack:
    """Builds the attacker on whole texts of a name.

    Raises:
        UnknownName: there is no such attack, or it has no such option.
        ConfigError: an option is out of range.
    """
    return find_text_attack(name)(**(options or {}))


def attack_texts(
    case: TextCase,
    attacks: Sequence[TextAttack],
    *,
    rng: Randomness | None = None,
    report: ProgressCallback = ignore_progress,
) -> Findings:
    """Runs attacks on whole texts.

    Args:
        case: texts, releases and neighbours.
        attacks: the attackers, of different names.
        rng: for folds and random public texts; None for system randomness.
        report: called with the progress.
    """
    if len({attacker.name for attacker in attacks}) < len(attacks):
        raise ConfigError("an attack may be given only once")
    rng = SystemRandomness() if rng is None else rng
    refused = {attacker.name: reason for attacker in attacks if (reason := attacker.refusal(case))}
    lengths = np.array([len(words) for words in _split_words(case.texts)], np.float64)
    parts = split_lengths(lengths)
    rows = [
        row
        for attacker in attacks
        if attacker.name not in refused
        for outcome in attacker.run(
            case, rng=rng, report=partial(report_step, report, attacker.name)
        )
        for row in build_rates(outcome, outcome.where, parts)
    ]
    return Findings(
        rows=tuple(rows),
        refused=refused,
        options={attacker.name: dump_options(attacker) for attacker in attacks},
        texts=len(case.texts),
        words=0,
    )
