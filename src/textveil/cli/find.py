"""The verb `find`.

In: a prompt. Out: what is private in it and what stays, each with its place and the reason: lines,
JSON, a page.
Not here: what is found (`textveil.protect`), and how it is hidden (`protect`).
"""

from itertools import tee
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import console, progress, texts
from textveil.cli.decorators import verb
from textveil.cli.statement_options import say_unmeasured
from textveil.files import text_streams

if TYPE_CHECKING:
    from textveil.config import Config


@verb(
    'textveil find "Ask Maria Silva (maria@example.org) about Marie Curie"',
    "textveil find letter.txt --html letter.html",
    "textveil find prompts.txt --lines --json",
    'textveil find "Ask Maria Silva about Marie Curie" --level identifiers',
    options=("profile", "level", "dates", "config", "setting"),
    default="prompt",
)
def find(
    config: "Config",
    text: texts.Text = None,
    lines: texts.Lines = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object per text, with the positions of "
            "findings and without their words.",
        ),
    ] = False,
    html: texts.Html = None,
) -> None:
    """Show what is private in a prompt, and what stays and why.

    One line for each finding: its start and end, in characters from 0; its type; its words; and why
    `textveil protect` hides it or lets it stay. With --lines the number of the line comes first.
    Nothing is hidden or sent; the output is as private as the prompt. With --profile strict
    `textveil protect` also draws all other words anew.
    """
    texts.check_files(
        text, None, html=html, whole=not lines, files="`textveil corpus run --profile prompt`"
    )
    from textveil.pipeline import Protector

    with (
        text_streams.open_texts(text, whole=not lines) as inputs,
        text_streams.open_output(None) as sink,
    ):
        prompts, prompts_to_search = tee(inputs)
        protector, unmeasured = Protector.from_config(config), set[str]()
        rows = zip(prompts, protector.find_many(prompts_to_search), strict=True)
        results = progress.count_results(rows) if lines else progress.collect_with_progress(rows)
        if html is not None:
            from textveil.render import findings as shown

            results = list(results)
            texts.write_page(html, shown.render_page(results), private=True)
        hidden_count = stay_count = number = 0
        for number, (prompt, findings) in enumerate(results, 1):
            hidden_here = sum(finding.hidden for finding in findings)
            hidden_count, stay_count = (
                hidden_count + hidden_here,
                stay_count + len(findings) - hidden_here,
            )
            unmeasured.update(protector.unmeasured(prompt))
            if as_json:
                sink.write(
                    text_streams.format_json_line(
                        {"findings": [finding.to_json() for finding in findings]}
                    )
                )
                continue
            for finding in findings:
                place = f"{number}:" * lines + f"{finding.start}-{finding.end}"
                words = prompt[finding.start : finding.end]
                sink.write(text_streams.format_tab_line(place, finding.type, words, finding.reason))
    if not number:
        console.note("textveil: warning: the input is empty, so there is nothing to find")
    elif not as_json:
        console.note(console.wrap(_summarize(hidden_count, stay_count)))
        if unmeasured:
            say_unmeasured(unmeasured, strict=config.protect.unmeasured == "strict")


def _summarize(hidden_count: int, stay_count: int) -> str:
    """Returns a sentence that sums up the findings."""
    if not hidden_count + stay_count:
        return "Nothing was found, and nothing is claimed about the words."
    are = "part is" if hidden_count == 1 else "parts are"
    stays = "1 more finding stays" if stay_count == 1 else f"{stay_count:,} more findings stay"
    sentence = f"{hidden_count:,} {are} hidden by `textveil protect`" + (
        f", {stays}" if stay_count else ""
    )
    return f"{sentence}; nothing is claimed about the other words. Keep this to yourself."
