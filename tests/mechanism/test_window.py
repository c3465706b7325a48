"""The window's matrix against tabled and closed-form constants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal.windows import gaussian

from textveil.errors import ConfigError
from textveil.mechanism import Layout, Role, Window


def column_sums(n: int, **options: object) -> np.ndarray:
    return Window(**options).get_matrix(Layout.build(n)).sum_columns()  # type: ignore[arg-type]


def dense(window: Window, layout: Layout) -> np.ndarray:
    mixing = window.get_matrix(layout)
    matrix = np.zeros((len(layout.positions), len(layout.roles)))
    for i, (columns, weights) in enumerate(zip(mixing.columns, mixing.weights, strict=True)):
        np.add.at(matrix[i], columns, weights)
    return matrix


TABLE = [
    # L, sigma, C_0 C_1 C_2, C_{n-2} C_{n-1}; n = 30
    (2, 0.3, (0.5, 1, 1), (1, 1.5)),
    (2, 1.7, (0.5, 1, 1), (1, 1.5)),
    (3, 0.75, (0.9343, 1.0657, 1), (1.0657, 0.9343)),
    (4, 0.75, (0.5333, 0.9610, 1.0056), (1.1056, 1.3888)),
    (5, 0.75, (0.9319, 1.0598, 1.0080), (1.0598, 0.9319)),
    (5, 1.25, (0.8573, 1.0624, 1.0709), (1.0624, 0.8573)),
    (9, 0.75, (0.9319, 1.0598, 1.0080), (1.0598, 0.9319)),
    (9, 1.0, (0.8862, 1.0713, 1.0355), (1.0713, 0.8862)),
]


@pytest.mark.parametrize(("L", "sigma", "first", "last"), TABLE)
def test_column_sums_meet_the_table(
    L: int, sigma: float, first: tuple[float, ...], last: tuple[float, ...]
) -> None:
    sums = column_sums(30, L=L, sigma=sigma)
    assert sums[:3] == pytest.approx(first, abs=5e-5)
    assert sums[-2:] == pytest.approx(last, abs=5e-5)


def test_left_side_mirrors_right_side() -> None:
    right = column_sums(30, L=4, sigma=0.75, side="right")
    assert column_sums(30, L=4, sigma=0.75, side="left") == pytest.approx(right[::-1])


def test_weights_are_the_gaussian_window() -> None:
    row = dense(Window(L=4, sigma=0.75), Layout.build(30))[10]
    assert row[9:13] == pytest.approx((0.072, 0.428, 0.428, 0.072), abs=5e-4)
    for L, sigma in [(3, 0.5), (5, 1.25), (8, 2.0), (9, 0.75)]:
        weights = gaussian(L, sigma) / gaussian(L, sigma).sum()
        row = dense(Window(L=L, sigma=sigma), Layout.build(30))[15]
        assert row[row > 0] == pytest.approx(weights)


@pytest.mark.parametrize(("n", "supremum"), [(3, 4 / 3), (5, 1.3667), (9, 1.3802)])
def test_flat_odd_windows_reach_their_supremum(n: int, supremum: float) -> None:
    assert column_sums(n, L=n, sigma=1e6)[n // 2] == pytest.approx(supremum, abs=5e-5)


@pytest.mark.parametrize("L", [2, 3, 4, 5, 8, 9])
def test_inner_columns_sum_to_one(L: int) -> None:
    sums = column_sums(30, L=L, sigma=0.9)
    assert sums[L - 1 : 30 - L + 1] == pytest.approx(1.0, abs=1e-12)


@settings(deadline=None)
@given(
    roles=st.lists(
        st.sampled_from([Role.PASS, Role.PROTECT, Role.PROTECT, Role.HOLE]), min_size=1, max_size=40
    ),
    cuts=st.lists(st.integers(0, 40), max_size=3),
    L=st.integers(1, 11),
    sigma=st.floats(0.01, 50),
    side=st.sampled_from(["left", "right"]),
    over=st.sampled_from(["protected", "all"]),
)
def test_rows_are_means_of_their_own_text(
    roles: list[Role], cuts: list[int], L: int, sigma: float, side: str, over: str
) -> None:
    total = len(roles)
    documents = np.array([0, *sorted(min(cut, total) for cut in cuts), total])
    layout = Layout(roles=np.array(roles, np.int8), documents=documents, unit_of=np.arange(total))
    matrix = dense(Window(L=L, sigma=sigma, side=side, window_over=over), layout)  # type: ignore[arg-type]
    assert (matrix >= 0).all()
    assert matrix.sum(axis=1) == pytest.approx(np.ones(len(matrix)))
    text = np.searchsorted(documents, np.arange(total), side="right")
    for i, position in enumerate(layout.positions):
        used = np.flatnonzero(matrix[i])
        assert position in used
        assert (text[used] == text[position]).all()
        assert Role.HOLE not in layout.roles[used]
        assert over == "all" or (layout.roles[used] == Role.PROTECT).all()
    assert (matrix.sum(axis=0)[layout.positions] < 2).all()


def test_the_window_closes_up_over_protected_words_or_keeps_public_ones() -> None:
    layout = Layout(
        roles=np.array([Role.PROTECT, Role.PASS, Role.PROTECT], np.int8),
        documents=np.array([0, 3]),
        unit_of=np.arange(3),
    )
    closed = dense(Window(L=3, sigma=1.0), layout)
    assert closed[0, 1] == 0
    assert closed[0, 2] > 0
    kept = dense(Window(L=3, sigma=1.0, window_over="all"), layout)
    assert kept[0, 1] > 0
    assert kept[0, 2] == 0


@pytest.mark.parametrize("n", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("L", [3, 4, 5, 8])
def test_balanced_columns_sum_to_one(n: int, L: int) -> None:
    assert column_sums(n, L=L, sigma=0.75, balanced=True) == pytest.approx(
        1.0, abs=1e-9 if L % 2 else 1e-3
    )


def test_balance_is_refused_where_it_cannot_be() -> None:
    with pytest.raises(ConfigError, match="two words"):
        Window(L=2, balanced=True)
    with pytest.raises(ConfigError, match="protected"):
        Window(L=3, balanced=True, window_over="all")


def test_unequal_rates_spend_what_the_matrix_says() -> None:
    """A word with eta 1 between words with eta 4 (L=5, sigma 1.25) spends 3.00, not eta * C = 1."""
    rate = np.full(30, 4.0)
    rate[15] = 1.0
    mixing = Window(L=5, sigma=1.25).get_matrix(Layout.build(30))
    assert mixing.spend(rate)[15] == pytest.approx(3.00, abs=5e-3)
    naive = rate[15] * mixing.sum_columns()[15]
    assert naive == pytest.approx(1.0)


@settings(deadline=None)
@given(
    budgets=st.lists(st.floats(0.01, 1000), min_size=1, max_size=30),
    L=st.integers(1, 9),
    sigma=st.floats(0.1, 5),
)
def test_no_word_spends_more_than_its_budget(budgets: list[float], L: int, sigma: float) -> None:
    wanted = np.array(budgets)
    mixing = Window(L=L, sigma=sigma).get_matrix(Layout.build(len(wanted)))
    spent = mixing.spend(mixing.compute_rates(wanted))
    assert (spent <= wanted * (1 + 1e-12)).all()
    if L == 1:
        assert spent == pytest.approx(wanted)


def test_a_noiseless_row_makes_every_word_in_its_window_infinite() -> None:
    rate = np.full(9, 1.0)
    rate[4] = np.inf
    spent = Window(L=3, sigma=1.0).get_matrix(Layout.build(9)).spend(rate)
    assert np.isinf(spent).tolist() == [False, False, False, True, True, True, False, False, False]


def test_balanced_weights_do_not_depend_on_the_texts_beside() -> None:
    window = Window(L=4, sigma=0.9, balanced=True)
    alone = window.get_matrix(Layout.build(9)).weights
    assert (window.get_matrix(Layout.build(9, 40)).weights[:9] == alone).all()
