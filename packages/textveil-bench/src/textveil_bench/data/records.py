"""Converts records to examples: one function for each published form.

In: a record, as a mapping of field names to values. Out: `Example`s; one without texts or answers
is left out.
Not here: the form of each data set (`sources`), and reading files (`formats`).

A faulty record raises an `InputError` that names its fields and never shows their content.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from textveil.errors import InputError, quote_short
from textveil_bench.data.pairs import split_sentences
from textveil_bench.examples import Example

Record = Mapping[str, Any]
Reader = Callable[[Record], Iterator[Example]]

LETTERS = ("A", "B", "C", "D")
"""The letters of the options of a choice."""

GOLD, SILVER = "gold", "silver"
"""Groups of questions: answered by people, and answered by a model."""

MIN_PARAGRAPH_WORDS = 50
"""Minimum number of words of a paragraph that counts as a text."""


def build_plain_reader(
    *fields: str, labels: Sequence[str] = (), label: str = "label", group: str = ""
) -> Reader:
    """Builds a reader of records with one field per text.

    Args:
        fields: the names of the texts.
        labels: the names of the labels; a record has one of them, or its index from 0. Empty for no
            label.
        label: the field with the label.
        group: the field with the group.
    """

    def read(record: Record) -> Iterator[Example]:
        yield Example(
            texts=tuple(read_text(record, field) for field in fields),
            label=read_label(record, label, labels) if labels else None,
            group=str(get_field(record, group)) if group else "",
        )

    return read


def build_news_reader(labels: Sequence[str]) -> Reader:
    """Builds a reader of AG News, from files or the hub.

    Files have titles and classes from 1; the hub has one text and classes from 0. A title and its
    description are joined by a space, as on the hub. Remains of HTML are removed: the published
    files have entities without their ampersand ("Valve #39;s"), tags, and backslashes for line
    ends.
    """

    def read(record: Record) -> Iterator[Example]:
        is_joined = "text" in record
        index = read_label(record, "label", labels, first=0 if is_joined else 1)
        parts = [
            read_text(record, field)
            for field in (("text",) if is_joined else ("title", "description"))
        ]
        full_text = remove_markup(" ".join(part for part in parts if part.strip()))
        yield Example(texts=(full_text,), label=index, group=labels[index])

    return read


_ENTITY = re.compile(r"(?:(?<=\w) )?&?(#\d{1,5}|quot|amp|lt|gt|nbsp|mdash|ndash);")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")


def remove_markup(value: str) -> str:
    """Removes HTML: decodes entities; tags and backslashes become spaces."""
    plain = _ENTITY.sub(
        lambda match: (
            (" " if match[1] != "#39" else "") * match[0].startswith(" ")
            + html.unescape(f"&{match[1]};")
        ),
        value,
    )
    return " ".join(_TAG.sub(" ", plain).replace("\\", " ").split())


def build_review_reader(labels: Sequence[str]) -> Reader:
    r"""Builds a reader of Yelp, from files or the hub.

    Files have stars from 1; the hub has labels from 0. A literal \n becomes a line end.
    """

    def read(record: Record) -> Iterator[Example]:
        index = (
            read_label(record, "stars", labels, first=1)
            if "stars" in record
            else read_label(record, "label", labels)
        )
        yield Example(texts=(read_text(record, "text").replace("\\n", "\n"),), label=index)

    return read


def read_endings(record: Record) -> Iterator[Example]:
    """Reads SWAG: the start of a scene, and four possible continuations."""
    options = (read_text(record, f"ending{i}") for i in range(len(LETTERS)))
    yield Example(
        texts=(read_text(record, "startphrase"), *options),
        label=read_label(record, "label", LETTERS),
    )


def read_subjects(record: Record) -> Iterator[Example]:
    """Reads MMLU: a question with four options, in separate fields or a list; the group is the subject."""
    if "choices" in record:
        options = [str(option) for option in _read_list(record, "choices")]
    else:
        options = [read_text(record, letter) for letter in LETTERS]
    if len(options) != len(LETTERS):
        raise InputError(f"the field choices must have {len(LETTERS)} options, got {len(options)}")
    yield Example(
        texts=(read_text(record, "question"), *options),
        label=read_label(record, "answer", LETTERS),
        group=read_text(record, "subject"),
    )


def build_question_reader(group: str = "") -> Reader:
    """Builds a reader of SQuAD: nested files, or single questions.

    A human answer must occur in the paragraph. A model's answer that does not is dropped, which
    leaves the question without an answer.

    Args:
        group: of questions answered by people; those answered by a model are `SILVER`.
    """

    def read(record: Record) -> Iterator[Example]:
        if "data" in record:
            for article in _read_list(record, "data"):
                for paragraph in _read_list(article, "paragraphs"):
                    for question in _read_list(paragraph, "qas"):
                        yield from read_question(question, read_text(paragraph, "context"))
        else:
            yield from read_question(record, read_text(record, "context"))

    def read_question(record: Record, context: str) -> Iterator[Example]:
        question = read_text(record, "question")
        raw_answers = next(
            (record[name] for name in ("gold_answers", "answers", "answer") if record.get(name)),
            None,
        )
        literal_answers = require_answers(parse_answers(raw_answers), context)
        if literal_answers or "silver_answer" not in record:
            yield Example(texts=(question, context), answers=literal_answers, group=group)
        else:
            silver = read_text(record, "silver_answer")
            literal_answers = (silver,) if silver and silver in context else ()
            yield Example(texts=(question, context), answers=literal_answers, group=SILVER)

    return read


def build_sentence_reader(read: Reader) -> Reader:
    """Builds a reader of questions as choices among sentences.

    The options are the first four sentences of the paragraph. A question is left out unless exactly
    one of them has an answer.

    Args:
        read: reads the questions, with paragraphs and answers.
    """

    def read_choices(record: Record) -> Iterator[Example]:
        for example in read(record):
            question, paragraph = example.texts
            options = split_sentences(paragraph)[: len(LETTERS)]
            matches = [
                i
                for i, option in enumerate(options)
                if any(answer in option for answer in example.answers)
            ]
            if len(options) == len(LETTERS) and len(matches) == 1:
                yield Example(texts=(question, *options), label=matches[0], group=example.group)

    return read_choices


def read_paragraphs(record: Record) -> Iterator[Example]:
    """Reads WikiText: long lines are paragraphs; headings and short lines are skipped.

    A paragraph has at least `MIN_PARAGRAPH_WORDS` words.
    """
    line = read_text(record, "text").strip()
    words = sum(any(map(str.isalnum, word)) for word in line.split())
    if words >= MIN_PARAGRAPH_WORDS and not (line.startswith("= ") and line.endswith(" =")):
        yield Example(texts=(line,))


@contextmanager
def add_location(location: str) -> Iterator[None]:
    """Prefixes errors with their location: the file, the row."""
    try:
        yield
        return
    except InputError as error:
        failure = f"{location}: {error}"
    raise InputError(failure)


# ---- fields ----------------------------------------------------------------------------------------------------------


def get_field(record: Record, name: str) -> Any:
    """Returns the value of a record's field.

    Raises:
        InputError: there is no such field. Existing ones are not named: in a table without a header
            line, they would be its first row.
    """
    if not isinstance(record, Mapping):
        raise InputError("it must be an object with fields")
    if name not in record:
        other_fields = f"{len(record)} other{'s' * (len(record) != 1)}" if record else "none"
        raise InputError(
            f"it lacks the field {quote_short(name)} and has {other_fields}; the first line of a "
            "table must name its fields"
        )
    return record[name]


def read_text(record: Record, name: str) -> str:
    """Reads the text in a field, "" for null.

    Raises:
        InputError: it is missing, not a string, or has a lone surrogate.
    """
    value = get_field(record, name)
    value = "" if value is None else value
    if not isinstance(value, str) or not _is_unicode(value):
        raise InputError(f"the field {quote_short(name)} must be a text of valid Unicode")
    return value


def read_label(record: Record, name: str, labels: Sequence[str], *, first: int = 0) -> int:
    """Reads a label's index from its name, or its number from `first`.

    Raises:
        InputError: the field holds neither.
    """
    value = get_field(record, name)
    if value in labels:
        return labels.index(value)
    try:
        index = float(value) - first  # stars may come as 4.0
    except (TypeError, ValueError):
        index = -1.0
    if index in range(len(labels)) and not isinstance(value, bool):
        return int(index)
    raise InputError(
        f"the field {quote_short(name)} must hold a label: {', '.join(labels)}, or a number from "
        f"{first} to {first + len(labels) - 1}"
    )


def parse_answers(value: Any) -> tuple[str, ...]:
    """Parses answers in any form that data sets use, without repeats.

    A text, a list of texts, a list of objects with `text`, or an object of lists.

    Raises:
        InputError: they have another form.
    """
    if isinstance(value, Mapping):
        value = value.get("text")
    items = [] if value is None else [value] if isinstance(value, str) else value
    if isinstance(items, list | tuple):
        entries: list[Any] = [
            answer.get("text") if isinstance(answer, Mapping) else answer for answer in items
        ]
        if all(isinstance(answer, str) and _is_unicode(answer) for answer in entries):
            return tuple(dict.fromkeys(answer for answer in entries if answer.strip()))
    raise InputError("answers must be a text, a list of texts, or objects with the field 'text'")


def require_answers(answer_texts: tuple[str, ...], context: str) -> tuple[str, ...]:
    """Returns the answers, all of which must occur in the text.

    Raises:
        InputError: one does not.
    """
    if any(answer not in context for answer in answer_texts):
        raise InputError("each answer must occur literally in the text that the question is about")
    return answer_texts


def _read_list(record: Record, name: str) -> list[Any]:
    value = get_field(record, name)
    if not isinstance(value, list | tuple):
        raise InputError(f"the field {quote_short(name)} must be a list")
    return list(value)


def _is_unicode(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)
