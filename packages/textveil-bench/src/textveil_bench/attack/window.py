"""Joint attack on mechanisms that mix neighbours.

In: a case. Out: whether the private row is among the first guesses, and among the neighbouring
outputs.
Not here: the joint posterior (`joint`), attackers that use one released word at a time (`bayes`,
`neighbour`).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.attack.chain import find_neighbours
from textveil.evaluate.attack.posterior import is_mixing, rank_candidates
from textveil.evaluate.attack.prior import get_static_prior
from textveil.mechanism import Layout
from textveil.randomness import Ids, Randomness


@make_options()
class WindowAttack:
    """Guesses a text's words together, for mechanisms that mix neighbouring words.

    A released row is the nearest to a noisy mean of several words, so one word influences several
    released rows, and a released row may reveal a neighbour. The attacker knows the window, the
    noise and the word frequencies, and uses all released rows that a word influences; see
    `joint.decode`.

    Args:
        k: guesses per word.
        prior: expected words: by frequency in public text (unigram), or uniform.
    """

    name: ClassVar[str] = "window"
    on_request: ClassVar[Literal[True]] = True
    k: Annotated[int, Field(ge=5, le=9, strict=True)] = 5
    prior: Literal["unigram", "uniform"] = "unigram"

    def refusal(self, view: View) -> str:
        """Explains why the attack cannot run: no mixing, or no draws."""
        if not is_mixing(view):
            return "the mechanism mixes no neighbours: use bayes instead"
        return "" if len(view.output_rows) else "nothing was drawn"

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields top-1, top-3, top-k, the attacker's confidence, and the union of outputs."""
        view, secret = case.view, case.truth.table_rows[:, None]
        ranking = rank_candidates(view, prior=self.prior, k=self.k, rng=rng, report=report)
        where = np.arange(len(secret))
        blind = np.argsort(
            -get_static_prior(view.table, self.prior, view.words.stopwords), kind="stable"
        )
        for k in sorted({1, 3, self.k}):
            yield Outcome(
                source=self.name,
                metric=f"top-{k}",
                setting={"prior": self.prior},
                where=where,
                values=(ranking.candidates[:, :k] == secret).any(axis=1).astype(np.float64),
                baseline=float((blind[:k] == secret).any(axis=1).mean()),
                note=view.note_reranking(
                    "a lower bound: words that were mixed are guessed together, approximately"
                ),
            )
        confidence = np.exp(ranking.log_probability[:, 0])
        for metric, values, note in (
            ("stated top-1", confidence, "the probability that the attacker gives the first guess"),
            (
                "Brier score",
                np.square(confidence - (ranking.candidates[:, :1] == secret)[:, 0]),
                "of that probability; 0 is best",
            ),
        ):
            yield Outcome(
                source=self.name,
                metric=metric,
                setting={"prior": self.prior},
                where=where,
                values=values,
                note=view.note_reranking(note),
                headline=False,
            )
        yield Outcome(
            source=self.name,
            metric="union of 3 outputs",
            where=where,
            values=(join_outputs(view.layout, view.visible_rows) == secret)
            .any(axis=1)
            .astype(np.float64),
            note="the private word is what was released for it or for a neighbour",
        )


def join_outputs(layout: Layout, released: Ids, reach: int = 1) -> Ids:
    """Collects the rows released for each word and its neighbours.

    Neighbours are the `reach` protected words on each side in the same text.

    Returns:
        int64 [n, 2 reach + 1]; -1 beyond the end of the text.
    """
    text = np.searchsorted(layout.documents, layout.positions, side="right")
    outputs = np.full((len(released), 2 * reach + 1), -1)
    for offset in range(-reach, reach + 1):
        place, inside = find_neighbours(text, offset)
        outputs[:, offset + reach] = np.where(inside, released[place], -1)
    return outputs
