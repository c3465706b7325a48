"""Statements about whole texts: what they say, what they refuse to say, and how they add up."""

import itertools
import json
import math
import re
from dataclasses import replace
from importlib.resources import files

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textveil.errors import GuaranteeError
from textveil.guarantee import (
    Claim,
    Guarantee,
    LibraryFacts,
    Sentences,
    TextGuarantee,
    compose,
    summarize,
)
from textveil.guarantee.text_guarantee import PUBLIC_LIBRARY, SCOPE

NEWS = LibraryFacts(
    name="news",
    digest="13f6acee8dc0b1fb" * 4,
    source="AG News, public half",
    licence="non-commercial research",
    texts=10_557,
    level="8",
    cells=8,
)
LABELS = ("world", "sports", "business", "science")
TEXTS = TextGuarantee(
    kind="ldp",
    unit="document",
    way="texts",
    epsilon=4.0,
    replaced=4.0,
    library=NEWS,
    labels_covered=False,
    documents=500,
    seeded=False,
)
SENTENCES = replace(
    TEXTS,
    unit="sentence",
    epsilon=2.0,
    replaced=2.0,
    labels_covered=True,
    sentences=Sentences(most=4, total=1_165),
)
REPORTS = TextGuarantee(
    kind="ldp",
    unit="document",
    way="reports",
    epsilon=2.0,
    replaced=2.0,
    library=NEWS,
    labels=LABELS,
    documents=1_000,
    released=3_000,
    seeded=False,
)
COUNTS = TextGuarantee(
    kind="central",
    unit="subject",
    way="counts",
    subject="author",
    epsilon=1.0,
    replaced=2.0,
    library=replace(NEWS, level="30", cells=30),
    labels=LABELS,
    released=3_000,
    seeded=False,
)
BY_DOCUMENT = replace(COUNTS, unit="document", subject="")
NOTHING = replace(
    COUNTS,
    kind="none",
    epsilon=math.inf,
    replaced=math.inf,
    reasons=("the library was made from these texts",),
)
ALL = {
    "texts": TEXTS,
    "one text": replace(TEXTS, documents=1, labels_covered=True),
    "sentences": SENTENCES,
    "sentences of one": replace(SENTENCES, documents=1, sentences=Sentences(3, 3)),
    "reports": REPORTS,
    "a report": replace(REPORTS, documents=1, labels=(), released=None),
    "counts": COUNTS,
    "counts of documents": BY_DOCUMENT,
    "only counts": replace(BY_DOCUMENT, labels=(), released=None, seeded=True),
    "nothing": NOTHING,
    "two counts": compose([COUNTS, replace(COUNTS, library=replace(NEWS, name="wiki"))]),
}
WORDS = Guarantee(
    claim=Claim(mechanism="rankcape", kind="ldp", table="t"),
    epsilon_per_word=np.array([8.0]),
    parameter=np.empty(0),
    words=1,
    placeholders=0,
    mask=("length",),
    drawn=1,
    seeded=False,
)
every = pytest.mark.parametrize("statement", ALL.values(), ids=list(ALL))


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (
            TEXTS,
            "A public text of news in place of each of 500 documents, by its cell among 8: local "
            "DP 4 for a whole document, whatever its length; two documents of one cell are never "
            "told apart. That there are 500 documents, and in which order, is released; labels "
            "are copied and not covered.",
        ),
        (
            REPORTS,
            "Each of 1,000 documents reported a set of codes for its label and cell: local DP 2 "
            "for document and label together. The corpus follows from the reports alone.",
        ),
        (
            COUNTS,
            "One noisy count of 120 bins; 3,000 public texts drawn from it. Epsilon 1 for one "
            "author, of whom 1 document is counted, added or removed; 2 if it is replaced by "
            "another; delta 0. Names of labels and cells, 3,000 and the library are public and "
            "follow from no private text; how many documents there were is told by the noisy "
            "counts only. No word of a private text stands in it but by chance.",
        ),
        (
            SENTENCES,
            "A public text of news in place of each of 1,165 sentences in 500 documents, by its "
            "cell among 8: local DP 2 for a whole sentence, whatever its length; a document loses "
            "the sum over its sentences: 4.66 on average, 8 at most; two sentences of one cell "
            "are never told apart. That there are 500 documents, how many sentences each has, and "
            "in which order, is released.",
        ),
        (
            ALL["sentences of one"],
            "A public text of news in place of each of 3 sentences in 1 document, by its cell "
            "among 8: local DP 2 for a whole sentence, whatever its length; the document loses "
            "the sum over its sentences: 6; two sentences of one cell are never told apart. That "
            "it has 3 sentences is released.",
        ),
        (
            ALL["a report"],
            "1 document reported a set of codes for its cell: local DP 2 for a whole document. "
            "The corpus follows from the report alone.",
        ),
        (
            replace(COUNTS, per_subject=3, epsilon=3.0, replaced=6.0),
            "One noisy count of 120 bins; 3,000 public texts drawn from it. Epsilon 3 for one "
            "author, of whom at most 3 documents are counted, added or removed; 6 if it is "
            "replaced by another; delta 0. Names of labels and cells, 3,000 and the library are "
            "public and follow from no private text; how many documents there were is told by the "
            "noisy counts only. No word of a private text stands in it but by chance.",
        ),
    ],
    ids=["texts", "reports", "counts", "sentences", "one", "report", "three"],
)
def test_summaries_verbatim(statement, says):
    assert statement.summary() == f"{says} {SCOPE}"
    bound, library, rest = statement.headline().split("\n")
    assert bound == says
    assert library == (
        f"{PUBLIC_LIBRARY} Library news: 10,557 texts (AG News, public half; non-commercial "
        "research), digest 13f6acee8dc0b1fb."
    )
    assert rest.startswith(f"{SCOPE} This is for one ")


