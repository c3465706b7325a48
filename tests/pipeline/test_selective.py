"""Selective protection from text to statement: groups, typed placeholders, names, equal words, drawn labels."""

import itertools
import json
import math
import pickle
import re
from importlib.resources import files

import jsonschema
import numpy as np
import pytest
from scipy.stats import chisquare
from tests.detectors import Finds

from textveil.config.layers import resolve
from textveil.errors import (
    BudgetError,
    ConfigError,
    DetectorError,
    GuaranteeError,
    InputError,
    TextveilWarning,
)
from textveil.guarantee import compose, condense, summarize
from textveil.guarantee.guarantee import Guarantee
from textveil.mechanism import Block, Layout
from textveil.pipeline.privatizer import Privatizer
from textveil.protect.protection import GROUPS, Protection
from textveil.protect.randomized_response import draw_groups
from textveil.randomness.streams import SeededRandomness, SystemRandomness
from textveil.session.state import Session
from textveil.table.embedding import EmbeddingTable
from textveil.text.name_lists import load_names
from textveil.text.released import Kind

INF = math.inf
CANARY = "Zyxqorvian"
FALSE_ALARM = 1e-6
SCHEMA = json.loads(
    (files("textveil") / "data" / "guarantee.schema.json").read_text(encoding="utf-8")
)


def privatizer(table, *detectors, mechanism="rankcape", words=None, protect=None, **options):
    return Privatizer(
        mechanism,
        table=table,
        words={"casing": "copy", **(words or {})},
        protect={"detectors": detectors, **(protect or {})},
        **{"epsilon": 4.0, "k": 5, **options} if mechanism == "rankcape" else options,
    )


# ---- placeholders -----------------------------------------------------------------------------------------


def test_a_part_is_one_typed_placeholder_whatever_its_length(small_table):
    made = privatizer(small_table, Finds(PHONE=r"\+\d(?:[\d -]*\d)?", EMAIL=r"\S+@\S+\w"))
    texts = ["apple +351 21-123 4567 river", "apple +1 river"]
    first, second = (made.privatize(text) for text in texts)
    for result in (first, second):
        assert result.released.items[1].text == "<PHONE>"
        assert result.released.mask.placeholders == ((1, "PHONE"),)
        assert result.released.mask.words == 3
        assert result.guarantee.epsilon_per_word[1] == 0
    assert re.fullmatch(r"\w+ <PHONE> \w+", second.text)


def test_numbers_within_a_session_show_equality_and_the_way_back(small_table):
    made = privatizer(small_table, Finds(EMAIL=r"\S+@\S+\w"), mechanism="placeholder")
    session = Session()
    one = made.privatize("a@b.org and c@d.org, a@b.org, A@b.org!", session)
    two = made.privatize("c@d.org", session)
    assert one.text == "<EMAIL_1> and <EMAIL_2>, <EMAIL_1>, <EMAIL_1_B>!"
    assert two.text == "<EMAIL_2>"
    assert one.released.mask.equal == ((0, 4),)
    assert "equal placeholders" in one.guarantee.mask
    assert session.restore("mail <EMAIL_2>") == "mail c@d.org"


def test_a_budget_of_zero_is_a_placeholder_of_its_type(small_table):
    made = privatizer(
        small_table, Finds(ILLNESS="hay fever"), epsilon=None, groups={"budgets": (0, 0, 3, 3)}
    )
    result = made.privatize("apple hay fever river")
    assert result.released.mask.placeholders == ((1, "ILLNESS"),)
    assert np.allclose(result.guarantee.epsilon_per_word, [3, 0, 3], atol=1e-9)


# ---- budgets and statements -------------------------------------------------------------------------------


def test_every_group_spends_its_own(small_table):
    made = privatizer(
        small_table, Finds(ILLNESS="apple"), epsilon=8.0, groups={"budgets": "heuristic"}
    )
    result = made.privatize("apple and river")
    spent = result.guarantee.epsilon_per_word
    assert np.allclose(spent, [2, 6], atol=1e-6)
    assert result.released.mask.groups == ("sensitive", "public", "other")
    assert "groups" in result.guarantee.mask
    groups = {group.label: group for group in result.guarantee.groups}
    assert groups["sensitive"].words == groups["other"].words == 1
    assert result.guarantee.mean_ldp == pytest.approx(4, abs=1e-6)
    assert (
        "By group, for any two words: sensitive at most 2 (1 word), other at most 6 (1 word)."
        in result.guarantee.headline()
    )


