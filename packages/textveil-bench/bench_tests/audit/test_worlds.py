"""Two worlds of whole texts: every defect is found by the ratio, and the honest program passes."""

import math
from itertools import count
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.whole_texts import OTHERS, TWINS, Counted, Release, Reported, Responded, TextTwin, World

from textveil.errors import ConfigError
from textveil.mechanism import NoisyCount, RandomizedResponse, SubsetSelection
from textveil_bench.attack import WorldPair
from textveil_bench.audit import AuditFinding, audit_worlds


class Seeded:
    """A program that can be repeated, with another seed for every call."""

    def __init__(self, release: Release) -> None:
        self.release, self.seeds = release, count(1, 10)

    def __call__(self, world: World, many: int, /) -> NDArray[Any]:
        return self.release(world, many, next(self.seeds))


def audited(release: Release, first: World, second: World, epsilon: float) -> AuditFinding:
    pair = WorldPair(
        name="neighbours", program=Seeded(release), first=first, second=second, epsilon=epsilon
    )
    (found,) = audit_worlds([pair], trials=30_000)
    return found


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.defect)
def test_a_defect_is_found_and_the_honest_program_passes(twin: TextTwin) -> None:
    honest = audited(twin.honest, twin.first, twin.second, twin.epsilon)
    broken = audited(twin.broken, twin.first, twin.second, twin.epsilon)
    assert honest.verdict == "holds", honest
    assert broken.verdict == "violated", broken
    assert broken.claimed == twin.epsilon < (broken.found or 0)
    assert broken.evidence == "lower bound"
    assert str(twin.second) not in str(broken)


@pytest.mark.parametrize(
    ("release", "second"),
    [
        (Responded(RandomizedResponse(4, 1.0)), (2,)),
        (Reported(SubsetSelection(6, 1.0)), (2,)),
        (Reported(SubsetSelection(40, 1.0)), (2,)),  # too many sets to count whole ones
        (Counted(NoisyCount(1.0)), (*OTHERS, 4)),
    ],
)
def test_most_of_an_honest_epsilon_is_found(release: Release, second: World) -> None:
    first = OTHERS if len(second) > 1 else (0,)
    assert audited(release, first, second, 1.0).verdict == "holds"
    assert 0.5 < (audited(release, first, second, 1.0).found or 0) <= 1.0
    assert audited(release, first, second, 0.5).verdict == "violated"
    assert audited(release, first, second, math.inf).verdict == "no claim"


def test_released_texts_are_compared_as_they_are() -> None:
    def release(world: str, many: int, /) -> NDArray[Any]:
        return np.array([world, "another"] * (many // 2))

    pair = WorldPair(name="as it is", program=release, first="one", second="two", epsilon=4.0)
    (found,) = audit_worlds([pair])
    assert found.verdict == "violated"
    same = WorldPair(name="as it is", program=release, first="one", second="one", epsilon=0.01)
    (found,) = audit_worlds([same])
    assert (found.verdict, found.found) == ("holds", 0.0)


def test_releases_that_cannot_be_compared_are_an_error() -> None:
    pair = WorldPair(
        name="short", program=lambda world, many: np.zeros(3), first=0, second=1, epsilon=1.0
    )
    with pytest.raises(ConfigError, match="must return 1000 releases"):
        list(audit_worlds([pair], trials=1000))
    with pytest.raises(ConfigError, match="at least 100 releases"):
        list(audit_worlds([pair], trials=10))
