"""The table of data sets: kinds, file names, hub locations and sampling.

In: nothing. Out: `SOURCES`.
Not here: reading records (`records`), and loading data sets (`loading`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from textveil_bench.data.records import (
    GOLD,
    LETTERS,
    Reader,
    build_news_reader,
    build_plain_reader,
    build_question_reader,
    build_review_reader,
    build_sentence_reader,
    read_endings,
    read_paragraphs,
    read_subjects,
)
from textveil_bench.examples import ExampleKind


@dataclass(frozen=True, kw_only=True)
class File:
    """The name of a data set's file, and its format.

    Attributes:
        name: below the folder of corpora; .gz may follow. With a star, all matching files in order
            of name.
        format: a registered format, if the name does not end in its suffix.
        columns: column names of a table without a header line.
        quoted: whether quotes delimit values in a table.
        star: the field that receives the part of the name that matches the star.
        remark: what readers of figures should know of it.
    """

    name: str
    format: str | None = None
    columns: tuple[str, ...] = ()
    quoted: bool = True
    star: str = ""
    remark: str = ""

    def find(self, folder: Path) -> list[Path]:
        """Finds the files of this name; without .gz if there are any."""
        candidates = (
            sorted(path for path in folder.glob(self.name + end) if path.is_file())
            for end in ("", ".gz")
        )
        return next(filter(None, candidates), [])

    def match_star(self, path: Path) -> str:
        """Returns the part of a name that matches the star."""
        before, _, after = Path(self.name).name.partition("*")
        return path.name.removesuffix(".gz").removeprefix(before).removesuffix(after)


@dataclass(frozen=True, kw_only=True)
class Hub:
    """The location of a data set on a hub.

    Attributes:
        id: owner/name.
        configuration: the part of the data set.
        splits: the hub's names for our splits.
    """

    id: str
    configuration: str | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: {"test": "test", "train": "train"})

    def get_shard_pattern(self, split: str) -> str:
        """Returns the pattern of a split's downloaded files."""
        return f"{self.id}/{self.configuration or '**'}/{self.splits[split]}-*.parquet"


@dataclass(frozen=True, kw_only=True)
class Subset:
    """A part of a data set.

    Attributes:
        groups: the groups of its examples; empty for all.
        labels: new names of the labels.
        label_map: the new index of each old label, None to leave it out; empty to keep labels.
        is_generated: whether to generate examples even if there is a file.
    """

    groups: frozenset[str] = frozenset()
    labels: tuple[str, ...] = ()
    label_map: tuple[int | None, ...] = ()
    is_generated: bool = False


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """The source and format of a data set.

    Attributes:
        kind: of the examples.
        fields: the names of its texts.
        labels: the names of its labels.
        read: makes examples from a record.
        files: by split, the possible names of its files; the first that exists is used.
        hub: its hub location, used without a file.
        subsets: its named parts.
        sorted_by: the order of its files; a limit then takes rows from the whole file.
        first: the group whose examples come first.
        terms: the terms of use, according to its makers or their sources.
        remarks: by split, remarks for readers of figures.
    """

    kind: ExampleKind
    fields: tuple[str, ...]
    labels: tuple[str, ...] = ()
    read: Reader
    files: Mapping[str, tuple[File, ...]]
    hub: Hub | None = None
    subsets: Mapping[str, Subset] = field(default_factory=dict)
    sorted_by: str = ""
    first: str = ""
    terms: str
    remarks: Mapping[str, str] = field(default_factory=dict)

    def list_files(self, split: str) -> tuple[File, ...]:
        """Lists possible names of a split's files, as published or downloaded."""
        shards = () if self.hub is None else (File(name=self.hub.get_shard_pattern(split)),)
        return (*self.files[split], *shards)


VALIDATION = {"test": "validation", "train": "train"}
"""Splits for hubs that hide the test labels: the validation split instead."""

