"""Fresh draws: no two documents, calls, threads, parts or processes may repeat one another's.

In: a subject, which is tried in processes of its own too. Out: the findings `streams` and `seed`.
Not here: how streams are made (`textveil.randomness.streams`), and whether single draws follow a law (`fit`).
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
from textveil.protect import listed
from textveil_bench.audit.finding import ALARM, AuditFinding, skipped
from textveil_bench.audit.subject import Subject, singles

LENGTH = 200
"""Times that one word stands in the text: its released words are draws of one law."""

PATIENCE = 120.0
"""Seconds that a process of its own may take."""

FORKED = 30
"""Seconds that its forked children may take."""

UNTRIED = "not everything could be tried in other processes"

Run = tuple[str, tuple[str, ...]]
"""Who ran, and what was released, word by word."""

Outcome = tuple[list[Run], str]
"""The runs of a process, and why there are not more."""


# ---- processes --------------------------------------------------------------------------------------------

WORKER = "from textveil_bench.audit.streams import serve; serve()"
"""What a process of its own runs: nothing of the script that audits, which may have no guard, or no file."""


def elsewhere(task: bytes) -> list[Outcome]:
    """What two fresh processes released, and why one did not. Each answers once, so no answer comes too late."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(_ask, [task] * 2))


def _ask(task: bytes) -> Outcome:
    path = os.pathsep.join(filter(None, sys.path))  # where the classes of the task are
    with (
        tempfile.TemporaryFile() as answer
    ):  # no pipe: children of a process that was ended would keep it open
        try:
            ended = subprocess.run(
                [sys.executable, "-c", WORKER],
                input=task,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
                env={**os.environ, "PYTHONPATH": path},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [], f"no answer within {PATIENCE:g} s"
        except OSError as error:
            return [], type(error).__name__
        answer.seek(0)
        try:
            found: Outcome = pickle.load(answer)
        except Exception:  # nothing, or half of an answer
            return [], f"it ended with code {ended.returncode}"
    return found


def serve() -> None:
    """The life of such a process: one task from standard input, one answer to standard output."""
    answer = os.dup(1)
    os.dup2(2, 1)  # what a mechanism prints is no answer
    found = _work(sys.stdin.buffer.read())
    with os.fdopen(answer, "wb") as file:
        pickle.dump(found, file)


def _work(task: bytes) -> Outcome:
    """Privatizes with what was sent, and with what is built here."""
    try:
        privatizer, build, text = pickle.loads(task)
    except Exception as error:
        return [], f"it cannot be loaded there ({type(error).__name__})"
    runs: list[Run] = []
    try:
        runs.append(("a pickled copy", _words(privatizer.privatize(text))))
        runs.append(("a fresh process", _words(build(seed=None).privatize(text))))
        forked = _forked(privatizer, text)
    except Exception as error:  # an error is an outcome here; its message may hold words
        return runs, f"raised {type(error).__name__}"
    return runs + [run for found, _ in forked for run in found], "; ".join(
        {why for _, why in forked if why}
    )


def _forked(privatizer: Privatizer, text: str) -> list[Outcome]:
    """Two children of this process, which inherit its memory and what was drawn in it."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return [([], "there is no fork here")]
    context = multiprocessing.get_context("fork")
    pipes = []
    for _ in range(2):
        ours, theirs = context.Pipe(duplex=False)
        context.Process(target=_child, args=(privatizer, text, theirs), daemon=True).start()
        theirs.close()
        pipes.append(ours)
    found: list[Outcome] = []
    for pipe in pipes:
        try:
            found.append(pipe.recv())
        except (EOFError, OSError):
            found.append(([], "a forked process ended"))
    return found


def _child(privatizer: Privatizer, text: str, pipe: Connection) -> None:
    signal.alarm(FORKED)  # ends a child whose locks were taken when it was forked
    try:
        pipe.send(([("a forked process", _words(privatizer.privatize(text)))], ""))
    except RandomnessError:  # it refuses to draw, and so repeats nothing
        pipe.send(([], ""))
    except Exception as error:  # as in `_work`
        pipe.send(([], f"raised {type(error).__name__}"))


# ---- runs -------------------------------------------------------------------------------------------------


def text_of(subject: Subject) -> str:
    """One protected word of the table, many times."""
    words = [
        word for word in subject.table.words if word.isascii() and word.isalpha() and len(word) > 2
    ]
    options = subject.privatizer.words
    hidden = [
        word for word, public in zip(words, listed(words, options), strict=True) if not public
    ]
    return " ".join([(hidden or list(subject.table.words))[0]] * LENGTH)


def _words(result: Result) -> tuple[str, ...]:
    return tuple(item.text for item in result.released.items)


@lru_cache(maxsize=1)  # two checks look at the same runs
def runs(subject: Subject) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """All runs of the same text, none of which may repeat another; and why some were not tried."""
    privatizer, text = subject.privatizer, text_of(subject)
    made: list[Run] = [
        ("a document of one call", _words(each)) for each in privatizer.privatize_many([text] * 3)
    ]
    made += [("a later call", _words(privatizer.privatize(text))) for _ in range(2)]
    for first in (0, 1):
        made += [
            ("a part", _words(each)) for each in privatizer.privatize_many([text], first=first)
        ]
    with ThreadPoolExecutor(2) as pool:
        made += [("a thread", _words(each)) for each in pool.map(privatizer.privatize, [text] * 2)]
    task = _pickled((privatizer, subject.build, text))
    if task is None:
        return tuple(made), ("it does not pickle",)
    outcomes = elsewhere(task)
    made += [run for found, _ in outcomes for run in found]
    return tuple(made), tuple(sorted({why for _, why in outcomes if why}))


def _pickled(task: tuple[Any, ...]) -> bytes | None:
    try:
        return pickle.dumps(task)
    except Exception:  # whatever a foreign mechanism raises here
        return None


def streams(subject: Subject) -> AuditFinding:
    """Whether any two runs agree at more places than chance would have it.

    A text of one word, repeated, makes all places draws of one law, so that two runs at different places tell how
    often independent draws agree. Runs of a privatizer with a seed are compared among themselves too.
    """
    name = "streams"
    if not subject.claim.draws:
        return skipped(name, "nothing is drawn")
    made, missing = runs(subject)
    verdict = _compare(made, ALARM / 2)
    if verdict is None:
        return skipped(
            name,
            "at this budget nearly every word stays, and equal outputs prove nothing; take a smaller one",
        )
    who, agreement, chance = verdict
    if not who:
        seeded = _compare(_seeded(subject), ALARM / 2)
        if seeded is not None and seeded[0]:
            who, agreement, chance = f"with a seed: {seeded[0]}", seeded[1], seeded[2]
    if who:
        why = f"{who} agree at {agreement:.0%} of the places"
    elif missing:
        return skipped(name, f"{UNTRIED}: {'; '.join(missing)}; all else agrees as chance has it")
    else:
        why = (
            f"{len(made)} runs (documents, calls, parts, threads, processes) agree as chance has it"
        )
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="violated" if who else "holds",
        claimed=chance,
        found=agreement,
        why=why,
        alarm=ALARM,
    )


def tells_apart(subject: Subject) -> bool:
    """Whether what comes out depends on the words, of a mechanism that says it draws nothing."""
    table = subject.slice
    rows = np.arange(len(table))
    alone = subject.sample(table, singles(rows), subject.parameter(table, singles(rows).layout))
    layout = Layout.of(len(rows))
    parameter = subject.parameter(table, layout)
    together = [
        subject.sample(table, Block(layout=layout, rows=own), parameter)
        for own in (rows, rows[::-1].copy(), np.zeros_like(rows))
    ]
    return len(set(alone.tolist())) > 1 or len({own.tobytes() for own in together}) > 1


def _seeded(subject: Subject) -> tuple[Run, ...]:
    """Runs of one privatizer with a seed: documents, the next call, two parts."""
    text = text_of(subject)
    privatizer = subject.build(seed=1)
    made: list[Run] = [
        ("a document of one call", _words(each)) for each in privatizer.privatize_many([text] * 2)
    ]
    made += [("a later call", _words(privatizer.privatize(text)))]
    for first in (0, 1):
        made += [
            ("a part", _words(each)) for each in privatizer.privatize_many([text], first=first)
        ]
    return tuple(made)


def _compare(made: Sequence[Run], alarm: float = ALARM) -> tuple[str, float, float] | None:
    """The pair that agrees beyond chance (empty if none does), its share of equal places, and the most chance allows.

    Runs are laid over one another and over themselves at every shift up to half of their length. None where chance
    alone would make runs equal.
    """
    if len({len(words) for _, words in made}) != 1:
        return "runs of different lengths", 1.0, 0.0
    names = [who for who, _ in made]
    total, n = len(made), len(made[0][1])
    _, codes = np.unique([words for _, words in made], return_inverse=True)
    drawn = codes.reshape(total, n)
    counts = np.bincount(drawn.ravel())
    pairs = float((counts * (counts - 1)).sum()) / (drawn.size * (drawn.size - 1))
    chance = min(
        1.0, pairs + math.sqrt(math.log(2 / alarm) / drawn.size)
    )  # Hoeffding (1963, section 5b)
    shifts = n // 2 + 1
    each = alarm / 2 / (total**2 * shifts + 2 * total * shifts)
    if chance**n > each:
        return None
    worst = ("", 0.0, 1.0)
    for shift in range(shifts):
        agree = (drawn[:, None, : n - shift] == drawn[None, :, shift:]).sum(axis=2)
        np.fill_diagonal(agree, 0)
        i, j = np.unravel_index(agree.argmax(), agree.shape)
        worst = _worse(
            worst,
            f"{names[i]} and {names[j]}{_at(shift)}",
            int(agree[i, j]),
            n - shift,
            chance,
            each,
        )
        for phase in (0, 1) if shift else ():
            # places in disjoint pairs, which are independent: every second block of `shift` against the next one
            left = np.flatnonzero((np.arange(n - shift) // shift) % 2 == phase)
            if len(left) < n // 4:
                continue  # few places show nothing
            own = (drawn[:, left] == drawn[:, left + shift]).sum(axis=1)
            k = int(own.argmax())
            worst = _worse(
                worst, f"words of {names[k]}{_at(shift)}", int(own[k]), len(left), chance, each
            )
    return worst


def _at(shift: int) -> str:
    return f", {shift} places apart," if shift else ""


def _worse(
    worst: tuple[str, float, float], who: str, agree: int, places: int, chance: float, alarm: float
) -> tuple[str, float, float]:
    """The worse of what was found and this: one beyond chance before one that is not, then the larger excess."""
    from scipy.special import bdtrc

    limit = int(
        (bdtrc(np.arange(places + 1), places, chance) <= alarm).argmax()
    )  # more are too many
    beyond = who if agree > limit else ""
    return max(
        worst,
        (beyond, agree / places, limit / places),
        key=lambda found: (bool(found[0]), found[1] - found[2]),
    )


# ---- the seed ---------------------------------------------------------------------------------------------


def seed(subject: Subject) -> AuditFinding:
    """No seed unless one is given: fresh builds differ; and a run with a seed says so in its statement."""
    name = "seed"
    if not subject.claim.draws:
        return skipped(name, "nothing is drawn")
    text = text_of(subject)
    plain = subject.privatizer.privatize(text).guarantee
    problems = []
    if subject.privatizer.randomness.seeded or plain.seeded:
        problems.append("the default has a seed")
    made, missing = runs(subject)
    fresh = [run for run in made if run[0] == "a fresh process"]
    fresh += [("a fresh build", _words(subject.build(seed=None).privatize(text))) for _ in range(2)]
    compared = _compare(fresh)
    if compared is not None and compared[0]:
        problems.append(f"{compared[0]} agree at {compared[1]:.0%} of the places without any seed")
    seeded = subject.build(seed=1).privatize(text).guarantee
    if not seeded.seeded or "seed" not in seeded.headline():
        problems.append("a run with a seed does not say so in its statement")
    if missing and not problems:
        return skipped(name, f"{UNTRIED}: {'; '.join(missing)}; builds in this one differ")
    return AuditFinding(
        check=name,
        evidence="observed",
        verdict="violated" if problems else "holds",
        alarm=ALARM,
        why="; ".join(problems) or f"{len(fresh)} builds differ, and a run with a seed says so",
    )
