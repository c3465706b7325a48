"""The sentence: options, batches, budgets, failures, secrets, threads, forks and pickles."""

import copy
import itertools
import json
import logging
import math
import multiprocessing
import pickle
import re
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.broken import Groups
from tests.fixtures import NOUNS, Stub, fit, gaussian_rows

from textveil.config.registry import MECHANISMS
from textveil.config.sections import Config, MechanismOptions, TableOptions, WordsOptions
from textveil.errors import (
    BudgetError,
    ConfigError,
    InputError,
    MechanismError,
    RandomnessError,
    TextveilError,
    TextveilWarning,
    UnknownName,
    VocabularyError,
)
from textveil.mechanism.papers import noise
from textveil.pipeline import privatizer
from textveil.pipeline.privatizer import Privatizer
from textveil.protect.budget import Uniform
from textveil.randomness import SeededRandomness
from textveil.session.state import Session
from textveil.table.embedding import EmbeddingTable, load_table
from textveil.text.released import Kind
from textveil.text.tokens import tokenize

CANARY = "Zyxqorvian"
TABLE = EmbeddingTable.build(name="chord", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
MANY = " ".join(NOUNS)
EVERY = pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
RANDOM = pytest.mark.parametrize(
    "mechanism", ["noise", "d-chi-stencil", "polar", "laplace", "exponential"]
)


UNBOUND = {"santext+", "custext", "custext+", "rantext"}
"""Mechanisms whose epsilon is nominal: for all words nothing holds."""


def make(mechanism: str, *, epsilon: float = 4.0, **options: Any) -> Privatizer:
    """A privatizer on the small table, with an epsilon where it means something."""
    if MECHANISMS[mechanism].budget:
        options["epsilon"] = epsilon
    with pytest.warns(match="bounds nothing") if mechanism in UNBOUND else nullcontext():
        return Privatizer(mechanism, table=fit(mechanism, options.pop("table", TABLE)), **options)


@dataclass(frozen=True)
class Given:
    """A budget that a test writes down: one epsilon per word of the batch."""

    values: Any

    def assign(self, protection):
        return np.asarray(self.values)


# ---- options ---------------------------------------------------------------------------------------------


@EVERY
def test_the_whole_way(mechanism):
    text = "The Apple , a river !\n\n Stone ."
    result = make(mechanism, words=WordsOptions(casing="copy")).privatize(text)
    kinds = [item.kind for item in result.released.items]
    verbatim = [item.text for item in result.released.items if item.kind is Kind.VERBATIM]
    assert verbatim == ["The", ",", "a", "!", "."]
    assert kinds.count(Kind.VERBATIM) == 5
    assert len(result.guarantee.epsilon_per_word) == 3
    assert re.findall(r"\s+", result.text) == re.findall(r"\s+", text)
    assert result.private.text == text
    assert list(result.private.words) == tokenize([text]).words
    for item in result.released.items:
        if item.kind is Kind.WORD:
            assert item.text.lower() in NOUNS


def test_stopwords_pass(echo):
    result = Privatizer(echo, epsilon=5, table=TABLE).privatize("The river isn't his; don’t go!")
    assert result.released.mask.verbatim == (0, 2, 3, 4, 5, 7)
    assert result.guarantee.mask[:2] == ("length", "verbatim words")
    assert [item.group for item in result.released.items][:2] == ["public", "protected"]
    assert result.guarantee.protected == 2
    assert result.oov_share == 0.5  # river is known, go is not


def test_stopwords_protect(echo):
    options = WordsOptions(stopwords="protect")
    result = Privatizer(echo, epsilon=5, table=TABLE, words=options).privatize(
        "The river, the The!"
    )
    assert result.released.mask.verbatim == ()
    assert "verbatim words" not in result.guarantee.mask
    assert [item.kind for item in result.released.items] == [Kind.WORD] * 6
    assert result.guarantee.epsilon_per_word.tolist() == [5.0] * 6
    assert result.oov_share == pytest.approx(5 / 6)
    shown = [item.text for item in result.released.items]
    assert shown[0] == shown[3] == shown[4] != "the"
    assert set(shown) <= set(NOUNS)


def test_casing_lower(echo):
    result = Privatizer(echo, epsilon=5, table=TABLE).privatize("The River SADDLE stone")
    assert result.text == "the river saddle stone"
    assert result.released.mask.casing is None
    assert "casing" not in result.guarantee.mask


def test_casing_copy_is_recorded(echo):
    options = WordsOptions(casing="copy")
    result = Privatizer(echo, epsilon=5, table=TABLE, words=options).privatize(
        "The River SADDLE stone X"
    )
    assert result.text.startswith("The River SADDLE stone ")
    assert result.released.mask.casing == ("title", "title", "upper", "lower", "title")
    assert "casing" in result.guarantee.mask
    assert "casing" in result.guarantee.headline()


def test_surrogate(echo):
    result = Privatizer(echo, epsilon=5, table=TABLE).privatize(f"river {CANARY} the stone")
    assert CANARY.lower() not in result.text.lower()
    assert [item.kind for item in result.released.items] == ["word", "word", "verbatim", "word"]
    row = TABLE.lookup([CANARY])[0].item()
    assert result.released.items[1].text == NOUNS[row]
    assert result.oov_share == pytest.approx(1 / 3)
    assert result.guarantee.epsilon == 5


def test_placeholder_for_unknown_words(echo):
    options = WordsOptions(oov="placeholder")
    result = Privatizer(echo, epsilon=5, table=TABLE, words=options).privatize(
        f"river {CANARY} the stone 12"
    )
    assert result.text == "river <WORD> the stone <WORD>"
    assert result.released.mask.placeholders == ((1, "WORD"), (4, "WORD"))
    assert result.guarantee.epsilon_per_word.tolist() == [5, 0, 5, 0]
    assert result.guarantee.placeholders == 2
    assert result.oov_share == 0.5
    assert "placeholder types" in result.guarantee.mask
    assert result.guarantee.epsilon == 5


def test_error_for_unknown_words(echo):
    privatizer = Privatizer(echo, epsilon=5, table=TABLE, words=WordsOptions(oov="error"))
    assert privatizer.privatize("The river !").text == "the river !"
    with pytest.raises(
        VocabularyError, match=r"2 of 4 words are outside the table chord"
    ) as caught:
        privatizer.privatize(f"river {CANARY} the 日")
    shown = "".join(traceback.format_exception(caught.value))
    assert CANARY not in shown


def test_keep_for_unknown_words(echo):
    privatizer = Privatizer(
        echo, epsilon=5, table=TABLE, words=WordsOptions(oov="keep", casing="copy")
    )
    result = privatizer.privatize(f"river {CANARY} the stone")
    assert result.text == f"river {CANARY} the stone"
    assert result.released.mask.verbatim == (1, 2)
    assert result.guarantee.epsilon_per_word.tolist() == [5, math.inf, 5]
    assert result.guarantee.kind == "none"
    assert result.guarantee.epsilon == result.guarantee.epsilon_ldp == math.inf
    assert "1 more word passed unprotected" in result.guarantee.headline()


def test_keep_is_infinite_even_where_every_word_is_known(echo):
    """The text next to this one may hold an unknown word, and would pass it."""
    guarantee = (
        Privatizer(echo, epsilon=5, table=TABLE, words=WordsOptions(oov="keep"))
        .privatize("river")
        .guarantee
    )
    assert guarantee.epsilon == math.inf
    assert guarantee.to_json()["epsilon"] == "infinite"


@EVERY
def test_texts_without_words(mechanism):
    made = make(mechanism)
    for text in ("", " ", "\n\t \u3000 \r\n"):
        result = made.privatize(text)
        assert result.text == text
        assert result.released.items == ()
        assert result.oov_share == 0.0
        assert len(result.guarantee.epsilon_per_word) == 0
        assert json.loads(json.dumps(result.to_json()))["text"] == text


@EVERY
def test_texts_of_public_words_only(mechanism):
    made = make(mechanism)
    for text in ("the", "The, of: and!", "."):
        result = made.privatize(text)
        assert result.text == text.lower()
        assert result.guarantee.protected == 0
        if MECHANISMS[mechanism].budget and mechanism not in UNBOUND:
            assert result.guarantee.epsilon == 0.0


@EVERY
def test_one_word(mechanism):
    made = make(mechanism)
    for text in ("river", "日", "😀"):
        result = made.privatize(text)
        assert len(result.released.items) == 1
        assert result.text in (*NOUNS, "<WORD>")
        assert result.guarantee.epsilon_per_word[0] >= 0
        if MECHANISMS[mechanism].budget and mechanism not in UNBOUND:
            assert result.guarantee.epsilon_per_word[0] <= 4.0 * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=80), casing=st.sampled_from(["lower", "copy"]))
