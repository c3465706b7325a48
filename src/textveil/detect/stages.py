"""Stages: one table of steps from texts to sensitive spans.

The table is read and run from top to bottom.

In: the tokens of a batch, the settings of detection. Out: `Detections`.
Not here: what each stage does (`detectors`, `scoring`, `trimming`, `visibility`, `bounds`,
`overlaps`, `occurrences`), and which group a span's words get (`textveil.protect`).

`make ablation` switches each stage off and counts what changes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from textveil.detect import overlaps, trimming, visibility
from textveil.detect.application_words import NO_WORDS
from textveil.detect.bounds import bind
from textveil.detect.detections import Detections, Settings
from textveil.detect.detectors import find_all
from textveil.detect.enumerations import mark_peers_private
from textveil.detect.event_dates import EventDates
from textveil.detect.identifier_names import cut_identifier_names
from textveil.detect.occurrences import find_occurrences
from textveil.detect.quantities import DATES
from textveil.detect.regions import filter_spans
from textveil.detect.scoring import score_spans
from textveil.detect.second_reading import mark_unknown_private
from textveil.detect.spans import Span
from textveil.detect.windows import add_window_spans
from textveil.text import Tokens

Apply = Callable[[Detections, Settings], Detections]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A single step of detection: a function, its reason and its condition.

    Attributes:
        name: its name in ablations.
        apply: the function from detections and settings to new detections.
        purpose: its purpose.
        condition: the condition on the settings under which it runs.
        guard: the reason to keep it although it changes nothing on measured texts; empty if it
            improves detection there.
    """

    name: str
    apply: Apply
    purpose: str
    condition: Callable[[Settings], bool] = lambda settings: True
    guard: str = ""


def run_stages(stages: Sequence[Stage], detections: Detections, settings: Settings) -> Detections:
    """Runs the stages that the settings ask for, in order."""
    for stage in stages:
        if stage.condition(settings):
            detections = stage.apply(detections, settings)
    return detections


# ---- from functions over spans to stages ---------------------------------------------------------


def _set_spans(detections: Detections, spans: Iterable[Span]) -> Detections:
    changed = tuple(spans)
    # Most stages change nothing, and a copy of all the rest takes longer than to see it.
    return detections if changed == detections.spans else replace(detections, spans=changed)


def _change_spans(change: Callable[[Sequence[Span], Tokens], Sequence[Span]]) -> Apply:
    return lambda detections, _: _set_spans(detections, change(detections.spans, detections.tokens))


def _change_each_span(change: Callable[[Span, Sequence[str]], Span]) -> Apply:
    return _change_spans(lambda spans, tokens: [change(span, tokens.texts) for span in spans])


def _drop_spans(is_nothing: Callable[[Span, Sequence[str]], bool]) -> Apply:
    return _change_spans(
        lambda spans, tokens: [span for span in spans if not is_nothing(span, tokens.texts)]
    )


def _trim_spans(spans: Sequence[Span], tokens: Tokens) -> list[Span]:
    return [part for span in spans for part in trimming.trim(span, tokens.texts)]


def _find_spans(detections: Detections, settings: Settings) -> Detections:
    spans = find_all(
        settings.detectors,
        detections.tokens.texts,
        timeout=settings.timeout,
        memory=settings.memory,
    )
    return replace(detections, spans=tuple(spans))


def _set_dates(detections: Detections, settings: Settings) -> Detections:
    if settings.dates == "all":
        dates = find_all([EventDates()], detections.tokens.texts, timeout=settings.timeout)
        return replace(detections, spans=(*detections.spans, *dates))
    others = tuple(span for span in detections.spans if span.type not in DATES)
    return replace(detections, spans=others)


def _read_again(detections: Detections, settings: Settings) -> Detections:
    spans = mark_unknown_private(
        detections.spans, detections.tokens.texts, settings.detectors, settings.timeout
    )
    return _set_spans(detections, spans)


def _select_types(detections: Detections, settings: Settings) -> Detections:
    types = settings.types or ()
    return _set_spans(detections, (span for span in detections.spans if span.type in types))


def _separate_public(detections: Detections, settings: Settings) -> Detections:
    private: list[Span] = []
    public_spans: list[Span] = []
    for span in detections.spans:
        (private if visibility.is_at_level(span, settings.level) else public_spans).append(span)
    return replace(detections, spans=tuple(private), public_spans=tuple(public_spans))


def _spare_listed(detections: Detections, settings: Settings) -> Detections:
    assert settings.never is not None, "or the stage would not run"
    remaining = settings.never.remove_listed(detections.spans, detections.tokens.texts)
    # A span that is listed in part is spared, too; what is left of it stays sensitive.
    whole = {*remaining}
    spared = [span for span in detections.spans if span not in whole]
    return replace(detections, spans=tuple(remaining), spared=tuple(spared))


