"""Adapters: trained weights of one job, merged into an encoder.

Their files are verified.

In: an adapter's manifest and files in `data/adapters`. Out: the weights of a whole network, each
merged when asked for.
Not here: networks and tokenizers (`networks`), and how adapters are trained (`training/` of the
repository).

A pair of tensors `NAME.up` [out, r] and `NAME.down` [r, in] is a low-rank change of the weight
NAME: their product is added when it is asked for, so that running costs nothing extra. A tensor
NAME of int8, of the base or of the adapter, is multiplied by NAME.scale [out, n], one factor for
each of the n equal parts of a row. Any other tensor is used as it is.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from textveil.errors import ModelError
from textveil.models import e5
from textveil.randomness import Floats
from textveil.table import minilm

ADAPTERS_FOLDER = "data/adapters"

BASES = {"tagger": e5.SHA256["words.safetensors"]}
"""Checksums of base models other than `minilm`, by adapter."""


def read_manifest(name: str) -> dict[str, Any]:
    """Reads an adapter's manifest, and checks its base.

    It has the adapter's configuration, the checksum of its base, and its files with theirs.
    """
    try:
        manifest: dict[str, Any] = json.loads(
            _locate_folder().joinpath(f"{name}.json").read_text(encoding="utf-8")
        )
        base, _, _ = (manifest[key] for key in ("base", "config", "files"))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelError(
            f"cannot read the manifest of the adapter {name!r}; reinstall textveil"
        ) from error
    if base != (needed := BASES.get(name, minilm.SHA256["model.safetensors"])):
        raise ModelError(
            f"the adapter {name!r} needs the base model with sha256 {needed}; reinstall textveil"
        )
    return manifest


def read_tensors(name: str) -> dict[str, Any]:
    """Reads and verifies the tensors of an adapter.

    float32, or int8 where they are stored so.

    Raises:
        ModelError: a file is missing, or does not match the manifest.
    """
    tensors: dict[str, Any] = {}
    for file, sha256 in read_manifest(name)["files"].items():
        try:
            data = _locate_folder().joinpath(file).read_bytes()
        except OSError as error:
            raise ModelError(
                f"the file {file} of the adapter {name!r} is missing; reinstall textveil"
            ) from error
        if (digest := hashlib.sha256(data).hexdigest()) != sha256:
            raise ModelError(f"{file} must have sha256 {sha256}, got {digest}; reinstall textveil")
        try:
            tensors |= {
                key: tensor if tensor.dtype == np.int8 else tensor.astype(np.float32)
                for key, tensor in load(data).items()
            }
        except SafetensorError as error:
            raise ModelError(
                f"{file} is not a valid safetensors file; reinstall textveil"
            ) from error
    return tensors


class MergedWeights(Mapping[str, Floats]):
    """The base's weights with an adapter's changes.

    They are merged one by one as they are requested, and not kept.

    Args:
        base: weights by name.
        changes: the adapter's tensors.

    Raises:
        ModelError: a change has no weight in the base, or only one of its two factors, or integers
            have no scale.
    """

    def __init__(self, base: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
        self._base, self._changes = base, changes
        for key in changes:
            self._check(key)
        self._names = dict.fromkeys(
            key for key in [*base, *changes] if not key.endswith((".up", ".down", ".scale"))
        )

    def _check(self, key: str) -> None:
        """Refuses an incomplete change, or one of a missing tensor."""
        changes, (name, _, factor) = self._changes, key.rpartition(".")
        is_complete = changes[key].dtype != np.int8 or f"{key}.scale" in changes
        if not is_complete or (factor == "scale" and name not in changes):
            raise ModelError(f"an adapter has {key} without its other part; reinstall textveil")
        if factor not in ("up", "down"):
            return
        if name not in self._base:
            raise ModelError(
                f"an adapter changes {name}, which the base does not have; reinstall textveil"
            )
        if (other := f"{name}.{'down' if factor == 'up' else 'up'}") not in changes:
            raise ModelError(f"an adapter has {key} without {other}; reinstall textveil")

    def __getitem__(self, name: str) -> Floats:
        source = self._changes if name in self._changes else self._base
        weight: Floats = source[name]
        if f"{name}.scale" in source:
            scale = source[f"{name}.scale"]  # for each block of numbers, or for each row
            blocks = weight.reshape(scale.size, -1) * scale.astype(np.float32).reshape(-1, 1)
            weight = blocks.reshape(weight.shape)
        if f"{name}.up" in self._changes:
            weight = weight + self._changes[f"{name}.up"] @ self._changes[f"{name}.down"]
        return weight

    def get_integers(self, name: str) -> tuple[NDArray[np.int8], Floats] | None:
        """Returns a trained weight stored in int8, with its row scales.

        None for any other weight.
        """
        if f"{name}.scale" not in self._changes:
            return None
        return self._changes[name], self._changes[f"{name}.scale"].reshape(-1)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _locate_folder() -> Traversable:
    return resources.files("textveil").joinpath(ADAPTERS_FOLDER)
