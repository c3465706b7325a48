"""Trained judges on disk, shared by all cells of all sweeps.

In: values that determine a judge, and a function that trains it. Out: the trained judge, from disk
if it is stored there.
Not here: how judges are trained (`head`, `finetune`), and rows of sweeps (`rows`).

The files are made from texts, so they are readable by their owner only. Nothing in them is
executed: arrays are read without pickle, networks from safetensors. A file that cannot be read or
does not fit is made again.
"""

import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from textveil.files import convert_write_errors, make_folder, sync_folder
from textveil.randomness import make_unique_name
from textveil_bench.circumstances import read_versions

Arrays = dict[str, NDArray[Any]]

DIGEST_BYTES = 16
CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def find_folder(folder: Path | None = None) -> Path:
    """Returns the judges' folder: the given one or the user's cache.

    The latter is `textveil/bench` in XDG_CACHE_HOME, or in ~/.cache.

    The cache is XDG_CACHE_HOME, or ~/.cache.
    """
    if folder is not None:
        return folder
    configured_path = os.environ.get("XDG_CACHE_HOME", "")
    caches = (
        Path(configured_path) if os.path.isabs(configured_path) else Path.home() / ".cache"
    )  # the standard ignores relative paths
    return caches / "textveil" / "bench"


def build_key(libraries: tuple[str, ...], **values: object) -> str:
    """Builds a file name from values and the versions of some libraries."""
    content = repr((sorted(values.items()), read_versions(*libraries)))
    return blake2b(content.encode(), digest_size=DIGEST_BYTES).hexdigest()


def hash_network(network: Any, ignore: Sequence[str] = ()) -> str:
    """Computes a fingerprint of a network's weights.

    Args:
        network: a torch network, or the bundled encoder.
        ignore: names of weights to ignore.
    """
    digest = blake2b(digest_size=DIGEST_BYTES)
    weights = network.weights if hasattr(network, "weights") else network.state_dict()
    for name in sorted(weights):
        if name not in ignore:
            tensor = weights[name]
            array = np.ascontiguousarray(
                tensor if isinstance(tensor, np.ndarray) else tensor.detach().cpu()
            )
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.reshape(-1).data)
    return digest.hexdigest()


def load_arrays(path: Path, make: Callable[[], Arrays], **shapes: tuple[int, ...]) -> Arrays:
    """Loads arrays by name from a file, or makes and saves them.

    Args:
        path: an .npz file; neither it nor its folder need exist.
        make: makes the arrays.
        shapes: their required names and shapes; they must also be finite.
    """
    result = _read(path)
    if {name: array.shape for name, array in result.items() if np.isfinite(array).all()} != shapes:
        result = make()
        _write(path, lambda file: np.savez(file, allow_pickle=False, **result))
    return result


def load_weights(path: Path, network: Any) -> bool:
    """Loads safetensors weights into a torch network; False if none fit."""
    from safetensors.torch import load_file

    try:
        weights = load_file(path)
    except Exception:  # the file is missing, or broken in one of many ways
        return False
    expected_shapes = {
        name: (tensor.shape, tensor.dtype) for name, tensor in network.state_dict().items()
    }
    finite_shapes = {
        name: (tensor.shape, tensor.dtype)
        for name, tensor in weights.items()
        if tensor.isfinite().all()
    }
    if finite_shapes == expected_shapes:
        network.load_state_dict(weights)
    return finite_shapes == expected_shapes


def save_weights(path: Path, network: Any) -> None:
    """Saves the weights of a torch network to a safetensors file."""
    from safetensors.torch import save

    state = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in network.state_dict().items()
    }
    _write(path, lambda file: file.write(save(state)))


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file atomically, readable by its owner only.

    Several processes may write it at once.

    Raises:
        OutputError: it cannot be written.
    """
    part = path.with_name(f".{path.name}-{make_unique_name()}")
    with convert_write_errors():
        make_folder(path.parent)
        try:
            with open(os.open(part, CREATE_FLAGS, 0o600), "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
            sync_folder(str(path))
        finally:
            part.unlink(missing_ok=True)


def _read(path: Path) -> Arrays:
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception:  # the file is missing, or broken in one of many ways
        return {}
