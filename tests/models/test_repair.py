"""Repair and extraction: placeholders survive every model, and nothing but what was released goes out."""

import json
import urllib.request
from dataclasses import replace

import pytest

from textveil import cli
from textveil.errors import ConfigError, EndpointError, InputError, TextveilWarning
from textveil.models.answers import AnswerStore
from textveil.models.endpoint import Endpoint
from textveil.models.prompts import Prompt
from textveil.models.repair import count_placeholders, extract, repair
from textveil.pipeline.privatizer import Privatizer
from textveil.session.state import Session

CANARY = "zyxqorvian"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv("TEXTVEIL_LLM_KEY", raising=False)


@pytest.fixture
def endpoint(openai_server):
    return lambda model: Endpoint(url=openai_server, model=model, retries=0, temperature=1.5)


@pytest.fixture
def journal(openai_server):
    """The bodies of the requests so far."""

    def read():
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(openai_server.removesuffix("/v1") + "/journal") as answer:
            return [each["body"] for each in json.load(answer)]

    return read


def about(journal, text):
    return [body for body in journal() if text in body["messages"][-1]["content"]]


TEXTS = [
    "<PERSON_1> owe <PERSON_2> and <PERSON_1> money .",
    "no placeholders here .",
    "<EMAIL_1> is it",
]


# ---- placeholders --------------------------------------------------------------------------------------------------


def test_what_the_model_says_is_taken(endpoint):
    assert repair(["ein text .", "", " \n", "straße"], endpoint("upper")) == [
        "EIN TEXT .",
        "",
        " \n",
        "STRASSE",
    ]
    assert repair(TEXTS, endpoint("echo")) == TEXTS
    assert repair([], endpoint("echo")) == []


def test_lost_placeholders_are_never_accepted(endpoint):
    with pytest.warns(TextveilWarning, match=r"^2 of 3 texts stay unchanged"):
        assert repair(TEXTS, endpoint("drops")) == TEXTS


def test_new_placeholders_are_never_accepted(endpoint):
    with pytest.warns(TextveilWarning, match=r"^3 of 3 texts"):
        assert repair(TEXTS, endpoint("adds")) == TEXTS


def test_a_second_attempt_helps(endpoint, journal):
    texts = [f"{text} second" for text in TEXTS]
    assert repair(texts, endpoint("drops-once")) == texts
    assert [len(about(journal, text)) for text in texts] == [2, 1, 2]
    texts = [f"{text} only" for text in TEXTS]
    with pytest.warns(TextveilWarning, match=r"^2 of 3"):
        assert repair(texts, endpoint("drops-once"), attempts=1) == texts


def test_each_occurrence_counts():
    text = "<A_1> <A_1>, <A_12> <WORD> < A_1> <a_1> <A_1"
    assert count_placeholders(text) == {"<A_1>": 2, "<A_12>": 1, "<WORD>": 1}


# ---- what is asked -------------------------------------------------------------------------------------------------


def test_the_request(endpoint, journal):
    repair(["<CARD_7> twice <CARD_7> and <IBAN_2>"], endpoint("echo"))
    (body,) = about(journal, "CARD_7")
    system, user = body["messages"]
    assert body["temperature"] == 0.2
    assert user == {"role": "user", "content": "<CARD_7> twice <CARD_7> and <IBAN_2>"}
    assert "<CARD_7> 2x, <IBAN_2> 1x" in system["content"]
    repair(["none in here at all"], endpoint("echo"))
    assert "angle brackets" not in about(journal, "none in here")[0]["messages"][0]["content"]


def test_extraction(endpoint, journal):
    prompts, answers = (
        ["ask <PERSON_1> about zebras", "and lions"],
        ["<PERSON_1> says. <PERSON_1> is.", "Roar."],
    )
    found = extract(prompts, answers, endpoint("draft"))
    assert found == ["<PERSON_1> says! <PERSON_1> is!", "Roar!"]
    (body,) = about(journal, "zebras")
    assert body["temperature"] == 0.5
    assert body["messages"][1]["content"] == f"REQUEST:\n{prompts[0]}\n\nDRAFT:\n{answers[0]}"
    assert "<PERSON_1> 2x" in body["messages"][0]["content"]


def test_an_extraction_that_loses_placeholders_is_the_answer(endpoint):
    with pytest.warns(TextveilWarning, match=r"^1 of 2"):
        found = extract(
            ["a <WORD_1>", "b"], ["<WORD_1> it is", ""], endpoint("echo")
        )  # echoes both texts
    assert found == ["<WORD_1> it is", ""]


def test_errors(endpoint):
    with pytest.raises(InputError, match=r"one answer per prompt, got 1 prompts and 2 answers"):
        extract(["a"], ["b", "c"], endpoint("draft"))
    with pytest.raises(ConfigError, match="attempts must be 1 or more"):
        repair(["a"], endpoint("echo"), attempts=0)
    with pytest.raises(EndpointError, match="status 500"):
        repair(["a"], endpoint("fail-500"))


