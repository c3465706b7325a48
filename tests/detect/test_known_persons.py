"""Persons whom nobody knows, namesakes of known ones, and those who stand in one list."""

import gzip
from importlib import resources

import numpy as np
import pytest
from faker import Faker

from textveil import Protector, Session
from textveil.detect.enumerations import mark_peers_private
from textveil.detect.second_reading import is_full_name
from textveil.detect.spans import PRIVACY_THRESHOLD, Span
from textveil.text.known_persons import is_known_person

PRIVATE = """
Could somebody tell {} that the keys are in the letter box?
{} has not paid the gym fee since June, please block the card.
I had an argument with {} about the fence between our gardens.
{} is allergic to nuts, so please check the menu for the school trip.
Thanks to {} for watering my plants while I was away.
The dentist has moved the check-up of {} to next Wednesday.
Please transfer the deposit back to {} before the end of the week.
{} slipped on the stairs of our office and broke a wrist.
We want to buy a farewell present for {} from accounting.
My tutor {} says that I will fail the exam.
{} wants to return the shoes because they are too small.
Ask {} whether the car can be picked up after five.
The police took my statement and that of {} about the accident.
{} from the second floor plays the drums at night.
Write a warning letter to {}, who came late four times this month.
{} and my brother share a flat and quarrel about the rent.
Book a table for {} and three guests for tomorrow evening.
{} asked for parental leave from April on.
Please add {} to the waiting list for the kindergarten.
I lent {} my drill and want it back.
""".strip().splitlines()

PUBLIC = """
What made {} famous?
Explain why historians still argue about {}.
Which book should I read first to learn about {}?
Summarise the career of {} in three sentences.
The statue of {} was unveiled in the capital.
""".strip().splitlines()


def list_names(count: int) -> list[str]:
    """Lists names of a given and a family name that stand on the list, evenly spread."""
    file = resources.files("textveil").joinpath("data/lexicon/known_persons.txt.gz")
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    names = [line.title() for line in lines if line.isascii() and line.count(" ") == 1]
    return names[:: len(names) // count][:count]


def hide(text: str) -> str:
    """Returns what is sent of a text."""
    return Protector("prompt").protect(text, Session()).text


@pytest.mark.parametrize(
    "name",
    [
        "Nikola Tesla",
        "Tesla, Nikola",
        "Nikola Q. Tesla's",
        "Professor Nikola Tesla",
        "NIKOLA TESLA",
        "Gabriel García Márquez",
        "Caesar",
    ],
)
def test_known_name(name):
    assert is_known_person(name)


@pytest.mark.parametrize("name", ["John Smith", "Peter Schmidt", "Nikola Teslar", "Tesla Nikola"])
def test_unknown_name(name):
    assert not is_known_person(name)


def test_few_private_names_are_listed():
    """Expects 2.6% of US and 3.3% of British names: half the names on the list would break it."""
    for locale in ("en_US", "en_GB", "de_DE"):
        names = Faker(locale)
        names.seed_instance(52)
        drawn = [f"{names.first_name()} {names.last_name()}" for _ in range(1000)]
        assert np.mean([is_known_person(name) for name in drawn]) < 0.06


def test_full_names():
    full = ["Anna Kowalska", "J. R. Smith", "Ludwig van Beethoven", "Mary-Jane O’Neill"]
    assert all(map(is_full_name, full))
    assert not any(map(is_full_name, ["Anna", "Anna K.", "A. B.", "anna smith", "Anna smith"]))


def test_namesakes():
    texts = [PRIVATE[i % 20].format(name) for i, name in enumerate(list_names(200))]
    protector = Protector("prompt")
    names = list_names(200)
    left = [
        name
        for name, text in zip(names, texts, strict=True)
        if name in protector.protect(text, Session()).text
    ]
    # A higher share costs famous people whom a prompt asks about.
    assert len(left) <= 30


def test_known_persons_stay():
    names = ["Nikola Tesla", "Frida Kahlo", "Angela Merkel", "Immanuel Kant", "Leonardo da Vinci"]
    texts = [frame.format(name) for frame, name in zip(PUBLIC, names, strict=True)]
    # The sentence about a statue might be about anybody.
    assert sum(hide(text) != text for text in texts) <= 1


ARTICLE = (
    "The cathedral was begun in the twelfth century and finished three hundred years later. Its "
    "western towers were destroyed in the war of 1870 and rebuilt by the architects of the "
    "province. The nave is famous for its glass, and the crypt holds the tombs of several bishops."
)


@pytest.mark.parametrize("name", ["Milan Drozdek", "Grace Ollerby", "Nikola Tesla"])
def test_paragraph_alone(name):
    assert name not in hide(f"{ARTICLE}\n\n{name} owes me rent for two months.\n\n{ARTICLE}")


def test_private_neighbour_leaves_known_person():
    text = "Tell my client Milan Drozdek what Immanuel Kant wrote about duty."
    assert hide(text) == text.replace("Milan Drozdek", "<PERSON_1>")


def judge(text: str, private: str, public: tuple[str, ...], score: float = 0.4) -> set[str]:
    """Returns the private names of a text, of which the odds call one private, the others not."""
    spans = [
        Span(0, text.index(name), text.index(name) + len(name), "PERSON", 1.0, "tagger", score)
        for name, score in ((private, 0.9), *((name, score) for name in public))
    ]
    return {
        text[span.start : span.end]
        for span in mark_peers_private(spans, [text])
        if span.privacy_score >= PRIVACY_THRESHOLD
    }


@pytest.mark.parametrize(
    "text",
    [
        "{}, {} and {} applied.",
        "To: {}; {}; {}",
        "1. {}\n2. {}\n3. {}\n",
        "| {} | Oslo |\n| {} | Rome |\n| {} | Bonn |\n",
        "id,name\n1,{}\n2,{}\n3,{}\n",
    ],
)
def test_enumeration(text):
    names = "Milan Drozdek", "Grace Ollerby", "Yusuf Tanrik"
    assert judge(text.format(*names), names[0], names[1:]) == {*names}


@pytest.mark.parametrize(
    ("text", "peers"),
    [
        ("{}, {} and {} applied.", ("Nikola Tesla", "Grace Ollerby")),
        ("{} met {}. Later {} came.", ("Grace Ollerby", "Yusuf Tanrik")),
        ("- {}\n\nRead this:\n- {}, {}\n", ("Grace Ollerby", "Yusuf Tanrik")),
    ],
)
def test_no_enumeration(text, peers):
    assert judge(text.format("Milan Drozdek", *peers), "Milan Drozdek", peers) == {"Milan Drozdek"}


def test_one_doubt_is_no_verdict_over_a_list():
    names = "Milan Drozdek", "Grace Ollerby", "Yusuf Tanrik"
    text = "{}, {} and {} won.".format(*names)
    assert judge(text, names[0], names[1:], score=0.1) == {names[0]}
