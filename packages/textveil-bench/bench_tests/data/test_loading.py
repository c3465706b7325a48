"""Data sets by name: every published form becomes the same examples, a limit is fair, and what is wrong is said."""

import gzip
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textveil.errors import ConfigError, InputError, UnknownName
from textveil_bench.data import loading
from textveil_bench.data.loading import load
from textveil_bench.data.sources import SOURCES, File

CANARY = "zyxqorvian"

PARAGRAPH = (
    "The mill at Orsted burned twice. Its second owner, a widow named Greta Holm, rebuilt it in brick. She paid the "
    "masons with flour. Nobody in the valley had seen such a wall before."
)
QUESTIONS = [("Who rebuilt the mill?", "Greta Holm"), ("What were the masons paid with?", "flour")]


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv("TEXTVEIL_CORPORA", raising=False)


@pytest.fixture
def put(tmp_path):
    """Writes a file of the folder of corpora."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def texts(data) -> list[tuple[str, ...]]:
    return [example.texts for example in data.examples]


def labels(data) -> list[str]:
    return [data.labels[example.label] for example in data.examples]


def refused(says: str, error, *arguments, **more) -> None:
    """Refused with these words and none of the data, not even behind the error."""
    with pytest.raises(error, match=says) as caught:
        load(*arguments, **more)
    shown: BaseException | None = caught.value
    while shown is not None:
        assert CANARY not in str(shown) + repr(vars(shown))
        shown = shown.__context__


# ---- the table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
def test_every_data_set_says_what_it_is(name):
    source = SOURCES[name]
    assert (len(source.labels) > 1) == (source.kind in ("classification", "pairs", "choice"))
    texts = {
        "classification": 1,
        "text": 1,
        "pairs": 2,
        "reading": 2,
        "choice": 1 + len(source.labels),
    }
    assert len(source.fields) == texts[source.kind]
    assert "test" in source.files
    assert "-" not in name, "a dash parts a name from its subset"
    if source.hub is not None:
        assert set(source.hub.splits) == set(source.files)
    for part in source.subsets.values():
        assert len(part.label_map) in (0, len(source.labels))
        assert {number for number in part.label_map if number is not None} == set(
            range(len(part.labels))
        )


# ---- forms ---------------------------------------------------------------------------------------------------------


SST2 = "sentence\tlabel\nit sings\t1\nit limps\t0\n"


@pytest.mark.parametrize("name", ["SST-2/dev.tsv", "sst2/dev.tsv.gz", "sst2/dev.shared.tsv.gz"])
def test_sst2(put, tmp_path, name):
    put(name, SST2)
    data = load("sst2", folder=tmp_path)
    assert texts(data) == [("it sings",), ("it limps",)]
    assert labels(data) == ["positive", "negative"]
    assert (data.kind, data.source, data.fields) == ("classification", name, ("sentence",))


def test_a_quote_is_a_letter_in_tables_of_glue_and_a_quote_elsewhere(put, tmp_path):
    put("QNLI/dev.tsv", 'index\tquestion\tsentence\tlabel\n0\t"Who?\t"He said ""no""\tentailment\n')
    assert texts(load("qnli", folder=tmp_path)) == [('"Who?', '"He said ""no""')]
    (tmp_path / "QNLI" / "dev.tsv").unlink()
    put(
        "qnli/dev.shared.tsv.gz",
        'index\tquestion\tsentence\tlabel\n0\tWho?\t"He said ""no"""\tnot_entailment\n',
    )
    data = load("qnli", folder=tmp_path)
    assert texts(data) == [("Who?", 'He said "no"')]
    assert labels(data) == ["not_entailment"]


def test_swag(put, tmp_path):
    head = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
    put(
        "swag/val.csv",
        head + '0,v,1,"A man waves. He",A man waves.,He,gold,sits.,"runs, fast.",sings.,melts.,1\n',
    )
    data = load("swag", folder=tmp_path)
    assert texts(data) == [("A man waves. He", "sits.", "runs, fast.", "sings.", "melts.")]
    assert labels(data) == ["B"]
    assert (data.kind, data.fields) == ("choice", ("start", "A", "B", "C", "D"))


