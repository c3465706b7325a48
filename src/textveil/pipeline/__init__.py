"""Pipeline: the whole way from a text to its release and statement.

text -> words -> protection -> budget -> mechanism -> released items -> text, with its statement.

In: texts and options. Out: one `Result` per text, from `Privatizer` or, for prompts, `Protector`;
`TextPrivatizer` puts a public text in place of each.
Not here: what any of the steps does; each has a separate room.
"""

from textveil.pipeline.budget_search import resolve_budget
from textveil.pipeline.option_rules import resolve_unit
from textveil.pipeline.paraphrase import Paraphrase, Paraphraser
from textveil.pipeline.privatizer import BATCH_CHARACTERS, BATCH_TEXTS, Privatizer
from textveil.pipeline.protector import Protector, list_drawn_types
from textveil.pipeline.results import EvaluationRun, Private, Result, describe_releases, shorten
from textveil.pipeline.sweep import SWEEP_WORDS, sweep
from textveil.pipeline.synthesis import (
    BallotBox,
    DrawOptions,
    Report,
    Synthesis,
    Votes,
    check_library,
    choose_level,
    report_texts,
    synthesize,
    tally,
)
from textveil.pipeline.text_privatizer import TextPrivatizer, TextResult, load_privatizer

__all__ = [
    "BATCH_CHARACTERS",
    "BATCH_TEXTS",
    "SWEEP_WORDS",
    "BallotBox",
    "DrawOptions",
    "EvaluationRun",
    "Paraphrase",
    "Paraphraser",
    "Private",
    "Privatizer",
    "Protector",
    "Report",
    "Result",
    "Synthesis",
    "TextPrivatizer",
    "TextResult",
    "Votes",
    "check_library",
    "choose_level",
    "describe_releases",
    "list_drawn_types",
    "load_privatizer",
    "report_texts",
    "resolve_budget",
    "resolve_unit",
    "shorten",
    "sweep",
    "synthesize",
    "tally",
]
