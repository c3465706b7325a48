"""Switches off each part of detection in turn, and counts what changes: `make ablation`.

In: detection as it is installed, and written texts with labels. Out: a line for each part, and
`ablation.json`.
Not here: how often detection errs (`benchmarks/prompts.py`), and how parts are chosen; people do
that.

A part is a detector, a reader of a detector, a rule of the patterns, or a stage. It earns its place
if it hides private spans, or keeps what is public or ordinary, in texts that it was not written
from; or it is a guard, with its reason. What is decided, is decided on the written texts that the
tagger did not see (`held_out`: a fifth of those that train, and the files `-odds`), one part at a
time: of two parts that cover each other both show 0, and only one may go. `--measure` reads the
texts that measure; do so once, after all decisions.

Answers of the tagger are kept in `training/work`, so that a run takes seconds.
"""

import argparse
import hashlib
import json
import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import track

from textveil import Protector
from textveil.detect import Span, keyvalue, name_bounds, patterns, stages
from textveil.detect.patterns import rules
from textveil.protect import Grouping
from textveil.text import tokenize
from training.labels import Labelled, hard_texts

HERE = Path(__file__).resolve().parent
ROWS = HERE / "ablation.json"
WORK = HERE / "work" / "ablation.pickle"

GUARDS = {
    "read_calls": "a password is the second of two strings",
    "read_elided": "a surname with an apostrophe begins a sentence: D'Souza",
}
"""Why readers stay that find nothing here."""

FEWEST = 20
"""Texts of a language at least, so that they decide something about it."""


