"""Originals in strings: what is restored parses and says what stood in the text; what came in goes back as it was."""

import ast
import json
import random
import re
import shlex
from itertools import pairwise, repeat

import pytest
import yaml

from textveil.session.placeholders import Original
from textveil.session.quoting import PROSE_KIND, UNCLEAR_KIND, QuoteScanner
from textveil.session.state import Session

ORIGINALS = (
    *(
        "Maria Silva",
        "O'Brien",
        'say "hi"',
        "C:\\new\\table",
        "back\\",
        "a\nb",
        "tab\there",
        "pa$$word ${x} $(y)",
        "`tick`",
    ),
    *(
        "a: b",
        "a #b",
        "{x} }{",
        "ends:",
        "- dash",
        "René",
        "日本",
        "\\u00e9",
        'it\'s "both" `of` \\ them',
        '"""',
        "'''",
    ),
    *(
        "%d {0} <b>&amp;",
        "*star",
        "!bang",
        "[1, 2",
        "x'''y\"\"\"z\\",
        "\\",
        '"',
        "'",
        "''",
        "#hash",
        "; rm -rf (x) | y",
    ),
)


def parsed_javascript(text):
    """The value of one literal of JavaScript, by JSON."""
    made, inner, at = "", text[1:-1], 0
    while at < len(inner):
        step = 2 if inner[at] == "\\" else 1
        piece = inner[at : at + step]
        assert piece != text[0]
        assert piece != "\n" or text[0] == "`"
        assert not (text[0] == "`" and inner[at : at + 2] == "${")
        made += json.loads(f'"{piece}"') if step == 2 and piece[1] in 'nrtbf"\\/' else piece[-1]
        at += step
    return made


def parsed_python(text):
    return ast.literal_eval(ast.unparse(ast.parse(text.split("=", 1)[1].strip()).body[0].value))


def parsed_f_string(text):
    """What an f-string says where x is @."""
    return eval(text.split("=", 1)[1], {"x": "@"})


def parsed_shell(text):
    r"""Words of a shell; that `\$` is one character, shlex does not know."""
    return [re.sub(r"\\([$`])", r"\1", word) for word in shlex.split(text)]


def inside(parse, before, after=""):
    return lambda text: parse(text.removeprefix(before).removesuffix(after))


PLACES = [  # the text before an original, the text behind, what reads it, what it then gives around the original
    ('{"a": "x ', ' y"}', lambda text: json.loads(text)["a"], "x ", " y"),
    ('{\n  "b": 1,\n  "a": "', '"\n}', lambda text: json.loads(text)["a"], "", ""),
    ('["x", "', '"]', lambda text: json.loads(text)[1], "", ""),
    (
        'Here:\n\n```json\n{"a": "',
        '"}\n```\nDone.',
        lambda text: json.loads(text[14:-10])["a"],
        "",
        "",
    ),
    ('{"a": "{\\"b\\": \\"', '\\"}"}', lambda text: json.loads(json.loads(text)["a"])["b"], "", ""),
    (
        "it's\n```python\nname = '",
        "'\n```",
        inside(parsed_python, "it's\n```python\n", "\n```"),
        "",
        "",
    ),
    ('```py\nname = "x ', ' y"\n```', inside(parsed_python, "```py\n", "\n```"), "x ", " y"),
    (
        '```python\nname = """x\n',
        '"""\n```',
        inside(parsed_python, "```python\n", "\n```"),
        "x\n",
        "",
    ),
    ("```python\nname = '''", "'''\n```", inside(parsed_python, "```python\n", "\n```"), "", ""),
    ('```python\nname = r"', '"\n```', inside(parsed_python, "```python\n", "\n```"), "", ""),
    ("~~~python\nname = r'x", "y'\n~~~", inside(parsed_python, "~~~python\n", "\n~~~"), "x", "y"),
    (
        '```python\nname = f"{x} ',
        ' {x}"\n```',
        inside(parsed_f_string, "```python\n", "\n```"),
        "@ ",
        " @",
    ),
    (
        "```python\nname = f'''{x}",
        "'''\n```",
        inside(parsed_f_string, "```python\n", "\n```"),
        "@",
        "",
    ),
    ('name = "', '"', parsed_python, "", ""),
    ("# don't\nprint(\"", '")', lambda text: ast.parse(text).body[0].value.args[0].value, "", ""),
    (
        '```js\nconst a = "',
        '"\n```',
        inside(parsed_javascript, "```js\nconst a = ", "\n```"),
        "",
        "",
    ),
    (
        "```ts\n// don't\nconst a = '",
        "'\n```",
        inside(parsed_javascript, "```ts\n// don't\nconst a = ", "\n```"),
        "",
        "",
    ),
    (
        "```js\nconst a = `x",
        "y`\n```",
        inside(parsed_javascript, "```js\nconst a = ", "\n```"),
        "x",
        "y",
    ),
    ("```bash\necho '", "'\n```", lambda text: shlex.split(text[8:-4])[1], "", ""),
    ('```sh\necho "x ', ' y"\n```', lambda text: parsed_shell(text[6:-4])[1], "x ", " y"),
    ('export A="', '"', lambda text: parsed_shell(text)[1], "A=", ""),
    ('```yaml\na: "', '"\nb: 1\n```', lambda text: yaml.safe_load(text[8:-4])["a"], "", ""),
    (
        "```yaml\nb:\n  - a: '",
        "'\n```",
        lambda text: yaml.safe_load(text[8:-4])["b"][0]["a"],
        "",
        "",
    ),
    ("```yaml\na: ", "\nb: 1\n```", lambda text: yaml.safe_load(text[8:-4])["a"], "", ""),
    ("```yaml\na:\n- ", "\n```", lambda text: yaml.safe_load(text[8:-4])["a"][0], "", ""),
    ("```yaml\na: [1, ", ", 2]\n```", lambda text: yaml.safe_load(text[8:-4])["a"][1], "", ""),
    (
        "```yaml\na: |\n  it's\n  ",
        "\n  b\n```",
        lambda text: yaml.safe_load(text[8:-4])["a"],
        "it's\n",
        "\nb",
    ),
    ("name: ", "\nage: 3", lambda text: yaml.safe_load(text)["name"], "", ""),
]


