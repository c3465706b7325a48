"""Books that are made from public texts: which words get one code, and what is refused."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil.errors import ConfigError, InputError
from textveil.table import Book, EmbeddingTable, codebook_training, compute_shares, make_books
from textveil.table.codebook import compute_fingerprint
from textveil.table.codebook_training import Corpus

TABLE = EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
KITCHEN, COAST, ROOM = NOUNS[:20], NOUNS[20:40], NOUNS[40:]


def texts_of(*topics: list[str], each: int = 200, seed: int = 1) -> list[str]:
    """Texts of words of one topic each; what topic a word is of has nothing to do with its vector."""
    rng = np.random.default_rng(seed)
    return [
        f"The {' and the '.join(rng.choice(topic, 8))}." for topic in topics for _ in range(each)
    ]


TEXTS = texts_of(KITCHEN, COAST, ROOM)
LABELS = [name for name in ("cook", "sail", "rest") for _ in range(200)]


def make(codes: int = 3, **options: Any) -> Book:
    (made,) = make_books(TABLE, [codes], **{"kind": "general", "source": "a test", **options})
    return made


def purity(book: Book) -> float:
    """The share of words whose code is the most frequent one of their topic."""
    topics = [book.codes[:20], book.codes[20:40], book.codes[40:]]
    return sum(np.bincount(topic).max() for topic in topics) / 60


class TestFeatures:
    def test_words_of_one_topic_get_one_code(self):
        domain = make(kind="domain", texts=TEXTS)
        task = make(kind="task", texts=TEXTS, labels=[LABELS])
        assert purity(domain) > 0.9
        assert purity(task) > 0.9
        assert purity(make()) < 0.7  # by the vectors alone there is no topic

    def test_labels_count_and_not_what_stands_together(self):
        mixed = [
            f"{TEXTS[i][:-1]} {TEXTS[(i + 200) % 600]}" for i in range(600)
        ]  # two topics in each text
        task = make(
            2,
            kind="task",
            texts=mixed,
            labels=[["x" if label == "cook" else "y" for label in LABELS]],
        )
        assert task.options["labels"] == [2]
        first = np.bincount(task.codes[KITCHEN_ROWS], minlength=2) / 20
        last = np.bincount(task.codes[ROOM_ROWS], minlength=2) / 20
        assert abs(first - last).max() > 0.6

    def test_several_tasks_at_once(self):
        other = [["a", "b"][i % 2] for i in range(600)]
        made = make(4, kind="task", texts=TEXTS, labels=[LABELS, other])
        assert made.options["labels"] == [3, 2]

    def test_texts_without_a_label_are_left_out_of_what_words_tell(self):
        some = [label if i % 2 else "" for i, label in enumerate(LABELS)]
        assert purity(make(kind="task", texts=TEXTS, labels=[some])) > 0.9

    def test_only_words_of_the_table_that_are_not_public_count(self):
        corpus = Corpus.read(
            TABLE, ["The apple and the Unheardof apple.", "the and of", "river"], lambda *_: None
        )
        assert corpus.rows.tolist() == [
            NOUNS.index("apple"),
            NOUNS.index("apple"),
            NOUNS.index("river"),
        ]
        assert corpus.starts.tolist() == [0, 2, 2, 3]
        assert corpus.text.tolist() == [0, 0, 2]
        assert corpus.word_counts["the"] == 3
        assert compute_fingerprint("river") in corpus.fingerprints.tolist()


KITCHEN_ROWS, ROOM_ROWS = slice(0, 20), slice(40, 60)


def lloyd(features, weights, centres):
    """k-means as it is written down: in every round all words are compared with all centres."""
    code = np.full(len(features), -1)
    for _ in range(codebook_training.MAX_ROUNDS):
        now = ((features[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        if np.array_equal(now, code):
            break
        code = now
        centres = np.array(
            [
                np.average(features[code == c], axis=0, weights=weights[code == c])
                for c in range(len(centres))
            ]
        )
    return code, centres


class TestClusters:
    @pytest.mark.parametrize("codes", [2, 7, 40])
    def test_it_is_k_means(self, codes):
        rng = np.random.default_rng(codes)
        features, weights = rng.normal(size=(400, 5)).astype(np.float32), rng.random(400)
        start = features[rng.choice(400, codes, replace=False)].astype(np.float64)
        squares, code, centres = codebook_training._run_k_means(features, weights, start)
        expected, means = lloyd(features.astype(np.float64), weights, start)
        assert code.tolist() == expected.tolist()
        np.testing.assert_allclose(centres, means, atol=1e-5)
        assert squares == pytest.approx(
            weights @ ((features - means[expected]) ** 2).sum(axis=1), rel=1e-4
        )

    def test_joined_codes_have_the_means_of_their_words(self):
        rng = np.random.default_rng(3)
        features, weights, prior = (
            rng.normal(size=(300, 4)).astype(np.float32),
            rng.random(300),
            rng.dirichlet(np.full(300, 0.1)),
        )
        _, code, centres = codebook_training._run_k_means(
            features, weights, features[:40].astype(np.float64)
        )
        joined, means = codebook_training._join(code, centres, weights, [prior], 0.5)
        assert 2 <= len(means) < 40
        for c in range(len(means)):
            np.testing.assert_allclose(
                np.average(features[joined == c], axis=0, weights=weights[joined == c]),
                means[c],
                atol=1e-5,
            )
            assert prior[joined == c].max() / prior[joined == c].sum() <= 0.5
        assert all(len({*joined[code == c]}) == 1 for c in range(40))

    def test_many_codes_start_once(self, monkeypatch):
        steps = []
        make(20, report=lambda step, done, total: steps.append((step, total)))
        assert {total for step, total in steps if step == "codes"} == {codebook_training.RESTARTS}
        monkeypatch.setattr(codebook_training, "MAX_RESTART_CODES", 10)
        steps.clear()
        make(20, report=lambda step, done, total: steps.append((step, total)))
        assert steps == [("codes", 1)]


class TestBook:
    def test_what_it_says_of_itself(self):
        made = make(5, kind="domain", texts=TEXTS)
        assert len(made) == 5
        assert made.masses.sum() == pytest.approx(1, abs=1e-5)
        general = made.compute_head_shares(compute_shares(TABLE))
        np.testing.assert_allclose(made.heads, general, rtol=1e-6)
        assert made.domain_heads is not None
        assert len(made.texts) == len({*TEXTS})
        with pytest.raises(InputError):
            made.refuse([TEXTS[3].upper()])
        assert (made.codes[made.spelling] == np.arange(5)).all()

    def test_codes_are_ordered_by_how_often_they_occur(self):
        made = make(6)
        assert (np.diff(made.sum_values(compute_shares(TABLE))) <= 1e-12).all()

    def test_the_same_seed_gives_the_same_book_and_another_another(self):
        assert make(8) == make(8)
        assert {make(8, seed=seed).codes.tobytes() for seed in range(4)} != {
            make(8).codes.tobytes()
        }

    def test_several_sizes_are_the_books_that_each_would_be(self):
        both = list(make_books(TABLE, [3, 7], kind="general", source="a test"))
        assert both == [make(3), make(7)]

    def test_no_word_is_more_of_a_code_than_allowed(self):
        often = [*TEXTS, *["apple"] * 3000]
        free = make(12, kind="domain", texts=often)
        assert free.domain_heads is not None
        assert free.domain_heads.max() > 0.6
        capped = make(12, kind="domain", texts=often, head=0.6)
        assert capped.domain_heads is not None
        assert max(capped.domain_heads.max(), capped.heads.max()) <= 0.6
        assert 2 <= len(capped) < 12
        assert capped.options["asked"] == 12
        with pytest.raises(ConfigError, match="keeps the share of each word in its code below"):
            make(12, kind="domain", texts=often, head=0.05)

    def test_a_general_book_of_texts_refuses_them_too(self):
        made = make(5, texts=TEXTS)
        assert not np.array_equal(made.codes, make(5).codes)
        with pytest.raises(InputError):
            made.refuse([TEXTS[3]])

    def test_texts_of_one_word_each_leave_it_to_the_vectors(self):
        made = make(4, kind="domain", texts=["apple", "river"])
        assert made.sizes.max() < 40

    def test_as_many_codes_as_words(self):
        made = make(60)
        assert (made.sizes == 1).all()

    def test_words_with_one_vector(self):
        same = EmbeddingTable.build(
            name="same", words=NOUNS, vectors=np.tile([[1.0, 0.0], [0.0, 1.0]], (30, 1))
        )
        (made,) = make_books(same, [5], kind="general", source="a test")
        assert made.sizes.sum() == 60
        assert made.sizes.min() >= 1


REFUSED: dict[str, dict[str, Any]] = {
    "from 2 to 60 codes": {"codes": 61},
    "must be above 0 and below 1": {"head": 1.0},
    "a book of a task needs labels": {"kind": "domain", "texts": TEXTS, "labels": [LABELS]},
    "needs public texts": {"kind": "domain"},
    "hold no word of the table": {"kind": "domain", "texts": ["the and of", "unheardof"]},
    "a label, or an empty one, for each": {"kind": "task", "texts": TEXTS, "labels": [LABELS[:5]]},
    "of two labels at least, got 1": {"kind": "task", "texts": TEXTS, "labels": [["one"] * 600]},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused(reason):
    with pytest.raises((ConfigError, InputError), match=reason):
        make(**REFUSED[reason])


def test_views_and_pieces_get_no_book(wordpiece_table):
    for table in (TABLE.project(3), wordpiece_table):
        with pytest.raises(ConfigError, match="table of whole words that is not a view"):
            list(make_books(table, [3], kind="general", source="a test"))


class TestLevels:
    """Nested books: each code of a level is a union of codes of the next finer one."""

    LEVELS = (2, 5, 12)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"kind": "domain", "texts": TEXTS},
            {"kind": "task", "texts": TEXTS, "labels": [LABELS]},
            {"texts": [*TEXTS, *["apple"] * 300], "kind": "domain", "head": 0.7},
        ],
        ids=["general", "domain", "task", "head"],
    )
    def test_each_code_is_a_union_of_finer_ones(self, options):
        made = make(30, levels=self.LEVELS, **options)
        assert len(made.levels) == 4
        assert made.levels == (*self.LEVELS, 30) or "head" in options
        for few, many in pairwise(map(made.get_level, made.levels)):
            assert len(few) < len(many)
            assert all(
                len({*few.codes[many.codes == code].tolist()}) == 1 for code in range(len(many))
            )
        for size in made.levels:
            level = made.get_level(size)
            np.testing.assert_allclose(
                level.heads, level.compute_head_shares(compute_shares(TABLE)), rtol=1e-6
            )
            assert max(
                level.heads.max(), 0 if level.domain_heads is None else level.domain_heads.max()
            ) <= options.get("head", 1) * (1 + 1e-6)
            assert (level.codes[level.spelling] == np.arange(size)).all()
            assert level.texts.tolist() == made.texts.tolist()

    def test_the_coarsest_is_the_book_that_it_would_be_alone(self):
        made = make(30, levels=self.LEVELS)
        assert made.get_level(2).codes.tolist() == make(2).codes.tolist()
        assert made == make(30, levels=self.LEVELS)

    def test_of_words_with_one_vector_there_are_as_many_codes(self):
        same = EmbeddingTable.build(
            name="same", words=NOUNS, vectors=np.tile([[1.0, 0.0], [0.0, 1.0]], (30, 1))
        )
        (made,) = make_books(same, [60], kind="general", source="a test", levels=[2, 7, 59])
        assert made.levels == (2, 7, 59, 60)
        assert (made.sizes == 1).all()

    def test_more_codes_go_where_words_are_far_from_the_centre(self):
        rows = np.concatenate([np.eye(8)[np.arange(30) % 6], np.tile(np.eye(8)[7] * 9, (30, 1))])
        rows = rows + 1e-3 * gaussian_rows(60, 8, 1)
        weights = np.ones(60)
        code = np.repeat([0, 1], 30)
        centres = np.array([rows[:30].mean(axis=0), rows[30:].mean(axis=0)])

        def clusters(words, many):
            return codebook_training._cluster(
                rows[words].astype(np.float32), weights[words], many, 0, lambda *_: None
            )

        now, _ = codebook_training._split(
            code, centres, rows.astype(np.float32), weights, 7, clusters
        )
        assert sorted({*now[:30].tolist()}) == [0, 1, 2, 3, 4, 5]
        assert {*now[30:].tolist()} == {6}

    @pytest.mark.parametrize("levels", [[8, 5], [5, 5], [1, 5], [5, 30], [5, 31], [0], [-3]])
    def test_levels_rise_below_the_codes(self, levels):
        with pytest.raises(
            ConfigError, match="must be increasing numbers from 2 to 29, because it has 30 codes"
        ):
            make(30, levels=levels)

    def test_a_level_that_is_no_finer_is_refused(self):
        """Two words and two words are alike: a third code would have one word alone, which is all of it."""
        rows = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
        pairs = EmbeddingTable.build(name="pairs", words=NOUNS[:4], vectors=rows)
        options: dict[str, Any] = {"kind": "general", "source": "a test", "head": 0.999}
        (made,) = make_books(pairs, [2], **options)
        assert made.sizes.tolist() == [2, 2]
        with pytest.raises(
            ConfigError, match="more and more codes, but only 2 of 3 codes are left"
        ):
            list(make_books(pairs, [4], levels=[2, 3], **options))
