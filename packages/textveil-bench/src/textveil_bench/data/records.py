"""From a record of a file or hub to examples: one function for each published form of a kind of data.

In: a record, as a mapping of field names to values. Out: `Example`s; one without texts or answers is left out.
Not here: which data set has which form (`sources`), and how files are read (`formats`).

A faulty record raises an `InputError` that names its fields and never shows their content.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from textveil.errors import InputError, shown
from textveil_bench.data.pairs import sentences
from textveil_bench.examples import Example

Record = Mapping[str, Any]
Reader = Callable[[Record], Iterator[Example]]

LETTERS = ("A", "B", "C", "D")
"""The letters of the options of a choice."""

GOLD, SILVER = "gold", "silver"
"""Groups of questions: answered by people, and answered by a model instead."""

PARAGRAPH = 50
"""Least number of words in a paragraph that counts as a text."""


def plain(
    *fields: str, labels: Sequence[str] = (), label: str = "label", group: str = ""
) -> Reader:
    """Reads records with a field for each text.

    Args:
        fields: the names of the texts.
        labels: the names of the labels; a record has one of them, or its index from 0. Empty for no label.
        label: the field with the label.
        group: the field with the group.
    """

    def read(record: Record) -> Iterator[Example]:
        yield Example(
            texts=tuple(text(record, field) for field in fields),
            label=number(record, label, labels) if labels else None,
            group=str(member(record, group)) if group else "",
        )

    return read


def news(labels: Sequence[str]) -> Reader:
    """Reads AG News: in files, titles and classes from 1; on the hub, one text and classes from 0.

    A title and its description are joined by a space, as on the hub. What HTML has left behind is made text again: the
    published files have entities without their ampersand ("Valve #39;s"), tags, and backslashes for line ends.
    """

    def read(record: Record) -> Iterator[Example]:
        in_one = "text" in record
        found = number(record, "label", labels, first=0 if in_one else 1)
        parts = [
            text(record, field) for field in (("text",) if in_one else ("title", "description"))
        ]
        whole = unmarked(" ".join(part for part in parts if part.strip()))
        yield Example(texts=(whole,), label=found, group=labels[found])

    return read


_ENTITY = re.compile(r"(?:(?<=\w) )?&?(#\d{1,5}|quot|amp|lt|gt|nbsp|mdash|ndash);")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")


def unmarked(value: str) -> str:
    """A text without HTML: entities are the characters they stand for, and tags and backslashes are spaces."""
    plain = _ENTITY.sub(
        lambda found: (
            (" " if found[1] != "#39" else "") * found[0].startswith(" ")
            + html.unescape(f"&{found[1]};")
        ),
        value,
    )
    return " ".join(_TAG.sub(" ", plain).replace("\\", " ").split())


def reviews(labels: Sequence[str]) -> Reader:
    r"""Reads Yelp: in files, stars from 1; on the hub, labels from 0. A literal \n becomes a line end."""

    def read(record: Record) -> Iterator[Example]:
        found = (
            number(record, "stars", labels, first=1)
            if "stars" in record
            else number(record, "label", labels)
        )
        yield Example(texts=(text(record, "text").replace("\\n", "\n"),), label=found)

    return read


def endings(record: Record) -> Iterator[Example]:
    """Reads SWAG: the start of a scene, and four possible continuations."""
    options = (text(record, f"ending{i}") for i in range(len(LETTERS)))
    yield Example(
        texts=(text(record, "startphrase"), *options), label=number(record, "label", LETTERS)
    )


def subjects(record: Record) -> Iterator[Example]:
    """Reads MMLU: a question with four options, in separate fields or a list; the group is the subject."""
    if "choices" in record:
        options = [str(each) for each in _list(record, "choices")]
    else:
        options = [text(record, letter) for letter in LETTERS]
    if len(options) != len(LETTERS):
        raise InputError(f"the field choices must have {len(LETTERS)} options, got {len(options)}")
    yield Example(
        texts=(text(record, "question"), *options),
        label=number(record, "answer", LETTERS),
        group=text(record, "subject"),
    )


def asked(group: str = "") -> Reader:
    """Reads SQuAD: the whole nested file, or one question with its paragraph and answers in one of several forms.

    A human answer must occur in the paragraph. A model's answer that does not is dropped, which leaves the question
    without an answer.

    Args:
        group: of questions answered by people; those answered by a model are `SILVER`.
    """

    def read(record: Record) -> Iterator[Example]:
        if "data" in record:
            for article in _list(record, "data"):
                for paragraph in _list(article, "paragraphs"):
                    for question in _list(paragraph, "qas"):
                        yield from one(question, text(paragraph, "context"))
        else:
            yield from one(record, text(record, "context"))

    def one(record: Record, context: str) -> Iterator[Example]:
        question = text(record, "question")
        given = next(
            (record[name] for name in ("gold_answers", "answers", "answer") if record.get(name)),
            None,
        )
        found = standing(answers(given), context)
        if found or "silver_answer" not in record:
            yield Example(texts=(question, context), answers=found, group=group)
        else:
            silver = text(record, "silver_answer")
            found = (silver,) if silver and silver in context else ()
            yield Example(texts=(question, context), answers=found, group=SILVER)

    return read


def among_sentences(read: Reader) -> Reader:
    """Reads questions about paragraphs as choices: which of the first four sentences of the paragraph has the answer.

    A question is left out if none of the four has an answer, or several have one.

    Args:
        read: reads the questions, with paragraphs and answers.
    """

    def chosen(record: Record) -> Iterator[Example]:
        for example in read(record):
            question, paragraph = example.texts
            options = sentences(paragraph)[: len(LETTERS)]
            holding = [
                i
                for i, each in enumerate(options)
                if any(answer in each for answer in example.answers)
            ]
            if len(options) == len(LETTERS) and len(holding) == 1:
                yield Example(texts=(question, *options), label=holding[0], group=example.group)

    return chosen


def paragraphs(record: Record) -> Iterator[Example]:
    """Reads WikiText: lines with at least `PARAGRAPH` words are paragraphs; headings and shorter lines are skipped."""
    line = text(record, "text").strip()
    words = sum(any(map(str.isalnum, word)) for word in line.split())
    if words >= PARAGRAPH and not (line.startswith("= ") and line.endswith(" =")):
        yield Example(texts=(line,))


@contextmanager
def within(where: str) -> Iterator[None]:
    """Adds to an error where it occurred: the file, the row."""
    try:
        yield
        return
    except InputError as error:
        failure = f"{where}: {error}"
    raise InputError(failure)


# ---- fields ----------------------------------------------------------------------------------------------------------


def member(record: Record, name: str) -> Any:
    """The value of a record's field.

    Raises:
        InputError: there is no such field. Existing ones are not named: in a table without a header line, they would be
            its first row.
    """
    if not isinstance(record, Mapping):
        raise InputError("it must be an object with fields")
    if name not in record:
        others = f"{len(record)} other{'s' * (len(record) != 1)}" if record else "none"
        raise InputError(
            f"it lacks the field {shown(name)} and has {others}; the first line of a table must name its fields"
        )
    return record[name]


def text(record: Record, name: str) -> str:
    """The text in a field, "" for null.

    Raises:
        InputError: it is missing, not a string, or has a lone surrogate.
    """
    found = member(record, name)
    found = "" if found is None else found
    if not isinstance(found, str) or not _is_unicode(found):
        raise InputError(f"the field {shown(name)} must be a text of valid Unicode")
    return found


def number(record: Record, name: str, labels: Sequence[str], *, first: int = 0) -> int:
    """The index of the label in a field, which holds a name or a number counted from `first`.

    Raises:
        InputError: it holds neither.
    """
    found = member(record, name)
    if found in labels:
        return labels.index(found)
    try:
        counted = float(found) - first  # stars may come as 4.0
    except (TypeError, ValueError):
        counted = -1.0
    if counted in range(len(labels)) and not isinstance(found, bool):
        return int(counted)
    raise InputError(
        f"the field {shown(name)} must hold a label: {', '.join(labels)}, or a number from {first} to "
        f"{first + len(labels) - 1}"
    )


def answers(given: Any) -> tuple[str, ...]:
    """Answers in any form data sets use, without repeats: a text, a list of texts or of objects with `text`, or lists.

    Raises:
        InputError: they have another form.
    """
    if isinstance(given, Mapping):
        given = given.get("text")
    listed = [] if given is None else [given] if isinstance(given, str) else given
    if isinstance(listed, list | tuple):
        found: list[Any] = [
            each.get("text") if isinstance(each, Mapping) else each for each in listed
        ]
        if all(isinstance(each, str) and _is_unicode(each) for each in found):
            return tuple(dict.fromkeys(each for each in found if each.strip()))
    raise InputError("answers must be a text, a list of texts, or objects with the field 'text'")


def standing(found: tuple[str, ...], context: str) -> tuple[str, ...]:
    """The answers, all of which must occur in the text.

    Raises:
        InputError: one does not.
    """
    if any(each not in context for each in found):
        raise InputError("each answer must occur literally in the text that the question is about")
    return found


def _list(record: Record, name: str) -> list[Any]:
    found = member(record, name)
    if not isinstance(found, list | tuple):
        raise InputError(f"the field {shown(name)} must be a list")
    return list(found)


def _is_unicode(found: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in found)
