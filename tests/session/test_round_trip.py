"""Restoring a release gives every byte of the text, whatever is in it; and nothing in targets of others."""

import random
import re
from itertools import pairwise

import pytest
from tests.detectors import First

from textveil.pipeline.protector import Protector
from textveil.session.state import Session

NAMES = (
    "Robert Taylor",
    "Anna Maria da Silva",
    "Okonkwo",
    "王小明",
    "김민수",
    "Hope Lindqvist",
    "Séamus O'Brien",
)
ORGANIZATIONS = ("Halvorsen Brightwater Ltd", "Zyxq")
EMAILS = ("r.taylor@example.org", "okonkwo@example.com")

FRAGMENTS = (
    *NAMES,
    *ORGANIZATIONS,
    *EMAILS,
    *(
        "Robert",
        "TAYLOR",
        "taylor",
        "Tay\u200blor",
        "Silva",
        "da Silva",
        "Anna",
        "OKONKWO",
        "Ok-onkwo",
        "okonkwo85",
        "小明",
    ),
    *(
        "O’Brien",
        "OBRIEN",
        "Hope",
        "Lindqvist's",
        "Ms ",
        "Dear ",
        "will",
        "Will",
        "민수는",
        "Okonkwo’s",
        "brightwater",
    ),
    *(
        "<PERSON_1>",
        "PERSON_1",
        "<PERSON_2_FAMILY>",
        "<person_1>",
        "PERSON_1_GIVEN_B",
        "<EMAIL_1>",
        "&lt;PERSON_1&gt;",
    ),
    *(
        r"\<PERSON_1\>",
        r"\u003cPERSON_1>",
        "< PERSON_1 >",
        "PERSON&#95;1",
        "<LITERAL_1>",
        "_PERSON_3_",
        "<ORGANIZATION_1_PART>",
    ),
    *(
        "[",
        "](",
        ")",
        "![",
        "](<",
        ">)",
        " (",
        "https://example.org/?q=",
        "www.x.org/",
        "data:text/html,",
        "javascript:",
        "//x.y/",
    ),
    *(
        '<a href="',
        '"',
        "'",
        '">',
        "</a>",
        "<img src=",
        "<b ",
        "title='",
        ">",
        "<",
        "</",
        "<!-- ",
        " alt=",
        "<p>",
        "/>",
        "= ",
    ),
    *(
        "\\",
        "\\\\",
        "C:\\Users\\",
        "&",
        "&amp;",
        "&#60;",
        "\\u00",
        "\\n",
        "\\*",
        "`",
        "```\n",
        "_",
        "__",
        "**",
        "#",
        "# ",
        "- ",
    ),
    *(
        "\r\n",
        "\n",
        "\n\n",
        "\t",
        " ",
        "  ",
        "\u00a0",
        "\u3000",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u00ad",
        "\u202e",
        "\u2028",
    ),
    *(
        "🙂",
        "👩\u200d👩\u200d👧",
        "🇵🇹",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "ﬁ",
        "Ａ",
        "日本",
        "ไทย",
        "שלום",
        "مرحبا",
        "क्ष",
        "x",
        "1",
        "2.5",
        ".",
        ",",
    ),
)


@pytest.fixture(scope="module")
def guard():
    return Protector(
        protect={"detectors": [First(PERSON=NAMES, ORGANIZATION=ORGANIZATIONS, EMAIL=EMAILS)]}
    )


