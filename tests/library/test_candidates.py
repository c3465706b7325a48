"""Candidates that a model writes: what is asked follows from public things alone, and nothing paid for is lost."""

import json
import re
import urllib.request
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from training.notes import CLASSES, THINGS, write_notes

from textveil import cli
from textveil.errors import ConfigError, EndpointError, InputError
from textveil.library import Library, make_candidates, plan_candidates, plan_variations
from textveil.library.candidates import SETTINGS, SYSTEM, TONES, TURNS, clean_answer
from textveil.pipeline import synthesize

CANARIES = ("zyxqorvian", "klimbutter", "wrenfathom")
"""Words of private texts, of a private label's name, and of a private author."""

PRIVATE_COUNT = 61
"""Private texts of one label: a number that no request may hold."""


class Scripted:
    """An endpoint in this process: a new text for each prompt; it may fail after some requests."""

    workers = 1
    model = "scripted"

    def __init__(self, fails_after: int | None = None):
        self.fails_after = fails_after
        self.prompts: list[tuple[str, str]] = []

    def ask(self, prompts, *, max_tokens=None, report=None):
        if self.fails_after is not None and len(self.prompts) + len(prompts) > self.fails_after:
            raise EndpointError("the endpoint HOST cannot be reached")
        self.prompts += prompts
        return [f' "{user[-60:]} {len(user)}" ' for _, user in prompts]


def script(fails_after: int | None = None) -> Any:
    return Scripted(fails_after)


# ---- plans -----------------------------------------------------------------------------------------------


def test_a_plan_follows_from_classes_and_examples_alone():
    examples = {"billing": ["One example.", "Another example.", "A third."], "praise": ["Fine."]}
    plan = plan_candidates(CLASSES, 100, examples=examples)
    assert plan == plan_candidates(dict(CLASSES), 100, examples=examples)
    assert plan.labels[:5] == ("delivery", "billing", "praise", "question", "delivery")
    assert {plan.labels.count(name) for name in CLASSES} == {25}
    assert len(set(plan.prompts)) > 95
    for (system, user), label, words in zip(
        plan.prompts, map(str, plan.labels), plan.words, strict=True
    ):
        assert system == SYSTEM
        assert CLASSES[label] in user
        assert f"about {words} words" in user
        shown = re.findall("<text>(.*?)</text>", user)
        assert len(shown) == len(set(shown)) == {"billing": 2, "praise": 1}.get(label, 0)
        assert set(shown) <= set(examples.get(label, ()))
    assert plan_candidates(CLASSES, 100, seed=1).prompts != plan.prompts


def test_more_of_a_plan_begins_with_the_same():
    short, long = plan_candidates(CLASSES, 8), plan_candidates(CLASSES, 20)
    assert long.prompts[:8] == short.prompts
    assert long.digest == short.digest
    assert plan_candidates(CLASSES, 8, lengths=(15,)).digest != short.digest
    assert plan_candidates({**CLASSES, "praise": "Praise."}, 8).digest != short.digest


def test_a_plan_estimates_its_tokens():
    plan = plan_candidates(CLASSES, 10, lengths=(30,))
    sent, received = plan.estimate_tokens()
    assert received == 400
    assert sent == sum(len(system + user) for system, user in plan.prompts) // 4
    assert plan.max_tokens == 220


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"classes": {"one": "A text."}}, "at least two"),
        ({"count": 3}, "one candidate a class"),
        ({"count": 2_000_000}, "1,000,000"),
        ({"lengths": ()}, "1 to 1,000 words"),
        ({"lengths": (0,)}, "1 to 1,000 words"),
    ],
)
def test_plans_that_are_refused(options, says):
    with pytest.raises(ConfigError, match=says):
        plan_candidates(**{"classes": CLASSES, "count": 8, **options})


def test_variations_are_of_the_cells_with_most_votes(notes_library):
    level = notes_library.get_level("16")
    weights = np.array([5.0, 0, 9, 0, 1, 0, 0, 7, 0, 8, 2, 3, 0, 4, 0, 0])
    plan, kept = plan_variations(notes_library, level, weights)
    assert set(level.cells[kept].tolist()) == {0, 2, 4, 7, 9, 10, 11, 13}
    assert sorted(plan.origins) == kept.tolist()
    for (_, user), origin, label in zip(plan.prompts, plan.origins, plan.labels, strict=True):
        assert f"<text>{notes_library.texts[origin]}</text>" in user
        assert label == notes_library.label_names[notes_library.labels[origin]]
    more, _ = plan_variations(notes_library, level, weights * 3, count=len(kept) + 5)
    assert more.prompts[: len(kept)] == plan.prompts  # of which cells, and not of how many votes
    assert more.digest == plan.digest
    unlabelled = replace(notes_library, labels=None, label_names=())
    assert set(plan_variations(unlabelled, level, weights, count=3)[0].labels) == {None}
    for wrong in (np.zeros(15), np.zeros((1, 16))):
        with pytest.raises(ConfigError, match="one number for each of 16 cells"):
            plan_variations(notes_library, level, wrong)
    with pytest.raises(ConfigError, match="count"):
        plan_variations(notes_library, level, weights, count=0)


