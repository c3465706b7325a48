"""Document fields that a task's prompts show, from templates or user options.

In: a task of lm-evaluation-harness. Out: `GuardedFields`: the privatized and the unchanged fields,
and whether the answer is a label.
Not here: the documents (`guarded`), and how tasks are loaded (`harness`).

If the fields cannot be determined, the task is refused. A guarded document has only these fields: a
template that uses any other finds nothing there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from textveil.errors import ConfigError, UnknownName, quote_short
from textveil_bench.lm_eval.extra import load_library


@dataclass(frozen=True, kw_only=True)
class PromptFields:
    """Fields that a task's prompts show, with choices separate."""

    texts: tuple[str, ...]
    choices: tuple[str, ...] = ()


TASKS_WITH_CHOICES: Mapping[str, PromptFields] = {
    "sst2": PromptFields(texts=("sentence",)),
    "qnli": PromptFields(texts=("question", "sentence")),
    "swag": PromptFields(
        texts=("startphrase",), choices=("ending0", "ending1", "ending2", "ending3")
    ),
    "mmlu": PromptFields(texts=("question",), choices=("choices",)),
    "mmlu_*": PromptFields(texts=("question",), choices=("choices",)),
}
"""Tasks whose choice fields are known, even if the question shows them.

A task of the same name with other fields is another task, and treated like any other.
"""

MULTIPLE_CHOICE = "multiple_choice"
"""Kind of task whose answer is the index of a choice."""


@dataclass(frozen=True, kw_only=True)
class GuardedFields:
    """Fields that a guarded document keeps.

    Attributes:
        texts: fields that are privatized, as one text, in this order.
        verbatim: unchanged fields: numbers in an answer, and fields that the user keeps.
        has_label: whether the answer is the index of a choice, which stays.
    """

    texts: tuple[str, ...]
    verbatim: tuple[str, ...]
    has_label: bool

    @property
    def all_names(self) -> tuple[str, ...]:
        """All fields that templates may use."""
        return self.texts + self.verbatim


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

    def select_fields(self, task: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns one task's shown fields, and its unchanged ones."""
        first, second = (
            tuple(
                dict.fromkeys(
                    name
                    for pattern, names in option.items()
                    if fnmatchcase(task, pattern)
                    for name in names
                )
            )
            for option in (self.fields, self.keep)
        )
        return first, second

    def check(self, tasks: Sequence[str]) -> None:
        """Checks that each pattern matches a task.

        Raises:
            UnknownName: a pattern matches none of the tasks.
        """
        for pattern in (*self.fields, *self.keep):
            if not any(fnmatchcase(task, pattern) for task in tasks):
                raise UnknownName("task of this run", pattern, tasks)


def find_fields(task: Any, document: Mapping[str, Any], options: FieldOptions) -> GuardedFields:
    """Finds the document fields that a task's prompts show.

    Args:
        task: a `ConfigurableTask`, as loaded.
        document: its first document.
        options: the user's options.

    Raises:
        ConfigError: the fields its prompts show cannot be determined, or the kind of task cannot be
            guarded.
    """
    _require_guardable(task)
    name, config, examples = task.task_name, task.config, task.fewshot_cfg
    label = config.output_type == MULTIPLE_CHOICE
    templates = [
        config.doc_to_text,
        examples.doc_to_text,
        config.description,
        config.gen_prefix,
        examples.gen_prefix,
    ]
    if examples.doc_to_target != config.doc_to_target:
        templates.append(examples.doc_to_target)
    prompts = _find_used_fields(document, *templates)
    choices = _find_used_fields(document, config.doc_to_choice, examples.doc_to_choice)
    answers = () if label else _find_used_fields(document, config.doc_to_target)
    user_fields, keep = options.select_fields(name)
    if None in (prompts, choices, answers) and not user_fields:
        raise ConfigError(
            f"the prompts of {name} are made by its own code, so the fields they show are unknown: "
            f"name all of them, --fields {name}=FIELD,FIELD"
        )
    prompt_fields = dict.fromkeys([*(prompts or ()), *(choices or ()), *(answers or ())])
    for field in (*prompt_fields, *user_fields, *keep):
        if field not in document:
            raise UnknownName(f"field of {name}", field, document)
    keep += tuple(
        field
        for field in answers or ()
        if field not in (prompts or ()) and not has_text(document[field])
    )
    if user_fields and (
        missing := [field for field in prompt_fields if field not in (*user_fields, *keep)]
    ):
        raise ConfigError(
            f"the prompts of {name} also show {', '.join(missing)}: add them to --fields or --keep"
        )
    texts = tuple(dict.fromkeys(user_fields or prompt_fields))
    if options.keep_choices:
        keep += _find_choices(name, texts, choices or ())
    return GuardedFields(
        texts=tuple(field for field in texts if field not in keep),
        verbatim=tuple(dict.fromkeys(keep)),
        has_label=label,
    )


def has_text(value: object) -> bool:
    """True if a field's value contains a string."""
    if isinstance(value, Mapping):
        return any(map(has_text, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_text, value))
    return isinstance(value, str)


def _require_guardable(task: Any) -> None:
    name, config = task.task_name, task.config
    if type(task) is not load_library("lm_eval.api.task").ConfigurableTask:
        raise ConfigError(
            f"{name} has its own code, which may show any field, so it cannot be guarded"
        )
    for wrong, reason in (
        (
            config.doc_to_image is not None or config.doc_to_audio is not None,
            "shows images or sounds",
        ),
        (config.use_prompt is not None, "takes its prompts from a collection"),
        (task.multiple_input, "puts its choices into several prompts"),
    ):
        if wrong:
            raise ConfigError(f"{name} {reason}, so it cannot be guarded; leave it out")


def _find_used_fields(document: Mapping[str, Any], *templates: Any) -> tuple[str, ...] | None:
    """Finds the fields in templates, in order; None for a non-template."""
    names: dict[str, None] = {}
    for template in templates:
        if isinstance(template, str):
            names |= dict.fromkeys(
                [template] if template in document else _list_variables(template)
            )
        elif callable(template) or hasattr(template, "apply"):
            return None
    return tuple(names)


def _list_variables(template: str) -> Iterator[str]:
    """Yields the undeclared variables of a Jinja template, in order of use."""
    tree = load_library("lm_eval.utils").env.parse(template)
    free = load_library("jinja2.meta").find_undeclared_variables(tree)
    nodes = tree.find_all(load_library("jinja2.nodes").Name)
    return (node.name for node in nodes if node.name in free)


def _find_choices(name: str, texts: tuple[str, ...], used: tuple[str, ...]) -> tuple[str, ...]:
    """Finds the choice fields: known ones, or those of the choices' template."""
    for pattern, fields in TASKS_WITH_CHOICES.items():
        if fnmatchcase(name, pattern) and {*fields.texts, *fields.choices} == {*texts}:
            return fields.choices
    return tuple(field for field in used if field in texts)


def parse_fields(option: str, typed: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parses field options of the form "task=field,field".

    Raises:
        ConfigError: they have another form.
    """
    fields_by_task: dict[str, tuple[str, ...]] = {}
    for argument in typed:
        task, equals, names = argument.partition("=")
        fields = tuple(name.strip() for name in names.split(",") if name.strip())
        if not (task and equals and fields):
            raise ConfigError(f"{option} must be TASK=FIELD,FIELD, got {quote_short(argument)}")
        fields_by_task[task] = fields
    return fields_by_task
