"""Tasks: judges that measure the utility of released examples.

Judges that need training are trained on originals.

In: a judge's name and options; a data set, and its releases. Out: scores, a value per example.
Not here: data sets (`data`), and how much attackers recover (`textveil.evaluate.attack`).
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from textveil.errors import UnknownName

if TYPE_CHECKING:  # names are looked up without torch
    from textveil.evaluate.attack import ProgressCallback
    from textveil.models import Endpoint, Prompts
    from textveil_bench.examples import DataSet, ExampleKind
    from textveil_bench.tasks.task_contract import Judge

TASKS: Mapping[str, str] = MappingProxyType(
    {
        "head": "head:Head",
        "classifier": "classifier:Classification",
        "finetune": "finetune:Finetune",
        "reader": "reading:Reading",
        "asked": "endpoint_judge:ZeroShot",
        "continued": "continuation_judge:Continued",
        "generation": "generation:Generation",
        "meaning": "meaning:Meaning",
        "lm-eval": "textveil_bench.lm_eval.documents:HarnessJudge",
    }
)
"""The judges by name, each with its module, here or elsewhere, and class."""

DEFAULT_TASKS: "Mapping[ExampleKind, str]" = MappingProxyType(
    {
        "classification": "head",
        "pairs": "head",
        "reading": "reader",
        "choice": "asked",
        "text": "generation",
    }
)


def build_judge(
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    train: "Callable[[], DataSet]",
    cache: Path | None = None,
    endpoint: "Endpoint | None" = None,
    local: "Endpoint | None" = None,
    prompts: "Prompts | None" = None,
    report: "ProgressCallback | None" = None,
) -> "Judge":
    """Builds a judge by name, without loading models or data.

    Args:
        name: a name from `TASKS`.
        options: the judge's options.
        train: returns the training split, for judges that are trained.
        cache: the folder for trained judges; None for the default of `judge_store.find_folder`.
        endpoint: a language model, for judges that need one; without it they refuse.
        local: a language model on this machine, which may see originals.
        prompts: wordings of what language models are asked; None for ours.
        report: called with progress.

    Raises:
        UnknownName: there is no such judge or option.
        ConfigError: an option is out of range.
    """
    if name not in TASKS:
        raise UnknownName("task", name, TASKS)
    module, _, kind = TASKS[name].partition(":")
    path = module if "." in module else f"textveil_bench.tasks.{module}"
    judge = getattr(import_module(path), kind)
    resources = {
        "train": train,
        "folder": cache,
        "endpoint": endpoint,
        "local": local,
        "prompts": prompts,
        "report": report,
    }
    names = {field.name for field in fields(judge)}
    for option in options or {}:
        if option not in names - resources.keys():
            raise UnknownName(f"option of the task {name}", option, names - resources.keys())
    arguments = {
        key: value for key, value in resources.items() if key in names and value is not None
    }
    instance: Judge = judge(**(options or {}), **arguments)
    return instance


def prepare(task: "Judge") -> None:
    """Trains a judge, if trainable, and saves it for other processes."""
    getattr(task, "prepare", lambda: None)()


def get_default(kind: "ExampleKind") -> str:
    """Returns the name of the default judge for a kind of data."""
    return DEFAULT_TASKS[kind]
