"""Tasks of lm-evaluation-harness with data in files, a small random model, and what models were asked.

In: fixed rows. Out: a folder of tasks, a folder with a model, a list that fills with what a model is asked.
Not here: lm_eval's own tasks.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fixtures import NOUNS
from tests.models.conftest import byte_level, save

from textveil_bench.lm_eval import documents, harness

CANARY = "zyxquark"
"""A word that stands in every text of every document, and in no table: no mechanism can draw it."""

ROWS = 6


def sentence(i: int) -> str:
    return f"The {NOUNS[i % 60]} and the {NOUNS[(7 * i + 3) % 60]} met {CANARY} in the {NOUNS[(3 * i + 1) % 60]}."


def sst2(i: int) -> dict[str, Any]:
    return {"sentence": sentence(i), "label": i % 2, "idx": i}


def swag(i: int) -> dict[str, Any]:
    endings = {f"ending{j}": f"sees the {NOUNS[(5 * i + j) % 60]} of {CANARY}." for j in range(4)}
    return {
        "video-id": f"{CANARY} {i}",
        "startphrase": sentence(i),
        "sent1": sentence(i),
        **endings,
        "label": i % 4,
    }


def mmlu(i: int) -> dict[str, Any]:
    return {
        "question": f"Which {NOUNS[i]} did {CANARY} choose? ",
        "subject": "anatomy",
        "choices": [f"the {NOUNS[(i + j) % 60]} of {CANARY}" for j in range(4)],
        "answer": (i + 1) % 4,
    }


def story(i: int) -> dict[str, Any]:
    return {
        "title": f"{NOUNS[i]} {CANARY}",
        "body": sentence(i),
        "answer": f"the {NOUNS[i]} of {CANARY}",
        "year": 1900 + i,
    }


def nested(i: int) -> dict[str, Any]:
    texts = [f"the {NOUNS[(i + j) % 60]} of {CANARY}" for j in range(3)]
    return {
        "question": sentence(i),
        "choices": {"text": texts, "label": ["A", "B", "C"]},
        "answerKey": "ABC"[i % 3],
    }


MANY = {"output_type": "multiple_choice", "metric_list": [{"metric": "acc"}]}
ASKED = {
    "output_type": "generate_until",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 2},
    "metric_list": [{"metric": "exact_match"}],
}

TASKS: Mapping[str, tuple[Callable[[int], dict[str, Any]], dict[str, Any]]] = {
    "sst2": (
        sst2,
        {
            **MANY,
            "doc_to_text": "{{sentence}}\nQuestion: Is this sentence positive or negative?\nAnswer:",
            "doc_to_target": "label",
            "doc_to_choice": ["negative", "positive"],
        },
    ),
    "swag": (
        swag,
        {
            **MANY,
            "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
            "doc_to_text": "startphrase",
            "doc_to_target": "label",
            "doc_to_choice": "{{[ending0, ending1, ending2, ending3]}}",
        },
    ),
    "mmlu_anatomy": (
        mmlu,
        {
            **MANY,
            "description": "About anatomy.\n\n",
            "fewshot_split": "train",
            "fewshot_config": {"sampler": "first_n"},
            "doc_to_text": "{{question.strip()}}\n"
            "A. {{choices[0]}}\nB. {{choices[1]}}\nC. {{choices[2]}}\nD. {{choices[3]}}\nAnswer:",
            "doc_to_target": "answer",
            "doc_to_choice": ["A", "B", "C", "D"],
        },
    ),
    "nested": (
        nested,
        {
            **MANY,
            "training_split": None,  # examples come from the documents that are evaluated
            "doc_to_text": "{{question}}",
            "doc_to_target": "{{choices.label.index(answerKey)}}",
            "doc_to_choice": "{{choices.text}}",
        },
    ),
    "named": (  # its answer is an option's text, not its place
        mmlu,
        {
            **MANY,
            "doc_to_text": "question",
            "doc_to_target": "{{choices[answer]}}",
            "doc_to_choice": "choices",
        },
    ),
    "story": (
        story,
        {**ASKED, "doc_to_text": "{{title}}: {{body}}\nWho?", "doc_to_target": "answer"},
    ),
    "word": (
        story,
        {
            "output_type": "loglikelihood",
            "metric_list": [{"metric": "acc"}],
            "doc_to_text": "{{body.split(' ')[:-1] | join(' ')}}",
            "doc_to_target": "{{' ' + body.split(' ')[-1]}}",
        },
    ),
    "rolling": (
        story,
        {
            "output_type": "loglikelihood_rolling",
            "metric_list": [{"metric": "word_perplexity"}],
            "doc_to_text": "",
            "doc_to_target": "{{body}}",
        },
    ),
    "coded": (
        story,
        {
            **ASKED,
            "doc_to_text": "!function",
            "doc_to_target": "answer",
            "process_docs": "!function",
        },
    ),
    "samples": (
        story,
        {
            **ASKED,
            "doc_to_text": "body",
            "doc_to_target": "answer",
            "fewshot_config": {
                "samples": [{"body": sentence(i), "answer": f"a {CANARY}"} for i in range(40, 44)]
            },
        },
    ),
    "dated": (story, {**ASKED, "doc_to_text": "{{year}}: {{body}}", "doc_to_target": "answer"}),
}
CODE = f"""
def doc_to_text(row):
    return row["headline"] + ": " + row["body"]


def process_docs(rows):
    return rows.map(lambda row: {{"headline": row["title"] + " {CANARY}"}})
"""


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of tasks, and a group of two of them."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "code.py").write_text(CODE)
    for name, (row, config) in TASKS.items():
        files = {}
        for split, start in (("train", 10), ("validation", 0)):
            path = files[split] = str(folder / f"{name}-{split}.jsonl")
            Path(path).write_text("".join(json.dumps(row(start + i)) + "\n" for i in range(ROWS)))
        made = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": files, "cache_dir": str(folder / "cache")},
            "training_split": "train",
            "validation_split": "validation",
            **config,
        }
        written = yaml.safe_dump(
            {
                key: value
                for key, value in made.items()
                if value is not None and value != "!function"
            }
        )
        functions = [
            f"{key}: !function code.{key}\n" for key, value in made.items() if value == "!function"
        ]
        (folder / f"{name}.yaml").write_text(written + "".join(functions))
    group = {
        "group": "both",
        "task": ["sst2", "swag"],
        "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}],
    }
    (folder / "both.yaml").write_text(yaml.safe_dump(group))
    return str(folder)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The arguments of a small random model of transformers."""
    sizes = {
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 1024,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    folder = save(
        tmp_path_factory.mktemp("gpt2"), "GPT2LMHeadModel", byte_level(framed=False), **sizes
    )
    return f"pretrained={folder}"


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything that a model is asked, in order."""
    found: list[str] = []
    load = harness.load_model

    def listened(*arguments: Any, **options: Any) -> Any:
        made = load(*arguments, **options)
        for name in ("loglikelihood", "loglikelihood_rolling", "generate_until"):
            answer = getattr(made, name)

            def ask(requests: Sequence[Any], answer: Any = answer, **rest: Any) -> Any:
                found.extend(
                    part for request in requests for part in request.args if isinstance(part, str)
                )
                return answer(requests, **rest)

            setattr(made, name, ask)
        return made

    monkeypatch.setattr(harness, "load_model", listened)
    documents.load_model.cache_clear()
    return found
