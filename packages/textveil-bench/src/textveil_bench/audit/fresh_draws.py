"""Fresh draws: documents, calls, threads, parts and processes never repeat draws.

In: a subject, which is also run in other processes. Out: the findings `streams` and `seed`.
Not here: the streams (`textveil.randomness.streams`), and whether single draws follow a law
(`fit`).
"""

import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from textveil.errors import RandomnessError
from textveil.mechanism import Block, Layout
from textveil.pipeline import Privatizer, Result
from textveil.protect import find_public_words
from textveil_bench.audit.audit_target import Subject, build_singles
from textveil_bench.audit.finding import ALARM_RATE, AuditFinding, make_skipped

TEXT_WORDS = 200
"""Repetitions of one word in the text: its releases follow one law."""

PROCESS_TIMEOUT = 120.0
"""Seconds until a separate process is ended."""

FORK_TIMEOUT = 30
"""Seconds until its forked children are ended."""

UNTRIED_NOTE = "some runs in other processes failed"

Run = tuple[str, tuple[str, ...]]
"""The name of a run, and its released words."""

ProcessOutcome = tuple[list[Run], str]
"""The runs of a process, and the reason for missing ones."""


# ---- processes --------------------------------------------------------------------------------------------

WORKER = "from textveil_bench.audit.fresh_draws import serve; serve()"
"""The code of a separate process.

It imports nothing of the auditing script, which may have no main guard, or no file.
"""


def run_processes(task: bytes) -> list[ProcessOutcome]:
    """Runs the task in two fresh processes; returns releases or errors.

    Each process answers once, so no answer can be late.
    """
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(_ask, [task] * 2))