def test_mmlu_by_subject(put, tmp_path):
    put("mmlu/test/virology_test.csv", "What is it?,a,b,c,d,C\n")
    put("mmlu/test/anatomy_test.csv", '"Where, then?",e,f,g,h,A\n')
    put("mmlu/val/anatomy_val.csv", "x?,a,b,c,d,D\n")
    put("mmlu/dev/anatomy_dev.csv", "y?,a,b,c,d,D\n")
    data = load("mmlu", folder=tmp_path)
    assert texts(data) == [
        ("Where, then?", "e", "f", "g", "h"),
        ("What is it?", "a", "b", "c", "d"),
    ]
    assert labels(data) == ["A", "C"]
    assert [example.group for example in data.examples] == ["anatomy", "virology"]
    assert data.source == "mmlu/test/*_test.csv"
    assert texts(load("mmlu", split="train", folder=tmp_path))[0][0] == "x?"
    assert texts(load("mmlu", split="shots", folder=tmp_path))[0][0] == "y?"


def test_mmlu_in_one_table(put, tmp_path):
    put(
        "mmlu/test.shared.tsv.gz",
        "subject\tquestion\tA\tB\tC\tD\tanswer\njurisprudence\tWhy?\ta\tb\tc\td\tD\n",
    )
    data = load("mmlu", folder=tmp_path)
    assert labels(data) == ["D"]
    assert data.examples[0].group == "jurisprudence"


def nested() -> str:
    asked = [
        {
            "id": str(i),
            "question": question,
            "answers": [{"text": answer, "answer_start": PARAGRAPH.index(answer)}] * 3,
        }
        for i, (question, answer) in enumerate(QUESTIONS)
    ]
    return json.dumps(
        {
            "version": "1.1",
            "data": [{"title": "Mill", "paragraphs": [{"context": PARAGRAPH, "qas": asked}]}],
        }
    )


def test_squad_nested(put, tmp_path):
    put("squad/dev-v1.1.json", nested())
    data = load("squad", folder=tmp_path)
    assert texts(data) == [(question, PARAGRAPH) for question, _ in QUESTIONS]
    assert [example.answers for example in data.examples] == [(answer,) for _, answer in QUESTIONS]
    assert {example.group for example in data.examples} == {"gold"}


