"""Groups: which words are in which, what is joined, and what a detector that fails must not do."""

import math
import pickle

import numpy as np
import pytest

from tests.detectors import Finds
from textveil.config.sections import GroupOptions, NameOptions, ProtectOptions, WordsOptions
from textveil.errors import (
    BudgetError,
    ConfigError,
    DetectorError,
    InputError,
    TextveilWarning,
    UnknownName,
)
from textveil.protect.budget import RULES, TABLE1, Grouped
from textveil.protect.grouping import Grouping, join
from textveil.protect.protection import GROUPS, PUBLIC, Protection, find_public_words
from textveil.text.name_lists import load_names
from textveil.text.tokens import tokenize

INF = math.inf
CANARY = "Zyxqorvian"


class Fails:
    name = "fails"

    def find(self, texts):
        raise ValueError(texts[0])


class Scores:
    """A scorer: words that begin with a capital are important."""

    def score(self, words, documents, queries):
        return np.array([float(word[0].isupper()) for word in words], np.float32)


def grouping(*detectors, names=(), scorer=None, **options):
    made = Grouping.build(ProtectOptions(detectors=detectors, **options), NameOptions(types=names))
    assert made is not None
    if scorer is not None:
        object.__setattr__(made, "scorer", scorer)
    return made


def decided(made, tokens, public, queries):
    return made.assign(made.detect(tokens, queries), public)


def groups(text, made, **options):
    """The label of every word of a text."""
    tokens = tokenize([text])
    found = decided(made, tokens, find_public_words(tokens.words, WordsOptions(**options)), None)
    return dict(
        zip(tokens.words, [found.labels[group] for group in found.group.tolist()], strict=True)
    )


def test_four_groups():
    made = grouping(Finds(ILLNESS="Fever|gout"), scorer=Scores(), task="self", importance="cosine")
    assert groups("the Fever and gout of Anna hurt", made) == {
        "the": PUBLIC,
        "Fever": "sensitive-important",
        "and": PUBLIC,
        "gout": "sensitive",
        "of": PUBLIC,
        "Anna": "important",
        "hurt": "other",
    }


def test_a_part_of_several_words_is_one_group_with_its_public_words():
    made = grouping(Finds(ORG="bank of England"), scorer=Scores(), task="self", importance="cosine")
    found = groups("a bank of England here", made)
    assert {found["bank"], found["of"], found["England"]} == {"sensitive-important"}


def test_a_span_inside_a_word_takes_the_whole_word():
    assert (
        groups("antidisease ends", grouping(Finds(ILLNESS="disease")))["antidisease"] == "sensitive"
    )


@pytest.mark.parametrize(
    ("text", "type_", "found", "left"),
    [
        ("she is 90 anos old", "AGE", "90 anos", ["90"]),
        ("she is 90-ish", "AGE", "90-ish", ["90", "-", "ish"]),
        ("move to 14 Elm Ave. now", "ADDRESS", "14 Elm Ave.", ["14", "Elm", "Ave"]),
        ("the geom. Ferraris calls", "PERSON", "geom. Ferraris", ["Ferraris"]),
        ("the geom. calls", "PERSON", "geom", []),
        ("he is called Sig. So", "PERSON", "Sig", ["Sig"]),
        ("on 5 March. Now", "BIRTH_DATE", "5 March.", ["5", "March"]),
        ("the code 4711-22. Call now", "ID", "4711-22. Call", ["4711-22"]),
        ("the code AB12. Xy99 on", "ID", "AB12. Xy99", ["AB12", ".", "Xy99"]),
        ("leave from 3 to 5 March", "DATE", "5 March", ["3", "to", "5", "March"]),
        ("diagnosed with Hashimoto's, and ill", "PERSON", "Hashimoto", []),
    ],
)
def test_where_what_the_tagger_found_begins_and_ends(text, type_, found, left):
    made = grouping(Finds("tagger", **{type_: found}), placeholders="none")
    assert [word for word, group in groups(text, made).items() if group == "sensitive"] == left


def test_spans_of_one_text_never_reach_into_the_next():
    tokens = tokenize(["one two", "three four", "", "five"])
    made = grouping(Finds(ILLNESS="two|five"))
    found = decided(made, tokens, find_public_words(tokens.words, WordsOptions()), None)
    assert [found.labels[group] for group in found.group] == [
        "other",
        "sensitive",
        "other",
        "other",
        "sensitive",
    ]


