"""The verb `groups`.

In: a text, or several. Out: releases with every word in the colour of its group, on a terminal and as a page.
Not here: how words are grouped (`protect`), and how groups look (`show`).
"""

from typing import TYPE_CHECKING

from textveil.cli import texts
from textveil.cli.telling import together
from textveil.cli.verbs import verb
from textveil.errors import ConfigError
from textveil.files import streams

if TYPE_CHECKING:
    from textveil.cli.telling import Telling
    from textveil.config import Config


@verb(
    'textveil groups "Ask Maria Silva (maria@example.org) about the lease" --profile prompt',
    'textveil groups "Anna owes the bank nine hundred pounds" --html groups.html',
)
def groups(
    config: "Config",
    telling: "Telling",
    text: texts.Text = None,
    output: texts.Output = None,
    html: texts.Html = None,
    lines: texts.Lines = False,
    session: texts.SessionFile = None,
    as_json: texts.AsJson = False,
    with_original: texts.WithOriginal = False,
) -> None:
    """Privatize, and show which released word is in which group, and so what it spends.

    The release goes to standard output, the same with its groups in colour to standard error. Groups are no secret:
    they are released with the text. For a few texts.
    """
    texts.check(text, output, session, html)
    if not config.protect.asked:
        raise ConfigError(
            "these options make no groups; take --profile document or prompt, or set protect.detectors"
        )
    from rich.console import Console

    from textveil.cli.demo import shows_styles
    from textveil.pipeline import Privatizer
    from textveil.show import groups as shown

    found = texts.few(text, whole=not lines, output=output, what="groups")
    results = list(texts.released(Privatizer.from_config(config), found, session))
    statements = [result.guarantee for result in results]
    if (
        html is not None and results
    ):  # first, because a reader of standard output may go before its end
        with streams.output(html, option="--html") as page:
            page.write(shown.page([result.released for result in results], together(statements)))
    console = Console(stderr=True, highlight=False)
    with streams.output(output, private=with_original) as sink:
        seen = (
            sink.terminal and console.is_terminal
        )  # one person sees both streams: the coloured text is enough
        for result in results:
            if as_json or with_original or not seen:
                texts.write(sink, result, as_json=as_json, with_original=with_original)
    if results and not as_json:
        marked = shows_styles(console)
        for result in results:
            texts.show(console, shown.coloured(result.released, marked=marked))
        legend = shown.legend([result.released for result in results], marked=marked)
        console.print(legend, soft_wrap=not console.is_terminal)
    telling.say(statements, as_json=as_json)
