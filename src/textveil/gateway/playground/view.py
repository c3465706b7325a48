"""View of the page: a release, its statement and its risk as JSON.

In: a release. Out: JSON: pieces of text, each with its meaning, and sentences. Private: for the
person who typed the text.
Not here: colours and their meanings (`render`), sentences of statements (`guarantee`), the page
itself (`page.html`).
"""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from textveil.evaluate.risk import PRIOR_DESCRIPTIONS, Risk, describe_risk, get_caution
from textveil.gateway.playground.pages import PageRelease
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.gateway.request.request_record import RequestRecord
from textveil.guarantee import count_hidden, describe_hidden, format_things
from textveil.pipeline import Private, Result
from textveil.protect import GROUPS, PUBLIC
from textveil.render import bar, groups, picture, risk, types
from textveil.text import Item, Kind

MAX_MARKED_WORDS = 4_000
"""Maximal number of words for which restored parts are marked.

Longer answers are shown without marks.
"""

_WORD = re.compile(r"\s+|<\w+>|\w+|.", re.DOTALL)

DRAWN_CLASS = "drawn"
"""CSS class of drawn words that have no group."""

UNDRAWN_TEXT = (
    "No word is drawn at random here. A placeholder shows the type and the place of a value, "
    "not the value; every other word is sent unchanged and can be read."
)
"""Explanation in place of a risk where there is nothing to guess."""

NO_CURVE_TEXT = (
    "The risk at other budgets is shown for short prompts: for longer ones, use `textveil risk "
    "FILE --html PAGE`."
)
"""Explanation in place of a curve."""


def render_release(release: PageRelease) -> dict[str, Any]:
    """Renders a release: text in pieces, hidden counts, and the statement."""
    result = release.result
    parts: list[list[str]] = []
    counts: Counter[tuple[str, str]] = Counter()
    placeholders = dict(result.released.mask.placeholders)
    for i, (gap, item) in enumerate(
        zip(result.released.gaps[:-1], result.released.items, strict=True)
    ):
        _add_plain(parts, gap)
        if item.kind is Kind.VERBATIM:
            _add_plain(parts, item.text)
            continue
        look, name, meaning = _describe_item(item, placeholders.get(i))
        counts[look, name] += 1
        parts.append(
            [item.text, look, meaning, " ".join(result.private.words[item.start : item.end])]
        )
    _add_plain(parts, result.released.gaps[-1])
    passed = sum(item.kind is Kind.VERBATIM for item in result.released.items)
    return {
        "number": release.number,
        "parts": parts,
        "legend": [
            _build_legend(look, name, count) for (look, name), count in sorted(counts.items())
        ],
        "passed": passed,
        "drawn": has_draws(result),
        "undrawn": UNDRAWN_TEXT,
        "hidden": describe_hidden([result.released]),
        "counts": dict(count_hidden([result.released])),
        "bar": bar.dump_bar(result.guarantee),
        "statement": result.guarantee.summary(),
        "explained": result.guarantee.explain(),
        "unmeasured": list(result.unmeasured),
    }


def has_draws(result: Result) -> bool:
    """True if words, names or figures of a release were drawn.

    Then an attacker has something to guess.
    """
    return any(item.kind in (Kind.WORD, Kind.NUMBER) for item in result.released.items)


def render_risk(assessment: Risk, original: Private, comparison: str) -> dict[str, Any]:
    """Renders an original and its release with the attacker's chance to find each word.

    The sentence adds what public texts of the same kind bring.
    """
    released = assessment.released
    exact = assessment.evidence == "exact"
    method = "computed from the distribution of" if exact else "estimated by simulating"
    return {
        "parts": _mark_words(assessment, released.gaps, [item.text for item in released.items]),
        "original": _mark_words(assessment, *risk.find_originals(released, original)),
        "sentence": f"{describe_risk([assessment])} {comparison}".strip(),
        "caution": get_caution([assessment]),
        "how": (
            f"The chances are {method} the draws, for an attacker who "
            f"{PRIOR_DESCRIPTIONS[assessment.prior]}."
        ),
        "legend": [
            {"look": f"level{i}", "says": step.meaning} for i, step in enumerate(risk.RISK_LEVELS)
        ],
    }