def test_types_become_labels():
    made = grouping(Finds(EMAIL=r"\w+@[\w.]+", PERSON="Anna Berg|Carl"), names="PERSON")
    found = groups("Anna Berg asks Carl at a@b.org", made)
    assert found == {
        "Anna": "PERSON given",
        "Berg": "PERSON family",
        "asks": "other",
        "Carl": "PERSON given",
        "at": PUBLIC,
        "a@b.org": "EMAIL",
    }


def test_a_persons_only_word_is_what_the_public_list_calls_it():
    listed = load_names("PERSON")
    given, family, both = (
        listed.words[listed.kinds.index(kind)] for kind in ("given", "family", "both")
    )
    found = groups(
        f"{given}, {family}, {both}, {CANARY}", grouping(Finds(PERSON=r"\w+"), names="PERSON")
    )
    assert found[given] == "PERSON given"
    assert found[family] == "PERSON family"
    assert found[both] == found[CANARY] == "PERSON"


def test_types_that_count():
    found = Finds(PERSON="Anna", EMAIL=r"\S+@\S+", ILLNESS="gout")
    spared = groups("Anna a@b.org gout", grouping(found, types="identifiers, ILLNESS"))
    assert spared == {"Anna": "other", "a@b.org": "EMAIL", "gout": "sensitive"}
    assert groups("Anna owl", grouping(found, types="EMAIL", always="owl"))["owl"] == "sensitive"


def test_placeholders_by_type():
    text = "Anna a@b.org gout"
    found = Finds(PERSON="Anna", EMAIL="a@b.org", ILLNESS="gout")
    assert groups(text, grouping(found))["a@b.org"] == "EMAIL"
    assert groups(text, grouping(found, placeholders="none"))["a@b.org"] == "sensitive"
    assert set(groups(text, grouping(found, placeholders="all")).values()) == {
        "PERSON",
        "EMAIL",
        "ILLNESS",
    }
    assert groups(text, grouping(found, placeholders="ILLNESS,names"))["Anna"] == "PERSON"
    with pytest.raises(UnknownName, match=r"protect\.placeholders"):
        grouping(found, placeholders="emails")


def test_always_and_never():
    made = grouping(always="grey owl, heron", never="Anna", placeholders="none")
    assert groups("the grey owl and a Heron", made)["owl"] == "sensitive"
    assert groups("the grey owl and a Heron", made)["Heron"] == "sensitive"
    assert groups("a grey cat", made)["grey"] == "other"
    spared = grouping(Finds(PERSON="Anna|Berg"), never="anna")
    assert groups("Anna Berg", spared) == {"Anna": "other", "Berg": "sensitive"}


# ---- joining -----------------------------------------------------------------------------------------------


def joined(text, made, budgets):
    tokens = tokenize([text])
    public = find_public_words(tokens.words, WordsOptions())
    found = decided(made, tokens, public, None)
    return join(tokens, found, Grouped(budgets).assign(found), public)


def test_words_of_a_placeholder_are_joined_and_their_number_hidden():
    tokens, found, epsilon = joined(
        "call (351) 21-4 today", grouping(Finds(PHONE=r"\(.*4")), (1, 1, 1, 1)
    )
    assert tokens.words == ["call", "(351) 21-4", "today"]
    assert found.hidden.tolist() == [False, True, False]
    assert epsilon.tolist() == [1, 0, 1]
    assert tokens.get_gaps(0) == ["", " ", " ", ""]


def test_a_budget_of_zero_joins_too_and_others_keep_their_words():
    made = grouping(Finds(ILLNESS="hay fever, mild"))
    words, found, _ = joined("my hay fever, mild", made, (0, 0, 1, 1))
    assert words.words == ["my", "hay fever, mild"]
    words, found, _ = joined("my hay fever, mild", made, (2, 2, 1, 1))
    assert words.words == ["my", "hay", "fever", ",", "mild"]
    assert found.public.tolist() == [True, False, False, True, False], "a comma needs no protection"


def test_neighbouring_parts_stay_two():
    words, found, _ = joined(
        "ask Anna Berg", grouping(Finds(A="Anna", B="Berg"), placeholders="all"), (1, 1, 1, 1)
    )
    assert words.words == ["ask", "Anna", "Berg"]
    assert [found.types[i] for i in found.entity.tolist() if i >= 0] == ["A", "B"]


