"""Sessions: placeholder numbers, the way back, and that nothing is shared or shown."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest

from textveil.config.sections import WordsOptions
from textveil.errors import InputError, MechanismError
from textveil.pipeline.privatizer import Privatizer
from textveil.session.conversations import Utterance
from textveil.session.escapes import wrap_char
from textveil.session.placeholders import (
    Original,
    PlaceholderToken,
    find_placeholder_names,
    format_letters,
)
from textveil.session.restore import RestoreKey
from textveil.session.snapshot import Changes, Replacement, Snapshot
from textveil.session.state import MAX_ATTEMPTS, Session, _SessionFile

OOV = WordsOptions(oov="placeholder")
SECRETS = ("Zyxqorvian", "Quillimar", "Braxtelion")


@pytest.fixture
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


def test_numbers_in_order_of_first_appearance():
    notes = Changes(Snapshot())
    values = ["b", "a", "b", "c", "a"]
    assert [notes.assign_placeholder("WORD", value) for value in values] == [
        "<WORD_1>",
        "<WORD_2>",
        "<WORD_1>",
        "<WORD_3>",
        "<WORD_2>",
    ]


def test_each_kind_counts_for_itself():
    session = Session()
    with session.noting() as notes:
        assert notes.assign_placeholder("WORD", "a") == "<WORD_1>"
        assert notes.assign_placeholder("NAME", "a") == "<NAME_1>"
    with session.noting() as notes:
        assert notes.assign_placeholder("NAME", "b") == "<NAME_2>"
    assert session.restore("<NAME_2> <WORD_1> <NAME_1>") == "b a a"


def test_each_spelling_of_a_value_comes_back_as_it_stood():
    session = Session()
    for spelling, shown in (
        ("Quillimar", "<WORD_1>"),
        ("QUILLIMAR", "<WORD_1_B>"),
        ("Quillimar", "<WORD_1>"),
    ):
        with session.noting() as notes:
            assert notes.assign_placeholder("WORD", spelling) == shown
    assert session.restore("<WORD_1> <WORD_1_B> <WORD_1_C>") == "Quillimar QUILLIMAR <WORD_1_C>"


def test_names_are_compared_without_accents_hyphens_spaces_and_what_is_not_seen():
    session = Session()
    spellings = (
        "José  da Silva",
        "jose\u0301 da\n SILVA",
        "Jose da Silva",
        "JOSE-DA-SILVA",
        "Jo\u200bsé da Silva",
    )
    with session.noting() as notes:
        shown = [notes.assign_placeholder("PERSON", spelling) for spelling in spellings]
        assert notes.assign_placeholder("PERSON", "Josef da Silva") == "<PERSON_2>"
    assert shown == ["<PERSON_1>", "<PERSON_1_B>", "<PERSON_1_C>", "<PERSON_1_D>", "<PERSON_1_E>"]
    assert session.restore("|".join(shown)) == "|".join(spellings)


def test_addresses_are_compared_with_their_punctuation():
    session = Session()
    with session.noting() as notes:
        values = ["a.b@x.org", "ab@x.org", "A.b@x.org", "10.0.0.1", "1.0.0.01"]
        assert notes.assign_placeholders(
            [Original("EMAIL" if "@" in value else "IP", value) for value in values]
        ) == [
            "<EMAIL_1>",
            "<EMAIL_2>",
            "<EMAIL_1_B>",
            "<IP_1>",
            "<IP_2>",
        ]


# ---- parts of names ----------------------------------------------------------------------------------------


def numbered(session, *values, type_="PERSON"):
    with session.noting() as notes:
        return notes.assign_placeholders([Original(type_, value) for value in values])


def test_parts_of_a_name_have_its_number_wherever_they_stand():
    """The longest values decide what is whole; numbers are those of first appearance."""
    session = Session()
    assert numbered(session, "Taylor", "Robert Taylor", "Ann Lee", "robert", "TAYLOR") == [
        "<PERSON_1_FAMILY>",
        "<PERSON_1>",
        "<PERSON_2>",
        "<PERSON_1_GIVEN>",
        "<PERSON_1_FAMILY_B>",
    ]
    assert session.restore("Dear <PERSON_1_GIVEN> <PERSON_1_FAMILY_B>") == "Dear robert TAYLOR"
    assert numbered(session, "Lee", "Robert") == ["<PERSON_2_FAMILY>", "<PERSON_1_GIVEN_B>"]


def test_a_part_that_fits_two_names_has_a_number_of_its_own():
    session = Session()
    shown = numbered(session, "Robert Taylor", "Anna Taylor", "Taylor", "Anna")
    assert shown == ["<PERSON_1>", "<PERSON_2>", "<PERSON_3>", "<PERSON_2_GIVEN>"]
    later = Session()
    numbered(later, "Robert Taylor")
    numbered(later, "Anna Taylor")
    assert numbered(later, "Taylor", "TAYLOR") == ["<PERSON_3>", "<PERSON_3_B>"]


def test_a_value_keeps_its_placeholder_when_a_longer_one_comes():
    session = Session()
    assert numbered(session, "Taylor") == ["<PERSON_1>"]
    assert numbered(session, "Robert Taylor", "Taylor", "Robert") == [
        "<PERSON_2>",
        "<PERSON_1>",
        "<PERSON_2_GIVEN>",
    ]


@pytest.mark.parametrize(
    ("whole", "part", "shown"),
    [
        ("Anna Maria da Silva", "Anna Maria", "<PERSON_1_GIVEN>"),
        ("Anna Maria da Silva", "da Silva", "<PERSON_1_FAMILY>"),
        ("Anna Maria da Silva", "Maria", "<PERSON_1_PART>"),
        ("Anna Maria da Silva", "Anna Silva", "<PERSON_1_B>"),
        ("Anna Maria da Silva", "Maria Anna", "<PERSON_2>"),
        ("Taylor, Robert", "Taylor", "<PERSON_1_FAMILY>"),
        ("Taylor, Robert", "Robert Taylor", "<PERSON_1_B>"),
        ("Robert Taylor Jr.", "Taylor", "<PERSON_1_FAMILY>"),
        ("Séamus O'Brien", "O’Brien", "<PERSON_1_FAMILY>"),
        ("王小明", "小明", "<PERSON_1_GIVEN>"),
        ("山田太郎", "山田", "<PERSON_1_FAMILY>"),
    ],
)
def test_which_part_it_is(whole, part, shown):
    assert numbered(Session(), whole, part)[1] == shown


def test_parts_of_other_names():
    session = Session()
    assert numbered(
        session, "Halvorsen & Brightwater Ltd", "Brightwater", "Halvorsen", type_="ORGANIZATION"
    ) == [
        "<ORGANIZATION_1>",
        "<ORGANIZATION_1_PART>",
        "<ORGANIZATION_1_PART_B>",
    ]
    assert numbered(session, "Brightwater", type_="PERSON") == ["<PERSON_1>"]


def test_letters_of_spellings_go_on_after_z():
    assert [format_letters(form) for form in (2, 26, 27, 52, 53, 703)] == [
        "B",
        "Z",
        "AA",
        "AZ",
        "BA",
        "AAA",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<PERSON_1>",
        "PERSON_1",
        "a <person_1_given> b",
        "_PERSON_1_",
        "&lt;PERSON_1&gt;",
        r"\<PERSON\_1\>",
        r"\u003cPERSON\u005f1\u003e",
        "PERSON&#95;1_B",
        "日本PERSON_1",
    ],
)
def test_what_a_text_spells_is_never_given(text):
    session = Session()
    with session.noting() as notes:
        notes.reserve_names(text)
        assert notes.assign_placeholder("PERSON", "Anna") == "<PERSON_2>"
    assert session.restore(text) == text


@pytest.mark.parametrize("text", ["a_b", "snake_case_1x", "1_000", "PERSON 1", "<PERSON>"])
def test_what_is_no_placeholder_is_not_spelled(text):
    assert "PERSON_1" not in find_placeholder_names(text)


def test_restore_leaves_everything_else():
    session = Session()
    with session.noting() as notes:
        notes.assign_placeholder("WORD", "a")
    text = (
        "<WORD_2> <WORD> word_1 <WORD_01> <WORD_1_2> <WORD_10> WORD_10 xWORD_1 <<WORD_1>> <NAME_1>"
    )
    assert session.restore(text) == text.replace("<WORD_1>", "a")
    assert Session().restore(text) == text


def test_restore_does_not_restore_what_it_has_put_in():
    session = Session()
    with session.noting() as notes:
        notes.assign_placeholder("WORD", "<WORD_2>")
        notes.assign_placeholder("WORD", r"\1\g<0>")
    assert session.restore("<WORD_1>") == "<WORD_2>"
    assert session.restore("<WORD_2>") == r"\1\g<0>"


def test_two_digit_numbers_are_not_cut():
    session = Session()
    with session.noting() as notes:
        for number in range(1, 13):
            notes.assign_placeholder("WORD", f"value{number}")
    assert session.restore("<WORD_12> <WORD_1>") == "value12 value1"


def test_nothing_shows_more_than_counts():
    session = Session(owner="someone@example.org")
    notes = Changes(session.snapshot())
    for secret in SECRETS:
        notes.assign_placeholder("WORD", secret)
        notes.add_replacement(secret, f"{secret}s")
        notes.claim_name(secret, f"{secret}s")
        notes.add_plain_words([secret])
        notes.reuse_rows("a law", [(secret, "other")], [1])
    delta = notes.build_delta()
    assert session.commit(delta)
    assert "3" in repr(session)
    for each in (session, session.snapshot(), delta, notes):
        shown = repr(each) + str(each) + f"{each}"
        assert not any(secret.lower() in shown.lower() for secret in (*SECRETS, "someone"))


# ---- one step ----------------------------------------------------------------------------------------------


def test_a_snapshot_stays_as_it_is():
    session = Session()
    before = session.snapshot()
    with session.noting() as notes:
        notes.assign_placeholder("WORD", "a")
        assert session.snapshot() is before, "nothing is remembered before it is committed"
    assert before.placeholders == {}
    assert session.snapshot().version == 1


def test_a_long_session_is_not_copied_with_every_release():
    """Or it would take quadratic time. What was known earlier stays as it was."""
    session, taken = Session(), []
    for i in range(300):
        taken.append(session.snapshot())
        with session.noting() as notes:
            notes.assign_placeholder("WORD", f"value{i}")
            notes.add_plain_words([f"said{i}", "often"])
    assert [len(known.placeholders) for known in taken] == list(range(300))
    assert [len(known.said) for known in taken] == [0, *range(2, 301)]
    assert all(len(known.placeholders.maps) < 12 for known in taken)
    known = session.snapshot()
    assert [given.number for given in known.placeholders.values()] == list(range(1, 301)), (
        "in order of appearance"
    )
    assert known.counts == {"WORD": 300}
    assert session.restore("<WORD_1> <WORD_300>") == "value0 value299"


def test_a_delta_says_what_is_new_only():
    session = Session()
    with session.noting() as notes:
        notes.assign_placeholder("WORD", "a")
        notes.add_replacement("Maria", "Elena")
        notes.add_plain_words(["river"])
        notes.reserve_names("<EMAIL_1>")
        notes.reuse_rows("a law", [("stone", "other")], [3])
    again = Changes(session.snapshot())
    again.assign_placeholder("WORD", "a")
    again.add_replacement("MARIA", "elena")
    again.add_plain_words(["River"])
    again.reserve_names("<email_1>")
    again.reuse_rows("a law", [("Stone", "other")], [4])
    assert not again.build_delta()
    again.assign_placeholder("WORD", "b")
    assert [given.text for given in again.build_delta().placeholders.values()] == ["<WORD_2>"]


def test_what_another_one_committed_in_between_is_not_overwritten():
    """One number for two values, or one name for two originals, would lead back to the wrong one."""
    session = Session()
    first, second = Changes(session.snapshot()), Changes(session.snapshot())
    assert (
        first.assign_placeholder("WORD", "a")
        == second.assign_placeholder("WORD", "b")
        == "<WORD_1>"
    )
    assert first.claim_name("Maria", "Elena")
    assert second.claim_name("Anna", "Elena")
    assert session.commit(first.build_delta())
    assert not session.commit(second.build_delta())
    assert session.commit(Changes(Snapshot()).build_delta()), "what adds nothing is in nobody's way"
    assert session.restore("<WORD_1>") == "a"
    anew = Changes(session.snapshot())
    assert anew.assign_placeholder("WORD", "b") == "<WORD_2>"
    assert not anew.claim_name("Anna", "Elena")


def test_notes_by_hand_are_refused_where_the_session_has_changed():
    session = Session()

    def at_once():
        with session.noting() as slow, session.noting() as fast:
            slow.assign_placeholder("WORD", "a")
            fast.assign_placeholder("WORD", "b")

    with pytest.raises(InputError, match="try again"):
        at_once()
    assert session.restore("<WORD_1> <WORD_2>") == "b <WORD_2>"


def test_a_release_is_made_again_from_what_is_known_by_then():
    session, seen = Session(), []

    def release(known):
        seen.append(known.version)
        if len(seen) < 3:
            with session.noting() as other:
                other.assign_placeholder("WORD", f"other{len(seen)}")
        notes = Changes(known)
        return notes.assign_placeholder("WORD", "mine"), notes.build_delta()

    assert session.transaction(release) == "<WORD_3>"
    assert seen == [0, 1, 2]
    assert session.restore("<WORD_1> <WORD_2> <WORD_3>") == "other1 other2 mine"


def test_in_the_end_others_wait():
    """Somebody commits during every attempt; the last one lets nobody in."""
    session = Session()
    others: list[Thread] = []

    def other():
        notes = Changes(session.snapshot())
        notes.assign_placeholder("WORD", f"other{len(others)}")
        session.commit(notes.build_delta())

    def release(known):
        others.append(Thread(target=other))
        others[-1].start()
        others[-1].join(0.2)
        notes = Changes(known)
        return notes.assign_placeholder("WORD", "mine"), notes.build_delta()

    last = f"<WORD_{MAX_ATTEMPTS + 1}>"
    assert session.transaction(release) == last
    assert len(others) == MAX_ATTEMPTS + 1
    others[-1].join()
    assert session.restore(f"<WORD_1> {last}") == "other1 mine"


def test_a_failure_is_not_remembered():
    session = Session()

    def release(known):
        notes = Changes(known)
        notes.assign_placeholder("WORD", "a")
        raise InputError("none")

    with pytest.raises(InputError):
        session.transaction(release)
    assert session.snapshot().version == 0
    with session.noting() as notes:  # and the session is not locked
        assert notes.assign_placeholder("WORD", "b") == "<WORD_1>"


def test_threads_get_different_numbers_for_different_values():
    session = Session()

    def release(value):
        def spelled(known):
            notes = Changes(known)
            shown = notes.assign_placeholder("WORD", value)
            time.sleep(0.002)  # others get time in between
            return shown, notes.build_delta()

        return session.transaction(spelled)

    values = [f"value{i}" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(release, values + values[::-1]))
    assert seen[:40] == seen[:39:-1]
    assert sorted(seen[:40]) == sorted(f"<WORD_{i}>" for i in range(1, 41))
    assert [session.restore(placeholder) for placeholder in seen] == values + values[::-1]


def test_threads_remember_and_restore_at_once():
    session = Session()

    def release(i):
        def spelled(known):
            notes = Changes(known)
            notes.add_replacement(f"original{i}", f"shown{i}")
            notes.add_plain_words([f"said{i}"])
            return f"shown{i} said{i}", notes.build_delta()

        return session.restore(session.transaction(spelled))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(release, range(60))) == [f"original{i} said{i}" for i in range(60)]


# ---- in the pipeline -------------------------------------------------------------------------------------


def test_pipeline_numbers_and_restores(privatizer):
    session = Session()
    text = "Zyxqorvian met Quillimar ; zyxqorvian left"
    result = privatizer.privatize(text, session)
    assert result.text == "<WORD_1> <WORD_2> <WORD_3> ; <WORD_1_B> <WORD_4>"
    assert session.restore(result.text) == text
    assert {"equal placeholders", "spellings"} < {*result.guarantee.mask}
    assert privatizer.privatize("Quillimar Quillimar", session).released.mask.equal == ((0, 1),)


def test_numbers_are_in_the_mask_even_without_a_repeat(privatizer):
    """Two numbers say that two words differ, and a number may come back in a later text."""
    result = privatizer.privatize("Zyxqorvian met Quillimar", Session())
    assert result.released.mask.equal == ()
    assert "equal placeholders" in result.guarantee.mask
    assert (
        "equal placeholders" not in privatizer.privatize("Zyxqorvian met Quillimar").guarantee.mask
    )


def test_a_session_goes_on_over_calls_and_batches(privatizer):
    session = Session()
    assert privatizer.privatize("Zyxqorvian", session).text == "<WORD_1>"
    many = privatizer.privatize_many(["Quillimar", "zyxqorvian Quillimar"], session)
    assert [result.text for result in many] == ["<WORD_2>", "<WORD_1_B> <WORD_2>"]


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


def test_what_cannot_be_stated_is_not_remembered(privatizer, monkeypatch):
    session = Session()
    privatizer.privatize("Quillimar", session)
    before = session.snapshot()

    def fails(*_, **__):
        raise RuntimeError("the statement")

    with monkeypatch.context() as patched:
        patched.setattr("textveil.pipeline.privatizer.build_guarantee", fails)
        with pytest.raises(MechanismError):
            privatizer.privatize("Zyxqorvian met Braxtelion", session)
    assert session.snapshot() is before
    assert privatizer.privatize("Braxtelion", session).text == "<WORD_2>"


def test_what_a_text_spelled_is_kept(privatizer):
    """Or the file would give the text's own <WORD_1> a value, and its answer would be restored wrongly."""
    session = Session()
    with session.noting() as notes:
        notes.reserve_names("<WORD_1>")
    again = Session.from_json(session.to_json())
    assert privatizer.privatize("Quillimar", again).text == "<WORD_2>"
    assert again.restore("<WORD_1> <WORD_2>") == "<WORD_1> Quillimar"


