"""The papers' own rules for words outside the table: their laws, what is shown, and what statements say of it.

Statistical tests have a false-alarm rate of 1e-6, with fixed seeds.
"""

import json
import math
import re
import traceback
import warnings
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.fixtures import NOUNS, gaussian_rows

from textveil.cli import main
from textveil.config.sections import WordsOptions
from textveil.errors import ConfigError, VocabularyError
from textveil.evaluate.attack import Case
from textveil.guarantee import summarize
from textveil.guarantee.guarantee import Guarantee
from textveil.mechanism import oov
from textveil.mechanism.oov import WordRule
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.streams import SeededRandomness
from textveil.table.embedding import EmbeddingTable
from textveil.text.released import Kind, Released
from textveil_bench.audit.run import audit

RATE = 1e-6
CANARY = "Zyqxorvian"
TABLE = EmbeddingTable.build(name="small", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
NUMBERED = EmbeddingTable.build(
    name="numbered", words=["12", *NOUNS], vectors=gaussian_rows(61, 8, 7)
)
OWN = ({"oov": "uniform"}, {"oov": "drop"}, {"numbers": "add"}, {"oov": "drop", "numbers": "add"})
"""Every paper's own rule that takes words out of the mechanism's hands."""

EVERY = pytest.mark.parametrize("words", OWN, ids=lambda words: "-".join(words.values()))


def follows(counts, expected=None):
    """Whether Pearson's chi-square test keeps equal probabilities; every expected count is 5 or more."""
    counts = np.asarray(counts)
    assert counts.sum() / len(counts) >= 5
    return stats.chisquare(counts).pvalue > RATE


def privatizer(mechanism="noise", table=TABLE, seed=1, **words):
    return Privatizer(mechanism, epsilon=5, table=table, words=words, seed=seed)


# ---- laws ----------------------------------------------------------------------------------------


def test_the_laws_of_what_is_drawn():
    """A row of 61 and a step below 1000, evenly; the twin that never moves by 999 is found, and so is a lost row."""
    n = 400_000
    rule = np.tile(
        np.array([WordRule.HOUSE, WordRule.UNIFORM, WordRule.ADD, WordRule.DROP], np.int8), n
    )
    documents = np.arange(0, len(rule) + 1, 100_000)
    drawn = oov.draw(rule, documents, 61, rng=SeededRandomness(3))
    assert (drawn[(rule == WordRule.HOUSE) | (rule == WordRule.DROP)] == -1).all()
    rows, steps = drawn[rule == WordRule.UNIFORM], drawn[rule == WordRule.ADD]
    assert follows(np.bincount(rows, minlength=61))
    assert follows(np.bincount(steps, minlength=1000))
    assert len(np.bincount(rows)) == 61
    assert len(np.bincount(steps)) == 1000
    assert not follows(np.bincount(np.where(rows == 60, 0, rows), minlength=61))
    assert not follows(np.bincount(np.where(steps == 999, 0, steps), minlength=1000))
    pairs = rows[:-1] * 61 + rows[1:]  # one after another, across texts too
    assert follows(np.bincount(pairs, minlength=61 * 61))


def test_an_unknown_word_is_drawn_evenly_from_the_whole_table():
    text = " ".join([CANARY] * 6000)
    counts = Counter(item.text for item in privatizer(oov="uniform").privatize(text).released.items)
    assert set(counts) == set(NOUNS)
    assert follows(list(counts.values()))
    surrogate = Counter(item.text for item in privatizer().privatize(text).released.items)
    assert not follows([surrogate[noun] for noun in NOUNS])  # the house rule draws around one row


def test_a_number_is_moved_up_evenly():
    released = privatizer(numbers="add").privatize(" ".join(["41"] * 20_000)).released
    steps = np.array([int(item.text) for item in released.items]) - 41
    assert (steps.min(), steps.max()) == (0, 999)
    assert follows(np.bincount(steps, minlength=1000))


@pytest.mark.parametrize("epsilon", [0, 5, math.inf])
def test_no_budget_changes_the_rules(epsilon):
    texts = [f"{CANARY} 7 river"] * 50
    made = Privatizer(
        "noise", epsilon=epsilon, table=TABLE, words={"oov": "uniform", "numbers": "add"}, seed=1
    )
    shown = [[item.text for item in result.released.items] for result in made.privatize_many(texts)]
    assert {words[0] for words in shown} <= set(NOUNS)
    assert len({words[0] for words in shown}) > 10
    assert all(7 <= int(words[1]) <= 1006 for words in shown)
    assert {words[2] for words in shown} <= {"<WORD>", *NOUNS}


# ---- which words -------------------------------------------------------------------------------


def test_which_words_are_numbers(echo):
    """Digits alone, outside the table; the others fall under `words.oov`."""
    text = f"12 007 {'9' * 18} {'9' * 19} 1,000 12:30 ٣ ² 4th river"
    words = WordsOptions(numbers="add", oov="placeholder")
    result = Privatizer(echo, epsilon=5, table=NUMBERED, words=words, seed=1).privatize(text)
    kinds = [item.kind for item in result.released.items]
    assert kinds == ["word", *["number"] * 2, *["placeholder"] * 6, "word"]
    assert result.released.mask.numbers == (1, 2)
    assert "moved numbers" in result.guarantee.mask
    assert result.released.items[0].text == "12"  # a row of this table, echoed
    assert 7 <= int(result.released.items[1].text) <= 1006
    assert int(result.released.items[2].text) >= 10**18 - 1
    assert result.oov_share == 0.8


def test_an_error_is_only_for_words_that_no_rule_takes(echo):
    made = Privatizer(echo, epsilon=5, table=TABLE, words=WordsOptions(numbers="add", oov="error"))
    assert made.privatize("the 12 river").released.items[1].kind is Kind.NUMBER
    with pytest.raises(VocabularyError, match="1 of 3 words"):
        made.privatize(f"12 {CANARY} river")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{CANARY} river", "river"),
        (f"river {CANARY}", "river"),
        (f"\n{CANARY} river \n", "\nriver \n"),
        (f"river\n{CANARY} stone", "river\nstone"),
        (f"river  {CANARY}\n\nstone", "river\n\nstone"),
        (f"river {CANARY} {CANARY} stone", "river stone"),
        ("river😀stone", "river stone"),
        ("to😀be", "to be"),
        (f"(the {CANARY})", "(the )"),
        (CANARY, ""),
        (f" {CANARY} \n", " \n"),
        ("", ""),
        ("river stone", "river stone"),
    ],
)
def test_the_gap_of_a_dropped_word(text, shown, echo):
    result = Privatizer(echo, epsilon=5, table=TABLE, words=WordsOptions(oov="drop")).privatize(
        text
    )
    assert result.text == shown


