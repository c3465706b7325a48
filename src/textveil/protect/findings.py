"""Findings: detected values with the reason why they are hidden or stay.

They are for the owner of the text.

In: detections in texts, with all further occurrences. Out: the findings of each text.
Not here: detection (`textveil.detect`), and what is hidden (`grouping`).
"""

import math
from bisect import bisect_right
from dataclasses import asdict, dataclass

from textveil.detect import PRIVACY_THRESHOLD, REPEATED_SOURCE, Detections, Span
from textveil.protect.grouping import FAILED_SOURCE, Grouping, list_sensitive


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Detected part of a text, without its words; its place is private.

    Attributes:
        type: type of the value: "PERSON", "EMAIL".
        start: first character, in code points of the text.
        end: one past the last character.
        score: the detector's confidence, from 0 to 1.
        private: probability that it belongs to a private person, and to nothing public, from 0 to
            1.
        source: the detector's name; "spread" for a further occurrence of a value that was found
            elsewhere in the text.
        hidden: True if `Protector.protect` hides it.
        reason: reason why it is hidden or stays, in a few words.
    """

    type: str
    start: int
    end: int
    score: float
    private: float
    source: str
    hidden: bool
    reason: str

    def to_json(self) -> dict[str, object]:
        """Returns all fields as plain data."""
        return asdict(self)


def list_findings(grouping: Grouping, detections: Detections) -> list[list[Finding]]:
    """Returns the findings of each text, in order, without overlaps.

    Hidden findings are the parts that a release hides. A detection that stays is listed where it
    overlaps none of them.

    Args:
        grouping: the grouping that decides.
        detections: detections, propagated.
    """
    tokens = detections.tokens
    by_text: list[list[Finding]] = [[] for _ in tokens.texts]
    for first, stop, span in list_sensitive(detections):
        place = int(tokens.starts[first]), int(tokens.ends[stop - 1])
        by_text[span.text].append(_make_finding(span, *place, True, _explain_hidden(span)))
    hidden = [[*text_findings] for text_findings in by_text]
    for span in grouping.detection.merge_unchanged(detections):
        parts = hidden[span.text]
        at = bisect_right(parts, span.start, key=lambda part: part.end)
        if at == len(parts) or span.end <= parts[at].start:
            stays = _make_finding(span, span.start, span.end, False, _explain_stays(span, grouping))
            by_text[span.text].append(stays)
    return [sorted(text_findings, key=lambda finding: finding.start) for text_findings in by_text]


def _make_finding(span: Span, start: int, end: int, hidden: bool, reason: str) -> Finding:
    return Finding(
        type=span.type,
        start=start,
        end=end,
        score=span.score,
        private=span.privacy_score,
        source=span.source,
        hidden=hidden,
        reason=reason,
    )


def _explain_hidden(span: Span) -> str:
    again = {REPEATED_SOURCE: "occurs again", FAILED_SOURCE: "a detector failed"}
    return f"hidden: {again.get(span.source) or f'found by {span.source}'}"


def _explain_stays(span: Span, grouping: Grouping) -> str:
    if grouping.detection.is_at_level(span):
        return "stays: listed in protect.never"
    if span.privacy_score >= PRIVACY_THRESHOLD:
        return f"stays: protect.level={grouping.options.level} hides no names"
    return (
        f"stays: public (privacy score {math.floor(span.privacy_score * 100) / 100:g}, "
        f"threshold {PRIVACY_THRESHOLD:g})"
    )
