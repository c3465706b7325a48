"""Coverage: every protected word is replaced, and failures release nothing.

In: a subject. Out: the findings `totality` and `error path`.
Not here: which words are public (`protect`), and rows of unknown words (`table`).
"""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from textveil.errors import BudgetError, TextveilError, VocabularyError
from textveil.pipeline import Privatizer, Result
from textveil.protect import find_public_words
from textveil.randomness import Streams, SystemRandomness
from textveil.table import EmbeddingTable
from textveil.text import Kind, tokenize
from textveil_bench.audit.audit_target import Subject
from textveil_bench.audit.finding import AuditFinding

STRANGE_TEXTS = (
    ("an unknown word", "Zyqxorvian"),
    ("a number", "8675309417"),
    ("a date", "1987-04-23"),
    ("an emoji", "\N{GRINNING FACE}"),
    ("a family of emoji", "\U0001f469‍\U0001f469‍\U0001f467"),
    ("a word of 200 pieces", "kvxz" * 50),
    ("an address", "jane.doe@example.org"),
    ("Chinese", "隱私"),
    ("Hebrew", "שלום"),
    ("Devanagari", "नमस्ते"),
    ("a ligature", "ﬁrm"),
    ("a control character", "\x07"),
    ("an accent without a letter", "x̧̣"),
)
"""Words outside every table that published code has passed, dropped or shifted."""

BOUNDED_SUMMARY = "every word replaced, none lost"
UNBOUNDED_SUMMARY = (
    "no word added; none passes, vanishes or is shifted, except where the statement is infinite"
)

LONG_TEXT_WORDS = 2_000
"""Words of a text that is longer than a language model's window."""

CANARY = "Canarybird"
"""A word in texts on which a part fails.

No error may show it.
"""


def check_totality(subject: Subject) -> AuditFinding:
    """Checks that each strange word becomes a table word or a placeholder.

    No word may be added, dropped, shifted or passed. If the statement is infinite, words may also
    pass, be dropped as the mask says, or be shifted numbers.
    """
    table = (
        subject.table.origin if subject.privatizer.rerank.m > 1 else subject.table
    )  # with re-ranking, a code can be spelled by any word
    table_words = {word.lower() for word in table.words}
    joined_text = " ".join(
        ["the", *(word for _, word in STRANGE_TEXTS), "and", subject.table.words[0]]
    )
    cases = [
        *STRANGE_TEXTS,
        ("an empty text", ""),
        ("spaces", "  \n"),
        ("all in one text", joined_text),
    ]
    cases.append(("a long text", " ".join([STRANGE_TEXTS[0][1]] * LONG_TEXT_WORDS)))
    problems, refusals, unbounded = [], 0, 0
    for label, text in cases:
        try:
            result = subject.privatizer.privatize(text)
        except (
            VocabularyError,
            BudgetError,
        ):  # not defects: `words.oov=error`, or a budget too small for a text
            refusals += 1
            continue
        text_problems = dict.fromkeys(
            _find_problems(subject.privatizer, text, result, table_words)
        )  # without repeats
        unbounded += result.guarantee.kind == "none"
        problems += [f"{label}: {problem}" for problem in text_problems]
    return AuditFinding(
        check="totality",
        evidence="observed",
        verdict="violated" if problems else "holds",
        found=float(len(problems)),
        claimed=0.0,
        why=_format_problems(problems)
        if problems
        else f"{len(cases)} texts, {refusals} refused: {UNBOUNDED_SUMMARY if unbounded else BOUNDED_SUMMARY}",
    )


def _find_problems(
    privatizer: Privatizer, text: str, result: Result, table_words: set[str]
) -> Iterator[str]:
    words = tokenize([text]).words
    items = result.released.items
    finite = result.guarantee.kind != "none"
    positions = [place for item in items for place in range(item.start, item.end)]
    dropped = set() if finite else set(result.released.mask.dropped)
    if positions != [place for place in range(len(words)) if place not in dropped] or len(
        items
    ) != len(positions):
        yield f"{len(words)} words became {len(items)} items"
        return
    public = find_public_words(words, privatizer.words)
    for item in items:
        word, released = words[item.start], item.text.lower()
        if item.kind is Kind.PLACEHOLDER or public[item.start]:
            continue
        if item.kind is Kind.NUMBER:
            if finite and privatizer.figures is None:
                yield "is a number that is only shifted, and the statement is finite"
            continue
        is_table_word = word.lower() in table_words
        if (not is_table_word and word.lower() == released) or item.kind is Kind.VERBATIM:
            if finite:
                yield "passes unprotected, and the statement is finite"
        elif privatizer.pieces is None and released not in table_words:
            yield "became a word that is not in the table"


def _format_problems(problems: list[str]) -> str:
    rest = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + rest


# ---- the error path ---------------------------------------------------------------------------------------


class _Failure(Exception):  # noqa: N818 (private)
    """The error of a broken part, with a word in its message."""


def _fail(*_: Any, **__: Any) -> Any:
    raise _Failure(f"cannot handle {CANARY}")


class _FailingPart:
    """A wrapper of a part in which one method raises."""

    def __init__(self, part: object, method: str) -> None:
        self._part, self._method = part, method

    def __getattr__(self, name: str) -> Any:
        return _fail if name == self._method else getattr(self._part, name)


class _FailingTable(EmbeddingTable):
    """A table that cannot look words up."""

    lookup = _fail


def _build_failing_table(table: EmbeddingTable) -> EmbeddingTable:
    """Copies the table and its parents, with lookups that fail."""
    failing_table = object.__new__(_FailingTable)
    parent = None if table.parent is None else _build_failing_table(table.parent)
    failing_table.__dict__.update({**table.__dict__, "parent": parent})
    return failing_table


class _FailingStreams(Streams):
    split_rows = _fail


class _FailingRandomness(SystemRandomness):
    """Randomness whose streams fail at the first draw."""

    def open(self, sizes: Any) -> Streams:
        return _FailingStreams(b"", np.asarray(sizes, np.int64))


def check_error_path(subject: Subject) -> AuditFinding:
    """Checks that a failing part releases nothing and shows no word."""
    table = _build_failing_table(subject.table)
    pieces = subject.privatizer.pieces  # they look words up instead of the table
    parts: dict[str, Callable[[], Privatizer]] = {
        "the mechanism": lambda: subject.replace_parts(
            mechanism=_FailingPart(subject.mechanism, "privatize")
        ),
        "the accounting": lambda: subject.replace_parts(
            mechanism=_FailingPart(subject.mechanism, "spend")
        ),
        "the table": lambda: subject.replace_parts(
            table=table, pieces=pieces and _FailingPart(pieces, "split")
        ),
    }
    if subject.claim.draws:
        parts["the randomness"] = lambda: subject.replace_parts(randomness=_FailingRandomness())
    text = f"{CANARY} {subject.table.words[0]} {CANARY}"
    problems = []
    for name, build in parts.items():
        try:
            build().privatize(text)
        except Exception as error:
            if not isinstance(error, TextveilError):
                problems.append(
                    f"{name} fails: {type(error).__name__} instead of an error of textveil"
                )
            if CANARY.lower() in "".join(traceback.format_exception(error)).lower():
                problems.append(f"{name} fails: the error shows a word")
        else:
            problems.append(f"{name} fails: a text is released nevertheless")
    return AuditFinding(
        check="error path",
        evidence="observed",
        verdict="violated" if problems else "holds",
        found=float(len(problems)),
        claimed=0.0,
        why=_format_problems(problems)
        or f"{len(parts)} parts made to fail: no output, no word in an error",
    )
