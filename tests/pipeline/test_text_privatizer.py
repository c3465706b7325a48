"""Public texts in place of private ones: exact laws, no word of a text anywhere, equal draws for equal seeds."""

import asyncio
import math
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.tiny_library import CANARY, PATTERNS, PRIVATE, make_tiny_library

from textveil import Privatizer, TextPrivatizer
from textveil.config import layers
from textveil.detect import split_sentences
from textveil.errors import BudgetError, ConfigError, InputError, MechanismError
from textveil.guarantee import compose, summarize
from textveil.library import Level, Library
from textveil.mechanism import RandomizedResponse
from textveil.pipeline import load_privatizer
from textveil.randomness import Ids, KeyedRandomness, Values

RATE = 1e-6
"""The rate of false alarms of each comparison of draws with a law."""

MANY = 8_000
KINDS = list(PRIVATE)


@pytest.fixture(scope="module")
def library() -> Library:
    return make_tiny_library()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks equal texts up once: the cell is a public function of one text."""
    known, real = dict[tuple[str, str], int](), Library.find_cells

    def find(self: Library, texts: Sequence[str], level: Level) -> Ids:
        for text in dict.fromkeys(texts):
            if (text, level.name) not in known:
                known[text, level.name] = int(real(self, [text], level)[0])
        return np.array([known[text, level.name] for text in texts], np.int64)

    monkeypatch.setattr(Library, "find_cells", find)


def compute_law(made: TextPrivatizer, text: str, epsilon: float) -> Values:
    """P(public text | private text), by enumeration over all cells and pools."""
    library, level = made.library, made.level
    cell = int(library.find_cells([text], level)[0])
    law = np.zeros(len(library))
    for drawn in range(len(level)):
        odds = (math.exp(epsilon) if drawn == cell else 1) / (math.exp(epsilon) + len(level) - 1)
        members = np.flatnonzero(level.cells == drawn)
        surest = sorted(members.tolist(), key=lambda i: (-level.sure[i], i))
        share = level.share if made.sure is None else made.sure
        pool = surest[: max(math.ceil(len(surest) * share), min(8, len(surest)))]
        law[pool] += odds / len(pool)
    return law


def draw_each(made: TextPrivatizer, text: str) -> Ids:
    """Which public texts come out for one text."""
    places = {source: i for i, source in enumerate(made.library.ids)}
    return np.array([places[result.sources[0]] for result in made.privatize_many([text] * MANY)])


def draw(made: TextPrivatizer, text: str) -> Ids:
    """How often each public text comes out for one text."""
    return np.bincount(draw_each(made, text), minlength=len(made.library))


def follows(counts: Ids, law: Values) -> bool:
    possible = law > 0
    if counts[~possible].any():
        return False
    expected = law[possible] * counts.sum()
    return bool(stats.chisquare(counts[possible], expected).pvalue > RATE)


# ---- the law ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"sure": 0.4}, {"level": "6", "epsilon": 1.0}],
    ids=["labels", "sure", "clusters"],
)
def test_a_public_text_comes_out_by_the_enumerated_law(
    library: Library, quick: None, options: dict[str, Any]
) -> None:
    epsilon = options.get("epsilon", 2.0)
    laws = []
    claimed = 0.0
    for number, text in enumerate(PRIVATE.values()):
        made = TextPrivatizer(library, **{"epsilon": epsilon, "seed": number, **options})
        laws.append(compute_law(made, text, epsilon))
        assert laws[-1].sum() == pytest.approx(1)
        counts = draw(made, text)
        assert follows(counts, laws[-1])
        assert not follows(counts, compute_law(made, text, 2 * epsilon))
        claimed = made.claim.epsilon
    support = laws[0] > 0
    assert all(
        ((law > 0) == support).all() for law in laws
    )  # every text can come out for every text
    ratios = [np.log(one[support] / other[support]).max() for one in laws for other in laws]
    assert max(ratios) == pytest.approx(epsilon)
    assert max(ratios) <= claimed + 1e-9


class DoubledTwin(TextPrivatizer):
    """Broken: it draws at twice the epsilon that it states."""

    def _draw(self, cells: Ids, *more: Any) -> Any:
        doubled = RandomizedResponse(len(self.level), 2 * self.response.epsilon)
        return TextPrivatizer._draw(TextPrivatizer.with_parts(self, response=doubled), cells, *more)


class OwnPoolTwin(TextPrivatizer):
    """Broken: the public text of the drawn cell is chosen by the private text's own cell."""

    def _draw(self, cells: Ids, *more: Any) -> Any:
        drawn, _chosen = super()._draw(cells, *more)
        pools = [self.level.find_pool(cell, self.sure) for cell in range(len(self.level))]
        offset = np.array([pools[cell][own] for cell, own in zip(drawn, cells, strict=True)])
        return drawn, offset


