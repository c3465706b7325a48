"""Shows risk: each private word coloured by its probability of discovery.

In: risks of releases. Out: coloured text for a terminal, a page. Both are for the owner alone: they
tell which guesses are right.
Not here: how risk is assessed (`evaluate.risk`), and the statement about a release (`guarantee`).
"""

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table
from rich.text import Text

from textveil.config import Config
from textveil.evaluate.curve import CurvePoint
from textveil.evaluate.risk import PRIOR_DESCRIPTIONS, Risk, describe_risk, get_caution
from textveil.guarantee import Guarantee, find_drawn_epsilon, format_number
from textveil.pipeline import Private
from textveil.render import page as pages
from textveil.render.curve import render_curve
from textveil.text import Released

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


RISK_CSS = """.level1, .level2, .legend .level0, .legend .level1, .legend .level2 { color: #1a1a1a; }
  .level1 { background: #fee6ce; }
  .level2 { background: #fdae6b; }
  .level3 { background: #a63603; color: #fff; font-weight: 600; }
  .level4 { background: #5a1e02; color: #fff; font-weight: 700; }
  .legend .level0 { color: inherit; }
  @media screen and (prefers-color-scheme: dark) {
    .level1, .legend .level1 { background: #43291a; color: #fee6ce; }
    .level2, .legend .level2 { background: #84430f; color: #fff; }
    .level3 { background: #f08a3c; color: #1a1a1a; }
    .level4 { background: #ffdcb8; color: #1a1a1a; }
  }
  .named { text-decoration: underline; text-underline-offset: .12em; text-decoration-thickness: 1px;
    padding-bottom: .15rem; }"""
"""The style sheet of the levels on a page; on dark pages the lightest is the highest."""


PAGE_CSS = (
    RISK_CSS
    + """
  body { max-width: 62rem; }
  .sides { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1.6rem; }
  .sides h2 { margin-top: 1.2rem; }
  @media (max-width: 40rem) { .sides { grid-template-columns: minmax(0, 1fr); } }"""
)


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


def render_for_terminal(
    risks: Sequence[Risk], originals: Sequence[Private] = (), *, marked: bool
) -> Iterator[Text | Table]:
    """Yields releases with private words in their risk's colour.

    Args:
        risks: of the texts.
        originals: the texts, to stand beside their releases; none to leave them out.
        marked: whether colours can be shown; else signs follow the released words.
    """
    if not originals:
        yield from (render_text(risk, marked=marked) for risk in risks)
        return
    for risk, original in zip(risks, originals, strict=True):
        grid = Table(box=None, expand=True, padding=(0, 1), pad_edge=False, header_style="bold")
        grid.add_column("original", ratio=1, overflow="fold")
        grid.add_column("released", ratio=1, overflow="fold")
        text, (gaps, words) = Text(), find_originals(risk.released, original)
        for gap, word, probability in zip(gaps[:-1], words, risk.probability, strict=True):
            is_public = np.isnan(probability)
            style = "dim" if is_public else find_level(float(probability)).style
            text.append(gap).append(word, style if marked else "")
        grid.add_row(text.append(gaps[-1]), render_text(risk, marked=marked))
        yield grid


def find_originals(released: Released, original: Private) -> tuple[list[str], list[str]]:
    """Finds the private words behind the items of a release.

    Args:
        released: the release.
        original: its text.

    Returns:
        The gaps between them, one more than items, and the words of each item.
    """
    text, spans, end = original.get_text(), list[tuple[int, int]](), 0
    for word in original.words:
        # Words are parts of the text, in its order.
        start = text.find(word, end)
        start, end = (end, end) if start < 0 else (start, start + len(word))
        spans.append((start, end))
    gaps, words, end = [], [], 0
    for item in released.items:
        covered = spans[item.start : item.end] or [(end, end)]
        start, stop = max(end, covered[0][0]), max(end, covered[-1][1])
        gaps.append(text[end:start])
        words.append(text[start:stop])
        end = stop
    return [*gaps, text[end:]], words


def render_page(
    risks: Sequence[Risk],
    guarantee: Guarantee,
    public_note: str = "",
    *,
    originals: Sequence[Private] = (),
    curve: Sequence[CurvePoint] = (),
    config: Config | None = None,
) -> str:
    """Builds a page of releases in their risk's colours.

    Without scripts; the statement follows.

    Args:
        risks: of the texts.
        guarantee: about all of them together.
        public_note: what public texts of the same kind bring, see `evaluate.risk.beside`.
        originals: the texts, to stand beside their releases; none to leave them out.
        curve: the risk at other budgets; none to leave it out.
        config: what the texts were released with, for a line at the foot; None to leave it out.
    """
    foot = "" if config is None else describe_origin(config, risks, guarantee)
    what = "holds the private text" if originals else "shows which guesses about it are right"
    warning = get_caution(risks)
    content = f"""{f'<p class="how">{escape(public_note)}</p>' if public_note else ""}
<p class="keep">Keep this page to yourself: it {what}.{escape(f" {warning}" if warning else "")}</p>
{render_texts(risks, originals)}
{render_curve(curve)}"""
    return pages.render_page(describe_risk(risks), content, guarantee, styles=PAGE_CSS, foot=foot)