def _mark_words(assessment: Risk, gaps: Sequence[str], words: Sequence[str]) -> list[list[str]]:
    """Cuts a text into pieces, each private word with its class and chance."""
    parts: list[list[str]] = []
    for text, look, chance in risk.mark_words(assessment, gaps, words):
        if chance:
            parts.append([text, look, f"found with a chance of {chance}"])
        else:
            _add_plain(parts, text)
    return parts


def restore_answer(release: PageRelease, answer: str) -> dict[str, Any]:
    """Restores an answer in pieces, with its number of unresolved placeholders."""
    restorer = AnswerRestorer(release.session)
    received, words = _WORD.findall(answer), _WORD.findall(restorer.restore_text(answer))
    if len(received) + len(words) > MAX_MARKED_WORDS:
        return {"parts": [["".join(words)]], "unresolved": restorer.unresolved}
    parts: list[list[str]] = []
    for kind, start, end, begin, stop in SequenceMatcher(
        a=received, b=words, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            _add_plain(parts, "".join(words[begin:stop]))
        elif begin < stop:
            parts.append(["".join(words[begin:stop]), "restored", "".join(received[start:end])])
    return {"parts": parts, "unresolved": restorer.unresolved}


def summarize_record(record: RequestRecord) -> dict[str, Any]:
    """Summarizes the record of a request as counts."""
    counts = sorted(record.protected.items())
    hidden = ", ".join(format_things(type_, count) for type_, count in counts)
    return {
        "time": round(record.began),
        "operation": record.operation,
        "hidden": hidden,
        "status": record.status,
        "reason": record.reason,
        "milliseconds": round(1000 * record.gateway_seconds),
    }


def render_styles(*, dark: bool) -> str:
    """Returns the CSS rules for the classes of `render_release` and `render_risk`."""
    looks = {name: look.css for name, look in groups.GROUP_STYLES.items() if name != PUBLIC}
    rules = [
        f".{name} {{ {css}; }}"
        for name, css in {**looks, DRAWN_CLASS: groups.GROUP_STYLES["other"].css}.items()
    ]
    both = [*rules, risk.RISK_CSS, picture.PICTURE_CSS]  # they have rules for dark pages, too
    return "\n".join([types.render_styles(dark=dark), *([] if dark else both)])


def _add_plain(parts: list[list[str]], text: str) -> None:
    if parts and len(parts[-1]) == 1:
        parts[-1][0] += text
    elif text:
        parts.append([text])


def _describe_item(item: Item, type_: str | None) -> tuple[str, str, str]:
    """Returns the class, the counted name and the meaning of an item."""
    if type_ is not None:
        family = types.FAMILIES[types.find_family(type_)]
        meaning = f"{format_things(type_, 1).removeprefix('1 ')} ({family.meaning})"
        return f"type-{types.find_family(type_)}", type_, meaning
    label = item.group.partition(" ")[0]
    if item.kind is Kind.NUMBER:
        return "figure", "figure", f"{groups.GROUP_STYLES['figure'].meaning}, in place of yours"
    if item.group in GROUPS:
        meaning = groups.GROUP_STYLES[item.group].meaning
        return item.group, item.group, f"drawn in place of your word; its group: {meaning}"
    if label.isupper():
        return "name", "name", f"{groups.GROUP_STYLES['name'].meaning}, in place of yours"
    return DRAWN_CLASS, DRAWN_CLASS, "drawn in place of your word"


def _build_legend(look: str, name: str, count: int) -> dict[str, Any]:
    if look.startswith("type-"):
        label = format_things(name, count)
    elif look == DRAWN_CLASS:
        label = f"{format_things('WORD', count)} drawn"
    else:
        label = f"{format_things('WORD', count)} drawn ({groups.GROUP_STYLES[look].meaning})"
    return {"look": look, "count": count, "says": label}
