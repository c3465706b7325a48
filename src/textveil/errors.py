"""The exception tree.

In: nothing. Out: one class per kind of failure, all below `TextveilError`.
Not here: the messages. They are written where a rule is checked, and never hold user text.

    TextveilError
    ├── ConfigError        an option, profile or configuration file is wrong
    │   ├── UnknownName    no mechanism, table, profile or option of that name
    │   └── MissingExtra   a library that this needs is not installed
    ├── InputError         a text or file cannot be taken as it is
    ├── VocabularyError    a word is outside the table and `oov` is `error`
    ├── TableError         an embedding table is missing, corrupt or of the wrong kind
    ├── ModelError         a language model or adapter is missing, corrupt or of the wrong kind
    ├── EndpointError      a language model behind an endpoint cannot be reached, refused, or gave no text
    ├── DetectorError      a detector failed, took too long, or found what is not in the text
    ├── BudgetError        an epsilon or mechanism parameter is missing or out of range
    ├── MechanismError     a mechanism failed, or released what it must not
    ├── RandomnessError    a random stream was forked, used twice or lost its entropy
    ├── GuaranteeError     statements that cannot be composed
    ├── StoreError         a store of sessions cannot be opened, read or written
    ├── LimitReached       a release would spend more than an account may
    └── OutputError        a result cannot be written

`TextveilWarning` stands beside it: something a user should know before trusting the output.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

MIN_SIMILARITY = 0.75
"""How alike the last parts of two dotted names are, from 0 to 1, if one may be meant by the other."""

MAX_LISTED_NAMES = 80
"""Names that an error lists at most."""


class TextveilError(Exception):
    """Any failure that textveil foresees. The message is one line and never holds user text."""


class TextveilWarning(UserWarning):
    """Something a user should know before trusting the output. One line, never user text."""


class ConfigError(TextveilError, ValueError):
    """An option, profile or configuration file is wrong."""


# ---- names in messages -----------------------------------------------------------------------------------------------

MAX_NAME_CHARACTERS = 80
"""Characters of a name that a message shows."""

_PLAIN = re.compile(r"[^\W\d][\w$-]*")
_DATE = re.compile(r"(?:19|20)\d\d([-_./]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?!\d)")
_PRIVATE = re.compile(
    r"[^\s@]@[^\s@]+\.[^\s@]"  # an address
    r"|\d(?:[ ().\-/:]{0,2}\d){6}"  # a number of a card, an account or a telephone
    r"|(?:\d{1,3}\.){3}\d|(?:[0-9a-fA-F]{1,4}::?){3}[0-9a-fA-F]"  # an address of a machine
    r"|(?=[A-Z]*\d)(?=(?:[A-Z]*\d){4})[A-Z\d]{9}"  # a number of a person or an account, letters among the digits
    r"|(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{16}|(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z\d]{16}"  # a key
    r"|(?=[\w+/=-]*\d[\w+/=-]*\d)(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])[\w+/=]{16}"
)


def has_private_form(name: str) -> bool:
    """Says whether a name has the form of an address, a number of somebody or a key; a date has not."""
    return _PRIVATE.search(_DATE.sub("", unicodedata.normalize("NFKC", name))) is not None


def quote(name: object) -> str:
    """Quotes the name of a field, column or file in a message: on one line, cut, and not if it looks private."""
    text = str(name)
    if has_private_form(text):
        return "like that"
    return repr(
        text if len(text) <= MAX_NAME_CHARACTERS else text[: MAX_NAME_CHARACTERS - 3] + "..."
    )


def quote_short(name: str) -> str:
    """Quotes a name where a text may have been given in its place: one of more than three words is taken for a text."""
    return quote(name) if len(name.split()) <= 3 else "like that"


def quote_file(path: object) -> str:
    """Quotes the name of a file, as it was typed but for what signs in: its folders are cut first.

    Args:
        path: a path, or the URI of a file elsewhere.
    """
    text = re.sub(r"(?<=://)[^/]*@", "", str(path))
    text = text.partition("?")[0] if "://" in text else text  # behind it may be what signs in
    return repr(
        text
        if len(text) <= 3 * MAX_NAME_CHARACTERS
        else "..." + text[3 - 3 * MAX_NAME_CHARACTERS :]
    )


def quote_path(
    path: Sequence[str | int],
    value: object = None,
    is_private: Callable[[str], bool] = has_private_form,
) -> str:
    """Writes where a value stands in JSON, such as messages[0].content[1].text.

    Args:
        path: the names of fields and the numbers of items that lead to it.
        value: the whole, in which a field whose name is not shown is counted.
        is_private: says whether the name of a field is not shown.
    """
    location = ""
    for step in path:
        if isinstance(step, int):
            location += f"[{step}]"
        elif is_private(step):
            fields = list(value) if isinstance(value, Mapping) else []
            location += f"[field {fields.index(step) + 1}]" if step in fields else "[field]"
        elif _PLAIN.fullmatch(step) and step.isascii() and len(step) <= MAX_NAME_CHARACTERS:
            location += f".{step}" if location else step
        else:
            short = len(step) <= MAX_NAME_CHARACTERS
            location += (
                f"[{json.dumps(step if short else step[: MAX_NAME_CHARACTERS - 3] + '...')}]"
            )
        value = _get_item(value, step)
    return (
        location
        if len(location) <= 4 * MAX_NAME_CHARACTERS
        else f"{location[: 2 * MAX_NAME_CHARACTERS]}...{location[3 - 2 * MAX_NAME_CHARACTERS :]}"
    )


def _get_item(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (TypeError, KeyError, IndexError):
        return None


def list_names(names: Iterable[object]) -> str:
    """The names as a message lists them: those of a long list not all, and none that looks private."""
    all_names = [str(name) for name in names]
    safe = [name for name in all_names if not has_private_form(name)][:MAX_LISTED_NAMES]
    spellings = [
        name if re.fullmatch(r"[\w.:/+*$@-]{1,80}", name) else quote(name) for name in safe
    ]
    hidden_count = len(all_names) - len(safe)
    return (
        ", ".join(spellings) + (f" and {hidden_count:,} more" if hidden_count else "")
        if spellings
        else "none"
        if not all_names
        else (f"{hidden_count:,}, which are not shown")
    )


def suggest_names(name: str, candidates: Iterable[str]) -> str:
    """Asks whether the nearest of the known names is meant, or lists them where none is near.

    Args:
        name: what was typed.
        candidates: the names that there are.
    """
    names = list(candidates)
    near = find_nearest(name, names)
    return f"did you mean {near!r}?" if near is not None else f"known: {list_names(names)}"


def find_nearest(name: str, names: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name that is most like another one, or ends like it; None where none is.

    Args:
        name: what was typed.
        names: the names that there are.
        cutoff: how much, from 0 to 1.
    """
    originals = {
        candidate.lower(): candidate for candidate in names if not has_private_form(candidate)
    }
    name = name.lower()
    section = name[: name.rfind(".") + 1]
    # says nothing about likeness
    prefix = section if all(candidate.startswith(section) for candidate in originals) else ""
    ends = {candidate.removeprefix(prefix): originals[candidate] for candidate in originals}
    near = get_close_matches(name.removeprefix(prefix), ends, n=1, cutoff=cutoff)
    last = name.rpartition(".")[2]
    near = near or [
        end
        for end in ends
        if get_close_matches(last, [end.rpartition(".")[2]], cutoff=MIN_SIMILARITY)
    ]
    return ends[near[0]] if near else None