def knows(original, *kinds):
    """A session that met one value at places of these kinds."""
    session = Session()
    with session.noting() as notes:
        assert notes.assign_placeholder("PERSON", original) == "<PERSON_1>"
        notes.add_places([(original, kind) for kind in kinds])
    return session


def noted(session, template, written):
    """The release of a template with values in the places of @, noted by hand, which is quicker than to find them."""
    hidden, sent = [], ""
    with session.noting() as notes:
        for part in re.split("(@)", template):
            if part == "@":
                hidden.append(Original("PERSON", next(written)))
                sent += notes.assign_placeholders(hidden)[-1]
            else:
                sent += part
        notes.add_release(sent, hidden)
    return sent


def pieces(session, text, cuts, **options):
    restorer = session.restorer(**options)
    made = [restorer.feed(text[start:end]) for start, end in pairwise([0, *cuts, len(text)])]
    return "".join([*made, restorer.close()])


def test_what_is_restored_parses_and_says_the_original():
    draw = random.Random(4)
    wrong = []
    for before, behind, parse, start, end in PLACES:
        for original in ORIGINALS:
            session = knows(original, PROSE_KIND)
            answer = f"{before}<PERSON_1>{behind}"
            made = session.restore(answer)
            try:
                said = parse(made)
            except Exception as error:  # what a parser says differs
                said = error
            if said != f"{start}{original}{end}":
                wrong.append((before, original, made, said))
            cuts = (
                range(1, len(answer))
                if draw.random() < 0.1
                else sorted(draw.choices(range(len(answer) + 1), k=3))
            )
            assert pieces(session, answer, cuts) == made
    assert wrong == []


# ---- where a place is -----------------------------------------------------------------------------------------------

NO_STRINGS = (
    *(
        "don't ",
        "It's Maria's 'own' ",
        "He said: don't \"",
        "the '90s ",
        "rock 'n' roll and ",
        "[note] it's ",
        "{x} don't ",
    ),
    *(
        "# it's\n\n- don't ",
        "> it's '",
        "1. don't (",
        "Dear all: it's ",
        "[x](y 'z') ",
        "5' 3\" tall, ",
        "`it's` ",
    ),
    *(
        "```\nit's ",
        "```text\nit's '",
        '```rust\nuse x; "',
        "```json\n{}\n```\nit's \"",
        '["a"] is "',
        "```py x``` it's ",
    ),
    *(
        "```python\n# don't ",
        "```js\n// don't\n/* it's ",
        "```sh\n# it's ",
        "```sh\ncat << EOF\nit's ",
        "```yaml\n# it's ",
    ),
    *(
        "```yaml\na: b # it's ",
        "```python\nf'{x[",
        "l'été, d'",
        "if it's not \"",
        "find Maria's \"",
        "Make sure it's '",
    ),
)


