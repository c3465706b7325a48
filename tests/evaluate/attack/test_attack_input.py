"""What an attacker sees is what was released; what is secret is apart."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil.evaluate.attack import Case
from textveil.mechanism import Role
from textveil.pipeline.privatizer import Privatizer
from textveil.table.embedding import EmbeddingTable

CANARY = "zzcanaryzz"
TEXTS = ("The lemon and the castle.", "", f"Apple pillow {CANARY} river, is it?")


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 3))


@pytest.fixture(scope="module")
def case(table):
    return Case.create(Privatizer("noise", epsilon=5, table=table, seed=1), TEXTS)


def test_rows_are_the_words_shown(case, table):
    view = case.view
    assert [table.words[row] for row in view.output_rows] == [view.items[i] for i in view.item]
    assert view.text.tolist() == [0, 0, 2, 2, 2, 2]
    assert view.documents.tolist() == [0, 6, 6, 14]
    assert case.lengths.tolist() == [6, 0, 8]
    assert case.secret_words == ("lemon", "castle", "Apple", "pillow", CANARY, "river")
    assert table.lookup(case.secret_words)[0].tolist() == case.truth.rows.tolist()


def test_passing_words_are_known_and_others_are_not(case):
    view = case.view
    protected = view.layout.roles == Role.PROTECT
    assert (view.pass_rows[protected] == -1).all()
    assert (view.pass_rows[~protected] >= 0).all()


def test_the_view_holds_no_private_word(case):
    """Everything that can be reached from a view, as it is shown and as it is stored."""
    seen = [
        repr(case),
        repr(case.view),
        repr(case.truth),
        str(case.view.items),
        str(case.view.released),
    ]
    seen += [str(value) for value in vars(case.view).values()]
    assert not any(CANARY in each for each in seen)


def test_a_view_made_from_another_remembers_nothing_of_it(case):
    first = replace(case.view)
    first.memo["anything"] = 1
    assert not replace(first, output_rows=first.output_rows[::-1].copy()).memo


def test_placeholders_are_minus_one(table):
    case = Case.create(Privatizer("placeholder", table=table), TEXTS)
    assert (case.view.output_rows == -1).all()
    assert len(case.view.output_rows) == 6


def test_after_is_of_the_same_draw(table):
    privatizer = Privatizer("noise", epsilon=5, table=table)
    rehearsal = privatizer.rehearse(TEXTS)
    case = Case.build(privatizer, rehearsal)
    assert [each.text for each in case.view.released] == [each.text for each in rehearsal.results]
    assert case.truth.texts == TEXTS
    assert np.array_equal(case.view.output_rows, rehearsal.drawn_rows)


def test_no_texts(table):
    case = Case.create(Privatizer("noise", epsilon=5, table=table), [])
    assert len(case.view.output_rows) == 0
    assert case.view.documents.tolist() == [0]
