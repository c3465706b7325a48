"""Tables of series in LaTeX, for papers.

In: series of rows. Out: LaTeX, for the packages booktabs and, where a table is long, longtable.
Not here: tables of a page (`tables`), and rows as data (`rows.write_table`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from textveil_bench.compare import Cell, DataSetKey, MetricKey, Series
from textveil_bench.intervals import Interval
from textveil_bench.report.study import Study

SPECIAL_CHARACTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
}

INFINITE = r"$\infty$"

PREAMBLE = "% \\usepackage{booktabs}\n"


def render_latex(all_series: Sequence[Series]) -> str:
    """Renders a table per data set: each series and budget with its headline metrics.

    A metric has its 95% interval over texts and seeds where it is known. Each judge, attack and
    measure has one column, its first headline.

    Args:
        all_series: series of one or several sweeps.
    """
    study = Study(series=tuple(all_series))
    return PREAMBLE + "".join(_render_data_set(study, data) for data in study.data)


def _render_data_set(study: Study, data: DataSetKey) -> str:
    selection = study.select_series(data)
    metrics = _select_metrics(cell for series in selection for cell in series.cells)
    example_count = selection[0].cells[0].row["data"]["examples"]
    titles = ["series", "budget", "local DP", *(metric.title for metric in metrics)]
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{escape(data.name)}, {example_count:,} examples; 95\\% intervals}}",
        f"  \\begin{{tabular}}{{ll{'r' * (1 + len(metrics))}}}",
        r"    \toprule",
        _join(map(escape, titles)),
        r"    \midrule",
        *(line for series in selection for line in _yield_lines(series, metrics)),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n" + "\n".join(lines) + "\n"


def _select_metrics(cells: Iterable[Cell]) -> list[MetricKey]:
    """Selects the first headline of each judge, attack and measure."""
    metrics: dict[str, MetricKey] = {}
    for cell in cells:
        for metric, score in cell.scores.items():
            if score.headline:
                metrics.setdefault(metric.source, metric)
    return list(metrics.values())


def _yield_lines(series: Series, metrics: Sequence[MetricKey]) -> Iterator[str]:
    for i, cell in enumerate(series.cells):
        yield _join(
            [
                escape(series.name) if i == 0 else "",
                _format_value(cell.budget),
                _format_value(cell.row["epsilon"]["ldp"]),
                *(
                    _format_interval(cell.estimates[metric].interval)
                    if metric in cell.estimates
                    else "--"
                    for metric in metrics
                ),
            ]
        )


def _join(cells: Iterable[str]) -> str:
    return "    " + " & ".join(cells) + r" \\"


def _format_interval(interval: Interval) -> str:
    if not interval.low < interval.high:
        return f"{interval.value:.3f}"
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _format_value(value: Any) -> str:
    if value is None:
        return "--"
    if isinstance(value, list | tuple):
        return ", ".join(map(_format_value, value))
    if value == "infinite":
        return INFINITE
    return f"{value:.4g}" if isinstance(value, int | float) else escape(str(value))


def escape(text: str) -> str:
    """Escapes the characters that LaTeX reads as commands."""
    return re.sub(r"[\\~^&%$#_{}]", lambda match: SPECIAL_CHARACTERS[match[0]], text)
