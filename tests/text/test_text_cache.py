"""What was computed for texts is kept, within a number of characters."""

from textveil.detect import normalization
from textveil.text.text_cache import ENTRY_CHARACTERS, TextCache


def test_texts_are_computed_once_while_there_is_room():
    computed = []

    def compute(text):
        computed.append(text)
        return len(text)

    cache = TextCache(compute, 3 * (ENTRY_CHARACTERS + 10))
    for text in ("a" * 10, "b" * 10, "a" * 10, "c" * 10, "d" * 10, "a" * 10, "b" * 10):
        assert cache(text) == 10
        assert cache.characters <= 3 * (ENTRY_CHARACTERS + 10)
    assert [text[0] for text in computed] == ["a", "b", "c", "d", "b"]
    assert cache("e" * 1_000) == 1_000  # too long: it drives out nothing
    assert cache("b" * 10) == 10
    assert len(computed) == 6


def test_long_words_and_values_are_in_no_cache():
    longest = "Ä" * normalization.MAX_CACHED
    caches = normalization.fold_word, normalization._normalize_cached
    for text in (longest, longest + "Ä"):
        before = [cache.cache_info().misses for cache in caches]
        assert normalization.split_atoms(text)[0].text == "a" * len(text)
        assert normalization.normalize_value("SECRET", text) == text.lower()
        misses = [cache.cache_info().misses for cache in caches]
        assert misses == ([one + 1 for one in before] if text == longest else before)
