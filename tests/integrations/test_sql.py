"""Functions of SQL engines: rows stand alone, each draw is counted, and no error shows a text."""

import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra `duckdb` is not installed")
pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
import duckdb
import pandas
from tests.test_docs import read

from textveil import Privatizer, Protector, Session
from textveil.errors import ConfigError, InputError, MissingExtra, UnknownName
from textveil.integrations import sql
from textveil.integrations.duckdb import register
from textveil.integrations.releases import merge_statements
from textveil.integrations.sql import ColumnFunctions

CANARY = "zyxqorvian@example.org"
PAGE = Path(__file__).parents[2] / "docs" / "do" / "integrations" / "sql.md"


class Breaks:
    name = "breaks"

    def find(self, texts):
        raise RuntimeError(CANARY)


@pytest.fixture(scope="module")
def guard():
    return Protector(protect={"detectors": ["patterns"]})


@pytest.fixture(scope="module")
def noisy(small_table):
    return Privatizer("noise", table=small_table, eta=20.0)


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        opened.execute("create table letters (id int, text varchar)")
        text = "case when i % 5 = 0 then null else 'write to a' || i % 3 || '@b.example' end"
        opened.execute(f"insert into letters select i, {text} from range(2500) numbers(i)")
        yield opened


def ask(connection, query):
    return connection.sql(query).fetchall()


def test_a_missing_library_names_the_extra_of_the_page(connection, guard, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"textveil\[duckdb\]"):
        register(connection, guard)


def test_rows_stand_alone_and_null_stays_null(connection, guard):
    register(connection, guard)
    found = ask(connection, "select text is null, textveil_protect(text) from letters order by id")
    assert len(found) == 2500
    assert set(found) == {(True, None), (False, "write to <EMAIL_1>")}
    assert ask(connection, "select textveil_protect(null), textveil_protect('')") == [(None, "")]


def test_a_session_gives_equal_values_equal_placeholders_and_restores(connection, guard):
    session = Session()
    register(connection, guard, session=session)
    connection.execute("set threads = 4")
    connection.execute(
        "create table kept as select id, textveil_protect(text) as text from letters"
    )
    assert len(ask(connection, "select distinct text from kept where text is not null")) == 3
    restored = "select count(*) from kept join letters using (id) where textveil_restore(kept.text)"
    assert ask(connection, f"{restored} is distinct from letters.text") == [(0,)]


def test_every_draw_is_counted(connection, noisy, small_table):
    functions = register(connection, privatizer=noisy)
    assert ask(connection, "select textveil_statement()") == [(None,)]
    assert functions.statement is None
    words = small_table.words[:6]
    connection.execute("create table words as select unnest(?) as text", [words])
    once = ask(connection, "select textveil_privatize(text) from words")
    assert len(once) == 6
    expected = merge_statements(noisy.privatize_many(words))
    assert functions.statement is not None
    assert functions.statement.to_json() == expected.to_json()
    ((said,),) = ask(connection, "select textveil_statement()")
    assert said.startswith(expected.headline())
    assert said.endswith(sql.AGAIN_NOTE)
    # The engine may not take one draw for two, and the statement counts each of them.
    twice = ask(connection, "select textveil_privatize(text), textveil_privatize(text) from words")
    constant = ask(connection, f"select textveil_privatize('{words[0]}') from words")
    expected = merge_statements(noisy.privatize_many([*words, *words, *words, *[words[0]] * 6]))
    assert functions.statement.to_json() == expected.to_json()
    wide = Privatizer("noise", table=small_table, eta=0.01)
    with duckdb.connect() as other:
        register(other, privatizer=wide)
        repeated = f"select textveil_privatize('{words[0]}') from range(40)"
        assert len(set(ask(other, repeated))) > 1
    assert len(twice) == len(constant) == 6


def test_what_is_not_given_is_not_there(connection, guard, noisy):
    register(connection, guard)
    for name in ("privatize(text)", "restore(text)", "statement()"):
        with pytest.raises(duckdb.CatalogException):
            connection.sql(f"select textveil_{name} from letters")
    with duckdb.connect() as other:
        with pytest.raises(UnknownName):
            register(other, "no profile")
        for wrong in ({"protector": noisy}, {"privatizer": 3}):
            with pytest.raises(ConfigError):
                register(other, **wrong)
    functions = ColumnFunctions(guard)
    for action in (functions.privatize, functions.restore):
        with pytest.raises(ConfigError, match="where the functions are made"):
            action(["a"])
    assert repr(functions) == "ColumnFunctions()"


def fail(connection):
    with pytest.raises(duckdb.Error) as error:
        ask(connection, f"select textveil_protect(text) from (values ('{CANARY}')) letters(text)")
    return repr(error.value)


