"""Circumstances of a measurement: time, machine and versions.

In: the machine, the installed packages, the package's git repository if there is one. Out: plain
data.
Not here: the measurements.
"""

import os
import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from textveil.runtime import count_threads

PACKAGES = (
    "textveil",
    "numpy",
    "onnxruntime",
    "scikit-learn",
    "randomgen",
    "tokenizers",
    "torch",
    "transformers",
)


def read_circumstances(*extra_packages: str) -> dict[str, Any]:
    """Reads time, commit, versions, machine, cores, threads and device.

    The commit is that of the working tree the package is imported from, with a "+" if the tree has
    changes, and None without one; it is looked up once per process.

    Args:
        *extra_packages: packages whose versions are added to the usual ones.
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _read_commit(),
        "python": platform.python_version(),
        "versions": read_versions(*PACKAGES, *extra_packages),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": count_threads(),
        "device": "cpu",
    }


def read_versions(*names: str) -> dict[str, str]:
    """Reads the versions of those of these packages that are installed."""
    version_by_name = {}
    for name in names:
        with suppress(PackageNotFoundError):
            version_by_name[name] = version(name)
    return version_by_name


@cache
def _read_commit() -> str | None:
    root = Path(__file__).resolve().parents[4]
    if not (root / ".git").exists():
        return None
    try:
        head, changes = (
            subprocess.run(
                ["git", *words], cwd=root, capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain"))
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head + "+" * bool(changes)
