"""Published vectors of every format, whole and malformed; what is refused is refused by file, place and reason."""

import gzip
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from textveil.errors import ConfigError, ModelError, TableError
from textveil.table import vectors

WORDS = ["the", ". . .", "at name@domain.com", "北京", "don't", "\u00a0x", "1.5", "#"]
ROWS = np.random.default_rng(3).normal(size=(len(WORDS), 7)).astype(np.float32)


def text(words=WORDS, rows=ROWS, *, header=False, end="\n", trailing="") -> bytes:
    lines = [
        f"{word} {' '.join(repr(float(x)) for x in row)}{trailing}"
        for word, row in zip(words, rows, strict=True)
    ]
    return "".join(
        line + end for line in ([f"{len(words)} {rows.shape[1]}"] * header) + lines
    ).encode()


def binary(words=WORDS, rows=ROWS, *, end=b"\n", count=None) -> bytes:
    records = [
        word.encode() + b" " + row.tobytes() + end for word, row in zip(words, rows, strict=True)
    ]
    return b"%d %d\n" % (count or len(words), rows.shape[1]) + b"".join(records)


SPACELESS = [word.replace(" ", "_") for word in WORDS]


def read(path, **options):
    """All words and rows of a source, the source, and the last number of bytes read."""
    with vectors.open_vectors(str(path), **options) as found:
        blocks = list(found.blocks)
    words = [word for block in blocks for word in block.words]
    return words, np.concatenate([block.rows for block in blocks]), found


@pytest.fixture
def put(tmp_path):
    def put(content: bytes, name: str = "source") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return put


@pytest.fixture(params=[1 << 22, 64], ids=["one block", "small blocks"], autouse=True)
def chunk(request, monkeypatch):
    monkeypatch.setattr(vectors, "CHUNK", request.param)
    if request.param == 64:
        monkeypatch.setattr(vectors, "MAX_LINE_BYTES", 400)


# ---- well-formed sources ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (text(), "glove"),
        (text(trailing=" "), "glove"),
        (text(end="\r\n"), "glove"),
        (b"\xef\xbb\xbf" + text(), "glove"),
        (text(header=True), "vec"),
        (text(header=True, trailing=" ", end="\r\n"), "vec"),
    ],
)
def test_text(put, content, format):
    words, rows, found = read(put(content))
    assert words == WORDS
    np.testing.assert_array_equal(rows, ROWS)
    assert found.format == format
    assert (found.left_out.broken, found.left_out.duplicates) == (0, 0)


@pytest.mark.parametrize("end", [b"\n", b""])
def test_word2vec(put, end):
    words, rows, found = read(put(binary(SPACELESS, end=end), "news.bin"))
    assert words == SPACELESS
    np.testing.assert_array_equal(rows, ROWS)
    assert (found.format, found.name, found.file) == ("word2vec", "news", "news.bin")


def test_packed(put, tmp_path):
    for content, name in ((text(), "glove.6B.txt.gz"), (binary(SPACELESS), "news.bin.gz")):
        words, rows, found = read(put(gzip.compress(content), name))
        assert [word.replace(" ", "_") for word in words] == SPACELESS
        np.testing.assert_array_equal(rows, ROWS)
        assert found.name in ("glove.6B", "news")
    with zipfile.ZipFile(tmp_path / "glove.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a/one.txt", text())
        packed.writestr("two.txt", text(WORDS[:3], ROWS[:3]))
    assert read(tmp_path / "glove.zip", member="two.txt")[0] == WORDS[:3]
    with pytest.raises(
        TableError,
        match=r"glove\.zip: it holds several; choose with --member: a/one\.txt, two\.txt",
    ):
        read(tmp_path / "glove.zip")


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
def test_npy(put, tmp_path, dtype):
    np.save(tmp_path / "rows.npy", ROWS.astype(dtype))
    for vocabulary in (
        put("\n".join(WORDS).encode()),
        put(gzip.compress("\r\n".join([*WORDS, ""]).encode()), "v.gz"),
    ):
        words, rows, found = read(tmp_path / "rows.npy", vocabulary=str(vocabulary))
        assert words == WORDS
        np.testing.assert_array_equal(rows, ROWS.astype(dtype).astype(np.float32))
        assert found.total == ROWS.astype(dtype).nbytes


