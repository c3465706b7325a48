"""What is kept on the disk: made once, checked when it is read, never run, there whole or not at all."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from textveil.errors import OutputError
from textveil_bench.tasks import judge_store

SHAPES = {"a": (2,), "b": (1, 3)}


def made(log: list[int]) -> judge_store.Arrays:
    log.append(1)
    return {"a": np.array([1.5, 2.5]), "b": np.arange(3)[None]}


def test_the_folder_is_the_one_that_was_named_or_that_of_the_users_caches(monkeypatch, tmp_path):
    assert judge_store.find_folder(tmp_path) == tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert judge_store.find_folder() == tmp_path / "caches" / "textveil" / "bench"
    monkeypatch.setenv("HOME", str(tmp_path))
    for nothing in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", nothing)
        assert judge_store.find_folder() == tmp_path / ".cache" / "textveil" / "bench"


def test_a_key_follows_from_all_that_decides():
    first = judge_store.build_key(("numpy",), rows=3, data="x")
    assert first == judge_store.build_key(("numpy",), data="x", rows=3)
    others = {
        judge_store.build_key(("numpy",), rows=4, data="x"),
        judge_store.build_key((), rows=3, data="x"),
        judge_store.build_key(("numpy",), rows="3", data="x"),
    }
    assert len(others - {first}) == 3


def test_arrays_are_made_once(tmp_path):
    log: list[int] = []
    path = tmp_path / "deep" / "x.npz"
    first, second = (judge_store.load_arrays(path, lambda: made(log), **SHAPES) for _ in range(2))
    assert log == [1]
    for name in SHAPES:
        np.testing.assert_array_equal(first[name], second[name])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["x.npz"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    place = content.index(np.float64(1.5).tobytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


def other_shape(path: Path) -> None:
    np.savez(path, a=np.zeros(3), b=np.zeros((1, 3)))


def not_finite(path: Path) -> None:
    np.savez(path, a=np.array([np.nan, 1]), b=np.zeros((1, 3)))


def other_names(path: Path) -> None:
    np.savez(path, a=np.zeros(2), b=np.zeros((1, 3)), c=np.zeros(1))


@pytest.mark.parametrize(
    "breaks",
    [cut, flip, other_shape, not_finite, other_names, Path.unlink, lambda p: p.write_bytes(b"")],
)
def test_what_is_broken_is_made_anew(breaks, tmp_path):
    log: list[int] = []
    path = tmp_path / "x.npz"
    judge_store.load_arrays(path, lambda: made(log), **SHAPES)
    breaks(path)
    assert judge_store.load_arrays(path, lambda: made(log), **SHAPES)["a"].tolist() == [1.5, 2.5]
    assert log == [1, 1]
    judge_store.load_arrays(path, lambda: made(log), **SHAPES)
    assert log == [1, 1]


class Planted:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("planted",)


def test_nothing_in_a_file_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(
        tmp_path / "x.npz",
        allow_pickle=True,
        a=np.array([Planted(), 1], object),
        b=np.zeros((1, 3)),
    )
    log: list[int] = []
    judge_store.load_arrays(tmp_path / "x.npz", lambda: made(log), **SHAPES)
    assert log == [1]
    assert not (tmp_path / "planted").exists()


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        judge_store.load_arrays(tmp_path / "file" / "x.npz", lambda: made([]), **SHAPES)


def test_weights_come_back_as_they_were(tmp_path):
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    path = tmp_path / "x.safetensors"
    assert not judge_store.load_weights(path, other)
    judge_store.save_weights(path, one)
    assert judge_store.load_weights(path, other)
    assert torch.equal(one.weight, other.weight)
    assert judge_store.hash_network(one) == judge_store.hash_network(other)


def test_weights_that_do_not_fit_or_are_broken_change_nothing(tmp_path):
    path, network = tmp_path / "x.safetensors", nn.Linear(3, 2)
    before = judge_store.hash_network(network)
    for other in (nn.Linear(2, 2), nn.Linear(3, 2, bias=False), nn.Linear(3, 2).double()):
        judge_store.save_weights(path, other)
        assert not judge_store.load_weights(path, network)
    broken = nn.Linear(3, 2)
    nn.init.constant_(broken.bias, torch.nan)
    judge_store.save_weights(path, broken)
    assert not judge_store.load_weights(path, network)
    path.write_bytes(path.read_bytes()[:-4])
    assert not judge_store.load_weights(path, network)
    assert judge_store.hash_network(network) == before


def test_a_fingerprint_tells_weights_apart_but_for_those_that_do_not_count():
    network = nn.Linear(3, 2)
    whole, part = (
        judge_store.hash_network(network),
        judge_store.hash_network(network, ignore=("bias",)),
    )
    nn.init.constant_(network.bias, 7.0)
    assert judge_store.hash_network(network) != whole
    assert judge_store.hash_network(network, ignore=("bias",)) == part