def describe_origin(config: Config, risks: Sequence[Risk], guarantee: Guarantee) -> str:
    """Returns a line by which a page can be cited: version, options, draws; no path, no text."""
    from textveil import __version__

    draws = risks[0].draws if risks else None
    epsilon, profile = find_drawn_epsilon(guarantee), config.profile
    return "; ".join(
        filter(
            None,
            (
                f"textveil {__version__}",
                profile and f"profile {Path(profile).name}",
                f"mechanism {Path(config.mechanism.name).name}",
                f"drawn at epsilon {format_number(epsilon)}" if math.isfinite(epsilon) else "",
                f"prior {risks[0].prior}" if risks else "",
                "computed over all draws" if draws is None else f"estimated from draws: {draws}",
                "with a seed" if config.seed is not None else "without a seed",
            ),
        )
    )


def render_texts(risks: Sequence[Risk], originals: Sequence[Private] = ()) -> str:
    """Returns releases in their risk's colours as HTML, with the legend.

    Args:
        risks: of the texts.
        originals: the texts, to stand beside their releases; none to leave them out.
    """
    explanation = ""
    if risks:
        exact = risks[0].evidence == "exact"
        evidence = (
            "computed from the mechanism's law"
            if exact
            else "estimated by simulating the mechanism"
        )
        explanation = (
            f"Probabilities are {evidence}, for an attacker who "
            f"{PRIOR_DESCRIPTIONS[risks[0].prior]}. "
        )
    steps = "".join(
        f'<li><span class="word level{number}">word</span> {escape(step.meaning)}</li>'
        for number, step in enumerate(RISK_LEVELS)
    )
    texts = "\n".join(f'<p class="text">{_render_released(risk)}</p>' for risk in risks)
    if originals:
        pairs = "\n".join(
            f'<div><h2>Original</h2><p class="text">{_render_original(risk, original)}</p></div>\n'
            f'<div><h2>Released</h2><p class="text">{_render_released(risk)}</p></div>'
            for risk, original in zip(risks, originals, strict=True)
        )
        texts = f'<div class="sides">{pairs}</div>'
    return f"""<p class="how">{escape(explanation)}Point at a word to read its probability.</p>
<ul class="legend">{steps}<li><span class="public">word</span> public, passed</li>\
<li><span class="named">word</span> the attacker's best guess is right</li></ul>
<p class="how">The colour says how likely the attacker finds the private word.</p>
{texts}"""


def mark_words(
    risk: Risk, gaps: Sequence[str], words: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Yields the pieces of a text, each with a class and an attacker's chance.

    Gaps have neither, and public words no chance.

    Args:
        risk: of the text.
        gaps: between words, one more than those.
        words: the words of each released item.
    """
    for gap, word, probability, is_guessed in zip(
        gaps[:-1], words, risk.probability, risk.named, strict=True
    ):
        yield gap, "", ""
        if np.isnan(probability):
            yield word, "public", ""
            continue
        level = RISK_LEVELS.index(find_level(float(probability)))
        lowest = RISK_LEVELS[0]  # rounded to whole percents, it would read as none
        chance = f"{probability:.0%}" if probability >= lowest.upper_bound else lowest.meaning
        if is_guessed:
            yield word, f"level{level} named", f"{chance}, the attacker's best guess is right"
        else:
            yield word, f"level{level}", chance
    yield gaps[-1], "", ""


def _render_released(risk: Risk) -> str:
    released = risk.released
    words = [item.text for item in released.items]
    return _render_words(risk, released.gaps, words, ' tabindex="0"')


def _render_original(risk: Risk, original: Private) -> str:
    return _render_words(risk, *find_originals(risk.released, original))


def _render_words(
    risk: Risk, gaps: Sequence[str], words: Sequence[str], attributes: str = ""
) -> str:
    """Returns words between gaps as HTML, each item in the colour of its risk.

    Keys reach the words of one side only: both have the same titles.
    """
    parts = []
    for text, look, chance in mark_words(risk, gaps, words):
        piece = escape(text)
        if chance:
            piece = f'<span class="word {look}" title="{chance}"{attributes}>{piece}</span>'
        elif look:
            piece = f'<span class="{look}">{piece}</span>'
        parts.append(piece)
    return "".join(parts)
