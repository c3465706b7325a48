"""Formats: every text is found, every text can be replaced, and nothing else changes."""

import base64
import csv
import gzip
import io
import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from textveil.config import registry
from textveil.errors import ConfigError, InputError
from textveil.files import FieldCell, FileRow, Format, LineFormat, formats

CANARY = "Zyxqorvian"
MARK = b"\xef\xbb\xbf"

fast = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
unicode = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
awkward = st.one_of(unicode, st.text('ab",\t\r\n \x85\u2028é', max_size=8))


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def texts(path: Path, **more) -> list[str | None]:
    return list(formats.read_texts(formats.find_source(path, **more)))


def rewritten(path: Path, released, only=None, labels=(), **more) -> bytes:
    """The file with other texts, in batches of two rows, each found again where the one before ended."""
    source, target, new = formats.find_source(path, **more), io.BytesIO(), iter(released)
    columns = source.columns._replace(labels=tuple(labels))
    (name,) = columns.texts

    def batches():
        start = 0
        while True:
            with formats.open_file(path, packing=source.packing) as file:
                for batch in source.format.read_batches(file, columns, start=start, rows=2):
                    yield batch, {name: [next(new) for _ in range(len(batch))]}
                    start = batch.end
                    break
                else:
                    return

    with formats.open_file(path, packing=source.packing) as file:
        head = source.format.read_head(file)
    with formats.open_compressor(target, source.packing) as packed:
        source.format.write(head, batches(), packed, only)
    assert next(new, None) is None
    return target.getvalue()


def refused(
    path: Path, says: str, error: type[Exception] | tuple[type[Exception], ...] = InputError, **more
) -> None:
    """Refused when the file is read, with no word of it, not even behind the error."""
    with pytest.raises(error, match=says) as caught:
        texts(path, **more)
    shown: BaseException | None = caught.value
    while shown is not None:
        assert CANARY not in str(shown) + repr(vars(shown))
        shown = shown.__context__


# ---- names and fields ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", ("txt", "")),
        ("a.b.jsonl", ("jsonl", "")),
        ("A.CSV", ("csv", "")),
        ("a.tsv.gz", ("tsv", "gz")),
        ("a.parquet", ("parquet", "")),
        ("a.parquet.gz", ("parquet", "gz")),
        ("a.txt.zip", None),
        ("a.gz", None),
        ("txt", None),
        ("a.json", None),
    ],
)
def test_names(name, expected):
    assert formats.parse_suffix(name) == expected


def test_which_field(tmp_path):
    def field(name: str, content: str, **more) -> str | None:
        (found,) = formats.find_source(put(tmp_path, name, content.encode()), **more).columns.texts
        return found

    assert field("a.jsonl", '{"id": 1, "body": "x"}\n') == "body"
    assert field("a.jsonl", '\n{"title": "t", "text": "x"}\n') == "text"
    assert field("a.jsonl", '{"title": "t", "body": "x"}\n', field="body") == "body"
    assert field("a.csv", "\ufefftext\nx\n") == "text"
    assert field("a.tsv", 'id\t"text"\n1\tx\n') == "text"
    for name in ("a.jsonl", "a.csv", "a.tsv.gz", "a.txt"):
        assert field(name, "") == "text"
    for name, content in [
        ("a.jsonl", '{"a": "x", "b": "x"}'),
        ("a.jsonl", '{"a": "x", "b": ["x"]}'),
        ("a.jsonl", '{"a": "x", "b": {}}'),
        ("a.jsonl", '{"a": 1}'),
        ("a.csv", "a,b\n"),
        ("a.csv", "Silva\nCosta\n"),
        ("a.csv", "a;b\n1;x\n"),
        ("a.tsv", "a,b\n1,x\n"),
        ("a.csv", "The doctor lost my letter\n"),
        ("a.csv", " \ntext\nabc\n"),
        ("a.tsv", "\t\ntext\tb\n"),
    ]:
        with pytest.raises(ConfigError, match=r"--field is needed"):
            field(name, content)
    assert field("a.csv", "a;b\nx\n", field="a;b") == "a;b"
    assert field("a.csv", " \nx\n", field=" ") == " "
    for name, content in [("a.csv", "a,b\n"), ("a.tsv", "no\tno\n")]:
        says = rf"{re.escape(name)} has (no column|2 columns) 'no' \(--field\)\. Columns: (a, b|no, no)$"
        with pytest.raises(ConfigError, match=says):
            field(name, content, field="no")
    with pytest.raises(ConfigError, match=r"a \.txt file has no fields"):
        field("a.txt", "x", field="a")
    with pytest.raises(ConfigError, match=r"--whole does not apply to \.csv"):
        field("a.csv", "text\n", whole=True)
    with pytest.raises(ConfigError, match=r"must end in \.txt"):
        field("a.doc", "x")
    with pytest.raises(ConfigError, match=r"cannot be read compressed"):
        field("a.parquet.gz", "x")