def silver(count: int) -> str:
    """Rows of which every third is gold; of the others the last has an answer that is not in the paragraph."""
    rows = []
    for i in range(count):
        gold = [{"text": "Greta Holm", "answer_start": 0}] if i % 3 == 0 else None
        answer = "flour" if i < count - 1 else "bread"
        rows.append(
            {
                "context": PARAGRAPH,
                "question": f"{i}?",
                "gold_answers": gold,
                "silver_answer": answer,
            }
        )
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_questions_about_four_sentences(put, tmp_path):
    asked = [
        *QUESTIONS,
        ("What burned?", "mill"),
        ("Which pronoun?", "She"),
        ("What did it say?", "a"),
    ]
    rows = [
        {"context": PARAGRAPH, "question": question, "answer": answer} for question, answer in asked
    ]
    rows.append(
        {"context": PARAGRAPH.partition(" Nobody")[0], "question": "Who?", "answer": "Greta Holm"}
    )
    rows.append(
        {"context": f"{PARAGRAPH} It stood.", "question": "What did it do?", "answer": "stood"}
    )
    put("squad_v11/train_subset.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    data = load("sentences", split="train", folder=tmp_path)
    mill, owner, masons, valley = re.split(r"(?<=[.]) ", PARAGRAPH)
    assert texts(data) == [(question, mill, owner, masons, valley) for question, _ in asked[:4]]
    assert labels(data) == ["B", "C", "A", "C"], (
        "three sentences, several with the answer and none with it are left out"
    )


def test_squad_gold_and_silver(put, tmp_path):
    put("squad_v11/dev.shared.jsonl.gz", silver(9))
    data = load("squad", folder=tmp_path)
    assert [example.texts[0] for example in data.examples] == [
        "0?",
        "3?",
        "6?",
        "1?",
        "2?",
        "4?",
        "5?",
        "7?",
    ]
    assert Counter(example.group for example in data.examples) == {"gold": 3, "silver": 5}
    assert data.remarks == (
        "left out: 1 without an answer that occurs in the text",
        "3 questions have answers of people (gold), 5 those of a model (silver)",
    )
    assert [example.texts[0] for example in load("squad", folder=tmp_path, limit=2).examples] == [
        "0?",
        "3?",
    ]
    few = load("squad", folder=tmp_path, limit=5)
    assert [example.texts[0] for example in few.examples] == ["0?", "3?", "6?", "1?", "4?"]
    assert few.remarks[-2:] == (
        "5 of 8 rows, evenly spaced",
        "3 questions have answers of people (gold), 2 those of a model (silver)",
    )
    assert len(load("squad", folder=tmp_path, subset="gold")) == 3


def test_ag_news(put, tmp_path):
    put("ag_news/test.csv", '"3","Oil ""up""","Prices rose, again."\n"4","","A probe landed."\n')
    data = load("ag_news", folder=tmp_path)
    assert texts(data) == [('Oil "up" Prices rose, again.',), ("A probe landed.",)]
    assert labels(data) == ["Business", "Sci/Tech"]
    (tmp_path / "ag_news" / "test.csv").unlink()
    put("ag_news/test.shared.tsv.gz", "label\ttitle\tdescription\n1\tTalks\tThey met.\n")
    data = load("ag_news", folder=tmp_path)
    assert texts(data) == [("Talks They met.",)]
    assert labels(data) == ["World"]


def test_yelp(put, tmp_path):
    lines = [
        {"stars": 4.0, "text": "Warm.\nLoud."},
        {"stars": 3.0, "text": "Fine."},
        {"stars": 1.0, "text": "Cold."},
    ]
    as_json = "".join(json.dumps(line) + "\n" for line in lines)
    for name, content in {
        "yelp_review_full_csv/test.csv": '"4","Warm.\\nLoud."\n"3","Fine."\n"1","Cold."\n',
        "yelp/test.csv": 'stars,text\n4,"Warm.\nLoud."\n3,Fine.\n1,Cold.\n',
        "yelp/test.jsonl": as_json,
        "yelp/test.shared.tsv.gz": 'stars\tcategory\ttext\n4\tBars\t"Warm.\nLoud."\n3\tBars\tFine.\n1\tBars\tCold.\n',
        "yelp/yelp_academic_dataset_review.json": as_json,
    }.items():
        path = put(name, content)
        data = load("yelp", folder=tmp_path)
        assert (data.source, texts(data)) == (name, [("Warm.\nLoud.",), ("Fine.",), ("Cold.",)])
        assert labels(data) == ["4 stars", "3 stars", "1 star"]
        polar = load("yelp-polarity", folder=tmp_path)
        assert (texts(polar), labels(polar)) == (
            [("Warm.\nLoud.",), ("Cold.",)],
            ["positive", "negative"],
        )
        path.unlink()


LINE = " ".join(f"word{i}" for i in range(50))


def test_wikitext_is_its_paragraphs(put, tmp_path):
    short = LINE.removesuffix(" word49") + " , . ( )"  # marks are no words
    content = (
        f" \n = A title with {LINE} = \n \n {LINE} \n = = Part = = \n {short} \n {LINE} , again \n"
    )
    for name in (
        "wikitext-2-raw/wiki.test.raw",
        "wikitext-2/wiki.test.tokens.gz",
        "wikitext2/test_raw.shared.txt.gz",
    ):
        path = put(name, content)
        assert texts(load("wikitext", folder=tmp_path)) == [(LINE,), (f"{LINE} , again",)]
        path.unlink()


def test_prompts(put, tmp_path):
    put(
        "prompts/prompts.jsonl",
        '{"text": "Write a poem", "kind": "real", "id": 0}\n\n{"text": " ", "kind": "real"}\n',
    )
    data = load("prompts", folder=tmp_path)
    assert (texts(data), data.examples[0].group) == ([("Write a poem",)], "real")
    assert data.remarks == ("left out: 1 with an empty text",)
    refused(
        "split must be one of test for prompts",
        ConfigError,
        "prompts",
        split="train",
        folder=tmp_path,
    )


def test_fantasy_of_a_file_and_generated(put, tmp_path):
    made = load("fantasy", folder=tmp_path, limit=7)
    assert (len(made), made.kind, made.source) == (7, "reading", "generated, seed 0")
    assert all(
        answer in example.texts[1] for example in made.examples for answer in example.answers
    )
    row = {
        "context": PARAGRAPH,
        "question": QUESTIONS[0][0],
        "answers": [{"text": "Greta Holm", "answer_start": 5}],
    }
    put("fantasy_squad/fantasy.shared.jsonl.gz", json.dumps(row) + "\n")
    data = load("fantasy", folder=tmp_path)
    assert texts(data) == [(QUESTIONS[0][0], PARAGRAPH)]
    assert data.examples[0].answers == ("Greta Holm",)
    assert "the authors' file, and not generated" in data.remarks
    assert load("fantasy-generated", folder=tmp_path, limit=7).examples == made.examples
    question = {"id": "a", "question": row["question"], "answers": row["answers"]}
    paragraph = {"context": row["context"], "qas": [question]}
    whole = {"version": "1", "data": [{"title": "Fantasy", "paragraphs": [paragraph]}]}
    put("fantasy_squad/fantasy_squad.json", json.dumps(whole))
    authors = load("fantasy", folder=tmp_path)
    assert authors.source == "fantasy_squad/fantasy_squad.json"
    assert [example.texts for example in authors.examples] == [(row["question"], row["context"])]
    assert authors.remarks == ("the authors' file, and not generated",)
    train = load("fantasy", split="train", folder=tmp_path, limit=200)
    assert len(train) == 200
    assert {text for _, text in texts(train)}.isdisjoint(
        text for _, text in texts(load("fantasy-generated"))
    )


# ---- which file, which rows ----------------------------------------------------------------------------------------


def test_the_first_name_that_is_there_wins(put, tmp_path, monkeypatch):
    put("sst2/dev.shared.tsv.gz", SST2)
    put("SST-2/dev.tsv.gz", "sentence\tlabel\npacked\t1\n")
    monkeypatch.setenv("TEXTVEIL_CORPORA", str(tmp_path))
    assert load("sst2").source == "SST-2/dev.tsv.gz"
    put("SST-2/dev.tsv", "sentence\tlabel\nplain\t1\n")
    assert texts(load("sst2")) == [("plain",)]
    (tmp_path / "other" / "sst2").mkdir(parents=True)
    (tmp_path / "other" / "sst2" / "dev.tsv").write_text("sentence\tlabel\nother\t1\n")
    assert texts(load("sst2", folder=tmp_path / "other")) == [("other",)]


def test_a_limit_takes_the_first_test_rows_and_training_rows_from_everywhere(put, tmp_path):
    rows = "".join(f"row {i}\t{i % 2}\n" for i in range(10))
    put("SST-2/dev.tsv", "sentence\tlabel\n" + rows)
    put("SST-2/train.tsv", "sentence\tlabel\n" + rows)
    assert texts(load("sst2", folder=tmp_path, limit=3)) == [("row 0",), ("row 1",), ("row 2",)]
    train = load("sst2", folder=tmp_path, split="train", limit=3)
    assert texts(train) == [("row 0",), ("row 3",), ("row 6",)]
    assert train.remarks[-1] == "3 of 10 rows, evenly spaced"
    assert len(load("sst2", folder=tmp_path, split="train", limit=99)) == 10
    refused(
        "a limit must be an integer of 1 or more", ConfigError, "sst2", folder=tmp_path, limit=0
    )


def test_a_limit_of_a_sorted_file_takes_rows_from_everywhere(put, tmp_path):
    for subject in ("anatomy", "international_law", "virology", "marketing"):
        put(
            f"mmlu/test/{subject}_test.csv",
            "".join(f"{subject} {i}?,a,b,c,d,A\n" for i in range(3)),
        )
    data = load("mmlu", folder=tmp_path, limit=4)
    assert [example.group for example in data.examples] == [
        "anatomy",
        "international_law",
        "marketing",
        "virology",
    ]
    assert {example.group for example in load("mmlu-legal", folder=tmp_path).examples} == {
        "international_law"
    }
    assert len(load("mmlu", subset="medical", folder=tmp_path, limit=2)) == 2


def test_a_subset_of_groups_parts_what_is_judged(put, tmp_path):
    rows = "".join(f'"{1 + i % 4}","t","d {i}"\n' for i in range(8))
    put("ag_news/test.csv", rows)
    put("ag_news/train.csv", rows)
    assert set(labels(load("ag_news-business", folder=tmp_path))) == {"Business"}
    train = load("ag_news", subset="business", split="train", folder=tmp_path)
    assert len(train) == 8
    assert train.remarks == ("the whole split: business restricts test examples only",)
    refused("did you mean 'business'", UnknownName, "ag_news", subset="busi", folder=tmp_path)
    refused(
        "at most one subset", ConfigError, "ag_news-business", subset="business", folder=tmp_path
    )


# ---- QNLI's training pairs -----------------------------------------------------------------------------------------


def test_training_pairs_come_from_squad_and_hold_nothing_that_is_judged(put, tmp_path):
    rows = [
        {"context": PARAGRAPH, "question": question, "answer": answer}
        for question, answer in QUESTIONS
    ]
    judged = "The old bridge fell in May. A new one of steel was opened by the mayor."
    rows += [{"context": judged, "question": "Who opened the bridge?", "answer": "the mayor"}]
    rows += [{"context": PARAGRAPH, "question": "How often did the mill burn?", "answer": "twice"}]
    put("squad_v11/train_subset.jsonl.gz", "".join(json.dumps(row) + "\n" for row in rows))
    put(
        "QNLI/dev.tsv",
        "index\tquestion\tsentence\tlabel\n0\tWho came?\tThe old bridge fell in May.\tentailment\n"
        "1\tHow often did the mill burn?\tIt rained.\tnot_entailment\n",
    )
    data = load("qnli", split="train", folder=tmp_path)
    assert data.source == "squad_v11/train_subset.jsonl.gz"
    assert data.remarks == ("made of 2 of 4 training questions of SQuAD, each with two sentences",)
    assert Counter(labels(data)) == {"entailment": 2, "not_entailment": 2}
    assert {question for question, _ in texts(data)} == {question for question, _ in QUESTIONS}
    put("QNLI/train.tsv", "index\tquestion\tsentence\tlabel\n0\tReal?\tYes.\tentailment\n")
    assert load("qnli", split="train", folder=tmp_path).source == "QNLI/train.tsv"


# ---- what is wrong -------------------------------------------------------------------------------------------------


def test_names_that_are_none(tmp_path):
    refused("did you mean 'squad'", UnknownName, "sqad", folder=tmp_path)
    refused("does not exist", ConfigError, "sst2", folder=tmp_path / "nowhere")
    refused(
        "split must be one of test, train for sst2",
        ConfigError,
        "sst2",
        split="dev",
        folder=tmp_path,
    )
    refused("has its own fields", ConfigError, "sst2", folder=tmp_path, label="label")


def test_the_environment_names_a_folder_that_is_there(monkeypatch, tmp_path):
    monkeypatch.setenv("TEXTVEIL_CORPORA", str(tmp_path / "nowhere"))
    refused("TEXTVEIL_CORPORA", ConfigError, "sst2")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            f"sentence\tlabel\n{CANARY}\t7\n",
            r"SST-2/dev.tsv: row 1: the field 'label' must hold a label: negative, pos",
        ),
        (f"sentence\tlabel\nfine\t1\n{CANARY}\n", r"SST-2/dev.tsv: line 3 must have 2 columns"),
        (
            f"sentence\tgrade\n{CANARY}\t1\n",
            r"row 1: it lacks the field 'label' and has 2 others; the first line",
        ),
        (f"{CANARY}\tlabel\n{CANARY}\t1\n", r"it lacks the field 'sentence' and has 2 others"),
        ("", "needs at least one"),
        ("sentence\tlabel\n", "needs at least one"),
        (b"\x00\xff\xfe" + CANARY.encode(), "SST-2/dev.tsv: the input must be UTF-8"),
    ],
)
def test_files_that_are_not_what_they_must_be(put, tmp_path, content, says):
    put("SST-2/dev.tsv", content)
    refused(says, (InputError, ConfigError), "sst2", folder=tmp_path)


