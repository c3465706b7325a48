"""Measures releases of whole texts beside words, the originals and eps 0. Part of `make bench` (`--only texts`).

In: the folder of corpora that $TEXTVEIL_CORPORA names. Out: rows for `run.py`, one for each release.
Not here: how a release is scored (`textveil_bench.choose.whole_texts`), and the tables (`whole_texts_page`).

Everything is drawn by fixed seeds, three of them; what follows ± are 1.96 standard errors over draws, and not over the
texts that are judged. Those are the halves of test sets that everybody has. Vectors are kept in build/whole_texts, so
that each text is encoded once.
"""

import gzip
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from textveil_bench.choose.whole_texts import (
    LABELS,
    READ_WORDS,
    TOPICS,
    TRAINED_WORDS,
    LabelledTexts,
    OriginalJudges,
    RememberedVectors,
    Scores,
    WholeTexts,
    compute_distance,
    learn_words,
    release_local,
    score_training,
)
from textveil_bench.trials import FIELD_SEPARATOR

ROOT = Path(__file__).resolve().parents[3]
VECTORS = ROOT / "build" / "whole_texts"

SEEDS = (1, 2, 3)
DEAL_SEED = 0
SPLITS = {"AG News": 11_000, "SST-2": 8_000, "Yelp": 2_500, "Yelp, good or bad": 2_500}
"""Texts of the training split that are private; the others are the library."""

MOST_PUBLIC = 12_000
MIN_WORDS = 8
"""The shortest sentences of SST-2 that are taken."""

TRAINED_N = 1_000
"""Private documents of the main rows."""

WORD_TEXTS = {"AG News": (1000, 500), "SST-2": (1000, 436), "Yelp, good or bad": (200, 200)}
"""Texts that are released word by word to train on, and to be read."""

CLASSES = {
    "AG News": {
        "World": "News about countries: governments, elections, wars and diplomacy.",
        "Sports": "News about sports: games, teams, players and championships.",
        "Business": "News about business: companies, markets, prices and profits.",
        "Sci/Tech": "News about science and technology: computers, software, the internet and space.",
    },
    "SST-2": {
        "negative": "A bad film, dull and disappointing.",
        "positive": "A good film, moving and enjoyable.",
    },
    "Yelp, good or bad": {
        "negative": "A bad place: rude service, and I will not come back.",
        "positive": "A great place: friendly service, and I will come back.",
    },
}
"""A plain sentence for each class."""

HOUSE_CLUSTERS, HOUSE_LABELS = 40, 3
GLOVE = "emb_glove840b_300d_11k"
MIXTURES = 5
PAIRS = 2_000
"""Pairs of QNLI that are private; half as many are judged."""

Row = dict[str, Any]


# ---- data ----------------------------------------------------------------------------------------


def find_corpora() -> Path:
    """The folder of corpora."""
    return Path(os.environ["TEXTVEIL_CORPORA"])


@cache
def remember() -> RememberedVectors:
    """The bundled encoder, with the vectors that it has made."""
    from textveil.library.features import compute_probes
    from textveil.models import load_sentences

    model = load_sentences()
    mark = sha256(compute_probes(model.encode).tobytes()).hexdigest()
    path = VECTORS / f"{mark[:16]}.vectors"
    return RememberedVectors(lambda: model, model.dimension, path)


@contextmanager
def encode_once() -> Iterator[None]:
    """Lets libraries use vectors that have been made."""
    from textveil.library import features, making

    with (
        mock.patch.object(making, "load_sentences", return_value=remember()),
        mock.patch.object(features, "load_sentences", return_value=remember()),
    ):
        yield


def collect(texts: Sequence[str], labels: Any) -> LabelledTexts:
    """Texts with labels."""
    return LabelledTexts(
        texts=tuple(texts), labels=np.array(labels, np.int64), encode=remember().encode
    )


