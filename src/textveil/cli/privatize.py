"""The verb `privatize`.

In: a text, or several. Out: released texts, with a statement of what is guaranteed.
Not here: what is done to a text (`pipeline`), and whole files (`corpus`).
"""

from typing import TYPE_CHECKING

from textveil.cli import session_options, texts
from textveil.cli.decorators import verb
from textveil.cli.options import BUDGET_OPTIONS

if TYPE_CHECKING:
    from textveil.cli.statement_options import StatementForm
    from textveil.config import Config


@verb(
    'textveil privatize "Anna owes the bank nine hundred pounds"',
    'textveil privatize "Anna owes the bank nine hundred pounds" --mechanism noise --epsilon 60 --explain',
    "printf 'one text\\nanother text\\n' | textveil privatize --lines --profile paper-noise --json",
    'textveil privatize "Anna owes the bank" --mechanism d-chi-stencil -o mechanism.L=4 -o mechanism.eta=100',
    'textveil privatize "Anna owes the bank" --mechanism placeholder --session letter.session',
    'textveil privatize "Anna owes the bank nine hundred pounds" --risk 0.10',
    options=BUDGET_OPTIONS,
    brief=(
        *("output", "lines", "session", "as_json", "statement", "profile", "mechanism", "epsilon"),
        *("risk", "seed", "setting"),
    ),
)
def privatize(
    config: "Config",
    statement_form: "StatementForm",
    text: texts.Text = None,
    output: texts.Output = None,
    lines: texts.Lines = False,
    session: texts.SessionFile = None,
    store: session_options.Store = None,
    as_json: texts.AsJson = False,
    with_original: texts.WithOriginal = False,
) -> None:
    """Privatize a text, and say what is guaranteed.

    Every protected word is drawn anew. A file is one text; files of rows go with `textveil corpus
    run`. The release goes to standard output, and what is guaranteed of it to standard error, in
    one line:
    --statement says it exactly.
    Without --profile, --mechanism or a --config that names one, the profile is `document`.
    """
    texts.check_files(text, output, session, store=store)
    texts.check_public(config, [text])
    results = texts.release(
        config,
        text,
        output=output,
        session=session,
        store=store,
        whole=not lines,
        as_json=as_json,
        with_original=with_original,
    )
    statement_form.say(texts.collect_statements(results), as_json=as_json)
