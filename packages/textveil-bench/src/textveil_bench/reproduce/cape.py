"""Tables of Cape's paper that are not sweeps: vocabularies, statements, the long tail, logits and distances.

In: public tables, the bundled language model, texts of SST-2. Out: tables of plain values.
Not here: sweeps (`conf/reproduce/cape-*.yaml`), and the cost of mechanisms (`costs`).
"""

import numpy as np

from textveil.mechanism import Bucketized, Context, Hybrid, Layout, cape, losses
from textveil.models import Ragged, load_context
from textveil.randomness import Values
from textveil.table import EmbeddingTable, load_table
from textveil.text import is_public, tokenize
from textveil_bench.examples import DataSet
from textveil_bench.reproduce.computed import ComputeOptions, Drawing, Table, Value
from textveil_bench.run import load
from textveil_bench.spec import SweepData

TABLE = "minilm-s"
NOMINALS = (1.0, 2.0, 3.0, 6.0, 10.0, 14.0, 20.0)
"""The epsilons of the paper's tables."""

TAILS = (1e-5, 1e-4, 1e-3, 1e-2)
"""Probabilities below which a candidate counts as part of the long tail."""

TAIL = 1e-4
"""The one in figure 4."""

BEST = 20
POSITIONS = {"quick": 8, "usual": 100, "full": 400}
"""Private words of SST-2 at which distributions are computed."""

SLICE = 1000
"""Words of a table small enough to compute the paper's bound, and the exact loss at any epsilon, in seconds."""

PROMPT, AT = "This is a good book.", "book"
"""The example of appendix B.7, and its word of interest."""

BINS = 16


def vocabularies(asked: ComputeOptions) -> Table:
    """The number of words in each packaged table, and their largest distance."""
    rows = []
    for name in ("minilm-wordpiece", "minilm", "minilm-s"):
        raw, unit = (load_table(name, metric=metric) for metric in ("euclidean", "chord"))
        rows.append((name, len(raw), float(raw.diameter), float(unit.diameter)))
    return Table(
        title="The packaged tables",
        columns=("table", "words", "largest distance, raw rows", "largest distance, unit rows"),
        rows=tuple(rows),
        notes=(
            "minilm-wordpiece has the pieces of bert-base-uncased, without special and unused ones.",
        ),
    )


def statements(asked: ComputeOptions) -> Table:
    """The paper's label, the paper's bound and the statement for the same mechanism."""
    table = load_table(TABLE)
    few = _slice(
        load_table(TABLE, metric="euclidean"), SLICE if asked.scale != "quick" else SLICE // 10
    )
    utility, rule = Hybrid(), Bucketized()
    nominals = np.array([0.0, 0.1, *NOMINALS])
    claimed = rule.published(few, utility, nominals)
    assert claimed is not None, "the slice is small"
    columns = [nominals, claimed, losses(few, utility, rule, nominals)]
    for context in ("none", "public"):
        mechanism = cape(nominal=1.0, context=context)
        columns.append(
            np.array(
                [mechanism.spend(table, Layout.of(1), np.array([each]))[0] for each in nominals]
            )
        )
    ten = cape(nominal=1.0, context="original")
    columns.append(
        np.array([ten.spend(table, Layout.of(10), np.full(10, each))[0] for each in nominals])
    )
    return Table(
        title="Cape's nominal epsilon, and what is known of a word's true one",
        columns=(
            "nominal",
            f"theorem 4.1, {len(few):,} words",
            f"true, {len(few):,} words",
            f"true, {TABLE}, no context",
            f"at most, {TABLE}, any fixed context",
            f"at most, {TABLE}, context original, 10 private words",
        ),
        rows=tuple(tuple(row) for row in np.array(columns).T.tolist()),
        notes=(
            "In the context of the original text one word is looked at wherever another one is drawn.",
        ),
    )


