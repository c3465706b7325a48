"""Windows: what a paragraph of its own shows is private, whatever stands beside it."""

from collections.abc import Sequence

import pytest

from textveil import Protector, Session
from textveil.detect import stages
from textveil.detect.library_taggers import TaggerDetector
from textveil.detect.spans import Span
from textveil.detect.windows import find_windows

NEWS = (
    "Germany's chancellor Olaf Scholz met the French president Emmanuel Macron in Berlin. Both "
    "leaders spoke about the budget of the European Union, and about the plans of Airbus and "
    "Siemens. Angela Merkel, who led the country for sixteen years, did not take part."
)
NOTE = "Tomasz Wilk missed the appointment and asked for a refund."


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        ("One line without an end", []),
        ("A first paragraph.\n\nA second paragraph.", [(0, 18), (20, 39)]),
        ("A first paragraph.\n \t\n\nA second paragraph.", [(0, 18), (23, 42)]),
        (r"A first paragraph.\n\nA second paragraph.", [(0, 18), (22, 41)]),
        (f"{NOTE}\n{NOTE}", [(0, 58), (59, 117)]),
        ("a line that is wrapped at some\nwidth, and goes on", []),
        ("tiny\n\nA second paragraph.", []),
        ("", []),
        ("\n\n\n", []),
    ],
)
def test_windows_are_paragraphs(text: str, windows: list[tuple[int, int]]) -> None:
    assert find_windows(text) == windows


def test_long_strings_of_data_are_windows() -> None:
    text = '{"id": "abc", "body": "Marek is ill today.", "note": "Call him at noon."}'
    assert {"Marek is ill today.", "Call him at noon."} <= {
        text[a:b] for a, b in find_windows(text)
    }


@pytest.mark.parametrize(
    "text", [f"{NEWS}\n\n{NOTE}", f"{NOTE}\n\n{NEWS}", f"{NEWS}\n\n{NOTE}\n\n{NEWS}"]
)
def test_a_stranger_beside_news_is_hidden(text: str) -> None:
    release = Protector().protect(text, Session()).text
    assert "Tomasz" not in release
    assert "Wilk" not in release
    assert "Angela Merkel" in release
    assert "Siemens" in release


def test_without_windows_the_stranger_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: the test above can fail."""
    several = ("windows", "second reading")
    rest = tuple(stage for stage in stages.STAGES if stage.name not in several)
    monkeypatch.setattr(stages, "STAGES", rest)
    assert "Tomasz" in Protector().protect(f"{NEWS}\n\n{NOTE}\n\n{NEWS}", Session()).text


def test_an_unchanged_paragraph_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    find = TaggerDetector.find

    def record(self: TaggerDetector, texts: Sequence[str]) -> list[Span]:
        read.extend(texts)
        return find(self, texts)

    monkeypatch.setattr(TaggerDetector, "find", record)
    protector = Protector().privatizer.remembering()
    texts = [f"{NEWS}\n\n{NOTE}", f"{NEWS}\n\n{NOTE}\n\nThanks!"]
    assert [*protector.privatize_many(texts)]
    assert read.count(NOTE) == 1
