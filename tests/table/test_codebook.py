"""Books of codes: what one may be, its file, and the coarse view of a table that it makes."""

import contextlib
import json
import math
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS, book_of, gaussian_rows

from textveil.errors import ConfigError, InputError, TableError
from textveil.table import Book, EmbeddingTable, compute_shares, find_book, load_table
from textveil.table.codebook import compute_fingerprint, hash_words

CODES = 6
SINGLE = "1fe37e15e7099e850b96ff65dda4e5358921bd9b107f3b95a1f520d6bfb00a4b"
"""The digest of the book in single.book, by the version that wrote it."""


@pytest.fixture(scope="module")
def table():
    return EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))


@pytest.fixture(scope="module")
def book(table):
    return book_of(table, CODES)


@pytest.fixture(scope="module")
def nested(table):
    return replace(book_of(table, 12), coarser=(book_of(table, 3), book_of(table, CODES)))


@pytest.fixture(scope="module")
def coarse(table, book):
    return table.coarsen(book)


class TestView:
    def test_a_word_has_the_row_of_its_code(self, table, book, coarse):
        rows, known = table.lookup([*NOUNS, "Anchor", "unheardof"])
        found, as_known = coarse.lookup([*NOUNS, "Anchor", "unheardof"])
        assert found.tolist() == book.codes[rows].tolist()
        assert as_known.tolist() == known.tolist()
        assert coarse.find(["anchor", "APPLE", "unheardof"]).tolist() == [0, 1, -1]

    def test_codes_are_spelled_by_their_typical_word_or_by_themselves(self, table, book, coarse):
        assert coarse.words == tuple(NOUNS[:CODES])
        assert table.coarsen(book, spelling="code").words == (
            "code0",
            "code1",
            "code2",
            "code3",
            "code4",
            "code5",
        )
        assert coarse.map_to_origin(np.array([5, 0, -1])).tolist() == [5, 0, -1]

    def test_vectors_are_the_means_of_the_words(self, table, book, coarse):
        for code in range(CODES):
            mean = table.take(np.flatnonzero(book.codes == code)).astype(np.float64).mean(axis=0)
            np.testing.assert_allclose(
                coarse.take(np.array([code]))[0], mean / np.linalg.norm(mean), atol=1e-6
            )
        raw = EmbeddingTable.build(
            name="raw", words=NOUNS, vectors=gaussian_rows(60, 8, 7), metric="euclidean"
        )
        mean = raw.take(np.flatnonzero(book.codes == 2)).mean(axis=0)
        np.testing.assert_allclose(raw.coarsen(book).take(np.array([2]))[0], mean, rtol=1e-5)

    def test_words_in_opposite_directions_leave_the_typical_one(self):
        rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
        table = EmbeddingTable.build(name="four", words=NOUNS[:4], vectors=rows)
        codes = np.array([0, 0, 1, 1], np.uint16)
        made = book_of(table, 2, codes=codes, spelling=np.array([1, 2]))
        assert table.coarsen(made).take(np.array([0])).tolist() == [[-1.0, 0.0]]

    def test_views_of_it_know_where_words_are_looked_up(self, table, coarse):
        axes = coarse.project(3)
        assert (axes.origin, axes.root, axes.axes_note, axes.is_projection) == (
            table,
            coarse,
            "in 3 axes",
            True,
        )
        assert (coarse.origin, coarse.root, coarse.axes_note, coarse.is_projection) == (
            table,
            coarse,
            "",
            False,
        )
        assert (table.project(3).root, table.project(3).origin) == (table, table)
        assert axes.lookup(NOUNS)[0].tolist() == coarse.lookup(NOUNS)[0].tolist()
        assert axes.diameter <= coarse.diameter

    def test_probabilities_of_words_as_those_of_codes(self, table, book, coarse):
        prior = np.random.default_rng(1).dirichlet(np.ones(60))
        for code in range(CODES):
            own = prior[book.codes == code]
            assert coarse.find_heads(prior)[code] == own.max()
            assert coarse.sum_by_row(prior)[code] == pytest.approx(own.sum())
        assert coarse.spread(np.arange(CODES, dtype=np.float64)).tolist() == book.codes.tolist()
        np.testing.assert_allclose(compute_shares(coarse), coarse.sum_by_row(compute_shares(table)))
        assert table.find_heads(prior) is prior
        assert table.spread(prior) is prior

    def test_its_name_and_digest_tell_books_apart(self, table, book, coarse):
        other = table.coarsen(book_of(table, CODES, source="others"))
        assert coarse.name == f"small in 6 codes (book {book.digest[:8]})"
        assert other.name != coarse.name
        assert other.digest != coarse.digest
        assert table.coarsen(book_of(table, CODES)) is coarse

    def test_a_book_is_for_one_table(self, table, book, wordpiece_table):
        with pytest.raises(
            ConfigError, match="is a book for the words of the table small, and fewer has others"
        ):
            EmbeddingTable.build(
                name="fewer", words=NOUNS[:-1], vectors=gaussian_rows(59, 8, 7)
            ).coarsen(book)
        for view in (table.coarsen(book), table.project(3), wordpiece_table):
            with pytest.raises(
                ConfigError, match="needs a table of whole words that is not a view"
            ):
                view.coarsen(book)
        with pytest.raises(ConfigError, match="must be word or code"):
            table.coarsen(book, spelling="letter")
        ones = np.ones(CODES, np.float32)
        shorter = replace(book, codes=book.codes[:-1], heads=ones, domain_heads=ones)
        assert shorter.words == book.words
        with pytest.raises(ConfigError, match="is a book for the words of the table small"):
            table.coarsen(shorter)

    def test_codes_that_no_distance_tells_apart(self):
        same = EmbeddingTable.build(
            name="same", words=NOUNS, vectors=np.tile([[1.0, 0.0], [0.0, 1.0]], (30, 1))
        )
        with pytest.raises(ConfigError, match="the 3 codes of a book have the same mean vector"):
            same.coarsen(book_of(same, 3))
        assert same.coarsen(book_of(same, 2)).diameter == pytest.approx(2**0.5)


