"""Invented identifiers: of reserved ranges only, unique in a session, restored, and nobody's."""

import ipaddress
import re
from itertools import product

import phonenumbers
import pytest
from stdnum import iban, luhn
from stdnum.fi import hetu
from stdnum.gb import nhs
from stdnum.iso7064 import mod_97_10
from stdnum.no import fodselsnummer
from stdnum.us import ssn

from textveil import Privatizer, Protector
from textveil.errors import ConfigError, UnknownName
from textveil.guarantee import describe_hidden
from textveil.mechanism import RESERVED_TYPES, find_range
from textveil.mechanism.reserved_identifiers import PHONE_RANGES, TEST_CARDS
from textveil.pipeline.surrogates import Surrogates
from textveil.session import FileStore, Session, SessionStore

PHONES = ["+49 30 9018-2288", "030/90182288", "(212) 867-5309", "+351 21 123 4567", "867-5309",
          "0044 20 7123 4567", "+49 (0)30 90182288", "+1 212.867.5309"]  # fmt: skip
CARDS = ["4539 1488 0343 6467", "4539-1488-0343-6467", "371449635398431"]
IBANS = ["DE89 3704 0044 0532 0130 00", "gb29nwbk60161331926819", "NO9386011117947"]
NATIONAL = ["536-90-4399", "943 476 5919", "AB 12 34 56 C", "15108695088", "131052-308T"]

# The ranges once more, as their owners write them.
DRAMA = {
    "1": r"[2-9]\d\d55501\d\d",
    "44": r"(?:11[3-8]|1[2-6]1)4960\d{3}|2079460\d{3}|1632960\d{3}|7700900\d{3}",
    "49": r"3023125\d{3}|6990009\d{3}|4066969\d{3}|2214710\d{3}|8999998\d{3}",
    "33": r"(?:19900|26191|35301|46571|53649|63998)\d{4}",
    "61": r"[2378](?:5550|7010)\d{4}",
    "353": r"2091\d{5}",
    "46": r"3139006\d\d|4062804\d\d|8465004\d\d|9803192\d\d|7017406(?!0[0-4])\d\d",
}


def is_phone(shown: str) -> bool:
    digits = re.sub(r"\D", "", shown)
    digits = digits[2:] if shown.startswith("00") else digits
    if len(digits) == 10 and not shown.startswith(("+", "00")):
        digits = f"1{digits}"  # as Americans write it
    return any(
        digits.startswith(code) and re.fullmatch(national, digits[len(code) :])
        for code, national in DRAMA.items()
    )


def is_national(shown: str) -> bool:
    if shown[3] == "-":
        return shown.startswith("666-") and not ssn.is_valid(shown)
    if shown.startswith("QQ"):
        return re.fullmatch(r"QQ \d\d \d\d \d\d [A-D]", shown) is not None
    if shown.startswith("999 "):
        return nhs.is_valid(shown)
    if "-" in shown:
        return shown[7] == "9" and not hetu.is_valid(shown)
    return 81 <= int(shown[2:4]) <= 92 and not fodselsnummer.is_valid(shown)


def is_reserved(type_: str, shown: str) -> bool:
    """Says it by rules that do not come from the product."""
    if type_ == "CARD":
        return luhn.is_valid(re.sub(r"\D", "", shown))
    if type_ == "IBAN":
        signs = re.sub(r"\W", "", shown)
        is_shown = signs.startswith("ZZ") and mod_97_10.is_valid(signs[4:] + signs[:4])
        return is_shown and not iban.is_valid(signs)
    if type_ == "EMAIL":
        return re.fullmatch(r"user\d{5}@example\.(org|com|net)", shown) is not None
    if type_ == "IP":
        address = ipaddress.ip_address(shown)
        nets = "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"
        return any(address in ipaddress.ip_network(net) for net in nets)
    return is_phone(shown) if type_ == "PHONE" else is_national(shown)


ORIGINALS = [
    *product(["PHONE"], PHONES), *product(["CARD"], CARDS), *product(["IBAN"], IBANS),
    *product(["NATIONAL_ID"], NATIONAL), ("EMAIL", "Maria@silva.example"), ("IP", "83.12.4.9"),
    ("IP", "2a02:810a::17"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "original"), ORIGINALS)
