"""Interface to lm-evaluation-harness: its tasks, models and results.

In: names, arguments as lm_eval takes them. Out: tasks, models, rows of metrics; errors that say how
to correct them.
Not here: the documents of tasks (`guarded`).
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from textveil.errors import ConfigError, InputError, ModelError, UnknownName, quote_short
from textveil_bench.lm_eval.extra import load_library, suppress_output

LOCAL_MODELS = (
    "hf",
    "hf-auto",
    "huggingface",
    "vllm",
    "sglang",
    "mamba_ssm",
    "openvino",
    "onnxruntime",
    "dummy",
)
"""Models that run in this process, so prompts stay on this machine."""

TRANSFORMERS_MODELS = ("hf", "hf-auto", "huggingface")

REPORTED_ARGUMENTS = (
    "pretrained",
    "model",
    "revision",
    "subfolder",
    "dtype",
    "peft",
    "tokenizer",
    "backend",
    "max_length",
)
"""Model arguments repeated in reports; others may be keys."""

BOOTSTRAP_SAMPLES = 1000

LoadedTasks = Mapping[str, Any]
"""Result of `TaskManager.load`: "tasks" and "groups"."""


def load_tasks(names: Sequence[str], include: str | None = None) -> LoadedTasks:
    """Loads tasks, groups and tags by name, with their data.

    Args:
        names: names or patterns ("mmlu_*").
        include: a folder with your own task files; their names take precedence over lm_eval's.

    Raises:
        ConfigError: the folder does not exist.
        UnknownName: there is no such task.
        InputError: the data of a task cannot be loaded.
    """
    if include is not None and not Path(include).is_dir():
        raise ConfigError(
            "--include_path must be a folder of task files, and no such folder exists"
        )
    with suppress_output():
        manager = _build_manager(names, include)
        task_names = list(
            dict.fromkeys(name for pattern in names for name in _match_tasks(pattern, manager))
        )
        try:
            loaded: LoadedTasks = manager.load(task_names)
            return loaded
        except Exception as error:  # datasets and hubs raise many kinds; the message may hold a row
            failure = type(error).__name__
    raise InputError(
        f"could not load the tasks {', '.join(task_names)} ({failure}): their data must be cached, "
        "on a reachable hub, or in the files that a task names, in the right format"
    )


def _build_manager(names: Sequence[str], include: str | None) -> Any:
    """Builds the index of tasks.

    The full index is slow, and is built only if the user's own tasks are not enough.
    """
    manager_type = load_library("lm_eval.tasks").TaskManager
    if include is not None:
        user_manager = manager_type(include_path=include, include_defaults=False)
        if all(_has_task(name, user_manager) for name in names):
            return user_manager
    return manager_type(include_path=include)


def _has_task(name: object, manager: Any) -> bool:
    """True if an index has a task, or a group with members."""
    if name in manager.all_groups:
        return all(_has_task(member, manager) for member in manager.task_index[name].cfg["task"])
    return name in manager.all_subtasks


def _match_tasks(pattern: str, manager: Any) -> list[str]:
    names: list[str] = (
        manager.match_tasks([pattern]) if pattern in manager.all_tasks or "*" in pattern else []
    )
    if not names:
        raise UnknownName("task of lm-evaluation-harness", pattern, manager.all_tasks)
    return names


def load_model(
    name: str, arguments: str, *, batch_size: str | None = None, device: str | None = None
) -> Any:
    """Loads a model.

    Args:
        name: "hf", "local-completions" or another of lm_eval's.
        arguments: "pretrained=...,dtype=float32", as lm_eval takes them.
        batch_size: a number, "auto" or "auto:N"; None is 1.
        device: a torch device; None is the first GPU if there is one, for models of transformers.

    Raises:
        UnknownName: there is no such model.
        ConfigError: an argument is missing, or there are several processes.
        ModelError: it cannot be loaded.
    """
    models = load_library("lm_eval.models").MODEL_MAPPING
    if name not in models:
        raise UnknownName("model of lm-evaluation-harness", name, models)
    options: dict[str, Any] = load_library("lm_eval.utils").simple_parse_args_string(arguments)
    source = str(options.get("pretrained", ""))
    if name in TRANSFORMERS_MODELS:
        if not source:
            raise ConfigError(
                f"--model {name} needs --model_args pretrained=..., a folder or a hub id"
            )
        if source.startswith((".", "/", "~")) and not Path(source).is_dir():
            raise ModelError(
                "pretrained must be a folder with a model or a hub id, and no such folder exists"
            )
        device = device or options.pop("device", None) or _choose_device()
    size = int(batch_size) if batch_size is not None and batch_size.isdigit() else batch_size
    with suppress_output():
        try:
            model = load_library("lm_eval.api.registry").get_model(name)
            instance = model.create_from_arg_obj(options, {"batch_size": size, "device": device})
        except ConfigError:
            raise
        except Exception as error:  # many kinds; the model has seen no text yet
            raise ModelError(
                f"could not load the model {name} {quote_short(source)} ({type(error).__name__}); "
                "it must be a folder or in the cache of a hub, and its library installed"
            ) from error
    if instance.world_size > 1:
        raise ConfigError(
            "the evaluation runs in one process; start textveil without a multi-process launcher"
        )
    return instance


def _choose_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def evaluate(
    model: Any, tasks: LoadedTasks, *, limit: int | None = None, seed: int, chat: bool = False
) -> list[dict[str, Any]]:
    """Evaluates a model; returns a row per metric of tasks and groups.

    Args:
        model: from `load_model`.
        tasks: from `load_tasks`, guarded.
        limit: number of documents evaluated per task.
        seed: for drawing examples, and for models that sample.
        chat: whether prompts use the model's chat template.

    Raises:
        ModelError: the model or a template failed.
    """
    results = _run_evaluator(model, tasks, limit=limit, seed=seed, chat=chat, log_samples=False)
    return list(_build_rows(results))


def evaluate_documents(
    model: Any,
    tasks: LoadedTasks,
    names: Sequence[str],
    *,
    limit: int | None = None,
    seed: int,
    chat: bool = False,
) -> dict[str, list[float]]:
    """Evaluates a model; returns each metric's value per document.

    Args:
        model: from `load_model`.
        tasks: from `load_tasks`, guarded.
        names: the tasks in the order of the values.
        limit: number of documents evaluated per task.
        seed: for models that sample.
        chat: whether prompts use the model's chat template.

    Returns:
        values by the metrics that all tasks have, at least one.

    Raises:
        ModelError: the model or a template failed.
        ConfigError: a task has no metric of single documents.
    """
    results = _run_evaluator(model, tasks, limit=limit, seed=seed, chat=chat, log_samples=True)
    samples = [
        sample
        for name in names
        for sample in sorted(results["samples"][name], key=lambda sample: int(sample["doc_id"]))
        if sample["filter"] == results["samples"][name][0]["filter"]  # the first, if several
    ]
    metrics = [
        metric
        for metric in samples[0]["metrics"]
        if all(isinstance(sample.get(metric), int | float) for sample in samples)
    ]
    if not metrics:
        raise ConfigError(f"{names[0]} has no metric of single documents, so it has no row")
    return {metric: [float(sample[metric]) for sample in samples] for metric in metrics}


def _run_evaluator(
    model: Any, tasks: LoadedTasks, *, limit: int | None, seed: int, chat: bool, log_samples: bool
) -> Mapping[str, Any]:
    evaluator = load_library("lm_eval.evaluator")
    os.environ.setdefault("DISABLE_MULTIPROC", "1")  # its bootstrap would fork this process
    for task in tasks["tasks"].values():
        task.set_fewshot_seed(seed)
    load_library("lm_eval.utils").set_torch_seed(seed)
    with suppress_output():
        try:
            results: Mapping[str, Any] = evaluator.evaluate(
                model,
                tasks,
                limit=limit,
                bootstrap_iters=BOOTSTRAP_SAMPLES,
                log_samples=log_samples,
                cache_requests=False,  # keyed by task name, so a release would be mistaken for another
                apply_chat_template=chat,
                fewshot_as_multiturn=chat,
            )
        except Exception as error:
            failure = _explain_error(error)
        else:
            return results
    raise ModelError(
        failure
    )  # raised out here, because the error's message and chain may hold documents


def _explain_error(error: Exception) -> str:
    name = type(error).__name__
    if isinstance(error, NotImplementedError):
        return (
            "tasks with options need a model that gives probabilities of texts; use one with "
            "completions (local-completions, hf), or a generation task"
        )
    if name in ("UndefinedError", "KeyError"):
        return (
            f"a prompt uses a field that is not privatized ({name}): name all fields in --fields "
            "TASK=FIELD,FIELD"
        )
    if isinstance(error, AssertionError):
        return "the evaluation failed (AssertionError); a chat model needs --apply_chat_template"
    return f"the evaluation failed ({name})"


def _build_rows(results: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    scores = {**results["results"], **results.get("groups", {})}
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
                "value": _keep_finite(value),
                "stderr": _keep_finite(error) if isinstance(error, int | float) else None,
                "n": values.get("sample_len"),
                "higher_is_better": results["higher_is_better"].get(task, {}).get(metric),
                "version": results["versions"].get(task),
            }


def _keep_finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def get_reported_arguments(arguments: str) -> dict[str, Any]:
    """Returns the model arguments that a report may repeat."""
    options: dict[str, Any] = load_library("lm_eval.utils").simple_parse_args_string(arguments)
    return {name: value for name, value in options.items() if name in REPORTED_ARGUMENTS}
