"""An attacker who has learned from public texts of the same kind, and tried the mechanism on them.

In: a case, public texts. Out: how often the private word is the best guess, among the first, and at which rank.
Not here: what public texts teach (`knowledge`), which words come into question (`candidates`), and what stands around
a word (`around`).
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
from textveil.evaluate.attack.candidates import Shortlist, alike
from textveil.evaluate.attack.case import Case, View
from textveil.evaluate.attack.channel import Evidence, estimated
from textveil.evaluate.attack.contract import Outcome, Report, quiet
from textveil.evaluate.attack.knowledge import Knowledge, learn
from textveil.evaluate.attack.posterior import DRAWS, mixes
from textveil.evaluate.attack.prior import CELLS, masked_lm, seen
from textveil.evaluate.attack.public import distinct, split
from textveil.evaluate.logs import highest, log_sum
from textveil.mechanism import PLACEHOLDER
from textveil.randomness import Flags, Floats, Ids, Randomness, Values
from textveil.text import check_texts, ranks

FEWEST = 10
"""Public texts below which nothing is learned."""

RARE = 5000
"""A word is rare from this rank of the general word list on."""

SURE = 0.9
"""Positions of one text with one release are one word, where the simulation finds it in so many of them."""

RIDGE = 1e-3
"""What a square of a weight costs, against the mean loss of a word."""

LIKELIER = 32
"""Of so many candidates of each word a trigram model is asked."""

SAMPLED = 2000
"""Weights are first looked for on about so many words."""

TOGETHER = 64
"""Words whose candidates are weighed together: few, so that they stay in the cache."""

CLOSE = 1e-7
"""Weights are found where the loss would fall by no more."""

KEPT = 8
"""So many results of counting, and of guesses from what stands around alone, are kept for the next releases."""

SIMULATION = 2**121
"""Tells the draws of the simulation from all others under one seed."""

LOWER = (
    "a lower bound: others may learn more, and words that neither the table nor the public texts have are never named"
)

_Made = TypeVar("_Made")

Language = Literal["none", "masked", "trigram"]

Setting = Mapping[str, str | int | float]

Look = Callable[[Shortlist, Values], Floats]
"""What gives features [m, K, F] of candidates from their probabilities [m, K] so far."""


def _texts(public: object) -> object:
    """The public texts, if they are texts; a message does not repeat them."""
    check_texts(public, what="public text")  # type: ignore[arg-type]
    return public


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """What the attacker takes the n protected words to be.

    Attributes:
        words: int64 [n, K], numbers of words of `known`, best first.
        probability: float64 [n, K], how likely each is, of the K candidates.
        known: the words.
        evidence: whether the law was written down or estimated.
    """

    words: Ids = field(repr=False)
    probability: Values = field(repr=False)
    known: Knowledge = field(repr=False)
    evidence: Evidence


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
            `none`; `trigram`, the model of general English that comes with PocketSphinx; or `masked`, a masked
            language model, which takes most of the time.
        model: a folder or hub id of the masked language model; None is the bundled one.
        draws: noisy vectors per distinct released row, where the law has to be estimated; with more it finds
            more.
    """

    name: ClassVar[str] = "learned"
    averages: ClassVar[Literal[True]] = True
    public: Annotated[tuple[str, ...], BeforeValidator(_texts)] = Field(default=(), repr=False)
    k: Annotated[int, Field(ge=2, le=1000, strict=True)] = 10
    candidates: Annotated[int, Field(ge=50, le=1000, strict=True)] = 100
    simulated: Annotated[int, Field(ge=100, strict=True)] = 20_000
    passes: Annotated[int, Field(ge=1, le=10, strict=True)] = 3
    language: Language = "none"
    model: str | None = None
    draws: Annotated[int, Field(ge=2, le=1_000_000, strict=True)] = DRAWS

    def refusal(self, view: View) -> str:
        """Where nothing is protected, there are no public texts, or the law of single words is not known."""
        if not self.public:
            return "it learns from public texts of the same kind: name a file of them with --public"
        if len(self._distinct) < FEWEST:  # of phrases of one text, none would be left to try the mechanism on
            return f"it needs {FEWEST} different public texts at least, and better thousands"
        if not len(view.drawn):
            return NOTHING_PROTECTED
        if view.words.unit == "wordpiece":
            return "it guesses whole words, not pieces"
        if mixes(view):
            return "it guesses words one by one, and the mechanism mixes them: use `bayes` or `window`"
        if view.program is None:
            return "the program that made the releases is not known"
        return channel.refusal(view)

    def run(self, case: Case, *, rng: Randomness, report: Report = quiet) -> Iterator[Outcome]:
        """top-1, top-k, the mean reciprocal rank, and top-1 of rare words.

        Of several releases after some of them, and after all where memory gave the first of them every time.

        Raises:
            ConfigError: a private text is among the public ones.
        """
        self.check(case)
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
        """Refuses to learn from what is attacked: no guess would be worth anything.

        Raises:
            ConfigError: a private text is among the public ones.
        """
        shared = len(set(self.public) & set(case.truth.texts))
        if shared:
            raise ConfigError(
                f"public texts must not be among the attacked ones, and {shared:,} are: leave them out of --public"
            )

    def guess(self, view: View, seen: Sequence[int], *, rng: Randomness, report: Report = quiet) -> list[Guesses]:
        """What the private words are taken to be after each number of releases.

        Args:
            view: the releases.
            seen: numbers of releases; 0 is a guess from what stands around alone.
            rng: for the choice of texts to try, their releases, and laws that have to be estimated.
            report: told of progress.

        Raises:
            MissingExtra: `language` is `trigram`, and PocketSphinx is not installed.
        """
        assert view.program is not None, "refused otherwise"
        if self.language == "trigram":
            trigram.load()  # before the work, not after it
        public = self._distinct
        drawn = len(view.drawn) / max(1, len(view.items))
        counted, tried = split(public, int(self.simulated / drawn), rng)
        program = view.program.with_parts(randomness=rng.part(SIMULATION))
        report("simulated releases", 0, len(tried))
        simulated = Case.of(program, tried, releases=len(view.others) + 1, names=True)
        part, everything = (self._knowledge(view, texts) for texts in (counted, public))
        truth = part.ids(view.table, simulated.secret_words)
        merged = _tells(simulated.view, truth)

        def told(releases: int) -> Guesses:
            trial = self._find(simulated.view, part, releases, merged, rng, report)
            weights = _fit(trial, truth, self._looks(simulated.view, part, report))
            own = self._find(view, everything, releases, merged, rng, report)
            return _guesses(own, _weighed(own, weights, self._looks(view, everything, report)), everything)

        blind = ("blind", _learnable(view), _digest(tried), _digest(counted), _mask(simulated.view), _mask(view))
        return [told(releases) if releases else self._kept(blind, partial(told, 0)) for releases in seen]

    @cached_property
    def _distinct(self) -> list[str]:
        """The public texts without repetitions."""
        return distinct(self.public)

    @cached_property
    def _memo(self) -> dict[object, Any]:
        return {}

    def _kept(self, key: object, make: Callable[[], _Made]) -> _Made:
        """What was made for a key, kept until so many others were asked for."""
        made: _Made = self._memo.pop(key) if key in self._memo else make()
        self._memo[key] = made
        for old in list(self._memo)[:-KEPT]:
            del self._memo[old]
        return made

    def _knowledge(self, view: View, texts: Sequence[str]) -> Knowledge:
        """What public texts teach, counted once for all books of a table."""
        return self._kept((_learnable(view), _digest(texts)), partial(learn, view.origin, view.words, texts))

    def _looks(self, view: View, known: Knowledge, report: Report) -> Sequence[Look]:
        """What is looked at in each pass."""
        around = partial(_around, report=report)
        looks = [around] * self.passes
        if self.language == "masked":
            looks.append(partial(_masked, view=view, known=known, model=self.model, report=report))
        elif self.language == "trigram":
            looks.append(partial(_trigram, view=view, known=known, report=report))
        return looks

    def _find(
        self, view: View, known: Knowledge, releases: int, merged: bool, rng: Randomness, report: Report
    ) -> Shortlist:
        return candidates.find(
            view,
            known,
            alike(view) if merged and releases else np.arange(len(view.drawn)),
            k=max(self.candidates, self.k),
            releases=releases,
            draws=self.draws,
            rng=rng,
            report=report,
        )

    def _outcomes(self, case: Case, found: Guesses, blind: Guesses, setting: Setting) -> Iterator[Outcome]:
        view, words = case.view, case.secret_words
        where = np.arange(len(words))
        rank, before = (_ranks(each, view, words) for each in (found, blind))
        note = LOWER if found.evidence == "exact" else f"{LOWER}; {estimated(view, self.draws)}"
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


