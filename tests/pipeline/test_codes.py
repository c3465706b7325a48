"""Releases over the codes of a book: what is drawn, what is stated, and what is refused."""

import math
import pickle
import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.fixtures import NOUNS, book_of, gaussian_rows

from textveil import Privatizer, Session
from textveil.config import Config, resolve
from textveil.errors import ConfigError, InputError
from textveil.evaluate.attack import Case
from textveil.guarantee import compose, summarize
from textveil.mechanism import Block, Law, Layout, build_success_rate
from textveil.pipeline.codebook_statement import (
    DRAWN_GROUPS_NOTE,
    EQUAL_WORDS_NOTE,
    NAMES_AND_FIGURES_NOTE,
    REPEATED_TEXT_NOTE,
    SAME_CODE_NOTE,
)
from textveil.pipeline.consistent import replace_equal_rows
from textveil.protect import Uniform
from textveil.table import Book, EmbeddingTable, compute_shares, find_book, load_table
from textveil.text import Kind, tokenize

CODES = 6
EPSILON = 3.0
TEXT = "The apple and the river met a stone."

TABLE = EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
BOOK = book_of(TABLE, CODES)
COARSE = TABLE.coarsen(BOOK)


def codebook(**options):
    return Privatizer("codebook", **{"epsilon": EPSILON, "table": COARSE, **options})


def word_law(privatizer, epsilon):
    """ln P(code | word) for every word of the table, [60, C]: every word stands alone in a text."""
    rows, _ = privatizer.table.lookup(NOUNS)
    block = Block(layout=Layout.build(*[1] * len(rows)), rows=rows)
    parameter = privatizer.mechanism.calibrate(
        privatizer.table, block.layout, np.full(len(rows), epsilon)
    )
    assert isinstance(privatizer.mechanism, Law)
    return privatizer.mechanism.log_probs(privatizer.table, block, parameter)


class TestLaw:
    def test_the_loss_is_nothing_within_a_code_and_epsilon_between_codes(self):
        law = word_law(codebook(), EPSILON)
        same = BOOK.codes[:, None] == BOOK.codes[None]
        lost = np.abs(law[:, None] - law[None]).max(axis=2)
        assert (lost[same] == 0).all()
        assert lost[~same].max() <= EPSILON
        np.testing.assert_allclose(lost[~same], EPSILON, atol=1e-12)

    @pytest.mark.parametrize("mechanism", ["rankcape", "exponential", "krr", "cape"])
    def test_so_it_is_for_every_mechanism_over_codes(self, mechanism):
        options: dict[str, Any] = {"k": 2} if mechanism == "rankcape" else {}
        law = word_law(Privatizer(mechanism, epsilon=9.0, table=COARSE, **options), 9.0)
        same = BOOK.codes[:, None] == BOOK.codes[None]
        assert (np.abs(law[:, None] - law[None]).max(axis=2)[same] == 0).all()

    def test_it_is_randomised_response(self):
        law = np.exp(word_law(codebook(), EPSILON))
        right = math.exp(EPSILON) / (math.exp(EPSILON) + CODES - 1)
        own = law[np.arange(60), BOOK.codes]
        np.testing.assert_allclose(own, right, rtol=1e-12)
        np.testing.assert_allclose(law.sum(axis=1), 1)

    def test_the_draw_does_not_see_which_word_of_a_code_it_was(self):
        blocks = [
            codebook().rehearse([word]).plan.block.rows.tolist()
            for word in ("anchor", "candle", "copper")
        ]
        assert blocks == [[0], [0], [0]]

    def test_draws_follow_the_law(self):
        """Chi-square with a false alarm in a million; a response over one code fewer is caught."""
        from scipy import stats

        rehearsal = codebook().rehearse(["apple " * 6000])
        seen = np.bincount(rehearsal.drawn_rows, minlength=CODES)
        expected = 6000 * np.exp(word_law(codebook(), EPSILON)[NOUNS.index("apple")])
        limit = stats.chi2.ppf(1 - 1e-6, CODES - 1)
        assert ((seen - expected) ** 2 / expected).sum() < limit
        fewer = np.array([1.0, math.exp(EPSILON), 1, 1, 1, 0])
        fewer *= 6000 / fewer.sum()
        broken = np.maximum(fewer, 1e-9)
        assert ((seen - broken) ** 2 / broken).sum() > limit


