"""frame.textveil of pandas and polars: what it returns, restores and shows, also in a notebook that runs."""

import pickle
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
pytest.importorskip("polars", reason="the extra `polars` is not installed")
import pandas
import polars
from tests.tiny_library import make_tiny_library

import textveil.integrations.pandas
import textveil.integrations.polars  # noqa: F401
from textveil import Protector, Session, TextPrivatizer
from textveil.errors import ConfigError, InputError
from textveil.integrations import frames, notebook_progress
from textveil.models import PROGRESS_LISTENER

CANARY = "zyxqorvian@firma.org"
LEAN: dict[str, Any] = {"protect": {"detectors": ["patterns"]}, "names": {"types": []}}
TEXTS = [f"Write to {CANARY}", None, f"{CANARY} called +1 202 555 0136", "Nothing here"]


@pytest.fixture(params=[pandas, polars], ids=["pandas", "polars"])
def frame(request):
    return request.param.DataFrame({"id": [1, 2, 3, 4], "comment": TEXTS})


def read(frame, name="comment"):
    return [None if text != text else text for text in frame[name].to_list()]


def test_protect_returns_a_frame_and_its_statement(frame):
    release = frame.textveil.protect("comment", **LEAN)
    released, statement = release
    assert type(released) is type(frame)
    assert release.frame is released
    assert release.statement is statement
    assert statement.texts == 3
    assert read(released) == [
        "Write to <EMAIL_1>", None, "<EMAIL_1> called <PHONE_1>", "Nothing here"
    ]  # fmt: skip
    assert read(frame) == TEXTS, "the original stays as it is"
    said = "2 e-mail addresses and 1 phone number replaced; the rest is unchanged, "
    assert repr(release).startswith(f"<FrameRelease of comment, 4 rows: {said}")
    page = release._repr_html_()
    assert said in page
    assert "&lt;PHONE_1&gt;" in page
    assert CANARY not in page + repr(release) + str(vars(release))
    copy = pickle.loads(pickle.dumps(release))
    assert copy._repr_html_() == page
    assert CANARY not in str(vars(copy))


def test_answers_are_restored(frame):
    session = Session()
    released, _ = frame.textveil.protect("comment", session=session, **LEAN)
    restored = released.textveil.restore("comment", session=session)
    assert type(restored) is type(frame)
    assert read(restored) == TEXTS
    assert CANARY not in str(read(released))


def test_privatize_draws(frame):
    release = frame.textveil.privatize("comment", "document", epsilon=8, protect={"level": "names"})
    assert CANARY not in str(read(release.frame)) + release._repr_html_()
    assert "epsilon" in repr(release)
    assert release.statement.texts == 3


def test_find_has_places_and_no_words(frame):
    places = frame.textveil.find("comment", **LEAN)
    assert type(places) is type(frame)
    assert places["row"].to_list() == [0, 2, 2]
    assert places["type"].to_list() == ["EMAIL", "EMAIL", "PHONE"]
    start, end = places["start"].to_list()[0], places["end"].to_list()[0]
    assert (TEXTS[0] or "")[start:end] == CANARY
    assert places["hidden"].to_list() == [True] * 3
    assert CANARY not in str(places)
    assert len(frame[:0].textveil.find("comment", **LEAN)) == 0


def test_refusals_name_all_columns_at_once(frame):
    host = type(frame)
    other = host({"text": ["a"], "name": [CANARY], "city": ["b"], "n": [1]})
    with pytest.raises(InputError, match="columns 'name', 'city' hold text too: name each") as said:
        other.textveil.protect(**LEAN)
    assert CANARY not in str(said.value)
    assert read(other.textveil.protect("text", keep=["name", "city"], **LEAN).frame, "text") == [
        "a"
    ]
    for call in (
        lambda: other.textveil.find("comment"),
        lambda: other.textveil.restore("comment", session=Session()),
        lambda: other.textveil.find("n", **LEAN),
        lambda: other.textveil.restore("n", session=Session()),
    ):
        with pytest.raises(InputError, match=r"no column|must hold texts"):
            call()
    with pytest.raises(InputError, match=r"remove each first: frame\[\['text', 'n'\]\]$"):
        other.textveil.protect("text", keep="n", **LEAN)
    with pytest.raises(InputError, match="'n' must hold texts, but holds int"):
        other.textveil.protect("n", **LEAN)
    with pytest.raises(ConfigError, match=r"have no subject.*corpus run --subject"):
        other.textveil.privatize("text", subject="name")
    with pytest.raises(
        ConfigError, match=r"what draws words, such as document, is for a Privatizer"
    ):
        other.textveil.protect("text", "document")
    with pytest.raises(ConfigError, match="options go with the name of a profile"):
        other.textveil.protect("text", Protector(**LEAN), **LEAN)
    with pytest.raises(ConfigError, match="give a DataFrame of pandas or polars, not list"):
        frames.find([CANARY], Protector(**LEAN))
    whole = TextPrivatizer(make_tiny_library(), epsilon=4)
    with pytest.raises(ConfigError, match="need no session"):
        host({"text": ["a"]}).textveil.privatize("text", whole, session=Session())


