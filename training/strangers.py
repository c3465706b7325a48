"""Public texts with other people in them, whom nobody knows or everybody.

In: articles, news and what questions are asked about, lists of names. Out: labelled texts
(`data.Marked`).
Not here: names that are drawn (`generated`), and what trains on the texts (`tagger`, `odds`).

What a text says of somebody must not make him public, but his name: so nobody and somebody famous
stand in the same kinds of texts. Of names that are not those of people found here nothing is known,
nor of figures.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import regex

from textveil.detect.patterns.rules import make_word_set
from textveil.text import fold_word
from textveil.text.lexicon import read_lists
from training import data
from training.data import Marked, Mention
from training.generated import TITLES, Names, Public

PRIVATE = 0.6
"""The share of people whom nobody knows."""

FORMS = {"full": 0.55, "family": 0.3, "titled": 0.1, "given": 0.05}
"""How people are called at their first mention; nobody famous by a given name or a title."""

SENTENCES = (1, 1, 2, 3)
"""Number of sentences of a text, each as often."""

LONGEST = 700
"""Characters of a text."""

NO_PEOPLE = make_word_set(
    """san santa santo st saint el los las la north south east west new lake mount king queen prince princess lord lady
    fort port grand real red white black street park church hall house hill school river road island county city cup
    university college bay beach valley castle bridge league united club award prize day war art music park"""
)
"""Words with which a run of listed names is rather a place, a title or a thing."""

_END = regex.compile(r"(?<=[\p{Ll}\d)][.!?]['\"”]?)\s+(?=['\"“]?\p{Lu})")
_TITLE = regex.compile(r"\A(.{3,60}?) (?=\1\b)")
"""Of an article that begins with it."""

_WORD = r"(?:\p{Lu}\.(?=\s\p{Lu})|\p{Lu}[\p{L}\p{M}]+(?:[-'’]\p{Lu}[\p{L}\p{M}]+)*)"
_RUN = regex.compile(rf"(?<![\w.@/-]){_WORD}(?: {_WORD})*|\w*[\p{{Lu}}\d]\w*")
"""Words with capitals beside each other; or one that holds a figure or another capital."""


def sources(root: Path, *, held_out: bool) -> Iterator[str]:
    """Public texts of which sentences are taken; every fifth is held out."""
    contexts = dict.fromkeys(question.text for question in data.squad_train(root))
    news = dict.fromkeys(data.news(root))
    for i, text in enumerate((*data.wikipedia(root), *contexts, *news)):
        if (i % 5 == 1) == held_out:
            yield _TITLE.sub("", text)


def strangers(
    texts: Iterable[str], names: Names, famous: Public, sizes: Sequence[int] = SENTENCES
) -> Iterator[Marked]:
    """A few sentences of each text that names a person whom the lists know, with others in such a person's place.

    Args:
        texts: public texts.
        names: draws strangers.
        famous: draws people whom everybody knows.
        sizes: numbers of sentences to take, each as often.
    """
    for text in texts:
        sentences = _END.split(text)
        first = int(names.rng.integers(len(sentences)))
        size = sizes[int(names.rng.integers(len(sizes)))]
        found = with_others(" ".join(sentences[first : first + size])[:LONGEST], names, famous)
        if found is not None:
            yield found


def with_others(text: str, names: Names, famous: Public) -> Marked | None:
    """The text with others in place of its people; None if the lists know none of them."""
    others: dict[str, Other] = {}
    new, mentions, at = "", [], 0
    for run in _RUN.finditer(text):
        found = _person(run[0])
        start, standing = run.start(), "borderline"
        value = run[0]
        if found:
            start, words = run.end() - len(found), found.split()
            other = others.get(words[-1])
            if not other:
                other = others[words[-1]] = others[words[0]] = _other(names, famous)
            standing, value = other.standing, other.first
        elif run[0] in others:
            standing, value = others[run[0]].standing, others[run[0]].again
        new += text[at:start]
        kind = "PERSON" if standing != "borderline" else ""
        mentions.append(Mention(len(new), len(new) + len(value), kind, standing))
        new += value
        at = run.end()
    return Marked(new + text[at:], mentions) if others else None


class Other(NamedTuple):
    """Somebody in the place of another: standing, the first mention, and mentions by one word."""

    standing: str
    first: str
    again: str


def _other(names: Names, famous: Public) -> Other:
    form = names.rng.choice([*FORMS], p=[*FORMS.values()])
    if names.rng.random() >= PRIVATE:
        full = famous.draw("P")
        family = full.split()[-1]
        return Other("public", family if form == "family" else full, family)
    locale = names.locale("en")
    given, family = names.person(locale)
    titled = f"{names.pick(TITLES['en'].split())} {family}"
    first = {
        "full": names.full(given, family, locale),
        "family": family,
        "titled": titled,
        "given": given,
    }[form]
    return Other("private", first, family if form in ("full", "family") else first)


def _person(run: str) -> str:
    """The name of a person at the end of a run of words with capitals; empty if the lists know none."""
    names, entries, _ = read_lists()
    words = run.split()
    listed = [word[-1:] == "." or fold_word(word) in names for word in words]
    if len(words) > 2 and not listed[0]:
        words, listed = words[1:], listed[1:]
    low = [fold_word(word) for word in words]
    if (
        not 2 <= len(words) <= 3
        or not all(listed)
        or {*low} & NO_PEOPLE
        or " ".join(low) in entries
    ):
        return ""
    return " ".join(words)
