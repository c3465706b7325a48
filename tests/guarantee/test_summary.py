"""The one sentence about a release: true of every kind of statement; and what was hidden in a prompt."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textveil.detect.spans import TYPES
from textveil.errors import ConfigError
from textveil.guarantee import (
    Claim,
    Group,
    Guarantee,
    compose,
    condense,
    describe_hidden,
    summarize,
)
from textveil.guarantee.wording import TYPE_NOUNS, format_number, join_parts
from textveil.protect import GROUPS
from textveil.text import Item, Kind, Mask, Released

METRIC = Claim(mechanism="noise", kind="metric", metric="chord", table="t", diameter=1.65117)
LDP = Claim(mechanism="rankcape", kind="ldp", table="t")
NONE = Claim(mechanism="stencil", kind="none", table="t", reason="it adds no noise", draws=False)
PASSES = "words of the group other pass unprotected"


def statement(*epsilon: float, claim: Claim = LDP, words: int = 0, **changes: object) -> Guarantee:
    fields: dict[str, object] = {
        "claim": claim,
        "epsilon_per_word": np.array(epsilon, np.float64),
        "parameter": np.empty(0),
        "words": len(epsilon) + words,
        "placeholders": sum(each == 0 for each in epsilon),
        "mask": ("length",),
        "drawn": sum(0 < each < math.inf for each in epsilon),
        "seeded": False,
    }
    return Guarantee(**(fields | changes))  # type: ignore[arg-type]


def group(label: str, words: int, by: str, epsilon: float) -> Group:
    return Group(label=label, words=words, by=by, epsilon=epsilon, total=words * epsilon)


DOCUMENT = (
    group("other", 13, "rankcape", 7.5),
    group("EMAIL", 1, "placeholder", 0.0),
    group("LOCATION", 1, "name", 6.0),
    group("PERSON", 2, "name", 6.0),
    group("PHONE", 2, "placeholder", 0.0),
)
STAMP = (
    group("sensitive", 3, "polar", 49.531),
    group("important", 1, "polar", 150.0),
    group("other", 2, "polar", 99.0),
)
EQUAL = (group("other", 3, "polar", 20.0), group("sensitive", 2, "polar", 20.0))
PROMPT = (
    group("other", 13, "nothing", math.inf),
    group("PERSON", 2, "name", 6.0),
    group("URL", 1, "placeholder", 0.0),
)


@pytest.mark.parametrize(
    ("guarantee", "says"),
    [
        (
            statement(*[8.0] * 12, words=23, punctuation=12),
            "12 words drawn at epsilon 8 (any two words); 11 common words and 12 punctuation marks passed.",
        ),
        (
            statement(2.0, 3.0, words=1),
            "2 words drawn at epsilon up to 3 (any two words); 1 common word passed.",
        ),
        (
            statement(60.0, claim=METRIC, words=1, punctuation=1),
            "1 word drawn at epsilon 60 per unit of chord distance, at most 99.08 for any two words; "
            "1 punctuation mark passed.",
        ),
        (
            statement(6.0, claim=replace(METRIC, additive=8.618263e-07)),
            "1 word drawn at epsilon 6 per unit of chord distance plus 8.619e-07, at most 9.908 for any two words.",
        ),
        (
            statement(6.0, claim=replace(METRIC, diameter=math.inf)),
            "1 word drawn at epsilon 6 per unit of chord distance.",
        ),
        (statement(8.0, oov="error"), "1 word drawn at epsilon 8 (any two words of the table)."),
        (
            statement(8.0, unit="wordpiece"),
            "1 word drawn at epsilon 8 (any two words with the same number of pieces).",
        ),
        (
            statement(math.inf, claim=NONE),
            "No guarantee (it adds no noise): 1 word put through stencil.",
        ),
        (
            statement(
                math.inf,
                math.inf,
                claim=NONE,
                mask=("dropped words",),
                infinite=("unknown words are left out",),
            ),
            "No guarantee (it adds no noise; unknown words are left out): 2 words put through stencil or left out "
            "or passed "
            "unprotected.",
        ),
        (
            statement(1.0, 0.0, math.inf, infinite=("unknown words pass",)),
            "No guarantee (unknown words pass): 1 word drawn at epsilon 1 (any two words); 1 word became a "
            "placeholder; 1 word passed unprotected.",
        ),
        (
            statement(1.0, math.inf, infinite=("unknown words are left out",), oov="drop"),
            "No guarantee (unknown words are left out): 1 word drawn at epsilon 1 (any two words of the table); "
            "1 word went unprotected.",
        ),
        (
            statement(0.0, claim=replace(LDP, draws=False), placeholders=0),
            "1 word replaced at epsilon 0 (any two words).",
        ),
        (statement(0.0, 0.0, words=1), "2 words became placeholders; 1 common word passed."),
        (statement(words=2, punctuation=2), "No word was protected; 2 punctuation marks passed."),
        (statement(), "There were no words."),
        (statement(claim=NONE), "No guarantee (it adds no noise): there were no words."),
        (
            statement(8.0, seeded=True),
            "1 word drawn at epsilon 8 (any two words); "
            "repeatable, so no protection against anyone who knows the seed.",
        ),
        (statement(0.0, seeded=True), "1 word became a placeholder."),
        (
            statement(8.0, 8.0, consistent=True, repeated=2, words=2),
            "4 words drawn at epsilon 8 (any two words), equal words alike.",
        ),
        (
            statement(8.0, 8.0, texts=1_000, words=1),
            "In 1,000 texts: 2 words drawn at epsilon 8 (any two words); 1 common word passed.",
        ),
        (
            statement(math.inf, claim=NONE, texts=2),
            "No guarantee in 2 texts (it adds no noise): 1 word put through stencil.",
        ),
        (
            statement(
                *[7.5] * 13, 0.0, 6.0, 6.0, 6.0, 0.0, 0.0, words=5, punctuation=4, groups=DOCUMENT
            ),
            "13 words drawn at epsilon 7.5 and 3 names at epsilon 6 (any two words); 1 e-mail address and 2 phone "
            "numbers became placeholders; 1 common word and 4 punctuation marks passed.",
        ),
        (
            statement(*[1.0] * 6, groups=STAMP),
            "3 sensitive words drawn at epsilon 49.54, 1 important word at epsilon 150 and 2 other words at epsilon 99 "
            "(any two words).",
        ),
        (statement(*[20.0] * 5, groups=EQUAL), "5 words drawn at epsilon 20 (any two words)."),
        (
            statement(*[math.inf] * 13, 6.0, 6.0, 0.0, groups=PROMPT, infinite=(PASSES,)),
            f"No guarantee as a whole ({PASSES}): 2 names drawn at epsilon 6 (any two words); 1 web address became a "
            "placeholder; 13 words passed unprotected.",
        ),
        (
            statement(math.inf, claim=NONE, groups=(group("other", 1, "stencil", math.inf),)),
            "No guarantee (it adds no noise): 1 word put through stencil.",
        ),
    ],
)
def test_the_sentence(guarantee: Guarantee, says: str) -> None:
    assert guarantee.summary() == says
    assert condense(guarantee).summary() == says
    plain = json.loads(json.dumps(guarantee.to_json()))
    assert (plain["summary"], plain["punctuation"]) == (says, guarantee.punctuation)
    assert Guarantee.unpack(json.loads(json.dumps(guarantee.pack()))).summary() == says


@given(
    st.lists(st.sampled_from([0.0, 0.1, 2.00049, 7.4999999999, math.inf]), max_size=9),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([LDP, METRIC]),
)
def test_every_word_is_counted_once_and_no_bound_is_below_what_is_spent(
    spent: list[float], words: int, marks: int, claim: Claim
) -> None:
    reasons = ("an infinite budget lets words pass",) if math.inf in spent else ()
    guarantee = statement(
        *spent, claim=claim, words=words + marks, punctuation=marks, infinite=reasons
    )
    said = guarantee.summary()
    counted = re.findall(r"(\d+) (?:common )?(?:word|punctuation mark)s?\b", said)
    assert sum(map(int, counted)) == guarantee.words
    finite = [each for each in spent if 0 < each < math.inf]
    assert ("epsilon" in said) == bool(finite)
    if finite:
        largest = re.search(r"epsilon (?:up to )?([\d.]+)", said)
        assert largest is not None
        assert float(largest[1]) >= max(finite) * (1 - 1e-9)
        assert ("up to" in said) == (format_number(min(finite)) != format_number(max(finite)))
    assert said.startswith("No guarantee") == bool(reasons)


def test_releases_and_texts_together() -> None:
    one = statement(8.0, 0.0, words=3, punctuation=1, repeated=1, consistent=True)
    assert compose([one, one]).summary() == (
        "2 words drawn at epsilon 16 (any two words), equal words alike; 1 word became a placeholder; "
        "1 common word and 1 punctuation mark passed."
    )
    assert summarize([one, one]).summary() == (
        "In 2 texts: 4 words drawn at epsilon 8 (any two words), equal words alike; 2 words became placeholders; "
        "2 common words and 2 punctuation marks passed."
    )
    hole = statement(0.0, 0.0, placeholders=3, repeated=1, consistent=True)
    assert compose([hole, hole]).summary() == "3 words became placeholders."


# ---- what was hidden in a prompt ---------------------------------------------------------------------------

PASSED = ("verbatim", "other", "word")


def release(*items: tuple[str, str, str], casing: bool = True, dropped: int = 0) -> Released:
    """A release of items (kind, group, text); a placeholder's type is its text."""
    found = tuple(
        Item(text, Kind(kind), label, i, i + 1) for i, (kind, label, text) in enumerate(items)
    )
    return Released(
        items=found,
        gaps=("", *[" "] * (len(found) - 1), "")[: len(found) + 1],
        mask=Mask(
            words=len(found) + dropped,
            verbatim=tuple(i for i, item in enumerate(found) if item.kind is Kind.VERBATIM),
            placeholders=tuple(
                (i, item.text) for i, item in enumerate(found) if item.kind is Kind.PLACEHOLDER
            ),
            numbers=tuple(i for i, item in enumerate(found) if item.kind is Kind.NUMBER),
            casing=("lower",) * len(found) if casing else None,
            dropped=tuple(range(len(found), len(found) + dropped)),
        ),
    )


