"""The joint attack on a case, and the union against a text worked by hand."""

import numpy as np
import pytest
from tests.evaluate.attack.test_window import PASS, PROTECT, table_of
from tests.fixtures import NOUNS

from textveil.evaluate.attack import Case, joint_posterior
from textveil.mechanism import Layout
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil_bench.attack import attack
from textveil_bench.attack.window import WindowAttack, join_outputs

# ---- the union -----------------------------------------------------------------------------------


def test_union_by_hand():
    """Texts of three words (one passes between them), of none, and of one."""
    layout = Layout(
        roles=np.array([PROTECT, PASS, PROTECT, PROTECT, PROTECT], np.int8),
        documents=np.array([0, 4, 4, 5]),
        unit_of=np.arange(5),
    )
    drawn = np.array([7, 8, 9, 5])
    assert join_outputs(layout, drawn).tolist() == [[-1, 7, 8], [7, 8, 9], [8, 9, -1], [-1, 5, -1]]
    assert join_outputs(layout, drawn, reach=0).tolist() == [[7], [8], [9], [5]]
    assert join_outputs(layout, drawn, reach=2)[0].tolist() == [-1, -1, 7, 8, 9]
    assert join_outputs(Layout.build(), np.zeros(0, np.int64)).shape == (0, 3)


# ---- the attack ----------------------------------------------------------------------------------


def test_rates_of_a_case(monkeypatch):
    monkeypatch.setattr(joint_posterior, "MIN_REHEARSAL_WORDS", 300)
    table = table_of(60, 24)
    case = Case.create(
        Privatizer("d-chi-stencil", eta=60.0, L=4, table=table, seed=2), [" ".join(NOUNS)] * 5
    )
    found = attack(case, [WindowAttack(prior="uniform")], rng=SeededRandomness(4))
    rows = {row.metric: row for row in found.rows if row.slice == "all"}
    assert list(rows) == [
        "top-1",
        "top-3",
        "top-5",
        "stated top-1",
        "Brier score",
        "union of 3 outputs",
    ]
    assert 0.3 < rows["top-1"].value < rows["top-3"].value <= rows["top-5"].value
    assert rows["top-1"].baseline == pytest.approx(1 / 60)
    assert rows["top-5"].baseline == pytest.approx(5 / 60)
    seen = join_outputs(case.view.layout, case.view.output_rows) == case.truth.rows[:, None]
    assert rows["union of 3 outputs"].value == seen.any(axis=1).mean()
    assert 0.01 < rows["Brier score"].value < 0.25  # of who always says 1/2: 0.25
    again = attack(case, [WindowAttack(prior="unigram")], rng=SeededRandomness(4))
    assert all(
        row.setting == {"prior": "unigram"} for row in again.rows if row.metric.startswith("top")
    )


@pytest.mark.parametrize(
    ("name", "options"), [("noise", {"eta": 30.0}), ("exponential", {"c": 5.0})]
)
def test_mechanisms_without_a_window_are_refused(name, options):
    case = Case.create(Privatizer(name, table=table_of(60, 8), **options), ["lemon river"])
    found = attack(case, [WindowAttack()])
    assert found.rows == ()
    assert "mixes no neighbours" in found.refused["window"]


def test_no_texts_are_refused():
    case = Case.create(Privatizer("stencil", table=table_of(60, 8)), ["", "the"])
    assert attack(case, [WindowAttack()]).refused["window"] == "nothing was drawn"
