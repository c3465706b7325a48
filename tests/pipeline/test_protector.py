"""Prompts: what is found does not leave, in this text or a later one of the session, and comes back in answers."""

import pickle
import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

import textveil
from textveil.errors import ConfigError, UnknownName
from textveil.pipeline.protector import Protector
from textveil.session.state import Session

CANARY = "zyxqorvian@example.org"


class Mail:
    """Finds addresses."""

    name = "mail"

    def find(self, texts):
        from textveil.protect import Span

        return [
            Span(b, found.start(), found.end(), "EMAIL", 1.0, self.name)
            for b, text in enumerate(texts)
            for found in re.finditer(r"\S+@\S+\w", text)
        ]


@pytest.fixture(scope="module")
def guard():
    return Protector(protect={"detectors": [Mail()]}, names={"types": "none"})


def test_what_is_found_does_not_leave_and_comes_back(guard):
    session = Session()
    first = guard.protect(f"Ask {CANARY} about the lease", session)
    assert first.text == "Ask <EMAIL_1> about the lease"
    assert guard.protect(f"Or x@y.org, not {CANARY}?", session).text == "Or <EMAIL_2>, not <EMAIL_1>?"
    assert session.restore("I asked <EMAIL_1>.") == f"I asked {CANARY}."
    assert guard.protect(f"Ask {CANARY}").text == "Ask <EMAIL>", "without a session nothing is kept"


def test_the_profile_for_prompts_is_the_default():
    with_tagger, session = textveil.Protector(), Session()
    result = with_tagger.protect(f"Ask Maria Silva ({CANARY}) about the lease", session)
    assert isinstance(result, textveil.Result)
    assert not {"Maria", "Silva", CANARY} & set(re.findall(r"[\w@.]+", result.text))
    assert result.text.endswith("about the lease")


def test_it_is_frozen_and_shows_no_word(guard):
    with pytest.raises(FrozenInstanceError):
        guard.privatizer = None
    listed = Protector(protect={"detectors": [Mail()], "always": [CANARY]}, names={"types": "none"})
    assert CANARY not in repr(listed)


def test_it_pickles():
    guard = pickle.loads(pickle.dumps(Protector("strict", protect={"detectors": ["patterns"]})))
    assert guard.protect(CANARY).text == "<EMAIL>"


@pytest.mark.parametrize(
    "overrides",
    [
        {"groups": {"budgets": (1, 0, 9, 9)}},
        {"groups": {"budgets": (0, float("inf"), 9, 9)}},
        {"groups": {"budgets": "heuristic"}, "epsilon": 3.0},
    ],
    ids=repr,
)
def test_what_lets_pass_what_is_found_is_refused(overrides):
    with pytest.raises(ConfigError, match="hide all of it"):
        Protector(protect={"detectors": [Mail()]}, names={"types": "none"}, **overrides)


def test_what_finds_nothing_is_refused():
    wrong: list[dict[str, Any]] = [{"detectors": []}, {"detectors": [], "importance": "list", "important": ["lease"]}]
    for found in wrong:
        with pytest.raises(ConfigError):
            Protector(protect=found, names={"types": "none"}, groups={"budgets": (0, 0, 9, 9)})
    with pytest.raises(UnknownName):
        Protector("prompts")
