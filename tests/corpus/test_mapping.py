"""Placeholders that are alike for a subject, and what they stand for: kept once, in sessions, and nowhere else."""

import json
import logging
import os
import re
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.disturbed import Disturbed, Doubled
from tests.lanes import first_of_each

from textveil import cli
from textveil.config import layers
from textveil.corpus import RowOptions, finish, mapping, part_worker, runs, verify
from textveil.corpus.executors import LocalExecutor
from textveil.errors import ConfigError, InputError, OutputError, StoreError, TextveilError
from textveil.session import SessionStore

pytest.importorskip("sqlalchemy", reason="the extra `store` is not installed")
pytest.importorskip("cryptography", reason="the extra `store` is not installed")

CANARY = "zyxqorvian"
SHOWN = re.compile(r"<(?:EMAIL|IBAN)_[0-9]{19}(?:_[A-Z]+)?>")


@pytest.fixture(autouse=True)
def keys(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    monkeypatch.delenv("TEXTVEIL_STORE_KEY", raising=False)
    monkeypatch.delenv("TEXTVEIL_STORE", raising=False)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'veil.db'}"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """24 rows of four subjects; each has an address of its own, and one that all have."""
    path = tmp_path / "a.jsonl"
    lines = [
        {
            "n": n,
            "who": f"s{n % 4}",
            "text": f"mail s{n % 4}@{CANARY}.example, or all@{CANARY}.example [{n}]",
        }
        for n in range(24)
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


OWN = ("jobs", "resume", "report", "executor", "key_file", "keep_key", "store", "cluster")


def run(
    path: Path, to: Path, *, words: Any = None, names: Any = None, part_rows: int = 5, **more: Any
) -> Any:
    own = {name: more.pop(name) for name in OWN if name in more}
    config = layers.resolve(
        overrides=layers.convert_keywords(
            mechanism="placeholder",
            protect={"detectors": ["patterns"]},
            groups={"budgets": (0, 0, float("inf"), float("inf"))},
            words=words or {"consistent": True},
            **({} if names is None else {"names": names}),
        )
    )
    rows = {"id": "n", "subject": "who", "others": "copy", "placeholders": "subject", **more}
    return runs.run(path, str(to), config, RowOptions(**rows), part_rows=part_rows, **own)


def released(out: Path) -> list[dict[str, Any]]:
    parts = sorted(out.glob("part-*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def sessions(url: str) -> dict[tuple[str, str], Any]:
    """All that a store keeps of subjects, in no order."""
    found = {}
    with SessionStore(url) as store:
        for each in store.sessions():
            if each.subject == mapping.OWNER_SUBJECT:
                continue
            kept = json.loads(store.open(each.subject, each.session).to_json())
            kept["placeholders"].sort(key=str)
            kept["private"].sort(key=str)
            found[each.subject, each.session] = kept
    return found


def kept_names(url: str) -> list[tuple[str, str]]:
    with SessionStore(url) as store:
        return sorted((each.subject, each.session) for each in store.sessions())


def restored(out: Path, url: str, session: str = "kept") -> list[str]:
    with SessionStore(url) as store:
        return [
            store.open(row["who"], session, new=False).restore(row["text"]) for row in released(out)
        ]


def originals(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


def test_a_value_of_a_subject_has_one_placeholder_in_all_rows(rows, tmp_path):
    run(rows, tmp_path / "out")
    found: dict[str, set[tuple[str, ...]]] = {}
    for row in released(tmp_path / "out"):
        found.setdefault(row["who"], set()).add(tuple(SHOWN.findall(row["text"])))
    assert all(len(each) == 1 for each in found.values())  # in five parts
    assert (
        len({name for each in found.values() for pair in each for name in pair}) == 8
    )  # and others in each subject
    assert CANARY not in "".join(path.read_text() for path in (tmp_path / "out").iterdir())


def test_another_release_has_others(rows, tmp_path):
    run(rows, tmp_path / "one")
    run(rows, tmp_path / "two")
    one, two = ({*SHOWN.findall(json.dumps(released(tmp_path / name)))} for name in ("one", "two"))
    assert len(one) == len(two) == 8
    assert not one & two


def test_by_default_they_are_counted_in_each_row_and_nothing_is_kept(
    rows, tmp_path, url, monkeypatch
):
    monkeypatch.setenv("TEXTVEIL_STORE", url)
    done = run(rows, tmp_path / "out", placeholders="document")
    texts = [row["text"] for row in released(tmp_path / "out")]
    assert texts == [f"mail <EMAIL_1>, or <EMAIL_2> [{n}]" for n in range(24)]
    assert (done.manifest["placeholders"], done.manifest["session"]) == ("document", None)
    assert done.manifest["statement"]["mapping_is_kept"] is False
    assert not (tmp_path / "veil.db").exists()


def test_the_store_may_stand_in_a_file_that_the_environment_names(rows, tmp_path, url, monkeypatch):
    (tmp_path / "url").write_text(url + "\n")
    (tmp_path / "url").chmod(0o600)
    monkeypatch.setenv("TEXTVEIL_STORE_FILE", str(tmp_path / "url"))
    command = ["corpus", "run", str(rows), "--output", str(tmp_path / "out"), "--id", "n"]
    command += ["--field", "text", "--subject", "who", "--others", "drop", "--profile", "prompt"]
    assert cli.main([*command, "--placeholders", "subject", "--session", "kept"]) == 0
    assert sorted(sessions(url)) == [(f"s{n}", "kept") for n in range(4)]


@pytest.mark.parametrize("kind", ["SQLite", "Redis"])
def test_what_they_stand_for_is_kept_for_each_subject(rows, tmp_path, kind, request):
    url = request.getfixturevalue("url" if kind == "SQLite" else "redis")
    done = run(rows, tmp_path / "out", session="kept", store=url)
    assert restored(tmp_path / "out", url) == originals(rows)
    kept = sessions(url)
    assert sorted(kept) == [(f"s{n}", "kept") for n in range(4)]
    assert all(len(each["placeholders"]) == 2 for each in kept.values())
    with SessionStore(url) as store:  # nobody else's
        other = store.open("s1", "kept").restore(released(tmp_path / "out")[0]["text"])
    assert CANARY not in other
    assert (done.manifest["placeholders"], done.manifest["session"]) == ("subject", "kept")
    said = done.statement.build_sentences()
    assert said["placeholders"].startswith(
        "Equal values have one placeholder in all rows of a subject"
    )
    assert "A store keeps the originals" in said["mapping"]
    assert said["mapping"] in (tmp_path / "out" / "statement.md").read_text()
    assert verify(tmp_path / "out") == []


@pytest.mark.slow
def test_parts_that_are_drawn_twice_keep_the_same(rows, tmp_path, url):
    with LocalExecutor(1) as executor:
        run(
            rows,
            tmp_path / "out",
            session="kept",
            store=url,
            executor=Disturbed(executor, Doubled, str(tmp_path)),
        )
    assert restored(tmp_path / "out", url) == originals(rows)
    assert all(len(each["placeholders"]) == 2 for each in sessions(url).values())


@pytest.mark.slow
def test_several_processes_keep_the_same(rows, tmp_path, url):
    run(rows, tmp_path / "out", session="kept", store=url, jobs=2, part_rows=2)
    assert restored(tmp_path / "out", url) == originals(rows)
    assert all(len(each["placeholders"]) == 2 for each in sessions(url).values())


@pytest.mark.slow
@pytest.mark.parametrize("at", first_of_each([5, 6, 1, 2, 10], lambda at: at % 2))
def test_killed_around_the_moment_at_which_it_is_kept(rows, tmp_path, url, monkeypatch, at):
    """Every part that is there can be restored, and a resumed run keeps the same as one that was not disturbed."""
    out, left = tmp_path / "out", at

    def killing(call: Any) -> Any:
        def made(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            done = call(*arguments, **more)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return made

    child = os.fork()
    if child == 0:
        os.closerange(0, 3)
        try:
            mapping.MappingStore.keep = killing(mapping.MappingStore.keep)  # type: ignore[method-assign]
            run(rows, out, session="kept", store=url)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    before = restored(out, url)
    assert {*before} <= {*originals(rows)}
    before_shown = {*SHOWN.findall(json.dumps(released(out)))}
    run(rows, out, session="kept", store=url, resume=True)
    assert restored(out, url) == originals(rows)
    assert before_shown <= {*SHOWN.findall(json.dumps(released(out)))}
    assert all(len(each["placeholders"]) == 2 for each in sessions(url).values())


def test_a_store_that_fails_stops_the_run_before_the_part_is_there(
    rows, tmp_path, url, monkeypatch
):
    kept = mapping.MappingStore.keep
    calls: list[int] = []

    def failing(self: Any, found: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise StoreError("the store cannot be changed (OperationalError)")
        kept(self, found)

    with monkeypatch.context() as patch:
        patch.setattr(mapping.MappingStore, "keep", failing)
        with pytest.raises(StoreError):
            run(rows, tmp_path / "out", session="kept", store=url)
    assert sorted(path.name for path in (tmp_path / "out").glob("*.jsonl")) == [
        f"part-0000000{n}.jsonl" for n in (0, 1)
    ]
    assert not list((tmp_path / "out" / "_textveil").glob("*.part"))
    with pytest.raises(
        TextveilError, match=r"differ: .*store"
    ):  # a store that was made anew knows nothing
        run(rows, tmp_path / "out", session="kept", store=url.replace("veil", "other"), resume=True)
    run(rows, tmp_path / "out", session="kept", store=url, resume=True)
    assert restored(tmp_path / "out", url) == originals(rows)


def test_a_name_of_sessions_is_for_one_release(rows, tmp_path, url):
    run(rows, tmp_path / "out", session="kept", store=url)
    before = sessions(url)
    with pytest.raises(ConfigError, match="choose another name for this release"):
        run(rows, tmp_path / "two", session="kept", store=url)
    assert not (tmp_path / "two" / "_textveil").exists()
    assert sessions(url) == before
    run(rows, tmp_path / "two", session="more", store=url)
    assert restored(tmp_path / "two", url, "more") == originals(rows)
    assert run(rows, tmp_path / "two", session="more", store=url, resume=True).is_earlier
    with pytest.raises(ConfigError, match=r"with other options \(.*session"):
        run(rows, tmp_path / "two", session="kept", store=url, resume=True)


@pytest.mark.slow
def test_a_run_that_is_given_up_leaves_no_sessions(rows, tmp_path, url):
    run(rows, tmp_path / "other", session="other", store=url)

    def report(name: str, done: int, total: int) -> None:
        if name == "rows" and done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(rows, tmp_path / "out", session="kept", store=url, report=report)
    assert len(sessions(url)) == 8
    for wrong in (None, url.replace("veil", "wrong")):
        with pytest.raises(ConfigError, match="name the store with --store"):
            finish(tmp_path / "out", give_up=True, store=wrong)
    assert len(list((tmp_path / "out").glob("part-*"))) == 2
    finish(tmp_path / "out", give_up=True, store=url)
    assert sorted(sessions(url)) == [(f"s{n}", "other") for n in range(4)]
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("step", ["files read", "rows"])
def test_of_two_runs_at_once_one_has_the_name(rows, tmp_path, url, step):
    refused: list[str] = []

    def report(name: str, done: int, total: int) -> None:
        if name == step and not refused:
            with pytest.raises(ConfigError, match="choose another name for this release") as caught:
                run(rows, tmp_path / "two", session="kept", store=url)
            refused.append(str(caught.value))

    run(rows, tmp_path / "out", session="kept", store=url, report=report)
    assert refused
    assert not (tmp_path / "two" / "_textveil").exists()
    assert restored(tmp_path / "out", url) == originals(rows)


def test_of_two_runs_that_both_saw_the_name_free_one_has_it(tmp_path, url, monkeypatch):
    kept = mapping.MappingStore(address=mapping.StoreAddress.build(url), session="kept")
    kept.reserve("one")
    with monkeypatch.context() as patch:
        patch.setattr(SessionStore(url).__class__, "sessions", lambda self: [])
        with pytest.raises(ConfigError, match="choose another name for this release"):
            kept.reserve("two")
    kept.reserve("one")  # as a run that goes on does
    kept.forget("two")
    assert kept_names(url) == [(mapping.OWNER_SUBJECT, "kept")]
    kept.forget("one")
    assert kept_names(url) == []


def test_giving_up_a_run_that_never_had_the_name_leaves_the_sessions_of_the_other(
    rows, tmp_path, url, monkeypatch
):
    run(rows, tmp_path / "out", session="kept", store=url)
    before = sessions(url)
    with monkeypatch.context() as patch:  # killed before it asked for the name
        patch.setattr(
            mapping.MappingStore, "reserve", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            run(rows, tmp_path / "two", session="kept", store=url)
    with pytest.raises(ConfigError, match="choose another name for this release"):
        run(rows, tmp_path / "two", session="kept", store=url, resume=True)
    finish(tmp_path / "two", give_up=True, store=url)
    assert sessions(url) == before
    assert restored(tmp_path / "out", url) == originals(rows)


@pytest.mark.slow
def test_in_postgresql(rows, tmp_path, postgres):
    """Several processes keep the same in it; one run has a name; what a run that is given up kept is destroyed."""
    run(rows, tmp_path / "out", session="kept", store=postgres, jobs=2)
    assert restored(tmp_path / "out", postgres) == originals(rows)
    with pytest.raises(ConfigError, match="choose another name for this release"):
        run(rows, tmp_path / "two", session="kept", store=postgres)

    def report(name: str, done: int, total: int) -> None:
        if name == "rows" and done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(rows, tmp_path / "two", session="other", store=postgres, report=report)
    assert (mapping.OWNER_SUBJECT, "other") in kept_names(postgres)
    finish(tmp_path / "two", give_up=True, store=postgres)
    assert {session for _, session in kept_names(postgres)} == {"kept"}
    assert restored(tmp_path / "out", postgres) == originals(rows)


def test_a_run_whose_input_is_refused_gives_the_name_back(rows, tmp_path, url):
    with rows.open("a") as stream:
        stream.write(json.dumps({"n": 0, "who": "s0", "text": "again"}) + "\n")
    with pytest.raises(InputError, match="an id occurs twice"):
        run(rows, tmp_path / "out", session="kept", store=url)
    assert kept_names(url) == []


def test_links_in_which_placeholders_stand_lead_back(tmp_path, url):
    text = f"see [it](https://site.example/?to=s1@{CANARY}.example) please"
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"n": 1, "who": "s1", "text": text}) + "\n")
    run(path, tmp_path / "out", session="kept", store=url)
    assert CANARY not in released(tmp_path / "out")[0]["text"]
    assert restored(tmp_path / "out", url) == [text]


def test_nothing_shows_what_is_kept(rows, tmp_path, url, caplog, capfd):
    """Neither the release, nor what its run keeps beside it, nor the database, logs and errors."""
    caplog.set_level(logging.DEBUG)

    def report(name: str, done: int, total: int) -> None:
        if name == "rows" and done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(rows, tmp_path / "out", session="kept", store=url, report=report)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path != rows:
            content = path.read_bytes()
            assert CANARY.encode() not in content
            if path.parent.name == "_textveil":  # the URL may hold a password
                assert b"veil.db" not in content
    rows.write_text(json.dumps({"n": 1, "who": f"{CANARY}\n", "text": CANARY}) + "\n")
    with pytest.raises(
        InputError, match=r"row 1 must have a subject in the field .* that can be a name"
    ) as caught:
        run(rows, tmp_path / "two", session="two", store=url)
    said = "".join(
        [*capfd.readouterr(), caplog.text, str(caught.value), repr(caught.value.__context__)]
    )
    assert CANARY not in said
    address = mapping.StoreAddress("postgresql://anna:secret@host/name")
    assert "secret" not in repr(mapping.MappingStore(address=address, session="x"))
    assert "secret" not in repr(part_worker.PartWorker.__dataclass_fields__) + repr(address)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("needs --subject NAME", {"subject": None}),
    ("or --id-from-row", {"id": None, "ids": "content"}),
    ("needs words.consistent=true", {"words": {"consistent": False}}),
    ("needs names.types=none", {"names": {"types": ["PERSON"]}}),
    (
        "needs --placeholders subject",
        {"placeholders": "document", "session": "kept", "store": "URL"},
    ),
    ("give both --store and --session, or neither", {"session": "kept"}),
    ("give both --store and --session, or neither", {"store": "URL"}),
    ("must be sqlite:", {"session": "kept", "store": "memory:"}),
    ("must be sqlite:", {"session": "kept", "store": "file:a.session"}),
    ("1 to 200 printable characters", {"session": "a\nb", "store": "URL"}),
    ("existing folder", {"session": "kept", "store": "sqlite:////nowhere/at/all.db"}),
]


@pytest.mark.parametrize(("says", "options"), REFUSED)
def test_what_does_not_go_together_is_refused(rows, tmp_path, url, says, options):
    if options.get("store") == "URL":
        options = options | {"store": url}
    with pytest.raises(TextveilError, match=says) as caught:
        run(rows, tmp_path / "out", **options)
    assert CANARY not in str(caught.value)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    assert not (tmp_path / "veil.db").exists()


def test_a_relative_url_means_the_same_file_wherever_a_worker_is(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = mapping.StoreAddress.build("sqlite:///veil.db?keep=30")
    monkeypatch.setenv("TEXTVEIL_KEYS", "keys")
    address = mapping.StoreAddress.build("sqlite:///veil.db?keep=30")
    assert json.loads(address.read()) == [
        f"sqlite:///{tmp_path / 'veil.db'}?keep=30",
        str(tmp_path / "keys"),
    ]
    find = partial(mapping.MappingStore, session="kept")
    assert (
        find(address=address).compute_identity()
        == find(address=mapping.StoreAddress.build("sqlite:///veil.db")).compute_identity()
    )


def test_a_disk_that_is_full_leaves_what_was_kept(rows, tmp_path, url, monkeypatch):
    """The mapping is kept before the part is there, so a part that fails later has its mapping already."""
    replace = os.replace

    def full(source: Any, target: Any) -> None:
        if str(target).endswith("part-00000001.jsonl"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OutputError):
            run(rows, tmp_path / "out", session="kept", store=url)
    run(rows, tmp_path / "out", session="kept", store=url, resume=True)
    assert restored(tmp_path / "out", url) == originals(rows)


def test_a_file_of_one_machine_keeps_nothing_for_a_cluster(rows, tmp_path, url):
    with pytest.raises(ConfigError, match="for one machine"):
        run(
            rows,
            tmp_path / "out",
            session="kept",
            store=url,
            executor="spark",
            cluster="spark://host:7077",
        )
    assert not (tmp_path / "out").exists()
