"""Releases at the levels of a nested book: what the whole channel loses, level by level and all together."""

from dataclasses import fields, replace
from shutil import copy
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS, book_of, gaussian_rows

from textveil import Privatizer, Session
from textveil.config import resolve
from textveil.errors import ConfigError, GuaranteeError, LimitReached, TableError
from textveil.guarantee import Guarantee, compose, summarize
from textveil.mechanism import compute_information
from textveil.pipeline.budget_search import resolve_budget
from textveil.pipeline.codebook_statement import FINEST_NOTE, NESTED_NOTE
from textveil.protect import GROUPS
from textveil.session import SessionStore
from textveil.table import Book, Books, EmbeddingTable, load_table

EPSILON = 3.0
TABLE = EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
BOOK = replace(book_of(TABLE, 12), coarser=(book_of(TABLE, 3), book_of(TABLE, 6)))
"""A word has its row modulo 12, 6 and 3 as codes."""

TEXT = "apple river stone"


class Believed(Book):
    """A book that nobody asks whether it is coarser."""

    def is_coarser_than(self, other):
        return True


CROSSED = replace(
    book_of(TABLE, 12),
    coarser=(
        Believed(**{each.name: getattr(book_of(TABLE, 5), each.name) for each in fields(Book)}),
    ),
)
"""The broken twin: its 5 codes are no unions of its 12, and it is passed off as nested."""


def drawing(book: Book, codes: int, mechanism: str = "codebook", **options: Any) -> Privatizer:
    return Privatizer(
        mechanism, table=TABLE.coarsen(book.get_level(codes)), **{"epsilon": EPSILON, **options}
    )


def lost(privatizer: Privatizer, words: list[str] = NOUNS) -> np.ndarray:
    """max over outputs y of |ln P(y | x) - ln P(y | x')| for all pairs of words, [n, n], through the whole pipeline."""
    mechanism: Any = privatizer.mechanism
    lines = []
    for word in words:
        rehearsal = privatizer.rehearse([word])
        lines.append(
            mechanism.log_probs(privatizer.table, rehearsal.plan.block, rehearsal.parameter)[0]
        )
    law = np.array(lines)
    with np.errstate(invalid="ignore"):
        found: np.ndarray = np.nan_to_num(
            np.abs(law[:, None] - law[None]), nan=0.0, posinf=np.inf
        ).max(axis=2)
    return found


def same(codes: np.ndarray) -> np.ndarray:
    alike: np.ndarray = codes[:, None] == codes[None]
    return alike


def stated(book: Book, mechanism: str = "codebook", **options: Any) -> list[Guarantee]:
    return [
        drawing(book, size, mechanism, **options).privatize(TEXT).guarantee for size in book.levels
    ]


def faults(book: Book) -> set[str]:
    """What does not hold of what the statements say of each level, and of all levels together, over every output."""
    found, together, said = set(), np.zeros((60, 60)), stated(book)
    for size, statement in zip(book.levels, said, strict=True):
        loss, level = lost(drawing(book, size)), same(book.get_level(size).codes)
        assert statement.claim.codes == (size,)
        found |= (
            {f"{size} codes: within a finest code"} if loss[same(book.codes)].max() > 0 else set()
        )
        found |= {f"{size} codes: within a code"} if loss[level].max() > 0 else set()
        apart = np.abs(loss[~level] - statement.epsilon)
        found |= {f"{size} codes: between codes"} if apart.max() > 1e-9 else set()
        together += loss  # the draws are apart: their worst outputs come together
    whole = compose(said)
    assert whole.claim.codes == (len(book),)
    found |= {"together: within a finest code"} if together[same(book.codes)].max() > 0 else set()
    found |= {"together: more than stated"} if together.max() > whole.epsilon + 1e-9 else set()
    found |= {"together: less than stated"} if together.max() < whole.epsilon - 1e-9 else set()
    return found


class TestLaw:
    def test_the_loss_is_nothing_within_a_code_at_all_levels_and_what_is_stated_between(self):
        assert faults(BOOK) == set()

    def test_a_book_that_is_not_nested_is_found(self):
        assert faults(CROSSED) == {
            "5 codes: within a finest code",
            "together: within a finest code",
        }

    def test_and_is_no_book(self):
        with pytest.raises(
            TableError, match="each code of a coarser level is a union of finer ones"
        ):
            replace(book_of(TABLE, 12), coarser=(book_of(TABLE, 5),))

    @pytest.mark.parametrize(
        ("mechanism", "options"), [("krr", {}), ("rankcape", {"k": 2}), ("exponential", {})]
    )
    def test_so_it_is_for_every_mechanism_over_codes(self, mechanism, options):
        for size in BOOK.levels:
            privatizer = drawing(BOOK, size, mechanism, **options)
            loss, said = lost(privatizer), privatizer.privatize(TEXT).guarantee
            assert loss[same(BOOK.codes)].max() == 0
            assert 0 < loss.max() <= said.epsilon_ldp + 1e-9


