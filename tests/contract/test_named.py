"""What a refusal names: options, columns, fields and files as they were typed, near ones, and nothing of a content."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textveil import cli
from textveil.config import registry, resolve
from textveil.config.option_sources import parse_assignments, read_marked
from textveil.corpus import RowOptions
from textveil.corpus.plan import find_key_path, start_run
from textveil.corpus.release_key import KeyFile
from textveil.errors import (
    MAX_NAME_CHARACTERS,
    UnknownName,
    find_nearest,
    has_private_form,
    list_names,
    quote,
    quote_file,
    quote_path,
    quote_short,
)
from textveil.files import formats, storage, text_streams
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.policy import Policy
from textveil.gateway.policy.policy_file import read_policy
from textveil.gateway.protocols import load_operations
from textveil.gateway.request.parsed_request import ParsedRequest

CANARY = "Zyxqorvian"
Refusal = Callable[[Path], object]


def columns(folder: Path, name: str, field: str | None) -> object:
    """Read a table of the folder."""
    return list(formats.read_texts(formats.find_source(folder / name, field=field)))


def rows(folder: Path, name: str, **options: Any) -> object:
    """Read a table as a corpus does."""
    source = RowOptions(**options).describe_source(str(folder / name))
    with formats.open_file(source.path) as file:
        return [
            each.get_values(source.columns.texts[0])
            for each in source.format.read_batches(file, source.columns)
        ]


def asked(path: str, body: dict[str, Any]) -> object:
    """Read a request."""
    operation = next(each for each in load_operations() if each.path == path)
    return ParsedRequest(operation, {"model": "m", **body}, Policy(unknown="refuse"), str)


def policy(folder: Path, content: str) -> object:
    """Read a policy."""
    (folder / "gateway.yaml").write_text(f"always: [{CANARY}]\n{content}")
    return read_policy(str(folder / "gateway.yaml"))


def config(folder: Path, content: str) -> object:
    """Read a configuration."""
    (folder / "own.yaml").write_text(content)
    return resolve(file=folder / "own.yaml")


def option(**overrides: Any) -> Refusal:
    """A configuration with options by path, with __ for the dot."""
    return lambda _: resolve(
        overrides={name.replace("__", "."): value for name, value in overrides.items()}
    )


USER = {"role": "user", "content": CANARY}
PART = {"type": "text", "text": CANARY}

REFUSALS: list[tuple[str, str, Refusal]] = [
    # columns and fields of files
    (
        "'customr'",
        "did you mean 'customer'? Columns: id, customer, ",
        lambda at: columns(at, "a.csv", "customr"),
    ),
    (
        "'comment'",
        "a.csv has no column 'comment' (--field)",
        lambda at: columns(at, "a.csv", "comment"),
    ),
    ("'a b'", "'How good is it?'", lambda at: columns(at, "a.csv", "a b")),
    ("'x\\ny'", "Columns: id, customer", lambda at: columns(at, "a.csv", "x\ny")),
    ("id, customer", "the first line has no column text", lambda at: columns(at, "a.csv", None)),
    ("'cust'", "b.tsv has 2 columns 'cust'", lambda at: columns(at, "b.tsv", "cust")),
    ("'customr'", "has no column", lambda at: columns(at, "headless.csv", "customr")),
    (
        "'bdy'",
        "line 1 has no field 'bdy'; did you mean 'body'? Fields: n, body",
        lambda at: columns(at, "c.jsonl", "bdy"),
    ),
    ("'n'", "the field 'n' in line 1 must be a string", lambda at: columns(at, "c.jsonl", "n")),
    (
        "'bdy'",
        "d.parquet has no column 'bdy' (--field); did you mean 'body'?",
        lambda at: columns(at, "d.parquet", "bdy"),
    ),
    ("'n'", "Columns of strings: body, other", lambda at: columns(at, "d.parquet", "n")),
    ("body, other", "2 to choose from", lambda at: columns(at, "d.parquet", None)),
    ("'idd'", "did you mean 'id'?", lambda at: rows(at, "a.csv", id="idd", fields=("customer",))),
    (
        "'sbject'",
        "no column 'sbject'",
        lambda at: rows(at, "a.csv", id="id", subject="sbject", fields=("customer",)),
    ),
    ("'nn'", "no field 'nn'", lambda at: rows(at, "c.jsonl", id="nn", fields=("body",))),
    (
        "'customer'",
        "two name 'customer'",
        lambda at: RowOptions(fields=("customer",), id="customer"),
    ),
    ("'body'", "--id names 'body'", lambda at: rows(at, "c.jsonl", id="body")),
    ("'key'", "a .txt file has no fields, such as 'key'", lambda at: rows(at, "e.txt", id="key")),
    (
        "'body'",
        "a .txt file has no fields, such as 'body'",
        lambda at: columns(at, "e.txt", "body"),
    ),
    # files and folders
    ("notes.docx'", "an input file must end in", lambda at: columns(at, "notes.docx", None)),
    ("notes.parquet.gz'", "unpack", lambda at: columns(at, "notes.parquet.gz", None)),
    ("a.cvs'", "did you mean '", lambda at: storage.find_files([at / "a.csv", at / "a.cvs"])),
    (
        "input 2 of 2",
        "names no file",
        lambda at: storage.find_files([at / "a.csv", at / "nothing"]),
    ),
    (
        "'nosuch://'",
        "fsspec has no storage named",
        lambda at: storage.find_files(["nosuch://bucket/file.csv"]),
    ),
    (
        "missing.txt'",
        "no such file",
        lambda at: text_streams.open_texts(str(at / "missing.txt")).__enter__(),
    ),
    ("is a folder", "the input '", lambda at: text_streams.open_texts(str(at)).__enter__()),
    (
        "/no/out.txt'",
        "--output must name a file in an existing folder",
        lambda at: text_streams.open_output(f"{at}/no/out.txt").__enter__(),
    ),
    (
        "is a folder",
        "--output must be a file, but '",
        lambda at: text_streams.open_output(str(at)).__enter__(),
    ),
    (
        "release.key'",
        "--key-file",
        lambda at: KeyFile(path=at / "release.key", digest="").destroy(),
    ),
    ("'own.key'", "is no longer there", lambda at: KeyFile(path=at / "own.key", digest="").read()),
    (
        "nowhere.yaml'",
        "cannot read the configuration file",
        lambda at: resolve(file=at / "nowhere.yaml"),
    ),
    # options, wherever they stand
    ("'words.oow'", "did you mean 'words.oov'?", option(words__oow="keep")),
    (
        "'mechanism.etta'",
        "did you mean 'mechanism.eta'?",
        option(mechanism="noise", mechanism__etta=5),
    ),
    ("'epsilom'", "did you mean 'epsilon'?", option(epsilom=5)),
    ("'paper-nois'", "did you mean 'paper-noise'?", option(profile="paper-nois")),
    ("'my own profile'", "known: ", option(profile="my own profile")),
    ("'nois'", "did you mean 'noise'?", option(mechanism="nois")),
    ("'minilm-z'", "did you mean 'minilm", option(table="minilm-z")),
    ("words.oov", "must be", option(words__oov="kepp")),
    (
        "'words.OOW'",
        "no option in the environment is named 'words.OOW'; did you mean 'words.oov'?",
        lambda _: resolve(environ={"TEXTVEIL_WORDS__OOW": "keep"}),
    ),
    ("'wrds.oov'", "did you mean 'words.oov'?", lambda at: config(at, "wrds.oov: keep\n")),
    ("'words.oow'", "own.yaml", lambda at: config(at, f"words: {{oow: {CANARY}}}\n")),
    ("'words.oov'", "has the form path=value", lambda _: parse_assignments(["words.oov"])),
    (
        "words.oov",
        "two different values",
        lambda _: parse_assignments(["words.oov=keep", "words.oov=error"]),
    ),
    (
        "'epsilon'",
        "twice, in lines 1 and 2",
        lambda at: (
            (at / "own.yaml").write_text("epsilon: 1\nepsilon: 2\n"),
            read_marked(at / "own.yaml"),
        ),
    ),
    ("--whole", ".csv", lambda _: formats.load_format("csv", whole=True)),
    *[
        (
            f"'nosuch-{kind}'",
            f"no {kind} is named",
            lambda _, kind=kind: registry.find_entry(kind, f"nosuch-{kind}"),
        )
        for kind in registry.REGISTRY_KINDS
    ],
    # policies
    (
        "'kyes'",
        "gateway.yaml:2: no option is named 'kyes'; did you mean 'keys'?",
        lambda at: policy(at, "kyes: a"),
    ),
    (
        "'levels'",
        "rules.0: no option is named",
        lambda at: policy(at, "rules:\n- models: [a]\n  levels: names"),
    ),
    (
        "'nowhere'",
        "no upstream is named 'nowhere'; did you mean 'anywhere'",
        lambda at: policy(at, "upstream: nowhere\nupstreams: {anywhere: {url: 'https://a.b/v1'}}"),
    ),
    (
        "'chat/completion'",
        "did you mean 'chat/completions'?",
        lambda at: policy(at, "rules:\n- {routes: [chat/completion], level: names}"),
    ),
    ("upstreams.far.url", "is missing", lambda at: policy(at, "upstreams: {far: {}}")),
    (
        "'headr'",
        "upstreams.far: ",
        lambda at: policy(at, "upstreams: {far: {url: 'https://a.b/v1', headr: x-api-key}}"),
    ),
    # fields of requests
    (
        "temprature is not",
        "did you mean temperature?",
        lambda _: asked("/chat/completions", {"messages": [USER], "temprature": CANARY}),
    ),
    (
        "messages[0].foo is not",
        "",
        lambda _: asked("/chat/completions", {"messages": [{**USER, "foo": CANARY}]}),
    ),
    (
        "messages[1].content[1].foo is",
        "",
        lambda _: asked(
            "/chat/completions",
            {"messages": [USER, {**USER, "content": [PART, {**PART, "foo": CANARY}]}]},
        ),
    ),
    (
        'stream_options["a b\\n"] is not',
        "",
        lambda _: asked(
            "/chat/completions", {"messages": [USER], "stream_options": {"a b\n": CANARY}}
        ),
    ),
    (
        "stream_options[field 2] is not",
        "",
        lambda _: asked(
            "/chat/completions",
            {
                "messages": [USER],
                "stream_options": {"include_usage": True, "maria.silva@example.org": CANARY},
            },
        ),
    ),
    (
        "[field 3] is not",
        "",
        lambda _: asked("/chat/completions", {"messages": [USER], "5317 2506 2884 4522": CANARY}),
    ),
    (
        "messages[0].content[0].text has the",
        "",
        lambda _: asked(
            "/chat/completions", {"messages": [{**USER, "content": [{"type": "text", "text": 5}]}]}
        ),
    ),
    (
        "max_token is not",
        "did you mean max_tokens?",
        lambda _: asked("/messages", {"messages": [USER], "max_token": 5}),
    ),
    (
        "messages is missing",
        "is it 'mesages'?",
        lambda _: asked("/chat/completions", {"mesages": [USER]}),
    ),
    (
        "tools[0].function.strct is not",
        "did you mean strict?",
        lambda _: asked(
            "/chat/completions",
            {
                "messages": [USER],
                "tools": [{"type": "function", "function": {"name": "a", "strct": CANARY}}],
            },
        ),
    ),
    (
        "metadat is not",
        "did you mean metadata?",
        lambda _: asked("/responses", {"input": CANARY, "metadat": CANARY}),
    ),
]

VERBS: list[tuple[tuple[str, ...], str]] = [
    (("privatise", CANARY), "no command 'privatise'; did you mean privatize?"),
    (("table", "bild"), "no command 'bild'; did you mean build?"),
    (("gateway", "keys", "creat"), "no command 'creat'; did you mean create?"),
    (("session", "forgot"), "no command 'forgot'; did you mean forget?"),
    (("privatize", CANARY, "--epsilom", "5"), "no option '--epsilom'; did you mean --epsilon?"),
    (("protect", CANARY, "--levle", "names"), "no option '--levle'; did you mean --level?"),
    (("corpus", "run", "a.csv", "--subjct", "x"), "no option '--subjct'; did you mean --subject?"),
    (("explain", "nois"), "'nois'; did you mean 'noise'?"),
    (("list", "mechanism"), "'mechanism'; did you mean 'mechanisms'?"),
    (("attack", "nothing.csv", "-o", "names.types=none"), "no such file, 'nothing.csv'"),
    (("protect", f"--{CANARY} met Anna"), "no such option"),
    ((f"{CANARY} met Anna",), "no such command"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("named")
    (made / "a.csv").write_text(f"id,customer,How good is it?\n1,{CANARY},5\n")
    (made / "b.tsv").write_text(f"cust\tcust\n{CANARY}\t1\n")
    (made / "headless.csv").write_text(f"{CANARY},+351 21 123 4567,2\n")
    (made / "c.jsonl").write_text(f'{{"n": 5, "body": "{CANARY}"}}\n')
    pq.write_table(pa.table({"n": [1], "body": [CANARY], "other": [CANARY]}), made / "d.parquet")
    for name in ("e.txt", "notes.docx", "notes.parquet.gz", "release.key"):
        (made / name).write_text(CANARY)
    return made


def fine(said: str) -> None:
    """One line without the canary."""
    assert "\n" not in said.strip()
    assert CANARY.lower() not in said.lower()


def test_refusals_name_what_was_typed_as_a_name_and_no_content(folder: Path) -> None:
    assert len(REFUSALS) + len(VERBS) >= 60
    for name, also, refuse in REFUSALS:
        with pytest.raises((Exception,)) as caught:
            refuse(folder)
        said = caught.value.message if isinstance(caught.value, RequestError) else str(caught.value)
        fine(said.removeprefix(str(folder)))
        assert name in said, (name, said)
        assert also in said, (also, said)


def test_the_command_line_names_what_was_typed_as_a_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, says in VERBS:
        assert cli.main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        fine(err)
        assert says in err, (says, err)


def test_the_output_folder_of_a_run_is_named(folder: Path) -> None:
    place = storage.Storage(str(folder))
    with pytest.raises(
        Exception, match=f"the output folder '{re.escape(str(folder))}' must be empty"
    ):
        start_run(place, resolve(profile="prompt"), {}, find_key_path(place, None), resume=False)


# ---- names in messages -----------------------------------------------------------------------------------------------

PRIVATE = [
    "maria@example.org",
    "mail of maria.silva@firm.example",
    "5317250628844522",
    "5317 2506 2884 4522",
    "078-05-1120",
    "+351 21 123 4567",
    "(020) 7946 0958",
    "DE89 3704 0044 0532 0130 00",
    "GB29NWBK60161331926819",
    "RSSMRA85T10A562S",
    "192.168.100.12",
    "10.20.4.17",
    "fe80::1ff:fe23:4567:890a",
    "00:1B:44:11:3A:B7",
    "AKIAIOSFODNN7EXAMPLE",
    "sk-proj-Ab3dEf6hIj9lMn2pQr5t",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "9f86d081884c7d659a2feaa0c55ad015",
    "eyJhbGciOiJIUzI1NiJ9",
    "４１１１ １１１１ １１１１ １１１１",
    "customer 4111-1111-1111-1111",
]
PLAIN = [
    "customr",
    "How satisfied are you with our service?",
    "comment_id",
    "Customer Name",
    "Straße 2",
    "顧客",
    "имя",
    "2024-01-15",
    "sales_20240115",
    "gpt-4o-2024-08-06",
    "claude-3-5-sonnet-20241022",
    "text-embedding-3-small",
    "q1_2024",
    "ICD10",
    "max_completion_tokens",
    "messages",
    "x-stainless-retry-count",
    "TEXTVEIL_WORDS__OOW",
    "words.oov",
    "santext+",
    "--epsilom",
    "meta-llama/Llama-3.1-70B-Instruct",
    "addressLine2",
    "col_17",
    "v1.2.3",
    "cost (EUR)",
    "@type",
    "$schema",
    "a/b/c.csv",
]


def test_names_that_look_private_are_not_repeated_and_others_are() -> None:
    for name in PRIVATE:
        assert has_private_form(name), name
        assert quote(name) == quote_short(name) == "like that"
        assert (
            quote_path(["metadata", "a", name], {"metadata": {"a": {"b": 1, name: 2}}})
            == "metadata.a[field 2]"
        )
        assert quote_path([name]) == "[field]"
        assert list_names(["a", name]) == "a and 1 more"
        assert name not in str(UnknownName("column", "x", [name]))
        assert find_nearest(name[:-1], [name]) is None
    for name in PLAIN:
        assert not has_private_form(name), name
        assert quote(name) == repr(name)


def test_names_are_on_one_line_and_not_long() -> None:
    assert quote("a\n\x1b[31m\u202eb") == r"'a\n\x1b[31m\u202eb'"
    assert quote("y" * 1000) == repr("y" * (MAX_NAME_CHARACTERS - 3) + "...")
    assert quote_short("the whole text of somebody") == "like that"
    assert quote_file("s3://key:secret@bucket/a.csv?sign=x") == "'s3://bucket/a.csv'"
    assert quote_file("a" * 999 + "/b.csv").endswith("aaa/b.csv'")
    assert len(quote_file("a" * 999)) < 300
    path = quote_path(["x" * 99, 0, 'a"]\n', *["deep"] * 99])
    assert path.startswith(f'["{"x" * 77}..."][0]["a\\"]\\n"].deep.')
    assert path.isascii()
    assert len(path) <= 4 * MAX_NAME_CHARACTERS