@cache
def deal(name: str) -> tuple[tuple[str, ...], LabelledTexts, LabelledTexts, LabelledTexts]:
    """Names of the labels; private, public and judged texts, of which no two are equal."""
    from textveil.table import compute_fingerprint
    from textveil_bench.data import load

    source = {"AG News": "ag_news", "SST-2": "sst2", "Yelp": "yelp"}.get(name, "yelp-polarity")
    train, test = (
        load(source, split=split, folder=str(find_corpora())) for split in ("train", "test")
    )
    seen: set[int] = set()
    parts = []
    for data in (test, train):
        kept = []
        for example in data.examples:
            text = example.texts[0].strip()
            mark = compute_fingerprint(text)
            is_short = source == "sst2" and data is train and len(text.split()) < MIN_WORDS
            if text and not is_short and mark not in seen:
                seen.add(mark)
                kept.append((text, example.label))
        parts.append(collect(*zip(*kept, strict=True)))
    judged, rest = parts
    order = np.random.default_rng(DEAL_SEED).permutation(len(rest))
    private = min(SPLITS[name], len(rest) // 2) if "Yelp" in name else SPLITS[name]
    return (
        train.labels,
        rest.take(order[:private]),
        rest.take(order[private : private + MOST_PUBLIC]),
        judged,
    )


@cache
def read_wikipedia() -> LabelledTexts:
    """Sentences of Wikipedia, without labels."""
    with gzip.open(find_corpora() / "wikipedia_en" / "wiki_en.txt.gz", "rt") as file:
        articles = file.read().split("\n\n")
    found = {
        sentence.strip(): None
        for article in articles
        for line in article.split("\n")[1:]
        for sentence in re.split(r"(?<=[.!?])\s+", line)
        if 12 <= len(sentence.split()) <= 60
    }
    sentences = list(found)
    order = np.random.default_rng(DEAL_SEED).permutation(len(sentences))[:MOST_PUBLIC]
    return collect([sentences[i] for i in order.tolist()], np.zeros(len(order)))


@cache
def make(name: str, by: str = "", cells: str = "") -> Any:
    """A library of the public texts: by labels, by classes (of another data set's names), or by nothing."""
    from textveil.library import make_library

    kind, _, of = by.partition(" of ")
    public = read_wikipedia() if name == "Wikipedia" else deal(name)[2]
    options: dict[str, Any] = {"cells": cells} if cells else {}
    if kind == "labels":
        names = deal(name)[0]
        options["labels"] = [names[label] for label in public.labels]
    if kind == "classes":
        options["classes"] = CLASSES[of or name]
    return make_library(
        public.texts,
        source=f"{name}, public half",
        licence="as its makers say; for measuring only",
        name=name,
        **options,
    )


@cache
def learn_judges(name: str) -> OriginalJudges:
    """OriginalJudges trained on all originals of the private half."""
    return OriginalJudges.learn(deal(name)[1])


# ---- rows ----------------------------------------------------------------------------------------


def summarize(data: str, release: str, found: Sequence[Mapping[str, float]], **fields: Any) -> Row:
    """A row: the mean of each score over draws, and 1.96 standard errors."""
    scores: dict[str, list[float | None]] = {}
    for name in found[0]:
        values = np.array([each[name] for each in found])
        error = None if len(found) < 2 else float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))
        scores[name] = [round(float(values.mean()), 4), error and round(error, 4)]
    first = next(iter(scores))
    extra = {name: value for name, value in fields.items() if value is not None}
    told = [f"n {extra['n']:,}"] if "n" in extra else []
    told += [f"epsilon {extra['epsilon']:g}"] if "epsilon" in extra else []
    told += [extra["note"]] if "note" in extra else []
    return {
        "what": f"texts, {', '.join((data, release, *told))}",
        "unit": first,
        "value": scores[first][0],
        "scores": scores,
        "data": data,
        "release": release,
        "draws": len(found),
        **extra,
    }


