"""What differs from a paper is of the run that it is printed with."""

from types import SimpleNamespace

import pytest

from textveil.errors import UnknownName
from textveil_bench.reproduce import targets
from textveil_bench.reproduce.differs import BUNDLED_CONTEXT, format_differences
from textveil_bench.spec import SweepData

LLM = "Language models asked"


def pretend(name, *, hub=False, llm=False, local=None, prompts=None):
    """A result with a row for each entry of the panels that such a run has."""
    target = targets.load_target(name)
    endpoint = {"url": "http://localhost:1/v1", "model": "toy"} if llm else None
    plans = targets.build_plans(target, hub=hub, endpoint=endpoint)
    rows = [
        {
            "data": {"name": SweepData(**source).row_name},
            "table": {**sweep["common"], **entry["set"]}["table.name"].removeprefix("./"),
            "configuration": {
                "mechanism": {
                    path.removeprefix("mechanism."): value
                    for path, value in entry["set"].items()
                    if path.startswith("mechanism.")
                }
            },
        }
        for sweep in plans.sweeps.values()
        for source in sweep["data"]
        for entry in sweep["entries"]
    ]
    options = SimpleNamespace(hub=hub, endpoint=endpoint, local=local, prompts=prompts)
    return SimpleNamespace(
        target=target, rows=rows, series=(), tables=dict.fromkeys(plans.tables), options=options
    )


@pytest.mark.parametrize("name", targets.list_names())
@pytest.mark.parametrize(
    ("hub", "llm"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_no_sentence_is_of_another_run(name, hub, llm):
    result = pretend(name, hub=hub, llm=llm)
    said = list(format_differences(result))
    text = " ".join(said)
    has_llm = llm and any("llm" in panel.needs for panel in result.target.panels)
    assert (LLM in text) is has_llm
    assert not has_llm or "ours, and not the paper's" in text
    if has_llm:
        assert "there is no continuation" not in text
        assert "no repair here" not in text
    if hub:
        assert "stands for DistilBERT" not in text
        assert "The table is minilm-s" not in text or any(
            row["table"] == "minilm-s" for row in result.rows
        )
    assert not any("{" in sentence for sentence in said)


def test_models_are_those_of_the_rows():
    ours, theirs = (" ".join(format_differences(pretend("cape-table8", hub=h))) for h in (0, 1))
    assert "stands for DistilBERT" in ours
    assert "has DistilBERT as its context here" in theirs
    fig5 = " ".join(format_differences(pretend("cape-fig5", hub=True)))
    assert "context here: google-bert/bert-base-uncased, openai-community/gpt2" in fig5
    assert BUNDLED_CONTEXT in " ".join(format_differences(pretend("cape-fig5")))


def test_prompts_of_a_file_are_named():
    said = format_differences(
        pretend("stamp-table1", llm=True, prompts="stamp.yaml (SHA-256 12ab)")
    )
    assert "stamp.yaml (SHA-256 12ab)" in list(said)[-1]


def test_who_extracts_is_said():
    for name in ("cape-fig6", "cape-table6"):
        without, with_local = (
            " ".join(format_differences(pretend(name, llm=True, local=local)))
            for local in (None, {"url": "http://localhost:2/v1", "model": "small"})
        )
        assert "No local model is named" in without
        assert "No local model is named" not in with_local
        assert "small, toy" in with_local


def test_a_fact_of_no_name_is_refused():
    for values in ({"says": "a", "when": {"tables": "x"}}, {"says": "{tables}"}):
        with pytest.raises(UnknownName, match="did you mean 'table'"):
            targets.Difference(**values)
