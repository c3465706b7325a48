"""Labels: what a sequence classifier takes texts, or pairs of texts, to be.

In: texts. Out: a logit for each label.
Not here: which words an answer hangs on (`saliency`), and how answers are scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from textveil.errors import ConfigError, InputError
from textveil.models.joint import Frame, Sequences, cut, sequences
from textveil.models.networks import Model, load
from textveil.randomness import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class SequenceClassifier:
    """A sequence classifier of transformers. Load one with `load_labels`.

    A text that is longer than the window is read in windows that overlap by a quarter, and has the mean of their
    logits, weighted by their lengths. Of a pair, the first text stands whole before every window of the second.

    Attributes:
        model: the network.
        window: pieces that the network sees at once, the frame included.
        batch: pieces in one run of the network.
    """

    model: Model
    window: int
    batch: int

    @property
    def name(self) -> str:
        """What rows call it."""
        return self.model.name

    @property
    def labels(self) -> tuple[str, ...]:
        """What the model calls its labels, in the order of the logits; "LABEL_0" and so on where nobody named them."""
        names = self.model.network.config.id2label
        return tuple(str(names[i]) for i in range(self.model.network.config.num_labels))

    def sequences(self, texts: Sequence[Sequence[str]]) -> Sequences:
        """Examples as the network sees them, at least one sequence each.

        Args:
            texts: one text for each example, or two; the same for all of them.

        Raises:
            InputError: an example has more texts than two, or another number than the first; a text is none; the first
                of two takes more than half of the window.
        """
        sizes = {len(each) for each in texts}
        if len(sizes) > 1 or not sizes <= {1, 2}:
            raise InputError("a classifier takes one text for each example, or two, the same for all of them")
        pairs = sizes == {2}
        read = [ids or [self.model.unknown] for ids, _ in cut(self.model, [each[-1] for each in texts])]
        if not pairs:
            return sequences(self.model, read, self.window)
        firsts = [ids for ids, _ in cut(self.model, [each[0] for each in texts])]
        return sequences(self.model, read, self.window, firsts=firsts, frame=Frame.of(self.model))

    def logits(self, texts: Sequence[Sequence[str]]) -> Floats:
        """The logit of each label, float32 [B, C].

        Args:
            texts: one text for each example, or two; the same for all of them.

        Raises:
            InputError: as `sequences` says.
        """
        shown = self.sequences(texts)
        sizes = (shown.lengths - shown.leads - len(self.model.after)).astype(np.float64)
        sums = np.zeros((len(texts), len(self.labels)))
        for which in shown.batches(self.model, self.batch):
            with torch.inference_mode():
                found = self.model.network(**shown.inputs(self.model, which)).logits.double().cpu().numpy()
            np.add.at(sums, shown.owners[which], found * sizes[which, None])
        weights = np.bincount(shown.owners, sizes, minlength=len(texts))
        means: Floats = (sums / weights[:, None]).astype(np.float32)
        return means


def load_labels(
    source: str | Path | Model, *, window: int = 256, batch: int = 4096, device: str = "cpu"
) -> SequenceClassifier:
    """A sequence classifier.

    Args:
        source: a folder or hub id of a transformers model for sequence classification; or one that is loaded already.
        window: pieces that the network sees at once, at least 8; no more than the model takes.
        batch: pieces in one run of the network.
        device: a torch device, for what is not loaded yet.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model.
    """
    if window < 8 or batch < 1:
        raise ConfigError(f"window must be at least 8 and batch at least 1, got {window} and {batch}")
    model = source if isinstance(source, Model) else load("classifier", source, device=device)
    return SequenceClassifier(model=model, window=min(window, model.longest), batch=batch)
