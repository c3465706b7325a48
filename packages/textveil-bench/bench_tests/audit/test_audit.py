"""What the audit finds is true: numbers against laws that are known, no accusation of honest mechanisms."""

import json
import math
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binom
from tests.broken import EPSILON, Groups, Ranked, table
from tests.fixtures import fit
from tests.lanes import first_of_each

from textveil.config import registry
from textveil.errors import BudgetError, ConfigError
from textveil.guarantee import Claim, Restricted
from textveil.mechanism import Block, Layout
from textveil.pipeline.privatizer import Privatizer
from textveil.randomness.samplers import choose_weighted
from textveil.randomness.streams import Randomness
from textveil.table.embedding import EmbeddingTable
from textveil_bench.audit import sampled
from textveil_bench.audit.finding import AuditFinding
from textveil_bench.audit.fit import compute_binomial_p
from textveil_bench.audit.fresh_draws import _find_agreement
from textveil_bench.audit.run import CHECKS, audit
from textveil_bench.audit.sampled import Trial, _estimate_loss

HERE = tuple(check for check in CHECKS if check not in ("streams", "seed"))
"""The checks that need no other process."""


@dataclass(frozen=True, kw_only=True)
class Response:
    """k-ary randomised response: the word itself with weight e^epsilon, any other with weight 1.

    `overdone` multiplies the epsilon that is used, not the one that is claimed.
    """

    overdone: float = 1.0
    written: bool = True

    def claim(self, table: EmbeddingTable) -> Claim:
        return Claim(mechanism="response", kind="ldp", table=table.name, parameter="epsilon")

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon * self.overdone

    def parameters(self, table: EmbeddingTable, layout: Layout) -> None:
        return None

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return parameter / self.overdone

    def weights(self, table: EmbeddingTable, rows: Any, parameter: Any) -> Any:
        weights = np.full((len(rows), len(table)), 2**20, np.int64)
        weights[np.arange(len(rows)), rows] = np.floor(2**20 * np.exp(parameter)).astype(np.int64)
        return weights

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        released = np.empty(len(parameter), np.int64)
        for chunk, draws in rng.open(block.layout.sizes).split_rows(4096):
            released[chunk] = choose_weighted(
                draws, self.weights(table, block.secret[chunk], parameter[chunk])
            )
        return released

    def log_probs(
        self, table: EmbeddingTable, block: Block, parameter: Any, released: Any = None
    ) -> Any:
        if not self.written:
            return None
        weights = self.weights(table, block.secret, parameter)
        return np.log(weights / weights.sum(axis=1, keepdims=True))


def findings(mechanism: Any, *checks: str, epsilon: float = 3.0) -> dict[str, AuditFinding]:
    build = partial(Privatizer, mechanism, table=table(), epsilon=epsilon)
    return {each.check: each for each in audit(build, small=True, only=checks)}


def test_exact_numbers_of_randomised_response() -> None:
    found = findings(Response(), "log-ratio", "certificate")
    assert found["log-ratio"].found == pytest.approx(3.0, abs=1e-5)
    # at half of ln 60; every output's best input is itself: ln of 60 w / (w + 59) with w = sqrt 60
    assert found["certificate"].claimed == pytest.approx(math.log(60) / 2)
    assert found["certificate"].found == pytest.approx(
        math.log(60 * 60**0.5 / (60**0.5 + 59)), abs=1e-5
    )
    assert {each.verdict for each in found.values()} == {"holds"}
    assert {each.alarm for each in found.values()} == {0.0}


def test_certificate_and_log_ratio_refute_randomised_response_with_three_times_its_epsilon() -> (
    None
):
    found = findings(Response(overdone=3.0), "log-ratio", "certificate", epsilon=2.0)
    assert found["log-ratio"].verdict == "violated"
    assert found["log-ratio"].found == pytest.approx(6.0, abs=1e-4)
    assert found["certificate"].verdict == "violated"
    assert 2.0 < (found["certificate"].found or 0) < math.log(60)


def test_the_joint_law_charges_a_word_for_what_others_tell_of_it() -> None:
    """Beside a word with half the budget: 2 is charged, and the loss is 4 at the left word and 2 at its own."""
    found = findings(Ranked(sees="right"), "log-ratio", "joint", epsilon=4.0)
    assert found["log-ratio"].verdict == "holds"  # one word alone has no neighbour
    assert found["joint"].verdict == "violated"
    assert found["joint"].claimed == 2.0
    assert found["joint"].found == pytest.approx(6.0)
    honest = findings(Ranked(), "joint", epsilon=4.0)["joint"]
    assert honest.verdict == "holds"
    assert honest.found == pytest.approx(4.0)


