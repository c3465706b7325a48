"""How statements read: in one sentence, in three lines, in full; and what was hidden in a prompt.

In: a `Guarantee`, or released texts. Out: English for people.
Not here: what is stated (`guarantee`), and when one statement holds for several releases or texts (`accounting`).
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from textveil.guarantee.claim import Restricted
from textveil.randomness import Values
from textveil.text import Item, Kind, Released

if TYPE_CHECKING:
    from textveil.guarantee.guarantee import Group, Guarantee, Loss


def number(value: float, digits: int = 4) -> str:
    """A bound for people to read, rounded up so that it is still a bound."""
    if not math.isfinite(value) or value == 0:
        return "infinite" if value > 0 else f"{value:g}"
    step = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return f"{math.ceil(value / step - 1e-9) * step:.10g}"


# ---- one sentence ------------------------------------------------------------------------------------------


def summary(guarantee: "Guarantee") -> str:
    """The statement in one plain sentence: what was done to the words, and what that guarantees.

    Promises that hold for some pairs of words only are not in it; `headline` and `explain` have them.
    """
    parts = [
        *(_by_group(guarantee) if guarantee.groups else _together(guarantee)),
        *_public(guarantee),
    ]
    if not guarantee.protected:
        parts = ["no word was protected", *parts] if parts else ["there were no words"]
    if guarantee.repeatable:
        parts.append("repeatable, so no protection against anyone who knows the seed")
    if guarantee.claim.found and guarantee.protected:
        parts.append(guarantee.claim.found)
    said = "; ".join(parts)
    where = f"in {guarantee.texts:,} texts" if guarantee.texts > 1 else ""
    if guarantee.kind == "none":
        whole = (
            "as a whole" if any(math.isfinite(group.epsilon) for group in guarantee.groups) else ""
        )
        where = " ".join(
            filter(None, ("no guarantee", where, whole, f"({'; '.join(guarantee.reasons)})"))
        )
    said = f"{where}: {said}" if where else said
    return f"{said[0].upper()}{said[1:]}."


def _together(guarantee: "Guarantee") -> Iterator[str]:
    """What became of the words that are not public, where words are not grouped."""
    claim, values = guarantee.claim, guarantee.epsilon_per_word
    promised = claim.kind != "none"
    bare = int(guarantee.total(np.isinf(values))) if promised else 0
    drawn = guarantee.protected + guarantee.repeated - guarantee.placeholders - bare
    if drawn and promised:
        spent = values[np.isfinite(values) & (values > 0)]
        level = f"{_epsilon(spent)} ({_any_two(guarantee)})"
        if claim.kind == "metric" and len(spent):
            level = f"{_epsilon(spent)} per unit of {claim.metric} distance{_plus(claim.additive, ' plus ')}"
            if math.isfinite(most := float(claim.ldp(spent).max())):
                level += f", at most {number(most)} for {_any_two(guarantee)}"
        yield f"{count(drawn, 'word')} {_replaced(guarantee)} at {level}{_alike(guarantee)}"
    elif drawn:
        gone = " or left out" if "dropped words" in guarantee.mask else ""
        passed = " or passed unprotected" if guarantee.infinite else ""
        yield f"{count(drawn, 'word')} put through {claim.mechanism}{gone}{passed}"
    if guarantee.placeholders:
        yield _became(guarantee.placeholders, count(guarantee.placeholders, "word"))
    if bare:
        yield f"{count(bare, 'word')} {_unprotected(guarantee)}"


def _by_group(guarantee: "Guarantee") -> Iterator[str]:
    """What became of the words that are not public, group by group; epsilons are in local DP."""
    drawn = [
        group
        for group in guarantee.groups
        if group.by not in ("name", FIGURE, "placeholder", "nothing")
    ]
    names = [group for group in guarantee.groups if group.by == "name"]
    promised = [group for group in drawn if math.isfinite(group.epsilon)]
    if len({number(group.epsilon) for group in promised}) > 1:
        said = [f"{_of_group(group)} at {_epsilon(group.epsilon)}" for group in promised]
    else:
        said = (
            [f"{count(_words(promised), 'word')} at {_epsilon(promised[0].epsilon)}"]
            if promised
            else []
        )
    if names:
        said.append(
            f"{count(_words(names), 'name')} at {_epsilon(*(group.epsilon for group in names))}"
        )
    if said:
        said[0] = said[0].replace(" at ", f" {_replaced(guarantee)} at ", 1)
        yield f"{listing(said)} ({_any_two(guarantee)}){_alike(guarantee)}"
    if through := _words(drawn) - _words(promised):
        yield f"{count(through, 'word')} put through {guarantee.claim.mechanism}"
    for group in guarantee.groups:
        if group.by == FIGURE:
            alike = " (all dates alike)" if group.unit == "day" else ""
            yield f"{things(group.label, group.words)} moved{alike} at epsilon {_per_unit(group)}"
    if holes := [group for group in guarantee.groups if group.by == "placeholder"]:
        yield _became(_words(holes), listing([things(group.label, group.words) for group in holes]))
    if passed := _words([group for group in guarantee.groups if group.by == "nothing"]):
        yield f"{count(passed, 'word')} {_unprotected(guarantee)}"


def _public(guarantee: "Guarantee") -> Iterator[str]:
    """What passed because it is on the public list."""
    words = guarantee.words - guarantee.covered - guarantee.punctuation
    said = [count(words, "common word")] * (words > 0)
    said += [count(guarantee.punctuation, "punctuation mark")] * (guarantee.punctuation > 0)
    if said:
        yield f"{listing(said)} passed"


def _epsilon(*values: "float | Values") -> str:
    """The largest of some epsilons: "epsilon 8", or "epsilon up to 8" where some are smaller."""
    found = np.concatenate([np.atleast_1d(each) for each in values])
    low, high = found.min(initial=math.inf), found.max(initial=0.0)
    return f"epsilon {'up to ' if number(min(low, high)) != number(high) else ''}{number(high)}"


def _any_two(guarantee: "Guarantee") -> str:
    """The words that the bound compares."""
    if guarantee.unit == "wordpiece":
        return "any two words of as many pieces"
    return "any two words" if guarantee.oov == "surrogate" else "any two words of the table"


def _replaced(guarantee: "Guarantee") -> str:
    codes = guarantee.claim.codes
    among = (
        f" among {' to '.join(f'{each:,}' for each in sorted({min(codes), max(codes)}))} codes"
        if codes
        else ""
    )
    if codes and guarantee.claim.nested and guarantee.releases > 1:  # perhaps at several levels
        among = f" among at most {max(codes):,} codes"
    return f"{'drawn' if guarantee.draws else 'replaced'}{among}"


def _alike(guarantee: "Guarantee") -> str:
    alike = ", equal words alike" if guarantee.repeated else ""
    if guarantee.lasting:
        alike = ", equal words alike in all sessions of this subject"
    return (
        f"{alike}, {guarantee.drawn_before:,} as drawn before" if guarantee.drawn_before else alike
    )


def _of_group(group: "Group") -> str:
    """How many words a group has, and which group it is."""
    adjective = _ADJECTIVES.get(group.label)
    return (
        things(group.label, group.words)
        if adjective is None
        else count(group.words, f"{adjective} word")
    )


_ADJECTIVES = {
    "sensitive-important": "sensitive and important",
    "sensitive": "sensitive",
    "important": "important",
    "other": "other",
}


def _words(groups: "Sequence[Group]") -> int:
    return sum(group.words for group in groups)


FIGURE = "figure"
"""What dates, ages and amounts that are moved are replaced by; see `Group.by`."""


def _per_unit(group: "Group") -> str:
    return f"{number(group.per_unit)} per {group.unit}"


def _became(n: int, what: str) -> str:
    return f"{what} became {'a placeholder' if n == 1 else 'placeholders'}"


def _unprotected(guarantee: "Guarantee") -> str:
    """What became of words with an infinite epsilon: they passed, or a paper's own rule for unknown words applied."""
    ruled = guarantee.oov in ("uniform", "drop") or (
        "moved numbers" in guarantee.mask and not guarantee.groups
    )
    return "went unprotected" if ruled else "passed unprotected"