def test_prose_opens_no_string():
    session = knows('say "hi"', PROSE_KIND)
    for text in NO_STRINGS:
        quoting = QuoteScanner()
        quoting.feed(text)
        assert quoting.find_place().kind in (PROSE_KIND, UNCLEAR_KIND), text
        assert session.restore(f"{text}<PERSON_1>'s") == f'{text}say "hi"\'s'


def test_the_cuts_of_an_answer_change_nothing():
    draw = random.Random(8)
    parts = [
        *(
            "```",
            "~~~",
            "```json",
            "```python",
            "```js",
            "```sh",
            "```yaml",
            "\n",
            "\n",
            "\n",
            "  ",
            "- ",
            "12\t",
            "---",
        ),
        *(
            '"',
            "'",
            "`",
            '"""',
            "\\",
            "{",
            "}",
            "[",
            "]",
            "(",
            ")",
            "${",
            "$(",
            ": ",
            "#",
            "//",
            "/*",
            "*/",
            "/",
            ",",
        ),
        *(
            "name",
            "f",
            "r",
            "=",
            "const x = ",
            "print(",
            "export A=",
            "|",
            "<<EOF",
            "EOF",
            "don't ",
            "x",
            "1",
            "\ufeff",
        ),
        *('"a": "', "'a': '", '\\"', "\\u00", "e9"),
    ]
    for _ in range(1000):
        text = "".join(draw.choices(parts, k=draw.randint(1, 14)))
        whole, cut = QuoteScanner(), QuoteScanner()
        for char in text:
            cut.feed(char)
            cut.copy().feed("x'\"\n")
            cut.find_place()
        whole.feed(text)
        assert whole.find_place() == cut.find_place(), text


# ---- the way back ----------------------------------------------------------------------------------------------------

ESCAPED = r"Ren\u00e9 \"R\""


@pytest.mark.parametrize(
    ("came", "answer", "restored"),
    [
        ('{"name": "@"}', 'Dear <PERSON_1>, it\'s "<PERSON_1>"', 'Dear René "R", it\'s "René "R""'),
        ('{"name": "@"}', '{"to": "<PERSON_1>"}', r'{"to": "Ren\u00e9 \"R\""}'),
        ('{"name": "@"}', "```python\nx = '<PERSON_1>'", "```python\nx = 'Ren\\u00e9 \\\"R\\\"'"),
        ('{"name": "@"}', "```python\nx = r'<PERSON_1>'", "```python\nx = r'René \"R\"'"),
        ('```py\nx = "@"\n```', "<PERSON_1>", 'René "R"'),
        ("it is @.", "<PERSON_1>", r"Ren\u00e9 \"R\""),
        ("it is @.", '{"to": "<PERSON_1>"}', r'{"to": "Ren\\u00e9 \\\"R\\\""}'),
    ],
)
def test_originals_that_came_from_an_escape(came, answer, restored):
    session = Session()
    sent = noted(session, came, repeat(ESCAPED))
    assert sent == came.replace("@", "<PERSON_1>")
    for known in (session, Session.from_json(session.to_json())):
        assert known.restore(sent) == came.replace("@", ESCAPED)
        assert known.restore(answer) == pieces(known, answer, range(1, len(answer))) == restored


FILES = (
    '{\n  "name": "@",\n  "tags": ["x", "@"]\n}\n',
    '[{"a": {"b": "@"}}, "@ and more"]',
    "def f():\n    # it's @\n    name = '@'\n    return \"x @\" + '''y\n@'''\n",
    "services:\n  web:\n    owner: \"@\"\n    note: @ x\n    other: '@'\n",
    "const a = `@`;\n// it's @\nconst b = '@';\n",
    "export A=\"@\"\necho '@' @\n",
    '     1\t{\n     2\t  "name": "@"\n     3\t}\n',
    "it's \"@\" and don't @ [x](y) `@`\n> @\n",
)
FENCES = ("", "json", "python", "js", "sh", "yaml", "diff")
WRITTEN: tuple[str, ...] = (
    r"Ren\u00e9 \"R\"",
    "O'Brien",
    'O"Brien',
    r"O\'Brien",
    r"O\"Brien",
    "C:\\new\\x",
    r"C:\\new\\x",
    r"a\nb",
)
WRITTEN += ("pa$$ `w`", "{{x}", 'say "hi"', "l''x")