def test_unequal_budgets_under_a_window_are_never_exceeded(small_table):
    made = privatizer(
        small_table,
        Finds(ILLNESS="apple|river"),
        mechanism="d-chi-stencil",
        epsilon=40.0,
        groups={"budgets": "heuristic"},
    )
    guarantee = made.privatize("apple onion river ocean castle river").guarantee
    assert (guarantee.epsilon_per_word <= np.array([10, 30, 10, 30, 30, 10]) * (1 + 1e-12)).all()


def test_a_group_that_passes_leaves_no_finite_bound(small_table):
    made = privatizer(
        small_table, Finds(ILLNESS="apple"), epsilon=3.0, groups={"budgets": "private-only"}
    )
    guarantee = made.privatize("apple river").guarantee
    assert guarantee.kind == "none"
    assert guarantee.epsilon == guarantee.mean_ldp == INF
    said = guarantee.headline()
    assert "no finite bound holds: words of the group other pass unprotected." in said
    by_group = "sensitive at most 3 (1 word), other passes (1 word)."
    assert f"Between texts with the same mask, by group and for any two words: {by_group}" in said
    document = json.loads(json.dumps(guarantee.to_json(), allow_nan=False))
    jsonschema.validate(document, SCHEMA)
    assert document["mean_epsilon_ldp"] == "infinite"
    assert [group["epsilon_ldp"] for group in document["groups"]][1] == "infinite"
    made = privatizer(
        small_table, Finds(ILLNESS="apple"), epsilon=3.0, groups={"budgets": "private-only"}
    )
    assert made.privatize("apple").guarantee.epsilon == pytest.approx(3), (
        "where no word passes, the bound is finite"
    )


@pytest.mark.parametrize(
    "mechanism",
    ["polar", "laplace", "noise", "d-chi-stencil", "santext", "exponential", "rankcape"],
)
def test_any_mechanism(small_table, mechanism):
    made = privatizer(
        small_table, Finds(ILLNESS="apple", EMAIL="a@b.org"), mechanism=mechanism, epsilon=12.0,
        groups={"budgets": "heuristic"}, **({"k": 5} if mechanism == "rankcape" else {}),
    )  # fmt: skip
    result = made.privatize("apple and river, a@b.org")
    spent = result.guarantee.epsilon_per_word
    assert (spent > 0).tolist() == [True, True, False]
    assert (spent <= np.array([3, 9, 0]) * (1 + 1e-9)).all()
    jsonschema.validate(result.guarantee.to_json(), SCHEMA)
    assert json.dumps(result.to_json())


def test_statements_add_up_and_survive(small_table):
    made = privatizer(
        small_table, Finds(ILLNESS="apple"), epsilon=8.0, groups={"budgets": "heuristic"}
    )
    one, two = (made.privatize(text).guarantee for text in ("apple river", "river onion"))
    together = summarize([one, two])
    assert {group.label: group.words for group in together.groups} == {"sensitive": 1, "other": 3}
    assert together.mean_ldp == pytest.approx(5, abs=1e-6)
    twice = compose([one, one])
    assert [group.epsilon for group in twice.groups] == pytest.approx([4, 12], abs=1e-6)
    assert compose([two, one]).groups == ()
    assert condense(one).groups == one.groups
    assert Guarantee.unpack(json.loads(json.dumps(one.pack()))).groups == one.groups


def test_a_bound_is_reached_from_the_base_or_from_epsilon(small_table):
    by_base = privatizer(
        small_table, Finds(A="apple"), epsilon=None, groups={"budgets": "heuristic", "base": 2.0}
    )
    by_bound = privatizer(
        small_table, Finds(A="apple"), epsilon=8.0, groups={"budgets": "heuristic"}
    )
    assert by_base.budget == by_bound.budget