def test_npz(put, tmp_path):
    path, vocabulary = tmp_path / "rows.npz", put("\n".join(WORDS).encode(), "words")
    for words in (np.array(WORDS), np.array([word.encode() for word in WORDS])):
        np.savez_compressed(path, rows=ROWS, words=words)
        assert read(path)[0] == WORDS
    np.savez(path, a=ROWS, b=ROWS * 2)
    np.testing.assert_array_equal(read(path, vocabulary=str(vocabulary), member="b")[1], ROWS * 2)
    with pytest.raises(TableError, match="it holds several; choose with --member: a, b"):
        read(path, vocabulary=str(vocabulary))
    np.savez(path, a=ROWS, words=np.array(WORDS, object))
    with pytest.raises(TableError, match="pickled Python objects"):
        read(path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_safetensors(put, tmp_path, dtype):
    path, vocabulary = tmp_path / "m.safetensors", str(put("\n".join(WORDS).encode(), "words"))
    rows = torch.from_numpy(ROWS).to(dtype)
    save_file({"emb": rows, "bias": rows[0].clone()}, path)
    words, found, _ = read(path, vocabulary=vocabulary)
    assert words == WORDS
    np.testing.assert_array_equal(found, rows.float().numpy())
    save_file({"emb": rows, "other": rows + 1}, path)
    assert read(path, vocabulary=vocabulary, member="other")[0] == WORDS
    with pytest.raises(
        TableError, match="it does not hold 'third'; choose with --member: emb, other"
    ):
        read(path, vocabulary=vocabulary, member="third")


@settings(deadline=None)
@given(
    words=st.lists(
        st.text(
            st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]), min_size=1
        ).filter(str.strip),
        min_size=2,
        max_size=9,
        unique=True,
    ),
    dimension=st.integers(1, 5),
    data=st.data(),
)
@example(words=["a", "\ufeffb"], dimension=1, data=None)
def test_what_is_written_is_read(tmp_path_factory, words, dimension, data):
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    size = len(words) * dimension
    drawn = data.draw(st.lists(numbers, min_size=size, max_size=size)) if data else [1.0] * size
    rows = np.array(drawn, np.float32).reshape(len(words), dimension)
    path = tmp_path_factory.mktemp("any") / "source"
    for content, format in (
        (text(words, rows), "glove"),
        (text(words, rows, header=True), "vec"),
        (binary(words, rows), "word2vec"),
        (binary(words, rows, end=b""), "word2vec"),
    ):
        if format == "glove" and words[0].startswith("\ufeff"):
            continue  # that is a byte order mark
        path.write_bytes(content)
        if (
            format == "word2vec"
            and not content.endswith(b"\n")
            and any(b.startswith("\n") for b in words)
        ):
            continue
        found, values, _ = read(path, format=format, zero_rows=True)
        assert found == words
        np.testing.assert_array_equal(values, rows)


def test_limit_and_duplicates(put):
    words = ["a", "b", "a", "c", "b", "d"]
    path = put(text(words, ROWS[:6]))
    found, rows, source = read(path)
    assert found == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(rows, ROWS[[0, 1, 3, 5]])
    assert source.left_out.duplicates == 2
    assert read(path, limit=3)[0] == ["a", "b", "c"]
    assert read(path, limit=9)[0] == ["a", "b", "c", "d"]
    with pytest.raises(ConfigError, match="--limit must be at least 2, got 1"):
        read(path, limit=1)
    cut = put(text(header=True)[:-30])
    assert read(cut, limit=2)[0] == WORDS[:2]


