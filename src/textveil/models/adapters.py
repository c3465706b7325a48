"""Adapters: what was trained for a job, checked and merged into the small encoder's weights.

In: an adapter's manifest and files in `data/adapters`. Out: the state of a whole network.
Not here: networks and tokenizers (`models`), and how adapters are trained (`training/` of the repository).

A tensor `NAME.up` [out, r] with `NAME.down` [r, in] is a change of the weight NAME: their product is added to it once,
when the adapter is loaded, so that running the network costs no more than without. Any other tensor stands as it is.
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
    """What an adapter is: its configuration, the checksum of its base, and its files with theirs."""
    try:
        found: dict[str, Any] = json.loads(_folder().joinpath(f"{name}.json").read_text(encoding="utf-8"))
        base, _, _ = (found[key] for key in ("base", "config", "files"))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelError(f"the manifest of the adapter {name!r} must be readable; reinstall textveil") from error
    if base != minilm.SHA256:
        raise ModelError(f"the adapter {name!r} must belong to the base model with sha256 {minilm.SHA256}")
    return found


def tensors(name: str) -> dict[str, torch.Tensor]:
    """The tensors of an adapter, float32.

    Raises:
        ModelError: a file is missing, or is not the one that the manifest names.
    """
    found: dict[str, torch.Tensor] = {}
    for file, sha256 in manifest(name)["files"].items():
        try:
            data = _folder().joinpath(file).read_bytes()
        except OSError as error:
            raise ModelError(f"the file {file} of the adapter {name!r} is missing; reinstall textveil") from error
        if (seen := hashlib.sha256(data).hexdigest()) != sha256:
            raise ModelError(f"{file} must have sha256 {sha256}, found {seen}; reinstall textveil")
        try:
            found |= load(data)
        except SafetensorError as error:
            raise ModelError(f"{file} must be a safetensors file; reinstall textveil") from error
    return {key: tensor.float() for key, tensor in found.items()}


def merge(base: dict[str, torch.Tensor], changes: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of the base with the changes of an adapter in them.

    Raises:
        ModelError: a change belongs to no weight of the base, or lacks a factor.
    """
    merged = dict(base)
    for key, tensor in changes.items():
        name, _, factor = key.rpartition(".")
        if factor == "up":
            if name not in base:
                raise ModelError(f"an adapter changes {name}, which its base must have")
            if f"{name}.down" not in changes:
                raise ModelError(f"an adapter changes {name} by a product, and must have both factors")
            merged[name] = base[name] + tensor @ changes[f"{name}.down"]
        elif factor != "down":
            merged[key] = tensor
    return merged


def _folder() -> Traversable:
    return resources.files("textveil").joinpath(FOLDER)