@every
def test_json_pack_and_words(statement):
    schema = json.loads((files("textveil") / "data" / "guarantee.schema.json").read_text("utf-8"))
    found = json.loads(json.dumps(statement.to_json(), allow_nan=False))
    jsonschema.Draft202012Validator(schema).validate(found)
    assert TextGuarantee.unpack(json.loads(json.dumps(statement.pack()))) == statement
    for text in (statement.explain(), statement.explain_plainly(), statement.summary()):
        assert "  |" in text or "  " not in text
        assert not text[0].islower()
        assert text.endswith(".")
    assert "epsilon" not in statement.explain_plainly()


BROKEN = {
    "the kind of words": {"kind": "metric"},
    "a local count": {"kind": "ldp"},
    "the unit of words": {"unit": "word"},
    "a number of documents": {"documents": 500},
    "a delta": {"delta": 1e-6},
    "no library": {"libraries": []},
    "a field of words": {"protected": 3},
    "a mask of words": {"mask": ["length"]},
    "another way": {"way": "sums"},
    "an infinite bound without a reason": {"epsilon": "infinite"},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=list(BROKEN))
def test_the_schema_refuses(change):
    schema = json.loads((files("textveil") / "data" / "guarantee.schema.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(COUNTS.to_json())
    assert not validator.is_valid(COUNTS.to_json() | change)
    assert not validator.is_valid(WORDS.to_json() | {"kind": "central"})
    assert not validator.is_valid(WORDS.to_json() | {"mask": ["labels"]})


@pytest.mark.parametrize(
    ("statement", "change", "fault"),
    [
        (COUNTS, {"kind": "ldp"}, "only counts are central"),
        (TEXTS, {"kind": "central"}, "only counts are central"),
        (COUNTS, {"replaced": 1.0}, "twice as much"),
        (COUNTS, {"replaced": 1.999}, "twice as much"),
        (COUNTS, {"documents": 300}, "must be None for counts"),
        (TEXTS, {"documents": None}, "must be None for counts"),
        (COUNTS, {"epsilon": math.inf, "replaced": math.inf}, "infinite where no bound holds"),
        (COUNTS, {"epsilon": math.nan, "replaced": math.nan}, "infinite where no bound holds"),
        (COUNTS, {"epsilon": -1.0}, "at least 0"),
        (NOTHING, {"reasons": ()}, "give reasons"),
        (COUNTS, {"reasons": ("why",)}, "give reasons"),
        (COUNTS, {"delta": 1e-5}, "delta"),
        (COUNTS, {"unit": "sentence", "subject": ""}, "not bounded for a sentence"),
        (REPORTS, {"unit": "subject"}, "not bounded for a subject"),
        (COUNTS, {"subject": ""}, "noun"),
        (BY_DOCUMENT, {"per_subject": 2}, "only where the unit is a subject"),
        (REPORTS, {"labels_covered": False}, "copied"),
        (TEXTS, {"labels": LABELS}, "copied"),
        (SENTENCES, {"sentences": None}, "sentences"),
        (TEXTS, {"sentences": Sentences(1, 1)}, "sentences"),
    ],
)
def test_what_is_untrue_cannot_be_built(statement, change, fault):
    with pytest.raises(GuaranteeError, match=fault):
        replace(statement, **change)


def test_without_a_bound_nothing_is_claimed():
    for text in (NOTHING.summary(), NOTHING.explain(), NOTHING.explain_plainly()):
        assert "the library was made from these texts" in text
        assert not re.search(r"Epsilon|made without these|not what any text says|at most", text)
    assert NOTHING.epsilon_ldp == math.inf


def test_bounds_are_rounded_up_and_a_seed_is_said():
    third = replace(COUNTS, epsilon=1 / 3, replaced=2 / 3)
    assert "Epsilon 0.3334 for one author" in third.summary()
    assert "; 0.6667 if it is replaced" in third.summary()
    assert "factor of at most 1.4." in third.explain_plainly()  # e^(1/3) = 1.3956
    for statement in (TEXTS, REPORTS, COUNTS):
        seeded = replace(statement, seeded=True)
        for text in (seeded.summary(), seeded.explain_plainly(), seeded.headline()):
            assert "against anyone who knows the seed" in text


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 19.0, 60.0, 900.0])
def test_odds_bound_what_bayes_gives(epsilon):
    """Whatever is read, no reader can be surer than the paragraph says."""
    statement = replace(TEXTS, epsilon=epsilon, replaced=epsilon)
    half, hundredth = (
        float(share) / 100
        for share in re.findall(r"at most ([\d.]+)%", statement.explain_plainly())
    )
    ratio = math.exp(min(epsilon, 700.0))
    assert half >= ratio / (1 + ratio) - 1e-12
    assert hundredth >= 0.01 * ratio / (0.99 + 0.01 * ratio) - 1e-12
    assert half <= 1.005 * ratio / (1 + ratio)
    # The broken twin: a paragraph for a smaller epsilon says too little.
    if 0 < epsilon < 5:
        less = replace(TEXTS, epsilon=epsilon / 2, replaced=epsilon / 2).explain_plainly()
        assert float(re.findall(r"at most ([\d.]+)%", less)[0]) / 100 < ratio / (1 + ratio)