def test_a_field_text_is_used_or_refused(tmp_path):
    """No other field takes its place, whatever it has in the first row."""
    path = put(
        tmp_path,
        "a.jsonl",
        f'{{"text":null,"label":"x"}}\n{{"text":"{CANARY}","label":"y"}}\n'.encode(),
    )
    assert texts(path) == [None, CANARY]
    refused(
        put(tmp_path, "a.jsonl", f'{{"text":5,"label":"{CANARY}"}}'.encode()),
        "must be a string of valid",
    )
    for name, kind in {
        "dictionary": pa.dictionary(pa.int32(), pa.string()),
        "binary": pa.binary(),
    }.items():
        columns = {"text": pa.array([CANARY], pa.string()).cast(kind), "label": ["x"]}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        refused(tmp_path / f"{name}.parquet", "'text' has another type", ConfigError)
        columns["other"] = columns.pop("text")
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        refused(tmp_path / f"{name}.parquet", "--field is needed", ConfigError)
        assert texts(tmp_path / f"{name}.parquet", field="label") == ["x"]


@pytest.mark.parametrize(
    "row", ['{"label":"y","%s":"z"}', '{"label":"y","text":null}', '{"label":"y","n":["%s"]}']
)
def test_every_row_bears_out_a_guess(tmp_path, row):
    path = put(tmp_path, "a.jsonl", ('{"label":"x","n":1}\n' + row.replace("%s", CANARY)).encode())
    other = "text" if "text" in row else "n" if '"n"' in row else CANARY
    said = f"in line 2 another field has strings too: label, {other}$"
    with pytest.raises(
        ConfigError, match=said
    ):  # names of fields are no secret, what is in them is
        texts(path)
    assert texts(path, field="label") == ["x", "y"]


# ---- lines ---------------------------------------------------------------------------------------


def test_lines_keep_their_ends(tmp_path):
    path = put(tmp_path, "a.txt", MARK + b"one\r\ntwo\r\r\n\nthree")
    assert texts(path) == ["one", "two\r", "", "three"]
    assert rewritten(path, ["1", "2", "3", "4"]) == MARK + b"1\r\n2\r\n3\n4"
    assert texts(path, whole=True) == ["one\r\ntwo\r\r\n\nthree"]
    assert rewritten(path, ["x"], whole=True) == MARK + b"x"


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a.csv", "a.tsv.gz"])
@pytest.mark.parametrize("content", [b"", MARK])
def test_empty_files(tmp_path, name, content):
    path = put(tmp_path, name, content)
    assert texts(path) == []
    out = rewritten(path, [])
    assert (gzip.decompress(out) if name.endswith(".gz") else out) == content


@pytest.mark.parametrize(
    ("content", "position"),
    [(b"a\n\xff" + CANARY.encode(), 2), (f"{CANARY}é".encode("latin-1"), 10)],
)
def test_other_encodings(tmp_path, content, position):
    refused(put(tmp_path, "a.txt", content), f"byte {position} ")
    refused(put(tmp_path, "a.txt", content), f"byte {position} ", whole=True)
    refused(put(tmp_path, "a.csv", b"text\n" + content), f"byte {position + 5} ")
    refused(put(tmp_path, "a.csv", CANARY.encode("utf-16")), "byte 0 ")