def test_a_broken_archive(put, tmp_path):
    path = put("SST-2/dev.tsv.gz", SST2 + "it sings\t1\n" * 50)
    path.write_bytes(path.read_bytes()[:-9])
    refused(
        "SST-2/dev.tsv.gz: the .gz file is damaged or cut off", InputError, "sst2", folder=tmp_path
    )
    path.write_bytes(b"no archive, " + CANARY.encode())
    refused("the .gz file is damaged or cut off", InputError, "sst2", folder=tmp_path)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            {"context": PARAGRAPH, "question": "?", "answers": [CANARY]},
            "each answer must occur literally in the text",
        ),
        (
            {"context": PARAGRAPH, "question": "?", "answers": [7]},
            "answers must be a text, a list of texts",
        ),
        ({"context": 7, "question": CANARY, "answers": []}, "the field 'context' must be a text"),
        ({"question": CANARY}, "lacks the field 'context'"),
        ({"context": "\ud800" + CANARY, "question": "?"}, "must be a text of valid Unicode"),
        ({"data": CANARY}, "the field 'data' must be a list"),
        (
            {"data": [{"paragraphs": [{"context": CANARY, "qas": [CANARY]}]}]},
            "must be an object with fields",
        ),
    ],
)
def test_questions_that_are_none(put, tmp_path, row, says):
    put("squad/dev-v1.1.json", json.dumps(row))
    refused(says, InputError, "squad", folder=tmp_path)


