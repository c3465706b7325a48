"""Questions about invented facts, whose answers no model can know.

In: a count and a seed, or an endpoint. Out: `Passage`s, as examples or as lines of JSON.
Not here: what answers the questions (`tasks`), and the file of the paper's authors (`data`).

Source: STAMP, the appendix on Fantasy SQuAD: such paragraphs separate what a model reads from what it remembers. There
a language model wrote them, as in `ask`; `generate` draws them from a grammar, offline.
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
"""Questions per paragraph."""

LONGEST = 3
"""Most words in an answer."""

ASIDES = 2
"""Sentences per paragraph without a question, besides the first."""

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
CODAS = (
    "l",
    "ld",
    "lm",
    "m",
    "n",
    "nd",
    "nth",
    "r",
    "rk",
    "rn",
    "rsh",
    "s",
    "sk",
    "sh",
    "th",
    "v",
    "x",
    "z",
)
"""Parts of names."""

WIDTH = 64
"""Uniform values drawn at once."""

TRIES = 100
"""Most drafts per paragraph; about one in fifty has an answer twice and is rejected."""

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
        start: position of the answer's first character in the paragraph.
    """

    text: str
    answer: str
    start: int


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A paragraph with its questions; each answer occurs in it exactly once, where the question says.

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
                raise ConfigError(
                    "an answer must occur in its paragraph exactly once, at the given position"
                )


def accepted(context: str, asked: Iterable[tuple[str, str]], refused: Counter[str]) -> Passage:
    """A paragraph with those of its questions that are usable.

    Args:
        context: the paragraph.
        asked: questions and answers.
        refused: counts the reasons for rejecting others.
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
    """Where an answer occurs in a text as whole words, ignoring case."""
    found = re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", context, re.IGNORECASE)
    return [each.start() for each in found]


def examples(passages: Iterable[Passage]) -> Iterator[Example]:
    """One example for each question, with the texts question and context."""
    for passage in passages:
        for question in passage.questions:
            yield Example(texts=(question.text, passage.context), answers=(question.answer,))


def lines(passages: Iterable[Passage]) -> Iterator[str]:
    """One line of JSON per question, in SQuAD's format; `data.load` reads a file of them."""
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


# ---- from a grammar --------------------------------------------------------------------------------------------------


def generate(count: int, *, seed: int = 0) -> Iterator[Passage]:
    """Paragraphs about invented cities, events and species, from a grammar.

    The same seed gives the same paragraphs, and a larger count starts with the same ones. Drawn names are not on the
    list of public words; answers are common words or such names.

    Args:
        count: paragraphs, 1 or more; no two are the same.
        seed: integer from 0 to 2**128 - 1; the same seed gives the same questions.

    Raises:
        ConfigError: the count or the seed is out of range.
    """
    if count < 1:
        raise ConfigError(f"the number of paragraphs must be 1 or more, got {count}")
    rng, seen = SeededRandomness(seed), set[str]()
    for number in range(count):
        dice = _Dice(rng.part(number))
        for _ in range(TRIES):
            passage = _draft(dice)
            if len(passage.questions) == QUESTIONS and passage.context not in seen:
                break
        else:
            raise RandomnessError(
                f"the grammar made no new paragraph in {TRIES} drafts; ask for fewer paragraphs"
            )
        seen.add(passage.context)
        yield passage


class _Dice:
    """Choices from one stream."""

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
        """`count` of them, in random order."""
        keys = [next(self._values) for _ in of]
        return [of[i] for i in sorted(range(len(of)), key=keys.__getitem__)[:count]]

    def name(self) -> str:
        """A name that is not on the list of public words."""
        while True:
            syllables = [self.one(ONSETS) + self.one(VOWELS) for _ in range(self.one((1, 2)))]
            name = "".join(syllables) + self.one(ONSETS) + self.one(VOWELS) + self.one(CODAS)
            if name not in counts():
                return name.capitalize()

    def names(self) -> dict[str, str]:
        """Invented names for the roles in a paragraph."""
        named = {name: self.name() for name in ("place", "people", "person")}
        return {**named, "creature": self.name().lower()}


