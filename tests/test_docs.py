"""Every example of the documents runs, and prints what the page shows.

A ```python fence is executed, in one namespace per page; a ```text fence right behind it is what it prints.
A ```console fence holds `$ textveil ...` commands, each followed by what it prints, if anything is shown.
A fence with title="NAME" is a file in the folder that the page's examples run in.
Three dots stand for anything.
A page that begins with `<!-- slow -->` runs with `-m slow` only: one that measures attacks, audits, or takes long.

`python -m tests.test_docs` runs all pages and writes what they print into them; a line that is only `?` asks for it.
"""

import codecs
import html
import io
import os
import re
import shlex
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from textveil import errors
from textveil.cli import main
from textveil.config import registry

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROSE = [
    *PAGES,
    *(
        ROOT / f"{name}.md"
        for name in ("ARCHITECTURE", "THREAT_MODEL", "CONTRIBUTING", "CHANGELOG")
    ),
]

QUOTED = re.compile(r"<!-- prompts failures.*?<!-- end of prompts -->", re.DOTALL)
"""Texts of others that a page quotes as they are."""

FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"/]+)"')
ASK = "?"
SLOW = "<!-- slow -->\n"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# ---- pages and their examples ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Example:
    """Something that runs, and what it must print; `span` is where that stands on the page."""

    line: int
    source: str
    shown: str | None
    span: tuple[int, int]
    console: bool


@dataclass(kw_only=True)
class Page:
    path: Path
    text: str
    files: dict[str, str] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)


def read(path: Path) -> Page:
    page = Page(path=path, text=path.read_text(encoding="utf-8"))
    fences = list(FENCE.finditer(page.text))
    for fence, after in zip(fences, [*fences, None][1:], strict=True):
        language, _, rest = fence["info"].strip().partition(" ")
        line = page.text.count("\n", 0, fence.start("body")) + 1
        if title := TITLE.search(rest):
            page.files[title[1]] = fence["body"]
        elif language == "console":
            page.examples += commands(fence["body"], line, fence.start("body"))
        elif language == "python":
            shown = (
                after
                and not page.text[fence.end() : after.start()].strip()
                and after["info"].strip() == "text"
            )
            page.examples.append(
                Example(
                    line=line,
                    source=fence["body"],
                    shown=after["body"] if after is not None and shown else None,
                    span=after.span("body")
                    if after is not None and shown
                    else (fence.end(), fence.end()),
                    console=False,
                )
            )
    return page


def commands(body: str, line: int, start: int) -> Iterator[Example]:
    """The commands of a console fence; a backslash continues one on the next line."""
    pattern = re.compile(
        r"^\$ (?P<source>(?:.*\\\n)*.*)\n(?P<shown>(?:(?!\$ ).*\n)*)", re.MULTILINE
    )
    found = list(pattern.finditer(body))
    assert found, f"line {line}: a console fence begins with $"
    assert found[0].start() == 0, f"line {line}: a console fence begins with $"
    for match in found:
        yield Example(
            line=line + body.count("\n", 0, match.start()),
            source=match["source"].replace("\\\n", ""),
            shown=match["shown"] or None,
            span=(start + match.start("shown"), start + match.end("shown")),
            console=True,
        )


# ---- running them ------------------------------------------------------------------------------------------


@contextmanager
def surroundings(page: Page, folder: Path) -> Iterator[None]:
    """An empty folder with the page's files, and no options from outside."""
    for name, content in page.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TEXTVEIL_")}
    before = Path.cwd()
    os.chdir(folder)
    try:
        with patch.dict(
            os.environ,
            clean
            | {
                "COLUMNS": "100",
                "HF_HUB_OFFLINE": "1",
                "TEXTVEIL_PROGRESS": "0",
                "TEXTVEIL_KEYS": str(folder / "keys"),
            },
            clear=True,
        ):
            yield
    finally:
        os.chdir(before)


def run_python(page: Page, example: Example, namespace: dict[str, object]) -> str:
    # the lines before make tracebacks point into the page
    code = compile("\n" * (example.line - 1) + example.source, name_of(page.path), "exec")
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TextveilWarning)
        exec(code, namespace)
    return printed.getvalue()