def test_the_advantage_is_that_of_the_noise():
    """tanh(epsilon / 2) is the total variation of discrete Laplace noise and its neighbour."""
    a = math.exp(-1.0)
    law = {k: (1 - a) / (1 + a) * a ** abs(k) for k in range(-60, 61)}
    distance = sum(abs(law.get(k, 0.0) - law.get(k - 1, 0.0)) for k in range(-60, 62)) / 2
    assert distance == pytest.approx(math.tanh(0.5))
    assert "right at most 0.463 more often" in COUNTS.explain()
    # Replacing an author is not among the claims at this price: the ratio is e^2.
    assert max(
        law[k] * law[-k] / (law[k - 1] * law[1 - k]) for k in range(-20, 20)
    ) == pytest.approx(math.exp(2.0))
    assert COUNTS.epsilon_ldp == 2.0


# ---- sums ----------------------------------------------------------------------------------------


def test_central_counts_add_up_whatever_their_libraries():
    wiki = replace(NEWS, name="wiki", digest="0f" * 32, cells=50)
    both = compose([COUNTS, replace(COUNTS, library=wiki, labels=LABELS[:2], per_subject=2)])
    assert (both.epsilon, both.replaced, both.releases, both.released) == (2.0, 4.0, 2, 6_000)
    assert both.others == (wiki,)
    assert both.summary().startswith(
        "2 noisy counts of at most 200 bins; 6,000 public texts drawn from them. Epsilon 2 for one "
        "author, of whom at most 2 documents are counted in each, added or removed; 4 if it is "
        "replaced by another; delta 0. Names of labels and cells, 6,000 and the libraries are "
    )
    assert "Library wiki:" in both.headline()
    assert compose([both, COUNTS]).epsilon == 3.0
    assert summarize([COUNTS, COUNTS]) == compose([COUNTS, COUNTS])


