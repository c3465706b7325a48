"""Labels: how a sequence classifier labels texts or pairs of texts.

In: texts. Out: a logit for each label.
Not here: which words a label depends on (`saliency`), and how labels are scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from textveil.errors import ConfigError, InputError
from textveil.models.networks import Model, load
from textveil.models.sequences import PairFrame, Sequences, build_sequences, cut_texts
from textveil.randomness import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class SequenceClassifier:
    """A sequence classifier of transformers. Load one with `load_labels`.

    A text longer than the window is read in windows that overlap by a quarter, and gets the mean of
    their logits, weighted by length. In a pair, the whole first text precedes each window of the
    second.

    Attributes:
        model: the network.
        window: pieces per sequence, special tokens included.
        batch: pieces per forward pass.
    """

    model: Model
    window: int
    batch: int

    @property
    def name(self) -> str:
        """The classifier's name in rows."""
        return self.model.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The model's label names, in logit order.

        "LABEL_0" and so on if it names none.
        """
        names: tuple[str, ...] = self.model.network.labels
        return names

    def build_sequences(self, texts: Sequence[Sequence[str]]) -> Sequences:
        """Builds network sequences of the examples, at least one each.

        Args:
            texts: examples of one text each, or of two each.

        Raises:
            InputError: an example has neither one nor two texts, or not as many as the others; a
                text is not valid Unicode; the first of two takes more than half of the window.
        """
        sizes = {len(example) for example in texts}
        if len(sizes) > 1 or not sizes <= {1, 2}:
            raise InputError(
                "a classifier takes one text per example, or two per example, the same for all"
            )
        pairs = sizes == {2}
        text_pieces = [
            # a text without pieces would have no sequence, and so no logits
            ids or [self.model.unknown]
            for ids, _ in cut_texts(self.model, [example[-1] for example in texts])
        ]
        if not pairs:
            return build_sequences(self.model, text_pieces, self.window)
        firsts = [ids for ids, _ in cut_texts(self.model, [example[0] for example in texts])]
        return build_sequences(
            self.model, text_pieces, self.window, firsts=firsts, frame=PairFrame.read(self.model)
        )

    def compute_logits(self, texts: Sequence[Sequence[str]]) -> Floats:
        """Computes the logit of each label: float32 [B, C].

        Args:
            texts: examples of one text each, or of two each.

        Raises:
            InputError: as in `build_sequences`.
        """
        windows = self.build_sequences(texts)
        sizes = (windows.lengths - windows.leads - len(self.model.after)).astype(np.float64)
        sums = np.zeros((len(texts), len(self.labels)))
        for which in windows.yield_batches(self.model, self.batch):
            logits = self.model.network.run(*windows.build_inputs(self.model, which)).astype(
                np.float64
            )
            np.add.at(sums, windows.owners[which], logits * sizes[which, None])
        weights = np.bincount(windows.owners, sizes, minlength=len(texts))
        means: Floats = (sums / weights[:, None]).astype(np.float32)
        return means


def load_labels(
    source: str | Path | Model, *, window: int = 256, batch: int = 4096, device: str = "cpu"
) -> SequenceClassifier:
    """Loads a sequence classifier.

    Args:
        source: a folder or hub id of a transformers model for sequence classification, or a loaded
            one.
        window: pieces per sequence, at least 8; capped at what the model takes.
        batch: pieces per forward pass.
        device: a torch device, for loading.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model.
    """
    if window < 8 or batch < 1:
        raise ConfigError(
            f"window must be at least 8 and batch at least 1, got {window} and {batch}"
        )
    model = source if isinstance(source, Model) else load("classifier", source, device=device)
    return SequenceClassifier(model=model, window=min(window, model.longest), batch=batch)