def test_no_repr_shows_what_is_private():
    value, session = "Zyxqorvian", Session()
    with session.noting() as notes:
        notes.assign_placeholder("PERSON", value)
        notes.add_replacement(value, "Quillimar")
        notes.add_plain_words(["braxtelion"])
    given = PlaceholderToken("PERSON", 1, value)
    assert (repr(given), repr(given.original)) == (
        "PlaceholderToken(<PERSON_1>)",
        "Original(PERSON)",
    )
    kept = _SessionFile.model_validate_json(session.to_json())
    others = (
        Replacement(value, value),
        RestoreKey(value, value, "name"),
        Utterance("user", (value,)),
        wrap_char("Z"),
        kept,
    )
    sought = [form for each in session.snapshot().private.values() for form in each.forms]
    seen = " ".join(
        map(
            repr,
            [given, given.original, *others, *kept.placeholders, *kept.replacements, *sought],
        )
    )
    seen += f"{session!r} {session.snapshot()!r} {kept}"
    assert not [secret for secret in SECRETS if secret.lower() in seen.lower()]
    assert "'Z'" not in seen


@pytest.mark.parametrize("types", [("EMAIL", "EMAIL_ADDRESS"), ("EMAIL_ADDRESS", "EMAIL")])
def test_a_type_may_go_on_from_another_one(types):
    session = Session()
    with session.noting() as notes:
        shown = [notes.assign_placeholder(type_, f"of {type_}") for type_ in types]
    assert session.restore(" ".join(shown)) == " ".join(f"of {type_}" for type_ in types)
