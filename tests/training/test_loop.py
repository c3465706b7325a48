"""The training loop: it learns, and a run that was stopped ends where one that was not ends."""

import json

import pytest
import torch
from torch import nn
from training.loop import Run, fit

SCHEDULE = (0, 0.0), (2, 1.0), (20, 0.0)


def problem():
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    target = torch.tensor([[1.0, -2.0, 0.5]])

    def loss_of(step: int) -> torch.Tensor:
        x = torch.randn(16, 3, generator=torch.Generator().manual_seed(step))
        return (model(x) - x @ target.T).square().mean()

    return model, loss_of


def run(folder) -> Run:
    return Run(
        folder=folder,
        rate=0.2,
        shares=(("bias", 1.0), ("", 0.5)),
        yield_waves=SCHEDULE,
        every=4,
        device="cpu",
    )


def test_a_stopped_run_goes_on_and_ends_as_if_it_had_not_been_stopped(tmp_path):
    model, loss_of = problem()
    fit(model, run(tmp_path / "whole"), loss_of, dict)

    other, other_loss = problem()

    def stops(step: int) -> torch.Tensor:
        if step == 10:
            raise KeyboardInterrupt
        return other_loss(step)

    with pytest.raises(KeyboardInterrupt):
        fit(other, run(tmp_path / "parts"), stops, dict)
    again, again_loss = problem()
    fit(again, run(tmp_path / "parts"), again_loss, dict)
    assert torch.equal(model.weight, again.weight)


def test_the_loss_falls_and_every_measurement_is_logged(tmp_path):
    model, loss_of = problem()
    first = loss_of(0).item()
    fit(model, run(tmp_path), loss_of, lambda: {"seen": 1.0})
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [4, 8, 12, 16, 20]
    assert all(row["seen"] == 1 for row in rows)
    assert loss_of(0).item() < first / 2


def test_the_rate_follows_the_schedule():
    factors = [run("").factor(step) for step in range(20)]
    assert factors[0] == 0.5
    assert factors[1] == 1.0
    assert factors[19] == 0.0
    assert factors[1:] == sorted(factors[1:], reverse=True)
