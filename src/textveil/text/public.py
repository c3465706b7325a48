"""The public words: stop words and punctuation that pass by default.

In: a word. Out: whether it is on the list.
Not here: which words of a text pass (`protect`).
"""

import string
from functools import cache

from textveil.text import vocabulary


@cache
def get_stopwords() -> frozenset[str]:
    """Returns the public words: English stop words and punctuation marks.

    NLTK's 179 English stop words (as before 2024) and the 32 ASCII punctuation marks.

    Source: Bird, Klein and Loper, Natural Language Processing with Python (2009);
    `string.punctuation`.
    """
    return vocabulary.get_words("stop_words") | frozenset(string.punctuation)


@cache
def _list_spellings() -> frozenset[str]:
    listed = get_stopwords() | {"'s"}
    return listed | {word.replace("'", "’") for word in listed}


def is_public(word: str) -> bool:
    """Says whether a word is on the public list.

    Ignoring case and the kind of apostrophe (' or ’). The possessive 's is public because
    apostrophe and s both are.
    """
    return word.lower() in _list_spellings()