REST = "the rest is unchanged, and nothing is claimed about it."
GIVEN, FAMILY = ("word", "PERSON given", "julia"), ("word", "PERSON family", "silva")


@pytest.mark.parametrize(
    ("items", "says"),
    [
        (
            [GIVEN, FAMILY, PASSED, ("placeholder", "EMAIL", "EMAIL")],
            "1 person and 1 e-mail address replaced",
        ),
        ([GIVEN, GIVEN, FAMILY, GIVEN, PASSED, ("word", "PERSON", "kim")], "3 persons replaced"),
        (
            [GIVEN, ("verbatim", "public", "."), FAMILY, PASSED, FAMILY, FAMILY],
            "3 persons replaced",
        ),
        ([GIVEN, ("verbatim", "public", ","), FAMILY], "2 persons replaced"),
        ([("placeholder", "PERSON given", "PERSON"), FAMILY, PASSED], "1 person replaced"),
        (
            [
                ("word", "LOCATION", "rome"),
                ("word", "LOCATION", "oslo"),
                ("word", "ORGANIZATION", "acme"),
            ],
            "2 places and 1 organization replaced",
        ),
        (
            [
                ("placeholder", "sensitive", "WORD"),
                ("word", "other", "x"),
                ("number", "other", "9"),
            ],
            "3 words replaced",
        ),
        (
            [
                ("placeholder", "BADGE", "BADGE"),
                ("placeholder", "SECRET", "SECRET"),
                ("placeholder", "SECRET", "SECRET"),
            ],
            "2 keys or passwords and 1 of type BADGE replaced",
        ),
    ],
)
def test_what_was_hidden_is_told_by_type_and_number(
    items: list[tuple[str, str, str]], says: str
) -> None:
    labels = {label for kind, label, _ in items if kind == "word"}
    what = "word" if "other" in labels else "name"
    drawn = f" (a drawn {what} may by chance be the original)" if labels else ""
    assert describe_hidden([release(*items)]) == f"{says}{drawn}; {REST}"


