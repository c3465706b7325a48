"""Risk: how likely an attacker finds each private word.

The attacker knows the program, and sees one release.

In: a case. Out: one `Risk` per text, and a sentence about all of them. Both are for the owner
alone: they tell which guesses are right.
Not here: the attacker (`attack.posterior`), how often he is right over all draws
(`attack.expected`), how risk is shown (`show.risk`), and the statement about a release
(`guarantee`).

The attacker sees one release, and knows the program with all its options, the public lists and the
prior, but no seed. Drawn words and names are guessed by Bayes' rule: the prior times the law of the
draw, under the budget of the word's group. A name is guessed among the names of its list. Its owner
is told that it is named where the guess is the name that stands for it on the list, so for a name
that is on no list the risk is overstated. Equal words that are released alike are one draw, and
each is guessed from that draw alone, also where a session drew it earlier. A placeholder tells
nothing of its value. What earlier releases tell of the same words is not counted here.

What is guessed right in one draw is chance. So the sentence says how many words are guessed right
on average over all draws of the text: computed from the law where it is written down and the prior
is the same everywhere, else the mean of draws that are made for this alone, and thrown away; it
then has an interval.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from textveil.config import Config, registry
from textveil.errors import ConfigError
from textveil.evaluate.attack import (
    DEFAULT_DRAWS,
    Case,
    Learned,
    PriorName,
    ProgressCallback,
    View,
    channel,
    check_prior_name,
    get_static_prior,
    ignore_progress,
)
from textveil.evaluate.attack import attack_input as cases
from textveil.evaluate.attack import prior as priors
from textveil.evaluate.attack.expected import compute_success, compute_word_success
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.evaluate.log_math import compute_log_sum
from textveil.mechanism import Contextual, Layout, Windowed
from textveil.pipeline import resolve_unit
from textveil.protect import PUBLIC
from textveil.randomness import Flags, Ids, Randomness, SystemRandomness, Values
from textveil.table import load_table
from textveil.text import Kind, Released

REDRAW_WARNING = (
    "Choosing among draws of a text by what you see here breaks the bound, and each further draw "
    "adds its epsilon. Try options on public texts."
)
"""The warning shown wherever somebody may draw a release again.

Seeing how well a release is protected tempts to choose among draws.
"""

MAX_CANDIDATES = 100
"""Candidates per word whose probability is known, at most.

For other words a bound is shown.
"""

SIMULATION_WORDS = 5000
"""Words of the simulation of an attacker with public texts.

Enough for a few texts.
"""

DRAW_WORD_BUDGET, MAX_DRAWS = 100, 8
"""The drawn words, and the most draws, of an estimated average."""

MAX_CONTEXT_WORDS = 2000
"""The most drawn words whose language-model expectations are held."""

FEW_PUBLIC_WORDS = 20_000
"""The words of public texts below which an attacker learns little: some two thousand short texts."""

REDRAW_STREAM = 2**119
"""The random stream of further draws, apart from all others."""

PRIOR_DESCRIPTIONS = {
    "uniform": "takes every word to be as likely as any other",
    "unigram": "expects words as often as they stand in public text",
    "context": "asks a language model which word fits the released words around it",
    "learned": "learned from public texts of the same kind, and looks at the surrounding words",
}
"""The priors, in words that follow "an attacker who"."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Risk:
    """The attacker's success on one release.

    Secret, because it tells which guesses are right.

    Attributes:
        released: the release.
        probability: float64, one per item: how likely the attacker finds the private word; NaN for
            a public one. Where the word is not among the attacker's candidates, the most that it
            can be.
        named: bool, one per item: whether the attacker's best guess is the private word.
        expected: float64, one per item: how often the best guess is the private word, over all
            draws; NaN for a public one.
        draws: how many draws that was estimated from; None where it is computed from the law.
        evidence: `exact` where the mechanism's law is written down, `estimated` where it was
            sampled.
        prior: the attacker's prior; "learned" of one who learned from public texts.
    """

    released: Released
    probability: Values = field(repr=False)
    named: Flags = field(repr=False)
    expected: Values = field(repr=False)
    draws: int | None
    evidence: str
    prior: str

    @property
    def private(self) -> Flags:
        """Flags of the items that stand for private words."""
        return ~np.isnan(self.probability)

    @property
    def caution(self) -> str:
        """The warning against drawing again; empty where nothing was drawn."""
        if any(item.kind in (Kind.WORD, Kind.NUMBER) for item in self.released.items):
            return REDRAW_WARNING
        return ""

    def to_json(self) -> dict[str, object]:
        """Returns the risk as plain data, with None for public words."""
        return {
            "caution": self.caution or None,
            "expected": round(float(np.nansum(self.expected)), 4),
            "expected_from_draws": self.draws,
            "recovered": int(self.named.sum()),
            "private": int(self.private.sum()),
            "evidence": self.evidence,
            "prior": self.prior,
            "probability": [
                None if np.isnan(p) else round(p, 6) for p in self.probability.tolist()
            ],
            "named": [
                bool(named) if is_private else None
                for named, is_private in zip(self.named, self.private, strict=True)
            ],
        }


