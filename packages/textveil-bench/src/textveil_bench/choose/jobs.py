"""Runs a comparison: budgets and options on texts that are tuned on, then the best of each family on others.

In: a comparison, a folder. Out: rows in the folder, one for each series that was tuned and each cell that was judged.
Not here: how risk is measured (`risk`), who judges (`judges`), and what follows from the rows (`summary`).
A row, as JSON:

- `key`: the fingerprint of everything that determines it; a run does not compute a known key again.
- `stage`: `tuned`, `judged` or `attacked`; `data`, `series`, `family`, `whose`, `budget` (the path of the option, null
  if there is none), `asked` (levels of risk).
- `levels` (tuned): the level of risk, if it was reached, as [level, budget, risk, right]; for a baseline one with a
  level of null. `tried`: the risk at each budget. `refused`: why it could not be attacked, else null.
- `level`, `value`, `seed` (judged): the budget and the draws. `risk`: {"words", "top-1", "top-10"}, a number for each
  attacked text, "blind" and "note"; null if it was not attacked with this seed. `statement`: kind, metric and largest
  epsilon.
- `right`: for each judge a string with 1 for every text that it gets right, and 0 for others.
- `judges`: their version. A row of an earlier one, or without any, is judged by those that are new, too. They read
  another release of the same texts, because keys, on which draws depend, were once made in another way.
- `all` (attacked): the risk of the same release if the attacker learned from every public text there is, and `public`,
  their number and fingerprint; `risk` is that of the attacker who learned from the comparison's own.
- `sizes`, `texts` (fingerprints of what played which part), `seconds`, `circumstances`.
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

from textveil.corpus.executors import Executor, Local
from textveil.errors import ConfigError, VocabularyError
from textveil.evaluate.attack.learned import Learned
from textveil.files import streams
from textveil.pipeline import Privatizer
from textveil.randomness import Ints
from textveil.table import load_table
from textveil_bench import run as runs
from textveil_bench.cells import built
from textveil_bench.choose import judges, material, summary
from textveil_bench.choose.judges import Judges
from textveil_bench.choose.material import Material
from textveil_bench.choose.plan import Comparison
from textveil_bench.choose.risk import AMONG, FIRST, MeasuredRisk, attacked, budgets
from textveil_bench.circumstances import circumstances
from textveil_bench.examples import DataSet
from textveil_bench.spec import LEARNED, PlannedSeries, chosen
from textveil_bench.task_words import learn
from textveil_bench.tasks import models

VERSION = 1
"""Raised when the same options give other figures."""

PASSES = 2
"""How often the attacker weighs candidates by their neighbours; another number needs another `VERSION`."""

FILE = "choose.jsonl"

BOOKS = "books"

CODES = "table.codes"
"""The option whose value names a book."""

Row = dict[str, Any]
Report = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonJob:
    """The work of one process at a time: a series to tune, or a cell to judge.

    Attributes:
        comparison: what is compared.
        series: a mechanism with its options.
        folder: of the run.
        places: where the data is.
        level: the level of risk that a budget is looked for, or was found for; None for a baseline.
        budget: for a cell, its budget.
        seed: for a cell, of its draws; None tunes the series.
        before: its row, if that was judged by fewer judges; None if there is none.
        all_public: whether the cell is attacked once more, by one who learned from all public texts there are.
    """

    comparison: Comparison
    series: PlannedSeries
    folder: Path
    places: runs.Folders
    level: float | None = None
    budget: float | None = None
    seed: int | None = None
    before: Row | None = field(default=None, repr=False)
    all_public: bool = False

    @property
    def key(self) -> str:
        """The fingerprint of all that determines the row: a mechanism counts with its options, not by its name."""
        asked, series = self.comparison, self.series
        codes = {path: value for path, value in series.settings.items() if path in (CODES, LEARNED)}
        rest = {path: value for path, value in series.settings.items() if path not in codes}
        config = replace(series, settings=rest).config(
            series.start if self.budget is None else self.budget
        )
        return _fingerprint(
            VERSION,
            asdict(asked.sizes),
            asked.maps,
            series.source.called,
            config and chosen(config),
            codes,
            series.path,
            self.budget,
            self.seed,
            asked.seeds[0] == self.seed,
            None
            if self.seed is not None
            else (self.asked, asked.seeds[0], series.start, series.most),
            *("all public texts",) * self.all_public,
        )

    @property
    def asked(self) -> tuple[float, ...]:
        """The levels of risk that a budget is looked for."""
        return () if self.level is None else (self.level,)

    def named(self, row: Row) -> Row:
        """A row under the names of this job: another comparison may have others for the same mechanism."""
        series = self.series
        found = {**row, "series": series.name, "family": series.family, "whose": series.whose}
        return (
            found if self.seed is None else {**found, "level": self.level}
        )  # a budget may be that of two levels


def run(
    comparison: Comparison,
    folder: Path,
    *,
    places: runs.Folders,
    executor: Executor | None = None,
    all_public: bool = False,
    report: Report = lambda step, done, total: None,
) -> list[Row]:
    """Computes what is missing, and returns the rows of the comparison.

    Args:
        comparison: what is wanted.
        folder: for the rows and the books; created if needed. Rows that are there are not computed again.
        places: where the data is.
        executor: computes the cells; None for this process.
        all_public: whether what is judged is attacked once more, by one who learned from all public texts there are.
        report: called with "tuning", "judging" and "attacking".

    Raises:
        ConfigError: an option is wrong, or a data set has too few texts. InputError: data cannot be read.
    """
    executor = executor or Local()
    streams.make_folder(folder)
    known = {row["key"]: row for row in read(folder)}
    _end_line(folder / FILE)
    everything: list[Row] = []

    def computed(step: str, jobs: Sequence[ComparisonJob]) -> list[Row]:
        whole = {key for key, row in known.items() if row.get("judges", 1) >= judges.VERSION}
        missing = [replace(job, before=known.get(job.key)) for job in jobs if job.key not in whole]
        report(step, len(jobs) - len(missing), len(jobs))
        for done, (job, row) in enumerate(executor.map(compute, missing), start=1):
            line = json.dumps(row)
            known[job.key] = json.loads(line)
            with streams.writing(), open(folder / FILE, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
            report(step, len(jobs) - len(missing) + done, len(jobs))
        found = [job.named(known[job.key]) for job in jobs]
        everything.extend(found)
        return found

    of_job: dict[str, Any] = {"comparison": comparison, "folder": folder, "places": places}
    series = [one for source in comparison.data for one in comparison.series(source.called)]
    for one in series:
        if not one.searched and one.whose != "baseline":
            raise ConfigError(
                f"mechanisms are compared at equal risk: set the budget of {one.entry!r} to `risk`"
            )
    levels = {one.name: (None,) if one.whose == "baseline" else comparison.levels for one in series}
    tuned = computed(
        "tuning",
        [
            ComparisonJob(series=one, level=level, **of_job)
            for one in series
            for level in levels[one.name]
        ],
    )
    named = {(one.source.called, one.name): one for one in series}
    cells = [
        ComparisonJob(series=named[data, name], level=level, budget=budget, seed=seed, **of_job)
        for data, name, level, budget in summary.chosen(tuned)
        for seed in comparison.seeds
    ]
    computed("judging", cells)
    if all_public:
        first = [
            cell
            for cell in cells
            if cell.seed == comparison.seeds[0] and cell.series.name != summary.CEILING
        ]
        computed("attacking", [replace(cell, all_public=True) for cell in first])
    return everything


def _end_line(path: Path) -> None:
    """Ends a line that was cut off, so that the next row has one of its own."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with streams.writing(), path.open("a") as file:
            file.write("\n")


