"""Progress on standard error: when it is told, what it says, and that quick work says nothing."""

import io
import sys
import time

import numpy as np
import pytest

from textveil.cli import progress
from textveil.cli.progress import DisplaySchedule, format_duration, format_line
from textveil.detect.detectors import find_all
from textveil.models import ragged


class Clock:
    """Seconds that pass when a test says so."""

    now = 100.0

    def __call__(self):
        return self.now


class Shown:
    """Notes what it is told."""

    def __init__(self):
        self.opened = 0
        self.drawn = []

    def open(self):
        self.opened += 1

    def step(self, name, done, total):
        self.last = name, done, total

    def draw(self, seconds, left):
        self.drawn.append((seconds, left))

    def close(self):
        pass


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def shown():
    return Shown()


@pytest.fixture
def watch(clock, shown):
    return DisplaySchedule(display=shown, clock=clock)


@pytest.fixture
def at_once(monkeypatch):
    """Whatever is due is due now, and nobody looks but the work."""
    monkeypatch.delenv("TEXTVEIL_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(progress, "POLL_SECONDS", 60.0)


def test_quick_work_shows_nothing(watch, clock, shown):
    for done in range(20):
        clock.now += progress.SHOW_AFTER_SECONDS / 21
        watch.report("bayes", done, 20)
    assert (shown.opened, shown.drawn) == (0, [])
    assert shown.last == ("bayes", 19, 20)


def test_what_takes_longer_is_shown_after_two_seconds_and_then_every_five(watch, clock, shown):
    for done in range(240):
        clock.now += 0.125
        watch.report("bayes", done, 1000)
    assert shown.opened == 1
    assert [round(seconds) for seconds, _ in shown.drawn] == [2, 7, 12, 17, 22, 27]
    assert [left for _, left in shown.drawn] == pytest.approx(
        [123, 118, 113, 108, 103, 98], abs=0.2
    )


def test_the_longer_it_takes_the_rarer_are_the_lines(watch, clock, shown):
    for _ in range(2 * 3600):
        clock.now += 1
        watch.update()
    between = [b - a for (a, _), (b, _) in zip(shown.drawn, shown.drawn[1:], strict=False)]
    assert between == sorted(between)
    assert (between[0], between[-1]) == (
        progress.LINE_INTERVAL_SECONDS,
        progress.MAX_INTERVAL_SECONDS,
    )
    assert len(between) < 200


def test_work_that_reports_nothing_is_shown_too(watch, clock, shown):
    clock.now += 3
    watch.update()
    assert shown.drawn == [(3.0, None)]


def test_the_time_left_is_that_of_the_step_and_of_its_last_round(watch, clock, shown):
    watch.report("laws", 0, 100)
    clock.now += 50
    watch.report("laws", 100, 100)
    assert shown.drawn[-1] == (50.0, None)  # done
    watch.report("laws", 0, 100)  # anew
    clock.now += 10
    watch.report("laws", 50, 100)
    assert shown.drawn[-1] == (60.0, 10.0)
    watch.report("guesses", 40, 80)  # goes on with what is there
    clock.now += 10
    watch.report("guesses", 60, 80)
    assert shown.drawn[-1] == (70.0, 10.0)
    clock.now += 10
    watch.report("texts", 9, 0)
    assert shown.drawn[-1] == (80.0, None)


@pytest.mark.parametrize(
    ("last", "seconds", "left", "unit", "says"),
    [
        (
            ("bayes", 120, 400),
            15.0,
            35.2,
            " texts",
            "bayes: 120 of 400 texts, 7 a second, 35 s left",
        ),
        (("bayes", 0, 4000), 15.0, None, "", "bayes: 0 of 4,000, 15 s so far"),
        (("loading models", 0, 0), 15.0, None, "", "loading models: 15 s so far"),
        (("texts", 3000, 0), 200.0, None, "", "texts: 3,000, 3 min so far"),
        (None, 2.2, None, " texts", "working: 2 s so far"),
    ],
)
def test_the_lines(last, seconds, left, unit, says):
    assert format_line(last, seconds, left, progress.format_thousands, unit) == says


def test_the_rate_is_that_since_the_first_progress(watch, clock, shown):
    """Before it, models were loaded."""
    watch.report("rows", 0, 1000)
    clock.now += 20
    watch.report("rows", 100, 1000)
    clock.now += 5
    watch.report("rows", 200, 1000)
    assert shown.drawn[-1] == (25.0, 40.0)


def test_times_are_said_as_people_say_them():
    said = [format_duration(seconds) for seconds in (0.2, 35.4, 99.4, 100, 3540, 3599, 4800)]
    assert said == ["1 s", "35 s", "99 s", "2 min", "59 min", "1 h", "1 h 20 min"]


@pytest.mark.usefixtures("at_once")
def test_without_a_terminal_there_are_lines(monkeypatch):
    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())
    monkeypatch.setattr(progress, "MAX_INTERVAL_SECONDS", 0.0)
    with progress.show_bars(unit=" texts") as report:
        report("bayes", 1, 400)
        report("bayes", 2, 400)
    assert (
        heard.getvalue() == "bayes: 1 of 400 texts, 1 s so far\nbayes: 2 of 400 texts, 1 s so far\n"
    )