@pytest.mark.parametrize("twin", [DoubledTwin, OwnPoolTwin])
def test_a_broken_twin_is_found(library: Library, quick: None, twin: type[TextPrivatizer]) -> None:
    text = PRIVATE["pets"]
    broken = draw(twin(library, epsilon=1.0, seed=4), text)
    honest = TextPrivatizer(library, epsilon=1.0, seed=4)
    assert follows(draw(honest, text), compute_law(honest, text, 1.0))
    assert not follows(broken, compute_law(honest, text, 1.0))


def bound_ratio(kind: type[TextPrivatizer]) -> float:
    """A lower bound of the log-ratio of an event, false at most at the rate (Clopper and Pearson).

    The event is chosen on one half of the draws and counted on the other.
    """
    library, half, counts = make_tiny_library(), MANY // 2, []
    for seed, text in ((1, PRIVATE["pets"]), (2, PRIVATE["money"])):
        drawn = draw_each(kind(library, epsilon=1.0, seed=seed), text)
        counts.append(
            [np.bincount(part, minlength=len(library)) for part in (drawn[:half], drawn[half:])]
        )
    event = counts[0][0] > counts[1][0]
    hits, rest = int(counts[0][1][event].sum()), int(counts[1][1][event].sum())
    low = stats.beta.ppf(RATE / 2, hits, half - hits + 1)
    return math.log(low / stats.beta.isf(RATE / 2, rest + 1, half - rest))


def test_no_event_is_likelier_than_stated(quick: None) -> None:
    assert 0.5 < bound_ratio(TextPrivatizer) <= 1.0
    assert bound_ratio(DoubledTwin) > 1.0
    assert bound_ratio(OwnPoolTwin) > 1.0


def test_two_texts_of_one_cell_have_one_law(library: Library, quick: None) -> None:
    texts = [PRIVATE["pets"], "A dog and a kitten played on the grass."]
    made = TextPrivatizer(library, epsilon=3.0)
    assert len(set(library.find_cells(texts, made.level).tolist())) == 1
    assert (compute_law(made, texts[0], 3.0) == compute_law(made, texts[1], 3.0)).all()


# ---- what is released ------------------------------------------------------------------------------------


def test_only_public_texts_come_out_and_no_private_word(library: Library) -> None:
    text = f"{PRIVATE['pets']} {PRIVATE['money']}"
    for unit in ("document", "sentence"):
        result = TextPrivatizer(library, epsilon=4, unit=unit).privatize(text)
        parts = 2 if unit == "sentence" else 1
        assert len(result.sources) == len(result.cells) == parts
        assert result.text == " ".join(
            library.texts[library.ids.index(source)] for source in result.sources
        )
        assert result.source_id == ", ".join(result.sources)
        shown = [result.text, repr(result), str(result.to_json()), str(result.guarantee.to_json())]
        assert not any(CANARY in each for each in shown)
        assert result.to_json(with_original=True)["original"] == {"text": text}
        copied = pickle.loads(pickle.dumps(result))
        assert CANARY not in repr(vars(copied))
        with pytest.raises(InputError, match="pickled result"):
            copied.to_json(with_original=True)


