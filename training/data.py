"""The data for training and measuring adapters, read from a folder of corpora.

In: the folder (layout in training/README.md). Out: articles, tagged sentences, questions.
Not here: how a job makes batches of them (one script per adapter), and benchmark data
(`benchmarks`).
"""

import gzip
import hashlib
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from textveil.detect.spans import NAMES
from textveil.models.entities import DETAIL_TYPES
from textveil.text.tokens import tokenize
from training import labels
from training.lists import countries

TYPES = {
    **dict.fromkeys(("PER", "person", "PERSON"), "PERSON"),
    **dict.fromkeys(("LOC", "location", "LOCATION", "GPE"), "LOCATION"),
    **dict.fromkeys(("ORG", "corporation", "group", "ORGANIZATION"), "ORGANIZATION"),
}
"""The corpora's names for the three types; all other entities count as none."""

FORMED = {
    "PHONE_NUMBER": "PHONE",
    "AGE": "AGE",
    **dict.fromkeys(("CREDIT_CARD", "IBAN_CODE", "IBAN"), "ACCOUNT"),
    **dict.fromkeys(
        ("US_SSN", "SSN", "US_DRIVER_LICENSE", "DRIVER_LICENSE", "PASSPORT", "ID"), "ID"
    ),
}
"""Entities of presidio_synth that are private by themselves; the words of all others are not trained on."""


class Tagged(NamedTuple):
    """A sentence: words as split by the corpus, each with a label, and whether whitespace precedes it.

    Labels are `O`, `B-TYPE` and `I-TYPE`, the last two also with the standing of what is named
    (`B-PERSON private`); `?` where nothing is known; `~private` or `~public` where it is only known
    that a word is part of no name of the other standing.
    """

    words: list[str]
    labels: list[str]
    spaced: list[bool]
    language: str = "en"


class Mention(NamedTuple):
    """A labelled span of a text: first character, one past the last, type and standing."""

    start: int
    end: int
    kind: str
    standing: str


class Marked(NamedTuple):
    """A text with its labelled spans, and its language where it is known not to be English."""

    text: str
    mentions: list[Mention]
    language: str = "en"


class Question(NamedTuple):
    """A question about a text, and its accepted answers."""

    text: str
    question: str
    answers: list[str]


def lines(path: Path) -> Iterator[str]:
    """The lines of a gzip file, without line ends."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


# ---- articles ----------------------------------------------------------------------------------------------


def articles(data: Path) -> list[str]:
    """The articles of wikipedia_en, each with its title on the first line."""
    text = "\n".join(lines(data / "wikipedia_en" / "wiki_en.txt.gz"))
    return [article for article in text.split("\n\n") if article.strip()]


def wikipedia(data: Path) -> list[str]:
    """The articles of wikipedia_en, each on one line."""
    return [article.replace("\n", " ") for article in articles(data)]


def wikitext(data: Path, part: str) -> list[str]:
    """The articles of WikiText-2, with its marks around inner hyphens, commas and points removed.

    Args:
        data: the folder of corpora.
        part: `valid_tokens` or `test_raw`.
    """
    articles: list[list[str]] = [[]]
    for line in lines(data / "wikitext2" / f"{part}.shared.txt.gz"):
        if re.match(r"\s*= [^=]", line):
            articles.append([])
        articles[-1].append(line.strip())
    joined = (re.sub(r" @(.)@ ", r"\1", " ".join(filter(None, article))) for article in articles)
    return [article for article in joined if article]


# ---- tagged sentences --------------------------------------------------------------------------------------


def conll(path: Path) -> list[Tagged]:
    """The sentences of a file with a word and a label on each line, in IO or IOB2."""
    sentences: list[Tagged] = []
    words: list[str] = []
    labels: list[str] = []
    for line in [*lines(path), ""]:
        if line.strip():
            *_, word, label = "", *line.split("\t")
            words.append(word)
            labels.append(label.strip())
        elif words:
            sentences.append(Tagged(words, _three_types(labels), spacing(words)))
            words, labels = [], []
    return sentences


def spacing(words: Sequence[str]) -> list[bool]:
    """Whether whitespace probably precedes each word of a corpus that does not say so."""
    after = [True, *(not _OPENING.fullmatch(word) for word in words[:-1])]
    return [free and not _CLOSING.match(word) for free, word in zip(after, words, strict=True)]


_OPENING = re.compile(r"[(\[{<“‘«„$£€#@/]|-LRB-|``")
_CLOSING = re.compile(r"[.,;:!?%)\]}>”’»…/]|['’](?:s|re|ve|ll|d|m)?$|n['’]t$|-RRB-")


def _three_types(labels: Sequence[str]) -> list[str]:
    found = []
    before = "O"
    for label in labels:
        begins = label.startswith("B-") or label[2:] != before[2:]
        type_ = TYPES.get(label[2:])
        found.append("O" if type_ is None else f"{'B' if begins else 'I'}-{type_}")
        before = label
    return found


def unseen(folder: Path) -> list[Tagged]:
    """The sentences of a corpus's test part that do not occur, word for word, in its training part."""
    seen = {tuple(sentence.words) for sentence in conll(folder / "train.conll.gz")}
    return [
        each for each in conll(folder / "test.shared.conll.gz") if tuple(each.words) not in seen
    ]


