"""Books by group: a word goes through the book of its group, and nothing tells words of one code of it apart."""

import math
import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.fixtures import NOUNS, book_of, gaussian_rows

from textveil import Privatizer, Session
from textveil.config import resolve
from textveil.errors import ConfigError, InputError, TableError
from textveil.evaluate.attack import Case
from textveil.evaluate.attack.learned import Learned
from textveil.evaluate.attack.posterior import rank_candidates
from textveil.mechanism import BookMechanism, Distance, Law, Select, Staircase, build_success_rate
from textveil.mechanism.papers import codebook
from textveil.pipeline.codebook_statement import DRAWN_GROUPS_NOTE, GROUP_BOOKS_NOTE, SAME_CODE_NOTE
from textveil.protect import GROUPS
from textveil.randomness import SystemRandomness
from textveil.table import Books, EmbeddingTable, compute_shares, find_book, load_table
from textveil_bench.attack.linkage import Linkage
from textveil_bench.attack.membership import Membership
from textveil_bench.audit import audit

TABLE = EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
COARSE, FINE, MIDDLE = book_of(TABLE, 3), book_of(TABLE, 12), book_of(TABLE, 5)
BOOKS: Any = Books.build([COARSE, COARSE, FINE, MIDDLE])
VIEW = TABLE.coarsen(BOOKS)
BUDGETS = (1.5, 1.0, 6.0, 3.0)
OF = {label: NOUNS[15 * i : 15 * i + 15] for i, label in enumerate(GROUPS)}
"""The words of each group: they are in it by public lists."""

LISTS = {
    "always": [*OF["sensitive-important"], *OF["sensitive"]],
    "importance": "list",
    "important": [*OF["sensitive-important"], *OF["important"]],
}
TEXT = " ".join(OF[label][i] for i in range(5) for label in GROUPS)


def made(table: EmbeddingTable = VIEW, **options: Any) -> Privatizer:
    given: dict[str, Any] = {"protect": LISTS, "groups": {"budgets": BUDGETS}, "table": table}
    return Privatizer(options.pop("mechanism", "codebook"), **{**given, **options})


def laws(privatizer: Privatizer) -> dict[str, np.ndarray]:
    """ln P(released | word) of each word of each group, [15, 20], as the whole pipeline has it."""
    found = {}
    for label, words in OF.items():
        lines = []
        for word in words:
            rehearsal = privatizer.rehearse([word])
            assert rehearsal.results[0].released.mask.groups == (label,)
            mechanism: Any = privatizer.mechanism
            law = mechanism.log_probs(privatizer.table, rehearsal.plan.block, rehearsal.parameter)
            lines.append(law[0])
        found[label] = np.array(lines)
    return found


def faults(privatizer: Privatizer) -> set[str]:
    """What does not hold of the promise for any two words of one group, over every output."""
    found = set()
    for (label, law), budget, of in zip(
        laws(privatizer).items(), BUDGETS, BOOKS.book_numbers, strict=True
    ):
        codes = BOOKS.parts[of].codes[[NOUNS.index(word) for word in OF[label]]]
        with np.errstate(invalid="ignore"):
            lost = np.nan_to_num(np.abs(law[:, None] - law[None]), nan=0.0, posinf=math.inf).max(
                axis=2
            )
        same = codes[:, None] == codes[None]
        found |= {f"{label}: within a code"} if lost[same].max() > 0 else set()
        found |= {f"{label}: between codes"} if lost[~same].max() > budget + 1e-9 else set()
        found |= {f"{label}: not sharp"} if lost[~same].min() < budget - 1e-9 else set()
        own = np.arange(BOOKS.starts[of], BOOKS.starts[of + 1])
        found |= (
            {f"{label}: another book"}
            if np.flatnonzero(np.isfinite(law).any(axis=0)).tolist() != own.tolist()
            else set()
        )
    return found


class FinestForAll(Books):
    """Whatever its group, a word has its code in the finest book."""

    def map_rows(self, rows, group):
        return super().map_rows(rows, np.full_like(group, GROUPS.index("important")))


class BookOfTheWord(Books):
    """Words of the first half of the table go through the finest book: which book follows from more than the group."""

    def map_rows(self, rows, group):
        return super().map_rows(rows, np.where(rows < 5, GROUPS.index("important"), group))