def test_public_texts_and_empty_frames_are_shown(frame):
    whole = TextPrivatizer(make_tiny_library(), epsilon=4)
    host = type(frame)
    release = host({"text": ["a"]}).textveil.privatize("text", whole)
    assert release.frame["text"].to_list()[0] in release._repr_html_()
    assert "A public text of tiny" in repr(release)
    empty = frame[:0].textveil.protect("comment", **LEAN)
    assert (empty.statement, len(empty.frame)) == (None, 0)
    assert "There were no texts." in empty._repr_html_()


# ---- progress ------------------------------------------------------------------------------------


class Notebook:
    """What IPython is to a kernel."""

    def __init__(self):
        self.pages: list[str] = []
        self.now = [0.0]
        self.shell = SimpleNamespace(kernel=object())

    def display(self, page, *, raw, display_id):
        assert (raw, display_id) == (True, True)
        self.pages.append(page["text/html"])
        return self

    def update(self, page, *, raw):
        self.pages.append(page["text/html"])


@pytest.fixture
def notebook(monkeypatch):
    fake = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: fake.shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=fake.display))
    monkeypatch.setattr(time, "monotonic", lambda: fake.now[0])
    monkeypatch.delenv("TEXTVEIL_PROGRESS", raising=False)
    return fake


def take(notebook, results):
    for result in results:
        notebook.now[0] += 0.25
        yield result


def test_a_notebook_shows_a_bar_that_is_gone_at_the_end(notebook):
    results = notebook_progress.show_progress(take(notebook, range(600)), 600, "rows of <b>")
    assert list(results) == list(range(600))
    assert notebook.pages[0] == (
        '<progress max="600" value="8"></progress> 8 of 600 rows of &lt;b&gt;, 4 a second, '
        "2 min left"
    )
    assert " 4 a second, 25 s left" in notebook.pages[246]
    assert notebook.pages[-1] == ""


def test_within_a_batch_the_bar_follows_the_models(notebook):
    def draw():
        report = PROGRESS_LISTENER.get()
        assert report is not None
        notebook.now[0] = 3
        report(1, 2)
        notebook.now[0] = 4
        report(1, 4)  # a second reading begins
        yield from range(512)
        yield from range(88)

    assert len(list(notebook_progress.show_progress(draw(), 600, "rows"))) == 600
    assert [page.partition('value="')[2].partition('"')[0] for page in notebook.pages] == [
        "256", "256", ""
    ]  # fmt: skip
    assert PROGRESS_LISTENER.get() is None


def test_no_bar_elsewhere_and_none_of_short_work(notebook, monkeypatch):
    def run(count):
        return list(notebook_progress.show_progress(take(notebook, range(count)), count, "rows"))

    assert len(run(4)) == 4
    monkeypatch.setenv("TEXTVEIL_PROGRESS", "0")
    assert len(run(99)) == 99
    monkeypatch.delenv("TEXTVEIL_PROGRESS")
    del notebook.shell.kernel
    assert len(run(99)) == 99
    monkeypatch.delitem(sys.modules, "IPython")
    assert len(run(99)) == 99
    assert notebook.pages == []


def test_an_error_takes_the_bar_away(notebook):
    def fail():
        yield from take(notebook, range(20))
        raise InputError("no")

    with pytest.raises(InputError):
        list(notebook_progress.show_progress(fail(), 30, "rows"))
    assert notebook.pages[-1] == ""
    assert PROGRESS_LISTENER.get() is None


CELLS = f"""
import pandas
import textveil.integrations.pandas
from textveil.integrations import notebook_progress
notebook_progress.SHOW_AFTER_SECONDS = 0
frame = pandas.DataFrame({{"comment": ["Write to {CANARY} for $5 or $6"] * 600}})
# %%
frame.textveil.protect("comment", **{LEAN!r})
# %%
print(frame.textveil.protect("comment", **{LEAN!r}))
"""


@pytest.mark.slow
def test_a_notebook_that_runs_shows_no_original(tmp_path, monkeypatch):
    """In a kernel of Jupyter, over its own protocol."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.delenv("TEXTVEIL_PROGRESS", raising=False)
    cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS.split("# %%")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
    messages = []
    process = client.process_message

    def note(message, cell, index):
        messages.append(message)
        return process(message, cell, index)

    client.process_message = note
    client.execute()
    _, table, printed = notebook.cells
    shown = [output for output in table.outputs if output.output_type == "execute_result"]
    page = shown[0].data["text/html"]
    assert "&lt;EMAIL_1&gt;" in page
    assert "600 e-mail addresses replaced; " in page
    assert printed.outputs[-1].text.startswith("<FrameRelease of comment, 600 rows: 600 e-mail")
    assert any("<progress " in str(message["content"]) for message in messages)
    assert not any(CANARY in str([*cell.outputs]) for cell in notebook.cells)