def test_a_text_without_words_has_a_public_text_too(library: Library) -> None:
    for unit in ("document", "sentence"):
        results = list(
            TextPrivatizer(library, epsilon=4, unit=unit).privatize_many(["", " \n\t", "?!", "一"])
        )
        assert all(len(result.sources) == 1 and result.text in library.texts for result in results)


def test_sentences_are_split_at_their_ends_only() -> None:
    text = "Dr. Meier came on 3. May. She left!  Why?\n\nNobody knows"
    assert split_sentences(text) == [
        "Dr. Meier came on 3. May.",
        "She left!",
        "Why?",
        "Nobody knows",
    ]
    assert split_sentences(" \n ") == []


def test_statements_say_documents_and_sentences(library: Library) -> None:
    made = TextPrivatizer(library, epsilon=4)
    results = list(made.privatize_many(PRIVATE.values()))
    total = summarize([result.guarantee for result in results])
    assert total.documents == 3
    assert total.epsilon == results[0].guarantee.epsilon <= 4
    assert "local DP 4 for a whole document" in total.summary()
    assert compose([made.claim, made.claim]).epsilon == 2 * made.claim.epsilon
    by_sentence = TextPrivatizer(library, epsilon=2, unit="sentence", seed=1)
    results = list(by_sentence.privatize_many([" ".join(PRIVATE.values()), PRIVATE["money"]]))
    total = summarize([result.guarantee for result in results])
    assert total.sentences == (3, 4)
    assert "4 on average, 6 at most" in total.summary()
    assert total.seeded
    assert "knows the seed" in total.summary()
    assert total.library.licence == "CC0 1.0"


@pytest.mark.parametrize(("epsilon", "level"), [(0.5, "6"), (4, "6"), (4.6, "10"), (9, "10")])
def test_the_level_follows_from_epsilon_alone(epsilon: float, level: str) -> None:
    assert TextPrivatizer(make_tiny_library(labels=False), epsilon=epsilon).level.name == level
    assert TextPrivatizer(make_tiny_library(), epsilon=epsilon).level.name == "labels"


# ---- seeds, threads, pickles -----------------------------------------------------------------------------


def list_sources(made: TextPrivatizer, texts: Sequence[str], **more: Any) -> list[tuple[str, ...]]:
    return [result.sources for result in made.privatize_many(texts, **more)]


def test_a_seed_repeats_the_same_call_only(library: Library) -> None:
    texts = [*PRIVATE.values()] * 6
    first = list_sources(TextPrivatizer(library, epsilon=1, seed=5), texts)
    assert first == list_sources(TextPrivatizer(library, epsilon=1, seed=5), texts)
    changed = {"epsilon": 1.001}, {"sure": 0.9}, {"seed": 6}, {"level": "6"}, {"unit": "sentence"}
    for change in changed:
        options: dict[str, Any] = {"epsilon": 1, "seed": 5, **change}
        assert first != list_sources(TextPrivatizer(library, **options), texts)
    assert list_sources(TextPrivatizer(library, epsilon=1), texts) != list_sources(
        TextPrivatizer(library, epsilon=1), texts
    )
    made = TextPrivatizer(library, epsilon=1, seed=5)
    assert list_sources(made, texts) != list_sources(made, texts)  # another call


def test_a_part_is_drawn_alike_whoever_draws_it(library: Library) -> None:
    texts = [f"{text} And {number}." for number in range(5) for text in PRIVATE.values()]
    made = TextPrivatizer(library, epsilon=1, seed=5)
    first = list_sources(made, texts[4:9], first=4)
    assert first == list_sources(
        pickle.loads(pickle.dumps(made)).with_parts(randomness=made.randomness), texts[4:9], first=4
    )
    assert first == list_sources(TextPrivatizer(library, epsilon=1, seed=5), texts[4:9], first=4)
    assert first != list_sources(made, texts[4:9], first=5)
    # with a key, a text's draw follows from its id and digest: neighbours do not matter
    keys = [KeyedRandomness(b"k" * 32, ids=ids) for ids in (list("abcde"), ["d"])]
    together = list_sources(made.with_parts(randomness=keys[0]), texts[:5])
    assert together[3:4] == list_sources(made.with_parts(randomness=keys[1]), texts[3:4])


