"""What a statement of a corpus says: the same as a page, as Markdown and in the manifest; its counts agree.

Not here: how the parts of a run add up to it (`test_corpus`).
"""

import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt
from tests.corpus.test_corpus import run

from textveil import Privatizer, __version__
from textveil.corpus import CorpusStatement, RowOptions, verify
from textveil.corpus.loss_histogram import LossHistogram, compute_loss
from textveil.corpus.part_worker import _count_words
from textveil.corpus.release import compute_digest
from textveil.errors import InputError
from textveil.files import formats
from textveil.guarantee import condense, summarize
from textveil.render import Sheet

TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "p",
    "pre",
    "svg",
    "rect",
    "i",
} | {*("table", "thead", "tbody", "tr", "th", "td")}
BLOCKS = ("h1", "h2", "p", "th", "td", "pre")


class Page(HTMLParser):
    """A page's blocks of text in their order, its tags, and the widths of its bars."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.blocks, self.widths = set[str](), list[str](), list[float]()
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag in BLOCKS:
            self._inside = True
            self.blocks.append("")
        if tag == "rect":
            self.widths.append(float(dict(attrs)["width"] or 0))

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in BLOCKS

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.blocks[-1] += data


def blocks(page: str) -> list[str]:
    return [each for each in (block.strip() for block in Page(page).blocks) if each]


def data_blocks(found: dict[str, Any]) -> list[str]:
    said = [found["title"], *(each for fact in found["facts"].items() for each in fact)]
    for section in found["sections"]:
        said += [section["heading"], *section["said"]]
        for table in section["tables"]:
            said += [*table["head"], *(cell for row in table["rows"] for cell in row)]
        said += ["\n".join(section["exact"])]
    return [each for each in said if each]


def require_alike(page: str, markdown: str, found: dict[str, Any]) -> list[str]:
    """The blocks of a statement, which must be the same in its three forms."""
    said = blocks(page)
    assert (
        said
        == blocks(MarkdownIt("commonmark").enable("table").render(markdown))
        == data_blocks(found)
    )
    assert Page(page).tags <= TAGS
    return said


def said_by(found: CorpusStatement) -> list[str]:
    sheet = found.build_sheet([("date", "2026-01-31"), ("files", "a_b_.csv (3 rows)")])
    return require_alike(sheet.render_html(), sheet.render_markdown(), sheet.to_json())


def stated(
    texts: list[str],
    *,
    subjects: list[str] | None = None,
    subject: str = "customer",
    **options: Any,
) -> Any:
    """The statement of some texts, each a row, as a run would make it."""
    found = [each.guarantee for each in Privatizer(**options).privatize_many(texts)]
    documents, added = LossHistogram(), LossHistogram()
    documents.add(map(compute_loss, found))
    if subjects is not None:
        sums = dict.fromkeys(subjects, (0, 0))
        for name, each in zip(subjects, map(compute_loss, found), strict=True):
            sums[name] = sums[name][0] + each[0], sums[name][1] + each[1]
        added.add(sums.values())
    return CorpusStatement(
        guarantee=condense(summarize(found)) if found else None,
        documents=documents,
        subjects=None if subjects is None else added,
        subject=None if subjects is None else subject,
    )


@pytest.mark.filterwarnings("ignore::textveil.errors.TextveilWarning")
def test_what_is_said_of_a_person(small_table):
    """With the numbers of the release: small ones, large ones, and none."""
    one, two, three = small_table.words[40:43]
    texts, who = [f"{one} {two}", f"the {three}", one], ["a", "a", "b"]
    options: Any
    large = (
        " That is too large to protect a customer as a whole; what is proved is about single words."
    )
    for options, expected in [
        ({"epsilon": 2}, "Added up over all texts of one customer the bound is 6 (median 2)."),
        (
            {"epsilon": 4},
            f"Added up over all texts of one customer the bound is 12 (median 4).{large}",
        ),
        ({"epsilon": 0}, "Added up over all texts of one customer the bound is 0 (median 0)."),
        (
            {"epsilon": math.inf},
            "Added up over all texts of one customer there is no bound for 2 of 2: some of their words "
            "pass, or have no "
            "bound. That does not protect a customer as a whole.",
        ),
    ]:
        found = stated(texts, subjects=who, mechanism="krr", table=small_table, **options)
        assert found.build_sentences()["person"] == expected
        assert expected in said_by(found)
    half = stated(
        [*texts, "zzyzx"],
        subjects=[*who, "b"],
        mechanism="krr",
        table=small_table,
        epsilon=6,
        words={"oov": "keep"},
    )
    assert half.build_sentences()["person"] == (
        "Added up over all texts of one customer there is no bound for 1 of 2: some of their words "
        "pass, or have no bound. "
        f"By their other words alone the bound is 18 (median 6).{large}"
    )
    names = {
        "customer_id": "customer",
        "CustomerID": "customer",
        "userId": "user",
        "id": "id",
        "employee": "employee",
        "Kundin": "kundin",
        "клиент": "клиент",
        "!?": "subject",
    }
    assert {
        name: stated(
            texts, subjects=who, subject=name, mechanism="placeholder", table=small_table
        ).person
        for name in names
    } == names
    large = stated(
        texts, subjects=who, subject="employee", mechanism="krr", table=small_table, epsilon=9
    )
    assert "to protect an employee as a whole" in large.build_sentences()["person"]
    nobody = stated(texts, mechanism="krr", table=small_table, epsilon=2)
    assert nobody.build_sentences()["person"].startswith(
        "No field names the person a text is about."
    )


@pytest.mark.filterwarnings("ignore::textveil.errors.TextveilWarning")
def test_statements_of_all_kinds_say_the_same_in_all_forms(small_table):
    """And their counts agree, and add up to the bar."""
    one, two = small_table.words[40:42]
    texts = [f"the {one} {two} {one}!", "the", "", f"{two} zzyzx a@b.example"]
    patterns = {"detectors": ["patterns"]}
    options: Any
    for given, options in [
        (texts, {"mechanism": "krr", "epsilon": 2}),
        (texts, {"mechanism": "krr", "epsilon": 2, "words": {"consistent": True}}),
        (texts, {"mechanism": "noise", "epsilon": 60, "seed": 4}),
        (texts, {"mechanism": "stencil"}),
        (texts, {"mechanism": "placeholder"}),
        (texts, {"mechanism": "krr", "epsilon": math.inf}),
        (texts, {"mechanism": "noise", "epsilon": 9, "words": {"oov": "drop"}}),
        (
            texts,
            {"mechanism": "krr", "protect": patterns, "groups": {"budgets": [0, 0, 2, math.inf]}},
        ),
        (["the of"], {"mechanism": "krr", "epsilon": 2}),
        ([""], {"mechanism": "krr", "epsilon": 2}),
        ([one], {"mechanism": "custext", "epsilon": 2}),
        ([], {"mechanism": "krr", "epsilon": 2}),
    ]:
        found = stated(given, table=small_table, **options)
        said = said_by(found)
        assert all(
            re.search(r"inf\b|nan|\b1 (words|texts|documents)\b", each) is None for each in said
        ), said
        if not given:
            assert "The input has no text, so nothing was released." in said
            continue
        counts, page = found.count_words(), Page(found.build_sheet([]).render_html())
        kinds = ("drawn", "names", "figures", "placeholders", "left_out", "replaced", "passed")
        assert counts["protected"] == sum(counts[name] for name in kinds)
        assert counts["all"] == counts["public"] + counts["protected"]
        parts = [
            counts["protected"] - counts["passed"],
            counts["public"] - counts["punctuation"] + counts["passed"],
            0,
        ]
        assert [720 * each / max(1, sum(parts)) for each in parts if sum(parts)] == pytest.approx(
            page.widths, abs=0.1
        )
        assert found.guarantee.explain() in said
        assert found.guarantee.summary() in said


def test_the_statement_of_a_run_says_what_it_is_about(tmp_path):
    """Names of fields that are HTML or Markdown are shown as they are; no text and no name of an input is shown."""
    folder = tmp_path / "Ünïcode <b>"
    folder.mkdir()
    odd, who = "<script>a|b*_c_&amp;[x](y)`\u202e", "Kund_<b>ID"
    header = ",".join(f'"{name}"' for name in ("n", who, "text", odd))
    lines = [
        f'{n},k{n % 2},"the canary owes canary {n}","Straße zwei-{n}, <i>!"' for n in range(1, 4)
    ]
    path = folder / "Müller & <i>.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    done = run(
        path,
        to=tmp_path / "out",
        mechanism="krr",
        epsilon=3,
        subject=who,
        others="copy",
        part_rows=2,
    )
    page, markdown, manifest = (
        (tmp_path / "out" / name).read_text(encoding="utf-8")
        for name in ("statement.html", "statement.md", "manifest.json")
    )
    found = json.loads(manifest)
    said = require_alike(page, markdown, found["statement"])
    text = "\n".join(said)
    assert found["date"] in text
    assert f"textveil {__version__}" in text
    assert "part-00000000.csv (2 rows), part-00000001.csv (1 row)" in text
    shown = odd.replace("\u202e", " ")
    assert (
        f"The fields n, {who} and {shown} are copied unchanged: 18 words, and nothing is claimed for them."
        in text
    )
    assert found["statement"]["words"]["copied"] == 18
    assert "of one kund b the bound is 24 (median 12)" in text
    assert "The rows stand in the order of the input, and each has its n: anyone who has" in text
    assert found["statement"]["rows_keep_order"]
    for secret in ("canary", "Straße", "Müller", "Ünïcode"):
        assert secret not in page + markdown + manifest
    assert done.statement is not None
    assert verify(tmp_path / "out") == []


def test_words_of_copied_fields_are_counted_in_all_formats(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = [
        {"n": 1, "text": "anna", "a": "José d'Or, 3.5 km", "b": 7},
        {"n": 2, "text": "", "a": None, "b": 8},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.csv").write_text(
        'n,text,a,b\n1,anna,"José d\'Or, 3.5 km",7\n2,,,8\n', encoding="utf-8"
    )
    (tmp_path / "c.tsv").write_text(
        "n\ttext\ta\tb\n1\tanna\tJosé d'Or, 3.5 km\t7\n2\t\t\t8\n", encoding="utf-8"
    )
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    found = {}
    for path in sorted(tmp_path.glob("?.*")):
        source = RowOptions(id="n", others="copy").describe_source(str(path))
        with formats.open_file(source.path) as file:
            batches = source.format.read_batches(file, source.columns)
            found[path.name] = _count_words(
                value for batch in batches for value in batch.yield_others()
            )
    assert found == {"a.jsonl": 7, "b.csv": 6, "c.tsv": 6, "d.parquet": 6}  # JSON writes a null


def test_releases_of_other_versions_are_read_or_refused_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("n,text\n1,anna owes\n")
    run(tmp_path / "a.csv", to=tmp_path / "out", mechanism="krr", epsilon=3)
    path = tmp_path / "out" / "manifest.json"

    def rewrite(version: int, without: tuple[str, ...] = ()) -> None:
        found = json.loads(path.read_text())
        found = {name: each for name, each in found.items() if name not in without} | {
            "version": version
        }
        found["statement"] = {
            name: each for name, each in found["statement"].items() if name not in without
        }
        path.write_text(json.dumps(found | {"sha256": compute_digest(found)}))

    rewrite(1, ("date", "title", "facts", "sections"))
    assert verify(tmp_path / "out") == []
    rewrite(3)
    with pytest.raises(
        InputError, match=r"manifest\.json in .* has version 3, and this textveil reads 1 and 2"
    ):
        verify(tmp_path / "out")
    path.write_text(path.read_text().replace('"rows": 1', '"rows": 2'))
    with pytest.raises(InputError, match="is damaged, was changed"):
        verify(tmp_path / "out")


def test_a_form_that_says_less_is_found(small_table):
    """The twin: a sheet whose page leaves out what is exact, as it once did."""
    found = stated([small_table.words[40]], mechanism="krr", table=small_table, epsilon=2)
    sheet: Sheet = found.build_sheet([])
    less = re.sub("<pre>.*</pre>", "", sheet.render_html(), flags=re.DOTALL)
    with pytest.raises(AssertionError):
        require_alike(less, sheet.render_markdown(), sheet.to_json())
