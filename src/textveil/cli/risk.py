"""The verb `risk`.

In: a text, or several. Out: releases with every private word in the colour of its risk, on a
terminal and as a page; for their owner alone.
Not here: how risk is assessed (`evaluate.risk`), and how it looks (`show`).
"""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import evaluation, progress, shell, texts
from textveil.cli.telling import together
from textveil.cli.verbs import verb
from textveil.config.extras import require

if TYPE_CHECKING:
    from textveil.cli.telling import Telling
    from textveil.config import Config


@verb(
    'textveil risk "Anna owes the bank nine hundred pounds" --html risk.html',
    'textveil risk "Anna owes the bank nine hundred pounds" --mechanism noise --epsilon 70 --prior uniform',
    "textveil risk letter.txt --public news.txt",
)
def risk(
    config: "Config",
    telling: "Telling",
    text: texts.Text = None,
    output: texts.Output = None,
    html: texts.Html = None,
    prior: Annotated[
        str | None,
        typer.Option(
            "--prior",
            metavar="NAME",
            help="The attacker's prior: uniform, unigram or context. The default names most: context where words are "
            "drawn one by one, else unigram.",
            show_default=False,
        ),
    ] = None,
    public: evaluation.Public = None,
    lines: texts.Lines = False,
    session: texts.SessionFile = None,
    as_json: texts.AsJson = False,
    with_original: texts.WithOriginal = False,
) -> None:
    """Privatize, and show how probably an attacker who knows this program names each private word.

    The sentence below says how many he is expected to name, on average over all draws, and what was measured of one who
    has public texts of the same kind.

    The release goes to standard output, the same in the colours of its risk to standard error; with --json each object
    has a field `risk`. Keep that to yourself: it tells which guesses are right. For a few texts.
    """
    texts.check(text, output, session, html)
    from textveil.evaluate.risk import assess, beside, caution, check, sentence

    name = check(config, prior)  # before anything is loaded
    if public is not None:
        require("scipy")
    learned = [] if public is None else evaluation.texts(public)
    from textveil.evaluate.attack import Case
    from textveil.pipeline import Privatizer
    from textveil.session import store
    from textveil.show import risk as shown

    found = texts.few(text, whole=not lines, output=output, what="risk")
    with progress.bars() as report:
        privatizer = Privatizer.from_config(config)
        with nullcontext() if session is None else store.kept(session) as remembered:
            rehearsal = privatizer.rehearse(found, remembered)
        case = Case.after(privatizer, rehearsal, names=True)
        risks = assess(
            case, prior=name, public=learned, rng=evaluation.simulation(config), report=report
        )
    statements = [result.guarantee for result in rehearsal.results]
    if html is not None and risks:
        page = shown.page(risks, together(statements), beside(config, risks))
        texts.write_page(html, page, private=True)
    if risks and (as_json or with_original):
        shell.note("textveil: warning: keep the output to yourself: it says what is private")
    texts.show(
        rehearsal.results,
        output,
        lambda marked: [shown.coloured(each, marked=marked) for each in risks],
        lambda marked: shown.legend(marked=marked),
        as_json=as_json,
        with_original=with_original,
        private=as_json or with_original,
        more=[{"risk": each.to_json()} for each in risks] if as_json else (),
    )
    if risks:
        for said in filter(None, (sentence(risks), beside(config, risks), caution(risks))):
            shell.note(shell.wrap(said))
    telling.say(statements, as_json=as_json)
