"""The verb `groups`.

In: a text, or several. Out: releases with every word in the colour of its group, on a terminal and
as a page.
Not here: how words are grouped (`protect`), and how groups look (`render`).
"""

from typing import TYPE_CHECKING

from textveil.cli import texts
from textveil.cli.decorators import verb
from textveil.cli.statement_options import merge_statements
from textveil.errors import ConfigError

if TYPE_CHECKING:
    from textveil.cli.statement_options import StatementForm
    from textveil.config import Config


@verb(
    'textveil groups "Ask Maria Silva (maria@example.org) about the lease" --profile prompt',
    'textveil groups "Anna owes the bank nine hundred pounds" --html groups.html',
)
def groups(
    config: "Config",
    statement_form: "StatementForm",
    text: texts.Text = None,
    output: texts.Output = None,
    html: texts.Html = None,
    lines: texts.Lines = False,
    session: texts.SessionFile = None,
    as_json: texts.AsJson = False,
    with_original: texts.WithOriginal = False,
) -> None:
    """Privatize, and show which released word is in which group, and so what it spends.

    The release goes to standard output, the same with its groups in colour to standard error.
    Groups are not secret: they are released with the text. For a few texts.
    """
    texts.check_files(text, output, session, html)
    if not config.protect.has_groups:
        raise ConfigError(
            "these options make no groups; use --profile document or prompt, or set "
            "protect.detectors"
        )
    from textveil.pipeline import Privatizer
    from textveil.render import groups as shown

    input_texts = texts.read_few(text, whole=not lines, output=output, command="groups")
    results = list(texts.privatize_texts(Privatizer.from_config(config), input_texts, session))
    statements = [result.guarantee for result in results]
    releases = [result.released for result in results]
    if html is not None and results:
        texts.write_page(
            html, shown.render_page(releases, merge_statements(statements)), private=False
        )
    texts.show(
        results,
        output,
        lambda marked: [shown.render_text(release, marked=marked) for release in releases],
        lambda marked: shown.render_legend(releases, marked=marked),
        as_json=as_json,
        with_original=with_original,
        private=with_original,
    )
    statement_form.say(statements, as_json=as_json)