def test_local_releases_add_up_and_parts_of_a_run_do_not():
    both = compose([TEXTS, TEXTS])
    assert (both.epsilon, both.epsilon_ldp, both.documents, both.releases) == (8.0, 8.0, 500, 2)
    assert both.summary().startswith("2 public texts of news in place of each of 500 documents")
    run = summarize([TEXTS, replace(TEXTS, documents=20)])
    assert (run.epsilon, run.documents, run.releases) == (4.0, 520, 1)
    parts = summarize([SENTENCES, replace(SENTENCES, documents=10, sentences=Sentences(9, 30))])
    assert parts.sentences == (9, 1_195)
    assert parts.compute_most() == 18.0
    reports = summarize([replace(REPORTS, documents=1, released=None)] * 40)
    assert (reports.documents, reports.released, reports.epsilon) == (40, None, 2.0)


UNLIKE = {
    "central and local": (COUNTS, TEXTS),
    "local in two ways": (TEXTS, REPORTS),
    "documents and authors": (COUNTS, BY_DOCUMENT),
    "documents and sentences": (TEXTS, SENTENCES),
    "two kinds of subjects": (COUNTS, replace(COUNTS, subject="customer")),
    "words and texts": (WORDS, TEXTS),
    "words and counts": (COUNTS, WORDS),
}


@pytest.mark.parametrize("statements", UNLIKE.values(), ids=list(UNLIKE))
def test_unlike_bounds_do_not_add_up(statements):
    for order in itertools.permutations(statements):
        for add in (compose, summarize):
            with pytest.raises(GuaranteeError, match="different kinds do not add up"):
                add(list(order))


def test_what_else_does_not_add_up():
    seeded = replace(COUNTS, seeded=True)
    for add in (compose, summarize):
        with pytest.raises(GuaranteeError, match="drawn afresh"):
            add([COUNTS, seeded])
        with pytest.raises(GuaranteeError, match="at least one"):
            add([])
    with pytest.raises(GuaranteeError, match="chosen among 3"):
        compose([COUNTS], among=3)
    with pytest.raises(GuaranteeError, match="same documents"):
        compose([TEXTS, replace(TEXTS, documents=499)])
    for change in ({"library": replace(NEWS, level="30")}, {"labels_covered": True}):
        with pytest.raises(GuaranteeError, match="same library, level and labels"):
            summarize([TEXTS, replace(TEXTS, **change)])
    assert summarize([TEXTS, replace(TEXTS, seeded=True)]).repeatable
    assert compose([COUNTS, NOTHING]).kind == "none"
    assert compose([COUNTS, NOTHING]).epsilon == math.inf


@given(st.lists(st.floats(0.01, 20), min_size=1, max_size=6))
def test_sums_never_lose_anything(epsilons):
    releases = [replace(COUNTS, epsilon=value, replaced=2 * value) for value in epsilons]
    total = compose(releases)
    assert total.epsilon >= math.fsum(epsilons) * (1 - 1e-12)
    assert total.replaced >= 2 * total.epsilon * (1 - 1e-12)
    assert compose([total]) == total