def _ranks(found: Guesses, view: View, words: Sequence[str]) -> Values:
    """The rank of each private word among the guesses, float64 [n]; infinite for one that is no candidate."""
    here = found.words == found.known.ids(view.table, words)[:, None]
    return np.where(here.any(axis=1), here.argmax(axis=1) + 1.0, np.inf)


def _tells(view: View, truth: Ids) -> bool:
    """Whether words of a text that were released alike are one word: what the simulation says."""
    of = alike(view)
    _, first = np.unique(of, return_index=True)
    further = np.ones(len(of), bool)
    further[first] = False
    return bool(further.any() and (truth[further] == truth[first[of[further]]]).mean() >= SURE)


# ---- what is kept ----------------------------------------------------------------------------------


def _learnable(view: View) -> tuple[str, WordsOptions]:
    """What it depends on, apart from the texts, what public texts teach."""
    return view.origin.digest, view.words


def _digest(texts: Sequence[str]) -> bytes:
    return blake2b(repr(texts).encode()).digest()


def _mask(view: View) -> bytes:
    """A digest of all that is seen of releases but for what was drawn."""
    items = list(view.items)
    for item in view.item.tolist():
        items[item] = ""
    layout, hidden = view.layout, view.drawn == PLACEHOLDER
    found = blake2b(repr((items, view.groups)).encode())
    for array in (layout.roles, layout.documents, layout.unit_of, view.passed >= 0, view.group, view.row_group, hidden):
        found.update(repr(None if array is None else (array.shape, array.tobytes())).encode())
    return found.digest()


