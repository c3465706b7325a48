"""Training of a codebook: word features from public texts, and weighted k-means.

In: a table, public texts, perhaps with labels. Out: a `Book`.
Not here: the book and its file (`codebook`); which texts are public: the caller vouches for them.

Words are alike by three blocks of features. Their vectors: the table's rows. Their co-occurrence:
positive pointwise mutual information with frequent words around them, in few axes. Their labels:
smoothed log-odds. A block counts as much as its factor says, whatever its numbers are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from textveil.errors import ConfigError, InputError
from textveil.randomness import Draws, Flags, Floats, Ids, SeededRandomness, Values
from textveil.table.codebook import MAX_CODES, Book, BookKind, compute_fingerprints, hash_words
from textveil.table.embedding import EmbeddingTable
from textveil.table.quantized import compute_norms
from textveil.table.row_frequency import compute_shares, compute_shares_from
from textveil.text import is_public, tokenize

Progress = Callable[[str, int, int], None]

WINDOW = 5
"""Context words on each side of a word, without public ones."""

CONTEXTS = 2048
"""Number of the most frequent words that serve as contexts.

185 MB for 22,580 words.
"""

AXES = 64
"""Axes of the co-occurrence features."""

SHRINKAGE, CONTEXT_EXPONENT = 20.0, 0.75
"""Shrinkage of rare words' features, and the exponent of context frequencies.

With `SHRINKAGE` occurrences the observed features of a word count half, and the prediction from its
vector the other half. `CONTEXT_EXPONENT` is the power of the frequency of context words.
"""

RIDGE = 0.1
"""Ridge of the regression that predicts unseen features from vectors.

Relative to the mean variance of the vectors.
"""

PRIOR = 10.0
"""Pseudo-occurrences of each word, distributed like the labels of all words."""

COOCCURRENCE_WEIGHT, LABEL_WEIGHT = 3.0, 4.0
"""Weights of the co-occurrence and label features, relative to the vectors."""

MAX_ROUNDS, RESTARTS, MAX_RESTART_CODES = 40, 3, 1000
"""Limits of k-means: rounds, restarts, and the size without restarts.

The best of the restarts is kept. Books of more than `MAX_RESTART_CODES` codes start once: there one
start is
within .5% of another.
"""

TYPICAL_CANDIDATES = 20
"""Number of a code's most frequent words that may spell it.