def test_what_was_sent_earlier_is_told() -> None:
    said = describe_hidden([release(PASSED)])
    assert describe_hidden([release(PASSED)], 1) == (
        f"{said} 1 name or number was sent unprotected earlier; from now on it is hidden."
    )
    assert describe_hidden([release(PASSED)], 2) == (
        f"{said} 2 names or numbers were sent unprotected earlier; from now on they are hidden."
    )


def test_where_nothing_was_found_nothing_is_promised() -> None:
    assert (
        describe_hidden([release()]) == describe_hidden([release()] * 2) == "There were no words."
    )
    assert describe_hidden([release(PASSED)]) == (
        "Nothing was found to hide, so the text is unchanged; there may still be something private in it."
    )
    assert describe_hidden([release(PASSED, casing=False)]).startswith(
        "Nothing was found to hide, so the text is in lower case;"
    )
    assert describe_hidden([release(PASSED)] * 2) == (
        "Nothing was found to hide, so the texts are unchanged; there may still be something private in them."
    )


def test_several_texts_lower_case_and_words_that_are_left_out_are_told() -> None:
    assert describe_hidden([release(GIVEN), release(GIVEN)]) == (
        f"2 persons replaced (a drawn name may by chance be the original); {REST}"
    )
    assert describe_hidden([release(GIVEN, casing=False, dropped=2)]) == (
        "1 person replaced (a drawn name may by chance be the original) and 2 words left out; the rest is in lower "
        "case, and nothing is claimed about it."
    )


def test_every_type_that_textveil_gives_has_words_for_one_and_for_several() -> None:
    assert {*TYPES} <= {*TYPE_NOUNS}
    for one, several in TYPE_NOUNS.values():
        assert one != several
    assert not {*GROUPS} & {*TYPE_NOUNS}


def test_parts_are_listed_as_in_a_sentence() -> None:
    assert [join_parts(list(each)) for each in ("", "a", "ab", "abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_claim_of_no_bound_says_why(reason):
    with pytest.raises(ConfigError, match="is of kind none and must have a reason"):
        Claim(mechanism="own", kind="none", table="t", reason=reason)
    assert Claim(mechanism="own", kind="none", table="t", reason="it draws nothing").reason