def over_seeds(measure: Callable[[int], Scores]) -> list[Scores]:
    """The scores of each draw."""
    return [measure(seed) for seed in SEEDS]


def build(name: str, library: Any, n: int, seed: int, **options: Any) -> WholeTexts:
    """The ways of a release of n private texts, with a library."""
    names, private, _, judged = deal(name)
    return WholeTexts(
        library=library,
        private=private.draw(n, seed),
        judged=judged,
        names=names,
        judges=learn_judges(name),
        **options,
    )


@cache
def _fix(name: str, library: Any, n: int, options: tuple[tuple[str, Any], ...]) -> Any:
    """As `build`, of a sample for each seed, kept because the library is read again and again."""
    return {seed: build(name, library, n, seed, **dict(options)) for seed in SEEDS}


def originals(name: str, sizes: Sequence[int], library: Any, **options: Any) -> Iterator[Row]:
    """The originals, and who says the most frequent label."""
    for n in sizes:
        found = over_seeds(
            lambda seed, n=n: build(name, library, n, seed, **options).score_originals()
        )
        yield summarize(name, "originals", found, n=n)
    yield summarize(name, "majority", [build(name, library, 10, 1, **options).score_majority()])


def nothing(name: str, library: Any, told: str, **options: Any) -> Iterator[Row]:
    """What a library reaches without any private text."""
    for what, scores in build(name, library, TRAINED_N, SEEDS[0], **options).score_nothing():
        yield summarize(
            tell_data(name, library),
            f"eps 0, {what}",
            [scores],
            library=told,
            note=told,
            unit_of="none",
        )


def tell_data(name: str, library: Any) -> str:
    """The name of the data, with that of a library of other texts."""
    return name if library.name == name else f"{name}, from {library.name}"


def whole(
    way: str, name: str, library: Any, told: str, n: int, epsilon: float, **options: Any
) -> Row:
    """A release of one way: L, V or C."""
    score = {"L": "score_local", "V": "score_votes", "C": "score_count"}[way]
    fixed = {key: options.pop(key) for key in ("balanced", "vectors") if key in options}
    ways = _fix(name, library, n, tuple(fixed.items()))
    found = over_seeds(lambda seed: getattr(ways[seed], score)(epsilon, seed, **options))
    release = {"L": "texts in place (L)", "V": "votes (V)", "C": "one count (C)"}[way]
    level = options.get("level")
    return summarize(
        tell_data(name, library),
        release,
        found,
        n=n,
        epsilon=epsilon,
        library=told,
        unit_of="document",
        way=way,
        note=f"{told}, {level}" if level else told,
    )


def topics() -> Iterator[Row]:
    """AG News, with its own public half and with Wikipedia as libraries."""
    plain = make("AG News")
    labelled, described = make("AG News", "labels"), make("AG News", "classes")
    foreign = make("Wikipedia", "classes of AG News")
    yield from originals("AG News", (300, 1000, 3000, 11_000), plain)
    for library, told in (
        (labelled, "labels"),
        (described, "class sentences"),
        (foreign, "class sentences"),
    ):
        yield from nothing("AG News", library, told)
    for epsilon in (1, 2, 3, 4, 6):
        yield whole("L", "AG News", labelled, "labels", TRAINED_N, epsilon)
    for epsilon in (2, 4):
        yield whole("L", "AG News", described, "class sentences", TRAINED_N, epsilon)
        yield whole("L", "AG News", foreign, "class sentences", TRAINED_N, epsilon)
        yield whole("L", "AG News", plain, "clusters", TRAINED_N, epsilon)
    yield contained(plain, "clusters")
    yield contained(labelled, "labels")
    for n, epsilon in ((1000, 2), (1000, 4), (11_000, 1), (11_000, 2)):
        yield whole("V", "AG News", plain, "clusters", n, epsilon)
    for n in (300, 1000, 3000, 11_000):
        yield whole("C", "AG News", plain, "clusters", n, 1)
    yield whole("C", "AG News", described, "class sentences", 1000, 1)
    yield whole("C", "AG News", foreign, "class sentences", 1000, 1)
    yield whole("C", "AG News", foreign, "class sentences", 11_000, 1)