class TestStatement:
    def test_what_a_level_says(self):
        coarse, _, fine = stated(BOOK)
        assert [each.claim.nested for each in (coarse, fine)] == [BOOK.digest] * 2
        assert "drawn among 3 codes at epsilon 3 (any two words)" in coarse.summary()
        assert "For two words of one of its 3 codes it is 0." in coarse.headline()
        book = BOOK.digest[:16]
        assert (
            NESTED_NOTE.format(book=book, codes=3, finest=FINEST_NOTE.format(codes=12))
            in coarse.claim.caveats
        )
        assert NESTED_NOTE.format(book=book, codes=12, finest="") in fine.claim.caveats
        level: Any = coarse.claim.options["book"]
        assert level["nested"] == {"digest": BOOK.digest, "levels": [3, 6, 12]}
        assert level["digest"] == BOOK.get_level(3).digest != BOOK.digest
        assert type(coarse).unpack(coarse.pack()).claim == coarse.claim

    def test_a_book_without_levels_says_nothing_of_them(self):
        said = drawing(book_of(TABLE, 6), 6).privatize(TEXT).guarantee
        assert said.claim.nested == ""
        assert "nested" not in said.explain()

    def test_releases_at_several_levels_add_up_word_by_word(self):
        said = compose([*stated(BOOK), *stated(BOOK, epsilon=1.0)])
        assert said.epsilon_per_word == pytest.approx([3 * EPSILON + 3.0] * 3)
        assert said.releases == 6
        assert said.claim.codes == (12,)
        assert "For two words of one of its 12 codes it is 0." in said.headline()
        assert "among at most 12 codes" in said.summary()
        assert all(f"small in {size} codes" in said.claim.table for size in BOOK.levels)
        again = compose([compose(stated(BOOK)[:2]), stated(BOOK)[2]])
        assert again.claim.codes == (12,)
        assert again.claim.table == compose(stated(BOOK)).claim.table
        assert compose([compose(stated(BOOK)), stated(BOOK)[0]]).claim.table == again.claim.table
        assert again.epsilon == pytest.approx(3 * EPSILON)
        assert compose(stated(BOOK)[:2]).claim.codes == (6,)
        assert compose([stated(BOOK)[0]] * 2).claim.codes == (3,)

    @pytest.mark.parametrize(
        "other",
        [
            book_of(TABLE, 6),
            replace(BOOK, coarser=BOOK.coarser[:1]),
            replace(BOOK, source="others", coarser=()),
        ],
        ids=["the same codes alone", "other levels", "another book"],
    )
    def test_levels_of_unlike_books_do_not_add_up(self, other):
        with pytest.raises(GuaranteeError, match="statements of different kinds do not add up"):
            compose([stated(BOOK)[0], drawing(other, other.levels[0]).privatize(TEXT).guarantee])

    def test_distances_at_several_levels_do_not_add_up(self):
        """A metric promise is about distances between codes, which differ from level to level."""
        said = stated(BOOK, "noise", epsilon=9.0)
        alike = [replace(each, claim=replace(each.claim, diameter=2.0)) for each in said]
        for several in (said, alike):
            with pytest.raises(GuaranteeError, match="statements of different kinds do not add up"):
                compose(several)

    def test_local_dp_at_several_levels_adds_up_for_mechanisms_of_it(self):
        for mechanism, options in (("krr", {}), ("rankcape", {"k": 2})):
            said = stated(BOOK, mechanism, **options)
            assert {each.claim.kind for each in said} == {"ldp"}
            assert compose(said).epsilon == pytest.approx(sum(each.epsilon for each in said))

    def test_a_session_counts_draws_of_a_word_at_each_level(self):
        """Three words at two levels lose 6 each: it must not say that six words lose 3 each, nor "drawn once"."""
        session = Session()
        *_, last = (
            drawing(BOOK, i, words={"consistent": True}).privatize(TEXT, session) for i in (3, 6, 3)
        )
        (said,) = last.guarantee.per_person
        assert (said.drawn, said.released, said.total) == (6, 9, 18_000_000)
        assert str(said) == (
            "protected: 6 draws of words, released 9 times in all, at most 3 each, "
            "18 for one person who has all of them"
        )

    @pytest.mark.parametrize(("mechanism", "accounts"), [("codebook", 1), ("noise", 3)])
    def test_levels_have_one_account_in_local_dp(self, tmp_path, monkeypatch, mechanism, accounts):
        """Else a limit would hold for one level, and the next level would spend as much again."""
        monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
        monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
        with SessionStore(f"sqlite:///{tmp_path / 'a.db'}") as store:
            for size in BOOK.levels:
                drawing(BOOK, size, mechanism).privatize(TEXT, store.open("anna"))
            found = store.ledger.accounts()
            assert len(found) == accounts
            if mechanism == "codebook":
                assert found[0].ldp == pytest.approx(3 * 3 * EPSILON)
                store.ledger.limit("anna", "ldp", found[0].table, found[0].ldp + 1)
                with pytest.raises(LimitReached, match="an epsilon of 9, but only 1 of 28 is left"):
                    drawing(BOOK, 3).privatize(TEXT, store.open("anna"))

    def test_texts_at_several_levels_have_no_one_statement(self):
        with pytest.raises(GuaranteeError, match="needs the same mechanism and options"):
            summarize(stated(BOOK))

    def test_statements_without_codes_among_them_promise_nothing_within_codes(self):
        """As where names are drawn beside codes."""
        coarse, _, fine = stated(BOOK)
        fine = replace(fine, claim=replace(fine.claim, codes=()))
        assert compose([coarse, fine]).claim.codes == ()


