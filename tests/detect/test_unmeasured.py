"""Scripts and languages for which it was not measured how much is found."""

import pytest

from textveil import Protector
from textveil.detect.unmeasured_languages import list_unmeasured
from textveil.errors import ConfigError, InputError
from textveil.session.state import Session

THAI = "Write to สมชาย ใจดี about the invoice."


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (THAI, ("Thai",)),
        ("Γράψε ένα γράμμα", ("Greek",)),
        ("שלום לכולם, ეს არის", ("Georgian", "Hebrew")),
        ("Hej, jag heter Lars och jag måste prata med dig om det som inte hände.", ("Swedish",)),
        (
            "Dobrý den, prosím o radu, že jsem nemohl přijít a které dny jsou volné, když není čas.",
            ("Czech",),
        ),
        ("Напиши листа їй, її адреса є тут", ("Ukrainian",)),
        ("The angle α, the sum Σ and the units µm.", ()),
        ("Ich bin mit der Rechnung nicht einverstanden und möchte Sie bitten, sie zu prüfen.", ()),
        ("请帮我写一封信。 お願いします。 부탁해요. Напиши письмо. اكتب رسالة. एक पत्र लिखो।", ()),
    ],
)
def test_what_was_not_measured_is_named(text: str, names: tuple[str, ...]) -> None:
    assert list_unmeasured(text) == names


def test_the_result_says_so_and_the_text_passes() -> None:
    result = Protector(protect={"detectors": ["patterns"]}).protect(THAI)
    assert result.unmeasured == ("Thai",)
    assert result.to_json()["unmeasured"] == ["Thai"]
    assert result.text == THAI


def test_strict_makes_placeholders_of_it() -> None:
    guard = Protector(protect={"detectors": ["patterns"], "unmeasured": "strict"})
    session = Session()
    sent = guard.protect(THAI, session).text
    assert sent == "Write to <TEXT_1> about the invoice."
    assert session.restore(sent) == THAI
    assert guard.protect("Plain English stays.").text == "Plain English stays."


def test_refuse_releases_nothing_and_shows_no_text() -> None:
    guard = Protector(protect={"detectors": ["patterns"], "unmeasured": "refuse"})
    with pytest.raises(InputError, match="not measured for Thai text") as raised:
        guard.protect(THAI)
    assert "สมชาย" not in str(raised.value)
    assert guard.protect("Plain English stays.").text == "Plain English stays."


def test_the_option_needs_detectors() -> None:
    with pytest.raises(ConfigError, match=r"protect\.unmeasured"):
        Protector(protect={"detectors": [], "always": ["Alder"], "unmeasured": "strict"})