def wikigold(data: Path, *, held_out: bool) -> list[Tagged]:
    """Wikigold: sentences 0, 5, 10, ... are held out, the others are trained on."""
    sentences = conll(data / "wikigold" / "all.shared.conll.gz")
    return [each for i, each in enumerate(sentences) if (i % 5 == 0) == held_out]


def presidio(data: Path, *, held_out: bool) -> list[Tagged]:
    """Sentences made from templates; every fifth template, by its hash, is held out with all its sentences."""
    sentences = []
    for name in ("generated_large", "synth_v2.shared"):
        for line in lines(data / "presidio_synth" / f"{name}.jsonl.gz"):
            row = json.loads(line)
            if is_held_out(row["masked"]) == held_out:
                sentences.append(_from_spans(row["full_text"], row["spans"]))
    return sentences


def is_held_out(template: str) -> bool:
    """Whether a template of presidio_synth belongs to the test part, ignoring the names of its slots."""
    bare = re.sub(r"\{\{.*?\}\}", "{{}}", template.lower())
    return hashlib.sha256(bare.encode()).digest()[0] % 5 == 0


def _from_spans(text: str, spans: Sequence[dict[str, object]]) -> Tagged:
    """People are private, countries public, other places and organizations private where a person is named."""
    tokens = tokenize([text])
    labels = ["O"] * len(tokens.words)
    person = any(TYPES.get(str(span["entity_type"])) == "PERSON" for span in spans)
    for span in spans:
        kind, first, last = (
            str(span["entity_type"]),
            int(str(span["start_position"])),
            int(str(span["end_position"])),
        )
        inside = [
            i for i in range(len(labels)) if tokens.starts[i] < last and tokens.ends[i] > first
        ]
        for i in inside:
            prefix = "B" if i == inside[0] else "I"
            if kind in TYPES:
                standing = (
                    "public" if text[first:last] in COUNTRIES else "private" if person else ""
                )
                labels[i] = f"{prefix}-{TYPES[kind]} {standing}".strip()
            else:
                labels[i] = f"{prefix}-{FORMED[kind]} private" if kind in FORMED else "?"
    return Tagged(tokens.words, labels, tokens.space_flags.tolist())


COUNTRIES = frozenset(countries())


def labelled(
    data: Path,
    *,
    held_out: bool,
    hard: Path = labels.HARD_TEXTS,
) -> dict[str, list[Marked]]:
    """The texts for training that are labelled with what is private, by source; every fifth text is held out.

    Texts that measure are left out here.
    """
    rows = {
        "hard": labels.hard_texts(hard),
        "composite": labels.hard_texts(labels.COMPOSITE_TEXTS),
        "prompts": labels.corpus_labels(
            "prompts", _texts(data / "prompts" / "prompts.shared.jsonl.gz", "text")
        ),
        "pupa": labels.corpus_labels(
            "pupa", _texts(data / "pupa" / "pupa.shared.jsonl.gz", "user_query")
        ),
    }
    return {
        name: [
            Marked(text.text, [Mention(*label) for label in text.labels], text.language or "en")
            for text in texts
            if text.use == "train" and text.held_out == held_out
        ]
        for name, texts in rows.items()
    }


def _texts(path: Path, key: str) -> dict[str, str]:
    return {str(row["id"]): row[key] for row in map(json.loads, lines(path))}


