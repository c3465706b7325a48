"""Releasing the texts of a message, plain or JSON, with their promise.

In: an utterance and the session of its conversation. Out: its released texts, and the promise.
Not here: the places of texts (`parsed_request`), and the memory of released texts
(`session.conversations`).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate, chain, groupby
from typing import Any, Protocol, Self

import regex

from textveil.detect import ApplicationWords, PrivateValue, ValueIndex
from textveil.gateway.request.application import AUTHOR_ROLES, NO_APPLICATION, Application
from textveil.gateway.request.parsed_request import (
    CONTEXT_ROLE,
    JSON_FORM,
    LABEL_FORM,
    NAME_FORM,
    SCHEMA_FORM,
    TEXT_FORM,
    UNKNOWN_FORM,
)
from textveil.guarantee import summarize
from textveil.pipeline import Privatizer, Result
from textveil.session import Session, SessionStore, Source, Utterance, find_placeholder_names
from textveil.text import OPENING
from textveil.text.text_cache import TextCache

PROMISE_FIELDS = (
    "mechanism",
    "kind",
    "metric",
    "epsilon",
    "epsilon_ldp",
    "unit",
    "words",
    "protected",
)
"""Fields of a request's promise: largest bound per word over all messages."""


WINDOW, MIN_CONTEXT = 200, 64
"""Window and minimal context, in characters, around the end of a part.

An identifier that goes on in the next part is sought AROUND characters before and after the end; at
least SHORT characters before it are searched, even if parts are shorter.
"""

UNCERTAIN_TYPES = ("HANDLE",)
"""Types that a pattern finds, and that are no private value in a name or id: ~vendor/model."""

MIN_DIGITS, MIN_JOINED_DIGITS = 6, 8
"""Digits from which a number is read as text, and from which several are read together."""

MIN_CODES = 6
"""Whole numbers from which a list is read as character codes, too."""

PLAIN_NAME = regex.compile(r"[a-z_.\-]{1,64}[0-9]{0,2}")
"""Pattern of field names that are no private value alone."""

MAX_FLOAT_DIGITS = 17
"""Digits of a number that Python's floats keep."""

Scalar = str | int | float
TextFilter = Callable[[Scalar, bool], bool]
"""Predicate that selects the released texts in JSON.

It gets the string or number, and whether it is a field name.
"""


class ReleaseFunction(Protocol):
    """Function that releases a message in a session."""

    def __call__(
        self, message: Utterance, session: Session, application: Application = NO_APPLICATION
    ) -> tuple[Sequence[str], dict[str, Any]]:
        """Returns the texts as they are sent, and the promise about them."""
        ...


