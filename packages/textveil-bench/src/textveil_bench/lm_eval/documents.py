"""Documents of lm-evaluation-harness as a data set, and its models as a judge of their releases.

In: a task's name, as `lm-eval:NAME`; releases of its documents. Out: a `DataSet`; scores, a value per
document.
Not here: single evaluations with few-shot examples (`run`), and how prompts are kept free of
originals (`guarded`).

So a sweep attacks the same releases that the model answers on, and a row holds both.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil_bench.data.loading import TASK_PREFIX
from textveil_bench.examples import DataSet, Example
from textveil_bench.lm_eval import harness
from textveil_bench.lm_eval.extra import suppress_output
from textveil_bench.lm_eval.fields import FieldOptions, find_fields
from textveil_bench.lm_eval.guarded import FEW_SHOT_SEED, Document, GuardedTask
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample

PATTERN = "*"
"""Pattern of task names: the options of a data set are for all tasks of its group."""


@make_options("data.")
class TaskOptions:
    """Options of a task's documents.

    Attributes:
        include_path: a folder with your own task files.
        fields: the fields that prompts show, if the template does not say.
        keep: fields that are shown unchanged.
        keep_choices: whether choices are shown unchanged.
    """

    include_path: str | None = None
    fields: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    keep_choices: bool = False


def is_task(name: str) -> bool:
    """True if the name of a data set is that of a harness's task."""
    return name.startswith(TASK_PREFIX)


def load_documents(name: str, limit: int | None, **options: Any) -> DataSet:
    """Loads the evaluated documents of a task, or of each task of a group.

    Args:
        name: `lm-eval:NAME`.
        limit: largest number of documents of each task; None for all.
        options: options of `TaskOptions`.

    Raises:
        ConfigError: lm-evaluation-harness is not installed, shown fields are unknown, or documents
            differ in their number of texts.
        UnknownName: there is no such task.
        InputError: the data of a task cannot be loaded, or is not text.
    """
    guarded_tasks = _guard(name, limit, TaskOptions(**options))[1]
    examples = tuple(
        Example(texts=document.texts, group=task.task.task_name)
        for task in guarded_tasks
        for document in task.documents.values()
    )
    return DataSet(
        name=name,
        split="test",
        kind="text",
        fields=tuple(f"text {i}" for i in range(1, 1 + len(examples[0].texts))),
        examples=examples,
        source=f"lm-evaluation-harness: {name.removeprefix(TASK_PREFIX)}",
        remarks=("no few-shot examples are shown",),
    )


def _guard(
    name: str, limit: int | None, options: TaskOptions
) -> tuple[harness.LoadedTasks, list[GuardedTask]]:
    tasks = harness.load_tasks([name.removeprefix(TASK_PREFIX)], options.include_path)
    fields = FieldOptions(
        fields={PATTERN: options.fields} if options.fields else {},
        keep={PATTERN: options.keep} if options.keep else {},
        keep_choices=options.keep_choices,
    )
    with suppress_output():
        return tasks, [
            GuardedTask(
                task,
                task.eval_docs,
                find_fields(task, task.eval_docs[0], fields),
                fewshot_count=0,
                limit=limit,
            )
            for task in tasks["tasks"].values()
        ]


@cache
def load_model(name: str, arguments: str, batch_size: str | None, device: str | None) -> Any:
    """Loads a model once per process."""
    return harness.load_model(name, arguments, batch_size=batch_size, device=device)


@make_options()
class HarnessJudge:
    """Judges the released documents of a task by a model of lm-evaluation-harness.

    The model sees releases only, without few-shot examples. Its scores are the task's own metrics;
    the first is the headline.

    Args:
        model: a model type of lm-evaluation-harness.
        model_args: its arguments, "pretrained=google/flan-t5-large".
        batch_size: a number, "auto" or "auto:N"; None is 1.
        device: a torch device; None is a GPU if there is one.
        chat: whether prompts use the model's chat template.
        options: options of `TaskOptions`, the same as of the data set.
    """

    model: str = "hf"
    # May hold keys. In `Annotated`, `repr=False` would have no effect.
    model_args: str = Field(default="", repr=False)
    batch_size: str | None = None
    device: str | None = None
    chat: bool = False
    options: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """The judge's name in rows."""
        arguments = harness.get_reported_arguments(self.model_args)
        return f"lm-eval ({arguments.get('pretrained') or arguments.get('model') or self.model})"

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why the data are not documents of a task, or ""."""
        return "" if is_task(data.name) else f"{data.name} is no task of lm-evaluation-harness"

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Yields each metric of the task, by document.

        Raises:
            ConfigError: the options are not those of the data set.
            ModelError: the model cannot be loaded, or fails.
        """
        tasks, guarded_tasks = _guard(
            data.name, _count_documents(data), TaskOptions(**self.options)
        )
        documents = [document for task in guarded_tasks for document in task.documents.values()]
        if [document.texts for document in documents] != [trial.example.texts for trial in trials]:
            raise ConfigError(
                f"the options of the task lm-eval must be those of the data set {data.name}"
            )
        releases = dict(zip(map(id, documents), trials, strict=True))
        for task in guarded_tasks:
            task.fill_documents(partial(_get_texts, releases))
        model = load_model(self.model, self.model_args, self.batch_size, self.device)
        values = harness.evaluate_documents(
            model,
            tasks,
            [task.task.task_name for task in guarded_tasks],
            limit=_count_documents(data),
            seed=FEW_SHOT_SEED,
            chat=self.chat,
        )
        for i, (metric, numbers) in enumerate(values.items()):
            yield Score(
                metric=metric,
                values=np.array(numbers, np.float64),
                share=all(0 <= number <= 1 for number in numbers),
                headline=i == 0,
                note="zero-shot, as lm-evaluation-harness asks and scores",
            )


def _get_texts(releases: Mapping[int, ReleasedExample], document: Document) -> Sequence[str]:
    return releases[id(document)].texts


def _count_documents(data: DataSet) -> int:
    """Counts the documents of the largest task, which is the limit of each."""
    groups = [example.group for example in data.examples]
    return max(map(groups.count, set(groups)))