FAULTS: dict[str, dict[str, Any]] = {
    "is general, domain, task": {"kind": "own"},
    "needs a source": {"source": "two\nlines"},
    "needs one code in 16 bits": {"codes": np.arange(60) % CODES},
    "has at least 2 codes": {"spelling": np.arange(1)},
    "has a word for each": {"codes": (np.arange(60) % 5).astype(np.uint16)},
    "spells each code by a word of that code": {"spelling": np.array([1, 0, 2, 3, 4, 5])},
    "has shares above 0": {"heads": np.zeros(CODES, np.float32)},
    "has for each code the share of its most frequent word": {
        "domain_heads": np.full(CODES, 0.09, np.float32)
    },
    "has shares in the texts": {"domain_heads": None},
    "lists their fingerprints": {"texts": np.empty(0, np.uint64)},
}


class TestBook:
    @pytest.mark.parametrize("fault", FAULTS)
    def test_what_is_no_book(self, table, fault):
        with pytest.raises(TableError, match=fault):
            book_of(table, CODES, **FAULTS[fault])

    def test_the_file_gives_the_same_book_back(self, table, book, tmp_path):
        book.save(tmp_path / "six.book")
        read = Book.read(tmp_path / "six.book")
        assert read == book
        assert read.codes.tolist() == book.codes.tolist()
        assert read.to_json() == book.to_json()
        again = tmp_path / "again.book"
        read.save(again)
        assert again.read_bytes() == (tmp_path / "six.book").read_bytes()
        assert [each.name for each in sorted(tmp_path.iterdir())] == ["again.book", "six.book"]
        assert find_book(str(again)) == book

    def test_a_general_book_needs_no_texts(self, table, tmp_path):
        made = book_of(
            table, CODES, kind="general", domain_heads=None, texts=np.empty(0, np.uint64)
        )
        made.save(tmp_path / "general.book")
        assert Book.read(tmp_path / "general.book").domain_heads is None
        made.refuse(["A public text."])

    def test_a_changed_file_is_refused(self, book, tmp_path):
        book.save(tmp_path / "book")
        with np.load(tmp_path / "book") as held:
            content = dict(held)
        about = json.loads(str(content["about"]))
        swapped = content["codes"].copy()
        swapped[[12, 13]] = swapped[[13, 12]]
        changes = (
            {"codes": swapped},
            {"about": np.array(json.dumps({**about, "source": "something else"}))},
            {"about": np.array(json.dumps({**about, "textveil book": 2}))},
            {"about": np.array("{}")},
            {"about": np.array(json.dumps({**about, "options": 5}))},
            {"texts": content["texts"][:1]},
        )
        for change in changes:
            with (tmp_path / "broken").open("wb") as file:
                np.savez(file, **{**content, **change})
            with pytest.raises(TableError, match="broken: it is not a book of codes, or damaged"):
                Book.read(tmp_path / "broken")
        for written in (b"", b"hello", (tmp_path / "book").read_bytes()[:-40]):
            (tmp_path / "broken").write_bytes(written)
            with pytest.raises(TableError, match="not a book of codes, or damaged"):
                Book.read(tmp_path / "broken")
        whole = (tmp_path / "book").read_bytes()
        for place in range(
            0, len(whole), 7
        ):  # some are of no account, such as those that say when it was written
            flipped = bytearray(whole)
            flipped[place] ^= 0xFF
            (tmp_path / "broken").write_bytes(flipped)
            with contextlib.suppress(TableError):
                assert Book.read(tmp_path / "broken") == book
        with pytest.raises(TableError, match="cannot read a book of codes"):
            Book.read(tmp_path / "nowhere")

    def test_its_own_texts_are_refused_and_not_shown(self, book):
        book.refuse(["Something else."])
        with pytest.raises(InputError, match="1 of the texts or lines given") as raised:
            book.refuse(["Something else.", "  another\tPUBLIC text. "])
        with pytest.raises(InputError, match="2 of the texts or lines given"):
            book.refuse(["Something else.\na public text.\n\nAnother public text.\n"])
        assert "another" not in str(raised.value).lower().replace("another book", "")
        for same in (
            " a  Public\ntext. ",
            "\uff21 public tex\uff54.",
            "a\u00a0public text.",
        ):
            assert compute_fingerprint("A public text.") == compute_fingerprint(same)
        assert compute_fingerprint("\ufb01ne stra\u00dfe") == compute_fingerprint("FINE STRASSE")
        assert compute_fingerprint("A public text.") != compute_fingerprint("A public test.")

    def test_nothing_of_it_changes(self, table):
        codes = np.arange(60, dtype=np.uint16) % CODES
        book = book_of(table, CODES, codes=codes)
        digest = book.digest
        codes[:] = 0
        for each in (book, pickle.loads(pickle.dumps(book))):
            assert each.digest == digest
            assert each.codes.max() == CODES - 1
            for values in (
                each.codes,
                each.spelling,
                each.masses,
                each.heads,
                each.domain_heads,
                each.texts,
            ):
                with pytest.raises(ValueError, match="read-only"):
                    values[0] = 1  # type: ignore[index]
        assert table.name not in repr(book)

    def test_facts(self, table, book):
        said = " ".join(book.write_facts())
        assert book.digest[:16] in said
        assert "made from twelve letters that nobody sent" in said
        assert "10 to 10 words have one code" in said
        most = f"{math.ceil(1000 * book.heads.max() - 1e-3) / 1000:.3f}".lstrip("0")
        assert f"at most {most} (" in said
        assert (
            "by the book's own count at most .100 (.100 in the median) in the texts that it was made from"
            in said
        )
        counted = np.full(CODES, 0.25, np.float32)
        assert "at most .250 (.250 in the median) of it in general public text" in " ".join(
            book.write_facts(counted)
        )
        assert book.to_json(counted)["head"] == 0.25
        assert "label" not in said
        assert "reveals the label of a text" in " ".join(
            book_of(table, CODES, kind="task").write_facts()
        )
        alone = book_of(table, 60)
        assert "60 of the codes have a single word" in " ".join(alone.write_facts())

    def test_sizes_and_shares(self, table):
        codes = np.array([0] * 58 + [1, 1], np.uint16)
        made = book_of(table, 2, codes=codes, spelling=np.array([0, 58]))
        assert made.sizes.tolist() == [58, 2]
        prior = np.full(60, 1 / 60)
        assert made.compute_head_shares(prior) == pytest.approx([1 / 58, 1 / 2])
        assert made.sum_values(prior).sum() == pytest.approx(1)
        assert made.find_highest(np.log(prior)) == pytest.approx([math.log(1 / 60)] * 2)


