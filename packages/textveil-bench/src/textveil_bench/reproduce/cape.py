"""Cape's tables that are not sweeps: vocabularies, statements, tail, logits, distances.

In: public tables, the bundled language model, texts of SST-2. Out: tables of plain values.
Not here: sweeps (`conf/reproduce/cape-*.yaml`), and the cost of mechanisms (`costs`).
"""

import numpy as np

from textveil.mechanism import BucketRule, Context, Hybrid, Layout, cape, compute_losses
from textveil.models import Ragged, load_context
from textveil.randomness import Values
from textveil.table import EmbeddingTable, load_table
from textveil.text import is_public, tokenize
from textveil_bench.examples import DataSet
from textveil_bench.reproduce.computed import ComputeOptions, Drawing, Table, TableValue
from textveil_bench.run import load
from textveil_bench.spec import SweepData

TABLE_NAME = "minilm-s"
NOMINAL_EPSILONS = (1.0, 2.0, 3.0, 6.0, 10.0, 14.0, 20.0)
"""The epsilons of the paper's tables."""

TAIL_LIMITS = (1e-5, 1e-4, 1e-3, 1e-2)
"""Probabilities below which a candidate belongs to the long tail."""

FIGURE_TAIL_LIMIT = 1e-4
"""The tail limit of figure 4."""

TOP_CANDIDATES = 20
POSITIONS_BY_SCALE = {"quick": 8, "usual": 100, "full": 400}
"""Number of private words of SST-2 at which distributions are computed."""

SLICE_WORDS = 1000
"""Words of a reduced table, whose exact losses take seconds to compute."""

EXAMPLE_TEXT, EXAMPLE_WORD = "This is a good book.", "book"
"""The example of appendix B.7, and its word of interest."""

HISTOGRAM_BINS = 16


def vocabularies(options: ComputeOptions) -> Table:
    """Tabulates the packaged tables' numbers of words and largest distances."""
    rows = []
    for name in ("minilm-wordpiece", "minilm", "minilm-s"):
        raw, unit = (load_table(name, metric=metric) for metric in ("euclidean", "chord"))
        rows.append((name, len(raw), float(raw.diameter), float(unit.diameter)))
    return Table(
        title="The packaged tables",
        columns=("table", "words", "largest distance, raw rows", "largest distance, unit rows"),
        rows=tuple(rows),
        notes=(
            (
                "minilm-wordpiece has the pieces of bert-base-uncased, without special and unused "
                "ones."
            ),
        ),
    )


def statements(options: ComputeOptions) -> Table:
    """Tabulates the paper's nominal epsilon, its bound, and our statement."""
    table = load_table(TABLE_NAME)
    small_table = _sample_table(
        load_table(TABLE_NAME, metric="euclidean"),
        SLICE_WORDS if options.scale != "quick" else SLICE_WORDS // 10,
    )
    utility, rule = Hybrid(), BucketRule()
    nominals = np.array([0.0, 0.1, *NOMINAL_EPSILONS])
    paper_bounds = rule.compute_paper_bound(small_table, utility, nominals)
    assert paper_bounds is not None, "the slice is small"
    columns = [nominals, paper_bounds, compute_losses(small_table, utility, rule, nominals)]
    for context in ("none", "public"):
        mechanism = cape(nominal=1.0, context=context)
        columns.append(
            np.array(
                [
                    mechanism.spend(table, Layout.build(1), np.array([nominal]))[0]
                    for nominal in nominals
                ]
            )
        )
    original_context = cape(nominal=1.0, context="original")
    columns.append(
        np.array(
            [
                original_context.spend(table, Layout.build(10), np.full(10, nominal))[0]
                for nominal in nominals
            ]
        )
    )
    return Table(
        title="Cape's nominal epsilon, and what is known of a word's true one",
        columns=(
            "nominal",
            f"theorem 4.1, {len(small_table):,} words",
            f"true, {len(small_table):,} words",
            f"true, {TABLE_NAME}, no context",
            f"at most, {TABLE_NAME}, any fixed context",
            f"at most, {TABLE_NAME}, context original, 10 private words",
        ),
        rows=tuple(tuple(row) for row in np.array(columns).T.tolist()),
        notes=(
            (
                "With the original text as context, each private word also influences the draws of "
                "the others."
            ),
        ),
    )


