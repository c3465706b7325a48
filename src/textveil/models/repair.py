"""Repair: a language model makes releases and answers read well.

In: what was released, answers to it, and an endpoint. Out: texts with the same placeholders.
Not here: how an endpoint is called (`endpoint`), and what placeholders stand for (`session`).

All of it is post-processing: no private text is involved, and no guarantee changes.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from textveil.errors import ConfigError, InputError, TextveilWarning
from textveil.models.endpoint import Endpoint
from textveil.models.prompts import Prompt
from textveil.text import CLOSING, OPENING, Released

REPAIR_TEMPERATURE = 0.2
"""The temperature of repairs: STAMP, appendix C."""

EXTRACTION_TEMPERATURE = 0.5
"""The temperature of extraction: InferDPT, as Cape's section 5 uses it."""

COHERENCE_PROMPT = Prompt(
    system="""\
A privacy program has exchanged words of the text that the user sends for others, so that it reads badly. Edit it into \
fluent, correct sentences of the same language. Change as little as that takes: endings, word order, and small words \
such as articles and prepositions. Its statements, its tone and its paragraphs stay. Nothing may be added that the \
text does not say: no facts, no names, no places, no dates; abbreviations are not spelled out. {placeholders}Your \
answer is the edited text alone.""",
)

EXTRACTION_PROMPT = Prompt(
    system="""\
The user sends two texts. REQUEST is something that a person wrote, in which a privacy program exchanged words for \
others. DRAFT is what was written in reply, and may have followed the exchanged words astray. Write the reply that \
suits the REQUEST: build it from the material of the DRAFT, keep what is coherent and belongs to the matter, and let \
go of what contradicts the REQUEST or itself. Do not bring in facts of your own. {placeholders}Your answer is the \
reply alone.""",
    user="REQUEST:\n{text}\n\nDRAFT:\n{draft}",
)

PLACEHOLDER_REMINDER = """\
What stands in angle brackets is a placeholder and is copied character by character, brackets included. Each of these \
must occur exactly as often as said, and no other may occur: {counts}. """

_PLACEHOLDER = re.compile(f"{OPENING}[A-Z][A-Z0-9_]*{CLOSING}")


ProgressCallback = Callable[[str, int, int], None]
"""Callback for progress: the step's name, the amount done, the total."""


def repair(
    releases: Sequence[Released | str],
    endpoint: Endpoint,
    *,
    attempts: int = 2,
    temperature: float = REPAIR_TEMPERATURE,
    prompt: Prompt = COHERENCE_PROMPT,
    report: ProgressCallback | None = None,
) -> list[str]:
    """Asks a language model to correct the grammar of releases.

    Their content and placeholders should stay.

    The model may hallucinate: a repaired text can say what the release did not. As post-processing,
    it keeps the statement of the release.

    Args:
        releases: what was released, or its text; never an original.
        endpoint: the model to ask; its temperature is ignored.
        attempts: most attempts per text to get the placeholders right, 1 or more.
        temperature: from 0 to 2, unless the prompt has one.
        prompt: the wording; if it does not show {placeholders}, the model is told of them at the
            end of the system message, and only for texts that have some.
        report: called with progress.

    Returns:
        one text per release. One whose placeholders are still wrong after all attempts stays as
            released, and a
        `TextveilWarning` says how many did.

    Raises:
        EndpointError: the endpoint cannot be reached, refused, or answered without text.

    Source: STAMP, appendix C (coherence repair), reworded.
    """
    texts = [_read_text(release) for release in releases]
    numbers = [i for i, text in enumerate(texts) if text.strip()]
    questions = [({"text": texts[i]}, texts[i]) for i in numbers]
    answers = _ask(questions, prompt, endpoint, attempts, temperature, report)
    return _merge_answers(texts, numbers, answers)


