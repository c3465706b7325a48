"""Types in families: each has one, and can be read in its colours."""

import pytest

from textveil.guarantee.wording import TYPE_NOUNS
from textveil.render.types import FAMILIES, find_family, render_styles


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", FAMILIES)
def test_ink_can_be_read_on_paper(name):
    for ink, paper in (FAMILIES[name].light, FAMILIES[name].dark):
        light, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 7  # WCAG's AAA


def test_every_type_has_one_family():
    known = [type_ for each in FAMILIES.values() for type_ in each.types]
    assert len(known) == len(set(known))
    assert set(known) <= set(TYPE_NOUNS)
    assert {type_ for type_ in TYPE_NOUNS if find_family(type_) == "others"} == {
        "LISTED",
        "TEXT",
        "LITERAL",
        "WORD",
    }
    assert find_family("A_TYPE_OF_ONES_OWN") == "others"
    for dark in (False, True):
        assert all(f".type-{name} " in render_styles(dark=dark) for name in FAMILIES)
