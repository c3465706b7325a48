"""Dates of all kinds: `protect.dates` hides those of somebody's life, all, or none."""

import time

import pytest

from textveil import ConfigError, Protector, Session
from textveil.config import ProtectOptions
from textveil.detect.event_dates import EventDates

DATES = {
    "They met on 12 May 1998 there.": "12 May 1998",
    "On May 12th, 1998 they met.": "May 12th, 1998",
    "Seen 12.05.1998 in Bonn.": "12.05.1998",
    "Seen am 5.3.98 in Bonn.": "5.3.98",
    "filed 1998-05-12T10:00:00Z": "1998-05-12",
    "Ingresó el 12 de mayo de 1998.": "12 de mayo de 1998",
    "Desde enero del 1999 fuma.": "enero del 1999",
    "It began in March 2001.": "March 2001",
    "In 2001 it began.": "2001",
    "Der 3. Mai war heiß.": "3. Mai",
    "El 3 de mayo llovió.": "3 de mayo",
    "On Monday, 12 May 1998, it rained.": "Monday, 12 May 1998",
    "from 3 to 7 May 1998": "3 to 7 May 1998",
    "on 2, 5 and 13 May 1998": "2, 5 and 13 May 1998",
    "between May and June 1998": "May and June 1998",
    "the years 1998-2001": "1998-2001",
    "It was 1998–2001.": "1998–2001",
    "the summer of 1998": "1998",
    "im Sommer 1998": "1998",
    "in Q3 1998": "Q3 1998",
    "the 1998 trial": "1998",
    "(Smith, 1998)": "1998",
    "1998 - present": "1998",
    "12-ene-2001": "12-ene-2001",
    "12. května 1998": "12. května 1998",
    "1998. május 12.": "1998. május 12.",
    "2001 yılında": "2001",
    "12 Kasım 2001": "12 Kasım 2001",
    "12 Μαΐου 1998": "12 Μαΐου 1998",
    "w maju; 1998 r.": "1998",
    "в 1998 году": "1998",
    "1998年5月12日に": "1998年5月12日",
    "في 12 مايو 1998": "12 مايو 1998",
}

NUMBERS = (
    "under the Theft Act 1998 and the 1998 Act",
    "Python 3.10.12 on Windows 2000",
    "costs 2001 euros, in 2000 mg, and $1998.50",
    "application no. 40593/04, room 2001, code 12345-1998-05",
    "3 set of 5, 5 out of 10, we may come",
    "call 555-1998 or 1998 2003",
    "on 45.13.1998",
)


def find(text: str) -> list[str]:
    return [text[span.start : span.end] for span in EventDates().find([text])]


@pytest.mark.parametrize("text", DATES)
def test_all_forms_are_found(text: str) -> None:
    assert find(text) == [DATES[text]]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_of_other_kinds_stay(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize("unit", ["12 ", "1998, ", "1 May ", "(a, ", "| ", "12.05. - "])
def test_time_is_linear(unit: str) -> None:
    def measure(size: int) -> float:
        start = time.process_time()
        find(unit * size + "1")
        return time.process_time() - start

    find("1")
    measured = [measure(size) for size in (500, 4_000)]
    assert measured[1] < 24 * measured[0] + 0.1  # eight times the text; a square would take 64


BORN = "I am Anna Kowalska, born on 12 May 1998. The war ended on 8 May 1945."


def protect(text: str, dates: str) -> str:
    options = {"dates": dates, "detectors": "patterns"}
    return Protector(protect=options).protect(text).text


def test_options_hide_personal_dates_or_all_or_none() -> None:
    assert protect(BORN, "personal") == BORN.replace("12 May 1998", "<BIRTH_DATE_1>")
    hidden = BORN.replace("12 May 1998", "<BIRTH_DATE_1>").replace("8 May 1945", "<DATE_1>")
    assert protect(BORN, "all") == hidden
    assert protect(BORN, "none") == BORN


def test_listed_date_is_hidden_whatever_the_option() -> None:
    listed = Protector(protect={"dates": "none", "always": ["12 May 1998"]})
    assert "1998" not in listed.protect(BORN).text


def test_dates_are_restored_and_equal_dates_share_a_placeholder() -> None:
    protector = Protector(protect={"dates": "all", "detectors": "patterns"})
    session = Session()
    released = protector.protect("It began in 2001 and ended on 3 May 2004.", session).text
    assert released == "It began in <DATE_1> and ended on <DATE_2>."
    assert protector.protect("Since 2001?", session).text == "Since <DATE_1>?"
    assert session.restore("<DATE_1>, <DATE_2>") == "2001, 3 May 2004"


def test_all_dates_are_moved_together() -> None:
    protector = Protector(
        protect={"dates": "all", "detectors": "patterns"}, figures={"types": ["DATE"]}, seed=1
    )
    text = protector.protect("It began on 3 May 2001 and ended on 4 May 2001.", Session()).text
    assert "3 May" not in text
    assert "<" not in text


def test_wrong_values_name_the_options() -> None:
    with pytest.raises(ConfigError, match=r"'personal', 'all' or 'none', got 'some'"):
        Protector(protect={"dates": "some"})
    with pytest.raises(ConfigError, match=r"protect\.types"):
        ProtectOptions(dates="all", detectors=("patterns",), types=("PERSON",))
    with pytest.raises(ConfigError, match=r"protect\.detectors"):
        ProtectOptions(dates="all")


def test_default_is_not_written_into_configurations() -> None:
    """Stored results are found by their configuration, and the option is younger."""
    assert "dates" not in ProtectOptions().dump()
    assert ProtectOptions(dates="all", detectors=("patterns",)).dump_public()["dates"] == "all"
