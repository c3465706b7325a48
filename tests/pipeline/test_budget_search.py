"""Budgets that are found for a risk: the share that is guessed, by enumeration; the search; no text is seen."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.fixtures import NOUNS, gaussian_rows

from textveil import cli
from textveil.config.layers import convert_keywords, resolve
from textveil.errors import BudgetError, ConfigError, InputError
from textveil.evaluate.attack.channel import find_exact_map
from textveil.guarantee import compose, format_number, summarize
from textveil.mechanism import Block, Layout, Select, build_success_rate, compute_information
from textveil.mechanism.papers import rankcape, santext
from textveil.pipeline import Privatizer, budget_search, resolve_budget
from textveil.table import EmbeddingTable, compute_shares, find_book, list_shipped, load_table

TABLE = EmbeddingTable.build(name="sixty", words=NOUNS, vectors=gaussian_rows(60, 8, 7))
FIVE = EmbeddingTable.build(name="five", words=NOUNS[:5], vectors=gaussian_rows(5, 8, 3))
SKEWED = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
MECHANISMS = (rankcape(k=2), rankcape(sizes=(1, 2), heights=(1.0, 0.3, 0.0)), santext(c=3.0))


def config(mechanism="rankcape", **options):
    if mechanism == "rankcape":
        options = {"k": 3, **options}
    return resolve(overrides=convert_keywords(**{"mechanism": mechanism, "risk": 0.2, **options}))


def success(chosen, table=TABLE, epsilon=None):
    """How often the best guess is right under the found epsilon, from the attacks' own sum."""
    privatizer = Privatizer.from_config(
        replace(chosen, epsilon=epsilon or chosen.epsilon), table=table
    )
    parameter = privatizer.mechanism.calibrate(
        table, Layout.build(1), np.array([epsilon or chosen.epsilon])
    )[0]
    return find_exact_map(
        privatizer.mechanism,
        table,
        float(parameter),
        np.log(budget_search.compute_prior(chosen, table)),
    )[1]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_share_is_that_of_the_best_of_all_ways_to_guess(mechanism: Select):
    rows = np.arange(5)
    block = Block(layout=Layout.build(1, 1, 1, 1, 1), rows=rows)
    logs = mechanism.log_probs(FIVE, block, np.full(5, 2.5))
    assert logs is not None
    law = np.exp(logs)
    every = (
        sum(SKEWED[x] * law[x, y] for y, x in enumerate(guess))
        for guess in itertools.product(range(5), repeat=5)
    )
    assert build_success_rate(mechanism, FIVE, SKEWED)(2.5) == pytest.approx(max(every), rel=1e-9)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_share_rises_with_the_parameter(mechanism: Select):
    guessed = build_success_rate(mechanism, TABLE, compute_shares(TABLE))
    values = [guessed(parameter) for parameter in np.linspace(0.01, 12, 25)]
    assert values == sorted(values)
    assert values[0] < 0.5 * values[-1]


@pytest.mark.parametrize("mechanism", ["rankcape", "exponential", "krr"])
def test_the_found_epsilon_keeps_to_the_risk_and_hardly_more_would(mechanism):
    chosen = resolve_budget(config(mechanism, risk=0.3), table=TABLE)
    assert chosen.epsilon is not None
    reached = success(chosen)
    assert reached <= 0.3 * (1 + 1e-6)
    assert (
        success(chosen, epsilon=chosen.epsilon * 64) < 0.3
        or success(chosen, epsilon=chosen.epsilon * 1.011) > 0.3
    )


def test_the_search_ends_on_the_safe_side():
    edge = 5.0
    tried = []

    def step(epsilon):
        tried.append(epsilon)
        return 0.1 if epsilon < edge else 0.9

    low = budget_search.search_epsilon(step, 0.2)
    assert low in tried
    assert edge / (1 + budget_search.EPSILON_TOLERANCE) <= low < edge


def test_a_share_that_never_gets_there_ends_where_more_gains_nothing():
    epsilon = budget_search.search_epsilon(lambda e: 0.1 * (1 - math.exp(-e)) + 0.01, 0.5)
    assert 1 < epsilon < 64


def test_no_text_is_looked_at_and_a_search_that_looks_is_caught(monkeypatch):
    texts = ("The apple and the castle.", "A river, a river, a pillow.")

    def spent():
        return {
            Privatizer.from_config(config(), table=TABLE).privatize(text).guarantee.epsilon
            for text in texts
        }

    assert len(spent()) == 1
    honest = Privatizer.privatize

    def looking(self, text):
        """A twin that takes the words of the private text as the prior."""
        rows, _ = self.table.lookup(text.lower().split())
        prior = np.bincount(rows, minlength=len(self.table)) + 0.5
        guessed = build_success_rate(self.mechanism, self.table, prior / prior.sum())
        return honest(
            Privatizer(
                "rankcape",
                k=3,
                epsilon=budget_search.search_epsilon(guessed, 0.2),
                table=self.table,
            ),
            text,
        )

    monkeypatch.setattr(Privatizer, "privatize", looking)
    assert len(spent()) == 2


def test_groups_are_held_to_the_risk_by_their_largest_budget():
    protect = {"always": ["apple"]}
    grouped = config(risk=0.2, protect=protect, groups={"budgets": "heuristic"})
    assert (
        resolve_budget(grouped, table=TABLE).epsilon
        == resolve_budget(config(risk=0.2), table=TABLE).epsilon
    )


# ---- codes that follow from the budget -------------------------------------------------------------------------------


