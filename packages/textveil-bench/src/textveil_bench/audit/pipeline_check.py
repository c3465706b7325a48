"""Checks that the pipeline follows its mechanism: budget, draws and statement.

In: a subject. Out: the finding `pipeline`.
Not here: whether the mechanism keeps its claim (`exact`, `sampled`), and which words are replaced
(`coverage`). Words are checked before re-ranking, which is post-processing of the release.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from textveil.config import Rerank
from textveil.mechanism import Block, Contextual, Restricting, Role
from textveil.pipeline import Result
from textveil.protect import find_public_words
from textveil.randomness import Ints, Values
from textveil.text import Kind
from textveil_bench.audit.audit_target import Subject
from textveil_bench.audit.finding import FLOAT64_TOLERANCE, AuditFinding


@dataclass(frozen=True, kw_only=True, eq=False)
class MechanismCall:
    """The arguments and the result of one draw."""

    block: Block
    parameter: Values
    released: Ints


class RecordingMechanism:
    """A mechanism wrapper that records every draw."""

    def __init__(self, mechanism: Any) -> None:
        self._mechanism, self.calls = mechanism, list[MechanismCall]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def privatize(self, table: Any, block: Block, parameter: Values, *, rng: Any) -> Any:
        """Draws with the wrapped mechanism."""
        released = self._mechanism.privatize(table, block, parameter, rng=rng)
        self.calls.append(
            MechanismCall(block=block, parameter=np.array(parameter), released=np.array(released))
        )
        return released


def check_pipeline(subject: Subject) -> AuditFinding:
    """Checks one text's parameters, statement and words against the mechanism.

    They must follow from its `calibrate`, `spend` and draws.
    """
    recording = RecordingMechanism(subject.mechanism)
    words = subject.table.words
    text = " ".join(
        [*words[:20], *(word.capitalize() for word in words[20:40]), "Zyqxorvian", *words[-20:]]
    )
    result = subject.replace_parts(mechanism=recording, rerank=Rerank()).privatize(text)
    if len(recording.calls) == 1:
        problems = [
            *_check_parameters(subject, recording.calls[0], result),
            *_check_shown(subject, recording.calls[0], result),
        ]
    else:
        problems = [f"the mechanism is asked for {len(recording.calls)} draws of one text"]
    return AuditFinding(
        check="pipeline",
        evidence="observed",
        verdict="violated" if problems else "holds",
        why="; ".join(problems)
        or "it asks for the budget, shows what is drawn and prints what is spent",
    )


def _check_parameters(subject: Subject, call: MechanismCall, result: Result) -> list[str]:
    """Checks that the requested budget is drawn with, and its spending printed."""
    layout, mechanism, guarantee = call.block.layout, subject.mechanism, result.guarantee
    adds_up = not (isinstance(mechanism, Contextual) and mechanism.context.mode == "original")
    expected = mechanism.parameters(subject.table, layout)
    if expected is None:
        # The pieces of a word share its budget, but where a draw is charged to all words anyway.
        pieces = np.bincount(layout.unit_of) if adds_up else np.ones(len(layout.unit_of))
        expected = mechanism.calibrate(
            subject.table, layout, subject.epsilon / pieces[layout.words]
        )
    problems = []
    if not np.allclose(call.parameter, expected, rtol=FLOAT64_TOLERANCE, atol=0, equal_nan=True):
        problems.append("the parameter of the draws is not that of the budget")
    if not np.allclose(
        guarantee.parameter, call.parameter, rtol=FLOAT64_TOLERANCE, atol=0, equal_nan=True
    ):
        problems.append("the parameter in the statement is not that of the draws")
    public = find_public_words(result.private.words, subject.privatizer.words)
    losses, spent = mechanism.spend(subject.table, layout, call.parameter), np.zeros(len(public))
    (np.add if adds_up else np.maximum).at(spent, layout.words, losses)
    spent[layout.unit_of[layout.roles == Role.PASS]] = np.inf
    items = {item.start: item for item in result.released.items}
    for word in layout.unit_of[layout.roles == Role.HOLE].tolist():
        if word not in items or items[word].kind is not Kind.PLACEHOLDER:
            spent[word] = np.inf  # neither drawn nor a placeholder
    if not np.allclose(guarantee.epsilon_per_word, spent[~public], rtol=FLOAT64_TOLERANCE, atol=0):
        problems.append("the epsilon in the statement is not what the mechanism spends")
    if isinstance(mechanism, Restricting) and guarantee.restricted is not None:
        restricted_epsilon = np.bincount(
            layout.words,
            mechanism.compute_restricted_epsilon(subject.table, layout, call.parameter),
        )
        if not np.isclose(
            guarantee.within, restricted_epsilon.max(), rtol=FLOAT64_TOLERANCE, atol=0
        ):
            problems.append(
                "the restricted epsilon in the statement is not what the mechanism spends"
            )
    return problems


def _check_shown(subject: Subject, call: MechanismCall, result: Result) -> list[str]:
    """Checks that the shown words are the drawn ones."""
    pieces = subject.privatizer.pieces
    rows: dict[int, list[int]] = {}
    for word, row in zip(call.block.layout.words.tolist(), call.released.tolist(), strict=True):
        rows.setdefault(word, []).append(row)
    items = {item.start: item for item in result.released.items}
    for word, word_rows in rows.items():
        if word not in items:
            return ["a word is drawn and not shown"]
        if min(word_rows) < 0:
            if items[word].kind is not Kind.PLACEHOLDER:
                return ["a word is shown where a placeholder was drawn"]
            continue
        expected = (
            subject.table.words[word_rows[0]]
            if pieces is None
            else pieces.join([np.array(word_rows)])[0]
        )
        if items[word].text.lower() != expected.lower():
            return ["another word is shown than was drawn"]
    return []
