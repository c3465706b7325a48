"""Placeholders by a key: the same for the same value of the same subject, whoever writes it and when.

In: a key of one release, a subject, a value. Out: its placeholder, which nobody without the key can tell or check.
Not here: placeholders that are counted (`snapshot`), and how they are written (`placeholders`).
"""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NoReturn

from textveil.detect import NAMES
from textveil.errors import RandomnessError
from textveil.session.placeholders import KEYED, Given, Original
from textveil.session.reading import fold

FORMS = 26**10
"""How many spellings of a name have letters of their own: ten."""

FIRST = (FORMS - 26) // 25 + 1
"""The first spelling with ten letters."""


@dataclass(frozen=True, kw_only=True)
class KeyedNames:
    """Placeholders of one subject, each a function of the key, the subject, the type and the value alone.

    Numbers have 19 digits, of 9e18 possible ones: two of n values of a type have the same with a probability of less
    than n^2 / 1.8e19, 6e-8 for a million. Spellings of a name in other case share the number: Maria Silva is
    `<PERSON_1234567890123456789>`, MARIA SILVA that with `_B`, maria silva with `_C`, and any other has ten letters. So
    has a figure that needs quotation marks. Values of other types, and parts of names, have numbers of their own.

    Args:
        key: of a release.
        subject: whose values they are.
    """

    key: bytes = field(repr=False)
    subject: str = field(repr=False)

    def given(self, value: Original) -> Given:
        """The placeholder of a value."""
        same, usual = value.text, [value.text]
        if value.type in NAMES:
            same = fold(value.text)
            usual = [same.title(), same.upper(), same]
        number = KEYED + self._drawn("number", value.type, same) % (9 * KEYED)
        if value.text in usual and not value.quoted:
            form = usual.index(value.text) + 1
        else:
            kind = "quoted" if value.quoted else "form"
            form = FIRST + self._drawn(kind, value.type, value.text) % FORMS
        return Given(value.type, number, value.text, form=form, quoted=value.quoted)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RandomnessError(
            "a release key cannot be pickled or copied; read it where its owner keeps it"
        )

    def _drawn(self, *parts: str) -> int:
        """A number of 128 bits; no two lists of parts have the same."""
        digest = blake2b(key=self.key, digest_size=16, person=b"textveil/names")
        for part in (self.subject, *parts):
            content = part.encode(errors="surrogatepass")
            digest.update(len(content).to_bytes(8, "little") + content)
        return int.from_bytes(digest.digest(), "little")