SENTIMENTS = ("negative", "positive")
ENTAILMENTS = ("entailment", "not_entailment")
TOPICS = ("World", "Sports", "Business", "Sci/Tech")
STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")

MEDICAL = (
    "anatomy",
    "clinical_knowledge",
    "college_medicine",
    "human_aging",
    "medical_genetics",
    "nutrition",
    "professional_medicine",
    "virology",
)
LEGAL = ("international_law", "jurisprudence", "professional_law")
FINANCIAL = (
    "econometrics",
    "high_school_macroeconomics",
    "high_school_microeconomics",
    "professional_accounting",
)
"""Some subjects of MMLU."""

SUBJECTS = (
    "abstract_algebra",
    "anatomy",
    "astronomy",
    "business_ethics",
    "clinical_knowledge",
    "college_biology",
    "college_chemistry",
    "college_computer_science",
    "college_mathematics",
    "college_medicine",
    "college_physics",
    "computer_security",
    "conceptual_physics",
    "econometrics",
    "electrical_engineering",
    "elementary_mathematics",
    "formal_logic",
    "global_facts",
    "high_school_biology",
    "high_school_chemistry",
    "high_school_computer_science",
    "high_school_european_history",
    "high_school_geography",
    "high_school_government_and_politics",
    "high_school_macroeconomics",
    "high_school_mathematics",
    "high_school_microeconomics",
    "high_school_physics",
    "high_school_psychology",
    "high_school_statistics",
    "high_school_us_history",
    "high_school_world_history",
    "human_aging",
    "human_sexuality",
    "international_law",
    "jurisprudence",
    "logical_fallacies",
    "machine_learning",
    "management",
    "marketing",
    "medical_genetics",
    "miscellaneous",
    "moral_disputes",
    "moral_scenarios",
    "nutrition",
    "philosophy",
    "prehistory",
    "professional_accounting",
    "professional_law",
    "professional_medicine",
    "professional_psychology",
    "public_relations",
    "security_studies",
    "sociology",
    "us_foreign_policy",
    "virology",
    "world_religions",
)
"""All subjects of MMLU."""

_NEWS_COLUMNS = ("label", "title", "description")
_STAR_COLUMNS = ("stars", "text")
_CHOICE_COLUMNS = ("question", *LETTERS, "answer")


def _build_glue_files(*names: str) -> tuple[File, ...]:
    """Builds GLUE's tables, in which a quote is an ordinary character."""
    return tuple(File(name=name, quoted=False) for name in names)


def _build_files(*names: str) -> tuple[File, ...]:
    return tuple(File(name=name) for name in names)


def _build_line_files(*names: str) -> tuple[File, ...]:
    return tuple(File(name=name, format="txt") for name in names)


def _build_subject_files(split: str) -> tuple[File, ...]:
    names = (f"mmlu/{split}/*_{split}.csv", f"mmlu/data/{split}/*_{split}.csv")
    return tuple(File(name=name, columns=_CHOICE_COLUMNS, star="subject") for name in names)


SQUAD: Mapping[str, tuple[File, ...]] = {
    "test": _build_files(
        *(f"{folder}/dev-v1.1.json" for folder in ("squad", "SQuAD", "squad_v11")),
        "squad_v11/dev.shared.jsonl",
    ),
    "train": _build_files(
        *(f"{folder}/train-v1.1.json" for folder in ("squad", "SQuAD", "squad_v11")),
        "squad_v11/train_subset.jsonl",
    ),
}
"""SQuAD's files, by split."""