def _ask(task: bytes) -> ProcessOutcome:
    path = os.pathsep.join(filter(None, sys.path))  # so that the classes of the task are found
    with (
        tempfile.TemporaryFile() as answer
    ):  # not a pipe: children of a killed process would keep it open
        try:
            process = subprocess.run(
                [sys.executable, "-c", WORKER],
                input=task,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                timeout=PROCESS_TIMEOUT,
                env={**os.environ, "PYTHONPATH": path},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [], f"no answer within {PROCESS_TIMEOUT:g} s"
        except OSError as error:
            return [], type(error).__name__
        answer.seek(0)
        try:
            outcome: ProcessOutcome = pickle.load(answer)
        except Exception:  # an empty or incomplete answer
            return [], f"it ended with code {process.returncode}"
    return outcome


def serve() -> None:
    """Runs one task from standard input; writes the answer to output."""
    answer = os.dup(1)
    os.dup2(2, 1)  # keeps a mechanism's prints out of the answer
    outcome = _run_task(sys.stdin.buffer.read())
    with os.fdopen(answer, "wb") as file:
        pickle.dump(outcome, file)


def _run_task(task: bytes) -> ProcessOutcome:
    """Privatizes with the pickled privatizer, and with one built here."""
    try:
        privatizer, build, text = pickle.loads(task)
    except Exception as error:
        return [], f"it cannot be loaded there ({type(error).__name__})"
    runs: list[Run] = []
    try:
        runs.append(("a pickled copy", _list_words(privatizer.privatize(text))))
        runs.append(("a fresh process", _list_words(build(seed=None).privatize(text))))
        outcomes = _run_forks(privatizer, text)
    except Exception as error:  # an error is an outcome here; its message may hold words
        return runs, f"raised {type(error).__name__}"
    return runs + [run for child_runs, _ in outcomes for run in child_runs], "; ".join(
        {why for _, why in outcomes if why}
    )


def _run_forks(privatizer: Privatizer, text: str) -> list[ProcessOutcome]:
    """Runs two forked children, which inherit this process's memory and past draws."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return [([], "there is no fork here")]
    context = multiprocessing.get_context("fork")
    pipes = []
    for _ in range(2):
        receiver, sender = context.Pipe(duplex=False)
        context.Process(target=_run_child, args=(privatizer, text, sender), daemon=True).start()
        sender.close()
        pipes.append(receiver)
    outcomes: list[ProcessOutcome] = []
    for pipe in pipes:
        try:
            outcomes.append(pipe.recv())
        except (EOFError, OSError):
            outcomes.append(([], "a forked process ended"))
    return outcomes


def _run_child(privatizer: Privatizer, text: str, pipe: Connection) -> None:
    signal.alarm(FORK_TIMEOUT)  # ends a child whose locks were taken when it was forked
    try:
        pipe.send(([("a forked process", _list_words(privatizer.privatize(text)))], ""))
    except RandomnessError:  # it refuses to draw, so it repeats nothing
        pipe.send(([], ""))
    except Exception as error:  # as in `_run_task`
        pipe.send(([], f"raised {type(error).__name__}"))


# ---- runs -------------------------------------------------------------------------------------------------


def build_text(subject: Subject) -> str:
    """Builds a text of one protected table word, many times."""
    words = [
        word for word in subject.table.words if word.isascii() and word.isalpha() and len(word) > 2
    ]
    options = subject.privatizer.words
    hidden = [
        word
        for word, public in zip(words, find_public_words(words, options), strict=True)
        if not public
    ]
    return " ".join([(hidden or list(subject.table.words))[0]] * TEXT_WORDS)


def _list_words(result: Result) -> tuple[str, ...]:
    return tuple(item.text for item in result.released.items)


@lru_cache(maxsize=1)  # two checks use the same runs
def make_runs(subject: Subject) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Makes all runs of one text, and lists why some are missing.

    No run may repeat another.
    """
    privatizer, text = subject.privatizer, build_text(subject)
    all_runs: list[Run] = [
        ("a document of one call", _list_words(result))
        for result in privatizer.privatize_many([text] * 3)
    ]
    all_runs += [("a later call", _list_words(privatizer.privatize(text))) for _ in range(2)]
    for first in (0, 1):
        all_runs += [
            ("a part", _list_words(result))
            for result in privatizer.privatize_many([text], first=first)
        ]
    with ThreadPoolExecutor(2) as pool:
        all_runs += [
            ("a thread", _list_words(result))
            for result in pool.map(privatizer.privatize, [text] * 2)
        ]
    task = _dump_task((privatizer, subject.build, text))
    if task is None:
        return tuple(all_runs), ("it does not pickle",)
    outcomes = run_processes(task)
    all_runs += [run for process_runs, _ in outcomes for run in process_runs]
    return tuple(all_runs), tuple(sorted({why for _, why in outcomes if why}))


def _dump_task(task: tuple[Any, ...]) -> bytes | None:
    try:
        return pickle.dumps(task)
    except Exception:  # a third-party mechanism may raise anything
        return None


def check_streams(subject: Subject) -> AuditFinding:
    """Checks that no two runs agree at more places than by chance.

    The text repeats one word, so all places follow one law, and two runs at different places show
    how often independent draws agree. Runs of a privatizer with a seed are compared with each other
    too.
    """
    name = "streams"
    if not subject.claim.draws:
        return make_skipped(name, "nothing is drawn")
    all_runs, missing = make_runs(subject)
    verdict = _find_agreement(all_runs, ALARM_RATE / 2)
    if verdict is None:
        return make_skipped(
            name,
            (
                "at this budget nearly every word stays, so equal outputs prove nothing; take a "
                "smaller one"
            ),
        )
    pair, agreement, chance = verdict
    if not pair:
        seeded = _find_agreement(_make_seeded_runs(subject), ALARM_RATE / 2)
        if seeded is not None and seeded[0]:
            pair, agreement, chance = f"with a seed: {seeded[0]}", seeded[1], seeded[2]
    if pair:
        why = f"{pair} agree at {agreement:.0%} of the places"
    elif missing:
        return make_skipped(
            name, f"{UNTRIED_NOTE}: {'; '.join(missing)}; other runs agree as by chance"
        )
    else:
        why = (
            f"{len(all_runs)} runs (documents, calls, parts, threads, processes) agree as by chance"
        )
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="violated" if pair else "holds",
        claimed=chance,
        found=agreement,
        why=why,
        alarm=ALARM_RATE,
    )


def is_input_dependent(subject: Subject) -> bool:
    """True if the output depends on the words, for mechanisms without draws."""
    table = subject.slice
    rows = np.arange(len(table))
    single_release = subject.sample(
        table, build_singles(rows), subject.compute_parameter(table, build_singles(rows).layout)
    )
    layout = Layout.build(len(rows))
    parameter = subject.compute_parameter(table, layout)
    joint_releases = [
        subject.sample(table, Block(layout=layout, rows=values), parameter)
        for values in (rows, rows[::-1].copy(), np.zeros_like(rows))
    ]
    return (
        len(set(single_release.tolist())) > 1
        or len({values.tobytes() for values in joint_releases}) > 1
    )


def _make_seeded_runs(subject: Subject) -> tuple[Run, ...]:
    """Makes runs of one seeded privatizer: documents, next call, two parts."""
    text = build_text(subject)
    privatizer = subject.build(seed=1)
    all_runs: list[Run] = [
        ("a document of one call", _list_words(result))
        for result in privatizer.privatize_many([text] * 2)
    ]
    all_runs += [("a later call", _list_words(privatizer.privatize(text)))]
    for first in (0, 1):
        all_runs += [
            ("a part", _list_words(result))
            for result in privatizer.privatize_many([text], first=first)
        ]
    return tuple(all_runs)


