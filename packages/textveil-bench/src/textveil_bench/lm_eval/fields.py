"""The fields of a task's documents that its prompts show, from its templates or given by the user.

In: a task of lm-evaluation-harness. Out: `Fields`: what is privatized, what stays, whether the answer is a label.
Not here: the documents (`guarded`), and how tasks are loaded (`harness`).

If the fields cannot be determined, the task is refused. Besides, a guarded document only has these fields: a template
that uses any other finds nothing there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from textveil.errors import ConfigError, UnknownName, shown
from textveil_bench.lm_eval.extra import library


@dataclass(frozen=True, kw_only=True)
class Shows:
    """The fields that a task's prompts show, with choices separate."""

    texts: tuple[str, ...]
    choices: tuple[str, ...] = ()


KNOWN: Mapping[str, Shows] = {
    "sst2": Shows(texts=("sentence",)),
    "qnli": Shows(texts=("question", "sentence")),
    "swag": Shows(texts=("startphrase",), choices=("ending0", "ending1", "ending2", "ending3")),
    "mmlu": Shows(texts=("question",), choices=("choices",)),
    "mmlu_*": Shows(texts=("question",), choices=("choices",)),
}
"""Tasks whose choices are known, though they may be part of the question. A task of the same name with other fields is
another task, and treated like any other."""

LABELLED = "multiple_choice"
"""The kind of task whose answer is the index of a choice."""


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The fields that a guarded document keeps.

    Attributes:
        texts: privatized, as one text, in this order.
        kept: unchanged: numbers that an answer is made of, and what the user wants to keep.
        label: whether the answer is the index of a choice, which stays.
    """

    texts: tuple[str, ...]
    kept: tuple[str, ...]
    label: bool

    @property
    def all(self) -> tuple[str, ...]:
        """All fields that templates may use."""
        return self.texts + self.kept


@dataclass(frozen=True, kw_only=True)
class FieldOptions:
    """The user's options for fields, by pattern of task names ("mmlu_*").

    Attributes:
        fields: document fields shown in prompts, if the template does not say.
        keep: fields shown unchanged.
        keep_choices: whether choices (options, endings) are shown unchanged.
    """

    fields: Mapping[str, tuple[str, ...]]
    keep: Mapping[str, tuple[str, ...]]
    keep_choices: bool = False

    def of(self, task: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The fields of one task, and those that are kept."""
        first, second = (
            tuple(
                dict.fromkeys(
                    name
                    for pattern, names in each.items()
                    if fnmatchcase(task, pattern)
                    for name in names
                )
            )
            for each in (self.fields, self.keep)
        )
        return first, second

    def check(self, tasks: Sequence[str]) -> None:
        """Raises if a pattern matches none of the tasks."""
        for pattern in (*self.fields, *self.keep):
            if not any(fnmatchcase(task, pattern) for task in tasks):
                raise UnknownName("task of this run", pattern, tasks)


def fields_of(task: Any, first: Mapping[str, Any], said: FieldOptions) -> Fields:
    """The fields of a task's documents that its prompts show.

    Args:
        task: a `ConfigurableTask`, as loaded.
        first: its first document.
        said: the user's options.

    Raises:
        ConfigError: the fields its prompts show cannot be determined, or the kind of task cannot be guarded.
    """
    _require_guardable(task)
    name, config, examples = task.task_name, task.config, task.fewshot_cfg
    label = config.output_type == LABELLED
    asked = [
        config.doc_to_text,
        examples.doc_to_text,
        config.description,
        config.gen_prefix,
        examples.gen_prefix,
    ]
    if examples.doc_to_target != config.doc_to_target:
        asked.append(examples.doc_to_target)
    prompts = _used(first, *asked)
    choices = _used(first, config.doc_to_choice, examples.doc_to_choice)
    answers = () if label else _used(first, config.doc_to_target)
    given, keep = said.of(name)
    if None in (prompts, choices, answers) and not given:
        raise ConfigError(
            f"the prompts of {name} are made by its own code, so the fields they show are unknown: name all of them, "
            f"--fields {name}=FIELD,FIELD"
        )
    found = dict.fromkeys([*(prompts or ()), *(choices or ()), *(answers or ())])
    for each in (*found, *given, *keep):
        if each not in first:
            raise UnknownName(f"field of {name}", each, first)
    keep += tuple(
        each for each in answers or () if each not in (prompts or ()) and not has_text(first[each])
    )
    if given and (missed := [each for each in found if each not in (*given, *keep)]):
        raise ConfigError(
            f"the prompts of {name} also show {', '.join(missed)}: add them to --fields or --keep"
        )
    texts = tuple(dict.fromkeys(given or found))
    if said.keep_choices:
        keep += _choices(name, texts, choices or ())
    return Fields(
        texts=tuple(each for each in texts if each not in keep),
        kept=tuple(dict.fromkeys(keep)),
        label=label,
    )


def has_text(value: object) -> bool:
    """Whether there is a string in a field's value."""
    if isinstance(value, Mapping):
        return any(map(has_text, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_text, value))
    return isinstance(value, str)


def _require_guardable(task: Any) -> None:
    name, config = task.task_name, task.config
    if type(task) is not library("lm_eval.api.task").ConfigurableTask:
        raise ConfigError(
            f"{name} is a task with its own code, which may show anything: it cannot be guarded"
        )
    for wrong, why in (
        (
            config.doc_to_image is not None or config.doc_to_audio is not None,
            "shows images or sounds",
        ),
        (config.use_prompt is not None, "takes its prompts from a collection"),
        (task.multiple_input, "puts its choices into several prompts"),
    ):
        if wrong:
            raise ConfigError(f"{name} {why}, so it cannot be guarded; leave it out")


def _used(first: Mapping[str, Any], *templates: Any) -> tuple[str, ...] | None:
    """The fields that templates use, in order of use; None if one of them is not a template."""
    found: dict[str, None] = {}
    for template in templates:
        if isinstance(template, str):
            found |= dict.fromkeys([template] if template in first else _variables(template))
        elif callable(template) or hasattr(template, "apply"):
            return None
    return tuple(found)


def _variables(template: str) -> Iterator[str]:
    """The variables of a Jinja template that it does not set itself, in order of use."""
    tree = library("lm_eval.utils").env.parse(template)
    free = library("jinja2.meta").find_undeclared_variables(tree)
    nodes = tree.find_all(library("jinja2.nodes").Name)
    return (node.name for node in nodes if node.name in free)


def _choices(name: str, texts: tuple[str, ...], used: tuple[str, ...]) -> tuple[str, ...]:
    """The choice fields: those of the choices' template, or those known."""
    for pattern, known in KNOWN.items():
        if fnmatchcase(name, pattern) and {*known.texts, *known.choices} == {*texts}:
            return known.choices
    return tuple(each for each in used if each in texts)


def parsed(option: str, typed: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parses fields given as "task=field,field".

    Raises:
        ConfigError: they have another form.
    """
    found: dict[str, tuple[str, ...]] = {}
    for each in typed:
        task, equals, names = each.partition("=")
        fields = tuple(name.strip() for name in names.split(",") if name.strip())
        if not (task and equals and fields):
            raise ConfigError(f"{option} must be TASK=FIELD,FIELD, got {shown(each)}")
        found[task] = fields
    return found
