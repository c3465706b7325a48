"""Tables for papers: one per data set, as wide as it says, escaped, with the numbers of the rows."""

import json
import re

import pytest

from bench_tests import synthetic
from textveil import cli
from textveil_bench.compare import build_series
from textveil_bench.report.latex import escape, render_latex
from textveil_bench.rows import RowStore, open_store


@pytest.fixture(scope="module")
def all_series():
    return build_series(json.loads(json.dumps(list(synthetic.rows(texts=20)))))


def tables(text):
    return re.findall(
        r"\\begin\{tabular\}\{(\w+)\}\n\s+\\toprule\n(.+?)\\bottomrule", text, re.DOTALL
    )


def test_every_line_has_the_columns_that_the_table_declares(all_series):
    found = tables(render_latex(all_series))
    assert len(found) == 2  # sst2 and squad
    for columns, content in found:
        lines = [line for line in content.splitlines() if "&" in line]
        assert len(lines) > 10
        assert {len(re.split(r"(?<!\\)&", line)) for line in lines} == {len(columns)}
        assert all(line.endswith(r"\\") for line in lines)


def test_the_numbers_are_those_of_the_cells(all_series):
    text = render_latex(all_series)
    series = next(item for item in all_series if item.data.name == "sst2" and len(item.cells) > 2)
    cell = series.cells[1]
    metric = next(metric for metric, score in cell.scores.items() if score.headline)
    interval = cell.estimates[metric].interval
    line = next(
        line
        for line in text.splitlines()
        if f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]" in line
    )
    assert f"& {cell.budget:.4g} &" in line


def test_names_cannot_become_commands():
    assert escape(r"a_b & 50% of {c} \d #1 $x$ ~^") == (
        r"a\_b \& 50\% of \{c\} \textbackslash{}d \#1 \$x\$ \textasciitilde{}\textasciicircum{}"
    )


def test_the_command_writes_tex_by_name_or_by_format(tmp_path, capsys):
    with open_store(tmp_path) as store:
        assert isinstance(store, RowStore)
        for row in synthetic.rows(texts=5, seeds=(1,)):
            store.add_row(row)
    for name, more in (("tables.tex", ()), ("tables.txt", ("--format", "latex"))):
        output = tmp_path / name
        assert cli.main(["bench", "export", str(tmp_path), "--output", str(output), *more]) == 0
        assert r"\toprule" in output.read_text(encoding="utf-8")
    assert cli.main(["bench", "export", str(tmp_path), "--output", str(tmp_path / "a.txt")]) == 2
    assert "--format" in capsys.readouterr().err
    csv = tmp_path / "a.txt"
    arguments = ["bench", "export", str(tmp_path), "--output", str(csv), "--format", "csv"]
    assert cli.main(arguments) == 0
    assert csv.read_text(encoding="utf-8").startswith("key,sweep,")
