"""Candidates: texts for a library, written by a language model from public descriptions alone.

In: sentences of classes, public examples; or a library and the votes for its cells. Out: prompts,
and the texts that a model writes for them.
Not here: how a model is called (`models.endpoint`), and how a library is made (`making`).

A prompt follows from what its plan is given, and a plan is given nothing private: no private text,
no count of private labels, no private word. After a vote the texts of cells that got many votes are
varied; those texts are the library's own, and which cells they are of follows from the noisy votes.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from textveil.errors import ConfigError, InputError, quote_file
from textveil.files import convert_write_errors
from textveil.library.library import Level, Library
from textveil.library.making import ProgressCallback
from textveil.models import Endpoint
from textveil.randomness import Ids, Values

Prompt = tuple[str, str]
"""A system message and a user message."""

Choice = TypeVar("Choice")

TEMPERATURE = 1.0
"""The sampling temperature: candidates are to differ."""

LENGTHS = (15, 30, 60, 100)
"""The lengths of candidates, in words."""

MAX_CANDIDATES = 1_000_000

EXAMPLES_SHOWN = 2
MAX_EXAMPLE = 600
"""The most characters that are shown of a public example."""

MAX_ANSWER = 8_000
"""The most characters that are kept of an answer."""

SYSTEM = (
    "You write texts for a collection of examples. Answer with one text and nothing else: no "
    "title, no quotation marks, no remarks. Invent all names and numbers, and copy no existing "
    "text."
)

TONES = (
    *("plain", "friendly", "formal", "impatient", "dry", "cheerful", "worried", "matter-of-fact"),
    *("wordy", "terse", "polite", "blunt"),
)

SETTINGS = (
    *("a small town", "a large city", "the countryside", "the coast", "abroad", "a workplace"),
    *("a school", "a shop", "a home", "a journey", "an office", "a public place"),
)

TURNS = (
    "Name a price or an amount.",
    "Name a day or a season.",
    "Name a place.",
    "Ask something in it.",
    "Compare two things.",
    "Say what happened first and what came of it.",
    "Begin in the middle of the matter.",
    "Give one small detail that others would leave out.",
    "Quote somebody briefly.",
    "Name a thing that somebody owns.",
    "Say how long something took.",
    "Use no adjective that praises or blames.",
)


@dataclass(frozen=True, kw_only=True)
class CandidatePlan:
    """Prompts for a language model: one for each candidate.

    Attributes:
        prompts: the messages.
        labels: the class of each candidate, or the label of the text that is varied.
        origins: the text of the library that each varies; -1 where there is none.
        words: the length that each is to have.
        digest: of all that prompts follow from, but not of how many there are: more of the same
            plan begin with the same ones.
    """

    prompts: tuple[Prompt, ...] = field(repr=False)
    labels: tuple[str | None, ...] = field(repr=False)
    origins: tuple[int, ...] = field(repr=False)
    words: tuple[int, ...] = field(repr=False)
    digest: str

    def __len__(self) -> int:
        return len(self.prompts)

    def estimate_tokens(self) -> tuple[int, int]:
        """Estimates the tokens that are sent and received, at 4 characters or 3/4 word each."""
        sent = sum(len(system) + len(user) for system, user in self.prompts) // 4
        return sent, sum(self.words) * 4 // 3

    @property
    def max_tokens(self) -> int:
        """A length that no answer should need."""
        return 4 * max(self.words, default=0) + 100


def plan_candidates(
    classes: Mapping[str, str],
    count: int,
    *,
    examples: Mapping[str, Sequence[str]] | None = None,
    lengths: Sequence[int] = LENGTHS,
    seed: int = 0,
) -> CandidatePlan:
    """Plans candidates: of all classes in turn, so that each has as many.

    Args:
        classes: the public sentence of each class.
        count: how many candidates.
        examples: public texts by class, two of which a prompt shows.
        lengths: numbers of words.
        seed: another one gives other attributes.

    Raises:
        ConfigError: an option is out of range.
    """
    if len(classes) < 2:
        raise ConfigError("classes must be at least two, each with a sentence that describes it")
    if not len(classes) <= count <= MAX_CANDIDATES:
        raise ConfigError(
            f"count must be {len(classes)} (one candidate a class) to {MAX_CANDIDATES:,}, got "
            f"{count:,}"
        )
    if not lengths or not all(1 <= words <= 1000 for words in lengths):
        raise ConfigError("lengths must be 1 to 1,000 words")
    names = list(classes)
    prompts, words = [], []
    for number in range(count):
        name = names[number % len(names)]
        choose = _PublicChoice(seed, number)
        length = choose("length", lengths)
        lines = [
            f"Kind of text: {classes[name]}",
            f"Length: about {length} words.",
            f"Tone: {choose('tone', TONES)}. Setting: {choose('setting', SETTINGS)}.",
            choose("turn", TURNS),
        ]
        shown = choose.pick("example", (examples or {}).get(name, ()), EXAMPLES_SHOWN)
        if shown:
            lines += ["Texts of this kind, which yours is not to repeat:", *map(_quote, shown)]
        prompts.append((SYSTEM, "\n".join([*lines, "Write one new text of this kind."])))
        words.append(length)
    return CandidatePlan(
        prompts=tuple(prompts),
        labels=tuple(names[number % len(names)] for number in range(count)),
        origins=(-1,) * count,
        words=tuple(words),
        digest=_hash([SYSTEM, dict(classes), examples or {}, list(lengths), seed]),
    )


def plan_variations(
    library: Library, level: Level, weights: Values, *, count: int | None = None, seed: int = 0
) -> tuple[CandidatePlan, Ids]:
    """Plans variations of the texts in the half of the cells that has most votes.

    Args:
        library: the one that was voted on.
        level: the cells.
        weights: float64 [K], the noisy votes of each cell: what was released, never true counts.
        count: how many variations; None for one of each text that is kept.
        seed: another one gives other variations.

    Returns:
        The plan, and the texts that are kept, int64 [n], rising.

    Raises:
        ConfigError: an option is out of range, or there are not as many weights as cells.
    """
    if weights.shape != (len(level),):
        raise ConfigError(f"votes must be one number for each of {len(level)} cells")
    best = np.argsort(-weights, kind="stable")[: (len(level) + 1) // 2]
    rows = np.flatnonzero(np.isin(level.cells, best)).astype(np.int64)
    count = len(rows) if count is None else count
    if not 1 <= count <= MAX_CANDIDATES:
        raise ConfigError(f"count must be 1 to {MAX_CANDIDATES:,}, got {count:,}")
    order = sorted(rows.tolist(), key=lambda i: _hash([seed, i]))
    origins = [order[number % len(order)] for number in range(count)]
    prompts, words = [], []
    for number, origin in enumerate(origins):
        text = library.texts[origin][:MAX_ANSWER]
        turn = _PublicChoice(seed, number)("turn", TURNS)
        prompts.append(
            (
                SYSTEM,
                f"{_quote(text, MAX_ANSWER)}\nWrite another text of the same kind and of about the "
                f"same length, with other words and other details. {turn}",
            )
        )
        words.append(max(len(text.split()), 1))
    names = library.label_names
    return CandidatePlan(
        prompts=tuple(prompts),
        labels=tuple(
            None if library.labels is None else names[library.labels[origin]] for origin in origins
        ),
        origins=tuple(origins),
        words=tuple(words),
        digest=_hash([SYSTEM, library.digest, level.name, sorted(best.tolist()), seed]),
    ), rows


def make_candidates(
    endpoint: Endpoint,
    plan: CandidatePlan,
    *,
    work: Path | None = None,
    max_tokens: int | None = None,
    report: ProgressCallback = lambda *_: None,
) -> list[str]:
    """Asks a model for the candidates of a plan.

    Args:
        endpoint: the model.
        plan: what is asked.
        work: a file that keeps what was written, from which the same plan is continued; it may be
            read as .jsonl with the fields text and label.
        max_tokens: the largest length of an answer; None for one that the plan estimates.
        report: callback for progress.

    Raises:
        EndpointError: the model did not answer; answers before are in `work`.
        InputError: `work` is of another plan, or damaged.
        OutputError: `work` cannot be written.
    """
    texts = [] if work is None else _read_work(work, plan)[: len(plan)]
    size = endpoint.workers
    report("candidates written", len(texts), len(plan))
    while len(texts) < len(plan):
        start = len(texts)
        answers = endpoint.ask(
            plan.prompts[start : start + size], max_tokens=max_tokens or plan.max_tokens
        )
        written = list(map(clean_answer, answers))
        if work is not None:
            _append_work(work, plan, start, written)
        texts += written
        report("candidates written", len(texts), len(plan))
    return texts


def clean_answer(answer: str) -> str:
    """Returns an answer without what models put around a text: spaces, quotation marks, fences."""
    text = answer.encode(errors="replace").decode().replace("\0", "").strip()
    lines = text.splitlines()
    if len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        text = "\n".join(lines[1:-1]).strip()
    for opening, closing in ('""', "\u201c\u201d"):
        inner = text[1:-1]
        if len(text) > 2 and text[0] == opening and text[-1] == closing:
            text = text if opening in inner or closing in inner else inner.strip()
    return text[:MAX_ANSWER]


class _PublicChoice:
    """Public choices for one candidate, the same whenever they are made."""

    def __init__(self, seed: int, number: int) -> None:
        self._place = [seed, number]

    def __call__(self, purpose: str, choices: Sequence[Choice]) -> Choice:
        return self.pick(purpose, choices, 1)[0]

    def pick(self, purpose: str, choices: Sequence[Choice], count: int) -> list[Choice]:
        """Returns some of the choices, each at most once."""
        first = int(_hash([*self._place, purpose])[:15], 16)
        return [choices[(first + i) % len(choices)] for i in range(min(count, len(choices)))]


def _quote(text: str, limit: int = MAX_EXAMPLE) -> str:
    return f"<text>{' '.join(text.split())[:limit]}</text>"


def _hash(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


# ---- the file of what was written ----------------------------------------------------------------


def _read_work(work: Path, plan: CandidatePlan) -> list[str]:
    """Reads what was written before; a line that broke off is cut."""
    if not work.exists():
        return []
    try:
        content = work.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        rows = [json.loads(line) for line in whole.splitlines()]
        texts = [str(row["text"]) for row in rows]
        plans = {row["plan"] for row in rows}
        if [row["number"] for row in rows] != list(range(len(rows))):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{quote_file(work)} cannot be read as candidates: move it away") from None
    if plans - {plan.digest[:16]}:
        raise InputError(
            f"{quote_file(work)} holds candidates that were asked for in another way: move it away "
            "to begin anew, or give the options of that time"
        )
    if len(whole) < len(content):
        with convert_write_errors():
            os.truncate(work, len(whole))
    return texts


def _append_work(work: Path, plan: CandidatePlan, start: int, texts: Sequence[str]) -> None:
    with convert_write_errors(), open(work, "a", encoding="utf-8", newline="\n") as file:
        file.writelines(_yield_lines(plan, start, texts))
        file.flush()
        os.fsync(file.fileno())


def _yield_lines(plan: CandidatePlan, start: int, texts: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(texts, start):
        row = {"plan": plan.digest[:16], "number": number, "text": text}
        if (label := plan.labels[number]) is not None:
            row["label"] = label
        yield json.dumps(row, ensure_ascii=False) + "\n"
