"""Every defect is found by the check that is there for it, and the honest mechanism passes the same check."""

import warnings
from functools import cache, partial

import pytest
from tests.broken import TWINS, Twin, build
from tests.lanes import first_of_each

from textveil_bench.audit.finding import AuditFinding
from textveil_bench.audit.run import CHECKS, audit


@cache
def finding(name: str, check: str) -> AuditFinding:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a twin's options are warned of is not the point
        (found,) = audit(partial(build, name), small=True, only=(check,))
    return found


@pytest.mark.parametrize(
    "twin",
    first_of_each(
        TWINS, lambda twin: "processes" if twin.check in ("streams", "seed") else twin.check
    ),
    ids=lambda twin: f"{twin.defect} - {twin.check}",
)
def test_a_defect_is_found_by_its_check_and_the_honest_mechanism_passes(twin: Twin) -> None:
    found, honest = finding(twin.defect, twin.check), finding(twin.honest, twin.check)
    assert found.verdict == twin.verdict, found
    assert "raised" not in found.why
    assert honest.verdict == "holds", honest


def test_every_check_that_can_accuse_has_a_twin() -> None:
    assert set(CHECKS) == {twin.check for twin in TWINS}
