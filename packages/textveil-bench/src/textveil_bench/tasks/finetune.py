"""Fine-tuning: an encoder with a new head, trained as a whole on originals, and saved to disk.

In: labelled originals for training, releases to judge. Out: whether each release still gets its label.
Not here: how a trained network is run (`classifier`), and heads on frozen vectors (`head`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from textveil.config import options
from textveil.errors import ModelError
from textveil.evaluate.attack import Report, quiet
from textveil.randomness import Ints, SeededRandomness
from textveil_bench.examples import DataSet
from textveil_bench.tasks import kept, labelled, models
from textveil_bench.tasks.classifier import guess
from textveil_bench.tasks.contract import Score
from textveil_bench.trials import ReleasedExample

if TYPE_CHECKING:
    from textveil.models import Model, SequenceClassifier

RECIPE = 1
"""Version of the training; results of older versions on disk are ignored."""

LIBRARIES = ("numpy", "textveil", "tokenizers", "torch", "transformers")

HEAD = 0.02
"""The standard deviation of a new head's weights, as in BERT."""

ALIKE = 16
"""Batches within which sequences are sorted by length."""

WARM = 0.1
"""Share of steps in which the learning rate rises; then it decays to 0."""


@options()
class Finetune:
    """Judges classification and pairs with an encoder fine-tuned on originals of the training split.

    Trains the whole network and a new head with AdamW. The head and the order of rows in each epoch depend on the seed;
    the network runs without dropout, so nothing else is random, and the same machine gives the same weights. A text
    longer than the window is trained on window by window.

    Args:
        model: a folder or hub id of an encoder; the bundled one by default.
        rows: most training rows, drawn with a fixed seed.
        epochs: passes over the rows.
        rate: the largest learning rate.
        batch: sequences per step.
        window: pieces per sequence.
        seed: of head and order.
        device: a torch device for training and judging.
        train: returns the training split, if needed.
        folder: where the result is saved; see `kept.home`.
        report: called with progress.
    """

    model: str | None = None
    rows: Annotated[int, Field(ge=2, strict=True)] = 8_000
    epochs: Annotated[int, Field(ge=1, strict=True)] = 2
    rate: Annotated[float, Field(gt=0, lt=1)] = 1e-4
    batch: Annotated[int, Field(ge=1, strict=True)] = 32
    window: Annotated[int, Field(ge=16, strict=True)] = 128
    seed: Annotated[int, Field(ge=0, strict=True)] = 0
    device: str = "cpu"
    train: Callable[[], DataSet] = Field(repr=False)
    folder: Path | None = Field(default=None, repr=False)
    report: Report = Field(default=quiet, repr=False)

    @property
    def name(self) -> str:
        """What rows call it."""
        return f"finetune ({models.called(self.model)})"

    def refusal(self, data: DataSet) -> str:
        """The reason if the data are not labelled texts or pairs."""
        return labelled.refusal(data)

    def prepare(self) -> None:
        """Trains the network, unless its weights are on disk.

        Raises:
            ModelError: there is no such encoder, or the training diverged.
            ConfigError: a label has no training row.
        """
        _ = self._trained

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Accuracy.

        Raises:
            ModelError: there is no such encoder.
            ConfigError: the training split does not match.
        """
        train, network = self._trained
        labelled.check_trained(data, train)
        guessed = guess(network, trials, range(len(data.labels)), self.report)
        note = f"{models.called(self.model)} fine-tuned on {len(train):,} originals, {self.epochs} epochs"
        yield labelled.accuracy(data, guessed, note)

    @cached_property
    def _trained(self) -> "tuple[DataSet, SequenceClassifier]":
        from textveil.models import load_labels, untrained

        train = labelled.learned_from(self.train(), self.rows)
        model, missing = untrained(self.model, len(train.labels), device=self.device)
        name = kept.key(
            LIBRARIES,
            recipe=RECIPE,
            data=train.digest,
            labels=len(train.labels),
            network=kept.fingerprint(model.network.module, without=missing),
            **{each: getattr(self, each) for each in ("epochs", "rate", "batch", "window", "seed")},
        )
        path = kept.home(self.folder) / f"finetuned-{name}.safetensors"
        network = load_labels(model, window=self.window)
        if not kept.take_weights(path, model.network.module):
            rng = SeededRandomness(self.seed)
            begin(model, missing, rng)
            self._learn(network, train, rng)
            kept.keep_weights(path, model.network.module)
        model.network.module.requires_grad_(False)
        return train, network

    def _learn(self, network: "SequenceClassifier", train: DataSet, rng: SeededRandomness) -> None:
        """Trains all weights, in place.

        Raises:
            ModelError: the loss is not finite.
        """
        import torch
        from torch.nn.functional import cross_entropy

        shown = network.sequences([example.texts for example in train.examples])
        model = network.model
        labels = torch.tensor([example.label for example in train.examples])[shown.owners].to(
            model.network.device
        )
        weights = list(model.network.module.parameters())
        optimizer = torch.optim.AdamW(weights, lr=self.rate, weight_decay=0.01)
        batches = [batch for _ in range(self.epochs) for batch in self._batches(shown.lengths, rng)]
        for step, which in enumerate(batches):
            self.report("fine-tuning", step, len(batches))
            share = (step + 1) / len(batches)
            for group in optimizer.param_groups:
                group["lr"] = self.rate * min(share / WARM, (1 - share) / (1 - WARM))
            inputs = model.network.inputs(*shown.inputs(model, which))
            loss = cross_entropy(model.network.module(**inputs).logits, labels[which])
            if not torch.isfinite(loss):
                raise ModelError(
                    f"the training of {self.name} diverged: its loss is not finite; lower the rate"
                )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()

    def _batches(self, lengths: Ints, rng: SeededRandomness) -> list[Ints]:
        """The steps of an epoch: sequences in random order, grouped by similar length to save padding."""
        order = labelled.shuffled(len(lengths), rng)
        blocks = [
            order[i : i + ALIKE * self.batch] for i in range(0, len(order), ALIKE * self.batch)
        ]
        sorted_blocks = [block[np.argsort(lengths[block], kind="stable")] for block in blocks]
        batches = [
            block[i : i + self.batch]
            for block in sorted_blocks
            for i in range(0, len(block), self.batch)
        ]
        return [batches[i] for i in labelled.shuffled(len(batches), rng).tolist()]


def begin(model: "Model", missing: Sequence[str], rng: SeededRandomness) -> None:
    """Initializes the weights that an encoder lacks, in place: matrices from a normal distribution, the rest with 0.

    Args:
        model: the network.
        missing: names of the parameters to initialize.
        rng: source of the draws.
    """
    import torch

    new = [
        (name, weight)
        for name, weight in sorted(model.network.module.named_parameters())
        if name in set(missing)
    ]
    with torch.no_grad():
        for name, weight in new:
            if weight.dim() < 2:
                weight.fill_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0)
                continue
            (draws,) = (each for _, each in rng.open([len(weight)]).chunks(len(weight)))
            drawn = torch.from_numpy(draws.normal(weight[0].numel()) * HEAD).view_as(weight)
            weight.copy_(drawn)
