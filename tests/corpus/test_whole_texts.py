"""Runs that put public texts in place of private ones: nothing private in the folder, resumed as they were."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.corpus.test_corpus import StopError, content, names, validator
from tests.tiny_library import CANARY, PATTERNS, PRIVATE, make_tiny_library

from textveil.config import layers, sections
from textveil.corpus import (
    FinishedRelease,
    LocalExecutor,
    RowOptions,
    finish,
    part_worker,
    runs,
    survey,
    verify,
)
from textveil.errors import ConfigError, InputError
from textveil.library import Library
from textveil.pipeline import TextPrivatizer
from textveil.randomness import KeyedRandomness

__all__ = ["validator"]

ROWS = 12
TEXTS = [f"{text} Number {i}." for i in range(ROWS // 3) for text in PRIVATE.values()]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    part_worker._PRIVATIZERS.clear()


@pytest.fixture
def library(tmp_path: Path) -> Path:
    make_tiny_library().save(tmp_path / "tiny.library")
    return tmp_path / "tiny.library"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "letters.jsonl"
    path.write_text(
        "".join(
            json.dumps({"n": i, "who": f"w{i % 3}", "topic": f"{CANARY}{i % 2}", "text": text})
            + "\n"
            for i, text in enumerate(TEXTS)
        )
    )
    return path


def resolve(library: Path, **options: Any) -> sections.Config:
    texts: dict[str, Any] = {"unit": options.pop("unit", "document"), "library": str(library)}
    texts |= {name: options.pop(name) for name in ("cells", "sure") if name in options}
    return layers.resolve(
        overrides=layers.convert_keywords(**{"epsilon": 4, "texts": texts, **options})
    )


def run(rows: Path, to: Path, library: Path, **more: Any) -> FinishedRelease:
    """Over parts of five rows."""
    fields = {
        name: more.pop(name) for name in ("id", "ids", "subject", "query", "whole") if name in more
    }
    if not fields.keys() & {"id", "ids"}:
        fields["id"] = "n"
    own: dict[str, Any] = {
        name: more.pop(name)
        for name in ("resume", "report", "executor", "jobs", "keep_key")
        if name in more
    }
    options = RowOptions(others=more.pop("others", "drop"), **fields)
    return runs.run(rows, to, resolve(library, **more), options, **{"part_rows": 5, **own})


def read_lines(out: Path, name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(out.glob(f"{name}-*"))
        for line in path.read_text().splitlines()
    ]


PARTS = ["part-00000000.jsonl", "part-00000001.jsonl", "part-00000002.jsonl"]
SOURCES = ["sources-00000000.jsonl", "sources-00000001.jsonl", "sources-00000002.jsonl"]


# ---- what is released ------------------------------------------------------------------------------------


def test_a_release_has_public_texts_their_sources_and_licence(
    rows, tmp_path, library, validator
) -> None:
    out, public = tmp_path / "out", make_tiny_library()
    done = run(rows, out, library)
    assert names(out) == sorted(
        ["manifest.json", *PARTS, *SOURCES, "statement.html", "statement.md"]
    )
    released, sources = read_lines(out, "part"), read_lines(out, "sources")
    assert [row["n"] for row in released] == list(range(ROWS))
    for place, (row, source) in enumerate(zip(released, sources, strict=True)):
        assert source["public"] is True
        assert (source["row"], source["field"]) == (place % 5 + 1, "text")
        assert row["text"] == public.texts[public.ids.index(source["sources"][0])]
    for path in out.rglob("*"):
        assert CANARY.encode() not in path.read_bytes()
    manifest = json.loads((out / "manifest.json").read_text())
    validator.validate(manifest)
    assert manifest["table_sha256"] is None
    assert manifest["library"]["digest"] == public.digest
    assert manifest["library"]["licence"] == "CC0 1.0"
    assert done.guarantee is not None
    sheet = (out / "statement.md").read_text()
    for said in (
        "in place of each of 12 documents, by its cell among 3: local DP 4 for a whole document",
        "| licence of the texts | CC0 1.0 |",
        "passed on under its licence: CC0 1.0",
        "| row | 12 | 4 | 4 | 0 |",
    ):
        assert said in sheet
    assert "word was" not in sheet
    assert "mechanism" not in sheet
    assert verify(out) == []
    (out / SOURCES[1]).write_bytes(b"{}\n")
    (out / SOURCES[2]).unlink()
    assert verify(out) == [f"{SOURCES[2]} is missing", f"{SOURCES[1]} was changed"]


def test_sentences_and_subjects_lose_the_sum(rows, tmp_path, library, validator) -> None:
    out = tmp_path / "out"
    done = run(rows, out, library, unit="sentence", subject="who", others="copy", epsilon=2)
    assert done.statement is not None
    losses = {name: each.to_json() for name, each in done.statement.losses.items()}
    assert losses["document"]["largest_epsilon_ldp"] == pytest.approx(4, abs=1e-5)
    assert losses["subject"] == {
        "number": 3,
        "largest_epsilon_ldp": pytest.approx(16, abs=1e-4),
        "median_epsilon_ldp": pytest.approx(16, abs=0.1),
        "without_bound": 0,
    }
    validator.validate(json.loads((out / "manifest.json").read_text()))
    sheet = (out / "statement.md").read_text()
    for said in (
        "each of 24 sentences in 12 documents",
        "labels are copied and not covered",
        "The fields n, who and topic are copied unchanged",
        "Added up over all texts of one who the bound is 16",
        "A row loses epsilon 4 at most, the sum over its sentences",
    ):
        assert said in sheet


def test_a_label_is_copied_only_if_it_is_typed(rows, tmp_path, library) -> None:
    with pytest.raises(ConfigError, match="who, topic"):
        run(rows, tmp_path / "out", library, others="")
    assert not (tmp_path / "out").exists() or names(tmp_path / "out") == []
    done = run(rows, tmp_path / "out", library, others="drop")
    assert done.guarantee is not None
    assert done.guarantee.summary().count("labels") == 0


def test_texts_without_words_and_none(tmp_path, library) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text('{"n": 1, "text": ""}\n{"n": 2, "text": null}\n{"n": 3, "text": " "}\n')
    run(path, tmp_path / "out", library)
    texts = [row["text"] for row in read_lines(tmp_path / "out", "part")]
    assert texts[1] is None
    assert {texts[0], texts[2]} <= {*make_tiny_library().texts}
    path.write_text('{"n": 1, "text": null}\n')
    done = run(path, tmp_path / "none", library)
    assert done.guarantee is None
    assert "nothing was released" in (tmp_path / "none" / "statement.md").read_text()


def test_a_line_stays_a_line(tmp_path, monkeypatch) -> None:
    """A public text may have line ends, and each line of a .txt is a text."""
    public = make_tiny_library()
    split = tuple(text.replace(" ", "\n") for text in public.texts)
    values = {name: getattr(public, name) for name in public.__dataclass_fields__}
    Library(**{**values, "texts": split}).save(tmp_path / "split.library")
    path = tmp_path / "letters.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    run(path, tmp_path / "out", tmp_path / "split.library", ids="row")
    released = "".join((tmp_path / "out" / f"part-0000000{i}.txt").read_text() for i in range(3))
    assert {*released.splitlines()} <= {*public.texts}
    assert len(released.splitlines()) == ROWS


def test_equal_texts_are_drawn_anew(tmp_path, library) -> None:
    """One draw for all of them would show which are equal, and no bound holds for that."""
    path = tmp_path / "equal.jsonl"
    path.write_text(
        "".join(json.dumps({"n": i, "text": PRIVATE["pets"]}) + "\n" for i in range(12))
    )
    with pytest.raises(ConfigError, match="leave out --id-from-content"):
        run(path, tmp_path / "by-content", library, ids="content")
    run(path, tmp_path / "by-id", library)
    assert len({row["text"] for row in read_lines(tmp_path / "by-id", "part")}) > 1


def test_options_of_words_and_known_texts_are_refused(rows, tmp_path, library) -> None:
    for option in ({"query": "topic"}, {"words": {"oov": "keep"}}):
        with pytest.raises(ConfigError, match=r"--query|words\.oov"):
            run(rows, tmp_path / "out", library, **option)
    known = PATTERNS["pets"][0].format("runs")
    rows.write_text(
        rows.read_text()
        + "".join(
            json.dumps({"n": 99 + n, "who": "w", "topic": "t", "text": text}) + "\n"
            for n, text in enumerate((known, *[f"Another text {n}." for n in range(600)], known))
        )
    )
    drawn: list[int] = []
    with pytest.raises(
        InputError, match=r"file 1, letters.jsonl: .* in it \(row 13, 614\)"
    ) as refused:
        run(rows, tmp_path / "out", library, report=lambda name, *_: drawn.append(name == "rows"))
    assert not any(drawn)  # nothing was drawn before
    assert "garden" not in str(refused.value)
    assert not (tmp_path / "out").exists() or names(tmp_path / "out") == []


# ---- drawn once ------------------------------------------------------------------------------------------


def with_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyedRandomness, "make_key", staticmethod(lambda: b"k" * 32))


def test_an_interrupted_run_goes_on_and_the_library_is_pinned(
    rows, tmp_path, library, monkeypatch
) -> None:
    with_one_key(monkeypatch)
    run(rows, tmp_path / "undisturbed", library)
    out = tmp_path / "out"

    def stop(name: str, done: int, __: int) -> None:
        if name == "rows" and done >= 5:
            raise StopError

    with pytest.raises(StopError):
        run(rows, out, library, report=stop)
    assert names(out) == ["_textveil", PARTS[0], SOURCES[0]]
    for changed in ({"epsilon": 3}, {"unit": "sentence"}, {"cells": "6"}, {"sure": 0.5}):
        with pytest.raises(ConfigError, match="these differ"):
            run(rows, out, library, resume=True, **changed)
    content_before = library.read_bytes()
    make_tiny_library(labels=False).save(library)
    with pytest.raises(ConfigError, match="contents of the library"):
        run(rows, out, library, resume=True)
    library.write_bytes(content_before)
    run(rows, out, library, resume=True)
    assert content(out) == content(tmp_path / "undisturbed")
    assert run(rows, out, library, resume=True).is_earlier
    make_tiny_library(labels=False).save(library)
    with pytest.raises(ConfigError, match=r"other options \(library\)"):
        run(rows, out, library, resume=True)


def test_giving_up_deletes_sources_too(rows, tmp_path, library) -> None:
    def stop(name: str, done: int, __: int) -> None:
        if name == "rows" and done >= 5:
            raise StopError

    with pytest.raises(StopError):
        run(rows, tmp_path / "out", library, report=stop)
    finish(tmp_path / "out", give_up=True)
    assert names(tmp_path / "out") == []


KILLED = """
import os, signal, sys
from textveil.corpus import part_worker
from textveil.files import storage
count, real = 0, storage.Storage.write
def write(self, name, *arguments, **more):
    global count
    real(self, name, *arguments, **more)
    count += name.startswith("sources-")
    if count == 2:  # its part has no name yet
        os.kill(os.getpid(), signal.SIGKILL)
