"""An attacker trained on public texts, on which the mechanism was tried.

In: a case, public texts. Out: how often the private word is the best guess, among the first, and at
which rank.
Not here: what public texts teach (`knowledge`), which words come into question (`candidates`), and
the context of a word (`context_features`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from textveil.config import WordsOptions, make_options
from textveil.errors import ConfigError
from textveil.evaluate.attack import candidates, channel, trigram
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.attack.bayes import (
    MEMORY_ANEW,
    MEMORY_ONCE,
    NOTHING_PROTECTED,
    list_release_counts,
)
from textveil.evaluate.attack.beam import BEAM_CANDIDATES, Beam, TrigramRatios
from textveil.evaluate.attack.candidates import Shortlist, number_equal_draws
from textveil.evaluate.attack.channel import describe_estimate
from textveil.evaluate.attack.knowledge import Knowledge, learn
from textveil.evaluate.attack.linear_estimate import (
    MixedEvidence,
    WordEstimate,
    compute_mean_vectors,
)
from textveil.evaluate.attack.posterior import DEFAULT_DRAWS, is_mixing
from textveil.evaluate.attack.prior import MAX_PRIOR_LOGITS, get_released_words, load_language_model
from textveil.evaluate.attack.public_texts import drop_contained_texts, split_texts
from textveil.evaluate.attack.ranking_model import compute_probabilities, fit_logistic
from textveil.evaluate.log_math import find_highest
from textveil.mechanism import PLACEHOLDER, Windowed
from textveil.models import ContextKind, LanguageModel
from textveil.randomness import Flags, Floats, Ids, Randomness, Values
from textveil.text import check_texts, is_public, lookup_ranks

MIN_PUBLIC_TEXTS = 10
"""The least number of public texts to learn from."""

RARE_RANK = 5000
"""The frequency rank from which a word counts as rare.

Of the general word list.
"""

MIN_AGREEMENT = 0.9
"""The agreement from which equal releases count as one word.

Measured in the simulation, as a share of the positions of one text with one release.
"""

TRIGRAM_CANDIDATES = 32
"""The likeliest candidates of each word that a trigram model rates."""

MAX_MEMO_ENTRIES = 8
"""Memo entries that are kept for the next releases.

Counts, and guesses from context alone.
"""

PSEUDO_COUNT = 0.5
"""The pseudo-count of protected words of the public list.

