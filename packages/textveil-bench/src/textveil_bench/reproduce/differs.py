"""What differs from a paper, as far as a run has it.

In: the result of a reproduction. Out: sentences.
Not here: the sentences and their conditions (`conf/reproduce/NAME.yaml`, `targets.Difference`).

A run has these facts, each with one or more values:

    hub, local          true or false: --hub; a model that may see originals is named
    llm, small          true or false: a panel of a language model; one of the small one
    table, context      names of the tables, and of the language models of contexts
    judge               names of the judges, as in rows
    model               names of the language models that were asked
    shown               names of the computed tables

A sentence is left out if the run has none of the values that it asks for, or nothing to fill in.
Only these facts decide, so that no sentence is of another run.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from textveil_bench.reproduce.targets import FACTS

if TYPE_CHECKING:
    from textveil_bench.reproduce.run import ReproductionResult

BUNDLED_CONTEXT = "the bundled masked language model"

OURS_PROMPTS = "ours, and not the paper's"

Facts = Mapping[str, frozenset[bool | str]]


def format_differences(result: "ReproductionResult") -> Iterator[str]:
    """Yields the sentences of a target that are true of its result."""
    facts = collect_facts(result)
    for difference in result.target.differs:
        is_met = all(facts[name] & {*values} for name, values in difference.when.items())
        if is_met and all(facts[name] for name in difference.placeholders):
            yield difference.says.format(
                **{name: _join(facts[name]) for name in difference.placeholders}
            )
    if True in facts["llm"]:
        prompts = result.options.prompts
        yield (
            f"Language models asked: {_join(facts['model']) or 'not named'}. What they are asked "
            f"is worded as follows: {OURS_PROMPTS if prompts is None else prompts}."
        )


def collect_facts(result: "ReproductionResult") -> Facts:
    """Collects the facts of a run from its rows, tables and options."""
    options, target, rows = result.options, result.target, result.rows
    names = {row["data"]["name"] for row in rows}
    needs = {
        need
        for panel in target.panels
        if (
            panel.computed in result.tables
            if panel.computed
            else names & panel.list_data(target.sweep).keys()
        )
        for need in ("llm", "small")
        if need in panel.needs
    }
    asked = [options.endpoint, options.local]
    facts: dict[str, Iterable[bool | str]] = {
        "hub": [options.hub],
        "llm": ["llm" in needs],
        "local": [options.local is not None],
        "small": ["small" in needs],
        "table": (row["table"] for row in rows if row["table"]),
        "context": filter(None, map(_find_context, rows)),
        "judge": (
            key.source
            for member in result.series
            for cell in member.cells
            for key in cell.scores
            if key.role == "task"
        ),
        "model": (endpoint["model"] for endpoint in asked if endpoint) if "llm" in needs else [],
        "shown": result.tables,
    }
    return {name: frozenset(facts[name]) for name in FACTS}


def _find_context(row: Mapping[str, Any]) -> str:
    """Returns the language model of a row's context, or ""."""
    options = (row["configuration"] or {}).get("mechanism", {})
    if options.get("context", "none") == "none":
        return ""
    model = str(options.get("model") or "")
    layers = model.removeprefix("bundled:")
    if not model or layers == model:
        return model or BUNDLED_CONTEXT
    return f"{BUNDLED_CONTEXT} with {layers} layers"


def _join(values: Iterable[bool | str]) -> str:
    return ", ".join(sorted(map(str, values)))
