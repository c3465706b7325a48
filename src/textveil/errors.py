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

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

LIKE = 0.75
"""How alike the last parts of two dotted names are, from 0 to 1, if one may be meant by the other."""

MOST = 80
"""Names that an error lists at most."""


class TextveilError(Exception):
    """Any failure that textveil foresees. The message is one line and never holds user text."""


class TextveilWarning(UserWarning):
    """Something a user should know before trusting the output. One line, never user text."""


class ConfigError(TextveilError, ValueError):
    """An option, profile or configuration file is wrong."""


def shown(name: str) -> str:
    """A name as a message may show it: what is long or has spaces may be a text, given where a name belongs."""
    return repr(name) if re.fullmatch(r"[\w.:/-]{0,60}", name) else "like that"


def _some(names: Sequence[str]) -> str:
    """The names, those of a long list not all: a library may know thousands of tasks."""
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more if names else "none"


class UnknownName(ConfigError):
    """No mechanism, table, profile or option has this name.

    Args:
        what: the kind of name, in singular ("mechanism").
        name: the name asked for.
        known: all names of this kind; near ones are proposed.
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        section = name[: name.rfind(".") + 1]
        shared = section if all(each.startswith(section) for each in names) else ""  # says nothing about likeness
        ends = {each.removeprefix(shared): each for each in names}
        near = get_close_matches(name.removeprefix(shared), ends, n=1, cutoff=0.5)
        last = name.rpartition(".")[2]
        near = near or [end for end in ends if get_close_matches(last, [end.rpartition(".")[2]], cutoff=LIKE)]
        hint = f"did you mean {ends[near[0]]!r}?" if near else f"known: {_some(names)}"
        super().__init__(f"no {what} is named {shown(name)}; {hint}")
        self.what, self.name, self.known = what, name, names

    def __reduce__(self) -> tuple[type["UnknownName"], tuple[str, str, list[str]]]:
        return UnknownName, (self.what, self.name, self.known)


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
