"""The verbs `library make`, `library vary` and `library info`.

In: files of public texts, or sentences that describe classes and a language model; votes. Out: the
file of a library; what it holds, and what it achieves without any private text.
Not here: how a library is made (`textveil.library`), and what is released from it (`privatize`,
`corpus`).
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from textveil.cli import console, progress
from textveil.cli.console import say
from textveil.cli.decorators import group, verb
from textveil.cli.public_texts import check_target, read_public_texts
from textveil.cli.texts import Field
from textveil.config.extras import require
from textveil.errors import ConfigError, InputError, OutputError, TextveilError, quote_file

if TYPE_CHECKING:
    from textveil.library import CandidatePlan

library = group(
    "Make libraries of public texts, which stand in place of private ones.",
    "textveil library make --demo -o demo.library",
    "textveil library info demo.library",
)
"""The verbs about libraries."""

LibraryFile = Annotated[
    str,
    typer.Argument(metavar="LIBRARY", help="The file of a library.", show_default=False),
]
Url = typer.Option(
    "--endpoint",
    "--upstream",
    metavar="URL",
    help="The base URL of an OpenAI-compatible API, such as http://HOST:PORT/v1, whose model "
    "writes the texts; a server of llama.cpp has one for a .gguf file.",
)
Model = typer.Option("--model", metavar="NAME", help="The name of the model, as this API lists it.")
Workers = Annotated[
    int, typer.Option("--workers", metavar="N", help="Requests at the same time.", min=1, max=64)
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        metavar="N",
        help="The longest answer, in tokens. Default: four for each word asked for, and 100.",
        min=1,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Count the requests and tokens, show one prompt, and ask for nothing."
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", help="The name of the library in statements. Default: that of its file."
    ),
]
NewLibrary = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="LIBRARY", help="The file to write.", show_default=False
    ),
]


@verb(
    "textveil library make --demo -o demo.library",
    (
        "textveil library make public.jsonl --field body --source 'news of 2004' --licence "
        "'CC BY 4.0' -o news.library"
    ),
    (
        "textveil library make public.jsonl --label topic --source 'news of 2004' --licence "
        "'CC BY 4.0' -o topics.library"
    ),
    (
        "textveil library make wiki.txt --classes classes.txt --source 'Wikipedia, 2018' --licence "
        "'CC BY-SA 3.0' -o wiki.library"
    ),
    (
        "textveil library make --endpoint http://localhost:8000/v1 --model NAME --classes "
        "classes.txt --count 2000 -o written.library"
    ),
    brief=(
        *("field", "label", "classes", "source", "licence", "endpoint", "model", "count"),
        *("demo", "output"),
    ),
    on=library,
)
def make(
    output: NewLibrary,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Files of public texts: .txt (a text per line), .jsonl, .csv, .tsv or .parquet; "
            "all but the last also compressed.",
            show_default=False,
        ),
    ] = None,
    field: Field = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="FIELD",
            help="The field of public labels: a level then has a cell for each, and they help to "
            "smooth the labels of synthesized corpora.",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="FILE",
            help="A public sentence for each class, on a line NAME: SENTENCE: a level then has a "
            "cell for each, and they help to smooth the labels of synthesized corpora.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="FIELD",
            help="The field that identifies a text in its source. Default: its number.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="TEXT",
            help="Your description of the texts, which every statement prints. Default: the "
            "names of the files.",
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence",
            metavar="TEXT",
            help="The terms under which the texts may be passed on; they go into every release.",
        ),
    ] = None,
    name: Name = None,
    cells: Annotated[
        str | None,
        typer.Option(
            "--cells",
            metavar="vectors|words|both",
            help="The features by which texts are alike: sentence vectors see topics, words see "
            "labels that nobody else has. Default: both; vectors with --classes.",
        ),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            "--levels",
            metavar="K,...",
            help="Numbers of cells; the library has a level for each that has 8 texts a cell. "
            "Default: 6,16,30,100.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="DIR|ID",
            help="Another sentence encoder: its folder or hub id. Whoever uses the library needs "
            "it, too.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Another seed gives other cells.", min=0)
    ] = 0,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Make it from 200 invented notes of customers, which are part of textveil, with "
            "labels and classes.",
        ),
    ] = False,
    endpoint: Annotated[str | None, Url] = None,
    model: Annotated[str | None, Model] = None,
    count: Annotated[
        int, typer.Option("--count", metavar="N", help="The number of texts to write.", min=1)
    ] = 2000,
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples",
            metavar="FILE",
            help="Public texts, two of which each request shows; with --label those of its class.",
        ),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            "--words",
            metavar="N,...",
            help="The lengths of texts to write. Default: 15,30,60,100.",
        ),
    ] = None,
    workers: Workers = 4,
    max_tokens: MaxTokens = None,
    dry_run: DryRun = False,
) -> None:
    """Make a library from public texts, never from the texts to release.

    Releases pass its texts on word for word, so --licence must allow that. With --label or
    --classes it has a cell for each label or class, beside clusters of like texts. Its own texts
    do not count as input later. With --endpoint a language model writes the texts from the
    sentences of --classes alone; its key is read from TEXTVEIL_LLM_KEY, and the same command
    continues where it was interrupted.
    """
    making: dict[str, Any] = {"cells": cells, "levels": levels, "encoder": encoder, "seed": seed}
    if endpoint is not None:
        if files or demo or id:
            raise ConfigError("give files of public texts, or --endpoint, whose model writes them")
        writer = Writer.build(endpoint, model, output, workers, max_tokens, dry_run)
        write_from_classes(
            writer,
            Wishes(
                classes=classes,
                count=count,
                examples=examples,
                field=field,
                label=label,
                words=words,
                seed=seed,
            ),
            source=source,
            licence=licence,
            name=name,
            **making,
        )
        return
    if model or examples or words or dry_run:
        raise ConfigError("--model, --examples, --words and --dry-run need --endpoint")
    if demo:
        if files or label or classes or field or id:
            raise ConfigError("--demo brings its own files, labels and classes: give it alone")
        from textveil.library import make_demo_library

        target = check_writable(output)
        facts = {"source": source, "licence": licence, "name": name or target.stem}
        facts = {option: value for option, value in facts.items() if value}
        write_library(target, make=make_demo_library, **facts, **making)
        return
    if not files:
        raise InputError("no public texts: give files of them, or --demo")
    licence = check_licence(licence)
    target = check_writable(output)
    columns = [(option, name) for option, name in (("--id", id), ("--label", label)) if name]
    texts, values = read_public_texts(files, field, columns)
    columns_by_option = {
        option: column for (option, _), column in zip(columns, values, strict=True)
    }
    if missing := columns_by_option.get("--label", []).count(""):
        raise InputError(f"{missing:,} of {len(texts):,} texts have no label: leave them out")
    write_library(
        target,
        texts=texts,
        ids=columns_by_option.get("--id"),
        labels=columns_by_option.get("--label"),
        classes=read_class_sentences(classes),
        source=source or ", ".join(Path(file).name for file in files),
        licence=licence,
        name=name or target.stem,
        **making,
    )


@verb(
    "textveil library vary old.library --votes synth/votes.json --endpoint "
    "http://localhost:8000/v1 --model NAME -o new.library",
    on=library,
)
def vary(
    library: LibraryFile,
    votes: Annotated[
        str,
        typer.Option(
            "--votes",
            metavar="FILE",
            help="The noisy votes for its cells, as corpus synthesize writes them.",
            show_default=False,
        ),
    ],
    endpoint: Annotated[str, Url],
    model: Annotated[str, Model],
    output: NewLibrary,
    count: Annotated[
        int | None,
        typer.Option(
            "--count",
            metavar="N",
            help="The number of variations. Default: one of each text that is kept.",
            min=1,
        ),
    ] = None,
    name: Name = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Another seed gives other variations.", min=0)
    ] = 0,
    workers: Workers = 4,
    max_tokens: MaxTokens = None,
    dry_run: DryRun = False,
) -> None:
    """Keep the half of a library's cells with most votes, and let a model vary their texts.

    The model sees texts of the library only, and by their choice which cells got many noisy votes,
    which their epsilon covers. A vote on the new library is a further release: its epsilon adds to
    that of the votes used here.
    """
    from textveil.corpus import read_votes
    from textveil.library import Library, plan_variations
    from textveil.pipeline import check_library

    writer = Writer.build(endpoint, model, output, workers, max_tokens, dry_run)
    old = Library.read(library)
    cast_votes = read_votes(votes)
    check_library(old, cast_votes.library)
    level = old.get_level(cast_votes.library.level)
    plan, rows = plan_variations(old, level, cast_votes.weigh().sum(axis=0), count=count, seed=seed)
    written = writer.write(plan)
    if written is None:
        return
    vote = {"epsilon": cast_votes.guarantee.epsilon, "unit": cast_votes.unit}
    spent = [*old.options.get("votes", ()), vote]  # of all rounds, for they add up
    write_library(
        writer.target,
        **_join_variations(old, plan, rows.tolist(), written),
        source=_join_lines(old.source, f"varied by {model}"),
        licence=_join_lines(old.licence, f"terms of {model}"),
        name=name or writer.target.stem,
        cells=str(old.options.get("cells", "vectors")),
        levels=",".join(level.name for level in old.levels if level.kind == "clusters"),
        encoder=old.features.encoder_source,
        seed=int(old.options.get("seed", 0)),
        made_with={
            "model": model,
            "prompts": plan.digest,
            "votes": spent,
        },
    )


@verb(
    "textveil library info news.library",
    "textveil library info news.library --cells 30",
    "textveil library info news.library --json",
    on=library,
)
def info(
    library: LibraryFile,
    cells: Annotated[
        str | None,
        typer.Option(
            "--cells", metavar="LEVEL", help="Also show the most typical text of each cell."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a library, and say what it holds and what it achieves without any private text."""
    from textveil.library import Library, collect_facts, describe_cells, describe_library

    public = Library.read(library)
    if as_json:
        say(json.dumps(collect_facts(public), ensure_ascii=False))
        return
    for line in describe_library(public):
        say(line)
    if cells is not None:
        for line in describe_cells(public, public.get_level(cells)):
            say(line)


