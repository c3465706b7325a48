"""Context cues: words around a name that make it private, or nobody.

Kinship words before or behind a name make it private; disease words make it no person.

In: the text before a name, or behind it. Out: whether such words stand next to the name.
Not here: whether it is a name (`detectors`).
"""

from functools import cache

import regex

from textveil.text import LazyPattern, vocabulary

CUE_WINDOW = 60
"""The number of characters before and behind a name that are searched for cues."""

_RELATION = (
    r"(?<!\w)(?:\L<own>)[ ](?:[\p{L}-]+[ ])?(?:\L<who>)(?:'s)?,?[ ]\Z|(?<!\w)(?:\L<whose>)[ ]\Z"
)
_APPOSITION = (
    r"[ ]?[,(\p{Pd}][ ]?(?:(?:\L<own>)[ ](?:[\p{L}-]+[ ])?(?:\L<who>)|\L<whose>)"
    r"(?=[ ]?[,;.:!?)\n\p{Pd}]|\Z)"
)


@cache
def _compile(expression: str) -> regex.Pattern[str]:
    return regex.compile(
        expression,
        regex.IGNORECASE,
        own=vocabulary.get_words("possessives"),
        who=vocabulary.get_words("relations"),
        whose=vocabulary.get_words("own_relations"),
    )


def is_relation(before: str) -> bool:
    """True if a text ends in a kinship phrase ("my neighbour").

    At most one word may stand between the possessive and the noun.
    """
    return _compile(_RELATION).search(before) is not None


_OWES = LazyPattern(
    r"[^.!?\n]{0,50}? \b (?: owes?[ ](?:us|me) | schuldet[ ](?:uns|mir) | (?:nous|me)[ ]doit | (?:nos|me)[ ]debe"
    r" | (?:ci|mi|nos|me)[ ]deve ) [ ] [^.!?\n]{0,20}? \d",
    regex.IGNORECASE | regex.VERBOSE,
)


def is_beside_relation(behind: str) -> bool:
    """True if a text begins with a kinship apposition or debt.

    An apposition stands between punctuation, as in "Rose, my boss, is ill"; a debt is a sum owed to
    the writer, as in "Rose owes me 50".
    """
    return _compile(_APPOSITION).match(behind) is not None or _OWES.match(behind) is not None


_ILLNESS = LazyPattern(
    r"""(?<!\w) (?: diagnos(?:ed[ ]with|is[ ]of) | suffer(?:s|ed|ing)?[ ]from | morbus | erkrankt[ ]an
      | (?: maladie | syndrome | enfermedad | enf\. | síndrome | doença ) [ ] de
      | (?: malattia | sindrome | morbo ) [ ] di | (?: ziekte | syndroom ) [ ] van | chorob[aęy] | zespół | zespołem
      ) [ ] \Z""",
    regex.IGNORECASE | regex.VERBOSE,
)
_OF_AN_ILLNESS = LazyPattern(
    r"['’]s[ ](?:disease|syndrome|palsy|lymphoma|thyroiditis|sarcoma|contracture)\b"
)


def is_illness(before: str, name: str, behind: str) -> bool:
    """True if a name is part of the name of an illness.

    Examples are "diagnosed with Hashimoto's" and "Parkinson's disease".
    """
    if name.lower() not in vocabulary.get_words("eponyms") or is_beside_relation(behind):
        return False
    return _ILLNESS.search(before) is not None or _OF_AN_ILLNESS.match(behind) is not None