@pytest.mark.usefixtures("at_once")
def test_on_a_terminal_there_are_bars(monkeypatch):
    monkeypatch.setattr(sys, "stderr", heard := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress.show_bars(unit=" texts") as report:
        report("bayes", 0, 400)
        report("bayes", 400, 400)
        report("other", 3, 0)
    assert "bayes" in heard.getvalue()
    assert "400 of 400 texts" in heard.getvalue()
    assert "3 texts" in heard.getvalue()


@pytest.mark.usefixtures("at_once")
def test_results_are_counted_and_come_as_they_are(monkeypatch):
    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())
    assert list(progress.count_results(iter("abc"))) == ["a", "b", "c"]
    assert heard.getvalue().startswith("texts: 1, 1 s so far\n")


@pytest.mark.usefixtures("at_once")
def test_what_models_have_read_of_one_text_is_told(monkeypatch):
    class Reads:
        name = "reads"

        def find(self, texts):
            assert [each.tolist() for each in ragged.yield_batches(np.array([4, 4]), 4)] == [
                [0],
                [1],
            ]
            return []

    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())

    def results():
        yield find_all([Reads()], ["a"], timeout=None)

    assert progress.collect_with_progress(results()) == [[]]
    assert "reading: 4 of 8 pieces of words" in heard.getvalue()
    assert ragged.PROGRESS_LISTENER.get() is None


def test_somebody_looks_while_the_work_is_silent(monkeypatch):
    monkeypatch.delenv("TEXTVEIL_PROGRESS", raising=False)
    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())
    monkeypatch.setattr(progress, "SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(progress, "POLL_SECONDS", 0.001)
    with progress.show_bars():
        end = time.monotonic() + 30
        while not heard.getvalue() and time.monotonic() < end:
            time.sleep(0.005)
    assert heard.getvalue() == "working: 1 s so far\n"


@pytest.mark.usefixtures("at_once")
def test_nothing_is_shown_where_nobody_wants_it(monkeypatch):
    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())
    monkeypatch.setenv("TEXTVEIL_PROGRESS", "0")
    with progress.show_bars() as report:
        report("bayes", 1, 400)
    monkeypatch.delenv("TEXTVEIL_PROGRESS")
    monkeypatch.setattr(sys, "stderr", None)
    with progress.show_bars() as report:
        report("bayes", 1, 400)
    assert heard.getvalue() == ""


@pytest.mark.usefixtures("at_once")
def test_an_error_of_the_work_comes_through_and_a_closed_stream_is_none(monkeypatch):
    closed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", closed)

    def work():
        with progress.show_bars() as report:
            closed.close()
            report("bayes", 1, 400)
            raise ValueError("work")

    with pytest.raises(ValueError, match="work"):
        work()
