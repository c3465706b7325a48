"""Sentences: a part of a replaced name comes back only where its sentence names nobody else."""

import random

import pytest

from textveil.session.restore import MAX_SENTENCE_CHARACTERS
from textveil.session.state import Session

FAMILY = """
    Streep Picasso Einstein Obama Merkel Jolie Pitt Hanks Kidman DiCaprio Rowling Tolkien Hawking Musk Bezos
    Zuckerberg Swift Roberts Gates Thunberg Trump Biden Putin Scholz Clooney Spielberg Hitchcock Chaplin
    Monroe Hepburn Kahlo Curie Darwin Newton Mozart Beethoven Bach Kafka Goethe Schiller Tolstoy Austen Woolf
    Orwell Hemingway Mandela Gandhi Churchill Thatcher Macron Garland Foster Brown King Bush Nguyen
"""
GIVEN = """
    Will Grace Lech Barack Meryl Angela Vladimir Pablo Leonardo Oprah Elon Frida Marie Albert Wolfgang Ludwig
    Johann Agatha Virginia Ernest Nelson Mahatma Winston Margaret Emmanuel Penelope Rose Mark Bill Hope Faith
    Tim Ben Can
"""
AROUND = (
    *(
        "{} is known.",
        "Have you heard of {}?",
        "The film with {} was good.",
        "It was **{}**",
        "{}",
        "- {}: actor",
    ),
    *(
        "{} ist bekannt.",
        "Der Film mit {} ist gut.",
        "Le film avec {} est bon.",
        "La película con {} es buena.",
    ),
)
APART = (
    "I think {} was played by Meryl Streep.",
    "Streep was good, and so was {}.",
    "{}, as Obama told the crowd, is here.",
    "In dem Film spielt {} an der Seite von Chaplin.",
    "Hat {} die Rede von Barack Obama gehört?",
    "Le rôle de {} est joué par Depardieu.",
    "Dr. Streep and {} met.",
    "I met Cate {} there.",
)
RESTORED = """
    Hi {given}!
    Liebe {given}, Danke
    Ms {family}
    Thanks. {given}
    Dear Ms {family}, thank you for your letter.
    Tell {given} that the report is ready.
    Did {family} pay the bill?
    He said: "Is {given} there?"
    Can {given} come on Monday?
    The {family} case is closed.
    President {family} spoke.
    {given} and {family} will call you.
    {given} {family} met Meryl Streep.
    Barack Obama spoke. Then {given} came.
    Best regards, {given}
    Please write to {given} at Globex.
    {given} hat Angst vor Hunden.
    Hat {given} Zeit?
    Sehr geehrte Frau {family}, vielen Dank für Ihre Nachricht.
    Die Rechnung von {given} liegt bei der Versicherung.
    Mit freundlichen Grüßen, {given}
    Chère {given}, merci beaucoup.
    Bonjour {given},
    Madame {family} est arrivée.
    Elle connaît {given}.
    Hola {given}, ¿cómo estás?
    Para {given} es difícil.
    La señora {family} ha llamado.
    Cara {given}, grazie.
    Per {given} va bene.
    La signora {family} ha chiamato.
    Prezada {given}, tudo bem?
    Beste {given}, dank je wel.
    Mevrouw {family} heeft gebeld.
    Droga {given}, dziękuję.
    Tak, {given} już wie.
""".strip().splitlines()


@pytest.fixture(scope="module")
def session():
    session = Session()
    with session.noting() as notes:
        for original, shown in (("Maria", "Julia"), ("Silva", "Hernandez")):
            notes.add_replacement(original, shown)
        notes.add_plain_words(["Please", "write", "to", "Globex"])
    return session


def whole(names):
    return [frame.format(name) for name in names for frame in AROUND]


def apart():
    return [frame.format(part) for frame in APART for part in ("Julia", "Hernandez")]


def restored():
    return [
        tuple(
            line.strip().format(given=g, family=f)
            for g, f in (("Julia", "Hernandez"), ("Maria", "Silva"))
        )
        for line in RESTORED
    ]


def test_famous_people_stay(session):
    answers = (
        whole(
            [f"Julia {name}" for name in FAMILY.split()]
            + [f"{name} Hernandez" for name in GIVEN.split()]
        )
        + apart()
    )
    assert [answer for answer in answers if session.restore(answer) != answer] == []


def test_other_sentences_are_restored(session):
    assert [(session.restore(answer), expected) for answer, expected in restored()] == [
        (expected, expected) for _, expected in restored()
    ]


def test_a_genitive_is_no_other_name(session):
    assert (
        session.restore("Ist das von Julia oder von Julias Mutter?")
        == "Ist das von Maria oder von Julias Mutter?"
    )


def test_a_given_name_that_was_released_is_known():
    session = Session()
    with session.noting() as notes:
        notes.add_replacement("Silva", "Hernandez")
        notes.add_plain_words(["Grace", "will"])
    assert session.restore("Grace Hernandez\nWill Hernandez") == "Grace Silva\nWill Hernandez"


def test_cut_anywhere(session):
    draw = random.Random(5)
    answers = [
        *apart(),
        *(answer for answer, _ in restored()),
        *whole(["Julia Streep", "Will Hernandez"]),
    ]
    answers += [" ".join(draw.choices(answers, k=8)) for _ in range(30)]
    for answer in answers:
        for _ in range(4):
            cut, second = sorted(draw.choices(range(len(answer) + 1), k=2))
            restorer = session.restorer()
            pieces = [
                restorer.feed(piece)
                for piece in (answer[:cut], answer[cut:second], answer[second:])
            ]
            assert "".join(pieces) + restorer.close() == session.restore(answer)


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_a_sentence_is_looked_at_as_far_as_its_bound(session, piece):
    """In a longer one, which is not seen whole, the name stays."""
    for before, behind in ((0, 0), (98, 0), (100, 0), (0, 99), (0, 100)):
        answer = f"Yes. {'to ' * before}Julia{' to' * behind}. No."
        restorer = session.restorer()
        parts = [restorer.feed(answer[at : at + piece]) for at in range(0, len(answer), piece)]
        seen = max(before, behind) * len("to ") < MAX_SENTENCE_CHARACTERS
        assert "".join(parts) + restorer.close() == answer.replace(
            "Julia", "Maria" if seen else "Julia"
        )