# ---- three lines -------------------------------------------------------------------------------------------


def headline(guarantee: "Guarantee") -> str:
    """The statement in three lines: the bound, where it holds, and what is released besides."""
    first = (
        _bound(guarantee)
        + _within_codes(guarantee)
        + _aside(guarantee)
        + _spent_by_group(guarantee)
        + _per_person(guarantee)
    )
    return "\n".join((first, _domain(guarantee), _besides(guarantee)))


def _bound(guarantee: "Guarantee") -> str:
    claim = guarantee.claim
    name = claim.mechanism
    if guarantee.kind == "none":
        return f"{name}: no finite bound holds: {'; '.join(guarantee.reasons)}."
    if not guarantee.protected:
        return f"{name}: no word was protected, so there is nothing to bound."
    distinct = "distinct " * bool(guarantee.repeated)  # equal words that are replaced alike are one
    each = (
        f"each of {guarantee.protected:,} {distinct}protected words"
        if guarantee.protected > 1
        else "the protected word"
    )
    each += f" in {guarantee.texts:,} texts" if guarantee.texts > 1 else ""
    if guarantee.kind == "ldp" or guarantee.epsilon == 0:
        return f"{name}: {each} has epsilon at most {number(guarantee.epsilon)} for {_any_two(guarantee)} (local DP)."
    words = "words" if guarantee.unit == "word" else "words of as many pieces"
    return (
        f"{name}: {each} has epsilon at most {number(guarantee.epsilon)} per unit of {claim.metric} distance"
        f"{_plus(claim.additive, ', plus ')}, and at most {number(guarantee.epsilon_ldp)} for any two {words} of "
        f"{claim.table} (diameter {number(claim.diameter, 5)}{claim.view and ' ' + claim.view})."
    )


