"""Sessions: placeholder numbers, the way back, and that nothing is shared or shown."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from textveil.config.sections import WordsOptions
from textveil.pipeline.privatizer import Privatizer
from textveil.session.state import Session

OOV = WordsOptions(oov="placeholder")
SECRETS = ("Zyxqorvian", "Quillimar", "Braxtelion")


@pytest.fixture
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


def test_numbers_in_order_of_first_appearance():
    session = Session()
    values = ["b", "a", "b", "c", "a"]
    assert [session.placeholder("WORD", value) for value in values] == [
        "<WORD_1>",
        "<WORD_2>",
        "<WORD_1>",
        "<WORD_3>",
        "<WORD_2>",
    ]


def test_each_kind_counts_for_itself():
    session = Session()
    assert session.placeholder("WORD", "a") == "<WORD_1>"
    assert session.placeholder("NAME", "a") == "<NAME_1>"
    assert session.placeholder("NAME", "b") == "<NAME_2>"
    assert session.restore("<NAME_2> <WORD_1> <NAME_1>") == "b a a"


def test_case_is_ignored_and_the_first_spelling_comes_back():
    session = Session()
    assert session.placeholder("WORD", "Quillimar") == session.placeholder("WORD", "QUILLIMAR") == "<WORD_1>"
    assert session.restore("<WORD_1>") == "Quillimar"


def test_values_are_compared_without_width_of_spaces_and_composition():
    session = Session()
    spellings = ("José  da Silva", "jose\u0301 da\n SILVA", " José da Silva ")
    assert {session.placeholder("PERSON", spelling) for spelling in spellings} == {"<PERSON_1>"}
    assert session.placeholder("PERSON", "Jose da Silva") == "<PERSON_2>"
    assert session.restore("<PERSON_1>") == "José  da Silva"


def test_restore_leaves_everything_else():
    session = Session()
    session.placeholder("WORD", "a")
    text = "<WORD_2> <WORD> word_1 <WORD_01> <WORD_1_2> <WORD_10> WORD_10 xWORD_1 <<WORD_1>> <NAME_1>"
    assert session.restore(text) == text.replace("<WORD_1>", "a")
    assert Session().restore(text) == text


def test_restore_does_not_restore_what_it_has_put_in():
    session = Session()
    session.placeholder("WORD", "<WORD_2>")
    session.placeholder("WORD", r"\1\g<0>")
    assert session.restore("<WORD_1>") == "<WORD_2>"
    assert session.restore("<WORD_2>") == r"\1\g<0>"


def test_two_digit_numbers_are_not_cut():
    session = Session()
    for number in range(1, 13):
        session.placeholder("WORD", f"value{number}")
    assert session.restore("<WORD_12> <WORD_1>") == "value12 value1"


def test_repr_shows_only_a_count():
    session = Session(owner="someone@example.org")
    for secret in SECRETS:
        session.placeholder("WORD", secret)
    shown = repr(session) + str(session) + f"{session}"
    assert "3" in shown
    assert not any(secret.lower() in shown.lower() for secret in (*SECRETS, "someone"))


class Slow(dict):
    """A dict that gives other threads time between reading and writing."""

    def get(self, *args):
        found = super().get(*args)
        time.sleep(0.002)
        return found


def test_threads_get_different_numbers_for_different_values():
    session = Session()
    session._counts = Slow()
    values = [f"value{i}" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda value: session.placeholder("WORD", value), values + values[::-1]))
    assert seen[:40] == seen[:39:-1]
    assert sorted(seen[:40]) == sorted(f"<WORD_{i}>" for i in range(1, 41))
    assert [session.restore(placeholder) for placeholder in seen] == values + values[::-1]


def test_threads_remember_and_restore_at_once():
    session = Session()

    def remember(i):
        session.replaced(f"original{i}", f"shown{i}")
        session.said([f"said{i}"])
        return session.restore(f"shown{i} said{i}")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(remember, range(60))) == [f"original{i} said{i}" for i in range(60)]


# ---- in the pipeline -------------------------------------------------------------------------------------


def test_pipeline_numbers_and_restores(privatizer):
    session = Session()
    text = "Zyxqorvian met Quillimar ; zyxqorvian left"
    result = privatizer.privatize(text, session)
    assert result.text == "<WORD_1> <WORD_2> <WORD_3> ; <WORD_1> <WORD_4>"
    assert session.restore(result.text) == "Zyxqorvian met Quillimar ; Zyxqorvian left"
    assert result.released.mask.equal == ((0, 4),)
    assert "equal placeholders" in result.guarantee.mask


def test_numbers_are_in_the_mask_even_without_a_repeat(privatizer):
    """Two numbers say that two words differ, and a number may come back in a later text."""
    result = privatizer.privatize("Zyxqorvian met Quillimar", Session())
    assert result.released.mask.equal == ()
    assert "equal placeholders" in result.guarantee.mask
    assert "equal placeholders" not in privatizer.privatize("Zyxqorvian met Quillimar").guarantee.mask


def test_a_session_goes_on_over_calls_and_batches(privatizer):
    session = Session()
    assert privatizer.privatize("Zyxqorvian", session).text == "<WORD_1>"
    many = privatizer.privatize_many(["Quillimar", "zyxqorvian Quillimar"], session)
    assert [result.text for result in many] == ["<WORD_2>", "<WORD_1> <WORD_2>"]


def test_two_sessions_never_share(privatizer):
    one, two = Session("a"), Session("a")
    assert privatizer.privatize("Zyxqorvian Quillimar", one).text == "<WORD_1> <WORD_2>"
    assert privatizer.privatize("Quillimar", two).text == "<WORD_1>"
    assert two.restore("<WORD_1> <WORD_2>") == "Quillimar <WORD_2>"
    assert one.restore("<WORD_1> <WORD_2>") == "Zyxqorvian Quillimar"


def test_without_a_session_nothing_is_kept(privatizer):
    first, second = (
        privatizer.privatize("Zyxqorvian Zyxqorvian"),
        privatizer.privatize("Zyxqorvian Quillimar"),
    )
    assert first.text == second.text == "<WORD> <WORD>"
    assert first.released.mask.equal == ()
    assert Session().restore(first.text) == first.text


def test_only_placeholders_are_numbered(small_table, echo):
    session = Session()
    privatizer = Privatizer(echo, epsilon=5, table=small_table, words=OOV)
    result = privatizer.privatize("river Zyxqorvian river the", session)
    assert result.text == "river <WORD_1> river the"
    assert "1 placeholder" in repr(session)


def test_mask_of_a_text_that_spells_a_placeholder(small_table, echo):
    """What looks like a placeholder in the input is five words, and is none in the mask."""
    privatizer = Privatizer(echo, epsilon=5, table=small_table, words=OOV)
    result = privatizer.privatize("<WORD_1> Zyxqorvian", Session())
    assert all(item.kind == "placeholder" for item in result.released.items if "WORD" in item.text)
    assert {i for i, _ in result.released.mask.placeholders} >= {1, 5}


def test_threads_share_a_session_through_the_pipeline(privatizer):
    session = Session()
    texts = [f"secret{i}x common" for i in range(24)]
    with ThreadPoolExecutor(8) as pool:
        released = list(pool.map(lambda text: privatizer.privatize(text, session).text, texts))
    assert [session.restore(text) for text in released] == texts
    assert len({text.split()[0] for text in released}) == 24
    assert len({text.split()[1] for text in released}) == 1