def _find_unit(config: Config) -> str:
    """Finds the unit that is drawn: that of the table, where it is "auto"."""
    if config.words.unit != "auto":
        return config.words.unit
    table = load_table(config.table.name, metric=config.table.metric, device=config.table.device)
    return resolve_unit(config.words, table).unit


def check_risk_options(config: Config, prior: str | None = None) -> PriorName:
    """Refuses options that have no risk view.

    From the options and the words of the table alone: no model is loaded.

    Args:
        config: what the texts are to be privatized with.
        prior: what the attacker expects before looking; None: the strongest attacker who needs no
            other texts.

    Returns:
        The prior, as `assess` takes it.

    Raises:
        UnknownName: there is no such prior.
        ConfigError: says which options to change.
    """
    name = "context" if prior is None else check_prior_name(prior)
    cases.check_options(config.words, randomised=config.protect.labels == "randomised")
    mechanism = registry.load("mechanism", config.mechanism.name)(**config.mechanism.options)
    is_mixing = isinstance(mechanism, Windowed) and mechanism.mix.L > 1
    if name == "context" and (is_mixing or _find_unit(config) == "wordpiece"):
        if prior is not None:
            raise ConfigError(
                "the prior `context` needs whole words released one by one: use unigram or uniform"
            )
        name = "unigram"
    if isinstance(mechanism, Contextual) and mechanism.context.mode == "original":
        raise ConfigError(
            "risk needs a mechanism whose language model sees only released words: set "
            "mechanism.context=released or public"
        )
    return name


