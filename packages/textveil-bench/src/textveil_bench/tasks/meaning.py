"""Meaning: similarity of a release to its original under a sentence encoder.

In: originals and releases. Out: the cosine of their sentence vectors.
Not here: cosines of words (`textveil_bench.measure`), and of attackers' guesses
(`textveil.evaluate.attack`).
"""

from collections.abc import Iterator, Sequence

from textveil.config import make_options
from textveil_bench.examples import DataSet
from textveil_bench.tasks import judge_models, sentence_vectors
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import FIELD_SEPARATOR, ReleasedExample, join_fields


@make_options()
class Meaning:
    """Measures the similarity in meaning of releases to originals, for any data.

    It is the cosine of the sentence vectors of the whole example, all fields together, before and
    after. Two unrelated English texts still have a positive cosine, so the lowest value is not 0:
    see the baselines `uniform` and `mask`.

    Args:
        encoder: a folder or hub id of a sentence encoder, "NAME@cls" or "NAME@pooler" for a plain
            model whose vector is not the mean over its pieces; the bundled one by default.
    """

    encoder: str | None = None

    @property
    def name(self) -> str:
        """The judge's name in rows."""
        return (
            "meaning"
            if self.encoder is None
            else f"meaning ({judge_models.get_model_name(self.encoder)})"
        )

    def explain_refusal(self, data: DataSet) -> str:
        """Returns "": the judge accepts all data."""
        return ""

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Yields the cosine of each example with its release."""
        originals = sentence_vectors.encode_originals(
            tuple(join_fields(trial.example) for trial in trials), self.encoder
        )
        released = sentence_vectors.encode(
            [FIELD_SEPARATOR.join(trial.texts) for trial in trials], self.encoder
        )
        yield Score(
            metric="cosine of texts",
            values=sentence_vectors.compute_cosines(released, originals),
            share=False,
            headline=True,
            note=f"sentence vectors of {judge_models.get_model_name(self.encoder)}, of the whole "
            "example before and after",
        )