class TestStatement:
    def test_what_it_says(self):
        found = codebook().privatize(TEXT).guarantee
        assert found.epsilon == pytest.approx(EPSILON)
        assert "drawn among 6 codes at epsilon 3 (any two words)" in found.summary()
        assert "For two words of one of its 6 codes it is 0." in found.headline()
        said = found.explain()
        assert SAME_CODE_NOTE in said
        assert {EQUAL_WORDS_NOTE, NAMES_AND_FIGURES_NOTE, REPEATED_TEXT_NOTE}.isdisjoint(
            found.claim.caveats
        )
        for fact in BOOK.write_facts():
            assert fact in said
        assert found.claim.options["book"] == BOOK.to_json()
        assert found.claim.table == COARSE.name

    def test_consistent_draws_say_by_what_they_are_alike(self):
        found = codebook(words={"consistent": True}).privatize("apple river apple candle anchor")
        assert EQUAL_WORDS_NOTE in found.guarantee.explain()
        assert found.released.items[0].text == found.released.items[2].text

    def test_a_text_that_returns_as_it_was_shows_that_it_is_the_same(self):
        session = Session()
        session.repeats = "user"
        made = codebook()
        first, again, other = (
            made.privatize(text, session) for text in (TEXT, TEXT, TEXT.replace("stone", "spider"))
        )
        assert first.text == again.text
        for found in (first, again, other):
            assert "equal words" in found.guarantee.mask
            assert REPEATED_TEXT_NOTE in found.guarantee.explain()

    def test_what_the_file_of_a_book_says_of_general_text_is_counted_anew(self):
        """A book that understates its most frequent words passes for one of the same codes, and is not believed."""
        modest = replace(
            BOOK, masses=np.full(CODES, 0.01, np.float32), heads=np.full(CODES, 0.1, np.float32)
        )
        said, true = (
            codebook(table=TABLE.coarsen(each)).privatize(TEXT).guarantee for each in (modest, BOOK)
        )
        assert modest.compute_success(EPSILON) < 0.2 * BOOK.compute_success(EPSILON)
        assert (
            said.claim.options["book"]["head"] == BOOK.to_json()["head"] != modest.to_json()["head"]
        )
        assert said.claim.caveats[2:] == true.claim.caveats[2:]  # but for the digest
        assert said.claim.caveats[0] == SAME_CODE_NOTE

    def test_statements_add_up_to_what_holds_for_all(self):
        plain, named = codebook().privatize(TEXT).guarantee, codebook().privatize(TEXT).guarantee
        named = replace(
            named,
            claim=replace(
                named.claim, codes=(), caveats=(*named.claim.caveats, NAMES_AND_FIGURES_NOTE)
            ),
        )
        for both in (summarize([plain, named]), compose([named, plain])):
            assert both.claim.codes == ()
            assert NAMES_AND_FIGURES_NOTE in both.claim.caveats
        assert summarize([plain, plain]).claim.codes == (CODES,)

    def test_metric_promises_are_about_codes(self):
        found = Privatizer("noise", epsilon=9, table=COARSE).privatize(TEXT).guarantee
        assert found.claim.diameter == COARSE.diameter
        assert "distances are between codes" in found.explain()
        assert "For two words of one of its 6 codes it is 0." in found.headline()

    def test_how_often_a_word_is_named_at_most(self):
        """sum_y max_x pi(x) P(y|x), written out over words; the statement rounds it up."""
        heads = BOOK.masses.astype(np.float64) * BOOK.heads
        prior = np.zeros(60)
        prior[:] = heads[BOOK.codes]  # every word as likely as its code's head
        law = np.exp(word_law(codebook(), EPSILON))
        expected = (prior[:, None] * law).max(axis=0).sum()
        named = build_success_rate(codebook().mechanism, COARSE)(EPSILON)
        assert named == pytest.approx(expected)
        assert (
            f"with probability {math.ceil(named * 1000) / 1000:g} at most"
            in codebook().privatize(TEXT).guarantee.explain()
        )
        skewed = np.random.default_rng(2).dirichlet(np.full(60, 0.3))
        whole = (skewed[:, None] * law).max(axis=0).sum()
        assert build_success_rate(codebook().mechanism, COARSE, skewed)(EPSILON) == pytest.approx(
            whole
        )
        exponential = Privatizer("exponential", epsilon=3.0, table=COARSE)
        c = exponential.mechanism.calibrate(COARSE, Layout.build(1), np.array([3.0]))[0]
        whole = (skewed[:, None] * np.exp(word_law(exponential, 3.0))).max(axis=0).sum()
        assert build_success_rate(exponential.mechanism, COARSE, skewed)(float(c)) == pytest.approx(
            whole
        )

    def test_budgets_of_ones_own_may_give_more_than_they_say(self):
        class Generous:
            epsilon = 0.5

            def assign(self, protection):
                return np.full(len(protection.public), 8.0)

        said = codebook(epsilon=None, budget=Generous()).privatize(TEXT).guarantee.explain()
        assert "names a word from one released code" not in said

    def test_stop_words_that_are_protected_are_outside_of_what_the_book_counted(self):
        said = codebook(words={"stopwords": "protect"}).privatize(TEXT).guarantee.explain()
        assert "names a word from one released code" not in said

    def test_groups_have_budgets_over_codes(self):
        options = {
            "protect": {"always": ["apple"]},
            "groups": {"budgets": "0.5, 0.5, 2, 2"},
            "epsilon": None,
        }
        found = codebook(**options).privatize(TEXT)
        assert {group.label: group.epsilon for group in found.guarantee.groups} == pytest.approx(
            {"sensitive": 0.5, "other": 2.0}
        )
        assert "For two words of one of its 6 codes it is 0." in found.guarantee.headline()

    def test_a_group_that_is_drawn_at_random_may_tell_words_of_one_code_apart(self):
        options = {
            "protect": {"always": ["apple"], "labels": "randomised", "label_epsilon": 1.0},
            "groups": {"budgets": "0.5, 0.5, 2, 2"},
            "epsilon": None,
        }
        said = codebook(**options).privatize(TEXT).guarantee
        assert said.claim.codes == ()
        assert SAME_CODE_NOTE not in said.explain()
        assert DRAWN_GROUPS_NOTE in said.explain()
        assert "it is 0" not in said.headline()