def test_errors_show_no_text(connection, monkeypatch):
    register(connection, Protector(protect={"detectors": [Breaks()]}))
    assert CANARY not in fail(connection)
    with duckdb.connect() as other:
        register(other, Protector(protect={"detectors": ["patterns"]}))

        def crash(texts, _):
            raise RuntimeError(texts)

        monkeypatch.setattr(sql, "apply_to_present", crash)
        said = fail(other)
        assert CANARY not in said
        assert "textveil failed (RuntimeError)" in said
        monkeypatch.setattr(sql, "_hide_failures", nullcontext)
        assert CANARY in fail(other)


def test_a_column_holds_texts(guard):
    functions = ColumnFunctions(guard)
    column = pandas.Series(["write to a@b.example", None, float("nan"), pandas.NA])
    assert functions.protect(column) == ["write to <EMAIL_1>", None, None, None]
    with pytest.raises(InputError, match="must hold texts, but holds int"):
        functions.protect(["a", 3])


# ---- recipes of the page -----------------------------------------------------------------------------------


def test_the_recipe_for_snowflake_runs(monkeypatch):
    """Its Python part, with the decorator of the engine replaced by one that does nothing."""
    engine: Any = ModuleType("_snowflake")
    engine.vectorized = lambda input: lambda function: function
    monkeypatch.setitem(sys.modules, "_snowflake", engine)
    _, code, _ = read(PAGE).files["snowflake.sql"].split("$$")
    recipe: dict[str, Any] = {}
    exec(code, recipe)
    batch = pandas.DataFrame({0: ["Ask Maria Silva", None, "a@b.example"]})
    protected = recipe["protect"](batch)
    assert [None if pandas.isna(text) else text for text in protected] == [
        "Ask <PERSON_1>",
        None,
        "<EMAIL_1>",
    ]


@pytest.mark.slow
def test_the_recipe_for_spark_runs(monkeypatch):
    pytest.importorskip("pyspark", reason="make check-engines runs it")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    try:
        exec(read(PAGE).files["databricks.py"], {"spark": spark})
        texts = [(i, "Ask Maria Silva" if i % 3 else None) for i in range(12)]
        spark.createDataFrame(texts, "id int, text string").createOrReplaceTempView("letters")
        rows = spark.sql("select id, textveil_protect(text) as text from letters").collect()
    finally:
        spark.stop()
    shown = {row["id"]: row["text"] for row in rows}
    assert shown == {i: "Ask <PERSON_1>" if i % 3 else None for i in range(12)}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of dbt with the files of the page."""
    pytest.importorskip("dbt.adapters.duckdb", reason="make check-engines runs it")
    places = {"profiles.yml": "", "textveil.sql": "macros", "protected.sql": "models"}
    files = read(PAGE).files
    contents = {tmp_path / place / name: files[name] for name, place in places.items()}
    contents |= {
        tmp_path / "dbt_project.yml": "{name: letters, version: 1.0.0, profile: letters}",
        tmp_path / "seeds" / "letters.csv": "id,text\n1,Ask Maria Silva\n2,\n3,Mail a@b.example\n",
        tmp_path / "models" / "spent.sql": (
            "{{ config(materialized='table') }}\n"
            "select textveil_privatize(text) as text from {{ ref('letters') }}"
        ),
    }
    for path, content in contents.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_dbt_runs_the_macro_and_the_plugin(project):
    from dbt.cli.main import dbtRunner

    ran = dbtRunner().invoke(["build", "--profiles-dir", ".", "--no-send-anonymous-usage-stats"])
    assert ran.success, ran.exception
    with duckdb.connect(str(project / "letters.duckdb")) as connection:
        protected = ask(connection, "select text from protected order by id")
        spent = ask(connection, "select text from spent")
    assert protected == [("Ask <PERSON_1>",), (None,), ("Mail <EMAIL_1>",)]
    assert len(spent) == 3


@pytest.mark.slow
def test_the_plugin_of_dbt_reads_its_configuration(project):
    from textveil.integrations.dbt import Plugin

    with pytest.raises(ConfigError, match="no field profil;"):
        Plugin("textveil", {"profil": "prompt"})
    with pytest.raises(ConfigError, match="store goes with session"):
        Plugin("textveil", {"store": "memory:"})
    plugin = Plugin("textveil", {"store": "memory:", "session": "anna/lease"})
    with duckdb.connect() as connection:
        plugin.configure_connection(connection)
        asked = "select textveil_restore(textveil_protect('Ask Maria Silva'))"
        assert ask(connection, asked) == [("Ask Maria Silva",)]
