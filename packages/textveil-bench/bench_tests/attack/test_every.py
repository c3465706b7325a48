"""Every registered attack wins where a release changes nothing, and loses where it is a mask; under every profile, too.

An attack that cannot lose tells nothing, and one that cannot win gives false comfort: chance is then printed where the
original was ruled out. An attack without an entry in `ASKED` fails here.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.detectors import Finds
from tests.fixtures import NOUNS, Stub, gaussian_rows

from textveil.config import GroupOptions, registry, resolve
from textveil.config.option_sources import describe_profiles
from textveil.errors import ConfigError
from textveil.evaluate.attack import Case, Outcome
from textveil.pipeline import Privatizer
from textveil.randomness import SeededRandomness
from textveil.table import EmbeddingTable, load_table
from textveil.text import is_public
from textveil_bench.attack import Findings, attack, load


@dataclass(frozen=True, kw_only=True, eq=False)
class Open(Stub):
    """Releases every word as it is, and its law says so."""

    release: Callable[..., Any] = lambda table, block: block.secret.copy()

    def claim(self, table: EmbeddingTable) -> Any:
        return replace(super().claim(table), alone=True)

    def log_probs(self, table: Any, block: Any, parameter: Any, released: Any = None) -> Any:
        law = np.full((len(block.secret), len(table)), -np.inf)
        law[np.arange(len(law)), block.secret] = 0.0
        return law

    def log_likelihoods(self, table: Any, rows: Any, parameter: float) -> Any:
        law = np.full((len(rows), len(table)), -np.inf, np.float32)
        law[np.arange(len(law)), rows] = 0.0
        return law


OPEN = Open()
TEXTS = [f"the {NOUNS[7 * i % 60]} and the {NOUNS[(11 * i + 3) % 60]}" for i in range(60)]
"""They all have one mask, and each noun stands in two of them."""
OTHERS = tuple(
    text
    for i in range(120)
    if (text := f"the {NOUNS[13 * i % 60]} and the {NOUNS[i // 2 % 60]}") not in TEXTS
)
REPEATED = [", ".join([noun] * 6) for noun in NOUNS[:20]]
"""A language model that is shown five times a word expects it a sixth time."""
FEW = [f"the {NOUNS[i % 6]} and the {NOUNS[6 + i % 54]}" for i in range(60)]
LABELS = tuple("blue" if i % 6 < 3 else "red" for i in range(60))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How an attack is asked, and what is looked at.

    Attributes:
        metric: the outcome of single words or texts, the first one of that name.
        options: of the attack.
        texts: what is released.
        stencil: whether the mechanism mixes neighbours: then one without noise, and one with nothing but noise.
        estimate_at_most: what is allowed beyond the baseline, where the attack loses.
    """

    metric: str
    options: dict[str, Any]
    texts: list[str]
    stencil: bool = False
    estimate_at_most: float = 0.0


ASKED = {
    "neighbour": Asked(metric="Pr@1", options={}, texts=TEXTS),
    "masked": Asked(metric="top-1", options={}, texts=REPEATED),
    "bayes": Asked(metric="top-1", options={"priors": ("unigram",)}, texts=TEXTS),
    "learned": Asked(
        metric="top-1", options={"public": OTHERS, "candidates": 60, "simulated": 100}, texts=TEXTS
    ),
    "network": Asked(
        metric="top-1",
        options={
            "public": OTHERS,
            "candidates": 60,
            "simulated": 100,
            "width": 8,
            "layers": 1,
            "epochs": 2,
        },
        texts=TEXTS,
        estimate_at_most=0.05,
    ),
    "window": Asked(metric="top-1", options={}, texts=TEXTS, stencil=True, estimate_at_most=0.15),
    "semantic": Asked(metric="cosine >= 0.6", options={}, texts=TEXTS),
    "membership": Asked(metric="AUC", options={}, texts=TEXTS),
    "linkage": Asked(metric="top-1", options={}, texts=TEXTS),
    "attribute": Asked(metric="accuracy", options={"labels": LABELS}, texts=FEW),
    "llm": Asked(metric="top-1", options={"model": "echo"}, texts=TEXTS),
}


def table_of(texts: list[str]) -> EmbeddingTable:
    words = [
        *dict.fromkeys(
            word.lower()
            for text in texts
            for word in re.findall(r"\w+", text)
            if not is_public(word)
        )
    ]
    return EmbeddingTable.build(
        name="of texts", words=words, vectors=gaussian_rows(len(words), 24, 7)
    )


def outcome(name: str, asked: Asked, privatizer: Privatizer, url: str) -> Outcome | str:
    """What the attack finds, or why it has nothing to say."""
    attack = load(name, {**asked.options, **({"url": url} if name == "llm" else {})})
    case = Case.create(privatizer, asked.texts)
    if reason := attack.refusal(case.view):
        return reason
    found = attack.run(case, rng=SeededRandomness(3))
    return [each for each in found if each.metric == asked.metric][-1 if name == "linkage" else 0]