# ---- malformed sources -----------------------------------------------------------------------------------------------

GOOD = "a 1 2 3\nb 4 5 6\n"


@pytest.mark.parametrize(
    ("content", "says", "left"),
    [
        ("a 1 2 3\nb 4 5\nc 7 8 9\n", "line 2 must hold a word and 3 numbers, got 2", "ac"),
        ("a 1 2 3\nb 4 5 6 7\nc 7 8 9\n", "line 2 must hold a word and 3 numbers, got more", "ac"),
        ("a 1 2 3\nb 4 x 6\nc 7 8 9\n", "line 2 holds a value that is not a number", "ac"),
        ("a 1 2 3\nb 4 5.5.5 6\nc 7 8 9\n", "line 2 holds a value that is not a number", "ac"),
        ("a 1 2 3\nb 4 1_0 6\nc 7 8 9\n", "line 2 holds a value that is not a number", "ac"),
        ("a 1 2 3\nb 4  6\nc 7 8 9\n", "line 2 holds a value that is not a number", "ac"),
        (
            "a 1 2 3\nb  4 5 6\nc 7 8 9\n",
            "line 2 has a word that begins or ends with a space",
            "ac",
        ),
        ("a 1 2 3\n 4 5 6\nc 7 8 9\n", "line 2 has an empty or blank word", "ac"),
        ("a 1 2 3\n\nc 7 8 9\n", "line 2 must hold a word and 3 numbers, got 0", "ac"),
        ("a 1 2 3\nb 4 nan 6\nc 7 8 9\n", "line 2 holds NaN, infinity or a number too large", "ac"),
        (
            "a 1 2 3\nb 4 -inf 6\nc 7 8 9\n",
            "line 2 holds NaN, infinity or a number too large",
            "ac",
        ),
        (
            "a 1 2 3\nb 4 1e39 6\nc 7 8 9\n",
            "line 2 holds NaN, infinity or a number too large",
            "ac",
        ),
        ("3 3\na 1 2 3\nb 4 nan 6\nc 7 8 9\n", "line 3 holds NaN", "ac"),
        (b"a 1 2 3\n\xff 4 5 6\nc 7 8 9\n", "line 2 is not UTF-8", "ac"),
    ],
)
def test_broken_lines(put, content, says, left):
    path = put(content if isinstance(content, bytes) else content.encode(), "some.txt")
    with pytest.raises(
        TableError, match=rf"some\.txt: {says}.*; --skip-broken leaves out and counts such words"
    ):
        read(path)
    words, rows, found = read(path, skip_broken=True)
    assert words == list(left)
    assert rows.tolist() == [[1, 2, 3], [7, 8, 9]]
    assert found.left_out.broken == 1


@pytest.mark.parametrize(
    "word",
    [
        "\x00",
        "a\tb",
        "a\x0bb",
        "a\rb",
        "\x1b[1mb",
        "\x1c",
        "\x7f",
        "a\x85b",
        "\u2028",
        "a\u2029",
        " ",
        "\u3000",
    ],
)
def test_words_that_no_line_can_hold(put, tmp_path, word):
    """A released text would have lines that the original has not, or move a terminal's cursor."""
    words = ["a", word, "c"]
    np.savez(
        tmp_path / "rows.npz",
        rows=ROWS[:3],
        words=np.array([each.replace("\0", "\0.") for each in words]),
    )
    paths = [tmp_path / "rows.npz"]
    if " " not in word and "\u3000" not in word:
        paths += [put(text(words, ROWS[:3]), "some.txt"), put(binary(words, ROWS[:3]), "some.bin")]
    for path in paths:
        with pytest.raises(
            TableError,
            match=r"(row 2|line 2|byte \d+) has (a word with a line break|an empty or blank word)",
        ):
            read(path)
        found, rows, source = read(path, skip_broken=True)
        assert found == ["a", "c"]
        np.testing.assert_array_equal(rows, ROWS[[0, 2]])
        assert source.left_out.broken == 1