def contained(library: Any, told: str) -> Row:
    """Private content words that stand in the public text in their place (L, epsilon 4), and by chance."""
    ways = _fix("AG News", library, TRAINED_N, ())[SEEDS[0]]
    texts = ways.judged.texts[:1000]
    words = re.compile(r"[A-Za-z][A-Za-z'-]+")
    found = [set(words.findall(text.lower())) for text in library.texts]
    frequency: dict[str, int] = {}
    for each in found:
        for word in each:
            frequency[word] = frequency.get(word, 0) + 1
    rare = [
        {word for word in words.findall(text.lower()) if frequency.get(word, 0) < len(library) / 50}
        for text in texts
    ]
    names = [
        {word.lower() for word in words.findall(text)[1:] if word[0].isupper()} & own
        for text, own in zip(texts, rare, strict=True)
    ]

    def share(which: Any, own: Sequence[set[str]]) -> float:
        pairs = list(zip(which.tolist(), own, strict=True))
        return sum(len(found[i] & each) for i, each in pairs) / sum(len(each) for each in own)

    scores = []
    for seed in SEEDS:
        drawn = release_local(library, texts, 4, seed)
        chance = np.random.default_rng(seed).integers(len(library), size=len(texts))
        scores.append(
            {
                "content words": share(drawn, rare),
                "content words by chance": share(chance, rare),
                "names": share(drawn, names),
                "names by chance": share(chance, names),
            }
        )
    return summarize(
        "AG News",
        "words of the private text in L",
        scores,
        epsilon=4,
        way="L",
        note=told,
        library=told,
    )


def opinions() -> Iterator[Row]:
    """SST-2 and Yelp: sentiment, which clusters of topics do not see."""
    for name in ("SST-2", "Yelp, good or bad", "Yelp"):
        options = {"balanced": True} if name == "Yelp" else {}
        labelled = make(name, "labels")
        yield from originals(name, (1000, SPLITS[name]), labelled, **options)
        yield from nothing(name, labelled, "labels", **options)
        if name in CLASSES:
            described = make(name, "classes")
            yield from nothing(name, described, "class sentences")
            yield whole("C", name, described, "class sentences", 1000, 1)
        for epsilon in (2, 4):
            yield whole("L", name, labelled, "labels", TRAINED_N, epsilon, **options)
        yield whole("V", name, labelled, "labels", TRAINED_N, 4, **options)
        yield whole("C", name, labelled, "labels", TRAINED_N, 1, **options)
        if name == "SST-2":
            yield whole("C", name, make(name), "clusters", TRAINED_N, 1)


# ---- labels of the house -------------------------------------------------------------------------


def house() -> Iterator[Row]:
    """Labels that no public text has: clusters, mapped at random to three labels; four truths."""
    _, private, _, judged = deal("AG News")
    everything = [*private.texts, *judged.texts]
    cells = ("both", "vectors")
    for truth, labels in find_truths(everything):
        own = replace(private, labels=labels[: len(private)])
        theirs = replace(judged, labels=labels[len(private) :])
        names = tuple(f"label {i}" for i in range(HOUSE_LABELS))
        data = f"house labels, {truth}"
        judges = OriginalJudges(words=learn_words(own), vectors=learn_words(own))
        most = float(np.bincount(theirs.labels).max() / len(theirs))
        yield summarize(data, "majority", [{TRAINED_WORDS: most}])

        def start(library: Any, n: int, seed: int) -> WholeTexts:
            return WholeTexts(
                library=library,
                private=own.draw(n, seed),  # noqa: B023 - used within the turn
                judged=theirs,  # noqa: B023
                names=names,  # noqa: B023
                judges=judges,  # noqa: B023
                vectors=False,
            )

        for n in (1000, 3000):
            top = over_seeds(
                lambda seed, n=n: score_training(own.draw(n, seed), theirs, vectors=False)  # noqa: B023
            )
            yield summarize(data, "originals", top, n=n)
            for kind in cells:
                library = make("AG News", cells=kind)
                found = over_seeds(
                    lambda seed, n=n, library=library: start(library, n, seed).score_count(1, seed)
                )
                for scores, best in zip(found, top, strict=True):
                    gain = best[TRAINED_WORDS] - most
                    scores["share of the gain"] = (scores[TRAINED_WORDS] - most) / gain
                yield summarize(
                    data,
                    "one count (C)",
                    found,
                    n=n,
                    epsilon=1,
                    way="C",
                    unit_of="document",
                    library=kind,
                    note=f"cells by {kind}",
                )
    for n in (1000, 3000):
        for kind in cells:
            yield whole("C", "AG News", make("AG News", cells=kind), f"cells by {kind}", n, 1)