# ---- levels by group -------------------------------------------------------------------------------------------------


BUDGETS = (1.5, 1.0, 6.0, 3.0)
OF = {label: NOUNS[15 * i : 15 * i + 15] for i, label in enumerate(GROUPS)}
LISTS = {
    "always": [*OF["sensitive-important"], *OF["sensitive"]],
    "importance": "list",
    "important": [*OF["sensitive-important"], *OF["important"]],
}
ALL = " ".join(OF[label][i] for i in range(5) for label in GROUPS)


def by_group(
    *sizes: int, book: Book = BOOK, budgets: tuple[float, ...] = BUDGETS, **protect: Any
) -> Privatizer:
    books = Books.build([book.get_level(size) for size in sizes])
    return Privatizer(
        "codebook",
        table=TABLE.coarsen(books),
        protect={**LISTS, **protect},
        groups={"budgets": budgets},
    )


def of_groups(*privatizers: Privatizer) -> Guarantee:
    return compose([each.privatize(ALL).guarantee for each in privatizers])


def apart_in_a_code(codes: np.ndarray, *privatizers: Privatizer) -> float:
    """The most that two words of one group and one of these codes lose in all releases, over every output."""
    worst = 0.0
    for words in OF.values():
        own = codes[[NOUNS.index(word) for word in words]]
        together = sum((lost(each, words) for each in privatizers), np.zeros((15, 15)))
        worst = max(worst, float(together[same(own)].max()))
    return worst


class TestGroups:
    @pytest.mark.slow
    def test_groups_at_levels_of_one_book(self):
        one, other = by_group(3, 3, 12, 6), by_group(6, 3, 3, 3)
        said = one.privatize(ALL).guarantee
        assert said.claim.codes == (3, 3, 12, 6)
        assert said.claim.nested == BOOK.digest
        assert apart_in_a_code(BOOK.codes, one) == 0
        both = of_groups(one, other)
        assert both.claim.codes == (12,)
        assert apart_in_a_code(BOOK.codes, one, other) == 0
        assert (
            apart_in_a_code(BOOK.get_level(6).codes, one, other) > 0
        )  # so that fewer codes would be too much said
        assert both.epsilon_per_word == pytest.approx([2 * each for each in BUDGETS] * 5)

    def test_the_same_levels_twice(self):
        one = by_group(3, 3, 12, 6)
        assert of_groups(one, one).claim.codes == (3, 3, 12, 6)
        for size in (3, 6, 12):
            alike = apart_in_a_code(BOOK.get_level(size).codes, by_group(size, size, size, size))
            assert alike == 0

    @pytest.mark.slow
    def test_all_groups_at_one_level_are_that_level(self):
        one, mixed = by_group(6, 6, 6, 6), by_group(3, 3, 6, 3)
        said = one.privatize(ALL).guarantee
        assert (said.claim.codes, said.claim.nested) == ((6,), BOOK.digest)
        for others in ([mixed], [mixed, by_group(3, 3, 3, 3)]):
            assert of_groups(one, *others).claim.codes == (6,)
            assert of_groups(*others, one).claim.codes == (6,)
            assert apart_in_a_code(BOOK.get_level(6).codes, one, *others) == 0
        assert of_groups(by_group(3, 3, 3, 3), by_group(12, 12, 12, 12)).claim.codes == (12,)

    def test_books_that_are_no_levels_of_one_book_are_not_taken_for_it(self):
        other = book_of(TABLE, 5)
        books = Books.build([BOOK.get_level(3), BOOK.get_level(3), other, BOOK])
        assert books.nested_book is None
        mixed = Privatizer(
            "codebook", table=TABLE.coarsen(books), protect=LISTS, groups={"budgets": BUDGETS}
        )
        assert mixed.privatize(ALL).guarantee.claim.nested == ""
        assert apart_in_a_code(BOOK.codes, mixed) > 0
        with pytest.raises(GuaranteeError, match="statements of different kinds do not add up"):
            of_groups(mixed, by_group(3, 3, 12, 6))

    def test_groups_that_are_drawn_promise_nothing_of_levels(self):
        drawn = (
            by_group(3, 3, 12, 6, labels="randomised", label_epsilon=1.0).privatize(ALL).guarantee
        )
        assert (drawn.claim.codes, drawn.claim.nested) == ((), "")
        assert "nested book" not in " ".join(
            each for each in drawn.claim.caveats if "two words" in each
        )