def test_a_seeded_one_without_its_neighbours_and_in_long_documents(
    library: Library, monkeypatch
) -> None:
    from textveil.pipeline import text_privatizer

    texts = [" ".join([*PRIVATE.values()] * 3), PRIVATE["pets"]]
    whole = list_sources(TextPrivatizer(library, epsilon=1, seed=5, unit="sentence"), texts)
    assert [len(sources) for sources in whole] == [9, 1]
    monkeypatch.setattr(text_privatizer, "ROWS_AT_ONCE", 10)
    assert whole == list_sources(TextPrivatizer(library, epsilon=1, seed=5, unit="sentence"), texts)


def test_threads_share_one(library: Library) -> None:
    made = TextPrivatizer(library, epsilon=4)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(made.privatize, [*PRIVATE.values()] * 5))
    assert all(result.text in library.texts for result in results)
    assert asyncio.run(made.aprivatize(PRIVATE["pets"])).text in library.texts


def test_it_is_frozen_and_pickles(library: Library, tmp_path) -> None:
    library.save(tmp_path / "tiny.library")
    made = TextPrivatizer(tmp_path / "tiny.library", epsilon=4, unit="sentence", sure=0.5)
    with pytest.raises(AttributeError):
        made.sure = 1.0  # type: ignore[misc]
    copied = pickle.loads(pickle.dumps(made))
    assert copied.claim == made.claim
    assert copied.sure == 0.5
    assert copied.unit == "sentence"
    assert copied.level is next(level for level in copied.library.levels if level.name == "labels")
    assert not copied.level.cells.flags.writeable
    assert repr(made) == "TextPrivatizer('tiny', unit='sentence', level='labels')"
    assert repr(object.__new__(TextPrivatizer)) == "TextPrivatizer(not built)"


# ---- refusals --------------------------------------------------------------------------------------------


def test_a_text_that_stands_in_the_library_is_refused(library: Library) -> None:
    known = PATTERNS["pets"][0].format("runs")
    for made in (
        TextPrivatizer(library, epsilon=4),
        TextPrivatizer(library, epsilon=4, unit="sentence"),
    ):
        with pytest.raises(InputError, match="1 of the texts given stand in it") as refused:
            list(made.privatize_many([PRIVATE["pets"], known.upper()]))
        assert "garden" not in str(refused.value).lower()
    inside = f"{CANARY} came. {known}"
    TextPrivatizer(library, epsilon=4).privatize(inside)  # whole documents are compared
    with pytest.raises(InputError, match="stand in it"):
        TextPrivatizer(library, epsilon=4, unit="sentence").privatize(inside)
    short = PATTERNS["weather"][2].format("ends")
    assert len(short.split()) == 5
    TextPrivatizer(library, epsilon=4, unit="sentence").privatize(f"{CANARY} came. {short}")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"epsilon": 0}, BudgetError, "epsilon must be a number"),
        ({"epsilon": math.inf}, BudgetError, "epsilon must be a number"),
        ({"epsilon": "4"}, BudgetError, "epsilon must be a number"),
        ({"unit": "word"}, ConfigError, "unit must be document or sentence"),
        ({"level": "7"}, ConfigError, "has no level '7': it has labels, 6"),
        ({"sure": 0}, ConfigError, "sure must be the share"),
        ({"sure": 1.5}, ConfigError, "sure must be the share"),
        ({"sure": True}, ConfigError, "sure must be the share"),
        ({"seed": -1}, ConfigError, "a seed must be"),
    ],
)
def test_wrong_options_are_refused(library: Library, options: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        TextPrivatizer(library, **{"epsilon": 4, **options})


def test_what_is_no_library_is_refused(tmp_path) -> None:
    with pytest.raises(ConfigError, match="library must be a Library or the path"):
        TextPrivatizer(3, epsilon=4)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="textveil library make"):
        TextPrivatizer(tmp_path / "none.library", epsilon=4)
    (tmp_path / "bad.library").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="not a library, or damaged"):
        TextPrivatizer(tmp_path / "bad.library", epsilon=4)


