"""Figures: what is read with certainty, and that another value is written in the same form."""

from datetime import date, timedelta

import pytest

from textveil.protect.figures import OLDEST, read

DAY = date(1951, 2, 14).toordinal()


@pytest.mark.parametrize(
    ("text", "later"),
    [
        ("1951-02-14", "1951-03-06"),
        ("1951-2-14", "1951-3-6"),
        ("1951/02/14", "1951/03/06"),
        ("14.02.1951", "06.03.1951"),
        ("14.2.1951", "6.3.1951"),
        ("14. 2. 1951", "6. 3. 1951"),
        ("14 February 1951", "6 March 1951"),
        ("14 Feb 1951", "6 Mar 1951"),
        ("14 FEBRUARY 1951", "6 MARCH 1951"),
        ("14th of February, 1951", "6th of March, 1951"),
        ("February 14, 1951", "March 6, 1951"),
        ("Feb. 14th 1951", "Mar. 6th 1951"),
        ("14. Februar 1951", "6. März 1951"),
        ("14 février 1951", "6 mars 1951"),
        ("14 de febrero de 1951", "6 de marzo de 1951"),
        ("14 de fevereiro de 1951", "6 de março de 1951"),
        ("14 febbraio 1951", "6 marzo 1951"),
        ("14 februari 1951", "6 maart 1951"),
        ("14 lutego 1951", "6 marca 1951"),
        ("14 февраля 1951", "6 марта 1951"),
        ("1951年2月14日", "1951年3月6日"),
        ("1951년 2월 14일", "1951년 3월 6일"),
    ],
)
def test_a_date_keeps_its_form(text, later):
    figure = read("BIRTH_DATE", text)
    assert figure is not None
    assert (figure.value, figure.places) == (DAY, 0)
    assert figure.write(DAY) == text
    assert figure.write(DAY + 20) == later
    assert read("DATE", later).write(DAY) == text  # type: ignore[union-attr]


@pytest.mark.parametrize("days", [1, 27, 100, -3000])
def test_ordinals_fit_the_day(days):
    figure = read("DATE", "1st March 2024")
    assert figure is not None
    moved = date(2024, 3, 1) + timedelta(days)
    ending = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(moved.day, "th")
    assert figure.write(figure.value + days) == f"{moved.day}{ending} {moved:%B %Y}"


@pytest.mark.parametrize(
    "text",
    [
        *("3/1/2024", "12-11-2024", "14/14/2024", "14/02/51", "1951-02-30", "30.02.2024", "00.02.2024", "19510214"),
        *("14 February", "February 1951", "1951", "14 Brumaire 1951", "14. Febr. 1951", "14. February 1951"),
        *("May, 14 1951", "٣ March 2024", "1951-02-14T10:00", "on 14 February 1951", "1st de febrero de 1951", ""),
    ],
)
def test_a_date_that_is_not_certain_is_not_read(text):
    assert read("DATE", text) is None


def test_nothing_is_written_that_would_be_read_otherwise():
    slashed = read("DATE", "13/02/2024")
    assert slashed is not None
    assert slashed.write(slashed.value + 5) == "18/02/2024"
    assert slashed.write(slashed.value + 21) is None  # 05/03 may be the 3rd of May
    april = read("DATE", "14 april 1951")
    assert april is not None
    assert april.write(april.value + 1) == "15 april 1951"
    assert april.write(april.value + 60) is None  # "june" or "juni"
    for days in (10**7, -(10**7), -(365 * 1000)):
        assert read("DATE", "1951-02-14").write(DAY + days) is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ["34", "34 years old", "34-year-old", "34 ans", "34yo", "34岁", "34 Jahre alt", "34 лет"]
)
def test_an_age_keeps_its_words_and_stays_in_its_range(text):
    figure = read("AGE", text)
    assert figure is not None
    assert [figure.key, figure.places] == ["34", 0]
    for value, shown in ((34, 34), (41, 41), (0, 0), (-9, 0), (OLDEST + 1, OLDEST), (10**9, OLDEST)):
        assert figure.write(value) == text.replace("34", str(shown))


@pytest.mark.parametrize("text", ["29F", "thirty", "121", "034", "-3", "3.5", "٣٤", "34 in May", "34 or 35", ""])
def test_an_age_that_is_not_certain_is_not_read(text):
    assert read("AGE", text) is None


@pytest.mark.parametrize(
    ("text", "value", "places", "least", "more"),
    [
        ("1250", 1250, 0, "0", "1350"),
        ("€1,250.50", 125050, 2, "€0.00", "€1,251.50"),
        ("1.250,5 EUR", 12505, 1, "0,0 EUR", "1.260,5 EUR"),
        ("12 500 kr", 12500, 0, "0 kr", "12 600 kr"),
        ("98.6 kg", 986, 1, "0.0 kg", "108.6 kg"),
        ("999.99", 99999, 2, "0.00", "1000.99"),
    ],
)
def test_an_amount_keeps_its_form_and_is_not_below_zero(text, value, places, least, more):
    figure = read("AMOUNT", text)
    assert figure is not None
    assert (figure.value, figure.places) == (value, places)
    assert figure.write(value) == text
    assert figure.write(-5) == least
    assert figure.write(value + 100) == more


@pytest.mark.parametrize("text", ["1,250", "1.250", "-50", "(50)", "007", "1.2.3", "12%34", "fifty", "1e9", "5-", "½"])
def test_an_amount_that_is_not_certain_is_not_read(text):
    assert read("AMOUNT", text) is None
