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

from textveil.evaluate.risk import EXPECTS, Risk, caution, sentence
from textveil.guarantee import Guarantee
from textveil.show import page as pages

NAMED = "*"
"""The sign for a word that the attacker guesses right.

Where nothing can be underlined.
"""


class Level(NamedTuple):
    """A range of probabilities, up to `most`, with its display."""

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
"""The levels of risk, from low to high.

Their colours are steps of one hue from light to dark, so that they also differ for people who see
no colours; else signs.
"""


STYLES = """.legend .level0, .legend .level1, .legend .level2 { color: #1a1a1a; }
  .level1 { background: #fee6ce; }
  .level2 { background: #fdae6b; }
  .level3 { background: #a63603; color: #fff; font-weight: 600; }
  .level4 { background: #5a1e02; color: #fff; font-weight: 700; }
  .named { text-decoration: underline; text-underline-offset: .12em; text-decoration-thickness: 1px;
    padding-bottom: .15rem; }"""
"""The style sheet of the levels on a page."""


def level(probability: float) -> Level:
    """Returns the level of a probability."""
    return next(step for step in LEVELS if probability <= step.most or step is LEVELS[-1])


def coloured(risk: Risk, *, marked: bool) -> Text:
    """Builds a release with private words in their risk's colour.

    Args:
        risk: of one text.
        marked: whether colours can be shown; else signs follow the words.
    """
    text = Text()
    rows = zip(
        risk.released.gaps[:-1], risk.released.items, risk.probability, risk.named, strict=True
    )
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
    """Builds the legend of the colours or signs."""
    text = Text("How likely the attacker finds the private word: ")
    for step in LEVELS:
        if marked or step.mark:
            text.append("word" if marked else f"word{step.mark}", step.style if marked else "")
            text.append(f" {step.meaning}; ")
    if marked:
        text.append("word", "dim").append(" public; ").append("word", "underline")
    else:
        text.append(f"no sign: {LEVELS[0].meaning}, or public; {NAMED}")
    return text.append(" the attacker's best guess is right.")


def page(risks: Sequence[Risk], guarantee: Guarantee, beside: str = "") -> str:
    """Builds a page of releases in their risk's colours.

    Without scripts; the statement follows.

    Args:
        risks: of the texts.
        guarantee: about all of them together.
        beside: what public texts of the same kind bring, see `evaluate.risk.beside`.
    """
    first = risks[0] if risks else None
    exact = first is not None and first.evidence == "exact"
    evidence = (
        "computed from the mechanism's law" if exact else "estimated by simulating the mechanism"
    )
    how = ""
    if first:
        how = f"Probabilities are {evidence}, for an attacker who {EXPECTS[first.prior]}. "
    steps = "".join(
        f'<li><span class="word level{number}">word</span> {escape(step.meaning)}</li>'
        for number, step in enumerate(LEVELS)
    )
    texts = "\n".join(f'<p class="text">{_to_html(risk)}</p>' for risk in risks)
    content = f"""<p class="how">{escape(how)}Point at a word to read its probability.</p>
{f'<p class="how">{escape(beside)}</p>' if beside else ""}
<p class="keep">Keep this page to yourself: it tells which guesses about the private text are right.\
{escape(f" {said}" if (said := caution(risks)) else "")}</p>
<ul class="legend">{steps}<li><span class="public">word</span> public, passed as it is</li>\
<li><span class="named">word</span> the attacker's best guess is right</li></ul>
<p class="how">The colour says how likely the attacker finds the private word.</p>
{texts}"""
    return pages.page(sentence(risks), content, guarantee, styles=STYLES)


def _to_html(risk: Risk) -> str:
    parts = []
    rows = zip(
        risk.released.gaps[:-1], risk.released.items, risk.probability, risk.named, strict=True
    )
    for gap, item, probability, named in rows:
        parts.append(escape(gap))
        if np.isnan(probability):
            parts.append(f'<span class="public">{escape(item.text)}</span>')
            continue
        number = LEVELS.index(level(float(probability)))
        says = f"{probability:.0%}" if probability >= LEVELS[0].most else "less than 1%"
        if named:
            says += ", the attacker's best guess is right"
        kinds = f"word level{number}" + (" named" if named else "")
        parts.append(
            f'<span class="{kinds}" title="{says}" tabindex="0">{escape(item.text)}</span>'
        )
    return "".join(parts) + escape(risk.released.gaps[-1])
