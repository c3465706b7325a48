"""The verb `find`.

In: a prompt. Out: what is private in it and what stays, each with its place and the reason: lines,
JSON, a page.
Not here: what is found (`textveil.protect`), and how it is hidden (`protect`).
"""

from itertools import tee
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import progress, shell, texts
from textveil.cli.telling import say_unmeasured
from textveil.cli.verbs import verb
from textveil.files import streams

if TYPE_CHECKING:
    from textveil.config import Config


@verb(
    'textveil find "Ask Maria Silva (maria@example.org) about Marie Curie"',
    "textveil find letter.txt --html letter.html",
    "textveil find prompts.txt --lines --json",
    'textveil find "Ask Maria Silva about Marie Curie" --level identifiers',
    options=("profile", "level", "config", "setting"),
    default="prompt",
)
def find(
    config: "Config",
    text: texts.Text = None,
    lines: texts.Lines = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object per text, with places and without words."),
    ] = False,
    html: texts.Html = None,
) -> None:
    """Show what is private in a prompt, and what stays and why.

    One line for each finding: where it stands, in characters from 0; its type; its words; and why `textveil protect`
    hides it or lets it stay. With --lines the number of the line stands before the place. Nothing is hidden or sent;
    what is printed is as private as the prompt. With --profile strict all other words are drawn anew besides.
    """
    texts.check(
        text, None, html=html, whole=not lines, files="`textveil corpus run --profile prompt`"
    )
    from textveil.pipeline import Protector

    with (
        streams.texts(text, whole=not lines) as given,
        streams.output(None) as sink,
    ):
        kept, asked = tee(given)
        guard, unmeasured = Protector.from_config(config), set[str]()
        rows = zip(kept, guard.find_many(asked), strict=True)
        found = progress.counted(rows) if lines else progress.read(rows)
        if html is not None:
            from textveil.show import findings as shown

            found = list(found)
            texts.write_page(html, shown.page(found), private=True)
        hidden = stay = number = 0
        for number, (prompt, own) in enumerate(found, 1):
            here = sum(each.hidden for each in own)
            hidden, stay = hidden + here, stay + len(own) - here
            unmeasured.update(guard.unmeasured(prompt))
            if as_json:
                sink.write(streams.json_line({"findings": [each.to_json() for each in own]}))
                continue
            for each in own:
                place = f"{number}:" * lines + f"{each.start}-{each.end}"
                words = prompt[each.start : each.end]
                sink.write(streams.tab_line(place, each.type, words, each.reason))
    if not number:
        shell.note("textveil: warning: the input is empty, so there is nothing to find")
    elif not as_json:
        shell.note(shell.wrap(_summarize(hidden, stay)))
        if unmeasured:
            say_unmeasured(unmeasured, strict=config.protect.unmeasured == "strict")


def _summarize(hidden: int, stay: int) -> str:
    """Returns a sentence that sums up the findings."""
    if not hidden + stay:
        return "Nothing was found, and nothing is claimed about the words."
    are = "part is" if hidden == 1 else "parts are"
    stays = "1 more that was found stays" if stay == 1 else f"{stay:,} more that were found stay"
    said = f"{hidden:,} {are} hidden by `textveil protect`" + (f", {stays}" if stay else "")
    return f"{said}; of the other words nothing is claimed. Keep this to yourself."
