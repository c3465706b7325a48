"""An attacker who also trains a small network on releases of public texts.

In: a case, public texts. Out: outcomes, as those of `learned`.
Not here: the network (`context_network`), and all other clues (`learned`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.config.extras import explain_missing
from textveil.evaluate.attack import channel
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.attack.context_channel import is_contextual
from textveil.evaluate.attack.knowledge import Knowledge
from textveil.evaluate.attack.learned import Learned, TextModel
from textveil.evaluate.attack.posterior import is_mixing
from textveil.randomness import Ids, Randomness

NEGATIVES = 48
"""Wrong words that are drawn for each private word of the public texts."""

NETWORK_STREAM = 2**122
"""The random stream of the network and its releases, apart from all others."""

BASELINE_NOTE = "without the release, it is `learned`: the network reads releases alone"

LINES_AT_ONCE = 64
"""Laws that are in memory at once for all words."""


@make_options()
class NetworkAttack(Learned):
    """Guesses words as `learned` does, with the help of a small network that reads the whole text.

    The attacker releases the public texts with the same program, and trains the network on them: it
    reads what was released and what passed on both sides of a word, and learns which of the words
    that the law allows is behind it. The weight of what it says is learned beside all other clues,
    on public texts that it was not trained on.

    It looks at one release of a text, and needs a mechanism that draws each word alone. Its
    baseline, without the released words, is that of `learned`. It takes minutes, and the extra
    `textveil[torch]`.

    Args:
        public, k, candidates, simulated, passes, language, beam, model, draws: as those of
            `learned`.
        trained: the number of words of public texts that the network is trained on.
        epochs: how often it reads these texts.
        width: numbers that stand for each word in it.
        layers: how many times it joins adjacent words.
    """

    name: ClassVar[str] = "network"
    trained: Annotated[int, Field(ge=100, strict=True)] = 400_000
    epochs: Annotated[int, Field(ge=1, le=100, strict=True)] = 3
    width: Annotated[int, Field(ge=4, le=1024, strict=True)] = 64
    layers: Annotated[int, Field(ge=1, le=12, strict=True)] = 2

    def refusal(self, view: View) -> str:
        """Returns why no guess can be made, or "".

        For the reasons of `learned`, for several releases, and where a word's law depends on the
        words around.
        """
        if reason := super().refusal(view):
            return reason
        if view.other_releases:
            return "its network looks at one release of a text: `learned` takes several"
        if is_mixing(view) or is_contextual(view.mechanism, view.table):
            return "its network needs a law of each word alone: `learned` takes others, too"
        return ""

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields the outcomes of `learned`."""
        for outcome in super().run(case, rng=rng, report=report):
            yield replace(outcome, note=f"{outcome.note}; {BASELINE_NOTE}")

    def _train_text_model(
        self,
        view: View,
        texts: Sequence[str],
        knowledge: Knowledge,
        rng: Randomness,
        report: ProgressCallback,
    ) -> TextModel | None:
        """Trains the network on releases of public texts."""
        with explain_missing():
            from textveil.evaluate.attack.context_network import ContextNetwork
        assert view.program is not None, "refused otherwise"
        rng = rng.derive_part(NETWORK_STREAM)
        report("releases to train on", 0, len(texts))
        share = len(view.output_rows) / max(1, len(view.items))
        words = np.cumsum([share * len(text.split()) for text in texts])
        chosen = texts[: int(np.searchsorted(words, self.trained)) + 1]
        case = Case.create(view.program.with_parts(randomness=rng), chosen, names=True)
        truth = knowledge.find_ids(case.view.table, case.secret_words)
        if not (truth >= 0).any():
            return None
        network = ContextNetwork.train(
            case.view,
            knowledge,
            truth,
            _draw_negatives(case.view, knowledge, self.draws, rng, report),
            width=self.width,
            layers=self.layers,
            epochs=self.epochs,
            rng=rng,
            report=report,
        )
        return network.score


def _draw_negatives(
    view: View, knowledge: Knowledge, draws: int, rng: Randomness, report: ProgressCallback
) -> Ids:
    """Draws words that may be behind each released one, by prior and law: int64 [n, N]."""
    n = len(view.output_rows)
    negatives = np.empty((n, NEGATIVES), np.int64)
    (uniform,) = (stream.uniform(NEGATIVES) for _, stream in rng.open([n]).split_rows(n))
    prior = knowledge.log_prior.astype(np.float32)
    for part in channel.yield_likelihoods(view, draws=draws, rng=rng, report=report):
        used, which = np.unique(part.which[:, 0], return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        ends = np.searchsorted(which.ravel()[order], np.arange(len(used) + 1))
        for start in range(0, len(used), LINES_AT_ONCE):
            lines = view.table.spread(part.lines[used[start : start + LINES_AT_ONCE]])
            posterior = lines[:, knowledge.row] + prior
            posterior = np.exp(posterior - posterior.max(axis=1, keepdims=True))
            cumulated = posterior.cumsum(axis=1, dtype=np.float64)
            for line, total in enumerate(cumulated, start):
                members = part.positions[order[ends[line] : ends[line + 1]]]
                negatives[members] = np.searchsorted(total, uniform[members] * total[-1])
    return np.minimum(negatives, len(knowledge) - 1)
