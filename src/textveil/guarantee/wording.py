"""How numbers and things are called, and what was hidden in a prompt.

In: bounds, counts, types, released texts. Out: English for people.
Not here: how statements read (`guarantee`).
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from textveil.text import Item, Kind, Released


def number(value: float, digits: int = 4) -> str:
    """A bound for people to read, rounded up so that it is still a bound."""
    if not math.isfinite(value) or value == 0:
        return "infinite" if value > 0 else f"{value:g}"
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / step - 1e-9) * step:.10g}"


# ---- what was hidden in a prompt ---------------------------------------------------------------------------

THINGS = {
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
    "DATE": ("personal date", "personal dates"),
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
    "LITERAL": ("placeholder of the text's own", "placeholders of the text's own"),
    "WORD": ("word", "words"),
}
"""What the types of names and placeholders are called: one of them, and several."""


def hidden(releases: Sequence[Released], earlier: int = 0) -> str:
    """What was hidden in texts, by type and number, in one plain sentence that claims nothing about the rest.

    "2 keys or passwords and 1 e-mail address replaced; the rest is unchanged, and nothing is claimed about it."
    Places are counted: what stands in a text twice counts twice. Several words of one name count once. A name that is
    drawn from a list may by chance be the one that stood there, and a figure that is moved too; where names, words or
    figures were drawn, the sentence says so.

    Args:
        releases: what `privatize` made of the texts, under any profile; only the releases are looked at.
        earlier: how many values that were found now were sent earlier in the session, where nothing found them.
    """
    if earlier:
        passed = f"{earlier:,} names or numbers were sent earlier as they stand; from now on they are hidden."
        if earlier == 1:
            passed = "1 name or number was sent earlier as it stands; from now on it is hidden."
        return f"{hidden(releases)} {passed}"
    items = list(chain.from_iterable(released.items for released in releases))
    found = hidden_counts(releases)
    dropped = sum(len(released.mask.dropped) for released in releases)
    casings = [released.mask.casing for released in releases]
    rest = "in lower case" if None in casings else "unchanged"
    if not found and not dropped:
        if not items:
            return "There were no words."
        texts, it = (("text is", "it"), ("texts are", "them"))[len(releases) > 1]
        return f"Nothing was found to hide, so the {texts} {rest}; there may still be something private in {it}."
    done = [f"{_replaced(found)} replaced{_by_chance(items)}"] * bool(found)
    done += [f"{count(dropped, 'word')} left out"] * bool(dropped)
    return f"{listing(done)}; the rest is {rest}, and nothing is claimed about it."


def _replaced(found: Counter[str]) -> str:
    """How much of each type was replaced, in the order of `THINGS`, those of other types before words."""
    order = {type_: i for i, type_ in enumerate(THINGS)}
    types = sorted(found, key=lambda type_: (order.get(type_, len(order) - 1), type_))
    return listing([things(type_, found[type_]) for type_ in types])


def _by_chance(items: Sequence[Item]) -> str:
    """What of the replaced was drawn, and so may be what stood there; empty where nothing was."""
    drawn = [item.group.partition(" ")[0] in THINGS for item in items if item.kind is Kind.WORD]
    what = ["name" if all(drawn) else "word"] * bool(drawn)
    what += ["figure"] * any(map(_moved, items))
    return f" (a drawn {' or '.join(what)} may by chance be the original)" if what else ""


def hidden_counts(releases: Sequence[Released]) -> Counter[str]:
    """How much of each type was hidden in texts; counted as in `hidden`."""
    found: Counter[str] = Counter()
    for released in releases:
        found.update(_hidden(released))
    return found


def _hidden(released: Released) -> Iterator[str]:
    """The type of everything in a text that was replaced; "WORD" for words that are neither name nor identifier."""
    types = dict(released.mask.placeholders)
    named = False  # whether the next word may belong to the name before it
    for i, item in enumerate(released.items):
        if item.kind is Kind.VERBATIM:
            named = named and item.text == "."  # as after an initial
            continue
        label, _, part = item.group.partition(" ")
        type_ = types.get(i) or (label if label in THINGS or _moved(item) else "WORD")
        if not (named and type_ == "PERSON"):
            yield type_
        named = label == type_ == "PERSON" and part != "family"


def _moved(item: Item) -> bool:
    """Whether an item is a date, an age or an amount that was moved: its group is its type, perhaps a user's own."""
    return item.kind is Kind.NUMBER and item.group.isupper()


def things(type_: str, n: int) -> str:
    """So many of a type of names or placeholders: "1 e-mail address", "2 persons"; "2 of type X" for others."""
    words = THINGS.get(type_)
    return f"{n:,} of type {type_}" if words is None else f"{n:,} {words[n != 1]}"


# ---- parts of sentences ------------------------------------------------------------------------------------


def count(n: int, what: str) -> str:
    """So many of something: "1 word", "2 words"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def listing(parts: Sequence[str]) -> str:
    """Some parts as one: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""
