"""The verb `privatize`.

In: a text, or several. Out: released texts, with a statement of what is guaranteed.
Not here: what is done to a text (`pipeline`), and whole files (`corpus`).
"""

from functools import partial
from typing import TYPE_CHECKING

from textveil.cli import session_options, texts
from textveil.cli.decorators import verb
from textveil.cli.options import RELEASE_OPTIONS
from textveil.errors import ConfigError

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
    "textveil privatize letter.txt --unit document --library news.library --epsilon 4",
    options=RELEASE_OPTIONS,
    brief=(
        *("output", "lines", "session", "as_json", "statement", "profile", "mechanism", "epsilon"),
        *("risk", "unit", "setting"),
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

    Every protected word is drawn anew; with --unit document or sentence a public text of a library
    stands in place of each text or sentence. A file is one text; files of rows go with `textveil corpus
    run`. The release goes to standard output, and what is guaranteed of it to standard error, in
    one line:
    --statement says it exactly.
    Without --profile, --mechanism or a --config that names one, the profile is `document`.
    """
    if config.texts.unit != "word" and session is not None:
        raise ConfigError(
            f"--unit {config.texts.unit} replaces whole texts, of which nothing can be put back: "
            "leave out --session and --store"
        )
    texts.check_files(text, output, session, store=store)
    texts.check_public(config, [text])
    release = partial(
        texts.release,
        text=text,
        output=output,
        whole=not lines,
        as_json=as_json,
        with_original=with_original,
    )
    if config.texts.unit == "word":
        words = partial(texts.privatize_words, config, session=session, store=store)
        statements = texts.collect_statements(release(words))
    else:
        statements = texts.collect_statements(release(partial(texts.privatize_whole, config)))
    statement_form.say(statements, as_json=as_json)
