"""Low-rank changes: what is trained, that a merged adapter is the trained network, files and their checksums."""

import hashlib
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import BertConfig, BertForTokenClassification

from textveil.models import adapters, bundled
from training import lowrank

IDS = torch.tensor([[1, 5, 9, 2], [3, 3, 8, 7]])


def network() -> BertForTokenClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=10,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        id2label={0: "a", 1: "b", 2: "c"},
    )
    return BertForTokenClassification(config).eval()


def trained(rank: int) -> nn.Module:
    """A network with changes in every part that asks for gradients."""
    model = network()
    lowrank.attach(model, rank, train=("classifier.",), seed=0)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.3 * torch.randn(parameter.shape)
    return model


def test_a_fresh_change_changes_nothing():
    model = network()
    before = model(input_ids=IDS).logits
    lowrank.attach(model, 2, train=(), seed=0)
    assert torch.equal(model.eval()(input_ids=IDS).logits, before)


def test_weights_and_embeddings_stand_still_and_changes_norms_biases_and_the_head_are_trained():
    asked = {name for name, each in trained(2).named_parameters() if each.requires_grad}
    assert not any(name.endswith("original") or "embeddings" in name for name in asked)
    assert {
        "classifier.weight",
        "classifier.bias",
        "bert.encoder.layer.1.output.LayerNorm.weight",
    } <= asked
    assert sum(name.endswith(".up") for name in asked) == 2 * 6


def test_a_merged_adapter_is_the_trained_network():
    model = trained(3)
    base = network()
    changes = {name: tensor.float().numpy() for name, tensor in lowrank.changes(model).items()}
    merged = adapters.MergedWeights(
        {name: tensor.numpy() for name, tensor in base.state_dict().items()}, changes
    )
    base.load_state_dict({name: torch.from_numpy(array) for name, array in merged.items()})
    assert torch.allclose(base(input_ids=IDS).logits, model(input_ids=IDS).logits, atol=0.02)


def test_packed_weights_are_those_that_run(tmp_path, monkeypatch):
    """int8 with a scale for each output, unpacked, gives the same int8 and scales again."""
    tensors = {name: each.detach() for name, each in network().named_parameters()}
    lowrank.write(
        tmp_path,
        "tagger",
        lowrank.packed(tensors),
        {"config": {}, "base": adapters.BASES["tagger"]},
    )
    monkeypatch.setattr(adapters, "_locate_folder", lambda: tmp_path)
    found = adapters.MergedWeights({}, adapters.read_tensors("tagger"))
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        step = np.abs(tensor.numpy()).max(axis=-1, keepdims=True) / (
            126 if "encoder" in name and tensor.ndim == 2 else 1000
        )
        assert (np.abs(found[name] - tensor.numpy()) <= step + 1e-6).all()
        if "encoder" in name and tensor.ndim == 2:
            assert np.array_equal(
                bundled.quantize_weight(found[name])[0], bundled.quantize_weight(tensor.numpy())[0]
            )


def test_a_lower_rank_keeps_the_best_approximation():
    model = trained(4)
    whole = lowrank.changes(model)
    lowrank.shorten(model, 2)
    short = lowrank.changes(model)
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    product = whole[f"{name}.up"].double() @ whole[f"{name}.down"].double()
    assert short[f"{name}.up"].shape == (12, 2)
    left = (product - short[f"{name}.up"].double() @ short[f"{name}.down"].double()).norm()
    assert left == pytest.approx(torch.linalg.svdvals(product)[2:].norm().item(), abs=0.02)


def test_files_are_cut_below_the_limit_and_named_with_their_checksums(tmp_path, monkeypatch):
    monkeypatch.setattr(lowrank, "SHARD", 300)
    tensors = lowrank.changes(trained(2))
    lowrank.write(tmp_path, "one", tensors, {"rank": 2})
    manifest = json.loads((tmp_path / "one.json").read_text())
    assert manifest["rank"] == 2
    found: dict[str, torch.Tensor] = {}
    for file, sha256 in manifest["files"].items():
        assert hashlib.sha256((tmp_path / file).read_bytes()).hexdigest() == sha256
        found |= load_file(tmp_path / file)
    assert len(manifest["files"]) > 3
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in found)


def test_files_of_an_earlier_adapter_with_another_number_of_parts_are_gone(tmp_path, monkeypatch):
    tensors = {name: torch.zeros(40, dtype=torch.float16) for name in "ab"}
    with monkeypatch.context() as patch:
        patch.setattr(lowrank, "SHARD", 100)
        lowrank.write(tmp_path, "one", tensors, {})
    (tmp_path / "other-1-of-2.safetensors").touch()
    lowrank.write(tmp_path, "one", tensors, {})
    assert {file.name for file in tmp_path.iterdir()} == {
        "one.json",
        "one-1-of-1.safetensors",
        "other-1-of-2.safetensors",
    }


def test_a_tensor_that_is_too_large_for_a_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lowrank, "SHARD", 10)
    with pytest.raises(ValueError, match="a must fit into one file"):
        lowrank.write(tmp_path, "one", {"a": torch.zeros(40, dtype=torch.float16)}, {})