def _within_codes(guarantee: "Guarantee") -> str:
    """What holds for words that have one code, which the mechanism does not tell apart."""
    if not guarantee.claim.codes or guarantee.kind == "none" or not guarantee.epsilon:
        return ""
    codes = guarantee.claim.codes
    if len(codes) > 1:
        said = ", ".join(
            f"{label} {each:,}" for label, each in zip(_ADJECTIVES, codes, strict=True)
        )
        return f" For two words of one group and one of its codes it is 0 (codes by group: {said})."
    return f" For two words of one of its {codes[0]:,} codes it is 0."


def _aside(guarantee: "Guarantee") -> str:
    """The promise for some pairs of words: after the bound, and never without saying which pairs."""
    promise, within = guarantee.restricted, guarantee.within
    if promise is None:
        return ""
    if promise.kind == "ldp" or within == 0:
        bound = f"epsilon at most {number(within)} (local DP)"
    else:
        bound = (
            f"epsilon at most {number(within)} per unit of {promise.metric} distance"
            f"{_plus(promise.additive, ', plus ')}, and at most {number(promise.ldp(within))} in all "
            f"(diameter {number(promise.diameter, 5)})"
        )
    return f" Between {promise.domain} only: {bound}."


def _spent_by_group(guarantee: "Guarantee") -> str:
    """What each group spends; where no bound holds for all words, it holds only between texts with the same mask."""
    if not guarantee.groups:
        return ""
    said = ", ".join(_spends(group) for group in guarantee.groups)
    domain = f"By group, for {_any_two(guarantee)}"
    if guarantee.kind == "none":
        domain = f"Between texts with the same mask, by group and for {_any_two(guarantee)}"
    return f" {domain}: {said}."


def _per_person(guarantee: "Guarantee") -> str:
    """What one person loses who is behind all values of a session."""
    said = "; ".join(map(loss, guarantee.per_person))
    return f" In the session so far, for {_any_two(guarantee)}: {said}." if said else ""


def loss(of: "Loss") -> str:
    """What values of one type have lost.

    "PERSON: 4 draws of names, at most 6 each, 24 for one person who has all of them".

    Draws, not values: what is drawn by several mechanisms, or at several levels of a book, is drawn by each of them.
    """
    said = [f"{count(of.drawn, 'draw')} of {f'a {of.by}' if of.drawn == 1 else f'{of.by}s'}"]
    if of.released > of.drawn:
        said.append(f"released {of.released:,} times in all")
    if of.infinite:
        said.append(
            f"no finite bound for {'any' if of.infinite == of.drawn else f'{of.infinite:,}'} of them"
        )
    if (finite := of.drawn - of.infinite) > 0:
        others = "of the others " if of.infinite else ""
        said.append(f"at most {number(of.most / 1e6)}{' each' if finite > 1 else ''}")
        if finite > 1:
            said.append(
                f"{number(of.total / 1e6)} for one person who has all {others or 'of them'}".rstrip()
            )
    return f"{of.label}: {', '.join(said)}"


def _spends(group: "Group") -> str:
    words = count(group.words, group.by if group.by in ("placeholder", "name", FIGURE) else "word")
    if group.by == FIGURE:
        most = f", at most {number(group.epsilon)}" if math.isfinite(group.epsilon) else ""
        return f"{group.label} {_per_unit(group)}{', all dates alike' if group.unit == 'day' else most} ({words})"
    if group.by == "nothing":
        return f"{group.label} passes ({words})"
    return f"{group.label} {'at most ' if group.epsilon else ''}{number(group.epsilon)} ({words})"


