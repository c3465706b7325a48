"""The verb `audit`: what it prints, its exit codes, and errors of one line."""

import json
import math
from dataclasses import replace

import pytest

from textveil import cli
from textveil.config import registry
from textveil.guarantee import Claim
from textveil.mechanism import Select
from textveil.mechanism.papers import exponential
from textveil.table.embedding import EmbeddingTable


@pytest.fixture
def run(capsys):
    """Run the verb: exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(["audit", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def twin(monkeypatch) -> str:
    """A registered mechanism that prints half of what it spends."""
    entry = registry.Entry(target="tests.broken:doubled", summary="broken")
    monkeypatch.setitem(registry.MECHANISMS, "twin", entry)
    return "twin"


def test_a_claim_that_holds_ends_with_0(run) -> None:
    code, out, err = run(
        "exponential", "--small", "--checks", "log-ratio,certificate,statement", "--epsilon", "8"
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "exponential"
    assert lines[1].split() == ["check", "claimed", "found", "evidence", "verdict", "why"]
    assert [line.split()[0] for line in lines[2:]] == ["log-ratio", "certificate", "statement"]
    assert all(" holds " in line for line in lines[2:])
    assert lines[2].split()[1:4] == ["8", "8", "proved"]


def test_a_violation_ends_with_1(run, twin) -> None:
    code, out, err = run(twin, "--small", "--checks", "log-ratio", "--json")
    (found,) = map(json.loads, out.splitlines())
    assert code == 1
    assert "violated" in err
    assert found["verdict"] == "violated"
    assert found["found"] > 1.5 * found["claimed"]


@pytest.mark.slow
def test_all_runs_over_every_name(run, twin) -> None:
    code, out, _ = run("--all", "--small", "--checks", "totality", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert len(found) == len(registry.list_names("mechanism"))
    assert {each["verdict"] for each in found} == {"holds"}


def test_names_are_left_out_of_all(run, monkeypatch) -> None:
    monkeypatch.setattr(registry, "list_names", lambda kind: ["krr", "dp-mlm"])
    arguments = ("--small", "--checks", "totality", "--json")
    code, out, _ = run("--all", "--except", "dp-mlm", *arguments)
    assert code == 0
    assert [json.loads(line)["mechanism"] for line in out.splitlines()] == ["krr"]
    for wrong in (("--all", "--except", "nonsense"), ("krr", "--except", "dp-mlm")):
        assert run(*wrong, *arguments)[0] == 2


def _endless(**_: object) -> object:
    """A mechanism of another package whose claim names no diameter."""
    return Endless(name="exponential", rule=exponential().rule)


class Endless(Select):
    def claim(self, table: EmbeddingTable) -> Claim:
        return replace(super().claim(table), diameter=math.inf)


def _raising(**_: object) -> object:
    raise RuntimeError("not built")


@pytest.mark.slow
def test_all_goes_on_after_what_cannot_be_built_and_heads_blocks_by_the_registered_name(
    run, monkeypatch
) -> None:
    known = {
        "exponential": registry.MECHANISMS["exponential"],
        "same": registry.MECHANISMS["exponential"],
        "raising": registry.Entry(target="bench_tests.test_cli_audit:_raising", summary="fails"),
        "endless": registry.Entry(
            target="bench_tests.test_cli_audit:_endless", summary="has no diameter"
        ),
    }
    monkeypatch.setitem(registry.BUILT_IN, "mechanism", known)
    code, out, err = run("--all", "--small", "--checks", "statement", "--json")
    found = {each["mechanism"]: each for each in map(json.loads, out.splitlines())}
    assert code == 1
    assert "2 claims are violated or could not be checked" in err
    assert [found[name]["verdict"] for name in known] == [
        "holds",
        "holds",
        "unchecked",
        "unchecked",
    ]
    assert "raised RuntimeError" in found["raising"]["why"]
    assert "diameter" in found["endless"]["why"]


def test_without_epsilon_the_budget_is_of_local_dp_12(run) -> None:
    _, out, _ = run("noise", "--small", "--checks", "overcharge", "--json")
    assert json.loads(out)["claimed"] == pytest.approx(12 / 1.651, rel=0.01)


def test_a_parameter_of_its_own_takes_the_place_of_epsilon(run) -> None:
    code, out, _ = run(
        "noise", "-o", "mechanism.eta=50", "--small", "--checks", "statement", "--json"
    )
    assert code == 0
    assert json.loads(out)["claimed"] == pytest.approx(50)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the name of a mechanism, or --all"),
        (("noise", "--all"), "the name of a mechanism, or --all"),
        (("nois",), "did you mean 'noise'"),
        (("--all", "--epsilon", "5"), "another unit for each mechanism"),
        (("noise", "--epsilon", "0"), "above 0 and below infinity"),
        (("noise", "--epsilon", "inf"), "above 0 and below infinity"),
        (("noise", "--epsilon", "nan"), "epsilon must be"),
        (("noise", "--checks", "nonsense"), "no check is named 'nonsense'"),
    ],
)
def test_errors_are_one_line(run, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_refuted_paper_is_shown_and_ends_with_0(run, monkeypatch) -> None:
    entry = registry.Entry(
        target="tests.broken:Groups", summary="from a paper that claims too much"
    )
    monkeypatch.setitem(registry.MECHANISMS, "groups", entry)
    code, out, err = run("groups", "--small", "--checks", "restricted,paper", "--epsilon", "2")
    assert code == 0
    assert "violated" not in err
    held, refuted = (line.split() for line in out.splitlines()[2:])
    assert held[:5] == ["restricted", "2", "2", "proved", "holds"]
    assert refuted[:5] == ["paper", "2", "infinite", "proved", "refuted"]
