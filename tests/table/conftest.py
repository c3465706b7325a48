"""Leaves out what multiplies 8-bit integers, on processors where ONNX Runtime does not do that exactly.

There the product does not do it either (`textveil.table.int8.is_exact`), which `test_engine` tests everywhere.
"""

import pytest

from textveil.table import int8

INTEGERS = (
    "test_products_are_exact_in_every_form",
    "test_rows_become_integers_on_the_way",
    "test_a_few_queries_do_not_wait_for_integers_to_be_made",
    "test_candidates_are_scored_before_they_are_too_many",
    "test_equal_rows_in_float16_and_rows_of_few_coordinates_are_told_apart",
    "test_integers_are_multiplied_where_that_is_exact[True",
    "test_no_score_is_farther_from_the_true_one_than_the_bound",
    "test_only_the_direction_of_a_query_counts_where_rows_are_unit_vectors",
    "test_rows_held_in_float16_are_found_exactly[chord]",
    "test_rows_too_many_to_be_kept_become_integers_for_every_batch",
)
"""Tests that take integers whatever the processor, but for those that say int8 in their name."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips them; this file's folder is the only one that has them."""
    mine = [item for item in items if "tests/table/" in item.nodeid]
    wanted = [item for item in mine if "int8" in item.name or item.name.startswith(INTEGERS)]
    if wanted and not int8.is_exact():
        for item in wanted:
            item.add_marker(
                pytest.mark.skip("8-bit integers are not multiplied exactly on this processor")
            )
