"""Adapters: weights trained for one job, verified and merged into the small encoder's.

In: an adapter's manifest and files in `data/adapters`. Out: the state dict of a whole network.
Not here: networks and tokenizers (`networks`), and how adapters are trained (`training/` of the repository).

A pair of tensors `NAME.up` [out, r] and `NAME.down` [r, in] is a low-rank change of the weight NAME: their product is
added once, on loading, so that running costs nothing extra. Any other tensor is used as it is.
"""

import hashlib
import json
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from textveil.errors import ModelError
from textveil.table import minilm

FOLDER = "data/adapters"


def manifest(name: str) -> dict[str, Any]:
    """An adapter's configuration, the checksum of its base, and its files with theirs."""
    try:
        found: dict[str, Any] = json.loads(_folder().joinpath(f"{name}.json").read_text(encoding="utf-8"))
        base, _, _ = (found[key] for key in ("base", "config", "files"))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelError(f"cannot read the manifest of the adapter {name!r}; reinstall textveil") from error
    if base != minilm.SHA256:
        raise ModelError(f"the adapter {name!r} needs the base model with sha256 {minilm.SHA256}; reinstall textveil")
    return found


def tensors(name: str) -> dict[str, torch.Tensor]:
    """The tensors of an adapter, float32.

    Raises:
        ModelError: a file is missing, or does not match the manifest.
    """
    found: dict[str, torch.Tensor] = {}
    for file, sha256 in manifest(name)["files"].items():
        try:
            data = _folder().joinpath(file).read_bytes()
        except OSError as error:
            raise ModelError(f"the file {file} of the adapter {name!r} is missing; reinstall textveil") from error
        if (seen := hashlib.sha256(data).hexdigest()) != sha256:
            raise ModelError(f"{file} must have sha256 {sha256}, got {seen}; reinstall textveil")
        try:
            found |= load(data)
        except SafetensorError as error:
            raise ModelError(f"{file} is not a valid safetensors file; reinstall textveil") from error
    return {key: tensor.float() for key, tensor in found.items()}


def merge(base: dict[str, torch.Tensor], changes: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The base's weights with an adapter's changes merged in.

    Raises:
        ModelError: a change has no weight in the base, or only one of its two factors.
    """
    merged = dict(base)
    for key, tensor in changes.items():
        name, _, factor = key.rpartition(".")
        if factor == "up":
            if name not in base:
                raise ModelError(f"an adapter changes {name}, which the base does not have; reinstall textveil")
            if f"{name}.down" not in changes:
                raise ModelError(f"an adapter has {name}.up without {name}.down; reinstall textveil")
            merged[name] = base[name] + tensor @ changes[f"{name}.down"]
        elif factor != "down":
            merged[key] = tensor
    return merged


def _folder() -> Traversable:
    return resources.files("textveil").joinpath(FOLDER)