def read(folder: Path) -> list[Row]:
    """The rows of a folder, of each key the last, without a line that was cut off; no rows if there is no file."""
    path = folder / FILE
    found: dict[str, Row] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found[row["key"]] = row
    return list(found.values())


# ---- one job ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _Held:
    """What this process keeps of one data set."""

    texts: Material
    judges: Judges
    learned: Learned
    well_read: Learned


_HELD: dict[str, _Held] = {}


def _held(job: ComparisonJob) -> _Held:
    asked, source = job.comparison, job.series.source
    key = _fingerprint(
        source.called, asdict(asked.sizes), asked.maps, str(job.folder), str(job.places.corpora)
    )
    if key not in _HELD:
        texts = material.deal(source, asked.sizes, job.places)
        table = load_table(asked.common.get("table.name", "minilm"))
        maps = {
            name: str(material.book(name, table, texts, job.folder / BOOKS)) for name in asked.maps
        }
        learned, well_read = (
            Learned(
                public=tuple(material.texts(each)), simulated=asked.sizes.simulated, passes=PASSES
            )
            for each in (texts.public, texts.every)
        )
        _HELD.clear()  # one data set at a time
        _HELD[key] = _Held(
            texts=texts,
            judges=Judges(texts.judged, table, maps),
            learned=learned,
            well_read=well_read,
        )
    return _HELD[key]