def test_a_file_that_is_no_json(put, tmp_path):
    put("squad/dev-v1.1.json", f'{{"data": [{CANARY}')
    refused(
        "squad/dev-v1.1.json: the file must be a JSON object", InputError, "squad", folder=tmp_path
    )


def test_a_huge_line_is_a_row_like_others(put, tmp_path):
    long = "good and long " * 200_000
    put("yelp/test.csv", f'stars,text\n5,"{long}"\n1,short\n')
    data = load("yelp", folder=tmp_path)
    assert [len(text) for (text,) in texts(data)] == [len(long), 5]


# ---- the hub -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(monkeypatch):
    """Puts data sets behind `datasets.load_dataset`, and notes what is asked for."""
    import datasets

    asked = []

    def serve(rows, features=None):
        held = datasets.Dataset.from_list(rows, features=features)

        def load_dataset(*names, split):
            asked.append((*names, split))
            return held

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        return asked

    return serve


HUB = {
    "sst2": ({"sentence": "it sings", "label": 1, "idx": 0}, ("it sings",), "positive"),
    "qnli": (
        {"question": "Who?", "sentence": "He.", "label": 1, "idx": 0},
        ("Who?", "He."),
        "not_entailment",
    ),
    "swag": (
        {
            "startphrase": "He",
            "sent1": "",
            "sent2": "He",
            **{f"ending{i}": str(i) for i in range(4)},
            "label": 3,
        },
        ("He", "0", "1", "2", "3"),
        "D",
    ),
    "mmlu": (
        {"question": "Why?", "subject": "virology", "choices": ["a", "b", "c", "d"], "answer": 2},
        ("Why?", "a", "b", "c", "d"),
        "C",
    ),
    "subjects": (
        {"question": "Why?", "subject": "virology", "choices": ["a", "b", "c", "d"], "answer": 2},
        ("Why?",),
        "virology",
    ),
    "squad": (
        {
            "title": "t",
            "context": PARAGRAPH,
            "question": "?",
            "answers": {"text": ["flour"], "answer_start": [126]},
        },
        ("?", PARAGRAPH),
        None,
    ),
    "sentences": (
        {
            "title": "t",
            "context": PARAGRAPH,
            "question": "?",
            "answers": {"text": ["flour"], "answer_start": [126]},
        },
        ("?", *re.split(r"(?<=[.]) ", PARAGRAPH)),
        "C",
    ),
    "ag_news": ({"text": "Oil up Prices rose.", "label": 2}, ("Oil up Prices rose.",), "Business"),
    "yelp": ({"text": "Warm.\\nLoud.", "label": 3}, ("Warm.\nLoud.",), "4 stars"),
    "wikitext": ({"text": f" {LINE} \n"}, (LINE,), None),
}


