"""The verb `risk`.

In: a text, or several. Out: releases with every private word in the colour of its risk, on a
terminal and as a page; for their owner alone.
Not here: how risk is assessed (`evaluate.risk`), and how it looks (`render`).
"""

from contextlib import nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from textveil.cli import console, evaluation, progress, texts
from textveil.cli.decorators import verb
from textveil.cli.statement_options import merge_statements
from textveil.config.extras import require

if TYPE_CHECKING:
    from textveil.cli.statement_options import StatementForm
    from textveil.config import Config


@verb(
    'textveil risk "Anna owes the bank nine hundred pounds" --html risk.html',
    'textveil risk "Anna owes the bank nine hundred pounds" --mechanism noise --epsilon 70 --prior uniform',
    "textveil risk letter.txt --public news.txt",
)
def risk(
    config: "Config",
    statement_form: "StatementForm",
    text: texts.Text = None,
    output: texts.Output = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Also write a page for you alone: originals beside releases, the statement as a "
            "bar, and the risk at other budgets.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            "--prior",
            metavar="NAME",
            help="The attacker's prior: uniform, unigram or context. The default names the most "
            "words: context if words are drawn one by one, else unigram.",
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

    The sentence below says how many he is expected to name, over all draws or estimated from a few,
    and what was measured of one who has public texts of the same kind.

    The release goes to standard output, the same in the colours of its risk to standard error; with
    --json each object
    has a field `risk`. Keep that to yourself: it tells which guesses are right. For a few texts.
    """
    texts.check_files(text, output, session, html)
    from textveil.evaluate.curve import choose_factors, compute_curve
    from textveil.evaluate.risk import (
        assess,
        check_risk_options,
        describe_public_attackers,
        describe_risk,
        get_caution,
    )

    name = check_risk_options(config, prior)  # before anything is loaded
    if public is not None:
        require("scipy")
    public_texts = [] if public is None else evaluation.read_texts(public)
    from textveil.evaluate.attack import Case
    from textveil.pipeline import Privatizer
    from textveil.render import risk as shown
    from textveil.session import session_file

    input_texts = texts.read_few(text, whole=not lines, output=output, command="risk")
    with progress.show_bars() as report:
        privatizer = Privatizer.from_config(config)
        with (
            nullcontext()
            if session is None
            else session_file.open_session(session) as opened_session
        ):
            evaluation_run = privatizer.rehearse(input_texts, opened_session)
        case = Case.build(privatizer, evaluation_run, names=True)
        simulation = evaluation.build_simulation_rng(config)
        began = perf_counter()
        risks = assess(case, prior=name, public=public_texts, rng=simulation, report=report)
        factors = choose_factors(perf_counter() - began)
        statements = [result.guarantee for result in evaluation_run.results]
        curve = (
            []
            if html is None or not risks
            else compute_curve(
                config,
                input_texts,
                risks,
                merge_statements(statements),
                prior=name,
                public=public_texts,
                factors=factors,
                rng=simulation,
                report=report,
            )
        )
    public_note = describe_public_attackers(config, risks, public_texts)
    originals = [result.private for result in evaluation_run.results]
    if html is not None and risks:
        page = shown.render_page(
            risks,
            merge_statements(statements),
            public_note,
            originals=originals,
            curve=curve,
            config=config,
        )
        texts.write_page(html, page, private=True)
        console.note("textveil: warning: the page holds the private originals (--html)")
    if risks and (as_json or with_original):
        console.note("textveil: warning: keep the output to yourself: it says what is private")
    texts.show(
        evaluation_run.results,
        output,
        lambda marked: shown.render_for_terminal(
            risks, originals if with_original else (), marked=marked
        ),
        lambda marked: shown.render_legend(marked=marked),
        as_json=as_json,
        with_original=with_original,
        private=as_json or with_original,
        extra_fields=[{"risk": text_risk.to_json()} for text_risk in risks] if as_json else (),
    )
    if risks:
        for line in filter(
            None,
            (describe_risk(risks), public_note, get_caution(risks)),
        ):
            console.note(console.wrap(line))
    statement_form.say(statements, as_json=as_json)