def compute(job: ComparisonJob) -> Row:
    """The row of a job."""
    begin = time.perf_counter()
    held = _held(job)
    seconds = dict.fromkeys(("release", "attack", "judge"), 0.0)
    with warnings.catch_warnings(), models.quick():
        warnings.simplefilter("ignore")  # rows say where epsilon bounds nothing
        if job.before is not None and job.before["texts"] == _parts(held.texts):
            return _judged_again(job, held, job.before, seconds)
        stage, work = ("tuned", _tune) if job.seed is None else ("judged", _judge)
        if job.all_public:
            stage, work = "attacked", _attack_again
        found = work(job, held, seconds)
    return {
        "version": VERSION,
        "key": job.key,
        "stage": stage,
        "data": job.series.source.called,
        "series": job.series.name,
        "family": job.series.family,
        "whose": job.series.whose,
        "budget": job.series.path,
        "asked": job.asked,
        **found,
        "judges": judges.VERSION,
        "sizes": asdict(job.comparison.sizes),
        "texts": _parts(held.texts),
        "seconds": {
            **{name: round(value, 1) for name, value in seconds.items()},
            "all": round(time.perf_counter() - begin, 1),
        },
        "circumstances": dict(circumstances()),
    }


def _parts(texts: Material) -> Row:
    """How many texts play which part, and their fingerprint."""
    parts = ("shelf", "public", "pool", "tuned", "judged")
    return {part: [len(own), own.digest] for part in parts for own in [getattr(texts, part)]}


def _tune(job: ComparisonJob, held: _Held, seconds: dict[str, float]) -> Row:
    asked, series, tuned = job.comparison, job.series, held.texts.tuned
    if series.whose == "baseline":
        return {
            "levels": [[None, None, None, _right(job, held, None, tuned, asked.seeds[0], seconds)]],
            "tried": [],
            "refused": None,
        }
    texts = material.texts(tuned)[: asked.sizes.attacked]

    def at(budget: float) -> float:
        start = time.perf_counter()
        found = attacked(_privatizer(job, held, budget, 0), texts, held.learned).share
        seconds["attack"] += time.perf_counter() - start
        return found

    try:
        found, tried = budgets(at, job.asked, series.start, series.most)
    except (ConfigError, VocabularyError) as error:
        return {"levels": [], "tried": [], "refused": " ".join(str(error).split())}
    levels = [
        [level, budget, tried[budget], _right(job, held, budget, tuned, asked.seeds[0], seconds)]
        for level, budget in found.items()
    ]
    return {"levels": levels, "tried": sorted(tried.items()), "refused": None}


def _judge(job: ComparisonJob, held: _Held, seconds: dict[str, float]) -> Row:
    assert job.seed is not None, "a cell has one"
    sizes, judged = job.comparison.sizes, held.texts.judged
    found: Row = {
        "level": job.level,
        "value": job.budget,
        "seed": job.seed,
        "risk": None,
        "statement": None,
    }
    if job.series.name != "identity":
        privatizer = _privatizer(job, held, job.budget, job.seed)
        found["statement"] = _statement(privatizer, material.texts(judged)[:1])
        if job.seed == job.comparison.seeds[0]:
            start = time.perf_counter()
            found["risk"] = _plain(
                attacked(privatizer, material.texts(judged)[: sizes.attacked], held.learned)
            )
            seconds["attack"] += time.perf_counter() - start
    return {**found, "right": _right(job, held, job.budget, judged, job.seed, seconds)}


def _attack_again(job: ComparisonJob, held: _Held, seconds: dict[str, float]) -> Row:
    assert job.seed is not None, "a cell has one"
    start = time.perf_counter()
    texts = material.texts(held.texts.judged)[: job.comparison.sizes.attacked]
    cell = replace(job, all_public=False)  # made anew for each attacker, it draws what was judged
    own, more = (
        _plain(attacked(_privatizer(cell, held, job.budget, job.seed), texts, each))
        for each in (held.learned, held.well_read)
    )
    seconds["attack"] += time.perf_counter() - start
    public = [len(held.texts.every), held.texts.every.digest]
    return {
        "level": job.level,
        "value": job.budget,
        "seed": job.seed,
        "risk": own,
        "all": more,
        "public": public,
    }


