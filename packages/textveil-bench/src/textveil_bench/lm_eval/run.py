"""A run: guards tasks, releases their documents, and evaluates the model.

In: a configuration and the options of the run. Out: plain data: metrics per task, the statement,
the privatized fields.
Not here: the four steps (`fields` and `guarded`, `releases`, `harness`), and how results are
printed (`cli.lm_eval`).
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from textveil.config import Config, make_options
from textveil.errors import ConfigError, TextveilWarning
from textveil.guarantee import condense, summarize
from textveil.text import tokenize
from textveil_bench.circumstances import read_circumstances
from textveil_bench.lm_eval import harness
from textveil_bench.lm_eval.extra import suppress_output
from textveil_bench.lm_eval.fields import FieldOptions, find_fields
from textveil_bench.lm_eval.guarded import FEW_SHOT_SEED, GuardedTask
from textveil_bench.lm_eval.releases import DocumentTexts, DrawProgress, ReleaseStore

ProgressFactory = Callable[[], AbstractContextManager[DrawProgress]]
"""Factory of the progress callback for the step "documents".

The callback is used only while documents are drawn: later the library shows its own progress.
"""


@make_options()
class EvaluationOptions:
    """Options of a run.

    Attributes:
        tasks: names of tasks, groups and tags of lm-evaluation-harness, or patterns of them.
        include_path: a folder with your own task files.
        model: a model type of lm-evaluation-harness.
        model_args: its arguments, "pretrained=...,dtype=float32".
        batch_size: a number, "auto" or "auto:N"; None is 1.
        device: a torch device; None is a GPU if there is one.
        num_fewshot: number of examples in a prompt; None for the task's own, or 0.
        limit: number of documents evaluated per task; None for all.
        fields: by pattern of task names, the fields that prompts show, if the template does not
            say.
        keep: likewise, fields that are shown unchanged.
        keep_choices: whether choices are shown unchanged.
        chat: whether prompts use the model's chat template.
        baseline: whether the model, which must then run in this process, is also evaluated on the
            originals.
    """

    tasks: tuple[str, ...] = Field(min_length=1)
    include_path: str | None = None
    model: str = "hf"
    model_args: str = Field(default="", repr=False)  # may hold keys
    batch_size: str | None = None
    device: str | None = None
    num_fewshot: int | None = Field(default=None, ge=0)
    limit: int | None = Field(default=None, ge=1)
    fields: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    keep: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    keep_choices: bool = False
    chat: bool = False
    baseline: bool = False


def preview(
    config: Config, run_options: EvaluationOptions, cache: Path | None = None
) -> dict[str, Any]:
    """Returns what a run would privatize; draws nothing and loads no model.

    Args:
        config: resolved options.
        run_options: the options of the run.
        cache: the folder of releases.

    Returns:
        the first part of `evaluate`'s result, with the number of releases still to be drawn.
    """
    _, guarded_tasks = _guard(run_options)
    with ReleaseStore.open_store(config, cache) as releases:
        missing = len(releases.list_missing(_list_texts(guarded_tasks)))
        return {**_build_run_info(config, run_options, guarded_tasks), "to_draw": missing}


def evaluate(
    config: Config,
    run_options: EvaluationOptions,
    cache: Path | None = None,
    progress: ProgressFactory = lambda: nullcontext(lambda step, done, total: None),
) -> dict[str, Any]:
    """Releases all documents of some tasks and evaluates a model on them.

    Args:
        config: resolved options.
        run_options: the options of the run.
        cache: the folder where releases are stored for later runs; None to store none.
        progress: makes the callback for the number of documents drawn, and the number to draw.

    Returns:
        circumstances, configuration, model, tasks with their privatized fields, `guarantee` (the
        statement over all documents shown), `releases`, and `results`, a row per metric.

    Raises:
        ConfigError: lm-evaluation-harness is not installed, or a task's shown fields are unknown.
        InputError: the data of a task cannot be loaded, or is not text.
        ModelError: the model cannot be loaded, or fails.
    """
    if run_options.baseline and run_options.model not in harness.LOCAL_MODELS:
        raise ConfigError(
            "--baseline shows originals, so only for models in this process "
            f"({', '.join(harness.LOCAL_MODELS)}); leave it out"
        )
    if run_options.baseline:
        warnings.warn(
            "the baseline shows the model all documents unchanged", TextveilWarning, stacklevel=2
        )
    tasks, guarded_tasks = _guard(run_options)
    model = harness.load_model(
        run_options.model,
        run_options.model_args,
        batch_size=run_options.batch_size,
        device=run_options.device,
    )
    texts = _list_texts(guarded_tasks)
    with ReleaseStore.open_store(config, cache) as releases:
        missing = len(releases.list_missing(texts))
        with progress() as report:
            releases_by_texts = releases.get_releases(texts, report)
    for task in guarded_tasks:
        task.fill_documents(lambda document: releases_by_texts[document.texts].texts)
    run_model = partial(
        harness.evaluate,
        model,
        tasks,
        limit=run_options.limit,
        seed=FEW_SHOT_SEED,
        chat=run_options.chat,
    )
    rows = run_model()
    if run_options.baseline:
        for task in guarded_tasks:
            task.fill_documents(lambda document: document.texts)
        rows = _join_baseline(rows, run_model())
    return {
        **_build_run_info(config, run_options, guarded_tasks),
        "guarantee": condense(
            summarize([release.guarantee for release in releases_by_texts.values()])
        ).to_json(),
        "releases": {
            "documents": len(releases_by_texts),
            "drawn": missing,
            "cached": len(releases_by_texts) - missing,
        },
        "results": rows,
    }


def _guard(run_options: EvaluationOptions) -> tuple[harness.LoadedTasks, list[GuardedTask]]:
    tasks = harness.load_tasks(run_options.tasks, run_options.include_path)
    field_options = FieldOptions(
        fields=run_options.fields, keep=run_options.keep, keep_choices=run_options.keep_choices
    )
    field_options.check(list(tasks["tasks"]))
    guarded_tasks = []
    with suppress_output():
        for task in tasks["tasks"].values():
            task_fewshot, rows = task.config.num_fewshot, task.eval_docs
            fewshot_count = (
                task_fewshot or 0
                if run_options.num_fewshot is None or task_fewshot == 0
                else run_options.num_fewshot
            )  # a task that sets 0 keeps it
            guarded_tasks.append(
                GuardedTask(
                    task,
                    rows,
                    find_fields(task, rows[0], field_options),
                    fewshot_count=fewshot_count,
                    limit=run_options.limit,
                )
            )
    return tasks, guarded_tasks


def _list_texts(guarded_tasks: Sequence[GuardedTask]) -> list[DocumentTexts]:
    return [document.texts for task in guarded_tasks for document in task.documents.values()]


def _join_baseline(
    rows: Sequence[dict[str, Any]], originals: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Adds to rows the same metric on originals."""
    rows_by_key = {(row["task"], row["metric"], row["filter"]): row for row in originals}
    baseline_rows = [rows_by_key[row["task"], row["metric"], row["filter"]] for row in rows]
    return [
        {**row, "baseline": other["value"], "baseline_stderr": other["stderr"]}
        for row, other in zip(rows, baseline_rows, strict=True)
    ]