def codes(**options):
    overrides = {"mechanism.name": "codebook", "table.codes": "auto", **options}
    return resolve_budget(resolve(overrides=overrides)).table.codes


@pytest.mark.parametrize(
    ("epsilon", "fits"), [(0, "8"), (3, "8"), (4, "24"), (6, "50"), (8, "400"), (math.inf, "400")]
)
def test_the_book_that_tells_most_at_the_budget(epsilon, fits):
    assert codes(epsilon=epsilon) == fits
    told = {
        size: compute_information(find_book(str(size)).masses, epsilon) for size in list_shipped()
    }
    assert told[int(fits)] == max(told.values())


def test_each_group_has_the_book_of_its_budget():
    grouped = {"protect.always": ["apple"]}
    assert codes(**grouped, **{"groups.budgets": [2, 3, 8, 4]}) == "8, 8, 400, 24"
    assert codes(**grouped, **{"groups.budgets": [2, 1, 3, 2.5]}) == "8"


def test_codes_that_follow_from_the_budget_need_one():
    with pytest.raises(ConfigError, match="needs an epsilon"):
        codes(risk=0.1)
    with pytest.raises(ConfigError, match="follows from the budgets"):
        load_table("minilm", codes="auto")


def test_public_texts_are_the_prior(tmp_path):
    public = tmp_path / "news.txt"
    public.write_text("apple apple apple\nriver the\n")
    chosen = config(prior=str(public), risk=0.5)
    prior = budget_search.compute_prior(chosen, TABLE)
    rows, _ = TABLE.lookup(["apple", "river"])
    expected = np.full(60, 0.5)
    expected[rows] += (3, 1)
    np.testing.assert_allclose(prior, expected / expected.sum())
    statement = Privatizer.from_config(chosen, table=TABLE).privatize("An apple").guarantee
    assert "words of the public texts" in statement.summary()


def test_the_statement_says_how_and_a_sum_of_releases_says_nothing():
    privatizer = Privatizer.from_config(config(), table=TABLE)
    first, second = (privatizer.privatize("The apple and the castle").guarantee for _ in range(2))
    assert "guesses at most 20% of drawn words" in first.summary()
    assert "found without looking at the text" in first.explain()
    assert first.to_json()["budget_found"] == first.claim.found
    assert summarize([first, second]).claim.found == first.claim.found
    assert compose([first, second]).to_json()["budget_found"] is None
    assert first.unpack(first.pack()).claim.found == first.claim.found


@pytest.mark.parametrize(
    "options",
    [
        {"mechanism": "noise"},
        {"mechanism": "cape", "context": "public"},
        {"words": {"oov": "keep"}},
        {"protect": {"always": ["apple"]}, "groups": {"budgets": "private-only"}},
        {"protect": {"always": ["apple"]}, "groups": {"budgets": "1,1,1,1"}},
    ],
)
def test_what_has_no_such_share_is_refused(options):
    with pytest.raises(ConfigError, match=r"law|risk|other words"):
        resolve_budget(config(**options), table=TABLE)


@pytest.mark.parametrize("risk", [0, 1, -0.1, float("nan"), "much"])
def test_a_risk_is_a_share(risk):
    with pytest.raises(ConfigError, match="risk"):
        config(risk=risk)


def test_the_least_that_can_be_reached_is_said():
    most = compute_shares(TABLE).max()
    with pytest.raises(BudgetError, match=r"risk must be above 0\.") as caught:
        resolve_budget(config(risk=most / 2), table=TABLE)
    assert float(str(caught.value).split()[4].rstrip(",")) >= most


@pytest.mark.parametrize("budget", [{"epsilon": 4.0}, {"groups": {"base": 2.0}}])
def test_one_thing_says_the_budget(budget):
    with pytest.raises(BudgetError, match="not both"):
        config(**budget)


def test_a_prior_needs_a_risk_and_a_file(tmp_path):
    with pytest.raises(ConfigError, match="set risk, too"):
        config(risk=None, epsilon=3.0, prior="news.txt")
    with pytest.raises(InputError, match="there is no file"):
        resolve_budget(config(prior=str(tmp_path / "none.txt")), table=TABLE)
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match="no word"):
        resolve_budget(config(prior=str(tmp_path / "empty.txt")), table=TABLE)


def test_a_budget_above_replaces_the_risk_and_its_prior(tmp_path):
    file = tmp_path / "options.yaml"
    file.write_text("mechanism:\n  name: rankcape\nrisk: 0.1\nprior: news.txt\n")
    chosen = resolve(file=file, overrides={"epsilon": 3})
    assert (chosen.epsilon, chosen.risk, chosen.prior) == (3, None, None)


def test_what_was_found_is_not_found_again():
    once = resolve_budget(config(), table=TABLE)
    assert resolve_budget(once, table=None) is once
    assert replace(once, epsilon=None) == config()


def test_the_command_refuses_the_private_texts_as_public_ones(capsys, tmp_path):
    file = tmp_path / "letters.txt"
    file.write_text("An apple\n")
    for arguments in (
        ["privatize", str(file)],
        ["corpus", "run", str(file), "--output", str(tmp_path / "out")],
    ):
        assert cli.main([*arguments, "--risk", "0.1", "--public", str(file)]) == 2
        assert "must not be the file" in capsys.readouterr().err


def test_a_statement_rounds_the_found_budget_one_way():
    chosen = replace(config(), epsilon=7.7861)
    told = budget_search.describe_search(chosen)
    assert told.startswith(
        f"epsilon {format_number(7.7861)} was chosen"
    )  # as where words are drawn
    assert format_number(7.7861) == "7.787"
