"""Questions about what does not exist: paragraphs of invented facts, whose answers no model can know.

In: a count and a seed, or an endpoint. Out: `Passage`s, as examples or as lines of JSON.
Not here: who answers the questions (`tasks`), and the file of the paper's authors (`data`).

Source: STAMP, the appendix on Fantasy SQuAD: such paragraphs keep apart what a model reads and what it remembers. There
they were written by a language model, as by `ask`; `generate` draws them from a grammar, offline.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import yaml

from textveil.errors import ConfigError, EndpointError, RandomnessError
from textveil.files import json_line
from textveil.models import Endpoint
from textveil.randomness import SeededRandomness
from textveil.text import counts
from textveil_bench.examples import Example

QUESTIONS = 5
"""Questions about each paragraph."""

LONGEST = 3
"""Words of an answer at most."""

ASIDES = 2
"""Sentences of each paragraph that nothing is asked about, besides the first."""

ONSETS = (
    "b",
    "br",
    "c",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kr",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "sk",
    "st",
    "t",
    "v",
    "z",
)
VOWELS = ("a", "a", "e", "e", "i", "i", "o", "o", "u", "ae", "ei", "ia")
CODAS = ("l", "ld", "lm", "m", "n", "nd", "nth", "r", "rk", "rn", "rsh", "s", "sk", "sh", "th", "v", "x", "z")
"""What names are made of."""

WIDTH = 64
"""Uniform values that are drawn at once."""

TRIES = 100
"""Drafts of a paragraph at most; about one in fifty has an answer twice, and is not taken."""

INSTRUCTIONS = """\
You write material for a reading test. Nothing in it may exist or be known: no real place, person, animal, work or \
event, and nothing from published fiction. Write one paragraph of 80 to 150 words about {topic}. Invented names that \
you have to use: {names}. Then write {questions} questions that only the paragraph answers. Each answer has one to \
{longest} words, stands in the paragraph exactly as you give it, and stands there once. No question holds its answer.

