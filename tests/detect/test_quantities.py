"""Figures: what is read with certainty, and that another value is written in a form that does not tell of the first."""

from datetime import date, timedelta

import pytest

from textveil.detect.quantities import MAX_AGE, Figure, find_age_end, read

DAY = date(1951, 2, 14).toordinal()


@pytest.mark.parametrize(
    ("text", "later"),
    [
        ("1951-02-14", "1951-03-06"),
        ("1951-2-14", "1951-03-06"),
        ("1951/02/14", "1951/03/06"),
        ("14.02.1951", "06.03.1951"),
        ("14.2.1951", "06.03.1951"),
        ("14. 2. 1951", "6. 3. 1951"),
        ("14. 02. 1951", "6. 3. 1951"),
        ("14 February 1951", "6 March 1951"),
        ("14 Feb 1951", "6 March 1951"),
        ("14th of February, 1951", "6th of March, 1951"),
        ("February 14, 1951", "March 6, 1951"),
        ("Feb. 14th 1951", "March 6th 1951"),
        ("14. Februar 1951", "6. März 1951"),
        ("14. Feb. 1951", "6. März 1951"),
        ("1951年2月14日", "1951年3月6日"),
        ("1951년 02월 14일", "1951년 3월 6일"),
    ],
)
def test_a_date_keeps_its_form(text, later):
    figure = read("BIRTH_DATE", text)
    assert figure is not None
    assert figure.value == DAY
    assert figure.write(DAY + 20) == later
    assert read("DATE", later).value == DAY + 20  # type: ignore[union-attr]
    assert read("DATE", later).write(DAY + 20) == later  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "14 february 1951",
            "14. februar 1951",
            "14 février 1951",
            "14 févr. 1951",
            "14 februari 1951",
        ),
        *(
            "14 de febrero de 1951",
            "14 de fevereiro de 1951",
            "14º de fevereiro de 1951",
            "14 febbraio 1951",
        ),
        *(
            "14 lutego 1951",
            "14 февраля 1951",
            "14 лютого 1951",
            "14. helmikuuta 1951",
            "14 fevrier 1951",
        ),
    ],
)
def test_a_date_whose_language_only_some_months_tell_is_written_in_figures(text):
    figure = read("DATE", text)
    assert figure is not None
    assert (figure.value, figure.write(DAY + 20)) == (DAY, "1951-03-06")


@pytest.mark.parametrize(
    ("text", "later"),
    [
        ("14 FEBRUARY 1951", "6 March 1951"),
        ("14 Şubat 1951", "6 March 1951"),
        ("Febrero 14, 1951", "March 6, 1951"),
        ("14. Februar 1951", "6. März 1951"),
    ],
)
def test_how_the_words_of_a_date_stand_says_in_which_words_another_is_written(text, later):
    assert read("DATE", text).write(DAY + 20) == later  # type: ignore[union-attr]


@pytest.mark.parametrize("days", [1, 27, 100, -3000])
def test_ordinals_fit_the_day(days):
    figure = read("DATE", "1st March 2024")
    assert figure is not None
    moved = date(2024, 3, 1) + timedelta(days)
    ending = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(
        moved.day, "th"
    )
    assert figure.write(figure.value + days) == f"{moved.day}{ending} {moved:%B %Y}"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "3/1/2024",
            "12-11-2024",
            "14/14/2024",
            "13/02/2024",
            "02-13-2024",
            "14/02/51",
            "1951-02-30",
            "30.02.2024",
            "00.02.2024",
            "19510214",
        ),
        *(
            "14 February",
            "February 1951",
            "1951",
            "14 Brumaire 1951",
            "14 XII 1951",
            "31 Sept. 1951",
            "14.Sept.1951",
        ),
        *("May, 14 1951", "٣ March 2024", "1951-02-14T10:00", "on 14 February 1951", ""),
    ],
)
def test_a_date_that_is_not_certain_is_not_read(text):
    assert read("DATE", text) is None


