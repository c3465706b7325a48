"""Data sets from a hub, online or from its cache.

In: the location of a data set on a hub. Out: its records.
Not here: reading records (`records`), and files of models (`textveil.table`). Only names are sent.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from textveil.config.extras import explain_missing
from textveil.errors import InputError
from textveil_bench.data.sources import Hub


def fetch(hub: Hub, split: str) -> Iterable[Mapping[str, Any]]:
    """Fetches the records of a split, from the hub's cache if possible.

    Args:
        hub: the data set's location.
        split: the hub's name for it.

    Raises:
        MissingExtra: the library `datasets` is not installed.
        InputError: the hub cannot be reached, or has no such data.
    """
    with explain_missing({"datasets": "textveil-bench[hub]"}):
        import datasets
    quiet = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        return cast(
            Iterable[Mapping[str, Any]],
            datasets.load_dataset(hub.id, hub.configuration, split=split),
        )
    except Exception as error:  # the library raises many types, with addresses in their messages
        failure = type(error).__name__
    finally:
        if not quiet:
            datasets.enable_progress_bars()
    raise InputError(f"fetching {format_hub_name(hub, split)} failed ({failure})")


def format_hub_name(hub: Hub, split: str) -> str:
    """Formats a hub data set's full name: id, configuration and split."""
    return " ".join(part for part in (hub.id, hub.configuration, split) if part)