def find_truths(texts: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Labels of texts by clusters of static word vectors (two maps), of sentence vectors, and of words."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english", max_features=20_000)
    counts = words.fit_transform(texts)
    views: dict[str, Any] = {"sentence vectors": remember().encode(texts)}
    views["words"] = TruncatedSVD(100, random_state=DEAL_SEED).fit_transform(counts)
    folder = find_corpora() / GLOVE
    if folder.exists():
        with gzip.open(folder / "vocab.txt.gz", "rt", encoding="utf-8") as file:
            known = {word: i for i, word in enumerate(file.read().split("\n"))}
        vectors = np.load(folder / "vectors.f16.npy").astype(np.float32)
        rows = [known.get(word, -1) for word in words.get_feature_names_out()]
        static = np.where(np.array(rows)[:, None] >= 0, vectors[rows], 0)
        views["static vectors"] = counts @ static
    for name, maps in (("static vectors", 2), ("sentence vectors", 1), ("words", 1)):
        if name not in views:
            continue
        points = normalize(np.asarray(views[name], np.float64)).astype(np.float32)
        clusters = KMeans(HOUSE_CLUSTERS, n_init=1, random_state=DEAL_SEED).fit_predict(points)
        for number in range(maps):
            rng = np.random.default_rng(number)
            yield (
                f"{name}, map {number}",
                rng.integers(HOUSE_LABELS, size=HOUSE_CLUSTERS)[clusters].astype(np.int64),
            )


# ---- mixtures ------------------------------------------------------------------------------------


def mixture() -> Iterator[Row]:
    """The mixture of labels and topics of private corpora with random shares of labels."""
    names, private, _, judged = deal("AG News")
    library, labelled = make("AG News"), make("AG News", "labels")
    rng = np.random.default_rng(DEAL_SEED)
    shares = rng.dirichlet(np.full(len(names), 0.5), MIXTURES)
    found: dict[tuple[str, int], list[Scores]] = {}
    for number, own in enumerate(shares):
        for n in (300, 1000, 3000):
            counts = rng.multinomial(n, own)
            which = np.concatenate(
                [
                    rng.choice(np.flatnonzero(private.labels == label), size=count, replace=False)
                    if count <= (private.labels == label).sum()
                    else rng.choice(np.flatnonzero(private.labels == label), size=count)
                    for label, count in enumerate(counts.tolist())
                ]
            )
            ways = WholeTexts(
                library=library,
                private=private.take(which),
                judged=judged,
                names=names,
                judges=learn_judges("AG News"),
            )
            for smooth in ("best", "none"):
                made = ways.synthesize(1, number + 1, smooth=smooth)
                mixed = ways.score_mixture(made.which, made.label_ids)
                scores = {name: mixed[name] for name in (LABELS, TOPICS)}
                found.setdefault((f"one count (C), smooth {smooth}", n), []).append(scores)
            public = np.bincount(labelled.labels, minlength=len(names))
            everything = np.arange(len(library))
            nothing = ways.score_mixture(everything, None)
            own_labels = np.bincount(ways.private.labels, minlength=len(names))
            distance = compute_distance(own_labels, public)
            found.setdefault(("eps 0, the library as it is", n), []).append(
                {LABELS: distance, TOPICS: nothing[TOPICS]}
            )
    for (release, n), scores in found.items():
        is_count = release.startswith("one count")
        yield summarize(
            "AG News, random mixtures",
            release,
            scores,
            n=n,
            epsilon=1 if is_count else None,
            way="C" if is_count else None,
        )


