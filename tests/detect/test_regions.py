"""Regions: what a machine writes for itself is nobody's; what it writes about people stays hidden.

What is between ⟦ ⟧ is found; whatever else a detector finds is dropped.
"""

import re
import time

import pytest

from textveil import Protector, Session
from textveil.detect.regions import CODE, LOG, compute_regions, filter_spans
from textveil.detect.spans import Span

SYSLOG = "Mar  3 04:12:09 gw-edge sshd[18220]: "
APP = "2025-03-18 07:42:11,803 INFO [main] com.example.pool.Worker: "

NOBODY = [
    # a text, and in ⟦ ⟧ what is dropped if it was found as a type
    (APP + "block blk_⟦-5792489080791696128⟧ done", "ACCOUNT"),
    (APP + "size ⟦67108864⟧", "PHONE"),
    (APP + "lease for job_⟦1445144423722_0020⟧", "ID"),
    (APP + "stopped ⟦SendWorker⟧", "PERSON"),
    (APP + "Recv⟦Worker@762⟧ left", "SECRET"),
    (APP + "token=⟦AppToken{9f4ef63⟧}", "SECRET"),
    ("⟦2025-03-18⟧ 07:42:11 INFO pool_size=4", "PHONE"),
    ("sai mật khẩu lần 4\n⟦2024-10-02⟧ 08:15:10 INFO", "SECRET"),
    ("081109 ⟦203615 148⟧ INFO dfs.Node$Responder: block received", "PHONE"),
    (SYSLOG + "check pass; user unknown, key ⟦900⟧", "NATIONAL_ID"),
    (SYSLOG + "session opened for user ⟦root⟧ by (uid=0)", "HANDLE"),
    ("Mar  3 04:12:09 gw-edge ⟦ganglia⟧[18220]: started", "HANDLE"),
    ("import ⟦pygments⟧\n\nx = pygments.lex(1)\n", "ORGANIZATION"),
    ("import os\n\nclass ⟦Sabine⟧:\n    pass\n", "PERSON"),
    ("import os\n\n\ndef f():\n    # handle ⟦real-world⟧ cases\n    return 1\n", "HANDLE"),
    (APP + "removed /tmp/_task_⟦202511091030⟧_0003/part-1", "DATE"),
    ("mobile=⟦NumberRange⟧(7)", "PERSON"),
    ("set SENTRY_⟦AUTH⟧_TOKEN now", "PERSON"),
    ('"integrity": "sha512-⟦q83vEjRWeJq83vEjRWeJq83vEjRWeJq83vEjRWeJq83vEjRWeJ⟧"', "SECRET"),
    ("    resolved: ⟦left-pad@1.3.0⟧", "HANDLE"),
]
SOMEBODY = [
    (APP + "locked employee=⟦VF-20718⟧", "ID"),
    (APP + 'mail to "⟦Oana Halmagyi⟧"', "PERSON"),
    (APP + "order of ⟦Sabine⟧", "PERSON"),
    (SYSLOG + "Failed password for ⟦jsmith⟧ from 84.17.33.201", "HANDLE"),
    (SYSLOG + "open /home/⟦jsmith⟧/a", "HANDLE"),
    (SYSLOG + "phone=⟦4155552671⟧", "PHONE"),
    (SYSLOG + "dial ⟦+49 171 2345678⟧", "PHONE"),
    (APP + "patient born ⟦1961-11-02⟧", "DATE"),
    (SYSLOG + "token=⟦kT9vw3LqkT9vw3Lq⟧", "SECRET"),
    ("[12:04:11] <grumpy_otter> ask ⟦Rimbold⟧ for it", "PERSON"),
    ("import os\n\nThe list below is\n\nfor ⟦Sabine⟧:\n\n- milk\n", "PERSON"),
    ('import os\n\nprint("ask ⟦Sabine⟧")\n', "PERSON"),
    ("import os\n\nx = 1  # ask ⟦Sabine⟧\n", "PERSON"),
    ("mobile=⟦NumberRange⟧, 7", "PERSON"),
    ("⟦McGregor⟧(42) called", "PERSON"),
    ("Her PIN is ⟦67108864⟧, she wrote.", "PHONE"),
]


