"""Fresh draws: no two documents, calls, threads, parts or processes may repeat one another's.

In: a subject, and workers in processes of their own. Out: the findings `streams` and `seed`.
Not here: how streams are made (`textveil.rng`), and whether single draws follow a law (`fit`).
"""

import multiprocessing
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import combinations
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from scipy.special import bdtrc

from textveil.audit.finding import ALARM, Finding, skipped
from textveil.audit.subject import Subject
from textveil.intervals import clopper_pearson
from textveil.pipeline import Privatizer, Result
from textveil.protect import protect

LENGTH = 200
"""Times that one word stands in the text: its released words are draws of one law."""

PATIENCE = 60.0
"""Seconds that a worker may take before it counts as broken."""

Run = tuple[str, tuple[str, ...]]
"""Who ran, and what was released, word by word."""


# ---- processes --------------------------------------------------------------------------------------------


class Workers:
    """Two processes that share nothing with this one but what is sent to them. Use as a context."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(2):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,))
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def run(self, task: bytes) -> list[tuple[list[Run], str]]:
        """What each of them released, and the name of the error that stopped it, if any."""
        for pipe in self._pipes:
            pipe.send_bytes(task)
        return [_receive(pipe) for pipe in self._pipes]

    def close(self) -> None:
        """Ends them."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.close()
            process.join(timeout=5)
            if process.is_alive():
                process.kill()


@contextmanager
def workers() -> Iterator[Workers]:
    """Two fresh processes for as long as the context lasts."""
    made = Workers()
    try:
        yield made
    finally:
        made.close()


def _receive(pipe: Connection) -> tuple[list[Run], str]:
    try:
        if not pipe.poll(PATIENCE):
            return [], "TimeoutError"
        found: tuple[list[Run], str] = pipe.recv()
    except (EOFError, OSError) as error:
        return [], type(error).__name__
    return found


def _serve(pipe: Connection) -> None:
    """A worker's life: privatizes with what it is sent, and with what it builds itself."""
    while True:
        try:
            task = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        pipe.send(_work(task))


def _work(task: bytes) -> tuple[list[Run], str]:
    runs: list[Run] = []
    failed = ""
    try:
        privatizer, build, text = pickle.loads(task)
        runs.append(("a pickled copy", _words(privatizer.privatize(text))))
        runs.append(("a fresh process", _words(build(seed=None).privatize(text))))
        for found, error in _forked(privatizer, text):
            runs += found
            failed = error or failed
    except Exception as error:  # an error is an outcome here; its message may hold words
        return runs, type(error).__name__
    return runs, failed


