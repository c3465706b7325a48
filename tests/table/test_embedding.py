"""The embedding table: what can be built, where words go, what is near, and what a projection costs."""

import dataclasses
import hashlib
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fixtures import NOUNS, gaussian_rows

from textveil.errors import ConfigError, InputError, TableError, UnknownName
from textveil.pipeline.privatizer import Privatizer
from textveil.table.embedding import MAX_SPLIT_CHARACTERS, EmbeddingTable, load_table
from textveil.table.quantized import compute_norms

# Made once here too: Hypothesis takes no fixtures of a function.
CHORD = EmbeddingTable.build(name="chord", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
RAW = EmbeddingTable.build(
    name="raw", words=NOUNS, vectors=gaussian_rows(60, 8, 7), metric="euclidean"
)
BOTH = pytest.mark.parametrize("table", [CHORD, RAW], ids=["chord", "euclidean"])

ROWS = st.integers(0, 59)

STRANGE = {
    "unknown": "zyxqorvian",
    "upper": "ZYXQORVIAN",
    "number": "31415926",
    "decimal": "3,141.59",
    "emoji": "😀",
    "family": "👩‍👩‍👧‍👦",
    "flag": "🇩🇪",
    "han": "日",
    "kana": "カタカナ",
    "hangul": "한국어",
    "arabic": "مرحبا",
    "hebrew": "שלום",
    "combining": "e\u0301\u0302\u0303",
    "mark": "\u0301",
    "control": "\x00",
    "controls": "\x01\x02\x7f\x85",
    "bidi": "\u202eabc\u202c",
    "zero width": "\u200b\u200d\ufeff",
    "private": "\ue000",
    "unassigned": "\U000e0fff",
    "last": "\U0010ffff",
    "special": "[UNK]",
    "continuation": "##ing",
    "space": " ",
    "empty": "",
    "letters": "q" * 90,
    "200 pieces": "qx" * 100,
    "endless": "a" * 100_000,
    "endless han": "日" * 100_000,
}


def pairwise(rows: np.ndarray) -> np.ndarray:
    """All distances, the slow and sure way."""
    values = rows.astype(np.float64)
    return np.sqrt(((values[:, None] - values[None]) ** 2).sum(axis=2))


# ---- building --------------------------------------------------------------------------------------------


def build(words=("a", "b", "c"), vectors=None, **options):
    rows = np.eye(3, dtype=np.float32) if vectors is None else vectors
    return EmbeddingTable.build(name="t", words=words, vectors=rows, **options)


def test_chord_normalises_and_euclidean_keeps():
    rows = gaussian_rows(60, 8, 7)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    assert np.allclose(compute_norms(CHORD.vectors.astype(np.float64)), 1, atol=1e-6)
    np.testing.assert_allclose(CHORD.vectors * lengths[:, None], rows, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(RAW.vectors, rows)
    for table in (CHORD, RAW):
        np.testing.assert_allclose(table.norms, lengths, rtol=1e-6)
        assert (len(table), table.dimension, table.vectors.dtype.name) == (60, 8, "float32")
        assert table.words == tuple(NOUNS)


def test_rows_of_any_length_and_type_are_normalised():
    rows = np.eye(3)
    table = build(vectors=rows * [[1e-30], [1.0], [1e30]])
    np.testing.assert_allclose(table.vectors, np.eye(3), atol=1e-6)
    assert build(vectors=2 * np.eye(3, dtype=np.float16)).vectors.dtype == np.float32
    assert build(vectors=np.eye(3)).vectors.dtype == np.float32
    assert build(vectors=np.eye(3, dtype=np.int64)).vectors.dtype == np.float32


def test_the_caller_may_go_on_with_its_vectors():
    rows = gaussian_rows(3, 4, 1)
    kept = rows.copy()
    build(vectors=rows)
    np.testing.assert_array_equal(rows, kept)


@pytest.mark.parametrize("metric", ["chord", "euclidean"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_vectors_must_be_finite(metric, bad):
    rows = np.eye(3)
    rows[1, 2] = bad
    with pytest.raises(TableError, match="finite"):
        build(vectors=rows, metric=metric)


def test_chord_refuses_a_zero_row_and_euclidean_takes_it():
    rows = np.eye(3, dtype=np.float32)
    rows[2] = 0
    with pytest.raises(TableError, match="zero rows"):
        build(vectors=rows)
    table = build(vectors=rows, metric="euclidean")
    assert table.distances(np.array([2]))[0].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("words", [("a", "b", "a"), ("a", "", "c")])
def test_words_must_be_distinct_and_not_empty(words):
    with pytest.raises(TableError, match="distinct"):
        build(words=words)


@pytest.mark.parametrize("word", ["a\nb", "\r", "\x85", "\u2028", "\x1b[1m", "\x00", "\ud800"])
def test_words_must_fit_into_a_line(word):
    with pytest.raises(TableError, match=r"without line breaks|distinct and not empty"):
        EmbeddingTable.build(name="wrong", words=["a", word], vectors=np.eye(2))


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        (("a", "b"), (3, 3)),
        (("a", "b", "c", "d"), (3, 3)),
        (("a",), (1, 3)),
        ((), (0, 3)),
        (("a", "b", "c"), (3,)),
        (("a", "b", "c"), (3, 1, 1)),
        (("a", "b", "c"), (3, 0)),
    ],
)
def test_words_and_vectors_must_fit(words, shape):
    with pytest.raises(TableError, match="one row per word"):
        build(words=words, vectors=np.ones(shape, np.float32))


@pytest.mark.parametrize("metric", ["cosine", "chrod", ""])
def test_unknown_metric(metric):
    with pytest.raises(ConfigError, match="chord or euclidean"):
        build(metric=metric)


@pytest.mark.parametrize("device", ["cuda:77", "tpu", "meta-physical"])
def test_a_device_that_is_not_there(device):
    with pytest.raises(ConfigError, match="not available"):
        build(device=device)


def test_repr_is_short():
    assert len(repr(CHORD)) < 200
    assert "tensor" not in repr(CHORD)


# ---- nearest ---------------------------------------------------------------------------------------------


def brute_nearest(table: EmbeddingTable, queries: np.ndarray, exclude=None) -> np.ndarray:
    rows = table.vectors.astype(np.float64)
    if table.metric == "chord":
        costs = -(queries @ rows.T) / np.linalg.norm(queries, axis=1, keepdims=True)
    else:
        costs = ((queries[:, None] - rows[None]) ** 2).sum(axis=2)
    if exclude is not None:
        costs[np.arange(len(queries)), exclude] = np.inf
    return costs.argmin(axis=1)


@BOTH
@pytest.mark.parametrize("length", [0.05, 1.0, 40.0])
def test_nearest_is_brute_force(table, length):
    queries = np.random.default_rng(3).normal(size=(3000, 8)) * length
    found = table.nearest(queries)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, brute_nearest(table, queries))
    assert len(set(found.tolist())) > (20 if table.metric == "chord" or length == 1.0 else 0)


def test_chord_and_euclidean_differ_where_lengths_matter():
    queries = np.random.default_rng(3).normal(size=(500, 8))
    assert (brute_nearest(CHORD, queries) != brute_nearest(RAW, queries)).mean() > 0.2


@BOTH
def test_nearest_excludes_one_row_per_query(table):
    queries = np.random.default_rng(4).normal(size=(1000, 8))
    best = table.nearest(queries)
    second = table.nearest(queries, exclude=best)
    np.testing.assert_array_equal(second, brute_nearest(table, queries, exclude=best))
    assert (second != best).all()


@BOTH
def test_every_row_is_nearest_to_itself(table):
    np.testing.assert_array_equal(table.nearest(table.vectors), np.arange(60))
    assert (table.nearest(table.vectors, exclude=np.arange(60)) != np.arange(60)).all()


@BOTH
def test_nearest_of_nothing(table):
    assert table.nearest(np.empty((0, 8))).shape == (0,)


def test_a_zero_query_has_a_row():
    assert CHORD.nearest(np.zeros((1, 8))).tolist() == [0]


# ---- distances -------------------------------------------------------------------------------------------


@BOTH
def test_distances_are_brute_force(table):
    expected = pairwise(table.vectors)
    found = table.distances(np.arange(60))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(table.distances(np.array([5, 5, 2])), expected[[5, 5, 2]], atol=1e-7)
    assert table.distances(np.empty(0, np.int64)).shape == (0, 60)


@BOTH
@given(x=ROWS, y=ROWS, z=ROWS)
def test_distances_are_a_metric(table, x, y, z):
    d = table.distances(np.array([x, y, z]))
    assert d[0, x] == d[1, y] == d[2, z] == 0.0
    assert (d[0, y] > 0) == (x != y)
    assert d[0, y] == pytest.approx(d[1, x], abs=1e-9)
    assert d[0, z] <= d[0, y] + d[1, z] + 1e-9


def test_half_the_squared_chord_is_no_metric():
    """What the test above would say of the cosine distance."""
    d = CHORD.distances(np.arange(60)) ** 2 / 2
    assert any(
        d[x, z] > d[x, y] + d[y, z] + 1e-3 for x, y, z in itertools.permutations(range(30), 3)
    )


@BOTH
def test_diameter_is_the_largest_distance(table):
    largest = pairwise(table.vectors).max()
    assert largest <= table.diameter <= largest * (1 + 1e-6)


def test_chord_is_at_most_two():
    table = build(words=("a", "b"), vectors=np.array([[5.0, 0.0], [-0.1, 0.0]]))
    assert table.diameter == pytest.approx(2.0, abs=1e-6)


# ---- words to rows ---------------------------------------------------------------------------------------


@pytest.fixture(
    scope="session",
    params=["small_table", "raw_table", "pieces_table", "wordpiece_table", "bpe_table"],
)
def any_table(request):
    return request.getfixturevalue(request.param)


def test_words_of_the_table_are_themselves(any_table):
    rows, known = any_table.lookup(any_table.words)
    assert known.all()
    assert known.dtype == bool
    np.testing.assert_array_equal(rows, np.arange(len(any_table)))


def test_case_is_folded(small_table):
    rows, known = small_table.lookup(["River", "RIVER", "river", "rIvEr"])
    assert known.all()
    assert set(rows.tolist()) == {NOUNS.index("river")}


def test_a_word_as_it_stands_comes_before_its_lower_case():
    table = build(words=("us", "US", "May"))
    rows, known = table.lookup(["us", "US", "Us", "May", "may"])
    assert rows[:4].tolist() == [0, 1, 0, 2]
    assert known.tolist() == [True, True, True, True, False]


def test_every_string_has_a_row(any_table):
    rows, known = any_table.lookup(list(STRANGE.values()))
    assert rows.dtype == np.int64
    assert rows.shape == known.shape == (len(STRANGE),)
    assert ((rows >= 0) & (rows < len(any_table))).all()
    for word, is_known in zip(STRANGE.values(), known.tolist(), strict=True):
        assert is_known == (word in any_table.words or word.lower() in any_table.words)


def test_lookup_is_the_same_every_time_and_for_every_company(any_table):
    """A public function of the word alone: neither order nor neighbours nor an earlier call count."""
    words = list(STRANGE.values())
    together, known = any_table.lookup(words)
    backwards, _ = any_table.lookup(words[::-1])
    twice, _ = any_table.lookup(words + words)
    alone = [any_table.lookup([word])[0].item() for word in words]
    np.testing.assert_array_equal(backwards[::-1], together)
    np.testing.assert_array_equal(twice, np.concatenate([together, together]))
    assert alone == together.tolist()
    assert any_table.lookup(words)[1].tolist() == known.tolist()


@pytest.mark.parametrize("metric", ["chord", "euclidean"])
@pytest.mark.parametrize(("count", "dimension"), [(60, 8), (97, 33), (203, 50)])
def test_ties_do_not_depend_on_other_words(count, dimension, metric):
    """The mean of two unit rows is as near to one as to the other, and equal rows are always tied."""
    vectors = gaussian_rows(count, dimension, 17)
    vectors[count - 1], vectors[count // 2] = vectors[3], vectors[5]
    table = EmbeddingTable.build(
        name="ties", words=[f"q{i}z" for i in range(count)], vectors=vectors, metric=metric
    )
    unknown = [f"q{i}zq{(7 * i + 3) % count}z" for i in range(count)] + [
        "q3z!",
        "q5z!",
        f"!q{count - 1}z",
    ]
    together, _ = table.lookup(unknown)
    alone = np.array([table.lookup([word])[0].item() for word in unknown])
    by_seven = np.concatenate(
        [table.lookup(unknown[i : i + 7])[0] for i in range(0, len(unknown), 7)]
    )
    differing = int((together != alone).sum()), int((together != by_seven).sum())
    assert differing == (0, 0)


def test_a_fresh_table_looks_up_the_same(small_table):
    again = EmbeddingTable.build(name="again", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
    words = list(STRANGE.values())
    np.testing.assert_array_equal(again.lookup(words)[0], small_table.lookup(words)[0])


@settings(max_examples=200)
@given(words=st.lists(st.text(), max_size=8))
@example(words=["\x00", "river", ""])
def test_lookup_is_total(words):
    rows, known = CHORD.lookup(words)
    assert ((rows >= 0) & (rows < 60)).all()
    assert known.tolist() == [word in NOUNS or word.lower() in NOUNS for word in words]
    for word, row in zip(words, rows.tolist(), strict=True):
        if word.lower() in NOUNS:
            assert row == NOUNS.index(word.lower())


def test_lookup_of_nothing(any_table):
    rows, known = any_table.lookup([])
    assert rows.shape == known.shape == (0,)


@pytest.mark.parametrize("name", ["small_table", "pieces_table"])
def test_a_lone_surrogate_is_refused_without_the_word(name, request):
    with pytest.raises(InputError, match="lone surrogate") as caught:
        request.getfixturevalue(name).lookup(["zyxqorvian\ud800"])
    assert "zyxqorvian" not in str(caught.value)


def test_surrogate_is_the_row_nearest_to_the_mean_of_its_pieces(pieces_table, wordpiece_tokenizer):
    words = ["rivers", "Riverer", "zyxqorvian", "candlestone", "windowing", "qx" * 30]
    rows, known = pieces_table.lookup(words)
    assert not known.any()
    for word, row in zip(words, rows.tolist(), strict=True):
        ids = wordpiece_tokenizer.encode(word, add_special_tokens=False).ids
        mean = pieces_table.pieces.vectors[ids].astype(np.float64).mean(axis=0)
        assert len(ids) >= 2
        assert row == brute_nearest(pieces_table, mean[None]).item()


def test_a_word_without_pieces_goes_to_the_public_hash(pieces_table, wordpiece_tokenizer):
    assert wordpiece_tokenizer.encode("\x00", add_special_tokens=False).ids == []
    row = pieces_table.lookup(["\x00"])[0].item()
    assert row == int.from_bytes(hashlib.blake2b(b"\x00", digest_size=8).digest(), "big") % 60


def test_without_pieces_a_word_is_split_greedily():
    vectors = np.eye(5, dtype=np.float32)
    vectors[4] = [1, 1, 1, 0, 0.5]
    table = EmbeddingTable.build(
        name="split", words=["sun", "flower", "sunflower", "bed", "mix"], vectors=vectors
    )
    rows, known = table.lookup(["sunflowers", "xxsunxx", "SunBedFlowerX", "flower-flower-bed"])
    assert not known.any()
    assert rows[0] == 2  # the longest word first
    assert rows[1] == 0  # what is in no word is left out
    assert rows[2] == 4  # sun + bed + flower is nearest to neither of them
    assert rows[3] == 1


def test_without_pieces_and_words_the_hash_decides(small_table):
    words = [f"{i}" for i in range(2000)]
    rows, known = small_table.lookup(words)
    assert not known.any()
    expected = [
        int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big") % 60
        for word in words
    ]
    assert rows.tolist() == expected
    assert len(set(expected)) == 60


def test_only_the_first_characters_are_split(small_table):
    assert small_table.lookup(["." * MAX_SPLIT_CHARACTERS + "river"])[0] != NOUNS.index("river")
    assert small_table.lookup(["." * (MAX_SPLIT_CHARACTERS - 5) + "river"])[0] == NOUNS.index(
        "river"
    )


def test_a_zero_mean_falls_back_to_the_hash():
    table = build(
        words=("up", "down", "side"), vectors=np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    )
    row = int.from_bytes(hashlib.blake2b(b"updown", digest_size=8).digest(), "big") % 3
    assert table.lookup(["updown"])[0].item() == row


def test_surrogates_keep_the_diameter(pieces_table):
    """Outside words are rows, so no two strings lie farther apart than the diameter."""
    words = [*STRANGE.values(), *NOUNS]
    rows, _ = pieces_table.lookup(words)
    between = pieces_table.distances(rows)[:, rows]
    assert between.max() <= pieces_table.diameter
    means = pieces_table.pieces.compose([word for word in words if word])[0]
    loose = compute_norms((means[:, None] - means).reshape(-1, means.shape[1])).max()
    assert loose > pieces_table.diameter  # the means themselves would break it


# ---- projections -----------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_a_projection_never_lengthens_a_distance(table, k):
    view = table.project(k)
    assert (len(view), view.dimension, view.lipschitz, view.metric) == (60, k, 1.0, table.metric)
    before, after = pairwise(table.vectors), pairwise(view.vectors)
    assert (after <= before + 1e-6).all()
    if k == 8:
        np.testing.assert_allclose(after, before, atol=1e-6)
    else:
        assert after.sum() < before.sum()


@BOTH
def test_a_projection_keeps_the_words_in_order(table):
    view = table.project(3)
    assert view.words == table.words
    assert view.parent is table
    axes = np.linalg.eigh(table.vectors.astype(np.float64).T @ table.vectors.astype(np.float64))[1][
        :, -3:
    ]
    gram = (table.vectors.astype(np.float64) @ axes) @ (table.vectors.astype(np.float64) @ axes).T
    np.testing.assert_allclose(view.vectors @ view.vectors.T, gram, atol=1e-5)


def test_a_projection_keeps_the_axes_of_largest_moment():
    rows = np.diag([4.0, 3.0, 2.0, 1.0]).astype(np.float32)
    view = EmbeddingTable.build(
        name="t", words=list("abcd"), vectors=rows, metric="euclidean"
    ).project(2)
    np.testing.assert_allclose(compute_norms(view.vectors), [4.0, 3.0, 0.0, 0.0], atol=1e-6)


@pytest.mark.slow
def test_a_projection_looks_words_up_in_the_whole_table(pieces_table):
    words = [*STRANGE.values(), *NOUNS]
    for renormalize in (False, True):
        view = pieces_table.project(3, renormalize=renormalize)
        np.testing.assert_array_equal(view.lookup(words)[0], pieces_table.lookup(words)[0])
        np.testing.assert_array_equal(view.lookup(words)[1], pieces_table.lookup(words)[1])


@pytest.mark.parametrize("k", [2, 4, 7, 8])
def test_a_renormalised_projection_charges_its_factor(k):
    view = CHORD.project(k, renormalize=True)
    before, after = pairwise(CHORD.vectors), pairwise(view.vectors)
    np.fill_diagonal(before, np.inf)
    ratios = after / before
    assert (view.lipschitz >= ratios).all()
    assert view.lipschitz == pytest.approx(ratios.max(), rel=1e-5)  # and some pair attains it
    assert view.unit_rows
    np.testing.assert_allclose(compute_norms(view.vectors), 1.0, atol=1e-6)
    if k < 8:
        assert view.lipschitz > 1.01


@pytest.mark.parametrize("k", [2, 5])
def test_diameter_of_a_projection_is_in_the_distance_of_the_whole_table(k):
    plain, unit = CHORD.project(k), CHORD.project(k, renormalize=True)
    assert pairwise(plain.vectors).max() <= plain.diameter <= CHORD.diameter
    assert pairwise(unit.vectors).max() <= unit.diameter * unit.lipschitz * (1 + 1e-6)
    assert unit.diameter <= CHORD.diameter


@pytest.mark.parametrize("second", [False, True], ids=["plain", "renormalised"])
def test_a_projection_of_a_projection_still_knows_its_factor(second):
    """Whatever is stacked: lipschitz bounds every ratio, and epsilon times diameter every loss."""
    before = pairwise(CHORD.vectors)
    np.fill_diagonal(before, np.inf)
    for first, k in ((6, 3), (5, 2), (7, 4), (6, 5)):
        view = CHORD.project(first, renormalize=True).project(k, renormalize=second)
        after = pairwise(view.vectors)
        assert view.lipschitz * (1 + 1e-5) >= (after / before).max()
        guarantee = Privatizer("noise", eta=10.0, table=view).privatize("river").guarantee
        assert guarantee.epsilon_ldp >= 10.0 * after.max() * (1 - 1e-6)


def test_a_plain_projection_is_decoded_by_euclidean_distance():
    view = CHORD.project(3)
    assert not view.unit_rows
    queries = np.random.default_rng(6).normal(size=(500, 3)) * 0.5
    costs = ((queries[:, None] - view.vectors.astype(np.float64)[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(view.nearest(queries), costs.argmin(axis=1))


def test_views_are_made_once():
    assert CHORD.project(4) is CHORD.project(4)
    assert CHORD.project(4) is not CHORD.project(4, renormalize=True)


@pytest.mark.parametrize("k", [0, -1, 9])
def test_projection_out_of_range(k):
    with pytest.raises(ConfigError, match="from 1 to"):
        CHORD.project(k)


def test_raw_rows_are_not_renormalised():
    with pytest.raises(ConfigError, match="unit rows"):
        RAW.project(3, renormalize=True)


def test_a_row_that_vanishes_is_not_renormalised():
    rows = np.zeros((4, 3), np.float32)
    rows[:3, 0] = [1, 2, 3]
    rows[3, 1] = 1
    table = EmbeddingTable.build(name="t", words=list("abcd"), vectors=rows)
    with pytest.raises(ConfigError, match="is zero in 1 axes"):
        table.project(1, renormalize=True)


# ---- names -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wrong", "right"), [("minilmm", "minilm"), ("minilm_s", "minilm-s")])
def test_a_wrong_name_is_answered_by_a_near_one(wrong, right):
    with pytest.raises(UnknownName, match=f"no table is named '{wrong}'; did you mean '{right}'"):
        load_table(wrong)


def test_a_far_name_is_answered_by_all():
    with pytest.raises(UnknownName, match="known: minilm, minilm-s, minilm-wordpiece"):
        load_table("zzz")


def test_load_table_checks_the_metric():
    with pytest.raises(ConfigError, match="chord or euclidean"):
        load_table("minilm-s", metric="cosine")  # type: ignore[arg-type]


def test_a_named_table_is_loaded_once(minilm_s):
    assert load_table("minilm-s") is minilm_s
    assert load_table("minilm-s", metric="chord", device="cpu") is minilm_s


def test_diameter_never_exceeds_what_norms_allow():
    assert CHORD.diameter <= 2 * (1 + 1e-6)
    assert RAW.diameter <= 2 * float(RAW.norms.max()) * (1 + 1e-6)
    assert math.isfinite(RAW.l1_diameter)
    assert RAW.l1_diameter <= RAW.coordinate_range * (1 + 1e-9)


def test_a_pickled_table_does_not_tell_which_neighbours_were_asked_for():
    table = EmbeddingTable.build(name="t", words=["ab", "cd", "ef"], vectors=np.eye(3))
    table.neighbours(np.array([1]), 2)
    copy = pickle.loads(pickle.dumps(table))
    assert copy.__dict__.keys() == {each.name for each in dataclasses.fields(EmbeddingTable)}
    assert copy.neighbours(np.array([1]), 2).tolist() == table.neighbours(np.array([1]), 2).tolist()
