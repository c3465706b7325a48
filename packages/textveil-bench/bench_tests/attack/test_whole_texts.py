"""Attacks on whole texts: each wins where nothing is changed, loses where nothing is said, and keeps to its bound."""

import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS
from tests.whole_texts import OTHERS, TWINS, Counted, open_draws

from textveil.errors import ConfigError, UnknownName
from textveil.mechanism import NoisyCount, RandomizedResponse
from textveil.randomness import Ids, SeededRandomness
from textveil_bench.attack import (
    TEXT_ATTACKS,
    TextAttack,
    TextCase,
    WorldPair,
    attack_texts,
    bound_accuracy,
    bound_advantage,
    load_text_attack,
)

TOPICS = [NOUNS[10 * i : 10 * i + 10] for i in range(4)]
CANARY = "Zyxqorvian"


def write(many: int, seed: int) -> tuple[list[str], list[str]]:
    """Texts of one topic each, with its label and a name."""
    draw = np.random.default_rng(seed)
    numbers = draw.integers(0, 4, many).tolist()
    texts = [
        f"The {draw.choice(TOPICS[k])} and the {draw.choice(TOPICS[k])} of {NOUNS[50 + i % 10].title()}."
        for i, k in enumerate(numbers)
    ]
    return texts, [f"topic {k}" for k in numbers]


PRIVATE, LABELS = write(400, 1)
PUBLIC, _ = write(4000, 2)


def find_cells(texts: Sequence[str]) -> Ids:
    """The topic of a text, by its first noun; the last cell where there is none."""
    cells = {noun: k for k, topic in enumerate(TOPICS) for noun in topic}
    found = (next((cells[w] for w in text.split() if w in cells), 3) for text in texts)
    return np.fromiter(found, np.int64, len(texts))


class Library:
    """Puts a public text of the drawn cell in the place of each."""

    def __init__(self, epsilon: float) -> None:
        self.mechanism, self.seeds = RandomizedResponse(4, epsilon), count(1, 7)
        self.pools = [np.flatnonzero(find_cells(PUBLIC) == k) for k in range(4)]

    def __call__(self, texts: Sequence[str]) -> list[str]:
        seed, n = next(self.seeds), len(texts)
        drawn = self.mechanism.draw(open_draws(n, seed), find_cells(texts))
        place = open_draws(n, seed + 1).integers(np.array([len(p) for p in self.pools])[drawn])
        return [PUBLIC[self.pools[k][i]] for k, i in zip(drawn, place, strict=True)]


def keep(texts: Sequence[str]) -> Sequence[str]:
    return texts


def silence(texts: Sequence[str]) -> Sequence[str]:
    return [PUBLIC[0]] * len(texts)


def make_case(release: Callable[[Sequence[str]], Sequence[str]], epsilon: float = 4.0) -> TextCase:
    return TextCase.create(
        release, PRIVATE, epsilon=epsilon, public=PUBLIC, find_cells=find_cells, pair_count=1
    )


OPTIONS: dict[str, dict[str, Any]] = {
    "membership": {"trials": 4000},
    "attribute": {"labels": LABELS},
    "words": {"common": 0.5},
}


def found(case: TextCase, name: str) -> dict[str, tuple[float, float]]:
    """The mean and the baseline of each headline outcome."""
    attack = load_text_attack(name, OPTIONS[name])
    assert attack.refusal(case) == ""
    outcomes = attack.run(case, rng=SeededRandomness(5))
    return {
        f"{o.metric} {o.setting.get('learned from', '')}".strip(): (
            float(o.values.mean()),
            o.baseline or 0.0,
        )
        for o in outcomes
        if o.headline
    }


@pytest.mark.parametrize("name", TEXT_ATTACKS)
def test_it_wins_where_nothing_is_changed_and_loses_where_nothing_is_said(name: str) -> None:
    won, lost = found(make_case(keep), name), found(make_case(silence), name)
    assert won.keys() == lost.keys() != set()
    assert all(value >= 0.99 for value, _ in won.values())
    assert all(abs(value - baseline) <= 0.06 for value, baseline in lost.values())


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_by_a_public_library_no_attack_is_above_its_bound(epsilon: float) -> None:
    case = make_case(Library(epsilon), epsilon)
    error = 5 * 0.5 / math.sqrt(len(PRIVATE))
    ((advantage, _),) = found(case, "membership").values()
    law = RandomizedResponse(4, epsilon).law()
    exact = law[0, 0] - law[0, 1]  # below the bound: other cells are as likely from both
    assert advantage == pytest.approx(exact, abs=0.08)
    assert exact < bound_advantage(epsilon)
    accuracies = found(case, "attribute")
    share = accuracies["accuracy cells"][1]
    assert accuracies["accuracy cells"][0] == pytest.approx(law[0, 0], abs=error)
    for value, _ in accuracies.values():
        assert value <= bound_accuracy(share, epsilon) + error
    for value, chance in found(case, "words").values():
        assert value - chance <= bound_advantage(epsilon)
    assert found(case, "words")["names"][0] == pytest.approx(0.1, abs=error)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_membership_in_noisy_counts_reaches_its_bound(epsilon: float) -> None:
    seeds = count(1)

    def run(counted: Counted) -> tuple[float, str]:
        pair = WorldPair(
            name="one document more",
            program=lambda world, many: counted(world, many, next(seeds)),
            first=OTHERS,
            second=(*OTHERS, 4),
            epsilon=epsilon,
        )
        case = TextCase(epsilon=epsilon, pairs=(pair,))
        findings = attack_texts(case, [load_text_attack("membership", {"trials": 20_000})])
        (row,) = findings.rows
        assert row.low < row.value < row.high or row.value == 1
        return row.value, row.note

    value, note = run(Counted(NoisyCount(epsilon)))
    assert value == pytest.approx(math.tanh(epsilon / 2), abs=0.04)
    assert note == f"at most {math.tanh(epsilon / 2):.3f} at epsilon {epsilon:g}"
    # an empty bin is 0 for certain, one that holds the document only by chance
    missed = math.tanh(epsilon / 2) * math.exp(-epsilon)
    seen = run(Counted(NoisyCount(epsilon), seen_only=True))[0]
    assert seen == pytest.approx(1 - missed, abs=0.04)
    assert run(Counted(NoisyCount(epsilon), noiseless=True))[0] == 1.0


