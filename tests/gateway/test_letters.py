"""The playground's tab of whole letters: a public text in place of one, and nothing that goes further."""

import pytest
from tests.gateway.playground import CANARY, playing

from textveil.cli import main
from textveil.errors import MissingExtra
from textveil.gateway.playground import whole_texts
from textveil.gateway.playground.whole_texts import STEPS, Letters
from textveil.library import Library, find_typical_words, make_demo_library, make_library
from textveil.pipeline import TextPrivatizer

LETTER = f"Anna {CANARY} of Harbour Street waits for a parcel that never arrived."
PASS = len(STEPS) - 1


@pytest.fixture(scope="module")
def demo():
    return make_demo_library()


@pytest.fixture(scope="module")
def opened(demo):
    with playing(library=demo) as made:
        yield made


@pytest.fixture
def token(opened):
    return opened.asked("open")["token"]


def test_a_public_text_is_released_with_its_statement(opened, token, demo):
    told = opened.asked("letter", token=token, text=LETTER, step=PASS)
    assert told["text"] in demo.texts
    assert told["own"].startswith("delivery (")
    assert told["kept"] == (told["own"] == told["drawn"])
    assert told["epsilon"] <= STEPS[PASS]
    assert "local DP 8 for a whole document" in told["statement"]
    assert CANARY not in repr(told)
    assert opened.upstream.asked == []


def test_each_step_says_the_chance_that_is_drawn(opened, token, demo):
    steps = opened.asked("library", token=token)["steps"]
    assert [each["epsilon"] for each in steps] == [f"{step:g}" for step in STEPS]
    for step, epsilon in enumerate(STEPS):
        privatizer = TextPrivatizer(demo, epsilon=epsilon)
        law = privatizer.response.law()
        assert f"{law[0, 0]:.1%}" in steps[step]["chance"]
        assert f"each of the 3 others with {law[0, 1]:.1%}" in steps[step]["chance"]


def test_each_press_draws_anew(opened, token):
    drawn = {opened.asked("letter", token=token, text=LETTER, step=0)["text"] for _ in range(12)}
    assert len(drawn) > 1  # one of 60 texts twelve times: less than 1e-19


def test_what_cannot_be_released_is_said(opened, token, demo):
    def refuse(**body):
        answer = opened.post("/playground/letter", {"token": token, "step": 3, **body})
        assert CANARY not in answer.text
        return answer.status_code, answer.json()["error"]["message"]

    status, message = refuse(text="  \n")
    assert (status, "letter is empty" in message) == (400, True)
    status, message = refuse(text=demo.texts[0].upper())
    assert (status, "made without the texts" in message) == (400, True)
    assert refuse(text=LETTER, step=len(STEPS))[0] == 400
    assert refuse(text="a" * 20_001)[0] == 413
    assert refuse(text=LETTER, token="0" * 64)[0] == 410


def test_only_its_own_page_may_ask(opened, token):
    body = {"token": token, "text": LETTER, "step": 3}
    assert opened.post("/playground/letter", body, Origin="http://evil.example").status_code == 403
    assert opened.post("/playground/library", {"token": "0" * 64}).status_code == 410


def test_without_scikit_learn_the_tab_says_how(monkeypatch):
    def refuse():
        raise MissingExtra("library", "scikit-learn")

    monkeypatch.setattr(whole_texts, "make_demo_library", refuse)
    monkeypatch.setattr("textveil.gateway.playground.routes.Letters", lambda library: Letters(None))
    with playing() as made:
        token = made.asked("open")["token"]
        assert "textveil library make" in made.asked("library", token=token)["advice"]
        answer = made.post("/playground/letter", {"token": token, "text": LETTER, "step": 3})
        assert answer.status_code == 400
        assert "textveil library make" in answer.json()["error"]["message"]


def test_a_library_without_names_has_words_for_its_kinds():
    texts = [f"The {noun} was {deed} on day {i}." for i in range(10) for noun, deed in PAIRS]
    library = make_library(texts, source="invented", licence="any", levels=(2,))
    told = Letters(library).release("The ship has been sunk.", 7)
    assert told["own"].startswith(("1 of 2 (", "2 of 2 ("))
    level = library.get_level("2")
    for cell, words in enumerate(find_typical_words(library, level)):
        for word in words:
            shares = [
                sum(word in library.texts[i].lower() for i in members) / len(members)
                for members in level.members
            ]
            assert shares[cell] == max(shares)


PAIRS = [("ship", "sunk"), ("boat", "sailed"), ("cake", "baked"), ("bread", "eaten")]


def test_a_library_without_a_page_is_refused(tmp_path, capsys, demo):
    file = tmp_path / "demo.library"
    assert main(["library", "make", "--demo", "-o", str(file)]) == 0
    assert Library.read(file).digest == demo.digest
    options = ["gateway", "--upstream", "http://127.0.0.1:9/v1", "--port", "0"]
    assert main([*options, "--playground", "never", "--library", str(file)]) == 2
    assert "--library is for the playground" in capsys.readouterr().err
    assert main([*options, "--library", str(tmp_path / "none.library")]) == 2
    assert "cannot read a library" in capsys.readouterr().err