# ---- names ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named():
    return Privatizer(
        "placeholder",
        words={"casing": "copy", "consistent": True},
        protect={
            "detectors": [Finds(PERSON="Maria Silva|Maria|Silva", LOCATION="New York City|Lisbon")]
        },
        groups={"budgets": (0, 0, INF, INF)},
        names={"types": "all"},
    )


TEXT = "Maria Silva of Lisbon met SILVA and Maria in New York City."


def test_names_are_alike_where_they_are_equal(named):
    session = Session()
    result = named.privatize(TEXT, session)
    words = [item.text for item in result.released.items]
    assert words[0] == words[7]
    assert words[:1] + words[2:3] == [words[0], "of"]
    assert words[9].lower() in {word.lower() for word in load_names("LOCATION").words}, (
        "one name for three words"
    )
    assert result.released.mask.words == 11
    assert (0, 7) in result.released.mask.equal
    assert "equal words" in result.guarantee.mask
    again = named.privatize("Ask Maria about Lisbon", session)
    assert [item.text for item in again.released.items][1] == words[0]
    assert [item.text for item in again.released.items][3] == words[3]


def test_names_have_local_dp_and_count_once(named):
    guarantee = named.privatize("Maria met Maria").guarantee
    assert json.dumps(guarantee.to_json(), allow_nan=False)
    finite = guarantee.epsilon_per_word[np.isfinite(guarantee.epsilon_per_word)]
    assert len(finite) == 1
    assert 5.99 < finite[0] <= 6
    assert {group.label: group.words for group in guarantee.groups} == {"PERSON": 2, "other": 1}
    assert "at all places that the mask calls equal" in guarantee.to_json()["adjacency"]


def test_names_beside_a_metric_mechanism_are_stated_as_local_dp():
    made = Privatizer(
        "noise",
        epsilon=20.0,
        protect={"detectors": [Finds(PERSON="Maria")]},
        names={"types": "PERSON", "epsilon": 2.0},
    )
    guarantee = made.privatize("Maria sings loudly").guarantee
    diameter = made.claim.diameter
    assert guarantee.kind == "ldp"
    assert np.allclose(guarantee.epsilon_per_word, [2.0, 20 * diameter, 20 * diameter], atol=1e-6)
    assert any("per unit of chord distance" in note for note in guarantee.claim.caveats)


def test_the_way_back(named):
    session = Session()
    result = named.privatize(TEXT, session)
    restored = session.restore(result.text)
    shown = {
        item.text
        for item in result.released.items
        if item.group != "public" and item.kind is Kind.WORD
    }
    if len({word.lower() for word in shown}) == len(
        shown
    ):  # else two names drew the same, and stay
        assert restored.lower() == TEXT.lower()


def test_every_name_leads_back():
    """Ten names of one type among few likely ones: some are drawn twice, or as words of the text, in most texts."""
    people = ["Maria", "Lucia", "Anna", "Clara", "Rosa", "Elena", "Nina", "Laura", "Sara", "Eva"]
    made = Privatizer(
        "placeholder",
        words={"casing": "copy", "consistent": True},
        protect={"detectors": [Finds(PERSON="|".join(people))]},
        groups={"budgets": (0, 0, INF, INF)},
        names={"types": ["PERSON"], "k": 5},
    )
    text = " met ".join(people) + " and Juan and Marta"
    collided = 0
    for _ in range(20):
        session = Session()
        result = made.privatize(text, session)
        collided += len(result.released.mask.placeholders)
        assert session.restore(result.text) == text
        assert result.guarantee.placeholders == 0, "a name that was drawn spent its epsilon"
    assert collided > 0


@pytest.mark.slow
def test_names_tell_of_equal_originals_only_where_the_mask_does():
    """Without equal words released alike, no output may rule out that two originals differ, or that they are equal."""
    made = Privatizer(
        "placeholder",
        words={"casing": "copy"},
        protect={"detectors": [Finds(PERSON="Maria|Anna")]},
        groups={"budgets": (0, 0, INF, INF)},
        names={"types": ["PERSON"], "k": 2, "epsilon": 12.0},
    )
    for text in ("Maria met Maria", "Maria met Anna"):
        releases = [made.privatize(text, Session()).released for _ in range(200)]
        assert any(released.items[0].text == released.items[2].text for released in releases), text
        assert not any(released.mask.placeholders for released in releases), text


