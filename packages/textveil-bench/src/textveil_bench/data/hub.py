"""Data sets from a hub that may or may not be reached.

In: where a hub has a data set. Out: its records.
Not here: what they become (`records`), and files of models (`textveil.table`). Nothing of the user's is sent but names.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from textveil.config.extras import needed
from textveil.errors import InputError
from textveil_bench.data.sources import Hub


def fetch(hub: Hub, split: str) -> Iterable[Mapping[str, Any]]:
    """The records of a split, from the hub's cache where it is there.

    Args:
        hub: where they are.
        split: as the hub calls it.

    Raises:
        MissingExtra: the library `datasets` is not installed.
        InputError: the hub is not reached, or has no such data.
    """
    with needed({"datasets": "textveil-bench[hub]"}):
        import datasets
    quiet = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        return cast(Iterable[Mapping[str, Any]], datasets.load_dataset(hub.id, hub.configuration, split=split))
    except Exception as error:  # the hub's client raises many kinds, and their messages hold addresses and more
        failure = type(error).__name__
    finally:
        if not quiet:
            datasets.enable_progress_bars()
    raise InputError(f"it must be reached and have {called(hub, split)}, and that failed with {failure}")


def called(hub: Hub, split: str) -> str:
    """How a hub's data set is called: its id, its configuration and the split."""
    return " ".join(part for part in (hub.id, hub.configuration, split) if part)