def test_places_are_joined_and_persons_are_not():
    made = grouping(Finds(PERSON="Anna Berg", LOCATION="New York City"), names="all")
    words, found, _ = joined("Anna Berg in New York City", made, (1, 1, 1, 1))
    assert words.words == ["Anna", "Berg", "in", "New York City"]
    assert found.named.tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("text", "found", "values"),
    [
        ("return a + 306582123", r"\+ \d+", ["306582123"]),
        ("ids:\n-7809848565\n-7809848566\n", r"-\d+\n-\d+", ["7809848565", "7809848566"]),
        ("call +49 30 1234567;", r"\+.*", ["+49 30 1234567"]),
        ("call (030) 1234567 -", r"\(.*", ["(030) 1234567"]),
        ("x = ---", "---", ["---"]),
    ],
)
def test_a_guessed_number_is_cut_to_what_it_names(text, found, values):
    made = grouping(Finds(name="tagger", ID=found))
    seen = made.detect(tokenize([text]), None).spans
    assert [text[span.start : span.end] for span in seen] == values
    whole = grouping(Finds(ID=found)).detect(tokenize([text]), None).spans
    assert len(whole) == 1, "what others find stays as it is"


@pytest.mark.parametrize(
    ("text", "named"), [("Mª García", True), ("José Mº Gil", True), ("שרה García", False)]
)
def test_ordinal_signs_are_no_letters_without_case(text, named):
    found = joined(text, grouping(Finds(PERSON=".+"), names="all"), (1, 1, 1, 1))[1]
    assert found.named.all() == named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        *(
            ("ask Anna_1", False),
            ("ask Anna__x", False),
            ("ask x_Anna", False),
            ("ask ____Anna", False),
        ),
        *(
            ("ask _Anna_", True),
            ("ask __Anna__, now", True),
            ("ask (Anna)", True),
            ("ask Anna-1", True),
        ),
        *(("我叫Anna", True), ("ask Anna_Berg", False)),
    ],
)
def test_a_name_that_would_not_be_found_again_becomes_a_placeholder(text, named):
    made = grouping(Finds(PERSON="Anna(_Berg)?"), names="all")
    tokens = tokenize([text])
    found = decided(made, tokens, np.zeros(len(tokens.words), bool), None)
    hit = [i for i, word in enumerate(tokens.words) if "Anna" in word]
    assert hit
    assert found.named[hit].all() == named
    assert found.hidden[hit].all() != named


# ---- failing -----------------------------------------------------------------------------------------------


def test_a_failing_detector_refuses_or_protects_everything():
    tokens = tokenize([f"the {CANARY} speaks"])
    public = find_public_words(tokens.words, WordsOptions())
    with pytest.raises(DetectorError) as caught:
        decided(grouping(Fails()), tokens, public, None)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    for placeholders, labels in (("identifiers", ["TEXT"] * 3), ("none", ["sensitive"] * 3)):
        with pytest.warns(TextveilWarning, match="all texts of the batch") as seen:
            found = decided(
                grouping(Fails(), on_failure="protect", placeholders=placeholders),
                tokens,
                public,
                None,
            )
        assert CANARY not in str(seen[0].message)
        assert [found.labels[group] for group in found.group] == labels
        assert not found.public.any(), "a public word may be part of a name"


def test_queries_must_fit():
    tokens = tokenize(["one", "two"])
    public = np.zeros(2, bool)
    made = grouping(importance="cosine", scorer=Scores())
    for queries in (None, ["one query"]):
        with pytest.raises(InputError, match="one query per text: 2 texts"):
            decided(made, tokens, public, queries)
    with pytest.raises(InputError, match="not both"):
        decided(
            grouping(importance="cosine", task="money", scorer=Scores()), tokens, public, ["a", "b"]
        )
    with pytest.raises(InputError, match="importance"):
        decided(grouping(Finds()), tokens, public, ["a", "b"])


def test_options_that_contradict():
    with pytest.raises(ConfigError, match="label_epsilon"):
        ProtectOptions(labels="randomised")
    with pytest.raises(ConfigError, match="classifier"):
        ProtectOptions(importance="saliency")
    with pytest.raises(ConfigError, match="task"):
        ProtectOptions(task="money")
    with pytest.raises(UnknownName, match=r"names\.types"):
        Grouping.build(ProtectOptions(detectors=(Finds(),)), NameOptions(types=("EMAIL",)))
    with pytest.raises(ConfigError, match="or objects with a name"):
        Grouping.build(ProtectOptions(detectors=(3,)), NameOptions())
    assert Grouping.build(ProtectOptions(), NameOptions()) is None


