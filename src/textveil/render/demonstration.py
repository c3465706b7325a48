"""The demonstration as a page: a prompt and its answer, a letter, and mechanisms.

In: texts in pieces, a letter with its risk, rows of a table. Out: a page without scripts. All of it
is invented, so the page is for everybody.
Not here: what is demonstrated (`cli.demo`).
"""

from collections.abc import Mapping, Sequence
from html import escape

from textveil.evaluate.curve import CurvePoint
from textveil.evaluate.risk import Risk, describe_risk
from textveil.pipeline import Result
from textveil.render import page as pages
from textveil.render import types
from textveil.render.curve import render_curve
from textveil.render.picture import PICTURE_CSS
from textveil.render.risk import PAGE_CSS, render_texts


def render_page(
    prompt: Mapping[str, Sequence[tuple[str, str]]],
    hidden: str,
    letter: Result,
    risks: Sequence[Risk],
    public_note: str,
    curve: Sequence[CurvePoint],
    mechanisms: tuple[Sequence[str], Sequence[Sequence[str]], str],
) -> str:
    """Builds the page.

    Args:
        prompt: texts by their titles, in pieces with a type; "" for words that are not hidden.
        hidden: a sentence on what was hidden.
        letter: the release of the letter.
        risks: what an attacker recovers of it.
        public_note: what attackers with public texts recover.
        curve: the same at other budgets.
        mechanisms: the head of a table, its rows, and a remark.
    """
    steps = "".join(
        f'<div><h3>{escape(title)}</h3><p class="text">{_render_pieces(pieces)}</p></div>'
        for title, pieces in prompt.items()
    )
    head, rows, remark = mechanisms
    content = f"""<p class="how">Everything here is invented. The answer comes from a script; no network was used.</p>
<h2>1. Protect a prompt, and get the answer back</h2>
<div class="sides">{steps}</div>
<p>{escape(hidden)}</p>
<h2>2. Privatize a text</h2>
<p>{escape(f"{describe_risk(risks)} {public_note}".strip())}</p>
{render_texts(risks, [letter.private])}
{render_curve(curve)}
{pages.render_statement(letter.guarantee)}
<h2>3. Mechanisms, each on the same letter</h2>
<div class="wide">{pages.render_table(head, rows)}</div>
<p class="how">{escape(remark).replace("`", "")}</p>"""
    dark = f"@media screen and (prefers-color-scheme: dark) {{ {types.render_styles(dark=True)} }}"
    styles = "\n".join((PICTURE_CSS, PAGE_CSS, types.render_styles(dark=False), dark, _STYLES))
    return pages.render_plain_page("textveil: both jobs", content, styles=styles)


def _render_pieces(pieces: Sequence[tuple[str, str]]) -> str:
    return "".join(
        f'<span class="word type-{types.find_family(type_)}">{escape(text)}</span>'
        if type_
        else escape(text)
        for text, type_ in pieces
    )


_STYLES = """h3 { font-size: .95rem; margin: 1rem 0 .3rem; color: var(--soft); }
  .wide { overflow-x: auto; }"""
