"""View of the page: a release, its statement and its risk as JSON.

In: a release. Out: JSON: pieces of text, each with its meaning, and sentences. Private: for the
person who typed the text.
Not here: colours and their meanings (`show`), sentences of statements (`guarantee`), the page
itself (`page.html`).
"""

import re
from collections import Counter
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from textveil.evaluate.risk import EXPECTS, Risk, caution, sentence
from textveil.gateway.answers import Restoring
from textveil.gateway.playground.pages import Shown
from textveil.gateway.record import RequestRecord
from textveil.guarantee import hidden, hidden_counts, things
from textveil.pipeline import Result
from textveil.protect import GROUPS, PUBLIC
from textveil.show import groups, risk, types
from textveil.text import Item, Kind

MARKED = 4_000
"""Maximal number of words for which restored parts are marked.

Longer answers are shown without marks.
"""

_WORD = re.compile(r"\s+|<\w+>|\w+|.", re.DOTALL)

DRAWN = "drawn"
"""CSS class of drawn words that have no group."""

UNDRAWN = (
    "No word is drawn here. A placeholder tells its type and where it stands, and nothing of its "
    "value; every other "
    "word is sent as it stands, and can be read."
)
"""Explanation in place of a risk where there is nothing to guess."""


def release(shown: Shown) -> dict[str, Any]:
    """Renders a release: text in pieces, hidden counts, and the statement."""
    result = shown.result
    parts: list[list[str]] = []
    counts: Counter[tuple[str, str]] = Counter()
    placeholders = dict(result.released.mask.placeholders)
    for i, (gap, item) in enumerate(
        zip(result.released.gaps[:-1], result.released.items, strict=True)
    ):
        _append_plain(parts, gap)
        if item.kind is Kind.VERBATIM:
            _append_plain(parts, item.text)
            continue
        look, name, meaning = _describe_item(item, placeholders.get(i))
        counts[look, name] += 1
        parts.append(
            [item.text, look, meaning, " ".join(result.private.words[item.start : item.end])]
        )
    _append_plain(parts, result.released.gaps[-1])
    passed = sum(item.kind is Kind.VERBATIM for item in result.released.items)
    return {
        "number": shown.number,
        "parts": parts,
        "legend": [
            _build_legend(look, name, count) for (look, name), count in sorted(counts.items())
        ],
        "passed": passed,
        "drawn": draws(result),
        "undrawn": UNDRAWN,
        "hidden": hidden([result.released]),
        "counts": dict(hidden_counts([result.released])),
        "statement": result.guarantee.summary(),
        "explained": result.guarantee.explain(),
        "unmeasured": list(result.unmeasured),
    }


def draws(result: Result) -> bool:
    """True if words, names or figures of a release were drawn.

    Then an attacker has something to guess.
    """
    return any(item.kind in (Kind.WORD, Kind.NUMBER) for item in result.released.items)


def at_risk(found: Risk, beside: str) -> dict[str, Any]:
    """Renders a release with the attacker's chance to find each word.

    The sentence adds what public texts of the same kind bring.
    """
    parts: list[list[str]] = []
    released = found.released
    rows = zip(released.gaps[:-1], released.items, found.probability, found.named, strict=True)
    for gap, item, probability, named in rows:
        _append_plain(parts, gap)
        if np.isnan(probability):
            _append_plain(parts, item.text)
            continue
        step = risk.level(float(probability))
        says = (
            f"{probability:.0%}" if probability >= risk.LEVELS[0].most else risk.LEVELS[0].meaning
        )
        says += ", and the attacker's best guess is right" if named else ""
        look = f"level{risk.LEVELS.index(step)}{' named' if named else ''}"
        parts.append([item.text, look, f"found with {says}"])
    _append_plain(parts, released.gaps[-1])
    exact = found.evidence == "exact"
    how = "computed from the law of" if exact else "estimated by simulating"
    return {
        "parts": parts,
        "sentence": f"{sentence([found])} {beside}".strip(),
        "caution": caution([found]),
        "how": f"Chances are {how} the draws, for an attacker who {EXPECTS[found.prior]}.",
        "legend": [
            {"look": f"level{i}", "says": step.meaning} for i, step in enumerate(risk.LEVELS)
        ],
    }


def restored(shown: Shown, answer: str) -> dict[str, Any]:
    """Restores an answer in pieces, with its number of unresolved placeholders."""
    restoring = Restoring(shown.session)
    received, words = _WORD.findall(answer), _WORD.findall(restoring.text(answer))
    if len(received) + len(words) > MARKED:
        return {"parts": [["".join(words)]], "unresolved": restoring.unresolved}
    parts: list[list[str]] = []
    for kind, start, end, begin, stop in SequenceMatcher(
        a=received, b=words, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            _append_plain(parts, "".join(words[begin:stop]))
        elif begin < stop:
            parts.append(["".join(words[begin:stop]), "restored", "".join(received[start:end])])
    return {"parts": parts, "unresolved": restoring.unresolved}


def happened(record: RequestRecord) -> dict[str, Any]:
    """Summarizes the record of a request as counts."""
    counts = sorted(record.protected.items())
    hidden = ", ".join(things(type_, count) for type_, count in counts)
    return {
        "time": round(record.began),
        "operation": record.operation,
        "hidden": hidden,
        "status": record.status,
        "reason": record.reason,
        "milliseconds": round(1000 * record.added),
    }


def styles(*, dark: bool) -> str:
    """Returns the CSS rules for the classes of `release` and `at_risk`."""
    looks = {name: each.css for name, each in groups.LOOKS.items() if name != PUBLIC}
    rules = [
        f".{name} {{ {css}; }}" for name, css in {**looks, DRAWN: groups.LOOKS["other"].css}.items()
    ]
    return "\n".join([types.styles(dark=dark), *([] if dark else [*rules, risk.STYLES])])


def _append_plain(parts: list[list[str]], text: str) -> None:
    if parts and len(parts[-1]) == 1:
        parts[-1][0] += text
    elif text:
        parts.append([text])


def _describe_item(item: Item, type_: str | None) -> tuple[str, str, str]:
    """Returns the class, the counted name and the meaning of an item."""
    if type_ is not None:
        family = types.FAMILIES[types.family(type_)]
        meaning = f"{things(type_, 1).removeprefix('1 ')} ({family.meaning})"
        return f"type-{types.family(type_)}", type_, meaning
    label = item.group.partition(" ")[0]
    if item.kind is Kind.NUMBER:
        return "figure", "figure", f"{groups.LOOKS['figure'].meaning}, in place of yours"
    if item.group in GROUPS:
        meaning = groups.LOOKS[item.group].meaning
        return item.group, item.group, f"drawn in place of your word; its group: {meaning}"
    if label.isupper():
        return "name", "name", f"{groups.LOOKS['name'].meaning}, in place of yours"
    return DRAWN, DRAWN, "drawn in place of your word"


def _build_legend(look: str, name: str, count: int) -> dict[str, Any]:
    if look.startswith("type-"):
        says = things(name, count)
    elif look == DRAWN:
        says = f"{things('WORD', count)} drawn"
    else:
        says = f"{things('WORD', count)} drawn ({groups.LOOKS[look].meaning})"
    return {"look": look, "count": count, "says": says}