def test_packed_files(tmp_path):
    path = put(tmp_path, "a.txt.gz", b"one\ntwo\n")
    out = rewritten(path, ["1", "2"])
    assert gzip.decompress(out) == b"1\n2\n"
    assert out[3:8] == bytes(5)  # no name, no time
    content = gzip.compress(os.urandom(999).hex().encode())
    for broken in (CANARY.encode(), content[:-9], content[:100] + b"\0\0\0" + content[103:]):
        (tmp_path / "b.txt.gz").write_bytes(broken)
        refused(tmp_path / "b.txt.gz", "damaged or cut off")


# ---- JSON lines ----------------------------------------------------------------------------------

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), awkward),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(unicode, inner, max_size=3)
    ),
    max_leaves=6,
)


@fast
@given(
    rows=st.lists(
        st.tuples(st.dictionaries(unicode, values, max_size=4), st.one_of(st.none(), awkward)),
        max_size=5,
    ),
    indent=st.sampled_from([(", ", ": "), (",", ":"), (" , ", "\t:  ")]),
    ascii=st.booleans(),
    last=st.sampled_from(["\n", "\r\n", ""]),
)
def test_only_the_field_changes(tmp_path, rows, indent, ascii, last):
    lines = []
    for others, text in rows:
        others.pop("t", None)
        items = list(others.items())
        items.insert(len(items) // 2, ("t", text))
        lines.append(json.dumps(dict(items), separators=indent, ensure_ascii=ascii))
    path = put(tmp_path, "a.jsonl", ("\n".join(lines) + last * bool(lines)).encode())
    assert texts(path, field="t") == [text for _, text in rows]
    same = rewritten(path, [text for _, text in rows], field="t")
    assert [json.loads(line) for line in same.splitlines() if line] == [
        json.loads(line) for line in lines
    ]
    new = [None if text is None else f"new\u2028{i}" for i, (_, text) in enumerate(rows)]
    out = rewritten(path, new, field="t").decode()
    for line, old, text in zip(out.split("\n"), lines, new, strict=False):
        found = json.loads(line)
        assert found.pop("t") == text
        assert found == {name: each for name, each in json.loads(old).items() if name != "t"}


def test_other_fields_stay_byte_for_byte(tmp_path):
    before, after = (
        '{"n": 1.0e5,  "x":"\\u00e9","deep": [1, {"t": "no"}], "t" : ',
        ',"z":1E400, "x": NaN } \r\n',
    )
    path = put(
        tmp_path, "a.jsonl", MARK + f'\n{before}"a\\u0062\\n"{after}{{"t":null}}\n  \n'.encode()
    )
    assert texts(path, field="t") == ["ab\n", None]
    assert rewritten(path, ['"é"', None], field="t") == (
        MARK + f'\n{before}"\\"é\\""{after}{{"t":null}}\n  \n'.encode()
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"t": "%s"', "line 2 must be a JSON object"),
        ('{"t": "%s"} x', "line 2 must be a JSON object"),
        ('{"t": "%s",}', "line 2 must be a JSON object"),
        ('{"t": "%s" "b": 1}', "line 2 must be a JSON object"),
        ('{"t": "a\tb%s"}', "line 2 must be a JSON object"),
        ('["%s"]', "line 2 must be a JSON object"),
        ('"%s"', "line 2 must be a JSON object"),
        ('{"t": ' + "[" * 100_000 + "%s", "line 2 must be a JSON object"),
        ('{1: "%s"}', "line 2 must be a JSON object"),
        ('{"b": "%s"}', "line 2 has no field 't'. Fields: b$"),
        ('{"t": "a", "t": "%s"}', "line 2 has 2 fields 't'. Fields: t, t$"),
        ('{"t": ["%s"]}', "line 2 must be a string"),
        ('{"t": 5, "b": "%s"}', "line 2 must be a string"),
        ('{"t": "%s\\ud800"}', "line 2 must be a string"),
    ],
)
def test_rows_that_are_refused(tmp_path, line, says):
    content = '{"t": "a"}\n' + line.replace("%s", CANARY) + "\n"
    refused(put(tmp_path, "a.jsonl", content.encode()), says, (InputError, ConfigError), field="t")


