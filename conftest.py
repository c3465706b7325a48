"""Fixtures for all tests, those of the product and those of the bench.

In: `tests.fixtures`. Out: its fixtures, everywhere.
Not here: the fixtures themselves.
"""

import os

pytest_plugins = ["tests.fixtures"]

# What integrations import tells and fetches nothing.
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
