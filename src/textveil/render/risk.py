"""Shows risk: each private word coloured by its probability of discovery.

In: risks of releases. Out: coloured text for a terminal, a page. Both are for the owner alone: they
tell which guesses are right.
Not here: how risk is assessed (`evaluate.risk`), and the statement about a release (`guarantee`).
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from rich.text import Text

from textveil.evaluate.risk import PRIOR_DESCRIPTIONS, Risk, describe_risk, get_caution
from textveil.guarantee import Guarantee
from textveil.render import page as pages

GUESSED_MARK = "*"
"""The sign for a word that the attacker guesses right.

Where nothing can be underlined.
"""


class RiskLevel(NamedTuple):
    """A range of probabilities, up to `upper_bound`, with its display."""

    upper_bound: float
    meaning: str
    style: str
    mark: str


RISK_LEVELS = (
    RiskLevel(0.01, "less than 1%", "", ""),
    RiskLevel(0.1, "1% to 10%", "black on #fee6ce", "¹"),
    RiskLevel(0.5, "10% to 50%", "black on #fdae6b", "²"),
    RiskLevel(0.9, "50% to 90%", "bold white on #a63603", "³"),
    RiskLevel(1.0, "more than 90%", "bold white on #5a1e02", "⁴"),
)
"""The levels of risk, from low to high.

Their colours are steps of one hue from light to dark, so that they also differ for people who see
no colours; else signs.
"""


RISK_CSS = """.legend .level0, .legend .level1, .legend .level2 { color: #1a1a1a; }
  .level1 { background: #fee6ce; }
  .level2 { background: #fdae6b; }
  .level3 { background: #a63603; color: #fff; font-weight: 600; }
  .level4 { background: #5a1e02; color: #fff; font-weight: 700; }
  .named { text-decoration: underline; text-underline-offset: .12em; text-decoration-thickness: 1px;
    padding-bottom: .15rem; }"""
"""The style sheet of the levels on a page."""


def find_level(probability: float) -> RiskLevel:
    """Returns the level of a probability."""
    return next(
        step for step in RISK_LEVELS if probability <= step.upper_bound or step is RISK_LEVELS[-1]
    )


def render_text(risk: Risk, *, marked: bool) -> Text:
    """Builds a release with private words in their risk's colour.

    Args:
        risk: of one text.
        marked: whether colours can be shown; else signs follow the words.
    """
    text = Text()
    rows = zip(
        risk.released.gaps[:-1], risk.released.items, risk.probability, risk.named, strict=True
    )
    for gap, item, probability, is_guessed in rows:
        text.append(gap)
        # NaN: the word is public, so there is nothing to find.
        if np.isnan(probability):
            text.append(item.text, "dim" if marked else "")
            continue
        step = find_level(float(probability))
        if marked:
            text.append(item.text, f"{step.style} underline".strip() if is_guessed else step.style)
        else:
            text.append(item.text + step.mark + (GUESSED_MARK if is_guessed else ""))
    return text.append(risk.released.gaps[-1])


def render_legend(*, marked: bool) -> Text:
    """Builds the legend of the colours or signs."""
    text = Text("How likely the attacker finds the private word: ")
    for step in RISK_LEVELS:
        if marked or step.mark:
            text.append("word" if marked else f"word{step.mark}", step.style if marked else "")
            text.append(f" {step.meaning}; ")
    if marked:
        text.append("word", "dim").append(" public; ").append("word", "underline")
    else:
        text.append(f"no sign: {RISK_LEVELS[0].meaning}, or public; {GUESSED_MARK}")
    return text.append(" the attacker's best guess is right.")


def render_page(risks: Sequence[Risk], guarantee: Guarantee, public_note: str = "") -> str:
    """Builds a page of releases in their risk's colours.

    Without scripts; the statement follows.

    Args:
        risks: of the texts.
        guarantee: about all of them together.
        public_note: what public texts of the same kind bring, see `evaluate.risk.beside`.
    """
    first = risks[0] if risks else None
    exact = first is not None and first.evidence == "exact"
    evidence = (
        "computed from the mechanism's law" if exact else "estimated by simulating the mechanism"
    )
    explanation = ""
    if first:
        explanation = (
            f"Probabilities are {evidence}, for an attacker who {PRIOR_DESCRIPTIONS[first.prior]}. "
        )
    steps = "".join(
        f'<li><span class="word level{number}">word</span> {escape(step.meaning)}</li>'
        for number, step in enumerate(RISK_LEVELS)
    )
    texts = "\n".join(f'<p class="text">{_render_html(risk)}</p>' for risk in risks)
    content = f"""<p class="how">{escape(explanation)}Point at a word to read its probability.</p>
{f'<p class="how">{escape(public_note)}</p>' if public_note else ""}
<p class="keep">Keep this page to yourself: it shows which guesses about the private text are right.\
{escape(f" {warning}" if (warning := get_caution(risks)) else "")}</p>
<ul class="legend">{steps}<li><span class="public">word</span> public, passed unchanged</li>\
<li><span class="named">word</span> the attacker's best guess is right</li></ul>
<p class="how">The colour says how likely the attacker finds the private word.</p>
{texts}"""
    return pages.render_page(describe_risk(risks), content, guarantee, styles=RISK_CSS)


def _render_html(risk: Risk) -> str:
    parts = []
    rows = zip(
        risk.released.gaps[:-1], risk.released.items, risk.probability, risk.named, strict=True
    )
    for gap, item, probability, is_guessed in rows:
        parts.append(escape(gap))
        if np.isnan(probability):
            parts.append(f'<span class="public">{escape(item.text)}</span>')
            continue
        number = RISK_LEVELS.index(find_level(float(probability)))
        title = (
            # Rounded to whole percents, a small probability would read as none.
            f"{probability:.0%}" if probability >= RISK_LEVELS[0].upper_bound else "less than 1%"
        )
        if is_guessed:
            title += ", the attacker's best guess is right"
        kinds = f"word level{number}" + (" named" if is_guessed else "")
        parts.append(
            f'<span class="{kinds}" title="{title}" tabindex="0">{escape(item.text)}</span>'
        )
    return "".join(parts) + escape(risk.released.gaps[-1])