def extract(
    prompts: Sequence[Released | str],
    answers: Sequence[str],
    endpoint: Endpoint,
    *,
    attempts: int = 2,
    temperature: float = EXTRACTION_TEMPERATURE,
    prompt: Prompt = EXTRACTION_PROMPT,
    report: ProgressCallback | None = None,
) -> list[str]:
    """Asks a language model to adapt answers to their prompts.

    To the released ones.

    In InferDPT, a local model sees the original; give originals to no other.

    Args:
        prompts: what was released and sent, or its text.
        answers: the replies, one per prompt, with their placeholders.
        endpoint: the model to ask; its temperature is ignored.
        attempts: most attempts per text to get the placeholders of its answer right, 1 or more.
        temperature: from 0 to 2, unless the prompt has one.
        prompt: the wording; if it does not show {placeholders}, the model is told of them at the
            end of the system message, and only for texts that have some.
        report: called with progress.

    Returns:
        one text per answer. One whose placeholders are still wrong after all attempts stays as the
            answer was, and a
        `TextveilWarning` says how many did.

    Raises:
        InputError: there are not as many answers as prompts.
        EndpointError: the endpoint cannot be reached, refused, or answered without text.

    Source: InferDPT (Tong et al., 2023), the extraction module, as in Cape's appendix D, reworded.
    """
    if len(prompts) != len(answers):
        raise InputError(
            f"give one answer per prompt, got {len(prompts)} prompts and {len(answers)} answers"
        )
    numbers = [i for i, answer in enumerate(answers) if answer.strip()]
    questions = [
        ({"text": _read_text(prompts[i]), "draft": answers[i]}, answers[i]) for i in numbers
    ]
    return _merge_answers(
        answers, numbers, _ask(questions, prompt, endpoint, attempts, temperature, report)
    )


def count_placeholders(text: str) -> Counter[str]:
    """Counts the placeholders of a text."""
    return Counter(_PLACEHOLDER.findall(text))


def _read_text(release: Released | str) -> str:
    return release if isinstance(release, str) else release.text


def _ask(
    questions: Sequence[tuple[Mapping[str, str], str]],
    prompt: Prompt,
    endpoint: Endpoint,
    attempts: int,
    temperature: float,
    report: ProgressCallback | None,
) -> list[str | None]:
    """Asks until answers keep their placeholders; else None.

    A question is (values of the prompt, text with the placeholders to keep).
    """
    if attempts < 1:
        raise ConfigError("attempts must be 1 or more")
    calm = replace(
        endpoint, temperature=temperature if prompt.temperature is None else prompt.temperature
    )
    if "placeholders" not in prompt.find_placeholders():
        prompt = replace(prompt, system=f"{prompt.system} {{placeholders}}".lstrip())
    wanted = [count_placeholders(text) for _, text in questions]
    result: list[str | None] = [None] * len(questions)
    for attempt in range(attempts):
        open_questions = [i for i, text in enumerate(result) if text is None]
        if not open_questions:
            break
        filled = [
            prompt.fill(**questions[i][0], placeholders=_spell_reminder(wanted[i]))
            for i in open_questions
        ]
        answers = calm.ask(
            [(system.rstrip(), user) for system, user in filled],
            report=report,
            max_tokens=prompt.max_tokens,
            attempt=attempt,
        )
        for i, answer in zip(open_questions, answers, strict=True):
            if count_placeholders(answer) == wanted[i]:
                result[i] = answer.encode(
                    errors="replace"
                ).decode()  # JSON may hold lone surrogates
    return result


def _spell_reminder(wanted: Counter[str]) -> str:
    counts = ", ".join(f"{placeholder} {count}x" for placeholder, count in wanted.items())
    return PLACEHOLDER_REMINDER.format(counts=counts) if wanted else ""


def _merge_answers(
    texts: Sequence[str], numbers: Sequence[int], answers: Sequence[str | None]
) -> list[str]:
    merged = list(texts)
    for i, text in zip(numbers, answers, strict=True):
        merged[i] = text if text is not None else merged[i]
    failures = sum(text is None for text in answers)
    if failures:
        warnings.warn(
            (
                f"{failures} of {len(texts)} texts stay unchanged: the model changed their "
                "placeholders at every attempt"
            ),
            TextveilWarning,
            stacklevel=3,
        )
    return merged
