"""Which names make entries of the list of known persons."""

from collections import Counter

import pytest
from training.known_persons import read_titles, select_entries


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


def test_entries():
    given, family = ("John", "Mary", "Peter", "Anna", "Paul"), ("Smith", "Brown", "Jones", "Miller")
    common = [f"{one} {other}" for one in given for other in (*family, "Davis")]
    mentions = Counter({"ada quill": 3, "bo lindqvist": 2})
    entries = select_entries(["Mary Brown"], [*common, "Sir Yusuf B. Tanrik"], mentions)
    assert entries == {"mary brown", "yusuf tanrik", "ada quill"}
