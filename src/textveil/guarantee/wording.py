"""Names of numbers and things, and a sentence about a prompt.

In: bounds, counts, types, released texts. Out: English for people, also about what was hidden in a
prompt.
Not here: how statements read (`guarantee`).
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from textveil.text import RELEASED, Item, Kind, Released


def format_number(value: float, digits: int = 4) -> str:
    """Writes a bound for people, rounded up so that it still holds."""
    if not math.isfinite(value) or value == 0:
        return "infinite" if value > 0 else f"{value:g}"
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    # Rounding errors of a computed bound must not cost a whole step.
    return f"{math.ceil(value / step - 1e-9) * step:.10g}"


# ---- what was hidden in a prompt -----------------------------------------------------------------

TYPE_NOUNS = {
    "PERSON": ("person", "persons"),
    "LOCATION": ("place", "places"),
    "ORGANIZATION": ("organization", "organizations"),
    "EMAIL": ("e-mail address", "e-mail addresses"),
    "PHONE": ("phone number", "phone numbers"),
    "CARD": ("card number", "card numbers"),
    "IBAN": ("IBAN", "IBANs"),
    "ACCOUNT": ("account number", "account numbers"),
    "NATIONAL_ID": ("national ID number", "national ID numbers"),
    "IP": ("IP address", "IP addresses"),
    "MAC": ("MAC address", "MAC addresses"),
    "URL": ("web address", "web addresses"),
    "HOST": ("internal host", "internal hosts"),
    "SECRET": ("key or password", "keys or passwords"),
    "CRYPTO": ("wallet address", "wallet addresses"),
    "BIRTH_DATE": ("date of birth", "dates of birth"),
    "DATE": ("date", "dates"),
    "AGE": ("age", "ages"),
    "ADDRESS": ("postal address", "postal addresses"),
    "COORDINATES": ("pair of coordinates", "pairs of coordinates"),
    "MEDICAL_RECORD": ("medical record number", "medical record numbers"),
    "LICENCE": ("licence number", "licence numbers"),
    "PLATE": ("number plate", "number plates"),
    "VIN": ("vehicle number", "vehicle numbers"),
    "BOOKING": ("booking number", "booking numbers"),
    "ID": ("identifying number", "identifying numbers"),
    "HANDLE": ("user name", "user names"),
    "LISTED": ("entry of your list", "entries of your list"),
    "TEXT": ("passage", "passages"),
    "LITERAL": ("placeholder already in the text", "placeholders already in the text"),
    "WORD": ("word", "words"),
}
"""Singular and plural nouns for the types of names and placeholders."""


def describe_hidden(releases: Sequence[Released], earlier: int = 0) -> str:
    """Describes what was hidden in texts in one plain sentence.

    By type and number; it claims nothing about the rest.

    "2 keys or passwords and 1 e-mail address replaced; the rest is unchanged, and nothing is
    claimed about it." Places are counted: a value that occurs twice in a text counts twice. The
    words of one name count once. A drawn name may by chance be the original, and a moved figure,
    too; where names, words or figures were drawn, the sentence says so.

    Args:
        releases: the results of `privatize`, under any profile; only the releases are read.
        earlier: the number of values found now that were sent unprotected earlier in the session.
    """
    if earlier:
        sentence = (
            f"{earlier:,} names or numbers were sent unprotected earlier; from now on they are "
            "hidden."
        )
        if earlier == 1:
            sentence = "1 name or number was sent unprotected earlier; from now on it is hidden."
        return f"{describe_hidden(releases)} {sentence}"
    items = list(chain.from_iterable(released.items for released in releases))
    counts = count_hidden(releases)
    dropped = sum(len(released.mask.dropped) for released in releases)
    casings = [released.mask.casing for released in releases]
    state = "in lower case" if None in casings else "unchanged"
    if not counts and not dropped:
        if not items:
            return "There were no words."
        texts, it = (("text is", "it"), ("texts are", "them"))[len(releases) > 1]
        return (
            f"Nothing was found to hide, so the {texts} {state}; there may still be something "
            f"private in {it}."
        )
    notes = f"{_note_chance(items)}{_note_invented(items)}"
    parts = [f"{_list_replaced(counts)} replaced{notes}"] * bool(counts)
    parts += [f"{format_count(dropped, 'word')} left out"] * bool(dropped)
    return f"{join_parts(parts)}; the rest is {state}, and nothing is claimed about it."


def _list_replaced(counted: Counter[str]) -> str:
    """Lists the number of replaced things of each type.

    In the order of `TYPE_NOUNS`, other types before words.
    """
    order = {type_: i for i, type_ in enumerate(TYPE_NOUNS)}
    types = sorted(counted, key=lambda type_: (order.get(type_, len(order) - 1), type_))
    return join_parts([format_things(type_, counted[type_]) for type_ in types])


def _note_chance(items: Sequence[Item]) -> str:
    """Returns the note that drawn values may be the originals.

    Empty where nothing was drawn.
    """
    name_flags = [
        item.group.partition(" ")[0] in TYPE_NOUNS for item in items if item.kind is Kind.WORD
    ]
    nouns = ["name" if all(name_flags) else "word"] * bool(name_flags)
    nouns += ["figure"] * any(map(_is_moved, items))
    return f" (a drawn {' or '.join(nouns)} may by chance be the original)" if nouns else ""


def _note_invented(items: Sequence[Item]) -> str:
    """Returns the note that invented identifiers stand for some; empty without any."""
    texts = [item.text for item in items if item.kind is Kind.PLACEHOLDER]
    # Each has a digit, and none is written as a placeholder.
    invented = sum(RELEASED.search(text) is None and any(map(str.isdigit, text)) for text in texts)
    return f" ({invented:,} by invented ones that belong to nobody)" if invented else ""


def count_hidden(releases: Sequence[Released]) -> Counter[str]:
    """Counts the hidden things of each type in texts.

    Counted as in `describe_hidden`.
    """
    counts: Counter[str] = Counter()
    for released in releases:
        counts.update(_find_hidden(released))
    return counts


def _find_hidden(released: Released) -> Iterator[str]:
    """Yields the type of everything that was replaced in a text.

    "WORD" for words that are neither name nor identifier.
    """
    types = dict(released.mask.placeholders)
    in_name = False  # whether the next word may belong to the name before it
    for i, item in enumerate(released.items):
        if item.kind is Kind.VERBATIM:
            in_name = in_name and item.text == "."  # as after an initial
            continue
        label, _, part = item.group.partition(" ")
        type_ = types.get(i) or (label if label in TYPE_NOUNS or _is_moved(item) else "WORD")
        if not (in_name and type_ == "PERSON"):
            yield type_
        in_name = label == type_ == "PERSON" and part != "family"


def _is_moved(item: Item) -> bool:
    """Says whether an item is a moved date, age or amount.

    Its group is its type, perhaps a user-defined one.
    """
    return item.kind is Kind.NUMBER and item.group.isupper()


def format_things(type_: str, n: int) -> str:
    """Writes a number of things of a type: "2 persons".

    "1 e-mail address"; "2 of type X" for other types.
    """
    words = TYPE_NOUNS.get(type_)
    return f"{n:,} of type {type_}" if words is None else f"{n:,} {words[n != 1]}"


# ---- parts of sentences --------------------------------------------------------------------------


def format_count(n: int, noun: str) -> str:
    """Writes a number with its noun: "1 word", "2 words"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def join_parts(parts: Sequence[str]) -> str:
    """Joins some parts: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def describe_draws(repeatable: bool) -> str:
    """Writes where draws come from, and what a seed means."""
    if repeatable:
        return (
            "No protection against anyone who knows the seed. The same seed gives the same "
            "release of the same texts and options, and unrelated draws for others; statements of "
            "seeded releases do not add up."
        )
    return "Draws come from AES, keyed by the operating system."