def test_numbers_of_any_length(tmp_path):
    path = put(tmp_path, "a.jsonl", b'{"n": ' + b"9" * 10_000 + b', "t": "a"}')
    assert texts(path) == ["a"]


# ---- tables with delimiters ----------------------------------------------------------------------


@fast
@given(
    rows=st.lists(st.lists(awkward, min_size=3, max_size=3), max_size=5),
    kind=st.sampled_from(["csv", "tsv"]),
    # with \n as line end the module leaves \r unquoted
    style=st.sampled_from(
        [(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\n"), (csv.QUOTE_NONNUMERIC, "\r\n")]
    ),
    place=st.integers(0, 2),
)
def test_tables_read_as_the_csv_module_reads_them(tmp_path, rows, kind, style, place):
    header = ["a", 'b "x"', "c"]
    if kind == "tsv":  # the columns that are copied have no tabs and line ends there
        rows = [
            [
                each if k == place else each.translate(dict.fromkeys(b"\t\r\n"))
                for k, each in enumerate(row)
            ]
            for row in rows
        ]
    delimiter = {"csv": ",", "tsv": "\t"}[kind]
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter, quoting=style[0], lineterminator=style[1]).writerows(
        [header, *rows]
    )
    content = written.getvalue().encode()
    path = put(tmp_path, f"a.{kind}", content)
    found = texts(path, field=header[place])
    assert found == [row[place] for row in rows]
    assert rewritten(path, found, field=header[place]) == content
    new = [f'{i}, "x"\t{text}' for i, text in enumerate(found)]
    out = rewritten(path, new, field=header[place]).decode()
    expected = [
        [new[i] if k == place else each for k, each in enumerate(row)] for i, row in enumerate(rows)
    ]
    assert list(csv.reader(io.StringIO(out, newline=""), delimiter=delimiter, strict=True)) == [
        header,
        *expected,
    ]


def test_a_table_keeps_its_own_ways(tmp_path):
    content = MARK + b'\r\n"id",text,5" pipe\r\n1,"a ""b""\r\nc",""\r\n\r\n"2",d,x"y'
    path = put(tmp_path, "a.csv", content)
    assert texts(path) == ['a "b"\r\nc', "d"]
    assert rewritten(path, ["1", "2,"]) == MARK + (
        b'\r\n"id",text,5" pipe\r\n1,"1",""\r\n\r\n"2","2,",x"y'
    )
    alone = put(tmp_path, "b.csv", b"text\na\n")
    assert rewritten(alone, [""]) == b'text\n""\n'
    assert texts(put(tmp_path, "c.csv", b"text\n" + b"x" * 300_000)) == ["x" * 300_000]
    many = put(tmp_path, "d.csv", b'text\n"' + b"x\n" * 50_000 + b'"\n')
    assert texts(many) == ["x\n" * 50_000]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("%s\n", "line 2 must have 2 columns .* got 1"),
        ('1,"a\nb"\n1,%s,2\n', "line 4 must have 2 columns .* got 3"),
        ('1,"%s\nx\n', "must end with one; see line 2"),
        ('1,"%s"x\n', "line 2 must have a delimiter or a line end"),
        ("1,%s\r2,x\n", "line 2 must have a delimiter or a line end"),
    ],
)
def test_records_that_are_refused(tmp_path, rows, says):
    path = put(tmp_path, "a.csv", ("id,text\n" + rows.replace("%s", CANARY)).encode())
    refused(path, says)


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_an_empty_text_alone_is_a_row(tmp_path, kind):
    """Also where the column has become the only one, and whether or not the text was empty before."""
    mark = {"csv": ",", "tsv": "\t"}[kind]
    path = put(tmp_path, f"a.{kind}", b"n,text\n1,a\n2,\n3,c\n".replace(b",", mark.encode()))
    made = rewritten(path, ["", "", "C"], ("text",))
    assert made == b'text\n""\n""\nC\n'
    assert list(csv.DictReader(io.StringIO(made.decode()), delimiter=mark)) == [
        {"text": each} for each in ("", "", "C")
    ]
    assert texts(put(tmp_path, f"b.{kind}", made)) == ["", "", "C"]


