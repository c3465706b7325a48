"""lm-evaluation-harness itself: its tasks and models by name, and what it finds.

In: names, arguments as lm_eval takes them. Out: tasks, models, rows of metrics; errors that say what to do.
Not here: which documents the tasks have then (`guarded`).
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from textveil.errors import ConfigError, InputError, ModelError, UnknownName, shown
from textveil_bench.lm_eval.extra import library, quiet

LOCAL = ("hf", "hf-auto", "huggingface", "vllm", "sglang", "mamba_ssm", "openvino", "onnxruntime", "dummy")
"""Models that run in this process: what they are asked does not leave the machine."""

TRANSFORMERS = ("hf", "hf-auto", "huggingface")

SAID = ("pretrained", "model", "revision", "subfolder", "dtype", "peft", "tokenizer", "backend", "max_length")
"""Arguments of models that reports repeat; others may be keys."""

BOOTSTRAPS = 1000

Tasks = Mapping[str, Any]
"""What `TaskManager.load` gives: "tasks" and "groups"."""


def load_tasks(names: Sequence[str], include: str | None = None) -> Tasks:
    """Tasks, groups and tags by name, with their data.

    Args:
        names: also patterns ("mmlu_*").
        include: a folder with task files of the user's own; their names go before lm_eval's.

    Raises:
        ConfigError: the folder is not there. UnknownName: no task has the name.
        InputError: the data of a task cannot be loaded.
    """
    if include is not None and not Path(include).is_dir():
        raise ConfigError("--include_path must be a folder of task files, and there is none of that name")
    with quiet():
        manager = _manager(names, include)
        found = list(dict.fromkeys(name for asked in names for name in _matching(asked, manager)))
        try:
            loaded: Tasks = manager.load(found)
            return loaded
        except Exception as error:  # many kinds, of datasets and hubs; a message may hold a row
            failure = type(error).__name__
    raise InputError(
        f"the tasks {', '.join(found)} could not be loaded ({failure}): a hub that has their data must be reached "
        "once, or the files that a task names must be there, and each of their lines be what its format asks for"
    )


def _manager(names: Sequence[str], include: str | None) -> Any:
    """The index of tasks. That of all tasks takes long, and is made only where the user's own are not enough."""
    make = library("lm_eval.tasks").TaskManager
    if include is not None:
        own = make(include_path=include, include_defaults=False)
        if all(_whole(name, own) for name in names):
            return own
    return make(include_path=include)


def _whole(name: object, manager: Any) -> bool:
    """Whether an index has a task, or a group with all that is in it."""
    if name in manager.all_groups:
        return all(_whole(each, manager) for each in manager.task_index[name].cfg["task"])
    return name in manager.all_subtasks


def _matching(asked: str, manager: Any) -> list[str]:
    found: list[str] = manager.match_tasks([asked]) if asked in manager.all_tasks or "*" in asked else []
    if not found:
        raise UnknownName("task of lm-evaluation-harness", asked, manager.all_tasks)
    return found


def load_model(name: str, arguments: str, *, batch_size: str | None = None, device: str | None = None) -> Any:
    """A model.

    Args:
        name: "hf", "local-completions" or another of lm_eval's.
        arguments: "pretrained=...,dtype=float32", as lm_eval takes them.
        batch_size: a number, "auto" or "auto:N"; None is 1.
        device: a torch device; None is the first GPU where there is one, for models of transformers.

    Raises:
        UnknownName: no model has the name. ModelError: it cannot be loaded.
    """
    known = library("lm_eval.models").MODEL_MAPPING
    if name not in known:
        raise UnknownName("model of lm-evaluation-harness", name, known)
    given: dict[str, Any] = library("lm_eval.utils").simple_parse_args_string(arguments)
    source = str(given.get("pretrained", ""))
    if name in TRANSFORMERS:
        if not source:
            raise ConfigError(f"--model {name} needs --model_args pretrained=FOLDER or a hub's model")
        if source.startswith((".", "/", "~")) and not Path(source).is_dir():
            raise ModelError("pretrained must be a folder with a model or a hub's model, and there is no such folder")
        device = device or given.pop("device", None) or _device()
    size = int(batch_size) if batch_size is not None and batch_size.isdigit() else batch_size
    with quiet():
        try:
            model = library("lm_eval.api.registry").get_model(name)
            made = model.create_from_arg_obj(given, {"batch_size": size, "device": device})
        except ConfigError:
            raise
        except Exception as error:  # many kinds; none of them has seen a text
            raise ModelError(
                f"the model {name} {shown(source)} could not be loaded ({type(error).__name__}); a model must be a "
                "folder, or come from a hub that is reached once; its library must be installed"
            ) from error
    if made.world_size > 1:
        raise ConfigError("one process evaluates; start textveil without a launcher of several")
    return made


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def evaluate(
    model: Any, tasks: Tasks, *, limit: int | None = None, seed: int, chat: bool = False
) -> list[dict[str, Any]]:
    """Asks the model, and gives a row for each metric of every task and group.

    Args:
        model: of `load_model`.
        tasks: of `load_tasks`, guarded.
        limit: how many documents of each task are evaluated.
        seed: of the draw of examples, and of models that sample.
        chat: whether prompts are put into the model's chat template.

    Raises:
        ModelError: the model or a template failed.
    """
    evaluator = library("lm_eval.evaluator")
    os.environ.setdefault("DISABLE_MULTIPROC", "1")  # its bootstraps would fork this process
    for task in tasks["tasks"].values():
        task.set_fewshot_seed(seed)
    library("lm_eval.utils").set_torch_seed(seed)
    with quiet():
        try:
            found = evaluator.evaluate(
                model,
                tasks,
                limit=limit,
                bootstrap_iters=BOOTSTRAPS,
                log_samples=False,
                cache_requests=False,  # its names are those of tasks: a release would be taken for another's
                apply_chat_template=chat,
                fewshot_as_multiturn=chat,
            )
        except Exception as error:
            failure = _explained(error)
        else:
            return list(_rows(found))
    raise ModelError(failure)  # out here, because the error's message and chain may hold documents


def _explained(error: Exception) -> str:
    name = type(error).__name__
    if isinstance(error, NotImplementedError):
        return (
            "the model must give probabilities of texts for tasks with options, and gives none: "
            "take one that completes (local-completions, hf), or a task of generation"
        )
    if name in ("UndefinedError", "KeyError"):
        return (
            f"a prompt asks for a field that is not privatized ({name}): name all of them in --fields TASK=FIELD,FIELD"
        )
    if isinstance(error, AssertionError):
        return "the evaluation failed (AssertionError); a chat model needs --apply_chat_template"
    return f"the evaluation failed ({name})"


def _rows(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    scores = {**found["results"], **found.get("groups", {})}
    for task, values in scores.items():
        for key, value in values.items():
            metric, comma, filtered = key.partition(",")
            if not comma or metric.endswith("_stderr") or not isinstance(value, int | float):
                continue
            error = values.get(f"{metric}_stderr,{filtered}")
            yield {
                "task": task,
                "metric": metric,
                "filter": filtered,
                "value": _finite(value),
                "stderr": _finite(error) if isinstance(error, int | float) else None,
                "n": values.get("sample_len"),
                "higher_is_better": found["higher_is_better"].get(task, {}).get(metric),
                "version": found["versions"].get(task),
            }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def said(arguments: str) -> dict[str, Any]:
    """The arguments of a model that a report may repeat."""
    given: dict[str, Any] = library("lm_eval.utils").simple_parse_args_string(arguments)
    return {name: value for name, value in given.items() if name in SAID}