# ---- writing, and going on -----------------------------------------------------------------------------------


def test_what_was_written_is_not_asked_for_again(tmp_path):
    work = tmp_path / "work.jsonl"
    plan = plan_candidates(CLASSES, 30)
    whole = make_candidates(script(), plan)
    assert len(whole) == 30
    assert not whole[0].startswith('"')
    with pytest.raises(EndpointError):
        make_candidates(script(fails_after=20), plan, work=work)
    rows = [json.loads(line) for line in work.read_text().splitlines()]
    assert [row["text"] for row in rows] == whole[:20]
    assert rows[1]["label"] == "billing"
    work.write_bytes(work.read_bytes() + b'{"plan": "0')  # killed in the middle of a line
    rest, told = script(), []
    assert make_candidates(rest, plan, work=work, report=lambda *step: told.append(step)) == whole
    assert len(rest.prompts) == 10
    assert told == [("candidates written", done, 30) for done in range(20, 31)]
    nothing = script()
    assert make_candidates(nothing, plan, work=work) == whole
    assert make_candidates(nothing, plan_candidates(CLASSES, 10), work=work) == whole[:10]
    assert nothing.prompts == []
    make_candidates(nothing, plan_candidates(CLASSES, 35), work=work)
    assert len(nothing.prompts) == 5


def test_candidates_of_other_options_are_not_mixed(tmp_path):
    work = tmp_path / "work.jsonl"
    make_candidates(script(), plan_candidates(CLASSES, 8), work=work)
    before = work.read_bytes()
    with pytest.raises(InputError, match="asked for in another way"):
        make_candidates(script(), plan_candidates(CLASSES, 8, seed=1), work=work)
    for content in (b"no json\n", b'{"number": 0}\n', b"[1]\n", before + before, b"\xff\n"):
        work.write_bytes(content)
        with pytest.raises(InputError, match="cannot be read as candidates"):
            make_candidates(script(), plan_candidates(CLASSES, 8), work=work)
        assert work.read_bytes() == content


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("  A text.\n", "A text."),
        ('"A text."', "A text."),
        ("\u201cA text.\u201d", "A text."),
        ('"One." and "two."', '"One." and "two."'),
        ("```\nA text.\n```", "A text."),
        ("```text\nA text.\nOf two lines.\n```", "A text.\nOf two lines."),
        ("A\ud800 \0text.", "A? text."),
        ("x" * 9000, "x" * 8000),
        ("", ""),
    ],
)
def test_answers_are_cleaned(answer, text):
    assert clean_answer(answer) == text


# ---- nothing private is asked ------------------------------------------------------------------------------------


