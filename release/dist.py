"""Builds both distributions: source archives from the repository, and wheels from those archives alone.

In: the repository, and the packages that builds require, installed. Out: four files in a folder.
Not here: how models come into them (`hatch_build`), and what must hold of them (`licences`, `tests/release`).

Nothing is downloaded, but for the files of models where the repository lacks them.
"""

import argparse
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = (ROOT, ROOT / "packages" / "textveil-bench")


def run_hatchling(project: Path, target: str, out: Path) -> Path:
    """Builds one target of a project, and returns its file."""
    before = set(out.iterdir())
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)],
        check=True,
        cwd=project,
        stdout=subprocess.DEVNULL,
    )
    (made,) = set(out.iterdir()) - before
    return made


def build_from_archive(archive: Path, out: Path) -> Path:
    """Builds a wheel in a folder that has nothing but the files of a source archive."""
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(archive) as opened:
            opened.extractall(place, filter="data")
        (project,) = Path(place).iterdir()
        return run_hatchling(project, "wheel", out)


def build_all(out: Path) -> list[Path]:
    """Builds all files of a release into an empty folder.

    Raises:
        FileExistsError: the folder holds something, which might be published with it.
    """
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise FileExistsError(f"{out} must be empty; remove what is in it")
    made = []
    for project in PROJECTS:
        archive = run_hatchling(project, "sdist", out)
        made += [archive, build_from_archive(archive, out)]
    return made


def main() -> None:
    """Builds, and says what was made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "dist")
    for file in build_all(parser.parse_args().out.resolve()):
        print(f"{file.name}  {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