def _build_run_info(
    config: Config, run_options: EvaluationOptions, guarded_tasks: Sequence[GuardedTask]
) -> dict[str, Any]:
    configuration = {name: value for name, value in config.dump_public().items() if name != "seed"}
    facts = read_circumstances("lm-eval", "datasets")
    return {
        "circumstances": {
            name: facts[name]
            for name in ("time", "python", "versions", "machine", "cores", "threads")
        },
        "configuration": _convert_to_plain(configuration),
        "seeded": config.seed is not None,
        "model": {
            "kind": run_options.model,
            **harness.get_reported_arguments(run_options.model_args),
        },
        "chat": run_options.chat,
        "few_shot_seed": FEW_SHOT_SEED,
        "limit": run_options.limit,
        "tasks": [
            {
                "task": task.task.task_name,
                "privatized": list(task.fields.texts),
                "kept": list(task.fields.verbatim),
                "documents": task.evaluated_count,
                "num_fewshot": task.task.config.num_fewshot,
                "examples": task.example_count,
                "words": len(
                    tokenize([text for doc in task.documents.values() for text in doc.texts]).words
                ),
            }
            for task in guarded_tasks
        ],
    }


def _convert_to_plain(value: Any) -> Any:
    """Converts a value for JSON; infinite numbers become "infinite"."""
    if isinstance(value, Mapping):
        return {name: _convert_to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_to_plain(item) for item in value]
    return "infinite" if value == math.inf else value