class TestEquality:
    """Equal words as one draw: what that saves, and what the mask then tells."""

    TEXT = "apple apple apple"

    @staticmethod
    def loss(privatizer, show):
        """The largest loss of a whole text between two words of unlike codes, over every output; `show`: from draws."""
        right = np.log(np.full(CODES, 1.0) + (math.exp(EPSILON) - 1) * np.eye(CODES)) - math.log(
            math.exp(EPSILON) + CODES - 1
        )
        rehearsal = privatizer.rehearse([TestEquality.TEXT])
        chance: dict[tuple[int, ...], Any] = {}
        for drawn in product(range(CODES), repeat=3):
            shown = tuple(show(privatizer, rehearsal, np.array(drawn)).tolist())
            chance[shown] = chance.get(shown, 0.0) + np.exp(right[:, list(drawn)].sum(axis=1))
        law = np.log(np.array(list(chance.values())))
        return float((law.max(axis=1) - law.min(axis=1)).max())

    def test_a_word_spends_once_at_all_its_places(self):
        """Every output of a text; that the most frequent draw be shown, not the first, is caught."""

        def shown(privatizer, rehearsal, drawn):
            return replace_equal_rows(
                privatizer, tokenize([self.TEXT]), rehearsal.protection, rehearsal.plan, drawn, None
            )

        def most_frequent(privatizer, rehearsal, drawn):
            return np.full(3, np.bincount(drawn).argmax())

        once = codebook(words={"consistent": True})
        assert self.loss(once, shown) == pytest.approx(EPSILON)
        assert self.loss(once, most_frequent) > EPSILON + 0.5
        assert self.loss(codebook(), lambda privatizer, rehearsal, drawn: drawn) == pytest.approx(
            3 * EPSILON
        )
        for made, spent in ((once, EPSILON), (codebook(), 3 * EPSILON)):
            said = made.privatize(self.TEXT).guarantee
            assert said.total(said.epsilon_per_word) == pytest.approx(spent)

    def test_a_session_loses_epsilon_once_for_each_word(self):
        session, made = Session(), codebook(words={"consistent": True})
        made.privatize("apple river apple", session)
        (loss,) = made.privatize("apple lemon", session).guarantee.per_person
        assert (loss.drawn, loss.released, loss.alike) == (3, 4, True)
        assert loss.total / 1e6 == pytest.approx(3 * EPSILON, abs=1e-5)

    def test_the_mask_tells_words_of_one_code_apart(self):
        texts = ("anchor candle anchor", "anchor candle candle")  # both words have code 0
        for consistent in (False, True):
            made = codebook(words={"consistent": consistent})
            found = [made.rehearse([text]) for text in texts]
            assert [each.plan.block.rows.tolist() for each in found] == [[0, 0, 0]] * 2
            one, two = (each.results[0].released.mask for each in found)
            assert (one == two) is not consistent
            assert (EQUAL_WORDS_NOTE in found[0].results[0].guarantee.claim.caveats) is consistent


