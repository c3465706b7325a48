import pytest

from textveil.errors import ConfigError
from textveil.pipeline import Privatizer, sweep
from textveil_bench.cells import select_queries
from textveil_bench.examples import DataSet, Example

QUESTIONS = DataSet(
    name="questions",
    split="test",
    kind="reading",
    fields=("question", "context"),
    examples=(
        Example(texts=("where is the harbour", "the harbour is in the south"), answers=("south",)),
        Example(texts=("who sold bread", "the old baker sold bread"), answers=("the old baker",)),
    ),
)

TEXTS = DataSet(
    name="texts",
    split="test",
    kind="text",
    fields=("text",),
    examples=(Example(texts=("a quiet harbour",)),),
)


def privatizer(**protect):
    return Privatizer(
        "noise",
        table="minilm-s",
        protect=protect,
        groups={"budgets": "heuristic", "base": 100},
        seed=1,
    )


def test_questions_say_what_texts_are_for():
    asking = privatizer(importance="cosine")
    assert select_queries(asking, QUESTIONS, 0, 2) == ["where is the harbour", "who sold bread"]
    assert select_queries(asking, QUESTIONS, 1, 5) == ["who sold bread"]


@pytest.mark.parametrize(
    "protect",
    [{"importance": "cosine", "task": "bread"}, {"detectors": ["patterns"]}, {"always": ["bread"]}],
)
def test_nothing_is_asked_where_a_task_is_fixed_or_none_matters(protect):
    assert select_queries(privatizer(**protect), QUESTIONS, 0, 2) is None


def test_data_without_questions_need_a_task():
    with pytest.raises(ConfigError, match="texts has no questions, so importance needs a task"):
        select_queries(privatizer(importance="cosine"), TEXTS, 0, 1)


def test_a_sweep_hands_each_text_its_query():
    asking = privatizer(importance="cosine", tau=0.6)
    texts = [example.texts[1] for example in QUESTIONS.examples]
    asked = ["harbour", "bread"]
    ((rehearsal,),) = sweep([asking], texts, asked)
    alone = [
        asking.rehearse([text], queries=[query]).results[0]
        for text, query in zip(texts, asked, strict=True)
    ]
    groups = [result.released.mask.groups for result in rehearsal.results]
    assert groups == [result.released.mask.groups for result in alone]
    assert [any(label == "important" for label in own or ()) for own in groups] == [True, True]
