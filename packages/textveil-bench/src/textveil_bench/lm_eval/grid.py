"""Grids: a sweep's mechanisms on tasks of lm-evaluation-harness, attacked on the same releases.

In: a sweep, or a paper's figure; tasks, a model. Out: a `Sweep` for the bench.
Not here: how it is run (`textveil_bench.run`), and the documents (`documents`).
"""

from dataclasses import fields
from typing import Any

from textveil.config import option_sources
from textveil.errors import ConfigError
from textveil_bench.data.loading import TASK_PREFIX
from textveil_bench.lm_eval.documents import TaskOptions
from textveil_bench.lm_eval.run import EvaluationOptions
from textveil_bench.reproduce import targets
from textveil_bench.spec import Sweep, find_packaged_file

JUDGE_OPTIONS = ("model", "model_args", "batch_size", "device", "chat")


def build_grid(source: str, options: EvaluationOptions) -> Sweep:
    """Builds the sweep of a grid.

    Its entries, attacks and seeds are those of the source, its data are the tasks' documents.

    Args:
        source: a sweep as a YAML file or a packaged name, or the name of a paper's figure or table.
        options: the tasks and the model.

    Raises:
        ConfigError: the source is no sweep, or examples are asked for.
        UnknownName: there is no such sweep, figure or table.
    """
    if options.num_fewshot:
        raise ConfigError("a grid shows no examples: leave out --num_fewshot")
    if source in targets.list_names():
        values = dict(targets.load_target(source).sweep)
    else:
        values = dict(option_sources.read_mapping(find_packaged_file(source)))
    if not values:
        raise ConfigError(f"{source} has no sweep of mechanisms; `textveil reproduce` lists others")
    judge = {name: getattr(options, name) for name in JUDGE_OPTIONS}
    tasks = {name: _build_task_options(name, options) for name in options.tasks}
    return Sweep.read(
        {
            **values,
            "limit": options.limit,
            "gallery": 0,
            "baselines": ["identity"] if options.baseline else [],
            "entries": [
                {key: item for key, item in entry.items() if key != "for_data"}
                for entry in values.get("entries", ())
            ],
            "data": [
                {
                    "name": TASK_PREFIX + name,
                    "columns": columns,
                    "task": {"name": "lm-eval", **judge, "options": columns},
                    "as_name": name,
                }
                for name, columns in tasks.items()
            ],
        }
    )


def _build_task_options(task: str, options: EvaluationOptions) -> dict[str, Any]:
    """Builds the options of one task's documents that differ from their defaults."""
    shown = {
        "include_path": options.include_path,
        "fields": options.fields.get(task, ()),
        "keep": options.keep.get(task, ()),
        "keep_choices": options.keep_choices,
    }
    defaults = {field.name: field.default for field in fields(TaskOptions)}
    return {name: value for name, value in shown.items() if value != defaults[name]}