@pytest.mark.parametrize("days", [10**7, -(10**7), -(365 * 1000)])
@pytest.mark.parametrize(
    "text", ["1951-02-14", "14. 2. 1951", "14 February 1951", "14 de febrero de 1951"]
)
def test_no_year_has_more_or_fewer_than_four_figures(days, text):
    assert read("DATE", text).write(DAY + days) is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "34",
        "34 years old",
        "34-year-old",
        "34 ans",
        "34yo",
        "34岁",
        "34 Jahre alt",
        "34 YEARS",
        "34 साल",
    ],
)
def test_an_age_keeps_its_words_and_stays_in_its_range(text):
    figure = read("AGE", text)
    assert figure is not None
    assert figure.key == "34"
    for value, shown in (
        (34, 34),
        (41, 41),
        (0, 0),
        (-9, 0),
        (MAX_AGE + 1, MAX_AGE),
        (10**9, MAX_AGE),
    ):
        assert figure.write(value) == text.replace("34", str(shown))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("34 year old", {1: "1 year old", 8: "8 years old"}),
        ("1 year old", {1: "1 year old", 8: "8 years old"}),
        ("1 Jahr alt", {1: "1 Jahr alt", 8: "8 Jahre alt"}),
        (
            "21 год",
            {
                1: "1 год",
                3: "3 года",
                8: "8 лет",
                11: "11 лет",
                12: "12 лет",
                101: "101 год",
                111: "111 лет",
            },
        ),
        ("22 lata", {1: "1 rok", 3: "3 lata", 8: "8 lat", 12: "12 lat", 21: "21 lat"}),
    ],
)
def test_the_word_beside_an_age_agrees_with_the_new_number(text, shown):
    figure = read("AGE", text)
    assert figure is not None
    assert {value: figure.write(value) for value in shown} == shown


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("is 21 years old.", "21 years old"),
        ("is 21 yearsold.", "21"),
        ("ей 21 год, и", "21 год"),
        ("a 34-year-old man", "34-year-old"),
        ("34岁了", "34岁"),
        ("is 34 an engineer", "34"),
        ("is 34", "34"),
        ("is 8 months old", "8 months"),
        ("8 Monate alt", "8 Monate"),
        ("aged 8 weeksx", "8"),
        ("8個月大", "8個月"),
    ],
)
def test_an_age_ends_with_its_unit(text, whole):
    start = text.index(next(filter(str.isdigit, text)))
    end = next(i for i in range(start, len(text) + 1) if not text[i : i + 1].isdigit())
    assert text[start : find_age_end(text, start, end)] == whole


@pytest.mark.parametrize(
    "text",
    [
        *("29F", "thirty", "121", "-3", "3.5", "٣٤", "34 in May", "34 or 35", ""),
        *("8 months", "6 weeks", "8 mois", "34 an", "34 год", "5 lata"),
    ],
)
def test_an_age_that_is_not_certain_is_not_read(text):
    assert read("AGE", text) is None


@pytest.mark.parametrize(
    ("text", "value", "least", "more"),
    [
        ("1250", 125000, "0", "1251"),
        ("€1,250.50", 125050, "€0.00", "€1251.99"),
        ("1.250,5 EUR", 125050, "0,0 EUR", "1252,0 EUR"),
        ("12 500 kr", 1250000, "0 kr", "12501 kr"),
        ("98.6 kg", 9860, "0.0 kg", "100.1 kg"),
        ("999.99", 99999, "0.00", "1001.48"),
        ("1,250", 125000, "0", "1251"),
        ("1.250 EUR", 125000, "0 EUR", "1251 EUR"),
        ("1,25,000.50", 12500050, "0.00", "125001.99"),
        ("007", 700, "0", "8"),
        ("1,250.125", 125012500, "0", "1250126"),
        ("0.07", 7, "0.00", "1.56"),
    ],
)
def test_an_amount_keeps_its_form_and_is_not_below_zero(text, value, least, more):
    figure = read("AMOUNT", text)
    assert figure is not None
    assert figure.value == value
    assert figure.write(-5) == least
    assert figure.write(value + 149) == more


@pytest.mark.parametrize(
    "text", ["1.2345", "-50", "(50)", "1.250.5", "1.2.3", "12%34", "fifty", "1e9", "5-", "½"]
)
def test_an_amount_that_is_not_certain_is_not_read(text):
    assert read("AMOUNT", text) is None


# ---- what a release tells --------------------------------------------------------------------------------------------

DUTCH = "januari februari maart april mei juni juli augustus september oktober november december"
SPANISH = "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
FRENCH = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
DAYS = [date(2024, 1, 1) + timedelta(days) for days in range(366)]


def years_in_russian(age):
    return (
        "лет"
        if age % 10 > 4 or age % 10 == 0 or 10 < age < 20
        else "год"
        if age % 10 == 1
        else "года"
    )


def in_groups(number, mark, first=4):
    """Figures in groups of three, from a number of figures on."""
    return f"{number:,}".replace(",", mark) if len(str(number)) >= first else str(number)


def in_lakhs(number):
    """Figures in groups as in India."""
    head, tail = divmod(number, 1000)
    groups = [f"{tail:03}"]
    while head > 99:
        head, rest = divmod(head, 100)
        groups.append(f"{rest:02}")
    return ",".join([str(head), *reversed(groups)]) if head or groups[1:] else str(number)