Answer with one JSON object and nothing else:
{{"paragraph": "...", "questions": [{{"question": "...", "answer": "..."}}, ...]}}"""

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a paragraph.

    Attributes:
        text: the question.
        answer: one to `LONGEST` words of the paragraph.
        start: the first character of the answer in the paragraph.
    """

    text: str
    answer: str
    start: int


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A paragraph with its questions; each answer stands in it, once, where the question says.

    Raises:
        ConfigError: an answer does not.
    """

    context: str
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        for question in self.questions:
            end = question.start + len(question.answer)
            if (
                self.context[question.start : end] != question.answer
                or len(_places(question.answer, self.context)) != 1
            ):
                raise ConfigError("an answer must stand in its paragraph once, at its place")


def accepted(context: str, asked: Iterable[tuple[str, str]], refused: Counter[str]) -> Passage:
    """A paragraph with those of its questions that can be asked.

    Args:
        context: the paragraph.
        asked: questions and answers.
        refused: counts why others cannot be asked.
    """
    found: list[Question] = []
    for text, answer in asked:
        at = _places(answer, context)
        if not text.strip().endswith("?"):
            refused["no question"] += 1
        elif not 1 <= len(answer.split()) <= LONGEST:
            refused[f"an answer that has not one to {LONGEST} words"] += 1
        elif not at or not context.startswith(answer, at[0]):
            refused["an answer that is not in the paragraph"] += 1
        elif len(at) > 1:
            refused["an answer that is there more than once"] += 1
        elif _places(answer, text):
            refused["an answer that is in its question"] += 1
        else:
            found.append(Question(text=text.strip(), answer=answer, start=at[0]))
    return Passage(context=context, questions=tuple(found))


def _places(answer: str, context: str) -> list[int]:
    """Where an answer stands in a text as whole words, whatever the casing."""
    found = re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", context, re.IGNORECASE)
    return [each.start() for each in found]


def examples(passages: Iterable[Passage]) -> Iterator[Example]:
    """One example for each question, with the texts question and context."""
    for passage in passages:
        for question in passage.questions:
            yield Example(texts=(question.text, passage.context), answers=(question.answer,))


def lines(passages: Iterable[Passage]) -> Iterator[str]:
    """One line of JSON for each question, in the form of a question of SQuAD; `data.load` reads a file of them."""
    for number, passage in enumerate(passages):
        for i, question in enumerate(passage.questions, 1):
            yield json_line(
                {
                    "id": f"{number}-q{i}",
                    "title": "Fantasy",
                    "context": passage.context,
                    "question": question.text,
                    "answers": [{"text": question.answer, "answer_start": question.start}],
                }
            )


# ---- by a grammar ----------------------------------------------------------------------------------------------------


def generate(count: int, *, seed: int = 0) -> Iterator[Passage]:
    """Paragraphs about invented cities, events and species, from a grammar.

    The same seed gives the same paragraphs, and a larger count the same ones first. Names that are drawn stand nowhere
    in the list of public words; answers are common words, or such names.

    Args:
        count: paragraphs, 1 or more; no two are the same.
        seed: integer from 0 to 2**128 - 1.

    Raises:
        ConfigError: the count or the seed is none.
    """
    if count < 1:
        raise ConfigError("a count of paragraphs must be 1 or more")
    rng, seen = SeededRandomness(seed), set[str]()
    for number in range(count):
        dice = _Dice(rng.part(number))
        for _ in range(TRIES):
            passage = _draft(dice)
            if len(passage.questions) == QUESTIONS and passage.context not in seen:
                break
        else:
            raise RandomnessError(f"a grammar must give a new paragraph in {TRIES} drafts, and did not")
        seen.add(passage.context)
        yield passage


class _Dice:
    """Choices, one after the other, from one stream."""

    def __init__(self, rng: SeededRandomness) -> None:
        self._values = self._drawn(rng)

    @staticmethod
    def _drawn(rng: SeededRandomness) -> Iterator[float]:
        while True:
            for _, draws in rng.open([WIDTH]).chunks(WIDTH):
                yield from draws.uniform(1)[:, 0].tolist()

    def one(self, of: Sequence[_T]) -> _T:
        return of[int(next(self._values) * len(of))]

    def some(self, count: int, of: Sequence[_T]) -> list[_T]:
        """So many of them, in a drawn order."""
        keys = [next(self._values) for _ in of]
        return [of[i] for i in sorted(range(len(of)), key=keys.__getitem__)[:count]]

    def name(self) -> str:
        """A name that is no word of the public list."""
        while True:
            syllables = [self.one(ONSETS) + self.one(VOWELS) for _ in range(self.one((1, 2)))]
            name = "".join(syllables) + self.one(ONSETS) + self.one(VOWELS) + self.one(CODAS)
            if name not in counts():
                return name.capitalize()

    def names(self) -> dict[str, str]:
        """What a paragraph is about, by invented names."""
        named = {name: self.name() for name in ("place", "people", "person")}
        return {**named, "creature": self.name().lower()}


def _draft(dice: _Dice) -> Passage:
    """A paragraph, some of whose questions may be refused."""
    grammar = _grammar()
    topic = grammar["topics"][dice.one(list(grammar["topics"]))]
    named = dice.names()
    asked, said = [], []
    for fact in dice.some(QUESTIONS, topic["facts"]):
        answer = dice.name() if fact["answer"] == "name" else dice.one(grammar["answers"][fact["answer"]])
        said.append(_filled(dice.one(fact["says"]), {**named, "answer": answer}))
        asked.append((dice.one(fact["asks"]).format(**named), answer))
    said += [_filled(each, named) for each in dice.some(ASIDES, topic["asides"])]
    opening = _filled(dice.one(topic["opens"]), named)
    return accepted(" ".join([opening, *dice.some(len(said), said)]), asked, Counter())


def _filled(sentence: str, named: Mapping[str, str]) -> str:
    """A sentence with names, and a capital at its start."""
    found = sentence.format(**named)
    return found[0].upper() + found[1:]


@cache
def _grammar() -> Any:
    return yaml.safe_load((files("textveil_bench") / "fantasy.yaml").read_text(encoding="utf-8"))


# ---- by a language model ---------------------------------------------------------------------------------------------

TOPICS = ("a city", "an event of long ago", "a species")


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a language model wrote.

    Attributes:
        passages: at least one; each with at least one question, and with `QUESTIONS` at most.
        wanted: how many paragraphs were wanted.
        refused: how often something was not taken, by what it was.
    """

    passages: tuple[Passage, ...]
    wanted: int
    refused: Mapping[str, int]

    def __str__(self) -> str:
        found = sum(len(passage.questions) for passage in self.passages)
        refused = "".join(f"; refused: {count} times {what}" for what, count in self.refused.items())
        return f"{len(self.passages)} of {self.wanted} paragraphs, with {found} questions{refused}"