def _forked(privatizer: Privatizer, text: str) -> list[tuple[list[Run], str]]:
    """Two children of this process, which inherit its memory.

    Of a process whose threads have not worked yet: the linear algebra's locks may be left locked in a child.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        return []
    context = multiprocessing.get_context("fork")
    started = []
    for _ in range(2):
        ours, theirs = context.Pipe()
        process = context.Process(target=_child, args=(privatizer, text, theirs), daemon=True)
        process.start()
        theirs.close()
        started.append((process, ours))
    found = []
    for process, ours in started:
        found.append(_receive(ours))
        process.join(timeout=5)
        if process.is_alive():
            process.kill()
    return found


def _child(privatizer: Privatizer, text: str, pipe: Connection) -> None:
    try:
        pipe.send(([("a forked process", _words(privatizer.privatize(text)))], ""))
    except Exception as error:  # as in `_work`
        pipe.send(([], type(error).__name__))


# ---- runs -------------------------------------------------------------------------------------------------


def text_of(subject: Subject) -> str:
    """One protected word of the table, many times."""
    words = [word for word in subject.table.words if word.isascii() and word.isalpha() and len(word) > 2]
    options = subject.privatizer.words
    hidden = [word for word, public in zip(words, protect(words, options).public, strict=True) if not public]
    return " ".join([(hidden or list(subject.table.words))[0]] * LENGTH)


def _words(result: Result) -> tuple[str, ...]:
    return tuple(item.text for item in result.released.items)


@lru_cache(maxsize=1)  # two checks look at the same runs
def runs(subject: Subject, workers: Workers | None) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """All runs of the same text, none of which may repeat another; and the errors of runs that did not end."""
    privatizer, text = subject.privatizer, text_of(subject)
    made: list[Run] = [("a document of one call", _words(each)) for each in privatizer.privatize_many([text] * 3)]
    made += [("a later call", _words(privatizer.privatize(text))) for _ in range(2)]
    for first in (0, 1):
        made += [("a part", _words(each)) for each in privatizer.privatize_many([text], first=first)]
    with ThreadPoolExecutor(2) as pool:
        made += [("a thread", _words(each)) for each in pool.map(privatizer.privatize, [text] * 2)]
    task = _pickled((privatizer, subject.build, text))
    if workers is None or task is None:
        return tuple(made), ("processes of its own: it does not pickle",)
    errors: list[str] = []
    for found, error in workers.run(task):
        made += found
        errors += [f"a process of its own: {error}"] if error else []
    return tuple(made), tuple(errors)


def _pickled(task: tuple[Any, ...]) -> bytes | None:
    try:
        return pickle.dumps(task)
    except Exception:  # whatever a foreign mechanism raises here
        return None


def streams(subject: Subject, workers: Workers | None) -> Finding:
    """Whether any two runs agree at more places than chance would have it.

    A text of one word, repeated, makes all places draws of one law, so that two runs at different places tell how
    often independent draws agree. Runs of a privatizer with a seed are compared among themselves too.
    """
    name = "streams"
    if not subject.claim.draws:
        return skipped(name, "nothing is drawn")
    made, errors = runs(subject, workers)
    verdict = _compare(made)
    if verdict is None:
        return skipped(
            name, "at this budget nearly every word stays, and equal outputs prove nothing; take a smaller one"
        )
    who, agreement, chance = verdict
    if not who:
        seeded = _compare(_seeded(subject))
        if seeded is not None and seeded[0]:
            who, agreement, chance = f"with a seed: {seeded[0]}", seeded[1], seeded[2]
    broken = bool(who)
    failed = [error for error in errors if not error.endswith("RandomnessError")]
    why = f"{who} agree at {agreement:.0%} of the places" if broken else (
        f"{len(made)} runs (documents, calls, parts, threads, processes) agree as chance has it"
        + (f"; not tried: {'; '.join(sorted(set(failed)))}" if failed else "")
    )  # fmt: skip
    return Finding(
        check=name,
        evidence="observed",
        verdict="violated" if broken else "holds",
        claimed=chance,
        found=agreement,
        why=why,
        alarm=ALARM,
    )


def _seeded(subject: Subject) -> tuple[Run, ...]:
    """Runs of one privatizer with a seed: documents, the next call, two parts."""
    text = text_of(subject)
    privatizer = subject.build(seed=1)
    made: list[Run] = [("a document of one call", _words(each)) for each in privatizer.privatize_many([text] * 2)]
    made += [("a later call", _words(privatizer.privatize(text)))]
    for first in (0, 1):
        made += [("a part", _words(each)) for each in privatizer.privatize_many([text], first=first)]
    return tuple(made)


def _compare(made: Sequence[Run]) -> tuple[str, float, float] | None:
    """The pair that agrees beyond chance (empty if none does), its share of equal places, and the bound of chance.

    None where chance alone would make runs equal.
    """
    outputs = [np.array(words) for _, words in made]
    if len({len(words) for words in outputs}) != 1:
        return "runs of different lengths", 1.0, 0.0
    shifted = [(a[:-1] == b[1:]) for a, b in zip(outputs[::2], outputs[1::2], strict=False)]
    equal, places = int(np.sum(shifted)), int(np.size(shifted))
    chance = clopper_pearson(equal, places, 1 - ALARM)[1]
    n = len(outputs[0])
    tests = len(made) * (len(made) - 1) // 2 + len(made)
    alarm = ALARM / 2 / tests
    if chance**n > alarm:
        return None
    worst = ("", 0.0, chance)
    for (one, a), (other, b) in combinations(zip([who for who, _ in made], outputs, strict=True), 2):
        agree = int((a == b).sum())
        worst = _worse(worst, f"{one} and {other}", agree, n, chance, alarm)
    for who, a in zip([who for who, _ in made], outputs, strict=True):
        half = n // 2
        agree = int((a[: 2 * half : 2] == a[1 : 2 * half : 2]).sum())
        worst = _worse(worst, f"neighbouring words of {who}", agree, half, chance, alarm)
    return worst


def _worse(
    worst: tuple[str, float, float], who: str, agree: int, places: int, chance: float, alarm: float
) -> tuple[str, float, float]:
    """The worse of what was found and this pair: one beyond chance before one that is not, then the larger share."""
    beyond = agree > 0 and float(bdtrc(agree - 1, places, chance)) < alarm
    return max(worst, (who if beyond else "", agree / places, chance), key=lambda found: (bool(found[0]), found[1]))


# ---- the seed ---------------------------------------------------------------------------------------------


def seed(subject: Subject, workers: Workers | None) -> Finding:
    """No seed unless one is given: fresh builds differ; and a run with a seed says so in its statement."""
    name = "seed"
    if not subject.claim.draws:
        return skipped(name, "nothing is drawn")
    text = text_of(subject)
    plain = subject.privatizer.privatize(text).guarantee
    problems = []
    if subject.privatizer.randomness.seeded or plain.seeded:
        problems.append("the default has a seed")
    fresh = [run for run in runs(subject, workers)[0] if run[0] == "a fresh process"]
    fresh += [("a fresh build", _words(subject.build(seed=None).privatize(text))) for _ in range(2)]
    compared = _compare(fresh)
    if compared is not None and compared[0]:
        problems.append(f"{compared[0]} agree at {compared[1]:.0%} of the places without any seed")
    seeded = subject.build(seed=1).privatize(text).guarantee
    if not seeded.seeded or "seed" not in seeded.headline():
        problems.append("a run with a seed does not say so in its statement")
    return Finding(
        check=name,
        evidence="observed",
        verdict="violated" if problems else "holds",
        alarm=ALARM,
        why="; ".join(problems) or f"{len(fresh)} builds differ, and a run with a seed says so",
    )
