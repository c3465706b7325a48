"""The JSON form of statements is what its published schema says, for every mechanism."""

import json
from contextlib import nullcontext
from importlib.resources import files

import jsonschema
import numpy as np
import pytest
from tests.broken import Groups
from tests.broken import table as pairs
from tests.fixtures import fit

from textveil import EmbeddingTable, Privatizer, Session
from textveil.config import WordsOptions, registry
from textveil.guarantee import compose, summarize

TEXTS = (
    "The river bank floods, and Anna's cat swims.",
    "the of and",
    "",
    "Zyxqorvian 日本 at 12:30 😀",
)
WORDS = (
    "river",
    "bank",
    "floods",
    "anna",
    "cat",
    "swims",
    "sea",
    "lake",
    "dog",
    "house",
    "tree",
    "road",
)


@pytest.fixture(scope="module")
def schema():
    content = (files("textveil") / "data" / "guarantee.schema.json").read_text(encoding="utf-8")
    return json.loads(content)


@pytest.fixture(scope="module")
def validator(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def table():
    vectors = np.random.default_rng(7).normal(size=(len(WORDS), 12))
    return EmbeddingTable.build(name="small", words=WORDS, vectors=vectors)


def privatizer(name, table, seed=1, **options):
    _, budget = registry.find_budget_parameter(name)
    return Privatizer(
        name, epsilon=8.0 if budget else None, table=fit(name, table), seed=seed, **options
    )


def as_read(guarantee):
    """The statement as a reader of the JSON gets it: no NaN and no Infinity on the way."""
    return json.loads(json.dumps(guarantee.to_json(), allow_nan=False))


@pytest.mark.parametrize("name", list(registry.MECHANISMS))
def test_every_mechanism(name, table, validator):
    nominal = name in ("santext+", "custext", "custext+", "rantext")
    with pytest.warns(match="bounds nothing") if nominal else nullcontext():
        chosen = privatizer(name, table)
    for text in TEXTS:
        guarantee = chosen.privatize(text).guarantee
        found = as_read(guarantee)
        validator.validate(found)
        assert found["mechanism"] == name
        assert found["protected"] == len(found["epsilon_per_word"])
        assert found["statement"] == guarantee.headline()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("stencil", {"exclude_original": True}),
        ("noise", {"project": 4}),
        ("polar", {"project": 4}),
        ("polar", {"radius": 2.0}),
        ("d-chi-stencil", {"L": 4, "window_over": "all"}),
        ("d-chi-stencil", {"noise": "von-mises-fisher"}),
        ("d-chi-stencil", {"exclude_original": True}),
        ("exponential", {"calibration": "paper"}),
    ],
)
def test_options(name, options, table, validator):
    if options.get("exclude_original") and name != "stencil":
        with pytest.warns(match="bounds nothing"):
            chosen = privatizer(name, table, **options)
    else:
        chosen = privatizer(name, table, **options)
    validator.validate(as_read(chosen.privatize(TEXTS[0]).guarantee))


@pytest.mark.parametrize("oov", ["surrogate", "placeholder", "keep", "uniform", "drop"])
@pytest.mark.parametrize("numbers", ["table", "add"])
@pytest.mark.parametrize("casing", ["lower", "copy"])
@pytest.mark.parametrize("stopwords", ["pass", "protect"])
def test_words_options(oov, numbers, casing, stopwords, table, validator):
    words = WordsOptions(oov=oov, numbers=numbers, casing=casing, stopwords=stopwords)
    found = as_read(privatizer("noise", table, words=words).privatize(TEXTS[3]).guarantee)
    validator.validate(found)
    assert (found["kind"] == "none") == (oov in ("keep", "uniform", "drop") or numbers == "add")


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e6, float("inf")])
def test_extreme_budgets(epsilon, table, validator):
    found = as_read(Privatizer("noise", epsilon=epsilon, table=table).privatize(TEXTS[0]).guarantee)
    validator.validate(found)
    assert found["kind"] == ("none" if epsilon == float("inf") else "metric")


def test_a_session_and_sums(table, validator):
    chosen = privatizer("placeholder", table)
    tied = chosen.privatize("cat cat cat", session=Session()).guarantee
    assert "equal placeholders" in as_read(tied)["mask"]
    noisy = [privatizer("noise", table, seed=None).privatize(TEXTS[0]).guarantee for _ in range(3)]
    for guarantee in (tied, compose(noisy), summarize(noisy)):
        validator.validate(as_read(guarantee))


def test_a_restricted_promise(validator):
    with pytest.warns(match="bounds nothing"):
        chosen = Privatizer(Groups(), epsilon=2.0, table=pairs())
    found = as_read(chosen.privatize(TEXTS[0]).guarantee)
    validator.validate(found)
    assert (found["kind"], found["epsilon"], found["restricted"]["epsilon"]) == (
        "none",
        "infinite",
        2.0,
    )
    assert not validator.is_valid(found | {"restricted": {**found["restricted"], "domain": ""}})
    assert not validator.is_valid(found | {"epsilon": 2.0})


BROKEN = {
    "a field more": {"secret": 1},
    "an unknown kind": {"kind": "approximate"},
    "an infinite epsilon without a reason": {"epsilon": "infinite"},
    "a reason with a finite epsilon": {"infinite_because": ["because"]},
    "a negative epsilon": {"epsilon_per_word": [-1.0]},
    "a mask field that nobody explained": {"mask": ["length", "mood"]},
    "a metric statement without a diameter": {"diameter": None},
    "a cosine distance": {"metric": "cosine"},
    "a statement in two lines": {"statement": "one\ntwo"},
    "a share above one": {"oov_share": 1.5},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=list(BROKEN))
def test_the_schema_refuses(change, table, validator):
    found = as_read(privatizer("noise", table).privatize(TEXTS[0]).guarantee)
    validator.validate(found)
    assert not validator.is_valid(found | change)


def test_every_field_is_required_and_explained(schema):
    properties = schema["properties"]
    words, texts = (schema["$defs"][form] for form in ("words", "texts"))
    required = [*schema["required"], "way", *words["required"], *texts["required"]]
    assert sorted(required) == sorted(properties)
    assert texts["propertyNames"]["not"]["enum"] == words["required"]
    assert words["propertyNames"]["not"]["enum"] == texts["required"]
    assert schema["additionalProperties"] is False
    assert all(each.get("description") for each in properties.values())


def test_the_mask_has_the_names_that_words_gives(schema):
    from textveil.text.released import UNKNOWN_SHARE, Mask

    whole = Mask(
        words=3,
        verbatim=(0,),
        placeholders=((1, "WORD"), (2, "WORD")),
        numbers=(5,),
        dropped=(6,),
        equal=((1, 2), (3, 4)),
        numbered=True,
        groups=("a",),
        pieces=(1,),
        casing=("lower",),
    )
    texts = schema["$defs"]["texts"]["properties"]["mask"]["items"]["enum"]
    assert schema["properties"]["mask"]["items"]["enum"] == [*whole.fields, UNKNOWN_SHARE, *texts]
    assert schema["$defs"]["words"]["properties"]["mask"]["items"]["not"]["enum"] == texts


@pytest.mark.parametrize("field", ["epsilon", "mask", "seeded", "statement"])
def test_a_missing_field_is_found(field, table, validator):
    found = as_read(privatizer("noise", table).privatize(TEXTS[0]).guarantee)
    del found[field]
    assert not validator.is_valid(found)