@pytest.fixture
def read_journal(openai_server):
    """The requests since the fixture was made, as text: bodies, headers and paths."""

    def read():
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(openai_server.removesuffix("/v1") + "/journal") as answer:
            return json.load(answer)

    start = len(read())
    return lambda: read()[start:]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with public sentences, and private texts beside them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TEXTVEIL_LLM_KEY", raising=False)
    (tmp_path / "classes.txt").write_text(
        "".join(f"{name}: {sentence}\n" for name, sentence in CLASSES.items())
    )
    rows = [
        {"text": note["text"] + f" {CANARIES[0]} {i}", "kind": note["kind"], "who": CANARIES[2]}
        for i, note in enumerate(write_notes(PRIVATE_COUNT, 8000))
        if note["kind"] == "praise" or i < 20
    ]
    (tmp_path / "private.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def list_words(*texts: str) -> set[str]:
    return set(re.findall(r"\w+", " ".join(texts).lower()))


FORM = (
    "Kind of text Length about words Tone Setting Texts of this kind which yours is not to repeat Write one new text "
    "of this kind Write another text of the same kind and of about the same length with other words and other details"
)

PUBLIC = list_words(SYSTEM, FORM, *TONES, *SETTINGS, *TURNS, *CLASSES.values(), "15 30 60 100")


def find_leaks(requests: list, public: set[str]) -> set[str]:
    """The words of requests that stand in nothing public; canaries wherever they are."""
    whole = json.dumps(requests)
    leaks = {canary for canary in CANARIES if canary in whole}
    for request in requests:
        assert set(request["body"]) <= {"model", "messages", "temperature", "max_tokens"}
        for message in request["body"]["messages"]:
            leaks |= (
                list_words(message["content"].replace("<text>", "").replace("</text>", "")) - public
            )
    return leaks


def test_no_request_holds_anything_private(openai_server, read_journal, folder, capsys):
    """Every request of both verbs is captured; each of its words is of something public."""
    said = ("--endpoint", openai_server, "--model", "echo", "--workers", "2")
    (folder / "shown.jsonl").write_text(
        "".join(json.dumps(note) + "\n" for note in write_notes(3, 3000))
    )
    made = ("library", "make", *said, "--classes", "classes.txt", "--count", "48")
    shown = ("--examples", "shown.jsonl", "--field", "text", "--label", "kind")
    assert cli.main([*made, *shown, "-o", "written.library"]) == 0
    requests = read_journal()
    assert len(requests) == 48
    public = PUBLIC | list_words(*(note["text"] for note in write_notes(3, 3000)))
    assert find_leaks(requests, public) == set()

    library = Library.read("written.library")
    assert library.licence == "terms of echo"
    assert library.options["model"] == "echo"
    private = [json.loads(line) for line in (folder / "private.jsonl").read_text().splitlines()]
    synthesis = synthesize(
        [row["text"] for row in private],
        [row["kind"] for row in private],
        library=library,
        label_names=[*CLASSES, CANARIES[1]],
        epsilon=1,
        level="6",
        smooth="none",
        noise_seed=1,
    )
    (folder / "votes.json").write_text(json.dumps(synthesis.votes.dump()))
    assert CANARIES[1] in (folder / "votes.json").read_text()
    varied = ("library", "vary", "written.library", *said, "--count", "24")
    assert cli.main([*varied, "--votes", "votes.json", "-o", "new.library"]) == 0
    requests = read_journal()[48:]
    assert len(requests) == 24
    assert find_leaks(requests, public | list_words(*library.texts)) == set()
    out = capsys.readouterr().out
    assert "It follows from votes of private texts (epsilon 1 for one document)" in out
    new = Library.read("new.library")
    assert new.options["votes"] == [{"epsilon": pytest.approx(1, abs=1e-3), "unit": "document"}]
    assert "varied by echo" in new.source
    assert set(new.texts) & set(library.texts)

    # another round with the same model and epsilon: both are said, for they add up
    again = synthesize(
        [row["text"] for row in private], library=new, epsilon=1, level=new.levels[-1].name
    )
    (folder / "again.json").write_text(json.dumps(again.votes.dump()))
    varied = ("library", "vary", "new.library", *said, "--count", "24")
    assert cli.main([*varied, "--votes", "again.json", "-o", "newer.library"]) == 0
    newer = Library.read("newer.library")
    votes = "epsilon 1 for one document and epsilon 1 for one document"
    statement = newer.get_facts(newer.levels[-1])
    assert statement.votes == votes
    finest = newer.levels[-1].name
    last = synthesize([row["text"] for row in private], library=newer, epsilon=1, level=finest)
    assert f"but for votes ({votes}), which add to this" in last.guarantee.headline()
    assert len(newer.options["votes"]) == 2
    for private_word in (*CANARIES, str(PRIVATE_COUNT)):
        kept = (folder / "new.library.written.jsonl").read_text() + str(new.describe())
        assert private_word not in kept


@pytest.mark.parametrize(
    "private",
    [CANARIES[0], f"There are {PRIVATE_COUNT} texts of this kind.", "They often mention jam."],
)
def test_a_prompt_with_something_private_is_found(private):
    plan = plan_candidates({**CLASSES, "praise": f"{CLASSES['praise']} {private}"}, 8)
    requests = [
        {"body": {"messages": [{"content": system}, {"content": user}]}}
        for system, user in plan.prompts
    ]
    assert find_leaks(requests, PUBLIC) != set()
    assert find_leaks(requests[:1], PUBLIC) == set()


def test_requests_after_a_vote_follow_from_which_cells_won(notes_library):
    """Two private worlds whose noisy votes rank cells alike are asked the same: counts are in no prompt."""
    level = notes_library.get_level("6")
    one = np.array([PRIVATE_COUNT, 40.0, 30, 2, 1, 0])
    other = np.array([900.0, 800, 700, 6, 5, 4])
    plans = [plan_variations(notes_library, level, weights)[0] for weights in (one, other)]
    assert plans[0] == plans[1]
    assert str(PRIVATE_COUNT) not in " ".join(user for _, user in plans[0].prompts)


# ---- the verbs -----------------------------------------------------------------------------------------------------


def test_a_dry_run_asks_for_nothing(openai_server, read_journal, folder, capsys):
    made = ("library", "make", "--endpoint", openai_server, "--model", "echo", "--count", "2000")
    assert cli.main([*made, "--classes", "classes.txt", "-o", "a.library", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert re.match(r"2,000 requests, about [\d,]+ tokens sent and [\d,]+ received", out)
    assert CLASSES["delivery"] in out
    assert read_journal() == []
    assert list(folder.glob("a.library*")) == []


def test_an_interrupted_run_keeps_what_was_written(openai_server, folder, capsys):
    made = ("library", "make", "--endpoint", openai_server, "--classes", "classes.txt")
    assert cli.main([*made, "--count", "19", "--model", "echo", "-o", "a.library"]) == 2
    assert "--count must be" in capsys.readouterr().err
    failed = (*made, "--count", "48", "--model", "fail-500", "-o", "a.library")
    assert cli.main([*failed]) == 2
    assert "status 500" in capsys.readouterr().err
    assert list(folder.glob("a.library*")) == []
    (folder / "a.library.written.jsonl").write_text("")
    assert cli.main([*failed]) == 2
    assert "the same command continues" in capsys.readouterr().err
    assert cli.main([*made, "--count", "48", "--model", "echo", "-o", "a.library"]) == 0
    assert len((folder / "a.library.written.jsonl").read_text().splitlines()) == 48
    # what was written is a file of public texts with labels
    again = ("library", "make", "a.library.written.jsonl", "--field", "text", "--label", "label")
    assert cli.main([*again, "--licence", "x", "-o", "b.library"]) == 0
    assert Library.read("b.library").texts == Library.read("a.library").texts


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("make", "--model", "m"), "need --endpoint"),
        (
            ("make", "--endpoint", "http://127.0.0.1:9/v1", "--classes", "classes.txt"),
            "needs --model",
        ),
        (("make", "--endpoint", "http://127.0.0.1:9/v1", "--model", "m"), "needs --classes"),
        (("make", "private.jsonl", "--endpoint", "http://127.0.0.1:9/v1"), "or --endpoint"),
        (
            ("make", "--endpoint", "ftp://x", "--model", "m", "--classes", "classes.txt"),
            "endpoint.url",
        ),
        (
            (
                *("make", "--endpoint", "http://127.0.0.1:9/v1", "--model", "m"),
                *("--classes", "classes.txt", "--examples", "private.jsonl", "--field", "text"),
                *("--label", "who"),
            ),
            "has no text of a class",
        ),
        (
            (
                *("make", "--endpoint", "http://127.0.0.1:9/v1", "--model", "m"),
                *("--classes", "classes.txt", "--field", "text"),
            ),
            "need --examples",
        ),
        (
            (
                *("make", "--endpoint", "http://127.0.0.1:9/v1", "--model", "m"),
                *("--classes", "classes.txt", "--words", "few"),
            ),
            "--words must be",
        ),
    ],
)
def test_options_that_are_refused(folder, capsys, arguments, says):
    assert cli.main(["library", *arguments, "-o", "a.library"]) == 2
    error = capsys.readouterr().err
    assert says in " ".join(error.split())
    assert THINGS[0] not in error
    assert not any(canary in error for canary in CANARIES)


def test_votes_for_another_library_are_refused(notes_library, folder, capsys):
    notes_library.save("notes.library")
    replace(notes_library, licence="other").save("other.library")
    synthesis = synthesize(["A note."], library=notes_library, epsilon=1, level="6", noise_seed=1)
    (folder / "votes.json").write_text(json.dumps(synthesis.votes.dump()))
    (folder / "broken.json").write_text("{")
    (folder / "empty.json").write_text("{}")
    varied = (
        "library",
        "vary",
        "other.library",
        "--endpoint",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
    )
    for votes, says in (
        ("votes.json", "give that library"),
        ("broken.json", "is not JSON with votes"),
        ("missing.json", "missing.json"),
        ("empty.json", "not votes of version 1"),
    ):
        assert cli.main([*varied, "--votes", votes, "-o", "new.library"]) == 2
        assert says in " ".join(capsys.readouterr().err.split())
