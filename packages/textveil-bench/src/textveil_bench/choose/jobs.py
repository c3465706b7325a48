"""Runs a comparison: tunes budgets and options, then judges each family's best.

In: a comparison, a folder. Out: rows in the folder, one for each tuned series and each judged cell.
Not here: the measurement of risk (`risk`), the judges (`judges`), and the evaluation of rows
(`summary`).

A row, as JSON:

- `key`: the fingerprint of all inputs; a run does not compute a known key again.
- `stage`: `tuned`, `judged`, `attacked` or `units`; `data`, `series`, `family`, `whose`, `budget` (the path
  of the option, or null), `asked` (levels of risk).
- `levels` (tuned): each reached level of risk as [level, budget, risk, right]; for a baseline one
  entry with a level of null. `tried`: the risk at each budget. `refused`: why the series could not
  be attacked, else null.
- `level`, `value`, `seed` (judged): the budget and the seed. `risk`: {"words", "top-1", "top-10"},
  a number for each attacked text, "blind" and "note"; null if not attacked with this seed.
  `statement`: kind, metric and largest epsilon.
- `right`: for each judge a string with 1 for every correctly labelled text, and 0 for others.
- `judges`: the version of the judges. A row of an earlier version, or without one, is also judged
  by the new judges. They read another release of the same texts, because keys, which determine the
  draws, were once computed differently.
- `all` (attacked): the risk of the same release if the attacker trained on all public texts, and
  `public`, their number and fingerprint; `risk` is that of the attacker trained on the comparison's
  own public texts.
- `releases` (units): a list of {"release", "unit", "epsilon", "document", "scores"} of the words of
  the judged cells, of whole texts, and of what needs no private text; `document` is the epsilon of
  a whole document, in the mean. `library` is the digest of the public texts.
- `sizes`, `texts` (fingerprints of the parts), `seconds`, `circumstances`.
"""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from textveil.corpus.executors import Executor, LocalExecutor
from textveil.errors import ConfigError, VocabularyError
from textveil.evaluate.attack.learned import Learned
from textveil.files import text_streams
from textveil.library import Library
from textveil.models import load_sentences
from textveil.pipeline import Privatizer
from textveil.randomness import Ints
from textveil.table import load_table
from textveil_bench import run as runs
from textveil_bench.cells import build_privatizer
from textveil_bench.choose import judges, material, summary
from textveil_bench.choose.judges import Judges
from textveil_bench.choose.material import TextParts
from textveil_bench.choose.plan import Comparison
from textveil_bench.choose.risk import TOP_1, TOP_10, MeasuredRisk, find_budgets, measure_risk
from textveil_bench.choose.whole_texts import (
    LabelledTexts,
    OriginalJudges,
    RememberedVectors,
    WholeTexts,
)
from textveil_bench.circumstances import read_circumstances
from textveil_bench.examples import DataSet
from textveil_bench.spec import LEARNED_PATH, PlannedSeries, find_non_defaults
from textveil_bench.task_words import learn
from textveil_bench.tasks import judge_models

VERSION = 1
"""Increases when equal options give different figures."""

ATTACKER_PASSES = 2
"""Number of times the attacker reweighs candidates by their neighbours.

Another number needs another `VERSION`.
"""

ROWS_FILE = "choose.jsonl"

BOOKS_FOLDER = "books"

CODES_OPTION = "table.codes"
"""The option whose value names a book."""