def test_all_of_a_range_are_reserved(type_, original) -> None:
    reserved = find_range(type_, original)
    assert reserved is not None
    numbers = {0, reserved.size - 1, *range(0, reserved.size, max(1, reserved.size // 700))}
    shown = [text for number in sorted(numbers) if (text := reserved.write(number)) is not None]
    assert len(set(shown)) == len(shown) > min(2, reserved.size - 1)
    assert [text for text in shown if not is_reserved(type_, text)] == []
    if reserved.keeps_form:
        signs = re.compile(r"[0-9A-Za-z]")
        assert {signs.sub("0", text) for text in shown} == {signs.sub("0", original)}


@pytest.mark.parametrize("type_", RESERVED_TYPES)
@pytest.mark.parametrize("original", ["", "Maria", "12/27", "10.1.2.3/24", "1", "x@"])
def test_what_has_no_form_has_no_range_or_a_reserved_one(type_, original) -> None:
    reserved = find_range(type_, original)
    shown = None if reserved is None else reserved.write(0)
    assert shown is None or is_reserved(type_, shown)


def test_types_without_a_range_have_none() -> None:
    for type_ in ("ACCOUNT", "SECRET", "PERSON", "ADDRESS", "DATE"):
        assert find_range(type_, "4539 1488 0343 6467") is None


def test_drama_numbers_are_numbers_of_their_countries_and_cards_pass_their_check() -> None:
    for code, patterns in PHONE_RANGES:
        for pattern in patterns:
            text = f"+{code}{pattern.rstrip('+').replace('x', '7')}"
            assert phonenumbers.parse(text).country_code == int(code)
    assert all(map(luhn.is_valid, TEST_CARDS))


def test_the_test_knows_real_numbers() -> None:
    """Else it could not fail."""
    real = [
        ("PHONE", "+49 30 9018-2288"), ("PHONE", "(212) 867-5309"), ("CARD", "4539 1488 0343 6468"),
        ("IBAN", "DE89 3704 0044 0532 0130 00"), ("EMAIL", "user12345@silva.example"),
        ("IP", "83.12.4.9"), ("PHONE", "030 23125 000"), *product(["NATIONAL_ID"], NATIONAL[:1]),
        ("NATIONAL_ID", "15108695088"), ("NATIONAL_ID", "131052-308T"),
    ]  # fmt: skip
    assert [text for type_, text in real if is_reserved(type_, text)] == []


# ---- in texts ------------------------------------------------------------------------------------

TEXT = (
    "Call +49 30 9018-2288 or (212) 867-5309. Card 4539 1488 0343 6467, IBAN DE89 3704 0044 0532 "
    "0130 00, mail maria@silva.de, address 83.12.4.9, SSN 536-90-4399, ALTER-9. "
)
DETECTORS = {"detectors": ["patterns", "structure"], "level": "identifiers"}


@pytest.fixture(scope="module")
def inventing() -> Protector:
    return Protector(protect=DETECTORS, identifiers={"types": ["all"]})


def list_canaries() -> list[str]:
    return ["9018", "867-5309", "4539", "6467", "3704", "silva", "83.12", "536-90"]


def test_a_text_has_invented_identifiers_and_comes_back(inventing) -> None:
    session = Session()
    result = inventing.protect(TEXT, session)
    assert [canary for canary in list_canaries() if canary in result.text] == []
    assert "<" not in result.text
    assert session.restore(result.text) == TEXT
    assert "7 by invented ones that belong to nobody" in describe_hidden([result.released])
    assert "became placeholders or invented identifiers" in result.guarantee.summary()
    assert "how an original is written is released" in result.guarantee.explain()
    assert inventing.protect(TEXT, session).text == result.text, "remembered"
    assert inventing.protect(TEXT, Session()).text != result.text, "drawn anew"


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_they_are_remembered_where_sessions_lie(inventing, tmp_path, monkeypatch, kind) -> None:
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    if kind == "sqlite":
        pytest.importorskip("sqlalchemy")

    def open_session() -> Session:
        if kind == "file":
            return FileStore(f"file:{tmp_path}/a.session").open()
        return SessionStore(f"sqlite:///{tmp_path}/veil.db").open("anna")

    first = inventing.protect(TEXT, open_session()).text
    assert inventing.protect(TEXT, open_session()).text == first
    assert open_session().restore(first) == TEXT
    addresses = [f"10.{i}.77.1" for i in range(40)]
    shown = inventing.protect(", ".join(addresses), open_session()).text.split(", ")
    assert len({*shown, *first.split()}) == 40 + len(set(first.split()))
    session = open_session()
    report = session.forget_values(["83.12.4.9"])
    assert report.count == 1
    assert session.restore(first) == TEXT.replace(
        "83.12.4.9", first.split("address ")[1][:-2].split(",")[0]
    )
    again = inventing.protect("It is 83.12.4.9.", open_session()).text
    assert again.split()[-1].rstrip(".") not in first, "a forgotten one is nobody's for good"


def test_answers_may_write_them_otherwise(inventing) -> None:
    session = Session()
    shown = inventing.protect("Card 4539 1488 0343 6467 of maria@silva.de", session).text
    card, mail = shown[5:24], shown.split()[-1]
    for separator in ("", "-", "."):
        answer = session.restore(f"Use {card.replace(' ', separator)}, Robert.")
        assert answer == f"Use {'4539 1488 0343 6467'.replace(' ', separator)}, Robert."
    assert (
        session.restore(f"Dear Anna, {mail.upper()} of Robert")
        == "Dear Anna, maria@silva.de of Robert"
    )
    assert session.restore(f"{card}1 {card[:-1]} x{mail}") == f"{card}1 {card[:-1]} x{mail}"
    pieces = session.restorer()
    assert "".join(map(pieces.feed, f"to {card}.")) + pieces.close() == "to 4539 1488 0343 6467."


def test_equal_values_are_alike_in_all_their_spellings(inventing) -> None:
    session, text = (
        Session(),
        'a 4539148803436467, b 4539 1488 0343 6467, {"card": 4539148803436467}',
    )
    shown = inventing.protect(text, session).text
    digits = re.findall(r"\d{16}", shown.replace(" ", ""))
    assert len(set(digits)) == 1 < len(digits)
    assert session.restore(shown) == text


def test_they_go_with_their_placeholders(inventing) -> None:
    session = Session()
    shown = inventing.protect("Card 4539 1488 0343 6467 of maria@silva.de", session).text
    assert session.forget(["CARD"]) == 1
    assert "4539" not in session.to_json()
    assert session.restore(shown) == f"{shown[:24]} of maria@silva.de"


def test_a_range_that_is_used_up_makes_placeholders(inventing) -> None:
    session = Session()
    cards = [
        "378282246310005",
        "371449635398431",
        "378734493671000",
        "343434343434343",
        "341111111111111",
    ]
    text = ", ".join(f"card {card}" for card in cards)
    shown = inventing.protect(text, session).text
    assert "<CARD_" in shown, "of three cards with 15 digits the text itself has three"
    assert session.restore(shown) == text


def test_none_is_in_the_text_or_the_session(inventing, monkeypatch) -> None:
    """All addresses of a range but one are in the text, or released."""
    nets, free = ("192.0.2", "198.51.100", "203.0.113"), "203.0.113.7"
    rest = [f"{net}.{i}" for net, i in product(nets, range(1, 255)) if f"{net}.{i}" != free]
    session = Session()
    inventing.protect(" ".join(rest[:400]), session)
    text = "My address is 83.12.4.9, not " + " ".join(rest[400:])
    assert free in inventing.protect(text, session).text
    monkeypatch.setattr(Surrogates, "_is_free", lambda *_: True)
    shown = {inventing.protect("My address is 83.12.4.9", Session()).text for _ in range(9)}
    assert any(free not in text for text in shown), "or the test could not fail"


def test_without_a_session_each_text_stands_alone(inventing) -> None:
    first, second = inventing.protect_many([TEXT, TEXT])
    assert first.text != second.text
    assert not [canary for canary in list_canaries() if canary in first.text]


def test_a_number_in_json_stays_one_and_markup_stays_markup(inventing) -> None:
    session = Session()
    for text in ('{"card": 4539148803436467}', "<b>4539 1488 0343 6467</b>"):
        shown = inventing.protect(text, session).text
        assert re.fullmatch(r'\{"card": \d{16}\}|<b>[\d ]{19}</b>', shown)
        assert session.restore(shown) == text


def test_draws_come_from_the_stream_of_the_call() -> None:
    seeded = [
        Protector(protect=DETECTORS, identifiers={"types": ["all"]}, seed=s) for s in (1, 1, 2)
    ]
    shown = [protector.protect(TEXT).text for protector in seeded]
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"identifiers": {"types": ["SECRET"]}}, UnknownName),
        ({"identifiers": {"types": ["all"]}, "words": {"consistent": False}}, ConfigError),
    ],
)
def test_what_does_not_go_together_is_refused(options, error) -> None:
    with pytest.raises(error, match=r"identifiers\.types"):
        Privatizer.from_profile("prompt", **{"protect": DETECTORS, **options})


def test_only_the_types_that_are_named_are_invented() -> None:
    some = Protector(protect=DETECTORS, identifiers={"types": ["IP"]})
    shown = some.protect(TEXT).text
    assert "<CARD_1>" in shown
    assert "<IP_1>" not in shown
