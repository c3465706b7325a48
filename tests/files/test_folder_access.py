"""Files of named folders: nothing outside is read or written, whatever path somebody asks for."""

import os
from pathlib import Path

import pytest

from textveil.errors import ConfigError, InputError, OutputError
from textveil.files import FolderAccess

CANARY = "dora.braga@example.org"


@pytest.fixture
def places(tmp_path: Path) -> tuple[FolderAccess, Path, Path]:
    """An access to a folder, the folder, and a folder that is outside."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside, inside / "deep", inside / ".hidden"):
        folder.mkdir()
        (folder / "letter.txt").write_text(f"from {folder.name}", encoding="utf-8")
    return FolderAccess([str(inside)], option="--folder"), inside, outside


@pytest.mark.parametrize(
    "path", ["letter.txt", "./deep/../letter.txt", "deep/../../inside/letter.txt"]
)
def test_what_is_inside_is_read(places, path) -> None:
    access, inside, _ = places
    assert access.read_text(path, 100) == "from inside"
    assert access.read_text(str(inside / path), 100) == "from inside"


@pytest.mark.parametrize(
    "path",
    [
        "../outside/letter.txt",
        "deep/../../outside/letter.txt",
        "../inside-not/letter.txt",
        "../outside/missing.txt",
        "/etc/passwd",
        "link.txt",
        "linked/letter.txt",
        "twice/letter.txt",
        "..",
        ".",
        "",
        "letter.txt\0",
    ],
)
def test_what_is_outside_is_refused(places, path) -> None:
    access, inside, outside = places
    (inside / "link.txt").symlink_to(outside / "letter.txt")
    (inside / "linked").symlink_to(outside)
    (inside / "twice").symlink_to("linked")
    for asked in (path, str(inside / path)) if path not in ("", "/etc/passwd") else (path,):
        with pytest.raises(InputError) as refused:
            access.read_text(asked, 10_000)
        with pytest.raises(InputError):
            access.write_text(asked, CANARY, overwrite=True)
        assert str(inside.parent) not in str(refused.value)
    assert (outside / "letter.txt").read_text() == "from outside"
    assert not (outside / "missing.txt").exists()


def test_a_link_to_a_file_inside_is_followed(places) -> None:
    access, inside, _ = places
    (inside / "link.txt").symlink_to("deep/letter.txt")
    assert access.read_text("link.txt", 100) == "from deep"


@pytest.mark.parametrize("path", [".hidden/letter.txt", ".env", "deep/.git", "open.txt"])
def test_names_with_a_dot_first_are_left_out(places, path) -> None:
    access, inside, _ = places
    (inside / ".env").write_text(CANARY)
    (inside / "open.txt").symlink_to(".env")
    with pytest.raises(InputError, match="begin with a dot"):
        access.read_text(path, 100)
    with pytest.raises(InputError, match="begin with a dot"):
        access.write_text(path, "x", overwrite=True)
    assert (inside / ".env").read_text() == CANARY


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (CANARY.encode("utf-16"), "plain text in UTF-8"),
        (CANARY.encode() + b"\0", "plain text in UTF-8"),
        (CANARY.encode() + b"\xff", "plain text in UTF-8"),
        (CANARY.encode() * 10, "at most 100 bytes"),
    ],
)
def test_what_is_no_text_or_too_large_is_refused_without_a_word_of_it(
    places, content, says
) -> None:
    access, inside, _ = places
    (inside / "file.txt").write_bytes(content)
    with pytest.raises(InputError, match=says) as refused:
        access.read_text("file.txt", 100)
    assert refused.value.__cause__ is refused.value.__context__ is None
    assert CANARY not in str(refused.value)


@pytest.mark.posix
def test_folders_and_devices_are_no_files(places) -> None:
    access, inside, _ = places
    (inside / "deep.txt").mkdir()
    os.mkfifo(inside / "pipe.txt")  # nobody writes into it: opening must not wait
    for path in ("deep.txt", "pipe.txt"):
        with pytest.raises(InputError, match="to a file, not to a folder or device"):
            access.read_text(path, 100)
        with pytest.raises(InputError, match="to a file, not to a folder or device"):
            access.write_text(path, "x", overwrite=True)


def test_a_file_that_is_exchanged_for_a_link_while_it_is_opened_is_refused(
    places, monkeypatch
) -> None:
    access, inside, outside = places
    opened = os.open

    def exchange(path: str, flags: int, *mode: int) -> int:
        (inside / "deep" / "letter.txt").unlink()
        (inside / "deep").rename(inside / "moved") if (inside / "deep").is_dir() else None
        (inside / "deep").symlink_to(outside)
        return opened(path, flags, *mode)

    monkeypatch.setattr("textveil.files.folder_access.os.open", exchange)
    with pytest.raises(InputError, match="changed while it was opened"):
        access.read_text("deep/letter.txt", 100)


def test_a_mark_is_left_out_and_line_ends_stay(places) -> None:
    access, inside, _ = places
    (inside / "file.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\n")
    assert access.read_text("file.txt", 100) == "a\r\nb\n"


def test_a_file_is_written_whole_for_its_owner_and_overwritten_only_if_asked(places) -> None:
    access, inside, _ = places
    text = "a\r\nb\u2028 ä\n"
    assert access.write_text("deep/new.txt", text, overwrite=False) == os.path.join(
        "deep", "new.txt"
    )
    written = inside / "deep" / "new.txt"
    assert written.read_bytes() == text.encode()
    assert written.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="set overwrite to true"):
        access.write_text("deep/new.txt", "other", overwrite=False)
    assert written.read_bytes() == text.encode()
    access.write_text("deep/new.txt", "other", overwrite=True)
    assert written.read_text() == "other"
    with pytest.raises(InputError, match="existing folder"):
        access.write_text("none/new.txt", "x", overwrite=False)


@pytest.mark.parametrize(
    "path", ["new", "new.html", "new.csv", "new.txt.command", "deep/new.", "new.md ", "link.txt"]
)
def test_only_plain_text_is_written(places, path) -> None:
    access, inside, _ = places
    (inside / "link.txt").symlink_to("linked.sh")
    before = sorted(inside.rglob("*"))
    for overwrite in (False, True):
        with pytest.raises(InputError, match=r"must end with \.txt or \.md;.*--suffix"):
            access.write_text(path, CANARY, overwrite=overwrite)
    assert sorted(inside.rglob("*")) == before
    more = FolderAccess([str(inside)], option="--output", suffixes=[".csv"])
    for allowed in ("new.csv", "new.CSV", "new.TXT", "new.md"):
        assert more.write_text(allowed, CANARY, overwrite=True) == allowed


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_cannot_be_written_leaves_no_trace(places, overwrite) -> None:
    access, inside, _ = places
    before = sorted(inside.rglob("*"))
    with pytest.raises(OutputError) as refused:  # a lone surrogate is no UTF-8
        access.write_text("new.txt", CANARY + "\ud800", overwrite=overwrite)
    assert CANARY not in str(refused.value)
    assert str(inside) not in str(refused.value)
    assert sorted(inside.rglob("*")) == before


def test_several_folders(places) -> None:
    _, inside, outside = places
    both = FolderAccess([str(inside / "deep"), str(outside)], option="--folder")
    (outside / "only.txt").write_text("here")
    assert both.read_text("letter.txt", 100) == "from deep"
    assert both.read_text("only.txt", 100) == "here"
    with pytest.raises(InputError):
        both.read_text("../letter.txt", 100)
    with pytest.raises(ConfigError, match="existing folder"):
        FolderAccess([str(inside / "none")], option="--folder")


def test_folders_that_lie_in_each_other_overlap(places) -> None:
    access, inside, outside = places
    (outside / "back").symlink_to(inside / "deep")
    for path, overlaps in (
        (inside, True),
        (inside / "deep", True),
        (inside.parent, True),
        (outside, False),
        (outside / "back", True),
    ):
        other = FolderAccess([str(path)], option="--output")
        assert access.overlaps(other) is other.overlaps(access) is overlaps
    assert access.holds(str(inside / "deep" / "new.session"))
    assert not access.holds(str(outside / "new.session"))
