"""What a seed or a key repeats: the same release of the same texts, and no noise under another law.

Not here: what an attacker gets of a seed that is used twice (`tests.contract.test_over_time`).
"""

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pytest
from tests.fixtures import NOUNS

from textveil.errors import ConfigError, RandomnessError
from textveil.pipeline import Privatizer
from textveil.pipeline.rng import derive_randomness
from textveil.protect import build_ungrouped
from textveil.randomness import KeyedRandomness, SystemRandomness
from textveil.table import EmbeddingTable
from textveil.text import tokenize


@pytest.fixture
def table(small_table: EmbeddingTable) -> EmbeddingTable:
    return small_table


# ---- what a digest depends on ----------------------------------------------------------------------------------------


class Recorded(SystemRandomness):
    """Keeps what its draws would have been for."""

    def bind_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> Self:
        SEEN.append((first, list(digests())))
        return self


SEEN: list[tuple[int, list[bytes]]] = []


def digests(texts: Sequence[str], table: EmbeddingTable, **options: Any) -> list[bytes]:
    """The digests of some texts under some options."""
    SEEN.clear()
    options = {"mechanism": "noise", "epsilon": 5.0, **options}
    privatizer = Privatizer(options.pop("mechanism"), table=table, **options)
    list(privatizer.with_parts(randomness=Recorded()).privatize_many(texts))
    return [digest for _, found in SEEN for digest in found]


TEXT = " ".join(NOUNS[:4])
BUDGETS = {"groups": {"budgets": (4, 4, 4, 2)}, "epsilon": None}
OTHERS: list[dict[str, Any]] = [
    {"epsilon": 5.5},
    {"mechanism": "polar"},
    {"mechanism": "exponential"},
    {"mechanism": "exponential", "calibration": "paper"},
    {"mechanism": "exponential", "epsilon": None, "c": 3.0},
    {"mechanism": "exponential", "epsilon": None, "c": 3.5},
    {"mechanism": "krr"},
    {"mechanism": "rankcape"},
    {"mechanism": "rankcape", "k": 3},
    {"epsilon": None, "eta": 5.0},
    {"epsilon": None, "eta": 6.0},
    {"epsilon": None, "mechanism": "polar", "kappa": 6.0},
    {"epsilon": None, "mechanism": "polar", "kappa": 7.0},
    {"epsilon": None, "mechanism": "d-chi-stencil", "eta": 6.0},
    {"epsilon": None, "mechanism": "d-chi-stencil", "eta": 6.0, "L": 4},
    {"epsilon": None, "mechanism": "laplace", "nominal": 6.0},
    {"epsilon": None, "mechanism": "laplace", "nominal": 7.0},
    {"words": {"casing": "copy"}},
    {"words": {"oov": "uniform"}},
    {"words": {"consistent": True}},
    {"mechanism": "krr", "protect": {"always": ["zyxqorvian"]}, **BUDGETS},
    {"mechanism": "krr", "protect": {"always": [NOUNS[0]]}, **BUDGETS},
]


def test_every_option_changes_what_is_drawn_for(table, raw_table):
    found = [digests([TEXT], table)]
    found += [digests([TEXT], table, **options) for options in OTHERS]
    found += [digests([TEXT], raw_table), digests([TEXT + " "], table), digests([NOUNS[0]], table)]
    found += [digests(["", ""], table)[:1]]
    assert all(len(each) == 1 and len(each[0]) == 32 for each in found)
    assert len({each[0] for each in found}) == len(found)
    assert digests([TEXT], table) == found[0]
    assert digests(["a word", TEXT], table)[1:] == found[0]  # whatever stands beside it


def test_what_was_decided_about_words_changes_what_is_drawn_for(table):
    """Whatever decides it: a session, a query, a detector that is better today."""
    privatizer = Privatizer("noise", epsilon=5.0, table=table).with_parts(randomness=Recorded())
    tokens = tokenize([TEXT])
    plain, equal = build_ungrouped(np.zeros(4, bool)), np.full(4, 5.0)
    made = [(plain, equal), (plain, np.array([5.0, 5.0, 5.0, 4.0])), (plain, None)]
    made += [
        (replace(plain, **{name: np.arange(4) == 2}), equal)
        for name in ("public", "hidden", "named", "moved")
    ]
    made += [
        (replace(plain, group=np.arange(4, dtype=np.int16) % 2), equal),
        (replace(plain, labels=("public", "other")), equal),
    ]
    SEEN.clear()
    for protection, epsilon in made:
        derive_randomness(privatizer, tokens, protection, epsilon, first=0, step="words")
    derive_randomness(privatizer, tokens, plain, equal, first=0, step="labels")
    derive_randomness(
        privatizer,
        tokens.join_words(np.arange(4) == 1),
        build_ungrouped(np.zeros(3, bool)),
        equal[:3],
        first=0,
        step="words",
    )
    assert len({digest for _, (digest,) in SEEN}) == len(SEEN) == len(made) + 2


