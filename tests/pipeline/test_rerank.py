"""Re-ranking: what the model is shown, which word is taken, and that nothing but the shown words changes."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from tests.fixtures import NOUNS, book_of, gaussian_rows

from textveil.config.layers import convert_keywords, resolve
from textveil.config.sections import Rerank, WordsOptions
from textveil.corpus import RowOptions, run
from textveil.errors import ConfigError
from textveil.evaluate.attack import Case
from textveil.guarantee import summarize
from textveil.mechanism import PLACEHOLDER
from textveil.pipeline import privatizer as sentence
from textveil.pipeline import rerank as module
from textveil.pipeline.privatizer import Privatizer
from textveil.pipeline.results import EvaluationRun
from textveil.randomness.streams import SeededRandomness
from textveil.session.state import Session
from textveil.table import compute_shares, load_table, store, vectors
from textveil.table.embedding import EmbeddingTable
from textveil.text.tokens import tokenize
from textveil_bench.attack import attack, load
from textveil_bench.audit.audit_target import Subject
from textveil_bench.audit.coverage import check_totality
from textveil_bench.audit.pipeline_check import check_pipeline
from textveil_bench.measure import fluency, measure

CANARY = "zzcanaryzz"
VECTORS = gaussian_rows(60, 8, 7)
TABLE = EmbeddingTable.build(name="sixty", words=NOUNS, vectors=VECTORS)
UNIT = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
TEXTS = ("The lemon and the castle.", "", f"Apple pillow {CANARY} river, is it?")


def near(row: int, m: int) -> list[int]:
    """The m nearest rows by hand, a word itself first."""
    return np.argsort(np.linalg.norm(UNIT - UNIT[row], axis=1))[:m].tolist()


@dataclass
class Liking:
    """A context that likes a row by its number and by the words to its left and right, and keeps all it is shown."""

    shown: list[tuple[tuple[str, ...], ...]] = field(default_factory=list)

    def yield_batches(self, texts: Any, positions: Any, hidden: Any = None) -> Any:
        bounds = texts.documents.tolist()
        self.shown.append(tuple(tuple(texts.words[a:b]) for a, b in pairwise(bounds)))
        for place, position in enumerate(positions.tolist()):
            start, stop = next((a, b) for a, b in pairwise(bounds) if a <= position < b)
            around = (texts.words[start:position], texts.words[position + 1 : stop])
            yield np.array([place]), torch.from_numpy(self.compute_logits(*around))[None]

    @staticmethod
    def compute_logits(left: Any, right: Any) -> np.ndarray:
        seed = sum(ord(letter) * (i + 1) for i, letter in enumerate("|".join((*left, "_", *right))))
        return np.random.default_rng(seed).normal(size=len(TABLE)).astype(np.float32)


@pytest.fixture
def liking(monkeypatch: pytest.MonkeyPatch) -> Liking:
    made = Liking()
    monkeypatch.setattr(module, "_load_model", lambda table, source: made)
    return made


def by_hand(
    rehearsal: EvaluationRun, m: int, listed: Callable[[int, int], list[int]] = near
) -> list[int]:
    """The rows to show: of those that are listed for what was drawn the likeliest, among the words that were drawn."""
    rows = iter(rehearsal.drawn_rows.tolist())
    texts = [
        [(item, next(rows) if item.kind == "word" else -1) for item in each.released.items]
        for each in rehearsal.results
    ]
    found = []
    for text in texts:
        words = [item.text if row < 0 else NOUNS[listed(row, 1)[0]] for item, row in text]
        for i, (_, row) in enumerate(text):
            if row >= 0:
                fit = Liking.compute_logits(words[:i], words[i + 1 :])
                found.append(max(listed(row, m), key=lambda candidate: fit[candidate]))
    return found


def make(mechanism: Any = "noise", m: int = 5, **options: Any) -> Privatizer:
    budget = {} if mechanism == "placeholder" else {"epsilon": 5.0}
    return Privatizer(mechanism, table=TABLE, rerank={"m": m}, **{"seed": 1, **budget, **options})


# ---- what is taken ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [2, 5, 60, 1000])
def test_the_likeliest_of_the_nearest_is_taken(m, liking):
    plain, found = make(m=0).rehearse(TEXTS), make(m=m).rehearse(TEXTS)
    assert np.array_equal(found.drawn_rows, plain.drawn_rows)
    assert found.shown_rows.tolist() == by_hand(plain, m) != found.drawn_rows.tolist()
    words = [
        item.text
        for result in found.results
        for item in result.released.items
        if item.kind == "word"
    ]
    assert words == [NOUNS[row] for row in found.shown_rows]


def test_where_several_are_liked_alike_the_word_stays(liking, monkeypatch):
    monkeypatch.setattr(
        Liking, "compute_logits", staticmethod(lambda left, right: np.zeros(len(TABLE), np.float32))
    )
    found = make(m=9).rehearse(TEXTS)
    assert np.array_equal(found.shown_rows, found.drawn_rows)


@pytest.mark.parametrize("m", [0, 1])
def test_one_candidate_changes_nothing_and_asks_nothing(m, liking):
    plain, found = (
        Privatizer("noise", epsilon=5, table=TABLE, seed=1).rehearse(TEXTS),
        make(m=m).rehearse(TEXTS),
    )
    assert [each.text for each in found.results] == [each.text for each in plain.results]
    assert [each.guarantee.to_json() for each in found.results] == [
        each.guarantee.to_json() for each in plain.results
    ]
    assert not liking.shown


def test_a_row_with_a_twin_stays_its_own_nearest():
    vectors = np.repeat(VECTORS[:30], 2, axis=0)
    table = EmbeddingTable.build(name="twins", words=NOUNS, vectors=vectors)
    assert table.neighbours(np.array([7, 6, 7]), 2).tolist() == [[7, 6], [6, 7], [7, 6]]


# ---- what is seen ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("casing", ["lower", "copy"])
@pytest.mark.parametrize("oov", ["surrogate", "placeholder", "keep"])
def test_the_model_is_shown_the_release_and_nothing_else(casing, oov, liking):
    options = WordsOptions(casing=casing, oov=oov)
    session = Session()
    list(make(words=options).privatize_many(TEXTS, session))
    plain = list(make(m=0, words=options).privatize_many(TEXTS, Session()))
    hidden = [
        tuple("" if item.kind == "placeholder" else item.text for item in result.released.items)
        for result in plain
    ]
    assert liking.shown == [tuple(hidden)]
    assert (CANARY in str(liking.shown)) is (oov == "keep")


def test_two_originals_of_one_release_are_re_ranked_alike(liking, stub):
    """What is drawn here follows from the place alone, so that texts with one mask have one release."""
    mechanism = stub(release=lambda table, block: np.arange(len(block.secret)) * 7 % 60)
    one, two = (
        make(mechanism).privatize(text)
        for text in ("The lemon and River, ox!", "the castle and ribbon, ox!")
    )
    assert one.text == two.text
    assert liking.shown[0] == liking.shown[1]


def test_placeholders_and_passing_words_stay(liking, stub):
    mechanism = stub(
        release=lambda table, block: np.where(np.arange(len(block.secret)) % 2, PLACEHOLDER, 3)
    )
    found = make(mechanism, m=60).rehearse(["the lemon and castle", "river ribbon"])
    assert [item.kind for item in found.results[0].released.items] == [
        "verbatim",
        "word",
        "verbatim",
        "placeholder",
    ]
    assert (found.shown_rows[1::2] == PLACEHOLDER).all()
    assert (found.shown_rows[::2] != PLACEHOLDER).all()
    assert found.results[0].text.startswith("the ")
    assert make("placeholder").privatize("lemon and castle").text == "<WORD> and <WORD>"


def test_a_session_numbers_placeholders_once(liking):
    session = Session()
    made = make(words={"oov": "placeholder"})
    assert "<WORD_1>" in made.privatize(TEXTS[2], session).text
    assert "<WORD_2>" in made.privatize("ox lemon", session).text
    assert session.restore("<WORD_1>") == CANARY


# ---- what stays the same ---------------------------------------------------------------------------------


def test_the_statement_is_the_same_but_for_the_note(liking):
    plain, found = (make(m=m).privatize(TEXTS[0]).guarantee for m in (0, 5))
    assert found.claim.caveats == (*plain.claim.caveats, module.RERANK_NOTE)
    assert found.claim.options == {**plain.claim.options, "rerank": {"m": 5, "model": None}}
    assert found.to_json() == {
        **plain.to_json(),
        "caveats": [*plain.claim.caveats, module.RERANK_NOTE],
        "options": dict(found.claim.options),
    }
    assert found.headline() == plain.headline()
    assert f"Note: {module.RERANK_NOTE}." in found.explain()
    assert module.RERANK_NOTE in summarize([found, found]).explain()


def test_texts_do_not_depend_on_neighbours_and_repeat(liking):
    one, two = (
        list(make().privatize_many([first, TEXTS[2], last]))
        for first, last in (("ox", "cat"), (TEXTS[0], ""))
    )
    assert one[1].text == two[1].text
    assert [each.text for each in make().privatize_many(["ox", TEXTS[2], "cat"])] == [
        each.text for each in one
    ]


def test_pickling_keeps_it(liking):
    made = make()
    again = pickle.loads(pickle.dumps(made))
    assert again.rerank == Rerank(m=5)
    found = again.rehearse(TEXTS)
    assert found.shown_rows.tolist() == by_hand(found, 5) != found.drawn_rows.tolist()


# ---- options ---------------------------------------------------------------------------------------------


def test_one_spelling_everywhere(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("epsilon: 5\nrerank: {m: 10, model: some/model}\n")
    wanted = Rerank(m=10, model="some/model")
    environ = {"TEXTVEIL_RERANK__M": "10", "TEXTVEIL_RERANK__MODEL": "some/model"}
    given = {"rerank.m": "10", "rerank.model": "some/model"}
    assert resolve(file=file).rerank == wanted
    assert resolve(environ=environ, overrides={"epsilon": 5}).rerank == wanted
    assert resolve(overrides={"epsilon": 5, **given}).rerank == wanted
    assert resolve(overrides=convert_keywords(epsilon=5, rerank=wanted)).rerank == wanted
    assert resolve(overrides=convert_keywords(epsilon=5, rerank={"m": 10})).rerank == Rerank(m=10)
    assert resolve(file=file).to_dict()["rerank"] == {"m": 10, "model": "some/model"}
    assert Privatizer.from_config(resolve(file=file), table=TABLE).rerank == wanted
    assert Privatizer("noise", epsilon=5, table=TABLE, rerank=wanted).rerank == wanted
    assert resolve(overrides={"epsilon": 5}).rerank.m == 0


@pytest.mark.parametrize("m", [-1, 1001, 2.5, "many"])
def test_m_out_of_range(m):
    with pytest.raises(ConfigError, match=r"rerank\.m must be"):
        Rerank(m=m)


def test_word_pieces_are_refused(pieces_table, monkeypatch):
    monkeypatch.setattr("textveil.table.WordPieces.load", lambda *_: None)
    with pytest.raises(ConfigError, match=r"rerank\.m needs words\.unit=word"):
        Privatizer(
            "noise", epsilon=5, table=pieces_table, words={"unit": "wordpiece"}, rerank={"m": 2}
        )


# ---- files and the audit ---------------------------------------------------------------------------------


def test_files(tmp_path, liking):
    (tmp_path / "letters.txt").write_text("\n".join(TEXTS) + "\n")
    (tmp_path / "words.txt").write_text("\n".join(NOUNS) + "\n")
    np.save(tmp_path / "rows.npy", VECTORS)
    with vectors.open_vectors(
        str(tmp_path / "rows.npy"), vocabulary=str(tmp_path / "words.txt")
    ) as found:
        store.build(found, str(tmp_path / "table"))
    lines, done = {}, {}
    for m in (0, 5):
        config = resolve(
            overrides=convert_keywords(
                epsilon=5, seed=1, table=str(tmp_path / "table"), rerank={"m": m}
            )
        )
        done[m] = run(tmp_path / "letters.txt", tmp_path / str(m), config, RowOptions(ids="row"))
        lines[m] = (tmp_path / str(m) / "part-00000000.txt").read_text().splitlines()
    assert liking.shown == [tuple(tuple(tokenize([line]).words) for line in lines[0])]
    assert lines[5] != lines[0]
    assert done[5].manifest["configuration"]["rerank"] == {"m": 5, "model": None}
    assert module.RERANK_NOTE in done[5].manifest["statement"]["guarantee"]["caveats"]


def test_the_audit_looks_at_what_is_drawn(liking):
    made = make(seed=None)
    finding = check_pipeline(
        Subject(build=lambda seed=None: make(seed=seed), small=True, privatizer=made)
    )
    assert (finding.verdict, liking.shown) == ("holds", [])


# ---- attacks and measures --------------------------------------------------------------------------------


def test_who_knows_the_mechanism_attacks_what_was_drawn(liking):
    texts = [" ".join(NOUNS[i::7]) for i in range(7)]
    plain, case = (Case.create(make("exponential", m=m), texts) for m in (0, 20))
    assert np.array_equal(case.view.output_rows, plain.view.output_rows)
    assert np.array_equal(plain.view.visible_rows, plain.view.output_rows)
    assert not np.array_equal(case.view.visible_rows, case.view.output_rows)
    attackers = [
        load("bayes", {"priors": ("uniform",)}),
        load("membership", None),
        load("neighbour", None),
    ]
    before, after = (
        {
            (row.source, row.metric, str(row.setting)): row
            for row in attack(each, attackers, rng=SeededRandomness(0)).rows
            if row.slice == "all"
        }
        for each in (plain, case)
    )
    assert before.keys() == after.keys()
    for key, row in after.items():
        if key[0] == "neighbour":
            assert "re-ranked" not in row.note
        else:
            assert row.value == before[key].value
            assert "before they were re-ranked" in row.note
            assert "re-ranked" not in before[key].note
    right = after["neighbour", "Pr@1", str({"distance": "cosine"})].value
    assert (
        right
        == np.mean(case.view.visible_rows == case.truth.rows)
        != np.mean(case.view.output_rows == case.truth.rows)
    )


def test_measures_look_at_what_is_shown(liking):
    case = Case.create(make(m=20), [" ".join(NOUNS)])
    rows = {
        row.metric: row.value
        for row in measure(case, metrics=("retention", "cosine")).rows
        if row.slice == "all"
    }
    shown, private = UNIT[case.view.visible_rows], UNIT[case.truth.rows]
    assert rows["retention"] == np.mean(case.view.visible_rows == case.truth.rows)
    assert rows["cosine"] == pytest.approx((shown * private).sum(axis=1).mean(), abs=1e-6)
    assert np.array_equal(
        fluency._find_target_rows(case)[1][case.view.item], case.view.visible_rows
    )
    kept = Case(view=replace(case.view, visible_word_rows=case.truth.rows), truth=case.truth)
    assert measure(kept, metrics=("retention",)).rows[0].value == 1


# ---- codes -----------------------------------------------------------------------------------------------

BOOK = book_of(TABLE, 6)
CODES = TABLE.coarsen(BOOK)


def spelled(m: int = 5, table: EmbeddingTable = CODES, **options: Any) -> Privatizer:
    given = {"mechanism": "codebook", "epsilon": 3.0, "seed": 1, "table": table, "rerank": {"m": m}}
    return Privatizer(**{**given, **options})


def frequent(code: int, m: int) -> list[int]:
    """The m words of a code that may spell it, by hand: its typical one, then the most frequent in general text."""
    rows = [row for row in range(60) if row % 6 == code]
    return sorted(
        rows, key=lambda row: (row != BOOK.spelling[code], -compute_shares(TABLE)[row], row)
    )[:m]


@pytest.mark.parametrize("m", [2, 5, 10, 1000])
def test_a_code_is_spelled_by_the_one_of_its_frequent_words_that_is_expected(m, liking):
    plain, found = spelled(0).rehearse(TEXTS), spelled(m).rehearse(TEXTS)
    assert np.array_equal(found.drawn_rows, plain.drawn_rows)
    assert found.shown_rows.tolist() == by_hand(plain, m, frequent) != plain.shown_rows.tolist()
    assert plain.shown_rows.tolist() == BOOK.spelling[plain.drawn_rows].tolist()


def test_a_released_word_leads_back_to_its_code(liking):
    texts = [" ".join(NOUNS[i::7]) for i in range(7)]
    for table in (CODES, CODES.project(3)):
        rehearsal = spelled(table=table).rehearse(texts)
        words = [item.text for result in rehearsal.results for item in result.released.items]
        assert {*words} - {NOUNS[row] for row in BOOK.spelling}
        assert CODES.find(words).tolist() == rehearsal.drawn_rows.tolist()
        assert TABLE.find(words).tolist() == rehearsal.shown_rows.tolist()


def spellings(texts: list[str], stub: Any) -> list[str]:
    """Releases whose codes follow from the places alone, so that all texts with one mask have the same codes."""
    mechanism = stub(release=lambda table, block: np.arange(len(block.secret)) % 6)
    return [spelled(mechanism=mechanism).privatize(text).text for text in texts]


PRIVATE = ["The lemon and river, castle!", "the ribbon and Apple, pillow!"]


def test_equal_codes_are_spelled_alike_whatever_the_words_were(liking, stub):
    """Two texts whose releases are the same but for their spelling; a spelling that looks at the words is caught."""
    one, two = spellings(PRIVATE, stub)
    assert one == two
    assert liking.shown[0] == liking.shown[1]


def test_a_spelling_that_looks_at_the_words_is_caught(liking, stub, monkeypatch):
    """The broken twin: of each code it shows the word nearest to the private one."""
    secrets = iter(PRIVATE)

    def peeking(options: Rerank, table: EmbeddingTable, releases: Any, rows: Any) -> Any:
        private = TABLE.find(
            [word for word in tokenize([next(secrets)]).words if word.lower() in NOUNS]
        )
        words = [
            [row for row in range(60) if row % 6 == code] for code in BOOK.codes[rows].tolist()
        ]
        near = [
            min(own, key=lambda row: abs(row - at))
            for own, at in zip(words, private.tolist(), strict=True)
        ]
        return np.array(near)

    monkeypatch.setattr(sentence, "rerank", peeking)
    one, two = spellings(PRIVATE, stub)
    assert one != two
    assert CODES.find(tokenize([one]).words).tolist() == CODES.find(tokenize([two]).words).tolist()


def test_other_words_of_the_public_list_spell_no_code():
    words = ["the", "castle", "river", "and", "lemon", "ribbon"]
    table = EmbeddingTable.build(name="six", words=words, vectors=gaussian_rows(6, 4, 1))
    book = book_of(table, 2, spelling=np.array([2, 5]))
    found = [
        [words[row] for row in own]
        for own in module._find_frequent(table.coarsen(book), 9).tolist()
    ]
    assert found == [["river", "lemon"], ["ribbon", "castle"]]
    listed = book_of(table, 2, spelling=np.array([0, 3]))
    found = [
        [words[row] for row in own]
        for own in module._find_frequent(table.coarsen(listed), 9).tolist()
    ]
    assert [own[0] for own in found] == ["the", "and"]  # the book says so
    assert [{*own[1:]} for own in found] == [{"river", "lemon"}, {"castle", "ribbon"}]


def test_where_codes_have_few_words_their_spelling_stands_for_the_rest():
    book = book_of(
        TABLE, 2, codes=(np.arange(60) >= 58).astype(np.uint16), spelling=np.array([0, 58])
    )
    assert module._find_frequent(TABLE.coarsen(book), 4)[1].tolist() == [58, 59, 58, 58]


def test_what_the_statement_says_of_spelled_codes(liking):
    plain, found = (spelled(m).privatize(TEXTS[0]).guarantee for m in (0, 5))
    assert found.headline() == plain.headline()
    assert found.epsilon == plain.epsilon
    assert (
        module.CODE_SPELLING_NOTE in found.claim.caveats,
        module.RERANK_NOTE in found.claim.caveats,
    ) == (
        True,
        False,
    )
    assert found.claim.options["rerank"] == {"m": 5, "model": None}


@pytest.mark.slow
def test_names_stay_names_where_codes_are_spelled():
    table = load_table("minilm")
    options: dict[str, Any] = {
        "protect": {"detectors": "tagger"},
        "names": {"types": "PERSON"},
        "words": {"casing": "copy"},
    }
    texts = ["Yesterday Maria Silva met the plumber in the garden."]
    coarse = table.coarsen(book_of(table, 40))
    plain, found = (
        Privatizer(
            "codebook", epsilon=4, table=coarse, seed=1, rerank={"m": m}, **options
        ).rehearse(texts)
        for m in (0, 20)
    )
    one, two = ([item.text for item in each.results[0].released.items] for each in (plain, found))
    assert one[1:3] == two[1:3]
    assert one != two
    assert np.array_equal(found.name_rows, plain.name_rows)


def test_who_knows_the_mechanism_learns_no_more_from_the_spelling(liking):
    texts = [" ".join(NOUNS[i::7]) for i in range(7)]
    plain, case = (Case.create(spelled(m), texts) for m in (0, 20))
    assert np.array_equal(case.view.visible_rows, case.view.output_rows)
    assert not np.array_equal(case.view.visible_word_rows, plain.view.visible_word_rows)
    attackers = [load("bayes", {"priors": ("uniform", "unigram")}), load("membership", None)]
    before, after = (
        [row.value for row in attack(each, attackers, rng=SeededRandomness(0)).rows]
        for each in (plain, case)
    )
    assert before == after
    assert len(before) > 9


@pytest.mark.slow
def test_the_audit_of_spelled_codes(liking):
    subject = Subject(
        build=lambda seed=None: spelled(seed=seed), small=True, privatizer=spelled(seed=None)
    )
    assert check_totality(subject).verdict == "holds"
    assert check_pipeline(subject).verdict == "holds"


# ---- a real model ----------------------------------------------------------------------------------------


def test_the_bundled_model_prefers_what_fits():
    """A word that fits its place replaces one near it that does not; the model is loaded once."""
    words = ["queen", "london", "tuesday", "seventeen", "banana"]
    vectors = np.array([[1, 0.1], [1, 0.2], [1, 0.3], [1, 0.4], [-1, 0.0]], np.float32)
    table = EmbeddingTable.build(name="five", words=words, vectors=vectors)
    module._load_model.cache_clear()
    made = Privatizer("noise", epsilon=1e6, table=table, words={"oov": "keep"}, rerank={"m": 4})
    texts = ["She was born in queen.", "He paid queen dollars."]
    assert [each.text for each in made.privatize_many(texts)] == [
        "she was born in london.",
        "he paid seventeen dollars.",
    ]
    made.privatize("it is queen")
    assert module._load_model.cache_info().misses == 1


def test_a_code_is_spelled_alike_whatever_other_texts_stand_in_the_batch():
    """To the last digit of the model: the spelling follows from the release of the text alone."""
    table = load_table(codes="50")
    texts = [
        "The lawyer hid it.",
        *(" ".join(NOUNS[i::9]) + "." for i in range(9)),
        "She sang in Rome, he said.",
    ]
    found = Privatizer("codebook", epsilon=4, table=table, seed=1).rehearse(texts)
    releases, rows = [each.released for each in found.results], found.shown_rows
    together = module.rerank(Rerank(m=20), table, releases, rows).tolist()
    many = [sum(item.kind == "word" for item in each.items) for each in releases]
    alone = [
        module.rerank(Rerank(m=20), table, [each], own).tolist()
        for each, own in zip(releases, np.split(rows, np.cumsum(many)[:-1]), strict=True)
    ]
    assert together == [*chain.from_iterable(alone)] != rows.tolist()