# ---- what must fail, and what is too small -------------------------------------------------------


def pairs() -> Iterator[Row]:
    """QNLI, where each half of a pair is replaced apart: what holds between them is lost."""
    from textveil.library import make_library
    from textveil_bench.data import load

    train, test = (
        load("qnli", split=split, folder=str(find_corpora())) for split in ("train", "test")
    )
    order = np.random.default_rng(DEAL_SEED).permutation(len(train)).tolist()
    halves = [train.examples[i] for i in order[:PAIRS]], test.examples[: PAIRS // 2]
    own, judged = ([tuple(each.texts) for each in half] for half in halves)
    labels, right = (np.array([each.label for each in half], np.int64) for half in halves)
    known = {text for pair in (*own, *judged) for text in pair}
    public = [text for i in order[PAIRS : 2 * PAIRS] for text in train.examples[i].texts]
    library = make_library(
        [text for text in public if text not in known],
        source="QNLI, other pairs",
        licence="as its makers say; for measuring only",
        name="QNLI",
    )
    read = learn_pairs(own, labels)
    yield summarize("QNLI", "originals", [{TRAINED_WORDS: score(read, judged, right)}], n=PAIRS)
    most = float(np.bincount(right).max() / len(right))
    yield summarize("QNLI", "majority", [{TRAINED_WORDS: most}])
    for epsilon in (4, 8):

        def measure(seed: int, epsilon: float = epsilon) -> Scores:
            released, told = (
                list(zip(*_replace(library, pairs, epsilon, seed), strict=True))
                for pairs in (own, judged)
            )
            return {
                TRAINED_WORDS: score(learn_pairs(released, labels), judged, right),
                READ_WORDS: score(read, told, right),
            }

        yield summarize(
            "QNLI",
            "texts in place (L)",
            over_seeds(measure),
            n=PAIRS,
            epsilon=2 * epsilon,
            way="L",
            unit_of="pair of documents",
            library="clusters",
        )


def _replace(
    library: Any, pairs: Sequence[tuple[str, ...]], epsilon: float, seed: int
) -> Iterator[list[str]]:
    """Replaces the first halves of pairs, then the second ones."""
    for number in range(2):
        which = release_local(library, [pair[number] for pair in pairs], epsilon, 2 * seed + number)
        yield [library.texts[i] for i in which.tolist()]


def learn_pairs(pairs: Sequence[tuple[str, ...]], labels: Any) -> Any:
    """A judge of pairs: their words, and how many they share."""
    from textveil_bench.choose.judges import BagOfWords, Learner

    return Learner(BagOfWords(2), 5.0).fit([FIELD_SEPARATOR.join(pair) for pair in pairs], labels)


def score(read: Any, pairs: Sequence[tuple[str, ...]], right: Any) -> float:
    """How often a judge is right."""
    return float((read([FIELD_SEPARATOR.join(pair) for pair in pairs]) == right).mean())


def attributes() -> Iterator[Row]:
    """Attributes of the authors of posts. There are 131 private ones: ± .08 over posts alone."""
    from textveil.library import make_library

    path = find_corpora() / "synthetic_reddit_attributes" / "synth.shared.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        posts = [json.loads(line) for line in lines]
    texts = [post["response"].strip() for post in posts]
    public = {text: i for i, text in enumerate(texts[::2])}
    places = [i for i in range(1, len(texts), 2) if texts[i] not in public]
    library = make_library(list(public), source="posts, one half", licence="MIT", name="posts")
    for attribute in ("sex", "income_level", "relationship_status"):
        values = [str(post["personality"][attribute]) for post in posts]
        names = tuple(sorted(set(values)))
        theirs = collect(list(public), [names.index(values[2 * i]) for i in public.values()])
        own = collect([texts[i] for i in places], [names.index(values[i]) for i in places])
        ways = WholeTexts(
            library=library,
            private=own,
            judged=own,
            names=names,
            judges=OriginalJudges.learn(theirs),
        )
        data = f"posts, {attribute}"
        yield summarize(data, "originals", [ways.judges.score(own)], n=len(theirs))
        most = float(np.bincount(own.labels).max() / len(own))
        yield summarize(data, "majority", [{READ_WORDS: most}])
        found = over_seeds(lambda seed, ways=ways: ways.score_local(4, seed, train=False))
        yield summarize(
            data,
            "texts in place (L)",
            found,
            n=len(own),
            epsilon=4,
            way="L",
            unit_of="document",
            library="clusters",
        )


# ---- beside words, and what it takes -------------------------------------------------------------


def words() -> Iterator[Row]:
    """Word by word, by the profile `data`: at its own epsilon of a word, and at 4 of a document."""
    for name, (n, read) in WORD_TEXTS.items():
        losses: list[float] = []
        found = over_seeds(partial(measure_words, name, n, read, None, losses))
        per_document = float(np.mean(losses))
        yield summarize(
            name,
            "words, profile data",
            found,
            n=n,
            unit_of="word",
            epsilon=4.0,
            per_document=round(per_document, 1),
        )
        if name == "AG News":  # the same bound for a document as whole texts have
            epsilon, losses = round(4 * 4 / per_document, 4), []
            found = [measure_words(name, n, read, epsilon, losses, SEEDS[0])]
            yield summarize(
                name,
                "words, profile data",
                found,
                n=n,
                unit_of="word",
                epsilon=epsilon,
                per_document=round(float(np.mean(losses)), 1),
            )


def measure_words(
    name: str, n: int, read: int, epsilon: float | None, losses: list[float], seed: int
) -> Scores:
    """Scores a release word by word; what each document loses goes into `losses`."""
    from textveil import Privatizer

    options: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon}
    privatizer = Privatizer.from_profile("data", seed=seed, **options)
    scores, loss = build(name, make(name), n, seed).score_words(privatizer, read)
    losses.append(loss)
    return scores