SOURCES: Mapping[str, DataSource] = {
    "sst2": DataSource(
        kind="classification",
        fields=("sentence",),
        labels=SENTIMENTS,
        read=build_plain_reader("sentence", labels=SENTIMENTS),
        files={
            "test": (
                *_build_glue_files("SST-2/dev.tsv", "sst2/dev.tsv"),
                *_build_files("sst2/dev.shared.tsv"),
            ),
            "train": _build_glue_files("SST-2/train.tsv", "sst2/train.tsv"),
        },
        hub=Hub(id="nyu-mll/glue", configuration="sst2", splits=VALIDATION),
        terms="research use; no licence is stated",
        remarks={"train": "phrases of sentences among whole ones"},
    ),
    "qnli": DataSource(
        kind="pairs",
        fields=("question", "sentence"),
        labels=ENTAILMENTS,
        read=build_plain_reader("question", "sentence", labels=ENTAILMENTS),
        files={
            "test": (
                *_build_glue_files("QNLI/dev.tsv", "qnli/dev.tsv"),
                *_build_files("qnli/dev.shared.tsv"),
            ),
            "train": _build_glue_files("QNLI/train.tsv", "qnli/train.tsv"),
        },
        hub=Hub(id="nyu-mll/glue", configuration="qnli", splits=VALIDATION),
        terms="CC BY-SA 4.0, as SQuAD",
    ),
    "swag": DataSource(
        kind="choice",
        fields=("start", *LETTERS),
        labels=LETTERS,
        read=read_endings,
        files={
            "test": _build_files("swag/val.csv", "swagaf/data/val.csv"),
            "train": _build_files("swag/train.csv", "swagaf/data/train.csv"),
        },
        hub=Hub(id="allenai/swag", configuration="regular", splits=VALIDATION),
        terms="as its makers say (github.com/rowanz/swagaf)",
    ),
    "mmlu": DataSource(
        kind="choice",
        fields=("question", *LETTERS),
        labels=LETTERS,
        read=read_subjects,
        files={
            "test": (*_build_subject_files("test"), *_build_files("mmlu/test.shared.tsv")),
            "train": (*_build_subject_files("val"), *_build_files("mmlu/val.tsv")),
            "shots": (*_build_subject_files("dev"), *_build_files("mmlu/dev_5shot.tsv")),
        },
        hub=Hub(
            id="cais/mmlu",
            configuration="all",
            splits={"test": "test", "train": "validation", "shots": "dev"},
        ),
        subsets={
            "medical": Subset(groups=frozenset(MEDICAL)),
            "legal": Subset(groups=frozenset(LEGAL)),
            "financial": Subset(groups=frozenset(FINANCIAL)),
        },
        sorted_by="subject",
        terms="MIT",
        remarks={"train": "the validation rows", "shots": "the five examples of each subject"},
    ),
    "subjects": DataSource(
        kind="classification",
        fields=("question",),
        labels=SUBJECTS,
        read=build_plain_reader("question", labels=SUBJECTS, label="subject"),
        files={
            "test": (*_build_subject_files("val"), *_build_files("mmlu/val.tsv")),
            "train": (*_build_subject_files("test"), *_build_files("mmlu/test.shared.tsv")),
        },
        hub=Hub(
            id="cais/mmlu", configuration="all", splits={"test": "validation", "train": "test"}
        ),
        sorted_by="subject",
        terms="MIT",
        remarks={"test": "the validation rows of MMLU", "train": "its test rows, which are more"},
    ),
    "squad": DataSource(
        kind="reading",
        fields=("question", "context"),
        read=build_question_reader(GOLD),
        files=SQUAD,
        hub=Hub(id="rajpurkar/squad", splits=VALIDATION),
        subsets={"gold": Subset(groups=frozenset((GOLD,)))},
        sorted_by="article",
        first=GOLD,
        terms="CC BY-SA 4.0",
    ),
    "sentences": DataSource(
        kind="choice",
        fields=("question", *LETTERS),
        labels=LETTERS,
        read=build_sentence_reader(build_question_reader(GOLD)),
        files=SQUAD,
        hub=Hub(id="rajpurkar/squad", splits=VALIDATION),
        subsets={"gold": Subset(groups=frozenset((GOLD,)))},
        sorted_by="article",
        first=GOLD,
        terms="CC BY-SA 4.0, as SQuAD",
        remarks=dict.fromkeys(
            SQUAD, "the first four sentences of paragraphs, of which one has the answer"
        ),
    ),
    "fantasy": DataSource(
        kind="reading",
        fields=("question", "context"),
        read=build_question_reader(),
        files={
            "test": tuple(
                File(name=name, remark="the authors' file, and not generated")
                for name in (
                    "fantasy_squad/fantasy_squad.json",  # as in their repository
                    "fantasy_squad/fantasy.jsonl",
                    "fantasy/fantasy.jsonl",
                    "fantasy_squad/fantasy.shared.jsonl",
                )
            ),
            "train": (),
        },
        subsets={"generated": Subset(is_generated=True)},
        terms="file of STAMP's authors: no licence is stated; generated: as textveil",
    ),
    "opinions": DataSource(
        kind="classification",
        fields=("sentence",),
        labels=SENTIMENTS,
        read=build_plain_reader("sentence", labels=SENTIMENTS),
        files={"test": (), "train": ()},
        terms="as textveil",
    ),
    "yelp": DataSource(
        kind="classification",
        fields=("text",),
        labels=STARS,
        read=build_review_reader(STARS),
        files={
            "test": (
                File(name="yelp_review_full_csv/test.csv", columns=_STAR_COLUMNS),
                *_build_files("yelp/test.csv", "yelp/test.jsonl", "yelp/test.shared.tsv"),
                File(name="yelp/yelp_academic_dataset_review.json", format="jsonl"),
            ),
            "train": (
                File(name="yelp_review_full_csv/train.csv", columns=_STAR_COLUMNS),
                *_build_files("yelp/train.csv", "yelp/train.jsonl", "yelp/dev_all.tsv"),
            ),
        },
        hub=Hub(id="Yelp/yelp_review_full"),
        subsets={"polarity": Subset(labels=SENTIMENTS, label_map=(0, 0, None, 1, 1))},
        terms="Yelp's terms of use: academic",
    ),
    "ag_news": DataSource(
        kind="classification",
        fields=("text",),
        labels=TOPICS,
        read=build_news_reader(TOPICS),
        files={
            "test": (
                *(
                    File(name=f"{folder}/test.csv", columns=_NEWS_COLUMNS)
                    for folder in ("ag_news_csv", "ag_news")
                ),
                *_build_files("ag_news/test.shared.tsv"),
            ),
            "train": (
                *(
                    File(name=f"{folder}/train.csv", columns=_NEWS_COLUMNS)
                    for folder in ("ag_news_csv", "ag_news")
                ),
                *_build_files("ag_news/train_subset.tsv"),
            ),
        },
        hub=Hub(id="fancyzhx/ag_news"),
        subsets={"business": Subset(groups=frozenset(("Business",)))},
        terms="non-commercial research",
    ),
    "wikitext": DataSource(
        kind="text",
        fields=("text",),
        read=read_paragraphs,
        files={
            "test": (
                *_build_line_files(
                    "wikitext-2-raw/wiki.test.raw", "wikitext-103-raw/wiki.test.raw"
                ),
                *_build_line_files("wikitext-2/wiki.test.tokens", "wikitext-103/wiki.test.tokens"),
                *_build_files("wikitext2/test_raw.shared.txt"),
            ),
            "train": (
                *_build_line_files(
                    "wikitext-2-raw/wiki.train.raw", "wikitext-103-raw/wiki.train.raw"
                ),
                *_build_line_files(
                    "wikitext-2/wiki.train.tokens", "wikitext-103/wiki.train.tokens"
                ),
            ),
        },
        hub=Hub(id="Salesforce/wikitext", configuration="wikitext-2-raw-v1"),
        sorted_by="article",
        terms="CC BY-SA 3.0 and GFDL",
    ),
    "prompts": DataSource(
        kind="text",
        fields=("text",),
        read=build_plain_reader("text", group="kind"),
        files={"test": _build_files("prompts/prompts.jsonl", "prompts/prompts.shared.jsonl")},
        sorted_by="collection",
        terms="those of the collections that the field `source` names",
    ),
}
"""All data sets by name."""