ComparisonRow = dict[str, Any]
ComparisonProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonJob:
    """A job of one process: tunes a series, or judges a cell.

    Attributes:
        comparison: the comparison.
        series: a mechanism with its options.
        folder: of the run.
        places: the folders of the data.
        level: the level of risk to find a budget for, or that of the cell; None for a baseline.
        budget: the cell's budget.
        seed: the seed of the cell's draws; None tunes the series.
        previous_row: the cell's row of fewer judges; None without one.
        all_public: whether to attack the cell once more, by an attacker trained on all public
            texts.
        library: the file of a library; None to make one from the shelf.
        documents: epsilons of a document, to compare whole texts with words.
        cells: the cells whose releases of words they are compared with.
    """

    comparison: Comparison
    series: PlannedSeries
    folder: Path
    places: runs.Folders
    level: float | None = None
    budget: float | None = None
    seed: int | None = None
    previous_row: ComparisonRow | None = field(default=None, repr=False)
    all_public: bool = False
    library: Path | None = None
    documents: tuple[float, ...] = ()
    cells: tuple["ComparisonJob", ...] = ()

    @property
    def key(self) -> str:
        """The fingerprint of all inputs of the row.

        A mechanism counts with its options, not by its name.
        """
        comparison, series = self.comparison, self.series
        codes = {
            path: value
            for path, value in series.settings.items()
            if path in (CODES_OPTION, LEARNED_PATH)
        }
        other_settings = {
            path: value for path, value in series.settings.items() if path not in codes
        }
        config = replace(series, settings=other_settings).build_config(
            series.start if self.budget is None else self.budget
        )
        return _compute_fingerprint(
            VERSION,
            asdict(comparison.sizes),
            comparison.maps,
            series.source.row_name,
            config and find_non_defaults(config),
            codes,
            series.path,
            self.budget,
            self.seed,
            comparison.seeds[0] == self.seed,
            None
            if self.seed is not None
            else (self.levels, comparison.seeds[0], series.start, series.max_budget),
            *("all public texts",) * self.all_public,
            *(self.documents, self.library and Library.read(self.library).digest)
            * bool(self.documents),
            *(cell.key for cell in self.cells),
        )

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels of risk to find a budget for."""
        return () if self.level is None else (self.level,)

    def apply_names(self, row: ComparisonRow) -> ComparisonRow:
        """Copies a row with this job's names, which may differ between comparisons."""
        series = self.series
        renamed_row = {**row, "series": series.name, "family": series.family, "whose": series.whose}
        return (
            renamed_row if self.seed is None else {**renamed_row, "level": self.level}
        )  # two levels may share a budget


def run(
    comparison: Comparison,
    folder: Path,
    *,
    places: runs.Folders,
    executor: Executor | None = None,
    all_public: bool = False,
    library: Path | None = None,
    report: ComparisonProgress = lambda step, done, total: None,
) -> list[ComparisonRow]:
    """Computes the missing rows, and returns all rows of the comparison.

    Args:
        comparison: the comparison.
        folder: for the rows and the books; created if needed. Existing rows are not computed again.
        places: the folders of the data.
        executor: computes the cells; None for this process.
        all_public: whether to attack judged cells once more, by an attacker trained on all public
            texts.
        library: public texts for whole texts, as a file; None to make them from the shelves.
        report: called with "tuning", "judging", "attacking" and "comparing units".

    Raises:
        ConfigError: an option is wrong, or a data set has too few texts.
        InputError: data cannot be read.
    """
    executor = executor or LocalExecutor()
    text_streams.make_folder(folder)
    stored_rows = {row["key"]: row for row in read(folder)}
    _close_line(folder / ROWS_FILE)
    all_rows: list[ComparisonRow] = []

    def compute_missing(step: str, jobs: Sequence[ComparisonJob]) -> list[ComparisonRow]:
        complete = {
            key for key, row in stored_rows.items() if row.get("judges", 1) >= judges.VERSION
        }
        missing = [
            replace(job, previous_row=stored_rows.get(job.key))
            for job in jobs
            if job.key not in complete
        ]
        report(step, len(jobs) - len(missing), len(jobs))
        for done, (job, row) in enumerate(executor.map(compute, missing), start=1):
            line = json.dumps(row)
            stored_rows[job.key] = json.loads(line)
            with (
                text_streams.convert_write_errors(),
                open(folder / ROWS_FILE, "a", encoding="utf-8") as file,
            ):
                file.write(f"{line}\n")
            report(step, len(jobs) - len(missing) + done, len(jobs))
        job_rows = [job.apply_names(stored_rows[job.key]) for job in jobs]
        all_rows.extend(job_rows)
        return job_rows

    shared: dict[str, Any] = {"comparison": comparison, "folder": folder, "places": places}
    series = [
        entry for source in comparison.data for entry in comparison.list_series(source.row_name)
    ]
    for entry in series:
        if not entry.is_searched and entry.whose != "baseline":
            raise ConfigError(
                f"mechanisms are compared at equal risk: set the budget of {entry.entry!r} to "
                "`risk`"
            )
    levels = {
        entry.name: (None,) if entry.whose == "baseline" else comparison.levels for entry in series
    }
    tuned = compute_missing(
        "tuning",
        [
            ComparisonJob(series=entry, level=level, **shared)
            for entry in series
            for level in levels[entry.name]
        ],
    )
    series_by_name = {(entry.source.row_name, entry.name): entry for entry in series}
    cells = [
        ComparisonJob(
            series=series_by_name[data, name], level=level, budget=budget, seed=seed, **shared
        )
        for data, name, level, budget in summary.choose_cells(tuned)
        for seed in comparison.seeds
    ]
    compute_missing("judging", cells)
    if all_public:
        first = [
            cell
            for cell in cells
            if cell.seed == comparison.seeds[0] and cell.series.name != summary.CEILING_SERIES
        ]
        compute_missing("attacking", [replace(cell, all_public=True) for cell in first])
    if comparison.documents:
        compute_missing("comparing units", _plan_units(cells, comparison, library))
    return all_rows