def cost() -> Iterator[Row]:
    """Seconds of a release from 11,000 documents beyond their vectors, and of the vectors of one."""
    private = deal("AG News")[1]
    ways = build("AG News", make("AG News"), len(private), SEEDS[0])
    start = time.perf_counter()
    remember().encode(private.texts)
    known = time.perf_counter() - start
    found = []
    for seed in SEEDS:
        start = time.perf_counter()
        ways.synthesize(1, seed)
        found.append({"seconds": time.perf_counter() - start - known})
    yield summarize(
        "AG News",
        "time of one count (C), without vectors",
        found,
        n=len(private),
        epsilon=1,
        way="C",
    )
    start = time.perf_counter()
    remember().model.encode(private.texts[:200])
    seconds = (time.perf_counter() - start) / 200
    yield summarize("AG News", "time of a vector", [{"milliseconds": 1000 * seconds}])


def measurements(part: str) -> Iterator[Row]:
    """The rows of a part; none without corpora."""
    if "TEXTVEIL_CORPORA" not in os.environ:
        return
    with encode_once():
        for row in PARTS[part]():
            yield {**row, "part": part}


PARTS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "topics": topics,
    "opinions": opinions,
    "house": house,
    "mixture": mixture,
    "pairs": pairs,
    "attributes": attributes,
    "words": words,
    "cost": cost,
}
"""What `--only texts:PART` runs alone."""
