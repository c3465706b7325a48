"""Statements say what follows from the parts, in words and as data."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textveil.errors import GuaranteeError
from textveil.guarantee import Claim, Guarantee, Restricted, compose, condense, summarize
from textveil.guarantee.wording import format_number

METRIC = Claim(
    mechanism="noise", kind="metric", metric="chord", table="t", diameter=1.5, parameter="eta"
)


def statement(*epsilon: float, claim: Claim = METRIC, **changes: object) -> Guarantee:
    fields: dict[str, object] = {
        "claim": claim,
        "epsilon_per_word": np.array(epsilon),
        "parameter": np.array(epsilon),
        "words": len(epsilon) + 2,
        "placeholders": 0,
        "mask": ("length", "spacing"),
        "drawn": len(epsilon),
        "seeded": False,
    }
    return Guarantee(**(fields | changes))  # type: ignore[arg-type]


def test_the_headline_has_three_lines_with_bound_domain_and_mask() -> None:
    lines = statement(2.0, 3.0).headline().splitlines()
    assert len(lines) == 3
    assert "epsilon at most 3 per unit of chord distance" in lines[0]
    assert "at most 4.5 for any two words of t (diameter 1.5)" in lines[0]
    assert "2 of 4 words, passed" in lines[1]
    assert "length, spacing" in lines[2]


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (statement(1.0, seeded=True), "knows the seed"),
        (statement(1.0, infinite=("unknown words pass",)), "unknown words pass"),
        (
            statement(
                np.inf, claim=Claim(mechanism="stencil", kind="none", table="t", reason="no noise")
            ),
            "no noise",
        ),
        (statement(), "no word was protected"),
        (
            statement(0.0, claim=Claim(mechanism="placeholder", kind="ldp", table="t")),
            "epsilon at most 0 for any",
        ),
    ],
)
def test_what_weakens_a_statement_is_in_its_headline(guarantee: Guarantee, words: str) -> None:
    assert words in guarantee.headline()


def test_an_infinite_reason_beats_any_number() -> None:
    broken = statement(1.0, infinite=("unknown words pass",))
    assert broken.kind == "none"
    assert broken.epsilon == broken.epsilon_ldp == math.inf
    assert "epsilon at most" not in broken.headline()
    assert broken.to_json()["epsilon"] == "infinite"


def test_additive_parts_enter_local_dp_once_per_word_and_never_for_placeholders() -> None:
    claim = Claim(
        mechanism="polar", kind="metric", metric="chord", table="t", diameter=2.0, additive=0.25
    )
    assert statement(1.0, 0.0, claim=claim).ldp_per_word.tolist() == [2.25, 0.0]
    assert "+ 0.25" in statement(1.0, claim=claim).explain()


def test_json_is_plain_and_complete() -> None:
    plain = json.loads(
        json.dumps(statement(2.0, math.inf, infinite=("x",)).to_json(), allow_nan=False)
    )
    assert plain["epsilon_per_word"] == [2.0, "infinite"]
    assert plain["mask"] == ["length", "spacing"]
    assert plain["infinite_because"] == ["x"]


def test_explain_names_the_whole_statement() -> None:
    text = statement(2.0, 3.0, unit="wordpiece", placeholders=1).explain()
    for part in (
        "for every output y",
        "sum 5",
        "word pieces",
        "placeholder",
        "eta: 2 to 3",
        "any string",
    ):
        assert part in text.lower() if part == "for every output y" else part in text


@given(st.floats(1e-6, 1e6))
def test_printed_numbers_are_never_below_the_bound(value: float) -> None:
    printed = float(format_number(value))
    assert value * (1 - 1e-9) <= printed <= value * 1.002


# ---- promises for some pairs only ---------------------------------------------------------------------------

INSIDE = Restricted(domain="two words of one group", kind="ldp")
GROUPS = Claim(
    mechanism="custext",
    kind="none",
    table="t",
    parameter="nominal",
    reason="the output tells the group",
    restricted=INSIDE,
)
SENSITIVE = Claim(
    mechanism="santext+",
    kind="none",
    table="t",
    reason="other words come out as they are",
    restricted=Restricted(
        domain="two sensitive words", kind="metric", metric="chord", diameter=1.5, additive=0.25
    ),
)


def test_a_restricted_promise_is_second_and_never_the_bound() -> None:
    guarantee = statement(math.inf, math.inf, claim=GROUPS, within=3.38)
    lines = guarantee.headline().splitlines()
    assert lines[0] == (
        "custext: no finite bound holds: the output tells the group. "
        "Between two words of one group only: epsilon at most 3.38 (local DP)."
    )
    assert len(lines) == 3
    assert lines[1].startswith("Beyond that, nothing bounds what the output tells")
    assert (guarantee.kind, guarantee.epsilon, guarantee.epsilon_ldp) == (
        "none",
        math.inf,
        math.inf,
    )
    plain = json.loads(json.dumps(guarantee.to_json(), allow_nan=False))
    assert (plain["kind"], plain["epsilon"], plain["epsilon_ldp"]) == (
        "none",
        "infinite",
        "infinite",
    )
    assert plain["restricted"] == {
        "domain": "two words of one group",
        "kind": "ldp",
        "metric": None,
        "epsilon": 3.38,
        "epsilon_ldp": 3.38,
        "diameter": None,
        "additive": 0.0,
    }
    assert "where x_j and x'_j are two words of one group:" in guarantee.explain()
    assert "<= 3.38   for every output y." in guarantee.explain()


def test_a_restricted_metric_promise_names_its_metric_and_local_dp() -> None:
    guarantee = statement(math.inf, claim=SENSITIVE, within=2.0)
    assert (
        "Between two sensitive words only: epsilon at most 2 per unit of chord distance, plus 0.25, "
        "and at most 3.25 in all (diameter 1.5)."
    ) in guarantee.headline()
    assert "<= 2 * d(x_j, x'_j) + 0.25" in guarantee.explain()
    found: Any = guarantee.to_json()["restricted"]
    assert (found["epsilon_ldp"], found["diameter"]) == (3.25, 1.5)


@pytest.mark.parametrize(
    "changes",
    [{"infinite": ("unknown words pass",)}, {"within": math.inf}],
    ids=["another reason", "no value"],
)
def test_a_restricted_promise_that_does_not_hold_for_every_word_is_not_printed(
    changes: dict[str, object],
) -> None:
    guarantee = statement(math.inf, claim=GROUPS, **({"within": 1.0} | changes))
    assert guarantee.restricted is guarantee.to_json()["restricted"] is None
    assert "only" not in guarantee.headline() + guarantee.explain()
    assert statement(claim=GROUPS, within=0.0).restricted is None  # no word, no promise


def test_restricted_promises_add_up_over_releases_and_stand_side_by_side_over_texts() -> None:
    parts = [statement(math.inf, claim=SENSITIVE, within=within) for within in (1.0, 2.5)]
    total, both = compose(parts), summarize(parts)
    assert total.within == 3.5
    assert total.restricted is not None
    assert total.restricted.additive == 0.5
    assert both.within == 2.5
    assert both.restricted == SENSITIVE.restricted
    assert condense(both).headline() == both.headline()
    packed = json.loads(json.dumps(condense(both).pack()))
    assert Guarantee.unpack(packed).to_json() == condense(both).to_json()
    with pytest.raises(GuaranteeError, match="restricted domain"):
        compose(
            [parts[0], statement(math.inf, claim=replace(SENSITIVE, restricted=INSIDE), within=1.0)]
        )


def test_a_claim_for_words_of_several_pieces_loses_what_it_loses_besides_for_each() -> None:
    several = SENSITIVE.scale_pieces(3)
    assert several.restricted is not None
    assert several.restricted.additive == 0.75
    assert replace(METRIC, additive=0.1).scale_pieces(3).additive == pytest.approx(0.3)


# ---- composition ------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.floats(0, 100), min_size=3, max_size=3), min_size=1, max_size=5))
def test_releases_of_one_text_add_up_word_by_word(epsilons: list[list[float]]) -> None:
    total = compose([statement(*values) for values in epsilons])
    assert total.epsilon_per_word == pytest.approx(np.sum(epsilons, axis=0))
    assert total.epsilon <= sum(max(values) for values in epsilons) + 1e-9
    again = compose([compose([statement(*values)]) for values in epsilons])
    assert again.epsilon_per_word == pytest.approx(total.epsilon_per_word)


def test_texts_stand_side_by_side() -> None:
    both = summarize(
        [
            statement(1.0, 2.0, oov_share=0.5),
            statement(4.0, oov_share=0.0, mask=("length", "casing")),
        ]
    )
    assert both.epsilon_per_word.tolist() == [1.0, 2.0, 4.0]
    assert (both.epsilon, both.words, both.texts) == (4.0, 7, 2)
    assert both.mask == ("length", "casing", "spacing")  # one order for all
    assert both.oov_share == pytest.approx(1 / 3)


def test_composition_adds_what_is_additive_and_keeps_what_is_bad() -> None:
    claim = Claim(
        mechanism="polar", kind="metric", metric="chord", table="t", diameter=1.5, additive=0.5
    )
    total = compose([statement(1.0, claim=claim), statement(1.0, claim=claim, infinite=("why",))])
    assert total.claim.additive == 1.0
    assert not total.seeded
    assert total.reasons == ("why",)
    assert total.epsilon == math.inf


@pytest.mark.parametrize(
    "other",
    [
        statement(
            1.0,
            claim=Claim(mechanism="laplace", kind="metric", metric="l1", table="t", diameter=9.0),
        ),
        statement(1.0, claim=Claim(mechanism="rankcape", kind="ldp", table="t")),
        statement(
            1.0,
            claim=Claim(mechanism="noise", kind="metric", metric="chord", table="u", diameter=1.5),
        ),
        statement(1.0, unit="wordpiece"),
    ],
    ids=["metric", "kind", "table", "unit"],
)
def test_unlike_statements_do_not_compose(other: Guarantee) -> None:
    for together in (compose, summarize):
        with pytest.raises(GuaranteeError, match="different kinds"):
            together([statement(1.0), other])


def test_other_texts_do_not_compose_word_by_word_and_nothing_is_no_statement() -> None:
    with pytest.raises(GuaranteeError, match="same protected words"):
        compose([statement(1.0), statement(1.0, 2.0)])
    with pytest.raises(GuaranteeError, match="at least one"):
        compose([])


def test_seeded_releases_do_not_compose() -> None:
    seeded = statement(1.0, seeded=True)
    for releases in ([seeded, seeded], [statement(1.0), seeded]):
        with pytest.raises(GuaranteeError, match="whoever knows the seed can repeat them"):
            compose(releases)
    assert (
        "unrelated draws for others; statements of seeded releases do not add up"
        in seeded.headline()
    )
    assert summarize(
        [seeded, seeded]
    ).repeatable  # texts of one run, of which each has its own draws
    holes = [
        statement(0.0, drawn=0, placeholders=1, seeded=True)
    ] * 2  # nothing was drawn that a seed could repeat
    assert compose(holes).epsilon == 0


def test_releases_that_were_chosen_among_more_do_not_compose() -> None:
    with pytest.raises(GuaranteeError, match="chosen among 40 after looking"):
        compose([statement(1.0)], among=40)
    assert compose([statement(1.0), statement(1.0)], among=2).epsilon == 2  # all that were drawn


def test_what_bounds_any_two_words_besides_the_diameter() -> None:
    claim = replace(METRIC, diameter=1.5, additive=0.25, most=20.0)
    assert claim.compute_ldp(np.array([0.0, 4.0, 100.0, math.inf])).tolist() == [
        0.0,
        6.25,
        20.0,
        math.inf,
    ]
    assert claim.scale_pieces(3).compute_ldp(np.array([100.0])).tolist() == [60.0]
    assert claim.convert_to_ldp().compute_ldp(np.array([100.0])).tolist() == [100.0]
    one, other = statement(100.0, claim=claim), statement(50.0, claim=replace(claim, most=21.0))
    assert one.epsilon_ldp == 20.0
    assert "at most 20 for any two words" in one.headline()
    assert "the bound for any two words is at most 20, whatever their distance" in one.explain()
    assert one.to_json()["epsilon_ldp"] == 20.0
    assert Guarantee.unpack(one.pack()).epsilon_ldp == 20.0
    assert compose([one, other]).epsilon_ldp == 41.0
    assert summarize([one, other]).epsilon_ldp == 21.0
    assert compose([one, statement(1.0)]).epsilon_ldp > 100  # the other has the diameter only


# ---- what is drawn, and other lines that must follow from the parts ----------------------------------------


def test_a_composed_statement_still_says_what_was_drawn() -> None:
    assert "Draws come from AES" in compose([statement(1.0), statement(1.0)]).headline()
    assert "knows the seed" in compose([statement(1.0, seeded=True)]).headline()
    placeholder = Claim(mechanism="placeholder", kind="ldp", table="t", draws=False)
    assert "Nothing is drawn." in statement(0.0, claim=placeholder, seeded=True).headline()
    assert "Nothing is drawn." in statement().headline()


def test_texts_of_several_mechanisms_do_not_stand_side_by_side() -> None:
    polar = Claim(
        mechanism="polar", kind="metric", metric="chord", table="t", diameter=1.5, parameter="kappa"
    )
    with pytest.raises(GuaranteeError, match="the same mechanism and options"):
        summarize([statement(1.0), statement(3.0, claim=polar)])


def test_texts_of_other_length_do_not_compose() -> None:
    with pytest.raises(GuaranteeError, match="same protected words"):
        compose([statement(1.0, words=3), statement(1.0, words=4)])


@pytest.mark.parametrize(
    ("oov", "words"), [("surrogate", "any string"), ("keep", "unprotected"), ("error", "refused")]
)
def test_inputs_follow_the_rule_for_unknown_words(oov: str, words: str) -> None:
    assert words in statement(1.0, oov=oov).explain()


def test_printed_additive_parts_are_bounds() -> None:
    claim = Claim(
        mechanism="exponential",
        kind="metric",
        metric="chord",
        table="t",
        diameter=1.5,
        additive=8.618263e-07,
    )
    assert "plus 8.619e-07" in statement(1.0, claim=claim).headline()


def test_composed_placeholders_are_those_of_every_release() -> None:
    total = compose(
        [statement(1.0, 0.0, 0.0, placeholders=2), statement(0.0, 1.0, 0.0, placeholders=2)]
    )
    assert total.epsilon_per_word.tolist() == [1.0, 1.0, 0.0]
    assert total.placeholders == 1


def test_rules_for_unknown_words_and_views_do_not_mix() -> None:
    view = Claim(
        mechanism="noise", kind="metric", metric="chord", table="t", diameter=1.5, view="in 3 axes"
    )
    for other in (statement(1.0, oov="placeholder"), statement(1.0, claim=view)):
        with pytest.raises(GuaranteeError, match="different kinds"):
            compose([statement(1.0), other])


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.1, 2.0, 2.5, math.inf]), max_size=6),
        min_size=1,
        max_size=6,
    )
)
def test_a_condensed_statement_says_the_same(texts: list[list[float]]) -> None:
    listed = summarize([statement(*epsilons) for epsilons in texts])
    parts = [condense(statement(*epsilons)) for epsilons in texts]
    counted = condense(summarize(parts))
    total = parts[0]
    for part in parts[1:]:
        total = condense(summarize([total, part]))
    for same in (
        counted,
        total,
        condense(listed),
        condense(condense(listed)),
        summarize([condense(listed)]),
    ):
        assert same.headline() == listed.headline()
        assert same.explain() == listed.explain()
        found, expected = same.to_json(), listed.to_json()
        values = found.pop("epsilon_per_word")
        words = expected.pop("epsilon_per_word")
        assert isinstance(values, list)
        assert isinstance(words, list)
        assert len(values) == len(set(words))
        assert sorted(
            str(each["epsilon"]) for each in values for _ in range(each["words"])
        ) == sorted(map(str, words))
        assert found == expected
    assert counted.pack() == total.pack() == condense(listed).pack()
    assert Guarantee.unpack(json.loads(json.dumps(counted.pack()))).to_json() == counted.to_json()


def test_a_condensed_statement_cannot_be_composed() -> None:
    with pytest.raises(GuaranteeError, match="a value per word"):
        compose([condense(statement(1.0, 1.0)), condense(statement(1.0, 1.0))])