class Counts(NamedTuple):
    """What detection does to texts.

    Args:
        gone: private spans of which each letter and figure is hidden.
        private: private spans.
        touched: public spans of which anything is hidden.
        public: public spans.
        over: letters and figures outside of labels that are hidden.
        plain: letters and figures outside of labels.
    """

    gone: int = 0
    private: int = 0
    touched: int = 0
    public: int = 0
    over: int = 0
    plain: int = 0

    def __add__(self, other: "Counts") -> "Counts":  # type: ignore[override]
        return Counts(*map(sum, zip(self, other, strict=True)))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*(a - b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of detection that can be switched off.

    Attributes:
        name: where it stands, and which it is.
        off: the attributes that are set, as (module, name, value).
        of: the detector whose answers it changes; empty for a stage.
        guard: why it stays where it changes nothing; empty for one that has to earn its place.
        texts: the texts that it can change; None for all.
    """

    name: str
    off: tuple[tuple[Any, str, Any], ...] = field(repr=False)
    of: str = ""
    guard: str = ""
    texts: frozenset[int] | None = field(default=None, repr=False)


# ---- the texts -----------------------------------------------------------------------------------------------


def texts_of(use: str) -> list[Labelled]:
    """The texts that decide (`decide`), or those that measure (`measure`)."""
    kept = [text for text in hard_texts() if text.text.strip()]
    if use == "measure":
        return [text for text in kept if text.use == "measure"]
    return [text for text in kept if text.use == "train" and text.held_out]


def count(text: Labelled, spans: Sequence[Span]) -> Counts:
    """Counts what spans hide of a labelled text."""
    hidden, labelled = _covered(text.text, spans), _covered(text.text, text.labels)
    told: dict[str, list[list[int]]] = {"private": [], "public": []}
    for start, end, kind, standing in text.labels:
        told.setdefault(standing, []).append(
            [hidden[i] for i in statement_form(text.text, start, end, kind)]
        )
    plain = [i for i, char in enumerate(text.text) if char.isalnum() and not labelled[i]]
    return Counts(
        sum(bool(each) and all(each) for each in told["private"]),
        len(told["private"]),
        sum(map(any, told["public"])),
        len(told["public"]),
        sum(hidden[i] for i in plain),
        len(plain),
    )


def _covered(text: str, spans: Iterable[Any]) -> bytearray:
    """A one for each character of a text that is in a span."""
    covered = bytearray(len(text))
    for span in spans:
        covered[span.start : span.end] = b"\1" * (span.end - span.start)
    return covered


def statement_form(text: str, start: int, end: int, kind: str) -> list[int]:
    """The letters and figures of a label that tell whom or what it is: no titles, no units of an age."""
    value = text[start:end]
    if kind == "PERSON":
        first, last = name_bounds.find_name_bounds("PERSON", value)
        start, end = start + first, start + last
    told = [i for i in range(start, end) if text[i].isalnum()]
    figures = [i for i in told if text[i].isdigit()] if kind in ("AGE", "DATE") else []
    return figures or told


# ---- detection with parts switched off ------------------------------------------------------------------------


@dataclass(eq=False)
class Remembered:
    """A detector that answers from memory where it was asked before."""

    inner: Any
    answers: dict[str, list[Span]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The detector's."""
        return str(self.inner.name)

    def find(self, texts: Sequence[str]) -> list[Span]:
        """Its spans."""
        if missing := [text for text in dict.fromkeys(texts) if text not in self.answers]:
            self.answers.update((text, []) for text in missing)
            for span in self.inner.find(missing):
                self.answers[missing[span.text]].append(span)
        return [
            span._replace(text=i) for i, text in enumerate(texts) for span in self.answers[text]
        ]


@contextmanager
def switched_off(part: Part) -> Iterator[None]:
    """Switches a part off, for as long as the block runs."""
    before = [(module, name, getattr(module, name)) for module, name, _ in part.off]
    try:
        for module, name, value in part.off:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


@dataclass(frozen=True, eq=False)
class Ruler:
    """Detection of the default options over some texts."""

    texts: Sequence[Labelled]
    made: Grouping
    remembered: Sequence[Remembered]

    @classmethod
    def of(cls, texts: Sequence[Labelled]) -> "Ruler":
        """One for these texts, with the tagger's answers of before."""
        made = Protector().privatizer.grouping
        assert made is not None
        settings = made.detection.settings
        remembered = tuple(Remembered(each) for each in settings.detectors)
        object.__setattr__(settings, "detectors", remembered)
        (tagger,) = (each for each in remembered if each.name == "tagger")
        if WORK.exists():
            tagger.answers.update(pickle.loads(WORK.read_bytes()))
        ruler = cls(texts, made, remembered)
        for first in range(0, len(texts), 200):  # within the time limit of a detector
            ruler.run(range(first, min(first + 200, len(texts))))
        WORK.parent.mkdir(exist_ok=True)
        WORK.write_bytes(pickle.dumps(tagger.answers))
        return ruler

    def run(self, which: Sequence[int]) -> dict[int, Counts]:
        """Counts what detection does to some of the texts."""
        texts = [self.texts[i] for i in which]
        found = self.made.detect(tokenize([text.text for text in texts]), None)
        spans: dict[int, list[Span]] = defaultdict(list)
        for span in self.made.propagate(found, None).spans:
            spans[span.text].append(span)
        return {
            i: count(text, spans[b]) for b, (i, text) in enumerate(zip(which, texts, strict=True))
        }

    def remove_listed(self, part: Part, base: Mapping[int, Counts]) -> dict[str, Counts]:
        """What changes, by language, where a part is switched off."""
        which = [*base] if part.texts is None else sorted(part.texts)
        changed: dict[str, Counts] = defaultdict(Counts)
        if which:
            asked = [each for each in self.remembered if each.name == part.of]
            kept = [each.answers for each in asked]
            for each in asked:
                each.answers = {}
            with switched_off(part):
                found = self.run(which)
            for each, answers in zip(asked, kept, strict=True):
                each.answers = answers
            for i in which:
                changed[self.texts[i].language] += found[i] - base[i]
        return changed


# ---- the parts ------------------------------------------------------------------------------------------------


def nothing(*_: Any) -> list[Any]:
    """What a finder that is switched off finds."""
    return []


def parts() -> list[Part]:
    """All parts of detection, rules without the texts that they can change."""
    found = [
        Part(name=f"detector {name}", off=((owner, "find", lambda self, texts: []),), of=name)
        for name, owner in (("patterns", patterns.Patterns), ("structure", keyvalue.Structure))
    ]
    found += [
        Part(
            name=f"structure {name}",
            off=((keyvalue, name, nothing),),
            of="structure",
            guard=GUARDS.get(name, ""),
        )
        for name in ("read_pairs", "read_calls", "read_tables", "read_inserts", "read_elided")
    ]
    found += [
        Part(name="patterns find_phones", off=((patterns, "find_phones", nothing),), of="patterns"),
        Part(
            name="patterns find_handles",
            off=((patterns.handles, "find_handles", nothing),),
            of="patterns",
        ),
    ]
    found += [
        Part(
            name=f"stage {stage.name}",
            off=tuple(
                (stages, name, tuple(each for each in getattr(stages, name) if each is not stage))
                for name in ("STAGES", "PROPAGATING")
            ),
            guard=stage.guard,
        )
        for stage in dict.fromkeys((*stages.STAGES, *stages.PROPAGATING))
    ]
    found += [
        Part(
            name=name_of(rule),
            off=((patterns, "RULES", tuple(each for each in patterns.RULES if each is not rule)),),
            of="patterns",
            guard=rule.guard,
        )
        for rule in patterns.RULES
    ]
    return found


def name_of(rule: rules.Rule) -> str:
    """The name of a rule: its type, and a digest of its form and words, which changes with them."""
    told = repr(
        (
            rule.pattern.source,
            rule.context and rule.context.words,
            rule.check and rule.check.__name__,
        )
    )
    return f"rule {rule.type} {hashlib.sha256(told.encode()).hexdigest()[:8]}"


def fired(texts: Sequence[Labelled]) -> dict[str, frozenset[int]]:
    """The texts in which each rule finds anything, by its name."""
    found: dict[str, set[int]] = defaultdict(set)
    near, anywhere = patterns._find_near, patterns._find_anywhere
    at = 0

    def noting(find: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def noted(rule: rules.Rule, *given: Any) -> Iterator[Any]:
            for each in find(rule, *given):
                found[name_of(rule)].add(at)
                yield each

        return noted

    watched = Part(
        name="",
        off=(
            (patterns, "_find_near", noting(near)),
            (patterns, "_find_anywhere", noting(anywhere)),
        ),
    )
    with switched_off(watched):
        for at, text in enumerate(texts):  # noqa: B007
            patterns.Patterns().find([text.text])
    return {name: frozenset(which) for name, which in found.items()}


def measured(use: str, only: Sequence[str], console: Console) -> list[dict[str, Any]]:
    """A row for each part, after one for all of detection."""
    texts = texts_of(use)
    ruler = Ruler.of(texts)
    base = ruler.run(range(len(texts)))
    languages = Counter(text.language for text in texts)
    by_language: dict[str, Counts] = defaultdict(Counts)
    for i, text in enumerate(texts):
        by_language[text.language] += base[i]
    rows = [{"part": "all", "use": use, "texts": len(texts), "counts": _plain(by_language)}]
    for part in track(_placed(texts, only or [""]), "parts", console=console, transient=True):
        changed = ruler.remove_listed(part, base)
        rows.append(
            {
                "part": part.name,
                "guard": part.guard,
                "fires": None if part.texts is None else len(part.texts),
                "changes": _plain({name: each for name, each in changed.items() if any(each)}),
                "earns": earns(changed, languages),
            }
        )
    return rows


def _placed(texts: Sequence[Labelled], only: Sequence[str]) -> list[Part]:
    """The parts whose name has one of the words, rules with the texts that they can change."""
    where = fired(texts)
    return [
        replace(part, texts=where.get(part.name, frozenset()))
        if part.name.startswith("rule ")
        else part
        for part in parts()
        if any(word in part.name for word in only)
    ]


def earns(changed: Mapping[str, Counts], languages: Mapping[str, int]) -> bool:
    """Whether something is worse without a part, in a language of enough texts."""
    return any(
        each.gone < 0 or each.touched > 0 or each.over > 0
        for name, each in changed.items()
        if languages[name] >= FEWEST
    )


def _plain(counts: Mapping[str, Counts]) -> dict[str, list[int]]:
    return {name: list(counts[name]) for name in sorted(counts)}


def idle(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The parts that are there and neither earn their place nor guard; and those that were not measured."""
    known = {row["part"]: row for row in rows}
    return [
        part.name
        for part in parts()
        if not part.guard and not known.get(part.name, {"earns": False})["earns"]
    ]


def told(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Rows as lines."""
    first, *others = rows
    total = sum((Counts(*each) for each in first["counts"].values()), Counts())
    yield (
        f"{first['texts']} texts: {total.gone} of {total.private} private spans gone, "
        f"{total.touched} of {total.public} public ones touched, "
        f"{total.over} of {total.plain} other letters hidden"
    )
    for row in others:
        change = sum((Counts(*each) for each in row["changes"].values()), Counts())
        stays = "guard" if row["guard"] else "" if row["earns"] else "earns nothing"
        fires = "" if row["fires"] is None else f"fires in {row['fires']}"
        yield (
            f"{row['part']:36} gone {change.gone:+5} public {change.touched:+4} "
            f"over {change.over:+6}  {fires:14} {stays}"
        )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORD", help="parts whose name has it"
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="the texts that measure, in place of those that decide",
    )
    given = parser.parse_args()
    console = Console()
    rows = measured("measure" if given.measure else "decide", given.only, console)
    for line in told(rows):
        console.print(line)
    if not given.only and not given.measure:
        ROWS.write_text(
            "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8"
        )


if __name__ == "__main__":
    main()