def test_quotes_that_mean_nothing_in_a_tsv(tmp_path):
    """To writers without quotes this has two rows, and the text of the first is inside the title."""
    content = f'title\ttext\n"A strange title\tsecret {CANARY}\nanother"\tsecret two\n'.encode()
    refused(
        put(tmp_path, "a.tsv", content), "line 2 must have no tab and no line end inside the quotes"
    )
    refused(put(tmp_path, "a.tsv", b'"a\tb"\ttext\nx\ty\n'), "line 1 must have no tab")
    assert texts(put(tmp_path, "a.tsv", content), field="title") == [
        f"A strange title\tsecret {CANARY}\nanother"
    ]
    assert texts(put(tmp_path, "a.csv", content.replace(b"\t", b","))) == ["secret two"]


# ---- parquet -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_parquet(tmp_path, kind, codec):
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "id": pa.array(range(7), pa.int16()),
            "body": pa.array(["a", None, "", "d", "é", "f", "g"], kind),
            "nested": pa.array([[{"x": i}] for i in range(7)]),
        }
    )
    pq.write_table(table, path, row_group_size=3, compression=codec)
    assert texts(path) == [
        "a",
        None,
        "",
        "d",
        "é",
        "f",
        "g",
    ]  # no number in the nested column is a text
    new = ["1", None, "", "4", "ü", "6", "7"]
    (tmp_path / "b.parquet").write_bytes(rewritten(path, new))
    with pq.ParquetFile(path) as old, pq.ParquetFile(tmp_path / "b.parquet") as made:
        assert made.schema_arrow.equals(old.schema_arrow, check_metadata=True)
        assert made.read().equals(table.set_column(1, table.field(1), pa.array(new, kind)))
        for i in range(3):
            assert (
                made.metadata.row_group(0).column(i).compression
                == old.metadata.row_group(0).column(i).compression
            )


@pytest.mark.parametrize(
    "only", [None, ("body",), ("body", "nested", "odd", "map", "tag", "lists", "fixed")]
)
def test_parquet_metadata_is_not_copied(tmp_path, only):
    """Neither that of the schema, nor of a field at any depth, nor what an extension type says of itself."""
    said = {b"said": CANARY.encode()}
    odd = pa.ExtensionArray.from_storage(
        pa.opaque(pa.int32(), CANARY, CANARY), pa.array([1, None, 3], pa.int32())
    )
    inner = pa.field("x", pa.int64(), metadata=said)
    fields = {
        "body": (pa.string(), ["a", "", "c"]),
        "nested": (
            pa.struct([inner, pa.field("y", pa.list_(inner))]),
            [{"x": 1, "y": [1, 2]}, None, {"x": 3, "y": []}],
        ),
        "odd": (odd.type, odd),
        "map": (pa.map_(pa.string(), inner.with_name("value")), [[("k", 1)], None, []]),
        "tag": (pa.dictionary(pa.int8(), pa.string()), ["s", "t", None]),
        "lists": (
            pa.large_list(pa.field("item", odd.type, metadata=said)),
            pa.LargeListArray.from_arrays([0, 1, 1, 3], odd),
        ),
        "fixed": (pa.list_(inner, 1), [[1], None, [3]]),
    }
    schema = pa.schema(
        [pa.field(name, kind, metadata=said) for name, (kind, _) in fields.items()], said
    )
    columns = [
        found if isinstance(found, pa.Array) else pa.array(found, kind)
        for kind, found in fields.values()
    ]
    path, out = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(
        pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema),
        path,
    )
    assert CANARY.encode() in path.read_bytes()
    out.write_bytes(rewritten(path, ["1", "", "3"], only, field="body"))
    made = pq.read_table(out)
    for content in (
        out.read_bytes(),
        base64.b64decode(pq.read_metadata(out).metadata[b"ARROW:schema"]),
    ):
        assert CANARY.encode() not in content
    assert {*pq.read_metadata(out).metadata} == {b"ARROW:schema"}
    expected = pq.read_table(path).to_pydict() | {"body": ["1", "", "3"]}
    assert made.to_pydict() == {name: expected[name] for name in only or fields}
    if only is None:
        assert made.schema.field("odd").type == pa.int32()
        assert made.schema.field("tag").type == schema.field("tag").type


