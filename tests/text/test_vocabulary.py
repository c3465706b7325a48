"""The vocabulary: files of words that people mend by hand."""

import unicodedata
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from babel import Locale

import textveil
from textveil.text import vocabulary
from training import vocabulary as cldr

FOLDER = Path(str(files("textveil"))) / "data" / "vocabulary"
LANGUAGES = sorted(file.stem for file in FOLDER.glob("*.yaml") if file.stem != "keys")
KEYS = yaml.load((FOLDER / "keys.yaml").read_text("utf-8"), yaml.BaseLoader)
KNOWN = {
    f"{key}.{name}" if name else key
    for key, below in KEYS.items()
    for name in (below if isinstance(below, dict) else {"": ""})
}
CAPITALS = {("de", "years"), ("de", "years_old")}
"""Lists that are written into texts as they stand."""


def test_words_are_read_by_list_and_language() -> None:
    assert "frau" in vocabulary.get_words("titles", "de")
    assert vocabulary.get_words("titles", "de") < vocabulary.get_words("titles")
    assert vocabulary.get_words("titles", "de", "en") == vocabulary.get_words(
        "titles", "de"
    ) | vocabulary.get_words("titles", "en")
    assert vocabulary.get_words_by_language("months.1")["pl"][0] == "styczeń"
    assert {"no", "nr"} <= vocabulary.get_words("abbreviations_anywhere")  # no truth value of YAML
    assert "fields.given" in vocabulary.list_names("fields")
    with pytest.raises(KeyError):
        vocabulary.get_words("title")


def test_all_lists_are_described_and_all_descriptions_have_lists() -> None:
    assert set(vocabulary._read_lists()) == KNOWN


@pytest.mark.parametrize("language", LANGUAGES)
def test_entries_are_in_form(language: str) -> None:
    """In a list each stands once, in small letters, with whole characters and single spaces."""
    assert language == "any" or (len(language) == 2 and language in Locale("en").languages)
    text = (FOLDER / f"{language}.yaml").read_text("utf-8")
    assert text.splitlines()[0] == cldr.head(language).rstrip()
    for key in KNOWN:
        listed = vocabulary.get_words_by_language(key).get(language, ())
        assert len(listed) == len(set(listed)), key
        for entry in listed:
            small = entry if (language, key) in CAPITALS else entry.lower()
            assert entry, key
            assert entry == unicodedata.normalize("NFC", " ".join(small.split())), key


def test_each_list_is_used() -> None:
    """The code names each, but for those below headings, which are read together."""
    folders = (Path(textveil.__file__).parent, Path(cldr.__file__).parent)
    code = "".join(file.read_text("utf-8") for each in folders for file in each.rglob("*.py"))
    for key in KNOWN:
        heading = key.partition(".")[0]
        told = (f'"{key}"', f'"{heading}"', f'"{heading}.{{')
        assert any(each in code for each in told), key


def test_no_key_announces_two_kinds() -> None:
    kinds: dict[str, str] = {}
    for name in vocabulary.list_names("fields"):
        for key in vocabulary.get_words(name):
            assert kinds.setdefault(key, name) == name, key


def test_months_are_those_of_the_cldr(tmp_path: Path) -> None:
    """The files are as `make vocabulary` writes them."""
    for file in FOLDER.glob("*.yaml"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    cldr.main(tmp_path)
    for file in FOLDER.glob("*.yaml"):
        assert (tmp_path / file.name).read_text("utf-8") == file.read_text("utf-8")