def test_the_joint_law_of_words_that_see_nothing_of_one_another_loses_what_one_word_loses() -> None:
    found = findings(Response(), "joint")["joint"]
    assert found.verdict == "holds"
    assert found.found == pytest.approx(3.0, abs=1e-5)


def test_conditional_laws_that_make_no_joint_law_are_refuted() -> None:
    class Circular(Ranked):
        """The first word looks at what is drawn for the second one."""

        def log_probs(
            self, table: EmbeddingTable, block: Block, parameter: Any, released: Any = None
        ) -> Any:
            before = (
                np.zeros(len(parameter), np.int64) if released is None else np.roll(released, -2)
            )
            return super().log_probs(table, block, parameter, before)

        def weights(
            self, sees: str, table: EmbeddingTable, block: Block, parameter: Any, released: Any
        ) -> Any:
            both = replace(block, rows=block.rows + np.roll(released, 1) + np.roll(released, -1))
            return super().weights(
                sees, table, replace(both, rows=both.rows % len(table)), parameter, released * 0
            )

    found = findings(Circular(), "joint")["joint"]
    assert found.verdict == "violated"
    assert "sum to 1" in found.why


@pytest.mark.parametrize("width", [1, 0])
def test_a_restricted_promise_to_nobody_is_unchecked(width: int) -> None:
    class Nobody(Groups):
        def mark_restricted_pairs(self, table: EmbeddingTable, rows: Any) -> Any:
            return np.eye(len(rows), dtype=bool) * bool(width)

    assert findings(Nobody(), "restricted")["restricted"].verdict == "unchecked"


def test_a_restricted_metric_promise_is_held_to_its_distances_and_its_diameter() -> None:
    class Metric(Groups):
        """The loss inside a group is epsilon whatever the distance, so a chord below 1 breaks the promise."""

        def claim(self, table: EmbeddingTable) -> Claim:
            promise = Restricted(
                domain="near words", kind="metric", metric="chord", diameter=self.diameter
            )
            return replace(super().claim(table), restricted=promise)

        def mark_restricted_pairs(self, table: EmbeddingTable, rows: Any) -> Any:
            apart = cdist(table.root.vectors[rows], table.root.vectors[rows])
            return super().mark_restricted_pairs(table, rows) & (apart >= self.near)

        near, diameter = 1.0, 2.0

    near = findings(type("Near", (Metric,), {"near": 0.0})(), "restricted")["restricted"]
    far = findings(Metric(), "restricted")["restricted"]
    small = findings(type("Small", (Metric,), {"diameter": 1.1})(), "restricted")["restricted"]
    assert (near.verdict, far.verdict, small.verdict) == ("violated", "holds", "violated")
    assert "diameter" in small.why
    assert (far.found or 0) <= 3.0 < (near.found or 0)


def test_a_refuted_paper_is_no_failure_and_other_options_are_not_the_papers() -> None:
    found = findings(Groups(), "paper")["paper"]
    assert found.verdict == "refuted"
    assert (found.claimed, found.found) == (3.0, math.inf)
    assert not found.has_failed
    assert not found.is_violated
    assert json.loads(json.dumps(found.to_json()))["verdict"] == "refuted"
    assert findings(Ranked(from_paper=False), "paper")["paper"].verdict == "not applicable"
    assert findings(Response(), "paper", "restricted")["paper"].verdict == "not applicable"
    beside = findings(Ranked(sees="right"), "paper")["paper"]
    assert beside.verdict == "refuted"
    assert "texts of 2 words" in beside.why


def test_a_floor_takes_the_place_of_smaller_budgets_and_costs_no_power() -> None:
    checks = ("log-ratio", "joint", "certificate", "sampled", "support", "sampler", "budget")
    honest = findings(Ranked(floor=3.0), *checks, epsilon=4.0)
    assert {each.verdict for each in honest.values()} == {"holds"}
    assert honest["certificate"].claimed == pytest.approx(3.0, rel=1e-3)
    assert (honest["certificate"].claimed or 0) >= 3.0


def test_a_budget_below_the_floor_is_refused_and_no_violation() -> None:
    with pytest.raises(BudgetError, match="at least 5"):
        findings(Ranked(floor=5.0), "log-ratio")
    build = partial(Privatizer, Ranked(floor=5.0), table=table(), epsilon=3.0)
    honest = partial(Privatizer, Ranked(), table=table(), epsilon=3.0)
    first, second = audit(build, honest, small=True, only=("statement",))
    assert (first.check, first.verdict) == ("build", "unchecked")
    assert second.verdict == "holds"