def test_lone_surrogates(tmp_path):
    np.savez(tmp_path / "rows.npz", rows=ROWS[:3], words=np.array(["a", "\ud800", "c"]))
    with pytest.raises(TableError, match=r"row 2 has a word with .* not valid Unicode"):
        read(tmp_path / "rows.npz")


@pytest.mark.parametrize("skip_broken", [True, False])
@pytest.mark.parametrize("header", [True, False])
def test_text_without_its_last_line_end(put, header, skip_broken):
    """Neither a number that was cut nor a word may enter."""
    for end in (1, 2, 30):
        with pytest.raises(
            TableError, match="its last line has no line end, so it may be cut short"
        ):
            read(put(text(header=header)[:-end]), skip_broken=skip_broken)


def test_words_after_the_limit_are_not_looked_at(put, tmp_path):
    content = b"a 1 2 3\na 4 5 6\nx 1 1\nb 2 3 1\nc nan 1 1\nd 1 1\n\xff 1 1 1\ncut 1 1"
    with pytest.raises(TableError, match="line 3 must hold"):
        read(put(content), limit=2)
    words, _, found = read(put(content), limit=2, skip_broken=True)
    assert (words, found.left_out.broken, found.left_out.duplicates) == (["a", "b"], 1, 1)
    assert read(put(content.replace(b"x 1 1\n", b"")), limit=2)[0] == ["a", "b"]
    records = b"".join(word + b" " + ROWS[0, :2].tobytes() for word in (b"a", b"b", b"\xff", b"a"))
    assert read(put(b"4 2\n" + records), format="word2vec", limit=2)[0] == ["a", "b"]
    np.savez(
        tmp_path / "rows.npz",
        rows=np.array([[1.0], [2], [np.nan]]),
        words=np.array(["a", "b", "c"]),
    )
    assert read(tmp_path / "rows.npz", limit=2)[0] == ["a", "b"]


@pytest.mark.parametrize("first", ["x 1 x 3", "x 1 3", "at 12 1 2 3"])
def test_a_broken_first_line(put, first):
    """The other lines say how many numbers there are."""
    path = put(f"{first}\n{GOOD}c 7 8 9\n".encode())
    with pytest.raises(TableError, match=r"line 1 (must hold a word and 3 numbers|holds a value)"):
        read(path)
    words, _, found = read(path, skip_broken=True)
    assert (words, found.left_out.broken) == (["a", "b", "c"], 1)