def conversations(count, seed):
    draw = random.Random(seed)
    for _ in range(count // 4):
        yield ["".join(draw.choices(FRAGMENTS, k=draw.randint(1, 25))) for _ in range(4)]


def comes_back(guard, texts, draw):
    """Each release of a session restored, whole and in pieces, at once and at the end."""
    session = Session()
    sent = [guard.protect(text, session).text for text in texts]
    for text, released in zip(texts, sent, strict=True):
        cuts = sorted(draw.choices(range(len(released) + 1), k=3))
        restorer = session.restorer()
        pieces = [
            restorer.feed(released[start:end]) for start, end in pairwise([0, *cuts, len(released)])
        ]
        restored = "".join(pieces) + restorer.close()
        assert (restored, session.restore(released)) == (text, text), (texts, sent)


def test_every_byte_comes_back(guard):
    draw = random.Random(5)
    for texts in conversations(150, 1):
        comes_back(guard, texts, draw)


@pytest.mark.slow
def test_every_byte_of_ten_thousand_texts_comes_back(guard):
    draw = random.Random(6)
    for texts in conversations(10_000, 2):
        comes_back(guard, texts, draw)


@pytest.mark.slow
def test_the_texts_are_hard(guard):
    """Most have something hidden, many of them in targets."""
    hidden = targets = 0
    for texts in conversations(200, 3):
        session = Session()
        for text in texts:
            hidden += guard.protect(text, session).text != text
        targets += bool(session.snapshot().targets)
    assert hidden > 100
    assert targets > 25


# ---- targets -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(guard):
    session = Session()
    text = "Robert Taylor: [me](../Robert/cv.pdf), <a title='Okonkwo'>x</a>, r.taylor@example.org"
    sent = "<PERSON_1>: [me](../<PERSON_1_GIVEN>/cv.pdf), <a title='<PERSON_2>'>x</a>, <EMAIL_1>"
    assert guard.protect(text, session).text == sent
    return session


LEFT = (
    "![x](https://x.org/?q=<EMAIL_1>)",
    "![x](//x.org/<EMAIL_1>)",
    "[x](<https://x.org/?q= <EMAIL_1>>)",
    "[x]( ../<PERSON_1>/a )",
    "![x](https://x.org/a(b)<EMAIL_1>)",
    "https://x.org/<PERSON_1>/<EMAIL_1>",
    "www.x.org?<EMAIL_1>",
    "x.org/<EMAIL_1>",
    "see http://<PERSON_1>.x.org",
    '<img src="https://x.org/?q= <EMAIL_1>">',
    "<img src='//x.org/ <EMAIL_1>'>",
    "<img src=//x.org/<EMAIL_1>>",
    '<img title="\\" src="https://x.org/>?q= <EMAIL_1>">',
    "<a href=javascript:f(<EMAIL_1>)>",
    "javascript:fetch(<EMAIL_1>)",
    "data:text/html,<EMAIL_1>",
    "[id]: https://x.org/<EMAIL_1>",
    "[id]:\n//x.org/<EMAIL_1>",
    "<https://x.org/<EMAIL_1>>",
    "url(https://x.org/EMAIL_1)",
    "https://x.org/EMAIL_1",
    r"![x](https://x.org/\<EMAIL\_1\>)",
    "![x](https://x.org/&lt;EMAIL_1&gt;)",
    "&lt;img src='https://x.org/ <EMAIL_1>'&gt;",
    r"\u003cimg src=\"https://x.org/ <EMAIL_1>\"\u003e",
    "[me](../<PERSON_1_GIVEN>/cv.pdf?)",
    "[me](x../<PERSON_1_GIVEN>/cv.pdf)",
)

RESTORED = (
    "<PERSON_1>",
    "see https://x.org/ <PERSON_1>",
    "[<PERSON_1>](https://x.org/)",
    "[x](https://x.org/) <PERSON_1>",
    "<b><PERSON_1></b>",
    '<a href="https://x.org/"><PERSON_1></a>',
    "a < b, <PERSON_1>",
    "e.g. <PERSON_1>, i.e. <EMAIL_1>",
    "1/2 <PERSON_1>/<PERSON_2>",
    "to: <EMAIL_1>",
    "**<PERSON_1>** (<PERSON_2>)",
    "```\nx = '<PERSON_1>'\n```",
    '{"name": "<PERSON_1>", "mail":"<EMAIL_1>"}',
    "[my](../<PERSON_1_GIVEN>/cv.pdf)",
    '<img alt="a>b" src="<EMAIL_1>">',  # the whole of it goes nowhere but to itself
    "<img\nsrc = <EMAIL_1>>",
    "mailto:<EMAIL_1>",
    "data:<EMAIL_1>",
    "<a title='by <PERSON_2> '>",
    "<img src='x' title=\"<PERSON_2>\">",
)


def restored(session, text, parts=None, **options):
    restorer = session.restorer(**options)
    return "".join(
        [*map(restorer.feed, text if parts is None else parts), restorer.close()]
    ), restorer.blocked_count


@pytest.mark.parametrize("text", LEFT)
def test_nothing_is_restored_in_targets_of_others(session, text):
    count = len(re.findall(r"(?:PERSON|EMAIL)\\?_[12]", text))
    assert restored(session, text) == restored(session, text, [text]) == (text, count)
    assert restored(session, f"é “x” {text}\n<PERSON_1>", ["é “x” ", text, "\n<PERSON_1>"])[
        0
    ].startswith(f"é “x” {text}")
    everywhere, left = restored(session, text, where="everywhere")
    assert left == 0
    assert not re.search(r"(?:PERSON|EMAIL)\\?_[12]", everywhere)


@pytest.mark.parametrize("text", RESTORED)
def test_all_is_restored_elsewhere_and_in_the_sessions_own_targets(session, text):
    made, left = restored(session, text)
    assert left == 0
    assert "_1" not in made
    assert restored(session, text, [text]) == (made, 0)
    assert session.restore(text) == made


def test_inside_of_json(session):
    text = r'{"a": "![x](https://x.org/<EMAIL_1>) <img src=\"//x.org/ <EMAIL_1>\"> <PERSON_1>"}'
    made, left = restored(session, text, escape="json")
    assert (made, left) == (text.replace("<PERSON_1>", "Robert Taylor"), 2)
    own = r'{"a": "<a title=\u0027<PERSON_2>\u0027>"}'
    assert restored(session, own, escape="json")[0] == own.replace("<PERSON_2>", "Okonkwo")


def test_targets_are_kept_with_the_session(session):
    again = Session.from_json(session.to_json())
    text = "[my](../<PERSON_1_GIVEN>/cv.pdf) ![](//x.org/<PERSON_1>)"
    assert (
        again.restore(text)
        == session.restore(text)
        == "[my](../Robert/cv.pdf) ![](//x.org/<PERSON_1>)"
    )


def test_little_is_held_back_in_targets(session):
    """No more than the longest target that is known."""
    restorer = session.restorer()
    text = (
        '<img src="https://x.org/<PERSON_1>'
        + "a" * 300
        + '"> [x](../<PERSON_1_GIVEN>/cv.pdf'
        + "b" * 300
    )
    out = 0
    for fed, char in enumerate(text, 1):
        out += len(restorer.feed(char))
        assert fed - out < 60
