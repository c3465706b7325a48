"""Formats in which values stand in tests: how a record is written, and how a real parser reads it.

In: records of texts. Out: documents; and of a document all that its parser says of it.
Not here: what is hidden in them (`test_bounds`).
"""

import ast
import csv
import html
import io
import json
import quopri
import sqlite3
import tomllib
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import yaml
from dotenv import dotenv_values

KEYS = ("note", "name", "rest")


class Format(NamedTuple):
    """A format: how rows of texts are written, and how a document is read."""

    write: Callable[[Sequence[Sequence[str]]], str]
    read: Callable[[str], Any]


def records(rows: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    return [dict(zip(KEYS, row, strict=True)) for row in rows]


def notebook(rows: Sequence[Sequence[str]]) -> str:
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "source": [f"print({json.dumps(cell)})\n", f"# {' '.join(cell.split())}"],
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": [cell + "\n"]},
                {
                    "output_type": "display_data",
                    "data": {"text/html": [f"<td>{html.escape(cell)}</td>"]},
                },
            ],
        }
        for row in rows
        for cell in row
    ]
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


def table(**options: Any) -> Format:
    def write(rows: Sequence[Sequence[str]]) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n", **options)
        writer.writerow(["id", *KEYS])
        writer.writerows([n, *row] for n, row in enumerate(rows, 1))
        return out.getvalue()

    return Format(write, lambda text: list(csv.reader(io.StringIO(text), **options)))


def one_line(text: str) -> str:
    return " ".join(text.split())


def rows_of(text: str) -> list[tuple[Any, ...]]:
    base = sqlite3.connect(":memory:")
    base.execute("create table t (note text, name text, rest text)")
    base.executescript(text)
    return base.execute("select * from t").fetchall()


def sql(rows: Sequence[Sequence[str]]) -> str:
    values = ",\n".join(
        "(" + ", ".join("'" + cell.replace("'", "''") + "'" for cell in row) + ")" for row in rows
    )
    return f"INSERT INTO t (note, name, rest) VALUES\n{values};\n"


def xml(rows: Sequence[Sequence[str]]) -> str:
    body = "".join(
        f"<row note={quoteattr(note)}><name>{escape(name)}</name><rest>{escape(rest)}</rest></row>\n"
        for note, name, rest in rows
    )
    return f'<?xml version="1.0"?>\n<rows>\n{body}</rows>\n'


def elements(text: str) -> Any:
    return [
        (each.tag, dict(each.attrib), each.text, each.tail)
        for each in ElementTree.fromstring(text).iter()
    ]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("/", tag))

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def page(text: str) -> list[Any]:
    parser = _Page()
    parser.feed(text)
    parser.close()
    return parser.found


def page_of(rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(
        f'<tr class="r" title={quoteattr(note)}><td><b>{html.escape(name)}</b></td><td>{html.escape(rest)}</td></tr>\n'
        for note, name, rest in rows
    )
    return f"<!doctype html>\n<table>\n{cells}</table>\n"


def card(rows: Sequence[Sequence[str]]) -> str:
    def said(text: str) -> str:
        return (
            text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")
        )

    return "".join(
        "BEGIN:VCARD\r\nVERSION:4.0\r\n"
        f"N:{said(name)};{said(one_line(rest))};;;\r\nFN:{said(name)}\r\nADR;TYPE=home:;;{said(rest)};Oslo;;0155;Norway\r\n"
        f"NOTE:{said(note)}\r\nEND:VCARD\r\n"
        for note, name, rest in rows
    )


def event(rows: Sequence[Sequence[str]]) -> str:
    return "".join(
        "BEGIN:VEVENT\r\nDTSTART:20240105T100000Z\r\n"
        f'ATTENDEE;ROLE=REQ-PARTICIPANT;CN="{one_line(name).replace(chr(34), "")}":mailto:a.b@example.org\r\n'
        f"DESCRIPTION:{note}\r\nEND:VEVENT\r\n".replace("\n\n", "\\n\\n")
        for note, name, rest in ((one_line(a), b, c) for a, b, c in rows)
    )


def lines_of(text: str) -> list[Any]:
    """The content lines of a card: names, parameters, components."""
    found: list[Any] = []
    for line in text.replace("\r\n ", "").split("\r\n"):
        at, quoted = 0, False
        while at < len(line) and (quoted or line[at] != ":"):
            quoted ^= line[at] == '"'
            at += 1
        head, value = line[:at], line[at + 1 :]
        parts: list[str] = []
        last, i = "", 0
        while i < len(value):
            size = 2 if value[i] == "\\" else 1
            if value[i] == ";":
                parts, last = [*parts, last], ""
            else:
                last += value[i : i + size]
            i += size
        found.append([*head.split(";"), *parts, last])
    return found


def literals(text: str) -> list[Any]:
    """The literals of a program."""
    return [each.value for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Constant)]


def scripted(quote: str) -> Callable[[Sequence[Sequence[str]]], str]:
    def write(rows: Sequence[Sequence[str]]) -> str:
        def said(text: str) -> str:
            inner = json.dumps(text, ensure_ascii=False)[1:-1]
            return (
                quote
                + (inner if quote == '"' else inner.replace('\\"', '"').replace("'", "\\'"))
                + quote
            )

        return "".join(f"send({said(a)}, {{to: {said(b)}}}, [{said(c)}]);\n" for a, b, c in rows)

    return write