def _find_agreement(
    all_runs: Sequence[Run], alarm: float = ALARM_RATE
) -> tuple[str, float, float] | None:
    """Finds the pair of runs that agrees most beyond chance.

    Runs are compared with each other and with themselves at every shift up to half of their length.

    Returns:
        the pair (empty if none is beyond chance), its share of equal places, and the largest share
            that chance allows; None if chance alone would make runs equal.
    """
    if len({len(words) for _, words in all_runs}) != 1:
        return "runs of different lengths", 1.0, 0.0
    names = [name for name, _ in all_runs]
    total, n = len(all_runs), len(all_runs[0][1])
    _, codes = np.unique([words for _, words in all_runs], return_inverse=True)
    matrix = codes.reshape(total, n)
    counts = np.bincount(matrix.ravel())
    pairs = float((counts * (counts - 1)).sum()) / (matrix.size * (matrix.size - 1))
    chance = min(
        1.0, pairs + math.sqrt(math.log(2 / alarm) / matrix.size)
    )  # Hoeffding (1963, section 5b)
    shifts = n // 2 + 1
    pair_alarm = alarm / 2 / (total**2 * shifts + 2 * total * shifts)
    if chance**n > pair_alarm:
        return None
    worst = ("", 0.0, 1.0)
    for shift in range(shifts):
        agree = (matrix[:, None, : n - shift] == matrix[None, :, shift:]).sum(axis=2)
        np.fill_diagonal(agree, 0)
        i, j = np.unravel_index(agree.argmax(), agree.shape)
        worst = _pick_worse(
            worst,
            f"{names[i]} and {names[j]}{_format_shift(shift)}",
            int(agree[i, j]),
            n - shift,
            chance,
            pair_alarm,
        )
        for phase in (0, 1) if shift else ():
            # disjoint and so independent pairs of places: every second block of `shift` places with
            # the next block
            places = np.flatnonzero((np.arange(n - shift) // shift) % 2 == phase)
            if len(places) < n // 4:
                continue  # too few places
            agreements = (matrix[:, places] == matrix[:, places + shift]).sum(axis=1)
            k = int(agreements.argmax())
            worst = _pick_worse(
                worst,
                f"words of {names[k]}{_format_shift(shift)}",
                int(agreements[k]),
                len(places),
                chance,
                pair_alarm,
            )
    return worst


def _format_shift(shift: int) -> str:
    return f", {shift} places apart," if shift else ""


def _pick_worse(
    worst: tuple[str, float, float], pair: str, agree: int, places: int, chance: float, alarm: float
) -> tuple[str, float, float]:
    """Picks the worse of two agreements.

    An agreement beyond chance is worse; then the larger excess.
    """
    from scipy.special import bdtrc

    limit = int(
        (bdtrc(np.arange(places + 1), places, chance) <= alarm).argmax()
    )  # more agreements are beyond chance
    offender = pair if agree > limit else ""
    return max(
        worst,
        (offender, agree / places, limit / places),
        key=lambda verdict: (bool(verdict[0]), verdict[1] - verdict[2]),
    )


# ---- the seed ---------------------------------------------------------------------------------------------


def check_seed(subject: Subject) -> AuditFinding:
    """Checks that the default has no seed, and seeded runs say so.

    Fresh builds must differ.
    """
    name = "seed"
    if not subject.claim.draws:
        return make_skipped(name, "nothing is drawn")
    text = build_text(subject)
    plain = subject.privatizer.privatize(text).guarantee
    problems = []
    if subject.privatizer.randomness.is_seeded or plain.seeded:
        problems.append("the default has a seed")
    all_runs, missing = make_runs(subject)
    fresh = [run for run in all_runs if run[0] == "a fresh process"]
    fresh += [
        ("a fresh build", _list_words(subject.build(seed=None).privatize(text))) for _ in range(2)
    ]
    agreement = _find_agreement(fresh)
    if agreement is not None and agreement[0]:
        problems.append(
            f"{agreement[0]} agree at {agreement[1]:.0%} of the places without any seed"
        )
    seeded = subject.build(seed=1).privatize(text).guarantee
    if not seeded.seeded or "seed" not in seeded.headline():
        problems.append("a run with a seed does not say so in its statement")
    if missing and not problems:
        return make_skipped(
            name, f"{UNTRIED_NOTE}: {'; '.join(missing)}; builds in this one differ"
        )
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="violated" if problems else "holds",
        alarm=ALARM_RATE,
        why="; ".join(problems) or f"{len(fresh)} builds differ, and a run with a seed says so",
    )