def tagged(marked: Marked) -> Tagged:
    """A labelled text as words with labels.

    Street addresses are places, and cards accounts. Invented people, and what is on the border, are
    of unknown standing.
    """
    tokens = tokenize([marked.text])
    found = ["O"] * len(tokens.words)
    for start, end, kind, standing in marked.mentions:
        known = standing if standing in ("private", "public") else ""
        type_ = (
            {"ADDRESS": "LOCATION", "CARD": "ACCOUNT"}.get(kind, kind)
            if known == "private"
            else kind
        )
        inside = np.flatnonzero((tokens.starts < end) & (tokens.ends > start)).tolist()
        for i in inside:
            if type_ in NAMES or (type_ in DETAIL_TYPES and known == "private"):
                found[i] = f"{'B' if i == inside[0] else 'I'}-{type_} {known}".strip()
            else:
                found[i] = f"~{known}" if known else "?"
    return Tagged(tokens.words, found, tokens.space_flags.tolist(), marked.language)


def known(sentences: Sequence[Tagged], standing: str) -> list[Tagged]:
    """Sentences all of whose names are of one standing."""
    return [
        each._replace(
            labels=[
                f"{label} {standing}" if label[:2] in ("B-", "I-") else label
                for label in each.labels
            ]
        )
        for each in sentences
    ]


def public_texts(data: Path) -> list[Tagged]:
    """Questions, news and reviews in which nobody private is named."""
    questions = (question.question for question in squad_train(data))
    news = (
        row[1] + (". " + row[2] if len(row) > 2 else "")
        for row in _table(data / "ag_news" / "train_subset.tsv.gz", 6000)
    )
    reviews = (row[0] for row in _table(data / "sst2" / "train.tsv.gz", 4000))
    exams = (
        row[1] for row in _table(data / "mmlu" / "val.tsv.gz", 5000) if not PEOPLED.search(row[0])
    )
    found = []
    for text in (*questions, *news, *reviews, *exams):
        tokens = tokenize([text])
        found.append(
            Tagged(tokens.words, ["~public"] * len(tokens.words), tokens.space_flags.tolist())
        )
    return found


def documentation() -> list[Marked]:
    """The documentation of Python's standard library: texts in which nobody private is named."""
    found = []
    for name in sorted(sys.stdlib_module_names):
        if name.startswith("_") or name in ("antigravity", "this", "idlelib"):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:  # of another system
            continue
        texts = [inspect.getdoc(module)] + [
            inspect.getdoc(item)
            for key, item in sorted(vars(module).items())
            if not key.startswith("_") and getattr(item, "__module__", "") == name
        ]
        found += [
            Marked(text[:DOCUMENTATION_CHARACTERS], [])
            for text in dict.fromkeys(filter(None, texts))
            if len(text.split()) >= DOCUMENTATION_WORDS
        ]
    return found


DOCUMENTATION_CHARACTERS, DOCUMENTATION_WORDS = 1500, 30
"""The longest and the shortest text of documentation that is taken, in characters and in words."""


def news(data: Path) -> list[str]:
    """The descriptions of AG News' training texts, with what is left of their HTML removed."""
    rows = _table(data / "ag_news" / "train_subset.tsv.gz", sys.maxsize)
    return [
        re.sub(r" ?#39;", "'", re.sub(r" ?quot;", '"', row[2])).replace("\\", " ")
        for row in rows
        if len(row) > 2
    ]


PEOPLED = re.compile(
    "law|moral|ethics|psychology|medicine|logic|elementary|high_school_math|high_school_stat|account|relation"
)
"""Subjects of MMLU whose questions are about invented people."""


def _table(path: Path, most: int) -> list[list[str]]:
    rows = [row for row in (line.split("\t") for line in lines(path)) if len(row) > 1][1:]
    return rows[:: max(1, len(rows) // most)]


# ---- questions ---------------------------------------------------------------------------------------------


def squad_train(data: Path) -> list[Question]:
    """The available rows of SQuAD's training set."""
    rows = map(json.loads, lines(data / "squad_v11" / "train_subset.jsonl.gz"))
    return [Question(row["context"], row["question"], [row["answer"]]) for row in rows]


def squad_gold(data: Path) -> list[Question]:
    """The development questions whose gold answers are known (those of XQuAD)."""
    rows = map(json.loads, lines(data / "squad_v11" / "dev.shared.jsonl.gz"))
    return [
        Question(
            row["context"], row["question"], [answer["text"] for answer in row["gold_answers"]]
        )
        for row in rows
        if row["gold_answers"]
    ]
