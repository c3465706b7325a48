"""Fixtures for all tests, those of the product and those of the bench.

In: `tests.fixtures`. Out: its fixtures, everywhere.
Not here: the fixtures themselves.
"""

pytest_plugins = ["tests.fixtures"]
