"""Shows groups: every released word in its group's colour.

For whoever sets the budgets.

In: releases and their statement. Out: coloured text for a terminal, a page. Nothing secret is
shown: the groups are released with the text.
Not here: how words are grouped (`protect.grouping`), and what a group may spend (`protect.budget`).
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from rich.text import Text

from textveil.guarantee import Guarantee, format_number
from textveil.protect import GROUPS, PUBLIC
from textveil.render import page as pages
from textveil.text import Item, Kind, Released


class GroupStyle(NamedTuple):
    """The display of a group's words.

    On a terminal, by a sign where there is no colour, and on a page.
    """

    meaning: str
    style: str
    mark: str
    css: str


GROUP_STYLES = {
    "sensitive-important": GroupStyle(
        "sensitive and important", "bold white on #a63603", "¹", "background: #a63603; color: #fff"
    ),
    "sensitive": GroupStyle("sensitive", "black on #fdae6b", "²", "background: #fdae6b"),
    "important": GroupStyle(
        "important to the task", "bold white on #08519c", "³", "background: #08519c; color: #fff"
    ),
    "other": GroupStyle("other", "black on #c6dbef", "⁴", "background: #c6dbef"),
    "passes": GroupStyle(
        "passes unprotected", "italic", "'", "border-bottom: 2px dotted #08519c; font-style: italic"
    ),
    "name": GroupStyle(
        "another name of the same type",
        "bold underline",
        "°",
        "border-bottom: 2px solid #7b3294; font-weight: 600",
    ),
    "figure": GroupStyle(
        "a figure near the original", "italic underline", "~", "border-bottom: 2px dashed #7b3294"
    ),
    "placeholder": GroupStyle(
        "placeholder", "bold reverse", "", "border: 1px solid #444; font-weight: 600"
    ),
    PUBLIC: GroupStyle("public", "dim", "", "color: #767676"),
}
"""Styles of the groups and other kinds of items.

Sensitive groups are orange, others blue; important ones are darker, so that lightness tells them
apart, too.
"""


def find_style(item: Item) -> GroupStyle:
    """Returns the style of an item."""
    if item.kind is Kind.PLACEHOLDER:
        return GROUP_STYLES["placeholder"]
    if item.kind is Kind.VERBATIM:
        return GROUP_STYLES[PUBLIC if item.group == PUBLIC else "passes"]
    if item.kind is Kind.NUMBER:
        return GROUP_STYLES["figure"]
    return GROUP_STYLES.get(item.group) or GROUP_STYLES["name"]


def render_text(released: Released, *, marked: bool) -> Text:
    """Builds a release with words in their groups' colours.

    Args:
        released: one text.
        marked: whether colours can be shown; else signs follow the words.
    """
    text = Text()
    for gap, item in zip(released.gaps[:-1], released.items, strict=True):
        group_style = find_style(item)
        text.append(gap).append(
            item.text if marked else item.text + group_style.mark,
            group_style.style if marked else "",
        )
    return text.append(released.gaps[-1])


def list_styles(releases: Sequence[Released]) -> list[GroupStyle]:
    """Returns the styles that occur, in the order of `GROUP_STYLES`."""
    meanings = {find_style(item).meaning for released in releases for item in released.items}
    return [group_style for group_style in GROUP_STYLES.values() if group_style.meaning in meanings]


def render_legend(releases: Sequence[Released], *, marked: bool) -> Text:
    """Builds the legend of the colours or signs in these releases."""
    text = Text("Groups:")
    for group_style in list_styles(releases):
        if marked or group_style.mark:
            text.append(" ").append(
                "word" if marked else f"word{group_style.mark}", group_style.style if marked else ""
            )
            text.append(f" {group_style.meaning};")
    return text if marked else text.append(" no sign: public or a placeholder.")


def render_page(releases: Sequence[Released], guarantee: Guarantee) -> str:
    """Builds a page of releases in their groups' colours.

    With what each group spends, and the statement; it loads nothing from elsewhere.

    Args:
        releases: of the texts.
        guarantee: about all of them together.
    """
    meanings = "".join(
        f'<li><span class="word {name}">word</span> {escape(group_style.meaning)}</li>'
        for name, group_style in GROUP_STYLES.items()
        if group_style in list_styles(releases)
    )
    order = {name: i for i, name in enumerate(GROUPS)}
    rows = "".join(
        f"<tr><td>{escape(group.label)}</td><td>{group.words:,}</td><td>{escape(group.by)}</td>"
        f"<td>{format_number(group.epsilon)}</td></tr>"
        for group in sorted(guarantee.groups, key=lambda group: order.get(group.label, len(order)))
    )
    texts = "\n".join(f'<p class="text">{_render_html(released)}</p>' for released in releases)
    content = f"""<p class="how">The groups are released with the text: anyone who reads the text may know them.</p>
<ul class="legend">{meanings}</ul>
{texts}
<h2>What each group spends</h2>
<table><thead><tr><th>group</th><th>words</th><th>replaced by</th><th>epsilon (any two words)</th></tr></thead>
<tbody>{rows}</tbody></table>"""
    return pages.render_page("Which words are in which group", content, guarantee, styles=_STYLES)


def _render_html(released: Released) -> str:
    parts = []
    names = {id(group_style): name for name, group_style in GROUP_STYLES.items()}
    for gap, item in zip(released.gaps[:-1], released.items, strict=True):
        group_style = find_style(item)
        opening = f'<span class="word {names[id(group_style)]}" title="{escape(item.group)}">'
        parts.append(f"{escape(gap)}{opening}{escape(item.text)}</span>")
    return "".join(parts) + escape(released.gaps[-1])


_STYLES = (
    "\n  ".join(
        f".{name} {{ {shown.css}; }}" for name, shown in GROUP_STYLES.items() if name != PUBLIC
    )
    + """
  .sensitive, .other { color: #1a1a1a; }
  @media screen and (prefers-color-scheme: dark) {
    .passes { border-color: #8fc0f5; } .name, .figure { border-color: #d3a5e6; } .placeholder { border-color: #b0b4bd; }
  }
  table { border-collapse: collapse; font-size: .9rem; display: block; overflow-x: auto; }
  th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }"""
)
