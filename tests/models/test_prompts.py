"""Prompts of a file: what they may show, whose they are, and what is refused by name."""

import pytest

from textveil.errors import ConfigError, UnknownName
from textveil.models.prompts import ROLES, Prompt, Prompts

FILE = """
evaluator: {system: Reply briefly., user: "{context} -- {question}", temperature: 0.2, max_tokens: 5}
classification:
  user: "{text}? {labels}"
  data:
    qnli: {user: "{question} / {sentence}", labels: ["Yes", "No"]}
"""


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(FILE, encoding="utf-8")
    return Prompts.read(path)


def test_a_file_names_roles_and_data_sets(written):
    asked = written.find("question_answering")
    assert (asked.temperature, asked.max_tokens) == (0.2, 5)
    assert asked.fill(context="{a}", question="b?", text="t") == ("Reply briefly.", "{a} -- b?")
    assert written.find("classification", "qnli").labels == ("Yes", "No")
    assert written.find("classification", "qnli-hard").labels == ("Yes", "No")
    assert written.find("classification", "sst2").user == "{text}? {labels}"
    assert written.find("repair") is None
    assert Prompts.parse(written.plain).find("question_answering") == asked
    assert str(written).startswith(
        f"mine.yaml (SHA-256 {written.digest}): question_answering, class"
    )
    assert str(written).endswith("; ours: choice, continuation, extraction, repair, generation")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"answering": {}}, "no role of prompts is named 'answering'"),
        ({"repair": {"users": "{text}"}}, "no key of prompts.repair is named 'users'"),
        ({"repair": "{text}"}, "prompts.repair must be a mapping"),
        ({"repair": {"user": "{txt}"}}, "placeholder of prompts.repair is named 'txt'"),
        ({"repair": {"user": "{text.__class__}"}}, "no placeholder of prompts.repair"),
        ({"repair": {"user": "{text!r}"}}, "no placeholder of prompts.repair"),
        ({"repair": {"user": "{text:>9}"}}, "no placeholder of prompts.repair"),
        ({"repair": {"user": "{}"}}, "no placeholder of prompts.repair"),
        ({"repair": {"user": "{text"}}, "without its partner"),
        ({"repair": {"user": "Mend it."}}, r"prompts.repair must show \{text\}"),
        ({"extraction": {"user": "{text}"}}, r"must show \{draft\}"),
        ({"classification": {"user": "{labels}"}}, r"must show \{text\} or \{sentence\}"),
        ({"repair": {"temperature": 3}}, "prompts.repair: .*temperature"),
        ({"classification": {"data": ["sst2"]}}, "must have a mapping for each data set"),
        (
            {
                "evaluator": {},
                "question_answering": {"system": "a"},
            },
            None,
        ),
        (
            {"evaluator": {"system": "a"}, "question_answering": {"system": "a"}},
            "has question_answering twice",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_name(values, says):
    if says is None:
        assert Prompts.parse(values).roles == ["question_answering"]
        return
    with pytest.raises((ConfigError, UnknownName), match=says):
        Prompts.parse(values)


def test_texts_without_a_field_are_refused_without_the_text():
    with pytest.raises(ConfigError, match=r"\{sentence\}, which these texts do not have") as caught:
        Prompt(user="{sentence}").fill(text="canary")
    assert "canary" not in str(caught.value)


def test_every_role_can_show_what_it_must():
    assert all(
        set(need.split("|")) <= set(role.shows) for role in ROLES.values() for need in role.needs
    )