def test_numbers_of_placeholders_tell_nothing_of_protected_words(small_table):
    made = privatizer(small_table, Finds(EMAIL=r"\w+@\S+\w"), words={"stopwords": "protect"})
    for text in ("<EMAIL_1> a@b.org", "<EMAIL_7> a@b.org"):
        assert made.privatize(text, Session()).released.items[-1].text == "<EMAIL_1>"


def test_spellings_of_one_name_are_one_word():
    made = Privatizer(
        "placeholder",
        words={"casing": "copy", "consistent": True},
        protect={"detectors": [Finds(PERSON="Jos\u00e9|Jose\u0301|JOS\u00c9")]},
        groups={"budgets": (0, 0, INF, INF)},
        names={"types": ["PERSON"]},
    )
    session = Session()
    result = made.privatize("Jos\u00e9, Jose\u0301, JOS\u00c9", session)
    assert result.released.mask.equal == ((0, 2, 4),)
    assert len({item.text.lower() for item in result.released.items} - {","}) == 1
    assert Session.from_json(session.to_json()).to_json() == session.to_json()


def test_placeholders_of_the_mechanism_are_counted(small_table):
    guarantee = Privatizer("placeholder", table=small_table).privatize("apple and river").guarantee
    assert guarantee.placeholders == guarantee.to_json()["placeholders"] == 2
    assert "2 words became placeholders" in guarantee.explain()


def test_numbers_that_a_text_spells_are_left_to_it(small_table):
    groups = {"budgets": (0, 0, INF, INF)}
    made = privatizer(
        small_table, Finds(EMAIL=r"\w+@\S+\w"), mechanism="placeholder", groups=groups
    )
    session = Session()
    assert made.privatize("<EMAIL_1> is a@b.org", session).text == "<EMAIL_1> is <EMAIL_2>"
    assert session.restore("<EMAIL_1> <EMAIL_2>") == "<EMAIL_1> a@b.org"


def test_equal_words_need_a_mechanism_that_sees_each_word_alone(small_table):
    with pytest.raises(ConfigError, match=r"words\.consistent"):
        Privatizer("d-chi-stencil", eta=4.0, table=small_table, words={"consistent": True})
    with pytest.raises(ConfigError, match=r"words\.consistent"):
        Privatizer("stencil", table=small_table, words={"consistent": True})
    made = Privatizer("noise", table=small_table, eta=2.0, words={"consistent": True})
    result = made.privatize("river apple River river")
    texts = [item.text for item in result.released.items]
    assert texts[0] == texts[2] == texts[3]
    assert result.released.mask.equal == ((0, 2, 3),)
    assert len(result.guarantee.epsilon_per_word) == 2


def test_equal_words_are_one_draw_and_others_are_not(small_table):
    """Of 400 texts under a weak mechanism no two equal words differ; without the option some do in every run."""
    texts = ["river apple river"] * 400
    alike = Privatizer("noise", table=small_table, eta=0.5, words={"consistent": True})
    apart = Privatizer("noise", table=small_table, eta=0.5)
    same, free = (
        [result.released.items for result in made.privatize_many(texts)] for made in (alike, apart)
    )
    assert all(items[0].text == items[2].text for items in same)
    assert sum(items[0].text == items[2].text for items in free) < 200
    assert len({items[0].text for items in same}) > 5, "texts draw apart"


def test_a_session_does_not_reuse_rows_of_another_law(small_table):
    session = Session()
    first = Privatizer("noise", table=small_table, eta=500.0, words={"consistent": True})
    second = Privatizer("noise", table=small_table, eta=1e-6, words={"consistent": True})
    assert first.privatize("river", session).text == "river"
    drawn = {second.privatize("river", Session()).text for _ in range(50)}
    assert len(drawn) > 5
    assert second.privatize("river", session).text == second.privatize("river", session).text