def test_parquet_files_that_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1], "a": ["x"], "b": [CANARY]}), path)
    refused(path, r"--field is needed: .*\(2 to choose from: a, b\)", ConfigError)
    refused(path, "--field must name a column of strings", ConfigError, field="n")
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for broken in (
        b"",
        CANARY.encode() * 9,
        content[:-20],
        content[:4] + b"\xff" * (footer - 4) + content[footer:],
    ):
        path.write_bytes(broken)
        refused(path, "is incomplete or damaged", field="a")
    bad = pa.Array.from_buffers(
        pa.string(),
        1,
        [None, pa.py_buffer(b"\0\0\0\0\x0b\0\0\0"), pa.py_buffer(b"\xff" + CANARY.encode())],
    )
    pq.write_table(pa.table({"a": bad}), path)
    refused(path, "must be UTF-8")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    assert texts(path) == []
    (tmp_path / "b.parquet").write_bytes(rewritten(path, []))
    assert pq.read_table(tmp_path / "b.parquet").num_rows == 0


def test_a_column_named_like_a_field_of_a_struct(tmp_path):
    path = tmp_path / "a.parquet"
    for columns in ({"a": [{"b": 1}], "a.b": ["x"]}, {"a.b": ["x"], "a": [{"b": 1}]}):
        pq.write_table(pa.table(columns), path)
        assert texts(path, field="a.b") == ["x"]
        (tmp_path / "b.parquet").write_bytes(rewritten(path, ["y"], field="a.b"))
        assert pq.read_table(tmp_path / "b.parquet").to_pydict() == columns | {"a.b": ["y"]}