def _judged_again(job: ComparisonJob, held: _Held, row: Row, seconds: dict[str, float]) -> Row:
    """A row with what judges say that are newer than it."""
    found, first = {**row, "judges": judges.VERSION}, job.comparison.seeds[0]
    if job.seed is None:
        found["levels"] = [
            [
                level,
                budget,
                risk,
                _right(job, held, budget, held.texts.tuned, first, seconds, right),
            ]
            for level, budget, risk, right in row["levels"]
        ]
    else:
        found["right"] = _right(
            job, held, job.budget, held.texts.judged, job.seed, seconds, row["right"]
        )
    spent = {
        "release": seconds["release"],
        "judge": seconds["judge"],
        "all": seconds["release"] + seconds["judge"],
    }
    found["seconds"] = {
        name: round(value + spent.get(name, 0), 1) for name, value in row["seconds"].items()
    }
    return found


_NOTHING: Mapping[str, str] = {}


def _right(
    job: ComparisonJob,
    held: _Held,
    budget: float | None,
    data: DataSet,
    seed: int,
    seconds: dict[str, float],
    known: Mapping[str, str] = _NOTHING,
) -> dict[str, str]:
    """What each judge gets right of a release of a data set, see `right` of a row; who is known is not asked."""
    if not held.judges.asked(job.series.name != "identity", known):
        return dict(known)
    learned = held.texts.learned_from(job.comparison.sizes.train, seed)
    originals, labels, texts = material.texts(learned), _labels(learned), material.texts(data)
    releases = None
    if job.series.name != "identity":
        start = time.perf_counter()
        privatizer = _privatizer(job, held, budget, seed)
        texts, releases = (_released(privatizer, each) for each in (texts, originals))
        seconds["release"] += time.perf_counter() - start
    start = time.perf_counter()
    found = {
        name: "".join("01"[each] for each in right.tolist())
        for name, right in held.judges.judge(
            texts, _labels(data), (originals, labels), releases, known
        )
    }
    seconds["judge"] += time.perf_counter() - start
    return {**known, **found}


def _released(privatizer: Privatizer, texts: Sequence[str]) -> list[str]:
    return [result.text for result in privatizer.privatize_many(texts)]


def _privatizer(job: ComparisonJob, held: _Held, budget: float | None, seed: int) -> Privatizer:
    series = job.series
    if series.learned:
        series = series.taught(learn(held.texts.shelf, series.learned))
    if name := series.settings.get(CODES):
        table = load_table(job.comparison.common.get("table.name", "minilm"))
        path = str(material.book(str(name), table, held.texts, job.folder / BOOKS))
        series = replace(series, settings={**series.settings, CODES: path})
    config = series.config(budget, int(_fingerprint(job.key, seed), 16) >> 32)
    assert config is not None, "the originals are not released"
    return built(config)


def _labels(data: DataSet) -> Ints:
    return np.array([example.label for example in data.examples], np.int64)


def _statement(privatizer: Privatizer, texts: Sequence[str]) -> Row:
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


def _plain(risk: MeasuredRisk) -> Row:
    return {
        "words": risk.words.astype(int).tolist(),
        **{name: np.round(risk.hits[name], 3).tolist() for name in (FIRST, AMONG)},
        "blind": risk.blind,
        "note": risk.note,
    }


def _fingerprint(*parts: object) -> str:
    return blake2b(json.dumps(parts, default=str).encode(), digest_size=12).hexdigest()


def cost(rows: Sequence[Row]) -> Iterator[str]:
    """What each row took, in lines for people."""
    for row in rows:
        took: Mapping[str, float] = row["seconds"]
        told = ", ".join(
            f"{name} {value:.0f}" for name, value in took.items() if name != "all" and value >= 0.5
        )
        seed = "" if row["stage"] == "tuned" else f", seed {row['seed']}"
        yield f"{row['data']}, {row['series']}, {row['stage']}{seed}: {took['all']:.0f} s ({told})"