# ---- labels drawn at random -------------------------------------------------------------------------------

LABEL = 0.8
BUDGETS = (2.0, 1.0, 3.0, 4.0)


def drawn_labels(table, **protect):
    return Privatizer(
        "rankcape",
        k=5,
        table=table,
        protect={"labels": "randomised", "label_epsilon": LABEL, **protect},
        groups={"budgets": BUDGETS},
    )


def joint(table, made, words, group):
    """ln P(labels, outputs) of every word, float64 [n, 4, V]: the response times the mechanism under that label."""
    label = np.full((len(words), 4), -np.log(np.exp(LABEL) + 3))
    label[np.arange(len(words)), group] += LABEL
    rows, _ = table.lookup(words)
    layout = Layout.build(len(words))
    law = [
        made.mechanism.log_probs(
            table, Block(layout=layout, rows=rows), np.full(len(words), budget)
        )
        for budget in BUDGETS
    ]
    return label[:, :, None] + np.stack(law, axis=1)


def loss(table, made, one, two, grouped):
    """The largest log-ratio over all labels and outputs: positions are independent given the words, so it adds up."""
    laws = [
        joint(table, made, words, [grouped(words, i) for i in range(len(words))])
        for words in (one, two)
    ]
    return sum(np.abs(laws[0][i] - laws[1][i]).max() for i in range(len(one)))


def test_drawn_labels_of_a_public_list_cost_their_own_position(small_table):
    made = drawn_labels(small_table, always=("apple", "river"))
    sensitive = {"apple", "river"}
    claimed = made.privatize("apple onion castle").guarantee.epsilon
    assert claimed == pytest.approx(4.0 + LABEL, abs=1e-6)
    worst = max(
        loss(
            small_table,
            made,
            [a, "onion"],
            [b, "onion"],
            lambda words, i: 1 if words[i] in sensitive else 3,
        )
        for a, b in itertools.permutations(["apple", "river", "onion", "castle", "ocean"], 2)
    )
    assert worst <= claimed + 1e-9
    assert worst > claimed - 1e-6 > 4.0, (
        "without the label's own budget the statement would be untrue"
    )


def test_drawn_labels_of_a_detector_cost_every_position(small_table):
    made = drawn_labels(
        small_table, detectors=[Finds(A=r"(?s)\A.*anchor.*\Z")]
    )  # one word makes all words sensitive
    text = ["anchor", "onion", "castle", "ocean"]
    claimed = made.privatize(" ".join(text)).guarantee.epsilon
    assert claimed == pytest.approx(4.0 + 4 * LABEL, abs=1e-6)
    worst = max(
        loss(
            small_table,
            made,
            text,
            [other, *text[1:]],
            lambda words, i: 1 if "anchor" in words else 3,
        )
        for other in small_table.words
    )
    assert worst <= claimed + 1e-9
    assert worst > claimed - 1e-6 > 4.0 + LABEL, "counting the own position only would be untrue"


def test_drawn_labels_say_so(small_table):
    made = drawn_labels(small_table, always=("apple",))
    result = made.privatize("apple and onion castle")
    assert result.released.mask.drawn_groups
    assert "groups" not in result.guarantee.mask
    assert result.guarantee.kind == "ldp"
    assert any("drawn at random" in note for note in result.guarantee.claim.caveats)
    assert len(result.guarantee.epsilon_per_word) == 3


def test_labels_are_drawn_by_their_law():
    """Chi-square of 40,000 labels, at a false alarm rate of 1e-6; a response that always tells the truth fails."""
    count = 40_000
    protection = Protection(
        public=np.zeros(count, bool), group=np.full(count, 2, np.int16), labels=("public", *GROUPS)
    )
    found = draw_groups(protection, LABEL, np.array([0, count]), rng=SystemRandomness()).group
    expected = np.array([1, math.exp(LABEL), 1, 1]) / (math.exp(LABEL) + 3) * count
    observed = np.bincount(found, minlength=5)[1:]
    assert chisquare(observed, expected).pvalue > FALSE_ALARM
    assert chisquare(np.bincount(protection.group, minlength=5)[1:], expected).pvalue < FALSE_ALARM