def tail(options: ComputeOptions) -> Table:
    """Tabulates the probability of unlikely candidates, exponential mechanism and buckets."""
    utility, rule = Hybrid(context=Context(mode="original")), BucketRule()
    table = load_table(TABLE_NAME)
    scores = _compute_scores(options, table, utility)
    cut = rule.assign_buckets(table, utility, scores)
    order = np.argsort(-scores, axis=1)[:, :TOP_CANDIDATES]
    rows: list[tuple[TableValue, ...]] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for nominal in NOMINAL_EPSILONS:
        rate = rule.compute_rate(table, utility, np.full(len(scores), nominal))
        laws = {
            "exponential": _log_softmax(rate[:, None] * scores),
            f"{rule.buckets} buckets": rule.log_probs(cut, rate),
        }
        for name, logs in laws.items():
            law = np.exp(logs)
            best = float(np.take_along_axis(law, order, axis=1).sum(axis=1).mean())
            rows.append(
                (
                    nominal,
                    name,
                    *(float(law[law <= limit].sum() / len(law)) for limit in TAIL_LIMITS),
                    best,
                )
            )
            low = float(law[law <= FIGURE_TAIL_LIMIT].sum() / len(law))
            lines.setdefault(f"{name}: candidates up to {FIGURE_TAIL_LIMIT:g}", []).append(
                (nominal, low)
            )
            lines.setdefault(f"{name}: the {TOP_CANDIDATES} best", []).append((nominal, best))
        options.report("laws", len(rows) // 2, len(NOMINAL_EPSILONS))
    ceiling = (
        TOP_CANDIDATES
        * np.exp(NOMINAL_EPSILONS[3] / 2)
        / (TOP_CANDIDATES * np.exp(NOMINAL_EPSILONS[3] / 2) + len(table) - TOP_CANDIDATES)
    )
    return Table(
        title=f"Probability of unlikely candidates, mean over {len(scores)} private words of SST-2",
        columns=(
            "nominal",
            "rule",
            *(f"of candidates up to {limit:g}" for limit in TAIL_LIMITS),
            f"of the {TOP_CANDIDATES} with the best scores",
        ),
        rows=tuple(rows),
        notes=(
            f"Under the exponential mechanism {TOP_CANDIDATES} of {len(table):,} candidates have "
            f"at most {ceiling:.3f} together at epsilon {NOMINAL_EPSILONS[3]:g}, whatever the "
            "scores.",
        ),
        drawing=Drawing(
            x="nominal epsilon",
            y="share of the probability",
            lines={name: tuple(points) for name, points in lines.items()},
        ),
    )


def logits(options: ComputeOptions) -> Table:
    """Tabulates the logits of all candidates at one word of an example.

    The example is the paper's, of appendix B.7.
    """
    table = load_table(TABLE_NAME)
    model = load_context(table)
    ragged = Ragged.build(tokenize([EXAMPLE_TEXT]))
    values = model.compute_logits(ragged, np.array([ragged.words.index(EXAMPLE_WORD)]))[0].astype(
        np.float64
    )
    return _build_histogram(
        f"Logits of {model.name} at the hidden word of the example", "logit", values, table
    )


def distances(options: ComputeOptions) -> Table:
    """Tabulates the distances of all candidates from the example's word."""
    table = load_table(TABLE_NAME, metric="euclidean")
    values = table.distances(table.find([EXAMPLE_WORD]))[0]
    return _build_histogram(
        "Euclidean distances of candidates from the hidden word of the example",
        "distance",
        values,
        table,
    )


def _build_histogram(title: str, quantity: str, values: Values, table: EmbeddingTable) -> Table:
    counts, edges = np.histogram(values, HISTOGRAM_BINS)
    word_value = values[table.row_of[EXAMPLE_WORD]]
    below = (
        f"; {np.mean(values <= 0):.1%} of the values are not above 0" if values.min() < 0 else ""
    )
    return Table(
        title=title,
        columns=(f"{quantity} from", "to", "candidates"),
        rows=tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)),
        notes=(
            f"The word itself has {word_value:.3g}; median {np.median(values):.3g}, smallest "
            f"{values.min():.3g}, largest {values.max():.3g}{below}.",
        ),
        drawing=Drawing(
            x=quantity,
            y=f"candidates, in bins of {edges[1] - edges[0]:.2g}",
            lines={
                quantity: tuple(
                    zip(((edges[:-1] + edges[1:]) / 2).tolist(), counts.tolist(), strict=True)
                )
            },
        ),
    )


def _log_softmax(values: Values) -> Values:
    values = values - values.max(axis=1, keepdims=True)
    return np.asarray(values - np.log(np.exp(values).sum(axis=1, keepdims=True)))


def _sample_table(table: EmbeddingTable, size: int) -> EmbeddingTable:
    rows = np.linspace(0, len(table) - 1, size).astype(np.int64)
    return EmbeddingTable.build(
        name=f"{table.name}, {size} words",
        words=[table.words[i] for i in rows.tolist()],
        vectors=table.take(rows),
        metric=table.metric,
    )


def _compute_scores(options: ComputeOptions, table: EmbeddingTable, utility: Hybrid) -> Values:
    """Computes scores [m, V] of all candidates at private words of SST-2.

    The words are the first that are in the table.
    """
    name = "opinions" if options.scale == "quick" else "sst2"
    data: DataSet = load(SweepData(name=name), POSITIONS_BY_SCALE["full"], options.places)
    ragged = Ragged.build(tokenize([text for example in data.examples for text in example.texts]))
    table_rows = table.find(list(ragged.words))
    private = [
        i for i, word in enumerate(ragged.words) if table_rows[i] >= 0 and not is_public(word)
    ]
    positions = np.array(private[: POSITIONS_BY_SCALE[options.scale]])
    expected = load_context(table).compute_logits(ragged, positions)
    return utility.score_rows(table, table_rows[positions], expected).get_values()