def ask(
    endpoint: Endpoint,
    count: int,
    *,
    seed: int = 0,
    attempts: int = 3,
    report: Callable[[str, int, int], None] | None = None,
) -> Written:
    """Lets a language model write paragraphs with questions; nothing but the instructions and invented names is sent.

    An answer that does not stand in its paragraph, stands there twice, is too long, or is given away by its question,
    is refused and counted. A paragraph with fewer than `QUESTIONS` questions is asked for again, under other names; the
    draft with most questions stays.

    Args:
        endpoint: who is asked.
        count: paragraphs, 1 or more.
        seed: of the names.
        attempts: how often each paragraph is asked for at most, 1 or more.
        report: is told of progress.

    Raises:
        ConfigError: a count, seed or number of attempts is none.
        EndpointError: the endpoint cannot be reached, refused, or wrote nothing that can be used.
    """
    if count < 1 or attempts < 1:
        raise ConfigError("a count of paragraphs and the attempts must be 1 or more")
    rng = SeededRandomness(seed)
    dice = [_Dice(rng.part(number)) for number in range(count)]
    best = [Passage(context="", questions=())] * count
    refused: Counter[str] = Counter()
    for _ in range(attempts):
        left = [i for i, passage in enumerate(best) if len(passage.questions) < QUESTIONS]
        answers = endpoint.ask([_prompt(i, dice[i]) for i in left], report=report) if left else []
        for i, answer in zip(left, answers, strict=True):
            best[i] = max(best[i], _parsed(answer, refused), key=lambda passage: len(passage.questions))
    passages = tuple({passage.context: passage for passage in best if passage.questions}.values())
    if not passages:
        raise EndpointError(f"the endpoint must write a paragraph with questions as JSON, and wrote none in {count}")
    return Written(passages=passages, wanted=count, refused=dict(refused))


def _prompt(number: int, dice: _Dice) -> tuple[str, str]:
    topic = TOPICS[number % len(TOPICS)]
    names = ", ".join(name.capitalize() for name in dice.names().values())
    return INSTRUCTIONS.format(topic=topic, names=names, questions=QUESTIONS, longest=LONGEST), f"Write about {topic}."


def _parsed(answer: str, refused: Counter[str]) -> Passage:
    """The paragraph and the questions of an answer, which must be one JSON object, in a fence or without."""
    body = re.sub(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", r"\1", answer, flags=re.DOTALL)
    try:
        found = json.loads(body.encode(errors="replace"))  # JSON may hold half a character
        context = found["paragraph"]
        asked = [(each["question"], each["answer"]) for each in found["questions"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        context, asked = None, []
    if not isinstance(context, str) or not all(isinstance(each, str) for pair in asked for each in pair):
        refused["no JSON as asked for"] += 1
        return Passage(context="", questions=())
    return accepted(" ".join(context.split()), asked[:QUESTIONS], refused)
