"""Reading questions about invented facts, whose answers no model can know.

In: a count and a seed, or an endpoint. Out: `Passage`s, as examples or as lines of JSON.
Not here: the readers that answer them (`tasks`), and the file of the paper's authors (`data`).

Source: STAMP, appendix on Fantasy SQuAD: such paragraphs separate what a model reads from what it
    remembers. There a language model wrote them, as in `ask`; `generate` draws them from a grammar,
    offline.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import yaml

from textveil.errors import ConfigError, EndpointError, RandomnessError
from textveil.files import format_json_line
from textveil.models import Endpoint, Prompt
from textveil.randomness import SeededRandomness
from textveil.text import load_counts
from textveil_bench.examples import Example

QUESTIONS_PER_PARAGRAPH = 5
"""Questions per paragraph."""

MAX_ANSWER_WORDS = 3
"""Most words in an answer."""

ASIDES_PER_PARAGRAPH = 2
"""Sentences of a paragraph that no question asks about, excluding the first."""

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
"""Syllable parts for invented names."""

DRAW_WIDTH = 64
"""Uniform values drawn at once."""

MAX_DRAFTS = 100
"""Largest number of drafts of a paragraph.

About one draft in 50 repeats an answer and is rejected.
"""

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
        answer: one to `MAX_ANSWER_WORDS` words of the paragraph.
        start: position of the answer's first character in the paragraph.
    """

    text: str
    answer: str
    start: int


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A paragraph with its questions.

    Raises:
        ConfigError: an answer does not occur in it exactly once, at the position given.
    """

    context: str
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        for question in self.questions:
            end = question.start + len(question.answer)
            if (
                self.context[question.start : end] != question.answer
                or len(_find_answer(question.answer, self.context)) != 1
            ):
                raise ConfigError(
                    "an answer must occur in its paragraph exactly once, at the given position"
                )


def build_passage(
    context: str, question_pairs: Iterable[tuple[str, str]], refused: Counter[str]
) -> Passage:
    """Builds a passage from a paragraph and its usable questions.

    Args:
        context: the paragraph.
        question_pairs: questions and answers.
        refused: counts rejected questions by reason.
    """
    usable_questions: list[Question] = []
    for text, answer in question_pairs:
        positions = _find_answer(answer, context)
        if not text.strip().endswith("?"):
            refused["a question without a question mark"] += 1
        elif not 1 <= len(answer.split()) <= MAX_ANSWER_WORDS:
            refused[f"an answer that is not one to {MAX_ANSWER_WORDS} words long"] += 1
        elif not positions or not context.startswith(answer, positions[0]):
            refused["an answer that does not occur in the paragraph"] += 1
        elif len(positions) > 1:
            refused["an answer that occurs more than once"] += 1
        elif _find_answer(answer, text):
            refused["an answer that occurs in its question"] += 1
        else:
            usable_questions.append(Question(text=text.strip(), answer=answer, start=positions[0]))
    return Passage(context=context, questions=tuple(usable_questions))


def _find_answer(answer: str, context: str) -> list[int]:
    """Finds the positions of an answer as whole words, ignoring case."""
    matches = re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", context, re.IGNORECASE)
    return [match.start() for match in matches]


def build_examples(passages: Iterable[Passage]) -> Iterator[Example]:
    """Yields an example for each question, with question and context as texts."""
    for passage in passages:
        for question in passage.questions:
            yield Example(texts=(question.text, passage.context), answers=(question.answer,))


def format_lines(passages: Iterable[Passage]) -> Iterator[str]:
    """Formats questions as lines of JSON in SQuAD's format, for `data.load`."""
    for number, passage in enumerate(passages):
        for i, question in enumerate(passage.questions, 1):
            yield format_json_line(
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
    """Generates paragraphs about invented cities, events and species from a grammar.

    The same seed gives the same paragraphs, and a larger count only adds more. Invented names are
    not in the list of public words; answers are common words or invented names.

    Args:
        count: number of paragraphs, 1 or more; no two are equal.
        seed: integer from 0 to 2**128 - 1.

    Raises:
        ConfigError: the count or the seed is out of range.
    """
    if count < 1:
        raise ConfigError(f"the number of paragraphs must be 1 or more, got {count}")
    rng, contexts = SeededRandomness(seed), set[str]()
    for number in range(count):
        dice = _Chooser(rng.derive_part(number))
        for _ in range(MAX_DRAFTS):
            passage = _draft_passage(dice)
            if (
                len(passage.questions) == QUESTIONS_PER_PARAGRAPH
                and passage.context not in contexts
            ):
                break
        else:
            raise RandomnessError(
                f"the grammar made no new paragraph in {MAX_DRAFTS} drafts; ask for fewer "
                "paragraphs"
            )
        contexts.add(passage.context)
        yield passage


class _Chooser:
    """Random choices from one stream."""

    def __init__(self, rng: SeededRandomness) -> None:
        self._values = self._draw_values(rng)

    @staticmethod
    def _draw_values(rng: SeededRandomness) -> Iterator[float]:
        while True:
            for _, draws in rng.open([DRAW_WIDTH]).split_rows(DRAW_WIDTH):
                yield from draws.uniform(1)[:, 0].tolist()

    def pick(self, options: Sequence[_T]) -> _T:
        return options[int(next(self._values) * len(options))]

    def sample(self, count: int, options: Sequence[_T]) -> list[_T]:
        """Draws `count` different options, in random order."""
        keys = [next(self._values) for _ in options]
        return [options[i] for i in sorted(range(len(options)), key=keys.__getitem__)[:count]]

    def make_name(self) -> str:
        """Invents a name that is not in the list of public words."""
        while True:
            syllables = [self.pick(ONSETS) + self.pick(VOWELS) for _ in range(self.pick((1, 2)))]
            name = "".join(syllables) + self.pick(ONSETS) + self.pick(VOWELS) + self.pick(CODAS)
            if name not in load_counts():
                return name.capitalize()

    def make_names(self) -> dict[str, str]:
        """Invents names for the roles in a paragraph."""
        names = {name: self.make_name() for name in ("place", "people", "person")}
        return {**names, "creature": self.make_name().lower()}


def _draft_passage(dice: _Chooser) -> Passage:
    """Drafts a paragraph; questions that cannot be used are left out."""
    grammar = _load_grammar()
    topic = grammar["topics"][dice.pick(list(grammar["topics"]))]
    names = dice.make_names()
    question_pairs, sentences = [], []
    for fact in dice.sample(QUESTIONS_PER_PARAGRAPH, topic["facts"]):
        answer = (
            dice.make_name()
            if fact["answer"] == "name"
            else dice.pick(grammar["answers"][fact["answer"]])
        )
        sentences.append(_fill_names(dice.pick(fact["says"]), {**names, "answer": answer}))
        question_pairs.append((dice.pick(fact["asks"]).format(**names), answer))
    sentences += [
        _fill_names(aside, names) for aside in dice.sample(ASIDES_PER_PARAGRAPH, topic["asides"])
    ]
    opening = _fill_names(dice.pick(topic["opens"]), names)
    return build_passage(
        " ".join([opening, *dice.sample(len(sentences), sentences)]), question_pairs, Counter()
    )


def _fill_names(sentence: str, names: Mapping[str, str]) -> str:
    """Fills names into a sentence and capitalizes its first letter."""
    text = sentence.format(**names)
    return text[0].upper() + text[1:]


@cache
def _load_grammar() -> Any:
    return yaml.safe_load((files("textveil_bench") / "fantasy.yaml").read_text(encoding="utf-8"))


# ---- from a language model -------------------------------------------------------------------------------------------

TOPICS = ("a city", "an event of long ago", "a species")


@dataclass(frozen=True, kw_only=True)
class WrittenPassages:
    """Passages written by a language model.

    Attributes:
        passages: at least one; each with 1 to `QUESTIONS_PER_PARAGRAPH` questions.
        wanted: number of paragraphs requested.
        refused: number of rejected questions by reason.
    """

    passages: tuple[Passage, ...]
    wanted: int
    refused: Mapping[str, int]

    def __str__(self) -> str:
        question_count = sum(len(passage.questions) for passage in self.passages)
        refused = "".join(
            f"; refused: {count} times {reason}" for reason, count in self.refused.items()
        )
        return (
            f"{len(self.passages)} of {self.wanted} paragraphs, with {question_count} "
            f"questions{refused}"
        )


def ask(
    endpoint: Endpoint,
    count: int,
    *,
    seed: int = 0,
    attempts: int = 3,
    prompt: Prompt | None = None,
    report: Callable[[str, int, int], None] | None = None,
) -> WrittenPassages:
    """Asks a language model for invented paragraphs with questions.

    Only the instructions and invented names are sent. An answer that does not occur in its
    paragraph, occurs twice, is too long, or occurs in its question is rejected and counted. A
    paragraph with fewer than `QUESTIONS_PER_PARAGRAPH` questions is requested again, with other
    names; the draft with the most questions is kept.

    Args:
        endpoint: the model to ask.
        count: number of paragraphs, 1 or more.
        seed: seed of the invented names.
        attempts: largest number of requests per paragraph, 1 or more.
        prompt: what the model is asked; None for our instructions. The answer must be the same
            JSON.
        report: called with progress.

    Raises:
        ConfigError: a count, seed or number of attempts is out of range.
        EndpointError: the endpoint cannot be reached, refused, or wrote nothing usable.
    """
    if count < 1 or attempts < 1:
        raise ConfigError(f"paragraphs and attempts must be 1 or more, got {count} and {attempts}")
    prompt = prompt or Prompt(system=INSTRUCTIONS, user="Write about {topic}.")
    writer = (
        endpoint
        if prompt.temperature is None
        else replace(endpoint, temperature=prompt.temperature)
    )
    rng = SeededRandomness(seed)
    dice = [_Chooser(rng.derive_part(number)) for number in range(count)]
    best = [Passage(context="", questions=())] * count
    refused: Counter[str] = Counter()
    for _ in range(attempts):
        incomplete = [
            i for i, passage in enumerate(best) if len(passage.questions) < QUESTIONS_PER_PARAGRAPH
        ]
        answers = (
            writer.ask(
                [_fill_prompt(prompt, i, dice[i]) for i in incomplete],
                report=report,
                max_tokens=prompt.max_tokens,
            )
            if incomplete
            else []
        )
        for i, answer in zip(incomplete, answers, strict=True):
            best[i] = max(
                best[i], _parse_passage(answer, refused), key=lambda passage: len(passage.questions)
            )
    passages = tuple({passage.context: passage for passage in best if passage.questions}.values())
    if not passages:
        raise EndpointError(
            f"the endpoint wrote no paragraph with questions as JSON in {count} tries"
        )
    return WrittenPassages(passages=passages, wanted=count, refused=dict(refused))


def _fill_prompt(prompt: Prompt, number: int, dice: _Chooser) -> tuple[str, str]:
    return prompt.fill(
        topic=TOPICS[number % len(TOPICS)],
        names=", ".join(name.capitalize() for name in dice.make_names().values()),
        questions=QUESTIONS_PER_PARAGRAPH,
        longest=MAX_ANSWER_WORDS,
    )


def _parse_passage(answer: str, refused: Counter[str]) -> Passage:
    """Parses a model's reply: one JSON object, optionally in a code fence."""
    body = re.sub(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", r"\1", answer, flags=re.DOTALL)
    try:
        document = json.loads(body.encode(errors="replace"))  # JSON may hold lone surrogates
        context = document["paragraph"]
        question_pairs = [(item["question"], item["answer"]) for item in document["questions"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        context, question_pairs = None, []
    if not isinstance(context, str) or not all(
        isinstance(item, str) for pair in question_pairs for item in pair
    ):
        refused["a reply that is not the requested JSON"] += 1
        return Passage(context="", questions=())
    return build_passage(
        " ".join(context.split()), question_pairs[:QUESTIONS_PER_PARAGRAPH], refused
    )