# ---- weights ---------------------------------------------------------------------------------------


def _fit(found: Shortlist, truth: Ids, looks: Sequence[Look]) -> list[Values]:
    """Weights of the features, at first and for every pass: what makes the right words the likeliest."""
    _, first = np.unique(found.around.of, return_index=True)
    here = found.words == truth[first][:, None]
    known = np.flatnonzero(here.any(axis=1))
    right = here[known].argmax(axis=1)
    features, weights = found.features, [logistic(found.features[known], right)]
    for look in looks:
        features = look(found, shares(features, weights[-1]))
        weights.append(logistic(features[known], right))
    return weights


def _weighed(found: Shortlist, weights: Sequence[Values], looks: Sequence[Look]) -> Values:
    """The probability of every candidate [m, K]."""
    first, *further = weights
    probability = shares(found.features, first)
    for look, each in zip(looks, further, strict=True):
        probability = shares(look(found, probability), each)
    return probability


def _around(found: Shortlist, probability: Values, *, report: Report) -> Floats:
    """All features, if words are what is believed so far."""
    around = found.around.features(found.words, probability, found.passing, report)
    return np.concatenate([found.features, around], axis=2)


def _masked(
    found: Shortlist, probability: Values, *, view: View, known: Knowledge, model: str | None, report: Report
) -> Floats:
    """All features, and ln of what a masked language model expects between the likeliest words.

    Of a word outside the table it says nothing; it then has the mean of the other candidates.
    """
    words, first = _likeliest(found, probability, view, known)
    language = masked_lm(view.origin, model)
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
    return np.concatenate([_around(found, probability, report=report), said], axis=2)