def test_a_law_that_a_larger_budget_leaves_alone_breaks_no_promise() -> None:
    build = partial(Privatizer, "rankcape", table=table(), k=3)
    small, large = (
        next(iter(audit(partial(build, epsilon=epsilon), small=True, only=("budget",))))
        for epsilon in (4.0, 40.0)
    )
    assert small.verdict == "holds"
    assert (large.verdict, large.why) == (
        "not applicable",
        "at this budget more changes nothing; take a smaller one",
    )


def test_what_no_budget_buys_is_unchecked() -> None:
    class Growing(Ranked):
        """No budget is enough for two words."""

        def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
            if layout.sizes.max(initial=0) > 1:
                raise BudgetError("a word of the table")
            return epsilon

    found = findings(Growing(), "joint", "totality")
    assert found["joint"].verdict == "unchecked"
    assert "word of the table" not in found["joint"].why
    assert found["totality"].verdict == "holds"
    assert "refused" in found["totality"].why


def test_what_is_no_law_is_refuted() -> None:
    class Unknown(Response):
        def log_probs(
            self, table: EmbeddingTable, block: Block, parameter: Any, released: Any = None
        ) -> Any:
            return np.full((len(parameter), len(table)), np.nan)

    class Heavy(Response):
        def log_probs(
            self, table: EmbeddingTable, block: Block, parameter: Any, released: Any = None
        ) -> Any:
            return super().log_probs(table, block, parameter) + 0.01

    for twin in (Unknown(), Heavy()):
        found = findings(twin, "log-ratio", "certificate", "sampler", "support")
        assert {each.verdict for each in found.values()} == {"violated"}
        assert "sum to 1" in found["log-ratio"].why


def test_samples_alone_refute_what_the_law_would() -> None:
    honest, twin = (
        findings(Response(written=False, overdone=o), "sampled")["sampled"] for o in (1.0, 2.0)
    )
    assert honest.verdict == "holds"
    assert 0.5 < (honest.found or 0) / (honest.claimed or 1) <= 1
    assert twin.verdict == "violated"
    assert 1 < (twin.found or 0) / (twin.claimed or 1) <= 2