def test_progress(endpoint):
    told = []
    repair(["a", "b"], endpoint("echo"), report=lambda *step: told.append(step))
    assert told == [("asking", 1, 2), ("asking", 2, 2)]


# ---- nothing else goes out -----------------------------------------------------------------------------------------


def test_only_what_was_released_is_sent(endpoint, journal, small_table):
    session = Session(owner=CANARY)
    result = Privatizer("placeholder", table=small_table).privatize(
        f"the river {CANARY} and {CANARY}2", session
    )
    released = [result.released]
    before = len(journal())
    repaired = repair(released, endpoint("echo"))
    assert repaired == [result.text]
    with pytest.warns(TextveilWarning) as warned:
        repair(released, endpoint("drops"))
    answered = extract(released, ["<WORD_2> is a name."], endpoint("draft"))
    assert answered == ["<WORD_2> is a name!"]
    sent = json.dumps(journal()[before:])
    assert sent.count("<WORD_2>") >= 4
    assert CANARY not in sent.lower() + str(warned[0].message).lower()
    assert session.restore(answered[0]) == f"{CANARY} is a name!"


# ---- the verb ------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(capsys, openai_server):
    def run(*arguments, model="upper"):
        code = cli.main(
            ["repair", *map(str, arguments), "--upstream", openai_server, "--model", model]
        )
        return code, *capsys.readouterr()

    return run


def test_a_text(run):
    assert run("owe the bank pound") == (0, "OWE THE BANK POUND\n", "")
    assert run("two\nlines") == (0, "TWO\nLINES\n", "")


def test_lines_of_a_file(run, tmp_path):
    path = tmp_path / "released.txt"
    path.write_text("one <WORD>\n\ntwo\n", encoding="utf-8")
    code, out, err = run(path)
    assert (code, out, err) == (0, "ONE <WORD>\n\nTWO\n", "")
    code, out, err = run(path, "--output", tmp_path / "repaired.txt", "--whole")
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "repaired.txt").read_text(encoding="utf-8") == "ONE <WORD>\n\nTWO\n"


def test_a_warning_counts_what_stays(run):
    code, out, err = run("ask <WORD_1>", "--attempts", 1, model="drops")
    assert (code, out) == (0, "ask <WORD_1>\n")
    assert (
        err
        == "textveil: warning: 1 of 1 texts stay unchanged: the model changed their placeholders at every attempt\n"
    )


def test_a_failure_is_one_line_and_writes_nothing(run, tmp_path):
    code, out, err = run(f"{CANARY} text", "--output", tmp_path / "out", model="bad-request")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert CANARY not in err
    assert not (tmp_path / "out").exists()


# ---- other wordings --------------------------------------------------------------------------------------------------


def test_another_wording_is_sent_as_it_is_and_placeholders_are_asked_for(endpoint, journal):
    prompt = Prompt(system="Mend.", user="Here: {text}", temperature=0.9, max_tokens=7)
    before = len(journal())
    repair(["plain words", "with <CARD_7>"], endpoint("upper"), prompt=prompt, attempts=1)
    sent = {body["messages"][1]["content"]: body for body in journal()[before:]}
    plain, marked = sent["Here: plain words"], sent["Here: with <CARD_7>"]
    assert plain["messages"][0]["content"] == "Mend."
    assert (plain["temperature"], plain["max_tokens"]) == (0.9, 7)
    assert "<CARD_7> 1x" in marked["messages"][0]["content"]
    assert "privacy program" not in str(sent)


def test_the_verb_takes_a_file_of_prompts(capsys, openai_server, tmp_path):
    path = tmp_path / "prompts.yaml"
    given = ("repair", "a b", "--upstream", openai_server, "--model", "upper", "--prompts")
    path.write_text("repair: {user: 'so: {text}'}", encoding="utf-8")
    assert cli.main([*given, str(path)]) == 0
    assert capsys.readouterr().out == "SO: A B\n"
    path.write_text("evaluator: {}", encoding="utf-8")
    assert cli.main([*given, str(path)]) == 2
    assert "must have an entry repair" in capsys.readouterr().err


def test_an_attempt_that_failed_is_not_taken_from_what_is_kept(endpoint, tmp_path):
    store = AnswerStore.open(tmp_path / "answers")
    asked = replace(endpoint("drops-once"), answers=store)
    assert repair(["kept <IBAN_9> here"], asked) == ["kept <IBAN_9> here"]
    assert store.read_counts().sent == 2
    assert repair(["kept <IBAN_9> here"], asked) == ["kept <IBAN_9> here"]
    assert (store.read_counts().sent, store.read_counts().kept) == (2, 2)