@pytest.mark.parametrize("name", registry.list_names("attack"))
def test_it_wins_where_nothing_is_changed_and_loses_against_a_mask(
    name, openai_server, monkeypatch
):
    monkeypatch.delenv("TEXTVEIL_LLM_KEY", raising=False)
    assert name in ASKED, (
        "say in ASKED how the attack wins against a release that changes nothing, and loses to a mask"
    )
    asked = ASKED[name]
    table = table_of(asked.texts)
    stencil: dict[str, Any] = {"mechanism": "d-chi-stencil", "L": 3, "sigma": 0.5, "table": table}
    opened = (
        Privatizer(**stencil, eta=1e5)
        if asked.stencil
        else Privatizer(OPEN, epsilon=1.0, table=table)
    )
    masked = (
        Privatizer(**stencil, eta=1e-3) if asked.stencil else Privatizer("placeholder", table=table)
    )
    won, lost = (outcome(name, asked, each, openai_server) for each in (opened, masked))
    assert isinstance(won, Outcome), won
    assert won.values.mean() >= 0.9
    if isinstance(lost, Outcome):
        assert lost.values.mean() <= (lost.baseline or 0.0) + asked.estimate_at_most + 1e-9


# ---- profiles --------------------------------------------------------------------------------------------------------

PAIRS = [
    "Maria Silva lives in Lisbon and pays her rent on Monday.",
    "Maria Silva lives in Lisbon and pays her bill on Monday.",
    "The lawyer told Peter Novak that his brother had sold the bicycle.",
    "The lawyer told Peter Novak that his brother had sold the guitar.",
    "A terrible movie, but Anna liked the music.",
    "A terrible movie, but Anna liked the garden.",
]
"""Two and two differ in one word, which only what is drawn can tell."""


def shown(profile: str, mechanism: Stub | str) -> Privatizer:
    """The profile with another mechanism, and names that are drawn as they are."""
    config = resolve(profile=profile)
    return Privatizer(
        mechanism,
        epsilon=1.0 if config.groups == GroupOptions() else None,
        table=load_table(**asdict(config.table)),
        words=config.words,
        protect=config.protect,
        groups=config.groups,
        names=replace(config.names, epsilon=1e4, k=1),
        figures=config.figures,
        seed=1,
    )


def tops(findings: Findings) -> dict[tuple[str, str], float]:
    """The headline rates of words, names and texts, by attack and unit: the last of each, which knows most."""
    return {
        (row.source, row.unit): row.value
        for row in findings.rows
        if row.slice == "all" and row.headline and row.metric in ("Pr@1", "top-1")
    }


@pytest.mark.parametrize("profile", describe_profiles())
def test_under_every_profile_originals_are_found_where_nothing_is_changed(profile):
    privatizer = shown(profile, OPEN)
    case = Case.create(privatizer, PAIRS)
    attacks = [load("neighbour"), load("bayes", {"priors": ("uniform",)}), load("linkage")]
    found = tops(attack(case, attacks, rng=SeededRandomness(2)))
    assert found["linkage", "text"] == 1.0
    assert (("bayes", "name") in found) == bool(privatizer.names)
    if privatizer.table.root.book is None:  # of codes no attacker knows which word it was
        assert set(found.values()) == {1.0}


@pytest.mark.parametrize("profile", ["document", "paper-noise"])
def test_under_a_profile_a_mask_leaves_two_texts_of_one_mask(profile):
    case = Case.create(shown(profile, "placeholder"), PAIRS)
    found = tops(
        attack(
            case,
            [load("bayes", {"priors": ("uniform",)}), load("linkage")],
            rng=SeededRandomness(2),
        )
    )
    assert found["linkage", "text"] == 0.5
    assert found["bayes", "word"] == 0.0


def test_a_public_word_that_is_part_of_a_name_is_named_by_who_learned():
    """Where words of the public list pass but within names, they are rare among private words, and not ruled out."""
    words = ["will", *NOUNS[:20]]
    table = EmbeddingTable.build(
        name="names", words=words, vectors=gaussian_rows(len(words), 24, 7)
    )
    protect = {"detectors": (Finds(PERSON="Will"),), "level": "names", "placeholders": ()}
    privatizer = Privatizer(OPEN, epsilon=1.0, table=table, protect=protect)
    texts = [
        f"the {first} and Will and the {second}" for first in NOUNS[:4] for second in NOUNS[4:20]
    ]
    case = Case.create(privatizer, texts[::4])
    public = tuple(text for text in texts if text not in texts[::4])
    found = next(
        iter(
            load("learned", {"public": public, "simulated": 100}).run(case, rng=SeededRandomness(1))
        )
    )
    will = [i for i, word in enumerate(case.secret_words) if word == "Will"]
    assert len(will) == 16
    assert found.values[will].mean() == 1.0


def test_releases_that_do_not_fit_their_originals_are_an_error(small_table):
    """Chance would be no answer: another program made them, or a session that remembers what others drew."""
    made = Privatizer(OPEN, epsilon=1.0, table=small_table)
    case = Case.create(made, TEXTS)
    other = replace(case.view, program=Privatizer(OPEN, epsilon=0.0, table=small_table))
    with pytest.raises(ConfigError, match="their own originals other masks"):
        attack(replace(case, view=other), [load("linkage")])
    drawn = replace(case.view, output_rows=case.view.output_rows[::-1].copy())
    for name in ("bayes", "membership", "semantic"):
        with pytest.raises(ConfigError, match="some of the released words are impossible"):
            attack(replace(case, view=replace(drawn)), [load(name)])