def tail(asked: ComputeOptions) -> Table:
    """The share of probability on unlikely candidates, for the exponential mechanism and for buckets."""
    utility, rule = Hybrid(context=Context(mode="original")), Bucketized()
    table = load_table(TABLE)
    scores = _scores(asked, table, utility)
    cut = rule.cut(table, utility, scores)
    order = np.argsort(-scores, axis=1)[:, :BEST]
    rows: list[tuple[Value, ...]] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for nominal in NOMINALS:
        rate = rule.rate(table, utility, np.full(len(scores), nominal))
        laws = {
            "exponential": _log_softmax(rate[:, None] * scores),
            f"{rule.buckets} buckets": rule.log_probs(cut, rate),
        }
        for name, logs in laws.items():
            law = np.exp(logs)
            best = float(np.take_along_axis(law, order, axis=1).sum(axis=1).mean())
            rows.append(
                (nominal, name, *(float(law[law <= most].sum() / len(law)) for most in TAILS), best)
            )
            low = float(law[law <= TAIL].sum() / len(law))
            lines.setdefault(f"{name}: candidates up to {TAIL:g}", []).append((nominal, low))
            lines.setdefault(f"{name}: the {BEST} best", []).append((nominal, best))
        asked.report("laws", len(rows) // 2, len(NOMINALS))
    ceiling = BEST * np.exp(NOMINALS[3] / 2) / (BEST * np.exp(NOMINALS[3] / 2) + len(table) - BEST)
    return Table(
        title=f"Probability of unlikely candidates, mean over {len(scores)} private words of SST-2",
        columns=(
            "nominal",
            "rule",
            *(f"of candidates up to {most:g}" for most in TAILS),
            f"of the {BEST} with the best scores",
        ),
        rows=tuple(rows),
        notes=(
            f"Under the exponential mechanism {BEST} of {len(table):,} candidates have at most {ceiling:.3f} together "
            f"at epsilon {NOMINALS[3]:g}, whatever the scores.",
        ),
        drawing=Drawing(
            x="nominal epsilon",
            y="share of the probability",
            lines={name: tuple(points) for name, points in lines.items()},
        ),
    )


def logits(asked: ComputeOptions) -> Table:
    """The distribution of all candidates' logits at one word of the paper's example."""
    table = load_table(TABLE)
    model = load_context(table)
    ragged = Ragged.of(tokenize([PROMPT]))
    values = model.logits(ragged, np.array([ragged.words.index(AT)]))[0].astype(np.float64)
    return _histogram(
        f"Logits of {model.name} at the hidden word of the example", "logit", values, table
    )


def distances(asked: ComputeOptions) -> Table:
    """The distribution of all candidates' distances from that word."""
    table = load_table(TABLE, metric="euclidean")
    values = table.distances(table.find([AT]))[0]
    return _histogram(
        "Euclidean distances of candidates from the hidden word of the example",
        "distance",
        values,
        table,
    )


def _histogram(title: str, what: str, values: Values, table: EmbeddingTable) -> Table:
    counts, edges = np.histogram(values, BINS)
    own = values[table.row_of[AT]]
    below = (
        f"; {np.mean(values <= 0):.1%} of the values are not above 0" if values.min() < 0 else ""
    )
    return Table(
        title=title,
        columns=(f"{what} from", "to", "candidates"),
        rows=tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)),
        notes=(
            f"The word itself has {own:.3g}; median {np.median(values):.3g}, smallest {values.min():.3g}, largest "
            f"{values.max():.3g}{below}.",
        ),
        drawing=Drawing(
            x=what,
            y=f"candidates, in bins of {edges[1] - edges[0]:.2g}",
            lines={
                what: tuple(
                    zip(((edges[:-1] + edges[1:]) / 2).tolist(), counts.tolist(), strict=True)
                )
            },
        ),
    )


def _log_softmax(values: Values) -> Values:
    values = values - values.max(axis=1, keepdims=True)
    return np.asarray(values - np.log(np.exp(values).sum(axis=1, keepdims=True)))


def _slice(table: EmbeddingTable, size: int) -> EmbeddingTable:
    rows = np.linspace(0, len(table) - 1, size).astype(np.int64)
    return EmbeddingTable.build(
        name=f"{table.name}, {size} words",
        words=[table.words[i] for i in rows.tolist()],
        vectors=table.take(rows),
        metric=table.metric,
    )


def _scores(asked: ComputeOptions, table: EmbeddingTable, utility: Hybrid) -> Values:
    """Scores [m, V] of all candidates at the first private words of SST-2 that are in the table."""
    name = "opinions" if asked.scale == "quick" else "sst2"
    data: DataSet = load(SweepData(name=name), POSITIONS["full"], asked.places)
    ragged = Ragged.of(tokenize([text for example in data.examples for text in example.texts]))
    found = table.find(list(ragged.words))
    private = [i for i, word in enumerate(ragged.words) if found[i] >= 0 and not is_public(word)]
    positions = np.array(private[: POSITIONS[asked.scale]])
    expected = load_context(table).logits(ragged, positions)
    return utility.given(table, found[positions], expected).values()