def run_command(source: str) -> str:
    """What a command prints on both streams, in its order. `printf '...' |` and NAME=VALUE may stand before it."""
    given = b""
    if match := re.fullmatch(r"printf '([^']*)' \| (.*)", source):
        given, source = codecs.escape_decode(match[1].encode())[0], match[2]  # type: ignore[attr-defined]
    words = shlex.split(source)
    settings: dict[str, str] = {}
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        name, _, value = words.pop(0).partition("=")
        settings[name] = value
    assert words[0] == "textveil", f"not a textveil command: {words[0]}"
    printed = io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    environment, entrance = patch.dict(os.environ, settings), patch.object(sys, "stdin", stdin)
    with environment, entrance, redirect_stdout(printed), redirect_stderr(printed):
        code = main(words[1:])
    failed = "textveil: error:" in printed.getvalue()
    expected = {2} if failed else {0, 1} if "--check" in words else {0}
    assert code in expected, f"exit code {code}: {printed.getvalue()}"
    return printed.getvalue()


def run(page: Page, folder: Path) -> Iterator[tuple[Example, str]]:
    namespace: dict[str, object] = {"__name__": "__example__"}
    with surroundings(page, folder):
        for example in page.examples:
            yield (
                example,
                run_command(example.source)
                if example.console
                else run_python(page, example, namespace),
            )


def same(shown: str, printed: str) -> bool:
    parts = map(re.escape, shown.strip().split("..."))
    return re.fullmatch(".*".join(parts), stripped(printed).strip(), re.DOTALL) is not None


def stripped(printed: str) -> str:
    return "".join(line.rstrip() + "\n" for line in printed.splitlines())


# ---- the tests ---------------------------------------------------------------------------------------------