def test_a_replacement_at_the_price_of_an_addition_is_left_to_the_ratio() -> None:
    (twin,) = (twin for twin in TWINS if twin.defect.startswith("replaced"))
    pair = WorldPair(
        name="replaced",
        program=lambda world, many: twin.broken(world, many, sum(world)),
        first=twin.first,
        second=twin.second,
        epsilon=twin.epsilon,
    )
    case = TextCase(epsilon=twin.epsilon, pairs=(pair,))
    assert found(case, "membership")["advantage"][0] <= bound_advantage(twin.epsilon) + 0.04


def test_bounds_are_those_of_randomised_response() -> None:
    for epsilon in (0.5, 1.0, 4.0):
        assert bound_accuracy(0.25, epsilon) == pytest.approx(
            RandomizedResponse(4, epsilon).law()[0, 0]
        )
        law = RandomizedResponse(2, epsilon).law()
        assert bound_advantage(epsilon) == pytest.approx(law[0, 0] - law[0, 1])
    assert bound_accuracy(0.3, 0.0) == pytest.approx(0.3)


def test_all_attacks_stand_in_one_table_without_a_text() -> None:
    texts = [f"{text} {CANARY}{i}" for i, text in enumerate(PRIVATE)]
    case = TextCase.create(Library(4.0), texts, epsilon=4.0, public=PUBLIC, find_cells=find_cells)
    attacks = [load_text_attack(name, OPTIONS[name]) for name in TEXT_ATTACKS]
    findings = attack_texts(case, attacks, rng=SeededRandomness(1))
    rows = findings.to_json()["rows"]
    assert {row["attack"] for row in rows} == set(TEXT_ATTACKS)
    assert {row["slice"] for row in rows} == {"all", "length"}
    assert CANARY not in f"{case} {findings} {findings.to_json()} {attacks}"
    assert all(isinstance(each, TextAttack) for each in attacks)
    assert len(attack_texts(case, attacks[:1]).rows) == 3  # pairs of neighbouring cells


def test_a_corpus_is_not_judged_text_by_text() -> None:
    case = TextCase(epsilon=1.0, texts=tuple(PRIVATE), public=tuple(PUBLIC))
    attacks = [load_text_attack(name, OPTIONS[name]) for name in TEXT_ATTACKS]
    findings = attack_texts(case, attacks)
    assert findings.rows == ()
    assert set(findings.refused) == set(TEXT_ATTACKS)
    assert load_text_attack("attribute").refusal(case).startswith("it needs labels")
    unknown = TextCase(epsilon=1.0, texts=("a",), released=("b",))
    assert "public texts" in load_text_attack("words").refusal(unknown)
    with pytest.raises(ConfigError, match="one released text for each of 2"):
        TextCase(epsilon=1.0, texts=("a", "b"), released=("c",))
    with pytest.raises(ConfigError, match="labels must be one for each of the 400 texts, not 10"):
        next(
            load_text_attack("attribute", {"labels": ["x"] * 5 + ["y"] * 5}).run(
                make_case(silence), rng=SeededRandomness(1)
            )
        )
    with pytest.raises(UnknownName):
        load_text_attack("linkage")
    with pytest.raises(ConfigError, match="only once"):
        attack_texts(case, [attacks[0], attacks[0]])


def test_a_program_that_rewrites_whole_texts_is_judged_without_a_promise() -> None:
    def rewrite(texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts]

    case = TextCase.create(rewrite, PRIVATE[:60], epsilon=math.inf, public=PUBLIC)
    attacks = [load_text_attack("membership", {"trials": 1000}), load_text_attack("words")]
    findings = attack_texts(case, attacks, rng=SeededRandomness(1))
    assert not findings.refused
    assert {row.value for row in findings.rows if row.source == "membership"} == {1.0}