def test_a_dropped_word_leaves_its_place_in_the_mask(echo):
    options = WordsOptions(oov="drop", casing="copy")
    result = Privatizer(echo, epsilon=5, table=TABLE, words=options).privatize(
        f"The {CANARY} RIVER, {CANARY} stone"
    )
    assert result.text == "The RIVER, stone"
    assert [(item.start, item.end) for item in result.released.items] == [
        (0, 1),
        (2, 3),
        (3, 4),
        (5, 6),
    ]
    mask = result.released.mask
    assert (mask.words, mask.dropped, mask.verbatim) == (6, (1, 4), (0, 2))
    assert mask.casing == ("title", "upper", "lower", "lower")
    assert "dropped words" in result.guarantee.mask
    assert result.guarantee.words == 6
    assert result.guarantee.epsilon_per_word.tolist() == [math.inf, 5, math.inf, 5]


def test_dropped_words_do_not_move_the_placeholders_of_the_others(echo):
    made = Privatizer(echo, epsilon=0, table=TABLE, words=WordsOptions(oov="drop"))
    mask = made.privatize(f"{CANARY} river the stone").released.mask
    assert mask.placeholders == ((0, "WORD"), (2, "WORD"))
    assert mask.verbatim == (1,)


def test_casing_of_drawn_words():
    made = privatizer(oov="uniform", casing="copy")
    shown = made.privatize(f"{CANARY} {CANARY.upper()} {CANARY.lower()}").text.split()
    assert [word.istitle() for word in shown] == [True, False, False]
    assert [word.isupper() for word in shown] == [False, True, False]


@EVERY
def test_word_pieces(words, wordpiece_table):
    options = WordsOptions(unit="wordpiece", **words)
    made = Privatizer("noise", epsilon=5, table=wordpiece_table, words=options, seed=1)
    result = made.privatize("river 日 fabrics 4th 12")
    unknown = () if words.get("oov") == "drop" else ("word",)
    number = (
        ("number",) if words.get("numbers") == "add" else unknown
    )  # 12 is no piece, and no two either
    assert tuple(item.kind for item in result.released.items) == (
        "word",
        *unknown,
        "word",
        "word",
        *number,
    )
    assert "日" not in result.text
    assert result.guarantee.kind == "none"