def test_text_with_other_spaces(put):
    for content, says in (
        (b"a\t1\t2\nb\t3\t4\n", "it has tabs"),
        ("a\u00a01\nb\u00a02\n".encode(), "single spaces"),
    ):
        with pytest.raises(TableError, match=says):
            read(put(content), format="glove")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it is empty"),
        (b"only words here\n", "its format is not recognized"),
        (bytes(range(256)), "its format is not recognized"),
        (b"a 1 2 3\n", "at least two words, got 1 that can be taken"),
        (b"3 3\n" + GOOD.encode(), "says 3 words, and it holds 2; it may be cut short"),
        (b"1 3\n" + GOOD.encode(), "says 1 words, and it holds 2"),
        (b"2 3\n", "says 2 words, and it holds 0"),
        (b"2 70000\n" + GOOD.encode(), "line 1 must be a header"),
        (b"\x80\x04\x95pickled", "pickled Python objects"),
        (b"\xba\x16\x4f\x2f fasttext", r"a fastText model \(\.bin\)"),
        (b"\x1f\x8bgz", ": it is damaged or cut short"),
        (b"PK\x03\x04zip", ": it is damaged or cut short"),
        (gzip.compress(text() * 9, mtime=0)[:-40], ": it is damaged or cut short"),
        (
            gzip.compress(gzip.compress(GOOD.encode(), mtime=0), mtime=0),
            "it is an archive in an archive",
        ),
        (b"x" * 257 + b"ustar" + b"x" * 300, "an archive in an archive, or an unknown kind"),
        (b"\x93NUMPY\x01\x00", "its header is damaged"),
        (struct.pack("<Q", 20) + b"{truncated", ": it is damaged or cut short"),
        (b"a\t1\t2\nb\t3\t4\n", "it has tabs between words and numbers"),
    ],
)
def test_refused(put, content, says):
    with pytest.raises((TableError, ConfigError), match=says) as caught:
        read(put(content, "some.file"))
    assert "some.file" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_broken_word2vec(put):
    whole = binary(SPACELESS)
    for cut in range(1, len(whole) - 1):
        with pytest.raises(TableError):
            read(put(whole[:cut], "news.bin"), format="word2vec")
    with pytest.raises(TableError, match="says 8 words, and it ends after 7; it is cut short"):
        read(put(whole[:-3]), format="word2vec")
    with pytest.raises(TableError, match="says 7 words, and it continues after them"):
        read(put(binary(SPACELESS, count=7)))
    with pytest.raises(TableError, match=r"the word at byte 4 has no end|it is cut short"):
        read(put(b"9 2\n" + b"\x00" * 3000), format="word2vec")
    bad = put(
        b"3 2\n" + b"".join(word + b" " + ROWS[0, :2].tobytes() for word in (b"a", b"\xff", b"c"))
    )
    with pytest.raises(TableError, match="the word at byte 14 is not UTF-8"):
        read(bad, format="word2vec")
    words, _, found = read(bad, format="word2vec", skip_broken=True)
    assert (words, found.left_out.broken) == (["a", "c"], 1)


def test_broken_arrays(put, tmp_path):
    vocabulary, path = str(put(b"a\nb\nc\n", "words")), tmp_path / "rows.npy"

    def refused(array, says, **options):
        np.save(path, array)
        with pytest.raises((TableError, ConfigError), match=says):
            read(path, **{"vocabulary": vocabulary, **options})

    refused(ROWS[:2], "each row needs a word, got 2 rows and more words")
    refused(ROWS[:4], "each row needs a word, got 4 rows and 3 words")
    refused(ROWS[0], "an array")
    refused(ROWS[:3].astype(int), "floating-point numbers, got int64")
    refused(np.asfortranarray(ROWS[:3]), "stored by columns")
    refused(np.array([[None]]), "pickled Python objects")
    refused(ROWS[:3] * np.array([[1], [np.nan], [1]]), r"rows\.npy: row 2 holds NaN")
    refused(ROWS[:3].astype(float) * 1e300, "row 1 holds NaN, infinity or a number too large")
    refused(ROWS[:3], "no such file", vocabulary="nowhere")
    refused(ROWS[:3], "holds rows without words: give --vocabulary", vocabulary=None)
    np.save(path, ROWS[:3])
    content = path.read_bytes()
    for damaged, says in (
        (content[:-1], "cut short"),
        (content + b"x", "continues after them"),
        (content[:9], "damaged"),
    ):
        with pytest.raises(TableError, match=says):
            read(put(damaged), vocabulary=vocabulary, format="numpy")
    wrong = (
        "'descr': (), 'shape': ()",
        "'descr': '<f4', 'shape': (-5, 7)",
        f"'descr': '<f4', 'shape': ({10**20}, 7)",
    )
    spelled = [f"{{{each}, 'fortran_order': False}}".encode() for each in wrong]
    for header in (b"{", b"'''", b"[1,", b"}}", b"{[]:1}", b"-" * 9000, *spelled):
        damaged = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header + b"\n"
        with pytest.raises(
            TableError, match="not an array in NumPy's format, or its header is damaged"
        ):
            read(put(damaged), vocabulary=vocabulary)
    with pytest.raises(TableError, match=": it is not a file"):
        read(path, vocabulary=str(tmp_path))
    with pytest.raises(TableError, match="it must be UTF-8; byte 1"):
        read(path, vocabulary=str(put(b"a\xff")))
    with pytest.raises(ConfigError, match="leave --vocabulary out"):
        read(put(text()), vocabulary=vocabulary)