class BudgetOfTheFirst(BookMechanism):
    """Every word is drawn under the largest budget of its text or batch."""

    def log_probs(self, table, block, parameter, released=None):
        return super().log_probs(table, block, np.full_like(parameter, max(BUDGETS)), released)


class TestLaw:
    def test_the_loss_is_nothing_within_a_code_of_the_groups_book_and_its_budget_between(self):
        assert faults(made()) == set()

    @pytest.mark.parametrize("twin", [FinestForAll, BookOfTheWord])
    def test_a_word_in_the_wrong_book_is_found(self, twin):
        broken = twin(parts=BOOKS.parts, book_numbers=BOOKS.book_numbers)
        found = faults(made(table=replace(VIEW, book=broken)))
        assert "sensitive-important: within a code" in found
        assert "sensitive-important: another book" in found

    def test_a_word_under_the_wrong_budget_is_found(self):
        broken = made().with_parts(mechanism=BudgetOfTheFirst(mechanism=codebook()))
        assert faults(broken) >= {"sensitive: between codes", "other: between codes"}

    def test_draws_follow_the_law_of_their_group(self):
        """Chi-square with a false alarm in a million for each group; the law under another group's budget is caught."""
        word, words = {label: own[7] for label, own in OF.items()}, 6000
        rehearsal = made().rehearse([" ".join([*word.values()] * words)])
        drawn = rehearsal.drawn_rows.reshape(words, 4)
        for i, (label, of) in enumerate(zip(GROUPS, BOOKS.book_numbers, strict=True)):
            part, start = BOOKS.parts[of], int(BOOKS.starts[of])
            seen = np.bincount(drawn[:, i] - start, minlength=len(part))
            assert len(seen) == len(part)
            limit = stats.chi2.ppf(1 - 1e-6, len(part) - 1)
            for budget in (BUDGETS[i], BUDGETS[(i + 1) % 4]):
                law = np.ones(len(part))
                law[part.codes[NOUNS.index(word[label])]] = math.exp(budget)
                expected = words * law / law.sum()
                assert (((seen - expected) ** 2 / expected).sum() < limit) == (budget == BUDGETS[i])

    def test_drawn_labels_are_covered_over_all_words(self):
        """Every pair (label, code) for every pair of words of any groups, against the bound of the statement."""
        label_epsilon = 1.0
        protect = {**LISTS, "labels": "randomised", "label_epsilon": label_epsilon}
        privatizer = made(protect=protect)
        said = privatizer.privatize("anchor").guarantee
        labels = np.exp(label_epsilon * np.eye(4))
        labels /= labels.sum(axis=1, keepdims=True)
        lines = []
        for i, word in enumerate(NOUNS):
            line = []
            for group, (budget, of) in enumerate(zip(BUDGETS, BOOKS.book_numbers, strict=True)):
                law = np.ones(len(BOOKS.parts[of]))
                law[BOOKS.parts[of].codes[NOUNS.index(word)]] = math.exp(budget)
                line.append(labels[i // 15, group] * law / law.sum())
            lines.append(np.log(np.concatenate(line)))
        worst = np.abs(np.array(lines)[:, None] - np.array(lines)[None]).max()
        assert worst <= said.epsilon + 1e-9
        assert worst > max(BUDGETS)
        assert DRAWN_GROUPS_NOTE in said.claim.caveats
        assert said.claim.codes == ()

    def test_a_text_is_drawn_alike_whatever_stands_in_others_of_the_batch(self):
        one = next(made(seed=4).privatize_many([TEXT, " ".join(OF["other"])])).text
        two = next(made(seed=4).privatize_many([TEXT, " ".join(OF["sensitive"])])).text
        assert one == two


class TestStatement:
    def test_what_it_says(self):
        found = made().privatize(TEXT).guarantee
        assert found.epsilon == pytest.approx(max(BUDGETS))
        assert "drawn among 3 to 12 codes at" in found.summary()
        assert [group.epsilon for group in found.groups] == pytest.approx(BUDGETS)
        assert [group.label for group in found.groups] == [*GROUPS]
        within = "(codes by group: sensitive-important 3, sensitive 3, important 12, other 5)"
        assert (
            f"For two words of one group and one of its codes it is 0 {within}." in found.headline()
        )
        assert GROUP_BOOKS_NOTE in found.claim.caveats
        assert SAME_CODE_NOTE not in found.claim.caveats
        assert f"important words: {FINE.write_facts()[0]}" in found.claim.caveats
        assert (
            f"sensitive-important and sensitive words: {COARSE.write_facts()[0]}"
            in found.claim.caveats
        )
        books: Any = found.claim.options["book"]
        assert [each["groups"] for each in books] == [[*GROUPS[:2]], ["important"], ["other"]]
        assert "it is in the mask" in found.explain()
        assert type(found).unpack(found.pack()).headline() == found.headline()

    def test_how_often_a_word_is_named_at_most(self):
        each = [
            build_success_rate(codebook(), VIEW.views[of])(budget)
            for of, budget in zip(BOOKS.book_numbers, BUDGETS, strict=True)
        ]
        said = made().privatize(TEXT).guarantee.explain()
        assert f"with probability {math.ceil(max(each) * 1000) / 1000:g} at most" in said
        same = [build_success_rate(codebook(), view)(2.0) for view in VIEW.views]
        assert build_success_rate(BookMechanism(mechanism=codebook()), VIEW)(2.0) == max(same)

    def test_equal_words_of_a_group_are_released_alike_in_a_session(self):
        session, twice = Session(), " ".join([OF["sensitive"][0], OF["important"][0]] * 2)
        privatizer = made(words={"consistent": True})
        texts = {privatizer.privatize(twice, session).text for _ in range(5)}
        assert len(texts) == 1
        assert len({*texts.pop().split()[::2]}) == 1

    def test_codes_say_which_book_they_are_of(self):
        found = made(table=TABLE.coarsen(BOOKS, spelling="code")).privatize(TEXT).released.items
        numbers = {"sensitive-important": 1, "sensitive": 1, "important": 2, "other": 3}
        assert all(item.text.startswith(f"code{numbers[item.group]}_") for item in found)
        assert {item.text for item in found} <= {*TABLE.coarsen(BOOKS, spelling="code").words}


class TestAttacks:
    def test_the_posterior_is_bayes_rule_over_the_words_of_a_group(self):
        case = Case.create(made(), [TEXT])
        view = replace(case.view, row_group=None)  # an attacker who does not look at the lists
        found = rank_candidates(view, prior="unigram", k=60, rng=SystemRandomness())
        prior = 0.5 / 60 + 0.5 * compute_shares(TABLE)
        for i, word in enumerate(TEXT.split()):
            group = next(g for g, label in enumerate(GROUPS) if word in OF[label])
            of = BOOKS.book_numbers[group]
            drawn = int(view.output_rows[i]) - int(BOOKS.starts[of])
            expected = prior * np.where(BOOKS.parts[of].codes == drawn, math.exp(BUDGETS[group]), 1)
            expected /= expected.sum()
            given = np.zeros(60)
            given[found.candidates[i]] = np.exp(found.log_probability[i])
            np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-12)

    def test_others_run(self):
        case = Case.create(made(), [TEXT] * 3)
        assert Membership().refusal(case.view) == ""
        assert list(Membership().run(case, rng=SystemRandomness()))
        public = tuple(f"The {word} and the stone." for word in NOUNS)
        assert Learned(public=public).refusal(case.view) == ""
        assert Linkage().refusal(case.view) == ""


class OneCodeFewer(Select):
    """The response is over all codes but the one after the word's own."""

    def log_probs(self, table, block, parameter, released=None):
        law = super().log_probs(table, block, parameter, released)
        assert law is not None
        law[np.arange(len(law)), (block.secret + 1) % len(table)] = -np.inf
        return law - np.log(np.exp(law).sum(axis=1, keepdims=True))


def test_each_group_is_audited_and_a_broken_response_is_found():
    exact = ("log-ratio", "joint", "certificate", "support", "overcharge")
    build = lambda seed=None, mechanism="codebook": made(seed=seed, mechanism=mechanism)  # noqa: E731
    found = list(audit(build, small=True, only=exact))
    names = [
        "codebook: sensitive-important",
        "codebook: sensitive",
        "codebook: important",
        "codebook: other",
    ]
    assert list(dict.fromkeys(each.mechanism for each in found)) == names
    unheld = {(each.check, each.verdict) for each in found if each.verdict != "holds"}
    assert unheld == {("joint", "not applicable")}  # fewer codes than it takes words
    ratios = [each.found for each in found if each.check == "log-ratio"]
    assert ratios == pytest.approx(BUDGETS)
    twin = OneCodeFewer(name="codebook", utility=Distance(), rule=Staircase(sizes=(1,)))
    broken = list(audit(lambda seed=None: build(seed, twin), small=True, only=("log-ratio",)))
    assert [(each.mechanism, each.verdict) for each in broken] == [
        (name, "violated") for name in names
    ]


def test_groups_with_one_book_and_budget_are_audited_together():
    one = partial(made, groups=None, epsilon=2.0)
    found = list(audit(one, small=True, only=("log-ratio",)))
    names = ["sensitive-important, sensitive", "important", "other"]
    assert [each.mechanism for each in found] == [f"codebook: {each}" for each in names]
    named = partial(made, groups=None, mechanism="exponential", c=1.5)
    assert [each.verdict for each in audit(named, small=True, only=("log-ratio",))] == ["holds"] * 3


class TestOptions:
    def test_four_books_are_given_with_commas_or_as_a_list(self):
        options = {
            "mechanism.name": "codebook",
            "protect.always": ["lawyer"],
            "groups.budgets": "1, 1, 8, 4",
            "table.spelling": "code",
        }
        for codes in ("8, 8,150,24", [8, 8, 150, 24]):
            config = resolve(overrides={**options, "table.codes": codes})
            privatizer = Privatizer.from_config(config)
            assert isinstance(privatizer.table.book, Books)
            assert privatizer.table.book.sizes == (8, 8, 150, 24)
            assert privatizer.table is load_table("minilm", codes="8, 8, 150, 24", spelling="code")
            packed = pickle.dumps(privatizer)
            assert len(packed) < 1_000_000
            assert pickle.loads(packed).table is privatizer.table
        assert Books.build([find_book("8")] * 4) == find_book("8")

    def test_what_is_refused(self):
        with pytest.raises(
            ConfigError, match=r"table\.codes has books for four groups, and nothing puts words"
        ):
            Privatizer("codebook", epsilon=2, table=VIEW)
        with pytest.raises(ConfigError, match="one book, or four with commas for the four groups"):
            load_table("minilm", codes="8, 24")
        with pytest.raises(ConfigError, match="needs a table of whole words that is not a view"):
            VIEW.coarsen(BOOKS)
        for options in ({"mechanism": "d-chi-stencil"}, {"table": VIEW.project(3)}):
            with pytest.raises(
                ConfigError,
                match="need a mechanism that draws each word alone, without a projection",
            ):
                made(**options)
        with pytest.raises(TableError, match="no group is given"):
            VIEW.lookup(["anchor"])
        with pytest.raises(TableError, match="one for each of the four groups"):
            Books(parts=(COARSE, FINE), book_numbers=(0, 0, 0, 0))
        with pytest.raises(InputError, match="made from other texts"):
            made().privatize("A public text.")

    @pytest.mark.parametrize(
        ("mechanism", "options"), [("krr", {}), ("rankcape", {"k": 2}), ("exponential", {})]
    )
    def test_other_mechanisms_run_over_books_by_group(self, mechanism, options):
        privatizer = made(mechanism=mechanism, **options)
        assert isinstance(privatizer.mechanism, Law)
        for (label, law), of in zip(laws(privatizer).items(), BOOKS.book_numbers, strict=True):
            codes = BOOKS.parts[of].codes[[NOUNS.index(word) for word in OF[label]]]
            same = codes[:, None] == codes[None]
            with np.errstate(invalid="ignore"):
                lost = np.nan_to_num(law[:, None] - law[None], nan=0.0, posinf=math.inf).max(axis=2)
            assert lost[same].max() == 0
            said = privatizer.privatize(OF[label][0]).guarantee
            assert lost.max() <= said.epsilon_ldp + 1e-9
            assert lost.max() > 0.3 * said.epsilon_ldp