def test_two_equal_laws_are_not_told_apart_by_chance() -> None:
    """The largest of many estimated ratios would be far above 0; the one that was chosen on the other half is not."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        trial = Trial(
            name="equal",
            table=table(),
            claim=Response().claim(table()),
            epsilon=0.0,
            inputs=np.array([0, 1]),
            outputs=rng.integers(0, 60, (2, 400, 1)),
        )
        assert _estimate_loss(trial, 0, 1, 1e-6) <= 0


def test_a_lower_bound_stays_below_a_known_ratio_and_comes_near_it() -> None:
    rng = np.random.default_rng(2)
    outputs = np.stack([rng.random((20_000, 1)) < p for p in (0.6, 0.2)]).astype(np.int64)
    trial = Trial(
        name="coin",
        table=table(),
        claim=Response().claim(table()),
        epsilon=1.0,
        inputs=np.array([0, 1]),
        outputs=outputs,
    )
    bound = _estimate_loss(trial, 0, 1, 1e-6)
    assert math.log(3) - 0.3 < bound <= math.log(3)


def test_counts_keep_a_law_and_reject_another() -> None:
    law = np.array([0.5, 0.3, 0.2, 0.0])
    counts = np.bincount(np.random.default_rng(3).choice(4, 20_000, p=law), minlength=4)
    assert compute_binomial_p(counts, law) > 1e-6
    assert compute_binomial_p(counts, law[[0, 2, 1, 3]]) < 1e-6
    assert (
        compute_binomial_p(counts + np.array([0, 0, 0, 1]), law) == 0.0
    )  # what cannot be came out
    assert (
        compute_binomial_p(np.array([0, 20_000]), np.array([0.0, 1.0])) == 1.0
    )  # what must be did


def test_a_rare_word_that_comes_often_is_seen() -> None:
    assert (
        compute_binomial_p(np.array([18_000, 2_000, 0]), np.array([0.9999, 0.0001, 0.0])) < 1e-100
    )
    # all that can happen with two cells, weighted by its probability: the alarm is kept where an expectation is small
    for expectation in (0.1, 10.0, 100.0):
        share = expectation / 2_000
        outcomes = np.arange(2_001)
        accused = [
            compute_binomial_p(np.array([2_000 - k, k]), np.array([1 - share, share])) < 1e-3
            for k in outcomes
        ]
        assert binom.pmf(outcomes[accused], 2_000, share).sum() <= 1e-3


def test_runs_are_compared_beyond_chance() -> None:
    rng = np.random.default_rng(4)

    def run(who: str) -> tuple[str, tuple[str, ...]]:
        return who, tuple(map(str, rng.integers(0, 30, 200)))

    one, two, three = run("one"), run("two"), run("three")
    assert (_find_agreement([one, two, three, run("four")]) or ("missing",))[0] == ""
    half = ("half", one[1][:100] + three[1][100:])
    assert (_find_agreement([one, two, half, run("four")]) or ("",))[0] != ""
    long = tuple(map(str, rng.integers(0, 30, 260)))
    for shift in (1, 3, 60):  # a stream that goes on inside another
        shifted = [("early", long[:200]), ("late", long[shift : shift + 200])]
        for order in (shifted, shifted[::-1]):
            assert f"{shift} places apart" in (_find_agreement([*order, one, two]) or ("",))[0]
    constant = ("still", ("word",) * 200)
    assert _find_agreement([constant, constant]) is None  # equal outputs prove nothing


NOMINAL = ("santext+", "custext", "custext+", "rantext")
UNWRITTEN = ("mahalanobis", "vickrey")
"""Names whose noise has no law that the audit knows."""
APART = (*NOMINAL, "stencil", "mask-and-fill", "placeholder")


@pytest.mark.parametrize(
    "name",
    first_of_each(
        sorted(registry.list_names("mechanism")), lambda name: name if name in APART else "claims"
    ),
)
def test_no_registered_mechanism_is_accused(name: str) -> None:
    epsilon = None if not registry.find_budget_parameter(name)[1] else EPSILON
    build = partial(Privatizer, name, table=fit(name, table()), epsilon=epsilon)
    nominal = name in NOMINAL
    with pytest.warns(match="bounds nothing") if nominal else nullcontext():
        found = {each.check: each for each in audit(build, small=True, only=HERE)}
    assert set(found) == set(HERE)
    assert not [each for each in found.values() if each.is_violated]
    assert found["totality"].verdict == found["error path"].verdict == "holds"
    if name == "stencil":
        assert found["support"].verdict == found["log-ratio"].verdict == "no claim"
        assert found["support"].found == math.inf
    elif nominal:
        assert found["log-ratio"].verdict == found["sampled"].verdict == "no claim"
        assert found["sampler"].verdict == "holds"
        assert found["paper"].verdict == ("not applicable" if name == "santext+" else "refuted")
        assert found["restricted"].verdict == ("not applicable" if name == "rantext" else "holds")
    elif name == "mask-and-fill":
        assert (found["log-ratio"].verdict, found["log-ratio"].claimed) == ("holds", 0.0)
        assert found["overcharge"].verdict == "not applicable"
    elif name != "placeholder":
        assert found["sampled"].verdict == "holds"
        assert found["sampler"].verdict == ("not applicable" if name in UNWRITTEN else "holds")
        least = 0.0 if name == "dp-mlm" else 0.2  # its model tells words of this table hardly apart
        assert least <= (found["sampled"].found or 0) / (found["sampled"].claimed or 1) <= 1


@pytest.mark.slow
def test_what_draws_and_spends_nothing_wastes_no_budget() -> None:
    build = partial(Privatizer, "mask-and-fill", table=table(), temperature=1.0)
    only = ("log-ratio", "sampler", "support", "budget", "overcharge")
    found = {each.check: each for each in audit(build, small=True, only=only)}
    assert found["log-ratio"].verdict == found["sampler"].verdict == "holds"
    assert found["budget"].verdict == found["overcharge"].verdict == "not applicable"


def test_a_finding_is_plain_data() -> None:
    (found,) = (
        each
        for each in audit(
            partial(Privatizer, "stencil", table=table()), small=True, only=("support",)
        )
    )
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["found"] == "infinite"
    assert plain["verdict"] == "no claim"
    assert plain["mechanism"] == "stencil"


def test_a_check_that_cannot_run_through_is_a_violation_without_the_message() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Raising(Response):
        def privatize(self, *_: Any, **__: Any) -> Any:
            raise ValueError("a word of the table")

    found = findings(Raising(), "budget", "sampled", "log-ratio")
    assert found["log-ratio"].verdict == "holds"  # it draws nothing
    assert found["sampled"].verdict == "violated"
    assert "raised ValueError" in found["sampled"].why
    assert "word of the table" not in found["sampled"].why


def test_our_own_errors_are_shown_by_their_message() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Refused(Response):
        def privatize(self, table: EmbeddingTable, *_: Any, **__: Any) -> Any:
            return table.neighbours(np.arange(1), len(table) + 1)

    (found,) = findings(Refused(), "sampled").values()
    assert found.verdict == "unchecked"
    assert "k must be from 1 to the table's" in found.why
    assert "raised" not in found.why


def test_a_check_of_another_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="no check is named 'spelling'"):
        list(audit(partial(Privatizer, "noise", table=table(), epsilon=1.0), only=("spelling",)))


def test_progress_is_told_and_findings_carry_their_time() -> None:
    told: list[tuple[str, int, int]] = []
    build = partial(Privatizer, "placeholder", table=table())
    (found,) = audit(build, small=True, only=("statement",), report=lambda *step: told.append(step))
    assert told == [("placeholder", 0, 1), ("placeholder", 1, 1)]
    assert found.seconds >= 0
    assert replace(found, seconds=0.0).to_json()["seconds"] == 0.0


@dataclass(frozen=True, kw_only=True)
class Still:
    """Says that it draws nothing, and that its loss is bounded. Releases the word itself, or always the same one."""

    same: bool

    def claim(self, table: EmbeddingTable) -> Claim:
        return Claim(
            mechanism="still", kind="ldp", table=table.name, parameter="epsilon", draws=False
        )

    def calibrate(self, table: EmbeddingTable, layout: Layout, epsilon: Any) -> Any:
        return epsilon

    def parameters(self, table: EmbeddingTable, layout: Layout) -> None:
        return None

    def spend(self, table: EmbeddingTable, layout: Layout, parameter: Any) -> Any:
        return parameter

    def privatize(
        self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
    ) -> Any:
        return block.secret * (not self.same)


@pytest.mark.parametrize("check", ["sampled", "sampler", "support", "budget", "streams", "seed"])
def test_no_mechanism_is_excused_by_saying_that_it_draws_nothing(check: str) -> None:
    assert findings(Still(same=True), check)[check].verdict == "not applicable"
    assert findings(Still(same=False), check)[check].verdict == "violated"


def test_a_mechanism_that_refuses_every_check_is_not_let_pass() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Refusing(Response):
        def privatize(self, *_: Any, **__: Any) -> Any:
            raise ConfigError("a word of the table")

        log_probs = privatize

    found = findings(Refusing(), *HERE)
    assert all(
        found[check].has_failed
        for check in ("log-ratio", "certificate", "sampled", "sampler", "totality")
    )
    assert not [each for each in found.values() if "word of the table" in each.why]


def test_a_claim_in_a_metric_that_nobody_can_compute_is_unchecked() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Curved(Response):
        def claim(self, table: EmbeddingTable) -> Claim:
            return Claim(
                mechanism="curved",
                kind="metric",
                metric="geodesic",
                diameter=math.pi,
                table=table.name,
                parameter="epsilon",
            )

    found = findings(Curved(overdone=5.0), "log-ratio", "sampled")
    assert {each.verdict for each in found.values()} == {"unchecked"}
    assert all(each.has_failed and "chord" in each.why for each in found.values())


@pytest.mark.parametrize("epsilon", [0.0, math.inf])
def test_a_budget_that_no_audit_can_try_is_refused(epsilon: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and below infinity"):
        findings(Response(), "statement", epsilon=epsilon)


def test_a_mechanism_that_cannot_be_built_is_one_finding_and_not_the_end() -> None:
    def broken(seed: int | None = None) -> Privatizer:
        raise RuntimeError("a word of the table")

    honest = partial(Privatizer, Response(), table=table(), epsilon=3.0)
    found = list(audit(broken, honest, small=True, only=("statement",)))
    assert [(each.check, each.verdict) for each in found] == [
        ("build", "unchecked"),
        ("statement", "holds"),
    ]
    assert "word of the table" not in found[0].why
    with pytest.raises(RuntimeError):
        list(audit(broken, only=("statement",)))


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_a_slow_mechanism_gets_fewer_texts_and_a_true_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []

    class Slow(Ranked):
        def privatize(
            self, table: EmbeddingTable, block: Block, parameter: Any, *, rng: Randomness
        ) -> Any:
            drawn.append(len(block.layout.sizes))
            return super().privatize(table, block, parameter, rng=rng)

    monkeypatch.setattr(sampled, "SECONDS_SMALL", 1e-6)
    found = findings(Slow(), "sampled", epsilon=3.0)["sampled"]
    assert sorted(set(drawn[:20])) == [sampled.TIMED_TEXTS, sampled.MIN_TRIALS]
    assert found.verdict == "holds"
    assert 1.0 < (found.found or 0) <= 3.0
