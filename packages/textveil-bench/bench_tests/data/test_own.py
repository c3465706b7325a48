"""A user's own file: options say what stands where, and errors name the fields that there are."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textveil.errors import ConfigError, InputError, UnknownName
from textveil_bench.data.loading import load
from textveil_bench.spec import SweepData

CANARY = "zyxqorvian"


@pytest.fixture
def put(tmp_path):
    def write(name: str, content: str) -> str:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return str(tmp_path / name)

    return write


def refused(says, error, *arguments, **more):
    with pytest.raises(error, match=says) as caught:
        load(*arguments, **more)
    assert CANARY not in str(caught.value)


def test_a_table_with_labels(put):
    path = put(
        "letters.csv", 'id,body,tone\n1,"Dear you, thanks",kind\n2,Go away,rude\n3,Hello,kind\n'
    )
    data = load(path, fields=["body"], label="tone")
    assert (data.name, data.kind, data.labels, data.fields) == (
        "letters",
        "classification",
        ("kind", "rude"),
        ("body",),
    )
    assert [(example.texts[0], example.label) for example in data.examples] == [
        ("Dear you, thanks", 0),
        ("Go away", 1),
        ("Hello", 0),
    ]
    assert load(path, fields=["body"], label="tone", labels=["rude", "kind"]).examples[0].label == 1
    assert len(load(path, fields=["body"], label="tone", limit=2)) == 2


@pytest.mark.parametrize("ending", ["jsonl", "tsv", "parquet"])
def test_numbers_are_labels_in_every_format(tmp_path, ending):
    rows = [{"text": f"t{n}", "stars": n} for n in (10, 2, 2)]
    path = tmp_path / f"r.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text(
            "text\tstars\n" + "".join(f"{row['text']}\t{row['stars']}\n" for row in rows)
        )
    data = load(str(path), label="stars")
    assert data.labels == ("2", "10")
    assert [example.label for example in data.examples] == [1, 0, 0]


def test_lines_are_texts(put):
    data = load(put("notes.txt", "one\n\ntwo\r\n"))
    assert [example.texts for example in data.examples] == [("one",), ("two",)]
    assert (data.kind, data.remarks) == ("text", ("left out: 1 with an empty text",))


def test_rows_without_a_label_are_left_out(put):
    data = load(
        put("letters.csv", "text,label\nhello,a\nhow,\nyou,b\nthere, \n,a\n"), label="label"
    )
    assert [example.texts for example in data.examples] == [("hello",), ("you",)]
    assert data.labels == ("a", "b")
    assert data.remarks == ("left out: 2 without a label", "left out: 1 with an empty text")


def test_where_a_file_lies_is_not_told(put, tmp_path):
    data = load(put("letters.csv", "text\nhello\n"))
    assert (data.name, data.source) == ("letters", "letters.csv")
    assert SweepData(name=str(tmp_path / "letters-{split}.csv")).row_name == "letters"


def test_pairs_choices_and_groups(put):
    path = put("p.csv", "a,b,c,right,from\nq,x,y,c,north\nr,z,w,0,south\n")
    data = load(path, fields=["a", "b", "c"], label="right", group="from")
    assert (data.kind, data.labels) == ("choice", ("b", "c"))
    assert [(example.label, example.group) for example in data.examples] == [
        (1, "north"),
        (0, "south"),
    ]
    assert load(path, fields=["a", "b"], label="from").kind == "pairs"


@pytest.mark.parametrize(
    "given", ["Oslo", ["Oslo", "Oslo"], {"text": ["Oslo"]}, [{"text": "Oslo"}]]
)
def test_answers_in_every_spelling(put, given):
    path = put(
        "q.jsonl",
        json.dumps({"asked": "Where?", "text": "It is in Oslo.", "answers": given}) + "\n",
    )
    data = load(path, fields=["asked", "text"], answers="answers")
    assert (data.kind, data.examples[0].answers) == ("reading", ("Oslo",))


def test_a_label_has_the_same_number_in_every_split(put):
    put("news-train.csv", "text,label\n" + "".join(f"t{i},{'abc'[i % 3]}\n" for i in range(9)))
    path = put("news-test.csv", "text,label\nx,c\ny,a\n").replace("news-test", "news-{split}")
    test, train = load(path, label="label"), load(path, label="label", split="train", limit=3)
    assert test.name == train.name == "news"
    assert test.labels == train.labels == ("a", "b", "c")
    assert [example.label for example in test.examples] == [2, 0]
    assert [example.texts[0] for example in train.examples] == ["t0", "t3", "t6"]
    refused("needs its own file", ConfigError, put("one.csv", "text\nx\n"), split="train")


def test_what_is_wrong_with_options(put):
    path = put("a.csv", f"text,other\n{CANARY},2\n")
    refused("answers needs two fields", ConfigError, path, answers="other")
    refused("several fields need a label or answers", ConfigError, path, fields=["text", "other"])
    refused("different columns", ConfigError, path, fields=["text", "text"])
    refused(
        "labels needs a label, and at least two names",
        ConfigError,
        path,
        label="other",
        labels=["2"],
    )
    refused(
        "no option of Columns is named 'labelled'; did you mean 'label'",
        UnknownName,
        path,
        labelled="other",
    )
    refused("a file of your own is used as a whole", ConfigError, path, subset="gold")


def test_what_is_wrong_with_rows(put, tmp_path):
    path = put("a.csv", f"text,other\n{CANARY},2\n{CANARY},3\n")
    refused(
        "a.csv, row 1: it lacks the field 'body' and has 2 others",
        InputError,
        path,
        fields=["body"],
    )
    refused(
        "a.csv, row 2: the field 'other' must hold a label: 1, 2",
        InputError,
        path,
        label="other",
        labels=["1", "2"],
    )
    refused(
        "each answer must occur literally in the text",
        InputError,
        path,
        fields=["text", "other"],
        answers="text",
    )
    refused("no data set and no file of this name", InputError, str(tmp_path / "none.csv"))
    many = put("many.csv", "text,label\n" + "".join(f"t,{i} {CANARY}\n" for i in range(101)))
    refused("is it a text", ConfigError, many, label="label")
    refused(
        "is it a text", ConfigError, put("long.csv", f"text,label\nt,{CANARY * 7}\n"), label="label"
    )
    refused("needs at least one", ConfigError, put("empty.jsonl", ""))
    refused(
        "bad.jsonl: line 2 must be a JSON object",
        InputError,
        put("bad.jsonl", f'{{"text": "x"}}\n["{CANARY}"]\n'),
    )
    refused("parquet", InputError, put("b.parquet", CANARY))
    nested = put("n.jsonl", json.dumps({"text": "x", "label": {CANARY: 1}}) + "\n")
    refused("the field 'label' must hold a text or a number", InputError, nested, label="label")
