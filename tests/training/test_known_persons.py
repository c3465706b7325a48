"""Which names make entries of the list of known persons."""

import pickle
from collections import Counter

import pytest
from training.known_persons import find_mentioned, read_persons, read_titles, select_entries


@pytest.mark.parametrize(
    ("article", "name"),
    [
        ("Yusuf Tanrik\nYusuf Tanrik (born 3 May 1951) is a Turkish poet.", "Yusuf Tanrik"),
        ("Ada Quill (singer)\nAda Quill (1901–1970) sang.", "Ada Quill"),
        ("Bo Lindqvist\nBo Lindqvist is a Swedish architect.", "Bo Lindqvist"),
        ("Tanrik Bridge\nTanrik Bridge (built 1901) is a bridge.", None),
        ("List of poets\nYusuf Tanrik (born 1951) is a poet.", None),
    ],
)
def test_titles(article, name):
    assert [*read_titles([article])] == ([name] if name else [])


COMMON = [
    f"{given} {family}"
    for given in ("John", "Mary", "Peter", "Anna", "Paul")
    for family in ("Smith", "Brown", "Jones", "Miller", "Davis")
]


def test_entries():
    mentions = Counter({"ada quill": 3, "bo lindqvist": 2})
    entries = select_entries(
        ["Mary Brown"],
        ["John Davis (singer)", "Plato"],
        [*COMMON, "Sir Yusuf B. Tanrik"],
        mentions,
        {},
    )
    assert entries == {"mary brown", "john davis", "yusuf tanrik", "ada quill"}


def test_common_among_persons():
    persons = {name.lower(): 1 for name in COMMON} | {"p jones": 9}
    found = ["Anna Smith", "Yusuf Smith", "P. D. Smith"]
    entries = select_entries([], [], found, Counter(), persons)
    assert entries == {"yusuf smith", "p d smith"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("In 1901 Yusuf Tanrik and Ada Quill met.", {"yusuf tanrik", "ada quill"}),
        ("The poems of Juana de la Rosa are read.", {"juana de la rosa"}),
        ("Later Sir Yusuf Tanrik’s brother came.", {"yusuf tanrik"}),
        ("A yusuf tanrik is a dish.", set()),
    ],
)
def test_mentioned(text, names):
    assert find_mentioned([text], {"yusuf tanrik", "ada quill", "juana de la rosa"}) == names


def test_persons(tmp_path):
    names = {"Yusuf Tanrik": ["Irish"], "Plato": ["Greek"], "Ada Quill": ["Irish", "Welsh"]}
    (tmp_path / "name2nats.pkl").write_bytes(pickle.dumps(names))
    assert [*read_persons(tmp_path).items()] == [("yusuf tanrik", 1), ("ada quill", 2)]


def test_persons_run_no_code(tmp_path):
    (tmp_path / "name2nats.pkl").write_bytes(pickle.dumps({"Yusuf Tanrik": Counter()}))
    with pytest.raises(pickle.UnpicklingError):
        read_persons(tmp_path)