# ---- common parts --------------------------------------------------------------------------------


def check_licence(licence: str | None) -> str:
    """Returns the licence, which must have been given."""
    if licence is None:
        raise ConfigError(
            "--licence must say under which terms the texts may be passed on, as releases pass "
            "them on word for word"
        )
    return licence


def check_writable(output: str) -> Path:
    """Returns the path of the file to write, before any work is done for it."""
    target = check_target(output)
    if not os.access(target.resolve().parent, os.W_OK):
        raise OutputError(f"cannot write {quote_file(output)}: its folder may not be written to")
    return target


def read_class_sentences(path: str | None) -> dict[str, str] | None:
    """Reads the sentences of classes, where a file of them is named."""
    from textveil.library import read_classes

    return None if path is None else read_classes(path)


def write_library(
    target: Path, *, levels: str | None, make: Callable[..., Any] | None = None, **options: Any
) -> None:
    """Makes a library, writes it and describes it."""
    from textveil.library import LEVELS, describe_library, make_library

    numbers = read_numbers("--levels", "numbers of cells", levels)
    with progress.show_bars() as report:
        new = (make or make_library)(levels=numbers or LEVELS, report=report, **options)
    new.save(target)
    if left := len(options.get("texts", new.texts)) - len(new):
        console.note(f"{left:,} texts were left out: empty ones, and equal ones but for the first.")
    for line in describe_library(new):
        say(line)