def marked(path: Path) -> object:
    slow = path.read_text(encoding="utf-8").startswith(SLOW)
    return pytest.param(path, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(
    "path", [marked(page) for page in PAGES if read(page).examples], ids=name_of
)
def test_examples(path, tmp_path):
    page = read(path)
    for example, printed in run(page, tmp_path):
        if example.shown is not None:
            where = f"{name_of(path)}, line {example.line}"
            assert same(example.shown, printed), (
                f"{where} shows\n{example.shown}\nand prints\n{printed}"
            )


def test_a_wrong_example_is_found(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(
        "```python\nx = 2\nprint(x + 1)\n```\n\n```text\n4\n```\n\n"
        "```console\n$ textveil list mechanisms\nnothing\n$ textveil explain noise\nnoise\n...\n```\n",
        encoding="utf-8",
    )
    page = read(path)
    assert len(page.examples) == 3
    with patch(f"{__name__}.ROOT", tmp_path):
        found = [same(example.shown or "", printed) for example, printed in run(page, tmp_path)]
    assert found == [False, False, True]


def test_an_example_that_raises_is_found(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("```python\nraise KeyError\n```\n", encoding="utf-8")
    with patch(f"{__name__}.ROOT", tmp_path), pytest.raises(KeyError):
        list(run(read(path), tmp_path))


def test_examples_that_draw_words_are_seeded():
    for path in PAGES:
        for example in read(path).examples:
            if (
                example.console
                and example.shown
                and re.search(
                    r"textveil (protect|privatize|groups|risk|attack|measure|demo)", example.source
                )
            ):
                drawn = not re.search(
                    r"stencil|placeholder|mask-and-fill|textveil protect|profile prompt",
                    example.source,
                )
                repeats = "--seed" in example.source or not drawn or example.shown == "...\n"
                assert repeats or "textveil: error:" in example.shown, (
                    f"{name_of(path)}, line {example.line}: no --seed"
                )


BASELINES = {"mahalanobis", "vickrey", "tem", "1-diffractor", "dp-mlm"}
"""Mechanisms of the field that share a page, with a part for each."""


@pytest.mark.parametrize("name", list(registry.MECHANISMS))
def test_every_mechanism_has_a_page(name):
    """With its formula, statement, caveats, source, an example, and each of its options; santext+ is on santext's."""
    page = "baselines" if name in BASELINES else name.rstrip("+")
    path = ROOT / "docs" / "lookup" / "mechanisms" / f"{page}.md"
    text = path.read_text(encoding="utf-8")
    parts = ("Idea", "Formula", "Statement", "Options", "Caveats", "Source", "Example")
    for heading in (name,) if name in BASELINES else parts:
        assert f"\n## {heading}\n" in text, f"{path.name}: no part {heading}"
    for option in registry.read_options(registry.load("mechanism", name)).keywords.values():
        assert f"`{option.name}`" in text, f"{path.name}: option {option.name} is not explained"
    assert read(path).examples


def site() -> dict[str, Any]:
    """The settings of the site."""

    class Loader(yaml.SafeLoader):
        """mkdocs.yml may hold tags of its own."""

    Loader.add_multi_constructor("", lambda loader, suffix, node: None)
    found: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    return found


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("csv", "do/files.md"),
        ("parquet", "do/files.md"),
        ("docker", "do/containers.md"),
        ("gdpr", "do/comments.md"),
        ("jupyter", "do/integrations/jupyter.md"),
    ],
)
def test_the_search_of_the_site_finds(word, page):
    """It splits pages into words at the separator of mkdocs.yml: `.csv` must hold the word csv."""
    (search,) = (each["search"] for each in site()["plugins"] if "search" in each)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").lower()
    assert word in re.split(search["separator"], text)


def test_the_navigation_holds_every_page():
    nav = site()["nav"]

    def pages(entry):
        if isinstance(entry, str):
            yield entry
        for each in (
            entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ()
        ):
            yield from pages(each)

    listed = list(pages(nav))
    assert sorted(listed) == sorted(
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    )


def test_all_pages_together_can_be_read():
    pages = (ROOT / "docs").rglob("*.md")
    assert sum(len(path.read_text("utf-8").split()) for path in pages) <= 66_500


def test_every_command_has_a_line():
    text = (ROOT / "docs" / "lookup" / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE) == registry.list_names("command")


def test_every_error_is_explained():
    text = (ROOT / "docs" / "lookup" / "errors.md").read_text(encoding="utf-8")
    kinds = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and each.__module__ == errors.__name__
    ]
    assert len(kinds) > 5
    assert [kind.__name__ for kind in kinds if f"`{kind.__name__}`" not in text] == []


def test_every_field_of_the_statement_is_explained():
    import json

    schema = json.loads(
        (files("textveil") / "data" / "guarantee.schema.json").read_text(encoding="utf-8")
    )
    text = (ROOT / "docs" / "lookup" / "json.md").read_text(encoding="utf-8")
    assert [name for name in schema["properties"] if f"`{name}`" not in text] == []
    assert [
        name for name in schema["properties"]["mask"]["items"]["enum"] if f"`{name}`" not in text
    ] == []
    beside = json.loads(
        (files("textveil") / "data" / "release.schema.json").read_text(encoding="utf-8")
    )
    explained = text.partition("\n## Releases\n")[2]
    assert [name for name in beside["properties"] if f"`{name}`" not in explained] == []


def test_architecture_names_every_room_and_is_short():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    rooms = [path.parent.name for path in (ROOT / "src" / "textveil").glob("*/__init__.py")]
    assert len(rooms) > 10
    assert [room for room in rooms if f"`{room}`" not in text] == []


def test_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("path", PROSE, ids=name_of)
def test_prose(path):
    """Links lead somewhere; no em dash, and none of the words that say nothing."""
    text = QUOTED.sub("", path.read_text(encoding="utf-8"))
    outside = FENCE.sub("", text)
    assert "\u2014" not in text
    empty = re.findall(
        r"\b(seamless\w*|robust\w*|powerful|cutting-edge|state-of-the-art|leverag\w+|blazing\w*)\b",
        outside,
        re.I,
    )
    assert not empty
    for target in re.findall(r"\]\(([^)\s]+)\)", outside):
        if not re.match(r"[a-z]+:|#", target):
            assert (path.parent / target.partition("#")[0]).exists(), (
                f"{path.name}: {target} leads nowhere"
            )