def _plan_units(
    cells: Sequence[ComparisonJob], comparison: Comparison, library: Path | None
) -> list[ComparisonJob]:
    """Plans a job for each data set and seed."""
    return [
        replace(
            cell,
            library=library,
            documents=comparison.documents,
            cells=tuple(
                other
                for other in cells
                if other.series.whose != "baseline"
                and (other.series.source, other.seed) == (cell.series.source, cell.seed)
            ),
        )
        for cell in cells
        if cell.series.name == summary.CEILING_SERIES
    ]


def _close_line(path: Path) -> None:
    """Ends a truncated line, so that the next row starts separately."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with text_streams.convert_write_errors(), path.open("a") as file:
            file.write("\n")


def read(folder: Path) -> list[ComparisonRow]:
    """Reads the rows of a folder, the last one of each key.

    Truncated lines are skipped; without a file there are no rows.
    """
    path = folder / ROWS_FILE
    rows_by_key: dict[str, ComparisonRow] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        rows_by_key[row["key"]] = row
    return list(rows_by_key.values())


# ---- one job ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _DataCache:
    """The data, judges and attackers of one data set."""

    texts: TextParts
    judges: Judges
    attacker: Learned
    all_public_attacker: Learned


_CACHES: dict[str, _DataCache] = {}


def _load_cache(job: ComparisonJob) -> _DataCache:
    comparison, source = job.comparison, job.series.source
    key = _compute_fingerprint(
        source.row_name,
        asdict(comparison.sizes),
        comparison.maps,
        str(job.folder),
        str(job.places.corpora),
    )
    if key not in _CACHES:
        texts = material.deal(source, comparison.sizes, job.places)
        table = load_table(comparison.common.get("table.name", "minilm"))
        maps = {
            name: str(material.resolve_book(name, table, texts, job.folder / BOOKS_FOLDER))
            for name in comparison.maps
        }
        attacker, all_public_attacker = (
            Learned(
                public=tuple(material.list_texts(data_set)),
                simulated=comparison.sizes.simulated,
                passes=ATTACKER_PASSES,
            )
            for data_set in (texts.public, texts.all_public)
        )
        _CACHES.clear()  # one data set at a time
        _CACHES[key] = _DataCache(
            texts=texts,
            judges=Judges(texts.judged, table, maps),
            attacker=attacker,
            all_public_attacker=all_public_attacker,
        )
    return _CACHES[key]


def compute(job: ComparisonJob) -> ComparisonRow:
    """Computes the row of a job."""
    begin = time.perf_counter()
    cache = _load_cache(job)
    seconds = dict.fromkeys(("release", "attack", "judge"), 0.0)
    with warnings.catch_warnings(), judge_models.reduce_precision():
        warnings.simplefilter("ignore")  # rows say where epsilon bounds nothing
        if job.documents:
            stage, work = "units", _compare_units
        elif job.previous_row is not None and job.previous_row["texts"] == _count_parts(
            cache.texts
        ):
            return _update_judges(job, cache, job.previous_row, seconds)
        elif job.all_public:
            stage, work = "attacked", _attack_again
        else:
            stage, work = ("tuned", _tune_series) if job.seed is None else ("judged", _score_cell)
        fields = work(job, cache, seconds)
    return {
        "version": VERSION,
        "key": job.key,
        "stage": stage,
        "data": job.series.source.row_name,
        "series": job.series.name,
        "family": job.series.family,
        "whose": job.series.whose,
        "budget": job.series.path,
        "asked": job.levels,
        **fields,
        "judges": judges.VERSION,
        "sizes": asdict(job.comparison.sizes),
        "texts": _count_parts(cache.texts),
        "seconds": {
            **{name: round(value, 1) for name, value in seconds.items()},
            "all": round(time.perf_counter() - begin, 1),
        },
        "circumstances": dict(read_circumstances()),
    }


def _count_parts(texts: TextParts) -> ComparisonRow:
    """Counts the texts of each part, with their fingerprint."""
    parts = ("shelf", "public", "pool", "tuned", "judged")
    return {
        part: [len(part_texts), part_texts.digest]
        for part in parts
        for part_texts in [getattr(texts, part)]
    }


def _tune_series(job: ComparisonJob, cache: _DataCache, seconds: dict[str, float]) -> ComparisonRow:
    comparison, series, tuning_texts = job.comparison, job.series, cache.texts.tuned
    if series.whose == "baseline":
        return {
            "levels": [
                [
                    None,
                    None,
                    None,
                    _score_release(job, cache, None, tuning_texts, comparison.seeds[0], seconds),
                ]
            ],
            "tried": [],
            "refused": None,
        }
    texts = material.list_texts(tuning_texts)[: comparison.sizes.attacked]

    def measure_share(budget: float) -> float:
        start = time.perf_counter()
        share = measure_risk(_build_privatizer(job, cache, budget, 0), texts, cache.attacker).share
        seconds["attack"] += time.perf_counter() - start
        return share

    try:
        budget_by_level, tried = find_budgets(
            measure_share, job.levels, series.start, series.max_budget
        )
    except (ConfigError, VocabularyError) as error:
        return {"levels": [], "tried": [], "refused": " ".join(str(error).split())}
    levels = [
        [
            level,
            budget,
            tried[budget],
            _score_release(job, cache, budget, tuning_texts, comparison.seeds[0], seconds),
        ]
        for level, budget in budget_by_level.items()
    ]
    return {"levels": levels, "tried": sorted(tried.items()), "refused": None}


def _score_cell(job: ComparisonJob, cache: _DataCache, seconds: dict[str, float]) -> ComparisonRow:
    assert job.seed is not None, "a cell has a seed"
    sizes, judging_texts = job.comparison.sizes, cache.texts.judged
    fields: ComparisonRow = {
        "level": job.level,
        "value": job.budget,
        "seed": job.seed,
        "risk": None,
        "statement": None,
    }
    if job.series.name != "identity":
        privatizer = _build_privatizer(job, cache, job.budget, job.seed)
        fields["statement"] = _build_statement(privatizer, material.list_texts(judging_texts)[:1])
        if job.seed == job.comparison.seeds[0]:
            start = time.perf_counter()
            fields["risk"] = _convert_risk(
                measure_risk(
                    privatizer, material.list_texts(judging_texts)[: sizes.attacked], cache.attacker
                )
            )
            seconds["attack"] += time.perf_counter() - start
    return {
        **fields,
        "right": _score_release(job, cache, job.budget, judging_texts, job.seed, seconds),
    }


def _attack_again(
    job: ComparisonJob, cache: _DataCache, seconds: dict[str, float]
) -> ComparisonRow:
    assert job.seed is not None, "a cell has a seed"
    start = time.perf_counter()
    texts = material.list_texts(cache.texts.judged)[: job.comparison.sizes.attacked]
    cell = replace(
        job, all_public=False
    )  # built again for each attacker, so it repeats the judged draws
    risk, all_public_risk = (
        _convert_risk(
            measure_risk(_build_privatizer(cell, cache, job.budget, job.seed), texts, attacker)
        )
        for attacker in (cache.attacker, cache.all_public_attacker)
    )
    seconds["attack"] += time.perf_counter() - start
    public = [len(cache.texts.all_public), cache.texts.all_public.digest]
    return {
        "level": job.level,
        "value": job.budget,
        "seed": job.seed,
        "risk": risk,
        "all": all_public_risk,
        "public": public,
    }


def _update_judges(
    job: ComparisonJob, cache: _DataCache, row: ComparisonRow, seconds: dict[str, float]
) -> ComparisonRow:
    """Adds the answers of newer judges to a row."""
    updated_row, first = {**row, "judges": judges.VERSION}, job.comparison.seeds[0]
    if job.seed is None:
        updated_row["levels"] = [
            [
                level,
                budget,
                risk,
                _score_release(job, cache, budget, cache.texts.tuned, first, seconds, right),
            ]
            for level, budget, risk, right in row["levels"]
        ]
    else:
        updated_row["right"] = _score_release(
            job, cache, job.budget, cache.texts.judged, job.seed, seconds, row["right"]
        )
    spent = {
        "release": seconds["release"],
        "judge": seconds["judge"],
        "all": seconds["release"] + seconds["judge"],
    }
    updated_row["seconds"] = {
        name: round(value + spent.get(name, 0), 1) for name, value in row["seconds"].items()
    }
    return updated_row


def _compare_units(
    job: ComparisonJob, cache: _DataCache, seconds: dict[str, float]
) -> ComparisonRow:
    """Scores words beside whole texts, and beside what needs no private text."""
    assert job.seed is not None, "units are compared by seed"
    start = time.perf_counter()
    library = material.resolve_library(job.library, cache.texts, job.folder / BOOKS_FOLDER)
    model = load_sentences(library.features.encoder_source)
    encoder = RememberedVectors(lambda: model, model.dimension)
    vars(library.features)["model"] = encoder  # every way asks for the same vectors
    own = cache.texts.draw_training(job.comparison.sizes.train, job.seed)
    private, judged = (
        LabelledTexts(
            texts=tuple(material.list_texts(data)), labels=_read_labels(data), encode=encoder.encode
        ).leave_out(library)
        for data in (own, cache.texts.judged)
    )
    ways = WholeTexts(
        library=library,
        private=private,
        judged=judged,
        names=cache.texts.judged.labels,
        judges=OriginalJudges.learn(private),
    )
    releases = [
        {"release": name, "unit": unit, "epsilon": epsilon, "document": document, "scores": scores}
        for name, unit, epsilon, document, scores in _score_units(job, cache, ways)
    ]
    seconds["judge"] += time.perf_counter() - start
    return {"level": None, "seed": job.seed, "library": library.digest, "releases": releases}


def _score_units(
    job: ComparisonJob, cache: _DataCache, ways: WholeTexts
) -> Iterator[tuple[str, str, float | None, float | None, Mapping[str, float]]]:
    """Yields each release: its name, unit, epsilon, epsilon of a document, scores."""
    assert job.seed is not None, "units are compared by seed"
    yield "originals", "", None, None, ways.score_originals()
    yield "majority", "", None, None, ways.score_majority()
    for name, scores in ways.score_nothing():
        yield f"eps 0, {name}", "", 0.0, 0.0, scores
    for cell in job.cells:
        assert cell.seed is not None, "a cell has a seed"
        privatizer = _build_privatizer(cell, cache, cell.budget, cell.seed)
        scores, loss = ways.score_words(privatizer)
        yield cell.series.name, "word", cell.budget, loss, scores
    ways_by_name = {
        "texts in place": ways.score_local,
        "votes": ways.score_votes,
        "one count, added or removed": ways.score_count,
    }
    for name, score in ways_by_name.items():
        for epsilon in job.documents:
            yield name, "document", epsilon, epsilon, score(epsilon, job.seed)


_NO_ANSWERS: Mapping[str, str] = {}


def _score_release(
    job: ComparisonJob,
    cache: _DataCache,
    budget: float | None,
    data: DataSet,
    seed: int,
    seconds: dict[str, float],
    previous_answers: Mapping[str, str] = _NO_ANSWERS,
) -> dict[str, str]:
    """Scores a release by each judge that has not answered yet.

    Returns:
        the answers of all judges; see `right` of a row.
    """
    if not cache.judges.list_names(job.series.name != "identity", previous_answers):
        return dict(previous_answers)
    training = cache.texts.draw_training(job.comparison.sizes.train, seed)
    originals, labels, texts = (
        material.list_texts(training),
        _read_labels(training),
        material.list_texts(data),
    )
    releases = None
    if job.series.name != "identity":
        start = time.perf_counter()
        privatizer = _build_privatizer(job, cache, budget, seed)
        texts, releases = (_release_texts(privatizer, item) for item in (texts, originals))
        seconds["release"] += time.perf_counter() - start
    start = time.perf_counter()
    answers = {
        name: "".join("01"[item] for item in right.tolist())
        for name, right in cache.judges.score(
            texts, _read_labels(data), (originals, labels), releases, previous_answers
        )
    }
    seconds["judge"] += time.perf_counter() - start
    return {**previous_answers, **answers}


def _release_texts(privatizer: Privatizer, texts: Sequence[str]) -> list[str]:
    return [result.text for result in privatizer.privatize_many(texts)]


def _build_privatizer(
    job: ComparisonJob, cache: _DataCache, budget: float | None, seed: int
) -> Privatizer:
    series = job.series
    if series.task_word_count:
        series = series.add_task_words(learn(cache.texts.shelf, series.task_word_count))
    if name := series.settings.get(CODES_OPTION):
        table = load_table(job.comparison.common.get("table.name", "minilm"))
        path = str(material.resolve_book(str(name), table, cache.texts, job.folder / BOOKS_FOLDER))
        series = replace(series, settings={**series.settings, CODES_OPTION: path})
    config = series.build_config(budget, int(_compute_fingerprint(job.key, seed), 16) >> 32)
    assert config is not None, "the originals are not released"
    return build_privatizer(config)


def _read_labels(data: DataSet) -> Ints:
    return np.array([example.label for example in data.examples], np.int64)


def _build_statement(privatizer: Privatizer, texts: Sequence[str]) -> ComparisonRow:
    (result,) = privatizer.privatize_many(texts)
    guarantee = result.guarantee
    epsilons = {"epsilon": guarantee.epsilon, "local_dp": guarantee.epsilon_ldp}
    return {
        "kind": guarantee.kind,
        "metric": guarantee.claim.metric,
        **{
            name: float(value) if np.isfinite(value) else "infinite"
            for name, value in epsilons.items()
        },
    }


def _convert_risk(risk: MeasuredRisk) -> ComparisonRow:
    return {
        "words": risk.words.astype(int).tolist(),
        **{name: np.round(risk.hits[name], 3).tolist() for name in (TOP_1, TOP_10)},
        "blind": risk.blind,
        "note": risk.note,
    }


def _compute_fingerprint(*parts: object) -> str:
    return blake2b(json.dumps(parts, default=str).encode(), digest_size=12).hexdigest()


def format_costs(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    """Yields the duration of each row, in lines for people."""
    for row in rows:
        seconds: Mapping[str, float] = row["seconds"]
        steps = ", ".join(
            f"{name} {value:.0f}"
            for name, value in seconds.items()
            if name != "all" and value >= 0.5
        )
        seed = "" if row["stage"] == "tuned" else f", seed {row['seed']}"
        yield (
            f"{row['data']}, {row['series']}, {row['stage']}{seed}: {seconds['all']:.0f} s "
            f"({steps})"
        )
