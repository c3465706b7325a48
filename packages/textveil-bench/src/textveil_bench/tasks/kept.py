"""Saves what judges learned, so that it is fitted once and used by every cell of every sweep.

In: what determines it, and a function that makes it. Out: the result, from disk if it is there.
Not here: what is learned (`head`, `finetune`), and rows of sweeps (`rows`).

The files are made from texts, so they are readable by their owner only. Nothing in them is executed: arrays are read
without pickle, networks from safetensors. What cannot be read, or does not fit, is made again.
"""

import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from textveil.files import make_folder, sync_folder, writing
from textveil.randomness import fresh_name
from textveil_bench.circumstances import versions

Arrays = dict[str, NDArray[Any]]

DIGEST = 16
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def home(folder: Path | None = None) -> Path:
    """The given folder, or `textveil/bench` in the user's cache: in XDG_CACHE_HOME, or ~/.cache."""
    if folder is not None:
        return folder
    named = os.environ.get("XDG_CACHE_HOME", "")
    caches = (
        Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    )  # the standard ignores relative paths
    return caches / "textveil" / "bench"


def key(libraries: tuple[str, ...], **decides: object) -> str:
    """A name for whatever these values and the versions of some libraries determine."""
    decided = repr((sorted(decides.items()), versions(*libraries)))
    return blake2b(decided.encode(), digest_size=DIGEST).hexdigest()


def fingerprint(network: Any, without: Sequence[str] = ()) -> str:
    """A fingerprint of a network's weights.

    Args:
        network: a torch network, or the bundled encoder.
        without: names of weights to ignore.
    """
    found = blake2b(digest_size=DIGEST)
    weights = network.weights if hasattr(network, "weights") else network.state_dict()
    for name in sorted(weights):
        if name not in without:
            tensor = weights[name]
            array = np.ascontiguousarray(
                tensor if isinstance(tensor, np.ndarray) else tensor.detach().cpu()
            )
            found.update(f"{name} {array.dtype} {array.shape}".encode())
            found.update(array.reshape(-1).data)
    return found.hexdigest()


def arrays(path: Path, make: Callable[[], Arrays], **shapes: tuple[int, ...]) -> Arrays:
    """Arrays by name, from a file, or made and saved there.

    Args:
        path: an .npz file; neither it nor its folder need exist.
        make: makes the arrays.
        shapes: their required names and shapes; they must also be finite.
    """
    found = _read(path)
    if {name: array.shape for name, array in found.items() if np.isfinite(array).all()} != shapes:
        found = make()
        _write(path, lambda file: np.savez(file, allow_pickle=False, **found))
    return found


def take_weights(path: Path, network: Any) -> bool:
    """Loads weights from a safetensors file into a torch network; False if none fit."""
    from safetensors.torch import load_file

    try:
        found = load_file(path)
    except Exception:  # the file is missing, or broken in one of many ways
        return False
    wanted = {name: (tensor.shape, tensor.dtype) for name, tensor in network.state_dict().items()}
    sound = {
        name: (tensor.shape, tensor.dtype)
        for name, tensor in found.items()
        if tensor.isfinite().all()
    }
    if sound == wanted:
        network.load_state_dict(found)
    return sound == wanted


def keep_weights(path: Path, network: Any) -> None:
    """Saves the weights of a torch network to a safetensors file."""
    from safetensors.torch import save

    state = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in network.state_dict().items()
    }
    _write(path, lambda file: file.write(save(state)))


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file atomically, however many processes do so at once; readable by its owner only.

    Raises:
        OutputError: it cannot be written.
    """
    part = path.with_name(f".{path.name}-{fresh_name()}")
    with writing():
        make_folder(path.parent)
        try:
            with open(os.open(part, NEW, 0o600), "wb") as file:
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