def test_the_picture_is_well_formed():
    seen = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.add(tag)
            assert tag not in ("script", "image", "foreignobject"), (
                "the picture loads and runs nothing"
            )

    reader = Tags()
    reader.feed((ROOT / "docs" / "assets" / "data-path.svg").read_text(encoding="utf-8"))
    assert {"svg", "title", "desc", "text"} <= seen


PICTURE = ROOT / "docs" / "assets" / "two-jobs.svg"


def drawn_words(readme: Page) -> dict[str, str]:
    """What stands in the picture of the two jobs, by its place: what the examples of the README take and print."""
    ran: dict[str, tuple[str, list[str]]] = {}
    for example in readme.examples:
        verb, shown = example.source.split()[1], (example.shown or "").splitlines()
        ran.setdefault(verb, (shlex.split(example.source)[2], shown))
    (prompt, sent), (answer, restored), (note, released) = (
        ran[verb] for verb in ("protect", "restore", "privatize")
    )
    texts = {
        "prompt": readme.files[prompt],
        "sent": sent[0],
        "answer": answer,
        "restored": restored[0],
    }
    texts |= {"note": readme.files[note], "released": released[0]}
    found = {"stated": wrapped(released[1], 44, 1)[0]}
    for place, text in texts.items():
        found |= {f"{place}-{number}": line for number, line in enumerate(wrapped(text, 32, 2), 1)}
    return found


def wrapped(text: str, width: int, lines: int) -> list[str]:
    """The beginning of a text in some lines."""
    return textwrap.wrap(
        text, width, max_lines=lines, placeholder=" \u2026", break_on_hyphens=False
    )


def redrawn(picture: str, words: dict[str, str]) -> str:
    """The picture with these words in their places."""
    return re.sub(
        r'( id="([a-z]+(?:-\d)?)">)[^<]*(?=</text>)',
        lambda text: text[1] + html.escape(words[text[2]], False),
        picture,
    )


def test_the_picture_of_the_two_jobs_shows_what_the_product_makes():
    """Its words are those of the README's examples, which run."""
    picture, words = PICTURE.read_text(encoding="utf-8"), drawn_words(read(ROOT / "README.md"))
    assert sorted(re.findall(r' id="([a-z]+(?:-\d)?)">[^<]*</text>', picture)) == sorted(words)
    assert redrawn(picture, words) == picture, "write it with `python -m tests.test_docs README.md`"
    assert redrawn(picture, words | {"released-1": "sent to the hospital in"}) != picture


# ---- writing what the examples print -----------------------------------------------------------------------


def rewrite(path: Path, folder: Path) -> bool:
    """Write what a page's examples print into the page; True if that changed it."""
    page = read(path)
    pieces: list[str] = []
    position = 0
    for example, printed in run(page, folder):
        if example.shown is None or (example.shown.strip() != ASK and same(example.shown, printed)):
            continue
        if example.shown.strip() != ASK and "..." in example.shown:
            print(
                f"{name_of(path)}, line {example.line}: has dots and differs; edit it by hand:\n{printed}"
            )
            continue
        pieces += [page.text[position : example.span[0]], stripped(printed)]
        position = example.span[1]
    if pieces:
        path.write_text("".join(pieces) + page.text[position:], encoding="utf-8")
    return bool(pieces)


if __name__ == "__main__":
    import tempfile

    wanted = sys.argv[1:]
    for chosen in PAGES:
        if not wanted or name_of(chosen) in wanted:
            with tempfile.TemporaryDirectory() as scratch:
                print(
                    name_of(chosen),
                    "written" if rewrite(chosen, Path(scratch)) else "unchanged",
                    flush=True,
                )
    picture = redrawn(PICTURE.read_text(encoding="utf-8"), drawn_words(read(ROOT / "README.md")))
    PICTURE.write_text(picture, encoding="utf-8")
