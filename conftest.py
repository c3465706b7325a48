"""Fixtures for all tests, those of the product and those of the bench.

In: `tests.fixtures`. Out: its fixtures, everywhere.
Not here: the fixtures themselves.
"""

import gc
import os
from pathlib import Path

import pytest

from textveil.files import locks

pytest_plugins = ["tests.fixtures"]

# What integrations import tells and fetches nothing.
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

# No test trusts anybody in the network, and to read whom a machine trusts takes longer than most requests.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "tests" / "nobody.pem")

# What is imported while tests are collected stays: to go through it again and again, looking for garbage, takes longer
# than many a test.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests of what a system without POSIX lacks, Windows or what looks like it (`tests/windows_like`)."""
    if getattr(locks, "fcntl", None) is None:
        for item in items:
            if item.get_closest_marker("posix"):
                item.add_marker(pytest.mark.skip(reason="needs forks, modes of files or SIGHUP"))


def pytest_collection_finish() -> None:
    """Garbage is looked for again, among what tests make."""
    gc.freeze()
    gc.enable()
