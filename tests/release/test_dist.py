"""Both distributions are built from their own files, and say where the project is if a workflow knows it."""

import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
from release.licences import LARGEST, find_faults, read_wheel

from release import dist

NOWHERE = "http://127.0.0.1:9"
OFFLINE = {
    "PIP_NO_INDEX": "1",
    "PIP_INDEX_URL": NOWHERE,
    "http_proxy": NOWHERE,
    "https_proxy": NOWHERE,
}
PLACE = {"GITHUB_SERVER_URL": "https://host.example", "GITHUB_REPOSITORY": "owner/project"}


def read_metadata(wheel: Path) -> str:
    with ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith("/METADATA"))
        return opened.read(name).decode()


def read_contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


@pytest.fixture(autouse=True)
def no_place(monkeypatch):
    for name in PLACE:
        monkeypatch.delenv(name, raising=False)
    for name, value in OFFLINE.items():
        monkeypatch.setenv(name, value)


def test_addresses_come_from_the_workflow_and_stay(tmp_path, monkeypatch):
    project = dist.PROJECTS[1]
    plain = read_metadata(dist.run_hatchling(project, "wheel", tmp_path))
    assert "Project-URL" not in plain
    assert "(../../docs/index.md)" in plain
    for name, value in PLACE.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "known").mkdir()
    archive = dist.run_hatchling(project, "sdist", tmp_path / "known")
    for name in PLACE:
        monkeypatch.delenv(name)
    wheel = dist.build_from_archive(archive, tmp_path / "known")
    metadata = read_metadata(wheel)
    assert "Project-URL: Repository, https://host.example/owner/project\n" in metadata
    assert "(https://host.example/owner/project/blob/v0.1.0/docs/index.md)" in metadata
    assert "](../" not in metadata
    assert list(find_faults(read_wheel(wheel))) == []


def test_an_archive_without_a_file_builds_no_wheel(tmp_path):
    """The broken twin: what the repository has lies nowhere near the archive."""
    whole = dist.run_hatchling(dist.PROJECTS[1], "sdist", tmp_path)
    broken = tmp_path / "broken.tar.gz"
    with tarfile.open(whole) as opened, tarfile.open(broken, "w:gz") as written:
        for member in opened:
            if not member.name.endswith("README.md"):
                written.addfile(member, opened.extractfile(member))
    with pytest.raises(subprocess.CalledProcessError):
        dist.build_from_archive(broken, tmp_path)


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "old.whl").touch()
    with pytest.raises(FileExistsError, match="must be empty"):
        dist.build_all(tmp_path)


@pytest.mark.slow
def test_both_distributions_are_built_offline_from_their_archives(tmp_path):
    made = dist.build_all(tmp_path / "made")
    assert sorted(path.suffix for path in made) == [".gz", ".gz", ".whl", ".whl"]
    (tmp_path / "tree").mkdir()
    for path in made:
        assert path.stat().st_size < LARGEST
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    for project, wheel in zip(dist.PROJECTS, made[1::2], strict=True):
        assert list(find_faults(read_wheel(wheel))) == []
        again = dist.run_hatchling(project, "wheel", tmp_path / "tree")
        assert read_contents(again) == read_contents(wheel)
    said = subprocess.run(
        [sys.executable, "-m", "release.licences", *map(str, made[1::2])],
        cwd=dist.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (0, "")