def read_numbers(option: str, noun: str, numbers: str | None) -> list[int]:
    """Reads numbers that are separated by commas."""
    parts = numbers.split(",") if numbers else []
    if not all(re.fullmatch(r"\s*\d{1,4}\s*", part) for part in parts):
        raise ConfigError(f"{option} must be {noun}, separated by commas, such as 6,30")
    return [int(part) for part in parts]


# ---- texts that a model writes -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """Options of `library make` that say which texts a model is to write."""

    classes: str | None
    count: int
    examples: str | None
    field: str | None
    label: str | None
    words: str | None
    seed: int

    def plan(self, classes: Mapping[str, str]) -> "CandidatePlan":
        """Plans the candidates: from public descriptions and public examples alone."""
        from textveil.library import LEAST_LABELLED, LENGTHS, plan_candidates

        least = LEAST_LABELLED * len(classes)
        if self.count < least:  # said before the model is asked, not after
            raise ConfigError(
                f"--count must be {least} or more, {LEAST_LABELLED} texts for each of "
                f"{len(classes)} classes, got {self.count}"
            )
        return plan_candidates(
            classes,
            self.count,
            examples=self._read_examples(classes),
            lengths=read_numbers("--words", "lengths in words", self.words) or LENGTHS,
            seed=self.seed,
        )

    def _read_examples(self, classes: Mapping[str, str]) -> dict[str, list[str]]:
        if self.examples is None:
            if self.field or self.label:
                raise ConfigError("--field and --label need --examples, if a model writes")
            return {}
        columns = [("--label", self.label)] if self.label else []
        texts, values = read_public_texts([self.examples], self.field, columns)
        texts_by_class: dict[str, list[str]] = {name: [] for name in classes}
        for i, text in enumerate(texts):
            for name in [values[0][i]] if values else classes:
                if text.strip() and name in texts_by_class:
                    texts_by_class[name].append(text)
        if not any(texts_by_class.values()):
            raise InputError(
                f"{quote_file(self.examples)} has no text of a class: --label must name the field "
                "of their names"
            )
        return texts_by_class


