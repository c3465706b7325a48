"""Saliency: how much each word of a text moves what a classifier says of it.

In: words of texts. Out: a number from 0 to 1 for every word.
Not here: which words count as important (`protect`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from textveil.errors import ConfigError, ModelError
from textveil.models.networks import Model, load
from textveil.models.ragged import Cut, Ragged, Windows, batches, pad, spread
from textveil.randomness import Floats, Ints, Values


@dataclass(frozen=True, kw_only=True, eq=False)
class Classifier:
    """A sequence classifier of transformers, asked which words its answer hangs on. Load one with `load_classifier`.

    A piece counts by the norm of its input embedding times the gradient there of the score of the text's class,
    number by number; a word has the sum over its pieces. Texts longer than the window are read in overlapping
    windows: their class is the one with the largest mean score, weighted by the windows' lengths, and each piece is
    judged in the window in which it lies farthest from an edge.

    Source: Denil, Demiraj, de Freitas, "Extraction of Salient Sentences from Labelled Documents" (2014), section 4;
    Li, Chen, Hovy, Jurafsky, "Visualizing and Understanding Neural Models in NLP" (2016).

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
        """What rows and statements call it."""
        return self.model.name

    def saliency(self, texts: Ragged) -> Floats:
        """The saliency of every word, float32 [T], from 0 to 1.

        The most salient word of a text has 1, unless all have 0: then no word moves the score.

        Raises:
            ModelError: a gradient is not finite.
        """
        pieces = Cut.of(self.model, texts)
        room = self.window - len(self.model.before) - len(self.model.after)
        windows = Windows.over(pieces.documents, room, room // 4)
        classes = self._classes(windows, pieces.ids, len(texts.documents) - 1)
        moved = np.zeros(len(pieces.ids), np.float64)
        for which in self._batches(windows.lengths):
            rows, lengths = windows.rows(self.model, pieces.ids, which)
            norms = self._norms(rows, lengths, classes[windows.documents[which]])
            seen = windows.lengths[which]
            row = np.repeat(np.arange(len(which)), seen)
            column = spread(np.full(len(which), len(self.model.before)), seen)
            piece = spread(windows.begins[which], seen)
            mine = windows.owner[piece] == which[row]
            moved[piece[mine]] = norms[row[mine], column[mine]]
        if not np.isfinite(moved).all():
            raise ModelError(f"the gradients of {self.name} must be finite, and are not")
        words = np.add.reduceat(np.append(moved, 0), pieces.words[:-1]) if len(texts.words) else np.zeros(0)
        most = np.zeros(len(texts.documents) - 1)
        home = np.repeat(np.arange(len(most)), np.diff(texts.documents))
        np.maximum.at(most, home, words)
        found: Floats = np.divide(words, most[home], out=np.zeros_like(words), where=most[home] > 0).astype(np.float32)
        return found

    def _classes(self, windows: Windows, ids: Ints, count: int) -> Ints:
        """The class of each text, int64 [B]."""
        scores = np.zeros((count, self.model.network.config.num_labels))
        for which in self._batches(windows.lengths):
            rows, lengths = windows.rows(self.model, ids, which)
            with torch.inference_mode():
                found = self.model.network(**pad(self.model, rows, lengths)).logits.double().cpu().numpy()
            np.add.at(scores, windows.documents[which], found * windows.lengths[which][:, None])
        best: Ints = scores.argmax(axis=1)
        return best

    def _norms(self, rows: Ints, lengths: Ints, classes: Ints) -> Values:
        """Of every piece the norm of embedding times gradient, float64 [n, L]."""
        with torch.enable_grad(), _held(self.model.network.get_input_embeddings()) as inputs:
            logits = self.model.network(**pad(self.model, rows, lengths)).logits
            chosen = logits.gather(1, torch.from_numpy(classes).to(logits.device)[:, None]).sum()
            (gradient,) = torch.autograd.grad(chosen, inputs[0])
        product = (gradient.double() * inputs[0].detach().double()).norm(dim=-1)
        norms: Values = product.cpu().numpy()
        return norms

    def _batches(self, lengths: Ints) -> Iterator[Ints]:
        """As `batches`; one by one for a network that has no piece for padding, for it cannot find the ends of more."""
        alone = getattr(self.model.network.config, "pad_token_id", None) is None
        return batches(lengths, 1 if alone else self.batch)


@contextmanager
def _held(embeddings: Any) -> Iterator[list[torch.Tensor]]:
    """Holds what the input embeddings give, so that gradients can be asked for there."""
    held: list[torch.Tensor] = []

    def hold(module: object, inputs: object, output: torch.Tensor) -> torch.Tensor:
        held.append(output.detach().requires_grad_())
        return held[-1]

    hook = embeddings.register_forward_hook(hold)
    try:
        yield held
    finally:
        hook.remove()


def load_classifier(source: str | Path, *, window: int = 128, batch: int = 2048, device: str = "cpu") -> Classifier:
    """A classifier whose saliency is asked for.

    Args:
        source: a folder or hub id of a transformers model for sequence classification.
        window: pieces that the network sees at once, at least 8; no more than the model takes.
        batch: pieces in one run of the network.
        device: a torch device.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model.
    """
    if window < 8 or batch < 1:
        raise ConfigError(f"window must be at least 8 and batch at least 1, got {window} and {batch}")
    model = load("classifier", source, device=device)
    return Classifier(model=model, window=min(window, model.longest), batch=batch)
