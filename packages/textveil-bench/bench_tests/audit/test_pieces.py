"""The audit holds a word of several pieces to its budget, and finds a pipeline that charges it wrongly."""

from functools import partial
from typing import Any

import pytest

from textveil.pipeline import draw
from textveil.pipeline.privatizer import Privatizer
from textveil_bench.audit.run import audit


def find_verdicts(context: str, *checks: str) -> dict[str, str]:
    build: Any = partial(
        Privatizer,
        "rankcape",
        table="minilm-wordpiece",
        words={"unit": "wordpiece"},
        context=context,
        epsilon=12.0,
    )
    return {found.check: found.verdict for found in audit(build, small=True, only=checks)}


@pytest.mark.parametrize("context", ["original", "none"])
def test_a_word_of_several_pieces_is_charged_what_its_draws_lose(
    context: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = ("joint", "statement", "pipeline")
    assert find_verdicts(context, *checks) == dict.fromkeys(checks, "holds")
    # The twins: pieces that see all words are charged one by one, and those that see none, once.
    monkeypatch.setattr(draw, "looks_at_all", lambda mechanism: context == "none")
    assert find_verdicts(context, "pipeline") == {"pipeline": "violated"}
