"""Context cues: kinship words before a name make it private, disease words behind it make it nobody.

In: the text before a name, or behind it. Out: whether it ends or begins with such words.
Not here: whether it is a name (`detectors`).
"""

from functools import cache

import regex

from textveil.text import Late, vocabulary

REACH = 60
"""Characters before and behind a name that are looked at."""

_RELATION = (
    r"(?<!\w)(?:\L<own>)[ ](?:[\p{L}-]+[ ])?(?:\L<who>)(?:'s)?,?[ ]\Z|(?<!\w)(?:\L<whose>)[ ]\Z"
)
_BESIDE = (
    r"[ ]?[,(\p{Pd}][ ]?(?:(?:\L<own>)[ ](?:[\p{L}-]+[ ])?(?:\L<who>)|\L<whose>)"
    r"(?=[ ]?[,;.:!?)\n\p{Pd}]|\Z)"
)


@cache
def _compiled(expression: str) -> regex.Pattern[str]:
    return regex.compile(
        expression,
        regex.IGNORECASE,
        own=vocabulary.words("possessives"),
        who=vocabulary.words("relations"),
        whose=vocabulary.words("own_relations"),
    )


def is_relation(before: str) -> bool:
    """Whether a text ends in words for somebody whom the writer knows, with at most one word between them."""
    return _compiled(_RELATION).search(before) is not None


_OWES = Late(
    r"[^.!?\n]{0,50}? \b (?: owes?[ ](?:us|me) | schuldet[ ](?:uns|mir) | (?:nous|me)[ ]doit | (?:nos|me)[ ]debe"
    r" | (?:ci|mi|nos|me)[ ]deve ) [ ] [^.!?\n]{0,20}? \d",
    regex.IGNORECASE | regex.VERBOSE,
)


def is_beside_relation(behind: str) -> bool:
    """Whether a text begins with such words between signs, as in "Rose, my boss, is ill", or owes the writer a sum."""
    return _compiled(_BESIDE).match(behind) is not None or _OWES.match(behind) is not None


_ILLNESS = Late(
    r"""(?<!\w) (?: diagnos(?:ed[ ]with|is[ ]of) | suffer(?:s|ed|ing)?[ ]from | morbus | erkrankt[ ]an
      | (?: maladie | syndrome | enfermedad | enf\. | síndrome | doença ) [ ] de
      | (?: malattia | sindrome | morbo ) [ ] di | (?: ziekte | syndroom ) [ ] van | chorob[aęy] | zespół | zespołem
      ) [ ] \Z""",
    regex.IGNORECASE | regex.VERBOSE,
)
_OF_AN_ILLNESS = Late(
    r"['’]s[ ](?:disease|syndrome|palsy|lymphoma|thyroiditis|sarcoma|contracture)\b"
)


def is_illness(before: str, name: str, behind: str) -> bool:
    """Whether a name between two texts is that of an illness: "diagnosed with Hashimoto's"."""
    if name.lower() not in vocabulary.words("eponyms") or is_beside_relation(behind):
        return False
    return _ILLNESS.search(before) is not None or _OF_AN_ILLNESS.match(behind) is not None