def _draft(dice: _Dice) -> Passage:
    """A paragraph, some of whose questions may be rejected."""
    grammar = _grammar()
    topic = grammar["topics"][dice.one(list(grammar["topics"]))]
    named = dice.names()
    asked, said = [], []
    for fact in dice.some(QUESTIONS, topic["facts"]):
        answer = (
            dice.name()
            if fact["answer"] == "name"
            else dice.one(grammar["answers"][fact["answer"]])
        )
        said.append(_filled(dice.one(fact["says"]), {**named, "answer": answer}))
        asked.append((dice.one(fact["asks"]).format(**named), answer))
    said += [_filled(each, named) for each in dice.some(ASIDES, topic["asides"])]
    opening = _filled(dice.one(topic["opens"]), named)
    return accepted(" ".join([opening, *dice.some(len(said), said)]), asked, Counter())


def _filled(sentence: str, named: Mapping[str, str]) -> str:
    """A sentence with names filled in and a capital at its start."""
    found = sentence.format(**named)
    return found[0].upper() + found[1:]


@cache
def _grammar() -> Any:
    return yaml.safe_load((files("textveil_bench") / "fantasy.yaml").read_text(encoding="utf-8"))


# ---- from a language model -------------------------------------------------------------------------------------------

TOPICS = ("a city", "an event of long ago", "a species")


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a language model wrote.

    Attributes:
        passages: at least one; each with 1 to `QUESTIONS` questions.
        wanted: number of paragraphs requested.
        refused: number of rejections by reason.
    """

    passages: tuple[Passage, ...]
    wanted: int
    refused: Mapping[str, int]

    def __str__(self) -> str:
        found = sum(len(passage.questions) for passage in self.passages)
        refused = "".join(
            f"; refused: {count} times {what}" for what, count in self.refused.items()
        )
        return f"{len(self.passages)} of {self.wanted} paragraphs, with {found} questions{refused}"


def ask(
    endpoint: Endpoint,
    count: int,
    *,
    seed: int = 0,
    attempts: int = 3,
    report: Callable[[str, int, int], None] | None = None,
) -> Written:
    """Has a language model write paragraphs with questions; only the instructions and invented names are sent.

    An answer that does not occur in its paragraph, occurs twice, is too long, or is given away by its question is
    rejected and counted. A paragraph with fewer than `QUESTIONS` questions is requested again, with other names; the
    draft with the most questions is kept.

    Args:
        endpoint: the model to ask.
        count: paragraphs, 1 or more.
        seed: of the names.
        attempts: most requests per paragraph, 1 or more.
        report: called with progress.

    Raises:
        ConfigError: a count, seed or number of attempts is out of range.
        EndpointError: the endpoint cannot be reached, refused, or wrote nothing usable.
    """
    if count < 1 or attempts < 1:
        raise ConfigError(f"paragraphs and attempts must be 1 or more, got {count} and {attempts}")
    rng = SeededRandomness(seed)
    dice = [_Dice(rng.part(number)) for number in range(count)]
    best = [Passage(context="", questions=())] * count
    refused: Counter[str] = Counter()
    for _ in range(attempts):
        left = [i for i, passage in enumerate(best) if len(passage.questions) < QUESTIONS]
        answers = endpoint.ask([_prompt(i, dice[i]) for i in left], report=report) if left else []
        for i, answer in zip(left, answers, strict=True):
            best[i] = max(
                best[i], _parsed(answer, refused), key=lambda passage: len(passage.questions)
            )
    passages = tuple({passage.context: passage for passage in best if passage.questions}.values())
    if not passages:
        raise EndpointError(
            f"the endpoint wrote no paragraph with questions as JSON in {count} tries"
        )
    return Written(passages=passages, wanted=count, refused=dict(refused))


def _prompt(number: int, dice: _Dice) -> tuple[str, str]:
    topic = TOPICS[number % len(TOPICS)]
    names = ", ".join(name.capitalize() for name in dice.names().values())
    return INSTRUCTIONS.format(
        topic=topic, names=names, questions=QUESTIONS, longest=LONGEST
    ), f"Write about {topic}."


def _parsed(answer: str, refused: Counter[str]) -> Passage:
    """The paragraph and questions of an answer, which must be one JSON object, with or without a code fence."""
    body = re.sub(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", r"\1", answer, flags=re.DOTALL)
    try:
        found = json.loads(body.encode(errors="replace"))  # JSON may hold lone surrogates
        context = found["paragraph"]
        asked = [(each["question"], each["answer"]) for each in found["questions"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        context, asked = None, []
    if not isinstance(context, str) or not all(
        isinstance(each, str) for pair in asked for each in pair
    ):
        refused["no JSON as asked for"] += 1
        return Passage(context="", questions=())
    return accepted(" ".join(context.split()), asked[:QUESTIONS], refused)
