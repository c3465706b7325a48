"""Keyed placeholders: a keyed hash of subject, type and value, nothing stored.

In: a key of one release, a subject, a value. Out: its placeholder, which nobody without the key can
predict or check.
Not here: placeholders that are counted (`snapshot`), and how they are written (`placeholders`).
"""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NoReturn

from textveil.detect import NAMES
from textveil.errors import RandomnessError
from textveil.session.escapes import fold
from textveil.session.placeholders import MIN_KEYED_NUMBER, Original, PlaceholderToken

FORM_COUNT = 26**10
"""Number of forms for spellings outside the usual three: all ten-letter suffixes."""

FIRST_FORM = (FORM_COUNT - 26) // 25 + 1
"""First form whose suffix has ten letters."""


@dataclass(frozen=True, kw_only=True)
class KeyedPlaceholders:
    """Placeholders of one subject, derived from the key, type and value alone.

    Numbers have 19 digits, of 9e18 possible ones: two of n values of a type collide with a
    probability of less than n^2 / 1.8e19, 6e-8 for a million. Spellings of a name in different case
    share the number: Maria Silva is `<PERSON_1234567890123456789>`, MARIA SILVA gets the suffix
    `_B`, maria silva `_C`, and any other spelling ten letters. So does a figure that needs
    quotation marks. Values of other types, and parts of names, have unrelated numbers.

    Args:
        key: secret key of one release.
        subject: the person or client whose values they are.
    """

    key: bytes = field(repr=False)
    subject: str = field(repr=False)

    def build_placeholder(self, value: Original) -> PlaceholderToken:
        """Returns the placeholder of a value."""
        normalized, spellings = value.text, [value.text]
        if value.type in NAMES:
            normalized = fold(value.text)
            spellings = [normalized.title(), normalized.upper(), normalized]
        # Of 128 bits, so the remainder is biased by less than 2^-64.
        number = MIN_KEYED_NUMBER + self._hash("number", value.type, normalized) % (
            9 * MIN_KEYED_NUMBER
        )
        if value.text in spellings and not value.quoted:
            form = spellings.index(value.text) + 1
        else:
            kind = "quoted" if value.quoted else "form"
            form = FIRST_FORM + self._hash(kind, value.type, value.text) % FORM_COUNT
        return PlaceholderToken(value.type, number, value.text, form=form, quoted=value.quoted)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RandomnessError(
            "a release key cannot be pickled or copied; read it where its owner keeps it"
        )

    def _hash(self, *parts: str) -> int:
        """Hashes the parts with the key to a number of 128 bits.

        Each part is prefixed with its length, so no two lists of parts are hashed alike.
        """
        digest = blake2b(key=self.key, digest_size=16, person=b"textveil/names")
        for part in (self.subject, *parts):
            content = part.encode(errors="surrogatepass")
            digest.update(len(content).to_bytes(8, "little") + content)
        return int.from_bytes(digest.digest(), "little")
