"""Reconstruction by a language model: what is sent to a real server, how answers are judged, and what must not leak."""

import json
import traceback
import urllib.request

import numpy as np
import pytest
from tests.fixtures import NOUNS, Stub

from textveil.errors import ConfigError, EndpointError
from textveil.evaluate.attack import Attack, Case
from textveil.mechanism import PLACEHOLDER
from textveil.models.endpoint import Endpoint
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.text.released import Item, Kind
from textveil_bench.attack import attack
from textveil_bench.attack.llm import Reconstruction, align
from textveil_bench.attack.report import load

CANARY = "zyxqorvian"
KEY = "sk-hidden-key"
RNG = SeededRandomness(1)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.delenv("TEXTVEIL_LLM_KEY", raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def every_other(table, block):
    """Releases every second word as it was, and the row 7 further on for the others."""
    return (block.secret + 7 * (np.arange(len(block.secret)) % 2)) % len(table)


def case_of(table, texts, release=every_other, **words) -> Case:
    return Case.create(
        Privatizer(Stub(release=release), epsilon=1.0, table=table, words=words), texts
    )


def outcomes(attacker, case):
    return {outcome.metric: outcome for outcome in attacker.run(case, rng=RNG)}


def journal(url):
    with urllib.request.urlopen(url.removesuffix("/v1") + "/journal") as answer:
        return answer.read().decode()


def test_answers_are_judged_at_their_positions(openai_server, small_table):
    # released: "the anchor and <river + 7>", "lemon"; the server echoes
    case = case_of(small_table, ["The anchor and River", "lemon", "and so on"])
    found = outcomes(Reconstruction(url=openai_server, model="echo"), case)
    assert found["top-1"].values.tolist() == [1, 0, 1]
    assert found["top-1"].headline
    private, released = (
        small_table.take(slice(None))[rows] for rows in (case.truth.rows, case.view.output_rows)
    )
    near = (private * released).sum(axis=1) >= 0.6
    assert found["cosine >= 0.6"].values.tolist() == near.tolist()
    assert found["Rouge-L"].where.tolist() == [0, 1]
    assert found["Rouge-L"].values.tolist() == [0.75, 1.0]


def test_casing_does_not_matter(openai_server, small_table):
    case = case_of(small_table, ["The anchor and River", "lemon"])
    one, other = (
        outcomes(Reconstruction(url=openai_server, model=model), case)
        for model in ("echo", "upper")
    )
    for metric, outcome in one.items():
        assert np.array_equal(outcome.values, other[metric].values)


def test_nothing_of_the_originals_is_sent_or_shown(openai_server, small_table):
    texts = [f"The {CANARY} near anchor of {CANARY}", f"{CANARY.upper()} and river"]
    case = case_of(small_table, texts, lambda table, block: (block.secret + 7) % len(table))
    attacker = Reconstruction(url=openai_server, model="echo", key=KEY)
    before = len(json.loads(journal(openai_server)))  # of other tests
    findings = attack(case, [attacker], rng=RNG)
    assert findings.rows
    sent = json.loads(journal(openai_server))[before:]
    assert CANARY not in json.dumps(sent).lower()
    bodies = [entry["body"] for entry in sent]
    assert {released.text for released in case.view.released} <= {
        body["messages"][1]["content"]
        for body in bodies
        if len(body["messages"]) > 1  # others may ask the server too
    }
    said = repr(attacker) + json.dumps(findings.to_json()) + repr(findings) + repr(case)
    assert CANARY not in said.lower()
    assert KEY not in said
    assert findings.to_json()["attacks"]["llm"] == {
        "url": openai_server,
        "model": "echo",
        "temperature": 0.0,
        "timeout": 60.0,
        "limit": 100,
    }

    for model in ("bad-request", "null", "garbage"):  # the server's errors repeat prompt and key
        with pytest.raises(EndpointError) as caught:
            outcomes(Reconstruction(url=openai_server, model=model, key=KEY), case)
        shown = "".join(traceback.format_exception(caught.value, chain=True))
        assert CANARY not in shown.lower()
        assert KEY not in shown
        assert not [released.text for released in case.view.released if released.text in shown]


@pytest.mark.parametrize("key", ["has space " + KEY, 12345678901, ["sk", KEY]])
def test_a_key_that_is_none_is_not_repeated(key):
    with pytest.raises(ConfigError) as caught:
        Reconstruction(url="http://127.0.0.1:1/v1", model="echo", key=key)
    assert KEY not in str(caught.value)
    assert "1234" not in str(caught.value)


def test_the_instructions_say_what_is_public(openai_server, small_table):
    def release(table, block):
        return np.where(np.arange(len(block.secret)) == 2, PLACEHOLDER, block.secret)

    case = case_of(small_table, ["ladder and palace", "needle is orange, stone"], release)
    outcomes(Reconstruction(url=openai_server, model="echo", temperature=0.5), case)
    asked = [each["body"] for each in json.loads(journal(openai_server))]
    by_text = {body["messages"][1]["content"]: body for body in asked if len(body["messages"]) > 1}
    one, other = by_text["ladder and palace"], by_text["<WORD> is orange, stone"]
    system = one["messages"][0]["content"]
    assert '"stub"' in system
    assert "It has 3 words" in system
    assert "punctuation marks were left" in system
    assert "<WORD>" not in system
    assert '"<WORD>"' in other["messages"][0]["content"]
    assert one["temperature"] == 0.5

    protected = case_of(small_table, ["ladder and engine"], stopwords="protect")
    outcomes(Reconstruction(url=openai_server, model="echo"), protected)
    last = json.loads(journal(openai_server))[-1]["body"]["messages"]
    assert "were left" not in last[0]["content"]


def test_only_so_many_texts_are_sent_and_judged(openai_server, small_table):
    case = case_of(small_table, ["the", "harbor", "hammer", "island"])
    before = len(json.loads(journal(openai_server)))
    found = outcomes(Reconstruction(url=openai_server, model="echo", limit=2), case)
    assert len(json.loads(journal(openai_server))) == before + 2
    assert found["top-1"].where.tolist() == [0, 1]
    assert found["Rouge-L"].where.tolist() == [1, 2]
    assert "2 of 3 texts" in found["top-1"].note


def test_words_without_a_partner_are_not_found_and_half_characters_do_no_harm(
    small_table, monkeypatch
):
    monkeypatch.setattr(Endpoint, "ask", lambda self, prompts, report: ["the \ud800 and", "anchor"])
    case = case_of(
        small_table, ["the anchor and river", "anchor"], lambda table, block: block.secret
    )
    found = outcomes(Reconstruction(url="http://127.0.0.1:1/v1", model="x"), case)
    assert found["top-1"].values.tolist() == [0, 0, 1]
    assert found["cosine >= 0.6"].values[1:].tolist() == [0, 1]
    assert found["Rouge-L"].values == pytest.approx([2 * 2 / 7, 1])


def test_in_the_unit_wordpiece_words_are_judged_whole(openai_server, wordpiece_table):
    case = case_of(
        wordpiece_table, ["the anchoring river"], lambda t, block: block.secret, unit="wordpiece"
    )
    found = outcomes(Reconstruction(url=openai_server, model="echo"), case)
    assert found["top-1"].where.tolist() == [0, 2]
    assert found["top-1"].values.tolist() == [1, 1]
    assert found.keys() == {"top-1", "Rouge-L"}


# ---- alignment -----------------------------------------------------------------------------------------------------


def items(text: str) -> list[Item]:
    """Nouns are released words, <WORD> is a placeholder, all else passed."""
    kinds = [
        Kind.WORD if w in NOUNS else Kind.PLACEHOLDER if w == "<WORD>" else Kind.VERBATIM
        for w in text.split()
    ]
    return [
        Item(word, kind, "", i, i + 1)
        for i, (word, kind) in enumerate(zip(text.split(), kinds, strict=True))
    ]


@pytest.mark.parametrize(
    ("released", "answer", "partners"),
    [
        # as many words: by position, whatever they are
        ("the anchor of river", "a boat of wood", "a boat of wood"),
        # one word more after "of": everything up to it, and from "and" on, keeps its place
        (
            "the anchor of river and stone .",
            "The boat of old wood and gold .",
            "The boat of old and gold .",
        ),
        # one word less: the last of its gap has no partner
        ("the anchor river of stone", "the boat of gold", "the boat - of gold"),
        # a word that passed is left out: the protected words around it are paired from the left
        ("the anchor of river and stone", "the boat wood and gold", "the boat - wood and gold"),
        # a word that passed was changed: its gap has as many words
        (
            "the anchor of river and stone",
            "the boat in wood and some gold",
            "the boat in wood and some",
        ),
        ("<WORD> of <WORD>", "ships of", "ships of -"),
        ("anchor river", "boat", "boat -"),
        ("anchor river", "", "- -"),
        # a released word is no anchor, even where the answer has it
        ("anchor river stone the", "river the", "river - - the"),
    ],
)
def test_alignment_by_hand(released, answer, partners):
    expected = [None if word == "-" else word for word in partners.split()]
    assert align(items(released), answer.split()) == expected


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_without_an_endpoint_it_is_not_run(small_table):
    case = case_of(small_table, ["anchor"])
    says = "it needs an endpoint: set attack.llm.url and attack.llm.model"
    assert attack(case, [Reconstruction()]).refused == {"llm": says}
    assert Reconstruction(url="http://127.0.0.1:1/v1").refusal(case.view) == says
    assert Reconstruction(model="x").refusal(case.view) == says
    ready = Reconstruction(url="http://127.0.0.1:1/v1", model="x")
    assert ready.refusal(case.view) == ""
    assert "no word is protected" in ready.refusal(case_of(small_table, ["and"]).view)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "not a url"},
        {"url": "http://u:p@host/v1"},
        {"model": ""},
        {"limit": 0},
        {"temperature": 3},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ConfigError):
        Reconstruction(**options)


def test_it_is_registered():
    assert isinstance(load("llm", {}), Attack)