The one nearest to their centre is taken.
"""

MAX_DISTANCE_CELLS = 1 << 22
"""Distances held in memory at once: 16 MiB."""

BATCH_TEXTS = 1000
"""Texts tokenized at once."""


@dataclass(kw_only=True, eq=False)
class Corpus:
    """Public texts as rows of a table, word counts and fingerprints.

    Nothing else of the texts is kept.

    Attributes:
        rows: int32, the words of all texts in order, but for those of the public list and those
            outside the table.
        starts: where each text starts, and where the last ends.
        word_counts: how often each word occurs.
        fingerprints: the fingerprints of the texts.
    """

    rows: NDArray[np.int32] = field(repr=False)
    starts: Ids = field(repr=False)
    word_counts: Counter[str] = field(repr=False)
    fingerprints: NDArray[np.uint64] = field(repr=False)

    @classmethod
    def read(cls, table: EmbeddingTable, texts: Iterable[str], report: Progress) -> "Corpus":
        """Reads the texts, in one pass.

        Raises:
            InputError: they hold no word of the table.
        """
        row_of: dict[str, int] = {}
        rows: list[NDArray[np.int32]] = []
        sizes, word_counts, fingerprints = [0], Counter[str](), []
        for batch in _split_batches(texts):
            words = [[word.lower() for word in tokenize([text]).words] for text in batch]
            new = list({word: None for word in chain.from_iterable(words) if word not in row_of})
            table_rows = table.find(new).tolist()
            row_of.update(
                (word, -1 if is_public(word) else row)
                for word, row in zip(new, table_rows, strict=True)
            )
            for text_words in words:
                word_counts.update(text_words)
                text_rows = np.fromiter(
                    (row_of[word] for word in text_words), np.int32, len(text_words)
                )
                rows.append(text_rows[text_rows >= 0])
                sizes.append(len(rows[-1]))
            fingerprints.append(compute_fingerprints(batch))
            report("reading", len(sizes) - 1, 0)
        if not sum(sizes):
            raise InputError(
                "the public texts hold no word of the table that is not on the public list"
            )
        return cls(
            rows=np.concatenate(rows),
            starts=np.cumsum(sizes),
            word_counts=word_counts,
            fingerprints=np.unique(np.concatenate(fingerprints)),
        )

    @property
    def text(self) -> Ids:
        """The number of the text of each word."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def make_books(  # noqa: PLR0913 - most are options, given by keyword
    table: EmbeddingTable,
    sizes: Sequence[int],
    *,
    kind: BookKind,
    source: str,
    texts: Iterable[str] = (),
    labels: Sequence[Sequence[str]] = (),
    seed: int = 0,
    head: float | None = None,
    levels: Sequence[int] = (),
    report: Progress = lambda step, done, total: None,
) -> Iterator[Book]:
    """Trains books for a table, one for each number of codes.

    All are made from the same texts.

    Args:
        table: of whole words.
        sizes: numbers of codes, 2 or more; one book for each.
        kind: `general`: words count by their frequency in general public text; `domain` and `task`:
            by that in these texts.
        source: what the book is made from, in one line; it is part of every statement.
        texts: public texts; none are needed for a general book, which then follows from the vectors
            alone.
        labels: for a task, one or more lists with the label of each text, "" where it has none.
        seed: of the starts of k-means.
        head: the largest share of a code that one word may have: a code with a more frequent word
            is joined with the nearest code, so that the book has fewer codes. None: no limit.
        levels: for nested books, the sizes of their coarser levels, rising and all below the number
            of codes: the codes of each level are parts of those of the level before. The coarsest
            is the book that it would be alone.
        report: called with the progress.

    Raises:
        ConfigError: the number of codes, the levels or the share are impossible, or labels are
            missing.
        InputError: the texts hold no word of the table.
    """
    if table.parent is not None or table.holds_pieces:
        raise ConfigError("a book needs a table of whole words that is not a view of another table")
    for codes in sizes:
        _check_sizes(table, codes, levels)
    if head is not None and not 0 < head < 1:
        raise ConfigError(
            f"the largest share of a word in its code must be above 0 and below 1, got {head:g}"
        )
    if (kind == "task") != bool(labels):
        raise ConfigError(
            "a book of a task needs labels, and other books take no labels: give both or neither"
        )
    general = compute_shares(table)
    public_texts = list(texts)
    if kind != "general" and not public_texts:
        raise InputError("a book of a domain or a task needs public texts, and none were given")
    corpus = Corpus.read(table, public_texts, report) if public_texts else None
    word_shares = (
        general
        if kind == "general" or corpus is None
        else compute_shares_from(table, corpus.word_counts)
    )
    weights = np.sqrt(word_shares)
    features = _build_features(table, corpus, labels, weights, report)
    options = {
        "seed": seed,
        "head": head,
        "texts": len(public_texts),
        "words": 0 if corpus is None else len(corpus.rows),
        "labels": [len({*text_labels} - {""}) for text_labels in labels],
    }

    def build_book(codes: int, code: Ids, centres: Values, coarser: tuple[Book, ...] = ()) -> Book:
        order = np.argsort(-np.bincount(code, word_shares, minlength=len(centres)), kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        code, centres = place[code], centres[order]
        return Book(
            kind=kind,
            source=source,
            table=table.name,
            words=hash_words(table.words),
            codes=code.astype(np.uint16),
            spelling=_find_typical(code, centres, features, word_shares),
            masses=np.bincount(code, general, minlength=len(centres)).astype(np.float32),
            heads=_compute_heads(code, general, len(centres)),
            domain_heads=None
            if kind == "general"
            else _compute_heads(code, word_shares, len(centres)),
            texts=np.empty(0, np.uint64) if corpus is None else corpus.fingerprints,
            options={**options, "asked": codes},
            coarser=coarser,
        )

    def find_clusters(words: slice | Ids, codes: int, least: int = 2) -> tuple[Ids, Values]:
        code, centres = _cluster(features[words], weights[words], codes, seed, report)
        if head is None:
            return code, centres
        return _join(
            code, centres, weights[words], [general[words], word_shares[words]], head, least
        )

    for codes in sizes:
        code, centres = find_clusters(slice(None), [*levels, codes][0])
        coarser: list[Book] = []
        for size in [*levels, codes][1:]:
            coarser.append(build_book(codes, code, centres))
            code, centres = _split(
                code, centres, features, weights, size, partial(find_clusters, least=1)
            )
            if len(centres) <= len(coarser[-1]):
                raise ConfigError(
                    "levels of a nested book must have more and more codes, but only "
                    f"{len(centres):,} of {size:,} codes are left when no word is more than "
                    "its share of a code, no more than at the level before: leave one level "
                    "out"
                )
        yield build_book(codes, code, centres, tuple(coarser))


def _check_sizes(table: EmbeddingTable, codes: int, levels: Sequence[int]) -> None:
    if not 2 <= codes <= min(len(table), MAX_CODES):
        raise ConfigError(
            f"a book has from 2 to {min(len(table), MAX_CODES):,} codes for this table, got {codes}"
        )
    if list(levels) != sorted({*levels}) or not all(2 <= size < codes for size in levels):
        raise ConfigError(
            f"levels of a nested book must be increasing numbers from 2 to {codes - 1:,}, "
            f"because it has {codes:,} codes, got {', '.join(map(str, levels))}"
        )


def _split_batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == BATCH_TEXTS:
            yield batch
            batch = []
    if batch:
        yield batch


# ---- features ------------------------------------------------------------------------------------


def _build_features(
    table: EmbeddingTable,
    corpus: Corpus | None,
    labels: Sequence[Sequence[str]],
    weights: Values,
    report: Progress,
) -> Floats:
    """Builds the features by which words are clustered: float32 [V, d].

    The vectors, then the labels' features if there are labels, otherwise those of co-occurrence.
    """
    blocks = [_scale(_normalize_rows(table), weights, 1.0)]
    if corpus is not None and not labels:
        blocks.append(
            _scale(_compute_cooccurrence(table, corpus, report), weights, COOCCURRENCE_WEIGHT)
        )
    for text_labels in labels:
        assert corpus is not None, "there are texts"
        blocks.append(
            _scale(
                _compute_label_odds(table, corpus, text_labels), weights, LABEL_WEIGHT / len(labels)
            )
        )
    return np.concatenate(blocks, axis=1)


def _normalize_rows(table: EmbeddingTable) -> Floats:
    rows = table.take(slice(None))
    return np.asarray(
        rows / np.maximum(compute_norms(rows.astype(np.float64)), 1e-12)[:, None], np.float32
    )


def _scale(block: Floats, weights: Values, factor: float) -> Floats:
    """Centres a block of features and scales it to a total variance.

    Words are weighted; `factor` is the variance.
    """
    share = weights / weights.sum()
    block = block - (share @ block).astype(np.float32)
    size = float(share @ np.einsum("ij,ij->i", block, block, dtype=np.float64))
    return np.asarray(block * np.sqrt(factor / max(size, 1e-12)), np.float32)


def _compute_cooccurrence(table: EmbeddingTable, corpus: Corpus, report: Progress) -> Floats:
    """Computes co-occurrence features: float32 [V, AXES].

    Principal axes of the positive pointwise mutual information.
    """
    occurs = np.bincount(corpus.rows, minlength=len(table))
    frequent = np.argsort(-occurs, kind="stable")[: min(CONTEXTS, int((occurs > 0).sum()))]
    column = np.full(len(table), -1, np.int64)
    column[frequent] = np.arange(len(frequent))
    counts = np.zeros(len(table) * len(frequent), np.float32)
    rows, text = corpus.rows.astype(np.int64), corpus.text
    for step in range(1, WINDOW + 1):
        report("words around words", step - 1, WINDOW)
        near = text[step:] == text[:-step]
        first, second = rows[:-step][near], rows[step:][near]
        for centre, context in ((first, second), (second, first)):
            listed = column[context] >= 0
            np.add.at(
                counts, centre[listed] * len(frequent) + column[context[listed]], np.float32(1)
            )
    table_of = counts.reshape(len(table), len(frequent))
    row_sums = table_of.sum(axis=1, dtype=np.float64)
    column_sums = table_of.sum(axis=0, dtype=np.float64) ** CONTEXT_EXPONENT
    column_sums /= max(column_sums.sum(), 1e-12)  # there may be no pair of words at all
    gram = np.zeros((len(frequent), len(frequent)))
    for start in range(0, len(table), 1024):
        part = table_of[start : start + 1024]
        expected = np.maximum(row_sums[start : start + 1024, None] * column_sums, 1e-12)
        with np.errstate(divide="ignore"):
            part[...] = np.maximum(np.log(part / expected), 0)
        gram += part.T @ part
    # The axes of a small Gram matrix: no singular value decomposition of [V, CONTEXTS] is needed.
    values, axes = np.linalg.eigh(gram)
    rank = max(1, min(AXES, len(frequent) // 8))  # of few words, most axes are noise
    # Eigenvalues are squared singular values: features keep the root of a singular value.
    last = axes[:, ::-1][:, :rank] / np.maximum(values[::-1][:rank], 1e-9) ** 0.25
    projected = _normalize((table_of @ last.astype(np.float32)).astype(np.float64))
    sure = (occurs / (occurs + SHRINKAGE))[:, None]
    return _normalize(
        sure * projected + (1 - sure) * _normalize(_predict(table, projected, sure))
    ).astype(np.float32)


def _normalize(rows: Values) -> Values:
    unit: Values = rows / np.maximum(compute_norms(rows), 1e-9)[:, None]
    return unit


def _predict(table: EmbeddingTable, observed: Values, sure: Values) -> Values:
    """Predicts features [V, k] of words from their vectors, by ridge regression.

    The features were observed with some certainty [V, 1].
    """
    rows = _normalize_rows(table).astype(np.float64)
    weighted = rows * sure
    gram = weighted.T @ rows
    gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) / len(gram) + 1e-9
    predicted: Values = rows @ np.linalg.solve(gram, weighted.T @ observed)
    return predicted


def _compute_label_odds(table: EmbeddingTable, corpus: Corpus, labels: Sequence[str]) -> Floats:
    """Computes label features of words: float32 [V, L].

    ln of a label's share among a word's occurrences over its share among all.
    """
    if len(labels) != len(corpus.starts) - 1:
        raise InputError("there must be a label, or an empty one, for each of the public texts")
    names = sorted({*labels} - {""})
    if len(names) < 2:
        raise InputError(f"a book of a task needs texts of two labels at least, got {len(names)}")
    number = {name: i for i, name in enumerate(names)}
    text_labels = np.array([number.get(label, -1) for label in labels])[corpus.text]
    rows, word_labels = (
        corpus.rows[text_labels >= 0].astype(np.int64),
        text_labels[text_labels >= 0],
    )
    flat = np.bincount(rows * len(names) + word_labels, minlength=len(table) * len(names))
    counts = flat.reshape(len(table), len(names)).astype(np.float64)
    usual = counts.sum(axis=0) + 1
    usual /= usual.sum()
    occurrences = counts.sum(axis=1, keepdims=True)
    odds = np.log((counts + PRIOR * usual) / (occurrences + PRIOR) / usual)
    sure = occurrences / (occurrences + SHRINKAGE)
    return np.asarray(odds + (1 - sure) * _predict(table, odds, sure), np.float32)


# ---- clusters ------------------------------------------------------------------------------------


def _cluster(
    features: Floats, weights: Values, codes: int, seed: int, report: Progress
) -> tuple[Ids, Values]:
    """Runs weighted k-means from some starts and keeps the best run.

    Returns the cluster of each word [V], and the centres [C, d].
    """
    starts = RESTARTS if codes <= MAX_RESTART_CODES else 1
    streams = SeededRandomness(seed).open([starts])
    best: tuple[float, Ids, Values] | None = None
    for start, (_, draws) in enumerate(streams.split_rows(1)):
        report("codes", start, starts)
        run = _run_k_means(features, weights, _draw_centres(features, weights, codes, draws))
        if best is None or run[0] < best[0]:
            best = run
    assert best is not None, "it starts once at least"
    return best[1], best[2]


def _split(
    code: Ids,
    centres: Values,
    features: Floats,
    weights: Values,
    codes: int,
    find_clusters: Callable[[Ids, int], tuple[Ids, Values]],
) -> tuple[Ids, Values]:
    """Splits clusters into finer ones: the cluster of each word, and centres.

    Each additional code goes to the cluster whose weighted sum of squares per code is largest.
    """
    gaps = features - centres.astype(np.float32)[code]
    spread = np.bincount(code, weights * np.einsum("ij,ij->i", gaps, gaps), minlength=len(centres))
    sizes, parts = np.bincount(code), np.ones(len(centres), np.int64)
    while parts.sum() < codes:
        parts[np.where(parts < sizes, spread / parts, -1.0).argmax()] += 1
    now, finer_centres = np.empty_like(code), np.empty((0, centres.shape[1]))
    for cluster, many in enumerate(parts.tolist()):
        words = np.flatnonzero(code == cluster)
        part, means = find_clusters(words, many)
        now[words] = part + len(finer_centres)
        finer_centres = np.concatenate([finer_centres, means])
    return now, finer_centres


def _draw_centres(features: Floats, weights: Values, codes: int, draws: Draws) -> Values:
    """Draws initial centres, as k-means++ does.

    Words are drawn with their weight times the squared distance to the nearest centre drawn before.
    """
    chance = draws.uniform(codes)[0]
    squares = np.einsum("ij,ij->i", features, features)
    away, is_available = np.full(len(features), np.inf), np.ones(len(features), np.bool_)
    centre_words = np.empty(codes, np.int64)
    for at, threshold in enumerate(chance.tolist()):
        mass = np.cumsum(weights * (away if at else 1.0))
        # Rounding may put the threshold past the last word.
        word = min(
            int(np.searchsorted(mass, threshold * mass[-1], side="right")), len(features) - 1
        )
        centre_words[at] = (
            word if mass[-1] > 0 else is_available.argmax()
        )  # fewer different words than codes
        is_available[centre_words[at]] = False
        last = features[centre_words[at]]
        near = squares - 2 * (features @ last) + last @ last
        away = np.minimum(away, np.maximum(near, 0)) * is_available
    return features[centre_words].astype(np.float64)


def _run_k_means(features: Floats, weights: Values, centres: Values) -> tuple[float, Ids, Values]:
    """Runs Lloyd's algorithm from these centres.

    Returns the weighted sum of squares, the cluster of each word, and the centres.
    """
    now, gap = _find_nearest(features, centres)
    code = np.full_like(now, -1)
    for _ in range(MAX_ROUNDS):
        _fill_empty(now, gap, weights, len(centres))
        if np.array_equal(now, code):
            break
        changed = now != code
        moved = (
            np.bincount(
                np.concatenate([now[changed], code[changed & (code >= 0)]]), minlength=len(centres)
            )
            > 0
        )
        code, centres, affected = now, centres.copy(), np.flatnonzero(moved[now])
        centres[moved] = _compute_centres(
            features[affected],
            weights[affected],
            (np.cumsum(moved) - 1)[code[affected]],
            int(moved.sum()),
        )
        now, gap = _update_nearest(features, centres, code, gap, moved)
    squares = np.einsum("ij,ij->i", features, features, dtype=np.float64)
    return float(weights @ (gap + squares)), code, centres


def _fill_empty(code: Ids, gap: Floats, weights: Values, codes: int) -> None:
    """Gives each empty code a word that is far from its centre.

    The word must not be alone in its code.
    """
    sizes = np.bincount(code, minlength=codes)
    for empty in np.flatnonzero(sizes == 0).tolist():
        far = int(np.argmax(np.where(sizes[code] > 1, weights * np.maximum(gap, 0), -1.0)))
        sizes[code[far]] -= 1
        sizes[empty] = 1
        code[far], gap[far] = empty, 0.0


def _update_nearest(
    features: Floats, centres: Values, code: Ids, gap: Floats, moved: Flags
) -> tuple[Ids, Floats]:
    """Updates the nearest centres after some of them have moved.

    Where a word's centre came no farther, no centre that stood still is nearer.
    """
    current = np.einsum("ij,ij->i", centres, centres)[code] - 2 * np.einsum(
        "ij,ij->i", features, centres[code]
    )
    now, near = code.copy(), current.astype(np.float32)
    # Where the own centre is farther now, any centre may be nearer; else only one that moved.
    for which, among in ((near > gap, np.ones_like(moved)), (near <= gap, moved)):
        words, rows = np.flatnonzero(which), np.flatnonzero(among)
        closer, reached = _find_nearest(features[words], centres[rows])
        nearer = reached < near[words]
        now[words[nearer]], near[words[nearer]] = rows[closer[nearer]], reached[nearer]
    return now, near


def _find_nearest(features: Floats, centres: Values) -> tuple[Ids, Floats]:
    """Finds the nearest of C centres to each word [V].

    Also returns the squared distance [V] minus the word's squared norm.
    """
    nearest, gap = np.zeros(len(features), np.int64), np.full(len(features), np.inf, np.float32)
    if not len(centres):
        return nearest, gap
    turned = (-2 * centres.T).astype(np.float32)
    squares = np.einsum("ij,ij->i", centres, centres).astype(np.float32)
    size = max(1, MAX_DISTANCE_CELLS // len(centres))
    for start in range(0, len(features), size):
        gaps = features[start : start + size] @ turned
        gaps += squares
        nearest[start : start + size] = gaps.argmin(axis=1)
        gap[start : start + size] = gaps.min(axis=1)
    return nearest, gap


def _compute_centres(features: Floats, weights: Values, code: Ids, codes: int) -> Values:
    order = np.argsort(code, kind="stable")
    sorted_codes = code[order]
    starts = np.searchsorted(sorted_codes, np.arange(codes))
    sums = np.add.reduceat(features[order] * weights[order, None], starts, axis=0)
    mass = np.bincount(code, weights, minlength=codes)
    means: Values = sums / mass[:, None]
    return means


def _compute_heads(code: Ids, prior: Values, codes: int) -> Floats:
    """Returns the share of the likeliest word in each code, float32 [C]."""
    share = _find_highest(code, prior, codes) / np.bincount(code, prior, minlength=codes)
    # Two sums of the same numbers may round differently, to a share above 1.
    return np.minimum(share, 1).astype(np.float32)


def _find_highest(code: Ids, prior: Values, codes: int) -> Values:
    """Returns the probability of the likeliest word in each code [C]."""
    highest = np.zeros(codes)
    np.maximum.at(highest, code, prior)
    return highest


def _join(
    code: Ids,
    centres: Values,
    weights: Values,
    priors: Sequence[Values],
    head: float,
    min_codes: int = 2,
) -> tuple[Ids, Values]:
    """Joins codes with their nearest until no word exceeds its share.

    It stops when one code is left.

    Raises:
        ConfigError: `min_codes` codes are left, and a word still exceeds its share.
    """
    mass = np.bincount(code, weights, minlength=len(centres))
    sums = np.array([np.bincount(code, prior, minlength=len(centres)) for prior in priors])
    highest = np.array([_find_highest(code, prior, len(centres)) for prior in priors])
    # `now`: the code that each code was joined into
    centres, now = centres.copy(), np.arange(len(centres))
    is_active = np.ones(len(centres), np.bool_)
    while True:
        shares = (highest / sums).max(axis=0) * is_active
        worst = int(shares.argmax())
        if shares[worst] <= head or is_active.sum() == 1:
            number = np.cumsum(is_active) - 1
            return number[now[code]], centres[is_active]
        if is_active.sum() <= min_codes:
            raise ConfigError(
                "no book of two codes or more keeps the share of each word in its code below "
                f"{head:g}: allow a larger share"
            )
        is_active[worst] = False
        # Without the worst centre's own square, which is the same for all.
        away = np.einsum("ij,ij->i", centres, centres) - 2 * (centres @ centres[worst])
        other = int(np.where(is_active, away, np.inf).argmin())
        now[now == worst] = other
        centres[other] = np.average(centres[[other, worst]], axis=0, weights=mass[[other, worst]])
        mass[other] += mass[worst]
        sums[:, other] += sums[:, worst]
        highest[:, other] = np.maximum(highest[:, other], highest[:, worst])


def _find_typical(code: Ids, centres: Values, features: Floats, prior: Values) -> Ids:
    """Finds each code's typical word, int64 [C].

    Of its most frequent words the one nearest to the centre.
    """
    typical = np.empty(len(centres), np.int64)
    for cluster in range(len(centres)):
        members = np.flatnonzero(code == cluster)
        members = members[np.argsort(-prior[members], kind="stable")][:TYPICAL_CANDIDATES]
        gaps = features[members].astype(np.float64) - centres[cluster]
        typical[cluster] = members[np.einsum("ij,ij->i", gaps, gaps).argmin()]
    return typical
