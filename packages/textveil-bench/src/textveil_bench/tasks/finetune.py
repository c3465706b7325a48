"""Fine-tuning: an encoder with a new head, trained on originals.

In: labelled originals for training, releases to judge. Out: whether each release still gets its
label. The trained network is saved to disk.
Not here: how a trained network is run (`classifier`), and heads on frozen vectors (`head`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.errors import ModelError
from textveil.evaluate.attack import ProgressCallback, ignore_progress
from textveil.randomness import Ints, SeededRandomness
from textveil_bench.examples import DataSet
from textveil_bench.tasks import judge_models, judge_store, labelled
from textveil_bench.tasks.classifier import guess
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample

if TYPE_CHECKING:
    from textveil.models import Model, SequenceClassifier

RECIPE = 1
"""Version of the training; networks of older versions on disk are ignored."""

LIBRARIES = ("numpy", "textveil", "tokenizers", "torch", "transformers")

HEAD_DEVIATION = 0.02
"""The standard deviation of a new head's weights, as in BERT."""

SORTED_BATCHES = 16
"""Number of batches within which sequences are sorted by length."""

WARMUP_SHARE = 0.1
"""Share of steps with rising learning rate; afterwards it decays to 0."""


@make_options()
class Finetune:
    """Judges classification and pairs with an encoder fine-tuned on original texts.

    Trains the whole network and a new head with AdamW on the training split. The head and the order
    of rows in each epoch depend on the seed; the network runs without dropout, so nothing else is
    random, and the same machine gives the same weights. A text longer than the window is trained on
    window by window.

    Args:
        model: a folder or hub id of an encoder; the bundled one by default.
        rows: largest number of training rows, drawn with a fixed seed.
        epochs: passes over the rows.
        rate: the largest learning rate.
        batch: sequences per step.
        window: word pieces per sequence.
        seed: seed of the head's weights and the row order.
        device: a torch device for training and judging.
        train: returns the training split, if needed.
        folder: where the network is saved; see `judge_store.find_folder`.
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
    report: ProgressCallback = Field(default=ignore_progress, repr=False)

    @property
    def name(self) -> str:
        """The judge's name in rows."""
        return f"finetune ({judge_models.get_model_name(self.model)})"

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why the data are not labelled texts or pairs, or ""."""
        return labelled.explain_refusal(data)

    def prepare(self) -> None:
        """Trains the network, unless its weights are on disk.

        Raises:
            ModelError: there is no such encoder, or the training diverged.
            ConfigError: a label has no training row.
        """
        _ = self._training_result

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Yields the accuracy.

        Raises:
            ModelError: there is no such encoder.
            ConfigError: the training split does not match.
        """
        train, network = self._training_result
        labelled.check_training_rows(data, train)
        guesses = guess(network, trials, range(len(data.labels)), self.report)
        note = (
            f"{judge_models.get_model_name(self.model)} fine-tuned on {len(train):,} originals, "
            f"{self.epochs} epochs"
        )
        yield labelled.score_accuracy(data, guesses, note)

    @cached_property
    def _training_result(self) -> "tuple[DataSet, SequenceClassifier]":
        from textveil.models import load_labels, load_untrained

        train = labelled.select_training_rows(self.train(), self.rows)
        model, missing = load_untrained(self.model, len(train.labels), device=self.device)
        name = judge_store.build_key(
            LIBRARIES,
            recipe=RECIPE,
            data=train.digest,
            labels=len(train.labels),
            network=judge_store.hash_network(model.network.module, ignore=missing),
            **{
                option: getattr(self, option)
                for option in ("epochs", "rate", "batch", "window", "seed")
            },
        )
        path = judge_store.find_folder(self.folder) / f"finetuned-{name}.safetensors"
        network = load_labels(model, window=self.window)
        if not judge_store.load_weights(path, model.network.module):
            rng = SeededRandomness(self.seed)
            initialize_weights(model, missing, rng)
            self._learn(network, train, rng)
            judge_store.save_weights(path, model.network.module)
        model.network.module.requires_grad_(False)
        return train, network

    def _learn(self, network: "SequenceClassifier", train: DataSet, rng: SeededRandomness) -> None:
        """Trains all weights, in place.

        Raises:
            ModelError: the loss is not finite.
        """
        import torch
        from torch.nn.functional import cross_entropy

        sequences = network.build_sequences([example.texts for example in train.examples])
        model = network.model
        labels = torch.tensor([example.label for example in train.examples])[sequences.owners].to(
            model.network.device
        )
        weights = list(model.network.module.parameters())
        optimizer = torch.optim.AdamW(weights, lr=self.rate, weight_decay=0.01)
        batches = [
            batch
            for _ in range(self.epochs)
            for batch in self._build_batches(sequences.lengths, rng)
        ]
        for step, indices in enumerate(batches):
            self.report("fine-tuning", step, len(batches))
            share = (step + 1) / len(batches)
            for group in optimizer.param_groups:
                group["lr"] = self.rate * min(
                    share / WARMUP_SHARE, (1 - share) / (1 - WARMUP_SHARE)
                )
            inputs = model.network.build_inputs(*sequences.build_inputs(model, indices))
            loss = cross_entropy(model.network.module(**inputs).logits, labels[indices])
            if not torch.isfinite(loss):
                raise ModelError(
                    f"the training of {self.name} diverged: its loss is not finite; lower the rate"
                )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()

    def _build_batches(self, lengths: Ints, rng: SeededRandomness) -> list[Ints]:
        """Returns an epoch's batches in random order, grouped by similar length."""
        order = labelled.draw_order(len(lengths), rng)
        blocks = [
            order[i : i + SORTED_BATCHES * self.batch]
            for i in range(0, len(order), SORTED_BATCHES * self.batch)
        ]
        sorted_blocks = [block[np.argsort(lengths[block], kind="stable")] for block in blocks]
        batches = [
            block[i : i + self.batch]
            for block in sorted_blocks
            for i in range(0, len(block), self.batch)
        ]
        return [batches[i] for i in labelled.draw_order(len(batches), rng).tolist()]


def initialize_weights(model: "Model", missing: Sequence[str], rng: SeededRandomness) -> None:
    """Initializes the weights that an encoder lacks, in place.

    Matrices are drawn from a normal distribution; other weights are 0, or 1 for the scales of
    norms.

    Args:
        model: the network.
        missing: names of the parameters to initialize.
        rng: source of the draws.
    """
    import torch

    missing_weights = [
        (name, weight)
        for name, weight in sorted(model.network.module.named_parameters())
        if name in set(missing)
    ]
    with torch.no_grad():
        for name, weight in missing_weights:
            if weight.dim() < 2:
                weight.fill_(1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0)
                continue
            (draws,) = (chunk for _, chunk in rng.open([len(weight)]).split_rows(len(weight)))
            values = torch.from_numpy(draws.normal(weight[0].numel()) * HEAD_DEVIATION).view_as(
                weight
            )
            weight.copy_(values)
