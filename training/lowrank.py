"""Low-rank adapters of the small encoder: training them, and writing them to files.

In: the encoder as its authors made it. Out: the same encoder with a trainable low-rank change in
its linear layers, and the tensors of that change. Not here: how adapters are loaded and merged
(`textveil.models.adapters`).
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.utils import parametrize

from textveil.models import bundled

SHARD = 4 * 2**20 - 2**14
"""Bytes of tensors per file: below 4 MiB with the header."""

BLOCKS = "encoder.layer."
"""In the names of what belongs to the blocks of the encoder."""


class LowRank(nn.Module):
    """W + up @ down, as a parametrization of a linear layer's weight: one product per step, for any batch size."""

    def __init__(self, out: int, into: int, rank: int, generator: torch.Generator) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, into, generator=generator) * into**-0.5)
        self.up = nn.Parameter(torch.zeros(out, rank))

    def forward(self, weight: Tensor) -> Tensor:
        """The changed weight [out, into]."""
        return weight + self.up @ self.down


def attach(
    model: nn.Module, rank: int, *, train: tuple[str, ...], seed: int, dropout: float = 0.0
) -> None:
    """Freezes a model, gives each linear layer of its blocks a low-rank change, and unfreezes norms, biases and more.

    Args:
        model: a transformers model over a BERT encoder.
        rank: of the changes.
        train: further parameters to train in full, by prefix of their names (heads, small
            embeddings).
        seed: for the initial values of the changes.
        dropout: of all dropout layers.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        small = BLOCKS in name and parameter.ndim == 1
        parameter.requires_grad_(small or name.startswith(train))
    for name, module in list(model.named_modules()):
        if BLOCKS in name and isinstance(module, nn.Linear):
            change = LowRank(module.out_features, module.in_features, rank, generator)
            parametrize.register_parametrization(module, "weight", change)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout


def shorten(model: nn.Module, rank: int) -> None:
    """Replaces each low-rank change of a model by its best approximation of a lower rank."""
    for module in model.modules():
        if isinstance(module, LowRank):
            up, down = _factors(module, rank)
            module.up, module.down = nn.Parameter(up), nn.Parameter(down)


def changes(model: nn.Module) -> dict[str, Tensor]:
    """The trained tensors in half precision: `NAME.up` and `NAME.down` for a low-rank change, `NAME` for all others."""
    found: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad or ".parametrizations." in name:
            continue
        found[name] = parameter.detach()
    for name, module in model.named_modules():
        if isinstance(module, LowRank):
            weight = name.replace(".parametrizations.weight.0", ".weight")
            found[f"{weight}.up"], found[f"{weight}.down"] = _factors(module, len(module.down))
    return {
        name: value.cpu().to(torch.float16).contiguous() for name, value in sorted(found.items())
    }


def packed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A network's weights: of its blocks in the int8 in which they run, with `NAME.scale`; others in half precision."""
    found: dict[str, Tensor] = {}
    for name, value in sorted(tensors.items()):
        if BLOCKS in name and value.ndim == 2:
            numbers, scale = bundled.quantize_weight(value.float().numpy())
            found[name], found[f"{name}.scale"] = torch.from_numpy(numbers), torch.from_numpy(scale)
        else:
            found[name] = value.to(torch.float16)
    return {name: value.contiguous() for name, value in found.items()}


def _factors(change: LowRank, rank: int) -> tuple[Tensor, Tensor]:
    """Two factors of equal norm of a change, or of its best approximation of a lower rank."""
    product = change.up.detach().double() @ change.down.detach().double()
    left, singular, right = torch.linalg.svd(product, full_matrices=False)
    root = singular[:rank].sqrt()
    return (left[:, :rank] * root).to(change.up), (root[:, None] * right[:rank]).to(change.down)


def write(folder: Path, name: str, tensors: dict[str, Tensor], about: dict[str, object]) -> None:
    """Writes the adapter as files of less than 4 MiB and its manifest with their checksums, replacing old ones."""
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for key, tensor in tensors.items():
        bytes_ = tensor.numel() * tensor.element_size()
        if bytes_ > SHARD:
            raise ValueError(f"{key} must fit into one file of {SHARD} bytes, and has {bytes_}")
        if size + bytes_ > SHARD:
            shards.append({})
            size = 0
        shards[-1][key] = tensor
        size += bytes_
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{name}-*-of-*.safetensors"):
        old.unlink()
    files = {}
    for number, shard in enumerate(shards, 1):
        data = save(shard)
        file = folder / f"{name}-{number}-of-{len(shards)}.safetensors"
        file.write_bytes(data)
        files[file.name] = hashlib.sha256(data).hexdigest()
    manifest = json.dumps({**about, "files": files}, indent=2, sort_keys=True)
    (folder / f"{name}.json").write_text(manifest + "\n", encoding="utf-8")
