"""The training loop of all adapters: steps, schedule, checkpoints, log.

In: a model with its trainable parts, and a function from a step's number to its loss. Out: a
trained model.
Not here: what is trained on what (one script per adapter), and what an adapter is (`lowrank`).

A run may be stopped and restarted at any time: all randomness of a step depends on the seed and the
step's number, and checkpoints are written atomically.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class Run:
    """How long and how fast to train.

    Attributes:
        folder: for the checkpoint and the log.
        rate: the highest learning rate.
        yield_waves: (step, share of the rate), interpolated linearly; the last step is the end.
        every: steps between checkpoints, each with a measurement.
        device: a torch device.
        shares: (part of a name, share of the rate): each parameter has that of the first that is in
            its name. By default low-rank parts have the whole, and everything else half of it.
    """

    folder: Path
    rate: float
    yield_waves: tuple[tuple[int, float], ...]
    every: int
    device: str
    shares: tuple[tuple[str, float], ...] = ((".up", 1.0), (".down", 1.0), ("", 0.5))

    @property
    def steps(self) -> int:
        """Total number of optimizer steps."""
        return self.yield_waves[-1][0]

    def factor(self, step: int) -> float:
        """The learning rate of a step, as a share of `rate`."""
        steps, shares = zip(*self.yield_waves, strict=True)
        return float(np.interp(step + 1, steps, shares))


def fit(
    model: nn.Module,
    run: Run,
    loss_of: Callable[[int], Tensor],
    measure: Callable[[], dict[str, float]],
) -> None:
    """Trains all parameters that require gradients, from the last checkpoint on.

    Args:
        model: on its device.
        run: how long and how fast.
        loss_of: the loss of a step, by its number, on which all its randomness depends.
        measure: what to log besides the loss, measured on data that is not trained on.
    """
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    own = [next(i for i, (part, _) in enumerate(run.shares) if part in name) for name, _ in named]
    groups = [
        {"params": [each for (_, each), i in zip(named, own, strict=True) if i == g]}
        for g in range(len(run.shares))
    ]
    optimizer = torch.optim.AdamW(groups, lr=run.rate, betas=(0.9, 0.98), weight_decay=0.0)
    run.folder.mkdir(parents=True, exist_ok=True)
    checkpoint, log = run.folder / "checkpoint.pt", run.folder / "log.jsonl"
    first, spent = 0, 0.0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=run.device, weights_only=True)
        model.load_state_dict(state["model"])
        if state["optimizer"]:
            try:
                optimizer.load_state_dict(state["optimizer"])
            except ValueError as error:
                raise SystemExit(
                    f"{checkpoint} is of another recipe; move it away to begin anew"
                ) from error
        first, spent = state["step"], state["seconds"]
    start = time.monotonic() - spent
    running: float | None = None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("training", total=run.steps, completed=first)
        for step in range(first, run.steps):
            for group, (_, share) in zip(optimizer.param_groups, run.shares, strict=True):
                group["lr"] = run.rate * share * run.factor(step)
            model.train()
            loss = loss_of(step)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_([each for _, each in named], 1.0)
            optimizer.step()
            optimizer.zero_grad()
            running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
            progress.update(bar, advance=1, description=f"loss {running:.3f}")
            if (step + 1) % run.every == 0 or step + 1 == run.steps:
                model.eval()
                with torch.no_grad():
                    found = measure()
                seconds = time.monotonic() - start
                row = {
                    "step": step + 1,
                    "loss": round(running, 4),
                    "seconds": round(seconds),
                    **found,
                }
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                progress.console.print(row)
                state = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "step": step + 1,
                }
                torch.save({**state, "seconds": seconds}, whole := checkpoint.with_suffix(".new"))
                os.replace(whole, checkpoint)
    model.eval()