def _spare_application(detections: Detections, settings: Settings) -> Detections:
    texts, words = detections.tokens.texts, settings.application
    lifted = {
        span
        for span in detections.spans
        if words.lifts(span, texts[span.text], is_own=settings.is_application)
    }
    return replace(
        detections,
        spans=tuple(span for span in detections.spans if span not in lifted),
        spared=(*detections.spared, *sorted(lifted)),
    )


def _add_occurrences(detections: Detections, settings: Settings) -> Detections:
    texts = detections.tokens.texts
    # No stage `never` follows here: repeated spans are filtered right away.
    words = settings.application
    repeated, values, doubtful = find_occurrences(
        texts,
        detections.spans,
        settings.known_values,
        detections.public_spans,
        is_doubtful=words.is_doubtful,
        is_spared=partial(words.spares, is_own=settings.is_application),
    )
    if settings.never is not None:
        repeated = settings.never.remove_listed(repeated, texts)
    spans = (*settings.reserved, *detections.spans, *repeated)
    return replace(
        detections,
        spans=spans,
        new_values=tuple(map(tuple, values)),
        doubtful=frozenset(doubtful),
    )


def _is_personal(settings: Settings) -> bool:
    return settings.level == "personal"


BOUNDS = Stage(
    name="bounds",
    apply=lambda detections, _: _set_spans(
        detections, bind(detections.spans, detections.tokens.texts, detections.bounds)
    ),
    purpose="a span stays within cells, quotes, tags and sentences, also one that was joined",
)

REGIONS = Stage(
    name="regions",
    apply=lambda detections, _: _set_spans(
        detections, filter_spans(detections.spans, detections.tokens.texts, detections.regions)
    ),
    purpose="names, numbers and times that a machine writes for itself are nobody's",
    guard="logs, code and manifests keep the words of programs: `QuorumCnxManager`, `blk_-69522958`",
)

MERGING = (
    Stage(
        name="words",
        apply=lambda detections, _: overlaps.cut_words(detections),
        purpose="a word ends where a span does",
    ),
    Stage(
        name="addresses",
        apply=_change_spans(
            lambda spans, tokens: [overlaps.widen_name(span, tokens) for span in spans]
        ),
        purpose="a repeated name in an address hides the address",
        guard="`anna.kowalska@example.org` behind `Anna Kowalska`, where no detector reads addresses",
    ),
    Stage(
        name="wordy numbers",
        apply=_change_spans(lambda spans, tokens: overlaps.drop_wordy_numbers(spans, tokens.texts)),
        purpose="a number that others know is no number with words around it",
        guard="a key stays before its value: `BIC <ACCOUNT_1>`",
    ),
    Stage(
        name="forms",
        apply=_change_spans(lambda spans, tokens: overlaps.cut_out_forms(spans, tokens.texts)),
        purpose="a name ends where an address or number begins",
        guard="two values beside each other are two: `Maria Silva maria@example.org`",
    ),
    Stage(
        name="cells",
        apply=_change_spans(
            lambda spans, tokens: overlaps.divide_between_cells(spans, tokens.texts)
        ),
        purpose="a span over several cells leaves their separators",
        guard="a table keeps its columns",
    ),
    Stage(
        name="join",
        apply=_change_spans(overlaps.join),
        purpose="no word is in two spans",
        guard="what is released has one item a word",
    ),
    BOUNDS,
)
"""Stages from spans that may overlap to spans that share no word, in order."""