class TestProfile:
    """The profile `data`: few codes for all content words, and placeholders for identifiers as in `document`."""

    TEXT = "Maria Silva owes the bank money. Call +351 21 123 4567, or write to maria@example.org by 3 March 2021."

    def test_what_it_says(self):
        found = Privatizer.from_profile("data").privatize(self.TEXT)
        book = find_book("24")
        assert found.guarantee.epsilon == 4
        assert found.guarantee.kind == "ldp"
        assert (
            "words drawn among 24 codes at epsilon 4 (any two words)" in found.guarantee.summary()
        )
        assert "For two words of one of its 24 codes it is 0." in found.guarantee.headline()
        assert {SAME_CODE_NOTE, *book.write_facts()} < {*found.guarantee.claim.caveats}
        assert {NAMES_AND_FIGURES_NOTE, EQUAL_WORDS_NOTE, REPEATED_TEXT_NOTE}.isdisjoint(
            found.guarantee.claim.caveats
        )
        assert "equal words" not in found.guarantee.mask

    def test_the_law_is_randomised_response_over_the_codes_of_the_general_book(self):
        made, book = Privatizer.from_profile("data"), find_book("24")
        words = [
            made.table.origin.words[row]
            for row in (5, 700, *np.flatnonzero(book.codes == book.codes[5])[:3])
        ]
        rows, _ = made.table.lookup(words)
        block = Block(layout=Layout.build(*[1] * len(rows)), rows=rows)
        assert isinstance(made.mechanism, Law)
        law = made.mechanism.log_probs(made.table, block, np.full(len(rows), 4.0))
        assert law is not None
        kept = math.exp(4) / (math.exp(4) + 23)
        np.testing.assert_allclose(np.exp(law[np.arange(len(rows)), rows]), kept, rtol=1e-12)
        assert (law[2:] == law[0]).all()

    def test_identifiers_are_placeholders_as_in_document(self):
        def holes(profile):
            items = Privatizer.from_profile(profile).privatize(self.TEXT).released.items
            return [
                (item.text.strip("<>").rstrip("_1234"), item.group)
                for item in items
                if item.kind is Kind.PLACEHOLDER
            ]

        assert holes("data") == holes("document")
        assert [label for label, _ in holes("data")] == ["PHONE", "EMAIL"]

    def test_codes_are_emitted(self):
        made = Privatizer.from_config(resolve(profile="data", overrides={"table.spelling": "code"}))
        found = made.privatize(self.TEXT)
        drawn = [item.text for item in found.released.items if item.kind is Kind.WORD]
        assert len(drawn) > 5
        assert all(re.fullmatch(r"code\d{1,2}", each) for each in drawn)
        assert "<PHONE>" in found.text
        assert isinstance(made.table.book, Book)
        assert found.guarantee.claim.options["book"] == made.table.book.to_json()

    def test_another_book_or_budget_may_be_asked_for(self):
        made = Privatizer.from_config(
            resolve(profile="data", overrides={"table.codes": "8", "epsilon": 2})
        )
        assert "among 8 codes at epsilon 2" in made.privatize(self.TEXT).guarantee.summary()


class TestSpelling:
    def test_words_or_codes(self):
        words = codebook().privatize("apple river").released.items
        assert {item.text for item in words} <= {*NOUNS[:CODES]}
        coded = codebook(table=TABLE.coarsen(BOOK, spelling="code"), seed=1).privatize(
            "apple river"
        )
        assert all(item.text.removeprefix("code").isdecimal() for item in coded.released.items)

    def test_names_stay_names(self):
        """Names are drawn from lists over the words, and spelled as words, not as codes."""
        table = load_table("minilm")
        made = Privatizer(
            "codebook",
            epsilon=4,
            table=table.coarsen(book_of(table, 40), spelling="code"),
            protect={"detectors": "tagger"},
            names={"types": "PERSON"},
        )
        found = made.privatize("Yesterday Maria Silva met the plumber in the garden.")
        shown = [item.text for item in found.released.items]
        assert not any(word.startswith("code") for word in shown[1:3])
        assert any(word.startswith("code") for word in shown)
        assert "it is 0" not in found.guarantee.headline()
        assert NAMES_AND_FIGURES_NOTE in found.guarantee.explain()