def _trigram(found: Shortlist, probability: Values, *, view: View, known: Knowledge, report: Report) -> Floats:
    """All features, and ln of what a trigram model expects between the likeliest words, of the likelier candidates."""
    words, first = _likeliest(found, probability, view, known)
    best = highest(probability, min(LIKELIER, probability.shape[1]))
    choices = np.take_along_axis(found.words, best, axis=1).tolist()
    items, order = np.unique(view.item[first], return_index=True)
    report("language model", 0, len(first))
    spelled = [[known.words[word] for word in choices[cell]] for cell in order.tolist()]
    said = np.zeros((*probability.shape, len(trigram.FEATURES)), np.float32)
    said[order[:, None], best[order]] = trigram.expected(words, view.documents, items, spelled)
    return np.concatenate([_around(found, probability, report=report), said], axis=2)


def _likeliest(found: Shortlist, probability: Values, view: View, known: Knowledge) -> tuple[list[str], Ids]:
    """The words of all items, the likeliest ones where some were drawn; and the first position of each cell."""
    best = found.words[np.arange(len(probability)), probability.argmax(axis=1)]
    words = list(view.items)
    for item, word in zip(view.item.tolist(), best[found.around.of].tolist(), strict=True):
        words[item] = known.words[word]
    return words, np.unique(found.around.of, return_index=True)[1]


def _guesses(found: Shortlist, probability: Values, known: Knowledge) -> Guesses:
    order = np.argsort(-probability, axis=1, kind="stable")
    of = found.around.of
    words = np.take_along_axis(found.words, order, axis=1)[of]
    ordered = np.take_along_axis(probability, order, axis=1)[of]
    return Guesses(words=words, probability=ordered, known=known, evidence=found.evidence)


def shares(features: Floats, weights: Values) -> Values:
    """The probabilities of K candidates with features [m, K, F]: float64 [m, K]."""
    logits = (features @ weights.astype(np.float32)).astype(np.float64)
    found: Values = np.exp(logits - log_sum(logits)[:, None])
    return found


def logistic(features: Floats, right: Ids) -> Values:
    """Weights under which the right one of K candidates is the likeliest: conditional logistic regression.

    Source: McFadden, "Conditional logit analysis of qualitative choice behavior", 1974.

    Args:
        features: [m, K, F].
        right: int64 [m], which of the K is right.

    Returns:
        weights float64 [F]; those of prior and law stay 1 where nothing is to be learned from.
    """
    start = np.zeros(features.shape[2])
    start[[0, 2]] = 1
    if not len(right):
        return start
    chosen = features[np.arange(len(right)), right]
    weights = start
    for step in (max(1, len(right) // SAMPLED), 1):  # what is found on a sample is a good start
        weights = _newton(features[::step], chosen[::step], start, weights)
    return weights


def _newton(features: Floats, chosen: Floats, start: Values, weights: Values) -> Values:
    """Weights of the least loss, by Newton's method from some weights on; steps that lead up are halved."""
    loss, gradient, curvature = _loss(features, chosen, start, weights)
    step = np.linalg.solve(curvature, gradient)
    while gradient @ step > CLOSE:
        tried = _loss(features, chosen, start, weights - step)
        if tried[0] < loss:
            weights, (loss, gradient, curvature) = weights - step, tried
            step = np.linalg.solve(curvature, gradient)
        else:
            step = step / 2
    return weights


def _loss(features: Floats, chosen: Floats, start: Values, weights: Values) -> tuple[float, Values, Values]:
    """The mean loss with what the weights themselves cost, its gradient [F], and its curvature [F, F]."""
    m, _, f = features.shape
    loss, gradient, curvature = 0.0, np.zeros(f), np.zeros((f, f))
    for at in range(0, m, TOGETHER):
        part = features[at : at + TOGETHER]
        logits = part @ weights.astype(np.float32)
        total = log_sum(logits)
        weighed = part * np.exp(logits - total[:, None].astype(np.float32))[:, :, None]
        mean = weighed.sum(axis=1)
        loss += total.sum() / m
        gradient += mean.sum(axis=0, dtype=np.float64) / m
        curvature += (weighed.reshape(-1, f).T @ part.reshape(-1, f) - mean.T @ mean) / m
    usual, away = chosen.mean(axis=0, dtype=np.float64), weights - start
    loss += float(RIDGE * away @ away - usual @ weights)
    return loss, gradient - usual + 2 * RIDGE * away, curvature + 2 * RIDGE * np.eye(f)