storage.Storage.write = write
from textveil import cli
sys.exit(cli.main(sys.argv[1:]))
"""


def test_killed_before_a_part_has_its_name_and_resumed(rows, tmp_path, library) -> None:
    out = tmp_path / "out"
    command = [
        "corpus",
        "run",
        str(rows),
        "--id",
        "n",
        "--others",
        "drop",
        "--unit",
        "document",
    ]
    command += [
        "--library",
        str(library),
        "--epsilon",
        "4",
        "--part-rows",
        "5",
        "--output",
        str(out),
    ]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *command],
        capture_output=True,
        check=False,
        timeout=240,
        env={**os.environ},
    )
    assert killed.returncode == -signal.SIGKILL
    before = {name: (out / name).read_bytes() for name in names(out) if name != "_textveil"}
    assert before.keys() == {PARTS[0], *SOURCES[:2]}
    run(rows, out, library, resume=True)
    assert before.items() <= content(out).items()
    assert names(out) == sorted(
        ["manifest.json", *PARTS, *SOURCES, "statement.html", "statement.md"]
    )
    assert verify(out) == []
    assert len(read_lines(out, "part")) == ROWS


def test_other_processes_draw_the_same(rows, tmp_path, library, monkeypatch) -> None:
    with_one_key(monkeypatch)
    run(rows, tmp_path / "here", library)
    executor: Callable[..., Any] = LocalExecutor
    with executor(2) as two:
        run(rows, tmp_path / "there", library, executor=two)
    assert content(tmp_path / "here") == content(tmp_path / "there")


# ---- what stands around a text is a part of it ---------------------------------------------------


PLAIN = [f"note {i}" for i in range(ROWS)]
ODD = [f'"so", note {i}, he said, twice,  ' for i in range(ROWS)]


def write_table(path: Path, texts: list[str], kind: str) -> Path:
    """Writes texts in the way that writers of such files do."""
    ends = ["\r\n" if "," in text else "\n" for text in texts]
    rows = {
        "txt": [f"{text}{end}" for text, end in zip(texts, ends, strict=True)],
        "jsonl": [json.dumps({"n": i, "text": text}) + "\n" for i, text in enumerate(texts)],
        "csv": ["n,text\n"]
        + [
            f'{i},"{text.replace(chr(34), chr(34) * 2)}"\n' if "," in text else f"{i},{text}\n"
            for i, text in enumerate(texts)
        ],
    }[kind]
    path.write_bytes("".join(rows).encode())
    return path


@pytest.mark.parametrize(
    ("kind", "others"), [("txt", ""), ("jsonl", "drop"), ("csv", ""), ("csv", "copy")]
)
def test_quotes_ends_and_sizes_of_texts_change_nothing(
    tmp_path, library, monkeypatch, kind, others
) -> None:
    """With equal draws, all files are equal: in nothing else do they follow from the texts."""
    monkeypatch.setattr(
        TextPrivatizer, "_draw", lambda self, cells, *_: (cells * 0, np.zeros_like(cells))
    )
    for room in (survey, part_worker):  # as if the odd texts were long
        monkeypatch.setattr(room, "BATCH_CHARACTERS", 60)
    monkeypatch.setattr(survey, "MAX_PART_CHARACTERS", 60)
    folders = []
    for name, texts in (("plain", PLAIN), ("odd", ODD)):
        path = write_table(tmp_path / f"{name}.{kind}", texts, kind)
        part_worker._PRIVATIZERS.clear()
        options = {"ids": "row"} if kind == "txt" else {}
        run(path, tmp_path / name, library, others=others, **options)
        folders.append(
            {file: (tmp_path / name / file).read_bytes() for file in names(tmp_path / name)}
        )
    plain, odd = (
        {name: content for name, content in folder.items() if name.startswith(("part", "sources"))}
        for folder in folders
    )
    assert plain == odd
    assert len(plain) == 6
    assert folders[0].keys() == folders[1].keys()


def test_json_and_repr_do_not_say_how_long_a_text_took() -> None:
    privatizer = TextPrivatizer(make_tiny_library(), epsilon=4)
    result = privatizer.privatize(PRIVATE["pets"])
    assert result.seconds > 0
    assert "seconds" not in result.to_json()
    assert "seconds" not in repr(result)