@dataclass(frozen=True, kw_only=True)
class Writer:
    """A language model that writes texts into a work file beside the library."""

    endpoint: Any
    target: Path
    max_tokens: int | None
    dry_run: bool

    @classmethod
    def build(
        cls,
        url: str,
        model: str | None,
        output: str,
        workers: int,
        max_tokens: int | None,
        dry_run: bool,
    ) -> "Writer":
        """Builds it from options, before any text is read."""
        if model is None:
            raise ConfigError("--endpoint needs --model: the name of the model that writes")
        require("openai", "sklearn")
        from textveil.library.candidates import TEMPERATURE
        from textveil.models import Endpoint

        return cls(
            endpoint=Endpoint(url=url, model=model, workers=workers, temperature=TEMPERATURE),
            target=check_writable(output),
            max_tokens=max_tokens,
            dry_run=dry_run,
        )

    @property
    def work(self) -> Path:
        """The file that keeps what was written."""
        return self.target.with_name(f"{self.target.name}.written.jsonl")

    def write(self, plan: "CandidatePlan") -> list[str] | None:
        """Returns the texts that the model writes; None for a dry run."""
        from textveil.library import make_candidates

        if self.dry_run:
            sent, received = plan.estimate_tokens()
            say(
                f"{len(plan):,} requests, about {sent:,} tokens sent and {received:,} received. "
                "One of them:"
            )
            for message in plan.prompts[0]:
                say(f"\n{message}")
            return None
        try:
            with progress.show_bars() as report:
                return make_candidates(
                    self.endpoint,
                    plan,
                    work=self.work,
                    max_tokens=self.max_tokens,
                    report=report,
                )
        except (TextveilError, KeyboardInterrupt):
            if self.work.exists():
                console.note(
                    f"textveil: written texts are kept in {quote_file(self.work)}; the same "
                    "command continues"
                )
            raise


def write_from_classes(
    writer: Writer,
    wishes: Wishes,
    *,
    source: str | None,
    licence: str | None,
    name: str | None,
    **making: Any,
) -> None:
    """Makes a library of texts that a model writes from sentences about classes."""
    classes = read_class_sentences(wishes.classes)
    if classes is None:
        raise ConfigError("--endpoint needs --classes: the sentences from which its model writes")
    plan = wishes.plan(classes)
    texts = writer.write(plan)
    if texts is None:
        return
    model = writer.endpoint.model
    write_library(
        writer.target,
        texts=texts,
        labels=[str(label) for label in plan.labels],
        classes=classes,
        source=source or f"written by {model} from the sentences of {len(classes)} classes",
        licence=licence or f"terms of {model}",
        name=name or writer.target.stem,
        made_with={"model": model, "prompts": plan.digest},
        **making,
    )


def _join_variations(
    old: Any, plan: "CandidatePlan", rows: Sequence[int], written: Sequence[str]
) -> dict[str, Any]:
    """Joins the texts that are kept and their variations, without labels that became rare."""
    from textveil.library.making import LEAST_LABELLED

    texts = [*(old.texts[i] for i in rows), *written]
    ids = [
        *(old.ids[i] for i in rows),
        *(
            f"variation {number} of {old.ids[origin]}"
            for number, origin in enumerate(plan.origins, 1)
        ),
    ]
    classes = dict(old.options.get("classes") or {}) or None
    if old.labels is None:
        return {"texts": texts, "ids": ids, "classes": classes}
    labels = [*(old.label_names[old.labels[i]] for i in rows), *map(str, plan.labels)]
    frequent = {name for name in old.label_names if labels.count(name) >= LEAST_LABELLED}
    if len(frequent) < 2:
        return {"texts": texts, "ids": ids}
    places = [i for i, label in enumerate(labels) if label in frequent]
    if classes is not None and set(classes) == set(old.label_names):
        classes = {name: classes[name] for name in classes if name in frequent}
    return {
        "texts": [texts[i] for i in places],
        "ids": [ids[i] for i in places],
        "labels": [labels[i] for i in places],
        "classes": classes,
    }


def _join_lines(line: str, addition: str) -> str:
    """Adds to a line that statements print, once, and within its limit."""
    from textveil.library.library import MAX_LINE

    if line.endswith(addition):
        return line
    room = MAX_LINE - len(addition) - 5
    return f"{line if len(line) <= room else line[:room] + '...'}; {addition}"
