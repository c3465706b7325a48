"""Releasing: the texts of a message as they are sent, text or JSON, and what is promised about them.

In: an utterance and the session of its conversation. Out: its released texts, and the promise.
Not here: where the texts stand (`requests`), what is remembered of them (`session.chains`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Any, Self

import regex

from textveil.gateway.requests import BESIDES, JSON_FORM, LABEL_FORM, SCHEMA_FORM, TEXT_FORM
from textveil.guarantee import summarize
from textveil.pipeline import Privatizer, Result
from textveil.session import Session, SessionStore, Source, Utterance, spelled_in

PROMISE = ("mechanism", "kind", "metric", "epsilon", "epsilon_ldp", "unit", "words", "protected")
"""What is promised of a request: the largest bound per word, over all messages."""


KNOWN = 1_000
"""Schemas of which it is remembered what is private in them: clients send them with every request."""

AROUND, SHORT = 200, 64
"""Characters before and behind the end of a part in which an identifier is sought that goes on in the next one; and
how many of them are looked at before it, even if parts are shorter."""

Wanted = Callable[[str, bool], bool]
"""Whether a text in JSON is released; the text, and whether it is the name of a field."""


Release = Callable[[Utterance, Session], tuple[Sequence[str], dict[str, Any]]]
"""Gives the texts of a message as they are sent, and what is promised about them."""


class Releasing:
    """Releases the texts of messages.

    Args:
        privatizer: for what users and models say.
        schemas: for what programs say about their tools: hides what it finds, and changes nothing else.
    """

    def __init__(self, privatizer: Privatizer, schemas: Privatizer) -> None:
        self._privatizer, self._schemas = privatizer, schemas
        self._private_in = lru_cache(KNOWN)(schemas.private_in)

    @classmethod
    def of(cls, privatizer: Privatizer) -> Self:
        """One whose schemas are looked at for identifiers."""
        found = ("patterns", "structure")
        schemas = Privatizer.from_profile(
            "prompt", protect={"level": "identifiers", "detectors": found}
        )
        return cls(privatizer, schemas.with_parts(source="tool"))  # others may have written them

    def __call__(self, message: Utterance, session: Session) -> tuple[list[str], dict[str, Any]]:
        """The texts of a message, and what is promised about them; nothing is about schemas."""
        forms = message.forms or (TEXT_FORM,) * len(message.texts)
        made = self._mend(message, forms)
        results = self._plain(message, forms, made, session)
        for i, form in enumerate(forms):
            if form == JSON_FORM:
                made[i], more = self._json(message.texts[i], session, message.source(i))
                results += more
            elif form == SCHEMA_FORM:
                made[i] = self._schema(message.texts[i], session)
        return made, promised(results)

    def _plain(
        self, message: Utterance, forms: Sequence[str], made: list[str], session: Session
    ) -> list[Result]:
        """Releases what is no JSON among the texts of a message, in their places."""
        plain = [i for i, form in enumerate(forms) if form in (TEXT_FORM, LABEL_FORM)]
        results: list[Result] = []
        for source, several in groupby(plain, message.source):
            privatizer = self._privatizer.with_parts(source=source)
            results += privatizer.privatize_many([made[i] for i in several], session)
        for i, result in zip(plain, results, strict=True):
            made[i] = _as_label(result.text) if forms[i] == LABEL_FORM else result.text
        return results

    def _mend(self, message: Utterance, forms: Sequence[str]) -> list[str]:
        """Gives the texts of a message, those mended that are the parts of one."""
        made = list(message.texts)
        parts = [i for i, form in enumerate(forms) if form == TEXT_FORM and message.role != BESIDES]
        for i, text in zip(parts, self._mended([made[i] for i in parts]), strict=True):
            made[i] = text
        return made

    def _mended(self, parts: Sequence[str]) -> list[str]:
        """Gives the parts of a text; an identifier that several divide between them is in the first of these."""
        text, ends = "".join(parts), list(accumulate(map(len, parts)))
        starts = [0, *ends]
        for i, end in enumerate(ends[:-1]):
            low = max(start for start in starts if start <= max(0, end - SHORT))
            ends[i] = self._divided(text, low, starts[i], end)
        ends = list(accumulate(ends, max))
        return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def _divided(self, text: str, low: int, start: int, end: int) -> int:
        """Finds where a part ends with the identifier that it and the next ones divide between them.

        Where identifiers end one part and begin the next, both are taken to be whole.

        Args:
            text: of all parts.
            low: from where on identifiers are looked for.
            start: where the part begins.
            end: where it ends.
        """
        high = end + AROUND
        around = self._places(text, max(low, end - AROUND), high)
        stop = max((stop for begin, stop in around if begin < end < stop < high), default=end)
        if stop == end:
            return end
        next_ones = self._places(text, end, high)
        behind = max((last for begin, last in next_ones if begin == end), default=end)
        own = self._places(text, max(start, end - AROUND), end)
        before = any(last == end for _, last in own)
        return end if behind > end and (before or behind > stop) else stop

    def _places(self, text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Where identifiers stand in a part of a text."""
        for value in self._private_in(text[low:high]):
            for match in regex.finditer(regex.escape(value.text), text[low:high]):
                yield low + match.start(), low + match.end()

    def _json(self, text: str, session: Session, source: Source) -> tuple[str, list[Result]]:
        """JSON whose values are released one by one, after it was read as a whole: its names tell what values are.

        A name of a field is released only where something private stands in it. A number that changes becomes a
        string. What is no JSON is released as text.
        """
        value, written = _read(text)
        if value is not text:
            session.hide(self._privatizer.private_in(written))
        sought = session.snapshot().sought

        def wanted(each: str, name: bool) -> bool:
            return not name or any(value.text in each for value in sought.standing(each))

        return _released(self._privatizer.with_parts(source=source), text, value, wanted, session)

    def _schema(self, text: str, session: Session) -> str:
        """A schema, or another text about a tool, in which what is private is hidden, and all else stays."""
        value, written = _read(text)
        session.hide(self._private_in(written))
        sought = session.snapshot().sought

        def wanted(each: str, name: bool) -> bool:  # names, too: `required` says the same ones
            return bool(sought.standing(each) or spelled_in(each))

        if not wanted(written, False):
            return text
        return _released(self._schemas, text, value, wanted, session)[0]