# ---- what goes wrong on the way ------------------------------------------------------------------


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = put(tmp_path, "a.txt", b"one\n")

    def fails(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(formats, "open", fails, raising=False)
    refused(path, "cannot be read: Permission denied$")


# ---- whole rows ----------------------------------------------------------------------------------


def rows(path: Path, **more) -> list[dict]:
    return list(formats.read_records(path, **more))


def test_records_of_every_format(tmp_path):
    expected = [{"text": 'one, "two"', "n": "1"}, {"text": "three\nfour", "n": "2"}]
    as_table = 'text,n\n"one, ""two""",1\n\n"three\nfour",2\n'
    assert rows(put(tmp_path, "a.csv", as_table.encode())) == expected
    assert rows(put(tmp_path, "a.csv.gz", MARK + as_table.encode())) == expected
    as_table = as_table.replace("text,n", "text\tn").replace(",1", "\t1").replace(",2", "\t2")
    assert rows(put(tmp_path, "a.tsv", as_table.encode())) == expected
    lines = [{"text": "x", "more": [1, {"a": None}]}, {"other": 2.5}]
    as_lines = MARK + "\n\n".join(map(json.dumps, lines)).encode()
    assert rows(put(tmp_path, "a.jsonl", as_lines)) == lines
    assert rows(put(tmp_path, "a.json", as_lines), ending="jsonl") == lines
    assert rows(put(tmp_path, "a.txt", b"one\r\n\ntwo")) == [
        {"text": "one"},
        {"text": ""},
        {"text": "two"},
    ]
    assert rows(put(tmp_path, "a.raw", b"one\n"), ending="txt") == [{"text": "one"}]
    pq.write_table(pa.table({"text": ["x"], "n": [[1]]}), tmp_path / "a.parquet")
    assert rows(tmp_path / "a.parquet") == [{"text": "x", "n": [1]}]


def test_records_without_a_line_of_names_and_without_quotes(tmp_path):
    path = put(tmp_path, "a.csv", b'3,"Oil, up"\n')
    assert rows(path, names=("label", "title")) == [{"label": "3", "title": "Oil, up"}]
    path = put(tmp_path, "a.tsv", b'a\tb\r\n"x\t"y ""z\r\n')
    assert rows(path, quoted=False) == [{"a": '"x', "b": '"y ""z'}]


@given(st.lists(st.tuples(awkward, awkward), max_size=4))
@fast
def test_records_are_what_csv_wrote(tmp_path, pairs):
    written = io.StringIO(newline="")
    writer = csv.writer(written, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *pairs])
    found = rows(put(tmp_path, "a.csv", written.getvalue().encode()))
    assert [tuple(row.values()) for row in found] == pairs


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", f"a,b\n1,2\n{CANARY}\n", "line 3 must have 2 columns"),
        ("a.csv", f'a,b\n"{CANARY}\n', "must end with one; see line 2"),
        ("a.jsonl", f'{{"a": 1}}\n["{CANARY}"]\n', "line 2 must be a JSON object"),
        ("a.jsonl", "[" * 100_000, "line 1 must be a JSON object"),
        ("a.parquet", CANARY, "is incomplete or damaged"),
    ],
)
def test_records_that_are_none(tmp_path, name, content, says):
    with pytest.raises(InputError, match=says) as caught:
        rows(put(tmp_path, name, content.encode()))
    shown: BaseException | None = caught.value
    while shown is not None:
        assert CANARY not in str(shown) + repr(vars(shown))
        shown = shown.__context__


def test_records_of_names_that_say_no_format(tmp_path):
    with pytest.raises(ConfigError, match=r"must end in \.txt"):
        rows(put(tmp_path, "a.xlsx", b""))


# ---- formats of other packages -------------------------------------------------------------------


class Notes(LineFormat):
    """Texts behind a dash; all else is copied."""

    has_fields = False

    def find_field(self, file, wanted):
        return None

    def split_pieces(self, lines, columns, head):
        for _, line in lines:
            text = line[2:-1]
            yield (
                FileRow(line, {"text": FieldCell(2, len(line) - 1, text)})
                if line.startswith("- ")
                else line
            )

    def join_row(self, cells):
        return f"- {cells['text']}\n"

    def read_records(self, file):
        return ({"text": text} for text in self.read_texts(file))


def test_a_format_of_another_package(tmp_path, monkeypatch):
    for name, target in {"notes": f"{__name__}:Notes", "odd": "builtins:object"}.items():
        monkeypatch.setitem(
            registry.FORMATS, name, registry.Entry(target=target, summary="", package="pack")
        )
    content = b"# title\n- one\n\n- two\n"
    for name in ("a.notes", "a.NOTES.gz"):
        path = put(tmp_path, name, content)
        assert texts(path) == ["one", "two"]
        out = rewritten(path, ["1", "2"])
        assert (gzip.decompress(out) if name.endswith("gz") else out) == b"# title\n- 1\n\n- 2\n"
        assert rows(path) == [{"text": "one"}, {"text": "two"}]
    with pytest.raises(
        ConfigError, match=r"the format 'odd' .* the object of the package pack is not"
    ):
        texts(put(tmp_path, "a.odd", b""))
    with pytest.raises(ConfigError, match=r"--whole does not apply to \.notes"):
        texts(tmp_path / "a.notes", whole=True)


@pytest.mark.parametrize("name", registry.FORMATS)
def test_every_format_is_one(name):
    assert isinstance(formats.load_format(name), Format)
