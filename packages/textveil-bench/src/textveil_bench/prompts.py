"""Our own prompts of the roles in which the bench asks a language model.

In: a role. Out: its prompt, ours or that of a file; all of ours as a file to fill in.
Not here: what a prompt is (`textveil.models`), and who asks (`tasks`).
"""

from collections.abc import Mapping
from dataclasses import fields

import yaml

from textveil.models import COHERENCE_PROMPT, EXTRACTION_PROMPT, ROLES, Prompt, Prompts

LABEL_PROMPT = Prompt(
    system="{task} The answer is one of: {labels}. Answer with it alone, without a reason."
)

OURS: Mapping[str, Prompt] = {
    "question_answering": Prompt(
        system=(
            "Answer the question from the text, in words of the text. {length} Answer with the "
            "answer alone."
        )
    ),
    "classification": LABEL_PROMPT,
    "choice": LABEL_PROMPT,
    "continuation": Prompt(
        system=(
            "The user sends the beginning of a text. Write how it goes on, in about {length} words "
            "and in the same style. Your answer is the continuation alone, without the beginning."
        )
    ),
    "extraction": EXTRACTION_PROMPT,
    "repair": COHERENCE_PROMPT,
}
"""The wordings in use without a file. `generation` is ours in `fantasy`."""

TEMPLATE_HEAD = """\
# Prompts of language models, one entry a role; roles left out keep our wording. Each has `system`, `user` or both, and
# may have `temperature` and `max_tokens`, which then replace those of the task. Names in braces are filled in; braces
# themselves are written twice. An entry may have other wordings for single data sets: `data: {sst2: {system: ...}}`.
# `classification` may have `labels`, the names of the labels in the order of the data set's own.
"""

NOTES: Mapping[str, str] = {
    "question_answering": "{text}: question and context with their names; {context}, {question}; "
    "{length}: how long an answer may be",
    "classification": "{text}: all fields of the text; {question}, {sentence} where it has them; "
    "{task}: the question about it; {labels}",
    "choice": "{text}: question and options with their names; {question}, {options}, {task}, {labels}",
    "continuation": "{text}: the beginning; {length}: words to write",
    "extraction": "{text}: the beginning, {draft}: what the remote model wrote; {placeholders}: a "
    "reminder, empty without placeholders",
    "repair": "{text}: the release; {placeholders}: as in extraction",
    "generation": "{topic}, {names}: invented ones to use, {questions}: how many, {longest}: most "
    "words of an answer, which is JSON (`textveil bench fantasy --prompts`)",
}


def choose_prompt(prompts: Prompts | None, role: str, data: str = "") -> Prompt:
    """Returns the prompt of a role: that of the file if it has one, else ours."""
    return (None if prompts is None else prompts.find(role, data)) or OURS[role]


def format_template() -> str:
    """Formats our prompts as a file to fill in."""
    parts = [TEMPLATE_HEAD]
    for role in ROLES:
        parts.append(f"# {NOTES[role]}\n")
        if role not in OURS:
            continue
        prompt, plain = OURS[role], Prompt()
        entry = {
            item.name: getattr(prompt, item.name)
            for item in fields(Prompt)
            if item.name in ("system", "user")
            or getattr(prompt, item.name) != getattr(plain, item.name)
        }
        parts.append(
            yaml.dump({role: entry}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
        )
    return "\n".join(parts)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _represent_text)