@pytest.mark.slow
def test_every_byte_of_every_format_comes_back():
    """Whether a value fits its place or not, also where it stood in several formats of one session."""
    draw, hidden = random.Random(2), 0
    texts = [
        *FILES,
        *(f"See:\n\n```{fence}\n{file}```\nDone, @." for file in FILES for fence in FENCES),
    ]
    for first in texts:
        for written in draw.sample(WRITTEN, 3):
            session = Session()
            for text in (first, draw.choice(texts)):
                sent = noted(session, text, repeat(written))
                hidden += sent != text
                cuts = sorted(draw.choices(range(len(sent) + 1), k=3))
                assert (
                    session.restore(sent)
                    == pieces(session, sent, cuts)
                    == text.replace("@", written)
                )
    assert hidden > 300


PARTS = (
    *"@" * 20,
    *"\"'`{}[]()$\\:#/|,",
    "\n",
    "\n",
    " ",
    "x",
    "f",
    "r",
    '"""',
    "```",
    "```json\n",
    "```py\n",
)
PARTS += (
    "```sh\n",
    "```js\n",
    "```yaml\n",
    '{"a": "',
    "'a': '",
    "x = ",
    "a: ",
    "- ",
    "${",
    "//",
    "<<E\n",
    "\ufeff",
    "&lt;",
)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_byte_of_random_texts_comes_back(count):
    draw = random.Random(count)
    for _ in range(count):
        template = "".join(draw.choices(PARTS, k=draw.randint(2, 12)))
        template = re.sub(r"\\+@", "@", template)  # an answer may have `\<` for <
        written = draw.choices(WRITTEN, k=template.count("@"))
        session = Session()
        sent = noted(session, template, iter(written))
        expected = "".join(
            part + value for part, value in zip(template.split("@"), (*written, ""), strict=False)
        )
        assert session.restore(sent) == expected, sent


EDITS = (  # a file, a piece of it that a tool names, and what comes in its place
    ('{\n  "name": "@",\n  "age": 3\n}\n', '  "name": "@",', '  "name": "@",\n  "nick": "@",'),
    ('{\n  "name": "@",\n  "age": 3\n}\n', "@", "@ x"),
    ('{"a": {"name": "@"}}', '{"name": "@"}', '{"name": "x @"}'),
    ('def f():\n    name = "@"\n    return 1\n', '    name = "@"', '    nick = "@"'),
    ('def f():\n    name = "@"\n    return 1\n', 'me = "@"\n    return', 'me = "@"\n    yield'),
    ('owner:\n  name: "@"\n  age: 3\n', '  name: "@"', '  nick: "@"'),
    ("owner:\n  name: @\n  age: 3\n", "name: @\n", "nick: @\n"),
    ("Write to @ now.\n", "to @", "for @"),
)


@pytest.mark.parametrize("escape", ["json", "none"])
def test_edits_of_files_match_their_bytes(escape):
    """In arguments of tools an original stands as it stood in the file that came in."""
    for file, old, new in EDITS:
        for written in (ESCAPED, r"O\"Brien", "O'Brien", r"C:\\new\\x", r"a\nb"):
            session, content = Session(), file.replace("@", written)
            assert noted(session, file, repeat(written)) == file.replace("@", "<PERSON_1>")
            asked = {
                "path": "/x.json",
                "old": old.replace("@", "<PERSON_1>"),
                "new": new.replace("@", "<PERSON_1>"),
            }
            if escape == "json":
                sent = json.dumps(asked)
                whole = session.restore(sent, escape="json")
                assert pieces(session, sent, range(1, len(sent)), escape="json") == whole
                made = json.loads(whole)
            else:
                made = {name: pieces(session, each, [], exact=True) for name, each in asked.items()}
            assert (made["old"], made["new"]) == (
                old.replace("@", written),
                new.replace("@", written),
            )
            assert made["old"] in content


def test_a_file_that_a_tool_writes_is_whole():
    """The text in an argument has strings of its own."""
    original = 'say "hi" \\ '
    session = knows(original, PROSE_KIND)
    for content, parse in (
        ('{"a": "<PERSON_1>"}', lambda text: json.loads(text)["a"]),
        ('name = "<PERSON_1>"', parsed_python),
    ):
        made = session.restore(json.dumps({"path": "x", "content": content}), escape="json")
        assert parse(json.loads(made)["content"]) == original


def test_a_session_of_before_is_read():
    session = knows('say "hi"', "json ")
    kept = json.loads(session.to_json())
    assert kept.pop("stood") == {'say "hi"': ["json "]}
    before = Session.from_json(json.dumps({**kept, "version": 5}))
    assert before.restore('{"a": "<PERSON_1>"}') == r'{"a": "say \"hi\""}'