class TestRefused:
    def test_codebook_needs_codes(self):
        with pytest.raises(
            ConfigError,
            match=r"codebook draws among the codes of a table, and table.codes \(--codes\) is",
        ):
            codebook(table=TABLE)

    def test_pieces_and_spelling_codes_that_are_not_spelled(self):
        with pytest.raises(ConfigError, match=r"table\.codes needs words.unit=word"):
            codebook(words={"unit": "wordpiece"})
        with pytest.raises(
            ConfigError, match=r"rerank\.m cannot be combined with table.spelling=code"
        ):
            codebook(table=TABLE.coarsen(BOOK, spelling="code"), rerank={"m": 5})

    def test_the_texts_of_the_book(self):
        privatizer = codebook()
        with pytest.raises(InputError, match="made from other texts than those that are released"):
            privatizer.privatize("A PUBLIC  text.")
        with pytest.raises(InputError):
            list(privatizer.privatize_many(["fine", "Another public text."]))
        with pytest.raises(InputError):
            Case.create(privatizer, ["Another public text."])

    def test_a_projection_of_codes_says_and_refuses_the_same(self):
        privatizer = codebook(table=COARSE.project(3))
        with pytest.raises(InputError, match="made from other texts than those that are released"):
            privatizer.privatize("A PUBLIC  text.")
        found = privatizer.privatize(TEXT).guarantee
        assert found.claim.options["book"] == BOOK.to_json()
        assert SAME_CODE_NOTE in found.explain()
        assert "names a word from one released code alone" in found.explain()

    def test_codes_are_spelled_only_where_there_are_any(self):
        with pytest.raises(ConfigError, match=r"table\.spelling=code"):
            resolve(overrides={"table.spelling": "code"}, complete=False)


class TestAround:
    def test_a_privatizer_travels(self, tmp_path):
        table = load_table("minilm")
        made = codebook(table=table.coarsen(book_of(table, 40)))
        packed = pickle.dumps(made)
        assert len(packed) < 1_000_000
        assert pickle.loads(packed).table is made.table

    def test_a_projection_travels_as_it_is(self):
        table = load_table("minilm")
        for view in (table.project(4), table.coarsen(book_of(table, 40)).project(4)):
            made = Privatizer("exponential", epsilon=3.0, table=view)
            again = pickle.loads(pickle.dumps(made)).table
            assert (again.digest, again.name, len(again)) == (view.digest, view.name, len(view))

    def test_options_and_files(self, tmp_path):
        book_of(load_table("minilm"), 40).save(tmp_path / "forty")
        options = {
            "mechanism.name": "codebook",
            "table.codes": str(tmp_path / "forty"),
            "table.spelling": "code",
            "epsilon": 4,
        }
        config = resolve(overrides=options)
        assert config.to_dict()["table"]["codes"] == str(tmp_path / "forty")
        assert "code" in Privatizer.from_config(config).privatize("plumber").text
        assert set(Config().to_dict()["table"]) == {"name", "metric", "device"}
        assert resolve(overrides={"table.codes": 24}, complete=False).table.codes == "24"

    def test_a_budget_is_found_for_words_of_codes(self, tmp_path):
        book_of(load_table("minilm"), 40).save(tmp_path / "forty")
        options = {
            "mechanism.name": "codebook",
            "table.codes": str(tmp_path / "forty"),
            "risk": 0.03,
        }
        made = Privatizer.from_config(resolve(overrides=options))
        prior = compute_shares(made.table.origin)
        found = build_success_rate(made.mechanism, made.table, prior)
        assert isinstance(made.budget, Uniform)
        assert found(made.budget.epsilon) <= 0.03 < found(made.budget.epsilon * 1.05)

    def test_seeds_give_unlike_draws_under_unlike_books(self):
        text = " ".join(NOUNS)
        own, again = (codebook(seed=3).privatize(text).text for _ in range(2))
        other = (
            codebook(seed=3, table=TABLE.coarsen(replace(BOOK, source="others")))
            .privatize(text)
            .text
        )
        assert own == again != other
