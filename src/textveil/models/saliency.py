"""Saliency: how strongly each word of a text affects a classifier's score.

In: words of texts. Out: a number from 0 to 1 for each word.
Not here: which words count as important (`protect`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from textveil.errors import ConfigError, ModelError
from textveil.models.networks import Model, load
from textveil.models.ragged import PieceSequence, PieceWindows, Ragged, expand_ranges, yield_batches
from textveil.randomness import Floats, Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Classifier:
    """A sequence classifier that rates how words affect its label.

    Of transformers. Load one with `load_classifier`.

    The saliency of a piece is the norm of the element-wise product of its input embedding and the
    gradient of the predicted class's score there; that of a word is the sum over its pieces. Texts
    longer than the window are read in overlapping windows: the predicted class has the largest mean
    score, weighted by window length, and each piece is judged in the window where it is farthest
    from an edge.

    Source: Denil, Demiraj, de Freitas, "Extraction of Salient Sentences from Labelled Documents"
    (2014), section 4; Li, Chen, Hovy, Jurafsky, "Visualizing and Understanding Neural Models in
    NLP" (2016).

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
        """The classifier's name in rows and statements."""
        return self.model.name

    def compute_saliency(self, texts: Ragged) -> Floats:
        """Computes the saliency of each word: float32 [T], 0 to 1.

        Scaled to 1 for the most salient word of each text; all 0 if no word affects the score.

        Raises:
            ModelError: a gradient is not finite.
        """
        pieces = PieceSequence.build(self.model, texts)
        room = self.window - len(self.model.before) - len(self.model.after)
        windows = PieceWindows.build(pieces.documents, room, room // 4)
        classes = self._predict_classes(windows, pieces.ids, len(texts.documents) - 1)
        piece_saliency = np.zeros(len(pieces.ids), np.float64)
        for which in self._yield_batches(windows.lengths):
            rows, lengths = windows.build_rows(self.model, pieces.ids, which)
            norms = self.model.network.compute_saliency(
                rows, lengths, classes[windows.documents[which]]
            )
            sizes = windows.lengths[which]
            row = np.repeat(np.arange(len(which)), sizes)
            column = expand_ranges(np.full(len(which), len(self.model.before)), sizes)
            piece = expand_ranges(windows.begins[which], sizes)
            is_owner = windows.owner[piece] == which[row]
            piece_saliency[piece[is_owner]] = norms[row[is_owner], column[is_owner]]
        if not np.isfinite(piece_saliency).all():
            raise ModelError(
                f"the gradients of {self.name} are not finite; choose another classifier"
            )
        words = (
            np.add.reduceat(np.append(piece_saliency, 0), pieces.words[:-1])
            if len(texts.words)
            else np.zeros(0)
        )
        peaks = np.zeros(len(texts.documents) - 1)
        home = np.repeat(np.arange(len(peaks)), np.diff(texts.documents))
        np.maximum.at(peaks, home, words)
        saliency: Floats = np.divide(
            words, peaks[home], out=np.zeros_like(words), where=peaks[home] > 0
        ).astype(np.float32)
        return saliency

    def _predict_classes(self, windows: PieceWindows, ids: Ints, count: int) -> Ints:
        """Predicts the class of each text: int64 [B]."""
        scores = np.zeros((count, len(self.model.network.labels)))
        for which in self._yield_batches(windows.lengths):
            rows, lengths = windows.build_rows(self.model, ids, which)
            logits = self.model.network.run(rows, lengths).astype(np.float64)
            np.add.at(scores, windows.documents[which], logits * windows.lengths[which][:, None])
        best: Ints = scores.argmax(axis=1)
        return best

    def _yield_batches(self, lengths: Ints) -> Iterator[Ints]:
        """Yields batches; single sequences without a padding piece.

        A network without one cannot tell where a padded sequence ends.
        """
        return yield_batches(lengths, 1 if self.model.network.padding_piece is None else self.batch)


def load_classifier(
    source: str | Path, *, window: int = 128, batch: int = 2048, device: str = "cpu"
) -> Classifier:
    """Loads a classifier for saliency.

    Args:
        source: a folder or hub id of a transformers model for sequence classification.
        window: pieces per sequence, at least 8; capped at what the model takes.
        batch: pieces per forward pass.
        device: a torch device.

    Raises:
        ConfigError: an option is out of range.
        ModelError: there is no such model.
    """
    if window < 8 or batch < 1:
        raise ConfigError(
            f"window must be at least 8 and batch at least 1, got {window} and {batch}"
        )
    model = load("classifier", source, device=device)
    return Classifier(model=model, window=min(window, model.longest), batch=batch)