@pytest.mark.parametrize("name", HUB)
def test_records_of_the_hub(name, hub, tmp_path):
    record, expected, label = HUB[name]
    asked = hub([record])
    data = load(name, folder=tmp_path)
    assert texts(data) == [expected]
    assert label is None or labels(data) == [label]
    source = SOURCES[name].hub
    assert source is not None
    assert asked == [(source.id, source.configuration, source.splits["test"])]
    assert data.source == " ".join(part for part in asked[0] if part)


def test_every_hub_is_tried():
    assert set(HUB) == {name for name, source in SOURCES.items() if source.hub is not None}


def test_files_of_the_hub_lie_in_the_folder(tmp_path):
    folder = tmp_path / "nyu-mll" / "glue" / "sst2"
    folder.mkdir(parents=True)
    for shard in range(2):
        rows = pa.table({"sentence": [f"shard {shard}"], "label": [shard], "idx": [0]})
        pq.write_table(rows, folder / f"validation-0000{shard}-of-00002.parquet")
    data = load("sst2", folder=tmp_path)
    assert texts(data) == [("shard 0",), ("shard 1",)]
    pq.write_table(
        pa.table({"text": ["Oil"], "label": [2]}), tmp_path / "test-00000-of-00001.parquet"
    )
    (tmp_path / "fancyzhx" / "ag_news" / "data").mkdir(parents=True)
    (tmp_path / "test-00000-of-00001.parquet").rename(
        tmp_path / "fancyzhx" / "ag_news" / "data" / "test-00000-of-00001.parquet"
    )
    assert labels(load("ag_news", folder=tmp_path)) == ["Business"]