def test_a_parameter_counts_that_the_claim_does_not_have(table):
    """The claim of a mechanism that somebody else wrote may say nothing of it."""
    SEEN.clear()
    for eta in (5.0, 6.0):
        privatizer = Privatizer("noise", eta=eta, table=table)
        silent = privatizer.with_parts(
            randomness=Recorded(), claim=replace(privatizer.claim, options={})
        )
        silent.privatize(TEXT)
    assert SEEN[0] != SEEN[1]


def test_texts_have_their_numbers_in_the_run(table):
    digests([TEXT] * 3, table)
    assert [first for first, _ in SEEN] == [0]
    privatizer = Privatizer("noise", epsilon=5.0, table=table).with_parts(randomness=Recorded())
    SEEN.clear()
    list(privatizer.privatize_many([TEXT] * 600, first=70))
    assert [(first, len(found)) for first, found in SEEN] == [(70, 512), (582, 88)]


# ---- keys ------------------------------------------------------------------------------------------------------------

KEY = bytes(range(32))


def released(
    table: EmbeddingTable, texts: Sequence[str], ids: Sequence[str], **more: Any
) -> list[str]:
    key, field, options = more.pop("key", KEY), more.pop("field", "body"), {"epsilon": 1.0, **more}
    privatizer = Privatizer("noise", table=table, **options)
    keyed = privatizer.with_parts(randomness=KeyedRandomness(key, field=field, ids=ids))
    return [result.text for result in keyed.privatize_many(texts)]


MANY = " ".join(NOUNS * 8)


def test_a_key_repeats_a_text_by_its_id_and_nothing_else(table):
    texts, ids = [MANY] * 4, ["a.txt\x000", "a.txt\x001", "a.txt\x002", "b.txt\x000"]
    whole = released(table, texts, ids)
    assert released(table, texts, ids) == whole
    assert len(set(whole)) == 4
    assert [
        released(table, [MANY], [each])[0] for each in ids
    ] == whole  # in whatever order and company
    changed = released(table, [MANY, MANY + " house", MANY, MANY], ids)
    assert [one == two for one, two in zip(whole, changed, strict=True)] == [
        True,
        False,
        True,
        True,
    ]
    assert agreement(whole[1], changed[1]) < 0.3
    for other in (
        {"key": bytes(32)},
        {"field": "title"},
        {"epsilon": 1.1},
        {"words": {"casing": "copy"}},
    ):
        assert max(map(agreement, whole, released(table, texts, ids, **other))) < 0.3


def agreement(one: str, two: str) -> float:
    """The share of places at which two releases agree."""
    pairs = list(zip(one.split(), two.split(), strict=False))
    return sum(a.lower() == b.lower() for a, b in pairs) / len(pairs)


def test_a_statement_of_keyed_draws_says_nothing_of_a_seed(table):
    privatizer = Privatizer("noise", epsilon=1.0, table=table)
    result = privatizer.with_parts(randomness=KeyedRandomness(KEY, ids=["a"])).privatize(MANY)
    assert not result.guarantee.seeded
    assert "keyed by the operating system" in result.guarantee.headline()


def test_what_a_key_refuses(table):
    keyed = KeyedRandomness(KeyedRandomness.make_key(), ids=["one", "two"])
    assert "one" not in repr(keyed)
    assert KEY.hex() not in repr(KeyedRandomness(KEY)) + repr(vars(KeyedRandomness(KEY)).keys())
    for refused in (pickle.dumps, copy.copy):
        with pytest.raises(RandomnessError, match="cannot be pickled or copied"):
            refused(keyed)
    with pytest.raises(ConfigError, match="one id occurs twice"):
        KeyedRandomness(KEY, ids=["one", "one"])
    for wrong in (b"short", bytes(33)):
        with pytest.raises(ConfigError, match="must be 32 bytes"):
            KeyedRandomness(wrong)
    with pytest.raises(ConfigError, match="text 2 has no id"):
        list(
            Privatizer("noise", epsilon=1.0, table=table)
            .with_parts(randomness=keyed)
            .privatize_many([MANY] * 3)
        )
    with pytest.raises(RandomnessError, match="need the texts' ids"):
        keyed.open([3])
    with pytest.raises(ConfigError, match="of the 1 texts"):
        keyed.bind_texts(0, lambda: [bytes(32)]).open([1, 2])


def test_ids_and_fields_are_not_confused(table):
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", ""), ("a\x00b", "c"), ("a", "b\x00c")]
    assert len({released(table, [MANY], [own], field=field)[0] for field, own in pairs}) == len(
        pairs
    )


def test_new_keys_differ():
    keys = {KeyedRandomness.make_key() for _ in range(50)}
    assert {len(key) for key in keys} == {32}
    assert len(keys) == 50