def test_labels_of_a_text_do_not_depend_on_its_neighbours():
    def drawn(sizes):
        count = sum(sizes)
        protection = Protection(
            public=np.zeros(count, bool), group=np.ones(count, np.int16), labels=("public", *GROUPS)
        )
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        return draw_groups(protection, LABEL, bounds, rng=SeededRandomness(5)).group

    assert drawn([30, 40])[:30].tolist() == drawn([30, 7])[:30].tolist()


def test_nothing_of_the_mask_may_follow_from_a_drawn_label(small_table):
    found = Finds(PERSON="apple river", EMAIL="onion")
    made = drawn_labels(small_table, detectors=[found])
    result = made.privatize("apple river, the onion ocean")
    assert [item.kind for item in result.released.items].count(Kind.PLACEHOLDER) == 0
    assert result.released.mask.words == 6
    with pytest.raises(ConfigError, match="randomised"):
        Privatizer(
            "rankcape",
            k=5,
            table=small_table,
            protect={"labels": "randomised", "label_epsilon": 1.0, "detectors": [found]},
            groups={"budgets": BUDGETS},
            names={"types": "PERSON"},
        )
    for groups in (None, {"budgets": (1, 1, INF, 1)}):
        with pytest.raises(BudgetError, match="finite"):
            Privatizer(
                "rankcape",
                k=5,
                epsilon=None if groups else 3.0,
                table=small_table,
                protect={"labels": "randomised", "label_epsilon": 1.0, "detectors": [found]},
                groups=groups,
            )


# ---- what must not happen ---------------------------------------------------------------------------------


def test_between_groups_nothing_is_claimed(small_table):
    """The same output is far likelier from one group than from another: hence the condition on the mask."""
    made = privatizer(small_table, Finds(A="apple"), epsilon=40.0, groups={"budgets": "heuristic"})
    rows = small_table.lookup(["apple", "river"])[0]
    law = made.mechanism.log_probs(
        small_table, Block(layout=Layout.build(2), rows=rows), np.array([10.0, 30.0])
    )
    within = made.privatize("apple").guarantee.epsilon
    assert np.abs(law[0] - law[1]).max() > within
    assert "with the same mask" in made.privatize("apple").guarantee.headline()


def test_a_failing_detector_releases_nothing_and_tells_nothing(small_table):
    class Fails:
        name = "fails"

        def find(self, texts):
            raise RuntimeError(texts[0])

    with pytest.raises(DetectorError) as caught:
        privatizer(small_table, Fails()).privatize(f"{CANARY} apple")
    seen = "".join(
        map(
            str,
            [caught.value, caught.value.__cause__, caught.value.__context__, repr(caught.value)],
        )
    )
    assert CANARY not in seen


def test_no_repr_shows_a_word(small_table):
    made = privatizer(small_table, Finds(A=CANARY), protect={"always": [CANARY]})
    session = Session()
    result = made.privatize(f"{CANARY} apple", session)
    rehearsal = made.rehearse([f"{CANARY} apple"])
    for each in (
        made,
        result,
        rehearsal,
        session,
        result.guarantee,
        made.grouping,
        result.guarantee.to_json(),
    ):
        assert CANARY not in repr(each)


def test_it_pickles_and_does_the_same(small_table):
    made = Privatizer(
        "rankcape",
        k=5,
        epsilon=8.0,
        seed=3,
        table=small_table,
        protect={"always": ["apple", "hay fever"]},
        groups={"budgets": "heuristic"},
    )
    again = pickle.loads(pickle.dumps(made))
    assert (
        again.privatize("apple river").released.mask.groups
        == made.privatize("apple river").released.mask.groups
    )


def test_queries_come_with_texts(small_table):
    made = Privatizer(
        "rankcape",
        k=5,
        epsilon=8.0,
        table=small_table,
        protect={"importance": "cosine", "tau": 0.9},
        groups={"budgets": "heuristic"},
    )
    results = list(
        made.privatize_many(["river and apple", "river and apple"], queries=["river", "apple"])
    )
    assert [result.released.mask.groups for result in results] == [
        ("important", "public", "other"),
        ("other", "public", "important"),
    ]
    assert made.privatize("river", query="river").released.mask.groups == ("important",)
    with pytest.raises(InputError, match="query"):
        made.privatize("river")


