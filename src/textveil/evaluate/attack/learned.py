"""An attacker trained on public texts, on which the mechanism was tried.

In: a case, public texts. Out: how often the private word is the best guess, among the first, and at
which rank.
Not here: what public texts teach (`knowledge`), which words come into question (`candidates`), and
the context of a word (`around`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from textveil.config import WordsOptions, options
from textveil.errors import ConfigError
from textveil.evaluate.attack import candidates, channel, trigram
from textveil.evaluate.attack.bayes import ANEW, NOTHING_PROTECTED, ONCE, steps
from textveil.evaluate.attack.beam import LIKELIEST, Beam, Trigrams
from textveil.evaluate.attack.candidates import Shortlist, alike
from textveil.evaluate.attack.case import Case, View
from textveil.evaluate.attack.channel import estimated
from textveil.evaluate.attack.contract import Outcome, Report, quiet
from textveil.evaluate.attack.knowledge import Knowledge, learn
from textveil.evaluate.attack.posterior import DRAWS, mixes
from textveil.evaluate.attack.prior import CELLS, language_model, seen
from textveil.evaluate.attack.public import distinct, split
from textveil.evaluate.attack.unmixing import MixedEvidence, WordEstimate, expected
from textveil.evaluate.attack.weights import logistic, shares
from textveil.evaluate.logs import highest
from textveil.mechanism import PLACEHOLDER, Windowed
from textveil.models import ContextKind, LanguageModel
from textveil.randomness import Flags, Floats, Ids, Randomness, Values
from textveil.text import check_texts, is_public, ranks

FEWEST = 10
"""The least number of public texts to learn from."""

RARE = 5000
"""The frequency rank from which a word counts as rare.

Of the general word list.
"""

SURE = 0.9
"""The agreement from which equal releases count as one word.

Measured in the simulation, as a share of the positions of one text with one release.
"""

LIKELIER = 32
"""The likeliest candidates of each word that a trigram model rates."""

KEPT = 8
"""Memo entries that are kept for the next releases.

Counts, and guesses from context alone.
"""

SEEN = 0.5
"""The pseudo-count of protected words of the public list.

