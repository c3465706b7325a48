"""A run: guards tasks, releases their documents, evaluates the model, and collects the results.

In: a configuration and the options of the run. Out: plain data: metrics per task, the statement, what was privatized.
Not here: the four steps (`fields` and `guarded`, `releases`, `harness`), and how results are shown (`cli.lm_eval`).
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from textveil.config import Config, options
from textveil.errors import ConfigError, TextveilWarning
from textveil.guarantee import condense, summarize
from textveil.text import tokenize
from textveil_bench.circumstances import circumstances
from textveil_bench.lm_eval import harness
from textveil_bench.lm_eval.extra import quiet
from textveil_bench.lm_eval.fields import FieldOptions, fields_of
from textveil_bench.lm_eval.guarded import FEW_SHOT_SEED, Guarded
from textveil_bench.lm_eval.releases import Releases, Report, Texts

Progress = Callable[[], AbstractContextManager[Report]]
"""Makes the callback for the step "documents", used only while documents are drawn: later the library shows its own."""


@options()
class RunOptions:
    """The options of a run.

    Attributes:
        tasks: names of tasks, groups and tags of lm-evaluation-harness, or patterns of them.
        include_path: a folder with your own task files.
        model: a model type of lm-evaluation-harness.
        model_args: its arguments, "pretrained=...,dtype=float32".
        batch_size: a number, "auto" or "auto:N"; None is 1.
        device: a torch device; None is a GPU if there is one.
        num_fewshot: number of examples in a prompt; None for the task's own, or 0.
        limit: number of documents evaluated per task; None for all.
        fields: by pattern of task names, the fields that prompts show, if the template does not say.
        keep: likewise, fields that are shown unchanged.
        keep_choices: whether choices are shown unchanged.
        chat: whether prompts use the model's chat template.
        baseline: whether the model, which must then run in this process, is also evaluated on the originals.
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


def preview(config: Config, asked: RunOptions, cache: Path | None = None) -> dict[str, Any]:
    """What a run would privatize; draws nothing and loads no model.

    Args:
        config: resolved options.
        asked: the options of the run.
        cache: the folder of releases.

    Returns:
        the first part of `evaluate`'s result, with the number of releases still to be drawn.
    """
    _, guarded = _guard(asked)
    with Releases.opened(config, cache) as releases:
        missing = len(releases.missing(_texts(guarded)))
        return {**_circumstances(config, asked, guarded), "to_draw": missing}


def evaluate(
    config: Config,
    asked: RunOptions,
    cache: Path | None = None,
    progress: Progress = lambda: nullcontext(lambda step, done, total: None),
) -> dict[str, Any]:
    """Releases all documents of some tasks and evaluates a model on them.

    Args:
        config: resolved options.
        asked: the options of the run.
        cache: the folder where releases are kept for later runs; None keeps none.
        progress: makes the callback for the number of documents drawn, and the number to draw.

    Returns:
        circumstances, configuration, model, tasks with what was privatized of them, `guarantee` (the statement over all
        documents shown), `releases`, and `results`, a row per metric.

    Raises:
        ConfigError: lm-evaluation-harness is not installed, or it is unknown what a task shows.
        InputError: the data of a task cannot be loaded, or is not text.
        ModelError: the model cannot be loaded, or fails.
    """
    if asked.baseline and asked.model not in harness.LOCAL:
        raise ConfigError(
            f"--baseline shows originals, so only for models in this process ({', '.join(harness.LOCAL)}); leave it out"
        )
    if asked.baseline:
        warnings.warn(
            "the baseline shows the model all documents unchanged", TextveilWarning, stacklevel=2
        )
    tasks, guarded = _guard(asked)
    model = harness.load_model(
        asked.model, asked.model_args, batch_size=asked.batch_size, device=asked.device
    )
    texts = _texts(guarded)
    with Releases.opened(config, cache) as releases:
        missing = len(releases.missing(texts))
        with progress() as report:
            kept = releases.of(texts, report)
    for task in guarded:
        task.show(lambda document: kept[document.texts].texts)
    ask = partial(
        harness.evaluate, model, tasks, limit=asked.limit, seed=FEW_SHOT_SEED, chat=asked.chat
    )
    rows = ask()
    if asked.baseline:
        for task in guarded:
            task.show(lambda document: document.texts)
        rows = _beside(rows, ask())
    return {
        **_circumstances(config, asked, guarded),
        "guarantee": condense(summarize([each.guarantee for each in kept.values()])).to_json(),
        "releases": {"documents": len(kept), "drawn": missing, "cached": len(kept) - missing},
        "results": rows,
    }


def _guard(asked: RunOptions) -> tuple[harness.Tasks, list[Guarded]]:
    tasks = harness.load_tasks(asked.tasks, asked.include_path)
    said = FieldOptions(fields=asked.fields, keep=asked.keep, keep_choices=asked.keep_choices)
    said.check(list(tasks["tasks"]))
    guarded = []
    with quiet():
        for task in tasks["tasks"].values():
            own, rows = task.config.num_fewshot, task.eval_docs
            few = (
                own or 0 if asked.num_fewshot is None or own == 0 else asked.num_fewshot
            )  # a task's own 0 stays
            guarded.append(
                Guarded(task, rows, fields_of(task, rows[0], said), few=few, limit=asked.limit)
            )
    return tasks, guarded


def _texts(guarded: Sequence[Guarded]) -> list[Texts]:
    return [document.texts for task in guarded for document in task.documents.values()]


def _beside(
    rows: Sequence[dict[str, Any]], originals: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Rows together with the same metric on originals."""
    found = {(row["task"], row["metric"], row["filter"]): row for row in originals}
    beside = [found[row["task"], row["metric"], row["filter"]] for row in rows]
    return [
        {**row, "baseline": other["value"], "baseline_stderr": other["stderr"]}
        for row, other in zip(rows, beside, strict=True)
    ]


def _circumstances(config: Config, asked: RunOptions, guarded: Sequence[Guarded]) -> dict[str, Any]:
    configuration = {name: value for name, value in config.public().items() if name != "seed"}
    found = circumstances("lm-eval", "datasets")
    return {
        "circumstances": {
            name: found[name]
            for name in ("time", "python", "versions", "machine", "cores", "threads")
        },
        "configuration": _plain(configuration),
        "seeded": config.seed is not None,
        "model": {"kind": asked.model, **harness.said(asked.model_args)},
        "chat": asked.chat,
        "few_shot_seed": FEW_SHOT_SEED,
        "limit": asked.limit,
        "tasks": [
            {
                "task": each.task.task_name,
                "privatized": list(each.fields.texts),
                "kept": list(each.fields.kept),
                "documents": each.evaluated,
                "num_fewshot": each.task.config.num_fewshot,
                "examples": each.examples,
                "words": len(
                    tokenize([text for doc in each.documents.values() for text in doc.texts]).words
                ),
            }
            for each in guarded
        ],
    }


def _plain(value: Any) -> Any:
    """Plain data for JSON, which has no infinite numbers."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return "infinite" if value == math.inf else value
