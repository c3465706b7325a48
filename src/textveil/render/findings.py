"""Shows findings: a text with its hidden and visible parts.

In colours, for its owner.

In: texts with their findings. Out: a page. It holds the texts, and is as private.
Not here: what is found (`protect`), and how groups of released words look (`groups`).
"""

from collections.abc import Sequence
from html import escape

from textveil.protect import Finding
from textveil.render import page as pages

_STYLES = """.hidden { background: #fdae6b; color: #1a1a1a; }
  .stays { border-bottom: 2px dotted var(--accent); }
  .type { font-size: .7em; color: var(--soft); margin-left: .25rem; } .hidden .type { color: #444; }"""


def render_page(documents: Sequence[tuple[str, Sequence[Finding]]]) -> str:
    """Builds a page of findings, without scripts.

    Args:
        documents: texts with their findings.
    """
    texts = "\n".join(f'<p class="text">{_render_html(*document)}</p>' for document in documents)
    content = f"""<p class="keep">Keep this page to yourself: it holds the private text.</p>
<ul class="legend"><li><span class="word hidden">word</span> hidden</li>\
<li><span class="word stays">word</span> found, and stays</li></ul>
<p class="how">Point at a word to read why. Nothing is claimed about all other words.</p>
{texts}"""
    return pages.render_plain_page("What is private here, and what stays", content, styles=_STYLES)


def _render_html(text: str, findings: Sequence[Finding]) -> str:
    parts, end = list[str](), 0
    for finding in findings:
        kind = "hidden" if finding.hidden else "stays"
        word, name = escape(text[finding.start : finding.end]), escape(finding.type)
        parts += [
            escape(text[end : finding.start]),
            f'<span class="word {kind}" title="{escape(finding.reason)}" tabindex="0">{word}',
            f'<span class="type">{name}</span></span>',
        ]
        end = finding.end
    return "".join(parts) + escape(text[end:])