@pytest.mark.parametrize(
    ("shape", "descr", "says"),
    [
        ("(100000000000000,)", "<U1", "got 2 rows and 100,000,000,000,000 words"),
        ("(2,)", "<U400000000", "its array of words is damaged"),
        ("(2,)", "<U9", "its array of words is damaged"),
    ],
)
def test_arrays_of_words_that_promise_too_much(tmp_path, shape, descr, says):
    with (
        zipfile.ZipFile(tmp_path / "rows.npz", "w") as packed,
        packed.open("rows.npy", "w") as rows,
    ):
        np.save(rows, ROWS[:2])
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    with zipfile.ZipFile(tmp_path / "rows.npz", "a") as packed:
        packed.writestr(
            "words.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"a\0\0\0"
        )
    with pytest.raises(TableError, match=says):
        read(tmp_path / "rows.npz")


def test_archives_of_several_kinds(put, tmp_path):
    path, vocabulary = tmp_path / "all.zip", put("\n".join(WORDS).encode(), "words")
    np.save(tmp_path / "b.npy", ROWS)
    with zipfile.ZipFile(path, "w") as packed:
        packed.write(tmp_path / "b.npy", "b.npy")
        packed.writestr("README", "no array")
        packed.writestr("b", "no array")
        packed.writestr("g.txt", text(WORDS[:3], ROWS[:3]))
    for member in (None, "b.npy"):
        assert read(path, vocabulary=str(vocabulary), member=member)[0] == WORDS
    assert read(path, member="g.txt")[0] == WORDS[:3]
    with pytest.raises(TableError, match="its format is not recognized"):
        read(path, member="b")
    with pytest.raises(ConfigError, match="which has no members: leave --member out"):
        read(put(text()), member="b")