def test_a_table_is_loaded_by_its_book(tmp_path):
    table = load_table("minilm")
    made = book_of(table, 40)
    made.save(tmp_path / "forty")
    assert load_table("minilm", codes=str(tmp_path / "forty")) is table.coarsen(made)
    with pytest.raises(ConfigError, match=r"table\.codes must be"):
        load_table("minilm", codes="7")
    with pytest.raises(
        ConfigError, match="for the words of the table minilm, and minilm-s has others"
    ):
        load_table("minilm-s", codes=str(tmp_path / "forty"))
    assert hash_words(table.words) == made.words


class TestNested:
    def test_a_level_is_a_book_that_knows_the_whole(self, nested):
        assert nested.levels == (3, CODES, 12)
        for size in nested.levels:
            level = nested.get_level(size)
            assert len(level) == size
            assert level.levels == nested.levels
            assert level.nested_book is nested
            assert level.get_level(3) == nested.get_level(3)
            assert pickle.loads(pickle.dumps(level)) == level
            assert nested.digest[:16] in level.write_facts()[0]
        assert nested.get_level(12) is nested
        assert len({nested.get_level(size).digest for size in nested.levels}) == 3
        with pytest.raises(
            ConfigError, match="a level of its book, which has 3, 6, 12 codes, got 7"
        ):
            nested.get_level(7)

    def test_a_book_without_levels_is_none(self, book):
        assert (book.nested_book, book.levels, book.get_level(CODES)) == (None, (CODES,), book)
        assert "nested" not in " ".join(book.write_facts())
        assert "nested" not in book.to_json()

    def test_what_is_no_nested_book(self, table, nested):
        few, many = book_of(table, 3), book_of(table, 12)
        wrong: dict[str, tuple[Book, ...]] = {
            "crossed": (book_of(table, 5),),
            "falling": (book_of(table, CODES), few),
            "twice": (few, few),
            "as many": (replace(many, spelling=np.arange(12)),),
            "of another making": (replace(few, source="others"),),
            "of other texts": (replace(few, texts=few.texts[:1]),),
            "nested themselves": (replace(book_of(table, CODES), coarser=(few,)),),
        }
        for coarser in wrong.values():
            with pytest.raises(
                TableError, match="each code of a coarser level is a union of finer ones"
            ):
                replace(many, coarser=coarser)
        for change in ({"source": "others"}, {"texts": few.texts[:1]}, {"heads": few.heads * 0.9}):
            with pytest.raises(TableError, match="belongs to the nested book that it names"):
                replace(nested.get_level(3), **change)

    def test_the_file_gives_all_levels_back(self, nested, tmp_path):
        nested.save(tmp_path / "nested")
        read = Book.read(tmp_path / "nested")
        assert read == nested
        for size in nested.levels:
            assert read.get_level(size) == nested.get_level(size)
            assert read.get_level(size).to_json() == nested.get_level(size).to_json()
            assert read.get_level(size).codes.tolist() == nested.get_level(size).codes.tolist()
            assert find_book(f"{tmp_path / 'nested'}@{size}") == nested.get_level(size)
        nested.get_level(3).save(tmp_path / "level")  # writes the whole
        assert (tmp_path / "level").read_bytes() == (tmp_path / "nested").read_bytes()
        nested.save(tmp_path / "at@3")
        assert find_book(str(tmp_path / "at@3")) == nested  # a file of that name comes first
        assert find_book(f"{tmp_path / 'at@3'}@6") == nested.get_level(CODES)

    def test_a_changed_file_is_refused(self, nested, tmp_path):
        nested.save(tmp_path / "nested")
        with np.load(tmp_path / "nested") as held:
            content = dict(held)
        without = {name: value for name, value in content.items() if not name.endswith("_3")}
        hidden = b"".join(
            content[f"{name}_3"].tobytes() for name in ("codes", "spelling", "masses", "heads")
        )
        changes = {
            "another level": {**content, "codes_3": (content["codes_3"] + 1) % 3},
            "other shares": {**content, "heads_6": np.minimum(content["heads_6"] * 1.1, 1)},
            "a level less": without,
            "a level that passes for texts": {
                **without,
                "texts": np.concatenate(
                    [content["texts"], np.frombuffer(hidden[: len(hidden) // 8 * 8], "<u8")]
                ),
            },
            "not all of a level": {
                name: value for name, value in content.items() if name != "spelling_6"
            },
            "a level of no number": {**content, "codes_x": content["codes_3"]},
        }
        for each in changes.values():
            with (tmp_path / "broken").open("wb") as file:
                np.savez(file, **each)
            with pytest.raises(TableError, match="broken: it is not a book of codes, or damaged"):
                Book.read(tmp_path / "broken")

    def test_texts_cannot_pass_for_a_level(self, table):
        """A book whose texts are longer by just the bytes of a level is another book."""
        plain: dict[str, Any] = {"kind": "general", "domain_heads": None}
        few, many = book_of(table, 2, **plain), book_of(table, 4, **plain)
        hidden = b"".join(
            each.tobytes() for name, each in few._collect_arrays().items() if name != "texts"
        )
        assert len(hidden) % 8 == 0
        longer = np.concatenate([many.texts, np.frombuffer(hidden, "<u8")])
        assert replace(many, texts=longer).digest != replace(many, coarser=(few,)).digest

    def test_a_file_from_before_there_were_levels_is_the_book_that_it_was(self):
        """Written by the version before; its digest is part of statements."""
        read = Book.read(Path(__file__).parent / "single.book")
        assert read.digest == SINGLE
        assert (len(read), read.nested_book, len(read.texts)) == (3, None, 2)