def _read(marked: str, type_: str) -> tuple[str, Span]:
    before, value, behind = re.split("[⟦⟧]", marked)
    span = Span(0, len(before), len(before + value), type_, 0.8, "tagger")
    return before + value + behind, span


@pytest.mark.parametrize(("marked", "type_"), NOBODY)
def test_what_a_machine_writes_for_itself_is_nobody(marked: str, type_: str) -> None:
    text, span = _read(marked, type_)
    assert filter_spans([span], [text], {}) == []


@pytest.mark.parametrize(("marked", "type_"), SOMEBODY)
def test_people_in_machine_text_stay_hidden(marked: str, type_: str) -> None:
    text, span = _read(marked, type_)
    assert filter_spans([span], [text], {}) == [span]


def test_a_number_behind_a_time_begins_behind_it() -> None:
    text = "2025-03-18 07:42:11 4111111111111111 INFO card=4111111111111111"
    at = text.index("4111")
    span = Span(0, 0, at + 16, "CARD", 0.9, "patterns")
    assert filter_spans([span], [text], {}) == [span._replace(start=at)]


def test_strings_and_comments_are_no_code() -> None:
    text = 'import os\n\nname = find("Sabine")  # of Sabine\nif name:\n    return name\n'
    code = "".join(text[part.start : part.end] for part in compute_regions(text).parts)
    assert "Sabine" not in code
    assert "find(" in code
    assert {part.kind for part in compute_regions(text).parts} == {CODE}


def test_prose_and_chats_are_no_regions() -> None:
    for text in (
        "We met at 10:15:00 and she said that all is well.\nReturn it to me, please.",
        "[12:04:11] <grumpy_otter> has_key=1",
        "12.03.24, 14:02:10 - Anna: error_code=3",
    ):
        assert not compute_regions(text).parts


def test_a_log_is_read_line_by_line() -> None:
    text = f"why?\n{SYSLOG}up\nAnna asks\n"
    (part,) = compute_regions(text).parts
    assert (text[part.start : part.end], part.kind) == (f"{SYSLOG}up", LOG)


def test_a_host_in_a_log_is_private_unless_everybody_knows_it() -> None:
    for host, private in (("relay.hmlw.example.de", 0.8), ("en.wikipedia.org", 0.1)):
        text = f"{SYSLOG}to {host}:25"
        at = text.index(host)
        span = Span(0, at, at + len(host) + 3, "URL", 0.9, "patterns", 0.1)
        assert [each.privacy_score for each in filter_spans([span], [text], {})] == [private]


def test_users_and_addresses_of_a_log_are_hidden_and_the_rest_stays() -> None:
    text = (
        "Mar  3 04:12:09 mail-halm sshd[18220]: Failed password for jsmith from 84.17.33.201 port 52218 ssh2\n"
        "Mar  3 04:12:13 mail-halm sshd[18220]: session opened for user root by (uid=0)\n"
    )
    release = Protector().protect(text, Session()).text
    assert not re.search(r"jsmith|84\.17", release)
    assert release.count("sshd[18220]") == release.count("<HOST_1>") == 2
    assert "user root by (uid=0)" in release


@pytest.mark.parametrize(
    "line",
    [
        SYSLOG,
        APP,
        "x_" * 40,
        "a.b" * 30,
        "import a\nx = f(1, 'a\n",
        '"" "',
        "import a\n/* ",
        "import a\n'''a",
    ],
)
def test_reading_is_linear_in_a_text(line: str) -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        compute_regions(line * count)
        return time.process_time() - began

    seconds(10)
    assert seconds(16_000 // len(line) * 8) < 20 * seconds(16_000 // len(line)) + 0.3
