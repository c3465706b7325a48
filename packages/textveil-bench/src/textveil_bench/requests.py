"""Counts the requests to language models that a sweep would send, without sending or drawing any.

In: a sweep. Out: `RequestEstimate`s.
Not here: who asks (`tasks`), and how answers are kept (`textveil.models`).

No release is drawn: each counts as another text than all others. Releases that come out equal are
asked about once, so that a run sends at most as many requests.
"""

from collections.abc import Sequence
from dataclasses import replace

from textveil.models import RequestRecorder
from textveil_bench import rows
from textveil_bench import run as runs
from textveil_bench.run import Folders
from textveil_bench.spec import PlannedCell, Sweep
from textveil_bench.tasks.task_contract import AskingJudge
from textveil_bench.trials import ReleasedExample

MARK_DIGITS = 8


def count_requests(
    sweep: Sweep,
    existing_rows: Sequence[rows.BenchRow],
    places: Folders,
    recorder: RequestRecorder,
) -> None:
    """Counts the requests of the cells that are not computed yet.

    Args:
        sweep: the sweep.
        existing_rows: rows computed so far.
        places: folders of the data.
        recorder: counts; equal requests of several sweeps count as one there.
    """
    places = replace(places, answers=recorder)
    for job in runs.build_plan(sweep, existing_rows, places).jobs:
        data = runs.load(job.series.source, sweep.limit, places)
        judges = [
            judge
            for judge in runs.load_judges(job.series.source, sweep, places)
            if isinstance(judge, AskingJudge) and not judge.explain_refusal(data)
        ]
        if judges:
            unchanged = [ReleasedExample.build_unchanged(example) for example in data.examples]
            for cell in job.cells:
                trials = [mark_release(trial, cell) for trial in unchanged]
                for judge in judges:
                    judge.ask_all(data, trials)


def mark_release(trial: ReleasedExample, cell: PlannedCell) -> ReleasedExample:
    """Puts a cell's mark before an unchanged text, to stand for its release."""
    if cell.config is None:
        return trial
    mark = f"{cell.config.seed:x}"[:MARK_DIGITS] + " "
    parts = tuple(replace(part, gaps=(mark + part.gaps[0], *part.gaps[1:])) for part in trial.parts)
    return replace(trial, parts=parts)