def _domain(guarantee: "Guarantee") -> str:
    public = guarantee.words - guarantee.covered
    passed = ""
    if public:
        passed = f" Not covered: {public:,} of {count(guarantee.words, 'word')}, passed because they are public."
    bare = int(guarantee.total(np.isinf(guarantee.epsilon_per_word)))
    if any(
        group.by == FIGURE for group in guarantee.groups
    ):  # the bound of some is infinite, and they do not pass
        bare = _words([group for group in guarantee.groups if group.by == "nothing"])
    if guarantee.claim.kind != "none" and bare:
        passed += f" {count(bare, 'more word')} {_unprotected(guarantee)}."
    if not guarantee.protected:
        return passed.strip() or "The text has no words."
    if guarantee.kind == "none":
        nothing = "Beyond that, nothing" if guarantee.restricted or guarantee.groups else "Nothing"
        return f"{nothing} bounds what the output tells about the protected words.{passed}"
    return f"This holds for any two texts with the same mask that differ in {guarantee.neighbours}.{passed}"


def _besides(guarantee: "Guarantee") -> str:
    draws = "Draws come from AES, keyed by the operating system."
    if not guarantee.draws:
        draws = "Nothing is drawn."
    elif guarantee.repeatable:
        draws = (
            "No protection against anyone who knows the seed. The same seed gives the same release of the same texts "
            "and options, and unrelated draws for others; statements of seeded releases do not add up."
        )
    mask = ", ".join(guarantee.mask)
    return f"The mask is released too, and nothing is claimed about it: {mask}. {_for_one_release(guarantee)} {draws}"


def _for_one_release(guarantee: "Guarantee") -> str:
    """What other releases of the same text amount to; those of a seed have a rule of their own."""
    said = "This is for one release"
    if guarantee.releases > 1:
        said = f"This is for {guarantee.releases:,} releases together"
    said += "." if guarantee.repeatable else "; repeated releases add up."
    if n := guarantee.drawn_before:
        were, they = ("was", "it spends") if n == 1 else ("were", "they spend")
        of = "of this subject" if guarantee.lasting else "of the session"
        said += f" {n:,} of these words {were} drawn in an earlier release {of}: drawn once, {they} once."
    if guarantee.lasting:
        said += (
            " Each word keeps its draw in all sessions of this subject, for good (words.lasting), as in a random "
            "table: all releases together spend epsilon once for each distinct word, and words can be told by how "
            "often they occur and what they stand beside."
        )
    return said


# ---- all of it ---------------------------------------------------------------------------------------------


def explain(guarantee: "Guarantee") -> str:
    """The whole statement: headline, formula, domain, values per word, assumptions and caveats."""
    claim = guarantee.claim
    lines = [headline(guarantee), ""]
    if guarantee.kind == "metric":
        lines += [
            _PAIRS,
            f"  {_LOSS} <= epsilon_j * d(x_j, x'_j){_plus(claim.additive)}   for every output y,",
            f"  d = {_METRICS[claim.metric or '']} between the rows of {claim.table}.",
        ]
    elif guarantee.kind == "ldp":
        lines += [_PAIRS, f"  {_LOSS} <= epsilon_j   for every output y."]
    if guarantee.protected and guarantee.kind != "none":
        spent = guarantee.epsilon_per_word
        total, everywhere = (
            number(guarantee.total(spent)),
            number(guarantee.total(guarantee.ldp_per_word)),
        )
        lines += [
            f"epsilon_j: {_between(spent.min(), spent.max())}, sum {total} over {_texts(guarantee.texts)}.",
            f"Where two texts differ in several words, the bounds add up: {everywhere} where they differ in all.",
        ]
        if guarantee.kind == "metric" and math.isfinite(claim.most):
            lines.append(
                f"The mechanism caps distances, so the bound for any two words is at most {number(claim.most)}, "
                "whatever their distance."
            )
    if guarantee.restricted:
        lines += _explain_restricted(guarantee, guarantee.restricted)
    drawn = guarantee.parameter[np.isfinite(guarantee.parameter)]
    if claim.parameter and len(drawn):
        lines.append(f"{claim.parameter}: {_between(drawn.min(), drawn.max())}.")
    if guarantee.unit == "wordpiece":
        lines.append(
            "A word's epsilon is the sum over its word pieces; two words are as far apart as their farthest pieces."
        )
    lines.append(
        f"{_INPUTS.get(guarantee.oov, _INPUTS['surrogate'])} "
        f"{guarantee.oov_share:.1%} of the words not on the public list were outside the table."
    )
    if guarantee.placeholders:
        lines.append(
            f"{_became(guarantee.placeholders, count(guarantee.placeholders, 'word'))}: epsilon 0 for the value; "
            "position and type show, as the mask says."
        )
    if claim.found:
        lines.append(f"{claim.found[0].upper()}{claim.found[1:]}.")
    lines += [f"Assumes: {text}." for text in claim.assumptions]
    lines += [f"Note: {text}." for text in claim.caveats]
    return "\n".join(lines)