def test_an_evenly_drawn_word_has_as_many_pieces_as_it_had(wordpiece_table):
    options = WordsOptions(unit="wordpiece", oov="uniform")
    made = Privatizer("noise", epsilon=5, table=wordpiece_table, words=options, seed=1)
    shown = {made.privatize("日").text for _ in range(200)}
    assert len(shown) > 50
    assert made.privatize("日").released.mask.pieces == (1,)


# ---- what leaves -------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["uniform", "drop"])
@pytest.mark.parametrize("casing", ["lower", "copy"])
@pytest.mark.parametrize("mechanism", ["noise", "exponential", "d-chi-stencil"])
def test_an_unknown_word_shows_nowhere(rule, casing, mechanism, caplog, capfd):
    options: dict[str, Any] = {"L": 3, "window_over": "all"} if mechanism == "d-chi-stencil" else {}
    made = Privatizer(
        mechanism, epsilon=5, table=TABLE, words={"oov": rule, "casing": casing}, **options
    )
    result = made.privatize(f"River {CANARY} met {CANARY.upper()}, the stone{CANARY}")
    text = json.dumps(result.to_json())
    shown = (
        repr(result),
        text,
        str(result.released),
        result.guarantee.explain(),
        repr(made),
        caplog.text,
    )
    assert not any(CANARY.lower() in each.lower() for each in (*shown, *capfd.readouterr()))
    assert CANARY in json.dumps(result.to_json(with_original=True))


def test_errors_show_no_word():
    made = privatizer(oov="uniform", numbers="add")
    broken = object.__new__(Privatizer)
    broken.__dict__.update(made.__dict__, randomness=None)
    with pytest.raises(Exception, match="nothing was released") as caught:
        broken.privatize(f"{CANARY} 12")
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@EVERY
def test_a_seed_repeats(words):
    texts = [f"river {CANARY} 12 stone", "the 5", f"{CANARY}"] * 5
    once, again = ([r.text for r in privatizer(**words).privatize_many(texts)] for _ in range(2))
    assert once == again
    part = [r.text for r in privatizer(**words).privatize_many(texts, first=3)]
    assert part == [r.text for r in privatizer(**words).privatize_many(texts, first=3)]
    assert part != once
    assert once[:3] != once[3:6]


@EVERY
@pytest.mark.parametrize("first", ["river", f"{CANARY} 1 {CANARY} 2 river 3", ""])
def test_texts_are_drawn_independently(words, first):
    """What stands in one text changes nothing of another."""
    other = f"{CANARY} 12 river {CANARY} 5"
    alone = [r.text for r in privatizer(**words).privatize_many(["", other])][1]
    assert [r.text for r in privatizer(**words).privatize_many([first, other])][1] == alone


def test_two_calls_differ_without_a_seed():
    made = privatizer(oov="uniform", numbers="add", seed=None)
    text = f"{CANARY} 12 " * 20
    assert made.privatize(text).text != made.privatize(text).text