MONTHS = """
Jan. Feb. March April May June July Aug. Sept. Oct. Nov. Dec. | Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec
Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.
janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.
ene feb mar abr may jun jul ago sept oct nov dic | gen feb mar apr mag giu lug ago set ott nov dic
jan fev mar abr mai jun jul ago set out nov dez | jan feb mrt apr mei jun jul aug sep okt nov dec
sty lut mar kwi maj cze lip sie wrz paź lis gru
Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık
januari februari mars april maj juni juli augusti september oktober november december
januar februar marts april maj juni juli august september oktober november december
Januari Februari Maret April Mei Juni Juli Agustus September Oktober November Desember
ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie
ledna února března dubna května června července srpna září října listopadu prosince
січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня
"""
"""How the months are written, whole or short, by language."""

HABITS = [
    *(
        (
            "DATE",
            DAYS[::7],
            lambda day, words=words, form=form: form.format(day, words[day.month - 1]),
        )
        for words in map(str.split, MONTHS.strip().replace("\n", "|").split("|"))
        for form in (
            "{0.day} {1} {0.year}",
            "{0.day}. {1} {0.year}",
            "{1} {0.day}, {0.year}",
            "{0.day} de {1} de {0.year}",
        )
    ),
    ("AGE", range(MAX_AGE + 1), lambda age: f"{age:02}"),
    *(
        (
            "AMOUNT",
            range(0, 20_000_000, 199_991),
            lambda number, write=write: f"{write(number)} EUR",
        )
        for write in (
            *(
                lambda number, mark=mark: in_groups(number, mark)
                for mark in (",", ".", "\u00a0", "’")
            ),
            *(lambda number, mark=mark: in_groups(number, mark, 5) for mark in (",", ".")),
            in_lakhs,
            "{:08}".format,
            lambda number: f"{number / 1000:.3f}",
            lambda number: f"{number / 1000:,.3f}".replace(",", " ").replace(".", ","),
        )
    ),
    ("DATE", DAYS, date.isoformat),
    ("DATE", DAYS, lambda day: f"{day.day}.{day.month}.{day.year}"),
    ("DATE", DAYS, lambda day: f"{day:%d. %m. %Y}"),
    ("DATE", DAYS, lambda day: f"{day.year}年{day.month}月{day.day}日"),
    ("DATE", DAYS, lambda day: f"{day:%d %B %Y}"),
    ("DATE", DAYS, lambda day: f"{day:%b} {day.day}, {day.year}"),
    ("DATE", DAYS, lambda day: f"{day:%d %B %Y}".lower()),
    ("DATE", DAYS, lambda day: f"{day.day} {DUTCH.split()[day.month - 1]} {day.year}"),
    ("DATE", DAYS, lambda day: f"{day.day} de {SPANISH.split()[day.month - 1]} de {day.year}"),
    (
        "DATE",
        DAYS,
        lambda day: f"{day.day}{'er' * (day.day == 1)} {FRENCH.split()[day.month - 1]} {day.year}",
    ),
    ("AGE", range(MAX_AGE + 1), lambda age: f"{age} year{'s' * (age != 1)} old"),
    ("AGE", range(100), lambda age: f"{age} {years_in_russian(age)}"),
    ("AMOUNT", range(0, 2_000_000, 9_999), lambda cents: f"${cents / 100:,.2f}"),
    ("AMOUNT", range(0, 20_000, 99), lambda euros: f"{euros:,} EUR".replace(",", " ")),
]
"""Types, values, and how somebody writes all of them."""


def tells(reader, type_, values, habit):
    """Whether what is written in place of figures tells more of them than how their writer writes."""
    figures = [reader(type_, habit(value)) for value in values]
    assert None not in figures
    shown = {
        tuple(figure.write(figures[i].value) for i in range(0, len(figures), 17))
        for figure in figures
    }
    return len(shown) > 1


def as_wide(type_, text):
    """A broken twin of `read`: what is written is as wide as what stood there."""
    figure = read(type_, text)
    assert figure is not None
    return Figure(
        figure.value, lambda value: str(figure.write(value))[: len(text)].rjust(len(text))
    )


@pytest.mark.parametrize(("type_", "values", "habit"), HABITS)
def test_what_is_written_tells_only_the_other_value_and_a_form_that_all_values_have(
    type_, values, habit
):
    assert not tells(read, type_, values, habit)
    widths = {len(habit(value)) for value in values}
    assert tells(as_wide, type_, values, habit) == (len(widths) > 1)