def test_a_hub_that_is_not_reached(monkeypatch, tmp_path):
    import datasets

    def fail(*names, split):
        raise ConnectionError(f"no way to {CANARY}")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    before = datasets.are_progress_bars_disabled()
    refused(
        r"swag \(test\) must be in the folder of corpora \(folder, or TEXTVEIL_CORPORA\) as swag/val.csv, .* or come "
        r"from the hub: fetching allenai/swag regular validation failed \(ConnectionError\)",
        InputError,
        "swag",
        folder=tmp_path,
    )
    assert datasets.are_progress_bars_disabled() == before
    refused("no hub has it", InputError, "prompts", folder=tmp_path)


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    refused(r"SST-2/dev.tsv, .* pip install 'textveil-bench\[hub\]'", ConfigError, "sst2")


def test_a_star_in_a_name(tmp_path):
    file = File(name="a/*_test.csv", star="subject")
    assert file.match_star(tmp_path / "a" / "world_religions_test.csv.gz") == "world_religions"


@pytest.mark.parametrize(("count", "limit"), [(10, 3), (10, 10), (7, 5), (3, 9), (0, 2), (5, 0)])
def test_spaced(count, limit):
    found = loading._space_evenly(count, limit)
    assert len(found) == min(count, limit)
    assert found == sorted(set(found))
    assert all(0 <= i < count for i in found)
    gaps = {b - a for a, b in pairwise(found)}
    assert not gaps or max(gaps) - min(gaps) <= 1