@example(text="日本 at 12:30 😀\r\n\x00", casing="copy")
def test_any_text(text, casing):
    result = Privatizer(
        "noise", epsilon=4, table=TABLE, words=WordsOptions(casing=casing)
    ).privatize(text)
    words = tokenize([text]).words
    assert [item[3:] for item in result.released.items] == [(i, i + 1) for i in range(len(words))]
    public = {i for i, item in enumerate(result.released.items) if item.kind is Kind.VERBATIM}
    assert len(result.guarantee.epsilon_per_word) == len(words) - len(public)
    assert all(
        item.text.lower() in NOUNS
        for i, item in enumerate(result.released.items)
        if i not in public
    )
    for before, after in zip(tokenize([text]).get_gaps(0), result.released.gaps, strict=True):
        assert after == before or (before, after) == ("", " ")
    assert result.released.mask.words == len(words)


def test_replaced_neighbours_are_set_apart(echo):
    result = Privatizer(echo, epsilon=5, table=TABLE).privatize("日本😀river!")
    assert len(result.text.split()) == 4
    assert result.text.endswith("river!")


@pytest.mark.parametrize("text", [None, b"river", 7, ["river"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(InputError):
        make("noise").privatize(text)


def test_a_lone_surrogate_is_refused_without_the_text():
    with pytest.raises(InputError, match="lone surrogate") as caught:
        make("noise").privatize(f"river {CANARY}\ud800")
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_config(monkeypatch):
    monkeypatch.setattr(privatizer, "load_table", lambda name, **options: {"small": TABLE}[name])
    config = Config(
        words=WordsOptions(oov="placeholder"),
        table=TableOptions(name="small"),
        mechanism=MechanismOptions(name="d-chi-stencil", options={"L": 4}),
        epsilon=3.0,
        seed=5,
    )
    result = Privatizer.from_config(config).privatize(f"river stone {CANARY} window")
    assert result.released.items[2].text == "<WORD>"
    assert result.guarantee.claim.mechanism == "d-chi-stencil"
    assert result.guarantee.epsilon <= 3.0 * (1 + 1e-12)
    assert result.guarantee.seeded


# ---- wrong options ---------------------------------------------------------------------------------------


def test_unknown_names():
    with pytest.raises(UnknownName, match="did you mean 'noise'"):
        Privatizer("nosie", epsilon=5, table=TABLE)
    with pytest.raises(UnknownName, match="did you mean 'minilm-s'"):
        Privatizer("noise", epsilon=5, table="minilms")


@pytest.mark.parametrize(
    "options",
    [
        {"eta": -1.0},
        {"eta": math.nan},
        {"eta": "much"},
        {"project": 0},
        {"etta": 1.0},
        {"project": 99, "eta": 1.0},
    ],
    ids=repr,
)
def test_wrong_options_of_a_mechanism_are_config_errors(options):
    with pytest.raises(ConfigError) as caught:
        Privatizer("noise", table=TABLE, **options)
    assert "\n" not in str(caught.value)


def test_a_rule_between_options_is_a_config_error():
    with pytest.raises(ConfigError, match="balanced needs L other than 2"):
        Privatizer("d-chi-stencil", epsilon=5, table=TABLE, L=2, balanced=True)


def test_options_beside_a_mechanism_that_is_made_already_are_refused():
    """They could only be ignored, and `eta` would then not be what the caller believes."""
    with pytest.raises(ConfigError):
        Privatizer(noise(), epsilon=5, table=TABLE, project=3)


def test_a_privatizer_is_frozen(small_table):
    privatizer = make("noise")
    for name in ("table", "anything"):
        with pytest.raises(FrozenInstanceError):
            setattr(privatizer, name, small_table)


def test_what_is_not_built_has_a_repr_all_the_same(monkeypatch):
    """A debugger shows `self` while the constructor fails."""
    assert repr(object.__new__(Privatizer)) == "Privatizer(not built)"
    with pytest.raises(UnknownName) as caught:
        Privatizer("nosie", table=TABLE)
    seen = [
        frame.f_locals["self"]
        for frame, _ in traceback.walk_tb(caught.tb)
        if "self" in frame.f_locals
    ]
    assert any(isinstance(each, Privatizer) for each in seen)
    assert all(repr(each) for each in seen)


def test_a_copy_has_the_parts_that_are_given():
    made = make("noise")
    other = made.with_parts(randomness=SeededRandomness(3))
    assert isinstance(other, Privatizer)
    assert other.randomness.is_seeded
    assert not made.randomness.is_seeded
    assert vars(other) == vars(made) | {"randomness": other.randomness}
    with pytest.raises(TypeError):
        made.with_parts(mechanisms=made.mechanism)


@pytest.mark.parametrize("section", ["words", "rerank", "protect", "groups", "names"])
def test_a_section_is_options_or_a_mapping(section):
    wrong: dict[str, Any] = {section: 3}
    with pytest.raises(ConfigError, match=f"{section} must be"):
        Privatizer("noise", epsilon=3, table=TABLE, **wrong)


# ---- budgets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [math.nan, -1, -math.inf, 1e-9, 1e9])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(BudgetError):
        Privatizer("noise", epsilon=epsilon, table=TABLE)


def test_one_budget_is_needed_and_only_one():
    with pytest.raises(BudgetError, match="give epsilon, or its own parameter eta"):
        Privatizer("noise", table=TABLE)
    with pytest.raises(BudgetError, match="not both"):
        Privatizer("noise", table=TABLE, epsilon=5, eta=3.0)
    with pytest.raises(BudgetError, match="not both"):
        Privatizer("noise", table=TABLE, epsilon=5, budget=Uniform(5))
    with pytest.raises(BudgetError, match="not both"):
        Privatizer("noise", table=TABLE, budget=Uniform(5), eta=3.0)
    with pytest.raises(BudgetError, match="eta must be"):
        Privatizer("noise", table=TABLE, eta=1e9)


def test_epsilon_for_a_mechanism_without_statement_warns():
    with pytest.warns(TextveilWarning, match="epsilon bounds nothing here"):
        Privatizer("stencil", table=TABLE, epsilon=5)
    with pytest.warns(TextveilWarning, match="epsilon bounds nothing here"):
        Privatizer("d-chi-stencil", table=TABLE, epsilon=5, exclude_original=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Privatizer("stencil", table=TABLE)


@RANDOM
def test_epsilon_zero_is_a_placeholder(mechanism):
    result = make(mechanism, epsilon=0).privatize("the river stone")
    assert result.text == "the <WORD> <WORD>"
    assert result.guarantee.epsilon == result.guarantee.epsilon_ldp == 0.0
    assert result.guarantee.kind != "none"
    assert result.guarantee.epsilon_per_word.tolist() == [0, 0]


@RANDOM
def test_an_infinite_epsilon_passes_and_says_so(mechanism):
    result = make(mechanism, epsilon=math.inf).privatize(f"the river {CANARY}")
    assert result.text == f"the river {CANARY.lower()}"
    assert result.released.mask.verbatim == (0, 1, 2)
    assert result.guarantee.epsilon == math.inf
    assert result.guarantee.epsilon_per_word.tolist() == [math.inf] * 2
    assert "an infinite budget lets words pass" in result.guarantee.headline()


@RANDOM
def test_unequal_budgets(mechanism):
    budget = Given(np.array([4.0, 0.0, 1.0, 7.0, 2.0, 0.0, 3.0]))
    privatizer = Privatizer(mechanism, table=TABLE, budget=budget)
    result = privatizer.privatize("river stone window the apple anchor butter")
    kinds = [item.kind for item in result.released.items]
    assert kinds == ["word", "placeholder", "word", "verbatim", "word", "placeholder", "word"]
    wanted = np.array([4.0, 0.0, 1.0, 2.0, 0.0, 3.0])
    spent = result.guarantee.epsilon_per_word
    assert ((spent > 0) == (wanted > 0)).all()
    assert (spent <= wanted * (1 + 1e-12)).all()
    if mechanism in ("noise", "polar", "laplace"):
        np.testing.assert_allclose(spent, wanted)
        assert result.guarantee.epsilon == pytest.approx(4.0)
    assert result.guarantee.kind == "metric"


def test_one_infinite_budget_among_finite_ones(echo):
    budget = Given(np.array([4.0, math.inf, 0.0]))
    result = Privatizer(echo, table=TABLE, budget=budget).privatize(f"river {CANARY} stone")
    assert result.text == f"river {CANARY.lower()} <WORD>"
    assert result.guarantee.epsilon_per_word.tolist() == [4.0, math.inf, 0.0]
    assert result.guarantee.epsilon == math.inf
    assert result.guarantee.reasons == ("an infinite budget lets words pass",)


def test_a_budget_sees_every_word_of_the_batch(echo):
    budget = Given([1.0, 2.0, 3.0, 4.0])
    texts = ["river the stone", "", "apple"]
    results = list(Privatizer(echo, table=TABLE, budget=budget).privatize_many(texts))
    assert [result.guarantee.epsilon_per_word.tolist() for result in results] == [
        [1.0, 3.0],
        [],
        [4.0],
    ]
    assert [result.guarantee.epsilon for result in results] == [3.0, 0.0, 4.0]


@pytest.mark.parametrize("wrong", [math.nan, -1.0, 1e-12])
def test_a_budget_that_assigns_what_cannot_be(echo, wrong):
    privatizer = Privatizer(echo, table=TABLE, budget=Given(np.array([5.0, wrong, 5.0])))
    with pytest.raises(BudgetError):
        privatizer.privatize("river stone apple")


def test_a_budget_of_the_wrong_length(echo):
    privatizer = Privatizer(echo, table=TABLE, budget=Given(np.array([5.0, 5.0])))
    with pytest.raises(TextveilError):
        privatizer.privatize("river stone apple")


# ---- batches ---------------------------------------------------------------------------------------------


def test_many_yields_in_order(echo):
    texts = [f"{NOUNS[i % 60]} {NOUNS[i // 60 % 60]}" for i in range(2000)] + ["", "the"]
    results = list(Privatizer(echo, epsilon=5, table=TABLE).privatize_many(texts))
    assert [result.text for result in results] == texts
    assert [result.private.text for result in results] == texts


def test_many_is_lazy(echo, monkeypatch):
    monkeypatch.setattr(privatizer, "BATCH_TEXTS", 4)
    pulled = []

    def texts():
        for i in itertools.count():
            pulled.append(i)
            yield f"river {i}"

    results = Privatizer(echo, epsilon=5, table=TABLE).privatize_many(texts())
    assert pulled == []
    for i in range(12):
        next(results)
        assert len(pulled) == 4 * (i // 4 + 1)


def test_many_is_lazy_for_long_texts_too(echo, monkeypatch):
    monkeypatch.setattr(privatizer, "BATCH_CHARACTERS", 100)
    pulled = []

    def texts():
        for i in itertools.count():
            pulled.append(i)
            yield "river " * 10

    results = Privatizer(echo, epsilon=5, table=TABLE).privatize_many(texts())
    next(results)
    assert len(pulled) == 2


def test_many_takes_no_single_text():
    with pytest.raises(InputError, match="use privatize"):
        list(make("noise").privatize_many("river"))
    assert list(make("noise").privatize_many([])) == []


@RANDOM
def test_results_do_not_depend_on_chunks(mechanism, monkeypatch):
    texts = [" ".join(NOUNS[i : i + 3 + i % 9]) for i in range(40)] + ["", "the", CANARY]
    whole = [result.text for result in make(mechanism, seed=1).privatize_many(texts)]
    monkeypatch.setattr("textveil.mechanism.perturb.CHUNK_POSITIONS", 13)
    monkeypatch.setattr("textveil.mechanism.select.MAX_SCORE_CELLS", 60 * 13)
    cut = [result.text for result in make(mechanism, seed=1).privatize_many(texts)]
    assert cut == whole


@RANDOM
def test_results_do_not_depend_on_neighbours(mechanism):
    one = list(make(mechanism, seed=1).privatize_many(["river", MANY, "stone window"]))
    two = list(make(mechanism, seed=1).privatize_many([MANY + " " + CANARY, MANY, ""]))
    assert one[1].text == two[1].text
    np.testing.assert_array_equal(
        one[1].guarantee.epsilon_per_word, two[1].guarantee.epsilon_per_word
    )


@RANDOM
def test_equal_texts_of_a_batch_get_different_draws(mechanism):
    results = list(make(mechanism, seed=1, epsilon=1).privatize_many([MANY] * 8))
    assert len({result.text for result in results}) == 8


def test_a_window_does_not_reach_into_the_next_text():
    privatizer = Privatizer("stencil", table=TABLE, L=5)
    alone = privatizer.privatize("river stone window")
    together = list(privatizer.privatize_many(["apple anchor", "river stone window", "butter"]))
    assert together[1].text == alone.text


@pytest.mark.slow
def test_one_megabyte():
    text = f"river stone, {CANARY} the window\n" * 30_000
    assert len(text) > 900_000
    result = Privatizer("noise", epsilon=5, table=TABLE).privatize(text)
    assert len(result.guarantee.epsilon_per_word) == 120_000
    assert len(result.released.items) == 180_000
    assert CANARY.lower() not in result.text
    assert result.text.count("\n") == 30_000


# ---- failures --------------------------------------------------------------------------------------------


def explode(table, block):
    raise ValueError(f"cannot place {CANARY} in {table.name}")


def explode_in_a_chain(table, block):
    try:
        raise KeyError(CANARY)
    except KeyError as error:
        raise RuntimeError(f"while placing {CANARY}") from error


def explode_with_a_note(table, block):
    error = RuntimeError(CANARY)
    error.add_note(CANARY)
    raise ExceptionGroup(CANARY, [error])


@pytest.mark.parametrize("release", [explode, explode_in_a_chain, explode_with_a_note])
def test_a_mechanism_that_raises_shows_no_secret(release):
    privatizer = Privatizer(Stub(release=release), epsilon=5, table=TABLE)
    with pytest.raises(MechanismError, match="stub failed with") as caught:
        privatizer.privatize(f"river {CANARY}")
    error = caught.value
    shown = [str(error), repr(error), "".join(traceback.format_exception(error)), repr(error.args)]
    assert not any(CANARY.lower() in text.lower() for text in shown)
    assert error.__cause__ is None
    assert error.__context__ is None  # a tracker that walks the chain finds nothing either
    assert "test_pipeline.py, line" in str(error)
    assert "nothing was released" in str(error)
    assert CANARY not in repr(pickle.loads(pickle.dumps(error)))


def test_a_mechanism_that_fails_to_calibrate_or_to_spend():
    def broken(parameter):
        raise ZeroDivisionError(CANARY)

    privatizer = Privatizer(
        Stub(release=lambda table, block: block.secret, spent=broken), epsilon=5, table=TABLE
    )
    with pytest.raises(MechanismError, match="ZeroDivisionError") as caught:
        privatizer.privatize(CANARY)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


WRONG_ROWS = {
    "too few": lambda table, block: block.secret[:-1],
    "too many": lambda table, block: np.append(block.secret, 0),
    "none": lambda table, block: None,
    "above": lambda table, block: np.full_like(block.secret, len(table)),
    "below": lambda table, block: np.full_like(block.secret, -2),
    "two axes": lambda table, block: block.secret[:, None],
    "list": lambda table, block: block.secret.tolist(),
    "not a number": lambda table, block: np.full(len(block.secret), np.nan),
    "fractions": lambda table, block: block.secret + 0.5,
    "words": lambda table, block: np.array([CANARY] * len(block.secret)),
    "objects": lambda table, block: np.array([None] * len(block.secret)),
    "lengths": lambda table, block: np.arange(len(block.layout.roles)),
}


@pytest.mark.parametrize("release", WRONG_ROWS.values(), ids=WRONG_ROWS.keys())
def test_wrong_rows_release_nothing(release):
    privatizer = Privatizer(Stub(release=release), epsilon=5, table=TABLE)
    with pytest.raises(MechanismError, match="nothing was released") as caught:
        privatizer.privatize(f"river the {CANARY}")
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("bad", [math.nan, -1.0])
def test_a_spend_that_is_no_bound_releases_nothing(bad):
    """A statement must not be printed from it."""
    privatizer = Privatizer(
        Stub(release=lambda table, block: block.secret, spent=lambda p: np.full(len(p), bad)),
        epsilon=5,
        table=TABLE,
    )
    with pytest.raises(MechanismError):
        privatizer.privatize("river stone")


@pytest.mark.parametrize(
    "spent",
    [lambda p: p[:-1], lambda p: float(p.sum()), lambda p: None],
    ids=["short", "number", "none"],
)
def test_a_spend_of_the_wrong_shape_releases_nothing(spent):
    privatizer = Privatizer(
        Stub(release=lambda table, block: block.secret, spent=spent), epsilon=5, table=TABLE
    )
    with pytest.raises(MechanismError):
        privatizer.privatize("river stone")


def test_a_mechanism_may_release_placeholders():
    def every_second(table, block):
        return np.where(np.arange(len(block.secret)) % 2, block.secret, -1)

    result = Privatizer(Stub(release=every_second), epsilon=5, table=TABLE).privatize(
        "river stone the apple"
    )
    assert result.text == "<WORD> stone the <WORD>"
    assert result.released.mask.placeholders == ((0, "WORD"), (3, "WORD"))


# ---- promises for some pairs only --------------------------------------------------------------------------


def restricted(mechanism: Any = None, **options: Any) -> Privatizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TextveilWarning)  # epsilon is the mechanism's nominal one
        given: dict[str, Any] = {"epsilon": 2.5, "table": TABLE} | options
        return Privatizer(mechanism or Groups(), **given)


def test_a_restricted_promise_is_carried_to_the_statement():
    guarantee = restricted().privatize("river the stone").guarantee
    assert guarantee.kind == "none"
    assert guarantee.epsilon == guarantee.epsilon_ldp == math.inf
    assert guarantee.epsilon_per_word.tolist() == [math.inf] * 2
    assert guarantee.within == 2.5
    assert (
        "Between two words of one group only: epsilon at most 2.5 (local DP)."
        in guarantee.headline()
    )
    assert (
        Privatizer("noise", epsilon=2.5, table=TABLE).privatize("river").guarantee.within
        == math.inf
    )


def test_a_restricted_promise_has_the_largest_epsilon_of_the_words():
    privatizer = restricted(epsilon=None, budget=Given([1.0, 0.0, 3.0, 0.5]))
    guarantee = privatizer.privatize("river stone apple bridge").guarantee
    assert guarantee.placeholders == 1
    assert guarantee.within == 3.0


def test_a_word_of_several_pieces_adds_up_its_restricted_promises(wordpiece_table):
    guarantee = (
        restricted(table=wordpiece_table, words=WordsOptions(unit="wordpiece"))
        .privatize("rivers")
        .guarantee
    )
    assert guarantee.within == 2.5  # two pieces, each with half of the budget
    assert "each piece and the piece in its place" in guarantee.explain()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("river stone", {"epsilon": math.inf}),
        (f"river {CANARY}", {"words": WordsOptions(oov="keep")}),
        ("river stone", {"words": WordsOptions(oov="keep")}),
        ("the", {}),
        ("", {}),
    ],
    ids=["all pass", "one passes", "unknown words would pass", "public words", "no words"],
)
def test_no_restricted_promise_where_a_word_passes_or_none_is_protected(text, options):
    guarantee = restricted(**options).privatize(text).guarantee
    assert guarantee.restricted is None
    assert "one group" not in guarantee.headline()


def test_a_restricted_promise_needs_its_methods_and_a_bound():
    claim = Groups().claim(TABLE)

    class Without(Stub):
        def claim(self, table):
            return claim

    class Wrong(Groups):
        def compute_restricted_epsilon(self, table, layout, parameter):
            return -parameter

    with pytest.raises(ConfigError, match="compute_restricted_epsilon and mark_restricted_pairs"):
        restricted(Without(release=lambda table, block: block.secret))
    with pytest.raises(MechanismError, match="nothing was released"):
        restricted(Wrong()).privatize("river stone")


# ---- the canary ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("casing", "oov"), [("lower", "surrogate"), ("copy", "placeholder")])
@EVERY
def test_the_canary_shows_nowhere(mechanism, casing, oov, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    session = Session(owner="me")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        privatizer = make(mechanism, words=WordsOptions(casing=casing, oov=oov))
        result = privatizer.privatize(f"The {CANARY} river, {CANARY.upper()}!", session)
        many = list(privatizer.privatize_many([CANARY] * 3))
    shown = {
        "text": result.text,
        "repr": repr(result) + repr(many),
        "str": str(result),
        "notebook": result._repr_html_(),
        "guarantee": str(result.guarantee)
        + repr(vars(result.guarantee))
        + result.guarantee.headline()
        + result.guarantee.explain(),
        "json": json.dumps(result.to_json(), ensure_ascii=False),
        "released json": json.dumps(result.released.to_json(), ensure_ascii=False),
        "private": repr(result.private) + str(result.private),
        "privatizer": repr(privatizer) + repr(vars(privatizer)),
        "session": repr(session),
        "log": caplog.text + repr([record.__dict__ for record in caplog.records]),
        "warnings": repr([str(warning.message) for warning in warned]),
        "printed": "".join(capfd.readouterr()),
    }
    assert [name for name, text in shown.items() if CANARY.lower() in text.lower()] == []
    for carried in (result.released, result.guarantee, privatizer):
        assert CANARY.lower().encode() not in pickle.dumps(carried).lower()
    original = result.to_json(with_original=True)["original"]
    assert original == {"text": result.private.text, "words": list(result.private.words)}
    assert CANARY in json.dumps(original)


def test_json_is_plain(echo):
    result = Privatizer(echo, epsilon=5, table=TABLE).privatize("the river", None)
    plain = json.loads(json.dumps(result.to_json()))
    assert set(plain) == {
        "text",
        "items",
        "hidden",
        "guarantee",
        "oov_share",
        "seconds",
        "sent_earlier",
        "unmeasured",
    }
    assert plain["items"][1] == {
        "text": "river",
        "kind": "word",
        "group": "protected",
        "start": 1,
        "end": 2,
    }
    assert plain["guarantee"]["epsilon_per_word"] == [5.0]
    assert plain["seconds"] > 0


# ---- randomness ------------------------------------------------------------------------------------------


@RANDOM
def test_seeds(mechanism):
    one, two, other = make(mechanism, seed=1), make(mechanism, seed=1), make(mechanism, seed=2)
    first = one.privatize(MANY)
    assert first.text == two.privatize(MANY).text
    assert first.text != one.privatize(MANY).text
    assert one.privatize(MANY).text != other.privatize(MANY).text
    assert first.guarantee.seeded
    assert "seed" in first.guarantee.headline()


@RANDOM
def test_without_a_seed_no_two_runs_agree(mechanism):
    """60 words at epsilon 1: two runs agree with probability below 1e-40."""
    texts = {make(mechanism, epsilon=1).privatize(MANY).text for _ in range(3)}
    privatizer = make(mechanism, epsilon=1)
    texts |= {privatizer.privatize(MANY).text for _ in range(3)}
    assert len(texts) == 6
    assert not privatizer.privatize("river").guarantee.seeded


def test_epsilon_moves_the_share_of_kept_words():
    def kept(epsilon):
        result = Privatizer("noise", epsilon=epsilon, table=TABLE, seed=3).privatize(
            " ".join(NOUNS * 5)
        )
        return sum(a == b for a, b in zip(result.text.split(), NOUNS * 5, strict=True)) / 300

    shares = [kept(epsilon) for epsilon in (0.5, 10, 30, 500)]
    assert shares == sorted(shares)
    assert shares[0] < 0.15
    assert shares[3] == 1.0


def test_threads_share_a_privatizer():
    """Whatever the order, the calls get the same set of streams: nothing is drawn twice or mixed up."""
    alone = make("noise", seed=9, epsilon=10)
    expected = Counter(alone.privatize(MANY).text for _ in range(40))
    shared = make("noise", seed=9, epsilon=10)
    with ThreadPoolExecutor(8) as pool:
        found = Counter(pool.map(lambda _: shared.privatize(MANY).text, range(40)))
    assert found == expected
    assert len(found) == 40


def test_threads_do_not_mix_their_texts(echo):
    privatizer = Privatizer(echo, epsilon=5, table=TABLE)
    texts = [" ".join(NOUNS[i : i + 10]) for i in range(50)] * 4
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: privatizer.privatize(text).text, texts)) == texts


def _in_a_fork(privatizer, texts, pipe):
    try:
        pipe.send([result.text for result in privatizer.privatize_many(texts)])
    except Exception as error:
        pipe.send(repr(error))


def forked(privatizer, texts, count):
    """What children make of the texts, and the parent beside them."""
    context = multiprocessing.get_context("fork")
    ends = [context.Pipe(duplex=False) for _ in range(count)]
    children = [
        context.Process(target=_in_a_fork, args=(privatizer, texts, send)) for _, send in ends
    ]
    for child in children:
        child.start()
    own = [result.text for result in privatizer.privatize_many(texts)] if count > 1 else None
    answers = []
    try:
        for receive, _ in ends:
            assert receive.poll(30), "a child hangs"
            answers.append(receive.recv())
    finally:
        for child in children:
            child.kill()
            child.join()
    return own, answers


def test_forks_draw_differently():
    privatizer = make("noise", epsilon=1)
    privatizer.privatize(MANY)
    own, answers = forked(privatizer, [MANY, MANY], 3)
    assert own is not None
    texts = [*own, *itertools.chain.from_iterable(answers)]
    assert len(texts) == len(set(texts)) == 8
    assert all(set(text.split()) <= set(NOUNS) for text in texts)


def test_a_fork_works_after_large_products_in_the_parent():
    """Threads of the parent's linear algebra do not exist in a child; it must not wait for them."""
    words = [f"word{i}x" for i in range(6000)]
    table = EmbeddingTable.build(name="large", words=words, vectors=gaussian_rows(6000, 128, 3))
    privatizer = Privatizer("noise", eta=200.0, table=table)
    text = " ".join(words[:2000])
    privatizer.privatize(text)
    _, answers = forked(privatizer, [text], 1)
    assert len(answers[0][0].split()) == 2000


@pytest.mark.posix
def test_a_fork_refuses_to_repeat_a_seeded_stream():
    privatizer = make("noise", seed=4)
    _, answers = forked(privatizer, [MANY], 1)
    assert answers[0].startswith(RandomnessError.__name__)
    assert privatizer.privatize(MANY).text


# ---- pickles ---------------------------------------------------------------------------------------------


def test_a_custom_table_is_carried():
    privatizer = make("d-chi-stencil", L=4, words=WordsOptions(oov="placeholder"))
    privatizer.privatize(MANY)
    again = pickle.loads(pickle.dumps(privatizer))
    assert again.table is not TABLE
    assert again.table.words == TABLE.words
    assert (again.table.vectors == TABLE.vectors).all()
    result = again.privatize(f"river {CANARY} stone")
    assert result.released.items[1].text == "<WORD>"
    np.testing.assert_allclose(
        result.guarantee.epsilon_per_word,
        privatizer.privatize(f"river {CANARY} stone").guarantee.epsilon_per_word,
    )
    assert repr(again) == repr(privatizer)


def test_a_custom_wordpiece_table_is_carried(wordpiece_table):
    privatizer = Privatizer(
        "noise", epsilon=300.0, table=wordpiece_table, words=WordsOptions(unit="wordpiece"), seed=1
    )
    again = pickle.loads(pickle.dumps(privatizer))
    assert again.pieces is not None
    assert again.pieces.table is again.table
    assert again.privatize("rivers").released.mask.pieces == (2,)


@pytest.mark.parametrize("metric", [None, "chord", "euclidean"])
def test_a_named_table_is_not_carried(metric):
    table = "minilm-s" if metric is None else load_table("minilm-s", metric=metric)
    privatizer = Privatizer("placeholder", table=table)
    carried = pickle.dumps(privatizer)
    assert len(carried) < 100_000
    again = pickle.loads(carried)
    assert again.table is privatizer.table
    assert again.privatize("river").text == "<WORD>"


def test_a_named_wordpiece_table_is_not_carried():
    words = WordsOptions(unit="wordpiece")
    privatizer = Privatizer("noise", eta=50.0, table="minilm-wordpiece", words=words)
    carried = pickle.dumps(privatizer)
    assert len(carried) < 100_000
    again = pickle.loads(carried)
    assert again.table is privatizer.table
    assert again.privatize("zyxqorvian").released.mask.pieces[0] > 2


def test_a_table_of_ones_own_that_has_a_registered_name_is_carried():
    """Reloading by name would put another table in its place."""
    own = EmbeddingTable.build(name="minilm-s", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
    again = pickle.loads(pickle.dumps(Privatizer("noise", eta=5.0, table=own)))
    assert again.table.words == tuple(NOUNS)


def test_pickles_of_a_seeded_privatizer_have_streams_of_their_own():
    privatizer = make("noise", seed=1, epsilon=1)
    one, two = pickle.loads(pickle.dumps(privatizer)), pickle.loads(pickle.dumps(privatizer))
    texts = {each.privatize(MANY).text for each in (privatizer, one, two)}
    assert len(texts) == 3
    assert one.privatize("river").guarantee.seeded


def test_released_and_guarantee_pickle(echo):
    result = Privatizer(echo, epsilon=5, table=TABLE).privatize("the river <b>")
    assert pickle.loads(pickle.dumps(result.released)) == result.released
    guarantee = pickle.loads(pickle.dumps(result.guarantee))
    assert guarantee.to_json() == result.guarantee.to_json()


def test_a_pickled_result_says_that_its_original_stayed_behind(echo):
    result = Privatizer(echo, epsilon=5, table=TABLE).privatize(f"river {CANARY}")
    carried = pickle.dumps(result)
    assert CANARY.encode() not in carried
    again = pickle.loads(carried)
    assert again.to_json() == result.to_json()
    with pytest.raises(InputError, match="does not hold the originals"):
        again.to_json(with_original=True)
    assert copy.deepcopy(result).private is result.private
