"""The joint attack on mechanisms that mix neighbours: all words of a text are guessed together.

In: a case. Out: how often the private row is among the first guesses, and among the outputs beside
it.
Not here: the joint posterior (`joint`), attackers who look at one released word at a time (`bayes`,
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
    """Guesses all words of a text together, knowing the window, the noise and what is usually written.

    A released row is the nearest to a mean of several words and noise, so one word shows in several
    released rows, and
    a released row may show a neighbour. All that a word's window says is weighed at once, see
    `joint.decode`.

    Args:
        k: guesses per word.
        prior: what words are expected: as often as they stand in public text, or all equally.
    """

    name: ClassVar[str] = "window"
    on_request: ClassVar[Literal[True]] = True
    k: Annotated[int, Field(ge=5, le=9, strict=True)] = 5
    prior: Literal["unigram", "uniform"] = "unigram"

    def refusal(self, view: View) -> str:
        """Where the mechanism mixes no neighbours, or nothing was drawn."""
        if not is_mixing(view):
            return "the mechanism mixes no neighbours: bayes is this attack then"
        return "" if len(view.output_rows) else "nothing was drawn"

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """top-1, top-3, top-k, how sure the attacker is of top-1, and the union of neighbouring outputs."""
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
    """The rows released for a word and for the `reach` protected words on each side of it in its text.

    Returns:
        int64 [n, 2 reach + 1], -1 where the text ends.
    """
    text = np.searchsorted(layout.documents, layout.positions, side="right")
    outputs = np.full((len(released), 2 * reach + 1), -1)
    for offset in range(-reach, reach + 1):
        place, inside = find_neighbours(text, offset)
        outputs[:, offset + reach] = np.where(inside, released[place], -1)
    return outputs