Events that were never seen may happen (Jeffreys' prior).
"""

SIMULATION_STREAM = 2**121
"""The random stream of the simulation, apart from all others."""

LOWER_BOUND_NOTE = (
    "a lower bound: other attackers may learn more, and words that neither the table nor the "
    "public texts have are never named"
)

LINEAR_NOTE = (
    "a lower bound: words that were mixed are estimated by a weighted sum of the words around them"
)

_Result = TypeVar("_Result")

Language = Literal["none", "masked", "causal", "trigram"]

NETWORK_KINDS: Mapping[Language, ContextKind] = {"masked": "masked-lm", "causal": "causal-lm"}
"""The kinds of language models that are networks."""

Setting = Mapping[str, str | int | float]

FeatureFunction = Callable[[Shortlist, Values], Floats]
"""Computes features [m, K, F] of candidates from current probabilities [m, K]."""

TextModel = Callable[[Shortlist, View, Knowledge], Floats]
"""Scores candidates [m, K, F] by the texts around them."""


def _check_public_texts(public: object) -> object:
    """Checks that public texts are texts, and returns them.

    Its message does not repeat them.
    """
    check_texts(public, noun="public text")  # type: ignore[arg-type]
    return public


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """The attacker's guesses of the n protected words.

    Attributes:
        words: int64 [n, K], numbers of words of `knowledge`, best first.
        probability: float64 [n, K], how likely each is, of the K candidates.
        knowledge: the words.
        evidence: whether the law was written down or estimated.
    """

    words: Ids = field(repr=False)
    probability: Values = field(repr=False)
    knowledge: Knowledge = field(repr=False)
    evidence: channel.Evidence


@make_options()
class Learned:
    """Guesses words as `bayes` does, and then looks at what stands around, as public texts of the same kind teach it.

    The attacker knows the mechanism with its options and law, and has public texts of the same kind
    as the releases. These texts give the prior of each word, the words outside the table that share
    a row, and the words that occur next to each other and in one text. The likeliest words of each
    position by prior and law are then weighed by their neighbours on both sides, those that passed
    and those that are guessed themselves, by the topic of the text, and by whether they occur
    again. This is repeated, because each pass knows the neighbours better. The weight of each clue
    is learned on public texts that the attacker releases with the same program, and that were not
    counted. Of the attacked texts, the attacker sees the releases alone.

    Where a mechanism mixes neighbours, a linear estimate that is fitted to such releases takes the
    place of the law.

    A guess is right if it is the private word itself: the row that stands for an unknown word is no
    hit. Of several releases of a text (`textveil attack --releases`) the attacker combines the
    evidence.

    What was counted in public texts is kept as long as the attacker: of many releases only the
    first ones wait for it. With one seed, so is what can be guessed without what was drawn, which
    many budgets have in common.

    Args:
        public: texts of the same kind as the releases, of which none is among the private ones.
        k: the number of guesses that count.
        candidates: how many words of each position are weighed.
        simulated: the number of words of public texts that the mechanism is tried on.
        passes: how often candidates are weighed by what their neighbours are taken to be.
        language: which language model is asked besides, in the end, what fits between the words
            that are guessed: `none`; `trigram`, the model of general English that comes with
            PocketSphinx; `masked`, a masked language model; or `causal`, a generative one, which
            reads what stands before. These two take most of the time.
        beam: how many texts a beam search keeps at each word, which in the end looks for whole
            texts that are likely under trigrams of the public texts. 0 is no search, 64 finds most,
            and 576 keeps all.
        model: a folder or hub id of the masked or causal language model; None is the bundled masked
            one.
        draws: noisy vectors per distinct released row, where the law has to be estimated; with more
            it finds more.
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
    beam: Annotated[int, Field(ge=0, le=BEAM_CANDIDATES**2, strict=True)] = 0
    model: str | None = None
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DEFAULT_DRAWS

    def __post_init__(self) -> None:
        if self.language == "causal" and self.model is None:
            raise ConfigError(
                "language=causal needs model, the folder or hub id of a causal language model: "
                "set it, too"
            )

    def refusal(self, view: View) -> str:
        """Returns why no guess can be made, or "".

        That is where nothing is protected, there are no public texts, or the law of single words is
        not known.
        """
        if not self.public:
            return (
                "it learns from public texts of the same kind: give a file of such texts with "
                "--public"
            )
        # of phrases of one text, none would be left to try the mechanism on
        if len(self._distinct_texts) < MIN_PUBLIC_TEXTS:
            return (
                f"it needs {MIN_PUBLIC_TEXTS} different public texts at least, and works "
                "better with thousands"
            )
        if not len(view.output_rows):
            return NOTHING_PROTECTED
        if view.words.unit == "wordpiece":
            return "it guesses whole words, not pieces"
        if is_mixing(view) and view.other_releases:
            return "words that were mixed are guessed from one release"
        if is_mixing(view) and view.table.root.book is not None:
            return "words that were mixed as codes are not guessed"
        return view.replay_refusal or ("" if is_mixing(view) else channel.explain_refusal(view))

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields top-1, top-k, mean reciprocal rank, and top-1 of rare words.

        Of several releases after some of them, and after all where memory gave the first of them
        every time.

        Raises:
            ConfigError: a private text is among the public ones.
        """
        self.check(case)
        channel.check_law(case)
        releases = len(case.view.other_releases) + 1
        release_counts = list_release_counts(releases)
        blind, *all_guesses = self.guess(case.view, (0, *release_counts), rng=rng, report=report)
        if releases == 1:
            yield from self._yield_outcomes(case, all_guesses[0], blind, {})
            return
        for number, guesses in zip(release_counts, all_guesses, strict=True):
            yield from self._yield_outcomes(
                case, guesses, blind, {"releases": number, "memory": MEMORY_ANEW}
            )
        yield from self._yield_outcomes(
            case, all_guesses[0], blind, {"releases": releases, "memory": MEMORY_ONCE}
        )

    def check(self, case: Case) -> None:
        """Refuses public texts that contain a text under attack.

        No guess would be worth anything.

        Raises:
            ConfigError: a private text is among the public ones.
        """
        shared = len(set(self.public) & set(case.truth.texts))
        if shared:
            raise ConfigError(
                f"public texts must not be among the attacked ones, and {shared:,} are: leave "
                "them out of --public"
            )

    def guess(
        self,
        view: View,
        release_counts: Sequence[int],
        *,
        rng: Randomness,
        report: ProgressCallback = ignore_progress,
    ) -> list[Guesses]:
        """Guesses the private words after each given number of releases.

        Args:
            view: the releases.
            release_counts: numbers of releases; 0 is a guess from context alone.
            rng: for the choice of texts to try, their releases, and laws that have to be estimated.
            report: callback for progress.

        Raises:
            MissingExtra: `language` is `trigram`, and PocketSphinx is not installed.
            ModelError: there is no such language model.
        """
        assert view.program is not None, "refused otherwise"
        if self.language == "trigram":
            trigram.load()  # before the work, not after it
        if kind := NETWORK_KINDS.get(self.language):
            load_language_model(view.origin, self.model, kind)
        public = self._distinct_texts
        output_share = len(view.output_rows) / max(1, len(view.items))
        count_texts, trial_texts = split_texts(public, int(self.simulated / output_share), rng)
        program = view.program.with_parts(randomness=rng.derive_part(SIMULATION_STREAM))
        report("simulated releases", 0, len(trial_texts))
        simulated = Case.create(
            program, trial_texts, releases=len(view.other_releases) + 1, names=True
        )
        protected_share = _estimate_protected_share(simulated)
        # Weights are fitted with counts that leave out the tried texts, or neighbours would seem to
        # tell more than they do. The attack itself uses all texts.
        trial_knowledge, full_knowledge = (
            self._learn_knowledge(view, texts, protected_share) for texts in (count_texts, public)
        )
        truth = trial_knowledge.find_ids(view.table, simulated.secret_words)
        text_model = self._train_text_model(view, count_texts, trial_knowledge, rng, report)
        is_mixed = is_mixing(view)
        if is_mixed and not len(simulated.view.output_rows):
            raise ConfigError(
                "the public texts must contain words that the mechanism draws, and contain none"
            )
        is_merged = not is_mixed and _has_equal_words(simulated.view, truth)
        first_estimate = _fit_first_estimate(simulated, trial_knowledge) if is_mixed else None

        def guess_after(releases: int) -> Guesses:
            law = first_estimate if releases else None
            model = text_model if releases else None
            estimates: list[WordEstimate] | None = None if law is None else []
            trial = self._find_shortlist(
                simulated.view, trial_knowledge, releases, is_merged, law, rng, report
            )
            feature_functions = self._build_feature_functions(
                simulated.view,
                trial_knowledge,
                estimates,
                simulated.truth.table_rows,
                model,
                report,
            )
            weights = _fit_weights(trial, truth, feature_functions)
            shortlist = self._find_shortlist(
                view, full_knowledge, releases, is_merged, law, rng, report
            )
            feature_functions = self._build_feature_functions(
                view, full_knowledge, estimates, None, model, report
            )
            return _build_guesses(
                shortlist,
                _compute_probabilities(shortlist, weights, feature_functions),
                full_knowledge,
            )

        blind_key = (
            "blind",
            _build_knowledge_key(view),
            _hash_texts(trial_texts),
            _hash_texts(count_texts),
            _hash_visible_release(simulated.view),
            _hash_visible_release(view),
        )
        return [
            guess_after(releases) if releases else self._memoize(blind_key, partial(guess_after, 0))
            for releases in release_counts
        ]

    @cached_property
    def _distinct_texts(self) -> list[str]:
        """The public texts without repetitions."""
        return drop_contained_texts(self.public)

    @cached_property
    def _memo(self) -> dict[object, Any]:
        return {}

    def _memoize(self, key: object, make: Callable[[], _Result]) -> _Result:
        """Returns a memoized result; only the last `MAX_MEMO_ENTRIES` used keys are kept."""
        # Taken out and put back, so that the order of keys is that of their last use.
        result: _Result = self._memo.pop(key) if key in self._memo else make()
        self._memo[key] = result
        for old in list(self._memo)[:-MAX_MEMO_ENTRIES]:
            del self._memo[old]
        return result

    def _learn_knowledge(self, view: View, texts: Sequence[str], protected: float) -> Knowledge:
        """Returns the statistics of public texts, counted once per table.

        All books of a table share them.
        """
        key = _build_knowledge_key(view), _hash_texts(texts), protected
        return self._memoize(key, partial(learn, view.origin, view.words, texts, protected))

    def _train_text_model(
        self,
        view: View,
        texts: Sequence[str],
        knowledge: Knowledge,
        rng: Randomness,
        report: ProgressCallback,
    ) -> TextModel | None:
        """Trains a model of whole releases on the counted texts, for attackers who have one."""
        return None

    def _build_feature_functions(
        self,
        view: View,
        knowledge: Knowledge,
        estimates: list[WordEstimate] | None,
        truth: Ids | None,
        text_model: TextModel | None,
        report: ProgressCallback,
    ) -> Sequence[FeatureFunction]:
        """Returns the feature functions of each pass.

        Args:
            view: the releases.
            knowledge: what public text teaches.
            estimates: where words were mixed, one for each pass: made where `truth` is known, and
                else used.
            truth: int64 [n], the rows of the words that are guessed.
            text_model: asked in the end, with language models; None for none.
            report: callback for progress.
        """
        add_context = partial(_add_context, report=report)
        feature_functions: list[FeatureFunction] = [add_context] * self.passes
        if estimates is not None:
            feature_functions = [
                partial(
                    _add_unmixing,
                    view=view,
                    knowledge=knowledge,
                    estimates=estimates,
                    step=step,
                    truth=truth,
                    report=report,
                )
                for step in range(self.passes)
            ]
        model_functions: list[FeatureFunction] = []
        if text_model is not None:
            model_functions.append(
                partial(_score_by_text_model, view=view, knowledge=knowledge, model=text_model)
            )
        if kind := NETWORK_KINDS.get(self.language):
            language = load_language_model(view.origin, self.model, kind)
            model_functions.append(
                partial(
                    _score_by_network,
                    view=view,
                    knowledge=knowledge,
                    language=language,
                    report=report,
                )
            )
        elif self.language == "trigram":
            model_functions.append(
                partial(_score_by_trigrams, view=view, knowledge=knowledge, report=report)
            )
        if self.beam:
            search = Beam(trigrams=TrigramRatios.count(knowledge), width=self.beam)
            model_functions.append(
                partial(_score_by_beam, beam=search, positions=view.layout.positions, report=report)
            )
        return (
            [
                *feature_functions,
                partial(_add_language_models, models=model_functions, report=report),
            ]
            if model_functions
            else feature_functions
        )

    def _find_shortlist(
        self,
        view: View,
        knowledge: Knowledge,
        releases: int,
        is_merged: bool,
        estimate: WordEstimate | None,
        rng: Randomness,
        report: ProgressCallback,
    ) -> Shortlist:
        return candidates.find_candidates(
            view,
            knowledge,
            number_equal_draws(view)
            if is_merged and releases
            else np.arange(len(view.output_rows)),
            k=max(self.candidates, self.k),
            releases=releases,
            draws=self.draws,
            estimate=estimate,
            rng=rng,
            report=report,
        )

    def _yield_outcomes(
        self, case: Case, guesses: Guesses, blind: Guesses, setting: Setting
    ) -> Iterator[Outcome]:
        view, words = case.view, case.secret_words
        where = np.arange(len(words))
        rank, blind_rank = (_rank_secrets(attempt, view, words) for attempt in (guesses, blind))
        method_note = LINEAR_NOTE if is_mixing(view) else describe_estimate(view, self.draws)
        note = (
            LOWER_BOUND_NOTE
            if guesses.evidence == "exact"
            else f"{LOWER_BOUND_NOTE}; {method_note}"
        )
        k = min(self.k, guesses.words.shape[1])
        is_rare = lookup_ranks(words) > RARE_RANK
        all_words = np.ones(len(words), bool)
        measures: list[tuple[str, Callable[[Values], NDArray[np.generic]], Flags]] = [
            ("top-1", lambda rank: rank <= 1, all_words),
            (f"top-{k}", lambda rank: rank <= k, all_words),
            ("mean reciprocal rank", lambda rank: 1 / rank, all_words),
            (f"top-1 of words below rank {RARE_RANK:,}", lambda rank: rank <= 1, is_rare),
        ]
        for metric, measure, mask in measures:
            if mask.any():
                yield Outcome(
                    source=self.name,
                    metric=metric,
                    setting=setting,
                    where=where[mask],
                    values=measure(rank[mask]).astype(np.float64),
                    baseline=float(measure(blind_rank[mask]).mean()),
                    note=view.note_reranking(note),
                    headline=metric != "mean reciprocal rank",
                )


def _rank_secrets(guesses: Guesses, view: View, words: Sequence[str]) -> Values:
    """Returns the rank of each private word among the guesses: float64 [n].

    Infinite for a word that is no candidate.
    """
    is_hit = guesses.words == guesses.knowledge.find_ids(view.table, words)[:, None]
    return np.where(is_hit.any(axis=1), is_hit.argmax(axis=1) + 1.0, np.inf)


def _estimate_protected_share(simulated: Case) -> float:
    """Returns the simulated share of public-list words that detectors protect.

    They are protected as parts of names.
    """
    if simulated.view.program is None or simulated.view.program.grouping is None:
        return 0.0
    private = sum(map(is_public, simulated.secret_words))
    return (private + PSEUDO_COUNT) / (sum(map(is_public, simulated.truth.words)) + 1)


def _has_equal_words(view: View, truth: Ids) -> bool:
    """Says whether equal releases in a text mean equal words.

    It is judged from the simulation.
    """
    cell_of = number_equal_draws(view)
    _, first = np.unique(cell_of, return_index=True)
    is_repeat = np.ones(len(cell_of), bool)
    is_repeat[first] = False
    return bool(
        is_repeat.any()
        and (truth[is_repeat] == truth[first[cell_of[is_repeat]]]).mean() >= MIN_AGREEMENT
    )


# ---- what is kept --------------------------------------------------------------------------------


def _build_knowledge_key(view: View) -> tuple[str, WordsOptions]:
    """Returns the memo key of public statistics, apart from the texts."""
    return view.origin.digest, view.words


def _hash_texts(texts: Sequence[str]) -> bytes:
    return blake2b(repr(texts).encode()).digest()


def _hash_visible_release(view: View) -> bytes:
    """Returns a digest of the visible release without the drawn words."""
    items = list(view.items)
    for item in view.item.tolist():
        items[item] = ""
    layout, hidden = view.layout, view.output_rows == PLACEHOLDER
    digest = blake2b(repr((items, view.groups)).encode())
    for array in (
        layout.roles,
        layout.documents,
        layout.unit_of,
        view.pass_rows >= 0,
        view.group,
        view.row_group,
        hidden,
    ):
        digest.update(repr(None if array is None else (array.shape, array.tobytes())).encode())
    return digest.digest()


# ---- weights -------------------------------------------------------------------------------------


def _fit_weights(
    shortlist: Shortlist, truth: Ids, feature_functions: Sequence[FeatureFunction]
) -> list[Values]:
    """Fits feature weights of the first guess and of every pass.

    They make the right words the likeliest.
    """
    _, first = np.unique(shortlist.word_context.cell_of, return_index=True)
    is_right = shortlist.words == truth[first][:, None]
    hit_cells = np.flatnonzero(is_right.any(axis=1))
    right = is_right[hit_cells].argmax(axis=1)
    features, weights = shortlist.features, [fit_logistic(shortlist.features[hit_cells], right)]
    for compute_features in feature_functions:
        features = compute_features(shortlist, compute_probabilities(features, weights[-1]))
        weights.append(fit_logistic(features[hit_cells], right))
    return weights


def _compute_probabilities(
    shortlist: Shortlist, weights: Sequence[Values], feature_functions: Sequence[FeatureFunction]
) -> Values:
    """Computes the probability of every candidate [m, K] over all passes."""
    first, *later_weights = weights
    probability = compute_probabilities(shortlist.features, first)
    for compute_features, pass_weights in zip(feature_functions, later_weights, strict=True):
        probability = compute_probabilities(compute_features(shortlist, probability), pass_weights)
    return probability


def _add_context(shortlist: Shortlist, probability: Values, *, report: ProgressCallback) -> Floats:
    """Adds the context features under current probabilities to the others."""
    context_features = shortlist.word_context.compute_features(
        shortlist.words, probability, shortlist.neighbour_ratios, report
    )
    return np.concatenate([shortlist.features, context_features], axis=2)


def _add_language_models(
    shortlist: Shortlist,
    probability: Values,
    *,
    models: Sequence[FeatureFunction],
    report: ProgressCallback,
) -> Floats:
    """Adds the features of language models to all others."""
    scores = [model(shortlist, probability) for model in models]
    return np.concatenate([_add_context(shortlist, probability, report=report), *scores], axis=2)


def _fit_first_estimate(simulated: Case, knowledge: Knowledge) -> WordEstimate:
    """Fits the first estimate of mixed words, without beliefs about neighbours."""
    return WordEstimate.fit(
        MixedEvidence.build(simulated.view),
        simulated.truth.table_rows,
        _slice_table_prior(simulated.view, knowledge),
    )


def _slice_table_prior(view: View, knowledge: Knowledge) -> Values:
    """Returns the log prior of each row of the table: float64 [V]."""
    return knowledge.log_prior[: len(view.origin)]


def _add_unmixing(
    shortlist: Shortlist,
    probability: Values,
    *,
    view: View,
    knowledge: Knowledge,
    estimates: list[WordEstimate],
    step: int,
    truth: Ids | None,
    report: ProgressCallback,
) -> Floats:
    """Adds to all features the closeness to the estimated vector.

    The estimate assumes the current beliefs about the words around.

    An estimate is fitted where the `truth` is known, and kept for the releases that are attacked.
    """
    rows, cell_of = knowledge.row[shortlist.words], shortlist.word_context.cell_of
    assert isinstance(view.mechanism, Windowed), "only such mechanisms mix words"
    table = view.mechanism.get_view(view.table)
    evidence = MixedEvidence.build(view, compute_mean_vectors(table, rows, probability)[cell_of])
    if truth is not None:
        estimates[step:] = [WordEstimate.fit(evidence, truth, _slice_table_prior(view, knowledge))]
    estimate = estimates[step]
    scores = estimate.score_rows(table, estimate.estimate_vectors(evidence), rows[cell_of])
    scores -= scores.mean(axis=1, keepdims=True)
    return np.concatenate(
        [_add_context(shortlist, probability, report=report), scores[:, :, None]], axis=2
    )


def _score_by_network(
    shortlist: Shortlist,
    probability: Values,
    *,
    view: View,
    knowledge: Knowledge,
    language: LanguageModel,
    report: ProgressCallback,
) -> Floats:
    """Returns a language model's log scores of candidates: float32 [m, K, 1].

    The model reads between, or after, the likeliest words.

    Of a word outside the table it says nothing; it then has the mean of the other candidates.
    """
    words, first = _fill_likeliest(shortlist, probability, view, knowledge)
    limited = replace(
        language, batch=max(1, min(language.batch, MAX_PRIOR_LOGITS // len(view.origin)))
    )
    scores = np.empty((*shortlist.words.shape, 1), np.float32)
    done = 0
    for which, logits in limited.yield_batches(
        replace(get_released_words(view), words=words), view.item[first]
    ):
        numbers, is_in_table = shortlist.words[which], knowledge.is_in_table[shortlist.words[which]]
        log_scores = np.where(
            is_in_table, np.take_along_axis(logits, np.where(is_in_table, numbers, 0), axis=1), 0
        )
        mean = log_scores.sum(axis=1, keepdims=True) / np.maximum(
            1, is_in_table.sum(axis=1, keepdims=True)
        )
        scores[which, :, 0] = np.where(is_in_table, log_scores - mean, 0)
        done += len(which)
        report("language model", done, len(first))
    return scores


def _score_by_trigrams(
    shortlist: Shortlist,
    probability: Values,
    *,
    view: View,
    knowledge: Knowledge,
    report: ProgressCallback,
) -> Floats:
    """Returns a trigram model's log scores of candidates: float32 [m, K, F].

    Only the likelier candidates are rated, between the likeliest words.
    """
    words, first = _fill_likeliest(shortlist, probability, view, knowledge)
    best = find_highest(probability, min(TRIGRAM_CANDIDATES, probability.shape[1]))
    choices = np.take_along_axis(shortlist.words, best, axis=1).tolist()
    items, order = np.unique(view.item[first], return_index=True)
    report("language model", 0, len(first))
    choice_words = [[knowledge.words[word] for word in choices[cell]] for cell in order.tolist()]
    scores = np.zeros((*probability.shape, len(trigram.TRIGRAM_FEATURES)), np.float32)
    scores[order[:, None], best[order]] = trigram.score_choices(
        words, view.documents, items, choice_words
    )
    return scores


def _score_by_beam(
    shortlist: Shortlist,
    probability: Values,
    *,
    beam: Beam,
    positions: Ids,
    report: ProgressCallback,
) -> Floats:
    """Returns log probabilities of candidates from the beam search.

    float32 [m, K, 1].
    """
    report("beam search", 0, len(shortlist.words))
    return beam.score_candidates(shortlist.word_context, shortlist.words, probability, positions)[
        :, :, None
    ].astype(np.float32)


def _score_by_text_model(
    shortlist: Shortlist,
    probability: Values,
    *,
    view: View,
    knowledge: Knowledge,
    model: TextModel,
) -> Floats:
    """Returns the scores of a model of whole releases, which needs no probabilities."""
    return model(shortlist, view, knowledge)


def _fill_likeliest(
    shortlist: Shortlist, probability: Values, view: View, knowledge: Knowledge
) -> tuple[list[str], Ids]:
    """Returns all items with drawn words replaced by their likeliest guess.

    And the first position of each cell.
    """
    best = shortlist.words[np.arange(len(probability)), probability.argmax(axis=1)]
    words = list(view.items)
    for item, word in zip(
        view.item.tolist(), best[shortlist.word_context.cell_of].tolist(), strict=True
    ):
        words[item] = knowledge.words[word]
    return words, np.unique(shortlist.word_context.cell_of, return_index=True)[1]


def _build_guesses(shortlist: Shortlist, probability: Values, knowledge: Knowledge) -> Guesses:
    order = np.argsort(-probability, axis=1, kind="stable")
    cell_of = shortlist.word_context.cell_of
    words = np.take_along_axis(shortlist.words, order, axis=1)[cell_of]
    probabilities = np.take_along_axis(probability, order, axis=1)[cell_of]
    return Guesses(
        words=words, probability=probabilities, knowledge=knowledge, evidence=shortlist.evidence
    )
