"""What was computed for texts is kept, within a number of characters."""

from textveil.text.text_cache import ENTRY_CHARACTERS, TextCache


def test_texts_are_computed_once_while_there_is_room():
    computed = []
    cache = TextCache(lambda text: computed.append(text) or len(text), 3 * (ENTRY_CHARACTERS + 10))
    for text in ("a" * 10, "b" * 10, "a" * 10, "c" * 10, "d" * 10, "a" * 10, "b" * 10):
        assert cache(text) == 10
        assert cache.characters <= 3 * (ENTRY_CHARACTERS + 10)
    assert [text[0] for text in computed] == ["a", "b", "c", "d", "b"]
    assert cache("e" * 1_000) == 1_000  # too long: it drives out nothing
    assert cache("b" * 10) == 10
    assert len(computed) == 6