Events that were never seen may happen (Jeffreys' prior).
"""

SIMULATION = 2**121
"""The random stream of the simulation, apart from all others."""

LOWER = (
    "a lower bound: others may learn more, "
    "and words that neither the table nor the public texts have are never named"
)

LINEAR = (
    "a lower bound: words that were mixed are estimated by a weighted sum of what stands around"
)

_Made = TypeVar("_Made")

Language = Literal["none", "masked", "causal", "trigram"]

KINDS: Mapping[Language, ContextKind] = {"masked": "masked-lm", "causal": "causal-lm"}
"""The kinds of language models that are networks."""

Setting = Mapping[str, str | int | float]

Look = Callable[[Shortlist, Values], Floats]
"""Computes features [m, K, F] of candidates from current probabilities [m, K]."""


def _check_public_texts(public: object) -> object:
    """Checks that public texts are texts, and returns them.

    Its message does not repeat them.
    """
    check_texts(public, what="public text")  # type: ignore[arg-type]
    return public


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """The attacker's guesses of the n protected words.

    Attributes:
        words: int64 [n, K], numbers of words of `known`, best first.
        probability: float64 [n, K], how likely each is, of the K candidates.
        known: the words.
        evidence: whether the law was written down or estimated.
    """

    words: Ids = field(repr=False)
    probability: Values = field(repr=False)
    known: Knowledge = field(repr=False)
    evidence: channel.Evidence


@options()
class Learned:
    """Guesses words as `bayes` does, and then looks at what stands around, as public texts of the same kind teach it.

    The attacker knows the mechanism with its options and law, and has public texts of the same kind as the releases.
    From these come the prior of each word, which words outside the table stand behind a row, and which words stand
    beside each other and in one text. The likeliest words of each position by prior and law are then weighed by their
    neighbours on both sides, those that passed and those that are guessed themselves, by the topic of the text, and by
    whether they are there again; several times, as neighbours become known better. How much each of this counts is
    learned on public texts that the attacker releases with the same program, and that were not counted. Nothing of the
    attacked texts but their release is looked at.

    Where a mechanism mixes neighbours, a linear estimate that is fitted to such releases takes the place of the law.

    A guess is right if it is the private word itself: the row that stands for an unknown word is no hit. Of several
    releases of a text (`textveil attack --releases`) the attacker sums up what they say.

    What was counted in public texts is kept as long as the attacker: of many releases only the first ones wait for it.
    With one seed, so is what can be guessed without what was drawn, which many budgets have in common.

    Args:
        public: texts of the same kind as the releases, of which none is among the private ones.
        k: the number of guesses that count.
        candidates: how many words of each position are weighed.
        simulated: the number of words of public texts that the mechanism is tried on.
        passes: how often candidates are weighed by what their neighbours are taken to be.
        language: which language model is asked besides, in the end, what fits between the words that are guessed:
            `none`; `trigram`, the model of general English that comes with PocketSphinx; `masked`, a masked language
            model; or `causal`, a generative one, which reads what stands before. These two take most of the time.
        beam: how many texts a beam search keeps at each word, which in the end looks for whole texts that are likely
            under trigrams of the public texts. 0 is no search, 64 finds most, and 576 keeps all.
        model: a folder or hub id of the masked or causal language model; None is the bundled masked one.
        draws: noisy vectors per distinct released row, where the law has to be estimated; with more it finds
            more.
    """

    name: ClassVar[str] = "learned"
    averages: ClassVar[Literal[True]] = True
    on_request: ClassVar[Literal[True]] = True
    public: Annotated[tuple[str, ...], BeforeValidator(_check_public_texts)] = Field(
        default=(), repr=False
    )
    k: Annotated[int, Field(ge=2, le=1000, strict=True)] = 10
    candidates: Annotated[int, Field(ge=50, le=1000, strict=True)] = 100
    simulated: Annotated[int, Field(ge=100, strict=True)] = 20_000
    passes: Annotated[int, Field(ge=1, le=10, strict=True)] = 3
    language: Language = "none"
    beam: Annotated[int, Field(ge=0, le=LIKELIEST**2, strict=True)] = 0
    model: str | None = None
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DRAWS

    def __post_init__(self) -> None:
        if self.language == "causal" and self.model is None:
            raise ConfigError(
                "language=causal needs model, the folder or hub id of a causal language model: set it, too"
            )

    def refusal(self, view: View) -> str:
        """Returns why no guess can be made, or "".

        That is where nothing is protected, there are no public texts, or the law of single words is
        not known.
        """
        if not self.public:
            return "it learns from public texts of the same kind: name a file of them with --public"
        # of phrases of one text, none would be left to try the mechanism on
        if len(self._distinct) < FEWEST:
            return f"it needs {FEWEST} different public texts at least, and better thousands"
        if not len(view.drawn):
            return NOTHING_PROTECTED
        if view.words.unit == "wordpiece":
            return "it guesses whole words, not pieces"
        if mixes(view) and view.others:
            return "words that were mixed are guessed from one release"
        if mixes(view) and view.table.root.book is not None:
            return "words that were mixed as codes are not guessed"
        return view.untold or ("" if mixes(view) else channel.refusal(view))

    def run(self, case: Case, *, rng: Randomness, report: Report = quiet) -> Iterator[Outcome]:
        """Yields top-1, top-k, mean reciprocal rank, and top-1 of rare words.

        Of several releases after some of them, and after all where memory gave the first of them
        every time.

        Raises:
            ConfigError: a private text is among the public ones.
        """
        self.check(case)
        channel.check(case)
        releases = len(case.view.others) + 1
        seen = steps(releases)
        blind, *found = self.guess(case.view, (0, *seen), rng=rng, report=report)
        if releases == 1:
            yield from self._outcomes(case, found[0], blind, {})
            return
        for number, guesses in zip(seen, found, strict=True):
            yield from self._outcomes(case, guesses, blind, {"releases": number, "memory": ANEW})
        yield from self._outcomes(case, found[0], blind, {"releases": releases, "memory": ONCE})

    def check(self, case: Case) -> None:
        """Refuses public texts that contain a text under attack.

        No guess would be worth anything.

        Raises:
            ConfigError: a private text is among the public ones.
        """
        shared = len(set(self.public) & set(case.truth.texts))
        if shared:
            raise ConfigError(
                f"public texts must not be among the attacked ones, and {shared:,} are: leave them out of --public"
            )

    def guess(
        self, view: View, seen: Sequence[int], *, rng: Randomness, report: Report = quiet
    ) -> list[Guesses]:
        """Guesses the private words after each given number of releases.

        Args:
            view: the releases.
            seen: numbers of releases; 0 is a guess from context alone.
            rng: for the choice of texts to try, their releases, and laws that have to be estimated.
            report: callback for progress.

        Raises:
            MissingExtra: `language` is `trigram`, and PocketSphinx is not installed.
            ModelError: there is no such language model.
        """
        assert view.program is not None, "refused otherwise"
        if self.language == "trigram":
            trigram.load()  # before the work, not after it
        if kind := KINDS.get(self.language):
            language_model(view.origin, self.model, kind)
        public = self._distinct
        drawn = len(view.drawn) / max(1, len(view.items))
        counted, tried = split(public, int(self.simulated / drawn), rng)
        program = view.program.with_parts(randomness=rng.part(SIMULATION))
        report("simulated releases", 0, len(tried))
        simulated = Case.of(program, tried, releases=len(view.others) + 1, names=True)
        protected = _estimate_protected_share(simulated)
        part, everything = (
            self._learn_knowledge(view, texts, protected) for texts in (counted, public)
        )
        truth = part.ids(view.table, simulated.secret_words)
        mixed = mixes(view)
        if mixed and not len(simulated.view.drawn):
            raise ConfigError(
                "the public texts must hold words that the mechanism draws, and hold none"
            )
        merged = not mixed and _tells(simulated.view, truth)
        first = _estimate(simulated, part) if mixed else None

        def told(releases: int) -> Guesses:
            law = first if releases else None
            estimates: list[WordEstimate] | None = None if law is None else []
            trial = self._find(simulated.view, part, releases, merged, law, rng, report)
            looks = self._build_looks(
                simulated.view, part, estimates, simulated.truth.coded, report
            )
            weights = _fit(trial, truth, looks)
            own = self._find(view, everything, releases, merged, law, rng, report)
            looks = self._build_looks(view, everything, estimates, None, report)
            return _build_guesses(own, _compute_probabilities(own, weights, looks), everything)

        blind = (
            "blind",
            _learnable(view),
            _digest(tried),
            _digest(counted),
            _mask(simulated.view),
            _mask(view),
        )
        return [
            told(releases) if releases else self._memoize(blind, partial(told, 0))
            for releases in seen
        ]

    @cached_property
    def _distinct(self) -> list[str]:
        """The public texts without repetitions."""
        return distinct(self.public)

    @cached_property
    def _memo(self) -> dict[object, Any]:
        return {}

    def _memoize(self, key: object, make: Callable[[], _Made]) -> _Made:
        """Returns a memoized result; only the last `KEPT` used keys are kept."""
        result: _Made = self._memo.pop(key) if key in self._memo else make()
        self._memo[key] = result
        for old in list(self._memo)[:-KEPT]:
            del self._memo[old]
        return result

    def _learn_knowledge(self, view: View, texts: Sequence[str], protected: float) -> Knowledge:
        """Returns the statistics of public texts, counted once per table.

        All books of a table share them.
        """
        key = _learnable(view), _digest(texts), protected
        return self._memoize(key, partial(learn, view.origin, view.words, texts, protected))

    def _build_looks(
        self,
        view: View,
        known: Knowledge,
        estimates: list[WordEstimate] | None,
        truth: Ids | None,
        report: Report,
    ) -> Sequence[Look]:
        """Returns the feature functions of each pass.

        Args:
            view: the releases.
            known: what public text teaches.
            estimates: where words were mixed, one for each pass: made where `truth` is known, and
                else used.
            truth: int64 [n], the rows of the words that are guessed.
            report: callback for progress.
        """
        around = partial(_add_context, report=report)
        looks: list[Look] = [around] * self.passes
        if estimates is not None:
            looks = [
                partial(
                    _add_unmixing,
                    view=view,
                    known=known,
                    estimates=estimates,
                    step=step,
                    truth=truth,
                    report=report,
                )
                for step in range(self.passes)
            ]
        models: list[Look] = []
        if kind := KINDS.get(self.language):
            language = language_model(view.origin, self.model, kind)
            models.append(
                partial(_score_by_network, view=view, known=known, language=language, report=report)
            )
        elif self.language == "trigram":
            models.append(partial(_score_by_trigrams, view=view, known=known, report=report))
        if self.beam:
            search = Beam(trigrams=Trigrams.count(known), width=self.beam)
            models.append(
                partial(_score_by_beam, beam=search, positions=view.layout.positions, report=report)
            )
        return (
            [*looks, partial(_add_language_models, models=models, report=report)]
            if models
            else looks
        )

    def _find(
        self,
        view: View,
        known: Knowledge,
        releases: int,
        merged: bool,
        estimate: WordEstimate | None,
        rng: Randomness,
        report: Report,
    ) -> Shortlist:
        return candidates.find(
            view,
            known,
            alike(view) if merged and releases else np.arange(len(view.drawn)),
            k=max(self.candidates, self.k),
            releases=releases,
            draws=self.draws,
            estimate=estimate,
            rng=rng,
            report=report,
        )

    def _outcomes(
        self, case: Case, found: Guesses, blind: Guesses, setting: Setting
    ) -> Iterator[Outcome]:
        view, words = case.view, case.secret_words
        where = np.arange(len(words))
        rank, before = (_rank_secrets(each, view, words) for each in (found, blind))
        how = LINEAR if mixes(view) else estimated(view, self.draws)
        note = LOWER if found.evidence == "exact" else f"{LOWER}; {how}"
        k = min(self.k, found.words.shape[1])
        rare = ranks(words) > RARE
        every = np.ones(len(words), bool)
        measures: list[tuple[str, Callable[[Values], NDArray[np.generic]], Flags]] = [
            ("top-1", lambda rank: rank <= 1, every),
            (f"top-{k}", lambda rank: rank <= k, every),
            ("mean reciprocal rank", lambda rank: 1 / rank, every),
            (f"top-1 of words below rank {RARE:,}", lambda rank: rank <= 1, rare),
        ]
        for metric, measure, kept in measures:
            if kept.any():
                yield Outcome(
                    source=self.name,
                    metric=metric,
                    setting=setting,
                    where=where[kept],
                    values=measure(rank[kept]).astype(np.float64),
                    baseline=float(measure(before[kept]).mean()),
                    note=view.of_drawn(note),
                    headline=metric != "mean reciprocal rank",
                )


def _rank_secrets(found: Guesses, view: View, words: Sequence[str]) -> Values:
    """Returns the rank of each private word among the guesses: float64 [n].

    Infinite for a word that is no candidate.
    """
    here = found.words == found.known.ids(view.table, words)[:, None]
    return np.where(here.any(axis=1), here.argmax(axis=1) + 1.0, np.inf)


def _estimate_protected_share(simulated: Case) -> float:
    """Returns the simulated share of public-list words that detectors protect.

    They are protected as parts of names.
    """
    if simulated.view.program is None or simulated.view.program.grouping is None:
        return 0.0
    private = sum(map(is_public, simulated.secret_words))
    return (private + SEEN) / (sum(map(is_public, simulated.truth.words)) + 1)


def _tells(view: View, truth: Ids) -> bool:
    """Says whether equal releases in a text mean equal words.

    It is judged from the simulation.
    """
    of = alike(view)
    _, first = np.unique(of, return_index=True)
    further = np.ones(len(of), bool)
    further[first] = False
    return bool(further.any() and (truth[further] == truth[first[of[further]]]).mean() >= SURE)


# ---- what is kept --------------------------------------------------------------------------------


def _learnable(view: View) -> tuple[str, WordsOptions]:
    """Returns the memo key of public statistics, apart from the texts."""
    return view.origin.digest, view.words


def _digest(texts: Sequence[str]) -> bytes:
    return blake2b(repr(texts).encode()).digest()


def _mask(view: View) -> bytes:
    """Returns a digest of the visible release without the drawn words."""
    items = list(view.items)
    for item in view.item.tolist():
        items[item] = ""
    layout, hidden = view.layout, view.drawn == PLACEHOLDER
    found = blake2b(repr((items, view.groups)).encode())
    for array in (
        layout.roles,
        layout.documents,
        layout.unit_of,
        view.passed >= 0,
        view.group,
        view.row_group,
        hidden,
    ):
        found.update(repr(None if array is None else (array.shape, array.tobytes())).encode())
    return found.digest()


# ---- weights -------------------------------------------------------------------------------------


def _fit(found: Shortlist, truth: Ids, looks: Sequence[Look]) -> list[Values]:
    """Fits feature weights of the first guess and of every pass.

    They make the right words the likeliest.
    """
    _, first = np.unique(found.around.of, return_index=True)
    here = found.words == truth[first][:, None]
    known = np.flatnonzero(here.any(axis=1))
    right = here[known].argmax(axis=1)
    features, weights = found.features, [logistic(found.features[known], right)]
    for look in looks:
        features = look(found, shares(features, weights[-1]))
        weights.append(logistic(features[known], right))
    return weights


def _compute_probabilities(
    found: Shortlist, weights: Sequence[Values], looks: Sequence[Look]
) -> Values:
    """Computes the probability of every candidate [m, K] over all passes."""
    first, *further = weights
    probability = shares(found.features, first)
    for look, each in zip(looks, further, strict=True):
        probability = shares(look(found, probability), each)
    return probability


def _add_context(found: Shortlist, probability: Values, *, report: Report) -> Floats:
    """Adds the context features under current probabilities to the others."""
    around = found.around.features(found.words, probability, found.passing, report)
    return np.concatenate([found.features, around], axis=2)


def _add_language_models(
    found: Shortlist, probability: Values, *, models: Sequence[Look], report: Report
) -> Floats:
    """Adds the features of language models to all others."""
    said = [model(found, probability) for model in models]
    return np.concatenate([_add_context(found, probability, report=report), *said], axis=2)


def _estimate(simulated: Case, known: Knowledge) -> WordEstimate:
    """Fits the first estimate of mixed words, without beliefs about neighbours."""
    return WordEstimate.fit(
        MixedEvidence.of(simulated.view),
        simulated.truth.coded,
        _slice_table_prior(simulated.view, known),
    )


def _slice_table_prior(view: View, known: Knowledge) -> Values:
    """Returns the log prior of each row of the table: float64 [V]."""
    return known.log_prior[: len(view.origin)]


def _add_unmixing(
    found: Shortlist,
    probability: Values,
    *,
    view: View,
    known: Knowledge,
    estimates: list[WordEstimate],
    step: int,
    truth: Ids | None,
    report: Report,
) -> Floats:
    """Adds to all features the closeness to the estimated vector.

    The estimate assumes the current beliefs about the words around.

    An estimate is fitted where the `truth` is known, and kept for the releases that are attacked.
    """
    rows, of = known.row[found.words], found.around.of
    assert isinstance(view.mechanism, Windowed), "only such mechanisms mix words"
    table = view.mechanism.view(view.table)
    evidence = MixedEvidence.of(view, expected(table, rows, probability)[of])
    if truth is not None:
        estimates[step:] = [WordEstimate.fit(evidence, truth, _slice_table_prior(view, known))]
    estimate = estimates[step]
    said = estimate.scores(table, estimate.vectors(evidence), rows[of])
    said -= said.mean(axis=1, keepdims=True)
    return np.concatenate(
        [_add_context(found, probability, report=report), said[:, :, None]], axis=2
    )


def _score_by_network(
    found: Shortlist,
    probability: Values,
    *,
    view: View,
    known: Knowledge,
    language: LanguageModel,
    report: Report,
) -> Floats:
    """Returns a language model's log scores of candidates: float32 [m, K, 1].

    The model reads between, or after, the likeliest words.

    Of a word outside the table it says nothing; it then has the mean of the other candidates.
    """
    words, first = _fill_likeliest(found, probability, view, known)
    limited = replace(language, batch=max(1, min(language.batch, CELLS // len(view.origin))))
    said = np.empty((*found.words.shape, 1), np.float32)
    done = 0
    for which, logits in limited.batches(replace(seen(view), words=words), view.item[first]):
        some, own = found.words[which], known.own[found.words[which]]
        told = np.where(own, np.take_along_axis(logits, np.where(own, some, 0), axis=1), 0)
        mean = told.sum(axis=1, keepdims=True) / np.maximum(1, own.sum(axis=1, keepdims=True))
        said[which, :, 0] = np.where(own, told - mean, 0)
        done += len(which)
        report("language model", done, len(first))
    return said


def _score_by_trigrams(
    found: Shortlist, probability: Values, *, view: View, known: Knowledge, report: Report
) -> Floats:
    """Returns a trigram model's log scores of candidates: float32 [m, K, F].

    Only the likelier candidates are rated, between the likeliest words.
    """
    words, first = _fill_likeliest(found, probability, view, known)
    best = highest(probability, min(LIKELIER, probability.shape[1]))
    choices = np.take_along_axis(found.words, best, axis=1).tolist()
    items, order = np.unique(view.item[first], return_index=True)
    report("language model", 0, len(first))
    spelled = [[known.words[word] for word in choices[cell]] for cell in order.tolist()]
    said = np.zeros((*probability.shape, len(trigram.FEATURES)), np.float32)
    said[order[:, None], best[order]] = trigram.expected(words, view.documents, items, spelled)
    return said


def _score_by_beam(
    found: Shortlist, probability: Values, *, beam: Beam, positions: Ids, report: Report
) -> Floats:
    """Returns log probabilities of candidates from the beam search.

    float32 [m, K, 1].
    """
    report("beam search", 0, len(found.words))
    return beam.scores(found.around, found.words, probability, positions)[:, :, None].astype(
        np.float32
    )


def _fill_likeliest(
    found: Shortlist, probability: Values, view: View, known: Knowledge
) -> tuple[list[str], Ids]:
    """Returns all items with drawn words replaced by their likeliest guess.

    And the first position of each cell.
    """
    best = found.words[np.arange(len(probability)), probability.argmax(axis=1)]
    words = list(view.items)
    for item, word in zip(view.item.tolist(), best[found.around.of].tolist(), strict=True):
        words[item] = known.words[word]
    return words, np.unique(found.around.of, return_index=True)[1]


def _build_guesses(found: Shortlist, probability: Values, known: Knowledge) -> Guesses:
    order = np.argsort(-probability, axis=1, kind="stable")
    of = found.around.of
    words = np.take_along_axis(found.words, order, axis=1)[of]
    ordered = np.take_along_axis(probability, order, axis=1)[of]
    return Guesses(words=words, probability=ordered, known=known, evidence=found.evidence)