def test_groups_need_something_that_makes_them(small_table):
    with pytest.raises(ConfigError, match="groups"):
        Privatizer("rankcape", k=5, epsilon=3.0, table=small_table, groups={"budgets": "heuristic"})


def test_the_mask_fields_of_a_grouped_release_do_not_tell_more_than_they_say(small_table):
    made = privatizer(
        small_table, Finds(ILLNESS="apple"), epsilon=8.0, groups={"budgets": "heuristic"}
    )
    mask = made.privatize("apple and river").released.mask
    assert mask.fields == ("length", "verbatim words", "groups", "casing", "spacing")


# ---- statements that were once untrue ---------------------------------------------------------------------


def test_equal_words_do_not_count_as_public(small_table):
    made = Privatizer("noise", table=small_table, eta=2.0, words={"consistent": True})
    one = made.privatize("river apple River river and").guarantee
    assert (one.protected, one.repeated) == (2, 2)
    for guarantee in (
        one,
        compose([one, one]),
        condense(one),
        Guarantee.unpack(json.loads(json.dumps(one.pack()))),
    ):
        assert "1 of 5 words, passed because they are public" in guarantee.headline()
    assert "2 of 10 words, passed because they are public" in summarize([one, one]).headline()


def test_what_one_text_draws_is_said_of_all(named):
    first, second = (
        result.guarantee for result in named.privatize_many(["Hello river", "Maria river"])
    )
    assert "Nothing is drawn" in first.headline()
    assert "Draws come from AES" in summarize([first, second]).headline()


def test_drawn_labels_are_drawn_under_a_mechanism_that_draws_nothing(small_table):
    protect = {"labels": "randomised", "label_epsilon": 1.0, "always": ["apple"]}
    made = Privatizer(
        "placeholder", table=small_table, protect=protect, groups={"budgets": BUDGETS}, seed=1
    )
    assert (
        "No protection against anyone who knows the seed"
        in made.privatize("apple river").guarantee.headline()
    )


def test_a_composed_statement_counts_placeholders_only():
    guarantee = Privatizer("mask-and-fill").privatize("apple river").guarantee
    assert compose([guarantee, guarantee]).placeholders == 0


def test_a_statement_is_strict_json(small_table):
    made = privatizer(
        small_table, Finds(A="apple"), epsilon=None, groups={"budgets": (0, 1, INF, 2)}
    )
    document = json.loads(json.dumps(made.privatize("apple").guarantee.to_json(), allow_nan=False))
    assert document["options"]["groups"]["budgets"] == [0, 1, "infinite", 2]


def test_a_listed_phrase_without_spaces_is_no_word(small_table):
    """Two Han characters are two words, so whether the first is sensitive depends on the second."""
    one, phrase = (
        drawn_labels(small_table, always=(listed,)) for listed in ("apple", "\u5317\u4eac")
    )
    assert one.grouping.is_context_free
    assert not phrase.grouping.is_context_free
    assert phrase.privatize("\u5317 onion").guarantee.epsilon == pytest.approx(
        4 + 2 * LABEL, abs=1e-6
    )


def test_a_failure_in_one_text_may_not_show_in_drawn_labels_of_another(small_table):
    with pytest.raises(ConfigError, match="on_failure"):
        drawn_labels(small_table, detectors=[Finds(A="apple")], on_failure="protect")


@pytest.mark.parametrize("profile", ["data", "document", "prompt", "strict"])
def test_failing_is_never_less_protection(profile):
    class Fails:
        name = "fails"

        def find(self, texts):
            raise RuntimeError

    made = Privatizer.from_profile(
        profile, protect={"detectors": [Fails()], "on_failure": "protect"}
    )
    with pytest.warns(TextveilWarning, match="all texts"):
        first, second = made.privatize_many(["Will Smith of The Who: +351 21 123", "the"])
    assert first.text == second.text == ("<TEXT>" if profile in ("data", "strict") else "<TEXT_1>")


