"""Labels of what is private: spans of public corpora that were labelled by reading, and written hard texts.

In: the JSON lines beside this file (ids and offsets, no text of a corpus) with the corpora they
belong to; texts written with their labels as `⟦Anna Kowalska|PERSON|private⟧`. Out: `Labelled`
texts, which train or measure.
Not here: what trains on them (`tagger`) and measures with them (`measure`).
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
HARD_TEXTS, COMPOSITE_TEXTS = (
    HERE.parents[1] / "tests" / name for name in ("hard_texts", "composite_texts")
)
"""Texts of one kind; and texts in which something private stands beside something public."""

TYPES = (
    *("PERSON", "ORGANIZATION", "LOCATION", "OTHER"),
    *(
        "EMAIL",
        "PHONE",
        "URL",
        "IP",
        "ID",
        "CARD",
        "ACCOUNT",
        "ADDRESS",
        "DATE",
        "AGE",
        "HANDLE",
        "SECRET",
    ),
)
"""Types of labelled spans."""

STANDINGS = ("private", "public", "invented", "borderline")
"""What a span is: private; public; an invented person of an exercise or story; or neither for certain. The last two are
counted apart."""

USES = ("train", "measure")
"""What a text is for: patterns, tagger and thresholds are made with the first kind; nothing is with the second."""

_MARKED = re.compile(r"⟦([^⟦⟧|]+)\|([A-Z]+)\|([a-z]+)⟧")
_HEAD = re.compile(r"^=== (\S+) (\S+)(?: (\S.*))?\n", re.MULTILINE)


class Label(NamedTuple):
    """A labelled span: first character, one past the last, type and standing."""

    start: int
    end: int
    type: str
    standing: str


class Labelled(NamedTuple):
    """A text with its labels.

    `kind` says where it comes from: a corpus, or what was written (mail, log, ...); `use` is one of
    `USES`.
    """

    id: str
    language: str
    kind: str
    text: str
    labels: list[Label]
    use: str

    @property
    def held_out(self) -> bool:
        """Whether the tagger does not see a text for training: thresholds and odds are chosen on it.

        So it is for a fifth of the texts, and for all of the files that end in `-odds`.
        """
        return "-odds-" in self.id or hashlib.sha256(self.id.encode()).digest()[0] % 5 == 0


def use_of(text: str) -> str:
    """Whether a text of a corpus trains or measures: by a hash of how it begins, so that near-copies go together."""
    beginning = " ".join(text.lower().split())[:40]
    return USES[hashlib.sha256(beginning.encode()).digest()[0] & 1]


def hard_texts(folder: Path = HARD_TEXTS) -> Iterator[Labelled]:
    """The written texts of all languages: a folder a use, files named by language, `=== id kind` before each text.

    Raises:
        ValueError: a file breaks the form; the message says where.
    """
    for use in USES:
        for path in sorted((folder / use).glob("*.txt")):
            yield from marked_texts(path.read_text("utf-8"), path.stem.partition("-")[0], use)


def marked_texts(content: str, language: str, use: str = "train") -> Iterator[Labelled]:
    """The texts of one file."""
    heads = list(_HEAD.finditer(content))
    for head, end in zip(heads, [*(each.start() for each in heads[1:]), len(content)], strict=True):
        text, labels = _unmarked(content[head.end() : end].strip("\n"), head[1])
        yield Labelled(head[1], language, head[2], text, labels, use)


def _unmarked(marked: str, name: str) -> tuple[str, list[Label]]:
    text, labels, at = "", [], 0
    for match in _MARKED.finditer(marked):
        value, kind, standing = match.groups()
        if kind not in TYPES or standing not in STANDINGS:
            raise ValueError(
                f"{name}: types are {', '.join(TYPES)}; standings {', '.join(STANDINGS)}; got "
                f"{match[0]}"
            )
        text += marked[at : match.start()]
        labels.append(Label(len(text), len(text) + len(value), kind, standing))
        text += value
        at = match.end()
    text += marked[at:]
    if "⟦" in text or "⟧" in text:
        raise ValueError(
            f"{name}: a label must be written ⟦text|TYPE|standing⟧, with no label or bar inside"
        )
    return text, labels


def corpus_labels(corpus: str, texts: dict[str, str], folder: Path = HERE) -> Iterator[Labelled]:
    """The labelled texts of a corpus.

    Args:
        corpus: a name of a file here, without its ending.
        texts: the corpus's texts by id.
        folder: where the files lie.
    """
    for line in (folder / f"{corpus}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        labels = [Label(start, end, kind, standing) for start, end, kind, standing in row["labels"]]
        text = texts[str(row["id"])]
        yield Labelled(str(row["id"]), "", corpus, text, labels, use_of(text))