def test_json_and_files(tmp_path):
    rows = [{"text": f"The {CANARY} river 86753."}, {"text": CANARY}]
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    settings = (
        "--mechanism",
        "noise",
        "--epsilon",
        "8",
        "--table",
        "minilm-s",
        "-o",
        "words.oov=drop",
        "-o",
        "words.numbers=add",
    )
    assert (
        main(
            [
                "corpus",
                "run",
                str(tmp_path / "a.jsonl"),
                "--id-from-row",
                "--output",
                str(tmp_path / "out"),
                *settings,
            ]
        )
        == 0
    )
    written = [
        json.loads(line)
        for line in (tmp_path / "out" / "part-00000000.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    assert re.fullmatch(r"the \w+ \d+\.", written[0]["text"])
    assert written[1]["text"] == ""
    beside = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert beside["configuration"]["words"]["numbers"] == "add"
    assert {"moved numbers", "dropped words"} <= set(beside["statement"]["guarantee"]["mask"])
    assert len(beside["statement"]["guarantee"]["infinite_because"]) == 2


# ---- statements --------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("mechanism", ["noise", "exponential", "placeholder", "stencil"])
def test_reasons_follow_from_the_options_alone(words, mechanism):
    """A text without such words has the same reasons: the text next to it may have one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        epsilon = 5 if mechanism in ("noise", "exponential") else None
        made = Privatizer(mechanism, epsilon=epsilon, table=TABLE, words=words)
        house = Privatizer(mechanism, epsilon=epsilon, table=TABLE)
    found = [made.privatize(text).guarantee for text in ("river", f"{CANARY} 12", "", "the")]
    assert len({guarantee.infinite for guarantee in found}) == 1
    due = {"uniform": "words.oov=uniform", "drop": "words.oov=drop", "add": "words.numbers=add"}
    assert len(found[0].infinite) == len(words)
    for value, reason in zip(words.values(), found[0].infinite, strict=True):
        assert due[value] in reason
    assert all(guarantee.kind == "none" and guarantee.epsilon == math.inf for guarantee in found)
    assert "no finite bound holds" in found[0].headline()
    assert house.privatize("river").guarantee.infinite == ()
    unpacked = Guarantee.unpack(json.loads(json.dumps(found[1].pack())))
    assert unpacked.to_json() == found[1].to_json()
    assert summarize(found).infinite == found[0].infinite


@pytest.mark.parametrize(
    ("words", "text", "line"),
    [
        ({"oov": "uniform"}, CANARY, "Draws come from AES"),
        ({"numbers": "add"}, "12", "Draws come from AES"),
        ({"oov": "drop"}, CANARY, "Nothing is drawn."),
        ({"oov": "uniform"}, "river", "Nothing is drawn."),
        ({"numbers": "add"}, CANARY, "Nothing is drawn."),
    ],
)
def test_a_statement_says_whether_something_was_drawn(words, text, line):
    """Around a mechanism that draws nothing itself."""
    result = Privatizer("placeholder", table=TABLE, words=words).privatize(text)
    assert line in result.guarantee.headline()
    seeded = Privatizer("placeholder", table=TABLE, words=words, seed=1).privatize(text)
    assert ("knows the seed" in seeded.guarantee.headline()) == (line != "Nothing is drawn.")


def test_nothing_passes_that_the_statement_says_passed():
    guarantee = privatizer(oov="uniform").privatize(f"{CANARY} river").guarantee
    assert "1 more word went unprotected" in guarantee.headline()
    assert "drawn uniformly" in guarantee.explain()
    assert "left out" in privatizer(oov="drop").privatize("river").guarantee.explain()


# ---- audit and attacks ---------------------------------------------------------------------------


class LosesOneMore(Privatizer):
    """Drops a word of the table as well."""

    def privatize(self, text, session=None, *, query=None):
        result = super().privatize(text, session)
        released = result.released
        if not released.items:
            return result
        last = len(released.items) - 1
        mask = replace(
            released.mask, verbatim=tuple(i for i in released.mask.verbatim if i != last)
        )
        kept = Released(items=released.items[:-1], gaps=released.gaps[:-1], mask=mask)
        return replace(result, released=kept)


@pytest.mark.parametrize("words", [{}, {"oov": "keep"}, *OWN])
@pytest.mark.parametrize("mechanism", ["noise", "exponential"])
def test_the_audit_reports_nothing_false(words, mechanism):
    checks = ("pipeline", "totality", "error path", "statement")
    found = list(
        audit(
            partial(Privatizer, mechanism, epsilon=5, table=TABLE, words=words),
            small=True,
            only=checks,
        )
    )
    assert {finding.check for finding in found} == set(checks)
    assert [finding for finding in found if finding.verdict == "violated"] == []
    totality = next(finding.why for finding in found if finding.check == "totality")
    assert ("every word replaced, none lost" in totality) == (not words)
    assert ("except where the statement is infinite" in totality) == bool(words)


def test_the_audit_finds_a_word_that_is_lost_though_the_mask_has_it():
    build = partial(LosesOneMore, "noise", epsilon=5, table=TABLE, words={"oov": "drop"})
    assert [finding.verdict for finding in audit(build, small=True, only=("totality",))] == [
        "violated"
    ]


@EVERY
def test_attacks_and_measures_refuse(words):
    made = privatizer(**words)
    with pytest.raises(ConfigError, match=r"words\.oov .* words\.numbers to table"):
        Case.create(made, ["river"])
    with pytest.raises(ConfigError, match=r"attacks and measures need"):
        Case.build(made, made.rehearse(["river"]))


@pytest.mark.parametrize("setting", ["words.oov=uniform", "words.oov=drop", "words.numbers=add"])
def test_the_command_line_refuses_in_one_line(setting, tmp_path, capfd):
    (tmp_path / "a.txt").write_text(f"{CANARY} 12 river\n", encoding="utf-8")
    options = ("--mechanism", "noise", "--epsilon", "8", "--table", "minilm-s", "-o", setting)
    for verb in (("risk",), ("attack", "--attacks", "neighbour"), ("measure",)):
        assert main([verb[0], str(tmp_path / "a.txt"), *verb[1:], *options]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        lines = [line for line in err.splitlines() if line.startswith("textveil: error: ")]
        assert len(lines) == 1
        assert "attacks and measures need every word drawn by the mechanism" in " ".join(
            err.split()
        )
        assert CANARY not in err