def test_a_listed_name_is_a_placeholder_under_strict(minilm_s):
    protect = {"detectors": [Finds(PERSON="Maria Silva")], "always": ["Silva"]}
    made = Privatizer.from_profile("strict", table=minilm_s, protect=protect)
    assert [item.kind for item in made.privatize("Maria Silva").released.items] == [
        Kind.PLACEHOLDER
    ]


def test_releases_whose_words_were_joined_otherwise_do_not_compose(small_table):
    """Both have three protected words, but the first of one is the first two of the other."""
    found = (Finds(A="apple river"), Finds(A="river onion"), Finds(A="apple"))
    one, two, three = (
        privatizer(small_table, each, protect={"placeholders": "all", "always": always}).privatize(
            "apple river onion ocean"
        )
        for each, always in zip(found, ([], ["castle"], ["castle", "ladder"]), strict=True)
    )
    assert one.guarantee.protected == two.guarantee.protected == 3 < three.guarantee.protected
    with pytest.raises(GuaranteeError, match="several words in another"):
        compose([one.guarantee, two.guarantee])
    assert compose([one.guarantee, one.guarantee]).protected == 3


# ---- sessions and re-ranking ------------------------------------------------------------------------------


def test_a_session_keeps_rows_of_unlike_draws_apart(small_table):
    """A weak draw is not taken for a strong one, a seeded one not for a free one, a table's not for another's."""
    words = list(reversed(small_table.words))[:30]
    other = EmbeddingTable.build(name="small", words=words, vectors=small_table.vectors[:30])

    class Changing:
        epsilon = 500.0

        def __repr__(self):
            return "Changing()"

        def assign(self, protection):
            return np.full(len(protection.public), self.epsilon)

    budget, session = Changing(), Session()
    made = Privatizer("noise", table=small_table, budget=budget, words={"consistent": True})
    assert made.privatize("river", session).text == "river"
    budget.epsilon = 1e-3
    made.privatize("river", session)
    for table, seed in ((small_table, 1), (other, None)):
        Privatizer(
            "noise", table=table, epsilon=500.0, seed=seed, words={"consistent": True}
        ).privatize("river", session)
    assert len(json.loads(session.to_json())["draws"]) == 3
    assert sum(len(draws) for draws in json.loads(session.to_json())["draws"].values()) == 4


def test_reranking_leaves_names_names():
    made = Privatizer(
        "placeholder",
        protect={"detectors": [Finds(PERSON="Maria")]},
        groups={"budgets": (0, 0, INF, INF)},
        names={"types": "PERSON"},
        rerank={"m": 50},
    )
    known = {word.lower() for word in load_names("PERSON").words}
    session = Session()
    results = list(made.privatize_many(["the bad weather that maria saw was cold"] * 10, session))
    shown = {
        item.text for result in results for item in result.released.items if item.kind is Kind.WORD
    }
    assert shown <= known
    assert len(json.loads(session.to_json())["replacements"]) == len(shown), (
        "only what was shown is remembered"
    )


def test_equal_words_are_not_reranked_apart(small_table):
    with pytest.raises(ConfigError, match=r"rerank\.m"):
        Privatizer("noise", table=small_table, eta=2.0, words={"consistent": True}, rerank={"m": 5})


# ---- what is private in options ---------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["always", "always_matching", "never", "never_matching", "task"])
def test_no_error_shows_what_is_listed(option):
    with pytest.raises(ConfigError) as caught:
        Privatizer("noise", epsilon=1.0, protect={option: {CANARY: 1}})
    assert CANARY not in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        resolve(overrides={f"protect.{option}": {CANARY: 1}})
    assert CANARY not in str(caught.value)


def test_what_is_listed_does_not_stand_beside_a_release():
    listed = {"protect.always": [CANARY], "protect.task": CANARY, "protect.importance": "cosine"}
    config = resolve(overrides={"epsilon": 1.0, **listed})
    assert CANARY not in str(config.dump_public())
    assert config.dump_public()["protect"]["always"] == 1
    assert config.dump_public()["protect"]["task"] == "given"
