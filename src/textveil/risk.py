"""Risk: how probably an attacker who knows the program names each private word of a release.

In: a case. Out: one `Risk` per text; coloured text for a terminal, a page, JSON. All of it is for the owner alone: it
tells which guesses are right.
Not here: the attacker (`attack.posterior`), and the statement about a release (`guarantee`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from textveil import page as pages
from textveil.attack.case import Case
from textveil.attack.contract import Report, quiet
from textveil.attack.posterior import DRAWS, posterior
from textveil.attack.prior import PriorName
from textveil.guarantee import Guarantee
from textveil.protect import PUBLIC
from textveil.rng import Randomness, SystemRandomness
from textveil.words import Kind, Released

GUESSES = 100
"""Candidates whose probability is looked at, where the attacker gives so many; of others a bound is shown."""

NAMED = "*"
"""Stands behind a word that the attacker names, where nothing can be underlined."""


EXPECTS = {
    "uniform": "expects no word more than another",
    "unigram": "knows how often words stand in public text",
    "context": "expects what a language model does from the released words around",
}
"""The priors, in words that go on "an attacker who "."""


class Level(NamedTuple):
    """Probabilities up to `most`, and how they are shown."""

    most: float
    meaning: str
    style: str
    mark: str


LEVELS = (
    Level(0.01, "less than 1%", "", ""),
    Level(0.1, "1% to 10%", "black on #fee6ce", "¹"),
    Level(0.5, "10% to 50%", "black on #fdae6b", "²"),
    Level(0.9, "50% to 90%", "bold white on #a63603", "³"),
    Level(1.0, "more than 90%", "bold white on #5a1e02", "⁴"),
)
"""Steps of one hue from light to dark, which differ in lightness for every eye; where there is no colour, signs."""

STYLES = """.legend .level0, .legend .level1, .legend .level2 { color: #1a1a1a; }
  .level1 { background: #fee6ce; }
  .level2 { background: #fdae6b; }
  .level3 { background: #a63603; color: #fff; font-weight: 600; }
  .level4 { background: #5a1e02; color: #fff; font-weight: 700; }
  .named { text-decoration: underline; text-underline-offset: .12em; text-decoration-thickness: 1px;
    padding-bottom: .15rem; }"""
"""The same steps on a page."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Risk:
    """What an attacker makes of one release. Secret, as it tells which guesses are right.

    Attributes:
        released: the release.
        probability: float64, one per item: the probability that the attacker gives to the private word; NaN for a
            public one, and for one that is not among the attacker's candidates the most that it can be.
        named: bool, one per item: whether the private word is the attacker's best guess.
        evidence: `exact` where the mechanism's law is written down, else `estimated` from draws.
        prior: what the attacker knows of the words before the release.
    """

    released: Released
    probability: NDArray[np.float64] = field(repr=False)
    named: NDArray[np.bool_] = field(repr=False)
    evidence: str
    prior: str

    @property
    def private(self) -> NDArray[np.bool_]:
        """Which items stand for private words."""
        return ~np.isnan(self.probability)

    def to_json(self) -> dict[str, object]:
        """As plain data; None for public words."""
        return {
            "recovered": int(self.named.sum()),
            "private": int(self.private.sum()),
            "evidence": self.evidence,
            "prior": self.prior,
            "probability": [None if np.isnan(p) else round(p, 6) for p in self.probability.tolist()],
            "named": [bool(named) if known else None for named, known in zip(self.named, self.private, strict=True)],
        }


def assess(
    case: Case,
    *,
    prior: PriorName = "unigram",
    draws: int = DRAWS,
    rng: Randomness | None = None,
    report: Report = quiet,
) -> list[Risk]:
    """The risk of every text of a case.

    Args:
        case: releases and their originals.
        prior: what the attacker knows before.
        draws: noisy vectors per released row, where the mechanism's law has to be estimated.
        rng: for these draws.
        report: told of progress.
    """
    view = case.view
    ranking = posterior(view, prior=prior, k=GUESSES, draws=draws, rng=rng or SystemRandomness(), report=report)
    here = ranking.candidates == case.truth.rows[:, None]
    given = np.exp(ranking.log_probability)
    most = np.minimum(given[:, -1], np.maximum(1 - given.sum(axis=1), 0))  # for a word that is no candidate
    at_position = np.minimum(np.where(here.any(axis=1), np.where(here, given, 0.0).sum(axis=1), most), 1.0)
    first = here[:, 0]
    items = len(view.items)
    probability, named = np.ones(items), np.ones(items, bool)
    np.multiply.at(probability, view.item, at_position)  # a word of several pieces is named if all of them are
    np.logical_and.at(named, view.item, first)
    kinds = [item.kind for released in view.released for item in released.items]
    public = np.array([item.group == PUBLIC for released in view.released for item in released.items], bool)
    hole = np.array([kind is Kind.PLACEHOLDER for kind in kinds], bool)
    drawn = np.zeros(items, bool)
    drawn[view.item] = True
    probability[hole & ~drawn], named[hole & ~drawn] = 0.0, False
    probability[public], named[public] = np.nan, False
    return [
        Risk(
            released=released,
            probability=probability[start:end],
            named=named[start:end],
            evidence=ranking.evidence,
            prior=prior,
        )
        for released, start, end in zip(view.released, view.documents[:-1], view.documents[1:], strict=True)
    ]


def sentence(risks: Sequence[Risk]) -> str:
    """What it comes to, in one sentence."""
    private = sum(int(risk.private.sum()) for risk in risks)
    named = sum(int(risk.named.sum()) for risk in risks)
    if not private:
        return "There is no private word to recover."
    words = "private word" if private == 1 else "private words"
    about = "none" if not named else f"about {named:,}"
    return f"An attacker who knows this program recovers {about} of your {private:,} {words}."


# ---- on a terminal ---------------------------------------------------------------------------------


def level(probability: float) -> Level:
    """The step that a probability is on."""
    return next(step for step in LEVELS if probability <= step.most or step is LEVELS[-1])


def coloured(risk: Risk, *, marked: bool) -> Text:
    """The release with every private word in the colour of its risk.

    Args:
        risk: of one text.
        marked: whether colours can be shown; else signs stand behind the words.
    """
    text = Text()
    rows = zip(risk.released.gaps[:-1], risk.released.items, risk.probability, risk.named, strict=True)
    for gap, item, probability, named in rows:
        text.append(gap)
        if np.isnan(probability):
            text.append(item.text, "dim" if marked else "")
            continue
        step = level(float(probability))
        if marked:
            text.append(item.text, f"{step.style} underline".strip() if named else step.style)
        else:
            text.append(item.text + step.mark + (NAMED if named else ""))
    return text.append(risk.released.gaps[-1])


def legend(*, marked: bool) -> Text:
    """What the colours or signs mean."""
    text = Text("Probability that the attacker gives to the private word: ")
    for step in LEVELS:
        if marked or step.mark:
            text.append("word" if marked else f"word{step.mark}", step.style if marked else "")
            text.append(f" {step.meaning}; ")
    if marked:
        text.append("word", "dim").append(" public; ").append("word", "underline")
    else:
        text.append(f"no sign: {LEVELS[0].meaning}, or public; {NAMED}")
    return text.append(" the best guess is right.")


# ---- as a page -------------------------------------------------------------------------------------


def page(risks: Sequence[Risk], guarantee: Guarantee) -> str:
    """A page of its own, without scripts, that shows the releases with their risk, and the statement second.

    Args:
        risks: of the texts.
        guarantee: of all of them together.
    """
    first = risks[0] if risks else None
    exact = first is not None and first.evidence == "exact"
    evidence = "computed from the mechanism's law" if exact else "estimated by simulating the mechanism"
    how = f"Probabilities are {evidence}, for an attacker who {EXPECTS[first.prior]}. " if first else ""
    steps = "".join(
        f'<li><span class="word level{number}">word</span> {escape(step.meaning)}</li>'
        for number, step in enumerate(LEVELS)
    )
    texts = "\n".join(f'<p class="text">{_html(risk)}</p>' for risk in risks)
    content = f"""<p class="how">{escape(how)}Point at a word to read its number.</p>
<p class="keep">Keep this page to yourself: it tells which guesses about the private text are right.</p>
<ul class="legend">{steps}<li><span class="public">word</span> public, passed as it is</li>\
<li><span class="named">word</span> the best guess is right</li></ul>
<p class="how">Colour: the probability that the attacker gives to the private word.</p>
{texts}"""
    return pages.page(sentence(risks), content, guarantee, styles=STYLES)


def _html(risk: Risk) -> str:
    parts = []
    rows = zip(risk.released.gaps[:-1], risk.released.items, risk.probability, risk.named, strict=True)
    for gap, item, probability, named in rows:
        parts.append(escape(gap))
        if np.isnan(probability):
            parts.append(f'<span class="public">{escape(item.text)}</span>')
            continue
        number = LEVELS.index(level(float(probability)))
        says = f"{probability:.0%}" if probability >= LEVELS[0].most else "less than 1%"
        if named:
            says += ", the best guess is right"
        kinds = f"word level{number}" + (" named" if named else "")
        parts.append(f'<span class="{kinds}" title="{says}" tabindex="0">{escape(item.text)}</span>')
    return "".join(parts) + escape(risk.released.gaps[-1])