def tokens_of(text: str) -> list[Any]:
    """Strings of a program of JavaScript, and what stands between them."""
    found, at = [], 0
    while at < len(text):
        if text[at] in "\"'":
            quote, end = text[at], at + 1
            while text[end] != quote:
                end += 2 if text[end] == "\\" else 1
                assert "\n" not in text[at:end], "a string ends in its line"
            inner = text[at + 1 : end].replace("\\'", "'")
            found.append(
                json.loads('"' + (inner if quote == '"' else inner.replace('"', '\\"')) + '"')
            )
            at = end + 1
        else:
            found.append(text[at])
            at += 1
    return found


FORMATS = {
    "JSON": Format(lambda rows: json.dumps(records(rows)), json.loads),
    "JSON, indented, not in ASCII": Format(
        lambda rows: json.dumps(records(rows), indent=2, ensure_ascii=False), json.loads
    ),
    "JSON in JSON": Format(
        lambda rows: json.dumps({"body": json.dumps(records(rows), ensure_ascii=False)}),
        lambda text: json.loads(json.loads(text)["body"]),
    ),
    "JSON with slashes": Format(
        lambda rows: json.dumps(records(rows)).replace("/", "\\/"), json.loads
    ),
    "JSON lines": Format(
        lambda rows: "".join(json.dumps(each) + "\n" for each in records(rows)),
        lambda text: [json.loads(line) for line in text.splitlines()],
    ),
    "notebook": Format(notebook, json.loads),
    "CSV": table(),
    "CSV, all quoted": table(quoting=csv.QUOTE_ALL),
    "CSV, semicolons": table(delimiter=";"),
    "TSV": table(delimiter="\t"),
    "YAML": Format(lambda rows: yaml.safe_dump(records(rows), allow_unicode=True), yaml.safe_load),
    "YAML, quoted": Format(
        lambda rows: yaml.safe_dump(records(rows), default_style='"', width=60), yaml.safe_load
    ),
    "YAML, blocks": Format(
        lambda rows: yaml.safe_dump(records(rows), default_style="|"), yaml.safe_load
    ),
    "TOML": Format(
        lambda rows: "".join(
            "[[row]]\n"
            + "".join(
                f"{key} = {json.dumps(cell, ensure_ascii=False)}\n" for key, cell in row.items()
            )
            for row in records(rows)
        ),
        tomllib.loads,
    ),
    "settings": Format(
        lambda rows: "".join(
            f"{key.upper()}_{n}={json.dumps(cell, ensure_ascii=False)}\n"
            for n, row in enumerate(records(rows))
            for key, cell in row.items()
        ),
        lambda text: dict(dotenv_values(stream=io.StringIO(text))),
    ),
    "SQL": Format(sql, rows_of),
    "SQL, numbers": Format(
        lambda rows: (
            "INSERT INTO t (note, name, rest) VALUES\n"
            + ",\n".join(
                f"(4155552671, 5317250628844522, '{name.replace(chr(39), chr(39) * 2)}')"
                for _, name, _ in rows
            )
            + ";\n"
        ),
        rows_of,
    ),
    "TOML, numbers": Format(
        lambda rows: "".join(
            f"[[row]]\nname = {json.dumps(name, ensure_ascii=False)}\nphone = 4155552671\ncard = 5317250628844522\n"
            "birthday = 1979-05-12\nphones = [4155552671, 4155552672]\n"
            for _, name, _ in rows
        ),
        tomllib.loads,
    ),
    "JSON, numbers": Format(
        lambda rows: json.dumps(
            [
                {"name": name, "phone": 4155552671, "cards": [5317250628844522, 4111111111111111]}
                for _, name, _ in rows
            ]
        ),
        json.loads,
    ),
    "Python, numbers": Format(
        lambda rows: "".join(
            f"add(name={name!r}, phone=4155552671)\ncard = 5317250628844522\nd = {{'phone': 4155552671}}\n"
            "e = {'x': ('Al', 4155552671)}\n"
            for _, name, _ in rows
        ),
        literals,
    ),
    "XML": Format(xml, elements),
    "HTML": Format(page_of, page),
    "vCard": Format(card, lines_of),
    "iCalendar": Format(event, lines_of),
    "Python": Format(
        lambda rows: "".join(f"send({a!r}, to={b!r}, more=[{c!r}])\n" for a, b, c in rows), literals
    ),
    "Python, ASCII": Format(
        lambda rows: "".join(f"send({a!a}, to={b!a}, more=[{c!a}])\n" for a, b, c in rows), literals
    ),
    "JavaScript": Format(scripted('"'), tokens_of),
    "JavaScript, single quotes": Format(scripted("'"), tokens_of),
    "form": Format(
        lambda rows: "\n".join(urlencode(row) for row in records(rows)),
        lambda text: [parse_qsl(line, strict_parsing=True) for line in text.split("\n")],
    ),
    "quoted-printable": Format(
        lambda rows: (
            "Content-Transfer-Encoding: quoted-printable\n\nDear all,\n"
            + quopri.encodestring(
                "\n".join(" / ".join(map(one_line, row)) for row in rows).encode()
            ).decode()
        ),
        lambda text: quopri.decodestring(text.partition("\n\n")[2].encode()).decode(),
    ),
}
"""Formats by name."""
