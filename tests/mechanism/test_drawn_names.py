"""Typed names: drawn from the right list, with the promised law, and never another's."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.detectors import Finds
from tests.lanes import first_of_each

from textveil.config.sections import NameOptions
from textveil.errors import BudgetError, ConfigError
from textveil.mechanism import Block, Layout
from textveil.mechanism.drawn_names import NAME_LABELS, NameSampler
from textveil.pipeline.privatizer import Privatizer
from textveil.protect.protection import Protection
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import load_table
from textveil.text.name_lists import load_names

DRAWS = 4000
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def table():
    return load_table("minilm-s")


def drawn(names, table, words, labels, *, seed=1):
    rows, _ = table.lookup(words)
    order = tuple(dict.fromkeys(labels))
    group = np.array([order.index(label) for label in labels], np.int16)
    named = np.ones(len(words), bool)
    protection = Protection(public=~named, group=group, labels=order, named=named)
    found, spent = names.draw(
        protection, rows, np.array([0, len(words)]), rng=SeededRandomness(seed)
    )
    return [table.words[row] for row in found.tolist()], spent


@pytest.mark.parametrize("rule", first_of_each(["rankcape", "exponential"]))
def test_names_come_from_the_list_of_their_label(table, rule):
    names = NameSampler.build(
        NameOptions(types=("all",), rule=rule),
        frozenset({"PERSON", "LOCATION", "ORGANIZATION"}),
        table,
    )
    labels = [label for label in NAME_LABELS for _ in range(200)]
    found, spent = drawn(names, table, ["zyxqorvian", "maria"] * 500, labels)
    for label, (type_, kinds) in NAME_LABELS.items():
        listed = load_names(type_)
        own = {
            word.lower()
            for word, kind in zip(listed.words, listed.kinds, strict=True)
            if kinds is None or kind in kinds
        }
        assert {word for word, each in zip(found, labels, strict=True) if each == label} <= own
    assert (spent > 0).all()
    assert (spent <= 6).all()


@pytest.mark.parametrize("rule", ["rankcape", "exponential"])
def test_the_law_keeps_what_is_promised_for_any_two_words(table, rule):
    """Every word of the table, in the list or not, has one of the list's rows as input: all pairs of those suffice."""
    names = NameSampler.build(
        NameOptions(types=("LOCATION",), rule=rule, epsilon=4.0), frozenset({"LOCATION"}), table
    )
    listing = names.lists["LOCATION"]
    layout = Layout.build(len(listing.rows))
    rows = np.arange(len(listing.rows))
    _, spent = drawn(names, table, ["paris"], ["LOCATION"])
    claim = names.mechanism.claim(listing.table)
    own = np.full(
        len(rows), 4.0 if claim.kind == "ldp" else (4.0 - claim.additive) / claim.diameter
    )
    parameter = names.mechanism.calibrate(listing.table, layout, own)
    law = names.mechanism.log_probs(listing.table, Block(layout=layout, rows=rows), parameter)
    broken = names.mechanism.log_probs(
        listing.table, Block(layout=layout, rows=rows), 1.5 * parameter
    )
    assert law is not None
    assert broken is not None
    loss = (law.max(axis=0) - law.min(axis=0)).max()
    assert loss <= spent[0] + 1e-9 <= 4.0 + 1e-9
    assert (broken.max(axis=0) - broken.min(axis=0)).max() > 4.0, (
        "a rule with half more budget would be seen"
    )


def test_draws_follow_the_law(table):
    """Chi-square of 4,000 draws over the 20 nearest and the rest, at a false alarm rate of 1e-6."""
    names = NameSampler.build(NameOptions(types=("PERSON",), k=20), frozenset({"PERSON"}), table)
    found, _ = drawn(names, table, ["maria"] * DRAWS, ["PERSON given"] * DRAWS)
    listing = names.lists["PERSON given"]
    size = len(listing.rows)
    near = {
        listing.table.words[row]
        for row in listing.table.neighbours(np.array([listing.table.row_of["maria"]]), 20)[0]
    }
    seen = [sum(word == each for word in found) for each in sorted(near)]
    inside = math.exp(6) / (20 * math.exp(6) + size - 20)
    expected = np.array([inside] * 20 + [1 - 20 * inside]) * DRAWS
    observed = np.array([*seen, DRAWS - sum(seen)])
    assert chisquare(observed, expected).pvalue > FALSE_ALARM
    assert chisquare(np.roll(observed, 1), expected).pvalue < FALSE_ALARM, (
        "shifted by one it must fail"
    )


def test_unknown_words_have_a_place_in_the_list_by_a_public_function(table):
    names = NameSampler.build(NameOptions(types=("PERSON",)), frozenset({"PERSON"}), table)
    first, _ = drawn(names, table, ["zyxqorvian"] * 5, ["PERSON"] * 5, seed=3)
    again, _ = drawn(names, table, ["ZYXQORVIAN"] * 5, ["PERSON"] * 5, seed=3)
    assert first == again


def test_draws_of_a_text_do_not_depend_on_labels_of_its_neighbour(table):
    names = NameSampler.build(NameOptions(types=("all",)), frozenset({"PERSON", "LOCATION"}), table)
    rows, _ = table.lookup(["maria", "paris"])
    both, alone = (
        names.draw(
            Protection(
                public=np.zeros(n, bool),
                group=np.arange(n, dtype=np.int16),
                labels=("PERSON", "LOCATION"),
                named=np.ones(n, bool),
            ),
            rows[:n],
            np.arange(n + 1),
            rng=SeededRandomness(4),
        )[0]
        for n in (2, 1)
    )
    assert both[0] == alone[0]


def test_what_is_refused(table, small_table):
    types = frozenset({"PERSON"})
    with pytest.raises(ConfigError, match="at least 20 names of PERSON"):
        NameSampler.build(NameOptions(types=("PERSON",)), types, small_table)
    with pytest.raises(ConfigError, match=r"names\.k"):
        NameSampler.build(NameOptions(types=("PERSON",), k=5000), types, table)
    with pytest.raises(BudgetError, match=r"names\.epsilon"):
        NameSampler.build(
            NameOptions(types=("PERSON",), rule="exponential", epsilon=1e-7), types, table
        )


def test_names_are_drawn_beside_a_projection_of_the_table(table):
    made = Privatizer(
        "noise",
        epsilon=5.0,
        table=table.project(16),
        protect={"detectors": [Finds(PERSON="Maria", LOCATION="Lisbon|Porto")]},
        names={"types": "PERSON"},
    )
    known = {word.lower() for word in load_names("PERSON").words}
    assert made.privatize("Maria sings").released.items[0].text in known


@pytest.mark.slow
def test_draws_of_a_text_do_not_depend_on_its_neighbours_length(table):
    def drawn(*texts):
        made = Privatizer(
            "rankcape", k=5, context="released", epsilon=3.0, table=table, seed=7,
            protect={"detectors": [Finds(PERSON="Maria", LOCATION="Lisbon|Porto")]}, names={"types": "all"},
        )  # fmt: skip
        return next(made.privatize_many(texts)).text

    assert drawn("river Lisbon apple") == drawn(
        "river Lisbon apple", "stone onion table water milk Lisbon"
    )