# ---- levels that follow from the budget ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The file of a nested book for the packaged table, of 4, 20 and 400 codes."""
    table = load_table("minilm")
    book = replace(book_of(table, 400), coarser=(book_of(table, 4), book_of(table, 20)))
    made = tmp_path_factory.mktemp("levels") / "own.book"
    book.save(made)
    return str(made)


def chosen(codes: str, **options: Any) -> str | None:
    overrides = {"mechanism.name": "codebook", "table.codes": codes, **options}
    return resolve_budget(resolve(overrides=overrides)).table.codes


class TestAuto:
    @pytest.mark.parametrize(("epsilon", "fits"), [(1, 4), (4, 20), (9, 400)])
    def test_the_level_that_tells_most_at_the_budget(self, path, epsilon, fits):
        assert chosen(f"{path}@auto", epsilon=epsilon) == f"{path}@{fits}"
        book = Book.read(path)
        told = {
            size: compute_information(book.get_level(size).masses, epsilon) for size in book.levels
        }
        assert told[fits] == max(told.values())

    def test_each_group_has_the_level_of_its_budget(self, path):
        groups = {"protect.always": ["apple"], "groups.budgets": [1, 4, 9, 1]}
        names = chosen(f"{path}@auto", **groups)
        assert names == ", ".join(f"{path}@{size}" for size in (4, 20, 400, 4))
        overrides = {"mechanism.name": "codebook", "table.codes": f"{path}@auto", **groups}
        made = Privatizer.from_config(resolve_budget(resolve(overrides=overrides)))
        said = made.privatize("The apple fell.").guarantee
        assert said.claim.codes == (4, 20, 400, 4)
        assert said.claim.nested == Book.read(path).digest

    def test_a_path_with_a_comma_is_one_book_but_not_four(self, path, tmp_path):
        book = copy(path, tmp_path / "a,b.book")
        assert chosen(f"{book}@auto", epsilon=4) == f"{book}@20"
        with pytest.raises(ConfigError, match="a path must not contain a comma"):
            chosen(f"{book}@auto", **{"protect.always": ["apple"], "groups.budgets": [1, 4, 9, 1]})

    def test_a_level_is_named(self, path):
        for name, size in ((f"{path}@20", 20), (f"{path}@400", 400), (path, 400)):
            assert chosen(name, epsilon=1) == name
            assert len(load_table("minilm", codes=name)) == size
        with pytest.raises(
            ConfigError, match="must name a level of its book, which has 4, 20, 400 codes, got 8"
        ):
            load_table("minilm", codes=f"{path}@8")

    def test_it_needs_a_budget(self, path):
        with pytest.raises(ConfigError, match="needs an epsilon"):
            chosen(f"{path}@auto", risk=0.1)
        with pytest.raises(ConfigError, match="follows from the budgets"):
            load_table("minilm", codes=f"{path}@auto")
        with pytest.raises(TableError, match="cannot read a book of codes"):
            chosen("nowhere.book@auto", epsilon=2)

    def test_a_book_without_levels_has_one_to_choose(self):
        assert chosen("24@auto", epsilon=1) == "24"

    @pytest.mark.parametrize("name", ["auto@8", "auto@auto"])
    def test_what_a_budget_chooses_has_no_level_beside(self, name):
        """It chose among the general books, and nobody was told that the level counted for nothing."""
        with pytest.raises(ConfigError, match="a table alone needs a number of codes"):
            load_table("minilm", codes=chosen(name, epsilon=2))

    @pytest.mark.parametrize("name", ["9" * 5000, f"24@{'9' * 5000}", f"nowhere@{'9' * 5000}"])
    def test_a_number_of_any_length_is_a_clear_error(self, name):
        with pytest.raises(
            (ConfigError, TableError), match=r"must be 8, 24|cannot read a book of codes"
        ):
            load_table("minilm", codes=name)
