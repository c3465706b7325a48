"""Every protected word is replaced, whatever it is; and nothing comes out when a part fails.

In: a subject. Out: the findings `totality` and `error path`.
Not here: which words are public (`protect`), and how unknown words become rows (`table`).
"""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from textveil.errors import BudgetError, TextveilError, VocabularyError
from textveil.pipeline import Privatizer, Result
from textveil.protect import listed
from textveil.randomness import Streams, SystemRandomness
from textveil.table import EmbeddingTable
from textveil.text import Kind, tokenize
from textveil_bench.audit.finding import AuditFinding
from textveil_bench.audit.subject import Subject

STRANGE = (
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
"""What no table has, and what public code has passed, dropped or only shifted."""

ALL = "every word replaced, none lost"
MAY = "no word added, and none passes, vanishes or is shifted but where the statement is infinite"

LONG = 2_000
"""Words of a text that is longer than the window of a language model."""

CANARY = "Canarybird"
"""Stands in texts on which a part fails; no error may show it."""


def totality(subject: Subject) -> AuditFinding:
    """Each strange word comes out as a table's word or a placeholder; none is added, dropped, shifted or passed.

    Where the statement is infinite, words may also pass, be dropped as the mask says, or be numbers that are moved.
    """
    table = (
        subject.table.origin if subject.privatizer.rerank.m > 1 else subject.table
    )  # codes are spelled by any word
    known = {word.lower() for word in table.words}
    mixed = " ".join(["the", *(word for _, word in STRANGE), "and", subject.table.words[0]])
    cases = [*STRANGE, ("an empty text", ""), ("spaces", "  \n"), ("all in one text", mixed)]
    cases.append(("a long text", " ".join([STRANGE[0][1]] * LONG)))
    problems, refused, unbounded = [], 0, 0
    for what, text in cases:
        try:
            result = subject.privatizer.privatize(text)
        except (
            VocabularyError,
            BudgetError,
        ):  # `words.oov=error` and a budget too small for a text are no defects
            refused += 1
            continue
        found = dict.fromkeys(
            _problems(subject.privatizer, text, result, known)
        )  # each of them once
        unbounded += result.guarantee.kind == "none"
        problems += [f"{what}: {problem}" for problem in found]
    return AuditFinding(
        check="totality",
        evidence="observed",
        verdict="violated" if problems else "holds",
        found=float(len(problems)),
        claimed=0.0,
        why=_several(problems)
        if problems
        else f"{len(cases)} texts, {refused} refused: {MAY if unbounded else ALL}",
    )


def _problems(privatizer: Privatizer, text: str, result: Result, known: set[str]) -> Iterator[str]:
    words = tokenize([text]).words
    items = result.released.items
    finite = result.guarantee.kind != "none"
    covered = [place for item in items for place in range(item.start, item.end)]
    dropped = set() if finite else set(result.released.mask.dropped)
    if covered != [place for place in range(len(words)) if place not in dropped] or len(
        items
    ) != len(covered):
        yield f"{len(words)} words became {len(items)} items"
        return
    public = listed(words, privatizer.words)
    for item in items:
        word, shown = words[item.start], item.text.lower()
        if item.kind is Kind.PLACEHOLDER or public[item.start]:
            continue
        if item.kind is Kind.NUMBER:
            if finite and privatizer.figures is None:
                yield "is a number that is only moved, and the statement is finite"
            continue
        own = word.lower() in known
        if (not own and word.lower() == shown) or item.kind is Kind.VERBATIM:
            if finite:
                yield "passes unprotected, and the statement is finite"
        elif privatizer.pieces is None and shown not in known:
            yield "became a word that is not in the table"


def _several(problems: list[str]) -> str:
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


# ---- the error path ---------------------------------------------------------------------------------------


class _Failure(Exception):  # noqa: N818 (its name is no part of any interface)
    """What a broken part raises, with a word in its message."""


def _fail(*_: Any, **__: Any) -> Any:
    raise _Failure(f"cannot handle {CANARY}")


class _Failing:
    """A part in which one method raises; everything else is the part's own."""

    def __init__(self, part: object, method: str) -> None:
        self._part, self._method = part, method

    def __getattr__(self, name: str) -> Any:
        return _fail if name == self._method else getattr(self._part, name)


class _FailingTable(EmbeddingTable):
    """A table that cannot look words up."""

    lookup = _fail


def _failing(table: EmbeddingTable) -> EmbeddingTable:
    """The same table, and those that it is a view of, unable to look words up."""
    made = object.__new__(_FailingTable)
    parent = None if table.parent is None else _failing(table.parent)
    made.__dict__.update({**table.__dict__, "parent": parent})
    return made


class _FailingStreams(Streams):
    chunks = _fail


class _FailingRandomness(SystemRandomness):
    """Randomness whose streams end at the first draw."""

    def open(self, sizes: Any) -> Streams:
        return _FailingStreams(b"", np.asarray(sizes, np.int64))


def error_path(subject: Subject) -> AuditFinding:
    """With a part that raises: no output, and an error that shows no word of the text."""
    table = _failing(subject.table)
    pieces = subject.privatizer.pieces  # which look words up in the table's place
    parts: dict[str, Callable[[], Privatizer]] = {
        "the mechanism": lambda: subject.with_parts(
            mechanism=_Failing(subject.mechanism, "privatize")
        ),
        "the accounting": lambda: subject.with_parts(
            mechanism=_Failing(subject.mechanism, "spend")
        ),
        "the table": lambda: subject.with_parts(
            table=table, pieces=pieces and _Failing(pieces, "cut")
        ),
    }
    if subject.claim.draws:
        parts["the randomness"] = lambda: subject.with_parts(randomness=_FailingRandomness())
    text = f"{CANARY} {subject.table.words[0]} {CANARY}"
    problems = []
    for what, broken in parts.items():
        try:
            broken().privatize(text)
        except Exception as error:
            if not isinstance(error, TextveilError):
                problems.append(
                    f"{what} fails: {type(error).__name__} instead of an error of textveil"
                )
            if CANARY.lower() in "".join(traceback.format_exception(error)).lower():
                problems.append(f"{what} fails: the error shows a word")
        else:
            problems.append(f"{what} fails: something is released all the same")
    return AuditFinding(
        check="error path",
        evidence="observed",
        verdict="violated" if problems else "holds",
        found=float(len(problems)),
        claimed=0.0,
        why=_several(problems)
        or f"{len(parts)} parts made to fail: no output, no word in an error",
    )