class MessageReleaser:
    """Release function for the texts of messages.

    Args:
        privatizer: for texts of users and models.
        schemas: for descriptions of tools: hides its findings, and changes nothing else.
    """

    def __init__(self, privatizer: Privatizer, schemas: Privatizer) -> None:
        # Third parties may have written the schemas.
        self._privatizer, self._schemas = privatizer, schemas.with_parts(source="tool")
        # Clients send the same schemas with every request.
        self._find_private = TextCache(self._schemas.split_private)

    @classmethod
    def build(cls, privatizer: Privatizer) -> Self:
        """Creates a release function that hides identifiers in schemas."""
        detectors = ("patterns", "structure")
        schemas = Privatizer.from_profile(
            "prompt", protect={"level": "identifiers", "detectors": detectors}
        )
        return cls(privatizer, schemas)

    def __call__(
        self, message: Utterance, session: Session, application: Application = NO_APPLICATION
    ) -> tuple[list[str], dict[str, Any]]:
        """Releases the texts of a message, and returns their promise.

        There is no promise about schemas.

        Args:
            message: the message.
            session: the session of its conversation.
            application: what the application of the conversation brings along.
        """
        forms = message.forms or (TEXT_FORM,) * len(message.texts)
        released = self._join_identifiers(message, forms)
        results = self._release_plain(message, forms, released, session, application)
        for i, form in enumerate(forms):
            if form in (JSON_FORM, UNKNOWN_FORM):
                privatizer = self._privatizer.copy_for_application(application.words)
                privatizer = privatizer.with_parts(source=message.get_source(i))
                release = self._release_json if form == JSON_FORM else self._release_unknown
                released[i], json_results = release(message.texts[i], session, privatizer)
                results += json_results
            elif form == SCHEMA_FORM:
                released[i] = self._release_schema(message.texts[i], session, application.words)
            elif form == NAME_FORM:
                released[i] = self._release_name(message.texts[i], session)
        return released, build_promise(results)

    def _release_plain(
        self,
        message: Utterance,
        forms: Sequence[str],
        texts: list[str],
        session: Session,
        application: Application,
    ) -> list[Result]:
        """Releases the plain texts of a message, in place."""
        plain = [i for i, form in enumerate(forms) if form in (TEXT_FORM, LABEL_FORM)]
        results: list[Result] = []
        is_authored = message.role.lower() in (*AUTHOR_ROLES, CONTEXT_ROLE)

        def find_writer(i: int) -> tuple[Source, bool]:
            is_own = is_authored and message.texts[i] in application.texts
            return message.get_source(i), is_own

        # Runs of one writer, so that the results keep the order of the texts.
        for (source, is_own), indices in groupby(plain, find_writer):
            privatizer = self._privatizer.copy_for_application(application.words, is_own=is_own)
            privatizer = privatizer.with_parts(source=source)
            results += privatizer.privatize_many([texts[i] for i in indices], session)
        for i, result in zip(plain, results, strict=True):
            texts[i] = _format_label(result.text) if forms[i] == LABEL_FORM else result.text
        return results

    def _join_identifiers(self, message: Utterance, forms: Sequence[str]) -> list[str]:
        """Returns the texts of a message, with divided identifiers mended."""
        mended = list(message.texts)
        parts = [
            i for i, form in enumerate(forms) if form == TEXT_FORM and message.role != CONTEXT_ROLE
        ]
        for i, text in zip(parts, self._join_parts([mended[i] for i in parts]), strict=True):
            mended[i] = text
        return mended

    def _join_parts(self, parts: Sequence[str]) -> list[str]:
        """Moves identifiers divided between parts into the first of the parts."""
        text, ends = "".join(parts), list(accumulate(map(len, parts)))
        starts = [0, *ends]
        for i, end in enumerate(ends[:-1]):
            low = max(start for start in starts if start <= max(0, end - MIN_CONTEXT))
            ends[i] = self._find_end(text, low, starts[i], end)
        # An identifier may reach over whole parts, which then become empty.
        ends = list(accumulate(ends, max))
        return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def _find_end(self, text: str, low: int, start: int, end: int) -> int:
        """Finds the end of an identifier that a part's end divides.

        Where identifiers end one part and begin the next, both are taken to be whole.

        Args:
            text: the text of all parts.
            low: start of the search for identifiers.
            start: start of the part.
            end: end of the part.
        """
        high = end + WINDOW
        spans = self._find_identifiers(text, max(low, end - WINDOW), high)
        stop = max((stop for begin, stop in spans if begin < end < stop < high), default=end)
        if stop == end:
            return end
        next_spans = self._find_identifiers(text, end, high)
        next_end = max((last for begin, last in next_spans if begin == end), default=end)
        part_spans = self._find_identifiers(text, max(start, end - WINDOW), end)
        is_part_closed = any(last == end for _, last in part_spans)
        return end if next_end > end and (is_part_closed or next_end > stop) else stop

    def _find_identifiers(self, text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yields the start and end of identifiers in a text part."""
        for value in chain.from_iterable(self._find_private(text[low:high])):
            for match in regex.finditer(regex.escape(value.text), text[low:high]):
                yield low + match.start(), low + match.end()

    def _release_json(
        self, text: str, session: Session, privatizer: Privatizer
    ) -> tuple[str, list[Result]]:
        """Releases the values of JSON one by one.

        It is searched as a whole first, since field names say what the values are. A name of a
        field is released only if it contains something private. A number that changes becomes a
        string. Text that is no JSON is released as text.
        """
        value, json_text = _parse(text)
        if value is not text:
            remembered, nearby = privatizer.split_private(json_text)
            session.hide(remembered)
            privatizer = privatizer.with_parts(nearby=nearby)
        sought = _add_values(session.snapshot().sought, privatizer.nearby)

        def is_wanted(item: Scalar, name: bool) -> bool:
            string = str(item)
            return not name or any(value.text in string for value in sought.find_values(string))

        return _release_values(privatizer, text, value, is_wanted, session)

    def _release_schema(self, text: str, session: Session, words: ApplicationWords) -> str:
        """Hides the private values in a schema, and changes nothing else."""
        value, json_text = _parse(text)
        certain, doubtful = self._find_private(json_text)
        session.hide(certain)
        nearby = tuple(found for found in doubtful if not words.covers(found.type, found.text))
        schemas = self._schemas.copy_for_application(words, is_own=True).with_parts(nearby=nearby)
        sought = _add_values(session.snapshot().sought, nearby)

        def is_wanted(item: Scalar, name: bool) -> bool:  # names, too: `required` repeats them
            string = str(item)
            return bool(sought.find_values(string) or find_placeholder_names(string))

        if not is_wanted(json_text, False):
            return text
        return _release_values(schemas, text, value, is_wanted, session)[0]

    def _release_unknown(
        self, text: str, session: Session, privatizer: Privatizer
    ) -> tuple[str, list[Result]]:
        """Releases the strings and field names of JSON that no table names.

        What nothing can stand for becomes another kind of JSON, which `UnknownValue` refuses: a
        private number a string, a list with a private value in pieces null.
        """
        value = self._read_pieces(json.loads(text))
        json_text = json.dumps(value, ensure_ascii=False)
        names = {name for name in _find_names(value) if not PLAIN_NAME.fullmatch(name)}
        # Beside JSON's own signs a name may be read as a part of something else.
        searched = [json_text, *(["\n".join(sorted(names))] if names else [])]
        nearby: tuple[PrivateValue, ...] = ()
        for part in searched:
            remembered, doubtful = privatizer.split_private(part)
            session.hide(remembered)
            nearby += doubtful
        privatizer = privatizer.with_parts(nearby=nearby)
        sought = _add_values(session.snapshot().sought, nearby)

        def is_wanted(item: Scalar, name: bool) -> bool:
            if isinstance(item, str) and not name:
                return True
            string = str(item)
            # Without detectors every word is released but those of programs.
            is_short = sum(map(str.isdecimal, string)) < MIN_DIGITS
            is_plain = PLAIN_NAME.fullmatch(string) if name else is_short
            is_text = privatizer.grouping is None and not is_plain
            return is_text or ((name or not is_short) and _is_sought(sought, string))

        return _release_values(privatizer, json_text, value, is_wanted, session)

    def _read_pieces(self, value: Any) -> Any:
        """Returns JSON in which no list has a private value in pieces.

        Strings are mended, as parts of a message are. A list of numbers becomes null, and so does a
        number whose digits are private.
        """
        if isinstance(value, dict):
            read = {name: self._read_pieces(item) for name, item in value.items()}
            return self._read_numbers(read)
        if isinstance(value, list):
            strings = iter(self._join_parts([item for item in value if isinstance(item, str)]))
            read_items = [
                next(strings) if isinstance(item, str) else self._read_pieces(item)
                for item in value
            ]
            return self._read_numbers(read_items)
        is_private = _is_number(value) and self._has_identifier(*_write_digits(value))
        return None if is_private else value

    def _read_numbers(self, read: Any) -> Any:
        """Returns what was read of a list or object; null if its numbers hide something."""
        numbers = [*_find_numbers(read)]
        words = [str(number) for number in numbers]
        if len(words) < 2 or sum(map(len, words)) < MIN_JOINED_DIGITS:
            return read
        codes = [number for number in numbers if isinstance(number, int) and 31 < number < 0x110000]
        is_text = len(codes) == len(numbers) >= MIN_CODES
        characters = ["".join(map(chr, codes)).encode("utf-8", "replace").decode()] * is_text
        joined = " ".join(words), "".join(words)
        return None if self._has_identifier(*joined, *characters) else read

    def _has_identifier(self, *texts: str) -> bool:
        return any(any(self._find_private(text)) for text in texts)

    def _release_name(self, text: str, session: Session) -> str:
        """Returns a name or id unchanged, or a part of it if it has something private.

        Only what is certain counts, and what the session hides. A name with blanks is a text.
        """
        if any(map(str.isspace, text)):
            (result,) = self._privatizer.privatize_many([text], session)
            return result.text
        values = chain.from_iterable(self._find_private(text))
        certain = [value for value in values if value.type not in UNCERTAIN_TYPES]
        return "" if certain or _is_sought(session.snapshot().sought, text) else text


def _add_values(sought: ValueIndex, values: Sequence[PrivateValue]) -> ValueIndex:
    """Returns a matcher with further values; the given one stays unchanged."""
    if not values:
        return sought
    extended = sought.copy()
    for value in values:
        extended.add(value)
    return extended


def _format_label(text: str) -> str:
    """Joins a text to one word, as names of participants must be."""
    return regex.sub(r"[^\p{L}\p{N}_.\-]+", "_", text).strip("_")


def _is_sought(sought: Any, text: str) -> bool:
    """True if a text has something that a session hides, or a placeholder as it is written."""
    has_placeholder = OPENING in text and find_placeholder_names(text)
    return bool(has_placeholder or sought.find_values(text))


def _find_names(value: Any) -> Iterator[str]:
    """Yields the field names of JSON."""
    if isinstance(value, dict):
        yield from value
    for item in _get_items(value):
        yield from _find_names(item)


def _get_items(value: Any) -> Iterable[Any]:
    """Returns the values inside a JSON value."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _find_numbers(value: Any) -> Iterator[int | float]:
    """Yields the numbers of JSON, in its order."""
    for item in _get_items(value):
        yield from [item] if _is_number(item) else _find_numbers(item)


def _write_digits(number: float) -> Iterator[str]:
    """Yields a number of many digits, and its digits alone."""
    digits = format(Decimal(repr(number)), "f")
    bare = digits.lstrip("-").replace(".", "").strip("0")
    if len(bare) >= MIN_DIGITS:
        whole = digits.partition(".")
        yield from dict.fromkeys((str(number), whole[0], whole[0] + whole[2], bare))


def _parse(text: str) -> tuple[Any, str]:
    """Parses JSON, and returns it with its unescaped text.

    Text that is no JSON object or list is returned as it is, twice; and so is JSON that says more
    than its value does, since the value is what is read.
    """
    try:
        value = json.loads(text, object_pairs_hook=_build_object, parse_float=_read_float)
    except ValueError:
        return text, text
    if not isinstance(value, dict | list):
        return text, text
    return value, json.dumps(value, ensure_ascii=False)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Builds an object of JSON; refuses a name that occurs twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError
    return content


def _read_float(literal: str) -> float:
    """Reads a number of JSON; refuses one with more digits than it would keep."""
    if sum(map(str.isdecimal, literal)) > MAX_FLOAT_DIGITS:
        raise ValueError
    return float(literal)


def _release_values(
    privatizer: Privatizer, text: str, value: Any, is_wanted: TextFilter, session: Session
) -> tuple[str, list[Result]]:
    """Releases some texts of JSON; it stays byte-identical if none changes."""
    texts = [str(item) for item in _find_texts(value, is_wanted)]
    results = list(privatizer.privatize_many(texts, session))
    released = [result.text for result in results]
    # Not written anew: providers' prompt caches need the same bytes from turn to turn.
    if released == texts:
        return text, results
    changed = _replace_texts(value, is_wanted, iter(released))
    return changed if isinstance(changed, str) else json.dumps(changed, ensure_ascii=False), results


def _find_texts(value: Any, is_wanted: TextFilter) -> Iterator[str | int | float]:
    """Yields the wanted strings, numbers and field names of any JSON."""
    if isinstance(value, dict):
        for name, item in value.items():
            if is_wanted(name, True):
                yield name
            yield from _find_texts(item, is_wanted)
    elif isinstance(value, list):
        for item in value:
            yield from _find_texts(item, is_wanted)
    elif _is_text(value) and is_wanted(value, False):
        yield value


def _is_text(value: Any) -> bool:
    """True if a JSON value is a string or a number."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _replace_texts(value: Any, is_wanted: TextFilter, released: Iterator[str]) -> Any:
    """Replaces the wanted texts of JSON, in the order of `_find_texts`."""
    if isinstance(value, dict):
        return {
            # Python evaluates a key before its value, which is the order of `_find_texts`.
            next(released) if is_wanted(name, True) else name: _replace_texts(
                item, is_wanted, released
            )
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_replace_texts(item, is_wanted, released) for item in value]
    if not (_is_text(value) and is_wanted(value, False)):
        return value
    text = next(released)
    return value if text == str(value) else text


SECRET_OPTIONS = ("always", "always_matching", "never", "never_matching", "important", "task")
"""Secret options, of which a claim tells the number only."""


def build_config_digest(privatizer: Privatizer, store: SessionStore) -> str:
    """Serializes all that releases depend on, except messages."""
    claim, table = privatizer.claim, privatizer.table
    names, figures = privatizer.names, privatizer.figures
    parts = privatizer.words, privatizer.budget, names and names.options
    options = [*parts, figures and figures.options]
    table_facts = claim.table, table.metric, table.digest
    inputs = [claim.mechanism, claim.options, *table_facts, privatizer.randomness.is_seeded]
    protect = privatizer.grouping and privatizer.grouping.options
    lists = store.pseudonym(
        repr([getattr(protect, name, None) for name in SECRET_OPTIONS]).encode()
    )
    return json.dumps([inputs, list(map(repr, options)), lists], default=repr, sort_keys=True)


def build_promise(results: Sequence[Result]) -> dict[str, Any]:
    """Summarizes the guarantees of a message's releases, with the number of draws.

    It is empty if there are no releases.
    """
    if not results:
        return {}
    summary = summarize([result.guarantee for result in results])
    promise = summary.to_json()
    return {"drawn": summary.drawn} | {name: promise[name] for name in PROMISE_FIELDS}


def merge_promises(promises: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Combines the promises of messages: largest bound per word, all words.

    The messages must be of one configuration.
    """
    nonempty = list(filter(None, promises))
    if not nonempty:
        return {}
    combined = {name: nonempty[0][name] for name in PROMISE_FIELDS}
    for name in ("epsilon", "epsilon_ldp"):
        combined[name] = _find_largest([promise[name] for promise in nonempty])
    for name in ("words", "protected"):
        combined[name] = sum(promise[name] for promise in nonempty)
    if any(promise["kind"] == "none" for promise in nonempty):
        combined["kind"] = "none"
    return combined


def _find_largest(bounds: Sequence[Any]) -> Any:
    """Returns the largest bound; a bound that is no number is infinite."""
    return next((bound for bound in bounds if not isinstance(bound, int | float)), None) or max(
        bounds
    )


def describe_draws(new: int, drawn: int, repeated: int, kind: str = "") -> str:
    """Describes the draws of a request, and the meaning of its promise.

    Args:
        new: the number of messages that were not released before.
        drawn: the number of messages in which something was drawn.
        repeated: the number of messages that are sent again unchanged.
        kind: the kind of the promise.
    """
    sentences = []
    if drawn:
        sentences.append(
            f"{drawn:,} {'message was' if drawn == 1 else 'messages were'} drawn for this request"
        )
    if plain := new - drawn:
        sentences.append(
            f"{plain:,} new {'message was' if plain == 1 else 'messages were'} released without a "
            "draw"
        )
    if repeated:
        are = "is" if repeated == 1 else "are"
        sentences.append(f"{repeated:,} {are} sent again as released before: spent once")
    promise = "The promise is for one release; repeated releases add up"
    promise = "There is no promise" if kind == "none" else promise
    return f"{'; '.join(sentences) or 'No message was released'}. {promise}."