def test_bad_texts_are_refused_and_not_shown(library: Library, monkeypatch) -> None:
    made = TextPrivatizer(library, epsilon=4)
    for bad in (3, None, b"bytes", f"{CANARY} \ud800"):
        with pytest.raises(InputError) as refused:
            made.privatize(bad)  # type: ignore[arg-type]
        assert CANARY not in str(refused.value)
    for several in ("one text", 3):
        with pytest.raises(InputError, match="takes several texts"):
            list(made.privatize_many(several))  # type: ignore[arg-type]

    def fail(*_: Any) -> Any:
        raise ValueError(PRIVATE["pets"])

    monkeypatch.setattr(Library, "find_cells", fail)
    with pytest.raises(MechanismError, match="failed with ValueError") as failed:
        made.privatize(PRIVATE["pets"])
    assert CANARY not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None


def test_cells_are_no_mechanism_of_words() -> None:
    with pytest.raises(ConfigError, match=r"--unit document .* TextPrivatizer"):
        Privatizer("cells", epsilon=4)


# ---- configurations --------------------------------------------------------------------------------------


def resolve(**options: Any) -> Any:
    return layers.resolve(overrides=layers.convert_keywords(**options), default="document")


def test_a_configuration_of_whole_texts_builds_one(library: Library, tmp_path) -> None:
    library.save(tmp_path / "tiny.library")
    texts = {
        "unit": "sentence",
        "library": str(tmp_path / "tiny.library"),
        "cells": "6",
        "sure": 0.5,
    }
    config = resolve(texts=texts, epsilon=3, seed=2)
    made = load_privatizer(config)
    assert isinstance(made, TextPrivatizer)
    assert (made.unit, made.level.name, made.sure) == ("sentence", "6", 0.5)
    assert made.randomness.is_seeded
    assert config.to_dict().keys() == {"profile", "texts", "epsilon", "seed"}
    (tmp_path / "options.yaml").write_text(config.to_yaml())
    assert layers.resolve(file=tmp_path / "options.yaml", default="document") == config
    assert isinstance(load_privatizer(resolve(mechanism="noise", epsilon=9)), Privatizer)
    with pytest.raises(ConfigError, match="in Python TextPrivatizer"):
        Privatizer.from_config(config)
    with pytest.raises(ConfigError, match=r"need texts\.unit=document or sentence"):
        TextPrivatizer.from_config(resolve(epsilon=3))
    assert "texts" not in resolve(epsilon=3).to_dict()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mechanism": "noise"}, r"leave out mechanism.name \(set by the options\)"),
        ({"rerank": {"m": 3}, "words": {"oov": "keep"}}, r"leave out rerank.m, words.oov"),
        ({"profile": "prompt"}, "set by the profile 'prompt'"),
        ({"risk": 0.1}, "leave out risk"),
        ({"epsilon": None}, r"needs a budget: set epsilon"),
    ],
)
def test_options_of_words_beside_whole_texts_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        resolve(**{"texts": {"unit": "document", "library": "x"}, "epsilon": 4, **options})


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({"unit": "document"}, "needs a library of public texts"),
        ({"library": "x"}, "texts.library must go with whole texts"),
        ({"sure": 0.5, "cells": "6"}, "texts.cells and texts.sure must go with whole texts"),
        ({"unit": "page", "library": "x"}, "texts.unit must be"),
        ({"unit": "document", "library": "x", "sure": 2}, "texts.sure must be"),
    ],
)
def test_options_of_whole_texts_go_together(texts: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        resolve(texts=texts, epsilon=4)