STAGES = (
    Stage(
        name="detectors",
        apply=_find_spans,
        purpose="finds spans, in each text as it reads, and in what is encoded in it",
        guard="without it there is nothing to find; each detector is measured alone",
    ),
    BOUNDS,
    REGIONS,
    Stage(
        name="headings",
        apply=_drop_spans(trimming.is_heading),
        purpose="a heading or a label of a form is nobody",
        guard="a form keeps its headings: `B. DANE PODATNIKA`",
    ),
    Stage(
        name="labels",
        apply=_change_spans(lambda spans, tokens: overlaps.drop_labels(spans, tokens.texts)),
        purpose="a key right before its value is nobody: `Handy 0151 23456789`",
        guard="a form keeps its labels: `Handy 0151 23456789`",
    ),
    Stage(
        name="filler",
        apply=_drop_spans(trimming.is_filler),
        purpose="a text that only shows type names nobody",
        guard="a page of filler stays: `Lorem ipsum dolor`",
    ),
    Stage(
        name="printed numbers",
        apply=_drop_spans(trimming.is_printed_number),
        purpose="a printed form or book is everybody's: `Form W-2`",
        guard="`OMB No. 1545-0008, Form W-2` is asked about",
    ),
    Stage(
        name="amounts",
        apply=_drop_spans(trimming.is_amount),
        purpose="an amount with two decimals is no identifier",
        guard="`Social security wages 616.79` stays",
    ),
    Stage(
        name="odds",
        apply=_change_spans(score_spans),
        purpose="scores names and details by how they look and by what else their text holds",
        condition=lambda settings: settings.scores,
    ),
    Stage(
        name="windows",
        apply=add_window_spans,
        purpose="what its own paragraph shows to be private is private, whatever stands beside it",
        condition=lambda settings: settings.scores,
        guard="a note before an article: benchmarks/beside.py measures it",
    ),
    Stage(
        name="dates",
        apply=_set_dates,
        purpose="all dates are hidden, or none; odds of names do not depend on it",
        condition=lambda settings: settings.dates != "personal",
        guard="an option of the user",
    ),
    Stage(
        name="surest",
        apply=_change_spans(lambda spans, _: overlaps.keep_surest(spans)),
        purpose="what is found many times at one place is read once from here on; the odds count each",
        guard="the time of a long run of Base64 is linear in it",
    ),
    Stage(
        name="titles",
        apply=_drop_spans(trimming.is_only_title),
        purpose="a title alone names nobody",
        guard="`Herr Doktor, was tun?` keeps its doctor",
    ),
    Stage(
        name="illnesses",
        apply=_drop_spans(trimming.is_illness_name),
        purpose="an illness is named after somebody, and is nobody",
        guard="what was diagnosed is what is asked about: `Hashimoto's`",
    ),
    Stage(
        name="trim",
        apply=_change_spans(_trim_spans),
        purpose="a span is what it names, without titles and units",
    ),
    Stage(
        name="groups",
        apply=_change_each_span(trimming.extend_groups),
        purpose="a number goes on over groups that are joined alike",
        guard="no part of a number is left: `%2B47+22+85+50+50`",
    ),
    Stage(
        name="ages",
        apply=_change_each_span(trimming.extend_age),
        purpose="an age that is moved is moved with its unit",
        condition=lambda settings: settings.moves_ages,
        guard="without its unit an age cannot be moved",
    ),
    Stage(
        name="types",
        apply=_select_types,
        purpose="only types that were asked for count",
        condition=lambda settings: settings.types is not None,
        guard="an option of the user",
    ),
    Stage(
        name="countries",
        apply=_change_each_span(visibility.mark_country_public),
        purpose="a whole country is public",
        condition=_is_personal,
    ),
    Stage(
        name="relatives",
        apply=_change_each_span(visibility.mark_relative_private),
        purpose="whoever the writer knows is private",
        guard="`my neighbour Rose` is private, whoever else has the name",
        condition=_is_personal,
    ),
    Stage(
        name="reachable",
        apply=_change_spans(
            lambda spans, tokens: visibility.mark_reachable_private(spans, tokens.texts)
        ),
        purpose="whoever has an address in the text is private",
        condition=_is_personal,
    ),
    Stage(
        name="located",
        apply=_change_spans(
            lambda spans, tokens: visibility.mark_located_private(spans, tokens.texts)
        ),
        purpose="the town of a private address is private",
        condition=_is_personal,
        guard="`ul. Miła 5 w Krakowie` says where somebody lives",
    ),
    Stage(
        name="second reading",
        apply=_read_again,
        purpose="whoever nobody knows is private, and whoever only has a known person's name",
        guard="a stranger beside an article, and `Frida Kahlo owes me rent`",
        condition=lambda settings: settings.scores and _is_personal(settings),
    ),
    Stage(
        name="enumerations",
        apply=_change_spans(lambda spans, tokens: mark_peers_private(spans, tokens.texts)),
        purpose="the persons of one list are judged together",
        guard="no applicant of a list stays while the others go",
        condition=lambda settings: settings.scores and _is_personal(settings),
    ),
    Stage(
        name="identifiers",
        apply=_change_spans(lambda spans, tokens: cut_identifier_names(spans, tokens.texts)),
        purpose="a name in an identifier ends where its ordinary words begin",
        guard="a file keeps its words: `Zeugnis_<PERSON_1>.txt`; lists of files are in no measure",
    ),
    Stage(
        name="level",
        apply=_separate_public,
        purpose="what is public stays",
    ),
    Stage(
        name="never",
        apply=_spare_listed,
        purpose="what a user listed stays",
        condition=lambda settings: settings.never is not None,
        guard="an option of the user",
    ),
    Stage(
        name="application",
        apply=_spare_application,
        purpose="a tool, file or model of the application is nobody, where only doubt says so",
        condition=lambda settings: settings.application != NO_WORDS,
        guard="an agent called like a person keeps its name in its own prompt",
    ),
    *MERGING,
)
"""Stages from texts to the sensitive spans in them, in order."""

PROPAGATING = (
    Stage(
        name="occurrences",
        apply=_add_occurrences,
        purpose="what is private once is private wherever else it stands",
    ),
    BOUNDS,
    REGIONS,
    *MERGING,
)
"""Stages that add every other occurrence of the detected values, in order.

A session runs them while it holds its lock.
"""
