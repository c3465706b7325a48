"""Releasing: the texts of a message as they are sent, text or JSON, and what is promised about them.

In: an utterance and the session of its conversation. Out: its released texts, and the promise.
Not here: where the texts stand (`requests`), what is remembered of them (`session.chains`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import regex

from textveil.gateway.requests import JSON_FORM, LABEL_FORM, SCHEMA_FORM
from textveil.guarantee import summarize
from textveil.pipeline import Privatizer, Result
from textveil.session import Session, Utterance

PROMISE = ("mechanism", "kind", "metric", "epsilon", "epsilon_ldp", "unit", "words", "protected")
"""What is promised of a request: the largest bound per word, over all messages."""


class Releasing:
    """Releases the texts of messages.

    Args:
        privatizer: for what users and models say.
        schemas: for what programs say about their tools; nothing is promised about that.
    """

    def __init__(self, privatizer: Privatizer, schemas: Privatizer) -> None:
        self._privatizer, self._schemas = privatizer, schemas

    def __call__(self, message: Utterance, session: Session) -> tuple[list[str], dict[str, Any]]:
        """The texts of a message, and what is promised about them."""
        forms = message.forms or ("",) * len(message.texts)
        made, results = list(message.texts), list[Result]()
        plain = [i for i, form in enumerate(forms) if form in ("", LABEL_FORM)]
        found = list(self._privatizer.privatize_many([message.texts[i] for i in plain], session)) if plain else []
        for i, result in zip(plain, found, strict=True):
            made[i] = _as_label(result.text) if forms[i] == LABEL_FORM else result.text
        for i, form in enumerate(forms):
            if form == JSON_FORM:
                made[i], more = _of_json(self._privatizer, message.texts[i], session)
                found += more
            elif form == SCHEMA_FORM:
                made[i], _ = _of_json(self._schemas, message.texts[i], session)
        results += found
        if not results:
            return made, {}
        promise = summarize([result.guarantee for result in results]).to_json()
        return made, {name: promise[name] for name in PROMISE}


def _as_label(text: str) -> str:
    """A text as one word, as names of participants must be."""
    return regex.sub(r"[^\p{L}\p{N}_.\-]+", "_", text).strip("_")


def _of_json(privatizer: Privatizer, text: str, session: Session) -> tuple[str, list[Result]]:
    """JSON whose values are released one by one, after it was read as a whole: its names tell what values are.

    A name of a field is released only where something private stands in it. A number that changes becomes a string.
    Without a change the text stays as it is written. What is no JSON is released as text.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict | list | str):
        result = privatizer.privatize(text, session)
        return result.text, [result]
    privatizer.learn([json.dumps(value, ensure_ascii=False)], session)
    sought = session.snapshot().sought

    def private(name: str) -> bool:
        return any(value.text in name for value in sought.standing(name))

    texts = [str(each) for each in _texts(value, private)]
    results = list(privatizer.privatize_many(texts, session))
    made = [result.text for result in results]
    return text if made == texts else json.dumps(_with(value, private, iter(made)), ensure_ascii=False), results


def _texts(value: Any, private: Callable[[str], bool]) -> Iterator[str | int | float]:
    """The strings and numbers of any JSON, and the names of fields that are private."""
    if isinstance(value, dict):
        for name, each in value.items():
            if private(name):
                yield name
            yield from _texts(each, private)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, private)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def _with(value: Any, private: Callable[[str], bool], made: Iterator[str]) -> Any:
    """The same JSON with other texts."""
    if isinstance(value, dict):
        return {next(made) if private(name) else name: _with(each, private, made) for name, each in value.items()}
    if isinstance(value, list):
        return [_with(each, private, made) for each in value]
    if isinstance(value, str):
        return next(made)
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = next(made)
        return value if text == str(value) else text
    return value


def largest(promises: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The promise about several messages of one configuration: the largest bound per word of any, and all words."""
    said = [each for each in promises if each]
    if not said:
        return {}
    made = {name: said[0][name] for name in PROMISE}
    for name in ("epsilon", "epsilon_ldp"):
        values = [each[name] for each in said]
        made[name] = next((each for each in values if not isinstance(each, int | float)), None) or max(values)
    for name in ("words", "protected"):
        made[name] = sum(each[name] for each in said)
    if any(each["kind"] == "none" for each in said):
        made["kind"] = "none"
    return made


def told(drawn: int, repeated: int) -> str:
    """How often the messages of a request were drawn, and what that means for the promise."""
    now = f"{drawn:,} {'message was' if drawn == 1 else 'messages were'} drawn for this request"
    are, they = ("is", "it was") if repeated == 1 else ("are", "they were")
    again = f"; {repeated:,} {are} sent again as {they}: drawn once, released again, spent once" if repeated else ""
    return f"{now}{again}. The promise is for one release; repeated releases add up."