def test_packed_files_that_cannot_be_read(put, tmp_path):
    vocabulary = str(put("\n".join(WORDS).encode(), "words"))
    save_file({"emb": torch.from_numpy(ROWS)}, tmp_path / "m.safetensors")
    whole = (tmp_path / "m.safetensors").read_bytes()
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as packed:
        packed.writestr("m.safetensors", whole)
    for path in (put(gzip.compress(whole), "m.safetensors.gz"), tmp_path / "m.zip"):
        with pytest.raises(TableError, match=r"a packed \.safetensors.*; unpack it first"):
            read(path, vocabulary=vocabulary)
    with zipfile.ZipFile(tmp_path / "l.zip", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("some.txt", text())
    content = bytearray((tmp_path / "l.zip").read_bytes())
    content[55:75] = bytes(range(20))
    with pytest.raises(TableError, match=": it is damaged or cut short"):
        read(put(bytes(content), "l.zip"))
    content = bytearray((tmp_path / "m.zip").read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(TableError, match="it is encrypted; unpack it first"):
        read(put(bytes(content), "e.zip"))


def test_a_vocabulary_is_read_no_further_than_the_rows(put, tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    damaged = gzip.compress(b"a\n" * 1_000_000)[:-200]  # the end of it would be refused
    with pytest.raises(TableError, match="got 8 rows and more words"):
        read(tmp_path / "rows.npy", vocabulary=str(put(damaged, "words.gz")))


def test_zero_rows(put):
    path = put(b"a 1 2\nb 0 -0\nc 3 4\n")
    assert read(path, zero_rows=True)[0] == ["a", "b", "c"]
    with pytest.raises(TableError, match="line 2 has a zero row"):
        read(path)
    assert read(path, skip_broken=True)[0] == ["a", "c"]


def test_names_of_nothing(tmp_path):
    with pytest.raises(
        TableError, match="no such file; give a file, the folder of a model, or a hub id"
    ):
        read(tmp_path / "nothing.txt")
    with pytest.raises(ConfigError, match="--format must be one of glove, vec"):
        read(tmp_path, format="csv")


@pytest.mark.parametrize(
    "name",
    [
        "data/patients",
        "nowhere/patients.txt",
        "nowhere/rows.NPY",
        "nowhere/x.bin.gz",
        "./x/y",
        "~/x",
        r"x\y",
        "/x",
    ],
)
@pytest.mark.parametrize("format", [None, "model"])
def test_no_hub_is_asked_for_paths(tmp_path, monkeypatch, name, format):
    def ask(*_):
        raise AssertionError("a hub was asked")

    monkeypatch.setattr(vectors, "_read_model", ask)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    with pytest.raises(TableError, match="no such file; give a file"):
        read(name, format=format)
    with pytest.raises(AssertionError, match="a hub was asked"):
        read("FacebookAI/roberta-base", format=format)


def test_files_that_are_none(tmp_path, put):
    with pytest.raises(ConfigError, match="is a file; --format model is for the folder"):
        read(put(text()), format="model")
    if Path("/dev/null").is_char_device():
        with pytest.raises(TableError, match="it is not a file"):
            read("/dev/null")
    np.savez(tmp_path / "a\nb.npz", rows=ROWS[:2], words=np.array(["a", "b"]))
    assert (read(tmp_path / "a\nb.npz")[2].name, read(tmp_path / "a\nb.npz")[2].file) == (
        "a?b",
        "a?b.npz",
    )


# ---- models ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model's folder, its embeddings and its tokenizer's pieces in order; there are two rows too many."""
    from tokenizers import Tokenizer, models
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "small"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "anna", "bank", "##s"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]")),
        **{f"{name.lower().strip('[]')}_token": name for name in pieces[:5]},
    )
    size = {"vocab_size": len(pieces) + 2, "hidden_size": 8, "intermediate_size": 8}
    network = BertForMaskedLM(
        BertConfig.from_dict({**size, "num_hidden_layers": 1, "num_attention_heads": 2})
    )
    weights: Any = network.get_input_embeddings().weight
    for target, limit in ((folder, "1GB"), (folder.with_name("shards"), "1KB")):
        network.save_pretrained(target, max_shard_size=limit)
        tokenizer.save_pretrained(target)
    return folder, weights.detach().numpy(), pieces


def test_models(model, tmp_path):
    folder, weights, pieces = model
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    for file in folder.glob("*.json"):
        (pickled / file.name).write_bytes(file.read_bytes())
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), pickled / "pytorch_model.bin")
    for where in (folder, folder.with_name("shards"), pickled):
        words, rows, found = read(where)
        assert words == pieces[5:]
        np.testing.assert_array_equal(rows, weights[5:8])
        assert (found.format, found.name) == ("model", where.name)
    with pytest.raises(ConfigError, match="is read as a model"):
        read(folder, member="x")


def test_only_the_embeddings_are_read(model, monkeypatch):
    import transformers

    def refuse(*_, **__):
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", refuse)
    assert read(model[0])[0] == model[2][5:]


@pytest.mark.parametrize("wrong", [torch.zeros(10), torch.zeros(10, 8, dtype=torch.int32)])
def test_input_embeddings_that_are_no_rows(model, tmp_path, wrong):
    for file in model[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    save_file({"bert.embeddings.word_embeddings.weight": wrong}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="floating-point numbers"):
        read(tmp_path)


def test_folders_that_hold_no_model(tmp_path):
    with pytest.raises(ModelError, match="as a transformers model with input embeddings"):
        read(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(ModelError, match="as a transformers model with input embeddings"):
        read(tmp_path)