def _explain_restricted(guarantee: "Guarantee", promise: Restricted) -> list[str]:
    bound = f"{number(guarantee.within)}{_plus(promise.additive)}"
    if promise.kind == "metric":
        bound = f"{number(guarantee.within)} * d(x_j, x'_j){_plus(promise.additive)}"
    lines = [
        f"{_PAIRS[:-1]}, where x_j and x'_j are {promise.domain}:",
        f"  {_LOSS} <= {bound}   for every output y.",
    ]
    if promise.kind == "metric":
        lines[1] = lines[1][:-1] + ","
        lines.append(
            f"  d = {_METRICS[promise.metric or '']} between the rows of {guarantee.claim.table}."
        )
    if guarantee.unit == "wordpiece":
        lines.append("For word pieces: where each piece and the one in its place are such a pair.")
    return lines


_PAIRS = "For every fixed mask and any two texts x, x' consistent with it that differ only in protected word j:"
_INPUTS = {
    "surrogate": "Inputs: any string; a word outside the table is first mapped to a row by a public function.",
    "placeholder": "Inputs: the table's words; a word outside the table becomes a placeholder, which the mask shows.",
    "error": "Inputs: the table's words; a text with any other word is refused, which shows too.",
    "keep": "Inputs: the table's words; a word outside the table passes unprotected.",
    "uniform": "Inputs: the table's words; in place of any other a word is drawn evenly from the table.",
    "drop": "Inputs: the table's words; any other word is left out.",
}
_LOSS = "|ln Pr[y | x] - ln Pr[y | x']|"
_METRICS = {
    "chord": "the chord (distance between unit rows)",
    "euclidean": "the Euclidean distance (between raw rows)",
    "l1": "the l1 distance",
}


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
    if earlier == 1:
        return f"{hidden(releases)} 1 name or number was sent earlier as it stands; from now on it is hidden."
    if earlier:
        passed = f"{earlier:,} names or numbers were sent earlier as they stand; from now on they are hidden"
        return f"{hidden(releases)} {passed}."
    found = hidden_counts(releases)
    dropped = sum(len(released.mask.dropped) for released in releases)
    rest = (
        "in lower case"
        if any(released.mask.casing is None for released in releases)
        else "unchanged"
    )
    if not found and not dropped:
        if not any(released.items for released in releases):
            return "There were no words."
        texts, it = ("texts are", "them") if len(releases) > 1 else ("text is", "it")
        return f"Nothing was found to hide, so the {texts} {rest}; there may still be something private in {it}."
    order = {type_: i for i, type_ in enumerate(THINGS)}
    types = sorted(found, key=lambda type_: (order.get(type_, len(order) - 1), type_))
    said = listing([things(type_, found[type_]) for type_ in types])
    labels = {
        item.group for released in releases for item in released.items if item.kind is Kind.WORD
    }
    what = [
        "name" if all(label.partition(" ")[0] in THINGS for label in labels) else "word"
    ] * bool(labels)
    what += ["figure"] * any(_moved(item) for released in releases for item in released.items)
    drawn = f" (a drawn {' or '.join(what)} may by chance be the original)" if what else ""
    done = [f"{said} replaced{drawn}"] * bool(found) + [
        f"{count(dropped, 'word')} left out"
    ] * bool(dropped)
    return f"{listing(done)}; the rest is {rest}, and nothing is claimed about it."


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


def _between(low: float, high: float) -> str:
    return number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"


def _texts(n: int) -> str:
    return "the text" if n == 1 else f"the {n:,} texts"


def _plus(additive: float, sign: str = " + ") -> str:
    return f"{sign}{number(additive)}" if additive else ""