class UnknownName(ConfigError):
    """No mechanism, table, profile or option has this name.

    Args:
        kind: the kind of name, in singular ("mechanism").
        name: the name asked for.
        known_names: all names of this kind; near ones are proposed.
    """

    def __init__(self, kind: str, name: str, known_names: Iterable[str]) -> None:
        names = sorted(known_names)
        super().__init__(f"no {kind} is named {quote_short(name)}; {suggest_names(name, names)}")
        self.kind, self.name, self.known_names = kind, name, names

    def __reduce__(self) -> tuple[type["UnknownName"], tuple[str, str, list[str]]]:
        return UnknownName, (self.kind, self.name, self.known_names)


class MissingExtra(ConfigError, ImportError):
    """A library that only some verbs need is not installed; the message says how to install it."""


class InputError(TextveilError, ValueError):
    """A text or file cannot be taken as it is."""


class VocabularyError(InputError):
    """A word is outside the table and the option `words.oov` is `error`."""


class TableError(TextveilError):
    """An embedding table is missing, corrupt or of the wrong kind."""


class ModelError(TextveilError):
    """A language model or adapter is missing, corrupt or of the wrong kind."""


class EndpointError(TextveilError):
    """A language model behind an endpoint cannot be reached, refused, or gave no text."""


class RequestLimitReached(TextveilError):
    """A run has sent as many requests as it may."""


class DetectorError(TextveilError):
    """A detector failed, took too long, or returned what no detector may."""


class BudgetError(ConfigError):
    """An epsilon or a mechanism's parameter is missing or out of range."""


class MechanismError(TextveilError, RuntimeError):
    """A mechanism failed, or released what it must not; nothing left."""


class RandomnessError(TextveilError, RuntimeError):
    """A random stream was carried over a fork, or the source of entropy repeats itself."""


class GuaranteeError(TextveilError, ValueError):
    """Statements of unlike kinds cannot be composed."""


class StoreError(TextveilError):
    """A store of sessions cannot be opened, read or written: a key is missing or wrong, or something was changed."""


class LimitReached(TextveilError):
    """A release would spend more than its account may; nothing was drawn."""


class OutputError(TextveilError, OSError):
    """A result cannot be written."""