def _as_label(text: str) -> str:
    """A text as one word, as names of participants must be."""
    return regex.sub(r"[^\p{L}\p{N}_.\-]+", "_", text).strip("_")


def _read(text: str) -> tuple[Any, str]:
    """JSON, and how it reads without escapes for letters; what is no JSON as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text, text
    if not isinstance(value, dict | list):
        return text, text
    return value, json.dumps(value, ensure_ascii=False)


def _released(
    privatizer: Privatizer, text: str, value: Any, wanted: Wanted, session: Session
) -> tuple[str, list[Result]]:
    """JSON with the releases of some of its texts; if none changes it is written as it was."""
    texts = [str(each) for each in _texts(value, wanted)]
    results = list(privatizer.privatize_many(texts, session))
    made = [result.text for result in results]
    if made == texts:
        return text, results
    changed = _with(value, wanted, iter(made))
    return changed if isinstance(changed, str) else json.dumps(changed, ensure_ascii=False), results


def _texts(value: Any, wanted: Wanted) -> Iterator[str | int | float]:
    """The strings and numbers of any JSON, and names of fields, those that are wanted."""
    if isinstance(value, dict):
        for name, each in value.items():
            if wanted(name, True):
                yield name
            yield from _texts(each, wanted)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, wanted)
    elif _is_text(value) and wanted(str(value), False):
        yield value


def _is_text(value: Any) -> bool:
    """Says whether a value of JSON is a string or a number."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _with(value: Any, wanted: Wanted, made: Iterator[str]) -> Any:
    """The same JSON with other texts."""
    if isinstance(value, dict):
        return {
            next(made) if wanted(name, True) else name: _with(each, wanted, made)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_with(each, wanted, made) for each in value]
    if not (_is_text(value) and wanted(str(value), False)):
        return value
    text = next(made)
    return value if text == str(value) else text


COUNTED = ("always", "always_matching", "never", "never_matching", "important", "task")
"""Options that are secret: what a claim says of them is how many there are."""


def basis_of(privatizer: Privatizer, store: SessionStore) -> str:
    """All that releases depend on besides messages."""
    claim, table = privatizer.claim, privatizer.table
    names, figures = privatizer.names, privatizer.figures
    parts = privatizer.words, privatizer.budget, names and names.options
    options = [*parts, figures and figures.options]
    of_table = claim.table, table.metric, table.digest
    said = [claim.mechanism, claim.options, *of_table, privatizer.randomness.seeded]
    protect = privatizer.grouping and privatizer.grouping.options
    lists = store.pseudonym(repr([getattr(protect, name, None) for name in COUNTED]).encode())
    return json.dumps([said, list(map(repr, options)), lists], default=repr, sort_keys=True)


def promised(results: Sequence[Result]) -> dict[str, Any]:
    """What is promised about the releases of a message, and how many draws were made; nothing where there are none."""
    if not results:
        return {}
    found = summarize([result.guarantee for result in results])
    promise = found.to_json()
    return {"drawn": found.drawn} | {name: promise[name] for name in PROMISE}


def largest(promises: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The promise about several messages of one configuration: the largest bound per word of any, and all words."""
    said = list(filter(None, promises))
    if not said:
        return {}
    made = {name: said[0][name] for name in PROMISE}
    for name in ("epsilon", "epsilon_ldp"):
        made[name] = _largest([each[name] for each in said])
    for name in ("words", "protected"):
        made[name] = sum(each[name] for each in said)
    if any(each["kind"] == "none" for each in said):
        made["kind"] = "none"
    return made


def _largest(bounds: Sequence[Any]) -> Any:
    """Gives the largest of some bounds; what is no number is one that is infinite."""
    return next((each for each in bounds if not isinstance(each, int | float)), None) or max(bounds)


def told(new: int, drawn: int, repeated: int, kind: str = "") -> str:
    """In how many messages of a request something was drawn, and what that means for the promise of this kind.

    Args:
        new: messages that were not released before.
        drawn: those in which something was drawn.
        repeated: those that are sent again as they were.
        kind: of the promise.
    """
    said = []
    if drawn:
        said.append(
            f"{drawn:,} {'message was' if drawn == 1 else 'messages were'} drawn for this request"
        )
    if plain := new - drawn:
        said.append(
            f"{plain:,} new {'message was' if plain == 1 else 'messages were'} released without a draw"
        )
    if repeated:
        are, they = ("is", "it was") if repeated == 1 else ("are", "they were")
        said.append(
            f"{repeated:,} {are} sent again as {they}: released once, sent again, spent once"
        )
    promise = "The promise is for one release; repeated releases add up"
    promise = "There is no promise" if kind == "none" else promise
    return f"{'; '.join(said) or 'No message was released'}. {promise}."