def assess(
    case: Case,
    *,
    prior: PriorName = "unigram",
    public: Sequence[str] = (),
    draws: int = DEFAULT_DRAWS,
    rng: Randomness | None = None,
    report: ProgressCallback = ignore_progress,
) -> list[Risk]:
    """Computes the risk of every text of a case.

    Args:
        case: releases and their originals, from `Case.after(privatizer, rehearsal, names=True)`.
        prior: what the attacker expects before looking: all words alike (`uniform`), how often
            words stand in public text (`unigram`), or what a language model makes of the released
            words around (`context`).
        public: public texts of the same kind; drawn words are then guessed by an attacker who
            learned from them (the attack `learned`), and the prior is that of names alone.
        draws: noisy vectors per released row, where the mechanism's law has to be estimated.
        rng: for these draws.
        report: callback for progress.

    Raises:
        ConfigError: such releases have no posterior under this prior, nothing can be learned from
            the public texts, or a private text is among them.
    """
    attacker = None
    if public:
        attacker = Learned(
            public=tuple(public), candidates=MAX_CANDIDATES, simulated=SIMULATION_WORDS, draws=draws
        )
    rng, view = rng or SystemRandomness(), case.view
    probability, named, evidence = _guess_items(case, prior, attacker, draws, rng, report)
    by_law = attacker is None and prior != "context"
    expected, draw_count = _compute_by_law(case, None, prior, report) if by_law else None, None
    if expected is None:
        # the release itself is one of them
        draw_count = max(1, min(MAX_DRAWS, DRAW_WORD_BUDGET // max(1, len(view.output_rows))))
        repeats = _release_again(case, draw_count - 1, rng)
        if attacker is None and len(view.output_rows) <= MAX_CONTEXT_WORDS:
            expected = _compute_by_law(case, repeats, prior, report)
        if expected is None:
            right = [named]
            if repeats is not None:
                other_hits = _guess_items(repeats, prior, attacker, draws, rng, report)[1]
                right.extend(other_hits.reshape(draw_count - 1, -1))
            expected = np.where(np.isnan(probability), np.nan, np.mean(right, axis=0))
    return [
        Risk(
            released=released,
            probability=probability[start:end],
            named=named[start:end],
            expected=expected[start:end],
            draws=draw_count,
            evidence=evidence,
            prior="learned" if public else prior,
        )
        for released, (start, end) in zip(
            view.released, pairwise(view.documents.tolist()), strict=True
        )
    ]


def _release_again(case: Case, copies: int, rng: Randomness) -> Case | None:
    """Releases the same texts `copies` more times, as one case.

    None for no copies.
    """
    if not copies or case.view.program is None:
        return None
    program = case.view.program.with_parts(randomness=rng.derive_part(REDRAW_STREAM))
    return Case.build(program, program.rehearse(case.truth.texts * copies), names=True)


def _compute_by_law(
    case: Case, repeats: Case | None, prior: PriorName, report: ProgressCallback
) -> Values | None:
    """Computes from the law how often each item is guessed right.

    Over all draws; None where single words have no explicit law.
    """
    words = compute_word_success(case, repeats, prior, report)
    if words is None:
        return None
    name_items, names = case.view.name_items, []
    for label in dict.fromkeys(name_items.labels if name_items else ()):
        assert name_items is not None, "it has labels"
        members = np.flatnonzero([item_label == label for item_label in name_items.labels])
        listing, truth = name_items.names.lists[label], case.truth.name_rows[members]
        expected = [
            (
                np.arange(len(members)),
                _expect_rows(case, prior, name_items.items[members])[:, listing.rows],
            )
        ]
        if repeats is not None and repeats.view.name_items is not None:
            places = np.flatnonzero(
                [item_label == label for item_label in repeats.view.name_items.labels]
            )
            logs = _expect_rows(repeats, prior, repeats.view.name_items.items[places])[
                :, listing.rows
            ]
            expected.append((np.arange(len(places)) % len(members), logs))
        parameter = float(name_items.names.compute_parameter(label, Layout.build(1))[0])
        hits = compute_success(
            name_items.names.mechanism, listing.table, parameter, (truth, truth), expected, report
        )
        assert hits is not None, "names are drawn by a law that is written down"
        names.append((name_items.items[members], hits))
    return _combine_items(case.view, words, names)


def _combine_items(view: View, words: Values, names: Iterable[tuple[Ids, Values]]) -> Values:
    """Combines values of drawn words and names into one per item.

    1 where a word passed, NaN where it is public.

    A word of several pieces is found if all of them are. What became a placeholder is not found.
    """
    result = np.ones(len(view.items))
    np.multiply.at(result, view.item, words)
    for where, item_values in names:
        result[where] = item_values
    items = [item for released in view.released for item in released.items]
    is_hidden = np.array([item.kind is Kind.PLACEHOLDER for item in items], bool)
    # Positions have their value from `words`, also where the mechanism drew no word.
    is_hidden[view.item] = False
    result[is_hidden] = 0.0
    result[np.array([item.group == PUBLIC for item in items], bool)] = np.nan
    return result


def _guess_items(
    case: Case,
    prior: PriorName,
    attacker: Learned | None,
    draws: int,
    rng: Randomness,
    report: ProgressCallback,
) -> tuple[Values, Flags, str]:
    """Returns each item's probability, whether the guess is right, and the evidence."""
    view = case.view
    if attacker is not None and len(view.output_rows):
        if reason := attacker.refusal(view):
            raise ConfigError(
                f"the attacker who learns from public texts has no guess here: {reason}"
            )
        attacker.check(case)
        (guesses,) = attacker.guess(view, [1], rng=rng, report=report)
        is_hit = guesses.words == guesses.knowledge.find_ids(view.table, case.secret_words)[:, None]
        candidate_probability, evidence = guesses.probability, guesses.evidence
    else:
        ranking = rank_candidates(
            view, prior=prior, k=MAX_CANDIDATES, draws=draws, rng=rng, report=report
        )
        is_hit, evidence = ranking.candidates == case.truth.rows[:, None], ranking.evidence
        candidate_probability = np.exp(ranking.log_probability)
    # for a word that is no candidate
    rest_bound = np.minimum(
        candidate_probability[:, -1], np.maximum(1 - candidate_probability.sum(axis=1), 0)
    )
    likely = np.minimum(
        np.where(
            is_hit.any(axis=1), np.where(is_hit, candidate_probability, 0.0).sum(axis=1), rest_bound
        ),
        1.0,
    )
    names = list(_yield_name_risks(case, prior, report))
    probability = _combine_items(
        view, likely, [(where, item_values) for where, item_values, _ in names]
    )
    right = _combine_items(
        view,
        is_hit[:, 0].astype(np.float64),
        [(where, item_values.astype(np.float64)) for where, _, item_values in names],
    )
    return probability, right == 1, evidence


def _yield_name_risks(
    case: Case, prior: PriorName, report: ProgressCallback
) -> Iterator[tuple[Ids, Values, Flags]]:
    """Yields items, probabilities and correct guesses of drawn names, by list."""
    name_items = case.view.name_items
    if name_items is None:
        return
    for label in dict.fromkeys(name_items.labels):
        members = np.array([item_label == label for item_label in name_items.labels])
        listing = name_items.names.lists[label]
        output_rows, which = np.unique(
            np.searchsorted(listing.rows, name_items.output_rows[members]), return_inverse=True
        )
        parameter = float(name_items.names.compute_parameter(label, Layout.build(1))[0])
        law = channel.compute_exact_lines(
            name_items.names.mechanism, listing.table, output_rows, parameter, report
        )
        assert law is not None, "names are drawn by a law that is written down"
        joint = law[which] + _expect_rows(case, prior, name_items.items[members])[:, listing.rows]
        truth = case.truth.name_rows[members]
        likely: Values = np.exp(joint[np.arange(len(truth)), truth] - compute_log_sum(joint))
        yield name_items.items[members], likely, joint.argmax(axis=1) == truth


def _expect_rows(case: Case, prior: PriorName, items: Ids) -> Values:
    """Returns the log prior of every row for some items.

    [m, V] or [1, V].
    """
    view = case.view
    if prior != "context":
        return get_static_prior(view.origin, prior, view.words.stopwords)[None]
    result = np.empty((len(items), len(view.origin)))
    for which, expected in priors.yield_context_prior(view, items):
        result[which] = expected
    return result


def compute_share(risks: Sequence[Risk]) -> float:
    """Computes the share of private words that are expected to be named, 0 without any."""
    private = sum(int(risk.private.sum()) for risk in risks)
    return sum(float(np.nansum(risk.expected)) for risk in risks) / private if private else 0.0


def compute_interval(risks: Sequence[Risk]) -> tuple[float, float] | None:
    """Computes the 95% interval of `compute_share`; None where no mean of draws was taken.

    Wilson's interval: a chance per word varies less than a hit, so it is rather too wide. Words
    that are released alike count once, because equal words may be one draw.
    """
    draws = risks[0].draws if risks else None
    if draws is None or not get_caution(risks):
        return None
    distinct = {
        item.text.lower()
        for risk in risks
        for item, is_private in zip(risk.released.items, risk.private, strict=True)
        if is_private
    }
    share, weight = compute_share(risks), 1.96**2 / (draws * len(distinct))
    middle = share + weight / 2
    reach = math.sqrt(weight * (share * (1 - share) + weight / 4))
    return max(0.0, (middle - reach) / (1 + weight)), min(1.0, (middle + reach) / (1 + weight))


def describe_risk(risks: Sequence[Risk]) -> str:
    """Returns a sentence on the expected number of recovered words.

    It says whether that is computed over all draws, or from how many it is estimated.
    """
    private = sum(int(risk.private.sum()) for risk in risks)
    if not private:
        return "There is no private word to recover."
    named_count = sum(float(np.nansum(risk.expected)) for risk in risks)
    about = "fewer than 0.1" if named_count < 0.05 else f"{named_count:.1f}".removesuffix(".0")
    about = about if named_count else "none"
    words = "private word" if private == 1 else "private words"
    interval, draws = compute_interval(risks), risks[0].draws
    basis = "on average over all draws"
    if interval is not None:
        low, high = interval
        number = "one draw" if draws == 1 else f"{draws} draws"
        basis = f"estimated from {number} (95% interval {low:.0%} to {high:.0%})"
    return (
        f"An attacker who knows this program and {PRIOR_DESCRIPTIONS[risks[0].prior]} is expected "
        f"to name {about} of your {private:,} {words} ({named_count / private:.0%}), {basis}."
    )


def describe_public_attackers(
    config: Config, risks: Sequence[Risk], public: Sequence[str] = ()
) -> str:
    """Returns a sentence on attackers with public texts of the same kind.

    The measured success under these options, or else how to see it.

    Args:
        config: what the texts were privatized with.
        risks: of the texts; nothing is said where nothing was drawn.
        public: what the attacker learned from; said where that is little.
    """
    if not get_caution(risks):
        return ""
    if any(risk.prior == "learned" for risk in risks):
        words = sum(len(text.split()) for text in public)
        return (
            f"He learned from {words:,} words of public texts, which is little: an attacker with "
            "thousands of such texts may name more."
            if 0 < words < FEW_PUBLIC_WORDS
            else ""
        )
    measured = _read_measured()
    options = {**config.to_dict(), "seed": None}
    options["words"] = {**options["words"], "unit": _find_unit(config)}
    if options != measured["configuration"]:
        return (
            "An attacker with public texts of the same kind names more: `textveil risk "
            "--public FILE` shows how many."
        )
    named = " and ".join(measured["measured"])
    return (
        f"An attacker with thousands of public texts of the same kind names more: {named}, "
        "where that was measured."
    )


@cache
def _read_measured() -> dict[str, Any]:
    """Reads the measured success of the learned attacker, and its options.

    The bench writes that file from its rows.
    """
    result: dict[str, Any] = json.loads(
        (files("textveil") / "data" / "risk.json").read_text(encoding="utf-8")
    )
    return result


def get_caution(risks: Sequence[Risk]) -> str:
    """Returns the warning against drawing any text again.

    Empty where nothing was drawn.
    """
    return max((risk.caution for risk in risks), default="")