def test_context_free():
    assert grouping(always="owl").is_context_free
    assert grouping(importance="cosine", task="money").is_context_free
    for options in (
        {"always": "grey owl"},
        {"always_matching": "o.l"},
        {"importance": "cosine", "task": "self"},
    ):
        assert not grouping(**options).is_context_free
    assert not grouping(Finds()).is_context_free


def test_pickles_by_its_options():
    made = pickle.loads(pickle.dumps(grouping(always="owl", placeholders="none")))
    assert groups("an owl", made)["owl"] == "sensitive"


# ---- budgets -----------------------------------------------------------------------------------------------


def labelled():
    return Protection(
        public=np.zeros(6, bool),
        group=np.arange(6, dtype=np.int16),
        labels=(PUBLIC, *GROUPS, "EMAIL"),
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("uniform", (12, 12, 12, 12)),
        ("heuristic", (6, 3, 12, 9)),
        ("private-only", (12, 12, INF, INF)),
        ("private-low", (INF, 12, INF, INF)),
        ("all-but-important", (12, 12, INF, 12)),
    ],
)
def test_rules(rule, expected):
    assert Grouped.build(GroupOptions(budgets=rule), 12.0).budgets == expected
    base = 3.0 if rule == "heuristic" else 12.0
    assert Grouped.build(GroupOptions(budgets=rule, base=base), None).budgets == expected


def test_growing_sets_nest():
    finite = [
        {i for i, ratio in enumerate(RULES[name]) if math.isfinite(ratio)}
        for name in ("private-low", "private-only", "all-but-important", "uniform")
    ]
    assert finite == [{1}, {0, 1}, {0, 1, 3}, {0, 1, 2, 3}]


def test_the_settings_of_table_1():
    assert list(TABLE1.values()) == [
        (150, 50, 450, 350),
        (200, 100, 500, 400),
        (250, 150, 550, 450),
        (300, 200, 600, 500),
        (350, 250, 650, 550),
    ]
    code = Grouped.build(GroupOptions(budgets="table1.1", convention="code"), None)
    assert code.budgets == pytest.approx((47.746, 15.915, 143.239, 111.408), abs=1e-3)


def test_assign_gives_unknown_groups_nothing():
    assert Grouped((1, 2, 3, 4)).assign(labelled()).tolist() == [0, 1, 2, 3, 4, 0]


def test_budgets_are_a_rule_or_four_numbers():
    for wrong in ("1,2,3", [1, 2, 3, 4, 5], 7, None):
        with pytest.raises(
            ConfigError, match=r"groups\.budgets must be the name of a rule, or four numbers"
        ):
            GroupOptions(budgets=wrong)  # type: ignore[arg-type]
    assert GroupOptions(budgets="0, 0, inf, 4").budgets == (0, 0, INF, 4)  # type: ignore[comparison-overlap]


def test_four_numbers_with_a_base_are_multiples_of_it():
    assert Grouped.build(GroupOptions(budgets=(0, 1, 4, INF), base=2.5), None).budgets == (
        0,
        2.5,
        10,
        INF,
    )


@pytest.mark.parametrize(
    ("options", "epsilon", "says"),
    [
        ({"budgets": "table1.2"}, 3.0, "fixes the budget of every group"),
        ({"budgets": "table1.2", "base": 3.0}, None, "fixes the budget of every group"),
        ({"budgets": (1, 2, 3, 4)}, 3.0, "fixes the budget of every group"),
        ({"budgets": (1, 2, 3, 4), "base": 1.0}, 3.0, "either epsilon"),
        ({"budgets": "heuristic"}, None, "either epsilon"),
        ({"budgets": "heuristic", "base": 2.0}, 3.0, "either epsilon"),
        ({"budgets": (1, 2, 3, math.nan)}, None, "a group budget"),
        ({"budgets": (1, 2, 3, -1)}, None, "a group budget"),
    ],
)
def test_budgets_that_are_wrong(options, epsilon, says):
    with pytest.raises(BudgetError, match=says):
        Grouped.build(GroupOptions(**options), epsilon)
    with pytest.raises(UnknownName, match="heuristic"):
        Grouped.build(GroupOptions(budgets="heuristik"), 1.0)
